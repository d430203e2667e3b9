/* The sentence for a row that failed. Only now is it found out which part of the expression it was: the expression is
 * evaluated again for this row, part by part, in the order of the first evaluation. Slow, and run once. */
#include "expr/eval_int.h"
#include "expr/coerce.h"
#include "expr/lazy.h"

#include "data/text.h"

typedef struct explainer {
    ck_eval *ev;
    const ck_batch *row; /* the batch with this one row live */
    uint32_t at;
    ck_error *err;
    char *said; /* by a plugin, of the part evaluated last; room for what ck_eval.said holds */
} explainer;

typedef struct outcome {
    uint8_t mark;
    ck_column *col; /* a reference; NULL when marked */
    bool constant;
} outcome;

/* The value of e in the row, or its mark. Messages of inner failures are not wanted. */
static ck_status value_of(const explainer *x, const ck_expr *e, outcome *out) {
    *out = (outcome){0};
    ck_arena plan;
    ck_arena_init(&plan, x->ev->mem, 64 << 20);
    ck_program *p;
    ck_eval *ev = NULL;
    ck_expr *const exprs[] = {(ck_expr *)(uintptr_t)e};
    const ck_eval_options o = {.proc = x->ev->proc, .mem = x->ev->mem, .timezone = x->ev->timezone};
    ck_status s = ck_program_compile(&plan, exprs, 1, &p, x->err);
    if (s == CK_OK) s = ck_eval_new(p, &o, &ev, x->err);
    if (s == CK_OK) {
        ck_eval_set_now(ev, x->ev->now_us);
        s = ck_eval_run_marked(ev, x->row, &out->col, &out->mark, x->err);
        if (out->mark == CK_MARK_PLUGIN) memcpy(x->said, ev->said, sizeof ev->said);
    }
    ck_eval_free(ev);
    ck_arena_destroy(&plan);
    return s;
}

static ck_status is_true(const explainer *x, const ck_expr *e, bool *truth, bool *null) {
    outcome o;
    CK_TRY(value_of(x, e, &o));
    *null = o.col && ck_column_is_null(o.col, x->at);
    *truth = o.col && !*null && (o.col->phys != CK_PHYS_BOOL || ck_bit_get(o.col->bits, x->at));
    ck_column_unref(&o.col);
    return CK_OK;
}

static ck_status is_marked(const explainer *x, const ck_expr *e, bool *marked) {
    outcome o;
    CK_TRY(value_of(x, e, &o));
    *marked = o.mark != CK_MARK_NONE;
    ck_column_unref(&o.col);
    return CK_OK;
}

/* The argument that failed in this row, among those that were evaluated; NULL: the call itself. */
static ck_status failing_argument(const explainer *x, const ck_expr *e, const ck_expr **out) {
    *out = NULL;
    bool is_case = !e->impl->kernel && e->impl->op == CK_LAZY_CASE;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        bool marked, truth = true, null = false;
        CK_TRY(is_marked(x, e->args[i], &marked));
        if (marked) {
            *out = e->args[i];
            return CK_OK;
        }
        bool condition = is_case && i % 2 == 0 && i + 1 < e->arg_count;
        if (!condition) {
            if (is_case) return CK_OK; /* the branch that was taken, and it did not fail */
            continue;
        }
        CK_TRY(is_true(x, e->args[i], &truth, &null));
        if (!truth) i++; /* its value is not reached */
    }
    return CK_OK;
}

static ck_status culprit(const explainer *x, const ck_expr *e, const ck_expr **out) {
    *out = e;
    while ((*out)->kind == CK_EXPR_CALL) {
        const ck_expr *next;
        CK_TRY(failing_argument(x, *out, &next));
        if (!next) return CK_OK;
        *out = next;
    }
    return CK_OK;
}

/* "'abc'", at most 60 bytes of it. */
static ck_status print_argument(const explainer *x, const ck_expr *e, ck_bytes *out) {
    outcome o;
    CK_TRY(value_of(x, e, &o));
    ck_bytes b;
    ck_bytes_init(&b, x->ev->mem, 1 << 20);
    ck_status s = o.col ? ck_print_value(e->type, o.col, x->at, &b) : CK_OK;
    if (s == CK_FULL) s = CK_OK;
    bool quoted = e->type->kind == CK_TYPE_VARCHAR && o.col && !ck_column_is_null(o.col, x->at);
    size_t n = b.n > 60 ? 60 : b.n;
    if (s == CK_OK)
        s = ck_bytes_printf(out, "%s%.*s%s%s", quoted ? "'" : "", (int)n, n ? b.p : "", n < b.n ? "..." : "",
                            quoted ? "'" : "");
    ck_bytes_destroy(&b);
    ck_column_unref(&o.col);
    return s;
}

/* "'abc', 2" */
static ck_status print_arguments(const explainer *x, const ck_expr *e, ck_bytes *b) {
    for (uint32_t i = 0; e->kind == CK_EXPR_CALL && i < e->arg_count; i++) {
        if (i) CK_TRY(ck_bytes_str(b, ", "));
        CK_TRY(print_argument(x, e->args[i], b));
    }
    return CK_OK;
}

static ck_status sentence(const explainer *x, const ck_expr *e, ck_mark mark, ck_bytes *b) {
    ck_arena a;
    ck_arena_init(&a, x->ev->mem, 1 << 16);
    const char *type = ck_type_name(&a, e->type);
    bool is_cast = e->kind == CK_EXPR_CALL && e->arg_count == 1 && strcmp(e->fn->name, "cast") == 0;
    ck_status s = CK_OK;
    bool assigns = e->kind == CK_EXPR_CALL && strcmp(e->fn->name, "assign") == 0;
    if (assigns) {
        s = print_argument(x, e->args[0], b);
        const ck_view column = e->args[1]->value.str;
        if (s == CK_OK)
            s = ck_bytes_printf(b, " is too long for column \"%.*s\", %s %s; CAST(... AS %s) cuts it", (int)column.n,
                                column.p, ck_article(type), type, type);
    } else if (mark == CK_MARK_DIVISION) {
        s = ck_bytes_str(b, "division by zero in ");
    } else if (is_cast) {
        s = print_argument(x, e->args[0], b);
        if (s == CK_OK)
            s = mark == CK_MARK_CAST ? ck_bytes_printf(b, " is not %s %s in ", ck_article(type), type)
                                     : ck_bytes_printf(b, " is out of range for %s in ", type);
    } else if (mark == CK_MARK_CAST) {
        s = ck_bytes_printf(b, "not %s %s: ", ck_article(type), type);
    } else if (mark == CK_MARK_PLUGIN) {
        s = ck_bytes_printf(b, "%s: ", x->said);
        if (s == CK_OK) s = print_arguments(x, e, b);
        if (s == CK_OK) s = ck_bytes_str(b, e->kind == CK_EXPR_CALL && e->arg_count ? " in " : "");
    } else if (mark == CK_MARK_ARGUMENT) {
        s = print_arguments(x, e, b);
        if (s == CK_OK)
            s = ck_bytes_str(b, e->arg_count > 1 ? " are not in the domain of " : " is not in the domain of ");
    } else if (mark == CK_MARK_STEPS) {
        s = print_arguments(x, e, b);
        if (s == CK_OK) s = ck_bytes_str(b, ": the match was given up after too many steps in ");
    } else if (mark == CK_MARK_TOO_LONG) {
        s = ck_bytes_str(b, "a text above 64 MiB in ");
    }
    if (s == CK_OK && !assigns) s = ck_expr_print_for_people(e, x->ev->column_names, b);
    if (s == CK_OK && mark == CK_MARK_OVERFLOW && !is_cast) s = ck_bytes_printf(b, " is out of range for %s", type);
    if (s == CK_OK && e->line) s = ck_bytes_printf(b, " (line %u, column %u)", e->line, e->col);
    ck_arena_destroy(&a);
    return s;
}

ck_status ck_eval_explain(ck_eval *ev, const ck_batch *b, const ck_expr *e, uint32_t row, uint8_t mark, ck_error *err) {
    if (!err) return CK_DATA;
    const uint16_t sel[] = {(uint16_t)row};
    ck_batch *one = ck_batch_select(b, sel, 1);
    if (!one) return ck_nomem(err, ev->mem, sizeof *b);
    char said[sizeof ev->said];
    memcpy(said, ev->said, sizeof said);
    const explainer x = {ev, one, row, err, said};
    const ck_expr *where = e;
    ck_bytes text;
    ck_bytes_init(&text, ev->mem, sizeof err->msg * 4);
    ck_status s = culprit(&x, e, &where);
    if (s == CK_OK) s = sentence(&x, where, (ck_mark)mark, &text);
    if (s == CK_OK || s == CK_FULL) {
        s = ck_fail(err, CK_DATA, "%.*s", (int)text.n, text.n ? text.p : "");
        ck_batch_place(b, row, err);
    }
    ck_bytes_destroy(&text);
    ck_batch_unref(&one);
    return s;
}
