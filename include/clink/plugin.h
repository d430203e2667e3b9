/* clink plugins: functions, aggregate functions, operators, sources, sinks and whole jobs in a shared library of your
 * own, in C or C++ (docs/plugins.md). Pure C; nothing is linked: the engine hands the plugin what it needs.
 *
 *     static const clink_function *const functions[] = {&initials, NULL};
 *     static const clink_plugin table = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI,
 *                                        .name = "names", .version = "1.0", .functions = functions};
 *     CLINK_PLUGIN(table)
 *
 *     cc -shared -fPIC -o names.so names.c        clink run --plugin names.so job.sql
 *
 * The ABI only grows at the end: every struct that crosses begins with its size, and what its maker did not know of is
 * taken as zero. A plugin made for another CLINK_PLUGIN_ABI is refused before a line of it runs.
 *
 * Data comes in columns of up to 4,096 rows, and a call is about a batch: nothing is called once a row. Threads: the
 * instances of a function or operator (one a subtask) are each used by one thread at a time, and several at once; what
 * is shared between them is yours to guard. No call may block, and none may throw. */
#ifndef CLINK_PLUGIN_H
#define CLINK_PLUGIN_H

#include "plugin_connectors.h"
#include "plugin_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scalar functions ---- */

typedef enum clink_function_flags {
    CLINK_SEES_NULLS = 1,  /* is called for rows with NULL arguments too; without it such a row is NULL by itself */
    CLINK_GIVES_NULLS = 2, /* may give NULL though no argument is */
    CLINK_FAILS = 4,       /* may call clink_fail_row */
    CLINK_VOLATILE = 8     /* gives another value each time, for the same arguments */
} clink_function_flags;

/* One call: `rows` of the arguments, to be written to the same rows of `out`. */
struct clink_call {
    uint32_t struct_bytes;
    uint32_t argument_count;
    const clink_column *const *arguments;
    const clink_rows *rows;
    clink_writer *out;
    void *state; /* what open made */
    clink_error *error;
    uint32_t failed_row; /* set it beside a failure that is of one row; UINT32_MAX at first */
    int32_t reserved;
    void *inside; /* the engine's */
};

typedef struct clink_function {
    uint32_t struct_bytes;
    uint32_t flags;        /* clink_function_flags */
    const char *name;      /* as SQL calls it, in any case; not one that is built in */
    const char *arguments; /* SQL types: "VARCHAR, DECIMAL(10,2)"; "": none. Several of one name are overloads. */
    const char *returns;   /* an SQL type */
    /* CLINK_OK: every row of call->rows is written. Else the job fails, with call->error. */
    clink_status (*call)(clink_call *call);
    /* Optional: once an instance. After a failure close is not called. */
    clink_status (*open)(void **state, clink_error *error);
    void (*close)(void *state);
    const char *summary; /* one sentence; may be NULL */
} clink_function;

/* The value of this row cannot be computed: NULL under SET on_eval_error = null, otherwise the job fails with the
 * function, the arguments and this text, if the row comes to anything. The function goes on. */
static inline void clink_fail_row(clink_call *call, uint32_t row, const char *text) {
    call->out->engine->mark(call, row, text);
}

/* ---- aggregate functions ---- */

typedef struct clink_aggregate {
    uint32_t struct_bytes;
    uint32_t state_count;
    const char *name;
    const char *argument; /* an SQL type; NULL: none, called as NAME(*). NULL values are left out. */
    const char *returns;  /* an SQL type; NULL is among its values */
    /* BOOLEAN, BIGINT, DOUBLE, VARCHAR or BYTES; zero, false or empty at first. It is in checkpoints: names and types
     * stay as they are, or are migrated. */
    const clink_field *state;
    /* Value i of the batch is row at[i] of `values` (at NULL: row i; values NULL: no argument) and goes into group i.
     * weights NULL: all are added; otherwise -1 takes a value back that was added before. */
    clink_status (*add)(const clink_groups *g, const clink_column *values, const uint16_t *at, const int8_t *weights,
                        clink_error *error);
    /* The state of group i of `from` is added to group i of `to` (session windows, HOP). NULL: not possible, and such
     * queries are refused. */
    clink_status (*merge)(const clink_groups *to, const clink_groups *from, clink_error *error);
    /* The result of group i to row i of out. */
    clink_status (*result)(const clink_groups *g, clink_writer *out, clink_error *error);
    int32_t takes_back;  /* add knows weights of -1; otherwise input that changes is refused */
    const char *summary; /* one sentence; may be NULL */
} clink_aggregate;

/* ---- jobs ---- */

/* A job is put together of SQL and operators:
 *
 *     clink_define(b, "CREATE TABLE readings (...) WITH (...); CREATE TABLE alerts (...) WITH (...)");
 *     clink_insert(clink_process(clink_key_by(clink_query(b, "SELECT device, ts, value FROM readings"), "device"),
 *                                "quiet-devices", "quiet", "{\"after_s\":60}"),
 *                  "alerts");
 *
 * The first thing that is wrong is kept and said when the job is built: nothing here need be checked. uid names the
 * operator in checkpoints: its state is found again by it, whatever else changes. */
struct clink_job_builder {
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
struct clink_stream {
    clink_job_builder *builder;
    void *inside; /* the engine's */
};
/* Statements that define tables, views and functions, and SET. */
static inline void clink_define(clink_job_builder *b, const char *sql) { b->engine->define(b, sql); }
/* The rows of a query, which do not change once they have come. */
static inline clink_stream *clink_query(clink_job_builder *b, const char *sql) { return b->engine->query(b, sql); }
/* Rows that are equal in these columns go to one subtask, and have state and timers of their own: "device, port". */
static inline clink_stream *clink_key_by(clink_stream *s, const char *columns) {
    return s->builder->engine->key_by(s, columns);
}
/* Through the operator of this name, of any plugin that is loaded. */
static inline clink_stream *clink_process(clink_stream *s, const char *uid, const char *operator_name,
                                          const char *parameters) {
    return s->builder->engine->process(&s, 1, uid, operator_name, parameters);
}
static inline clink_stream *clink_process_all(clink_stream *const *inputs, uint32_t count, const char *uid,
                                              const char *operator_name, const char *parameters) {
    return inputs[0]->builder->engine->process(inputs, count, uid, operator_name, parameters);
}
/* A side output of what clink_process gave. */
static inline clink_stream *clink_side(clink_stream *s, uint32_t port) { return s->builder->engine->side(s, port); }
/* INSERT INTO table SELECT * FROM the stream: columns in their order. */
static inline void clink_insert(clink_stream *s, const char *table) { s->builder->engine->insert(s, table); }

typedef struct clink_job_description {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *name; /* of the job, unless --name says otherwise */
    clink_status (*build)(clink_job_builder *b, clink_error *error);
    const char *summary; /* one sentence; may be NULL */
} clink_job_description;

/* ---- state of earlier versions ---- */

/* Where a migrated value goes. */
typedef struct clink_migrated {
    clink_status (*append)(struct clink_migrated *to, const void *p, size_t n);
    void *inside; /* the engine's */
} clink_migrated;

/* One step of a state's type to a later version. Steps are put together: 1 to 2 and 2 to 3 lead from 1 to 3. A job
 * whose state no chain of steps reaches does not start. A value is the packed fields of an entry, without the key of a
 * MAP (docs/formats.md, "Value"): a byte of NULL bits for every eight fields where some field is VARCHAR or BYTES, then
 * BOOLEANs as a byte and BIGINTs and DOUBLEs as eight bytes, little-endian, then each text that is not NULL with its
 * length in four bytes in front. */
typedef struct clink_migration {
    uint32_t struct_bytes;
    uint32_t from, to;
    uint32_t reserved;
    const char *state_type; /* clink_state.type, or its name */
    clink_status (*step)(clink_bytes value, clink_migrated *to, clink_error *error);
} clink_migration;

/* What had another name: a type of state, or the slot of one. */
typedef struct clink_rename {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *state_type;
    const char *slot; /* as it is called now; NULL: the type has another name */
    const char *from; /* as it was called */
} clink_rename;

/* ---- the plugin itself ---- */

typedef struct clink_plugin {
    uint32_t struct_bytes;
    uint32_t abi; /* CLINK_PLUGIN_ABI */
    const char *name, *version;
    const clink_function *const *functions; /* each list ends with NULL; NULL: none */
    const clink_aggregate *const *aggregates;
    const clink_operator *const *operators;
    const clink_job_description *const *jobs; /* `clink run --job` runs the first */
    const clink_migration *const *migrations;
    const clink_rename *const *renames;
    const clink_connector *const *connectors;
} clink_plugin;

/* Says what a plugin is made for, where it can be read without loading it: an ELF note "clink" of type 1. */
typedef struct clink_plugin_note {
    uint32_t name_bytes, note_bytes, type;
    char name[8];
    uint32_t abi, table_bytes;
} clink_plugin_note;

#ifdef __cplusplus
#define CLINK_EXPORT_C extern "C"
#else
#define CLINK_EXPORT_C
#endif

/* Once in a plugin. */
#define CLINK_PLUGIN(table)                                                                                            \
    __attribute__((section(".note.clink"), used, aligned(4))) static const clink_plugin_note clink_plugin_note_ = {    \
        6, 8, 1, {'c', 'l', 'i', 'n', 'k', 0, 0, 0}, CLINK_PLUGIN_ABI, (uint32_t)sizeof(clink_plugin)};                \
    CLINK_EXPORT_C CLINK_API const clink_plugin *clink_plugin_table(void);                                             \
    CLINK_EXPORT_C CLINK_API const clink_plugin *clink_plugin_table(void) { return &(table); }

#ifdef __cplusplus
}
#endif

#endif
