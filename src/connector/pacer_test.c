/* A rate is of the whole table: subtasks without splits, or whose splits have ended, leave their share to the others.
 * Every paced source, with the clock held, at several parallelisms and with splits dealt evenly or not. */
#include "connector/pacer.h"

#include "connector/connectors.h"
#include "connector/source_test_support.h"

enum { SUBTASKS_MAX = 4, RATE = 1000 };

typedef struct subject {
    const ck_op_desc *desc;
    const char *params, *output;
    size_t rows;
} subject;
static const subject subjects[] = {
    {&ck_op_source_datagen,
     "{\"table\":\"t\",\"table_schema\":[{\"name\":\"id\",\"type\":\"BIGINT\",\"nullable\":false}],\"columns\":[0],"
     "\"checked\":[],\"options\":{\"rows\":\"2000\",\"rate_limit\":\"1000\"}}",
     "id BIGINT NOT NULL", 2000},
    {&ck_op_source_nexmark,
     "{\"table\":\"bid\",\"table_schema\":[{\"name\":\"price\",\"type\":\"BIGINT\",\"nullable\":true}],\"columns\":[0],"
     "\"checked\":[],\"options\":{\"events\":\"2000\",\"rate_limit\":\"1000\"}}",
     "price BIGINT", 1840},
    {&ck_op_source_file,
     "{\"table\":\"t\",\"table_schema\":[{\"name\":\"a\",\"type\":\"BIGINT\",\"nullable\":true}],\"columns\":[0],"
     "\"checked\":[],\"options\":{\"path\":\"/d/*.json\",\"format\":\"json\",\"rate_limit\":\"1000\"}}",
     "a BIGINT", 2000},
};

typedef struct fixture {
    ck_test_proc proc;
    ck_manual_clock clock;
    ck_simfs *sim;
    held_io io[SUBTASKS_MAX];
    harness h[SUBTASKS_MAX];
    split_set splits;
    ck_source_peers peers;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    ck_manual_clock_init(&f->clock, 1000000, 0);
    f->proc.proc.clock = &f->clock.base;
    assert_int_equal(ck_simfs_new(&f->sim, 1), CK_OK);
    f->proc.proc.fs = ck_simfs_base(f->sim);
    assert_int_equal(ck_fs_mkdirs(&f->proc.proc, "/d", NULL), CK_OK);
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_simfs_free(f->sim);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

static void put_rows(fixture *f, const char *path, int rows) {
    char *text = malloc((size_t)rows * 8 + 1);
    size_t n = 0;
    for (int i = 0; i < rows; i++) n += (size_t)sprintf(text + n, "{\"a\":%d}\n", i % 10);
    write_sim_file(f->sim, path, text, n);
    free(text);
}

static int64_t now(fixture *f) { return f->clock.base.mono_us(&f->clock.base); }

/* Polls all in turn until all have ended, the clock moving only when all wait. At no time are there more rows than the
 * rate allows and one slice a subtask. */
static void drive(fixture *f, uint32_t count) {
    bool ended[SUBTASKS_MAX] = {false};
    int64_t began = now(f);
    for (uint32_t left = count; left;) {
        int64_t next = INT64_MAX;
        size_t rows = 0;
        for (uint32_t i = 0; i < count; i++) {
            ck_poll_result result = CK_POLL_MORE;
            int64_t until = INT64_MAX;
            while (!ended[i] && (result == CK_POLL_MORE || held_run_one(&f->h[i])))
                harness_ok(&f->h[i], source_poll(&f->h[i], &result, &until));
            if (!ended[i] && result == CK_POLL_END) ended[i] = true, left--;
            if (!ended[i] && until < next) next = until;
            rows += f->h[i].line_count;
        }
        double allowed = (double)(now(f) - began) * RATE / 1e6 + (1 + count) * (RATE * CK_PACER_SLICE_US / 1e6);
        if ((double)rows > allowed)
            fail_msg("%zu rows after %lld us, %u subtasks", rows, (long long)(now(f) - began), count);
        if (left && next > now(f)) {
            assert_true(next != INT64_MAX);
            ck_manual_clock_advance(&f->clock, next - now(f));
        }
    }
}

/* `dealt` subtasks get the splits, the others none. */
static void one_case(fixture *f, const subject *s, uint32_t splits, uint32_t dealt, uint32_t subtasks) {
    bool none = false;
    f->peers = (ck_source_peers){.subtasks = subtasks};
    harness_init(&f->h[0], &f->proc.proc);
    split_set_init(&f->splits, &f->h[0]);
    f->h[0].spec.type = s->desc->type;
    f->h[0].spec.params = s->params;
    harness_ok(&f->h[0], s->desc->enumerate(&f->h[0].spec, splits, &f->splits.list, &f->h[0].error));
    for (uint32_t i = 0; i < subtasks; i++) {
        harness *h = &f->h[i];
        if (i) harness_init(h, &f->proc.proc);
        harness_with_io(h, &f->io[i]);
        h->spec.parallelism = subtasks;
        h->spec.subtask = i;
        h->spec.peers = &f->peers;
        harness_ok(h, harness_create(h, s->desc, s->params, s->output));
        harness_ok(h, harness_open(h));
        for (uint32_t k = i; i < dealt && k < f->splits.list.count; k += dealt) {
            harness_ok(h, s->desc->source->add_split(h->self, &f->splits.list.splits[k], &h->ctx));
            harness_end_call(h);
        }
    }
    int64_t began = now(f);
    drive(f, subtasks);
    int64_t took = now(f) - began;
    size_t rows = 0;
    for (uint32_t i = 0; i < subtasks; i++) {
        rows += f->h[i].line_count;
        none |= f->h[i].line_count == 0;
    }
    assert_int_equal(rows, s->rows);
    assert_true(none == (dealt < subtasks));
    if (took < (int64_t)rows * 960 || took > (int64_t)rows * 1040)
        fail_msg("%s: %zu rows in %lld us, %u splits in %u of %u subtasks", s->desc->type, rows, (long long)took,
                 splits, dealt, subtasks);
    assert_int_equal(atomic_load(&f->peers.giving), 0);
    for (uint32_t i = 0; i < subtasks; i++) harness_destroy(&f->h[i]);
    split_set_destroy(&f->splits);
}

static void the_rate_is_of_the_table(void **state) {
    fixture *f = *state;
    static const uint32_t cases[][3] = {{1, 1, 1}, {4, 4, 4}, {2, 2, 4}, {1, 1, 4}, {4, 3, 3}, {3, 2, 4}, {8, 4, 4}};
    put_rows(f, "/d/a.json", 1500); /* files of different sizes: some subtasks end early */
    put_rows(f, "/d/b.json", 20);
    put_rows(f, "/d/c.json", 430);
    put_rows(f, "/d/d.json", 50);
    for (size_t i = 0; i < CK_ARRAY_COUNT(subjects); i++)
        for (size_t k = 0; k < CK_ARRAY_COUNT(cases); k++)
            one_case(f, &subjects[i], cases[k][0], cases[k][1], cases[k][2]);
}

/* One that goes before its end leaves its share, too. */
static void a_source_that_is_closed_counts_no_more(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < CK_ARRAY_COUNT(subjects); i++) {
        const subject *s = &subjects[i];
        harness *h = &f->h[0];
        put_rows(f, "/d/a.json", 9);
        f->peers = (ck_source_peers){.subtasks = 2};
        harness_init(h, &f->proc.proc);
        harness_with_io(h, &f->io[0]);
        split_set_init(&f->splits, h);
        h->spec.peers = &f->peers;
        h->spec.type = s->desc->type;
        h->spec.params = s->params;
        harness_ok(h, s->desc->enumerate(&h->spec, 1, &f->splits.list, &h->error));
        harness_ok(h, source_start(h, s->desc, s->params, s->output, &f->splits.list));
        assert_int_equal(atomic_load(&f->peers.giving), 1);
        harness_destroy(h);
        assert_int_equal(atomic_load(&f->peers.giving), 0);
        split_set_destroy(&f->splits);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_rate_is_of_the_table, setup, teardown),
        cmocka_unit_test_setup_teardown(a_source_that_is_closed_counts_no_more, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
