/* The table of scalar functions and operators: names, overloads, kernels, documentation. docs/functions.md is generated
 * from it. */
#ifndef CK_EXPR_FUNCTION_H
#define CK_EXPR_FUNCTION_H

#include "data/batch.h"
#include "expr/tree.h"

typedef enum ck_function_flags {
    CK_FN_FALLIBLE = 1,  /* may mark rows */
    CK_FN_VOLATILE = 2,  /* not a function of its arguments */
    CK_FN_LAZY = 4,      /* evaluates its arguments itself, on the rows that need them: AND, OR, CASE, COALESCE ... */
    CK_FN_NULLS = 8,     /* sees NULL arguments; without it a NULL argument gives NULL before the kernel runs */
    CK_FN_INTERNAL = 16, /* not callable by name in SQL (operators, casts); named for JSON */
    CK_FN_COMMUTES = 32,
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
/* A kernel: *out gets a new column (or a constant when all args are). Marks rows in out->err with any nonzero code from
 * mark.h. */
typedef ck_status (*ck_kernel)(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                               ck_error *err);

/* Overload resolution for one call: may replace args by casts of them, must set type, nullable and kernel. */
typedef struct ck_bind_call {
    ck_arena *arena;
    const char *name;
    ck_expr **args;
    uint32_t arg_count;
    const ck_type *type; /* result */
    bool nullable;
    ck_kernel kernel;
    uint32_t flags; /* starts as the function's; an overload may clear FALLIBLE */
} ck_bind_call;

typedef struct ck_function {
    const char *name; /* canonical, lower case */
    uint32_t flags;
    ck_status (*bind)(ck_bind_call *call, ck_error *err);
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
