#include "data/key.h"
#include "data/sample_int.h"

enum { COLUMNS_MAX = 3, ROWS = 24 };

typedef struct order {
    const ck_schema *schema;
    ck_batch *batch;
    ck_order_spec specs[COLUMNS_MAX];
    uint32_t count;
} order;

static void open_order(sample *s, order *o, unsigned depth) {
    o->schema = sample_schema(s, 1 + sample_below(s, COLUMNS_MAX), depth);
    o->batch = sample_batch(s, o->schema, ROWS, false, false);
    o->count = o->schema->field_count;
    for (uint32_t i = 0; i < o->count; i++) {
        const ck_field *f = &o->schema->fields[i];
        bool nullable = f->nullable || f->type->kind == CK_TYPE_NULL;
        o->specs[i] = (ck_order_spec){i, f->type, nullable, sample_one_in(s, 2), sample_one_in(s, 2)};
    }
}

static int three(bool less, bool greater) { return less ? -1 : greater; }

static int compare_values(const ck_column *c, uint32_t a, uint32_t b) {
    switch (c->phys) {
    case CK_PHYS_BOOL: return (int)ck_bit_get(c->bits, a) - (int)ck_bit_get(c->bits, b);
    case CK_PHYS_I64: return three(c->i64[a]<c->i64[b], c->i64[a]> c->i64[b]);
    case CK_PHYS_I128: return three(c->i128[a]<c->i128[b], c->i128[a]> c->i128[b]);
    case CK_PHYS_VIEW: return ck_view_cmp(ck_column_str(c, a), ck_column_str(c, b));
    case CK_PHYS_F64: {
        double x = c->f64[a], y = c->f64[b];
        if (x != x || y != y) return (x != x) - (y != y); /* NaN above all */
        return three(x<y, x> y);
    }
    default: return 0;
    }
}

static int compare_rows(const order *o, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < o->count; i++) {
        const ck_column *c = o->batch->columns[i];
        bool x = ck_column_is_null(c, a), y = ck_column_is_null(c, b);
        int r = 0;
        if (x != y)
            r = (x ? -1 : 1) * (o->specs[i].nulls_first ? 1 : -1);
        else if (!x)
            r = compare_values(c, a, b) * (o->specs[i].descending ? -1 : 1);
        if (r) return r;
    }
    return 0;
}

static bool rows_equal(const order *o, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < o->count; i++)
        if (!ck_column_rows_equal(o->batch->columns[i], a, o->batch->columns[i], b)) return false;
    return true;
}

static ck_bytes encoded(sample *s, const order *o, uint32_t row) {
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 2 * CK_KEY_BYTES_MAX);
    assert_int_equal(ck_order_encode(o->specs, o->count, o->batch, row, &bytes), CK_OK);
    return bytes;
}

static int sign(int v) { return (v > 0) - (v < 0); }

static void memcmp_is_the_order(void **state) {
    sample *s = *state;
    for (int round = 0; round < 600; round++) {
        order o;
        unsigned depth = round % 4 == 0 ? 2 : 0;
        open_order(s, &o, depth);
        ck_bytes bytes[ROWS];
        for (uint32_t i = 0; i < ROWS; i++) bytes[i] = encoded(s, &o, i);
        for (uint32_t i = 0; i < ROWS; i++)
            for (uint32_t j = 0; j < ROWS; j++) {
                int got = ck_view_cmp(ck_bytes_as_view(&bytes[i]), ck_bytes_as_view(&bytes[j]));
                if (depth == 0) assert_int_equal(sign(got), sign(compare_rows(&o, i, j)));
                assert_int_equal(got == 0, rows_equal(&o, i, j));
            }
        for (uint32_t i = 0; i < ROWS; i++) ck_bytes_destroy(&bytes[i]);
        ck_batch_unref(&o.batch);
    }
}

static void keys_come_back_and_damage_is_found(void **state) {
    sample *s = *state;
    for (int round = 0; round < 300; round++) {
        order o;
        open_order(s, &o, 2);
        ck_column_builder builders[COLUMNS_MAX], *list[COLUMNS_MAX];
        for (uint32_t i = 0; i < o.count; i++) {
            assert_int_equal(ck_column_builder_init(&builders[i], s->mem, o.specs[i].type, 4096), CK_OK);
            list[i] = &builders[i];
        }
        for (uint32_t row = 0; row < ROWS; row++) {
            ck_bytes bytes = encoded(s, &o, row);
            ck_view v = ck_bytes_as_view(&bytes);
            assert_int_equal(ck_order_decode(o.specs, o.count, v, list), CK_OK);
            uint32_t length = row + 1;
            for (size_t n = 0; n < v.n; n++) {
                char *copy = ck_alloc(s->mem, n);
                if (n) memcpy(copy, v.p, n);
                assert_int_equal(ck_order_decode(o.specs, o.count, (ck_view){copy, n}, list), CK_CORRUPT);
                ck_free(s->mem, copy, n);
            }
            for (size_t bit = 0; bit < v.n * 8 && bit < 300; bit++) {
                bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
                ck_status st = ck_order_decode(o.specs, o.count, v, list);
                assert_true(st == CK_OK || st == CK_CORRUPT);
                if (st == CK_OK)
                    for (uint32_t i = 0; i < o.count; i++) ck_column_builder_truncate(list[i], length);
                bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
            }
            for (uint32_t i = 0; i < o.count; i++) assert_int_equal(builders[i].length, length);
            ck_bytes_destroy(&bytes);
        }
        for (uint32_t i = 0; i < o.count; i++) {
            ck_column *c = ck_column_builder_finish(&builders[i]);
            for (uint32_t row = 0; row < ROWS; row++)
                assert_true(ck_column_rows_equal(c, row, o.batch->columns[i], row));
            ck_column_unref(&c);
            ck_column_builder_destroy(&builders[i]);
        }
        ck_batch_unref(&o.batch);
    }
}

/* The bytes are a public format: these must never change. */
static void golden_bytes(void **state) {
    sample *s = *state;
    ck_batch *b = ck_batch_new(s->mem, 2, 2, false, false);
    ck_column *ints = ck_column_new(s->mem, CK_PHYS_I64, 2), *texts = ck_column_new(s->mem, CK_PHYS_VIEW, 2);
    ints->i64[0] = -2;
    texts->views[0] = ck_strview_inline("a\0b", 3);
    ck_bit_clear(ck_column_writable_validity(ints), 1);
    ck_bit_clear(ck_column_writable_validity(texts), 1);
    ck_batch_set_column(b, 0, &ints);
    ck_batch_set_column(b, 1, &texts);
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT), *text = ck_type_simple(CK_TYPE_VARCHAR);
    const struct {
        ck_order_spec spec;
        uint32_t row;
        const char *hex;
    } cases[] = {
        {{0, big, false, false, false}, 0, "7ffffffffffffffe"},
        {{0, big, true, true, true}, 0, "018000000000000001"},
        {{0, big, true, true, true}, 1, "00"},
        {{0, big, true, false, false}, 1, "02"},
        {{1, text, false, false, false}, 0, "6100ff620000"},
        {{1, text, true, true, false}, 0, "019eff009dffff"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_bytes bytes;
        char hex[100] = "";
        ck_bytes_init(&bytes, s->mem, 100);
        assert_int_equal(ck_order_encode(&cases[i].spec, 1, b, cases[i].row, &bytes), CK_OK);
        for (size_t j = 0; j < bytes.n; j++) sprintf(hex + 2 * j, "%02x", (unsigned char)bytes.p[j]);
        assert_string_equal(hex, cases[i].hex);
        ck_bytes_destroy(&bytes);
    }
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 100);
    assert_int_equal(ck_order_encode(&cases[0].spec, 1, b, 1, &bytes), CK_INVALID); /* NULL where there is none */
    assert_int_equal(bytes.n, 0);
    ck_bytes_destroy(&bytes);
    ck_batch_unref(&b);
}

/* Bytes that no encoder writes are refused, also where they could be read. */
static void spellings(void **state) {
    sample *s = *state;
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT), *text = ck_type_simple(CK_TYPE_VARCHAR),
                  *flag = ck_type_simple(CK_TYPE_BOOLEAN);
    const struct {
        ck_order_spec spec;
        ck_view key;
        bool good;
    } cases[] = {
        {{0, big, true, false, true}, {"\0", 1}, true},
        {{0, big, true, false, true}, {"\2", 1}, false},
        {{0, big, true, false, false}, {"\2", 1}, true},
        {{0, big, true, false, false}, {"\0", 1}, false},
        {{0, big, true, false, false}, {"\1\200\0\0\0\0\0\0\0", 9}, true},
        {{0, big, true, false, false}, {"\3\200\0\0\0\0\0\0\0", 9}, false},
        {{0, big, false, false, false}, {"\200\0\0\0\0\0\0\0", 8}, true},
        {{0, big, false, false, false}, {"\200\0\0\0\0\0\0\0\0", 9}, false},
        {{0, flag, false, false, false}, {"\200\0\0\0\0\0\0\1", 8}, true},
        {{0, flag, false, false, false}, {"\200\0\0\0\0\0\0\2", 8}, false},
        {{0, flag, false, false, false}, {"\0\0\0\0\0\0\0\1", 8}, false},
        {{0, text, false, false, false}, {"a\0\377\0\0", 5}, true},
        {{0, text, false, false, false}, {"a\0\1\0\0", 5}, false},
        {{0, text, false, false, false}, {"a\0\376\0\0", 5}, false},
        {{0, text, false, false, false}, {"a\0", 2}, false},
        {{0, text, false, true, false}, {"\236\377\377", 3}, true},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_column_builder b, *list = &b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, cases[i].spec.type, 1), CK_OK);
        assert_int_equal(ck_order_decode(&cases[i].spec, 1, cases[i].key, &list), cases[i].good ? CK_OK : CK_CORRUPT);
        ck_column_builder_destroy(&b);
    }
}

static ck_status long_text_with_zeros(sample *s) {
    static char text[1000];
    const ck_type *t = ck_type_simple(CK_TYPE_BYTES);
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i % 3 ? 0 : 'a' + i % 7);
    ck_column_builder b, *list = &b;
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 1 << 20);
    CK_TRY(ck_column_builder_init(&b, s->mem, t, 2));
    ck_status st = ck_build_str(&b, text, sizeof text);
    ck_column *c = st == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_batch *batch = c ? ck_batch_new(s->mem, 1, 1, false, false) : NULL;
    st = batch ? CK_OK : CK_NOMEM;
    if (batch) {
        ck_order_spec spec = {0, t, true, true, true};
        ck_batch_set_column(batch, 0, &c);
        st = ck_order_encode(&spec, 1, batch, 0, &bytes);
        if (st == CK_OK) assert_int_equal(bytes.n, 1 + sizeof text + 666 + 2);
        if (st == CK_OK) st = ck_order_decode(&spec, 1, ck_bytes_as_view(&bytes), &list);
        if (st == CK_OK) {
            ck_column *back = ck_column_builder_finish(&b);
            st = back ? CK_OK : CK_NOMEM;
            if (back) assert_true(ck_column_rows_equal(back, 0, batch->columns[0], 0));
            ck_column_unref(&back);
        }
        ck_batch_unref(&batch);
    }
    ck_column_unref(&c);
    ck_column_builder_destroy(&b);
    ck_bytes_destroy(&bytes);
    return st;
}

static void no_memory(void **state) { sample_sweep(*state, long_text_with_zeros); }

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(memcmp_is_the_order), SAMPLE_TEST(keys_come_back_and_damage_is_found),
        SAMPLE_TEST(golden_bytes),        SAMPLE_TEST(spellings),
        SAMPLE_TEST(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
