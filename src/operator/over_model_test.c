/* OVER against its definition: random rows of a few keys, out of order, late, with NULLs and ties, in batches and
 * restarts of random size; frames by rows and by range, over event time, processing time, and any order at the end. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

#define INPUT "k VARCHAR; t TIMESTAMP(6); v BIGINT; d DOUBLE; p DECIMAL(10,2); s VARCHAR"
#define RESULTS                                                                                                        \
    "; c1 BIGINT; c2 BIGINT; c3 BIGINT; c4 DOUBLE; c5 DOUBLE; c6 DECIMAL(38,2); c7 DECIMAL(38,6); c8 BIGINT; c9 "      \
    "VARCHAR; c10 BIGINT; c11 VARCHAR; c12 BIGINT; c13 BIGINT; c14 VARCHAR; c15 DOUBLE"
#define CALLS                                                                                                          \
    "\"calls\":[{\"fn\":\"count\"},{\"fn\":\"count\",\"arg\":2,\"arg_text\":\"v\"},"                                   \
    "{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\"},{\"fn\":\"avg\",\"arg\":2,\"arg_text\":\"v\"},"                     \
    "{\"fn\":\"sum\",\"arg\":3,\"arg_text\":\"d\"},{\"fn\":\"sum\",\"arg\":4,\"arg_text\":\"p\"},"                     \
    "{\"fn\":\"avg\",\"arg\":4,\"arg_text\":\"p\"},{\"fn\":\"min\",\"arg\":2,\"arg_text\":\"v\"},"                     \
    "{\"fn\":\"max\",\"arg\":5,\"arg_text\":\"s\"},{\"fn\":\"first_value\",\"arg\":2,\"arg_text\":\"v\"},"             \
    "{\"fn\":\"last_value\",\"arg\":5,\"arg_text\":\"s\"},{\"fn\":\"lag\",\"arg\":2,\"arg_text\":\"v\",\"offset\":2}," \
    "{\"fn\":\"row_number\"},{\"fn\":\"lag\",\"arg\":5,\"arg_text\":\"s\",\"offset\":1},"                              \
    "{\"fn\":\"max\",\"arg\":3,\"arg_text\":\"d\"}]"
enum { ROWS = 300, DELAY = 5, NONE = INT32_MIN, LAG_FAR = 2 };

typedef struct row {
    int key, t, v, d, p, s; /* NONE: NULL */
    int arrival;            /* number of its batch */
} row;

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

/* ---- texts ---- */

static void put(char **at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(char **at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    *at += vsprintf(*at, fmt, ap);
    va_end(ap);
}
static void put_double(char **at, double v) {
    char text[64];
    size_t n = ck_print_f64(text, v);
    put(at, "%.*s", (int)n, text);
}
static void put_decimal(char **at, ck_i128 v, int scale) {
    char text[64];
    size_t n = ck_print_decimal(text, v, scale);
    put(at, "%.*s", (int)n, text);
}
static void put_text(char **at, int s) {
    if (s == NONE)
        put(at, "NULL");
    else
        put(at, s % 2 ? "s%03d" : "s%03d and more than twelve bytes", s);
}
static void put_int(char **at, int v) {
    if (v == NONE)
        put(at, "NULL");
    else
        put(at, "%d", v);
}

static void put_row(char **at, const row *r) {
    put(at, "a key longer than twelve %d|1970-01-01 00:%02d:%02d|", r->key, r->t / 60, r->t % 60);
    put_int(at, r->v);
    put(at, "|");
    if (r->d == NONE)
        put(at, "NULL");
    else
        put_double(at, (double)r->d / 4);
    put(at, "|");
    if (r->p == NONE)
        put(at, "NULL");
    else
        put_decimal(at, r->p, 2);
    put(at, "|");
    put_text(at, r->s);
}

/* ---- the model ---- */

typedef enum by { EVENT, PROCESSING, END } by;
typedef struct shape {
    const char *frame;
    by by;
    bool range, bounded;
    int preceding;
} shape;
#define EVENT_FRAME(unit, preceding)                                                                                   \
    "\"by\":\"event\",\"order\":[{\"col\":1}],\"unit\":\"" unit "\",\"preceding\":" preceding ","
#define PROCESSING_FRAME(unit, preceding)                                                                              \
    "\"by\":\"processing\",\"order\":[],\"unit\":\"" unit "\",\"preceding\":" preceding ","
#define END_FRAME(order, unit, preceding)                                                                              \
    "\"by\":\"end\",\"order\":[" order "],\"unit\":\"" unit "\",\"preceding\":" preceding ","
static const shape shapes[] = {
    {EVENT_FRAME("rows", "0"), EVENT, false, true, 0},
    {EVENT_FRAME("rows", "3"), EVENT, false, true, 3},
    {EVENT_FRAME("rows", "40"), EVENT, false, true, 40},
    {EVENT_FRAME("rows", "null"), EVENT, false, false, 0},
    {EVENT_FRAME("range", "0"), EVENT, true, true, 0},
    {EVENT_FRAME("range", "7000000"), EVENT, true, true, 7},
    {EVENT_FRAME("range", "null"), EVENT, true, false, 0},
    {PROCESSING_FRAME("rows", "4"), PROCESSING, false, true, 4},
    {PROCESSING_FRAME("rows", "null"), PROCESSING, false, false, 0},
    {PROCESSING_FRAME("range", "3000000"), PROCESSING, true, true, 3},
    {END_FRAME("{\"col\":1,\"desc\":true}", "rows", "5"), END, false, true, 5},
    {END_FRAME("{\"col\":1,\"desc\":true}", "range", "4000000"), END, true, true, 4},
    {END_FRAME("", "range", "null"), END, true, false, 0},
};

static const shape *now;

/* NULLs last, texts by their bytes. */
static int compare(int a, int b) {
    if (a == NONE || b == NONE) return (a == NONE) - (b == NONE);
    return (a > b) - (a < b);
}
static int in_order(const void *x, const void *y) {
    const row *a = x, *b = y;
    int c = a->key - b->key;
    if (c == 0 && now->by == PROCESSING) return (a > b) - (a < b);
    if (c == 0 && now->by == END && !now->bounded) c = 0; /* no order: all columns */
    if (c == 0) c = now->by == END && now->bounded ? b->t - a->t : a->t - b->t;
    if (c == 0) c = compare(a->v, b->v);
    if (c == 0) c = compare(a->d, b->d);
    if (c == 0) c = compare(a->p, b->p);
    return c ? c : compare(a->s, b->s);
}

static int apart(const row *a, const row *b) {
    return now->by == PROCESSING ? b->arrival - a->arrival : now->by == END ? a->t - b->t : b->t - a->t;
}

/* The line for rows[i] of rows[first..end), which are its key's in order. */
static void expect_line(const row *rows, int first, int end, int i, char *out) {
    bool groups = now->range && now->by != PROCESSING, all = now->by == END && !now->bounded;
    int from = first, to = i + 1, n = 0, nv = 0, nd = 0, np = 0, min = NONE, max = NONE, top = NONE;
    int64_t sum = 0, quarters = 0, cents = 0;
    while (groups && to < end && (all || rows[to].t == rows[i].t)) to++;
    if (now->bounded && now->range)
        while (apart(&rows[from], &rows[i]) > now->preceding) from++;
    if (now->bounded && !now->range && i - now->preceding > first) from = i - now->preceding;
    for (int k = from; k < to; k++) {
        const row *r = &rows[k];
        n++;
        if (r->v != NONE) nv++, sum += r->v;
        if (r->v != NONE && (min == NONE || r->v < min)) min = r->v;
        if (r->d != NONE) nd++, quarters += r->d;
        if (r->d != NONE && (top == NONE || r->d > top)) top = r->d;
        if (r->p != NONE) np++, cents += r->p;
        if (r->s != NONE && (max == NONE || r->s > max)) max = r->s;
    }
    char *at = out;
    put_row(&at, &rows[i]);
    put(&at, "|%d|%d|", n, nv);
    if (nv)
        put(&at, "%lld|", (long long)sum), put_double(&at, (double)sum / nv);
    else
        put(&at, "NULL|NULL");
    put(&at, "|");
    if (nd)
        put_double(&at, (double)quarters / 4);
    else
        put(&at, "NULL");
    put(&at, "|");
    if (np) {
        int64_t scaled = cents * 10000 * 2, whole = (scaled < 0 ? -scaled : scaled) + np;
        int64_t average = whole / (2 * np);
        put_decimal(&at, cents, 2);
        put(&at, "|");
        put_decimal(&at, scaled < 0 ? -average : average, 6);
    } else {
        put(&at, "NULL|NULL");
    }
    put(&at, "|");
    put_int(&at, min);
    put(&at, "|");
    put_text(&at, max);
    put(&at, "|");
    put_int(&at, rows[from].v);
    put(&at, "|");
    put_text(&at, rows[to - 1].s);
    put(&at, "|");
    put_int(&at, i - LAG_FAR >= first ? rows[i - LAG_FAR].v : NONE);
    put(&at, "|%d|", i - first + 1);
    put_text(&at, i > first ? rows[i - 1].s : NONE);
    put(&at, "|");
    if (top == NONE)
        put(&at, "NULL");
    else
        put_double(&at, (double)top / 4);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void check(harness *h, row *rows, int n, uint64_t case_seed) {
    char **want = calloc((size_t)n + 1, sizeof *want);
    for (int i = 0; i < n; i++) rows[i].arrival += 0;
    if (now->by == PROCESSING) { /* a stable sort by key */
        row *sorted = calloc((size_t)n + 1, sizeof *sorted);
        int m = 0;
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < n; i++)
                if (rows[i].key == k) sorted[m++] = rows[i];
        memcpy(rows, sorted, (size_t)m * sizeof *rows);
        free(sorted);
    } else {
        qsort(rows, (size_t)n, sizeof *rows, in_order);
    }
    for (int i = 0, first = 0, end = 0; i < n; i++) {
        char line[1000];
        if (i == end) {
            first = i;
            while (end < n && rows[end].key == rows[first].key) end++;
        }
        expect_line(rows, first, end, i, line);
        want[i] = strdup(line);
    }
    qsort(want, (size_t)n, sizeof *want, by_text);
    qsort(h->lines, h->line_count, sizeof *h->lines, harness_line_order);
    if (h->line_count != (size_t)n)
        fail_msg("seed %llu: %zu rows, not %d", (unsigned long long)case_seed, h->line_count, n);
    for (int i = 0; i < n; i++) {
        if (strcmp(want[i], h->lines[i].text) != 0)
            fail_msg("seed %llu, %s\n got %s\nwant %s", (unsigned long long)case_seed, now->frame, h->lines[i].text,
                     want[i]);
        free(want[i]);
    }
    free(want);
}

/* ---- histories ---- */

static int some(int n) { return pick(6) == 0 ? NONE : pick(n); }

static uint64_t late;
static void feed(harness *h, row *rows, int *n, int *top, int watermark, int count, int batch) {
    static char text[64][400];
    const char *lines[64];
    static int most_keys;
    if (batch == 0) most_keys = 1 + pick(6);
    for (int i = 0; i < count; i++) {
        row r = {pick(most_keys), *top - pick(DELAY + 3), some(5), some(5), some(400), some(9), batch};
        if (r.t < 0) r.t = 0;
        if (r.v != NONE) r.v -= 2;
        if (r.d != NONE) r.d -= 2;
        if (r.p != NONE) r.p -= 200;
        char *at = text[i];
        put_row(&at, &r);
        lines[i] = text[i];
        if (now->by == EVENT && r.t <= watermark)
            late++;
        else
            rows[(*n)++] = r;
        *top += pick(5) == 0 ? pick(6) : pick(2);
    }
    harness_ok(h, harness_try_rows(h, 0, lines, (uint32_t)count));
}

static void one_case(uint64_t case_seed) {
    static row rows[ROWS + 64];
    char params[3000];
    ck_test_proc proc;
    harness h;
    int n = 0, top = 0, watermark = -1;
    seed = case_seed;
    late = 0;
    now = &shapes[pick(CK_ARRAY_COUNT(shapes))];
    bool restarts = pick(2) == 0;
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, INPUT, CK_MODE_APPEND);
    snprintf(params, sizeof params, "{\"keys\":[0],%s%s}", now->frame, CALLS);
    harness_start(&h, &ck_op_over, params, INPUT RESULTS);
    for (int batch = 0; n < ROWS; batch++) {
        h.now_us = batch * 1000000LL;
        feed(&h, rows, &n, &top, watermark, 1 + pick(30), batch);
        if (pick(3) == 0 && top - DELAY > watermark) {
            watermark = top - DELAY;
            harness_ok(&h, harness_event(&h, 0, ck_event_watermark(watermark * 1000000LL, false)));
        }
        if (restarts && pick(6) == 0) harness_restart(&h, (uint64_t)batch + 1);
    }
    harness_end(&h);
    assert_int_equal(harness_counter(&h, "late_rows"), late);
    check(&h, rows, n, case_seed);
    harness_restart(&h, 1000);
    assert_true(ck_state_bytes(h.store) < 60000); /* nothing is kept but how far time has come */
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_give_what_the_definition_says(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 250); s++)
        one_case(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_give_what_the_definition_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
