/* From accumulators to result columns, for some groups at once: what is emitted now, and what had been emitted before a
 * batch changed it. */
#include "operator/group_int.h"

#include <math.h>

/* A sum of decimals with its carry as sign and magnitude, 192 bits. */
typedef struct wide {
    bool negative;
    uint64_t limb[3]; /* least significant first */
} wide;

static wide wide_of(ck_i128 low, int64_t carry) {
    ck_u128 bits = (ck_u128)low;
    uint64_t top = (uint64_t)carry + (low < 0 ? UINT64_MAX : 0); /* the field is the sum's low bits, read as signed */
    wide w = {(int64_t)top < 0, {(uint64_t)bits, (uint64_t)(bits >> 64), top}};
    if (!w.negative) return w;
    bool carried = true;
    for (int i = 0; i < 3; i++) {
        w.limb[i] = ~w.limb[i] + carried;
        carried = carried && w.limb[i] == 0;
    }
    return w;
}

static uint64_t wide_divide(wide *w, uint64_t by) { /* returns the remainder */
    ck_u128 rest = 0;
    for (int i = 2; i >= 0; i--) {
        rest = rest << 64 | w->limb[i];
        w->limb[i] = (uint64_t)(rest / by);
        rest %= by;
    }
    return (uint64_t)rest;
}

bool ck_decimal_average(ck_i128 low, int64_t carry, uint64_t count, int digits, ck_i128 *out) {
    wide w = wide_of(low, carry);
    ck_u128 rest = wide_divide(&w, count), ten = 1, bound = 1;
    for (int i = 0; i < digits; i++) ten *= 10;
    for (int i = 0; i < 38; i++) bound *= 10;
    ck_u128 whole = (ck_u128)w.limb[1] << 64 | w.limb[0];
    if (w.limb[2] != 0 || whole >= bound / ten) return false;
    ck_u128 part = rest * ten, v = whole * ten + part / count;
    if (part % count >= count - part % count) v++;
    if (v >= bound) return false;
    *out = w.negative ? -(ck_i128)v : (ck_i128)v;
    return true;
}

/* One average; false: out of range. */
static bool average(const ck_result *r, const ck_row *row, int64_t carry, ck_column *out, uint32_t i) {
    const ck_acc *sum = r->parts[0];
    int64_t count = ck_row_i64(row, r->parts[1]->offset[0]);
    switch (ck_type_phys(sum->arg_type)) {
    case CK_PHYS_I64: {
        ck_i128 total = (ck_i128)ck_row_i64(row, sum->offset[0]) + (ck_i128)carry * ((ck_i128)1 << 64);
        out->f64[i] = (double)total / (double)count;
        return true;
    }
    case CK_PHYS_I128:
        return ck_decimal_average(ck_row_i128(row, sum->offset[0]), carry, (uint64_t)count,
                                  r->type->scale - sum->arg_type->scale, &out->i128[i]);
    default: out->f64[i] = ck_acc_double(sum, row) / (double)count; return true;
    }
}

static ck_status averages(const ck_result *r, const ck_groups *g, ck_column **out, ck_op_ctx *ctx) {
    const ck_acc *sum = r->parts[0];
    bool any = false;
    int64_t *carry = ck_arena_alloc(ctx->arena, (g->n + 1u) * sizeof *carry);
    *out = ck_column_new(ctx->mem, ck_type_phys(r->type), g->n);
    if (!*out || !carry) {
        ck_column_unref(out);
        return ck_nomem(ctx->error, ctx->mem, g->n * sizeof *carry);
    }
    ck_status s = sum->side ? ck_acc_carries(sum, g, carry, &any, ctx) : CK_OK;
    uint64_t *validity = NULL;
    for (uint32_t i = 0; s == CK_OK && i < g->n; i++) {
        bool null = ck_row_i64(g->rows[i], r->parts[1]->offset[0]) <= 0;
        if (CK_LIKELY(!null && average(r, g->rows[i], any ? carry[i] : 0, *out, i))) continue;
        if (!null && !ctx->settings->eval_error_null) {
            s = ck_acc_out_of_range(r->text, r->type, g, i, ctx);
        } else if (!validity && !(validity = ck_column_writable_validity(*out))) {
            s = ck_nomem(ctx->error, ctx->mem, g->n / 8);
        } else {
            ck_bit_clear(validity, i);
        }
    }
    if (s != CK_OK) ck_column_unref(out);
    return s;
}

static ck_status variances(const ck_result *r, const ck_groups *g, ck_column **out, ck_op_ctx *ctx) {
    bool of_sample = r->finish == CK_FINISH_VAR_SAMP || r->finish == CK_FINISH_STDDEV_SAMP;
    bool root = r->finish == CK_FINISH_STDDEV_POP || r->finish == CK_FINISH_STDDEV_SAMP;
    uint64_t *validity = NULL;
    *out = ck_column_new(ctx->mem, CK_PHYS_F64, g->n);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof(double));
    for (uint32_t i = 0; i < g->n; i++) {
        double v;
        bool there = ck_acc_variance(r->parts[0], g->rows[i], of_sample, &v);
        (*out)->f64[i] = root ? sqrt(v) : v;
        if (CK_LIKELY(there)) continue;
        if (!validity && !(validity = ck_column_writable_validity(*out))) {
            ck_column_unref(out);
            return ck_nomem(ctx->error, ctx->mem, g->n / 8);
        }
        ck_bit_clear(validity, i);
    }
    return CK_OK;
}

static ck_status estimates(const ck_result *r, const ck_groups *g, ck_column **out, ck_op_ctx *ctx) {
    *out = ck_column_new(ctx->mem, CK_PHYS_I64, g->n);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof(int64_t));
    for (uint32_t i = 0; i < g->n; i++) (*out)->i64[i] = ck_acc_distinct_estimate(r->parts[0], g->rows[i]);
    return CK_OK;
}

static ck_status result(const ck_result *r, const ck_groups *g, ck_column **out, ck_op_ctx *ctx) {
    if (r->finish == CK_FINISH_FIRST) return r->parts[0]->value(r->parts[0], g, r->type, out, ctx);
    if (r->finish == CK_FINISH_DISTINCT_ESTIMATE) return estimates(r, g, out, ctx);
    if (r->finish >= CK_FINISH_CONCAT) return ck_group_ordered(r, g, out, ctx);
    return r->finish == CK_FINISH_AVG ? averages(r, g, out, ctx) : variances(r, g, out, ctx);
}

ck_status ck_group_results(const ck_group_plan *p, const ck_groups *g, ck_column **out, ck_op_ctx *ctx) {
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < p->result_count; i++) out[i] = NULL;
    for (uint32_t i = 0; s == CK_OK && i < p->result_count; i++) s = result(&p->results[i], g, &out[i], ctx);
    for (uint32_t i = 0; s != CK_OK && i < p->result_count; i++) ck_column_unref(&out[i]);
    return s;
}
