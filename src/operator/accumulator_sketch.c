/* About how many different values there are: HyperLogLog with 4,096 registers. A value's hash chooses a register and
 * offers it a rank, the number of leading zeros of the rest and one; a register keeps the greatest. So the state does
 * not depend on the order of the values, and two of them merge into that of all values. While few registers are set the
 * field is their sorted list, four bytes each; then it is all of them, a byte each. The estimate is Ertl's ("New
 * cardinality estimation algorithms for HyperLogLog sketches", algorithm 6), which has no bias to correct. */
#include "operator/accumulator.h"

#include <math.h>

enum { INDEX_BITS = 12, REGISTERS = 1 << INDEX_BITS, RANK_MAX = 64 - INDEX_BITS + 1, SPARSE_MAX = REGISTERS / 4 - 1 };
#define HASH_SEED 0x9E3779B97F4A7C15ULL

typedef struct registers {
    uint8_t rank[REGISTERS];
} registers;

static uint32_t index_of(uint64_t hash) { return (uint32_t)(hash >> (64 - INDEX_BITS)); }
static uint8_t rank_of(uint64_t hash) {
    uint64_t rest = hash << INDEX_BITS | 1ULL << (INDEX_BITS - 1);
    return (uint8_t)(__builtin_clzll(rest) + 1);
}

/* ---- the list: index * 256 + rank, by index ---- */

static uint32_t entry_at(ck_view list, uint32_t i) {
    uint32_t v;
    memcpy(&v, list.p + 4 * (size_t)i, 4);
    return v;
}

/* The first entry that is not below the register. */
static uint32_t place_in(ck_view list, uint32_t index) {
    uint32_t lo = 0, hi = (uint32_t)(list.n / 4);
    while (lo < hi) {
        uint32_t middle = (lo + hi) / 2;
        if (entry_at(list, middle) >> 8 < index)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static void load(ck_view v, registers *out) {
    if (v.n == REGISTERS) {
        memcpy(out->rank, v.p, REGISTERS);
        return;
    }
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < v.n / 4; i++) out->rank[entry_at(v, i) >> 8] = (uint8_t)entry_at(v, i);
}

static ck_status store(ck_acc *a, ck_row *row, uint32_t field, const registers *r, ck_op_ctx *ctx) {
    uint32_t list[SPARSE_MAX], n = 0;
    for (uint32_t i = 0; i < REGISTERS; i++) {
        if (!r->rank[i]) continue;
        if (n < SPARSE_MAX) list[n] = i << 8 | r->rank[i];
        n++;
    }
    ck_view v = n <= SPARSE_MAX ? (ck_view){(const char *)list, 4 * (size_t)n}
                                : (ck_view){(const char *)r->rank, sizeof r->rank};
    return ck_table_set_str(a->table, row, field, v) == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, v.n);
}

static uint32_t field_of(const ck_acc *a) { return ck_table_layout(a->table)->value_first + a->first_field; }

/* One more entry in the list, or a greater rank in one. */
static ck_status offer_sparse(ck_acc *a, ck_row *row, uint32_t field, ck_view had, uint32_t index, uint8_t rank,
                              ck_op_ctx *ctx) {
    uint32_t list[SPARSE_MAX + 1], n = (uint32_t)(had.n / 4), at = place_in(had, index);
    bool there = at < n && entry_at(had, at) >> 8 == index;
    if (there && (uint8_t)entry_at(had, at) >= rank) return CK_OK;
    if (!there && n == SPARSE_MAX) {
        registers r;
        load(had, &r);
        r.rank[index] = rank;
        return store(a, row, field, &r, ctx);
    }
    if (at) memcpy(list, had.p, 4 * (size_t)at);
    list[at] = index << 8 | rank;
    uint32_t rest = n - at - there;
    if (rest) memcpy(list + at + 1, had.p + 4 * (size_t)(at + there), 4 * (size_t)rest);
    ck_view v = {(const char *)list, 4 * (size_t)(at + 1 + rest)};
    return ck_table_set_str(a->table, row, field, v) == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, v.n);
}

static ck_status offer(ck_acc *a, ck_row *row, uint32_t field, uint64_t hash, ck_op_ctx *ctx) {
    ck_view had = ck_row_null(row, a->null_bit[0]) ? (ck_view){0} : ck_table_str(a->table, row, field);
    uint32_t index = index_of(hash);
    uint8_t rank = rank_of(hash);
    if (had.n != REGISTERS) return offer_sparse(a, row, field, had, index, rank, ctx);
    if ((uint8_t)had.p[index] >= rank) return CK_OK;
    registers r;
    load(had, &r);
    r.rank[index] = rank;
    ck_view v = {(const char *)r.rank, sizeof r.rank};
    return ck_table_set_str(a->table, row, field, v) == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, v.n);
}

static ck_status sketch_update(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                               ck_op_ctx *ctx) {
    (void)keys;
    uint32_t column = (uint32_t)a->arg, field = field_of(a);
    ck_key_spec value = {&column, &a->arg_type, 1};
    uint64_t *hashes = ck_arena_alloc(ctx->arena, (lane->n + 1u) * sizeof *hashes);
    ck_batch *some =
        lane->at && lane->at != b->sel ? ck_batch_select(b, lane->at, lane->n) : ck_batch_ref((ck_batch *)(uintptr_t)b);
    ck_status s = hashes && some ? CK_OK : ck_nomem(ctx->error, ctx->mem, lane->n * sizeof *hashes);
    if (s == CK_OK) ck_key_hash(&value, some, HASH_SEED, hashes);
    for (uint32_t i = 0; s == CK_OK && i < lane->n; i++) s = offer(a, lane->rows[i], field, hashes[i], ctx);
    ck_batch_unref(&some);
    return s;
}

static ck_status sketch_merge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                              const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)dst_keys;
    uint32_t field = field_of(a);
    for (uint32_t i = 0; i < src->n; i++) {
        registers x, y;
        if (ck_row_null(src->rows[i], a->null_bit[0])) continue;
        load(ck_table_str(from, src->rows[i], field), &x);
        load(ck_row_null(dst[i], a->null_bit[0]) ? (ck_view){0} : ck_table_str(a->table, dst[i], field), &y);
        for (uint32_t k = 0; k < REGISTERS; k++) x.rank[k] = x.rank[k] > y.rank[k] ? x.rank[k] : y.rank[k];
        CK_TRY(store(a, dst[i], field, &x, ctx));
    }
    return CK_OK;
}

/* ---- reading ---- */

static double sigma(double x) { /* x + sum of x^(2^k) * 2^(k-1) */
    double y = 1, z = x, before;
    if (x == 1) return INFINITY;
    do {
        x *= x;
        before = z;
        z += x * y;
        y += y;
    } while (before != z);
    return z;
}

static double tau(double x) {
    double y = 1, z = 1 - x, before;
    if (x == 0 || x == 1) return 0;
    do {
        x = sqrt(x);
        before = z;
        y *= 0.5;
        z -= (1 - x) * (1 - x) * y;
    } while (before != z);
    return z / 3;
}

int64_t ck_acc_distinct_estimate(const ck_acc *a, const ck_row *row) {
    uint32_t with_rank[RANK_MAX + 1] = {0};
    registers r;
    if (ck_row_null(row, a->null_bit[0])) return 0;
    load(ck_table_str(a->table, row, field_of(a)), &r);
    for (uint32_t i = 0; i < REGISTERS; i++) with_rank[r.rank[i] < RANK_MAX ? r.rank[i] : RANK_MAX]++;
    double z = REGISTERS * tau(1 - with_rank[RANK_MAX] / (double)REGISTERS);
    for (int k = RANK_MAX - 1; k >= 1; k--) z = (z + with_rank[k]) * 0.5;
    z += REGISTERS * sigma(with_rank[0] / (double)REGISTERS);
    return (int64_t)llround(REGISTERS / (2 * log(2)) * REGISTERS / z);
}

/* Planned without a value of its own: the result is the estimate. */
static ck_status no_value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    (void)g, (void)type, (void)out;
    return ck_fail(ctx->error, CK_INVALID, "%s: registers are no result", a->field);
}

ck_status ck_acc_plan_sketch(ck_acc *a, ck_arena *arena, ck_error *err) {
    ck_phys phys = ck_type_phys(a->arg_type);
    if (a->retract) return ck_fail(err, CK_INVALID, "%s: what a sketch has taken cannot be taken back", a->field);
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT)
        return ck_fail(err, CK_INVALID, "%s: %s values are not counted", a->field, ck_type_name(arena, a->arg_type));
    a->fields[0] = (ck_field){a->field, ck_type_simple(CK_TYPE_BYTES), true};
    a->field_count = 1;
    a->update = sketch_update;
    a->merge = sketch_merge;
    a->value = no_value;
    return CK_OK;
}
