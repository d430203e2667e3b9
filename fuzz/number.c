/* Numbers in text: the first bytes choose the column's type and how much the decoders know, the rest becomes the text
 * of a number. What must hold: the scanner, the decoders' ways in registers of both widths and yyjson accept the same
 * texts; integers and decimals are those of schoolbook arithmetic on the digits, doubles those of the C library. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "format/harness_int.h"
#include "format/number_int.h"

enum { CONTROL = 3, DIGITS_MAX = 300, PAD_BYTES = 64 };

/* ---- a number, read plainly ---- */

typedef struct plain {
    char digits[DIGITS_MAX]; /* without zeros in front; none for 0 */
    long count, exponent;    /* value = digits * 10^exponent */
    bool negative;
} plain;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void take_digit(plain *out, char c) {
    if (c != '0' || out->count > 0) out->digits[out->count++] = c;
}

/* Bytes of the number at p by JSON's grammar, 0: there is none. p ends in a NUL. */
static size_t read_plainly(const char *p, plain *out) {
    const char *at = p;
    *out = (plain){.negative = *at == '-'};
    at += *at == '-';
    if (!is_digit(*at) || (at[0] == '0' && is_digit(at[1]))) return 0;
    while (is_digit(*at)) take_digit(out, *at++);
    if (*at == '.') {
        at++;
        if (!is_digit(*at)) return 0;
        for (; is_digit(*at); at++, out->exponent--) take_digit(out, *at);
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        bool minus = *at == '-';
        at += *at == '-' || *at == '+';
        if (!is_digit(*at)) return 0;
        long e = 0;
        for (; is_digit(*at); at++) e = e < 1000000 ? e * 10 + (*at - '0') : e;
        out->exponent += minus ? -e : e;
    }
    return (size_t)(at - p);
}

/* Times 10^scale, rounded half up; false: more than 38 digits. *exact: nothing was rounded. */
static bool scaled(const plain *n, int scale, ck_u128 *out, bool *exact) {
    long keep = n->count + n->exponent + scale;
    *out = 0;
    *exact = n->count == 0;
    if (n->count == 0) return true;
    if (keep > 38) return false;
    for (long i = 0; i < keep; i++) *out = *out * 10 + (uint32_t)(i < n->count ? n->digits[i] - '0' : 0);
    *exact = true;
    for (long i = keep < 0 ? 0 : keep; i < n->count; i++) *exact &= n->digits[i] == '0';
    if (keep >= 0 && keep < n->count && n->digits[keep] >= '5') ++*out;
    return true;
}

/* ---- what a column takes ---- */

static ck_u128 ten_to(int n) {
    ck_u128 p = 1;
    for (int i = 0; i < n; i++) p *= 10;
    return p;
}

static bool fits_integer(const ck_type *t, const plain *n, int64_t *out) {
    int64_t lo, hi;
    ck_u128 u;
    bool exact;
    ck_kind_int_range(t->kind, &lo, &hi);
    if (!scaled(n, 0, &u, &exact) || !exact || u > (ck_u128)INT64_MAX + n->negative) return false;
    *out = n->negative ? (int64_t)(0 - (uint64_t)u) : (int64_t)u;
    return *out >= lo && *out <= hi;
}

static bool fits_float(const ck_type *t, const char *text, double *out) {
    *out = strtod(text, NULL);
    if (t->kind == CK_TYPE_REAL) *out = (double)(float)*out;
    return isfinite(*out) != 0;
}

static bool fits_decimal(const ck_type *t, const plain *n, ck_i128 *out) {
    ck_u128 u;
    bool exact;
    if (!scaled(n, t->scale, &u, &exact) || u >= ten_to(t->precision)) return false;
    *out = n->negative ? -(ck_i128)u : (ck_i128)u;
    return true;
}

static void check_value(const ck_type *t, const ck_column *c, uint32_t row, const plain *n, const char *text) {
    int64_t i = 0;
    double d = 0;
    ck_i128 x = 0;
    if (ck_kind_is_integer(t->kind))
        CK_ASSERT(fits_integer(t, n, &i) && c->i64[row] == i);
    else if (ck_kind_is_float(t->kind))
        CK_ASSERT(fits_float(t, text, &d) && c->f64[row] == d && signbit(c->f64[row]) == signbit(d));
    else
        CK_ASSERT(fits_decimal(t, n, &x) && c->i128[row] == x);
}

static bool fits(const ck_type *t, const plain *n, const char *text) {
    int64_t i;
    double d;
    ck_i128 x;
    return ck_kind_is_integer(t->kind) ? fits_integer(t, n, &i)
           : ck_kind_is_float(t->kind) ? fits_float(t, text, &d)
                                       : fits_decimal(t, n, &x);
}

/* ---- the ways ---- */

static void check_scanner(const char *text, size_t plain_bytes, const plain *n) {
    const uint8_t *p = (const uint8_t *)text, *at;
    ck_number found;
    const uint8_t *end = ck_number_scan(p, &found, &at);
    CK_ASSERT(end ? (size_t)(end - p) == plain_bytes : plain_bytes == 0);
    if (!end) return;
    int64_t whole = 0, expected = 0;
    double d, nearest = strtod(text, NULL);
    bool range, fits = fits_integer(ck_type_simple(CK_TYPE_BIGINT), n, &expected);
    CK_ASSERT(ck_number_i64(&found, &whole, &range) == fits && (!fits || whole == expected));
    if (ck_number_f64(&found, &d)) CK_ASSERT(d == nearest && signbit(d) == signbit(nearest));
    if (ck_number_f64_exact(p, end, &d)) CK_ASSERT(d == nearest && signbit(d) == signbit(nearest));
}

static ck_status on_bad(void *arg, const ck_bad_record *bad, ck_error *err) {
    (void)err;
    CK_ASSERT(bad->reason && bad->reason[0]);
    ++*(uint32_t *)arg;
    return CK_OK;
}

/* The number as the value of three records: the first by the grammar, the others the way its runs taught. */
static void check_decoder(const ck_type *t, const char *text, bool good, const plain *n, bool simd) {
    enum { RECORDS = 3 };
    char json[RECORDS * (DIGITS_MAX + 16)];
    size_t bytes = 0, consumed;
    for (int i = 0; i < RECORDS; i++)
        bytes += (size_t)snprintf(json + bytes, sizeof json - bytes, i ? "{\"c\":%s}\n" : "{\"c\": %s }\n", text);
    ck_field field = {"c", t, true};
    ck_schema schema = {&field, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .batch_rows = RECORDS};
    uint32_t bad = 0;
    ck_decoder *d;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), simd);
    CK_ASSERT(ck_decoder_new(&h.proc, &spec, h.mem, on_bad, &bad, &d, NULL) == CK_OK);
    CK_ASSERT(ck_decoder_begin(d, "file", true, NULL) == CK_OK);
    ck_buffer *buf = ck_buffer_new(h.mem, bytes);
    memcpy(buf->p, json, bytes);
    ck_status s = ck_decoder_feed(d, buf, 0, bytes, 0, true, &consumed, NULL);
    CK_ASSERT((s == CK_OK || s == CK_FULL) && consumed == bytes);
    ck_batch *b = ck_decoder_take(d);
    CK_ASSERT(b && b->row_count == (good ? RECORDS : 0) && bad == (good ? 0 : RECORDS));
    for (uint32_t row = 0; row < b->row_count; row++) check_value(t, b->columns[0], row, n, text);
    ck_batch_unref(&b);
    ck_buffer_unref(&buf);
    ck_decoder_free(d);
    CK_ASSERT(ck_budget_total(&h.proc.budget) == 0);
    ck_harness_destroy(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char alphabet[] = "0123456789.eE+-0";
    static const ck_kind kinds[] = {CK_TYPE_BIGINT, CK_TYPE_INTEGER, CK_TYPE_SMALLINT, CK_TYPE_TINYINT,
                                    CK_TYPE_DOUBLE, CK_TYPE_REAL,    CK_TYPE_DECIMAL,  CK_TYPE_DECIMAL};
    if (size < CONTROL || size - CONTROL >= DIGITS_MAX) return 0;
    char text[DIGITS_MAX + PAD_BYTES] = {0};
    for (size_t i = CONTROL; i < size; i++) {
        bool is_one = data[i] && strchr(alphabet, data[i]);
        text[i - CONTROL] = is_one ? (char)data[i] : alphabet[data[i] & 15];
    }
    ck_type decimal = {CK_TYPE_DECIMAL, 1 + data[1] % 38, 0, NULL, 0};
    decimal.scale = data[2] % (decimal.precision + 1);
    ck_kind kind = kinds[data[0] & 7];
    const ck_type *t = kind == CK_TYPE_DECIMAL ? &decimal : ck_type_simple(kind);
    plain n;
    size_t bytes = read_plainly(text, &n);
    check_scanner(text, bytes, &n);

    bool whole = bytes > 0 && bytes == size - CONTROL;
    yyjson_doc *doc = yyjson_read(text, size - CONTROL, YYJSON_READ_NUMBER_AS_RAW);
    CK_ASSERT((doc != NULL) == whole);
    yyjson_doc_free(doc);
    bool good = whole && fits(t, &n, text);
    check_decoder(t, text, good, &n, true);
    check_decoder(t, text, good, &n, false);
    return 0;
}
