/* CSV by RFC 4180: chunks as long as their records have the right number of fields and good values, single records
 * where not. */
#include "format/csv_int.h"
#include "format/csv_rules_int.h"

/* ---- making and unmaking ---- */

static ck_status init(ck_decoder *d, const ck_decoder_spec *spec, ck_cpu cpu) {
    ck_csv *c = d->csv;
    c->mem = d->mem;
    c->header = spec->header;
    c->delimiter = (uint8_t)(spec->delimiter ? spec->delimiter : ',');
    c->kernel = ck_csv_kernel_for(cpu);
    c->utf8 = ck_utf8_valid_for(cpu);
    ck_bytes_init(&c->text, d->mem, CK_RECORD_BYTES_MAX);
    if (spec->null_string && spec->null_string[0]) {
        c->null_bytes = strlen(spec->null_string);
        c->null_text = ck_alloc(d->mem, c->null_bytes);
        if (!c->null_text) return CK_NOMEM;
        memcpy(c->null_text, spec->null_string, c->null_bytes);
    }
    c->field_capacity = spec->schema->field_count;
    c->fields = ck_alloc_array(d->mem, c->field_capacity, sizeof *c->fields);
    c->position = ck_alloc_array(d->mem, d->rows.target_count, sizeof *c->position);
    c->chunk = ck_alloc(d->mem, sizeof *c->chunk);
    return c->fields && c->position && c->chunk ? CK_OK : CK_NOMEM;
}

ck_status ck_csv_new(ck_decoder *d, const ck_decoder_spec *spec, ck_cpu cpu, ck_error *err) {
    CK_TRY(ck_csv_check_options(spec->delimiter ? spec->delimiter : ',', spec->null_string, err));
    d->csv = ck_alloc_zero(d->mem, sizeof *d->csv);
    if (!d->csv) return ck_nomem(err, d->mem, sizeof *d->csv);
    ck_status s = init(d, spec, cpu); /* what there is goes with the decoder */
    return s == CK_OK ? s : ck_nomem(err, d->mem, sizeof *d->csv->chunk);
}

void ck_csv_free(ck_decoder *d) {
    ck_csv *c = d->csv;
    if (!c) return;
    ck_free(d->mem, c->null_text, c->null_bytes);
    if (c->fields) ck_free(d->mem, c->fields, c->field_capacity * sizeof *c->fields);
    if (c->position) ck_free(d->mem, c->position, d->rows.target_count * sizeof *c->position);
    if (c->chunk) ck_free(d->mem, c->chunk, sizeof *c->chunk);
    ck_bytes_destroy(&c->text);
    ck_free(d->mem, c, sizeof *c);
    d->csv = NULL;
}

void ck_csv_begin(ck_decoder *d, bool at_start) {
    ck_csv *c = d->csv;
    c->header_due = c->header && at_start;
    if (c->header) return; /* the names say the rest */
    c->field_count = d->rows.schema->field_count;
    for (uint32_t i = 0; i < d->rows.target_count; i++) c->position[i] = d->rows.targets[i].index;
}

/* ---- chunks ---- */

/* The text while it is decoded. */
typedef struct span {
    const uint8_t *p, *end;
    ck_buffer *buf;
    uint64_t offset; /* of buf->p[0] in the file */
} span;

static uint64_t offset_of(const span *s, const uint8_t *p) { return s->offset + (uint64_t)(p - s->buf->p); }

/* Rows of the marked chunk that can be worked by columns: all of its records, or none. */
static uint32_t regular_rows(const ck_csv *c, const uint8_t *p) {
    const ck_csv_chunk *k = c->chunk;
    uint64_t expected = (uint64_t)k->record_count * c->field_count;
    if (k->stray || k->record_count == 0 || expected > k->separator_count) return 0;
    /* As many newlines as records, each where a record should end: then none stands anywhere else. */
    for (uint64_t i = c->field_count; i <= expected; i += c->field_count)
        if (p[k->start[i] - 1] != '\n') return 0;
    size_t n = k->start[expected];
    if (k->odd && (memchr(p, 0, n) || !c->utf8(p, n))) return 0;
    return k->record_count;
}

static bool origins(ck_decoder *d, const span *s, uint32_t rows) {
    const ck_csv *c = d->csv;
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *p = s->p + c->chunk->start[(size_t)i * c->field_count];
        if (!ck_rows_origin(&d->rows, d->rows.row_count + i, offset_of(s, p))) return false;
    }
    return true;
}

/* The rows at s->p that a marked chunk yields; s->p moves behind them. */
static ck_status take_chunk(ck_decoder *d, span *s, uint32_t *taken) {
    ck_csv *c = d->csv;
    *taken = 0;
    size_t n = (size_t)(s->end - s->p);
    c->kernel->mark(c, s->p, n < CK_CSV_CHUNK_BYTES ? n : CK_CSV_CHUNK_BYTES, c->chunk);
    uint32_t rows = regular_rows(c, s->p), room = d->rows.capacity - d->rows.row_count;
    if (rows > room) rows = room;
    uint32_t good = rows, row = d->rows.row_count;
    ck_status status = CK_OK;
    for (uint32_t i = 0; i < d->rows.target_count && status == CK_OK; i++)
        good = c->kernel->column(d, &d->rows.targets[i], s->p, c->position[i], good, s->buf, &status);
    if (status == CK_OK && d->rows.origins && !origins(d, s, good)) good = 0; /* single records find the place */
    if (status != CK_OK) good = 0;
    if (good < rows) ck_rows_undo(&d->rows, row + good, row + rows);
    s->p += c->chunk->start[(size_t)good * c->field_count];
    d->rows.row_count += good;
    *taken = good;
    return status;
}

/* ---- single records ---- */

static ck_status report_open_quote(ck_decoder *d, span *s, ck_error *err) {
    d->why.column = 0;
    d->why.field = NULL;
    const uint8_t *end = s->end - 1; /* the newline that was put there */
    for (const uint8_t *p = s->p; p < end && (p = memchr(p, '"', (size_t)(end - p))); p++) {
        d->why.column = p - s->p + 1; /* the last one opens what is not closed */
    }
    (void)ck_why_set(&d->why, "the quote at byte %lld of the record is never closed", (long long)d->why.column);
    ck_status status = ck_decoder_report(d, s->p, end, offset_of(s, s->p), err);
    if (status == CK_OK) s->p = s->end;
    return status;
}

/* One record at s->p. *bad: it was reported. *stop: it is not all there. */
static ck_status take_record(ck_decoder *d, span *s, bool final, bool *bad, bool *stop, ck_error *err) {
    ck_csv *c = d->csv;
    uint32_t count;
    const uint8_t *content_end, *next = ck_csv_split(c, s->p, s->end, &count, &content_end);
    *bad = *stop = false;
    if (!next && !final) {
        *stop = true;
        return CK_OK;
    }
    if (!next && c->header_due) content_end = next = s->end; /* the header says so itself */
    if (!next) return report_open_quote(d, s, err);
    if (c->header_due) {
        CK_TRY(ck_csv_take_header(d, (ck_view){(const char *)s->p, (size_t)(content_end - s->p)}, err));
        s->p = next;
        return CK_OK;
    }
    if (content_end == s->p && c->field_count > 1) { /* a blank line; of a one-column table it is a row */
        s->p = next;
        return CK_OK;
    }
    ck_status status = CK_OK;
    if (d->rows.origins && !ck_rows_origin(&d->rows, d->rows.row_count, offset_of(s, s->p))) return CK_FULL;
    status = ck_csv_record(d, s->p, content_end, count, s->buf);
    if (status == CK_NOMEM) return ck_nomem(err, d->mem, (size_t)(next - s->p));
    *bad = status == CK_DATA;
    if (*bad) status = ck_decoder_report(d, s->p, content_end, offset_of(s, s->p), err);
    if (status == CK_OK) s->p = next;
    return status;
}

/* Single records from s->p on until one was bad or the place of the last chunk is passed. */
static ck_status take_records(ck_decoder *d, span *s, bool final, bool *stop, ck_error *err) {
    size_t n = (size_t)(s->end - s->p);
    const uint8_t *chunk_end = s->p + (n < CK_CSV_CHUNK_BYTES ? n : CK_CSV_CHUNK_BYTES);
    bool bad = false;
    *stop = false;
    while (s->p < chunk_end && !bad && !*stop) {
        if (ck_decoder_is_full(d)) return CK_FULL;
        CK_TRY(take_record(d, s, final, &bad, stop, err));
    }
    return CK_OK;
}

ck_status ck_csv_decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset, bool final,
                        size_t *consumed, ck_error *err) {
    span s = {.p = buf->p + begin, .end = buf->p + end, .buf = buf, .offset = offset - begin};
    ck_status status = CK_OK;
    bool stop = false;
    while (s.p < s.end && !stop && status == CK_OK) {
        uint32_t taken = 0;
        if (ck_decoder_is_full(d))
            status = CK_FULL;
        else if (!d->csv->header_due && (status = take_chunk(d, &s, &taken)) != CK_OK)
            ck_nomem(err, d->mem, 0);
        else if (taken == 0)
            status = take_records(d, &s, final, &stop, err);
    }
    *consumed = (size_t)(s.p - (buf->p + begin));
    return status == CK_OK && ck_decoder_is_full(d) ? CK_FULL : status;
}
