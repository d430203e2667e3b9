/* JSON arrays and objects into builders of ARRAY, MAP and ROW. The text has been found valid; it is walked once more, a
 * level at a time. A failed append leaves parts behind, which the caller cuts off with the row. */
#include "base/base64.h"
#include "base/hash.h"
#include "data/text.h"
#include "format/json_int.h"

enum { FEW_KEYS = 8 };

static ck_status null_part(ck_json *j, const ck_field *f, const char *how) {
    if (f->name && f->name[0] && j->why->field != f->name)
        return ck_why_set(j->why, "field %.100s of column %.200s is %s and NOT NULL", f->name, j->why->field, how);
    return ck_why_set(j->why, "column %.200s holds a null where it is NOT NULL", j->why->field);
}

/* ---- strings ---- */

static ck_status unescaped(ck_json *j, const ck_json_value *v, ck_view *out) { /* zeros behind it end a number */
    size_t n = (size_t)(v->end - v->p);
    ck_bytes_clear(&j->text);
    if (ck_bytes_reserve(&j->text, n + 16) != CK_OK) return CK_NOMEM;
    n = ck_json_unescape(v->p, v->end, j->text.p);
    memset(j->text.p + n, 0, 16);
    *out = (ck_view){j->text.p, n};
    return CK_OK;
}

static ck_status append_varchar(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *v,
                                ck_buffer *buf) {
    ck_view s = {(const char *)v->p, (size_t)(v->end - v->p)};
    if (v->escaped) CK_TRY(unescaped(j, v, &s));
    CK_TRY(ck_value_limit(t, s, j->why));
    return v->escaped || !buf ? ck_build_str(b, s.p, s.n) : ck_build_str_in(b, buf, s.p, s.n);
}

static ck_status append_bytes(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *v) {
    ck_view s = {(const char *)v->p, (size_t)(v->end - v->p)};
    if (v->kind != CK_JSON_STRING) return ck_why_not_a(j->why, t, s, false);
    CK_TRY(unescaped(j, v, &s));
    size_t n;
    if (!ck_base64_decode(s, (uint8_t *)j->text.p, &n)) /* in place: it writes three behind every four it has read */
        return ck_why_not_a(j->why, t, (ck_view){(const char *)v->p, (size_t)(v->end - v->p)}, true);
    CK_TRY(ck_value_limit(t, (ck_view){j->text.p, n}, j->why));
    return ck_build_str(b, j->text.p, n);
}

/* ---- members ---- */

static ck_status push_members(ck_json *j, size_t n) {
    if (n > j->member_capacity - j->member_count) {
        size_t want = j->member_capacity * 2 > j->member_count + n ? j->member_capacity * 2 : j->member_count + n;
        if (want < 16) want = 16;
        ck_json_member *p = ck_realloc(j->mem, j->members, j->member_capacity * sizeof *p, want * sizeof *p);
        if (!p) return CK_NOMEM;
        j->members = p;
        j->member_capacity = want;
    }
    memset(j->members + j->member_count, 0, n * sizeof *j->members);
    j->member_count += n;
    return CK_OK;
}

/* The next member of the object that ends at end: from `{` or behind the last value at *pp. false: there is none. */
static bool next_member(ck_json *j, const uint8_t **pp, const uint8_t *end, ck_json_value *key, ck_json_value *value) {
    ck_json_fault none;
    const uint8_t *p = ck_json_space(*pp, end);
    p = ck_json_space(p + 1, end); /* brace or comma */
    if (p >= end || *p != '"') return false;
    p = j->kernel->string(p + 1, key, &none);
    CK_ASSERT(p);
    p = ck_json_space(p, end);
    p = ck_json_space(p + 1, end); /* colon */
    p = j->kernel->value(p, end, value, &none);
    CK_ASSERT(p);
    *pp = p;
    return true;
}

static ck_status key_view(ck_json *j, const ck_json_value *key, ck_view *out) {
    *out = (ck_view){(const char *)key->p, (size_t)(key->end - key->p)};
    return key->escaped ? unescaped(j, key, out) : CK_OK;
}

/* ---- ROW ---- */

/* Field of that name; the one after the last found is looked at first. */
static uint32_t field_of(const ck_type *t, ck_view name, uint32_t guess) {
    for (uint32_t k = 0, i = guess; k < t->field_count; k++, i++) {
        if (i >= t->field_count) i = 0;
        if (ck_view_is(name, t->fields[i].name)) return i;
    }
    return UINT32_MAX;
}

static ck_status append_row(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *v,
                            ck_buffer *buf) {
    size_t base = j->member_count;
    CK_TRY(push_members(j, t->field_count));
    ck_json_value key, value;
    uint32_t guess = 0;
    for (const uint8_t *p = v->p; next_member(j, &p, v->end, &key, &value);) {
        ck_view name;
        CK_TRY(key_view(j, &key, &name));
        uint32_t i = field_of(t, name, guess);
        if (i == UINT32_MAX) continue;
        j->members[base + i] = (ck_json_member){.value = value, .present = true};
        guess = i + 1;
    }
    for (uint32_t i = 0; i < t->field_count; i++) {
        ck_json_member m = j->members[base + i];
        const ck_field *f = &t->fields[i];
        if (m.present)
            CK_TRY(ck_json_append(j, f, &b->children[i], &m.value, buf));
        else if (!f->nullable)
            return null_part(j, f, "missing");
        else
            CK_TRY(ck_build_null(&b->children[i]));
    }
    j->member_count = base;
    return ck_build_end(b);
}

/* ---- MAP ---- */

/* Keys that are no text are equal as values: "1" and "01". */
static ck_status key_scalar(ck_json *j, const ck_type *t, const ck_json_value *key, ck_scalar *x) {
    ck_view text;
    *x = (ck_scalar){0};
    CK_TRY(unescaped(j, key, &text));
    return ck_value_text(t, text, true, x, j->why);
}

static bool same_scalar(const ck_type *t, ck_scalar a, ck_scalar b) {
    switch (ck_type_phys(t)) {
    case CK_PHYS_BOOL: return a.b == b.b;
    case CK_PHYS_F64: return a.f64 == b.f64 || (a.f64 != a.f64 && b.f64 != b.f64);
    case CK_PHYS_I128: return a.i128 == b.i128;
    default: return a.i64 == b.i64;
    }
}

static uint64_t hash_of_scalar(const ck_json *j, const ck_type *t, ck_scalar x) {
    switch (ck_type_phys(t)) {
    case CK_PHYS_BOOL: return x.b;
    case CK_PHYS_F64:
        if (x.f64 != x.f64) return 1;
        if (x.f64 == 0) x.f64 = 0; /* -0.0 */
        return ck_hash_bytes(j->serial, &x.f64, sizeof x.f64);
    case CK_PHYS_I128: return ck_hash_bytes(j->serial, &x.i128, sizeof x.i128);
    default: return ck_hash_bytes(j->serial, &x.i64, sizeof x.i64);
    }
}

static ck_status hash_key(ck_json *j, const ck_type *t, const ck_json_value *key, uint64_t *out) {
    ck_view name;
    ck_scalar x;
    if (t->kind == CK_TYPE_VARCHAR) {
        CK_TRY(key_view(j, key, &name));
        *out = ck_hash_bytes(j->serial, name.p, name.n);
        return CK_OK;
    }
    CK_TRY(key_scalar(j, t, key, &x));
    *out = hash_of_scalar(j, t, x);
    return CK_OK;
}

static ck_status same_key(ck_json *j, const ck_type *t, const ck_json_member *a, const ck_json_member *b, bool *same) {
    *same = false;
    if (a->hash != b->hash) return CK_OK;
    if (t->kind != CK_TYPE_VARCHAR) {
        ck_scalar x, y;
        CK_TRY(key_scalar(j, t, &a->key, &x));
        CK_TRY(key_scalar(j, t, &b->key, &y));
        *same = same_scalar(t, x, y);
        return CK_OK;
    }
    size_t na = (size_t)(a->key.end - a->key.p), nb = (size_t)(b->key.end - b->key.p);
    ck_bytes_clear(&j->text);
    if (ck_bytes_reserve(&j->text, na + nb) != CK_OK) return CK_NOMEM;
    char *second = j->text.p + na;
    na = ck_json_unescape(a->key.p, a->key.end, j->text.p);
    nb = ck_json_unescape(b->key.p, b->key.end, second);
    *same = ck_view_eq((ck_view){j->text.p, na}, (ck_view){second, nb});
    return CK_OK;
}

/* Drops members whose key comes again later. A few are compared each with each, many through a table of slots. */
static ck_status drop_overwritten(ck_json *j, const ck_type *t, ck_json_member *m, uint32_t n) {
    bool same;
    if (n <= FEW_KEYS) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = i + 1; k < n && m[i].present; k++) {
                CK_TRY(same_key(j, t, &m[i], &m[k], &same));
                m[i].present = !same;
            }
        return CK_OK;
    }
    size_t slots = 32;
    while (slots < (size_t)n * 2) slots *= 2;
    if (slots > j->slot_capacity) {
        uint32_t *p = ck_realloc(j->mem, j->slots, j->slot_capacity * sizeof *p, slots * sizeof *p);
        if (!p) return CK_NOMEM;
        j->slots = p;
        j->slot_capacity = slots;
    }
    memset(j->slots, 0, slots * sizeof *j->slots);
    for (uint32_t i = n; i > 0; i--) { /* from the last on: the first to take a slot stays */
        size_t at = m[i - 1].hash & (slots - 1);
        for (same = false; j->slots[at] && !same; at = (at + 1) & (slots - 1))
            CK_TRY(same_key(j, t, &m[i - 1], &m[j->slots[at] - 1], &same));
        m[i - 1].present = !same;
        if (!same) j->slots[at] = i;
    }
    return CK_OK;
}

static ck_status append_key(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *key,
                            ck_buffer *buf) {
    if (t->kind == CK_TYPE_VARCHAR) return append_varchar(j, t, b, key, buf);
    ck_scalar x;
    CK_TRY(key_scalar(j, t, key, &x));
    switch (b->phys) {
    case CK_PHYS_BOOL: return ck_build_bool(b, x.b);
    case CK_PHYS_F64: return ck_build_f64(b, x.f64);
    case CK_PHYS_I128: return ck_build_i128(b, x.i128);
    default: return ck_build_i64(b, x.i64);
    }
}

static ck_status append_map(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *v,
                            ck_buffer *buf) {
    size_t base = j->member_count;
    ck_json_value key, value;
    for (const uint8_t *p = v->p; next_member(j, &p, v->end, &key, &value);) {
        uint64_t hash;
        CK_TRY(hash_key(j, t->fields[0].type, &key, &hash));
        CK_TRY(push_members(j, 1));
        j->members[j->member_count - 1] = (ck_json_member){key, value, hash, true};
    }
    size_t end = j->member_count;
    if (end > base) CK_TRY(drop_overwritten(j, t->fields[0].type, j->members + base, (uint32_t)(end - base)));
    ck_column_builder *entry = &b->children[0];
    for (size_t i = base; i < end; i++) {
        ck_json_member m = j->members[i]; /* a copy: the stack may move */
        if (!m.present) continue;
        CK_TRY(append_key(j, t->fields[0].type, &entry->children[0], &m.key, buf));
        CK_TRY(ck_json_append(j, &t->fields[1], &entry->children[1], &m.value, buf));
        CK_TRY(ck_build_end(entry));
    }
    j->member_count = base;
    return ck_build_end(b);
}

/* ---- ARRAY, and the choice ---- */

static ck_status append_array(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *v,
                              ck_buffer *buf) {
    ck_json_fault none;
    ck_json_value e;
    const uint8_t *p = ck_json_space(v->p + 1, v->end);
    while (*p != ']') {
        p = j->kernel->value(p, v->end, &e, &none);
        CK_ASSERT(p);
        CK_TRY(ck_json_append(j, &t->fields[0], &b->children[0], &e, buf));
        p = ck_json_space(p, v->end);
        if (*p == ',') p = ck_json_space(p + 1, v->end);
    }
    return ck_build_end(b);
}

static ck_status append_scalar(ck_json *j, const ck_type *t, ck_column_builder *b, const ck_json_value *v) {
    ck_scalar x = {0};
    CK_TRY(ck_json_scalar(j, t, v, &x));
    switch (b->phys) {
    case CK_PHYS_BOOL: return ck_build_bool(b, x.b);
    case CK_PHYS_F64: return ck_build_f64(b, x.f64);
    case CK_PHYS_I128: return ck_build_i128(b, x.i128);
    default: return ck_build_i64(b, x.i64);
    }
}

ck_status ck_json_append(ck_json *j, const ck_field *field, ck_column_builder *b, const ck_json_value *v,
                         ck_buffer *buf) {
    const ck_type *t = field->type;
    if (v->kind == CK_JSON_NULL) return field->nullable ? ck_build_null(b) : null_part(j, field, "null");
    bool object = v->kind == CK_JSON_OBJECT, array = v->kind == CK_JSON_ARRAY;
    switch (t->kind) {
    case CK_TYPE_ARRAY:
        if (array) return append_array(j, t, b, v, buf);
        break;
    case CK_TYPE_MAP:
        if (object) return append_map(j, t, b, v, buf);
        break;
    case CK_TYPE_ROW:
        if (object) return append_row(j, t, b, v, buf);
        break;
    case CK_TYPE_VARCHAR: return append_varchar(j, t, b, v, buf);
    case CK_TYPE_BYTES: return append_bytes(j, t, b, v);
    default: return append_scalar(j, t, b, v);
    }
    return ck_why_not_a(j->why, t, (ck_view){(const char *)v->p, (size_t)(v->end - v->p)}, v->kind == CK_JSON_STRING);
}
