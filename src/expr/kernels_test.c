/* The inner loops of every instruction set against one line of plain C each. */
#include "expr/sample_int.h"

#include "base/hash.h"

#include "expr/select_table.h"
#include "expr/time_int.h"

static uint64_t next(uint64_t *seed) { return ck_mix64(*seed += 0x9E3779B97F4A7C15ULL); }

static const int64_t edges[] = {0, 1, -1, 2, -2, 7, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, 1LL << 32};
static const double double_edges[] = {0.0,  -0.0, 1.5, -1.5, __builtin_nan(""), __builtin_inf(), -__builtin_inf(),
                                      1e300};

static int64_t any_i64(uint64_t *seed) {
    uint64_t r = next(seed);
    return r % 3 ? (int64_t)(next(seed) >> (r % 60)) - 4 : edges[r / 3 % CK_ARRAY_COUNT(edges)];
}
static double any_f64(uint64_t *seed) {
    uint64_t r = next(seed);
    return r % 2 ? (double)(int64_t)(next(seed) % 9) - 4 : double_edges[r / 2 % CK_ARRAY_COUNT(double_edges)];
}

enum { MOST = 4096 };
typedef struct data {
    int64_t a[MOST], b[MOST], r[MOST];
    double x[MOST], y[MOST], z[MOST];
    ck_i128 p[MOST], q[MOST], w[MOST];
    uint64_t bits[MOST / 64];
    uint16_t sel[MOST + 8], out[MOST + 8];
    uint32_t n, sel_n;
} data;

static void fill(data *d, uint64_t seed, uint32_t n) {
    d->n = n, d->sel_n = 0;
    for (uint32_t i = 0; i < n; i++) {
        d->a[i] = any_i64(&seed), d->b[i] = next(&seed) % 3 ? any_i64(&seed) : d->a[i];
        d->x[i] = any_f64(&seed), d->y[i] = next(&seed) % 3 ? any_f64(&seed) : d->x[i];
        d->p[i] = (ck_i128)d->a[i] * 1048576, d->q[i] = next(&seed) % 3 ? (ck_i128)d->b[i] * 1048576 : d->p[i];
        if (next(&seed) % 3) d->sel[d->sel_n++] = (uint16_t)i;
    }
}

/* NaN equal to itself and greatest. */
static int order_f64(double x, double y) {
    if (x != x || y != y) return (x != x) - (y != y);
    return (x > y) - (x < y);
}

static bool holds(int c, int op) {
    const bool answers[] = {c == 0, c != 0, c<0, c <= 0, c> 0, c >= 0};
    return answers[op];
}

static void check_comparison(const ck_kernels *k, data *d, int op, int form) {
    uint32_t n = 0;
    k->cmp_i64[op][form](d->bits, d->a, d->b, d->n);
    for (uint32_t i = 0; i < d->n; i++) {
        int64_t b = d->b[form ? 0 : i];
        assert_int_equal(ck_bit_get(d->bits, i), holds((d->a[i] > b) - (d->a[i] < b), op));
    }
    n = k->sel_i64[op][form](d->out, d->a, d->b, d->sel, d->sel_n);
    for (uint32_t i = 0, at = 0; i < d->sel_n; i++)
        if (ck_bit_get(d->bits, d->sel[i])) assert_int_equal(d->out[at++], d->sel[i]);
    k->cmp_f64[op][form](d->bits, d->x, d->y, d->n);
    for (uint32_t i = 0; i < d->n; i++)
        assert_int_equal(ck_bit_get(d->bits, i), holds(order_f64(d->x[i], d->y[form ? 0 : i]), op));
    n = k->sel_f64[op][form](d->out, d->x, d->y, d->sel, d->sel_n);
    uint32_t want = 0;
    for (uint32_t i = 0; i < d->sel_n; i++) want += ck_bit_get(d->bits, d->sel[i]);
    assert_int_equal(n, want);
    k->cmp_i128[op][form](d->bits, d->p, d->q, d->n);
    want = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        ck_i128 q = d->q[form ? 0 : i];
        assert_int_equal(ck_bit_get(d->bits, i), holds((d->p[i] > q) - (d->p[i] < q), op));
    }
    for (uint32_t i = 0; i < d->sel_n; i++) want += ck_bit_get(d->bits, d->sel[i]);
    assert_int_equal(k->sel_i128[op][form](d->out, d->p, d->q, d->sel, d->sel_n), want);
}

static void check_selection(const ck_kernels *k, data *d) {
    uint32_t n = k->bits_to_sel(d->out, d->bits, d->n), at = 0;
    for (uint32_t i = 0; i < d->n; i++)
        if (ck_bit_get(d->bits, i)) assert_int_equal(d->out[at++], i);
    assert_int_equal(n, at);
}

static void check_arithmetic(const ck_kernels *k, data *d, int op, int form) {
    bool over = k->arith_i64[op][form](d->r, d->a, d->b, d->n), want = false;
    for (uint32_t i = 0; i < d->n; i++) {
        int64_t a = d->a[form == CK_FORM_SV ? 0 : i], b = d->b[form == CK_FORM_VS ? 0 : i], r;
        want |= op == CK_ADD   ? __builtin_add_overflow(a, b, &r)
                : op == CK_SUB ? __builtin_sub_overflow(a, b, &r)
                               : __builtin_mul_overflow(a, b, &r);
        assert_int_equal(d->r[i], r);
    }
    assert_int_equal(over, want);
}

static void check_doubles(const ck_kernels *k, data *d, int op, int form) {
    k->arith_f64[op][form](d->z, d->x, d->y, d->n);
    for (uint32_t i = 0; i < d->n; i++) {
        double x = d->x[form == CK_FORM_SV ? 0 : i], y = d->y[form == CK_FORM_VS ? 0 : i];
        double r = op == CK_ADD ? x + y : op == CK_SUB ? x - y : op == CK_MUL ? x * y : x / y;
        assert_true(r == d->z[i] || (r != r && d->z[i] != d->z[i]));
    }
}

static void check_division(const ck_kernels *k, data *d) {
    static const int64_t divisors[] = {2,     -2,  3,          -3,        5,         7, 10,       123,
                                       -1000, 641, 1000000007, INT64_MAX, INT64_MIN, 6, 1LL << 40};
    for (size_t v = 0; v < CK_ARRAY_COUNT(divisors); v++)
        for (int rest = 0; rest < 2; rest++) {
            k->divide_i64[rest](d->r, d->a, divisors[v], d->n);
            for (uint32_t i = 0; i < d->n; i++)
                assert_int_equal(d->r[i], rest ? d->a[i] % divisors[v] : d->a[i] / divisors[v]);
        }
}

static void check_rest(const ck_kernels *k, data *d) {
    bool outside = false, zero = false;
    for (uint32_t i = 0; i < d->n; i++) outside |= d->a[i] < -100 || d->a[i] > 1000000, zero |= d->x[i] == 0;
    assert_int_equal(k->any_outside(d->a, -100, 1000000, d->n), outside);
    assert_int_equal(k->any_zero_f64(d->x, d->n), zero);
    k->i64_to_f64(d->z, d->a, d->n);
    k->widen_mul(d->w, d->a, -908, d->n);
    for (uint32_t i = 0; i < d->n; i++) {
        assert_true(d->z[i] == (double)d->a[i]);
        assert_true(d->w[i] == (ck_i128)d->a[i] * -908);
    }
}

/* Rows in runs and alone, so that both loops of a kernel are met. */
static void fill_selection(data *d, uint64_t seed) {
    d->sel_n = 0;
    for (uint32_t i = 0; i < d->n;) {
        uint32_t run = next(&seed) % 2 ? 1 : 1 + (uint32_t)(next(&seed) % 40);
        for (; run-- && i < d->n; i++) d->sel[d->sel_n++] = (uint16_t)i;
        i += (uint32_t)(next(&seed) % 5);
    }
}

static void check_puts(const ck_kernels *k, data *d, bool all, int one) {
    const uint16_t *sel = all ? NULL : d->sel;
    uint32_t n = all ? d->n : d->sel_n;
    bool takes[MOST] = {false};
    for (uint32_t i = 0; i < n; i++) takes[all ? i : d->sel[i]] = true;
    for (uint32_t i = 0; i < d->n; i++) d->r[i] = -9, d->w[i] = -9;
    k->put_8[one](d->r, d->a, sel, n);
    k->put_16[one](d->w, d->p, sel, n);
    for (uint32_t i = 0; i < d->n; i++) {
        assert_true(d->r[i] == (takes[i] ? d->a[one ? 0 : i] : -9));
        assert_true(d->w[i] == (takes[i] ? d->p[one ? 0 : i] : -9));
    }
    uint64_t to[MOST / 64], was[MOST / 64];
    for (uint32_t w = 0; w < MOST / 64; w++) to[w] = was[w] = ck_mix64(w), d->bits[w] = ck_mix64(w + 99);
    k->put_bits[one](to, d->bits, sel, n);
    for (uint32_t i = 0; i < d->n; i++)
        assert_int_equal(ck_bit_get(to, i), takes[i] ? ck_bit_get(d->bits, one ? 0 : i) : ck_bit_get(was, i));
    k->sel_to_bits(to, d->sel, d->sel_n, d->n);
    for (uint32_t i = 0; i < d->n && !all; i++) assert_int_equal(ck_bit_get(to, i), takes[i]);
    uint32_t kept = k->sel_bits(d->out, d->bits, d->sel, d->sel_n), at = 0;
    for (uint32_t i = 0; i < d->sel_n; i++)
        if (ck_bit_get(d->bits, d->sel[i])) assert_int_equal(d->out[at++], d->sel[i]);
    assert_int_equal(kept, at);
    uint16_t same[MOST + 8];
    memcpy(same, d->sel, d->sel_n * sizeof *same);
    assert_int_equal(k->sel_bits(same, d->bits, same, d->sel_n), kept);
    assert_memory_equal(same, d->out, kept * sizeof *same);
}

/* A time of any year that types have, mostly next to where a day, an hour, a minute or a second begins. */
static int64_t any_time(uint64_t *seed) {
    static const int64_t units[] = {CK_SECOND_US, CK_MINUTE_US, CK_HOUR_US, CK_DAY_US, 1};
    uint64_t span = (uint64_t)(CK_TIME_MAX_US - CK_TIME_MIN_US);
    int64_t t = CK_TIME_MIN_US + (int64_t)(next(seed) % span), unit = units[next(seed) % CK_ARRAY_COUNT(units)];
    if (next(seed) % 16 == 0) return next(seed) % 2 ? CK_TIME_MIN_US : CK_TIME_MAX_US;
    t = ck_floor_div(t, unit) * unit + (int64_t)(next(seed) % 3) - 1;
    return t < CK_TIME_MIN_US ? CK_TIME_MIN_US : t;
}

static void check_times(const ck_kernels *k, data *d, uint64_t seed, bool wild) {
    for (uint32_t i = 0; i < d->n; i++) d->a[i] = any_time(&seed);
    for (uint32_t i = 0; wild && i < d->n; i += 7) d->a[i] = (int64_t)next(&seed) / 2; /* where there is no value */
    for (int u = 0; u < CK_UNIT_COUNT; u++) {
        if (k->clock_part[u]) k->clock_part[u](d->r, d->a, d->n);
        for (uint32_t i = 0; k->clock_part[u] && i < d->n; i++)
            if (d->r[i] != ck_unit_part((ck_unit)u, d->a[i])) fail_msg("unit %d of %lld", u, (long long)d->a[i]);
        if (k->clock_floor[u]) k->clock_floor[u](d->r, d->a, d->n);
        for (uint32_t i = 0; k->clock_floor[u] && i < d->n; i++)
            if (d->r[i] != ck_unit_floor((ck_unit)u, d->a[i])) fail_msg("floor %d of %lld", u, (long long)d->a[i]);
    }
    k->days(d->r, d->a, d->n);
    for (uint32_t i = 0; i < d->n; i++) assert_int_equal(d->r[i], ck_floor_div(d->a[i], CK_DAY_US));
}

static void check_days(const ck_kernels *k, data *d, uint64_t seed) {
    for (uint32_t i = 0; i < d->n; i++)
        d->a[i] = CK_DATE_MIN + (int64_t)(next(&seed) % (uint64_t)(CK_DATE_MAX - CK_DATE_MIN + 1));
    if (d->n > 1) d->a[0] = CK_DATE_MIN, d->a[1] = CK_DATE_MAX;
    for (int u = 0; u < CK_UNIT_COUNT; u++) {
        if (!k->day_part[u]) continue;
        assert_true(k->day_part[u](d->r, d->a, d->n));
        for (uint32_t i = 0; i < d->n; i++) assert_int_equal(d->r[i], ck_unit_part((ck_unit)u, d->a[i] * CK_DAY_US));
        int64_t was = d->n ? d->a[d->n - 1] : 0;
        if (d->n) d->a[d->n - 1] = CK_DATE_MAX + 1, d->r[0] = -5;
        assert_int_equal(k->day_part[u](d->r, d->a, d->n), d->n == 0);
        if (d->n) d->a[d->n - 1] = was, assert_int_equal(d->r[0], -5);
    }
}

/* Every day there is, once. */
static void check_calendar(const ck_kernels *k, data *d) {
    for (int64_t day = CK_DATE_MIN; day <= CK_DATE_MAX; day += MOST) {
        d->n = CK_DATE_MAX - day + 1 < MOST ? (uint32_t)(CK_DATE_MAX - day + 1) : MOST;
        for (uint32_t i = 0; i < d->n; i++) d->a[i] = day + i;
        assert_true(k->day_part[CK_UNIT_DOY](d->r, d->a, d->n) && k->day_part[CK_UNIT_YEAR](d->b, d->a, d->n));
        for (uint32_t i = 0; i < d->n; i++)
            if (ck_days_from_civil(d->b[i], 1, 1) + d->r[i] - 1 != d->a[i] || d->r[i] < 1 || d->r[i] > 366)
                fail_msg("day %lld is %lld of %lld", (long long)d->a[i], (long long)d->r[i], (long long)d->b[i]);
    }
}

static void check_table(const ck_kernels *k) {
    static const uint32_t sizes[] = {0, 1, 2, 7, 63, 64, 65, 127, 128, 200, MOST};
    data *d = calloc(1, sizeof *d);
    for (size_t s = 0; s < CK_ARRAY_COUNT(sizes); s++) {
        fill(d, s + 1, sizes[s]);
        for (int form = 0; form < 2; form++)
            for (int op = 0; op < CK_CMP_COUNT; op++) check_comparison(k, d, op, form), check_selection(k, d);
        for (int form = 0; form < CK_FORM_COUNT; form++) {
            for (int op = 0; op <= CK_MUL; op++) check_arithmetic(k, d, op, form);
            for (int op = 0; op <= CK_DIV; op++) check_doubles(k, d, op, form);
        }
        check_division(k, d);
        check_rest(k, d);
        fill_selection(d, s + 20);
        for (int form = 0; form < 4; form++) check_puts(k, d, form / 2, form % 2);
        for (int wild = 0; wild < 2; wild++) check_times(k, d, s + 40, wild);
        check_days(k, d, s + 80);
    }
    check_calendar(k, d);
    free(d);
}

static void base(void **state) {
    (void)state;
    check_table(&ck_kernels_base);
}

static void chosen(void **state) {
    (void)state;
    const ck_kernels *k = ck_kernels_for(ck_cpu_detect());
    print_message("the processor runs the %s kernels\n", k->name);
    check_table(k);
    assert_ptr_equal(ck_kernels_for((ck_cpu){0}), &ck_kernels_base);
}

static void select_table(void **state) {
    (void)state;
    for (uint32_t m = 0; m < 256; m++) {
        uint64_t want = 0;
        uint32_t at = 0;
        for (uint32_t b = 0; b < 8; b++)
            if (m >> b & 1) want |= (uint64_t)b << (8 * at++);
        assert_true(ck_select_table[m] == want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(base), cmocka_unit_test(chosen),
                                       cmocka_unit_test(select_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
