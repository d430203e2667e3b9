/* See text.h: any value of a column as text. */
#include "data/text.h"

/* A nested value is JSON: strings and what is not a number stands in quotes, NULL is null. */
typedef struct printer {
    ck_bytes *out;
    bool json;
} printer;

static ck_status print_json_string(ck_view v, ck_bytes *out) {
    static const char hex[] = "0123456789abcdef";
    CK_TRY(ck_bytes_char(out, '"'));
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        const char *escape = c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\t' ? "\\t" : NULL;
        if (escape) {
            CK_TRY(ck_bytes_str(out, escape));
        } else if ((unsigned char)c < 0x20) {
            CK_TRY(ck_bytes_append(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4 & 15], hex[c & 15]}, 6));
        } else {
            CK_TRY(ck_bytes_char(out, c));
        }
    }
    return ck_bytes_char(out, '"');
}

static ck_status print_base64(ck_view v, ck_bytes *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    CK_TRY(ck_bytes_reserve(out, v.n / 3 * 4 + 4));
    char *p = out->p + out->n;
    for (size_t i = 0; i < v.n; i += 3) {
        size_t have = v.n - i < 3 ? v.n - i : 3;
        uint32_t w = 0;
        for (size_t j = 0; j < 3; j++) w = w << 8 | (j < have ? (unsigned char)v.p[i + j] : 0);
        for (size_t j = 0; j < 4; j++) *p++ = j <= have ? digits[w >> (18 - 6 * j) & 63] : '=';
    }
    out->n = (size_t)(p - out->p);
    return CK_OK;
}

/* "1-02": years and months. */
static size_t print_months(char *p, int64_t v) {
    size_t n = 0;
    if (v < 0) p[n++] = '-';
    uint64_t months = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    n += ck_print_i64(p + n, (int64_t)(months / 12));
    p[n++] = '-';
    p[n++] = (char)('0' + months % 12 / 10);
    p[n++] = (char)('0' + months % 12 % 10);
    return n;
}

/* "1 02:03:04.5": days, then a time with a fraction of groups of three. */
static size_t print_interval(char *p, int64_t v) {
    const uint64_t day_us = 86400000000;
    size_t n = 0;
    if (v < 0) p[n++] = '-';
    uint64_t us = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    n += ck_print_i64(p + n, (int64_t)(us / day_us));
    p[n++] = ' ';
    return n + ck_print_time(p + n, (int64_t)(us % day_us), 6);
}

static ck_status print_i64(const printer *p, const ck_type *t, int64_t v) {
    char text[64];
    size_t n = 0;
    bool quoted = p->json && !ck_kind_is_integer(t->kind);
    if (quoted) text[n++] = '"';
    switch (t->kind) {
    case CK_TYPE_DATE: n += ck_print_date(text + n, v); break;
    case CK_TYPE_TIME: n += ck_print_time(text + n, v, t->precision); break;
    case CK_TYPE_TIMESTAMP: n += ck_print_timestamp(text + n, v, t->precision, p->json ? 'T' : ' ', false); break;
    case CK_TYPE_TIMESTAMP_LTZ: n += ck_print_timestamp(text + n, v, t->precision, p->json ? 'T' : ' ', true); break;
    case CK_TYPE_INTERVAL_MONTH: n += print_months(text + n, v); break;
    case CK_TYPE_INTERVAL_US: n += print_interval(text + n, v); break;
    default: n += ck_print_i64(text + n, v);
    }
    if (quoted) text[n++] = '"';
    return ck_bytes_append(p->out, text, n);
}

static ck_status print_f64(const printer *p, const ck_type *t, double v) {
    char text[40];
    size_t n = t->kind == CK_TYPE_REAL ? ck_print_f32(text, (float)v) : ck_print_f64(text, v);
    bool quoted = p->json && v - v != 0; /* JSON has no such number */
    return quoted ? print_json_string((ck_view){text, n}, p->out) : ck_bytes_append(p->out, text, n);
}

static ck_status print_str(const printer *p, const ck_type *t, ck_view v) {
    if (t->kind != CK_TYPE_BYTES) return p->json ? print_json_string(v, p->out) : ck_bytes_view(p->out, v);
    if (p->json) CK_TRY(ck_bytes_char(p->out, '"'));
    CK_TRY(print_base64(v, p->out));
    return p->json ? ck_bytes_char(p->out, '"') : CK_OK;
}

static ck_status print_any(const printer *p, const ck_type *t, const ck_column *c, uint32_t row);

static ck_status print_array(const printer *p, const ck_type *t, const ck_column *c, uint32_t row) {
    CK_TRY(ck_bytes_char(p->out, '['));
    for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
        if (i > c->offsets[row]) CK_TRY(ck_bytes_char(p->out, ','));
        CK_TRY(print_any(p, t->fields[0].type, c->children[0], (uint32_t)i));
    }
    return ck_bytes_char(p->out, ']');
}

/* The keys of an object are strings: other keys stand as their text. */
static ck_status print_map_key(const printer *p, const ck_type *t, const ck_column *c, uint32_t row) {
    ck_bytes text;
    ck_bytes_init(&text, p->out->mem, p->out->bytes_max);
    printer bare = {&text, false};
    ck_status s = print_any(&bare, t, c, row);
    if (s == CK_OK) s = print_json_string(ck_bytes_as_view(&text), p->out);
    ck_bytes_destroy(&text);
    return s;
}

static ck_status print_map(const printer *p, const ck_type *t, const ck_column *c, uint32_t row) {
    const ck_column *entries = c->children[0];
    CK_TRY(ck_bytes_char(p->out, '{'));
    for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
        if (i > c->offsets[row]) CK_TRY(ck_bytes_char(p->out, ','));
        CK_TRY(print_map_key(p, t->fields[0].type, entries->children[0], (uint32_t)i));
        CK_TRY(ck_bytes_char(p->out, ':'));
        CK_TRY(print_any(p, t->fields[1].type, entries->children[1], (uint32_t)i));
    }
    return ck_bytes_char(p->out, '}');
}

static ck_status print_row(const printer *p, const ck_type *t, const ck_column *c, uint32_t row) {
    CK_TRY(ck_bytes_char(p->out, '{'));
    for (uint32_t i = 0; i < t->field_count; i++) {
        if (i) CK_TRY(ck_bytes_char(p->out, ','));
        CK_TRY(print_json_string(ck_view_of(t->fields[i].name), p->out));
        CK_TRY(ck_bytes_char(p->out, ':'));
        CK_TRY(print_any(p, t->fields[i].type, c->children[i], row));
    }
    return ck_bytes_char(p->out, '}');
}

static ck_status print_any(const printer *p, const ck_type *t, const ck_column *c, uint32_t row) {
    if (ck_column_is_null(c, row)) return ck_bytes_str(p->out, p->json ? "null" : "NULL");
    printer nested = {p->out, true};
    char text[48];
    switch (c->phys) {
    case CK_PHYS_NULL: break; /* is NULL */
    case CK_PHYS_BOOL: return ck_bytes_str(p->out, ck_bit_get(c->bits, row) ? "true" : "false");
    case CK_PHYS_I64: return print_i64(p, t, c->i64[row]);
    case CK_PHYS_F64: return print_f64(p, t, c->f64[row]);
    case CK_PHYS_I128: return ck_bytes_append(p->out, text, ck_print_decimal(text, c->i128[row], t->scale));
    case CK_PHYS_VIEW: return print_str(p, t, ck_column_str(c, row));
    case CK_PHYS_LIST: return t->kind == CK_TYPE_MAP ? print_map(&nested, t, c, row) : print_array(&nested, t, c, row);
    case CK_PHYS_STRUCT: return print_row(&nested, t, c, row);
    }
    return CK_OK;
}

ck_status ck_print_value(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    return print_any(&(printer){out, false}, t, c, row);
}
