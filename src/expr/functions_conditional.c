/* CASE, COALESCE, IF, NULLIF, GREATEST and LEAST. */
#include "expr/tree_int.h"
#include "expr/coerce.h"
#include "expr/compare_int.h"
#include "expr/functions_int.h"
#include "expr/lazy.h"

static const ck_impl impl_case = {.flags = CK_FN_NULLS, .op = CK_LAZY_CASE};
static const ck_impl impl_coalesce = {.flags = CK_FN_NULLS, .op = CK_LAZY_COALESCE};
static const ck_impl impl_nullif = {.flags = CK_FN_NULLS, .op = CK_LAZY_NULLIF};

static ck_status condition(ck_bind_call *call, uint32_t i, ck_error *err) {
    const ck_expr *e = call->args[i];
    if (ck_implicit_cost(e, CK_TYPE_BOOLEAN) < 0)
        return ck_fail(err, CK_INVALID, "a condition of %s is %s, not BOOLEAN", call->fn->syntax,
                       ck_type_name(call->arena, e->type));
    return ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_BOOLEAN), true, &call->args[i], err);
}

static ck_status bind_case(ck_bind_call *call, ck_error *err) {
    uint32_t n = call->arg_count;
    if (n < 2 || (strcmp(call->name, "if") == 0 && n > 3)) return ck_bind_mismatch(call, err);
    uint32_t *values = ck_arena_array(call->arena, n / 2 + 1, sizeof *values), count = 0;
    if (!values) return ck_nomem(err, call->arena->mem, n * sizeof *values);
    call->nullable = n % 2 == 0; /* no ELSE */
    for (uint32_t i = 0; i < n; i++) {
        bool is_value = i % 2 == 1 || i + 1 == n;
        if (is_value) {
            values[count++] = i;
            call->nullable |= call->args[i]->nullable;
        } else {
            CK_TRY(condition(call, i, err));
        }
    }
    CK_TRY(ck_unify(call, call->args, values, count, &call->type, err));
    call->impl = &impl_case;
    return CK_OK;
}

static ck_status bind_coalesce(ck_bind_call *call, ck_error *err) {
    if (!call->arg_count) return ck_bind_mismatch(call, err);
    CK_TRY(ck_unify(call, call->args, NULL, call->arg_count, &call->type, err));
    /* What comes behind an argument that has a value is never reached. */
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (!call->args[i]->nullable) {
            call->arg_count = i + 1;
            call->nullable = false;
        }
    if (call->arg_count == 1) call->instead = call->args[0];
    call->impl = &impl_coalesce;
    return CK_OK;
}

static ck_status bind_nullif(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    ck_expr *equal;
    if (ck_expr_is_text_literal(call->args[0]) && !ck_expr_is_text_literal(call->args[1]))
        CK_TRY(ck_coerce(call->arena, call->args[0], call->args[1]->type, true, &call->args[0], err));
    CK_TRY(ck_expr_call(call->arena, "=", call->args, 2, &equal, err));
    call->type = call->args[0]->type;
    call->nullable = true;
    call->impl = &impl_nullif;
    return CK_OK;
}

/* ---- GREATEST, LEAST: NULL arguments do not count ---- */

/* The argument that has the greatest (or least) value in a row; the first when all are NULL. */
static uint32_t extreme_of(const ck_vec *args, uint32_t count, uint32_t row, bool greatest) {
    uint32_t best = 0;
    bool found = false;
    for (uint32_t a = 0; a < count; a++) {
        if (ck_column_is_null(args[a].col, CK_AT(args[a], row))) continue;
        int c = found ? ck_compare_values(args[a].col, CK_AT(args[a], row), args[best].col, CK_AT(args[best], row)) : 0;
        if (!found || (greatest ? c > 0 : c < 0)) best = a;
        found = true;
    }
    return best;
}

/* All rows were taken from one constant argument: written out, because the result is not constant. */
static ck_status spread(ck_eval *ev, const ck_expr *call, const ck_rows *rows, ck_vec *out, ck_error *err) {
    const ck_scope_rows of = {rows->sel, rows->n, NULL};
    ck_vec one = *out;
    out->col = NULL;
    ck_status s = ck_eval_copy(ev, call->type, &one, &of, rows->row_count, &out->col, err);
    ck_column_unref(&one.col);
    return s;
}

/* Which argument has it, row by row; then the arguments are laid over each other. */
static ck_status kernel_extreme(CK_KERNEL_ARGS) {
    uint32_t n = call->arg_count;
    size_t sel_bytes = (size_t)n * rows->row_count * sizeof(uint16_t);
    uint16_t *sels = ck_alloc(ev->mem, sel_bytes);
    ck_scope_rows *of = ck_alloc_array(ev->mem, n, sizeof *of);
    ck_merge_input *in = ck_alloc_array(ev->mem, n, sizeof *in);
    ck_status s = sels && of && in ? CK_OK : ck_nomem(err, ev->mem, sel_bytes);
    for (uint32_t a = 0; s == CK_OK && a < n; a++) {
        of[a] = (ck_scope_rows){.sel = sels + (size_t)a * rows->row_count};
        in[a] = (ck_merge_input){&of[a], args[a]};
    }
    if (s == CK_OK) {
        for (CK_EACH_ROW(k, i, rows)) {
            uint32_t best = extreme_of(args, n, i, call->impl->op);
            sels[(size_t)best * rows->row_count + of[best].n++] = (uint16_t)i;
        }
        const ck_scope_rows all = {rows->sel, rows->n, NULL};
        uint32_t was = ev->row_count;
        ev->row_count = rows->row_count; /* one, when every argument is constant */
        s = ck_eval_merge(ev, call->type, in, n, &all, NULL, out, err);
        ev->row_count = was;
        if (s == CK_OK && out->constant && rows->row_count > 1) s = spread(ev, call, rows, out, err);
    }
    ck_free(ev->mem, sels, sel_bytes);
    ck_free(ev->mem, of, n * sizeof *of);
    ck_free(ev->mem, in, n * sizeof *in);
    return s;
}
static const ck_impl impl_extreme[] = {{.kernel = kernel_extreme, .flags = CK_FN_NULLS, .op = 0},
                                       {.kernel = kernel_extreme, .flags = CK_FN_NULLS, .op = 1}};

static ck_status bind_extreme(ck_bind_call *call, ck_error *err) {
    if (!call->arg_count) return ck_bind_mismatch(call, err);
    CK_TRY(ck_unify(call, call->args, NULL, call->arg_count, &call->type, err));
    ck_phys phys = ck_type_phys(call->type);
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT) return ck_bind_mismatch(call, err);
    call->nullable = true;
    for (uint32_t i = 0; i < call->arg_count; i++) call->nullable &= call->args[i]->nullable;
    if (call->arg_count == 1 || phys == CK_PHYS_NULL) call->instead = call->args[0];
    call->impl = &impl_extreme[strcmp(call->name, "greatest") == 0];
    return CK_OK;
}

static const ck_function functions[] = {
    {.name = "case",
     .flags = CK_FN_LAZY | CK_FN_INTERNAL,
     .bind = bind_case,
     .group = "conditional",
     .syntax = "CASE WHEN condition THEN value ... [ELSE value] END",
     .summary = "The value of the first condition that is TRUE, else the ELSE value or NULL. Also CASE x WHEN y THEN "
                "value ... END. Values that are not chosen are not evaluated.",
     .example = "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END",
     .result = "b"},
    {.name = "if",
     .flags = CK_FN_LAZY,
     .aliases = "iif",
     .bind = bind_case,
     .group = "conditional",
     .syntax = "IF(condition, value [, otherwise])",
     .summary = "value where the condition is TRUE, otherwise the other "
                "one or NULL.",
     .example = "IF(1 < 2, 'yes', 'no')",
     .result = "yes"},
    {.name = "coalesce",
     .flags = CK_FN_LAZY,
     .aliases = "ifnull nvl",
     .bind = bind_coalesce,
     .group = "conditional",
     .syntax = "COALESCE(a, b, ...)",
     .summary = "The first argument that is not NULL; later ones are not evaluated.",
     .example = "COALESCE(NULL, 7)",
     .result = "7"},
    {.name = "nullif",
     .flags = CK_FN_LAZY,
     .bind = bind_nullif,
     .group = "conditional",
     .syntax = "NULLIF(a, b)",
     .summary = "NULL where a equals b, else a.",
     .example = "NULLIF('NA', 'NA')",
     .result = "NULL"},
    {.name = "greatest",
     .bind = bind_extreme,
     .group = "conditional",
     .syntax = "GREATEST(a, b, ...)",
     .summary = "The greatest argument; NULLs do not count.",
     .example = "GREATEST(3, 7, NULL)",
     .result = "7"},
    {.name = "least",
     .bind = bind_extreme,
     .group = "conditional",
     .syntax = "LEAST(a, b, ...)",
     .summary = "The least argument; NULLs do not count.",
     .example = "LEAST(3, 7, NULL)",
     .result = "3"},
};
const ck_function_table ck_functions_conditional = {functions, CK_ARRAY_COUNT(functions)};
