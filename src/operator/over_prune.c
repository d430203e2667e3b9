/* What need not be kept once rows have been said: rows that no later frame begins before, no LAG looks back to and that
 * are nobody's MIN, MAX or FIRST_VALUE; and what is kept beside them, where the next row of the key starts anew. */
#include <stdlib.h>

#include "operator/over_int.h"

/* ---- order keys, several behind each other in op->keep ---- */

typedef struct key_part {
    size_t at, bytes;
} key_part;

static ck_view key_at(const ck_over *op, const key_part *k) { return (ck_view){op->keep.p + k->at, k->bytes}; }

static ck_status add_key(ck_over *op, const ck_row *row, key_part *out, ck_op_ctx *ctx) {
    out->at = op->keep.n;
    ck_status s = ck_row_order_key(op->rows, row, &op->keep);
    out->bytes = op->keep.n - out->at;
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, op->mem, op->keep.n);
}

/* The least key above k, in op->key. */
static ck_status key_behind(ck_over *op, ck_view k, ck_view *out, ck_op_ctx *ctx) {
    ck_bytes_clear(&op->key);
    ck_status s = ck_bytes_view(&op->key, k);
    if (s == CK_OK) s = ck_bytes_char(&op->key, 0);
    *out = ck_bytes_as_view(&op->key);
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, op->mem, k.n);
}

static ck_status erase(ck_over *op, ck_partition p, ck_view lo, ck_view hi, ck_op_ctx *ctx) {
    return ck_partition_erase_range(op->rows, p, lo, hi, NULL, ctx->error);
}

/* ---- one key ---- */

/* The i-th of its rows, those said before first. */
static ck_row *nth(const ck_over *op, const ck_over_run *r, size_t i) {
    return i < r->past_n ? op->past.at[r->past + i] : op->chunk.at[r->first + (i - r->past_n)];
}

/* A row with all before it goes. */
static ck_status forget_before(ck_over *op, const ck_over_run *r, ck_row *first_kept, ck_op_ctx *ctx) {
    key_part k;
    ck_bytes_clear(&op->keep);
    CK_TRY(add_key(op, first_kept, &k, ctx));
    return erase(op, r->partition, (ck_view){0}, key_at(op, &k), ctx);
}

/* Frames that move on: what is behind the last one's beginning goes, but for what LAG looks back to. */
static ck_status prune_bounded(ck_over *op, ck_over_run *r, ck_op_ctx *ctx) {
    int64_t all = r->held + (int64_t)r->n, gone = ck_over_i64(&op->leave)[r->first + r->n - 1];
    int64_t begins = r->left + gone, back = all > (int64_t)op->plan.lag ? all - (int64_t)op->plan.lag : 0;
    int64_t keep = begins < back ? begins : back;
    if (keep > 0)
        CK_TRY(forget_before(op, r, keep == begins ? op->tails.at[r->tail + (size_t)gone] : nth(op, r, (size_t)keep),
                             ctx));
    ck_over_set(op, r->key, CK_OVER_HELD, all - keep);
    ck_over_set(op, r->key, CK_OVER_LEFT, begins - keep);
    return CK_OK;
}

static int by_bytes(const void *x, const void *y) {
    const ck_view *a = x, *b = y;
    return ck_view_cmp(*a, *b);
}

/* The rows that somebody still looks at, as parts of op->keep; behind them the last row said. */
static ck_status key_parts(ck_over *op, const ck_over_run *r, key_part *parts, uint32_t *n, ck_op_ctx *ctx) {
    const ck_over_plan *p = &op->plan;
    size_t all = r->past_n + r->n, back = all > p->lag ? (size_t)p->lag : all;
    ck_bytes_clear(&op->keep);
    *n = 0;
    for (size_t i = all - back; i < all; i++) CK_TRY(add_key(op, nth(op, r, i), &parts[(*n)++], ctx));
    for (uint32_t i = 0; i < p->call_count; i++) {
        ck_over_fn fn = p->calls[i].fn;
        if (fn < CK_OVER_MIN || fn > CK_OVER_FIRST_VALUE) continue;
        ck_row *row = ck_over_ptr(&op->picks[p->calls[i].pick])[r->first + r->n - 1];
        if (row) CK_TRY(add_key(op, row, &parts[(*n)++], ctx));
    }
    return add_key(op, op->chunk.at[r->first + r->n - 1], &parts[*n], ctx);
}

/* Frames that only grow: of what was said, a few rows stay. */
static ck_status prune_unbounded(ck_over *op, ck_over_run *r, ck_op_ctx *ctx) {
    size_t all = r->past_n + r->n, room = (all > op->plan.lag ? (size_t)op->plan.lag : all) + op->plan.pick_count + 1;
    key_part *parts = ck_arena_array(ctx->arena, room, sizeof *parts);
    ck_view *keys = ck_arena_array(ctx->arena, room, sizeof *keys), lo = {0};
    uint32_t n;
    int64_t held = 0;
    if (!parts || !keys) return ck_nomem(ctx->error, ctx->mem, room * sizeof *keys);
    CK_TRY(key_parts(op, r, parts, &n, ctx));
    for (uint32_t i = 0; i < n; i++) keys[i] = key_at(op, &parts[i]);
    qsort(keys, n, sizeof *keys, by_bytes);
    char *end = ck_arena_alloc(ctx->arena, parts[n].bytes + 1);
    if (!end) return ck_nomem(ctx->error, ctx->mem, parts[n].bytes);
    memcpy(end, key_at(op, &parts[n]).p, parts[n].bytes);
    end[parts[n].bytes] = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i && ck_view_eq(keys[i], keys[i - 1])) continue;
        CK_TRY(erase(op, r->partition, lo, keys[i], ctx));
        CK_TRY(key_behind(op, keys[i], &lo, ctx));
        held++;
    }
    ck_over_set(op, r->key, CK_OVER_HELD, held);
    return erase(op, r->partition, lo, (ck_view){end, parts[n].bytes + 1}, ctx);
}

/* ---- when a key is looked at again ---- */

/* The first of its rows that is not due yet. */
static bool next_row(const ck_over *op, const ck_over_run *r, ck_row **row) {
    char lo[CK_INSTANT_KEY_BYTES];
    ck_range range;
    ck_range_open(&range, op->rows, r->partition, ck_over_time_key(ck_over_unit(op, op->target) + 1, lo), (ck_view){0});
    return ck_range_next(&range, row);
}

/* Frames told by time end by themselves: the instant from which no row of the key begins with those said. */
static bool ends_at(const ck_over *op, const ck_over_run *r, int64_t *us) {
    const ck_over_plan *p = &op->plan;
    bool ends = p->bounded && p->range && !p->keeps_numbers && p->lag == 0 && p->by != CK_OVER_END;
    int64_t until = ck_over_get(op, r->key, CK_OVER_UNTIL);
    if (!ends || until == INT64_MIN || p->preceding > CK_EVENT_TIME_MAX) return false;
    *us = ck_over_instant(op, until + (int64_t)p->preceding);
    return true;
}

static ck_status set_timer(ck_over *op, ck_partition p, int64_t us, ck_op_ctx *ctx) {
    return ck_partition_timers_set(&op->timers, p, us) == CK_OK ? CK_OK
                                                              : ck_nomem(ctx->error, op->mem, sizeof(ck_partition_timer));
}

/* *over: nothing of the key is needed any more. */
static ck_status look_again(ck_over *op, const ck_over_run *r, int64_t held, uint64_t rows, bool *over,
                            ck_op_ctx *ctx) {
    ck_row *row;
    int64_t us;
    *over = false;
    if (rows > (uint64_t)held && next_row(op, r, &row))
        return set_timer(op, r->partition, ck_over_instant(op, ck_row_i64(row, op->time_at)), ctx);
    if (ends_at(op, r, &us)) {
        if (us > op->target) return set_timer(op, r->partition, us, ctx);
        *over = true;
    }
    if (held == 0 && !op->plan.keeps_numbers) *over = true;
    return CK_OK;
}

static ck_status prune_run(ck_over *op, ck_over_run *r, bool *over, ck_op_ctx *ctx) {
    uint64_t rows = ck_partition_rows(op->rows, r->partition), before = rows;
    *over = op->target == CK_WATERMARK_MAX && !r->goes_on;
    if (*over) return erase(op, r->partition, (ck_view){0}, (ck_view){0}, ctx);
    if (r->n > 0) {
        if (op->plan.by != CK_OVER_END)
            ck_over_set(op, r->key, CK_OVER_UNTIL, ck_row_i64(op->chunk.at[r->first + r->n - 1], op->time_at));
        int64_t all = r->held + (int64_t)r->n;
        CK_TRY(op->plan.bounded ? prune_bounded(op, r, ctx) : prune_unbounded(op, r, ctx));
        rows = before - (uint64_t)(all - ck_over_get(op, r->key, CK_OVER_HELD));
    }
    if (r->goes_on) return CK_OK;
    CK_TRY(look_again(op, r, ck_over_get(op, r->key, CK_OVER_HELD), rows, over, ctx));
    return *over && rows > 0 ? erase(op, r->partition, (ck_view){0}, (ck_view){0}, ctx) : CK_OK;
}

ck_status ck_over_prune(ck_over *op, ck_op_ctx *ctx) {
    ck_row **gone = ck_arena_alloc(ctx->arena, (op->run_count + 1u) * sizeof *gone);
    uint32_t n = 0;
    bool over;
    if (!gone) return ck_nomem(ctx->error, ctx->mem, op->run_count * sizeof *gone);
    ck_over_run *last = op->run_count ? &op->runs[op->run_count - 1] : NULL;
    if (last && last->goes_on) { /* the next chunk goes on behind the last row of this one */
        ck_bytes_clear(&op->resume);
        ck_status s = ck_row_order_key(op->rows, op->chunk.at[last->first + last->n - 1], &op->resume);
        if (s == CK_OK) s = ck_bytes_char(&op->resume, 0);
        if (s != CK_OK) return ck_nomem(ctx->error, op->mem, op->resume.n);
        op->resumed = true;
    }
    for (uint32_t i = 0; i < op->run_count; i++) {
        CK_TRY(prune_run(op, &op->runs[i], &over, ctx));
        if (over) gone[n++] = op->runs[i].key;
    }
    return n ? ck_table_erase(op->keyed, gone, n, ctx->error) : CK_OK;
}
