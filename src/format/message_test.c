/* Avro and protobuf: rows written by the schema that their table makes are read again as they were, known bytes are
 * read and written, what does not fit has its sentence, and nothing is left when memory runs out. The formats' own
 * libraries are asked in tests/system/test_kafka_schemas.py. */
#include "format/expect_int.h"

#include "format/encoder.h"
#include "format/message.h"

static const char rows_text[] = "{\"b\":true,\"i\":-5,\"n\":9223372036854775807,\"f\":0.5,\"d\":1e300,\"s\":\"a text "
                                "of more than twelve bytes\",\"y\":\"AQI=\","
                                "\"at\":\"2024-01-02T03:04:05.678901Z\",\"a\":[\"p\",\"a longer text with "
                                "quotes\"],\"m\":{\"k\":-1},\"r\":{\"x\":7,\"l\":[1,2,3]}}\n"
                                "{\"b\":null,\"i\":null,\"n\":null,\"f\":null,\"d\":null,\"s\":null,\"y\":null,\"at\":"
                                "null,\"a\":[],\"m\":{},\"r\":null}\n"
                                "{\"b\":false,\"i\":32767,\"n\":0,\"f\":0,\"d\":-0.0,\"s\":\"\",\"y\":\"\",\"at\":"
                                "\"1969-12-31T23:59:59.999999Z\",\"a\":[\"\"],\"m\":{\"\":0},"
                                "\"r\":{\"x\":null,\"l\":[]}}\n";

static ck_field element, numbers_element, map_fields[2], row_fields[2], columns[11];
static ck_type array, numbers, map, row;
static ck_schema table = {columns, 11};

static int make_table(void **state) {
    (void)state;
    element = (ck_field){"element", ck_type_simple(CK_TYPE_VARCHAR), false};
    array = (ck_type){CK_TYPE_ARRAY, 0, 0, &element, 1};
    numbers_element = (ck_field){"element", ck_type_simple(CK_TYPE_BIGINT), false};
    numbers = (ck_type){CK_TYPE_ARRAY, 0, 0, &numbers_element, 1};
    map_fields[0] = (ck_field){"key", ck_type_simple(CK_TYPE_VARCHAR), false};
    map_fields[1] = (ck_field){"value", ck_type_simple(CK_TYPE_INTEGER), false};
    map = (ck_type){CK_TYPE_MAP, 0, 0, map_fields, 2};
    row_fields[0] = (ck_field){"x", ck_type_simple(CK_TYPE_BIGINT), true};
    row_fields[1] = (ck_field){"l", &numbers, false};
    row = (ck_type){CK_TYPE_ROW, 0, 0, row_fields, 2};
    static const char *const names[] = {"b", "i", "n", "f", "d", "s", "y", "at", "a", "m", "r"};
    const ck_type *types[] = {ck_type_simple(CK_TYPE_BOOLEAN),
                              ck_type_simple(CK_TYPE_SMALLINT),
                              ck_type_simple(CK_TYPE_BIGINT),
                              ck_type_simple(CK_TYPE_REAL),
                              ck_type_simple(CK_TYPE_DOUBLE),
                              ck_type_simple(CK_TYPE_VARCHAR),
                              ck_type_simple(CK_TYPE_BYTES),
                              ck_type_simple(CK_TYPE_TIMESTAMP_LTZ),
                              &array,
                              &map,
                              &row};
    for (size_t i = 0; i < 11; i++) columns[i] = (ck_field){names[i], types[i], i != 8 && i != 9};
    return 0;
}

/* ---- there and back ---- */

static ck_status decode_text(ck_harness *h, ck_batch **out) {
    ck_decoder_spec spec = {.format = "json", .schema = &table};
    ck_decoder *d = NULL;
    size_t n = sizeof rows_text - 1, used;
    ck_buffer *buf = ck_buffer_new(h->mem, n);
    ck_status s = buf ? ck_decoder_new(&h->proc, &spec, h->mem, NULL, NULL, &d, &h->err) : CK_NOMEM;
    if (s == CK_OK) s = ck_decoder_begin(d, "text", true, &h->err);
    if (buf) memcpy(buf->p, rows_text, n);
    if (s == CK_OK) s = ck_decoder_feed(d, buf, 0, n, 0, true, &used, &h->err);
    if (s == CK_OK && !(*out = ck_decoder_take(d))) s = CK_NOMEM;
    ck_decoder_free(d);
    ck_buffer_unref(&buf);
    return s;
}

/* The batch as frames for the decoder's reader 0. */
static ck_status write_frames(const ck_message_writer *w, const ck_batch *b, ck_bytes *out, ck_error *err) {
    for (uint32_t i = 0; i < b->row_count; i++) {
        ck_message_frame f = {0};
        size_t at = out->n;
        CK_TRY(ck_bytes_append(out, &f, sizeof f));
        CK_TRY(ck_message_write(w, b, i, out, err));
        f.bytes = (uint32_t)(out->n - at - sizeof f);
        memcpy(out->p + at, &f, sizeof f);
    }
    return CK_OK;
}

static ck_status read_frames(ck_harness *h, const char *format, const ck_schema *schema, const ck_message_reader *r,
                             const void *p, size_t n) {
    ck_decoder_spec spec = {.format = format, .schema = schema, .origins = true};
    ck_decoder *d = NULL;
    uint32_t number;
    size_t used = 0;
    ck_buffer *buf = ck_buffer_new(h->mem, n);
    ck_status s = buf ? ck_decoder_new(&h->proc, &spec, h->mem, ck_harness_bad, h, &d, &h->err) : CK_NOMEM;
    if (s == CK_OK) s = ck_decoder_add_reader(d, r, NULL, &number, &h->err);
    if (s == CK_OK) s = ck_decoder_begin(d, "topic", true, &h->err);
    if (buf) memcpy(buf->p, p, n);
    if (s == CK_OK) s = ck_decoder_feed(d, buf, 0, n, 0, true, &used, &h->err);
    if (s == CK_OK && used != n) s = CK_CORRUPT;
    if (s == CK_OK) s = ck_harness_take(h, d, schema);
    ck_decoder_free(d);
    ck_buffer_unref(&buf);
    return s;
}

static ck_status there_and_back(ck_harness *h, ck_message_format format, ck_arena *a) {
    const ck_message_schema *schema;
    const ck_message_writer *w;
    const ck_message_reader *r;
    const char *text;
    ck_message_path path;
    ck_batch *b = NULL;
    ck_bytes frames;
    CK_TRY(ck_message_schema_of(a, format, "9 shop-value", &table, &text, &h->err));
    ck_message_text own = {"", ck_view_of(text)};
    CK_TRY(ck_message_parse(a, format, &own, 1, &schema, &h->err));
    CK_TRY(ck_message_find(schema, NULL, &path, &h->err));
    CK_TRY(ck_message_writer_new(a, schema, &path, &table, &w, &h->err));
    CK_TRY(ck_message_reader_new(a, schema, &path, &table, false, &r, &h->err));
    ck_bytes_init(&frames, h->mem, 1 << 20);
    ck_status s = decode_text(h, &b);
    if (s == CK_OK) s = write_frames(w, b, &frames, &h->err);
    if (s == CK_OK) s = ck_harness_print(h, &table, b);
    size_t first = h->rows.n;
    if (s == CK_OK && (s = ck_bytes_char(&h->rows, '=')) == CK_OK)
        s = read_frames(h, format == CK_MESSAGE_AVRO ? "avro" : "protobuf", &table, r, frames.p, frames.n);
    if (s == CK_OK) { /* but for the places in front of each */
        const char *x = h->rows.p, *y = h->rows.p + first + 1, *end = h->rows.p + h->rows.n;
        for (int i = 0; i < 3; i++) {
            y = (const char *)memchr(y, ' ', (size_t)(end - y)) + 1;
            size_t n = (size_t)((const char *)memchr(x, '\n', (size_t)(end - x)) - x) + 1;
            assert_memory_equal(x, y, n);
            x += n, y += n;
        }
        assert_ptr_equal(y, end);
        assert_int_equal(h->bad.n, 0);
    }
    ck_batch_unref(&b);
    ck_bytes_destroy(&frames);
    return s;
}

static ck_status run(ck_heap *heap, ck_message_format format) {
    ck_harness h;
    ck_arena a;
    ck_harness_init(&h, heap, false);
    ck_arena_init(&a, h.mem, 1 << 24);
    ck_status s = there_and_back(&h, format, &a);
    ck_arena_destroy(&a);
    ck_harness_destroy(&h);
    return s;
}

static void what_is_written_is_read(void **state) {
    (void)state;
    assert_int_equal(run(ck_heap_system(), CK_MESSAGE_AVRO), CK_OK);
    assert_int_equal(run(ck_heap_system(), CK_MESSAGE_PROTOBUF), CK_OK);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    ck_tracked_heap *t;
    assert_int_equal(ck_tracked_heap_new(&t), CK_OK);
    for (int format = 0; format < 2; format++)
        for (uint64_t n = 1;; n++) {
            ck_tracked_heap_fail_nth(t, n);
            ck_status s = run(ck_tracked_heap_base(t), (ck_message_format)format);
            assert_int_equal(ck_tracked_heap_live_blocks(t), 0);
            if (!ck_tracked_heap_fired(t)) {
                assert_int_equal(s, CK_OK);
                break;
            }
            if (s != CK_OK) assert_int_equal(s, CK_NOMEM); /* without a copy it may go as well */
        }
    ck_tracked_heap_free(t);
}

/* ---- known bytes ---- */

static const ck_field small_fields[] = {{"id", NULL, false}, {"s", NULL, true}};

/* What a message decodes to, "bad: " and why, or why the schema does not fit. */
static void check(ck_message_format format, const char *schema_text, const char *bytes, size_t n, const char *want) {
    ck_harness h;
    ck_arena a;
    ck_field f[2] = {small_fields[0], small_fields[1]};
    f[0].type = ck_type_simple(CK_TYPE_INTEGER), f[1].type = ck_type_simple(CK_TYPE_VARCHAR);
    ck_schema small = {f, 2};
    ck_harness_init(&h, ck_heap_system(), false);
    ck_arena_init(&a, h.mem, 1 << 24);
    ck_message_text text = {"", ck_view_of(schema_text)};
    const ck_message_schema *schema;
    const ck_message_reader *r;
    ck_message_path path;
    ck_bytes frame;
    ck_message_frame head = {0, 0, (uint32_t)n};
    ck_bytes_init(&frame, h.mem, 1 << 20);
    assert_int_equal(ck_bytes_append(&frame, &head, sizeof head), CK_OK);
    assert_int_equal(ck_bytes_append(&frame, bytes, n), CK_OK);
    ck_status s = ck_message_parse(&a, format, &text, 1, &schema, &h.err);
    if (s == CK_OK) s = ck_message_find(schema, NULL, &path, &h.err);
    if (s == CK_OK) s = ck_message_reader_new(&a, schema, &path, &small, true, &r, &h.err);
    if (s == CK_OK) s = read_frames(&h, format == CK_MESSAGE_AVRO ? "avro" : "protobuf", &small, r, frame.p, frame.n);
    const char *got = s != CK_OK ? h.err.msg : h.bad.n ? h.bad.p : h.rows.p;
    assert_int_equal(ck_bytes_terminate(&h.bad), CK_OK);
    assert_int_equal(ck_bytes_terminate(&h.rows), CK_OK);
    got = s != CK_OK ? h.err.msg : h.bad.n ? h.bad.p : h.rows.p;
    if (!strstr(got, want)) fail_msg("'%s' is not in '%s'", want, got);
    ck_bytes_destroy(&frame);
    ck_arena_destroy(&a);
    ck_harness_destroy(&h);
}

#define AVRO(fields)                  "{\"type\":\"record\",\"name\":\"r\",\"fields\":[" fields "]}"
#define CHECK(f, schema, bytes, want) check(CK_MESSAGE_##f, schema, bytes, sizeof bytes - 1, want)

static void known_bytes(void **state) {
    (void)state;
    static const char id_s[] =
        AVRO("{\"name\":\"id\",\"type\":\"int\"},{\"name\":\"s\",\"type\":[\"null\",\"string\"]}");
    CHECK(AVRO, id_s, "\x09\x02\x02x", "-5|x|");
    CHECK(AVRO, id_s, "\x09\x00", "-5|NULL|");
    CHECK(AVRO, id_s, "\x09\x04", "the union has no branch 2");
    CHECK(AVRO, id_s, "\x09\x02\x08x", "the message ends in the middle of a value");
    CHECK(AVRO, id_s, "\x09", "the message ends in the middle of a value");
    CHECK(AVRO, id_s, "\x09\x00\x00", "1 bytes stand behind the message");
    CHECK(AVRO, id_s, "\x09\x02\x02\xff", "a text is no UTF-8");
    CHECK(AVRO, id_s, "\xff\xff\xff\xff\xff\x01\x00", "an int is");
    CHECK(AVRO, AVRO("{\"name\":\"s\",\"type\":\"string\"}"), "\x02x",
          "column \"id\" of the table is INTEGER, and the schema");
    CHECK(AVRO, AVRO("{\"name\":\"id\",\"type\":\"long\"}"), "\x02",
          "field \"id\" of the schema is long, and the table has INTEGER there");
    /* A chain of itself, which nobody wants: walked over, but not for ever. */
    static const char chain[] =
        AVRO("{\"name\":\"next\",\"type\":[\"null\",\"r\"]},{\"name\":\"id\",\"type\":\"int\"}");
    CHECK(AVRO, chain, "\x02\x02\x00\x02\x04\x06", "3|NULL|");
    char deep[400];
    memset(deep, 2, sizeof deep);
    check(CK_MESSAGE_AVRO, chain, deep, sizeof deep, "nested too deeply");
    /* 2^40 nulls in five bytes. */
    CHECK(AVRO,
          AVRO("{\"name\":\"l\",\"type\":{\"type\":\"array\",\"items\":\"null\"}},{\"name\":\"id\",\"type\":\"int\"}"),
          "\x80\x80\x80\x80\x80\x80\x01\x00", "more than 16777216 elements");
    CHECK(AVRO, "{\"type\":\"record\"}", "", "has no name");
    CHECK(AVRO, "[\"nothing\"]", "", "it has no type \"nothing\"");
    CHECK(AVRO, "\"int\"", "", "the schema is int, and a row is made of a record");
    CHECK(AVRO, "{", "", "it is no JSON");

    static const char proto[] = "syntax = 'proto3'; message R { int32 id = 1; optional string s = 2; }";
    CHECK(PROTOBUF, proto, "\x08\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x01x", "-5|x|");
    CHECK(PROTOBUF, proto, "", "0|NULL|");
    CHECK(PROTOBUF, proto, "\x12\x01y\x08\x01\x08\x02\x12\x01z", "2|z|"); /* the last one counts */
    CHECK(PROTOBUF, proto, "\x1a\x02zz\x23\x08\x05\x24\x25\x01\x02\x03\x04\x08\x07",
          "7|NULL|"); /* unknown ones, a group too */
    CHECK(PROTOBUF, proto, "\x12\x05y", "the message ends in the middle of a field");
    CHECK(PROTOBUF, proto, "\x08", "the message ends in the middle of a field");
    CHECK(PROTOBUF, proto, "\x0f", "unknown wire type 7");
    CHECK(PROTOBUF, proto, "\x00\x00", "a field without a number");
    CHECK(PROTOBUF, "message R { required int64 id = 1; }", "\x08\x01",
          "field \"id\" of the schema is int64, and the table has INTEGER there");
    CHECK(PROTOBUF, "message R { required sint32 id = 1; optional string s = 2; }", "\x12\x01x",
          "column id is missing and NOT NULL");
    CHECK(PROTOBUF, "syntax = \"proto3\"; message R { Thing id = 1; }", "",
          "is a Thing, which is neither in the schema");
    CHECK(PROTOBUF, "syntax = \"proto3\"; message R { int32 id = 1; int32 s = 1; }", "", "two fields of the number 1");
    CHECK(PROTOBUF, "syntax = \"proto3\"; message R { int32 id = 1", "", "it ends where");
    CHECK(PROTOBUF, "syntax = \"proto3\";", "", "the schema has no message");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
                                       cmocka_unit_test(without_memory_nothing_is_left), cmocka_unit_test(known_bytes)};
    return cmocka_run_group_tests(tests, make_table, NULL);
}
