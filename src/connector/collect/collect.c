/* The `collect` sink and the queue behind it: rows go to the embedding program. The sink never blocks: where the queue
 * is full it waits for a wake, which the reader gives when it has taken a batch. Batches are copied into the queue's
 * own memory, since a reader may keep them after the job and its budget are gone. */
#include "connector/collect/collect.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "connector/connectors.h"
#include "connector/table.h"
#include "format/encoder.h"
#include "os/clock.h"

typedef struct collected_node {
    ck_collected item;
    size_t bytes;
    struct collected_node *next;
} collected_node;

typedef struct waiter { /* a sink that found the queue full; in the sink */
    ck_op_ctx *ctx;
    struct waiter *next;
} waiter;

struct ck_collector {
    _Atomic uint32_t refs;
    ck_mem mem;
    size_t bytes_max;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    collected_node *head, **tail;
    size_t bytes;
    waiter *waiters;
    bool closed;   /* the reader wants no more */
    bool finished; /* the job has ended, as status and error say */
    ck_status status;
    ck_error error;
};

void ck_collected_destroy(ck_collected *c) {
    if (c->kinds) ck_free(c->mem, c->kinds, c->batch->sel_count);
    c->kinds = NULL;
    ck_batch_unref(&c->batch);
}

ck_status ck_collector_new(ck_proc *proc, ck_mem mem, size_t bytes_max, ck_collector **out) {
    (void)proc;
    ck_collector *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return CK_NOMEM;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    atomic_init(&c->refs, 1);
    c->mem = mem;
    c->bytes_max = bytes_max;
    c->tail = &c->head;
    *out = c;
    return CK_OK;
}

ck_collector *ck_collector_ref(ck_collector *c) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

static void drop_rows(ck_collector *c) {
    while (c->head) {
        collected_node *n = c->head;
        c->head = n->next;
        ck_collected_destroy(&n->item);
        ck_free(c->mem, n, sizeof *n);
    }
    c->tail = &c->head;
    c->bytes = 0;
}

void ck_collector_unref(ck_collector **pc) {
    ck_collector *c = *pc;
    *pc = NULL;
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
    drop_rows(c);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    ck_free(c->mem, c, sizeof *c);
}

/* With the lock held: a waiting sink cannot go away meanwhile, since it takes itself off the list under the lock. */
static void wake_sinks(ck_collector *c) {
    for (waiter *w = c->waiters; w; w = w->next) ck_op_wake(w->ctx, w->ctx->rt);
    c->waiters = NULL;
}

/* ---- the reader ---- */

static bool wait_until(ck_collector *c, int64_t timeout_us, const struct timespec *until) {
    if (timeout_us < 0) return pthread_cond_wait(&c->changed, &c->lock) == 0;
    return pthread_cond_timedwait(&c->changed, &c->lock, until) != ETIMEDOUT;
}

ck_status ck_collector_next(ck_collector *c, int64_t timeout_us, ck_collected *out, ck_error *err) {
    struct timespec until = {0};
    if (timeout_us >= 0) {
        clock_gettime(CLOCK_MONOTONIC, &until); /* a wait of the embedding program, not of the engine's clock */
        until.tv_sec += timeout_us / 1000000;
        until.tv_nsec += timeout_us % 1000000 * 1000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    }
    *out = (ck_collected){0};
    ck_status s = CK_OK;
    pthread_mutex_lock(&c->lock);
    while (!c->head && !c->finished && !c->closed && s == CK_OK)
        if (!wait_until(c, timeout_us, &until)) s = CK_AGAIN;
    if (c->head) {
        collected_node *n = c->head;
        c->head = n->next;
        if (!c->head) c->tail = &c->head;
        c->bytes -= n->bytes;
        *out = n->item;
        ck_free(c->mem, n, sizeof *n);
        wake_sinks(c);
        s = CK_OK;
    } else if (c->finished && c->status != CK_OK) {
        if (err) *err = c->error;
        s = c->status;
    } else if (c->finished || c->closed) {
        s = CK_CLOSED;
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

void ck_collector_close(ck_collector *c) {
    pthread_mutex_lock(&c->lock);
    c->closed = true;
    drop_rows(c);
    wake_sinks(c);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void ck_collector_finish(ck_collector *c, ck_status status, const ck_error *err) {
    pthread_mutex_lock(&c->lock);
    if (!c->finished) {
        c->finished = true;
        c->status = status;
        if (err) c->error = *err;
        c->error.status = status;
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* ---- the sink's side ---- */

static void forget_waiter(ck_collector *c, waiter *w) {
    for (waiter **p = &c->waiters; *p; p = &(*p)->next) {
        if (*p != w) continue;
        *p = w->next;
        return;
    }
}

/* CK_OK: the node is the queue's. CK_AGAIN: full, w is woken when there is room. CK_CLOSED: nobody reads. */
static ck_status collector_push(ck_collector *c, collected_node *n, waiter *w, ck_op_ctx *ctx) {
    ck_status s = CK_OK;
    pthread_mutex_lock(&c->lock);
    forget_waiter(c, w);
    if (c->closed) {
        s = CK_CLOSED;
    } else if (c->head && c->bytes + n->bytes > c->bytes_max) { /* one batch always fits */
        *w = (waiter){ctx, c->waiters};
        c->waiters = w;
        s = CK_AGAIN;
    } else {
        *c->tail = n;
        c->tail = &n->next;
        c->bytes += n->bytes;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

typedef struct collect_op {
    ck_mem mem;
    ck_arena arena;
    ck_sink_table table;
    bool kinds;
    ck_collector *collector; /* NULL: nobody listens */
    collected_node *held;    /* made, found the queue full */
    waiter waiter;
} collect_op;

static void node_free(collect_op *op, collected_node *n) {
    ck_collected_destroy(&n->item);
    ck_free(op->collector->mem, n, sizeof *n);
}

static ck_status collect_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    collect_op *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_sink_table_read(&op->arena, spec, &op->table, NULL, err);
    if (s != CK_OK) {
        ck_arena_destroy(&op->arena);
        ck_free(mem, op, sizeof *op);
        return s;
    }
    op->kinds = spec->inputs[0].mode != CK_MODE_APPEND;
    const ck_job_outputs *outputs = spec->job_data;
    ck_collector *c = NULL;
    if (outputs && !op->table.table) c = outputs->result;
    if (outputs && op->table.table && outputs->table) c = outputs->table(outputs->arg, op->table.table);
    if (c) op->collector = ck_collector_ref(c);
    *self = op;
    return CK_OK;
}

static ck_status make_node(collect_op *op, ck_batch *b, ck_op_ctx *ctx) {
    ck_mem mem = op->collector->mem;
    collected_node *n = ck_alloc_zero(mem, sizeof *n);
    if (!n) return ck_nomem(ctx->error, mem, sizeof *n);
    n->item = (ck_collected){.batch = ck_batch_compact(b, mem), .mem = mem};
    if (!n->item.batch) {
        ck_free(mem, n, sizeof *n);
        return ck_nomem(ctx->error, mem, b->bytes);
    }
    ck_origin_unref(&n->item.batch->origin); /* the job's memory; the rows outlive the job */
    op->held = n;
    n->bytes = ck_batch_pinned_bytes(n->item.batch);
    if (!op->kinds) return CK_OK;
    n->item.kinds = ck_alloc(mem, b->sel_count);
    if (!n->item.kinds) return ck_nomem(ctx->error, mem, b->sel_count);
    return ck_change_kinds(n->item.batch, op->table.key, op->table.key_count, n->item.kinds);
}

static ck_status collect_batch(collect_op *op, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    uint32_t rows = b->sel_count;
    if (!op->collector) {
        ck_op_count(ctx, "rows_out", rows);
        return CK_OK;
    }
    if (!op->held) CK_TRY(make_node(op, b, ctx));
    ck_status s = collector_push(op->collector, op->held, &op->waiter, ctx);
    if (s == CK_AGAIN) return CK_AGAIN;
    if (s == CK_OK) {
        op->held = NULL;
        ck_op_count(ctx, "rows_out", rows);
        return CK_OK;
    }
    node_free(op, op->held);
    op->held = NULL;
    ck_op_close_input(ctx, 0);
    return CK_OK;
}

static ck_status collect_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH ? collect_batch(self, ev->batch, ctx) : CK_OK;
}

static void collect_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    collect_op *op = self;
    if (op->collector) {
        pthread_mutex_lock(&op->collector->lock);
        forget_waiter(op->collector, &op->waiter);
        pthread_mutex_unlock(&op->collector->lock);
        if (op->held) node_free(op, op->held);
    }
    ck_collector_unref(&op->collector);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static const ck_operator_vtbl collect_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = collect_on_event,
    .close = collect_close,
};

const ck_op_desc ck_op_sink_collect = {.type = "sink.collect", .op = &collect_vtbl, .create = collect_create};

static bool takes_anything(const ck_table_decl *t) {
    (void)t;
    return true;
}

static ck_guarantee collect_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t;
    (void)checkpoints;
    *why = "rows handed to the program before a crash are handed out again after it";
    return CK_AT_LEAST_ONCE;
}

const ck_connector_desc ck_connector_collect = {
    .name = "collect",
    .sink_type = "sink.collect",
    .accepts_changes = takes_anything,
    .accepts_upserts = takes_anything,
    .guarantee = collect_guarantee,
};
