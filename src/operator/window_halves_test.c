/* Hops of many slides against their definition, those made of halves and those that roll with sets of values: random
 * rows of a few keys, also for slices that windows have been made of, sizes that slides do not divide, gaps, restarts,
 * every way of keeping fronts. What a window says is computed from its rows; sums of doubles are the same to the last
 * bit whatever was kept and however often it was forgotten. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "operator/window_int.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

enum { KEYS = 4, ROWS_MAX = 4000, START = 400000 }; /* seconds since 1970 */

typedef struct row {
    int key, seconds, value;
    int closed; /* windows that ended at or before it had been said when the row came */
} row;

static row rows[ROWS_MAX];
static int row_count;
static bool sets; /* counts and sums of different values, in place of the least and the greatest */
static bool both; /* ... beside the least: sets in halves */

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

static char *text_of(int seconds, const char *fraction, char *out) {
    time_t t = seconds;
    struct tm tm;
    strftime(out, 32, "%Y-%m-%d %H:%M:%S", gmtime_r(&t, &tm));
    return strcat(out, fraction);
}

/* Other columns of a row. */
static bool has_rest(const row *r) { return r->value % 5 != 0; }
static bool passes(const row *r) { return r->value % 3 != 0 && r->value > 0; }
static int rest(const row *r) { return r->value % 7; }

/* How many different rests, and of rows that pass, and the sum of them. */
static void different(const row *r, int *seen, int *passed, int *sum) {
    if (!has_rest(r)) return;
    *sum += *seen >> (rest(r) + 7) & 1 ? 0 : rest(r);
    *seen |= 1 << (rest(r) + 7);
    *passed |= passes(r) << (rest(r) + 7);
}

/* What the window that ends there says, as lines. */
static void say(int start, int end, char lines[][160], size_t *n) {
    for (int key = 0; key < KEYS; key++) {
        int count = 0, least = 0, most = 0, sum = 0, seen = 0, passed = 0, sum_of_rests = 0;
        for (int i = 0; i < row_count; i++) {
            const row *r = &rows[i];
            if (r->key != key || r->seconds < start || r->seconds >= end || end <= r->closed) continue;
            if (count == 0 || r->value < least) least = r->value;
            if (count++ == 0 || r->value > most) most = r->value;
            sum += r->value;
            different(r, &seen, &passed, &sum_of_rests);
        }
        int value = least;
        if (sets) least = __builtin_popcount((unsigned)seen), most = __builtin_popcount((unsigned)passed);
        char rests[16] = "NULL", and_least[24] = "";
        if (both) snprintf(and_least, sizeof and_least, "|%d", value);
        if (seen) snprintf(rests, sizeof rests, "%d", sum_of_rests);
        char s[32], e[32], w[32];
        if (count)
            snprintf(lines[(*n)++], 160, "k%d|%s|%s|%s|%d|%d|%d|%d%s%s%s", key, text_of(start, "", s),
                     text_of(end, "", e), text_of(end - 1, ".999", w), count, least, most, sum, sets ? "|" : "",
                     sets ? rests : "", and_least);
    }
}

static int by_text(const void *x, const void *y) { return strcmp(x, y); }
static int by_line(const void *x, const void *y) {
    return strcmp(((const harness_line *)x)->text, ((const harness_line *)y)->text);
}

static void check(harness *h, int size, int slide, int from, int to) {
    static char want[KEYS * 4096][160];
    size_t n = 0;
    for (int end = from / slide * slide - slide + size % slide; end <= to; end += slide)
        if (end > from) say(end - size, end, want, &n);
    qsort(want, n, sizeof *want, by_text);
    if (h->line_count) qsort(h->lines, h->line_count, sizeof *h->lines, by_line);
    for (size_t i = 0; i < n && i < h->line_count; i++)
        if (strcmp(want[i], h->lines[i].text) != 0) fail_msg("%s, not %s", h->lines[i].text, want[i]);
    if (n != h->line_count) fail_msg("%zu rows, not %zu, up to second %d", h->line_count, n, to);
    harness_forget_lines(h);
}

static void start(harness *h, int size, int slide, const char *aggregates, const char *output, int kept) {
    char params[1024];
    snprintf(params, sizeof params,
             "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":%d000000,\"slide_us\":%d000000,\"offset_us\":0},"
             "\"keys\":[0],\"aggregates\":[%s]}",
             size, slide, aggregates);
    harness_input(h, "k VARCHAR; t TIMESTAMP(6); v BIGINT; d DOUBLE; m BIGINT; f BOOLEAN", CK_MODE_APPEND);
    harness_start(h, &ck_op_window_agg, params, output);
    bool rolls = sets && !both;
    assert_true(rolls ? ((ck_window_agg *)h->self)->rolling : ((ck_window_agg *)h->self)->halved);
    assert_true(both == ((ck_window_agg *)h->self)->rolled.on);
    ((ck_window_agg *)h->self)->halves.kept_rows = (uint64_t)kept;
}

static void restart(harness *h, uint64_t checkpoint, int kept) {
    harness_restart(h, checkpoint);
    ((ck_window_agg *)h->self)->halves.kept_rows = (uint64_t)kept;
}

static const char with_bounds[] =
    "{\"fn\":\"count\",\"arg\":null},{\"fn\":\"min\",\"arg\":2,\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":2,"
    "\"arg_text\":\"v\"},{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\"}";
static const char bounds_output[] =
    "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT; a BIGINT; b BIGINT; c BIGINT";

#define DIFFERENT(fn) "{\"fn\":\"" fn "\",\"distinct\":true,\"arg\":4,\"arg_text\":\"m\""
#define WITH_SETS                                                                                                      \
    "{\"fn\":\"count\",\"arg\":null}," DIFFERENT("count") "}," DIFFERENT(                                              \
        "count") ",\"filter\":5,\"filter_text\":\"f\"},"                                                               \
                 "{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\"}," DIFFERENT("sum") "}"
static const char with_sets[] = WITH_SETS;
static const char with_both[] = WITH_SETS ",{\"fn\":\"min\",\"arg\":2,\"arg_text\":\"v\"}";
#define SETS_OUTPUT                                                                                                    \
    "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT; a BIGINT; b BIGINT; c BIGINT; d BIGINT"
static const char sets_output[] = SETS_OUTPUT;
static const char both_output[] = SETS_OUTPUT "; e2 BIGINT";

/* Some rows, around `now` and behind it. */
static void put(harness *h, int now, int size, int closed) {
    char text[32][120], time[32], m[16];
    const char *lines[32];
    int n = pick(32);
    for (int i = 0; i < n && row_count < ROWS_MAX; i++) {
        row *r = &rows[row_count++];
        int behind = pick(4) ? pick(4) : pick(size * 2);
        *r = (row){pick(KEYS), now - behind, pick(1000) - 500, closed};
        snprintf(m, sizeof m, has_rest(r) ? "%d" : "NULL", rest(r));
        snprintf(text[i], sizeof text[i], "k%d|%s|%d|%d.1|%s|%s", r->key, text_of(r->seconds, "", time), r->value,
                 r->value, m,
                 r->value % 3 == 0 ? "NULL"
                 : passes(r)       ? "true"
                                   : "false");
        lines[i] = text[i];
    }
    if (n) harness_ok(h, harness_try_rows(h, 0, lines, (uint32_t)n));
}

static void run(fixture *f, uint64_t number) {
    harness *h = &f->h;
    seed = number;
    int slide = 1 + pick(3), size = slide * (8 + pick(40)) + pick(slide), kept = pick(4) * 40;
    int now = START, said = START - 10 * size;
    row_count = 0;
    sets = pick(3);
    both = sets && pick(2);
    start(h, size, slide,
          both   ? with_both
          : sets ? with_sets
                 : with_bounds,
          both   ? both_output
          : sets ? sets_output
                 : bounds_output,
          kept);
    for (int i = 0; i < 60; i++) {
        now += pick(20) ? pick(3 * slide) : pick(3 * size);
        put(h, now, size, said);
        if (pick(2)) continue;
        int to = now - pick(4);
        harness_ok(h, harness_event(h, 0, ck_event_watermark(to * 1000000LL - 1, false)));
        if (to > said) {
            check(h, size, slide, said, to);
            said = to;
        }
        if (pick(8) == 0) restart(h, (uint64_t)i + 1, kept);
    }
    harness_end(h);
    check(h, size, slide, said, now + 2 * size);
    restart(h, 100, kept);
    assert_int_equal(harness_kept_rows(h, 101), 0);
    harness_destroy(h);
    harness_init(h, &f->proc.proc);
}

static void windows_are_their_definition(void **state) {
    const char *one = getenv("CLINK_TEST_SEED");
    uint64_t cases = getenv("CLINK_TEST_ROCKS") ? 2 : 150; /* there each row goes to the database at every event */
    for (uint64_t i = 1; i <= cases; i++) {
        if (one) i = strtoull(one, NULL, 10);
        print_message("CLINK_TEST_SEED=%" PRIu64 "\r", i);
        run(*state, i);
        if (one) break;
    }
}

/* Rows of many slices with fractions that no order of adding keeps. */
static char *sums_of(fixture *f, int kept, int restarts_every) {
    harness *h = &f->h;
    char line[120], time[32], *out = calloc(1, 1 << 20);
    size_t used = 0;
    seed = 7;
    sets = both = false;
    start(h, 40, 1,
          "{\"fn\":\"sum\",\"arg\":3,\"arg_text\":\"d\"},{\"fn\":\"avg\",\"arg\":3,\"arg_text\":\"d\"},"
          "{\"fn\":\"stddev_pop\",\"arg\":3,\"arg_text\":\"d\"}",
          "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); d DOUBLE; m DOUBLE; x DOUBLE", kept);
    for (int i = 0; i < 200; i++) {
        for (int n = pick(4); n >= 0; n--) {
            snprintf(line, sizeof line, "k%d|%s|0|%d.%de%d|NULL|NULL", pick(2), text_of(START + i - pick(3), "", time),
                     pick(1000) - 500, pick(100000), pick(12));
            const char *rows_of_it[] = {line};
            harness_ok(h, harness_try_rows(h, 0, rows_of_it, 1));
        }
        harness_ok(h, harness_event(h, 0, ck_event_watermark((START + i) * 1000000LL - 1, false)));
        if (restarts_every && i % restarts_every == 0) restart(h, (uint64_t)i + 1, kept);
    }
    harness_end(h);
    qsort(h->lines, h->line_count, sizeof *h->lines, by_line);
    for (size_t i = 0; i < h->line_count; i++)
        used += (size_t)snprintf(out + used, (1 << 20) - used, "%s\n", h->lines[i].text);
    assert_true(h->line_count > 400);
    harness_destroy(h);
    harness_init(h, &f->proc.proc);
    return out;
}

static void sums_of_doubles_do_not_depend_on_what_is_kept(void **state) {
    fixture *f = *state;
    char *want = sums_of(f, 1000000, 0);
    for (int i = 0; i < 8; i++) {
        char *got = sums_of(f, i / 2 * 8, i % 2 * 3);
        assert_string_equal(got, want);
        free(got);
    }
    free(want);
}

/* Some rows of different values at one time, each as often as `times` says; below 0: taken back. */
static void put_values(harness *h, const char *time, int from, int to, int times) {
    enum { AT_ONCE = 1000 };
    static char text[AT_ONCE][80];
    static const char *lines[AT_ONCE];
    for (int again = 0; again < abs(times); again++)
        for (int v = from; v < to; v += AT_ONCE) {
            for (int i = 0; i < AT_ONCE; i++) {
                snprintf(text[i], sizeof text[i], "%sa|1970-01-01 00:00:%s|%d", times < 0 ? "-" : "", time, v + i);
                lines[i] = text[i];
            }
            harness_ok(h, harness_try_rows(h, 0, lines, AT_ONCE));
        }
}

/* Windows that have a bucket from before there were slices, and slices with more values than go into it in one call:
 * those of the slice where a call has stopped go in once, also where they are taken back from what the bucket has
 * twice. */
static void sets_that_stop_half_way_go_into_a_bucket_once(void **state) {
    enum { VALUES = 9000 };
    _Static_assert(VALUES < (int)CK_WINDOW_MERGED_ROWS && 2 * VALUES > (int)CK_WINDOW_MERGED_ROWS,
                   "it stops in the second slice");
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; t TIMESTAMP(6); v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_window_agg,
                  "{\"window\":{\"kind\":\"hop\",\"time\":1,\"size_us\":8000000,\"slide_us\":1000000,\"offset_us\":0},"
                  "\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"distinct\":true,\"arg\":2,\"arg_text\":\"v\"},"
                  "{\"fn\":\"min\",\"arg\":2,\"arg_text\":\"v\"}]}",
                  "k VARCHAR; s TIMESTAMP(6); e TIMESTAMP(6); w TIMESTAMP(6); n BIGINT; m BIGINT");
    ck_window_agg *op = h->self;
    assert_true(op->rolled.on && op->window.apart_us);
    op->window.slice_us = op->window.apart_us = 0; /* as an earlier build counted: into each window */
    put_values(h, "01.5", 0, VALUES, 2);
    harness_restart(h, 1);
    put_values(h, "00.5", VALUES, 2 * VALUES, 1);
    put_values(h, "01.5", 0, VALUES, -1);
    harness_end(h);
    assert_int_equal(h->line_count, 9);
    for (int end = 1; end <= 9; end++) {
        char want[120], first[32], last[32], moment[32];
        snprintf(want, sizeof want, "a|%s|%s|%s|%d|%d", text_of(end - 8, "", first), text_of(end, "", last),
                 text_of(end - 1, ".999", moment), end > 1 && end < 9 ? 2 * VALUES : VALUES, end == 1 ? VALUES : 0);
        assert_string_equal(h->lines[end - 1].text, want);
    }
    harness_restart(h, 2);
    assert_int_equal(harness_kept_rows(h, 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {T(windows_are_their_definition),
                                       T(sets_that_stop_half_way_go_into_a_bucket_once),
                                       T(sums_of_doubles_do_not_depend_on_what_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
