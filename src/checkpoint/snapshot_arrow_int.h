/* The two kinds of Arrow IPC messages a snapshot consists of, taken apart. The flatbuffers must have been verified
 * (ArrowIpcDecoderVerifyHeader); what a verified one may still leave out or say wrongly is checked here. nanoarrow's
 * own decoder is for streams that are trusted: 0.9.0 reads through missing strings of the metadata. */
#ifndef CK_CHECKPOINT_SNAPSHOT_ARROW_INT_H
#define CK_CHECKPOINT_SNAPSHOT_ARROW_INT_H

#include "base/view.h"

/* What is wrong, a literal; NULL: nothing. *refused: not damaged, but not read. */
typedef const char *ck_arrow_problem;

typedef struct ck_arrow_pair {
    ck_view key, value; /* borrowed from the message */
} ck_arrow_pair;

/* message: the flatbuffer, behind the eight bytes of prefix. Checks the columns of a snapshot or (four) a delta. */
ck_arrow_problem ck_arrow_schema_check(const void *message, bool *delta, bool *refused);
/* The metadata's value of a key; n 0 and p NULL: absent. */
ck_view ck_arrow_metadata(const void *message, const char *key);

/* A record batch over its body. Offsets are checked: row i < rows may be read. */
typedef struct ck_arrow_batch {
    uint64_t rows;
    const uint8_t *kinds;  /* deltas */
    const uint8_t *op_ids; /* 8 bytes each, not aligned */
    const uint8_t *key_offsets, *value_offsets;
    const char *keys, *values;
} ck_arrow_batch;
ck_arrow_problem ck_arrow_batch_check(const void *message, bool delta, ck_view body, ck_arrow_batch *out,
                                      bool *refused);

static inline uint64_t ck_arrow_u64(const uint8_t *p, uint64_t i) {
    uint64_t v;
    memcpy(&v, p + 8 * i, 8);
    return v;
}
static inline ck_view ck_arrow_bytes(const uint8_t *offsets, const char *data, uint64_t i) {
    int32_t o[2];
    memcpy(o, offsets + 4 * i, 8);
    return (ck_view){data + o[0], (size_t)(o[1] - o[0])};
}

#endif
