/* NDJSON into columns: what is accepted and refused, in which words, and that neither the cut of the input, nor the
 * instruction set, nor what was learned before changes anything. */
#include "format/expect_int.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- schemas ---- */

static const ck_type decimal_10_2 = {CK_TYPE_DECIMAL, 10, 2, NULL, 0}, decimal_38_0 = {CK_TYPE_DECIMAL, 38, 0, NULL, 0},
                     varchar_3 = {CK_TYPE_VARCHAR, 3, 0, NULL, 0}, ts_3 = {CK_TYPE_TIMESTAMP, 3, 0, NULL, 0};
static ck_type array_bigint, map_bigint, map_int_key, row_type, array_rows;
static ck_field array_field, map_fields[2], map_int_fields[2], row_fields[3], array_rows_field;

static const ck_type *simple(ck_kind k) { return ck_type_simple(k); }

static int make_types(void **state) {
    (void)state;
    array_field = (ck_field){"element", simple(CK_TYPE_BIGINT), true};
    array_bigint = (ck_type){CK_TYPE_ARRAY, 0, 0, &array_field, 1};
    map_fields[0] = (ck_field){"key", simple(CK_TYPE_VARCHAR), false};
    map_fields[1] = (ck_field){"value", simple(CK_TYPE_BIGINT), true};
    map_bigint = (ck_type){CK_TYPE_MAP, 0, 0, map_fields, 2};
    map_int_fields[0] = (ck_field){"key", simple(CK_TYPE_INTEGER), false};
    map_int_fields[1] = (ck_field){"value", simple(CK_TYPE_VARCHAR), false};
    map_int_key = (ck_type){CK_TYPE_MAP, 0, 0, map_int_fields, 2};
    row_fields[0] = (ck_field){"a", simple(CK_TYPE_BIGINT), false};
    row_fields[1] = (ck_field){"b", simple(CK_TYPE_VARCHAR), true};
    row_fields[2] = (ck_field){"c", &array_bigint, true};
    row_type = (ck_type){CK_TYPE_ROW, 0, 0, row_fields, 3};
    array_rows_field = (ck_field){"element", &row_type, true};
    array_rows = (ck_type){CK_TYPE_ARRAY, 0, 0, &array_rows_field, 1};
    return 0;
}

/* ---- running ---- */

static void expect_z(const ck_schema *schema, const char *text, const char *rows, const char *bad) {
    ck_decoder_spec spec = {.format = "json", .schema = schema};
    ck_expect(&spec, text, strlen(text), rows, bad);
}

/* One column v of a type. */
static void expect_v(const ck_type *t, bool nullable, const char *text, const char *rows, const char *bad) {
    ck_field f = {"v", t, nullable};
    expect_z(&(ck_schema){&f, 1}, text, rows, bad);
}

/* ---- tests ---- */

static const char bids[] =
    "{\"auction\":1000,\"bidder\":1000,\"price\":2635,\"url\":\"https://www.nexmark.com/xxsj/bbdg/bgeb/"
    "item.htm\",\"x\":1}\n"
    "{\"auction\":-7,\"bidder\":0,\"price\":9223372036854775807,\"url\":\"short\",\"x\":2}\n"
    "{\"auction\":1,\"bidder\":-0,\"price\":-9223372036854775808,\"url\":\"\",\"x\":\"skipped \\u00e9\"}\n"
    "{\"auction\":1,\"bidder\":2,\"price\":3,\"url\":\"twelve bytes\",\"x\":null}\n"
    "{\"auction\":1,\"bidder\":2,\"price\":3,\"url\":\"thirteen byte\",\"x\":[1,{\"auction\":5}]}\n";

static void test_plain_records(void **state) {
    (void)state;
    ck_field f[] = {{"auction", simple(CK_TYPE_BIGINT), true},
                    {"bidder", simple(CK_TYPE_BIGINT), true},
                    {"price", simple(CK_TYPE_BIGINT), true},
                    {"url", simple(CK_TYPE_VARCHAR), true}};
    expect_z(&(ck_schema){f, 4}, bids,
             "1000|1000|2635|https://www.nexmark.com/xxsj/bbdg/bgeb/item.htm|\n"
             "-7|0|9223372036854775807|short|\n"
             "1|0|-9223372036854775808||\n"
             "1|2|3|twelve bytes|\n"
             "1|2|3|thirteen byte|\n",
             "");
}

/* Integers of fifteen to twenty digits, on either side of what the fast way takes at once. */
static void test_long_integers(void **state) {
    (void)state;
    ck_field f[] = {{"v", simple(CK_TYPE_BIGINT), true}};
    ck_schema schema = {f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    static const char text[] =
        "{\"v\":123456789012345}\n{\"v\":1234567890123456}\n{\"v\":-12345678901234567}\n{\"v\":123456789012345678}\n"
        "{\"v\":-1234567890123456789}\n{\"v\":9223372036854775807}\n{\"v\":-9223372036854775808}\n"
        "{\"v\":1000000000000000000}\n{\"v\":1234567890123456e2}\n{\"v\":12345678901234567.0}\n"
        "{\"v\":100000000000000000000e-2}\n{\"v\":9999999999999999}\n";
    ck_expect(&spec, text, sizeof text - 1,
              "123456789012345|\n1234567890123456|\n-12345678901234567|\n123456789012345678|\n"
              "-1234567890123456789|\n9223372036854775807|\n-9223372036854775808|\n"
              "1000000000000000000|\n123456789012345600|\n12345678901234567|\n"
              "1000000000000000000|\n9999999999999999|\n",
              "");
    static const char bad[] = "{\"v\":9223372036854775808}\n{\"v\":-9223372036854775809}\n{\"v\":9999999999999999999}\n"
                              "{\"v\":12345678901234567890}\n{\"v\":0123456789012345678}\n";
    ck_expect(&spec, bad, sizeof bad - 1, "",
              "0 6 v: 9223372036854775808 is out of range for BIGINT: {\"v\":9223372036854775808}\n"
              "26 6 v: -9223372036854775809 is out of range for BIGINT: {\"v\":-9223372036854775809}\n"
              "53 6 v: 9999999999999999999 is out of range for BIGINT: {\"v\":9999999999999999999}\n"
              "79 6 v: 12345678901234567890 is out of range for BIGINT: {\"v\":12345678901234567890}\n"
              "106 7 -: not valid JSON: unexpected '1' at byte 7 of the record: {\"v\":0123456789012345678}\n");
}

static void test_wanted_columns_only(void **state) {
    (void)state;
    ck_field f[] = {{"auction", simple(CK_TYPE_BIGINT), true},
                    {"bidder", simple(CK_TYPE_BIGINT), true},
                    {"price", simple(CK_TYPE_BIGINT), true},
                    {"url", simple(CK_TYPE_VARCHAR), true}};
    ck_schema schema = {f, 4};
    bool wanted[] = {false, false, true, false};
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .wanted = wanted};
    ck_expect(&spec, bids, sizeof bids - 1, "2635|\n9223372036854775807|\n-9223372036854775808|\n3|\n3|\n", "");
    bool none[] = {false, false, false, false};
    spec.wanted = none;
    ck_expect(&spec, bids, sizeof bids - 1, "\n\n\n\n\n", "");
}

static void test_checked_columns(void **state) {
    (void)state;
    ck_field f[] = {
        {"a", simple(CK_TYPE_BIGINT), false}, {"b", simple(CK_TYPE_VARCHAR), false}, {"c", &array_bigint, true}};
    ck_schema schema = {f, 3};
    bool wanted[] = {true, false, false}, checked[] = {false, true, false};
    static const char text[] =
        "{\"a\":1,\"b\":\"x\",\"c\":[1]}\n{\"a\":2,\"b\":null}\n{\"a\":3}\n{\"a\":4,\"b\":5,\"c\":6}\n"
        "{\"a\":5,\"b\":\"y\",\"c\":[1,\"z\"]}\n";
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .wanted = wanted};
    ck_expect(&spec, text, sizeof text - 1, "1|\n2|\n3|\n4|\n5|\n", "");
    spec.checked = checked;
    ck_expect(&spec, text, sizeof text - 1, "1|\n4|\n5|\n",
              "24 12 b: column b is null and NOT NULL: {\"a\":2,\"b\":null}\n"
              "41 0 b: column b is missing and NOT NULL: {\"a\":3}\n");
    spec.checked = NULL;
    spec.strict = true;
    ck_expect(&spec, text, sizeof text - 1, "1|\n",
              "24 12 b: column b is null and NOT NULL: {\"a\":2,\"b\":null}\n"
              "41 0 b: column b is missing and NOT NULL: {\"a\":3}\n"
              "49 18 c: 6 is not an ARRAY<BIGINT>: {\"a\":4,\"b\":5,\"c\":6}\n"
              "69 20 c: \"z\" is not a BIGINT: {\"a\":5,\"b\":\"y\",\"c\":[1,\"z\"]}\n");
}

static void test_order_spacing_missing_duplicates(void **state) {
    (void)state;
    ck_field f[] = {
        {"a", simple(CK_TYPE_BIGINT), true}, {"b", simple(CK_TYPE_VARCHAR), true}, {"c", simple(CK_TYPE_DOUBLE), true}};
    expect_z(&(ck_schema){f, 3},
             "{\"a\":1,\"b\":\"x\",\"c\":1.5}\n"
             "{\"b\":\"y\",\"a\":2,\"c\":2.5}\n"
             "{\"c\":3,\"b\":\"z\",\"a\":3}\n"
             "{ \"a\" : 4 , \"b\" : \"w\" , \"c\" : 4e0 }\n"
             "\t{\"a\":5}\r\n"
             "{}\n"
             "{ }  \n"
             "{\"a\":1,\"a\":6,\"b\":\"first\",\"b\":\"last\"}\n"
             "{\"a\":\"bad\",\"a\":7}\n"
             "{\"\\u0061\":8,\"b\":\"esc\"}\n"
             "{\"A\":9,\"a \":9,\"\":9,\"d\":{\"a\":1}}\n"
             "\n"
             "   \r\n"
             "{\"a\":10,\"b\":null,\"c\":null}",
             "1|x|1.5|\n2|y|2.5|\n3|z|3.0|\n4|w|4.0|\n5|NULL|NULL|\nNULL|NULL|NULL|\nNULL|NULL|NULL|\n6|last|NULL|\n"
             "7|NULL|NULL|\n8|esc|NULL|\nNULL|NULL|NULL|\n10|NULL|NULL|\n",
             "");
}

static void test_optional_keys_are_relearned(void **state) {
    (void)state;
    ck_field f[] = {
        {"a", simple(CK_TYPE_BIGINT), true}, {"b", simple(CK_TYPE_BIGINT), true}, {"c", simple(CK_TYPE_BIGINT), true}};
    char text[4096], rows[4096];
    size_t n = 0, m = 0;
    for (int i = 0; i < 40; i++) { /* every subset of three keys, again and again */
        bool comma = false;
        text[n++] = '{';
        for (int k = 0; k < 3; k++) {
            if (!(i >> k & 1)) {
                m += (size_t)sprintf(rows + m, "NULL|");
                continue;
            }
            n += (size_t)sprintf(text + n, "%s\"%c\":%d", comma ? "," : "", 'a' + k, i);
            m += (size_t)sprintf(rows + m, "%d|", i);
            comma = true;
        }
        text[n++] = '}', text[n++] = '\n';
        rows[m++] = '\n';
    }
    rows[m] = 0;
    ck_schema schema = {f, 3};
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .batch_rows = 7};
    ck_expect(&spec, text, n, rows, "");
}

static void test_integers(void **state) {
    (void)state;
    expect_v(simple(CK_TYPE_BIGINT), true,
             "{\"v\":0}\n{\"v\":-0}\n{\"v\":123456789012345}\n{\"v\":1234567890123456}\n{\"v\":12345678901234567}\n"
             "{\"v\":1.0}\n{\"v\":1e3}\n{\"v\":1.50e1}\n{\"v\":-2E+0}\n{\"v\":0.000}\n{\"v\":100e-2}\n{\"v\":"
             "0e999999999999}\n",
             "0|\n0|\n123456789012345|\n1234567890123456|\n12345678901234567|\n1|\n1000|\n15|\n-2|\n0|\n1|\n0|\n", "");
    expect_v(
        simple(CK_TYPE_BIGINT), true,
        "{\"v\":9223372036854775808}\n{\"v\":1.5}\n{\"v\":1e19}\n{\"v\":\"NA\"}\n{\"v\":\"5\"}\n{\"v\":true}\n"
        "{\"v\":1e-1}\n{\"v\":123456789012345678901234567890}\n{\"v\":[]}\n{\"v\":1e999999999999}\n",
        "",
        "0 6 v: 9223372036854775808 is out of range for BIGINT: {\"v\":9223372036854775808}\n"
        "26 6 v: 1.5 is not a BIGINT: {\"v\":1.5}\n"
        "36 6 v: 1e19 is out of range for BIGINT: {\"v\":1e19}\n"
        "47 6 v: \"NA\" is not a BIGINT: {\"v\":\"NA\"}\n"
        "58 6 v: \"5\" is not a BIGINT: {\"v\":\"5\"}\n"
        "68 6 v: true is not a BIGINT: {\"v\":true}\n"
        "79 6 v: 1e-1 is not a BIGINT: {\"v\":1e-1}\n"
        "90 6 v: 123456789012345678901234567890 is out of range for BIGINT: {\"v\":123456789012345678901234567890}\n"
        "127 6 v: [] is not a BIGINT: {\"v\":[]}\n"
        "136 6 v: 1e999999999999 is out of range for BIGINT: {\"v\":1e999999999999}\n");
    expect_v(simple(CK_TYPE_TINYINT), true, "{\"v\":127}\n{\"v\":-128}\n{\"v\":128}\n{\"v\":-129}\n", "127|\n-128|\n",
             "21 6 v: 128 is out of range for TINYINT: {\"v\":128}\n31 6 v: -129 is out of range for TINYINT: "
             "{\"v\":-129}\n");
    expect_v(simple(CK_TYPE_INTEGER), true, "{\"v\":2147483647}\n{\"v\":3000000000}\n", "2147483647|\n",
             "17 6 v: 3000000000 is out of range for INTEGER: {\"v\":3000000000}\n");
}

static void test_other_scalars(void **state) {
    (void)state;
    expect_v(simple(CK_TYPE_DOUBLE), true,
             "{\"v\":0.1}\n{\"v\":-0.0}\n{\"v\":1e300}\n{\"v\":\"NaN\"}\n{\"v\":\"-Infinity\"}\n{\"v\":123456789."
             "123456789}\n"
             "{\"v\":2.2250738585072011e-308}\n{\"v\":1e400}\n{\"v\":\"1.5\"}\n{\"v\":5}\n",
             "0.1|\n-0.0|\n1e300|\nNaN|\n-Infinity|\n123456789.12345679|\n2.225073858507201e-308|\n5.0|\n",
             "119 6 v: 1e400 is out of range for DOUBLE: {\"v\":1e400}\n131 6 v: \"1.5\" is not a DOUBLE: "
             "{\"v\":\"1.5\"}\n");
    expect_v(simple(CK_TYPE_REAL), true, "{\"v\":0.1}\n{\"v\":1e39}\n", "0.1|\n",
             "10 6 v: 1e39 is out of range for REAL: {\"v\":1e39}\n");
    expect_v(simple(CK_TYPE_BOOLEAN), true, "{\"v\":true}\n{\"v\":false}\n{\"v\":null}\n{\"v\":1}\n{\"v\":\"true\"}\n",
             "true|\nfalse|\nNULL|\n",
             "34 6 v: 1 is not a BOOLEAN: {\"v\":1}\n42 6 v: \"true\" is not a BOOLEAN: {\"v\":\"true\"}\n");
    expect_v(
        &decimal_10_2, true,
        "{\"v\":1.005}\n{\"v\":\"12345678.99\"}\n{\"v\":-0.001}\n{\"v\":1e7}\n{\"v\":99999999.995}\n{\"v\":\"x\"}\n"
        "{\"v\":12345678901234567890}\n{\"v\":-1e-400}\n",
        "1.01|\n12345678.99|\n0.00|\n10000000.00|\n0.00|\n",
        "55 6 v: 99999999.995 is out of range for DECIMAL(10,2): {\"v\":99999999.995}\n"
        "74 6 v: \"x\" is not a DECIMAL(10,2): {\"v\":\"x\"}\n"
        "84 6 v: 12345678901234567890 is out of range for DECIMAL(10,2): {\"v\":12345678901234567890}\n");
    expect_v(&decimal_38_0, true, "{\"v\":99999999999999999999999999999999999999}\n{\"v\":1e37}\n{\"v\":1e38}\n",
             "99999999999999999999999999999999999999|\n10000000000000000000000000000000000000|\n",
             "56 6 v: 1e38 is out of range for DECIMAL(38,0): {\"v\":1e38}\n");
}

static void test_times(void **state) {
    (void)state;
    expect_v(simple(CK_TYPE_DATE), true, "{\"v\":\"2024-02-29\"}\n{\"v\":\"2023-02-29\"}\n{\"v\":5}\n", "2024-02-29|\n",
             "19 6 v: \"2023-02-29\" is not a DATE: {\"v\":\"2023-02-29\"}\n38 6 v: 5 is not a DATE: {\"v\":5}\n");
    expect_v(simple(CK_TYPE_TIME), true, "{\"v\":\"23:59:59.5\"}\n", "23:59:59.500|\n", "");
    expect_v(simple(CK_TYPE_TIMESTAMP), true,
             "{\"v\":\"2024-01-02T03:04:05\"}\n{\"v\":\"2024-01-02 "
             "03:04:05.123456Z\"}\n{\"v\":\"2024-01-02T03:04:05+01:00\"}\n"
             "{\"v\":\"2024\\u002d01-02T00:00:00\"}\n{\"v\":\"now\"}\n",
             "2024-01-02 03:04:05|\n2024-01-02 03:04:05.123456|\n2024-01-02 02:04:05|\n2024-01-02 00:00:00|\n",
             "131 6 v: \"now\" is not a TIMESTAMP(6): {\"v\":\"now\"}\n");
    expect_v(&ts_3, true, "{\"v\":\"1969-12-31T23:59:59.999999\"}\n", "1969-12-31 23:59:59.999|\n", "");
}

static void test_varchar(void **state) {
    (void)state;
    expect_v(
        simple(CK_TYPE_VARCHAR), true,
        "{\"v\":\"plain\"}\n{\"v\":\"a\\\"b\\\\c\\/d\\n\\t\\r\\b\\f\"}\n{\"v\":\"\\u00e9\\u20ac\\ud83d\\ude00\"}\n"
        "{\"v\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and a longer tail of text\"}\n{\"v\":12.50}\n{\"v\":true}\n"
        "{\"v\":{\"a\" : [1, 2]}}\n{\"v\":[\"x\"]}\n{\"v\":\"escaped \\u0041 and longer than twelve\"}\n{\"v\":null}\n",
        "plain|\na\"b\\c/d\n\t\r\b\f|\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80|\n"
        "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and a longer tail of text|\n12.50|\ntrue|\n{\"a\" : [1, 2]}|\n[\"x\"]|\n"
        "escaped A and longer than twelve|\nNULL|\n",
        "");
    expect_v(&varchar_3, true, "{\"v\":\"abc\"}\n{\"v\":\"\xc3\xa9\xc3\xa9\xc3\xa9\"}\n{\"v\":\"abcd\"}\n",
             "abc|\n\xc3\xa9\xc3\xa9\xc3\xa9|\n",
             "27 6 v: 4 characters are too long for VARCHAR(3): {\"v\":\"abcd\"}\n");
    expect_v(
        simple(CK_TYPE_BYTES), true,
        "{\"v\":\"AQID\"}\n{\"v\":\"AQI=\"}\n{\"v\":\"AQ==\"}\n{\"v\":\"\"}\n{\"v\":\"A\\u0051ID\"}\n{\"v\":"
        "\"AQIDBAUGBwgJCgsMDQ4P\"}\n"
        "{\"v\":\"AQI\"}\n{\"v\":\"AQ=D\"}\n{\"v\":\"AR==\"}\n{\"v\":7}\n",
        "AQID|\nAQI=|\nAQ==|\n|\nAQID|\nAQIDBAUGBwgJCgsMDQ4P|\n",
        "95 6 v: \"AQI\" is not BYTES in base64: {\"v\":\"AQI\"}\n107 6 v: \"AQ=D\" is not BYTES in base64: "
        "{\"v\":\"AQ=D\"}\n"
        "120 6 v: \"AR==\" is not BYTES in base64: {\"v\":\"AR==\"}\n133 6 v: 7 is not BYTES in base64: {\"v\":7}\n");
}

static void test_nested(void **state) {
    (void)state;
    expect_v(&array_bigint, true,
             "{\"v\":[]}\n{\"v\":[ 1 , null,3 ]}\n{\"v\":null}\n{\"v\":[[1]]}\n{\"v\":{}}\n{\"v\":[4]}\n",
             "[]|\n[1,null,3]|\nNULL|\n[4]|\n",
             "41 6 v: [1] is not a BIGINT: {\"v\":[[1]]}\n53 6 v: {} is not an ARRAY<BIGINT>: {\"v\":{}}\n");
    expect_v(&map_bigint, true,
             "{\"v\":{\"a\":1,\"b\":2,\"a\":3}}\n{\"v\":{\"\\u0061\":1,\"a\":2}}\n{\"v\":{}}\n"
             "{\"v\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"\\u0061\":10}}\n{\"v\":"
             "{\"a\":\"x\"}}\n",
             "{\"b\":2,\"a\":3}|\n{\"a\":2}|\n{}|\n{\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,"
             "\"a\":10}|\n",
             "134 6 v: \"x\" is not a BIGINT: {\"v\":{\"a\":\"x\"}}\n");
    expect_v(&map_int_key, true,
             "{\"v\":{\"1\":\"one\",\"-2\":\"minus two and more\"}}\n{\"v\":{\"x\":\"y\"}}\n{\"v\":{\"1\":null}}\n",
             "{\"1\":\"one\",\"-2\":\"minus two and more\"}|\n",
             "44 6 v: \"x\" is not an INTEGER: {\"v\":{\"x\":\"y\"}}\n"
             "60 6 v: field value of column v is null and NOT NULL: {\"v\":{\"1\":null}}\n");
    expect_v(&map_int_key, true,
             "{\"v\":{\"1\":\"a\",\"2\":\"b\",\"01\":\"c\"}}\n{\"v\":{\"1\":\"\",\"2\":\"\",\"3\":\"\",\"4\":\"\","
             "\"5\":\"\",\"6\":"
             "\"\",\"7\":\"\",\"8\":\"\",\"9\":\"\",\" 7\":\"x\",\"+8\":\"y\"}}\n",
             "{\"2\":\"b\",\"1\":\"c\"}|\n{\"1\":\"\",\"2\":\"\",\"3\":\"\",\"4\":\"\",\"5\":\"\",\"6\":\"\",\"9\":"
             "\"\",\"7\":"
             "\"x\",\"8\":\"y\"}|\n",
             "");
    expect_v(&array_rows, true,
             "{\"v\":[{\"a\":1,\"b\":\"x\",\"c\":[1]},{\"c\":null,\"a\":2},null,{\"a\":0,\"z\":{},\"a\":3}]}\n{\"v\":[{"
             "\"b\":\"x\"}]}\n"
             "{\"v\":[{\"a\":1}]}\n",
             "[{\"a\":1,\"b\":\"x\",\"c\":[1]},{\"a\":2,\"b\":null,\"c\":null},null,{\"a\":3,\"b\":null,\"c\":null}]|\n"
             "[{\"a\":1,\"b\":null,\"c\":null}]|\n",
             "75 6 v: field a of column v is missing and NOT NULL: {\"v\":[{\"b\":\"x\"}]}\n");
}

static void test_structure_faults(void **state) {
    (void)state;
    static const struct {
        const char *record, *reason;
    } cases[] = {
        {"{\"v\":1,}", "unexpected '}' at byte 8"},
        {"{\"v\":1 2}", "unexpected '2' at byte 8"},
        {"{\"v\":1}x", "more text after the value at byte 8"},
        {"{\"v\":1}{}", "more text after the value at byte 8"},
        {"{\"v\" 1}", "unexpected '1' at byte 6"},
        {"{v:1}", "unexpected 'v' at byte 2"},
        {"{\"v\":01}", "unexpected '1' at byte 7"},
        {"{\"v\":1.}", "unexpected '}' at byte 8"},
        {"{\"v\":1e}", "unexpected '}' at byte 8"},
        {"{\"v\":-}", "unexpected '}' at byte 7"},
        {"{\"v\":+1}", "unexpected '+' at byte 6"},
        {"{\"v\":.5}", "unexpected '.' at byte 6"},
        {"{\"v\":tru}", "unexpected '}' at byte 9"},
        {"{\"v\":nul", "unexpected end at byte 9"},
        {"{\"v\":NaN}", "unexpected 'N' at byte 6"},
        {"{\"v\":1", "unexpected end at byte 7"},
        {"{\"v\":", "unexpected end at byte 6"},
        {"{\"v", "an unterminated string at byte 4"},
        {"{", "unexpected end at byte 2"},
        {"[1]", "unexpected '[' at byte 1"},
        {"5", "unexpected '5' at byte 1"},
        {"{\"x\":\"a\tb\"}", "a control character in a string at byte 8"},
        {"{\"x\":\"\\x\"}", "an invalid escape at byte 7"},
        {"{\"x\":\"\\u12g4\"}", "an invalid escape at byte 7"},
        {"{\"x\":\"\\ud800\"}", "half a surrogate pair at byte 7"},
        {"{\"x\":\"\\udc00\"}", "half a surrogate pair at byte 7"},
        {"{\"x\":\"\\ud800\\u0041\"}", "half a surrogate pair at byte 7"},
        {"{\"x\":\"ab\xff\"}", "invalid UTF-8 at byte 9"},
        {"{\"x\":\"\xc0\x80\"}", "invalid UTF-8 at byte 7"},
        {"{\"x\":\"\xed\xa0\x80\"}", "invalid UTF-8 at byte 7"},
        {"{\"\xff\":1}", "invalid UTF-8 at byte 3"},
        {"{\"x\":[1,]}", "unexpected ']' at byte 9"},
        {"{\"x\":[1}", "unexpected '}' at byte 8"},
        {"{\"x\":{\"y\":1]}", "unexpected ']' at byte 12"},
        {"{\"x\":{\"y\"}}", "unexpected '}' at byte 10"},
        {"{\"x\":{,}}", "unexpected ',' at byte 7"},
        {"{\"x\":[\"\x01\"]}", "a control character in a string at byte 8"},
        {"{\"x\":\"y\"\x01}", "unexpected byte 0x01 at byte 9"},
        {"\xef\xbb{\"v\":1}", "unexpected byte 0xEF at byte 1"},
    };
    ck_field f = {"v", simple(CK_TYPE_BIGINT), true};
    ck_schema schema = {&f, 1};
    bool unwanted = false;
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        char text[256], bad[512];
        (void)snprintf(text, sizeof text, "{\"v\":1,\"x\":\"y\"}\n%s\n{\"v\":2,\"x\":\"y\"}\n", cases[i].record);
        const char *at = strrchr(cases[i].reason, ' ') + 1;
        (void)snprintf(bad, sizeof bad, "16 %s -: not valid JSON: %s of the record: %s\n", at, cases[i].reason,
                       cases[i].record);
        expect_z(&schema, text, "1|\n2|\n", bad);
        ck_decoder_spec spec = {.format = "json", .schema = &schema, .wanted = &unwanted};
        ck_expect(&spec, text, strlen(text), "\n\n", bad);
    }
}

static void test_bytes_strings_do_not_hold(void **state) {
    (void)state;
    ck_field f = {"v", simple(CK_TYPE_VARCHAR), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    static const char nul[] = "{\"v\":\"a\0b\"}\n{\"v\":\0}\n\0\n{\"v\":\"ok\"}\n";
    ck_harness h;
    ck_expect_decode(&h, &spec, nul, sizeof nul - 1, NULL, 0, true);
    assert_string_equal(h.rows.p, "ok|\n");
    assert_non_null(strstr(h.bad.p, "0 8 -: not valid JSON: a NUL byte at byte 8 of the record: "));
    ck_harness_destroy(&h);
    ck_expect(&spec, nul, sizeof nul - 1, "ok|\n", NULL);
    static const char escaped[] = "{\"v\":\"a\\u0000b\"}\n";
    ck_expect_decode(&h, &spec, escaped, sizeof escaped - 1, NULL, 0, true);
    assert_memory_equal(h.rows.p, "a\0b|\n", 5);
    ck_harness_destroy(&h);
}

static void test_byte_order_mark(void **state) {
    (void)state;
    expect_v(simple(CK_TYPE_BIGINT), true, "\xef\xbb\xbf{\"v\":1}\n{\"v\":2}", "1|\n2|\n", "");
    expect_v(simple(CK_TYPE_BIGINT), true, "\xef\xbb\xbf", "", "");
    expect_v(simple(CK_TYPE_BIGINT), true, "", "", "");
    expect_v(simple(CK_TYPE_BIGINT), true, "{\"v\":1}\n\xef\xbb\xbf{\"v\":2}\n", "1|\n",
             "8 1 -: not valid JSON: unexpected byte 0xEF at byte 1 of the record: \xef\xbb\xbf{\"v\":2}\n");
}

static void test_depth_has_a_limit(void **state) {
    (void)state;
    ck_field f = {"v", simple(CK_TYPE_BIGINT), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    for (unsigned depth = 1023; depth <= 1025; depth++) {
        char text[4096];
        size_t n = (size_t)sprintf(text, "{\"x\":");
        memset(text + n, '[', depth), n += depth;
        memset(text + n, ']', depth), n += depth;
        n += (size_t)sprintf(text + n, ",\"v\":1}\n");
        ck_harness h;
        ck_expect_decode(&h, &spec, text, n, NULL, 0, true);
        assert_string_equal(h.rows.p, depth <= 1024 ? "1|\n" : "");
        if (depth > 1024) assert_non_null(strstr(h.bad.p, "more than 1024 levels of nesting at byte 1030"));
        ck_harness_destroy(&h);
    }
}

static void test_origins_name_the_record(void **state) {
    (void)state;
    ck_field f = {"v", simple(CK_TYPE_BIGINT), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .origins = true, .batch_rows = 2};
    static const char text[] = "{\"v\":1}\n\n{\"v\":x}\n{\"v\":2}\n { \"v\" : 3 }\n{\"v\":4}";
    ck_expect(&spec, text, sizeof text - 1, "@0 1|\n@17 2|\n@25 3|\n@38 4|\n", NULL);
}

/* A batch ends before a row whose offset would not fit its origin. */
static void test_origins_far_apart(void **state) {
    (void)state;
    ck_field f = {"v", simple(CK_TYPE_BIGINT), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .origins = true};
    for (int general = 0; general < 2; general++) {
        ck_harness h;
        ck_decoder *d;
        size_t n;
        ck_harness_init(&h, ck_heap_system(), true);
        assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, NULL), CK_OK);
        assert_int_equal(ck_decoder_begin(d, "file", true, NULL), CK_OK);
        ck_buffer *buf = ck_buffer_new(h.mem, 8);
        memcpy(buf->p, "{\"v\":1}\n", 8);
        assert_int_equal(ck_decoder_feed(d, buf, 0, 8, 0, false, &n, NULL), CK_OK);
        uint64_t far = (1ULL << 32) + 5;
        if (general) memcpy(buf->p, "{\"v\": 1}", 8); /* a spacing not yet learned, completed below */
        if (!general) {
            assert_int_equal(ck_decoder_feed(d, buf, 0, 8, far, false, &n, NULL), CK_FULL);
        } else {
            assert_int_equal(ck_decoder_feed(d, buf, 0, 8, far, true, &n, NULL), CK_FULL);
        }
        assert_int_equal(n, 0);
        assert_int_equal(ck_decoder_rows(d), 1);
        assert_int_equal(ck_harness_take(&h, d, &schema), CK_OK);
        assert_int_equal(ck_decoder_feed(d, buf, 0, 8, far, true, &n, NULL), CK_OK);
        assert_int_equal(ck_harness_take(&h, d, &schema), CK_OK);
        assert_int_equal(ck_bytes_terminate(&h.rows), CK_OK);
        assert_string_equal(h.rows.p, "@0 1|\n@4294967301 1|\n");
        ck_buffer_unref(&buf);
        ck_decoder_free(d);
        ck_harness_destroy(&h);
    }
}

static void test_fail_is_an_error_with_its_place(void **state) {
    (void)state;
    ck_field f = {"v", simple(CK_TYPE_BIGINT), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    ck_harness h;
    ck_decoder *d;
    size_t n;
    ck_error err = CK_ERROR_INIT;
    ck_harness_init(&h, ck_heap_system(), true);
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, &err), CK_OK);
    assert_int_equal(ck_decoder_begin(d, "flights.json", true, &err), CK_OK);
    ck_buffer *buf = ck_buffer_new(h.mem, 21);
    memcpy(buf->p, "{\"v\":1}\n{\"v\":\"NA\"}\n{}", 21);
    assert_int_equal(ck_decoder_feed(d, buf, 0, 21, 100, false, &n, &err), CK_DATA);
    assert_int_equal(n, 8);
    assert_string_equal(err.msg, "\"NA\" is not a BIGINT");
    assert_string_equal(err.place.object, "flights.json");
    assert_int_equal(err.place.byte_offset, 108);
    assert_int_equal(err.place.column, 6);
    assert_true(err.fatal && !err.retriable);
    ck_buffer_unref(&buf);
    ck_decoder_free(d);
    ck_harness_destroy(&h);
}

/* Long strings stand in the read buffer itself; a column of short ones, or of none, does not keep it alive. */
static void test_strings_are_views(void **state) {
    (void)state;
    ck_field f[] = {{"long", simple(CK_TYPE_VARCHAR), true}, {"short", simple(CK_TYPE_VARCHAR), true}};
    ck_schema schema = {f, 2};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    static const char text[] = "{\"long\":\"more than twelve bytes\",\"short\":\"few\"}\n";
    ck_harness h;
    ck_decoder *d;
    size_t n;
    ck_harness_init(&h, ck_heap_system(), true);
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, NULL), CK_OK);
    assert_int_equal(ck_decoder_begin(d, "file", true, NULL), CK_OK);
    ck_buffer *buf = ck_buffer_new(h.mem, sizeof text - 1);
    memcpy(buf->p, text, sizeof text - 1);
    assert_int_equal(ck_decoder_feed(d, buf, 0, sizeof text - 1, 0, false, &n, NULL), CK_OK);
    ck_batch *b = ck_decoder_take(d);
    assert_non_null(b);
    assert_ptr_equal(ck_column_str(b->columns[0], 0).p, buf->p + 9);
    assert_int_equal(ck_column_str(b->columns[0], 0).n, 22);
    assert_null(b->columns[1]->heaps);
    ck_buffer_unref(&buf); /* the batch has its own reference */
    assert_memory_equal(ck_column_str(b->columns[0], 0).p, "more than twelve bytes", 22);
    ck_batch_unref(&b);
    ck_decoder_free(d);
    assert_int_equal(ck_budget_total(&h.proc.budget), 0);
    ck_harness_destroy(&h);
}

/* A batch ends when its strings keep 4 MiB of buffers alive, few as its rows may be. */
static void test_pinned_bytes_end_a_batch(void **state) {
    (void)state;
    ck_field f = {"v", simple(CK_TYPE_VARCHAR), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    static const char text[] = "{\"v\":\"more than twelve bytes\"}\n";
    ck_harness h;
    ck_decoder *d;
    size_t n;
    ck_harness_init(&h, ck_heap_system(), true);
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, NULL), CK_OK);
    assert_int_equal(ck_decoder_begin(d, "file", true, NULL), CK_OK);
    for (int i = 0; i < 16; i++) {
        ck_buffer *buf = ck_buffer_new(h.mem, CK_READ_BUFFER_BYTES);
        memcpy(buf->p, text, sizeof text - 1);
        ck_status s = ck_decoder_feed(d, buf, 0, sizeof text - 1, 0, false, &n, NULL);
        assert_int_equal(s, i < 15 ? CK_OK : CK_FULL);
        assert_int_equal(n, sizeof text - 1);
        ck_buffer_unref(&buf);
    }
    assert_int_equal(ck_decoder_rows(d), 16);
    assert_int_equal(ck_harness_take(&h, d, &schema), CK_OK);
    ck_decoder_free(d);
    ck_harness_destroy(&h);
}

/* A map of very many keys, equal ones among them, and what it needed is given back. */
static void test_huge_map(void **state) {
    (void)state;
    enum { KEYS = 60000 };
    ck_field f = {"v", &map_bigint, true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    ck_harness h;
    ck_bytes text;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_bytes_init(&text, h.mem, 64 << 20);
    assert_int_equal(ck_bytes_str(&text, "{\"v\":{"), CK_OK);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(ck_bytes_printf(&text, "%s\"k%d\":%d", i ? "," : "", i % (KEYS / 2), i), CK_OK);
    assert_int_equal(ck_bytes_str(&text, "}}\n{\"v\":{\"k\":1}}\n"), CK_OK);
    assert_int_equal(ck_harness_decode(&h, &spec, text.p, text.n, NULL, 0), CK_OK);
    assert_int_equal(ck_bytes_terminate(&h.rows), CK_OK);
    assert_memory_equal(h.rows.p, "{\"k0\":30000,\"k1\":30001,", 23);
    assert_string_equal(h.rows.p + h.rows.n - 26, "\"k29999\":59999}|\n{\"k\":1}|\n");
    ck_bytes_destroy(&text);
    ck_harness_destroy(&h);
}

/* More distinct keys than the table of runs holds. */
static void test_many_keys(void **state) {
    (void)state;
    ck_field f[] = {{"k0", simple(CK_TYPE_BIGINT), true}, {"k700", simple(CK_TYPE_BIGINT), true}};
    ck_schema schema = {f, 2};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    enum { RECORDS = 25000 };
    ck_bytes text, rows;
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_bytes_init(&text, h.mem, 64 << 20);
    ck_bytes_init(&rows, h.mem, 64 << 20);
    for (int i = 0; i < RECORDS; i++) {
        assert_int_equal(ck_bytes_printf(&text, "{\"key of record %d\":%d,\"k%d\":%d}\n", i, i, i % 800, i), CK_OK);
        int k = i % 800;
        if (k == 0)
            assert_int_equal(ck_bytes_printf(&rows, "%d|NULL|\n", i), CK_OK);
        else if (k == 700)
            assert_int_equal(ck_bytes_printf(&rows, "NULL|%d|\n", i), CK_OK);
        else
            assert_int_equal(ck_bytes_str(&rows, "NULL|NULL|\n"), CK_OK);
    }
    assert_int_equal(ck_harness_decode(&h, &spec, text.p, text.n, NULL, 0), CK_OK);
    assert_int_equal(h.rows.n, rows.n);
    assert_memory_equal(h.rows.p, rows.p, rows.n);
    ck_bytes_destroy(&text);
    ck_bytes_destroy(&rows);
    ck_harness_destroy(&h);
}

/* Every allocation fails once: the error is CK_NOMEM, and nothing is lost or leaked. */
static void test_without_memory(void **state) {
    (void)state;
    ck_field f[] = {{"a", simple(CK_TYPE_BIGINT), true},
                    {"s", simple(CK_TYPE_VARCHAR), true},
                    {"v", &array_rows, true},
                    {"m", &map_bigint, true},
                    {"b", simple(CK_TYPE_BYTES), true}};
    ck_schema schema = {f, 5};
    ck_decoder_spec spec = {.format = "json", .schema = &schema, .origins = true, .batch_rows = 3};
    static const char text[] =
        "{\"a\":1,\"s\":\"long enough for a heap\",\"v\":[{\"a\":1,\"b\":\"long enough for a "
        "heap\"}],\"m\":{\"\\u0061\":1}}\n"
        "{\"\\u0061\":null,\"s\":\"long enough \\u0066or a heap\",\"b\":\"AQIDBAUGBwgJCgsMDQ4P\"}\nbad\n"
        "{\"m\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"a\":10},\"s\":\"another one "
        "of some length\"}\n"
        "{\"a\":2}";
    size_t cut = 60;
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
    ck_error err = CK_ERROR_INIT;
    ck_harness_init(&h, ck_heap_system(), true);
    ck_field f = {"v", simple(CK_TYPE_INTERVAL_US), true};
    ck_schema schema = {&f, 1};
    ck_decoder_spec spec = {.format = "json", .schema = &schema};
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, &err), CK_INVALID);
    assert_string_equal(err.msg, "column v: its type cannot be read from json");
    f.type = simple(CK_TYPE_BIGINT);
    spec.format = "xml";
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, &err), CK_INVALID);
    assert_string_equal(err.msg, "format xml is not known");
    spec.format = "json";
    spec.batch_rows = 5000;
    assert_int_equal(ck_decoder_new(&h.proc, &spec, h.mem, NULL, NULL, &d, &err), CK_INVALID);
    ck_harness_destroy(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_records),
        cmocka_unit_test(test_long_integers),
        cmocka_unit_test(test_wanted_columns_only),
        cmocka_unit_test(test_checked_columns),
        cmocka_unit_test(test_order_spacing_missing_duplicates),
        cmocka_unit_test(test_optional_keys_are_relearned),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_other_scalars),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_varchar),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_structure_faults),
        cmocka_unit_test(test_bytes_strings_do_not_hold),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_depth_has_a_limit),
        cmocka_unit_test(test_origins_name_the_record),
        cmocka_unit_test(test_origins_far_apart),
        cmocka_unit_test(test_fail_is_an_error_with_its_place),
        cmocka_unit_test(test_strings_are_views),
        cmocka_unit_test(test_pinned_bytes_end_a_batch),
        cmocka_unit_test(test_huge_map),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_refused_specs),
    };
    return cmocka_run_group_tests(tests, make_types, NULL);
}
