/* The inner loops over whole columns, in one table per instruction set; an eval takes the table its processor can run.
 * Dense only: n rows from the first. `bits` results are whole words: bits past n are unspecified. Operands of form VV
 * are two columns, VS a column and one value (b[0]), SV one value (a[0]) and a column. Not thread related: pure. */
#ifndef CK_EXPR_KERNELS_H
#define CK_EXPR_KERNELS_H

#include "base/proc.h"
#include "data/column.h"
#include "expr/time_unit.h"

typedef enum ck_cmp { CK_CMP_EQ, CK_CMP_NE, CK_CMP_LT, CK_CMP_LE, CK_CMP_GT, CK_CMP_GE, CK_CMP_COUNT } ck_cmp;
typedef enum ck_form { CK_FORM_VV, CK_FORM_VS, CK_FORM_SV, CK_FORM_COUNT } ck_form;
typedef enum ck_arith { CK_ADD, CK_SUB, CK_MUL, CK_DIV, CK_MOD, CK_ARITH_COUNT } ck_arith;

struct ck_like;

typedef struct ck_kernels {
    const char *name;
    /* Doubles compare as PostgreSQL's: NaN equals NaN and is greater than everything. */
    void (*cmp_i64[CK_CMP_COUNT][2])(uint64_t *bits, const int64_t *a, const int64_t *b, size_t n);
    void (*cmp_f64[CK_CMP_COUNT][2])(uint64_t *bits, const double *a, const double *b, size_t n);
    void (*cmp_i128[CK_CMP_COUNT][2])(uint64_t *bits, const ck_i128 *a, const ck_i128 *b, size_t n);
    /* Over a selection: rows sel[0..n) where it holds, into out (may be sel itself). Returns how many. */
    uint32_t (*sel_i64[CK_CMP_COUNT][2])(uint16_t *out, const int64_t *a, const int64_t *b, const uint16_t *sel,
                                         uint32_t n);
    uint32_t (*sel_f64[CK_CMP_COUNT][2])(uint16_t *out, const double *a, const double *b, const uint16_t *sel,
                                         uint32_t n);
    uint32_t (*sel_i128[CK_CMP_COUNT][2])(uint16_t *out, const ck_i128 *a, const ck_i128 *b, const uint16_t *sel,
                                          uint32_t n);
    /* Row numbers of the set bits below n, ascending; out has room for n rounded up to 8. */
    uint32_t (*bits_to_sel)(uint16_t *out, const uint64_t *bits, uint32_t n);
    /* A bitmap of row_count rows in which those of sel are set; the rows of sel whose bit is set, into out (may be sel
     * itself; room as above). */
    void (*sel_to_bits)(uint64_t *bits, const uint16_t *sel, uint32_t n, uint32_t row_count);
    uint32_t (*sel_bits)(uint16_t *out, const uint64_t *bits, const uint16_t *sel, uint32_t n);
    /* Values of 8 and 16 bytes, and bits, of a column [0] or one value [1], to the rows of sel (NULL: the first n). */
    void (*put_8[2])(void *restrict to, const void *restrict from, const uint16_t *sel, uint32_t n);
    void (*put_16[2])(void *restrict to, const void *restrict from, const uint16_t *sel, uint32_t n);
    void (*put_bits[2])(uint64_t *restrict to, const uint64_t *restrict from, const uint16_t *sel, uint32_t n);
    /* ADD, SUB, MUL: wraps, and says whether some row overflowed. */
    bool (*arith_i64[CK_MUL + 1][CK_FORM_COUNT])(int64_t *restrict out, const int64_t *a, const int64_t *b, size_t n);
    void (*arith_f64[CK_DIV + 1][CK_FORM_COUNT])(double *restrict out, const double *a, const double *b, size_t n);
    /* Quotient (DIV) or remainder (MOD) by one divisor, not 0 and not -1. */
    void (*divide_i64[2])(int64_t *restrict out, const int64_t *a, int64_t divisor, size_t n);
    bool (*any_outside)(const int64_t *v, int64_t low, int64_t high, size_t n); /* some v[i] < low or > high */
    bool (*any_zero_f64)(const double *v, size_t n);
    void (*i64_to_f64)(double *restrict out, const int64_t *v, size_t n);
    void (*widen_mul)(ck_i128 *restrict out, const int64_t *v, int64_t by, size_t n); /* exact products */
    /* Parts of a local time, by unit (NULL: not one below a day, nor EPOCH); the day it is of, counted from 1970. */
    void (*clock_part[CK_UNIT_COUNT])(int64_t *restrict out, const int64_t *us, size_t n);
    /* The beginning of the unit, from a second to a day (NULL: of the others). */
    void (*clock_floor[CK_UNIT_COUNT])(int64_t *restrict out, const int64_t *us, size_t n);
    void (*days)(int64_t *restrict out, const int64_t *us, size_t n);
    /* Parts of days, by unit (NULL: not in bulk). False: some day is not of the years 1 to 9999, nothing is written. */
    bool (*day_part[CK_UNIT_COUNT])(int64_t *restrict out, const int64_t *days, size_t n);
    /* The first place of part (not empty) in text; NULL: none. */
    const char *(*find)(ck_view text, ck_view part);
    /* By the pattern's shape (like_int.h): rows of sel (NULL: the first n) that match, into out, which may be sel; a
     * bitmap of the first n rows; one text. */
    uint32_t (*like_rows[5])(uint16_t *out, const struct ck_like *l, const ck_column *c, const uint16_t *sel,
                             uint32_t n);
    void (*like_bits[5])(uint64_t *bits, const struct ck_like *l, const ck_column *c, uint32_t n);
    bool (*like_matches)(const struct ck_like *l, ck_view text);
} ck_kernels;

extern const ck_kernels ck_kernels_base;
#if defined(__x86_64__)
extern const ck_kernels ck_kernels_avx2;
#endif
const ck_kernels *ck_kernels_for(ck_cpu cpu);

#endif
