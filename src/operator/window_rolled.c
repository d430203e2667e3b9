/* DISTINCT in a hop whose windows are made of halves, which sets would be copied into for each window. What goes
 * through a set can be taken out again, so it has a plan of its own, as over input that changes: the set of each slice
 * goes into one bucket once, and out of it once, and its results take the place of those of the window's groups. */
#include "operator/window_int.h"

static const char *text_of(ck_arena *a, const char *slot) {
    return ck_name_cut(a, ck_arena_printf(a, "rolled:%s", slot));
}

/* The slot under a name of its own: it is never of a snapshot, but that of the slices is. */
static ck_status rename_slot(ck_arena *a, const ck_slot_schema **slot, ck_error *err) {
    ck_slot_schema *copy = CK_ARENA_NEW(a, ck_slot_schema);
    const char *name = text_of(a, (*slot)->slot);
    if (!copy || !name) return ck_nomem(err, a->mem, sizeof *copy);
    *copy = **slot;
    copy->slot = name;
    *slot = copy;
    return CK_OK;
}

static ck_status name_slots(ck_group_plan *p, const ck_slot_schema *windows, ck_arena *a, ck_error *err) {
    p->slot.slot = "rolled";
    p->slot.state_type = "window_rolled";
    p->slot.order = windows->order;
    p->slot.order_count = windows->order_count;
    p->slot.bucketed = true;
    for (uint32_t i = 0; i < p->distinct_count; i++) CK_TRY(rename_slot(a, &p->distincts[i].slot, err));
    for (uint32_t i = 0; i < p->acc_count; i++)
        if (p->accs[i]->side) CK_TRY(rename_slot(a, &p->accs[i]->side, err));
    return CK_OK;
}

ck_status ck_window_rolled_plan(ck_window_agg *op, ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root,
                                const ck_order_field *within, const uint32_t *columns, uint32_t n, ck_error *err) {
    ck_window_rolled *r = &op->rolled;
    ck_op_input changing = spec->inputs[0];
    ck_op_spec counted = *spec;
    if (!op->halved || !op->plan.distinct_count || op->lateness_us) return CK_OK;
    changing.mode = CK_MODE_RETRACT;
    counted.inputs = &changing;
    ck_status s = ck_group_plan_make_sets(&r->plan, a, &counted, root, within, columns, n, &op->plan, NULL);
    if (s == CK_NOMEM) return ck_nomem(err, a->mem, sizeof r->plan);
    r->on = s == CK_OK;
    for (uint32_t i = 0; r->on && i < r->plan.acc_count; i++) r->on = r->plan.accs[i]->unmerge != NULL;
    return r->on ? name_slots(&r->plan, &op->plan.slot, a, err) : CK_OK;
}

ck_status ck_window_rolled_open(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_window_rolled *r = &op->rolled;
    r->to = INT64_MIN;
    if (!r->on) return CK_OK;
    r->sets = ck_arena_array(&op->arena, r->plan.distinct_count, sizeof(ck_table *));
    if (!r->sets) return ck_nomem(ctx->error, op->arena.mem, r->plan.distinct_count * sizeof(ck_table *));
    CK_TRY(ck_state_table(ctx->state, &r->plan.slot, &r->table, ctx->error));
    for (uint32_t i = 0; i < r->plan.acc_count; i++) CK_TRY(ck_acc_open(r->plan.accs[i], r->table, ctx));
    for (uint32_t i = 0; i < r->plan.distinct_count; i++)
        CK_TRY(ck_state_table(ctx->state, r->plan.distincts[i].slot, &r->sets[i], ctx->error));
    return CK_OK;
}

/* ---- rolling ---- */

static bool same_text(const char *x, const char *y) { return x && y ? strcmp(x, y) == 0 : x == y; }

/* Where the slices have the values of a set: over append input several filters of one argument share one. */
static ck_window_sets source_of(const ck_window_agg *op, uint32_t set) {
    const ck_window_rolled *r = &op->rolled;
    const ck_distinct_plan *want = &r->plan.distincts[set];
    for (uint32_t i = 0; i < op->plan.distinct_count; i++) {
        const ck_distinct_plan *d = &op->plan.distincts[i];
        for (uint32_t m = 0; strcmp(d->arg_text, want->arg_text) == 0 && m < d->member_count; m++)
            if (same_text(d->members[m].filter_text, want->members[0].filter_text))
                return (ck_window_sets){&r->plan, r->table, r->sets, set, i, d->member_count > 1 ? (int32_t)m : -1};
    }
    CK_ASSERT(false); /* both plans are of the same aggregates */
    return (ck_window_sets){0};
}

static ck_status roll(ck_window_agg *op, int sign, int64_t slice, uint32_t *merged, ck_op_ctx *ctx) {
    for (; op->set < op->rolled.plan.distinct_count; op->set++) {
        const ck_window_sets to = source_of(op, op->set);
        CK_TRY(ck_window_merge_set(op, &to, sign, slice, CK_WINDOW_SCRATCH, merged, ctx));
    }
    op->set = 0;
    return CK_OK;
}

ck_status ck_window_rolled_gather(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_window_rolled *r = &op->rolled;
    uint32_t merged = 0;
    int64_t oldest = op->end - op->window.size_us + 1;
    if (!r->moving) r->slice = r->to >= oldest ? r->to + 1 : oldest;
    r->moving = true;
    for (; ck_window_next_slice(op, r->slice, op->end, &r->slice); r->slice++)
        CK_TRY(roll(op, 1, r->slice, &merged, ctx));
    r->moving = false;
    r->to = op->end;
    return CK_OK;
}

ck_status ck_window_rolled_end(ck_window_agg *op, ck_op_ctx *ctx) {
    uint32_t merged = 0;
    int64_t slice, gone = op->end - op->window.size_us + op->window.slide_us;
    while (ck_window_next_slice(op, INT64_MIN, gone, &slice)) {
        if (op->rolled.to != INT64_MIN) CK_TRY(roll(op, -1, slice, &merged, ctx));
        CK_TRY(ck_window_drop(op, slice, ctx));
    }
    return ck_window_next_slice(op, INT64_MIN, op->end, &slice) ? CK_OK : ck_window_rolled_forget(op, ctx);
}

ck_status ck_window_rolled_forget(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_window_rolled *r = &op->rolled;
    if (r->to == INT64_MIN) return CK_OK;
    r->to = INT64_MIN;
    return ck_window_drop_of(op, &r->plan, r->table, r->sets, CK_WINDOW_SCRATCH, ctx);
}

/* ---- results ---- */

/* A group without any value. */
static const ck_row *blank_row(const ck_table *t, ck_op_ctx *ctx) {
    const ck_row_layout *l = ck_table_layout(t);
    ck_row *row = ck_arena_alloc(ctx->arena, l->row_bytes);
    if (!row) return NULL;
    memset(row, 0, l->row_bytes);
    memset(row, 0xff, l->null_bytes);
    return row;
}

/* The groups of these keys. */
static ck_status find_groups(ck_window_agg *op, const ck_batch *keys, uint32_t n, const ck_row **out, ck_op_ctx *ctx) {
    const ck_key_spec *spec = &op->plan.own_keys;
    ck_table *to;
    CK_TRY(ck_table_bucket(op->rolled.table, CK_WINDOW_SCRATCH, true, &to, ctx->error));
    uint64_t *hashes = ck_keys_hash(spec, keys, to, ctx);
    const ck_row *blank = blank_row(to, ctx);
    if (!hashes || !blank) return ck_nomem(ctx->error, ctx->mem, n * sizeof *hashes);
    ck_keys k = {spec, keys, hashes, n};
    CK_TRY(ck_table_find(to, &k, out, ctx->error));
    for (uint32_t i = 0; i < n; i++)
        if (!out[i]) out[i] = blank;
    return CK_OK;
}

ck_status ck_window_rolled_results(ck_window_agg *op, int64_t end, ck_table *bucket, ck_row **rows, uint32_t n,
                                   ck_column **results, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->rolled.plan;
    const ck_row **groups = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *groups);
    ck_column **own = ck_arena_array(ctx->arena, p->result_count + 1u, sizeof *own);
    ck_batch *keys = NULL, *named = NULL;
    if (!groups || !own) return ck_nomem(ctx->error, ctx->mem, n * sizeof *groups);
    ck_status s = ck_window_keys_of(op, CK_WINDOW_SCRATCH, bucket, rows, n, &keys, ctx);
    if (s == CK_OK) s = ck_window_keys_of(op, end, bucket, rows, n, &named, ctx);
    if (s == CK_OK) s = find_groups(op, keys, n, groups, ctx);
    const ck_groups g = {groups, n, keys, &p->own_side_keys, named};
    if (s == CK_OK) s = ck_group_results(p, &g, own, ctx);
    for (uint32_t i = 0, k = 0; s == CK_OK && i < op->plan.result_count; i++) {
        if (!ck_result_is_of_set(&op->plan.results[i])) continue;
        ck_column_unref(&results[i]);
        results[i] = own[k++];
    }
    ck_batch_unref(&keys);
    ck_batch_unref(&named);
    return s;
}
