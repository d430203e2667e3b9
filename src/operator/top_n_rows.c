/* Rows of a ranked top-N, in an ordered slot. Over append input a row that comes behind the last of a full partition
 * can never matter and is not taken; what is pushed out of the top goes. Over retract input every row is kept with a
 * signed count; rows that come to zero go at the end of the batch, when nothing refers to them any more. */
#include "operator/top_n_int.h"

enum { KEY_BYTES_MAX = CK_KEY_BYTES_MAX + 64 };

void ck_top_init(ck_top *op, ck_mem mem) {
    op->mem = mem;
    ck_top_touched_init(&op->touched, mem);
    ck_top_images_init(&op->flush.fresh, mem);
    ck_bytes_init(&op->key, mem, SIZE_MAX);
    ck_bytes_init(&op->other, mem, (size_t)KEY_BYTES_MAX * 4);
}

void ck_top_destroy(ck_top *op) {
    ck_top_touched_destroy(&op->touched);
    ck_top_flush_destroy(&op->flush, op->mem);
    ck_bytes_destroy(&op->key);
    ck_bytes_destroy(&op->other);
}

ck_status ck_top_open(ck_top *op, ck_op_ctx *ctx) {
    CK_TRY(ck_state_table(ctx->state, &op->plan.slot, &op->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(op->table);
    op->count_at = layout->fields[layout->value_first].offset;
    return CK_OK;
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

/* Whether the first order column alone says that a row comes too late in a full partition: most rows do, and need no
 * key. */
static bool is_plainly_behind(ck_top *op, const ck_batch *b, uint32_t row, ck_partition p) {
    const ck_order_spec *o = &op->plan.order[0];
    const ck_column *c = b->columns[o->column];
    const ck_row_field *f = &ck_table_layout(op->table)->fields[op->plan.partition.count];
    ck_row *last;
    if (op->plan.rank == CK_TOP_RANK && op->plan.peer_count == 0) return false; /* all share the first rank */
    if (c->phys != CK_PHYS_I64 || f->phys != CK_PHYS_I64 || ck_column_is_null(c, row)) return false;
    if (!ck_partition_last(op->table, p, &last) || ck_row_null(last, f->null_bit)) return false;
    int64_t x = c->i64[row], y = ck_row_i64(last, f->offset);
    return o->descending ? x < y : x > y;
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
    while (ck_partition_rows(op->table, p) > op->plan.keep) {
        ck_row *last;
        ck_view key;
        ck_partition_last(op->table, p, &last);
        CK_TRY(key_of_row(op, last, &key, ctx));
        CK_TRY(ck_partition_erase(op->table, p, key, ctx->error));
    }
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
    if (op->plan.final) return CK_OK;
    ck_status s = ck_top_touch(&op->touched, &op->plan, op->table, op->partitions[k], op->hashes[k], b, row);
    return s == CK_OK ? CK_OK : key_failed(op, s, ctx);
}

static ck_status append_row(ck_top *op, const ck_batch *b, uint32_t k, ck_op_ctx *ctx) {
    uint32_t row = ck_batch_row(b, k);
    ck_partition p = op->partitions[k];
    ck_row *stored;
    encoded e;
    bool full = is_full(op, p), behind = full && is_plainly_behind(op, b, row, p);
    if (behind) return CK_OK;
    ck_bytes_clear(&op->key);
    CK_TRY(encode(op, b, row, &e, ctx));
    if (full) CK_TRY(is_behind(op, p, &e, &behind, ctx));
    if (behind) return CK_OK;
    CK_TRY(touch(op, b, k, row, ctx));
    CK_TRY(ck_partition_upsert(op->table, p, key_of(op, &e), &stored, NULL, ctx->error));
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
    if (op->plan.retract) return change_rows(op, b, ctx);
    for (uint32_t k = 0; k < b->sel_count; k++) CK_TRY(append_row(op, b, k, ctx));
    return CK_OK;
}
