/* Values of messages into columns, whether a column's own arrays or the builder of what is nested. */
#include <stdio.h>

#include "data/text.h"
#include "expr/decimal.h"
#include "format/message_int.h"

static ck_status null_inside(ck_messages *m, const ck_field *f, const char *how) {
    if (f->name && f->name[0] && strcmp(f->name, m->why->field ? m->why->field : "") != 0)
        return ck_why_set(m->why, "field %.100s of column %.200s is %s and NOT NULL", f->name, m->why->field, how);
    return ck_why_set(m->why, "column %.200s holds a null where it is NOT NULL", m->why->field);
}

ck_status ck_put_null(ck_messages *m, ck_slot s, const char *how) {
    if (!s.field->nullable)
        return s.target ? ck_why_set(m->why, "column %.200s is %s and NOT NULL", s.field->name, how)
                        : null_inside(m, s.field, how);
    return s.target ? ck_rows_null(s.target, m->rows->row_count) : ck_build_null(s.builder);
}

static void valid(ck_messages *m, ck_slot s) { ck_rows_valid(s.target, m->rows->row_count); }

static ck_status put_raw(ck_messages *m, ck_slot s, int64_t v) {
    if (s.builder) return ck_build_i64(s.builder, v);
    valid(m, s);
    s.target->i64[m->rows->row_count] = v;
    return CK_OK;
}

static ck_status out_of_range(ck_messages *m, ck_slot s, int64_t v) {
    char text[32];
    int n = snprintf(text, sizeof text, "%lld", (long long)v);
    return ck_why_range(m->why, s.field->type, (ck_view){text, n < 0 ? 0 : (size_t)n}, false);
}

ck_status ck_put_i64(ck_messages *m, ck_slot s, int64_t v) {
    ck_kind k = s.field->type->kind;
    int64_t lo, hi;
    if (ck_kind_is_integer(k) && k != CK_TYPE_BIGINT) {
        ck_kind_int_range(k, &lo, &hi);
        if (v < lo || v > hi) return out_of_range(m, s, v);
    }
    if (k == CK_TYPE_DATE && (v < -719162 || v > 2932896)) return out_of_range(m, s, v);
    return put_raw(m, s, v);
}

ck_status ck_put_time(ck_messages *m, ck_slot s, int64_t v, int64_t unit_us) {
    int64_t us, lo = -62135596800000000, hi = 253402300799999999; /* the years 1 to 9999 */
    if (s.field->type->kind == CK_TYPE_TIME) lo = 0, hi = 86399999999;
    if (__builtin_mul_overflow(v, unit_us, &us) || us < lo || us > hi) return out_of_range(m, s, v);
    return put_raw(m, s, ck_time_at_precision(s.field->type->precision, us));
}

ck_status ck_put_f64(ck_messages *m, ck_slot s, double v) {
    if (s.builder) return ck_build_f64(s.builder, v);
    valid(m, s);
    s.target->f64[m->rows->row_count] = v;
    return CK_OK;
}

ck_status ck_put_bool(ck_messages *m, ck_slot s, bool v) {
    if (s.builder) return ck_build_bool(s.builder, v);
    valid(m, s);
    ck_bit_put(s.target->bits, m->rows->row_count, v);
    return CK_OK;
}

ck_status ck_put_decimal(ck_messages *m, ck_slot s, ck_i128 v, int32_t scale) {
    const ck_type *t = s.field->type;
    if (__builtin_mul_overflow(v, ck_pow10(t->scale - scale), &v) || !ck_decimal_fits(v, t->precision))
        return ck_why_range(m->why, t, CK_VIEW("a decimal"), false);
    if (s.builder) return ck_build_i128(s.builder, v);
    valid(m, s);
    s.target->i128[m->rows->row_count] = v;
    return CK_OK;
}

ck_status ck_put_bytes(ck_messages *m, ck_slot s, const char *p, size_t n, bool copied) {
    const ck_type *t = s.field->type;
    if (t->kind == CK_TYPE_VARCHAR && !m->utf8((const uint8_t *)p, n)) return ck_why_set(m->why, "a text is no UTF-8");
    CK_TRY(ck_value_limit(t, (ck_view){p, n}, m->why));
    if (s.builder) return copied ? ck_build_str(s.builder, p, n) : ck_build_str_in(s.builder, m->buf, p, n);
    uint32_t row = m->rows->row_count, index;
    valid(m, s);
    if (copied) return ck_rows_copy(m->rows, s.target, p, n, &s.target->views[row]);
    if (n <= CK_STRVIEW_INLINE) {
        s.target->views[row] = ck_strview_inline(p, n);
        return CK_OK;
    }
    CK_TRY(ck_rows_heap(m->rows, m->buf, &index));
    s.target->views[row] = ck_strview_ref(p, n, index, (uint32_t)((const uint8_t *)p - m->buf->p));
    s.target->long_seen = true;
    return CK_OK;
}

ck_status ck_messages_element(ck_messages *m) {
    if (++m->elements <= CK_MESSAGE_ELEMENTS_MAX) return CK_OK;
    return ck_why_set(m->why, "the message holds more than %d elements", CK_MESSAGE_ELEMENTS_MAX);
}
