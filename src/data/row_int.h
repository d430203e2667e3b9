/* Packed bytes of single nested or string values, for keys. This room only. */
#ifndef CK_DATA_ROW_INT_H
#define CK_DATA_ROW_INT_H

#include "base/cursor.h"
#include "data/row.h"

/* Where packed bytes go, piece by piece: memory, or a hash that wants no buffer. */
typedef struct ck_pack_sink ck_pack_sink;
struct ck_pack_sink {
    void (*put)(ck_pack_sink *s, const void *p, size_t n);
};

/* Bytes of a value of variable width, not NULL, without a length in front. CK_INVALID, CK_FULL as ck_row_encode. */
CK_NODISCARD ck_status ck_packed_bytes(const ck_type *t, const ck_column *c, uint32_t row, size_t *bytes);
/* And what they are; ck_packed_bytes said CK_OK to this value. */
void ck_packed_put(const ck_type *t, const ck_column *c, uint32_t row, ck_pack_sink *s);
/* Appends u32 LE length (with_length) and the bytes. */
CK_NODISCARD ck_status ck_packed_append(const ck_type *t, const ck_column *c, uint32_t row, bool with_length,
                                        ck_bytes *out);
/* The value back. On failure what was appended below *out is for the caller to truncate. */
CK_NODISCARD ck_status ck_packed_decode(const ck_type *t, ck_view bytes, ck_column_builder *out);

/* Truncates all builders to the length they had. */
void ck_builders_truncate(ck_column_builder *const *b, uint32_t count, uint32_t length);

#endif
