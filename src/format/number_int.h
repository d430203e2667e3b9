/* Numbers in text, by JSON's grammar. One pass checks the grammar and collects up to 19 digits, which is all that
 * integers, most doubles and decimals need; the exact text stays available for the rest. */
#ifndef CK_FORMAT_NUMBER_INT_H
#define CK_FORMAT_NUMBER_INT_H

#include "format/swar_int.h"

typedef struct ck_number {
    uint64_t digits;  /* the significant digits as an integer */
    int64_t exponent; /* value = digits * 10^exponent */
    bool negative;
    bool plain; /* an optional minus and digits, nothing else */
    bool exact; /* digits holds all of them */
} ck_number;

/* From p, which must be followed by a byte that ends a number (a sentinel). The first byte behind the number, or NULL
 * when its text is none; *at then says where it went wrong. */
const uint8_t *ck_number_scan(const uint8_t *p, ck_number *out, const uint8_t **at);

/* true: *out is the integer n stands for. false: it has a fraction, or (*range) does not fit 64 bits. */
bool ck_number_i64(const ck_number *n, int64_t *out, bool *range);
/* The same as ck_number_f64, for more digits. */
bool ck_number_f64_wide(const ck_number *n, double *out);
/* true: *out is the nearest double. false: not this easily, ask ck_parse_f64 with the text. */
static inline bool ck_number_f64(const ck_number *n, double *out) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* Both factors are exact doubles, so that one rounding is left. */
    if (!n->exact || n->digits > (1ULL << 53) || n->exponent < -22 || n->exponent > 22)
        return ck_number_f64_wide(n, out);
    double m = (double)n->digits;
    m = n->exponent < 0 ? m / power[-n->exponent] : m * power[n->exponent];
    *out = n->negative ? -m : m;
    return true;
}

/* The nearest double of the number in [p, end), which a byte that is in no number follows. false: it is too large. */
bool ck_number_f64_exact(const uint8_t *p, const uint8_t *end, double *out);

#endif
