/* top_n and sort one behaviour at a time: ranks, ties, NULLs, offsets, refills, what is said in what order; failing
 * allocations; parameters. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define ASC(col)  "{\"col\":" #col ",\"desc\":false,\"nulls_first\":false}"
#define DESC(col) "{\"col\":" #col ",\"desc\":true,\"nulls_first\":true}"
#define INPUT     "k BIGINT; v BIGINT; s VARCHAR"
#define RANKED    INPUT "; rank BIGINT NOT NULL"

static harness *start(void **state, ck_edge_mode mode, const char *params, bool rank_column) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, mode);
    harness_start(h, &ck_op_top_n, params, rank_column ? RANKED : NULL);
    return h;
}

/* ---- the first row ---- */

static void the_last_row_of_a_key_replaces_the_one_before(void **state) {
    harness *h =
        start(state, CK_MODE_APPEND,
              "{\"partition\":[0],\"order\":[" DESC(1) "],\"limit\":1,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "1|10|a", "2|5|b", "1|11|c", "1|9|d");
    HARNESS_EXPECT_NOTHING(h);
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|11|c", "+2|5|b");
    HARNESS_ROWS(h, "2|4|x", "1|12|longer than twelve bytes", "1|NULL|e", "3|1|f");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|11|c", "+1|NULL|e", "+3|1|f");
    HARNESS_ROWS(h, "1|100|g");
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void equal_order_columns_are_told_apart_by_the_whole_row(void **state) {
    harness *h =
        start(state, CK_MODE_APPEND,
              "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":1,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "1|10|c", "1|10|b");
    HARNESS_ROWS(h, "1|10|d", "1|10|b");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|10|b");
    HARNESS_ROWS(h, "1|10|NULL", "1|10|a");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|10|b", "+1|10|a");
}

static void the_first_row_of_all_has_no_partition(void **state) {
    harness *h = start(state, CK_MODE_APPEND,
                       "{\"partition\":[],\"order\":[" ASC(2) "],\"limit\":1,\"offset\":0,\"rank\":\"row_number\","
                                                              "\"rank_column\":true}",
                       true);
    harness_flush(h);
    HARNESS_EXPECT_NOTHING(h);
    HARNESS_ROWS(h, "1|10|c", "2|10|b");
    harness_restart(h, 1);
    HARNESS_EXPECT(h, "+2|10|b|1");
    HARNESS_ROWS(h, "1|10|z", "7|NULL|a");
    harness_end(h);
    HARNESS_EXPECT(h, "-2|10|b|1", "+7|NULL|a|1");
}

/* ---- ranks ---- */

static void rows_are_numbered_and_move_down(void **state) {
    harness *h = start(state, CK_MODE_APPEND,
                       "{\"partition\":[0],\"order\":[" DESC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\","
                                                                "\"rank_column\":true}",
                       true);
    HARNESS_ROWS(h, "1|10|a", "1|20|b", "1|5|c");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|20|b|1", "+1|10|a|2");
    HARNESS_ROWS(h, "1|15|d");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|10|a|2", "+1|15|d|2");
    HARNESS_ROWS(h, "1|30|e");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|20|b|1", "-1|15|d|2", "+1|30|e|1", "+1|20|b|2");
}

static void without_a_rank_only_what_enters_and_leaves_is_said(void **state) {
    harness *h =
        start(state, CK_MODE_APPEND,
              "{\"partition\":[0],\"order\":[" DESC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "1|10|a", "1|20|b", "1|5|c");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|20|b", "+1|10|a");
    HARNESS_ROWS(h, "1|30|e", "1|1|f");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|10|a", "+1|30|e");
}

static void ties_share_a_rank(void **state) {
    harness *h = start(state, CK_MODE_APPEND,
                       "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"rank\","
                                                               "\"rank_column\":true}",
                       true);
    HARNESS_ROWS(h, "1|10|b", "1|10|a", "1|20|c", "1|30|d");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|10|a|1", "+1|10|b|1");
    HARNESS_ROWS(h, "1|5|e");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|10|a|1", "-1|10|b|1", "+1|5|e|1", "+1|10|a|2", "+1|10|b|2");
    HARNESS_ROWS(h, "1|10|z");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|10|z|2");
}

static void dense_ranks_leave_no_gap(void **state) {
    harness *h = start(state, CK_MODE_APPEND,
                       "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"dense_rank\","
                                                               "\"rank_column\":true}",
                       true);
    HARNESS_ROWS(h, "1|10|b", "1|10|a", "1|20|c", "1|30|d", "1|20|c");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|10|a|1", "+1|10|b|1", "+1|20|c|2", "+1|20|c|2");
    HARNESS_ROWS(h, "1|15|e");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|20|c|2", "-1|20|c|2", "+1|15|e|2");
}

static void nulls_stand_where_they_are_told(void **state) {
    harness *h = start(state, CK_MODE_APPEND,
                       "{\"partition\":[],\"order\":[{\"col\":1,\"desc\":true,\"nulls_first\":false}],\"limit\":2,"
                       "\"offset\":1,\"rank\":\"row_number\",\"rank_column\":true}",
                       true);
    HARNESS_ROWS(h, "1|NULL|n", "1|1|a", "1|2|b");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|1|a|2", "+1|NULL|n|3");
    HARNESS_ROWS(h, "NULL|3|c");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|1|a|2", "-1|NULL|n|3", "+1|2|b|2", "+1|1|a|3");
}

/* ---- changes ---- */

static void a_row_that_leaves_is_refilled(void **state) {
    harness *h =
        start(state, CK_MODE_RETRACT,
              "{\"partition\":[0],\"order\":[" DESC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "1|10|a", "1|20|b", "1|5|c", "2|1|d");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|20|b", "+1|10|a", "+2|1|d");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "-1|20|b", "-2|1|d");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|20|b", "+1|5|c", "-2|1|d");
    HARNESS_ROWS(h, "1|7|x", "-1|7|x", "-1|10|a", "+1|10|a");
    harness_flush(h);
    HARNESS_EXPECT_NOTHING(h);
    HARNESS_ROWS(h, "-1|10|a", "-1|5|c");
    harness_end(h);
    HARNESS_EXPECT(h, "-1|10|a", "-1|5|c");
    assert_int_equal(ck_state_bytes(h->store) > 0, 1);
}

static void a_row_taken_away_before_it_came_says_nothing(void **state) {
    harness *h =
        start(state, CK_MODE_RETRACT,
              "{\"partition\":[0],\"order\":[" DESC(1) "],\"limit\":1,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "-1|20|b", "+1|10|a");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|10|a");
    HARNESS_ROWS(h, "+1|20|b", "+1|20|b");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|10|a", "+1|20|b");
}

static void copies_of_a_row_count_one_by_one(void **state) {
    harness *h = start(state, CK_MODE_RETRACT,
                       "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":3,\"offset\":1,\"rank\":\"row_number\","
                                                               "\"rank_column\":true}",
                       true);
    HARNESS_ROWS(h, "1|1|a", "1|1|a", "1|1|a", "1|2|b", "1|2|b");
    harness_flush(h);
    HARNESS_EXPECT(h, "+1|1|a|2", "+1|1|a|3", "+1|2|b|4");
    HARNESS_ROWS(h, "-1|1|a");
    harness_flush(h);
    HARNESS_EXPECT(h, "-1|1|a|3", "+1|2|b|3");
}

static void with_one_row_batches_every_row_is_answered(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->settings.batch_rows = 1;
    start(state, CK_MODE_APPEND,
          "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "1|3|c");
    HARNESS_EXPECT(h, "+1|3|c");
    HARNESS_ROWS(h, "1|2|b");
    HARNESS_EXPECT(h, "+1|2|b");
    HARNESS_ROWS(h, "1|1|a");
    HARNESS_EXPECT(h, "-1|3|c", "+1|1|a");
    HARNESS_ROWS(h, "1|9|z");
    HARNESS_EXPECT_NOTHING(h);
}

/* ---- final and sort ---- */

static void final_says_each_top_once(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->spec.final = true;
    start(state, CK_MODE_RETRACT,
          "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\"}", false);
    HARNESS_ROWS(h, "1|3|c", "1|2|b", "1|1|a", "-1|2|b");
    harness_flush(h);
    harness_restart(h, 1);
    HARNESS_EXPECT_NOTHING(h);
    harness_end(h);
    assert_false(h->weighted);
    HARNESS_EXPECT(h, "+1|1|a", "+1|3|c");
}

static harness *sorted(void **state, const char *params) {
    harness *h = &((fixture *)*state)->h;
    h->spec.final = true;
    h->settings.batch_rows = 2;
    harness_input(h, INPUT, CK_MODE_APPEND);
    harness_start(h, &ck_op_sort, params, NULL);
    return h;
}

static void sort_says_all_rows_in_order(void **state) {
    harness *h = sorted(state, "{\"keys\":[" DESC(1) "," ASC(2) "],\"limit\":null,\"offset\":0}");
    HARNESS_ROWS(h, "1|3|c", "2|NULL|b", "1|3|a");
    harness_restart(h, 1);
    HARNESS_ROWS(h, "1|3|NULL", "1|3|c", "NULL|4|");
    harness_end(h);
    HARNESS_EXPECT(h, "+2|NULL|b", "+NULL|4|", "+1|3|a", "+1|3|c", "+1|3|c", "+1|3|NULL");
    assert_true(h->largest_batch <= 2);
}

static void sort_keeps_what_the_limit_asks_for(void **state) {
    harness *h = sorted(state, "{\"keys\":[" ASC(1) "],\"limit\":2,\"offset\":1}");
    HARNESS_ROWS(h, "1|3|c", "1|2|b", "1|9|z", "1|9|z", "1|9|z", "1|1|a");
    harness_end(h);
    HARNESS_EXPECT(h, "+1|2|b", "+1|3|c");
}

static void a_limit_of_nothing_keeps_nothing(void **state) {
    harness *h = sorted(state, "{\"keys\":[" ASC(1) "],\"limit\":0,\"offset\":5}");
    HARNESS_ROWS(h, "1|3|c", "1|2|b");
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

static void an_empty_input_has_no_rows(void **state) {
    harness *h = sorted(state, "{\"keys\":[" ASC(1) "],\"limit\":null,\"offset\":0}");
    harness_end(h);
    HARNESS_EXPECT_NOTHING(h);
}

/* ---- failures ---- */

static const char *const sweeps[] = {
    "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":1,\"offset\":0,\"rank\":\"row_number\"}",
    "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\"}",
    "{\"partition\":[2],\"order\":[" DESC(1) "],\"limit\":1,\"offset\":0,\"rank\":\"rank\"}",
    "{\"partition\":[],\"order\":[" DESC(2) "],\"limit\":2,\"offset\":1,\"rank\":\"dense_rank\"}",
};
static const char windowed[] =
    "{\"partition\":[0],\"order\":[" ASC(1) "],\"limit\":2,\"offset\":0,\"rank\":\"row_number\",\"window_end\":0}";

/* Batches and flushes between them, then the end. */
static ck_status scenario(harness *h, const ck_op_desc *desc, const char *params, ck_batch *const *batches) {
    h->spec.type = desc->type;
    h->spec.params = params;
    h->desc = desc;
    ck_status s = h->desc->create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = h->desc->op->open(h->self, &h->ctx);
    for (int i = 0; s == CK_OK && i < 7; i++) {
        ck_event ev = i == 6 ? ck_event_end() : i % 2 ? ck_event_flush((uint64_t)i) : ck_event_batch(batches[i / 2]);
        while ((s = h->desc->op->on_event(h->self, 0, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
    }
    return s;
}

static void sweep(fixture *f, const ck_op_desc *desc, const char *params, ck_edge_mode mode, bool final) {
    harness *h = &f->h;
    for (uint64_t n = 1;; n++) {
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
        h->spec.final = final;
        harness_input(h, INPUT, mode);
        h->spec.schema = h->inputs[0].schema;
        h->keep_batches = true;
        harness_context(h);
        ck_batch *batches[3] = {
            harness_batch(h, 0, (const char *const[]){"1|1|a", "2|2|longer than twelve bytes", "1|2|c", "1|3|d"}, 4),
            harness_batch(h, 0, (const char *const[]){"1|0|longer than twelve bytes", "2|1|y", "1|2|c", "3|NULL|z"}, 4),
            harness_batch(h, 0, (const char *const[]){mode == CK_MODE_APPEND ? "5|1|q" : "-1|2|c", "1|-1|w"}, 2)};
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = scenario(h, desc, params, batches);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        for (int i = 0; i < 3; i++) ck_batch_unref(&batches[i]);
        if (s != (fired ? CK_NOMEM : CK_OK)) fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
        if (!fired) return;
    }
}

static void running_out_of_memory_is_said(void **state) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(sweeps); i++)
        for (int mode = CK_MODE_APPEND; mode <= CK_MODE_RETRACT; mode++)
            for (int final = 0; final < 2; final++) sweep(*state, &ck_op_top_n, sweeps[i], (ck_edge_mode)mode, final);
    sweep(*state, &ck_op_top_n, windowed, CK_MODE_APPEND, false);
    sweep(*state, &ck_op_top_n, windowed, CK_MODE_RETRACT, false);
    sweep(*state, &ck_op_sort, "{\"keys\":[" ASC(2) "],\"limit\":null,\"offset\":0}", CK_MODE_APPEND, true);
    sweep(*state, &ck_op_sort, "{\"keys\":[" ASC(2) "],\"limit\":3,\"offset\":0}", CK_MODE_APPEND, true);
}

static void bad_parameters_are_named(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, INPUT, CK_MODE_APPEND);
    static const char *const bad[][2] = {
        {"[1]", "not a JSON object"},
        {"{\"partition\":[9],\"order\":[],\"limit\":1,\"offset\":0,\"rank\":\"rank\"}", "\"partition\" must be"},
        {"{\"partition\":[0],\"order\":[{\"col\":3}],\"limit\":1,\"offset\":0,\"rank\":\"rank\"}", "\"col\" must be"},
        {"{\"partition\":[0],\"order\":[{}],\"limit\":1,\"offset\":0,\"rank\":\"rank\"}", "\"order\" must be"},
        {"{\"partition\":[0],\"order\":[{\"col\":1,\"desc\":3}],\"limit\":1,\"rank\":\"rank\"}", "\"order\" must be"},
        {"{\"partition\":[0],\"order\":[],\"limit\":-1,\"offset\":0,\"rank\":\"rank\"}", "\"limit\" must be"},
        {"{\"partition\":[0],\"order\":[],\"limit\":1,\"offset\":0,\"rank\":\"ntile\"}", "\"rank\" must be"},
        {"{\"partition\":[0],\"order\":[],\"limit\":1,\"rank\":\"rank\",\"rank_column\":1}", "\"rank_column\" must"},
        {"{\"partition\":[0],\"order\":[],\"limit\":1,\"rank\":\"rank\",\"rank_column\":true}", "and the rank"},
        {"{\"partition\":[0],\"order\":[],\"limit\":1,\"rank\":\"rank\",\"x\":1}", "no parameter \"x\""},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_status s = harness_create(h, &ck_op_top_n, bad[i][0], NULL);
        assert_true(s == CK_INVALID || s == CK_CORRUPT);
        if (!strstr(h->error.msg, bad[i][1])) fail_msg("%zu: %s", i, h->error.msg);
    }
    assert_int_equal(harness_create(h, &ck_op_sort, "{\"keys\":3}", NULL), CK_INVALID);
    h->spec.parallelism = 2;
    assert_int_equal(harness_create(h, &ck_op_sort, "{\"keys\":[],\"limit\":1,\"offset\":0}", NULL), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "2 subtasks"));
    h->spec.parallelism = 1;
    h->inputs[0].mode = CK_MODE_RETRACT;
    assert_int_equal(harness_create(h, &ck_op_sort, "{\"keys\":[],\"limit\":1,\"offset\":0}", NULL), CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_last_row_of_a_key_replaces_the_one_before),
        T(equal_order_columns_are_told_apart_by_the_whole_row),
        T(the_first_row_of_all_has_no_partition),
        T(rows_are_numbered_and_move_down),
        T(without_a_rank_only_what_enters_and_leaves_is_said),
        T(ties_share_a_rank),
        T(dense_ranks_leave_no_gap),
        T(nulls_stand_where_they_are_told),
        T(a_row_that_leaves_is_refilled),
        T(a_row_taken_away_before_it_came_says_nothing),
        T(copies_of_a_row_count_one_by_one),
        T(with_one_row_batches_every_row_is_answered),
        T(final_says_each_top_once),
        T(sort_says_all_rows_in_order),
        T(sort_keeps_what_the_limit_asks_for),
        T(a_limit_of_nothing_keeps_nothing),
        T(an_empty_input_has_no_rows),
        T(running_out_of_memory_is_said),
        T(bad_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
