/* State that is forgotten when it was not written for long enough: GROUP BY, DISTINCT, top-N, keeping one row, joins,
 * EXCEPT; with a clock that is held, over restarts that turn it on, off and to another time. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define MINUTE 60000000LL
#define COUNTS(more)                                                                                                   \
    "{\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":null,\"filter\":null,\"distinct\":false}]" more "}"
#define HOUR      ",\"ttl_us\":3600000000"
#define TWO_HOURS ",\"ttl_us\":7200000000"

static uint64_t rows_of(harness *h, const char *slot) {
    ck_state_mark *mark;
    const ck_marked_slot *slots;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t count;
    uint64_t n = 0;
    harness_ok(h, ck_state_mark_take(h->store, 1000000, &mark, &h->error));
    (void)ck_state_mark_slots(mark, &slots);
    harness_ok(h, ck_mark_scan_new(mark, CK_MARK_BASE, &scan, &h->error));
    for (;;) {
        harness_ok(h, ck_mark_scan_next(scan, &rows, &count, &h->error));
        if (count == 0) break;
        for (uint32_t i = 0; i < count; i++) {
            ck_view key = {rows[i].key.p + 1, rows[i].key.n - 1};
            n += key.n > strlen(slot) && memcmp(key.p, slot, strlen(slot)) == 0 && key.p[strlen(slot)] == '|';
        }
    }
    ck_mark_scan_free(scan);
    ck_state_mark_release(mark);
    ck_state_aborted(h->store, 1000000);
    return n;
}

static void feed(harness *h, int first, int count, int step) {
    enum { PIECE = 4000 };
    static char text[PIECE][32];
    static const char *lines[PIECE];
    for (int done = 0; done < count;) {
        int n = 0;
        for (; n < PIECE && done < count; n++, done++) {
            snprintf(text[n], sizeof text[n], "%d", first + done * step);
            lines[n] = text[n];
        }
        harness_ok(h, harness_try_rows(h, 0, lines, (uint32_t)n));
        harness_flush(h);
    }
}

static void an_hour_after_it_was_written_a_group_is_forgotten(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, COUNTS(HOUR), "k BIGINT; n BIGINT NOT NULL");
    h->now_us = 0;
    feed(h, 0, 100000, 1);
    h->now_us = 30 * MINUTE;
    feed(h, 0, 1000, 100);
    harness_forget_lines(h);
    h->now_us = 59 * MINUTE;
    feed(h, 7, 1, 1); /* something comes: 100,000 of 100,000 are there */
    assert_int_equal(rows_of(h, "agg"), 100000);
    HARNESS_EXPECT(h, "-7|1", "+7|2");
    harness_restart(h, 1); /* and still are */
    assert_int_equal(rows_of(h, "agg"), 100000);
    h->now_us = 61 * MINUTE;
    feed(h, 8, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 1002); /* what was touched, 7, and 8 anew */
    assert_int_equal(harness_counter(h, "expired_entries"), 100000 - 1001);
    HARNESS_EXPECT(h, "+8|1"); /* nothing is taken back: nobody knows it any more */
    feed(h, 100, 1, 1);
    HARNESS_EXPECT(h, "-100|2", "+100|3");
}

static void nothing_comes_back_with_a_restore(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, COUNTS(HOUR), "k BIGINT; n BIGINT NOT NULL");
    feed(h, 0, 10, 1);
    harness_forget_lines(h);
    h->now_us = 61 * MINUTE;
    harness_restart(h, 1); /* the snapshot has them: nobody had looked since */
    feed(h, 3, 1, 1);
    HARNESS_EXPECT(h, "+3|1");
    assert_int_equal(rows_of(h, "agg"), 1);
}

static void on_off_and_changed_between_runs(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, COUNTS(""), "k BIGINT; n BIGINT NOT NULL");
    feed(h, 0, 10, 1);
    h->now_us = 600 * MINUTE;
    h->spec.params = COUNTS(HOUR); /* on: what is there counts from now */
    harness_restart(h, 1);
    feed(h, 0, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 10);
    h->now_us = 630 * MINUTE;
    feed(h, 1, 1, 1);
    h->spec.params = COUNTS(TWO_HOURS); /* longer: from when each was written */
    harness_restart(h, 2);
    h->now_us = 690 * MINUTE; /* an hour and a half after on */
    feed(h, 2, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 10);
    h->now_us = 721 * MINUTE;
    feed(h, 2, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 2); /* 1 and 2 */
    h->spec.params = COUNTS(HOUR);          /* shorter */
    harness_restart(h, 3);
    feed(h, 2, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 1);
    h->spec.params = COUNTS(""); /* off: for ever */
    harness_restart(h, 4);
    h->now_us = 100000 * MINUTE;
    feed(h, 5, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 2);
}

static void by_event_time_the_watermark_is_the_clock(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, COUNTS(HOUR ",\"ttl_time\":\"event\""), "k BIGINT; n BIGINT NOT NULL");
    feed(h, 0, 5, 1); /* before any watermark: counts from the first one */
    h->ctx.watermark = 10 * MINUTE;
    feed(h, 0, 1, 1);
    h->ctx.watermark = 69 * MINUTE;
    h->now_us = 1000 * MINUTE;
    feed(h, 1, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 5);
    h->ctx.watermark = 71 * MINUTE;
    feed(h, 2, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 2);
    h->ctx.watermark = 20 * MINUTE; /* a clock that goes back is waited for */
    feed(h, 3, 1, 1);
    assert_int_equal(rows_of(h, "agg"), 3);
}

/* Random writes and steps of a quarter of the time to live, against what each key's last write says. */
static void one_history(uint64_t seed) {
    enum { KEYS = 40 };
    int64_t last[KEYS], counts[KEYS];
    ck_test_proc proc;
    harness h;
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    harness_input(&h, "k BIGINT", CK_MODE_APPEND);
    harness_start(&h, &ck_op_group_agg, COUNTS(HOUR), "k BIGINT; n BIGINT NOT NULL");
    memset(counts, 0, sizeof counts);
    for (int step = 0; step < 60; step++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        int key = (int)((seed >> 33) % KEYS);
        if ((seed >> 50) % 3 == 0) h.now_us += 15 * MINUTE;
        if ((seed >> 55) % 7 == 0) harness_restart(&h, (uint64_t)step + 1);
        for (int k = 0; k < KEYS; k++)
            if (counts[k] && h.now_us - last[k] >= 60 * MINUTE) counts[k] = 0;
        feed(&h, key, 1, 1);
        counts[key]++;
        last[key] = h.now_us;
        uint64_t live = 0;
        for (int k = 0; k < KEYS; k++) live += counts[k] > 0;
        assert_int_equal(rows_of(&h, "agg"), live);
        char want[64];
        snprintf(want, sizeof want, "%d|%lld", key, (long long)counts[key]);
        assert_string_equal(h.lines[h.line_count - 1].text, want);
    }
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories(void **state) {
    (void)state;
    for (uint64_t s = 1; s <= 40; s++) one_history(s);
}

static void distinct_values_and_rows_kept_expire_too(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v VARCHAR", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, "{\"keys\":[0,1],\"aggregates\":[]" HOUR "}", NULL);
    HARNESS_ROWS(h, "1|a text that is longer than in place", "2|b", "1|a text that is longer than in place");
    h->now_us = 59 * MINUTE;
    HARNESS_ROWS(h, "2|b");
    h->now_us = 61 * MINUTE;
    HARNESS_ROWS(h, "1|a text that is longer than in place", "2|b");
    HARNESS_EXPECT(h, "+1|a text that is longer than in place", "+2|b", "+1|a text that is longer than in place");
}

#define TOP(limit, more)                                                                                               \
    "{\"partition\":[0],\"order\":[{\"col\":1,\"desc\":true,\"nulls_first\":false}],\"limit\":" limit                  \
    ",\"offset\":0,\"rank\":\"row_number\",\"rank_column\":false" HOUR more "}"

static void ranked_rows_expire(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_top_n, TOP("2", ""), NULL);
    HARNESS_ROWS(h, "1|10", "1|20", "1|30", "2|5");
    harness_flush(h);
    harness_forget_lines(h);
    h->now_us = 59 * MINUTE;
    HARNESS_ROWS(h, "1|15");
    harness_flush(h);
    HARNESS_EXPECT_NOTHING(h);
    h->now_us = 61 * MINUTE;
    harness_restart(h, 1);
    HARNESS_ROWS(h, "-2|5", "1|1"); /* the one it takes back is forgotten */
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|1"); /* behind 15, which was not said so far: what it pushed out is forgotten */
    assert_int_equal(harness_counter(h, "unmatched_rows"), 1);
    assert_int_equal(rows_of(h, "rows"), 2);
}

static void the_row_kept_of_a_key_expires(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_top_n, TOP("1", ""), NULL);
    HARNESS_ROWS(h, "1|10", "2|5");
    harness_flush(h);
    harness_forget_lines(h);
    h->now_us = 61 * MINUTE;
    HARNESS_ROWS(h, "1|3");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|3");
    assert_int_equal(rows_of(h, "row"), 1);
}

#define JOIN(kind)                                                                                                     \
    "{\"kind\":\"" kind                                                                                                \
    "\",\"left_keys\":[0],\"right_keys\":[0],\"null_safe\":[false],\"residual\":[],\"single\":false,"                  \
    "\"left_ttl_us\":3600000000,\"right_ttl_us\":7200000000}"

static void each_side_of_a_join_has_its_own(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_APPEND);
    harness_input(h, "k BIGINT; w VARCHAR", CK_MODE_RETRACT);
    harness_start(h, &ck_op_join, JOIN("inner"), "k BIGINT; v BIGINT; k2 BIGINT; w VARCHAR");
    const char *const right[] = {"1|one", "2|two"};
    HARNESS_ROWS(h, "1|10", "2|20");
    harness_ok(h, harness_try_rows(h, 1, right, 2));
    HARNESS_EXPECT(h, "+1|10|1|one", "+2|20|2|two");
    h->now_us = 61 * MINUTE;
    harness_restart(h, 1);
    const char *const back[] = {"-1|one", "1|uno"};
    harness_ok(h, harness_try_rows(h, 1, back, 2)); /* the left rows are forgotten */
    HARNESS_EXPECT_NOTHING(h);
    HARNESS_ROWS(h, "1|11", "2|21");
    HARNESS_EXPECT(h, "+1|11|1|uno", "+2|21|2|two");
    h->now_us = 121 * MINUTE;
    const char *const gone[] = {"-2|two", "2|zwei", "-2|zwei",
                                "-2|zwei"}; /* the first is forgotten, the last was none */
    harness_ok(h, harness_try_rows(h, 1, gone, 4));
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_counter(h, "unmatched_rows"), 2);
    HARNESS_ROWS(h, "1|12", "2|22");
    HARNESS_EXPECT(h, "+1|12|1|uno");
}

/* Rows of both sides are one entry: what either side writes keeps it. */
static void rows_of_either_side_of_except_expire(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT", CK_MODE_APPEND);
    harness_input(h, "k BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_set_op, "{\"op\":\"except\",\"all\":false" HOUR "}", NULL);
    const char *const right[] = {"1", "3"}, *const again[] = {"3"}, *const back[] = {"-1", "-3"};
    HARNESS_ROWS(h, "1", "2", "3");
    harness_ok(h, harness_try_rows(h, 1, right, 2));
    HARNESS_EXPECT(h, "+1", "+2", "+3", "-1", "-3");
    h->now_us = 50 * MINUTE;
    harness_ok(h, harness_try_rows(h, 1, again, 1));
    harness_restart(h, 1);
    h->now_us = 70 * MINUTE;
    harness_ok(h, harness_try_rows(h, 1, back, 2)); /* 1 is forgotten; 3 stands there once more */
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_counter(h, "unmatched_rows"), 1);
    harness_ok(h, harness_try_rows(h, 1, back + 1, 1));
    HARNESS_EXPECT(h, "+3");
    HARNESS_ROWS(h, "2", "3");
    HARNESS_EXPECT(h, "+2"); /* anew */
    assert_int_equal(rows_of(h, "rows"), 2);
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_RETRACT);
    h->spec.type = "top_n";
    h->spec.params = TOP("2", "");
    h->spec.schema = h->inputs[0].schema;
    h->keep_batches = true;
    h->desc = &ck_op_top_n;
    const char *const first[] = {"1|1", "1|2", "2|1", "2|3"}, *const then[] = {"-1|2", "1|5"};
    ck_batch *batches[2] = {harness_batch(h, 0, first, 4), harness_batch(h, 0, then, 2)};
    for (uint64_t n = 1;; n++) {
        harness_context(h);
        h->error = CK_ERROR_INIT;
        h->now_us = 0;
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = h->desc->create(&h->spec, h->mem, &h->self, &h->error);
        if (s == CK_OK) s = h->desc->op->open(h->self, &h->ctx);
        for (uint32_t i = 0; s == CK_OK && i < 4; i++) {
            ck_event ev = i % 2 ? ck_event_flush(i) : ck_event_batch(batches[i / 2]);
            while ((s = h->desc->op->on_event(h->self, 0, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
            harness_end_call(h);
            h->now_us += 61 * MINUTE;
        }
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        if (h->self) harness_close(h);
        harness_forget_lines(h);
        ck_state_store_free(h->store);
        h->store = NULL;
        if (s != (fired ? CK_NOMEM : CK_OK)) fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
        if (!fired) break;
    }
    for (uint32_t i = 0; i < 2; i++) ck_batch_unref(&batches[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {T(an_hour_after_it_was_written_a_group_is_forgotten),
                                       T(nothing_comes_back_with_a_restore),
                                       T(on_off_and_changed_between_runs),
                                       T(by_event_time_the_watermark_is_the_clock),
                                       cmocka_unit_test(random_histories),
                                       T(distinct_values_and_rows_kept_expire_too),
                                       T(ranked_rows_expire),
                                       T(the_row_kept_of_a_key_expires),
                                       T(each_side_of_a_join_has_its_own),
                                       T(rows_of_either_side_of_except_expire),
                                       T(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
