/* See decoder.h: making decoders, feeding them, what a bad record turns into. The formats are in json_decode.c,
 * csv_decode.c and message.c. */
#include <stdio.h>

#include "data/text.h"
#include "format/csv_int.h"
#include "format/decode_int.h"
#include "format/message_int.h"

/* ---- making and unmaking ---- */

static bool readable(const ck_type *t) {
    if (t->kind == CK_TYPE_NULL || t->kind == CK_TYPE_INTERVAL_MONTH || t->kind == CK_TYPE_INTERVAL_US) return false;
    for (uint32_t i = 0; i < t->field_count; i++)
        if (!readable(t->fields[i].type)) return false;
    return true;
}

static ck_status check_spec(const ck_decoder_spec *spec, ck_error *err) {
    for (uint32_t i = 0; i < spec->schema->field_count; i++) {
        const ck_field *f = &spec->schema->fields[i];
        if (!readable(f->type))
            return ck_fail(err, CK_INVALID, "column %s: its type cannot be read from %s", f->name, spec->format);
    }
    if (spec->batch_rows > CK_BATCH_ROWS_MAX)
        return ck_fail(err, CK_INVALID, "batch_rows %u is over %d", spec->batch_rows, (int)CK_BATCH_ROWS_MAX);
    return CK_OK;
}

ck_status ck_decoder_new(ck_proc *proc, const ck_decoder_spec *spec, ck_mem mem, ck_bad_record_fn bad, void *bad_arg,
                         ck_decoder **out, ck_error *err) {
    *out = NULL;
    ck_message_format message;
    bool csv = strcmp(spec->format, "csv") == 0, messages = ck_message_format_of(spec->format, &message);
    if (!csv && !messages && strcmp(spec->format, "json") != 0)
        return ck_fail(err, CK_INVALID, "format %s is not known", spec->format);
    CK_TRY(check_spec(spec, err));
    ck_decoder *d = ck_alloc_zero(mem, sizeof *d);
    if (!d) return ck_nomem(err, mem, sizeof *d);
    d->mem = mem;
    d->bad = bad;
    d->bad_arg = bad_arg;
    d->why.mem = mem;
    uint32_t rows = spec->batch_rows ? spec->batch_rows : CK_BATCH_ROWS_MAX;
    ck_status s =
        ck_rows_init(&d->rows, mem, spec->schema, spec->wanted, spec->checked, spec->strict, rows, spec->origins, err);
    if (s == CK_OK) {
        s = ck_json_init(&d->json, mem, &d->rows, &d->why, proc->cpu);
        if (s != CK_OK) ck_nomem(err, mem, sizeof d->json);
    }
    if (s == CK_OK && csv) s = ck_csv_new(d, spec, proc->cpu, err);
    if (s == CK_OK && messages && (s = ck_messages_new(d, spec, message, proc->cpu)) != CK_OK)
        ck_nomem(err, mem, sizeof(ck_messages));
    if (s != CK_OK)
        ck_decoder_free(d);
    else
        *out = d;
    return s;
}

void ck_decoder_free(ck_decoder *d) {
    if (!d) return;
    ck_csv_free(d);
    ck_messages_free(d);
    ck_json_destroy(&d->json);
    ck_rows_destroy(&d->rows);
    ck_free(d->mem, d, sizeof *d);
}

ck_status ck_decoder_begin(ck_decoder *d, const char *object, bool at_start, ck_error *err) {
    CK_ASSERT(!d->rows.origins || d->rows.row_count == 0); /* an origin names one object */
    if (ck_rows_set_object(&d->rows, object) != CK_OK) return ck_nomem(err, d->mem, strlen(object));
    d->bom = at_start;
    if (d->csv) ck_csv_begin(d, at_start);
    return CK_OK;
}

/* ---- feeding ---- */

static ck_status decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset, bool final,
                        size_t *consumed, ck_error *err) {
    if (d->csv) return ck_csv_decode(d, buf, begin, end, offset, final, consumed, err);
    return ck_json_decode(d, buf, begin, end, offset, consumed, err);
}

/* The last record, without a newline: once more with one, in a buffer of its own. */
static ck_status decode_tail(ck_decoder *d, const ck_buffer *buf, size_t begin, size_t end, uint64_t offset,
                             size_t *consumed, ck_error *err) {
    size_t n = end - begin;
    *consumed = 0;
    ck_buffer *tail = ck_buffer_new(d->mem, n + 1);
    if (!tail) return ck_nomem(err, d->mem, n + 1);
    memcpy(tail->p, buf->p + begin, n);
    tail->p[n] = '\n';
    ck_status s = decode(d, tail, 0, n + 1, offset, true, consumed, err);
    if (*consumed > n) *consumed = n;
    ck_buffer_unref(&tail);
    return s;
}

/* Bytes of a byte order mark at p. false: it may be one, when more is there. */
static bool byte_order_mark(const uint8_t *p, size_t n, bool last, size_t *bytes) {
    static const uint8_t mark[3] = {0xEF, 0xBB, 0xBF};
    size_t k = n < 3 ? n : 3;
    *bytes = 0;
    if (memcmp(p, mark, k) != 0) return true;
    if (k == 3) *bytes = 3;
    return k == 3 || last;
}

ck_status ck_decoder_feed(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset, bool last,
                          size_t *consumed, ck_error *err) {
    CK_ASSERT(begin <= end && end <= buf->bytes && buf->bytes <= INT32_MAX);
    *consumed = 0;
    size_t mark = 0, n = 0;
    if (ck_decoder_is_full(d)) return CK_FULL;
    CK_TRY(ck_rows_open(&d->rows, err));
    if (d->messages) return ck_messages_decode(d, buf, begin, end, offset, consumed, err);
    if (d->bom && offset == 0 && !byte_order_mark(buf->p + begin, end - begin, last, &mark)) return CK_OK;
    ck_status s = decode(d, buf, begin + mark, end, offset + mark, false, &n, err);
    *consumed = n ? mark + n : 0;
    size_t at = begin + mark + n;
    if (s == CK_OK && last && at < end) {
        s = decode_tail(d, buf, at, end, offset + mark + n, &n, err);
        if (n) *consumed = at - begin + n;
    }
    if (s == CK_OK && last) *consumed = end - begin;
    return s;
}

uint32_t ck_decoder_rows(const ck_decoder *d) { return d->rows.row_count; }

bool ck_decoder_keys(const ck_decoder *d, uint64_t *met, const char **spelled, uint32_t *like) {
    const ck_json *j = &d->json;
    if (d->csv || d->messages) return false;
    *met = 0;
    for (uint32_t i = 0; i < d->rows.target_count; i++) {
        const ck_target *t = &d->rows.targets[i];
        if (t->stamp && t->index < 64) *met |= 1ULL << t->index;
    }
    *spelled = j->spelled[0] && !j->like->stamp ? j->spelled : NULL;
    *like = *spelled ? j->like->index : 0;
    return true;
}

ck_batch *ck_decoder_take(ck_decoder *d) { return ck_rows_take(&d->rows); }

/* ---- bad records ---- */

ck_status ck_decoder_report(ck_decoder *d, const uint8_t *p, const uint8_t *end, uint64_t offset, ck_error *err) {
    if (!d->messages && end > p && end[-1] == '\r') end--;
    ck_bad_record bad = {.raw = {(const char *)p, (size_t)(end - p)},
                         .offset = offset,
                         .column = d->why.column,
                         .field = d->why.field,
                         .reason = d->why.text};
    if (d->bad) return d->bad(d->bad_arg, &bad, err);
    if (err) *err = CK_ERROR_INIT;
    ck_status s = ck_fail(err, CK_DATA, "%s", d->why.text);
    if (err) {
        (void)snprintf(err->place.object, sizeof err->place.object, "%s", d->rows.object ? d->rows.object : "");
        err->place.byte_offset = (int64_t)offset;
        err->place.column = d->why.column;
        err->fatal = true;
    }
    return s;
}
