/* The inner loops of gathering, in one table per instruction set. Rows are of any order; where nothing is faster than what
 * compilers make of plain C (16 bytes a row, views), gather.c has the loop. */
#ifndef CK_DATA_TAKE_INT_H
#define CK_DATA_TAKE_INT_H

#include "base/proc.h"

typedef struct ck_take {
    void (*words)(uint64_t *restrict to, const uint64_t *restrict from, const uint16_t *rows, size_t n);
    /* The bits of rows[0..n), at most 64, in the low end of a word. */
    uint64_t (*bits)(const uint64_t *from, const uint16_t *rows, size_t n);
} ck_take;

extern const ck_take ck_take_base;
const ck_take *ck_take_for(ck_cpu cpu);

#endif
