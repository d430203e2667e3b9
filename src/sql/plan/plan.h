/* The logical plan: a directed acyclic graph of relational nodes, each with its schema and the properties that decide
 * what is possible above it (docs: decisions 1-6): changelog mode, boundedness, `final`, keys, identity. Nodes are made
 * by one constructor a kind, which derives the properties, and never change afterwards; rewrites make new nodes. A node
 * may have several consumers (a CTE, a view used twice). Operators that keep state take columns, not expressions: the
 * binder puts projections in front. Everything lives in the plan's arena. */
#ifndef CK_SQL_PLAN_PLAN_H
#define CK_SQL_PLAN_PLAN_H

#include "expr/aggregate.h"
#include "expr/tree.h"
#include "sql/catalog/catalog.h"

enum { CK_PLAN_NODES_MAX = 20000, CK_PLAN_KEYS_MAX = 8, CK_PLAN_DEPTH_MAX = 2000 };
#define CK_NO_COLUMN UINT32_MAX

typedef enum ck_plan_kind {
    CK_PLAN_SCAN,
    CK_PLAN_VALUES,
    CK_PLAN_FILTER,
    CK_PLAN_PROJECT,
    CK_PLAN_AGGREGATE,
    CK_PLAN_UNION, /* ALL */
    CK_PLAN_LIMIT,
    CK_PLAN_SORT,  /* bounded append input, at END */
    CK_PLAN_TOP_N, /* by partition */
    CK_PLAN_JOIN,
    CK_PLAN_SET_OP, /* INTERSECT, EXCEPT */
    CK_PLAN_UNNEST,
    CK_PLAN_WINDOW,     /* a row once for each window it is in */
    CK_PLAN_WINDOW_AGG, /* GROUP BY a window */
    CK_PLAN_OVER,       /* results beside each row */
} ck_plan_kind;

typedef enum ck_join_kind {
    CK_JOIN_BOTH_INNER,
    CK_JOIN_LEFT_OUTER,
    CK_JOIN_RIGHT_OUTER,
    CK_JOIN_FULL_OUTER,
    CK_JOIN_LEFT_SEMI,
    CK_JOIN_LEFT_ANTI,
} ck_join_kind;

/* FOR SYSTEM_TIME AS OF: which row of the right side a left row meets. */
typedef enum ck_as_of {
    CK_AS_OF_NONE,
    CK_AS_OF_EVENT,  /* the version valid at its event time */
    CK_AS_OF_NOW,    /* the key's row as it stands */
    CK_AS_OF_LOOKUP, /* what is found outside; the right side is a scan with projections */
} ck_as_of;
typedef struct ck_plan_as_of {
    ck_as_of kind;
    uint32_t left_time, right_time; /* EVENT: columns, each of its side */
    uint32_t key_count; /* EVENT, NOW: the first conjuncts compare the right side's key; LOOKUP: what is looked up by */
} ck_plan_as_of;

typedef enum ck_rank { CK_RANK_ROW_NUMBER, CK_RANK_RANK, CK_RANK_DENSE } ck_rank;

typedef struct ck_columns { /* column numbers */
    const uint32_t *at;
    uint32_t count;
} ck_columns;

typedef struct ck_plan_order {
    uint32_t column;
    bool descending, nulls_first;
} ck_plan_order;

typedef struct ck_plan_aggregate {
    const ck_aggregate *fn;
    uint32_t arg, filter; /* input columns, CK_NO_COLUMN = none */
    bool distinct;
    const ck_type *type;
    bool nullable;
    const char *arg_text, *filter_text; /* canonical: they name the state's fields; NULL = none */
    const ck_plan_order *order;         /* of the values, in front of the values themselves */
    uint32_t order_count;
    const char *order_text; /* canonical; NULL = none */
    bool ignores_nulls;     /* of a function that keeps them otherwise */
    ck_view separator;      /* by fn->constant */
    double fraction;
} ck_plan_aggregate;

typedef struct ck_plan_top {
    ck_columns partition;
    const ck_plan_order *order; /* empty: by the whole row */
    uint32_t order_count;
    uint64_t limit, offset;
    ck_rank rank;
    bool rank_column; /* the last column of the output is the rank */
    bool by_time;     /* by event time over rows that do not change */
    bool timed;       /* and so that a rank is said when the watermark has passed; where all is said at the end, only if
                       * somebody above reckons with time */
    bool windowed;    /* each partition is of a window, and goes with it */
    uint32_t window_end; /* windowed: input column, of the partition */
    int64_t lateness_us; /* windowed: for so long behind its end a window still changes */
    ck_pos at;           /* where it is written, for messages of later stages */
    const ck_source_text *source;
} ck_plan_top;

typedef enum ck_plan_by { CK_BY_EVENT_TIME, CK_BY_PROCESSING_TIME, CK_BY_END } ck_plan_by;

typedef struct ck_plan_over_call {
    const char *fn; /* "sum", "lag" */
    uint32_t arg;   /* input column, CK_NO_COLUMN = none */
    const char *arg_text;
    uint64_t offset; /* of LAG */
    const ck_type *type;
    bool nullable;
} ck_plan_over_call;

typedef struct ck_plan_over {
    ck_plan_by by;
    ck_columns partition;
    const ck_plan_order *order; /* by processing time none */
    uint32_t order_count;
    bool range;         /* a frame of values of the order column; else of rows */
    bool bounded;       /* it begins `preceding` before the row, in the order column's unit */
    bool whole;         /* it is all of the partition */
    bool ties_reversed; /* for LEAD, which is LAG the other way */
    uint64_t preceding;
    const ck_plan_over_call *calls;
    uint32_t call_count;
    ck_pos at; /* where it is written */
} ck_plan_over;

typedef enum ck_plan_window_kind {
    CK_PLAN_WINDOW_TUMBLE,
    CK_PLAN_WINDOW_HOP,
    CK_PLAN_WINDOW_CUMULATE,
    CK_PLAN_WINDOW_ATTACHED, /* the rows carry their window */
    CK_PLAN_WINDOW_SESSION,
} ck_plan_window_kind;

enum { CK_WINDOW_FIELDS = 3 }; /* window_start, window_end, window_time */

typedef struct ck_plan_window {
    ck_plan_window_kind kind;
    bool processing;                      /* over PROCTIME(): rows are of the time at which they come */
    uint32_t time;                        /* input column; none where rows are counted by processing time */
    uint32_t start, end;                  /* input columns, of attached ones */
    int64_t size_us, slide_us, offset_us; /* a session's gap is its size */
    int64_t lateness_us;
    const ck_type *type;  /* of the window's columns */
    ck_columns partition; /* of a session in FROM */
    ck_pos at;            /* where it is written, for messages of later stages */
    const ck_source_text *source;
} ck_plan_window;

/* What a node's rows and its state mean (meaning.c): hashes that stay as they are when the script is laid out anew,
 * when other columns are read, other aggregates computed or other statements added. */
typedef struct ck_plan_meaning {
    bool known;
    uint64_t rows;           /* which rows come out, and how often */
    uint64_t state;          /* what is kept, whatever is computed of it; of nodes that keep nothing: as rows */
    const uint64_t *columns; /* of each column of the schema */
    /* What `state` would be over one branch alone of the UNION ALL that a node keeps rows of; none: count 0. */
    const uint64_t *branches;
    uint32_t branch_count;
} ck_plan_meaning;

/* Where rows of an input go that come too late for a node. */
typedef struct ck_plan_late {
    const ck_catalog_entry *table; /* NULL: nowhere, they are counted */
    ck_columns columns;            /* input columns, by column of that table; CK_NO_COLUMN: the kind of change */
} ck_plan_late;

/* How far apart in event time partners of a join may be, where its conditions say so: from below, from above, or both.
 */
#define CK_TIME_UNBOUNDED 630720000000000000LL /* 20,000 years */
typedef struct ck_time_bounds {
    uint32_t left, right;       /* the time columns, of each side */
    int64_t lower_us, upper_us; /* of right time - left time */
    bool windowed;              /* the times are ends of windows, which are equal */
    int64_t slack_us;           /* rows come while the watermark is less than so far beyond their time */
} ck_time_bounds;

typedef struct ck_plan_node ck_plan_node;
struct ck_plan_node {
    ck_plan_kind kind;
    uint32_t id; /* in order of creation: inputs have smaller ones */
    uint16_t depth;
    bool joins_checked; /* by ck_bind_check_joins, down from here */
    ck_plan_node **inputs;
    uint32_t input_count;
    const ck_schema *schema;
    /* derived */
    ck_edge_mode mode; /* append or retract */
    bool bounded;
    bool final;                        /* emits once, at END */
    ck_columns keys[CK_PLAN_KEYS_MAX]; /* each a unique key of the output, no NULL issue: groups, not constraints */
    uint32_t key_count;
    int64_t ttl_us;          /* of the tables its rows are from: the longest, 0 where one is kept for ever */
    int64_t input_ttl_us[2]; /* of its inputs, as bound: what a node that keeps state forgets after */
    ck_plan_late late[2];    /* of its inputs */
    /* identity (docs/formats.md, "Job graph"): uid without disambiguation; NULL for stateless nodes */
    const char *identity;
    const char *const *ancestors; /* nearest identities below, sorted, distinct; of this node when it has one */
    uint32_t ancestor_count;
    uint64_t canonical; /* hash of the canonical text of the bound plan up to here */
    ck_plan_meaning meaning;
    union {
        struct {
            const ck_catalog_entry *table;
            ck_columns columns; /* physical columns of the table, ascending */
        } scan;
        struct {
            ck_expr *const *rows; /* row_count * schema->field_count expressions without columns */
            uint32_t row_count;
        } values;
        struct {
            ck_expr *const *conjuncts;
            uint32_t count;
        } filter;
        struct {
            ck_expr *const *exprs; /* one a column of the schema */
        } project;
        struct {
            ck_columns keys; /* of the input, in output order */
            const ck_plan_aggregate *calls;
            uint32_t call_count;
        } aggregate;
        struct {
            uint64_t limit, offset; /* limit UINT64_MAX: none */
        } limit;
        struct {
            const ck_plan_order *by;
            uint32_t count;
            uint64_t limit, offset;
        } order; /* SORT */
        ck_plan_top top;
        ck_plan_over over; /* the output is the input's columns and the calls */
        struct {
            ck_join_kind kind;
            ck_expr *const *on; /* conjuncts over left then right columns */
            uint32_t on_count;
            bool single;     /* at most one right row may match: more is an error */
            bool in_time;    /* over input that goes on, its condition bounds it in event time */
            ck_columns unread[2]; /* columns of its inputs that its condition and nobody above look at */
            bool build_left; /* of two sides that end the left is read first, where time is needed above */
            bool has_bounds;
            ck_time_bounds bounds; /* what ck_plan_time_bounds says: asked at every join above, so found once */
            ck_plan_as_of as_of;
        } join;
        struct {
            bool except, all;
        } set_op;
        struct {
            ck_expr *expr; /* of an ARRAY or MAP, over the input */
            bool ordinality, outer;
            ck_columns unused; /* input columns nobody above looks at */
        } unnest;
        struct { /* WINDOW: of alone */
            ck_plan_window of;
            ck_columns keys; /* of the input; the output is keys, window, calls */
            const ck_plan_aggregate *calls;
            uint32_t call_count;
        } window;
    };
};

/* One plan being made: the nodes of a job. Zeroed except arena, err, changes. */
typedef struct ck_plan {
    ck_arena *arena;
    ck_error *err;
    bool changes;       /* --changes: nothing is final because its inputs end */
    bool emit_on_close; /* EMIT ON CLOSE of the query being bound: its operators are final */
    uint32_t node_count;
} ck_plan;

/* Room for `count` things, zeroed; NULL with CK_NOMEM in plan->err. */
void *ck_plan_array(ck_plan *p, size_t count, size_t size);
#define CK_PLAN_ARRAY(p, count, type) ((type *)ck_plan_array((p), (count), sizeof(type)))
ck_status ck_plan_nomem(ck_plan *p);

/* ---- constructors. Arrays and schemas are taken over, not copied. CK_NOMEM, or CK_INVALID past the ceilings. ---- */

CK_NODISCARD ck_status ck_plan_scan(ck_plan *p, const ck_catalog_entry *table, ck_columns columns, bool bounded,
                                    ck_plan_node **out);
CK_NODISCARD ck_status ck_plan_values(ck_plan *p, const ck_schema *schema, ck_expr *const *rows, uint32_t row_count,
                                      ck_plan_node **out);
CK_NODISCARD ck_status ck_plan_filter(ck_plan *p, ck_plan_node *input, ck_expr *const *conjuncts, uint32_t count,
                                      ck_plan_node **out);
/* names[i] may be NULL: the name of the input's column where expression i is one, else "". */
CK_NODISCARD ck_status ck_plan_project(ck_plan *p, ck_plan_node *input, ck_expr *const *exprs, const char *const *names,
                                       uint32_t count, ck_plan_node **out);
/* "sum(DISTINCT price)", "string_agg(name, '; ' ORDER BY ts)", without its filter. NULL without memory. */
const char *ck_plan_call_text(ck_arena *a, const ck_plan_aggregate *c);
/* Whether state keeps values of the input for the call, not one of their own number: a set, or all of them in order. */
bool ck_plan_call_keeps(const ck_plan_node *input, const ck_plan_aggregate *c);
/* Whether some call of a GROUP BY does. */
bool ck_plan_keeps_values(const ck_plan_node *aggregate);
/* A call over columns that have moved to map[column]. */
CK_NODISCARD ck_status ck_plan_move_call(ck_plan *p, ck_plan_aggregate *c, const uint32_t *map);
/* key_text: canonical text of the key expressions, for the identity; NULL: the names of the key columns. */
CK_NODISCARD ck_status ck_plan_aggregate_node(ck_plan *p, ck_plan_node *input, ck_columns keys,
                                              const ck_plan_aggregate *calls, uint32_t call_count, const char *key_text,
                                              const char *const *call_names, ck_plan_node **out);
/* Inputs have the same number and types of columns; names are the first one's. */
CK_NODISCARD ck_status ck_plan_union(ck_plan *p, ck_plan_node *const *inputs, uint32_t count, ck_plan_node **out);
CK_NODISCARD ck_status ck_plan_limit(ck_plan *p, ck_plan_node *input, uint64_t limit, uint64_t offset,
                                     ck_plan_node **out);
CK_NODISCARD ck_status ck_plan_sort(ck_plan *p, ck_plan_node *input, const ck_plan_order *order, uint32_t count,
                                    uint64_t limit, uint64_t offset, ck_plan_node **out);
/* rank_name: of the rank's column; NULL: none. */
CK_NODISCARD ck_status ck_plan_top_n(ck_plan *p, ck_plan_node *input, const ck_plan_top *top, const char *rank_name,
                                     ck_plan_node **out);
/* names: of the calls' columns. */
CK_NODISCARD ck_status ck_plan_over_node(ck_plan *p, ck_plan_node *input, const ck_plan_over *over,
                                         const char *const *names, ck_plan_node **out);
/* names: of left then right columns, for canonical texts; NULL: the schemas'. */
CK_NODISCARD ck_status ck_plan_join(ck_plan *p, ck_join_kind kind, ck_plan_node *left, ck_plan_node *right,
                                    ck_expr *const *on, uint32_t on_count, bool single, const char *const *names,
                                    ck_plan_node **out);
/* Inner or left. */
CK_NODISCARD ck_status ck_plan_join_as_of(ck_plan *p, ck_join_kind kind, ck_plan_node *left, ck_plan_node *right,
                                          ck_expr *const *on, uint32_t on_count, const ck_plan_as_of *as_of,
                                          const char *const *names, ck_plan_node **out);
/* The join n stands for over other inputs and conditions, with its identity. moved: where its columns, left then right,
 * have gone in the inputs taken together; NULL: nowhere. */
CK_NODISCARD ck_status ck_plan_join_again(ck_plan *p, const ck_plan_node *n, ck_plan_node *left, ck_plan_node *right,
                                          ck_expr *const *on, uint32_t on_count, const uint32_t *moved,
                                          ck_plan_node **out);
/* n with one row a version: its key, its time, and what gives the versions - a table with PRIMARY KEY and event time,
 * or the rows a ROW_NUMBER keeps the last of by event time. *out NULL: it is none of these. */
typedef struct ck_plan_versions {
    ck_plan_node *node; /* of n's columns */
    ck_columns key;
    uint32_t time; /* CK_NO_COLUMN: a table without event time, or none of its columns */
} ck_plan_versions;
CK_NODISCARD ck_status ck_plan_versions_of(ck_plan *p, ck_plan_node *n, ck_plan_versions *out);
/* Whether a column of n is PROCTIME(). */
bool ck_plan_is_proctime(const ck_plan_node *n, uint32_t column);
/* Same number and types of columns. */
/* made, a top-N over other inputs than n, says all at the end as n does. */
void ck_plan_top_ends(ck_plan_node *made, const ck_plan_node *n);
CK_NODISCARD ck_status ck_plan_set_op(ck_plan *p, bool except, bool all, ck_plan_node *left, ck_plan_node *right,
                                      ck_plan_node **out);
/* fields: what an element adds to the input's columns, the ordinality among them. */
CK_NODISCARD ck_status ck_plan_unnest(ck_plan *p, ck_plan_node *input, ck_expr *e, bool ordinality, bool outer,
                                      const ck_field *fields, uint32_t field_count, ck_plan_node **out);
/* Window columns behind the input's. */
CK_NODISCARD ck_status ck_plan_window_rows(ck_plan *p, ck_plan_node *input, const ck_plan_window *w,
                                           ck_plan_node **out);
CK_NODISCARD ck_status ck_plan_window_agg(ck_plan *p, ck_plan_node *input, const ck_plan_window *w, ck_columns keys,
                                          const ck_plan_aggregate *calls, uint32_t call_count, const char *key_text,
                                          const char *const *call_names, ck_plan_node **out);
/* The same node over other inputs of the same shape; identity and canonical text stay. */
CK_NODISCARD ck_status ck_plan_with_inputs(ck_plan *p, const ck_plan_node *n, ck_plan_node *const *inputs,
                                           ck_plan_node **out);
/* The stateful node `made` stands for `bound` of the bound plan: it keeps that one's identity, and its late tables. */
void ck_plan_keep_identity(ck_plan_node *made, const ck_plan_node *bound);

/* Fills the meaning of n and of what is below it, where it is not known: of the bound plan, before it is rewritten. */
CK_NODISCARD ck_status ck_plan_mean(ck_plan *p, ck_plan_node *n);
/* What rows of one branch mean; and what they would if of a UNION ALL below it (under a GROUP BY, say) only one branch
 * were there, for each; none: count 0. */
typedef struct ck_plan_branch {
    uint64_t rows;
    const uint64_t *over;
    uint32_t over_count;
} ck_plan_branch;
/* Each branch of UNION ALL that n is, n itself where it is none; after ck_plan_mean. */
CK_NODISCARD ck_status ck_plan_branches(ck_plan *p, const ck_plan_node *n, const ck_plan_branch **out, uint32_t *count);

/* ---- helpers ---- */

ck_expr *ck_plan_column(ck_plan *p, const ck_plan_node *n, uint32_t column); /* a reference to a column of n's output */
/* Whether some unique key of n consists of these columns only: then they are unique together. */
bool ck_plan_is_unique(const ck_plan_node *n, const uint32_t *columns, uint32_t count);
/* Names of n's columns, as ck_expr_print wants them. */
const char *const *ck_plan_names(ck_plan *p, const ck_plan_node *n);
/* Whether a column of n holds no NULL, by its type or by a condition below that lets none through. */
bool ck_plan_is_not_null(const ck_plan_node *n, uint32_t column);
/* A type as text, NULL without memory: where it is not only for a message. */
const char *ck_plan_type_text(ck_plan *p, const ck_type *t);
/* Whether the projection only passes on columns 0..n of its input, all of them. */
bool ck_plan_is_identity(const ck_plan_node *project);
const char *ck_plan_kind_name(ck_plan_kind k);

/* ---- event time ---- */

typedef enum ck_time_role {
    CK_TIME_NONE,
    CK_TIME_ROW,
    CK_TIME_WINDOW_START,
    CK_TIME_WINDOW_END,
    CK_TIME_PROCESSING, /* PROCTIME() */
} ck_time_role;
typedef struct ck_time_origin {
    ck_time_role role;
    const ck_plan_node *node; /* the scan, union or window it is from */
    int64_t lateness_us;      /* what the table allows */
    const ck_catalog_entry *table;
} ck_time_origin;
/* Whether a column of n is event time that a watermark goes with, or of a window. */
ck_time_origin ck_plan_time_of(const ck_plan_node *n, uint32_t column);
/* Whether a GROUP BY takes window_start or window_end alone: a group like any other, which nothing ends. */
bool ck_plan_groups_half_a_window(const ck_plan_node *n);
bool ck_plan_calls_proctime(const ck_expr *e); /* PROCTIME() */
/* By node id, which must be false: somebody above n, or over all of it, reckons with the time of its rows. */
void ck_plan_mark_timed(const ck_plan_node *n, bool above, bool *timed, bool *seen);
/* Whether n itself reckons with event time. */
bool ck_plan_uses_time(const ck_plan_node *n);
bool ck_plan_time_bounds(const ck_plan_node *join, ck_time_bounds *out);
/* A join that takes back what it said, of windows by their ends: what it keeps goes with them. Of *out left, right and
 * slack_us count. */
bool ck_plan_forgets_windows(const ck_plan_node *join, ck_time_bounds *out);
/* A conjunct that says how far apart two timestamps are, one of either side, and nothing else: between which bounds
 * right - left is. Only left, right, lower_us and upper_us are set. */
bool ck_plan_distance(const ck_plan_node *join, const ck_expr *conjunct, ck_time_bounds *out);
/* Whether the bounds say all that this conjunct of the join does. */
bool ck_plan_bounds_time(const ck_plan_node *join, const ck_expr *conjunct);
/* Whether a pair of columns, each of its side, are the starts or ends of windows. */
bool ck_plan_pairs_windows(const ck_plan_node *join, uint32_t left, uint32_t right);
/* n, a projection over `window` with filters and projections between, without the window: its columns become the time
 * column. *out NULL: something between computes with them. */
CK_NODISCARD ck_status ck_plan_strip_window(ck_plan *p, ck_plan_node *n, const ck_plan_node *window,
                                            ck_plan_node **out);
const char *ck_plan_window_word(ck_plan_window_kind k);

/* ---- carry.c ---- */
/* Values of a table's row - expressions over its physical columns - where rows of *n still are rows of the table: *n
 * becomes a node that has them too, its own columns first and as they were; out[i] is the column of value i. *fine
 * false: rows of *n are others (groups, joins), and *n stays. */
CK_NODISCARD ck_status ck_plan_carry(ck_plan *p, ck_plan_node **n, const ck_catalog_entry *table,
                                     ck_expr *const *values, uint32_t count, uint32_t *out, bool *fine);

/* ---- joins ---- */

typedef enum ck_join_side { CK_SIDE_NONE, CK_SIDE_LEFT, CK_SIDE_RIGHT, CK_SIDE_BOTH } ck_join_side;
typedef struct ck_join_pair { /* left = right, each over the columns of the join; types may still differ */
    ck_expr *left, *right;
    bool null_safe;
} ck_join_pair;

ck_join_side ck_join_side_of(const ck_expr *e, uint32_t left_count);
/* Whether a conjunct says that something of the left equals something of the right. */
bool ck_join_equality(const ck_expr *e, uint32_t left_count, ck_join_pair *out);
bool ck_join_pads_right(ck_join_kind k);
bool ck_join_pads_left(ck_join_kind k);
bool ck_join_keeps_left_only(ck_join_kind k);
const char *ck_join_kind_name(ck_join_kind k); /* "inner", "left" ... as parameters say */

/* What a state keeps growing for; "GROUP BY", "DISTINCT". NULL when bounded by its nature. */
bool ck_plan_grows(const ck_plan_node *n);
/* A join keeps rows of this input: not where the other is read first and they only go past it. */
bool ck_plan_join_keeps(const ck_plan_node *n, uint32_t side);
/* The join's rows come in the order of this side's, with its watermark: the other side ends and is read first. */
bool ck_plan_join_passes_time(const ck_plan_node *n, uint32_t side);
/* ... of input that does not end, for ever. */
bool ck_plan_join_grows(const ck_plan_node *n, uint32_t side);

#endif
