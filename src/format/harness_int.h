/* For tests and fuzz targets of this room: decodes text as a source would, in pieces of any size, and gives rows and
 * bad records as text that can be compared. Not part of the engine. */
#ifndef CK_FORMAT_HARNESS_INT_H
#define CK_FORMAT_HARNESS_INT_H

#include "data/text.h"
#include "format/decoder.h"

typedef struct ck_harness {
    ck_proc proc;
    ck_mem mem;
    ck_bytes rows; /* a line a row: offset if origins, then the values between bars */
    ck_bytes bad;  /* a line a bad record: offset, column, field, reason, raw text */
    uint64_t batches;
    bool retries;     /* what fails for want of memory is tried once more: nothing may be lost by it */
    ck_status status; /* of the first feed that failed */
    ck_error err;
} ck_harness;

static inline void ck_harness_init(ck_harness *h, ck_heap *heap, bool simd) {
    *h = (ck_harness){.proc = {.heap = heap, .cpu = simd ? ck_cpu_detect() : (ck_cpu){0}}, .err = CK_ERROR_INIT};
    ck_budget_init(&h->proc.budget, heap, 0);
    h->mem = ck_proc_mem(&h->proc, CK_MEM_DECODE);
    ck_bytes_init(&h->rows, h->mem, 1u << 30);
    ck_bytes_init(&h->bad, h->mem, 1u << 30);
}

static inline void ck_harness_destroy(ck_harness *h) {
    ck_bytes_destroy(&h->rows);
    ck_bytes_destroy(&h->bad);
}

static inline ck_status ck_harness_bad(void *arg, const ck_bad_record *bad, ck_error *err) {
    ck_harness *h = (ck_harness *)arg;
    (void)err;
    CK_TRY(ck_bytes_printf(&h->bad, "%llu %lld %s: %s: ", (unsigned long long)bad->offset, (long long)bad->column,
                           bad->field ? bad->field : "-", bad->reason));
    CK_TRY(ck_bytes_view(&h->bad, bad->raw));
    return ck_bytes_char(&h->bad, '\n');
}

static inline ck_status ck_harness_print(ck_harness *h, const ck_schema *schema, const ck_batch *b) {
    for (uint32_t row = 0; row < b->row_count; row++) {
        if (b->origin)
            CK_TRY(ck_bytes_printf(&h->rows, "@%llu ",
                                   (unsigned long long)(b->origin->base_offset + b->origin->row_offset[row])));
        for (uint32_t i = 0; i < b->column_count; i++) {
            if (!b->columns[i]) continue;
            CK_TRY(ck_print_value(schema->fields[i].type, b->columns[i], row, &h->rows));
            CK_TRY(ck_bytes_char(&h->rows, '|'));
        }
        CK_TRY(ck_bytes_char(&h->rows, '\n'));
    }
    return CK_OK;
}

static inline ck_status ck_harness_take(ck_harness *h, ck_decoder *d, const ck_schema *schema) {
    ck_batch *b = ck_decoder_take(d);
    if (!b && h->retries) b = ck_decoder_take(d);
    if (!b) return CK_NOMEM;
    h->batches++;
    ck_status s = ck_harness_print(h, schema, b);
    ck_batch_unref(&b);
    return s;
}

/* One buffer: the rest of the one before, then text[from, to). The buffer has exactly that size, so that a sanitizer
 * sees reads beyond its padding. */
static inline ck_status ck_harness_piece(ck_harness *h, ck_decoder *d, const ck_schema *schema, const char *text,
                                         size_t from, size_t to, bool last, size_t *consumed) {
    ck_buffer *buf = ck_buffer_new(h->mem, to - from);
    if (!buf) return CK_NOMEM;
    memcpy(buf->p, text + from, to - from);
    ck_status s;
    do {
        size_t n = 0;
        s = ck_decoder_feed(d, buf, *consumed - from, to - from, *consumed, last, &n, &h->err);
        *consumed += n;
        if (s == CK_NOMEM && h->retries) {
            s = ck_decoder_feed(d, buf, *consumed - from, to - from, *consumed, last, &n, &h->err);
            *consumed += n;
        }
        if (s == CK_FULL && ck_decoder_rows(d) == 0)
            s = CK_CORRUPT; /* full of nothing: it would never end */
        else if (s == CK_FULL)
            s = ck_harness_take(h, d, schema) == CK_OK ? CK_FULL : CK_NOMEM;
    } while (s == CK_FULL);
    ck_buffer_unref(&buf);
    return s;
}

/* Decodes text[0, n), cut before each of cuts[0..cut_count) (ascending). Results are appended to h. */
static inline ck_status ck_harness_decode(ck_harness *h, const ck_decoder_spec *spec, const char *text, size_t n,
                                          const size_t *cuts, size_t cut_count) {
    ck_decoder *d;
    ck_status s = ck_decoder_new(&h->proc, spec, h->mem, ck_harness_bad, h, &d, &h->err);
    if (s != CK_OK) return h->status = s;
    s = ck_decoder_begin(d, "file", true, &h->err);
    size_t consumed = 0;
    for (size_t i = 0; i <= cut_count && s == CK_OK; i++) {
        bool last = i == cut_count;
        s = ck_harness_piece(h, d, spec->schema, text, consumed, last ? n : cuts[i], last, &consumed);
    }
    if (s == CK_OK && consumed != n) s = CK_CORRUPT; /* the last feed takes everything */
    if (s == CK_OK) s = ck_harness_take(h, d, spec->schema);
    ck_decoder_free(d);
    return h->status = s;
}

#endif
