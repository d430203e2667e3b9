/* gzip and zstd: the first bytes choose the kind and the sizes of pieces, the rest is the file. What must hold: whether
 * it is whole does not depend on how it is cut, nor do the bytes it gives, and memory stays within the budget. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "format/compression.h"

enum { CONTROL = 3, OUT_BYTES_MAX = 1 << 20 };

typedef struct outcome {
    ck_status status;
    size_t made;
    uint8_t *bytes;
} outcome;

static outcome inflate_in(ck_compression c, const uint8_t *p, size_t n, size_t in_step, size_t out_step) {
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 16 << 20);
    ck_inflater *i;
    outcome o = {.bytes = malloc(OUT_BYTES_MAX)};
    CK_ASSERT(o.bytes);
    o.status = ck_inflater_new(c, (ck_mem){&budget, CK_MEM_DECODE}, &i, NULL);
    CK_ASSERT(o.status == CK_OK);
    for (size_t at = 0; o.status == CK_OK && at < n;) {
        size_t end = n - at < in_step ? n : at + in_step;
        do {
            size_t room = OUT_BYTES_MAX - o.made < out_step ? OUT_BYTES_MAX - o.made : out_step, taken = 0, made = 0;
            if (room == 0) { /* enough of a bomb */
                o.status = CK_FULL;
                break;
            }
            o.status = ck_inflater_run(i, p + at, end - at, &taken, o.bytes + o.made, room, &made, NULL);
            CK_ASSERT(taken <= end - at && made <= room);
            CK_ASSERT(o.status != CK_MORE || made == room || taken > 0);
            at += taken;
            o.made += made;
        } while (o.status == CK_MORE);
        if (o.status == CK_OK) CK_ASSERT(at == end);
    }
    if (o.status == CK_OK) o.status = ck_inflater_end(i, NULL);
    ck_inflater_free(i);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CONTROL || size > 100000) return 0;
    ck_compression c = data[0] & 1 ? CK_COMPRESSION_ZSTD : CK_COMPRESSION_GZIP;
    const uint8_t *p = data + CONTROL;
    size_t n = size - CONTROL;
    outcome whole = inflate_in(c, p, n, n + 1, OUT_BYTES_MAX);
    outcome cut = inflate_in(c, p, n, 1u + data[1], 1u + data[2]);
    CK_ASSERT((whole.status == CK_OK) == (cut.status == CK_OK));
    CK_ASSERT((whole.status == CK_FULL) == (cut.status == CK_FULL));
    if (whole.status == CK_OK) CK_ASSERT(whole.made == cut.made && memcmp(whole.bytes, cut.bytes, whole.made) == 0);
    free(whole.bytes);
    free(cut.bytes);
    return 0;
}
