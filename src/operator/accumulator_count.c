/* COUNT(*) and COUNT(x): the lane has left out what does not count. */
#include "operator/accumulator.h"

static ck_status count_update(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                              ck_op_ctx *ctx) {
    (void)b;
    (void)keys;
    (void)ctx;
    uint32_t at = a->offset[0], n = lane->n;
    ck_row *const *rows = lane->rows;
    if (lane->weights)
        for (uint32_t i = 0; i < n; i++) ck_row_set_i64(rows[i], at, ck_row_i64(rows[i], at) + lane->weights[i]);
    else
        for (uint32_t i = 0; i < n; i++) ck_row_set_i64(rows[i], at, ck_row_i64(rows[i], at) + 1);
    return CK_OK;
}

static ck_status count_merge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                             const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)from;
    (void)dst_keys;
    (void)ctx;
    uint32_t at = a->offset[0];
    for (uint32_t i = 0; i < src->n; i++)
        ck_row_set_i64(dst[i], at, ck_row_i64(dst[i], at) + ck_row_i64(src->rows[i], at));
    return CK_OK;
}

static ck_status count_unmerge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                               const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)from;
    (void)dst_keys;
    (void)ctx;
    uint32_t at = a->offset[0];
    for (uint32_t i = 0; i < src->n; i++)
        ck_row_set_i64(dst[i], at, ck_row_i64(dst[i], at) - ck_row_i64(src->rows[i], at));
    return CK_OK;
}

static ck_status count_value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    (void)type;
    *out = ck_column_new(ctx->mem, CK_PHYS_I64, g->n);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof(int64_t));
    for (uint32_t i = 0; i < g->n; i++) (*out)->i64[i] = ck_row_i64(g->rows[i], a->offset[0]);
    return CK_OK;
}

void ck_acc_plan_count(ck_acc *a) {
    a->update = count_update;
    a->merge = count_merge;
    a->unmerge = count_unmerge;
    a->value = count_value;
    a->fields[0] = (ck_field){a->field, ck_type_simple(CK_TYPE_BIGINT), false};
    a->field_count = 1;
}
