/* See text.h: booleans, integers, doubles and decimals. Doubles take a short way when it is exact (few digits, small
 * exponents: prices, coordinates) and the JSON library's correctly rounding reader and shortest printer otherwise. */
#include "data/text.h"

#include <yyjson.h>

#include "data/digits_int.h"

static bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* ---- integers and booleans ---- */

bool ck_parse_i64(ck_view v, int64_t *out) {
    size_t i = v.n && (v.p[0] == '-' || v.p[0] == '+');
    bool negative = i && v.p[0] == '-';
    if (i == v.n) return false;
    while (i < v.n && v.p[i] == '0') i++;
    if (v.n - i > 19) return false;
    uint64_t u = 0; /* 19 digits fit */
    for (; i < v.n; i++) {
        if (!is_digit(v.p[i])) return false;
        u = u * 10 + (uint64_t)(v.p[i] - '0');
    }
    if (u > (uint64_t)INT64_MAX + negative) return false;
    *out = negative ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

bool ck_parse_bool(ck_view v, bool *out) {
    static const struct {
        ck_view text;
        bool value;
    } words[] = {{{"true", 4}, true}, {{"false", 5}, false}, {{"t", 1}, true}, {{"f", 1}, false},
                 {{"yes", 3}, true},  {{"no", 2}, false},    {{"1", 1}, true}, {{"0", 1}, false}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(words); i++) {
        if (!ck_view_eq_nocase(v, words[i].text)) continue;
        *out = words[i].value;
        return true;
    }
    return false;
}

/* Under 10^8, without leading zeros; writes eight bytes whatever it returns. */
static size_t put_under_8(char *p, uint32_t v) {
    static const uint32_t tens[] = {0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    unsigned guess = (unsigned)(32 - __builtin_clz(v | 1)) * 1233 >> 12; /* log10, or one more */
    size_t n = guess + 1 - (v < tens[guess]);
    char all[8];
    if (n == 0) n = 1;
    ck_put_8(all, v);
    uint64_t word;
    memcpy(&word, all, 8);
    word >>= 8 * (8 - n);
    memcpy(p, &word, 8);
    return n;
}

/* At most 20 digits; p has room for 24. */
static size_t print_u64(char *p, uint64_t v) {
    if (v < 100000000) return put_under_8(p, (uint32_t)v);
    uint64_t high = v / 100000000;
    size_t n;
    if (high < 100000000) {
        n = put_under_8(p, (uint32_t)high);
    } else {
        n = put_under_8(p, (uint32_t)(high / 100000000));
        ck_put_8(p + n, (uint32_t)(high % 100000000));
        n += 8;
    }
    ck_put_8(p + n, (uint32_t)(v % 100000000));
    return n + 8;
}

size_t ck_print_i64(char *p, int64_t v) {
    if (v >= 0) return print_u64(p, (uint64_t)v);
    *p = '-';
    return 1 + print_u64(p + 1, 0 - (uint64_t)v);
}

/* ---- the shape of a decimal number ---- */

/* Sign, digits with a point anywhere, exponent. The digits are one string in two pieces. */
typedef struct number {
    bool negative;
    const char *whole, *fraction;
    size_t whole_n, fraction_n; /* without leading zeros of `whole` */
    uint64_t digits;            /* all of them as an integer, if they are at most 19 */
    int64_t exponent;           /* saturated far beyond any use */
} number;

static bool few_digits(const number *s) { return s->whole_n + s->fraction_n <= 19; }

enum { EXPONENT_MAX = 1000000 };

static bool scan_exponent(ck_view v, size_t i, int64_t *out) {
    bool negative = i < v.n && v.p[i] == '-';
    i += i < v.n && (v.p[i] == '-' || v.p[i] == '+');
    if (i == v.n) return false;
    int64_t e = 0;
    for (; i < v.n; i++) {
        if (!is_digit(v.p[i])) return false;
        if (e < EXPONENT_MAX) e = e * 10 + (v.p[i] - '0');
    }
    *out = negative ? -e : e;
    return true;
}

static bool scan_number(ck_view v, number *out) {
    size_t i = v.n && (v.p[0] == '-' || v.p[0] == '+');
    *out = (number){.negative = i && v.p[0] == '-'};
    size_t start = i;
    uint64_t digits = 0; /* wraps where there are more than 19 */
    while (i < v.n && is_digit(v.p[i])) digits = digits * 10 + (uint64_t)(v.p[i++] - '0');
    bool any = i > start;
    while (start < i && v.p[start] == '0') start++;
    out->whole = v.p + start;
    out->whole_n = i - start;
    if (i < v.n && v.p[i] == '.') {
        start = ++i;
        while (i < v.n && is_digit(v.p[i])) digits = digits * 10 + (uint64_t)(v.p[i++] - '0');
        out->fraction = v.p + start;
        out->fraction_n = i - start;
        any = any || i > start;
    }
    out->digits = digits;
    if (!any) return false;
    if (i == v.n) return true;
    return (v.p[i] == 'e' || v.p[i] == 'E') && scan_exponent(v, i + 1, &out->exponent);
}

static char digit_at(const number *s, size_t i) { return i < s->whole_n ? s->whole[i] : s->fraction[i - s->whole_n]; }

/* ---- doubles ---- */

/* Powers of ten that are exact in a double. */
static const double exact_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* An integer under 2^53 times or over an exact power of ten is rounded once, hence correctly. */
static bool short_way(const number *s, double *out) {
    if (!few_digits(s)) return false;
    int64_t exponent = s->digits ? s->exponent - (int64_t)s->fraction_n : 0;
    if (s->digits > 1ULL << 53 || exponent < -22 || exponent > 22) return false;
    double d = (double)s->digits;
    *out = exponent < 0 ? d / exact_ten[-exponent] : d * exact_ten[exponent];
    return true;
}

/* A value halfway between two doubles has at most 768 digits: what comes behind these can only break a tie, and a digit
 * 1 does that as well. The JSON reader takes more digits for a broken tie even when they are zeros. */
enum { DIGITS_MAX = 768 };

/* As <digits>e<exponent> for the JSON reader, which wants a NUL and its own grammar. */
static bool long_way(const number *s, double *out) {
    char text[DIGITS_MAX + 32];
    size_t total = s->whole_n + s->fraction_n, n = total, i = 0, used = 0;
    while (i < n && digit_at(s, i) == '0') i++;
    while (n > i && digit_at(s, n - 1) == '0') n--;
    if (i == n) {
        *out = 0;
        return true;
    }
    for (; i < n && used < DIGITS_MAX; i++) text[used++] = digit_at(s, i);
    if (i < n) text[used++] = '1', i++;
    int64_t exponent = s->exponent - (int64_t)s->fraction_n + (int64_t)(total - i);
    text[used++] = 'e';
    used += ck_print_i64(text + used, exponent);
    text[used] = 0;
    yyjson_val val;
    const char *end = yyjson_read_number(text, &val, 0, NULL, NULL);
    if (!end || *end || !yyjson_is_real(&val)) return false; /* too large */
    *out = yyjson_get_real(&val);
    return true;
}

static bool parse_name(ck_view v, double *out) {
    if (ck_view_eq_nocase(v, CK_VIEW("nan")))
        *out = __builtin_nan("");
    else if (ck_view_eq_nocase(v, CK_VIEW("infinity")))
        *out = __builtin_inf();
    else if (ck_view_eq_nocase(v, CK_VIEW("-infinity")))
        *out = -__builtin_inf();
    else
        return false;
    return true;
}

bool ck_parse_f64(ck_view v, double *out) {
    number s;
    if (!scan_number(v, &s)) return parse_name(v, out);
    double d;
    if (!short_way(&s, &d) && !long_way(&s, &d)) return false;
    *out = s.negative ? -d : d;
    return true;
}

/* A printer's memory on the stack: one block. */
typedef struct stack_block {
    char bytes[256];
} stack_block;
static void *block_malloc(void *ctx, size_t size) { return size <= sizeof(stack_block) ? ctx : NULL; }
static void *block_realloc(void *ctx, void *p, size_t old_size, size_t size) {
    (void)p, (void)old_size;
    return block_malloc(ctx, size);
}
static void block_free(void *ctx, void *p) { (void)ctx, (void)p; }

static size_t print_shortest(char *p, double v, bool as_float) {
    stack_block block;
    yyjson_alc alc = {block_malloc, block_realloc, block_free, &block};
    yyjson_val val = {0};
    yyjson_set_real(&val, v);
    yyjson_set_fp_to_float(&val, as_float);
    size_t n = 0;
    const char *text = yyjson_val_write_opts(&val, 0, &alc, &n, NULL);
    CK_ASSERT(text && n <= 32);
    memcpy(p, text, n);
    return n;
}

static size_t print_literal(char *p, const char *text) {
    size_t n = strlen(text);
    memcpy(p, text, n);
    return n;
}
static size_t print_special(char *p, double v) {
    return print_literal(p, v != v ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

/* Numbers of at most 15 digits, up to four of them behind the point: of such decimals no two are the same double, so
 * the first that gives v back is its shortest. */
static size_t print_short(char *p, double v) {
    double a = v < 0 ? -v : v;
    if (a < 1e-3) return 0;
    static const double scales[] = {1, 10, 100, 1000, 10000};
    for (unsigned k = 0; k < CK_ARRAY_COUNT(scales) && a * scales[k] < 1e15; k++) {
        uint64_t scaled = (uint64_t)(a * scales[k] + 0.5);
        if ((double)scaled / scales[k] != a) continue;
        char *at = p;
        if (v < 0) *at++ = '-';
        uint64_t unit = (uint64_t)scales[k], fraction = scaled % unit;
        at += print_u64(at, scaled / unit);
        *at++ = '.';
        for (unsigned i = k; i > 1; i--) {
            unit /= 10;
            *at++ = (char)('0' + fraction / unit % 10);
        }
        *at++ = (char)('0' + fraction % 10);
        return (size_t)(at - p);
    }
    return 0;
}

size_t ck_print_f64(char *p, double v) {
    if (v - v != 0) return print_special(p, v);
    if (v == 0) return print_literal(p, __builtin_signbit(v) ? "-0.0" : "0.0");
    size_t n = print_short(p, v);
    return n ? n : print_shortest(p, v, false);
}

size_t ck_print_f32(char *p, float v) {
    if (v - v != 0) return print_special(p, (double)v);
    return print_shortest(p, (double)v, true);
}

/* ---- decimals ---- */

enum { DECIMAL_DIGITS = 38 };

/* 10^n for n under 20, and for n under 39. */
static uint64_t word_ten(size_t n) {
    uint64_t v = n & 16 ? 10000000000000000 : 1;
    v *= n & 8 ? 100000000 : 1;
    v *= n & 4 ? 10000 : 1;
    v *= n & 2 ? 100 : 1;
    return v * (n & 1 ? 10 : 1);
}
static ck_u128 ten_to(size_t n) { return n < 20 ? word_ten(n) : (ck_u128)word_ten(19) * word_ten(n - 19); }

/* The first `n` digits as an integer; false when it has more than 38 without leading zeros. */
static bool leading_digits(const number *s, size_t n, ck_u128 *out) {
    size_t i = 0;
    while (i < n && digit_at(s, i) == '0') i++;
    if (n - i > DECIMAL_DIGITS) return false;
    ck_u128 v = 0;
    while (i < n) { /* in pieces of a word, 128-bit arithmetic once a piece */
        size_t take = n - i < 18 ? n - i : 18;
        uint64_t piece = 0;
        for (size_t j = 0; j < take; j++) piece = piece * 10 + (uint64_t)(digit_at(s, i++) - '0');
        v = v ? v * word_ten(take) + piece : piece;
    }
    *out = v;
    return true;
}

/* Digits that fit a word, no exponent: what CSV and JSON hold. */
static ck_u128 rescale_word(uint64_t digits, size_t from, size_t to) {
    if (from <= to) return (ck_u128)digits * word_ten(to - from);
    uint64_t unit = word_ten(from - to), rest = digits % unit;
    return digits / unit + (rest >= unit - rest);
}

/* All else: which digits stay, from where they stand to the last place kept. */
static bool rescale(const number *s, int scale, ck_u128 *out) {
    size_t n = s->whole_n + s->fraction_n;
    /* How many of the digits stand before the last place kept: negative, all are far below it; over n, zeros follow. */
    int64_t keep = (int64_t)s->whole_n + s->exponent + scale;
    size_t have = keep <= 0 ? 0 : (size_t)keep < n ? (size_t)keep : n;
    ck_u128 u;
    if (!leading_digits(s, have, &u)) return false;
    if (u && (size_t)keep > n) {
        size_t zeros = (size_t)keep - n;
        if (zeros >= DECIMAL_DIGITS || u >= ten_to(DECIMAL_DIGITS - zeros)) return false;
        u *= ten_to(zeros);
    }
    *out = u + (keep >= 0 && have < n && digit_at(s, have) >= '5');
    return true;
}

bool ck_parse_decimal(ck_view v, int precision, int scale, ck_i128 *out, bool *overflow) {
    number s;
    *overflow = false;
    if (!scan_number(v, &s)) return false;
    ck_u128 u = 0;
    bool simple = few_digits(&s) && s.exponent == 0 && scale < 19 && s.fraction_n < 19;
    if (simple) u = rescale_word(s.digits, s.fraction_n, (size_t)scale);
    if ((!simple && !rescale(&s, scale, &u)) || u >= ten_to((size_t)precision)) {
        *overflow = true;
        return false;
    }
    *out = s.negative ? -(ck_i128)u : (ck_i128)u;
    return true;
}

/* Nineteen digits with leading zeros. */
static void put_19(char *p, uint64_t v) {
    uint64_t high = v / 100000000; /* eleven */
    ck_put_2(p, (uint32_t)(high / 1000000000));
    p[2] = (char)('0' + high / 100000000 % 10);
    ck_put_8(p + 3, (uint32_t)(high % 100000000));
    ck_put_8(p + 11, (uint32_t)(v % 100000000));
}

/* All digits of u without leading zeros: at most 39; p has room for 8 more. */
static size_t print_u128(char *p, ck_u128 u) {
    const uint64_t unit = 10000000000000000000ULL;
    if (u < unit) return print_u64(p, (uint64_t)u);
    size_t n = print_u128(p, u / unit);
    put_19(p + n, (uint64_t)(u % unit));
    return n + 19;
}

size_t ck_print_decimal(char *p, ck_i128 v, int scale) {
    char digits[96]; /* 38 zeros in front, should the number be shorter than its scale; 39 digits; 8 bytes over */
    size_t places = (size_t)scale, n = print_u128(digits + DECIMAL_DIGITS, v < 0 ? 0 - (ck_u128)v : (ck_u128)v);
    const char *at = digits + DECIMAL_DIGITS;
    if (n <= places) { /* one digit at least before the point */
        size_t zeros = places + 1 - n;
        memset(digits + DECIMAL_DIGITS - zeros, '0', zeros);
        at -= zeros, n += zeros;
    }
    size_t whole = n - places, to = 0;
    if (v < 0) p[to++] = '-';
    memcpy(p + to, at, whole);
    to += whole;
    if (places) {
        p[to++] = '.';
        memcpy(p + to, at + whole, places);
        to += places;
    }
    return to;
}
