/* Values as PostgreSQL writes and reads them as text, with the settings client.c asks for. Exactly: what would lose a
 * digit is no value of the column. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "connector/postgres/pg_int.h"
#include "data/text.h"

enum { SHOWN_BYTES_MAX = 64, VALUE_BYTES_MAX = 1 << 30 };

void ck_pg_values_init(ck_pg_values *v, ck_mem mem) {
    ck_bytes_init(&v->scratch, mem, VALUE_BYTES_MAX);
    ck_bytes_init(&v->element, mem, VALUE_BYTES_MAX);
}

void ck_pg_values_destroy(ck_pg_values *v) {
    ck_bytes_destroy(&v->scratch);
    ck_bytes_destroy(&v->element);
}

bool ck_pg_has_type(const ck_type *t) {
    switch (t->kind) {
    case CK_TYPE_NULL:
    case CK_TYPE_INTERVAL_MONTH:
    case CK_TYPE_INTERVAL_US:
    case CK_TYPE_MAP:
    case CK_TYPE_ROW:
    case CK_TYPE_COUNT: return false;
    case CK_TYPE_ARRAY: return t->fields[0].type->kind != CK_TYPE_ARRAY && ck_pg_has_type(t->fields[0].type);
    default: return true;
    }
}

/* ---- reading ---- */

static ck_status because(ck_pg_values *v, ck_view text, const char *what) {
    size_t n = text.n < SHOWN_BYTES_MAX ? text.n : SHOWN_BYTES_MAX;
    while (n < text.n && n > 0 && ((uint8_t)text.p[n] & 0xC0) == 0x80) n--;
    (void)snprintf(v->why, sizeof v->why, "\"%.*s%s\" %s", (int)n, text.p, n < text.n ? "..." : "", what);
    return CK_DATA;
}

static ck_status build_integer(ck_pg_values *v, const ck_type *t, ck_view text, ck_column_builder *b) {
    int64_t lo, hi, x;
    ck_kind_int_range(t->kind, &lo, &hi);
    if (!ck_parse_i64(text, &x)) return because(v, text, "is no integer");
    if (x < lo || x > hi) return because(v, text, "is out of the column's range");
    return ck_build_i64(b, x);
}

static ck_status build_double(ck_pg_values *v, const ck_type *t, ck_view text, ck_column_builder *b) {
    double x;
    if (!ck_parse_f64(text, &x)) return because(v, text, "is no number");
    return ck_build_f64(b, t->kind == CK_TYPE_REAL ? (double)(float)x : x);
}

/* Digits behind the point that are not zeros at the end. */
static size_t fraction_digits(ck_view text) {
    const char *point = memchr(text.p, '.', text.n), *end = text.p + text.n;
    if (!point) return 0;
    while (end > point + 1 && end[-1] == '0') end--;
    return (size_t)(end - point) - 1;
}

static ck_status build_decimal(ck_pg_values *v, const ck_type *t, ck_view text, ck_column_builder *b) {
    ck_i128 x;
    bool overflow = false;
    if (fraction_digits(text) > (size_t)t->scale)
        return because(v, text, "has more digits behind the point than the column");
    if (!ck_parse_decimal(text, t->precision, t->scale, &x, &overflow))
        return because(v, text, overflow ? "has more digits than the column" : "is no decimal number");
    return ck_build_i128(b, x);
}

static ck_status build_time(ck_pg_values *v, const ck_type *t, ck_view text, ck_column_builder *b) {
    int64_t x;
    bool zoned, ok;
    if (t->kind == CK_TYPE_DATE)
        ok = ck_parse_date(text, &x);
    else if (t->kind == CK_TYPE_TIME)
        ok = ck_parse_time(text, &x);
    else
        ok = ck_parse_timestamp(text, &x, &zoned);
    if (!ok)
        return because(v, text, t->kind == CK_TYPE_TIME ? "is no time of a day" : "is no time from the year 1 to 9999");
    if (t->kind != CK_TYPE_DATE && ck_time_at_precision(t->precision, x) != x)
        return because(v, text, "has more digits of a second than the column");
    return ck_build_i64(b, x);
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static ck_status build_bytes(ck_pg_values *v, const ck_type *t, ck_view text, ck_column_builder *b) {
    if (text.n < 2 || text.n % 2 || text.p[0] != '\\' || text.p[1] != 'x') return because(v, text, "is no bytea");
    size_t n = text.n / 2 - 1;
    if (t->precision > 0 && n > (size_t)t->precision) return because(v, text, "is longer than the column");
    ck_bytes_clear(&v->scratch);
    CK_TRY(ck_bytes_reserve(&v->scratch, n));
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text.p[2 + 2 * i]), low = hex_digit(text.p[3 + 2 * i]);
        if (high < 0 || low < 0) return because(v, text, "is no bytea");
        v->scratch.p[i] = (char)(high << 4 | low);
    }
    return ck_build_str(b, v->scratch.p, n);
}

static size_t characters(ck_view text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) n += ((uint8_t)text.p[i] & 0xC0) != 0x80;
    return n;
}

static ck_status build_text(ck_pg_values *v, const ck_type *t, ck_view text, ck_buffer *in, ck_column_builder *b) {
    if (t->precision > 0 && text.n > (size_t)t->precision && characters(text) > (size_t)t->precision)
        return because(v, text, "is longer than the column");
    return in ? ck_build_str_in(b, in, text.p, text.n) : ck_build_str(b, text.p, text.n);
}

/* The element at *at of {a,"b \" c",NULL} into v->element; *at goes behind it. *null: it is NULL without quotes. */
static bool next_element(ck_pg_values *v, ck_view text, size_t *at, bool *null, ck_status *status) {
    bool quoted = *at < text.n && text.p[*at] == '"';
    size_t i = *at + quoted;
    ck_bytes_clear(&v->element);
    *status = ck_bytes_reserve(&v->element, text.n - *at + 1);
    if (*status != CK_OK) return false;
    for (; i < text.n; i++) {
        char c = text.p[i];
        if (quoted ? c == '"' : c == ',' || c == '}') break;
        if (!quoted && (c == '{' || c == '"')) return false;
        if (c == '\\' && ++i == text.n) return false;
        v->element.p[v->element.n++] = text.p[i];
    }
    if (quoted && (i == text.n || text.p[i++] != '"')) return false;
    if (i == text.n || (text.p[i] != ',' && text.p[i] != '}')) return false;
    *null = !quoted && v->element.n == 4 && ck_view_eq_nocase(ck_bytes_as_view(&v->element), CK_VIEW("NULL"));
    *at = i;
    return true;
}

static ck_status build_array(ck_pg_values *v, const ck_type *t, ck_view text, ck_column_builder *b) {
    const ck_field *element = &t->fields[0];
    size_t at = 0;
    if (text.n && text.p[0] == '[') { /* bounds of its own: [2:3]={...} */
        const char *eq = memchr(text.p, '=', text.n);
        at = eq ? (size_t)(eq - text.p) + 1 : 0;
    }
    if (at >= text.n || text.p[at] != '{') return because(v, text, "is no array");
    if (at + 1 < text.n && text.p[at + 1] == '}')
        return at + 2 == text.n ? ck_build_end(b) : because(v, text, "is no array");
    do {
        bool null = false;
        ck_status status = CK_OK;
        at++;
        if (at < text.n && text.p[at] == '{') return because(v, text, "is an array of more than one dimension");
        if (!next_element(v, text, &at, &null, &status))
            return status != CK_OK ? status : because(v, text, "is no array");
        CK_TRY(ck_pg_build(v, element, null ? (ck_view){0} : ck_bytes_as_view(&v->element), NULL, &b->children[0]));
    } while (text.p[at] == ',');
    return at + 1 == text.n ? ck_build_end(b) : because(v, text, "is no array");
}

ck_status ck_pg_build(ck_pg_values *v, const ck_field *f, ck_view text, ck_buffer *in, ck_column_builder *b) {
    const ck_type *t = f->type;
    if (!text.p) {
        if (f->nullable) return ck_build_null(b);
        (void)snprintf(v->why, sizeof v->why, "it is NULL, and the column is NOT NULL");
        return CK_DATA;
    }
    switch (t->kind) {
    case CK_TYPE_BOOLEAN:
        if (text.n != 1 || (text.p[0] != 't' && text.p[0] != 'f')) return because(v, text, "is no boolean");
        return ck_build_bool(b, text.p[0] == 't');
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
    case CK_TYPE_BIGINT: return build_integer(v, t, text, b);
    case CK_TYPE_REAL:
    case CK_TYPE_DOUBLE: return build_double(v, t, text, b);
    case CK_TYPE_DECIMAL: return build_decimal(v, t, text, b);
    case CK_TYPE_DATE:
    case CK_TYPE_TIME:
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return build_time(v, t, text, b);
    case CK_TYPE_BYTES: return build_bytes(v, t, text, b);
    case CK_TYPE_ARRAY: return build_array(v, t, text, b);
    default: return build_text(v, t, text, in, b);
    }
}

/* ---- writing ---- */

static ck_status print_hex(ck_view bytes, ck_bytes *out) {
    static const char digits[] = "0123456789abcdef";
    CK_TRY(ck_bytes_str(out, "\\x"));
    CK_TRY(ck_bytes_reserve(out, 2 * bytes.n));
    for (size_t i = 0; i < bytes.n; i++) {
        out->p[out->n++] = digits[(uint8_t)bytes.p[i] >> 4];
        out->p[out->n++] = digits[(uint8_t)bytes.p[i] & 15];
    }
    return CK_OK;
}

static ck_status print_array(ck_pg_values *v, const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    const ck_column *child = c->children[0];
    const ck_type *element = t->fields[0].type;
    bool quotes = ck_type_phys(element) == CK_PHYS_VIEW;
    CK_TRY(ck_bytes_char(out, '{'));
    for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
        if (i > c->offsets[row]) CK_TRY(ck_bytes_char(out, ','));
        if (ck_column_is_null(child, (size_t)i)) {
            CK_TRY(ck_bytes_str(out, "NULL"));
            continue;
        }
        size_t from = out->n;
        if (!quotes) {
            CK_TRY(ck_pg_print(v, element, child, (uint32_t)i, out));
            continue;
        }
        ck_bytes_clear(&v->element);
        CK_TRY(ck_pg_print(v, element, child, (uint32_t)i, &v->element));
        CK_TRY(ck_bytes_reserve(out, 2 * v->element.n + 2));
        out->p[from++] = '"';
        for (size_t k = 0; k < v->element.n; k++) {
            char ch = v->element.p[k];
            if (ch == '"' || ch == '\\') out->p[from++] = '\\';
            out->p[from++] = ch;
        }
        out->p[from++] = '"';
        out->n = from;
    }
    return ck_bytes_char(out, '}');
}

static size_t print_number(char *p, const ck_type *t, const ck_column *c, uint32_t row) {
    switch (t->kind) {
    case CK_TYPE_REAL: return ck_print_f32(p, (float)c->f64[row]);
    case CK_TYPE_DOUBLE: return ck_print_f64(p, c->f64[row]);
    case CK_TYPE_DECIMAL: return ck_print_decimal(p, c->i128[row], t->scale);
    case CK_TYPE_DATE: return ck_print_date(p, c->i64[row]);
    case CK_TYPE_TIME: return ck_print_time(p, c->i64[row], 6);
    case CK_TYPE_TIMESTAMP: return ck_print_timestamp(p, c->i64[row], 6, ' ', false);
    case CK_TYPE_TIMESTAMP_LTZ: return ck_print_timestamp(p, c->i64[row], 6, ' ', true);
    default: return ck_print_i64(p, c->i64[row]);
    }
}

ck_status ck_pg_print(ck_pg_values *v, const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    char text[64];
    switch (ck_type_phys(t)) {
    case CK_PHYS_BOOL: return ck_bytes_char(out, ck_bit_get(c->bits, row) ? 't' : 'f');
    case CK_PHYS_LIST: return print_array(v, t, c, row, out);
    case CK_PHYS_VIEW: break;
    default: return ck_bytes_append(out, text, print_number(text, t, c, row));
    }
    ck_view s = ck_column_str(c, row);
    if (t->kind == CK_TYPE_BYTES) return print_hex(s, out);
    if (s.n && memchr(s.p, 0, s.n)) {
        (void)snprintf(v->why, sizeof v->why, "a text has a NUL character, and PostgreSQL has no such texts");
        return CK_DATA;
    }
    return ck_bytes_view(out, s);
}

ck_status ck_pg_print_copy(ck_pg_values *v, const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    if (ck_column_is_null(c, row)) return ck_bytes_str(out, "\\N");
    if (ck_type_phys(t) != CK_PHYS_VIEW && ck_type_phys(t) != CK_PHYS_LIST) return ck_pg_print(v, t, c, row, out);
    ck_bytes_clear(&v->scratch);
    CK_TRY(ck_pg_print(v, t, c, row, &v->scratch));
    CK_TRY(ck_bytes_reserve(out, 2 * v->scratch.n));
    for (size_t i = 0; i < v->scratch.n; i++) {
        char ch = v->scratch.p[i], escaped = ch == '\t'   ? 't'
                                             : ch == '\n' ? 'n'
                                             : ch == '\r' ? 'r'
                                             : ch == '\\' ? '\\'
                                                          : 0;
        if (escaped) out->p[out->n++] = '\\';
        out->p[out->n++] = escaped ? escaped : ch;
    }
    return CK_OK;
}
