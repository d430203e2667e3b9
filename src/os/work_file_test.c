/* Working memory in a file: grows, keeps what is written also when it has left RAM, leaves nothing behind, and says in
 * a sentence where there is no room. */
#include "os/work_file.h"

#include "os/test_proc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static ck_mem mem_of(ck_test_proc *t) { return (ck_mem){&t->proc.budget, CK_MEM_STATE}; }

static void what_is_written_comes_back(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char dir[128];
    snprintf(dir, sizeof dir, "%s/work", ck_test_dir(&t)); /* made */
    ck_work_file *f;
    assert_int_equal(ck_work_file_new(mem_of(&t), dir, 8 * MIB, &f, NULL), CK_OK);
    uint8_t *p = ck_work_file_base(f);
    assert_int_equal((uintptr_t)p % (2 * MIB), 0);
    assert_int_equal(ck_work_file_bytes(f), 0);
    for (unsigned part = 0; part < 4; part++) {
        assert_int_equal(ck_work_file_grow(f, MIB, NULL), CK_OK);
        for (size_t i = 0; i < MIB; i += 512) {
            assert_int_equal(p[part * MIB + i], 0);
            p[part * MIB + i] = (uint8_t)(part * 31 + i / 512 + 1);
        }
        ck_work_file_page_out(f, 0, ck_work_file_bytes(f));
        ck_work_file_write_back(f, 0, ck_work_file_bytes(f));
    }
    for (unsigned part = 0; part < 4; part++)
        for (size_t i = 0; i < MIB; i += 512) assert_int_equal(p[part * MIB + i], (uint8_t)(part * 31 + i / 512 + 1));
    ck_arena a;
    ck_arena_init(&a, mem_of(&t), SIZE_MAX);
    const char **names;
    size_t count;
    assert_int_equal(t.proc.fs->list(t.proc.fs, dir, &a, &names, &count, NULL), CK_OK);
    assert_int_equal(count, 0); /* it has no name */
    ck_arena_destroy(&a);
    ck_work_file_free(f);
    ck_work_file_free(NULL);
    assert_int_equal(t.proc.fs->rmdir(t.proc.fs, dir, NULL), CK_OK);
    ck_test_proc_destroy(&t);
}

static void no_room_is_an_answer(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_work_file *f;
    assert_int_equal(ck_work_file_new(mem_of(&t), ck_test_dir(&t), 4 * MIB, &f, NULL), CK_OK);
    assert_int_equal(ck_work_file_grow(f, 4096, NULL), CK_OK);
    ck_work_file_base(f)[0] = 7;
    assert_int_equal(ck_work_file_grow(f, 4 * MIB, &err), CK_FULL);
    assert_non_null(strstr(err.msg, t.dir));
    struct rlimit was, is; /* a disk that is full at 1 MiB */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    is = (struct rlimit){MIB, was.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &is), 0);
    assert_int_equal(ck_work_file_grow(f, 2 * MIB, &err), CK_IO);
    assert_non_null(strstr(err.msg, "could not reserve space for a file of working memory"));
    assert_int_equal(ck_work_file_bytes(f), 4096);
    assert_int_equal(ck_work_file_base(f)[0], 7);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(ck_work_file_grow(f, 2 * MIB, NULL), CK_OK);
    ck_work_file_free(f);
    assert_int_equal(ck_work_file_new(mem_of(&t), "/proc/no/such", MIB, &f, &err), CK_IO);
    assert_non_null(strstr(err.msg, "/proc/no/such"));
    for (uint64_t n = 1;; n++) {
        ck_tracked_heap_fail_nth(t.heap, n);
        ck_status s = ck_work_file_new(mem_of(&t), t.dir, MIB, &f, NULL);
        if (s == CK_OK) ck_work_file_free(f);
        if (!ck_tracked_heap_fired(t.heap)) break;
        assert_int_not_equal(s, CK_OK);
    }
    ck_tracked_heap_fail_nth(t.heap, 0);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_comes_back),
                                       cmocka_unit_test(no_room_is_an_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
