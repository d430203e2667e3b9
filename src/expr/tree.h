/* A bound expression: every node has a type, functions are resolved, columns are numbers. Built by the binder,
 * rewritten by the optimiser, stored in operator parameters as JSON, compiled to a program by the operator. Immutable
 * once shared; in an arena. */
#ifndef CK_EXPR_TREE_H
#define CK_EXPR_TREE_H

#include "base/bytes.h"
#include "data/column.h"

struct ck_function;
struct ck_library;
struct ck_impl; /* the overload chosen, function.h */
struct yyjson_val;
struct yyjson_mut_doc;
struct yyjson_mut_val;

typedef enum ck_expr_kind {
    CK_EXPR_COLUMN,  /* of the input batch */
    CK_EXPR_LITERAL, /* scalar kinds; nested values are made by calls */
    CK_EXPR_CALL,    /* operators, functions, CAST, and the lazy forms AND, OR, CASE, COALESCE, IN ... */
} ck_expr_kind;

typedef struct ck_datum {
    bool null;
    union {
        bool b;
        int64_t i64;
        double f64;
        ck_i128 i128;
        ck_view str; /* in the arena */
    };
} ck_datum;

typedef struct ck_expr ck_expr;
struct ck_expr {
    ck_expr_kind kind;
    const ck_type *type;
    bool nullable;
    bool fails_to_null; /* of a call: nullable because what fails is NULL, which binding it again would not know */
    bool is_no_literal; /* of a call: folding it has been tried */
    uint32_t column;
    ck_datum value;
    const struct ck_function *fn;
    const struct ck_impl *impl; /* what the chosen overload does; set by ck_expr_call and ck_expr_cast */
    ck_expr **args;
    uint32_t arg_count;
    uint64_t hash;      /* of kind, function, literal and arguments; set by the constructors */
    uint32_t line, col; /* in the SQL text, 0 = none: for run-time errors and messages; not part of equality */
};

ck_expr *ck_expr_column(ck_arena *a, uint32_t column, const ck_type *type, bool nullable);
ck_expr *ck_expr_literal(ck_arena *a, const ck_type *type, ck_datum value); /* copies strings */
ck_expr *ck_expr_null(ck_arena *a, const ck_type *type);
/* Bind a function by name to arguments: resolves the overload, inserts casts, sets type and nullability. Errors name
 * the function and the argument types, with did-you-mean for unknown names. */
CK_NODISCARD ck_status ck_expr_call(ck_arena *a, const char *name, ck_expr *const *args, uint32_t arg_count,
                                    ck_expr **out, ck_error *err);
/* The same for a function that has been found, also one of a plugin (expr/library.h). */
CK_NODISCARD ck_status ck_expr_call_of(ck_arena *a, const struct ck_function *fn, ck_expr *const *args,
                                       uint32_t arg_count, ck_expr **out, ck_error *err);
/* CAST / TRY_CAST; no node when the type is the same already. */
CK_NODISCARD ck_status ck_expr_cast(ck_arena *a, ck_expr *e, const ck_type *to, bool try_cast, ck_expr **out,
                                    ck_error *err);
/* The value on its way into a column: as a cast, but a text that is too long for VARCHAR(n) or BYTES(n), there or
 * inside an ARRAY, MAP or ROW, fails and names the column, unless only spaces at its end are cut (which CAST never
 * minds). */
CK_NODISCARD ck_status ck_expr_assign(ck_arena *a, ck_expr *e, const ck_type *to, const char *column, ck_expr **out,
                                      ck_error *err);
/* For on_eval_error = null: what ck_expr_call or ck_expr_cast made of args, where a call that may fail is nullable, and
 * so is what its NULL reaches. The arguments have been through this and stay as they are. */
void ck_expr_fails_to_null(ck_expr *made, ck_expr *const *args, uint32_t arg_count);

bool ck_expr_equal(const ck_expr *a, const ck_expr *b);
bool ck_expr_is_volatile(const ck_expr *e); /* now, random, uuid and what contains them */
/* The same of all expressions in an operator's parameters, which need not be bound for it. */
bool ck_expr_json_is_volatile(const struct ck_library *l, struct yyjson_val *params);
bool ck_expr_is_fallible(const ck_expr *e); /* may mark a row: overflow, division, cast, bad argument */
bool ck_expr_is_constant(const ck_expr *e); /* no columns, not volatile */
/* Calls fn on every column node below. */
void ck_expr_visit_columns(const ck_expr *e, void (*fn)(void *arg, uint32_t column), void *arg);
/* CK_INVALID unless every column of e is one of s, with the type e takes it for: before an expression that was read
 * from a document runs over batches of s. */
CK_NODISCARD ck_status ck_expr_check_columns(const ck_expr *e, const ck_schema *s, ck_error *err);
/* A copy with column i replaced by map[i] (substitution, not sharing). */
ck_expr *ck_expr_substitute(ck_arena *a, const ck_expr *e, ck_expr *const *map, uint32_t map_count);
/* What becomes of a node: *instead, NULL when asked, is another expression of the same type; left NULL, its arguments
 * are asked. Anything but CK_OK ends the rewriting. */
typedef ck_status (*ck_expr_rewriter)(void *arg, const ck_expr *e, ck_expr **instead);
/* *out: a copy of e in which fn has replaced nodes, asked top down. Nodes nothing changed below are shared, not copied.
 * CK_NOMEM, or what fn has said; *out is then as it was. */
CK_NODISCARD ck_status ck_expr_rewrite(ck_arena *a, ck_expr *e, ck_expr_rewriter fn, void *arg, ck_expr **out);
/* A constant expression's value; CK_DATA when evaluating it marks an error. */
CK_NODISCARD ck_status ck_expr_fold(ck_arena *a, ck_expr *e, ck_expr **out, ck_error *err);

/* Canonical SQL text, stable across releases: value fields, uids and fingerprints are made of it. names[i] for column
 * i. */
CK_NODISCARD ck_status ck_expr_print(const ck_expr *e, const char *const *names, ck_bytes *out);
/* For EXPLAIN and errors: intervals as they are written, names with a dot as they stand. */
CK_NODISCARD ck_status ck_expr_print_for_people(const ck_expr *e, const char *const *names, ck_bytes *out);

/* JSON both ways. Decoding binds functions again, those of the library too (NULL: none), and checks types; a bad
 * document is CK_CORRUPT with the place. */
CK_NODISCARD ck_status ck_expr_to_json(const ck_expr *e, struct yyjson_mut_doc *doc, struct yyjson_mut_val **out);
CK_NODISCARD ck_status ck_expr_from_json(ck_arena *a, const struct ck_library *l, struct yyjson_val *v, ck_expr **out,
                                         ck_error *err);

#endif
