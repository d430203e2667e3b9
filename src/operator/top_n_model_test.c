/* top_n and sort against a weighted multiset: rows come and go at random, in random batches, with flushes and restarts,
 * in one to three subtasks (also changed on the way); whenever all have been flushed, what was emitted nets to what
 * ranking the rows that are there says. */
#include "operator/operators.h"

#include "operator/harness_test_support.h"
#include "os/test_proc.h"

enum { ROWS_MAX = 300, SUBTASKS_MAX = 3 };

typedef struct row { /* -1: NULL */
    int k, v, d, s;
} row;

typedef struct model {
    row rows[ROWS_MAX];
    int n;
} model;

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

static const char *const texts[] = {"",        "a", "ab", "longer than twelve bytes", "longer than twelve bytes, too",
                                    "\xc3\xa9"};

#define INPUT "k BIGINT; v BIGINT; d DOUBLE; s VARCHAR"

static size_t print_row(const row *r, char *out, size_t room) {
    char k[16] = "NULL", v[24] = "NULL", d[16] = "NULL";
    if (r->k >= 0) snprintf(k, sizeof k, "%d", r->k);
    if (r->v >= 0) snprintf(v, sizeof v, "%d", r->v - 3);
    if (r->d >= 0) snprintf(d, sizeof d, "%d.5", r->d - 2);
    return (size_t)snprintf(out, room, "%s|%s|%s|%s", k, v, d, r->s < 0 ? "NULL" : texts[r->s]);
}

typedef struct shape {
    const char *partition; /* of the parameters */
    int columns[4];        /* -1 ends */
    struct {
        int column;
        bool desc, nulls_first;
    } order[3];
    int order_count;
} shape;
static const shape shapes[] = {
    {"[0]", {0, -1}, {{1, false, false}}, 1},
    {"[0]", {0, -1}, {{2, true, true}, {1, true, false}}, 2},
    {"[3]", {3, -1}, {{0, true, false}}, 1},
    {"[3,0]", {3, 0, -1}, {{3, true, true}, {2, false, true}}, 2},
    {"[]", {-1}, {{3, true, true}, {0, false, false}}, 2},
    {"[]", {-1}, {{0, false, false}}, 0},
    {"[0,1,2,3]", {0, 1, 2, 3}, {{0, false, false}}, 0},
};
static const char *const ranks[] = {"row_number", "rank", "dense_rank"};

typedef struct subject {
    const shape *g;
    int rank;
    long limit, offset; /* limit -1: none */
    bool rank_column, sort;
} subject;

static int value(const row *r, int column) {
    return column == 0 ? r->k : column == 1 ? r->v : column == 2 ? r->d : r->s;
}

static int compare_column(const row *a, const row *b, int column, bool desc, bool nulls_first) {
    int x = value(a, column), y = value(b, column);
    if (x < 0 || y < 0) return x == y ? 0 : (x < 0) == nulls_first ? -1 : 1;
    int c = column == 3 ? strcmp(texts[x], texts[y]) : (x > y) - (x < y);
    return desc ? -c : c;
}

static int compare_order(const subject *s, const row *a, const row *b) {
    int c = 0;
    for (int i = 0; c == 0 && i < s->g->order_count; i++)
        c = compare_column(a, b, s->g->order[i].column, s->g->order[i].desc, s->g->order[i].nulls_first);
    return c;
}

static bool same_partition(const subject *s, const row *a, const row *b) {
    if (s->sort) return true;
    for (int i = 0; i < 4 && s->g->columns[i] >= 0; i++)
        if (value(a, s->g->columns[i]) != value(b, s->g->columns[i])) return false;
    return true;
}

static const subject *sorting;
static int compare_rows(const void *pa, const void *pb) {
    const row *a = pa, *b = pb;
    int c = compare_order(sorting, a, b);
    for (int i = 0; c == 0 && i < 4; i++) c = compare_column(a, b, i, false, false);
    return c;
}

/* The lines that should be there, in order within a partition. */
static size_t expected(const subject *s, model *m, harness_line *out) {
    size_t n = 0;
    bool done[ROWS_MAX] = {false};
    sorting = s;
    qsort(m->rows, (size_t)m->n, sizeof *m->rows, compare_rows);
    for (int i = 0; i < m->n; i++) {
        if (done[i]) continue;
        long number = 0, rank = 0, dense = 0;
        int last = -1;
        for (int j = i; j < m->n; j++) {
            if (!same_partition(s, &m->rows[i], &m->rows[j])) continue;
            done[j] = true;
            number++;
            if (last < 0 || compare_order(s, &m->rows[last], &m->rows[j]) != 0) {
                dense++;
                rank = number;
            }
            last = j;
            long at = s->rank == 0 ? number : s->rank == 1 ? rank : dense;
            if (at <= s->offset || (s->limit >= 0 && at > s->offset + s->limit)) continue;
            char text[256];
            size_t bytes = print_row(&m->rows[j], text, sizeof text);
            if (s->rank_column) snprintf(text + bytes, sizeof text - bytes, "|%ld", at);
            out[n++] = (harness_line){strdup(text), 1};
        }
    }
    return n;
}

/* ---- several subtasks ---- */

typedef struct team {
    ck_test_proc proc;
    harness h[SUBTASKS_MAX];
    uint32_t count;
    harness_line *lines; /* of those that are gone */
    size_t line_count;
} team;

static void start(team *t, const subject *s, uint32_t count, uint32_t batch_rows, bool retract, bool final) {
    char params[512], order[256] = "";
    for (int i = 0; i < s->g->order_count; i++)
        snprintf(order + strlen(order), sizeof order - strlen(order), "%s{\"col\":%d,\"desc\":%s,\"nulls_first\":%s}",
                 i ? "," : "", s->g->order[i].column, s->g->order[i].desc ? "true" : "false",
                 s->g->order[i].nulls_first ? "true" : "false");
    char limit[24] = "null";
    if (s->limit >= 0) snprintf(limit, sizeof limit, "%ld", s->limit);
    if (s->sort)
        snprintf(params, sizeof params, "{\"keys\":[%s],\"limit\":%s,\"offset\":%ld}", order, limit, s->offset);
    else
        snprintf(params, sizeof params,
                 "{\"partition\":%s,\"order\":[%s],\"limit\":%s,\"offset\":%ld,\"rank\":\"%s\",\"rank_column\":%s}",
                 s->g->partition, order, limit, s->offset, ranks[s->rank], s->rank_column ? "true" : "false");
    t->count = count;
    for (uint32_t i = 0; i < count; i++) {
        harness *h = &t->h[i];
        harness_init(h, &t->proc.proc);
        h->spec.final = final;
        h->spec.subtask = i;
        h->spec.parallelism = count;
        h->settings.batch_rows = batch_rows;
        harness_input(h, INPUT, retract ? CK_MODE_RETRACT : CK_MODE_APPEND);
        harness_start(h, s->sort ? &ck_op_sort : &ck_op_top_n, params,
                      s->rank_column ? INPUT "; r BIGINT NOT NULL" : NULL);
    }
}

static void keep_lines(team *t, harness *h) {
    t->lines = realloc(t->lines, (t->line_count + h->line_count + 1) * sizeof *t->lines);
    assert_non_null(t->lines);
    if (h->line_count) memcpy(t->lines + t->line_count, h->lines, h->line_count * sizeof *h->lines);
    t->line_count += h->line_count;
    h->line_count = 0;
}

/* All stop at one checkpoint and go on in `count` subtasks. */
static void rescale(team *t, uint32_t count, uint64_t checkpoint) {
    for (uint32_t i = 0; i < t->count; i++) {
        harness_ok(&t->h[i], harness_pre_snapshot(&t->h[i], checkpoint));
        keep_lines(t, &t->h[i]);
    }
    team old = *t;
    t->count = count;
    for (uint32_t i = 0; i < count; i++) {
        harness *h = &t->h[i], *like = &old.h[0];
        harness_init(h, &t->proc.proc);
        h->spec.final = like->spec.final;
        h->spec.subtask = i;
        h->spec.parallelism = count;
        h->settings.batch_rows = like->settings.batch_rows;
        harness_input(h, INPUT, like->inputs[0].mode);
        harness_new_store(h);
        for (uint32_t from = 0; from < old.count; from++) harness_copy_store(old.h[from].store, h->store, checkpoint);
        assert_int_equal(ck_state_restore_end(h->store, &h->error), CK_OK);
        harness_start(h, like->desc, like->spec.params,
                      like->spec.schema->field_count > 4 ? INPUT "; r BIGINT NOT NULL" : NULL);
    }
    for (uint32_t i = 0; i < old.count; i++) {
        old.h[i].ctx.rt = (struct ck_op_runtime *)(void *)&old.h[i];
        old.h[i].ctx.arena = &old.h[i].calls;
        harness_destroy(&old.h[i]);
    }
}

static uint32_t owner(const team *t, const subject *s, const row *r) {
    if (t->count == 1) return 0;
    harness *h = (harness *)(uintptr_t)&t->h[0];
    char text[256];
    const char *rows[1] = {text};
    uint32_t columns[4], n = 0;
    const ck_type *types[4];
    text[0] = '+';
    print_row(r, text + 1, sizeof text - 1);
    for (int i = 0; i < 4 && s->g->columns[i] >= 0; i++) {
        columns[n] = (uint32_t)s->g->columns[i];
        types[n] = h->inputs[0].schema->fields[columns[n]].type;
        n++;
    }
    ck_batch *b = harness_batch(h, 0, rows, 1);
    ck_bytes key;
    ck_key_spec spec = {columns, types, n};
    ck_bytes_init(&key, h->mem, 1 << 20);
    assert_int_equal(ck_key_encode(&spec, b, 0, &key), CK_OK);
    uint32_t group = ck_key_group_for_key(ck_bytes_as_view(&key), h->settings.key_groups), at = 0;
    ck_bytes_destroy(&key);
    ck_batch_unref(&b);
    while (!ck_key_group_in(t->h[at].ctx.key_groups, group)) at++;
    return at;
}

static void apply(team *t, const subject *s, model *m, bool retract) {
    static char text[SUBTASKS_MAX][32][160];
    const char *rows[SUBTASKS_MAX][64];
    uint16_t sel[SUBTASKS_MAX][64];
    uint32_t n[SUBTASKS_MAX] = {0}, total[SUBTASKS_MAX] = {0};
    for (int i = pick(30); i >= 0; i--) {
        bool remove = retract && m->n > 0 && (m->n > ROWS_MAX - 2 || pick(5) < 2);
        row r = {pick(5) - 1, pick(8) - 1, pick(5) - 1, pick(7) - 1};
        if (remove) {
            int at = pick(m->n);
            r = m->rows[at];
            m->rows[at] = m->rows[--m->n];
        } else {
            m->rows[m->n++] = r;
        }
        uint32_t to = owner(t, s, &r);
        text[to][n[to]][0] = remove ? '-' : '+';
        print_row(&r, text[to][n[to]] + 1, sizeof text[0][0] - 1);
        if (pick(4) == 0) rows[to][total[to]++] = "+0|-3|-1.5|dead row of a long name";
        sel[to][n[to]] = (uint16_t)total[to];
        rows[to][total[to]++] = text[to][n[to]];
        n[to]++;
    }
    for (uint32_t to = 0; to < t->count; to++) {
        ck_batch *all = harness_batch(&t->h[to], 0, rows[to], total[to]);
        ck_batch *some = ck_batch_select(all, sel[to], n[to]);
        harness_ok(&t->h[to], harness_event(&t->h[to], 0, ck_event_batch(some)));
        ck_batch_unref(&all);
        ck_batch_unref(&some);
    }
}

static void check(team *t, const subject *s, model *m, uint64_t case_seed) {
    static harness_line want[ROWS_MAX];
    size_t n = expected(s, m, want);
    harness all = {0};
    for (uint32_t i = 0; i < t->count; i++) keep_lines(t, &t->h[i]);
    all.lines = t->lines;
    all.line_count = t->line_count;
    if (s->sort) { /* in order, and once */
        for (size_t i = 0; i < n && i < all.line_count; i++)
            if (strcmp(want[i].text, all.lines[i].text) != 0)
                fail_msg("seed %llu: row %zu is %s, not %s", (unsigned long long)case_seed, i, all.lines[i].text,
                         want[i].text);
        if (all.line_count != n)
            fail_msg("seed %llu: %zu rows, not %zu", (unsigned long long)case_seed, all.line_count, n);
    }
    harness wanted = {.lines = want, .line_count = n};
    harness_net(&all);
    harness_net(&wanted);
    bool same = all.line_count == wanted.line_count;
    for (size_t i = 0; same && i < all.line_count; i++)
        same = strcmp(all.lines[i].text, want[i].text) == 0 && all.lines[i].weight == want[i].weight;
    if (!same) {
        for (size_t i = 0; i < all.line_count; i++)
            print_error("got  %+d %s\n", all.lines[i].weight, all.lines[i].text);
        for (size_t i = 0; i < wanted.line_count; i++) print_error("want %+d %s\n", want[i].weight, want[i].text);
        fail_msg("seed %llu: %s %s, shape %d, limit %ld, offset %ld, %u subtasks", (unsigned long long)case_seed,
                 s->sort ? "sort" : ranks[s->rank], t->h[0].spec.final ? "final" : "", (int)(s->g - shapes), s->limit,
                 s->offset, t->count);
    }
    t->line_count = all.line_count;
    for (size_t i = 0; i < wanted.line_count; i++) free(want[i].text);
}

static void one_case(uint64_t case_seed) {
    static model m;
    team t = {0};
    seed = case_seed;
    m.n = 0;
    subject s = {.g = &shapes[pick(CK_ARRAY_COUNT(shapes))], .rank = pick(3), .rank_column = pick(2), .sort = !pick(5)};
    s.limit = (long[]){0, 1, 1, 2, 3, 10, -1}[pick(7)];
    s.offset = pick(3) ? 0 : pick(4);
    if (s.sort) s.rank = 0, s.rank_column = false;
    bool retract = !s.sort && pick(2), final = s.sort || pick(4) == 0;
    ck_test_proc_init(&t.proc);
    uint32_t batch_rows = (uint32_t[]){1, 2, 7, 64, 4096}[pick(5)];
    start(&t, &s, s.sort ? 1 : 1 + (uint32_t)pick(SUBTASKS_MAX), batch_rows, retract, final);
    for (int i = pick(20); i >= 0; i--) {
        if (retract || m.n < ROWS_MAX - 40) apply(&t, &s, &m, retract);
        int what = pick(6);
        if (what == 0) rescale(&t, s.sort ? 1 : 1 + (uint32_t)pick(SUBTASKS_MAX), (uint64_t)i + 1);
        if (what == 1)
            for (uint32_t k = 0; k < t.count; k++) harness_flush(&t.h[k]);
        if (what < 2 && !final) check(&t, &s, &m, case_seed);
    }
    for (uint32_t k = 0; k < t.count; k++) harness_end(&t.h[k]);
    for (uint32_t k = 0; k < t.count; k++) {
        assert_true(t.h[k].largest_batch <= (batch_rows == 1 ? 2 : batch_rows));
        assert_false(final && t.h[k].weighted);
    }
    check(&t, &s, &m, case_seed);
    for (uint32_t k = 0; k < t.count; k++) harness_destroy(&t.h[k]);
    for (size_t i = 0; i < t.line_count; i++) free(t.lines[i].text);
    free(t.lines);
    ck_test_proc_destroy(&t.proc);
}

static void random_histories_net_to_the_model(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    if (only) {
        one_case(strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t s = 1; s <= 800; s++) one_case(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_net_to_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
