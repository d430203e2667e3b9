/* The binder from the inside: from syntax to the logical plan. Names get a meaning, expressions a type, clauses become
 * nodes. Every failure has its place in the text. */
#ifndef CK_SQL_BIND_BIND_INT_H
#define CK_SQL_BIND_BIND_INT_H

#include "base/suggest.h"
#include "sql/bind/bind.h"
#include "sql/parse/ast.h"
#include "sql/plan/plan.h"

enum {
    CK_BIND_VIEWS_MAX = 100, /* views over views */
    CK_BIND_WITH_MAX = 200,  /* WITH queries over WITH queries */
    CK_BIND_PARAMETERS_MAX = 100,
};

/* Columns with these bits are not of the input: they stand for what is computed later, until the clause is done. */
#define CK_BIND_AGGREGATE 0x40000000u /* + number in the aggregate list */
#define CK_BIND_WINDOW    0x20000000u /* + number in the list of OVER calls */
#define CK_BIND_OUTER     0x10000000u /* + column of the query around this one */
#define CK_BIND_SUBQUERY  0x08000000u /* + number in the list of subqueries that are joined later */

/* One table in FROM: a range of the scope's columns. */
typedef struct ck_scope_table {
    ck_view name; /* alias or table name, as it is compared; empty: cannot be qualified */
    uint32_t first, count;
    bool merged; /* columns of USING, which * names first */
} ck_scope_table;

/* What names mean: the output columns of a node, grouped by table. */
typedef struct ck_scope {
    ck_plan_node *node; /* NULL: nothing can be named here */
    bool no_from;       /* node is one row without columns */
    ck_scope_table *tables;
    uint32_t table_count;
    const bool *hidden;           /* columns that are found only qualified (USING has merged them); NULL: none */
    const char *const *canonical; /* names for canonical texts: qualified where they would be ambiguous */
    bool has_window;              /* GROUP BY TUMBLE(...): its columns stand at window_first */
    uint32_t window_first;
} ck_scope;

/* Aggregates met in the clauses of one SELECT, each once. */
typedef struct ck_bound_call {
    const ck_aggregate *fn; /* NULL: GROUPING(grouping ...), known only when the keys are */
    const ck_ast_expr *grouping;
    ck_expr *arg, *filter; /* over the FROM scope; NULL = none */
    bool distinct, ignores_nulls;
    ck_expr **order; /* of the values */
    const ck_plan_order *directions;
    uint32_t order_count;
    ck_view separator;
    double fraction;
    const ck_type *type;
    bool nullable;
    const char *name; /* default column name */
    ck_pos at;
} ck_bound_call;
typedef struct ck_bound_calls {
    ck_bound_call *at;
    uint32_t count, capacity;
} ck_bound_calls;

/* A call with OVER. */
typedef struct ck_bound_frame {
    bool rows, range;    /* which is written; neither: the default */
    bool bounded, whole; /* begins `preceding` before the row; is all of the partition */
    bool interval;       /* preceding is a time in microseconds */
    uint64_t preceding;
    ck_pos pos;
} ck_bound_frame;
typedef struct ck_bound_window {
    const char *fn; /* "row_number", "sum" */
    bool is_rank;
    ck_rank rank;
    ck_expr *arg;    /* NULL = none */
    uint64_t offset; /* of LAG and LEAD */
    const ck_type *type;
    bool nullable;
    ck_bound_frame frame;
    ck_expr **partition, **order; /* over what the SELECT list is over */
    uint32_t partition_count, order_count;
    const ck_plan_order *directions; /* of order; columns unset */
    ck_pos pos, over;                /* of the call, and of what stands behind OVER */
    bool any_frame;                  /* what it gives does not depend on it */
} ck_bound_window;
typedef struct ck_bound_windows {
    ck_bound_window *at;
    uint32_t count, capacity;
} ck_bound_windows;

/* The query around a subquery, and what ties the two together. Filled while the subquery is bound. */
typedef struct ck_outer {
    struct ck_scope *scope; /* of the query around */
    bool scalar;            /* the subquery is used as a value */
    uint32_t visible;       /* columns of the subquery's own; what ties stands behind */
    uint32_t pair_count;    /* outer_exprs[i] = column inner_columns[i] of the subquery */
    ck_expr **outer_exprs;  /* over the outer scope */
    ck_expr **inner_exprs;  /* over the subquery's FROM, until its node is made */
    uint32_t *inner_columns;
    bool *null_safe;
    ck_expr **residual; /* other conditions: outer columns as CK_BIND_OUTER, inner ones of the subquery's output */
    uint32_t residual_count;
    ck_expr *value; /* of a correlated aggregate, over the subquery's output, where no row means an empty group; NULL */
    bool *is_count; /* columns of that output that are 0 of an empty group */
} ck_outer;

/* A subquery used as a value, to be joined to what the clause turns out to be over. */
typedef struct ck_later {
    ck_plan_node *node;
    ck_outer outer;
    ck_expr *value; /* over node's columns */
    bool always;    /* exactly one row, whatever the outer row: an inner join */
    ck_pos pos;
} ck_later;
typedef struct ck_laters {
    ck_later *at;
    uint32_t count, capacity;
} ck_laters;

/* Where an expression stands. */
typedef struct ck_bind_place {
    ck_scope *scope;
    const char *clause;          /* "WHERE": for messages */
    ck_bound_calls *calls;       /* aggregates are collected here; NULL: none may stand here */
    ck_outer *outer;             /* WHERE of a subquery: columns of the query around may stand here */
    const ck_outer *shut;        /* other clauses of it: they may not, and this tells so */
    bool queries;                /* subqueries may stand here */
    ck_laters *laters;           /* they are joined later; NULL: to the scope at once */
    ck_bound_windows *windows;   /* OVER calls are collected here; NULL: none may stand here */
    const ck_ast_window *named;  /* WINDOW w AS (...) */
    const char *inside;          /* name of the aggregate whose argument this is; NULL */
    const ck_ast_items *aliases; /* of the SELECT list, which this clause does not see: for messages; NULL */
} ck_bind_place;

typedef struct ck_cte { /* visible WITH queries, innermost first */
    const ck_ast_cte *ast;
    ck_plan_node *node;  /* bound on first use */
    struct ck_cte *next; /* what its own query sees */
} ck_cte;

typedef struct ck_bound_view {
    const ck_catalog_entry *entry;
    bool emit_on_close;
    ck_plan_node *node; /* NULL: being bound */
    struct ck_bound_view *next;
} ck_bound_view;

/* The hint STATE_TTL('t' = '1h') of a SELECT: hints.c. Begun before its FROM is bound; at the end all must have been
 * used. */
typedef struct ck_ttl_hints {
    const ck_ast_hint *hints;
    bool *used; /* by option, in their order */
    struct ck_ttl_hints *around;
} ck_ttl_hints;
CK_NODISCARD ck_status ck_bind_hints_begin(struct ck_binder *b, const ck_ast_hint *hints, ck_ttl_hints *out);
CK_NODISCARD ck_status ck_bind_hints_end(struct ck_binder *b, ck_ttl_hints *h);
/* The rows of n are known as this: what the hints say of them. */
CK_NODISCARD ck_status ck_bind_ttl_hint(struct ck_binder *b, ck_view known_as, ck_plan_node **n);

/* What FOR SYSTEM_TIME AS OF right of a join means: the right side becomes that of its versions, the conjuncts that
 * compare its key come first. temporal.c */
CK_NODISCARD ck_status ck_bind_as_of(struct ck_binder *b, const ck_ast_from *f, ck_scope *left, ck_scope *right,
                                     ck_expr **on, uint32_t count, ck_plan_as_of *out);

/* ---- errors ---- */
ck_status ck_bind_fail(ck_binder *b, ck_pos at, const char *fmt, ...) CK_PRINTF(3, 4);   /* CK_INVALID */
ck_status ck_bind_refuse(ck_binder *b, ck_pos at, const char *fmt, ...) CK_PRINTF(3, 4); /* CK_REFUSED */
/* An error of a lower room, in b->err without a place, gets this one. CK_OK passes. */
ck_status ck_bind_at(ck_binder *b, ck_pos at, ck_status s);
/* DROP or SHOW CREATE FUNCTION of what is none. */
ck_status ck_bind_no_own_function(ck_binder *b, const ck_ast_ident *name);
/* "; did you mean "x"?" behind what is said of the wanted name, "" where nothing is near. */
const char *ck_bind_near(ck_binder *b, const ck_suggest *near);
ck_status ck_bind_nomem(ck_binder *b);
static inline int ck_cut(ck_view v) { return v.n > 80 ? 80 : (int)v.n; } /* for %.*s */
#define CK_BIND_ARRAY(b, count, type) ((type *)ck_plan_array(&(b)->plan, (count), sizeof(type)))

/* ---- scope.c ---- */
CK_NODISCARD ck_status ck_scope_of_node(ck_binder *b, ck_plan_node *node, ck_view table, ck_scope *out);
/* Column of a name that is not qualified; CK_NO_COLUMN: none; *twice: several. */
uint32_t ck_scope_find(const ck_scope *s, ck_view name, bool quoted, bool *twice);
/* After a join has put columns without names behind the node's. */
CK_NODISCARD ck_status ck_scope_extended(ck_binder *b, ck_scope *s, uint32_t old_width);
CK_NODISCARD ck_status ck_scope_canonical(ck_binder *b, ck_scope *s); /* fills canonical from node and tables */
/* A NAME, or a FIELD chain down to one. */
CK_NODISCARD ck_status ck_bind_name(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
/* Columns that * or t.* (star->args) stands for: appended to columns[0..*count), which has room for all of the scope.
 */
CK_NODISCARD ck_status ck_scope_star(ck_binder *b, ck_scope *s, const ck_ast_expr *star, uint32_t *columns,
                                     uint32_t *count);
/* Column of a name among fields: exact, else in any case when unquoted. CK_NO_COLUMN: none; *twice: several. */
uint32_t ck_bind_find_field(const ck_schema *s, uint32_t first, uint32_t count, ck_view name, bool quoted, bool *twice);

/* ---- type.c, literal.c ---- */
CK_NODISCARD ck_status ck_bind_type(ck_binder *b, const ck_ast_type *t, ck_arena *arena, const ck_type **out);
CK_NODISCARD ck_status ck_bind_literal(ck_binder *b, const ck_ast_expr *e, bool negative, ck_expr **out);
CK_NODISCARD ck_status ck_bind_interval(ck_binder *b, const ck_ast_expr *e, ck_expr **out);
CK_NODISCARD ck_status ck_bind_string(ck_binder *b, ck_view text, ck_pos at, ck_expr **out);

/* ---- expr.c, expr_call.c ---- */
CK_NODISCARD ck_status ck_bind_expr(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
CK_NODISCARD ck_status ck_bind_exprs(ck_binder *b, const ck_bind_place *place, const ck_ast_exprs *list,
                                     ck_expr ***out);
CK_NODISCARD ck_status ck_bind_condition(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
/* Conjuncts of a condition, left to right. */
CK_NODISCARD ck_status ck_bind_conjuncts(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr ***out,
                                         uint32_t *count);
CK_NODISCARD ck_status ck_bind_call_expr(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
/* ck_expr_call with the place of the call in errors and in the node. */
CK_NODISCARD ck_status ck_bind_function(ck_binder *b, const char *name, ck_expr *const *args, uint32_t count, ck_pos at,
                                        ck_expr **out);
CK_NODISCARD ck_status ck_bind_cast(ck_binder *b, ck_expr *e, const ck_type *to, bool try_cast, ck_pos at,
                                    ck_expr **out);
/* A constant's value; an error in it is an error of the statement. */
CK_NODISCARD ck_status ck_bind_fold(ck_binder *b, ck_expr *e, ck_pos at, ck_expr **out);
/* A non-negative whole number that is known now: LIMIT, OFFSET. */
CK_NODISCARD ck_status ck_bind_count(ck_binder *b, const char *clause, const ck_ast_expr *e, uint64_t *out);
/* Type that values of all these types can take, through what CASE would do. */
CK_NODISCARD ck_status ck_bind_common_type(ck_binder *b, ck_expr *const *examples, uint32_t count, const ck_type **out);
/* Name of a column whose expression has no alias; NULL: none of its own. In the arena. */
CK_NODISCARD ck_status ck_bind_default_name(ck_binder *b, const ck_ast_expr *e, uint32_t index, const char **out);

/* What INSERT, arguments and results of functions convert by themselves; the rest asks for a CAST. */
bool ck_bind_assigns(const ck_type *from, const ck_type *to);
bool ck_bind_is_time_window(ck_view function);

/* ---- create_function.c ---- */
/* A call of a function made with CREATE FUNCTION: its body over the arguments. */
CK_NODISCARD ck_status ck_bind_own_function(ck_binder *b, const ck_bind_place *place, const ck_catalog_entry *e,
                                            const ck_ast_expr *call, ck_expr **out);

/* ---- aggregate.c ---- */
/* Expressions of an ORDER BY and their directions, columns unset. */
CK_NODISCARD ck_status ck_bind_directions(ck_binder *b, const ck_bind_place *place, const ck_ast_orders *orders,
                                          ck_expr ***exprs, const ck_plan_order **directions);
CK_NODISCARD ck_status ck_bind_aggregate(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn,
                                         const ck_ast_expr *e, ck_expr **out);
CK_NODISCARD ck_status ck_bind_grouping(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);

/* ---- subquery.c: IN, EXISTS, scalar subqueries become joins ---- */
/* A conjunct of WHERE that is [NOT] EXISTS or [NOT] IN: *done, and the scope's node keeps only its rows. */
CK_NODISCARD ck_status ck_bind_subquery_conjunct(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e,
                                                 bool *done);
bool ck_bind_has_query(const ck_ast_expr *e);
/* The conjuncts of a condition that have subqueries: the scope's node keeps only the rows they let through; it may have
 * more columns behind. */
CK_NODISCARD ck_status ck_bind_query_conjuncts(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e);
/* Any other: an expression over columns that a join adds. */
CK_NODISCARD ck_status ck_bind_subquery(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
/* Joins what was collected to *node; outer expressions have been lifted to its columns. */
CK_NODISCARD ck_status ck_bind_join_laters(ck_binder *b, ck_laters *l, ck_plan_node **node, ck_expr **exprs,
                                           uint32_t count);
/* ---- correlate.c: the subquery's side ---- */
/* Takes the conjuncts with outer columns out of conjuncts[0..*count). */
CK_NODISCARD ck_status ck_bind_correlated(ck_binder *b, ck_outer *o, ck_expr **conjuncts, uint32_t *count, ck_pos at);
bool ck_bind_has_outer(const ck_expr *e);

/* ---- over.c ---- */
/* What the call is, its arguments and its frame. */
CK_NODISCARD ck_status ck_bind_over_call(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e,
                                         const ck_ast_window *spec, ck_bound_window *out);
/* One node for the calls list[0..count) of w, which have one window; their columns are the last of it, in order. */
CK_NODISCARD ck_status ck_bind_over_node(ck_binder *b, const ck_bound_windows *w, const uint32_t *list, uint32_t count,
                                         ck_plan_node **node);

/* ---- window.c ---- */
/* LAG(x, n, value) and LEAD: value where there is no such row. */
bool ck_bind_is_look_or(const ck_ast_expr *e);
CK_NODISCARD ck_status ck_bind_look_or(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
CK_NODISCARD ck_status ck_bind_over(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out);
/* A node over `node` for each OVER call; their placeholders in exprs[0..count) become columns of the last one. */
CK_NODISCARD ck_status ck_bind_window_nodes(ck_binder *b, const ck_bound_windows *w, ck_plan_node **node,
                                            ck_expr **exprs, uint32_t count);
static inline bool ck_bind_is_placeholder(const ck_expr *e, uint32_t bit) {
    return e->kind == CK_EXPR_COLUMN && (e->column & bit);
}

/* ---- group.c ---- */
typedef struct ck_grouping {
    ck_expr **keys; /* over the FROM scope */
    uint32_t key_count;
    uint64_t *sets; /* GROUPING SETS: a bit a key; NULL: one set of all keys */
    uint32_t set_count;
    ck_bound_calls calls;
    ck_plan_node *node; /* the aggregate, once made */
    bool by_window;     /* GROUP BY TUMBLE(...) */
    ck_pos window_pos;
} ck_grouping;
CK_NODISCARD ck_status ck_bind_group_keys(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_expr *const *items,
                                          const ck_ast_ident *aliases, uint32_t item_count, const ck_outer *o,
                                          ck_grouping *g);
bool ck_bind_has_grouping_sets(const ck_ast_select *s);
bool ck_bind_has_placeholder(const ck_expr *e, uint32_t bits);
CK_NODISCARD ck_status ck_bind_group_node(ck_binder *b, ck_scope *scope, ck_grouping *g);
/* An expression over FROM and CK_BIND_AGGREGATE columns, over the aggregate's output instead. */
CK_NODISCARD ck_status ck_bind_over_groups(ck_binder *b, const ck_grouping *g, const ck_scope *scope, ck_expr *e,
                                           ck_pos at, ck_expr **out);

/* ---- join.c ---- */
/* Two scopes side by side: tables of both, canonical names; node is of these columns. */
CK_NODISCARD ck_status ck_scope_combine(ck_binder *b, const ck_scope *left, const ck_scope *right, ck_plan_node *node,
                                        ck_scope *out);
CK_NODISCARD ck_status ck_bind_join(ck_binder *b, const ck_ast_from *f, ck_scope *left, const ck_scope *right,
                                    ck_scope *out);
CK_NODISCARD ck_status ck_bind_cross(ck_binder *b, const ck_scope *left, const ck_scope *right, ck_pos at,
                                     ck_scope *out);
/* Conjuncts of WHERE that are equalities of inner joins below move into them; the rest stays in conjuncts[0..*count).
 */
CK_NODISCARD ck_status ck_bind_absorb(ck_binder *b, ck_scope *scope, ck_expr **conjuncts, uint32_t *count);
/* Every join below has an equality, or a side of one row. */
CK_NODISCARD ck_status ck_bind_check_joins(ck_binder *b, ck_plan_node *n, ck_pos at);
/* Refused at `at` when the registry has no such operator: "<what> not supported yet". */
CK_NODISCARD ck_status ck_bind_needs(ck_binder *b, const char *type, ck_pos at, const char *what);

/* ---- time_window.c ---- */
bool ck_bind_is_window(ck_view function);
/* TABLE(TUMBLE(...)) in FROM. */
CK_NODISCARD ck_status ck_bind_window_table(ck_binder *b, const ck_ast_from *f, ck_plan_node **out);
/* GROUP BY TUMBLE(...): the scope's rows get the window's columns. */
/* A fixed time, an INTERVAL of days or less, in microseconds. */
CK_NODISCARD ck_status ck_bind_duration(ck_binder *b, const ck_ast_expr *e, const char *what, bool may_be_zero,
                                        int64_t *out);
CK_NODISCARD ck_status ck_bind_group_window(ck_binder *b, const ck_ast_select *s, ck_scope *scope);
/* TUMBLE_START(...) and the like; *is_one false: it is another function. */
CK_NODISCARD ck_status ck_bind_window_function(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e,
                                               bool *is_one, ck_expr **out);
/* late_table.c: where rows of *n that come too late, by the event time in this column, go, if their table says so. *n
 * gets the columns that takes, behind its own. */
CK_NODISCARD ck_status ck_bind_late_rows(ck_binder *b, uint32_t time, ck_pos at, ck_plan_node **n, ck_plan_late *out);
/* The late_table of these rows' table by its name; NULL: it has none. */
const char *ck_bind_late_table_of(const ck_plan_node *n, uint32_t time);
/* The aggregate when its keys name a window: of keys and calls as ck_plan_aggregate_node; *out NULL: they do not. */
CK_NODISCARD ck_status ck_bind_window_agg(ck_binder *b, ck_plan_node *input, ck_columns group,
                                          const ck_plan_aggregate *calls, uint32_t call_count, const char *key_text,
                                          const char *const *names, bool grouped_by_call, ck_pos at,
                                          ck_plan_node **out);

/* ---- unnest.c ---- */
bool ck_bind_is_unnest(const ck_ast_from *f);
/* left CROSS or LEFT JOIN UNNEST(...): elements beside the columns of left. */
CK_NODISCARD ck_status ck_bind_unnest(ck_binder *b, const ck_ast_from *f, ck_scope *left, bool outer, ck_scope *out);

/* ---- from.c, select.c, query.c, values.c ---- */
CK_NODISCARD ck_status ck_bind_from(ck_binder *b, const ck_ast_from *list, ck_scope *out);
CK_NODISCARD ck_status ck_bind_table(ck_binder *b, const ck_ast_from *f, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_scan(ck_binder *b, const ck_catalog_entry *e, ck_pos at, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_query(ck_binder *b, const ck_ast_query *q, bool root, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_distinct(ck_binder *b, ck_plan_node *n, ck_plan_node **out); /* each row once */
/* The same of SELECT DISTINCT and UNION: as GROUP BY all columns. */
CK_NODISCARD ck_status ck_bind_select_distinct(ck_binder *b, ck_plan_node *n, ck_pos at, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_values(ck_binder *b, const ck_ast_query *q, ck_plan_node **out);
/* Output columns under other names (one each; NULL keeps). */
CK_NODISCARD ck_status ck_bind_rename(ck_binder *b, ck_plan_node *n, const char *const *names, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_rename_to(ck_binder *b, ck_plan_node *n, const ck_ast_names *names, const char *what,
                                         ck_plan_node **out);

/* A SELECT with the columns its ORDER BY needs: `visible` of the node's columns are the result. */
typedef struct ck_bound_select {
    ck_plan_node *node;
    uint32_t visible;
    ck_plan_order *order; /* columns of the output, hidden ones behind the visible */
    uint32_t order_count;
} ck_bound_select;
CK_NODISCARD ck_status ck_bind_select(ck_binder *b, const ck_ast_select *s, const ck_ast_orders *order,
                                      ck_bound_select *out);

/* ---- correlate.c, once the subquery's node is made ---- */
/* Puts what ties behind exprs[0..*count), which has room for the pairs and all columns of the scope. */
CK_NODISCARD ck_status ck_bind_ties(ck_binder *b, const ck_scope *scope, const ck_grouping *g,
                                    const ck_plan_node *input, ck_outer *outer, ck_expr **exprs, const char **names,
                                    uint32_t *count);
CK_NODISCARD ck_status ck_bind_where_having(ck_binder *b, ck_expr *const *having, uint32_t count, ck_pos at,
                                            ck_expr **value);
CK_NODISCARD ck_status ck_bind_groups_as_value(ck_binder *b, const ck_scope *scope, const ck_grouping *g,
                                               ck_expr *value, ck_plan_node *node, ck_outer *outer,
                                               ck_bound_select *out);

#endif
