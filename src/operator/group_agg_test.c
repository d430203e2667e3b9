#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define SUM_COUNT                                                                                                      \
    "{\"keys\":[0],\"aggregates\":[{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"count\",\"arg\":null}]}"

static void sums_by_key_and_emits_changes_at_flush(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, SUM_COUNT, "k VARCHAR; s BIGINT; n BIGINT");
    HARNESS_ROWS(h, "alice|12", "bob|7", "alice|5", "NULL|NULL", "a much longer name than twelve|1");
    HARNESS_EXPECT_NOTHING(h);
    harness_flush(h);
    HARNESS_EXPECT(h, "+alice|17|2", "+bob|7|1", "+NULL|NULL|1", "+a much longer name than twelve|1|1");
    HARNESS_ROWS(h, "bob|1", "NULL|4", "carol|0", "a much longer name than twelve|2");
    HARNESS_ROWS(h, "bob|1");
    harness_flush(h);
    HARNESS_EXPECT(h, "-bob|7|1", "+bob|9|3", "-NULL|NULL|1", "+NULL|4|2", "+carol|0|1",
                   "-a much longer name than twelve|1|1", "+a much longer name than twelve|3|2");
    harness_flush(h);
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void unchanged_results_say_nothing(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, "{\"keys\":[0],\"aggregates\":[{\"fn\":\"max\",\"arg\":1,\"arg_text\":\"v\"}]}",
                  "k BIGINT; m BIGINT");
    HARNESS_ROWS(h, "1|5", "2|6");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|5", "+2|6");
    HARNESS_ROWS(h, "1|4", "2|7", "1|5");
    harness_flush(h);
    HARNESS_EXPECT(h, "-2|6", "+2|7");
}

static void final_emits_once_at_the_end(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->spec.final = true;
    h->settings.batch_rows = 100;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, SUM_COUNT, "k BIGINT; s BIGINT; n BIGINT");
    for (int round = 0; round < 3; round++) {
        char text[500][32];
        const char *rows[500];
        for (int i = 0; i < 500; i++) {
            snprintf(text[i], sizeof text[i], "%d|%d", i, round);
            rows[i] = text[i];
        }
        harness_ok(h, harness_try_rows(h, 0, rows, 500));
        harness_flush(h);
    }
    HARNESS_EXPECT_NOTHING(h);
    harness_end(h);
    assert_int_equal(h->line_count, 500);
    assert_false(h->weighted);
    assert_true(h->largest_batch <= 100);
    harness_net(h);
    assert_int_equal(h->line_count, 500);
    assert_string_equal(h->lines[0].text, "0|3|3");
}

static void the_global_aggregate_has_one_row(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_group_agg,
                  "{\"keys\":[],\"aggregates\":[{\"fn\":\"count\",\"arg\":null},{\"fn\":\"sum\",\"arg\":0,\"arg_text\":"
                  "\"v\"},{\"fn\":\"avg\",\"arg\":0,\"arg_text\":\"v\"}]}",
                  "n BIGINT; s BIGINT; a DOUBLE");
    harness_flush(h);
    HARNESS_EXPECT(h, "+0|NULL|NULL");
    HARNESS_ROWS(h, "4", "5");
    harness_restart(h, 1);
    HARNESS_EXPECT(h, "-0|NULL|NULL", "+2|9|4.5");
    HARNESS_ROWS(h, "-4", "-5");
    harness_flush(h);
    HARNESS_EXPECT(h, "-2|9|4.5", "+0|NULL|NULL");
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void the_global_row_comes_also_of_nothing_and_from_one_subtask(void **state) {
    fixture *f = *state;
    harness_destroy(&f->h);
    size_t rows = 0;
    for (uint32_t subtask = 0; subtask < 4; subtask++) {
        harness *h = &f->h;
        harness_init(h, &f->proc.proc);
        h->spec.final = subtask % 2 == 0 ? false : true;
        h->spec.subtask = subtask;
        h->spec.parallelism = 4;
        harness_input(h, "v BIGINT", CK_MODE_APPEND);
        harness_start(h, &ck_op_group_agg, "{\"keys\":[],\"aggregates\":[{\"fn\":\"count\",\"arg\":null}]}",
                      "n BIGINT");
        harness_end(h);
        rows += h->line_count;
        for (size_t i = 0; i < h->line_count; i++) assert_string_equal(h->lines[i].text, "0");
        harness_destroy(h);
    }
    assert_int_equal(rows, 1);
    harness_init(&f->h, &f->proc.proc);
}

static void vanished_groups_are_only_retracted(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v VARCHAR", CK_MODE_RETRACT);
    harness_start(
        h, &ck_op_group_agg,
        "{\"keys\":[0],\"aggregates\":[{\"fn\":\"min\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":1,"
        "\"arg_text\":\"v\"},{\"fn\":\"count\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true}]}",
        "k BIGINT; lo VARCHAR; hi VARCHAR; d BIGINT");
    HARNESS_ROWS(h, "1|pear", "1|apple", "1|a fruit with a long name", "2|fig", "1|apple", "3|NULL");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|a fruit with a long name|pear|3", "+2|fig|fig|1", "+3|NULL|NULL|0");
    HARNESS_ROWS(h, "-2|fig", "-1|apple", "-1|a fruit with a long name");
    harness_restart(h, 7);
    HARNESS_EXPECT(h, "-2|fig|fig|1", "-1|a fruit with a long name|pear|3", "+1|apple|pear|2");
    HARNESS_ROWS(h, "-1|apple", "-1|pear", "-3|NULL", "3|z", "-3|z");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|apple|pear|2", "-3|NULL|NULL|0");
    HARNESS_ROWS(h, "1|apple", "-1|apple"); /* comes and goes between two flushes */
    harness_flush(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void distinct_passes_each_key_once(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "a BIGINT; b VARCHAR", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, "{\"keys\":[1,0],\"aggregates\":[]}", "b VARCHAR; a BIGINT");
    HARNESS_ROWS(h, "1|x", "1|x", "2|x", "NULL|NULL");
    HARNESS_EXPECT(h, "+x|1", "+x|2", "+NULL|NULL");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "NULL|NULL", "2|x", "2|y");
    HARNESS_EXPECT(h, "+y|2");
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
    assert_false(h->weighted);
}

static void sums_go_past_64_bits_and_are_checked_when_read(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_group_agg, SUM_COUNT, "k BIGINT; s BIGINT; n BIGINT");
    HARNESS_ROWS(h, "1|9223372036854775807", "1|9223372036854775807", "1|2", "2|-9223372036854775807");
    HARNESS_ROWS(h, "-1|9223372036854775807");
    HARNESS_ROWS(h, "-1|2");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|9223372036854775807|1", "+2|-9223372036854775807|1");
    HARNESS_ROWS(h, "1|1");
    assert_int_equal(harness_event(h, 0, ck_event_flush(2)), CK_DATA);
    assert_non_null(strstr(h->error.msg, "sum(v) is out of range for BIGINT in the group of key (1)"));
}

static void a_carry_survives_a_restart(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->settings.eval_error_null = true;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_RETRACT);
    harness_start(
        h, &ck_op_group_agg,
        "{\"keys\":[0],\"aggregates\":[{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"avg\",\"arg\":1,"
        "\"arg_text\":\"v\"}]}",
        "k BIGINT; s BIGINT; a DOUBLE");
    HARNESS_ROWS(h, "1|9223372036854775807", "1|9223372036854775807", "1|9223372036854775807");
    harness_restart(h, 1);
    HARNESS_EXPECT(h, "+1|NULL|9223372036854776000.0");
    HARNESS_ROWS(h, "-1|9223372036854775807", "-1|9223372036854775807");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|NULL|9223372036854776000.0", "+1|9223372036854775807|9223372036854776000.0");
}

static void decimals_are_exact(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v DECIMAL(38,2)", CK_MODE_APPEND);
    harness_start(
        h, &ck_op_group_agg,
        "{\"keys\":[0],\"aggregates\":[{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"avg\",\"arg\":1,"
        "\"arg_text\":\"v\"}]}",
        "k BIGINT; s DECIMAL(38,2); a DECIMAL(38,6)");
    HARNESS_ROWS(h, "1|0.01", "1|0.02", "1|0.02", "2|-1.00", "2|0.00", "2|0.00");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|0.05|0.016667", "+2|-1.00|-0.333333");
    HARNESS_ROWS(h, "3|900000000000000000000000000000000000.00", "3|900000000000000000000000000000000000.00");
    assert_int_equal(harness_event(h, 0, ck_event_flush(2)), CK_DATA);
    assert_non_null(strstr(h->error.msg, "out of range for DECIMAL(38,2)"));
}

static void filters_and_shared_accumulators(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT; big BOOLEAN", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg,
                  "{\"keys\":[0],\"aggregates\":["
                  "{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\",\"filter\":2,\"filter_text\":\"v > 3\"},"
                  "{\"fn\":\"avg\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\"},"
                  "{\"fn\":\"count\",\"arg\":null,\"filter\":2,\"filter_text\":\"v > 3\"},"
                  "{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true}]}",
                  "k BIGINT; a BIGINT; b DOUBLE; c BIGINT; d BIGINT; e BIGINT");
    const ck_slot_schema *slots;
    uint32_t count;
    harness_ok(h, ck_op_group_agg.slots(&h->spec, &h->plan, &slots, &count, &h->error));
    assert_string_equal(slots[0].slot, "agg");
    assert_int_equal(slots[0].value_count, 5); /* two sums, the average's count, a filtered count, a distinct sum */
    assert_string_equal(slots[0].values[0].name, "sum(v) FILTER (v > 3)");
    assert_string_equal(slots[1].slot, "distinct:v");
    assert_true(slots[1].hashed);
    assert_int_equal(slots[1].value_count, 0);
    HARNESS_ROWS(h, "1|2|false", "1|4|true", "1|4|true", "1|NULL|NULL");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|8|3.3333333333333335|10|2|6");
}

/* One set of an argument serves 63 filters, whatever stands between the calls; where rows are taken back it serves one.
 */
static void filters_share_a_set(void **state) {
    enum { FILTERS = 70 };
    harness *h = &((fixture *)*state)->h;
    static char params[16384], output[2048], line[1024];
    size_t n = (size_t)snprintf(params, sizeof params, "{\"keys\":[0],\"aggregates\":[");
    size_t o = (size_t)snprintf(output, sizeof output, "k BIGINT"), l = (size_t)snprintf(line, sizeof line, "+1");
    for (int i = 0; i < FILTERS; i++) { /* values 3 and 5 pass column 2, only 5 passes column 3 */
        n += (size_t)snprintf(params + n, sizeof params - n,
                              "%s{\"fn\":\"count\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true,\"filter\":%d,"
                              "\"filter_text\":\"f%d\"}",
                              i ? "," : "", 2 + i % 2, i);
        o += (size_t)snprintf(output + o, sizeof output - o, "; c%d BIGINT", i);
        l += (size_t)snprintf(line + l, sizeof line - l, "|%d", i % 2 ? 1 : 2);
    }
    snprintf(params + n, sizeof params - n, "]}");
    harness_input(h, "k BIGINT; v BIGINT; some BOOLEAN; few BOOLEAN", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, params, output);
    const ck_slot_schema *slots;
    uint32_t count;
    harness_ok(h, ck_op_group_agg.slots(&h->spec, &h->plan, &slots, &count, &h->error));
    assert_int_equal(count, 3);
    assert_string_equal(slots[1].slot, "distinct:v FILTER (f0)");
    assert_string_equal(slots[1].state_type, "distinct_filters");
    assert_int_equal(slots[1].value_count, 63);
    assert_string_equal(slots[1].values[1].name, "f1");
    assert_string_equal(slots[2].slot, "distinct:v FILTER (f63)");
    HARNESS_ROWS(h, "1|3|true|false", "1|4|false|NULL", "1|5|true|false", "1|3|true|false", "1|NULL|true|true");
    HARNESS_ROWS(h, "1|5|false|true", "1|5|true|true");
    harness_flush(h);
    HARNESS_EXPECT(h, line);
}

static void arguments_that_cannot_be_null(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT NOT NULL", CK_MODE_RETRACT);
    harness_start(h, &ck_op_group_agg,
                  "{\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":1,\"arg_text\":\"v\"},"
                  "{\"fn\":\"COUNT\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true},"
                  "{\"fn\":\"avg\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true},"
                  "{\"fn\":\"avg\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"min\",\"arg\":1,\"arg_text\":\"v\"}]}",
                  "k BIGINT; n BIGINT; d BIGINT; ad DOUBLE; a DOUBLE; m BIGINT");
    const ck_slot_schema *slots;
    uint32_t count;
    harness_ok(h, ck_op_group_agg.slots(&h->spec, &h->plan, &slots, &count, &h->error));
    assert_int_equal(slots[0].value_count, 4); /* count(*), distinct sum and count, sum */
    HARNESS_ROWS(h, "1|4", "1|4", "1|1");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|3|2|2.5|3.0|1");
    HARNESS_ROWS(h, "-1|1");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|3|2|2.5|3.0|1", "+1|2|1|4.0|4.0|4");
}

static void double_sums_can_be_taken_back(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v DOUBLE", CK_MODE_RETRACT);
    harness_start(h, &ck_op_group_agg, SUM_COUNT, "k BIGINT; s DOUBLE; n BIGINT");
    HARNESS_ROWS(h, "1|1e100", "1|1", "1|NaN", "1|Infinity", "2|-Infinity");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|NaN|4", "+2|-Infinity|1");
    HARNESS_ROWS(h, "-1|NaN", "-1|1e100", "-2|-Infinity", "2|3");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|NaN|4", "+1|Infinity|2", "-2|-Infinity|1", "+2|3.0|1");
    HARNESS_ROWS(h, "-1|Infinity");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|Infinity|2", "+1|1.0|1");
}

/* Values far from zero, an outlier, NaN: what is left when they have gone is exact. */
static void variances_can_be_taken_back(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; d DOUBLE", CK_MODE_RETRACT);
    harness_start(
        h, &ck_op_group_agg,
        "{\"keys\":[0],\"aggregates\":[{\"fn\":\"var_pop\",\"arg\":1,\"arg_text\":\"d\"},{\"fn\":\"stddev_samp\","
        "\"arg\":1,\"arg_text\":\"d\"}]}",
        "k BIGINT; v DOUBLE; s DOUBLE");
    HARNESS_ROWS(h, "1|1000000002.5", "1|1000000004.5", "1|123456789012.125", "1|1000000006.5", "2|7.5", "3|NULL");
    HARNESS_ROWS(h, "-1|123456789012.125", "1|nan", "-1|1000000004.5", "1|1000000006.5", "1|1000000002.5");
    harness_restart(h, 1);
    HARNESS_EXPECT(h, "+1|NaN|NaN", "+2|0.0|NULL", "+3|NULL|NULL");
    HARNESS_ROWS(h, "-1|nan");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|NaN|NaN", "+1|4.0|2.309401076758503");
    HARNESS_ROWS(h, "-1|1000000002.5", "-1|1000000002.5", "-1|1000000006.5", "-2|7.5");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|4.0|2.309401076758503", "+1|0.0|NULL", "-2|0.0|NULL");
}

static void one_row_batches_flush_each(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->settings.batch_rows = 1;
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, SUM_COUNT, "k VARCHAR; s BIGINT; n BIGINT");
    HARNESS_ROWS(h, "a|1");
    HARNESS_ROWS(h, "a|2");
    HARNESS_EXPECT(h, "+a|1|1", "-a|1|1", "+a|3|2");
}

static void many_touched_groups_force_a_flush(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_APPEND);
    harness_start(h, &ck_op_group_agg, SUM_COUNT, "k BIGINT; s BIGINT; n BIGINT");
    static char text[4096][32];
    static const char *rows[4096];
    for (int round = 0; round < 17; round++) {
        for (int i = 0; i < 4096; i++) {
            snprintf(text[i], sizeof text[i], "%d|1", round * 4096 + i);
            rows[i] = text[i];
        }
        harness_ok(h, harness_try_rows(h, 0, rows, 4096));
        assert_int_equal(h->line_count, round < 15 ? 0 : 65536);
    }
    harness_flush(h);
    assert_int_equal(h->line_count, 17 * 4096);
}

/* A batch, a flush, another batch with retractions, a flush: every allocation in turn fails. */
static ck_status scenario(harness *h, ck_batch *const *batches) {
    static const char params[] =
        "{\"keys\":[0],\"aggregates\":[{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"avg\",\"arg\":1,"
        "\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":0,\"arg_text\":\"k\"},{\"fn\":\"count\",\"arg\":1,"
        "\"arg_text\":\"v\",\"distinct\":true}]}";
    h->spec.type = "group_agg";
    h->spec.params = params;
    h->desc = &ck_op_group_agg;
    ck_status s = ck_op_group_agg.create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = ck_op_group_agg.op->open(h->self, &h->ctx);
    for (int i = 0; s == CK_OK && i < 4; i++) {
        ck_event ev = i % 2 ? ck_event_flush((uint64_t)i) : ck_event_batch(batches[i / 2]);
        while ((s = ck_op_group_agg.op->on_event(h->self, 0, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
    }
    return s;
}

static void no_memory_is_said_and_leaks_nothing(void **state) {
    fixture *f = *state;
    for (uint64_t n = 1;; n++) {
        harness *h = &f->h;
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
        harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_RETRACT);
        h->spec.schema = harness_schema(h, "k VARCHAR; s BIGINT; a DOUBLE; m VARCHAR; d BIGINT");
        h->keep_batches = true;
        harness_context(h);
        ck_batch *batches[2] = {
            harness_batch(h, 0,
                          (const char *const[]){"a key longer than twelve|9223372036854775807", "b|1", "NULL|NULL"}, 3),
            harness_batch(h, 0,
                          (const char *const[]){"a key longer than twelve|5", "-b|1", "c|2",
                                                "-a key longer than twelve|9223372036854775807"},
                          4)};
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = scenario(h, batches);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        ck_batch_unref(&batches[0]);
        ck_batch_unref(&batches[1]);
        if (s != (fired ? CK_NOMEM : CK_OK)) fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
        if (!fired) return;
    }
}

static void bad_parameters_are_named(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v VARCHAR", CK_MODE_APPEND);
    static const char *const bad[][2] = {
        {"[1]", "not a JSON object"},
        {"{\"keys\":[9],\"aggregates\":[]}", "\"keys\" must be"},
        {"{\"keys\":[0]}", "\"aggregates\" must be"},
        {"{\"keys\":[0],\"aggregates\":[],\"x\":1}", "no parameter \"x\""},
        {"{\"keys\":[0],\"aggregates\":[{\"fn\":\"median\",\"arg\":1,\"arg_text\":\"v\"}]}", "median"},
        {"{\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":1}]}", "arg_text"},
        {"{\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":null,\"filter\":1,\"filter_text\":\"v\"}]}",
         "not BOOLEAN"},
        {"{\"keys\":[0],\"aggregates\":[{\"fn\":\"count\",\"arg\":null}]}", "its output"},
        {"{\"keys\":", "bad JSON"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_status s = harness_create(h, &ck_op_group_agg, bad[i][0], "k BIGINT");
        assert_true(s == CK_INVALID || s == CK_CORRUPT);
        if (!strstr(h->error.msg, bad[i][1])) fail_msg("%s", h->error.msg);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(sums_by_key_and_emits_changes_at_flush),
        T(unchanged_results_say_nothing),
        T(final_emits_once_at_the_end),
        T(the_global_aggregate_has_one_row),
        T(the_global_row_comes_also_of_nothing_and_from_one_subtask),
        T(vanished_groups_are_only_retracted),
        T(distinct_passes_each_key_once),
        T(sums_go_past_64_bits_and_are_checked_when_read),
        T(a_carry_survives_a_restart),
        T(decimals_are_exact),
        T(filters_and_shared_accumulators),
        T(filters_share_a_set),
        T(arguments_that_cannot_be_null),
        T(double_sums_can_be_taken_back),
        T(variances_can_be_taken_back),
        T(one_row_batches_flush_each),
        T(many_touched_groups_force_a_flush),
        T(no_memory_is_said_and_leaks_nothing),
        T(bad_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
