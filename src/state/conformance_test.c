/* One suite for all state backends: where rows are (memory, a file, RocksDB, mixtures) times how checkpoints keep them
 * (bases and deltas, a changelog with all rows inside or beside it). Each gets the same operations on slots of every
 * shape and the same checkpoints, some of them savepoints, some given up, with retention behind each; what its files
 * say is restored into every backend, at one subtask and at three, and must be the model's rows; and in the end all
 * have come to the same state, byte for byte. */
#include "state/store_rows_test_support.h"

#include "base/hash.h"
#include "checkpoint/changelog.h"
#include "checkpoint/directory.h"
#include "checkpoint/restore.h"
#include "os/durable.h"
#include "os/test_proc.h"
#include "state/mark.h"

enum { SEEDS = 2, CHECKPOINTS = 18, STEPS_FIRST = 150, STEPS = 3, DOMAIN = 200 };

static const struct {
    const char *name;
    ck_changelog_config changelog;
    ck_file_kind uses; /* files of this kind are restored from */
} keeping[] = {{"bases and deltas", {0}, CK_FILE_DELTA},
               {"a changelog, all rows inside", {CK_MATERIALISE_INSIDE, 3}, CK_FILE_CHANGELOG},
               {"a changelog, all rows beside", {CK_MATERIALISE_EXTERNAL, 1}, CK_FILE_MATERIALIZED}};

static const char *const uids[] = {"agg(a)<-t", "join(b)<-t"};

typedef struct run {
    world w;
    ck_test_proc t;
    ck_checkpoint_dir *d;
    ck_subtask_snapshots *snapshots;
    uint32_t kinds[CK_FILE_MATERIALIZED + 1]; /* of the files that manifests named */
} run;

/* ---- the same for all ---- */

static void on_the_one_row(world *w, ck_table *t, uint32_t slot, const ck_batch *b) {
    ck_error err = CK_ERROR_INIT;
    ck_row *row;
    bool fresh, had;
    assert_int_equal(ck_table_single(t, true, &row, &fresh, &err), CK_OK);
    remember(w, slot, b, 0, &had);
    assert_int_equal(fresh, !had);
    set_values(w, t, slot, row, b, 0);
}

/* Not on rows that the table numbers: numbers are its own. */
static void one_step(world *w) {
    uint32_t slot = (uint32_t)model_below(&w->seed, MODEL_SLOTS), rows = 1 + (uint32_t)model_below(&w->seed, 40);
    const ck_slot_schema *s = &w->slots[slot];
    ck_batch *b = model_batch(w->own, s, rows, s->bucketed ? 16 : w->domain, &w->seed);
    ck_table *t = w->tables[slot];
    if (s->bucketed)
        on_bucketed(w, t, slot, b);
    else if (s->order_count && !s->hashed && !s->listed)
        on_ordered(w, t, slot, b);
    else if (s->partition_count == 0)
        on_the_one_row(w, t, slot, b);
    else if (!s->listed || s->hashed)
        on_hash(w, t, slot, b);
    ck_batch_unref(&b);
    between_inputs(w);
}

/* ---- checkpoints ---- */

static void materialise(run *r) {
    ck_error err = CK_ERROR_INIT;
    if (!ck_materialisation_is_begun(r->snapshots)) return;
    ck_materialisation_start(r->snapshots);
    ck_materialisation_end(r->snapshots, ck_materialisation_run(r->snapshots, &err));
}

static ck_subtask_files *snapshot(run *r, uint64_t id, ck_barrier_kind kind) {
    ck_error err = CK_ERROR_INIT;
    ck_subtask_snapshot *snap;
    ck_subtask_files *files;
    if (ck_subtask_snapshot_begin(r->snapshots, id, kind, &snap, &err) != CK_OK) fail_msg("%s", err.msg);
    model then = model_clone(&r->w.now);
    for (int i = 0; i < 3; i++) one_step(&r->w); /* the mark is of before */
    if (ck_subtask_snapshot_run(snap, &files, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_subtask_snapshot_end(r->snapshots, snap);
    model_clear(&r->w.stored);
    r->w.stored = then;
    return files;
}

static void publish(run *r, uint64_t id, ck_barrier_kind kind, const ck_subtask_files *files) {
    ck_error err = CK_ERROR_INIT;
    ck_manifest_vertex v = {
        .id = ck_op_id(uids[0]), .ops = (const char **)(uintptr_t)uids, .op_count = 2, .parallelism = 1};
    const ck_manifest m = {.format = 1,
                           .job_name = "conformance",
                           .job_uuid = ck_checkpoint_dir_job_uuid(r->d),
                           .checkpoint = id,
                           .attempt = ck_checkpoint_dir_attempt(r->d),
                           .kind = kind,
                           .key_groups = GROUPS,
                           .graph = "{}",
                           .state_versions = "",
                           .vertices = &v,
                           .vertex_count = 1,
                           .files = files->files,
                           .file_count = files->file_count};
    for (uint32_t i = 0; i < files->file_count; i++) r->kinds[files->files[i].kind]++;
    if (ck_checkpoint_dir_publish(r->d, &m, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_subtask_snapshots_completed(r->snapshots, id);
    assert_int_equal(ck_checkpoint_dir_mark_committed(r->d, id, &err), CK_OK);
    if (ck_checkpoint_dir_retain(r->d, 1, &err) != CK_OK) fail_msg("%s", err.msg);
}

/* Every fourth is given up after it was written. */
static bool checkpoint(run *r, uint64_t id) {
    ck_barrier_kind kind = id % 5 == 0 ? CK_BARRIER_SAVEPOINT : CK_BARRIER_PERIODIC;
    model before = model_clone(&r->w.stored);
    ck_subtask_files *files = snapshot(r, id, kind);
    bool complete = id % 4 != 3;
    if (complete) {
        publish(r, id, kind, files);
    } else {
        ck_subtask_snapshots_aborted(r->snapshots, id);
        model_clear(&r->w.stored);
        r->w.stored = model_clone(&before);
    }
    model_clear(&before);
    ck_subtask_files_free(files);
    materialise(r);
    return complete;
}

/* ---- what the files say ---- */

static void add_rows(ck_state_store *s, model *to) {
    ck_error err = CK_ERROR_INIT;
    ck_state_mark *m;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n;
    char key[8 + 4096];
    assert_int_equal(ck_state_mark_take(s, 0, &m, &err), CK_OK);
    assert_int_equal(ck_mark_scan_new(m, CK_MARK_BASE, &scan, &err), CK_OK);
    do {
        assert_int_equal(ck_mark_scan_next(scan, &rows, &n, &err), CK_OK);
        for (uint32_t i = 0; i < n; i++) {
            memcpy(key, &rows[i].op_id, 8);
            memcpy(key + 8, rows[i].key.p, rows[i].key.n);
            model_put(to, (ck_view){key, rows[i].key.n + 8}, rows[i].value);
        }
    } while (n > 0);
    ck_mark_scan_free(scan);
    ck_state_mark_release(m);
}

static void restored_is(run *r, uint64_t id, const backend *b, uint32_t parallelism) {
    ck_error err = CK_ERROR_INIT;
    ck_arena a;
    ck_manifest *m;
    ck_restore *restore;
    world into[3];
    model found = {0};
    const ck_restore_as ops[] = {{ck_op_id(uids[0]), NULL}, {ck_op_id(uids[1]), NULL}};
    ck_arena_init(&a, r->w.own, SIZE_MAX);
    if (ck_checkpoint_dir_read(r->d, id, &a, &m, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_restore_new(&r->t.proc, r->w.own, ck_checkpoint_dir_path(r->d), m, &restore, &err), CK_OK);
    for (uint32_t p = 0; p < parallelism; p++) {
        world_open(&into[p], b, 5, DOMAIN, GROUPS);
        ck_state_store_free(into[p].store);
        ck_key_group_range range = ck_key_group_range_for_subtask(p, parallelism, GROUPS);
        open_store(&into[p], range, 99);
        const ck_restore_target t = {into[p].store, ops, 2, p, parallelism, range};
        assert_int_equal(ck_restore_add(restore, &t, &err), CK_OK);
    }
    if (ck_restore_run(restore, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_restore_free(restore);
    for (uint32_t p = 0; p < parallelism; p++) {
        add_rows(into[p].store, &found);
        world_close(&into[p]);
    }
    model_assert_equal(&found, &r->w.stored);
    model_clear(&found);
    ck_arena_destroy(&a);
}

/* ---- a run ---- */

static void run_open(run *r, const backend *b, ck_changelog_config changelog, uint64_t seed) {
    ck_error err = CK_ERROR_INIT;
    *r = (run){0};
    ck_test_proc_init(&r->t);
    world_open(&r->w, b, seed, DOMAIN, GROUPS);
    open_tables(&r->w);
    const ck_checkpoint_dir_config dir = {
        .proc = &r->t.proc, .mem = r->w.own, .path = ck_test_dir(&r->t), .job_name = "conformance"};
    assert_int_equal(ck_checkpoint_dir_open(&dir, &r->d, &err), CK_OK);
    const ck_subtask_snapshots_config cfg = {.proc = &r->t.proc,
                                             .mem = r->w.own,
                                             .dir = ck_checkpoint_dir_path(r->d),
                                             .vertex = ck_op_id(uids[0]),
                                             .parallelism = 1,
                                             .key_groups = GROUPS,
                                             .range = {0, GROUPS - 1},
                                             .store = r->w.store,
                                             .changelog = changelog};
    assert_int_equal(ck_subtask_snapshots_new(&cfg, &r->snapshots, &err), CK_OK);
}

static void run_close(run *r) {
    ck_subtask_snapshots_free(r->snapshots);
    ck_checkpoint_dir_close(r->d);
    world_close(&r->w);
    ck_test_proc_destroy(&r->t);
}

static uint64_t digest(const model *m) {
    uint64_t h = CK_FNV_OFFSET;
    for (size_t i = 0; i < m->n; i++) {
        h = ck_fnv1a_more(h, m->e[i].key, m->e[i].key_n);
        h = ck_fnv1a_more(h, m->e[i].value, m->e[i].value_n);
    }
    return h;
}

static uint64_t on_one(const backend *b, size_t way, uint64_t seed, size_t *rows) {
    run r;
    run_open(&r, b, keeping[way].changelog, seed);
    uint64_t newest = 0;
    size_t other = (size_t)(b - backends);
    for (uint64_t id = 1; id <= CHECKPOINTS; id++) {
        for (int i = 0; i < (id == 1 ? STEPS_FIRST : STEPS); i++) one_step(&r.w);
        if (!checkpoint(&r, id)) continue;
        newest = id;
        other = (other + 1) % CK_ARRAY_COUNT(backends);
        restored_is(&r, id, &backends[other], id % 2 ? 3 : 1);
    }
    for (size_t i = 0; i < CK_ARRAY_COUNT(backends); i++) restored_is(&r, newest, &backends[i], i % 2 ? 1 : 3);
    uint64_t d = digest(&r.w.stored);
    *rows = r.w.stored.n;
    assert_true(r.kinds[keeping[way].uses] > 0);
    run_close(&r);
    return d;
}

static void all_backends_come_to_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t want = 0;
        for (size_t k = 0; k < CK_ARRAY_COUNT(keeping); k++)
            for (size_t b = 0; b < CK_ARRAY_COUNT(backends); b++) {
                size_t rows;
                uint64_t d = on_one(&backends[b], k, seed, &rows);
                print_message("    %-34s %-30s %5zu rows, %016llx\n", backends[b].name, keeping[k].name, rows,
                              (unsigned long long)d);
                assert_true(rows > 300);
                if (want) assert_int_equal(d, want);
                want = d;
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_backends_come_to_the_same)};
    return cmocka_run_group_tests(tests, make_rocks, free_rocks);
}
