/* Testing of one operator, a plugin's job or a whole SQL script, in the test's own thread, under a clock that stands
 * still until it is told to go on. Nothing is random and nothing waits.
 *
 *     clink_test_options o = {.struct_bytes = sizeof o, .plugin = clink_plugin_table(), .operator_name = "quiet",
 *                             .parameters = "60000", .key_by = "device"};
 *     clink_test_open(&o, &t, &error);
 *     clink_test_push(t, "in", "{\"device\":\"a\",\"ts\":\"2024-01-01T00:00:00\"}", &error);
 *     clink_test_watermark(t, "in", at_two_minutes_past, &error);
 *     clink_test_rows(t, "out", &rows, &error);
 *
 * Rows are NDJSON, as tables of format 'json' read and write them. Times are microseconds since 1970 (UTC). Every call
 * works off all that follows from it before it returns. Texts that are given out are valid until the next call. One
 * thread a test. Link with -lclink. */
#ifndef CLINK_TESTING_H
#define CLINK_TESTING_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clink_test clink_test;

/* What is tested: sql, plugin_job or operator_name. */
typedef struct clink_test_options {
    size_t struct_bytes;
    const clink_plugin *plugin; /* linked into the test; NULL: none */
    const char *const *plugins; /* files, ended by NULL; NULL: none */
    const char *sql;            /* a script; the rows of a bare SELECT are those of table "result" */
    const char *plugin_job;     /* the job of this name, "": the first */
    const char *operator_name;  /* one operator of a plugin, whose uid is its name. Its inputs are the tables "in",
                                 * "in1",  "in2" ..., what it emits "out", "side1", "side2" ... */
    const char *parameters;     /* of the operator */
    const char *key_by;         /* of its inputs: columns; NULL: not keyed */
    const char *const *input_columns; /* of each input: "device VARCHAR, ts TIMESTAMP(3)"; NULL: as the operator says */
    int64_t now_us;                   /* where the clock stands at first */
    uint32_t tables;                  /* clink_test_tables; 0: other connectors than 'test' are refused */
} clink_test_options;

/* Tables of a script or job that are pushed to and read from are of connector 'test'; other connectors are refused, so
 * that a test reads and writes nothing - unless it says what becomes of them. */
typedef enum clink_test_tables {
    CLINK_TEST_STAND_INS = 1, /* are pushed to and read from as if they were of 'test': a job as it is */
    CLINK_TEST_PLUGINS = 2    /* those of plugins are what they are: clink_test_read has a source read, a sink writes as
                               * rows come, and commits at clink_test_snapshot and, once more, at clink_test_restore */
} clink_test_tables;

CLINK_API clink_status clink_test_open(const clink_test_options *o, clink_test **out, clink_error *error);
CLINK_API void clink_test_close(clink_test *t); /* NULL is fine */

/* Rows come in. Their times move the watermark where the table has one. */
CLINK_API clink_status clink_test_push(clink_test *t, const char *table, const char *ndjson, clink_error *error);
/* The watermark of a table rises to so far, beside what its rows say. */
CLINK_API clink_status clink_test_watermark(clink_test *t, const char *table, int64_t watermark_us, clink_error *error);
/* A plugin's source reads: about so many batches of it, at most; 0: until it waits or has ended. *ended (optional): it
 * has. */
CLINK_API clink_status clink_test_read(clink_test *t, const char *table, uint32_t batches, int *ended,
                                       clink_error *error);
/* The clock goes on to now_us: timers of the clock fire. It never goes back. */
CLINK_API clink_status clink_test_time(clink_test *t, int64_t now_us, clink_error *error);
/* The table ends; NULL: all do. */
CLINK_API clink_status clink_test_end(clink_test *t, const char *table, clink_error *error);

/* Rows that have come out since the last call, with "-U ", "+U ", "-D " in front of changes. */
CLINK_API clink_status clink_test_rows(clink_test *t, const char *table, const char **ndjson, clink_error *error);
/* What an operator keeps in a slot, an entry a line, sorted: {"device":"a","ts_us":0,"readings":1}. Timers are the
 * slots "timers.event" and "timers.clock". */
CLINK_API clink_status clink_test_state(clink_test *t, const char *uid, const char *slot, const char **ndjson,
                                        clink_error *error);

/* Keeps all state as it is now, and the positions of sources; what sinks of plugins have prepared for it is committed.
 */
CLINK_API clink_status clink_test_snapshot(clink_test *t, clink_error *error);
/* As after a restart from the snapshot: every operator is made anew, with the state that was kept; how far sources had
 * come is as it was then. Rows not read yet are gone. Sinks of plugins commit what the snapshot has, as if nobody knew
 * whether it was done, and abort the rest. */
CLINK_API clink_status clink_test_restore(clink_test *t, clink_error *error);

#ifdef __cplusplus
}
#endif

#endif
