#include "os/fs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/test_proc.h"

static void write_file(ck_test_proc *t, const char *path, const char *text) {
    ck_fs *fs = t->proc.fs;
    ck_file *f;
    assert_int_equal(fs->open(fs, path, CK_OPEN_TRUNCATE, &f, NULL), CK_OK);
    assert_int_equal(fs->write(f, text, strlen(text), NULL), CK_OK);
    fs->close(f);
}

/* The real table, with a record of the directories synced and made. */
typedef struct spy_fs {
    ck_fs base;
    char calls[2048];
    bool refuse_sync;
} spy_fs;
static ck_status spy_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    spy_fs *spy = (spy_fs *)fs;
    size_t n = strlen(spy->calls);
    snprintf(spy->calls + n, sizeof spy->calls - n, "sync %s;", path);
    if (spy->refuse_sync) return ck_fail(err, CK_IO, "no");
    return ck_fs_system()->fsync_dir(ck_fs_system(), path, err);
}
static ck_status spy_mkdir(ck_fs *fs, const char *path, ck_error *err) {
    spy_fs *spy = (spy_fs *)fs;
    size_t n = strlen(spy->calls);
    snprintf(spy->calls + n, sizeof spy->calls - n, "mkdir %s;", path);
    return ck_fs_system()->mkdir(ck_fs_system(), path, err);
}
static void init_spy(spy_fs *spy) {
    *spy = (spy_fs){.base = *ck_fs_system()};
    spy->base.fsync_dir = spy_fsync_dir;
    spy->base.mkdir = spy_mkdir;
}

static void test_mkdirs_syncs_each_parent(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    spy_fs spy;
    init_spy(&spy);
    assert_int_equal(chdir(ck_test_dir(&t)), 0);
    t.proc.fs = &spy.base;
    assert_int_equal(ck_fs_mkdirs(&t.proc, "x//y/z/", NULL), CK_OK);
    assert_string_equal(spy.calls, "mkdir x;sync .;mkdir x//y;sync x;mkdir x//y/z;sync x//y;");
    spy.calls[0] = 0;
    assert_int_equal(ck_fs_mkdirs(&t.proc, "x/y/z", NULL), CK_OK); /* its maker may have died before the sync */
    assert_string_equal(spy.calls, "sync x/y;");
    spy.calls[0] = 0;
    assert_int_equal(ck_fs_mkdirs(&t.proc, "x/y/w", NULL), CK_OK);
    assert_string_equal(spy.calls, "sync x;mkdir x/y/w;sync x/y;");
    spy.calls[0] = 0;
    char path[256];
    snprintf(path, sizeof path, "%s/abs/olute", t.dir);
    assert_int_equal(ck_fs_mkdirs(&t.proc, path, NULL), CK_OK);
    ck_stat st;
    assert_int_equal(t.proc.fs->stat(t.proc.fs, path, &st, NULL), CK_OK);
    assert_true(st.is_dir);
    assert_int_equal(ck_fs_mkdirs(&t.proc, "/", NULL), CK_OK);
    assert_int_equal(ck_fs_mkdirs(&t.proc, ".", NULL), CK_OK);
    assert_int_equal(chdir("/"), 0);
    ck_test_proc_destroy(&t);
}

static void test_mkdirs_fails_by_name(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256], deep[256];
    snprintf(path, sizeof path, "%s/file", ck_test_dir(&t));
    snprintf(deep, sizeof deep, "%s/file/below/it", t.dir);
    write_file(&t, path, "x");
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_fs_mkdirs(&t.proc, path, &err), CK_IO);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(ck_fs_mkdirs(&t.proc, deep, &err), CK_IO);
    assert_int_equal(ck_fs_mkdirs(&t.proc, "", &err), CK_INVALID);
    char *longest = malloc(5000);
    memset(longest, 'a', 4999);
    longest[4999] = 0;
    assert_int_equal(ck_fs_mkdirs(&t.proc, longest, &err), CK_INVALID);
    free(longest);
    ck_test_proc_destroy(&t);
}

static void test_mkdirs_leaves_no_directory_it_could_not_sync(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256];
    snprintf(path, sizeof path, "%s/new", ck_test_dir(&t));
    spy_fs spy;
    init_spy(&spy);
    t.proc.fs = &spy.base;
    spy.refuse_sync = true;
    assert_int_equal(ck_fs_mkdirs(&t.proc, path, NULL), CK_IO);
    ck_stat st;
    assert_int_equal(t.proc.fs->stat(t.proc.fs, path, &st, NULL), CK_NOTFOUND);
    ck_test_proc_destroy(&t);
}

static void test_read_all_at_and_over_its_ceiling(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
    char path[256];
    snprintf(path, sizeof path, "%s/f", ck_test_dir(&t));
    write_file(&t, path, "0123456789");
    ck_view v;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_fs_read_all(&t.proc, path, 10, &arena, &v, NULL), CK_OK);
    assert_true(ck_view_is(v, "0123456789"));
    assert_int_equal(v.p[10], 0);
    assert_int_equal(ck_fs_read_all(&t.proc, path, 9, &arena, &v, &err), CK_FULL);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(ck_fs_read_all(&t.proc, path, SIZE_MAX, &arena, &v, NULL), CK_OK);
    assert_int_equal(v.n, 10);
    write_file(&t, path, "");
    assert_int_equal(ck_fs_read_all(&t.proc, path, 0, &arena, &v, NULL), CK_OK);
    assert_int_equal(v.n, 0);
    assert_non_null(v.p);
    assert_int_equal(ck_fs_read_all(&t.proc, ck_test_dir(&t), 100, &arena, &v, &err), CK_CORRUPT);
    assert_int_equal(ck_fs_read_all(&t.proc, "/nowhere/at/all", 100, &arena, &v, &err), CK_NOTFOUND);
    ck_arena_destroy(&arena);
    ck_test_proc_destroy(&t);
}

static void test_read_all_where_the_size_is_not_known(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
    char path[256];
    snprintf(path, sizeof path, "%s/pipe", ck_test_dir(&t));
    assert_int_equal(mkfifo(path, 0600), 0);
    for (int pass = 0; pass < 2; pass++) {
        /* Opened for both, which waits for nobody, and kept until all is read: an open that waits for the other side
         * may start over, and who reads meanwhile finds the end. */
        int both = open(path, O_RDWR | O_CLOEXEC), left = 30000;
        assert_true(both >= 0);
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 10000; i++)
                if (write(both, "abc", 3) != 3) _exit(1);
            while (left && ioctl(both, FIONREAD, &left) == 0) usleep(1000);
            _exit(0);
        }
        assert_int_equal(close(both), 0);
        ck_view v;
        if (pass == 0) {
            assert_int_equal(ck_fs_read_any(&t.proc, path, 30000, &arena, &v, NULL), CK_OK);
            assert_int_equal(v.n, 30000);
            assert_memory_equal(v.p + 29997, "abc", 3);
        } else {
            assert_int_equal(ck_fs_read_any(&t.proc, path, 29999, &arena, &v, NULL), CK_FULL);
        }
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    ck_arena_destroy(&arena);
    ck_test_proc_destroy(&t);
}

static void test_remove_tree_stays_in_its_tree(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256], outside[256], kept[256], link_path[256];
    snprintf(path, sizeof path, "%s/tree/a/b/c", ck_test_dir(&t));
    assert_int_equal(ck_fs_mkdirs(&t.proc, path, NULL), CK_OK);
    snprintf(outside, sizeof outside, "%s/outside", t.dir);
    assert_int_equal(ck_fs_mkdirs(&t.proc, outside, NULL), CK_OK);
    snprintf(kept, sizeof kept, "%s/outside/kept", t.dir);
    write_file(&t, kept, "x");
    snprintf(link_path, sizeof link_path, "%s/tree/a/link", t.dir);
    assert_int_equal(symlink(outside, link_path), 0);
    snprintf(path, sizeof path, "%s/tree/a/b/file", t.dir);
    write_file(&t, path, "x");
    snprintf(path, sizeof path, "%s/tree", t.dir);
    assert_int_equal(ck_fs_remove_tree(&t.proc, path, NULL), CK_OK);
    ck_stat st;
    assert_int_equal(t.proc.fs->stat(t.proc.fs, path, &st, NULL), CK_NOTFOUND);
    assert_int_equal(t.proc.fs->stat(t.proc.fs, kept, &st, NULL), CK_OK); /* the link went, not what it points at */
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_fs_remove_tree(&t.proc, path, &err), CK_OK); /* missing is fine */
    assert_int_equal(err.msg[0], 0);
    assert_int_equal(ck_fs_remove_tree(&t.proc, kept, NULL), CK_OK); /* a file */
    ck_test_proc_destroy(&t);
}

static void test_allocation_failures(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256];
    snprintf(path, sizeof path, "%s/f", ck_test_dir(&t));
    write_file(&t, path, "0123456789");
    for (uint64_t n = 1;; n++) {
        ck_tracked_heap_fail_nth(t.heap, n);
        ck_arena arena;
        ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
        ck_view v;
        ck_status s = ck_fs_read_all(&t.proc, path, 100, &arena, &v, NULL);
        if (s == CK_OK) s = ck_fs_remove_tree(&t.proc, path, NULL);
        ck_arena_destroy(&arena);
        if (!ck_tracked_heap_fired(t.heap)) {
            assert_int_equal(s, CK_OK);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
        assert_int_equal(ck_tracked_heap_live_blocks(t.heap), 0);
    }
    ck_tracked_heap_fail_nth(t.heap, 0);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mkdirs_syncs_each_parent),
        cmocka_unit_test(test_mkdirs_fails_by_name),
        cmocka_unit_test(test_mkdirs_leaves_no_directory_it_could_not_sync),
        cmocka_unit_test(test_read_all_at_and_over_its_ceiling),
        cmocka_unit_test(test_read_all_where_the_size_is_not_known),
        cmocka_unit_test(test_remove_tree_stays_in_its_tree),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
