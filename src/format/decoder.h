/* Bytes to batches. A decoder is schema-directed: it is told which columns are wanted, checks the structure and UTF-8
 * of every record, type-checks what is wanted (strict: everything), and builds string views into the read buffer
 * without copying. Framing of whole records is the decoder's too: it says how much it consumed, the source carries the
 * rest over. One per subtask; one thread. */
#ifndef CK_FORMAT_DECODER_H
#define CK_FORMAT_DECODER_H

#include "base/proc.h"
#include "data/builder.h"

typedef enum ck_on_error { CK_ON_ERROR_FAIL, CK_ON_ERROR_SKIP, CK_ON_ERROR_DEAD_LETTER } ck_on_error;

typedef struct ck_decoder_spec {
    const char *format;      /* "json", "csv", or a format of message.h, whose records are frames */
    const ck_schema *schema; /* all physical columns of the table, in order */
    const bool *wanted;      /* per column; NULL = all. Unwanted ones are NULL pointers in batch->columns */
    const bool *checked;     /* per column: type and NOT NULL checked though not wanted (decisions 8); NULL = none */
    bool strict;             /* every column is type-checked, whatever is wanted */
    /* csv */
    bool header;             /* the first record of a file names the columns, in any order */
    char delimiter;          /* ASCII; 0 = ',' */
    const char *null_string; /* unquoted text that is NULL; NULL = the empty unquoted field */
    uint32_t batch_rows;     /* 0 = CK_BATCH_ROWS_MAX */
    bool origins;            /* fill batch->origin */
} ck_decoder_spec;

/* One record that did not fit. Views are valid during the call. line and column are within the record when the decoder
 * knows (line 1-based in the record); offset is absolute. Return CK_OK to skip it, anything else ends decoding with
 * that status. */
typedef struct ck_bad_record {
    ck_view raw; /* without its newline */
    uint64_t offset;
    int64_t column;     /* 1-based byte column in the record, 0 = unknown */
    const char *field;  /* column name or NULL */
    const char *reason; /* "\"NA\" is not a BIGINT" */
} ck_bad_record;
typedef ck_status (*ck_bad_record_fn)(void *arg, const ck_bad_record *bad, ck_error *err);

typedef struct ck_decoder ck_decoder;

/* bad may be NULL: then a bad record is a CK_DATA error with its place. */
CK_NODISCARD ck_status ck_decoder_new(ck_proc *proc, const ck_decoder_spec *spec, ck_mem mem, ck_bad_record_fn bad,
                                      void *bad_arg, ck_decoder **out,
                                      ck_error *err); /* copies the spec; the schema is borrowed */
void ck_decoder_free(ck_decoder *d);

/* A new file or split begins: forget the header and partial state. object names it in origins and errors. at_start: the
 * split begins at byte 0 (csv: a header may follow; else ck_decoder_csv_header must be called before the first feed).
 * With origins the batch so far must have been taken: an origin names one object. */
CK_NODISCARD ck_status ck_decoder_begin(ck_decoder *d, const char *object, bool at_start, ck_error *err);
/* csv splits that begin later: the header record of the file, read by the source. */
CK_NODISCARD ck_status ck_decoder_csv_header(ck_decoder *d, ck_view record, ck_error *err);

/* Decode whole records from buf[begin, end) into the current batch until it is full or only a partial record is left.
 * offset: absolute position of buf[begin]. last: nothing follows, the tail is a record even without a newline.
 * *consumed counts bytes of whole records (bad ones too), also when the status is an error. CK_OK; CK_FULL: the batch
 * is full (of rows, or it pins 4 MiB of buffers), take it and call again; CK_DATA: from `bad`, or a csv header that
 * does not name every column once. The batch's strings are views into buf, which it references: its bytes must not
 * change any more. A buffer is at most 2 GiB. */
CK_NODISCARD ck_status ck_decoder_feed(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset,
                                       bool last, size_t *consumed, ck_error *err);
uint32_t ck_decoder_rows(const ck_decoder *d);
/* json: the columns that some record so far had a key for (bit i: column i of the schema, the first 64), and a key that
 * differs from the name of one it had none for in the case of letters (*like; NULL: none was seen). false: csv, whose
 * header is checked. */
bool ck_decoder_keys(const ck_decoder *d, uint64_t *met, const char **spelled, uint32_t *like);
/* The current batch (NULL without memory, and nothing is lost); the decoder starts a new one. Columns follow the
 * schema.
 */
ck_batch *ck_decoder_take(ck_decoder *d);

/* Where the next record begins at or after a split's start: the number of bytes of buf to skip, or CK_MORE when it is
 * not in buf. json: behind the next newline. csv: needs the quote parity at buf (in_quotes) and follows it. */
CK_NODISCARD ck_status ck_format_sync(const char *format, const char *buf, size_t n, bool *in_quotes, size_t *skip);
/* csv: whether the byte behind buf[0, n) is inside quotes, in_quotes being so for buf[0]. A split's start is known by
 * this over all bytes before it. */
bool ck_format_quotes(const char *buf, size_t n, bool in_quotes);

#endif
