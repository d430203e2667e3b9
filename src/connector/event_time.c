#include "connector/event_time.h"

#include <yyjson.h>

/* ---- what the planner says ---- */

static ck_status bad(const ck_op_spec *spec, const char *wanted, ck_error *err) {
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"event_time\" must have %s", spec->type, spec->uid, wanted);
}

static bool duration(yyjson_val *v, const char *name, int64_t *out) {
    yyjson_val *n = yyjson_obj_get(v, name);
    *out = (int64_t)yyjson_get_uint(n);
    return yyjson_is_uint(n) && yyjson_get_uint(n) <= (uint64_t)CK_EVENT_TIME_MAX;
}

static bool is_time(const ck_type *t) {
    return t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ || t->kind == CK_TYPE_BIGINT;
}

ck_status ck_event_time_read(ck_arena *a, const ck_op_spec *spec, const ck_schema *table, struct yyjson_val *v,
                             const ck_event_time_spec **out, ck_error *err) {
    *out = NULL;
    if (!v || yyjson_is_null(v)) return CK_OK;
    ck_event_time_spec *s = CK_ARENA_NEW(a, ck_event_time_spec);
    if (!s) return ck_nomem(err, a->mem, sizeof *s);
    if (!yyjson_is_obj(v) || !duration(v, "lag_us", &s->lag_us) || !duration(v, "idle_us", &s->idle_us))
        return bad(spec, "expr, lag_us, idle_us", err);
    ck_status st = ck_expr_from_json(a, ck_spec_library(spec), yyjson_obj_get(v, "expr"), &s->expr, err);
    if (st == CK_OK) st = ck_expr_check_columns(s->expr, table, err);
    if (st != CK_OK) {
        ck_error_prefix(err, "%s (%s): event_time: ", spec->type, spec->uid);
        return st;
    }
    if (!is_time(s->expr->type)) return bad(spec, "an expr that gives a TIMESTAMP or BIGINT", err);
    *out = s;
    return CK_OK;
}

/* ---- making ---- */

ck_status ck_event_time_init(ck_event_time *t, const ck_event_time_spec *spec, const ck_op_spec *op, ck_arena *a,
                             ck_mem mem, ck_error *err) {
    *t = (ck_event_time){.spec = spec, .mem = mem, .watermark = CK_WATERMARK_MIN};
    if (!spec) return CK_OK;
    t->millis = spec->expr->type->kind == CK_TYPE_BIGINT;
    if (spec->expr->kind == CK_EXPR_COLUMN) return CK_OK;
    ck_program *p;
    ck_expr *const exprs[] = {spec->expr};
    CK_TRY(ck_program_compile(a, exprs, 1, &p, err));
    /* A time that cannot be computed is none here; whoever asks for the column gets the error. */
    ck_eval_options o = {.proc = op->proc, .mem = mem, .error_null = true, .timezone = op->settings->timezone};
    return ck_eval_new(p, &o, &t->eval, err);
}

void ck_event_time_destroy(ck_event_time *t) {
    if (t->eval) ck_eval_free(t->eval);
    if (t->clocks) ck_free(t->mem, t->clocks, t->capacity * sizeof *t->clocks);
    *t = (ck_event_time){0};
}

ck_status ck_event_time_add(ck_event_time *t, const char *name, int64_t max_us, bool finished, uint32_t *clock,
                            ck_error *err) {
    *clock = t->count;
    if (!t->spec) return CK_OK;
    if (t->count == t->capacity) {
        uint32_t capacity = t->capacity ? t->capacity * 2 : 8;
        void *p = ck_realloc(t->mem, t->clocks, t->capacity * sizeof *t->clocks, capacity * sizeof *t->clocks);
        if (!p) return ck_nomem(err, t->mem, capacity * sizeof *t->clocks);
        t->clocks = p;
        t->capacity = capacity;
    }
    t->clocks[t->count++] =
        (ck_split_clock){.name = name, .max_us = max_us, .empty_since_us = INT64_MIN, .finished = finished};
    return CK_OK;
}

/* ---- rows ---- */

typedef struct seen {
    int64_t max_us;
    uint32_t usable;
} seen;

/* Times as they are, or in milliseconds: the greatest usable one, and how many are. */
static seen greatest(const ck_column *c, const ck_batch *b, bool millis) {
    int64_t lo = millis ? CK_EVENT_TIME_MIN / 1000 : CK_EVENT_TIME_MIN,
            hi = millis ? CK_EVENT_TIME_MAX / 1000 : CK_EVENT_TIME_MAX, max = INT64_MIN;
    uint32_t usable = 0;
    if (c->phys == CK_PHYS_NULL) return (seen){INT64_MIN, 0};
    if (!c->validity && !b->sel) {
        for (uint32_t i = 0; i < b->row_count; i++) {
            int64_t v = c->i64[i];
            bool fine = v >= lo && v <= hi;
            usable += fine;
            max = fine && v > max ? v : max;
        }
    } else {
        for (uint32_t k = 0; k < b->sel_count; k++) {
            uint32_t i = ck_batch_row(b, k);
            if (ck_column_is_null(c, i) || c->i64[i] < lo || c->i64[i] > hi) continue;
            usable++;
            if (c->i64[i] > max) max = c->i64[i];
        }
    }
    return (seen){usable && millis ? max * 1000 : max, usable};
}

ck_status ck_event_time_see(ck_event_time *t, uint32_t clock, const ck_batch *b, ck_op_ctx *ctx) {
    if (!t->spec || b->sel_count == 0) return CK_OK;
    ck_split_clock *s = &t->clocks[clock];
    ck_column *made = NULL;
    const ck_column *c = t->eval ? NULL : b->columns[t->spec->expr->column];
    if (t->eval) {
        ck_eval_set_now(t->eval, ck_op_now_us(ctx));
        CK_TRY(ck_eval_run(t->eval, b, &made, ctx->error));
        c = made;
    }
    seen x = greatest(c, b, t->millis);
    ck_column_unref(&made);
    if (x.usable < b->sel_count) ck_op_count(ctx, "bad_times", b->sel_count - x.usable);
    s->empty_since_us = INT64_MIN;
    s->idle = false;
    if (x.usable && x.max_us > s->max_us) s->max_us = x.max_us;
    return CK_OK;
}

void ck_event_time_empty(ck_event_time *t, uint32_t clock, int64_t now_us, int64_t *until_us) {
    if (!t->spec) return;
    ck_split_clock *s = &t->clocks[clock];
    if (s->empty_since_us == INT64_MIN) s->empty_since_us = now_us;
    if (t->spec->idle_us == 0) return;
    int64_t left = t->spec->idle_us - (now_us - s->empty_since_us);
    s->idle = left <= 0;
    if (left > 0 && now_us + left < *until_us) *until_us = now_us + left;
}

void ck_event_time_raise(ck_event_time *t, uint32_t clock, int64_t to_us) {
    if (!t->spec || !ck_event_time_usable(to_us)) return;
    ck_split_clock *s = &t->clocks[clock];
    int64_t max_us = to_us + t->spec->lag_us; /* a row of this time would say the same */
    if (max_us > s->max_us && ck_event_time_usable(max_us)) s->max_us = max_us;
    s->empty_since_us = INT64_MIN;
    s->idle = false;
}

void ck_event_time_finish(ck_event_time *t, uint32_t clock) {
    if (t->spec) t->clocks[clock].finished = true;
}

/* The instant before which everything has been seen, cut to milliseconds; the last microsecond before it. */
static int64_t watermark_of(int64_t max_us, int64_t lag_us) {
    int64_t us = max_us - lag_us, rest = us % 1000;
    return us - rest - (rest < 0 ? 1000 : 0) - 1;
}

/* The split with the least time among those that count, and the one that has been idle longest. */
static ck_clock_note look(const ck_event_time *t) {
    ck_clock_note n = {.watermark_us = t->watermark, .holder_us = INT64_MAX, .idle_empty_us = INT64_MAX};
    for (uint32_t i = 0; i < t->count; i++) {
        const ck_split_clock *s = &t->clocks[i];
        if (s->finished) continue;
        n.splits++;
        if (s->idle) {
            n.idle_splits++;
            if (s->empty_since_us < n.idle_empty_us) n.idle = s->name, n.idle_empty_us = s->empty_since_us;
        } else if (!n.holder || s->max_us < n.holder_us) {
            n.holder = s->name;
            n.holder_us = s->max_us;
            n.holder_empty_us = s->empty_since_us;
        }
    }
    return n;
}

/* Where all splits are idle, the time of the one that became it last, which the others had not kept any more: they leave
 * one after the other, however late this is looked at. The least one where several left at once. */
static int64_t time_of_last_to_leave(const ck_event_time *t) {
    int64_t since = INT64_MIN, max_us = INT64_MIN;
    for (uint32_t i = 0; i < t->count; i++) {
        const ck_split_clock *s = &t->clocks[i];
        if (s->finished || s->empty_since_us < since) continue;
        if (s->empty_since_us > since || s->max_us < max_us) max_us = s->max_us;
        since = s->empty_since_us;
    }
    return max_us;
}

ck_status ck_event_time_say(ck_event_time *t, ck_op_ctx *ctx) {
    if (!t->spec) return CK_OK;
    ck_clock_note n = look(t);
    int64_t max_us = n.holder ? n.holder_us : n.idle ? time_of_last_to_leave(t) : INT64_MIN;
    bool begun = max_us != INT64_MIN; /* a split that has given no row yet holds everything */
    bool raised = false;
    int64_t w = begun ? watermark_of(max_us, t->spec->lag_us) : CK_WATERMARK_MIN;
    if (w > t->watermark) t->watermark = n.watermark_us = w, raised = true;
    ck_op_note_clock(ctx, &n);
    if (n.holder) return begun ? ck_op_emit_watermark(ctx, t->watermark, false) : CK_OK;
    if (raised) CK_TRY(ck_op_emit_watermark(ctx, t->watermark, false));
    return n.idle ? ck_op_emit_watermark(ctx, t->watermark, true) : CK_OK; /* all finished: END says it */
}
