/* Filling a bitmap over the rows of a kernel: whole words when dense. HOLDS is an expression of the row i. */
#ifndef CK_EXPR_BITS_INT_H
#define CK_EXPR_BITS_INT_H

#include "expr/eval_int.h"

#define CK_FILL_BITS(out, rows, i, HOLDS)                                                                              \
    do {                                                                                                               \
        if ((rows)->sel) {                                                                                             \
            memset((out), 0, ck_bitmap_words((rows)->row_count) * sizeof *(out));                                      \
            for (uint32_t k_ = 0; k_ < (rows)->n; k_++) {                                                              \
                uint32_t i = (rows)->sel[k_];                                                                          \
                if (HOLDS) ck_bit_set((out), i);                                                                       \
            }                                                                                                          \
        } else {                                                                                                       \
            for (uint32_t w_ = 0; w_ < (rows)->n; w_ += 64) {                                                          \
                uint64_t word_ = 0;                                                                                    \
                uint32_t end_ = (rows)->n - w_ < 64 ? (rows)->n : w_ + 64;                                             \
                for (uint32_t i = w_; i < end_; i++) word_ |= (uint64_t)(HOLDS) << (i & 63);                           \
                (out)[w_ / 64] = word_;                                                                                \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* The rows where HOLDS, into sel. */
#define CK_FILL_ROWS(out, count, rows, i, HOLDS)                                                                       \
    do {                                                                                                               \
        uint32_t kept_ = 0;                                                                                            \
        for (uint32_t k_ = 0; k_ < (rows)->n; k_++) {                                                                  \
            uint32_t i = (rows)->sel ? (rows)->sel[k_] : k_;                                                           \
            (out)[kept_] = (uint16_t)i;                                                                                \
            kept_ += (uint32_t)(HOLDS);                                                                                \
        }                                                                                                              \
        *(count) = kept_;                                                                                              \
    } while (0)

#endif
