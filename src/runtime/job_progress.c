/* What a running job says of itself: how far it is, what its operators counted, what its watermark waits for. */
#include <stdio.h>

#include "os/clock.h"
#include "runtime/chain_int.h"
#include "runtime/job_int.h"

static uint64_t read_counter(const ck_op_runtime *op, const char *name) {
    for (int i = 0; i < CK_OP_COUNTERS_MAX; i++) {
        const char *have = atomic_load_explicit(&op->counters[i].name, memory_order_acquire);
        if (!have) return 0;
        if (strcmp(have, name) == 0) return ck_op_counter_read(&op->counters[i].of);
    }
    return 0;
}

/* ---- the job ---- */

/* Rows end here; what does not fit may go on to a table of its own. */
static bool is_end(const ck_op_runtime *op) {
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i].port == 0) return false;
    return true;
}

static void add_lag(const ck_op_lag *l, ck_job_progress *p) {
    if (!atomic_load_explicit(&l->noted, memory_order_acquire)) return;
    int64_t us = atomic_load_explicit(&l->us, memory_order_relaxed);
    p->follows = true;
    p->lag_records += atomic_load_explicit(&l->records, memory_order_relaxed);
    if (us > p->lag_us) p->lag_us = us;
}

static void add_op(const ck_op_runtime *op, ck_job_progress *p) {
    p->bad_rows += read_counter(op, "bad_rows");
    p->dead_letters += read_counter(op, "dead_letters");
    p->late_rows += read_counter(op, "late_rows");
    p->bad_time_rows += read_counter(op, "bad_time_rows");
    if (op->desc->source) {
        p->rows_in += ck_op_counter_read(&op->rows_out);
        p->bytes_in += read_counter(op, "bytes_in");
        p->bytes_total += read_counter(op, "bytes_total");
        add_lag(&op->lag, p);
    } else if (is_end(op)) {
        p->rows_out += ck_op_counter_read(&op->rows_in);
    }
}

void ck_job_progress_now(ck_job *j, ck_job_progress *out) {
    *out = (ck_job_progress){.checkpoints_completed =
                                 atomic_load_explicit(&j->checkpoints_completed, memory_order_relaxed),
                             .last_checkpoint = atomic_load_explicit(&j->last_checkpoint, memory_order_relaxed),
                             .restored = j->restored && !j->was_finished ? j->restored->checkpoint : 0};
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        if (!j->subtasks[i]) continue;
        ck_chain *c = ck_subtask_chain(j->subtasks[i]);
        for (uint32_t k = 0; k < ck_chain_op_count(c); k++) add_op(ck_chain_op(c, k), out);
    }
    for (int c = 0; c < CK_MEM_CATEGORY_COUNT; c++)
        out->memory_bytes[c] = ck_budget_used(&j->budget, (ck_mem_category)c);
}

/* ---- one operator ---- */

/* The operator in a subtask that has it; NULL: another. */
static const ck_op_runtime *op_in(const ck_job *j, uint32_t subtask, const char *uid) {
    if (!j->subtasks[subtask]) return NULL;
    ck_chain *c = ck_subtask_chain(j->subtasks[subtask]);
    for (uint32_t k = 0; k < ck_chain_op_count(c); k++)
        if (strcmp(ck_chain_op(c, k)->ctx.uid, uid) == 0) return ck_chain_op(c, k);
    return NULL;
}

uint64_t ck_job_count_of(const ck_job *j, const char *uid, const char *counter) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        const ck_op_runtime *op = op_in(j, i, uid);
        if (op) n += read_counter(op, counter);
    }
    return n;
}

uint64_t ck_job_greatest_of(const ck_job *j, const char *uid, const char *counter) {
    uint64_t greatest = 0;
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        const ck_op_runtime *op = op_in(j, i, uid);
        uint64_t n = op ? read_counter(op, counter) : 0;
        if (n > greatest) greatest = n;
    }
    return greatest;
}

uint64_t ck_job_rows_into(const ck_job *j, const char *uid) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        const ck_op_runtime *op = op_in(j, i, uid);
        if (op) n += ck_op_counter_read(&op->rows_in);
    }
    return n;
}

bool ck_job_keys_of(const ck_job *j, const char *uid, ck_keys_note *out) {
    bool any = false;
    *out = (ck_keys_note){0};
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        if (!j->subtasks[i]) continue;
        const ck_op_runtime *op = ck_chain_op(ck_subtask_chain(j->subtasks[i]), 0); /* a source heads its chain */
        if (!op->keys.any || strcmp(op->ctx.uid, uid) != 0) continue;
        any = true;
        out->met |= op->keys.met;
        if (op->keys.spelled[0]) out->spelled = op->keys.spelled, out->like = op->keys.like;
    }
    if (out->spelled && out->like < 64 && (out->met >> out->like & 1)) out->spelled = NULL;
    return any;
}

/* ---- the watermark ---- */

/* Whether a holds time back more than b does: what counts before what is idle, then the lesser one. */
static bool holds_more(const ck_clock_note *a, const ck_clock_note *b) {
    if ((a->holder != NULL) != (b->holder != NULL)) return a->holder != NULL;
    if (!a->holder) return false;
    if (a->watermark_us != b->watermark_us) return a->watermark_us < b->watermark_us;
    return a->holder_us < b->holder_us;
}

bool ck_job_watermark_now(ck_job *j, ck_job_watermark *out) {
    bool any = false;
    *out = (ck_job_watermark){.now_us = ck_mono_us(j->proc)};
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        char holder[CK_CLOCK_NAME_BYTES], idle[CK_CLOCK_NAME_BYTES];
        ck_clock_note n;
        if (!j->subtasks[i]) continue;
        ck_op_runtime *op = ck_chain_op(ck_subtask_chain(j->subtasks[i]), 0);
        if (!op->desc->source || !ck_op_clock_read(&op->clock, &n, holder, idle) || n.splits == 0) continue;
        out->idle_splits += n.idle_splits;
        if (n.idle && (!out->idle[0] || n.idle_empty_us < out->idle_empty_us)) {
            snprintf(out->idle, sizeof out->idle, "%s", n.idle);
            out->idle_empty_us = n.idle_empty_us;
        }
        if (any && !holds_more(&n, &out->note)) continue;
        any = true;
        out->note = n;
        out->source = op->ctx.uid;
        snprintf(out->holder, sizeof out->holder, "%s", n.holder ? n.holder : "");
        out->note.idle = NULL;
        if (n.holder) out->note.holder = out->holder;
    }
    return any;
}
