/* A top-N in windows: said when they are over, dropped then, late afterwards; one behaviour at a time, and random
 * histories against the definition. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define INPUT  "e TIMESTAMP(6); k VARCHAR; v BIGINT"
#define RANKED INPUT "; rank BIGINT NOT NULL"
#define BY_V                                                                                                           \
    "\"order\":[{\"col\":2,\"desc\":true,\"nulls_first\":false}],\"offset\":0,\"window_end\":0,\"partition\":[0,1],"

static void watermark(harness *h, int64_t us) { harness_ok(h, harness_event(h, 0, ck_event_watermark(us, false))); }
static int64_t at(const char *text) {
    int64_t us;
    bool zoned;
    assert_true(ck_parse_timestamp(ck_view_of(text), &us, &zoned));
    return us;
}

static void the_top_is_said_once_when_its_window_is_over(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    harness_start(h, &ck_op_top_n, "{" BY_V "\"limit\":2,\"rank\":\"row_number\",\"rank_column\":true}", RANKED);
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|1", "2020-01-01 00:02:00|a|9", "2020-01-01 00:01:00|a|3");
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|2", "2020-01-01 00:01:00|b|NULL", "NULL|a|8");
    harness_flush(h);
    watermark(h, at("2020-01-01 00:01:00") - 2);
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_counter(h, "bad_time_rows"), 1);
    watermark(h, at("2020-01-01 00:01:00") - 1);
    harness_net(h);
    HARNESS_EXPECT(h, "+2020-01-01 00:01:00|a|2|2", "+2020-01-01 00:01:00|a|3|1", "+2020-01-01 00:01:00|b|NULL|1");
    assert_int_equal(harness_kept_rows(h, 1), 1);
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|100", "2020-01-01 00:02:00|a|10");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    harness_end(h);
    harness_net(h);
    HARNESS_EXPECT(h, "+2020-01-01 00:02:00|a|10|1", "+2020-01-01 00:02:00|a|9|2");
    assert_int_equal(harness_kept_rows(h, 2), 0);
    assert_false(h->weighted);
}

static void a_restart_knows_what_is_due_and_what_is_late(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    harness_start(h, &ck_op_top_n, "{" BY_V "\"limit\":1,\"rank\":\"row_number\"}", NULL);
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|1", "2020-01-01 00:02:00|a|2", "2020-01-01 00:03:00|a|3");
    watermark(h, at("2020-01-01 00:01:00"));
    HARNESS_EXPECT(h, "+2020-01-01 00:01:00|a|1");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|7", "2020-01-01 00:02:00|a|1");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    watermark(h, at("2020-01-01 00:00:30")); /* time does not go back */
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|7");
    assert_int_equal(harness_counter(h, "late_rows"), 2);
    watermark(h, at("2020-01-01 00:02:00"));
    HARNESS_EXPECT(h, "+2020-01-01 00:02:00|a|2");
    harness_end(h);
    HARNESS_EXPECT(h, "+2020-01-01 00:03:00|a|3");
    assert_int_equal(harness_kept_rows(h, 2), 0);
}

static void what_changes_is_said_as_it_changes_and_goes_after_its_lateness(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_RETRACT);
    harness_start(h, &ck_op_top_n, "{" BY_V "\"lateness_us\":30000000,\"limit\":1,\"rank\":\"row_number\"}", NULL);
    HARNESS_ROWS(h, "2020-01-01 00:01:00|a|1", "2020-01-01 00:01:00|b|1", "2020-01-01 00:05:00|c|1");
    HARNESS_ROWS(h, "-2020-01-01 00:01:00|b|1"); /* its number is free for another */
    HARNESS_ROWS(h, "2020-01-01 00:09:00|d|4");
    watermark(h, at("2020-01-01 00:01:00"));
    harness_net(h);
    HARNESS_EXPECT(h, "+2020-01-01 00:01:00|a|1", "+2020-01-01 00:05:00|c|1", "+2020-01-01 00:09:00|d|4");
    HARNESS_ROWS(h, "-2020-01-01 00:01:00|a|1", "2020-01-01 00:01:00|a|2");
    watermark(h, at("2020-01-01 00:01:30") - 1);
    HARNESS_EXPECT(h, "-2020-01-01 00:01:00|a|1", "+2020-01-01 00:01:00|a|2");
    assert_int_equal(harness_kept_rows(h, 1), 2);
    HARNESS_ROWS(h, "-2020-01-01 00:01:00|a|2", "2020-01-01 00:01:00|a|3");
    assert_int_equal(harness_counter(h, "late_rows"), 2);
    watermark(h, at("2020-01-01 00:05:30"));
    assert_int_equal(harness_kept_rows(h, 2), 1);
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_kept_rows(h, 3), 0);
}

static void parameters_that_make_no_sense_are_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    static const char *const bad[] = {
        "{\"order\":[],\"limit\":1,\"rank\":\"row_number\",\"partition\":[0],\"window_end\":2}",
        "{\"order\":[],\"limit\":1,\"rank\":\"row_number\",\"partition\":[0,1],\"window_end\":1}",
        "{\"order\":[],\"limit\":1,\"rank\":\"row_number\",\"partition\":[0],\"window_end\":null}",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        assert_int_equal(harness_create(h, &ck_op_top_n, bad[i], NULL), CK_INVALID);
        assert_non_null(strstr(h->error.msg, "window_end"));
    }
}

/* ---- random histories ---- */

enum { ROWS = 400, MINUTES = 12 };

typedef struct row {
    int minute, key, v;
} row;

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

/* Rows before rows[i] in its partition, and how many different values they have. */
static void before(const row *rows, int n, int i, int *fewer, int *groups) {
    bool seen[64] = {0};
    *fewer = *groups = 0;
    for (int k = 0; k < n; k++) {
        if (rows[k].minute != rows[i].minute || rows[k].key != rows[i].key || rows[k].v <= rows[i].v) continue;
        ++*fewer;
        *groups += !seen[rows[k].v];
        seen[rows[k].v] = true;
    }
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static int expected(const row *rows, int n, int limit, int rank, char (*lines)[80]) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        int fewer, groups, same = 0;
        before(rows, n, i, &fewer, &groups);
        for (int k = 0; k < i; k++)
            same += rows[k].minute == rows[i].minute && rows[k].key == rows[i].key && rows[k].v == rows[i].v;
        int r = rank == 0 ? fewer + same + 1 : rank == 1 ? fewer + 1 : groups + 1;
        if (r <= limit)
            snprintf(lines[count++], 80, "1970-01-01 00:%02d:00|a key that is long, number %d|%d|%d", rows[i].minute,
                     rows[i].key, rows[i].v, r);
    }
    qsort(lines, (size_t)count, 80, by_text);
    return count;
}

static void one_history(uint64_t case_seed) {
    static row rows[ROWS + 64];
    static char text[64][80], want[ROWS + 64][80];
    static const char *const ranks[] = {"row_number", "rank", "dense_rank"};
    ck_test_proc proc;
    harness h;
    char params[500];
    int n = 0, top = 1, passed = -1;
    uint64_t late = 0;
    seed = case_seed;
    int limit = 1 + pick(4), rank = pick(3), keys = 1 + pick(4);
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, INPUT, CK_MODE_APPEND);
    snprintf(params, sizeof params, "{" BY_V "\"limit\":%d,\"rank\":\"%s\",\"rank_column\":true}", limit, ranks[rank]);
    harness_start(&h, &ck_op_top_n, params, RANKED);
    for (int batch = 1; n < ROWS; batch++) {
        const char *lines[64];
        int count = 1 + pick(40);
        for (int i = 0; i < count; i++) {
            row r = {top - pick(3) > 0 ? top - pick(3) : 1, pick(keys), pick(20)};
            if (r.minute < 1) r.minute = 1;
            snprintf(text[i], 80, "1970-01-01 00:%02d:00|a key that is long, number %d|%d", r.minute, r.key, r.v);
            lines[i] = text[i];
            if (r.minute <= passed)
                late++;
            else
                rows[n++] = r;
        }
        harness_ok(&h, harness_try_rows(&h, 0, lines, (uint32_t)count));
        if (pick(3) == 0 && top < MINUTES) top++;
        if (pick(4) == 0 && top - 2 > passed) {
            passed = top - 2;
            size_t said = h.line_count;
            watermark(&h, passed * 60000000LL - 1);
            for (size_t i = said; i < h.line_count; i++) assert_true(atoi(h.lines[i].text + 14) <= passed);
        }
        if (pick(5) == 0) harness_restart(&h, (uint64_t)batch);
    }
    harness_end(&h);
    assert_int_equal(harness_counter(&h, "late_rows"), late);
    assert_int_equal(harness_kept_rows(&h, 1000), 0);
    qsort(h.lines, h.line_count, sizeof *h.lines, harness_line_order);
    int count = expected(rows, n, limit, rank, want);
    if (h.line_count != (size_t)count)
        fail_msg("seed %llu: %zu rows, not %d", (unsigned long long)case_seed, h.line_count, count);
    for (int i = 0; i < count; i++)
        if (strcmp(h.lines[i].text, want[i]) != 0)
            fail_msg("seed %llu: got %s, want %s", (unsigned long long)case_seed, h.lines[i].text, want[i]);
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_give_what_the_definition_says(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 300); s++)
        one_history(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_top_is_said_once_when_its_window_is_over),
        T(a_restart_knows_what_is_due_and_what_is_late),
        T(what_changes_is_said_as_it_changes_and_goes_after_its_lateness),
        T(parameters_that_make_no_sense_are_refused),
        cmocka_unit_test(random_histories_give_what_the_definition_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
