#include "data/key.h"
#include "data/row.h"
#include "data/sample_int.h"

enum { COLUMNS_MAX = 4 };

typedef struct keys {
    const ck_schema *schema;
    ck_batch *batch;
    const ck_type *types[COLUMNS_MAX];
    uint32_t columns[COLUMNS_MAX];
    ck_key_spec spec;
} keys;

static void open_keys_of(sample *s, keys *k, const ck_schema *schema, uint32_t rows) {
    *k = (keys){.schema = schema, .batch = sample_batch(s, schema, rows, sample_one_in(s, 2), false)};
    for (uint32_t i = 0; i < schema->field_count; i++) {
        k->types[i] = schema->fields[i].type;
        k->columns[i] = i;
    }
    k->spec = (ck_key_spec){k->columns, k->types, schema->field_count};
}
static void open_keys(sample *s, keys *k, uint32_t rows, unsigned depth) {
    open_keys_of(s, k, sample_schema(s, sample_below(s, COLUMNS_MAX + 1), depth), rows);
}

static ck_bytes encoded(sample *s, const keys *k, uint32_t row) {
    ck_bytes bytes;
    ck_bytes_init(&bytes, s->mem, 2 * CK_KEY_BYTES_MAX);
    assert_int_equal(ck_key_encode(&k->spec, k->batch, row, &bytes), CK_OK);
    return bytes;
}

static bool rows_equal(const keys *k, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < k->spec.count; i++)
        if (!ck_column_rows_equal(k->batch->columns[i], a, k->batch->columns[i], b)) return false;
    return true;
}

static void check_hashes(sample *s, const keys *k) {
    static uint64_t fnv[CK_BATCH_ROWS_MAX], hash[CK_BATCH_ROWS_MAX];
    static uint16_t low[CK_BATCH_ROWS_MAX], simd[CK_BATCH_ROWS_MAX];
    ck_key_fnv(&k->spec, k->batch, fnv);
    ck_key_fnv16(&k->spec, k->batch, low);
    ck_key_fnv16_for(ck_cpu_detect())(&k->spec, k->batch, simd);
    ck_key_hash(&k->spec, k->batch, 77, hash);
    for (uint32_t i = 0; i < k->batch->sel_count; i++) {
        ck_bytes bytes = encoded(s, k, ck_batch_row(k->batch, i));
        if (fnv[i] != ck_fnv1a(bytes.p, bytes.n) || low[i] != (uint16_t)fnv[i] || simd[i] != low[i]) {
            char text[400];
            int n = 0;
            for (uint32_t c = 0; c < k->spec.count; c++)
                n += snprintf(text + n, 80, "%.70s; ", ck_type_name(&s->arena, k->types[c]));
            fail_msg("row %u of %u, key (%s)", i, k->batch->sel_count, text);
        }
        ck_bytes_destroy(&bytes);
    }
    for (uint32_t i = 0; i < 40 && i < k->batch->sel_count; i++) /* of few values many are equal */
        for (uint32_t j = 0; j < i; j++)
            assert_int_equal(hash[i] == hash[j], rows_equal(k, ck_batch_row(k->batch, i), ck_batch_row(k->batch, j)));
}

static void fnv_is_that_of_the_bytes(void **state) {
    sample *s = *state;
    for (int round = 0; round < 400; round++) {
        keys k;
        open_keys(s, &k, sample_below(s, 4) ? sample_below(s, 60) : 700, 2);
        check_hashes(s, &k);
        ck_batch_unref(&k.batch);
    }
}

/* Strings of up to `longest` bytes beside an integer and alone: of differ's three values all equal, all but the last of
 * them, each its own. */
static void check_strings(sample *s, uint32_t longest, uint32_t differ) {
    ck_field fields[2] = {{"a", ck_type_simple(CK_TYPE_VARCHAR), false}, {"b", ck_type_simple(CK_TYPE_BIGINT), false}};
    for (uint32_t count = 1; count <= 2; count++) {
        ck_column_builder b;
        char text[40];
        assert_int_equal(ck_column_builder_init(&b, s->mem, fields[0].type, 300), CK_OK);
        for (int i = 0; i < 300; i++) {
            for (size_t j = 0; j < sizeof text && (i == 0 || differ == 2 || (differ == 1 && i == 299)); j++)
                text[j] = (char)(1 + sample_below(s, 100));
            assert_int_equal(ck_build_str(&b, text, differ == 2 ? sample_below(s, longest + 1) : longest), CK_OK);
        }
        ck_column *c = ck_column_builder_finish(&b);
        ck_column_builder_destroy(&b);
        keys k;
        open_keys_of(s, &k, ck_schema_copy(&s->arena, &(ck_schema){fields, count}), 300);
        ck_batch_set_column(k.batch, 0, &c);
        check_hashes(s, &k);
        ck_batch_unref(&k.batch);
    }
}

/* The cases with a fast way: one integer of every width, two of them, one string of every length. */
static void fnv_of_common_keys(void **state) {
    sample *s = *state;
    for (unsigned width = 0; width <= 64; width += 4) {
        for (uint32_t count = 1; count <= 2; count++) {
            ck_field fields[2] = {{"a", ck_type_simple(CK_TYPE_BIGINT), true},
                                  {"b", ck_type_simple(CK_TYPE_BIGINT), true}};
            const ck_schema *schema = ck_schema_copy(&s->arena, &(ck_schema){fields, count});
            keys k;
            open_keys_of(s, &k, schema, 519);
            for (uint32_t c = 0; c < count; c++) {
                ck_column *col = k.batch->columns[c]; /* not shared yet */
                for (uint32_t i = 0; i < 519; i++) col->i64[i] = width ? (int64_t)(sample_u64(s) >> (64 - width)) : 0;
                if (width % 8 == 0) col->validity = NULL;
            }
            check_hashes(s, &k);
            ck_batch_unref(&k.batch);
        }
    }
    for (uint32_t longest = 0; longest <= 40; longest++)
        for (uint32_t differ = 0; differ <= 2; differ++) check_strings(s, longest, differ);
}

static uint64_t scalar_hash(sample *s, uint64_t seed, const ck_field *f, const ck_column *c, uint32_t row) {
    if (ck_column_is_null(c, row)) return ck_value_hash_null(seed);
    switch (c->phys) {
    case CK_PHYS_BOOL: return ck_value_hash_i64(seed, ck_bit_get(c->bits, row));
    case CK_PHYS_I64: return ck_value_hash_i64(seed, c->i64[row]);
    case CK_PHYS_F64: return ck_value_hash_f64(seed, c->f64[row]);
    case CK_PHYS_I128: return ck_value_hash_i128(seed, c->i128[row], f->type->scale);
    case CK_PHYS_VIEW: return ck_value_hash_str(seed, ck_column_str(c, row));
    default: break;
    }
    ck_bytes bytes;
    ck_field alone = {"", f->type, false};
    ck_bytes_init(&bytes, s->mem, 1 << 20);
    assert_int_equal(ck_row_encode(&alone, 1, &c, row, &bytes), CK_OK);
    uint64_t h = ck_value_hash_str(seed, (ck_view){bytes.p + 4, bytes.n - 4});
    ck_bytes_destroy(&bytes);
    return h;
}

/* State tables hash stored rows again with the inline functions: the batch form must say the same. */
static void hash_is_the_contract(void **state) {
    sample *s = *state;
    for (int round = 0; round < 300; round++) {
        keys k;
        uint64_t hash[60], seed = sample_u64(s);
        open_keys(s, &k, 60, 2);
        ck_key_hash(&k.spec, k.batch, seed, hash);
        for (uint32_t i = 0; i < k.batch->sel_count; i++) {
            uint64_t want = k.spec.count ? seed : ck_hash_u64(seed, 0);
            for (uint32_t c = 0; c < k.spec.count; c++) {
                uint64_t v = scalar_hash(s, seed, &k.schema->fields[c], k.batch->columns[c], ck_batch_row(k.batch, i));
                want = k.spec.count == 1 ? v : ck_hash_combine(want, v);
            }
            assert_true(hash[i] == want);
        }
        ck_batch_unref(&k.batch);
    }
}

static void equal_keys_are_equal_bytes_and_come_back(void **state) {
    sample *s = *state;
    for (int round = 0; round < 300; round++) {
        keys k;
        open_keys(s, &k, 24, 2);
        ck_column_builder builders[COLUMNS_MAX], *list[COLUMNS_MAX];
        for (uint32_t i = 0; i < k.spec.count; i++) {
            assert_int_equal(ck_column_builder_init(&builders[i], s->mem, k.types[i], 24), CK_OK);
            list[i] = &builders[i];
        }
        ck_bytes bytes[24];
        for (uint32_t row = 0; row < 24; row++) {
            bytes[row] = encoded(s, &k, row);
            assert_int_equal(ck_key_decode(k.types, k.spec.count, ck_bytes_as_view(&bytes[row]), list), CK_OK);
            for (uint32_t other = 0; other <= row; other++)
                assert_int_equal(ck_view_eq(ck_bytes_as_view(&bytes[row]), ck_bytes_as_view(&bytes[other])),
                                 rows_equal(&k, row, other));
        }
        for (uint32_t i = 0; i < k.spec.count; i++) {
            ck_column *c = ck_column_builder_finish(&builders[i]);
            for (uint32_t row = 0; row < 24; row++) assert_true(ck_column_rows_equal(c, row, k.batch->columns[i], row));
            ck_column_unref(&c);
            ck_column_builder_destroy(&builders[i]);
        }
        for (uint32_t row = 0; row < 24; row++) ck_bytes_destroy(&bytes[row]);
        ck_batch_unref(&k.batch);
    }
}

static void damaged_keys(void **state) {
    sample *s = *state;
    for (int round = 0; round < 200; round++) {
        keys k;
        open_keys_of(s, &k, sample_schema(s, 1 + sample_below(s, COLUMNS_MAX), 2), 1);
        ck_column_builder builders[COLUMNS_MAX], *list[COLUMNS_MAX];
        for (uint32_t i = 0; i < k.spec.count; i++) {
            assert_int_equal(ck_column_builder_init(&builders[i], s->mem, k.types[i], 4096), CK_OK);
            list[i] = &builders[i];
        }
        ck_bytes bytes = encoded(s, &k, 0);
        bool any_prefix = k.spec.count == 1 && k.types[0]->kind == CK_TYPE_VARCHAR;
        uint32_t decoded = 0;
        for (size_t n = 0; n < bytes.n; n++) {
            char *copy = ck_alloc(s->mem, n);
            if (n) memcpy(copy, bytes.p, n);
            ck_status st = ck_key_decode(k.types, k.spec.count, (ck_view){copy, n}, list);
            bool is_null = k.spec.count == 1 && n == 1 && (uint8_t)bytes.p[0] == 0xff;
            assert_int_equal(st, any_prefix || is_null ? CK_OK : CK_CORRUPT);
            decoded += st == CK_OK;
            ck_free(s->mem, copy, n);
        }
        for (size_t bit = 0; bit < bytes.n * 8 && bit < 1000; bit++) {
            bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
            ck_status st = ck_key_decode(k.types, k.spec.count, ck_bytes_as_view(&bytes), list);
            assert_true(st == CK_OK || st == CK_CORRUPT);
            decoded += st == CK_OK;
            for (uint32_t i = 0; i < k.spec.count; i++) assert_int_equal(builders[i].length, decoded);
            bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
        }
        for (uint32_t i = 0; i < k.spec.count; i++) ck_column_builder_destroy(&builders[i]);
        ck_bytes_destroy(&bytes);
        ck_batch_unref(&k.batch);
    }
}

/* The bytes are a public format: these must never change. */
static void golden_bytes(void **state) {
    sample *s = *state;
    ck_arena *a = &s->arena;
    const ck_type *types[] = {ck_type_simple(CK_TYPE_BIGINT), ck_type_simple(CK_TYPE_VARCHAR),
                              ck_type_simple(CK_TYPE_BYTES),  ck_type_simple(CK_TYPE_DOUBLE),
                              ck_type_decimal(a, 10, 2),      ck_type_simple(CK_TYPE_BOOLEAN)};
    ck_batch *b = ck_batch_new(s->mem, 6, 2, false, false);
    for (uint32_t i = 0; i < 6; i++) {
        ck_column *c = ck_column_new(s->mem, ck_type_phys(types[i]), 2);
        ck_bit_clear(ck_column_writable_validity(c), 1);
        ck_batch_set_column(b, i, &c);
    }
    b->columns[0]->i64[0] = 258;
    b->columns[1]->views[0] = ck_strview_inline("UA", 2);
    b->columns[2]->views[0] = ck_strview_inline("\xff", 1);
    b->columns[3]->f64[0] = -0.0;
    b->columns[4]->i128[0] = -150;
    b->columns[5]->bits[0] = 1;
    static const struct {
        uint32_t count, columns[3], row;
        const char *hex;
    } cases[] = {
        {0, {0}, 0, ""},
        {1, {0}, 0, "0201000000000000"},
        {1, {0}, 1, "ff"},
        {1, {1}, 0, "5541"},
        {1, {1}, 1, "ff"},
        {1, {2}, 0, "0101000000ff"},
        {1, {2}, 1, "ff"},
        {1, {3}, 0, "010000000000000000"},
        {1, {3}, 1, "ff"},
        {1, {4}, 0, "0101f1ffffffffffffffffffffffffffffff"},
        {1, {5}, 0, "0100000000000000"},
        {2,
         {0, 1},
         0,
         "010201000000000000"
         "01020000005541"},
        {2, {0, 1}, 1, "0000"},
        {2,
         {5, 4},
         0,
         "010100000000000000"
         "0101f1ffffffffffffffffffffffffffffff"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const ck_type *t[3];
        for (uint32_t c = 0; c < cases[i].count; c++) t[c] = types[cases[i].columns[c]];
        ck_key_spec spec = {cases[i].columns, t, cases[i].count};
        ck_bytes bytes;
        char hex[100] = "";
        ck_bytes_init(&bytes, s->mem, 100);
        assert_int_equal(ck_key_encode(&spec, b, cases[i].row, &bytes), CK_OK);
        for (size_t j = 0; j < bytes.n; j++) sprintf(hex + 2 * j, "%02x", (unsigned char)bytes.p[j]);
        assert_string_equal(hex, cases[i].hex);
        ck_bytes_destroy(&bytes);
    }
    ck_batch_unref(&b);
}

static void canonical_forms(void **state) {
    (void)state;
    static const struct {
        ck_i128 value;
        int32_t scale;
        ck_i128 want;
        int32_t want_scale;
    } cases[] = {{0, 5, 0, 0}, {1500, 3, 15, 1}, {1500, 1, 150, 0}, {-1500, 0, -1500, 0}, {7, 2, 7, 2}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_i128 v = cases[i].value;
        int32_t scale = cases[i].scale;
        ck_decimal_canonical(&v, &scale);
        assert_true(v == cases[i].want && scale == cases[i].want_scale);
    }
    ck_i128 big = (ck_i128)1 << 100;
    int32_t scale = 12;
    for (int i = 0; i < 8; i++) big *= 10;
    ck_decimal_canonical(&big, &scale);
    assert_true(big == (ck_i128)1 << 100 && scale == 4);
    assert_false(__builtin_signbit(ck_double_canonical(-0.0)));
    uint64_t a, b;
    double x = ck_double_canonical(-__builtin_nan("7")), y = ck_double_canonical(__builtin_nan(""));
    memcpy(&a, &x, 8), memcpy(&b, &y, 8);
    assert_true(a == b && a == 0x7ff8000000000000ULL);
}

static void long_keys_are_refused(void **state) {
    sample *s = *state;
    for (size_t extra = 0; extra < 2; extra++) {
        ck_buffer *buffer = ck_buffer_new(s->mem, CK_KEY_BYTES_MAX + 1);
        memset(buffer->p, 'x', buffer->bytes);
        ck_column *c = ck_column_new(s->mem, CK_PHYS_VIEW, 1);
        ck_heaps *h = ck_heaps_new(s->mem, &buffer, 1);
        c->views[0] = ck_strview_ref((char *)buffer->p, CK_KEY_BYTES_MAX + extra, 0, 0);
        ck_column_set_heaps(c, h);
        ck_batch *b = ck_batch_new(s->mem, 1, 1, false, false);
        ck_batch_set_column(b, 0, &c);
        const ck_type *t = ck_type_simple(CK_TYPE_VARCHAR);
        ck_key_spec spec = {(uint32_t[]){0}, &t, 1};
        ck_bytes bytes;
        ck_bytes_init(&bytes, s->mem, 4 * CK_KEY_BYTES_MAX);
        assert_int_equal(ck_bytes_char(&bytes, 'p'), CK_OK);
        assert_int_equal(ck_key_encode(&spec, b, 0, &bytes), extra ? CK_FULL : CK_OK);
        assert_int_equal(bytes.n, extra ? 1 : 1 + CK_KEY_BYTES_MAX);
        uint32_t row = 7;
        bool any;
        assert_int_equal(ck_key_find_too_long(&spec, b, s->mem, &any, &row), CK_OK);
        assert_int_equal(any, extra);
        if (any) assert_int_equal(row, 0);
        ck_key_spec twice = {(uint32_t[]){0, 0}, (const ck_type *[]){t, t}, 2}; /* each fits, with `extra` 0 */
        assert_int_equal(ck_key_find_too_long(&twice, b, s->mem, &any, &row), CK_OK);
        assert_true(any);
        b->sel_count = 0; /* nobody's key */
        assert_int_equal(ck_key_find_too_long(&twice, b, s->mem, &any, &row), CK_OK);
        assert_false(any);
        b->sel_count = 1;
        ck_bytes_destroy(&bytes);
        ck_heaps_unref(&h), ck_buffer_unref(&buffer), ck_batch_unref(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(fnv_is_that_of_the_bytes),
        SAMPLE_TEST(fnv_of_common_keys),
        SAMPLE_TEST(hash_is_the_contract),
        SAMPLE_TEST(equal_keys_are_equal_bytes_and_come_back),
        SAMPLE_TEST(damaged_keys),
        SAMPLE_TEST(golden_bytes),
        SAMPLE_TEST(canonical_forms),
        SAMPLE_TEST(long_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
