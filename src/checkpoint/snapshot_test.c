/* Snapshot files: what is written is read, big and empty ones, the rules of versions, and bytes of all kinds of damage.
 */
#include "checkpoint/sample_int.h"

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

#include "base/hash.h"

#define GOLDEN_BASE  "tests/golden/state/1/0/checkpoint-7.snap"
#define GOLDEN_DELTA "tests/golden/state/1/0/delta-8.snap"

static ck_error err;

typedef struct world {
    ck_test_proc t;
    ck_mem mem;
    ck_arena a;
} world;

static void open_world(world *w) {
    ck_test_proc_init(&w->t);
    w->mem = ck_proc_mem(&w->t.proc, CK_MEM_DECODE);
    ck_arena_init(&w->a, w->mem, SIZE_MAX);
}

static void close_world(world *w) {
    ck_arena_destroy(&w->a);
    ck_test_proc_destroy(&w->t);
}

/* ---- streams of the tests' own making ---- */

typedef struct stream {
    const char *const *metadata; /* key, value, ..., NULL */
    int columns;                 /* 3, or 4 with row_kind */
    bool nulls;
    const char *third; /* name of the last column */
} stream;

static void append_batch(struct ArrowIpcWriter *writer, struct ArrowSchema *schema, const stream *s) {
    struct ArrowArray a;
    struct ArrowArrayView v;
    struct ArrowError e;
    int i = 0;
    assert_int_equal(ArrowArrayInitFromSchema(&a, schema, &e), 0);
    assert_int_equal(ArrowArrayStartAppending(&a), 0);
    if (s->columns == 4) assert_int_equal(ArrowArrayAppendUInt(a.children[i++], 1), 0);
    assert_int_equal(ArrowArrayAppendUInt(a.children[i++], 42), 0);
    struct ArrowBufferView key = {{"\x05"
                                   "agg|k"},
                                  6},
                           value = {{"12345678"}, 8};
    assert_int_equal(ArrowArrayAppendBytes(a.children[i++], key), 0);
    assert_int_equal(s->nulls ? ArrowArrayAppendNull(a.children[i], 1) : ArrowArrayAppendBytes(a.children[i], value),
                     0);
    assert_int_equal(ArrowArrayFinishElement(&a), 0);
    assert_int_equal(ArrowArrayFinishBuildingDefault(&a, &e), 0);
    assert_int_equal(ArrowArrayViewInitFromSchema(&v, schema, &e), 0);
    assert_int_equal(ArrowArrayViewSetArray(&v, &a, &e), 0);
    assert_int_equal(ArrowIpcWriterWriteArrayView(writer, &v, &e), 0);
    ArrowArrayViewReset(&v);
    ArrowArrayRelease(&a);
}

static ck_view make(world *w, const stream *s) {
    static const enum ArrowType types[] = {NANOARROW_TYPE_UINT8, NANOARROW_TYPE_UINT64, NANOARROW_TYPE_BINARY,
                                           NANOARROW_TYPE_BINARY};
    const char *names[] = {"row_kind", "op_id", "key_bytes", s->third ? s->third : "value_bytes"};
    struct ArrowSchema schema;
    struct ArrowBuffer md, out;
    struct ArrowIpcOutputStream os;
    struct ArrowIpcWriter writer;
    struct ArrowError e;
    ArrowSchemaInit(&schema);
    ArrowBufferInit(&out);
    assert_int_equal(ArrowSchemaSetTypeStruct(&schema, s->columns), 0);
    for (int i = 0; i < s->columns; i++) {
        assert_int_equal(ArrowSchemaSetType(schema.children[i], types[i + 4 - s->columns]), 0);
        assert_int_equal(ArrowSchemaSetName(schema.children[i], names[i + 4 - s->columns]), 0);
    }
    assert_int_equal(ArrowMetadataBuilderInit(&md, NULL), 0);
    for (int i = 0; s->metadata && s->metadata[i]; i += 2)
        assert_int_equal(
            ArrowMetadataBuilderAppend(&md, ArrowCharView(s->metadata[i]), ArrowCharView(s->metadata[i + 1])), 0);
    assert_int_equal(ArrowSchemaSetMetadata(&schema, (const char *)md.data), 0);
    assert_int_equal(ArrowIpcOutputStreamInitBuffer(&os, &out), 0);
    assert_int_equal(ArrowIpcWriterInit(&writer, &os), 0);
    assert_int_equal(ArrowIpcWriterWriteSchema(&writer, &schema, &e), 0);
    append_batch(&writer, &schema, s);
    assert_int_equal(ArrowIpcWriterWriteArrayView(&writer, NULL, &e), 0);
    const char *copy = ck_arena_strndup(&w->a, (const char *)out.data, (size_t)out.size_bytes);
    ck_view v = {copy, (size_t)out.size_bytes};
    ArrowIpcWriterReset(&writer);
    ArrowBufferReset(&out);
    ArrowBufferReset(&md);
    ArrowSchemaRelease(&schema);
    return v;
}

/* Reads all of it; rows are counted. */
static ck_status read_bytes(world *w, ck_view bytes, uint64_t *rows) {
    ck_arena a;
    ck_snapshot_reader *r;
    ck_arena_init(&a, w->mem, 64 << 20);
    err = CK_ERROR_INIT;
    *rows = 0;
    ck_status s = ck_snapshot_open_bytes(w->mem, &a, "some.snap", bytes, &r, &err);
    if (s == CK_OK) {
        const ck_snapshot_row *row;
        uint32_t n;
        do {
            s = ck_snapshot_next(r, &row, &n, &err);
            for (uint32_t i = 0; s == CK_OK && i < n; i++) { /* every byte can be touched */
                uint64_t h = ck_fnv1a(row[i].key.p, row[i].key.n) ^ ck_fnv1a(row[i].value.p, row[i].value.n);
                ++*rows;
                if (h == 0) (*rows)++;
            }
        } while (s == CK_OK && n > 0);
        ck_snapshot_close(r);
    }
    ck_arena_destroy(&a);
    if (s != CK_OK) assert_true(err.msg[0]);
    return s;
}

static ck_view file(world *w, const char *path) {
    ck_view v;
    OK(ck_fs_read_all(&w->t.proc, path, 1 << 24, &w->a, &v, &err));
    return v;
}

/* ---- tests ---- */

static void versions(void **state) {
    (void)state;
    static const struct {
        const char *version, *groups;
        ck_status status;
        const char *says;
    } cases[] = {
        {NULL, NULL, CK_OK, ""},
        {"1", "128", CK_OK, ""},
        {"1", NULL, CK_OK, ""},
        {"2", "64", CK_OK, ""},
        {"2", "1024", CK_OK, ""},
        {"0", NULL, CK_REFUSED, "'0' is not a version"},
        {"3", NULL, CK_REFUSED, "newer"},
        {"99999999999999999999", NULL, CK_REFUSED, "not a version"},
        {"", NULL, CK_REFUSED, "not a version"},
        {"1.0", NULL, CK_REFUSED, "not a version"},
        {"+1", NULL, CK_REFUSED, "not a version"},
        {" 1", NULL, CK_REFUSED, "not a version"},
        {"1", "64", CK_CORRUPT, "128 key groups"},
        {"2", "0", CK_CORRUPT, "key groups"},
        {"2", "1025", CK_CORRUPT, "key groups"},
        {"2", "-1", CK_CORRUPT, "key groups"},
    };
    world w;
    open_world(&w);
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const char *md[9] = {"someone.else", "their own"};
        int n = 2;
        if (cases[i].version) md[n] = "clink.format_version", md[n + 1] = cases[i].version, n += 2;
        if (cases[i].groups) md[n] = "clink.key_groups", md[n + 1] = cases[i].groups, n += 2;
        uint64_t rows;
        ck_status s = read_bytes(&w, make(&w, &(stream){md, 3, false, NULL}), &rows);
        if (s != cases[i].status || (s != CK_OK && !strstr(err.msg, cases[i].says)))
            fail_msg("version '%s', groups '%s': %s %s", cases[i].version, cases[i].groups, ck_status_name(s), err.msg);
        if (s == CK_OK) assert_int_equal(rows, 1);
    }
    close_world(&w);
}

static void metadata_that_does_not_parse(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"clink.slots", "{}"},
        {"clink.slots", "[1]"},
        {"clink.slots", "[{}]"},
        {"clink.slots",
         "[{\"op_id\":\"x\",\"slot\":\"s\",\"mode\":\"keyed\",\"partition\":[],\"order\":[],\"values\":[]}]"},
        {"clink.slots",
         "[{\"op_id\":\"1\",\"slot\":\"s\",\"mode\":\"sometimes\",\"partition\":[],\"order\":[],\"values\":[]}]"},
        {"clink.slots",
         "[{\"op_id\":\"1\",\"slot\":\"s\",\"mode\":\"keyed\",\"partition\":[{\"name\":\"k\",\"type\":\"WAT\","
         "\"nullable\":false}],\"order\":[],\"values\":[]}]"},
        {"clink.slots", "[{\"op_id\":\"1\",\"slot\":\"s\",\"mode\":\"keyed\",\"partition\":[],\"order\":[],\"values\":["
                        "],\"ttl\":-1}]"},
        {"clink.slots",
         "[{\"op_id\":\"1\",\"slot\":\"s\",\"mode\":\"keyed\",\"partition\":7,\"order\":[],\"values\":[]}]"},
        {"clink.state_versions", "1|t"},
        {"clink.state_versions", "1|t|0"},
        {"clink.state_versions", "1|t|1\n"},
        {"clink.state_versions", "x|t|1"},
        {"clink.state_versions", "1|t|1|s|more"},
        {"clink.state_versions", "1|t|1|"},
        {"clink.checkpoint_id", "seven"},
    };
    world w;
    open_world(&w);
    uint64_t rows;
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const char *md[] = {cases[i][0], cases[i][1], NULL};
        ck_status s = read_bytes(&w, make(&w, &(stream){md, 3, false, NULL}), &rows);
        if (s != CK_CORRUPT) fail_msg("%s '%s': %s", cases[i][0], cases[i][1], ck_status_name(s));
        assert_non_null(strstr(err.msg, "some.snap"));
    }
    const char *good[] = {"clink.state_versions", "1|t|1\n18446744073709551615|u|4|slot", NULL};
    assert_int_equal(read_bytes(&w, make(&w, &(stream){good, 3, false, NULL}), &rows), CK_OK);
    close_world(&w);
}

static void columns(void **state) {
    (void)state;
    world w;
    open_world(&w);
    uint64_t rows;
    assert_int_equal(read_bytes(&w, make(&w, &(stream){NULL, 4, false, NULL}), &rows), CK_OK);
    assert_int_equal(read_bytes(&w, make(&w, &(stream){NULL, 3, false, "values"}), &rows), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "not a snapshot"));
    assert_int_equal(read_bytes(&w, make(&w, &(stream){NULL, 3, true, NULL}), &rows), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "NULL"));
    assert_int_equal(read_bytes(&w, CK_VIEW(""), &rows), CK_CORRUPT);
    assert_int_equal(read_bytes(&w, CK_VIEW("PAR1 is something else entirely"), &rows), CK_CORRUPT);
    close_world(&w);
}

/* Every byte flipped in every bit, every truncation: read rightly or refused with a name, and never past the buffer. */
static void every_damage(void **state) {
    (void)state;
    static const char *const paths[] = {GOLDEN_BASE, GOLDEN_DELTA};
    for (size_t p = 0; p < 2; p++) {
        world w;
        open_world(&w);
        ck_view whole = file(&w, paths[p]);
        uint64_t rows;
        assert_int_equal(read_bytes(&w, whole, &rows), CK_OK);
        for (size_t n = 0; n < whole.n; n++) {
            char *exact = malloc(n ? n : 1); /* so that a sanitizer sees one byte too many */
            memcpy(exact, whole.p, n);
            assert_int_equal(read_bytes(&w, (ck_view){exact, n}, &rows), CK_CORRUPT);
            free(exact);
        }
        char *bad = malloc(whole.n);
        for (size_t at = 0; at < whole.n; at++) {
            memcpy(bad, whole.p, whole.n);
            bad[at] ^= (char)(1 << (at % 8));
            ck_status s = read_bytes(&w, (ck_view){bad, whole.n}, &rows);
            assert_true(s == CK_OK || s == CK_CORRUPT || s == CK_REFUSED);
            bad[at] = (char)0xFF;
            s = read_bytes(&w, (ck_view){bad, whole.n}, &rows);
            assert_true(s == CK_OK || s == CK_CORRUPT || s == CK_REFUSED);
        }
        free(bad);
        close_world(&w);
    }
}

/* ---- writing ---- */

static void many_batches_and_two_byte_groups(void **state) {
    (void)state;
    world w;
    open_world(&w);
    const uint32_t groups = 1000;
    const ck_state_config cfg = {&w.t.proc, ck_proc_mem(&w.t.proc, CK_MEM_STATE), groups, {0, groups - 1}, 3, false};
    ck_state_store *store;
    ck_state *op;
    ck_table *t;
    OK(ck_state_store_new(&cfg, &store, &err));
    OK(ck_state_of(store, "op", "test", &op, &err));
    OK(ck_state_table(op, sample_slot(), &t, &err));
    static char note[5000];
    memset(note, 'n', sizeof note - 1);
    const uint32_t column = 0;
    const ck_type *type = sample_slot()->partition[0].type;
    const ck_key_spec spec = {&column, &type, 1};
    for (uint32_t k = 0; k < 1500; k++) { /* 7.5 MB of notes: several batches */
        uint64_t hash;
        ck_row *row;
        ck_batch *b = sample_batch(cfg.mem, &k, 1);
        ck_key_hash(&spec, b, ck_table_seed(t), &hash);
        const ck_keys keys = {&spec, b, &hash, 1};
        OK(ck_table_upsert(t, &keys, &row, NULL, &err));
        OK(ck_table_set_str(t, row, 2, ck_view_of(note)));
        ck_batch_unref(&b);
    }
    ck_state_mark *m;
    ck_snapshot_info info;
    OK(ck_state_mark_take(store, 5, &m, &err));
    ck_snapshot_spec out = {.proc = &w.t.proc,
                            .mem = w.mem,
                            .dir = ck_test_dir(&w.t),
                            .path = "a/b/c.snap",
                            .checkpoint = 5,
                            .key_groups = groups,
                            .kind = CK_MARK_BASE};
    OK(ck_snapshot_write(&out, m, &info, &err));
    assert_int_equal(info.rows, 1500);
    assert_int_equal(ck_snapshot_write(&out, m, &info, &err), CK_EXISTS); /* published exclusively */
    ck_snapshot_reader *r;
    char path[200];
    snprintf(path, sizeof path, "%s/a/b/c.snap", ck_test_dir(&w.t));
    OK(ck_snapshot_open(&w.t.proc, w.mem, &w.a, path, &r, &err));
    const ck_snapshot_header *h = ck_snapshot_header_of(r);
    assert_true(h->format_version == 2 && h->key_groups == groups && h->checkpoint == 5 && !h->delta);
    assert_true(h->slot_count == 1 && strcmp(h->slots[0].uid, "op") == 0 && ck_version_map_count(&h->versions) == 1);
    assert_int_equal(h->slots[0].schema->value_count, 2);
    uint64_t rows = 0;
    const ck_snapshot_row *row;
    uint32_t n;
    do {
        OK(ck_snapshot_next(r, &row, &n, &err));
        for (uint32_t i = 0; i < n; i++) {
            ck_stored_key k;
            assert_true(ck_stored_key_parse(row[i].key, groups, &k));
            assert_true(k.keyed && ck_view_is(k.slot, "agg"));
            assert_int_equal(k.key_group, ck_key_group_for_key(k.rest, groups));
        }
        rows += n;
    } while (n);
    assert_int_equal(rows, 1500);
    ck_snapshot_close(r);
    ck_manifest_file f = {.path = "a/b/c.snap", .bytes = info.bytes, .crc32c = info.crc32c};
    OK(ck_snapshot_verify(&w.t.proc, w.mem, ck_test_dir(&w.t), &f, &err));
    f.crc32c ^= 1;
    assert_int_equal(ck_snapshot_verify(&w.t.proc, w.mem, ck_test_dir(&w.t), &f, &err), CK_CORRUPT);
    f.bytes++;
    assert_int_equal(ck_snapshot_verify(&w.t.proc, w.mem, ck_test_dir(&w.t), &f, &err), CK_CORRUPT);
    f.path = "a/b/d.snap";
    assert_int_equal(ck_snapshot_verify(&w.t.proc, w.mem, ck_test_dir(&w.t), &f, &err), CK_NOTFOUND);
    ck_state_mark_release(m);
    ck_state_store_free(store);
    close_world(&w);
}

static void stored_keys(void **state) {
    (void)state;
    ck_stored_key k;
    assert_false(ck_stored_key_parse(CK_VIEW(""), 128, &k));
    assert_true(ck_stored_key_parse((ck_view){"\x07"
                                              "agg|key|x",
                                              10},
                                    128, &k));
    assert_true(k.keyed && k.key_group == 7 && ck_view_is(k.slot, "agg") && ck_view_is(k.rest, "key|x"));
    assert_true(ck_stored_key_parse((ck_view){"\x07"
                                              "raw",
                                              4},
                                    128, &k));
    assert_true(k.keyed && !k.slot.p && ck_view_is(k.rest, "raw"));
    assert_true(ck_stored_key_parse((ck_view){"\xFF"
                                              "offsets\np|0",
                                              12},
                                    128, &k));
    assert_true(!k.keyed && ck_view_is(k.slot, "offsets") && ck_view_is(k.rest, "p|0"));
    assert_true(ck_stored_key_parse((ck_view){"\xFF"
                                              "offsets",
                                              8},
                                    128, &k));
    assert_true(!k.keyed && ck_view_is(k.slot, "offsets") && k.rest.n == 0);
    assert_true(ck_stored_key_parse((ck_view){"\x01\x02"
                                              "agg|k",
                                              7},
                                    1000, &k));
    assert_true(k.keyed && k.key_group == 258 && ck_view_is(k.rest, "k"));
    assert_true(ck_stored_key_parse((ck_view){"\xFF\xFF"
                                              "s\nk",
                                              5},
                                    1000, &k));
    assert_false(k.keyed);
    assert_false(ck_stored_key_parse((ck_view){"\x01", 1}, 1000, &k));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),
        cmocka_unit_test(metadata_that_does_not_parse),
        cmocka_unit_test(columns),
        cmocka_unit_test(every_damage),
        cmocka_unit_test(many_batches_and_two_byte_groups),
        cmocka_unit_test(stored_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
