/* The database below cold rows, and what a store says when it fails: which key groups are found, snapshots, a folder
 * that will not do, bytes on disk that are not what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <glob.h>
#include <cmocka.h>

#include "os/modules.h"
#include "state/rocks_int.h"
#include "state/state_int.h"

typedef struct world {
    ck_budget budget;
    ck_mem mem;
    ck_proc proc;
    ck_rocks *db;
    char dir[64];
} world;

static int setup(void **state) {
    static world w;
    ck_error err = CK_ERROR_INIT;
    w = (world){.dir = "/tmp/clink-rocks-test-XXXXXX"};
    ck_budget_init(&w.budget, ck_heap_system(), 0);
    w.mem = (ck_mem){&w.budget, CK_MEM_STATE};
    *state = &w;
    if (!mkdtemp(w.dir) || ck_modules_new(ck_heap_system(), &w.proc.modules, &err) != CK_OK) return -1;
    if (ck_rocks_new(&w.proc, w.mem, w.dir, &w.db, &err) == CK_OK) return 0;
    print_error("%s\n", err.msg);
    return -1;
}

static int teardown(void **state) {
    world *w = *state;
    ck_rocks_free(w->db);
    ck_modules_free(w->proc.modules);
    assert_int_equal(ck_budget_total(&w->budget), 0);
    return rmdir(w->dir); /* nothing is left in it */
}

static ck_view key(const char *user, const char *rest) {
    static char room[8][64];
    static unsigned next;
    char *p = room[next++ % 8];
    size_t n = strlen(user);
    memcpy(p, "r\0\1\0\2", 5);
    p[5] = CK_ROCKS_GROUPED;
    memcpy(p + 6, (char[]){0, 0, 0, (char)n}, 4);
    memcpy(p + 10, user, n);
    memcpy(p + 10 + n, rest, strlen(rest));
    return (ck_view){p, 10 + n + strlen(rest)};
}

static ck_status count_found(void *arg, uint32_t i, ck_view value) {
    (void)i;
    *(size_t *)arg += value.n;
    return CK_OK;
}

static void groups_and_snapshots(void **state) {
    world *w = *state;
    ck_error err = CK_ERROR_INIT;
    assert_false(ck_rocks_is_open(w->db));
    assert_int_equal(ck_rocks_open(w->db, &err), CK_OK);
    ck_rocks_batch *b = ck_rocks_batch_new(w->db);
    ck_rocks_put(w->db, b, key("ann", "1"), ck_view_of("x"));
    ck_rocks_put(w->db, b, key("ann", "2"), ck_view_of("yy"));
    ck_rocks_put(w->db, b, key("anna", "1"), ck_view_of("zzz"));
    assert_int_equal(ck_rocks_write(w->db, b, &err), CK_OK);
    const ck_rocks_snapshot *then = ck_rocks_snapshot_take(w->db);
    ck_rocks_delete_range(w->db, b, key("ann", "1"), key("ann", "3"));
    assert_int_equal(ck_rocks_write(w->db, b, &err), CK_OK);
    const ck_view all[] = {key("ann", "1"), key("ann", "2"), key("anna", "1"), key("bob", "1")};
    size_t before = 0, now = 0;
    assert_int_equal(ck_rocks_get_many(w->db, then, all, 4, count_found, &before, &err), CK_OK);
    assert_int_equal(ck_rocks_get_many(w->db, NULL, all, 4, count_found, &now, &err), CK_OK);
    assert_int_equal(before, 6);
    assert_int_equal(now, 3);
    ck_rocks_iterator *it = ck_rocks_iterate(w->db, then, true);
    bool any;
    ck_view k, v;
    unsigned n = 0;
    for (ck_rocks_seek(w->db, it, key("ann", ""));; ck_rocks_next(w->db, it), n++) {
        assert_int_equal(ck_rocks_at(w->db, it, &any, &k, &v, &err), CK_OK);
        if (!any || k.n != key("ann", "1").n) break; /* anna's is longer */
    }
    assert_int_equal(n, 2);
    ck_rocks_iterator_free(w->db, it);
    ck_rocks_snapshot_release(w->db, then);
    ck_rocks_batch_free(w->db, b);
}

/* Two stores of one number would have each other's rows. */
static void a_store_too_many_is_refused(void **state) {
    world *w = *state;
    ck_error err = CK_ERROR_INIT;
    uint16_t number;
    for (uint32_t i = 0; i <= UINT16_MAX; i++) {
        assert_true(ck_rocks_store_number(w->db, &number));
        assert_int_equal(number, i);
    }
    ck_state_store *store;
    const ck_state_config cfg = {.proc = &w->proc, .mem = w->mem, .key_groups = 128, .range = {0, 127}};
    assert_int_equal(ck_state_store_new(&cfg, &store, &err), CK_OK);
    assert_int_equal(ck_state_evict_to(store, w->db, &err), CK_FULL);
    assert_non_null(strstr(err.msg, "65536 subtasks"));
    ck_state_store_free(store);
}

static void a_folder_that_will_not_do(void **state) {
    world *w = *state;
    ck_rocks *other;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_rocks_new(&w->proc, w->mem, "/dev/null/x", &other, &err), CK_IO);
    assert_non_null(strstr(err.msg, "/dev/null/x"));
    ck_proc bare = {0};
    assert_int_equal(ck_rocks_new(&bare, w->mem, w->dir, &other, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "librocksdb"));
}

/* What comes second says what came first: not that something is there already. */
static void opening_fails_once(void **state) {
    world *w = *state;
    ck_error first = CK_ERROR_INIT, second = CK_ERROR_INIT;
    char path[128];
    glob_t found;
    (void)snprintf(path, sizeof path, "%s/clink-rocksdb-*", w->dir);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    (void)snprintf(path, sizeof path, "%s/db", found.gl_pathv[0]);
    globfree(&found);
    FILE *f = fopen(path, "w"); /* no folder can be there */
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(ck_rocks_open(w->db, &first), CK_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ck_rocks_open(w->db, &second), CK_IO);
    assert_string_equal(second.msg, first.msg);
    assert_non_null(strstr(first.msg, path));
}

static void no_memory_for_its_buffers(void **state) {
    world *w = *state;
    ck_error err = CK_ERROR_INIT;
    w->budget.limit = ck_budget_total(&w->budget) + 1000;
    assert_int_equal(ck_rocks_open(w->db, &err), CK_NOMEM);
    assert_non_null(strstr(err.msg, "rocksdb"));
    assert_false(ck_rocks_is_open(w->db));
    w->budget.limit = 0;
    assert_int_equal(ck_rocks_open(w->db, &err), CK_OK);
}

/* ---- a store whose rows cannot be read again ---- */

enum { KEYS = 200000 };

static ck_table *table_of(world *w, ck_state_store **store) {
    static const ck_field k = {"k", NULL, false}, v = {"v", NULL, false};
    static ck_field fields[2];
    ck_error err = CK_ERROR_INIT;
    fields[0] = k, fields[1] = v;
    fields[0].type = fields[1].type = ck_type_simple(CK_TYPE_BIGINT);
    const ck_slot_schema schema = {.slot = "agg",
                                   .state_type = "group_agg",
                                   .version = 1,
                                   .mode = CK_SLOT_KEYED,
                                   .partition = &fields[0],
                                   .partition_count = 1,
                                   .values = &fields[1],
                                   .value_count = 1};
    const ck_state_config cfg = {.proc = &w->proc, .mem = w->mem, .key_groups = 128, .range = {0, 127}, .hash_seed = 3};
    ck_state *st;
    ck_table *t;
    assert_int_equal(ck_state_store_new(&cfg, store, &err), CK_OK);
    assert_int_equal(ck_state_evict_to(*store, w->db, &err), CK_OK);
    assert_int_equal(ck_state_of(*store, "op", "group_agg", &st, &err), CK_OK);
    if (ck_state_table(st, &schema, &t, &err) != CK_OK) fail_msg("%s", err.msg);
    return t;
}

static void damage(const world *w) {
    char pattern[128];
    glob_t files;
    (void)snprintf(pattern, sizeof pattern, "%s/clink-rocksdb-*/db/*.sst", w->dir);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *f = fopen(files.gl_pathv[i], "r+");
        assert_non_null(f);
        static const char zeros[4096];
        (void)fseek(f, 0, SEEK_END);
        for (long left = ftell(f), at = 0; left > 0; left -= 4096, at += 4096) {
            (void)fseek(f, at, SEEK_SET);
            (void)fwrite(zeros, 1, left < 4096 ? (size_t)left : 4096, f);
        }
        (void)fclose(f);
    }
    globfree(&files);
}

static void damaged_rows_end_the_job(void **state) {
    world *w = *state;
    ck_state_store *store;
    ck_error err = CK_ERROR_INIT;
    w->budget.limit = 64 << 20; /* small buffers: files come soon */
    ck_table *t = table_of(w, &store);
    for (int64_t i = 0; i < KEYS; i++) {
        int64_t v[2] = {i, i};
        char bytes[16];
        memcpy(bytes, v, sizeof bytes);
        const ck_stored_put p = {{bytes, 8}, {bytes + 8, 8}, 0};
        if (ck_table_stored_put(t, &p, UINT32_MAX) != CK_OK) fail();
    }
    assert_int_equal(ck_state_evict(store, SIZE_MAX, &err), CK_OK);
    assert_int_equal(ck_table_row_count(t), KEYS);
    assert_int_equal(ck_state_cold_rows(store), KEYS);
    damage(w);
    ck_table_scan scan = {0};
    ck_row *rows[256];
    uint64_t seen = 0;
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 256)) > 0;) seen += n;
    assert_true(seen < KEYS);
    assert_int_equal(ck_state_trim(store, &err), CK_CORRUPT); /* a walk cannot say it: the next who can does */
    assert_non_null(strstr(err.msg, "state in RocksDB under"));
    ck_state_mark *mark;
    err = CK_ERROR_INIT;
    assert_int_equal(ck_state_mark_take(store, 1, &mark, &err), CK_CORRUPT);
    assert_non_null(strstr(err.msg, w->dir));
    ck_state_store_free(store);
    w->budget.limit = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_and_snapshots, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_too_many_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_will_not_do, setup, teardown),
        cmocka_unit_test_setup_teardown(opening_fails_once, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_for_its_buffers, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_rows_end_the_job, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
