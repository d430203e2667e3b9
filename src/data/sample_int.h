/* For this room's tests: an account that finds leaks, random types, values and batches from a seed, and the sweep over
 * failing allocations. */
#ifndef CK_DATA_SAMPLE_INT_H
#define CK_DATA_SAMPLE_INT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "data/builder.h"

typedef struct sample {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_mem mem;
    ck_arena arena; /* for types; on the system heap, so that its growth is not part of a sweep */
    ck_budget arena_budget;
    uint64_t seed;
} sample;

static inline int sample_setup(void **state) {
    sample *s = calloc(1, sizeof *s);
    if (!s || ck_tracked_heap_new(&s->heap) != CK_OK) return -1;
    ck_budget_init(&s->budget, ck_tracked_heap_base(s->heap), 0);
    ck_budget_init(&s->arena_budget, ck_heap_system(), 0);
    s->mem = (ck_mem){&s->budget, CK_MEM_QUEUE};
    ck_arena_init(&s->arena, (ck_mem){&s->arena_budget, CK_MEM_PLAN}, 64 << 20);
    s->seed = 0x5eed;
    *state = s;
    return 0;
}

/* Fails the test when a block is left, or when the account does not say zero. */
static inline int sample_teardown(void **state) {
    sample *s = *state;
    size_t blocks = ck_tracked_heap_live_blocks(s->heap), bytes = ck_budget_total(&s->budget);
    if (blocks || bytes) fprintf(stderr, "left: %zu blocks, %zu bytes in the account\n", blocks, bytes);
    ck_arena_destroy(&s->arena);
    ck_tracked_heap_free(s->heap);
    free(s);
    return blocks || bytes ? -1 : 0;
}

#define SAMPLE_TEST(fn) cmocka_unit_test_setup_teardown(fn, sample_setup, sample_teardown)

/* Runs the case with its 1st, 2nd, ... allocation failing until it gets through. The case frees what it made. */
static inline void sample_sweep(sample *s, ck_status (*run)(sample *s)) {
    for (uint64_t n = 1; n < 100000; n++) {
        size_t before = ck_tracked_heap_live_blocks(s->heap);
        ck_tracked_heap_fail_nth(s->heap, n);
        ck_status status = run(s);
        bool fired = ck_tracked_heap_fired(s->heap);
        ck_tracked_heap_fail_nth(s->heap, 0);
        assert_int_equal(ck_tracked_heap_live_blocks(s->heap), before);
        if (!fired) {
            assert_int_equal(status, CK_OK);
            return;
        }
    }
    fail_msg("a sweep without end");
}

/* ---- random ---- */

static inline uint64_t sample_u64(sample *s) { return ck_mix64(s->seed += 0x9E3779B97F4A7C15ULL); }
static inline uint32_t sample_below(sample *s, uint32_t n) { return (uint32_t)(sample_u64(s) % n); }
static inline bool sample_one_in(sample *s, uint32_t n) { return sample_below(s, n) == 0; }

static inline const ck_type *sample_type(sample *s, unsigned depth) {
    uint32_t k = sample_below(s, depth ? CK_TYPE_COUNT : CK_TYPE_ARRAY);
    ck_arena *a = &s->arena;
    switch ((ck_kind)k) {
    case CK_TYPE_DECIMAL: {
        int precision = 1 + (int)sample_below(s, 38);
        return ck_type_decimal(a, precision, (int)sample_below(s, (uint32_t)precision + 1));
    }
    case CK_TYPE_TIME:
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return ck_type_with_precision(a, (ck_kind)k, (int)sample_below(s, 7));
    case CK_TYPE_ARRAY: return ck_type_array(a, sample_type(s, depth - 1), sample_one_in(s, 2));
    case CK_TYPE_MAP: {
        const ck_type *key = sample_type(s, depth - 1);
        if (key->kind == CK_TYPE_NULL) key = ck_type_simple(CK_TYPE_VARCHAR);
        return ck_type_map(a, key, sample_type(s, depth - 1), sample_one_in(s, 2));
    }
    case CK_TYPE_ROW: {
        static const char *const names[] = {"a", "b c", "d\"e", "NOT", "f"};
        ck_field fields[5];
        uint32_t n = sample_below(s, 5);
        for (uint32_t i = 0; i < n; i++)
            fields[i] = (ck_field){names[i], sample_type(s, depth - 1), sample_one_in(s, 2)};
        return ck_type_row(a, fields, n);
    }
    default: return ck_type_simple((ck_kind)k);
    }
}

static inline int64_t sample_between(sample *s, int64_t lo, int64_t hi) {
    uint64_t span = (uint64_t)hi - (uint64_t)lo;
    switch (sample_below(s, 6)) {
    case 0: return lo;
    case 1: return hi;
    case 2:
        if (lo <= 0 && hi >= 3) return (int64_t)sample_below(s, 3); /* repeated small ones */
        /* fall through */
    default: return (int64_t)((uint64_t)lo + (span == UINT64_MAX ? sample_u64(s) : sample_u64(s) % (span + 1)));
    }
}

static inline int64_t sample_i64(sample *s, ck_kind kind) {
    const int64_t day_lo = -719162, day_hi = 2932896, day_us = 86400000000; /* 0001-01-01 .. 9999-12-31 */
    switch (kind) {
    case CK_TYPE_TINYINT: return sample_between(s, INT8_MIN, INT8_MAX);
    case CK_TYPE_SMALLINT: return sample_between(s, INT16_MIN, INT16_MAX);
    case CK_TYPE_INTEGER:
    case CK_TYPE_INTERVAL_MONTH: return sample_between(s, INT32_MIN, INT32_MAX);
    case CK_TYPE_DATE: return sample_between(s, day_lo, day_hi);
    case CK_TYPE_TIME: return sample_between(s, 0, day_us - 1);
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return sample_between(s, day_lo * day_us, day_hi * day_us + day_us - 1);
    default: return sample_between(s, INT64_MIN, INT64_MAX);
    }
}

static inline double sample_f64(sample *s) {
    static const double special[] = {0.0, -0.0, 1.0,  -1.0,   1.0 / 0.0,    -1.0 / 0.0,
                                     0.1, 1e21, 1e-7, 5e-324, 1.7976931e308};
    double d;
    uint64_t bits = sample_u64(s);
    switch (sample_below(s, 4)) {
    case 0: return special[sample_below(s, CK_ARRAY_COUNT(special))];
    case 1: return (double)(int64_t)(bits % 2000001) / 100 - 10000;
    case 2:
        if (sample_one_in(s, 4)) bits = 0x7ff8000000000000ULL | (bits & 0x8000000000000fffULL); /* some NaN */
        /* fall through */
    default: memcpy(&d, &bits, sizeof d); return d;
    }
}

static inline ck_i128 sample_decimal(sample *s, int precision) {
    ck_u128 limit = 1;
    for (int i = 0; i < precision; i++) limit *= 10;
    ck_u128 v = ((ck_u128)sample_u64(s) << 64 | sample_u64(s)) % limit;
    if (sample_one_in(s, 4)) v %= 1000;
    if (sample_one_in(s, 8)) v = limit - 1;
    return sample_one_in(s, 2) ? -(ck_i128)v : (ck_i128)v;
}

/* A string of 0 .. 60 bytes, around the inline length more often; VARCHAR is UTF-8, both have NULs. */
static inline size_t sample_str(sample *s, ck_kind kind, char *p) {
    static const char *const pieces[] = {"a", "b", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "zz", "a"};
    size_t want = sample_below(s, 3) ? sample_below(s, 16) : sample_below(s, 60), n = 0;
    while (n < want) {
        if (kind == CK_TYPE_BYTES) {
            p[n++] = (char)(unsigned char)(sample_one_in(s, 3) ? 0xff * sample_below(s, 2) : sample_below(s, 256));
        } else if (sample_one_in(s, 8)) {
            p[n++] = 0;
        } else {
            const char *piece = pieces[sample_below(s, CK_ARRAY_COUNT(pieces))];
            memcpy(p + n, piece, strlen(piece));
            n += strlen(piece);
        }
    }
    return n;
}

/* Appends one random value of b's type. phys tells a MAP from the structs inside it. */
static inline void sample_value(sample *s, ck_column_builder *b, bool nullable) {
    const ck_type *t = b->type;
    if (t->kind == CK_TYPE_NULL || (nullable && sample_one_in(s, 5))) {
        assert_int_equal(ck_build_null(b), CK_OK);
        return;
    }
    ck_status status = CK_INVALID;
    char text[80];
    switch (b->phys) {
    case CK_PHYS_NULL: break;
    case CK_PHYS_BOOL: status = ck_build_bool(b, sample_one_in(s, 2)); break;
    case CK_PHYS_I64: status = ck_build_i64(b, sample_i64(s, t->kind)); break;
    case CK_PHYS_F64: {
        double d = sample_f64(s);
        status = ck_build_f64(b, t->kind == CK_TYPE_REAL ? (double)(float)d : d);
        break;
    }
    case CK_PHYS_I128: status = ck_build_i128(b, sample_decimal(s, t->precision)); break;
    case CK_PHYS_VIEW: status = ck_build_str(b, text, sample_str(s, t->kind, text)); break;
    case CK_PHYS_LIST: {
        uint32_t n = sample_below(s, 4);
        bool elem_nullable = t->kind == CK_TYPE_ARRAY && t->fields[0].nullable;
        while (n--) sample_value(s, &b->children[0], elem_nullable);
        status = ck_build_end(b);
        break;
    }
    case CK_PHYS_STRUCT:
        for (uint32_t i = 0; i < b->child_count; i++) sample_value(s, &b->children[i], t->fields[i].nullable);
        status = ck_build_end(b);
        break;
    }
    assert_int_equal(status, CK_OK);
}

/* What stands at a NULL is unspecified: put anything there, so that code which looks at it is found out. */
static inline void sample_scramble(sample *s, ck_column *c) {
    for (uint32_t i = 0; c->validity && i < c->length; i++) {
        if (ck_bit_get(c->validity, i)) continue;
        uint64_t junk[2] = {sample_u64(s), sample_u64(s)};
        if (c->phys == CK_PHYS_BOOL) ck_bit_put(c->bits, i, junk[0] & 1);
        if (c->phys == CK_PHYS_I64 || c->phys == CK_PHYS_F64) memcpy(&c->i64[i], junk, 8);
        if (c->phys == CK_PHYS_I128 || c->phys == CK_PHYS_VIEW) memcpy(&c->i128[i], junk, 16);
    }
    for (uint32_t i = 0; i < c->child_count; i++) sample_scramble(s, c->children[i]);
}

static inline ck_column *sample_column(sample *s, const ck_type *t, bool nullable, uint32_t n) {
    ck_column_builder b;
    assert_int_equal(ck_column_builder_init(&b, s->mem, t, n), CK_OK);
    for (uint32_t i = 0; i < n; i++) sample_value(s, &b, nullable);
    ck_column *c = ck_column_builder_finish(&b);
    assert_non_null(c);
    ck_column_builder_destroy(&b);
    sample_scramble(s, c);
    return c;
}

static inline const ck_schema *sample_schema(sample *s, uint32_t count, unsigned depth) {
    ck_schema *schema = CK_ARENA_NEW(&s->arena, ck_schema);
    ck_field *fields = ck_arena_array(&s->arena, count ? count : 1, sizeof *fields);
    for (uint32_t i = 0; i < count; i++)
        fields[i] = (ck_field){ck_arena_printf(&s->arena, "c%u", i), sample_type(s, depth), sample_one_in(s, 2)};
    *schema = (ck_schema){fields, count};
    return schema;
}

/* Random ascending rows of 0 .. n - 1, about one in `one_in`. */
static inline uint32_t sample_rows(sample *s, uint16_t *rows, uint32_t n, uint32_t one_in) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (sample_one_in(s, one_in)) rows[count++] = (uint16_t)i;
    return count;
}

static inline ck_batch *sample_batch(sample *s, const ck_schema *schema, uint32_t rows, bool sel, bool weights) {
    ck_batch *b = ck_batch_new(s->mem, schema->field_count, rows, sel, weights);
    assert_non_null(b);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        ck_column *c = sample_column(s, schema->fields[i].type, schema->fields[i].nullable, rows);
        ck_batch_set_column(b, i, &c);
    }
    if (sel) b->sel_count = sample_rows(s, b->sel, rows, 3);
    for (uint32_t i = 0; weights && i < rows; i++) b->weights[i] = sample_one_in(s, 2) ? 1 : -1;
    return b;
}

/* Everything a column promises about itself: what a broken kernel would leave behind. */
static inline void sample_check_column(const ck_column *c) {
    assert_true(((uintptr_t)c->data & 63) == 0);
    for (uint32_t i = 0; i < c->length; i++) {
        if (ck_column_is_null(c, i)) continue;
        if (c->phys == CK_PHYS_VIEW) {
            const ck_strview *v = &c->views[i];
            assert_true(v->length >= 0);
            if (v->length <= CK_STRVIEW_INLINE) {
                for (int k = v->length; k < CK_STRVIEW_INLINE; k++) assert_int_equal(v->inlined[k], 0);
            } else {
                assert_true(v->ref.buffer >= 0 && (uint32_t)v->ref.buffer < c->heaps->count);
                assert_true((size_t)v->ref.offset + (size_t)v->length <= c->heaps->buffers[v->ref.buffer]->bytes);
                assert_memory_equal(v->ref.prefix, ck_column_str(c, i).p, 4);
            }
        }
        if (c->phys == CK_PHYS_LIST) assert_true(c->offsets[i] <= c->offsets[i + 1]);
    }
    if (c->phys == CK_PHYS_LIST && c->child_count) {
        assert_int_equal(c->offsets[0], 0);
        assert_int_equal(c->children[0]->length, c->offsets[c->length]);
    }
    for (uint32_t i = 0; i < c->child_count; i++) {
        if (c->phys == CK_PHYS_STRUCT) assert_int_equal(c->children[i]->length, c->length);
        sample_check_column(c->children[i]);
    }
}

#endif
