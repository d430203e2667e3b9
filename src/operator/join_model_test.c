/* Joins of every kind against a weighted multiset: random rows on either side, appended or taken back, with NULLs, with
 * and without a residual, sides that end early, restarts at other parallelisms. The net of what comes out is what the
 * definition of the join gives over what went in. */
#include "operator/operators.h"

#include "operator/harness_test_support.h"
#include "os/test_proc.h"

enum { K = 4, V = 4, BATCH_MAX = 24, SUBTASKS_MAX = 3 };

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

typedef struct world {
    ck_test_proc proc;
    harness subtasks[SUBTASKS_MAX];
    uint32_t count;
    const char *type;
    char params[1024];
    bool wide;     /* a text column behind k and v */
    int keys;      /* of (k), (k, v), () */
    bool safe;     /* IS NOT DISTINCT FROM on k */
    bool residual; /* v < w */
    bool retract[2], bounded[2], final, ended[2];
    int rows[2][K][V];   /* by k and v, 0 is NULL */
    harness_line *lines; /* all that came out */
    size_t line_count, line_capacity;
    uint64_t checkpoint;
    uint32_t batch_rows;
} world;

/* ---- the definition ---- */

static bool matches(const world *w, int k, int v, int k2, int v2) {
    if (w->keys != 2 && !(k == k2 && (k || w->safe))) return false;
    if (w->keys == 1 && !(v == v2 && v)) return false;
    return !w->residual || (v && v2 && v < v2);
}

static void text_of(const world *w, int k, int v, bool padded, char *out, size_t n) {
    char a[24] = "NULL", b[24] = "NULL", c[64] = "NULL";
    if (k && !padded) snprintf(a, sizeof a, "%d", k);
    if (v && !padded) snprintf(b, sizeof b, "%d", v);
    if (v && !padded) snprintf(c, sizeof c, "%s%d", v % 2 ? "a text of more than twelve bytes " : "", v);
    snprintf(out, n, w->wide ? "%s|%s|%s" : "%s|%s", a, b, c);
}

static void expect(harness *to, const world *w, int k, int v, bool pad_left, int k2, int v2, bool pad_right,
                   int times) {
    char left[128], right[128], both[260];
    bool left_only = strcmp(w->type, "semi") == 0 || strcmp(w->type, "anti") == 0;
    text_of(w, k, v, pad_left, left, sizeof left);
    text_of(w, k2, v2, pad_right, right, sizeof right);
    snprintf(both, sizeof both, left_only ? "%s" : "%s|%s", left, right);
    if (times) harness_keep(to, both, times);
}

/* Rows of one side with their partners on the other: pairs once, from the left; what is said of a row alone. */
static void expect_side(harness *to, const world *w, int side) {
    bool left = side == 0, semi = strcmp(w->type, "semi") == 0, anti = strcmp(w->type, "anti") == 0;
    bool full = strcmp(w->type, "full") == 0;
    bool pads = full || strcmp(w->type, left ? "left" : "right") == 0;
    for (int i = 0; i < K * V; i++) {
        int k = i / V, v = i % V, n = w->rows[side][k][v], partners = 0;
        for (int o = 0; n && o < K * V; o++) {
            int k2 = o / V, v2 = o % V, m = w->rows[!side][k2][v2];
            if (!(left ? matches(w, k, v, k2, v2) : matches(w, k2, v2, k, v))) continue;
            partners += m;
            if (left && !semi && !anti) expect(to, w, k, v, false, k2, v2, false, n * m);
        }
        if (pads && partners == 0)
            expect(to, w, left ? k : 0, left ? v : 0, !left, left ? 0 : k, left ? 0 : v, left, n);
        if (left && ((semi && partners > 0) || (anti && partners == 0))) expect(to, w, k, v, false, 0, 0, true, n);
    }
}

/* ---- the subtasks ---- */

static void make_params(world *w) {
    static const char *const keys[] = {"[0]", "[0,1]", "[]"}, *const one[] = {"[false]", "[false,false]", "[]"},
                             *const safe[] = {"[true]", "[true,false]", "[]"};
    char residual[300] = "";
    if (w->residual)
        snprintf(
            residual, sizeof residual,
            "{\"fn\":\"<\",\"args\":[{\"col\":1,\"type\":\"BIGINT\",\"null\":true},{\"col\":%d,\"type\":\"BIGINT\","
            "\"null\":true}],\"type\":\"BOOLEAN\",\"null\":true}",
            w->wide ? 4 : 3);
    snprintf(w->params, sizeof w->params,
             "{\"kind\":\"%s\",\"left_keys\":%s,\"right_keys\":%s,\"null_safe\":%s,\"residual\":[%s],\"single\":false}",
             w->type, keys[w->keys], keys[w->keys], w->safe ? safe[w->keys] : one[w->keys], residual);
}

static void open_subtask(world *w, harness *h, uint32_t subtask, uint32_t count) {
    const char *side = w->wide ? "k BIGINT; v BIGINT; s VARCHAR" : "k BIGINT; v BIGINT";
    bool left_only = strcmp(w->type, "semi") == 0 || strcmp(w->type, "anti") == 0;
    char both[160];
    snprintf(both, sizeof both, left_only ? "%s" : "%s; %s", side, side);
    harness_init(h, &w->proc.proc);
    h->settings.batch_rows = w->batch_rows;
    h->spec.subtask = subtask, h->spec.parallelism = count, h->spec.final = w->final;
    for (int i = 0; i < 2; i++) {
        harness_input(h, side, w->retract[i] ? CK_MODE_RETRACT : CK_MODE_APPEND);
        h->inputs[i].bounded = w->bounded[i];
    }
    harness_ok(h, harness_create(h, &ck_op_join, w->params, both));
}

static void collect(world *w, harness *h) {
    for (size_t i = 0; i < h->line_count; i++) {
        if (w->line_count == w->line_capacity) {
            w->line_capacity = w->line_capacity ? w->line_capacity * 2 : 256;
            w->lines = realloc(w->lines, w->line_capacity * sizeof *w->lines);
        }
        if (w->final) assert_int_equal(h->lines[i].weight, 1); /* the edge is append */
        w->lines[w->line_count++] = (harness_line){strdup(h->lines[i].text), h->lines[i].weight};
    }
    harness_forget_lines(h);
}

static void end_side(world *w, int side) {
    for (uint32_t i = 0; i < w->count; i++) {
        harness_ok(&w->subtasks[i], harness_event(&w->subtasks[i], (uint32_t)side, ck_event_end()));
        collect(w, &w->subtasks[i]);
    }
}

/* A checkpoint, and all subtasks anew from what it holds, some more or fewer of them. */
static void rescale(world *w) {
    static harness old[SUBTASKS_MAX];
    uint32_t count = w->count, next = 1 + (uint32_t)pick(SUBTASKS_MAX);
    w->checkpoint++;
    for (uint32_t i = 0; i < count; i++) {
        harness_ok(&w->subtasks[i], harness_pre_snapshot(&w->subtasks[i], w->checkpoint));
        collect(w, &w->subtasks[i]);
        old[i] = w->subtasks[i];
        old[i].ctx.rt = (struct ck_op_runtime *)(void *)&old[i];
    }
    for (uint32_t n = 0; n < next; n++) {
        harness *h = &w->subtasks[n];
        open_subtask(w, h, n, next);
        harness_new_store(h);
        for (uint32_t i = 0; i < count; i++) harness_copy_store(old[i].store, h->store, w->checkpoint * 8 + n);
        assert_int_equal(ck_state_restore_end(h->store, &h->error), CK_OK);
        harness_ok(h, harness_open(h));
    }
    for (uint32_t i = 0; i < count; i++) harness_destroy(&old[i]);
    w->count = next;
    for (int side = 0; side < 2; side++)
        if (w->ended[side]) end_side(w, side); /* sources that had ended end again */
}

/* ---- a history ---- */

static uint32_t owner(const world *w, int k, int v) {
    ck_bytes key;
    const harness *h = &w->subtasks[0];
    harness *any = (harness *)(uintptr_t)h;
    char text[128];
    text_of(w, k, v, false, text, sizeof text);
    ck_batch *b = harness_batch(any, 0, (const char *const[]){text}, 1);
    const uint32_t columns[] = {0, 1};
    const ck_type *types[] = {ck_type_simple(CK_TYPE_BIGINT), ck_type_simple(CK_TYPE_BIGINT)};
    const ck_key_spec spec = {columns, types, w->keys == 0 ? 1 : w->keys == 1 ? 2 : 0};
    ck_bytes_init(&key, h->mem, SIZE_MAX);
    assert_int_equal(ck_key_encode(&spec, b, 0, &key), CK_OK);
    uint32_t group = ck_key_group_for_key(ck_bytes_as_view(&key), h->settings.key_groups), to = 0;
    while (!ck_key_group_in(w->subtasks[to].ctx.key_groups, group)) to++;
    ck_bytes_destroy(&key);
    ck_batch_unref(&b);
    return to;
}

static void send(world *w, int side, char text[][140], const uint32_t *to, uint32_t n) {
    for (uint32_t i = 0; i < w->count; i++) {
        const char *rows[BATCH_MAX];
        uint16_t sel[BATCH_MAX];
        uint32_t live = 0;
        for (uint32_t r = 0; r < n; r++) {
            rows[r] = text[r];
            if (to[r] == i) sel[live++] = (uint16_t)r; /* the others stand dead between them */
        }
        harness *h = &w->subtasks[i];
        ck_batch *all = harness_batch(h, (uint32_t)side, rows, n);
        ck_batch *some = ck_batch_select(all, sel, live);
        ck_batch_unref(&all);
        harness_ok(h, harness_event(h, (uint32_t)side, ck_event_batch(some)));
        ck_batch_unref(&some);
        collect(w, h);
    }
}

/* early: rows may be taken back before they were there. */
static void random_batch(world *w, int side, bool early) {
    char text[BATCH_MAX][140];
    uint32_t to[BATCH_MAX], n = 0;
    for (int i = pick(BATCH_MAX); i > 0; i--) {
        int k = pick(K), v = pick(V), *have = &w->rows[side][k][v];
        int weight = w->retract[side] && pick(2) && (early || *have > 0) ? -1 : 1;
        char row[128];
        text_of(w, k, v, false, row, sizeof row);
        snprintf(text[n], sizeof text[n], "%c%s", weight > 0 ? '+' : '-', row);
        to[n++] = owner(w, k, v);
        *have += weight;
    }
    send(w, side, text, to, n);
}

/* Nothing is left below zero when the history ends. */
static void settle(world *w, int side) {
    for (int i = 0; i < K * V; i++)
        for (int *n = &w->rows[side][i / V][i % V]; *n < 0; ++*n) {
            char row[1][140], text[128];
            text_of(w, i / V, i % V, false, text, sizeof text);
            snprintf(row[0], sizeof row[0], "+%s", text);
            uint32_t to = owner(w, i / V, i % V);
            send(w, side, row, &to, 1);
        }
}

static void check(world *w, uint64_t case_seed) {
    harness want = {0}, got = {.lines = w->lines, .line_count = w->line_count};
    expect_side(&want, w, 0);
    expect_side(&want, w, 1);
    harness_net(&want);
    harness_net(&got);
    for (size_t i = 0; i < want.line_count || i < got.line_count; i++) {
        const harness_line none = {(char *)(uintptr_t) "(nothing)", 0};
        harness_line a = i < got.line_count ? got.lines[i] : none, b = i < want.line_count ? want.lines[i] : none;
        if (strcmp(a.text, b.text) != 0 || a.weight != b.weight)
            fail_msg("seed %llu, %s%s%s: %d of %s, not %d of %s", (unsigned long long)case_seed, w->params,
                     w->final ? ", final" : "", w->retract[0] || w->retract[1] ? ", changes" : "", a.weight, a.text,
                     b.weight, b.text);
    }
    harness_forget_lines(&want);
    harness_forget_lines(&got);
    free(want.lines);
    free(got.lines);
}

static void one_case(uint64_t case_seed) {
    static const char *const types[] = {"inner", "left", "right", "full", "semi", "anti"};
    static world w;
    memset(&w, 0, sizeof w);
    seed = case_seed;
    w.type = types[pick(6)];
    w.wide = pick(2), w.keys = pick(8) ? pick(2) : 2, w.safe = pick(3) == 0, w.residual = pick(3) == 0;
    w.batch_rows = pick(3) ? CK_BATCH_ROWS_MAX : 1 + (uint32_t)pick(20);
    for (int i = 0; i < 2; i++) w.retract[i] = pick(2), w.bounded[i] = pick(2);
    bool waits = strcmp(w.type, "inner") != 0 && strcmp(w.type, "semi") != 0;
    w.final = waits && w.bounded[0] && w.bounded[1] && pick(3);
    make_params(&w);
    ck_test_proc_init(&w.proc);
    w.count = 1 + (uint32_t)pick(SUBTASKS_MAX);
    for (uint32_t i = 0; i < w.count; i++) {
        open_subtask(&w, &w.subtasks[i], i, w.count);
        harness_ok(&w.subtasks[i], harness_open(&w.subtasks[i]));
    }
    for (int step = pick(24); step >= 0; step--) {
        int side = pick(2), restart = pick(6) == 0;
        if (!w.ended[side]) random_batch(&w, side, pick(2));
        if (w.bounded[side] && !w.ended[side] && pick(8) == 0 && !w.ended[!side]) {
            settle(&w, side);
            end_side(&w, side);
            w.ended[side] = true;
        }
        if (restart) rescale(&w);
    }
    for (int side = 0; side < 2; side++)
        if (!w.ended[side]) settle(&w, side);
    for (int i = 0, first = pick(2); i < 2; i++)
        if (!w.ended[i ^ first]) end_side(&w, i ^ first);
    check(&w, case_seed);
    for (uint32_t i = 0; i < w.count; i++) harness_destroy(&w.subtasks[i]);
    ck_test_proc_destroy(&w.proc);
}

static void random_histories_net_to_the_definition(void **state) {
    (void)state;
    const char *one = getenv("CLINK_TEST_SEED");
    if (one) {
        one_case(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t s = 1; s <= 1500; s++) one_case(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_net_to_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
