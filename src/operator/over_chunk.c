/* Rows that are due, of many keys, with what their frames begin and end with. Pointers only: nothing is written until
 * all of the chunk has been said. */
#include "operator/over_int.h"

ck_status ck_over_push(ck_over *op, ck_over_rows *to, ck_row *row, ck_op_ctx *ctx) {
    if (to->n == to->capacity) {
        size_t capacity = to->capacity ? to->capacity * 2 : CK_BATCH_ROWS_MAX;
        void *at = ck_realloc(op->mem, to->at, to->capacity * sizeof *to->at, capacity * sizeof *to->at);
        if (!at) return ck_nomem(ctx->error, op->mem, capacity * sizeof *to->at);
        to->at = at;
        to->capacity = capacity;
    }
    to->at[to->n++] = row;
    return CK_OK;
}

/* ---- places in the order ---- */

static bool are_peers(const ck_over *op, const ck_row *a, const ck_row *b) {
    for (uint32_t i = 0; i < op->plan.peer_count; i++)
        if (!ck_table_same_field(op->rows, op->plan.keys.count + i, a, b)) return false;
    return true;
}

/* ---- keys that are due ---- */

static ck_status key_batch(ck_over *op, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    const ck_key_spec *keys = &op->plan.own_keys;
    ck_row **rows = ck_arena_alloc(ctx->arena, n * sizeof *rows);
    *out = ck_batch_new(ctx->mem, keys->count, n, false, false);
    if (!*out || !rows) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        bool any = ck_partition_first(op->rows, op->due[op->due_at + i], &rows[i]);
        CK_ASSERT(any);
    }
    for (uint32_t k = 0; k < keys->count; k++) {
        ck_column *c;
        ck_status s = ck_table_gather_column(op->rows, rows, n, NULL, n, k, ctx->mem, &c);
        if (s != CK_OK) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        ck_batch_set_column(*out, k, &c);
    }
    return CK_OK;
}

/* What is kept beside the rows of each key that is due, in keys[]. */
static ck_status rows_of_keys(ck_over *op, ck_row **keys, uint32_t n, ck_op_ctx *ctx) {
    uint64_t *hashes = ck_arena_alloc(ctx->arena, n * sizeof *hashes);
    uint8_t *fresh = ck_arena_alloc(ctx->arena, n);
    ck_batch *b = NULL;
    if (!hashes || !fresh) return ck_nomem(ctx->error, ctx->mem, n * sizeof *hashes);
    ck_status s = key_batch(op, n, &b, ctx);
    if (s == CK_OK) {
        ck_key_hash(&op->plan.own_keys, b, ck_table_seed(op->keyed), hashes);
        ck_keys k = {&op->plan.own_keys, b, hashes, n};
        s = ck_table_upsert(op->keyed, &k, keys, fresh, ctx->error);
    }
    for (uint32_t i = 0; s == CK_OK && i < n; i++)
        if (fresh[i]) ck_over_set(op, keys[i], CK_OVER_UNTIL, INT64_MIN);
    ck_batch_unref(&b);
    return s;
}

static void refill(ck_over *op) {
    uint32_t n = op->due_count - op->due_at;
    memmove(op->due, op->due + op->due_at, n * sizeof *op->due);
    op->due_at = 0;
    while (n < CK_OVER_RUNS_MAX && ck_partition_timers_take(&op->timers, op->target, &op->due[n])) n++;
    op->due_count = n;
}

/* ---- rows that are due ---- */

/* From behind what has been said to what is due. */
static void open_due(ck_over *op, const ck_over_run *r, ck_range *range, char lo[], char hi[]) {
    const ck_over_plan *p = &op->plan;
    int64_t until = ck_over_get(op, r->key, CK_OVER_UNTIL);
    bool timed = p->by != CK_OVER_END;
    ck_view from = {0}, to = {0};
    if (op->resumed)
        from = ck_bytes_as_view(&op->resume);
    else if (timed && until > INT64_MIN)
        from = ck_over_time_key(until + 1, lo);
    if (timed && op->target < CK_WATERMARK_MAX) to = ck_over_time_key(ck_over_unit(op, op->target) + 1, hi);
    ck_range_open(range, op->rows, r->partition, from, to);
}

/* Rows of the run, at least `room` of them when there are, up to the end of a place in the order. */
static ck_status gather_rows(ck_over *op, ck_over_run *r, size_t room, ck_op_ctx *ctx) {
    char lo[CK_INSTANT_KEY_BYTES], hi[CK_INSTANT_KEY_BYTES];
    ck_range range;
    ck_row *row;
    open_due(op, r, &range, lo, hi);
    r->first = op->chunk.n;
    while (ck_range_next(&range, &row)) {
        size_t n = op->chunk.n - r->first;
        if (n >= room && (!op->plan.groups || !are_peers(op, op->chunk.at[op->chunk.n - 1], row))) {
            r->goes_on = true;
            break;
        }
        CK_TRY(ck_over_push(op, &op->chunk, row, ctx));
    }
    r->n = op->chunk.n - r->first;
    return CK_OK;
}

static void mark_places(ck_over *op, const ck_over_run *r) {
    int64_t *last = ck_over_i64(&op->last);
    for (size_t i = r->first + r->n; i-- > r->first;) {
        bool with_next =
            op->plan.groups && i + 1 < r->first + r->n && are_peers(op, op->chunk.at[i], op->chunk.at[i + 1]);
        last[i] = with_next ? last[i + 1] : (int64_t)i;
    }
}

/* ---- where frames begin ---- */

/* Whether a row stands before the frame of another, told by the order column. */
static bool is_before(const ck_over *op, const ck_row *row, const ck_row *of) {
    const ck_row_field *f = &ck_table_layout(op->rows)->fields[op->plan.keys.count];
    bool null = ck_row_null(of, f->null_bit);
    if (null || ck_row_null(row, f->null_bit)) return null != ck_row_null(row, f->null_bit);
    int64_t x = ck_row_i64(row, f->offset), y = ck_row_i64(of, f->offset);
    bool descending = op->plan.by != CK_OVER_PROCESSING_TIME && op->plan.order[0].descending;
    uint64_t apart = descending ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
    return apart > op->plan.preceding;
}

/* Rows that leave, and behind them the first that stays, into tails[]; how many have left into leave[]. */
static ck_status gather_tails(ck_over *op, ck_over_run *r, ck_op_ctx *ctx) {
    const int64_t *last = ck_over_i64(&op->last);
    int64_t *leave = ck_over_i64(&op->leave), gone = 0;
    ck_range range;
    ck_row *row = NULL;
    ck_range_open(&range, op->rows, r->partition, (ck_view){0}, (ck_view){0});
    for (int64_t i = 0; i <= r->left; i++)
        if (!ck_range_next(&range, &row)) row = NULL;
    r->tail = op->tails.n;
    for (size_t i = r->first; i < r->first + r->n;) {
        size_t end = (size_t)last[i] + 1;
        /* by rows: a place is one row, number held + i of those there are */
        int64_t before = r->held + (int64_t)(i - r->first) - (int64_t)op->plan.preceding;
        while (row && (op->plan.range ? is_before(op, row, op->chunk.at[i]) : r->left + gone < before)) {
            CK_TRY(ck_over_push(op, &op->tails, row, ctx));
            gone++;
            if (!ck_range_next(&range, &row)) row = NULL;
        }
        for (; i < end; i++) leave[i] = gone;
    }
    CK_ASSERT(row); /* a row is in its own frame */
    return ck_over_push(op, &op->tails, row, ctx);
}

static ck_status gather_past(ck_over *op, ck_over_run *r, ck_op_ctx *ctx) {
    ck_range range;
    ck_row *row;
    r->past = op->past.n;
    ck_range_open(&range, op->rows, r->partition, (ck_view){0}, (ck_view){0});
    for (r->past_n = 0; (int64_t)r->past_n < r->held && ck_range_next(&range, &row); r->past_n++)
        CK_TRY(ck_over_push(op, &op->past, row, ctx));
    return CK_OK;
}

/* ---- the chunk ---- */

static ck_status room_by_row(ck_over *op, ck_op_ctx *ctx) {
    size_t n = op->chunk.n;
    ck_status s = ck_bytes_reserve(&op->last, n * sizeof(int64_t));
    if (s == CK_OK) s = ck_bytes_reserve(&op->leave, n * sizeof(int64_t));
    for (uint32_t i = 0; s == CK_OK && i < op->plan.total_count; i++) {
        ck_over_sum *sum = &op->sums[i];
        ck_phys phys = op->plan.totals[i].phys;
        s = ck_bytes_reserve(&sum->n, n * sizeof(int64_t));
        if (s == CK_OK && phys != CK_PHYS_NULL)
            s = ck_bytes_reserve(&sum->sum, n * (phys == CK_PHYS_F64 ? sizeof(double) : sizeof(ck_i128)));
        if (s == CK_OK && phys == CK_PHYS_I128) s = ck_bytes_reserve(&sum->in_range, n);
    }
    for (uint32_t i = 0; s == CK_OK && i < op->plan.pick_count; i++)
        s = ck_bytes_reserve(&op->picks[i], n * sizeof(ck_row *));
    for (uint32_t i = 0; s == CK_OK && i < op->plan.call_count; i++)
        if (op->plan.calls[i].fn >= CK_OVER_ROW_NUMBER && op->plan.calls[i].fn <= CK_OVER_DENSE_RANK)
            s = ck_bytes_reserve(&op->ranks[i], n * sizeof(int64_t));
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, op->mem, n * sizeof(ck_i128));
}

static ck_status gather_runs(ck_over *op, ck_row *const *keys, uint32_t n, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < n && op->chunk.n < CK_BATCH_ROWS_MAX; i++) {
        ck_over_run *r = &op->runs[op->run_count++];
        *r = (ck_over_run){.partition = op->due[op->due_at], .key = keys[i]};
        r->held = ck_over_get(op, r->key, CK_OVER_HELD);
        r->left = ck_over_get(op, r->key, CK_OVER_LEFT);
        CK_TRY(gather_rows(op, r, CK_BATCH_ROWS_MAX - op->chunk.n, ctx));
        op->resumed = false;
        if (r->goes_on) break; /* it stays the first that is due */
        op->due_at++;
    }
    return CK_OK;
}

ck_status ck_over_gather(ck_over *op, ck_op_ctx *ctx) {
    op->run_count = 0;
    op->chunk.n = op->tails.n = op->past.n = 0;
    refill(op);
    uint32_t n = op->due_count - op->due_at;
    if (n == 0) return CK_OK;
    ck_row **keys = ck_arena_alloc(ctx->arena, n * sizeof *keys);
    if (!keys) return ck_nomem(ctx->error, ctx->mem, n * sizeof *keys);
    CK_TRY(rows_of_keys(op, keys, n, ctx));
    CK_TRY(gather_runs(op, keys, n, ctx));
    CK_TRY(room_by_row(op, ctx));
    for (uint32_t i = 0; i < op->run_count; i++) {
        ck_over_run *r = &op->runs[i];
        if (r->n == 0) continue;
        mark_places(op, r);
        if (op->plan.bounded) CK_TRY(gather_tails(op, r, ctx));
        if (op->plan.uses_past) CK_TRY(gather_past(op, r, ctx));
    }
    return CK_OK;
}
