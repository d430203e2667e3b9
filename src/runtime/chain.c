/* See chain.h: making a chain, and its driver. */
#include "runtime/chain_int.h"

#include <stdio.h>

#include "os/clock.h"

enum { ARENA_BYTES_MAX = 256 << 20, CLOCK_EVERY_EVENTS = 16 };

/* ---- making ---- */

static size_t chain_bytes(uint32_t ops) { return sizeof(ck_chain) + ops * sizeof(ck_op_runtime); }

ck_status ck_chain_new(ck_proc *proc, ck_mem mem, ck_mem queue_mem, uint32_t op_count, const ck_chain_host *host,
                       ck_chain **out, ck_error *err) {
    ck_chain *c = ck_alloc_zero(mem, chain_bytes(op_count));
    if (!c) return ck_nomem(err, mem, chain_bytes(op_count));
    c->proc = proc;
    c->mem = mem;
    c->host = *host;
    c->error = CK_ERROR_INIT;
    c->op_count = c->live = op_count;
    c->words = (op_count + 63) / 64;
    c->pending = ck_alloc_zero(mem, c->words * sizeof *c->pending);
    if (!c->pending || ck_exchange_group_init(&c->exchanges, proc, queue_mem) != CK_OK) {
        ck_chain_free(c);
        return ck_nomem(err, mem, op_count / 8 + 1);
    }
    ck_arena_init(&c->arena, queue_mem, ARENA_BYTES_MAX);
    *out = c;
    return CK_OK;
}

static void release_metrics(ck_op_runtime *op) {
    ck_proc *proc = op->chain->proc;
    ck_op_counter_release(&op->rows_in, proc);
    ck_op_counter_release(&op->rows_out, proc);
    ck_op_counter_release(&op->batches_in, proc);
    for (int i = 0; i < CK_OP_COUNTERS_MAX; i++) ck_op_counter_release(&op->counters[i].of, proc);
    ck_op_clock_destroy(&op->clock, proc);
    ck_op_lag_destroy(&op->lag, proc);
}

void ck_chain_free(ck_chain *c) {
    if (!c) return;
    ck_mem mem = c->mem;
    for (uint32_t i = 0; i < c->op_count && c->pending; i++) {
        ck_op_runtime *op = &c->ops[i];
        if (op->chain) {
            ck_inbox_clear(op);
            release_metrics(op);
        }
        ck_free(mem, op->inbox.items, op->inbox.capacity * sizeof *op->inbox.items);
        ck_free(mem, op->outputs, op->output_capacity * sizeof *op->outputs);
        ck_free(mem, op->inputs, op->ctx.input_count);
    }
    ck_exchange_group_destroy(&c->exchanges);
    ck_arena_destroy(&c->arena);
    ck_free(mem, c->pending, c->words * sizeof *c->pending);
    ck_free(mem, c, chain_bytes(c->op_count));
}

ck_op_runtime *ck_chain_op(ck_chain *c, uint32_t index) {
    CK_ASSERT(index < c->op_count);
    return &c->ops[index];
}
uint32_t ck_chain_op_count(const ck_chain *c) { return c->op_count; }
ck_exchange_group *ck_chain_exchanges(ck_chain *c) { return &c->exchanges; }
ck_error *ck_chain_error(ck_chain *c) { return &c->error; }
bool ck_chain_has_source(const ck_chain *c) { return c->ops[0].desc->source != NULL; }
bool ck_chain_is_finished(const ck_chain *c) { return c->live == 0; }
ck_sweep_kind ck_chain_sweeping(const ck_chain *c) { return c->sweep; }

ck_status ck_chain_init_op(ck_chain *c, uint32_t index) {
    ck_op_runtime *op = &c->ops[index];
    op->chain = c;
    op->index = index;
    op->open_inputs = op->ctx.input_count;
    op->wake_us = INT64_MAX;
    op->out_watermark = CK_WATERMARK_MIN;
    ck_op_clock_init(&op->clock);
    ck_op_counter_show(&op->rows_in, &op->ctx, "rows_in");
    ck_op_counter_show(&op->rows_out, &op->ctx, "rows_out");
    ck_op_counter_show(&op->batches_in, &op->ctx, "batches_in");
    op->inputs = ck_alloc_zero(c->mem, op->ctx.input_count);
    if (!op->inputs) return CK_NOMEM;
    if (op->desc->op && CK_HAS(op->desc->op, next_wake_us)) c->has_wakes = true;
    ck_op_context_init(op);
    return CK_OK;
}

static ck_status add_output(ck_op_runtime *op, ck_output out) {
    if (op->output_count == op->output_capacity) {
        uint32_t capacity = op->output_capacity + 4;
        void *p = ck_realloc(op->chain->mem, op->outputs, op->output_capacity * sizeof out, capacity * sizeof out);
        if (!p) return CK_NOMEM;
        op->outputs = p;
        op->output_capacity = capacity;
    }
    op->outputs[op->output_count++] = out;
    return CK_OK;
}

ck_status ck_chain_connect(ck_chain *c, uint32_t from, uint32_t port, uint32_t to) {
    CK_ASSERT(from < to && to < c->op_count); /* deepest first relies on it */
    c->ops[to].from = &c->ops[from];
    return add_output(&c->ops[from], (ck_output){.port = port, .op = &c->ops[to]});
}
ck_status ck_chain_connect_exchange(ck_chain *c, uint32_t from, uint32_t port, ck_exchange *x) {
    return add_output(&c->ops[from], (ck_output){.port = port, .exchange = x});
}

/* ---- closing ---- */

static bool has_ended(const ck_op_runtime *op, uint32_t input) { return op->inputs[input] & CK_INPUT_ENDED; }

/* What still waits of a closed input is dropped, except an event the operator has begun; then its END follows. */
static void end_closed_input(ck_op_runtime *op, uint32_t input) {
    struct ck_inbox *in = &op->inbox;
    bool end_waits = false;
    for (uint32_t i = op->in_front ? 1 : 0; i < in->count; i++) {
        ck_inbox_item *item = &in->items[(in->first + i) & (in->capacity - 1)];
        if (item->is_wake || item->input != input) continue;
        if (item->event.kind == CK_EVENT_END) end_waits = true;
        if (item->event.kind != CK_EVENT_BATCH) continue;
        ck_batch_unref(&item->event.batch);
        *item = (ck_inbox_item){.is_wake = true, .event.watermark.value = INT64_MIN}; /* a hole: no one is called */
    }
    ck_event end = ck_event_end();
    if (!end_waits && !has_ended(op, input) && ck_inbox_push(op, input, &end, false) != CK_OK) op->chain->broken = true;
}

static void close_producer(ck_op_runtime *op, uint32_t input) {
    ck_chain *c = op->chain;
    if (op->from) {
        for (uint32_t i = 0; i < op->from->output_count; i++)
            if (op->from->outputs[i].op == op) op->from->outputs[i].closed = true;
    } else if (!op->desc->source) {
        c->host.close_input(c->host.arg, input);
    }
}

static void close_asked_inputs(ck_op_runtime *op) {
    for (uint32_t i = 0; i < op->ctx.input_count; i++) {
        if ((op->inputs[i] & (CK_INPUT_CLOSE_ASKED | CK_INPUT_CLOSED)) != CK_INPUT_CLOSE_ASKED) continue;
        op->inputs[i] |= CK_INPUT_CLOSED;
        close_producer(op, i);
        if (!op->dead) end_closed_input(op, i);
    }
}

static bool all_outputs_closed(const ck_op_runtime *op) {
    bool main = false;
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (!op->outputs[i].closed) return false;
        main |= op->outputs[i].port == 0;
    }
    return main; /* a sink has none; what it sets aside may have no reader */
}

/* Of what it says only the side outputs (dead letters, late rows) are still read. */
static bool only_sides_open(const ck_op_runtime *op) {
    bool main = false, side = false;
    for (uint32_t i = 0; i < op->output_count; i++) {
        const ck_output *out = &op->outputs[i];
        if (out->port == 0 && !out->closed) return false;
        main |= out->port == 0;
        side |= !out->closed;
    }
    return main && side;
}

static void stop_source(ck_op_runtime *op) {
    if (op->desc->source && CK_HAS(op->desc->source, stop)) op->desc->source->stop(op->self, &op->ctx);
}

static void die(ck_op_runtime *op) {
    op->dead = true;
    op->waiting = false;
    op->wake_us = INT64_MAX;
    op->chain->live--;
    ck_inbox_clear(op);
    for (uint32_t i = 0; i < op->ctx.input_count; i++) op->inputs[i] |= CK_INPUT_CLOSE_ASKED;
    stop_source(op);
}

/* Side outputs alone keep nothing going: an operator takes the end of its inputs, a source ends, and what reads the
 * sides is told. */
static void end_for_its_sides(ck_op_runtime *op) {
    for (uint32_t i = 0; i < op->ctx.input_count; i++) op->inputs[i] |= CK_INPUT_CLOSE_ASKED;
    if (!op->desc->source) return;
    stop_source(op);
    ck_chain_mark_ended(op);
    const ck_event end = ck_event_end();
    if (ck_op_send_control(op, &end) != CK_OK) op->chain->broken = true;
}

/* Deepest first: what an operator closes, the ones before it see in the same pass. */
static void settle_closings(ck_chain *c) {
    c->closing = false;
    for (uint32_t i = c->op_count; i-- > 0;) {
        ck_op_runtime *op = &c->ops[i];
        if (!op->dead && !op->ended && all_outputs_closed(op)) die(op);
        if (!op->dead && !op->ended && only_sides_open(op)) end_for_its_sides(op);
        close_asked_inputs(op);
    }
}

static void look_at_closed_channels(ck_chain *c) {
    for (uint32_t i = 0; i < c->op_count; i++)
        for (uint32_t k = 0; k < c->ops[i].output_count; k++) {
            ck_output *out = &c->ops[i].outputs[k];
            if (!out->exchange || out->closed || !ck_exchange_is_closed(out->exchange)) continue;
            out->closed = c->closing = true;
        }
    if (c->closing) settle_closings(c);
}

/* ---- calls ---- */

void ck_chain_before_call(ck_op_runtime *op, bool may_wait) {
    op->chain->now_us = INT64_MIN;
    if (may_wait) atomic_store_explicit(&op->woken, false, memory_order_relaxed);
}

ck_status ck_chain_after_call(ck_op_runtime *op, ck_status s) {
    ck_chain *c = op->chain;
    if (c->arena.blocks) ck_arena_reset_to(&c->arena, (ck_arena_mark){0});
    op->waiting = s == CK_AGAIN;
    if (c->exchanges.full) c->full = true;
    if (s == CK_OK && c->broken) s = CK_NOMEM;
    if (s == CK_OK || s == CK_MORE || s == CK_AGAIN) {
        if (c->closing) settle_closings(c);
        return s;
    }
    ck_error *e = &c->error;
    if (e->status == CK_OK) ck_fail(e, s, "the operator failed (%s) and did not say why", ck_status_name(s));
    if (!e->place.object[0]) snprintf(e->place.object, sizeof e->place.object, "%s", op->ctx.uid);
    e->place.subtask = (int32_t)op->ctx.subtask;
    return s;
}

void ck_chain_mark_ended(ck_op_runtime *op) {
    op->ended = true;
    op->wake_us = INT64_MAX;
    op->chain->live--;
}

static ck_status take_end(ck_op_runtime *op, uint32_t input) {
    if (has_ended(op, input)) return CK_OK;
    op->inputs[input] |= CK_INPUT_ENDED;
    if (--op->open_inputs > 0) return CK_OK;
    ck_chain_mark_ended(op);
    ck_event end = ck_event_end();
    return ck_op_send_control(op, &end);
}

/* What those behind an operator hear of a watermark that it has taken. */
static ck_status forward_watermark(ck_op_runtime *op, const ck_event *ev) {
    int64_t watermark = ev->watermark.value, delay_us = 0;
    if (CK_HAS(op->desc->op, watermark_delay_us)) delay_us = op->desc->op->watermark_delay_us(op->self);
    if (delay_us == CK_WATERMARKS_OWN) return CK_OK;
    if (watermark != CK_WATERMARK_MAX)
        watermark = watermark < CK_WATERMARK_MIN + delay_us ? CK_WATERMARK_MIN : watermark - delay_us;
    return op->ctx.emit_watermark_fn(&op->ctx, watermark, ev->watermark.idle);
}

/* After the operator has taken an event: what goes on by itself. */
static ck_status forward(ck_op_runtime *op, const ck_inbox_item *item) {
    switch (item->event.kind) {
    case CK_EVENT_WATERMARK: return forward_watermark(op, &item->event);
    case CK_EVENT_FLUSH: return ck_op_send_control(op, &item->event);
    case CK_EVENT_END: return take_end(op, item->input);
    default: return CK_OK;
    }
}

static void count_batch(ck_op_runtime *op, uint32_t rows) {
    ck_chain *c = op->chain;
    c->rows_left -= rows < c->rows_left ? rows : c->rows_left;
    ck_op_counter_add(&op->rows_in, rows);
    ck_op_counter_add(&op->batches_in, 1);
}

static ck_status call_wake(ck_op_runtime *op, const ck_inbox_item *item) {
    if (item->event.watermark.value == INT64_MIN || !CK_HAS(op->desc->op, on_wake)) return CK_OK;
    return op->desc->op->on_wake(op->self, item->event.watermark.value, &op->ctx);
}

/* The front event of an operator's inbox. It stays in place while the operator has it: only the operator before, which
 * does not run meanwhile, adds to this inbox. */
static ck_status deliver(ck_op_runtime *op) {
    const ck_inbox_item *item = &op->inbox.items[op->inbox.first];
    if (!op->in_front && !item->is_wake) {
        if (item->event.kind == CK_EVENT_BATCH)
            count_batch(op, item->event.batch->sel_count);
        else if (item->event.kind == CK_EVENT_WATERMARK)
            op->ctx.watermark = item->event.watermark.value;
    }
    op->in_front = true;
    ck_chain_before_call(op, true);
    ck_status s =
        item->is_wake ? call_wake(op, item) : op->desc->op->on_event(op->self, item->input, &item->event, &op->ctx);
    if (s == CK_OK) {
        if (op->chain->has_wakes && CK_HAS(op->desc->op, next_wake_us))
            op->wake_us = op->desc->op->next_wake_us(op->self, &op->ctx);
        if (!item->is_wake && item->event.kind != CK_EVENT_BATCH) s = forward(op, item);
        ck_inbox_pop(op);
    }
    return ck_chain_after_call(op, s);
}

/* ---- the driver ---- */

static ck_op_runtime *deepest_pending(ck_chain *c) {
    for (uint32_t w = c->words; w-- > 0;)
        if (c->pending[w]) return &c->ops[w * 64 + 63 - (uint32_t)__builtin_clzll(c->pending[w])];
    return NULL;
}

bool ck_chain_spent(const ck_chain *c) { return c->events_left == 0 || c->rows_left == 0; }

static void spend_event(ck_chain *c) {
    if (c->events_left && --c->events_left % CLOCK_EVERY_EVENTS == 0 && c->events_left &&
        ck_mono_us(c->proc) >= c->step_end_us)
        c->events_left = 0;
}

void ck_chain_count_input(ck_chain *c) { spend_event(c); }

void ck_chain_begin_step(ck_chain *c, const ck_quantum *q) {
    c->events_left = q->events;
    c->rows_left = q->rows;
    c->step_end_us = ck_mono_us(c->proc) + q->us;
    if (c->full) {
        c->full = ck_exchange_any_full(&c->exchanges);
        c->exchanges.full = c->full;
    }
    if (atomic_load_explicit(&c->exchanges.closed_hint, memory_order_relaxed) &&
        atomic_exchange(&c->exchanges.closed_hint, false))
        look_at_closed_channels(c);
}

void ck_chain_push_on(ck_chain *c, uint32_t events) { c->push_on = events; }

static ck_chain_result run_inboxes(ck_chain *c) {
    for (ck_op_runtime *op; (op = deepest_pending(c));) {
        if (c->full && !c->push_on) return CK_CHAIN_FULL;
        if (op->waiting && !atomic_load(&op->woken)) return CK_CHAIN_WAIT;
        if (ck_chain_spent(c)) return CK_CHAIN_SPENT;
        if (c->full) c->push_on--;
        ck_status s = deliver(op);
        if (s != CK_OK && s != CK_MORE && s != CK_AGAIN) return CK_CHAIN_FAILED;
        spend_event(c);
    }
    return c->full && !c->push_on ? CK_CHAIN_FULL : CK_CHAIN_IDLE;
}

ck_chain_result ck_chain_run(ck_chain *c) {
    for (;;) {
        ck_chain_result r = run_inboxes(c);
        if (r != CK_CHAIN_IDLE || c->sweep == CK_SWEEP_NONE) return r;
        if (ck_chain_spent(c)) return CK_CHAIN_SPENT;
        ck_status s = ck_chain_sweep_one(c);
        spend_event(c);
        if (s == CK_AGAIN) return CK_CHAIN_WAIT;
        if (s != CK_OK && s != CK_MORE) return CK_CHAIN_FAILED;
    }
}

/* After something was sent outside of an operator's call. */
static ck_status exchanged(ck_chain *c, ck_status s) {
    if (c->exchanges.full) c->full = true;
    return s == CK_OK ? CK_OK : ck_nomem(&c->error, c->exchanges.mem, 0);
}

ck_status ck_chain_offer(ck_chain *c, uint32_t input, const ck_event *ev) {
    ck_op_runtime *head = &c->ops[0];
    ck_batch *b = ev->kind == CK_EVENT_BATCH ? ev->batch : NULL;
    ck_status s = CK_OK;
    if (!head->dead && !head->ended && !(head->inputs[input] & CK_INPUT_CLOSED)) {
        s = ck_inbox_push(head, input, ev, false);
        if (s == CK_OK) return CK_OK;
    }
    ck_batch_unref(&b);
    return s;
}

ck_status ck_chain_replay(ck_chain *c, uint32_t op, const ck_event *ev) {
    ck_batch *b = ev->kind == CK_EVENT_BATCH ? ev->batch : NULL;
    ck_status s = CK_OK;
    if (!c->ops[op].dead && !c->ops[op].ended) {
        s = ck_inbox_push(&c->ops[op], 0, ev, false);
        if (s == CK_OK) return CK_OK;
    }
    ck_batch_unref(&b);
    return s;
}

ck_status ck_chain_forward(ck_chain *c, const ck_event *ev) {
    ck_status s = CK_OK;
    for (ck_exchange *x = c->exchanges.exchanges; x && s == CK_OK; x = ck_exchange_next(x))
        s = ck_exchange_control(x, ev);
    return exchanged(c, s);
}

ck_status ck_chain_flush_exchanges(ck_chain *c) { return exchanged(c, ck_exchange_flush(&c->exchanges)); }
