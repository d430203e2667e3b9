/* The binder from the inside: from syntax to the logical plan. Names get a meaning, expressions a type, clauses become
 * nodes. Every failure has its place in the text. */
#ifndef CK_SQL_BIND_BIND_INT_H
#define CK_SQL_BIND_BIND_INT_H

#include "sql/bind/bind.h"
#include "sql/parse/ast.h"
#include "sql/plan/plan.h"

enum { CK_BIND_VIEWS_MAX = 100 }; /* views over views */

/* Columns with these bits are not of the input: they stand for what is computed later, until the clause is done. */
#define CK_BIND_AGGREGATE 0x40000000u /* + number in the aggregate list */

/* One table in FROM: a range of the scope's columns. */
typedef struct ck_scope_table {
    ck_view name; /* alias or table name, as it is compared; empty: cannot be qualified */
    uint32_t first, count;
} ck_scope_table;

/* What names mean: the output columns of a node, grouped by table. */
typedef struct ck_scope {
    ck_plan_node *node; /* NULL: nothing can be named here */
    bool no_from;       /* node is one row without columns */
    ck_scope_table *tables;
    uint32_t table_count;
    const char *const *canonical; /* names for canonical texts: qualified where they would be ambiguous */
} ck_scope;

/* Aggregates met in the clauses of one SELECT, each once. */
typedef struct ck_bound_call {
    const ck_aggregate *fn;
    ck_expr *arg, *filter; /* over the FROM scope; NULL = none */
    bool distinct;
    const ck_type *type;
    bool nullable;
    const char *name; /* default column name */
} ck_bound_call;
typedef struct ck_bound_calls {
    ck_bound_call *at;
    uint32_t count, capacity;
} ck_bound_calls;

/* Where an expression stands. */
typedef struct ck_bind_place {
    ck_scope *scope;
    const char *clause;          /* "WHERE": for messages */
    ck_bound_calls *calls;       /* aggregates are collected here; NULL: none may stand here */
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

/* ---- errors ---- */
ck_status ck_bind_fail(ck_binder *b, ck_pos at, const char *fmt, ...) CK_PRINTF(3, 4);   /* CK_INVALID */
ck_status ck_bind_refuse(ck_binder *b, ck_pos at, const char *fmt, ...) CK_PRINTF(3, 4); /* CK_REFUSED */
/* An error of a lower room, in b->err without a place, gets this one. CK_OK passes. */
ck_status ck_bind_at(ck_binder *b, ck_pos at, ck_status s);
ck_status ck_bind_nomem(ck_binder *b);
static inline int ck_cut(ck_view v) { return v.n > 80 ? 80 : (int)v.n; } /* for %.*s */
#define CK_BIND_ARRAY(b, count, type) ((type *)ck_plan_array(&(b)->plan, (count), sizeof(type)))

/* ---- scope.c ---- */
CK_NODISCARD ck_status ck_scope_of_node(ck_binder *b, ck_plan_node *node, ck_view table, ck_scope *out);
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

/* ---- aggregate.c ---- */
CK_NODISCARD ck_status ck_bind_aggregate(ck_binder *b, const ck_bind_place *place, const ck_aggregate *fn,
                                         const ck_ast_expr *e, ck_expr **out);

/* ---- group.c ---- */
typedef struct ck_grouping {
    ck_expr **keys; /* over the FROM scope */
    ck_pos *key_pos;
    uint32_t key_count;
    ck_bound_calls calls;
    ck_plan_node *node; /* the aggregate, once made */
} ck_grouping;
CK_NODISCARD ck_status ck_bind_group_keys(ck_binder *b, const ck_ast_select *s, ck_scope *scope, ck_expr *const *items,
                                          const ck_ast_ident *aliases, uint32_t item_count, ck_grouping *g);
bool ck_bind_has_aggregate(const ck_expr *e);
CK_NODISCARD ck_status ck_bind_group_node(ck_binder *b, ck_scope *scope, ck_grouping *g);
/* An expression over FROM and CK_BIND_AGGREGATE columns, over the aggregate's output instead. */
CK_NODISCARD ck_status ck_bind_over_groups(ck_binder *b, const ck_grouping *g, const ck_scope *scope, ck_expr *e,
                                           ck_pos at, ck_expr **out);

/* ---- from.c, select.c, query.c, values.c ---- */
CK_NODISCARD ck_status ck_bind_from(ck_binder *b, const ck_ast_from *list, ck_scope *out);
CK_NODISCARD ck_status ck_bind_table(ck_binder *b, const ck_ast_from *f, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_scan(ck_binder *b, const ck_catalog_entry *e, ck_pos at, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_query(ck_binder *b, const ck_ast_query *q, bool root, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_distinct(ck_binder *b, ck_plan_node *n, ck_plan_node **out); /* each row once */
CK_NODISCARD ck_status ck_bind_values(ck_binder *b, const ck_ast_query *q, ck_plan_node **out);
/* Output columns under other names (one each; NULL keeps). */
CK_NODISCARD ck_status ck_bind_rename(ck_binder *b, ck_plan_node *n, const char *const *names, ck_plan_node **out);
CK_NODISCARD ck_status ck_bind_rename_to(ck_binder *b, ck_plan_node *n, const ck_ast_names *names, const char *what,
                                         ck_plan_node **out);

typedef struct ck_sort_item {
    uint32_t column; /* of the select's output, hidden ones behind the visible */
    bool descending, nulls_first;
} ck_sort_item;

/* A SELECT with the columns its ORDER BY needs: `visible` of the node's columns are the result. */
typedef struct ck_bound_select {
    ck_plan_node *node;
    uint32_t visible;
    ck_sort_item *order;
    uint32_t order_count;
} ck_bound_select;
CK_NODISCARD ck_status ck_bind_select(ck_binder *b, const ck_ast_select *s, const ck_ast_orders *order,
                                      ck_bound_select *out);

#endif
