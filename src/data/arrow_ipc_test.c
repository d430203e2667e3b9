/* The bridge against another implementation: an IPC stream written through nanoarrow is read by pyarrow, and one that
 * pyarrow wrote comes back. Skipped where no Python has pyarrow (CLINK_PYTHON names one, else build/venv, else
 * python3). */
#include "data/arrow_int.h"
#include "data/sample_int.h"
#include "data/text.h"

#include <nanoarrow/nanoarrow_ipc.h>
#include <unistd.h>

static const char script[] =
    "import sys\n"
    "import pyarrow as pa, pyarrow.ipc as ipc\n"
    "t = ipc.open_stream(sys.argv[1]).read_all()\n"
    "t.validate(full=True)\n"
    "for f in t.schema:\n"
    "    c = t.column(f.name)\n"
    "    v = c.cast(pa.int64()).to_pylist() if pa.types.is_duration(f.type) or pa.types.is_timestamp(f.type) else "
    "c.to_pylist()\n"
    "    print(f.name, f.type, 'null' if f.nullable else 'not null', v, sep='|')\n"
    "m = pa.table({'s': pa.array(['x' * 20, None, 'é']), 'v': pa.array([b'\\x00\\xff', b'', None], "
    "pa.large_binary()),\n"
    "  'n': pa.array([1, 2, None], pa.uint8()), 'd': pa.array([1.5, None, -2], pa.float32()),\n"
    "  't': pa.array([1500, -1, None], pa.timestamp('ms', tz='Europe/Berlin')),\n"
    "  'l': pa.array([[1, None], [], None], pa.list_(pa.int16())),\n"
    "  'm': pa.array([[('k', 1)], None, [('a', None), ('b', 2)]], pa.map_(pa.string(), pa.int64())),\n"
    "  'r': pa.array([{'a': True, 'b': 'q'}, None, {'a': None, 'b': None}])})\n"
    "m = pa.concat_tables([m, m.slice(1, 2)])\n"
    "with ipc.new_stream(sys.argv[2], m.schema) as w:\n"
    "    w.write_table(m)\n";

static const char *python(void) {
    static char command[512];
    const char *named = getenv("CLINK_PYTHON");
    const char *const all[] = {named && *named ? named : "build/venv/bin/python", "python3"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) {
        snprintf(command, sizeof command, "'%s' -c 'import pyarrow' >/dev/null 2>&1", all[i]);
        if (system(command) != 0) continue;
        snprintf(command, sizeof command, "'%s'", all[i]);
        return command;
    }
    return NULL;
}

static void write_stream(const char *path, const ck_schema *schema, const ck_batch *b) {
    struct ArrowSchema as;
    struct ArrowArray aa;
    struct ArrowArrayView view;
    struct ArrowIpcOutputStream stream;
    struct ArrowIpcWriter writer;
    struct ArrowError why = {{0}};
    ck_error err = CK_ERROR_INIT;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(ck_arrow_export_schema(schema, CK_ARROW_PLAIN, &as, &err), CK_OK);
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_PLAIN, &aa, &err), CK_OK);
    assert_int_equal(ArrowIpcOutputStreamInitFile(&stream, f, 1), NANOARROW_OK);
    assert_int_equal(ArrowIpcWriterInit(&writer, &stream), NANOARROW_OK);
    int code = ArrowIpcWriterWriteSchema(&writer, &as, &why);
    if (code == NANOARROW_OK) code = ArrowArrayViewInitFromSchema(&view, &as, &why);
    if (code == NANOARROW_OK) code = ArrowArrayViewSetArray(&view, &aa, &why);
    if (code == NANOARROW_OK) code = ArrowIpcWriterWriteArrayView(&writer, &view, &why);
    if (code == NANOARROW_OK) code = ArrowIpcWriterWriteArrayView(&writer, NULL, &why); /* the end of the stream */
    if (code != NANOARROW_OK) fail_msg("%s", why.message);
    ArrowArrayViewReset(&view);
    ArrowIpcWriterReset(&writer);
    as.release(&as);
    aa.release(&aa);
}

/* All rows of a stream as text, a line a row. */
static void read_stream(sample *s, const char *path, ck_bytes *out) {
    struct ArrowIpcInputStream input;
    struct ArrowArrayStream stream;
    struct ArrowSchema as;
    struct ArrowArray aa;
    const ck_schema *schema = NULL;
    ck_error err = CK_ERROR_INIT;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(ArrowIpcInputStreamInitFile(&input, f, 1), NANOARROW_OK);
    assert_int_equal(ArrowIpcArrayStreamReaderInit(&stream, &input, NULL), NANOARROW_OK);
    assert_int_equal(stream.get_schema(&stream, &as), NANOARROW_OK);
    if (ck_arrow_import_schema(&s->arena, &as, &schema, &err) != CK_OK) fail_msg("%s", err.msg);
    for (;;) {
        assert_int_equal(stream.get_next(&stream, &aa), NANOARROW_OK);
        if (!aa.release) break;
        ck_batch *b = NULL;
        if (ck_arrow_import_batch(s->mem, &as, &aa, schema, 0, aa.length, &b, &err) != CK_OK) fail_msg("%s", err.msg);
        aa.release(&aa);
        for (uint32_t row = 0; row < b->row_count; row++)
            for (uint32_t i = 0; i < schema->field_count; i++) {
                assert_int_equal(ck_print_value(schema->fields[i].type, b->columns[i], row, out), CK_OK);
                assert_int_equal(ck_bytes_char(out, i + 1 < schema->field_count ? '|' : '\n'), CK_OK);
            }
        ck_batch_unref(&b);
    }
    as.release(&as);
    stream.release(&stream);
}

static void slurp(const char *path, ck_bytes *out) {
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) assert_int_equal(ck_bytes_append(out, piece, n), CK_OK);
    fclose(f);
}

/* One row of each kind and one of NULLs. */
static ck_batch *one_of_each(sample *s, const ck_schema **out) {
    ck_arena *a = &s->arena;
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT), *text = ck_type_simple(CK_TYPE_VARCHAR);
    const ck_field row[] = {{"x", big, true}, {"y", text, true}};
    const ck_field fields[] = {
        {"nothing", ck_type_simple(CK_TYPE_NULL), true},
        {"flag", ck_type_simple(CK_TYPE_BOOLEAN), true},
        {"tiny", ck_type_simple(CK_TYPE_TINYINT), true},
        {"small", ck_type_simple(CK_TYPE_SMALLINT), true},
        {"int", ck_type_simple(CK_TYPE_INTEGER), true},
        {"big", big, true},
        {"real", ck_type_simple(CK_TYPE_REAL), true},
        {"double", ck_type_simple(CK_TYPE_DOUBLE), true},
        {"dec", ck_type_decimal(a, 38, 3), true},
        {"text", text, true},
        {"bytes", ck_type_simple(CK_TYPE_BYTES), true},
        {"date", ck_type_simple(CK_TYPE_DATE), true},
        {"time", ck_type_simple(CK_TYPE_TIME), true},
        {"ts", ck_type_simple(CK_TYPE_TIMESTAMP), true},
        {"ltz", ck_type_simple(CK_TYPE_TIMESTAMP_LTZ), true},
        {"dur", ck_type_simple(CK_TYPE_INTERVAL_US), true},
        {"list", ck_type_array(a, big, true), true},
        {"map", ck_type_map(a, text, big, true), true},
        {"row", ck_type_row(a, row, 2), true},
        {"sure", big, false},
    };
    *out = ck_schema_copy(a, &(ck_schema){fields, CK_ARRAY_COUNT(fields)});
    ck_batch_builder b;
    assert_int_equal(ck_batch_builder_init(&b, s->mem, *out, 2), CK_OK);
    ck_column_builder *c = b.columns;
    ck_status st = ck_build_null(c++);
    st |= ck_build_bool(c++, true);
    st |= ck_build_i64(c++, -128);
    st |= ck_build_i64(c++, 32767);
    st |= ck_build_i64(c++, INT32_MIN);
    st |= ck_build_i64(c++, INT64_MAX);
    st |= ck_build_f64(c++, 0.5);
    st |= ck_build_f64(c++, -0.1);
    st |= ck_build_i128(c++, -(ck_i128)10000000000000000000ULL * 1000000000000000000ULL - 7);
    st |= ck_build_str(c++, "longer than twelve", 18);
    st |= ck_build_str(c++, "\0\xff", 2);
    st |= ck_build_i64(c++, 19782);
    st |= ck_build_i64(c++, 3661000001);
    st |= ck_build_i64(c++, -1);
    st |= ck_build_i64(c++, 1357034400000000);
    st |= ck_build_i64(c++, 90000000);
    st |= ck_build_i64(&c->children[0], 1) | ck_build_null(&c->children[0]);
    st |= ck_build_end(c++);
    ck_column_builder *entry = &c->children[0];
    st |= ck_build_str(&entry->children[0], "k", 1) | ck_build_i64(&entry->children[1], 2);
    st |= ck_build_end(entry) | ck_build_end(c++);
    st |= ck_build_i64(&c->children[0], 5) | ck_build_null(&c->children[1]) | ck_build_end(c);
    st |= ck_build_i64(++c, 1);
    ck_batch_builder_row(&b, 1);
    for (uint32_t i = 0; i + 1 < (*out)->field_count; i++) st |= ck_build_null(&b.columns[i]);
    st |= ck_build_i64(c, 2);
    ck_batch_builder_row(&b, 1);
    assert_int_equal(st, CK_OK);
    ck_batch *batch = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    return batch;
}

static const char read_by_python[] = "nothing|null|null|[None, None]\n"
                                     "flag|bool|null|[True, None]\n"
                                     "tiny|int8|null|[-128, None]\n"
                                     "small|int16|null|[32767, None]\n"
                                     "int|int32|null|[-2147483648, None]\n"
                                     "big|int64|null|[9223372036854775807, None]\n"
                                     "real|float|null|[0.5, None]\n"
                                     "double|double|null|[-0.1, None]\n"
                                     "dec|decimal128(38, 3)|null|[Decimal('-10000000000000000000000000000000000.007'), "
                                     "None]\n"
                                     "text|string|null|['longer than twelve', None]\n"
                                     "bytes|binary|null|[b'\\x00\\xff', None]\n"
                                     "date|date32[day]|null|[datetime.date(2024, 2, 29), None]\n"
                                     "time|time64[us]|null|[datetime.time(1, 1, 1, 1), None]\n"
                                     "ts|timestamp[us]|null|[-1, None]\n"
                                     "ltz|timestamp[us, tz=UTC]|null|[1357034400000000, None]\n"
                                     "dur|duration[us]|null|[90000000, None]\n"
                                     "list|list<item: int64>|null|[[1, None], None]\n"
                                     "map|map<string, int64>|null|[[('k', 2)], None]\n"
                                     "row|struct<x: int64, y: string>|null|[{'x': 5, 'y': None}, None]\n"
                                     "sure|int64|not null|[1, 2]\n";

static const char read_from_python[] =
    "xxxxxxxxxxxxxxxxxxxx|AP8=|1|1.5|1970-01-01 00:00:01.500Z|[1,null]|{\"k\":1}|{\"a\":true,\"b\":\"q\"}\n"
    "NULL||2|NULL|1969-12-31 23:59:59.999Z|[]|NULL|NULL\n"
    "\xc3\xa9|NULL|NULL|-2.0|NULL|NULL|{\"a\":null,\"b\":2}|{\"a\":null,\"b\":null}\n"
    "NULL||2|NULL|1969-12-31 23:59:59.999Z|[]|NULL|NULL\n"
    "\xc3\xa9|NULL|NULL|-2.0|NULL|NULL|{\"a\":null,\"b\":2}|{\"a\":null,\"b\":null}\n";

static void streams_and_pyarrow(void **state) {
    sample *s = *state;
    const char *py = python();
    if (!py) skip();
    char dir[] = "/tmp/clink-arrow-XXXXXX", ours[64], theirs[64], code[64], said[64], command[1024];
    assert_non_null(mkdtemp(dir));
    snprintf(ours, sizeof ours, "%s/ours", dir);
    snprintf(theirs, sizeof theirs, "%s/theirs", dir);
    snprintf(code, sizeof code, "%s/code.py", dir);
    snprintf(said, sizeof said, "%s/said", dir);
    FILE *f = fopen(code, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(script, 1, sizeof script - 1, f), sizeof script - 1);
    fclose(f);
    const ck_schema *schema;
    ck_batch *b = one_of_each(s, &schema);
    write_stream(ours, schema, b);
    ck_batch_unref(&b);
    snprintf(command, sizeof command, "%s %s %s %s > %s", py, code, ours, theirs, said);
    int exit_code = system(command);
    ck_bytes text;
    ck_bytes_init(&text, s->mem, 1 << 20);
    slurp(said, &text);
    assert_int_equal(ck_bytes_terminate(&text), CK_OK);
    assert_int_equal(exit_code, 0);
    assert_string_equal(text.p, read_by_python);
    ck_bytes_clear(&text);
    read_stream(s, theirs, &text);
    assert_int_equal(ck_bytes_terminate(&text), CK_OK);
    assert_string_equal(text.p, read_from_python);
    ck_bytes_destroy(&text);
    const char *const all[] = {ours, theirs, code, said};
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) unlink(all[i]);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(streams_and_pyarrow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
