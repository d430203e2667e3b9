/* A job over several processes: which subtask runs where, and what its processes tell each other. Process 0 leads: its
 * actor has the checkpoint machine and the directory. The others follow: their actors pass on what their subtasks
 * report, hand out what the leader tells, and end when it says so. A failure anywhere is told to the leader, and by it
 * to all.
 *
 *   follower: links up (the leader says what to continue from, and new splits) -> directory, read-only -> deploy,
 *             restore -> run
 *   leader:   directory, deploy, restore, commits that are owed, new splits -> links up -> run */
#include "runtime/job_int.h"

#include "runtime/wire.h"
#include "runtime/wire_job.h"

enum { FLOATING_CREDITS = 64, CONNECT_US = 10000000, LINK_EVENTS_MAX = 256 };

typedef struct peer_msg {
    ck_msg msg;
    uint32_t peer;
    ck_frame *frame;
} peer_msg;

/* ---- placement ---- */

uint32_t ck_job_process_of(const ck_job *j, uint32_t vertex, uint32_t index) {
    const ck_job_placement *p = &j->cfg.placement;
    if (p->process_count <= 1) return p->process;
    if (p->process_of) return p->process_of(p->process_of_arg, j->plan.vertices[vertex].id, index) % p->process_count;
    return index % p->process_count;
}

bool ck_job_is_here(const ck_job *j, uint32_t vertex, uint32_t index) {
    return ck_job_process_of(j, vertex, index) == j->cfg.placement.process;
}

bool ck_job_follows(const ck_job *j) { return j->links && j->cfg.placement.process != 0; }

/* ---- connecting ---- */

/* Nothing runs yet, so what came early waits in the mailbox. */
static ck_status heard(void *job, uint32_t peer, ck_frame *f, ck_error *err) {
    ck_job *j = job;
    peer_msg *m = ck_alloc(j->mem, sizeof *m);
    if (!m) {
        ck_frame_free(&f);
        return ck_nomem(err, j->mem, sizeof *m);
    }
    *m = (peer_msg){.peer = peer, .frame = f};
    ck_mailbox_post(&j->peers, &m->msg);
    return CK_OK;
}

ck_status ck_job_make_links(ck_job *j, ck_error *err) {
    const ck_job_placement *p = &j->cfg.placement;
    if (p->process_count <= 1) return CK_OK;
    if (p->process >= p->process_count || !p->addresses)
        return ck_fail(err, CK_INVALID, "process %u of %u, or no addresses", p->process, p->process_count);
    if (ck_scheduler_is_seeded(j->scheduler))
        return ck_fail(err, CK_REFUSED, "the seeded scheduler has one thread and no network");
    ck_links_config cfg = {.proc = j->proc,
                           .scheduler = j->scheduler,
                           .mem = j->mem,
                           .queue_mem = j->queue_mem,
                           .process = p->process,
                           .process_count = p->process_count,
                           .addresses = p->addresses,
                           .listening = p->listening,
                           .secret = p->secret,
                           .tls = p->tls,
                           .graph_hash = ck_graph_hash(j->graph),
                           .bytes_max = ck_job_channel_bytes(j, 1),
                           .events_max = LINK_EVENTS_MAX,
                           .floating_credits = FLOATING_CREDITS,
                           .arg = j,
                           .failed = ck_job_link_failed,
                           .retired = ck_job_link_retired,
                           .heard = heard,
                           .boss = &j->actor};
    return ck_links_new(&cfg, &j->links, err);
}

ck_status ck_job_connect(ck_job *j, ck_error *err) {
    int64_t timeout_us = j->cfg.placement.connect_timeout_us;
    if (!ck_job_follows(j)) {
        ck_links_word w = {.restored = j->restored ? j->restored->checkpoint : 0,
                           .splits = ck_bytes_as_view(&j->new_splits)};
        memcpy(w.uuid, j->settings.job_uuid, sizeof w.uuid);
        ck_links_say(j->links, &w);
    }
    return ck_links_up(j->links, timeout_us ? timeout_us : CONNECT_US, err);
}

/* ---- telling ---- */

void ck_job_tell_peer(ck_job *j, uint32_t subtask, const ck_tell *t) {
    uint32_t vertex = ck_job_vertex_of(j, subtask);
    uint32_t peer = ck_job_process_of(j, vertex, subtask - j->first_subtask[vertex]);
    ck_frame *f = ck_wire_tell_frame(j->queue_mem, subtask, t);
    if (ck_links_send(j->links, peer, &f) == CK_NOMEM) ck_job_out_of_memory(j);
}

/* A link that is gone fails the job by itself. */
void ck_job_pass_on(ck_job *j, const ck_report *r) {
    ck_frame *f = NULL;
    ck_status s = ck_wire_report_frame(j->queue_mem, r, &f);
    if (s == CK_OK) s = ck_links_send(j->links, 0, &f);
    if (s == CK_NOMEM || s == CK_FULL) ck_job_out_of_memory(j);
}

/* The last thing said before the links go; without memory for it they just go. */
void ck_job_tell_end(ck_job *j) {
    ck_report r = {.kind = CK_REPORT_FAILED, .error = j->error};
    if (r.error.status == CK_OK) ck_fail(&r.error, CK_CANCELLED, "job %s was cancelled", j->cfg.name);
    uint32_t to = ck_job_follows(j) ? 1 : j->cfg.placement.process_count;
    for (uint32_t p = 0; p < to; p++) {
        ck_frame *f = NULL;
        if (p == j->cfg.placement.process || ck_wire_report_frame(j->queue_mem, &r, &f) != CK_OK) continue;
        ck_links_say_last(j->links, p, &f);
    }
}

/* ---- listening ---- */

/* Committables name operators by number: only those of sinks that commit count. */
static bool fits(const ck_job *j, const ck_report *r) {
    uint32_t vertex = ck_job_vertex_of(j, r->subtask);
    for (uint32_t i = 0; i < r->committables_count; i++) {
        uint32_t op = r->committables[i].op;
        if (op >= j->plan.vertices[vertex].op_count || !ck_job_chain_op(j, vertex, op)->committer) return false;
    }
    return true;
}

static ck_status on_report(ck_job *j, uint32_t peer, const ck_frame *f, ck_error *err) {
    ck_report *r;
    CK_TRY(ck_wire_read_report(j->mem, f, j->subtask_count, &r, err));
    bool here = r->kind != CK_REPORT_FAILED && j->subtasks[r->subtask];
    if (r->kind != CK_REPORT_FAILED && (here || ck_job_follows(j) || !fits(j, r))) {
        ck_report_free(r);
        return ck_fail(err, CK_CORRUPT, "a report that does not belong here");
    }
    if (r->kind == CK_REPORT_FAILED) (void)ck_error_prefix(&r->error, "process %u: ", peer);
    ck_job_take_report(j, r);
    return CK_OK;
}

static ck_status on_tell(ck_job *j, const ck_frame *f, ck_error *err) {
    uint32_t subtask;
    ck_tell t;
    CK_TRY(ck_wire_read_tell(f, j->subtask_count, &subtask, &t, err));
    if (!ck_job_follows(j) || !j->subtasks[subtask])
        return ck_fail(err, CK_CORRUPT, "a word for subtask %u, which is not here", subtask);
    ck_job_tell(j, subtask, &t);
    return CK_OK;
}

static ck_status on_frame(ck_job *j, uint32_t peer, const ck_frame *f, ck_error *err) {
    switch (f->kind) {
    case CK_WIRE_BYE:
        if (ck_job_follows(j) && peer == 0) ck_job_begin_end(j, CK_JOB_FINISHED);
        return CK_OK;
    case CK_WIRE_TELL: return on_tell(j, f, err);
    default: return on_report(j, peer, f, err);
    }
}

static void free_message(ck_job *j, peer_msg *m) {
    ck_frame_free(&m->frame);
    ck_free(j->mem, m, sizeof *m);
}

void ck_job_hear_peers(ck_job *j) {
    for (ck_msg *m = ck_mailbox_take(&j->peers), *next; m; m = next) {
        next = m->next;
        peer_msg *p = (peer_msg *)m;
        ck_error err = CK_ERROR_INIT;
        if (on_frame(j, p->peer, p->frame, &err) != CK_OK) {
            (void)ck_error_prefix(&err, "process %u: ", p->peer);
            ck_job_fail(j, &err);
        }
        free_message(j, p);
    }
}

void ck_job_drop_peers(ck_job *j) {
    for (ck_msg *m = ck_mailbox_take(&j->peers), *next; m; m = next) {
        next = m->next;
        free_message(j, (peer_msg *)m);
    }
}
