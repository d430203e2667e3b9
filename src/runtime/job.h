/* A running job: a graph deployed over subtasks in this process (and, with a placement, over several), its checkpoints,
 * its end. This is all the engine and the cluster see of the runtime. */
#ifndef CK_RUNTIME_JOB_H
#define CK_RUNTIME_JOB_H

#include "checkpoint/coordinator.h"
#include "checkpoint/subtask.h"
#include "graph/graph.h"
#include "os/socket.h"
#include "plugin/registry.h"
#include "runtime/evolve.h"
#include "runtime/op_metrics.h"

/* What runs steps: a pool of threads, or one seeded thread with a virtual clock. Outlives its jobs. */
typedef struct ck_scheduler ck_scheduler;
CK_NODISCARD ck_status ck_scheduler_pool(ck_proc *proc, unsigned threads, ck_scheduler **out, ck_error *err);
/* proc->clock must be a ck_manual_clock; every choice comes from the seed. It puts its own I/O executor into proc->io,
 * which runs jobs inline at seeded times. A simulated crash (ck_faults.crashed) ends all turns. */
CK_NODISCARD ck_status ck_scheduler_seeded(ck_proc *proc, uint64_t seed, ck_scheduler **out, ck_error *err);
/* Seeded only: take up to `steps` choices; false when nothing can ever happen again. */
bool ck_scheduler_turn(ck_scheduler *s, uint64_t steps);
void ck_scheduler_free(ck_scheduler *s);

typedef struct ck_job ck_job;

typedef struct ck_checkpoint_config {
    const char *dir;     /* NULL or empty: no checkpoints */
    int64_t interval_us; /* 0: none periodic (savepoints and the final one still) */
    int64_t timeout_us;
    int64_t final_timeout_us;
    uint32_t tolerable_failed; /* in a row; 0 unlimited */
    uint32_t retained;
    ck_alignment alignment;
    int64_t stall_us; /* CK_ALIGN_ADAPTIVE */
    ck_changelog_config changelog;
    const char *restore;    /* "latest", "N", "DIR[:N]"; NULL = latest when this job is in dir */
    bool fresh;             /* start anew in a used directory, under a new UUID, */
    const char *fresh_uuid; /* this one; in a directory that has it already nothing starts anew. NULL: any */
    bool allow_duplicates;
    bool allow_semantic_change; /* a changed script goes on over state that means something else, or gives it up */
    ck_added_state added;
} ck_checkpoint_config;

/* A job over several processes: each starts the same graph with its own `process`, and they find each other. Subtask i
 * of a vertex runs in process i mod process_count unless process_of says otherwise. Process 0 leads: it owns the
 * checkpoint directory, which all must see under the same path, and takes savepoints. */
typedef struct ck_job_placement {
    uint32_t process, process_count; /* count 0 or 1: everything is here */
    const char *const *addresses;    /* data port of every process, "HOST:PORT" */
    ck_socket **listening;           /* at ours; taken when it is needed, else left. NULL: one is made */
    const char *secret;              /* the same everywhere; who does not know it is turned away */
    struct ck_tls *tls;              /* between the processes; outlives the job; NULL: none */
    int64_t connect_timeout_us;      /* until all are there; 0 = 10 s */
    uint32_t (*process_of)(void *arg, uint64_t vertex, uint32_t subtask);
    void *process_of_arg;
} ck_job_placement;

/* A job that reads what another one has read up to a checkpoint, and nothing else: by operator of its graph, of
 * sources. It is stopped when it has come there (ck_job_stop). */
typedef struct ck_job_reread {
    const ck_split_list *splits;
    const bool *ends; /* the other one had come to its end */
} ck_job_reread;

/* A job that is one region of its graph (graph/regions.h), which is started with the graph of all: only operators of
 * the region run, and the checkpoints are of them, in a directory that the job's other regions share. Vertices,
 * subtasks and placement are those of ck_graph_region. */
typedef struct ck_job_region {
    uint32_t index, count; /* count 0 or 1: all of it. Another count than the graph has is CK_INVALID */
} ck_job_region;

typedef struct ck_job_config {
    const char *name;
    ck_job_region region;
    uint32_t parallelism;
    uint32_t batch_rows;   /* 0 = CK_BATCH_ROWS_MAX */
    int64_t flush_us;      /* 0 = 5000 */
    size_t queue_bytes;    /* per edge and subtask pair; 0 = 1 MiB */
    size_t memory_limit;   /* 0 = none */
    const char *spill_dir; /* where state goes that would fill it; NULL: it is refused */
    bool rocksdb;          /* there into RocksDB, as far as it can */
    ck_checkpoint_config checkpoint;
    ck_job_placement placement;
    const ck_skip *skips; /* records to leave out; must stay until the job is freed */
    uint32_t skip_count;
    const ck_job_reread *reread;          /* NULL: it reads on */
    void *job_data;                       /* for ck_op_spec */
    void (*on_end)(void *arg, ck_job *j); /* once, from a scheduler thread; may be NULL */
    void *on_end_arg;
} ck_job_config;

typedef enum ck_job_state {
    CK_JOB_STARTING,
    CK_JOB_RUNNING,
    CK_JOB_FINISHED,
    CK_JOB_FAILED,
    CK_JOB_CANCELLED
} ck_job_state;

/* Validates, takes the directory's lock, restores, deploys, starts. Blocking (I/O); not from a step. Everything is
 * copied except the registry and the scheduler, which outlive the job. A directory whose job has finished: CK_OK with a
 * job in state FINISHED that did nothing. */
CK_NODISCARD ck_status ck_job_start(ck_scheduler *s, const ck_registry *r, const ck_graph *g, const ck_job_config *cfg,
                                    ck_job **out, ck_error *err);
/* Blocks until the job ended or timeout_us passed (CK_AGAIN); -1 for ever. CK_OK finished; else how it ended, with its
 * first error. Pool only. */
CK_NODISCARD ck_status ck_job_wait(ck_job *j, int64_t timeout_us, ck_error *err);
void ck_job_cancel(ck_job *j); /* asks; output of complete checkpoints stays; thread: any */
ck_job_state ck_job_state_of(const ck_job *j);
bool ck_job_was_finished(const ck_job *j);                      /* its directory held it finished: nothing was done */
CK_NODISCARD ck_status ck_job_result(ck_job *j, ck_error *err); /* of an ended job, as ck_job_wait */
/* A savepoint now; waits until this very one is complete. After timeout_us (-1: never) CK_AGAIN; what has not begun by
 * then never does. */
CK_NODISCARD ck_status ck_job_savepoint(ck_job *j, int64_t timeout_us, uint64_t *checkpoint, ck_error *err);
/* The same, and the job ends FINISHED when it is committed: nothing is read behind it. A start from it goes on. */
CK_NODISCARD ck_status ck_job_stop(ck_job *j, int64_t timeout_us, uint64_t *checkpoint, ck_error *err);
/* Either, with an id above `above`: of the regions of a job each is told the greatest checkpoint that any of them has
 * said so far. So no savepoint of the job mixes with one before, and its number is the greatest of the ids. */
CK_NODISCARD ck_status ck_job_savepoint_above(ck_job *j, bool stop, uint64_t above, int64_t timeout_us,
                                              uint64_t *checkpoint, ck_error *err);
void ck_job_free(ck_job *j); /* cancels, waits, frees */

/* A look at a running job; all numbers are since this start. */
typedef struct ck_job_progress {
    uint64_t rows_in, bytes_in, rows_out; /* sources, sinks */
    uint64_t bytes_total;                 /* of bounded sources; 0 = unknown */
    uint64_t checkpoints_completed, last_checkpoint;
    uint64_t restored; /* the checkpoint it goes on from; 0: a new beginning, or one that had finished */
    size_t memory_bytes[CK_MEM_CATEGORY_COUNT];
    uint64_t bad_rows;
    uint64_t dead_letters;             /* of bad_rows: sent to a table */
    uint64_t late_rows, bad_time_rows; /* dropped by operators of time: once for each operator that did */
    bool follows;                      /* some source says how far it is behind: */
    uint64_t lag_records;              /* of all of them */
    int64_t lag_us;                    /* of the one furthest behind */
} ck_job_progress;
void ck_job_progress_now(ck_job *j, ck_job_progress *out);
/* A counter of one operator ("bad_rows"), over its subtasks in this process; 0 where there is none of the name. */
uint64_t ck_job_count_of(const ck_job *j, const char *uid, const char *counter);
/* The same for one that stands at a greatest ("late_by_ms"): that of the subtask where it is greatest. */
uint64_t ck_job_greatest_of(const ck_job *j, const char *uid, const char *counter);
uint64_t ck_job_rows_into(const ck_job *j, const char *uid); /* rows that came to an operator, likewise */
/* Of an ended job: the keys its records had, over the subtasks of a source in this process. false: it has read no
 * records with keys. spelled is the job's. */
bool ck_job_keys_of(const ck_job *j, const char *uid, ck_keys_note *out);

/* What the watermark of the whole job waits for: of all sources' splits the one that is furthest behind. */
typedef struct ck_job_watermark {
    const char *source;   /* uid of its source */
    ck_clock_note note;   /* of the source's subtask; holder NULL: all its splits are idle */
    uint32_t idle_splits; /* of all sources */
    int64_t idle_empty_us;
    int64_t now_us;                                              /* monotonic: what the _empty_us are compared with */
    char holder[CK_CLOCK_NAME_BYTES], idle[CK_CLOCK_NAME_BYTES]; /* idle: of the splits that are it, the longest so */
} ck_job_watermark;
bool ck_job_watermark_now(ck_job *j, ck_job_watermark *out); /* false: no source has event time, or all have ended */

#endif
