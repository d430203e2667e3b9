/* See schema_additive.h. */
#include "state/schema_additive.h"

#include "base/cursor.h"

/* ---- the rule ---- */

/* Kinds of integers stand in the order of their widths. */
bool ck_integer_widens(const ck_type *from, const ck_type *to) {
    return ck_kind_is_integer(from->kind) && ck_kind_is_integer(to->kind) && to->kind > from->kind;
}

bool ck_type_widens(const ck_type *from, const ck_type *to) {
    if (ck_type_phys(from) != ck_type_phys(to)) return false;
    if (ck_integer_widens(from, to)) return true;
    if (from->kind != to->kind) return false;
    if (from->kind == CK_TYPE_DECIMAL) return from->scale == to->scale && to->precision > from->precision;
    if (from->kind == CK_TYPE_VARCHAR || from->kind == CK_TYPE_BYTES)
        return to->precision == 0 || (from->precision != 0 && to->precision > from->precision);
    return false;
}

bool ck_value_fields_eq(ck_value_fields a, ck_value_fields b) {
    if (a.count != b.count) return false;
    for (uint32_t i = 0; i < a.count; i++)
        if (strcmp(a.fields[i].name, b.fields[i].name) != 0 || !ck_type_eq(a.fields[i].type, b.fields[i].type) ||
            a.fields[i].nullable != b.fields[i].nullable)
            return false;
    return true;
}

static uint32_t find(ck_value_fields f, const char *name) {
    uint32_t i = 0;
    while (i < f.count && strcmp(f.fields[i].name, name) != 0) i++;
    return i;
}

static const char *typed(ck_arena *a, const ck_field *f) {
    const char *s = ck_arena_printf(a, "%s%s", ck_type_name(a, f->type), f->nullable ? "" : " NOT NULL");
    return s ? s : "?";
}

/* "" or a sentence; NULL: no memory for it. */
static const char *judge_field(ck_arena *a, const ck_field *was, const ck_field *now) {
    bool fits = ck_type_eq(was->type, now->type) || ck_type_widens(was->type, now->type);
    if (fits && (now->nullable || !was->nullable)) return "";
    return ck_arena_printf(a, "'%s' is stored as %s, this job has %s", now->name, typed(a, was), typed(a, now));
}

ck_status ck_additive_of(ck_arena *a, ck_value_fields from, ck_value_fields to, ck_additive *out, const char **why) {
    uint32_t *value_of = ck_arena_array(a, to.count + 1u, sizeof *value_of);
    if (!value_of) return CK_NOMEM;
    *why = "";
    *out = (ck_additive){from, to, value_of};
    for (uint32_t i = 0; i < to.count && *why && !**why; i++) {
        uint32_t at = find(from, to.fields[i].name);
        value_of[i] = at < from.count ? at : CK_FIELD_IS_NEW;
        if (at < from.count)
            *why = judge_field(a, &from.fields[at], &to.fields[i]);
        else if (!to.fields[i].nullable)
            *why = ck_arena_printf(a, "'%s' is new and NOT NULL", to.fields[i].name);
    }
    for (uint32_t i = 0; i < from.count && *why && !**why; i++)
        if (find(to, from.fields[i].name) == to.count) *why = ck_arena_printf(a, "'%s' is gone", from.fields[i].name);
    return *why ? CK_OK : CK_NOMEM;
}

/* ---- values: [null bits][fixed part][variable parts], data/row.h ---- */

static bool is_variable(const ck_field *f) {
    ck_phys phys = ck_type_phys(f->type);
    return phys == CK_PHYS_VIEW || phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT;
}

static size_t width_of(const ck_field *f) {
    switch (ck_type_phys(f->type)) {
    case CK_PHYS_BOOL: return 1;
    case CK_PHYS_I64:
    case CK_PHYS_F64: return 8;
    case CK_PHYS_I128: return 16;
    default: return 0;
    }
}

static size_t null_bytes(ck_value_fields f) {
    for (uint32_t i = 0; i < f.count; i++)
        if (f.fields[i].nullable || f.fields[i].type->kind == CK_TYPE_NULL) return (f.count + 7) / 8;
    return 0;
}

static bool null_at(ck_view nulls, uint32_t i) { return nulls.n && ((uint8_t)nulls.p[i / 8] >> i % 8 & 1); }

/* Where each field of a value stands; the fixed part of a NULL one is there, its variable part is not. */
static bool take_apart(ck_value_fields f, ck_view value, ck_view *nulls, ck_view *parts) {
    ck_cursor c = ck_cursor_of(value.p, value.n);
    if (!ck_cursor_take(&c, null_bytes(f), nulls)) return false;
    if (nulls->n && f.count % 8 && (uint8_t)nulls->p[nulls->n - 1] >> f.count % 8) return false;
    for (uint32_t i = 0; i < f.count; i++) {
        if (null_at(*nulls, i) && !f.fields[i].nullable && f.fields[i].type->kind != CK_TYPE_NULL) return false;
        if (!is_variable(&f.fields[i]) && !ck_cursor_take(&c, width_of(&f.fields[i]), &parts[i])) return false;
    }
    for (uint32_t i = 0; i < f.count; i++) {
        uint32_t n;
        if (!is_variable(&f.fields[i]) || null_at(*nulls, i)) continue;
        if (!ck_cursor_u32le(&c, &n) || !ck_cursor_take(&c, n, &parts[i])) return false;
    }
    return c.left == 0;
}

static ck_status put_nulls(const ck_additive *c, ck_view nulls, ck_bytes *out) {
    size_t n = null_bytes(c->to);
    if (n == 0) return CK_OK;
    CK_TRY(ck_bytes_reserve(out, n));
    uint8_t *bits = (uint8_t *)out->p + out->n;
    memset(bits, 0, n);
    out->n += n;
    for (uint32_t i = 0; i < c->to.count; i++)
        if (c->value_of[i] == CK_FIELD_IS_NEW || null_at(nulls, c->value_of[i]) ||
            c->to.fields[i].type->kind == CK_TYPE_NULL)
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    return CK_OK;
}

static ck_status put_fixed(const ck_additive *c, const ck_view *parts, ck_bytes *out) {
    static const char zeros[16];
    for (uint32_t i = 0; i < c->to.count; i++) {
        size_t n = width_of(&c->to.fields[i]);
        if (n == 0) continue;
        CK_TRY(ck_bytes_append(out, c->value_of[i] == CK_FIELD_IS_NEW ? zeros : parts[c->value_of[i]].p, n));
    }
    return CK_OK;
}

static ck_status put_variable(const ck_additive *c, ck_view nulls, const ck_view *parts, ck_bytes *out) {
    for (uint32_t i = 0; i < c->to.count; i++) {
        uint32_t from = c->value_of[i];
        if (from == CK_FIELD_IS_NEW || !is_variable(&c->to.fields[i]) || null_at(nulls, from)) continue;
        CK_TRY(ck_bytes_u32le(out, (uint32_t)parts[from].n));
        CK_TRY(ck_bytes_view(out, parts[from]));
    }
    return CK_OK;
}

ck_status ck_additive_value(const ck_additive *c, ck_view value, ck_bytes *out) {
    enum { ON_STACK = 64 };
    ck_view nulls, few[ON_STACK], *parts = few;
    size_t bytes = c->from.count * sizeof *parts, start = out->n;
    if (c->from.count > ON_STACK && !(parts = ck_alloc(out->mem, bytes))) return CK_NOMEM;
    ck_status s = take_apart(c->from, value, &nulls, parts) ? CK_OK : CK_CORRUPT;
    if (s == CK_OK) s = put_nulls(c, nulls, out);
    if (s == CK_OK) s = put_fixed(c, parts, out);
    if (s == CK_OK) s = put_variable(c, nulls, parts, out);
    if (parts != few) ck_free(out->mem, parts, bytes);
    if (s != CK_OK) out->n = start;
    return s;
}
