/* Encoded keys, the one encoding for routing, state and snapshots. The bytes are a public format (docs/formats.md,
 * "User key" and "Order keys").
 *
 * User key:  no column            zero bytes
 *            one column NULL      0xFF
 *            one integer-like     8 bytes little-endian
 *            one VARCHAR          its bytes (UTF-8, so never 0xFF alone)
 *            anything else        per column 0 (NULL), or 1 and the value: 8 bytes LE (integers), 8 (double), 17
 *                                 (decimal: u8 scale, i128 LE), or u32 LE length and bytes (VARCHAR, BYTES; ARRAY, MAP
 *                                 and ROW: their packed bytes, data/row.h). One BYTES column is one of these, since its
 *                                 bytes alone could not be told from NULL.
 * Integer-like are integers, BOOLEAN as 0 or 1, dates, times and intervals. Doubles are normalised first (one NaN, no
 * -0.0), decimals stripped of trailing zeros.
 *
 * Order key: per column, where it is nullable, one byte: 0 NULL that comes first, 1 a value, 2 NULL that comes last;
 * then the value: 8 bytes BE with the sign flipped (integer-like), 8 BE of the total-order flip (double, -0.0 as 0.0,
 * NaN greatest), 16 BE with the sign flipped (decimal at the column's scale), or bytes with 0x00 escaped as 00 FF and
 * ended by 00 00 (VARCHAR, BYTES; ARRAY, MAP and ROW: their packed bytes, which is some total order and not one SQL
 * knows). DESC complements the value's bytes, never the first byte. */
#ifndef CK_DATA_KEY_H
#define CK_DATA_KEY_H

#include "base/hash.h"
#include "base/proc.h"
#include "data/builder.h"

/* Columns of a batch that form a key. Borrowed types. */
typedef struct ck_key_spec {
    const uint32_t *columns; /* indices in the batch */
    const ck_type *const *types;
    uint32_t count;
} ck_key_spec;

/* Append the user key of one row. CK_FULL past CK_KEY_BYTES_MAX, with nothing appended. */
CK_NODISCARD ck_status ck_key_encode(const ck_key_spec *k, const ck_batch *b, uint32_t row, ck_bytes *out);
/* Whether the key of a live row is past CK_KEY_BYTES_MAX, and the first such row. Where no text can be that long, which
 * is the usual batch, no row is looked at. CK_NOMEM. */
CK_NODISCARD ck_status ck_key_find_too_long(const ck_key_spec *k, const ck_batch *b, ck_mem mem, bool *any,
                                            uint32_t *row);
/* Values from key bytes back into builders (one a column, of equal lengths): what restores and scans use. CK_CORRUPT
 * when they do not parse, with nothing appended. Decimals come back at the column's scale. */
CK_NODISCARD ck_status ck_key_decode(const ck_type *const *types, uint32_t count, ck_view key,
                                     ck_column_builder *const *out);

/* FNV-1a of the encoded key for the live rows of b, out[k] for the k-th, without building the bytes where it can. */
void ck_key_fnv(const ck_key_spec *k, const ck_batch *b, uint64_t *out);
/* Its low 16 bits alone, for a fraction of the work: all that key groups need where their number is a power of two. */
typedef void ck_key_fnv16_fn(const ck_key_spec *k, const ck_batch *b, uint16_t *out);
ck_key_fnv16_fn ck_key_fnv16;
ck_key_fnv16_fn *ck_key_fnv16_for(ck_cpu cpu); /* the same, faster where the processor can */
/* The mixing hash of the same equality classes, for in-memory tables: equal keys hash equal whatever their encoding.
 * Exactly this, since state tables hash stored rows again with the inline functions below: no column
 * ck_hash_u64(seed, 0); one column its ck_value_hash_*; more: h = seed, then for each h = ck_hash_combine(h, value
 * hash).
 */
void ck_key_hash(const ck_key_spec *k, const ck_batch *b, uint64_t seed, uint64_t *out);

/* Hash of one value, by physical kind. BOOL as int64 0 or 1; LIST and STRUCT as a string: their packed bytes
 * (data/row.h) without a length in front. */
static inline double ck_double_canonical(double v) { return v != v ? __builtin_nan("") : v + 0.0; } /* no -0.0 */
void ck_decimal_canonical(ck_i128 *value, int32_t *scale); /* trailing zeros stripped, scale >= 0 */
static inline uint64_t ck_value_hash_null(uint64_t seed) { return ck_hash_u64(seed, 0x6e756c6c6e756c6cULL); }
static inline uint64_t ck_value_hash_i64(uint64_t seed, int64_t v) { return ck_hash_u64(seed, (uint64_t)v); }
static inline uint64_t ck_value_hash_f64(uint64_t seed, double v) {
    uint64_t bits;
    v = ck_double_canonical(v);
    memcpy(&bits, &v, sizeof bits);
    return ck_hash_u64(seed, bits);
}
static inline uint64_t ck_value_hash_str(uint64_t seed, ck_view v) { return ck_hash_bytes(seed, v.p, v.n); }
static inline uint64_t ck_value_hash_i128(uint64_t seed, ck_i128 v, int32_t scale) {
    ck_decimal_canonical(&v, &scale);
    uint64_t h = ck_hash_u64(seed, (uint64_t)v);
    return ck_hash_combine(ck_hash_combine(h, (uint64_t)((ck_u128)v >> 64)), (uint64_t)scale);
}

/* Order keys: compare right with memcmp. One order column. NULL in a column that is not nullable is CK_INVALID. */
typedef struct ck_order_spec {
    uint32_t column;
    const ck_type *type;
    bool nullable, descending, nulls_first;
} ck_order_spec;
CK_NODISCARD ck_status ck_order_encode(const ck_order_spec *cols, uint32_t count, const ck_batch *b, uint32_t row,
                                       ck_bytes *out);
CK_NODISCARD ck_status ck_order_decode(const ck_order_spec *cols, uint32_t count, ck_view key,
                                       ck_column_builder *const *out);

#endif
