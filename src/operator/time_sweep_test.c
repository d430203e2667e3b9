/* The operators of time with every allocation failing in turn, over restarts in the middle of a window, and at other
 * parallelisms. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define INPUT "k VARCHAR; t TIMESTAMP(6); v BIGINT; s VARCHAR"
#define CALLS                                                                                                          \
    "\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":null},{\"fn\":\"avg\",\"arg\":2,\"arg_text\":\"v\"},"      \
    "{\"fn\":\"max\",\"arg\":3,\"arg_text\":\"s\"}"
#define DISTINCT ",{\"fn\":\"count\",\"arg\":2,\"arg_text\":\"v\",\"distinct\":true}"
#define OUTPUT   "k VARCHAR; ws TIMESTAMP(6); we TIMESTAMP(6); wt TIMESTAMP(6); n BIGINT; a DOUBLE; m VARCHAR"
#define IN_ORDER                                                                                                       \
    ",{\"fn\":\"string_agg\",\"arg\":3,\"arg_text\":\"s\",\"order_text\":\"v "                                         \
    "DESC\",\"order\":[{\"col\":2,\"desc\":true,"                                                                      \
    "\"nulls_first\":true}]},{\"fn\":\"array_agg\",\"arg\":2,\"arg_text\":\"v\"},{\"fn\":\"first_value\",\"arg\":3,"   \
    "\"arg_text\":\"s\",\"order_text\":\"v\",\"order\":[{\"col\":2,\"desc\":false,\"nulls_first\":false}]},"           \
    "{\"fn\":\"percentile_disc\",\"arg\":2,\"arg_text\":\"v\",\"fraction\":0.3}"
#define IN_ORDER_OUTPUT "; l VARCHAR; xs ARRAY<BIGINT>; f VARCHAR; p BIGINT"
#define SKETCH          ",{\"fn\":\"approx_count_distinct\",\"arg\":3,\"arg_text\":\"s\"}"
#define MEANS                                                                                                          \
    "\"keys\":[0],\"aggregates\":[{\"fn\":\"avg\",\"arg\":2,\"arg_text\":\"v\"},{\"fn\":\"count\",\"arg\":2,\"arg_"    \
    "text\":\"v\"}"
#define MEANS_OUTPUT "k VARCHAR; ws TIMESTAMP(6); we TIMESTAMP(6); wt TIMESTAMP(6); a DOUBLE; c BIGINT"
#define LATE         "s VARCHAR; op VARCHAR; t TIMESTAMP(6)"
#define WINDOW(kind, size, slide)                                                                                      \
    "{\"window\":{\"kind\":\"" kind "\",\"time\":1,\"size_us\":" size ",\"slide_us\":" slide ",\"offset_us\":0},"

typedef struct sample {
    const ck_op_desc *op;
    const char *params, *output;
    const char *side; /* what port 1 emits */
} sample;
static const char over_changes[] = WINDOW("tumble", "10000000", "10000000") CALLS "],\"lateness_us\":5000000}",
                  in_order_over_changes[] = WINDOW("hop", "10000000", "5000000") CALLS IN_ORDER "]}";
static ck_edge_mode mode_of(const sample *s) {
    return s->params == over_changes || s->params == in_order_over_changes ? CK_MODE_RETRACT : CK_MODE_APPEND;
}
static const sample samples[] = {
    {&ck_op_window_agg, WINDOW("tumble", "10000000", "10000000") CALLS "]}", OUTPUT, NULL},
    {&ck_op_window_agg, WINDOW("tumble", "10000000", "10000000") CALLS DISTINCT "]}", OUTPUT "; d BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("tumble", "10000000", "10000000") CALLS "],\"lateness_us\":5000000}", OUTPUT, NULL},
    {&ck_op_window_agg, over_changes, OUTPUT, NULL},
    {&ck_op_window_agg, WINDOW("hop", "10000000", "4000000") CALLS "]}", OUTPUT, NULL},
    {&ck_op_window_agg, WINDOW("hop", "10000000", "4000000") CALLS DISTINCT "]}", OUTPUT "; d BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("hop", "30000000", "3000000") MEANS "]}", MEANS_OUTPUT, NULL}, /* rolls */
    {&ck_op_window_agg, WINDOW("hop", "31000000", "3000000") MEANS "]}", MEANS_OUTPUT, NULL},
    {&ck_op_window_agg, WINDOW("hop", "30000000", "3000000") MEANS DISTINCT "]}", MEANS_OUTPUT "; d BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("hop", "30000000", "3000000") CALLS "]}", OUTPUT, NULL}, /* in halves */
    {&ck_op_window_agg, WINDOW("hop", "31000000", "3000000") CALLS "]}", OUTPUT, NULL},
    {&ck_op_window_agg, WINDOW("cumulate", "12000000", "3000000") CALLS "]}", OUTPUT, NULL},
    {&ck_op_session_agg, "{\"time\":1,\"gap_us\":3000000," CALLS "]}", OUTPUT, NULL},
    {&ck_op_session_agg, "{\"time\":1,\"gap_us\":3000000," CALLS DISTINCT "]}", OUTPUT "; d BIGINT", NULL},
    {&ck_op_session_agg, "{\"time\":1,\"gap_us\":1500000,\"lateness_us\":5000000," CALLS DISTINCT "]}",
     OUTPUT "; d BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("tumble", "10000000", "10000000") CALLS IN_ORDER SKETCH "],\"lateness_us\":5000000}",
     OUTPUT IN_ORDER_OUTPUT "; e BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("hop", "10000000", "5000000") CALLS IN_ORDER SKETCH "]}",
     OUTPUT IN_ORDER_OUTPUT "; e BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("cumulate", "12000000", "3000000") CALLS IN_ORDER SKETCH "]}",
     OUTPUT IN_ORDER_OUTPUT "; e BIGINT", NULL},
    {&ck_op_window_agg, in_order_over_changes, OUTPUT IN_ORDER_OUTPUT, NULL},
    {&ck_op_session_agg, "{\"time\":1,\"gap_us\":1500000,\"lateness_us\":5000000," CALLS IN_ORDER SKETCH "]}",
     OUTPUT IN_ORDER_OUTPUT "; e BIGINT", NULL},
    {&ck_op_window_agg, WINDOW("hop", "4000000", "2000000") CALLS "],\"late\":[3,null,1]}", OUTPUT, LATE},
    {&ck_op_session_agg, "{\"time\":1,\"gap_us\":500000,\"late\":[3,null,1]," CALLS "]}", OUTPUT, LATE},
};

enum { ROWS = 60 };
static char row_text[ROWS][120];

/* Rows out of order by up to 8 seconds, sums past 64 bits, long texts. */
static const char *row_of(int i) {
    int second = i * 2 - (i * 7 % 5) * 2;
    snprintf(row_text[i], sizeof row_text[i], "key %d|1970-01-01 00:%02d:%02d|%lld|a text longer than twelve %d", i % 3,
             10 + second / 60, (second % 60 + 60) % 60, (i % 2 ? 1LL : -1LL) * 5000000000000000000LL + i, i);
    return row_text[i];
}
static int64_t watermark_after(int i) { return 600000000LL + (int64_t)(i * 2 - 10) * 1000000 - 1; }

static void feed(harness *h, int i) {
    const char *rows[4] = {row_of(i), row_of(i + 1), row_of(i + 2), row_of(i + 3)};
    harness_ok(h, harness_try_rows(h, 0, rows, 4));
    harness_ok(h, harness_event(h, 0, ck_event_watermark(watermark_after(i), false)));
}

/* What comes without any restart, netted. */
static void expected(fixture *f, const sample *s, char ***lines, size_t *n) {
    harness *h = &f->h;
    harness_input(h, INPUT, mode_of(s));
    if (s->side) h->side = harness_schema(h, s->side);
    harness_start(h, s->op, s->params, s->output);
    for (int i = 0; i < ROWS; i += 4) feed(h, i);
    harness_end(h);
    harness_net(h);
    *n = h->line_count;
    *lines = calloc(*n, sizeof **lines);
    for (size_t i = 0; i < *n; i++) (*lines)[i] = strdup(h->lines[i].text);
    assert_true(*n > 5);
    harness_destroy(h);
    harness_init(h, &f->proc.proc);
}

static void restarts_change_nothing(void **state) {
    fixture *f = *state;
    for (size_t k = 0; k < CK_ARRAY_COUNT(samples); k++) {
        harness *h = &f->h;
        char **want;
        size_t n;
        expected(f, &samples[k], &want, &n);
        harness_input(h, INPUT, mode_of(&samples[k]));
        harness_start(h, samples[k].op, samples[k].params, samples[k].output);
        for (int i = 0; i < ROWS; i += 4) {
            feed(h, i);
            harness_restart(h, (uint64_t)i + 1);
        }
        harness_end(h);
        harness_net(h);
        if (h->line_count != n) fail_msg("sample %zu: %zu rows, not %zu", k, h->line_count, n);
        for (size_t i = 0; i < n; i++) assert_string_equal(h->lines[i].text, want[i]);
        for (size_t i = 0; i < n; i++) free(want[i]);
        free(want);
        /* Nothing is left but how far time has come. */
        harness_restart(h, 1000);
        assert_true(ck_state_bytes(h->store) < 40000);
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
    }
}

static ck_status scenario(harness *h, const sample *s, ck_batch *const *batches, uint32_t count) {
    h->desc = s->op;
    ck_status st = s->op->create(&h->spec, h->mem, &h->self, &h->error);
    if (st == CK_OK) st = s->op->op->open(h->self, &h->ctx);
    for (uint32_t i = 0; st == CK_OK && i < 2 * count + 1; i++) {
        ck_event ev = i == 2 * count ? ck_event_end()
                      : i % 2        ? ck_event_watermark(watermark_after((int)(i / 2) * 4), false)
                                     : ck_event_batch(batches[i / 2]);
        while ((st = s->op->op->on_event(h->self, 0, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
        if (st == CK_OK && i == count) st = s->op->op->pre_snapshot(h->self, 1, &h->ctx);
        harness_end_call(h);
    }
    return st;
}

static void sweep(fixture *f, const sample *s) {
    harness *h = &f->h;
    enum { BATCHES = 6 };
    ck_batch *batches[BATCHES];
    harness_input(h, INPUT, mode_of(s));
    if (s->side) h->side = harness_schema(h, s->side);
    h->spec.type = s->op->type;
    h->spec.params = s->params;
    h->spec.schema = harness_schema(h, s->output);
    h->keep_batches = true;
    for (int i = 0; i < BATCHES; i++) {
        const char *rows[4] = {row_of(4 * i), row_of(4 * i + 1), row_of(4 * i + 2), row_of(4 * i + 3)};
        batches[i] = harness_batch(h, 0, rows, 4);
    }
    for (uint64_t n = 1;; n++) {
        harness_context(h);
        h->error = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status st = scenario(h, s, batches, BATCHES);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        if (h->self) harness_close(h);
        harness_forget_lines(h);
        ck_state_store_free(h->store);
        h->store = NULL;
        harness_end_call(h);
        if (st != (fired ? CK_NOMEM : CK_OK))
            fail_msg("%s, allocation %llu: %s %s", s->params, (unsigned long long)n, ck_status_name(st), h->error.msg);
        if (!fired) break;
    }
    for (int i = 0; i < BATCHES; i++) ck_batch_unref(&batches[i]);
    harness_destroy(h);
    harness_init(h, &f->proc.proc);
}

static void every_allocation_may_fail(void **state) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(samples); i++) sweep(*state, &samples[i]);
}

static void sessions_meet_and_part(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->side = harness_schema(h, "k VARCHAR; t TIMESTAMP(6)");
    harness_start(
        h, &ck_op_session_agg,
        "{\"time\":1,\"gap_us\":10000000,\"late\":[0,1],\"keys\":[],\"aggregates\":[{\"fn\":\"count\",\"arg\":null}]}",
        "ws TIMESTAMP(6); we TIMESTAMP(6); wt TIMESTAMP(6); n BIGINT");
    HARNESS_ROWS(h, "a|1970-01-01 00:00:00|1|x", "a|1970-01-01 00:00:19|1|x", "a|1970-01-01 00:00:40|1|x");
    HARNESS_ROWS(h, "a|1970-01-01 00:00:09.999999|1|x", "b|1970-01-01 00:00:29|1|x", "a|NULL|1|x");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(39000000 - 1, false)));
    HARNESS_EXPECT(h, "+1970-01-01 00:00:00|1970-01-01 00:00:29|1970-01-01 00:00:28.999|3",
                   "+1970-01-01 00:00:29|1970-01-01 00:00:39|1970-01-01 00:00:38.999|1");
    HARNESS_ROWS(h, "a|1970-01-01 00:00:28.9|1|x");
    HARNESS_EXPECT(h, "+!a|1970-01-01 00:00:28.900");
    HARNESS_ROWS(h, "a|1970-01-01 00:00:30|1|x");
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_counter(h, "late_rows"), 1); /* the second holds a place of its own until 00:00:40 */
    assert_int_equal(harness_counter(h, "bad_time_rows"), 1);
    harness_end(h);
    HARNESS_EXPECT(h, "+1970-01-01 00:00:30|1970-01-01 00:00:40|1970-01-01 00:00:39.999|1",
                   "+1970-01-01 00:00:40|1970-01-01 00:00:50|1970-01-01 00:00:49.999|1");
}

int main(void) {
    const struct CMUnitTest tests[] = {T(restarts_change_nothing), T(every_allocation_may_fail),
                                       T(sessions_meet_and_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
