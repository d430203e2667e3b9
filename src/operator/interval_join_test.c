/* The join that time bounds against all pairs: random rows within the watermark's delay, batches, watermarks, restarts.
 */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define LEFT   "k VARCHAR; t TIMESTAMP(6); v BIGINT"
#define RIGHT  "w BIGINT; k VARCHAR; ms BIGINT"
#define OUTPUT LEFT "; " RIGHT
#define PARAMS(lower, upper, residual)                                                                                 \
    "{\"kind\":\"inner\",\"left_keys\":[0],\"right_keys\":[1],\"left_time\":1,\"right_time\":2,\"lower_us\":" lower    \
    ",\"upper_us\":" upper ",\"residual\":[" residual "]}"
#define V_LESS_W                                                                                                       \
    "{\"fn\":\"<\",\"type\":\"BOOLEAN\",\"null\":true,\"args\":[{\"col\":2,\"type\":\"BIGINT\",\"null\":true},"     \
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
    print_time(r->seconds, t, sizeof t);
    if (left)
        snprintf(out, room, "a key longer than twelve bytes %d|%s|%d", r->key, t, r->value);
    else
        snprintf(out, room, "%d|a key longer than twelve bytes %d|%d", r->value, r->key, r->seconds * 1000);
}

static void feed(harness *h, uint32_t side, row *rows, int *n, int *top, int count) {
    static char text[64][120];
    const char *lines[64];
    for (int i = 0; i < count; i++) {
        row r = {pick(3), *top - pick(DELAY + 1), pick(6)};
        if (r.seconds < 0) r.seconds = 0;
        rows[(*n)++] = r;
        print_row(&r, side == 0, text[i], sizeof text[i]);
        lines[i] = text[i];
        *top += pick(3);
    }
    harness_ok(h, harness_try_rows(h, side, lines, (uint32_t)count));
}

static void check(harness *h, const row *l, int ln, const row *r, int rn, int lower, int upper, bool residual) {
    size_t want = 0;
    harness_net(h);
    for (int i = 0; i < ln; i++)
        for (int j = 0; j < rn; j++) {
            int d = r[j].seconds - l[i].seconds;
            want += l[i].key == r[j].key && d >= lower && d <= upper && (!residual || l[i].value < r[j].value);
        }
    size_t got = 0;
    for (size_t i = 0; i < h->line_count; i++) {
        assert_true(h->lines[i].weight > 0);
        got += (size_t)h->lines[i].weight;
    }
    assert_int_equal(got, want);
    for (int i = 0; i < ln; i++)
        for (int j = 0; j < rn; j++) {
            char a[120], b[120], line[260];
            int d = r[j].seconds - l[i].seconds, times = 0;
            if (l[i].key != r[j].key || d < lower || d > upper || (residual && l[i].value >= r[j].value)) continue;
            print_row(&l[i], true, a, sizeof a);
            print_row(&r[j], false, b, sizeof b);
            snprintf(line, sizeof line, "%s|%s", a, b);
            for (size_t k = 0; k < h->line_count; k++)
                if (strcmp(h->lines[k].text, line) == 0) times = h->lines[k].weight;
            if (times == 0) fail_msg("no %s", line);
        }
}

static void one_case(uint64_t case_seed) {
    static row l[ROWS], r[ROWS];
    static const struct {
        const char *params;
        int lower, upper;
        bool residual;
    } shapes[] = {{PARAMS("0", "0", ""), 0, 0, false},
                  {PARAMS("-5000000", "5000000", ""), -5, 5, false},
                  {PARAMS("-9000000", "-2000000", V_LESS_W), -9, -2, true},
                  {PARAMS("3000000", "12000000", ""), 3, 12, false},
                  {PARAMS("5000000", "1000000", ""), 5, 1, false}};
    ck_test_proc proc;
    harness h;
    int ln = 0, rn = 0, left_top = 0, right_top = 0;
    seed = case_seed;
    int shape = pick(5);
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, LEFT, CK_MODE_APPEND);
    harness_input(&h, RIGHT, CK_MODE_APPEND);
    harness_start(&h, &ck_op_interval_join, shapes[shape].params, OUTPUT);
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
    check(&h, l, ln, r, rn, shapes[shape].lower, shapes[shape].upper, shapes[shape].residual);
    harness_ok(&h, harness_event(&h, 0, ck_event_watermark(4000000000LL, false)));
    harness_restart(&h, 1000);
    assert_true(ck_state_bytes(h.store) < 40000); /* nothing is kept that no partner can come for */
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_give_all_pairs(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 200); s++) {
        seed = s;
        one_case(s);
    }
}

static void what_it_is_not_made_for_is_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT, CK_MODE_APPEND);
    harness_input(h, RIGHT, CK_MODE_APPEND);
    static const char *const bad[] = {
        "{\"kind\":\"left\",\"left_keys\":[],\"right_keys\":[]}",
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

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    harness_input(h, LEFT, CK_MODE_APPEND);
    harness_input(h, RIGHT, CK_MODE_APPEND);
    h->spec.type = "interval_join";
    h->spec.params = PARAMS("-5000000", "5000000", V_LESS_W);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_give_all_pairs),
                                       T(what_it_is_not_made_for_is_refused), T(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
