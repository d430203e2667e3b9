/* Connectors of plugins: sources and sinks of tables. A part of plugin.h, which says how it is used.
 *
 * CREATE TABLE t (...) WITH (connector = 'name', ...) makes a table of a plugin's connector. What is called here is
 * called on a thread for input and output, one call at a time for an instance: it may wait for a disk or a server, but
 * ends in bounded time - a second or so - since nothing of the job can stop before it has. */
#ifndef CLINK_PLUGIN_CONNECTORS_H
#define CLINK_PLUGIN_CONNECTORS_H

#include "plugin_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An option of WITH. The list ends with a name of NULL. */
typedef struct clink_option {
    const char *name;     /* in lower case: "path"; "fields.*.min": the star is a column's name */
    const char *values;   /* "text", "integer", "boolean", "path", "a|b|c" */
    const char *fallback; /* what it is where it is not given; NULL: nothing */
    const char *help;     /* one sentence */
} clink_option;

/* A table as it was declared. */
typedef struct clink_table {
    uint32_t struct_bytes;
    uint32_t column_count;
    const char *name;
    const clink_field *columns; /* "BIGINT NOT NULL" */
    const uint32_t *key;        /* columns of the PRIMARY KEY */
    uint32_t key_count;
    uint32_t option_count;
    const char *const
        *option_names; /* given, or with a fallback. ${env:...} and ${file:...} are resolved, but in check */
    const char *const *option_values;
} clink_table;
/* NULL: it is not given and has no fallback. */
static inline const char *clink_table_option(const clink_table *t, const char *name) {
    uint32_t i;
    for (i = 0; i < t->option_count; i++)
        if (strcmp(t->option_names[i], name) == 0) return t->option_values[i];
    return NULL;
}

/* Parts of a source's input, each read by one subtask at a time: a file, a partition, a range of keys. An id is unique
 * in the table and the same whenever the job starts. position: where reading begins, in whatever way the source says
 * it, up to 64 KiB; it is kept in checkpoints. */
struct clink_splits {
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline clink_status clink_add_split(clink_splits *to, const char *id, const void *position, size_t n) {
    return to->engine->add_split(to, id, position, n);
}

/* How an instance of a source begins: one a subtask. The table is valid until close. */
typedef struct clink_source_start {
    uint32_t struct_bytes;
    uint32_t subtask, parallelism;
    uint32_t batch_rows; /* how many rows a call of read gives, about */
    const clink_table *table;
    const char *uid;
    const uint8_t *wanted; /* by column: 0: nobody looks at it, whatever is in it */
} clink_source_start;

/* A split as it is handed to a subtask: at its first position, or at a restart where the checkpoint has it. */
typedef struct clink_split {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *id;
    clink_bytes position;
} clink_split;

typedef enum clink_then {
    CLINK_READ_ON = 0,   /* there is more */
    CLINK_READ_WAIT = 1, /* there is nothing now: again after wait_us */
    CLINK_READ_END = 2   /* the split is finished */
} clink_then;

/* One call of read: some rows of one split, up to out->capacity or a few times as many. With clink_set_position it says
 * where the next call goes on. Rows and position count together, when the call has returned CLINK_OK: a checkpoint has
 * both or none. */
struct clink_read {
    uint32_t struct_bytes;
    int32_t then; /* clink_then */
    void *self;   /* what open made */
    void *split;  /* what open_split made */
    clink_emitter *out;
    int64_t wait_us; /* READ_WAIT: 10 ms at first */
    /* To be set where the source knows more than its rows say: no row older than this comes from the split any more.
     * INT64_MIN at first. It counts where the table has a WATERMARK. */
    int64_t watermark_us;
    clink_error *error;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline clink_status clink_set_position(clink_read *r, const void *position, size_t n) {
    return r->engine->set_position(r, position, n);
}

typedef struct clink_source {
    uint32_t struct_bytes;
    uint32_t reserved;
    /* Optional: the table never ends. Looked at when a query is planned; NULL: every table ends. */
    int32_t (*endless)(const clink_table *t);
    /* The splits as they are now, asked once when a job starts, not by a subtask. At a restart those of a table that
     * ends are what they were; of an endless one the new ones are added. */
    clink_status (*splits)(const clink_table *t, uint32_t parallelism, clink_splits *out, clink_error *error);
    clink_status (*open)(void **self, const clink_source_start *start, clink_error *error);          /* optional */
    clink_status (*open_split)(void **split, void *self, const clink_split *at, clink_error *error); /* optional */
    clink_status (*read)(clink_read *r);
    void (*close_split)(void *split); /* optional */
    void (*close)(void *self);        /* optional */
    /* Optional: a checkpoint is complete, its sinks have committed it, and no restart of the job goes back before it:
     * what the splits say of rows before `at` may go at their origin (a queue's acknowledgement). `at` has the splits of
     * this instance with the positions that the checkpoint holds. Called between two calls of read. After a crash it may
     * not have come, or come again for what it said before; what comes behind the end of a table that ends may not be
     * said at all. Anything but CLINK_OK fails the job. */
    clink_status (*committed)(void *self, uint64_t checkpoint, const clink_split *at, uint32_t count,
                              clink_error *error);
} clink_source;

typedef enum clink_sink_flags {
    CLINK_TAKES_CHANGES = 1, /* rows of weight -1 take back an equal row that was written */
    CLINK_TAKES_UPSERTS = 2  /* tables with a PRIMARY KEY: a row replaces the one of its key, weight -1 removes it */
} clink_sink_flags;

/* How an instance of a sink begins: one a subtask. The table is valid until close. */
typedef struct clink_sink_start {
    uint32_t struct_bytes;
    uint32_t subtask, parallelism;
    uint32_t reserved;
    const clink_table *table;
    const char *job; /* UUID of the job, the same after every restart; "": there are no checkpoints */
    const char *uid;
} clink_sink_start;

/* What is prepared: bytes that say to commit what it has to make seen, up to 1 MiB each and 64 MiB together. */
struct clink_prepared {
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline clink_status clink_add_committable(clink_prepared *to, const void *p, size_t n) {
    return to->engine->add_committable(to, p, n);
}

typedef struct clink_committable {
    uint32_t struct_bytes;
    uint32_t reserved;
    uint64_t checkpoint; /* the first that carries it; 0: there are no checkpoints */
    clink_bytes bytes;
} clink_committable;

/* After a restart. */
typedef struct clink_abort {
    uint32_t struct_bytes;
    int32_t allow_duplicates; /* the user has said that output newer than the restored checkpoint may stay */
    uint64_t restored;        /* the checkpoint; 0: none, the job begins */
    const char *job;
    const clink_committable *keep; /* what the restored checkpoint carries; it is committed */
    uint32_t keep_count;
} clink_abort;

/* A sink writes and flushes, which makes every row appear at least once; or it prepares and commits, which makes it
 * appear exactly once:
 *
 *   write ... write -> barrier: prepare -> committables are in the checkpoint -> it is complete -> commit each
 *
 * A job that was killed goes on from its last checkpoint: what that carries is committed - perhaps again - and what was
 * prepared beside it is aborted. Without checkpoints prepare and commit follow each other, once a second and at the
 * end. Commits are done by one instance for all subtasks. */
typedef struct clink_sink {
    uint32_t struct_bytes;
    uint32_t flags;                                                                       /* clink_sink_flags */
    clink_status (*open)(void **self, const clink_sink_start *start, clink_error *error); /* optional */
    /* Columns as the table has them. */
    clink_status (*write)(void *self, const clink_batch *batch, clink_error *error);
    /* All that was written is safe in the outside: before each checkpoint and at the end. One of flush and prepare. */
    clink_status (*flush)(void *self, clink_error *error);
    /* All that was written since the last call is safe, whatever happens, but not seen by anybody. */
    clink_status (*prepare)(void *self, uint64_t checkpoint, clink_prepared *out, clink_error *error);
    void (*close)(void *self); /* optional */
    /* ---- with prepare ---- */
    clink_status (*open_committer)(void **self, const clink_sink_start *start, clink_error *error); /* optional */
    /* Makes it seen. It may have been done before, wholly or in part: that is seen by looking, and is CLINK_OK. */
    clink_status (*commit)(void *self, const clink_committable *c, clink_error *error);
    /* Undoes what this job has prepared for this sink and is not kept. Before anything is written. */
    clink_status (*abort_others)(void *self, const clink_abort *a, clink_error *error);
    void (*close_committer)(void *self); /* optional */
} clink_sink;

typedef struct clink_connector {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *name;            /* lower case, not one that is built in */
    const clink_option *options; /* NULL: none */
    const clink_source *source;  /* NULL: its tables are not read */
    const clink_sink *sink;      /* NULL: nor written */
    /* Optional: what may be wrong with options and columns, when the table is made or read or written. Blocks not. Say
     * "option 'path' ...": the place is found by it. */
    clink_status (*check)(const clink_table *t, int32_t as_sink, clink_error *error);
    const char *summary; /* one sentence; may be NULL */
} clink_connector;

#ifdef __cplusplus
}
#endif

#endif
