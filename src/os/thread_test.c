#include "os/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "os/test_proc.h"

typedef struct seen {
    bool all_blocked;
    char name[32];
} seen;

static void *look(void *arg) {
    seen *s = arg;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    s->all_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1) &&
                     sigismember(&mask, SIGPIPE) && sigismember(&mask, SIGCHLD);
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    return s;
}

static void test_signals_are_blocked_and_the_name_is_set(void **state) {
    (void)state;
    seen s = {0};
    pthread_t t;
    void *result;
    assert_int_equal(ck_thread_start(&t, "a-name-that-is-too-long", look, &s, NULL), CK_OK);
    pthread_join(t, &result);
    assert_ptr_equal(result, &s);
    assert_true(s.all_blocked);
    assert_string_equal(s.name, "a-name-that-is-");
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_false(sigismember(&mine, SIGTERM)); /* the maker's own mask is as before */
}

static void test_limits_are_plausible(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    assert_in_range(ck_cores(), 1, 100000);
    assert_in_range(ck_memory_limit_bytes(&t.proc), 1 << 20, SIZE_MAX - 1);
    ck_test_proc_destroy(&t);
}

/* A file system that has only the files of a made-up container. */
typedef struct fake_file {
    ck_file base;
    const char *text;
    size_t at;
} fake_file;

static ck_status fake_open(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    (void)mode, (void)err;
    static const char *const files[][2] = {
        {"/proc/self/cgroup", "12:cpu:/elsewhere\n0::/pod/box\n"},
        {"/sys/fs/cgroup/pod/box/memory.max", "max\n"},
        {"/sys/fs/cgroup/pod/memory.max", "1048576\n"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(files); i++) {
        if (strcmp(files[i][0], path) != 0) continue;
        fake_file *f = malloc(sizeof *f);
        *f = (fake_file){.base = {fs}, .text = files[i][1]};
        *out = &f->base;
        return CK_OK;
    }
    return CK_NOTFOUND;
}
static ck_status fake_read(ck_file *file, void *p, size_t n, size_t *got, ck_error *err) {
    (void)err;
    fake_file *f = (fake_file *)file;
    size_t left = strlen(f->text) - f->at;
    *got = left < 3 ? left : 3; /* short reads */
    if (*got > n) *got = n;
    memcpy(p, f->text + f->at, *got);
    f->at += *got;
    return CK_OK;
}
static void fake_close(ck_file *f) { free(f); }

static void test_the_tightest_cgroup_level_binds(void **state) {
    (void)state;
    ck_fs fs = {.open = fake_open, .read = fake_read, .close = fake_close};
    ck_proc p = {.fs = &fs};
    assert_int_equal(ck_memory_limit_bytes(&p), 1048576);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_are_blocked_and_the_name_is_set),
        cmocka_unit_test(test_limits_are_plausible),
        cmocka_unit_test(test_the_tightest_cgroup_level_binds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
