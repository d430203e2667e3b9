/* Packed values, the encoding of a slot's value fields in snapshots and in RocksDB (docs/formats.md, "Value"):
 *
 *   null bits    (fields + 7) / 8 bytes, absent when no field is nullable; bit i of the fields, least significant
 * first, 1 = NULL; the rest of the last byte is 0 fixed part   the fields of fixed width in schema order, NULL ones as
 * zero bytes: BOOLEAN 1 (0 or 1), integers, times and intervals 8, REAL and DOUBLE 8, DECIMAL 16, all little-endian;
 * the type of NULL has none variable     the other fields in schema order, NULL ones left out: u32 LE length and the
 * bytes
 *
 * The bytes of a VARCHAR or BYTES are its own; those of ROW are a packed value of its fields, of ARRAY u32 LE count and
 * each element as a packed value of that one field, of MAP the same with (key, value). Inside them doubles have one NaN
 * and no -0.0, so that equal nested values are equal bytes: they serve as keys. */
#ifndef CK_DATA_ROW_H
#define CK_DATA_ROW_H

#include "data/builder.h"

/* Append the packed value of row `row` over columns cols[0..count). CK_INVALID: NULL in a field that is not nullable;
 * CK_FULL: a part of 4 GiB, or past the ceiling of out. Nothing is appended then. */
CK_NODISCARD ck_status ck_row_encode(const ck_field *fields, uint32_t count, const ck_column *const *cols, uint32_t row,
                                     ck_bytes *out);
/* One packed value back into builders, one a field and of equal lengths. CK_CORRUPT when the bytes do not parse
 * exactly; nothing is appended then. */
CK_NODISCARD ck_status ck_row_decode(const ck_field *fields, uint32_t count, ck_view value,
                                     ck_column_builder *const *out);

#endif
