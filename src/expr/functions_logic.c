/* AND, OR, NOT and the IS predicates: three-valued logic. */
#include "expr/bits_int.h"
#include "expr/coerce.h"
#include "expr/functions_int.h"
#include "expr/lazy.h"

static const ck_impl impl_and = {.flags = CK_FN_NULLS | CK_FN_CHEAP, .op = CK_LAZY_AND};
static const ck_impl impl_or = {.flags = CK_FN_NULLS | CK_FN_CHEAP, .op = CK_LAZY_OR};

static ck_status to_boolean(ck_bind_call *call, uint32_t i, ck_error *err) {
    const ck_expr *e = call->args[i];
    if (ck_implicit_cost(e, CK_TYPE_BOOLEAN) < 0)
        return ck_fail(err, CK_INVALID, "%s takes BOOLEAN, not %s", call->fn->syntax,
                       ck_type_name(call->arena, e->type));
    return ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_BOOLEAN), true, &call->args[i], err);
}

static ck_status bind_both(ck_bind_call *call, ck_error *err) {
    if (call->arg_count < 2) return ck_bind_mismatch(call, err);
    for (uint32_t i = 0; i < call->arg_count; i++) CK_TRY(to_boolean(call, i, err));
    call->type = ck_type_simple(CK_TYPE_BOOLEAN);
    call->impl = strcmp(call->name, "and") == 0 ? &impl_and : &impl_or;
    return CK_OK;
}

static ck_status kernel_not(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                            ck_error *err) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    const uint64_t *bits = args[0].col->bits;
    for (size_t w = 0, words = ck_bitmap_words(rows->row_count); w < words; w++) out->col->bits[w] = ~bits[w];
    return CK_OK;
}
static const ck_impl impl_not = {.kernel = kernel_not, .flags = CK_FN_BLIND | CK_FN_CHEAP};

/* ---- IS ---- */

typedef enum is_test { IS_NULL, IS_NOT_NULL, IS_TRUE, IS_NOT_TRUE, IS_FALSE, IS_NOT_FALSE } is_test;

/* Word w of the answer. */
static uint64_t is_word(const ck_vec *v, size_t w, is_test test) {
    const ck_column *c = v->col;
    size_t at = v->constant ? 0 : w;
    uint64_t valid = c->phys == CK_PHYS_NULL ? 0 : c->validity ? c->validity[at] : ~0ULL;
    if (v->constant) valid = 0 - (valid & 1);
    if (test == IS_NULL) return ~valid;
    if (test == IS_NOT_NULL) return valid;
    uint64_t bits = c->phys == CK_PHYS_NULL ? 0 : c->bits[at];
    if (v->constant) bits = 0 - (bits & 1);
    switch (test) {
    case IS_TRUE: return bits & valid;
    case IS_NOT_TRUE: return ~(bits & valid);
    case IS_FALSE: return ~bits & valid;
    default: return ~(~bits & valid);
    }
}

static ck_status kernel_is(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                           ck_error *err) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    for (size_t w = 0, words = ck_bitmap_words(rows->row_count); w < words; w++)
        out->col->bits[w] = is_word(&args[0], w, (is_test)call->impl->op);
    return CK_OK;
}

static ck_status select_is(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                           const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)valid, (void)err;
    uint64_t *bits = ev->words[1];
    for (size_t w = 0, words = ck_bitmap_words(rows->row_count); w < words; w++)
        bits[w] = is_word(&args[0], w, (is_test)call->impl->op);
    if (rows->sel)
        CK_FILL_ROWS(sel, sel_count, rows, i, ck_bit_get(bits, i));
    else
        *sel_count = ev->kernels->bits_to_sel(sel, bits, rows->n);
    return CK_OK;
}

#define IS(test)                                                                                                       \
    { .kernel = kernel_is, .flags = CK_FN_NULLS | CK_FN_BLIND | CK_FN_CHEAP, .op = test, .select = select_is }
static const ck_impl impl_is[] = {IS(IS_NULL),     IS(IS_NOT_NULL), IS(IS_TRUE),
                                  IS(IS_NOT_TRUE), IS(IS_FALSE),    IS(IS_NOT_FALSE)};

static ck_status bind_is(ck_bind_call *call, ck_error *err) {
    static const char *const names[] = {"is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false"};
    if (call->arg_count != 1) return ck_bind_mismatch(call, err);
    size_t test = 0;
    while (strcmp(names[test], call->name) != 0) test++;
    if (test >= IS_TRUE) CK_TRY(to_boolean(call, 0, err));
    call->type = ck_type_simple(CK_TYPE_BOOLEAN);
    call->nullable = false;
    call->impl = &impl_is[test];
    return CK_OK;
}

static const ck_overload overloads_not[] = {{"b>b", &impl_not, false}};

static const ck_function functions[] = {
    {.name = "and",
     .flags = CK_FN_LAZY | CK_FN_INTERNAL,
     .bind = bind_both,
     .group = "logic",
     .syntax = "a AND b",
     .summary =
         "TRUE when both are, FALSE when one is FALSE, otherwise NULL. The right side is not evaluated where the "
         "left is FALSE.",
     .example = "TRUE AND NULL",
     .result = "NULL"},
    {.name = "or",
     .flags = CK_FN_LAZY | CK_FN_INTERNAL,
     .bind = bind_both,
     .group = "logic",
     .syntax = "a OR b",
     .summary =
         "TRUE when one is, FALSE when both are FALSE, otherwise NULL. The right side is not evaluated where the "
         "left is TRUE.",
     .example = "TRUE OR NULL",
     .result = "true"},
    {.name = "not",
     .flags = CK_FN_INTERNAL,
     .overloads = overloads_not,
     .overload_count = 1,
     .group = "logic",
     .syntax = "NOT a",
     .summary = "The opposite; NULL stays NULL.",
     .example = "NOT FALSE",
     .result = "true"},
    {.name = "is_null",
     .flags = CK_FN_INTERNAL,
     .bind = bind_is,
     .group = "logic",
     .syntax = "a IS NULL",
     .summary = "Whether a has no value.",
     .example = "NULL IS NULL",
     .result = "true"},
    {.name = "is_not_null",
     .flags = CK_FN_INTERNAL,
     .bind = bind_is,
     .group = "logic",
     .syntax = "a IS NOT NULL",
     .summary = "Whether a has a value.",
     .example = "'x' IS NOT NULL",
     .result = "true"},
    {.name = "is_true",
     .flags = CK_FN_INTERNAL,
     .bind = bind_is,
     .group = "logic",
     .syntax = "a IS TRUE",
     .summary = "Whether a is TRUE, not FALSE or NULL.",
     .example = "(1 = 1) IS TRUE",
     .result = "true"},
    {.name = "is_not_true",
     .flags = CK_FN_INTERNAL,
     .bind = bind_is,
     .group = "logic",
     .syntax = "a IS NOT TRUE",
     .summary = "Whether a is FALSE or NULL.",
     .example = "(NULL > 1) IS NOT TRUE",
     .result = "true"},
    {.name = "is_false",
     .flags = CK_FN_INTERNAL,
     .bind = bind_is,
     .group = "logic",
     .syntax = "a IS FALSE",
     .summary = "Whether a is FALSE, not TRUE or NULL.",
     .example = "(1 = 2) IS FALSE",
     .result = "true"},
    {.name = "is_not_false",
     .flags = CK_FN_INTERNAL,
     .bind = bind_is,
     .group = "logic",
     .syntax = "a IS NOT FALSE",
     .summary = "Whether a is TRUE or NULL.",
     .example = "(NULL > 1) IS NOT FALSE",
     .result = "true"},
};
const ck_function_table ck_functions_logic = {functions, CK_ARRAY_COUNT(functions)};
