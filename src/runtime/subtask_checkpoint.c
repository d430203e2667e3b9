/* A subtask's part in checkpoints: see subtask.h. A record lives from the barrier until its report is sent. At most one
 * sweep and one snapshot are under way; a record may outlive both while sinks hold its acknowledgement.
 *
 *   barrier complete -> [sweep pre_snapshot] -> mark, forward -> [I/O: write] -> release the mark -> [holds] -> report
 *
 * With a barrier that overtakes, the gate records from the mark on what is under way; when that is whole and the
 * snapshot is written, a second write makes the in-flight file.
 */
#include "checkpoint/directory.h"
#include "os/clock.h"
#include "runtime/subtask_int.h"
#include "state/operator_rows.h"

enum { COMMITTABLES_BYTES_MAX = 256 << 20, SPLIT_LIST_BYTES_MAX = 256 << 20 };

static ck_error *error_of(ck_subtask *s) { return ck_chain_error(s->chain); }

/* ---- records ---- */

static ck_subtask_record *new_record(ck_subtask *s, uint64_t checkpoint, ck_barrier_kind kind) {
    ck_subtask_record *r = ck_alloc_zero(s->cfg.mem, sizeof *r);
    ck_report *report = ck_alloc_zero(s->cfg.mem, sizeof *report);
    if (!r || !report) {
        ck_free(s->cfg.mem, r, sizeof *r);
        ck_free(s->cfg.mem, report, sizeof *report);
        return NULL;
    }
    *report = (ck_report){.kind = CK_REPORT_ACK, .subtask = s->cfg.number, .checkpoint = checkpoint, .mem = s->cfg.mem};
    report->error = CK_ERROR_INIT;
    ck_arena_init(&report->arena, s->cfg.mem, COMMITTABLES_BYTES_MAX);
    r->subtask = s;
    r->report = report;
    r->checkpoint = checkpoint;
    r->kind = kind;
    pthread_mutex_lock(&s->hold_lock);
    r->next = s->records;
    s->records = r;
    pthread_mutex_unlock(&s->hold_lock);
    return r;
}

/* Not on the list any more. */
static void free_record(ck_subtask *s, ck_subtask_record *r) {
    if (r->snapshot) ck_subtask_snapshot_end(s->snapshots, r->snapshot);
    ck_inflight_free(r->inflight);
    ck_report_free(r->report);
    ck_free(s->cfg.mem, r, sizeof *r);
}

static void note_failure(ck_subtask_record *r, ck_status status, const ck_error *error) {
    ck_subtask *s = r->subtask;
    pthread_mutex_lock(&s->hold_lock);
    if (r->status == CK_OK) {
        r->status = status;
        if (error) r->report->error = *error;
    }
    pthread_mutex_unlock(&s->hold_lock);
}

static ck_subtask_record *find_record(ck_subtask *s, uint64_t checkpoint) { /* locks: held, or the owner reads */
    for (ck_subtask_record *r = s->records; r; r = r->next)
        if (r->checkpoint == checkpoint) return r;
    return NULL;
}

void ck_subtask_hold_ack(void *arg) {
    ck_subtask *s = arg;
    pthread_mutex_lock(&s->hold_lock);
    s->current->holds++;
    pthread_mutex_unlock(&s->hold_lock);
}

void ck_subtask_release_ack(void *arg, uint64_t checkpoint, ck_status status, const ck_error *error) {
    ck_subtask *s = arg;
    pthread_mutex_lock(&s->hold_lock);
    ck_subtask_record *r = find_record(s, checkpoint);
    CK_ASSERT(r && r->holds > 0); /* one release a hold */
    r->holds--;
    for (ck_subtask_record *n = s->records; status != CK_OK && n;
         n = n->next) { /* newer ones carry what this prepared */
        if (n->checkpoint < checkpoint || n->status != CK_OK) continue;
        n->status = status;
        if (error) n->report->error = *error;
    }
    pthread_mutex_unlock(&s->hold_lock);
    ck_task_notify(&s->task);
}

static void send_report(ck_subtask *s, ck_subtask_record *r) {
    ck_report *report = r->report;
    r->report = NULL;
    if (r->status != CK_OK) {
        report->kind = CK_REPORT_NACK;
        if (report->error.status == CK_OK) {
            ck_fail(&report->error, r->status, "checkpoint %llu was given up", (unsigned long long)r->checkpoint);
        }
        report->error.place.subtask = (int32_t)s->cfg.index;
    }
    s->cfg.host.report(s->cfg.host.arg, report);
}

/* Whether nothing that this record or an older one prepared is still under way: committables of a checkpoint that was
 * given up are carried by the next. Newest first, so what stands behind is older. */
static bool is_released(const ck_subtask_record *r) {
    for (; r; r = r->next)
        if (r->holds) return false;
    return true;
}

/* Takes complete records whose holds are released off the list and reports them. */
static void report_complete(ck_subtask *s) {
    for (;;) {
        pthread_mutex_lock(&s->hold_lock);
        ck_subtask_record **at = &s->records;
        while (*at && !((*at)->complete && is_released(*at))) at = &(*at)->next;
        ck_subtask_record *r = *at;
        if (r) *at = r->next;
        pthread_mutex_unlock(&s->hold_lock);
        if (!r) return;
        send_report(s, r);
        free_record(s, r);
    }
}

/* ---- writing, on the I/O executor ---- */

static ck_status write_snapshot(ck_subtask_record *r, ck_error *err) {
    ck_proc *proc = r->subtask->cfg.proc;
    CK_FAULT(proc, CHECKPOINT_BEFORE_SNAPSHOT);
    CK_TRY(ck_subtask_snapshot_run(r->snapshot, &r->report->files, err));
    CK_FAULT(proc, CHECKPOINT_BEFORE_ACK);
    return CK_OK;
}

static void write_run(ck_io_job *j) {
    ck_subtask_record *r = (ck_subtask_record *)((char *)j - offsetof(ck_subtask_record, job));
    ck_error err = CK_ERROR_INIT;
    ck_status s = write_snapshot(r, &err);
    if (s != CK_OK) note_failure(r, s, err.status != CK_OK ? &err : NULL);
}

static void write_done(ck_io_job *j) {
    ck_subtask_record *r = (ck_subtask_record *)((char *)j - offsetof(ck_subtask_record, job));
    ck_subtask *s = r->subtask;
    ck_subtask_host host = s->cfg.host;
    atomic_store(&r->written, true);
    ck_task_notify(&s->task);
    host.io_end(host.arg); /* from here on the subtask may be gone */
}

/* ---- what was under way ---- */

static ck_status add_file(ck_subtask_files *files, const ck_manifest_file *f) {
    ck_manifest_file *more = ck_arena_array(&files->arena, files->file_count + 1u, sizeof *more);
    if (!more) return CK_NOMEM;
    if (files->file_count) memcpy(more, files->files, files->file_count * sizeof *more);
    more[files->file_count] = *f;
    files->files = more;
    files->file_count++;
    return CK_OK;
}

static ck_status write_inflight(ck_subtask_record *r, ck_error *err) {
    ck_subtask *s = r->subtask;
    const ck_subtask_config *cfg = &s->cfg;
    ck_subtask_files *files = r->report->files;
    uint64_t *op = ck_arena_array(&files->arena, 1, sizeof *op);
    ck_manifest_file f = {
        .vertex = cfg->vertex,
        .subtask = cfg->index,
        .ops = op,
        .op_count = 1,
        .key_groups = cfg->key_groups,
        .kind = CK_FILE_INFLIGHT,
        .path = ck_checkpoint_path_file(&files->arena, cfg->vertex, cfg->index, r->checkpoint, CK_FILE_INFLIGHT)};
    if (!op || !f.path) return ck_nomem(err, cfg->mem, 0);
    *op = cfg->vertex;
    CK_FAULT(cfg->proc, CHECKPOINT_BEFORE_INFLIGHT);
    CK_TRY(ck_inflight_write(cfg->inflight, r->inflight, r->checkpoint, &f, err));
    CK_FAULT(cfg->proc, CHECKPOINT_AFTER_INFLIGHT);
    return add_file(files, &f) == CK_OK ? CK_OK : ck_nomem(err, cfg->mem, sizeof f);
}

static void inflight_run(ck_io_job *j) {
    ck_subtask_record *r = (ck_subtask_record *)((char *)j - offsetof(ck_subtask_record, job));
    ck_error err = CK_ERROR_INIT;
    ck_status s = write_inflight(r, &err);
    if (s != CK_OK) note_failure(r, s, err.status != CK_OK ? &err : NULL);
}

static void inflight_done(ck_io_job *j) {
    ck_subtask_record *r = (ck_subtask_record *)((char *)j - offsetof(ck_subtask_record, job));
    ck_subtask *s = r->subtask;
    ck_subtask_host host = s->cfg.host;
    atomic_store(&r->inflight_written, true);
    ck_task_notify(&s->task);
    host.io_end(host.arg); /* from here on the subtask may be gone */
}

/* A failed release of an older checkpoint may fail this one from another thread at any time. */
static bool still_wanted(ck_subtask *s, const ck_subtask_record *r) {
    pthread_mutex_lock(&s->hold_lock);
    bool wanted = r->status == CK_OK;
    pthread_mutex_unlock(&s->hold_lock);
    return wanted;
}

/* Once the recording has ended, in whatever way. */
static void take_recording(ck_subtask *s, ck_subtask_record *r) {
    ck_recording how = ck_gate_recording(s->gate, r->checkpoint);
    bool given_up = r->checkpoint <= s->aborted || !still_wanted(s, r);
    if (how == CK_RECORDING_OPEN && !given_up) return;
    r->recording = false;
    r->inflight = ck_gate_take_recording(s->gate, r->checkpoint);
    if (how == CK_RECORDING_WHOLE && !given_up) return;
    ck_error why = CK_ERROR_INIT;
    ck_fail(&why, CK_CANCELLED, "what checkpoint %llu overtook could not be recorded whole",
            (unsigned long long)r->checkpoint);
    note_failure(r, CK_CANCELLED, &why);
}

/* The snapshot is written and nothing is recorded any more: the file, when there is something and someone wants it. */
static void finish_record(ck_subtask *s, ck_subtask_record *r) {
    bool file = r->inflight && ck_inflight_batches(r->inflight) > 0 && r->report->files && still_wanted(s, r);
    if (!r->inflight_begun && file) {
        r->inflight_begun = true;
        r->job = (ck_io_job){inflight_run, inflight_done, NULL};
        s->cfg.host.io_begin(s->cfg.host.arg);
        s->cfg.proc->io->submit(s->cfg.proc->io, &r->job);
        return;
    }
    if (r->inflight_begun && !atomic_load(&r->inflight_written)) return;
    r->complete = true;
}

/* ---- all rows beside the checkpoints (changelog backends) ---- */

static void materialise_run(ck_io_job *j) {
    ck_subtask *s = (ck_subtask *)((char *)j - offsetof(ck_subtask, materialise_job));
    ck_error err = CK_ERROR_INIT;
    s->materialise_status = ck_materialisation_run(s->snapshots, &err);
    if (s->materialise_status != CK_OK && s->materialise_status != CK_CANCELLED)
        ck_log_line(s->cfg.proc->log, CK_LOG_WARN,
                    "the state of subtask %u of %s was not materialised, checkpoints go on: %s", s->cfg.index,
                    ck_chain_op(s->chain, 0)->ctx.uid, err.msg);
}

static void materialise_done(ck_io_job *j) {
    ck_subtask *s = (ck_subtask *)((char *)j - offsetof(ck_subtask, materialise_job));
    ck_subtask_host host = s->cfg.host;
    atomic_store(&s->materialised, true);
    ck_task_notify(&s->task);
    host.io_end(host.arg); /* from here on the subtask may be gone */
}

/* Behind the snapshot it was marked with, whose writer is the one somebody waits for. */
static void settle_materialisation(ck_subtask *s) {
    if (!s->snapshots) return;
    if (s->materialising && atomic_load(&s->materialised)) {
        s->materialising = false;
        ck_materialisation_end(s->snapshots, s->materialise_status);
    }
    if (s->materialising || s->writer || !ck_materialisation_is_begun(s->snapshots)) return;
    s->materialising = true;
    ck_materialisation_start(s->snapshots);
    atomic_store(&s->materialised, false);
    s->materialise_job = (ck_io_job){materialise_run, materialise_done, NULL};
    s->cfg.host.io_begin(s->cfg.host.arg);
    s->cfg.proc->io->submit(s->cfg.proc->io, &s->materialise_job);
}

/* Copies for its mark would pass the job's limit: checkpoints come first. */
static void give_materialisation_up(ck_subtask *s) {
    if (!s->snapshots) return;
    if (s->materialising)
        ck_materialisation_give_up(s->snapshots);
    else if (ck_materialisation_is_begun(s->snapshots))
        ck_materialisation_end(s->snapshots, CK_CANCELLED);
}

static void settle_writer(ck_subtask *s) {
    ck_subtask_record *w = s->writer;
    if (!w || !atomic_load(&w->written)) return;
    ck_subtask_snapshot_end(s->snapshots, w->snapshot);
    w->snapshot = NULL;
    s->writer = NULL;
}

void ck_subtask_settle_records(ck_subtask *s) {
    settle_writer(s);
    settle_materialisation(s);
    if (!s->records) return;
    for (ck_subtask_record *r = s->records; r; r = r->next) {
        if (r->complete || r == s->current) continue;
        if (r->recording) take_recording(s, r);
        if (r != s->writer && !r->recording) finish_record(s, r);
    }
    report_complete(s);
}

bool ck_subtask_is_writing(const ck_subtask *s) {
    for (const ck_subtask_record *r = s->records; r; r = r->next)
        if (r->inflight_begun && !atomic_load(&r->inflight_written)) return true;
    if (s->materialising && !atomic_load(&s->materialised)) return true;
    return s->writer && !atomic_load(&s->writer->written);
}

void ck_subtask_drop_records(ck_subtask *s) {
    s->writer = s->current = NULL;
    if (s->materialising) ck_materialisation_end(s->snapshots, CK_CANCELLED);
    s->materialising = false;
    while (s->records) {
        ck_subtask_record *r = s->records;
        s->records = r->next;
        free_record(s, r);
    }
}

/* ---- the barrier ---- */

static ck_status store_splits(ck_subtask *s, uint64_t checkpoint) {
    ck_arena arena;
    ck_arena_init(&arena, s->cfg.mem, SPLIT_LIST_BYTES_MAX);
    ck_split_list list = {.arena = &arena, .checkpoint = checkpoint};
    ck_status st = ck_chain_snapshot_source(s->chain, &list);
    if (st == CK_OK) st = ck_splits_store(ck_chain_op(s->chain, 0)->ctx.state, &list, error_of(s));
    ck_arena_destroy(&arena);
    return st;
}

static ck_status list_committables(ck_subtask *s, ck_report *report) {
    uint32_t n = ck_chain_op_count(s->chain);
    report->committables = ck_arena_array(&report->arena, n, sizeof *report->committables);
    if (!report->committables) return ck_nomem(error_of(s), s->cfg.mem, n * sizeof *report->committables);
    for (uint32_t i = 0; i < n; i++) {
        ck_op_runtime *op = ck_chain_op(s->chain, i);
        if (!op->desc->committer) continue;
        ck_op_committables *c = &report->committables[report->committables_count];
        c->op = i;
        CK_TRY(ck_commits_list(op->ctx.state, &report->arena, &c->items, &c->count, error_of(s)));
        if (c->count) report->committables_count++;
    }
    return CK_OK;
}

/* Marks the store and hands it to a writer. What fails here fails the checkpoint, not the subtask. */
static ck_status mark(ck_subtask *s, ck_subtask_record *r, ck_error *err) {
    CK_TRY(ck_subtask_snapshot_begin(s->snapshots, r->checkpoint, r->kind, &r->snapshot, err));
    CK_FAULT(s->cfg.proc, CHECKPOINT_AFTER_MARK);
    if (r->recording) CK_FAULT(s->cfg.proc, CHECKPOINT_AFTER_OVERTAKE);
    return CK_OK;
}

static void start_writing(ck_subtask *s, ck_subtask_record *r) {
    r->job = (ck_io_job){write_run, write_done, NULL};
    s->writer = r;
    s->cfg.host.io_begin(s->cfg.host.arg);
    s->cfg.proc->io->submit(s->cfg.proc->io, &r->job);
}

static ck_status take_snapshot(ck_subtask *s, ck_subtask_record *r) {
    if (ck_chain_has_source(s->chain)) CK_TRY(store_splits(s, r->checkpoint));
    CK_TRY(list_committables(s, r->report));
    r->report->had_ended = ck_chain_is_finished(s->chain);
    ck_error err = CK_ERROR_INIT;
    ck_status st = mark(s, r, &err);
    if (st != CK_OK) note_failure(r, st, err.status != CK_OK ? &err : NULL);
    return atomic_load(&s->cfg.proc->faults->crashed) ? CK_CANCELLED : CK_OK;
}

static void drop_recording(ck_subtask *s, uint64_t checkpoint) {
    if (s->gate) ck_inflight_free(ck_gate_take_recording(s->gate, checkpoint));
}

/* The sweep is over. What was given up meanwhile is cancelled in the barrier's place. */
static ck_status finish_barrier(ck_subtask *s) {
    ck_subtask_record *r = s->current;
    s->current = NULL;
    ck_event ev = ck_event_barrier(r->checkpoint, r->kind);
    ev.barrier.after = r->after;
    ev.barrier.overtakes = r->overtakes;
    if (r->checkpoint <= s->aborted) {
        ev.kind = CK_EVENT_CANCEL_BARRIER;
        note_failure(r, CK_CANCELLED, NULL);
        drop_recording(s, r->checkpoint);
    } else {
        r->recording = s->gate && ck_gate_recording(s->gate, r->checkpoint) != CK_RECORDING_NONE;
        CK_TRY(take_snapshot(s, r));
    }
    CK_TRY(ck_chain_forward(s->chain, &ev));
    r->report->pause_us = ck_mono_us(s->cfg.proc) - r->began_us;
    if (still_wanted(s, r)) start_writing(s, r);
    ck_subtask_settle_records(s);
    return CK_OK;
}

/* A barrier may be faster than the job's word on the checkpoint before it: mailboxes are read between steps, and to
 * other processes the two go different ways. What this one builds on is what was complete when it began: files of
 * anything older may be gone when its manifest is to name them. */
static void note_completed(ck_subtask *s, uint64_t checkpoint) {
    if (checkpoint <= s->completed) return;
    s->completed = checkpoint;
    if (s->snapshots) ck_subtask_snapshots_completed(s->snapshots, checkpoint);
}

static ck_status begin_barrier(ck_subtask *s) {
    s->has_barrier = false;
    uint64_t checkpoint = s->barrier.barrier.checkpoint;
    if (checkpoint <= s->last_barrier) { /* given up meanwhile */
        drop_recording(s, checkpoint);
        return CK_OK;
    }
    s->last_barrier = checkpoint;
    if (ck_chain_has_source(s->chain)) CK_FAULT(s->cfg.proc, CHECKPOINT_BEFORE_BARRIER);
    s->current = new_record(s, checkpoint, s->barrier.barrier.kind);
    if (!s->current) return ck_nomem(error_of(s), s->cfg.mem, sizeof *s->current);
    note_completed(s, s->barrier.barrier.after);
    s->current->after = s->completed;
    s->current->overtakes = s->barrier.barrier.overtakes;
    s->current->began_us = ck_mono_us(s->cfg.proc);
    for (uint32_t i = 0; i < ck_chain_op_count(s->chain); i++)
        ck_chain_op(s->chain, i)->ctx.savepoint = s->current->kind == CK_BARRIER_SAVEPOINT;
    ck_chain_sweep(s->chain, CK_SWEEP_PRE_SNAPSHOT, checkpoint);
    return CK_OK;
}

static bool reads_first(const ck_subtask *s) {
    const ck_op_runtime *head = ck_chain_op(s->chain, 0);
    return s->cfg.reads != CK_READS_ON && !s->read_all && !head->ended && !head->dead;
}

ck_status ck_subtask_checkpoints(ck_subtask *s, bool *busy) {
    *busy = true;
    if (s->current) return finish_barrier(s);
    if (s->has_barrier && !reads_first(s)) {
        if (s->writer) return CK_AGAIN; /* of a checkpoint that was given up: its mark must go first */
        return begin_barrier(s);
    }
    if (s->committed) {
        ck_chain_sweep(s->chain, CK_SWEEP_COMMITTED, s->committed);
        s->committed = 0;
        return CK_OK;
    }
    *busy = false;
    if (!s->store) return CK_OK;
    CK_TRY(ck_state_trim(s->store, error_of(s)));
    if (!ck_state_must_wait(s->store)) return CK_OK;
    give_materialisation_up(s);
    return ck_state_must_wait(s->store) ? CK_AGAIN : CK_OK;
}

/* ---- messages ---- */

static void trigger(ck_subtask *s, const ck_tell *t) {
    if (s->gate) {
        ck_event ev;
        if (!ck_gate_is_detached(s->gate)) return; /* in band, or again when it has detached */
        if (!ck_gate_trigger(s->gate, t->checkpoint, t->barrier, &ev)) return;
    } else if (t->checkpoint <= s->last_barrier) {
        return;
    }
    s->barrier = ck_event_barrier(t->checkpoint, t->barrier); /* a newer one replaces one that has not begun */
    s->barrier.barrier.overtakes = t->overtakes;
    s->has_barrier = true;
    if (t->stop) s->held = t->checkpoint;
}

static void overtake(ck_subtask *s, const ck_tell *t) {
    if (!s->gate) return; /* its trigger has come */
    if (ck_gate_is_detached(s->gate))
        trigger(s, t);
    else
        ck_gate_overtake(s->gate, t->checkpoint, t->barrier);
}

enum { PUSH_EVENTS = 64 }; /* beyond full targets, for one barrier */

void ck_subtask_push_on(ck_subtask *s) {
    bool urgent = (s->gate && ck_gate_is_urgent(s->gate)) || (s->has_barrier && s->barrier.barrier.overtakes) ||
                  (s->current && s->current->overtakes);
    if (urgent == s->pushing) return;
    s->pushing = urgent;
    ck_chain_push_on(s->chain, urgent ? PUSH_EVENTS : 0);
}

/* Sources cancel in band, those too that never sent the barrier: only so does the cancel reach a subtask that waits for
 * this very channel. A barrier whose sweep runs is cancelled when that is over, in its place. */
static void abort_checkpoint(ck_subtask *s, uint64_t checkpoint) {
    if (checkpoint > s->aborted) s->aborted = checkpoint;
    if (s->held <= checkpoint) s->held = 0;
    if (s->snapshots) ck_subtask_snapshots_aborted(s->snapshots, checkpoint);
    bool by_trigger = !s->gate || ck_gate_is_detached(s->gate);
    if (by_trigger && s->has_barrier && s->barrier.barrier.checkpoint <= checkpoint) s->has_barrier = false;
    if (!by_trigger || (s->current && s->current->checkpoint == checkpoint)) return;
    if (checkpoint > s->last_barrier) s->last_barrier = checkpoint;
    ck_event cancel = {.kind = CK_EVENT_CANCEL_BARRIER, .barrier = {.checkpoint = checkpoint}};
    if (ck_chain_forward(s->chain, &cancel) != CK_OK) s->broken = true;
}

void ck_subtask_on_tell(ck_subtask *s, const ck_tell *t) {
    switch (t->kind) {
    case CK_TELL_TRIGGER: trigger(s, t); break;
    case CK_TELL_OVERTAKE: overtake(s, t); break;
    case CK_TELL_ABORT:
        abort_checkpoint(s, t->checkpoint);
        if (t->anew && s->snapshots) ck_subtask_snapshots_anew(s->snapshots);
        break;
    case CK_TELL_COMPLETED:
        if (!t->stop && s->held <= t->checkpoint) s->held = 0; /* whoever wanted to stop has given up */
        note_completed(s, t->checkpoint);
        break;
    case CK_TELL_COMMITTED:
        if (t->checkpoint > s->committed) s->committed = t->checkpoint;
        break;
    }
}
