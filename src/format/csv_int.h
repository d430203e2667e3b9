/* Inside of the CSV decoder. A newline ends a record when an even number of quotes stands before it in the record: that
 * rule alone decides where records are, whatever else is wrong in them, so that splits agree.
 *
 *   chunk    (csv_run_int.h, once per instruction set) marks the separators of some 16 KiB in one pass, sees whether
 * all records in it have their number of fields, and then works a column at a time over its rows. record (csv_record.c)
 * takes one record field by field: it decides that a record is bad and says why, and it reads headers and records
 * larger than a chunk.
 *
 * Text is followed by CK_BUFFER_PADDING readable bytes. */
#ifndef CK_FORMAT_CSV_INT_H
#define CK_FORMAT_CSV_INT_H

#include "format/decode_int.h"

enum { CK_CSV_CHUNK_BYTES = 16 << 10, CK_CSV_HEADER_BYTES_MAX = 4 << 20 };

/* The fields of a chunk: field i is [start[i], start[i + 1] - 1) from the chunk's first byte. */
typedef struct ck_csv_chunk {
    uint16_t start[CK_CSV_CHUNK_BYTES + 64 + 8];
    uint32_t separator_count;
    uint32_t record_count; /* newlines among them */
    bool odd;              /* some byte is not ASCII or NUL: the text has to be looked at */
    bool stray;            /* some quote is neither around a field nor doubled inside one */
} ck_csv_chunk;

typedef struct ck_csv_field {
    const uint8_t *p, *end; /* with its quotes */
} ck_csv_field;

struct ck_csv;
/* What depends on the instruction set. */
typedef struct ck_csv_kernel {
    /* Marks the separators of p[0, n), n <= CK_CSV_CHUNK_BYTES. */
    void (*mark)(const struct ck_csv *c, const uint8_t *p, size_t n, ck_csv_chunk *out);
    /* One column over rows [0, rows) of a chunk whose records all have their number of fields, into rows from row_count
     * on; buf holds the chunk. The number of rows before the first that would not go in; *status: CK_OK, CK_NOMEM. */
    uint32_t (*column)(ck_decoder *d, ck_target *t, const uint8_t *base, uint32_t position, uint32_t rows,
                       ck_buffer *buf, ck_status *status);
} ck_csv_kernel;
const ck_csv_kernel *ck_csv_kernel_scalar(void);
const ck_csv_kernel *ck_csv_kernel_for(ck_cpu cpu);

typedef struct ck_csv {
    ck_mem mem;
    uint8_t delimiter;
    bool header;
    char *null_text; /* NULL: the empty field */
    size_t null_bytes;
    const ck_csv_kernel *kernel;
    ck_utf8_fn utf8;

    /* of the file at hand */
    bool header_due;
    uint32_t field_count; /* of each record */
    uint32_t *position;   /* per target: its field */
    ck_csv_field *fields; /* of the record at hand, as many as fit */
    uint32_t field_capacity;
    ck_bytes text; /* scratch: unescaped or copied fields */
    ck_csv_chunk *chunk;
} ck_csv;

CK_NODISCARD ck_status ck_csv_new(ck_decoder *d, const ck_decoder_spec *spec, ck_cpu cpu, ck_error *err);
void ck_csv_free(ck_decoder *d);
void ck_csv_begin(ck_decoder *d, bool at_start);
CK_NODISCARD ck_status ck_csv_decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset,
                                     bool final, size_t *consumed, ck_error *err);

/* The record at p as fields: behind its newline, or NULL when it is not all in [p, end). *count: its fields, of which
 * c->fields holds at most field_capacity. *content_end: before its line end. */
const uint8_t *ck_csv_split(ck_csv *c, const uint8_t *p, const uint8_t *end, uint32_t *count,
                            const uint8_t **content_end);
/* Quotes only around a field and doubled inside one; CK_DATA says where not. */
CK_NODISCARD ck_status ck_csv_check_quotes(ck_why *w, ck_csv_field f, const uint8_t *record);
/* A split record into row row_count, which is counted. CK_DATA: d->why. */
CK_NODISCARD ck_status ck_csv_record(ck_decoder *d, const uint8_t *p, const uint8_t *content_end, uint32_t count,
                                     ck_buffer *buf);
/* A header record: which field each column is. */
CK_NODISCARD ck_status ck_csv_take_header(ck_decoder *d, ck_view record, ck_error *err);
/* One field, its quotes in order, into its column. buf as for ck_json_store. */
CK_NODISCARD ck_status ck_csv_store(ck_decoder *d, ck_target *t, uint32_t row, ck_csv_field f, ck_buffer *buf);

#endif
