/* An operator's window on the runtime: what stands behind the function pointers of ck_op_ctx. All of it only puts
 * things into inboxes and exchanges or notes wishes; nothing here calls an operator. */
#include <stdio.h>

#include "os/clock.h"
#include "runtime/chain_int.h"

/* ---- inboxes ---- */

static ck_status grow(ck_op_runtime *op) {
    struct ck_inbox *in = &op->inbox;
    uint32_t capacity = in->capacity ? in->capacity * 2 : 4;
    if (capacity > CK_INBOX_EVENTS_MAX)
        return ck_fail(&op->chain->error, CK_FULL, "the operator before emitted over %d events in one call",
                       CK_INBOX_EVENTS_MAX);
    ck_inbox_item *items = ck_alloc_array(op->chain->mem, capacity, sizeof *items);
    if (!items) return ck_nomem(&op->chain->error, op->chain->mem, capacity * sizeof *items);
    for (uint32_t i = 0; i < in->count; i++) items[i] = in->items[(in->first + i) & (in->capacity - 1)];
    ck_free(op->chain->mem, in->items, in->capacity * sizeof *in->items);
    in->items = items;
    in->first = 0;
    in->capacity = capacity;
    return CK_OK;
}

/* Room for one more at the end; NULL without memory. */
static inline ck_inbox_item *next_item(ck_op_runtime *op) {
    struct ck_inbox *in = &op->inbox;
    if (CK_UNLIKELY(in->count == in->capacity) && grow(op) != CK_OK) return NULL;
    op->chain->pending[op->index / 64] |= 1ULL << (op->index % 64);
    return &in->items[(in->first + in->count++) & (in->capacity - 1)];
}

/* On failure the batch is still the caller's. */
ck_status ck_inbox_push(ck_op_runtime *op, uint32_t input, const ck_event *ev, bool is_wake) {
    ck_inbox_item *item = next_item(op);
    if (!item) return op->chain->error.status;
    *item = (ck_inbox_item){*ev, input, is_wake};
    return CK_OK;
}

/* Member by member: a batch is the usual event, and copying a struct that was just written member by member stalls. */
static inline ck_status push_batch(ck_op_runtime *op, ck_batch *b) {
    ck_inbox_item *item = next_item(op);
    if (!item) return op->chain->error.status;
    item->event.kind = CK_EVENT_BATCH;
    item->event.batch = b;
    item->input = 0;
    item->is_wake = false;
    return CK_OK;
}

void ck_inbox_pop(ck_op_runtime *op) {
    struct ck_inbox *in = &op->inbox;
    ck_inbox_item *front = &in->items[in->first];
    if (!front->is_wake && front->event.kind == CK_EVENT_BATCH) ck_batch_unref(&front->event.batch);
    in->first = (in->first + 1) & (in->capacity - 1);
    if (--in->count == 0) op->chain->pending[op->index / 64] &= ~(1ULL << (op->index % 64));
    op->in_front = false;
}

void ck_inbox_clear(ck_op_runtime *op) {
    while (op->inbox.count) ck_inbox_pop(op);
}

/* ---- emitting ---- */

/* Takes the reference in *b. */
static ck_status send_batch(ck_output *out, ck_chain *c, ck_batch **b) {
    if (out->op) {
        ck_status s = push_batch(out->op, *b);
        if (s != CK_OK) ck_batch_unref(b);
        *b = NULL;
        return s;
    }
    ck_status s = ck_exchange_check(out->exchange, *b, &c->error);
    if (s != CK_OK) {
        ck_batch_unref(b);
        return s;
    }
    s = ck_exchange_batch(out->exchange, b);
    if (s == CK_CLOSED) {
        out->closed = c->closing = true;
        return CK_OK;
    }
    return s == CK_NOMEM ? ck_nomem(&c->error, c->exchanges.mem, 0) : s;
}

static ck_status emit(ck_op_ctx *ctx, uint32_t port, ck_batch **pb) {
    ck_op_runtime *op = ctx->rt;
    ck_chain *c = op->chain;
    ck_batch *b = *pb;
    *pb = NULL;
    if (b->sel_count == 0) {
        ck_batch_unref(&b);
        return CK_OK;
    }
    if (port == 0) ck_op_counter_add(&op->rows_out, b->sel_count);
    if (op->desc->source) c->source_emitted = true;
    ck_output *last = NULL;
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < op->output_count; i++) {
        ck_output *out = &op->outputs[i];
        if (out->port != port || out->closed) continue;
        if (last && s == CK_OK) {
            ck_batch *ref = ck_batch_ref(b);
            s = send_batch(last, c, &ref);
        }
        last = out;
    }
    if (last && s == CK_OK) return send_batch(last, c, &b);
    ck_batch_unref(&b);
    return s;
}

ck_status ck_op_send_control(ck_op_runtime *op, const ck_event *ev) {
    for (uint32_t i = 0; i < op->output_count; i++) {
        ck_output *out = &op->outputs[i];
        if (out->closed || (out->op && out->op->restored_ended)) continue;
        if (out->op)
            CK_TRY(ck_inbox_push(out->op, 0, ev, false));
        else if (ck_exchange_control(out->exchange, ev) != CK_OK)
            return ck_nomem(&op->chain->error, op->chain->exchanges.mem, 0);
    }
    return CK_OK;
}

static ck_status emit_watermark(ck_op_ctx *ctx, int64_t value, bool idle) {
    ck_op_runtime *op = ctx->rt;
    if (value < op->out_watermark) value = op->out_watermark; /* never back */
    if (value == op->out_watermark && idle == op->out_idle) return CK_OK;
    op->out_watermark = value;
    op->out_idle = idle;
    ck_event ev = ck_event_watermark(value, idle);
    return ck_op_send_control(op, &ev);
}

/* ---- wishes ---- */

static void close_input(ck_op_ctx *ctx, uint32_t input) {
    ck_op_runtime *op = ctx->rt;
    CK_ASSERT(input < ctx->input_count);
    if (op->inputs[input] & (CK_INPUT_CLOSE_ASKED | CK_INPUT_CLOSED)) return;
    op->inputs[input] |= CK_INPUT_CLOSE_ASKED;
    op->chain->closing = true;
}

static int64_t now_us(const ck_op_ctx *ctx) {
    ck_chain *c = ctx->rt->chain;
    if (c->now_us == INT64_MIN) c->now_us = ck_wall_us(c->proc);
    return c->now_us;
}

static void wake(ck_op_runtime *op) {
    atomic_store(&op->woken, true);
    ck_task_notify(op->chain->host.task);
}

/* A counter of the operator's own that has the name of one every operator has stays beside the registry. */
static void show(ck_op_counter *c, const ck_op_ctx *ctx, const char *name) {
    if (strcmp(name, "rows_in") != 0 && strcmp(name, "rows_out") != 0) ck_op_counter_show(c, ctx, name);
}

static void note_lag(ck_op_ctx *ctx, uint64_t records, int64_t us) { ck_op_lag_take(&ctx->rt->lag, ctx, records, us); }
static void note_clock(ck_op_ctx *ctx, const ck_clock_note *note) { ck_op_clock_take(&ctx->rt->clock, ctx, note); }

static void note_keys(ck_op_ctx *ctx, const ck_keys_note *note) {
    struct ck_op_keys *k = &ctx->rt->keys;
    k->any = true;
    k->met = note->met;
    k->like = note->like;
    snprintf(k->spelled, sizeof k->spelled, "%s", note->spelled ? note->spelled : "");
}

static void count(ck_op_ctx *ctx, const char *name, uint64_t n) {
    ck_chain_counter *counters = ctx->rt->counters;
    for (int i = 0; i < CK_OP_COUNTERS_MAX; i++) {
        const char *have = atomic_load_explicit(&counters[i].name, memory_order_relaxed);
        if (have && have != name && strcmp(have, name) != 0) continue;
        if (!have) {
            show(&counters[i].of, ctx, name);
            atomic_store_explicit(&counters[i].name, name, memory_order_release);
        }
        ck_op_counter_add(&counters[i].of, n);
        return;
    }
}

/* ---- I/O ---- */

/* A job of an operator on its way through the executor: the operator may not be closed before it is done. */
typedef struct op_io {
    ck_io_job job;
    ck_io_job *user;
    ck_op_runtime *op;
} op_io;

static void io_run(ck_io_job *j) {
    op_io *io = (op_io *)j;
    io->user->run(io->user);
}

static void io_done(ck_io_job *j) {
    op_io *io = (op_io *)j;
    ck_op_runtime *op = io->op;
    ck_chain_host host = op->chain->host;
    io->user->done(io->user);
    ck_free(op->chain->mem, io, sizeof *io);
    atomic_fetch_sub(&op->io_jobs, 1);
    ck_task_notify(host.task);
    host.io_end(host.arg); /* from here on the operator may be gone */
}

static void submit_io(ck_op_ctx *ctx, ck_io_job *job) {
    ck_op_runtime *op = ctx->rt;
    ck_chain *c = op->chain;
    op_io *io = ck_alloc(c->mem, sizeof *io);
    if (!io) { /* nothing can be returned here: late is better than never */
        job->run(job);
        job->done(job);
        return;
    }
    *io = (op_io){.job = {io_run, io_done, NULL}, .user = job, .op = op};
    atomic_fetch_add(&op->io_jobs, 1);
    c->host.io_begin(c->host.arg);
    c->proc->io->submit(c->proc->io, &io->job);
}

/* Only the head reads from a gate. */
static void hold_input(ck_op_ctx *ctx, uint32_t input, bool hold) {
    ck_chain *c = ctx->rt->chain;
    if (!ctx->rt->from && c->host.hold_input) c->host.hold_input(c->host.arg, input, hold);
}

static void hold_ack(ck_op_ctx *ctx) {
    ck_chain *c = ctx->rt->chain;
    CK_ASSERT(c->sweep == CK_SWEEP_PRE_SNAPSHOT);
    c->host.hold_ack(c->host.arg);
}

static void release_ack(ck_op_runtime *op, uint64_t checkpoint, ck_status status, const ck_error *error) {
    ck_chain_host *host = &op->chain->host;
    host->release_ack(host->arg, checkpoint, status, error);
}

void ck_op_context_init(ck_op_runtime *op) {
    ck_op_ctx *ctx = &op->ctx;
    ctx->arena = &op->chain->arena;
    ctx->error = &op->chain->error;
    ctx->watermark = CK_WATERMARK_MIN;
    ctx->rt = op;
    ctx->emit_fn = emit;
    ctx->emit_watermark_fn = emit_watermark;
    ctx->close_input_fn = close_input;
    ctx->hold_input_fn = hold_input;
    ctx->now_us_fn = now_us;
    ctx->submit_io_fn = submit_io;
    ctx->wake_fn = wake;
    ctx->count_fn = count;
    ctx->note_clock_fn = note_clock;
    ctx->note_keys_fn = note_keys;
    ctx->note_lag_fn = note_lag;
    ctx->hold_ack_fn = hold_ack;
    ctx->release_ack_fn = release_ack;
}
