/* Encoded keys, the one encoding for routing, state and snapshots. The bytes are a public format (docs/formats.md,
 * "User key" and "Order keys"); this is the only writer.
 *
 * User key:  no column            zero bytes
 *            one integer-like     8 bytes little-endian
 *            one VARCHAR, BYTES   its bytes
 *            one column NULL      0xFF
 *            anything else        per column: 0 (NULL) or 1, then 8 bytes LE (integers), 8 (double), 17 (decimal: u8
 * scale, i128 LE), or u32 LE length and bytes (strings; ARRAY, MAP, ROW: their packed value encoding) Doubles are
 * normalised first (one NaN, no -0.0), decimals stripped of trailing zeros. */
#ifndef CK_DATA_KEY_H
#define CK_DATA_KEY_H

#include "data/builder.h"

/* Columns of a batch that form a key. Borrowed types. */
typedef struct ck_key_spec {
    const uint32_t *columns; /* indices in the batch */
    const ck_type *const *types;
    uint32_t count;
} ck_key_spec;

/* Append the user key of one row. CK_FULL past CK_KEY_BYTES_MAX. */
CK_NODISCARD ck_status ck_key_encode(const ck_key_spec *k, const ck_batch *b, uint32_t row, ck_bytes *out);
/* Values from key bytes back into builders (one a column): what restores and scans use. CK_CORRUPT when they do not
 * parse. */
CK_NODISCARD ck_status ck_key_decode(const ck_type *const *types, uint32_t count, ck_view key,
                                     ck_column_builder *const *out);

/* FNV-1a of the encoded key for the live rows of b, out[k] for the k-th, without building the bytes where it can. */
void ck_key_fnv(const ck_key_spec *k, const ck_batch *b, uint64_t *out);
/* The mixing hash of the same equality classes, for in-memory tables: equal keys hash equal whatever their encoding. */
void ck_key_hash(const ck_key_spec *k, const ck_batch *b, uint64_t seed, uint64_t *out);

/* Order keys: compare right with memcmp. One order column. */
typedef struct ck_order_spec {
    uint32_t column;
    const ck_type *type;
    bool nullable, descending, nulls_first;
} ck_order_spec;
CK_NODISCARD ck_status ck_order_encode(const ck_order_spec *cols, uint32_t count, const ck_batch *b, uint32_t row,
                                       ck_bytes *out);
CK_NODISCARD ck_status ck_order_decode(const ck_order_spec *cols, uint32_t count, ck_view key,
                                       ck_column_builder *const *out);

/* Canonical forms used by both encodings and by equality. */
double ck_double_canonical(double v);                      /* one NaN, no -0.0 */
void ck_decimal_canonical(ck_i128 *value, int32_t *scale); /* trailing zeros stripped, scale >= 0 */

#endif
