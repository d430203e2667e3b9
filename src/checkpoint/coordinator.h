/* The checkpoints of one job as a pure state machine: events and the time go in, actions come out. No clock, no lock,
 * no I/O. The runtime carries the actions out and reports how they went as further events.
 *
 * One checkpoint:   TRIGGER -> acks of all subtasks -> WRITE_MANIFEST -> COMPLETED, COMMIT -> MARK_COMMITTED ->
 * COMMITTED, RETAIN. A nack, a timeout or a failed manifest ends it with ABORT instead. At most one checkpoint is
 * between TRIGGER and COMPLETED; its commit may still run while the next one is under way, and a commit covers every
 * older checkpoint that was completed and not committed (the newer one carries their committables too).
 *
 * Ids start at `next_id` and only grow; an aborted id is never used again.
 *
 * Thread: one at a time; the runtime serialises (its job mailbox). */
#ifndef CK_CHECKPOINT_COORDINATOR_H
#define CK_CHECKPOINT_COORDINATOR_H

#include "stream/event.h"

typedef struct ck_checkpoints ck_checkpoints;

/* What periodic checkpoints do where barriers are held up: wait, overtake what is under way from the start, or do so
 * once the acknowledgements have not all come for a while. Savepoints and the final one always wait. */
typedef enum ck_alignment { CK_ALIGNED, CK_UNALIGNED, CK_ALIGN_ADAPTIVE } ck_alignment;

typedef struct ck_checkpoints_config {
    bool enabled; /* false: no directory. Nothing is ever triggered; savepoints are refused; FINISHED at once when
                     all subtasks have finished */
    int64_t interval_us;       /* trigger to trigger; 0 = no periodic ones */
    bool first_at_once;        /* the first of the periodic ones does not wait for an interval */
    int64_t timeout_us;        /* trigger to all acks; a manifest being written is waited for */
    int64_t final_timeout_us;  /* all finished to committed */
    uint32_t tolerable_failed; /* periodic failures in a row beyond which the job fails; 0 = unlimited */
    ck_alignment alignment;
    int64_t stall_us;  /* ADAPTIVE: trigger to overtaking, above 0 */
    uint32_t subtasks; /* of the whole job, sources included; numbered 0..subtasks-1 by the runtime */
    uint64_t next_id;  /* above every id seen in the directory */
    uint64_t id_step;  /* from one id to the next; 0 = 1 */
} ck_checkpoints_config;

typedef enum ck_checkpoints_event_kind {
    CK_CKPT_TICK,             /* time has passed (call at ck_checkpoints_deadline) */
    CK_CKPT_ACK,              /* checkpoint, subtask: its files are durable */
    CK_CKPT_NACK,             /* checkpoint, subtask, status: it could not (also: cancelled while aligning) */
    CK_CKPT_ENDS_MIXED,       /* checkpoint: all have acknowledged, but it overtook the ends of some inputs: it is given
                                 up without counting as a failure, and the next one waits (WRITE_MANIFEST's answer) */
    CK_CKPT_SUBTASK_FINISHED, /* subtask: has handled the END of all inputs, its own END is out; it stays to forward
                                 barriers and to acknowledge */
    CK_CKPT_MANIFEST_DONE,    /* checkpoint: durable */
    CK_CKPT_MANIFEST_FAILED,  /* checkpoint, status: certainly not visible. fatal: not known, or another owner's */
    CK_CKPT_COMMIT_DONE,      /* checkpoint: all committers have committed all it carries */
    CK_CKPT_COMMIT_FAILED,    /* checkpoint, status */
    CK_CKPT_MARK_DONE,        /* checkpoint: its .committed is durable */
    CK_CKPT_MARK_FAILED,      /* checkpoint, status */
    CK_CKPT_SAVEPOINT,        /* request, checkpoint: a savepoint as soon as none is pending, above that id */
    CK_CKPT_STOP,             /* the same, and when it is committed FINISHED */
    CK_CKPT_WITHDRAW,         /* request: nobody waits any more; what has not been triggered is not, and a savepoint
                                 under way does not end the job for it */
} ck_checkpoints_event_kind;

typedef struct ck_checkpoints_event {
    ck_checkpoints_event_kind kind;
    uint64_t checkpoint;
    uint32_t subtask;
    uint64_t request; /* the asker's own number, given back in SAVEPOINT_DONE */
    ck_status status; /* of failures */
    bool retriable;   /* failures: may go away by itself */
    bool fatal;       /* failures: end the job */
} ck_checkpoints_event;

typedef enum ck_checkpoints_action_kind {
    CK_CKPT_DO_TRIGGER,        /* checkpoint, barrier: to all sources, ended ones included */
    CK_CKPT_DO_OVERTAKE,       /* checkpoint, barrier: to all subtasks; with a TRIGGER that overtakes, or later */
    CK_CKPT_DO_WRITE_MANIFEST, /* checkpoint: ck_checkpoint_dir_publish with the files of all acks */
    CK_CKPT_DO_COMPLETED,      /* checkpoint: tell all subtasks (ck_subtask_snapshots_completed) */
    CK_CKPT_DO_COMMIT,         /* checkpoint: run the committers over what it carries */
    CK_CKPT_DO_MARK_COMMITTED, /* checkpoint: ck_checkpoint_dir_mark_committed */
    CK_CKPT_DO_COMMITTED,      /* checkpoint: tell all subtasks (on_committed) */
    CK_CKPT_DO_ABORT,          /* checkpoint, reason: cancel in band from the sources, tell all subtasks
                                  (ck_subtask_snapshots_aborted), drop its acks */
    CK_CKPT_DO_RETAIN,         /* ck_checkpoint_dir_retain; how it goes changes nothing */
    CK_CKPT_DO_SAVEPOINT_DONE, /* request, checkpoint, status, reason */
    CK_CKPT_DO_FINISHED,       /* the final (or stop) checkpoint is committed: the job may end */
    CK_CKPT_DO_FAIL_JOB,       /* status, reason; nothing comes after */
} ck_checkpoints_action_kind;

typedef struct ck_checkpoints_action {
    ck_checkpoints_action_kind kind;
    uint64_t checkpoint;
    ck_barrier_kind barrier;
    bool overtakes; /* TRIGGER: its barriers do, and an OVERTAKE follows */
    bool stop;      /* TRIGGER, COMPLETED: this savepoint ends the job; sources wait behind its barrier */
    uint64_t request;
    ck_status status;
    const char *reason; /* a literal for people */
} ck_checkpoints_action;

CK_NODISCARD ck_status ck_checkpoints_new(ck_mem mem, const ck_checkpoints_config *cfg, int64_t now_us,
                                          ck_checkpoints **out, ck_error *err);
void ck_checkpoints_free(ck_checkpoints *c); /* NULL is fine */

/* Takes one event. *actions is the machine's, valid until the next call, to be carried out in order. Events of
 * checkpoints that are over (late acks, results of aborted writes) are fine and ignored. Cannot fail. */
uint32_t ck_checkpoints_step(ck_checkpoints *c, int64_t now_us, const ck_checkpoints_event *ev,
                             const ck_checkpoints_action **actions);
/* When the next TICK is needed; INT64_MAX: only events matter. */
int64_t ck_checkpoints_deadline(const ck_checkpoints *c);

/* For progress and tests. */
typedef struct ck_checkpoints_view {
    uint64_t pending; /* id between trigger and completion; 0 = none */
    ck_barrier_kind pending_kind;
    int64_t pending_since_us;
    uint32_t pending_missing; /* acks still to come */
    bool pending_overtakes;
    uint64_t last_completed, last_committed, next_id;
    uint64_t completed_count, failed_count;
    uint32_t failed_in_a_row;
    uint32_t uncommitted_count; /* completed, not committed */
    uint32_t finished_subtasks;
    bool finished, failed;
} ck_checkpoints_view;
void ck_checkpoints_look(const ck_checkpoints *c, ck_checkpoints_view *out);
/* Whether this subtask has not acknowledged the pending checkpoint: to name who holds it up. */
bool ck_checkpoints_waits_for(const ck_checkpoints *c, uint32_t subtask);

#endif
