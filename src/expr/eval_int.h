/* Compiled expressions from the inside: nodes, steps, and one subtask's run state.
 *
 * A program has its expressions compiled twice, as values (ck_eval_run) and as conjuncts (ck_eval_filter); each is a
 * ck_code: a flat array of steps that is run from front to back without jumps. A step computes a node (the value of one
 * expression over the rows of a scope) or a scope (the rows where something holds, always a subset of an earlier one);
 * a step over an empty scope does nothing. A node is shared by every place whose scope lies inside the node's own.
 * Errors are marks in a node's column, or, for predicates that go straight to a scope, rows in a mark list. */
#ifndef CK_EXPR_EVAL_INT_H
#define CK_EXPR_EVAL_INT_H

#include "expr/kernels.h"
#include "expr/mark.h"
#include "expr/program.h"
#include "expr/tree_int.h"

#define CK_NONE UINT32_MAX

typedef enum ck_node_kind { CK_NODE_COLUMN, CK_NODE_LITERAL, CK_NODE_CALL, CK_NODE_BOTH, CK_NODE_MERGE } ck_node_kind;

typedef struct ck_node {
    ck_node_kind kind;
    const ck_expr *expr;
    uint64_t hash;
    uint32_t scope;
    const uint32_t *args;
    uint32_t arg_count;
    uint32_t state; /* in ck_eval.states, CK_NONE: none */
    bool fixed;     /* the same for every row and batch: computed once */
    bool lasting;   /* a root or fixed: kept until the end of the batch */
} ck_node;

typedef enum ck_step_op {
    CK_STEP_CALL,   /* node: a strict call over its scope */
    CK_STEP_BOTH,   /* node: AND or OR of two nodes, the second over the same or a narrower scope */
    CK_STEP_MERGE,  /* node: layers of (scope, node), later ones over earlier ones */
    CK_STEP_WHERE,  /* to = rows of from where a node is as `where` says */
    CK_STEP_SELECT, /* to = rows of from where the call `expr` over args is TRUE */
    CK_STEP_MINUS,  /* to = from without other and without the marked rows of marks */
    CK_STEP_UNION,  /* to = from and other, which do not overlap */
} ck_step_op;

typedef enum ck_where { CK_WHERE_TRUE, CK_WHERE_NOT_FALSE, CK_WHERE_NOT_TRUE, CK_WHERE_NULL } ck_where;

typedef struct ck_layer {
    uint32_t scope, node;
} ck_layer;

typedef struct ck_step {
    ck_step_op op;
    ck_where where;
    uint32_t node;            /* result, or of WHERE the node looked at */
    uint32_t from, to, other; /* scopes */
    uint32_t marks;           /* mark list, CK_NONE: none */
    const ck_expr *expr;
    const uint32_t *args; /* SELECT: nodes */
    uint32_t arg_count, state;
    const ck_layer *layers;
    uint32_t layer_count;
    const uint32_t *release; /* nodes nobody needs after this step */
    uint32_t release_count;
} ck_step;

/* One expression as a conjunct: steps [begin, end), then `scope` holds the rows that pass. */
typedef struct ck_segment {
    uint32_t begin, end, scope, marks;
} ck_segment;

typedef struct ck_code {
    ck_step *steps;
    uint32_t step_count;
    ck_node *nodes;
    uint32_t node_count;
    uint32_t scope_count;
    uint32_t mark_list_count;
    uint32_t args_max, layers_max; /* of any step */
    uint32_t *roots;               /* values: a node an expression */
    ck_segment *segments;          /* conjuncts: one an expression */
} ck_code;

struct ck_program {
    ck_expr *const *exprs;
    uint32_t expr_count;
    ck_code values, conjuncts;
    const ck_expr **prepared; /* calls that prepare a state, each once */
    uint32_t prepared_count;
};

/* ---- run state ---- */

typedef struct ck_scope_rows {
    const uint16_t *sel; /* NULL: all rows */
    uint32_t n;
    uint16_t *buffer; /* own room for row_count + 8 rows, on first use */
} ck_scope_rows;

typedef struct ck_marked_row {
    uint16_t row;
    uint8_t mark;
} ck_marked_row;

typedef struct ck_mark_list {
    ck_marked_row *rows;
    uint32_t count, capacity;
} ck_mark_list;

typedef struct ck_code_state {
    ck_vec *values; /* by node */
    bool *owned;    /* by node: values[i].col is a reference of ours */
    ck_scope_rows *scopes;
    ck_mark_list *lists;
    ck_vec *args;                  /* room for the arguments of one step */
    struct ck_merge_input *layers; /* and for its layers */
    bool ready;
} ck_code_state;

enum { CK_POOL_DEPTH = 24, CK_POOL_KINDS = 8, CK_SPARE_BUFFERS = 4, CK_SPARE_BYTES_MAX = 1 << 20 };

typedef struct ck_column_pool {
    ck_column
        *free[CK_POOL_KINDS][CK_POOL_DEPTH]; /* by ck_phys; last in, first out, so that memory stays in the cache */
    uint32_t free_count[CK_POOL_KINDS];
    ck_column **lent; /* handed out with the last batch; taken back when nobody else holds them */
    uint32_t lent_count, lent_capacity;
    ck_buffer *spare[CK_SPARE_BUFFERS]; /* for the bytes of string results */
    uint32_t spare_count;
} ck_column_pool;

struct ck_timezone;

struct ck_eval {
    const ck_program *program;
    const ck_kernels *kernels;
    ck_proc *proc;
    ck_mem mem;
    bool error_null;
    const char *timezone;
    const char *const *column_names;
    const struct ck_timezone *zone; /* loaded when a call needs it */
    ck_arena arena;                 /* of what is prepared once */
    void **states;                  /* by prepared call */
    void *state;                    /* of the call being evaluated */
    char said[256];                 /* by a plugin, of the first row it marked */
    int64_t now_us;
    size_t text_bytes, text_bytes_max; /* made for the batch in hand, and how much may be */
    ck_code_state values, conjuncts;
    ck_column_pool pool;
    const ck_batch *batch;
    uint32_t row_count;
    uint64_t words[3][CK_BATCH_ROWS_MAX / 64]; /* scratch bitmaps: [0] of the driver, the others of kernels */
    uint16_t rows[2][CK_BATCH_ROWS_MAX + 8];   /* scratch selections: [0] of the driver, [1] of kernels */
};

/* A kernel's parameters, and bytes of a string argument (valid as long as its column). */
#define CK_KERNEL_ARGS                                                                                                 \
    ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out, ck_error *err
#define CK_ARG_STR(a, i) ck_column_str(args[a].col, CK_AT(args[a], i))
#define CK_ARG_I64(a, i) args[a].col->i64[CK_AT(args[a], i)]
#define CK_ARG_F64(a, i) args[a].col->f64[CK_AT(args[a], i)]

/* The state prepared for the call being evaluated. */
static inline void *ck_eval_state(const ck_eval *ev) { return ev->state; }

/* A writable column for a result, from the pool. NULL without memory. */
ck_column *ck_eval_column(ck_eval *ev, ck_phys phys, uint32_t row_count);
/* The same as out's column; constant when all arguments are (rows of a constant are one). */
CK_NODISCARD ck_status ck_eval_result(ck_eval *ev, ck_phys phys, const ck_rows *rows, ck_vec *out, ck_error *err);
/* Gives a reference back: into the pool if nobody else holds one. Sets NULL. */
void ck_eval_recycle(ck_eval *ev, ck_column **c);
void ck_pool_destroy(ck_eval *ev);
CK_NODISCARD ck_status ck_pool_lend(ck_eval *ev, ck_column *c); /* takes the reference */
void ck_pool_collect(ck_eval *ev);
/* A buffer for string bytes of at least `bytes`; NULL without memory. */
ck_buffer *ck_eval_buffer(ck_eval *ev, size_t bytes);

/* Mark a row of a result being written. */
CK_NODISCARD ck_status ck_eval_mark(ck_eval *ev, ck_column *c, uint32_t row, ck_mark mark, ck_error *err);

/* The rows of a loop: `for (CK_EACH_ROW(k, i, rows))` with i the physical row. */
#define CK_EACH_ROW(k, i, rows)                                                                                        \
    uint32_t k = 0, i = 0;                                                                                             \
    k < (rows)->n && (i = (rows)->sel ? (rows)->sel[k] : k, true);                                                     \
    k++
/* Index into an argument: constants have one row. */
#define CK_AT(vec, i) ((vec).constant ? 0 : (i))

/* eval_call.c: a strict call over rows, NULLs and marks included. */
CK_NODISCARD ck_status ck_eval_call(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                                    ck_error *err);
CK_NODISCARD ck_status ck_eval_select(ck_eval *ev, const ck_expr *e, const ck_vec *args, const ck_rows *rows,
                                      ck_scope_rows *to, ck_mark_list *marks, ck_error *err);

/* eval_rows.c: scopes. */
CK_NODISCARD ck_status ck_scope_reserve(ck_eval *ev, ck_scope_rows *s, ck_error *err);
CK_NODISCARD ck_status ck_scope_where(ck_eval *ev, const ck_vec *v, ck_where where, const ck_scope_rows *from,
                                      ck_scope_rows *to, ck_mark_list *marks, ck_error *err);
CK_NODISCARD ck_status ck_scope_minus(ck_eval *ev, const ck_scope_rows *from, const ck_scope_rows *other,
                                      const ck_mark_list *marks, ck_scope_rows *to, ck_error *err);
CK_NODISCARD ck_status ck_scope_union(ck_eval *ev, const ck_scope_rows *a, const ck_scope_rows *b, ck_scope_rows *to,
                                      ck_error *err);
CK_NODISCARD ck_status ck_marks_add(ck_eval *ev, ck_mark_list *list, uint32_t row, uint8_t mark, ck_error *err);

/* eval_merge.c */
typedef struct ck_merge_input {
    const ck_scope_rows *rows; /* NULL sel and n = row_count: all */
    ck_vec value;
} ck_merge_input;
CK_NODISCARD ck_status ck_eval_merge(ck_eval *ev, const ck_type *type, const ck_merge_input *in, uint32_t count,
                                     const ck_scope_rows *scope, const ck_mark_list *marks, ck_vec *out, ck_error *err);
CK_NODISCARD ck_status ck_eval_both(ck_eval *ev, bool is_and, const ck_vec *a, const ck_vec *b, const ck_scope_rows *sb,
                                    ck_vec *out, ck_error *err);
/* A column of row_count rows with value's values (a constant's everywhere) at `rows`, as a reference for the caller. */
CK_NODISCARD ck_status ck_eval_copy(ck_eval *ev, const ck_type *type, const ck_vec *value, const ck_scope_rows *rows,
                                    uint32_t row_count, ck_column **out, ck_error *err);

/* As ck_eval_run of one expression, but a failing row's mark is *mark, and then *out is NULL. */
CK_NODISCARD ck_status ck_eval_run_marked(ck_eval *ev, const ck_batch *b, ck_column **out, uint8_t *mark,
                                          ck_error *err);
/* explain.c: the sentence for a marked row of expression e. Returns CK_DATA. */
ck_status ck_eval_explain(ck_eval *ev, const ck_batch *b, const ck_expr *e, uint32_t row, uint8_t mark, ck_error *err);

/* compile_*.c */
CK_NODISCARD ck_status ck_code_compile(ck_arena *a, ck_program *p, bool conjuncts, ck_code *out, ck_error *err);

/* literal.c: a literal as a column of one row. */
CK_NODISCARD ck_status ck_literal_column(ck_mem mem, const ck_type *type, const ck_datum *value, ck_column **out,
                                         ck_error *err);
/* Row 0 of a column as a datum (strings borrowed from it). */
ck_datum ck_column_datum(const ck_column *c, uint32_t row);

#endif
