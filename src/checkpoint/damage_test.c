/* Every byte of a small base, delta, changelog segment, materialisation and manifest flipped, and every truncation: a
 * restore names the file and refuses, or reads what was written. */
#include "checkpoint/manifest_int.h"
#include "checkpoint/sample_int.h"

enum { FEW_KEYS = 9 };

typedef struct world {
    ck_test_proc t;
    ck_simfs *sim; /* in memory: tens of thousands of files are written */
    sample_job j;
    ck_checkpoint_dir *d;
    ck_arena a;
} world;

static void count(world *w, uint32_t key, int64_t by) { assert_int_equal(sample_count(&w->j, &key, 1, by), CK_OK); }

static void world_open(world *w, ck_changelog_config changelog) {
    *w = (world){0};
    ck_error err = CK_ERROR_INIT;
    ck_test_proc_init(&w->t);
    assert_int_equal(ck_simfs_new(&w->sim, 1), CK_OK);
    w->t.proc.fs = ck_simfs_base(w->sim);
    OK(sample_dir(&w->t.proc, "/ck", false, &w->d, &err));
    sample_open(&w->j, &w->t.proc, ck_checkpoint_dir_path(w->d), 1);
    w->j.changelog = changelog;
    OK(sample_start(&w->j));
    ck_arena_init(&w->a, w->j.mem, SIZE_MAX);
    for (uint32_t k = 0; k < FEW_KEYS; k++) assert_int_equal(sample_count(&w->j, &k, 1, (int64_t)k + 1), CK_OK);
    OK(sample_checkpoint(&w->j, w->d, 1, CK_BARRIER_PERIODIC, &err));
    count(w, 3, 100);
    OK(sample_checkpoint(&w->j, w->d, 2, CK_BARRIER_PERIODIC, &err));
}

static void world_close(world *w) {
    sample_close(&w->j);
    ck_arena_destroy(&w->a);
    ck_checkpoint_dir_close(w->d);
    ck_simfs_free(w->sim);
    ck_test_proc_destroy(&w->t);
}

static ck_status restore(world *w, uint64_t id, sample_job *out, ck_error *err) {
    ck_status s = sample_restore(out, w->d, id, &w->t.proc, 2, err);
    out->model = w->j.model;
    return s;
}

static ck_view content(world *w, const char *path) {
    ck_error err = CK_ERROR_INIT;
    ck_view text;
    OK(ck_fs_read_all(&w->t.proc, path, 1 << 20, &w->a, &text, &err));
    return text;
}

static void replace(world *w, const char *path, ck_view text) {
    ck_error err = CK_ERROR_INIT;
    OK(ck_durable_replace_bytes(&w->t.proc, path, text, &err));
}

/* The n-th damage of good: a bit flipped, then a cut. false: there is no further one. */
static bool damage(world *w, ck_view good, size_t n, ck_view *bad) {
    if (n >= 2 * good.n) return false;
    if (n >= good.n) {
        *bad = (ck_view){good.p, n - good.n};
        return true;
    }
    char *bytes = ck_arena_strndup(&w->a, good.p, good.n);
    assert_non_null(bytes);
    bytes[n] = (char)(bytes[n] ^ (1 << (n % 8)));
    *bad = (ck_view){bytes, good.n};
    return true;
}

static void each_damage_is_refused(world *w, uint64_t id, const char *name) {
    char path[200];
    snprintf(path, sizeof path, "/ck/%llu/0/%s", (unsigned long long)SAMPLE_VERTEX, name);
    ck_view good = content(w, path), bad;
    for (size_t n = 0;; n++) {
        ck_arena_mark mark = ck_arena_mark_now(&w->a);
        if (!damage(w, good, n, &bad)) break;
        replace(w, path, bad);
        sample_job j;
        ck_error err = CK_ERROR_INIT;
        ck_status s = restore(w, id, &j, &err);
        if (s != CK_CORRUPT || !strstr(err.msg, name))
            fail_msg("%s, damage %zu: %s %s", name, n, ck_status_name(s), err.msg);
        sample_close(&j);
        ck_arena_reset_to(&w->a, mark);
    }
    replace(w, path, good);
}

static void snapshots(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    sample_job j;
    world_open(&w, (ck_changelog_config){0});
    each_damage_is_refused(&w, 2, "checkpoint-1.snap");
    each_damage_is_refused(&w, 2, "delta-2.snap");
    OK(restore(&w, 2, &j, &err));
    sample_check(&j);
    sample_close(&j);
    world_close(&w);
}

static void changelogs(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    sample_job j;
    world_open(&w, (ck_changelog_config){CK_MATERIALISE_INSIDE, 8});
    each_damage_is_refused(&w, 2, "changelog-1.snap");
    each_damage_is_refused(&w, 2, "changelog-2.snap");
    OK(restore(&w, 2, &j, &err));
    sample_check(&j);
    sample_close(&j);
    world_close(&w);
}

static void external_materialisations(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    sample_job j;
    world_open(&w, (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 1});
    count(&w, 5, 1);
    OK(sample_checkpoint(&w.j, w.d, 3, CK_BARRIER_PERIODIC, &err));
    assert_true(ck_materialisation_is_begun(w.j.s[0].snapshots));
    ck_materialisation_start(w.j.s[0].snapshots);
    ck_materialisation_end(w.j.s[0].snapshots, ck_materialisation_run(w.j.s[0].snapshots, &err));
    count(&w, 6, 1);
    OK(sample_checkpoint(&w.j, w.d, 4, CK_BARRIER_PERIODIC, &err));
    each_damage_is_refused(&w, 4, "materialized/3.snap");
    each_damage_is_refused(&w, 4, "changelog-4.snap");
    OK(restore(&w, 4, &j, &err));
    sample_check(&j);
    sample_close(&j);
    world_close(&w);
}

static void manifests(void **state) {
    (void)state;
    world w;
    world_open(&w, (ck_changelog_config){0});
    const char *path = "/ck/checkpoint-2.json";
    ck_view good = content(&w, path), bad;
    size_t refused = 0, as_written = 0;
    for (size_t n = 0;; n++) {
        ck_arena_mark mark = ck_arena_mark_now(&w.a);
        if (!damage(&w, good, n, &bad)) break;
        replace(&w, path, bad);
        ck_error err = CK_ERROR_INIT;
        ck_manifest *m;
        ck_bytes again;
        ck_bytes_init(&again, w.j.mem, SIZE_MAX);
        ck_status s = ck_checkpoint_dir_read(w.d, 2, &w.a, &m, &err);
        if (s == CK_OK) {
            assert_int_equal(ck_manifest_encode(m, &again), CK_OK);
            if (!ck_view_eq(ck_bytes_as_view(&again), good))
                fail_msg("damage %zu is believed: %.*s", n, (int)bad.n, bad.p);
            as_written++;
        } else {
            assert_true(s == CK_CORRUPT || s == CK_REFUSED);
            assert_non_null(strstr(err.msg, "checkpoint-2.json"));
            refused++;
        }
        ck_bytes_destroy(&again);
        ck_arena_reset_to(&w.a, mark);
    }
    assert_true(as_written < 20 && refused > good.n); /* the member's name, the last line's end */
    world_close(&w);
}

/* What an older version wrote has no checksum and is read; one that says something else is not. */
static void checksum_of_a_manifest(void **state) {
    (void)state;
    world w;
    world_open(&w, (ck_changelog_config){0});
    const char *path = "/ck/checkpoint-2.json";
    ck_view good = content(&w, path);
    ck_manifest *m;
    ck_error err = CK_ERROR_INIT;
    char *text = ck_arena_printf(&w.a, "%.*s%40s", (int)good.n, good.p, ""), *tail = text; /* with room */
    for (char *at = text; (at = strstr(at, ",\"crc32c\":")); at++) tail = at;
    const char *const tails[] = {
        "}", "}\n", ",\"crc32c\":0}", ",\"crc32c\":\"x\"}", ",\"crc32c\":-1}", ",\"crc32c\":4294967296}"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(tails); i++) {
        snprintf(tail, strlen(tails[i]) + 1, "%s", tails[i]);
        replace(&w, path, ck_view_of(text));
        assert_int_equal(ck_checkpoint_dir_read(w.d, 2, &w.a, &m, &err), i < 2 ? CK_OK : CK_CORRUPT);
    }
    assert_non_null(strstr(err.msg, "checksum"));
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots),
        cmocka_unit_test(changelogs),
        cmocka_unit_test(external_materialisations),
        cmocka_unit_test(manifests),
        cmocka_unit_test(checksum_of_a_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
