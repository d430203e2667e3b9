#include "data/sample_int.h"

static void init(sample *s, ck_column_builder *b, ck_kind kind, uint32_t capacity) {
    assert_int_equal(ck_column_builder_init(b, s->mem, ck_type_simple(kind), capacity), CK_OK);
}
static ck_column *finish(ck_column_builder *b) {
    ck_column *c = ck_column_builder_finish(b);
    assert_non_null(c);
    sample_check_column(c);
    return c;
}

static void single_values(void **state) {
    sample *s = *state;
    ck_column_builder b;
    init(s, &b, CK_TYPE_BIGINT, 4096);
    for (int round = 0; round < 3; round++) { /* reused */
        for (int64_t i = 0; i < 4096; i++)
            assert_int_equal(i % 7 == round ? ck_build_null(&b) : ck_build_i64(&b, i * 3), CK_OK);
        ck_column *c = finish(&b);
        assert_int_equal(c->length, 4096);
        for (uint32_t i = 0; i < 4096; i++) {
            assert_int_equal(ck_column_is_null(c, i), (int)(i % 7) == round);
            if (!ck_column_is_null(c, i)) assert_int_equal(c->i64[i], i * 3);
        }
        ck_column_unref(&c);
    }
    ck_column_builder_destroy(&b);
    ck_column_builder_destroy(&b); /* twice is fine */
}

static void bools_and_doubles(void **state) {
    sample *s = *state;
    ck_column_builder b;
    init(s, &b, CK_TYPE_BOOLEAN, 300);
    for (int i = 0; i < 300; i++) assert_int_equal(ck_build_bool(&b, i % 3 == 0), CK_OK);
    ck_column *c = finish(&b);
    assert_null(c->validity);
    for (size_t i = 0; i < 300; i++) assert_int_equal(ck_bit_get(c->bits, i), i % 3 == 0);
    ck_column_unref(&c);
    ck_column_builder_destroy(&b);
    init(s, &b, CK_TYPE_DOUBLE, 2);
    assert_int_equal(ck_build_f64(&b, -0.0), CK_OK);
    c = finish(&b);
    assert_true(1.0 / c->f64[0] < 0); /* kept as it is */
    ck_column_unref(&c);
    ck_column_builder_destroy(&b);
}

static void empty_columns(void **state) {
    sample *s = *state;
    for (int i = 0; i < 40; i++) {
        ck_column_builder b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, sample_type(s, 2), 10), CK_OK);
        ck_column *c = finish(&b);
        assert_int_equal(c->length, 0);
        ck_column_unref(&c);
        ck_column_builder_destroy(&b);
    }
}

/* A column of few rows must not keep memory for its builder's capacity alive. */
static void small_columns_pin_little(void **state) {
    sample *s = *state;
    ck_column_builder b;
    init(s, &b, CK_TYPE_VARCHAR, 4096);
    for (int i = 0; i < 4096; i++) assert_int_equal(ck_build_str(&b, "abc", 3), CK_OK);
    ck_column *big = finish(&b);
    for (int i = 0; i < 3; i++) assert_int_equal(ck_build_str(&b, "abc", 3), CK_OK);
    ck_column *small = finish(&b);
    assert_true(ck_column_pinned_bytes(big) > 65536);
    assert_true(ck_column_pinned_bytes(small) < 2048);
    ck_column_unref(&big);
    ck_column_unref(&small);
    ck_column_builder_destroy(&b);
}

static void long_strings(void **state) {
    sample *s = *state;
    ck_column_builder b;
    init(s, &b, CK_TYPE_BYTES, 200);
    static char text[300 * 1024];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i % 23);
    for (size_t i = 0; i < 200; i++) assert_int_equal(ck_build_str(&b, text + i, i * 1500), CK_OK);
    size_t total = 0;
    for (size_t i = 9; i < 200; i++) total += i * 1500;
    ck_column *c = finish(&b);
    for (size_t i = 0; i < 200; i++) {
        ck_view v = ck_column_str(c, i);
        assert_int_equal(v.n, i * 1500);
        assert_memory_equal(v.p, text + i, v.n);
    }
    assert_true(ck_column_pinned_bytes(c) > total && ck_column_pinned_bytes(c) < 2 * total);
    ck_column_unref(&c);
    ck_column_builder_destroy(&b);
}

static void strings_in_read_buffers(void **state) {
    sample *s = *state;
    ck_buffer *one = ck_buffer_new(s->mem, 1000), *two = ck_buffer_new(s->mem, 1000);
    memset(one->p, '1', 1000);
    memset(two->p, '2', 1000);
    ck_column_builder b;
    init(s, &b, CK_TYPE_VARCHAR, 100);
    for (uint32_t i = 0; i < 10; i++) { /* given and copied ones alternate: still one entry for each */
        assert_int_equal(ck_build_str_in(&b, one, (char *)one->p + i, 20), CK_OK);
        assert_int_equal(ck_build_str_in(&b, one, (char *)one->p, 5), CK_OK);
        assert_int_equal(ck_build_str(&b, "a copied string, long", 21), CK_OK);
    }
    for (uint32_t i = 0; i < 10; i++) assert_int_equal(ck_build_str_in(&b, two, (char *)two->p + 980, 20), CK_OK);
    ck_column *c = finish(&b);
    assert_int_equal(c->heaps->count, 3);
    assert_ptr_equal(ck_column_str(c, 27).p, one->p + 9);
    assert_true(ck_view_is(ck_column_str(c, 28), "11111"));
    assert_ptr_equal(ck_column_str(c, 39).p, two->p + 980);
    assert_int_equal(atomic_load(&one->refs), 2);
    ck_column_unref(&c);
    assert_int_equal(atomic_load(&one->refs), 1);
    ck_buffer_unref(&one);
    ck_buffer_unref(&two);
    ck_column_builder_destroy(&b);
}

static void unused_buffers_are_let_go(void **state) {
    sample *s = *state;
    ck_buffer *one = ck_buffer_new(s->mem, 1000);
    memset(one->p, '1', 1000);
    ck_column_builder b;
    init(s, &b, CK_TYPE_VARCHAR, 100);
    assert_int_equal(ck_build_str_in(&b, one, (char *)one->p, 5), CK_OK);
    assert_int_equal(ck_build_str_in(&b, one, (char *)one->p, 50), CK_OK);
    ck_column_builder_truncate(&b, 1); /* the long one is gone again */
    ck_column *c = finish(&b);
    assert_null(c->heaps);
    ck_column_unref(&c);
    ck_buffer_unref(&one);
    ck_column_builder_destroy(&b);
}

static void truncating_undoes_nulls_and_parts(void **state) {
    sample *s = *state;
    for (int round = 0; round < 200; round++) {
        const ck_type *t = sample_type(s, 3);
        ck_column *want = sample_column(s, t, true, 40);
        ck_column_builder b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, t, 40), CK_OK);
        for (uint32_t i = 0; i < 40; i++) {
            uint32_t junk = sample_below(s, 3) < 2 ? 0 : sample_below(s, 40 - i);
            for (uint32_t j = 0; j < junk; j++) sample_value(s, &b, true);
            if (b.child_count && sample_one_in(s, 2)) sample_value(s, &b.children[0], true); /* half a value */
            ck_column_builder_truncate(&b, i);
            assert_int_equal(ck_build_from(&b, want, i), CK_OK);
        }
        ck_column *c = finish(&b);
        for (uint32_t i = 0; i < 40; i++) assert_true(ck_column_rows_equal(c, i, want, i));
        ck_column_unref(&c);
        ck_column_unref(&want);
        ck_column_builder_destroy(&b);
    }
}

static ck_status build_nested(sample *s) {
    const ck_type *t = ck_type_map(&s->arena, ck_type_simple(CK_TYPE_VARCHAR),
                                   ck_type_array(&s->arena, ck_type_simple(CK_TYPE_BIGINT), true), true);
    ck_column_builder b;
    CK_TRY(ck_column_builder_init(&b, s->mem, t, 8));
    ck_column_builder *entry = &b.children[0], *key = &entry->children[0], *value = &entry->children[1];
    ck_status status = CK_OK;
    for (int i = 0; i < 4 && status == CK_OK; i++) {
        if (status == CK_OK) status = ck_build_str(key, "a key longer than twelve", 24);
        if (status == CK_OK) status = ck_build_i64(&value->children[0], i);
        if (status == CK_OK) status = ck_build_null(&value->children[0]);
        if (status == CK_OK) status = ck_build_end(value);
        if (status == CK_OK) status = ck_build_end(entry);
        if (status == CK_OK) status = ck_build_end(&b);
        if (status == CK_OK) status = ck_build_null(&b);
    }
    ck_column *c = status == CK_OK ? ck_column_builder_finish(&b) : NULL;
    if (status == CK_OK && !c) { /* what was built is still there */
        assert_int_equal(b.length, 8);
        c = ck_column_builder_finish(&b);
        assert_non_null(c);
        sample_check_column(c);
        assert_int_equal(c->children[0]->children[1]->children[0]->length, 8);
        status = CK_NOMEM;
    }
    ck_column_unref(&c);
    ck_column_builder_destroy(&b);
    return status;
}

static void no_memory(void **state) { sample_sweep(*state, build_nested); }

static void all_null_columns_append(void **state) {
    sample *s = *state;
    const ck_type *row = ck_type_row(&s->arena, (ck_field[]){{"a", ck_type_simple(CK_TYPE_BIGINT), true}}, 1);
    const ck_type *types[] = {ck_type_array(&s->arena, row, true), row, ck_type_simple(CK_TYPE_VARCHAR),
                              ck_type_simple(CK_TYPE_NULL)};
    for (size_t i = 0; i < CK_ARRAY_COUNT(types); i++)
        for (int untyped = 0; untyped < 2; untyped++) {
            ck_column *nulls = ck_column_new_null(s->mem, untyped ? CK_PHYS_NULL : ck_type_phys(types[i]), 5);
            ck_column_builder b;
            assert_int_equal(ck_column_builder_init(&b, s->mem, types[i], 10), CK_OK);
            assert_int_equal(ck_build_gather(&b, nulls, (uint16_t[]){1, 3}, 2), CK_OK);
            assert_int_equal(ck_build_from(&b, nulls, 4), CK_OK);
            ck_column *c = finish(&b);
            assert_int_equal(c->length, 3);
            for (uint32_t r = 0; r < 3; r++) assert_true(ck_column_is_null(c, r));
            ck_column_unref(&c);
            ck_column_unref(&nulls);
            ck_column_builder_destroy(&b);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(single_values),
        SAMPLE_TEST(bools_and_doubles),
        SAMPLE_TEST(empty_columns),
        SAMPLE_TEST(small_columns_pin_little),
        SAMPLE_TEST(long_strings),
        SAMPLE_TEST(strings_in_read_buffers),
        SAMPLE_TEST(unused_buffers_are_let_go),
        SAMPLE_TEST(truncating_undoes_nulls_and_parts),
        SAMPLE_TEST(no_memory),
        SAMPLE_TEST(all_null_columns_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
