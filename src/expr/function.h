/* The table of scalar functions and operators: names, overloads, kernels, documentation. docs/functions.md is generated
 * from it.
 *
 * Names of what SQL writes with symbols or words of its own, for ck_expr_call:
 *   = <> < <= > >= + - * / % ||   neg (unary -)   and or not (and, or take two or more)   like(text, pattern[, escape])
 *   is_null is_not_null is_true is_not_true is_false is_not_false   is_distinct_from is_not_distinct_from
 *   between(x, low, high)   in(x, a, b, ...)   case(cond, value, cond, value, ..., [else])   coalesce if nullif
 *   extract(unit literal, x)   floor_to(x, unit literal) ceil_to   at_time_zone(x, zone)   substring position overlay
 *   trim(text[, characters]) ltrim rtrim   array(...) map(k, v, ...) row(...)   item(array or map, key)
 *   field(row, name literal)
 * NOT LIKE, NOT IN, NOT BETWEEN are not() of these; CAST and TRY_CAST are ck_expr_cast. */
#ifndef CK_EXPR_FUNCTION_H
#define CK_EXPR_FUNCTION_H

#include "data/batch.h"
#include "expr/tree.h"

typedef enum ck_function_flags {
    CK_FN_FALLIBLE = 1,  /* may mark rows (of an overload: ck_impl.flags) */
    CK_FN_VOLATILE = 2,  /* not a function of its arguments */
    CK_FN_LAZY = 4,      /* evaluates its arguments on the rows that need them: AND, OR, CASE, COALESCE ... */
    CK_FN_NULLS = 8,     /* sees NULL arguments; without it a NULL argument gives NULL before the kernel runs */
    CK_FN_INTERNAL = 16, /* not callable by name in SQL (operators, casts); named for JSON */
    CK_FN_COMMUTES = 32,
    CK_FN_ZONED = 64,     /* depends on the session's time zone */
    CK_FN_BLIND = 128,    /* harmless on rows that hold no value or are not selected (numbers): may compute them too */
    CK_FN_CHEAP = 256,    /* vector speed: narrowing the selection for it does not pay */
    CK_FN_TRY = 1024,     /* its own marks are NULL: TRY_CAST */
    CK_FN_FIRST = 2048,   /* the kernel is given the first argument only; the others are literals it prepared */
    CK_FN_OUTSIDE = 4096, /* needs the proc it runs in (a library): not computed while a query is planned */
    CK_FN_NOW = 512,      /* reads the wall clock given with ck_eval_set_now */
} ck_function_flags;

/* A vector of values: a column, or one value for all rows (constant: col has length 1). */
typedef struct ck_vec {
    ck_column *col;
    bool constant;
} ck_vec;

/* The rows to compute: results stand at the same physical row numbers, other rows are left unspecified. */
typedef struct ck_rows {
    const uint16_t *sel; /* NULL: rows 0..n) */
    uint32_t n;          /* live rows */
    uint32_t row_count;  /* physical length of result columns */
} ck_rows;

typedef struct ck_eval ck_eval;
/* A kernel: *out gets a new column (or a constant when all args are), or a reference to a column that has the values
 * already. Marks rows in out->err with any nonzero code from mark.h. Without CK_FN_NULLS it never looks at
 * validity: the caller combines the arguments' NULLs and marks with what the kernel adds, and without CK_FN_BLIND the
 * rows given hold values in every argument. */
typedef ck_status (*ck_kernel)(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err);
/* A predicate straight to a selection: the rows of `rows` where it is TRUE, ascending, into sel (room for row_count +
 * 8; may not be rows->sel). `valid` (NULL: every row) says which rows hold values in every argument; it is given only
 * with CK_FN_BLIND, otherwise `rows` are such rows. Never with all arguments constant. */
typedef ck_status (*ck_select_kernel)(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                                      const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err);

/* What an overload does at run time. In static tables. */
typedef struct ck_impl {
    ck_kernel kernel;        /* NULL: a lazy form, which the compiler takes apart */
    uint32_t flags;          /* CK_FN_FALLIBLE, NULLS, BLIND, CHEAP; united with the function's */
    uint32_t op;             /* the kernel's own: which operator, which part of a date */
    ck_select_kernel select; /* optional */
    /* Optional: once per eval, before the first batch: compiles constant patterns and the like. *state is the kernel's
     * own (ck_eval_state), given back to dispose. */
    ck_status (*prepare)(ck_eval *ev, const ck_expr *call, void **state, ck_error *err);
    void (*dispose)(ck_eval *ev, void *state);
} ck_impl;

/* A declared overload: "ss>s" takes two strings and gives one. Letters: b BOOLEAN; i INTEGER; l BIGINT; f REAL;
 * d DOUBLE; n DECIMAL of any precision (a result has the type of the first n argument); s VARCHAR; y BYTES; D DATE; T
 * TIME; t TIMESTAMP(6); z TIMESTAMP_LTZ(6); m INTERVAL months; u INTERVAL microseconds. A letter followed by * repeats
 * (zero or more), by ? may be missing. */
typedef struct ck_overload {
    const char *signature;
    const ck_impl *impl;
    bool nullable; /* the result may be NULL though no argument is */
} ck_overload;

/* Overload resolution for one call: may replace args by casts of them, must set type, nullable and impl. */
typedef struct ck_bind_call {
    ck_arena *arena;
    const char *name;
    const struct ck_function *fn;
    ck_expr **args;
    uint32_t arg_count;
    const ck_type *type; /* result */
    bool nullable;       /* starts as: some argument is nullable */
    const ck_impl *impl;
    ck_expr *instead; /* optional: the call is this expression (an overload that does nothing) */
} ck_bind_call;

typedef struct ck_function {
    const char *name; /* canonical, lower case */
    uint32_t flags;
    const char *aliases;                                  /* further names, separated by spaces; may be NULL */
    ck_status (*bind)(ck_bind_call *call, ck_error *err); /* NULL: by overloads */
    const ck_overload *overloads;
    uint32_t overload_count;
    const char *group;   /* "strings", "numbers" ...; heading in docs/functions.md */
    const char *syntax;  /* "SUBSTRING(text FROM start [FOR length])" */
    const char *summary; /* one sentence */
    const char *example; /* an SQL expression ... */
    const char *result;  /* ... and what it gives, as printed; both tested */
} ck_function;

/* All functions: several tables, one a file; found by name (case ignored). */
const ck_function *ck_function_find(const char *name);
size_t ck_function_count(void);
const ck_function *ck_function_at(size_t i);
ck_view ck_function_suggest(const char *name); /* nearest name or empty */

#endif
