/* Batches as text: every type in both formats, quoting and escaping, changes, and that decoding gives back what was
 * encoded. */
#include "format/expect_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/encoder.h"

static const ck_type *simple(ck_kind k) { return ck_type_simple(k); }

static const ck_type decimal_5_2 = {CK_TYPE_DECIMAL, 5, 2, NULL, 0}, ts_3 = {CK_TYPE_TIMESTAMP, 3, 0, NULL, 0};
static ck_field element, map_fields[2], row_fields[2];
static ck_type array, map, row;
static ck_field all[13];
static ck_schema all_schema = {all, 13};

static int make_schema(void **state) {
    (void)state;
    element = (ck_field){"element", simple(CK_TYPE_VARCHAR), true};
    array = (ck_type){CK_TYPE_ARRAY, 0, 0, &element, 1};
    map_fields[0] = (ck_field){"key", simple(CK_TYPE_DATE), false};
    map_fields[1] = (ck_field){"value", simple(CK_TYPE_DOUBLE), true};
    map = (ck_type){CK_TYPE_MAP, 0, 0, map_fields, 2};
    row_fields[0] = (ck_field){"x y", simple(CK_TYPE_BIGINT), true};
    row_fields[1] = (ck_field){"l", &array, true};
    row = (ck_type){CK_TYPE_ROW, 0, 0, row_fields, 2};
    static const char *const names[] = {"bool", "int",  "real", "double", "decimal", "text", "bytes",
                                        "date", "time", "ts",   "ltz",    "map",     "row"};
    const ck_type *types[] = {simple(CK_TYPE_BOOLEAN),
                              simple(CK_TYPE_BIGINT),
                              simple(CK_TYPE_REAL),
                              simple(CK_TYPE_DOUBLE),
                              &decimal_5_2,
                              simple(CK_TYPE_VARCHAR),
                              simple(CK_TYPE_BYTES),
                              simple(CK_TYPE_DATE),
                              simple(CK_TYPE_TIME),
                              &ts_3,
                              simple(CK_TYPE_TIMESTAMP_LTZ),
                              &map,
                              &row};
    for (size_t i = 0; i < 13; i++) all[i] = (ck_field){names[i], types[i], true};
    return 0;
}

static const char json_rows[] =
    "{\"bool\":true,\"int\":-5,\"real\":0.1,\"double\":1e300,\"decimal\":-0.05,\"text\":\"a \\\"b\\\" \\\\ "
    "\\n\\u0001\\u001f \xc3\xa9\",\"bytes\":\"AQI=\","
    "\"date\":\"2024-02-29\",\"time\":\"23:59:59\",\"ts\":\"2024-01-02T03:04:05.678\",\"ltz\":\"1969-12-31T23:59:59."
    "999999Z\","
    "\"map\":{\"2024-01-01\":1.5,\"2024-01-02\":null},\"row\":{\"x y\":7,\"l\":[\"p\",null,\"a longer text with "
    "\\\"quotes\\\"\"]}}\n"
    "{\"bool\":false,\"int\":9223372036854775807,\"real\":\"NaN\",\"double\":\"-Infinity\",\"decimal\":999.99,\"text\":"
    "\"\",\"bytes\":\"\","
    "\"date\":\"0001-01-01\",\"time\":\"00:00:00.000001\",\"ts\":\"1970-01-01T00:00:00\",\"ltz\":\"9999-12-31T23:59:"
    "59Z\","
    "\"map\":{},\"row\":{\"x y\":null,\"l\":null}}\n"
    "{\"bool\":null,\"int\":null,\"real\":null,\"double\":null,\"decimal\":null,\"text\":null,\"bytes\":null,"
    "\"date\":null,\"time\":null,\"ts\":null,\"ltz\":null,\"map\":null,\"row\":null}\n";

static const char csv_rows[] =
    "true,-5,0.1,1e300,-0.05,\"a \"\"b\"\" \\ \n\x01\x1f "
    "\xc3\xa9\",AQI=,2024-02-29,23:59:59,2024-01-02T03:04:05.678,1969-12-31T23:59:59.999999Z,"
    "\"{\"\"2024-01-01\"\":1.5,\"\"2024-01-02\"\":null}\",\"{\"\"x y\"\":7,\"\"l\"\":[\"\"p\"\",null,\"\"a longer text "
    "with \\\"\"quotes\\\"\"\"\"]}\"\n"
    "false,9223372036854775807,NaN,-Infinity,999.99,\"\",\"\",0001-01-01,00:00:00.000001,1970-01-01T00:00:00,9999-12-"
    "31T23:59:59Z,{},"
    "\"{\"\"x y\"\":null,\"\"l\"\":null}\"\n"
    ",,,,,,,,,,,,\n";

/* The batch a text decodes to; all of it must be good. */
static ck_batch *batch_of(ck_harness *h, const ck_schema *schema, const char *format, const char *null_string,
                          const char *text) {
    ck_decoder_spec spec = {.format = format, .schema = schema, .null_string = null_string};
    ck_decoder *d;
    size_t n = strlen(text), used;
    assert_int_equal(ck_decoder_new(&h->proc, &spec, h->mem, NULL, NULL, &d, NULL), CK_OK);
    assert_int_equal(ck_decoder_begin(d, "file", true, NULL), CK_OK);
    ck_buffer *buf = ck_buffer_new(h->mem, n);
    memcpy(buf->p, text, n);
    ck_error err = CK_ERROR_INIT;
    if (ck_decoder_feed(d, buf, 0, n, 0, true, &used, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_batch *b = ck_decoder_take(d);
    assert_non_null(b);
    ck_buffer_unref(&buf);
    ck_decoder_free(d);
    return b;
}

static void expect_text(ck_harness *h, const ck_encoder_spec *spec, const ck_batch *b, const uint8_t *kinds,
                        const char *expected) {
    ck_encoder *e;
    ck_bytes out;
    ck_bytes_init(&out, h->mem, 1 << 20);
    assert_int_equal(ck_encoder_new(spec, h->mem, &e, NULL), CK_OK);
    assert_int_equal(ck_encoder_header(e, &out), CK_OK);
    size_t ends[64];
    assert_int_equal(ck_encoder_rows(e, b, kinds, &out, ends), CK_OK);
    if (b->sel_count) assert_int_equal(ends[b->sel_count - 1], out.n);
    assert_int_equal(ck_bytes_terminate(&out), CK_OK);
    assert_string_equal(out.p, expected);
    ck_encoder_free(e);
    ck_bytes_destroy(&out);
}

static void test_every_type(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_encoder_spec json = {.format = "json", .schema = &all_schema}, csv = {.format = "csv", .schema = &all_schema};
    ck_batch *b = batch_of(&h, &all_schema, "json", NULL, json_rows);
    expect_text(&h, &json, b, NULL, json_rows);
    expect_text(&h, &csv, b, NULL, csv_rows);
    ck_batch *again = batch_of(&h, &all_schema, "csv", NULL, csv_rows);
    expect_text(&h, &json, again, NULL, json_rows);
    ck_batch_unref(&again);
    ck_batch_unref(&b);
    assert_int_equal(ck_budget_total(&h.proc.budget), 0);
    ck_harness_destroy(&h);
}

static void test_csv_quotes_and_nulls(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_field f[] = {{"a", simple(CK_TYPE_VARCHAR), true}, {"the \"b\"", simple(CK_TYPE_DOUBLE), true}};
    ck_schema schema = {f, 2};
    static const char rows[] =
        "{\"a\":\"x,y\",\"the \\\"b\\\"\":1.5}\n{\"a\":\"NA\",\"the \\\"b\\\"\":\"NaN\"}\n{\"a\":\"\"}\n{}\n"
        "{\"a\":\"cr\\r\"}\n{\"a\":\" plain; \"}\n{\"a\":\"tab\\tonly\"}\n";
    ck_batch *b = batch_of(&h, &schema, "json", NULL, rows);
    ck_encoder_spec spec = {.format = "csv", .schema = &schema, .header = true};
    expect_text(&h, &spec, b, NULL,
                "a,\"the \"\"b\"\"\"\n\"x,y\",1.5\nNA,NaN\n\"\",\n,\n\"cr\r\",\n plain; ,\ntab\tonly,\n");
    spec.null_string = "NA";
    expect_text(&h, &spec, b, NULL,
                "a,\"the \"\"b\"\"\"\n\"x,y\",1.5\n\"NA\",NaN\n,NA\nNA,NA\n\"cr\r\",NA\n plain; ,NA\ntab\tonly,NA\n");
    spec.null_string = "NaN";
    spec.delimiter = ';';
    spec.header = false;
    expect_text(&h, &spec, b, NULL,
                "x,y;1.5\nNA;\"NaN\"\n;NaN\nNaN;NaN\n\"cr\r\";NaN\n\" plain; \";NaN\ntab\tonly;NaN\n");
    spec.null_string = NULL;
    spec.delimiter = ' ';
    expect_text(&h, &spec, b, NULL, "x,y 1.5\nNA NaN\n\"\" \n \n\"cr\r\" \n\" plain; \" \ntab\tonly \n");
    ck_encoder *e;
    spec.delimiter = '.';
    assert_int_equal(ck_encoder_new(&spec, h.mem, &e, NULL), CK_INVALID);
    spec.delimiter = ';';
    spec.null_string = "a;b";
    assert_int_equal(ck_encoder_new(&spec, h.mem, &e, NULL), CK_INVALID);
    ck_batch_unref(&b);
    ck_harness_destroy(&h);
}

/* One column, where NULL is an empty line. */
static void test_csv_one_column(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_field f = {"a", simple(CK_TYPE_VARCHAR), true};
    ck_schema schema = {&f, 1};
    ck_batch *b = batch_of(&h, &schema, "json", NULL, "{\"a\":null}\n{\"a\":\"\"}\n{\"a\":\"x\"}\n{}\n");
    ck_encoder_spec spec = {.format = "csv", .schema = &schema};
    expect_text(&h, &spec, b, NULL, "\n\"\"\nx\n\n");
    ck_batch *again = batch_of(&h, &schema, "csv", NULL, "\n\"\"\nx\n\n");
    expect_text(&h, &spec, again, NULL, "\n\"\"\nx\n\n");
    ck_batch_unref(&again);
    ck_batch_unref(&b);
    ck_harness_destroy(&h);
}

/* Rows 1 to 6, chosen by sel, with weights. */
static ck_batch *weighted(ck_harness *h, const ck_schema *schema, const ck_batch *rows, const uint16_t *sel,
                          uint32_t sel_count, const int8_t *weights) {
    ck_batch *b = ck_batch_new(h->mem, schema->field_count, rows->row_count, true, true);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        ck_column *c = ck_column_ref(rows->columns[i]);
        ck_batch_set_column(b, i, &c);
    }
    memcpy(b->weights, weights, rows->row_count);
    memcpy(b->sel, sel, sel_count * sizeof *sel);
    b->sel_count = sel_count;
    return b;
}

static void test_changes(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_field f[] = {{"k", simple(CK_TYPE_VARCHAR), true}, {"n", simple(CK_TYPE_BIGINT), true}};
    ck_schema schema = {f, 2};
    ck_batch *rows =
        batch_of(&h, &schema, "json", NULL,
                 "{\"k\":\"a\",\"n\":1}\n{\"k\":\"a\",\"n\":1}\n{\"k\":\"gone\",\"n\":0}\n{\"k\":\"a\",\"n\":2}\n"
                 "{\"k\":\"b\",\"n\":3}\n{\"k\":\"c\",\"n\":4}\n{\"n\":5}\n{\"n\":6}\n");
    const int8_t weights[] = {1, -1, 1, 1, -1, 1, -1, 1};
    const uint16_t sel[] = {0, 1, 3, 4, 5, 6, 7};
    ck_batch *b = weighted(&h, &schema, rows, sel, 7, weights);
    uint8_t kinds[7];
    const uint32_t key = 0;
    assert_int_equal(ck_change_kinds(b, &key, 1, kinds), CK_OK);
    const uint8_t paired[] = {CK_CHANGE_INSERT, CK_CHANGE_UPDATE_BEFORE, CK_CHANGE_UPDATE_AFTER, CK_CHANGE_DELETE,
                              CK_CHANGE_INSERT, CK_CHANGE_UPDATE_BEFORE, CK_CHANGE_UPDATE_AFTER};
    assert_memory_equal(kinds, paired, sizeof paired);
    ck_encoder_spec json = {.format = "json", .schema = &schema, .changes = CK_CHANGES_PREFIX};
    expect_text(&h, &json, b, kinds,
                "{\"k\":\"a\",\"n\":1}\n-U {\"k\":\"a\",\"n\":1}\n+U {\"k\":\"a\",\"n\":2}\n-D "
                "{\"k\":\"b\",\"n\":3}\n{\"k\":\"c\",\"n\":4}\n"
                "-U {\"k\":null,\"n\":5}\n+U {\"k\":null,\"n\":6}\n");
    json.changes = CK_CHANGES_FIELD;
    expect_text(
        &h, &json, b, kinds,
        "{\"op\":\"+I\",\"k\":\"a\",\"n\":1}\n{\"op\":\"-U\",\"k\":\"a\",\"n\":1}\n{\"op\":\"+U\",\"k\":\"a\",\"n\":2}"
        "\n"
        "{\"op\":\"-D\",\"k\":\"b\",\"n\":3}\n{\"op\":\"+I\",\"k\":\"c\",\"n\":4}\n{\"op\":\"-U\",\"k\":null,\"n\":5}\n"
        "{\"op\":\"+U\",\"k\":null,\"n\":6}\n");
    ck_encoder_spec csv = {.format = "csv", .schema = &schema, .changes = CK_CHANGES_FIELD, .header = true};
    expect_text(&h, &csv, b, kinds, "op,k,n\n+I,a,1\n-U,a,1\n+U,a,2\n-D,b,3\n+I,c,4\n-U,,5\n+U,,6\n");
    /* of a result of one row every version is an update of the last */
    assert_int_equal(ck_change_kinds(b, &key, 0, kinds), CK_OK);
    for (uint32_t k = 0; k + 1 < b->sel_count; k++)
        if (ck_batch_weight(b, ck_batch_row(b, k)) < 0 && ck_batch_weight(b, ck_batch_row(b, k + 1)) > 0)
            assert_int_equal(kinds[k], CK_CHANGE_UPDATE_BEFORE);
    assert_int_equal(ck_change_kinds(b, NULL, 0, kinds), CK_OK);
    const uint8_t single[] = {CK_CHANGE_INSERT, CK_CHANGE_DELETE, CK_CHANGE_INSERT, CK_CHANGE_DELETE,
                              CK_CHANGE_INSERT, CK_CHANGE_DELETE, CK_CHANGE_INSERT};
    assert_memory_equal(kinds, single, sizeof single);
    csv.changes = CK_CHANGES_PREFIX;
    csv.header = false;
    expect_text(&h, &csv, b, kinds, "a,1\n-D a,1\na,2\n-D b,3\nc,4\n-D ,5\n,6\n");
    ck_batch_unref(&b);
    ck_batch_unref(&rows);
    ck_harness_destroy(&h);
}

/* A full buffer leaves no half record. */
static void test_a_full_buffer_takes_nothing(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_batch *b = batch_of(&h, &all_schema, "json", NULL, json_rows);
    static const char *const formats[] = {"json", "csv"};
    for (int i = 0; i < 2; i++) {
        ck_encoder_spec spec = {.format = formats[i], .schema = &all_schema, .header = true};
        ck_encoder *e;
        assert_int_equal(ck_encoder_new(&spec, h.mem, &e, NULL), CK_OK);
        for (size_t max = 1; max < 400; max += 7) {
            ck_bytes out;
            ck_bytes_init(&out, h.mem, max);
            assert_int_equal(ck_bytes_char(&out, 'x'), CK_OK);
            assert_int_equal(ck_encoder_rows(e, b, NULL, &out, NULL), CK_FULL);
            assert_int_equal(out.n, 1);
            if (i == 1 && max < 60) assert_int_equal(ck_encoder_header(e, &out), CK_FULL);
            assert_int_equal(out.n, 1);
            ck_bytes_destroy(&out);
        }
        ck_encoder_free(e);
    }
    ck_batch_unref(&b);
    ck_harness_destroy(&h);
}

static void test_without_memory(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_batch *b = batch_of(&h, &all_schema, "json", NULL, json_rows);
    for (uint64_t nth = 1; nth < 1000; nth++) {
        ck_tracked_heap *heap;
        assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
        ck_budget budget;
        ck_budget_init(&budget, ck_tracked_heap_base(heap), 0);
        ck_mem mem = {&budget, CK_MEM_QUEUE};
        ck_tracked_heap_fail_nth(heap, nth);
        ck_encoder_spec spec = {.format = nth & 1 ? "json" : "csv", .schema = &all_schema, .null_string = "NA"};
        ck_encoder *e = NULL;
        ck_bytes out;
        ck_bytes_init(&out, mem, 1 << 20);
        ck_status s = ck_encoder_new(&spec, mem, &e, NULL);
        if (s == CK_OK) s = ck_encoder_rows(e, b, NULL, &out, NULL);
        bool fired = ck_tracked_heap_fired(heap);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        if (fired) assert_int_equal(out.n, 0);
        ck_encoder_free(e);
        ck_bytes_destroy(&out);
        assert_int_equal(ck_tracked_heap_live_blocks(heap), 0);
        ck_tracked_heap_free(heap);
        if (!fired && nth > 40) break;
    }
    ck_batch_unref(&b);
    ck_harness_destroy(&h);
}

/* What is encoded reads back as the same values: strings of all bytes, doubles of all kinds. */
static void test_round_trip(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_field f[] = {
        {"s", simple(CK_TYPE_VARCHAR), true}, {"d", simple(CK_TYPE_DOUBLE), true}, {"i", simple(CK_TYPE_BIGINT), true}};
    ck_schema schema = {f, 3};
    ck_batch_builder builder;
    assert_int_equal(ck_batch_builder_init(&builder, h.mem, &schema, 1000), CK_OK);
    uint64_t seed = 7;
    for (int i = 0; i < 1000; i++) {
        char text[64];
        size_t n = (size_t)i % 40;
        for (size_t k = 0; k < n; k++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            text[k] = (char)(seed >> 33 & 0x7F);
            if (text[k] == 0) text[k] = '"'; /* csv knows no NUL */
        }
        double d;
        memcpy(&d, &seed, sizeof d);
        if (d - d != 0) d = (double)i;
        assert_int_equal(ck_build_str(&builder.columns[0], text, n), CK_OK);
        assert_int_equal(ck_build_f64(&builder.columns[1], d), CK_OK);
        assert_int_equal(ck_build_i64(&builder.columns[2], (int64_t)seed), CK_OK);
        ck_batch_builder_row(&builder, 1);
    }
    ck_batch *b = ck_batch_builder_finish(&builder);
    static const char *const formats[] = {"json", "csv"};
    for (int i = 0; i < 2; i++) {
        ck_encoder_spec spec = {.format = formats[i], .schema = &schema};
        ck_encoder *e;
        ck_bytes out;
        ck_bytes_init(&out, h.mem, 1 << 20);
        assert_int_equal(ck_encoder_new(&spec, h.mem, &e, NULL), CK_OK);
        assert_int_equal(ck_encoder_rows(e, b, NULL, &out, NULL), CK_OK);
        assert_int_equal(ck_bytes_terminate(&out), CK_OK);
        ck_batch *again = batch_of(&h, &schema, formats[i], NULL, out.p);
        assert_int_equal(again->row_count, b->row_count);
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t r = 0; r < b->row_count; r++)
                if (!ck_column_rows_equal(b->columns[c], r, again->columns[c], r))
                    fail_msg("%s row %u column %u", formats[i], r, c);
        ck_batch_unref(&again);
        ck_encoder_free(e);
        ck_bytes_destroy(&out);
    }
    ck_batch_unref(&b);
    ck_batch_builder_destroy(&builder);
    ck_harness_destroy(&h);
}

static void test_intervals_are_shown(void **state) {
    (void)state;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_field f[] = {{"m", simple(CK_TYPE_INTERVAL_MONTH), true}, {"d", simple(CK_TYPE_INTERVAL_US), true}};
    ck_schema schema = {f, 2};
    ck_batch_builder builder;
    assert_int_equal(ck_batch_builder_init(&builder, h.mem, &schema, 2), CK_OK);
    assert_int_equal(ck_build_i64(&builder.columns[0], 14), CK_OK);
    assert_int_equal(ck_build_i64(&builder.columns[1], 90061000000), CK_OK);
    ck_batch_builder_row(&builder, 1);
    assert_int_equal(ck_build_i64(&builder.columns[0], -1), CK_OK);
    assert_int_equal(ck_build_i64(&builder.columns[1], -500000), CK_OK);
    ck_batch_builder_row(&builder, 1);
    ck_batch *b = ck_batch_builder_finish(&builder);
    ck_encoder_spec spec = {.format = "json", .schema = &schema};
    expect_text(&h, &spec, b, NULL,
                "{\"m\":\"1-02\",\"d\":\"1 01:01:01\"}\n{\"m\":\"-0-01\",\"d\":\"-0 00:00:00.500\"}\n");
    ck_batch_unref(&b);
    ck_batch_builder_destroy(&builder);
    ck_harness_destroy(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_csv_quotes_and_nulls),
        cmocka_unit_test(test_csv_one_column),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_a_full_buffer_takes_nothing),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_intervals_are_shown),
    };
    return cmocka_run_group_tests(tests, make_schema, NULL);
}
