/* What compressed the records of a batch undone: gzip, lz4 and zstd. */
#ifndef CK_CONNECTOR_KAFKA_UNPACK_H
#define CK_CONNECTOR_KAFKA_UNPACK_H

#include "base/bytes.h"

struct LZ4F_dctx_s;

enum { CK_KAFKA_UNPACKED_BYTES_MAX = 256 << 20 }; /* of a batch */

/* Zero is fine. One thread at a time. */
typedef struct ck_kafka_unpacker {
    struct LZ4F_dctx_s *lz4; /* made when the first one comes */
    ck_bytes spare;          /* room that the next batch may have */
} ck_kafka_unpacker;

void ck_kafka_unpacker_destroy(ck_kafka_unpacker *u); /* safe on zero */
/* Partitions take turns in having a batch unpacked: what one needs no more, the next one has. room is empty then. */
void ck_kafka_unpacker_give_back(ck_kafka_unpacker *u, ck_bytes *room);
/* Into out, which is cleared first. codec: as in a batch's attributes. CK_REFUSED: it is none of the three. CK_CORRUPT:
 * not what it should be, or cut. CK_FULL: more than out takes. CK_NOMEM. */
CK_NODISCARD ck_status ck_kafka_unpack(ck_kafka_unpacker *u, unsigned codec, ck_view in, ck_bytes *out);

#endif
