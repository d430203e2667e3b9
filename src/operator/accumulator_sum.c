/* SUM. Integers and decimals are summed exactly whatever the order and the parallelism: the row holds the low 64 (128)
 * bits of the sum, a slot beside it the carry of the few groups that went past them, and the range is checked only when
 * the sum is read. Doubles are added in arrival order; where rows are also taken back, with a compensation, NaN and
 * infinities counted apart so that they can leave again, and everything zero once nothing is left. */
#include "operator/accumulator.h"

#include <math.h>

/* Fields of a double sum over retract input. */
enum { SUM, COMPENSATION, NANS, INFINITIES, NEGATIVE_INFINITIES, DOUBLE_FIELDS };

/* Rows of a batch whose addition passed the field's width. */
typedef struct carries {
    uint32_t n;
    uint16_t at[CK_BATCH_ROWS_MAX];  /* index in the lane */
    int8_t carry[CK_BATCH_ROWS_MAX]; /* +1 or -1 */
} carries;

/* One kernel a lane kind: `gather` and `weighted` are constants where it is inlined. */
#define SUM_EXACT_KERNEL(name, type, get, set, column)                                                                 \
    static inline __attribute__((always_inline)) void name(const ck_acc *a, const ck_lane *lane, const ck_column *c,   \
                                                           bool gather, bool weighted, bool nullable, carries *over) { \
        const type *v = c->column;                                                                                     \
        uint32_t offset = a->offset[0], null_bit = a->null_bit[0];                                                     \
        for (uint32_t i = 0; i < lane->n; i++) {                                                                       \
            ck_row *row = lane->rows[i];                                                                               \
            type x = v[gather ? lane->at[i] : i], sum;                                                                 \
            bool add = !weighted || lane->weights[i] > 0;                                                              \
            if (nullable && CK_UNLIKELY(ck_row_null(row, null_bit))) {                                                 \
                ck_row_set_null(row, null_bit, false);                                                                 \
                set(row, offset, 0);                                                                                   \
            }                                                                                                          \
            type old = get(row, offset);                                                                               \
            bool wrapped = add ? __builtin_add_overflow(old, x, &sum) : __builtin_sub_overflow(old, x, &sum);          \
            if (CK_UNLIKELY(wrapped)) {                                                                                \
                over->at[over->n] = (uint16_t)i;                                                                       \
                over->carry[over->n++] = (x > 0) == add ? 1 : -1;                                                      \
            }                                                                                                          \
            set(row, offset, sum);                                                                                     \
        }                                                                                                              \
    }
SUM_EXACT_KERNEL(sum_i64, int64_t, ck_row_i64, ck_row_set_i64, i64)
SUM_EXACT_KERNEL(sum_i128, ck_i128, ck_row_i128, ck_row_set_i128, i128)

static ck_status add_carries(ck_acc *a, const carries *over, const ck_lane *lane, const ck_batch *b,
                             const ck_key_spec *keys, ck_op_ctx *ctx) {
    uint16_t *sel = ck_arena_alloc(ctx->arena, over->n * sizeof *sel);
    ck_row **rows = ck_arena_alloc(ctx->arena, over->n * sizeof *rows);
    if (!sel || !rows) return ck_nomem(ctx->error, ctx->mem, over->n * sizeof *rows);
    for (uint32_t i = 0; i < over->n; i++) sel[i] = (uint16_t)ck_lane_at(lane, over->at[i]);
    ck_batch *some = ck_batch_select(b, sel, over->n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, over->n * sizeof *sel);
    uint64_t *hashes = ck_keys_hash(keys, some, a->side_table, ctx);
    ck_keys k = {keys, some, hashes, over->n};
    ck_status s = hashes ? ck_table_upsert(a->side_table, &k, rows, NULL, ctx->error) : CK_NOMEM;
    ck_batch_unref(&some);
    if (s != CK_OK) return s;
    for (uint32_t i = 0; i < over->n; i++)
        ck_row_set_i64(rows[i], a->side_offset, ck_row_i64(rows[i], a->side_offset) + over->carry[i]);
    return ck_rows_erase_zero(a->side_table, rows, over->n, a->side_offset, ctx);
}

#define SUM_EXACT_UPDATE(name, kernel)                                                                                 \
    static ck_status name(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,                  \
                          ck_op_ctx *ctx) {                                                                            \
        carries over;                                                                                                  \
        over.n = 0;                                                                                                    \
        const ck_column *c = b->columns[a->arg];                                                                       \
        if (lane->weights) {                                                                                           \
            if (lane->at)                                                                                              \
                kernel(a, lane, c, true, true, false, &over);                                                          \
            else                                                                                                       \
                kernel(a, lane, c, false, true, false, &over);                                                         \
        } else if (a->retract) {                                                                                       \
            kernel(a, lane, c, lane->at != NULL, false, false, &over);                                                 \
        } else if (lane->at) {                                                                                         \
            kernel(a, lane, c, true, false, true, &over);                                                              \
        } else {                                                                                                       \
            kernel(a, lane, c, false, false, true, &over);                                                             \
        }                                                                                                              \
        return over.n ? add_carries(a, &over, lane, b, keys, ctx) : CK_OK;                                             \
    }
SUM_EXACT_UPDATE(update_i64, sum_i64)
SUM_EXACT_UPDATE(update_i128, sum_i128)

static ck_status update_f64_append(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                                   ck_op_ctx *ctx) {
    (void)keys;
    (void)ctx;
    const double *v = b->columns[a->arg]->f64;
    uint32_t offset = a->offset[0], null_bit = a->null_bit[0];
    for (uint32_t i = 0; i < lane->n; i++) {
        ck_row *row = lane->rows[i];
        double x = v[ck_lane_at(lane, i)];
        if (CK_UNLIKELY(ck_row_null(row, null_bit))) {
            ck_row_set_null(row, null_bit, false);
            ck_row_set_f64(row, offset, 0);
        }
        ck_row_set_f64(row, offset, ck_row_f64(row, offset) + x);
    }
    return CK_OK;
}

static void add_special(const ck_acc *a, ck_row *row, double x, int weight) {
    uint32_t offset = a->offset[isnan(x) ? NANS : x > 0 ? INFINITIES : NEGATIVE_INFINITIES];
    ck_row_set_i64(row, offset, ck_row_i64(row, offset) + weight);
}

static ck_status update_f64_retract(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                                    ck_op_ctx *ctx) {
    (void)keys;
    (void)ctx;
    const double *v = b->columns[a->arg]->f64;
    uint32_t sum_at = a->offset[SUM], rest_at = a->offset[COMPENSATION];
    for (uint32_t i = 0; i < lane->n; i++) {
        ck_row *row = lane->rows[i];
        int weight = ck_lane_weight(lane, i);
        double x = v[ck_lane_at(lane, i)];
        if (CK_UNLIKELY(!isfinite(x))) {
            add_special(a, row, x, weight);
            continue;
        }
        if (weight < 0) x = -x;
        double sum = ck_row_f64(row, sum_at), next = sum + x; /* Neumaier: the lost low part goes to the compensation */
        double lost = fabs(sum) >= fabs(x) ? (sum - next) + x : (x - next) + sum;
        ck_row_set_f64(row, sum_at, next);
        ck_row_set_f64(row, rest_at, ck_row_f64(row, rest_at) + lost);
    }
    if (!lane->weights) return CK_OK;
    for (uint32_t i = 0; i < lane->n; i++) { /* the count of the argument was updated before */
        if (lane->weights[i] > 0 || ck_row_i64(lane->rows[i], a->non_null->offset[0]) != 0) continue;
        ck_row_set_f64(lane->rows[i], sum_at, 0);
        ck_row_set_f64(lane->rows[i], rest_at, 0);
    }
    return CK_OK;
}

double ck_acc_double(const ck_acc *a, const ck_row *row) {
    double sum = ck_row_f64(row, a->offset[SUM]);
    if (!a->retract) return sum;
    int64_t inf = ck_row_i64(row, a->offset[INFINITIES]), ninf = ck_row_i64(row, a->offset[NEGATIVE_INFINITIES]);
    if (ck_row_i64(row, a->offset[NANS]) > 0 || (inf > 0 && ninf > 0)) return (double)NAN;
    if (inf > 0 || ninf > 0) return inf > 0 ? (double)INFINITY : -(double)INFINITY;
    return isfinite(sum) ? sum + ck_row_f64(row, a->offset[COMPENSATION]) : sum;
}

/* ---- merging ---- */

/* What must be added to the carries of dst: what its addition went past, and sign times what src had. */
static ck_status merge_carries(ck_acc *a, const int8_t *over, bool any_over, int sign, const ck_groups *src,
                               const ck_batch *dst_keys, ck_op_ctx *ctx) {
    bool any = false;
    int64_t *carry = ck_arena_alloc(ctx->arena, (src->n + 1u) * sizeof *carry);
    uint16_t *sel = ck_arena_alloc(ctx->arena, (src->n + 1u) * sizeof *sel);
    ck_row **rows = ck_arena_alloc(ctx->arena, (src->n + 1u) * sizeof *rows);
    if (!carry || !sel || !rows) return ck_nomem(ctx->error, ctx->mem, src->n * sizeof *carry);
    CK_TRY(ck_acc_carries(a, src, carry, &any, ctx));
    if (!any && !any_over) return CK_OK;
    uint32_t n = 0;
    for (uint32_t i = 0; i < src->n; i++) {
        int64_t more = (any ? sign * carry[i] : 0) + over[i];
        if (more == 0) continue;
        carry[n] = more;
        sel[n++] = (uint16_t)ck_batch_row(dst_keys, i);
    }
    if (n == 0) return CK_OK;
    ck_batch *some = ck_batch_select(dst_keys, sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *sel);
    uint64_t *hashes = ck_keys_hash(src->spec, some, a->side_table, ctx);
    ck_keys k = {src->spec, some, hashes, n};
    ck_status s = hashes ? ck_table_upsert(a->side_table, &k, rows, NULL, ctx->error) : CK_NOMEM;
    ck_batch_unref(&some);
    CK_TRY(s);
    for (uint32_t i = 0; i < n; i++)
        ck_row_set_i64(rows[i], a->side_offset, ck_row_i64(rows[i], a->side_offset) + carry[i]);
    return ck_rows_erase_zero(a->side_table, rows, n, a->side_offset, ctx);
}

/* Whether carries are there, or come, and nobody has said what the groups are called. */
static bool lacks_keys(const ck_acc *a, bool any_over, const ck_batch *dst_keys) {
    return !dst_keys && (any_over || ck_table_row_count(a->side_table) > 0);
}

#define MERGE_EXACT(name, type, get, set)                                                                              \
    static ck_status name(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,                         \
                          const ck_batch *dst_keys, ck_op_ctx *ctx) {                                                  \
        (void)from;                                                                                                    \
        uint32_t offset = a->offset[0], null_bit = a->retract ? UINT32_MAX : a->null_bit[0];                           \
        int8_t *over = ck_arena_alloc(ctx->arena, src->n + 1u);                                                        \
        bool any = false;                                                                                              \
        if (!over) return ck_nomem(ctx->error, ctx->mem, src->n);                                                      \
        for (uint32_t i = 0; i < src->n; i++) {                                                                        \
            type x = get(src->rows[i], offset), sum;                                                                   \
            bool both = !ck_row_null(src->rows[i], null_bit) && !ck_row_null(dst[i], null_bit);                        \
            over[i] = (int8_t)(both && __builtin_add_overflow(x, get(dst[i], offset), &sum) ? (x > 0 ? 1 : -1) : 0);   \
            any = any || over[i];                                                                                      \
        }                                                                                                              \
        if (lacks_keys(a, any, dst_keys)) return CK_MORE;                                                              \
        for (uint32_t i = 0; i < src->n; i++) {                                                                        \
            if (ck_row_null(src->rows[i], null_bit)) continue;                                                         \
            type y = ck_row_null(dst[i], null_bit) ? 0 : get(dst[i], offset), sum;                                     \
            (void)__builtin_add_overflow(get(src->rows[i], offset), y, &sum);                                          \
            if (!a->retract) ck_row_set_null(dst[i], null_bit, false);                                                 \
            set(dst[i], offset, sum);                                                                                  \
        }                                                                                                              \
        return dst_keys ? merge_carries(a, over, any, 1, src, dst_keys, ctx) : CK_OK;                                  \
    }
MERGE_EXACT(merge_i64, int64_t, ck_row_i64, ck_row_set_i64)
MERGE_EXACT(merge_i128, ck_i128, ck_row_i128, ck_row_set_i128)

/* Over retract input alone, where a sum is never NULL by itself. */
#define UNMERGE_EXACT(name, type, get, set)                                                                            \
    static ck_status name(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,                         \
                          const ck_batch *dst_keys, ck_op_ctx *ctx) {                                                  \
        (void)from;                                                                                                    \
        uint32_t offset = a->offset[0];                                                                                \
        int8_t *over = ck_arena_alloc(ctx->arena, src->n + 1u);                                                        \
        bool any = false;                                                                                              \
        if (!over) return ck_nomem(ctx->error, ctx->mem, src->n);                                                      \
        for (uint32_t i = 0; i < src->n; i++) {                                                                        \
            type x = get(src->rows[i], offset), rest;                                                                  \
            over[i] = (int8_t)(__builtin_sub_overflow(get(dst[i], offset), x, &rest) ? (x > 0 ? -1 : 1) : 0);          \
            any = any || over[i];                                                                                      \
        }                                                                                                              \
        if (lacks_keys(a, any, dst_keys)) return CK_MORE;                                                              \
        for (uint32_t i = 0; i < src->n; i++) {                                                                        \
            type rest;                                                                                                 \
            (void)__builtin_sub_overflow(get(dst[i], offset), get(src->rows[i], offset), &rest);                       \
            set(dst[i], offset, rest);                                                                                 \
        }                                                                                                              \
        return dst_keys ? merge_carries(a, over, any, -1, src, dst_keys, ctx) : CK_OK;                                 \
    }
UNMERGE_EXACT(unmerge_i64, int64_t, ck_row_i64, ck_row_set_i64)
UNMERGE_EXACT(unmerge_i128, ck_i128, ck_row_i128, ck_row_set_i128)

static ck_status merge_f64(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                           const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)from;
    (void)dst_keys;
    (void)ctx;
    for (uint32_t i = 0; i < src->n; i++) {
        if (!a->retract && ck_row_null(src->rows[i], a->null_bit[SUM])) continue;
        if (!a->retract && ck_row_null(dst[i], a->null_bit[SUM])) {
            ck_row_set_null(dst[i], a->null_bit[SUM], false);
            ck_row_set_f64(dst[i], a->offset[SUM], 0);
        }
        for (uint32_t f = 0; f < a->field_count; f++) {
            uint32_t at = a->offset[f];
            if (f < NANS)
                ck_row_set_f64(dst[i], at, ck_row_f64(dst[i], at) + ck_row_f64(src->rows[i], at));
            else
                ck_row_set_i64(dst[i], at, ck_row_i64(dst[i], at) + ck_row_i64(src->rows[i], at));
        }
    }
    return CK_OK;
}

/* ---- reading ---- */

ck_status ck_acc_carries(const ck_acc *a, const ck_groups *g, int64_t *carry, bool *any, ck_op_ctx *ctx) {
    *any = ck_table_row_count(a->side_table) > 0;
    if (!*any) return CK_OK;
    const ck_row **rows = ck_arena_alloc(ctx->arena, g->n * sizeof *rows + 1);
    if (!rows) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof *rows);
    CK_TRY(ck_groups_find(g, a->side_table, rows, ctx));
    for (uint32_t i = 0; i < g->n; i++) carry[i] = rows[i] ? ck_row_i64(rows[i], a->side_offset) : 0;
    return CK_OK;
}

/* NULL where nothing was summed; where the value does not fit, NULL or the error. */
static ck_status mark_nulls(ck_acc *a, const ck_groups *g, const ck_type *type, const bool *out_of_range,
                            ck_column *out, ck_op_ctx *ctx) {
    uint64_t *validity = NULL;
    for (uint32_t i = 0; i < g->n; i++) {
        bool null = ck_acc_is_null(a, g->rows[i]);
        if (CK_LIKELY(!null && !(out_of_range && out_of_range[i]))) continue;
        if (!null && !a->error_null) return ck_acc_out_of_range(a->field, type, g, i, ctx);
        if (!validity && !(validity = ck_column_writable_validity(out)))
            return ck_nomem(ctx->error, ctx->mem, g->n / 8);
        ck_bit_clear(validity, i);
    }
    return CK_OK;
}

static ck_i128 decimal_bound(void) { /* 10^38: what a DECIMAL(38, s) stays below */
    ck_i128 ten19 = 10000000000000000000ULL;
    return ten19 * ten19;
}

static ck_status value_exact(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    bool wide = ck_type_phys(type) == CK_PHYS_I128, any;
    bool *bad = ck_arena_alloc(ctx->arena, g->n + 1u);
    int64_t *carry = ck_arena_alloc(ctx->arena, (g->n + 1u) * sizeof *carry);
    *out = ck_column_new(ctx->mem, wide ? CK_PHYS_I128 : CK_PHYS_I64, g->n);
    if (!*out || !bad || !carry) {
        ck_column_unref(out);
        return ck_nomem(ctx->error, ctx->mem, g->n * sizeof(ck_i128));
    }
    ck_status s = ck_acc_carries(a, g, carry, &any, ctx);
    memset(bad, 0, g->n);
    for (uint32_t i = 0; s == CK_OK && any && i < g->n; i++) bad[i] = carry[i] != 0;
    if (wide) {
        ck_i128 bound = decimal_bound();
        for (uint32_t i = 0; i < g->n; i++) {
            ck_i128 v = ck_row_i128(g->rows[i], a->offset[0]);
            (*out)->i128[i] = v;
            bad[i] |= v >= bound || v <= -bound;
        }
    } else {
        for (uint32_t i = 0; i < g->n; i++) (*out)->i64[i] = ck_row_i64(g->rows[i], a->offset[0]);
    }
    if (s == CK_OK) s = mark_nulls(a, g, type, wide || any ? bad : NULL, *out, ctx);
    if (s != CK_OK) ck_column_unref(out);
    return s;
}

static ck_status value_double(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    bool real = type->kind == CK_TYPE_REAL;
    *out = ck_column_new(ctx->mem, CK_PHYS_F64, g->n);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof(double));
    for (uint32_t i = 0; i < g->n; i++) {
        double v = ck_acc_double(a, g->rows[i]);
        (*out)->f64[i] = real ? (double)(float)v : v;
    }
    ck_status s = mark_nulls(a, g, type, NULL, *out, ctx);
    if (s != CK_OK) ck_column_unref(out);
    return s;
}

/* ---- planning ---- */

static ck_status plan_exact(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    bool wide = ck_type_phys(a->arg_type) == CK_PHYS_I128;
    const ck_type *type = wide ? ck_type_decimal(arena, 38, a->arg_type->scale) : ck_type_simple(CK_TYPE_BIGINT);
    const char *slot = ck_slot_name(arena, "overflow:", a->field, err);
    a->side = slot ? ck_acc_side_slot(arena, slot, "sum_overflow", scope, NULL, 0, "carry") : NULL;
    if (!type || !a->side) return ck_nomem(err, arena->mem, sizeof(ck_slot_schema));
    a->fields[0] = (ck_field){a->field, type, !a->retract};
    a->field_count = 1;
    a->update = wide ? update_i128 : update_i64;
    a->merge = wide ? merge_i128 : merge_i64;
    if (a->retract) a->unmerge = wide ? unmerge_i128 : unmerge_i64;
    a->value = value_exact;
    return CK_OK;
}

static ck_status plan_double(ck_acc *a, ck_arena *arena, ck_error *err) {
    static const char *const suffix[DOUBLE_FIELDS] = {"", ".compensation", ".nan", ".inf", ".neg_inf"};
    a->value = value_double;
    a->merge = merge_f64;
    a->update = a->retract ? update_f64_retract : update_f64_append;
    a->field_count = a->retract ? DOUBLE_FIELDS : 1;
    for (uint32_t i = 0; i < a->field_count; i++) {
        const char *name = ck_arena_printf(arena, "%s%s", a->field, suffix[i]);
        if (!name) return ck_nomem(err, arena->mem, CK_NAME_BYTES_MAX);
        const ck_type *type = ck_type_simple(i < NANS ? CK_TYPE_DOUBLE : CK_TYPE_BIGINT);
        a->fields[i] = (ck_field){name, type, !a->retract};
    }
    return CK_OK;
}

ck_status ck_acc_plan_sum(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    switch (ck_type_phys(a->arg_type)) {
    case CK_PHYS_I64:
    case CK_PHYS_I128: return plan_exact(a, arena, scope, err);
    case CK_PHYS_F64: return plan_double(a, arena, err);
    default:
        return ck_fail(err, CK_INVALID, "%s: a sum of %s is not possible", a->field, ck_type_name(arena, a->arg_type));
    }
}
