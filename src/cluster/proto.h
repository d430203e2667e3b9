/* Protobuf by tables: a message is a C struct, and a table says which member is which field and how much of it there
 * may be. Reading allocates nothing but lists, each of a length that was counted in the bytes and is under its ceiling,
 * so what a peer can make us hold is known from the table. Absent is zero, unknown fields are skipped, as proto3 has
 * it. */
#ifndef CK_CLUSTER_PROTO_H
#define CK_CLUSTER_PROTO_H

#include "base/arena.h"

typedef enum ck_proto_kind {
    CK_PROTO_UINT,  /* uint64_t; max is its greatest value, 0 = any */
    CK_PROTO_SINT,  /* int64_t, zigzag */
    CK_PROTO_TEXT,  /* ck_view; max bytes; no control characters but tab and newline */
    CK_PROTO_BYTES, /* ck_view; max bytes */
    CK_PROTO_UINTS, /* ck_proto_uints, packed; max items, each below 2^32 */
    CK_PROTO_LIST,  /* ck_proto_list of structs `of`; max items */
} ck_proto_kind;

/* Lists have this shape whatever their items are. */
typedef struct ck_proto_uints {
    const uint32_t *items;
    uint32_t count;
} ck_proto_uints;
typedef struct ck_proto_list {
    const void *items;
    uint32_t count;
} ck_proto_list;

typedef struct ck_proto_type ck_proto_type;
typedef struct ck_proto_field {
    uint32_t number;
    ck_proto_kind kind;
    uint64_t max;
    size_t offset;
    const ck_proto_type *of; /* LIST */
    const char *name;
} ck_proto_field;
struct ck_proto_type {
    const char *name;
    size_t bytes; /* of the struct */
    const ck_proto_field *fields;
    size_t field_count;
};

size_t ck_proto_bytes(const ck_proto_type *t, const void *message);
/* Writes exactly ck_proto_bytes; the end. */
uint8_t *ck_proto_write(const ck_proto_type *t, const void *message, uint8_t *to);
/* Fills *out; views borrow from `in`, lists are the arena's. CK_CORRUPT names the message and the field; CK_NOMEM. */
CK_NODISCARD ck_status ck_proto_read(const ck_proto_type *t, ck_view in, ck_arena *a, void *out, ck_error *err);

#endif
