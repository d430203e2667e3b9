/* See stored_int.h: user keys and values. Order keys are in order_key.c. */
#include "state/stored_int.h"

#include "base/cursor.h"
#include "state/schema_additive.h"

static void put_le(uint8_t *p, uint64_t v, unsigned n) {
    for (unsigned i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static ck_status append_le(ck_bytes *out, uint64_t v, unsigned n) {
    uint8_t b[8];
    put_le(b, v, n);
    return ck_bytes_append(out, b, n);
}

static ck_status append_i128(ck_bytes *out, ck_i128 v) {
    CK_TRY(append_le(out, (uint64_t)v, 8));
    return append_le(out, (uint64_t)((ck_u128)v >> 64), 8);
}

static uint64_t f64_bits(double v) {
    uint64_t b;
    memcpy(&b, &v, 8);
    return b;
}

/* ---- user key ---- */

/* One column of these types is its bytes alone. */
static bool plain_bytes(const ck_shape_field *f) { return f->type->kind == CK_TYPE_VARCHAR; }
static bool integer_like(const ck_shape_field *f) { return f->phys == CK_PHYS_I64 || f->phys == CK_PHYS_BOOL; }

static int64_t integer_of(const ck_shape_field *f, const ck_row *row) {
    return f->phys == CK_PHYS_BOOL ? ck_row_bool(row, f->offset) : ck_row_i64(row, f->offset);
}

static ck_status encode_key_part(const ck_shape_field *f, ck_var_source v, const ck_row *row, ck_bytes *out) {
    bool is_null = f->phys == CK_PHYS_NULL || ck_row_null(row, f->null_bit);
    CK_TRY(ck_bytes_char(out, (char)!is_null));
    if (is_null) return CK_OK;
    switch (f->phys) {
    case CK_PHYS_NULL: return CK_OK;
    case CK_PHYS_BOOL:
    case CK_PHYS_I64: return append_le(out, (uint64_t)integer_of(f, row), 8);
    case CK_PHYS_F64: return append_le(out, f64_bits(ck_double_canonical(ck_row_f64(row, f->offset))), 8);
    case CK_PHYS_I128: {
        ck_i128 value = ck_row_i128(row, f->offset);
        int32_t scale = f->type->scale;
        ck_decimal_canonical(&value, &scale);
        CK_TRY(ck_bytes_char(out, (char)scale));
        return append_i128(out, value);
    }
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    ck_view bytes = ck_var_source_get(v, row, f->offset);
    CK_TRY(append_le(out, bytes.n, 4));
    return ck_bytes_view(out, bytes);
}

ck_status ck_user_key_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out) {
    size_t start = out->n;
    if (s->partition_count == 1) {
        const ck_shape_field *f = &s->fields[0];
        if (f->phys == CK_PHYS_NULL || ck_row_null(row, f->null_bit)) return ck_bytes_char(out, (char)0xFF);
        if (integer_like(f)) return append_le(out, (uint64_t)integer_of(f, row), 8);
        if (plain_bytes(f)) {
            ck_view bytes = ck_var_source_get(v, row, f->offset);
            return bytes.n > CK_KEY_BYTES_MAX ? CK_FULL : ck_bytes_view(out, bytes);
        }
    }
    for (uint32_t i = 0; i < s->partition_count; i++) CK_TRY(encode_key_part(&s->fields[i], v, row, out));
    return out->n - start > CK_KEY_BYTES_MAX ? CK_FULL : CK_OK;
}

ck_status ck_key_rest_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out,
                             uint32_t *user_key_bytes) {
    size_t start = out->n;
    if (s->order_count) CK_TRY(append_le(out, 0, 4));
    size_t key = out->n;
    CK_TRY(ck_user_key_encode(s, v, row, out));
    *user_key_bytes = (uint32_t)(out->n - key);
    if (!s->order_count) return CK_OK;
    for (unsigned i = 0; i < 4; i++) out->p[start + i] = (char)(*user_key_bytes >> (24 - 8 * i));
    return ck_order_key_encode(s, v, row, out);
}

static void set_loose_str(const ck_shape *s, ck_loose_row *l, uint32_t field, ck_view v) {
    ck_strview r = v.n <= CK_STRVIEW_INLINE ? ck_strview_inline(v.p, v.n) : ck_strview_ref(v.p, v.n, 0, 0);
    memcpy(l->row + s->fields[field].offset, &r, sizeof r);
    l->views[field] = v;
}

static bool set_integer(const ck_shape_field *f, ck_loose_row *l, int64_t v) {
    if (f->phys == CK_PHYS_I64) {
        ck_row_set_i64(l->row, f->offset, v);
        return true;
    }
    ck_row_set_bool(l->row, f->offset, v != 0);
    return v == 0 || v == 1;
}

static bool take_i128(ck_cursor *c, ck_i128 *v) {
    uint64_t lo, hi;
    if (!ck_cursor_u64le(c, &lo) || !ck_cursor_u64le(c, &hi)) return false;
    *v = (ck_i128)((ck_u128)hi << 64 | lo);
    return true;
}

/* A canonical decimal back at the column's scale. */
static bool decode_decimal(ck_cursor *c, const ck_shape_field *f, ck_loose_row *l) {
    uint8_t scale;
    ck_i128 v;
    if (!ck_cursor_u8(c, &scale) || !take_i128(c, &v) || scale > f->type->scale) return false;
    for (int i = scale; i < f->type->scale; i++)
        if (__builtin_mul_overflow(v, 10, &v)) return false;
    ck_row_set_i128(l->row, f->offset, v);
    return true;
}

static bool decode_key_part(const ck_shape *s, uint32_t field, ck_cursor *c, ck_loose_row *l) {
    const ck_shape_field *f = &s->fields[field];
    uint8_t present;
    if (!ck_cursor_u8(c, &present) || present > 1) return false;
    if (!present) {
        if (f->null_bit == UINT32_MAX) return false;
        ck_row_set_null(l->row, f->null_bit, true);
        return true;
    }
    int64_t i;
    uint32_t n;
    ck_view bytes;
    double d;
    switch (f->phys) {
    case CK_PHYS_NULL: return false;
    case CK_PHYS_BOOL:
    case CK_PHYS_I64: return ck_cursor_i64le(c, &i) && set_integer(f, l, i);
    case CK_PHYS_F64:
        if (!ck_cursor_i64le(c, &i)) return false;
        memcpy(&d, &i, 8);
        ck_row_set_f64(l->row, f->offset, ck_double_canonical(d));
        return true;
    case CK_PHYS_I128: return decode_decimal(c, f, l);
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    if (!ck_cursor_u32le(c, &n) || !ck_cursor_take(c, n, &bytes)) return false;
    set_loose_str(s, l, field, bytes);
    return true;
}

bool ck_user_key_decode(const ck_shape *s, ck_view key, ck_loose_row *l) {
    ck_cursor c = ck_cursor_of(key.p, key.n);
    if (key.n > CK_KEY_BYTES_MAX) return false;
    if (s->partition_count == 1) {
        const ck_shape_field *f = &s->fields[0];
        if (f->null_bit != UINT32_MAX && key.n == 1 && (uint8_t)key.p[0] == 0xFF) {
            ck_row_set_null(l->row, f->null_bit, true);
            return true;
        }
        int64_t i;
        if (integer_like(f)) return key.n == 8 && ck_cursor_i64le(&c, &i) && set_integer(f, l, i);
        if (plain_bytes(f)) {
            set_loose_str(s, l, 0, key);
            return true;
        }
        if (key.n && key.p[0] == 0) return false; /* NULL is spelt 0xFF here */
    }
    for (uint32_t i = 0; i < s->partition_count; i++)
        if (!decode_key_part(s, i, &c, l)) return false;
    return c.left == 0;
}

/* ---- values ---- */

/* value_of NULL: field i of `to` is field i of s. */
static inline ck_status encode_value(const ck_shape *s, ck_var_source v, const ck_row *row, const ck_shape *to,
                                     const uint32_t *value_of, ck_bytes *out) {
    uint32_t null_bytes = to->stored_nulls;
    CK_TRY(ck_bytes_reserve(out, 8 + null_bytes + to->row_bytes));
    if (s->ttl_at) CK_TRY(append_le(out, (uint64_t)ck_row_i64(row, s->ttl_at), 8));
    uint8_t *nulls = (uint8_t *)out->p + out->n, *at = nulls + null_bytes;
    memset(nulls, 0, null_bytes);
    for (uint32_t i = 0; i < to->value_count; i++) {
        if (CK_UNLIKELY(value_of && value_of[i] == CK_FIELD_IS_NEW)) {
            const ck_shape_field *fresh = &to->fields[to->value_first + i];
            if (fresh->nullable) nulls[i >> 3] |= (uint8_t)(1u << (i & 7));
            if (!ck_phys_is_var(fresh->phys)) at = (uint8_t *)memset(at, 0, fresh->width) + fresh->width;
            continue;
        }
        const ck_shape_field *f = &s->fields[s->value_first + (value_of ? value_of[i] : i)];
        bool is_null = f->nullable && (f->phys == CK_PHYS_NULL || ck_row_null(row, f->null_bit));
        if (is_null) nulls[i >> 3] |= (uint8_t)(1u << (i & 7));
        if (ck_phys_is_var(f->phys)) continue;
        if (is_null)
            memset(at, 0, f->width);
        else
            memcpy(at, row + f->offset, f->width); /* little-endian, as everything we run on */
        at += f->width;
    }
    out->n = (size_t)((char *)at - out->p);
    for (uint32_t i = 0; i < to->var_count; i++) {
        if (to->var_fields[i] < to->value_first) continue;
        uint32_t at_value = to->var_fields[i] - to->value_first;
        if (value_of && value_of[at_value] == CK_FIELD_IS_NEW) {
            if (!to->fields[to->var_fields[i]].nullable) CK_TRY(append_le(out, 0, 4));
            continue;
        }
        const ck_shape_field *f = &s->fields[s->value_first + (value_of ? value_of[at_value] : at_value)];
        if (f->nullable && ck_row_null(row, f->null_bit)) continue;
        ck_view bytes = ck_var_source_get(v, row, f->offset);
        CK_TRY(append_le(out, bytes.n, 4));
        CK_TRY(ck_bytes_view(out, bytes));
    }
    return CK_OK;
}

ck_status ck_value_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out) {
    return encode_value(s, v, row, s, NULL, out);
}

ck_status ck_value_encode_as(const ck_shape *s, ck_var_source v, const ck_row *row, const ck_shape *to,
                             const uint32_t *value_of, ck_bytes *out) {
    return encode_value(s, v, row, to, value_of, out);
}

static bool decode_fixed(ck_cursor *c, const ck_shape_field *f, bool is_null, ck_loose_row *l) {
    ck_view bytes;
    if (!ck_cursor_take(c, f->width, &bytes)) return false;
    if (is_null) return true; /* whatever the bytes are */
    memcpy(l->row + f->offset, bytes.p, f->width);
    return f->phys != CK_PHYS_BOOL || l->row[f->offset] <= 1;
}

bool ck_value_decode(const ck_shape *s, ck_view value, ck_loose_row *l) {
    ck_cursor c = ck_cursor_of(value.p, value.n);
    uint32_t null_bytes = s->stored_nulls;
    ck_view nulls, bytes;
    int64_t expiry = 0;
    if (s->ttl_at && !ck_cursor_i64le(&c, &expiry)) return false;
    if (s->ttl_at) ck_row_set_i64(l->row, s->ttl_at, expiry);
    if (!ck_cursor_take(&c, null_bytes, &nulls)) return false;
    if (null_bytes && s->value_count % 8 && (uint8_t)nulls.p[null_bytes - 1] >> s->value_count % 8) return false;
    for (uint32_t i = s->value_first; i < s->field_count; i++) {
        const ck_shape_field *f = &s->fields[i];
        uint32_t bit = i - s->value_first;
        bool is_null = null_bytes && ((uint8_t)nulls.p[bit >> 3] >> (bit & 7) & 1);
        if (is_null && f->null_bit == UINT32_MAX) return false;
        if (f->null_bit != UINT32_MAX) ck_row_set_null(l->row, f->null_bit, is_null || f->phys == CK_PHYS_NULL);
        if (!ck_phys_is_var(f->phys) && !decode_fixed(&c, f, is_null, l)) return false;
    }
    for (uint32_t i = 0; i < s->var_count; i++) {
        uint32_t field = s->var_fields[i], n;
        if (field < s->value_first || ck_row_null(l->row, s->fields[field].null_bit)) continue;
        if (!ck_cursor_u32le(&c, &n) || !ck_cursor_take(&c, n, &bytes)) return false;
        set_loose_str(s, l, field, bytes);
    }
    return c.left == 0;
}

/* ---- loose rows ---- */

size_t ck_loose_bytes(const ck_shape *s) {
    return (s->field_count * sizeof(ck_view) + s->row_bytes + 7) / 8 * 8; /* the next one's views follow */
}

ck_status ck_loose_run(ck_table *t, uint32_t n, ck_loose_row *out) {
    const ck_shape *s = t->shape;
    size_t views = s->field_count * sizeof(ck_view), each = ck_loose_bytes(s);
    ck_bytes_clear(&t->loose);
    CK_TRY(ck_bytes_reserve(&t->loose, n * each));
    for (uint32_t i = 0; i < n; i++) {
        char *at = t->loose.p + i * each;
        memset(at, 0, views);
        memcpy(at + views, s->blank, s->row_bytes);
        out[i] = (ck_loose_row){(uint8_t *)at + views, (ck_view *)(void *)at, &t->scratch};
    }
    return CK_OK;
}

ck_status ck_loose_of(ck_table *t, ck_loose_row *out) { return ck_loose_run(t, 1, out); }

static uint64_t loose_field_hash(const ck_table *t, const ck_loose_row *l, uint32_t field) {
    const ck_shape_field *f = &t->shape->fields[field];
    uint64_t seed = t->seed;
    if (f->phys == CK_PHYS_NULL || ck_row_null(l->row, f->null_bit)) return ck_value_hash_null(seed);
    switch (f->phys) {
    case CK_PHYS_NULL: break;
    case CK_PHYS_BOOL: return ck_value_hash_i64(seed, ck_row_bool(l->row, f->offset));
    case CK_PHYS_I64: return ck_value_hash_i64(seed, ck_row_i64(l->row, f->offset));
    case CK_PHYS_F64: return ck_value_hash_f64(seed, ck_row_f64(l->row, f->offset));
    case CK_PHYS_I128: return ck_value_hash_i128(seed, ck_row_i128(l->row, f->offset), f->type->scale);
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return ck_value_hash_str(seed, l->views[field]);
}

/* Of the first `count` key fields. */
static uint64_t hash_of(const ck_table *t, const ck_loose_row *l, uint32_t count) {
    const ck_shape *s = t->shape;
    if (count == 0) return ck_hash_u64(t->seed, 0);
    if (count == 1) return loose_field_hash(t, l, s->key_fields[0]);
    uint64_t h = t->seed;
    for (uint32_t i = 0; i < count; i++) h = ck_hash_combine(h, loose_field_hash(t, l, s->key_fields[i]));
    return h;
}

uint64_t ck_loose_hash(const ck_table *t, const ck_loose_row *l) { return hash_of(t, l, t->shape->key_count); }
uint64_t ck_loose_list_hash(const ck_table *t, const ck_loose_row *l) {
    return hash_of(t, l, t->shape->partition_count);
}

static bool equal(const ck_table *t, const ck_loose_row *l, const ck_row *row, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t field = t->shape->key_fields[i];
        const ck_shape_field *f = &t->shape->fields[field];
        bool a = ck_row_null(l->row, f->null_bit), b = ck_row_null(row, f->null_bit);
        if (a != b) return false;
        if (a) continue;
        bool same = ck_phys_is_var(f->phys) ? ck_view_eq(l->views[field], ck_var_get(t, row, f->offset))
                                            : memcmp(l->row + f->offset, row + f->offset, f->width) == 0;
        if (!same) return false;
    }
    return true;
}

bool ck_loose_equal(const ck_table *t, const ck_loose_row *l, const ck_row *row) {
    return equal(t, l, row, t->shape->key_count);
}
bool ck_loose_list_equal(const ck_table *t, const ck_loose_row *l, const ck_row *row) {
    return equal(t, l, row, t->shape->partition_count);
}

ck_status ck_loose_store(ck_table *t, const ck_loose_row *l, uint32_t first, uint32_t end, ck_row *row) {
    for (uint32_t i = first; i < end; i++) {
        const ck_shape_field *f = &t->shape->fields[i];
        bool is_null = ck_row_null(l->row, f->null_bit);
        if (ck_phys_is_var(f->phys)) {
            if (!is_null) {
                CK_TRY(ck_var_set(t, row, f, l->views[i]));
                continue;
            }
            ck_var_drop(t, row, f);
            memset(row + f->offset, 0, f->width);
        } else {
            memcpy(row + f->offset, l->row + f->offset, f->width);
        }
        if (f->null_bit != UINT32_MAX) ck_row_set_null(row, f->null_bit, is_null);
    }
    if (t->shape->ttl_at && end == t->shape->field_count) memcpy(row + t->shape->ttl_at, l->row + t->shape->ttl_at, 8);
    return CK_OK;
}
