/* Which field of a file is which column: by the names of a header, or by position. */
#include <stdio.h>

#include "format/csv_int.h"

/* Text of a header's field as a name; escaped ones in c->text. */
static ck_status name_of(ck_csv *c, ck_csv_field f, ck_view *out) {
    bool quoted = f.p < f.end && *f.p == '"';
    if (quoted) f.p++, f.end--;
    size_t n = (size_t)(f.end - f.p);
    *out = (ck_view){(const char *)f.p, n};
    if (n == 0 || !memchr(f.p, '"', n)) return CK_OK;
    ck_bytes_clear(&c->text);
    CK_TRY(ck_bytes_reserve(&c->text, n));
    for (const uint8_t *p = f.p; p < f.end; p += 1 + (*p == '"')) c->text.p[c->text.n++] = (char)*p;
    *out = ck_bytes_as_view(&c->text);
    return CK_OK;
}

/* The header has no such column; maybe in other letters. */
static ck_status not_named(ck_csv *c, uint32_t count, const char *column, ck_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        ck_view name;
        if (name_of(c, c->fields[i], &name) != CK_OK) return ck_nomem(err, c->mem, c->text.n);
        if (ck_view_eq_nocase(name, ck_view_of(column)))
            return ck_fail(err, CK_DATA, "the header does not name column %s; case counts, and it names %.*s", column,
                           (int)name.n, name.p);
    }
    return ck_fail(err, CK_DATA, "the header does not name column %s", column);
}

/* The column at each field; columns seen are marked in at. */
static ck_status find_columns(ck_decoder *d, uint32_t count, int64_t *at, ck_error *err) {
    ck_csv *c = d->csv;
    const ck_schema *s = d->rows.schema;
    for (uint32_t i = 0; i < count; i++) {
        ck_view name;
        if (name_of(c, c->fields[i], &name) != CK_OK) return ck_nomem(err, c->mem, c->text.n);
        int column = ck_schema_find(s, name);
        if (column < 0) continue;
        if (at[column] >= 0) return ck_fail(err, CK_DATA, "the header names column %s twice", s->fields[column].name);
        at[column] = i;
    }
    for (uint32_t i = 0; i < s->field_count; i++)
        if (at[i] < 0) return not_named(c, count, s->fields[i].name, err);
    for (uint32_t i = 0; i < d->rows.target_count; i++) c->position[i] = (uint32_t)at[d->rows.targets[i].index];
    c->field_count = count;
    c->header_due = false;
    return CK_OK;
}

/* Names are few and read once a file: the record is taken apart in a list of its own size. */
static ck_status take(ck_decoder *d, const uint8_t *p, const uint8_t *end, ck_error *err) {
    ck_csv *c = d->csv;
    uint32_t count;
    const uint8_t *content_end;
    if (!ck_csv_split(c, p, end, &count, &content_end)) return ck_fail(err, CK_DATA, "the header has an open quote");
    if (count > c->field_capacity) {
        ck_csv_field *more = ck_realloc(c->mem, c->fields, c->field_capacity * sizeof *more, count * sizeof *more);
        if (!more) return ck_nomem(err, c->mem, count * sizeof *more);
        c->fields = more;
        c->field_capacity = count;
        (void)ck_csv_split(c, p, end, &count, &content_end);
    }
    if (!c->utf8(p, (size_t)(content_end - p))) return ck_fail(err, CK_DATA, "the header is not UTF-8");
    for (uint32_t i = 0; i < count; i++)
        if (ck_csv_check_quotes(&d->why, c->fields[i], p) != CK_OK)
            return ck_fail(err, CK_DATA, "the header: %s", d->why.text);
    uint32_t columns = d->rows.schema->field_count;
    int64_t *at = ck_alloc_array(c->mem, columns, sizeof *at);
    if (!at) return ck_nomem(err, c->mem, columns * sizeof *at);
    for (uint32_t i = 0; i < columns; i++) at[i] = -1;
    ck_status s = find_columns(d, count, at, err);
    ck_free(c->mem, at, columns * sizeof *at);
    return s;
}

ck_status ck_csv_take_header(ck_decoder *d, ck_view record, ck_error *err) {
    if (record.n > CK_CSV_HEADER_BYTES_MAX)
        return ck_fail(err, CK_DATA, "a header of %zu bytes; %d are the most", record.n, (int)CK_CSV_HEADER_BYTES_MAX);
    ck_buffer *copy = ck_buffer_new(d->mem, record.n + 1); /* with the newline that a lone record may lack */
    if (!copy) return ck_nomem(err, d->mem, record.n + 1);
    memcpy(copy->p, record.p, record.n);
    copy->p[record.n] = '\n';
    size_t mark = record.n >= 3 && memcmp(copy->p, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    ck_status s = take(d, copy->p + mark, copy->p + record.n + 1, err);
    ck_buffer_unref(&copy);
    if (s == CK_DATA && err) {
        (void)snprintf(err->place.object, sizeof err->place.object, "%s", d->rows.object ? d->rows.object : "");
        err->place.line = 1;
        err->fatal = true;
    }
    return s;
}

ck_status ck_decoder_csv_header(ck_decoder *d, ck_view record, ck_error *err) {
    CK_ASSERT(d->csv);
    return ck_csv_take_header(d, record, err);
}
