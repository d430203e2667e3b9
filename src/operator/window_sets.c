/* DISTINCT in a hop that rolls. Each slice has the set of its values; in the bucket that rolls a value counts once for
 * every slice that has it, and is there while that is more than 0. So a set goes in, and out again, as if its values
 * were rows that come and are taken back. */
#include "operator/window_int.h"

/* A column that two calls look at is made once. */
static void set_column(ck_batch *b, uint32_t at, ck_column **c) {
    if (b->columns[at])
        ck_column_unref(c);
    else
        ck_batch_set_column(b, at, c);
}

/* The filter of a set has been passed by all that is in it. */
static ck_column *all_true(ck_mem mem, uint32_t n) {
    ck_column *c = ck_column_new(mem, CK_PHYS_BOOL, n);
    for (uint32_t i = 0; c && i < n; i++) ck_bit_set(c->bits, i);
    return c;
}

/* Values in op->found as rows of the input, as far as the set's calls look at them. */
static ck_status as_input(ck_window_agg *op, const ck_table *set, uint32_t n, int64_t end, int sign, ck_batch **out,
                          ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &op->plan.distincts[op->set];
    uint32_t keys = op->plan.keys.count;
    ck_batch *b = *out = ck_batch_new(ctx->mem, op->ends_column + 1, n, false, true);
    ck_column *c = b ? ck_column_new(ctx->mem, CK_PHYS_I64, n) : NULL;
    if (!c) return ck_nomem(ctx->error, ctx->mem, n * sizeof(int64_t));
    for (uint32_t i = 0; i < n; i++) c->i64[i] = end;
    set_column(b, op->ends_column, &c);
    memset(b->weights, sign, n);
    for (uint32_t i = 0; i <= keys; i++) { /* behind the keys stands the slice's end, then the value */
        uint32_t field = i < keys ? i : keys + 1;
        CK_TRY(ck_window_field_of(set, op->found, n, field, d->spec.types[i], &c, ctx));
        set_column(b, d->spec.columns[i], &c);
    }
    if (d->members[0].filter < 0) return CK_OK;
    c = all_true(ctx->mem, n);
    if (!c) return ck_nomem(ctx->error, ctx->mem, n / 8);
    set_column(b, (uint32_t)d->members[0].filter, &c);
    return CK_OK;
}

/* Counts them into the bucket's set, and what that changes into its groups. */
static ck_status count_values(ck_window_agg *op, const ck_batch *b, int64_t to_end, ck_op_ctx *ctx) {
    ck_table *to;
    CK_TRY(ck_table_bucket(op->table, to_end, true, &to, ctx->error));
    CK_TRY(ck_window_enter(op, to_end, to, true, ctx));
    ck_key_hash(&op->bucket_keys, b, ck_table_seed(to), op->hashes);
    ck_keys keys = {&op->bucket_keys, b, op->hashes, b->sel_count};
    CK_TRY(ck_table_upsert(to, &keys, op->found, NULL, ctx->error));
    CK_TRY(ck_lanes_begin(&op->lanes, b, op->found, ctx));
    for (uint32_t i = 0; i < op->plan.acc_count; i++) {
        ck_acc *a = op->plan.accs[i];
        const ck_lane *lane;
        if (a->distinct != op->set) continue;
        CK_TRY(ck_lanes_get(&op->lanes, a->lane, b, &lane, ctx));
        if (lane->n > 0) CK_TRY(a->update(a, lane, b, &op->plan.side_keys, ctx));
    }
    return CK_OK;
}

ck_status ck_window_merge_sets(ck_window_agg *op, int sign, int64_t slice, int64_t to_end, uint32_t *merged,
                               ck_op_ctx *ctx) {
    for (; op->set < op->plan.distinct_count; op->set++, op->set_scan = (ck_table_scan){0}) {
        ck_table *from;
        CK_TRY(ck_table_bucket(op->sets[op->set], slice, false, &from, ctx->error));
        while (from) {
            if (*merged >= CK_WINDOW_MERGED_ROWS) return CK_MORE;
            uint32_t n = ck_table_scan_next(from, &op->set_scan, op->found, CK_BATCH_ROWS_MAX);
            if (n == 0) break;
            ck_batch *b;
            ck_status s = as_input(op, from, n, to_end, sign, &b, ctx);
            if (s == CK_OK) s = count_values(op, b, to_end, ctx);
            ck_batch_unref(&b);
            CK_TRY(s);
            *merged += n;
        }
    }
    return CK_OK;
}
