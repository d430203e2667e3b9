/* SQL text to job graphs. A script is parsed, its statements bound against a catalog, planned, optimised and lowered.
 * Errors carry line, column and a caret under the text, with did-you-mean and, where there is one, a rewrite. Blocking
 * only where a catalog directory is read or written. One thread per catalog. */
#ifndef CK_SQL_COMPILE_H
#define CK_SQL_COMPILE_H

#include "graph/graph.h"
#include "plugin/registry.h"

/* Tables and views of a session, plus its SET values. */
typedef struct ck_catalog ck_catalog;
CK_NODISCARD ck_status ck_catalog_new(ck_proc *proc, const ck_registry *registry, ck_catalog **out, ck_error *err);
void ck_catalog_free(ck_catalog *c);
/* Told of each table in memory that is gone for good, by its instance (the option ".instance" of its operators). */
void ck_catalog_on_forget(ck_catalog *c, void (*forget)(void *arg, const char *instance), void *arg);
/* Where relative paths in options begin, for a catalog that outlives the process: a table keeps them absolute. The text
 * outlives the catalog. NULL (at first): they stay as they are written. */
void ck_catalog_set_base(ck_catalog *c, const char *dir);
/* SET key = value, from the command line; unknown keys and bad values are CK_INVALID. */
CK_NODISCARD ck_status ck_catalog_set(ck_catalog *c, ck_view key, ck_view value, ck_error *err);

/* A catalog as text and back (catalog/catalog_text.c). Loading takes the statements in whatever order they hold;
 * nothing but definitions may stand there. `scratch` is needed during the call only. */
CK_NODISCARD ck_status ck_catalog_print(const ck_catalog *c, ck_bytes *out);
CK_NODISCARD ck_status ck_catalog_check_version(ck_view text, ck_error *err);
CK_NODISCARD ck_status ck_catalog_load(ck_catalog *c, ck_view text, const char *name, ck_arena *scratch, ck_error *err);

typedef struct ck_sql_options {
    const char *source_name; /* for messages: "orders.sql", "-e" */
    const char *job_name;
    uint32_t parallelism;
    uint32_t key_groups;
    bool full_explain;         /* EXPLAIN says of sources what they wait for */
    bool changes;              /* --changes: bounded operators are not final, every change comes out */
    bool checkpoints;          /* a directory is given: guarantees are judged with it */
    bool one_job;              /* run, submit: the script is one job (decisions 16); else statement by statement */
    const char *result_sink;   /* operator type for a bare SELECT: "sink.print", "sink.collect" */
    const char *result_params; /* its parameters, JSON */
    /* Called when the script has compiled, before its changes of the catalog stay: a failure takes them back. NULL:
     * none.
     */
    ck_status (*before_commit)(void *arg, const ck_catalog *c, ck_error *err);
    void *before_commit_arg;
    /* Only what reads this table is run, and it is read from the file replay_path, where a record that does not fit
     * fails the job. NULL: everything as written. */
    const char *replay_table, *replay_path;
} ck_sql_options;

typedef enum ck_sql_step_kind {
    CK_SQL_JOB,  /* run graph */
    CK_SQL_TEXT, /* print text: EXPLAIN, SHOW, DESCRIBE */
} ck_sql_step_kind;

typedef struct ck_sql_step {
    ck_sql_step_kind kind;
    const ck_graph *graph;
    uint32_t batch_rows; /* SET batch_rows; 0 = default. For ck_job_config. */
    int64_t flush_us;    /* SET flush_ms; 0 = default */
    bool bounded;        /* every source ends */
    bool has_result;     /* a bare SELECT: rows come to the result sink */
    const ck_schema *result_schema;
    ck_edge_mode result_mode; /* append or retract */
    const uint32_t *result_key;
    uint32_t result_key_count;
    const char *guarantee;         /* one sentence: of the weakest */
    const char *const *guarantees; /* one sentence for each sink, its table's name in front */
    uint32_t guarantee_count;
    const char *const *warnings; /* growing state and the like */
    uint32_t warning_count;
    const char *text;
    /* EXPLAIN of the job, always made: operators, edge modes, boundedness, state, guarantee. */
    const char *explain;
} ck_sql_step;

typedef struct ck_sql_plan {
    ck_sql_step *steps;
    uint32_t step_count;
} ck_sql_plan;

/* Everything of *out lives in `arena`. Statements before an error have changed the catalog only if !one_job. */
CK_NODISCARD ck_status ck_sql_compile(ck_catalog *c, ck_view text, const ck_sql_options *o, ck_arena *arena,
                                      ck_sql_plan **out, ck_error *err);

#endif
