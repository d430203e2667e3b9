/* Inside the facade: what the opaque handles of clink.h are. Only src/engine includes this. */
#ifndef CK_ENGINE_ENGINE_INT_H
#define CK_ENGINE_ENGINE_INT_H

#include <pthread.h>

#include "base/arena.h"
#include "base/proc.h"
#include "clink/clink.h"
#include "connector/collect/collect.h"
#include "connector/memory/memory.h"
#include "engine/table.h"
#include "os/io.h"
#include "plugin/plugins.h"
#include "plugin/registry.h"
#include "runtime/job.h"
#include "sql/compile.h"

enum { ENGINE_MEMORY_BYTES_MIN = 1 << 20 }; /* what a job, or a subtask elsewhere, begins with */

struct clink_engine {
    ck_proc proc;
    ck_faults faults;
    ck_log log;
    void (*user_log)(void *arg, int32_t level, const char *line);
    void *user_log_arg;
    ck_arena arena; /* registry */
    ck_registry registry;
    ck_plugins plugins;
    ck_scheduler *scheduler;
    size_t memory_bytes;  /* per job; 0 = none */
    size_t memory_asked;  /* the same as it was given; 0: it was not */
    pthread_mutex_t lock; /* guards catalog and jobs */
    ck_catalog *catalog;
    const char *catalog_path, *catalog_lock; /* NULL: the catalog ends with the engine */
    uint64_t catalog_mark;                   /* of the file as we know it */
    ck_memory_store *memory;                 /* rows of tables without a connector */
    clink_job *jobs;                         /* of this engine, newest first */
};

/* Work on the I/O executor after a step's end. Not part of the job: the executor still touches it when the job may be
 * gone. */
typedef struct engine_advance {
    ck_io_job io;
    clink_job *job;
} engine_advance;

/* One script under way: its steps run one after the other; the next starts when the one before has finished. */
struct clink_job {
    clink_engine *engine;
    clink_job *next, **prev_link; /* engine->lock */
    ck_arena arena;               /* plan and copies of the run options */
    ck_sql_plan *plan;
    clink_run run;
    char *text;                   /* of TEXT steps; in the arena */
    ck_collector **collectors;    /* one per step that has a result and does not print, else NULL */
    ck_job_outputs outputs;       /* of the current step */
    uint32_t step;                /* current; touched only by whoever advances the job */
    uint32_t streams_taken;       /* steps before it have been given out as streams or printed as tables */
    ck_table_view table;          /* TABLE: of step streams_taken */
    bool table_open, table_begun; /* the second: some of it is on the screen */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    ck_job *running; /* of the current step */
    engine_advance *advance;
    uint32_t savepoints; /* calls inside running */
    bool step_ended, cancelled, ended, was_finished, started;
    bool stopped;       /* by a savepoint: no further step */
    const char **notes; /* in the arena; see engine_note_step */
    uint32_t note_count;
    ck_status status;
    ck_error error;
    ck_job_progress last_progress; /* of the last step that ended */
};

/* ck_error to clink_error; returns the code. */
clink_status engine_error(ck_status s, const ck_error *from, clink_error *to);
/* CLINK_INVALID: an argument that must be there is not. */
clink_status engine_refuse_null(const char *what, clink_error *error);
/* A caller's clink_run, perhaps of an older header, as this build's; NULL: all defaults. Texts stay the caller's. */
CK_NODISCARD ck_status engine_take_run(const clink_run *from, clink_run *to, ck_error *err);
/* A script compiled and not run; free it with clink_job_free. */
CK_NODISCARD ck_status engine_compile(clink_engine *e, const char *sql, const clink_run *run, clink_job **out,
                                      ck_error *err);
/* A job with nothing in it, which has ended; NULL without memory. Free it with clink_job_free. */
clink_job *engine_job_new(clink_engine *e);
/* Plugins by their files, ended by NULL, while nothing runs. */
CK_NODISCARD ck_status engine_load_plugins(clink_engine *e, const char *const *paths, ck_error *err);
/* Everything the binary has. */
ck_status engine_register_builtins(ck_registry *r, ck_error *err);
/* Runs the job's steps from the current one on, until one is under way or all have ended. Called with no lock held. */
void engine_job_advance(clink_job *j);
/* The same on the I/O executor, when it comes to it. */
ck_status engine_job_start_later(clink_job *j, ck_error *err);
/* TABLE output: prints what the collectors have until all have ended (CK_OK), *timeout_ms is used up (CK_AGAIN), or
 * nobody reads (CK_CLOSED). A job's failure is left to the caller to see. */
ck_status engine_print_tables(clink_job *j, int64_t *timeout_ms, ck_error *err);
/* Tables kept in a directory: read at the start; written before the changes of a script stay (lock held). */
ck_status engine_catalog_open(clink_engine *e, const char *dir, ck_error *err);
ck_status engine_catalog_save(void *engine, const ck_catalog *c, ck_error *err);
/* What a step that ended left out, into notes. By whoever advances the job. */
ck_status engine_note_step(clink_job *j, ck_job *done, const ck_graph *graph, ck_error *err);
/* An error of a step's operator says which, by the name EXPLAIN gives it. */
void engine_name_operator(const clink_job *j, ck_error *err);
/* One of a start says where its table is defined. */
void engine_place_table(clink_job *j, ck_status s, ck_error *err);
/* What a job's watermark waits for, as clink_job_watermark says it. */
size_t engine_watermark_text(const ck_job_watermark *w, char *text, size_t size);
/* All of it; CK_CLOSED: nobody reads. */
ck_status engine_write(int fd, ck_view text, ck_error *err);

#endif
