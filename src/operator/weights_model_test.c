/* Filter, project, union and limit against a weighted multiset: random batches with dead rows and weights, cut at
 * random, with restarts in between; the net of what comes out is the net of what the operator's meaning says. */
#include "operator/operators.h"

#include "operator/harness_test_support.h"
#include "os/test_proc.h"

enum { VALUES = 12, BATCH_MAX = 40 };

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

#define V_OVER_3                                                                                                       \
    "{\"fn\":\">\",\"args\":[{\"col\":0,\"type\":\"BIGINT\",\"null\":true},{\"lit\":3,\"type\":\"BIGINT\"}],"          \
    "\"type\":\"BOOLEAN\",\"null\":true}"
#define V_PLUS_1                                                                                                       \
    "{\"fn\":\"+\",\"args\":[{\"col\":0,\"type\":\"BIGINT\",\"null\":true},{\"lit\":1,\"type\":\"BIGINT\"}],"          \
    "\"type\":\"BIGINT\",\"null\":true}"

typedef struct subject {
    const ck_op_desc *desc;
    const char *params;
    uint32_t inputs;
    bool retract, state;
} subject;
static const subject subjects[] = {
    {&ck_op_filter, "{\"conjuncts\":[" V_OVER_3 "]}", 1, true, false},
    {&ck_op_project, "{\"exprs\":[" V_PLUS_1 "]}", 1, true, false},
    {&ck_op_union, "{}", 3, true, false},
    {&ck_op_limit, "{\"limit\":100,\"offset\":30}", 1, false, true},
};

/* What value v becomes; -1: nothing. NULL is value 0. */
static int meaning(const subject *s, int v) {
    if (s->desc == &ck_op_filter) return v > 3 ? v : -1;
    if (s->desc == &ck_op_project) return v ? v + 1 : 0;
    return v;
}

/* A batch of random rows, some of them dead; adds to the model's net. */
static ck_batch *random_batch(harness *h, const subject *s, uint32_t input, bool retract, int *net, int *seen) {
    char text[BATCH_MAX][8];
    const char *rows[BATCH_MAX];
    uint16_t sel[BATCH_MAX];
    uint32_t n = (uint32_t)pick(BATCH_MAX), live = 0;
    for (uint32_t i = 0; i < n; i++) {
        int v = pick(VALUES), weight = retract && pick(2) ? -1 : 1, out = meaning(s, v);
        snprintf(text[i], sizeof text[i], v ? "%c%d" : "%cNULL", weight > 0 ? '+' : '-', v);
        rows[i] = text[i];
        if (pick(3) == 0) continue; /* dead */
        sel[live++] = (uint16_t)i;
        if (s->desc == &ck_op_limit) {
            bool passes = *seen >= 30 && *seen < 130;
            ++*seen;
            if (!passes) continue;
        }
        if (out >= 0) net[out] += weight;
    }
    ck_batch *all = harness_batch(h, input, rows, n);
    ck_batch *some = ck_batch_select(all, sel, live);
    ck_batch_unref(&all);
    assert_non_null(some);
    return some;
}

static void check(harness *h, const int *net, uint64_t case_seed) {
    int got[VALUES + 2] = {0};
    for (size_t i = 0; i < h->line_count; i++) {
        bool null = strcmp(h->lines[i].text, "NULL") == 0;
        got[null ? 0 : strtol(h->lines[i].text, NULL, 10)] += h->lines[i].weight;
    }
    for (int v = 0; v < VALUES + 2; v++)
        if (got[v] != net[v])
            fail_msg("seed %llu: %d of value %d, not %d", (unsigned long long)case_seed, got[v], v, net[v]);
}

static void one_case(uint64_t case_seed) {
    ck_test_proc proc;
    harness h;
    int net[VALUES + 2] = {0}, seen = 0;
    seed = case_seed;
    const subject *s = &subjects[pick(4)];
    bool retract = s->retract && pick(2);
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    for (uint32_t i = 0; i < s->inputs; i++) harness_input(&h, "v BIGINT", retract ? CK_MODE_RETRACT : CK_MODE_APPEND);
    harness_start(&h, s->desc, s->params, NULL);
    for (int step = pick(20); step >= 0; step--) {
        uint32_t input = (uint32_t)pick((int)s->inputs);
        ck_batch *b = random_batch(&h, s, input, retract, net, &seen);
        harness_ok(&h, harness_event(&h, input, ck_event_batch(b)));
        ck_batch_unref(&b);
        if (pick(4) == 0) harness_flush(&h);
        if (pick(5) == 0) harness_restart(&h, (uint64_t)step + 1);
    }
    harness_end(&h);
    check(&h, net, case_seed);
    if (s->state) assert_int_equal(h.closed[0], seen >= 130);
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_net_to_the_model(void **state) {
    (void)state;
    for (uint64_t s = 1; s <= 500; s++) one_case(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_net_to_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
