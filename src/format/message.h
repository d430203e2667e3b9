/* Records that only make sense with a schema kept elsewhere: Avro's binary form and Protocol Buffers. A schema is
 * parsed, then planned against a table's columns, for reading or for writing; what does not fit is a sentence that
 * names the field and both types. Everything lives in the arena given, and what is made is read-only: any thread.
 *
 * To a decoder of format "avro" or "protobuf" a record is a frame: which of its readers it is for, how many bytes stand
 * before the message, how long all of it is. */
#ifndef CK_FORMAT_MESSAGE_H
#define CK_FORMAT_MESSAGE_H

#include "base/arena.h"
#include "data/batch.h"
#include "format/decoder.h"

typedef enum ck_message_format { CK_MESSAGE_AVRO, CK_MESSAGE_PROTOBUF } ck_message_format;

/* Whether the format is one of these. */
bool ck_message_format_of(const char *name, ck_message_format *out);

/* The text of one schema. name: how others refer to it (protobuf: what is imported). */
typedef struct ck_message_text {
    const char *name;
    ck_view text;
} ck_message_text;

typedef struct ck_message_schema ck_message_schema;

/* texts: those that are referred to first, the schema itself last. CK_DATA: it is none, or refers to what is missing.
 */
CK_NODISCARD ck_status ck_message_parse(ck_arena *a, ck_message_format format, const ck_message_text *texts,
                                        uint32_t count, const ck_message_schema **out, ck_error *err);

/* Which message of a schema: protobuf's numbers from the outermost in; avro has one and none of these. */
enum { CK_MESSAGE_DEPTH_MAX = 16 };
typedef struct ck_message_path {
    uint32_t index[CK_MESSAGE_DEPTH_MAX];
    uint32_t count;
} ck_message_path;
/* Of the message with this name (with its package or without); NULL: the first. CK_NOTFOUND. */
CK_NODISCARD ck_status ck_message_find(const ck_message_schema *s, const char *name, ck_message_path *out,
                                       ck_error *err);

/* How messages become rows of the table. lenient: a nullable column that the schema lacks is NULL, since an older
 * schema may lack it; otherwise that is CK_DATA, as is what does not fit. CK_NOTFOUND: the path leads nowhere. */
typedef struct ck_message_reader ck_message_reader;
CK_NODISCARD ck_status ck_message_reader_new(ck_arena *a, const ck_message_schema *s, const ck_message_path *path,
                                             const ck_schema *table, bool lenient, const ck_message_reader **out,
                                             ck_error *err);

/* How rows of the table become messages. */
typedef struct ck_message_writer ck_message_writer;
CK_NODISCARD ck_status ck_message_writer_new(ck_arena *a, const ck_message_schema *s, const ck_message_path *path,
                                             const ck_schema *table, const ck_message_writer **out, ck_error *err);
/* Appends row (physical) of b. CK_DATA: the schema has no place for one of its values, *err says which; nothing is
 * appended. CK_NOMEM. */
CK_NODISCARD ck_status ck_message_write(const ck_message_writer *w, const ck_batch *b, uint32_t row, ck_bytes *out,
                                        ck_error *err);

/* A schema that has the table's columns and no others, as text with a NUL behind it. CK_DATA: a column has a type or a
 * name that there is none for. */
CK_NODISCARD ck_status ck_message_schema_of(ck_arena *a, ck_message_format format, const char *name,
                                            const ck_schema *table, const char **out, ck_error *err);

/* ---- decoders of these formats ---- */

/* Before each record, in the machine's byte order; bytes counts what follows it, skip bytes of that before the
 * message. */
typedef struct ck_message_frame {
    uint32_t reader, skip, bytes;
} ck_message_frame;

/* Records with *number are read by r, which outlives the decoder. r NULL: each is a bad record, for this reason (copied
 * where it lasts: it outlives the decoder too). */
CK_NODISCARD ck_status ck_decoder_add_reader(ck_decoder *d, const ck_message_reader *r, const char *reason,
                                             uint32_t *number, ck_error *err);

#endif
