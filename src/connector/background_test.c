/* A call is begun, runs elsewhere, and its end is seen once, behind the wake. */
#include "connector/background.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct caller {
    ck_background call; /* first */
    int runs;
} caller;

struct ck_op_runtime {
    ck_io_job *submitted;
    int wakes;
};

static void submit(ck_op_ctx *ctx, ck_io_job *job) { ctx->rt->submitted = job; }
static void wake(struct ck_op_runtime *rt) { rt->wakes++; }

static void run(ck_io_job *job) {
    caller *c = (caller *)job;
    if (++c->runs == 2) c->call.status = ck_fail(&c->call.error, CK_IO, "the second one");
}

static void test_calls(void **state) {
    (void)state;
    struct ck_op_runtime rt = {0};
    ck_op_ctx ctx = {.rt = &rt, .submit_io_fn = submit, .wake_fn = wake};
    caller c = {0};
    assert_false(ck_background_ended(&c.call));
    for (int i = 1; i <= 3; i++) {
        ck_background_begin(&c.call, run, &ctx);
        assert_true(c.call.running && rt.submitted == &c.call.job);
        assert_false(ck_background_ended(&c.call));
        rt.submitted->run(rt.submitted);
        assert_false(ck_background_ended(&c.call));
        rt.submitted->done(rt.submitted);
        assert_int_equal(rt.wakes, i);
        assert_true(ck_background_ended(&c.call));
        assert_false(c.call.running);
        assert_false(ck_background_ended(&c.call));
        assert_int_equal(c.call.status, i == 2 ? CK_IO : CK_OK);
        assert_string_equal(c.call.error.msg, i == 2 ? "the second one" : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
