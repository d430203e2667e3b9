/* Arrays from arrays: joined, extended, cut, sorted out. */
#include "data/builder.h"
#include "expr/coerce.h"
#include "expr/compare_int.h"
#include "expr/functions_int.h"

typedef enum array_op { CONCAT, APPEND, PREPEND, REMOVE, DISTINCT, REVERSE, SLICE, GREATEST_OF, LEAST_OF } array_op;

/* One row's list: its elements [from, to) in the child column. */
typedef struct list {
    const ck_column *child;
    int32_t from, to;
} list;

static list list_of(const ck_vec *v, uint32_t row) {
    const ck_column *c = v->col;
    uint32_t at = CK_AT(*v, row);
    return (list){c->children[0], c->offsets[at], c->offsets[at + 1]};
}

static ck_status append(ck_column_builder *b, const ck_column *c, size_t at) {
    return ck_column_is_null(c, at) ? ck_build_null(b) : ck_build_from(b, c, (uint32_t)at);
}

static ck_status append_all(ck_column_builder *b, list l) {
    for (int32_t i = l.from; i < l.to; i++) CK_TRY(append(b, l.child, (size_t)i));
    return CK_OK;
}

static bool seen_before(list l, int32_t at) {
    for (int32_t i = l.from; i < at; i++)
        if (ck_column_rows_equal(l.child, (size_t)i, l.child, (size_t)at)) return true;
    return false;
}

/* Elements first to last, counted from 1, or from the end when negative. */
static list slice(list l, int64_t first, int64_t last) {
    int64_t n = l.to - l.from;
    if (first < 0) first += n + 1;
    if (last < 0) last += n + 1;
    if (first < 1) first = 1;
    if (last > n) last = n;
    if (first > last) return (list){l.child, l.from, l.from};
    return (list){l.child, l.from + (int32_t)first - 1, l.from + (int32_t)last};
}

static ck_status build_row(ck_column_builder *b, array_op op, const ck_vec *args, uint32_t count, uint32_t row) {
    list l = list_of(&args[op == PREPEND ? 1 : 0], row);
    switch (op) {
    case CONCAT:
        for (uint32_t a = 0; a < count; a++) CK_TRY(append_all(b, list_of(&args[a], row)));
        return CK_OK;
    case APPEND: CK_TRY(append_all(b, l)); return append(b, args[1].col, CK_AT(args[1], row));
    case PREPEND: CK_TRY(append(b, args[0].col, CK_AT(args[0], row))); return append_all(b, l);
    case REMOVE:
        for (int32_t i = l.from; i < l.to; i++)
            if (!ck_column_rows_equal(l.child, (size_t)i, args[1].col, CK_AT(args[1], row)))
                CK_TRY(append(b, l.child, (size_t)i));
        return CK_OK;
    case DISTINCT:
        for (int32_t i = l.from; i < l.to; i++)
            if (!seen_before(l, i)) CK_TRY(append(b, l.child, (size_t)i));
        return CK_OK;
    case REVERSE:
        for (int32_t i = l.to; i-- > l.from;) CK_TRY(append(b, l.child, (size_t)i));
        return CK_OK;
    default: return append_all(b, slice(l, CK_ARG_I64(1, row), CK_ARG_I64(2, row)));
    }
}

/* A NULL list gives NULL; a NULL element to append or remove is an element like any other. */
static bool any_list_null(const ck_expr *call, const ck_vec *args, uint32_t row) {
    for (uint32_t a = 0; a < call->arg_count; a++) {
        bool element =
            (call->impl->op == APPEND || call->impl->op == REMOVE) ? a == 1 : call->impl->op == PREPEND && a == 0;
        if (!element && ck_column_is_null(args[a].col, CK_AT(args[a], row))) return true;
    }
    return false;
}

static ck_status kernel_list(CK_KERNEL_ARGS) {
    ck_column_builder b;
    uint64_t *wanted = ev->words[1];
    memset(wanted, 0, ck_bitmap_words(rows->row_count) * sizeof *wanted);
    for (CK_EACH_ROW(k, i, rows)) ck_bit_set(wanted, i);
    ck_status s = ck_column_builder_init(&b, ev->mem, call->type, rows->row_count);
    for (uint32_t i = 0; s == CK_OK && i < rows->row_count; i++) {
        if (!ck_bit_get(wanted, i) || any_list_null(call, args, i)) {
            s = ck_build_null(&b);
            continue;
        }
        s = build_row(&b.children[0], (array_op)call->impl->op, args, call->arg_count, i);
        if (s == CK_OK) s = ck_build_end(&b);
    }
    if (s == CK_OK && !(out->col = ck_column_builder_finish(&b))) s = CK_NOMEM;
    ck_column_builder_destroy(&b);
    return s == CK_NOMEM ? ck_nomem(err, ev->mem, rows->row_count) : s;
}

/* The position of the greatest or least element, -1: there is none that is not NULL. */
static int64_t extreme(list l, bool greatest) {
    int64_t best = -1;
    for (int32_t i = l.from; i < l.to; i++) {
        if (ck_column_is_null(l.child, (size_t)i)) continue;
        int c = best < 0 ? 0 : ck_compare_values(l.child, (uint32_t)i, l.child, (uint32_t)best);
        if (best < 0 || (greatest ? c > 0 : c < 0)) best = i;
    }
    return best;
}

static ck_status kernel_extreme(CK_KERNEL_ARGS) {
    ck_column_builder b;
    uint64_t *wanted = ev->words[1];
    memset(wanted, 0, ck_bitmap_words(rows->row_count) * sizeof *wanted);
    for (CK_EACH_ROW(k, i, rows)) ck_bit_set(wanted, i);
    ck_status s = ck_column_builder_init(&b, ev->mem, call->type, rows->row_count);
    for (uint32_t i = 0; s == CK_OK && i < rows->row_count; i++) {
        int64_t at = ck_bit_get(wanted, i) ? extreme(list_of(&args[0], i), call->impl->op == GREATEST_OF) : -1;
        s = at < 0 ? ck_build_null(&b) : ck_build_from(&b, args[0].col->children[0], (uint32_t)at);
    }
    if (s == CK_OK && !(out->col = ck_column_builder_finish(&b))) s = CK_NOMEM;
    ck_column_builder_destroy(&b);
    return s == CK_NOMEM ? ck_nomem(err, ev->mem, rows->row_count) : s;
}

#define LISTS(OP)                                                                                                      \
    { .kernel = kernel_list, .flags = CK_FN_NULLS, .op = OP }
static const ck_impl impls[] = {LISTS(CONCAT),
                                LISTS(APPEND),
                                LISTS(PREPEND),
                                LISTS(REMOVE),
                                LISTS(DISTINCT),
                                LISTS(REVERSE),
                                LISTS(SLICE),
                                {.kernel = kernel_extreme, .op = GREATEST_OF},
                                {.kernel = kernel_extreme, .op = LEAST_OF}};

static const struct {
    const char *name;
    uint32_t args;
} shapes[] = {{"array_concat", 0}, {"array_append", 2},   {"array_prepend", 2},
              {"array_remove", 2}, {"array_distinct", 1}, {"array_reverse", 1},
              {"array_slice", 3},  {"array_max", 1},      {"array_min", 1}};

/* The array, and the element where there is one, of one element type. */
static ck_status unify_element(ck_bind_call *call, uint32_t list_at, uint32_t element_at, ck_error *err) {
    const ck_type *t = call->args[list_at]->type, *elem = t->fields[0].type;
    ck_expr *e = call->args[element_at];
    const ck_type *both = ck_expr_is_text_literal(e) ? elem : ck_common_type(call->arena, elem, e->type);
    if (!both) return ck_bind_mismatch(call, err);
    CK_TRY(ck_coerce(call->arena, e, both, false, &call->args[element_at], err));
    call->type = ck_type_array(call->arena, both, t->fields[0].nullable || e->nullable);
    if (!call->type) return ck_nomem(err, call->arena->mem, sizeof *t);
    const ck_type *list_type = ck_type_array(call->arena, both, t->fields[0].nullable);
    if (!list_type) return ck_nomem(err, call->arena->mem, sizeof *t);
    return ck_coerce(call->arena, call->args[list_at], list_type, false, &call->args[list_at], err);
}

static ck_status bind_concat(ck_bind_call *call, ck_error *err) {
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i]->type->kind != CK_TYPE_ARRAY) return ck_bind_mismatch(call, err);
    if (!call->arg_count) return ck_bind_mismatch(call, err);
    return ck_unify(call, call->args, NULL, call->arg_count, &call->type, err);
}

static ck_status bind_array(ck_bind_call *call, ck_error *err) {
    uint32_t op = 0;
    while (strcmp(shapes[op].name, call->name) != 0) op++;
    call->impl = &impls[op];
    if (op == CONCAT) return bind_concat(call, err);
    uint32_t at = op == PREPEND ? 1 : 0;
    if (call->arg_count != shapes[op].args || call->args[at]->type->kind != CK_TYPE_ARRAY)
        return ck_bind_mismatch(call, err);
    call->type = call->args[at]->type;
    call->nullable = call->args[at]->nullable;
    if (op == APPEND || op == REMOVE) return unify_element(call, 0, 1, err);
    if (op == PREPEND) return unify_element(call, 1, 0, err);
    for (uint32_t i = 1; i < call->arg_count; i++) {
        if (ck_implicit_cost(call->args[i], CK_TYPE_BIGINT) < 0) return ck_bind_mismatch(call, err);
        CK_TRY(ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_BIGINT), true, &call->args[i], err));
        call->nullable |= call->args[i]->nullable;
    }
    if (op < GREATEST_OF) return CK_OK;
    call->type = call->args[0]->type->fields[0].type;
    call->nullable = true;
    ck_phys phys = ck_type_phys(call->type);
    return phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT ? ck_bind_mismatch(call, err) : CK_OK;
}

#define FN(NAME, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                                     \
    {                                                                                                                  \
        .name = NAME, .bind = bind_array, .group = "arrays, maps and rows", .syntax = SYNTAX, .summary = SUMMARY,      \
        .example = EXAMPLE, .result = RESULT                                                                           \
    }
static const ck_function functions[] = {
    FN("array_concat", "ARRAY_CONCAT(array, ...)", "All elements one behind the other.",
       "ARRAY_CONCAT(ARRAY[1], ARRAY[2, 3])", "[1,2,3]"),
    FN("array_append", "ARRAY_APPEND(array, element)", "The array with the element behind it.",
       "ARRAY_APPEND(ARRAY[1], 2)", "[1,2]"),
    FN("array_prepend", "ARRAY_PREPEND(element, array)", "The array with the element before it.",
       "ARRAY_PREPEND(0, ARRAY[1])", "[0,1]"),
    FN("array_remove", "ARRAY_REMOVE(array, element)", "The array without every such element.",
       "ARRAY_REMOVE(ARRAY[1, 2, 1], 1)", "[2]"),
    FN("array_distinct", "ARRAY_DISTINCT(array)", "Each element once, where it was first.",
       "ARRAY_DISTINCT(ARRAY[2, 1, 2])", "[2,1]"),
    FN("array_reverse", "ARRAY_REVERSE(array)", "The elements from last to first.", "ARRAY_REVERSE(ARRAY[1, 2])",
       "[2,1]"),
    FN("array_slice", "ARRAY_SLICE(array, first, last)",
       "The elements from first to last, counted from 1, or from the end when negative.",
       "ARRAY_SLICE(ARRAY[1, 2, 3, 4], 2, -2)", "[2,3]"),
    FN("array_max", "ARRAY_MAX(array)", "The greatest element that is not NULL.", "ARRAY_MAX(ARRAY[3, 7, NULL])", "7"),
    FN("array_min", "ARRAY_MIN(array)", "The least element that is not NULL.", "ARRAY_MIN(ARRAY[3, 7, NULL])", "3"),
};
const ck_function_table ck_functions_array = {functions, CK_ARRAY_COUNT(functions)};
