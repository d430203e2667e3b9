/* clink: the embedding interface. A C ABI that only grows at the end: every struct the caller fills begins with its
 * size, every handle is opaque, whoever allocates frees. Link with -lclink.
 *
 * Threads: an engine may be used from several threads at once except for clink_close; a job handle likewise except for
 * clink_job_free. The library starts its own threads with all signals blocked and installs no signal handlers. */
#ifndef CLINK_CLINK_H
#define CLINK_CLINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CLINK_API __attribute__((visibility("default")))
#else
#define CLINK_API
#endif

#define CLINK_ABI_VERSION 1

/* Status codes. Everything but CLINK_OK and CLINK_TIMEOUT comes with an error text. */
typedef enum clink_status {
    CLINK_OK = 0,
    CLINK_TIMEOUT = 1,   /* clink_job_wait: still running */
    CLINK_INVALID = 2,   /* the request is wrong: SQL, option, argument */
    CLINK_REFUSED = 3,   /* understood, not done: used directory, incompatible state, unsafe sink */
    CLINK_DATA = 4,      /* a record that does not fit its table */
    CLINK_IO = 5,        /* the operating system or a server said no */
    CLINK_NOMEM = 6,     /* memory or the memory limit is spent */
    CLINK_CORRUPT = 7,   /* stored bytes that do not check out */
    CLINK_CANCELLED = 8, /* the job was cancelled */
    CLINK_FAILED = 9,    /* anything else */
} clink_status;

/* Filled on failure; owned by the caller, may be NULL everywhere. */
typedef struct clink_error {
    clink_status status;
    int32_t retriable;    /* the same call may succeed later */
    int64_t line, column; /* in SQL text or input, 0 = none */
    int64_t byte_offset;  /* in input, -1 = none */
    char message[2048];   /* one sentence; SQL errors add the line and a caret below it */
} clink_error;

typedef struct clink_engine clink_engine;
typedef struct clink_job clink_job;

/* Zero every member you do not set; struct_bytes = sizeof(clink_options). */
typedef struct clink_options {
    size_t struct_bytes;
    uint32_t threads;      /* steps; 0 = cores */
    uint64_t memory_bytes; /* per job, of a worker's (cluster.h) together; 0 = from the cgroup or the machine */
    int32_t log_level;     /* 0 default (warnings), 1 debug, 2 info, 3 warn, 4 error, 5 off */
    void (*log)(void *arg, int32_t level, const char *line); /* NULL = stderr */
    void *log_arg;
    const char *catalog_dir; /* tables, views and functions are kept there; NULL: they end with the engine */
    /* Shared libraries with functions and jobs of your own (plugin.h), paths ended by NULL; NULL: none. */
    const char *const *plugins;
} clink_options;

CLINK_API uint32_t clink_abi_version(void);
CLINK_API const char *clink_version(void);

/* options may be NULL. */
CLINK_API clink_status clink_open(const clink_options *options, clink_engine **out, clink_error *error);
/* Cancels and frees jobs that are left. NULL is fine. */
CLINK_API void clink_close(clink_engine *engine);

/* SET for the engine's session: "timezone", "batch_rows", "on_eval_error" ... */
CLINK_API clink_status clink_set(clink_engine *engine, const char *key, const char *value, clink_error *error);

typedef enum clink_output {
    CLINK_OUTPUT_STREAM = 0,
    CLINK_OUTPUT_NDJSON = 1,
    CLINK_OUTPUT_CSV = 2,
    CLINK_OUTPUT_TABLE = 3
} clink_output;
typedef enum clink_changes { CLINK_CHANGES_FINAL = 0, CLINK_CHANGES_PREFIX = 1, CLINK_CHANGES_FIELD = 2 } clink_changes;

/* Where barriers are held up: wait; overtake what is under way and store it; the first until a checkpoint stalls. */
typedef enum clink_alignment { CLINK_ALIGNED = 0, CLINK_UNALIGNED = 1, CLINK_ADAPTIVE = 2 } clink_alignment;
/* Changelog backends: a checkpoint writes what changed; all rows are written in the checkpoint that is due, or beside
 * the checkpoints. */
typedef enum clink_added_state {
    CLINK_ADDED_REFUSED,
    CLINK_ADDED_FROM_NOW, /* it begins empty: it is of the rows behind the checkpoint alone, and a warning says so */
    CLINK_ADDED_BACKFILL  /* its input is read again up to the checkpoint before the job starts; refused where that
                             would not give what was there */
} clink_added_state;
typedef enum clink_changelog {
    CLINK_NO_CHANGELOG,
    CLINK_MATERIALISE_AUTO, /* INSIDE; with rocksdb EXTERNAL */
    CLINK_MATERIALISE_INSIDE,
    CLINK_MATERIALISE_EXTERNAL
} clink_changelog;

/* How a script is run. Zero is a good default; struct_bytes = sizeof(clink_run). */
typedef struct clink_run {
    size_t struct_bytes;
    const char *name;        /* job name; NULL = from source_name */
    const char *source_name; /* for messages; NULL = "sql" */
    uint32_t parallelism;    /* 0 = 1 */
    uint32_t key_groups;     /* 0 = 128 */
    /* Rows of a bare SELECT: STREAM = read with clink_job_stream; NDJSON, CSV, TABLE = written to fd by the engine
     * (TABLE from within clink_job_wait). */
    clink_output output;
    int32_t fd;
    clink_changes changes;                /* FINAL: bounded queries give the result once; else every change */
    const char *checkpoint_dir;           /* NULL = none */
    int64_t checkpoint_interval_ms;       /* 0 = 10000 */
    int64_t checkpoint_timeout_ms;        /* 0 = 600000 */
    int64_t final_checkpoint_timeout_ms;  /* 0 = 300000 */
    int32_t tolerable_failed_checkpoints; /* 0 = 3, -1 unlimited */
    int32_t checkpoint_retained;          /* 0 = 3 */
    const char *restore;                  /* "latest", "N", "DIR[:N]"; NULL = by itself */
    int32_t fresh, allow_duplicates;
    /* Runs only what reads this table, and reads it from the file replay_path, which holds records as the table's own
     * files do; one that does not fit fails the job. NULL = everything as written. */
    const char *replay_table, *replay_path;
    const char *savepoint_dir; /* where savepoints are kept too, complete by themselves; NULL: in checkpoint_dir only */
    /* Return as soon as the script has compiled: what is found (restoring, looking for files) and what fails before
     * the first row is clink_job_wait's to say, and the job can be cancelled meanwhile. */
    int32_t background;
    clink_alignment alignment;
    int64_t alignment_stall_ms; /* CLINK_ADAPTIVE; 0 = 1000 */
    const char *spill_dir; /* state that would fill the job's memory_bytes goes to a file here; NULL: it is refused */
    /* A script other than the checkpoint's goes on where that would lose state or compute something else over it too.
     */
    int32_t allow_semantic_change;
    int32_t rocksdb; /* with spill_dir: by rows into a RocksDB there, and only what cannot go there to a file */
    clink_changelog changelog;     /* checkpoints are segments of a changelog; where all rows go once in so many */
    int32_t materialisation_every; /* so many checkpoints, 1 to 1000; 0 = 10 */
    clink_added_state added_state; /* what a changed script computes that the checkpoint has not */
    /* The job of this name that a plugin has (clink_options.plugins), in place of sql, which is then empty; "": the
     * first there is. NULL: sql. */
    const char *plugin_job;
} clink_run;

/* An argument that must be there and is NULL is CLINK_INVALID; calls on no job (*job is NULL) do nothing or say so. */
/* Where a table of a script (on_error = 'dead_letter') puts records that do not fit: the name of that table, freed with
 * clink_free. *header: the table's files begin with a record that names the columns. The script's tables and views are
 * made in the engine's session; nothing runs. run may be NULL. */
CLINK_API clink_status clink_dead_letter_table(clink_engine *engine, const char *sql, const clink_run *run,
                                               const char *table, char **letters, int32_t *header, clink_error *error);

/* The directory that dead letter table's files are in, freed with clink_free; NULL when they are in none. After
 * clink_dead_letter_table, in the same session. */
CLINK_API clink_status clink_dead_letter_path(clink_engine *engine, const char *letters, char **path,
                                              clink_error *error);

/* Runs all statements of a script. DDL takes effect in the engine's session; INSERTs and SELECTs become one job
 * (several where a statement reads what an earlier one writes). *job is the running job, NULL when there was nothing to
 * run. Text that statements print (EXPLAIN, SHOW) is kept on the job, and written to fd before the first row
 * unless rows are read as a stream. run may be NULL. */
CLINK_API clink_status clink_execute(clink_engine *engine, const char *sql, const clink_run *run, clink_job **job,
                                     clink_error *error);
/* The plan of a script, not run. *text is freed with clink_free. */
CLINK_API clink_status clink_explain(clink_engine *engine, const char *sql, const clink_run *run, char **text,
                                     clink_error *error);
/* What would become of the operators of the checkpoint this run would start from (checkpoint_dir, restore): a line
 * each, freed with clink_free. Nothing is run, locked or written. */
typedef enum clink_restore_verdict {
    CLINK_RESTORE_WHOLE = 0,   /* all state goes on, as it is or migrated */
    CLINK_RESTORE_REFUSED = 3, /* not without allow_semantic_change */
    CLINK_RESTORE_PARTS = 4,   /* some is rebuilt or dropped */
} clink_restore_verdict;
CLINK_API clink_status clink_explain_restore(clink_engine *engine, const char *sql, const clink_run *run, char **text,
                                             clink_restore_verdict *verdict, clink_error *error);
/* What a snapshot file, a checkpoint directory (DIR: its newest; DIR:N) or a manifest holds: entries, operators, versions;
 * with `expected` (a script, a job graph in a file that ends in .json, or in .so a plugin that the engine has) also whether that job could go on from it. *text
 * is freed with clink_free; json: one object. Every file is read and checked. CLINK_OK: *verdict is COMPATIBLE or
 * INCOMPATIBLE. Otherwise it says what could not be read: UNREADABLE the savepoint, NO_JOB the expected job. */
typedef enum clink_savepoint_verdict {
    CLINK_SAVEPOINT_COMPATIBLE = 0,
    CLINK_SAVEPOINT_UNREADABLE = 1,
    CLINK_SAVEPOINT_NO_JOB = 2,
    CLINK_SAVEPOINT_INCOMPATIBLE = 3,
} clink_savepoint_verdict;
CLINK_API clink_status clink_check_savepoint(clink_engine *engine, const char *path, const char *expected, int32_t json,
                                             char **text, clink_savepoint_verdict *verdict, clink_error *error);
/* The same for a job that would be started like this: of run its name and added_state count. The savepoint of a job of
 * another name is INCOMPATIBLE; no name: of any. Both are about checkpoints: of a snapshot file by itself NO_JOB. */
CLINK_API clink_status clink_check_savepoint_for(clink_engine *engine, const char *path, const char *expected,
                                                 const clink_run *run, int32_t json, char **text,
                                                 clink_savepoint_verdict *verdict, clink_error *error);
CLINK_API void clink_free(void *p);

/* CLINK_OK: finished. CLINK_TIMEOUT after timeout_ms (-1: never). Otherwise how it failed. */
CLINK_API clink_status clink_job_wait(clink_job *job, int64_t timeout_ms, clink_error *error);
CLINK_API void clink_job_cancel(clink_job *job);
CLINK_API void clink_job_free(clink_job *job); /* cancels if it still runs */
CLINK_API const char *clink_job_name(const clink_job *job);
CLINK_API const char *clink_job_text(const clink_job *job);      /* EXPLAIN, SHOW ...; "" when none */
CLINK_API const char *clink_job_guarantee(const clink_job *job); /* one sentence, of the weakest table */
/* One sentence for each table that is written and each printed result, in front of which stands its name: what is
 * promised across restarts, and what limits it. NULL when there is none at i. */
CLINK_API const char *clink_job_guarantee_at(const clink_job *job, size_t i);
/* NULL when there is none at i. */
CLINK_API const char *clink_job_warning(const clink_job *job, size_t i);
/* Whether its first step is under way (or has ended): nothing of it has failed before the first row. */
CLINK_API int32_t clink_job_started(clink_job *job);
/* After clink_job_wait: one sentence for each kind of rows that were left out or put aside, by table. NULL when there
 * is none at i. */
CLINK_API const char *clink_job_note(const clink_job *job, size_t i);
/* After clink_job_wait: its directory held this job, finished; nothing was done. */
CLINK_API int32_t clink_job_was_finished(clink_job *job);
CLINK_API int32_t clink_job_has_result(const clink_job *job); /* a bare SELECT */
/* Rows of it go to a descriptor: those of a bare SELECT that are not read as a stream, or a table of connector 'print'.
 */
CLINK_API int32_t clink_job_prints(const clink_job *job);

/* Rows of a bare SELECT as an Arrow C stream (struct ArrowArrayStream, declared by Arrow's abi.h; utf8 strings).
 * Changing results have a first column "op": "+I", "-U", "+U", "-D". One stream a job; it may outlive the job handle;
 * get_next blocks until rows or the end come and reports the job's failure. A stream that is released early cancels
 * what nobody else reads. */
struct ArrowArrayStream;
CLINK_API clink_status clink_job_stream(clink_job *job, struct ArrowArrayStream *out, clink_error *error);

/* Takes a savepoint and waits for it (a checkpoint directory is required): CLINK_OK means this very one is complete,
 * and stands in savepoint_dir too when there is one. It stays until it is disposed of. timeout_ms -1: for ever;
 * CLINK_TIMEOUT: not in time, and what had not begun never will. checkpoint may be NULL; *checkpoint is 0 unless this
 * very one is complete, which it also is where only savepoint_dir could not take it. */
CLINK_API clink_status clink_job_savepoint(clink_job *job, int64_t timeout_ms, uint64_t *checkpoint,
                                           clink_error *error);
/* The same, and the job ends with it: clink_job_wait then says CLINK_OK. Starting it again goes on from there. It goes
 * on as if nobody had asked where *checkpoint is 0, also where savepoint_dir takes no files. */
CLINK_API clink_status clink_job_stop(clink_job *job, int64_t timeout_ms, uint64_t *checkpoint, clink_error *error);
/* Removes savepoint `checkpoint` of a directory; refused for what is none and for what a job would continue from. */
CLINK_API clink_status clink_savepoint_dispose(clink_engine *engine, const char *dir, uint64_t checkpoint,
                                               clink_error *error);

/* One manifest or one file of a checkpoint; struct_bytes is the library's. damage NULL: it is whole. */
typedef struct clink_verified {
    size_t struct_bytes;
    uint64_t checkpoint, bytes;
    const char *path, *damage; /* borrowed during the call */
    int32_t savepoint;         /* of one; not known of a manifest that is damaged */
} clink_verified;
/* Every file of every checkpoint in dir (checkpoint 0), or of one, against size and checksum. CLINK_OK: *damaged says
 * how many are not whole. A directory with nothing to verify is an error. */
CLINK_API clink_status clink_checkpoint_verify(clink_engine *engine, const char *dir, uint64_t checkpoint,
                                               void (*seen)(void *arg, const clink_verified *file), void *arg,
                                               uint64_t *damaged, clink_error *error);

/* struct_bytes = sizeof(clink_progress). */
typedef struct clink_progress {
    size_t struct_bytes;
    uint64_t rows_in, rows_out, bytes_in, bytes_total, bad_rows;
    uint64_t checkpoints, last_checkpoint, memory_bytes;
    uint64_t late_rows, bad_time_rows; /* dropped by windows: behind their end; without a time */
    uint64_t dead_letters;             /* of bad_rows: put into a table */
    uint64_t restored;                 /* the checkpoint the job goes on from; 0: it began anew, or had finished */
    /* sources that follow something (a Kafka topic), while the job runs: records that are there and not read; how old
     * the newest read one is where there are such. -1: no source says */
    int64_t lag_records, lag_ms;
} clink_progress;
CLINK_API void clink_job_progress(clink_job *job, clink_progress *out);
/* What event time waits for while the job runs, as a sentence for a progress line: "watermark held by b.ndjson of bids
 * at 2013-01-01 05:00:00, idle 12 s; idle: a.ndjson for 70 s". Its length, of which at most size - 1 bytes are in text;
 * 0: no source has event time, or all have ended. Thread: any. */
CLINK_API size_t clink_job_watermark(clink_job *job, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
