/* The join that time bounds of every kind against all pairs: random rows within the watermark's delay, batches,
 * watermarks, restarts.
 */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define LEFT_SIDE  "k VARCHAR; t TIMESTAMP(6); v BIGINT"
#define RIGHT_SIDE "w BIGINT; k VARCHAR; ms BIGINT"
#define OUTPUT     LEFT_SIDE "; " RIGHT_SIDE
#define PARAMS(lower, upper, residual)                                                                                 \
    "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,\"right_time\":2,\"lower_us\":" lower    \
    ",\"upper_us\":" upper ",\"residual\":[" residual "]}"
#define OF_KIND                                                                                                        \
    "{\"kind\":\"%s\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,\"right_time\":2,\"lower_us\":%d,"          \
    "\"upper_us\":%d,\"residual\":[%s]}"
#define V_LESS_W                                                                                                       \
    "{\"fn\":\"<\",\"type\":\"BOOLEAN\",\"null\":true,\"args\":[{\"col\":2,\"type\":\"BIGINT\",\"null\":true},"        \
    "{\"col\":3,\"type\":\"BIGINT\",\"null\":true}]}"

typedef struct row {
    int key, seconds, value;
} row;

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

enum { ROWS = 150, DELAY = 6 };

static void print_time(int seconds, char *out, size_t room) {
    snprintf(out, room, "1970-01-01 00:%02d:%02d", seconds / 60, seconds % 60);
}
static void print_row(const row *r, bool left, char *out, size_t room) {
    char t[32];
    char k[64] = "NULL";
    print_time(r->seconds, t, sizeof t);
    if (r->key >= 0) snprintf(k, sizeof k, "a key longer than twelve bytes %d", r->key);
    if (left)
        snprintf(out, room, "%s|%s|%d", k, t, r->value);
    else
        snprintf(out, room, "%d|%s|%d", r->value, k, r->seconds * 1000);
}

static void feed(harness *h, uint32_t side, row *rows, int *n, int *top, int count) {
    static char text[64][120];
    const char *lines[64];
    for (int i = 0; i < count; i++) {
        row r = {pick(3), *top - pick(DELAY + 1), pick(6)};
        if (r.seconds < 0) r.seconds = 0;
        if (pick(20) == 0) r.key = -1; /* NULL */
        rows[(*n)++] = r;
        print_row(&r, side == 0, text[i], sizeof text[i]);
        lines[i] = text[i];
        *top += pick(3);
    }
    harness_ok(h, harness_try_rows(h, side, lines, (uint32_t)count));
}

typedef struct shape {
    const char *kind;
    int lower, upper;
    bool residual;
} shape;

static bool meets(const shape *of, const row *l, const row *r) {
    int d = r->seconds - l->seconds;
    bool keys = l->key >= 0 && l->key == r->key && l->seconds >= 0 && r->seconds >= 0;
    return keys && d >= of->lower && d <= of->upper && (!of->residual || l->value < r->value);
}

static void expect(harness *h, const char *line, int times) {
    for (size_t k = 0; k < h->line_count; k++)
        if (strcmp(h->lines[k].text, line) == 0) {
            assert_true(h->lines[k].weight >= times);
            h->lines[k].weight -= times;
            return;
        }
    fail_msg("no %s", line);
}

/* Every row against every other. */
static void check(harness *h, const shape *of, const row *l, int ln, const row *r, int rn) {
    char a[120], b[120], line[260];
    bool only_left = strcmp(of->kind, "semi") == 0 || strcmp(of->kind, "anti") == 0,
         full = strcmp(of->kind, "full") == 0;
    harness_net(h);
    for (size_t i = 0; i < h->line_count; i++) assert_true(h->lines[i].weight > 0); /* nothing is taken back */
    for (int i = 0; i < ln; i++) {
        int met = 0;
        print_row(&l[i], true, a, sizeof a);
        for (int j = 0; j < rn; j++) {
            if (!meets(of, &l[i], &r[j])) continue;
            met++;
            if (only_left) continue;
            print_row(&r[j], false, b, sizeof b);
            snprintf(line, sizeof line, "%s|%s", a, b);
            expect(h, line, 1);
        }
        if (only_left && (met > 0) == (strcmp(of->kind, "semi") == 0)) expect(h, a, 1);
        snprintf(line, sizeof line, "%s|NULL|NULL|NULL", a);
        if (!met && (full || strcmp(of->kind, "left") == 0)) expect(h, line, 1);
    }
    for (int j = 0; j < rn && (full || strcmp(of->kind, "right") == 0); j++) {
        int met = 0;
        for (int i = 0; i < ln; i++) met += meets(of, &l[i], &r[j]);
        print_row(&r[j], false, b, sizeof b);
        snprintf(line, sizeof line, "NULL|NULL|NULL|%s", b);
        if (!met) expect(h, line, 1);
    }
    for (size_t i = 0; i < h->line_count; i++)
        if (h->lines[i].weight) fail_msg("%d too many of %s", h->lines[i].weight, h->lines[i].text);
}

static void one_case(uint64_t case_seed) {
    static row l[ROWS], r[ROWS];
    static const char *const kinds[] = {"inner", "left", "right", "full", "semi", "anti"};
    static const shape shapes[] = {{NULL, 0, 0, false},  {NULL, -5, 5, false}, {NULL, -9, -2, true},
                                   {NULL, 3, 12, false}, {NULL, 5, 1, false},  {NULL, -1, 8, true}};
    ck_test_proc proc;
    harness h;
    int ln = 0, rn = 0, left_top = 0, right_top = 0;
    char params[600];
    seed = case_seed;
    shape of = shapes[pick(6)];
    of.kind = kinds[pick(6)];
    bool only_left = strcmp(of.kind, "semi") == 0 || strcmp(of.kind, "anti") == 0;
    snprintf(params, sizeof params, OF_KIND, of.kind, of.lower * 1000000, of.upper * 1000000,
             of.residual ? V_LESS_W : "");
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(&h, RIGHT_SIDE, CK_MODE_APPEND);
    harness_start(&h, &ck_op_interval_join, params, only_left ? LEFT_SIDE : OUTPUT);
    while (ln < ROWS - 20 && rn < ROWS - 20) {
        if (pick(2))
            feed(&h, 0, l, &ln, &left_top, 1 + pick(15));
        else
            feed(&h, 1, r, &rn, &right_top, 1 + pick(15));
        int64_t least = left_top < right_top ? left_top : right_top;
        if (pick(3) == 0)
            harness_ok(&h, harness_event(&h, 0, ck_event_watermark((least - DELAY) * 1000000 - 1, false)));
        if (pick(8) == 0) harness_restart(&h, (uint64_t)(ln + rn + 1));
    }
    harness_ok(&h, harness_event(&h, 0, ck_event_end()));
    harness_ok(&h, harness_event(&h, 1, ck_event_end()));
    check(&h, &of, l, ln, r, rn);
    harness_restart(&h, 1000);
    assert_true(ck_state_bytes(h.store) < 40000); /* nothing is kept that no partner can come for */
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

/* What nobody can come for any more is said when the watermark passes its bound, no sooner and no later. */
static void a_row_is_said_alone_when_its_bound_is_passed(void **state) {
    harness *h = &((fixture *)*state)->h;
    char params[600];
    snprintf(params, sizeof params, OF_KIND, "left", -10000000, 5000000, "");
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    harness_start(h, &ck_op_interval_join, params, OUTPUT);
    HARNESS_ROWS(h, "k|1970-01-01 00:01:00|1", "NULL|1970-01-01 00:01:00|2", "k|NULL|3");
    HARNESS_EXPECT(h, "+NULL|1970-01-01 00:01:00|2|NULL|NULL|NULL", "+k|NULL|3|NULL|NULL|NULL");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(64999999, false)));
    HARNESS_EXPECT_NOTHING(h);
    harness_ok(h, harness_event(h, 0, ck_event_watermark(65000000, false)));
    HARNESS_EXPECT(h, "+k|1970-01-01 00:01:00|1|NULL|NULL|NULL");
    assert_int_equal(h->desc->op->watermark_delay_us(h->self), 10000000);
}

/* A row is late when nobody is left that it could meet, and nobody can come: not said, counted, handed on. One that is
 * behind the watermark meets who is still there. */
static void a_row_is_late_when_nobody_can_be_met(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    h->side = harness_schema(h, "k VARCHAR; n BIGINT");
    harness_start(h, &ck_op_interval_join,
                  "{\"kind\":\"left\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,\"right_time\":2,"
                  "\"lower_us\":-10000000,\"upper_us\":5000000,\"residual\":[],\"left_late\":[0,2],"
                  "\"right_late\":[1,0]}",
                  OUTPUT);
    const char *const kept[] = {"7|k|55001"}, *const late[] = {"8|k|50000", "9|k|50001"};
    harness_ok(h, harness_try_rows(h, 1, kept, 1));
    harness_ok(h, harness_event(h, 0, ck_event_watermark(65000000, false)));
    harness_restart(h, 1);
    HARNESS_ROWS(h, "k|1970-01-01 00:00:50|1", "k|1970-01-01 00:00:50.001|2", "NULL|1970-01-01 00:00:01|3");
    HARNESS_EXPECT(h, "+k|1970-01-01 00:00:50.001|2|7|k|55001", "+!k|1", "+NULL|1970-01-01 00:00:01|3|NULL|NULL|NULL");
    harness_ok(h, harness_try_rows(h, 1, late, 2));
    HARNESS_EXPECT(h, "+!k|8");
    assert_int_equal(harness_counter(h, "late_rows"), 2);
}

static void random_histories_give_all_pairs(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 400); s++) {
        seed = s;
        one_case(s);
    }
}

static void what_it_is_not_made_for_is_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    static const char *const bad[] = {
        "{\"kind\":\"cross\",\"left_keys\":[],\"right_keys\":[]}",
        "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[9],\"left_time\":1,\"right_time\":2,\"lower_us\":0,"
        "\"upper_us\":0,\"residual\":[]}",
        "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[0],\"left_time\":1,\"right_time\":2,\"lower_us\":0,"
        "\"upper_us\":0,\"residual\":[]}",
        "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":0,\"right_time\":2,\"lower_us\":0,"
        "\"upper_us\":0,\"residual\":[]}",
        "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,\"right_time\":2,\"upper_us\":0,"
        "\"residual\":[]}",
        PARAMS("0", "0", "7"),
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        h->error = CK_ERROR_INIT;
        assert_int_not_equal(harness_create(h, &ck_op_interval_join, bad[i], OUTPUT), CK_OK);
        assert_true(h->error.msg[0] != 0);
    }
}

static ck_status scenario(harness *h, ck_batch *const *batches) {
    h->desc = &ck_op_interval_join;
    ck_status s = h->desc->create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = h->desc->op->open(h->self, &h->ctx);
    for (uint32_t i = 0; s == CK_OK && i < 5; i++) {
        ck_event ev = i < 4 ? ck_event_batch(batches[i]) : ck_event_watermark(100000000, false);
        while ((s = h->desc->op->on_event(h->self, i % 2, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
    }
    return s;
}

/* What is only there for late rows is not kept, and comes out empty. */
static void columns_that_nobody_reads_are_not_kept(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE "; x VARCHAR", CK_MODE_APPEND);
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_start(h, &ck_op_interval_join,
                  "{\"kind\":\"left\",\"left_keys\":[0],\"right_keys\":[0],\"left_time\":1,\"right_time\":1,"
                  "\"lower_us\":-1000000,\"upper_us\":1000000,\"residual\":[],\"left_unread\":[2,3],"
                  "\"right_unread\":[0,1]}",
                  LEFT_SIDE "; x VARCHAR; k2 VARCHAR; t2 TIMESTAMP(6); v2 BIGINT");
    static const char *const right[] = {"a|1970-01-01 00:00:01|10"};
    HARNESS_ROWS(h, "a|1970-01-01 00:00:01|1|xx", "b|1970-01-01 00:00:01|2|yy");
    harness_restart(h, 1);
    harness_ok(h, harness_try_rows(h, 1, right, 1));
    HARNESS_EXPECT(
        h, "+a|1970-01-01 00:00:01|NULL|NULL|a|1970-01-01 00:00:01|10"); /* keys and times are there all the same */
    harness_ok(h, harness_event(h, 0, ck_event_watermark(5000000, false)));
    HARNESS_EXPECT(h, "+b|1970-01-01 00:00:01|NULL|NULL|NULL|NULL|NULL");
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    h->spec.type = "interval_join";
    char params[600];
    snprintf(params, sizeof params, OF_KIND, "full", -5000000, 5000000, V_LESS_W);
    h->spec.params = params;
    h->spec.schema = harness_schema(h, OUTPUT);
    h->keep_batches = true;
    ck_batch *batches[4];
    for (uint32_t i = 0; i < 4; i++) {
        char text[3][120];
        const char *lines[3] = {text[0], text[1], text[2]};
        for (int k = 0; k < 3; k++)
            print_row(&(row){k, (int)i + k, i % 2 ? 5 : 1}, i % 2 == 0, text[k], sizeof text[k]);
        batches[i] = harness_batch(h, i % 2, lines, 3);
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
        if (s != (fired ? CK_NOMEM : CK_OK)) fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
        if (!fired) break;
    }
    for (uint32_t i = 0; i < 4; i++) ck_batch_unref(&batches[i]);
}

/* A side is (k, end of its window, v); rows come until the watermark has passed the last instant before the end. */
static void windows_meet_until_they_are_over(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_start(
        h, &ck_op_interval_join,
        "{\"kind\":\"full\",\"left_keys\":[0],\"right_keys\":[0],\"left_time\":1,\"right_time\":1,\"lower_us\":0,"
        "\"upper_us\":0,\"slack_us\":-1,\"windowed\":true,\"residual\":[]}",
        LEFT_SIDE "; k2 VARCHAR; t2 TIMESTAMP(6); v2 BIGINT");
    static const char *const right[] = {"a|1970-01-01 00:01:00|10", "b|1970-01-01 00:02:00|20",
                                        "c|253402300800000000|30"};
    HARNESS_ROWS(h, "a|1970-01-01 00:01:00|1", "a|1970-01-01 00:02:00|2", "b|1970-01-01 00:01:00|3",
                 "c|253402300800000000|4");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(59999998, false)));
    harness_ok(h, harness_try_rows(h, 1, right, 3));
    HARNESS_EXPECT(h, "+a|1970-01-01 00:01:00|1|a|1970-01-01 00:01:00|10",
                   "+c|10000-01-01 00:00:00|4|c|10000-01-01 00:00:00|30");
    harness_restart(h, 1);
    harness_ok(h, harness_event(h, 0, ck_event_watermark(59999999, false)));
    HARNESS_EXPECT(h, "+b|1970-01-01 00:01:00|3|NULL|NULL|NULL");
    assert_int_equal(harness_kept_rows(h, 2), 4);
    harness_ok(h, harness_event(h, 0, ck_event_watermark(119999999, false)));
    harness_net(h);
    HARNESS_EXPECT(h, "+NULL|NULL|NULL|b|1970-01-01 00:02:00|20", "+a|1970-01-01 00:02:00|2|NULL|NULL|NULL");
    harness_end(h);
    harness_ok(h, harness_event(h, 1, ck_event_end()));
    HARNESS_EXPECT_NOTHING(h);
    assert_int_equal(harness_kept_rows(h, 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_give_all_pairs),
                                       T(a_row_is_said_alone_when_its_bound_is_passed),
                                       T(a_row_is_late_when_nobody_can_be_met),
                                       T(windows_meet_until_they_are_over),
                                       T(what_it_is_not_made_for_is_refused),
                                       T(columns_that_nobody_reads_are_not_kept),
                                       T(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
