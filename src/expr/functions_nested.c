/* ARRAY, MAP and ROW: made, taken apart, searched. Indices begin at 1; what is not there is NULL. */
#include "data/builder.h"
#include "data/text.h"
#include "expr/coerce.h"
#include "expr/find.h"
#include "expr/functions_int.h"
#include "expr/strout.h"

/* Which physical rows are among those to compute, for results that are built from the first row to the last. */
static void mark_rows(ck_eval *ev, const ck_rows *rows, uint64_t *bits) {
    (void)ev;
    memset(bits, 0, ck_bitmap_words(rows->row_count) * sizeof *bits);
    for (CK_EACH_ROW(k, i, rows)) ck_bit_set(bits, i);
}

static ck_status finish(ck_eval *ev, ck_column_builder *b, ck_status s, ck_vec *out, ck_error *err) {
    if (s == CK_OK && !(out->col = ck_column_builder_finish(b))) s = CK_NOMEM;
    ck_column_builder_destroy(b);
    return s == CK_NOMEM ? ck_nomem(err, ev->mem, sizeof(ck_column)) : s;
}

static ck_status append(ck_column_builder *b, const ck_vec *v, uint32_t row) {
    uint32_t at = CK_AT(*v, row);
    return ck_column_is_null(v->col, at) ? ck_build_null(b) : ck_build_from(b, v->col, at);
}

/* ---- constructors ---- */

/* Of equal keys the last counts, as in a map that is read. */
static bool key_comes_again(const ck_vec *args, uint32_t arg_count, uint32_t key, uint32_t row) {
    for (uint32_t k = key + 2; k < arg_count; k += 2)
        if (ck_column_rows_equal(args[key].col, CK_AT(args[key], row), args[k].col, CK_AT(args[k], row))) return true;
    return false;
}

static ck_status kernel_array(CK_KERNEL_ARGS) {
    ck_column_builder b;
    uint64_t *wanted = ev->words[1];
    mark_rows(ev, rows, wanted);
    ck_status s = ck_column_builder_init(&b, ev->mem, call->type, rows->row_count);
    if (s != CK_OK) return ck_nomem(err, ev->mem, rows->row_count);
    bool map = call->type->kind == CK_TYPE_MAP;
    for (uint32_t i = 0; s == CK_OK && i < rows->row_count; i++) {
        if (!ck_bit_get(wanted, i)) {
            s = ck_build_null(&b);
            continue;
        }
        for (uint32_t a = 0; s == CK_OK && a < call->arg_count; a++) {
            if (!map) {
                s = append(&b.children[0], &args[a], i);
                continue;
            }
            ck_column_builder *entry = &b.children[0];
            uint32_t key = a++;
            if (key_comes_again(args, call->arg_count, key, i)) continue;
            s = append(&entry->children[0], &args[key], i);
            if (s == CK_OK) s = append(&entry->children[1], &args[a], i);
            if (s == CK_OK) s = ck_build_end(entry);
        }
        if (s == CK_OK) s = ck_build_end(&b);
    }
    return finish(ev, &b, s, out, err);
}

/* The fields are the arguments' columns themselves. */
static ck_status kernel_row(CK_KERNEL_ARGS) {
    uint32_t n = call->arg_count;
    ck_column **children = ck_alloc_array(ev->mem, n, sizeof *children);
    if (!children) return ck_nomem(err, ev->mem, n * sizeof *children);
    const ck_scope_rows of = {rows->sel, rows->n, NULL};
    ck_status s = CK_OK;
    uint32_t made = 0;
    for (; s == CK_OK && made < n; made++) {
        if (args[made].constant && rows->row_count > 1)
            s = ck_eval_copy(ev, call->args[made]->type, &args[made], &of, rows->row_count, &children[made], err);
        else if (args[made].col->err || args[made].col->length < rows->row_count)
            s = ck_eval_copy(ev, call->args[made]->type, &args[made], &of, rows->row_count, &children[made], err);
        else
            children[made] = ck_column_ref(args[made].col);
        if (s != CK_OK) break;
    }
    ck_column *c = s == CK_OK ? ck_column_new(ev->mem, CK_PHYS_STRUCT, rows->row_count) : NULL;
    if (s == CK_OK && (!c || ck_column_set_children(c, children, n) != CK_OK)) s = ck_nomem(err, ev->mem, n * 8);
    if (s != CK_OK) {
        while (made) ck_column_unref(&children[--made]);
        ck_column_unref(&c);
    }
    ck_free(ev->mem, children, n * sizeof *children);
    out->col = c;
    return s;
}

static const ck_impl impl_array = {.kernel = kernel_array, .flags = CK_FN_NULLS},
                     impl_row = {.kernel = kernel_row, .flags = CK_FN_NULLS};

static bool any_nullable(const ck_bind_call *call, uint32_t from, uint32_t step) {
    for (uint32_t i = from; i < call->arg_count; i += step)
        if (call->args[i]->nullable) return true;
    return false;
}

static ck_status bind_array(ck_bind_call *call, ck_error *err) {
    const ck_type *elem;
    CK_TRY(ck_unify(call, call->args, NULL, call->arg_count, &elem, err));
    if (elem->kind == CK_TYPE_NULL) elem = ck_type_simple(CK_TYPE_VARCHAR);
    for (uint32_t i = 0; i < call->arg_count; i++)
        CK_TRY(ck_coerce(call->arena, call->args[i], elem, false, &call->args[i], err));
    call->type = ck_type_array(call->arena, elem, !call->arg_count || any_nullable(call, 0, 1));
    call->nullable = false;
    call->impl = &impl_array;
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *elem);
}

static ck_status bind_map(ck_bind_call *call, ck_error *err) {
    uint32_t n = call->arg_count;
    if (n < 2 || n % 2) return ck_bind_mismatch(call, err);
    if (any_nullable(call, 0, 2))
        return ck_fail(err, CK_INVALID,
                       "the keys of a MAP are not NULL; a key here may be (COALESCE gives it a value)");
    uint32_t *which = ck_arena_array(call->arena, n / 2, sizeof *which);
    if (!which) return ck_nomem(err, call->arena->mem, n * sizeof *which);
    const ck_type *types[2];
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < n / 2; i++) which[i] = 2 * i + side;
        CK_TRY(ck_unify(call, call->args, which, n / 2, &types[side], err));
    }
    if (types[1]->kind == CK_TYPE_NULL) types[1] = ck_type_simple(CK_TYPE_VARCHAR);
    for (uint32_t i = 1; i < n; i += 2)
        CK_TRY(ck_coerce(call->arena, call->args[i], types[1], false, &call->args[i], err));
    call->type = ck_type_map(call->arena, types[0], types[1], any_nullable(call, 1, 2));
    call->nullable = false;
    call->impl = &impl_array;
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *types[0]);
}

/* Fields are named EXPR$0, EXPR$1 ... as Flink does. */
static ck_status bind_row(ck_bind_call *call, ck_error *err) {
    uint32_t n = call->arg_count;
    if (!n) return ck_bind_mismatch(call, err);
    ck_field *fields = ck_arena_array(call->arena, n, sizeof *fields);
    if (!fields) return ck_nomem(err, call->arena->mem, n * sizeof *fields);
    for (uint32_t i = 0; i < n; i++) {
        if (call->args[i]->type->kind == CK_TYPE_NULL)
            CK_TRY(ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_VARCHAR), false, &call->args[i], err));
        fields[i] =
            (ck_field){ck_arena_printf(call->arena, "EXPR$%u", i), call->args[i]->type, call->args[i]->nullable};
        if (!fields[i].name) return ck_nomem(err, call->arena->mem, 16);
    }
    call->type = ck_type_row(call->arena, fields, n);
    call->nullable = false;
    call->impl = &impl_row;
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, n * sizeof *fields);
}

/* ---- elements ---- */

/* Position in the child of what row i asks for, -1: nothing. */
static int64_t array_position(const ck_vec *args, uint32_t i) {
    const ck_column *c = args[0].col;
    uint32_t row = CK_AT(args[0], i);
    int64_t index = CK_ARG_I64(1, i), n = c->offsets[row + 1] - c->offsets[row];
    return index >= 1 && index <= n ? c->offsets[row] + index - 1 : -1;
}

static int64_t map_position(const ck_vec *args, uint32_t i) {
    const ck_column *c = args[0].col;
    uint32_t row = CK_AT(args[0], i);
    for (int32_t at = c->offsets[row]; at < c->offsets[row + 1]; at++)
        if (ck_column_rows_equal(c->children[0]->children[0], (size_t)at, args[1].col, CK_AT(args[1], i))) return at;
    return -1;
}

static ck_status kernel_item(CK_KERNEL_ARGS) {
    bool map = call->args[0]->type->kind == CK_TYPE_MAP;
    const ck_column *from = map ? args[0].col->children[0]->children[1] : args[0].col->children[0];
    uint64_t *wanted = ev->words[1];
    mark_rows(ev, rows, wanted);
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, ev->mem, call->type, rows->row_count);
    if (s != CK_OK) return ck_nomem(err, ev->mem, rows->row_count);
    for (uint32_t i = 0; s == CK_OK && i < rows->row_count; i++) {
        int64_t at = !ck_bit_get(wanted, i) ? -1 : map ? map_position(args, i) : array_position(args, i);
        if (at < 0 || ck_column_is_null(from, (size_t)at))
            s = ck_build_null(&b);
        else
            s = ck_build_from(&b, from, (uint32_t)at);
    }
    return finish(ev, &b, s, out, err);
}
static const ck_impl impl_item = {.kernel = kernel_item};

static ck_status bind_item(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    const ck_type *t = call->args[0]->type;
    if (t->kind != CK_TYPE_ARRAY && t->kind != CK_TYPE_MAP) return ck_bind_mismatch(call, err);
    const ck_type *key = t->kind == CK_TYPE_MAP ? t->fields[0].type : ck_type_simple(CK_TYPE_BIGINT);
    if (ck_implicit_cost(call->args[1], key->kind) < 0) return ck_bind_mismatch(call, err);
    CK_TRY(ck_coerce(call->arena, call->args[1], key, true, &call->args[1], err));
    call->type = t->fields[t->kind == CK_TYPE_MAP].type;
    call->nullable = true;
    call->impl = &impl_item;
    return CK_OK;
}

static ck_status kernel_field(CK_KERNEL_ARGS) {
    (void)ev, (void)rows, (void)err;
    const ck_type *t = call->args[0]->type;
    uint32_t i = 0;
    while (!ck_view_is(call->args[1]->value.str, t->fields[i].name)) i++;
    out->col = ck_column_ref(args[0].col->children[i]);
    return CK_OK;
}
static const ck_impl impl_field = {.kernel = kernel_field, .flags = CK_FN_FIRST | CK_FN_BLIND};

static ck_status bind_field(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2 || !ck_expr_is_text_literal(call->args[1])) return ck_bind_mismatch(call, err);
    const ck_type *t = call->args[0]->type;
    ck_view name = call->args[1]->value.str;
    if (t->kind != CK_TYPE_ROW)
        return ck_fail(err, CK_INVALID, "%s has no fields, so there is no %.*s", ck_type_name(call->arena, t),
                       (int)name.n, name.p);
    for (uint32_t i = 0; i < t->field_count; i++) {
        if (!ck_view_is(name, t->fields[i].name)) continue;
        call->type = t->fields[i].type;
        call->nullable = call->args[0]->nullable || t->fields[i].nullable;
        call->impl = &impl_field;
        return CK_OK;
    }
    return ck_fail(err, CK_INVALID, "no field %.*s in %s", (int)name.n, name.p, ck_type_name(call->arena, t));
}

/* ---- of whole lists ---- */

static ck_status kernel_cardinality(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    const int32_t *at = args[0].col->offsets;
    for (CK_EACH_ROW(k, i, rows)) out->col->i64[i] = at[i + 1] - at[i];
    return CK_OK;
}
static const ck_impl impl_cardinality = {.kernel = kernel_cardinality};

static ck_status bind_cardinality(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 1) return ck_bind_mismatch(call, err);
    ck_kind k = call->args[0]->type->kind;
    if (k != CK_TYPE_ARRAY && k != CK_TYPE_MAP) return ck_bind_mismatch(call, err);
    call->type = ck_type_simple(CK_TYPE_INTEGER);
    call->impl = &impl_cardinality;
    return CK_OK;
}

static int64_t find_element(const ck_vec *args, uint32_t i) {
    const ck_column *c = args[0].col;
    uint32_t row = CK_AT(args[0], i);
    for (int32_t at = c->offsets[row]; at < c->offsets[row + 1]; at++)
        if (ck_column_rows_equal(c->children[0], (size_t)at, args[1].col, CK_AT(args[1], i)))
            return at - c->offsets[row] + 1;
    return 0;
}

static ck_status kernel_contains(CK_KERNEL_ARGS) {
    bool position = call->type->kind != CK_TYPE_BOOLEAN;
    CK_TRY(ck_eval_result(ev, position ? CK_PHYS_I64 : CK_PHYS_BOOL, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t at = find_element(args, i);
        if (position)
            out->col->i64[i] = at;
        else
            ck_bit_put(out->col->bits, i, at > 0);
    }
    return CK_OK;
}
static const ck_impl impl_contains = {.kernel = kernel_contains};

static ck_status bind_contains(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2 || call->args[0]->type->kind != CK_TYPE_ARRAY) return ck_bind_mismatch(call, err);
    const ck_type *elem = call->args[0]->type->fields[0].type;
    if (ck_implicit_cost(call->args[1], elem->kind) < 0 && !ck_type_eq(call->args[1]->type, elem))
        return ck_bind_mismatch(call, err);
    CK_TRY(ck_coerce(call->arena, call->args[1], elem, true, &call->args[1], err));
    call->type = ck_type_simple(strcmp(call->name, "array_position") == 0 ? CK_TYPE_INTEGER : CK_TYPE_BOOLEAN);
    call->impl = &impl_contains;
    return CK_OK;
}

/* The keys or the values of a map: the map's lists over one of the two children. */
static ck_status kernel_side(CK_KERNEL_ARGS) {
    const ck_column *map = args[0].col;
    ck_column *side = map->children[0]->children[call->impl->op];
    CK_TRY(ck_eval_result(ev, CK_PHYS_LIST, rows, out, err));
    memcpy(out->col->offsets, map->offsets, (rows->row_count + 1) * sizeof *map->offsets);
    ck_column *child = ck_column_ref(side);
    if (ck_column_set_children(out->col, &child, 1) == CK_OK) return CK_OK;
    ck_column_unref(&child);
    ck_column_unref(&out->col);
    return ck_nomem(err, ev->mem, sizeof child);
}
static const ck_impl impl_keys = {.kernel = kernel_side, .flags = CK_FN_BLIND, .op = 0},
                     impl_values = {.kernel = kernel_side, .flags = CK_FN_BLIND, .op = 1};

static ck_status bind_side(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 1 || call->args[0]->type->kind != CK_TYPE_MAP) return ck_bind_mismatch(call, err);
    uint32_t side = strcmp(call->name, "map_values") == 0;
    const ck_field *f = &call->args[0]->type->fields[side];
    call->type = ck_type_array(call->arena, f->type, side && f->nullable);
    call->impl = side ? &impl_values : &impl_keys;
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *f);
}

/* ---- text ---- */

/* The elements with a separator between them; NULLs are left out. */
static ck_status join_row(ck_strout *w, const ck_type *elem, const ck_vec *args, uint32_t i, ck_bytes *b) {
    const ck_column *c = args[0].col;
    uint32_t row = CK_AT(args[0], i);
    ck_view sep = CK_ARG_STR(1, i);
    bool any = false;
    ck_bytes_clear(b);
    for (int32_t at = c->offsets[row]; at < c->offsets[row + 1]; at++) {
        if (ck_column_is_null(c->children[0], (size_t)at)) continue;
        if (any) CK_TRY(ck_bytes_view(b, sep));
        CK_TRY(ck_print_value(elem, c->children[0], (uint32_t)at, b));
        any = true;
    }
    return ck_strout_put(w, i, ck_bytes_as_view(b));
}

static ck_status kernel_join(CK_KERNEL_ARGS) {
    const ck_type *elem = call->args[0]->type->fields[0].type;
    ck_bytes b;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_bytes_init(&b, ev->mem, CK_STRING_BYTES_MAX);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        s = join_row(&w, elem, args, i, &b);
        if (s == CK_FULL) s = ck_strout_mark(&w, i, CK_MARK_TOO_LONG);
    }
    ck_bytes_destroy(&b);
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_join = {.kernel = kernel_join, .flags = CK_FN_FALLIBLE};

static ck_status bind_join(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2 || call->args[0]->type->kind != CK_TYPE_ARRAY ||
        ck_implicit_cost(call->args[1], CK_TYPE_VARCHAR) < 0)
        return ck_bind_mismatch(call, err);
    CK_TRY(ck_coerce(call->arena, call->args[1], ck_type_simple(CK_TYPE_VARCHAR), true, &call->args[1], err));
    call->type = ck_type_simple(CK_TYPE_VARCHAR);
    call->impl = &impl_join;
    return CK_OK;
}

/* ---- splitting a text into an array ---- */

static ck_status split_row(ck_column_builder *b, ck_view text, ck_view sep) {
    const char *p = text.p, *end = text.p + text.n;
    while (sep.n) {
        const char *hit = ck_find((ck_view){p, (size_t)(end - p)}, sep);
        if (!hit) break;
        CK_TRY(ck_build_str(&b->children[0], p, (size_t)(hit - p)));
        p = hit + sep.n;
    }
    CK_TRY(ck_build_str(&b->children[0], p, (size_t)(end - p)));
    return ck_build_end(b);
}

static ck_status kernel_split(CK_KERNEL_ARGS) {
    uint64_t *wanted = ev->words[1];
    mark_rows(ev, rows, wanted);
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, ev->mem, call->type, rows->row_count);
    if (s != CK_OK) return ck_nomem(err, ev->mem, rows->row_count);
    for (uint32_t i = 0; s == CK_OK && i < rows->row_count; i++)
        s = ck_bit_get(wanted, i) ? split_row(&b, CK_ARG_STR(0, i), CK_ARG_STR(1, i)) : ck_build_null(&b);
    return finish(ev, &b, s, out, err);
}
static const ck_impl impl_split = {.kernel = kernel_split};

static ck_status bind_split(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    for (uint32_t i = 0; i < 2; i++) {
        if (ck_implicit_cost(call->args[i], CK_TYPE_VARCHAR) < 0) return ck_bind_mismatch(call, err);
        CK_TRY(ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_VARCHAR), true, &call->args[i], err));
    }
    call->type = ck_type_array(call->arena, ck_type_simple(CK_TYPE_VARCHAR), false);
    call->impl = &impl_split;
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *call->type);
}

#define FN(NAME, BIND, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                               \
    .name = NAME, .bind = BIND, .group = "arrays, maps and rows", .syntax = SYNTAX, .summary = SUMMARY,                \
    .example = EXAMPLE, .result = RESULT
static const ck_function functions[] = {
    {FN("array", bind_array, "ARRAY[a, b, ...]", "An array of these elements.", "ARRAY[1, 2, 3]", "[1,2,3]"),
     .flags = CK_FN_INTERNAL},
    {FN("map", bind_map, "MAP[key, value, ...]", "A map of these entries; of equal keys the last counts.",
        "MAP['a', 1, 'b', 2]", "{\"a\":1,\"b\":2}"),
     .flags = CK_FN_INTERNAL},
    {FN("row", bind_row, "ROW(a, b, ...)", "A row of these fields.", "ROW(1, 'x')", "{\"EXPR$0\":1,\"EXPR$1\":\"x\"}"),
     .flags = CK_FN_INTERNAL},
    {FN("item", bind_item, "array[index] or map[key]",
        "The element at an index, counted from 1, or the value of a key; NULL when there is none.", "ARRAY[7, 8][2]",
        "8"),
     .flags = CK_FN_INTERNAL, .aliases = "element_at"},
    {FN("field", bind_field, "row.name", "A field of a row.", "ROW(1, 'x').EXPR$1", "x"), .flags = CK_FN_INTERNAL},
    {FN("cardinality", bind_cardinality, "CARDINALITY(array or map)", "How many elements or entries it has.",
        "CARDINALITY(ARRAY[1, 2])", "2"),
     .aliases = "array_length"},
    {FN("array_contains", bind_contains, "ARRAY_CONTAINS(array, element)", "Whether the element is in the array.",
        "ARRAY_CONTAINS(ARRAY[1, 2], 2)", "true")},
    {FN("array_position", bind_contains, "ARRAY_POSITION(array, element)",
        "Where the element is first, counting from 1; 0 when it is not there.", "ARRAY_POSITION(ARRAY[5, 6], 6)", "2")},
    {FN("array_join", bind_join, "ARRAY_JOIN(array, separator)",
        "The elements as one text with the separator between them; NULLs are left out.", "ARRAY_JOIN(ARRAY[1, 2], '-')",
        "1-2"),
     .aliases = "array_to_string"},
    {FN("split", bind_split, "SPLIT(text, separator)", "The parts of the text between separators, as an array.",
        "SPLIT('a,b', ',')", "[\"a\",\"b\"]"),
     .aliases = "string_to_array"},
    {FN("map_keys", bind_side, "MAP_KEYS(map)", "The keys as an array.", "MAP_KEYS(MAP['a', 1])", "[\"a\"]")},
    {FN("map_values", bind_side, "MAP_VALUES(map)", "The values as an array.", "MAP_VALUES(MAP['a', 1])", "[1]")},
};
const ck_function_table ck_functions_nested = {functions, CK_ARRAY_COUNT(functions)};
