/* From state through snapshots and a manifest and back: bases and deltas, other parallelism, aborted checkpoints,
 * operator rows by mode, committables, damage, failing allocations. */
#include "checkpoint/sample_int.h"

#include "base/hash.h"

static uint64_t next_random(uint64_t *x) { return *x = ck_mix64(*x + 0x9E3779B97F4A7C15ULL); }

static void some_work(sample_job *j, uint64_t *x, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t keys[100];
        for (uint32_t k = 0; k < 100; k++) keys[k] = (uint32_t)(next_random(x) % (SAMPLE_KEYS + 1));
        /* distinct in one call, so that the note is that of the final count */
        for (uint32_t k = 0; k < 100; k++) assert_int_equal(sample_count(j, &keys[k], 1, 1), CK_OK);
        for (uint32_t k = 0; k < 5; k++) sample_erase(j, (uint32_t)(next_random(x) % (SAMPLE_KEYS + 1)));
    }
}

static uint32_t kinds_of(ck_checkpoint_dir *d, ck_proc *proc, uint64_t id, ck_file_kind kind) {
    ck_error err = CK_ERROR_INIT;
    ck_arena a;
    ck_manifest *m;
    uint32_t n = 0;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), SIZE_MAX);
    OK(ck_checkpoint_dir_read(d, id, &a, &m, &err));
    for (uint32_t i = 0; i < m->file_count; i++) n += m->files[i].kind == kind;
    ck_arena_destroy(&a);
    return n;
}

static void restores_at_any_parallelism(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j;
    uint64_t x = 1, id = 0;
    uint32_t parallelism = 4;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), parallelism);
    OK(sample_start(&j));
    for (int round = 0; round < 12; round++) {
        some_work(&j, &x, 2);
        for (int k = 0; k < 3; k++) {
            some_work(&j, &x, k == 0);
            id = ck_checkpoint_dir_next_id(d);
            OK(sample_checkpoint(&j, d, id, k == 1 ? CK_BARRIER_SAVEPOINT : CK_BARRIER_PERIODIC, &err));
            OK(ck_checkpoint_dir_mark_committed(d, id, &err));
            OK(ck_checkpoint_dir_retain(d, 2, &err));
        }
        sample_model want = j.model;
        some_work(&j, &x, 1); /* after the checkpoint: lost */
        sample_close(&j);
        parallelism = 1 + (uint32_t)(next_random(&x) % 7);
        sample_job again;
        OK(sample_restore(&again, d, id, &t.proc, parallelism, &err));
        again.model = want;
        sample_check(&again);
        j = again;
    }
    sample_close(&j);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

static void deltas_then_a_new_base(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 2);
    OK(sample_start(&j));
    uint64_t x = 9;
    some_work(&j, &x, 30);
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err));
    assert_int_equal(kinds_of(d, &t.proc, 1, CK_FILE_DELTA), 0);
    uint32_t rebases = 0, deltas_before = 0;
    for (uint64_t id = 2; id < 60; id++) {
        const uint32_t keys[] = {(uint32_t)id, (uint32_t)id + 100, SAMPLE_KEYS};
        for (int k = 0; k < 3; k++) assert_int_equal(sample_count(&j, &keys[k], 1, 1), CK_OK);
        sample_erase(&j, (uint32_t)id + 200);
        if (id % 7 == 0) { /* an aborted checkpoint between two: nothing may be lost */
            ck_subtask_snapshot *snap;
            for (uint32_t p = 0; p < 2; p++) {
                OK(ck_subtask_snapshot_begin(j.s[p].snapshots, 1000 + id, CK_BARRIER_PERIODIC, &snap, &err));
                ck_subtask_snapshots_aborted(j.s[p].snapshots, 1000 + id);
                ck_subtask_snapshot_end(j.s[p].snapshots, snap);
            }
            const uint32_t more = 300 + (uint32_t)id;
            assert_int_equal(sample_count(&j, &more, 1, 1), CK_OK);
        }
        OK(sample_checkpoint(&j, d, id, CK_BARRIER_PERIODIC, &err));
        OK(ck_checkpoint_dir_mark_committed(d, id, &err));
        OK(ck_checkpoint_dir_retain(d, 1, &err));
        uint32_t deltas = kinds_of(d, &t.proc, id, CK_FILE_DELTA);
        assert_true(deltas <= 2 * CK_DELTAS_MAX);
        rebases += deltas < deltas_before;
        deltas_before = deltas;
        sample_job again;
        if (id % 5 == 0) {
            OK(sample_restore(&again, d, id, &t.proc, 3, &err));
            again.model = j.model;
            sample_check(&again);
            sample_close(&again);
        }
    }
    assert_true(rebases > 0 && rebases < 50);
    sample_close(&j);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

static void an_unchanged_subtask_writes_nothing(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 1);
    OK(sample_start(&j));
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err)); /* no rows: a valid empty state */
    assert_int_equal(kinds_of(d, &t.proc, 1, CK_FILE_BASE), 1);
    OK(sample_checkpoint(&j, d, 2, CK_BARRIER_PERIODIC, &err));
    ck_arena a;
    ck_manifest *m;
    ck_arena_init(&a, j.mem, SIZE_MAX);
    OK(ck_checkpoint_dir_read(d, 2, &a, &m, &err));
    assert_int_equal(m->file_count, 1);
    assert_non_null(strstr(m->files[0].path, "/0/checkpoint-1.snap")); /* the older file */
    OK(ck_checkpoint_dir_mark_committed(d, 1, &err));
    OK(ck_checkpoint_dir_mark_committed(d, 2, &err));
    OK(ck_checkpoint_dir_retain(d, 1, &err)); /* manifest 1 goes, its file stays: 2 names it */
    sample_job again;
    assert_int_equal(ck_checkpoint_dir_read(d, 1, &a, &m, &err), CK_NOTFOUND);
    OK(sample_restore(&again, d, 2, &t.proc, 2, &err));
    sample_check(&again);
    sample_close(&again);
    ck_arena_destroy(&a);
    sample_close(&j);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

/* ---- operator rows ---- */

static void put_offset(sample_subtask *s, const char *name, int64_t v) {
    ck_error err = CK_ERROR_INIT;
    ck_budget b;
    ck_budget_init(&b, ck_heap_system(), 0);
    ck_column *c = ck_column_new((ck_mem){&b, CK_MEM_QUEUE}, CK_PHYS_I64, 1);
    c->i64[0] = v;
    OK(ck_state_row_put(s->agg, sample_offset_slot(), name, (const ck_column *const *)&c, 0, &err));
    ck_column_unref(&c);
}

static int64_t offset_of(sample_subtask *s, const char *name) {
    ck_error err = CK_ERROR_INIT;
    ck_table *t;
    OK(ck_state_table(s->agg, sample_offset_slot(), &t, &err));
    ck_table_scan scan = {0};
    ck_row *rows[16];
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 16)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (ck_view_is(ck_table_str(t, rows[i], 0), name))
                return ck_row_i64(rows[i], ck_table_layout(t)->fields[1].offset);
    return -1;
}

static void operator_rows_by_mode(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j;
    ck_arena a;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 3);
    OK(sample_start(&j));
    ck_arena_init(&a, j.mem, SIZE_MAX);
    for (uint32_t p = 0; p < 3; p++) { /* seven splits over three subtasks, one subtask without */
        ck_split_list l = {.arena = &a};
        for (uint32_t k = 0; k < 7 && p < 2; k++)
            if (k % 2 == p) {
                OK(ck_split_list_add(&l, ck_arena_printf(&a, "split-%u", 6 - k),
                                     ck_arena_printf(&a, "{\"at\":%u}", k)));
                l.splits[l.count - 1].order = k;
            }
        OK(ck_splits_store(j.s[p].agg, &l, &err));
        OK(ck_splits_store(j.s[p].agg, &l, &err)); /* again: the same */
        put_offset(&j.s[p], "shared", 10 + (p == 1) * 5);
        put_offset(&j.s[p], "own", p == 2 ? 77 : 0);
        const ck_committable c[] = {{ck_arena_printf(&a, "part-%u", p), 5 - p, "{\"bytes\":12}"},
                                    {ck_arena_printf(&a, "old-%u", p), 1, "{}"}};
        for (int k = 0; k < 2; k++) OK(ck_commits_put(j.s[p].agg, &c[k], &err));
        OK(ck_commits_forget(j.s[p].agg, 2, &err)); /* old-* are committed */
    }
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err));
    put_offset(&j.s[0], "shared", 1); /* a delta may lower its own subtask's value */
    put_offset(&j.s[1], "shared", 2);
    put_offset(&j.s[2], "shared", 3);
    OK(ck_state_row_erase(j.s[2].agg, sample_offset_slot(), "own", &err));
    OK(sample_checkpoint(&j, d, 2, CK_BARRIER_PERIODIC, &err));
    sample_close(&j);

    sample_job again;
    OK(sample_restore(&again, d, 1, &t.proc, 2, &err));
    for (uint32_t p = 0; p < 2; p++) { /* union: whole, the greater of equal ones */
        assert_int_equal(offset_of(&again.s[p], "shared"), 15);
        assert_int_equal(offset_of(&again.s[p], "own"), 77);
        ck_split_list l = {.arena = &a};
        bool known;
        OK(ck_splits_load(again.s[p].agg, &l, &known, &err));
        assert_true(known);
        assert_int_equal(l.count, p == 0 ? 4 : 3);
        for (uint32_t k = 0; k < l.count; k++) assert_int_equal(l.splits[k].order, 2 * k + p); /* dealt in order */
        assert_string_equal(l.splits[0].id, p == 0 ? "split-6" : "split-5");
        ck_committable *c;
        uint32_t n;
        OK(ck_commits_list(again.s[p].agg, &a, &c, &n, &err));
        assert_int_equal(n, 0); /* not in state: they are committed first */
    }
    sample_close(&again);
    OK(sample_restore(&again, d, 2, &t.proc, 5, &err));
    for (uint32_t p = 0; p < 5; p++) {
        assert_int_equal(offset_of(&again.s[p], "shared"), 3);
        assert_int_equal(offset_of(&again.s[p], "own"), 0);
        ck_split_list l = {.arena = &a};
        bool known;
        OK(ck_splits_load(again.s[p].agg, &l, &known, &err));
        assert_true(known && l.count == (p < 2 ? 2 : 1));
    }
    sample_close(&again);

    ck_manifest *m;
    ck_restore *r;
    const ck_committable *c;
    uint32_t n;
    OK(ck_checkpoint_dir_read(d, 1, &a, &m, &err));
    OK(ck_restore_new(&t.proc, j.mem, ck_checkpoint_dir_path(d), m, &r, &err));
    ck_split_list all = {.arena = &a};
    bool is_source;
    OK(ck_restore_want_committables(r, SAMPLE_VERTEX, &err));
    OK(ck_restore_want_splits(r, SAMPLE_VERTEX, &err)); /* of no target here */
    OK(ck_restore_run(r, &err));
    OK(ck_restore_splits(r, SAMPLE_VERTEX, &all, &is_source, &err));
    assert_true(is_source && all.count == 7);
    OK(ck_restore_splits(r, 12345, &all, &is_source, &err));
    assert_true(!is_source && all.count == 7);
    OK(ck_restore_committables(r, SAMPLE_VERTEX, &c, &n));
    assert_int_equal(n, 3);
    assert_string_equal(c[0].name, "part-2"); /* by checkpoint */
    assert_int_equal(c[0].checkpoint, 3);
    assert_string_equal(c[2].name, "part-0");
    assert_string_equal(c[2].payload, "{\"bytes\":12}");
    OK(ck_restore_committables(r, 12345, &c, &n));
    assert_int_equal(n, 0);
    ck_restore_free(r);
    ck_arena_destroy(&a);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

static void equal_committables_are_an_error(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j, again;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 2);
    OK(sample_start(&j));
    const ck_committable c = {"out/part-1", 1, "{}"};
    for (uint32_t p = 0; p < 2; p++) OK(ck_commits_put(j.s[p].agg, &c, &err));
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err));
    sample_close(&j);
    assert_int_equal(sample_restore(&again, d, 1, &t.proc, 1, &err), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "out/part-1"));
    sample_close(&again);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

/* ---- what does not fit ---- */

static void another_schema_is_refused(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j, again;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 1);
    OK(sample_start(&j));
    const uint32_t key = 3;
    assert_int_equal(sample_count(&j, &key, 1, 1), CK_OK);
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err));
    sample_close(&j);
    static const ck_type dec = {.kind = CK_TYPE_DECIMAL, .precision = 38, .scale = 2};
    ck_slot_schema other = *sample_slot();
    ck_field values[2] = {other.values[0], other.values[1]};
    values[0].type = &dec;
    other.values = values;
    OK(sample_restore(&again, d, 1, &t.proc, 1, &err));
    ck_table *table;
    assert_int_equal(ck_state_table(again.s[0].agg, &other, &table, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "agg")); /* slot, field and both types */
    assert_non_null(strstr(err.msg, "count(*)"));
    assert_non_null(strstr(err.msg, "BIGINT NOT NULL"));
    assert_non_null(strstr(err.msg, "DECIMAL(38,2)"));
    sample_close(&again);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

static void damage_is_named(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j, again;
    uint64_t x = 3;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 2);
    OK(sample_start(&j));
    some_work(&j, &x, 3);
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err));
    sample_close(&j);
    char path[256], command[600];
    snprintf(path, sizeof path, "%s/%llu/1/checkpoint-1.snap", ck_checkpoint_dir_path(d),
             (unsigned long long)SAMPLE_VERTEX);
    ck_stat st;
    OK(t.proc.fs->stat(t.proc.fs, path, &st, &err));
    ck_arena a;
    ck_view whole;
    ck_arena_init(&a, ck_proc_mem(&t.proc, CK_MEM_PLAN), SIZE_MAX);
    OK(ck_fs_read_all(&t.proc, path, 1 << 24, &a, &whole, &err));
    (void)command;
    for (size_t at = 0; at < whole.n; at += 1 + whole.n / 40) { /* a flipped bit here and there */
        char *bad = ck_arena_strndup(&a, whole.p, whole.n);
        bad[at] ^= 4;
        OK(ck_durable_replace_bytes(&t.proc, path, (ck_view){bad, whole.n}, &err));
        assert_int_equal(sample_restore(&again, d, 1, &t.proc, 1, &err), CK_CORRUPT);
        assert_non_null(strstr(err.msg, path));
        sample_close(&again);
    }
    OK(ck_durable_replace_bytes(&t.proc, path, (ck_view){whole.p, whole.n - 8}, &err));
    assert_int_equal(sample_restore(&again, d, 1, &t.proc, 1, &err), CK_CORRUPT);
    sample_close(&again);
    OK(t.proc.fs->unlink(t.proc.fs, path, &err));
    assert_int_equal(sample_restore(&again, d, 1, &t.proc, 1, &err), CK_NOTFOUND);
    assert_non_null(strstr(err.msg, path));
    sample_close(&again);
    ck_arena_destroy(&a);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

static void failing_allocations(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_error err = CK_ERROR_INIT;
    ck_checkpoint_dir *d;
    OK(sample_dir(&t.proc, ck_test_dir(&t), false, &d, &err));
    sample_job j;
    uint64_t x = 3;
    sample_open(&j, &t.proc, ck_checkpoint_dir_path(d), 2);
    OK(sample_start(&j));
    some_work(&j, &x, 3);
    OK(sample_checkpoint(&j, d, 1, CK_BARRIER_PERIODIC, &err));
    uint64_t id = 2;
    for (uint64_t nth = 1;; nth += 1 + nth / 16) { /* snapshots: the checkpoint fails, the state is whole */
        const uint32_t key = (uint32_t)(nth % SAMPLE_KEYS);
        assert_int_equal(sample_count(&j, &key, 1, 1), CK_OK);
        ck_tracked_heap_fail_nth(t.heap, nth);
        ck_status s = sample_checkpoint(&j, d, id++, CK_BARRIER_PERIODIC, &err);
        bool fired = ck_tracked_heap_fired(t.heap);
        ck_tracked_heap_fail_nth(t.heap, 0);
        assert_true(s == CK_OK || s == CK_NOMEM);
        sample_check(&j);
        if (!fired) break;
    }
    OK(sample_checkpoint(&j, d, id, CK_BARRIER_PERIODIC, &err));
    for (uint64_t nth = 1;; nth += 1 + nth / 16) { /* restores */
        sample_job again = {0};
        size_t before = ck_tracked_heap_live_blocks(t.heap);
        sample_open(&again, &t.proc, j.dir, 3);
        sample_close(&again);
        again = (sample_job){0};
        ck_arena a;
        ck_manifest *m;
        ck_restore *r = NULL;
        sample_open(&again, &t.proc, j.dir, 3);
        ck_arena_init(&a, j.mem, SIZE_MAX);
        ck_tracked_heap_fail_nth(t.heap, nth);
        ck_status s = ck_checkpoint_dir_read(d, id, &a, &m, &err);
        if (s == CK_OK) s = ck_restore_new(&t.proc, j.mem, j.dir, m, &r, &err);
        const uint64_t op = SAMPLE_VERTEX;
        for (uint32_t p = 0; p < 3 && s == CK_OK; p++) {
            const ck_restore_as as = {.stored = op};
            const ck_restore_target target = {again.s[p].store, &as, 1, p, 3, again.s[p].range};
            s = ck_restore_add(r, &target, &err);
        }
        if (s == CK_OK) s = ck_restore_run(r, &err);
        if (s == CK_OK) s = sample_start(&again);
        bool fired = ck_tracked_heap_fired(t.heap);
        ck_tracked_heap_fail_nth(t.heap, 0);
        if (s != CK_OK && s != CK_NOMEM) fail_msg("%llu: %s: %s", (unsigned long long)nth, ck_status_name(s), err.msg);
        ck_restore_free(r);
        ck_arena_destroy(&a);
        sample_close(&again);
        assert_int_equal(ck_tracked_heap_live_blocks(t.heap), before);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            break;
        }
    }
    sample_close(&j);
    ck_checkpoint_dir_close(d);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restores_at_any_parallelism),
        cmocka_unit_test(deltas_then_a_new_base),
        cmocka_unit_test(an_unchanged_subtask_writes_nothing),
        cmocka_unit_test(operator_rows_by_mode),
        cmocka_unit_test(equal_committables_are_an_error),
        cmocka_unit_test(another_schema_is_refused),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
