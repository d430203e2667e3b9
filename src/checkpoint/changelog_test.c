/* Changelog backends against a model: segments, materialisations inside and beside the checkpoints, written at any time
 * and given up at any time, checkpoints that fail in between, retention, restores at any parallelism. */
#include "checkpoint/sample_int.h"

#include "base/hash.h"

#include <errno.h>

typedef struct world {
    ck_test_proc t;
    ck_simfs *sim;
    ck_checkpoint_dir *d;
    sample_job j;
    uint64_t x; /* of the dice */
} world;

static uint32_t below(world *w, uint32_t n) { return (uint32_t)((w->x = ck_mix64(w->x + 0x9E3779B97F4A7C15ULL)) % n); }

static void world_open(world *w, uint64_t seed, uint32_t parallelism, ck_changelog_config changelog) {
    *w = (world){.x = seed};
    ck_error err = CK_ERROR_INIT;
    ck_test_proc_init(&w->t);
    assert_int_equal(ck_simfs_new(&w->sim, seed), CK_OK);
    w->t.proc.fs = ck_simfs_base(w->sim);
    OK(sample_dir(&w->t.proc, "/ck", false, &w->d, &err));
    sample_open(&w->j, &w->t.proc, ck_checkpoint_dir_path(w->d), parallelism);
    w->j.changelog = changelog;
    OK(sample_start(&w->j));
}

static void world_close(world *w) {
    sample_close(&w->j);
    ck_checkpoint_dir_close(w->d);
    ck_simfs_free(w->sim);
    ck_test_proc_destroy(&w->t);
}

static void change(world *w, uint32_t times) {
    for (uint32_t i = 0; i < times; i++) {
        uint32_t key = below(w, SAMPLE_KEYS + 1);
        if (below(w, 4) == 0)
            sample_erase(&w->j, key);
        else
            assert_int_equal(sample_count(&w->j, &key, 1, 1), CK_OK);
    }
}

static ck_manifest *manifest(world *w, uint64_t id, ck_arena *a) {
    ck_error err = CK_ERROR_INIT;
    ck_manifest *m;
    ck_arena_init(a, w->j.mem, SIZE_MAX);
    OK(ck_checkpoint_dir_read(w->d, id, a, &m, &err));
    return m;
}

static uint32_t kinds_of(world *w, uint64_t id, ck_file_kind kind) {
    ck_arena a;
    const ck_manifest *m = manifest(w, id, &a);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->file_count; i++) n += m->files[i].kind == kind;
    ck_arena_destroy(&a);
    return n;
}

static void checkpoint(world *w, uint64_t id) {
    ck_error err = CK_ERROR_INIT;
    OK(sample_checkpoint(&w->j, w->d, id, CK_BARRIER_PERIODIC, &err));
    OK(ck_checkpoint_dir_mark_committed(w->d, id, &err));
    OK(ck_checkpoint_dir_retain(w->d, 1, &err));
}

static void restores(world *w, uint64_t id, uint32_t parallelism) {
    ck_error err = CK_ERROR_INIT;
    sample_job again;
    OK(sample_restore(&again, w->d, id, &w->t.proc, parallelism, &err));
    again.model = w->j.model;
    sample_check(&again);
    sample_close(&again);
}

static void materialise(world *w, uint32_t p) {
    ck_error err = CK_ERROR_INIT;
    ck_subtask_snapshots *s = w->j.s[p].snapshots;
    assert_true(ck_materialisation_is_begun(s));
    ck_materialisation_start(s);
    ck_status st = ck_materialisation_run(s, &err);
    if (st != CK_OK) fail_msg("%s", err.msg);
    ck_materialisation_end(s, st);
}

/* ---- the shapes ---- */

static void inside_every_fourth(void **state) {
    (void)state;
    world w;
    world_open(&w, 1, 1, (ck_changelog_config){CK_MATERIALISE_INSIDE, 4});
    change(&w, 2000);
    uint32_t most = 0;
    for (uint64_t id = 1; id <= 40; id++) {
        change(&w, 3);
        checkpoint(&w, id);
        uint32_t files = kinds_of(&w, id, CK_FILE_CHANGELOG);
        most = files > most ? files : most;
        assert_int_equal(files, 1 + (id - 1) % 5); /* all rows and four segments */
        assert_int_equal(kinds_of(&w, id, CK_FILE_BASE) + kinds_of(&w, id, CK_FILE_DELTA), 0);
        restores(&w, id, 1 + (uint32_t)id % 5);
    }
    assert_int_equal(most, 5);
    world_close(&w);
}

/* Written while three more checkpoints are taken; the next one stands on it and on the segments since its mark. */
static void external_beside_the_checkpoints(void **state) {
    (void)state;
    world w;
    world_open(&w, 2, 1, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 4});
    change(&w, 2000);
    for (uint64_t id = 1; id <= 9; id++) {
        change(&w, 3);
        checkpoint(&w, id);
        assert_int_equal(ck_materialisation_is_begun(w.j.s[0].snapshots), id >= 6);
        assert_int_equal(kinds_of(&w, id, CK_FILE_CHANGELOG), id);
    }
    materialise(&w, 0);
    change(&w, 3);
    checkpoint(&w, 10);
    ck_arena a;
    const ck_manifest *m = manifest(&w, 10, &a);
    assert_int_equal(m->file_count, 5); /* the materialisation at 6, and 7 to 10 */
    assert_true(m->files[0].kind == CK_FILE_MATERIALIZED && strstr(m->files[0].path, "/0/materialized/6.snap"));
    assert_non_null(strstr(m->files[0].base, "/0/changelog-6.snap"));
    assert_non_null(strstr(m->files[1].path, "/0/changelog-7.snap"));
    assert_string_equal(m->files[1].base, m->files[0].base);
    ck_arena_destroy(&a);
    for (uint32_t p = 1; p <= 4; p++) restores(&w, 10, p);
    world_close(&w);
}

static void nothing_changed_writes_nothing(void **state) {
    (void)state;
    world w;
    world_open(&w, 3, 1, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 1});
    change(&w, 2000);
    for (uint64_t id = 1; id <= 3; id++) {
        change(&w, 3);
        checkpoint(&w, id);
    }
    materialise(&w, 0);
    checkpoint(&w, 4); /* the same files: a manifest never names a materialisation that its last segment does not */
    assert_int_equal(kinds_of(&w, 4, CK_FILE_MATERIALIZED), 0);
    restores(&w, 4, 2);
    change(&w, 1);
    checkpoint(&w, 5);
    assert_int_equal(kinds_of(&w, 5, CK_FILE_MATERIALIZED), 1);
    restores(&w, 5, 3);
    world_close(&w);
}

/* A key that came and went around an aborted checkpoint is in no delta: its materialisation is of no use. */
static void of_an_aborted_checkpoint(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    const uint32_t key = 7;
    world_open(&w, 4, 1, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 1});
    for (uint32_t k = 20; k < 400; k++) assert_int_equal(sample_count(&w.j, &k, 1, 1), CK_OK);
    checkpoint(&w, 1);
    change(&w, 1);
    checkpoint(&w, 2);
    for (int written = 0; written < 2; written++) {
        uint64_t id = 3 + 3 * (uint64_t)written;
        assert_int_equal(sample_count(&w.j, &key, 1, 1), CK_OK);
        ck_subtask_snapshot *snap;
        ck_subtask_files *files;
        ck_subtask_snapshots *s = w.j.s[0].snapshots;
        OK(ck_subtask_snapshot_begin(s, id, CK_BARRIER_PERIODIC, &snap, &err));
        assert_true(ck_materialisation_is_begun(s));
        OK(ck_subtask_snapshot_run(snap, &files, &err));
        ck_subtask_snapshot_end(s, snap);
        ck_subtask_files_free(files);
        if (written) materialise(&w, 0);
        ck_subtask_snapshots_aborted(s, id);
        assert_false(ck_materialisation_is_begun(s));
        sample_erase(&w.j, key);
        change(&w, 1);
        checkpoint(&w, id + 1);
        assert_int_equal(kinds_of(&w, id + 1, CK_FILE_MATERIALIZED), 0);
        restores(&w, id + 1, 2);
        ck_materialisation_end(s, CK_CANCELLED); /* the one begun with it */
        change(&w, 1);
        checkpoint(&w, id + 2);
        ck_materialisation_end(s, CK_CANCELLED);
    }
    world_close(&w);
}

/* Given up between the word that it is to be written and the writing. */
static void aborted_before_it_is_written(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_open(&w, 7, 1, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 1});
    change(&w, 2000);
    for (uint64_t id = 1; id <= 2; id++) {
        change(&w, 3);
        checkpoint(&w, id);
    }
    ck_subtask_snapshot *snap;
    ck_subtask_snapshots *s = w.j.s[0].snapshots;
    change(&w, 3);
    OK(ck_subtask_snapshot_begin(s, 3, CK_BARRIER_PERIODIC, &snap, &err));
    ck_subtask_snapshot_end(s, snap);
    ck_materialisation_start(s);
    ck_subtask_snapshots_aborted(s, 3);
    assert_int_equal(ck_materialisation_run(s, &err), CK_CANCELLED);
    ck_materialisation_end(s, CK_CANCELLED);
    change(&w, 3);
    checkpoint(&w, 4);
    restores(&w, 4, 2);
    world_close(&w);
}

static void a_savepoint_is_a_base(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_open(&w, 5, 2, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 3});
    change(&w, 2000);
    checkpoint(&w, 1);
    change(&w, 5);
    OK(sample_checkpoint(&w.j, w.d, 2, CK_BARRIER_SAVEPOINT, &err));
    assert_int_equal(kinds_of(&w, 2, CK_FILE_BASE), 2);
    sample_model then = w.j.model;
    for (uint64_t id = 3; id < 14; id++) {
        change(&w, 5);
        checkpoint(&w, id); /* segments on it, until it is passed by */
        restores(&w, id, 3);
        for (uint32_t p = 0; p < 2; p++)
            if (ck_materialisation_is_begun(w.j.s[p].snapshots)) materialise(&w, p);
    }
    assert_int_equal(kinds_of(&w, 13, CK_FILE_BASE), 0);
    sample_model now = w.j.model;
    w.j.model = then;
    restores(&w, 2, 3);
    w.j.model = now;
    world_close(&w);
}

/* ---- anything at any time ---- */

static void a_seed(uint64_t seed) {
    world w;
    ck_error err = CK_ERROR_INIT;
    ck_changelog_config changelog = {seed % 4 == 0 ? CK_MATERIALISE_INSIDE : CK_MATERIALISE_EXTERNAL,
                                     1 + (uint32_t)seed % 5};
    uint32_t parallelism = 1 + (uint32_t)seed % 3, external = 0;
    world_open(&w, seed, parallelism, changelog);
    change(&w, 1000);
    for (uint64_t id = 1; id <= 60; id++) {
        change(&w, below(&w, 30));
        if (below(&w, 6) == 0) { /* a full disk somewhere in it */
            ck_simfs_fail(w.sim, 1 + below(&w, 12), below(&w, 2) ? ENOSPC : EIO, false);
            ck_status s = sample_checkpoint(&w.j, w.d, id, CK_BARRIER_PERIODIC, &err);
            ck_simfs_fail(w.sim, 0, 0, false);
            if (s != CK_OK) continue;
        } else {
            OK(sample_checkpoint(&w.j, w.d, id, below(&w, 20) ? CK_BARRIER_PERIODIC : CK_BARRIER_SAVEPOINT, &err));
        }
        OK(ck_checkpoint_dir_mark_committed(w.d, id, &err));
        OK(ck_checkpoint_dir_retain(w.d, 1, &err));
        external += kinds_of(&w, id, CK_FILE_MATERIALIZED);
        restores(&w, id, 1 + below(&w, 7));
        for (uint32_t p = 0; p < parallelism; p++) {
            ck_subtask_snapshots *s = w.j.s[p].snapshots;
            if (!ck_materialisation_is_begun(s)) continue;
            switch (below(&w, 6)) {
            case 0: break; /* later */
            case 1: ck_materialisation_end(s, CK_CANCELLED); break;
            case 2: {
                ck_materialisation_start(s);
                ck_materialisation_give_up(s);
                ck_status st = ck_materialisation_run(s, &err);
                assert_int_equal(st, CK_CANCELLED);
                ck_materialisation_end(s, st);
                break;
            }
            default: materialise(&w, p);
            }
        }
    }
    assert_true(changelog.where == CK_MATERIALISE_INSIDE ? external == 0 : external > 0);
    world_close(&w);
}

static void anything_at_any_time(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) a_seed(seed);
}

/* ---- what does not fit together ---- */

static void refused(world *w, uint64_t id, void (*spoil)(ck_manifest *m), const char *says) {
    ck_error err = CK_ERROR_INIT;
    ck_arena a;
    ck_manifest *m = manifest(w, id, &a);
    sample_job again;
    ck_restore *r;
    spoil(m);
    sample_open(&again, &w->t.proc, w->j.dir, 1);
    OK(ck_restore_new(&w->t.proc, w->j.mem, w->j.dir, m, &r, &err));
    const ck_restore_as as = {.stored = SAMPLE_VERTEX};
    const ck_restore_target target = {again.s[0].store, &as, 1, 0, 1, again.s[0].range};
    OK(ck_restore_add(r, &target, &err));
    assert_int_equal(ck_restore_run(r, &err), CK_CORRUPT);
    if (!strstr(err.msg, says)) fail_msg("%s", err.msg);
    ck_restore_free(r);
    sample_close(&again);
    ck_arena_destroy(&a);
}

static void another_parent(ck_manifest *m) { m->files[1].base = "1/0/changelog-1.snap"; }
static void as_a_base(ck_manifest *m) { m->files[1].kind = CK_FILE_BASE; }
static void without_the_materialisation(ck_manifest *m) { m->files++, m->file_count--; }
static void without_the_newest(ck_manifest *m) {
    m->files[0].kind = CK_FILE_BASE;
    m->files[0].base = NULL;
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    world w;
    world_open(&w, 6, 1, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 1});
    change(&w, 2000);
    for (uint64_t id = 1; id <= 3; id++) {
        change(&w, 3);
        checkpoint(&w, id);
    }
    materialise(&w, 0);
    change(&w, 3);
    checkpoint(&w, 4);
    refused(&w, 4, another_parent, "it stands on");
    refused(&w, 4, as_a_base, "it is a delta, the manifest says otherwise");
    refused(&w, 4, without_the_materialisation, "names the materialisation");
    refused(&w, 4, without_the_newest, "names the materialisation");
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside_every_fourth),
        cmocka_unit_test(external_beside_the_checkpoints),
        cmocka_unit_test(nothing_changed_writes_nothing),
        cmocka_unit_test(of_an_aborted_checkpoint),
        cmocka_unit_test(aborted_before_it_is_written),
        cmocka_unit_test(a_savepoint_is_a_base),
        cmocka_unit_test(anything_at_any_time),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
