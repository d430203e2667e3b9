/* See type.h. The table of kinds, constructors, comparison. Printing and parsing are in type_text.c. */
#include "data/type.h"

#include <string.h>

#define SIMPLE(k)     [k] = {.kind = k}
#define TIMELIKE(k)   [k] = {.kind = k, .precision = 6}
#define NOT_SIMPLE(k) [k] = {.kind = CK_TYPE_COUNT}

const ck_type *ck_type_simple(ck_kind kind) {
    static const ck_type types[CK_TYPE_COUNT] = {
        SIMPLE(CK_TYPE_NULL),           SIMPLE(CK_TYPE_BOOLEAN),     SIMPLE(CK_TYPE_TINYINT),
        SIMPLE(CK_TYPE_SMALLINT),       SIMPLE(CK_TYPE_INTEGER),     SIMPLE(CK_TYPE_BIGINT),
        SIMPLE(CK_TYPE_REAL),           SIMPLE(CK_TYPE_DOUBLE),      NOT_SIMPLE(CK_TYPE_DECIMAL),
        SIMPLE(CK_TYPE_VARCHAR),        SIMPLE(CK_TYPE_BYTES),       SIMPLE(CK_TYPE_DATE),
        TIMELIKE(CK_TYPE_TIME),         TIMELIKE(CK_TYPE_TIMESTAMP), TIMELIKE(CK_TYPE_TIMESTAMP_LTZ),
        SIMPLE(CK_TYPE_INTERVAL_MONTH), SIMPLE(CK_TYPE_INTERVAL_US), NOT_SIMPLE(CK_TYPE_ARRAY),
        NOT_SIMPLE(CK_TYPE_MAP),        NOT_SIMPLE(CK_TYPE_ROW),
    };
    CK_ASSERT((unsigned)kind < CK_TYPE_COUNT && types[kind].kind == kind);
    return &types[kind];
}

ck_phys ck_type_phys(const ck_type *t) {
    static const uint8_t phys[CK_TYPE_COUNT] = {
        [CK_TYPE_NULL] = CK_PHYS_NULL,         [CK_TYPE_BOOLEAN] = CK_PHYS_BOOL,
        [CK_TYPE_TINYINT] = CK_PHYS_I64,       [CK_TYPE_SMALLINT] = CK_PHYS_I64,
        [CK_TYPE_INTEGER] = CK_PHYS_I64,       [CK_TYPE_BIGINT] = CK_PHYS_I64,
        [CK_TYPE_REAL] = CK_PHYS_F64,          [CK_TYPE_DOUBLE] = CK_PHYS_F64,
        [CK_TYPE_DECIMAL] = CK_PHYS_I128,      [CK_TYPE_VARCHAR] = CK_PHYS_VIEW,
        [CK_TYPE_BYTES] = CK_PHYS_VIEW,        [CK_TYPE_DATE] = CK_PHYS_I64,
        [CK_TYPE_TIME] = CK_PHYS_I64,          [CK_TYPE_TIMESTAMP] = CK_PHYS_I64,
        [CK_TYPE_TIMESTAMP_LTZ] = CK_PHYS_I64, [CK_TYPE_INTERVAL_MONTH] = CK_PHYS_I64,
        [CK_TYPE_INTERVAL_US] = CK_PHYS_I64,   [CK_TYPE_ARRAY] = CK_PHYS_LIST,
        [CK_TYPE_MAP] = CK_PHYS_LIST,          [CK_TYPE_ROW] = CK_PHYS_STRUCT,
    };
    CK_ASSERT((unsigned)t->kind < CK_TYPE_COUNT);
    return (ck_phys)phys[t->kind];
}

void ck_kind_int_range(ck_kind k, int64_t *lo, int64_t *hi) {
    switch (k) {
    case CK_TYPE_TINYINT: *lo = INT8_MIN, *hi = INT8_MAX; return;
    case CK_TYPE_SMALLINT: *lo = INT16_MIN, *hi = INT16_MAX; return;
    case CK_TYPE_INTEGER: *lo = INT32_MIN, *hi = INT32_MAX; return;
    default: CK_ASSERT(k == CK_TYPE_BIGINT); *lo = INT64_MIN, *hi = INT64_MAX;
    }
}

/* ---- constructors ---- */

static ck_type *new_type(ck_arena *a, ck_kind kind, uint32_t field_count, ck_field **fields) {
    ck_type *t = CK_ARENA_NEW(a, ck_type);
    ck_field *f = field_count ? ck_arena_array(a, field_count, sizeof *f) : NULL;
    if (!t || (field_count && !f)) return NULL;
    *t = (ck_type){.kind = kind, .fields = f, .field_count = field_count};
    *fields = f;
    return t;
}

const ck_type *ck_type_decimal(ck_arena *a, int precision, int scale) {
    ck_type *t = CK_ARENA_NEW(a, ck_type);
    if (t) *t = (ck_type){.kind = CK_TYPE_DECIMAL, .precision = precision, .scale = scale};
    return t;
}

const ck_type *ck_type_with_precision(ck_arena *a, ck_kind kind, int precision) {
    const ck_type *simple = ck_type_simple(kind);
    if (simple->precision == precision) return simple;
    ck_type *t = CK_ARENA_NEW(a, ck_type);
    if (t) *t = (ck_type){.kind = kind, .precision = precision};
    return t;
}

const ck_type *ck_type_array(ck_arena *a, const ck_type *elem, bool elem_nullable) {
    ck_field *f;
    ck_type *t = new_type(a, CK_TYPE_ARRAY, 1, &f);
    if (t) f[0] = (ck_field){"element", elem, elem_nullable};
    return t;
}

const ck_type *ck_type_map(ck_arena *a, const ck_type *key, const ck_type *value, bool value_nullable) {
    ck_field *f;
    ck_type *t = new_type(a, CK_TYPE_MAP, 2, &f);
    if (!t) return NULL;
    f[0] = (ck_field){"key", key, false};
    f[1] = (ck_field){"value", value, value_nullable};
    return t;
}

const ck_type *ck_type_row(ck_arena *a, const ck_field *fields, uint32_t field_count) {
    ck_field *f;
    ck_type *t = new_type(a, CK_TYPE_ROW, field_count, &f);
    if (t && field_count) memcpy(f, fields, field_count * sizeof *f);
    return t;
}

static bool copy_fields(ck_arena *a, ck_field *to, const ck_field *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        to[i] = (ck_field){ck_arena_strdup(a, from[i].name), ck_type_copy(a, from[i].type), from[i].nullable};
        if (!to[i].name || !to[i].type) return false;
    }
    return true;
}

const ck_type *ck_type_copy(ck_arena *a, const ck_type *t) {
    ck_field *f;
    ck_type *c = new_type(a, t->kind, t->field_count, &f);
    if (!c || !copy_fields(a, f, t->fields, t->field_count)) return NULL;
    c->precision = t->precision;
    c->scale = t->scale;
    return c;
}

const ck_schema *ck_schema_copy(ck_arena *a, const ck_schema *s) {
    ck_schema *c = CK_ARENA_NEW(a, ck_schema);
    ck_field *f = s->field_count ? ck_arena_array(a, s->field_count, sizeof *f) : NULL;
    if (!c || (s->field_count && !f) || !copy_fields(a, f, s->fields, s->field_count)) return NULL;
    *c = (ck_schema){f, s->field_count};
    return c;
}

/* ---- looking ---- */

bool ck_type_eq(const ck_type *a, const ck_type *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->precision != b->precision || a->scale != b->scale || a->field_count != b->field_count)
        return false;
    for (uint32_t i = 0; i < a->field_count; i++) {
        const ck_field *x = &a->fields[i], *y = &b->fields[i];
        if (x->nullable != y->nullable || !ck_type_eq(x->type, y->type)) return false;
        if (a->kind == CK_TYPE_ROW && strcmp(x->name, y->name) != 0) return false;
    }
    return true;
}

int ck_schema_find(const ck_schema *s, ck_view name) {
    for (uint32_t i = 0; i < s->field_count; i++)
        if (ck_view_is(name, s->fields[i].name)) return (int)i;
    return -1;
}
