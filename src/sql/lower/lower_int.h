/* Lowering from the inside: operators are first planned with numbers for each other, then get their uids, then enter
 * the graph. */
#ifndef CK_SQL_LOWER_LOWER_INT_H
#define CK_SQL_LOWER_LOWER_INT_H

#include "sql/lower/lower.h"

struct yyjson_mut_doc;
struct yyjson_mut_val;

typedef struct ck_planned_input {
    uint32_t op; /* number of the producer */
    uint32_t port;
    ck_edge_kind kind;
    ck_columns key;
    ck_edge_mode mode;
    bool bounded;
} ck_planned_input;

typedef struct ck_planned_op {
    const char *base;   /* uid before equal ones are told apart */
    uint64_t canonical; /* hash of what tells them apart */
    const char *uid;
    const char *type, *params, *label;
    ck_planned_input *inputs;
    uint32_t input_count;
    const ck_schema *schema;
    ck_columns key;
    bool has_key;
    bool final;
    bool stateful;          /* EXPLAIN says key and uid */
    const char *facts;      /* a line for EXPLAIN; NULL: none */
    const char *growth;     /* how its state grows; NULL: its input ends */
    bool single;            /* runs once, whatever the job's parallelism */
    ck_guarantee guarantee; /* of sinks, and of sources that can be read once only: where there is a why */
    const char *why;
    const ck_slot_schema *slots;
    uint32_t slot_count;
    uint64_t state_fingerprint;
    uint64_t semantic_fingerprint; /* 0: the graph makes it of the parameters */
    const uint64_t *branches;      /* the same over each branch of a UNION ALL alone; none: count 0 */
    uint32_t branch_count;
} ck_planned_op;

/* What a plan node became. */
typedef struct ck_lowered {
    bool done;
    uint32_t op;
    bool hashed; /* rows of one subtask are those of its key groups of these columns */
    ck_columns hash;
} ck_lowered;

/* An operator that hands late rows on, and to which table. */
typedef struct ck_late_output {
    const ck_catalog_entry *table;
    uint32_t op, input;
    const ck_plan_node *node;
    struct ck_late_output *next;
} ck_late_output;

typedef struct ck_lower_state {
    const ck_lowering *l;
    ck_arena *arena;
    ck_error *err;
    ck_planned_op *ops;
    uint32_t op_count, op_capacity;
    ck_lowered *nodes; /* by plan node id */
    bool *timed;       /* by plan node id: some operator above needs the time of its rows */
    bool event_time;   /* some operator reckons with it: sources say how far it has come */
    ck_late_output *late;
} ck_lower_state;

typedef struct ck_lower_params { /* JSON being made; params.c */
    struct yyjson_mut_doc *doc;
    struct yyjson_mut_val *root;
} ck_lower_params;

/* ---- guarantee.c ---- */
CK_NODISCARD ck_status ck_lower_guarantees(ck_lower_state *s, ck_sql_step *step);

/* ---- lower.c ---- */
CK_NODISCARD ck_status ck_lower_add(ck_lower_state *s, const ck_planned_op *op, uint32_t *out);
CK_NODISCARD ck_status ck_lower_node(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
/* Whether a subtask's rows are exactly those of its key groups of these columns, in this order. */
bool ck_lower_is_hashed_by(const ck_lowered *from, ck_columns key);
/* The semantic fingerprint of an operator whose state means this: with the settings that change results. */
uint64_t ck_lower_semantic(const ck_lower_state *s, uint64_t meaning);
/* An operator without state over one input of the same subtask. */
CK_NODISCARD ck_status ck_lower_chained(ck_lower_state *s, const ck_plan_node *n, const char *type, const char *params,
                                        const char *label, const ck_plan_node *input, const ck_lowered *from,
                                        uint32_t *out);
void *ck_lower_array(ck_lower_state *s, size_t count, size_t size);
#define CK_LOWER_ARRAY(s, count, type) ((type *)ck_lower_array((s), (count), sizeof(type)))
ck_status ck_lower_nomem(ck_lower_state *s);

/* ---- one file a family ---- */
CK_NODISCARD ck_status ck_lower_scan(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_values(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_filter(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_project(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_aggregate(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_union(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_limit(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_sort(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_top_n(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_join(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_lookup(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
/* "inner ON a = b"; NULL without memory. */
const char *ck_lower_join_label(ck_lower_state *s, const ck_plan_node *n);
CK_NODISCARD ck_status ck_lower_set_op(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_unnest(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_window(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_window_agg(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_over(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
/* over.c: a rank that event time settles. */
CK_NODISCARD ck_status ck_lower_timed_rank(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out);
CK_NODISCARD ck_status ck_lower_output(ck_lower_state *s, const ck_output *o);
/* The sink of what a source puts aside, where its table says so; source is its operator. */
CK_NODISCARD ck_status ck_lower_dead_letters(ck_lower_state *s, const ck_plan_node *scan, const ck_lowered *source);

/* The sink of a table behind this edge, which brings append rows of its schema. */
CK_NODISCARD ck_status ck_lower_side_sink(ck_lower_state *s, const ck_catalog_entry *table, const ck_plan_node *from,
                                          const ck_planned_input *in);

/* ---- late.c ---- */
/* Parameter "late", "left_late" or "right_late" of an operator that drops rows which come too late, where node n has a
 * table for those of an input. */
CK_NODISCARD ck_status ck_lower_params_late(ck_lower_state *s, ck_lower_params *p, const ck_plan_node *n);
/* Operator `op` of node n has these parameters. */
CK_NODISCARD ck_status ck_lower_late(ck_lower_state *s, const ck_plan_node *n, uint32_t op);
/* One sink a late table, behind a UNION ALL where several operators fill it: when all are lowered. */
CK_NODISCARD ck_status ck_lower_late_sinks(ck_lower_state *s);

/* ---- in_order.c ---- */
/* Whether changes of rows with one key (columns of n's output) come in the order in which they were made. */
CK_NODISCARD ck_status ck_lower_in_order(ck_lower_state *s, const ck_plan_node *n, ck_columns key, bool *yes);

/* ---- params.c: JSON ---- */
/* Members of a source's parameters: the table, and which of its columns. */
CK_NODISCARD ck_status ck_lower_params_source(ck_lower_state *s, ck_lower_params *p, const ck_table_def *def,
                                              ck_columns columns);
CK_NODISCARD ck_status ck_lower_params_begin(ck_lower_state *s, ck_lower_params *p);
CK_NODISCARD ck_status ck_lower_params_exprs(ck_lower_state *s, ck_lower_params *p, const char *name,
                                             ck_expr *const *exprs, uint32_t count);
CK_NODISCARD ck_status ck_lower_params_columns(ck_lower_state *s, ck_lower_params *p, const char *name,
                                               ck_columns columns);
/* Whether the join's condition bounds how far apart in time partners are, and that matters here. */
bool ck_lower_is_in_time(const ck_lower_state *s, const ck_plan_node *n, ck_time_bounds *b);
/* A conjunct that says how far apart two timestamps are, as one that never fails; others stay as they are. */
CK_NODISCARD ck_status ck_lower_distance(ck_lower_state *s, const ck_plan_node *n, ck_expr **conjunct);
/* The parameters that say it. */
CK_NODISCARD ck_status ck_lower_time_bounds(ck_lower_state *s, const ck_time_bounds *b, ck_lower_params *p);
/* ordered.c: [{"col", "desc", "nulls_first"}]; false: no memory. */
bool ck_lower_add_order(struct yyjson_mut_doc *doc, struct yyjson_mut_val *root, const char *name,
                        const ck_plan_order *order, uint32_t count);
CK_NODISCARD ck_status ck_lower_params_calls(ck_lower_state *s, ck_lower_params *p, const ck_plan_aggregate *calls,
                                             uint32_t count); /* "aggregates" */
/* How long an operator's state is kept without being written, where it is not for ever. */
CK_NODISCARD ck_status ck_lower_params_ttl(ck_lower_state *s, ck_lower_params *p, const char *name, int64_t ttl_us);
CK_NODISCARD ck_status ck_lower_params_end(ck_lower_state *s, ck_lower_params *p, const char **out);

/* ---- uid.c, slots.c, label.c, explain.c ---- */
CK_NODISCARD ck_status ck_lower_uids(ck_lower_state *s);
CK_NODISCARD ck_status ck_lower_slots(ck_lower_state *s);
/* Text as a label, cut where it is long; frees the buffer. NULL without memory. */
const char *ck_label_cut(ck_lower_state *s, ck_bytes *text, ck_status st);
const char *ck_label_exprs(ck_lower_state *s, const char *before, const char *between, const ck_plan_node *input,
                           ck_expr *const *exprs, uint32_t count, const ck_schema *names);
const char *ck_label_duration(ck_lower_state *s, int64_t us); /* "1 h", "10 s", "250 ms" */
const char *ck_label_columns(ck_lower_state *s, const ck_schema *schema, ck_columns columns); /* "a, b" */
const char *ck_label_calls(ck_lower_state *s, const char *before, const ck_plan_aggregate *calls, uint32_t count);
/* How the state of n's operator grows, whose input goes on. NULL without memory. */
const char *ck_lower_growth(ck_lower_state *s, const ck_plan_node *n);
CK_NODISCARD ck_status ck_lower_explain(ck_lower_state *s, const ck_sql_step *step, const char **out);

#endif
