/* FOR SYSTEM_TIME AS OF: each row of the left meets the version of the right side that was valid at its time.
 *
 *   event  The right side's rows are versions, each valid from its event time to the next one of its key. A left row
 *          waits until the watermark has come to its time, since until then a version may come that it is to meet.
 *          Versions nobody can ask for any more go; the newest at or before the watermark stays.
 *   now    The right side's one row of each key as it stands when the left row comes. Where the right side ends, left
 *          rows wait for its end.
 *
 * What was said is never taken back. */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/params_int.h"
#include "operator/temporal_int.h"

#define EVERYTHING (INT64_MAX / 2)

/* ---- making ---- */

static void temporal_free(ck_temporal_join *op) {
    ck_partition_timers_destroy(&op->left.timers);
    ck_partition_timers_destroy(&op->right.timers);
    if (op->eval) ck_eval_free(op->eval);
    ck_bytes_destroy(&op->is);
    ck_bytes_destroy(&op->was);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status make_plan(ck_temporal_join *op, ck_arena *a, const ck_op_spec *spec, yyjson_val **root,
                           ck_error *err) {
    static const char *const known[] = {"kind",      "as_of",    "left_keys", "right_keys", "right_time",
                                        "left_time", "residual", "left_late", NULL};
    CK_TRY(ck_params_inputs(spec, 2, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(a, spec, known, root, err));
    yyjson_val *kind = yyjson_obj_get(*root, "kind"), *as_of = yyjson_obj_get(*root, "as_of");
    op->outer = yyjson_equals_str(kind, "left");
    op->now = yyjson_equals_str(as_of, "now");
    if ((!op->outer && !yyjson_equals_str(kind, "inner")) || (!op->now && !yyjson_equals_str(as_of, "event")))
        return ck_fail(err, CK_INVALID, "%s (%s): kind is inner or left, as_of event or now", spec->type, spec->uid);
    op->right_ends = spec->inputs[1].bounded;
    op->right_changes = spec->inputs[1].mode == CK_MODE_RETRACT;
    if (spec->inputs[0].mode != CK_MODE_APPEND || (op->right_changes && !op->now))
        return ck_fail(err, CK_REFUSED, "%s (%s): its left side, and versions by event time, only take new rows",
                       spec->type, spec->uid);
    op->left.schema = spec->inputs[0].schema;
    op->right.schema = spec->inputs[1].schema;
    CK_TRY(ck_time_side_plan(a, &op->left, spec, *root, "left_keys", op->now ? NULL : "left_time", "left",
                             "temporal_join", err));
    CK_TRY(ck_time_side_plan(a, &op->right, spec, *root, "right_keys", op->now ? NULL : "right_time", "versions",
                             "temporal_join", err));
    CK_TRY(ck_late_read(a, spec, *root, "left_late", 0, &op->late, err));
    ck_late_timed_by(&op->late, op->left.time.time, op->left.time.millis);
    return ck_time_side_check(&op->left, &op->right, spec, false, err);
}

static ck_status temporal_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_temporal_join *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    yyjson_val *root;
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_partition_timers_init(&op->left.timers, mem);
    ck_partition_timers_init(&op->right.timers, mem);
    ck_bytes_init(&op->is, mem, SIZE_MAX);
    ck_bytes_init(&op->was, mem, SIZE_MAX);
    ck_status st = make_plan(op, &op->arena, spec, &root, err);
    if (st == CK_OK && !(op->output = ck_schema_copy(&op->arena, spec->schema)))
        st = ck_nomem(err, op->arena.mem, sizeof *op->output);
    if (st == CK_OK)
        st =
            ck_time_side_residual(&op->arena, mem, spec, root, op->left.schema, op->right.schema, &op->eval, NULL, err);
    if (st == CK_OK)
        *self = op;
    else
        temporal_free(op);
    return st;
}

static ck_status temporal_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                                ck_error *err) {
    ck_temporal_join *op = CK_ARENA_NEW(a, ck_temporal_join);
    ck_slot_schema *all = ck_arena_array(a, 3, sizeof *all);
    yyjson_val *root;
    if (!op || !all) return ck_nomem(err, a->mem, sizeof *op);
    *op = (ck_temporal_join){0};
    CK_TRY(make_plan(op, a, spec, &root, err));
    all[0] = op->left.slot;
    all[1] = op->right.slot;
    all[2] = *ck_event_clock_slot();
    *slots = all;
    *count = 3;
    return CK_OK;
}

static ck_status temporal_open(void *self, ck_op_ctx *ctx) {
    ck_temporal_join *op = self;
    int64_t ignored = 0;
    CK_TRY(ck_event_clock_open(&op->clock, op->now, ctx));
    CK_TRY(ck_time_side_open(&op->left, op->partitions, &op->next_seq, ctx));
    if (op->now && op->right_ends) ck_op_hold_input(ctx, 0, true);
    return ck_time_side_open(&op->right, op->partitions, &ignored, ctx);
}

/* ---- what is said ---- */

/* Live rows of b, one behind the other: a reference where they are that already. */
static ck_status dense(const ck_batch *b, const ck_schema *schema, ck_batch **out, ck_op_ctx *ctx) {
    if (!b->sel) {
        *out = ck_batch_ref((ck_batch *)(uintptr_t)b); /* counted, not changed */
        return CK_OK;
    }
    ck_batch_builder rows;
    ck_status s = ck_batch_builder_init(&rows, ctx->mem, schema, b->sel_count);
    if (s == CK_OK) s = ck_batch_builder_gather(&rows, b, b->sel, b->sel_count);
    *out = s == CK_OK ? ck_batch_builder_finish(&rows) : NULL;
    ck_batch_builder_destroy(&rows);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof(ck_strview));
}

/* The rows of `left`, dense, beside their versions. */
static ck_status beside(const ck_temporal_join *op, const ck_batch *left, ck_batch **out, ck_op_ctx *ctx) {
    uint32_t n = left->row_count, width = op->left.schema->field_count;
    ck_batch *b = ck_batch_new(ctx->mem, op->output->field_count, n, false, false);
    if (!b) return ck_nomem(ctx->error, ctx->mem, n);
    for (uint32_t c = 0; c < width; c++) {
        ck_column *column = ck_column_ref(left->columns[c]);
        ck_batch_set_column(b, c, &column);
    }
    ck_status s = ck_time_side_gather(&op->right, op->version, n, b, width, ctx);
    if (s == CK_OK)
        *out = b;
    else
        ck_batch_unref(&b);
    return s;
}

static uint32_t with_version(ck_temporal_join *op, uint32_t n) {
    uint32_t met = 0;
    for (uint32_t i = 0; i < n; i++) {
        op->sel[met] = (uint16_t)i;
        met += op->version[i] != NULL;
    }
    return met;
}

/* Versions the residual does not take are no versions. */
static ck_status check_residual(ck_temporal_join *op, const ck_batch *left, ck_op_ctx *ctx) {
    uint32_t n = left->row_count, met = with_version(op, n), count = 0;
    if (!op->eval || met == 0) return CK_OK;
    ck_batch *all = NULL;
    CK_TRY(beside(op, left, &all, ctx));
    ck_batch *some = ck_batch_select(all, op->sel, met);
    ck_batch_unref(&all);
    if (!some) return ck_nomem(ctx->error, ctx->mem, met * sizeof *op->sel);
    ck_eval_set_now(op->eval, ck_op_now_us(ctx));
    ck_status s = ck_eval_filter(op->eval, some, op->sel, &count, ctx->error);
    ck_batch_unref(&some);
    for (uint32_t i = 0, k = 0; s == CK_OK && i < n; i++) {
        bool passes = k < count && op->sel[k] == i;
        if (!passes) op->version[i] = NULL;
        k += passes;
    }
    return s;
}

static ck_status say(ck_temporal_join *op, const ck_batch *left, ck_op_ctx *ctx) {
    ck_batch *all = NULL, *out = NULL;
    CK_TRY(check_residual(op, left, ctx));
    uint32_t met = with_version(op, left->row_count);
    if (!op->outer && met == 0) return CK_OK;
    CK_TRY(beside(op, left, &all, ctx));
    if (op->outer || met == left->row_count) return ck_op_emit(ctx, 0, &all);
    out = ck_batch_select(all, op->sel, met);
    ck_batch_unref(&all);
    return out ? ck_op_emit(ctx, 0, &out) : ck_nomem(ctx->error, ctx->mem, met * sizeof *op->sel);
}

/* ---- rows of the left ---- */

/* The versions of rows whose partitions of the right side and times are known, rows of a partition one after the other
 * and in the order of their time. */
static void find_versions(ck_temporal_join *op, uint32_t n) {
    ck_range r;
    ck_row *now = NULL, *next = NULL;
    for (uint32_t i = 0; i < n; i++) {
        ck_partition p = op->partitions[i];
        if (i == 0 || p != op->partitions[i - 1] || op->us[i] < op->us[i - 1]) {
            now = next = NULL;
            if (p) {
                ck_range_open(&r, op->right.table, p, (ck_view){0}, (ck_view){0});
                if (!ck_range_next(&r, &next)) next = NULL;
            }
        }
        while (next && ck_row_i64(next, op->right.time_at) <= op->us[i]) {
            now = next;
            if (!ck_range_next(&r, &next)) next = NULL;
        }
        op->version[i] = now;
    }
}

/* Left rows that are due at `us`: the next of them are said and erased; CK_MORE: there may be others. */
static ck_status settle_rows(ck_temporal_join *op, int64_t us, ck_op_ctx *ctx) {
    ck_time_side *s = &op->left;
    char end[CK_INSTANT_KEY_BYTES], last[CK_TIME_KEY_BYTES];
    ck_view hi = ck_instant_key(us + 1, end);
    ck_partition *from = ck_arena_alloc(ctx->arena, CK_BATCH_ROWS_MAX * sizeof *from);
    uint32_t keys = 0, n = 0, most = ctx->settings->batch_rows;
    if (!from) return ck_nomem(ctx->error, ctx->mem, CK_BATCH_ROWS_MAX * sizeof *from);
    while (n < most && keys < CK_BATCH_ROWS_MAX && ck_partition_timers_take(&s->timers, us, &from[keys])) {
        ck_range r;
        ck_row *row;
        ck_range_open(&r, s->table, from[keys++], (ck_view){0}, hi);
        while (n < most && ck_range_next(&r, &row)) {
            op->us[n] = ck_row_i64(row, s->time_at);
            op->waited[n++] = row;
        }
    }
    if (keys == 0) return CK_OK;
    ck_batch *rows = ck_batch_new(ctx->mem, s->schema->field_count, n, false, false);
    if (!rows) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status st = ck_time_side_gather(s, op->waited, n, rows, 0, ctx);
    if (st == CK_OK && n)
        st = ck_time_side_partitions(&op->right, &s->keys, rows, false, op->hashes, op->partitions, ctx);
    if (st == CK_OK) find_versions(op, n);
    int64_t seq = n ? ck_row_i64(op->waited[n - 1], s->seq_at) : 0;
    if (st == CK_OK && n) st = say(op, rows, ctx);
    ck_batch_unref(&rows);
    for (uint32_t i = 0; st == CK_OK && i < keys; i++) { /* of the last key all, or as far as it was read */
        bool part = n == most && i + 1 == keys;
        st = ck_time_side_erase_before(s, from[i], part ? ck_time_key(op->us[n - 1], seq + 1, last) : hi, ctx);
    }
    return st == CK_OK ? CK_MORE : st;
}

/* What waits for a moment, and what is settled now: `lone` is said with NULLs at once. */
static ck_status take_left(ck_temporal_join *op, const ck_batch *b, bool wait, ck_op_ctx *ctx) {
    uint32_t kept = 0, lone = 0, late = 0, bad_times = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us = 0;
        bool timed = op->now || ck_window_row_time(&op->left.time, b->columns[op->left.time.time], row, &us);
        if (!timed || ck_time_side_null_key(&op->left.keys, b, row)) {
            op->lone[lone++] = (uint16_t)row;
            bad_times += !timed && !op->outer;
        } else if (!op->now && us <= op->clock.watermark) {
            op->late_rows[late++] = (uint16_t)row;
        } else {
            op->us[kept] = us;
            op->sel[kept++] = (uint16_t)row;
        }
    }
    if (bad_times) ck_op_count(ctx, "bad_time_rows", bad_times);
    CK_TRY(ck_late_drop(&op->late, b, op->late_rows, late, op->clock.watermark, ctx));
    ck_batch *some = kept ? ck_batch_select(b, op->sel, kept) : NULL, *rows = NULL;
    if (kept && !some) return ck_nomem(ctx->error, ctx->mem, kept * sizeof *op->sel);
    ck_status s = CK_OK;
    if (kept && wait) {
        s = ck_time_side_partitions(&op->left, &op->left.keys, some, true, op->hashes, op->partitions, ctx);
        for (uint32_t k = 0; s == CK_OK && k < kept; k++) {
            s = ck_time_side_keep(&op->left, op->partitions[k], b, op->sel[k], op->us[k], op->next_seq++, false, ctx);
            if (s == CK_OK) s = ck_time_side_timer(&op->left, op->partitions[k], op->us[k], ctx);
        }
    } else if (kept) {
        s = ck_time_side_partitions(&op->right, &op->left.keys, some, false, op->hashes, op->partitions, ctx);
        if (s == CK_OK) find_versions(op, kept);
        if (s == CK_OK) s = dense(some, op->left.schema, &rows, ctx);
        if (s == CK_OK) s = say(op, rows, ctx);
        ck_batch_unref(&rows);
    }
    ck_batch_unref(&some);
    if (s == CK_OK && op->outer) s = ck_time_side_pad(b, op->lone, lone, op->right.schema, false, ctx);
    return s;
}

/* ---- time ---- */

/* Of each key whose second version is at or before `us`, the newest of those stays. */
static ck_status forget_versions(ck_temporal_join *op, int64_t us, ck_op_ctx *ctx) {
    ck_time_side *s = &op->right;
    ck_partition p;
    for (uint32_t i = 0; i < CK_BATCH_ROWS_MAX; i++) {
        ck_range r;
        ck_row *row;
        int64_t newest = INT64_MIN, next = INT64_MAX;
        char key[CK_TIME_KEY_BYTES];
        uint64_t erased;
        if (!ck_partition_timers_take(&s->timers, us, &p)) return CK_OK;
        ck_range_open(&r, s->table, p, (ck_view){0}, (ck_view){0});
        while (next == INT64_MAX && ck_range_next(&r, &row)) {
            int64_t at = ck_row_i64(row, s->time_at);
            if (at <= us) newest = at;
            if (at > us) next = at;
        }
        if (newest == INT64_MIN) { /* the first stands alone before the second */
            newest = next;
            next = ck_range_next(&r, &row) ? ck_row_i64(row, s->time_at) : INT64_MAX;
        }
        if (newest == INT64_MAX) continue;
        CK_TRY(ck_partition_erase_range(s->table, p, (ck_view){0}, ck_time_key(newest, 0, key), &erased, ctx->error));
        if (next != INT64_MAX) CK_TRY(ck_time_side_timer(s, p, next, ctx));
    }
    return CK_MORE;
}

static ck_status settle(ck_temporal_join *op, int64_t us, ck_op_ctx *ctx) {
    op->settling = true;
    CK_TRY(settle_rows(op, us, ctx));
    if (!op->now) CK_TRY(forget_versions(op, us, ctx));
    op->settling = false;
    if (op->ended[0] && ck_table_row_count(op->left.table) == 0) ck_op_close_input(ctx, 1);
    return CK_OK;
}

static ck_status come_to(ck_temporal_join *op, int64_t watermark, ck_op_ctx *ctx) {
    if (op->now || watermark >= CK_EVENT_TIME_MAX || (watermark <= op->clock.watermark && !op->settling)) return CK_OK;
    op->clock.watermark = watermark;
    return settle(op, watermark, ctx);
}

static ck_status end(ck_temporal_join *op, uint32_t input, ck_op_ctx *ctx) {
    op->ended[input] = true;
    if (op->now && input == 1) ck_op_hold_input(ctx, 0, false);
    if (op->now ? op->ended[1] || !op->right_ends : op->ended[0] && op->ended[1]) return settle(op, EVERYTHING, ctx);
    if (op->ended[0] && ck_table_row_count(op->left.table) == 0) ck_op_close_input(ctx, 1);
    return CK_OK;
}

static ck_status temporal_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    ck_temporal_join *op = self;
    switch (ev->kind) {
    case CK_EVENT_BATCH:
        if (ev->batch->sel_count == 0) return CK_OK;
        if (input == 0) return take_left(op, ev->batch, op->now ? op->right_ends && !op->ended[1] : true, ctx);
        return op->now ? ck_temporal_take_current(op, ev->batch, ctx) : ck_temporal_take_versions(op, ev->batch, ctx);
    case CK_EVENT_WATERMARK: return come_to(op, ev->watermark.value, ctx);
    case CK_EVENT_END: return end(op, input, ctx);
    default: return CK_OK;
    }
}

static ck_status temporal_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    return ck_event_clock_store(&((ck_temporal_join *)self)->clock, ctx);
}

static void temporal_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    temporal_free(self);
}

static const ck_operator_vtbl temporal_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = temporal_open,
    .on_event = temporal_on_event,
    .pre_snapshot = temporal_pre_snapshot,
    .close = temporal_close,
};

const ck_op_desc ck_op_temporal_join = {
    .type = "temporal_join", .op = &temporal_vtbl, .create = temporal_create, .slots = temporal_slots};
