/* The chunk's rows with their results, in batches. */
#include "operator/over_int.h"

/* ---- results as columns ---- */

typedef struct result { /* of one call, for rows [at, at + n) of the chunk */
    const ck_over_call *call;
    ck_column *column;
    uint64_t *validity;
    size_t at;
    uint32_t n;
} result;

static ck_status set_null(result *r, uint32_t i, ck_op_ctx *ctx) {
    if (!r->validity && !(r->validity = ck_column_writable_validity(r->column)))
        return ck_nomem(ctx->error, ctx->mem, r->n / 8);
    ck_bit_clear(r->validity, i);
    return CK_OK;
}

static ck_status out_of_range(ck_over *op, result *r, uint32_t i, const ck_batch *rows, ck_op_ctx *ctx) {
    if (ctx->settings->eval_error_null) return set_null(r, i, ctx);
    ck_groups g = {NULL, r->n, rows, &op->plan.keys, NULL};
    return ck_acc_out_of_range(r->call->text, r->call->type, &g, i, ctx);
}

/* A DECIMAL(38) holds it. */
static bool fits_decimal(ck_i128 v) {
    ck_i128 bound = 1;
    for (int i = 0; i < 38; i++) bound *= 10;
    return v < bound && v > -bound;
}

/* false: out of range. */
static bool put_sum(const ck_over_total *t, const ck_over_sum *sum, size_t from, result *r, uint32_t i) {
    if (t->phys == CK_PHYS_F64) {
        r->column->f64[i] = ck_over_f64(&sum->sum)[from];
        return true;
    }
    ck_i128 v = ck_over_i128(&sum->sum)[from];
    if (t->phys == CK_PHYS_I64) {
        r->column->i64[i] = (int64_t)v;
        return (int64_t)v == v;
    }
    r->column->i128[i] = v;
    return ck_over_u8(&sum->in_range)[from] && fits_decimal(v);
}

static bool put_average(const ck_over_total *t, const ck_over_sum *sum, size_t from, result *r, uint32_t i) {
    int64_t n = ck_over_i64(&sum->n)[from];
    if (t->phys == CK_PHYS_F64) {
        r->column->f64[i] = ck_over_f64(&sum->sum)[from] / (double)n;
        return true;
    }
    ck_i128 v = ck_over_i128(&sum->sum)[from];
    if (t->phys == CK_PHYS_I64) {
        r->column->f64[i] = (double)v / (double)n;
        return true;
    }
    return ck_over_u8(&sum->in_range)[from] &&
           ck_decimal_average(v, 0, (uint64_t)n, r->call->type->scale - t->type->scale, &r->column->i128[i]);
}

static ck_status numbers(ck_over *op, result *r, const ck_batch *rows, ck_op_ctx *ctx) {
    const ck_over_total *t = &op->plan.totals[r->call->total];
    const ck_over_sum *sum = &op->sums[r->call->total];
    const int64_t *n = ck_over_i64(&sum->n);
    if (r->call->fn == CK_OVER_COUNT) {
        memcpy(r->column->i64, n + r->at, r->n * sizeof *n);
        return CK_OK;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        size_t from = r->at + i;
        if (n[from] == 0) {
            CK_TRY(set_null(r, i, ctx));
            continue;
        }
        bool fits = r->call->fn == CK_OVER_SUM ? put_sum(t, sum, from, r, i) : put_average(t, sum, from, r, i);
        if (!fits) CK_TRY(out_of_range(op, r, i, rows, ctx));
    }
    return CK_OK;
}

static ck_status call_column(ck_over *op, uint32_t call, uint32_t n, const ck_batch *rows, ck_column **out,
                             ck_op_ctx *ctx) {
    const ck_over_call *c = &op->plan.calls[call];
    *out = NULL;
    if (c->pick != UINT32_MAX) {
        ck_row *const *from = ck_over_ptr(&op->picks[c->pick]) + op->said;
        ck_status s = ck_table_gather_column(op->rows, from, n, NULL, n, op->plan.field_of[c->arg], ctx->mem, out);
        return s == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    }
    result r = {.call = c, .column = ck_column_new(ctx->mem, ck_type_phys(c->type), n), .at = op->said, .n = n};
    if (!r.column) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_i128));
    ck_status s = CK_OK;
    if (c->total != UINT32_MAX)
        s = numbers(op, &r, rows, ctx);
    else
        memcpy(r.column->i64, ck_over_i64(&op->ranks[call]) + op->said, n * sizeof(int64_t));
    if (s != CK_OK) ck_column_unref(&r.column);
    *out = r.column;
    return s;
}

/* ---- rows ---- */

static ck_status fill(ck_over *op, ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    const ck_over_plan *p = &op->plan;
    uint32_t width = p->input->field_count, first = p->hide ? 1 : 0;
    for (uint32_t c = 0; c < width; c++) {
        ck_column *column;
        ck_status s =
            ck_table_gather_column(op->rows, op->chunk.at + op->said, n, NULL, n, p->field_of[c], ctx->mem, &column);
        if (s != CK_OK) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        ck_batch_set_column(b, c, &column);
    }
    for (uint32_t i = first; i < p->call_count; i++) {
        ck_column *column;
        CK_TRY(call_column(op, i, n, b, &column, ctx));
        ck_batch_set_column(b, width + i - first, &column);
    }
    return CK_OK;
}

/* Rows whose rank is within the limit. */
static ck_status only_ranked(ck_over *op, ck_batch **b, uint32_t n, ck_op_ctx *ctx) {
    const int64_t *rank = ck_over_i64(&op->ranks[0]) + op->said;
    uint32_t count = 0;
    if (!op->plan.limit) return CK_OK;
    for (uint32_t i = 0; i < n; i++) {
        op->sel[count] = (uint16_t)i;
        count += (uint64_t)rank[i] <= op->plan.limit;
    }
    if (count == n) return CK_OK;
    ck_batch *some = ck_batch_select(*b, op->sel, count);
    ck_batch_unref(b);
    *b = some;
    return some ? CK_OK : ck_nomem(ctx->error, ctx->mem, count * sizeof *op->sel);
}

ck_status ck_over_emit(ck_over *op, ck_op_ctx *ctx) {
    size_t left = op->chunk.n - op->said;
    uint32_t n = left < ctx->settings->batch_rows ? (uint32_t)left : ctx->settings->batch_rows;
    if (n == 0) return CK_OK;
    uint32_t width = op->plan.input->field_count + op->plan.call_count - (op->plan.hide ? 1 : 0);
    ck_batch *b = ck_batch_new(ctx->mem, width, n, false, false);
    if (!b) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status s = fill(op, b, n, ctx);
    if (s == CK_OK) s = only_ranked(op, &b, n, ctx);
    if (s != CK_OK) {
        if (b) ck_batch_unref(&b);
        return s;
    }
    op->said += n;
    return ck_op_emit(ctx, 0, &b);
}
