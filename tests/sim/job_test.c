/* Whole jobs on a pool of threads and the real file system: what the simulator cannot show, real concurrency. */
#include <sched.h>

#include "kit.h"

static void run_and_check(fixture *f, uint32_t parallelism) {
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    if (start(f, parallelism, NULL, &j, &err) != CK_OK) fail_msg("%s", err.msg);
    finish(j);
    ck_job_free(j);
    if (output_check(&f->t.proc, &f->plan, &err) != CK_OK) fail_msg("-p %u: %s", parallelism, err.msg);
}

static void every_parallelism_gives_the_same(void **state) {
    fixture *f = *state;
    static const uint32_t batch_rows[] = {1, 7, 4096};
    for (int b = 0; b < 3; b++)
        for (uint32_t p = 1; p <= 5; p++) {
            plan *pl = new_plan(f);
            pl->batch_rows = batch_rows[b];
            if (b < 2) pl->a_rows = pl->b_rows = b ? 3000 : 500;
            pl->with_counts = pl->with_rows = pl->with_limit = true;
            pl->final = p % 2;
            run_and_check(f, p);
        }
}

static void a_limit_ends_an_endless_source(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_limit = true;
    p->c_limit = 1;
    for (uint32_t parallelism = 1; parallelism <= 4; parallelism += 3) {
        int64_t began_us = ck_mono_us(&f->t.proc);
        p = new_plan(f);
        p->with_limit = true;
        p->c_limit = 10;
        run_and_check(f, parallelism);
        assert_true(ck_mono_us(&f->t.proc) - began_us < 5000000);
    }
}

static void small_queues_do_not_deadlock(void **state) {
    fixture *f = *state;
    for (uint32_t p = 1; p <= 4; p++) {
        ck_job *j;
        ck_error err = CK_ERROR_INIT;
        plan *pl = new_plan(f);
        pl->with_counts = pl->with_rows = true;
        ck_job_config cfg = {.queue_bytes = 1};
        if (start(f, p, &cfg, &j, &err) != CK_OK) fail_msg("%s", err.msg);
        finish(j);
        ck_job_free(j);
        if (output_check(&f->t.proc, pl, &err) != CK_OK) fail_msg("-p %u: %s", p, err.msg);
    }
}

static void cancel_at_any_moment(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 60; i++) {
        ck_job *j;
        ck_error err = CK_ERROR_INIT;
        plan *p = new_plan(f);
        p->with_counts = p->with_limit = true;
        p->c_limit = 1000000000;
        p->batch_rows = i % 2 ? 4096 : 3;
        if (start(f, 1 + (uint32_t)i % 4, NULL, &j, &err) != CK_OK) fail_msg("%s", err.msg);
        if (i % 3) (void)!ck_job_wait(j, (int64_t)ck_random_below(&f->t.proc, 20000), NULL);
        if (i % 5) {
            ck_job_cancel(j);
            assert_int_equal(ck_job_wait(j, 60000000, &err), CK_CANCELLED);
            assert_int_equal(ck_job_state_of(j), CK_JOB_CANCELLED);
        }
        ck_job_free(j);
    }
}

/* ---- on_end ---- */

static _Atomic int ends_seen;
static void saw_end(void *arg, ck_job *j) {
    assert_ptr_equal(arg, &ends_seen);
    assert_int_equal(ck_job_result(j, NULL), CK_OK);
    atomic_fetch_add(&ends_seen, 1);
}

static void the_end_is_told_once_and_progress_adds_up(void **state) {
    fixture *f = *state;
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    plan *p = new_plan(f);
    p->with_rows = true;
    atomic_store(&ends_seen, 0);
    ck_job_config cfg = {.on_end = saw_end, .on_end_arg = &ends_seen};
    if (start(f, 3, &cfg, &j, &err) != CK_OK) fail_msg("%s", err.msg);
    finish(j);
    assert_int_equal(atomic_load(&ends_seen), 1);
    ck_job_progress now;
    ck_job_progress_now(j, &now);
    uint64_t rows = 0;
    for (uint32_t s = 0; s < p->b_splits; s++) rows += model_split_rows(s, p->b_rows);
    assert_int_equal(now.rows_in, rows);
    assert_int_equal(now.rows_out, rows);
    assert_true(now.memory_bytes[CK_MEM_PLAN] > 0);
    assert_false(ck_job_was_finished(j));
    uint64_t checkpoint;
    assert_int_equal(ck_job_savepoint(j, -1, &checkpoint, &err), CK_REFUSED);
    ck_job_free(j);
}

/* ---- failures ---- */

typedef struct breaker {
    ck_mem mem;
    int64_t after;
} breaker;
static ck_status breaker_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    if (strstr(spec->params, "refuse")) return ck_fail(err, CK_INVALID, "option x is wrong");
    breaker *b = ck_alloc_zero(mem, sizeof *b);
    if (!b) return ck_nomem(err, mem, sizeof *b);
    b->mem = mem;
    *self = b;
    return CK_OK;
}
static ck_status breaker_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self, (void)input;
    if (ev->kind != CK_EVENT_BATCH) return CK_OK;
    return ck_fail(ctx->error, CK_DATA, "this row is bad");
}
static void breaker_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((breaker *)self)->mem, self, sizeof(breaker));
}
static const ck_operator_vtbl breaker_vtbl = {
    .struct_bytes = sizeof breaker_vtbl, .on_event = breaker_event, .close = breaker_close};
static const ck_op_desc breaker_desc = {.type = "breaker", .op = &breaker_vtbl, .create = breaker_create};

static ck_graph *breaker_graph(fixture *f, const char *type, const char *params, ck_edge_kind kind) {
    static const char *const names[] = {"k", "v"};
    static const uint32_t key[] = {0};
    const ck_schema *schema = model_schema(&f->arena, 2, names);
    ck_graph_input *in = CK_ARENA_NEW(&f->arena, ck_graph_input);
    *in = (ck_graph_input){.uid = "source:s", .kind = kind, .key = key, .key_count = kind == CK_EDGE_HASH};
    ck_graph_builder b;
    ck_graph *g;
    ck_graph_op source = {
        .uid = "source:s", .type = "source.model", .params = "{\"splits\":4,\"rows\":0}", .schema = schema};
    ck_graph_op op = {
        .uid = "broken one", .type = type, .params = params, .schema = schema, .inputs = in, .input_count = 1};
    assert_int_equal(ck_graph_builder_init(&b, &f->arena, "broken"), CK_OK);
    assert_int_equal(ck_graph_add(&b, &source, NULL), CK_OK);
    assert_int_equal(ck_graph_add(&b, &op, NULL), CK_OK);
    assert_int_equal(ck_graph_check(&b, &g, NULL), CK_OK);
    return g;
}

static void a_failing_operator_fails_the_job(void **state) {
    fixture *f = *state;
    assert_int_equal(ck_registry_add_op(&f->registry, &breaker_desc, NULL), CK_OK);
    for (uint32_t p = 1; p <= 4; p++)
        for (int i = 0; i < 10; i++) {
            ck_job *j;
            ck_error err = CK_ERROR_INIT;
            ck_job_config cfg = {.parallelism = p, .batch_rows = 5};
            ck_graph *g = breaker_graph(f, "breaker", NULL, i % 2 ? CK_EDGE_HASH : CK_EDGE_FORWARD);
            assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_OK);
            assert_int_equal(ck_job_wait(j, 60000000, &err), CK_DATA);
            assert_string_equal(err.msg, "this row is bad");
            assert_string_equal(err.place.object, "broken one");
            assert_in_range(err.place.subtask, 0, p - 1);
            assert_int_equal(ck_job_state_of(j), CK_JOB_FAILED);
            ck_job_free(j);
        }
}

static void a_job_that_cannot_start_leaves_nothing(void **state) {
    fixture *f = *state;
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    ck_job_config cfg = {.parallelism = 2};
    assert_int_equal(ck_registry_add_op(&f->registry, &breaker_desc, NULL), CK_OK);
    ck_graph *g = breaker_graph(f, "braker", NULL, CK_EDGE_FORWARD);
    assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_INVALID);
    assert_string_equal(err.msg, "operator broken one: unknown operator type braker, did you mean breaker?");
    err = CK_ERROR_INIT;
    g = breaker_graph(f, "breaker", "{\"refuse\":1}", CK_EDGE_FORWARD);
    assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_INVALID);
    assert_string_equal(err.msg, "option x is wrong");
    assert_string_equal(err.place.object, "broken one");
    g = breaker_graph(f, "breaker", NULL, CK_EDGE_FORWARD);
    cfg.batch_rows = 5000;
    assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_INVALID);
    cfg.batch_rows = 0;
    cfg.parallelism = 200;
    assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_INVALID);
    cfg.parallelism = 1;
    cfg.flush_us = -1;
    assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_INVALID);
}

static void every_allocation_of_a_start_may_fail(void **state) {
    fixture *f = *state;
    plan *p = new_plan(f);
    p->with_counts = p->with_limit = true;
    p->a_rows = p->c_limit = 10;
    ck_graph *g;
    assert_int_equal(plan_graph(p, &f->arena, &g, NULL), CK_OK);
    for (uint64_t n = 1;; n++) {
        ck_job *j = NULL;
        ck_error err = CK_ERROR_INIT;
        ck_job_config cfg = {.parallelism = 2, .batch_rows = 7};
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err);
        if (s == CK_OK) s = ck_job_wait(j, 60000000, &err);
        ck_job_free(j);
        bool fired = ck_tracked_heap_fired(f->t.heap); /* in the start, or in a subtask that ran already */
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            break;
        }
        if (s != CK_NOMEM && s != CK_OK) fail_msg("allocation %llu: %s", (unsigned long long)n, err.msg);
    }
}

/* ---- a slow consumer ---- */

static _Atomic bool let_go;
typedef struct slow {
    ck_mem mem;
    ck_io_job job;
    ck_op_ctx *ctx;
    struct ck_op_runtime *rt;
    bool waiting;
    _Atomic bool ready;
} slow;
static ck_status slow_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec, (void)err;
    slow *s = ck_alloc_zero(mem, sizeof *s);
    s->mem = mem;
    *self = s;
    return CK_OK;
}
static void slow_run(ck_io_job *j) {
    (void)j;
    while (!atomic_load(&let_go)) sched_yield();
}
static void slow_done(ck_io_job *j) {
    slow *s = (slow *)((char *)j - offsetof(slow, job));
    atomic_store(&s->ready, true);
    ck_op_wake(s->ctx, s->rt);
}
static ck_status slow_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    slow *s = self;
    (void)input;
    if (ev->kind != CK_EVENT_BATCH || atomic_load(&s->ready)) return CK_OK;
    if (s->waiting) return CK_AGAIN;
    s->waiting = true;
    s->ctx = ctx, s->rt = ctx->rt;
    s->job = (ck_io_job){slow_run, slow_done, NULL};
    ck_op_submit_io(ctx, &s->job);
    return CK_AGAIN;
}
static void slow_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((slow *)self)->mem, self, sizeof(slow));
}
static const ck_operator_vtbl slow_vtbl = {
    .struct_bytes = sizeof slow_vtbl, .on_event = slow_event, .close = slow_close};
static const ck_op_desc slow_desc = {.type = "slow", .op = &slow_vtbl, .create = slow_create};

/* Rows that were read once no more are: two looks some time apart say the same. */
static uint64_t rows_when_sources_stand_still(ck_job *j) {
    ck_error err = CK_ERROR_INIT;
    ck_job_progress p;
    uint64_t rows = 0;
    do {
        ck_job_progress_now(j, &p);
        rows = p.rows_in;
        assert_int_equal(ck_job_wait(j, 200000, &err), CK_AGAIN);
        ck_job_progress_now(j, &p);
    } while (p.rows_in == 0 || p.rows_in != rows);
    return rows;
}

static void a_slow_consumer_bounds_the_queues(void **state) {
    fixture *f = *state;
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    atomic_store(&let_go, false);
    assert_int_equal(ck_registry_add_op(&f->registry, &slow_desc, NULL), CK_OK);
    ck_graph *g = breaker_graph(f, "slow", NULL, CK_EDGE_HASH);
    ck_job_config cfg = {.parallelism = 2, .queue_bytes = 100000};
    assert_int_equal(ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err), CK_OK);
    uint64_t rows = rows_when_sources_stand_still(j);
    ck_job_progress p;
    ck_job_progress_now(j, &p);
    /* four channels of 100,000 and one batch more each; what producers gather, a batch each in hand */
    size_t bound = 4 * (100000 + 70000) + 2 * (CK_BATCH_ROWS_MAX * 16 * 3 + (1 << 20));
    if (p.memory_bytes[CK_MEM_QUEUE] > bound) fail_msg("%zu bytes in queues", p.memory_bytes[CK_MEM_QUEUE]);
    atomic_store(&let_go, true);
    do {
        assert_int_equal(ck_job_wait(j, 100000, &err), CK_AGAIN);
        ck_job_progress_now(j, &p);
    } while (p.rows_in <= rows);
    ck_job_free(j);
}

static void a_memory_limit_fails_by_name(void **state) {
    fixture *f = *state;
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    plan *p = new_plan(f);
    p->with_rows = true;
    ck_job_config cfg = {.memory_limit = 400000};
    ck_status s = start(f, 2, &cfg, &j, &err);
    if (s == CK_OK) {
        s = ck_job_wait(j, 60000000, &err);
        ck_job_free(j);
    }
    assert_int_equal(s, CK_NOMEM);
    assert_non_null(strstr(err.msg, "400000"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_parallelism_gives_the_same),
        T(a_limit_ends_an_endless_source),
        T(small_queues_do_not_deadlock),
        T(cancel_at_any_moment),
        T(the_end_is_told_once_and_progress_adds_up),
        T(a_failing_operator_fails_the_job),
        T(a_job_that_cannot_start_leaves_nothing),
        T(every_allocation_of_a_start_may_fail),
        T(a_slow_consumer_bounds_the_queues),
        T(a_memory_limit_fails_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
