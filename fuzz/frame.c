/* The frame reader: the first byte picks how the bytes are cut into reads and the ceiling, the rest is the stream. What
 * must hold: the same frames come out however the stream is cut, as a plain second reading of it says, and memory never
 * runs ahead of what has arrived. */
#include "fuzz.h"

#include <string.h>

#include "base/hash.h"
#include "net/frame.h"

typedef struct outcome {
    ck_status status;
    size_t frames;
    uint64_t hash;
} outcome;

static void count_frame(outcome *o, uint8_t kind, const uint8_t *p, size_t n) {
    o->frames++;
    o->hash = ck_fnv1a_more(o->hash, &kind, 1);
    o->hash = ck_fnv1a_more(o->hash, &n, sizeof n);
    if (n) o->hash = ck_fnv1a_more(o->hash, p, n);
}

/* By index over the whole stream: the oracle. */
static outcome read_plainly(const uint8_t *p, size_t n, size_t length_max) {
    outcome o = {CK_AGAIN, 0, CK_FNV_OFFSET};
    while (n >= 4) {
        size_t length = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        if (length == 0 || length > length_max) {
            o.status = length == 0 ? CK_CORRUPT : CK_FULL;
            break;
        }
        if (n - 4 < length) break;
        count_frame(&o, p[4], p + 5, length - 1);
        p += 4 + length, n -= 4 + length;
    }
    return o;
}

static outcome read_cut(const uint8_t *p, size_t n, size_t length_max, size_t step, ck_budget *budget) {
    outcome o = {CK_AGAIN, 0, CK_FNV_OFFSET};
    ck_frame_reader r;
    ck_frame_reader_init(&r, (ck_mem){budget, CK_MEM_QUEUE}, length_max);
    size_t arrived = 0;
    while (o.status == CK_AGAIN && arrived < n) {
        void *to;
        size_t room;
        ck_status s = ck_frame_reader_space(&r, &to, &room, NULL);
        CK_ASSERT(s == CK_OK && room > 0);
        if (room > step) room = step;
        if (room > n - arrived) room = n - arrived;
        memcpy(to, p + arrived, room);
        ck_frame_reader_filled(&r, room);
        arrived += room;
        ck_frame *f;
        while ((o.status = ck_frame_reader_next(&r, &f, NULL)) == CK_OK) {
            count_frame(&o, f->kind, f->p, f->n);
            for (size_t i = 0; i < CK_FRAME_PADDING; i++) CK_ASSERT(f->p[f->n + i] == 0);
            ck_frame_free(&f);
        }
        CK_ASSERT(ck_budget_total(budget) <= (2 << 20) + 2 * arrived);
    }
    ck_frame_reader_destroy(&r);
    CK_ASSERT(ck_budget_total(budget) == 0);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    static const size_t steps[] = {1, 3, 7, 64, 4096, 65536, 1 << 20};
    static const size_t ceilings[] = {1, 100, CK_FRAME_CONTROL_BYTES_MAX, CK_FRAME_BYTES_MAX};
    size_t step = steps[data[0] % 7], ceiling = ceilings[data[0] / 7 % 4];
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    outcome a = read_plainly(data + 1, size - 1, ceiling), b = read_cut(data + 1, size - 1, ceiling, step, &budget);
    CK_ASSERT(a.frames == b.frames && a.hash == b.hash && a.status == b.status);
    return 0;
}
