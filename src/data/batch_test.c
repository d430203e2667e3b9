#include "data/builder_int.h"
#include "data/sample_int.h"

static const ck_schema *two_columns(sample *s) {
    static const ck_field fields[] = {{"id", NULL, false}, {"name", NULL, true}};
    ck_field *f = ck_arena_array(&s->arena, 2, sizeof *f);
    memcpy(f, fields, sizeof fields);
    f[0].type = ck_type_simple(CK_TYPE_BIGINT);
    f[1].type = ck_type_simple(CK_TYPE_VARCHAR);
    ck_schema *schema = CK_ARENA_NEW(&s->arena, ck_schema);
    *schema = (ck_schema){f, 2};
    return schema;
}

static void headers(void **state) {
    sample *s = *state;
    ck_batch *b = sample_batch(s, two_columns(s), 100, false, true);
    b->origin = ck_origin_new(s->mem, "flights.csv", 1000, 100);
    for (uint32_t i = 0; i < 100; i++) b->origin->row_offset[i] = i * 10;
    assert_int_equal(b->sel_count, 100);
    assert_int_equal(ck_batch_row(b, 7), 7);
    uint16_t sel[] = {3, 50, 99};
    ck_batch *f = ck_batch_select(b, sel, 3);
    assert_int_equal(f->row_count, 100);
    assert_int_equal(f->sel_count, 3);
    assert_int_equal(ck_batch_row(f, 1), 50);
    assert_int_equal(ck_batch_weight(f, 50), b->weights[50]);
    assert_ptr_equal(f->origin, b->origin);
    assert_ptr_equal(f->columns[0], b->columns[0]);
    uint32_t map[] = {1, 1, 0};
    ck_batch *p = ck_batch_project(f, map, 3);
    assert_int_equal(p->column_count, 3);
    assert_int_equal(ck_batch_row(p, 2), 99);
    assert_ptr_equal(p->columns[1], b->columns[1]);
    ck_batch_unref(&b);
    ck_batch *again = ck_batch_ref(p);
    ck_batch_unref(&p);
    ck_batch_unref(&f);
    assert_string_equal(again->origin->object, "flights.csv");
    assert_int_equal(again->columns[2]->length, 100);
    ck_batch_unref(&again);
}

static void pruned_columns(void **state) {
    sample *s = *state;
    ck_batch *b = sample_batch(s, two_columns(s), 10, false, false);
    ck_column *none = NULL;
    ck_batch_set_column(b, 0, &none);
    assert_null(b->columns[0]);
    ck_batch *f = ck_batch_select(b, (uint16_t[]){1}, 1);
    ck_batch *p = ck_batch_project(f, (uint32_t[]){1, 0}, 2);
    assert_null(p->columns[1]);
    assert_true(ck_batch_pinned_bytes(p) > ck_batch_live_bytes(p) / 2);
    ck_batch *c = ck_batch_compact(p, s->mem);
    assert_null(c->columns[1]);
    assert_int_equal(c->row_count, 1);
    ck_batch_builder out;
    assert_int_equal(ck_batch_builder_init(&out, s->mem, two_columns(s), 10), CK_OK);
    assert_int_equal(ck_batch_builder_gather(&out, b, (uint16_t[]){2, 4}, 2), CK_OK);
    ck_batch *g = ck_batch_builder_finish(&out);
    assert_null(g->columns[0]);
    assert_int_equal(g->columns[1]->length, 2);
    ck_batch_builder_destroy(&out);
    ck_batch_unref(&g), ck_batch_unref(&c), ck_batch_unref(&p), ck_batch_unref(&f), ck_batch_unref(&b);
}

static bool batches_equal(const ck_batch *a, const ck_batch *b) {
    if (a->sel_count != b->sel_count || a->column_count != b->column_count) return false;
    for (uint32_t k = 0; k < a->sel_count; k++) {
        uint32_t x = ck_batch_row(a, k), y = ck_batch_row(b, k);
        if (ck_batch_weight(a, x) != ck_batch_weight(b, y)) return false;
        for (uint32_t i = 0; i < a->column_count; i++)
            if (!ck_column_rows_equal(a->columns[i], x, b->columns[i], y)) return false;
    }
    return true;
}

static void compaction_keeps_the_live_rows(void **state) {
    sample *s = *state;
    for (int round = 0; round < 150; round++) {
        const ck_schema *schema = sample_schema(s, sample_below(s, 5), 3);
        ck_batch *b = sample_batch(s, schema, sample_below(s, 200), sample_one_in(s, 2), sample_one_in(s, 2));
        ck_batch *c = ck_batch_compact(b, s->mem);
        assert_non_null(c);
        assert_null(c->sel);
        assert_true(batches_equal(b, c));
        for (uint32_t i = 0; i < c->column_count; i++) {
            sample_check_column(c->columns[i]);
            assert_ptr_not_equal(c->columns[i], b->columns[i]);
        }
        /* the estimate is what compaction makes, within headers and rounding */
        size_t pinned = ck_batch_pinned_bytes(c), live = ck_batch_live_bytes(b);
        assert_true(live <= 2 * pinned + 2048 && pinned <= 2 * live + 2048);
        ck_batch_unref(&b);
        ck_batch_unref(&c);
    }
}

static void sparse_batches_are_compacted(void **state) {
    sample *s = *state;
    ck_buffer *read = ck_buffer_new(s->mem, CK_READ_BUFFER_BYTES);
    memset(read->p, 'r', read->bytes);
    ck_batch_builder out;
    assert_int_equal(ck_batch_builder_init(&out, s->mem, two_columns(s), 100), CK_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ck_build_i64(&out.columns[0], i), CK_OK);
        assert_int_equal(ck_build_str_in(&out.columns[1], read, (char *)read->p + i * 50, 50), CK_OK);
        ck_batch_builder_row(&out, 1);
    }
    ck_batch *b = ck_batch_builder_finish(&out);
    ck_batch *whole = ck_batch_ref(b);
    b->origin = ck_origin_new(s->mem, "x", 0, 100);
    for (uint32_t i = 0; i < 100; i++) b->origin->row_offset[i] = i;
    assert_true(ck_batch_pinned_bytes(b) > CK_READ_BUFFER_BYTES);
    assert_true(ck_batch_live_bytes(b) < 16 * 1024);
    ck_batch *before = b;
    assert_int_equal(ck_batch_compact_if_sparse(&b, s->mem), CK_OK);
    assert_ptr_not_equal(b, before);
    assert_true(ck_batch_pinned_bytes(b) < 16 * 1024);
    assert_true(batches_equal(b, whole));
    assert_int_equal(b->origin->row_offset[42], 42);
    ck_batch *dense = b;
    assert_int_equal(ck_batch_compact_if_sparse(&b, s->mem), CK_OK); /* once is enough */
    assert_ptr_equal(b, dense);
    ck_batch *few = ck_batch_select(b, (uint16_t[]){5, 6}, 2); /* rows under an eighth */
    ck_batch_unref(&b);
    assert_int_equal(ck_batch_compact_if_sparse(&few, s->mem), CK_OK);
    assert_int_equal(few->row_count, 2);
    assert_int_equal(few->origin->row_offset[1], 6);
    ck_batch_unref(&few);
    ck_batch_unref(&whole);
    ck_batch_builder_destroy(&out);
    ck_buffer_unref(&read);
}

/* A buffer shared by columns weighs once. */
static void shared_heaps_weigh_once(void **state) {
    sample *s = *state;
    enum { COLUMNS = 300 };
    ck_buffer *read = ck_buffer_new(s->mem, 100000);
    memset(read->p, 'r', read->bytes);
    ck_batch *b = ck_batch_new(s->mem, COLUMNS, 1, false, false);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        ck_column *c = ck_column_new(s->mem, CK_PHYS_VIEW, 1);
        ck_heaps *h = ck_heaps_new(s->mem, &read, 1);
        c->views[0] = ck_strview_ref((char *)read->p, 100, 0, 0);
        ck_column_set_heaps(c, h);
        ck_heaps_unref(&h);
        ck_batch_set_column(b, i, &c);
    }
    size_t bytes = ck_batch_pinned_bytes(b);
    assert_true(bytes > 100000 && bytes < 100000 + COLUMNS * 600);
    ck_batch_unref(&b);
    ck_buffer_unref(&read);
}

static void building_and_gathering(void **state) {
    sample *s = *state;
    uint16_t rows[500];
    for (int round = 0; round < 60; round++) {
        const ck_schema *schema = sample_schema(s, 1 + sample_below(s, 5), 2);
        ck_batch_builder out;
        assert_int_equal(ck_batch_builder_init(&out, s->mem, schema, 1000), CK_OK);
        ck_batch *from[2] = {sample_batch(s, schema, 500, false, false),
                             sample_batch(s, schema, 500, false, sample_one_in(s, 2))};
        uint32_t n[2];
        ck_batch *half[2];
        for (int i = 0; i < 2; i++) {
            n[i] = sample_rows(s, rows, 500, 4);
            half[i] = ck_batch_select(from[i], rows, n[i]);
            assert_int_equal(ck_batch_builder_gather(&out, from[i], rows, n[i]), CK_OK);
        }
        assert_true(ck_batch_builder_bytes(&out) <= ck_batch_live_bytes(half[0]) + ck_batch_live_bytes(half[1]));
        ck_batch *got = ck_batch_builder_finish(&out);
        assert_int_equal(got->row_count, n[0] + n[1]);
        assert_int_equal(ck_batch_builder_bytes(&out), 0);
        for (uint32_t k = 0; k < got->row_count; k++) {
            const ck_batch *h = k < n[0] ? half[0] : half[1];
            uint32_t row = ck_batch_row(h, k < n[0] ? k : k - n[0]);
            assert_int_equal(ck_batch_weight(got, k), ck_batch_weight(h, row));
            for (uint32_t i = 0; i < schema->field_count; i++)
                assert_true(ck_column_rows_equal(got->columns[i], k, h->columns[i], row));
        }
        for (int i = 0; i < 2; i++) ck_batch_unref(&from[i]), ck_batch_unref(&half[i]);
        ck_batch_unref(&got);
        ck_batch_builder_destroy(&out);
    }
}

static void bad_records_are_undone(void **state) {
    sample *s = *state;
    ck_batch_builder out;
    assert_int_equal(ck_batch_builder_init(&out, s->mem, two_columns(s), 10), CK_OK);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ck_build_i64(&out.columns[0], 1000 + i), CK_OK); /* and then the name was malformed */
        ck_batch_builder_undo(&out);
        assert_int_equal(ck_build_i64(&out.columns[0], i), CK_OK);
        assert_int_equal(ck_build_null(&out.columns[1]), CK_OK);
        ck_batch_builder_row(&out, i == 4 ? -1 : 1);
    }
    ck_batch *b = ck_batch_builder_finish(&out);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(b->columns[0]->i64[i], i);
        assert_int_equal(ck_batch_weight(b, i), i == 4 ? -1 : 1);
    }
    ck_batch_unref(&b);
    b = ck_batch_builder_finish(&out);
    assert_int_equal(b->row_count, 0);
    assert_null(b->weights);
    assert_non_null(b->columns[1]);
    ck_batch_unref(&b);
    ck_batch_builder_destroy(&out);
}

static ck_batch *sweep_source;
static const ck_schema *sweep_schema;
static ck_status build_and_compact(sample *s) {
    ck_batch_builder out;
    CK_TRY(ck_batch_builder_init(&out, s->mem, sweep_schema, 50));
    ck_status status = ck_batch_builder_gather(&out, sweep_source, sweep_source->sel, sweep_source->sel_count);
    if (status != CK_OK) assert_int_equal(ck_batch_builder_bytes(&out), 0); /* as it was */
    ck_batch *b = status == CK_OK ? ck_batch_builder_finish(&out) : NULL;
    if (status == CK_OK && !b) {
        status = CK_NOMEM;
        b = ck_batch_builder_finish(&out); /* kept, and there is memory now */
        assert_true(batches_equal(b, sweep_source));
        ck_batch_unref(&b);
    }
    if (b && !ck_tracked_heap_fired(s->heap)) assert_true(batches_equal(b, sweep_source));
    if (b) ck_batch_unref(&b);
    ck_batch *few = status == CK_OK ? ck_batch_select(sweep_source, sweep_source->sel, 2) : NULL;
    ck_batch *was = few;
    if (status == CK_OK) status = few ? ck_batch_compact_if_sparse(&few, s->mem) : CK_NOMEM;
    if (few && status != CK_OK) assert_ptr_equal(few, was);
    if (few) ck_batch_unref(&few);
    ck_batch_builder_destroy(&out);
    return status;
}

static void no_memory(void **state) {
    sample *s = *state;
    s->seed = 4;
    sweep_schema = sample_schema(s, 6, 2);
    sweep_source = sample_batch(s, sweep_schema, 50, true, true);
    assert_true(sweep_source->sel_count > 2);
    sample_sweep(s, build_and_compact);
    ck_batch_unref(&sweep_source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(headers),
        SAMPLE_TEST(pruned_columns),
        SAMPLE_TEST(compaction_keeps_the_live_rows),
        SAMPLE_TEST(sparse_batches_are_compacted),
        SAMPLE_TEST(shared_heaps_weigh_once),
        SAMPLE_TEST(building_and_gathering),
        SAMPLE_TEST(bad_records_are_undone),
        SAMPLE_TEST(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
