/* Rows and versions in random order within the watermark's delay against the version that was valid at each row's time;
 * batches, watermarks, restarts. And the current row of a key over changes. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define LEFT_SIDE  "k VARCHAR; t TIMESTAMP(6); v BIGINT"
#define RIGHT_SIDE "w BIGINT; k VARCHAR; ms BIGINT"
#define OUTPUT     LEFT_SIDE "; " RIGHT_SIDE
#define PARAMS(kind, residual)                                                                                         \
    "{\"kind\":\"" kind "\",\"as_of\":\"event\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,"                 \
    "\"right_time\":2,\"residual\":[" residual "]}"
#define WITH_LATE                                                                                                      \
    "{\"kind\":\"left\",\"as_of\":\"event\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,"                     \
    "\"right_time\":2,\"residual\":[],\"left_late\":[2,0]}"
#define NOW(kind) "{\"kind\":\"" kind "\",\"as_of\":\"now\",\"left_keys\":[0],\"right_keys\":[1],\"residual\":[]}"
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

static void print_row(const row *r, bool left, char *out, size_t room) {
    char k[64] = "NULL";
    if (r->key >= 0) snprintf(k, sizeof k, "a key longer than twelve bytes %d", r->key);
    if (left)
        snprintf(out, room, "%s|1970-01-01 00:%02d:%02d|%d", k, r->seconds / 60, r->seconds % 60, r->value);
    else
        snprintf(out, room, "%d|%s|%d", r->value, k, r->seconds * 1000);
}

static void feed(harness *h, uint32_t side, row *rows, int *n, int *top, int count) {
    static char text[64][120];
    const char *lines[64];
    for (int i = 0; i < count; i++) {
        row r = {pick(4), *top - pick(DELAY + 1), pick(6)};
        if (r.seconds < 0) r.seconds = 0;
        if (side == 0 && pick(20) == 0) r.key = -1; /* NULL */
        rows[(*n)++] = r;
        print_row(&r, side == 0, text[i], sizeof text[i]);
        lines[i] = text[i];
        *top += pick(3);
    }
    harness_ok(h, harness_try_rows(h, side, lines, (uint32_t)count));
}

/* The greatest row of those with the latest time; its text begins with the value. */
static const row *valid_at(const row *l, const row *r, int rn) {
    const row *best = NULL;
    for (int i = 0; i < rn; i++)
        if (r[i].key == l->key && r[i].seconds <= l->seconds &&
            (!best || r[i].seconds > best->seconds || (r[i].seconds == best->seconds && r[i].value > best->value)))
            best = &r[i];
    return best;
}

static void check(harness *h, bool outer, bool residual, const row *l, int ln, const row *r, int rn) {
    char a[120], b[120] = "NULL|NULL|NULL", line[260];
    harness_net(h);
    for (int i = 0; i < ln; i++) {
        const row *version = valid_at(&l[i], r, rn);
        if (version && residual && l[i].value >= version->value) version = NULL;
        if (!version && !outer) continue;
        print_row(&l[i], true, a, sizeof a);
        snprintf(b, sizeof b, "NULL|NULL|NULL");
        if (version) print_row(version, false, b, sizeof b);
        snprintf(line, sizeof line, "%s|%s", a, b);
        size_t k = 0;
        while (k < h->line_count && (strcmp(h->lines[k].text, line) != 0 || h->lines[k].weight <= 0)) k++;
        if (k == h->line_count) fail_msg("no %s", line);
        h->lines[k].weight--;
    }
    for (size_t i = 0; i < h->line_count; i++)
        if (h->lines[i].weight) fail_msg("%d too many of %s", h->lines[i].weight, h->lines[i].text);
}

static void one_case(uint64_t case_seed) {
    static row l[ROWS], r[ROWS];
    static const char *const params[] = {PARAMS("inner", ""), PARAMS("left", ""), PARAMS("inner", V_LESS_W),
                                         PARAMS("left", V_LESS_W)};
    ck_test_proc proc;
    harness h;
    int ln = 0, rn = 0, left_top = 0, right_top = 0;
    seed = case_seed;
    int shape = pick(4);
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(&h, RIGHT_SIDE, CK_MODE_APPEND);
    harness_start(&h, &ck_op_temporal_join, params[shape], OUTPUT);
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
    assert_int_equal(harness_counter(&h, "late_rows"), 0);
    check(&h, shape % 2, shape >= 2, l, ln, r, rn);
    harness_restart(&h, 1000);
    assert_true(ck_state_bytes(h.store) < 40000); /* one version a key */
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_give_the_versions(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 300); s++)
        one_case(s);
}

/* ---- the current row of a key, over changes ---- */

enum { NOW_ROWS = 400 };

typedef struct standing { /* the row of each key, -1: none; and what the left rows met */
    int of[4];
    char met[NOW_ROWS][260];
    int met_count;
} standing;

static void meet(standing *m, const row *l, bool outer) {
    char a[120], b[120] = "NULL|NULL|NULL";
    int value = l->key < 0 ? -1 : m->of[l->key];
    row version = {l->key, value, value};
    if (value < 0 && !outer) return;
    if (value >= 0) print_row(&version, false, b, sizeof b);
    print_row(l, true, a, sizeof a);
    snprintf(m->met[m->met_count++], sizeof m->met[0], "%s|%s", a, b);
}

/* Some keys get another row, or lose theirs; the new one may come before the old one goes. */
static void change_some(harness *h, standing *m) {
    static char text[32][130];
    const char *lines[32];
    uint32_t n = 0;
    for (int i = 0, count = 1 + pick(15); i < count; i++) {
        int key = pick(4), was = m->of[key], is = pick(5) == 0 ? -1 : pick(6);
        bool new_first = pick(2);
        if (is == was) continue; /* no change: nothing is said of it */
        for (int turn = 0; turn < 2; turn++) {
            bool gone = (turn == 0) != new_first;
            row r = {key, gone ? was : is, gone ? was : is};
            if (r.value < 0) continue;
            text[n][0] = gone ? '-' : '+';
            print_row(&r, false, text[n] + 1, sizeof text[n] - 1);
            lines[n] = text[n];
            n++;
        }
        m->of[key] = is;
    }
    if (n) harness_ok(h, harness_try_rows(h, 1, lines, n));
}

static void check_met(harness *h, const standing *m) {
    harness_net(h);
    for (int i = 0; i < m->met_count; i++) {
        size_t k = 0;
        while (k < h->line_count && (strcmp(h->lines[k].text, m->met[i]) != 0 || h->lines[k].weight <= 0)) k++;
        if (k == h->line_count) fail_msg("no %s", m->met[i]);
        h->lines[k].weight--;
    }
    for (size_t i = 0; i < h->line_count; i++)
        if (h->lines[i].weight) fail_msg("%d too many of %s", h->lines[i].weight, h->lines[i].text);
    harness_forget_lines(h);
}

static void one_case_now(uint64_t case_seed) {
    static standing m;
    static row waiting[NOW_ROWS];
    ck_test_proc proc;
    harness h;
    seed = case_seed;
    bool outer = pick(2), bounded = pick(2), ended = false;
    int waiting_count = 0;
    m = (standing){.of = {-1, -1, -1, -1}};
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(&h, RIGHT_SIDE, CK_MODE_RETRACT);
    h.inputs[1].bounded = bounded;
    harness_start(&h, &ck_op_temporal_join, outer ? NOW("left") : NOW("inner"), OUTPUT);
    for (int step = 0; step < 40; step++) {
        bool waits = bounded && !ended;
        if (pick(2) && !ended) {
            change_some(&h, &m);
        } else {
            static char text[8][130];
            const char *lines[8];
            uint32_t n = 1 + (uint32_t)pick(8);
            for (uint32_t i = 0; i < n; i++) {
                row r = {pick(5) - 1, pick(60), pick(6)};
                if (waits)
                    waiting[waiting_count++] = r;
                else
                    meet(&m, &r, outer);
                print_row(&r, true, text[i], sizeof text[i]);
                lines[i] = text[i];
            }
            harness_ok(&h, harness_try_rows(&h, 0, lines, n));
        }
        if (bounded && !ended && pick(20) == 0) {
            ended = true;
            harness_ok(&h, harness_event(&h, 1, ck_event_end()));
            for (int i = 0; i < waiting_count; i++) meet(&m, &waiting[i], outer);
            waiting_count = 0;
        }
        if (!bounded && pick(4) == 0) check_met(&h, &m), m.met_count = 0;
        if (!ended && pick(8) == 0) harness_restart(&h, (uint64_t)step + 1);
    }
    if (!ended) harness_ok(&h, harness_event(&h, 1, ck_event_end()));
    for (int i = 0; i < waiting_count; i++) meet(&m, &waiting[i], outer);
    harness_ok(&h, harness_event(&h, 0, ck_event_end()));
    check_met(&h, &m);
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_changes_give_what_stands(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 300); s++)
        one_case_now(s);
}

static void a_row_waits_for_its_time_and_old_versions_go(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    h->side = harness_schema(h, "v BIGINT; k VARCHAR");
    harness_start(h, &ck_op_temporal_join, WITH_LATE, OUTPUT);
    const char *const versions[] = {"1|k|10000", "2|k|20000", "3|k|30000", "4|k|NULL"};
    harness_ok(h, harness_try_rows(h, 1, versions, 4));
    HARNESS_ROWS(h, "k|1970-01-01 00:00:25|1", "k|1970-01-01 00:00:05|2", "NULL|1970-01-01 00:00:25|3", "k|NULL|4");
    HARNESS_EXPECT(h, "+NULL|1970-01-01 00:00:25|3|NULL|NULL|NULL", "+k|NULL|4|NULL|NULL|NULL");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(24999999, false)));
    HARNESS_EXPECT(h, "+k|1970-01-01 00:00:05|2|NULL|NULL|NULL");
    harness_ok(h, harness_event(h, 0, ck_event_watermark(25000000, false)));
    HARNESS_EXPECT(h, "+k|1970-01-01 00:00:25|1|2|k|20000");
    HARNESS_ROWS(h, "k|1970-01-01 00:00:12|5"); /* its version is gone */
    HARNESS_EXPECT(h, "+!5|k");
    assert_int_equal(harness_counter(h, "late_rows"), 1);
    assert_int_equal(harness_counter(h, "bad_time_rows"), 1);
    harness_ok(h, harness_event(h, 0, ck_event_end()));
    assert_true(h->closed[1]); /* nobody asks any more */
}

static void now_is_what_stands_there(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_RETRACT);
    harness_start(h, &ck_op_temporal_join, NOW("left"), OUTPUT);
    const char *const first[] = {"1|a|1", "1|b|1", "-1|b|1", "2|b|2"};
    harness_ok(h, harness_try_rows(h, 1, first, 4));
    HARNESS_ROWS(h, "a|NULL|1", "b|NULL|2", "c|NULL|3");
    HARNESS_EXPECT(h, "+a|NULL|1|1|a|1", "+b|NULL|2|2|b|2", "+c|NULL|3|NULL|NULL|NULL");
    const char *const then[] = {"9|b|9", "-2|b|2", "-1|a|1",
                                "-7|d|7"}; /* the new row may come before the old one goes */
    harness_ok(h, harness_try_rows(h, 1, then, 4));
    harness_restart(h, 1);
    HARNESS_ROWS(h, "a|NULL|1", "b|NULL|2", "d|NULL|3");
    HARNESS_EXPECT(h, "+a|NULL|1|NULL|NULL|NULL", "+b|NULL|2|9|b|9", "+d|NULL|3|NULL|NULL|NULL");
}

static void rows_wait_for_the_end_of_a_side_that_ends(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    h->inputs[1].bounded = true;
    harness_start(h, &ck_op_temporal_join, NOW("inner"), OUTPUT);
    assert_true(h->held[0]);
    HARNESS_ROWS(h, "a|NULL|1", "b|NULL|2");
    const char *const rows[] = {"1|a|1", "2|a|2"};
    harness_ok(h, harness_try_rows(h, 1, rows, 2));
    harness_restart(h, 1);
    HARNESS_EXPECT_NOTHING(h);
    harness_ok(h, harness_event(h, 1, ck_event_end()));
    assert_false(h->held[0]);
    HARNESS_EXPECT(h, "+a|NULL|1|2|a|2");
    HARNESS_ROWS(h, "a|NULL|3");
    HARNESS_EXPECT(h, "+a|NULL|3|2|a|2");
}

/* Longer than a key may be: rows are told apart by the whole of it all the same. */
static void long_texts_are_told_apart(void **state) {
    harness *h = &((fixture *)*state)->h;
    enum { BYTES = CK_KEY_BYTES_MAX + 100 };
    static char text[2][BYTES + 16];
    const char *const lines[] = {text[0], text[1]};
    for (int i = 0; i < 2; i++) {
        text[i][0] = i ? '+' : '-';
        memset(text[i] + 1, 'x', BYTES);
        snprintf(text[i] + 1 + BYTES, 15, "%d|a", i);
    }
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, "note VARCHAR; k VARCHAR", CK_MODE_RETRACT);
    harness_start(h, &ck_op_temporal_join, NOW("left"), LEFT_SIDE "; note VARCHAR; k VARCHAR");
    harness_ok(h, harness_try_rows(h, 1, lines + 1, 1));
    harness_ok(h, harness_try_rows(h, 1, lines, 1)); /* of another row: nothing */
    assert_true(ck_state_bytes(h->store) > BYTES);
    text[1][0] = '-';
    harness_ok(h, harness_try_rows(h, 1, lines + 1, 1));
    HARNESS_ROWS(h, "a|NULL|1");
    HARNESS_EXPECT(h, "+a|NULL|1|NULL|NULL");
}

static void what_it_is_not_made_for_is_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_RETRACT);
    static const char *const bad[] = {PARAMS("left", ""), NOW("full"), NOW("left") "x",
                                      "{\"kind\":\"left\",\"as_of\":\"then\"}"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        h->error = CK_ERROR_INIT;
        assert_int_not_equal(harness_create(h, &ck_op_temporal_join, bad[i], OUTPUT), CK_OK);
        assert_true(h->error.msg[0] != 0);
    }
}

static ck_status scenario(harness *h, ck_batch *const *batches) {
    h->desc = &ck_op_temporal_join;
    ck_status s = h->desc->create(&h->spec, h->mem, &h->self, &h->error);
    if (s == CK_OK) s = h->desc->op->open(h->self, &h->ctx);
    for (uint32_t i = 0; s == CK_OK && i < 5; i++) {
        ck_event ev = i < 4 ? ck_event_batch(batches[i]) : ck_event_watermark(100000000, false);
        while ((s = h->desc->op->on_event(h->self, i % 2, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
    }
    return s;
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    harness_input(h, LEFT_SIDE, CK_MODE_APPEND);
    harness_input(h, RIGHT_SIDE, CK_MODE_APPEND);
    h->spec.type = "temporal_join";
    h->spec.params = PARAMS("left", V_LESS_W);
    h->spec.schema = harness_schema(h, OUTPUT);
    h->keep_batches = true;
    ck_batch *batches[4];
    for (uint32_t i = 0; i < 4; i++) {
        char text[3][120];
        const char *lines[3] = {text[0], text[1], text[2]};
        for (int k = 0; k < 3; k++)
            print_row(&(row){k % 2, (int)i / 2 + k, (int)i + (i % 2 ? 5 : 1)}, i % 2 == 0, text[k], sizeof text[k]);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_give_the_versions),
                                       cmocka_unit_test(random_changes_give_what_stands),
                                       T(a_row_waits_for_its_time_and_old_versions_go),
                                       T(now_is_what_stands_there),
                                       T(rows_wait_for_the_end_of_a_side_that_ends),
                                       T(long_texts_are_told_apart),
                                       T(what_it_is_not_made_for_is_refused),
                                       T(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
