/* Functions of doubles and integers: roots, powers, logarithms, angles, bits. Outside of its domain a function is an
 * error, as in PostgreSQL. */
#include <math.h>

#include "expr/approx.h"
#include "expr/functions_int.h"
#include "expr/eval_int.h"

/* ---- one double ---- */

typedef double (*unary)(double);
typedef enum domain { ANY, NOT_NEGATIVE, POSITIVE, WITHIN_ONE, FINITE } domain;

static double square_root(double x) { return sqrt(x); }
static double to_degrees(double x) { return x * (180.0 / M_PI); }
static double to_radians(double x) { return x * (M_PI / 180.0); }
static double cotangent(double x) { return 1.0 / tan(x); }

static const struct {
    unary fn;
    domain domain;
} unaries[] = {
    {square_root, NOT_NEGATIVE},
    {cbrt, ANY},
    {exp, ANY},
    {log, POSITIVE},
    {log10, POSITIVE},
    {log2, POSITIVE},
    {sin, FINITE},
    {cos, FINITE},
    {tan, FINITE},
    {cotangent, FINITE},
    {asin, WITHIN_ONE},
    {acos, WITHIN_ONE},
    {atan, ANY},
    {sinh, ANY},
    {cosh, ANY},
    {tanh, ANY},
    {to_degrees, ANY},
    {to_radians, ANY},
};
enum { SQRT, CBRT, EXP, LN, LOG10, LOG2, SIN, COS, TAN, COT, ASIN, ACOS, ATAN, SINH, COSH, TANH, DEGREES, RADIANS };

static bool in_domain(domain d, double x) {
    switch (d) {
    case ANY: return true;
    case NOT_NEGATIVE: return !(x < 0);
    case POSITIVE: return !(x <= 0);
    case WITHIN_ONE: return !(x < -1 || x > 1);
    case FINITE: return !isinf(x);
    }
    return true;
}

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_status kernel_unary(CK_KERNEL_ARGS) {
    unary fn = unaries[call->impl->op].fn;
    domain d = unaries[call->impl->op].domain;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double x = args[0].col->f64[i];
        bool good = in_domain(d, x);
        out->col->f64[i] = good ? fn(x) : 0;
        if (!good && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_ARGUMENT, err);
    }
    return drop_on(s, out);
}

#define TOTAL(OP)                                                                                                      \
    { .kernel = kernel_unary, .op = OP }
#define PARTIAL(OP)                                                                                                    \
    { .kernel = kernel_unary, .flags = CK_FN_FALLIBLE, .op = OP }
static const ck_impl impl_unary[] = {
    [SQRT] = PARTIAL(SQRT),     [CBRT] = TOTAL(CBRT),       [EXP] = TOTAL(EXP),     [LN] = PARTIAL(LN),
    [LOG10] = PARTIAL(LOG10),   [LOG2] = PARTIAL(LOG2),     [SIN] = PARTIAL(SIN),   [COS] = PARTIAL(COS),
    [TAN] = PARTIAL(TAN),       [COT] = PARTIAL(COT),       [ASIN] = PARTIAL(ASIN), [ACOS] = PARTIAL(ACOS),
    [ATAN] = TOTAL(ATAN),       [SINH] = TOTAL(SINH),       [COSH] = TOTAL(COSH),   [TANH] = TOTAL(TANH),
    [DEGREES] = TOTAL(DEGREES), [RADIANS] = TOTAL(RADIANS),
};

/* ---- two doubles ---- */

typedef enum binary { POWER, LOG_BASE, ATAN2 } binary;

static bool power_fails(double x, double y) {
    return (x == 0 && y < 0) || (x < 0 && !isinf(x) && !isinf(y) && y != floor(y));
}

static ck_status kernel_binary(CK_KERNEL_ARGS) {
    binary op = (binary)call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double x = CK_ARG_F64(0, i), y = CK_ARG_F64(1, i), r;
        bool bad = false;
        if (op == POWER) {
            bad = power_fails(x, y);
            r = bad ? 0 : pow(x, y);
        } else if (op == LOG_BASE) {
            bad = x <= 0 || y <= 0 || x == 1;
            r = bad ? 0 : log(y) / log(x);
        } else {
            r = atan2(x, y);
        }
        out->col->f64[i] = r;
        if (bad && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_ARGUMENT, err);
    }
    return drop_on(s, out);
}
static const ck_impl impl_power = {.kernel = kernel_binary, .flags = CK_FN_FALLIBLE, .op = POWER},
                     impl_log_base = {.kernel = kernel_binary, .flags = CK_FN_FALLIBLE, .op = LOG_BASE},
                     impl_atan2 = {.kernel = kernel_binary, .op = ATAN2};

static ck_status kernel_constant(CK_KERNEL_ARGS) {
    (void)args;
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    out->col->f64[0] = call->impl->op ? M_E : M_PI;
    return CK_OK;
}
static const ck_impl impl_pi = {.kernel = kernel_constant, .op = 0}, impl_e = {.kernel = kernel_constant, .op = 1};

/* ---- bits ---- */

typedef enum bit_op { BIT_AND, BIT_OR, BIT_XOR, BIT_NOT, SHIFT_LEFT, SHIFT_RIGHT } bit_op;

static uint64_t magnitude(int64_t v) { return v < 0 ? 0 - (uint64_t)v : (uint64_t)v; }

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* Shifts by 64 or more (and by less than 0) give what shifting bit by bit would: nothing, or the sign. */
static int64_t shift(int64_t v, int64_t by, bool left) {
    if (by < 0) return 0;
    if (left) return by > 63 ? 0 : (int64_t)((uint64_t)v << by);
    return v >> (by > 63 ? 63 : by);
}

static int64_t bits_of(bit_op op, int64_t a, int64_t b) {
    switch (op) {
    case BIT_AND: return a & b;
    case BIT_OR: return a | b;
    case BIT_XOR: return a ^ b;
    case BIT_NOT: return ~a;
    case SHIFT_LEFT: return shift(a, b, true);
    case SHIFT_RIGHT: return shift(a, b, false);
    }
    return 0;
}

static ck_status kernel_bits(CK_KERNEL_ARGS) {
    bit_op op = (bit_op)call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows))
        out->col->i64[i] = bits_of(op, CK_ARG_I64(0, i), call->arg_count > 1 ? CK_ARG_I64(1, i) : 0);
    return CK_OK;
}
/* Only 2^63, of two least BIGINTs or of one and 0, does not fit. */
static ck_status kernel_gcd(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        uint64_t g = greatest_divisor(magnitude(CK_ARG_I64(0, i)), magnitude(CK_ARG_I64(1, i)));
        out->col->i64[i] = (int64_t)g;
        if (g > INT64_MAX) CK_TRY(ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err));
    }
    return CK_OK;
}
static const ck_impl impl_gcd = {.kernel = kernel_gcd, .flags = CK_FN_FALLIBLE};

#define BITS(OP)                                                                                                       \
    { .kernel = kernel_bits, .flags = CK_FN_BLIND, .op = OP }
static const ck_impl impl_bits[] = {BITS(BIT_AND), BITS(BIT_OR),     BITS(BIT_XOR),
                                    BITS(BIT_NOT), BITS(SHIFT_LEFT), BITS(SHIFT_RIGHT)};

/* ---- buckets of doubles, for APPROX_PERCENTILE ---- */

static ck_status kernel_bucket(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->i64[i] = ck_approx_bucket(CK_ARG_F64(0, i));
    return CK_OK;
}
static const ck_impl impl_bucket = {.kernel = kernel_bucket, .flags = CK_FN_BLIND | CK_FN_CHEAP};

/* ---- the table ---- */

#define UNARY(NAME, OP, ALIASES, SUMMARY, EXAMPLE, RESULT)                                                             \
    {                                                                                                                  \
        .name = NAME, .aliases = ALIASES, .overloads = &(const ck_overload){"d>d", &impl_unary[OP], false},            \
        .overload_count = 1, .group = "numbers", .syntax = NAME "(x)", .summary = SUMMARY, .example = EXAMPLE,         \
        .result = RESULT                                                                                               \
    }
#define OTHER(NAME, SIGNATURE, IMPL, ALIASES, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                        \
    {                                                                                                                  \
        .name = NAME, .aliases = ALIASES, .overloads = &(const ck_overload){SIGNATURE, IMPL, false},                   \
        .overload_count = 1, .group = "numbers", .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE,             \
        .result = RESULT                                                                                               \
    }

static const ck_overload o_log[] = {{"d>d", &impl_unary[LOG10], false}, {"dd>d", &impl_log_base, false}};

static const ck_function functions[] = {
    UNARY("sqrt", SQRT, NULL, "The square root; of a negative number an error.", "SQRT(2.25)", "1.5"),
    UNARY("cbrt", CBRT, NULL, "The cube root.", "ROUND(CBRT(27), 9)", "3.0"),
    UNARY("exp", EXP, NULL, "e to the power of x.", "EXP(0)", "1.0"),
    UNARY("ln", LN, NULL, "The natural logarithm.", "LN(1)", "0.0"),
    UNARY("log10", LOG10, NULL, "The logarithm to base 10.", "LOG10(1000)", "3.0"),
    UNARY("log2", LOG2, NULL, "The logarithm to base 2.", "LOG2(8)", "3.0"),
    {.name = "log",
     .overloads = o_log,
     .overload_count = 2,
     .group = "numbers",
     .syntax = "LOG([base,] x)",
     .summary = "The logarithm to base 10, or to the base given first.",
     .example = "LOG(2, 8)",
     .result = "3.0"},
    OTHER("power", "dd>d", &impl_power, "pow", "POWER(x, y)", "x to the power of y.", "POWER(2, 10)", "1024.0"),
    UNARY("sin", SIN, NULL, "The sine of an angle in radians.", "SIN(0)", "0.0"),
    UNARY("cos", COS, NULL, "The cosine.", "COS(0)", "1.0"),
    UNARY("tan", TAN, NULL, "The tangent.", "TAN(0)", "0.0"),
    UNARY("cot", COT, NULL, "The cotangent.", "ROUND(COT(PI() / 4), 9)", "1.0"),
    UNARY("asin", ASIN, NULL, "The angle whose sine is x.", "ASIN(0)", "0.0"),
    UNARY("acos", ACOS, NULL, "The angle whose cosine is x.", "ACOS(1)", "0.0"),
    UNARY("atan", ATAN, NULL, "The angle whose tangent is x.", "ATAN(0)", "0.0"),
    OTHER("atan2", "dd>d", &impl_atan2, NULL, "ATAN2(y, x)", "The angle of the point (x, y).", "ATAN2(0, 1)", "0.0"),
    UNARY("sinh", SINH, NULL, "The hyperbolic sine.", "SINH(0)", "0.0"),
    UNARY("cosh", COSH, NULL, "The hyperbolic cosine.", "COSH(0)", "1.0"),
    UNARY("tanh", TANH, NULL, "The hyperbolic tangent.", "TANH(0)", "0.0"),
    UNARY("degrees", DEGREES, NULL, "An angle in radians as degrees.", "DEGREES(PI())", "180.0"),
    UNARY("radians", RADIANS, NULL, "An angle in degrees as radians.", "ROUND(RADIANS(180), 4)", "3.1416"),
    OTHER("pi", ">d", &impl_pi, NULL, "PI()", "The number pi.", "ROUND(PI(), 4)", "3.1416"),
    OTHER("e", ">d", &impl_e, NULL, "E()", "The number e.", "ROUND(E(), 4)", "2.7183"),
    OTHER("bitand", "ll>l", &impl_bits[BIT_AND], NULL, "BITAND(a, b)", "The bits both have.", "BITAND(12, 10)", "8"),
    OTHER("bitor", "ll>l", &impl_bits[BIT_OR], NULL, "BITOR(a, b)", "The bits one of them has.", "BITOR(12, 10)", "14"),
    OTHER("bitxor", "ll>l", &impl_bits[BIT_XOR], NULL, "BITXOR(a, b)", "The bits in which they differ.",
          "BITXOR(12, 10)", "6"),
    OTHER("bitnot", "l>l", &impl_bits[BIT_NOT], NULL, "BITNOT(a)", "All bits turned.", "BITNOT(0)", "-1"),
    OTHER("shiftleft", "ll>l", &impl_bits[SHIFT_LEFT], NULL, "SHIFTLEFT(a, n)", "The bits n places up.",
          "SHIFTLEFT(1, 10)", "1024"),
    OTHER("shiftright", "ll>l", &impl_bits[SHIFT_RIGHT], NULL, "SHIFTRIGHT(a, n)",
          "The bits n places down, the sign kept.", "SHIFTRIGHT(-8, 1)", "-4"),
    OTHER("gcd", "ll>l", &impl_gcd, NULL, "GCD(a, b)", "The greatest common divisor.", "GCD(12, -18)", "6"),
    {.name = "approx_bucket",
     .overloads = &(const ck_overload){"d>l", &impl_bucket, false},
     .overload_count = 1,
     .flags = CK_FN_INTERNAL},
};
const ck_function_table ck_functions_number = {functions, CK_ARRAY_COUNT(functions)};
