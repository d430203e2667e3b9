#include "data/row.h"
#include "data/sample_int.h"

enum { FIELDS_MAX = 8 };

/* Builders for the fields of a schema, decoded into. */
typedef struct target {
    ck_column_builder builders[FIELDS_MAX], *list[FIELDS_MAX];
    uint32_t count;
} target;

static void open_target(sample *s, target *t, const ck_schema *schema, uint32_t capacity) {
    t->count = schema->field_count;
    for (uint32_t i = 0; i < t->count; i++) {
        assert_int_equal(ck_column_builder_init(&t->builders[i], s->mem, schema->fields[i].type, capacity), CK_OK);
        t->list[i] = &t->builders[i];
    }
}
static void close_target(target *t) {
    for (uint32_t i = 0; i < t->count; i++) ck_column_builder_destroy(&t->builders[i]);
}

static ck_status encode(const ck_schema *schema, const ck_batch *b, uint32_t row, ck_bytes *out) {
    return ck_row_encode(schema->fields, schema->field_count, (const ck_column *const *)b->columns, row, out);
}

static void random_rows_come_back(void **state) {
    sample *s = *state;
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 1 << 20);
    for (int round = 0; round < 300; round++) {
        const ck_schema *schema = sample_schema(s, sample_below(s, FIELDS_MAX + 1), 3);
        ck_batch *b = sample_batch(s, schema, 20, false, false);
        target t;
        open_target(s, &t, schema, 20);
        for (uint32_t row = 0; row < 20; row++) {
            bytes.n = 0;
            assert_int_equal(encode(schema, b, row, &bytes), CK_OK);
            assert_int_equal(ck_row_decode(schema->fields, schema->field_count, ck_bytes_as_view(&bytes), t.list),
                             CK_OK);
        }
        for (uint32_t i = 0; i < t.count; i++) {
            ck_column *c = ck_column_builder_finish(&t.builders[i]);
            sample_check_column(c);
            for (uint32_t row = 0; row < 20; row++) assert_true(ck_column_rows_equal(c, row, b->columns[i], row));
            if (c->phys == CK_PHYS_F64) /* bit by bit outside of nested values: -0.0 stays */
                for (uint32_t row = 0; row < 20; row++)
                    if (!ck_column_is_null(c, row)) assert_memory_equal(&c->f64[row], &b->columns[i]->f64[row], 8);
            ck_column_unref(&c);
        }
        close_target(&t);
        ck_batch_unref(&b);
    }
    ck_bytes_destroy(&bytes);
}

/* Every prefix is refused, every flipped bit is refused or read as something of equal shape; nothing is overrun. */
static void damaged_rows(void **state) {
    sample *s = *state;
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 1 << 20);
    for (int round = 0; round < 120; round++) {
        const ck_schema *schema = sample_schema(s, 1 + sample_below(s, FIELDS_MAX), 3);
        ck_batch *b = sample_batch(s, schema, 1, false, false);
        bytes.n = 0;
        assert_int_equal(encode(schema, b, 0, &bytes), CK_OK);
        target t;
        open_target(s, &t, schema, 4096);
        uint32_t decoded = 0;
        for (size_t n = 0; n <= bytes.n + 1; n++) { /* copied, so that ASan sees a read past the end */
            char *copy = ck_alloc(s->mem, n);
            size_t have = n < bytes.n ? n : bytes.n;
            if (have) memcpy(copy, bytes.p, have);
            if (n > bytes.n) copy[bytes.n] = 0;
            ck_status st = ck_row_decode(schema->fields, t.count, (ck_view){copy, n}, t.list);
            assert_int_equal(st, n == bytes.n ? CK_OK : CK_CORRUPT);
            decoded += st == CK_OK;
            for (uint32_t i = 0; i < t.count; i++) assert_int_equal(t.builders[i].length, decoded);
            ck_free(s->mem, copy, n);
        }
        for (size_t bit = 0; bit < bytes.n * 8 && bit < 2000; bit++) {
            bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
            ck_status st = ck_row_decode(schema->fields, t.count, ck_bytes_as_view(&bytes), t.list);
            assert_true(st == CK_OK || st == CK_CORRUPT);
            decoded += st == CK_OK;
            for (uint32_t i = 0; i < t.count; i++) assert_int_equal(t.builders[i].length, decoded);
            bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
        }
        close_target(&t);
        ck_batch_unref(&b);
    }
    ck_bytes_destroy(&bytes);
}

static void rows_as(sample *s, const ck_field *fields, uint32_t count, ck_column **cols, const char *hex) {
    ck_bytes bytes;
    char got[400] = "";
    ck_bytes_init(&bytes, s->mem, 4096);
    assert_int_equal(ck_row_encode(fields, count, (const ck_column *const *)cols, 0, &bytes), CK_OK);
    for (size_t i = 0; i < bytes.n; i++) sprintf(got + 2 * i, "%02x", (unsigned char)bytes.p[i]);
    assert_string_equal(got, hex);
    ck_bytes_destroy(&bytes);
    for (uint32_t i = 0; i < count; i++) ck_column_unref(&cols[i]);
}

static ck_column *one_i64(sample *s, int64_t v) {
    ck_column *c = ck_column_new(s->mem, CK_PHYS_I64, 1);
    c->i64[0] = v;
    return c;
}
static ck_column *one_str(sample *s, const char *z) {
    ck_column *c = ck_column_new(s->mem, CK_PHYS_VIEW, 1);
    c->views[0] = ck_strview_inline(z, strlen(z));
    return c;
}

/* The bytes are a public format: these must never change. */
static void golden_bytes(void **state) {
    sample *s = *state;
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT), *text = ck_type_simple(CK_TYPE_VARCHAR);
    ck_column *cols[3] = {one_i64(s, 258)};
    rows_as(s, &(ck_field){"sum", big, false}, 1, cols, "0201000000000000");
    cols[0] = one_i64(s, -1);
    rows_as(s, &(ck_field){"sum", big, true}, 1, cols, "00ffffffffffffffff");
    cols[0] = ck_column_new_null(s->mem, CK_PHYS_I64, 1);
    rows_as(s, &(ck_field){"sum", big, true}, 1, cols, "010000000000000000");
    cols[0] = one_str(s, "ab");
    cols[1] = one_i64(s, 3);
    cols[2] = ck_column_new_null(s->mem, CK_PHYS_VIEW, 1);
    rows_as(s, (ck_field[]){{"a", text, false}, {"b", big, false}, {"c", text, true}}, 3, cols,
            "04"
            "0300000000000000"
            "02000000"
            "6162");
    const ck_type *list = ck_type_array(&s->arena, big, true);
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, list, 1), CK_OK);
    assert_int_equal(ck_build_i64(&b.children[0], 1), CK_OK);
    assert_int_equal(ck_build_null(&b.children[0]), CK_OK);
    assert_int_equal(ck_build_end(&b), CK_OK);
    cols[0] = ck_column_builder_finish(&b);
    ck_column_builder_destroy(&b);
    rows_as(s, &(ck_field){"l", list, false}, 1, cols,
            "16000000"
            "02000000"
            "000100000000000000"
            "010000000000000000");
}

static void null_in_not_null(void **state) {
    sample *s = *state;
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT);
    ck_column *c = ck_column_new_null(s->mem, CK_PHYS_I64, 1);
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 100);
    assert_int_equal(ck_row_encode(&(ck_field){"a", big, false}, 1, (const ck_column *const *)&c, 0, &bytes),
                     CK_INVALID);
    assert_int_equal(bytes.n, 0);
    ck_bytes_destroy(&bytes);
    ck_bytes_init(&bytes, s->mem, 8); /* nine are needed */
    assert_int_equal(ck_row_encode(&(ck_field){"a", big, true}, 1, (const ck_column *const *)&c, 0, &bytes), CK_FULL);
    assert_int_equal(bytes.n, 0);
    ck_bytes_destroy(&bytes);
    ck_column_unref(&c);
}

/* Bytes that no encoder writes are refused. */
static void spellings(void **state) {
    sample *s = *state;
    const ck_field flag = {"f", ck_type_simple(CK_TYPE_BOOLEAN), true}, sure = {"f", flag.type, false},
                   nothing = {"f", ck_type_simple(CK_TYPE_NULL), true};
    const struct {
        ck_field field;
        ck_view value;
        bool good;
    } cases[] = {
        {flag, {"\0\1", 2}, true},    {flag, {"\1\0", 2}, true},  {flag, {"\2\1", 2}, false},
        {flag, {"\200\1", 2}, false}, {flag, {"\0\2", 2}, false}, {sure, {"\1", 1}, true},
        {sure, {"\377", 1}, false},   {sure, {"\0\1", 2}, false}, {nothing, {"\1", 1}, true},
        {nothing, {"\0", 1}, false},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_column_builder b, *list = &b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, cases[i].field.type, 1), CK_OK);
        assert_int_equal(ck_row_decode(&cases[i].field, 1, cases[i].value, &list), cases[i].good ? CK_OK : CK_CORRUPT);
        ck_column_builder_destroy(&b);
    }
}

/* A count of four billion elements in a few bytes must not be believed. */
static void huge_counts(void **state) {
    sample *s = *state;
    ck_arena *a = &s->arena;
    const ck_type *null = ck_type_simple(CK_TYPE_NULL);
    const ck_type *types[] = {ck_type_array(a, null, false), ck_type_array(a, ck_type_row(a, NULL, 0), false),
                              ck_type_map(a, ck_type_simple(CK_TYPE_BOOLEAN), null, false)};
    for (size_t i = 0; i < CK_ARRAY_COUNT(types); i++) {
        ck_field f = {"f", types[i], false};
        ck_column_builder b, *list = &b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, types[i], 10), CK_OK);
        assert_int_equal(ck_row_decode(&f, 1, (ck_view){"\4\0\0\0\xff\xff\xff\xff", 8}, &list), CK_CORRUPT);
        assert_int_equal(ck_row_decode(&f, 1, (ck_view){"\4\0\0\0\0\0\0\0", 8}, &list), CK_OK);
        ck_column_builder_destroy(&b);
    }
}

static const ck_schema *sweep_schema;
static ck_batch *sweep_batch;
static ck_status encode_and_decode(sample *s) {
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 1 << 20);
    target t = {.count = sweep_schema->field_count};
    ck_status st = CK_OK;
    for (uint32_t i = 0; i < t.count && st == CK_OK; i++) {
        st = ck_column_builder_init(&t.builders[i], s->mem, sweep_schema->fields[i].type, 10);
        t.list[i] = &t.builders[i];
    }
    for (uint32_t row = 0; row < 10 && st == CK_OK; row++) {
        bytes.n = 0;
        st = encode(sweep_schema, sweep_batch, row, &bytes);
        if (st == CK_OK) st = ck_row_decode(sweep_schema->fields, t.count, ck_bytes_as_view(&bytes), t.list);
        for (uint32_t i = 0; i < t.count; i++) assert_int_equal(t.builders[i].length, row + (st == CK_OK));
    }
    close_target(&t);
    ck_bytes_destroy(&bytes);
    return st;
}

static void no_memory(void **state) {
    sample *s = *state;
    sweep_schema = sample_schema(s, FIELDS_MAX, 3);
    sweep_batch = sample_batch(s, sweep_schema, 10, false, false);
    sample_sweep(s, encode_and_decode);
    ck_batch_unref(&sweep_batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(random_rows_come_back),
        SAMPLE_TEST(damaged_rows),
        SAMPLE_TEST(golden_bytes),
        SAMPLE_TEST(spellings),
        SAMPLE_TEST(null_in_not_null),
        SAMPLE_TEST(huge_counts),
        SAMPLE_TEST(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
