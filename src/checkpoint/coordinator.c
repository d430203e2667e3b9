/* See coordinator.h. The state is in four parts, each with its own functions below: the pending checkpoint (at most
 * one), the completed ones that are not committed, the requests of people, and the end of the job. After every event
 * `advance` starts whatever may start now. */
#include "checkpoint/coordinator.h"

enum {
    UNCOMMITTED_MAX = 16, /* with this many no new checkpoint is triggered: outside systems are behind */
    REQUESTS_MAX = 64,
    ACTIONS_MAX = 4 * REQUESTS_MAX + 4 * UNCOMMITTED_MAX + 16,
    RETRY_FIRST_US = 100 * 1000,
    RETRY_MAX_US = 10 * 1000 * 1000,
};

typedef enum pending_phase { PENDING_NONE, PENDING_ACKS, PENDING_MANIFEST } pending_phase;
typedef enum commit_phase { COMMIT_WAITING, COMMIT_RUNNING, COMMIT_MARKING, COMMIT_MARK_AGAIN } commit_phase;
typedef enum job_phase { JOB_RUNNING, JOB_LAST_COMPLETED, JOB_FINISHED, JOB_FAILED } job_phase;

typedef struct completed {
    uint64_t id;
    commit_phase phase;
} completed;

typedef struct request {
    uint64_t number;
    uint64_t checkpoint; /* 0: waits to be triggered */
    uint64_t above;      /* its checkpoint is to be */
    bool stop;
} request;

struct ck_checkpoints {
    ck_mem mem;
    size_t bytes;
    ck_checkpoints_config cfg;
    job_phase job;
    uint64_t next_id;
    /* the pending one */
    pending_phase phase;
    uint64_t pending;
    ck_barrier_kind kind;
    bool pending_stop; /* a savepoint that ends the job */
    bool overtakes;    /* the pending one does by now */
    bool waits;        /* the next ones do not overtake, until one is complete */
    int64_t since_us, next_due_us;
    uint32_t missing;
    uint32_t failed_in_a_row;
    /* completed, not committed, ascending */
    completed uncommitted[UNCOMMITTED_MAX];
    uint32_t uncommitted_count;
    int64_t commit_retry_us;
    uint32_t commit_failures;
    /* requests */
    request requests[REQUESTS_MAX];
    uint32_t request_count;
    /* the end */
    uint32_t finished_count;
    int64_t final_deadline_us, final_retry_us;
    uint32_t final_failures;
    /* numbers for people */
    uint64_t last_completed, last_committed, completed_count, failed_count;
    /* out */
    ck_checkpoints_action actions[ACTIONS_MAX];
    uint32_t action_count;
    uint32_t words;
    uint64_t *acked, *finished;
    uint64_t bits[];
};

/* ---- life ---- */

ck_status ck_checkpoints_new(ck_mem mem, const ck_checkpoints_config *cfg, int64_t now_us, ck_checkpoints **out,
                             ck_error *err) {
    CK_ASSERT(cfg->next_id > 0 && cfg->subtasks > 0);
    uint32_t words = (uint32_t)ck_bitmap_words(cfg->subtasks);
    size_t bytes = sizeof(ck_checkpoints) + 2 * (size_t)words * sizeof(uint64_t);
    ck_checkpoints *c = ck_alloc_zero(mem, bytes);
    if (!c) return ck_nomem(err, mem, bytes);
    c->mem = mem, c->bytes = bytes, c->cfg = *cfg, c->words = words;
    c->acked = c->bits, c->finished = c->bits + words;
    c->next_id = cfg->next_id;
    if (c->cfg.id_step == 0) c->cfg.id_step = 1;
    c->next_due_us = cfg->first_at_once ? now_us : now_us + cfg->interval_us;
    c->final_deadline_us = INT64_MAX;
    *out = c;
    return CK_OK;
}

void ck_checkpoints_free(ck_checkpoints *c) {
    if (c) ck_free(c->mem, c, c->bytes);
}

static ck_checkpoints_action *act(ck_checkpoints *c, ck_checkpoints_action_kind kind, uint64_t checkpoint) {
    CK_ASSERT(c->action_count < ACTIONS_MAX);
    ck_checkpoints_action *a = &c->actions[c->action_count++];
    *a = (ck_checkpoints_action){.kind = kind, .checkpoint = checkpoint, .reason = ""};
    return a;
}

static int64_t backoff_us(uint32_t failures) {
    int64_t us = RETRY_FIRST_US;
    while (failures-- > 1 && us < RETRY_MAX_US) us *= 2;
    return us < RETRY_MAX_US ? us : RETRY_MAX_US;
}

static bool all_finished(const ck_checkpoints *c) { return c->finished_count == c->cfg.subtasks; }

/* ---- requests ---- */

/* Answers those waiting for `checkpoint`; 0: those not triggered yet. */
static void answer(ck_checkpoints *c, uint64_t checkpoint, ck_status status, const char *reason) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->request_count; i++) {
        request r = c->requests[i];
        if (r.checkpoint != checkpoint) {
            c->requests[kept++] = r;
            continue;
        }
        ck_checkpoints_action *a = act(c, CK_CKPT_DO_SAVEPOINT_DONE, checkpoint);
        a->request = r.number, a->status = status, a->reason = reason;
    }
    c->request_count = kept;
}

static void ask(ck_checkpoints *c, uint64_t number, bool stop, uint64_t above) {
    const char *refused = !c->cfg.enabled                    ? "savepoints need a checkpoint directory"
                          : c->job != JOB_RUNNING            ? "the job is ending"
                          : c->request_count == REQUESTS_MAX ? "too many savepoints are waiting"
                                                             : NULL;
    if (refused) {
        ck_checkpoints_action *a = act(c, CK_CKPT_DO_SAVEPOINT_DONE, 0);
        a->request = number, a->status = CK_REFUSED, a->reason = refused;
        return;
    }
    c->requests[c->request_count++] = (request){.number = number, .above = above, .stop = stop};
}

static void withdraw(ck_checkpoints *c, uint64_t number) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->request_count; i++)
        if (c->requests[i].number != number) c->requests[kept++] = c->requests[i];
    c->request_count = kept;
    bool stop = false;
    for (uint32_t i = 0; i < kept; i++) stop |= c->requests[i].checkpoint && c->requests[i].stop;
    c->pending_stop &= stop;
}

/* ---- the end ---- */

static void fail_job(ck_checkpoints *c, ck_status status, const char *reason) {
    if (c->phase != PENDING_NONE) answer(c, c->pending, CK_CANCELLED, reason);
    answer(c, 0, CK_CANCELLED, reason);
    ck_checkpoints_action *a = act(c, CK_CKPT_DO_FAIL_JOB, c->pending);
    a->status = status, a->reason = reason;
    c->job = JOB_FAILED;
    c->phase = PENDING_NONE, c->pending = 0;
}

static void finish_job(ck_checkpoints *c) {
    answer(c, 0, CK_CANCELLED, "the job has finished");
    act(c, CK_CKPT_DO_FINISHED, c->last_completed);
    c->job = JOB_FINISHED;
}

static void subtask_finished(ck_checkpoints *c, uint32_t subtask, int64_t now_us) {
    CK_ASSERT(subtask < c->cfg.subtasks);
    if (ck_bit_get(c->finished, subtask)) return;
    ck_bit_set(c->finished, subtask);
    c->finished_count++;
    if (!all_finished(c)) return;
    c->final_deadline_us = now_us + c->cfg.final_timeout_us;
    if (!c->cfg.enabled && c->job == JOB_RUNNING) finish_job(c);
}

/* ---- the pending checkpoint ---- */

/* Of those that are asked for: the id goes on in its steps. */
static void go_above(ck_checkpoints *c) {
    for (uint32_t i = 0; i < c->request_count; i++) {
        uint64_t above = c->requests[i].above, step = c->cfg.id_step;
        if (above >= c->next_id && above < INT64_MAX - step) c->next_id += ((above - c->next_id) / step + 1) * step;
    }
}

static void trigger(ck_checkpoints *c, ck_barrier_kind kind, int64_t now_us) {
    c->phase = PENDING_ACKS;
    if (kind == CK_BARRIER_SAVEPOINT) go_above(c);
    c->pending = c->next_id;
    c->next_id += c->cfg.id_step;
    c->kind = kind, c->since_us = now_us;
    c->pending_stop = false;
    c->missing = c->cfg.subtasks;
    for (uint32_t i = 0; i < c->words; i++) c->acked[i] = 0;
    if (kind != CK_BARRIER_FINAL) c->next_due_us = now_us + c->cfg.interval_us;
    for (uint32_t i = 0; i < c->request_count && kind == CK_BARRIER_SAVEPOINT; i++) {
        c->requests[i].checkpoint = c->pending;
        c->pending_stop |= c->requests[i].stop;
    }
    ck_checkpoints_action *a = act(c, CK_CKPT_DO_TRIGGER, c->pending);
    c->overtakes = kind == CK_BARRIER_PERIODIC && c->cfg.alignment == CK_UNALIGNED && !c->waits;
    a->barrier = kind, a->stop = c->pending_stop, a->overtakes = c->overtakes;
    if (c->overtakes) act(c, CK_CKPT_DO_OVERTAKE, c->pending)->barrier = kind;
}

static void fail_pending(ck_checkpoints *c, int64_t now_us, ck_status status, const char *reason) {
    ck_checkpoints_action *a = act(c, CK_CKPT_DO_ABORT, c->pending);
    a->status = status, a->reason = reason;
    c->failed_count++;
    answer(c, c->pending, status, reason);
    c->phase = PENDING_NONE, c->pending = 0;
    if (c->kind == CK_BARRIER_PERIODIC) {
        c->failed_in_a_row++;
        if (c->cfg.tolerable_failed && c->failed_in_a_row > c->cfg.tolerable_failed)
            fail_job(c, status, "more checkpoints in a row failed than are tolerated");
    } else if (c->kind == CK_BARRIER_FINAL) {
        c->final_retry_us = now_us + backoff_us(++c->final_failures);
    }
}

/* Some subtasks of an operator had ended at their mark and others not yet: a restore could not tell whom to end again.
 */
static void ends_mixed(ck_checkpoints *c, int64_t now_us) {
    ck_checkpoints_action *a = act(c, CK_CKPT_DO_ABORT, c->pending);
    a->status = CK_CANCELLED, a->reason = "it overtook the ends of inputs; the next one waits for them";
    answer(c, c->pending, CK_CANCELLED, a->reason);
    c->phase = PENDING_NONE, c->pending = 0;
    c->waits = true;
    c->next_due_us = now_us;
}

/* Whether the pending one may still begin to overtake. */
static bool may_overtake(const ck_checkpoints *c) {
    return c->phase == PENDING_ACKS && c->kind == CK_BARRIER_PERIODIC && c->cfg.alignment == CK_ALIGN_ADAPTIVE &&
           !c->overtakes && !c->waits;
}

static void overtake_if_stalled(ck_checkpoints *c, int64_t now_us) {
    if (!may_overtake(c) || now_us - c->since_us < c->cfg.stall_us) return;
    c->overtakes = true;
    act(c, CK_CKPT_DO_OVERTAKE, c->pending)->barrier = c->kind;
}

static void acked(ck_checkpoints *c, uint32_t subtask) {
    CK_ASSERT(subtask < c->cfg.subtasks);
    if (ck_bit_get(c->acked, subtask)) return;
    ck_bit_set(c->acked, subtask);
    if (--c->missing > 0) return;
    c->phase = PENDING_MANIFEST;
    act(c, CK_CKPT_DO_WRITE_MANIFEST, c->pending)->barrier = c->kind;
}

static void manifest_done(ck_checkpoints *c) {
    bool last = c->kind == CK_BARRIER_FINAL || c->pending_stop;
    uint64_t id = c->pending;
    c->phase = PENDING_NONE, c->pending = 0;
    c->failed_in_a_row = 0;
    c->waits = false;
    c->completed_count++;
    c->last_completed = id;
    CK_ASSERT(c->uncommitted_count < UNCOMMITTED_MAX);
    c->uncommitted[c->uncommitted_count++] = (completed){.id = id};
    if (last) c->job = JOB_LAST_COMPLETED;
    act(c, CK_CKPT_DO_COMPLETED, id)->stop = c->pending_stop;
    answer(c, id, CK_OK, "");
}

/* ---- committing ---- */

static completed *find(ck_checkpoints *c, uint64_t id, commit_phase phase) {
    for (uint32_t i = 0; i < c->uncommitted_count; i++)
        if (c->uncommitted[i].id == id && c->uncommitted[i].phase == phase) return &c->uncommitted[i];
    return NULL;
}

static bool commit_idle(const ck_checkpoints *c) {
    for (uint32_t i = 0; i < c->uncommitted_count; i++)
        if (c->uncommitted[i].phase == COMMIT_RUNNING || c->uncommitted[i].phase == COMMIT_MARKING) return false;
    return true;
}

/* Markers that failed first, then the newest: it carries what the older ones do. */
static void commit_next(ck_checkpoints *c, int64_t now_us) {
    if (c->uncommitted_count == 0 || !commit_idle(c) || now_us < c->commit_retry_us) return;
    bool marking = false;
    for (uint32_t i = 0; i < c->uncommitted_count; i++) {
        if (c->uncommitted[i].phase != COMMIT_MARK_AGAIN) continue;
        c->uncommitted[i].phase = COMMIT_MARKING;
        act(c, CK_CKPT_DO_MARK_COMMITTED, c->uncommitted[i].id);
        marking = true;
    }
    if (marking) return;
    completed *newest = &c->uncommitted[c->uncommitted_count - 1];
    newest->phase = COMMIT_RUNNING;
    act(c, CK_CKPT_DO_COMMIT, newest->id);
}

static void commit_done(ck_checkpoints *c, uint64_t id) {
    if (!find(c, id, COMMIT_RUNNING)) return;
    c->commit_failures = 0;
    for (uint32_t i = 0; i < c->uncommitted_count && c->uncommitted[i].id <= id; i++) {
        c->uncommitted[i].phase = COMMIT_MARKING;
        act(c, CK_CKPT_DO_MARK_COMMITTED, c->uncommitted[i].id);
    }
}

static void mark_done(ck_checkpoints *c, uint64_t id) {
    completed *m = find(c, id, COMMIT_MARKING);
    if (!m) return;
    uint32_t behind = c->uncommitted_count - (uint32_t)(m - c->uncommitted) - 1;
    memmove(m, m + 1, behind * sizeof *m);
    c->uncommitted_count--;
    if (id > c->last_committed) c->last_committed = id;
    act(c, CK_CKPT_DO_COMMITTED, id);
    act(c, CK_CKPT_DO_RETAIN, id);
    if (c->job == JOB_LAST_COMPLETED && c->uncommitted_count == 0) finish_job(c);
}

/* A commit or a marker: tried again later when that can help. */
static void commit_failed(ck_checkpoints *c, completed *m, commit_phase again, const ck_checkpoints_event *ev,
                          int64_t now_us) {
    if (!m) return;
    if (ev->fatal || !ev->retriable) {
        fail_job(c, ev->status,
                 again == COMMIT_WAITING ? "a sink could not commit" : "a checkpoint could not be marked committed");
        return;
    }
    m->phase = again;
    c->commit_retry_us = now_us + backoff_us(++c->commit_failures);
}

/* ---- events ---- */

static void timeouts(ck_checkpoints *c, int64_t now_us) {
    if (all_finished(c) && now_us >= c->final_deadline_us) {
        fail_job(c, CK_IO,
                 "the final checkpoint was not complete and committed in time (--final-checkpoint-timeout-ms); started "
                 "again the job goes on from its last checkpoint");
        return;
    }
    if (c->phase == PENDING_ACKS && now_us - c->since_us >= c->cfg.timeout_us)
        fail_pending(c, now_us, CK_CANCELLED, "timed out before all subtasks had acknowledged");
}

static void take(ck_checkpoints *c, int64_t now_us, const ck_checkpoints_event *ev) {
    bool of_pending = ev->checkpoint != 0 && ev->checkpoint == c->pending;
    switch (ev->kind) {
    case CK_CKPT_TICK: break;
    case CK_CKPT_ACK:
        if (of_pending && c->phase == PENDING_ACKS) acked(c, ev->subtask);
        break;
    case CK_CKPT_NACK:
        if (!of_pending || c->phase != PENDING_ACKS) break;
        if (ev->fatal)
            fail_job(c, ev->status, "a subtask cannot take snapshots any more");
        else
            fail_pending(c, now_us, ev->status, "a subtask could not take its snapshot");
        break;
    case CK_CKPT_ENDS_MIXED:
        if (of_pending && c->phase == PENDING_MANIFEST) ends_mixed(c, now_us);
        break;
    case CK_CKPT_SUBTASK_FINISHED: subtask_finished(c, ev->subtask, now_us); break;
    case CK_CKPT_MANIFEST_DONE:
        if (of_pending && c->phase == PENDING_MANIFEST) manifest_done(c);
        break;
    case CK_CKPT_MANIFEST_FAILED:
        if (!of_pending || c->phase != PENDING_MANIFEST) break;
        if (ev->fatal)
            fail_job(c, ev->status, "the manifest could not be published");
        else
            fail_pending(c, now_us, ev->status, "the manifest could not be written");
        break;
    case CK_CKPT_COMMIT_DONE: commit_done(c, ev->checkpoint); break;
    case CK_CKPT_COMMIT_FAILED:
        commit_failed(c, find(c, ev->checkpoint, COMMIT_RUNNING), COMMIT_WAITING, ev, now_us);
        break;
    case CK_CKPT_MARK_DONE: mark_done(c, ev->checkpoint); break;
    case CK_CKPT_MARK_FAILED:
        commit_failed(c, find(c, ev->checkpoint, COMMIT_MARKING), COMMIT_MARK_AGAIN, ev, now_us);
        break;
    case CK_CKPT_SAVEPOINT: ask(c, ev->request, false, ev->checkpoint); break;
    case CK_CKPT_STOP: ask(c, ev->request, true, ev->checkpoint); break;
    case CK_CKPT_WITHDRAW: withdraw(c, ev->request); break;
    }
}

static bool may_trigger(const ck_checkpoints *c) {
    return c->cfg.enabled && c->job == JOB_RUNNING && c->phase == PENDING_NONE &&
           c->uncommitted_count < UNCOMMITTED_MAX;
}

static void advance(ck_checkpoints *c, int64_t now_us) {
    if (c->job == JOB_RUNNING || c->job == JOB_LAST_COMPLETED) commit_next(c, now_us);
    if (!may_trigger(c)) return;
    if (c->request_count > 0)
        trigger(c, CK_BARRIER_SAVEPOINT, now_us);
    else if (all_finished(c) && now_us >= c->final_retry_us)
        trigger(c, CK_BARRIER_FINAL, now_us);
    else if (!all_finished(c) && c->cfg.interval_us > 0 && now_us >= c->next_due_us)
        trigger(c, CK_BARRIER_PERIODIC, now_us);
}

static bool over(const ck_checkpoints *c) { return c->job == JOB_FINISHED || c->job == JOB_FAILED; }

uint32_t ck_checkpoints_step(ck_checkpoints *c, int64_t now_us, const ck_checkpoints_event *ev,
                             const ck_checkpoints_action **actions) {
    c->action_count = 0;
    if (over(c)) {
        if (ev->kind == CK_CKPT_SAVEPOINT || ev->kind == CK_CKPT_STOP) ask(c, ev->request, false, 0);
    } else {
        take(c, now_us, ev);
        if (!over(c)) timeouts(c, now_us);
        if (!over(c)) overtake_if_stalled(c, now_us);
        if (!over(c)) advance(c, now_us);
    }
    *actions = c->actions;
    return c->action_count;
}

int64_t ck_checkpoints_deadline(const ck_checkpoints *c) {
    int64_t at = INT64_MAX;
    if (over(c) || !c->cfg.enabled) return at;
#define EARLIER(condition, time)                                                                                       \
    if ((condition) && (time) < at) at = (time)
    EARLIER(all_finished(c), c->final_deadline_us);
    EARLIER(c->phase == PENDING_ACKS, c->since_us + c->cfg.timeout_us);
    EARLIER(may_overtake(c), c->since_us + c->cfg.stall_us);
    EARLIER(c->uncommitted_count > 0 && commit_idle(c), c->commit_retry_us);
    EARLIER(may_trigger(c) && all_finished(c), c->final_retry_us);
    EARLIER(may_trigger(c) && !all_finished(c) && c->cfg.interval_us > 0, c->next_due_us);
#undef EARLIER
    return at;
}

/* ---- looking ---- */

void ck_checkpoints_look(const ck_checkpoints *c, ck_checkpoints_view *out) {
    *out = (ck_checkpoints_view){.pending = c->pending,
                                 .pending_kind = c->kind,
                                 .pending_since_us = c->since_us,
                                 .pending_missing = c->phase == PENDING_ACKS ? c->missing : 0,
                                 .pending_overtakes = c->overtakes,
                                 .last_completed = c->last_completed,
                                 .last_committed = c->last_committed,
                                 .next_id = c->next_id,
                                 .completed_count = c->completed_count,
                                 .failed_count = c->failed_count,
                                 .failed_in_a_row = c->failed_in_a_row,
                                 .uncommitted_count = c->uncommitted_count,
                                 .finished_subtasks = c->finished_count,
                                 .finished = c->job == JOB_FINISHED,
                                 .failed = c->job == JOB_FAILED};
}

bool ck_checkpoints_waits_for(const ck_checkpoints *c, uint32_t subtask) {
    return c->phase == PENDING_ACKS && subtask < c->cfg.subtasks && !ck_bit_get(c->acked, subtask);
}
