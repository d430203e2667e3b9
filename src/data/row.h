/* Packed values, the encoding of a slot's value fields in snapshots and in RocksDB (docs/formats.md, "Value"): null
 * bitmap (absent when no field is nullable), fixed-width fields little-endian in schema order, then variable parts (u32
 * LE length, bytes). Widths: BOOLEAN 1, integers and times 8, doubles 8, decimals 16; strings are variable; ARRAY, MAP
 * and ROW are variable with a packed inner encoding (ARRAY: u32 count then packed elements as one-field rows; MAP the
 * same over pairs; ROW a packed row). */
#ifndef CK_DATA_ROW_H
#define CK_DATA_ROW_H

#include "data/builder.h"

/* Append the packed value of row `row` over columns cols[0..count) of b. */
CK_NODISCARD ck_status ck_row_encode(const ck_field *fields, uint32_t count, const ck_column *const *cols, uint32_t row,
                                     ck_bytes *out);
/* One packed value back into builders, one a field. CK_CORRUPT when the bytes do not parse exactly. */
CK_NODISCARD ck_status ck_row_decode(const ck_field *fields, uint32_t count, ck_view value,
                                     ck_column_builder *const *out);

#endif
