/* Values and records as JSON. Text is copied in runs between the few bytes that need an escape. */
#include "base/base64.h"
#include "data/text.h"
#include "format/copy_int.h"
#include "format/encode_int.h"

/* ---- scalars, for both formats ---- */

/* INTERVALs are only ever shown; nothing reads them back. */
static size_t interval(const ck_type *t, const ck_column *c, uint32_t row, char *p) {
    bool negative = c->i64[row] < 0;
    uint64_t v = negative ? 0 - (uint64_t)c->i64[row] : (uint64_t)c->i64[row];
    uint64_t unit = t->kind == CK_TYPE_INTERVAL_MONTH ? 12 : 86400000000;
    size_t n = 0;
    if (negative) p[n++] = '-';
    n += ck_print_i64(p + n, (int64_t)(v / unit));
    p[n++] = t->kind == CK_TYPE_INTERVAL_MONTH ? '-' : ' ';
    if (t->kind == CK_TYPE_INTERVAL_US) return n + ck_print_time(p + n, (int64_t)(v % unit), 6);
    p[n++] = (char)('0' + v % unit / 10);
    p[n++] = (char)('0' + v % unit % 10);
    return n;
}

size_t ck_encode_scalar(const ck_type *t, const ck_column *c, uint32_t row, char *p, bool *text) {
    *text = false;
    switch (t->kind) {
    case CK_TYPE_BOOLEAN: {
        bool yes = ck_bit_get(c->bits, row);
        memcpy(p, yes ? "true" : "false", 5);
        return yes ? 4 : 5;
    }
    case CK_TYPE_REAL:
    case CK_TYPE_DOUBLE: {
        double v = c->f64[row];
        *text = v - v != 0; /* JSON has no such number */
        return t->kind == CK_TYPE_REAL ? ck_print_f32(p, (float)v) : ck_print_f64(p, v);
    }
    case CK_TYPE_DECIMAL: return ck_print_decimal(p, c->i128[row], t->scale);
    case CK_TYPE_DATE: *text = true; return ck_print_date(p, c->i64[row]);
    case CK_TYPE_TIME: *text = true; return ck_print_time(p, c->i64[row], t->precision);
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ:
        *text = true;
        return ck_print_timestamp(p, c->i64[row], t->precision, 'T', t->kind == CK_TYPE_TIMESTAMP_LTZ);
    case CK_TYPE_INTERVAL_MONTH:
    case CK_TYPE_INTERVAL_US: *text = true; return interval(t, c, row, p);
    default: return ck_print_i64(p, c->i64[row]);
    }
}

/* ---- strings ---- */

static char *put_escape(char *p, uint8_t c) {
    static const char hex[] = "0123456789abcdef";
    char letter = c == '"'    ? '"'
                  : c == '\\' ? '\\'
                  : c == '\n' ? 'n'
                  : c == '\r' ? 'r'
                  : c == '\t' ? 't'
                  : c == '\b' ? 'b'
                  : c == '\f' ? 'f'
                              : 0;
    *p++ = '\\';
    if (letter) {
        *p++ = letter;
        return p;
    }
    memcpy(p, "u00", 3);
    p[3] = hex[c >> 4];
    p[4] = hex[c & 15];
    return p + 5;
}

ck_status ck_encode_json_string(ck_view v, ck_bytes *out) {
    static const ck_stops stops = {'"', '\\', '"', 0x20};
    CK_TRY(ck_bytes_reserve(out, v.n + 2 + CK_COPY_SLACK));
    out->p[out->n++] = '"';
    for (;;) {
        size_t n = ck_copy_until(out->p + out->n, v.p, v.n, stops);
        out->n += n;
        if (CK_LIKELY(n == v.n)) break;
        CK_TRY(ck_bytes_reserve(out, v.n - n + 7 + CK_COPY_SLACK)); /* one escape and the rest as it is */
        out->n = (size_t)(put_escape(out->p + out->n, (uint8_t)v.p[n]) - out->p);
        v.p += n + 1, v.n -= n + 1;
    }
    out->p[out->n++] = '"';
    return CK_OK;
}

/* ---- values ---- */

static ck_status array(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    CK_TRY(ck_bytes_char(out, '['));
    for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
        if (i > c->offsets[row]) CK_TRY(ck_bytes_char(out, ','));
        CK_TRY(ck_encode_json_value(t->fields[0].type, c->children[0], (uint32_t)i, out));
    }
    return ck_bytes_char(out, ']');
}

/* Keys of an object are strings: other keys stand as their text. */
static ck_status map_key(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    char text[CK_SCALAR_BYTES_MAX];
    bool quoted;
    if (t->kind == CK_TYPE_VARCHAR) return ck_encode_json_string(ck_column_str(c, row), out);
    if (t->kind == CK_TYPE_BYTES) return ck_encode_json_value(t, c, row, out);
    size_t n = ck_encode_scalar(t, c, row, text, &quoted);
    return ck_encode_json_string((ck_view){text, n}, out);
}

static ck_status map(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    const ck_column *entries = c->children[0];
    CK_TRY(ck_bytes_char(out, '{'));
    for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
        if (i > c->offsets[row]) CK_TRY(ck_bytes_char(out, ','));
        CK_TRY(map_key(t->fields[0].type, entries->children[0], (uint32_t)i, out));
        CK_TRY(ck_bytes_char(out, ':'));
        CK_TRY(ck_encode_json_value(t->fields[1].type, entries->children[1], (uint32_t)i, out));
    }
    return ck_bytes_char(out, '}');
}

static ck_status row_value(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    CK_TRY(ck_bytes_char(out, '{'));
    for (uint32_t i = 0; i < t->field_count; i++) {
        if (i) CK_TRY(ck_bytes_char(out, ','));
        CK_TRY(ck_encode_json_string(ck_view_of(t->fields[i].name), out));
        CK_TRY(ck_bytes_char(out, ':'));
        CK_TRY(ck_encode_json_value(t->fields[i].type, c->children[i], row, out));
    }
    return ck_bytes_char(out, '}');
}

ck_status ck_encode_json_value(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    if (ck_column_is_null(c, row)) return ck_bytes_append(out, "null", 4);
    switch (t->kind) {
    case CK_TYPE_VARCHAR: return ck_encode_json_string(ck_column_str(c, row), out);
    case CK_TYPE_BYTES:
        CK_TRY(ck_bytes_char(out, '"'));
        CK_TRY(ck_base64_encode(ck_column_str(c, row), out));
        return ck_bytes_char(out, '"');
    case CK_TYPE_ARRAY: return array(t, c, row, out);
    case CK_TYPE_MAP: return map(t, c, row, out);
    case CK_TYPE_ROW: return row_value(t, c, row, out);
    default: break;
    }
    CK_TRY(ck_bytes_reserve(out, CK_SCALAR_BYTES_MAX + 2));
    char *p = out->p + out->n;
    if (ck_kind_is_integer(t->kind)) {
        out->n += ck_print_i64(p, c->i64[row]);
        return CK_OK;
    }
    bool text;
    size_t n = ck_encode_scalar(t, c, row, p + 1, &text);
    if (text) {
        p[0] = p[n + 1] = '"';
        out->n += n + 2;
    } else {
        memmove(p, p + 1, n);
        out->n += n;
    }
    return CK_OK;
}

/* ---- records ---- */

/* Prefixes stand in memory of whole PREFIX_STEPs, so that a short one is copied in one. */
enum { PREFIX_STEP = 32 };
static size_t prefix_room(size_t bytes) { return (bytes + PREFIX_STEP - 1) / PREFIX_STEP * PREFIX_STEP; }

static ck_status make_prefix(const ck_encoder *e, ck_encoded_column *c, char first) {
    ck_bytes prefix;
    ck_bytes_init(&prefix, e->mem, CK_RECORD_BYTES_MAX);
    ck_status s = ck_bytes_char(&prefix, first);
    if (s == CK_OK) s = ck_encode_json_string(ck_view_of(c->field->name), &prefix);
    if (s == CK_OK) s = ck_bytes_char(&prefix, ':');
    if (s == CK_OK && !(c->prefix = ck_alloc_zero(e->mem, prefix_room(prefix.n)))) s = CK_NOMEM;
    if (s == CK_OK) {
        memcpy(c->prefix, prefix.p, prefix.n);
        c->prefix_bytes = prefix.n;
    }
    ck_bytes_destroy(&prefix);
    return s == CK_OK ? CK_OK : CK_NOMEM;
}

ck_status ck_json_encode_init(ck_encoder *e) {
    bool op = e->changes == CK_CHANGES_FIELD;
    for (uint32_t i = 0; i < e->schema->field_count; i++)
        CK_TRY(make_prefix(e, &e->columns[i], i == 0 && !op ? '{' : ','));
    return CK_OK;
}

void ck_json_encode_free(ck_encoder *e) {
    for (uint32_t i = 0; i < e->schema->field_count; i++)
        ck_free(e->mem, e->columns[i].prefix, prefix_room(e->columns[i].prefix_bytes));
}

static ck_status put_prefix(const ck_encoded_column *c, ck_bytes *out) {
    CK_TRY(ck_bytes_reserve(out, prefix_room(c->prefix_bytes)));
    if (CK_LIKELY(c->prefix_bytes <= PREFIX_STEP))
        memcpy(out->p + out->n, c->prefix, PREFIX_STEP);
    else
        memcpy(out->p + out->n, c->prefix, c->prefix_bytes);
    out->n += c->prefix_bytes;
    return CK_OK;
}

ck_status ck_json_encode_row(ck_encoder *e, const ck_batch *b, uint32_t row, ck_change change, ck_bytes *out) {
    if (e->changes == CK_CHANGES_PREFIX) CK_TRY(ck_bytes_view(out, ck_change_prefix(change)));
    if (e->changes == CK_CHANGES_FIELD) {
        CK_TRY(ck_bytes_str(out, "{\"op\":\""));
        CK_TRY(ck_bytes_view(out, ck_change_name(change)));
        CK_TRY(ck_bytes_char(out, '"'));
    } else if (e->schema->field_count == 0) {
        CK_TRY(ck_bytes_char(out, '{'));
    }
    for (uint32_t i = 0; i < e->schema->field_count; i++) {
        const ck_encoded_column *c = &e->columns[i];
        CK_TRY(put_prefix(c, out));
        CK_TRY(ck_encode_json_value(c->field->type, b->columns[i], row, out));
    }
    return ck_bytes_append(out, "}\n", 2);
}
