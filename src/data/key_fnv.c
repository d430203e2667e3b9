/* ck_key_fnv: FNV-1a 64 of encoded keys without the bytes. FNV is a chain h = (h ^ byte) * P, a multiplication's
 * latency a byte; so the hashes of a block of rows advance together, four chains at a time, one key column after the
 * other.
 *
 * Two shortcuts leave the result exact. A zero byte is a multiplication by P alone, so the z high bytes that are zero
 * in all integers of a block are one multiplication by P^z. And P is odd, hence invertible: short strings are hashed
 * over their zero padding up to the longest of the block, and what the padding did is undone by one multiplication with
 * the inverse, without a branch on the length. */
#include "data/key_block_int.h"
#include "data/row_int.h"

#define P     CK_FNV_PRIME
#define P_INV 0xce965057aff6957bULL /* P * P_INV = 1 mod 2^64 */

/* P^z and P_INV^z for 0..16. */
typedef struct powers {
    uint64_t p[17], inverse[17];
} powers;

static void init_powers(powers *w) {
    w->p[0] = w->inverse[0] = 1;
    for (int i = 1; i <= 16; i++) {
        w->p[i] = w->p[i - 1] * P;
        w->inverse[i] = w->inverse[i - 1] * P_INV;
    }
}

/* The low `bytes` bytes of each word; bytes is a constant where this is inlined. */
static inline __attribute__((always_inline)) void absorb_low(uint64_t *restrict h, const uint64_t *restrict v, size_t n,
                                                             unsigned bytes, uint64_t rest) {
    size_t whole = n & ~(size_t)3;
    for (const uint64_t *end = h + whole; h < end; h += 4, v += 4) {
        uint64_t a = h[0], b = h[1], c = h[2], d = h[3];
        uint64_t va = v[0], vb = v[1], vc = v[2], vd = v[3];
        for (unsigned k = 0; k < bytes; k++) {
            a = (a ^ (uint8_t)va) * P, b = (b ^ (uint8_t)vb) * P, c = (c ^ (uint8_t)vc) * P, d = (d ^ (uint8_t)vd) * P;
            va >>= 8, vb >>= 8, vc >>= 8, vd >>= 8;
        }
        h[0] = a * rest, h[1] = b * rest, h[2] = c * rest, h[3] = d * rest;
    }
    for (size_t i = 0; i < n - whole; i++) {
        uint64_t a = h[i], va = v[i];
        for (unsigned k = 0; k < bytes; k++, va >>= 8) a = (a ^ (uint8_t)va) * P;
        h[i] = a * rest;
    }
}

/* `width` bytes of each word, little-endian. */
static void absorb_words(uint64_t *h, const uint64_t *v, size_t n, unsigned width, const powers *w) {
    uint64_t any = 0;
    for (size_t i = 0; i < n; i++) any |= v[i];
    unsigned used = any ? (71 - (unsigned)__builtin_clzll(any)) / 8 : 0;
    uint64_t rest = w->p[width - used];
    switch (used) {
    case 0:
        for (size_t i = 0; i < n; i++) h[i] = ck_key_scalar(h[i]) * rest;
        break;
    case 1: absorb_low(h, v, n, 1, rest); break;
    case 2: absorb_low(h, v, n, 2, rest); break;
    case 3: absorb_low(h, v, n, 3, rest); break;
    case 4: absorb_low(h, v, n, 4, rest); break;
    case 5: absorb_low(h, v, n, 5, rest); break;
    case 6: absorb_low(h, v, n, 6, rest); break;
    case 7: absorb_low(h, v, n, 7, rest); break;
    default: absorb_low(h, v, n, 8, rest);
    }
}

/* ---- one column of a block; present is NULL when no row is NULL ---- */

static void absorb_decimals(uint64_t *h, const ck_key_block *b, int32_t scale, const powers *w) {
    uint64_t scales[CK_KEY_BLOCK], low[CK_KEY_BLOCK], high[CK_KEY_BLOCK];
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t row = ck_key_block_row(b, i);
        ck_i128 v = ck_column_is_null(b->c, row) ? 0 : b->c->i128[row];
        int32_t s = scale;
        ck_decimal_canonical(&v, &s);
        scales[i] = (uint64_t)s, low[i] = (uint64_t)v, high[i] = (uint64_t)((ck_u128)v >> 64);
    }
    absorb_words(h, scales, b->n, 1, w);
    absorb_words(h, low, b->n, 8, w);
    absorb_words(h, high, b->n, 8, w);
}

static uint64_t absorb_bytes(uint64_t h, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * P;
    return h;
}

/* Long strings, four at a time as far as the shortest goes. */
static void absorb_long(uint64_t *h, const ck_column *c, const uint32_t *at, const uint32_t *rows, uint32_t count) {
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        ck_view v[4];
        uint64_t x[4];
        size_t n = SIZE_MAX;
        for (unsigned j = 0; j < 4; j++) {
            v[j] = ck_column_str(c, rows[i + j]);
            x[j] = h[at[i + j]];
            if (v[j].n < n) n = v[j].n;
        }
        const uint8_t *p0 = (const uint8_t *)v[0].p, *p1 = (const uint8_t *)v[1].p, *p2 = (const uint8_t *)v[2].p,
                      *p3 = (const uint8_t *)v[3].p;
        uint64_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        for (size_t k = 0; k < n; k++)
            x0 = (x0 ^ p0[k]) * P, x1 = (x1 ^ p1[k]) * P, x2 = (x2 ^ p2[k]) * P, x3 = (x3 ^ p3[k]) * P;
        h[at[i]] = absorb_bytes(x0, p0 + n, v[0].n - n);
        h[at[i + 1]] = absorb_bytes(x1, p1 + n, v[1].n - n);
        h[at[i + 2]] = absorb_bytes(x2, p2 + n, v[2].n - n);
        h[at[i + 3]] = absorb_bytes(x3, p3 + n, v[3].n - n);
    }
    for (; i < count; i++) {
        ck_view v = ck_column_str(c, rows[i]);
        h[at[i]] = absorb_bytes(h[at[i]], (const uint8_t *)v.p, v.n);
    }
}

/* The bytes of strings, their length in front where with_length. */
static void absorb_strings(uint64_t *h, const ck_key_block *b, const uint8_t *present, bool with_length,
                           const powers *w) {
    uint64_t lengths[CK_KEY_BLOCK], low[CK_KEY_BLOCK], high[CK_KEY_BLOCK], undo[CK_KEY_BLOCK];
    uint32_t long_at[CK_KEY_BLOCK], long_rows[CK_KEY_BLOCK], long_count = 0, longest = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t row = ck_key_block_row(b, i);
        const ck_strview *v = &b->c->views[row];
        bool null = present && !present[i];
        uint32_t length = null ? 0 : (uint32_t)v->length;
        lengths[i] = length;
        bool is_long = length > CK_STRVIEW_INLINE;
        long_at[long_count] = i, long_rows[long_count] = row;
        long_count += is_long;
        /* a long one takes part as the empty string and comes after; what stands at a NULL is not looked at */
        uint64_t keep = is_long || null ? 0 : ~0ULL;
        uint32_t top;
        memcpy(&low[i], v->inlined, 8);
        memcpy(&top, v->inlined + 8, 4);
        low[i] &= keep, high[i] = top & keep;
        undo[i] = is_long ? 0 : length;
        longest = longest > undo[i] ? longest : (uint32_t)undo[i];
    }
    if (with_length) absorb_words(h, lengths, b->n, 4, w);
    if (longest) {
        absorb_words(h, low, b->n, longest < 8 ? longest : 8, w);
        if (longest > 8) absorb_words(h, high, b->n, longest - 8, w);
        for (uint32_t i = 0; i < b->n; i++) h[i] = ck_key_scalar(h[i]) * w->inverse[longest - undo[i]];
    }
    if (long_count) absorb_long(h, b->c, long_at, long_rows, long_count);
}

typedef struct fnv_sink {
    ck_pack_sink base;
    uint64_t h;
} fnv_sink;
static void fnv_put(ck_pack_sink *s, const void *p, size_t n) {
    fnv_sink *f = (fnv_sink *)s;
    f->h = ck_fnv1a_more(f->h, p, n);
}

static void absorb_nested(uint64_t *h, const ck_key_block *b, const ck_type *t) {
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t row = ck_key_block_row(b, i);
        size_t bytes;
        if (ck_column_is_null(b->c, row) || ck_packed_bytes(t, b->c, row, &bytes) != CK_OK) continue;
        uint32_t length = (uint32_t)bytes;
        fnv_sink s = {{fnv_put}, ck_fnv1a_more(h[i], &length, 4)};
        ck_packed_put(t, b->c, row, &s.base);
        h[i] = s.h;
    }
}

static void absorb_value(uint64_t *h, const ck_key_block *b, const ck_type *t, const uint8_t *present, bool alone,
                         const powers *w) {
    uint64_t scratch[CK_KEY_BLOCK];
    const uint64_t *words;
    switch (b->c->phys) {
    case CK_PHYS_NULL: return;
    case CK_PHYS_BOOL:
    case CK_PHYS_I64:
    case CK_PHYS_F64:
        words = ck_key_block_words(b, scratch);
        if (present) { /* what stands at a NULL must not lengthen the others */
            for (uint32_t i = 0; i < b->n; i++) scratch[i] = ck_key_choose(present[i], words[i], 0);
            words = scratch;
        }
        absorb_words(h, words, b->n, 8, w);
        return;
    case CK_PHYS_I128: absorb_decimals(h, b, t->scale, w); return;
    case CK_PHYS_VIEW: absorb_strings(h, b, present, !alone, w); return;
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: absorb_nested(h, b, t); return;
    }
}

/* The forms of key.h in which a single column stands without a mark in front. */
static bool stands_alone(const ck_key_spec *k, const ck_column *c) {
    return k->count == 1 && (c->phys == CK_PHYS_I64 || c->phys == CK_PHYS_BOOL || k->types[0]->kind == CK_TYPE_VARCHAR);
}

static void absorb_column(uint64_t *h, const ck_key_spec *k, uint32_t column, const ck_key_block *b, const powers *w) {
    uint8_t flags[CK_KEY_BLOCK];
    uint64_t nulls[CK_KEY_BLOCK];
    const uint8_t *present = ck_key_block_nulls(b, flags) ? flags : NULL;
    if (present)
        for (uint32_t i = 0; i < b->n; i++)
            nulls[i] = k->count == 1 ? (CK_FNV_OFFSET ^ 0xff) * P : (column ? h[i] : CK_FNV_OFFSET) * P;
    bool alone = stands_alone(k, b->c);
    uint64_t begin = alone ? CK_FNV_OFFSET : (CK_FNV_OFFSET ^ 1) * P;
    if (column == 0)
        for (uint32_t i = 0; i < b->n; i++) h[i] = begin;
    else
        for (uint32_t i = 0; i < b->n; i++) h[i] = (ck_key_scalar(h[i]) ^ 1) * P;
    absorb_value(h, b, k->types[column], present, alone, w);
    if (present)
        for (uint32_t i = 0; i < b->n; i++) h[i] = ck_key_choose(present[i], h[i], nulls[i]);
}

void ck_key_fnv(const ck_key_spec *k, const ck_batch *b, uint64_t *out) {
    powers w;
    init_powers(&w);
    for (uint32_t at = 0; at < b->sel_count; at += CK_KEY_BLOCK) {
        uint64_t *h = out + at;
        uint32_t n = b->sel_count - at < CK_KEY_BLOCK ? b->sel_count - at : CK_KEY_BLOCK;
        for (uint32_t i = 0; i < n && k->count == 0; i++) h[i] = CK_FNV_OFFSET;
        for (uint32_t i = 0; i < k->count; i++) {
            ck_key_block block = ck_key_block_at(b, b->columns[k->columns[i]], at);
            absorb_column(h, k, i, &block, &w);
        }
    }
}
