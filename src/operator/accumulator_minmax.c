/* MIN and MAX. Over append input the row holds the best value so far. Where rows are taken back, the best may leave, so
 * all values are kept in order with their counts, in one slot that MIN and MAX of one argument share. Doubles order NaN
 * above everything; strings by their bytes. */
#include "operator/accumulator.h"

#include <math.h>
#include <stdlib.h>

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

/* ---- retract: all values in order, in a window behind what names it ---- */

enum { WITHIN_MAX = 2 };

static ck_key_spec key_of(const ck_acc *a, const ck_key_spec *keys) {
    return (ck_key_spec){keys->columns, keys->types, keys->count - a->within};
}

/* What stands in front of the values of a group; keys: with the columns of the scope behind those of the key. */
static uint32_t scope_order(const ck_acc *a, const ck_key_spec *keys, ck_order_spec *out) {
    for (uint32_t i = 0; i < a->within; i++) {
        uint32_t k = keys->count - a->within + i;
        out[i] = (ck_order_spec){keys->columns[k], keys->types[k], false, false, false};
    }
    return a->within;
}

/* The order keys of a group's values are in [lo, hi); empty: all of the partition. */
static ck_status scope_range(const ck_acc *a, const ck_groups *g, uint32_t i, ck_bytes *lo, ck_bytes *hi,
                             ck_op_ctx *ctx) {
    ck_order_spec order[WITHIN_MAX];
    uint32_t n = scope_order(a, g->spec, order);
    ck_bytes_clear(lo);
    ck_bytes_clear(hi);
    ck_status s = n ? ck_order_encode(order, n, g->batch, ck_batch_row(g->batch, i), lo) : CK_OK;
    if (s == CK_OK) s = ck_bytes_view(hi, ck_bytes_as_view(lo));
    size_t at = hi->n;
    while (s == CK_OK && at > 0 && ++hi->p[at - 1] == 0) at--; /* the next prefix */
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, lo->capacity);
}

enum { AHEAD = 6 }; /* rows, to have their partitions in the cache */

typedef struct gone { /* a value whose count came to zero in this batch */
    ck_partition partition;
    uint32_t key_at, key_bytes;
} gone;

static int gone_order(const void *x, const void *y) {
    const gone *a = x, *b = y;
    return (a->partition > b->partition) - (a->partition < b->partition);
}

/* Not where the value has come back, or was listed twice. */
static ck_status erase_one(ck_acc *a, const gone *g, const ck_bytes *order_keys, bool *erased, ck_op_ctx *ctx) {
    ck_view key = {order_keys->p + g->key_at, g->key_bytes};
    ck_row *row;
    ck_status s = ck_partition_find(a->side_table, g->partition, key, &row);
    *erased = s == CK_OK && ck_row_i64(row, a->side_offset) == 0;
    if (*erased) return ck_partition_erase(a->side_table, g->partition, key, ctx->error);
    return s == CK_NOTFOUND ? CK_OK : s;
}

/* Erasing may end a partition, so it waits until the batch is counted. Partitions that are down to one value come after
 * the others, in their order: one that has ended is not asked again. */
static ck_status erase_gone(ck_acc *a, gone *list, uint32_t n, const ck_bytes *order_keys, ck_op_ctx *ctx) {
    uint32_t ends = 0;
    bool erased;
    for (uint32_t i = 0; i < n; i++) {
        if (ck_partition_rows(a->side_table, list[i].partition) == 1)
            list[ends++] = list[i];
        else
            CK_TRY(erase_one(a, &list[i], order_keys, &erased, ctx));
    }
    qsort(list, ends, sizeof *list, gone_order);
    for (uint32_t i = 0; i < ends; i++) {
        CK_TRY(erase_one(a, &list[i], order_keys, &erased, ctx));
        while (erased && i + 1 < ends && list[i + 1].partition == list[i].partition) i++;
    }
    return CK_OK;
}

static ck_status count_values(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *spec,
                              const ck_partition *partitions, gone *list, ck_bytes *keys, ck_op_ctx *ctx) {
    ck_order_spec order[WITHIN_MAX + 1];
    uint32_t gone_count = 0, columns = scope_order(a, spec, order);
    order[columns++] = (ck_order_spec){(uint32_t)a->arg, a->arg_type, false, false, false};
    for (uint32_t i = 0; i < lane->n; i++) {
        if (i + 2 * AHEAD < lane->n) ck_partition_prefetch(a->side_table, partitions[i + 2 * AHEAD], 0);
        if (i + AHEAD < lane->n) ck_partition_prefetch(a->side_table, partitions[i + AHEAD], 1);
        size_t at = keys->n;
        ck_status s = ck_order_encode(order, columns, b, ck_lane_at(lane, i), keys);
        if (s == CK_NOMEM) return ck_nomem(ctx->error, ctx->mem, keys->n);
        if (s != CK_OK)
            return ck_fail(ctx->error, CK_DATA, "%s: a value is longer than an ordered key may be", a->field);
        ck_row *row;
        bool fresh;
        ck_view key = {keys->p + at, keys->n - at};
        CK_TRY(ck_partition_upsert(a->side_table, partitions[i], key, &row, &fresh, ctx->error));
        int64_t count = ck_row_i64(row, a->side_offset) + ck_lane_weight(lane, i);
        ck_row_set_i64(row, a->side_offset, count);
        if (count == 0)
            list[gone_count++] = (gone){partitions[i], (uint32_t)at, (uint32_t)key.n};
        else
            keys->n = at;
    }
    return erase_gone(a, list, gone_count, keys, ctx);
}

static ck_status values_update(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                               ck_op_ctx *ctx) {
    if (lane->n == 0) return CK_OK;
    ck_partition *partitions = ck_arena_alloc(ctx->arena, lane->n * sizeof *partitions);
    gone *list = ck_arena_alloc(ctx->arena, lane->n * sizeof *list);
    ck_batch *some =
        lane->at && lane->at != b->sel ? ck_batch_select(b, lane->at, lane->n) : ck_batch_ref((ck_batch *)(uintptr_t)b);
    if (!partitions || !list || !some) {
        ck_batch_unref(&some);
        return ck_nomem(ctx->error, ctx->mem, lane->n * sizeof *list);
    }
    ck_key_spec key = key_of(a, keys);
    uint64_t *hashes = ck_keys_hash(&key, some, a->side_table, ctx);
    ck_keys k = {&key, some, hashes, lane->n};
    ck_status s = hashes ? ck_table_partitions(a->side_table, &k, true, partitions, ctx->error) : CK_NOMEM;
    ck_bytes order_keys;
    ck_bytes_init(&order_keys, ctx->mem, UINT32_MAX);
    if (s == CK_OK) s = count_values(a, lane, b, keys, partitions, list, &order_keys, ctx);
    ck_bytes_destroy(&order_keys);
    ck_batch_unref(&some);
    return s;
}

/* The least (greatest) value of a group whose count is positive: counts below zero wait for their other half. */
static bool best_of(const ck_acc *a, ck_partition p, ck_view lo, ck_view hi, ck_row **row) {
    bool max = is_max(a);
    if (!a->within && !(max ? ck_partition_last(a->side_table, p, row) : ck_partition_first(a->side_table, p, row)))
        return false;
    if (!a->within && CK_LIKELY(ck_row_i64(*row, a->side_offset) > 0)) return true;
    ck_range r;
    ck_row *at = NULL;
    bool found = false;
    ck_range_open(&r, a->side_table, p, lo, hi);
    while (ck_range_next(&r, &at)) {
        if (ck_row_i64(at, a->side_offset) <= 0) continue;
        *row = at;
        found = true;
        if (!max) break;
    }
    return found;
}

static ck_status values_value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    ck_partition *partitions = ck_arena_alloc(ctx->arena, g->n * sizeof *partitions + 1);
    ck_key_spec key = key_of(a, g->spec);
    uint64_t *hashes = ck_keys_hash(&key, g->batch, a->side_table, ctx);
    if (!partitions || !hashes) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof *partitions);
    ck_keys k = {&key, g->batch, hashes, g->n};
    CK_TRY(ck_table_partitions(a->side_table, &k, false, partitions, ctx->error));
    ck_column_builder builder;
    ck_bytes lo, hi;
    CK_TRY(ck_column_builder_init(&builder, ctx->mem, type, g->n));
    ck_bytes_init(&lo, ctx->mem, SIZE_MAX);
    ck_bytes_init(&hi, ctx->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < g->n; i++) {
        ck_row *row;
        if (a->within) s = scope_range(a, g, i, &lo, &hi, ctx);
        if (s != CK_OK) break;
        if (partitions[i] == 0 || ck_acc_is_null(a, g->rows[i]) ||
            !best_of(a, partitions[i], ck_bytes_as_view(&lo), ck_bytes_as_view(&hi), &row)) {
            s = ck_build_null(&builder);
        } else {
            const ck_row *found = row;
            s = ck_table_gather_field(a->side_table, &found, 1, a->side_field, &builder);
        }
    }
    *out = s == CK_OK ? ck_column_builder_finish(&builder) : NULL;
    ck_column_builder_destroy(&builder);
    ck_bytes_destroy(&lo);
    ck_bytes_destroy(&hi);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, g->n * sizeof(ck_strview));
}

ck_status ck_acc_erase_values(ck_acc *a, const ck_groups *g, ck_op_ctx *ctx) {
    ck_partition *of = ck_arena_alloc(ctx->arena, g->n * sizeof *of + 1);
    ck_key_spec key = key_of(a, g->spec);
    uint64_t *hashes = ck_keys_hash(&key, g->batch, a->side_table, ctx);
    if (!of || !hashes) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof *of);
    ck_keys k = {&key, g->batch, hashes, g->n};
    CK_TRY(ck_table_partitions(a->side_table, &k, false, of, ctx->error));
    ck_bytes lo, hi;
    ck_bytes_init(&lo, ctx->mem, SIZE_MAX);
    ck_bytes_init(&hi, ctx->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < g->n; i++) {
        if (of[i] == 0) continue;
        uint64_t erased = 0, had = ck_partition_rows(a->side_table, of[i]);
        s = scope_range(a, g, i, &lo, &hi, ctx);
        if (s == CK_OK)
            s = ck_partition_erase_range(a->side_table, of[i], ck_bytes_as_view(&lo), ck_bytes_as_view(&hi), &erased,
                                         ctx->error);
        /* It has ended; of windows that rows carry, a key may be in several that end at once. */
        for (uint32_t other = i + 1; erased == had && a->within > 1 && other < g->n; other++)
            if (of[other] == of[i]) of[other] = 0;
    }
    ck_bytes_destroy(&lo);
    ck_bytes_destroy(&hi);
    return s;
}

/* ---- planning ---- */

static ck_status plan_values(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    ck_order_field *order = CK_ARENA_NEW(arena, ck_order_field);
    const char *slot = ck_slot_name(arena, "values:", a->set_name, err);
    if (!order || !slot) return ck_nomem(err, arena->mem, sizeof *order);
    order->field = (ck_field){"value", a->arg_type, false};
    ck_slot_schema *side = ck_acc_side_slot(arena, slot, "ordered_values", scope, order, "count");
    if (!side) return ck_nomem(err, arena->mem, sizeof *side);
    CK_ASSERT(scope->within_count <= WITHIN_MAX);
    side->hashed = false;
    a->side = side;
    a->within = scope->within_count;
    a->update = values_update;
    a->value = values_value;
    return CK_OK;
}

ck_status ck_acc_plan_minmax(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    ck_phys phys = ck_type_phys(a->arg_type);
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT)
        return ck_fail(err, CK_INVALID, "%s: %s values have no order", a->field, ck_type_name(arena, a->arg_type));
    if (a->retract) return plan_values(a, arena, scope, err);
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
