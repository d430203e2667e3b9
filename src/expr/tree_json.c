/* Expressions as JSON, in operators' parameters:
 *
 *   {"col":3,"type":"BIGINT","null":true}
 *   {"lit":12,"type":"INTEGER"}      numbers to 64 bits as numbers, doubles and DECIMALs as their text, BYTES as hex
 *   {"fn":"+","args":[...],"type":"BIGINT","at":[3,14]}     casts are {"fn":"cast","args":[x],"type":...},
 *                                                           assignments {"fn":"assign","args":[x,column],"type":...}
 *
 * "null" is left out where false, "at" where there is no position. A call is bound again when it is read and must come
 * out with the type that is written. */
#include "expr/tree_int.h"

#include <string.h>
#include <yyjson.h>

#include "data/text.h"
#include "expr/library.h"

/* ---- writing ---- */

static ck_status put_type(yyjson_mut_doc *doc, yyjson_mut_val *obj, const ck_type *t, ck_bytes *b) {
    ck_bytes_clear(b);
    CK_TRY(ck_type_print(t, b));
    return yyjson_mut_obj_add_strncpy(doc, obj, "type", b->p, b->n) ? CK_OK : CK_NOMEM;
}

static yyjson_mut_val *hex_value(yyjson_mut_doc *doc, ck_view v, ck_bytes *b) {
    ck_bytes_clear(b);
    for (size_t i = 0; i < v.n; i++)
        if (ck_bytes_printf(b, "%02x", (unsigned)(unsigned char)v.p[i]) != CK_OK) return NULL;
    return yyjson_mut_strncpy(doc, b->n ? b->p : "", b->n);
}

static yyjson_mut_val *literal_value(yyjson_mut_doc *doc, const ck_expr *e, ck_bytes *b) {
    const ck_datum *v = &e->value;
    char text[48];
    if (v->null) return yyjson_mut_null(doc);
    switch (ck_type_phys(e->type)) {
    case CK_PHYS_BOOL: return yyjson_mut_bool(doc, v->b);
    case CK_PHYS_I64: return yyjson_mut_sint(doc, v->i64);
    case CK_PHYS_F64: return yyjson_mut_strncpy(doc, text, ck_print_f64(text, v->f64));
    case CK_PHYS_I128: return yyjson_mut_strncpy(doc, text, ck_print_decimal(text, v->i128, e->type->scale));
    case CK_PHYS_VIEW:
        if (e->type->kind == CK_TYPE_BYTES) return hex_value(doc, v->str, b);
        return yyjson_mut_strncpy(doc, v->str.p, v->str.n);
    default: return yyjson_mut_null(doc);
    }
}

static ck_status to_json(const ck_expr *e, yyjson_mut_doc *doc, ck_bytes *b, yyjson_mut_val **out) {
    yyjson_mut_val *obj = yyjson_mut_obj(doc);
    bool good = obj != NULL;
    if (e->kind == CK_EXPR_COLUMN) {
        good = good && yyjson_mut_obj_add_uint(doc, obj, "col", e->column);
    } else if (e->kind == CK_EXPR_LITERAL) {
        yyjson_mut_val *v = literal_value(doc, e, b);
        good = good && v && yyjson_mut_obj_add_val(doc, obj, "lit", v);
    } else {
        yyjson_mut_val *args = yyjson_mut_arr(doc);
        good = good && args && yyjson_mut_obj_add_str(doc, obj, "fn", e->fn->name);
        for (uint32_t i = 0; good && i < e->arg_count; i++) {
            yyjson_mut_val *arg;
            CK_TRY(to_json(e->args[i], doc, b, &arg));
            good = yyjson_mut_arr_append(args, arg);
        }
        good = good && yyjson_mut_obj_add_val(doc, obj, "args", args);
    }
    if (good) CK_TRY(put_type(doc, obj, e->type, b));
    if (e->fails_to_null || (e->nullable && e->kind == CK_EXPR_COLUMN))
        good = good && yyjson_mut_obj_add_bool(doc, obj, "null", true);
    if (e->line) {
        yyjson_mut_val *at = yyjson_mut_arr(doc);
        good = good && at && yyjson_mut_arr_add_uint(doc, at, e->line) && yyjson_mut_arr_add_uint(doc, at, e->col) &&
               yyjson_mut_obj_add_val(doc, obj, "at", at);
    }
    *out = obj;
    return good ? CK_OK : CK_NOMEM;
}

/* The document's allocator as a heap, for the texts that are made on the way. */
typedef struct document_heap {
    ck_heap base;
    yyjson_alc *alc;
} document_heap;

static void *heap_alloc(ck_heap *h, size_t bytes) {
    yyjson_alc *alc = ((document_heap *)h)->alc;
    return alc->malloc(alc->ctx, bytes ? bytes : 1);
}
static void *heap_realloc(ck_heap *h, void *p, size_t old_bytes, size_t bytes) {
    yyjson_alc *alc = ((document_heap *)h)->alc;
    return alc->realloc(alc->ctx, p, old_bytes, bytes);
}
static void heap_free(ck_heap *h, void *p, size_t bytes) {
    yyjson_alc *alc = ((document_heap *)h)->alc;
    (void)bytes;
    alc->free(alc->ctx, p);
}

ck_status ck_expr_to_json(const ck_expr *e, struct yyjson_mut_doc *doc, struct yyjson_mut_val **out) {
    document_heap heap = {{heap_alloc, heap_realloc, heap_free}, &doc->alc};
    ck_budget budget;
    ck_budget_init(&budget, &heap.base, 0);
    ck_bytes b;
    ck_bytes_init(&b, (ck_mem){&budget, CK_MEM_PLAN}, SIZE_MAX / 4);
    ck_status s = to_json(e, doc, &b, out);
    ck_bytes_destroy(&b);
    return s;
}

/* ---- reading ---- */

typedef struct reader {
    ck_arena *arena;
    ck_error *err;
    uint32_t depth;
    const ck_library *library;
} reader;

static ck_status bad(const reader *r, const char *what) {
    return ck_fail(r->err, CK_CORRUPT, "an expression's document: %s", what);
}

static ck_status from_json(reader *r, yyjson_val *v, ck_expr **out);

static bool digit_of(char c, unsigned *d) {
    if (c >= '0' && c <= '9')
        *d = (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f')
        *d = (unsigned)(c - 'a' + 10);
    else
        return false;
    return true;
}

static bool read_hex(ck_arena *a, yyjson_val *v, ck_view *out) {
    const char *p = yyjson_get_str(v);
    size_t n = yyjson_get_len(v);
    char *bytes = p && n % 2 == 0 ? ck_arena_alloc(a, n / 2 + 1) : NULL;
    if (!bytes) return false;
    for (size_t i = 0; i < n; i += 2) {
        unsigned high, low;
        if (!digit_of(p[i], &high) || !digit_of(p[i + 1], &low)) return false;
        bytes[i / 2] = (char)(high << 4 | low);
    }
    *out = (ck_view){bytes, n / 2};
    return true;
}

static bool int_fits(ck_kind k, int64_t v) {
    int64_t low, high;
    if (!ck_kind_is_integer(k)) return true;
    ck_kind_int_range(k, &low, &high);
    return v >= low && v <= high;
}

static bool read_datum(ck_arena *a, const ck_type *t, yyjson_val *v, ck_datum *d) {
    *d = (ck_datum){.null = yyjson_is_null(v)};
    if (d->null) return true;
    ck_view text = {yyjson_get_str(v), yyjson_get_len(v)};
    bool overflow;
    switch (ck_type_phys(t)) {
    case CK_PHYS_BOOL: d->b = yyjson_get_bool(v); return yyjson_is_bool(v);
    case CK_PHYS_I64:
        if (!yyjson_is_int(v) || (yyjson_is_uint(v) && yyjson_get_uint(v) > INT64_MAX)) return false;
        d->i64 = yyjson_get_sint(v);
        return int_fits(t->kind, d->i64);
    case CK_PHYS_F64: return text.p && ck_parse_f64(text, &d->f64);
    case CK_PHYS_I128: return text.p && ck_parse_decimal(text, t->precision, t->scale, &d->i128, &overflow);
    case CK_PHYS_VIEW:
        if (t->kind == CK_TYPE_BYTES) return read_hex(a, v, &d->str);
        d->str = text;
        return text.p != NULL;
    default: return false;
    }
}

/* The same type, but that its elements or fields may be NULL where those of `got` are not: an argument has become a
 * constant since, and what reads the value goes by the type it was bound with. */
static bool differs_in_nulls(const ck_type *got, const ck_type *type) {
    if (got->kind != type->kind || got->precision != type->precision || got->scale != type->scale ||
        got->field_count != type->field_count || (got->field_count == 0 && !ck_type_eq(got, type)))
        return false;
    for (uint32_t i = 0; i < got->field_count; i++) {
        const ck_field *g = &got->fields[i], *t = &type->fields[i];
        if (g->nullable && !t->nullable) return false;
        if (got->kind == CK_TYPE_ROW && strcmp(g->name, t->name) != 0) return false;
        if (!ck_type_eq(g->type, t->type) && !differs_in_nulls(g->type, t->type)) return false;
    }
    return true;
}

static ck_status read_call(reader *r, yyjson_val *v, const char *name, const ck_type *type, ck_expr **out) {
    yyjson_val *list = yyjson_obj_get(v, "args");
    size_t count = yyjson_arr_size(list);
    if (!yyjson_is_arr(list)) return bad(r, "a call without args");
    ck_expr **args = ck_arena_array(r->arena, count ? count : 1, sizeof *args);
    if (!args) return ck_nomem(r->err, r->arena->mem, count * sizeof *args);
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach(list, i, n, item) CK_TRY(from_json(r, item, &args[i]));
    ck_status s;
    if (strcmp(name, "cast") == 0 || strcmp(name, "try_cast") == 0) {
        if (count != 1) return bad(r, "a cast of other than one value");
        s = ck_expr_cast(r->arena, args[0], type, name[0] == 't', out, r->err);
    } else if (strcmp(name, "assign") == 0) {
        if (count != 2 || args[1]->kind != CK_EXPR_LITERAL || args[1]->type->kind != CK_TYPE_VARCHAR ||
            args[1]->value.null)
            return bad(r, "an assignment that is not of one value to a column's name");
        const char *column = ck_arena_strndup(r->arena, args[1]->value.str.p, args[1]->value.str.n);
        if (!column) return ck_nomem(r->err, r->arena->mem, args[1]->value.str.n);
        s = ck_expr_assign(r->arena, args[0], type, column, out, r->err);
    } else {
        const ck_function *fn = ck_library_function(r->library, name);
        s = fn ? ck_expr_call_of(r->arena, fn, args, (uint32_t)count, out, r->err)
               : ck_expr_call(r->arena, name, args, (uint32_t)count, out, r->err);
    }
    if (s == CK_INVALID && r->err) r->err->status = CK_CORRUPT;
    if (s != CK_OK) return s == CK_INVALID ? CK_CORRUPT : s;
    if (yyjson_get_bool(yyjson_obj_get(v, "null"))) (*out)->nullable = (*out)->fails_to_null = true;
    if (ck_type_eq((*out)->type, type)) return CK_OK;
    if (differs_in_nulls((*out)->type, type)) {
        *out = ck_expr_new_call(r->arena, (*out)->fn, (*out)->impl, (*out)->args, (*out)->arg_count, type,
                                (*out)->nullable);
        return *out ? CK_OK : ck_nomem(r->err, r->arena->mem, sizeof **out);
    }
    return ck_fail(r->err, CK_CORRUPT, "an expression's document: %s is %s, written as %s", name,
                   ck_type_name(r->arena, (*out)->type), ck_type_name(r->arena, type));
}

static ck_status read_node(reader *r, yyjson_val *v, ck_expr **out) {
    yyjson_val *type_text = yyjson_obj_get(v, "type"), *col = yyjson_obj_get(v, "col"), *lit = yyjson_obj_get(v, "lit");
    const char *fn = yyjson_get_str(yyjson_obj_get(v, "fn"));
    const ck_type *type;
    if (!yyjson_is_str(type_text)) return bad(r, "a node without a type");
    ck_status s =
        ck_type_parse(r->arena, (ck_view){yyjson_get_str(type_text), yyjson_get_len(type_text)}, &type, r->err);
    if (s != CK_OK) return s == CK_NOMEM ? s : CK_CORRUPT;
    if (col) {
        if (!yyjson_is_uint(col) || yyjson_get_uint(col) > UINT32_MAX) return bad(r, "col is no column number");
        *out =
            ck_expr_column(r->arena, (uint32_t)yyjson_get_uint(col), type, yyjson_get_bool(yyjson_obj_get(v, "null")));
    } else if (lit) {
        ck_datum d;
        if (!read_datum(r->arena, type, lit, &d)) return bad(r, "a literal that is not of its type");
        *out = ck_expr_literal(r->arena, type, d);
    } else {
        return fn ? read_call(r, v, fn, type, out) : bad(r, "a node that is no column, literal or call");
    }
    return *out ? CK_OK : ck_nomem(r->err, r->arena->mem, sizeof **out);
}

static ck_status from_json(reader *r, yyjson_val *v, ck_expr **out) {
    if (!yyjson_is_obj(v)) return bad(r, "a node that is no object");
    if (r->depth >= CK_EXPR_DEPTH_MAX) return bad(r, "nested too deeply");
    r->depth++;
    CK_TRY(read_node(r, v, out));
    r->depth--;
    yyjson_val *at = yyjson_obj_get(v, "at");
    if (at && !(*out)->line) {
        (*out)->line = (uint32_t)yyjson_get_uint(yyjson_arr_get(at, 0));
        (*out)->col = (uint32_t)yyjson_get_uint(yyjson_arr_get(at, 1));
    }
    return CK_OK;
}

ck_status ck_expr_from_json(ck_arena *a, const ck_library *l, struct yyjson_val *v, ck_expr **out, ck_error *err) {
    reader r = {.arena = a, .err = err, .library = l};
    *out = NULL;
    return from_json(&r, v, out);
}

/* ---- without binding ---- */

static bool is_volatile(const ck_function *f) {
    uint32_t flags = f->flags;
    for (uint32_t i = 0; i < f->overload_count; i++) flags |= f->overloads[i].impl->flags;
    return flags & (CK_FN_VOLATILE | CK_FN_NOW);
}

bool ck_expr_json_is_volatile(const ck_library *l, yyjson_val *v) {
    size_t i, n;
    yyjson_val *key, *item;
    if (yyjson_is_obj(v)) {
        const char *name = yyjson_get_str(yyjson_obj_get(v, "fn"));
        const ck_function *f = name ? ck_library_function(l, name) : NULL;
        if (f && is_volatile(f)) return true;
        yyjson_obj_foreach(v, i, n, key, item) if (ck_expr_json_is_volatile(l, item)) return true;
    } else if (yyjson_is_arr(v)) {
        yyjson_arr_foreach(v, i, n, item) if (ck_expr_json_is_volatile(l, item)) return true;
    }
    return false;
}
