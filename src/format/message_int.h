/* Inside of the message formats: the parsed schemas, the plans, where values go. */
#ifndef CK_FORMAT_MESSAGE_INT_H
#define CK_FORMAT_MESSAGE_INT_H

#include <yyjson.h>

#include "base/cursor.h"
#include "base/map.h"
#include "format/decode_int.h"
#include "format/message.h"

enum {
    CK_MESSAGE_NESTED_MAX = 64,       /* levels of a schema, and of a message */
    CK_MESSAGE_ELEMENTS_MAX = 1 << 24 /* of all arrays and maps of one message */
};

/* ---- avro ---- */

typedef enum ck_avro_kind {
    CK_AVRO_NULL,
    CK_AVRO_BOOLEAN,
    CK_AVRO_INT,
    CK_AVRO_LONG,
    CK_AVRO_FLOAT,
    CK_AVRO_DOUBLE,
    CK_AVRO_BYTES,
    CK_AVRO_STRING,
    CK_AVRO_RECORD,
    CK_AVRO_ENUM,
    CK_AVRO_FIXED,
    CK_AVRO_ARRAY,
    CK_AVRO_MAP,
    CK_AVRO_UNION,
} ck_avro_kind;

typedef enum ck_avro_logical {
    CK_AVRO_PLAIN,
    CK_AVRO_DECIMAL,
    CK_AVRO_DATE,
    CK_AVRO_TIME_MILLIS,
    CK_AVRO_TIME_MICROS,
    CK_AVRO_TIMESTAMP_MILLIS,
    CK_AVRO_TIMESTAMP_MICROS,
    CK_AVRO_LOCAL_MILLIS,
    CK_AVRO_LOCAL_MICROS,
} ck_avro_logical;

typedef struct ck_avro {
    ck_avro_kind kind;
    ck_avro_logical logical;
    int32_t precision, scale; /* DECIMAL */
    uint32_t bytes;           /* FIXED */
    const char *name;         /* full: RECORD, ENUM, FIXED */
    uint32_t count;           /* fields, symbols, branches; ARRAY and MAP: 1 */
    const char **names;       /* of fields and symbols */
    const struct ck_avro **types;
    yyjson_val **defaults; /* of fields; NULL: none */
} ck_avro;

/* names: the types known so far; those of the text are added. */
CK_NODISCARD ck_status ck_avro_parse(ck_arena *a, ck_map *names, ck_view text, const ck_avro **out, ck_error *err);
const char *ck_avro_logical_name(ck_avro_logical l); /* "timestamp-millis" */
/* "timestamp-millis", "record Order": for sentences. */
const char *ck_avro_print(ck_arena *a, const ck_avro *t);
CK_NODISCARD ck_status ck_avro_schema_of(ck_arena *a, const char *name, const ck_schema *table, const char **out,
                                         ck_error *err);

/* A type of the schema and what it becomes. */
typedef struct ck_avro_read {
    const ck_avro *type;
    const ck_field *field; /* a column, a field of a ROW, an element */
    uint32_t to;           /* of a record's field: the place of `field` in its ROW or table */
    /* RECORD: a field each, NULL: left out; UNION: a branch each, NULL: the null; ARRAY, MAP: one */
    const struct ck_avro_read **parts;
    const uint32_t *missing; /* RECORD: fields of the ROW or table that it does not have */
    uint32_t missing_count;
} ck_avro_read;

CK_NODISCARD ck_status ck_avro_read_plan(ck_arena *a, const ck_avro *t, const ck_schema *table, bool lenient,
                                         const ck_avro_read **out, ck_error *err);

/* A type of the schema and what it is made of. */
typedef struct ck_avro_write {
    const ck_avro *type; /* not a union: the branch */
    const ck_field *field;
    uint32_t from;                      /* of a record's field: the place of `field` in its ROW or table */
    int32_t branch, null_branch;        /* of the union it is a branch of; -1: none */
    const struct ck_avro_write **parts; /* RECORD: a field each; ARRAY, MAP: one */
    ck_view constant;                   /* p not NULL: the default of a field that the table lacks */
} ck_avro_write;

CK_NODISCARD ck_status ck_avro_write_plan(ck_arena *a, const ck_avro *t, const ck_schema *table,
                                          const ck_avro_write **out, ck_error *err);
CK_NODISCARD ck_status ck_avro_write_row(const ck_avro_write *w, const ck_batch *b, uint32_t row, ck_bytes *out,
                                         ck_error *err);

/* ---- protobuf ---- */

typedef enum ck_proto_kind {
    CK_PROTO_DOUBLE,
    CK_PROTO_FLOAT,
    CK_PROTO_INT64,
    CK_PROTO_UINT64,
    CK_PROTO_INT32,
    CK_PROTO_UINT32,
    CK_PROTO_SINT32,
    CK_PROTO_SINT64,
    CK_PROTO_FIXED32,
    CK_PROTO_FIXED64,
    CK_PROTO_SFIXED32,
    CK_PROTO_SFIXED64,
    CK_PROTO_BOOL,
    CK_PROTO_STRING,
    CK_PROTO_BYTES,
    CK_PROTO_ENUM,
    CK_PROTO_MESSAGE,
} ck_proto_kind;

typedef struct ck_proto_enum {
    const char *name;
    const char **names;
    int32_t *numbers;
    uint32_t count;
} ck_proto_enum;

struct ck_proto;
typedef struct ck_proto_field {
    const char *name;
    uint32_t number;
    ck_proto_kind kind;
    bool repeated, packed;
    bool presence;         /* it can be absent, which is NULL; else absent is the type's zero */
    bool required;         /* proto2 */
    const char *type_name; /* as written; MESSAGE and ENUM */
    const struct ck_proto *message;
    const ck_proto_enum *enums;
} ck_proto_field;

typedef struct ck_proto {
    const char *name;        /* full, without a dot in front */
    struct ck_proto *parent; /* NULL: of the file */
    ck_proto_field *fields;
    uint32_t field_count;
    struct ck_proto **nested; /* in the order of the text: what message indexes count */
    uint32_t nested_count;
    bool map_entry;
} ck_proto;

typedef struct ck_proto_file {
    ck_proto **messages;
    uint32_t message_count;
} ck_proto_file;

/* texts as in ck_message_parse. *out: the last one's messages. */
CK_NODISCARD ck_status ck_proto_parse(ck_arena *a, const ck_message_text *texts, uint32_t count, ck_proto_file *out,
                                      ck_error *err);
const char *ck_proto_print(ck_arena *a, const ck_proto_field *f); /* "repeated int64", "message shop.Order" */
const char *ck_proto_scalar_name(ck_proto_kind k);
CK_NODISCARD ck_status ck_proto_schema_of(ck_arena *a, const char *name, const ck_schema *table, const char **out,
                                          ck_error *err);
bool ck_proto_is_time(const ck_proto *m);     /* google.protobuf.Timestamp */
bool ck_proto_is_wrapper(const ck_proto *m);  /* google.protobuf.Int64Value and its like */
unsigned ck_proto_wire_type(ck_proto_kind k); /* 0 varint, 1 eight bytes, 2 counted, 5 four bytes */

/* A field of a message and what it becomes. */
typedef struct ck_proto_part {
    const ck_proto_field *from;
    const ck_field *field; /* a column, a field of a ROW; NULL: left out */
    uint32_t to;
    const struct ck_proto_plan *inner; /* a message that becomes a ROW, or an entry of a MAP */
} ck_proto_part;

typedef struct ck_proto_plan {
    const ck_proto *message;
    const ck_proto_part *parts; /* as many as the message has fields, by number */
    const uint32_t *missing;    /* fields of the ROW or table that it does not have */
    uint32_t missing_count;
} ck_proto_plan;

/* for_writing: what a column can hold must fit into the field, else the other way round. */
CK_NODISCARD ck_status ck_proto_plan_new(ck_arena *a, const ck_proto *m, const ck_schema *table, bool for_writing,
                                         bool lenient, const ck_proto_plan **out, ck_error *err);
CK_NODISCARD ck_status ck_proto_write_row(const ck_proto_plan *p, const ck_batch *b, uint32_t row, ck_bytes *out,
                                          ck_error *err);

/* ---- all ---- */

struct ck_message_schema {
    ck_message_format format;
    const ck_avro *avro;
    ck_proto_file proto;
};
struct ck_message_reader {
    ck_message_format format;
    const ck_avro_read *avro;
    const ck_proto_plan *proto;
};
struct ck_message_writer {
    ck_message_format format;
    const ck_avro_write *avro;
    const ck_proto_plan *proto;
};

/* Which fields of the table nobody fills: fine where they are nullable and lenient says so. `seen`: by field. */
CK_NODISCARD ck_status ck_message_missing(ck_arena *a, const ck_field *fields, uint32_t count, const bool *seen,
                                          bool lenient, const char *of, const uint32_t **missing,
                                          uint32_t *missing_count, ck_error *err);

/* ---- decoding ---- */

typedef struct ck_message_entry {
    const ck_message_reader *reader;
    const char *reason;
} ck_message_entry;

/* One occurrence of a protobuf field in the message at hand. */
typedef struct ck_proto_found {
    uint32_t next; /* of the same field, + 1; 0: none */
    uint8_t wire;
    union {
        uint64_t number;
        ck_view bytes;
    };
} ck_proto_found;

typedef struct ck_proto_head {
    uint32_t first, last, count; /* first and last + 1; 0: none */
} ck_proto_head;

/* Part of a decoder of these formats. */
typedef struct ck_messages {
    ck_mem mem;
    ck_message_format format;
    ck_message_entry *entries;
    uint32_t count, capacity;
    int32_t *target_of; /* a column each; -1: nobody wants it */
    uint32_t column_count;
    ck_utf8_fn utf8;
    /* scratch */
    ck_proto_found *found;
    ck_proto_head *heads;
    uint32_t found_count, found_capacity, head_count, head_capacity;
    /* of the record at hand */
    ck_rows *rows;
    ck_why *why;
    ck_buffer *buf;
    const uint8_t *p, *end; /* avro */
    uint32_t elements;
} ck_messages;

CK_NODISCARD ck_status ck_messages_new(ck_decoder *d, const ck_decoder_spec *spec, ck_message_format format,
                                       ck_cpu cpu);
void ck_messages_free(ck_decoder *d);
CK_NODISCARD ck_status ck_messages_decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset,
                                          size_t *consumed, ck_error *err);
/* The message at m->p becomes the row rows->row_count. CK_DATA: *m->why. */
CK_NODISCARD ck_status ck_avro_decode(ck_messages *m, const ck_avro_read *r);
CK_NODISCARD ck_status ck_proto_decode(ck_messages *m, const ck_proto_plan *r);

/* Where a value goes: a column's row, or the end of a builder. */
typedef struct ck_slot {
    const ck_field *field;
    ck_target *target;          /* NULL: inside of another value */
    ck_column_builder *builder; /* NULL: the target's own arrays */
} ck_slot;
static inline ck_slot ck_slot_column(ck_target *t) { return (ck_slot){t->field, t, t->nested ? &t->builder : NULL}; }
static inline ck_slot ck_slot_inside(const ck_field *f, ck_column_builder *b) { return (ck_slot){f, NULL, b}; }

/* CK_DATA: it does not go in, *m->why. */
CK_NODISCARD ck_status ck_put_null(ck_messages *m, ck_slot s, const char *how);
CK_NODISCARD ck_status ck_put_i64(ck_messages *m, ck_slot s, int64_t v); /* integers in range, times as they are */
CK_NODISCARD ck_status ck_put_f64(ck_messages *m, ck_slot s, double v);
CK_NODISCARD ck_status ck_put_bool(ck_messages *m, ck_slot s, bool v);
/* of that scale */
CK_NODISCARD ck_status ck_put_decimal(ck_messages *m, ck_slot s, ck_i128 v, int32_t scale);
/* p stands in m->buf, or copied is true */
CK_NODISCARD ck_status ck_put_bytes(ck_messages *m, ck_slot s, const char *p, size_t n, bool copied);
CK_NODISCARD ck_status ck_put_time(ck_messages *m, ck_slot s, int64_t v, int64_t unit_us); /* at the precision */
/* One more element. CK_DATA: too many. */
CK_NODISCARD ck_status ck_messages_element(ck_messages *m);

static inline int64_t ck_zigzag_decode(uint64_t v) { return (int64_t)(v >> 1) ^ -(int64_t)(v & 1); }
static inline uint64_t ck_zigzag_encode(int64_t v) { return (uint64_t)v << 1 ^ (uint64_t)(v >> 63); }
/* false: it ends too early or is longer than ten bytes. */
static inline bool ck_varint_read(const uint8_t **p, const uint8_t *end, uint64_t *out) {
    uint64_t v = 0;
    const uint8_t *at = *p;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t c = *at++;
        v |= shift < 64 ? (uint64_t)(c & 127) << shift : 0;
        if (c < 128) {
            *p = at;
            *out = v;
            return true;
        }
    }
    return false;
}
CK_NODISCARD ck_status ck_varint_write(ck_bytes *out, uint64_t v);

#endif
