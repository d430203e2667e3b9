/* GROUP BY against a weighted multiset: rows come and go at random, in random batches, with flushes and restarts (also
 * at another parallelism) in between; whenever it has been flushed, what was emitted nets to what a naive aggregation
 * of the rows that are there says. */
#include "operator/operators.h"

#include "operator/harness_test_support.h"
#include "os/test_proc.h"

enum { ROWS_MAX = 400, COLUMNS = 6 };

typedef struct row { /* -1: NULL */
    int k, t, v, d, s, f;
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

static void print_row(const row *r, int weight, char *out, size_t room) {
    char k[16] = "NULL", v[24] = "NULL", d[16] = "NULL";
    if (r->k >= 0) snprintf(k, sizeof k, "%d", r->k);
    if (r->v >= 0) snprintf(v, sizeof v, "%d", r->v - 3);
    if (r->d >= 0) snprintf(d, sizeof d, "%d.5", r->d);
    snprintf(out, room, "%c%s|%s|%s|%s|%s|%s", weight > 0 ? '+' : '-', k, r->t < 0 ? "NULL" : texts[r->t], v, d,
             r->s < 0 ? "NULL" : texts[r->s],
             r->f < 0 ? "NULL"
             : r->f   ? "true"
                      : "false");
}

#define INPUT "k BIGINT; t VARCHAR; v BIGINT; d DOUBLE; s VARCHAR; f BOOLEAN"
#define AGGREGATES                                                                                                     \
    "\"aggregates\":[{\"fn\":\"count\",\"arg\":null},{\"fn\":\"count\",\"arg\":2,\"arg_text\":\"v\"},"                 \
    "{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\"},{\"fn\":\"min\",\"arg\":2,\"arg_text\":\"v\"},"                     \
    "{\"fn\":\"max\",\"arg\":4,\"arg_text\":\"s\"},{\"fn\":\"sum\",\"arg\":3,\"arg_text\":\"d\"},"                     \
    "{\"fn\":\"avg\",\"arg\":2,\"arg_text\":\"v\"},"                                                                   \
    "{\"fn\":\"count\",\"arg\":2,\"arg_text\":\"v\",\"distinct\":true},"                                               \
    "{\"fn\":\"sum\",\"arg\":2,\"arg_text\":\"v\",\"distinct\":true,\"filter\":5,\"filter_text\":\"f\"},"              \
    "{\"fn\":\"max\",\"arg\":2,\"arg_text\":\"v\",\"filter\":5,\"filter_text\":\"f\"},"                                \
    "{\"fn\":\"min\",\"arg\":5,\"arg_text\":\"f\"},"                                                                   \
    "{\"fn\":\"count\",\"arg\":4,\"arg_text\":\"s\",\"distinct\":true,\"filter\":5,\"filter_text\":\"f\"},"            \
    "{\"fn\":\"count\",\"arg\":4,\"arg_text\":\"s\",\"distinct\":true,\"filter\":5,\"filter_text\":\"f too\"}]}"
#define RESULTS                                                                                                        \
    "n BIGINT; c BIGINT; s BIGINT; lo BIGINT; hi VARCHAR; ds DOUBLE; a DOUBLE; cd BIGINT; sdf BIGINT; mf BIGINT; mb "  \
    "BOOLEAN; csf BIGINT; csf2 BIGINT"

typedef struct shape { /* which keys */
    const char *params, *output;
    bool k, t;
} shape;
static const shape shapes[] = {
    {"{\"keys\":[0]," AGGREGATES, "k BIGINT; " RESULTS, true, false},
    {"{\"keys\":[1]," AGGREGATES, "t VARCHAR; " RESULTS, false, true},
    {"{\"keys\":[1,0]," AGGREGATES, "t VARCHAR; k BIGINT; " RESULTS, true, true},
    {"{\"keys\":[]," AGGREGATES, RESULTS, false, false},
};

static bool same_group(const shape *g, const row *a, const row *b) {
    return (!g->k || a->k == b->k) && (!g->t || a->t == b->t);
}

/* The naive result of the group of rows[at]. */
static void result_line(const model *m, const shape *g, const row *of, char *out, size_t room) {
    int n = 0, c = 0, sum = 0, lo = 99, hi = -1, dn = 0, di = 0, sdf = 0, sdf_n = 0, mf = -1, mb = 2;
    bool seen[16] = {false}, seen_f[16] = {false}, seen_s[16] = {false};
    for (int i = 0; i < m->n; i++) {
        const row *r = &m->rows[i];
        if (of && !same_group(g, r, of)) continue;
        n++;
        if (r->v >= 0) {
            c++;
            sum += r->v - 3;
            if (r->v < lo) lo = r->v;
            seen[r->v] = true;
            if (r->f == 1) seen_f[r->v] = true;
            if (r->f == 1 && r->v > mf) mf = r->v;
        }
        if (r->s >= 0 && r->f == 1) seen_s[r->s] = true;
        if (r->s >= 0 && (hi < 0 || strcmp(texts[r->s], texts[hi]) > 0)) hi = r->s;
        if (r->d >= 0) dn++, di += 2 * r->d + 1;
        if (r->f >= 0 && r->f < mb) mb = r->f;
    }
    int cd = 0, csf = 0;
    for (int i = 0; i < 16; i++) {
        csf += seen_s[i];
        cd += seen[i];
        if (seen_f[i]) sdf += i - 3, sdf_n++;
    }
    size_t at = 0;
#define OUT(...)               at += (size_t)snprintf(out + at, room - at, __VA_ARGS__)
#define OUT_OR_NULL(cond, ...) (cond) ? (OUT(__VA_ARGS__)) : (OUT("NULL"))
    if (g->t) OUT_OR_NULL(of->t >= 0, "%s", texts[of->t < 0 ? 0 : of->t]), OUT("|");
    if (g->k) OUT_OR_NULL(of->k >= 0, "%d", of->k), OUT("|");
    char avg[40];
    double a = c ? (double)sum / c : 0;
    size_t an = ck_print_f64(avg, a);
    OUT("%d|%d|", n, c);
    OUT_OR_NULL(c, "%d", sum), OUT("|");
    OUT_OR_NULL(c, "%d", lo - 3), OUT("|");
    OUT_OR_NULL(hi >= 0, "%s", texts[hi < 0 ? 0 : hi]), OUT("|");
    OUT_OR_NULL(dn, "%d.%d", di / 2, di % 2 * 5), OUT("|");
    OUT_OR_NULL(c, "%.*s%s", (int)an, avg, memchr(avg, '.', an) || memchr(avg, 'e', an) ? "" : ".0"), OUT("|");
    OUT("%d|", cd);
    OUT_OR_NULL(sdf_n, "%d", sdf), OUT("|");
    OUT_OR_NULL(mf >= 0, "%d", mf - 3), OUT("|");
    OUT_OR_NULL(mb < 2, "%s", mb ? "true" : "false"), OUT("|");
    OUT("%d|%d", csf, csf);
}

static void check(harness *h, const model *m, const shape *g, uint64_t case_seed) {
    char line[512];
    harness_net(h);
    size_t expected = 0;
    for (int i = 0; i < m->n || (i == 0 && !g->k && !g->t); i++) {
        bool first = true;
        for (int j = 0; j < i; j++) first = first && !same_group(g, &m->rows[i], &m->rows[j]);
        if (!first) continue;
        result_line(m, g, m->n ? &m->rows[i] : NULL, line, sizeof line);
        bool found = false;
        for (size_t k = 0; k < h->line_count; k++)
            found = found || (strcmp(h->lines[k].text, line) == 0 && h->lines[k].weight == 1);
        if (!found) {
            for (size_t k = 0; k < h->line_count; k++) print_error("  %+d %s\n", h->lines[k].weight, h->lines[k].text);
            fail_msg("seed %llu: no %s", (unsigned long long)case_seed, line);
        }
        expected++;
    }
    if (h->line_count != expected)
        fail_msg("seed %llu: %zu rows for %zu groups", (unsigned long long)case_seed, h->line_count, expected);
}

/* Some operations on the model, as a batch. */
static void apply(harness *h, model *m, bool retract) {
    static char text[64][128];
    const char *rows[64];
    int n = pick(30) + 1;
    for (int i = 0; i < n; i++) {
        bool remove = retract && m->n > 0 && (m->n > ROWS_MAX - 2 || pick(5) < 2);
        if (remove) {
            int at = pick(m->n);
            print_row(&m->rows[at], -1, text[i], sizeof text[i]);
            m->rows[at] = m->rows[--m->n];
        } else {
            row r = {pick(6) - 1, pick(7) - 1, pick(8) - 1, pick(5) - 1, pick(7) - 1, pick(3) - 1};
            m->rows[m->n++] = r;
            print_row(&r, 1, text[i], sizeof text[i]);
        }
        rows[i] = text[i];
    }
    ck_batch *b = harness_batch(h, 0, rows, (uint32_t)n);
    /* Half the batches carry dead rows around a selection. */
    if (pick(2)) {
        const char *more[128];
        uint16_t sel[64];
        int total = 0;
        for (int i = 0; i < n; i++) {
            if (pick(2)) more[total++] = "+0|dead row of a long name|99|1|dead|true";
            sel[i] = (uint16_t)total;
            more[total++] = rows[i];
        }
        ck_batch_unref(&b);
        ck_batch *wide = harness_batch(h, 0, more, (uint32_t)total);
        b = ck_batch_select(wide, sel, (uint32_t)n);
        ck_batch_unref(&wide);
    }
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    ck_batch_unref(&b);
}

static void one_case(uint64_t case_seed) {
    static model m;
    ck_test_proc proc;
    harness h;
    seed = case_seed;
    m.n = 0;
    const shape *g = &shapes[pick(4)];
    bool retract = pick(2), final = pick(4) == 0;
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.spec.final = final;
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 64, 4096}[pick(5)];
    harness_input(&h, INPUT, retract ? CK_MODE_RETRACT : CK_MODE_APPEND);
    harness_start(&h, &ck_op_group_agg, g->params, g->output);
    int steps = pick(25) + 1;
    for (int i = 0; i < steps; i++) {
        if (retract || m.n < ROWS_MAX - 40) apply(&h, &m, retract);
        int what = pick(6);
        if (what == 0) harness_restart(&h, (uint64_t)i + 1);
        if (what == 1) harness_flush(&h);
        if (what < 2 && !final) check(&h, &m, g, case_seed);
    }
    if (final) assert_int_equal(h.line_count, 0);
    harness_end(&h);
    check(&h, &m, g, case_seed);
    assert_true(h.largest_batch <= (h.settings.batch_rows == 1 ? 2 : h.settings.batch_rows));
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_net_to_the_model(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    if (only) {
        one_case(strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t s = 1; s <= 600; s++) one_case(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_net_to_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
