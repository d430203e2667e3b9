/* Inside of decoders: what the formats share, and the calls between decoder.c and them. */
#ifndef CK_FORMAT_DECODE_INT_H
#define CK_FORMAT_DECODE_INT_H

#include "format/decoder.h"
#include "format/json_int.h"

struct ck_csv;
struct ck_messages;

struct ck_decoder {
    ck_mem mem;
    ck_rows rows;
    ck_why why;
    ck_bad_record_fn bad; /* NULL: a bad record is an error */
    void *bad_arg;
    bool bom;                     /* a byte order mark may stand at the next byte fed */
    ck_json json;                 /* csv: for the columns that hold nested values */
    struct ck_csv *csv;           /* NULL: the format is another */
    struct ck_messages *messages; /* the same: records with a schema of their own */
};

/* Whole records of buf[begin, end). final: the last byte is a newline and nothing follows. As ck_decoder_feed. */
CK_NODISCARD ck_status ck_json_decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset,
                                      size_t *consumed, ck_error *err);
/* d->why about the record [p, end) at offset goes to whoever decides about bad records. */
CK_NODISCARD ck_status ck_decoder_report(ck_decoder *d, const uint8_t *p, const uint8_t *end, uint64_t offset,
                                         ck_error *err);
/* Whether the batch has to be taken before more goes in. */
static inline bool ck_decoder_is_full(const ck_decoder *d) {
    return d->rows.row_count == d->rows.capacity ||
           (d->rows.heap_bytes >= CK_ROWS_PINNED_BYTES && d->rows.row_count > 0);
}

#endif
