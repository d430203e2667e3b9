/* NDJSON: one object a line. The fast way as far as it goes, one record the general way, the fast way again. */
#include "format/decode_int.h"

/* One record for the general way. CK_OK: past it, appended or skipped. */
static ck_status general(ck_decoder *d, ck_json_span *s, ck_error *err) {
    const uint8_t *newline = memchr(s->p, '\n', (size_t)(s->last - s->p));
    bool blank;
    ck_status status = ck_json_record(&d->json, s, s->p, newline, &blank);
    if (status == CK_NOMEM) return ck_nomem(err, d->mem, (size_t)(newline - s->p));
    if (status == CK_DATA) status = ck_decoder_report(d, s->p, newline, s->offset + (uint64_t)(s->p - s->buf->p), err);
    if (status == CK_OK) s->p = newline + 1;
    return status;
}

ck_status ck_json_decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset, size_t *consumed,
                         ck_error *err) {
    const uint8_t *first = buf->p + begin, *newline = memrchr(first, '\n', end - begin);
    *consumed = 0;
    if (!newline) return CK_OK;
    ck_json_span s = {
        .p = first, .last = newline + 1, .buf = buf, .offset = offset - begin, .origins = d->rows.origins};
    ck_status status = CK_OK;
    for (bool all = false; !all && status == CK_OK;) {
        switch (d->json.kernel->run(&d->json, &s)) {
        case CK_JSON_ALL: all = true; break;
        case CK_JSON_FULL: status = CK_FULL; break;
        case CK_JSON_FAILED: status = ck_nomem(err, d->mem, d->rows.own_hint); break;
        case CK_JSON_GIVEUP: status = general(d, &s, err); break;
        }
    }
    *consumed = (size_t)(s.p - first);
    return status == CK_OK && ck_decoder_is_full(d) ? CK_FULL : status;
}
