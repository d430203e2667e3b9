/* Records as CSV, quotes only where reading back needs them: around text that holds a quote, the delimiter or a line
 * end, and around text that would read as NULL. */
#include "base/base64.h"
#include "format/copy_int.h"
#include "format/encode_int.h"

void ck_csv_encode_init(ck_encoder *e) {
    char d = e->delimiter; /* times, JSON and base64 hold others: : / = and a space */
    bool harmless = d == ',' || d == ';' || d == '\t' || d == '|';
    for (uint32_t i = 0; i < e->schema->field_count; i++) {
        ck_kind kind = e->columns[i].field->type->kind;
        e->columns[i].checked = kind == CK_TYPE_VARCHAR || kind == CK_TYPE_BYTES || !harmless || e->null_bytes > 0;
    }
}

static ck_status put_quoted(ck_view v, ck_bytes *out) {
    CK_TRY(ck_bytes_char(out, '"'));
    while (v.n > 0) {
        const char *q = memchr(v.p, '"', v.n);
        size_t n = q ? (size_t)(q - v.p) + 1 : v.n;
        CK_TRY(ck_bytes_append(out, v.p, n));
        if (q) CK_TRY(ck_bytes_char(out, '"'));
        v.p += n, v.n -= n;
    }
    return ck_bytes_char(out, '"');
}

/* Copied as it is; where that meets a byte that needs quotes, written again with them. */
static ck_status put_text(const ck_encoder *e, ck_view v, ck_bytes *out) {
    if (v.n == e->null_bytes && (v.n == 0 || memcmp(v.p, e->null_text, v.n) == 0)) return put_quoted(v, out);
    CK_TRY(ck_bytes_reserve(out, v.n + CK_COPY_SLACK));
    char *to = out->p + out->n;
    ck_stops stops = {e->delimiter, '"', e->delimiter, '\r' + 1}; /* line ends are among the lowest */
    for (size_t at = 0;; at++) {
        at += ck_copy_until(to + at, v.p + at, v.n - at, stops);
        if (at == v.n) break;
        char c = v.p[at];
        if (c == e->delimiter || c == '"' || c == '\n' || c == '\r') return put_quoted(v, out);
        to[at] = c;
    }
    out->n += v.n;
    return CK_OK;
}

static ck_status put_value(ck_encoder *e, const ck_encoded_column *col, const ck_column *c, uint32_t row,
                           ck_bytes *out) {
    const ck_type *t = col->field->type;
    if (ck_column_is_null(c, row)) return ck_bytes_append(out, e->null_text, e->null_bytes);
    if (t->kind == CK_TYPE_VARCHAR) return put_text(e, ck_column_str(c, row), out);
    ck_bytes_clear(&e->text);
    switch (t->kind) {
    case CK_TYPE_BYTES:
        CK_TRY(ck_base64_encode(ck_column_str(c, row), &e->text));
        return put_text(e, ck_bytes_as_view(&e->text), out);
    case CK_TYPE_ARRAY:
    case CK_TYPE_MAP:
    case CK_TYPE_ROW:
        CK_TRY(ck_encode_json_value(t, c, row, &e->text));
        return put_text(e, ck_bytes_as_view(&e->text), out);
    default: break;
    }
    char text[CK_SCALAR_BYTES_MAX];
    bool json_text;
    if (col->checked) return put_text(e, (ck_view){text, ck_encode_scalar(t, c, row, text, &json_text)}, out);
    CK_TRY(ck_bytes_reserve(out, CK_SCALAR_BYTES_MAX));
    out->n += ck_encode_scalar(t, c, row, out->p + out->n, &json_text);
    return CK_OK;
}

ck_status ck_csv_encode_header(ck_encoder *e, ck_bytes *out) {
    bool op = e->changes == CK_CHANGES_FIELD;
    if (op) CK_TRY(put_text(e, CK_VIEW("op"), out));
    for (uint32_t i = 0; i < e->schema->field_count; i++) {
        if (i || op) CK_TRY(ck_bytes_char(out, e->delimiter));
        CK_TRY(put_text(e, ck_view_of(e->columns[i].field->name), out));
    }
    return ck_bytes_char(out, '\n');
}

ck_status ck_csv_encode_row(ck_encoder *e, const ck_batch *b, uint32_t row, ck_change change, ck_bytes *out) {
    bool op = e->changes == CK_CHANGES_FIELD;
    if (op) CK_TRY(put_text(e, ck_change_name(change), out));
    if (e->changes == CK_CHANGES_PREFIX) CK_TRY(ck_bytes_view(out, ck_change_prefix(change)));
    for (uint32_t i = 0; i < e->schema->field_count; i++) {
        if (i || op) CK_TRY(ck_bytes_char(out, e->delimiter));
        CK_TRY(put_value(e, &e->columns[i], b->columns[i], row, out));
    }
    return ck_bytes_char(out, '\n');
}
