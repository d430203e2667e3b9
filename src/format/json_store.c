/* JSON values into columns. Numbers, words and strings by the column's type; what is no string becomes VARCHAR as the
 * text it is. */
#include "base/base64.h"
#include "data/text.h"
#include "format/json_int.h"

static ck_view text_of(const ck_json_value *v) { return (ck_view){(const char *)v->p, (size_t)(v->end - v->p)}; }

ck_status ck_value_limit(const ck_type *t, ck_view v, ck_why *w) {
    if (t->precision <= 0 || v.n <= (size_t)t->precision) return CK_OK;
    bool bytes = t->kind == CK_TYPE_BYTES;
    size_t n = bytes ? v.n : ck_utf8_length((const uint8_t *)v.p, v.n);
    if (n <= (size_t)t->precision) return CK_OK;
    return ck_why_set(w, "%zu %s are too long for %s(%d)", n, bytes ? "bytes" : "characters",
                      bytes ? "BYTES" : "VARCHAR", t->precision);
}

ck_status ck_json_store_null(ck_json *j, ck_target *t, uint32_t row, const char *how) {
    if (!t->field->nullable) return ck_why_set(j->why, "column %.200s is %s and NOT NULL", t->field->name, how);
    return ck_rows_null(t, row);
}

ck_status ck_json_store_string(ck_json *j, ck_target *t, uint32_t row, const ck_json_value *v, ck_buffer *buf) {
    ck_rows_valid(t, row);
    ck_view s = text_of(v);
    if (v->escaped) {
        char *to;
        CK_TRY(ck_rows_reserve(j->rows, s.n, &to));
        t->views[row] = ck_rows_commit(j->rows, t, ck_json_unescape(v->p, v->end, to));
        return CK_OK;
    }
    if (s.n <= CK_STRVIEW_INLINE) {
        t->views[row] = ck_strview_inline(s.p, s.n);
        return CK_OK;
    }
    if (!buf) return ck_rows_copy(j->rows, t, s.p, s.n, &t->views[row]);
    uint32_t index;
    CK_TRY(ck_rows_heap(j->rows, buf, &index));
    t->views[row] = ck_strview_ref(s.p, s.n, index, (uint32_t)(v->p - buf->p));
    t->long_seen = true;
    return CK_OK;
}

static ck_status store_varchar(ck_json *j, ck_target *t, uint32_t row, const ck_json_value *v, ck_buffer *buf) {
    CK_TRY(ck_json_store_string(j, t, row, v, buf));
    if (t->field->type->precision == 0) return CK_OK;
    const ck_strview *view = &t->views[row];
    const uint8_t *heap = view->length <= CK_STRVIEW_INLINE ? NULL : j->rows->heaps[view->ref.buffer]->p;
    ck_view s = {heap ? (const char *)heap + view->ref.offset : view->inlined, (size_t)view->length};
    return ck_value_limit(t->field->type, s, j->why);
}

static ck_status store_bytes(ck_json *j, ck_target *t, uint32_t row, const ck_json_value *v) {
    ck_view s = text_of(v);
    if (v->kind != CK_JSON_STRING) return ck_why_not_a(j->why, t->field->type, s, false);
    char *to;
    CK_TRY(ck_rows_reserve(j->rows, s.n * 2, &to)); /* escapes go first, behind where the result will be */
    size_t n = s.n;
    if (v->escaped)
        n = ck_json_unescape(v->p, v->end, to + s.n);
    else
        memcpy(to + s.n, s.p, n);
    if (!ck_base64_decode((ck_view){to + s.n, n}, (uint8_t *)to, &n))
        return ck_why_not_a(j->why, t->field->type, s, true);
    CK_TRY(ck_value_limit(t->field->type, (ck_view){to, n}, j->why));
    ck_rows_valid(t, row);
    t->views[row] = ck_rows_commit(j->rows, t, n);
    return CK_OK;
}

ck_status ck_json_scalar(ck_json *j, const ck_type *t, const ck_json_value *v, ck_scalar *out) {
    ck_view s = text_of(v);
    ck_number n;
    const uint8_t *at;
    switch (v->kind) {
    case CK_JSON_FALSE:
    case CK_JSON_TRUE:
        if (t->kind != CK_TYPE_BOOLEAN) break;
        out->b = v->kind == CK_JSON_TRUE;
        return CK_OK;
    case CK_JSON_NUMBER:
        if (!ck_kind_is_numeric(t->kind)) break;
        (void)ck_number_scan(v->p, &n, &at); /* it was one when it was walked */
        return ck_value_number(t, s, &n, false, out, j->why);
    case CK_JSON_STRING: {
        char plain[64 + 16] = {0}; /* no scalar has longer text; zeros behind it end a number */
        if (!v->escaped) return ck_value_text(t, s, false, out, j->why);
        if (s.n > 64) break;
        return ck_value_text(t, (ck_view){plain, ck_json_unescape(v->p, v->end, plain)}, false, out, j->why);
    }
    default: break;
    }
    return ck_why_not_a(j->why, t, s, v->kind == CK_JSON_STRING);
}

ck_status ck_json_store(ck_json *j, ck_target *t, uint32_t row, const ck_json_value *v, ck_buffer *buf) {
    if (v->kind == CK_JSON_NULL) return ck_json_store_null(j, t, row, "null");
    if (t->nested) return ck_json_append(j, t->field, &t->builder, v, buf);
    if (t->kind == CK_TYPE_VARCHAR) return store_varchar(j, t, row, v, buf);
    if (t->kind == CK_TYPE_BYTES) return store_bytes(j, t, row, v);
    ck_scalar x = {0};
    CK_TRY(ck_json_scalar(j, t->field->type, v, &x));
    ck_rows_valid(t, row);
    switch (t->phys) {
    case CK_PHYS_BOOL: ck_bit_put(t->bits, row, x.b); break;
    case CK_PHYS_F64: t->f64[row] = x.f64; break;
    case CK_PHYS_I128: t->i128[row] = x.i128; break;
    default: t->i64[row] = x.i64; break;
    }
    return CK_OK;
}
