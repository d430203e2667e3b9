/* MIN and MAX. Over append input the row holds the best value so far. Where rows are taken back, the best may leave, so
 * all values are kept in order with their counts, in one slot that MIN and MAX of one argument share. Doubles order NaN
 * above everything; strings by their bytes. */
#include "operator/accumulator.h"

#include <math.h>

static inline bool less_i64(int64_t a, int64_t b) { return a < b; }
static inline bool less_i128(ck_i128 a, ck_i128 b) { return a < b; }
static inline bool less_f64(double a, double b) { return a < b || (isnan(b) && !isnan(a)); }
static inline bool is_max(const ck_acc *a) { return a->name[1] == 'a'; }

/* ---- append: the best value in the row ---- */

#define BEST_KERNEL(name, type, get, set, column, less)                                                                \
    static ck_status name(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,                  \
                          ck_op_ctx *ctx) {                                                                            \
        (void)keys;                                                                                                    \
        (void)ctx;                                                                                                     \
        const type *v = b->columns[a->arg]->column;                                                                    \
        uint32_t offset = a->offset[0], null_bit = a->null_bit[0];                                                     \
        bool max = is_max(a);                                                                                          \
        for (uint32_t i = 0; i < lane->n; i++) {                                                                       \
            ck_row *row = lane->rows[i];                                                                               \
            type x = v[ck_lane_at(lane, i)];                                                                           \
            if (CK_UNLIKELY(ck_row_null(row, null_bit)))                                                               \
                ck_row_set_null(row, null_bit, false);                                                                 \
            else if (max ? !less(get(row, offset), x) : !less(x, get(row, offset)))                                    \
                continue;                                                                                              \
            set(row, offset, x);                                                                                       \
        }                                                                                                              \
        return CK_OK;                                                                                                  \
    }
BEST_KERNEL(best_i64, int64_t, ck_row_i64, ck_row_set_i64, i64, less_i64)
BEST_KERNEL(best_f64, double, ck_row_f64, ck_row_set_f64, f64, less_f64)
BEST_KERNEL(best_i128, ck_i128, ck_row_i128, ck_row_set_i128, i128, less_i128)

static ck_status best_bool(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys, ck_op_ctx *ctx) {
    (void)keys;
    (void)ctx;
    const uint64_t *bits = b->columns[a->arg]->bits;
    bool max = is_max(a);
    for (uint32_t i = 0; i < lane->n; i++) {
        ck_row *row = lane->rows[i];
        bool x = ck_bit_get(bits, ck_lane_at(lane, i));
        if (ck_row_null(row, a->null_bit[0])) {
            ck_row_set_null(row, a->null_bit[0], false);
            ck_row_set_bool(row, a->offset[0], x);
        } else if (x == max) {
            ck_row_set_bool(row, a->offset[0], x);
        }
    }
    return CK_OK;
}

static ck_status best_view(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys, ck_op_ctx *ctx) {
    (void)keys;
    const ck_column *c = b->columns[a->arg];
    uint32_t field = ck_table_layout(a->table)->value_first + a->first_field;
    bool max = is_max(a);
    for (uint32_t i = 0; i < lane->n; i++) {
        ck_row *row = lane->rows[i];
        ck_view x = ck_column_str(c, ck_lane_at(lane, i));
        if (!ck_row_null(row, a->null_bit[0])) {
            int order = ck_view_cmp(x, ck_table_str(a->table, row, field));
            if (max ? order <= 0 : order >= 0) continue;
        }
        ck_status s = ck_table_set_str(a->table, row, field, x);
        if (s != CK_OK) return s == CK_NOMEM ? ck_nomem(ctx->error, ctx->mem, x.n) : s;
    }
    return CK_OK;
}

/* ---- merging bests ---- */

#define BEST_MERGE(name, type, get, set, less)                                                                         \
    static bool name(const ck_acc *a, ck_row *dst, const ck_row *src, bool empty) {                                    \
        type x = get(src, a->offset[0]), y = get(dst, a->offset[0]);                                                   \
        if (!empty && (is_max(a) ? !less(y, x) : !less(x, y))) return false;                                           \
        set(dst, a->offset[0], x);                                                                                     \
        return true;                                                                                                   \
    }
static inline bool less_bool(bool a, bool b) { return !a && b; }
BEST_MERGE(merge_best_i64, int64_t, ck_row_i64, ck_row_set_i64, less_i64)
BEST_MERGE(merge_best_f64, double, ck_row_f64, ck_row_set_f64, less_f64)
BEST_MERGE(merge_best_i128, ck_i128, ck_row_i128, ck_row_set_i128, less_i128)
BEST_MERGE(merge_best_bool, bool, ck_row_bool, ck_row_set_bool, less_bool)

static ck_status merge_best_view(ck_acc *a, ck_row *dst, ck_table *from, const ck_row *src, bool empty,
                                 ck_op_ctx *ctx) {
    uint32_t field = ck_table_layout(a->table)->value_first + a->first_field;
    ck_view x = ck_table_str(from, src, field);
    if (!empty) {
        int order = ck_view_cmp(x, ck_table_str(a->table, dst, field));
        if (is_max(a) ? order <= 0 : order >= 0) return CK_OK;
    }
    ck_status s = ck_table_set_str(a->table, dst, field, x);
    return s == CK_NOMEM ? ck_nomem(ctx->error, ctx->mem, x.n) : s;
}

static ck_status best_merge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                            const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)dst_keys;
    ck_phys phys = ck_type_phys(a->arg_type);
    for (uint32_t i = 0; i < src->n; i++) {
        if (ck_row_null(src->rows[i], a->null_bit[0])) continue;
        bool empty = ck_row_null(dst[i], a->null_bit[0]);
        if (phys == CK_PHYS_VIEW)
            CK_TRY(merge_best_view(a, dst[i], from, src->rows[i], empty, ctx));
        else if (phys == CK_PHYS_I64)
            (void)merge_best_i64(a, dst[i], src->rows[i], empty);
        else if (phys == CK_PHYS_F64)
            (void)merge_best_f64(a, dst[i], src->rows[i], empty);
        else if (phys == CK_PHYS_I128)
            (void)merge_best_i128(a, dst[i], src->rows[i], empty);
        else
            (void)merge_best_bool(a, dst[i], src->rows[i], empty);
        if (empty) ck_row_set_null(dst[i], a->null_bit[0], false);
    }
    return CK_OK;
}

static ck_status best_value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    ck_column_builder builder;
    CK_TRY(ck_column_builder_init(&builder, ctx->mem, type, g->n));
    uint32_t field = ck_table_layout(a->table)->value_first + a->first_field;
    ck_status s = ck_table_gather_field(a->table, g->rows, g->n, field, &builder);
    *out = s == CK_OK ? ck_column_builder_finish(&builder) : NULL;
    ck_column_builder_destroy(&builder);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, g->n * sizeof(ck_strview));
}

/* ---- retract: all values are kept in order (accumulator_values.c) ---- */

static ck_status values_value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    ck_column_builder builder;
    ck_values_walk w;
    int64_t count;
    CK_TRY(ck_column_builder_init(&builder, ctx->mem, type, g->n));
    ck_status s = ck_values_begin(&w, a, g, ctx);
    for (uint32_t i = 0; s == CK_OK && i < g->n; i++) {
        ck_row *row;
        s = ck_values_open(&w, i, ctx);
        if (s != CK_OK) break;
        bool there =
            !ck_acc_is_null(a, g->rows[i]) && (is_max(a) ? ck_values_last(&w, &row) : ck_values_next(&w, &row, &count));
        s = there ? ck_values_build(a, row, &builder) : ck_build_null(&builder);
        if (s == CK_NOMEM) s = ck_nomem(ctx->error, ctx->mem, g->n * sizeof(ck_strview));
    }
    ck_values_end(&w);
    if (s == CK_OK && !(*out = ck_column_builder_finish(&builder)))
        s = ck_nomem(ctx->error, ctx->mem, g->n * sizeof(ck_strview));
    ck_column_builder_destroy(&builder);
    return s;
}

/* ---- planning ---- */

ck_status ck_acc_plan_minmax(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    ck_phys phys = ck_type_phys(a->arg_type);
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT)
        return ck_fail(err, CK_INVALID, "%s: %s values have no order", a->field, ck_type_name(arena, a->arg_type));
    if (a->retract) {
        a->value = values_value;
        return ck_acc_plan_values(a, arena, scope, err);
    }
    a->fields[0] = (ck_field){a->field, a->arg_type, true};
    a->field_count = 1;
    a->value = best_value;
    a->merge = best_merge;
    a->update = phys == CK_PHYS_I64    ? best_i64
                : phys == CK_PHYS_F64  ? best_f64
                : phys == CK_PHYS_I128 ? best_i128
                : phys == CK_PHYS_BOOL ? best_bool
                                       : best_view;
    return CK_OK;
}
