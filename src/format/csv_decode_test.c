/* CSV into columns: quoting, headers, NULLs, what is refused and where, and that neither the cut of the input nor the
 * instruction set changes anything. */
#include "format/expect_int.h"

#include <stdio.h>
#include <stdlib.h>

static const ck_type varchar_3 = {CK_TYPE_VARCHAR, 3, 0, NULL, 0}, decimal_10_2 = {CK_TYPE_DECIMAL, 10, 2, NULL, 0};

static const ck_type *simple(ck_kind k) { return ck_type_simple(k); }

/* Columns a BIGINT, b VARCHAR, c DOUBLE. */
static ck_field abc[3];
static ck_schema abc_schema = {abc, 3};

static int make_schema(void **state) {
    (void)state;
    abc[0] = (ck_field){"a", simple(CK_TYPE_BIGINT), true};
    abc[1] = (ck_field){"b", simple(CK_TYPE_VARCHAR), true};
    abc[2] = (ck_field){"c", simple(CK_TYPE_DOUBLE), true};
    return 0;
}

static void expect_abc(const char *text, const char *rows, const char *bad) {
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema};
    ck_expect(&spec, text, strlen(text), rows, bad);
}

static void expect_v(const ck_type *t, bool nullable, const char *text, const char *rows, const char *bad) {
    ck_field f = {"v", t, nullable};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "csv", .schema = &schema};
    ck_expect(&spec, text, strlen(text), rows, bad);
}

static void test_plain_records(void **state) {
    (void)state;
    expect_abc(
        "1,x,1.5\n-2,a text of more than twelve bytes,2\n9223372036854775807,,1e3\r\n007,twelve bytes,-0.0\n,NULL,\n"
        "-9223372036854775808,thirteen byte,NaN\n+5, spaced , 6 ",
        "1|x|1.5|\n-2|a text of more than twelve bytes|2.0|\n9223372036854775807|NULL|1000.0|\n7|twelve bytes|-0.0|\n"
        "NULL|NULL|NULL|\n-9223372036854775808|thirteen byte|NaN|\n5| spaced |6.0|\n",
        "");
}

static void test_quotes(void **state) {
    (void)state;
    expect_abc("1,\"x,y\",2\n\"2\",\"say \"\"hi\"\"\",\"3.5\"\n3,\"line\nbreak\r\nand more of it\",4\n4,\"\",5\n"
               "5,\"\"\"\",6\r\n6,\"ends in cr\r\",7\n\"7\",\"a longer text \"\"quoted\"\" inside\",\"8\"\r\n8,x,\"9\"",
               "1|x,y|2.0|\n2|say \"hi\"|3.5|\n3|line\nbreak\r\nand more of it|4.0|\n4||5.0|\n5|\"|6.0|\n"
               "6|ends in cr\r|7.0|\n7|a longer text \"quoted\" inside|8.0|\n8|x|9.0|\n",
               "");
}

static void test_blank_lines(void **state) {
    (void)state;
    expect_abc("\n1,x,1\n\r\n\n2,y,2\n\n", "1|x|1.0|\n2|y|2.0|\n", "");
    expect_abc("", "", "");
    expect_abc("\xef\xbb\xbf"
               "1,x,1\n",
               "1|x|1.0|\n", "");
    expect_v(simple(CK_TYPE_VARCHAR), true, "x\n\n\r\n\"\"\ny", "x|\nNULL|\nNULL|\n|\ny|\n", "");
}

static void test_wrong_counts(void **state) {
    (void)state;
    expect_abc("1,x,1\n1,x\n1,x,1,\nx\n2,y,2\n,,,,,\n3,z,3\n", "1|x|1.0|\n2|y|2.0|\n3|z|3.0|\n",
               "6 0 -: 2 fields where 3 are expected: 1,x\n10 0 -: 4 fields where 3 are expected: 1,x,1,\n"
               "17 0 -: 1 field where 3 are expected: x\n25 0 -: 6 fields where 3 are expected: ,,,,,\n");
}

static void test_bad_values(void **state) {
    (void)state;
    expect_abc("1,x,1\nNA,x,1\n2,y,z\n\"3x\",\"q\",1\n4,\"w\",1e400\n5,v,5\n", "1|x|1.0|\n5|v|5.0|\n",
               "6 1 a: \"NA\" is not a BIGINT: NA,x,1\n13 5 c: \"z\" is not a DOUBLE: 2,y,z\n"
               "19 1 a: \"3x\" is not a BIGINT: \"3x\",\"q\",1\n30 7 c: \"1e400\" is out of range for DOUBLE: "
               "4,\"w\",1e400\n");
    expect_v(simple(CK_TYPE_SMALLINT), true, "32767\n32768\n1.0\n1.5\n1e2\n", "32767|\n1|\n100|\n",
             "6 1 v: \"32768\" is out of range for SMALLINT: 32768\n16 1 v: \"1.5\" is not a SMALLINT: 1.5\n");
    expect_v(simple(CK_TYPE_BOOLEAN), true, "true\nF\nYes\n0\n2\n", "true|\nfalse|\ntrue|\nfalse|\n",
             "13 1 v: \"2\" is not a BOOLEAN: 2\n");
    expect_v(simple(CK_TYPE_BIGINT), false, "1\n\n\"\"\n2\n", "1|\n2|\n",
             "2 1 v: column v is null and NOT NULL: \n3 1 v: \"\" is not a BIGINT: \"\"\n");
    expect_v(&varchar_3, true, "abc\nabcd\n\"a\"\"b\"\n", "abc|\na\"b|\n",
             "4 1 v: 4 characters are too long for VARCHAR(3): abcd\n");
    expect_v(&decimal_10_2, true, "1.005\n.5\n1e9\n", "1.01|\n0.50|\n",
             "9 1 v: \"1e9\" is out of range for DECIMAL(10,2): 1e9\n");
    expect_v(simple(CK_TYPE_TIMESTAMP), true, "2024-01-02T03:04:05Z\n2024-13-02\n", "2024-01-02 03:04:05|\n",
             "21 1 v: \"2024-13-02\" is not a TIMESTAMP(6): 2024-13-02\n");
    expect_v(simple(CK_TYPE_BYTES), true, "AQID\n\"\"\nA\n", "AQID|\n|\n", "8 1 v: \"A\" is not BYTES in base64: A\n");
}

static void test_nested_values_are_json(void **state) {
    (void)state;
    ck_field element = {"element", simple(CK_TYPE_VARCHAR), true};
    ck_type array = {CK_TYPE_ARRAY, 0, 0, &element, 1};
    expect_v(&array, true,
             "\"[\"\"x\"\", null]\"\n[]\n\nnull\n\"[\"\"a text of more than twelve\"\"\n ]\"\n[1\n[1] 2\n",
             "[\"x\",null]|\n[]|\nNULL|\nNULL|\n[\"a text of more than twelve\"]|\n",
             "62 1 v: not valid JSON: unexpected end at byte 3 of the field: [1\n"
             "65 1 v: not valid JSON: more text after the value at byte 5 of the field: [1] 2\n");
}

static void test_bad_quotes(void **state) {
    (void)state;
    /* Where a record ends is a matter of parity alone: a stray quote takes the next lines with it. */
    expect_abc("1,x,1\n2,a\"b,2\n3,y\"z,3\n4,x,4\n", "1|x|1.0|\n4|x|4.0|\n",
               "6 4 -: a quote inside an unquoted field at byte 4 of the record: 2,a\"b,2\n3,y\"z,3\n");
    expect_abc("1,\"x\"y,1\n2,x,2\n", "2|x|2.0|\n",
               "0 6 -: text after a closing quote at byte 6 of the record: 1,\"x\"y,1\n");
    expect_abc("1,\"x\" ,1\n2,x,2\n", "2|x|2.0|\n",
               "0 6 -: text after a closing quote at byte 6 of the record: 1,\"x\" ,1\n");
    expect_abc("1,x,1\n2,\"open,2\n3,x,3\n", "1|x|1.0|\n",
               "6 3 -: the quote at byte 3 of the record is never closed: 2,\"open,2\n3,x,3\n\n");
    expect_abc("1,x,1\n\"", "1|x|1.0|\n", "6 1 -: the quote at byte 1 of the record is never closed: \"\n");
}

static void test_bytes_that_are_no_text(void **state) {
    (void)state;
    expect_abc("1,\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and so on,1\n2,\xff,2\n3,x\xc3,3\n4,\"\xed\xa0\x80\",4\n5,x,5\n",
               "1|\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and so on|1.0|\n5|x|5.0|\n",
               "24 3 -: invalid UTF-8 at byte 3 of the record: 2,\xff,2\n30 4 -: invalid UTF-8 at byte 4 of the "
               "record: 3,x\xc3,3\n"
               "37 4 -: invalid UTF-8 at byte 4 of the record: 4,\"\xed\xa0\x80\",4\n");
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema};
    static const char nul[] = "1,x,1\n2,a\0b,2\n3,z,3\n";
    ck_expect(&spec, nul, sizeof nul - 1, "1|x|1.0|\n3|z|3.0|\n", NULL);
    bool only_a[] = {true, false, false}; /* columns that are not wanted are looked at all the same */
    spec.wanted = only_a;
    ck_expect(&spec, nul, sizeof nul - 1, "1|\n3|\n", NULL);
    static const char bad[] = "1,x,1\n2,\xff,2\n3,\"x\"y,3\n4,x,4\n";
    ck_expect(&spec, bad, sizeof bad - 1, "1|\n4|\n", NULL);
}

static void test_null_string(void **state) {
    (void)state;
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .null_string = "NA"};
    static const char text[] = "NA,NA,NA\n1,\"NA\",2\n2,,3\n3,NAN,nan\n,x,1\n";
    ck_expect(&spec, text, sizeof text - 1, "NULL|NULL|NULL|\n1|NA|2.0|\n2||3.0|\n3|NAN|NaN|\n",
              "33 1 a: \"\" is not a BIGINT: ,x,1\n");
    spec.null_string = "0";
    ck_expect(&spec, "0,0,0\n1,\"0\",\"0\"\n", 16, "NULL|NULL|NULL|\n1|0|0.0|\n", "");
    spec.null_string = ""; /* as none given */
    ck_expect(&spec, ",,\n", 3, "NULL|NULL|NULL|\n", "");
}

static void test_delimiter(void **state) {
    (void)state;
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .delimiter = '\t'};
    ck_expect(&spec, "1\tx,y\t2\n", 8, "1|x,y|2.0|\n", "");
    spec.delimiter = ' ';
    ck_expect(&spec, "1 x 2\n3 \"y z\" \"4.5\"\n", 20, "1|x|2.0|\n3|y z|4.5|\n", "");
}

static void test_header(void **state) {
    (void)state;
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .header = true, .origins = true};
    static const char text[] = "\xef\xbb\xbf"
                               "c,unknown,\"a\",unknown,b\r\n1.5,?,1,?,x\n2.5,?,2,?,\"y\"\n3,?,3\n";
    ck_expect(&spec, text, sizeof text - 1, "@28 1|x|1.5|\n@40 2|y|2.5|\n",
              "54 0 -: 3 fields where 5 are expected: 3,?,3\n");
    ck_expect(&spec, "a,b,c", 5, "", "");
    ck_expect(&spec, "", 0, "", "");
    bool only_c[] = {false, false, true};
    spec.wanted = only_c;
    ck_expect(&spec, text, sizeof text - 1, "@28 1.5|\n@40 2.5|\n", NULL);
}

static void expect_header_error(const char *text, const char *message) {
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .header = true};
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    assert_int_equal(ck_harness_decode(&h, &spec, text, strlen(text), NULL, 0), CK_DATA);
    assert_string_equal(h.err.msg, message);
    assert_string_equal(h.err.place.object, "file");
    assert_int_equal(h.err.place.line, 1);
    assert_true(h.err.fatal);
    ck_harness_destroy(&h);
}

static void test_bad_headers(void **state) {
    (void)state;
    expect_header_error("a,b\n1,x\n", "the header does not name column c");
    expect_header_error("a,b,C\n", "the header does not name column c; case counts, and it names C");
    expect_header_error("a,b,c,a\n1,x,2,3\n", "the header names column a twice");
    expect_header_error("a,b,\xff\n", "the header is not UTF-8");
    expect_header_error("a,b\"\",c\n1,x,2\n", "the header: a quote inside an unquoted field at byte 4 of the record");
    expect_header_error("a,\"b\"x,c\n", "the header: text after a closing quote at byte 6 of the record");
    expect_header_error("a,b,\"c", "the header has an open quote");
    expect_header_error("\n1,x,2\n", "the header does not name column a");
}

/* A split that begins later is told the header. */
static void test_header_of_a_later_split(void **state) {
    (void)state;
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .header = true};
    ck_harness h;
    ck_decoder *d;
    size_t n;
    ck_harness_init(&h, ck_heap_system(), true);
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, NULL), CK_OK);
    assert_int_equal(ck_decoder_begin(d, "file", false, NULL), CK_OK);
    assert_int_equal(ck_decoder_csv_header(d,
                                           CK_VIEW("\xef\xbb\xbf"
                                                   "b,c,a\r\n"),
                                           NULL),
                     CK_OK);
    ck_buffer *buf = ck_buffer_new(h.mem, 8);
    memcpy(buf->p, "x,1.5,7\n", 8);
    assert_int_equal(ck_decoder_feed(d, buf, 0, 8, 1000, true, &n, NULL), CK_OK);
    assert_int_equal(ck_harness_take(&h, d, &abc_schema), CK_OK);
    assert_int_equal(ck_bytes_terminate(&h.rows), CK_OK);
    assert_string_equal(h.rows.p, "7|x|1.5|\n");
    /* the next file names its columns itself */
    memcpy(buf->p, "c,b,a\n\n\n", 8);
    assert_int_equal(ck_decoder_begin(d, "other", true, NULL), CK_OK);
    assert_int_equal(ck_decoder_feed(d, buf, 0, 8, 0, true, &n, NULL), CK_OK);
    assert_int_equal(n, 8);
    ck_buffer_unref(&buf);
    ck_decoder_free(d);
    ck_harness_destroy(&h);
}

/* Many chunks, records across their ends, some larger than one, quotes and bad records among them. */
static void test_large_text(void **state) {
    (void)state;
    ck_harness h;
    ck_bytes text, rows;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_bytes_init(&text, h.mem, 64 << 20);
    ck_bytes_init(&rows, h.mem, 64 << 20);
    uint64_t seed = 42;
    for (int i = 0; i < 6000; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        unsigned r = (unsigned)(seed >> 40);
        size_t len = r % 97 == 0 ? 20000 + r % 50000 : r % 120;
        bool quoted = r % 5 == 0, bad = r % 301 == 0;
        assert_int_equal(ck_bytes_printf(&text, "%d,%s", i, quoted ? "\"" : ""), CK_OK);
        if (!bad) assert_int_equal(ck_bytes_printf(&rows, "%d|", i), CK_OK);
        for (size_t k = 0; k < len; k++) {
            char c = (char)('a' + (k + r) % 26);
            const char *in = (char[]){c, 0}, *out = in;
            if (quoted && k % 17 == 3)
                in = out = "\n";
            else if (quoted && k % 17 == 5)
                in = "\"\"", out = "\"";
            else if (k % 19 == 7)
                in = out = "\xc3\xa9";
            assert_int_equal(ck_bytes_str(&text, in), CK_OK);
            if (!bad) assert_int_equal(ck_bytes_str(&rows, out), CK_OK);
        }
        assert_int_equal(ck_bytes_printf(&text, "%s,%s%d\n", quoted ? "\"" : "", bad ? "x" : "", i), CK_OK);
        if (!bad) assert_int_equal(ck_bytes_printf(&rows, "%s|%d.0|\n", len || quoted ? "" : "NULL", i), CK_OK);
    }
    ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .batch_rows = 1000};
    for (int simd = 0; simd < 2; simd++) {
        ck_harness got;
        size_t cuts[40];
        for (size_t i = 0; i < 40; i++) cuts[i] = text.n * (i + 1) / 41;
        ck_expect_decode(&got, &spec, text.p, text.n, cuts, 40, simd);
        assert_int_equal(got.rows.n, rows.n);
        assert_memory_equal(got.rows.p, rows.p, rows.n);
        ck_harness_destroy(&got);
    }
    ck_bytes_destroy(&text);
    ck_bytes_destroy(&rows);
    ck_harness_destroy(&h);
}

/* Quotes at every place of the 64-byte blocks that are looked at together. */
static void test_quotes_across_blocks(void **state) {
    (void)state;
    for (int pad = 40; pad < 140; pad++) {
        char text[512], rows[512];
        int n = snprintf(text, sizeof text, "1,%0*d,2\n3,\"x,\"\"\n\",\"4\"\r\n5,\"y\",6\n", pad, 7);
        (void)snprintf(rows, sizeof rows, "1|%0*d|2.0|\n3|x,\"\n|4.0|\n5|y|6.0|\n", pad, 7);
        ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema};
        for (int simd = 0; simd < 2; simd++) {
            ck_harness h;
            ck_expect_decode(&h, &spec, text, (size_t)n, NULL, 0, simd);
            assert_string_equal(h.rows.p, rows);
            assert_int_equal(h.bad.n, 0);
            ck_harness_destroy(&h);
        }
    }
}

static void test_without_memory(void **state) {
    (void)state;
    ck_field element = {"element", simple(CK_TYPE_VARCHAR), true};
    ck_type array = {CK_TYPE_ARRAY, 0, 0, &element, 1};
    ck_field f[] = {{"a", simple(CK_TYPE_BIGINT), true}, {"s", simple(CK_TYPE_VARCHAR), true}, {"v", &array, true}};
    ck_schema schema = {f, 3};
    ck_decoder_spec spec = {
        .format = "csv", .schema = &schema, .header = true, .origins = true, .batch_rows = 2, .null_string = "NA"};
    static const char text[] =
        "s,a,v,more,\"an \"\"escaped\"\" name\"\n\"long enough \"\"for\"\" a heap\",1,\"[\"\"x\"\"]\",,\nNA,2,NA,,\n"
        "bad\nlong enough for a heap,3,[],,\nlong enough for a heap,4,\"[\"\"long enough for a heap\"\"]\",,";
    size_t cut = 70;
    ck_harness whole;
    ck_expect_decode(&whole, &spec, text, sizeof text - 1, &cut, 1, true);
    uint64_t finished = 0;
    for (uint64_t nth = 1;; nth++) {
        ck_tracked_heap *heap;
        assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
        ck_harness h;
        ck_harness_init(&h, ck_tracked_heap_base(heap), true);
        h.retries = true;
        ck_tracked_heap_fail_nth(heap, nth);
        ck_status s = ck_harness_decode(&h, &spec, text, sizeof text - 1, &cut, 1);
        bool fired = ck_tracked_heap_fired(heap);
        assert_int_equal(s, fired && s != CK_OK ? CK_NOMEM : CK_OK);
        if (s == CK_OK) {
            assert_int_equal(h.rows.n, whole.rows.n);
            assert_memory_equal(h.rows.p, whole.rows.p, h.rows.n);
            finished += fired;
        }
        ck_harness_destroy(&h);
        assert_int_equal(ck_tracked_heap_live_blocks(heap), 0);
        ck_tracked_heap_free(heap);
        if (!fired) break;
    }
    assert_true(finished > 20); /* failures that were got over */
    ck_harness_destroy(&whole);
}

static void test_refused_specs(void **state) {
    (void)state;
    ck_harness h;
    ck_decoder *d;
    ck_harness_init(&h, ck_heap_system(), true);
    static const char delimiters[] = {'"', '\n', '\r', (char)0xC3, '5', 'e', 'N', '.', '-', '+'};
    for (size_t i = 0; i < sizeof delimiters; i++) {
        ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .delimiter = delimiters[i]};
        assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, NULL), CK_INVALID);
    }
    static const char *const nulls[] = {"a,b", "\"", "x\n"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(nulls); i++) {
        ck_decoder_spec spec = {.format = "csv", .schema = &abc_schema, .null_string = nulls[i]};
        assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, NULL), CK_INVALID);
    }
    assert_int_equal(ck_budget_total(&h.proc.budget), 0);
    ck_harness_destroy(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_records),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_blank_lines),
        cmocka_unit_test(test_wrong_counts),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_nested_values_are_json),
        cmocka_unit_test(test_bad_quotes),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_null_string),
        cmocka_unit_test(test_delimiter),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_header_of_a_later_split),
        cmocka_unit_test(test_large_text),
        cmocka_unit_test(test_quotes_across_blocks),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_refused_specs),
    };
    return cmocka_run_group_tests(tests, make_schema, NULL);
}
