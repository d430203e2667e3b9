/* clink/testing.h from the inside: a graph run by direct calls, one instance an operator, in one thread. testing.c is
 * what the test calls, testing_run.c takes events from operator to operator, testing_tables.c runs sources and sinks of
 * plugins, testing_state.c copies and prints state. */
#ifndef CK_ENGINE_TESTING_INT_H
#define CK_ENGINE_TESTING_INT_H

#include "clink/testing.h"
#include "connector/table.h"
#include "engine/engine_int.h"
#include "format/encoder.h"
#include "state/state.h"

typedef struct ck_test_event {
    ck_event ev; /* owns its batch */
    uint32_t input;
    struct ck_test_event *next;
} ck_test_event;

/* READER: a source of a plugin, run as it is. A sink of one is an OPERATOR with a committer. */
typedef enum ck_test_role { CK_TEST_OPERATOR, CK_TEST_SOURCE, CK_TEST_SINK, CK_TEST_READER } ck_test_role;

typedef struct ck_test_node {
    struct clink_test *test;
    const ck_graph_op *op;
    const ck_op_desc *desc;
    const ck_op_spec *spec;
    ck_test_role role;
    const char *table; /* SOURCE, SINK, READER */
    void *self, *committer;
    bool opened, ended;
    ck_op_ctx ctx;
    ck_test_event *first, **last;
    bool begun;          /* the first event has been taken, and there is more of it */
    int64_t *watermarks; /* by input */
    bool *input_ended;
    uint32_t ended_inputs;
    int64_t watermark; /* as said to it */
    uint64_t flushed;
    ck_source_table source; /* SOURCE */
    ck_event_time times;
    uint32_t clock;
    bool has_times;
    int64_t kept_max;    /* of the clock, in the snapshot */
    ck_encoder *encoder; /* SINK */
    bool kinds;
    const uint32_t *key;
    uint32_t key_count;
    ck_bytes rows;
} ck_test_node;

struct clink_test {
    clink_engine *engine;
    ck_arena arena, calls;
    ck_mem mem;
    clink_job *job; /* holds the plan */
    const ck_graph *graph;
    ck_job_settings settings;
    ck_test_node *nodes; /* as the graph's operators */
    ck_state_store *store, *kept;
    uint32_t tables;     /* clink_test_tables */
    uint64_t checkpoint; /* of the last snapshot */
    bool io_ran;         /* an I/O job, in the call under way */
    int64_t now_us;
    uint64_t flush_seq;
    ck_error error;
    ck_bytes text;
};

/* testing_run.c */
CK_NODISCARD ck_status ck_test_nodes_make(clink_test *t);
CK_NODISCARD ck_status ck_test_nodes_start(clink_test *t); /* over t->store */
void ck_test_nodes_stop(clink_test *t);
CK_NODISCARD ck_status ck_test_push_rows(clink_test *t, ck_test_node *n, const char *ndjson);
CK_NODISCARD ck_status ck_test_push_watermark(clink_test *t, ck_test_node *n, int64_t us);
CK_NODISCARD ck_status ck_test_push_end(clink_test *t, ck_test_node *n);
/* All that follows, with a flush at the end. */
CK_NODISCARD ck_status ck_test_settle(clink_test *t);
CK_NODISCARD ck_status ck_test_wake(clink_test *t);

/* A call of an operator that may wait for I/O, which has been done when it is called again. */
#define CK_TEST_CALL(t, s, call)                                                                                       \
    do {                                                                                                               \
        (t)->io_ran = false;                                                                                           \
        (s) = (call);                                                                                                  \
    } while ((s) == CK_AGAIN && (t)->io_ran)

/* testing_tables.c */
bool ck_test_is_of_plugin(const ck_test_node *n);
CK_NODISCARD ck_status
ck_test_reader_start(ck_test_node *n); /* it is made and opened; its splits are found or restored */
CK_NODISCARD ck_status ck_test_reader_read(ck_test_node *n, uint32_t batches);
CK_NODISCARD ck_status ck_test_readers_snapshot(clink_test *t);
/* Of the sinks with committers: all that t->store has; again: after a restart, with what was prepared beside it
 * aborted. */
CK_NODISCARD ck_status ck_test_commit(clink_test *t, bool again);
void ck_test_committers_free(clink_test *t);

/* testing_state.c */
CK_NODISCARD ck_status ck_test_store_new(clink_test *t, ck_state_store **out);
CK_NODISCARD ck_status ck_test_store_copy(clink_test *t, ck_state_store *from, ck_state_store *to);
CK_NODISCARD ck_status ck_test_print_slot(clink_test *t, const char *uid, const char *slot);

#endif
