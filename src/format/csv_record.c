/* One CSV record, a field at a time. */
#include <stdio.h>

#include "base/base64.h"
#include "format/csv_int.h"

/* ---- where fields are ---- */

/* Behind the field at p: at its separator; NULL when a quote stays open. Parity of quotes, nothing else. */
static const uint8_t *field_end(const ck_csv *c, const uint8_t *p, const uint8_t *end) {
    for (;; p++) {
        if (p >= end) return NULL;
        if (*p == '"') {
            p = memchr(p + 1, '"', (size_t)(end - p - 1));
            if (!p) return NULL;
        } else if (*p == c->delimiter || *p == '\n') {
            return p;
        }
    }
}

const uint8_t *ck_csv_split(ck_csv *c, const uint8_t *p, const uint8_t *end, uint32_t *count,
                            const uint8_t **content_end) {
    for (*count = 0;; (*count)++) {
        const uint8_t *e = field_end(c, p, end);
        if (!e) return NULL;
        bool last = *e == '\n';
        const uint8_t *stop = last && e > p && e[-1] == '\r' ? e - 1 : e;
        if (*count < c->field_capacity) c->fields[*count] = (ck_csv_field){p, stop};
        if (last) {
            (*count)++;
            *content_end = stop;
            return e + 1;
        }
        p = e + 1;
    }
}

/* ---- one field ---- */

/* Writes the content of a quoted field with its doubled quotes single. */
static size_t single_quotes(const uint8_t *p, const uint8_t *end, char *out) {
    char *at = out;
    while (p < end) {
        const uint8_t *q = memchr(p, '"', (size_t)(end - p));
        if (!q) q = end;
        memcpy(at, p, (size_t)(q - p));
        at += q - p;
        if (q < end) *at++ = '"';
        p = q + 2;
    }
    return (size_t)(at - out);
}

static bool is_quoted(ck_csv_field f) { return f.p < f.end && *f.p == '"'; }

static bool is_null(const ck_csv *c, ck_csv_field f) {
    return (size_t)(f.end - f.p) == c->null_bytes &&
           (c->null_bytes == 0 || memcmp(f.p, c->null_text, c->null_bytes) == 0);
}

/* The field's text without quotes. It stands where the field does unless it had doubled quotes; then in c->text. */
static ck_status content(ck_csv *c, ck_csv_field f, ck_view *out, bool *copied) {
    *copied = false;
    if (is_quoted(f)) f.p++, f.end--;
    size_t n = (size_t)(f.end - f.p);
    *out = (ck_view){(const char *)f.p, n};
    if (n == 0 || !memchr(f.p, '"', n)) return CK_OK;
    ck_bytes_clear(&c->text);
    if (ck_bytes_reserve(&c->text, n + 16) != CK_OK) return CK_NOMEM;
    n = single_quotes(f.p, f.end, c->text.p);
    memset(c->text.p + n, 0, 16); /* what reads numbers reads on until something is no digit */
    *out = (ck_view){c->text.p, n};
    *copied = true;
    return CK_OK;
}

static ck_status store_string(ck_decoder *d, ck_target *t, uint32_t row, ck_view v, bool copied, ck_buffer *buf) {
    CK_TRY(ck_value_limit(t->field->type, v, &d->why));
    ck_rows_valid(t, row);
    if (copied || v.n <= CK_STRVIEW_INLINE) return ck_rows_copy(&d->rows, t, v.p, v.n, &t->views[row]);
    uint32_t index;
    CK_TRY(ck_rows_heap(&d->rows, buf, &index));
    t->views[row] = ck_strview_ref(v.p, v.n, index, (uint32_t)((const uint8_t *)v.p - buf->p));
    t->long_seen = true;
    return CK_OK;
}

static ck_status store_bytes(ck_decoder *d, ck_target *t, uint32_t row, ck_view v) {
    char *to;
    size_t n;
    CK_TRY(ck_rows_reserve(&d->rows, v.n, &to));
    if (!ck_base64_decode(v, (uint8_t *)to, &n)) return ck_why_not_a(&d->why, t->field->type, v, true);
    CK_TRY(ck_value_limit(t->field->type, (ck_view){to, n}, &d->why));
    ck_rows_valid(t, row);
    t->views[row] = ck_rows_commit(&d->rows, t, n);
    return CK_OK;
}

/* Nested values are JSON in one field. */
static ck_status store_nested(ck_decoder *d, ck_target *t, uint32_t row, ck_view v, bool copied) {
    ck_bytes *text = &d->csv->text;
    if (!copied) {
        ck_bytes_clear(text);
        if (ck_bytes_append(text, v.p, v.n) != CK_OK) return CK_NOMEM;
    }
    if (ck_bytes_reserve(text, v.n + 1 + CK_BUFFER_PADDING) != CK_OK) return CK_NOMEM;
    const uint8_t *p = (const uint8_t *)text->p, *end = p + v.n;
    memset(text->p + v.n, 0, 1 + CK_BUFFER_PADDING);
    text->p[v.n] = '\n'; /* the sentinel */
    ck_json_fault f;
    ck_json_value value;
    const uint8_t *q = d->json.kernel->value(ck_json_space(p, end), end, &value, &f);
    if (q && (q = ck_json_space(q, end)) != end) {
        f = (ck_json_fault){q, CK_JSON_TRAILING};
        q = NULL;
    }
    if (!q) return ck_json_explain(&d->why, &f, p, end, "of the field");
    ck_json_trim_scratch(&d->json);
    return ck_json_store(&d->json, t, row, &value, NULL);
}

ck_status ck_csv_store(ck_decoder *d, ck_target *t, uint32_t row, ck_csv_field f, ck_buffer *buf) {
    if (!is_quoted(f) && is_null(d->csv, f)) return ck_json_store_null(&d->json, t, row, "null");
    ck_view v;
    bool copied;
    CK_TRY(content(d->csv, f, &v, &copied));
    if (t->nested) return store_nested(d, t, row, v, copied);
    if (t->kind == CK_TYPE_VARCHAR) return store_string(d, t, row, v, copied, buf);
    if (t->kind == CK_TYPE_BYTES) return store_bytes(d, t, row, v);
    ck_scalar x = {0};
    CK_TRY(ck_value_text(t->field->type, v, true, &x, &d->why));
    ck_rows_valid(t, row);
    switch (t->phys) {
    case CK_PHYS_BOOL: ck_bit_put(t->bits, row, x.b); break;
    case CK_PHYS_F64: t->f64[row] = x.f64; break;
    case CK_PHYS_I128: t->i128[row] = x.i128; break;
    default: t->i64[row] = x.i64; break;
    }
    return CK_OK;
}

/* ---- the record ---- */

ck_status ck_csv_check_quotes(ck_why *w, ck_csv_field f, const uint8_t *record) {
    const uint8_t *p = f.p;
    if (!is_quoted(f)) {
        p = f.p < f.end ? memchr(f.p, '"', (size_t)(f.end - f.p)) : NULL;
        if (!p) return CK_OK;
        w->column = p - record + 1;
        return ck_why_set(w, "a quote inside an unquoted field at byte %lld of the record", (long long)w->column);
    }
    for (p++;; p += 2) { /* the field ends outside quotes, so that one is found */
        p = memchr(p, '"', (size_t)(f.end - p));
        if (p + 1 == f.end) return CK_OK;
        if (p[1] != '"') break;
    }
    w->column = p + 1 - record + 1;
    return ck_why_set(w, "text after a closing quote at byte %lld of the record", (long long)w->column);
}

/* What is asked of every record, whatever columns are wanted. */
static ck_status check_record(ck_decoder *d, const uint8_t *p, const uint8_t *end, uint32_t count) {
    ck_csv *c = d->csv;
    size_t n = (size_t)(end - p);
    for (uint32_t i = 0; i < count && i < c->field_capacity; i++) CK_TRY(ck_csv_check_quotes(&d->why, c->fields[i], p));
    const uint8_t *nul = n ? memchr(p, 0, n) : NULL;
    if (nul || !c->utf8(p, n)) {
        d->why.column = nul ? nul - p + 1 : (int64_t)ck_utf8_valid_prefix(p, n) + 1;
        return ck_why_set(&d->why, "%s at byte %lld of the record", nul ? "a NUL byte" : "invalid UTF-8",
                          (long long)d->why.column);
    }
    if (count == c->field_count) return CK_OK;
    d->why.column = 0;
    return ck_why_set(&d->why, "%u field%s where %u %s expected", count, count == 1 ? "" : "s", c->field_count,
                      c->field_count == 1 ? "is" : "are");
}

ck_status ck_csv_record(ck_decoder *d, const uint8_t *p, const uint8_t *content_end, uint32_t count, ck_buffer *buf) {
    ck_csv *c = d->csv;
    uint32_t row = d->rows.row_count;
    d->why.field = NULL;
    CK_TRY(check_record(d, p, content_end, count));
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < d->rows.target_count && s == CK_OK; i++) {
        ck_target *t = &d->rows.targets[i];
        ck_csv_field f = c->fields[c->position[i]];
        s = ck_csv_store(d, t, row, f, buf);
        if (s != CK_DATA) continue;
        d->why.field = t->field->name;
        d->why.column = f.p - p + 1;
    }
    if (s == CK_OK)
        d->rows.row_count++;
    else
        ck_rows_undo(&d->rows, row, row + 1);
    return s;
}
