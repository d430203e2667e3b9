/* See background.h. */
#include "connector/background.h"

static void done(ck_io_job *job) {
    ck_background *b = (ck_background *)job;
    struct ck_op_runtime *rt = b->rt;
    void (*wake)(struct ck_op_runtime *) = b->wake;
    atomic_store_explicit(&b->done, true, memory_order_release); /* from here on b is the step's again */
    wake(rt);
}

void ck_background_begin(ck_background *b, void (*run)(ck_io_job *job), ck_op_ctx *ctx) {
    b->running = true;
    b->status = CK_OK;
    b->error = CK_ERROR_INIT;
    b->rt = ctx->rt, b->wake = ctx->wake_fn;
    atomic_store_explicit(&b->done, false, memory_order_relaxed);
    b->job = (ck_io_job){run, done, NULL};
    ck_op_submit_io(ctx, &b->job);
}

bool ck_background_ended(ck_background *b) {
    if (!b->running || !atomic_load_explicit(&b->done, memory_order_acquire)) return false;
    b->running = false;
    return true;
}
