/* What a confined job can touch, by every call of the file system, and by every way around. */
#include "os/confined.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct fixture {
    ck_test_proc t;
    ck_confined c;
    ck_arena arena;
    char top[PATH_MAX];
} fixture;

static const char *at(fixture *f, const char *below) {
    const char *p = ck_arena_printf(&f->arena, "%s/%s", f->top, below);
    assert_non_null(p);
    return p;
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* top/data/in, top/data-2/in (its name begins as the root's does), top/secrets/key, top/outside; links in data. */
static int setup(void **state) {
    static fixture f;
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), 1 << 20);
    assert_non_null(realpath(ck_test_dir(&f.t), f.top));
    static const char *const dirs[] = {"data", "data/sub", "data-2", "secrets"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(dirs); i++) assert_int_equal(mkdir(at(&f, dirs[i]), 0700), 0);
    put(at(&f, "data/in"), "mine");
    put(at(&f, "data-2/in"), "not mine");
    put(at(&f, "secrets/key"), "secret\n");
    put(at(&f, "outside"), "not mine");
    assert_int_equal(symlink("../outside", at(&f, "data/link")), 0);
    assert_int_equal(symlink("../nowhere", at(&f, "data/dangling")), 0);
    assert_int_equal(symlink("..", at(&f, "data/up")), 0);
    assert_int_equal(symlink("in", at(&f, "data/alias")), 0);
    assert_int_equal(symlink("data", at(&f, "same")), 0);
    OK(ck_confined_init(&f.c, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), f.t.proc.fs, at(&f, "same"), at(&f, "secrets"),
                        NULL));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_confined_destroy(&f->c);
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static void refused(ck_status s, const ck_error *err) {
    assert_int_equal(s, CK_REFUSED);
    assert_true(err->fatal); /* no restart helps */
    if (!strstr(err->msg, "is not below --data-root")) fail_msg("%s", err->msg);
}

static void what_is_below_the_root_is_as_ever(void **state) {
    fixture *f = *state;
    ck_fs *fs = &f->c.fs;
    ck_view text;
    ck_stat st;
    const char **names;
    size_t count;
    static const char *const readable[] = {"data/in",        "same/in",  "data/alias",
                                           "data/sub/../in", "data//in", "data/./in"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(readable); i++) {
        OK(ck_fs_read_file(fs, at(f, readable[i]), 100, &f->arena, &text, NULL));
        assert_true(ck_view_eq(text, CK_VIEW("mine")));
    }
    ck_proc *p = &f->t.proc;
    ck_fs *kept = p->fs;
    p->fs = fs;
    OK(ck_fs_mkdirs(p, at(f, "data/a/b/c"), NULL));
    OK(ck_fs_mkdirs(p, at(f, "data"), NULL)); /* asks of what is above */
    p->fs = kept;
    ck_file *file;
    OK(fs->open(fs, at(f, "data/a/new"), CK_OPEN_CREATE, &file, NULL));
    OK(fs->write(file, "x", 1, NULL));
    OK(fs->fsync(file, NULL));
    fs->close(file);
    OK(fs->fsync_dir(fs, at(f, "data/a"), NULL));
    OK(fs->rename(fs, at(f, "data/a/new"), at(f, "data/a/newer"), NULL));
    OK(fs->link(fs, at(f, "data/a/newer"), at(f, "data/a/linked"), NULL));
    OK(fs->list(fs, at(f, "data/a"), &f->arena, &names, &count, NULL));
    assert_int_equal(count, 3);
    OK(fs->unlink(fs, at(f, "data/a/linked"), NULL));
    OK(fs->stat(fs, f->top, &st, NULL)); /* that it is there */
    assert_int_equal(fs->stat(fs, at(f, "data/none"), &st, NULL), CK_NOTFOUND);
    assert_int_equal(fs->open(fs, at(f, "data/in/below-a-file"), CK_OPEN_READ, &file, NULL) == CK_OK, false);
}

static void nothing_else_is_opened(void **state) {
    fixture *f = *state;
    static const char *const paths[] = {"outside",
                                        "data-2/in",
                                        "data/../outside",
                                        "data/link",
                                        "data/dangling",
                                        "data/up/outside",
                                        "secrets/key",
                                        "data/none/../../outside",
                                        "new",
                                        "data/up/data-2/new",
                                        ""};
    static const ck_open_mode modes[] = {CK_OPEN_READ, CK_OPEN_CREATE, CK_OPEN_TRUNCATE, CK_OPEN_READWRITE,
                                         CK_OPEN_CREATE_SHARED};
    for (size_t i = 0; i < CK_ARRAY_COUNT(paths); i++)
        for (size_t m = 0; m < CK_ARRAY_COUNT(modes); m++) {
            ck_file *file;
            ck_error err = CK_ERROR_INIT;
            refused(f->c.fs.open(&f->c.fs, at(f, paths[i]), modes[m], &file, &err), &err);
        }
    ck_file *file;
    ck_error err = CK_ERROR_INIT;
    refused(f->c.fs.open(&f->c.fs, "/etc/passwd", CK_OPEN_READ, &file, &err), &err);
    refused(f->c.fs.open(&f->c.fs, "../../../../../../../../etc/passwd", CK_OPEN_READ, &file, &err), &err);
    refused(f->c.fs.open(&f->c.fs, "", CK_OPEN_READ, &file, &err), &err);
    assert_int_equal(access(at(f, "nowhere"), F_OK), -1); /* the link to nowhere has led nowhere */
}

static void nothing_else_is_changed(void **state) {
    fixture *f = *state;
    ck_fs *fs = &f->c.fs;
    const char *in = at(f, "data/in"), *out = at(f, "outside"), *fresh = at(f, "fresh");
    ck_error err = CK_ERROR_INIT;
    ck_stat st;
    const char **names;
    size_t count;
    refused(fs->link(fs, out, at(f, "data/got"), &err), &err); /* read it under another name */
    refused(fs->link(fs, in, fresh, &err), &err);
    refused(fs->rename(fs, out, at(f, "data/got"), &err), &err);
    refused(fs->rename(fs, in, out, &err), &err);
    refused(fs->rename_noreplace(fs, out, at(f, "data/got"), &err), &err);
    refused(fs->rename_noreplace(fs, in, fresh, &err), &err);
    refused(fs->unlink(fs, out, &err), &err);
    refused(fs->mkdir(fs, fresh, &err), &err);
    if (fs->mkdir_shared) refused(fs->mkdir_shared(fs, fresh, &err), &err);
    refused(fs->rmdir(fs, at(f, "data-2"), &err), &err);
    refused(fs->fsync_dir(fs, f->top, &err), &err);
    refused(fs->list(fs, f->top, &f->arena, &names, &count, &err), &err);
    refused(fs->stat(fs, out, &st, &err), &err);
    assert_int_equal(access(in, F_OK), 0);
    assert_int_equal(access(out, F_OK), 0);
}

static void without_a_root_there_are_no_files(void **state) {
    fixture *f = *state;
    ck_confined none;
    ck_error err = CK_ERROR_INIT;
    ck_file *file;
    OK(ck_confined_init(&none, ck_proc_mem(&f->t.proc, CK_MEM_PLAN), f->t.proc.fs, NULL, NULL, NULL));
    assert_int_equal(none.fs.open(&none.fs, at(f, "data/in"), CK_OPEN_READ, &file, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "the worker has no --data-root"));
    assert_int_equal(ck_confined_check_secret(&none, at(f, "secrets/key"), &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "the worker has no --secret-dir"));
    ck_confined_destroy(&none);
}

static void roots_are_directories(void **state) {
    fixture *f = *state;
    ck_confined c;
    ck_error err = CK_ERROR_INIT;
    ck_mem mem = ck_proc_mem(&f->t.proc, CK_MEM_PLAN);
    assert_int_equal(ck_confined_init(&c, mem, f->t.proc.fs, at(f, "none"), NULL, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, "--data-root"));
    assert_int_equal(ck_confined_init(&c, mem, f->t.proc.fs, at(f, "data"), at(f, "data/in"), &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "--secret-dir"));
}

static void secrets_are_below_their_directory_and_have_their_names(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    OK(ck_confined_check_secret(&f->c, at(f, "secrets/key"), &err));
    assert_int_equal(ck_confined_check_secret(&f->c, at(f, "secrets/../outside"), &err), CK_REFUSED);
    assert_int_equal(ck_confined_check_secret(&f->c, at(f, "data/in"), &err), CK_REFUSED);
    OK(ck_confined_check(&f->c, at(f, "secrets/key"), &err)); /* a library reads a certificate from there */
    OK(ck_confined_check(&f->c, at(f, "data/in"), &err));
    assert_int_equal(ck_confined_check(&f->c, at(f, "outside"), &err), CK_REFUSED);
    OK(ck_confined_check_env("CLINK_SECRET_X", &err));
    assert_int_equal(ck_confined_check_env("HOME", &err), CK_REFUSED);
    assert_int_equal(ck_confined_check_env("CLINK_SECRE", &err), CK_REFUSED);
}

static void zones_of_time_are_read(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    ck_file *file;
    ck_status s = f->c.fs.open(&f->c.fs, "/usr/share/zoneinfo/Europe/Berlin", CK_OPEN_READ, &file, &err);
    assert_true(s == CK_OK || s == CK_NOTFOUND);
    if (s == CK_OK) f->c.fs.close(file);
    refused(f->c.fs.open(&f->c.fs, "/usr/share/zoneinfo/../../../etc/passwd", CK_OPEN_READ, &file, &err), &err);
    refused(f->c.fs.open(&f->c.fs, "/usr/share/zoneinfo/new", CK_OPEN_CREATE, &file, &err), &err);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_below_the_root_is_as_ever),
        T(nothing_else_is_opened),
        T(nothing_else_is_changed),
        T(without_a_root_there_are_no_files),
        T(roots_are_directories),
        T(secrets_are_below_their_directory_and_have_their_names),
        T(zones_of_time_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
