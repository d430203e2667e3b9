/* DECIMAL arithmetic against exact fractions (tools/decimal_vectors.py, where there is a Python), and by hand. */
#include "expr/decimal.h"

#include "expr/sample_int.h"

static bool parse(const char *text, ck_i128 *out) {
    bool overflow;
    return ck_parse_decimal(ck_view_of(text), 38, 0, out, &overflow);
}

static bool compute(char op, const ck_decimal_op *d, ck_i128 a, ck_i128 b, ck_i128 *r) {
    switch (op) {
    case '+': return ck_decimal_add(d, a, b, r);
    case '-': return ck_decimal_sub(d, a, b, r);
    case '*': return ck_decimal_mul(d, a, b, r);
    case '/': return ck_decimal_div(d, a, b, r);
    case '%': return ck_decimal_mod(d, a, b, r);
    default: return ck_decimal_rescale(a, d->scale_a, d->precision, d->scale, r);
    }
}

static void check(char op, const char *a, const char *b, const ck_decimal_op *d, const char *result) {
    ck_i128 x = 0, y = 0, want = 0, got = 0;
    assert_true(parse(a, &x) && parse(b, &y));
    bool fits = strcmp(result, "-") != 0;
    if (fits) assert_true(parse(result, &want));
    if (compute(op, d, x, y, &got) == fits && (!fits || got == want)) return;
    char text[48];
    size_t n = ck_print_decimal(text, got, 0);
    fail_msg("%s(%d) %c %s(%d) to (%d,%d): %.*s, not %s", a, d->scale_a, op, b, d->scale_b, d->precision, d->scale,
             (int)n, text, result);
}

static void exact_fractions(void **state) {
    (void)state;
    if (system("python3 -c pass 2>/dev/null") != 0) skip();
    FILE *f = popen("python3 tools/decimal_vectors.py 8000 1", "r");
    assert_non_null(f);
    char op, a[64], b[64], result[64];
    ck_decimal_op d;
    size_t cases = 0;
    while (fscanf(f, " %c %60s %d %60s %d %d %d %60s", &op, a, &d.scale_a, b, &d.scale_b, &d.precision, &d.scale,
                  result) == 8) {
        check(op, a, b, &d, result);
        cases++;
    }
    assert_int_equal(pclose(f), 0);
    assert_int_equal(cases, 8000);
}

static const char nines[] = "99999999999999999999999999999999999999";

static void by_hand(void **state) {
    (void)state;
    check('+', "1", "5", &(ck_decimal_op){0, 1, 38, 1}, "15");
    check('+', nines, "1", &(ck_decimal_op){0, 0, 38, 0}, "-");
    check('+', nines, "5", &(ck_decimal_op){0, 1, 38, 0}, "-");
    check('-', "5", "5", &(ck_decimal_op){1, 1, 38, 0}, "0");
    check('*', "15", "15", &(ck_decimal_op){1, 1, 38, 1}, "23"); /* 2.25 to one digit */
    check('*', "-15", "15", &(ck_decimal_op){1, 1, 38, 1}, "-23");
    check('*', nines, nines, &(ck_decimal_op){38, 38, 38, 38}, "99999999999999999999999999999999999998");
    check('/', "1", "3", &(ck_decimal_op){0, 0, 38, 37}, "3333333333333333333333333333333333333");
    check('/', "2", "-3", &(ck_decimal_op){0, 0, 38, 0}, "-1");
    check('/', nines, "1", &(ck_decimal_op){0, 38, 38, 6}, "-");
    check('%', "-75", "2", &(ck_decimal_op){1, 0, 38, 1}, "-15");
    check('r', "25", "0", &(ck_decimal_op){1, 0, 38, 0}, "3");
    check('r', "-25", "0", &(ck_decimal_op){1, 0, 38, 0}, "-3");
    check('r', "24", "0", &(ck_decimal_op){1, 0, 1, 0}, "2");
    check('r', "95", "0", &(ck_decimal_op){1, 0, 1, 0}, "-");
}

static void comparison(void **state) {
    (void)state;
    ck_i128 big;
    assert_true(parse(nines, &big));
    assert_int_equal(ck_decimal_compare(1, 0, 10, 1), 0);
    assert_int_equal(ck_decimal_compare(big, 0, big, 38), 1);
    assert_int_equal(ck_decimal_compare(-big, 0, big, 38), -1);
    assert_int_equal(ck_decimal_compare(-15, 1, -1, 0), -1);
    assert_int_equal(ck_decimal_compare(0, 5, 0, 0), 0);
    assert_int_equal(ck_decimal_compare(-1, 38, 0, 0), -1);
}

static void doubles(void **state) {
    (void)state;
    ck_i128 d;
    assert_true(ck_decimal_to_double(1, 1) == 0.1);
    assert_true(ck_decimal_to_double(-12345, 2) == -123.45);
    assert_true(ck_decimal_to_double((ck_i128)1 << 100, 0) == 0x1p100);
    assert_true(ck_decimal_to_double(123456789012345678, 17) == 1.23456789012345678);
    assert_true(ck_decimal_from_double(2.675, 10, 2, &d) && d == 268);
    assert_true(ck_decimal_from_double(-0.5, 10, 0, &d) && d == -1);
    assert_true(ck_decimal_from_double(1e20, 38, 2, &d) && d == (ck_i128)100 * 1000000000 * 100000000000);
    assert_false(ck_decimal_from_double(1e20, 10, 2, &d));
    assert_false(ck_decimal_from_double(__builtin_nan(""), 38, 0, &d));
    assert_false(ck_decimal_from_double(-__builtin_inf(), 38, 0, &d));
}

static void digits(void **state) {
    (void)state;
    assert_true(ck_decimal_fits(999, 3) && !ck_decimal_fits(1000, 3) && ck_decimal_fits(-999, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_fractions), cmocka_unit_test(by_hand),
                                       cmocka_unit_test(comparison), cmocka_unit_test(doubles),
                                       cmocka_unit_test(digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
