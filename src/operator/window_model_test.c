/* Windows against a weighted multiset: random rows of a few keys, out of order, late and taken back, in batches,
 * flushes and restarts, with and without allowed lateness, with watermarks and without any until the end. After each
 * step what has been said, netted, is what a naive aggregation says of the windows that are over. */
#include "operator/operators.h"

#include "operator/harness_test_support.h"
#include "operator/window_int.h"
#include "os/test_proc.h"

enum { KEYS = 3, ENDS = 200, ROWS_MAX = 1200, BATCH = 24, VALUES = 6, SECONDS = 600 };

typedef struct row {
    int key, seconds, value; /* value -1: NULL */
    bool gone;
} row;

typedef struct window { /* of a key and an end: how often each value is in it; [VALUES]: NULL */
    int of[VALUES + 1];
} window;

/* All: with DISTINCT; sums with it are what a hop of many slides takes out of its windows again. */
typedef enum says { SAYS_ALL, SAYS_SUMS, SAYS_NO_SETS, SAYS_SUMS_AND_SETS } says;

typedef struct shape {
    const char *kind;
    int size, slide;
} shape;
static const shape shapes[] = {{"tumble", 20, 20}, {"hop", 30, 10},      {"hop", 40, 5}, {"cumulate", 40, 10},
                               {"hop", 5, 10},     {"attached", 20, 20}, {"hop", 85, 5}};

static row rows[ROWS_MAX];
static window windows[KEYS][ENDS]; /* ends at 5 * index seconds */
static int row_count, lateness, until;

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

static bool is_in(const shape *s, int seconds, int end) {
    bool grows = strcmp(s->kind, "cumulate") == 0;
    int from = grows ? (end - 1) / s->size * s->size : end - s->size;
    return (grows ? end : from) % s->slide == 0 && from <= seconds && seconds < end;
}
static int start_of(const shape *s, int end) {
    return strcmp(s->kind, "cumulate") == 0 ? (end - 1) / s->size * s->size : end - s->size;
}

/* Into all windows it is in that are not closed. */
static void apply(const shape *s, const row *r, int weight) {
    for (int e = 1; e < ENDS; e++)
        if (is_in(s, r->seconds, 5 * e) && 5 * e + lateness > until)
            windows[r->key][e].of[r->value < 0 ? VALUES : r->value] += weight;
}

static const char *time_text(int seconds, const char *behind, char *out, size_t room) {
    int abs = seconds < 0 ? seconds + 86400 : seconds;
    snprintf(out, room, "%s %02d:%02d:%02d%s", seconds < 0 ? "1969-12-31" : "1970-01-01", abs / 3600, abs / 60 % 60,
             abs % 60, behind);
    return out;
}

/* What the window says; false: it has no rows. */
static bool line_of(const shape *s, int key, int e, says what, char *out, size_t room) {
    const window *w = &windows[key][e];
    char a[40], b[40], c[40], sum_text[16] = "NULL", least[16] = "NULL", greatest[16] = "NULL", list[1000] = "";
    int n = w->of[VALUES], values = 0, sum = 0, distinct = 0, sum_distinct = 0;
    size_t at = 0;
    for (int v = 0; v < VALUES; v++) {
        if (w->of[v]) snprintf(greatest, sizeof greatest, "%d", v);
        if (w->of[v] && !values) snprintf(least, sizeof least, "%d", v);
        values += w->of[v];
        sum += v * w->of[v];
        distinct += w->of[v] > 0;
        sum_distinct += w->of[v] > 0 ? v : 0;
        for (int i = 0; i < w->of[v]; i++)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%d", at ? "/" : "", v);
    }
    n += values;
    if (n == 0) return false;
    if (values) snprintf(sum_text, sizeof sum_text, "%d", sum);
    int end = 5 * e;
    size_t done = (size_t)snprintf(out, room, "a key longer than twelve bytes %d|%s|%s|%s|%d|%s", key,
                                   time_text(start_of(s, end), "", a, sizeof a), time_text(end, "", b, sizeof b),
                                   time_text(end - 1, ".999", c, sizeof c), n, sum_text);
    char set[16] = "";
    if (what == SAYS_ALL) snprintf(set, sizeof set, "|%d", distinct);
    if (what == SAYS_SUMS_AND_SETS && values)
        snprintf(out + done, room - done, "|%d|%d", distinct, sum_distinct);
    else if (what == SAYS_SUMS_AND_SETS)
        snprintf(out + done, room - done, "|0|NULL");
    else if (what != SAYS_SUMS)
        snprintf(out + done, room - done, "|%s|%s%s|%s|%s", least, greatest, set, values ? list : "NULL",
                 w->of[VALUES] ? "NULL" : greatest);
    return true;
}

static void check(harness *h, const shape *s, says what) {
    harness_line *kept = calloc(ROWS_MAX * 4, sizeof *kept);
    size_t n;
    harness_net(h);
    n = h->line_count;
    assert_true(n < ROWS_MAX * 4);
    for (size_t k = 0; k < n; k++) kept[k] = (harness_line){strdup(h->lines[k].text), h->lines[k].weight};
    for (int key = 0; key < KEYS; key++)
        for (int e = 1; e < ENDS; e++) {
            char line[1500];
            size_t k = 0;
            if (5 * e > until || !line_of(s, key, e, what, line, sizeof line)) continue;
            while (k < h->line_count && strcmp(h->lines[k].text, line) != 0) k++;
            if (k == h->line_count || h->lines[k].weight != 1) {
                for (size_t i = 0; i < n; i++) print_error("  %+d %s\n", kept[i].weight, kept[i].text);
                fail_msg("until %d: no %s", until, line);
            }
            h->lines[k].weight = 0;
        }
    for (size_t k = 0; k < h->line_count; k++)
        if (h->lines[k].weight) fail_msg("until %d: %d too many of %s", until, h->lines[k].weight, h->lines[k].text);
    harness_forget_lines(h);
    for (size_t k = 0; k < n; k++) {
        harness_keep(h, kept[k].text, kept[k].weight);
        free(kept[k].text);
    }
    free(kept);
}

/* A batch of rows about `top`, with some that leave again. */
static void feed(harness *h, const shape *s, bool retract, int top, int n) {
    static char text[BATCH][160];
    const char *lines[BATCH];
    bool attached = strcmp(s->kind, "attached") == 0;
    for (int i = 0; i < n; i++) {
        char a[40], b[40], v[16] = "NULL";
        row *r = &rows[row_count];
        bool leaves = retract && row_count && pick(5) < 2;
        if (leaves) r = &rows[pick(row_count)];
        leaves = leaves && !r->gone;
        if (!leaves) {
            r = &rows[row_count++];
            *r = (row){pick(KEYS), top - pick(70), pick(VALUES + 1) - 1, false};
            if (r->seconds < 0) r->seconds = 0;
        }
        r->gone = leaves;
        apply(s, r, leaves ? -1 : 1);
        if (r->value >= 0) snprintf(v, sizeof v, "%d", r->value);
        int end = r->seconds / s->size * s->size + s->size;
        if (attached)
            snprintf(text[i], sizeof text[i], "%ca key longer than twelve bytes %d|%s|%s|%s|%s", leaves ? '-' : '+',
                     r->key, time_text(end - s->size, "", a, sizeof a), time_text(end, "", b, sizeof b), v, v);
        else
            snprintf(text[i], sizeof text[i], "%ca key longer than twelve bytes %d|%s|%s|%s", leaves ? '-' : '+',
                     r->key, time_text(r->seconds, "", a, sizeof a), v, v);
        lines[i] = text[i];
    }
    ck_batch *b = harness_batch(h, 0, lines, (uint32_t)n);
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    ck_batch_unref(&b);
}

static void params_of(const shape *s, says what, char *out, size_t room) {
    bool attached = strcmp(s->kind, "attached") == 0;
    int v = attached ? 3 : 2;
    char of[200], more[600] = "";
    if (attached)
        snprintf(of, sizeof of, "{\"kind\":\"attached\",\"start\":1,\"end\":2}");
    else
        snprintf(of, sizeof of,
                 "{\"kind\":\"%s\",\"time\":1,\"size_us\":%d000000,\"slide_us\":%d000000,\"offset_us\":0}", s->kind,
                 s->size, s->slide);
    char set[100] = "";
    if (what == SAYS_ALL)
        snprintf(set, sizeof set, "{\"fn\":\"count\",\"arg\":%d,\"arg_text\":\"v\",\"distinct\":true},", v);
    if (what == SAYS_SUMS_AND_SETS)
        snprintf(more, sizeof more,
                 ",{\"fn\":\"count\",\"arg\":%d,\"arg_text\":\"v\",\"distinct\":true},"
                 "{\"fn\":\"sum\",\"arg\":%d,\"arg_text\":\"v\",\"distinct\":true}",
                 v, v);
    else if (what != SAYS_SUMS)
        snprintf(more, sizeof more,
                 ",{\"fn\":\"min\",\"arg\":%d,\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":%d,\"arg_text\":\"v\"},"
                 "%s"
                 "{\"fn\":\"string_agg\",\"arg\":%d,\"arg_text\":\"s\",\"separator\":\"/\"},"
                 "{\"fn\":\"last_value\",\"arg\":%d,\"arg_text\":\"s\",\"order_text\":\"v\","
                 "\"order\":[{\"col\":%d,\"desc\":false,\"nulls_first\":false}]}",
                 v, v, set, v + 1, v + 1, v);
    snprintf(out, room,
             "{\"window\":%s,\"keys\":[0],\"lateness_us\":%lld,\"aggregates\":[{\"fn\":\"count\",\"arg\":null},"
             "{\"fn\":\"sum\",\"arg\":%d,\"arg_text\":\"v\"}%s]}",
             of, lateness * 1000000LL, v, more);
}

/* Lists of values are forgotten, and lose what is in them twice, after few of them. */
static void hurry(harness *h, bool hurried) {
    ck_window_agg *op = h->self;
    if (hurried) op->lists_most = 4, op->lists_again = 0;
}

static void one_case(uint64_t case_seed) {
    ck_test_proc proc;
    harness h;
    char params[1600], output[300];
    seed = case_seed;
    const shape *s = &shapes[pick(7)];
    bool retract = pick(2), bounded = pick(4) == 0, attached = strcmp(s->kind, "attached") == 0;
    says what = (says)pick(4);
    lateness = (int[]){0, 0, 5, 30}[pick(4)];
    memset(windows, 0, sizeof windows);
    row_count = until = 0;
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h,
                  attached ? "k VARCHAR; ws TIMESTAMP(6); we TIMESTAMP(6); v BIGINT; s VARCHAR"
                           : "k VARCHAR; t TIMESTAMP(6); v BIGINT; s VARCHAR",
                  retract ? CK_MODE_RETRACT : CK_MODE_APPEND);
    params_of(s, what, params, sizeof params);
    snprintf(output, sizeof output,
             "k VARCHAR; ws TIMESTAMP(6); we TIMESTAMP(6); wt TIMESTAMP(6); n BIGINT; s BIGINT%s",
             what == SAYS_SUMS            ? ""
             : what == SAYS_SUMS_AND_SETS ? "; d BIGINT; q BIGINT"
             : what == SAYS_ALL           ? "; m BIGINT; x BIGINT; d BIGINT; l VARCHAR; e VARCHAR"
                                          : "; m BIGINT; x BIGINT; l VARCHAR; e VARCHAR");
    harness_start(&h, &ck_op_window_agg, params, output);
    bool hurried = pick(2);
    hurry(&h, hurried);
    for (int step = 0, top = 30; step < 40 && top < SECONDS; step++, top += pick(30)) {
        feed(&h, s, retract, top, 1 + pick(BATCH));
        if (pick(2)) harness_flush(&h);
        if (!bounded && pick(2) && top - 30 > until) {
            until = top - 30;
            harness_ok(&h, harness_event(&h, 0, ck_event_watermark(until * 1000000LL - 1, false)));
        }
        if (!lateness)
            for (size_t i = 0; i < h.line_count; i++) assert_true(h.lines[i].weight > 0); /* said once */
        check(&h, s, what);
        if (pick(8) == 0) harness_restart(&h, (uint64_t)step + 1);
        hurry(&h, hurried);
    }
    until = 3600 * 24;
    harness_end(&h);
    check(&h, s, what);
    assert_int_equal(harness_kept_rows(&h, 1000), 0); /* nothing is left behind, nor beside it */
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_give_the_windows(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 300); s++) {
        if (only) printf("seed %llu\n", (unsigned long long)s);
        one_case(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_give_the_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
