/* The gate over a savepoint that is kept in the repository: what passes, what does not, what it could not look at. */
#include "runtime/restore_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "checkpoint/directory.h"
#include "os/test_proc.h"

#define SAVEPOINT "tests/golden/savepoints/2026-11-30/ck"

typedef struct fixture {
    ck_test_proc t;
    ck_arena arena;
    ck_registry registry; /* knows no operator: their meanings are compared */
    ck_job_settings settings;
    ck_graph *graph; /* of the savepoint */
} fixture;

static int setup(void **state) {
    static fixture f;
    ck_error err = CK_ERROR_INIT;
    f = (fixture){0};
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), SIZE_MAX);
    ck_registry_init(&f.registry, &f.arena);
    const ck_checkpoint_dir_config dir = {
        .proc = &f.t.proc, .mem = f.arena.mem, .path = SAVEPOINT, .job_name = "job", .read_only = true};
    ck_checkpoint_dir *d;
    ck_manifest *m;
    uint64_t id;
    if (ck_checkpoint_dir_open(&dir, &d, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_checkpoint_dir_newest_id(d, &id, &err), CK_OK);
    assert_int_equal(ck_checkpoint_dir_read(d, id, &f.arena, &m, &err), CK_OK);
    ck_checkpoint_dir_close(d);
    assert_int_equal(ck_graph_decode(&f.arena, ck_view_of(m->graph), &f.graph, &err), CK_OK);
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static ck_status gate(fixture *f, const char *dir, const char *restore, const char **warning, ck_error *err) {
    ck_evolve_config cfg = {.proc = &f->t.proc, .registry = &f->registry, .wanted = f->graph, .settings = &f->settings};
    return ck_restore_gate(&f->arena, dir, restore, "job", &cfg, warning, err);
}

static void a_definite_verdict_stops(void **state) {
    fixture *f = *state;
    const char *warning;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(gate(f, SAVEPOINT, NULL, &warning, &err), CK_OK);
    assert_string_equal(warning, "");
    f->graph->hash ^= 1; /* another script, and an operator of it means something else */
    uint32_t i = 0;
    while (!f->graph->ops[i].state_fingerprint || strncmp(f->graph->ops[i].type, "sink.", 5) == 0) i++;
    f->graph->ops[i].semantic_fingerprint ^= 1;
    assert_int_equal(gate(f, SAVEPOINT, "latest", &warning, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, f->graph->ops[i].uid));
    assert_non_null(strstr(err.msg, "cannot go on from all it keeps"));
}

static void what_it_cannot_see_passes_with_a_warning(void **state) {
    fixture *f = *state;
    const char *warning;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(gate(f, SAVEPOINT, "/nowhere:7", &warning, &err), CK_OK);
    assert_non_null(strstr(warning, "/nowhere:7 was not looked at"));
    assert_non_null(strstr(warning, "its start will tell"));
    assert_int_equal(gate(f, SAVEPOINT, "999", &warning, &err), CK_OK);
    assert_non_null(strstr(warning, "999"));
    assert_int_equal(gate(f, ck_test_dir(&f->t), NULL, &warning, &err), CK_OK); /* a first start */
    assert_string_equal(warning, "");
    assert_int_equal(err.status, CK_OK);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(a_definite_verdict_stops), T(what_it_cannot_see_passes_with_a_warning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
