/* The actor's actions that block, carried out one after the other in two lanes on the I/O executor: manifests in one;
 * commits, their marks and retention in the other, because a commit may be slow and the next checkpoint need not wait.
 */
#include "os/clock.h"
#include "runtime/job_int.h"

enum { MANIFEST_BYTES_MAX = 256 << 20 };

void ck_job_acks_unref(ck_job *j, ck_job_acks *a) {
    if (!a || --a->refs > 0) return;
    for (uint32_t i = 0; i < j->subtask_count; i++) ck_report_free(a->reports[i]);
    ck_free(j->mem, a, sizeof *a + j->subtask_count * sizeof *a->reports);
}

/* ---- the manifest ---- */

static ck_status vertex_entry(ck_job *j, ck_arena *a, const ck_job_acks *acks, uint32_t v, ck_manifest_vertex *out) {
    const ck_vertex *vertex = &j->plan.vertices[v];
    const char **ops = ck_arena_array(a, vertex->op_count, sizeof *ops);
    uint32_t *finished = ck_arena_array(a, vertex->parallelism, sizeof *finished), finished_count = 0;
    if (!ops || !finished) return CK_NOMEM;
    for (uint32_t i = 0; i < vertex->op_count; i++) ops[i] = vertex->ops[i]->uid;
    for (uint32_t i = 0; i < vertex->parallelism; i++)
        if (acks->reports[j->first_subtask[v] + i]->had_ended) finished[finished_count++] = i;
    *out = (ck_manifest_vertex){vertex->id, ops, vertex->op_count, vertex->parallelism, finished, finished_count};
    return CK_OK;
}

static ck_status fill_files(ck_job *j, ck_arena *a, const ck_job_acks *acks, ck_manifest *m) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < j->subtask_count; i++) count += acks->reports[i]->files->file_count;
    m->files = ck_arena_array(a, count, sizeof *m->files);
    if (!m->files) return CK_NOMEM;
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        const ck_subtask_files *f = acks->reports[i]->files;
        if (f->file_count) memcpy(m->files + m->file_count, f->files, f->file_count * sizeof *f->files);
        m->file_count += f->file_count;
    }
    return CK_OK;
}

static ck_status fill_manifest(ck_job *j, ck_arena *a, const ck_job_acks *acks, ck_manifest *m) {
    int64_t now_us = ck_mono_us(j->proc);
    ck_manifest_phase *phases = ck_arena_array(a, 2, sizeof *phases);
    int64_t pause_us = 0;
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (acks->reports[i]->pause_us > pause_us) pause_us = acks->reports[i]->pause_us;
    m->vertices = ck_arena_array(a, j->plan.count, sizeof *m->vertices);
    if (!phases || !m->vertices) return CK_NOMEM;
    phases[0] = (ck_manifest_phase){"acknowledge", (acks->acked_us - acks->started_us) / 1000};
    m->phases = phases;
    phases[1] = (ck_manifest_phase){"barrier", pause_us / 1000}; /* the longest that one subtask stood still */
    m->phase_count = 2;
    m->vertex_count = j->plan.count;
    m->completed_ms = acks->started_ms + (now_us - acks->started_us) / 1000;
    for (uint32_t v = 0; v < j->plan.count; v++) CK_TRY(vertex_entry(j, a, acks, v, &m->vertices[v]));
    return fill_files(j, a, acks, m);
}

/* Whose files are not as they were written: somebody has taken them away. Who built on them would name them for ever.
 */
static void note_gone(const ck_job *j, ck_job_acks *acks) {
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        const ck_subtask_files *f = acks->reports[i]->files;
        for (uint32_t k = 0; k < f->file_count && !acks->reports[i]->gone; k++)
            acks->reports[i]->gone = !ck_checkpoint_dir_has(j->dir, &f->files[k]);
    }
}

static ck_status write_manifest(ck_job *j, ck_job_disk *d) {
    ck_manifest m = {.format = 1,
                     .job_name = ck_checkpoint_dir_job_name(j->dir),
                     .job_uuid = ck_checkpoint_dir_job_uuid(j->dir),
                     .checkpoint = d->checkpoint,
                     .attempt = ck_checkpoint_dir_attempt(j->dir),
                     .kind = d->acks->kind,
                     .started_ms = d->acks->started_ms,
                     .key_groups = j->graph->key_groups,
                     .graph = j->graph_json,
                     .graph_hash = ck_graph_hash(j->whole),
                     .region = ck_job_is_region(j) ? j->cfg.region.index : 0,
                     .regions = ck_job_is_region(j) ? j->cfg.region.count : 0,
                     .state_versions = j->state_versions};
    ck_arena a;
    ck_arena_init(&a, j->mem, MANIFEST_BYTES_MAX);
    ck_status s = fill_manifest(j, &a, d->acks, &m);
    s = s == CK_OK ? ck_checkpoint_dir_publish(j->dir, &m, &d->error) : ck_nomem(&d->error, j->mem, 0);
    if (s == CK_NOTFOUND || s == CK_CORRUPT) note_gone(j, d->acks);
    ck_arena_destroy(&a);
    return s;
}

static ck_status publish(ck_job *j, ck_job_disk *d) {
    CK_FAULT(j->proc, CHECKPOINT_BEFORE_MANIFEST);
    CK_TRY(write_manifest(j, d));
    ck_status s = ck_fault_hit(j->proc->faults, CK_FAULT_CHECKPOINT_AFTER_MANIFEST);
    /* The manifest stands, so this may not be taken for a failed write. */
    return s == CK_CANCELLED ? s : CK_OK;
}

/* ---- commits ---- */

static ck_status commit_all(ck_job *j, ck_job_disk *d) {
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        const ck_report *r = d->acks->reports[i];
        uint32_t vertex = ck_job_vertex_of(j, i);
        for (uint32_t k = 0; k < r->committables_count; k++) {
            const ck_op_committables *c = &r->committables[k];
            ck_job_op *sink = ck_job_chain_op(j, vertex, c->op);
            for (uint32_t n = 0; n < c->count; n++)
                if (c->items[n].checkpoint > d->committed) CK_TRY(ck_job_commit_one(j, sink, &c->items[n], &d->error));
        }
    }
    return CK_OK;
}

void ck_job_close_outside(ck_job *j) {
    if (j->links) ck_links_close(j->links);
    for (uint32_t i = 0; j->ops && i < j->graph->op_count; i++) {
        ck_job_op *o = &j->ops[i];
        if (!o->committer) continue;
        if (CK_HAS(o->desc->committer, close)) o->desc->committer->close(o->committer);
        o->committer = NULL;
    }
    for (; j->held; j->held = j->held->next) j->held->release(j->held->held);
    ck_checkpoint_dir_close(j->dir);
    j->dir = NULL;
}

/* ---- the lanes ---- */

static void run(ck_io_job *io) {
    ck_job_disk *d = (ck_job_disk *)((char *)io - offsetof(ck_job_disk, io));
    ck_job *j = d->job;
    switch (d->kind) {
    case CK_DISK_MANIFEST: d->status = publish(j, d); break;
    case CK_DISK_COMMIT: d->status = commit_all(j, d); break;
    case CK_DISK_MARK: d->status = ck_checkpoint_dir_mark_committed(j->dir, d->checkpoint, &d->error); break;
    case CK_DISK_RETAIN: d->status = ck_checkpoint_dir_retain(j->dir, j->cfg.checkpoint.retained, &d->error); break;
    case CK_DISK_CLOSE: ck_job_close_outside(j); break;
    }
    if (d->status != CK_OK && d->error.status == CK_OK)
        ck_fail(&d->error, d->status, "checkpoint %llu failed", (unsigned long long)d->checkpoint);
}

static void done(ck_io_job *io) {
    ck_job_disk *d = (ck_job_disk *)((char *)io - offsetof(ck_job_disk, io));
    ck_job *j = d->job;
    ck_mailbox_post(&j->disk_done, &d->msg);
    ck_task_notify(&j->actor);
    ck_job_unref(j);
}

static ck_disk_lane *lane_of(ck_job *j, ck_disk_kind kind) {
    return kind == CK_DISK_MANIFEST ? &j->manifest_lane : &j->commit_lane;
}

static void start_next(ck_job *j, ck_disk_lane *lane) {
    ck_job_disk *d = lane->first;
    if (lane->busy || !d) return;
    lane->first = d->next;
    if (!lane->first) lane->end = &lane->first;
    lane->busy = true;
    d->io = (ck_io_job){run, done, NULL};
    ck_job_ref(j);
    j->proc->io->submit(j->proc->io, &d->io);
}

ck_status ck_job_do_disk(ck_job *j, ck_disk_kind kind, uint64_t checkpoint, ck_job_acks *acks) {
    ck_job_disk *d = ck_alloc_zero(j->mem, sizeof *d);
    if (!d) return CK_NOMEM;
    d->job = j;
    d->kind = kind;
    d->checkpoint = checkpoint;
    d->error = CK_ERROR_INIT;
    d->acks = acks;
    if (acks) acks->refs++;
    if (kind == CK_DISK_COMMIT) {
        ck_checkpoints_view v;
        ck_checkpoints_look(j->checkpoints, &v);
        d->committed = v.last_committed;
    }
    ck_disk_lane *lane = lane_of(j, kind);
    *lane->end = d;
    lane->end = &d->next;
    j->disk_jobs++;
    start_next(j, lane);
    return CK_OK;
}

void ck_job_take_disk_results(ck_job *j) {
    for (ck_msg *m = ck_mailbox_take(&j->disk_done), *next; m; m = next) {
        next = m->next;
        ck_job_disk *d = (ck_job_disk *)m;
        ck_disk_lane *lane = lane_of(j, d->kind);
        lane->busy = false;
        j->disk_jobs--;
        start_next(j, lane);
        ck_job_disk_finished(j, d);
        ck_job_acks_unref(j, d->acks);
        ck_free(j->mem, d, sizeof *d);
    }
}
