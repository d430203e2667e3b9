/* See decimal.h. Magnitudes are 256-bit integers of four 64-bit limbs, least significant first. */
#include "expr/decimal.h"

#include "data/text.h"

typedef struct u256 {
    uint64_t w[4];
} u256;

#define E19  10000000000000000000ULL
#define T(n) ((ck_i128)E19 * (n))
static const ck_i128 pow10_table[CK_DECIMAL_DIGITS + 1] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
    E19,
    T(10),
    T(100),
    T(1000),
    T(10000),
    T(100000),
    T(1000000),
    T(10000000),
    T(100000000),
    T(1000000000),
    T(10000000000),
    T(100000000000),
    T(1000000000000),
    T(10000000000000),
    T(100000000000000),
    T(1000000000000000),
    T(10000000000000000),
    T(100000000000000000),
    T(1000000000000000000),
    T(E19),
};

ck_i128 ck_pow10(int n) {
    CK_DASSERT(n >= 0 && n <= CK_DECIMAL_DIGITS);
    return pow10_table[n];
}

/* ---- 256-bit magnitudes ---- */

static u256 wide(ck_u128 v) { return (u256){{(uint64_t)v, (uint64_t)(v >> 64), 0, 0}}; }
static ck_u128 low128(const u256 *x) { return (ck_u128)x->w[1] << 64 | x->w[0]; }
static bool above128(const u256 *x) { return (x->w[2] | x->w[3]) != 0; }

static u256 multiply(ck_u128 a, ck_u128 b) {
    uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    ck_u128 p00 = (ck_u128)a0 * b0, p01 = (ck_u128)a0 * b1, p10 = (ck_u128)a1 * b0, p11 = (ck_u128)a1 * b1;
    ck_u128 mid = (p00 >> 64) + (uint64_t)p01 + (uint64_t)p10;
    ck_u128 high = p11 + (p01 >> 64) + (p10 >> 64) + (mid >> 64);
    return (u256){{(uint64_t)p00, (uint64_t)mid, (uint64_t)high, (uint64_t)(high >> 64)}};
}

/* x *= m; false: does not fit 256 bits. */
static bool multiply_by(u256 *x, uint64_t m) {
    ck_u128 carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += (ck_u128)x->w[i] * m;
        x->w[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return carry == 0;
}

static bool scale_up(u256 *x, int digits) {
    for (; digits > 0; digits -= 19)
        if (!multiply_by(x, (uint64_t)pow10_table[digits < 19 ? digits : 19])) return false;
    return true;
}

static int compare(const u256 *a, const u256 *b) {
    for (int i = 3; i >= 0; i--)
        if (a->w[i] != b->w[i]) return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

static u256 add(const u256 *a, const u256 *b) {
    u256 r;
    ck_u128 carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += (ck_u128)a->w[i] + b->w[i];
        r.w[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return r;
}

static u256 subtract(const u256 *a, const u256 *b) {
    u256 r;
    uint64_t borrow = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t d = a->w[i] - b->w[i];
        uint64_t less = a->w[i] < b->w[i];
        r.w[i] = d - borrow;
        borrow = less | (d < borrow);
    }
    return r;
}

/* Divides by one limb in place, returns the remainder. */
static uint64_t divide_limb(u256 *x, uint64_t d) {
    ck_u128 rest = 0;
    for (int i = 3; i >= 0; i--) {
        ck_u128 at = rest << 64 | x->w[i];
        x->w[i] = (uint64_t)(at / d);
        rest = at % d;
    }
    return (uint64_t)rest;
}

/* Bit by bit from the top: the remainder stays below d, which may have all 128 bits. */
static ck_u128 divide_bits(u256 *x, ck_u128 d) {
    ck_u128 rest = 0;
    u256 q = {{0}};
    for (int i = 255; i >= 0; i--) {
        bool top = rest >> 127;
        rest = rest << 1 | ((x->w[i / 64] >> (i % 64)) & 1);
        if (!top && rest < d) continue;
        rest -= d;
        q.w[i / 64] |= 1ULL << (i % 64);
    }
    *x = q;
    return rest;
}

/* Divides in place by d > 0, returns the remainder. */
static ck_u128 divide(u256 *x, ck_u128 d) {
    if (!(uint64_t)(d >> 64)) return divide_limb(x, (uint64_t)d);
    if (!above128(x)) {
        ck_u128 v = low128(x);
        *x = wide(v / d);
        return v % d;
    }
    return divide_bits(x, d);
}

/* Divides by 10^digits, half up. Cutting digits first changes nothing: the half is a multiple of what is cut. */
static void scale_down(u256 *x, int digits) {
    if (digits <= 0) return;
    for (; digits > 19; digits -= 19) (void)divide_limb(x, (uint64_t)pow10_table[19]);
    uint64_t d = (uint64_t)pow10_table[digits];
    uint64_t rest = divide_limb(x, d);
    static const u256 one = {{1, 0, 0, 0}};
    if (rest >= d / 2) *x = add(x, &one);
}

/* The signed result if it has at most `precision` digits. */
static bool settle(const u256 *x, bool negative, int precision, ck_i128 *out) {
    if (above128(x) || low128(x) >= (ck_u128)pow10_table[precision]) return false;
    *out = negative ? -(ck_i128)low128(x) : (ck_i128)low128(x);
    return true;
}

/* ---- operations ---- */

static int max_int(int a, int b) { return a > b ? a : b; }

bool ck_decimal_add(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out) {
    int scale = max_int(op->scale_a, op->scale_b);
    u256 x = wide(ck_i128_abs(a)), y = wide(ck_i128_abs(b));
    if (!scale_up(&x, scale - op->scale_a) || !scale_up(&y, scale - op->scale_b)) return false;
    bool na = a < 0, nb = b < 0, negative = na;
    u256 sum;
    if (na == nb) {
        sum = add(&x, &y);
    } else if (compare(&x, &y) >= 0) {
        sum = subtract(&x, &y);
    } else {
        sum = subtract(&y, &x);
        negative = nb;
    }
    scale_down(&sum, scale - op->scale);
    return settle(&sum, negative, op->precision, out);
}

bool ck_decimal_sub(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out) {
    return ck_decimal_add(op, a, -b, out);
}

bool ck_decimal_mul(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out) {
    u256 x = multiply(ck_i128_abs(a), ck_i128_abs(b));
    scale_down(&x, op->scale_a + op->scale_b - op->scale);
    return settle(&x, (a < 0) != (b < 0), op->precision, out);
}

/* The quotient times 10^scale of the result, plus one where the rest is half of the divisor or more. */
bool ck_decimal_div(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out) {
    int up = op->scale - op->scale_a + op->scale_b;
    u256 x = wide(ck_i128_abs(a));
    ck_u128 d = ck_i128_abs(b);
    /* What overflows 256 bits here gives a quotient above 2^127. */
    if (up > 0 && !scale_up(&x, up)) return false;
    if (up < 0) {
        u256 y = wide(d);
        if (!scale_up(&y, -up)) return false;
        if (above128(&y)) { /* a divisor above 2^128 under a dividend below 2^127: nothing, and less than a half */
            *out = 0;
            return true;
        }
        d = low128(&y);
    }
    ck_u128 rest = divide(&x, d);
    static const u256 one = {{1, 0, 0, 0}};
    if (rest >= d - rest) x = add(&x, &one);
    return settle(&x, (a < 0) != (b < 0), op->precision, out);
}

bool ck_decimal_mod(const ck_decimal_op *op, ck_i128 a, ck_i128 b, ck_i128 *out) {
    int scale = max_int(op->scale_a, op->scale_b);
    u256 x = wide(ck_i128_abs(a)), y = wide(ck_i128_abs(b));
    if (!scale_up(&x, scale - op->scale_a) || !scale_up(&y, scale - op->scale_b)) return false;
    u256 rest = x;
    if (compare(&x, &y) >= 0) {
        /* Only one side was scaled: a divisor above 128 bits is greater than an unscaled dividend. */
        CK_ASSERT(!above128(&y));
        rest = wide(divide(&x, low128(&y)));
    }
    scale_down(&rest, scale - op->scale);
    return settle(&rest, a < 0, op->precision, out);
}

bool ck_decimal_rescale(ck_i128 v, int from_scale, int precision, int scale, ck_i128 *out) {
    u256 x = wide(ck_i128_abs(v));
    if (scale >= from_scale) {
        if (!scale_up(&x, scale - from_scale)) return false;
    } else {
        scale_down(&x, from_scale - scale);
    }
    return settle(&x, v < 0, precision, out);
}

int ck_decimal_compare(ck_i128 a, int scale_a, ck_i128 b, int scale_b) {
    if (scale_a == scale_b) return (a > b) - (a < b);
    if ((a < 0) != (b < 0)) return a < 0 ? -1 : 1;
    u256 x = wide(ck_i128_abs(a)), y = wide(ck_i128_abs(b));
    int scale = max_int(scale_a, scale_b);
    bool fits = scale_up(&x, scale - scale_a) && scale_up(&y, scale - scale_b);
    CK_ASSERT(fits); /* 10^38 * 10^38 is below 2^256 */
    return a < 0 ? -compare(&x, &y) : compare(&x, &y);
}

/* ---- doubles ---- */

double ck_decimal_to_double(ck_i128 v, int scale) {
    /* Both exact in a double: one correctly rounded division. */
    if (ck_i128_abs(v) <= (ck_u128)1 << 53 && scale <= 22) return (double)(int64_t)v / (double)(ck_u128)ck_pow10(scale);
    char text[48];
    double d = 0;
    size_t n = ck_print_decimal(text, v, scale);
    bool parsed = ck_parse_f64((ck_view){text, n}, &d);
    CK_ASSERT(parsed);
    return d;
}

bool ck_decimal_from_double(double v, int precision, int scale, ck_i128 *out) {
    if (!(v > -1e38 && v < 1e38)) return false;
    if (v > -9007199254740992.0 && v < 9007199254740992.0 && (double)(int64_t)v == v)
        return ck_decimal_rescale((int64_t)v, 0, precision, scale, out);
    char text[32];
    bool overflow = false;
    size_t n = ck_print_f64(text, v);
    return ck_parse_decimal((ck_view){text, n}, precision, scale, out, &overflow);
}
