/* A changed script goes on from a checkpoint of the one before: what becomes of each operator that keeps something.
 * One comparison for EXPLAIN --restore and for the start of a job, made before anything is touched.
 *
 *   reuse    the same operator: its state as it is
 *   migrate  the same operator over another schema: fields go, change their order, grow wider (state/slot_change.h)
 *   new      an operator the checkpoint does not know; it starts empty and sees rows from here on
 *   backfill where that is asked for: the checkpoint has not all it keeps, so that all of it is computed again, by
 * reading the input up to the checkpoint; so is the state of operators behind it (evolve_backfill.c, job_backfill.c)
 *   rebuild  its state means, or is, something else: given up, it starts empty
 *   drop     nobody continues it: its state is given up
 *
 * Reuse, migrate and new go by themselves. What would lose state, or go on computing something else over it, is refused
 * unless `allow` is set: then filters and options may differ over state as it is, and what does not fit is rebuilt or
 * dropped. Operators without state, sources' columns, labels and parallelism may change freely. */
#ifndef CK_RUNTIME_EVOLVE_H
#define CK_RUNTIME_EVOLVE_H

#include "checkpoint/manifest.h"
#include "graph/match.h"
#include "plugin/registry.h"
#include "state/state_migration_on_restore.h"
#include "stream/source.h"

typedef enum ck_evolve_verdict {
    CK_EVOLVE_REUSE,
    CK_EVOLVE_MIGRATE,
    CK_EVOLVE_NEW,
    CK_EVOLVE_BACKFILL,
    CK_EVOLVE_REBUILD,
    CK_EVOLVE_DROP,
} ck_evolve_verdict;
const char *ck_evolve_name(ck_evolve_verdict v);

typedef struct ck_evolve_op {
    const ck_graph_op *stored, *wanted; /* one may be NULL */
    ck_evolve_verdict verdict;
    bool refused;    /* needs `allow` */
    const char *why; /* what changes; "" */
} ck_evolve_op;

/* What a source is read again by: splits that end where those of the checkpoint stand. */
typedef struct ck_rewound {
    ck_split_list splits;
    bool ended; /* it had come to its end */
} ck_rewound;

typedef struct ck_evolution {
    const ck_graph *stored;
    bool changed;            /* the graphs differ */
    bool compared;           /* that, or their operators keep state otherwise; else every operator is reused */
    const ck_evolve_op *ops; /* that keep something */
    uint32_t count, refused;
    const ck_rewound *rewound; /* by operator of the wanted graph; where something is CK_EVOLVE_BACKFILL */
    /* Refused, and nothing would be with that in the configuration. */
    bool from_now_helps, backfill_helps;
} ck_evolution;

/* What is done where a job computes what its checkpoint has not. */
typedef enum ck_added_state {
    CK_ADDED_REFUSED,
    CK_ADDED_FROM_NOW, /* it begins empty */
    CK_ADDED_BACKFILL, /* the input is read again */
} ck_added_state;

typedef struct ck_evolve_config {
    ck_proc *proc;
    const ck_registry *registry;
    const char *dir; /* of the manifest */
    const ck_manifest *manifest;
    const ck_graph *wanted;
    const ck_job_settings *settings;
    ck_added_state added;
    bool allow;
    bool committed; /* the manifest is of the job's own directory, where a marker says that its sinks have committed it */
} ck_evolve_config;

/* Reads the heads of the manifest's files when the graphs differ; everything lives in the arena. CK_CORRUPT: the
 * manifest's graph or a file does not parse. Refused operators are no error here. Blocks. */
CK_NODISCARD ck_status ck_evolve(ck_arena *a, const ck_evolve_config *cfg, ck_evolution *out, ck_error *err);
/* What of --added-state goes on from where this is refused, as a sentence without its end; NULL: nothing. */
const char *ck_evolve_ways(const ck_evolution *e);
/* CK_REFUSED: output that a sink had prepared, and that this script has no more, could be committed by nobody. */
ck_status ck_evolve_uncommitted(const ck_graph_op *sink, uint64_t checkpoint, ck_error *err);
/* CK_REFUSED with a sentence: the job cannot go on from there for what the checkpoint is or holds, whatever its operators
 * say. Reads its files where a sink is dropped. */
CK_NODISCARD ck_status ck_evolve_refuses_checkpoint(const ck_evolve_config *cfg, const ck_evolution *e, ck_error *err);
/* That, or for an operator: then with `hint` behind the sentence. */
CK_NODISCARD ck_status ck_evolve_refusal(const ck_evolve_config *cfg, const ck_evolution *e, const char *hint,
                                         ck_error *err);
/* Of a comparison of graphs what concerns a region of the wanted one: the same for `part`, its own graph. What is
 * dropped concerns every region. In the arena. */
CK_NODISCARD ck_status ck_evolve_cut(ck_arena *a, const ck_graph *wanted, const ck_graph *part, ck_evolution *e,
                                     ck_error *err);
/* Of a region's manifest the graph: all of it becomes that of the region. */
CK_NODISCARD ck_status ck_evolve_cut_manifest(ck_arena *a, ck_manifest *m, ck_error *err);
/* ck_evolve for the checkpoint that a job of this name would start from: --checkpoint-dir and --restore; `cfg` has all
 * but dir, manifest and committed, which are filled in. CK_NOTFOUND: there is none. Nothing is locked or written. */
CK_NODISCARD ck_status ck_evolve_from(ck_arena *a, const char *checkpoint_dir, const char *restore,
                                      const char *job_name, ck_evolve_config *cfg, ck_evolution *out, ck_error *err);
/* The slots an operator's descriptor says it opens. An operator this build does not know has none to show. */
CK_NODISCARD ck_status ck_described_slots(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *g,
                                          const ck_graph_op *op, const ck_slot_schema **out, uint32_t *count,
                                          ck_error *err);
/* Whether this build says of an operator of the stored graph that it keeps what it kept: the code behind it may have
 * been built again since. An operator this build does not know is taken to. */
CK_NODISCARD ck_status ck_described_as_stored(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *stored,
                                              const ck_graph_op *op, bool *out, ck_error *err);
/* Whether operators of the same graph keep their state in other versions or layouts than those of the checkpoint. */
CK_NODISCARD ck_status ck_state_is_kept_otherwise(const ck_evolve_config *cfg, ck_arena *a, const ck_graph *stored,
                                                  bool *out, ck_error *err);
/* ck_graph_match for graphs that are the same. */
CK_NODISCARD ck_status ck_pair_by_uid(ck_arena *a, const ck_graph *stored, const ck_graph *wanted, ck_graph_pair **out,
                                      uint32_t *count, ck_error *err);
/* What is known of the value fields of these slots of an operator of `wanted`, when it goes on from a state of
 * `stored`: *slots becomes a copy in the arena with origins (stream/slot.h). from_now: what is not stored begins empty,
 * unless rows are taken back from it. */
CK_NODISCARD ck_status ck_trace_slots(ck_arena *a, const ck_graph *stored, const ck_graph *wanted,
                                      const ck_graph_op *op, bool from_now, const ck_slot_schema **slots,
                                      uint32_t count, ck_error *err);
/* The columns that fields of an operator's state are named by, with what each is made of as a number; 0: not known. */
typedef struct ck_seen_column {
    uint32_t input;
    const char *name;
    uint64_t meaning;
} ck_seen_column;
typedef struct ck_seen_columns {
    ck_seen_column *list;
    uint32_t count;
} ck_seen_columns;
/* What each column of each operator is made of, and by that the columns of one. */
CK_NODISCARD ck_status ck_graph_columns(ck_arena *a, const ck_graph *g, uint64_t ***out, ck_error *err);
CK_NODISCARD ck_status ck_seen_columns_of(ck_arena *a, const ck_graph *g, uint64_t *const *columns,
                                          const ck_graph_op *op, ck_seen_columns *out, ck_error *err);
/* What a field is made of: its name with that in the place of columns, as a number; 0: some column is not known. */
uint64_t ck_field_meaning(const ck_seen_columns *names, const char *slot, const char *field);
/* Those of all operators of cfg->wanted, under their own uids. In the arena. */
CK_NODISCARD ck_status ck_expected_slots(const ck_evolve_config *cfg, ck_arena *a, const ck_expected_slot **out,
                                         uint32_t *count, ck_error *err);
/* Of operators that the checkpoint does not know, refuses those that cannot begin with what comes from there on: a
 * second reader of a table whose rows are in state already, and state of rows that are taken back. */
CK_NODISCARD ck_status ck_judge_new(ck_arena *a, const ck_evolve_config *cfg, const ck_graph *stored,
                                    const ck_graph_pair *pairs, uint32_t pair_count, ck_evolve_op *ops, uint32_t count,
                                    ck_error *err);
bool ck_evolve_is_source(const ck_evolve_config *cfg, const ck_graph_op *op);
/* Which operators have to run to compute again what ops say CK_EVOLVE_BACKFILL of: by operator of the graph. In the
 * arena. */
CK_NODISCARD ck_status ck_backfill_part(ck_arena *a, const ck_graph *wanted, const ck_evolve_op *ops, uint32_t count,
                                        const bool **out, ck_error *err);
/* Adds operators that stand on what is computed again to those that are, and marks as refused what cannot be. *rewound:
 * see ck_evolution; left alone where nothing is. */
CK_NODISCARD ck_status ck_judge_backfill(ck_arena *a, const ck_evolve_config *cfg, ck_evolve_op *ops, uint32_t count,
                                         const ck_rewound **rewound, ck_error *err);
/* Of the sources of a part of the wanted graph, by operator of it; all of them can rewind. *why_not: a sentence, where
 * one cannot be read again up to where the checkpoint stands; else NULL. Reads the checkpoint's files. In the arena. */
CK_NODISCARD ck_status ck_rewind_sources(ck_arena *a, const ck_evolve_config *cfg, const ck_evolution *e,
                                         const bool *part, const ck_rewound **out, const char **why_not, ck_error *err);
/* The operator of the stored graph whose state this one goes on with; NULL: none. */
const ck_graph_op *ck_evolve_stored(const ck_evolution *e, const ck_graph_op *wanted);

#endif
