/* The watermark of a source: what splits hold it back, what times move it. */
#include "connector/event_time.h"

#include <yyjson.h>

#include "base/json.h"
#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

static int64_t told;
static bool told_idle;
static unsigned tellings;
static ck_status keep_watermark(ck_op_ctx *ctx, int64_t value, bool idle) {
    (void)ctx;
    told = value;
    told_idle = idle;
    tellings++;
    return CK_OK;
}

typedef struct under_test {
    harness *h;
    ck_event_time t;
} under_test;

static void begin(under_test *u, harness *h, const char *type, const char *params) {
    struct yyjson_doc *doc;
    const ck_event_time_spec *spec;
    u->h = h;
    harness_input(h, type, CK_MODE_APPEND);
    h->spec.schema = h->inputs[0].schema;
    harness_context(h);
    h->ctx.emit_watermark_fn = keep_watermark;
    told = CK_WATERMARK_MIN;
    told_idle = false;
    tellings = 0;
    harness_ok(h, ck_json_read(&h->plan, ck_view_of(params), &doc, &h->error));
    harness_ok(h,
               ck_event_time_read(&h->plan, &h->spec, h->inputs[0].schema, yyjson_doc_get_root(doc), &spec, &h->error));
    harness_ok(h, ck_event_time_init(&u->t, spec, &h->spec, &h->plan, h->mem, &h->error));
}
static uint32_t split(under_test *u, int64_t max_us) {
    uint32_t clock;
    harness_ok(u->h, ck_event_time_add(&u->t, "a split", max_us, false, &clock, &u->h->error));
    return clock;
}
static void see(under_test *u, uint32_t clock, const char *const *rows, uint32_t n) {
    ck_batch *b = harness_batch(u->h, 0, rows, n);
    harness_ok(u->h, ck_event_time_see(&u->t, clock, b, &u->h->ctx));
    ck_batch_unref(&b);
    harness_ok(u->h, ck_event_time_say(&u->t, &u->h->ctx));
    harness_end_call(u->h);
}
#define SEE(u, clock, ...)                                                                                             \
    see(u, clock, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

#define PLAIN "{\"expr\":{\"col\":0,\"type\":\"TIMESTAMP(6)\",\"null\":true},\"lag_us\":2000,\"idle_us\":1000000}"

static void the_slowest_split_decides(void **state) {
    under_test u;
    begin(&u, &((fixture *)*state)->h, "t TIMESTAMP(6)", PLAIN);
    uint32_t a = split(&u, INT64_MIN), b = split(&u, INT64_MIN);
    SEE(&u, a, "5000000", "9000000", "7000000");
    assert_int_equal(tellings, 0); /* b has not started */
    SEE(&u, b, "4000500");
    assert_int_equal(told, 3998000 - 1);
    SEE(&u, b, "4000000"); /* older rows take nothing back */
    assert_int_equal(told, 3998000 - 1);
    ck_event_time_finish(&u.t, b);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 8998000 - 1);
    ck_event_time_finish(&u.t, a);
    unsigned before = tellings;
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(tellings, before); /* END says it */
    ck_event_time_destroy(&u.t);
}

static ck_clock_note noted;
static void keep_note(ck_op_ctx *ctx, const ck_clock_note *note) {
    (void)ctx;
    noted = *note;
}

static void the_split_that_holds_the_watermark_is_named(void **state) {
    under_test u;
    int64_t until = INT64_MAX;
    uint32_t a, b;
    begin(&u, &((fixture *)*state)->h, "t TIMESTAMP(6)", PLAIN);
    u.h->ctx.note_clock_fn = keep_note;
    harness_ok(u.h, ck_event_time_add(&u.t, "a", INT64_MIN, false, &a, &u.h->error));
    harness_ok(u.h, ck_event_time_add(&u.t, "b", INT64_MIN, false, &b, &u.h->error));
    SEE(&u, a, "9000000");
    assert_string_equal(noted.holder, "b");
    assert_true(noted.holder_us == INT64_MIN && noted.watermark_us == CK_WATERMARK_MIN && noted.splits == 2);
    SEE(&u, b, "12000000");
    assert_string_equal(noted.holder, "a");
    assert_true(noted.holder_us == 9000000 && noted.watermark_us == 8998000 - 1 && noted.idle_splits == 0);
    ck_event_time_empty(&u.t, a, 50, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_true(strcmp(noted.holder, "a") == 0 && noted.holder_empty_us == 50);
    ck_event_time_empty(&u.t, a, 1000050, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_true(strcmp(noted.holder, "b") == 0 && strcmp(noted.idle, "a") == 0 && noted.idle_empty_us == 50);
    assert_true(noted.idle_splits == 1 && noted.watermark_us == 11998000 - 1);
    ck_event_time_finish(&u.t, b);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_true(noted.holder == NULL && noted.splits == 1);
    ck_event_time_finish(&u.t, a);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_true(noted.idle == NULL && noted.splits == 0);
    ck_event_time_destroy(&u.t);
}

/* Who was not looked at for long finds them idle together: the result is that of one look after the other. */
static void splits_that_are_idle_at_once_leave_one_after_the_other(void **state) {
    under_test u;
    begin(&u, &((fixture *)*state)->h, "t TIMESTAMP(6)", PLAIN);
    uint32_t a = split(&u, INT64_MIN), b = split(&u, INT64_MIN);
    int64_t until = INT64_MAX;
    ck_event_time_empty(&u.t, b, 0, &until); /* which never has a row */
    SEE(&u, a, "5000000");
    ck_event_time_empty(&u.t, a, 10, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, CK_WATERMARK_MIN);
    ck_event_time_empty(&u.t, a, 9000000, &until);
    ck_event_time_empty(&u.t, b, 9000000, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 4998000 - 1);
    assert_true(told_idle);
    ck_event_time_destroy(&u.t);
}

static void idle_splits_leave_and_return(void **state) {
    under_test u;
    int64_t until = INT64_MAX;
    begin(&u, &((fixture *)*state)->h, "t TIMESTAMP(6)", PLAIN);
    uint32_t a = split(&u, INT64_MIN), b = split(&u, INT64_MIN);
    SEE(&u, a, "9000000");
    ck_event_time_empty(&u.t, b, 50, &until);
    assert_int_equal(until, 1000050);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(tellings, 0);
    ck_event_time_empty(&u.t, b, 1000050, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 8998000 - 1);
    ck_event_time_empty(&u.t, a, 1, &until);
    ck_event_time_empty(&u.t, a, 1000001, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_true(told_idle);
    assert_int_equal(told, 8998000 - 1);
    SEE(&u, b, "1000000"); /* back, and time does not go back */
    assert_false(told_idle);
    assert_int_equal(told, 8998000 - 1);
    SEE(&u, a, "20000000");
    SEE(&u, b, "12000000");
    assert_int_equal(told, 11998000 - 1);
    ck_event_time_destroy(&u.t);
}

static void times_that_are_none_move_nothing(void **state) {
    under_test u;
    begin(&u, &((fixture *)*state)->h, "t TIMESTAMP(6)", PLAIN);
    uint32_t a = split(&u, INT64_MIN);
    SEE(&u, a, "NULL", "9223372036854775807", "\\-9223372036854775807", "253402300800000000");
    assert_int_equal(tellings, 0);
    assert_int_equal(harness_counter(u.h, "bad_times"), 4);
    SEE(&u, a, "\\-5000500");
    assert_int_equal(told, -5003000 - 1);
    assert_int_equal(harness_counter(u.h, "bad_times"), 4);
    ck_event_time_destroy(&u.t);
}

static void milliseconds_and_what_is_stored(void **state) {
    under_test u;
    begin(&u, &((fixture *)*state)->h, "t BIGINT",
          "{\"expr\":{\"col\":0,\"type\":\"BIGINT\",\"null\":true},\"lag_us\":0,\"idle_us\":0}");
    uint32_t a = split(&u, 70000000);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 69999999);
    SEE(&u, a, "60000", "9223372036854775807", "80000");
    assert_int_equal(told, 79999999);
    assert_int_equal(harness_counter(u.h, "bad_times"), 1);
    assert_int_equal(ck_event_time_max(&u.t, a), 80000000);
    ck_event_time_destroy(&u.t);
}

/* ---- random splits, times, pauses and ends against a model ---- */

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

typedef struct model_split {
    bool started, finished;
    int64_t max_ms, last_us, since_us; /* when it had something last, monotonic */
    bool empty;              /* polled in vain since */
} model_split;

static void one_history(harness *h, uint64_t case_seed) {
    under_test u;
    model_split m[5] = {{0}};
    int64_t now = 0, want = CK_WATERMARK_MIN;
    seed = case_seed;
    begin(&u, h, "t TIMESTAMP(6)", PLAIN);
    int n = 1 + pick(5);
    for (int i = 0; i < n; i++) (void)split(&u, INT64_MIN);
    for (int step = 0; step < 60; step++) {
        int i = pick(n), what = pick(10);
        int64_t until = INT64_MAX;
        if (m[i].finished) continue;
        now += pick(700000);
        if (what == 0) {
            m[i].finished = true;
            ck_event_time_finish(&u.t, (uint32_t)i);
        } else if (what < 5) {
            char text[3][32];
            const char *rows[3] = {text[0], text[1], text[2]};
            for (int k = 0; k < 3; k++) {
                int64_t ms = step * 100 + pick(400) - 2000;
                snprintf(text[k], sizeof text[k], "\\%lld", (long long)ms * 1000);
                if (pick(6) == 0) {
                    snprintf(text[k], sizeof text[k], "NULL");
                } else if (!m[i].started || ms > m[i].max_ms) {
                    m[i].max_ms = ms;
                    m[i].started = true;
                }
            }
            m[i].empty = false;
            see(&u, (uint32_t)i, rows, 3);
        } else {
            if (!m[i].empty) m[i].last_us = m[i].since_us = now;
            m[i].empty = true;
            ck_event_time_empty(&u.t, (uint32_t)i, now, &until);
            bool over = now - m[i].last_us >= 1000000;
            assert_int_equal(until, over ? INT64_MAX : m[i].last_us + 1000000);
            if (over) m[i].last_us = INT64_MIN / 2; /* idle until it has something */
        }
        harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
        bool held = false, active = false, idle = false;
        int64_t least = INT64_MAX, since_us = -1, left_ms = INT64_MAX;
        for (int k = 0; k < n; k++) {
            if (m[k].finished) continue;
            bool is_idle = m[k].empty && m[k].last_us == INT64_MIN / 2;
            idle |= is_idle;
            if (m[k].since_us > since_us) left_ms = INT64_MAX;
            if (is_idle && m[k].since_us >= since_us) {
                since_us = m[k].since_us;
                if (!m[k].started) left_ms = INT64_MIN;
                if (m[k].started && m[k].max_ms < left_ms) left_ms = m[k].max_ms;
            }
            if (is_idle) continue;
            active = true;
            held |= !m[k].started;
            if (m[k].started && m[k].max_ms < least) least = m[k].max_ms;
        }
        if (active && !held && (least - 2) * 1000 - 1 > want) want = (least - 2) * 1000 - 1;
        bool left = !active && idle && left_ms != INT64_MIN;
        if (left && (left_ms - 2) * 1000 - 1 > want) want = (left_ms - 2) * 1000 - 1;
        if (told != want)
            fail_msg("seed %llu step %d: %lld, not %lld", (unsigned long long)case_seed, step, (long long)told,
                     (long long)want);
        if (!held && (active || idle)) assert_int_equal(told_idle, !active);
    }
    ck_event_time_destroy(&u.t);
}

static void random_histories_of_splits(void **state) {
    fixture *f = *state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 300); s++) {
        one_history(&f->h, s);
        harness_destroy(&f->h);
        harness_init(&f->h, &f->proc.proc);
    }
}

/* A source that knows more than its rows say. */
static void what_the_source_knows_raises_it(void **state) {
    under_test u;
    begin(&u, &((fixture *)*state)->h, "t TIMESTAMP(6)", PLAIN);
    uint32_t a = split(&u, INT64_MIN), b = split(&u, INT64_MIN);
    int64_t until = INT64_MAX;
    SEE(&u, a, "5000000");
    ck_event_time_raise(&u.t, b, 4000000); /* a split without any row */
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 4000000 - 1);
    ck_event_time_raise(&u.t, b, 3000000); /* takes nothing back */
    ck_event_time_raise(&u.t, b, INT64_MAX);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 4000000 - 1);
    ck_event_time_raise(&u.t, b, 90000000); /* the other one holds it */
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_int_equal(told, 4998000 - 1);
    ck_event_time_empty(&u.t, a, 50, &until);
    ck_event_time_empty(&u.t, a, 1000050, &until);
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx)); /* which is idle */
    assert_int_equal(told, 90000000 - 1);
    assert_int_equal(ck_event_time_max(&u.t, b), 90002000); /* and is stored with the split */
    ck_event_time_raise(&u.t, a, 1000000);                  /* what knows something is not idle */
    harness_ok(u.h, ck_event_time_say(&u.t, &u.h->ctx));
    assert_false(u.t.clocks[a].idle);
    ck_event_time_destroy(&u.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(what_the_source_knows_raises_it),
        T(the_slowest_split_decides),       T(the_split_that_holds_the_watermark_is_named),
        T(idle_splits_leave_and_return),    T(splits_that_are_idle_at_once_leave_one_after_the_other),    T(times_that_are_none_move_nothing),
        T(milliseconds_and_what_is_stored), T(random_histories_of_splits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
