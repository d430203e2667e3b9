/* See testing_int.h. Events wait in front of their operator; the deepest operator that has one goes first, so that what
 * one says is worked off before it is asked again. */
#include "engine/testing_int.h"

#include "format/decoder.h"

/* ---- the context of an operator ---- */

static ck_test_node *node_of(const ck_op_ctx *ctx) { return (ck_test_node *)(void *)ctx->rt; }

static ck_status enqueue(ck_test_node *to, uint32_t input, const ck_event *ev) {
    ck_test_event *e = ck_alloc(to->test->mem, sizeof *e);
    if (!e) return ck_nomem(&to->test->error, to->test->mem, sizeof *e);
    *e = (ck_test_event){*ev, input, NULL};
    if (ev->kind == CK_EVENT_BATCH) ck_batch_ref(ev->batch);
    *to->last = e;
    to->last = &e->next;
    return CK_OK;
}

/* port UINT32_MAX: to whoever reads any of its outputs. */
static ck_status send(ck_test_node *from, uint32_t port, const ck_event *ev) {
    clink_test *t = from->test;
    for (uint32_t i = 0; i < t->graph->op_count; i++)
        for (uint32_t k = 0; k < t->graph->ops[i].input_count; k++) {
            const ck_graph_input *in = &t->graph->ops[i].inputs[k];
            if (strcmp(in->uid, from->op->uid) != 0 || (port != UINT32_MAX && in->port != port)) continue;
            CK_TRY(enqueue(&t->nodes[i], k, ev));
        }
    return CK_OK;
}

static ck_status emit(ck_op_ctx *ctx, uint32_t port, ck_batch **b) {
    ck_event ev = ck_event_batch(*b);
    ck_status s = (*b)->sel_count ? send(node_of(ctx), port, &ev) : CK_OK;
    ck_batch_unref(b);
    return s;
}
static ck_status emit_watermark(ck_op_ctx *ctx, int64_t value, bool idle) {
    ck_event ev = ck_event_watermark(value, idle);
    return send(node_of(ctx), UINT32_MAX, &ev);
}
static void close_input(ck_op_ctx *ctx, uint32_t input) { (void)ctx, (void)input; }
static void hold_input(ck_op_ctx *ctx, uint32_t input, bool hold) { (void)ctx, (void)input, (void)hold; }
static int64_t now_us(const ck_op_ctx *ctx) { return node_of(ctx)->test->now_us; }
/* In the test's thread: it has been done when the call returns. */
static void submit_io(ck_op_ctx *ctx, struct ck_io_job *job) {
    node_of(ctx)->test->io_ran = true;
    job->run(job);
    job->done(job);
}
static void wake(struct ck_op_runtime *rt) { (void)rt; }
static void count(ck_op_ctx *ctx, const char *counter, uint64_t add) { (void)ctx, (void)counter, (void)add; }
static void hold_ack(ck_op_ctx *ctx) { (void)ctx; }
static void release_ack(struct ck_op_runtime *rt, uint64_t checkpoint, ck_status s, const ck_error *e) {
    (void)rt, (void)checkpoint, (void)s, (void)e;
}

static ck_status fill_context(ck_test_node *n) {
    clink_test *t = n->test;
    ck_state *state;
    CK_TRY(ck_state_of(t->store, n->op->uid, n->op->type, &state, &t->error));
    n->ctx = (ck_op_ctx){.proc = &t->engine->proc,
                         .settings = &t->settings,
                         .uid = n->op->uid,
                         .op_id = ck_op_id(n->op->uid),
                         .parallelism = 1,
                         .key_groups = ck_key_group_range_for_subtask(0, 1, t->settings.key_groups),
                         .input_count = n->op->input_count,
                         .mem = t->mem,
                         .arena = &t->calls,
                         .state = state,
                         .watermark = n->watermark,
                         .error = &t->error,
                         .rt = (struct ck_op_runtime *)(void *)n,
                         .emit_fn = emit,
                         .emit_watermark_fn = emit_watermark,
                         .close_input_fn = close_input,
                         .hold_input_fn = hold_input,
                         .now_us_fn = now_us,
                         .submit_io_fn = submit_io,
                         .wake_fn = wake,
                         .count_fn = count,
                         .hold_ack_fn = hold_ack,
                         .release_ack_fn = release_ack};
    return CK_OK;
}

static void end_call(clink_test *t) { ck_arena_reset_to(&t->calls, (ck_arena_mark){0}); }

/* ---- making and starting ---- */

static ck_status make_role(ck_test_node *n) {
    clink_test *t = n->test;
    ck_sink_table sink;
    n->role = CK_TEST_OPERATOR;
    bool is_table = n->desc->source || strncmp(n->op->type, "sink.", 5) == 0;
    if (is_table && t->tables & CLINK_TEST_PLUGINS && ck_test_is_of_plugin(n)) {
        if (!n->desc->source) return CK_OK;
        n->role = CK_TEST_READER;
        CK_TRY(ck_source_table_read(&t->arena, n->spec, &n->source, &t->error));
        n->table = n->source.table;
        return CK_OK;
    }
    bool stands_in = is_table && t->tables & CLINK_TEST_STAND_INS && strcmp(n->op->type, "source.values") != 0;
    if (strcmp(n->op->type, "source.test") == 0 || (stands_in && n->desc->source)) {
        n->role = CK_TEST_SOURCE;
        CK_TRY(ck_source_table_read(&t->arena, n->spec, &n->source, &t->error));
        n->table = n->source.table;
        n->kept_max = INT64_MIN;
        return CK_OK;
    }
    if (strcmp(n->op->type, "sink.test") == 0 || stands_in) {
        n->role = CK_TEST_SINK;
        CK_TRY(ck_sink_table_read(&t->arena, n->spec, &sink, NULL, &t->error));
        n->table = sink.table ? sink.table : "result";
        n->kinds = n->spec->inputs[0].mode != CK_MODE_APPEND;
        n->key = sink.key, n->key_count = sink.key_count;
        ck_bytes_init(&n->rows, t->mem, SIZE_MAX);
        const ck_encoder_spec e = {
            .format = "json", .schema = sink.schema, .changes = n->kinds ? CK_CHANGES_PREFIX : CK_CHANGES_NONE};
        return ck_encoder_new(&e, t->mem, &n->encoder, &t->error);
    }
    if (n->desc->source || strncmp(n->op->type, "sink.", 5) == 0 || strncmp(n->op->type, "lookup.", 7) == 0)
        return ck_fail(
            &t->error, CK_INVALID,
            "a test reads and writes tables of connector 'test', and %s is %s; values in a query are one, too",
            n->op->label ? n->op->label : n->op->uid, n->op->type);
    return CK_OK;
}

ck_status ck_test_nodes_make(clink_test *t) {
    uint32_t count_of = t->graph->op_count;
    if (!(t->nodes = ck_arena_array(&t->arena, count_of + 1u, sizeof *t->nodes)))
        return ck_nomem(&t->error, t->mem, count_of * sizeof *t->nodes);
    for (uint32_t i = 0; i < count_of; i++) {
        ck_test_node *n = &t->nodes[i];
        n->test = t;
        n->op = &t->graph->ops[i];
        n->last = &n->first;
        CK_TRY(ck_registry_op(&t->engine->registry, n->op->type, &n->desc, &t->error));
        ck_op_spec *spec = ck_graph_op_spec(&t->arena, t->graph, n->op);
        n->watermarks = ck_arena_array(&t->arena, n->op->input_count + 1u, sizeof *n->watermarks);
        n->input_ended = ck_arena_array(&t->arena, n->op->input_count + 1u, sizeof *n->input_ended);
        if (!spec || !n->watermarks || !n->input_ended) return ck_nomem(&t->error, t->mem, sizeof *spec);
        spec->proc = &t->engine->proc;
        spec->settings = &t->settings;
        n->spec = spec;
        CK_TRY(make_role(n));
    }
    return CK_OK;
}

static void reset(ck_test_node *n) {
    n->watermark = CK_WATERMARK_MIN;
    n->flushed = 0;
    n->ended = n->begun = false;
    n->ended_inputs = 0;
    for (uint32_t i = 0; i < n->op->input_count; i++) n->watermarks[i] = CK_WATERMARK_MIN, n->input_ended[i] = false;
}

static ck_status start_source(ck_test_node *n) {
    clink_test *t = n->test;
    CK_TRY(ck_event_time_init(&n->times, n->source.event_time, n->spec, &t->arena, t->mem, &t->error));
    n->has_times = true;
    return ck_event_time_add(&n->times, n->table, n->kept_max, false, &n->clock, &t->error);
}

/* Consumers first, as in a job. */
ck_status ck_test_nodes_start(clink_test *t) {
    for (uint32_t i = t->graph->op_count; i-- > 0;) {
        ck_test_node *n = &t->nodes[i];
        reset(n);
        CK_TRY(fill_context(n));
        if (n->role == CK_TEST_SOURCE) CK_TRY(start_source(n));
        if (n->role == CK_TEST_READER) CK_TRY(ck_test_reader_start(n));
        if (n->role != CK_TEST_OPERATOR) continue;
        CK_TRY(n->desc->create(n->spec, t->mem, &n->self, &t->error));
        ck_status s = CK_HAS(n->desc->op, open) ? n->desc->op->open(n->self, &n->ctx) : CK_OK;
        end_call(t);
        if (s != CK_OK) return s;
    }
    return CK_OK;
}

void ck_test_nodes_stop(clink_test *t) {
    for (uint32_t i = 0; t->nodes && i < t->graph->op_count; i++) {
        ck_test_node *n = &t->nodes[i];
        while (n->first) {
            ck_test_event *e = n->first;
            n->first = e->next;
            if (e->ev.kind == CK_EVENT_BATCH) ck_batch_unref(&e->ev.batch);
            ck_free(t->mem, e, sizeof *e);
        }
        n->last = &n->first;
        if (n->self && n->desc->source && CK_HAS(n->desc->source, close)) n->desc->source->close(n->self, &n->ctx);
        if (n->self && n->desc->op && CK_HAS(n->desc->op, close)) n->desc->op->close(n->self, &n->ctx);
        n->self = NULL;
        if (n->has_times) ck_event_time_destroy(&n->times);
        n->has_times = false;
    }
}

/* ---- events ---- */

static ck_status to_sink(ck_test_node *n, const ck_event *ev) {
    clink_test *t = n->test;
    if (ev->kind != CK_EVENT_BATCH) return CK_OK;
    uint8_t *kinds = n->kinds ? ck_arena_array(&t->calls, ev->batch->sel_count + 1u, 1) : NULL;
    if (n->kinds && !kinds) return ck_nomem(&t->error, t->mem, ev->batch->sel_count);
    if (kinds) CK_TRY(ck_change_kinds(ev->batch, n->key_count ? n->key : NULL, n->key_count, kinds));
    ck_status s = ck_encoder_rows(n->encoder, ev->batch, kinds, &n->rows, NULL);
    return s == CK_OK ? s : ck_nomem(&t->error, t->mem, n->rows.n);
}

/* What the operator hears of it; false: nothing. */
static bool hears(ck_test_node *n, ck_test_event *e) {
    if (e->ev.kind == CK_EVENT_FLUSH) {
        if (e->ev.flush_seq <= n->flushed) return false;
        n->flushed = e->ev.flush_seq;
        e->input = 0;
    }
    if (e->ev.kind == CK_EVENT_END) n->input_ended[e->input] = true;
    if (e->ev.kind != CK_EVENT_WATERMARK) return true;
    n->watermarks[e->input] = e->ev.watermark.value;
    int64_t least = CK_WATERMARK_MAX;
    for (uint32_t i = 0; i < n->op->input_count; i++)
        if (!n->input_ended[i] && n->watermarks[i] < least) least = n->watermarks[i];
    if (least <= n->watermark) return false;
    n->watermark = least;
    e->ev = ck_event_watermark(least, false);
    e->input = 0;
    return true;
}

/* After the operator: on to who reads it. */
static ck_status go_on(ck_test_node *n, const ck_event *ev) {
    ck_event next = *ev;
    switch (ev->kind) {
    case CK_EVENT_WATERMARK:
        if (n->role == CK_TEST_OPERATOR && CK_HAS(n->desc->op, watermark_delay_us) &&
            next.watermark.value > CK_WATERMARK_MIN + n->desc->op->watermark_delay_us(n->self))
            next.watermark.value -= n->desc->op->watermark_delay_us(n->self);
        return send(n, UINT32_MAX, &next);
    case CK_EVENT_FLUSH: return send(n, UINT32_MAX, &next);
    case CK_EVENT_END:
        if (++n->ended_inputs < n->op->input_count) return CK_OK;
        n->ended = true;
        return send(n, UINT32_MAX, &next);
    default: return CK_OK;
    }
}

static ck_status step(ck_test_node *n) {
    clink_test *t = n->test;
    ck_test_event *e = n->first;
    ck_status s = CK_OK;
    bool heard = n->begun || hears(n, e);
    n->ctx.watermark = n->watermark;
    if (heard && n->role == CK_TEST_SINK) s = to_sink(n, &e->ev);
    if (heard && n->role == CK_TEST_OPERATOR)
        CK_TEST_CALL(t, s, n->desc->op->on_event(n->self, e->input, &e->ev, &n->ctx));
    end_call(t);
    n->begun = s == CK_MORE;
    if (s == CK_MORE) return CK_OK;
    if (s == CK_AGAIN)
        return ck_fail(&t->error, CK_INVALID, "%s waits for something outside, which a test does not have", n->op->uid);
    if (s != CK_OK) return s;
    n->first = e->next;
    if (!n->first) n->last = &n->first;
    if (heard) s = go_on(n, &e->ev);
    if (e->ev.kind == CK_EVENT_BATCH) ck_batch_unref(&e->ev.batch);
    ck_free(t->mem, e, sizeof *e);
    return s;
}

static ck_status drain(clink_test *t) {
    for (;;) {
        ck_test_node *deepest = NULL;
        for (uint32_t i = t->graph->op_count; i-- > 0 && !deepest;)
            if (t->nodes[i].first) deepest = &t->nodes[i];
        if (!deepest) return CK_OK;
        CK_TRY(step(deepest));
    }
}

ck_status ck_test_settle(clink_test *t) {
    CK_TRY(drain(t));
    ck_event flush = ck_event_flush(++t->flush_seq);
    for (uint32_t i = 0; i < t->graph->op_count; i++)
        if (t->nodes[i].role == CK_TEST_SOURCE || t->nodes[i].role == CK_TEST_READER)
            CK_TRY(send(&t->nodes[i], UINT32_MAX, &flush));
    return drain(t);
}

ck_status ck_test_wake(clink_test *t) {
    for (uint32_t i = 0; i < t->graph->op_count; i++) {
        ck_test_node *n = &t->nodes[i];
        if (n->role != CK_TEST_OPERATOR || !CK_HAS(n->desc->op, on_wake) || !CK_HAS(n->desc->op, next_wake_us))
            continue;
        for (int64_t at; (at = n->desc->op->next_wake_us(n->self, &n->ctx)) <= t->now_us;) {
            ck_status s = n->desc->op->on_wake(n->self, t->now_us, &n->ctx);
            end_call(t);
            if (s != CK_OK && s != CK_MORE) return s;
            CK_TRY(drain(t));
        }
    }
    return ck_test_settle(t);
}

/* ---- what comes in ---- */

static ck_status hand_on(ck_test_node *n, ck_decoder *d) {
    uint32_t rows = ck_decoder_rows(d);
    ck_batch *b = ck_decoder_take(d);
    if (!rows && b) {
        ck_batch_unref(&b);
        return CK_OK;
    }
    return ck_source_emit(&n->source, &n->times, n->clock, &b, rows, &n->ctx);
}

ck_status ck_test_push_rows(clink_test *t, ck_test_node *n, const char *ndjson) {
    const ck_decoder_spec spec = {.format = "json",
                                  .schema = n->source.schema,
                                  .wanted = n->source.wanted,
                                  .checked = n->source.checked,
                                  .strict = true};
    size_t bytes = strlen(ndjson), at = 0, used;
    ck_decoder *d;
    ck_buffer *buffer = ck_buffer_new(t->mem, bytes ? bytes : 1);
    if (!buffer) return ck_nomem(&t->error, t->mem, bytes);
    memcpy(buffer->p, ndjson, bytes);
    ck_status s = ck_decoder_new(&t->engine->proc, &spec, t->mem, NULL, NULL, &d, &t->error);
    if (s == CK_OK) {
        s = ck_decoder_begin(d, n->table, true, &t->error);
        for (bool more = true; s == CK_OK && more;) {
            s = ck_decoder_feed(d, buffer, at, bytes, at, true, &used, &t->error);
            at += used;
            more = s == CK_FULL;
            if (s == CK_OK || s == CK_FULL) s = hand_on(n, d);
        }
        ck_decoder_free(d);
    }
    ck_buffer_unref(&buffer);
    end_call(t);
    return s;
}

ck_status ck_test_push_watermark(clink_test *t, ck_test_node *n, int64_t us) {
    (void)t;
    return emit_watermark(&n->ctx, us, false);
}

ck_status ck_test_push_end(clink_test *t, ck_test_node *n) {
    (void)t;
    ck_event end = ck_event_end();
    if (n->ended) return CK_OK;
    n->ended = true;
    return send(n, UINT32_MAX, &end);
}
