/* The checkpoint directory: whose it is, what it lists, publishing, retention, and all of it across crashes of a file
 * system that drops what was not synced. */
#include "checkpoint/sample_int.h"

#include "base/hash.h"

typedef struct world {
    ck_test_proc t;
    ck_simfs *sim;
    sample_job j;
    ck_checkpoint_dir *d;
} world;

static void world_real(world *w) {
    *w = (world){0};
    ck_error err = CK_ERROR_INIT;
    ck_test_proc_init(&w->t);
    OK(sample_dir(&w->t.proc, ck_test_dir(&w->t), false, &w->d, &err));
    sample_open(&w->j, &w->t.proc, ck_checkpoint_dir_path(w->d), 2);
    OK(sample_start(&w->j));
}

static void world_close(world *w) {
    sample_close(&w->j);
    ck_checkpoint_dir_close(w->d);
    ck_simfs_free(w->sim);
    ck_test_proc_destroy(&w->t);
}

static void reopen(world *w, bool fresh) {
    ck_error err = CK_ERROR_INIT;
    char path[128];
    snprintf(path, sizeof path, "%s", ck_checkpoint_dir_path(w->d));
    ck_checkpoint_dir_close(w->d);
    w->d = NULL;
    OK(sample_dir(&w->t.proc, path, fresh, &w->d, &err));
    w->j.dir = ck_checkpoint_dir_path(w->d);
    for (uint32_t p = 0; p < w->j.parallelism; p++) ck_subtask_snapshots_free(w->j.s[p].snapshots);
    OK(sample_start(&w->j));
}

static void take(world *w, uint64_t id, ck_barrier_kind kind, bool commit) {
    ck_error err = CK_ERROR_INIT;
    const uint32_t key = (uint32_t)(id % SAMPLE_KEYS);
    assert_int_equal(sample_count(&w->j, &key, 1, 1), CK_OK);
    OK(sample_checkpoint(&w->j, w->d, id, kind, &err));
    if (commit) OK(ck_checkpoint_dir_mark_committed(w->d, id, &err));
}

static bool there(world *w, const char *relative) {
    char path[300];
    ck_stat st;
    snprintf(path, sizeof path, "%s/%s", ck_checkpoint_dir_path(w->d), relative);
    return w->t.proc.fs->stat(w->t.proc.fs, path, &st, NULL) == CK_OK;
}

static void put(world *w, const char *relative, const char *text) {
    ck_error err = CK_ERROR_INIT;
    char path[300];
    snprintf(path, sizeof path, "%s/%s", ck_checkpoint_dir_path(w->d), relative);
    OK(ck_durable_replace_bytes(&w->t.proc, path, ck_view_of(text), &err));
}

static void one_owner(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_real(&w);
    ck_checkpoint_dir *other;
    assert_int_equal(sample_dir(&w.t.proc, ck_test_dir(&w.t), false, &other, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "another run"));
    assert_non_null(strstr(err.msg, "process"));
    uint64_t attempt = ck_checkpoint_dir_attempt(w.d);
    char uuid[40];
    snprintf(uuid, sizeof uuid, "%s", ck_checkpoint_dir_job_uuid(w.d));
    assert_int_equal(strlen(uuid), 36);
    reopen(&w, false);
    assert_string_equal(ck_checkpoint_dir_job_uuid(w.d), uuid);
    assert_int_equal(ck_checkpoint_dir_attempt(w.d), attempt + 1);
    const ck_checkpoint_dir_config read = {
        .proc = &w.t.proc, .mem = w.j.mem, .path = ck_test_dir(&w.t), .read_only = true};
    OK(ck_checkpoint_dir_open(&read, &other, &err)); /* tools may look */
    assert_string_equal(ck_checkpoint_dir_job_name(other), "orders");
    ck_checkpoint_dir_close(other);
    ck_checkpoint_dir_close(w.d);
    const ck_checkpoint_dir_config named = {
        .proc = &w.t.proc, .mem = w.j.mem, .path = ck_test_dir(&w.t), .job_name = "returns"};
    w.d = NULL;
    assert_int_equal(ck_checkpoint_dir_open(&named, &w.d, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "'orders'"));
    assert_null(w.d);
    const ck_checkpoint_dir_config nowhere = {
        .proc = &w.t.proc, .mem = w.j.mem, .path = "/tmp/clink-no-such-directory", .read_only = true};
    assert_int_equal(ck_checkpoint_dir_open(&nowhere, &other, &err), CK_NOTFOUND);
    world_close(&w);
}

static void an_id_above_which_there_is_none(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_real(&w);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    put(&w, "checkpoint-9223372036854775807.committed", "{}");
    ck_checkpoint_dir_close(w.d);
    w.d = NULL;
    assert_int_equal(sample_dir(&w.t.proc, ck_test_dir(&w.t), false, &w.d, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "9223372036854775807"));
    assert_null(w.d);
    world_close(&w);
}

static void ids_grow_above_everything_seen(void **state) {
    (void)state;
    world w;
    world_real(&w);
    assert_int_equal(ck_checkpoint_dir_next_id(w.d), 1);
    take(&w, 4, CK_BARRIER_PERIODIC, true);
    assert_int_equal(ck_checkpoint_dir_next_id(w.d), 5);
    put(&w, "checkpoint-9.committed", "{}");
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_next_id(w.d), 10);
    char name[200];
    snprintf(name, sizeof name, "%llu/0/.tmp-delta-21.snap-0123456789abcdef", (unsigned long long)SAMPLE_VERTEX);
    put(&w, name, "half a file");
    put(&w, "checkpoint-15.pending-3", "{}");
    put(&w, ".tmp-checkpoint-17.json-0123456789abcdef", "{");
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_next_id(w.d), 22);
    assert_false(there(&w, name)); /* dead runs' temporary files go */
    assert_false(there(&w, ".tmp-checkpoint-17.json-0123456789abcdef"));
    reopen(&w, true); /* a fresh start too */
    assert_int_equal(ck_checkpoint_dir_next_id(w.d), 16);
    world_close(&w);
}

static void lists_and_reads(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_real(&w);
    ck_checkpoint_entry e, *list;
    uint32_t n;
    ck_arena a;
    ck_manifest *m;
    ck_arena_init(&a, w.j.mem, SIZE_MAX);
    assert_int_equal(ck_checkpoint_dir_newest(w.d, &e), CK_NOTFOUND);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    take(&w, 2, CK_BARRIER_SAVEPOINT, true);
    take(&w, 3, CK_BARRIER_FINAL, false);
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_newest(w.d, &e), CK_OK);
    assert_true(e.checkpoint == 3 && e.kind == CK_BARRIER_FINAL && !e.committed && e.own && !e.damage);
    OK(ck_checkpoint_dir_list(w.d, &a, &list, &n));
    assert_int_equal(n, 3);
    assert_true(list[0].committed && list[1].kind == CK_BARRIER_SAVEPOINT);
    OK(ck_checkpoint_dir_read(w.d, 2, &a, &m, &err));
    assert_string_equal(m->job_name, "orders");
    assert_string_equal(m->graph, "{\"name\":\"orders\",\"ops\":[]}");
    assert_int_equal(m->graph_hash, 0xabcdef);
    assert_int_equal(m->vertices[0].parallelism, 2);
    assert_int_equal(ck_checkpoint_dir_read(w.d, 7, &a, &m, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "1, 2, 3"));
    put(&w, "checkpoint-3.json", "{\"format\":1,");
    put(&w, "checkpoint-4.json", "{\"format\":9}");
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_newest(w.d, &e), CK_OK); /* damage is not passed over */
    assert_true(e.checkpoint == 4 && e.damage);
    assert_int_equal(ck_checkpoint_dir_read(w.d, 3, &a, &m, &err), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "checkpoint-3.json"));
    assert_int_equal(ck_checkpoint_dir_read(w.d, 4, &a, &m, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "newer"));
    ck_arena_destroy(&a);
    world_close(&w);
}

static void a_lost_job_file_is_made_again(void **state) {
    (void)state;
    world w;
    world_real(&w);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    char uuid[40], path[200];
    snprintf(uuid, sizeof uuid, "%s", ck_checkpoint_dir_job_uuid(w.d));
    snprintf(path, sizeof path, "%s/job.json", ck_checkpoint_dir_path(w.d));
    assert_int_equal(w.t.proc.fs->unlink(w.t.proc.fs, path, NULL), CK_OK);
    reopen(&w, false);
    assert_string_equal(ck_checkpoint_dir_job_uuid(w.d), uuid);
    world_close(&w);
}

/* Whatever byte of it is another one: with another UUID the job would begin anew, and write all its rows again. */
static void a_damaged_job_file_is_named(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    ck_arena a;
    ck_view good;
    char path[128], uuid[40], job[200];
    world_real(&w);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    snprintf(path, sizeof path, "%s", ck_checkpoint_dir_path(w.d));
    snprintf(uuid, sizeof uuid, "%s", ck_checkpoint_dir_job_uuid(w.d));
    snprintf(job, sizeof job, "%s/job.json", path);
    ck_arena_init(&a, w.j.mem, SIZE_MAX);
    OK(ck_fs_read_all(&w.t.proc, job, 4096, &a, &good, &err));
    ck_checkpoint_dir_close(w.d);
    for (size_t i = 0; i < good.n; i++) {
        char bad[4096];
        memcpy(bad, good.p, good.n);
        bad[i] ^= 1;
        OK(ck_durable_replace_bytes(&w.t.proc, job, (ck_view){bad, good.n}, &err));
        ck_status s = sample_dir(&w.t.proc, path, false, &w.d, &err);
        if (s == CK_OK) { /* what is damaged is the checksum's own name, or the line's end */
            assert_string_equal(ck_checkpoint_dir_job_uuid(w.d), uuid);
            ck_checkpoint_dir_close(w.d);
            continue;
        }
        assert_int_equal(s, CK_CORRUPT);
        assert_non_null(strstr(err.msg, "job.json"));
        ck_error_reset(&err);
    }
    /* The way out that its sentence names. */
    OK(w.t.proc.fs->unlink(w.t.proc.fs, job, &err));
    OK(sample_dir(&w.t.proc, path, false, &w.d, &err));
    assert_string_equal(ck_checkpoint_dir_job_uuid(w.d), uuid);
    ck_arena_destroy(&a);
    world_close(&w);
}

/* As builds of before wrote it: without a checksum. */
static void a_job_file_without_checksum_is_read(void **state) {
    (void)state;
    world w;
    char path[200], text[200], uuid[40];
    ck_error err = CK_ERROR_INIT;
    world_real(&w);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    snprintf(uuid, sizeof uuid, "%s", ck_checkpoint_dir_job_uuid(w.d));
    snprintf(path, sizeof path, "%s/job.json", ck_checkpoint_dir_path(w.d));
    int n = snprintf(text, sizeof text, "{\"format\":1,\"name\":\"%s\",\"uuid\":\"%s\"}\n",
                     ck_checkpoint_dir_job_name(w.d), uuid);
    OK(ck_durable_replace_bytes(&w.t.proc, path, (ck_view){text, (size_t)n}, &err));
    reopen(&w, false);
    assert_string_equal(ck_checkpoint_dir_job_uuid(w.d), uuid);
    world_close(&w);
}

static void publishing_is_exclusive(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_real(&w);
    take(&w, 1, CK_BARRIER_PERIODIC, false);
    ck_arena a;
    ck_manifest *m;
    ck_arena_init(&a, w.j.mem, SIZE_MAX);
    OK(ck_checkpoint_dir_read(w.d, 1, &a, &m, &err));
    OK(ck_checkpoint_dir_publish(w.d, m, &err)); /* our own reply was lost */
    m->completed_ms++;
    assert_int_equal(ck_checkpoint_dir_publish(w.d, m, &err), CK_EXISTS);
    assert_true(err.fatal);
    m->checkpoint = 2;
    m->files[0].bytes++;
    assert_int_equal(ck_checkpoint_dir_publish(w.d, m, &err), CK_CORRUPT); /* what it says must be true */
    assert_false(err.fatal);
    m->files[0].bytes--;
    m->files[0].path = "nowhere.snap";
    assert_int_equal(ck_checkpoint_dir_publish(w.d, m, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "nowhere.snap"));
    m->files[0].path = "../outside.snap";
    assert_int_equal(ck_checkpoint_dir_publish(w.d, m, &err), CK_CORRUPT);
    assert_false(there(&w, "checkpoint-2.json"));
    OK(ck_checkpoint_dir_mark_committed(w.d, 1, &err));
    OK(ck_checkpoint_dir_mark_committed(w.d, 1, &err));
    ck_arena_destroy(&a);
    world_close(&w);
}

static void retention_by_reachability(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    world_real(&w);
    for (uint32_t k = 0; k < SAMPLE_KEYS; k++) assert_int_equal(sample_count(&w.j, &k, 1, 1), CK_OK);
    for (uint64_t id = 1; id <= 9; id++) take(&w, id, id == 2 ? CK_BARRIER_SAVEPOINT : CK_BARRIER_PERIODIC, id != 4);
    char orphan[200], future[200], aborted[200];
    unsigned long long v = SAMPLE_VERTEX;
    snprintf(orphan, sizeof orphan, "%llu/1/delta-3.snap.bak", v);
    snprintf(aborted, sizeof aborted, "%llu/1/checkpoint-8.snap", v);
    snprintf(future, sizeof future, "%llu/1/checkpoint-12.snap", v);
    bool had_8 = there(&w, aborted);
    put(&w, orphan, "not ours");
    if (!had_8) put(&w, aborted, "of an aborted attempt");
    put(&w, future, "being written");
    OK(ck_checkpoint_dir_retain(w.d, 3, &err));
    static const bool kept[] = {0, 0, 1, 0, 1,
                                0, 0, 1, 1, 1}; /* the savepoint, the uncommitted one, the newest three */
    for (uint64_t id = 1; id <= 9; id++) {
        char name[40];
        snprintf(name, sizeof name, "checkpoint-%llu.json", (unsigned long long)id);
        assert_int_equal(there(&w, name), kept[id]);
        if (!kept[id]) continue;
        sample_job again;
        OK(sample_restore(&again, w.d, id, &w.t.proc, 3, &err)); /* and everything it names is there */
        sample_close(&again);
    }
    assert_true(there(&w, orphan) && there(&w, future));
    if (!had_8) assert_false(there(&w, aborted));
    OK(ck_checkpoint_dir_mark_committed(w.d, 4, &err));
    OK(ck_checkpoint_dir_retain(w.d, 1, &err));
    assert_false(there(&w, "checkpoint-4.json") || there(&w, "checkpoint-8.json"));
    assert_true(there(&w, "checkpoint-2.json") && there(&w, "checkpoint-9.json"));
    sample_job again;
    OK(sample_restore(&again, w.d, 2, &w.t.proc, 1, &err));
    sample_close(&again);
    put(&w, "checkpoint-7.json", "damaged"); /* who knows what it needs: data stays */
    put(&w, aborted, "of an aborted attempt");
    reopen(&w, false);
    take(&w, 20, CK_BARRIER_PERIODIC, true);
    OK(ck_checkpoint_dir_retain(w.d, 1, &err));
    assert_true(there(&w, aborted));
    world_close(&w);
}

/* A file system that publishes a manifest in the middle of retention: when it is asked for names, or to unlink. */
typedef struct meddler {
    ck_fs fs;
    world *w;
    ck_manifest *m; /* NULL: done */
    const char *at_unlink;
    ck_status published;
    ck_error err;
} meddler;
static meddler *meddling; /* the real file system hands no argument on */

static void meddle(void) {
    ck_manifest *m = meddling->m;
    meddling->m = NULL;
    if (m) meddling->published = ck_checkpoint_dir_publish(meddling->w->d, m, &meddling->err);
}
static ck_status meddler_list(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count,
                              ck_error *err) {
    if (!meddling->at_unlink) meddle();
    return ck_fs_system()->list(fs, path, arena, names, count, err);
}
static ck_status meddler_unlink(ck_fs *fs, const char *path, ck_error *err) {
    if (meddling->at_unlink && strstr(path, meddling->at_unlink)) meddle();
    return ck_fs_system()->unlink(fs, path, err);
}

/* Checkpoint 3 is published while retention walks, and stands on files of 1 that 2 has no use for: either they stay, or
 * it is refused. */
static void a_manifest_comes_while_retention_walks(void **state) {
    (void)state;
    for (int at_unlink = 0; at_unlink < 2; at_unlink++) {
        world w;
        ck_arena a;
        ck_error err = CK_ERROR_INIT;
        world_real(&w);
        ck_arena_init(&a, w.j.mem, 1 << 20);
        take(&w, 1, CK_BARRIER_PERIODIC, true);
        sample_model then = w.j.model;
        meddler x = {.fs = *ck_fs_system(), .w = &w, .at_unlink = at_unlink ? "/checkpoint-1.snap" : NULL};
        OK(ck_checkpoint_dir_read(w.d, 1, &a, &x.m, &err));
        x.m->checkpoint = 3;
        take(&w, 2, CK_BARRIER_SAVEPOINT, true);
        x.fs.list = meddler_list, x.fs.unlink = meddler_unlink;
        meddling = &x;
        w.t.proc.fs = &x.fs;
        OK(ck_checkpoint_dir_retain(w.d, 1, &err));
        w.t.proc.fs = ck_fs_system();
        assert_null(x.m);
        assert_false(there(&w, "checkpoint-1.json"));
        assert_int_equal(x.published, at_unlink ? CK_NOTFOUND : CK_OK);
        assert_true(there(&w, "checkpoint-3.json") == !at_unlink);
        sample_job again;
        if (at_unlink) assert_true(strstr(x.err.msg, "retention has removed") && !x.err.fatal);
        OK(sample_restore(&again, w.d, at_unlink ? 2 : 3, &w.t.proc, 3, &err));
        again.model = at_unlink ? w.j.model : then;
        sample_check(&again);
        sample_close(&again);
        ck_arena_destroy(&a);
        world_close(&w);
    }
}

/* Somebody takes a base away under a job that runs. */
static void what_is_gone_is_written_anew(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    char path[300];
    world_real(&w);
    for (uint32_t k = 0; k < SAMPLE_KEYS; k++) assert_int_equal(sample_count(&w.j, &k, 1, 1), CK_OK);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    take(&w, 2, CK_BARRIER_PERIODIC, true);
    snprintf(path, sizeof path, "%s/%llu/1/checkpoint-1.snap", ck_checkpoint_dir_path(w.d),
             (unsigned long long)SAMPLE_VERTEX);
    OK(w.t.proc.fs->unlink(w.t.proc.fs, path, &err));
    assert_int_equal(sample_checkpoint(&w.j, w.d, 3, CK_BARRIER_PERIODIC, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "names a file that cannot be seen"));
    ck_subtask_snapshots_anew(w.j.s[1].snapshots);
    take(&w, 4, CK_BARRIER_PERIODIC, true);
    take(&w, 5, CK_BARRIER_PERIODIC, true); /* and the next one stands on it */
    sample_job again;
    OK(sample_restore(&again, w.d, 5, &w.t.proc, 3, &err));
    again.model = w.j.model;
    sample_check(&again);
    sample_close(&again);
    world_close(&w);
}

static void a_fresh_start(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_entry e;
    world_real(&w);
    take(&w, 1, CK_BARRIER_PERIODIC, true);
    take(&w, 2, CK_BARRIER_SAVEPOINT, true);
    take(&w, 3, CK_BARRIER_PERIODIC, false);
    reopen(&w, true);
    assert_int_equal(ck_checkpoint_dir_newest(w.d, &e), CK_NOTFOUND); /* the old ones are another life's */
    assert_int_equal(ck_checkpoint_dir_next_id(w.d), 4);
    OK(ck_checkpoint_dir_retain(w.d, 3, &err));
    assert_true(there(&w, "checkpoint-1.json")); /* until the first of this one stands */
    take(&w, 4, CK_BARRIER_PERIODIC, true);
    OK(ck_checkpoint_dir_retain(w.d, 3, &err));
    assert_false(there(&w, "checkpoint-1.json") || there(&w, "checkpoint-3.json"));
    assert_true(there(&w, "checkpoint-2.json") && there(&w, "checkpoint-4.json"));
    world_close(&w);
}

static void forget_name(world *w, const char *relative) {
    ck_error err = CK_ERROR_INIT;
    char path[300];
    snprintf(path, sizeof path, "%s/%s", ck_checkpoint_dir_path(w->d), relative);
    OK(w->t.proc.fs->unlink(w->t.proc.fs, path, &err));
}

static void a_committed_manifest_that_is_gone(void **state) {
    (void)state;
    world w;
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_entry e;
    world_real(&w);
    for (uint64_t id = 1; id <= 4; id++) take(&w, id, CK_BARRIER_PERIODIC, id < 4);
    forget_name(&w, "checkpoint-2.json"); /* as a crash in the middle of retention leaves it: there are newer ones */
    forget_name(&w, "checkpoint-4.json"); /* nobody had committed it */
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 0);
    forget_name(&w, "checkpoint-3.json");
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 3);
    OK(ck_checkpoint_dir_newest(w.d, &e));
    assert_int_equal(e.checkpoint, 1);
    forget_name(&w, "checkpoint-1.json");
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 3); /* also where there is none at all */
    reopen(&w, true);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 0); /* another life's */
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 0);
    take(&w, 6, CK_BARRIER_PERIODIC, true);
    take(&w, 7, CK_BARRIER_PERIODIC, true);
    OK(ck_checkpoint_dir_abandon(w.d, 7, &err)); /* gone back behind, as was said then */
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 0);
    assert_true(there(&w, "checkpoint-7.committed"));
    world_close(&w);
}

static void restore_points(void **state) {
    (void)state;
    ck_budget b;
    ck_arena a;
    ck_error err = CK_ERROR_INIT;
    const char *dir;
    uint64_t id;
    ck_budget_init(&b, ck_heap_system(), 0);
    ck_arena_init(&a, (ck_mem){&b, CK_MEM_PLAN}, 1 << 16);
    OK(ck_restore_point_parse(&a, "latest", &dir, &id, &err));
    assert_true(!dir && id == 0);
    OK(ck_restore_point_parse(&a, "12", &dir, &id, &err));
    assert_true(!dir && id == 12);
    OK(ck_restore_point_parse(&a, "/tmp/x", &dir, &id, &err));
    assert_true(strcmp(dir, "/tmp/x") == 0 && id == 0);
    OK(ck_restore_point_parse(&a, "a:b/c:34", &dir, &id, &err));
    assert_true(strcmp(dir, "a:b/c") == 0 && id == 34);
    static const char *const bad[] = {"0", "dir:", ":3", "dir:x", "dir:0", "dir:007", "dir:99999999999999999999"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        assert_int_equal(ck_restore_point_parse(&a, bad[i], &dir, &id, &err), CK_INVALID);
    ck_arena_destroy(&a);
}

/* ---- crashes ---- */

static const ck_fault_point points[] = {
    CK_FAULT_DURABLE_AFTER_CREATE,  CK_FAULT_DURABLE_AFTER_WRITE,     CK_FAULT_DURABLE_AFTER_FSYNC,
    CK_FAULT_DURABLE_AFTER_PUBLISH, CK_FAULT_DURABLE_AFTER_DIRSYNC,   CK_FAULT_COMMITTED_BEFORE_MARK,
    CK_FAULT_COMMITTED_AFTER_MARK,  CK_FAULT_RETENTION_BEFORE_DELETE,
};

/* Work, checkpoints and retention until the power goes at some point; the newest checkpoint that was reported complete
 * must be there, whole, and nothing newer than the one under way may be. */
static void crash_once(uint64_t seed) {
    world w = {0};
    ck_error err = CK_ERROR_INIT;
    ck_test_proc_init(&w.t);
    ck_seeded_random_init(&w.t.random, seed);
    assert_int_equal(ck_simfs_new(&w.sim, seed), CK_OK);
    w.t.proc.fs = ck_simfs_base(w.sim);
    OK(sample_dir(&w.t.proc, "/ckpt", false, &w.d, &err));
    sample_open(&w.j, &w.t.proc, ck_checkpoint_dir_path(w.d), 2);
    OK(sample_start(&w.j));
    ck_faults_arm(&w.t.faults, points[seed % CK_ARRAY_COUNT(points)], 1 + seed / CK_ARRAY_COUNT(points) % 29,
                  CK_FAULT_CRASH);
    sample_model complete = {{0}}, underway = {{0}};
    uint64_t done = 0, committed = 0, id = 0;
    ck_status s = CK_OK;
    uint64_t x = seed;
    while (s == CK_OK && id < 12) {
        for (int i = 0; i < 20; i++) {
            x = ck_mix64(x + 1);
            const uint32_t key = (uint32_t)(x % SAMPLE_KEYS);
            assert_int_equal(sample_count(&w.j, &key, 1, 1), CK_OK);
        }
        id = ck_checkpoint_dir_next_id(w.d);
        underway = w.j.model;
        s = sample_checkpoint(&w.j, w.d, id, CK_BARRIER_PERIODIC, &err);
        if (s == CK_OK) done = id, complete = underway;
        if (s == CK_OK) s = ck_checkpoint_dir_mark_committed(w.d, id, &err);
        if (s == CK_OK) committed = id, s = ck_checkpoint_dir_retain(w.d, 2, &err);
    }
    assert_true(s == CK_OK || s == CK_CANCELLED);
    ck_simfs_crash(w.sim);
    ck_faults_init(&w.t.faults);
    sample_close(&w.j);
    ck_checkpoint_dir_close(w.d);
    w.d = NULL;
    OK(sample_dir(&w.t.proc, "/ckpt", false, &w.d, &err));
    ck_checkpoint_entry e = {0};
    ck_status found = ck_checkpoint_dir_newest(w.d, &e);
    assert_int_equal(ck_checkpoint_dir_lost(w.d), 0); /* no power cut looks like a file somebody took away */
    assert_true(done == 0 || found == CK_OK);
    if (found == CK_OK) {
        assert_null(e.damage);
        assert_true(e.checkpoint == done || e.checkpoint == id); /* the one under way may have made it */
        assert_true(e.committed || committed < e.checkpoint);
        sample_job again;
        OK(sample_restore(&again, w.d, e.checkpoint, &w.t.proc, 3, &err));
        again.model = e.checkpoint == done ? complete : underway;
        sample_check(&again);
        sample_close(&again);
    }
    assert_true(ck_checkpoint_dir_next_id(w.d) > e.checkpoint);
    w.j.parallelism = 0;
    world_close(&w);
}

static void crashes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 240; seed++) crash_once(seed);
}

/* ENOSPC and EIO at each write and fsync: the checkpoint fails or is complete, and the next one is whole. */
static void full_and_failing_disks(void **state) {
    (void)state;
    for (uint64_t run = 2; run < 80; run++) {
        uint64_t nth = run / 2;
        world w = {0};
        ck_error err = CK_ERROR_INIT;
        ck_test_proc_init(&w.t);
        assert_int_equal(ck_simfs_new(&w.sim, nth), CK_OK);
        w.t.proc.fs = ck_simfs_base(w.sim);
        OK(sample_dir(&w.t.proc, "/ckpt", false, &w.d, &err));
        sample_open(&w.j, &w.t.proc, ck_checkpoint_dir_path(w.d), 2);
        OK(sample_start(&w.j));
        take(&w, 1, CK_BARRIER_PERIODIC, true);
        ck_simfs_fail(w.sim, nth, run % 2 ? 28 : 5, true);
        const uint32_t key = 4;
        assert_int_equal(sample_count(&w.j, &key, 1, 1), CK_OK);
        ck_status s = sample_checkpoint(&w.j, w.d, 2, CK_BARRIER_PERIODIC, &err);
        assert_true(s == CK_OK || s == CK_IO);
        if (s == CK_IO) assert_true(err.msg[0] && !err.fatal);
        ck_simfs_fail(w.sim, 0, 0, true);
        take(&w, 3, CK_BARRIER_PERIODIC, true);
        OK(ck_checkpoint_dir_retain(w.d, 1, &err));
        sample_job again;
        OK(sample_restore(&again, w.d, 3, &w.t.proc, 1, &err));
        again.model = w.j.model;
        sample_check(&again);
        sample_close(&again);
        world_close(&w);
        if (s == CK_OK && nth > 20) break;
    }
}

/* A directory whose sync failed keeps none of what was to be synced, whatever a later sync says: what is reported
 * complete is there after the power has gone. */
static bool survives_a_failed_sync(uint64_t nth, uint64_t seed) {
    world w = {0};
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_entry e;
    ck_test_proc_init(&w.t);
    assert_int_equal(ck_simfs_new(&w.sim, seed), CK_OK);
    w.t.proc.fs = ck_simfs_base(w.sim);
    OK(sample_dir(&w.t.proc, "/ckpt", false, &w.d, &err));
    sample_open(&w.j, &w.t.proc, ck_checkpoint_dir_path(w.d), 2);
    OK(sample_start(&w.j));
    ck_simfs_fail(w.sim, nth, 5, true);
    bool complete = sample_checkpoint(&w.j, w.d, 1, CK_BARRIER_PERIODIC, &err) == CK_OK;
    bool marked = complete && ck_checkpoint_dir_mark_committed(w.d, 1, &err) == CK_OK;
    ck_simfs_crash(w.sim);
    ck_simfs_fail(w.sim, 0, 0, true);
    sample_close(&w.j);
    ck_checkpoint_dir_close(w.d);
    w.d = NULL;
    ck_error_reset(&err);
    OK(sample_dir(&w.t.proc, "/ckpt", false, &w.d, &err));
    if (complete) {
        assert_int_equal(ck_checkpoint_dir_newest(w.d, &e), CK_OK);
        assert_true(e.checkpoint == 1 && !e.damage && (e.committed || !marked));
    }
    w.j.parallelism = 0;
    world_close(&w);
    return complete && marked;
}

static void a_failed_sync_is_a_failed_checkpoint(void **state) {
    (void)state;
    bool beyond = false;
    for (uint64_t nth = 1; nth <= 40; nth++) {
        bool done = survives_a_failed_sync(nth, nth);
        assert_true(done || !beyond); /* nothing that failed was passed over: after the last of them, all is well */
        beyond |= done;
    }
    assert_true(beyond);
}

/* Whoever wrote the last line of job.lock died at it: the next attempt is its own line and grows. */
static void a_torn_line_of_the_lock(void **state) {
    (void)state;
    world w;
    char path[300], text[4096];
    world_real(&w);
    snprintf(path, sizeof path, "%s/job.lock", ck_checkpoint_dir_path(w.d));
    uint64_t before = ck_checkpoint_dir_attempt(w.d);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs("{\"attempt\":", f);
    fclose(f);
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_attempt(w.d), before + 1);
    reopen(&w, false);
    assert_int_equal(ck_checkpoint_dir_attempt(w.d), before + 2);
    f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    assert_non_null(strstr(text, "{\"attempt\":\n{\"attempt\":2,"));
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owner),
        cmocka_unit_test(ids_grow_above_everything_seen),
        cmocka_unit_test(an_id_above_which_there_is_none),
        cmocka_unit_test(lists_and_reads),
        cmocka_unit_test(a_lost_job_file_is_made_again),
        cmocka_unit_test(a_damaged_job_file_is_named),
        cmocka_unit_test(a_job_file_without_checksum_is_read),
        cmocka_unit_test(publishing_is_exclusive),
        cmocka_unit_test(retention_by_reachability),
        cmocka_unit_test(a_manifest_comes_while_retention_walks),
        cmocka_unit_test(what_is_gone_is_written_anew),
        cmocka_unit_test(a_fresh_start),
        cmocka_unit_test(a_committed_manifest_that_is_gone),
        cmocka_unit_test(restore_points),
        cmocka_unit_test(crashes),
        cmocka_unit_test(full_and_failing_disks),
        cmocka_unit_test(a_failed_sync_is_a_failed_checkpoint),
        cmocka_unit_test(a_torn_line_of_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
