/* Joins whose condition bounds how far apart in time two rows may be: lower <= right time - left time <= upper; a join
 * of windows by their ends is one of them, where both are 0.
 * Each side's rows of a key stand in the order of their time, so that partners are a range, and go when the watermark
 * says that none can come any more. Then a row that an outer join keeps and that has met nobody is said with NULLs, one
 * of an anti join as it is: once, so that nothing is ever taken back. Conditions beyond equality and time are the
 * residual's. */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/params_int.h"
#include "operator/time_side_int.h"

enum { PAIRS_MAX = CK_BATCH_ROWS_MAX, REACH_DAYS_MAX = 20000 * 365 };

typedef enum interval_kind { INNER, LEFT, RIGHT, FULL, SEMI, ANTI } interval_kind;

typedef struct interval_join {
    ck_mem mem;
    ck_arena arena;
    interval_kind kind;
    ck_time_side sides[2];
    bool waits[2]; /* the side's rows are said when they have met nobody */
    ck_late late[2];
    int64_t lower_us, upper_us;
    int64_t slack_us; /* a row is behind when its time is at or below the watermark less this */
    const ck_schema *output;
    ck_eval *eval;          /* of the residual; NULL: none */
    uint8_t *residual_uses; /* by column */
    ck_event_clock clock;
    int64_t next_seq;
    bool ended[2];
    /* the batch in hand */
    bool running, resumed;
    uint32_t at;                 /* live row whose partners are looked for */
    int64_t last_time, last_seq; /* the partner met last, when resumed */
    ck_partition partitions[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint8_t met[CK_BATCH_ROWS_MAX]; /* by live row */
    uint16_t pair_live[PAIRS_MAX];  /* live row */
    uint16_t pair_row[PAIRS_MAX];   /* physical */
    ck_row *pair_partner[PAIRS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    uint16_t lone[CK_BATCH_ROWS_MAX]; /* rows that are said alone at once */
    uint16_t late_rows[CK_BATCH_ROWS_MAX];
    uint16_t kept[CK_BATCH_ROWS_MAX]; /* live number of what is kept */
    /* what is forgotten */
    bool forgetting;
    uint32_t forget_side;
    int64_t forget_to;
} interval_join;

/* ---- making ---- */

static void interval_free(interval_join *op) {
    for (int s = 0; s < 2; s++) ck_partition_timers_destroy(&op->sides[s].timers);
    if (op->eval) ck_eval_free(op->eval);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *what) {
    return ck_fail(err, CK_INVALID, "%s (%s): %s", spec->type, spec->uid, what);
}

static ck_status bounds(interval_join *op, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    yyjson_val *lower = yyjson_obj_get(root, "lower_us"), *upper = yyjson_obj_get(root, "upper_us");
    op->lower_us = yyjson_get_sint(lower);
    op->upper_us = yyjson_get_sint(upper);
    int64_t most = REACH_DAYS_MAX * 86400000000LL;
    if (!yyjson_is_int(lower) || !yyjson_is_int(upper) || op->lower_us < -most || op->lower_us > most ||
        op->upper_us < -most || op->upper_us > most)
        return bad(spec, err, "lower_us and upper_us must be microseconds");
    yyjson_val *slack = yyjson_obj_get(root, "slack_us");
    op->slack_us = yyjson_get_sint(slack);
    if ((slack && !yyjson_is_int(slack)) || op->slack_us < -most || op->slack_us > most)
        return bad(spec, err, "slack_us must be microseconds");
    op->sides[0].time.ends = op->sides[1].time.ends = yyjson_get_bool(yyjson_obj_get(root, "windowed"));
    op->sides[0].reach_us = op->upper_us;
    op->sides[1].reach_us = -op->lower_us;
    return CK_OK;
}

static bool left_only(interval_kind k) { return k == SEMI || k == ANTI; }

static ck_status make_plan(interval_join *op, ck_arena *a, const ck_op_spec *spec, yyjson_val **root, ck_error *err) {
    static const char *const known[] = {"kind",     "left_keys", "right_keys",  "left_time",    "right_time",
                                        "lower_us", "upper_us",  "residual",    "left_late",    "right_late",
                                        "slack_us", "windowed",  "left_unread", "right_unread", NULL};
    static const char *const kinds[] = {"inner", "left", "right", "full", "semi", "anti"};
    CK_TRY(ck_params_inputs(spec, 2, 1u << CK_MODE_UPSERT | 1u << CK_MODE_RETRACT, err));
    CK_TRY(ck_params_read(a, spec, known, root, err));
    yyjson_val *kind = yyjson_obj_get(*root, "kind");
    uint32_t k = 0;
    while (k < CK_ARRAY_COUNT(kinds) && !yyjson_equals_str(kind, kinds[k])) k++;
    if (k == CK_ARRAY_COUNT(kinds)) return bad(spec, err, "kind must be inner, left, right, full, semi or anti");
    op->kind = (interval_kind)k;
    op->waits[0] = k == LEFT || k == FULL || k == ANTI;
    op->waits[1] = k == RIGHT || k == FULL;
    for (uint32_t s = 0; s < 2; s++) {
        op->sides[s].schema = spec->inputs[s].schema;
        op->sides[s].flagged = op->waits[s] || (s == 0 && k == SEMI);
        CK_TRY(ck_time_side_unread(a, &op->sides[s], spec, *root, s ? "right_unread" : "left_unread", err));
    }
    CK_TRY(ck_time_side_plan(a, &op->sides[0], spec, *root, "left_keys", "left_time", "left", "interval_join", err));
    CK_TRY(ck_time_side_plan(a, &op->sides[1], spec, *root, "right_keys", "right_time", "right", "interval_join", err));
    CK_TRY(bounds(op, spec, *root, err));
    CK_TRY(ck_late_read(a, spec, *root, "left_late", 0, &op->late[0], err));
    CK_TRY(ck_late_read(a, spec, *root, "right_late", 1, &op->late[1], err));
    for (uint32_t s = 0; s < 2; s++) ck_late_timed_by(&op->late[s], op->sides[s].time.time, op->sides[s].time.millis);
    return ck_time_side_check(&op->sides[0], &op->sides[1], spec, left_only(op->kind), err);
}

static ck_status interval_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    interval_join *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    yyjson_val *root;
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    for (int s = 0; s < 2; s++) ck_partition_timers_init(&op->sides[s].timers, mem);
    ck_status st = make_plan(op, &op->arena, spec, &root, err);
    uint32_t width = st == CK_OK ? op->sides[0].schema->field_count + op->sides[1].schema->field_count : 0;
    if (st == CK_OK && (!(op->output = ck_schema_copy(&op->arena, spec->schema)) ||
                        !(op->residual_uses = ck_arena_array(&op->arena, width + 1u, 1))))
        st = ck_nomem(err, op->arena.mem, sizeof *op->output);
    if (st == CK_OK)
        st = ck_time_side_residual(&op->arena, mem, spec, root, op->sides[0].schema, op->sides[1].schema, &op->eval,
                                   op->residual_uses, err);
    if (st == CK_OK)
        *self = op;
    else
        interval_free(op);
    return st;
}

static ck_status interval_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                                ck_error *err) {
    interval_join *op = CK_ARENA_NEW(a, interval_join);
    ck_slot_schema *all = ck_arena_array(a, 3, sizeof *all);
    yyjson_val *root;
    if (!op || !all) return ck_nomem(err, a->mem, sizeof *op);
    *op = (interval_join){0};
    CK_TRY(make_plan(op, a, spec, &root, err));
    all[0] = op->sides[0].slot;
    all[1] = op->sides[1].slot;
    all[2] = *ck_event_clock_slot();
    *slots = all;
    *count = 3;
    return CK_OK;
}

static ck_status interval_open(void *self, ck_op_ctx *ctx) {
    interval_join *op = self;
    CK_TRY(ck_event_clock_open(&op->clock, false, ctx));
    CK_TRY(ck_time_side_open(&op->sides[0], op->partitions, &op->next_seq, ctx));
    return ck_time_side_open(&op->sides[1], op->partitions, &op->next_seq, ctx);
}

/* ---- pairs ---- */

/* One side's columns of n pairs: of the batch, or of the partners' rows; those alone that `uses` names, where given. */
static ck_status gather_side(const interval_join *op, uint32_t side, uint32_t batch_side, const ck_batch *b, uint32_t n,
                             const uint8_t *uses, ck_batch *out, uint32_t first, ck_op_ctx *ctx) {
    const ck_time_side *s = &op->sides[side];
    for (uint32_t c = 0; c < s->schema->field_count; c++) {
        ck_column_builder builder;
        ck_column *column = NULL;
        if (uses && !uses[first + c]) continue;
        if (side == batch_side) {
            ck_status st = ck_column_builder_init(&builder, ctx->mem, s->schema->fields[c].type, n);
            if (st == CK_OK) ck_column_builder_take_with(&builder, ctx->proc->cpu);
            if (st == CK_OK) st = ck_build_gather(&builder, b->columns[c], op->pair_row, n);
            if (st == CK_OK) column = ck_column_builder_finish(&builder);
            ck_column_builder_destroy(&builder);
        } else {
            CK_TRY(ck_time_side_column(s, c, op->pair_partner, n, &column, ctx));
        }
        if (!column) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        ck_batch_set_column(out, first + c, &column);
    }
    return CK_OK;
}

/* The pairs' columns, and which of them pass the residual: op->sel. */
static ck_status pairs_of(interval_join *op, uint32_t side, const ck_batch *b, uint32_t n, ck_batch **out,
                          uint32_t *count, ck_op_ctx *ctx) {
    uint32_t shift = op->sides[0].schema->field_count;
    const uint8_t *uses = left_only(op->kind) ? op->residual_uses : NULL;
    ck_batch *pairs = ck_batch_new(ctx->mem, shift + op->sides[1].schema->field_count, n, false, false);
    if (!pairs) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status s = gather_side(op, 0, side, b, n, uses, pairs, 0, ctx);
    if (s == CK_OK) s = gather_side(op, 1, side, b, n, uses, pairs, shift, ctx);
    *count = n;
    if (s == CK_OK && op->eval) {
        ck_eval_set_now(op->eval, ck_op_now_us(ctx));
        s = ck_eval_filter(op->eval, pairs, op->sel, count, ctx->error);
    }
    if (s == CK_OK)
        *out = pairs;
    else
        ck_batch_unref(&pairs);
    return s;
}

/* Partners of pairs that passed are no longer alone. fresh: the n of them this is new to, each once. */
static ck_status mark_partners(interval_join *op, ck_time_side *other, uint32_t count, bool all, uint32_t *fresh,
                               ck_op_ctx *ctx) {
    uint32_t n = 0;
    *fresh = 0;
    for (uint32_t i = 0; i < count; i++) {
        ck_row *partner = op->pair_partner[all ? i : op->sel[i]];
        op->pair_partner[n] = partner; /* n <= the pair read */
        n += !ck_row_bool(partner, other->flag_at);
    }
    CK_TRY(ck_table_touch_rows(other->table, op->pair_partner, n, ctx->error));
    for (uint32_t i = 0; i < n; i++) {
        ck_row *row = op->pair_partner[i];
        if (ck_row_bool(row, other->flag_at)) continue;
        ck_row_set_bool(row, other->flag_at, true);
        op->pair_partner[(*fresh)++] = row;
    }
    return CK_OK;
}

static ck_status emit_rows(const interval_join *op, uint32_t side, uint32_t n, ck_op_ctx *ctx) {
    const ck_time_side *s = &op->sides[side], *other = &op->sides[1 - side];
    uint32_t shift = op->sides[0].schema->field_count;
    if (n == 0) return CK_OK;
    ck_batch *out = ck_batch_new(ctx->mem, op->output->field_count, n, false, false);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status st = ck_time_side_gather(s, op->pair_partner, n, out, side ? shift : 0, ctx);
    if (st == CK_OK && !left_only(op->kind)) st = ck_time_side_nulls(other->schema, out, side ? 0 : shift, ctx);
    if (st == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return st;
}

/* The left rows of pairs: those of the batch are said when all of it has been run. */
static ck_status settle_left(interval_join *op, uint32_t side, uint32_t count, bool all, ck_op_ctx *ctx) {
    uint32_t fresh;
    for (uint32_t i = 0; i < count; i++) op->met[op->pair_live[all ? i : op->sel[i]]] = 1;
    if (side == 0) return CK_OK;
    CK_TRY(mark_partners(op, &op->sides[0], count, all, &fresh, ctx));
    return op->kind == SEMI ? emit_rows(op, 0, fresh, ctx) : CK_OK;
}

static ck_status emit_pairs(interval_join *op, uint32_t side, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    ck_time_side *other = &op->sides[1 - side];
    ck_batch *pairs = NULL, *out = NULL;
    uint32_t count = n, fresh;
    if (n == 0) return CK_OK;
    bool all = !op->eval;
    if (left_only(op->kind) && all) return settle_left(op, side, n, true, ctx);
    CK_TRY(pairs_of(op, side, b, n, &pairs, &count, ctx));
    ck_status s = CK_OK;
    if (left_only(op->kind)) {
        s = settle_left(op, side, count, all, ctx);
        ck_batch_unref(&pairs);
        return s;
    }
    for (uint32_t i = 0; i < count; i++) op->met[op->pair_live[all ? i : op->sel[i]]] = 1;
    out = all ? ck_batch_ref(pairs) : ck_batch_select(pairs, op->sel, count);
    ck_batch_unref(&pairs);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n);
    if (other->flagged) s = mark_partners(op, other, count, all, &fresh, ctx);
    if (s == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return s;
}

/* Pairs of the batch's rows with what the other side has, about a batch of them; CK_MORE while there are more. */
static ck_status run(interval_join *op, uint32_t side, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_time_side *own = &op->sides[side], *other = &op->sides[1 - side];
    int64_t before = side == 0 ? op->lower_us : -op->upper_us, after = side == 0 ? op->upper_us : -op->lower_us;
    bool one_is_enough = left_only(op->kind) && side == 0 && !op->eval;
    uint32_t n = 0, most = ctx->settings->batch_rows;
    for (; op->at < b->sel_count; op->at++, op->resumed = false) {
        uint32_t row = ck_batch_row(b, op->at);
        char lo[CK_TIME_KEY_BYTES], hi[CK_INSTANT_KEY_BYTES];
        ck_range r;
        ck_row *partner;
        int64_t us;
        if (!op->partitions[op->at] || !ck_window_row_time(&own->time, b->columns[own->time.time], row, &us)) continue;
        ck_view from = op->resumed ? ck_time_key(op->last_time, op->last_seq + 1, lo) : ck_instant_key(us + before, lo);
        ck_range_open(&r, other->table, op->partitions[op->at], from, ck_instant_key(us + after + 1, hi));
        while (ck_range_next(&r, &partner)) {
            op->pair_live[n] = (uint16_t)op->at;
            op->pair_row[n] = (uint16_t)row;
            op->pair_partner[n++] = partner;
            if (n == most) {
                op->last_time = ck_row_i64(partner, other->time_at);
                op->last_seq = ck_row_i64(partner, other->seq_at);
                op->resumed = true;
                CK_TRY(emit_pairs(op, side, b, n, ctx));
                return CK_MORE;
            }
            if (one_is_enough) break;
        }
    }
    return emit_pairs(op, side, b, n, ctx);
}

/* ---- rows ---- */

typedef struct fate {
    uint32_t kept, lone, late, bad_times;
} fate;

/* Rows at or before it are late: they are behind the watermark, those of the other side that they could have met have
 * all been forgotten, and none can come any more. One that is behind and not late meets who is still there. */
static int64_t late_until(const interval_join *op, uint32_t side) {
    int64_t before = op->sides[side].reach_us, kept = op->sides[1 - side].reach_us;
    if (op->clock.watermark == CK_WATERMARK_MIN) return INT64_MIN;
    if (kept > 0) before += kept;
    return before > 0 ? op->clock.watermark - before : op->clock.watermark;
}

/* Which rows partners may still come for, which are late, and which are said alone at once: nobody can come for them.
 */
static void choose(interval_join *op, uint32_t side, const ck_batch *b, fate *f) {
    const ck_time_side *s = &op->sides[side];
    int64_t until = late_until(op, side);
    bool said = op->kind == SEMI && side == 0, settled = left_only(op->kind) && side == 0;
    *f = (fate){0};
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us;
        bool timed = ck_window_row_time(&s->time, b->columns[s->time.time], row, &us);
        bool may_meet = timed && !ck_time_side_null_key(&s->keys, b, row);
        bool keeps = may_meet && us + s->reach_us > op->clock.watermark;
        if (may_meet && us <= until) {
            op->late_rows[f->late++] = (uint16_t)row;
            continue;
        }
        if (keeps && settled && op->met[k]) keeps = false;
        if (keeps) {
            op->kept[f->kept] = (uint16_t)k;
            op->sel[f->kept++] = (uint16_t)row;
        }
        if (said ? op->met[k] : !keeps && op->waits[side] && !op->met[k]) op->lone[f->lone++] = (uint16_t)row;
        f->bad_times += !timed && !op->waits[side];
    }
}

static ck_status keep(interval_join *op, ck_time_side *s, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    if (n == 0) return CK_OK;
    ck_batch *some = ck_batch_select(b, op->sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->sel);
    ck_status st = ck_time_side_partitions(s, &s->keys, some, true, op->hashes, op->partitions, ctx);
    for (uint32_t k = 0; st == CK_OK && k < n; k++) {
        int64_t us = 0;
        (void)ck_window_row_time(&s->time, b->columns[s->time.time], op->sel[k], &us);
        st = ck_time_side_keep(s, op->partitions[k], b, op->sel[k], us, op->next_seq++, op->met[op->kept[k]], ctx);
        if (st == CK_OK) st = ck_time_side_timer(s, op->partitions[k], us, ctx);
    }
    ck_batch_unref(&some);
    return st;
}

static ck_status begin(interval_join *op, uint32_t side, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_key_spec *keys = &op->sides[side].keys;
    CK_TRY(ck_time_side_partitions(&op->sides[1 - side], keys, b, false, op->hashes, op->partitions, ctx));
    for (uint32_t k = 0; k < b->sel_count; k++)
        if (ck_time_side_null_key(keys, b, ck_batch_row(b, k))) op->partitions[k] = 0;
    memset(op->met, 0, b->sel_count);
    op->running = true;
    op->at = 0;
    op->resumed = false;
    return CK_OK;
}

static ck_status take_batch(interval_join *op, uint32_t side, const ck_batch *b, ck_op_ctx *ctx) {
    fate f;
    if (b->sel_count == 0) return CK_OK;
    if (!op->running) CK_TRY(begin(op, side, b, ctx));
    CK_TRY(run(op, side, b, ctx));
    op->running = false;
    choose(op, side, b, &f);
    if (f.bad_times) ck_op_count(ctx, "bad_time_rows", f.bad_times);
    CK_TRY(ck_late_drop(&op->late[side], b, op->late_rows, f.late, op->clock.watermark, ctx));
    CK_TRY(keep(op, &op->sides[side], b, f.kept, ctx));
    return ck_time_side_pad(b, op->lone, f.lone, left_only(op->kind) ? NULL : op->sides[1 - side].schema, side == 1,
                            ctx);
}

/* ---- time ---- */

/* Rows of p before `hi` that have met nobody, into pair_partner; *cut: more than fit, op->last_* is the last looked at.
 */
static uint32_t lonely(interval_join *op, const ck_time_side *s, ck_partition p, ck_view hi, uint32_t n, uint32_t most,
                       bool *cut) {
    ck_range r;
    ck_row *row;
    *cut = false;
    ck_range_open(&r, s->table, p, (ck_view){0}, hi);
    while (!*cut && ck_range_next(&r, &row)) {
        if (ck_row_bool(row, s->flag_at)) continue;
        op->pair_partner[n++] = row;
        op->last_time = ck_row_i64(row, s->time_at);
        op->last_seq = ck_row_i64(row, s->seq_at);
        *cut = n == most;
    }
    return n;
}

/* Rows nobody can come for any more go; CK_MORE: there are more of them. */
static ck_status forget(interval_join *op, uint32_t side, ck_op_ctx *ctx) {
    ck_time_side *s = &op->sides[side];
    char end[CK_INSTANT_KEY_BYTES], last[CK_TIME_KEY_BYTES];
    ck_view hi = ck_instant_key(op->forget_to - s->reach_us + 1, end);
    uint32_t keys = 0, rows = 0, most = ctx->settings->batch_rows;
    bool cut = false;
    while (!cut && keys < CK_BATCH_ROWS_MAX &&
           ck_partition_timers_take(&s->timers, op->forget_to, &op->partitions[keys]))
        if (op->waits[side])
            rows = lonely(op, s, op->partitions[keys++], hi, rows, most, &cut);
        else
            keys++;
    CK_TRY(emit_rows(op, side, rows, ctx));
    for (uint32_t i = 0; i < keys; i++) {
        bool part = cut && i + 1 == keys;
        CK_TRY(ck_time_side_erase_before(s, op->partitions[i],
                                         part ? ck_time_key(op->last_time, op->last_seq + 1, last) : hi, ctx));
    }
    return keys ? CK_MORE : CK_OK;
}

static ck_status forget_to(interval_join *op, int64_t us, ck_op_ctx *ctx) {
    if (!op->forgetting) op->forget_side = 0;
    op->forgetting = true;
    op->forget_to = us;
    for (; op->forget_side < 2; op->forget_side++) CK_TRY(forget(op, op->forget_side, ctx));
    op->forgetting = false;
    return CK_OK;
}

static ck_status come_to(interval_join *op, int64_t watermark, ck_op_ctx *ctx) {
    if (watermark < CK_EVENT_TIME_MIN || watermark >= CK_EVENT_TIME_MAX) return CK_OK;
    watermark -= op->slack_us;
    if (watermark <= op->clock.watermark && !op->forgetting) return CK_OK;
    op->clock.watermark = watermark;
    return forget_to(op, watermark, ctx);
}

/* Nobody comes any more. */
static ck_status end(interval_join *op, uint32_t input, ck_op_ctx *ctx) {
    op->ended[input] = true;
    return op->ended[0] && op->ended[1] ? forget_to(op, INT64_MAX / 2, ctx) : CK_OK;
}

static ck_status interval_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    switch (ev->kind) {
    case CK_EVENT_BATCH: return take_batch(self, input, ev->batch, ctx);
    case CK_EVENT_WATERMARK: return come_to(self, ev->watermark.value, ctx);
    case CK_EVENT_END: return end(self, input, ctx);
    default: return CK_OK;
    }
}

static ck_status interval_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    return ck_event_clock_store(&((interval_join *)self)->clock, ctx);
}

/* A pair is as old as the older of its rows, which was kept while partners could come. In whole milliseconds, as
 * watermarks are: `<` bounds by a microsecond less, and one between the window_time and the end of a window above would
 * be past rows that are still to come. */
static int64_t interval_delay(const void *self) {
    const interval_join *op = self;
    int64_t us = op->upper_us > -op->lower_us ? op->upper_us : -op->lower_us;
    us = (us > 0 ? us : 0) + (op->slack_us > 0 ? op->slack_us : 0);
    return (us + 999) / 1000 * 1000;
}

static void interval_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    interval_free(self);
}

static const ck_operator_vtbl interval_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = interval_open,
    .on_event = interval_on_event,
    .pre_snapshot = interval_pre_snapshot,
    .close = interval_close,
    .watermark_delay_us = interval_delay,
};

const ck_op_desc ck_op_interval_join = {.type = "interval_join",
                                        .op = &interval_vtbl,
                                        .create = interval_create,
                                        .slots = interval_slots,
                                        .again = ck_op_again_by_time};
