/* Inside a subtask: its step (subtask.c) and its part in checkpoints (subtask_checkpoint.c). */
#ifndef CK_RUNTIME_SUBTASK_INT_H
#define CK_RUNTIME_SUBTASK_INT_H

#include <pthread.h>

#include "checkpoint/changelog.h"
#include "runtime/subtask.h"

/* One checkpoint here, from the barrier to the report. */
typedef struct ck_subtask_record {
    struct ck_subtask_record *next;
    ck_io_job job; /* writes the snapshot, then the in-flight file */
    ck_subtask *subtask;
    ck_report *report;
    ck_subtask_snapshot *snapshot; /* NULL: not begun, or ended */
    uint64_t checkpoint;
    ck_barrier_kind kind;
    uint64_t after; /* the newest checkpoint that was complete when it began */
    bool overtakes; /* its barrier does */
    int64_t began_us;
    bool recording;        /* the gate records what is under way to it */
    bool complete;         /* nothing more to do but wait for holds */
    ck_inflight *inflight; /* what was recorded; NULL: not yet, or nothing */
    _Atomic bool written;
    bool inflight_begun;
    _Atomic bool inflight_written;
    uint32_t holds;   /* guarded by hold_lock */
    ck_status status; /* first failure; of holds: guarded by hold_lock */
} ck_subtask_record;

struct ck_subtask {
    ck_task task;
    ck_subtask_config cfg;
    ck_chain *chain;
    ck_gate *gate;
    ck_state_store *store;
    ck_subtask_snapshots *snapshots;
    ck_arena arena; /* splits until they are handed over */
    ck_split_list splits;
    uint32_t splits_added;
    struct ck_subtask_replay { /* until the operators are open */
        struct ck_subtask_replay *next;
        uint32_t op;
        ck_batch *batch;
    } * replays, **replays_end;
    ck_mailbox mailbox;
    _Atomic bool stop;
    bool opening; /* the sweep over open has begun */
    bool opened;  /* the sweep is over and all splits are handed over */
    bool closing; /* a failure or a stop: only closing is left */
    bool broken;  /* no memory where nothing could be returned: fails in this step */
    bool told_finished, told_detached;
    ck_report finished, detached, failed;

    /* source */
    bool source_idle;
    bool read_all; /* CK_READS_WITHOUT_END: all its splits are at their ends */
    int64_t source_until_us;
    bool unflushed; /* a batch was emitted since the last FLUSH */
    uint64_t flush_seq;

    /* checkpoints */
    uint64_t held;    /* the savepoint the job is to end with: nothing is read behind its barrier; 0 = none */
    ck_event barrier; /* complete or triggered, waits for its turn; kind BARRIER or none */
    bool has_barrier;
    bool pushing;               /* an overtaking barrier waits behind the chain */
    uint64_t last_barrier;      /* begun, or given up before */
    ck_subtask_record *current; /* its pre_snapshot sweep runs */
    ck_subtask_record *writer;  /* its snapshot is being written */
    ck_io_job materialise_job;  /* changelog backends: writes all rows beside the checkpoints */
    bool materialising;
    _Atomic bool materialised; /* that write has ended */
    ck_status materialise_status;
    uint64_t completed;        /* the newest that is: told, or known by the barrier of a later one */
    uint64_t aborted;          /* the greatest the job gave up */
    uint64_t committed;        /* told and not yet passed on; 0 = none */
    pthread_mutex_t hold_lock; /* guards the list below and the holds in it */
    ck_subtask_record *records;
};

/* A message has come. */
void ck_subtask_on_tell(ck_subtask *s, const ck_tell *t);
/* Looks after writes that have ended and holds that were released. */
void ck_subtask_settle_records(ck_subtask *s);
/* The chain is empty and no sweep runs: does the next thing a checkpoint or commit wants. *busy: something was begun,
 * run the chain again. CK_AGAIN: a completion will notify, take no input. */
CK_NODISCARD ck_status ck_subtask_checkpoints(ck_subtask *s, bool *busy);
bool ck_subtask_is_writing(const ck_subtask *s);
/* Lets the chain go on past full targets while an overtaking barrier waits behind it. */
void ck_subtask_push_on(ck_subtask *s);
/* Not while writing, and after the operators were closed: nobody releases a hold any more. */
void ck_subtask_drop_records(ck_subtask *s);
void ck_subtask_hold_ack(void *arg);
void ck_subtask_release_ack(void *arg, uint64_t checkpoint, ck_status status, const ck_error *error);

#endif
