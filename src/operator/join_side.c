/* The tables of a join's sides: rows in, rows out, keys counted. */
#include "operator/join_int.h"

#include "operator/accumulator.h"

#define TOUCHED (INT64_C(1) << 61)

ck_status ck_join_table_open(ck_join *j, uint32_t side, ck_op_ctx *ctx) {
    ck_join_table *t = &j->tables[side];
    t->side = &j->plan.sides[side];
    CK_TRY(ck_state_table(ctx->state, &t->side->slot, &t->table, ctx->error));
    const ck_row_layout *l = ck_table_layout(t->table);
    if (t->side->retract) t->count_at = l->fields[t->side->count_field].offset;
    if (t->side->matches) t->matches_at = l->fields[t->side->matches_field].offset;
    return CK_OK;
}

/* ---- in ---- */

static ck_status set_columns(const ck_join_table *t, ck_row *const *rows, const ck_batch *b, const uint16_t *at,
                             uint32_t n, ck_op_ctx *ctx) {
    const ck_join_side *s = t->side;
    for (uint32_t c = 0; c < s->width; c++) {
        if (s->field_of[c] < s->keys.count) continue;
        ck_status st = ck_table_set_column(t->table, rows, n, s->field_of[c], b->columns[c], at);
        if (st == CK_INVALID)
            return ck_fail(ctx->error, CK_INVALID, "join: NULL in the column \"%s\", which is NOT NULL",
                           s->schema->fields[c].name);
        if (st != CK_OK) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    }
    return CK_OK;
}

static ck_status store_append(ck_join *j, const ck_batch *b, const uint16_t *live, ck_op_ctx *ctx) {
    const ck_join_table *t = &j->tables[j->run.side];
    ck_keys keys = {&t->side->keys, b, j->run.hashes, b->sel_count};
    CK_TRY(ck_table_list_add(t->table, &keys, j->rows, ctx->error));
    CK_TRY(set_columns(t, j->rows, b, b->sel, b->sel_count, ctx));
    for (uint32_t i = 0; t->side->matches && i < b->sel_count; i++)
        ck_row_set_i64(j->rows[i], t->matches_at, j->run.partners[live[i]]);
    return CK_OK;
}

/* A row that is all key is told from nothing else: its order field is 0. */
static ck_status with_zeros(ck_join *j, ck_batch **b, ck_op_ctx *ctx) {
    if (!j->zeros) {
        j->zeros = ck_column_new(j->mem, CK_PHYS_I64, CK_BATCH_ROWS_MAX);
        if (!j->zeros) return ck_nomem(ctx->error, j->mem, CK_BATCH_ROWS_MAX * sizeof(int64_t));
        memset(j->zeros->i64, 0, CK_BATCH_ROWS_MAX * sizeof(int64_t));
    }
    uint32_t width = (*b)->column_count;
    ck_batch *wide = ck_batch_new(ctx->mem, width + 1, (*b)->row_count, (*b)->sel != NULL, false);
    if (!wide) return ck_nomem(ctx->error, ctx->mem, (*b)->bytes);
    for (uint32_t c = 0; c <= width; c++) {
        ck_column *col = ck_column_ref(c < width ? (*b)->columns[c] : j->zeros);
        ck_batch_set_column(wide, c, &col);
    }
    wide->sel_count = (*b)->sel_count;
    if (wide->sel) memcpy(wide->sel, (*b)->sel, wide->sel_count * sizeof *wide->sel);
    ck_batch_unref(b);
    *b = wide;
    return CK_OK;
}

/* The batch's rows by their whole key: with which hash, and how many of each are there. */
static ck_status look_at_rows(ck_join *j, uint32_t side, ck_batch **b, uint64_t *hashes, int64_t *there,
                              ck_op_ctx *ctx) {
    const ck_join_table *t = &j->tables[side];
    const ck_key_spec *spec = &t->side->row_key;
    if (!t->side->counted && spec->columns[spec->count - 1] == t->side->width) CK_TRY(with_zeros(j, b, ctx));
    ck_key_hash(spec, *b, ck_table_seed(t->table), hashes);
    ck_keys keys = {spec, *b, hashes, (*b)->sel_count};
    CK_TRY(ck_table_find(t->table, &keys, (const ck_row **)j->rows, ctx->error));
    for (uint32_t k = 0; k < keys.n; k++) there[k] = j->rows[k] ? ck_row_i64(j->rows[k], t->count_at) : 0;
    return CK_OK;
}

/* Rows of the batch with one hash (of 64 bits) are one row here; the first of them keeps the count. */
static uint32_t first_of(const uint64_t *hashes, uint16_t *slots, uint32_t k) {
    uint32_t at = (uint32_t)(hashes[k] >> 17) % (2 * CK_BATCH_ROWS_MAX);
    for (; slots[at]; at = (at + 1) % (2 * CK_BATCH_ROWS_MAX))
        if (hashes[slots[at] - 1] == hashes[k]) return slots[at] - 1u;
    slots[at] = (uint16_t)(k + 1);
    return k;
}

ck_status ck_join_drop_unmatched(ck_join *j, uint32_t side, ck_batch **b, ck_op_ctx *ctx) {
    const ck_join_side *s = &j->plan.sides[side];
    uint32_t n = (*b)->sel_count, kept = 0;
    if (!s->slot.ttl_us || !s->retract || !(*b)->weights) return CK_OK;
    uint64_t *hashes = ck_arena_alloc(ctx->arena, n * sizeof *hashes);
    int64_t *there = ck_arena_alloc(ctx->arena, n * sizeof *there);
    uint16_t *slots = ck_arena_array(ctx->arena, 2 * CK_BATCH_ROWS_MAX, sizeof *slots);
    if (!hashes || !there || !slots) return ck_nomem(ctx->error, ctx->mem, n * sizeof *hashes);
    ck_batch *wide = ck_batch_ref(*b);
    ck_status st = look_at_rows(j, side, &wide, hashes, there, ctx);
    ck_batch_unref(&wide);
    if (st != CK_OK) return st;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t row = ck_batch_row(*b, k), first = first_of(hashes, slots, k);
        int weight = ck_batch_weight(*b, row);
        if (weight < 0 && there[first] <= 0) continue;
        there[first] += weight;
        j->sel[kept++] = (uint16_t)row;
    }
    if (kept == n) return CK_OK;
    ck_op_count(ctx, "unmatched_rows", n - kept);
    ck_batch *some = ck_batch_select(*b, j->sel, kept);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *j->sel);
    ck_batch_unref(b);
    *b = some;
    return CK_OK;
}

static ck_status store_retract(ck_join *j, ck_batch **b, const uint16_t *live, ck_op_ctx *ctx) {
    const ck_join_table *t = &j->tables[j->run.side];
    const ck_key_spec *spec = &t->side->row_key;
    if (spec->columns[spec->count - 1] == t->side->width) CK_TRY(with_zeros(j, b, ctx));
    uint32_t n = (*b)->sel_count, negative = 0;
    ck_key_hash(spec, *b, ck_table_seed(t->table), j->run.hashes);
    ck_keys keys = {spec, *b, j->run.hashes, n};
    CK_TRY(ck_table_upsert(t->table, &keys, j->rows, NULL, ctx->error));
    for (uint32_t i = 0; i < n; i++) {
        int64_t count = ck_row_i64(j->rows[i], t->count_at) + j->run.weight[live[i]];
        negative += count == -1 && j->run.weight[live[i]] < 0;
        ck_row_set_i64(j->rows[i], t->count_at, count);
        if (t->side->matches) ck_row_set_i64(j->rows[i], t->matches_at, j->run.partners[live[i]]);
    }
    if (negative) ck_op_count(ctx, "negative_rows", negative);
    return ck_rows_erase_zero(t->table, j->rows, n, t->count_at, ctx);
}

ck_status ck_join_store(ck_join *j, const uint16_t *live, uint32_t n, ck_op_ctx *ctx) {
    if (n == 0) return CK_OK;
    ck_batch *b;
    CK_TRY(ck_join_select(j, live, n, &b, ctx));
    ck_status s =
        j->tables[j->run.side].side->retract ? store_retract(j, &b, live, ctx) : store_append(j, b, live, ctx);
    ck_batch_unref(&b);
    return s;
}

/* ---- keys ---- */

/* Only keys that are there now and were not before the batch, or the other way round. */
static uint32_t crossings(ck_join *j, const ck_join_table *t, uint32_t n, uint16_t *which, int64_t *weight) {
    const ck_join_run *r = &j->run;
    uint32_t found = 0, first_count = 0;
    uint16_t *first = j->at;
    if (!t->side->retract) {
        for (uint32_t i = 0; i < n; i++) {
            which[found] = (uint16_t)i, weight[found] = 1;
            found += j->fresh[i] != 0;
        }
        return found;
    }
    for (uint32_t i = 0; i < n; i++) { /* a row's first touch is marked in its count */
        int64_t count = ck_row_i64(j->rows[i], t->count_at);
        if (count < TOUCHED / 2) {
            j->counts[first_count] = count;
            first[first_count++] = (uint16_t)i;
            count += TOUCHED;
        }
        ck_row_set_i64(j->rows[i], t->count_at, count + r->weight[r->matchable[i]]);
    }
    for (uint32_t f = 0; f < first_count; f++) {
        int64_t before = j->counts[f], after = ck_row_i64(j->rows[first[f]], t->count_at) - TOUCHED;
        ck_row_set_i64(j->rows[first[f]], t->count_at, after);
        which[found] = first[f], weight[found] = after > 0 ? 1 : -1;
        found += (before > 0) != (after > 0);
    }
    return found;
}

ck_status ck_join_count_keys(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    const ck_join_table *t = &j->tables[r->side];
    uint16_t which[CK_BATCH_ROWS_MAX];
    int64_t weight[CK_BATCH_ROWS_MAX];
    uint32_t n = r->matchable_count, found = 0;
    ck_batch *b;
    if (n) {
        CK_TRY(ck_join_select(j, r->matchable, n, &b, ctx));
        ck_keys keys = {&t->side->keys, b, r->hashes, n};
        ck_status s = ck_table_upsert(t->table, &keys, j->rows, j->fresh, ctx->error);
        if (s == CK_OK) found = crossings(j, t, n, which, weight);
        if (s == CK_OK && t->side->retract) s = ck_rows_erase_zero(t->table, j->rows, n, t->count_at, ctx);
        ck_batch_unref(&b);
        if (s != CK_OK) return s;
    }
    for (uint32_t i = 0; i < found; i++) { /* which[] rises, so nothing is overwritten that is still to be read */
        r->row[i] = r->row[r->matchable[which[i]]];
        r->matchable[i] = (uint16_t)i;
        r->weight[i] = weight[i];
        r->partners[i] = 0;
    }
    r->kind = CK_JOIN_RUN_KEYS, r->keeps = false;
    r->n = r->matchable_count = found;
    return CK_OK;
}

ck_status ck_join_check_single(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    const ck_join_table *t = &j->tables[r->side];
    uint32_t n = r->matchable_count;
    if (n == 0) return CK_OK;
    ck_batch *b;
    CK_TRY(ck_join_select(j, r->matchable, n, &b, ctx));
    ck_keys keys = {&t->side->keys, b, r->hashes, n};
    ck_status s = ck_table_lists(t->table, &keys, j->heads, ctx->error);
    ck_batch_unref(&b);
    if (s != CK_OK) return s;
    memset(j->counts, 0, n * sizeof *j->counts);
    ck_list_walk walk = {0};
    for (uint32_t m; (m = ck_table_walk_lists(t->table, j->heads, n, &walk, j->at, j->rows, CK_BATCH_ROWS_MAX)) > 0;)
        for (uint32_t i = 0; i < m; i++)
            if ((j->counts[j->at[i]] += ck_join_count(t, j->rows[i])) > 1)
                return ck_fail(ctx->error, CK_DATA, "a subquery that stands for one value gave more than one row");
    return CK_OK;
}

/* ---- out ---- */

static ck_status rows_batch(const ck_join_table *t, ck_row *const *rows, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    const ck_join_side *s = t->side;
    *out = ck_batch_new(ctx->mem, s->width, n, false, false);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, n);
    for (uint32_t c = 0; c < s->width; c++) {
        ck_column *col;
        if (ck_table_gather_column(t->table, rows, n, NULL, n, s->field_of[c], ctx->mem, &col) != CK_OK) {
            ck_batch_unref(out);
            return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        }
        ck_batch_set_column(*out, c, &col);
    }
    return CK_OK;
}

ck_status ck_join_take_out(ck_join *j, uint32_t side, bool unmatched, ck_batch **out, bool *end, ck_op_ctx *ctx) {
    const ck_join_table *t = &j->tables[side];
    ck_row *taken[1024];
    uint32_t max =
        ctx->settings->batch_rows < CK_ARRAY_COUNT(taken) ? ctx->settings->batch_rows : CK_ARRAY_COUNT(taken);
    uint32_t n = ck_table_scan_next(t->table, &j->scan, j->rows, max), m = 0;
    *out = NULL;
    *end = n == 0;
    if (n == 0) return CK_OK;
    for (uint32_t i = 0; i < n; i++) {
        int64_t count = ck_join_count(t, j->rows[i]);
        if (j->plan.final && count <= 0) continue;
        if (unmatched && ck_row_i64(j->rows[i], t->matches_at) > 0) continue;
        j->counts[m] = count;
        taken[m++] = j->rows[i];
    }
    if (m) CK_TRY(rows_batch(t, taken, m, out, ctx));
    ck_status s = ck_table_erase(t->table, j->rows, n, ctx->error);
    if (s != CK_OK) ck_batch_unref(out);
    return s;
}
