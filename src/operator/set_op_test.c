/* INTERSECT and EXCEPT against a weighted multiset, and what they refuse. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

enum { VALUES = 6, BATCH_MAX = 30 };

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

static const char *const params[4] = {"{\"op\":\"intersect\",\"all\":false}", "{\"op\":\"intersect\",\"all\":true}",
                                      "{\"op\":\"except\",\"all\":false}", "{\"op\":\"except\",\"all\":true}"};

static void value_text(int v, char *out, size_t n) {
    if (v == 0)
        snprintf(out, n, "NULL|NULL");
    else
        snprintf(out, n, "%d|%s%d", v / 2, v % 2 ? "a text of more than twelve bytes " : "", v);
}

static int times_of(int what, int left, int right) {
    if (what == 0) return left > 0 && right > 0;
    if (what == 1) return left < right ? left : right;
    if (what == 2) return left > 0 && right == 0;
    return left > right ? left - right : 0;
}

static void send(harness *h, uint32_t input, char text[][64], uint32_t n) {
    const char *rows[BATCH_MAX];
    for (uint32_t i = 0; i < n; i++) rows[i] = text[i];
    harness_ok(h, harness_try_rows(h, input, rows, n));
}

static void random_rows(harness *h, uint32_t input, bool retract, int *have) {
    char text[BATCH_MAX][64], value[56];
    uint32_t n = (uint32_t)pick(BATCH_MAX);
    for (uint32_t i = 0; i < n; i++) {
        int v = pick(VALUES), weight = retract && pick(2) ? -1 : 1;
        have[v] += weight;
        value_text(v, value, sizeof value);
        snprintf(text[i], sizeof text[i], "%c%s", weight > 0 ? '+' : '-', value);
    }
    send(h, input, text, n);
}

static void one_case(uint64_t case_seed) {
    ck_test_proc proc;
    harness h, want = {0};
    int have[2][VALUES] = {{0}};
    bool retract[2];
    seed = case_seed;
    int what = pick(4);
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    for (int i = 0; i < 2; i++)
        harness_input(&h, "k BIGINT; s VARCHAR", (retract[i] = pick(2)) ? CK_MODE_RETRACT : CK_MODE_APPEND);
    h.spec.final = what >= 2 && pick(2);
    if (pick(3) == 0) h.settings.batch_rows = 1 + (uint32_t)pick(6);
    harness_start(&h, &ck_op_set_op, params[what], NULL);
    for (int step = pick(20); step >= 0; step--) {
        uint32_t input = (uint32_t)pick(2);
        random_rows(&h, input, retract[input], have[input]);
        if (pick(5) == 0) harness_restart(&h, (uint64_t)step + 1);
    }
    for (uint32_t input = 0; input < 2; input++) /* nothing stays below zero */
        for (int v = 0; v < VALUES; v++)
            for (; have[input][v] < 0; have[input][v]++) {
                char text[1][64], value[56];
                value_text(v, value, sizeof value);
                snprintf(text[0], sizeof text[0], "+%s", value);
                send(&h, input, text, 1);
            }
    harness_ok(&h, harness_event(&h, 1, ck_event_end()));
    harness_ok(&h, harness_event(&h, 0, ck_event_end()));
    if (h.spec.final || (what < 2 && !retract[0] && !retract[1])) assert_false(h.weighted);
    for (int v = 0; v < VALUES; v++) {
        char value[56];
        int times = times_of(what, have[0][v], have[1][v]);
        value_text(v, value, sizeof value);
        if (times) harness_keep(&want, value, times);
    }
    harness_net(&want);
    harness_net(&h);
    assert_int_equal(h.line_count, want.line_count);
    for (size_t i = 0; i < want.line_count; i++)
        if (strcmp(h.lines[i].text, want.lines[i].text) != 0 || h.lines[i].weight != want.lines[i].weight)
            fail_msg("seed %llu: %d of %s, not %d of %s", (unsigned long long)case_seed, h.lines[i].weight,
                     h.lines[i].text, want.lines[i].weight, want.lines[i].text);
    harness_forget_lines(&want);
    free(want.lines);
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_net_to_the_definition(void **state) {
    (void)state;
    for (uint64_t s = 1; s <= 600; s++) one_case(s);
}

static void rows_go_out_as_they_change(void **state) {
    harness *h = &((fixture *)*state)->h;
    for (int i = 0; i < 2; i++) harness_input(h, "v BIGINT", CK_MODE_RETRACT);
    harness_start(h, &ck_op_set_op, params[3], NULL);
    const char *const left[] = {"1", "1", "2", "NULL"}, *const right[] = {"1", "2", "NULL"}, *const back[] = {"-2"};
    harness_ok(h, harness_try_rows(h, 0, left, 4));
    HARNESS_EXPECT(h, "+1", "+1", "+2", "+NULL");
    harness_ok(h, harness_try_rows(h, 1, right, 3));
    HARNESS_EXPECT(h, "-1", "-2", "-NULL");
    harness_ok(h, harness_try_rows(h, 1, back, 1));
    HARNESS_EXPECT(h, "+2");
    harness_ok(h, harness_try_rows(h, 1, back, 1)); /* before its row: nothing changes, it is counted */
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_counter(h, "negative_rows"), 1);
}

static void bad_parameters(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "v BIGINT", CK_MODE_APPEND);
    assert_int_equal(harness_create(h, &ck_op_set_op, params[0], NULL), CK_INVALID);
    harness_input(h, "v VARCHAR", CK_MODE_APPEND);
    assert_int_equal(harness_create(h, &ck_op_set_op, params[0], NULL), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "column 1 differs in type"));
    h->inputs[1].schema = harness_schema(h, "v BIGINT; w BIGINT");
    assert_int_equal(harness_create(h, &ck_op_set_op, params[0], NULL), CK_INVALID);
    assert_non_null(strstr(h->error.msg, "1 and 2 columns"));
    assert_int_equal(harness_create(h, &ck_op_set_op, "{\"op\":\"minus\",\"all\":true}", NULL), CK_INVALID);
    h->inputs[1].mode = CK_MODE_UPSERT;
    assert_int_equal(harness_create(h, &ck_op_set_op, params[0], NULL), CK_INVALID);
}

static ck_status scenario(harness *h, ck_batch *const *batches) {
    ck_status s = ck_op_set_op.create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = ck_op_set_op.op->open(h->self, &h->ctx);
    for (uint32_t i = 0; s == CK_OK && i < 4; i++) {
        ck_event ev = i < 2 ? ck_event_batch(batches[i]) : ck_event_end();
        while ((s = ck_op_set_op.op->on_event(h->self, i % 2, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
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
        for (int i = 0; i < 2; i++) harness_input(h, "k VARCHAR; v BIGINT", CK_MODE_RETRACT);
        h->spec.schema = h->inputs[0].schema, h->spec.type = "set_op", h->spec.params = params[3];
        h->spec.final = n % 2;
        h->desc = &ck_op_set_op;
        h->keep_batches = true;
        harness_context(h);
        ck_batch *batches[2] = {
            harness_batch(h, 0, (const char *const[]){"a key longer than twelve|1", "b|2", "NULL|NULL"}, 3),
            harness_batch(h, 1, (const char *const[]){"b|2", "-c|3"}, 2)};
        ck_tracked_heap_fail_nth(f->proc.heap, (n + 1) / 2);
        ck_status s = scenario(h, batches);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        ck_batch_unref(&batches[0]);
        ck_batch_unref(&batches[1]);
        if (fired) assert_int_equal(s, CK_NOMEM);
        if (!fired && n % 2 == 0) {
            harness_ok(h, s);
            return;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_net_to_the_definition),
        T(rows_go_out_as_they_change),
        T(bad_parameters),
        T(no_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
