/* Sessions against their definition: random rows of a few keys, out of order and late, in batches and restarts, with
 * and without allowed lateness. After each watermark what has been said, netted, is the sessions that are over. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

enum { KEYS = 3, SESSIONS_MAX = 400, ROWS_MAX = 200, VALUES = 7, GAP = 10 };

typedef struct session {
    bool used;
    int start, end; /* seconds */
    int n, sum, least;
    bool values[VALUES];
} session;

typedef struct row {
    int key, seconds, value; /* value -1: NULL */
} row;

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

static session sessions[KEYS][SESSIONS_MAX];
static int counts[KEYS], lateness, until; /* until: rows before this second have been seen */
static uint64_t late;

static bool is_closed(int end) { return end + lateness <= until; }

static void add(session *s, const row *r) {
    if (!s->n || r->seconds < s->start) s->start = r->seconds;
    if (!s->n || r->seconds + GAP > s->end) s->end = r->seconds + GAP;
    s->used = true;
    s->n++;
    if (r->value < 0) return;
    if (s->least < 0 || r->value < s->least) s->least = r->value;
    s->sum += r->value;
    s->values[r->value] = true;
}

static void unite(session *to, session *from) {
    if (from->start < to->start) to->start = from->start;
    if (from->end > to->end) to->end = from->end;
    to->n += from->n;
    to->sum += from->sum;
    if (from->least >= 0 && (to->least < 0 || from->least < to->least)) to->least = from->least;
    for (int v = 0; v < VALUES; v++) to->values[v] |= from->values[v];
    from->used = false;
}

static int by_time(const void *x, const void *y) { return ((const row *)x)->seconds - ((const row *)y)->seconds; }

/* Of a key without sessions, rows that would be closed by themselves are late. */
static int without_late(row *rows, int n) {
    bool has[KEYS] = {false};
    int kept = 0;
    for (int key = 0; key < KEYS; key++)
        for (int k = 0; k < counts[key]; k++) has[key] |= sessions[key][k].used && !is_closed(sessions[key][k].end);
    for (int i = 0; i < n; i++) {
        rows[kept] = rows[i];
        if (has[rows[i].key] || !is_closed(rows[i].seconds + GAP))
            kept++;
        else
            late++;
    }
    return kept;
}

/* Rows of a batch that belong together are one piece; it joins what it meets, or is late as a whole. */
static void take(row *rows, int n) {
    n = without_late(rows, n);
    qsort(rows, (size_t)n, sizeof *rows, by_time);
    for (int key = 0; key < KEYS; key++) {
        session piece = {.least = -1};
        for (int i = 0; i <= n; i++) {
            if (i < n && rows[i].key != key) continue;
            if (piece.used && (i == n || rows[i].seconds >= piece.end)) {
                bool met = false;
                session *list = sessions[key];
                for (int k = 0; k < counts[key]; k++) {
                    if (!list[k].used || is_closed(list[k].end) || list[k].start >= piece.end ||
                        list[k].end <= piece.start)
                        continue;
                    unite(&piece, &list[k]);
                    met = true;
                }
                if (met || !is_closed(piece.end))
                    list[counts[key]++] = piece;
                else
                    late += (uint64_t)piece.n;
                assert_true(counts[key] < SESSIONS_MAX);
                piece = (session){.least = -1};
            }
            if (i < n) add(&piece, &rows[i]);
        }
    }
}

static const char *time_text(int seconds, char *out, size_t room) {
    snprintf(out, room, "1970-01-01 00:%02d:%02d", seconds / 60, seconds % 60);
    return out;
}

/* What has been said is the sessions that are over. */
static void check(harness *h, bool distinct) {
    harness_net(h);
    for (int key = 0; key < KEYS; key++)
        for (int i = 0; i < counts[key]; i++) {
            const session *s = &sessions[key][i];
            char a[32], b[32], c[32], line[300], sum[16] = "NULL", least[16] = "NULL";
            int different = 0, different_sum = 0;
            size_t k = 0;
            if (!s->used || s->end > until) continue;
            for (int v = 0; v < VALUES; v++) different += s->values[v], different_sum += s->values[v] ? v : 0;
            if (s->least >= 0) snprintf(sum, sizeof sum, "%d", distinct ? different_sum : s->sum);
            if (s->least >= 0) snprintf(least, sizeof least, "%d", s->least);
            snprintf(line, sizeof line, "a key longer than twelve bytes %d|%s|%s|%s.999|%d|%s|%s", key,
                     time_text(s->start, a, sizeof a), time_text(s->end, b, sizeof b),
                     time_text(s->end - 1, c, sizeof c), distinct ? different : s->n, sum, least);
            while (k < h->line_count && strcmp(h->lines[k].text, line) != 0) k++;
            if (k == h->line_count || h->lines[k].weight < 1) fail_msg("no %s", line);
            h->lines[k].weight--; /* closed sessions of one key may begin and end together, with the same rows */
        }
    for (size_t k = 0; k < h->line_count; k++)
        if (h->lines[k].weight) fail_msg("%d too many of %s", h->lines[k].weight, h->lines[k].text);
    harness_forget_lines(h);
}

/* What has been said stays to be netted with what comes: the model's view of it, as lines. */
static void keep_lines(harness *h, harness_line **lines, size_t *n) {
    harness_net(h);
    *lines = calloc(h->line_count + 1, sizeof **lines);
    *n = h->line_count;
    for (size_t i = 0; i < *n; i++) (*lines)[i] = (harness_line){strdup(h->lines[i].text), h->lines[i].weight};
}

static void restore_lines(harness *h, harness_line *lines, size_t n) {
    for (size_t i = 0; i < n; i++) {
        harness_keep(h, lines[i].text, lines[i].weight);
        free(lines[i].text);
    }
    free(lines);
}

static void feed(harness *h, int top, int n) {
    static char text[ROWS_MAX][120];
    const char *lines[ROWS_MAX];
    row rows[ROWS_MAX];
    for (int i = 0; i < n; i++) {
        char t[32], v[16] = "NULL";
        rows[i] = (row){pick(KEYS), top - pick(60), pick(VALUES + 1) - 1};
        if (rows[i].seconds < 0) rows[i].seconds = 0;
        if (rows[i].value >= 0) snprintf(v, sizeof v, "%d", rows[i].value);
        snprintf(text[i], sizeof text[i], "a key longer than twelve bytes %d|%s|%s", rows[i].key,
                 time_text(rows[i].seconds, t, sizeof t), v);
        lines[i] = text[i];
    }
    harness_ok(h, harness_try_rows(h, 0, lines, (uint32_t)n));
    take(rows, n);
}

#define CALL(fn, more) "{\"fn\":\"" fn "\",\"arg\":2,\"arg_text\":\"v\"" more "}"
static void one_case(uint64_t case_seed) {
    ck_test_proc proc;
    harness h;
    char params[600];
    seed = case_seed;
    bool distinct = pick(2);
    lateness = (int[]){0, 0, 5, 30}[pick(4)];
    memset(counts, 0, sizeof counts);
    late = 0;
    until = 0;
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 2, 7, 4096}[pick(4)];
    harness_input(&h, "k VARCHAR; t TIMESTAMP(6); v BIGINT", CK_MODE_APPEND);
    snprintf(params, sizeof params,
             "{\"time\":1,\"gap_us\":10000000,\"keys\":[0],\"lateness_us\":%lld,\"aggregates\":[%s]}",
             lateness * 1000000LL,
             distinct ? CALL("count", ",\"distinct\":true") "," CALL("sum", ",\"distinct\":true") "," CALL("min", "")
                      : "{\"fn\":\"count\",\"arg\":null}," CALL("sum", "") "," CALL("min", ""));
    harness_start(&h, &ck_op_session_agg, params,
                  "k VARCHAR; ws TIMESTAMP(6); we TIMESTAMP(6); wt TIMESTAMP(6); n BIGINT; s BIGINT; m BIGINT");
    for (int step = 0, top = 30; step < 40; step++, top += pick(30)) {
        harness_line *lines;
        size_t n;
        feed(&h, top, 1 + pick((int)(h.settings.batch_rows > 20 ? 20 : h.settings.batch_rows)));
        if (pick(2) && top - 30 > until) {
            until = top - 30;
            harness_ok(&h, harness_event(&h, 0, ck_event_watermark(until * 1000000LL - 1, false)));
        }
        if (!lateness)
            for (size_t i = 0; i < h.line_count; i++) assert_true(h.lines[i].weight > 0); /* said once */
        keep_lines(&h, &lines, &n);
        check(&h, distinct);
        restore_lines(&h, lines, n);
        if (pick(8) == 0) harness_restart(&h, (uint64_t)step + 1);
    }
    until = 3600 * 24;
    harness_end(&h);
    check(&h, distinct);
    assert_int_equal(harness_counter(&h, "late_rows"), late);
    assert_int_equal(harness_kept_rows(&h, 1000), 0); /* nothing is left behind, nor beside it */
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_histories_give_the_sessions(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    for (uint64_t s = only ? strtoull(only, NULL, 10) : 1; s <= (only ? strtoull(only, NULL, 10) : 500); s++) {
        if (only) printf("seed %llu\n", (unsigned long long)s);
        one_case(s);
    }
}

HARNESS_FIXTURE

/* Sets of more values than are moved at a time; a text so long that it cannot stand in a set. */
static void large_sets_meet(void **state) {
    enum { EACH = 5000, BATCH = 1000 };
    static char text[BATCH][80], long_value[CK_KEY_BYTES_MAX];
    const char *lines[BATCH], *const one[] = {"k|1970-01-01 00:00:28|x"};
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "k VARCHAR; t TIMESTAMP(6); v VARCHAR", CK_MODE_APPEND);
    harness_start(
        h, &ck_op_session_agg,
        "{\"time\":1,\"gap_us\":10000000,\"keys\":[0],\"aggregates\":[" CALL("count", ",\"distinct\":true") "]}",
        "k VARCHAR; ws TIMESTAMP(6); we TIMESTAMP(6); wt TIMESTAMP(6); n BIGINT");
    for (int side = 0; side < 2; side++)
        for (int from = 0; from < EACH; from += BATCH) {
            for (int i = 0; i < BATCH; i++) {
                snprintf(text[i], sizeof text[i], "k|1970-01-01 00:00:%02d|a value that is long %d", side ? 35 : 20,
                         from + i + side * EACH / 2);
                lines[i] = text[i];
            }
            harness_ok(h, harness_try_rows(h, 0, lines, BATCH));
        }
    harness_restart(h, 1);
    HARNESS_ROWS(h, "k|1970-01-01 00:00:28|a value that is long 17");
    ck_batch *b = harness_batch(h, 0, one, 1);
    ck_column_builder builder;
    assert_int_equal(ck_column_builder_init(&builder, h->mem, h->inputs[0].schema->fields[2].type, 1), CK_OK);
    memset(long_value, 'x', sizeof long_value);
    assert_int_equal(ck_build_str(&builder, long_value, sizeof long_value), CK_OK);
    ck_column *value = ck_column_builder_finish(&builder);
    ck_column_builder_destroy(&builder);
    ck_column_unref(&b->columns[2]);
    ck_batch_set_column(b, 2, &value);
    assert_int_equal(harness_event(h, 0, ck_event_batch(b)), CK_FULL);
    ck_batch_unref(&b);
    assert_non_null(strstr(h->error.msg, "more than DISTINCT keeps in a SESSION"));
    h->error = CK_ERROR_INIT;
    harness_end(h);
    HARNESS_EXPECT(h, "+k|1970-01-01 00:00:20|1970-01-01 00:00:45|1970-01-01 00:00:44.999|7500");
    assert_int_equal(harness_kept_rows(h, 2), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_give_the_sessions), T(large_sets_meet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
