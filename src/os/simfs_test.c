#include "os/simfs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/durable.h"
#include "os/test_proc.h"
#include "os/thread.h"

enum { SEEDS = 300 };

typedef struct sim_proc {
    ck_test_proc t;
    ck_simfs *sim;
    ck_fs *fs;
} sim_proc;

static void init_sim(sim_proc *p, uint64_t seed) {
    ck_test_proc_init(&p->t);
    ck_seeded_random_init(&p->t.random, seed);
    assert_int_equal(ck_simfs_new(&p->sim, seed), CK_OK);
    p->fs = p->t.proc.fs = ck_simfs_base(p->sim);
}
static void destroy_sim(sim_proc *p) {
    ck_simfs_free(p->sim);
    ck_test_proc_destroy(&p->t);
}

static ck_file *open_as(sim_proc *p, const char *path, ck_open_mode mode) {
    ck_file *f;
    assert_int_equal(p->fs->open(p->fs, path, mode, &f, NULL), CK_OK);
    return f;
}
static void put(sim_proc *p, const char *path, const char *text, bool synced) {
    ck_file *f = open_as(p, path, CK_OPEN_TRUNCATE);
    assert_int_equal(p->fs->write(f, text, strlen(text), NULL), CK_OK);
    if (synced) assert_int_equal(p->fs->fsync(f, NULL), CK_OK);
    p->fs->close(f);
}
static bool there(sim_proc *p, const char *path) {
    ck_stat st;
    ck_status s = p->fs->stat(p->fs, path, &st, NULL);
    assert_true(s == CK_OK || s == CK_NOTFOUND);
    return s == CK_OK;
}
/* The content in a buffer; -1 when there is no such file. */
static int content(sim_proc *p, const char *path, char *out, size_t bytes_max) {
    ck_file *f;
    size_t n;
    if (p->fs->open(p->fs, path, CK_OPEN_READ, &f, NULL) != CK_OK) return -1;
    assert_int_equal(p->fs->pread(f, out, bytes_max, 0, &n, NULL), CK_OK);
    p->fs->close(f);
    return (int)n;
}
static bool holds(sim_proc *p, const char *path, const char *text) {
    char buffer[64];
    int n = content(p, path, buffer, sizeof buffer);
    return n == (int)strlen(text) && memcmp(buffer, text, strlen(text)) == 0;
}
#define OK(call) assert_int_equal((call), CK_OK)

/* ---- without a crash it is a file system ---- */

static void test_behaves_as_the_real_one(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    ck_fs *fs = p.fs;
    ck_file *f, *g;
    ck_stat st;
    char buffer[16];
    size_t got;
    ck_error err = CK_ERROR_INIT;
    OK(fs->mkdir(fs, "/d", NULL));
    assert_int_equal(fs->mkdir(fs, "/d", NULL), CK_EXISTS);
    assert_int_equal(fs->mkdir(fs, "/x/y", NULL), CK_NOTFOUND);
    assert_int_equal(fs->open(fs, "/d/a", CK_OPEN_READ, &f, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "/d/a"));
    f = open_as(&p, "/d/a", CK_OPEN_CREATE);
    assert_int_equal(fs->open(fs, "/d/a", CK_OPEN_CREATE, &g, NULL), CK_EXISTS);
    OK(fs->write(f, "hello", 5, NULL));
    assert_int_equal(fs->read(f, buffer, 1, &got, NULL), CK_IO); /* opened to write */
    fs->close(f);
    f = open_as(&p, "d//./../d/a", CK_OPEN_READ);
    OK(fs->read(f, buffer, 2, &got, NULL));
    OK(fs->read(f, buffer + 2, 14, &got, NULL));
    assert_int_equal(got, 3);
    assert_memory_equal(buffer, "hello", 5);
    OK(fs->read(f, buffer, 1, &got, NULL));
    assert_int_equal(got, 0);
    OK(fs->pread(f, buffer, 16, 4, &got, NULL));
    assert_int_equal(got, 1);
    assert_int_equal(fs->write(f, "x", 1, NULL), CK_IO);
    OK(fs->unlink(fs, "/d/a", NULL)); /* stays readable while open */
    OK(fs->pread(f, buffer, 16, 0, &got, NULL));
    assert_int_equal(got, 5);
    fs->close(f);
    assert_false(there(&p, "/d/a"));
    put(&p, "/d/b", "b", false);
    OK(fs->link(fs, "/d/b", "/c", NULL));
    assert_int_equal(fs->link(fs, "/d/b", "/c", NULL), CK_EXISTS);
    assert_int_equal(fs->rename_noreplace(fs, "/d/b", "/c", NULL), CK_EXISTS);
    OK(fs->rename(fs, "/d/b", "/c", NULL)); /* the same file: nothing happens */
    assert_true(there(&p, "/d/b"));
    put(&p, "/d/e", "e", false);
    OK(fs->rename(fs, "/d/e", "/c", NULL));
    assert_true(holds(&p, "/c", "e") && holds(&p, "/d/b", "b") && !there(&p, "/d/e"));
    assert_int_equal(fs->rmdir(fs, "/d", NULL), CK_IO); /* not empty */
    assert_int_equal(fs->unlink(fs, "/d", NULL), CK_INVALID);
    assert_int_equal(fs->rename(fs, "/d", "/d/into/itself", NULL), CK_NOTFOUND);
    OK(fs->mkdir(fs, "/d/sub", NULL));
    assert_int_equal(fs->rename(fs, "/d", "/d/sub/d", NULL), CK_IO);
    OK(fs->stat(fs, "/", &st, NULL));
    assert_true(st.is_dir);
    assert_int_equal(fs->stat(fs, "/c/below", &st, NULL), CK_NOTFOUND);
    f = open_as(&p, "/lock", CK_OPEN_READWRITE), g = open_as(&p, "/lock", CK_OPEN_READWRITE);
    OK(fs->lock(f, NULL));
    OK(fs->lock(f, NULL));
    assert_int_equal(fs->lock(g, NULL), CK_EXISTS);
    fs->close(f);
    OK(fs->lock(g, NULL));
    fs->close(g);
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&p.t.proc, CK_MEM_PLAN), 1 << 20);
    const char **names;
    size_t count;
    OK(fs->list(fs, "/", &arena, &names, &count, NULL));
    assert_int_equal(count, 3);
    assert_string_equal(names[0], "c");
    assert_string_equal(names[2], "lock");
    assert_int_equal(fs->list(fs, "/c", &arena, &names, &count, NULL), CK_NOTFOUND);
    OK(ck_fs_remove_tree(&p.t.proc, "/d", NULL));
    OK(ck_fs_mkdirs(&p.t.proc, "/m/n/o", NULL));
    OK(ck_fs_glob(&p.t.proc, "/m/*/?", &arena, &names, &count, NULL));
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "/m/n/o");
    ck_arena_destroy(&arena);
    destroy_sim(&p);
}

static void test_capacity_and_its_return(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    ck_error err = CK_ERROR_INIT;
    ck_simfs_set_capacity(p.sim, 100);
    ck_file *f = open_as(&p, "/a", CK_OPEN_CREATE);
    char bytes[100] = {0}, buffer[128];
    OK(p.fs->write(f, bytes, 60, NULL));
    assert_int_equal(p.fs->write(f, bytes, 41, &err), CK_IO);
    assert_non_null(strstr(err.msg, "No space"));
    assert_true(err.retriable);
    assert_int_equal(content(&p, "/a", buffer, sizeof buffer), 100); /* what fitted, as on a real disk */
    OK(p.fs->unlink(p.fs, "/a", NULL));
    ck_file *g = open_as(&p, "/b", CK_OPEN_CREATE);
    assert_int_equal(p.fs->write(g, bytes, 1, NULL), CK_IO); /* open, so still there */
    p.fs->close(f);
    OK(p.fs->write(g, bytes, 100, NULL));
    p.fs->close(g);
    g = open_as(&p, "/b", CK_OPEN_TRUNCATE);
    OK(p.fs->write(g, bytes, 100, NULL));
    ck_simfs_set_capacity(p.sim, 0);
    OK(p.fs->write(g, bytes, 100, NULL));
    p.fs->close(g);
    destroy_sim(&p);
}

static void test_armed_errors_are_counted(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    ck_file *f = open_as(&p, "/a", CK_OPEN_CREATE);
    ck_error err = CK_ERROR_INIT;
    ck_simfs_fail(p.sim, 3, EIO, true);
    OK(p.fs->write(f, "1", 1, NULL));
    OK(p.fs->fsync(f, NULL));
    assert_int_equal(p.fs->write(f, "3", 1, &err), CK_IO);
    assert_non_null(strstr(err.msg, "/a"));
    OK(p.fs->write(f, "4", 1, NULL)); /* once */
    ck_simfs_fail(p.sim, 2, ENOSPC, false);
    OK(p.fs->fsync_dir(p.fs, "/", NULL));
    assert_int_equal(p.fs->fsync_dir(p.fs, "/", NULL), CK_IO);
    assert_int_equal(p.fs->fsync(f, NULL), CK_IO);
    ck_simfs_fail(p.sim, 0, 0, false);
    OK(p.fs->fsync(f, NULL));
    p.fs->close(f);
    destroy_sim(&p);
}

/* ---- what a crash may and may not do: each case over many seeds ---- */

/* Runs a case on a fresh disk per seed; it returns which of its outcomes it saw, and each must be seen some time. */
static void over_seeds(unsigned (*one)(sim_proc *p), unsigned outcomes) {
    unsigned seen[8] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_proc p;
        init_sim(&p, seed);
        unsigned outcome = one(&p);
        assert_true(outcome < outcomes);
        seen[outcome]++;
        destroy_sim(&p);
    }
    for (unsigned i = 0; i < outcomes; i++)
        if (seen[i] == 0) fail_msg("outcome %u of %u never came", i, outcomes);
}

static unsigned synced_file_unsynced_name(sim_proc *p) {
    put(p, "/a", "content", true);
    ck_simfs_crash(p->sim);
    if (!there(p, "/a")) return 0;
    assert_true(holds(p, "/a", "content")); /* the name is free to go, the data is not free to change */
    return 1;
}
static unsigned synced_name_unsynced_data(sim_proc *p) {
    char data[2000], back[2001];
    memset(data, 'x', sizeof data);
    ck_file *f = open_as(p, "/a", CK_OPEN_CREATE);
    OK(p->fs->write(f, data, 700, NULL));
    OK(p->fs->fsync(f, NULL));
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->write(f, data, 1300, NULL));
    ck_simfs_crash(p->sim);
    size_t got;
    assert_int_equal(p->fs->fsync(f, NULL), CK_IO); /* the open file is invalid */
    assert_int_equal(p->fs->pread(f, back, 1, 0, &got, NULL), CK_IO);
    p->fs->close(f);
    int n = content(p, "/a", back, sizeof back);
    assert_in_range(n, 700, 2000); /* what was synced is there */
    assert_memory_equal(back, data, 700);
    bool hole = false;
    for (int i = 700; i < n; i++) {
        assert_true(back[i] == 'x' || back[i] == 0);
        hole = hole || back[i] == 0;
    }
    return n == 700 ? 0 : n < 2000 ? 1 : hole ? 2 : 3; /* nothing, a part, all but holes in it, all */
}
static unsigned everything_synced(sim_proc *p) {
    OK(ck_fs_mkdirs(&p->t.proc, "/d/e", NULL));
    put(p, "/d/e/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/d/e", NULL));
    ck_simfs_crash(p->sim);
    ck_simfs_crash(p->sim);
    assert_true(holds(p, "/d/e/a", "content"));
    return 0;
}
static unsigned directory_not_synced(sim_proc *p) {
    OK(p->fs->mkdir(p->fs, "/d", NULL));
    put(p, "/d/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/d", NULL)); /* makes a's name durable, not d's own */
    ck_simfs_crash(p->sim);
    if (!there(p, "/d")) return 0;
    assert_true(holds(p, "/d/a", "content"));
    return 1;
}
static unsigned rename_not_synced(sim_proc *p) {
    put(p, "/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->rename(p->fs, "/a", "/b", NULL));
    ck_simfs_crash(p->sim);
    bool a = there(p, "/a"), b = there(p, "/b");
    assert_true(a || b);
    if (a) assert_true(holds(p, "/a", "content"));
    if (b) assert_true(holds(p, "/b", "content"));
    return a && b ? 2 : b;
}
static unsigned replace_not_synced(sim_proc *p) {
    put(p, "/a", "old", true);
    put(p, "/tmp", "new", true);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->rename(p->fs, "/tmp", "/a", NULL));
    ck_simfs_crash(p->sim);
    if (holds(p, "/a", "new")) return 0;
    assert_true(holds(p, "/a", "old")); /* never neither */
    return 1;
}
static unsigned moved_between_directories(sim_proc *p) {
    OK(ck_fs_mkdirs(&p->t.proc, "/d", NULL));
    OK(ck_fs_mkdirs(&p->t.proc, "/e", NULL));
    put(p, "/d/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/d", NULL));
    OK(p->fs->rename(p->fs, "/d/a", "/e/a", NULL));
    ck_simfs_crash(p->sim);
    bool d = there(p, "/d/a"), e = there(p, "/e/a");
    assert_true(d || e);
    return d && e ? 2 : e;
}
static unsigned moved_and_source_synced(sim_proc *p) {
    OK(ck_fs_mkdirs(&p->t.proc, "/d", NULL));
    OK(ck_fs_mkdirs(&p->t.proc, "/e", NULL));
    put(p, "/d/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/d", NULL));
    OK(p->fs->rename(p->fs, "/d/a", "/e/a", NULL));
    OK(p->fs->rename(p->fs, "/e/a", "/d/b", NULL)); /* and back under another name */
    OK(p->fs->rename(p->fs, "/d/b", "/e/c", NULL));
    OK(p->fs->fsync_dir(p->fs, "/d", NULL));
    ck_simfs_crash(p->sim);
    assert_true(holds(p, "/e/c", "content")); /* gone for certain from d, so for certain in e */
    assert_false(there(p, "/d/a") || there(p, "/d/b"));
    return 0;
}
static unsigned unlink_not_synced(sim_proc *p) {
    put(p, "/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->unlink(p->fs, "/a", NULL));
    ck_simfs_crash(p->sim);
    if (!there(p, "/a")) return 0;
    assert_true(holds(p, "/a", "content"));
    return 1;
}
static unsigned unlink_synced(sim_proc *p) {
    put(p, "/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->unlink(p->fs, "/a", NULL));
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    ck_simfs_crash(p->sim);
    assert_false(there(p, "/a"));
    return 0;
}
static unsigned link_not_synced(sim_proc *p) {
    put(p, "/a", "content", true);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->link(p->fs, "/a", "/b", NULL));
    ck_simfs_crash(p->sim);
    assert_true(holds(p, "/a", "content"));
    return there(p, "/b");
}
static unsigned rewritten_not_synced(sim_proc *p) {
    char data[1500], back[1501];
    ck_file *f = open_as(p, "/a", CK_OPEN_CREATE);
    memset(data, 'o', sizeof data);
    OK(p->fs->write(f, data, 1500, NULL));
    OK(p->fs->fsync(f, NULL));
    p->fs->close(f);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    f = open_as(p, "/a", CK_OPEN_TRUNCATE);
    memset(data, 'n', sizeof data);
    OK(p->fs->write(f, data, 1200, NULL));
    ck_simfs_crash(p->sim);
    p->fs->close(f);
    int n = content(p, "/a", back, sizeof back);
    assert_in_range(n, 1200, 1500);
    bool old = false, new = false;
    for (int i = 0; i < n; i++) {
        assert_true(back[i] == 'o' || back[i] == 'n' || back[i] == 0);
        old = old || back[i] == 'o', new = new || back[i] == 'n';
    }
    return !new ? 0 : !old ? 1 : 2; /* why a file in use must not be rewritten in place */
}
static unsigned fsync_after_a_failed_one(sim_proc *p) {
    char data[2000], back[2001];
    memset(data, 'x', sizeof data);
    ck_file *f = open_as(p, "/a", CK_OPEN_CREATE);
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
    OK(p->fs->write(f, data, sizeof data, NULL));
    ck_simfs_fail(p->sim, 1, EIO, true);
    assert_int_equal(p->fs->fsync(f, NULL), CK_IO);
    OK(p->fs->fsync(f, NULL)); /* says yes */
    ck_simfs_crash(p->sim);
    p->fs->close(f);
    assert_int_equal(content(p, "/a", back, sizeof back), 2000);
    return memcmp(back, data, 2000) == 0; /* and was not to be trusted */
}
static unsigned directory_moved_around(sim_proc *p) { /* names swapped every which way: never a cycle, never a loss */
    OK(ck_fs_mkdirs(&p->t.proc, "/x", NULL));
    OK(ck_fs_mkdirs(&p->t.proc, "/y", NULL));
    OK(p->fs->rename(p->fs, "/x", "/y/x", NULL));
    OK(p->fs->rename(p->fs, "/y/x", "/z", NULL));
    OK(p->fs->rename(p->fs, "/y", "/z/y", NULL));
    put(p, "/z/y/f", "content", true);
    ck_simfs_crash(p->sim);
    OK(ck_fs_remove_tree(&p->t.proc, "/x", NULL));
    OK(ck_fs_remove_tree(&p->t.proc, "/y", NULL));
    OK(ck_fs_remove_tree(&p->t.proc, "/z", NULL));
    return 0;
}

static void test_crashes(void **state) {
    (void)state;
    over_seeds(synced_file_unsynced_name, 2);
    over_seeds(synced_name_unsynced_data, 4);
    over_seeds(everything_synced, 1);
    over_seeds(directory_not_synced, 2);
    over_seeds(rename_not_synced, 3);
    over_seeds(replace_not_synced, 2);
    over_seeds(moved_between_directories, 3);
    over_seeds(moved_and_source_synced, 1);
    over_seeds(unlink_not_synced, 2);
    over_seeds(unlink_synced, 1);
    over_seeds(link_not_synced, 2);
    over_seeds(rewritten_not_synced, 3);
    over_seeds(fsync_after_a_failed_one, 2);
    over_seeds(directory_moved_around, 1);
}

/* A killed process loses its open files and locks, and nothing that it wrote. */
static void test_kill(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    ck_file *locked = open_as(&p, "/lock", CK_OPEN_READWRITE), *again;
    OK(p.fs->lock(locked, NULL));
    ck_file *f = open_as(&p, "/a", CK_OPEN_CREATE);
    OK(p.fs->write(f, "content", 7, NULL));
    ck_simfs_kill(p.sim);
    assert_int_equal(p.fs->write(f, "more", 4, NULL), CK_IO);
    assert_int_equal(p.fs->lock(locked, NULL), CK_IO);
    assert_true(holds(&p, "/a", "content"));
    OK(p.fs->open(p.fs, "/lock", CK_OPEN_READWRITE, &again, NULL));
    OK(p.fs->lock(again, NULL));
    p.fs->close(again), p.fs->close(f), p.fs->close(locked);
    destroy_sim(&p);
}

/* ---- random work against a model of what must survive ---- */

enum { FILES = 12, DATA_MAX = 6000 };

typedef struct model_file {
    bool exists, name_synced; /* the name is durable in the root */
    size_t n, synced_n;
} model_file;

static char byte_at(unsigned file, size_t i) { return (char)('a' + (file * 7 + i / 100) % 26); }

static void random_step(sim_proc *p, model_file *m) {
    unsigned i = (unsigned)ck_random_below(&p->t.proc, FILES);
    char path[32], data[1000];
    snprintf(path, sizeof path, "/f%u", i);
    switch (ck_random_below(&p->t.proc, 6)) {
    case 0:
        if (!m[i].exists) break;
        OK(p->fs->unlink(p->fs, path, NULL));
        m[i] = (model_file){0};
        break;
    case 1:
        OK(p->fs->fsync_dir(p->fs, "/", NULL));
        for (unsigned k = 0; k < FILES; k++) m[k].name_synced = m[k].exists;
        break;
    default: {
        ck_file *f = open_as(p, path, CK_OPEN_READWRITE);
        m[i].exists = true;
        size_t n = (size_t)ck_random_below(&p->t.proc, sizeof data);
        if (m[i].n + n > DATA_MAX) n = 0;
        for (size_t k = 0; k < n; k++) data[k] = byte_at(i, m[i].n + k);
        OK(p->fs->write(f, data, n, NULL));
        m[i].n += n;
        if (ck_random_below(&p->t.proc, 2)) {
            OK(p->fs->fsync(f, NULL));
            m[i].synced_n = m[i].n;
        }
        p->fs->close(f);
    }
    }
}

static void check_model(sim_proc *p, model_file *m, size_t *lost, size_t *kept) {
    for (unsigned i = 0; i < FILES; i++) {
        char path[32], data[DATA_MAX + 1];
        snprintf(path, sizeof path, "/f%u", i);
        int n = content(p, path, data, sizeof data);
        if (m[i].exists && m[i].name_synced) {
            assert_true(n >= (int)m[i].synced_n && n <= (int)m[i].n);
            for (size_t k = 0; k < m[i].synced_n; k++) assert_int_equal(data[k], byte_at(i, k));
            bool all = n == (int)m[i].n;
            for (size_t k = m[i].synced_n; k < (size_t)n; k++) all = all && data[k] == byte_at(i, k);
            if (m[i].synced_n < m[i].n) *(all ? kept : lost) += 1;
        } else if (m[i].exists) {
            *(n < 0 ? lost : kept) += 1;
        }
        /* What the crash left is the new truth; start from nothing for simplicity. */
        if (n >= 0) OK(p->fs->unlink(p->fs, path, NULL));
        m[i] = (model_file){0};
    }
    OK(p->fs->fsync_dir(p->fs, "/", NULL));
}

static void test_random_work_survives_as_far_as_synced(void **state) {
    (void)state;
    size_t lost = 0, kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_proc p;
        init_sim(&p, seed);
        model_file m[FILES] = {{0}};
        for (int crash = 0; crash < 4; crash++) {
            for (int i = 0; i < 60; i++) random_step(&p, m);
            ck_simfs_crash(p.sim);
            check_model(&p, m, &lost, &kept);
        }
        destroy_sim(&p);
    }
    assert_true(lost > 1000 && kept > 1000);
}

/* The durable path on this disk, stopped at each point and by each failing call: absent or whole, and whole for certain
 * once it said so. */
static void publish_and_crash(uint64_t seed, int point, bool replace) {
    sim_proc p;
    init_sim(&p, seed);
    OK(ck_fs_mkdirs(&p.t.proc, "/ckpt/0", NULL));
    char text[1300];
    memset(text, 'x', sizeof text);
    if (replace) OK(ck_durable_replace_bytes(&p.t.proc, "/ckpt/0/final", CK_VIEW("before"), NULL));
    if (point < CK_FAULT_COUNT) ck_faults_arm(&p.t.faults, (ck_fault_point)point, 1, CK_FAULT_CRASH);
    ck_view all = {text, sizeof text};
    ck_status s = replace ? ck_durable_replace_bytes(&p.t.proc, "/ckpt/0/final", all, NULL)
                          : ck_durable_publish_bytes(&p.t.proc, "/ckpt/0/final", all, NULL);
    assert_int_equal(s, point < CK_FAULT_COUNT ? CK_CANCELLED : CK_OK);
    ck_simfs_crash(p.sim);
    atomic_store(&p.t.faults.crashed, false);
    char back[1400];
    int n = content(&p, "/ckpt/0/final", back, sizeof back);
    bool whole = n == (int)sizeof text && memcmp(back, text, sizeof text) == 0;
    bool before = n == 6 && memcmp(back, "before", 6) == 0;
    if (point >= CK_FAULT_DURABLE_AFTER_DIRSYNC)
        assert_true(whole);
    else if (point < CK_FAULT_DURABLE_AFTER_PUBLISH)
        assert_true(replace ? before : n < 0);
    else
        assert_true(whole || (replace ? before : n < 0));
    destroy_sim(&p);
}

static void test_durable_writes_survive_a_power_cut(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        for (int replace = 0; replace < 2; replace++) {
            for (int p = CK_FAULT_DURABLE_AFTER_CREATE; p <= CK_FAULT_DURABLE_AFTER_DIRSYNC; p++)
                publish_and_crash(seed, p, replace);
            publish_and_crash(seed, CK_FAULT_COUNT, replace);
        }
    }
}

static void test_durable_writes_under_failing_calls(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        for (uint64_t nth = 1; nth <= 3; nth++) { /* write, fsync, fsync of the directory */
            sim_proc p;
            init_sim(&p, seed);
            ck_simfs_fail(p.sim, nth, nth == 1 ? ENOSPC : EIO, true);
            assert_int_equal(ck_durable_publish_bytes(&p.t.proc, "/final", CK_VIEW("content"), NULL), CK_IO);
            ck_status again = ck_durable_publish_bytes(&p.t.proc, "/final", CK_VIEW("content"), NULL);
            assert_int_equal(again, nth == 3 ? CK_EXISTS : CK_OK);
            if (nth == 3) OK(ck_durable_confirm(&p.t.proc, "/final", NULL)); /* there, and not yet for certain */
            ck_simfs_crash(p.sim);
            assert_true(holds(&p, "/final", "content"));
            destroy_sim(&p);
        }
    }
}

/* ---- the same seed, the same disk ---- */

static uint32_t sum_after(uint64_t seed) {
    sim_proc p;
    init_sim(&p, 5); /* the same work */
    ck_simfs *sim;
    OK(ck_simfs_new(&sim, seed));
    ck_simfs_free(p.sim);
    p.sim = sim, p.fs = p.t.proc.fs = ck_simfs_base(sim);
    model_file m[FILES] = {{0}};
    for (int i = 0; i < 100; i++) random_step(&p, m);
    ck_simfs_crash(p.sim);
    uint32_t sum = 0;
    for (unsigned i = 0; i < FILES; i++) {
        char path[32], data[DATA_MAX];
        snprintf(path, sizeof path, "/f%u", i);
        int n = content(&p, path, data, sizeof data);
        sum = ck_crc32c(sum, &n, sizeof n);
        if (n > 0) sum = ck_crc32c(sum, data, (size_t)n);
    }
    destroy_sim(&p);
    return sum;
}

static void test_a_seed_fixes_everything(void **state) {
    (void)state;
    assert_int_equal(sum_after(1), sum_after(1));
    assert_true(sum_after(1) != sum_after(2) || sum_after(1) != sum_after(3));
}

/* ---- outside ---- */

static void test_import_and_export(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    char real[256], sub[256], back[256];
    snprintf(real, sizeof real, "%s/in", ck_test_dir(&p.t));
    snprintf(sub, sizeof sub, "%s/in/sub", p.t.dir);
    p.t.proc.fs = ck_fs_system();
    OK(ck_fs_mkdirs(&p.t.proc, sub, NULL));
    snprintf(sub, sizeof sub, "%s/in/sub/file", p.t.dir);
    char big[200000];
    memset(big, 'b', sizeof big);
    OK(ck_durable_publish_bytes(&p.t.proc, sub, (ck_view){big, sizeof big}, NULL));
    p.t.proc.fs = p.fs;
    OK(ck_simfs_import(p.sim, sub, "/one/file", NULL));
    OK(ck_simfs_import(p.sim, real, "/tree", NULL));
    ck_simfs_crash(p.sim); /* what was imported is on the disk */
    ck_stat st;
    OK(p.fs->stat(p.fs, "/one/file", &st, NULL));
    assert_int_equal(st.bytes, sizeof big);
    OK(p.fs->stat(p.fs, "/tree/sub/file", &st, NULL));
    snprintf(back, sizeof back, "%s/out", p.t.dir);
    OK(ck_simfs_export_tree(p.sim, "/", back, NULL));
    snprintf(back, sizeof back, "%s/out/tree/sub/file", p.t.dir);
    OK(ck_fs_system()->stat(ck_fs_system(), back, &st, NULL));
    assert_int_equal(st.bytes, sizeof big);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_simfs_import(p.sim, "/nowhere/at/all", "/x", &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "/nowhere/at/all"));
    destroy_sim(&p);
}

static void test_a_dropped_process_leaves_only_the_disk(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    ck_file *f = open_as(&p, "/a", CK_OPEN_READWRITE);
    OK(p.fs->lock(f, NULL));
    OK(p.fs->fsync_dir(p.fs, "/", NULL));
    ck_simfs_crash(p.sim); /* f is never closed: its process is gone */
    ck_file *g = open_as(&p, "/a", CK_OPEN_READWRITE);
    OK(p.fs->lock(g, NULL)); /* and so is its lock */
    p.fs->close(g);
    destroy_sim(&p);
}

typedef struct shared_work {
    ck_fs *fs;
    unsigned number;
} shared_work;

static void *work_in_parallel(void *arg) {
    shared_work *w = arg;
    ck_fs *fs = w->fs;
    for (int i = 0; i < 300; i++) {
        char a[32], b[32];
        snprintf(a, sizeof a, "/t%u-%d", w->number, i);
        snprintf(b, sizeof b, "/final%d", i % 7);
        ck_file *f;
        if (fs->open(fs, a, CK_OPEN_CREATE, &f, NULL) != CK_OK) return arg;
        bool ok = fs->write(f, a, strlen(a), NULL) == CK_OK && fs->fsync(f, NULL) == CK_OK;
        fs->close(f);
        ok = ok && fs->rename(fs, a, b, NULL) == CK_OK && fs->fsync_dir(fs, "/", NULL) == CK_OK;
        if (!ok) return arg;
    }
    return NULL;
}

static void test_any_thread_may_use_it(void **state) {
    (void)state;
    sim_proc p;
    init_sim(&p, 1);
    pthread_t threads[3];
    shared_work work[3];
    for (unsigned i = 0; i < 3; i++) {
        work[i] = (shared_work){p.fs, i};
        OK(ck_thread_start(&threads[i], "work", work_in_parallel, &work[i], NULL));
    }
    for (unsigned i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < 7; i++) {
        char path[32];
        snprintf(path, sizeof path, "/final%d", i);
        assert_true(there(&p, path));
    }
    destroy_sim(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behaves_as_the_real_one),
        cmocka_unit_test(test_capacity_and_its_return),
        cmocka_unit_test(test_armed_errors_are_counted),
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_random_work_survives_as_far_as_synced),
        cmocka_unit_test(test_durable_writes_survive_a_power_cut),
        cmocka_unit_test(test_durable_writes_under_failing_calls),
        cmocka_unit_test(test_a_seed_fixes_everything),
        cmocka_unit_test(test_import_and_export),
        cmocka_unit_test(test_a_dropped_process_leaves_only_the_disk),
        cmocka_unit_test(test_any_thread_may_use_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
