/* A table outside that rows are looked up in by key: what a connector gives the operator that joins with it (the file
 * connector's is in memory; others may ask a server). One instance a subtask; used by its step alone. */
#ifndef CK_STREAM_LOOKUP_H
#define CK_STREAM_LOOKUP_H

#include "data/key.h"
#include "stream/descriptor.h"

/* Some pairs of a looked up key and a row found for it, keys ascending. Valid until the next call. */
typedef struct ck_lookup_found {
    ck_batch *rows;         /* dense, of the table's columns asked for; NULL where there are no pairs */
    const uint16_t *key_of; /* by row: the live row of the keys it was found for */
    uint32_t count;
    bool more; /* call again with the same keys */
} ck_lookup_found;

typedef struct ck_lookup_spec {
    const ck_op_spec
        *op; /* of the operator; its params are the table's source parameters, schema the columns asked for */
    const uint32_t *keys; /* of those columns: what is looked up by */
    uint32_t key_count;
} ck_lookup_spec;

typedef struct ck_lookup_vtbl {
    uint32_t struct_bytes;
    ck_status (*create)(const ck_lookup_spec *spec, ck_mem mem, void **self, ck_error *err);
    /* Rows for the live rows of b, keys among its columns; no key is NULL. CK_AGAIN: call again after a wake, CK_MORE:
     * at once. */
    ck_status (*find)(void *self, const ck_key_spec *keys, const ck_batch *b, ck_lookup_found *out, ck_op_ctx *ctx);
    void (*close)(void *self, ck_op_ctx *ctx); /* no I/O is under way */
} ck_lookup_vtbl;

#endif
