/* Rows written ahead over the simulated file system: what is read is what was written, damage and loss are said. */
#include "connector/write_ahead.h"

#include "connector/connectors.h"
#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    ck_simfs *sim;
    harness h;
    held_io io;
    ck_write_ahead w;
    size_t rows;
    char seen[4096];
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    assert_int_equal(ck_simfs_new(&f->sim, 1), CK_OK);
    f->proc.proc.fs = ck_simfs_base(f->sim);
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    f->h.settings.checkpoints = true;
    f->h.settings.checkpoint_dir = "/ck";
    /* Any committing sink will do for a context with the slot of committables. */
    harness_input(&f->h, "k BIGINT", CK_MODE_APPEND);
    harness_start(&f->h, &ck_op_sink_file,
                  "{\"table\":\"o\",\"options\":{\"path\":\"/out\",\"format\":\"json\"},\"primary_key\":[]}", NULL);
    harness_ok(&f->h, ck_write_ahead_init(&f->w, &f->h.ctx, f->h.mem));
    *state = f;
    return 0;
}

static void run_io(fixture *f) {
    while (held_run_one(&f->h)) {
    }
}

static int teardown(void **state) {
    fixture *f = *state;
    run_io(f);
    ck_write_ahead_destroy(&f->w);
    harness_destroy(&f->h);
    ck_simfs_free(f->sim);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

static ck_view text(const char *z) { return z ? ck_view_of(z) : (ck_view){0}; }

static void add(fixture *f, const char *key, const char *value) {
    harness_ok(&f->h, ck_write_ahead_add(&f->w, text(key), text(value), &f->h.ctx));
}

/* The committables of what was prepared; they stay until forgotten. */
static ck_committable *prepare(fixture *f, uint64_t checkpoint, uint32_t *count) {
    ck_committable *list;
    harness_ok(&f->h, ck_write_ahead_prepare(&f->w, checkpoint, &f->h.ctx));
    run_io(f);
    harness_ok(&f->h, ck_commits_list(f->h.ctx.state, &f->h.plan, &list, count, &f->h.error));
    return list;
}

static ck_status see(void *arg, ck_view key, ck_view value, ck_error *err) {
    (void)err;
    fixture *f = arg;
    char *at = f->seen + strlen(f->seen);
    f->rows++;
    if (strlen(f->seen) > 3000) return CK_OK;
    sprintf(at, "%s%.*s=%s%.*s;", key.p ? "" : "-", (int)key.n, key.p ? key.p : "", value.p ? "" : "-", (int)value.n,
            value.p ? value.p : "");
    return CK_OK;
}

static ck_status read_all(fixture *f, const ck_committable *c, const char *dir) {
    ck_write_ahead_file file;
    f->rows = 0;
    f->seen[0] = 0;
    harness_ok(&f->h, ck_write_ahead_parse(&f->h.plan, dir, c, &file, &f->h.error));
    return ck_write_ahead_read(&f->proc.proc, f->h.mem, &file, see, f, &f->h.error);
}

static void test_rows_come_back(void **state) {
    fixture *f = *state;
    uint32_t n;
    add(f, "k", "v");
    add(f, NULL, "only");
    add(f, "gone", NULL);
    add(f, "", "");
    const ck_committable *c = prepare(f, 7, &n);
    assert_int_equal(n, 1);
    assert_int_equal(c->checkpoint, 7);
    assert_int_equal(read_all(f, c, "/ck"), CK_OK);
    assert_string_equal(f->seen, "k=v;-=only;gone=-;=;");
    assert_int_equal(read_all(f, c, "/moved"), CK_OK); /* where it was recorded */
    prepare(f, 8, &n);
    assert_int_equal(n, 1); /* an epoch without rows has none */
}

static void test_large_rows_and_many(void **state) {
    fixture *f = *state;
    uint32_t n;
    static char big[700000];
    memset(big, 'x', sizeof big - 1);
    add(f, "big", big);
    for (int i = 0; i < 100000; i++) add(f, "key", "value");
    harness_ok(&f->h, ck_write_ahead_flush(&f->w, &f->h.ctx));
    const ck_committable *c = prepare(f, 1, &n);
    ck_write_ahead_file file;
    harness_ok(&f->h, ck_write_ahead_parse(&f->h.plan, "/ck", c, &file, &f->h.error));
    assert_int_equal(file.rows, 100001);
    f->rows = 0;
    memset(f->seen, 'x', 3001); /* full: only counted */
    f->seen[3001] = 0;
    assert_int_equal(ck_write_ahead_read(&f->proc.proc, f->h.mem, &file, see, f, &f->h.error), CK_OK);
    assert_int_equal(f->rows, 100001);
}

static void test_damage_and_loss(void **state) {
    fixture *f = *state;
    uint32_t n;
    add(f, "k", "v");
    add(f, "l", "w");
    const ck_committable *c = prepare(f, 3, &n);
    ck_write_ahead_file file;
    ck_view whole;
    harness_ok(&f->h, ck_write_ahead_parse(&f->h.plan, "/ck", c, &file, &f->h.error));
    harness_ok(&f->h, ck_fs_read_all(&f->proc.proc, file.path, 1 << 20, &f->h.plan, &whole, &f->h.error));
    char damaged[64];
    for (size_t at = 0; at < whole.n; at++) { /* any bit, any cut */
        memcpy(damaged, whole.p, whole.n);
        damaged[at] ^= 4;
        write_sim_file(f->sim, file.path, damaged, whole.n);
        assert_int_equal(read_all(f, c, "/ck"), CK_CORRUPT);
        write_sim_file(f->sim, file.path, whole.p, at);
        assert_int_equal(read_all(f, c, "/ck"), CK_CORRUPT);
    }
    assert_non_null(strstr(f->h.error.msg, file.path));
    harness_ok(&f->h, ck_write_ahead_drop(&f->proc.proc, &file, &f->h.error));
    harness_ok(&f->h, ck_write_ahead_drop(&f->proc.proc, &file, &f->h.error));
    assert_int_equal(read_all(f, c, "/ck"), CK_CORRUPT);
    assert_non_null(strstr(f->h.error.msg, "lost"));
}

static void test_others_go(void **state) {
    fixture *f = *state;
    uint32_t n;
    const char **names;
    size_t count;
    add(f, "k", "v");
    prepare(f, 1, &n);
    add(f, "k", "v");
    ck_committable *c = prepare(f, 2, &n);
    assert_int_equal(n, 2);
    write_sim_file(f->sim, "/ck/write-ahead/something", "x", 1);
    harness_ok(&f->h, ck_write_ahead_drop_others(&f->proc.proc, f->h.mem, "/ck", f->h.settings.job_uuid, f->h.ctx.op_id,
                                                 &c[1], 1, &f->h.error));
    harness_ok(&f->h,
               f->proc.proc.fs->list(f->proc.proc.fs, "/ck/write-ahead", &f->h.plan, &names, &count, &f->h.error));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "something");
    assert_string_equal(names[1], c[1].name);
    assert_int_equal(ck_write_ahead_drop_others(&f->proc.proc, f->h.mem, "/nothing", f->h.settings.job_uuid,
                                                f->h.ctx.op_id, NULL, 0, &f->h.error),
                     CK_OK);
}

static void test_what_is_no_committable(void **state) {
    fixture *f = *state;
    ck_write_ahead_file file;
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"file\":1}",
        "{\"file\":\"f\",\"bytes\":-1,\"crc32c\":0,\"rows\":0,\"job\":\"j\",\"op\":1,\"writer\":0}",
        "{\"file\":\"f\",\"bytes\":1,\"crc32c\":0,\"rows\":0,\"job\":\"j\",\"op\":1,\"writer\":5000000000}"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_committable c = {"wal", 1, bad[i]};
        assert_int_equal(ck_write_ahead_parse(&f->h.plan, "/ck", &c, &file, &f->h.error), CK_CORRUPT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_rows_and_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_and_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_committable, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
