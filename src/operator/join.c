/* Joins on equal keys with a residual condition: inner, left, right, full, semi, anti, over append and retract input.
 * What is kept of each side, and when rows are said, is in join_int.h. */
#include "operator/params_int.h"
#include "operator/operators.h"

#include "operator/join_int.h"

static void join_free(ck_join *j) {
    ck_join_run_end(j);
    ck_column_unref(&j->zeros);
    ck_eval_free(j->eval);
    ck_arena_destroy(&j->arena);
    ck_free(j->mem, j, sizeof *j);
}

static ck_status make_eval(ck_join *j, const ck_op_spec *spec, ck_error *err) {
    if (j->plan.residual_count == 0) return CK_OK;
    ck_program *program;
    CK_TRY(ck_program_compile(&j->arena, j->plan.residual, j->plan.residual_count, &program, err));
    ck_eval_options o = {spec->proc, j->mem, spec->settings->eval_error_null, spec->settings->timezone, j->plan.names};
    return ck_eval_new(program, &o, &j->eval, err);
}

static ck_status join_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_join *j = ck_alloc_zero(mem, sizeof *j);
    if (!j) return ck_nomem(err, mem, sizeof *j);
    j->mem = mem;
    ck_arena_init(&j->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_join_plan_make(&j->plan, &j->arena, spec, err);
    if (s == CK_OK) s = make_eval(j, spec, err);
    if (s == CK_OK)
        *self = j;
    else
        join_free(j);
    return s;
}

static ck_status join_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                            ck_error *err) {
    ck_join_plan plan;
    CK_TRY(ck_join_plan_make(&plan, a, spec, err));
    ck_slot_schema *s = ck_arena_array(a, 2, sizeof *s);
    if (!s) return ck_nomem(err, a->mem, 2 * sizeof *s);
    s[0] = plan.sides[0].slot, s[1] = plan.sides[1].slot;
    *slots = s;
    *count = 2;
    return CK_OK;
}

static ck_status join_open(void *self, ck_op_ctx *ctx) {
    ck_join *j = self;
    CK_TRY(ck_join_table_open(j, 0, ctx));
    CK_TRY(ck_join_table_open(j, 1, ctx));
    uint32_t build = j->plan.build;
    if (build != CK_JOIN_BOTH && j->plan.sides[build].bounded) ck_op_hold_input(ctx, !build, true);
    return CK_OK;
}

/* ---- a batch ---- */

/* About one batch of what the run says. */
static ck_status go_on(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    bool done;
    CK_TRY(ck_join_run_step(j, &done, ctx));
    CK_TRY(ck_join_emit(j, ctx));
    if (!done) return CK_MORE;
    CK_TRY(ck_join_drop_settled(j, ctx));
    if (r->keeps) CK_TRY(ck_join_store(j, r->matchable, r->matchable_count, ctx));
    if (r->keeps && j->plan.single && r->side == 1) CK_TRY(ck_join_check_single(j, ctx));
    ck_join_run_end(j);
    return CK_OK;
}

/* Rows of the left that have passed semi, or never will pass anti, are not kept while nothing can change that. */
static void keep_open_rows(ck_join *j) {
    ck_join_run *r = &j->run;
    const ck_join_side *right = &j->plan.sides[1];
    if (!right->counted || right->retract) return;
    uint32_t m = 0;
    for (uint32_t i = 0; i < r->matchable_count; i++) {
        r->matchable[m] = r->matchable[i];
        m += r->partners[r->matchable[i]] <= 0;
    }
    r->matchable_count = m;
}

static ck_status begin_both(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    if (j->plan.sides[r->side].counted) {
        CK_TRY(ck_join_count_keys(j, ctx));
        return ck_join_look_up(j, ctx);
    }
    CK_TRY(ck_join_look_up(j, ctx));
    r->keeps = true;
    if (r->side == 0) keep_open_rows(j);
    return CK_OK;
}

/* Whether rows of the probe side can be run. */
static bool may_run(const ck_join *j) {
    uint32_t build = j->plan.build;
    if (!j->tables[build].ended) return false;
    return !(j->plan.final && j->plan.sides[!build].retract) || j->tables[!build].ended;
}

static ck_status park(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    if (j->plan.type == CK_JOIN_INNER || j->plan.type == CK_JOIN_SEMI)
        return ck_join_store(j, r->matchable, r->matchable_count, ctx);
    for (uint32_t k = 0; k < r->n; k++) j->sel[k] = (uint16_t)k;
    return ck_join_store(j, j->sel, r->n, ctx);
}

static ck_status build_batch(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    const ck_join_side *s = &j->plan.sides[r->side];
    ck_status st = CK_OK;
    if (s->counted)
        st = ck_join_count_keys(j, ctx);
    else if (j->plan.type == CK_JOIN_FULL) /* also what matches nothing is padded in the end */
        st = park(j, ctx);
    else
        st = ck_join_store(j, r->matchable, r->matchable_count, ctx);
    if (st == CK_OK && j->plan.single && r->side == 1) st = ck_join_check_single(j, ctx);
    ck_join_run_end(j);
    return st;
}

static ck_status join_batch(ck_join *j, uint32_t input, ck_batch *b, ck_op_ctx *ctx) {
    if (j->run.kind == CK_JOIN_RUN_NONE) {
        if (b->sel_count == 0) return CK_OK;
        CK_TRY(ck_op_ttl_come(&j->plan.ttl, ctx));
        ck_batch *known = ck_batch_ref(b);
        ck_status known_now = ck_join_drop_unmatched(j, input, &known, ctx);
        bool none = known->sel_count == 0;
        if (known_now == CK_OK && !none) known_now = ck_join_run_begin(j, input, known, NULL, ctx);
        ck_batch_unref(&known);
        if (known_now != CK_OK || none) return known_now;
        if (j->plan.build == CK_JOIN_BOTH) {
            CK_TRY(begin_both(j, ctx));
        } else if (input == j->plan.build) {
            return build_batch(j, ctx);
        } else if (may_run(j)) {
            CK_TRY(ck_join_look_up(j, ctx));
        } else {
            ck_status s = park(j, ctx);
            ck_join_run_end(j);
            return s;
        }
    }
    return go_on(j, ctx);
}

/* ---- the end of an input ---- */

/* Rows taken out of a table are run; the unmatched ones of the build side have nobody to meet. */
static ck_status run_table(ck_join *j, uint32_t side, bool unmatched, bool *end, ck_op_ctx *ctx) {
    *end = false;
    if (j->run.kind == CK_JOIN_RUN_NONE) {
        ck_batch *b;
        CK_TRY(ck_join_take_out(j, side, unmatched, &b, end, ctx));
        if (!b) return CK_OK;
        ck_status s = ck_join_run_begin(j, side, b, j->counts, ctx);
        ck_batch_unref(&b);
        if (s == CK_OK && !unmatched) s = ck_join_look_up(j, ctx);
        if (s != CK_OK) return s;
    }
    ck_status s = go_on(j, ctx);
    return s == CK_MORE ? CK_OK : s;
}

/* Rows of the probe side are said in their order, but those that waited for the build side only when it has ended: time
 * waits with them. */
static ck_status watermark(ck_join *j, ck_op_ctx *ctx) {
    if (j->plan.build == CK_JOIN_BOTH || !j->past_parked || !j->has_watermark) return CK_OK;
    return ck_op_emit_watermark(ctx, j->watermark, j->idle);
}

static ck_status come_to(ck_join *j, const ck_event *ev, ck_op_ctx *ctx) {
    if (j->plan.windowed) CK_TRY(ck_join_windows_come_to(j, ev->watermark.value, ctx));
    j->watermark = ev->watermark.value;
    j->idle = ev->watermark.idle;
    j->has_watermark = true;
    return watermark(j, ctx);
}

static int64_t join_delay(const void *self) {
    return ((const ck_join *)self)->plan.build == CK_JOIN_BOTH ? 0 : CK_WATERMARKS_OWN;
}

static ck_status join_end(ck_join *j, uint32_t input, ck_op_ctx *ctx) {
    uint32_t build = j->plan.build;
    bool end;
    j->tables[input].ended = true;
    if (input == build) ck_op_hold_input(ctx, !build, false);
    if (build == CK_JOIN_BOTH || !may_run(j)) return CK_OK;
    switch (j->end_step) {
    case CK_JOIN_END_NEW:
        j->scan = (ck_table_scan){0};
        j->end_step = CK_JOIN_END_PARKED;
        break;
    case CK_JOIN_END_PARKED:
        CK_TRY(run_table(j, !build, false, &end, ctx));
        if (!end) break;
        j->past_parked = true;
        CK_TRY(watermark(j, ctx));
        j->scan = (ck_table_scan){0};
        j->end_step = CK_JOIN_END_UNMATCHED;
        if (j->plan.sides[build].matches && j->tables[!build].ended) break;
        j->end_step = CK_JOIN_END_NEW;
        return CK_OK;
    case CK_JOIN_END_UNMATCHED:
        CK_TRY(run_table(j, build, true, &end, ctx));
        if (!end) break;
        j->end_step = CK_JOIN_END_NEW;
        return CK_OK;
    }
    return CK_MORE;
}

static ck_status join_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    switch (ev->kind) {
    case CK_EVENT_BATCH: return join_batch(self, input, ev->batch, ctx);
    case CK_EVENT_END: return join_end(self, input, ctx);
    case CK_EVENT_WATERMARK: return come_to(self, ev, ctx);
    default: return CK_OK; /* what is to be said has been said */
    }
}

static void join_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    join_free(self);
}

static const ck_operator_vtbl join_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = join_open,
    .on_event = join_on_event,
    .close = join_close,
    .watermark_delay_us = join_delay,
};

const ck_op_desc ck_op_join = {
    .type = "join", .op = &join_vtbl, .create = join_create, .slots = join_slots, .again = ck_op_again_by_rows};
