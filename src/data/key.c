/* See key.h: user keys, one row at a time. Hashing them in bulk is in key_fnv*.c and key_hash.c, order keys in order.c.
 */
#include "data/key.h"

#include "data/row_int.h"

/* ---- canonical decimals ---- */

void ck_decimal_canonical(ck_i128 *value, int32_t *scale) {
    ck_i128 v = *value;
    int32_t s = *scale;
    if (v == 0) s = 0;
    if (v == (int64_t)v) { /* nearly always */
        int64_t w = (int64_t)v;
        for (; s > 0 && w % 10 == 0; s--) w /= 10;
        v = w;
    } else {
        for (; s > 0 && v % 10 == 0; s--) v /= 10;
    }
    *value = v;
    *scale = s;
}

/* Back to the scale of the column; false when the digits do not fit. */
static bool decimal_at_scale(ck_i128 *value, int32_t from, int32_t to) {
    if (from > to) return false;
    for (; from < to; from++)
        if (__builtin_mul_overflow(*value, 10, value)) return false;
    return true;
}

/* ---- encoding ---- */

static ck_status append_decimal(ck_i128 v, int32_t scale, ck_bytes *out) {
    ck_decimal_canonical(&v, &scale);
    CK_TRY(ck_bytes_char(out, (char)scale));
    CK_TRY(ck_bytes_u64le(out, (uint64_t)v));
    return ck_bytes_u64le(out, (uint64_t)((ck_u128)v >> 64));
}

/* One column of a key of several, or of other than the two short forms. */
static ck_status append_part(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    bool null = ck_column_is_null(c, row);
    CK_TRY(ck_bytes_char(out, !null));
    if (null) return CK_OK;
    double d;
    uint64_t bits;
    switch (c->phys) {
    case CK_PHYS_NULL: return CK_OK;
    case CK_PHYS_BOOL: return ck_bytes_u64le(out, ck_bit_get(c->bits, row));
    case CK_PHYS_I64: return ck_bytes_u64le(out, (uint64_t)c->i64[row]);
    case CK_PHYS_F64:
        d = ck_double_canonical(c->f64[row]);
        memcpy(&bits, &d, 8);
        return ck_bytes_u64le(out, bits);
    case CK_PHYS_I128: return append_decimal(c->i128[row], t->scale, out);
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return ck_packed_append(t, c, row, true, out);
}

static ck_status append_single(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out) {
    if (ck_column_is_null(c, row)) return ck_bytes_char(out, (char)0xFF);
    if (c->phys == CK_PHYS_I64) return ck_bytes_u64le(out, (uint64_t)c->i64[row]);
    if (c->phys == CK_PHYS_BOOL) return ck_bytes_u64le(out, ck_bit_get(c->bits, row));
    if (t->kind == CK_TYPE_VARCHAR) return ck_bytes_view(out, ck_column_str(c, row));
    return append_part(t, c, row, out);
}

ck_status ck_key_encode(const ck_key_spec *k, const ck_batch *b, uint32_t row, ck_bytes *out) {
    size_t start = out->n;
    ck_status s = CK_OK;
    if (k->count == 1) {
        s = append_single(k->types[0], b->columns[k->columns[0]], row, out);
    } else {
        for (uint32_t i = 0; i < k->count && s == CK_OK; i++)
            s = append_part(k->types[i], b->columns[k->columns[i]], row, out);
    }
    if (s == CK_OK && out->n - start > CK_KEY_BYTES_MAX) s = CK_FULL;
    if (s != CK_OK) out->n = start;
    return s;
}

/* ---- decoding ---- */

static ck_status decode_integer(ck_cursor *c, ck_column_builder *out) {
    int64_t v;
    if (!ck_cursor_i64le(c, &v)) return CK_CORRUPT;
    if (out->phys == CK_PHYS_I64) return ck_build_i64(out, v);
    return v == 0 || v == 1 ? ck_build_bool(out, v) : CK_CORRUPT;
}

static ck_status decode_decimal(const ck_type *t, ck_cursor *c, ck_column_builder *out) {
    uint8_t scale;
    uint64_t lo, hi;
    if (!ck_cursor_u8(c, &scale) || !ck_cursor_u64le(c, &lo) || !ck_cursor_u64le(c, &hi)) return CK_CORRUPT;
    ck_i128 v = (ck_i128)((ck_u128)hi << 64 | lo);
    return decimal_at_scale(&v, scale, t->scale) ? ck_build_i128(out, v) : CK_CORRUPT;
}

static ck_status decode_part(const ck_type *t, ck_cursor *c, ck_column_builder *out) {
    uint8_t present;
    uint64_t bits;
    uint32_t n;
    ck_view bytes;
    double d;
    if (!ck_cursor_u8(c, &present) || present > 1) return CK_CORRUPT;
    if (!present) return ck_build_null(out);
    switch (out->phys) {
    case CK_PHYS_NULL: return CK_CORRUPT;
    case CK_PHYS_BOOL:
    case CK_PHYS_I64: return decode_integer(c, out);
    case CK_PHYS_F64:
        if (!ck_cursor_u64le(c, &bits)) return CK_CORRUPT;
        memcpy(&d, &bits, 8);
        return ck_build_f64(out, ck_double_canonical(d));
    case CK_PHYS_I128: return decode_decimal(t, c, out);
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    if (!ck_cursor_u32le(c, &n) || !ck_cursor_take(c, n, &bytes)) return CK_CORRUPT;
    return ck_packed_decode(t, bytes, out);
}

static ck_status decode_single(const ck_type *t, ck_cursor *c, ck_column_builder *out) {
    ck_view all = {(const char *)c->p, c->left};
    if (all.n == 1 && (uint8_t)all.p[0] == 0xFF) {
        c->left = 0;
        return ck_build_null(out);
    }
    if (out->phys == CK_PHYS_I64 || out->phys == CK_PHYS_BOOL) return decode_integer(c, out);
    if (t->kind == CK_TYPE_VARCHAR) {
        c->left = 0;
        return ck_build_str(out, all.p, all.n);
    }
    if (all.n && all.p[0] == 0) return CK_CORRUPT; /* NULL is spelt 0xFF here */
    return decode_part(t, c, out);
}

ck_status ck_key_decode(const ck_type *const *types, uint32_t count, ck_view key, ck_column_builder *const *out) {
    if (key.n > CK_KEY_BYTES_MAX) return CK_CORRUPT;
    uint32_t length = count ? out[0]->length : 0;
    ck_cursor c = ck_cursor_of(key.p, key.n);
    ck_status s = CK_OK;
    if (count == 1)
        s = decode_single(types[0], &c, out[0]);
    else
        for (uint32_t i = 0; i < count && s == CK_OK; i++) s = decode_part(types[i], &c, out[i]);
    if (s == CK_OK && c.left) s = CK_CORRUPT;
    if (s != CK_OK) ck_builders_truncate(out, count, length);
    return s;
}
