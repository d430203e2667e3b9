/* See subtask.h: making a subtask, and its step. */
#include "os/clock.h"
#include "runtime/subtask_int.h"

enum { SPLITS_BYTES_MAX = 256 << 20 };

void ck_report_free(ck_report *r) {
    if (!r || !r->mem.budget) return;
    ck_subtask_files_free(r->files);
    ck_arena_destroy(&r->arena);
    ck_free(r->mem, r, sizeof *r);
}

/* ---- making ---- */

static ck_step step(ck_task *t, const ck_quantum *q, int64_t *until_us);

static void retired(ck_task *t) {
    ck_subtask *s = (ck_subtask *)t;
    s->cfg.host.retired(s->cfg.host.arg, s);
}

static void close_head_input(void *arg, uint32_t input) { ck_gate_close_input(((ck_subtask *)arg)->gate, input); }
static void hold_head_input(void *arg, uint32_t input, bool hold) {
    ck_subtask *s = arg;
    if (s->gate) ck_gate_hold_input(s->gate, input, hold);
}
static void io_begin(void *arg) {
    ck_subtask_host *h = &((ck_subtask *)arg)->cfg.host;
    h->io_begin(h->arg);
}
static void io_end(void *arg) {
    ck_subtask_host *h = &((ck_subtask *)arg)->cfg.host;
    h->io_end(h->arg);
}

ck_status ck_subtask_new(const ck_subtask_config *cfg, ck_subtask **out, ck_error *err) {
    ck_subtask *s = ck_alloc_zero(cfg->mem, sizeof *s);
    if (!s) return ck_nomem(err, cfg->mem, sizeof *s);
    s->cfg = *cfg;
    s->task.step = step;
    s->task.retired = retired;
    s->last_barrier = cfg->restored;
    s->source_until_us = INT64_MIN;
    s->finished = (ck_report){.kind = CK_REPORT_FINISHED, .subtask = cfg->number};
    s->detached = (ck_report){.kind = CK_REPORT_DETACHED, .subtask = cfg->number};
    s->failed = (ck_report){.kind = CK_REPORT_FAILED, .subtask = cfg->number};
    pthread_mutex_init(&s->hold_lock, NULL);
    ck_arena_init(&s->arena, cfg->mem, SPLITS_BYTES_MAX);
    s->splits.arena = &s->arena;
    s->replays_end = &s->replays;
    ck_chain_host host = {
        s, &s->task, close_head_input, hold_head_input, ck_subtask_hold_ack, ck_subtask_release_ack, io_begin, io_end};
    ck_status st = ck_chain_new(cfg->proc, cfg->mem, cfg->queue_mem, cfg->op_count, &host, &s->chain, err);
    if (st == CK_OK && ck_task_add(&s->task, cfg->scheduler) != CK_OK) st = ck_nomem(err, cfg->mem, 0);
    if (st != CK_OK) {
        s->task.scheduler = NULL; /* was not added */
        ck_subtask_free(s);
        return st;
    }
    *out = s;
    return CK_OK;
}

void ck_subtask_disconnect(ck_subtask *s) {
    if (!s) return;
    ck_gate_free(s->gate);
    s->gate = NULL;
}

static ck_batch *next_replay(ck_subtask *s, uint32_t *op) {
    struct ck_subtask_replay *r = s->replays;
    if (!r) return NULL;
    ck_batch *b = r->batch;
    *op = r->op;
    s->replays = r->next;
    ck_free(s->cfg.mem, r, sizeof *r);
    return b;
}

void ck_subtask_free(ck_subtask *s) {
    if (!s) return;
    if (s->task.scheduler && !ck_task_is_retired(&s->task)) ck_task_remove(&s->task);
    for (ck_msg *m = ck_mailbox_take(&s->mailbox), *next; m; m = next) {
        next = m->next;
        ck_free(s->cfg.mem, m, sizeof(ck_tell));
    }
    uint32_t op;
    for (ck_batch *b; (b = next_replay(s, &op));) ck_batch_unref(&b);
    ck_subtask_drop_records(s);
    if (s->chain) (void)ck_chain_close(s->chain); /* of one that never started */
    ck_chain_free(s->chain);
    ck_subtask_snapshots_free(s->snapshots);
    ck_state_store_free(s->store);
    ck_subtask_disconnect(s);
    ck_arena_destroy(&s->arena);
    pthread_mutex_destroy(&s->hold_lock);
    ck_free(s->cfg.mem, s, sizeof *s);
}

ck_chain *ck_subtask_chain(ck_subtask *s) { return s->chain; }
ck_task *ck_subtask_task(ck_subtask *s) { return &s->task; }
uint32_t ck_subtask_index(const ck_subtask *s) { return s->cfg.index; }
ck_state_store *ck_subtask_store(ck_subtask *s) { return s->store; }
ck_gate *ck_subtask_gate(ck_subtask *s) { return s->gate; }
void ck_subtask_set_gate(ck_subtask *s, ck_gate *g) { s->gate = g; }
void ck_subtask_set_state(ck_subtask *s, ck_state_store *store, ck_subtask_snapshots *snapshots) {
    s->store = store;
    s->snapshots = snapshots;
}
ck_status ck_subtask_add_split(ck_subtask *s, const ck_split *split) {
    ck_status st = ck_split_list_add(&s->splits, split->id, split->spec);
    if (st == CK_OK) s->splits.splits[s->splits.count - 1].order = split->order;
    return st;
}

ck_status ck_subtask_add_replay(ck_subtask *s, uint32_t op, ck_batch *b) {
    struct ck_subtask_replay *r = ck_alloc(s->cfg.mem, sizeof *r);
    if (!r) {
        ck_batch_unref(&b);
        return CK_NOMEM;
    }
    *r = (struct ck_subtask_replay){.op = op, .batch = b};
    *s->replays_end = r;
    s->replays_end = &r->next;
    return CK_OK;
}

void ck_subtask_tell(ck_subtask *s, ck_tell *t) {
    ck_mailbox_post(&s->mailbox, &t->msg);
    ck_task_notify(&s->task);
}
void ck_subtask_stop(ck_subtask *s) {
    atomic_store(&s->stop, true);
    ck_task_notify(&s->task);
}

/* ---- a step ---- */

static void read_mailbox(ck_subtask *s) {
    for (ck_msg *m = ck_mailbox_take(&s->mailbox), *next; m; m = next) {
        next = m->next;
        ck_subtask_on_tell(s, (ck_tell *)m);
        ck_free(s->cfg.mem, m, sizeof(ck_tell));
    }
}

static ck_step close_step(ck_subtask *s) {
    s->closing = true;
    if (s->materialising) ck_materialisation_give_up(s->snapshots); /* nobody will stand on it */
    if (!ck_chain_close(s->chain) || ck_subtask_is_writing(s)) return CK_STEP_WAIT_IO;
    ck_subtask_drop_records(s);
    ck_subtask_snapshots_free(s->snapshots);
    ck_state_store_free(s->store); /* here, so that many subtasks give back their memory side by side */
    s->snapshots = NULL;
    s->store = NULL;
    return CK_STEP_DONE;
}

static ck_step fail(ck_subtask *s) {
    ck_error *e = ck_chain_error(s->chain);
    if (e->status == CK_OK) ck_fail(e, CK_IO, "the subtask failed and did not say why");
    if (!e->place.object[0]) {
        const char *uid = ck_chain_op(s->chain, 0)->ctx.uid;
        size_t n = strnlen(uid, sizeof e->place.object - 1);
        memcpy(e->place.object, uid, n);
        e->place.object[n] = 0;
    }
    e->place.subtask = (int32_t)s->cfg.index;
    s->failed.error = *e;
    s->cfg.host.report(s->cfg.host.arg, &s->failed);
    return close_step(s);
}

/* All splits go to the source, which is open by now. */
static ck_status hand_over_splits(ck_subtask *s) {
    while (s->splits_added < s->splits.count) {
        ck_status st = ck_chain_add_split(s->chain, &s->splits.splits[s->splits_added]);
        if (st == CK_AGAIN || st == CK_MORE)
            return ck_fail(ck_chain_error(s->chain), CK_INVALID, "a source cannot postpone a split");
        CK_TRY(st);
        s->splits_added++;
    }
    s->splits = (ck_split_list){.arena = &s->arena};
    ck_arena_destroy(&s->arena);
    s->opened = true;
    uint32_t op;
    for (ck_batch *b; (b = next_replay(s, &op));) {
        ck_event ev = ck_event_batch(b);
        if (ck_chain_replay(s->chain, op, &ev) != CK_OK) return ck_nomem(ck_chain_error(s->chain), s->cfg.mem, 0);
    }
    return ck_chain_end_restored(s->chain);
}

static void tell_ends(ck_subtask *s) {
    if (!s->told_finished && ck_chain_is_finished(s->chain)) {
        s->told_finished = true;
        s->cfg.host.report(s->cfg.host.arg, &s->finished);
    }
    if (s->gate && !s->told_detached && ck_gate_is_detached(s->gate)) {
        s->told_detached = true;
        s->cfg.host.report(s->cfg.host.arg, &s->detached);
    }
}

/* ---- FLUSH ---- */

static int64_t flush_clock(const ck_subtask *s) { return ck_mono_us(s->cfg.proc) + s->cfg.flush_origin_us; }

/* When the next FLUSH is due (monotonic); INT64_MAX: nothing waits for one. */
static int64_t flush_deadline(const ck_subtask *s) {
    if (!s->unflushed || !s->cfg.flush_us) return INT64_MAX;
    return (int64_t)(s->flush_seq + 1) * s->cfg.flush_us - s->cfg.flush_origin_us;
}

/* Sources of one job number their flushes by the same clock, so that an operator behind many of them flushes once a
 * tick. */
static ck_status flush_if_due(ck_subtask *s, bool *flushed) {
    if (ck_chain_source_emitted(s->chain)) s->unflushed = true;
    *flushed = false;
    if (!s->unflushed || (!s->cfg.flush_us && !s->cfg.flush_each)) return CK_OK;
    uint64_t seq = s->cfg.flush_us ? (uint64_t)(flush_clock(s) / s->cfg.flush_us) : 0;
    if (s->cfg.flush_each && seq <= s->flush_seq) seq = s->flush_seq + 1;
    if (seq <= s->flush_seq) return CK_OK;
    s->flush_seq = seq;
    s->unflushed = false;
    *flushed = true;
    return ck_chain_flush_source(s->chain, seq);
}

/* ---- input ---- */

typedef enum input_result { INPUT_TAKEN, INPUT_NONE, INPUT_FAILED } input_result;

static input_result take_from_source(ck_subtask *s) {
    ck_chain *c = s->chain;
    ck_op_runtime *head = ck_chain_op(c, 0);
    if (head->ended || head->dead || s->read_all || (s->held && s->last_barrier >= s->held)) {
        s->source_idle = s->unflushed = false;
        return INPUT_NONE;
    }
    bool flushed;
    if (flush_if_due(s, &flushed) != CK_OK) return INPUT_FAILED;
    if (flushed) return INPUT_TAKEN;
    if (s->source_idle && !ck_chain_take_wake(c) && ck_mono_us(s->cfg.proc) < s->source_until_us) {
        if (ck_chain_flush_exchanges(c) != CK_OK) return INPUT_FAILED;
        return INPUT_NONE;
    }
    ck_poll_result result;
    if (ck_chain_poll(c, &result, &s->source_until_us) != CK_OK) return INPUT_FAILED;
    s->source_idle = result == CK_POLL_IDLE;
    s->read_all = result == CK_POLL_END && s->cfg.reads == CK_READS_WITHOUT_END;
    if (s->read_all) return INPUT_TAKEN;
    if (result == CK_POLL_END && ck_chain_end_source(c) != CK_OK) return INPUT_FAILED;
    return INPUT_TAKEN;
}

static input_result take_from_gate(ck_subtask *s) {
    uint32_t input;
    ck_event ev;
    if (ck_gate_next(s->gate, &input, &ev) == CK_GATE_EMPTY) return INPUT_NONE;
    switch (ev.kind) {
    case CK_EVENT_BARRIER:
        s->barrier = ev;
        s->has_barrier = true;
        return INPUT_TAKEN;
    case CK_EVENT_CANCEL_BARRIER: return ck_chain_forward(s->chain, &ev) == CK_OK ? INPUT_TAKEN : INPUT_FAILED;
    default: return ck_chain_offer(s->chain, input, &ev) == CK_OK ? INPUT_TAKEN : INPUT_FAILED;
    }
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* Operators' wake-ups are by the wall clock, the scheduler's by the monotonic one. */
static int64_t wake_deadline(ck_subtask *s) {
    int64_t wake_us = ck_chain_next_wake(s->chain);
    if (wake_us == INT64_MAX) return INT64_MAX;
    int64_t left_us = wake_us - ck_wall_us(s->cfg.proc);
    return ck_mono_us(s->cfg.proc) + (left_us > 0 ? left_us : 0);
}

static ck_status look_at_clocks(ck_subtask *s, bool *busy) {
    int64_t wake_us = ck_chain_next_wake(s->chain);
    *busy = false;
    if (wake_us != INT64_MAX) {
        int64_t wall_us = ck_wall_us(s->cfg.proc);
        if (wake_us <= wall_us) {
            *busy = true;
            return ck_chain_wake_due(s->chain, wall_us);
        }
    }
    int64_t gathered_us = ck_exchange_deadline(ck_chain_exchanges(s->chain));
    if (gathered_us != INT64_MAX && gathered_us <= ck_mono_us(s->cfg.proc)) return ck_chain_flush_exchanges(s->chain);
    return CK_OK;
}

static ck_step idle(ck_subtask *s, ck_step why, int64_t *until_us) {
    *until_us = ck_exchange_deadline(ck_chain_exchanges(s->chain));
    if (why == CK_STEP_NEED_INPUT) {
        *until_us = earlier(*until_us, wake_deadline(s));
        *until_us = earlier(*until_us, flush_deadline(s));
        if (s->source_idle) *until_us = earlier(*until_us, s->source_until_us);
    }
    return *until_us == INT64_MAX ? why : CK_STEP_IDLE_UNTIL;
}

/* ---- the loop ---- */

/* After the chain stopped for another reason than being empty. */
static ck_step blocked(ck_subtask *s, ck_chain_result r, int64_t *until_us) {
    switch (r) {
    case CK_CHAIN_SPENT: return CK_STEP_MORE;
    case CK_CHAIN_FULL: return CK_STEP_OUTPUT_FULL;
    case CK_CHAIN_WAIT:
        if (ck_exchange_deadline(ck_chain_exchanges(s->chain)) <= ck_mono_us(s->cfg.proc) &&
            ck_chain_flush_exchanges(s->chain) != CK_OK)
            return fail(s);
        return idle(s, CK_STEP_WAIT_IO, until_us);
    case CK_CHAIN_IDLE:
    case CK_CHAIN_FAILED: break;
    }
    return fail(s);
}

static ck_step run(ck_subtask *s, int64_t *until_us) {
    for (;;) {
        ck_subtask_push_on(s);
        ck_chain_result r = ck_chain_run(s->chain);
        if (r != CK_CHAIN_IDLE) return blocked(s, r, until_us);
        if (!s->opened) {
            if (hand_over_splits(s) != CK_OK) return fail(s);
            continue;
        }
        bool busy;
        tell_ends(s);
        ck_status st = ck_subtask_checkpoints(s, &busy);
        if (st == CK_AGAIN && ck_chain_flush_exchanges(s->chain) == CK_OK) return CK_STEP_WAIT_IO;
        if (st != CK_OK) return fail(s);
        if (busy) continue;
        if (look_at_clocks(s, &busy) != CK_OK) return fail(s);
        if (busy) continue;
        if (ck_chain_spent(s->chain)) return CK_STEP_READY;
        switch (s->gate ? take_from_gate(s) : take_from_source(s)) {
        case INPUT_TAKEN: ck_chain_count_input(s->chain); break;
        case INPUT_NONE: return idle(s, CK_STEP_NEED_INPUT, until_us);
        case INPUT_FAILED: return fail(s);
        }
    }
}

static ck_step step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    ck_subtask *s = (ck_subtask *)t;
    if (s->closing || atomic_load(&s->stop)) return close_step(s);
    if (!s->opened && ck_chain_sweeping(s->chain) == CK_SWEEP_NONE && !s->opening) {
        s->opening = true;
        ck_chain_sweep(s->chain, CK_SWEEP_OPEN, 0);
    }
    ck_chain_begin_step(s->chain, q);
    if (q->mail_later)
        ck_task_notify(t);
    else
        read_mailbox(s);
    ck_subtask_settle_records(s);
    if (s->broken) return fail(s);
    return run(s, until_us);
}
