/* Compiled expressions. A program is read-only and shared; an eval is one subtask's run state for it (registers,
 * scratch). Columns are evaluated over selections; lazy forms narrow the selection; common subexpressions are computed
 * once, with their marks. */
#ifndef CK_EXPR_PROGRAM_H
#define CK_EXPR_PROGRAM_H

#include "base/proc.h"
#include "expr/function.h"

typedef struct ck_program ck_program;

/* Over `input_count` input columns. Lives in the arena; keeps pointers into the expressions. */
CK_NODISCARD ck_status ck_program_compile(ck_arena *a, ck_expr *const *exprs, uint32_t count, ck_program **out,
                                          ck_error *err);

typedef struct ck_eval_options {
    ck_proc *proc;
    ck_mem mem;
    bool error_null;                 /* on_eval_error = null: marks become NULL */
    const char *timezone;            /* for LTZ functions */
    const char *const *column_names; /* for messages; may be NULL */
} ck_eval_options;

CK_NODISCARD ck_status ck_eval_new(const ck_program *p, const ck_eval_options *o, ck_eval **out, ck_error *err);
void ck_eval_free(ck_eval *e);
/* The wall clock functions like now() read, us; fixed by the caller per batch. */
void ck_eval_set_now(ck_eval *e, int64_t wall_us);

/* What the texts made of one batch may take together, unless it has one row. */
enum { CK_EVAL_TEXT_BYTES_MAX = 128 << 20 };

/* out[i]: a reference to the value of expression i for b's live rows, at b's physical row numbers, at least
 * b->row_count long. A marked live row fails with CK_DATA: "division by zero in a / b" with SQL position and the row's
 * origin. CK_FULL: its texts take too much at once; with fewer live rows they may not. */
CK_NODISCARD ck_status ck_eval_run(ck_eval *e, const ck_batch *b, ck_column **out, ck_error *err);
/* Expressions are conjuncts, left to right over shrinking selections: sel gets the physical rows where all are TRUE
 * (room for b->sel_count). */
CK_NODISCARD ck_status ck_eval_filter(ck_eval *e, const ck_batch *b, uint16_t *sel, uint32_t *sel_count, ck_error *err);

#endif
