/* Descriptors: how an operator, a source, a sink and a connector present themselves. Rooms define them as constants,
 * the engine (and later plugins) enters them in the registry, the planner and the runtime find them by name. */
#ifndef CK_STREAM_DESCRIPTOR_H
#define CK_STREAM_DESCRIPTOR_H

#include <stdatomic.h>

#include "stream/committer.h"
#include "stream/operator.h"
#include "stream/slot.h"
#include "stream/source.h"

typedef enum ck_edge_mode { CK_MODE_APPEND, CK_MODE_RETRACT, CK_MODE_UPSERT } ck_edge_mode;

typedef struct ck_op_input {
    const ck_schema *schema;
    ck_edge_mode mode;
    bool bounded;
} ck_op_input;

/* What the subtasks of a source in one process know of each other. The job's; it outlives them. */
typedef struct ck_source_peers {
    uint32_t subtasks;  /* in this process */
    atomic_uint giving; /* of them, those that have rows to give; relaxed: a share, never a signal */
} ck_source_peers;

/* What an instance is made from. Everything is borrowed from the job graph and outlives the instance. */
typedef struct ck_op_spec {
    ck_proc *proc;
    const char *uid, *type;
    const char *params;        /* JSON object, the operator's own */
    const ck_op_input *inputs; /* sources: none */
    uint32_t input_count;
    const ck_schema *schema; /* of the main output; sinks: of what they take */
    bool final;              /* all inputs are bounded: emit once, at END */
    const ck_job_settings *settings;
    uint32_t subtask, parallelism;
    ck_source_peers *peers; /* sources in a job; else NULL */
    bool continues;         /* enumerate: there are splits stored already, and those found beside them came later */
    void *job_data;         /* the engine's, for connectors that hand rows to the embedding program (collect, print) */
} ck_op_spec;

static inline const struct ck_library *ck_spec_library(const ck_op_spec *spec) {
    return spec->proc ? spec->proc->library : NULL; /* for tests of a single operator */
}

/* Whether reading the input again gives what an operator keeps and says: see ck_op_desc.again. */
typedef struct ck_again {
    const char *why_not; /* a sentence without its subject; NULL: it does */
    bool by_time;        /* also by how far event time had come: only where that is read again alike */
} ck_again;

typedef struct ck_op_desc {
    const char *type;
    const ck_operator_vtbl *op; /* exactly one of op and source; sinks are operators */
    const ck_source_vtbl *source;
    const ck_committer_vtbl *committer; /* sinks that commit; NULL otherwise */
    /* Instance for one subtask. On failure nothing is left; the error names option or parameter. */
    ck_status (*create)(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
    ck_status (*create_committer)(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
    /* The slots this operator will open, from its parameters alone: for EXPLAIN, fingerprints, restore checks. NULL =
     * none. */
    ck_status (*slots)(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                       ck_error *err);
    /* Sources: the splits for this parallelism. May block; called once for the job, on no subtask. */
    ck_status (*enumerate)(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err);
    /* Sinks: a look at where the output goes before anything runs: what cannot be written fails, what may surprise is
     * logged. May block; called once for the job, on no subtask. NULL = there is nothing to look at. */
    ck_status (*look)(const ck_op_spec *spec, ck_error *err);
    /* Whether its state is a function of the rows it got, whatever their order and time; from its parameters alone.
     * Optional: NULL = it is not. CK_NOMEM, CK_CORRUPT. */
    ck_status (*again)(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err);
    /* Sources: for a split with a position, adds the one that has what was read before it, and ends there. CK_REFUSED:
     * that is not to be had any more, in a sentence. NULL = never. */
    ck_status (*rewind)(const ck_op_spec *spec, const ck_split *stored, ck_split_list *out, ck_error *err);
} ck_op_desc;

/* What a table with connector='name' is: option checking and which operators it becomes. */
typedef struct ck_option_desc {
    const char *name;   /* "path"; "fields.*.min": the * stands for a column's name */
    const char *values; /* "text", "integer", "boolean", "a|b|c"; "path": of a file, "-" for none; "column", "columns":
                           of the table, commas between; "property": the star of the name is no column */
    const char *deflt;  /* NULL = none */
    const char *help;
} ck_option_desc;

typedef struct ck_table_options { /* a table's WITH clause, resolved: names lower-cased, secrets not yet */
    const char *const *names;
    const char *const *values;
    uint32_t count;
} ck_table_options;

typedef struct ck_table_decl {
    const char *name;
    const ck_schema *schema; /* physical columns as declared */
    const uint32_t *primary_key;
    uint32_t primary_key_count;
    ck_table_options options;
    const struct ck_connector_desc *connector; /* for connectors that are described by the same functions; else NULL */
} ck_table_decl;

/* The value of an option as it stands in the table's WITH clause; NULL: it is not given. */
static inline const char *ck_table_decl_option(const ck_table_decl *t, const char *name) {
    for (uint32_t i = 0; i < t->options.count; i++)
        if (strcmp(t->options.names[i], name) == 0) return t->options.values[i];
    return NULL;
}

typedef struct ck_connector_desc {
    const char *name; /* "file" */
    const ck_option_desc *options;
    uint32_t option_count;
    const char *source_type; /* operator type, NULL: not a source */
    const char *sink_type;   /* NULL: not a sink */
    const char *lookup_type; /* the operator that finds rows of a bounded table by key; NULL: none */
    /* Checks the options together (the names and single values are checked already): all that may be wrong with them is
     * found here. A message speaks of an option as 'name', or name = 'value', and is placed there. */
    ck_status (*check)(const ck_table_decl *t, bool as_sink, ck_error *err);
    bool (*bounded)(const ck_table_decl *t);         /* as a source; NULL = yes */
    bool (*changes)(const ck_table_decl *t);         /* as a source: its rows change (weights); NULL = no */
    bool (*accepts_changes)(const ck_table_decl *t); /* as a sink: takes retractions; NULL = no */
    bool (*accepts_upserts)(const ck_table_decl *t); /* as a sink keyed by its primary key; NULL = no */
    /* What a sink can promise with checkpoints on, and in one sentence what limits it. */
    ck_guarantee (*guarantee)(const ck_table_decl *t, bool checkpoints, const char **why);
    /* As a sink: rows that cannot be written go to the table's dead_letter_table, on port 1. NULL = no. */
    bool (*sets_aside)(const ck_table_decl *t);
    /* As a sink that sets aside: whether `to`, a table of the named connector, may be its dead_letter_table. *own: it
     * puts letters there itself, too, and its parameters have the table as "letters". NULL = any may, it does not. */
    ck_status (*letters_to)(const ck_table_decl *t, const char *connector, const ck_table_decl *to, bool *own,
                            ck_error *err);
    bool timed; /* as a sink: it asks how far event time has come */
    /* As a source: why its rows cannot be read again after a restart, in one sentence; NULL (also the function): they
     * can. */
    const char *(*once)(const ck_table_decl *t);
    /* As a source: whether reading the table twice in one job costs no more than reading it, and is seen by nobody.
     * NULL = no. */
    bool (*again)(const ck_table_decl *t);
    /* What only one table of a job may read or write, by a name that tables are compared by: the directory of a sink,
     * standard input. *out is NULL: nothing (also the function). CK_NOMEM. */
    ck_status (*exclusive)(const ck_table_decl *t, bool as_sink, ck_arena *a, const char **out);
} ck_connector_desc;

#endif
