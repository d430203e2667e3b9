/* Rows of a ranked top-N, in an ordered slot. Over append input a row that comes behind the last of a full partition
 * can never matter and is not taken; what is pushed out of the top goes. Over retract input every row is kept with a
 * signed count; rows that come to zero go at the end of the batch, when nothing refers to them any more. */
#include "operator/top_n_int.h"

enum { KEY_BYTES_MAX = CK_KEY_BYTES_MAX + 64 };

void ck_top_init(ck_top *op, ck_mem mem) {
    op->mem = mem;
    ck_top_touched_init(&op->touched, mem);
    ck_top_images_init(&op->flush.fresh, mem);
    ck_partition_timers_init(&op->windows.timers, mem);
    ck_bytes_init(&op->key, mem, SIZE_MAX);
    ck_bytes_init(&op->other, mem, (size_t)KEY_BYTES_MAX * 4);
}

void ck_top_destroy(ck_top *op) {
    ck_top_touched_destroy(&op->touched);
    ck_top_flush_destroy(&op->flush, op->mem);
    ck_partition_timers_destroy(&op->windows.timers);
    ck_bytes_destroy(&op->key);
    ck_bytes_destroy(&op->other);
}

ck_status ck_top_open(ck_top *op, ck_op_ctx *ctx) {
    CK_TRY(ck_state_table(ctx->state, &op->plan.slot, &op->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(op->table);
    op->count_at = layout->fields[layout->value_first].offset;
    return op->plan.windowed ? ck_top_windows_open(op, ctx) : CK_OK;
}

static ck_status key_failed(const ck_top *op, ck_status s, ck_op_ctx *ctx) {
    if (s == CK_FULL)
        return ck_fail(ctx->error, CK_FULL, "%s: a row is over %d bytes, more than rows that are ranked may have",
                       ctx->uid, (int)CK_KEY_BYTES_MAX);
    if (s == CK_INVALID) return ck_fail(ctx->error, CK_INVALID, "%s: NULL in a column that is NOT NULL", ctx->uid);
    return ck_nomem(ctx->error, op->mem, op->key.capacity);
}

/* An order key in op->key. */
typedef struct encoded {
    size_t at, peer_bytes, bytes; /* peer_bytes: the part that decides the rank */
} encoded;

/* The order key of a row of the batch behind what is in op->key. */
static ck_status encode(ck_top *op, const ck_batch *b, uint32_t row, encoded *out, ck_op_ctx *ctx) {
    const ck_top_plan *p = &op->plan;
    out->at = op->key.n;
    ck_status s = ck_order_encode(p->order, p->peer_count, b, row, &op->key);
    out->peer_bytes = op->key.n - out->at;
    if (s == CK_OK) s = ck_order_encode(p->order + p->peer_count, p->order_count - p->peer_count, b, row, &op->key);
    out->bytes = op->key.n - out->at;
    return s == CK_OK ? CK_OK : key_failed(op, s, ctx);
}

static ck_view key_of(const ck_top *op, const encoded *e) { return (ck_view){op->key.p + e->at, e->bytes}; }

static ck_status key_of_row(ck_top *op, const ck_row *row, ck_view *out, ck_op_ctx *ctx) {
    ck_bytes_clear(&op->other);
    ck_status s = ck_row_order_key(op->table, row, &op->other);
    *out = ck_bytes_as_view(&op->other);
    return s == CK_OK ? CK_OK : key_failed(op, s, ctx);
}

/* ---- append ---- */

/* Rows are only kept when there are not enough that come before them. */
static bool is_full(const ck_top *op, ck_partition p) {
    return op->plan.rank != CK_TOP_DENSE_RANK && ck_partition_rows(op->table, p) >= op->plan.keep;
}

/* What the first order column alone says of a row against the last one of a full partition: > 0 it comes too late, as
 * most rows do, < 0 it comes before, 0 it does not tell. */
static int against_last(ck_top *op, const ck_batch *b, uint32_t row, ck_partition p) {
    const ck_order_spec *o = &op->plan.order[0];
    const ck_column *c = b->columns[o->column];
    const ck_row_field *f = &ck_table_layout(op->table)->fields[op->plan.partition.count];
    ck_row *last;
    if (op->plan.rank == CK_TOP_RANK && op->plan.peer_count == 0) return 0; /* all share the first rank */
    if (c->phys != CK_PHYS_I64 || f->phys != CK_PHYS_I64 || ck_column_is_null(c, row)) return 0;
    if (!ck_partition_last(op->table, p, &last) || ck_row_null(last, f->null_bit)) return 0;
    int64_t x = c->i64[row], y = ck_row_i64(last, f->offset);
    return o->descending ? (x < y) - (x > y) : (x > y) - (x < y);
}

/* Whether a row with this key comes too late in a full partition. One that shares the last rank does not: encoded
 * columns are no prefixes of each other, so that the first bytes tell. */
static ck_status is_behind(ck_top *op, ck_partition p, const encoded *e, bool *out, ck_op_ctx *ctx) {
    ck_row *last;
    ck_view last_key, key = key_of(op, e);
    *out = false;
    ck_partition_last(op->table, p, &last);
    CK_TRY(key_of_row(op, last, &last_key, ctx));
    if (op->plan.rank == CK_TOP_RANK) {
        key.n = e->peer_bytes;
        if (last_key.n > key.n) last_key.n = key.n;
    }
    *out = ck_view_cmp(key, last_key) > 0;
    return CK_OK;
}

/* Pushes rows out of a partition that are behind the first `keep` rows, ranks or groups. Rows are counted once each,
 * however often they are there: that keeps a little more than is needed, and never less. */
static ck_status trim_rows(ck_top *op, ck_partition p, ck_op_ctx *ctx) {
    while (ck_partition_rows(op->table, p) > op->plan.keep) CK_TRY(ck_partition_erase_last(op->table, p, ctx->error));
    return CK_OK;
}

static ck_status trim_ranks(ck_top *op, ck_partition p, ck_op_ctx *ctx) {
    ck_range r;
    ck_row *row, *last = NULL;
    ck_view key;
    uint64_t rows = 0, groups = 0, leading = 0;
    if (ck_partition_rows(op->table, p) <= op->plan.keep) return CK_OK;
    ck_range_open(&r, op->table, p, (ck_view){0}, (ck_view){0});
    while (ck_range_next(&r, &row)) {
        if (!last || !ck_top_are_peers(&op->plan, op->table, last, row)) {
            groups++;
            leading = rows;
        }
        last = row;
        rows++;
        if ((op->plan.rank == CK_TOP_RANK ? leading + 1 : groups) <= op->plan.keep) continue;
        CK_TRY(key_of_row(op, row, &key, ctx));
        return ck_partition_erase_range(op->table, p, key, (ck_view){0}, NULL, ctx->error);
    }
    return CK_OK;
}

static ck_status touch(ck_top *op, const ck_batch *b, uint32_t k, uint32_t row, ck_op_ctx *ctx) {
    if (op->plan.final || op->plan.at_end) return CK_OK;
    ck_status s = ck_top_touch(&op->touched, &op->plan, op->table, op->partitions[k], op->hashes[k], b, row);
    return s == CK_OK ? CK_OK : key_failed(op, s, ctx);
}

/* ---- rows whose order key is made only if it is needed ---- */

/* Whether the first order column decides most comparisons, and what is set from the columns is what the key would give
 * back: it holds 0 for -0 and one NaN, and NULL only where it may be. */
static bool key_may_wait(const ck_top_plan *p, const ck_batch *b) {
    if (p->order_count == 0 || b->columns[p->order[0].column]->phys != CK_PHYS_I64) return false;
    for (uint32_t i = 0; i < p->order_count; i++) {
        const ck_column *c = b->columns[p->order[i].column];
        bool plain = c->phys == CK_PHYS_I64 || c->phys == CK_PHYS_BOOL || c->phys == CK_PHYS_I128 ||
                     c->phys == CK_PHYS_VIEW || (c->phys == CK_PHYS_NULL && p->order[i].nullable);
        if (!plain || (c->validity && !p->order[i].nullable)) return false;
    }
    return true;
}

/* Whether the row's key cannot be longer than keys may be: a byte takes two at most, a column 18 beside its text. */
static bool key_surely_fits(const ck_top_plan *p, const ck_batch *b, uint32_t row) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->order_count; i++) {
        const ck_column *c = b->columns[p->order[i].column];
        n += 18;
        if (c->phys == CK_PHYS_VIEW && !ck_column_is_null(c, row)) n += 2 * (size_t)c->views[row].length;
    }
    return n <= CK_KEY_BYTES_MAX;
}

typedef struct waiting {
    ck_top *op;
    const ck_batch *batch;
    uint32_t row;
} waiting;

static ck_status whole_key(void *arg, ck_view *key) {
    const waiting *w = arg;
    const ck_top_plan *p = &w->op->plan;
    ck_bytes_clear(&w->op->key);
    CK_TRY(ck_order_encode(p->order, p->order_count, w->batch, w->row, &w->op->key));
    *key = ck_bytes_as_view(&w->op->key);
    return CK_OK;
}

static ck_status fill_row(void *arg, ck_row *row) {
    const waiting *w = arg;
    const ck_top_plan *p = &w->op->plan;
    for (uint32_t i = 0; i < p->order_count; i++)
        CK_TRY(ck_table_set_field(w->op->table, row, p->partition.count + i, w->batch->columns[p->order[i].column],
                                  w->row));
    return CK_OK;
}

static ck_status insert_waiting(ck_top *op, const ck_batch *b, uint32_t k, ck_row **stored, ck_op_ctx *ctx) {
    uint32_t row = ck_batch_row(b, k);
    waiting w = {op, b, row};
    CK_TRY(touch(op, b, k, row, ctx));
    ck_bytes_clear(&op->other);
    ck_status s = ck_order_encode(op->plan.order, 1, b, row, &op->other);
    if (s != CK_OK) return key_failed(op, s, ctx);
    ck_order_source from = {ck_bytes_as_view(&op->other), whole_key, fill_row, &w};
    return ck_partition_upsert_from(op->table, op->partitions[k], &from, stored, NULL, ctx->error);
}

static ck_status insert_encoded(ck_top *op, const ck_batch *b, uint32_t k, bool full, ck_row **stored, ck_op_ctx *ctx) {
    uint32_t row = ck_batch_row(b, k);
    ck_partition p = op->partitions[k];
    encoded e;
    bool behind = false;
    *stored = NULL;
    ck_bytes_clear(&op->key);
    CK_TRY(encode(op, b, row, &e, ctx));
    if (full) CK_TRY(is_behind(op, p, &e, &behind, ctx));
    if (behind) return CK_OK;
    CK_TRY(touch(op, b, k, row, ctx));
    return ck_partition_upsert(op->table, p, key_of(op, &e), stored, NULL, ctx->error);
}

static ck_status append_row(ck_top *op, const ck_batch *b, uint32_t k, bool may_wait, ck_op_ctx *ctx) {
    uint32_t row = ck_batch_row(b, k);
    ck_partition p = op->partitions[k];
    ck_row *stored;
    bool full = is_full(op, p);
    int c = full ? against_last(op, b, row, p) : -1;
    if (c > 0) return CK_OK;
    if (c < 0 && may_wait && !ck_column_is_null(b->columns[op->plan.order[0].column], row) &&
        key_surely_fits(&op->plan, b, row))
        CK_TRY(insert_waiting(op, b, k, &stored, ctx));
    else
        CK_TRY(insert_encoded(op, b, k, c == 0, &stored, ctx));
    if (!stored) return CK_OK; /* too late */
    ck_row_set_i64(stored, op->count_at, ck_row_i64(stored, op->count_at) + 1);
    return op->plan.rank == CK_TOP_ROW_NUMBER ? trim_rows(op, p, ctx) : trim_ranks(op, p, ctx);
}

/* ---- retract ---- */

typedef struct zero { /* a row whose count came to zero */
    ck_partition p;
    size_t at, bytes; /* of its order key in op->key */
} zero;

static ck_status change_row(ck_top *op, const ck_batch *b, uint32_t k, zero *zeros, uint32_t *zero_count,
                            ck_op_ctx *ctx) {
    uint32_t row = ck_batch_row(b, k);
    ck_partition p = op->partitions[k];
    ck_row *stored;
    encoded e;
    CK_TRY(encode(op, b, row, &e, ctx));
    CK_TRY(touch(op, b, k, row, ctx));
    CK_TRY(ck_partition_upsert(op->table, p, key_of(op, &e), &stored, NULL, ctx->error));
    int64_t old = ck_row_i64(stored, op->count_at), now = old + ck_batch_weight(b, row);
    if (now < 0 && op->plan.slot.ttl_us) { /* of a row that has been forgotten */
        now = 0;
        ck_op_count(ctx, "unmatched_rows", 1);
    }
    ck_row_set_i64(stored, op->count_at, now);
    op->negative += (now < 0) - (old < 0);
    if (now == 0)
        zeros[(*zero_count)++] = (zero){p, e.at, e.bytes};
    else
        op->key.n = e.at;
    return CK_OK;
}

/* Rows that are still at zero go. A partition ends with its last row, so each row is erased once: those found at zero
 * are marked first, which tells them from what was listed twice. */
static ck_status erase_zeros(ck_top *op, const zero *zeros, uint32_t n, ck_op_ctx *ctx) {
    const int64_t marked = INT64_MIN;
    zero *gone = ck_arena_array(ctx->arena, n, sizeof *gone);
    uint32_t count = 0;
    if (n && !gone) return ck_nomem(ctx->error, ctx->mem, n * sizeof *gone);
    for (uint32_t i = 0; i < n; i++) {
        ck_row *stored;
        CK_TRY(ck_partition_upsert(op->table, zeros[i].p, (ck_view){op->key.p + zeros[i].at, zeros[i].bytes}, &stored,
                                   NULL, ctx->error));
        if (ck_row_i64(stored, op->count_at) != 0) continue;
        ck_row_set_i64(stored, op->count_at, marked);
        gone[count++] = zeros[i];
    }
    for (uint32_t i = 0; i < count; i++)
        CK_TRY(ck_partition_erase(op->table, gone[i].p, (ck_view){op->key.p + gone[i].at, gone[i].bytes}, ctx->error));
    return CK_OK;
}

static ck_status change_rows(ck_top *op, const ck_batch *b, ck_op_ctx *ctx) {
    zero *zeros = ck_arena_array(ctx->arena, b->sel_count, sizeof *zeros);
    uint32_t n = 0;
    if (!zeros) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *zeros);
    ck_bytes_clear(&op->key);
    for (uint32_t k = 0; k < b->sel_count; k++) CK_TRY(change_row(op, b, k, zeros, &n, ctx));
    return erase_zeros(op, zeros, n, ctx);
}

ck_status ck_top_batch(ck_top *op, const ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0 || op->plan.limit == 0) return CK_OK;
    ck_key_hash(&op->plan.partition, b, ck_table_seed(op->table), op->hashes);
    ck_keys keys = {&op->plan.partition, b, op->hashes, b->sel_count};
    CK_TRY(ck_table_partitions(op->table, &keys, true, op->partitions, ctx->error));
    if (op->plan.windowed) CK_TRY(ck_top_windows_note(op, b, ctx));
    if (op->plan.retract) return change_rows(op, b, ctx);
    bool may_wait = key_may_wait(&op->plan, b);
    for (uint32_t k = 0; k < b->sel_count; k++) CK_TRY(append_row(op, b, k, may_wait, ctx));
    return CK_OK;
}
