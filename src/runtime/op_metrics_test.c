/* Counters and clocks of operators, in the registry and beside it. */
#include "runtime/op_metrics.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "os/test_proc.h"

typedef struct fixture {
    ck_test_proc t;
    ck_op_ctx ctx;
    ck_job_settings settings;
    int64_t now_us;
} fixture;

static int64_t now_of(const ck_op_ctx *ctx) { return ((const fixture *)(const void *)ctx->rt)->now_us; }

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->t);
    f->settings = (ck_job_settings){.job_name = "j", .job_uuid = "u"};
    f->ctx = (ck_op_ctx){.proc = &f->t.proc, .settings = &f->settings, .uid = "window_agg(k)<-t", .subtask = 3};
    f->ctx.rt = (struct ck_op_runtime *)(void *)f;
    f->ctx.now_us_fn = now_of;
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_metrics_free(f->t.proc.metrics);
    f->t.proc.metrics = NULL;
    ck_test_proc_destroy(&f->t);
    free(f);
    return 0;
}

static uint64_t shown(fixture *f, const char *name, const char **labels) {
    ck_arena a;
    ck_metric_view *all;
    size_t n;
    uint64_t value = UINT64_MAX;
    static char text[200];
    ck_arena_init(&a, ck_proc_mem(&f->t.proc, CK_MEM_PLAN), 1 << 20);
    assert_int_equal(ck_metrics_look(f->t.proc.metrics, &a, &all, &n, NULL), CK_OK);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i].name, name) != 0) continue;
        value = all[i].kind == CK_METRIC_GAUGE ? (uint64_t)all[i].gauge : all[i].counter;
        strncpy(text, all[i].labels, sizeof text - 1);
    }
    if (labels) *labels = text;
    ck_arena_destroy(&a);
    return value;
}

static void a_counter_is_a_metric(void **state) {
    fixture *f = *state;
    const char *labels;
    ck_op_counter c = {0};
    assert_int_equal(ck_metrics_new(&f->t.proc, &f->t.proc.metrics, NULL), CK_OK);
    ck_op_counter_show(&c, &f->ctx, "late_rows");
    ck_op_counter_add(&c, 5);
    ck_op_counter_add(&c, 2);
    assert_int_equal(shown(f, "late_rows", &labels), 7);
    assert_string_equal(labels, "job=\"j\",run=\"u\",op=\"window_agg(k)<-t\",subtask=\"3\"");
    ck_op_counter_release(&c, &f->t.proc);
    assert_int_equal(shown(f, "late_rows", NULL), UINT64_MAX);
    assert_int_equal(ck_op_counter_read(&c), 7);
    ck_op_counter_release(&c, &f->t.proc);
}

static void without_a_registry_it_counts_all_the_same(void **state) {
    fixture *f = *state;
    ck_op_counter c = {0};
    ck_op_counter_show(&c, &f->ctx, "late_rows");
    ck_op_counter_add(&c, 5);
    assert_int_equal(ck_op_counter_read(&c), 5);
    assert_int_equal(ck_metrics_new(&f->t.proc, &f->t.proc.metrics, NULL), CK_OK);
    ck_op_counter bad = {0};
    ck_op_counter_show(&bad, &f->ctx, "no name");
    ck_op_counter_add(&bad, 1);
    assert_int_equal(ck_op_counter_read(&bad), 1);
}

static void the_newest_note_is_kept_with_its_strings(void **state) {
    fixture *f = *state;
    ck_op_clock c;
    ck_clock_note out;
    char holder[CK_CLOCK_NAME_BYTES], idle[CK_CLOCK_NAME_BYTES], one[] = "one", two[] = "two", longer[400];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(ck_metrics_new(&f->t.proc, &f->t.proc.metrics, NULL), CK_OK);
    ck_op_clock_init(&c);
    assert_false(ck_op_clock_read(&c, &out, holder, idle));
    ck_op_clock_take(&c, &f->ctx, &(ck_clock_note){.watermark_us = -7, .holder = one, .idle = two, .idle_splits = 4});
    one[0] = two[0] = '?';
    assert_true(ck_op_clock_read(&c, &out, holder, idle));
    assert_string_equal(out.holder, "one");
    assert_string_equal(out.idle, "two");
    assert_int_equal((int64_t)shown(f, "watermark_us", NULL), -7);
    assert_int_equal(shown(f, "idle_splits", NULL), 4);
    const char *labels;
    assert_int_equal((int64_t)shown(f, "watermark_holder_us", &labels), 0);
    assert_non_null(strstr(labels, ",split=\"one\""));
    ck_op_clock_take(&c, &f->ctx, &(ck_clock_note){.holder = two, .holder_us = 5});
    assert_true(ck_op_clock_read(&c, &out, holder, idle));
    assert_string_equal(out.holder, "?wo");
    shown(f, "watermark_holder_us", &labels); /* named no more than once a second */
    assert_non_null(strstr(labels, ",split=\"one\""));
    f->now_us += 1000000;
    ck_op_clock_take(&c, &f->ctx, &(ck_clock_note){.holder = two, .holder_us = 6});
    assert_int_equal((int64_t)shown(f, "watermark_holder_us", &labels), 6);
    assert_non_null(strstr(labels, ",split=\"?wo\""));
    f->now_us += 1000000;
    ck_op_clock_take(&c, &f->ctx, &(ck_clock_note){.idle = two, .idle_splits = 1}); /* nobody holds it */
    assert_int_equal(shown(f, "watermark_holder_us", NULL), UINT64_MAX);
    ck_op_clock_take(&c, &f->ctx, &(ck_clock_note){.holder = longer});
    assert_true(ck_op_clock_read(&c, &out, holder, idle));
    assert_int_equal(strlen(out.holder), CK_CLOCK_NAME_BYTES - 1);
    assert_null(out.idle);
    ck_op_clock_destroy(&c, &f->t.proc);
    assert_int_equal(shown(f, "idle_splits", NULL), UINT64_MAX);
    assert_int_equal(shown(f, "watermark_holder_us", NULL), UINT64_MAX);
}

#define T(x) cmocka_unit_test_setup_teardown(x, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {T(a_counter_is_a_metric), T(without_a_registry_it_counts_all_the_same),
                                       T(the_newest_note_is_kept_with_its_strings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
