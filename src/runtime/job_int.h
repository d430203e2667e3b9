/* Inside a job: its parts and who works on them.
 *   job.c         what the outside calls: start, wait, cancel, free
 *   job_plan.c    from graph and config to operators, vertices and settings
 *   job_deploy.c  subtasks, channels, exchanges
 *   job_restore.c the directory: what to continue from, state, commits that are owed; job_splits.c the sources' splits
 *   job_settle.c  a checkpoint that must be worked off at the parallelism it was made with
 *   job_backfill.c state that is computed by reading the input again, up to the checkpoint
 *   job_actor.c   the running job: reports, the checkpoint machine, the end
 *   job_disk.c    the actor's actions that block: manifests, commits, retention
 *   job_peers.c   other processes of the job: who runs what, what they tell each other
 *
 * Everything up to the first notification belongs to the thread in ck_job_start. Then the actor (a task) owns what is
 * not marked; what is fixed by then is read by anyone. */
#ifndef CK_RUNTIME_JOB_INT_H
#define CK_RUNTIME_JOB_INT_H

#include <pthread.h>

#include "checkpoint/coordinator.h"
#include "checkpoint/directory.h"
#include "checkpoint/restore.h"
#include "graph/regions.h"
#include "runtime/evolve.h"
#include "runtime/link.h"
#include "runtime/subtask.h"
#include "state/rocks.h"

/* One operator of the graph. Fixed after the start. */
typedef struct ck_job_op {
    const ck_graph_op *op;
    const ck_op_desc *desc;
    const ck_op_spec *spec; /* of the graph and the job; which subtask of how many: ck_job_op_spec */
    uint32_t vertex;
    uint32_t place;                    /* in the vertex's chain */
    const ck_inflight_place *inflight; /* NULL: without inputs or a directory */
    ck_source_peers *peers;            /* sources */
    bool unbounded_source;
    bool was_known;             /* the restored checkpoint has it as a source, */
    ck_split_list known_splits; /* with these splits over all processes: their ids */
    bool ended;                 /* the restored checkpoint says so: all its subtasks had ended */
    void *committer;            /* sinks that commit; used on the I/O executor, one call at a time */
} ck_job_op;

/* What enumerating the splits of a source left open. In the job's arena. */
typedef struct ck_job_held {
    struct ck_job_held *next;
    void *held;
    void (*release)(void *held);
} ck_job_held;

/* The acknowledgements of one checkpoint. Actor; read by the disk job that holds a reference. */
typedef struct ck_job_acks {
    struct ck_job_acks *next;
    uint32_t refs;
    uint64_t checkpoint;
    ck_barrier_kind kind;
    bool overtook;
    int64_t started_ms, started_us, acked_us;
    ck_report *reports[]; /* by subtask number */
} ck_job_acks;

typedef enum ck_disk_kind {
    CK_DISK_MANIFEST,
    CK_DISK_COMMIT,
    CK_DISK_MARK,
    CK_DISK_RETAIN,
    CK_DISK_CLOSE
} ck_disk_kind;

/* One blocking action on its way through the I/O executor. */
typedef struct ck_job_disk {
    ck_msg msg; /* back to the actor */
    ck_io_job io;
    struct ck_job_disk *next; /* in its lane */
    ck_job *job;
    ck_disk_kind kind;
    uint64_t checkpoint;
    uint64_t committed; /* COMMIT: what older committables may be skipped */
    ck_job_acks *acks;  /* MANIFEST, COMMIT: a reference */
    ck_status status;
    ck_error error;
} ck_job_disk;

/* Actions of one lane run one after the other. */
typedef struct ck_disk_lane {
    ck_job_disk *first, **end;
    bool busy;
} ck_disk_lane;

/* Someone waits for a savepoint. Guarded by the job's lock. */
typedef struct ck_job_savepoint_wait {
    struct ck_job_savepoint_wait *next;
    uint64_t request;
    uint64_t above; /* what its id is to be */
    bool stop;      /* and the job ends with it */
    bool asked;     /* the machine knows */
    bool done, abandoned;
    ck_status status;
    uint64_t checkpoint;
    const char *reason;
} ck_job_savepoint_wait;

struct ck_job {
    ck_task actor;
    ck_proc *proc;
    ck_scheduler *scheduler;
    const ck_registry *registry;
    ck_budget budget;
    ck_mem mem;       /* CK_MEM_PLAN */
    ck_mem queue_mem; /* CK_MEM_QUEUE */
    ck_arena arena;   /* the plan; written only by ck_job_start */
    ck_job_config cfg;
    ck_job_settings settings;
    ck_graph *whole;       /* the graph of all, of which this job may be a region; */
    const ck_graph *graph; /* what it runs of that */
    ck_graph_regions regions;
    const char *graph_json; /* of all */
    char uuid[37];          /* without a directory */
    ck_rocks *rocks;        /* of all its stores; NULL: none */
    const char *state_versions;
    ck_vertex_plan plan;
    ck_job_op *ops;          /* by index in the graph */
    uint32_t *first_subtask; /* by vertex; numbers are consecutive */
    ck_subtask **subtasks;
    uint32_t subtask_count;
    uint32_t local_count;  /* subtasks of this process; the others stay NULL */
    ck_links *links;       /* to other processes; NULL: everything is here */
    uint32_t edge_count;   /* channels numbered so far, alike in every process */
    ck_report link_failed; /* the first failure of a link, in a follower of that to the leader */
    ck_report peer_failed; /* follower: of a link to another follower; the leader decides what follows */
    _Atomic bool link_told, peer_told;
    ck_bytes new_splits;     /* leader: of subtasks elsewhere, as job_splits.c writes them */
    bool flush;              /* bounded sources inject FLUSH too: some operator is not final */
    int64_t flush_origin_us; /* wall minus monotonic at the start: flushes are numbered by it */

    /* checkpoints; dir is NULL without */
    ck_checkpoint_dir *dir;
    const ck_manifest *restored; /* NULL: a new beginning */
    const char *restored_dir;
    ck_evolution evolution;  /* what becomes of the restored operators; whole when `restored` is */
    const char *backfilled;  /* where what is computed again was left; NULL: nothing is */
    uint32_t settle_at;      /* the parallelism it must be worked off with first; 0: it need not */
    uint32_t settle_regions; /* region by region, as they were: of so many; 0: as the whole */
    uint64_t below;          /* going back: only checkpoints below this one are looked at; 0 = all */
    uint64_t tried;          /* what was to be restored */
    bool damaged;            /* it could not be, for what its files are */
    bool was_finished;       /* the directory's job had finished: nothing runs */
    ck_checkpoints *checkpoints;
    ck_job_acks *acks; /* newest first */
    ck_disk_lane manifest_lane, commit_lane;
    uint32_t disk_jobs; /* submitted or queued */

    /* to the actor; thread: any */
    ck_mailbox reports;   /* ck_report */
    ck_mailbox disk_done; /* ck_job_disk */
    ck_mailbox peers;     /* frames of other processes */
    _Atomic bool cancel;
    _Atomic bool savepoint_asked;
    _Atomic uint32_t live_tasks; /* subtasks, and the tasks of links */

    bool ending;             /* subtasks have been told to stop */
    bool closing;            /* the last disk job runs, or ran */
    bool closed;             /* it ran */
    bool *detached;          /* by subtask: barriers reach it by trigger */
    uint64_t failed_trigger; /* a fault met before it went out; 0 = none */
    uint64_t mixed_ends;     /* a checkpoint that overtook them; 0 = none */
    ck_job_state outcome;
    ck_error error;      /* the first one, when it failed */
    ck_error disk_error; /* why the last checkpoint failed */

    _Atomic int state;                                       /* ck_job_state */
    _Atomic uint64_t checkpoints_completed, last_checkpoint; /* for progress */
    pthread_mutex_t lock;                                    /* guards everything below */
    pthread_cond_t changed;
    bool ended;    /* on_end has returned */
    uint32_t refs; /* who may still touch the job: tasks, I/O */
    ck_job_savepoint_wait *savepoints;
    bool begins_now;          /* where a source began is known only here: a checkpoint keeps it at once */
    struct ck_job_held *held; /* what sources need until the end, by whoever dealt their splits */
    bool no_savepoints;       /* nobody would answer any more */
    uint64_t next_request;
};

/* ---- job_plan.c ---- */
CK_NODISCARD ck_status ck_job_make_plan(ck_job *j, const ck_graph *g, const ck_job_config *cfg, ck_error *err);
static inline bool ck_job_is_region(const ck_job *j) { return j->cfg.region.count > 1; }
/* What of its checkpoint directory is this job's. */
ck_checkpoint_region ck_job_region_of_dir(const ck_job *j);
/* What an instance of an operator is made from; in the job's arena. */
ck_op_spec *ck_job_op_spec(ck_job *j, const ck_job_op *op, uint32_t subtask, uint32_t parallelism);
/* The slots it opens, from its parameters alone, in the job's arena; none: *count 0. */
CK_NODISCARD ck_status ck_job_op_slots(ck_job *j, const ck_job_op *op, const ck_slot_schema **slots, uint32_t *count,
                                       ck_error *err);
ck_job_op *ck_job_chain_op(const ck_job *j, uint32_t vertex, uint32_t place);

/* ---- job_deploy.c ---- */
size_t ck_job_channel_bytes(const ck_job *j, uint32_t channels); /* of one, where so many meet */
CK_NODISCARD ck_status ck_job_deploy(ck_job *j, ck_error *err);
uint32_t ck_job_vertex_of(const ck_job *j, uint32_t subtask);

/* ---- job_peers.c ---- */
uint32_t ck_job_process_of(const ck_job *j, uint32_t vertex, uint32_t index);
bool ck_job_is_here(const ck_job *j, uint32_t vertex, uint32_t index);
bool ck_job_follows(const ck_job *j);                               /* another process leads */
CK_NODISCARD ck_status ck_job_make_links(ck_job *j, ck_error *err); /* none for a job of one process */
CK_NODISCARD ck_status ck_job_connect(ck_job *j, ck_error *err);
/* Actor. */
void ck_job_tell_peer(ck_job *j, uint32_t subtask, const ck_tell *t);
void ck_job_pass_on(ck_job *j, const ck_report *r); /* follower: to the leader */
void ck_job_tell_end(ck_job *j);                    /* it failed here, or was cancelled */
void ck_job_hear_peers(ck_job *j);
void ck_job_drop_peers(ck_job *j); /* what came and was not heard */

/* ---- job_restore.c ---- */
/* Opens the directory, decides what to continue from. */
CK_NODISCARD ck_status ck_job_open_dir(ck_job *j, ck_error *err);
CK_NODISCARD ck_status ck_job_make_committers(ck_job *j, ck_error *err);
/* State into the deployed subtasks, then the commits that are owed. */
CK_NODISCARD ck_status ck_job_restore(ck_job *j, ck_error *err);
/* ---- job_backfill.c ---- */

/* Runs what has to be computed again up to the restored checkpoint, into a directory inside the job's. Nothing else is
 * touched. Blocking. Also removes what a dead run left of one. */
CK_NODISCARD ck_status ck_job_backfill(ck_job *j, ck_error *err);
/* Its state into the deployed subtasks, before that of the restored checkpoint. */
CK_NODISCARD ck_status ck_job_load_backfilled(ck_job *j, ck_error *err);
/* It is in the job's own. */
CK_NODISCARD ck_status ck_job_drop_backfilled(ck_job *j, ck_error *err);
bool ck_job_is_backfilled(const ck_job *j, const ck_graph_op *op);

/* ---- job_settle.c ---- */

/* Sets settle_at. CK_REFUSED: it must be, and cannot be here. */
CK_NODISCARD ck_status ck_job_find_settling(ck_job *j, ck_error *err);
/* A life of the job at that parallelism, from what cfg restores to a checkpoint with nothing under way. Blocking. */
CK_NODISCARD ck_status ck_job_settle(ck_scheduler *s, const ck_registry *r, const ck_graph *g, const ck_job_config *cfg,
                                     ck_job_region region, uint32_t parallelism, ck_error *err);

/* What was under way at the restored checkpoint, into the gates. */
CK_NODISCARD ck_status ck_job_replay(ck_job *j, ck_error *err);
CK_NODISCARD ck_status ck_job_deal_splits(ck_job *j, ck_error *err);
CK_NODISCARD ck_status ck_job_commit_one(ck_job *j, ck_job_op *sink, const ck_committable *c, ck_error *err);

/* After a failure: whether an older checkpoint may be tried, because no sink has committed past it. */
bool ck_job_may_go_back(ck_job *j);
/* Those that were gone back behind count no more. */
CK_NODISCARD ck_status ck_job_abandon_newer(ck_job *j, ck_error *err);

/* ---- job_actor.c ---- */
CK_NODISCARD ck_status ck_job_make_actor(ck_job *j, ck_error *err);
void ck_job_report(void *job, ck_report *r);
/* Actor. */
void ck_job_take_report(ck_job *j, ck_report *r);
void ck_job_tell(ck_job *j, uint32_t subtask, const ck_tell *what); /* copied */
void ck_job_begin_end(ck_job *j, ck_job_state outcome);
void ck_job_fail(ck_job *j, const ck_error *e);
void ck_job_out_of_memory(ck_job *j);
void ck_job_subtask_retired(void *job, ck_subtask *s);
void ck_job_link_retired(void *job);
void ck_job_link_failed(void *job, uint32_t peer, const ck_error *err);
void ck_job_disk_finished(ck_job *j, ck_job_disk *d); /* actor */

/* ---- job_disk.c ---- */
/* Queues an action; CK_NOMEM. */
CK_NODISCARD ck_status ck_job_do_disk(ck_job *j, ck_disk_kind kind, uint64_t checkpoint, ck_job_acks *acks);
void ck_job_take_disk_results(ck_job *j);
void ck_job_acks_unref(ck_job *j, ck_job_acks *a);
void ck_job_close_outside(ck_job *j); /* committers and directory; blocks */

/* ---- job.c ---- */
void ck_job_ref(void *job);
void ck_job_unref(void *job);

#endif
