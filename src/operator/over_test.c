/* OVER by example: ranks and their bounds, frames that end by themselves, many rows in one place, what is refused,
 * every allocation failing in turn, and state that moves to another parallelism. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define INPUT "k VARCHAR; t TIMESTAMP(6); v BIGINT"
#define EVENT "\"keys\":[0],\"by\":\"event\",\"order\":[{\"col\":1}],"
#define SUM_V "\"calls\":[{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\"}]"

static void watermark(harness *h, int seconds) {
    harness_ok(h, harness_event(h, 0, ck_event_watermark(seconds * 1000000LL, false)));
}

static void the_first_row_of_a_key_is_said_once(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->side = harness_schema(h, "v BIGINT; op VARCHAR");
    harness_start(h, &ck_op_over,
                  "{" EVENT "\"unit\":\"rows\",\"preceding\":null,\"calls\":[{\"fn\":\"row_number\"}],\"limit\":1,"
                  "\"hide\":true,\"late\":[2,null]}",
                  INPUT);
    HARNESS_ROWS(h, "a|1970-01-01 00:00:09|1", "a|1970-01-01 00:00:05|3", "a|1970-01-01 00:00:05|2",
                 "b|1970-01-01 00:00:20|4");
    HARNESS_EXPECT_NOTHING(h);
    watermark(h, 4);
    HARNESS_EXPECT_NOTHING(h);
    watermark(h, 5);
    HARNESS_EXPECT(h, "+a|1970-01-01 00:00:05|2");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "a|1970-01-01 00:00:08|1", "c|1970-01-01 00:00:05|1", "b|1970-01-01 00:00:19|5");
    HARNESS_EXPECT(h, "+!1|+I");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    watermark(h, 30);
    HARNESS_EXPECT(h, "+b|1970-01-01 00:00:19|5");
    HARNESS_ROWS(h, "a|NULL|1");
    assert_int_equal(harness_counter(h, "bad_time_rows"), 1);
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void ranks_let_ties_in(void **state) {
    fixture *f = *state;
    static const char *const fns[] = {"rank", "dense_rank"};
    for (int i = 0; i < 2; i++) {
        harness *h = &f->h;
        char params[300];
        snprintf(params, sizeof params,
                 "{" EVENT "\"unit\":\"range\",\"preceding\":null,\"calls\":[{\"fn\":\"%s\"}],\"limit\":2}", fns[i]);
        harness_input(h, INPUT, CK_MODE_APPEND);
        harness_start(h, &ck_op_over, params, INPUT "; r BIGINT");
        HARNESS_ROWS(h, "a|1970-01-01 00:00:02|1", "a|1970-01-01 00:00:02|2", "a|1970-01-01 00:00:05|3");
        watermark(h, 3);
        HARNESS_EXPECT(h, "+a|1970-01-01 00:00:02|1|1", "+a|1970-01-01 00:00:02|2|1");
        HARNESS_ROWS(h, "a|1970-01-01 00:00:05|4", "a|1970-01-01 00:00:06|5");
        harness_end(h);
        if (i == 0)
            HARNESS_EXPECT_NOTHING(h); /* the third rank is 3 */
        else
            HARNESS_EXPECT(h, "+a|1970-01-01 00:00:05|3|2", "+a|1970-01-01 00:00:05|4|2");
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
    }
}

static uint64_t keyed_rows(harness *h) {
    ck_state *st;
    ck_table *t;
    const ck_slot_schema *slots;
    uint32_t n;
    harness_ok(h, h->desc->slots(&h->spec, &h->plan, &slots, &n, &h->error));
    harness_ok(h, ck_state_of(h->store, h->spec.uid, h->spec.type, &st, &h->error));
    harness_ok(h, ck_state_table(st, &slots[0], &t, &h->error));
    uint64_t rows = ck_table_row_count(t);
    harness_ok(h, ck_state_table(st, &slots[1], &t, &h->error));
    return rows * 1000 + ck_table_row_count(t);
}

static void a_range_of_time_ends_by_itself(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    harness_start(h, &ck_op_over, "{" EVENT "\"unit\":\"range\",\"preceding\":10000000," SUM_V "}", INPUT "; s BIGINT");
    HARNESS_ROWS(h, "a|1970-01-01 00:00:01|1", "b|1970-01-01 00:00:02|2", "a|1970-01-01 00:00:05|3");
    watermark(h, 5);
    HARNESS_EXPECT(h, "+a|1970-01-01 00:00:01|1|1", "+a|1970-01-01 00:00:05|3|4", "+b|1970-01-01 00:00:02|2|2");
    assert_int_equal(keyed_rows(h), 2003);
    harness_restart(h, 1);
    watermark(h, 11); /* b's row is in the frame of one at 12 */
    assert_int_equal(keyed_rows(h), 2003);
    watermark(h, 12);
    assert_int_equal(keyed_rows(h), 1002);
    HARNESS_ROWS(h, "a|1970-01-01 00:00:15|7", "b|1970-01-01 00:00:13|9");
    watermark(h, 20);
    harness_net(h);
    HARNESS_EXPECT(h, "+a|1970-01-01 00:00:15|7|10", "+b|1970-01-01 00:00:13|9|9");
    assert_int_equal(keyed_rows(h), 2003);
    watermark(h, 25);
    assert_int_equal(keyed_rows(h), 0);
}

/* More rows in one place of the order than a batch has, and more in one key than a chunk. */
static void many_rows_in_one_place(void **state) {
    fixture *f = *state;
    for (int range = 0; range < 2; range++) {
        harness *h = &f->h;
        enum { BATCHES = 12, ROWS = 1000 };
        static char text[ROWS][60];
        const char *lines[ROWS];
        h->settings.batch_rows = 700;
        harness_input(h, INPUT, CK_MODE_APPEND);
        harness_start(h, &ck_op_over,
                      range ? "{" EVENT "\"unit\":\"range\",\"preceding\":null,\"calls\":[{\"fn\":\"count\"}]}"
                            : "{" EVENT "\"unit\":\"rows\",\"preceding\":4999,\"calls\":[{\"fn\":\"count\"}]}",
                      INPUT "; n BIGINT");
        for (int b = 0; b < BATCHES; b++) {
            for (int i = 0; i < ROWS; i++) {
                snprintf(text[i], sizeof text[i], "a|1970-01-01 00:00:03|%d", b * ROWS + i);
                lines[i] = text[i];
            }
            harness_ok(h, harness_try_rows(h, 0, lines, ROWS));
        }
        HARNESS_ROWS(h, "a|1970-01-01 00:00:02|7", "a|1970-01-01 00:00:04|8");
        watermark(h, 3);
        assert_int_equal(h->line_count, BATCHES * ROWS + 1);
        assert_true(h->largest_batch <= 700);
        for (size_t i = 1; i < h->line_count; i++) {
            char want[80];
            size_t rows = range ? BATCHES * ROWS + 1 : i + 1 < 5000 ? i + 1 : 5000;
            snprintf(want, sizeof want, "a|1970-01-01 00:00:03|%zu|%zu", i - 1, rows);
            assert_string_equal(h->lines[i].text, want);
        }
        harness_forget_lines(h);
        harness_end(h);
        char want[80];
        snprintf(want, sizeof want, "+a|1970-01-01 00:00:04|8|%d", range ? BATCHES * ROWS + 2 : 5000);
        HARNESS_EXPECT(h, want);
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
    }
}

static void a_clock_that_goes_back_keeps_the_order(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    harness_start(h, &ck_op_over,
                  "{\"keys\":[0],\"by\":\"processing\",\"order\":[],\"unit\":\"rows\",\"preceding\":1," SUM_V "}",
                  INPUT "; s BIGINT");
    h->now_us = 1000;
    HARNESS_ROWS(h, "a|NULL|1");
    h->now_us = 10;
    HARNESS_ROWS(h, "a|NULL|2");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "a|NULL|4", "a|NULL|8");
    HARNESS_EXPECT(h, "+a|NULL|1|1", "+a|NULL|2|3", "+a|NULL|4|6", "+a|NULL|8|12");
    assert_int_equal(keyed_rows(h), 1002);
    harness_end(h);
    assert_int_equal(keyed_rows(h), 0);
}

static void a_sum_out_of_range_is_said_with_its_key(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    harness_start(h, &ck_op_over, "{" EVENT "\"unit\":\"rows\",\"preceding\":null," SUM_V "}", INPUT "; s BIGINT");
    HARNESS_ROWS(h, "alice|1970-01-01 00:00:01|9223372036854775807", "alice|1970-01-01 00:00:02|1");
    assert_int_equal(harness_event(h, 0, ck_event_watermark(5000000, false)), CK_DATA);
    assert_non_null(strstr(h->error.msg, "sum(v) is out of range for BIGINT in the group of key (alice)"));
}

static void what_it_is_not_made_for_is_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    static const char *const bad[] = {
        "{}",
        "{\"keys\":[7],\"by\":\"event\",\"order\":[{\"col\":1}],\"unit\":\"rows\",\"preceding\":null," SUM_V "}",
        "{\"keys\":[0],\"by\":\"event\",\"order\":[{\"col\":0}],\"unit\":\"rows\",\"preceding\":null," SUM_V "}",
        "{\"keys\":[0],\"by\":\"event\",\"order\":[{\"col\":1,\"desc\":true}],\"unit\":\"rows\",\"preceding\":1," SUM_V
        "}",
        "{\"keys\":[0],\"by\":\"sometimes\",\"order\":[{\"col\":1}],\"unit\":\"rows\",\"preceding\":1," SUM_V "}",
        "{\"keys\":[0],\"by\":\"processing\",\"order\":[{\"col\":1}],\"unit\":\"rows\",\"preceding\":1," SUM_V "}",
        "{\"keys\":[2],\"by\":\"end\",\"order\":[{\"col\":0}],\"unit\":\"range\",\"preceding\":1," SUM_V "}",
        "{" EVENT "\"unit\":\"groups\",\"preceding\":null," SUM_V "}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":-1," SUM_V "}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":null,\"calls\":[]}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":null,\"calls\":[{\"fn\":\"median\",\"arg\":2,\"arg_text\":\"v\"}]}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":null,\"calls\":[{\"fn\":\"sum\"}]}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":null,\"calls\":[{\"fn\":\"sum\",\"arg\":0,\"arg_text\":\"k\"}]}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":null," SUM_V ",\"limit\":3}",
        "{" EVENT "\"unit\":\"rows\",\"preceding\":null," SUM_V ",\"frames\":3}",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        h->error = CK_ERROR_INIT;
        if (harness_create(h, &ck_op_over, bad[i], INPUT "; s BIGINT") == CK_OK) fail_msg("taken: %s", bad[i]);
        assert_true(h->error.msg[0] != 0);
    }
    h->error = CK_ERROR_INIT;
    assert_int_not_equal(
        harness_create(h, &ck_op_over, "{" EVENT "\"unit\":\"rows\",\"preceding\":null," SUM_V "}", INPUT "; s DOUBLE"),
        CK_OK);
    h->inputs[0].mode = CK_MODE_RETRACT;
    assert_int_not_equal(
        harness_create(h, &ck_op_over, "{" EVENT "\"unit\":\"rows\",\"preceding\":null," SUM_V "}", INPUT "; s BIGINT"),
        CK_OK);
}

/* ---- every allocation, and other parallelisms ---- */

#define CALLS                                                                                                          \
    "\"calls\":[{\"fn\":\"avg\",\"arg\":2,\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":2,\"arg_text\":\"v\"},"          \
    "{\"fn\":\"lag\",\"arg\":0,\"arg_text\":\"k\"},{\"fn\":\"row_number\"}]}"
#define OUTPUT INPUT "; a DOUBLE; m BIGINT; l VARCHAR; n BIGINT"
static const char *const samples[] = {
    "{" EVENT "\"unit\":\"rows\",\"preceding\":2," CALLS,
    "{" EVENT "\"unit\":\"range\",\"preceding\":null," CALLS,
    "{" EVENT "\"unit\":\"range\",\"preceding\":4000000," CALLS,
    "{\"keys\":[0],\"by\":\"processing\",\"order\":[],\"unit\":\"rows\",\"preceding\":2," CALLS,
    "{\"keys\":[0],\"by\":\"end\",\"order\":[{\"col\":2,\"desc\":true}],\"unit\":\"rows\",\"preceding\":2," CALLS,
};

enum { BATCHES = 6 };

static const char *row_of(int i) {
    static char text[8][100];
    snprintf(text[i % 8], sizeof text[0], "a key over twelve bytes %d|1970-01-01 00:00:%02d|%d", i % 3,
             10 + i - i * 7 % 4, i * 5 % 11);
    return text[i % 8];
}

static ck_status scenario(harness *h, ck_batch *const *batches) {
    h->desc = &ck_op_over;
    ck_status s = h->desc->create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = h->desc->op->open(h->self, &h->ctx);
    for (int i = 0; s == CK_OK && i < 2 * BATCHES + 1; i++) {
        ck_event ev = i == 2 * BATCHES ? ck_event_end()
                      : i % 2          ? ck_event_watermark((5 + 2 * i) * 1000000LL, false)
                                       : ck_event_batch(batches[i / 2]);
        while ((s = h->desc->op->on_event(h->self, 0, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
        if (s == CK_OK && i == BATCHES) s = h->desc->op->pre_snapshot(h->self, 1, &h->ctx);
    }
    return s;
}

static void sweep(fixture *f, const char *params) {
    harness *h = &f->h;
    ck_batch *batches[BATCHES];
    harness_input(h, INPUT, CK_MODE_APPEND);
    h->spec.type = "over";
    h->spec.params = params;
    h->spec.schema = harness_schema(h, OUTPUT);
    h->keep_batches = true;
    for (int i = 0; i < BATCHES; i++) {
        const char *rows[4] = {row_of(4 * i), row_of(4 * i + 1), row_of(4 * i + 2), row_of(4 * i + 3)};
        batches[i] = harness_batch(h, 0, rows, 4);
    }
    for (uint64_t n = 1;; n++) {
        harness_context(h);
        h->error = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = scenario(h, batches);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        if (h->self) harness_close(h);
        harness_forget_lines(h);
        ck_state_store_free(h->store);
        h->store = NULL;
        harness_end_call(h);
        if (s != (fired ? CK_NOMEM : CK_OK))
            fail_msg("%s, allocation %llu: %s %s", params, (unsigned long long)n, ck_status_name(s), h->error.msg);
        if (!fired) break;
    }
    for (int i = 0; i < BATCHES; i++) ck_batch_unref(&batches[i]);
    harness_destroy(h);
    harness_init(h, &f->proc.proc);
}

static void every_allocation_may_fail(void **state) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(samples); i++) sweep(*state, samples[i]);
}

/* Half of the input at one, the other half at two subtasks: each key goes on where it is. */
static void state_moves_to_other_subtasks(void **state) {
    fixture *f = *state;
    harness *one = &f->h, two[2];
    harness_input(one, INPUT, CK_MODE_APPEND);
    harness_start(one, &ck_op_over, samples[0], OUTPUT);
    for (int i = 0; i < 12; i++) harness_ok(one, harness_try_rows(one, 0, (const char *[]){row_of(i)}, 1));
    watermark(one, 14);
    harness_ok(one, harness_pre_snapshot(one, 1));
    size_t said = one->line_count, more = 0;
    for (uint32_t t = 0; t < 2; t++) {
        harness *h = &two[t];
        harness_init(h, &f->proc.proc);
        h->spec.subtask = t;
        h->spec.parallelism = 2;
        harness_input(h, INPUT, CK_MODE_APPEND);
        harness_ok(h, harness_create(h, &ck_op_over, samples[0], OUTPUT));
        harness_new_store(h);
        harness_copy_store(one->store, h->store, 1);
        harness_ok(h, ck_state_restore_end(h->store, &h->error));
        harness_ok(h, harness_open(h));
        harness_end(h);
        more += h->line_count;
    }
    harness_end(one);
    assert_int_equal(said + more, 12);
    assert_int_equal(one->line_count, 12);
    for (uint32_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < two[t].line_count; i++) {
            bool found = false;
            for (size_t k = said; k < 12; k++) found |= strcmp(two[t].lines[i].text, one->lines[k].text) == 0;
            assert_true(found);
        }
        harness_destroy(&two[t]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_first_row_of_a_key_is_said_once),    T(ranks_let_ties_in),
        T(a_range_of_time_ends_by_itself),         T(many_rows_in_one_place),
        T(a_clock_that_goes_back_keeps_the_order), T(a_sum_out_of_range_is_said_with_its_key),
        T(what_it_is_not_made_for_is_refused),     T(every_allocation_may_fail),
        T(state_moves_to_other_subtasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
