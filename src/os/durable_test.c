#include "os/durable.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/vector.h"
#include "os/test_proc.h"

static const ck_fault_point durable_points[] = {
    CK_FAULT_DURABLE_AFTER_CREATE,  CK_FAULT_DURABLE_AFTER_WRITE,   CK_FAULT_DURABLE_AFTER_FSYNC,
    CK_FAULT_DURABLE_AFTER_PUBLISH, CK_FAULT_DURABLE_AFTER_DIRSYNC,
};

static void test_crc32c_known_vectors(void **state) {
    (void)state;
    assert_int_equal(ck_crc32c(0, "", 0), 0);
    assert_int_equal(ck_crc32c(0, NULL, 0), 0);
    assert_int_equal(ck_crc32c(0, "123456789", 9), 0xE3069283u);
    unsigned char block[32] = {0};
    assert_int_equal(ck_crc32c(0, block, 32), 0x8A9136AAu); /* RFC 3720, B.4 */
    memset(block, 0xFF, 32);
    assert_int_equal(ck_crc32c(0, block, 32), 0x62A8AB43u);
    for (unsigned i = 0; i < 32; i++) block[i] = (unsigned char)i;
    assert_int_equal(ck_crc32c(0, block, 32), 0x46DD794Eu);
    const char *digits = "123456789";
    for (size_t cut = 0; cut <= 9; cut++) /* more continues */
        assert_int_equal(ck_crc32c(ck_crc32c(0, digits, cut), digits + cut, 9 - cut), 0xE3069283u);
}

/* Or whatever this thread does afterwards is slow. */
static void test_crc32c_leaves_no_vector_state(void **state) {
    (void)state;
    static const unsigned char zeros[1 << 16];
    ck_vector_uppers_clear();
    assert_int_not_equal(ck_crc32c(0, zeros, sizeof zeros), 0);
    assert_false(ck_vector_uppers_in_use());
}

static ck_status read_back(ck_test_proc *t, const char *path, char *out, size_t bytes_max) {
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t->proc, CK_MEM_PLAN), bytes_max + (1 << 20));
    ck_view v;
    ck_status s = ck_fs_read_all(&t->proc, path, bytes_max - 1, &arena, &v, NULL);
    if (s == CK_OK) memcpy(out, v.p, v.n + 1);
    ck_arena_destroy(&arena);
    return s;
}

/* How many temporary files are left, and that each name is of the promised form. */
static size_t leftovers(ck_test_proc *t) {
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(&t->proc, CK_MEM_PLAN), 1 << 20);
    const char **names;
    size_t count, n = 0;
    assert_int_equal(t->proc.fs->list(t->proc.fs, t->dir, &arena, &names, &count, NULL), CK_OK);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], ".tmp-", 5) != 0) continue;
        assert_int_equal(strlen(names[i]), strlen(".tmp-final-") + 16);
        n++;
    }
    ck_arena_destroy(&arena);
    return n;
}

static uint64_t out_end, out_calls; /* of the file system below */

static void note_write_out(ck_file *f, uint64_t offset, uint64_t n) {
    assert_int_equal(offset, out_end);
    out_end += n, out_calls++;
    ck_fs_system()->write_out(f, offset, n);
}

static void test_a_large_file_goes_to_the_disk_while_it_is_made(void **state) {
    (void)state;
    enum { PIECE = 3 << 20, PIECES = 8 };
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256];
    snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
    ck_fs fs = *ck_fs_system();
    fs.write_out = note_write_out, out_end = out_calls = 0;
    t.proc.fs = &fs;
    char *piece = malloc(PIECE);
    ck_tmpfile f;
    assert_int_equal(ck_tmpfile_init(&f, &t.proc, ck_proc_mem(&t.proc, CK_MEM_PLAN), path, NULL), CK_OK);
    for (int i = 0; i < PIECES; i++) {
        memset(piece, 'a' + i, PIECE);
        assert_int_equal(ck_tmpfile_write(&f, piece, PIECE, NULL), CK_OK);
    }
    assert_true(out_calls >= 2 && out_end <= f.bytes && f.bytes - out_end < 8 << 20);
    assert_int_equal(ck_durable_publish(&f, NULL), CK_OK);
    ck_tmpfile_destroy(&f);
    char *whole = malloc((size_t)PIECE * PIECES + 1);
    assert_int_equal(read_back(&t, path, whole, (size_t)PIECE * PIECES + 1), CK_OK);
    for (int i = 0; i < PIECES; i++) assert_true(whole[i * PIECE] == 'a' + i && whole[(i + 1) * PIECE - 1] == 'a' + i);
    free(whole);
    free(piece);
    ck_test_proc_destroy(&t);
}

static void test_publish_is_exclusive_and_replace_is_not(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256], text[64];
    snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
    assert_int_equal(ck_durable_publish_bytes(&t.proc, path, CK_VIEW("one"), NULL), CK_OK);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_durable_publish_bytes(&t.proc, path, CK_VIEW("two"), &err), CK_EXISTS);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(read_back(&t, path, text, sizeof text), CK_OK);
    assert_string_equal(text, "one");
    assert_int_equal(ck_durable_replace_bytes(&t.proc, path, CK_VIEW("three"), NULL), CK_OK);
    assert_int_equal(read_back(&t, path, text, sizeof text), CK_OK);
    assert_string_equal(text, "three");
    assert_int_equal(leftovers(&t), 0);
    assert_int_equal(ck_durable_confirm(&t.proc, path, NULL), CK_OK);
    snprintf(path, sizeof path, "%s/missing", t.dir);
    assert_int_equal(ck_durable_confirm(&t.proc, path, &err), CK_NOTFOUND);
    ck_test_proc_destroy(&t);
}

static void test_bytes_and_checksum_of_what_was_written(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256], text[64];
    snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
    ck_tmpfile f;
    assert_int_equal(ck_tmpfile_init(&f, &t.proc, ck_proc_mem(&t.proc, CK_MEM_PLAN), path, NULL), CK_OK);
    assert_int_equal(ck_tmpfile_write(&f, "12345", 5, NULL), CK_OK);
    assert_int_equal(ck_tmpfile_fsync(&f, NULL), CK_OK);
    assert_int_equal(ck_tmpfile_write(&f, "6789", 4, NULL), CK_OK); /* writing on makes it unsynced again */
    assert_false(f.synced);
    assert_int_equal(leftovers(&t), 1);
    assert_int_equal(ck_durable_publish(&f, NULL), CK_OK);
    assert_int_equal(f.bytes, 9);
    assert_int_equal(f.crc32c, 0xE3069283u);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_tmpfile_write(&f, "x", 1, &err), CK_INVALID);
    ck_tmpfile_destroy(&f);
    ck_tmpfile_destroy(&f);
    assert_int_equal(read_back(&t, path, text, sizeof text), CK_OK);
    assert_string_equal(text, "123456789");
    assert_int_equal(leftovers(&t), 0);
    ck_test_proc_destroy(&t);
}

static void test_dropped_leaves_nothing(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256];
    snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
    ck_tmpfile f = {0};
    ck_tmpfile_destroy(&f); /* zero is fine */
    assert_int_equal(ck_tmpfile_init(&f, &t.proc, ck_proc_mem(&t.proc, CK_MEM_PLAN), path, NULL), CK_OK);
    ck_tmpfile_destroy(&f);
    assert_int_equal(leftovers(&t), 0);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_durable_publish_bytes(&t.proc, "/nowhere/at/all", CK_VIEW("x"), &err), CK_NOTFOUND);
    assert_int_equal(ck_durable_publish_bytes(&t.proc, "", CK_VIEW("x"), &err), CK_INVALID);
    assert_int_equal(ck_durable_publish_bytes(&t.proc, "dir/", CK_VIEW("x"), &err), CK_INVALID);
    assert_int_equal(chdir(t.dir), 0);
    assert_int_equal(ck_durable_publish_bytes(&t.proc, "final", CK_VIEW("x"), NULL), CK_OK); /* beside no slash */
    assert_int_equal(chdir("/"), 0);
    ck_test_proc_destroy(&t);
}

/* kill -9 at each point: the final name is absent or whole, before the publish step absent, after it whole. */
static void test_killed_at_each_point(void **state) {
    (void)state;
    for (size_t p = 0; p < CK_ARRAY_COUNT(durable_points); p++) {
        for (int replace = 0; replace < 2; replace++) {
            ck_test_proc t;
            ck_test_proc_init(&t);
            char path[256], text[64] = "", spec[64];
            snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
            if (replace) assert_int_equal(ck_durable_replace_bytes(&t.proc, path, CK_VIEW("before"), NULL), CK_OK);
            snprintf(spec, sizeof spec, "%s:1:kill", ck_fault_name(durable_points[p]));
            pid_t child = fork();
            if (child == 0) {
                if (ck_faults_parse(&t.faults, spec, NULL) != CK_OK) _exit(2);
                ck_status s = replace ? ck_durable_replace_bytes(&t.proc, path, CK_VIEW("content"), NULL)
                                      : ck_durable_publish_bytes(&t.proc, path, CK_VIEW("content"), NULL);
                _exit(s == CK_OK ? 0 : 1);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            bool published = durable_points[p] >= CK_FAULT_DURABLE_AFTER_PUBLISH;
            ck_status s = read_back(&t, path, text, sizeof text);
            assert_int_equal(s, published || replace ? CK_OK : CK_NOTFOUND);
            if (s == CK_OK) assert_string_equal(text, published ? "content" : "before");
            assert_int_equal(leftovers(&t), published ? 0 : 1);
            ck_test_proc_destroy(&t);
        }
    }
}

static void test_errors_at_each_point(void **state) {
    (void)state;
    for (size_t p = 0; p < CK_ARRAY_COUNT(durable_points); p++) {
        ck_test_proc t;
        ck_test_proc_init(&t);
        char path[256], text[64] = "";
        snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
        ck_faults_arm(&t.faults, durable_points[p], 1, CK_FAULT_ERROR);
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_durable_publish_bytes(&t.proc, path, CK_VIEW("content"), &err), CK_IO);
        assert_non_null(strstr(err.msg, ck_fault_name(durable_points[p])));
        assert_int_equal(leftovers(&t), 0); /* a living process cleans up after itself */
        bool published = durable_points[p] >= CK_FAULT_DURABLE_AFTER_PUBLISH;
        assert_int_equal(read_back(&t, path, text, sizeof text), published ? CK_OK : CK_NOTFOUND);
        assert_int_equal(ck_durable_publish_bytes(&t.proc, path, CK_VIEW("content"), &err),
                         published ? CK_EXISTS : CK_OK);
        ck_test_proc_destroy(&t);
    }
}

static void test_a_simulated_crash_cleans_up_nothing(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256];
    snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
    ck_faults_arm(&t.faults, CK_FAULT_DURABLE_AFTER_FSYNC, 1, CK_FAULT_CRASH);
    assert_int_equal(ck_durable_publish_bytes(&t.proc, path, CK_VIEW("content"), NULL), CK_CANCELLED);
    assert_int_equal(leftovers(&t), 1);
    ck_test_proc_destroy(&t);
}

static ck_status fail_write(ck_file *f, const void *p, size_t n, ck_error *err) {
    (void)f, (void)p, (void)n;
    return ck_fail_errno(err, 28, "writing");
}
static ck_status fail_fsync(ck_file *f, ck_error *err) {
    (void)f;
    return ck_fail_errno(err, 5, "syncing");
}
static ck_status fail_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    return ck_fail_errno(err, 5, "syncing %s", path);
}

static void test_after_a_failed_write_or_fsync_the_file_is_gone(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        ck_test_proc t;
        ck_test_proc_init(&t);
        char path[256], text[64];
        snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
        ck_fs fs = *ck_fs_system();
        if (which == 0) fs.write = fail_write;
        if (which == 1) fs.fsync = fail_fsync;
        if (which == 2) fs.fsync_dir = fail_fsync_dir;
        t.proc.fs = &fs;
        ck_tmpfile f;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_tmpfile_init(&f, &t.proc, ck_proc_mem(&t.proc, CK_MEM_PLAN), path, NULL), CK_OK);
        ck_status s = ck_tmpfile_write(&f, "content", 7, &err);
        if (s == CK_OK) s = ck_durable_publish(&f, &err);
        assert_int_equal(s, CK_IO);
        assert_true(err.retriable);
        assert_non_null(strstr(err.msg, which == 2 ? t.dir : path));
        if (which < 2) assert_int_equal(ck_durable_publish(&f, NULL), CK_INVALID); /* no second try on this file */
        assert_int_equal(leftovers(&t), 0);
        assert_int_equal(read_back(&t, path, text, sizeof text), which == 2 ? CK_OK : CK_NOTFOUND);
        ck_tmpfile_destroy(&f);
        ck_test_proc_destroy(&t);
    }
}

static void test_allocation_failures(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    char path[256];
    snprintf(path, sizeof path, "%s/final", ck_test_dir(&t));
    for (uint64_t n = 1;; n++) {
        ck_tracked_heap_fail_nth(t.heap, n);
        ck_error err = CK_ERROR_INIT;
        ck_status s = ck_durable_replace_bytes(&t.proc, path, CK_VIEW("content"), &err);
        if (!ck_tracked_heap_fired(t.heap)) {
            assert_int_equal(s, CK_OK);
            assert_true(n > 2);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
        assert_int_equal(ck_tracked_heap_live_blocks(t.heap), 0);
        assert_int_equal(leftovers(&t), 0);
    }
    ck_tracked_heap_fail_nth(t.heap, 0);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_known_vectors),
        cmocka_unit_test(test_crc32c_leaves_no_vector_state),
        cmocka_unit_test(test_a_large_file_goes_to_the_disk_while_it_is_made),
        cmocka_unit_test(test_publish_is_exclusive_and_replace_is_not),
        cmocka_unit_test(test_bytes_and_checksum_of_what_was_written),
        cmocka_unit_test(test_dropped_leaves_nothing),
        cmocka_unit_test(test_killed_at_each_point),
        cmocka_unit_test(test_errors_at_each_point),
        cmocka_unit_test(test_a_simulated_crash_cleans_up_nothing),
        cmocka_unit_test(test_after_a_failed_write_or_fsync_the_file_is_gone),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
