/* A job being built by a plugin (clink_job_builder): plugin_builder.c notes what it is asked for, and writes the SQL of
 * it; plugin_graph.c puts operators of plugins into the graph that comes of the SQL; plugin_job.c has both done. */
#ifndef CK_ENGINE_PLUGIN_JOB_INT_H
#define CK_ENGINE_PLUGIN_JOB_INT_H

#include "engine/engine_int.h"
#include "expr/library.h"

enum { CK_PLUGIN_SCRIPT_BYTES_MAX = 16 << 20 };

/* In front of the name of a table that stands for what an operator gives. */
#define CK_STREAM_STUB "operator:"

typedef enum ck_plugin_stream_kind {
    CK_STREAM_QUERY,
    CK_STREAM_PROCESS,
    CK_STREAM_SIDE,
    CK_STREAM_KEYED
} ck_plugin_stream_kind;

typedef struct ck_plugin_stream ck_plugin_stream;
struct ck_plugin_stream {
    clink_stream face; /* first */
    struct ck_plugin_builder *b;
    ck_plugin_stream_kind kind;
    ck_plugin_stream *next;
    const char *text;     /* QUERY: SQL; KEYED: columns */
    const char *name;     /* QUERY: of the table that stands for it; PROCESS: uid; SIDE: uid and port */
    ck_plugin_stream *of; /* KEYED, SIDE */
    uint32_t port;        /* SIDE */
    const char *operator_name, *parameters;
    ck_plugin_stream **inputs;
    uint32_t input_count;
    /* found when the graph is put together */
    const ck_plugin_operator *op;
    const ck_schema *schema;
    ck_graph_input from; /* as an input of whoever takes it; kind and key are the taker's */
    bool bounded, placed, placing;
};

typedef struct ck_plugin_insert {
    ck_plugin_stream *from;
    const char *table;
    struct ck_plugin_insert *next;
} ck_plugin_insert;

typedef struct ck_plugin_builder {
    clink_job_builder face; /* first */
    ck_arena *arena;
    ck_proc *proc;
    const ck_registry *registry;
    ck_error *err;
    ck_status status; /* of the first thing that was wrong */
    const char *job;
    ck_bytes script;
    ck_plugin_stream *streams, **last_stream;
    ck_plugin_insert *inserts, **last_insert;
    uint32_t stream_count, query_count;
} ck_plugin_builder;

/* plugin_builder.c: what a plugin calls. */
extern const clink_engine_table ck_plugin_builder_table;
/* Tables for the streams, and the INSERTs, behind what the job has defined. */
CK_NODISCARD ck_status ck_plugin_write_script(ck_plugin_builder *b);

/* plugin_graph.c: the graph of the script with operators in the places of what stands for them. In b's arena. */
CK_NODISCARD ck_status ck_plugin_assemble(ck_plugin_builder *b, const ck_graph *sql, const ck_job_settings *settings,
                                          const ck_graph **out);

#endif
