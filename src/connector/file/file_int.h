/* The file connector from the inside: options, splits, the reader. */
#ifndef CK_CONNECTOR_FILE_FILE_INT_H
#define CK_CONNECTOR_FILE_FILE_INT_H

#include "connector/dead_letters.h"
#include "connector/show_raw.h"
#include "connector/table.h"
#include "connector/file/unpack.h"
#include "format/decoder.h"
#include "os/fs.h"
#include "os/io.h"

enum {
    CK_SPLIT_BYTES_MIN = 1 << 20, /* a file is not cut into smaller pieces */
    CK_READ_HEADROOM = 16 << 10,  /* of a read buffer: for the partial record of the one before */
    CK_READ_BYTES = CK_READ_BUFFER_BYTES - CK_READ_HEADROOM,
    CK_PART_BYTES_DEFAULT = 128 << 20,
    CK_LOOKUP_BYTES_DEFAULT = 256 << 20,
};
#define CK_STDIN_PATH "-"

/* ---- options (connector.c) ---- */

typedef struct ck_file_options {
    const char *path, *format;
    bool is_stdin;
    bool header;
    char delimiter;
    const char *null_string;
    const char *compression; /* NULL or "auto": by the file */
    /* reading */
    bool strict, follow;
    ck_on_error on_error;
    bool on_error_is_given;
    const char *dead_letter_table; /* with CK_ON_ERROR_DEAD_LETTER */
    double rate_limit;             /* 0: none */
    /* writing */
    bool upsert;
    bool exactly_once; /* where checkpoints are on */
    int64_t part_bytes;
    /* looking up */
    int64_t cache_ttl_ms, lookup_bytes_max;
} ck_file_options;
CK_NODISCARD ck_status ck_file_options_read(const ck_table_options *o, ck_file_options *out, ck_error *err);

/* ---- splits (splits.c) ---- */

/* One piece of one file. start and end are record boundaries. As JSON in ck_split.spec. A compressed file is one piece,
 * and its offsets count the bytes it holds. */
typedef struct ck_file_split {
    const char *path;
    uint64_t start, end; /* end UINT64_MAX: follows the file; compressed, standard input: not known yet */
    uint64_t position;   /* of the next record not yet emitted; = end: finished */
    uint64_t inode;      /* followed files: which one it was; 0 = not known yet */
    int64_t time_us;     /* the greatest event time before position; INT64_MIN: none */
    ck_compression compression;
} ck_file_split;
CK_NODISCARD ck_status ck_file_split_print(ck_arena *a, const ck_file_split *s, const char **out, ck_error *err);
CK_NODISCARD ck_status ck_file_split_parse(ck_arena *a, const char *spec, ck_file_split *out, ck_error *err);

/* Files that a path names: itself, what is in the directory, what matches the pattern. At least one, regular, readable;
 * otherwise the error says which is not. Blocking. */
CK_NODISCARD ck_status ck_file_list(ck_proc *proc, const char *path, ck_arena *a, const char ***paths, size_t *count,
                                    ck_error *err);
/* Cuts [0, bytes) of a file into at most `pieces` by record boundaries at or after the equal shares: cuts[0] = 0 < ...
 * < cuts[*count] = bytes (room for pieces + 1). Blocking. */
CK_NODISCARD ck_status ck_file_cut(ck_proc *proc, const char *path, const char *format, uint64_t bytes, uint32_t pieces,
                                   uint64_t *cuts, uint32_t *count, ck_error *err);
CK_NODISCARD ck_status ck_file_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out,
                                         ck_error *err);

/* ck_op_desc.rewind. */
CK_NODISCARD ck_status ck_file_rewind(const ck_op_spec *spec, const ck_split *stored, ck_split_list *out,
                                      ck_error *err);

/* ---- the reader (reader.c): bytes of one split, read ahead by the I/O executor ---- */

typedef struct ck_file_reader ck_file_reader;

typedef struct ck_reader_config {
    ck_op_ctx *ctx;
    const ck_file_split *split; /* borrowed for the reader's life */
    const char *format;
    bool header;             /* csv: the file's first record names the columns and is no data */
    const char *compression; /* of standard input: the option; NULL: its first bytes tell */
} ck_reader_config;

/* The next bytes of the split, or what else there is to know. */
typedef struct ck_read_chunk {
    ck_buffer *buffer; /* a reference, the caller's */
    size_t begin, end; /* CK_READ_HEADROOM bytes before begin are free */
    uint64_t offset;   /* of begin in the file */
} ck_read_chunk;

/* Submits the opening. */
CK_NODISCARD ck_status ck_file_reader_new(const ck_reader_config *c, ck_mem mem, ck_file_reader **out, ck_error *err);
/* CK_OK: opened, first reads are under way. CK_AGAIN: not yet, a wake comes (followed: or try again later). Failures
 * name the file. header: the header record without its line end (empty without one), valid as long as the reader. */
CK_NODISCARD ck_status ck_file_reader_ready(ck_file_reader *r, ck_view *header, ck_error *err);
/* Where data begins, at or after the split's position (behind a byte order mark and a header). After ready. */
uint64_t ck_file_reader_start(const ck_file_reader *r);
uint64_t ck_file_reader_inode(const ck_file_reader *r);
/* CK_OK: a chunk. CK_AGAIN: none yet, a wake comes. CK_CLOSED: the split's end. CK_MORE: followed, nothing new now:
 * call ck_file_reader_look again after a while. */
CK_NODISCARD ck_status ck_file_reader_next(ck_file_reader *r, ck_read_chunk *out, ck_error *err);
/* Followed: have a look whether the file has grown. */
void ck_file_reader_look(ck_file_reader *r);
/* No job of it may be under way. NULL is fine. */
void ck_file_reader_free(ck_file_reader *r);
bool ck_file_reader_busy(const ck_file_reader *r);
/* All its reads are submitted: another file may be opened. */
bool ck_file_reader_drains(const ck_file_reader *r);

/* ---- a bad record (bad_record.c) ---- */

/* Where a record that fails the job is; its line is counted by an I/O job, which reads the file up to it. */
typedef struct ck_bad_place {
    ck_io_job job;
    ck_op_ctx *ctx;
    const char *path; /* NULL: nothing failed */
    ck_compression compression;
    uint64_t offset;
    int64_t column;
    uint64_t line; /* 1-based; 0 = not counted */
    bool counting;
    _Atomic bool counted;
    char field[128], reason[256], raw[200];
    const char *hint; /* see bad_hint.h */
    ck_status damaged; /* the file itself, which explains the record */
    ck_error damage;
} ck_bad_place;
void ck_bad_place_set(ck_bad_place *p, ck_op_ctx *ctx, const ck_file_split *split, const ck_file_options *o,
                      const ck_bad_record *bad);
/* Has the line counted, then fills err: CK_AGAIN until then, CK_DATA with the sentence. */
CK_NODISCARD ck_status ck_bad_place_report(ck_bad_place *p, ck_error *err);

#endif
