/* Calls whose result is a value of some row of the frame: which row that is, for each row of the chunk. */
#include "operator/over_int.h"

#include <math.h>

/* ---- the least and the greatest ---- */

typedef struct extreme {
    const ck_table *table;
    uint32_t field, at, null_bit;
    bool max;
} extreme;

static inline bool less_f64(double a, double b) { return a < b || (isnan(b) && !isnan(a)); } /* NaN is above all */

#define LESS_I64(e, a, b)  (ck_row_i64(a, (e)->at) < ck_row_i64(b, (e)->at))
#define LESS_F64(e, a, b)  less_f64(ck_row_f64(a, (e)->at), ck_row_f64(b, (e)->at))
#define LESS_I128(e, a, b) (ck_row_i128(a, (e)->at) < ck_row_i128(b, (e)->at))
#define LESS_BOOL(e, a, b) (!ck_row_bool(a, (e)->at) && ck_row_bool(b, (e)->at))
#define LESS_VIEW(e, a, b)                                                                                             \
    (ck_view_cmp(ck_table_str((e)->table, a, (e)->field), ck_table_str((e)->table, b, (e)->field)) < 0)

/* Rows that may still become the best one, in order, each better than those behind it; those that leave are in front.
 * Where nothing leaves, only the best one is kept. */
#define EXTREME_KERNEL(name, LESS)                                                                                     \
    static void name(ck_over *op, const ck_over_run *r, const extreme *e, ck_row **out) {                              \
        const int64_t *last = ck_over_i64(&op->last), *leave = ck_over_i64(&op->leave);                                \
        ck_row **q = ck_over_ptr(&op->deque);                                                                          \
        size_t head = 0, n = 0;                                                                                        \
        int64_t gone = 0;                                                                                              \
        bool bounded = op->plan.bounded;                                                                               \
        for (size_t i = (size_t)r->left; i < r->past_n; i++) {                                                         \
            ck_row *x = op->past.at[r->past + i];                                                                      \
            if (ck_row_null(x, e->null_bit)) continue;                                                                 \
            while (n > head && (e->max ? !LESS(e, x, q[n - 1]) : !LESS(e, q[n - 1], x))) n--;                          \
            if (bounded || n == head) q[n++] = x;                                                                      \
        }                                                                                                              \
        for (size_t i = r->first; i < r->first + r->n;) {                                                              \
            size_t end = (size_t)last[i] + 1;                                                                          \
            for (size_t k = i; k < end; k++) {                                                                         \
                ck_row *x = op->chunk.at[k];                                                                           \
                if (ck_row_null(x, e->null_bit)) continue;                                                             \
                while (n > head && (e->max ? !LESS(e, x, q[n - 1]) : !LESS(e, q[n - 1], x))) n--;                      \
                if (bounded || n == head) q[n++] = x;                                                                  \
            }                                                                                                          \
            for (; bounded && gone < leave[i]; gone++)                                                                 \
                if (head < n && q[head] == op->tails.at[r->tail + (size_t)gone]) head++;                               \
            for (; i < end; i++) out[i] = head < n ? q[head] : NULL;                                                   \
        }                                                                                                              \
    }
EXTREME_KERNEL(extreme_i64, LESS_I64)
EXTREME_KERNEL(extreme_f64, LESS_F64)
EXTREME_KERNEL(extreme_i128, LESS_I128)
EXTREME_KERNEL(extreme_bool, LESS_BOOL)
EXTREME_KERNEL(extreme_view, LESS_VIEW)

static ck_status extremes(ck_over *op, const ck_over_call *c, ck_row **out, ck_op_ctx *ctx) {
    uint32_t field = op->plan.field_of[c->arg];
    const ck_row_field *f = &ck_table_layout(op->rows)->fields[field];
    extreme e = {op->rows, field, f->offset, f->null_bit, c->fn == CK_OVER_MAX};
    void (*kernel)(ck_over *, const ck_over_run *, const extreme *, ck_row **) =
        f->phys == CK_PHYS_I64    ? extreme_i64
        : f->phys == CK_PHYS_F64  ? extreme_f64
        : f->phys == CK_PHYS_I128 ? extreme_i128
        : f->phys == CK_PHYS_BOOL ? extreme_bool
                                  : extreme_view;
    for (uint32_t i = 0; i < op->run_count; i++) {
        const ck_over_run *r = &op->runs[i];
        if (ck_bytes_reserve(&op->deque, (r->past_n + r->n) * sizeof(ck_row *)) != CK_OK)
            return ck_nomem(ctx->error, op->mem, (r->past_n + r->n) * sizeof(ck_row *));
        kernel(op, r, &e, out);
    }
    return CK_OK;
}

/* ---- by place ---- */

static void first_values(const ck_over *op, const ck_over_run *r, ck_row **out) {
    const int64_t *leave = ck_over_i64(&op->leave);
    ck_row *first = r->past_n ? op->past.at[r->past] : r->n ? op->chunk.at[r->first] : NULL;
    for (size_t i = r->first; i < r->first + r->n; i++)
        out[i] = op->plan.bounded ? op->tails.at[r->tail + (size_t)leave[i]] : first;
}

static void last_values(const ck_over *op, const ck_over_run *r, ck_row **out) {
    const int64_t *last = ck_over_i64(&op->last);
    for (size_t i = r->first; i < r->first + r->n; i++) out[i] = op->chunk.at[last[i]];
}

static void earlier_rows(const ck_over *op, const ck_over_run *r, uint64_t back, ck_row **out) {
    for (size_t i = 0; i < r->n; i++) {
        ck_row *row = NULL;
        if (back <= i)
            row = op->chunk.at[r->first + i - back];
        else if (back - i <= r->past_n)
            row = op->past.at[r->past + r->past_n - (back - i)];
        out[r->first + i] = row;
    }
}

ck_status ck_over_run_picks(ck_over *op, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < op->plan.call_count; i++) {
        const ck_over_call *c = &op->plan.calls[i];
        if (c->pick == UINT32_MAX) continue;
        ck_row **out = ck_over_ptr(&op->picks[c->pick]);
        if (c->fn == CK_OVER_MIN || c->fn == CK_OVER_MAX) {
            CK_TRY(extremes(op, c, out, ctx));
            continue;
        }
        for (uint32_t n = 0; n < op->run_count; n++) {
            const ck_over_run *r = &op->runs[n];
            if (c->fn == CK_OVER_FIRST_VALUE)
                first_values(op, r, out);
            else if (c->fn == CK_OVER_LAST_VALUE)
                last_values(op, r, out);
            else
                earlier_rows(op, r, c->offset, out);
        }
    }
    return CK_OK;
}
