/* Inside of columns, for this room only. A column of ours is one allocation:
 *
 *   own_column | pad to 64 | data, padded to 64 | validity for `capacity` rows, padded to 64
 *
 * The validity bitmap has its room from the start and is switched on by pointing at it; error marks, which only
 * expressions make, and the list of children are blocks of their own. */
#ifndef CK_DATA_COLUMN_INT_H
#define CK_DATA_COLUMN_INT_H

#include "data/batch.h"

enum { CK_COLUMN_ALIGN = 64 };

typedef struct ck_own_column {
    ck_column pub;
    uint32_t capacity; /* rows there is memory for; pub.length may be made smaller */
} ck_own_column;

static inline size_t ck_round64(size_t n) { return (n + 63) & ~(size_t)63; }
static inline void *ck_align64(void *p) { return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

/* Bytes of one value in the data block; BOOL and kinds without data give 0. */
static inline size_t ck_phys_width(ck_phys phys) {
    switch (phys) {
    case CK_PHYS_I64:
    case CK_PHYS_F64: return 8;
    case CK_PHYS_I128:
    case CK_PHYS_VIEW: return 16;
    case CK_PHYS_LIST: return 4;
    default: return 0;
    }
}
/* Bytes of the data of `rows` rows: LIST has one offset more, BOOL is whole words. */
static inline size_t ck_phys_data_bytes(ck_phys phys, size_t rows) {
    if (phys == CK_PHYS_BOOL) return ck_bitmap_words(rows) * 8;
    return (rows + (phys == CK_PHYS_LIST)) * ck_phys_width(phys);
}
/* Bytes of the allocation behind a column of `rows` rows. */
static inline size_t ck_column_alloc_bytes(ck_phys phys, size_t rows) {
    size_t validity = phys == CK_PHYS_NULL ? 0 : ck_round64(ck_bitmap_words(rows) * 8);
    return sizeof(ck_own_column) + CK_COLUMN_ALIGN - 1 + ck_round64(ck_phys_data_bytes(phys, rows)) + validity;
}
/* What a buffer of `bytes` costs beyond them. */
static inline size_t ck_buffer_overhead(void) { return sizeof(ck_buffer) + CK_COLUMN_ALIGN - 1 + CK_BUFFER_PADDING; }

/* Room for `count` children, all NULL yet; the column then owns what is put there. */
CK_NODISCARD ck_status ck_column_reserve_children(ck_column *c, uint32_t count);
/* Drops heaps and children (NULL ones too), as before ck_column_reserve_children. */
void ck_column_drop_parts(ck_column *c);

#endif
