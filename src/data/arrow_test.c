#include "data/arrow_int.h"
#include "data/sample_int.h"

#include <pthread.h>

static void export_both(const ck_batch *b, const ck_schema *s, ck_arrow_flavour f, struct ArrowSchema *schema,
                        struct ArrowArray *array) {
    ck_error err = CK_ERROR_INIT;
    if (ck_arrow_export_schema(s, f, schema, &err) != CK_OK) fail_msg("%s", err.msg);
    if (ck_arrow_export_batch(b, s, f, array, &err) != CK_OK) fail_msg("%s", err.msg);
}

static void validate(struct ArrowSchema *schema, struct ArrowArray *array) {
    struct ArrowArrayView view;
    struct ArrowError why = {{0}};
    assert_int_equal(ArrowArrayViewInitFromSchema(&view, schema, &why), NANOARROW_OK);
    int code = ArrowArrayViewSetArray(&view, array, &why);
    if (code == NANOARROW_OK) code = ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &why);
    if (code != NANOARROW_OK) fail_msg("%s", why.message);
    ArrowArrayViewReset(&view);
}

static void random_batches_come_back(void **state) {
    sample *s = *state;
    for (int round = 0; round < 250; round++) {
        const ck_schema *schema = sample_schema(s, sample_below(s, 6), 3), *back = NULL;
        ck_batch *b = sample_batch(s, schema, sample_below(s, 80), sample_one_in(s, 2), false), *got = NULL;
        struct ArrowSchema as;
        struct ArrowArray aa;
        ck_error err = CK_ERROR_INIT;
        export_both(b, schema, round % 2 ? CK_ARROW_VIEW : CK_ARROW_PLAIN, &as, &aa);
        validate(&as, &aa);
        assert_int_equal(aa.length, b->sel_count);
        assert_int_equal(ck_arrow_import_schema(&s->arena, &as, &back, &err), CK_OK);
        for (uint32_t i = 0; i < schema->field_count; i++) {
            assert_string_equal(back->fields[i].name, schema->fields[i].name);
            assert_int_equal(back->fields[i].type->kind, schema->fields[i].type->kind);
            assert_int_equal(back->fields[i].nullable, schema->fields[i].nullable);
        }
        if (ck_arrow_import_batch(s->mem, &as, &aa, sample_one_in(s, 2) ? back : schema, 0, aa.length, &got, &err) !=
            CK_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(got->row_count, b->sel_count);
        for (uint32_t i = 0; i < schema->field_count; i++) {
            sample_check_column(got->columns[i]);
            for (uint32_t k = 0; k < b->sel_count; k++)
                assert_true(ck_column_rows_equal(got->columns[i], k, b->columns[i], ck_batch_row(b, k)));
        }
        as.release(&as);
        aa.release(&aa);
        ck_batch_unref(&b);
        ck_batch_unref(&got);
    }
}

static void pieces_and_offsets(void **state) {
    sample *s = *state;
    for (int round = 0; round < 60; round++) {
        const ck_schema *schema = sample_schema(s, 1 + sample_below(s, 4), 3);
        ck_batch *b = sample_batch(s, schema, 100, false, false);
        struct ArrowSchema as;
        struct ArrowArray aa;
        ck_error err = CK_ERROR_INIT;
        export_both(b, schema, round % 2 ? CK_ARROW_VIEW : CK_ARROW_PLAIN, &as, &aa);
        uint32_t root = sample_below(s, 20), inner = sample_below(s, 20); /* a slice of a slice */
        aa.offset = root, aa.length = 100 - root - inner;
        for (int64_t i = 0; i < aa.n_children; i++)
            aa.children[i]->offset = inner, aa.children[i]->length = 100 - inner;
        uint32_t step = 1 + sample_below(s, 30);
        for (uint32_t at = 0; at < aa.length; at += step) {
            uint32_t n = (uint32_t)aa.length - at < step ? (uint32_t)aa.length - at : step;
            ck_batch *got = NULL;
            if (ck_arrow_import_batch(s->mem, &as, &aa, schema, at, n, &got, &err) != CK_OK) fail_msg("%s", err.msg);
            for (uint32_t i = 0; i < schema->field_count; i++)
                for (uint32_t k = 0; k < n; k++)
                    assert_true(ck_column_rows_equal(got->columns[i], k, b->columns[i], root + inner + at + k));
            ck_batch_unref(&got);
        }
        as.release(&as);
        aa.release(&aa);
        ck_batch_unref(&b);
    }
}

static const ck_schema *one_field(sample *s, const char *name, const ck_type *t, bool nullable) {
    return ck_schema_copy(&s->arena, &(ck_schema){&(ck_field){name, t, nullable}, 1});
}

static void *release_array(void *arg) {
    struct ArrowArray *a = arg;
    a->release(a);
    return NULL;
}

static void arrays_outlive_the_batch(void **state) {
    sample *s = *state;
    const ck_schema *schema = sample_schema(s, 8, 2);
    ck_batch *b = sample_batch(s, schema, 50, false, false);
    struct ArrowArray first, second;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_PLAIN, &first, &err), CK_OK);
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_VIEW, &second, &err), CK_OK);
    ck_batch_unref(&b);
    assert_true(ck_tracked_heap_live_blocks(s->heap) > 0);
    struct ArrowArray child; /* a consumer may take a child and drop the rest */
    ArrowArrayMove(second.children[3], &child);
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, release_array, &first), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, release_array, &second), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_null(first.release);
    assert_int_equal(child.length, 50);
    child.release(&child);
    assert_int_equal(ck_tracked_heap_live_blocks(s->heap), 0);
}

static void sharing(void **state) {
    sample *s = *state;
    const ck_schema *schema = one_field(s, "a", ck_type_simple(CK_TYPE_BIGINT), true);
    ck_batch *b = sample_batch(s, schema, 50, false, false);
    struct ArrowArray array;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_PLAIN, &array, &err), CK_OK);
    assert_ptr_equal(array.children[0]->buffers[1], b->columns[0]->data);
    assert_ptr_equal(array.children[0]->buffers[0], b->columns[0]->validity);
    array.release(&array);
    ck_batch_unref(&b);
}

static void refused_exports(void **state) {
    sample *s = *state;
    const ck_schema *schema = one_field(s, "tiny", ck_type_simple(CK_TYPE_TINYINT), true);
    ck_batch *b = ck_batch_new(s->mem, 1, 3, false, false);
    struct ArrowArray array;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_PLAIN, &array, &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "tiny"));
    ck_column *c = ck_column_new(s->mem, CK_PHYS_I64, 3);
    c->i64[0] = 127, c->i64[1] = 128, c->i64[2] = -128;
    ck_batch_set_column(b, 0, &c);
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_PLAIN, &array, &err), CK_DATA);
    assert_non_null(strstr(err.msg, "tiny"));
    ck_bit_clear(ck_column_writable_validity(b->columns[0]), 1); /* no value, no range */
    assert_int_equal(ck_arrow_export_batch(b, schema, CK_ARROW_PLAIN, &array, &err), CK_OK);
    assert_int_equal(array.children[0]->null_count, 1);
    assert_int_equal(((const int8_t *)array.children[0]->buffers[1])[2], -128);
    array.release(&array);
    ck_batch_unref(&b);
}

static void all_null_columns_have_their_shape(void **state) {
    sample *s = *state;
    for (int round = 0; round < 60; round++) {
        const ck_schema *schema = one_field(s, "n", sample_type(s, 3), true);
        ck_batch *b = ck_batch_new(s->mem, 1, 5, false, false);
        ck_phys phys = round % 2 ? CK_PHYS_NULL : ck_type_phys(schema->fields[0].type);
        ck_column *c = ck_column_new_null(s->mem, phys, 5);
        ck_batch_set_column(b, 0, &c);
        struct ArrowSchema as;
        struct ArrowArray aa;
        export_both(b, schema, CK_ARROW_PLAIN, &as, &aa);
        validate(&as, &aa);
        assert_int_equal(aa.children[0]->null_count, 5);
        as.release(&as);
        aa.release(&aa);
        ck_batch_unref(&b);
    }
}

/* ---- arrays of others ---- */

typedef struct foreign {
    struct ArrowSchema schema;
    struct ArrowArray array;
} foreign;

static void open_foreign(foreign *f, enum ArrowType type, enum ArrowTimeUnit unit, int32_t size) {
    ArrowSchemaInit(&f->schema);
    assert_int_equal(ArrowSchemaSetTypeStruct(&f->schema, 1), NANOARROW_OK);
    struct ArrowSchema *c = f->schema.children[0];
    int code = NANOARROW_OK;
    if (type == NANOARROW_TYPE_TIMESTAMP || type == NANOARROW_TYPE_TIME32 || type == NANOARROW_TYPE_TIME64 ||
        type == NANOARROW_TYPE_DURATION)
        code = ArrowSchemaSetTypeDateTime(c, type, unit, NULL);
    else if (type == NANOARROW_TYPE_FIXED_SIZE_BINARY)
        code = ArrowSchemaSetTypeFixedSize(c, type, size);
    else if (type == NANOARROW_TYPE_DECIMAL32 || type == NANOARROW_TYPE_DECIMAL64 || type == NANOARROW_TYPE_DECIMAL128)
        code = ArrowSchemaSetTypeDecimal(c, type, 9, size);
    else
        code = ArrowSchemaSetType(c, type);
    assert_int_equal(code, NANOARROW_OK);
    assert_int_equal(ArrowSchemaSetName(c, "col"), NANOARROW_OK);
    assert_int_equal(ArrowArrayInitFromSchema(&f->array, &f->schema, NULL), NANOARROW_OK);
    assert_int_equal(ArrowArrayStartAppending(&f->array), NANOARROW_OK);
}
static void close_foreign(foreign *f) {
    f->schema.release(&f->schema);
    f->array.release(&f->array);
}

static ck_status import_foreign(sample *s, foreign *f, ck_batch **out, ck_error *err) {
    f->array.length = f->array.children[0]->length;
    assert_int_equal(ArrowArrayFinishBuildingDefault(&f->array, NULL), NANOARROW_OK);
    const ck_schema *schema = NULL;
    CK_TRY(ck_arrow_import_schema(&s->arena, &f->schema, &schema, err));
    return ck_arrow_import_batch(s->mem, &f->schema, &f->array, schema, 0, f->array.length, out, err);
}

static void integers_and_times_of_others(void **state) {
    sample *s = *state;
    static const struct {
        enum ArrowType type;
        enum ArrowTimeUnit unit;
        int64_t in, want;
    } cases[] = {
        {NANOARROW_TYPE_UINT8, 0, 255, 255},
        {NANOARROW_TYPE_UINT16, 0, 65535, 65535},
        {NANOARROW_TYPE_UINT32, 0, 4294967295, 4294967295},
        {NANOARROW_TYPE_INT8, 0, -128, -128},
        {NANOARROW_TYPE_DATE64, 0, -1, -1},
        {NANOARROW_TYPE_DATE64, 0, 86400000, 1},
        {NANOARROW_TYPE_TIME32, NANOARROW_TIME_UNIT_SECOND, 86399, 86399000000},
        {NANOARROW_TYPE_TIME32, NANOARROW_TIME_UNIT_MILLI, 1, 1000},
        {NANOARROW_TYPE_TIME64, NANOARROW_TIME_UNIT_NANO, 1999, 1},
        {NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_SECOND, -5, -5000000},
        {NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_MILLI, 1500, 1500000},
        {NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_MICRO, INT64_MIN, INT64_MIN},
        {NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_NANO, -1, -1},
        {NANOARROW_TYPE_DURATION, NANOARROW_TIME_UNIT_MILLI, -7, -7000},
        {NANOARROW_TYPE_INTERVAL_MONTHS, 0, 14, 14},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        foreign f;
        ck_batch *b = NULL;
        ck_error err = CK_ERROR_INIT;
        open_foreign(&f, cases[i].type, cases[i].unit, 0);
        if (cases[i].type == NANOARROW_TYPE_INTERVAL_MONTHS) {
            struct ArrowInterval months;
            ArrowIntervalInit(&months, NANOARROW_TYPE_INTERVAL_MONTHS);
            months.months = (int32_t)cases[i].in;
            assert_int_equal(ArrowArrayAppendInterval(f.array.children[0], &months), NANOARROW_OK);
        } else {
            assert_int_equal(ArrowArrayAppendInt(f.array.children[0], cases[i].in), NANOARROW_OK);
        }
        assert_int_equal(ArrowArrayAppendNull(f.array.children[0], 1), NANOARROW_OK);
        if (import_foreign(s, &f, &b, &err) != CK_OK) fail_msg("case %zu: %s", i, err.msg);
        assert_int_equal(b->columns[0]->i64[0], cases[i].want);
        assert_true(ck_column_is_null(b->columns[0], 1));
        ck_batch_unref(&b);
        close_foreign(&f);
    }
    static const struct {
        enum ArrowType type;
        enum ArrowTimeUnit unit;
        int64_t in;
    } beyond[] = {{NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_SECOND, INT64_MAX / 1000},
                  {NANOARROW_TYPE_TIME32, NANOARROW_TIME_UNIT_SECOND, 86400},
                  {NANOARROW_TYPE_TIME64, NANOARROW_TIME_UNIT_MICRO, -1}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(beyond); i++) {
        foreign f;
        ck_batch *b = NULL;
        ck_error err = CK_ERROR_INIT;
        open_foreign(&f, beyond[i].type, beyond[i].unit, 0);
        assert_int_equal(ArrowArrayAppendInt(f.array.children[0], beyond[i].in), NANOARROW_OK);
        assert_int_equal(import_foreign(s, &f, &b, &err), CK_DATA);
        assert_non_null(strstr(err.msg, "col"));
        close_foreign(&f);
    }
}

static void decimals_of_others(void **state) {
    sample *s = *state;
    static const enum ArrowType types[] = {NANOARROW_TYPE_DECIMAL32, NANOARROW_TYPE_DECIMAL64,
                                           NANOARROW_TYPE_DECIMAL128};
    static const int32_t bits[] = {32, 64, 128};
    for (size_t i = 0; i < CK_ARRAY_COUNT(types); i++) {
        foreign f;
        ck_batch *b = NULL;
        ck_error err = CK_ERROR_INIT;
        open_foreign(&f, types[i], 0, 2);
        struct ArrowDecimal d;
        ArrowDecimalInit(&d, bits[i], 9, 2);
        ArrowDecimalSetInt(&d, -12345);
        assert_int_equal(ArrowArrayAppendDecimal(f.array.children[0], &d), NANOARROW_OK);
        assert_int_equal(import_foreign(s, &f, &b, &err), CK_OK);
        assert_true(b->columns[0]->i128[0] == -12345);
        ck_batch_unref(&b);
        close_foreign(&f);
    }
    foreign f;
    ck_batch *b = NULL;
    ck_error err = CK_ERROR_INIT;
    open_foreign(&f, NANOARROW_TYPE_UINT64, 0, 0);
    assert_int_equal(ArrowArrayAppendUInt(f.array.children[0], UINT64_MAX), NANOARROW_OK);
    assert_int_equal(import_foreign(s, &f, &b, &err), CK_OK);
    assert_true(b->columns[0]->i128[0] == (ck_i128)UINT64_MAX);
    ck_batch_unref(&b);
    close_foreign(&f);
}

static void strings_of_others(void **state) {
    sample *s = *state;
    static const enum ArrowType types[] = {NANOARROW_TYPE_LARGE_STRING, NANOARROW_TYPE_LARGE_BINARY,
                                           NANOARROW_TYPE_STRING_VIEW, NANOARROW_TYPE_BINARY_VIEW,
                                           NANOARROW_TYPE_FIXED_SIZE_BINARY};
    static const char *const texts[] = {"sixteen bytes it", "another sixteen!"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(types); i++) {
        foreign f;
        ck_batch *b = NULL;
        ck_error err = CK_ERROR_INIT;
        open_foreign(&f, types[i], 0, 16);
        for (int k = 0; k < 2; k++) {
            struct ArrowBufferView bytes = {{texts[k]}, 16};
            assert_int_equal(ArrowArrayAppendBytes(f.array.children[0], bytes), NANOARROW_OK);
            assert_int_equal(ArrowArrayAppendNull(f.array.children[0], 1), NANOARROW_OK);
        }
        assert_int_equal(import_foreign(s, &f, &b, &err), CK_OK);
        assert_true(ck_view_is(ck_column_str(b->columns[0], 0), texts[0]));
        assert_true(ck_column_is_null(b->columns[0], 1));
        assert_true(ck_view_is(ck_column_str(b->columns[0], 2), texts[1]));
        ck_batch_unref(&b);
        close_foreign(&f);
    }
}

static void refused_imports(void **state) {
    sample *s = *state;
    static const enum ArrowType none[] = {NANOARROW_TYPE_HALF_FLOAT, NANOARROW_TYPE_INTERVAL_DAY_TIME};
    for (size_t i = 0; i < CK_ARRAY_COUNT(none); i++) {
        struct ArrowSchema as;
        const ck_schema *schema = NULL;
        ck_error err = CK_ERROR_INIT;
        ArrowSchemaInit(&as);
        assert_int_equal(ArrowSchemaSetTypeStruct(&as, 1), NANOARROW_OK);
        assert_int_equal(ArrowSchemaSetType(as.children[0], none[i]), NANOARROW_OK);
        assert_int_equal(ArrowSchemaSetName(as.children[0], "strange"), NANOARROW_OK);
        assert_int_equal(ck_arrow_import_schema(&s->arena, &as, &schema, &err), CK_INVALID);
        assert_non_null(strstr(err.msg, "strange"));
        assert_non_null(strstr(err.msg, ArrowTypeString(none[i])));
        assert_int_equal(ck_arrow_import_schema(&s->arena, as.children[0], &schema, &err), CK_INVALID);
        as.release(&as);
    }
    const ck_schema *loose = one_field(s, "a", ck_type_simple(CK_TYPE_BIGINT), true),
                    *strict = one_field(s, "a", ck_type_simple(CK_TYPE_BIGINT), false),
                    *other = one_field(s, "a", ck_type_simple(CK_TYPE_TIMESTAMP), true);
    ck_batch *b = ck_batch_new(s->mem, 1, 4, false, false), *got = NULL;
    ck_column *c = ck_column_new_null(s->mem, CK_PHYS_I64, 4);
    ck_batch_set_column(b, 0, &c);
    struct ArrowSchema as;
    struct ArrowArray aa;
    ck_error err = CK_ERROR_INIT;
    export_both(b, loose, CK_ARROW_PLAIN, &as, &aa);
    assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, strict, 0, 4, &got, &err), CK_DATA);
    assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, other, 0, 4, &got, &err), CK_INVALID);
    assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, loose, 1, 4, &got, &err), CK_INVALID);
    assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, loose, -1, 4, &got, &err), CK_INVALID);
    assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, loose, 0, CK_BATCH_ROWS_MAX + 1, &got, &err), CK_INVALID);
    as.release(&as);
    aa.release(&aa);
    ck_batch_unref(&b);
}

/* Offsets that point elsewhere are found before they are followed. */
static void damaged_offsets(void **state) {
    sample *s = *state;
    const ck_type *list = ck_type_array(&s->arena, ck_type_simple(CK_TYPE_BIGINT), true);
    const ck_schema *schemas[] = {one_field(s, "t", ck_type_simple(CK_TYPE_VARCHAR), false),
                                  one_field(s, "l", list, false)};
    static const int32_t wrong[] = {-1, 1 << 30, INT32_MIN, INT32_MAX};
    for (size_t k = 0; k < CK_ARRAY_COUNT(schemas); k++) {
        ck_batch *b = sample_batch(s, schemas[k], 20, false, false);
        struct ArrowSchema as;
        struct ArrowArray aa;
        export_both(b, schemas[k], CK_ARROW_PLAIN, &as, &aa);
        int32_t *offsets = (int32_t *)(uintptr_t)aa.children[0]->buffers[1];
        for (size_t i = 0; i < 20 * CK_ARRAY_COUNT(wrong); i++) {
            int32_t *at = &offsets[i / CK_ARRAY_COUNT(wrong)], was = *at;
            ck_batch *got = NULL;
            ck_error err = CK_ERROR_INIT;
            *at = wrong[i % CK_ARRAY_COUNT(wrong)];
            assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, schemas[k], 0, 20, &got, &err), CK_CORRUPT);
            *at = was;
        }
        as.release(&as);
        aa.release(&aa);
        ck_batch_unref(&b);
    }
    const ck_schema *text = schemas[0];
    ck_batch *b = ck_batch_new(s->mem, 1, 1, false, false);
    ck_column *c = ck_column_new(s->mem, CK_PHYS_VIEW, 1);
    ck_batch_set_column(b, 0, &c);
    const struct {
        int32_t length;
        uint32_t buffer, offset;
    } views[] = {{13, 0, 0}, {-5, 0, 0}, {20, 7, 0}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(views); i++) { /* there is no buffer at all */
        b->columns[0]->views[0] = ck_strview_ref("pref", 0, views[i].buffer, views[i].offset);
        b->columns[0]->views[0].length = views[i].length;
        struct ArrowSchema as;
        struct ArrowArray aa;
        ck_batch *got = NULL;
        ck_error err = CK_ERROR_INIT;
        export_both(b, text, CK_ARROW_VIEW, &as, &aa);
        assert_int_equal(ck_arrow_import_batch(s->mem, &as, &aa, text, 0, 1, &got, &err), CK_CORRUPT);
        as.release(&as);
        aa.release(&aa);
    }
    ck_batch_unref(&b);
}

static const ck_schema *sweep_schema;
static ck_batch *sweep_batch;
static ck_status out_and_in(sample *s) {
    for (int f = 0; f < 2; f++) {
        struct ArrowSchema as;
        struct ArrowArray aa;
        ck_batch *got = NULL;
        ck_error err = CK_ERROR_INIT;
        ck_arrow_flavour flavour = f ? CK_ARROW_VIEW : CK_ARROW_PLAIN;
        CK_TRY(ck_arrow_export_batch(sweep_batch, sweep_schema, flavour, &aa, &err));
        assert_int_equal(ck_arrow_export_schema(sweep_schema, flavour, &as, &err), CK_OK);
        ck_status status = ck_arrow_import_batch(s->mem, &as, &aa, sweep_schema, 0, aa.length, &got, &err);
        as.release(&as);
        aa.release(&aa);
        if (got) ck_batch_unref(&got);
        if (status != CK_OK) {
            assert_int_equal(status, CK_NOMEM);
            return status;
        }
    }
    return CK_OK;
}

static void no_memory(void **state) {
    sample *s = *state;
    sweep_schema = sample_schema(s, 6, 2);
    sweep_batch = sample_batch(s, sweep_schema, 30, true, false);
    sample_sweep(s, out_and_in);
    ck_batch_unref(&sweep_batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(random_batches_come_back),
        SAMPLE_TEST(pieces_and_offsets),
        SAMPLE_TEST(arrays_outlive_the_batch),
        SAMPLE_TEST(sharing),
        SAMPLE_TEST(refused_exports),
        SAMPLE_TEST(all_null_columns_have_their_shape),
        SAMPLE_TEST(integers_and_times_of_others),
        SAMPLE_TEST(decimals_of_others),
        SAMPLE_TEST(strings_of_others),
        SAMPLE_TEST(refused_imports),
        SAMPLE_TEST(damaged_offsets),
        SAMPLE_TEST(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
