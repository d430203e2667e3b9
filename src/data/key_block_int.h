/* Key columns read in blocks: the live rows of a batch, at most CK_KEY_BLOCK at a time, as dense words with a flag
 * where there is a value. What hashes keys then loops over arrays without looking at selections, bitmaps or types. */
#ifndef CK_DATA_KEY_BLOCK_INT_H
#define CK_DATA_KEY_BLOCK_INT_H

#include "data/key.h"

enum { CK_KEY_BLOCK = 256 };

typedef struct ck_key_block {
    const ck_column *c;
    const uint16_t *sel; /* of the block; NULL: rows start, start + 1, ... */
    uint32_t start, n;
} ck_key_block;

static inline ck_key_block ck_key_block_at(const ck_batch *b, const ck_column *c, uint32_t k) {
    uint32_t n = b->sel_count - k < CK_KEY_BLOCK ? b->sel_count - k : CK_KEY_BLOCK;
    return (ck_key_block){c, b->sel ? b->sel + k : NULL, b->sel ? 0 : k, n};
}
static inline uint32_t ck_key_block_row(const ck_key_block *b, uint32_t i) { return b->sel ? b->sel[i] : b->start + i; }

/* Whether some row of the block is NULL; then present[i] says which has a value, else present is left alone. */
static inline bool ck_key_block_nulls(const ck_key_block *b, uint8_t *present) {
    if (b->c->phys != CK_PHYS_NULL && !b->c->validity) return false;
    uint8_t all = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        present[i] = !ck_column_is_null(b->c, ck_key_block_row(b, i));
        all &= present[i];
    }
    return !all;
}

/* Values of BOOL, I64 or (canonical, as bits) F64 columns: in scratch, or where they stand already. What stands at a
 * NULL is unspecified. */
static inline const uint64_t *ck_key_block_words(const ck_key_block *b, uint64_t *restrict scratch) {
    const ck_column *c = b->c;
    if (c->phys == CK_PHYS_I64) {
        if (!b->sel) return (const uint64_t *)c->i64 + b->start;
        for (uint32_t i = 0; i < b->n; i++) scratch[i] = (uint64_t)c->i64[b->sel[i]];
    } else if (c->phys == CK_PHYS_F64) {
        for (uint32_t i = 0; i < b->n; i++) {
            double d = ck_double_canonical(c->f64[ck_key_block_row(b, i)]);
            memcpy(&scratch[i], &d, 8);
        }
    } else {
        for (uint32_t i = 0; i < b->n; i++) scratch[i] = ck_bit_get(c->bits, ck_key_block_row(b, i));
    }
    return scratch;
}

/* Whether all rows of a column of views have the same, as the day of rows that come by time. Most columns say no in the
 * first rows. */
static inline bool ck_key_block_is_one_view(const ck_key_block *b) {
    const ck_strview *v = b->c->views + b->start;
    if (!b->sel) return b->n == 1 || memcmp(v, v + 1, (b->n - 1) * sizeof *v) == 0;
    for (uint32_t i = 1; i < b->n; i++)
        if (memcmp(&v[b->sel[i]], &v[b->sel[0]], sizeof *v) != 0) return false;
    return true;
}

/* Keeps a compiler from taking a loop of 64-bit multiplications to vectors, which emulate each with three of 32 bits.
 */
static inline uint64_t ck_key_scalar(uint64_t x) {
    __asm__("" : "+r"(x));
    return x;
}

/* flag ? a : b, without a branch. */
static inline uint64_t ck_key_choose(uint8_t flag, uint64_t a, uint64_t b) {
    return b ^ ((a ^ b) & (0 - (uint64_t)flag));
}

#endif
