/* ck_key_hash: the hash in-memory tables use, column by column over blocks of rows. */
#include "data/key_block_int.h"
#include "data/row_int.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct xxh_sink {
    ck_pack_sink base;
    XXH3_state_t *state;
} xxh_sink;
static void xxh_put(ck_pack_sink *s, const void *p, size_t n) { XXH3_64bits_update(((xxh_sink *)s)->state, p, n); }

/* As ck_value_hash_str over the packed bytes, which are never written down. */
static uint64_t hash_packed(uint64_t seed, const ck_type *t, const ck_column *c, uint32_t row) {
    XXH3_state_t state;
    xxh_sink s = {{xxh_put}, &state};
    XXH3_64bits_reset_withSeed(&state, seed);
    ck_packed_put(t, c, row, &s.base);
    return XXH3_64bits_digest(&state);
}

static void hash_words(const ck_key_block *b, uint64_t seed, uint64_t *restrict out) {
    uint64_t scratch[CK_KEY_BLOCK];
    const int64_t *v = b->c->i64;
    if (b->c->phys == CK_PHYS_I64 && b->sel) {
        for (uint32_t i = 0; i < b->n; i++) out[i] = ck_hash_u64(seed, ck_key_scalar((uint64_t)v[b->sel[i]]));
        return;
    }
    const uint64_t *words = ck_key_block_words(b, scratch);
    for (uint32_t i = 0; i < b->n; i++) out[i] = ck_hash_u64(seed, ck_key_scalar(words[i]));
}

static void hash_strings(const ck_key_block *b, const uint8_t *present, uint64_t seed, uint64_t *restrict out) {
    if (!present && ck_key_block_is_one_view(b)) {
        uint64_t h = ck_value_hash_str(seed, ck_column_str(b->c, ck_key_block_row(b, 0)));
        for (uint32_t i = 0; i < b->n; i++) out[i] = h;
        return;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (present && !present[i]) continue;
        ck_view v = ck_column_str(b->c, ck_key_block_row(b, i));
        out[i] = XXH3_64bits_withSeed(v.p, v.n, seed);
    }
}

/* One hash a row of the block. */
static void hash_column(const ck_key_block *b, const ck_type *t, uint64_t seed, uint64_t *restrict out) {
    uint8_t flags[CK_KEY_BLOCK];
    const uint8_t *present = ck_key_block_nulls(b, flags) ? flags : NULL;
    const ck_column *c = b->c;
    switch (c->phys) {
    case CK_PHYS_NULL: break;
    case CK_PHYS_BOOL:
    case CK_PHYS_I64:
    case CK_PHYS_F64: hash_words(b, seed, out); break;
    case CK_PHYS_I128:
        for (uint32_t i = 0; i < b->n; i++)
            if (!present || present[i]) out[i] = ck_value_hash_i128(seed, c->i128[ck_key_block_row(b, i)], t->scale);
        break;
    case CK_PHYS_VIEW: hash_strings(b, present, seed, out); break;
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT:
        for (uint32_t i = 0; i < b->n; i++)
            if (!present || present[i]) out[i] = hash_packed(seed, t, c, ck_key_block_row(b, i));
        break;
    }
    if (present)
        for (uint32_t i = 0; i < b->n; i++) out[i] = ck_key_choose(present[i], out[i], ck_value_hash_null(seed));
}

void ck_key_hash(const ck_key_spec *k, const ck_batch *b, uint64_t seed, uint64_t *out) {
    for (uint32_t at = 0; at < b->sel_count; at += CK_KEY_BLOCK) {
        uint64_t *h = out + at, value[CK_KEY_BLOCK];
        uint32_t n = b->sel_count - at < CK_KEY_BLOCK ? b->sel_count - at : CK_KEY_BLOCK;
        for (uint32_t i = 0; i < n; i++) h[i] = k->count ? seed : ck_hash_u64(seed, 0);
        for (uint32_t column = 0; column < k->count; column++) {
            ck_key_block block = ck_key_block_at(b, b->columns[k->columns[column]], at);
            hash_column(&block, k->types[column], seed, k->count == 1 ? h : value);
            if (k->count > 1)
                for (uint32_t i = 0; i < n; i++) h[i] = ck_hash_combine(h[i], ck_key_scalar(value[i]));
        }
    }
}
