/* From syntax to the logical plan, statement by statement, against a catalog. */
#ifndef CK_SQL_BIND_BIND_H
#define CK_SQL_BIND_BIND_H

#include "sql/catalog/catalog.h"
#include "sql/parse/ast.h"
#include "sql/plan/plan.h"

struct ck_cte;
struct ck_outer;
struct ck_bound_view;

/* Where rows of the script end: a table, or the result of a bare SELECT. */
typedef struct ck_output {
    ck_plan_node *node;
    const ck_catalog_entry *table; /* NULL: the result */
    const ck_schema *schema;       /* as bound: names survive what the optimiser does */
    const uint32_t *key;           /* columns of node: the table's primary key */
    uint32_t key_count;
    const ck_plan_branch *branches; /* of UNION ALL; of the bound plan */
    uint32_t branch_count;
    bool rows_meet; /* several rows of the node may have one key: the greatest is what the table shows */
    ck_pos pos;
} ck_output;

/* State of binding one script. Zeroed except the members of the first group. */
typedef struct ck_binder {
    ck_catalog *catalog;
    const ck_sql_options *options;
    const ck_source_text *source; /* of the statement or view being bound */
    ck_error *err;
    ck_plan plan; /* arena, err, changes set */

    struct ck_cte *ctes;
    struct ck_outer *outer; /* for the SELECT that is bound next; it takes it */
    struct ck_bound_view *views;
    struct ck_ttl_hints *ttl_hints; /* of the SELECT being bound; NULL: none */
    uint32_t view_depth, with_depth;
    bool loading;          /* a stored catalog: what was accepted once stays */
    ck_view defining;      /* the view whose query is being checked */
    const char **warnings; /* of the script so far, each once */
    uint32_t warning_count, warning_capacity;
} ck_binder;

/* ---- queries ---- */
CK_NODISCARD ck_status ck_bind_root_query(ck_binder *b, const ck_ast_query *q, ck_output *out);
CK_NODISCARD ck_status ck_bind_insert(ck_binder *b, const ck_ast_insert *i, ck_pos pos, ck_output *out);
/* Adds a sentence unless it is there. */
CK_NODISCARD ck_status ck_bind_warn(ck_binder *b, const char *fmt, ...) CK_PRINTF(2, 3);

/* ---- definitions: they change the catalog ---- */
/* *rows: what CREATE TABLE ... AS writes, its node NULL without AS or when IF NOT EXISTS made nothing. */
CK_NODISCARD ck_status ck_bind_create_table(ck_binder *b, const ck_ast_create_table *t, ck_pos pos, ck_output *rows);
CK_NODISCARD ck_status ck_bind_create_view(ck_binder *b, const ck_ast_create_view *v, ck_pos pos);
CK_NODISCARD ck_status ck_bind_create_function(ck_binder *b, const ck_ast_create_function *f, ck_pos pos);
CK_NODISCARD ck_status ck_bind_alter(ck_binder *b, const ck_ast_statement *s);
CK_NODISCARD ck_status ck_bind_drop(ck_binder *b, const ck_ast_statement *s);
/* A table by its name as written; unknown names are errors with the nearest. */
CK_NODISCARD ck_status ck_bind_find_entry(ck_binder *b, const ck_ast_names *name, ck_pos pos, ck_catalog_entry **out);

#endif
