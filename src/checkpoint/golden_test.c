/* Golden files: all rows, changes on them and a manifest as some version once wrote them, read by every later build: a
 * base and a delta in tests/golden/state/, changelog files in tests/golden/changelog_inside/ and _external/.
 * `test.checkpoint.golden --write DIR [state|inside|external]` writes the same content with this build: for the readers
 * in other languages (tests/system/test_snapshot_format.py), and for new golden files when a format gets a new version.
 */
#include "checkpoint/sample_int.h"

#include <stdio.h>

typedef enum layout { LAYOUT_DELTA, LAYOUT_INSIDE, LAYOUT_EXTERNAL, LAYOUTS } layout;
static const char *const layouts[] = {"state", "inside", "external"};
static const char *const golden[] = {"tests/golden/state", "tests/golden/changelog_inside",
                                     "tests/golden/changelog_external"};
/* The two files of each, and what the second says it stands on. */
static const struct {
    const char *all, *changes, *parent;
    ck_file_kind all_kind, changes_kind;
} names[] = {
    {"1/0/checkpoint-7.snap", "1/0/delta-8.snap", "1/0/checkpoint-7.snap", CK_FILE_BASE, CK_FILE_DELTA},
    {"1/0/changelog-7.snap", "1/0/changelog-8.snap", "1/0/changelog-7.snap", CK_FILE_CHANGELOG, CK_FILE_CHANGELOG},
    {"1/0/materialized/7.snap", "1/0/changelog-8.snap", "1/0/changelog-7.snap", CK_FILE_MATERIALIZED,
     CK_FILE_CHANGELOG}};

static const ck_type bigint = {.kind = CK_TYPE_BIGINT}, varchar = {.kind = CK_TYPE_VARCHAR};
static const ck_type timestamp = {.kind = CK_TYPE_TIMESTAMP, .precision = 6};
static const ck_type decimal = {.kind = CK_TYPE_DECIMAL, .precision = 12, .scale = 2};

/* One slot of each family: plain, several columns with NULLs, ordered, operator state. */
static const ck_field usr[] = {{"usr", &varchar, false}}, pair[] = {{"a", &bigint, true}, {"d", &decimal, false}};
static const ck_field total[] = {{"sum(amount)", &bigint, false}};
static const ck_field notes[] = {{"note", &varchar, true}, {"n", &bigint, false}, {"price", &decimal, true}};
static const ck_order_field by_time[] = {{{"ts", &timestamp, true}, true, false}};
#define SLOT(name, type, ver, part, part_n, ord, ord_n, vals, vals_n)                                                  \
    {                                                                                                                  \
        .slot = name, .state_type = type, .version = ver, .mode = CK_SLOT_KEYED, .partition = part,                    \
        .partition_count = part_n, .order = ord, .order_count = ord_n, .values = vals, .value_count = vals_n           \
    }
static const ck_slot_schema plain_slot = SLOT("agg", "group_agg", 1, usr, 1, NULL, 0, total, 1);
static const ck_slot_schema pair_slot = SLOT("pairs", "pairs", 3, pair, 2, NULL, 0, notes, 3);
static const ck_slot_schema order_slot = SLOT("rows", "rows", 1, usr, 1, by_time, 1, notes, 3);

/* key | value as the readers in other languages decode them; NULL is spelt null. */
static const char *const plain_rows[][2] = {{"alice", "17"}, {"bob", "-7"}, {"", "0"}, {"a-name-longer-than-12", "5"}};

typedef struct store {
    ck_test_proc t;
    ck_state_store *s;
    ck_state *op;
    ck_arena a;
} store;

static void open_store(store *w) {
    ck_error err = CK_ERROR_INIT;
    ck_test_proc_init(&w->t);
    const ck_state_config cfg = {&w->t.proc, ck_proc_mem(&w->t.proc, CK_MEM_STATE), 128, {0, 127}, 1, true};
    OK(ck_state_store_new(&cfg, &w->s, &err));
    OK(ck_state_of(w->s, SAMPLE_UID, "group_agg", &w->op, &err));
    ck_arena_init(&w->a, cfg.mem, SIZE_MAX);
}

static void close_store(store *w) {
    ck_arena_destroy(&w->a);
    ck_state_store_free(w->s);
    ck_test_proc_destroy(&w->t);
}

static ck_batch *one_row(ck_mem mem, const ck_field *f, uint32_t n, const char *const *values) {
    ck_batch *b = ck_batch_new(mem, n, 1, false, false);
    for (uint32_t i = 0; i < n; i++) {
        ck_column_builder cb;
        ck_status s = ck_column_builder_init(&cb, mem, f[i].type, 1);
        assert_int_equal(s, CK_OK);
        int64_t v = values[i] ? strtoll(values[i], NULL, 10) : 0;
        if (!values[i])
            s = ck_build_null(&cb);
        else if (f[i].type->kind == CK_TYPE_VARCHAR)
            s = ck_build_str(&cb, values[i], strlen(values[i]));
        else if (f[i].type->kind == CK_TYPE_DECIMAL)
            s = ck_build_i128(&cb, v);
        else
            s = ck_build_i64(&cb, v);
        assert_int_equal(s, CK_OK);
        ck_column *c = ck_column_builder_finish(&cb);
        ck_batch_set_column(b, i, &c);
        ck_column_builder_destroy(&cb);
    }
    return b;
}

/* Upserts one row by its columns as text: partition, order, values. */
static void put(store *w, const ck_slot_schema *s, const char *const *values) {
    ck_error err = CK_ERROR_INIT;
    ck_mem mem = ck_proc_mem(&w->t.proc, CK_MEM_QUEUE);
    ck_table *t;
    OK(ck_state_table(w->op, s, &t, &err));
    ck_batch *key = one_row(mem, s->partition, s->partition_count, values);
    const uint32_t columns[] = {0, 1};
    const ck_type *types[2];
    for (uint32_t i = 0; i < s->partition_count; i++) types[i] = s->partition[i].type;
    const ck_key_spec spec = {columns, types, s->partition_count};
    uint64_t hash;
    ck_row *row;
    ck_key_hash(&spec, key, ck_table_seed(t), &hash);
    const ck_keys keys = {&spec, key, &hash, 1};
    if (s->order_count) {
        ck_partition p;
        ck_bytes order;
        bool fresh;
        ck_bytes_init(&order, mem, 4096);
        ck_batch *o = one_row(mem, &s->order[0].field, 1, values + s->partition_count);
        const ck_order_spec os = {0, s->order[0].field.type, s->order[0].field.nullable, s->order[0].descending,
                                  s->order[0].nulls_first};
        OK(ck_order_encode(&os, 1, o, 0, &order));
        OK(ck_table_partitions(t, &keys, true, &p, &err));
        OK(ck_partition_upsert(t, p, ck_bytes_as_view(&order), &row, &fresh, &err));
        ck_bytes_destroy(&order);
        ck_batch_unref(&o);
    } else {
        OK(ck_table_upsert(t, &keys, &row, NULL, &err));
    }
    uint32_t first = s->partition_count + s->order_count;
    ck_batch *v = one_row(mem, s->values, s->value_count, values + first);
    for (uint32_t i = 0; i < s->value_count; i++) OK(ck_table_set_field(t, row, first + i, v->columns[i], 0));
    ck_batch_unref(&v);
    ck_batch_unref(&key);
}

static void fill(store *w) {
    ck_error err = CK_ERROR_INIT;
    for (size_t i = 0; i < CK_ARRAY_COUNT(plain_rows); i++) put(w, &plain_slot, plain_rows[i]);
    put(w, &pair_slot, (const char *const[]){"1", "1050", "a note", "1", "99"});
    put(w, &pair_slot, (const char *const[]){NULL, "-3", NULL, "2", NULL});
    put(w, &order_slot, (const char *const[]){"alice", "1700000000000000", "late", "3", "100"});
    put(w, &order_slot, (const char *const[]){"alice", NULL, "never", "4", "200"});
    ck_split_list l = {.arena = &w->a};
    OK(ck_split_list_add(&l, "orders.ndjson:0", "{\"position\":1234}"));
    OK(ck_splits_store(w->op, &l, &err));
    const ck_committable c = {"out/part-1.ndjson", 7, "{\"bytes\":10}"};
    OK(ck_commits_put(w->op, &c, &err));
}

static void change(store *w) {
    ck_error err = CK_ERROR_INIT;
    put(w, &plain_slot, (const char *const[]){"alice", "18"});
    put(w, &plain_slot, (const char *const[]){"carol", "1"});
    OK(ck_state_row_erase(w->op, ck_commit_slot(), "out/part-1.ndjson", &err));
}

/* ---- writing ---- */

static void write_all(const char *dir, layout to) {
    store w;
    ck_error err = CK_ERROR_INIT;
    ck_state_mark *m;
    ck_snapshot_info base, delta;
    open_store(&w);
    ck_mem mem = ck_proc_mem(&w.t.proc, CK_MEM_SNAPSHOT);
    fill(&w);
    OK(ck_state_mark_take(w.s, 7, &m, &err));
    const char *behind = to == LAYOUT_EXTERNAL ? names[to].parent : NULL; /* what the first stands for */
    ck_snapshot_spec spec = {.proc = &w.t.proc,
                             .mem = mem,
                             .dir = dir,
                             .path = names[to].all,
                             .checkpoint = 7,
                             .key_groups = 128,
                             .kind = CK_MARK_BASE,
                             .parent = behind,
                             .changelog = to == LAYOUT_INSIDE};
    OK(ck_snapshot_write(&spec, m, &base, &err));
    ck_state_completed(w.s, 7);
    ck_state_mark_release(m);
    change(&w);
    OK(ck_state_mark_take(w.s, 8, &m, &err));
    spec.path = names[to].changes, spec.checkpoint = 8, spec.kind = CK_MARK_DELTA, spec.parent = names[to].parent;
    spec.changelog = to != LAYOUT_DELTA, spec.handle = to == LAYOUT_EXTERNAL ? names[to].all : NULL;
    OK(ck_snapshot_write(&spec, m, &delta, &err));
    ck_state_mark_release(m);
    const char *const ops[] = {SAMPLE_UID};
    const uint64_t ids[] = {SAMPLE_VERTEX};
    const uint32_t finished[] = {1};
    ck_manifest_vertex v = {ids[0], ops, 1, 2, finished, 1};
    ck_manifest_file files[] = {
        {names[to].all, base.bytes, base.crc32c, ids[0], 0, ids, 1, {0, 127}, names[to].all_kind, behind},
        {names[to].changes,
         delta.bytes,
         delta.crc32c,
         ids[0],
         0,
         ids,
         1,
         {0, 127},
         names[to].changes_kind,
         names[to].parent}};
    const ck_manifest_phase phase = {"write", 12};
    const ck_manifest manifest = {.format = 1,
                                  .job_name = "orders",
                                  .job_uuid = "01234567-89ab-4cde-8f01-23456789abcd",
                                  .checkpoint = 8,
                                  .attempt = 3,
                                  .kind = CK_BARRIER_PERIODIC,
                                  .started_ms = 1700000000000,
                                  .completed_ms = 1700000000042,
                                  .phases = &phase,
                                  .phase_count = 1,
                                  .key_groups = 128,
                                  .graph = "{\"name\":\"orders\",\"ops\":[]}",
                                  .graph_hash = 0x0123456789abcdef,
                                  .state_versions = "",
                                  .vertices = &v,
                                  .vertex_count = 1,
                                  .files = files,
                                  .file_count = 2};
    ck_bytes text;
    ck_bytes_init(&text, mem, 1 << 20);
    OK(ck_manifest_encode(&manifest, &text));
    char path[512];
    snprintf(path, sizeof path, "%s/checkpoint-8.json", dir);
    OK(ck_durable_replace_bytes(&w.t.proc, path, ck_bytes_as_view(&text), &err));
    ck_bytes_destroy(&text);
    close_store(&w);
}

/* ---- reading ---- */

static bool has_row(ck_state *op, const ck_slot_schema *s, uint32_t field, int64_t value) {
    ck_error err = CK_ERROR_INIT;
    ck_table *t;
    OK(ck_state_table(op, s, &t, &err));
    ck_table_scan scan = {0};
    ck_row *rows[64];
    const ck_row_layout *l = ck_table_layout(t);
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 64)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (ck_row_i64(rows[i], l->fields[field].offset) == value) return true;
    return false;
}

/* A directory like write_all makes, restored into a store that is then compared with the content. */
static void read_all(const char *dir, layout from) {
    store w;
    ck_error err = CK_ERROR_INIT;
    open_store(&w);
    char path[512];
    ck_view text;
    ck_manifest *m;
    snprintf(path, sizeof path, "%s/checkpoint-8.json", dir);
    OK(ck_fs_read_all(&w.t.proc, path, 1 << 20, &w.a, &text, &err));
    OK(ck_manifest_decode(&w.a, text, &m, &err));
    assert_string_equal(m->job_uuid, "01234567-89ab-4cde-8f01-23456789abcd");
    assert_int_equal(m->graph_hash, 0x0123456789abcdef);
    assert_string_equal(m->graph, "{\"name\":\"orders\",\"ops\":[]}");
    assert_true(m->vertices[0].finished_count == 1 && m->vertices[0].finished[0] == 1);
    assert_true(m->attempt == 3 && m->started_ms == 1700000000000 && m->phase_count == 1 && m->phases[0].ms == 12);
    assert_true(m->file_count == 2 && m->files[1].kind == names[from].changes_kind);
    ck_restore *r;
    const uint64_t op = SAMPLE_VERTEX;
    const ck_restore_as as = {.stored = op};
    const ck_restore_target target = {w.s, &as, 1, 0, 1, {0, 127}};
    OK(ck_restore_new(&w.t.proc, ck_proc_mem(&w.t.proc, CK_MEM_PLAN), dir, m, &r, &err));
    OK(ck_restore_add(r, &target, &err));
    OK(ck_restore_run(r, &err));
    const ck_committable *c;
    uint32_t n;
    OK(ck_restore_committables(r, op, &c, &n));
    assert_int_equal(n, 0); /* erased by the delta */
    assert_int_equal(ck_restore_stats_of(r).files, 2);
    ck_restore_free(r);
    ck_table *t;
    OK(ck_state_table(w.op, &plain_slot, &t, &err));
    assert_int_equal(ck_table_row_count(t), 5);
    assert_true(has_row(w.op, &plain_slot, 1, 18) && has_row(w.op, &plain_slot, 1, -7));
    assert_false(has_row(w.op, &plain_slot, 1, 17));
    OK(ck_state_table(w.op, &pair_slot, &t, &err));
    assert_int_equal(ck_table_row_count(t), 2);
    assert_true(has_row(w.op, &pair_slot, 3, 2));
    OK(ck_state_table(w.op, &order_slot, &t, &err));
    assert_int_equal(ck_table_row_count(t), 2);
    assert_true(has_row(w.op, &order_slot, 1, 1700000000000000));
    ck_split_list l = {.arena = &w.a};
    bool known;
    OK(ck_splits_load(w.op, &l, &known, &err));
    assert_true(known && l.count == 1);
    assert_string_equal(l.splits[0].spec, "{\"position\":1234}");
    close_store(&w);
}

static void golden_files_are_read(void **state) {
    (void)state;
    for (layout l = 0; l < LAYOUTS; l++) read_all(golden[l], l);
}

static void what_is_written_now_is_read(void **state) {
    (void)state;
    for (layout l = 0; l < LAYOUTS; l++) {
        ck_test_proc t;
        ck_test_proc_init(&t);
        write_all(ck_test_dir(&t), l);
        read_all(ck_test_dir(&t), l);
        ck_test_proc_destroy(&t);
    }
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "--write") == 0) {
        layout l = 0;
        while (argc > 3 && l < LAYOUTS && strcmp(argv[3], layouts[l]) != 0) l++;
        if (l == LAYOUTS) return 2;
        write_all(argv[2], l);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files_are_read),
        cmocka_unit_test(what_is_written_now_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
