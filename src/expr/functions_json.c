/* JSON in strings: values and parts by SQL/JSON paths, tests, and constructors. Text that is not JSON has no value: the
 * functions give NULL (IS JSON says so), and with a strict path an error. */
#include <yyjson.h>

#include "base/json.h"
#include "data/text.h"
#include "expr/bits_int.h"
#include "expr/coerce.h"
#include "expr/functions_int.h"
#include "expr/json_path.h"
#include "expr/strout.h"

typedef struct json_state {
    const ck_json_path *path; /* a constant one; NULL for IS JSON and constructors */
    ck_arena arena;           /* of one row's document */
} json_state;

enum { DOCUMENT_BYTES_MAX = 1 << 30 };

static void dispose_json(ck_eval *ev, void *state) {
    (void)ev;
    ck_arena_destroy(&((json_state *)state)->arena);
}

static ck_status prepare_json(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    json_state *s = CK_ARENA_NEW(&ev->arena, json_state);
    if (!s) return ck_nomem(err, ev->mem, sizeof *s);
    ck_arena_init(&s->arena, ev->mem, DOCUMENT_BYTES_MAX);
    *state = s;
    bool has_path = ck_expr_flags(call) & CK_FN_FIRST;
    return has_path ? ck_json_path_compile(&ev->arena, call->args[1]->value.str, &s->path, err) : CK_OK;
}

/* The document of a row in the state's arena, which the caller resets; NULL: the text is not JSON. */
static ck_status read_document(json_state *s, ck_view text, yyjson_doc **doc) {
    ck_status st = ck_json_read(&s->arena, text, doc, NULL);
    if (st != CK_OK) *doc = NULL;
    return st == CK_NOMEM ? st : CK_OK;
}

typedef struct found_value {
    yyjson_val *first;
    size_t count;
} found_value;

static bool note_first(void *arg, yyjson_val *v) {
    found_value *f = arg;
    if (f->count++ == 0) f->first = v;
    return f->count < 2;
}

/* A scalar's text; false: it has none (objects, arrays). Strings without quotes, numbers as written shortest. */
static bool scalar_text(yyjson_val *v, char number[40], ck_view *out) {
    switch (yyjson_get_type(v)) {
    case YYJSON_TYPE_STR: *out = (ck_view){yyjson_get_str(v), yyjson_get_len(v)}; return true;
    case YYJSON_TYPE_BOOL: *out = yyjson_get_bool(v) ? CK_VIEW("true") : CK_VIEW("false"); return true;
    case YYJSON_TYPE_NUM:
        out->p = number;
        if (yyjson_is_uint(v) && yyjson_get_uint(v) > INT64_MAX)
            out->n = ck_print_decimal(number, yyjson_get_uint(v), 0);
        else if (yyjson_is_int(v))
            out->n = ck_print_i64(number, yyjson_get_sint(v));
        else
            out->n = ck_print_f64(number, yyjson_get_real(v));
        return true;
    default: return false;
    }
}

typedef enum json_op { VALUE, QUERY, EXISTS } json_op;

static ck_status put_json(ck_strout *w, json_state *s, uint32_t row, yyjson_val *v) {
    yyjson_mut_doc *doc;
    ck_view text;
    CK_TRY(ck_json_new(&s->arena, &doc, w->err));
    yyjson_mut_val *copy = yyjson_val_mut_copy(doc, v);
    if (!copy) return CK_NOMEM;
    yyjson_mut_doc_set_root(doc, copy);
    CK_TRY(ck_json_write(&s->arena, doc, &text, w->err));
    return ck_strout_put(w, row, text);
}

static ck_status query_row(ck_strout *w, json_state *s, json_op op, uint32_t row, ck_view text) {
    yyjson_doc *doc;
    found_value f = {0};
    CK_TRY(read_document(s, text, &doc));
    bool strict = ck_json_path_is_strict(s->path);
    if (!doc) return strict ? ck_strout_mark(w, row, CK_MARK_ARGUMENT) : ck_strout_null(w, row);
    if (!ck_json_path_walk(s->path, yyjson_doc_get_root(doc), note_first, &f))
        return ck_strout_mark(w, row, CK_MARK_ARGUMENT);
    if (f.count != 1) return ck_strout_null(w, row); /* nothing there, or more than one value */
    if (op == QUERY) return yyjson_is_ctn(f.first) ? put_json(w, s, row, f.first) : ck_strout_null(w, row);
    char number[40];
    ck_view v;
    return scalar_text(f.first, number, &v) ? ck_strout_put(w, row, v) : ck_strout_null(w, row);
}

static ck_status kernel_query(CK_KERNEL_ARGS) {
    json_state *st = ck_eval_state(ev);
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_arena_mark m = ck_arena_mark_now(&st->arena);
        s = query_row(&w, st, (json_op)call->impl->op, i, CK_ARG_STR(0, i));
        ck_arena_reset_to(&st->arena, m);
    }
    return ck_strout_finish(&w, s, out);
}

static ck_status exists_row(ck_eval *ev, json_state *s, ck_column *c, uint32_t row, ck_view text, ck_error *err) {
    yyjson_doc *doc;
    found_value f = {0};
    CK_TRY(read_document(s, text, &doc));
    bool good = doc && ck_json_path_walk(s->path, yyjson_doc_get_root(doc), note_first, &f);
    ck_bit_put(c->bits, row, f.count > 0);
    if (!good && ck_json_path_is_strict(s->path)) return ck_eval_mark(ev, c, row, CK_MARK_ARGUMENT, err);
    return CK_OK;
}

static ck_status kernel_exists(CK_KERNEL_ARGS) {
    (void)call;
    json_state *st = ck_eval_state(ev);
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_arena_mark m = ck_arena_mark_now(&st->arena);
        s = exists_row(ev, st, out->col, i, CK_ARG_STR(0, i), err);
        ck_arena_reset_to(&st->arena, m);
    }
    if (s == CK_NOMEM) s = ck_nomem(err, ev->mem, 0);
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_status kernel_is_json(CK_KERNEL_ARGS) {
    (void)call;
    json_state *st = ck_eval_state(ev);
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        yyjson_doc *doc = NULL;
        ck_arena_mark m = ck_arena_mark_now(&st->arena);
        if (s == CK_OK) s = read_document(st, CK_ARG_STR(0, i), &doc);
        ck_bit_put(out->col->bits, i, doc != NULL);
        ck_arena_reset_to(&st->arena, m);
    }
    if (s == CK_NOMEM) s = ck_nomem(err, ev->mem, 0);
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

#define WITH_PATH(KERNEL, OP, FLAGS)                                                                                   \
    { .kernel = KERNEL, .flags = (FLAGS) | CK_FN_FIRST, .op = OP, .prepare = prepare_json, .dispose = dispose_json }
static const ck_impl impl_value = WITH_PATH(kernel_query, VALUE, CK_FN_FALLIBLE),
                     impl_query = WITH_PATH(kernel_query, QUERY, CK_FN_FALLIBLE),
                     impl_exists = WITH_PATH(kernel_exists, EXISTS, CK_FN_FALLIBLE),
                     impl_is_json = {.kernel = kernel_is_json, .prepare = prepare_json, .dispose = dispose_json};

static const ck_overload o_value[] = {{"ss>s", &impl_value, true}}, o_query[] = {{"ss>s", &impl_query, true}},
                         o_exists[] = {{"ss>b", &impl_exists, false}}, o_is_json[] = {{"s>b", &impl_is_json, false}};

static ck_status bind_path(ck_bind_call *call, ck_error *err) {
    CK_TRY(ck_bind_overloads(call, err));
    const ck_expr *path = call->args[1];
    if (path->kind != CK_EXPR_LITERAL || path->value.null)
        return ck_fail(err, CK_INVALID, "the path of %s is a string, like '$.a.b[0]'", call->fn->syntax);
    const ck_json_path *p;
    return ck_json_path_compile(call->arena, path->value.str, &p, err);
}

/* ---- constructors ---- */

typedef enum build { OBJECT, ARRAY, STRING } build;

/* A value of any type as JSON; row must hold one. ARRAY, MAP and ROW print as JSON already. */
static yyjson_mut_val *json_of(yyjson_mut_doc *doc, const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *b) {
    if (ck_column_is_null(c, row)) return yyjson_mut_null(doc);
    if (t->kind == CK_TYPE_BOOLEAN) return yyjson_mut_bool(doc, ck_bit_get(c->bits, row));
    if (ck_kind_is_integer(t->kind)) return yyjson_mut_sint(doc, c->i64[row]);
    ck_bytes_clear(b);
    if (ck_print_value(t, c, row, b) != CK_OK) return NULL;
    bool finite = !ck_kind_is_float(t->kind) || __builtin_isfinite(c->f64[row]);
    bool raw = (ck_kind_is_numeric(t->kind) && finite) || t->kind == CK_TYPE_ARRAY || t->kind == CK_TYPE_MAP ||
               t->kind == CK_TYPE_ROW;
    return raw ? yyjson_mut_rawncpy(doc, b->p, b->n) : yyjson_mut_strncpy(doc, b->n ? b->p : "", b->n);
}

static ck_status build_row(ck_strout *w, json_state *s, const ck_expr *call, const ck_vec *args, uint32_t row,
                           ck_bytes *b) {
    build kind = (build)call->impl->op;
    yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(&s->arena, &doc, w->err));
    yyjson_mut_val *root = kind == OBJECT ? yyjson_mut_obj(doc) : yyjson_mut_arr(doc);
    for (uint32_t i = 0; root && i < call->arg_count; i++) {
        yyjson_mut_val *key = NULL, *v;
        if (kind == OBJECT) {
            if (ck_column_is_null(args[i].col, CK_AT(args[i], row))) return ck_strout_mark(w, row, CK_MARK_ARGUMENT);
            ck_view name = CK_ARG_STR(i, row);
            if (!(key = yyjson_mut_strncpy(doc, name.p, name.n))) return CK_NOMEM;
            i++;
        }
        v = json_of(doc, call->args[i]->type, args[i].col, CK_AT(args[i], row), b);
        if (!v) return CK_NOMEM;
        if (kind == STRING)
            root = v;
        else if (key ? !yyjson_mut_obj_add(root, key, v) : !yyjson_mut_arr_append(root, v))
            return CK_NOMEM;
    }
    if (!root) return CK_NOMEM;
    yyjson_mut_doc_set_root(doc, root);
    ck_view text;
    CK_TRY(ck_json_write(&s->arena, doc, &text, w->err));
    return ck_strout_put(w, row, text);
}

static ck_status kernel_build(CK_KERNEL_ARGS) {
    json_state *st = ck_eval_state(ev);
    ck_bytes b;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_bytes_init(&b, ev->mem, CK_STRING_BYTES_MAX);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_arena_mark m = ck_arena_mark_now(&st->arena);
        s = build_row(&w, st, call, args, i, &b);
        ck_arena_reset_to(&st->arena, m);
    }
    ck_bytes_destroy(&b);
    return ck_strout_finish(&w, s, out);
}

#define BUILDS(OP, FLAGS)                                                                                              \
    { .kernel = kernel_build, .flags = FLAGS, .op = OP, .prepare = prepare_json, .dispose = dispose_json }
static const ck_impl impl_object = BUILDS(OBJECT, CK_FN_NULLS | CK_FN_FALLIBLE),
                     impl_array = BUILDS(ARRAY, CK_FN_NULLS | CK_FN_FALLIBLE),
                     impl_string = BUILDS(STRING, CK_FN_FALLIBLE);

static ck_status bind_build(ck_bind_call *call, ck_error *err) {
    bool object = strcmp(call->name, "json_object") == 0, string = strcmp(call->name, "json_string") == 0;
    if ((object && call->arg_count % 2) || (string && call->arg_count != 1)) return ck_bind_mismatch(call, err);
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (object && i % 2 == 0) {
            if (ck_implicit_cost(call->args[i], CK_TYPE_VARCHAR) < 0) return ck_bind_mismatch(call, err);
        } else if (call->args[i]->type->kind != CK_TYPE_NULL) {
            continue;
        }
        CK_TRY(ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_VARCHAR), true, &call->args[i], err));
    }
    call->type = ck_type_simple(CK_TYPE_VARCHAR);
    call->nullable = string && call->args[0]->nullable;
    call->impl = object ? &impl_object : string ? &impl_string : &impl_array;
    return CK_OK;
}

#define FN(NAME, BIND, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                               \
    .name = NAME, .bind = BIND, .group = "JSON", .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE,             \
    .result = RESULT
#define WITH(LIST) .overloads = LIST, .overload_count = CK_ARRAY_COUNT(LIST)
static const ck_function functions[] = {
    {FN("json_value", bind_path, "JSON_VALUE(text, path)",
        "The scalar at a path like '$.a.b[0]' of a JSON text, as VARCHAR; NULL when there is none (with 'strict $...' "
        "an "
        "error).",
        "JSON_VALUE('{\"a\":{\"b\":[7,8]}}', '$.a.b[1]')", "8"),
     WITH(o_value)},
    {FN("json_query", bind_path, "JSON_QUERY(text, path)", "The object or array at a path, as JSON text.",
        "JSON_QUERY('{\"a\":[1, 2]}', '$.a')", "[1,2]"),
     WITH(o_query)},
    {FN("json_exists", bind_path, "JSON_EXISTS(text, path)", "Whether something is at the path.",
        "JSON_EXISTS('{\"a\":1}', '$.b')", "false"),
     WITH(o_exists)},
    {FN("is_json", NULL, "IS_JSON(text)", "Whether the text is valid JSON.", "IS_JSON('[1]')", "true"),
     WITH(o_is_json)},
    {FN("json_object", bind_build, "JSON_OBJECT(name, value, ...)", "A JSON object; NULL values are null.",
        "JSON_OBJECT('a', 1, 'b', 'x')", "{\"a\":1,\"b\":\"x\"}")},
    {FN("json_array", bind_build, "JSON_ARRAY(value, ...)", "A JSON array; NULL values are null.",
        "JSON_ARRAY(1, 'x', NULL)", "[1,\"x\",null]")},
    {FN("json_string", bind_build, "JSON_STRING(value)", "Any value as JSON text.", "JSON_STRING('a\"b')",
        "\"a\\\"b\"")},
};
const ck_function_table ck_functions_json = {functions, CK_ARRAY_COUNT(functions)};
