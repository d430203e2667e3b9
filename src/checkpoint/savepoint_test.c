/* Savepoints kept elsewhere, given up, and looked at: with the job alive and gone, again after a failure at any step,
 * and with every kind of damage. */
#include "checkpoint/savepoint.h"

#include "checkpoint/sample_int.h"

typedef struct world {
    ck_test_proc t;
    sample_job j;
    ck_checkpoint_dir *d;
    char dir[200], elsewhere[200];
} world;

static void world_open(world *w) {
    *w = (world){0};
    ck_error err = CK_ERROR_INIT;
    ck_test_proc_init(&w->t);
    snprintf(w->dir, sizeof w->dir, "%s/ck", ck_test_dir(&w->t));
    snprintf(w->elsewhere, sizeof w->elsewhere, "%s/kept", ck_test_dir(&w->t));
    OK(sample_dir(&w->t.proc, w->dir, false, &w->d, &err));
    sample_open(&w->j, &w->t.proc, ck_checkpoint_dir_path(w->d), 2);
    OK(sample_start(&w->j));
}

static void world_close(world *w) {
    sample_close(&w->j);
    ck_checkpoint_dir_close(w->d);
    ck_test_proc_destroy(&w->t);
}

static void take(world *w, uint64_t id, ck_barrier_kind kind) {
    ck_error err = CK_ERROR_INIT;
    for (uint32_t k = 0; k < 40; k++) {
        const uint32_t key = (uint32_t)(id * 7 + k) % SAMPLE_KEYS;
        assert_int_equal(sample_count(&w->j, &key, 1, 1), CK_OK);
    }
    OK(sample_checkpoint(&w->j, w->d, id, kind, &err));
    OK(ck_checkpoint_dir_mark_committed(w->d, id, &err));
}

typedef struct seen {
    uint64_t whole, damaged;
    char last[400];
} seen;

static void look(void *arg, const ck_verified *v) {
    seen *s = arg;
    *(v->damage ? &s->damaged : &s->whole) += 1;
    if (v->damage) snprintf(s->last, sizeof s->last, "%s", v->damage);
}

static ck_status verify(world *w, const char *dir, uint64_t id, seen *s) {
    uint64_t damaged = 0;
    *s = (seen){0};
    ck_status st = ck_checkpoint_verify(&w->t.proc, w->j.mem, dir, id, look, s, &damaged, NULL);
    if (st == CK_OK) assert_int_equal(damaged, s->damaged);
    return st;
}

static ck_status dispose(world *w, const char *dir, uint64_t id, ck_error *err) {
    return ck_savepoint_dispose(&w->t.proc, w->j.mem, dir, id, err);
}

static void kept_elsewhere(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    seen s;
    world_open(&w);
    take(&w, 1, CK_BARRIER_PERIODIC);
    take(&w, 2, CK_BARRIER_SAVEPOINT);
    OK(ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 2, w.elsewhere, &err));
    OK(ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 2, w.elsewhere, &err)); /* again is fine */
    assert_int_equal(verify(&w, w.elsewhere, 0, &s), CK_OK);
    assert_int_equal(s.whole, 3);
    assert_int_equal(s.damaged, 0);
    assert_int_equal(ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 9, w.elsewhere, &err), CK_NOTFOUND);
    sample_model model = w.j.model;
    OK(ck_fs_remove_tree(&w.t.proc, w.dir, &err)); /* complete by itself */
    const ck_checkpoint_dir_config cfg = {
        .proc = &w.t.proc, .mem = w.j.mem, .path = w.elsewhere, .job_name = "orders", .read_only = true};
    ck_checkpoint_dir *kept;
    OK(ck_checkpoint_dir_open(&cfg, &kept, &err));
    sample_job other;
    OK(sample_restore(&other, kept, 2, &w.t.proc, 3, &err));
    other.model = model;
    sample_check(&other);
    sample_close(&other);
    ck_checkpoint_dir_close(kept);
    world_close(&w);
}

static void another_jobs_place_is_refused(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_open(&w);
    take(&w, 1, CK_BARRIER_SAVEPOINT);
    OK(ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 1, w.elsewhere, &err));
    char path[300];
    snprintf(path, sizeof path, "%s/job.json", w.elsewhere);
    OK(ck_durable_replace_bytes(&w.t.proc, path, ck_view_of("{\"name\":\"returns\"}"), &err));
    assert_int_equal(ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 1, w.elsewhere, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "another job"));
    world_close(&w);
}

/* Whatever allocation fails, a second try succeeds and what stands is whole. */
static void export_after_any_failure(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    seen s;
    world_open(&w);
    take(&w, 1, CK_BARRIER_SAVEPOINT);
    for (uint64_t n = 1;; n++) {
        ck_tracked_heap_fail_nth(w.t.heap, n);
        ck_status st = ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 1, w.elsewhere, &err);
        bool fired = ck_tracked_heap_fired(w.t.heap);
        ck_tracked_heap_fail_nth(w.t.heap, 0);
        if (!fired) {
            assert_int_equal(st, CK_OK);
            break;
        }
        assert_int_equal(st, CK_NOMEM);
        OK(ck_savepoint_export(&w.t.proc, w.j.mem, w.dir, 1, w.elsewhere, &err));
        assert_int_equal(verify(&w, w.elsewhere, 1, &s), CK_OK);
        assert_int_equal(s.damaged, 0);
        OK(ck_fs_remove_tree(&w.t.proc, w.elsewhere, &err));
    }
    world_close(&w);
}

static void disposed_of(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    seen s;
    world_open(&w);
    take(&w, 1, CK_BARRIER_SAVEPOINT);
    take(&w, 2, CK_BARRIER_PERIODIC); /* may stand on the savepoint's base */
    take(&w, 3, CK_BARRIER_SAVEPOINT);
    assert_int_equal(dispose(&w, w.dir, 3, &err), CK_REFUSED); /* what the job would continue from */
    assert_non_null(strstr(err.msg, "continue"));
    assert_int_equal(dispose(&w, w.dir, 2, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "no savepoint"));
    assert_int_equal(dispose(&w, w.dir, 9, &err), CK_NOTFOUND);
    OK(dispose(&w, w.dir, 1, &err)); /* the job is alive: no data goes */
    assert_int_equal(verify(&w, w.dir, 0, &s), CK_OK);
    assert_int_equal(s.damaged, 0);
    take(&w, 4, CK_BARRIER_PERIODIC);
    ck_checkpoint_dir_close(w.d);
    w.d = NULL;
    OK(dispose(&w, w.dir, 3, &err));
    assert_int_equal(verify(&w, w.dir, 3, &s), CK_NOTFOUND);
    assert_int_equal(verify(&w, w.dir, 0, &s), CK_OK);
    assert_int_equal(s.damaged, 0);
    world_close(&w);
}

/* What cannot be read may have been anything; the newest is still what the job would continue from. */
static void a_damaged_one_disposed_of(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_open(&w);
    take(&w, 1, CK_BARRIER_PERIODIC);
    take(&w, 2, CK_BARRIER_SAVEPOINT);
    for (int id = 1; id <= 2; id++) {
        char path[400];
        snprintf(path, sizeof path, "%s/checkpoint-%d.json", w.dir, id);
        OK(ck_durable_replace_bytes(&w.t.proc, path, ck_view_of("{"), &err));
    }
    assert_int_equal(dispose(&w, w.dir, 2, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "the damaged checkpoint 2 is what job 'orders' would continue from"));
    OK(dispose(&w, w.dir, 1, &err));
    assert_int_equal(dispose(&w, w.dir, 1, &err), CK_NOTFOUND);
    world_close(&w);
}

/* The job completes one more checkpoint and ends just before its lock is tried. */
static world *ending;
static ck_status lock_at_the_end(ck_file *f, ck_error *err) {
    if (ending) {
        take(ending, 2, CK_BARRIER_PERIODIC);
        ck_checkpoint_dir_close(ending->d);
        ending->d = NULL, ending = NULL;
    }
    return ck_fs_system()->lock(f, err);
}

static void disposed_of_while_the_job_ends(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    seen s;
    world_open(&w);
    for (uint32_t k = 0; k < SAMPLE_KEYS; k++) assert_int_equal(sample_count(&w.j, &k, 1, 1), CK_OK);
    take(&w, 1, CK_BARRIER_SAVEPOINT);
    ck_fs fs = *ck_fs_system();
    fs.lock = lock_at_the_end;
    ending = &w;
    w.t.proc.fs = &fs;
    OK(dispose(&w, w.dir, 1, &err));
    w.t.proc.fs = ck_fs_system();
    assert_null(ending);
    assert_int_equal(verify(&w, w.dir, 2, &s), CK_OK);
    assert_int_equal(s.damaged, 0); /* it stands on the savepoint's base */
    assert_int_equal(verify(&w, w.dir, 1, &s), CK_NOTFOUND);
    world_close(&w);
}

static void damage_has_a_name(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    seen s;
    world_open(&w);
    assert_int_equal(verify(&w, w.dir, 0, &s), CK_NOTFOUND); /* nothing verified is no success */
    take(&w, 1, CK_BARRIER_SAVEPOINT);
    char path[400];
    snprintf(path, sizeof path, "%s/%llu/0/checkpoint-1.snap", w.dir, (unsigned long long)SAMPLE_VERTEX);
    OK(w.t.proc.fs->unlink(w.t.proc.fs, path, &err));
    assert_int_equal(verify(&w, w.dir, 0, &s), CK_OK);
    assert_int_equal(s.damaged, 1);
    assert_non_null(strstr(s.last, "checkpoint-1.snap"));
    snprintf(path, sizeof path, "%s/checkpoint-1.json", w.dir);
    OK(ck_durable_replace_bytes(&w.t.proc, path, ck_view_of("{"), &err));
    assert_int_equal(verify(&w, w.dir, 1, &s), CK_OK);
    assert_int_equal(s.whole, 0);
    assert_int_equal(s.damaged, 1);
    world_close(&w);
}

/* Retention takes the oldest just when its files are read, and the job completes one more. */
static world *retiring;
static ck_status open_while_it_retires(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    world *w = retiring;
    if (w && strstr(path, "/checkpoint-1.snap")) {
        char manifest[400];
        retiring = NULL;
        snprintf(manifest, sizeof manifest, "%s/checkpoint-1.json", w->dir);
        assert_int_equal(ck_fs_system()->unlink(ck_fs_system(), manifest, err), CK_OK);
        assert_int_equal(ck_fs_system()->unlink(ck_fs_system(), path, err), CK_OK);
        take(w, 3, CK_BARRIER_PERIODIC);
    }
    return ck_fs_system()->open(fs, path, mode, out, err);
}

static void verified_while_a_job_runs(void **state) {
    (void)state;
    world w;
    seen s;
    world_open(&w);
    take(&w, 1, CK_BARRIER_SAVEPOINT);
    take(&w, 2, CK_BARRIER_SAVEPOINT);
    ck_fs fs = *ck_fs_system();
    fs.open = open_while_it_retires;
    retiring = &w;
    w.t.proc.fs = &fs;
    assert_int_equal(verify(&w, w.dir, 0, &s), CK_OK);
    w.t.proc.fs = ck_fs_system();
    assert_null(retiring);
    assert_int_equal(s.damaged, 0);
    assert_int_equal(s.whole, 2 * 3);
    assert_int_equal(verify(&w, w.dir, 1, &s), CK_NOTFOUND);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_elsewhere),
        cmocka_unit_test(another_jobs_place_is_refused),
        cmocka_unit_test(export_after_any_failure),
        cmocka_unit_test(disposed_of),
        cmocka_unit_test(a_damaged_one_disposed_of),
        cmocka_unit_test(disposed_of_while_the_job_ends),
        cmocka_unit_test(damage_has_a_name),
        cmocka_unit_test(verified_while_a_job_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
