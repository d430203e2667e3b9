#include "cluster/coordinator/records.h"

#include "base/cursor.h"
#include "os/durable.h"

void ck_record_head(const ck_frame *f, uint8_t head[CK_RECORD_HEAD_BYTES]) {
    uint32_t crc = ck_crc32c(0, f->p, f->n);
    head[0] = f->kind;
    for (int i = 0; i < 4; i++) head[1 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

ck_status ck_record_read(ck_view bytes, const char *name, ck_arena *a, ck_message *out, ck_error *err) {
    uint8_t kind;
    uint32_t crc;
    ck_cursor c = ck_cursor_of(bytes.p, bytes.n);
    if (!ck_cursor_u8(&c, &kind) || !ck_cursor_u32be(&c, &crc) || ck_crc32c(0, c.p, c.left) != crc)
        return ck_fail(err, CK_CORRUPT, "%s is damaged", name);
    const ck_frame f = {.kind = kind, .p = (uint8_t *)(uintptr_t)c.p, .n = c.left};
    return ck_message_read(&f, a, out, err) == CK_OK ? CK_OK : ck_error_prefix(err, "%s: ", name);
}

ck_status ck_record_next_epoch(const ck_message *m, const char *name, uint64_t *epoch, ck_error *err) {
    if (m->kind != CK_MSG_RECORD_LEADER) return ck_fail(err, CK_CORRUPT, "%s is no leader's record", name);
    *epoch = m->as.leader.epoch + 1;
    return CK_OK;
}
