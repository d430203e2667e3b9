/* A subtask: one chain of operators with its state, stepped by the scheduler. Its head is a source, which it polls, or
 * an operator behind a gate. In a step it reads its mailbox, works off what the chain holds, takes part in checkpoints,
 * and only then takes new input.
 *
 * A checkpoint here: the barrier is complete (or the job's trigger has come to a source) -> pre_snapshot of every
 * operator, head first -> a source's splits and all sinks' committables are read -> the store is marked -> the barrier
 * goes on -> the I/O executor writes the snapshot -> when it is durable and every hold is released, a report to the
 * job. After its END a subtask stays to do all this until the job stops it.
 *
 * Threads: the scheduler's, one at a time; functions marked any may be called from anywhere while it exists. */
#ifndef CK_RUNTIME_SUBTASK_H
#define CK_RUNTIME_SUBTASK_H

#include "checkpoint/subtask.h"
#include "runtime/chain.h"
#include "runtime/gate.h"
#include "runtime/mailbox.h"
#include "state/state.h"

typedef struct ck_subtask ck_subtask;

/* ---- what the job tells a subtask ---- */

typedef enum ck_tell_kind {
    CK_TELL_TRIGGER,   /* checkpoint, barrier: to sources, and to subtasks that have closed all inputs */
    CK_TELL_ABORT,     /* checkpoint: it will not complete; sources cancel it in band */
    CK_TELL_COMPLETED, /* checkpoint: its manifest is durable */
    CK_TELL_COMMITTED, /* checkpoint: all sinks have committed it */
    CK_TELL_OVERTAKE,  /* checkpoint, barrier: mark now, ahead of what is under way (unaligned) */
} ck_tell_kind;

typedef struct ck_tell {
    ck_msg msg;
    ck_tell_kind kind;
    ck_barrier_kind barrier;
    bool overtakes; /* TRIGGER: the barrier does */
    bool anew;      /* ABORT: files of this subtask are gone: the next snapshot holds all its rows */
    bool stop;      /* TRIGGER, COMPLETED: of the savepoint the job ends with; sources wait behind its barrier */
    uint64_t checkpoint;
} ck_tell;

/* ---- what a subtask reports ---- */

typedef enum ck_report_kind {
    CK_REPORT_ACK,      /* checkpoint: durable, with files and committables */
    CK_REPORT_NACK,     /* checkpoint, error */
    CK_REPORT_FINISHED, /* its END is out */
    CK_REPORT_DETACHED, /* it has closed all its inputs: barriers reach it by trigger only */
    CK_REPORT_FAILED,   /* error */
} ck_report_kind;

typedef struct ck_op_committables {
    uint32_t op; /* index in the chain */
    ck_committable *items;
    uint32_t count;
} ck_op_committables;

/* Reports about checkpoints belong to the receiver, who frees them; the others are part of the subtask. */
typedef struct ck_report {
    ck_msg msg;
    ck_report_kind kind;
    uint32_t subtask; /* its number in the job */
    uint64_t checkpoint;
    bool had_ended;   /* ACK: at its barrier every operator had ended */
    bool gone;        /* ACK: files it names were not there when the manifest was to name them */
    int64_t pause_us; /* ACK: the barrier kept the subtask from its input for so long; not told by other processes */
    ck_error error;
    ck_subtask_files *files; /* owned */
    ck_arena arena;          /* of the committables */
    ck_op_committables *committables;
    uint32_t committables_count; /* operators with a committer */
    ck_mem mem;                  /* empty: part of something else */
} ck_report;
void ck_report_free(ck_report *r); /* leaves what is part of something else; NULL is fine */

/* ---- making ---- */

/* Sources of a job that reads up to a certain place and stops there: barriers wait until they have come so far. */
typedef enum ck_subtask_reads {
    CK_READS_ON,
    CK_READS_WHOLE,      /* then END is said, as always */
    CK_READS_WITHOUT_END /* then nothing: more would have come */
} ck_subtask_reads;

typedef struct ck_subtask_host {
    void *arg;
    void (*report)(void *arg, ck_report *r);   /* thread: any */
    void (*retired)(void *arg, ck_subtask *s); /* the subtask's last word */
    void (*io_begin)(void *arg);
    void (*io_end)(void *arg); /* thread: any */
} ck_subtask_host;

typedef struct ck_subtask_config {
    ck_proc *proc;
    ck_scheduler *scheduler;
    ck_mem mem;       /* CK_MEM_PLAN */
    ck_mem queue_mem; /* CK_MEM_QUEUE */
    uint32_t number;  /* in the job */
    uint32_t index;   /* in the vertex */
    uint32_t op_count;
    uint64_t restored;             /* checkpoint restored from; 0 = none */
    int64_t flush_us;              /* 0: no FLUSH is injected */
    bool flush_each;               /* after every batch */
    int64_t flush_origin_us;       /* added to the monotonic clock, so that all sources of a job count alike */
    uint64_t vertex;               /* its id */
    ck_key_group_range key_groups; /* of its state */
    ck_subtask_reads reads;
    const ck_inflight_place *inflight; /* where in-flight files go; NULL: without a directory. Outlives it */
    ck_subtask_host host;
} ck_subtask_config;

CK_NODISCARD ck_status ck_subtask_new(const ck_subtask_config *cfg, ck_subtask **out, ck_error *err);
/* Retired, or never started; NULL is fine. Of many that share channels: first disconnect all, then free all. */
void ck_subtask_disconnect(ck_subtask *s);
void ck_subtask_free(ck_subtask *s);

ck_chain *ck_subtask_chain(ck_subtask *s);
ck_task *ck_subtask_task(ck_subtask *s);
uint32_t ck_subtask_index(const ck_subtask *s);
/* Before the start. The subtask takes all of them over. */
void ck_subtask_set_gate(ck_subtask *s, ck_gate *g);
void ck_subtask_set_state(ck_subtask *s, ck_state_store *store,
                          ck_subtask_snapshots *snapshots);                        /* snapshots: or NULL */
CK_NODISCARD ck_status ck_subtask_add_split(ck_subtask *s, const ck_split *split); /* copied */
/* Before the start: a batch that was under way to an operator behind others in the chain. It is the subtask's. */
CK_NODISCARD ck_status ck_subtask_add_replay(ck_subtask *s, uint32_t op, ck_batch *b);
ck_state_store *ck_subtask_store(ck_subtask *s);
ck_gate *ck_subtask_gate(ck_subtask *s); /* NULL: its head is a source */

/* ---- running; thread: any ---- */

void ck_subtask_tell(ck_subtask *s, ck_tell *t); /* takes t, which was allocated from cfg.mem */
void ck_subtask_stop(ck_subtask *s);             /* close the operators and retire */

#endif
