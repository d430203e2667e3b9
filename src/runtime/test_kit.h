/* For the tests of this room: batches of one BIGINT column, and a probe - an operator or source that writes down what
 * it is told and misbehaves on request. Included by *_test.c only. */
#ifndef CK_RUNTIME_TEST_KIT_H
#define CK_RUNTIME_TEST_KIT_H

#include <stdio.h>

#include "data/builder.h"
#include "os/test_proc.h"
#include "runtime/chain.h"

static inline ck_batch *kit_batch(ck_mem mem, int64_t first, uint32_t rows) { /* first, first + 1, ... */
    ck_batch *b = ck_batch_new(mem, 1, rows, false, false);
    ck_column *c = ck_column_new(mem, CK_PHYS_I64, rows);
    CK_ASSERT(b && c);
    for (uint32_t i = 0; i < rows; i++) c->i64[i] = first + i;
    ck_batch_set_column(b, 0, &c);
    return b;
}

typedef struct probe {
    char log[8192]; /* b<rows> w<value>[i] f<seq> e<input> open snap commit wake close, separated by spaces */
    size_t n;
    int copies; /* each batch goes out so often, one a call (CK_MORE between) */
    int copies_done;
    int again;       /* so many calls say CK_AGAIN first */
    int close_after; /* closes its input after so many batches; 0: never */
    int batches;
    uint32_t port;
    ck_status fails; /* what on_event returns, unless CK_OK */
    int64_t wake_us; /* asks for this wake-up once */
    int snapshot_emits, open_again;
    /* as a source */
    int poll_batches; /* emits so many, then ends */
    uint32_t poll_rows;
    int stopped;
    ck_op_ctx *ctx; /* of its chain, for waking */
} probe;

static inline void probe_note(probe *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(p->log + p->n, sizeof p->log - p->n, fmt, ap);
    va_end(ap);
    p->n = p->n + (size_t)n < sizeof p->log ? p->n + (size_t)n : sizeof p->log - 1;
}

static inline ck_status probe_pass_on(probe *p, const ck_event *ev, ck_op_ctx *ctx) {
    ck_batch *b = ck_batch_ref(ev->batch);
    CK_TRY(ck_op_emit(ctx, p->port, &b));
    if (++p->copies_done < p->copies) return CK_MORE;
    p->copies_done = 0;
    return CK_OK;
}

static ck_status probe_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    probe *p = self;
    if (p->again > 0) {
        p->again--;
        probe_note(p, "again ");
        return CK_AGAIN;
    }
    if (p->fails != CK_OK) return p->fails == CK_DATA ? ck_fail(ctx->error, CK_DATA, "bad row") : p->fails;
    switch (ev->kind) {
    case CK_EVENT_BATCH:
        if (p->copies_done == 0) probe_note(p, "b%u ", ev->batch->sel_count);
        if (p->close_after && ++p->batches == p->close_after) ck_op_close_input(ctx, input);
        return probe_pass_on(p, ev, ctx);
    case CK_EVENT_WATERMARK:
        probe_note(p, "w%lld%s ", (long long)ev->watermark.value, ev->watermark.idle ? "i" : "");
        break;
    case CK_EVENT_FLUSH: probe_note(p, "f%llu ", (unsigned long long)ev->flush_seq); break;
    case CK_EVENT_END: probe_note(p, "e%u ", input); break;
    default: probe_note(p, "? "); break;
    }
    return CK_OK;
}
static ck_status probe_open(void *self, ck_op_ctx *ctx) {
    probe *p = self;
    p->ctx = ctx;
    probe_note(p, p->open_again ? "opening " : "open ");
    return p->open_again-- > 0 ? CK_AGAIN : CK_OK;
}
static ck_status probe_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    probe *p = self;
    probe_note(p, "snap%llu ", (unsigned long long)checkpoint);
    if (p->snapshot_emits == 0) return CK_OK;
    ck_batch *b = kit_batch(ctx->mem, 1, 7);
    CK_TRY(ck_op_emit(ctx, 0, &b));
    return --p->snapshot_emits ? CK_MORE : CK_OK;
}
static ck_status probe_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)ctx;
    probe_note(self, "commit%llu ", (unsigned long long)checkpoint);
    return CK_OK;
}
static int64_t probe_next_wake(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    return ((probe *)self)->wake_us ? ((probe *)self)->wake_us : INT64_MAX;
}
static ck_status probe_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    (void)ctx;
    probe_note(self, "wake%lld ", (long long)now_us);
    ((probe *)self)->wake_us = 0;
    return CK_OK;
}
static void probe_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    probe_note(self, "close ");
}
static const ck_operator_vtbl probe_vtbl = {.struct_bytes = sizeof(ck_operator_vtbl),
                                            .open = probe_open,
                                            .on_event = probe_event,
                                            .pre_snapshot = probe_snapshot,
                                            .on_committed = probe_committed,
                                            .next_wake_us = probe_next_wake,
                                            .on_wake = probe_wake,
                                            .close = probe_close};
static inline ck_status probe_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec, (void)mem, (void)err, (void)self;
    return CK_OK;
}
static const ck_op_desc probe_desc = {.type = "probe", .op = &probe_vtbl, .create = probe_create};

static ck_status probe_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    probe *p = self;
    (void)until_us;
    *result = CK_POLL_END;
    if (p->poll_batches == 0) return CK_OK;
    p->poll_batches--;
    probe_note(p, "poll ");
    ck_batch *b = kit_batch(ctx->mem, 0, p->poll_rows ? p->poll_rows : 3);
    *result = CK_POLL_MORE;
    return ck_op_emit(ctx, 0, &b);
}
static void probe_stop(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ((probe *)self)->stopped++;
}
static const ck_source_vtbl probe_source_vtbl = {.struct_bytes = sizeof(ck_source_vtbl),
                                                 .open = probe_open,
                                                 .poll = probe_poll,
                                                 .stop = probe_stop,
                                                 .close = probe_close};
static const ck_op_desc probe_source_desc = {
    .type = "source.probe", .source = &probe_source_vtbl, .create = probe_create};

#endif
