/* For this room's tests: slots of many shapes, random keys and values, and a model of the state as a map from stored
 * keys to packed values, made with the encoders of data/ (so that the ones here are held against them). */
#ifndef CK_STATE_MODEL_INT_H
#define CK_STATE_MODEL_INT_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "data/row.h"
#include "state/mark.h"
#include "state/operator_rows.h"
#include "stream/key_groups.h"

/* ---- a map of bytes ---- */

typedef struct model_entry {
    char *key, *value;
    size_t key_n, value_n;
} model_entry;

typedef struct model { /* sorted by key */
    model_entry *e;
    size_t n, capacity;
} model;

static inline size_t model_lower(const model *m, ck_view key) {
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (ck_view_cmp((ck_view){m->e[mid].key, m->e[mid].key_n}, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
static inline bool model_at(const model *m, size_t i, ck_view key) {
    return i < m->n && ck_view_eq((ck_view){m->e[i].key, m->e[i].key_n}, key);
}
static inline char *model_copy(ck_view v) {
    char *p = malloc(v.n + 1);
    if (v.n) memcpy(p, v.p, v.n);
    return p;
}
static inline void model_put(model *m, ck_view key, ck_view value) {
    size_t i = model_lower(m, key);
    if (model_at(m, i, key)) {
        free(m->e[i].value);
    } else {
        if (m->n == m->capacity) {
            m->capacity = m->capacity ? m->capacity * 2 : 64;
            m->e = realloc(m->e, m->capacity * sizeof *m->e);
        }
        memmove(m->e + i + 1, m->e + i, (m->n - i) * sizeof *m->e);
        m->n++;
        m->e[i].key = model_copy(key), m->e[i].key_n = key.n;
    }
    m->e[i].value = model_copy(value), m->e[i].value_n = value.n;
}
static inline bool model_has(const model *m, ck_view key) { return model_at(m, model_lower(m, key), key); }
static inline void model_erase(model *m, ck_view key) {
    size_t i = model_lower(m, key);
    if (!model_at(m, i, key)) return;
    free(m->e[i].key);
    free(m->e[i].value);
    m->n--;
    memmove(m->e + i, m->e + i + 1, (m->n - i) * sizeof *m->e);
}
static inline void model_clear(model *m) {
    for (size_t i = 0; i < m->n; i++) free(m->e[i].key), free(m->e[i].value);
    free(m->e);
    *m = (model){0};
}
static inline model model_clone(const model *m) {
    model c = {0};
    c.n = c.capacity = m->n;
    c.e = malloc((m->n + 1) * sizeof *c.e);
    for (size_t i = 0; i < m->n; i++) {
        const model_entry *e = &m->e[i];
        c.e[i] = (model_entry){model_copy((ck_view){e->key, e->key_n}), model_copy((ck_view){e->value, e->value_n}),
                               e->key_n, e->value_n};
    }
    return c;
}
static inline void model_assert_equal(const model *got, const model *want) {
    for (size_t i = 0; i < got->n && i < want->n; i++) {
        const model_entry *a = &got->e[i], *b = &want->e[i];
        if (!ck_view_eq((ck_view){a->key, a->key_n}, (ck_view){b->key, b->key_n}))
            fail_msg("key %zu differs: \"%.*s\" and \"%.*s\"", i, (int)a->key_n, a->key, (int)b->key_n, b->key);
        if (!ck_view_eq((ck_view){a->value, a->value_n}, (ck_view){b->value, b->value_n}))
            fail_msg("value of \"%.*s\" differs (%zu and %zu bytes)", (int)a->key_n, a->key, a->value_n, b->value_n);
    }
    assert_int_equal(got->n, want->n);
}

/* ---- randomness ---- */

static inline uint64_t model_random(uint64_t *seed) { return *seed = ck_mix64(*seed + 0x9E3779B97F4A7C15ULL); }
static inline uint64_t model_below(uint64_t *seed, uint64_t n) { return model_random(seed) % n; }

/* A value of a small domain, so that keys come again. */
static inline void model_build(ck_column_builder *b, const ck_field *f, uint64_t domain, uint64_t *seed) {
    uint64_t v = model_below(seed, domain);
    if (f->nullable && v % 7 == 3) {
        assert_int_equal(ck_build_null(b), CK_OK);
        return;
    }
    char text[400];
    int n;
    ck_status s = CK_OK;
    switch (ck_type_phys(f->type)) {
    case CK_PHYS_NULL: s = ck_build_null(b); break;
    case CK_PHYS_BOOL: s = ck_build_bool(b, v & 1); break;
    case CK_PHYS_I64: s = ck_build_i64(b, (int64_t)v - (int64_t)(domain / 2)); break;
    case CK_PHYS_F64:
        s = ck_build_f64(b, v % 5 == 0 ? -0.0 : v % 11 == 0 ? __builtin_nan("") : (double)v / 4 - 3);
        break;
    case CK_PHYS_I128: s = ck_build_i128(b, ((ck_i128)v - (ck_i128)domain / 2) * (v % 3 ? 100 : 1)); break;
    case CK_PHYS_VIEW: /* lengths around the 12 bytes held in place, some long, some with zero bytes */
        n = snprintf(text, sizeof text, "%0*llu", (int)(v % 31), (unsigned long long)v);
        if (v % 13 == 0) n = snprintf(text, sizeof text, "%0300llu", (unsigned long long)v);
        if (v % 17 == 0 && n > 3) text[1] = 0;
        s = ck_build_str(b, text, (size_t)n);
        break;
    case CK_PHYS_LIST:
        for (uint64_t i = 0; i < v % 4; i++) model_build(&b->children[0], &f->type->fields[0], domain, seed);
        s = ck_build_end(b);
        break;
    case CK_PHYS_STRUCT:
        for (uint32_t i = 0; i < f->type->field_count; i++)
            model_build(&b->children[i], &f->type->fields[i], domain, seed);
        s = ck_build_end(b);
        break;
    }
    assert_int_equal(s, CK_OK);
}

/* Rows of the slot's partition, order and value columns. */
static inline ck_batch *model_batch(ck_mem mem, const ck_slot_schema *s, uint32_t rows, uint64_t domain,
                                    uint64_t *seed) {
    uint32_t n = s->partition_count + s->order_count + s->value_count;
    ck_batch *b = ck_batch_new(mem, n, rows, false, false);
    assert_non_null(b);
    for (uint32_t i = 0; i < n; i++) {
        const ck_field *f = i < s->partition_count ? &s->partition[i]
                            : i < s->partition_count + s->order_count
                                ? &s->order[i - s->partition_count].field
                                : &s->values[i - s->partition_count - s->order_count];
        ck_column_builder cb;
        assert_int_equal(ck_column_builder_init(&cb, mem, f->type, rows ? rows : 1), CK_OK);
        for (uint32_t r = 0; r < rows; r++) model_build(&cb, f, domain, seed);
        ck_column *c = ck_column_builder_finish(&cb);
        assert_non_null(c);
        ck_batch_set_column(b, i, &c);
        ck_column_builder_destroy(&cb);
    }
    return b;
}

/* ---- stored bytes by the encoders of data/ ---- */

static inline void model_user_key(const ck_slot_schema *s, const ck_batch *b, uint32_t row, ck_bytes *out) {
    uint32_t columns[8];
    const ck_type *types[8];
    for (uint32_t i = 0; i < s->partition_count; i++) columns[i] = i, types[i] = s->partition[i].type;
    const ck_key_spec spec = {columns, types, s->partition_count};
    assert_int_equal(ck_key_encode(&spec, b, row, out), CK_OK);
}

static inline void model_order_key(const ck_slot_schema *s, const ck_batch *b, uint32_t row, ck_bytes *out) {
    ck_order_spec spec[8];
    for (uint32_t i = 0; i < s->order_count; i++) {
        const ck_order_field *o = &s->order[i];
        spec[i] =
            (ck_order_spec){s->partition_count + i, o->field.type, o->field.nullable, o->descending, o->nulls_first};
    }
    assert_int_equal(ck_order_encode(spec, s->order_count, b, row, out), CK_OK);
}

static inline void model_key(const ck_slot_schema *s, uint32_t groups, const ck_batch *b, uint32_t row, ck_bytes *out,
                             ck_mem mem) {
    ck_bytes user;
    ck_bytes_init(&user, mem, SIZE_MAX);
    model_user_key(s, b, row, &user);
    uint32_t group = ck_key_group_for_key(ck_bytes_as_view(&user), groups);
    ck_status st = groups <= 128 ? ck_bytes_char(out, (char)group) : ck_bytes_u16be(out, (uint16_t)group);
    if (st == CK_OK) st = ck_bytes_str(out, s->slot);
    if (st == CK_OK) st = ck_bytes_char(out, '|');
    if (st == CK_OK && s->order_count) st = ck_bytes_u32be(out, (uint32_t)user.n);
    if (st == CK_OK) st = ck_bytes_view(out, ck_bytes_as_view(&user));
    assert_int_equal(st, CK_OK);
    if (s->order_count) model_order_key(s, b, row, out);
    ck_bytes_destroy(&user);
}

static inline void model_value(const ck_slot_schema *s, const ck_batch *b, uint32_t row, ck_bytes *out) {
    const ck_column *cols[8];
    for (uint32_t i = 0; i < s->value_count; i++) cols[i] = b->columns[s->partition_count + s->order_count + i];
    assert_int_equal(ck_row_encode(s->values, s->value_count, cols, row, out), CK_OK);
}

/* ---- the slots ---- */

enum { MODEL_SLOTS = 14 };

#define FIELD(n, t, nullable)                                                                                          \
    (ck_field) { n, t, nullable }
static inline const ck_slot_schema *model_slots(ck_arena *a) {
    const ck_type *i64 = ck_type_simple(CK_TYPE_BIGINT), *str = ck_type_simple(CK_TYPE_VARCHAR);
    const ck_type *f64 = ck_type_simple(CK_TYPE_DOUBLE), *boolean = ck_type_simple(CK_TYPE_BOOLEAN);
    const ck_type *dec = ck_type_decimal(a, 20, 4), *bytes = ck_type_simple(CK_TYPE_BYTES);
    const ck_type *list = ck_type_array(a, str, true), *ts = ck_type_simple(CK_TYPE_TIMESTAMP);
    const ck_field pair[] = {{"a", i64, true}, {"b", str, false}};
    const ck_type *row = ck_type_row(a, pair, 2);
    ck_slot_schema *s = ck_arena_array(a, MODEL_SLOTS, sizeof *s);
    ck_field *f = ck_arena_array(a, 64, sizeof *f);
    ck_order_field *o = ck_arena_array(a, 16, sizeof *o);
    assert_true(s && f && o && dec && list && row);
    uint32_t fn = 0, on = 0, k = 0;
#define PART(...)                                                                                                      \
    do {                                                                                                               \
        const ck_field list_[] = {__VA_ARGS__};                                                                        \
        s[k].partition = f + fn, s[k].partition_count = CK_ARRAY_COUNT(list_);                                         \
        memcpy(f + fn, list_, sizeof list_), fn += (uint32_t)CK_ARRAY_COUNT(list_);                                    \
    } while (0)
#define VALUES(...)                                                                                                    \
    do {                                                                                                               \
        const ck_field list_[] = {__VA_ARGS__};                                                                        \
        s[k].values = f + fn, s[k].value_count = CK_ARRAY_COUNT(list_);                                                \
        memcpy(f + fn, list_, sizeof list_), fn += (uint32_t)CK_ARRAY_COUNT(list_);                                    \
    } while (0)
#define ORDER(field_, desc, first)                                                                                     \
    do {                                                                                                               \
        if (!s[k].order_count) s[k].order = o + on;                                                                    \
        o[on++] = (ck_order_field){field_, desc, first}, s[k].order_count++;                                           \
    } while (0)
#define NEXT(name, type_) s[k].slot = name, s[k].state_type = type_, s[k].version = 1, s[k].mode = CK_SLOT_KEYED, k++
    PART(FIELD("k", i64, false));
    VALUES(FIELD("sum", i64, false), FIELD("count", i64, false));
    NEXT("agg", "group_agg");
    PART(FIELD("k", i64, true));
    VALUES(FIELD("min", i64, true), FIELD("x", f64, true), FIELD("flag", boolean, false));
    NEXT("nullable", "group_agg");
    PART(FIELD("k", str, true));
    VALUES(FIELD("last", str, true), FIELD("n", i64, false), FIELD("name", str, false));
    NEXT("text", "text");
    PART(FIELD("a", i64, false), FIELD("b", i64, true));
    VALUES(FIELD("v", dec, true));
    NEXT("pair", "pair");
    PART(FIELD("d", dec, true), FIELD("x", f64, false), FIELD("t", boolean, true), FIELD("s", str, false));
    VALUES(FIELD("l", list, true), FIELD("r", row, false), FIELD("y", bytes, true));
    NEXT("any", "any");
    PART(FIELD("b", bytes, true));
    NEXT("bytes", "set");
    PART(FIELD("k", i64, false));
    ORDER(FIELD("v", str, true), false, true);
    s[k].hashed = true;
    NEXT("distinct:v", "distinct");
    PART(FIELD("k", i64, false));
    ORDER(FIELD("ts", ts, false), false, false);
    VALUES(FIELD("payload", str, true));
    NEXT("by_time", "rows");
    PART(FIELD("k", str, true));
    ORDER(FIELD("s", str, true), true, false);
    ORDER(FIELD("d", dec, true), false, true);
    ORDER(FIELD("x", f64, false), true, true);
    VALUES(FIELD("n", i64, true));
    NEXT("by_many", "rows");
    PART(FIELD("k", str, false));
    ORDER(FIELD("slice_end", ts, false), false, false);
    ORDER(FIELD("h", i64, true), false, true);
    VALUES(FIELD("count", i64, false), FIELD("max", str, true));
    s[k].bucketed = true;
    NEXT("slices", "window");
    VALUES(FIELD("n", i64, false));
    NEXT("global", "global");
    PART(FIELD("k", str, false));
    VALUES(FIELD("n", i64, false), FIELD("seen", boolean, false), FIELD("d", dec, false));
    NEXT("plain_text", "agg");
    PART(FIELD("k", i64, true));
    ORDER(FIELD("#", i64, false), false, false);
    VALUES(FIELD("name", str, true), FIELD("n", i64, false));
    s[k].listed = true;
    NEXT("numbered", "join_side");
    PART(FIELD("k", str, false), FIELD("d", dec, true));
    ORDER(FIELD("v", str, true), false, true);
    ORDER(FIELD("x", f64, true), false, false);
    VALUES(FIELD("count", i64, false));
    s[k].listed = s[k].hashed = true;
    NEXT("counted", "join_side");
    assert_int_equal(k, MODEL_SLOTS);
    return s;
}

#endif
