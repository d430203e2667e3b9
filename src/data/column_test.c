#include "data/sample_int.h"

#include <pthread.h>

static void buffers(void **state) {
    sample *s = *state;
    ck_buffer *b = ck_buffer_new(s->mem, 100);
    assert_int_equal(b->bytes, 100);
    assert_true(((uintptr_t)b->p & 63) == 0);
    memset(b->p, 7, 100);
    for (int i = 0; i < CK_BUFFER_PADDING; i++) assert_int_equal(b->p[100 + i], 0);
    ck_buffer *other = ck_buffer_ref(b);
    ck_buffer_unref(&b);
    assert_null(b);
    assert_int_equal(other->p[99], 7);
    ck_buffer_unref(&other);
    ck_buffer_unref(&other); /* of nothing */
    assert_null(ck_buffer_new(s->mem, SIZE_MAX - 8));
}

static void release_foreign(ck_buffer *b) {
    *(bool *)b->foreign = true;
    ck_free(b->mem, b, sizeof *b);
}

static void foreign_buffers(void **state) {
    sample *s = *state;
    bool released = false;
    uint8_t bytes[100] = {0};
    ck_buffer *b = ck_alloc(s->mem, sizeof *b);
    *b = (ck_buffer){
        .refs = 1, .mem = s->mem, .bytes = 36, .p = bytes, .release = release_foreign, .foreign = &released};
    ck_heaps *h = ck_heaps_new(s->mem, &b, 1);
    ck_buffer_unref(&b);
    assert_false(released);
    ck_heaps_unref(&h);
    assert_true(released);
}

static void columns_are_aligned_and_accounted(void **state) {
    sample *s = *state;
    static const ck_phys all[] = {CK_PHYS_NULL, CK_PHYS_BOOL, CK_PHYS_I64,  CK_PHYS_F64,
                                  CK_PHYS_I128, CK_PHYS_VIEW, CK_PHYS_LIST, CK_PHYS_STRUCT};
    static const uint32_t lengths[] = {0, 1, 63, 64, 65, 4096};
    for (size_t k = 0; k < CK_ARRAY_COUNT(all); k++)
        for (size_t i = 0; i < CK_ARRAY_COUNT(lengths); i++) {
            uint32_t n = lengths[i];
            ck_column *c = ck_column_new(s->mem, all[k], n);
            assert_true(((uintptr_t)c->data & 63) == 0);
            assert_null(c->validity);
            size_t width = all[k] == CK_PHYS_I128 || all[k] == CK_PHYS_VIEW ? 16
                           : all[k] == CK_PHYS_I64 || all[k] == CK_PHYS_F64 ? 8
                           : all[k] == CK_PHYS_LIST                         ? 4
                                                                            : 0;
            memset(c->data, 0xee, n * width);
            if (all[k] == CK_PHYS_BOOL) memset(c->data, 0xee, ck_bitmap_words(n) * 8);
            if (all[k] != CK_PHYS_NULL) {
                uint64_t *v = ck_column_writable_validity(c);
                assert_true(((uintptr_t)v & 63) == 0);
                for (uint32_t r = 0; r < n; r++) assert_false(ck_column_is_null(c, r));
                memset(v, 0, ck_bitmap_words(n) * 8);
                assert_ptr_equal(ck_column_writable_validity(c), v);
                for (uint32_t r = 0; r < n; r++) assert_true(ck_column_is_null(c, r));
            }
            uint8_t *err = ck_column_writable_err(c);
            for (uint32_t r = 0; r < n; r++) assert_int_equal(err[r], 0);
            memset(err, 1, n);
            assert_true(ck_column_pinned_bytes(c) >= c->bytes + n);
            assert_int_equal(ck_budget_used(&s->budget, CK_MEM_QUEUE), c->bytes + n);
            ck_column_unref(&c);
            c = ck_column_new_null(s->mem, all[k], n);
            for (uint32_t r = 0; r < n; r++) assert_true(ck_column_is_null(c, r));
            ck_column_unref(&c);
        }
}

static void children_and_heaps(void **state) {
    sample *s = *state;
    ck_buffer *buffer = ck_buffer_new(s->mem, 64);
    memcpy(buffer->p, "a string that is long", 21);
    ck_heaps *h = ck_heaps_new(s->mem, &buffer, 1);
    ck_buffer_unref(&buffer);
    ck_column *views = ck_column_new(s->mem, CK_PHYS_VIEW, 2);
    views->views[0] = ck_strview_inline("short", 5);
    views->views[1] = ck_strview_ref((const char *)h->buffers[0]->p, 21, 0, 0);
    ck_column_set_heaps(views, h);
    ck_column_set_heaps(views, h); /* replaced by itself */
    ck_heaps_unref(&h);
    assert_true(ck_view_is(ck_column_str(views, 0), "short"));
    assert_true(ck_view_is(ck_column_str(views, 1), "a string that is long"));
    ck_column *list = ck_column_new(s->mem, CK_PHYS_LIST, 1);
    list->offsets[1] = 2;
    assert_int_equal(ck_column_set_children(list, &views, 1), CK_OK);
    assert_true(ck_column_pinned_bytes(list) > list->bytes + views->bytes + 64);
    ck_column *again = ck_column_ref(list);
    ck_column_unref(&list);
    assert_true(ck_view_is(ck_column_str(again->children[0], 0), "short"));
    ck_column_unref(&again);
}

static void equality(void **state) {
    sample *s = *state;
    ck_column *x = ck_column_new(s->mem, CK_PHYS_F64, 6);
    double values[] = {0.0, -0.0, 0.0 / 0.0, -(0.0 / 0.0), 1.5, 1.5};
    memcpy(x->f64, values, sizeof values);
    ck_bit_clear(ck_column_writable_validity(x), 5);
    assert_true(ck_column_rows_equal(x, 0, x, 1));
    assert_true(ck_column_rows_equal(x, 2, x, 3));
    assert_false(ck_column_rows_equal(x, 2, x, 4));
    assert_false(ck_column_rows_equal(x, 4, x, 5));
    assert_true(ck_column_rows_equal(x, 5, x, 5));
    ck_column_unref(&x);
    for (int round = 0; round < 60; round++) { /* every value equals its copy */
        const ck_type *t = sample_type(s, 2);
        ck_column *c = sample_column(s, t, true, 20);
        ck_column_builder b;
        assert_int_equal(ck_column_builder_init(&b, s->mem, t, 20), CK_OK);
        for (uint32_t i = 0; i < 20; i++) assert_int_equal(ck_build_from(&b, c, 19 - i), CK_OK);
        ck_column *d = ck_column_builder_finish(&b);
        for (uint32_t i = 0; i < 20; i++) assert_true(ck_column_rows_equal(c, i, d, 19 - i));
        ck_column_builder_destroy(&b);
        ck_column_unref(&c);
        ck_column_unref(&d);
    }
}

static void strings_differ(void **state) {
    sample *s = *state;
    static const char *const texts[] = {"",
                                        "a",
                                        "abcdefghijkl",
                                        "abcdefghijkm",
                                        "abcdefghijklm",
                                        "abcdefghijkln",
                                        "abcdefghijklmnopqrstuvwxyz",
                                        "abcdefghijklmnopqrstuvwxyZ"};
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, ck_type_simple(CK_TYPE_VARCHAR), 16), CK_OK);
    for (int i = 0; i < 16; i++) assert_int_equal(ck_build_str(&b, texts[i % 8], strlen(texts[i % 8])), CK_OK);
    ck_column *c = ck_column_builder_finish(&b);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 16; j++) assert_int_equal(ck_column_rows_equal(c, i, c, j), i % 8 == j % 8);
    ck_column_builder_destroy(&b);
    ck_column_unref(&c);
}

static void reset_needs_the_only_holder(void **state) {
    sample *s = *state;
    ck_column *c = ck_column_new(s->mem, CK_PHYS_I64, 64);
    assert_non_null(ck_column_writable_err(c));
    ck_bit_clear(ck_column_writable_validity(c), 3);
    ck_column *other = ck_column_ref(c);
    assert_false(ck_column_reset(c, 10));
    ck_column_unref(&other);
    assert_false(ck_column_reset(c, 65));
    assert_true(ck_column_reset(c, 10));
    assert_int_equal(c->length, 10);
    assert_null(c->err);
    assert_null(c->validity);
    assert_true(ck_column_reset(c, 64));
    ck_column_unref(&c);
}

static void inline_views(void **state) {
    (void)state;
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t at = 0; at < 4; at++)
        for (size_t n = 0; n <= CK_STRVIEW_INLINE; n++) {
            ck_strview want, a = ck_strview_inline(text + at, n), b = ck_strview_padded(text + at, n);
            memset(&want, 0, sizeof want);
            want.length = (int32_t)n;
            memcpy(want.inlined, text + at, n);
            assert_memory_equal(&a, &want, sizeof want);
            assert_memory_equal(&b, &want, sizeof want);
            char *exact = malloc(n + 1); /* for ASan: nothing beyond n is read */
            memcpy(exact, text + at, n);
            exact = realloc(exact, n ? n : 1);
            a = ck_strview_inline(exact, n);
            assert_memory_equal(&a, &want, sizeof want);
            free(exact);
        }
}

static void *hold_and_drop(void *arg) {
    ck_column *c = arg;
    for (int i = 0; i < 20000; i++) {
        ck_column *mine = ck_column_ref(c);
        CK_ASSERT(mine->i64[3] == 3);
        ck_column_unref(&mine);
    }
    ck_column_unref(&c);
    return NULL;
}

static void counts_are_atomic(void **state) {
    sample *s = *state;
    ck_column *c = ck_column_new(s->mem, CK_PHYS_I64, 8);
    for (int i = 0; i < 8; i++) c->i64[i] = i;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, hold_and_drop, ck_column_ref(c)), 0);
    ck_column_unref(&c);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(ck_tracked_heap_live_blocks(s->heap), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(buffers),
        SAMPLE_TEST(foreign_buffers),
        SAMPLE_TEST(columns_are_aligned_and_accounted),
        SAMPLE_TEST(children_and_heaps),
        SAMPLE_TEST(equality),
        SAMPLE_TEST(strings_differ),
        SAMPLE_TEST(inline_views),
        SAMPLE_TEST(reset_needs_the_only_holder),
        SAMPLE_TEST(counts_are_atomic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
