#include "os/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/test_proc.h"

static char *in_dir(ck_test_proc *t, char out[256], const char *name) {
    snprintf(out, 256, "%s/%s", ck_test_dir(t), name);
    return out;
}

static void test_write_sync_read_back(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    char path[256];
    ck_file *f;
    assert_int_equal(fs->open(fs, in_dir(&t, path, "a"), CK_OPEN_CREATE, &f, NULL), CK_OK);
    assert_int_equal(fs->write(f, "hello ", 6, NULL), CK_OK);
    assert_int_equal(fs->write(f, "world", 5, NULL), CK_OK);
    assert_int_equal(fs->fsync(f, NULL), CK_OK);
    fs->close(f);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    ck_stat info;
    assert_int_equal(fs->stat(fs, path, &info, NULL), CK_OK);
    assert_true(info.is_file && !info.is_dir && info.bytes == 11 && info.inode == st.st_ino);
    assert_int_equal(fs->open(fs, path, CK_OPEN_READ, &f, NULL), CK_OK);
    char buffer[32];
    size_t got;
    assert_int_equal(fs->pread(f, buffer, sizeof buffer, 6, &got, NULL), CK_OK);
    assert_int_equal(got, 5);
    assert_memory_equal(buffer, "world", 5);
    assert_int_equal(fs->read(f, buffer, 3, &got, NULL), CK_OK); /* pread does not move read's place */
    assert_int_equal(got, 3);
    assert_memory_equal(buffer, "hel", 3);
    assert_int_equal(fs->pread(f, buffer, 1, 100, &got, NULL), CK_OK);
    assert_int_equal(got, 0);
    assert_int_equal(fs->pread(f, buffer, 1, UINT64_MAX, &got, NULL), CK_INVALID);

    memset(buffer, 0, sizeof buffer); /* whether it is in memory is the system's secret, but not what it says */
    ck_status cached = fs->pread_cached(f, buffer, 5, 6);
    assert_true(cached == CK_AGAIN || (cached == CK_OK && memcmp(buffer, "world", 5) == 0));
    assert_int_equal(fs->pread_cached(f, buffer, 6, 6), CK_AGAIN); /* not all of it */
    assert_int_equal(fs->pread_cached(f, buffer, 1, 100), CK_AGAIN);
    assert_int_equal(fs->pread_cached(f, buffer, 1, UINT64_MAX), CK_AGAIN);
    fs->close(f);
    fs->close(NULL);
    ck_test_proc_destroy(&t);
}

static void test_open_modes(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    char path[256];
    ck_file *f;
    ck_error err = CK_ERROR_INIT;
    in_dir(&t, path, "f");
    assert_int_equal(fs->open(fs, path, CK_OPEN_READ, &f, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, path)); /* errors name the path */
    assert_null(f);
    assert_int_equal(fs->open(fs, path, CK_OPEN_CREATE, &f, NULL), CK_OK);
    assert_int_equal(fs->write(f, "abc", 3, NULL), CK_OK);
    fs->close(f);
    assert_int_equal(fs->open(fs, path, CK_OPEN_CREATE, &f, &err), CK_EXISTS);
    assert_int_equal(fs->open(fs, path, CK_OPEN_READWRITE, &f, NULL), CK_OK);
    ck_stat st;
    assert_int_equal(fs->fstat(f, &st, NULL), CK_OK);
    assert_int_equal(st.bytes, 3);
    assert_int_equal(fs->write(f, "d", 1, NULL), CK_OK); /* appends */
    fs->close(f);
    assert_int_equal(fs->stat(fs, path, &st, NULL), CK_OK);
    assert_int_equal(st.bytes, 4);
    assert_int_equal(fs->open(fs, path, CK_OPEN_TRUNCATE, &f, NULL), CK_OK);
    fs->close(f);
    assert_int_equal(fs->stat(fs, path, &st, NULL), CK_OK);
    assert_int_equal(st.bytes, 0);
    ck_test_proc_destroy(&t);
}

static void test_names(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    char a[256], b[256], d[256], through[256];
    in_dir(&t, a, "a"), in_dir(&t, b, "b"), in_dir(&t, d, "d"), in_dir(&t, through, "a/x");
    ck_file *f;
    ck_stat st, st2;
    assert_int_equal(fs->open(fs, a, CK_OPEN_CREATE, &f, NULL), CK_OK);
    fs->close(f);
    assert_int_equal(fs->stat(fs, through, &st, NULL), CK_NOTFOUND); /* through a plain file */
    assert_int_equal(fs->link(fs, a, b, NULL), CK_OK);
    assert_int_equal(fs->link(fs, a, b, NULL), CK_EXISTS);
    assert_int_equal(fs->stat(fs, a, &st, NULL), CK_OK);
    assert_int_equal(fs->stat(fs, b, &st2, NULL), CK_OK);
    assert_true(st.inode == st2.inode && st.device == st2.device);
    assert_int_equal(fs->unlink(fs, b, NULL), CK_OK);
    assert_int_equal(fs->unlink(fs, b, NULL), CK_NOTFOUND);
    assert_int_equal(fs->rename_noreplace(fs, a, b, NULL), CK_OK);
    assert_int_equal(fs->stat(fs, a, &st, NULL), CK_NOTFOUND);
    assert_int_equal(fs->open(fs, a, CK_OPEN_CREATE, &f, NULL), CK_OK);
    fs->close(f);
    assert_int_equal(fs->rename_noreplace(fs, a, b, NULL), CK_EXISTS);
    assert_int_equal(fs->rename(fs, a, b, NULL), CK_OK);
    assert_int_equal(fs->mkdir(fs, d, NULL), CK_OK);
    assert_int_equal(fs->mkdir(fs, d, NULL), CK_EXISTS);
    struct stat mode;
    assert_int_equal(stat(d, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0700);
    mode_t before = umask(027);
    char shared[256];
    assert_int_equal(fs->mkdir_shared(fs, in_dir(&t, shared, "shared"), NULL), CK_OK);
    assert_int_equal(stat(shared, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0750);
    assert_int_equal(fs->open(fs, in_dir(&t, shared, "shared/f"), CK_OPEN_CREATE_SHARED, &f, NULL), CK_OK);
    fs->close(f);
    umask(before);
    assert_int_equal(stat(shared, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0640);
    assert_int_equal(fs->open(fs, shared, CK_OPEN_CREATE_SHARED, &f, NULL), CK_EXISTS);
    assert_int_equal(fs->unlink(fs, d, NULL), CK_INVALID);
    assert_int_equal(fs->fsync_dir(fs, d, NULL), CK_OK);
    assert_int_equal(fs->fsync_dir(fs, a, NULL), CK_NOTFOUND);
    assert_int_equal(fs->rmdir(fs, d, NULL), CK_OK);
    ck_test_proc_destroy(&t);
}

static void test_list_is_sorted_and_reports_missing(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t.proc, CK_MEM_PLAN), 1 << 20);
    const char **names;
    size_t count;
    char path[256];
    assert_int_equal(fs->list(fs, ck_test_dir(&t), &arena, &names, &count, NULL), CK_OK);
    assert_int_equal(count, 0);
    for (int i = 99; i >= 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "%s%02d", i == 7 ? ".h" : "n", i);
        ck_file *f;
        assert_int_equal(fs->open(fs, in_dir(&t, path, name), CK_OPEN_CREATE, &f, NULL), CK_OK);
        fs->close(f);
    }
    assert_int_equal(fs->list(fs, ck_test_dir(&t), &arena, &names, &count, NULL), CK_OK);
    assert_int_equal(count, 100);
    assert_string_equal(names[0], ".h07");
    for (size_t i = 1; i < count; i++) assert_true(strcmp(names[i - 1], names[i]) < 0);
    assert_int_equal(fs->list(fs, in_dir(&t, path, "none"), &arena, &names, &count, NULL), CK_NOTFOUND);
    assert_int_equal(fs->list(fs, in_dir(&t, path, "n01"), &arena, &names, &count, NULL), CK_NOTFOUND);
    ck_arena small;
    ck_arena_init(&small, ck_proc_mem(&t.proc, CK_MEM_PLAN), 512);
    assert_int_equal(fs->list(fs, ck_test_dir(&t), &small, &names, &count, NULL), CK_NOMEM);
    ck_arena_destroy(&small);
    ck_arena_destroy(&arena);
    ck_test_proc_destroy(&t);
}

static void test_lock_is_exclusive_until_close(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    char path[256];
    ck_file *a, *b;
    ck_error err = CK_ERROR_INIT;
    in_dir(&t, path, "job.lock");
    assert_int_equal(fs->open(fs, path, CK_OPEN_READWRITE, &a, NULL), CK_OK);
    assert_int_equal(fs->open(fs, path, CK_OPEN_READWRITE, &b, NULL), CK_OK);
    assert_int_equal(fs->lock(a, NULL), CK_OK);
    assert_int_equal(fs->lock(b, &err), CK_EXISTS); /* an open file description owns it, also against its own process */
    assert_non_null(strstr(err.msg, "locked"));
    fs->close(a);
    assert_int_equal(fs->lock(b, NULL), CK_OK);
    fs->close(b);
    ck_test_proc_destroy(&t);
}

static void test_a_full_disk_is_said(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    ck_file *f;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(fs->open(fs, "/dev/full", CK_OPEN_TRUNCATE, &f, NULL), CK_OK);
    assert_int_equal(fs->write(f, "x", 1, &err), CK_IO);
    assert_true(err.retriable);
    assert_non_null(strstr(err.msg, "/dev/full"));
    assert_non_null(strstr(err.msg, "No space"));
    fs->close(f);
    assert_int_equal(fs->open(fs, "/tmp", CK_OPEN_TRUNCATE, &f, &err), CK_IO); /* a directory */
    ck_test_proc_destroy(&t);
}

static void test_what_is_no_file_is_refused_without_waiting(void **state) {
    (void)state;
    static const ck_open_mode modes[] = {CK_OPEN_READ, CK_OPEN_READWRITE};
    char pipe_path[256], text[4];
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_fs *fs = t.proc.fs;
    assert_int_equal(mkfifo(in_dir(&t, pipe_path, "pipe"), 0600), 0);
    const struct {
        const char *path, *kind;
    } all[] = {{pipe_path, "is a pipe"}, {"/dev/null", "is a device"}, {ck_test_dir(&t), "directory"}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(all) * CK_ARRAY_COUNT(modes); i++) {
        ck_file *f;
        ck_error err = CK_ERROR_INIT;
        assert_int_not_equal(fs->open(fs, all[i / 2].path, modes[i % 2], &f, &err), CK_OK);
        assert_null(f);
        assert_non_null(strstr(err.msg, all[i / 2].path));
        assert_non_null(strstr(err.msg, all[i / 2].kind));
    }
    int writer = open(pipe_path, O_RDWR); /* both ends: nobody waits */
    ck_file *f;
    size_t got;
    assert_int_equal(write(writer, "abc", 3), 3);
    assert_int_equal(fs->open(fs, pipe_path, CK_OPEN_READ_ANY, &f, NULL), CK_OK);
    assert_int_equal(fs->read(f, text, sizeof text, &got, NULL), CK_OK);
    assert_int_equal(got, 3);
    fs->close(f);
    close(writer);
    ck_test_proc_destroy(&t);
}

/* From here on the system behaves as a file system without RENAME_NOREPLACE, and without links where asked. */
static bool take_away(bool links) {
#ifdef SYS_link
    enum { LINK = SYS_link };
#else
    enum { LINK = SYS_linkat };
#endif
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, links ? LINK : 0xFFFF, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {CK_ARRAY_COUNT(filter), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a child: 0 as it should be, 1 not, 2 the machine allows no such experiment. */
static int publish_without(ck_fs *fs, const char *from, const char *to, bool links) {
    ck_stat st;
    ck_error err = CK_ERROR_INIT;
    if (!take_away(links)) return 2;
    ck_status s = fs->rename_noreplace(fs, from, to, &err);
    if (links) /* neither works: refused by name, and nothing has moved */
        return !(s == CK_REFUSED && strstr(err.msg, to) && fs->stat(fs, from, &st, NULL) == CK_OK &&
                 fs->stat(fs, to, &st, NULL) == CK_NOTFOUND);
    if (s != CK_OK || fs->stat(fs, from, &st, NULL) != CK_NOTFOUND) return 1;
    if (fs->link(fs, to, from, NULL) != CK_OK) return 1;
    return fs->rename_noreplace(fs, from, to, NULL) != CK_EXISTS;
}

static void test_exclusive_without_the_systems_help(void **state) {
    (void)state;
    for (int links = 0; links < 2; links++) {
        ck_test_proc t;
        ck_test_proc_init(&t);
        char from[256], to[256];
        in_dir(&t, from, "from"), in_dir(&t, to, "to");
        ck_file *f;
        assert_int_equal(t.proc.fs->open(t.proc.fs, from, CK_OPEN_CREATE, &f, NULL), CK_OK);
        t.proc.fs->close(f);
        pid_t child = fork();
        if (child == 0) _exit(publish_without(t.proc.fs, from, to, links));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        ck_test_proc_destroy(&t);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 2) skip();
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive_without_the_systems_help),
        cmocka_unit_test(test_write_sync_read_back),
        cmocka_unit_test(test_open_modes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_list_is_sorted_and_reports_missing),
        cmocka_unit_test(test_lock_is_exclusive_until_close),
        cmocka_unit_test(test_a_full_disk_is_said),
        cmocka_unit_test(test_what_is_no_file_is_refused_without_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
