/* Constant expressions to literals, by running them over one row. */
#include "expr/eval_int.h"

/* Scalars have literals, nested values do not; what needs the session's time zone or a library
 * waits for it. */
static bool can_fold(const ck_expr *e) {
    ck_phys phys = ck_type_phys(e->type);
    return e->kind == CK_EXPR_CALL && phys != CK_PHYS_LIST && phys != CK_PHYS_STRUCT && ck_expr_is_constant(e) &&
           !ck_expr_any_flag(e, CK_FN_ZONED | CK_FN_OUTSIDE);
}

static ck_status evaluate(const ck_expr *e, ck_arena *a, ck_column **out, ck_error *err) {
    ck_arena plan;
    ck_arena_init(&plan, a->mem, 64 << 20);
    ck_program *p;
    ck_eval *ev = NULL;
    ck_batch *row = NULL;
    ck_expr *const exprs[] = {(ck_expr *)(uintptr_t)e};
    ck_status s = ck_program_compile(&plan, exprs, 1, &p, err);
    const ck_eval_options options = {.mem = a->mem};
    if (s == CK_OK) s = ck_eval_new(p, &options, &ev, err);
    if (s == CK_OK && !(row = ck_batch_new(a->mem, 0, 1, false, false))) s = ck_nomem(err, a->mem, sizeof *row);
    if (s == CK_OK) s = ck_eval_run(ev, row, out, err);
    ck_batch_unref(&row);
    ck_eval_free(ev);
    ck_arena_destroy(&plan);
    return s;
}

enum { FOLDED_BYTES_MAX = 1 << 20 }; /* a plan is read and written many times; a longer text is made where it is used */

ck_status ck_expr_fold(ck_arena *a, ck_expr *e, ck_expr **out, ck_error *err) {
    *out = e;
    if (!can_fold(e)) return CK_OK;
    ck_column *c = NULL;
    CK_TRY(evaluate(e, a, &c, err));
    ck_datum value = ck_column_datum(c, 0);
    if (ck_type_phys(e->type) == CK_PHYS_VIEW && !value.null && value.str.n > FOLDED_BYTES_MAX) {
        ck_column_unref(&c);
        return CK_OK;
    }
    ck_expr *literal = ck_expr_literal(a, e->type, value);
    ck_column_unref(&c);
    if (!literal) return ck_nomem(err, a->mem, sizeof *literal);
    literal->line = e->line, literal->col = e->col;
    *out = literal;
    return CK_OK;
}
