/* A batch against the other side: who meets whom, and what has to be said about it. */
#include "operator/join_int.h"

/* ---- beginning ---- */

static void leave_out_nulls(ck_join *j, const ck_batch *b) {
    ck_join_run *r = &j->run;
    const ck_key_spec *keys = &j->plan.sides[r->side].keys;
    r->matchable_count = r->n;
    for (uint32_t k = 0; k < keys->count; k++) {
        const ck_column *c = b->columns[keys->columns[k]];
        if (j->plan.null_safe[k] || (c->phys != CK_PHYS_NULL && !c->validity)) continue;
        uint32_t m = 0;
        for (uint32_t i = 0; i < r->matchable_count; i++) {
            r->matchable[m] = r->matchable[i];
            m += !ck_column_is_null(c, r->row[r->matchable[i]]);
        }
        r->matchable_count = m;
    }
}

ck_status ck_join_run_begin(ck_join *j, uint32_t side, ck_batch *b, const int64_t *counts, ck_op_ctx *ctx) {
    (void)ctx;
    ck_join_run *r = &j->run;
    CK_ASSERT(r->kind == CK_JOIN_RUN_NONE);
    r->kind = CK_JOIN_RUN_ROWS;
    r->side = side, r->n = b->sel_count, r->keeps = false;
    r->batch = ck_batch_ref(b);
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t row = ck_batch_row(b, k);
        r->row[k] = (uint16_t)row;
        r->matchable[k] = (uint16_t)k;
        r->weight[k] = counts ? counts[k] : ck_batch_weight(b, row);
    }
    memset(r->partners, 0, r->n * sizeof *r->partners);
    leave_out_nulls(j, b);
    r->walked = true;
    r->walk = (ck_list_walk){0};
    r->pair_count = r->pair_at = r->finished = r->due_count = r->due_at = 0;
    return CK_OK;
}

void ck_join_run_end(ck_join *j) {
    ck_batch_unref(&j->run.batch);
    j->run.kind = CK_JOIN_RUN_NONE;
}

ck_status ck_join_select(ck_join *j, const uint16_t *live, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    if (n == r->batch->sel_count) {
        *out = ck_batch_ref(r->batch);
    } else {
        for (uint32_t i = 0; i < n; i++) j->at[i] = r->row[live[i]];
        *out = ck_batch_select(r->batch, j->at, n);
        if (!*out) return ck_nomem(ctx->error, ctx->mem, n * sizeof *j->at);
    }
    ck_key_hash(&j->plan.sides[r->side].keys, *out, ck_table_seed(j->tables[r->side].table), r->hashes);
    return CK_OK;
}

ck_status ck_join_look_up(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    const ck_join_table *other = &j->tables[!r->side];
    uint32_t n = r->matchable_count;
    ck_batch *b;
    if (n == 0) return CK_OK;
    CK_TRY(ck_join_select(j, r->matchable, n, &b, ctx));
    ck_keys keys = {&j->plan.sides[r->side].keys, b, r->hashes, n};
    ck_status s;
    if (other->side->counted) {
        s = ck_table_find(other->table, &keys, (const ck_row **)j->rows, ctx->error);
        for (uint32_t i = 0; s == CK_OK && i < n; i++)
            r->partners[r->matchable[i]] = j->rows[i] ? ck_join_count(other, j->rows[i]) : 0;
    } else {
        s = ck_table_lists(other->table, &keys, n == r->n ? r->heads : j->heads, ctx->error);
        if (n < r->n) memset(r->heads, 0, r->n * sizeof *r->heads);
        for (uint32_t i = 0; n < r->n && i < n; i++) r->heads[r->matchable[i]] = j->heads[i];
        r->walked = false;
    }
    ck_batch_unref(&b);
    return s;
}

/* ---- what is due ---- */

static void due(ck_join_run *r, uint16_t key, ck_row *row, int64_t times) {
    r->due[r->due_count++] = (ck_join_due){key, row, times};
}

/* A row whose partners come and go, on the side that is not the batch's. */
static void changed(ck_join *j, uint16_t k, ck_row *row, int64_t times, bool was, bool is) {
    ck_join_run *r = &j->run;
    if (ck_join_left_only(j->plan.type)) {
        bool shown = (j->plan.type == CK_JOIN_SEMI) == is;
        if (was != is) due(r, CK_JOIN_NO_ROW, row, shown ? times : -times);
        return;
    }
    if (!was && is) due(r, CK_JOIN_NO_ROW, row, -times); /* no longer padded */
    due(r, k, row, r->weight[k] * times);
    if (was && !is) due(r, CK_JOIN_NO_ROW, row, times);
}

static void meet(ck_join *j, uint16_t k, ck_row *row) {
    ck_join_run *r = &j->run;
    const ck_join_table *other = &j->tables[!r->side];
    int64_t times = ck_join_count(other, row);
    if (r->kind == CK_JOIN_RUN_KEYS) {
        bool shown = (j->plan.type == CK_JOIN_SEMI) == (r->weight[k] > 0);
        due(r, CK_JOIN_NO_ROW, row, shown ? times : -times);
        return;
    }
    if (j->plan.final && times <= 0) return;
    r->partners[k] += times;
    if (other->side->matches) {
        int64_t before = ck_row_i64(row, other->matches_at), after = before + r->weight[k];
        ck_row_set_i64(row, other->matches_at, after);
        if (j->plan.build == CK_JOIN_BOTH) {
            changed(j, k, row, times, before > 0, after > 0);
            return;
        }
    }
    if (!ck_join_left_only(j->plan.type)) due(r, k, row, r->weight[k] * times);
}

/* Whether something is said of a row when it has met all its partners. */
static bool finishes(const ck_join *j) {
    const ck_join_run *r = &j->run;
    if (r->kind == CK_JOIN_RUN_KEYS) return false;
    return j->plan.sides[r->side].preserved || (r->side == 0 && ck_join_left_only(j->plan.type));
}

static void finish_row(ck_join *j, uint32_t k) {
    ck_join_run *r = &j->run;
    bool met = r->partners[k] > 0, wanted = r->side == 0 && j->plan.type == CK_JOIN_SEMI;
    if (met == wanted) due(r, (uint16_t)k, NULL, r->weight[k]);
}

/* ---- pairs ---- */

ck_status ck_join_drop_settled(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    uint32_t n = r->pair_count;
    r->pair_count = r->pair_at = 0;
    if (r->kind != CK_JOIN_RUN_KEYS || j->plan.sides[1].retract || n == 0) return CK_OK;
    return ck_table_erase(j->tables[0].table, r->pair_row, n, ctx->error);
}

static ck_status next_pairs(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    const ck_join_table *other = &j->tables[!r->side];
    CK_TRY(ck_join_drop_settled(j, ctx));
    r->pair_at = 0;
    r->pair_count =
        ck_table_walk_lists(other->table, r->heads, r->n, &r->walk, r->pair_key, r->pair_row, CK_BATCH_ROWS_MAX);
    r->walked = r->pair_count < CK_BATCH_ROWS_MAX;
    if (j->eval && r->pair_count) CK_TRY(ck_join_check_pairs(j, ctx));
    if (other->side->matches) return ck_table_touch_rows(other->table, r->pair_row, r->pair_count, ctx->error);
    return CK_OK;
}

/* ---- entries ---- */

static inline void add_entry(ck_join_entries *e, uint16_t key, ck_row *row, int8_t weight) {
    e->minus |= weight < 0;
    e->no_key |= key == CK_JOIN_NO_ROW;
    e->repeated |= e->n > 0 && key <= e->key[e->n - 1];
    e->key[e->n] = key, e->row[e->n] = row, e->weight[e->n] = weight;
    e->n++;
}

/* false: no room for the next. */
static bool pay(ck_join_run *r, ck_join_entries *e, uint32_t max) {
    for (; r->due_at < r->due_count; r->due_at++) {
        ck_join_due *d = &r->due[r->due_at];
        for (; d->times > 0; d->times--) {
            if (e->n == max) return false;
            add_entry(e, d->key, d->row, 1);
        }
        for (; d->times < 0; d->times++) {
            if (e->n == max) return false;
            add_entry(e, d->key, d->row, -1);
        }
    }
    r->due_at = r->due_count = 0;
    return true;
}

/* Nothing but pairs of weight one. */
static bool is_plain(const ck_join *j) {
    const ck_join_side *l = &j->plan.sides[0], *r = &j->plan.sides[1];
    return j->plan.type == CK_JOIN_INNER && !l->retract && !r->retract;
}

static void add_plain(ck_join_run *r, ck_join_entries *e, uint32_t max) {
    uint32_t left = r->pair_count - r->pair_at, n = left < max - e->n ? left : max - e->n, at = r->pair_at, to = e->n;
    bool repeated = false;
    memcpy(e->key + to, r->pair_key + at, n * sizeof *e->key);
    memcpy(e->row + to, r->pair_row + at, n * sizeof *e->row);
    memset(e->weight + to, 1, n);
    for (uint32_t i = to ? to : 1; i < to + n; i++) repeated |= e->key[i] <= e->key[i - 1];
    e->repeated |= repeated;
    e->n += n;
    r->pair_at += n;
}

ck_status ck_join_run_step(ck_join *j, bool *done, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    ck_join_entries *e = &j->entries;
    uint32_t max = ctx->settings->batch_rows;
    bool finish = finishes(j), plain = is_plain(j);
    e->n = 0;
    e->minus = e->no_key = e->repeated = *done = false;
    while (pay(r, e, max)) {
        if (r->pair_at < r->pair_count) {
            if (plain) {
                if (e->n == max) return CK_OK;
                add_plain(r, e, max);
            } else if (finish && r->finished < r->pair_key[r->pair_at]) {
                finish_row(j, r->finished++);
            } else {
                meet(j, r->pair_key[r->pair_at], r->pair_row[r->pair_at]);
                r->pair_at++;
            }
        } else if (!r->walked) {
            if (e->n) return CK_OK; /* entries point at pairs in hand: those of the next may move rows */
            CK_TRY(next_pairs(j, ctx));
        } else if (finish && r->finished < r->n) {
            finish_row(j, r->finished++);
        } else {
            *done = true;
            return CK_OK;
        }
    }
    return CK_OK;
}
