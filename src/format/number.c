/* See number_int.h. */
#include "format/number_int.h"

#include <float.h>

#include <yyjson.h>

static const uint64_t power_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* Decimal digits of x, 0 for 0. */
static unsigned length(uint64_t x) {
    unsigned n = 0;
    for (; x; x /= 10) n++;
    return n;
}

/* Digits at p into n. *taken counts significant ones, *dropped those beyond the 19 that fit. */
static const uint8_t *digits(const uint8_t *p, ck_number *n, unsigned *taken, int64_t *dropped) {
    for (;;) {
        uint64_t x = ck_load64(p);
        uint64_t stop = ck_swar_no_digit(x);
        unsigned count = stop ? ck_swar_index(stop) : 8;
        if (count > 0 && *taken + count <= 19) {
            uint64_t v = ck_swar_number(x, count);
            *taken += n->digits ? count : length(v);
            n->digits = n->digits * power_of_ten[count] + v;
            p += count;
        } else {
            for (unsigned i = 0; i < count; i++, p++) {
                if (*taken < 19) {
                    n->digits = n->digits * 10 + (uint64_t)(*p - '0');
                    *taken += n->digits != 0;
                } else {
                    if (*p != '0') n->exact = false;
                    (*dropped)++;
                }
            }
        }
        if (count < 8) return p;
    }
}

const uint8_t *ck_number_scan(const uint8_t *p, ck_number *out, const uint8_t **at) {
    ck_number n = {.exact = true, .plain = true};
    unsigned taken = 0;
    int64_t dropped = 0;
    if (*p == '-') n.negative = true, p++;
    const uint8_t *start = p;
    p = digits(p, &n, &taken, &dropped);
    *at = p;
    if (p == start) return NULL;
    *at = start + 1;
    if (*start == '0' && p - start > 1) return NULL; /* 007 */
    n.exponent = dropped;
    if (*p == '.') {
        n.plain = false;
        const uint8_t *fraction = ++p;
        int64_t more = 0;
        p = digits(p, &n, &taken, &more);
        *at = p;
        if (p == fraction) return NULL;
        n.exponent -= (p - fraction) - more;
    }
    if ((*p | 0x20) == 'e') {
        n.plain = false;
        p++;
        bool minus = *p == '-';
        if (*p == '-' || *p == '+') p++;
        const uint8_t *power = p;
        int64_t e = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            if (e < 1000000000) e = e * 10 + (*p - '0');
        *at = p;
        if (p == power) return NULL;
        n.exponent += minus ? -e : e;
    }
    *out = n;
    return p;
}

bool ck_number_i64(const ck_number *n, int64_t *out, bool *range) {
    uint64_t m = n->digits;
    int64_t e = n->exponent;
    *range = false;
    if (!n->exact) { /* 19 digits and a rest: not whole, or over 10^19 */
        *range = e > 0;
        return false;
    }
    if (m == 0) {
        *out = 0;
        return true;
    }
    for (; e < 0 && m % 10 == 0; e++) m /= 10;
    if (e < 0) return false;
    *range = true;
    for (; e > 0; e--)
        if (__builtin_mul_overflow(m, (uint64_t)10, &m)) return false;
    if (m > (uint64_t)INT64_MAX + n->negative) return false;
    *out = n->negative ? (int64_t)(0 - m) : (int64_t)m;
    *range = false;
    return true;
}

/* Over 53 bits of digits: one product or quotient of 64 bits, where the machine has them. It is at most half a unit
 * off, so that rounding it to 53 bits is right unless what is cut off lies next to the middle. */
bool ck_number_f64_wide(const ck_number *n, double *out) {
#if LDBL_MANT_DIG == 64
    static const long double power[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                        1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                        1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (!n->exact || n->exponent < -27 || n->exponent > 27) return false;
    long double m = (long double)n->digits;
    m = n->exponent < 0 ? m / power[-n->exponent] : m * power[n->exponent];
    uint64_t mantissa;
    memcpy(&mantissa, &m, sizeof mantissa);
    uint32_t cut = (uint32_t)mantissa & 0x7FF;
    if (cut >= 0x3FF && cut <= 0x401) return false;
    *out = n->negative ? -(double)m : (double)m;
    return true;
#else
    (void)n, (void)out;
    return false;
#endif
}

bool ck_number_f64_exact(const uint8_t *p, const uint8_t *end, double *out) {
    yyjson_val v;
    const char *stop = yyjson_read_number((const char *)p, &v, YYJSON_READ_NOFLAG, NULL, NULL);
    if (stop != (const char *)end) return false;
    *out = yyjson_get_num(&v);
    if (*out == 0 && *p == '-') *out = -0.0; /* an integer zero has lost its sign */
    return true;
}
