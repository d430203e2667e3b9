#include "metrics/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "os/thread.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct fixture {
    ck_test_proc t;
    ck_metrics *m;
    ck_arena arena;
} fixture;

static void init(fixture *f) {
    ck_test_proc_init(&f->t);
    OK(ck_metrics_new(&f->t.proc, &f->m, NULL));
    ck_arena_init(&f->arena, ck_proc_mem(&f->t.proc, CK_MEM_PLAN), 64 << 20);
}
static void destroy(fixture *f) {
    ck_arena_destroy(&f->arena);
    ck_metrics_free(f->m);
    ck_test_proc_destroy(&f->t);
}

static void test_names_share_and_labels_part(void **state) {
    (void)state;
    fixture f;
    init(&f);
    ck_label a[] = {{"op", "filter"}, {"subtask", "0"}}, b[] = {{"op", "filter"}, {"subtask", "1"}};
    ck_counter *x, *y, *z, *plain;
    OK(ck_metrics_counter(f.m, "rows_in", a, 2, &x, NULL));
    OK(ck_metrics_counter(f.m, "rows_in", a, 2, &y, NULL));
    OK(ck_metrics_counter(f.m, "rows_in", b, 2, &z, NULL));
    OK(ck_metrics_counter(f.m, "rows_in", NULL, 0, &plain, NULL));
    assert_ptr_equal(x, y);
    assert_true(x != z && x != plain && z != plain);
    ck_counter_add(x, 5), ck_counter_add(y, 2), ck_counter_add(z, 1);
    ck_gauge *g;
    ck_histogram *h;
    OK(ck_metrics_gauge(f.m, "lag", NULL, 0, &g, NULL));
    ck_gauge_set(g, -7), ck_gauge_add(g, 2);
    OK(ck_metrics_histogram(f.m, "latency_us", NULL, 0, &h, NULL));
    ck_histogram_record(h, 100);
    ck_metric_view *v;
    size_t n;
    OK(ck_metrics_look(f.m, &f.arena, &v, &n, NULL));
    assert_int_equal(n, 5);
    assert_string_equal(v[0].name, "lag");
    assert_int_equal(v[0].gauge, -5);
    assert_string_equal(v[1].name, "latency_us");
    assert_int_equal(v[1].histogram.count, 1);
    assert_string_equal(v[2].labels, "");
    assert_string_equal(v[3].labels, "op=\"filter\",subtask=\"0\"");
    assert_int_equal(v[3].counter, 7);
    assert_int_equal(v[4].counter, 1);
    destroy(&f);
}

static void test_release_removes_the_last(void **state) {
    (void)state;
    fixture f;
    init(&f);
    ck_counter *x, *y;
    ck_histogram *h;
    ck_metric_view *v;
    size_t n;
    OK(ck_metrics_look(f.m, &f.arena, &v, &n, NULL)); /* nothing yet */
    assert_int_equal(n, 0);
    OK(ck_metrics_counter(f.m, "a", NULL, 0, &x, NULL));
    OK(ck_metrics_counter(f.m, "a", NULL, 0, &y, NULL));
    OK(ck_metrics_histogram(f.m, "h", NULL, 0, &h, NULL));
    ck_counter_add(x, 3);
    ck_metrics_release(f.m, x);
    ck_metrics_release(f.m, h);
    ck_metrics_release(f.m, NULL);
    OK(ck_metrics_look(f.m, &f.arena, &v, &n, NULL));
    assert_int_equal(n, 1);
    assert_int_equal(v[0].counter, 3);
    ck_metrics_release(f.m, y);
    OK(ck_metrics_counter(f.m, "a", NULL, 0, &x, NULL));
    assert_int_equal(x->value, 0); /* a new one */
    ck_gauge *g;
    ck_metrics_release(f.m, x);
    OK(ck_metrics_gauge(f.m, "a", NULL, 0, &g, NULL)); /* and the name is free for another kind */
    destroy(&f);
}

static void test_refusals(void **state) {
    (void)state;
    fixture f;
    init(&f);
    ck_error err = CK_ERROR_INIT;
    ck_counter *c;
    ck_gauge *g;
    static const char *const bad[] = {"", "1a", "a-b", "a b", "a{", "\xc3\xa9"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_label l = {bad[i], "x"};
        assert_int_equal(ck_metrics_counter(f.m, bad[i], NULL, 0, &c, &err), CK_INVALID);
        assert_null(c);
        assert_int_equal(ck_metrics_counter(f.m, "good", &l, 1, &c, &err), CK_INVALID);
    }
    OK(ck_metrics_counter(f.m, "x", NULL, 0, &c, NULL));
    assert_int_equal(ck_metrics_gauge(f.m, "x", NULL, 0, &g, &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "counter"));
    char *longest = malloc(5000);
    memset(longest, 'a', 4999), longest[4999] = 0;
    ck_label l = {"k", longest};
    assert_int_equal(ck_metrics_counter(f.m, "x", &l, 1, &c, &err), CK_FULL);
    free(longest);
    destroy(&f);
}

static void test_label_values_are_escaped(void **state) {
    (void)state;
    fixture f;
    init(&f);
    ck_counter *c;
    ck_label l = {"table", "a\"b\\c\nd"};
    OK(ck_metrics_counter(f.m, "x", &l, 1, &c, NULL));
    ck_metric_view *v;
    size_t n;
    OK(ck_metrics_look(f.m, &f.arena, &v, &n, NULL));
    assert_string_equal(v[0].labels, "table=\"a\\\"b\\\\c\\nd\"");
    destroy(&f);
}

static void test_the_ceiling(void **state) {
    (void)state;
    fixture f;
    init(&f);
    ck_counter *c;
    char name[32];
    for (int i = 0; i < 65536; i++) {
        snprintf(name, sizeof name, "n%d", i);
        OK(ck_metrics_counter(f.m, name, NULL, 0, &c, NULL));
    }
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_metrics_counter(f.m, "more", NULL, 0, &c, &err), CK_FULL);
    OK(ck_metrics_counter(f.m, "n77", NULL, 0, &c, NULL)); /* those there are still found */
    destroy(&f);
}

static void test_allocation_failures(void **state) {
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        ck_test_proc t;
        ck_test_proc_init(&t);
        ck_tracked_heap_fail_nth(t.heap, nth);
        ck_metrics *m = NULL;
        ck_counter *c;
        ck_histogram *h;
        ck_metric_view *v;
        size_t n;
        ck_arena arena;
        ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
        ck_label l = {"k", "v"};
        ck_status s = ck_metrics_new(&t.proc, &m, NULL);
        if (s == CK_OK) s = ck_metrics_counter(m, "c", &l, 1, &c, NULL);
        if (s == CK_OK) s = ck_metrics_histogram(m, "h", NULL, 0, &h, NULL);
        if (s == CK_OK) s = ck_metrics_look(m, &arena, &v, &n, NULL);
        bool fired = ck_tracked_heap_fired(t.heap);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        ck_arena_destroy(&arena);
        ck_metrics_free(m);
        ck_test_proc_destroy(&t);
        if (!fired) break;
    }
}

typedef struct worker {
    ck_metrics *m;
    ck_status worst;
} worker;
static void *work(void *arg) {
    worker *w = arg;
    for (int i = 0; i < 500; i++) {
        ck_counter *shared, *own;
        char name[32];
        snprintf(name, sizeof name, "own%d", i);
        ck_status s = ck_metrics_counter(w->m, "shared", NULL, 0, &shared, NULL);
        if (s == CK_OK) s = ck_metrics_counter(w->m, name, NULL, 0, &own, NULL);
        if (s != CK_OK) w->worst = s;
        if (s != CK_OK) return NULL;
        ck_counter_add(shared, 1), ck_counter_add(own, 1);
        ck_metrics_release(w->m, own);
    }
    return NULL;
}

static void test_many_threads(void **state) {
    (void)state;
    fixture f;
    init(&f);
    pthread_t t[3];
    worker w[3];
    for (int i = 0; i < 3; i++) {
        w[i] = (worker){f.m, CK_OK};
        OK(ck_thread_start(&t[i], "work", work, &w[i], NULL));
    }
    for (int i = 0; i < 20; i++) {
        ck_metric_view *v;
        size_t n;
        OK(ck_metrics_look(f.m, &f.arena, &v, &n, NULL));
    }
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 3; i++) OK(w[i].worst);
    ck_counter *shared;
    OK(ck_metrics_counter(f.m, "shared", NULL, 0, &shared, NULL));
    assert_int_equal(shared->value, 1500);
    destroy(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_share_and_labels_part),
        cmocka_unit_test(test_release_removes_the_last),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_label_values_are_escaped),
        cmocka_unit_test(test_the_ceiling),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
