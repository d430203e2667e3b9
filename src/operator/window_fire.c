/* What a window says when it is over: a row for each of its groups. Windows fire in the order of their ends; small ones
 * share batches. */
#include "operator/window_int.h"

ck_status ck_window_enter(ck_window_agg *op, int64_t end, ck_table *bucket, bool create, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    for (uint32_t i = 0; i < p->acc_count; i++) p->accs[i]->table = bucket;
    for (uint32_t i = 0; i < p->distinct_count; i++)
        CK_TRY(ck_table_bucket(op->sets[i], end, create, &op->lanes.sets[i], ctx->error));
    return CK_OK;
}

/* ---- groups as rows ---- */

ck_status ck_window_field_of(const ck_table *t, ck_row *const *rows, uint32_t n, uint32_t field, const ck_type *type,
                             ck_column **out, ck_op_ctx *ctx) {
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, ctx->mem, type, n);
    if (s == CK_OK) s = ck_table_gather_field(t, (const ck_row *const *)rows, n, field, &b);
    *out = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

/* The keys of some groups and behind them what tells groups of one key apart: the window's end, the start of attached
 * ones. */
ck_status ck_window_keys_of(const ck_window_agg *op, int64_t end, const ck_table *bucket, ck_row *const *rows,
                            uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    const ck_key_spec *keys = &op->plan.own_side_keys;
    uint32_t key_count = op->plan.keys.count;
    *out = ck_batch_new(ctx->mem, keys->count, n, false, false);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < keys->count; i++) {
        ck_column *c = NULL;
        if (i == key_count) {
            c = ck_column_new(ctx->mem, CK_PHYS_I64, n);
            for (uint32_t k = 0; c && k < n; k++) c->i64[k] = end;
            if (!c) s = ck_nomem(ctx->error, ctx->mem, n * sizeof(int64_t));
        } else {
            s = ck_window_field_of(bucket, rows, n, i, keys->types[i], &c, ctx);
        }
        if (s == CK_OK) ck_batch_set_column(*out, i, &c);
    }
    if (s != CK_OK) ck_batch_unref(out);
    return s;
}

static ck_status put_times(ck_window_agg *op, int64_t end, const ck_batch *keys, uint32_t n) {
    ck_column_builder *to = op->out.columns + op->plan.keys.count;
    if (op->window.kind == CK_WINDOW_ATTACHED)
        CK_TRY(ck_build_gather(&to[0], keys->columns[op->plan.keys.count + 1], op->identity, n));
    int64_t start = op->window.kind == CK_WINDOW_ATTACHED ? 0 : ck_window_start_of(&op->window, end);
    for (uint32_t i = 0; i < n; i++) {
        if (op->window.kind != CK_WINDOW_ATTACHED) CK_TRY(ck_build_i64(&to[0], start));
        CK_TRY(ck_build_i64(&to[1], end));
        CK_TRY(ck_build_i64(&to[2], ck_window_time_of(end)));
    }
    return CK_OK;
}

static ck_status put_rows(ck_window_agg *op, int64_t end, const ck_batch *keys, ck_column *const *results, uint32_t n) {
    uint32_t key_count = op->plan.keys.count;
    ck_column_builder *to = op->out.columns;
    for (uint32_t i = 0; i < key_count; i++) CK_TRY(ck_build_gather(&to[i], keys->columns[i], op->identity, n));
    CK_TRY(put_times(op, end, keys, n));
    for (uint32_t i = 0; i < op->plan.result_count; i++)
        CK_TRY(ck_build_gather(&to[key_count + CK_WINDOW_COLUMNS + i], results[i], op->identity, n));
    for (uint32_t i = 0; i < n; i++) ck_batch_builder_row(&op->out, 1);
    return CK_OK;
}

/* An error names the group by its window, not by the bucket it was put together in. */
static ck_status results_of(ck_window_agg *op, int64_t end, int64_t beside, ck_table *bucket, ck_row **rows,
                            ck_groups *g, ck_column **results, ck_op_ctx *ctx) {
    ck_status s = ck_group_results(&op->plan, g, results, ctx);
    if (s != CK_DATA || end == beside) return s;
    ck_batch *named;
    CK_TRY(ck_window_keys_of(op, end, bucket, rows, g->n, &named, ctx));
    g->named = named;
    s = ck_group_results(&op->plan, g, results, ctx);
    ck_batch_unref(&named);
    return s;
}

/* Groups of a window that is said by the clock, without those that had said it before they were restored. */
static ck_status leave_said(const ck_window_agg *op, int64_t end, int64_t beside, ck_table *bucket, ck_row **rows,
                            uint32_t *n, ck_op_ctx *ctx) {
    uint32_t left = 0, all = *n;
    uint64_t *hashes = ck_arena_alloc(ctx->arena, (all + 1u) * sizeof *hashes);
    ck_batch *keys;
    if (!hashes) return ck_nomem(ctx->error, ctx->mem, all * sizeof *hashes);
    CK_TRY(ck_window_keys_of(op, beside, bucket, rows, all, &keys, ctx));
    ck_key_fnv(&op->plan.own_keys, keys, hashes);
    for (uint32_t i = 0; i < all; i++) {
        uint32_t group = ck_key_group_of_hash(hashes[i], ctx->settings->key_groups) - op->behind.first;
        CK_ASSERT(group < op->behind.count);
        if (!ck_event_clock_passed(op->behind.watermarks[group], end)) rows[left++] = rows[i];
    }
    ck_batch_unref(&keys);
    *n = left;
    return CK_OK;
}

ck_status ck_window_put_groups(ck_window_agg *op, int64_t end, int64_t beside, ck_table *bucket, ck_row **rows,
                               uint32_t n, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    uint32_t live = 0;
    if (op->behind.watermarks) CK_TRY(leave_said(op, end, beside, bucket, rows, &n, ctx));
    for (uint32_t i = 0; i < n; i++)
        if (!p->row_count || ck_row_i64(rows[i], p->row_count->offset[0]) > 0) rows[live++] = rows[i];
    if (live == 0) return CK_OK;
    ck_batch *keys;
    ck_column **results = ck_arena_array(ctx->arena, p->result_count + 1u, sizeof(ck_column *));
    if (!results) return ck_nomem(ctx->error, ctx->mem, p->result_count * sizeof(ck_column *));
    CK_TRY(ck_window_keys_of(op, beside, bucket, rows, live, &keys, ctx));
    ck_groups g = {(const ck_row *const *)rows, live, keys, &p->own_side_keys, NULL};
    ck_status s = results_of(op, end, beside, bucket, rows, &g, results, ctx);
    if (s == CK_OK && op->rolled.on && beside != end)
        s = ck_window_rolled_results(op, end, bucket, rows, live, results, ctx);
    if (s == CK_OK && put_rows(op, end, keys, results, live) != CK_OK)
        s = ck_nomem(ctx->error, ctx->mem, live * sizeof(ck_strview));
    for (uint32_t i = 0; i < p->result_count; i++) ck_column_unref(&results[i]);
    ck_batch_unref(&keys);
    return s;
}

ck_status ck_window_emit(ck_window_agg *op, ck_op_ctx *ctx) {
    CK_TRY(ck_window_said_emit(op, ctx));
    if (op->out.row_count == 0) return CK_OK;
    ck_batch *b = ck_batch_builder_finish(&op->out);
    if (!b) return ck_nomem(ctx->error, ctx->mem, op->out.row_count * sizeof(ck_strview));
    return ck_op_emit(ctx, 0, &b);
}

/* ---- a window goes ---- */

/* Carries of sums stand beside the window, by key. */
static ck_status erase_values(ck_window_agg *op, ck_acc *a, int64_t end, ck_table *bucket, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    for (uint32_t n; (n = ck_table_scan_next(bucket, &scan, op->found, CK_BATCH_ROWS_MAX)) > 0;) {
        ck_batch *keys;
        CK_TRY(ck_window_keys_of(op, end, bucket, op->found, n, &keys, ctx));
        ck_groups g = {NULL, n, keys, &op->plan.own_side_keys, NULL};
        ck_status s = ck_acc_erase_values(a, &g, ctx);
        ck_batch_unref(&keys);
        CK_TRY(s);
    }
    return CK_OK;
}

static ck_status erase_carries(ck_window_agg *op, ck_table *side, int64_t end, ck_table *bucket, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    for (uint32_t n; (n = ck_table_scan_next(bucket, &scan, op->found, CK_BATCH_ROWS_MAX)) > 0;) {
        ck_batch *keys;
        const ck_row **rows = ck_arena_alloc(ctx->arena, n * sizeof *rows);
        if (!rows) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
        CK_TRY(ck_window_keys_of(op, end, bucket, op->found, n, &keys, ctx));
        ck_groups g = {NULL, n, keys, &op->plan.own_side_keys, NULL};
        ck_status s = ck_groups_find(&g, side, rows, ctx);
        ck_batch_unref(&keys);
        CK_TRY(s);
        uint32_t count = 0;
        for (uint32_t i = 0; i < n; i++)
            if (rows[i]) op->found[count++] = (ck_row *)(uintptr_t)rows[i];
        if (count) CK_TRY(ck_table_erase(side, op->found, count, ctx->error));
    }
    return CK_OK;
}

ck_status ck_window_drop_of(ck_window_agg *op, const ck_group_plan *p, ck_table *table, ck_table **sets, int64_t end,
                            ck_op_ctx *ctx) {
    ck_table *bucket;
    CK_TRY(ck_table_bucket(table, end, false, &bucket, ctx->error));
    for (uint32_t i = 0; bucket && i < p->acc_count; i++) {
        ck_acc *a = p->accs[i];
        if (!a->side || a->shares_side || ck_table_row_count(a->side_table) == 0) continue;
        CK_TRY(a->side->hashed ? erase_carries(op, a->side_table, end, bucket, ctx)
                               : erase_values(op, a, end, bucket, ctx));
    }
    bool set_stays = op->listing && end == CK_WINDOW_SCRATCH; /* it is that of all slices */
    for (uint32_t i = 0; !set_stays && i < p->distinct_count; i++)
        CK_TRY(ck_table_drop_bucket(sets[i], end, ctx->error));
    return ck_table_drop_bucket(table, end, ctx->error);
}

ck_status ck_window_drop(ck_window_agg *op, int64_t end, ck_op_ctx *ctx) {
    ck_window_slices_drop(op, end);
    return ck_window_drop_of(op, &op->plan, op->table, op->sets, end, ctx);
}

/* ---- firing ---- */

/* Ends at or below it have been said. */
static int64_t said_until(const ck_window_agg *op) {
    int64_t w = op->clock.watermark, said = w == CK_WATERMARK_MIN || w == CK_WATERMARK_MAX ? w : w + 1;
    return op->end > said ? op->end : said;
}

/* Of slices, or of a bucket from before there were slices. By the clock a bucket says that its window is open. */
static bool next_end_apart(const ck_window_agg *op, int64_t said, int64_t *end) {
    const ck_window *w = &op->window;
    int64_t slice, counted;
    bool any = ck_window_next_slice(op, INT64_MIN, INT64_MAX, &slice);
    if (any && w->kind == CK_WINDOW_CUMULATE)
        *end = slice + 1;
    else if (any)
        *end = ck_window_end_from(w, said == INT64_MIN || slice > said ? slice : said + 1);
    bool all = !op->lateness_us || said == INT64_MIN;
    if (!ck_window_next_counted(op, all ? INT64_MIN : said + 1, &counted)) return any;
    if (!any || counted < *end) *end = counted;
    return true;
}

/* Without slices and lateness every bucket is one that has not; with allowed
 * lateness those that have stay a while. */
bool ck_window_next_end(const ck_window_agg *op, int64_t *end) {
    bool all = !op->window.slice_us && !op->lateness_us;
    int64_t said = all ? INT64_MIN : said_until(op), first;
    if (said == INT64_MAX) return false;
    if (op->window.apart_us) return next_end_apart(op, said, end);
    if (op->window.slice_us && op->window.kind == CK_WINDOW_HOP) {
        if (!ck_window_next_slice(op, INT64_MIN, INT64_MAX, &first)) return false;
        *end = ck_window_end_from(&op->window, said == INT64_MIN || first > said ? first : said + 1);
        return true;
    }
    return ck_table_first_bucket(op->table, said == INT64_MIN ? said : said + 1, end);
}

static bool next_due(const ck_window_agg *op, int64_t *end) {
    return ck_window_next_end(op, end) && ck_event_clock_passed(op->target, *end);
}

/* The slices of the window in one bucket. */
static ck_status put_together(ck_window_agg *op, ck_op_ctx *ctx) {
    const ck_window *w = &op->window;
    int64_t slice, oldest = w->kind == CK_WINDOW_HOP ? op->end - w->size_us + 1 : op->end - 1;
    bool hop = w->slice_us && w->kind == CK_WINDOW_HOP;
    bool any = op->moving || (w->apart_us && ck_window_next_slice(op, oldest, op->end, &slice));
    if (op->rolled.on && any) CK_TRY(ck_window_rolled_gather(op, ctx));
    if (w->apart_us ? any && hop : hop)
        return op->halved ? ck_window_gather_halves(op, ctx) : ck_window_gather_slices(op, ctx);
    op->made = any ? slice : op->end;
    return CK_OK;
}

/* The sets of its slices, which roll for themselves, into those of the window. */
static ck_status fold_sets(ck_window_agg *op, uint32_t *merged, ck_op_ctx *ctx) {
    ck_window_rolled *r = &op->rolled;
    if (!r->folding) r->slice = op->end - op->window.size_us + 1;
    r->folding = true;
    for (; ck_window_next_slice(op, r->slice, op->end, &r->slice); r->slice++) {
        CK_TRY(ck_window_merge_sets(op, 1, r->slice, op->end, merged, ctx));
        op->set = 0;
    }
    r->folding = false;
    return CK_OK;
}

/* A window that has a bucket - it stays for late rows, or has some from before there were slices - is said from there.
 */
static ck_status fold(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_table *own;
    uint32_t merged = 0;
    if (!op->folding) {
        op->from = op->made;
        if (!op->window.apart_us || op->made == op->end) return CK_OK;
        CK_TRY(ck_table_bucket(op->table, op->end, op->lateness_us > 0, &own, ctx->error));
        if (!own) return CK_OK;
        op->folding = true;
        op->scan = (ck_table_scan){0};
    }
    if (!op->rolled.folding) CK_TRY(ck_window_merge_bucket(op, 1, op->made, op->end, &merged, ctx));
    if (op->rolled.on) CK_TRY(fold_sets(op, &merged, ctx));
    op->folding = false;
    op->from = op->end;
    return CK_OK;
}

static ck_status begin_window(ck_window_agg *op, int64_t end, ck_op_ctx *ctx) {
    ck_table *bucket;
    op->end = end;
    if (!op->folding) CK_TRY(put_together(op, ctx));
    CK_TRY(fold(op, ctx));
    CK_TRY(ck_table_bucket(op->table, op->from, false, &bucket, ctx->error));
    op->open = true;
    op->scan = (ck_table_scan){0};
    return ck_window_enter(op, op->from, bucket, false, ctx);
}

/* Slices that no later window has. */
static ck_status drop_slices(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t slice;
    if (op->made == CK_WINDOW_SCRATCH) CK_TRY(ck_window_drop(op, CK_WINDOW_SCRATCH, ctx));
    while (ck_window_next_slice(op, INT64_MIN, op->end - op->window.size_us + op->window.slide_us, &slice))
        CK_TRY(ck_window_drop(op, slice, ctx));
    return CK_OK;
}

static ck_status end_window(ck_window_agg *op, ck_op_ctx *ctx) {
    bool slices = op->window.slice_us > 0, hop = slices && op->window.kind == CK_WINDOW_HOP;
    if (slices && !hop) CK_TRY(ck_window_hand_on(op, ctx));
    if (slices && !hop && op->made != op->end) CK_TRY(ck_window_drop(op, op->made, ctx));
    if (op->rolled.on) CK_TRY(ck_window_rolled_end(op, ctx));
    if (hop)
        CK_TRY(op->halved    ? ck_window_end_halves(op, ctx)
               : op->rolling ? ck_window_roll_off(op, ctx)
                             : drop_slices(op, ctx));
    if ((!hop || op->window.apart_us) && op->lateness_us == 0) CK_TRY(ck_window_drop(op, op->end, ctx));
    op->open = false;
    return CK_OK;
}

static ck_status forget_closed(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t end;
    while (op->lateness_us && ck_table_first_bucket(op->table, op->forgotten_to, &end) && end <= CK_WINDOW_END_MAX &&
           (op->target == CK_WATERMARK_MAX || end - 1 + op->lateness_us <= op->target)) {
        op->forgotten_to = end + 1;
        if (!ck_window_is_slice(&op->window, end)) CK_TRY(ck_window_drop(op, end, ctx));
    }
    return CK_OK;
}

/* One piece of the window that is open: rows, or its end. */
static ck_status go_on(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_table *bucket;
    bool waits = ck_window_said_takes(op);
    uint32_t has = waits ? op->said.n : op->out.row_count;
    if ((waits ? op->out.row_count : op->said.n) > 0) CK_TRY(ck_window_emit(op, ctx));
    CK_TRY(ck_table_bucket(op->table, op->from, false, &bucket, ctx->error));
    uint32_t n = op->moving ? 0 : ck_table_scan_next(bucket, &op->scan, op->found, op->out.capacity - has);
    if (n == 0) return end_window(op, ctx);
    return waits ? ck_window_said_add(op, op->end, bucket, op->found, n, ctx)
                 : ck_window_put_groups(op, op->end, op->from, bucket, op->found, n, ctx);
}

ck_status ck_window_fire(ck_window_agg *op, ck_op_ctx *ctx) {
    for (int64_t end = op->end; op->open || op->moving || op->folding || next_due(op, &end);) {
        if (op->out.row_count == op->out.capacity || op->said.n == op->out.capacity) {
            CK_TRY(ck_window_emit(op, ctx));
            return CK_MORE;
        }
        CK_TRY(op->open ? go_on(op, ctx) : begin_window(op, op->moving || op->folding ? op->end : end, ctx));
    }
    CK_TRY(ck_window_emit(op, ctx));
    CK_TRY(forget_closed(op, ctx));
    op->clock.watermark = op->target;
    op->end = INT64_MIN;
    return CK_OK;
}
