/* See pgoutput.h. */
#include "connector/postgres/pgoutput.h"

#include <stdio.h>
#include <stdlib.h>

static bool text_z(ck_cursor *c, ck_view *out) {
    const uint8_t *end = memchr(c->p, 0, c->left);
    if (!end) return false;
    size_t n = (size_t)(end - c->p);
    ck_view zero;
    return ck_cursor_take(c, n, out) && ck_cursor_take(c, 1, &zero);
}

bool ck_pgo_next_value(ck_cursor *row, ck_pgo_value *out) {
    uint8_t kind;
    uint32_t n;
    *out = (ck_pgo_value){0};
    if (!ck_cursor_u8(row, &kind)) return false;
    if (kind == 'n') return true;
    if (kind == 'u') {
        out->unchanged = true;
        return true;
    }
    return kind == 't' && ck_cursor_u32be(row, &n) && ck_cursor_take(row, n, &out->text);
}

bool ck_pgo_next_column(ck_cursor *c, ck_pgo_column *out) {
    uint8_t flags;
    uint32_t modifier;
    if (!ck_cursor_u8(c, &flags) || !text_z(c, &out->name) || !ck_cursor_u32be(c, &out->type) ||
        !ck_cursor_u32be(c, &modifier))
        return false;
    out->key = flags & 1;
    return true;
}

/* The values of one row, checked to be whole; the cursor goes behind them. */
static bool take_row(ck_cursor *c, ck_cursor *row, uint32_t *count) {
    uint16_t n;
    ck_pgo_value v;
    if (!ck_cursor_u16be(c, &n)) return false;
    *row = *c;
    *count = n;
    for (uint16_t i = 0; i < n; i++)
        if (!ck_pgo_next_value(c, &v)) return false;
    return true;
}

static bool take_relation(ck_cursor *c, ck_pgo_message *m) {
    uint8_t identity;
    uint16_t n;
    ck_pgo_column column;
    if (!ck_cursor_u32be(c, &m->relation) || !text_z(c, &m->schema) || !text_z(c, &m->name) ||
        !ck_cursor_u8(c, &identity) || !ck_cursor_u16be(c, &n))
        return false;
    m->identity = (char)identity;
    m->new_row = *c;
    m->new_count = n;
    for (uint16_t i = 0; i < n; i++)
        if (!ck_pgo_next_column(c, &column)) return false;
    return true;
}

static bool take_change(ck_cursor *c, ck_pgo_message *m) {
    uint8_t what;
    if (!ck_cursor_u32be(c, &m->relation) || !ck_cursor_u8(c, &what)) return false;
    if (what == 'K' || what == 'O') {
        m->old_kind = (char)what;
        if (m->kind == CK_PGO_INSERT || !take_row(c, &m->old_row, &m->old_count)) return false;
        if (m->kind == CK_PGO_DELETE) return true;
        if (!ck_cursor_u8(c, &what)) return false;
    }
    return what == 'N' && m->kind != CK_PGO_DELETE && take_row(c, &m->new_row, &m->new_count);
}

static bool take_truncate(ck_cursor *c, ck_pgo_message *m) {
    uint8_t options;
    ck_view numbers;
    if (!ck_cursor_u32be(c, &m->count) || !ck_cursor_u8(c, &options)) return false;
    m->new_row = *c;
    return m->count <= c->left / 4 && ck_cursor_take(c, (size_t)m->count * 4, &numbers);
}

static bool take_commit(ck_cursor *c, ck_pgo_message *m) {
    uint8_t flags;
    uint64_t commit;
    return ck_cursor_u8(c, &flags) && ck_cursor_u64be(c, &commit) && ck_cursor_u64be(c, &m->lsn);
}

ck_status ck_pgo_parse(ck_view bytes, ck_pgo_message *m, ck_error *err) {
    ck_cursor c = ck_cursor_of(bytes.p, bytes.n);
    uint8_t kind = 0;
    *m = (ck_pgo_message){0};
    bool ok = ck_cursor_u8(&c, &kind);
    m->kind = (ck_pgo_kind)kind;
    switch (kind) {
    case CK_PGO_BEGIN: ok = ok && ck_cursor_u64be(&c, &m->lsn); break;
    case CK_PGO_COMMIT: ok = ok && take_commit(&c, m); break;
    case CK_PGO_RELATION: ok = ok && take_relation(&c, m); break;
    case CK_PGO_INSERT:
    case CK_PGO_UPDATE:
    case CK_PGO_DELETE: ok = ok && take_change(&c, m); break;
    case CK_PGO_TRUNCATE: ok = ok && take_truncate(&c, m); break;
    case 'O':
    case 'Y':
    case 'M': m->kind = CK_PGO_OTHER; break;
    default: ok = false;
    }
    if (ok) return CK_OK;
    return ck_fail(err, CK_CORRUPT, "the server sent a replication message that is cut or unknown (kind %d, %zu bytes)",
                   kind, bytes.n);
}

bool ck_pg_lsn_parse(const char *text, uint64_t *out) {
    char *end;
    unsigned long long high = strtoull(text, &end, 16);
    if (end == text || *end != '/' || high > UINT32_MAX) return false;
    const char *rest = end + 1;
    unsigned long long low = strtoull(rest, &end, 16);
    *out = high << 32 | low;
    return end != rest && *end == 0 && low <= UINT32_MAX;
}

const char *ck_pg_lsn_print(char out[CK_PG_LSN_BYTES], uint64_t lsn) {
    (void)snprintf(out, CK_PG_LSN_BYTES, "%X/%X", (uint32_t)(lsn >> 32), (uint32_t)lsn);
    return out;
}
