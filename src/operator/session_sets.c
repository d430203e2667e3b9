/* Values of DISTINCT aggregates in sessions: a set a session, its values in the order of (start, value) within a key,
 * so that those of one session are a range. When two sessions become one, the values of one go to the other, and those
 * it had not are counted there; so a value is counted once, however sessions came together. */
#include "operator/session_int.h"

static ck_view start_key(int64_t start, char *out) { return ck_instant_key(start, out); }

/* The partition of each key in a set's table, 0: it has none. */
static ck_status partitions_in(const ck_session_agg *op, ck_table *set, const ck_batch *keys, ck_partition *out,
                               ck_op_ctx *ctx) {
    uint64_t *hashes = ck_keys_hash(&op->plan.own_keys, keys, set, ctx);
    ck_keys k = {&op->plan.own_keys, keys, hashes, keys->sel_count};
    return hashes ? ck_table_partitions(set, &k, false, out, ctx->error) : CK_NOMEM;
}

ck_status ck_session_sets_erase(ck_session_agg *op, const ck_batch *keys, uint32_t n, ck_op_ctx *ctx) {
    ck_partition *of = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *of);
    const int64_t *starts = keys->columns[op->plan.keys.count]->i64;
    if (!of) return ck_nomem(ctx->error, ctx->mem, n * sizeof *of);
    for (uint32_t s = 0; s < op->plan.distinct_count; s++) {
        ck_table *set = op->lanes.sets[s];
        ck_partition ended = 0;
        CK_TRY(partitions_in(op, set, keys, of, ctx));
        for (uint32_t i = 0; i < n; i++) {
            char lo[CK_INSTANT_KEY_BYTES], hi[CK_INSTANT_KEY_BYTES];
            if (of[i] == 0 || of[i] == ended) continue;
            uint64_t erased, had = ck_partition_rows(set, of[i]);
            CK_TRY(ck_partition_erase_range(set, of[i], start_key(starts[i], lo), start_key(starts[i] + 1, hi), &erased,
                                            ctx->error));
            if (erased == had) ended = of[i];
        }
    }
    return CK_OK;
}

/* ---- moving ---- */

typedef struct move {
    ck_session_agg *op;
    uint32_t set;
    const ck_batch *keys; /* of the session that goes */
    int64_t to;
    ck_row *dst;
    ck_partition partition; /* of its key in the set's table */
    ck_bytes key;           /* an order key, for a while */
} move;

/* The next values of the session that goes, as a column; *last: how the key of the last of them ends. */
static ck_status take_values(move *m, ck_table *set, ck_column **values, uint32_t *n, ck_op_ctx *ctx) {
    uint32_t field = m->op->plan.keys.count + 1;
    int64_t from = m->keys->columns[m->op->plan.keys.count]->i64[0];
    char lo[CK_INSTANT_KEY_BYTES], hi[CK_INSTANT_KEY_BYTES];
    ck_row **rows = ck_arena_alloc(ctx->arena, CK_BATCH_ROWS_MAX * sizeof *rows), *row;
    ck_range r;
    *n = 0;
    *values = NULL;
    if (!rows) return ck_nomem(ctx->error, ctx->mem, CK_BATCH_ROWS_MAX * sizeof *rows);
    ck_range_open(&r, set, m->partition, start_key(from, lo), start_key(from + 1, hi));
    while (*n < CK_BATCH_ROWS_MAX && ck_range_next(&r, &row)) rows[(*n)++] = row;
    if (*n == 0) return CK_OK;
    if (ck_table_gather_column(set, rows, *n, NULL, *n, field, ctx->mem, values) != CK_OK)
        return ck_nomem(ctx->error, ctx->mem, *n * sizeof(ck_strview));
    ck_bytes_clear(&m->key);
    ck_status s = ck_row_order_key(set, rows[*n - 1], &m->key);
    if (s == CK_OK) s = ck_bytes_char(&m->key, 0); /* the first key behind it */
    if (s == CK_OK) return CK_OK;
    ck_column_unref(values);
    return ck_nomem(ctx->error, ctx->mem, m->key.capacity);
}

/* A batch whose rows have the key, the start they come to, and the values where the argument stands. */
static ck_status as_rows(const move *m, uint32_t arg, ck_column **values, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    const ck_group_plan *p = &m->op->plan;
    uint32_t width = p->input->field_count;
    ck_batch *b = ck_batch_new(ctx->mem, width + 1, n, false, false);
    ck_column *start = b ? ck_column_new(ctx->mem, CK_PHYS_I64, n) : NULL;
    uint16_t *first = ck_arena_array(ctx->arena, n, sizeof *first);
    ck_status s = start && first ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof *first);
    for (uint32_t i = 0; s == CK_OK && i < n; i++) start->i64[i] = m->to;
    if (start) ck_batch_set_column(b, width, &start);
    for (uint32_t k = 0; s == CK_OK && k < p->keys.count; k++) {
        ck_column_builder builder;
        if (b->columns[p->keys.columns[k]] || p->keys.columns[k] == arg) continue;
        s = ck_column_builder_init(&builder, ctx->mem, p->keys.types[k], n);
        if (s == CK_OK) s = ck_build_gather(&builder, m->keys->columns[k], first, n);
        ck_column *c = s == CK_OK ? ck_column_builder_finish(&builder) : NULL;
        ck_column_builder_destroy(&builder);
        if (!c) s = ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        if (c) ck_batch_set_column(b, p->keys.columns[k], &c);
    }
    if (s == CK_OK)
        ck_batch_set_column(b, arg, values);
    else
        ck_batch_unref(&b);
    *out = b;
    return s;
}

/* Counts those that are new where they come to. */
static ck_status count_values(const move *m, const ck_batch *b, const uint16_t *fresh, uint32_t n, ck_op_ctx *ctx) {
    const ck_group_plan *p = &m->op->plan;
    ck_row **rows = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *rows);
    if (!rows) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) rows[i] = m->dst;
    ck_lane lane = {rows, fresh, NULL, n};
    for (uint32_t i = 0; n && i < p->acc_count; i++) {
        ck_acc *a = p->accs[i];
        if (a->distinct == (int64_t)m->set && !a->shares_side) CK_TRY(a->update(a, &lane, b, &p->side_keys, ctx));
    }
    return CK_OK;
}

static ck_status put_values(move *m, ck_table *set, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &m->op->plan.distincts[m->set];
    uint32_t keys = m->op->plan.keys.count, count = 0;
    ck_order_spec order[2] = {{b->column_count - 1, m->op->plan.side_keys.types[keys], false, false, false},
                              {d->spec.columns[keys], d->spec.types[keys], false, false, false}};
    uint16_t *fresh = ck_arena_alloc(ctx->arena, n * sizeof *fresh);
    ck_bytes key;
    ck_status s = fresh ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof *fresh);
    ck_bytes_init(&key, ctx->mem, SIZE_MAX);
    for (uint32_t i = 0; s == CK_OK && i < n; i++) {
        ck_row *row;
        bool is_new = false;
        ck_bytes_clear(&key);
        s = ck_order_encode(order, 2, b, i, &key);
        if (s != CK_OK) s = ck_nomem(ctx->error, ctx->mem, key.capacity); /* it has stood in a key before */
        if (s == CK_OK) s = ck_partition_upsert(set, m->partition, ck_bytes_as_view(&key), &row, &is_new, ctx->error);
        if (is_new) fresh[count++] = (uint16_t)i;
    }
    ck_bytes_destroy(&key);
    return s == CK_OK ? count_values(m, b, fresh, count, ctx) : s;
}

/* Some values of one set; *n 0: there are no more. They are put before they go, so that the key's partition stays. */
static ck_status move_some(move *m, ck_table *set, uint32_t *n, ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &m->op->plan.distincts[m->set];
    int64_t from = m->keys->columns[m->op->plan.keys.count]->i64[0];
    char lo[CK_INSTANT_KEY_BYTES];
    ck_column *values;
    ck_batch *b = NULL;
    CK_TRY(take_values(m, set, &values, n, ctx));
    if (*n == 0) return CK_OK;
    ck_status s = as_rows(m, d->spec.columns[m->op->plan.keys.count], &values, *n, &b, ctx);
    if (s == CK_OK) s = put_values(m, set, b, *n, ctx);
    if (s == CK_OK)
        s = ck_partition_erase_range(set, m->partition, start_key(from, lo), ck_bytes_as_view(&m->key), NULL,
                                     ctx->error);
    ck_column_unref(&values);
    ck_batch_unref(&b);
    return s;
}

ck_status ck_session_sets_move(ck_session_agg *op, const ck_batch *keys, int64_t to, ck_row *dst, ck_op_ctx *ctx) {
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < op->plan.distinct_count; i++) {
        ck_table *set = op->lanes.sets[i];
        move m = {.op = op, .set = i, .keys = keys, .to = to, .dst = dst};
        uint32_t n = 1;
        s = partitions_in(op, set, keys, &m.partition, ctx);
        ck_bytes_init(&m.key, ctx->mem, SIZE_MAX);
        while (s == CK_OK && m.partition && n) s = move_some(&m, set, &n, ctx);
        ck_bytes_destroy(&m.key);
    }
    return s;
}
