#include "data/builder_int.h"
#include "data/sample_int.h"

/* Every value of a random column arrives, whatever the type, the rows taken and how many pieces they come in. */
static void random_gathers(void **state) {
    sample *s = *state;
    uint16_t rows[300];
    for (int round = 0; round < 300; round++) {
        const ck_type *t = sample_type(s, 3);
        ck_column *c[3];
        for (int i = 0; i < 3; i++) c[i] = sample_column(s, t, !sample_one_in(s, 3), 300);
        ck_column_builder b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, t, 4096), CK_OK);
        if (round % 2) ck_column_builder_take_with(&b, ck_cpu_detect());
        struct {
            uint8_t column;
            uint16_t row;
        } want[4096];
        uint32_t total = 0;
        while (total < 1500) {
            uint8_t from = (uint8_t)sample_below(s, 3);
            uint32_t n = sample_rows(s, rows, 300, 1 + sample_below(s, 5));
            if (sample_one_in(s, 3)) { /* a range */
                uint32_t start = sample_below(s, 300), length = sample_below(s, 300 - start + 1);
                for (n = 0; n < length; n++) rows[n] = (uint16_t)(start + n);
                assert_int_equal(ck_build_range(&b, c[from], start, length), CK_OK);
            } else {
                assert_int_equal(ck_build_gather(&b, c[from], rows, n), CK_OK);
            }
            for (uint32_t i = 0; i < n; i++) want[total].column = from, want[total++].row = rows[i];
        }
        ck_column *got = ck_column_builder_finish(&b);
        ck_column_builder_destroy(&b);
        sample_check_column(got);
        assert_int_equal(got->length, total);
        for (uint32_t i = 0; i < total; i++) assert_true(ck_column_rows_equal(got, i, c[want[i].column], want[i].row));
        for (int i = 0; i < 3; i++) ck_column_unref(&c[i]);
        ck_column_unref(&got);
    }
}

static ck_column *long_strings(sample *s, ck_buffer *buffer, uint32_t n) {
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, ck_type_simple(CK_TYPE_VARCHAR), n), CK_OK);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(ck_build_str_in(&b, buffer, (char *)buffer->p + i, 20), CK_OK);
    ck_column *c = ck_column_builder_finish(&b);
    ck_column_builder_destroy(&b);
    return c;
}

static void heaps_are_shared_once(void **state) {
    sample *s = *state;
    ck_buffer *buffer = ck_buffer_new(s->mem, 200), *other = ck_buffer_new(s->mem, 200);
    for (int i = 0; i < 200; i++) buffer->p[i] = (uint8_t)i, other->p[i] = (uint8_t)(200 - i);
    ck_column *a = long_strings(s, buffer, 100), *b = long_strings(s, buffer, 100), *c = long_strings(s, other, 100);
    assert_ptr_not_equal(a->heaps, b->heaps);
    ck_column_builder out;
    assert_int_equal(ck_column_builder_init(&out, s->mem, ck_type_simple(CK_TYPE_VARCHAR), 4096), CK_OK);
    uint16_t rows[] = {0, 5, 99};
    for (int i = 0; i < 10; i++) assert_int_equal(ck_build_gather(&out, a, rows, 3), CK_OK); /* the same heaps */
    assert_int_equal(out.buffer_count, 1);
    assert_int_equal(ck_build_gather(&out, b, rows, 3), CK_OK); /* other heaps, the same buffer */
    assert_int_equal(out.buffer_count, 1);
    assert_int_equal(ck_build_gather(&out, c, rows, 3), CK_OK);
    assert_int_equal(out.buffer_count, 2);
    assert_int_equal(ck_build_gather(&out, a, rows, 3), CK_OK);
    ck_column *got = ck_column_builder_finish(&out);
    for (uint32_t i = 0; i < got->length; i++) {
        bool from_c = i >= 33 && i < 36;
        assert_ptr_equal(ck_column_str(got, i).p, (from_c ? other : buffer)->p + rows[i % 3]); /* no copy */
    }
    ck_column_unref(&a), ck_column_unref(&b), ck_column_unref(&c);
    assert_int_equal(ck_column_str(got, 0).p[19], 19); /* kept alive */
    ck_column_unref(&got);
    ck_column_builder_destroy(&out);
    assert_int_equal(atomic_load(&buffer->refs), 1);
    ck_buffer_unref(&buffer), ck_buffer_unref(&other);
}

static void short_strings_keep_no_heap(void **state) {
    sample *s = *state;
    ck_buffer *buffer = ck_buffer_new(s->mem, 200);
    memset(buffer->p, 'x', 200);
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, ck_type_simple(CK_TYPE_VARCHAR), 10), CK_OK);
    assert_int_equal(ck_build_str_in(&b, buffer, (char *)buffer->p, 20), CK_OK);
    assert_int_equal(ck_build_str_in(&b, buffer, (char *)buffer->p, 12), CK_OK);
    ck_column *c = ck_column_builder_finish(&b);
    assert_int_equal(ck_build_from(&b, c, 1), CK_OK);
    ck_column *got = ck_column_builder_finish(&b);
    assert_null(got->heaps);
    ck_column_unref(&got), ck_column_unref(&c);
    ck_column_builder_destroy(&b);
    ck_buffer_unref(&buffer);
}

/* A source of very many buffers gives only those that are pointed into. */
static void many_buffers_do_not_multiply(void **state) {
    sample *s = *state;
    enum { N = 600 };
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, ck_type_simple(CK_TYPE_VARCHAR), N), CK_OK);
    for (int i = 0; i < N; i++) {
        ck_buffer *buffer = ck_buffer_new(s->mem, 32);
        memset(buffer->p, 'a' + i % 26, 32);
        assert_int_equal(
            i % 5 ? ck_build_str_in(&b, buffer, (char *)buffer->p, 13 + (size_t)i % 19) : ck_build_null(&b), CK_OK);
        ck_buffer_unref(&buffer);
    }
    ck_column *c = ck_column_builder_finish(&b);
    assert_int_equal(c->heaps->count, N - N / 5);
    uint16_t rows[] = {1, 2, 3, 1, 5, 599};
    assert_int_equal(ck_build_gather(&b, c, rows, 6), CK_OK);
    ck_column *got = ck_column_builder_finish(&b);
    assert_int_equal(got->heaps->count, 4);
    sample_check_column(got);
    for (uint32_t i = 0; i < 6; i++) assert_true(ck_column_rows_equal(got, i, c, rows[i]));
    ck_column_unref(&got), ck_column_unref(&c);
    ck_column_builder_destroy(&b);
}

static ck_column *sweep_source;
static ck_status gather_all(sample *s) {
    ck_column_builder b;
    const ck_type *str = ck_type_simple(CK_TYPE_VARCHAR);
    const ck_type *t =
        ck_type_array(&s->arena, ck_type_row(&s->arena, (ck_field[]){{"a", str, true}, {"b", str, true}}, 2), true);
    CK_TRY(ck_column_builder_init(&b, s->mem, t, 100));
    ck_status status = CK_OK;
    for (uint16_t i = 0; i < 40 && status == CK_OK; i++) {
        uint32_t before = b.length;
        status = ck_build_gather(&b, sweep_source, &i, 1);
        if (status == CK_OK) continue;
        assert_int_equal(b.length, before); /* nothing half done */
        assert_int_equal(b.children[0].length, b.col ? b.col->offsets[before] : 0);
        assert_int_equal(b.children[0].children[0].length, b.children[0].length);
        assert_int_equal(b.children[0].children[1].length, b.children[0].length);
    }
    ck_column_builder_destroy(&b);
    return status;
}

static void no_memory(void **state) {
    sample *s = *state;
    const ck_type *str = ck_type_simple(CK_TYPE_VARCHAR);
    const ck_type *t =
        ck_type_array(&s->arena, ck_type_row(&s->arena, (ck_field[]){{"a", str, true}, {"b", str, true}}, 2), true);
    sweep_source = sample_column(s, t, true, 40);
    sample_sweep(s, gather_all);
    ck_column_unref(&sweep_source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(random_gathers),
        SAMPLE_TEST(heaps_are_shared_once),
        SAMPLE_TEST(short_strings_keep_no_heap),
        SAMPLE_TEST(many_buffers_do_not_multiply),
        SAMPLE_TEST(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
