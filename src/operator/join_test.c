/* Joins, one thing at a time; join_model_test.c has random histories. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define PARAMS(kind, single)                                                                                           \
    "{\"kind\":\"" kind                                                                                                \
    "\",\"left_keys\":[0],\"right_keys\":[0],\"null_safe\":[false],\"residual\":[],\"single\":" single "}"
#define V_LESS_W                                                                                                       \
    "{\"fn\":\"<\",\"args\":[{\"col\":1,\"type\":\"BIGINT\",\"null\":true},{\"col\":3,\"type\":\"BIGINT\","            \
    "\"null\":true}],\"type\":\"BOOLEAN\",\"null\":true}"
#define LEFT_COLUMNS "k BIGINT; v BIGINT"
#define BOTH_COLUMNS "k BIGINT; v BIGINT; k2 BIGINT; w BIGINT"

static void rows(harness *h, uint32_t input, const char *const *text, uint32_t n) {
    harness_ok(h, harness_try_rows(h, input, text, n));
}
#define ROWS(h, input, ...)                                                                                            \
    rows(h, input, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void inputs(harness *h, ck_edge_mode mode, bool left_bounded, bool right_bounded) {
    harness_input(h, LEFT_COLUMNS, mode);
    harness_input(h, LEFT_COLUMNS, mode);
    h->inputs[0].bounded = left_bounded, h->inputs[1].bounded = right_bounded;
}

static uint64_t kept(harness *h, uint32_t side) {
    const ck_slot_schema *slots;
    uint32_t count;
    ck_table *t;
    harness_ok(h, ck_op_join.slots(&h->spec, &h->plan, &slots, &count, &h->error));
    assert_int_equal(count, 2);
    harness_ok(h, ck_state_table(h->ctx.state, &slots[side], &t, &h->error));
    return ck_table_row_count(t);
}

static void padding_is_taken_back_before_the_partner_comes(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_RETRACT, false, false);
    harness_start(h, &ck_op_join, PARAMS("left", "false"), BOTH_COLUMNS);
    ROWS(h, 0, "1|10", "1|11", "NULL|5");
    HARNESS_EXPECT(h, "+1|10|NULL|NULL", "+1|11|NULL|NULL", "+NULL|5|NULL|NULL");
    ROWS(h, 1, "1|7");
    HARNESS_EXPECT(h, "-1|10|NULL|NULL", "+1|10|1|7", "-1|11|NULL|NULL", "+1|11|1|7");
    ROWS(h, 1, "-1|7", "1|8"); /* an update, as two rows */
    HARNESS_EXPECT(h, "-1|10|1|7", "+1|10|NULL|NULL", "-1|11|1|7", "+1|11|NULL|NULL", "-1|10|NULL|NULL", "+1|10|1|8",
                   "-1|11|NULL|NULL", "+1|11|1|8");
    ROWS(h, 0, "-1|10");
    HARNESS_EXPECT(h, "-1|10|1|8");
    assert_int_equal(kept(h, 0), 1);
    assert_int_equal(kept(h, 1), 1);
}

static void a_bounded_side_is_built_and_the_other_not_kept(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_APPEND, false, true);
    harness_start(h, &ck_op_join, PARAMS("inner", "false"), BOTH_COLUMNS);
    assert_true(h->held[0]);
    assert_false(h->held[1]);
    ROWS(h, 0, "1|10", "2|20", "NULL|30"); /* too early */
    ROWS(h, 1, "1|7", "2|8");
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(kept(h, 0), 2);
    harness_ok(h, harness_event(h, 1, ck_event_end()));
    assert_false(h->held[0]);
    harness_net(h);
    HARNESS_EXPECT(h, "+1|10|1|7", "+2|20|2|8");
    ROWS(h, 0, "2|21", "3|1", "1|11");
    HARNESS_EXPECT(h, "+2|21|2|8", "+1|11|1|7");
    assert_int_equal(kept(h, 0), 0);
    harness_end(h);
}

/* Rows that came too early are said before the watermark that came with them, also where the watermark comes first. */
static void time_waits_for_the_side_that_is_built(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_APPEND, false, true);
    harness_start(h, &ck_op_join, PARAMS("left", "false"), BOTH_COLUMNS);
    assert_true(h->desc->op->watermark_delay_us(h->self) == CK_WATERMARKS_OWN);
    ROWS(h, 0, "1|10");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(100, false)));
    ROWS(h, 1, "1|7");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(200, false))); /* the right has ended: first its time goes */
    assert_int_equal(h->said_watermark, 0);
    harness_restart(h, 1);
    harness_ok(h, harness_event(h, 0, ck_event_watermark(200, false)));
    assert_int_equal(h->said_watermark, 0);
    harness_ok(h, harness_event(h, 1, ck_event_end()));
    HARNESS_EXPECT(h, "+1|10|1|7");
    assert_int_equal(h->said_watermark, 200);
    ROWS(h, 0, "2|20");
    HARNESS_EXPECT(h, "+2|20|NULL|NULL");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(300, false)));
    assert_int_equal(h->said_watermark, 300);
}

/* Of two sides that end the left is built where the right has the time. */
static void the_left_may_be_built(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_APPEND, true, true);
    harness_start(h, &ck_op_join,
                  "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[0],\"null_safe\":[false],\"residual\":[],"
                  "\"single\":false,\"build_left\":true}",
                  BOTH_COLUMNS);
    assert_true(h->held[1]);
    ROWS(h, 0, "1|10");
    harness_ok(h, harness_event(h, 0, ck_event_end()));
    ROWS(h, 1, "1|7", "2|8");
    HARNESS_EXPECT(h, "+1|10|1|7");
    assert_int_equal(kept(h, 1), 0);
}

static void rows_that_match_once_are_passed_on(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_APPEND, true, true);
    harness_start(h, &ck_op_join, PARAMS("inner", "false"), BOTH_COLUMNS);
    ROWS(h, 1, "1|7", "2|8");
    harness_ok(h, harness_event(h, 1, ck_event_end()));
    h->keep_batches = true;
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"3|1", "1|2", "9|9", "2|3"}, 4);
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    assert_int_equal(h->batch_count, 1);
    const ck_batch *out = h->batches[0];
    assert_ptr_equal(out->columns[1], b->columns[1]);
    assert_int_equal(out->sel_count, 2);
    assert_int_equal(out->sel[0], 1);
    assert_int_equal(out->columns[3]->i64[out->sel[1]], 8);
    ck_batch_unref(&b);
}

static void many_partners_come_in_batches(void **state) {
    harness *h = &((fixture *)*state)->h;
    static char text[4000][24];
    static const char *row[4000];
    for (int i = 0; i < 4000; i++) {
        snprintf(text[i], sizeof text[i], "1|%d", i);
        row[i] = text[i];
    }
    h->settings.batch_rows = 1000;
    inputs(h, CK_MODE_APPEND, false, false);
    harness_start(h, &ck_op_join, PARAMS("inner", "false"), BOTH_COLUMNS);
    rows(h, 1, row, 4000);
    ROWS(h, 0, "1|1", "2|2", "1|3");
    assert_int_equal(h->line_count, 8000);
    assert_true(h->largest_batch <= 1000);
    assert_true(h->batch_count < 12);
}

static void one_row_at_most(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_RETRACT, false, false);
    harness_start(h, &ck_op_join, PARAMS("left", "true"), BOTH_COLUMNS);
    ROWS(h, 1, "1|7", "NULL|1", "NULL|2");
    ROWS(h, 1, "-1|7", "1|8");
    const char *const second[] = {"2|1", "1|9"};
    assert_int_equal(harness_try_rows(h, 1, second, 2), CK_DATA);
    assert_non_null(strstr(h->error.msg, "more than one row"));
}

static void semi_keeps_no_more_than_it_needs(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_APPEND, false, false);
    harness_start(h, &ck_op_join, PARAMS("semi", "false"), LEFT_COLUMNS);
    ROWS(h, 0, "1|10", "2|20", "1|11");
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(kept(h, 0), 3);
    ROWS(h, 1, "1|7", "1|8", "1|9", "5|5");
    harness_net(h);
    HARNESS_EXPECT(h, "+1|10", "+1|11");
    assert_int_equal(kept(h, 0), 1);
    assert_int_equal(kept(h, 1), 2);
    ROWS(h, 0, "1|12");
    HARNESS_EXPECT(h, "+1|12");
    assert_int_equal(kept(h, 0), 1);
}

static void an_update_of_a_counted_key_says_nothing(void **state) {
    harness *h = &((fixture *)*state)->h;
    inputs(h, CK_MODE_RETRACT, false, false);
    harness_start(h, &ck_op_join, PARAMS("anti", "false"), LEFT_COLUMNS);
    ROWS(h, 1, "1|7");
    ROWS(h, 0, "1|10", "2|20");
    HARNESS_EXPECT(h, "+2|20");
    ROWS(h, 1, "-1|7", "1|8");
    HARNESS_EXPECT_NOTHING(h);
    ROWS(h, 1, "-1|8", "2|1");
    HARNESS_EXPECT(h, "+1|10", "-2|20");
}

/* ---- windows ---- */

#define WINDOW_COLUMNS "k BIGINT; we TIMESTAMP(6); n BIGINT"
#define BOTH_WINDOWS   WINDOW_COLUMNS "; k2 BIGINT; we2 TIMESTAMP(6); m BIGINT"
#define BY_WINDOW(kind, more)                                                                                          \
    "{\"kind\":\"" kind                                                                                                \
    "\",\"left_keys\":[0,1],\"right_keys\":[0,1],\"null_safe\":[false,false],\"residual\":[],\"single\":false" more    \
    "}"
#define WINDOWS_GO ",\"left_window_end\":1,\"right_window_end\":1,\"lateness_us\":20000000"

static int by_line(const void *x, const void *y) {
    const harness_line *a = x, *b = y;
    int order = strcmp(a->text, b->text);
    return order ? order : a->weight - b->weight;
}

/* Groups of windows of ten seconds that change what they said for twenty more; the output as one text. */
static char *of_windows(harness *h, ck_edge_mode right, const char *params, bool left_only, uint64_t *most) {
    static int64_t said[2][400][8];
    size_t used = 0;
    char *out = calloc(1, 1 << 22);
    uint64_t seed = 1;
    memset(said, 0, sizeof said);
    *most = 0;
    harness_input(h, WINDOW_COLUMNS, CK_MODE_RETRACT);
    harness_input(h, WINDOW_COLUMNS, right);
    harness_start(h, &ck_op_join, params, left_only ? WINDOW_COLUMNS : BOTH_WINDOWS);
    for (int now = 4; now < 400; now++) {
        for (int i = 0; i < 40; i++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            uint32_t side = (seed >> 33) % 2, key = (seed >> 35) % 8,
                     window = (uint32_t)now - (uint32_t)(seed >> 40) % 3;
            int64_t *n = &said[side][window][key];
            char minus[64], plus[64];
            snprintf(minus, sizeof minus, "-%u|1970-01-01 %02u:%02u:%02u|%lld", key, window / 360, window / 6 % 60,
                     window % 6 * 10, (long long)*n);
            bool changes = *n > 0;
            if (changes && side == 1 && right == CK_MODE_APPEND) continue;
            snprintf(plus, sizeof plus, "%u%.*s|%lld", key, (int)(strrchr(minus, '|') - minus) - 2, minus + 2,
                     (long long)++*n);
            const char *const lines[] = {changes ? minus : plus, plus};
            rows(h, side, lines, changes ? 2 : 1);
        }
        harness_ok(h, harness_event(h, 0, ck_event_watermark(now * 10000000LL - 1, false)));
        if (kept(h, 0) + kept(h, 1) > *most) *most = kept(h, 0) + kept(h, 1);
        if (h->line_count) qsort(h->lines, h->line_count, sizeof *h->lines, by_line);
        for (size_t i = 0; i < h->line_count; i++)
            used += (size_t)snprintf(out + used, (1 << 22) - used, "%d%s\n", h->lines[i].weight, h->lines[i].text);
        harness_forget_lines(h);
        if (now % 50 == 0) harness_restart(h, (uint64_t)now);
    }
    assert_true(used > 10000 && used < (1 << 22) - 100);
    return out;
}

static void rows_go_with_their_windows(void **state) {
    fixture *f = *state;
    static const char *const params[][2] = {{BY_WINDOW("inner", ""), BY_WINDOW("inner", WINDOWS_GO)},
                                            {BY_WINDOW("full", ""), BY_WINDOW("full", WINDOWS_GO)},
                                            {BY_WINDOW("anti", ""), BY_WINDOW("anti", WINDOWS_GO)}};
    for (size_t i = 0; i < 2 * CK_ARRAY_COUNT(params); i++) {
        ck_edge_mode right = i % 2 ? CK_MODE_APPEND : CK_MODE_RETRACT;
        uint64_t all, some;
        char *text[2];
        for (int w = 0; w < 2; w++) {
            text[w] = of_windows(&f->h, right, params[i / 2][w], i / 2 == 2, w ? &some : &all);
            harness_destroy(&f->h);
            harness_init(&f->h, &f->proc.proc);
        }
        if (strcmp(text[1], text[0]) != 0) fail_msg("sample %zu: the output is another", i);
        if (all < 2500 || some > 2000) fail_msg("sample %zu keeps %d of %d rows", i, (int)some, (int)all);
        free(text[0]);
        free(text[1]);
    }
}

static void bad_parameters_are_named(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k BIGINT; v BIGINT", CK_MODE_APPEND);
    assert_int_equal(harness_create(h, &ck_op_join, PARAMS("inner", "false"), BOTH_COLUMNS), CK_INVALID);
    harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_APPEND);
    static const char *const bad[][2] = {
        {PARAMS("inner", "false"), "different types"},
        {PARAMS("outer", "false"), "\"kind\" must be"},
        {"{\"kind\":\"inner\",\"left_keys\":[0,1],\"right_keys\":[1],\"null_safe\":[false],\"residual\":[]}",
         "one length"},
        {"{\"kind\":\"inner\",\"left_keys\":[7],\"right_keys\":[1],\"null_safe\":[false],\"residual\":[]}",
         "\"left_keys\""},
        {"{\"kind\":\"inner\",\"left_keys\":[1],\"right_keys\":[1],\"null_safe\":[1],\"residual\":[]}", "booleans"},
        {"{\"kind\":\"semi\",\"left_keys\":[1],\"right_keys\":[1],\"null_safe\":[true],\"residual\":[],\"single\":"
         "true}",
         "single"},
        {"{\"kind\":\"inner\",\"left_keys\":[1],\"right_keys\":[1],\"null_safe\":[true],\"residual\":[{\"col\":1,"
         "\"type\":"
         "\"BIGINT\",\"null\":true}]}",
         "not BOOLEAN"},
        {"{\"kind\":\"inner\",\"left_keys\":[1],\"right_keys\":[1],\"null_safe\":[true],\"residual\":[],\"left_window_"
         "end\":1,"
         "\"right_window_end\":1}",
         "window ends are TIMESTAMP columns"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        assert_int_equal(harness_create(h, &ck_op_join, bad[i][0], BOTH_COLUMNS), CK_INVALID);
        if (!strstr(h->error.msg, bad[i][1])) fail_msg("%s", h->error.msg);
    }
    h->inputs[1].mode = CK_MODE_UPSERT;
    assert_int_equal(harness_create(h, &ck_op_join, PARAMS("inner", "false"), BOTH_COLUMNS), CK_INVALID);
}

/* ---- every allocation in turn fails ---- */

typedef struct scenario {
    const char *params, *output;
    ck_edge_mode mode;
    bool bounded, final;
} scenario;

static ck_status run(harness *h, ck_batch *const *batches) {
    ck_status s = ck_op_join.create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = ck_op_join.op->open(h->self, &h->ctx);
    for (uint32_t i = 0; s == CK_OK && i < 6; i++) {
        ck_event ev = i < 4 ? ck_event_batch(batches[i]) : ck_event_end();
        while ((s = ck_op_join.op->on_event(h->self, i % 2, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
    }
    return s;
}

static bool fails_at(fixture *f, const scenario *c, uint64_t n) {
    harness *h = &f->h;
    harness_destroy(h);
    harness_init(h, &f->proc.proc);
    for (int i = 0; i < 2; i++) {
        harness_input(h, "k VARCHAR; v BIGINT", c->mode);
        h->inputs[i].bounded = c->bounded;
    }
    h->spec.schema = harness_schema(h, c->output), h->spec.type = "join", h->spec.params = c->params;
    h->spec.final = c->final;
    h->desc = &ck_op_join;
    h->keep_batches = true;
    harness_context(h);
    const char *minus = c->mode == CK_MODE_RETRACT ? "-b|1" : "b|1";
    ck_batch *batches[4] = {
        harness_batch(h, 0, (const char *const[]){"a key longer than twelve|1", "b|1", "NULL|NULL"}, 3),
        harness_batch(h, 1, (const char *const[]){"b|2", "a key longer than twelve|4", "a key longer than twelve|5"},
                      3),
        harness_batch(h, 0, (const char *const[]){minus, "c|2"}, 2),
        harness_batch(h, 1, (const char *const[]){minus, "c|9"}, 2)};
    ck_tracked_heap_fail_nth(f->proc.heap, n);
    ck_status s = run(h, batches);
    bool fired = ck_tracked_heap_fired(f->proc.heap);
    ck_tracked_heap_fail_nth(f->proc.heap, 0);
    for (int i = 0; i < 4; i++) ck_batch_unref(&batches[i]);
    if (s != (fired ? CK_NOMEM : CK_OK)) fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
    return fired;
}

static void no_memory_is_said_and_leaks_nothing(void **state) {
#define RESIDUAL(kind)                                                                                                 \
    "{\"kind\":\"" kind "\",\"left_keys\":[0],\"right_keys\":[0],\"null_safe\":[false],\"residual\":[" V_LESS_W        \
    "],\"single\":false}"
#define WIDE "k VARCHAR; v BIGINT; k2 VARCHAR; w BIGINT"
    static const scenario cases[] = {
        {PARAMS("inner", "false"), WIDE, CK_MODE_APPEND, false, false},
        {PARAMS("inner", "false"), WIDE, CK_MODE_APPEND, true, false},
        {RESIDUAL("full"), WIDE, CK_MODE_RETRACT, false, false},
        {RESIDUAL("full"), WIDE, CK_MODE_RETRACT, true, true},
        {PARAMS("anti", "false"), "k VARCHAR; v BIGINT", CK_MODE_RETRACT, false, false},
        {PARAMS("semi", "false"), "k VARCHAR; v BIGINT", CK_MODE_APPEND, false, false},
    };
    for (size_t c = 0; c < CK_ARRAY_COUNT(cases); c++)
        for (uint64_t n = 1; fails_at(*state, &cases[c], n);) n++;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(padding_is_taken_back_before_the_partner_comes),
        T(a_bounded_side_is_built_and_the_other_not_kept),
        T(time_waits_for_the_side_that_is_built),
        T(the_left_may_be_built),
        T(rows_that_match_once_are_passed_on),
        T(many_partners_come_in_batches),
        T(one_row_at_most),
        T(semi_keeps_no_more_than_it_needs),
        T(an_update_of_a_counted_key_says_nothing),
        T(rows_go_with_their_windows),
        T(bad_parameters_are_named),
        T(no_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
