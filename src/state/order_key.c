/* Order keys of rows: bytes that compare right with memcmp (docs/formats.md, "Order keys"). Per column: where it is
 * nullable one byte, 0 NULL first, 1 a value, 2 NULL last, never complemented; then integers big-endian with the sign
 * flipped, doubles by the total-order flip, decimals at the column's scale as a sign-flipped int128, strings with 0x00
 * escaped as 0x00 0xFF and ended by 0x00 0x00. DESC columns are complemented. */
#include "state/stored_int.h"

#include "base/cursor.h"

static const uint64_t SIGN = 1ULL << 63;

static uint64_t ordered_f64(double v) {
    uint64_t b;
    v = ck_double_canonical(v);
    memcpy(&b, &v, 8);
    return b & SIGN ? ~b : b | SIGN;
}

static double f64_of_ordered(uint64_t b) {
    double v;
    b = b & SIGN ? b & ~SIGN : ~b;
    memcpy(&v, &b, 8);
    return v;
}

static uint64_t ordered_i64(int64_t v) { return (uint64_t)v ^ SIGN; }

bool ck_order_is_prefix(const ck_shape *s) {
    if (s->order_count != 1) return false;
    const ck_shape_field *f = &s->fields[s->partition_count];
    return f->phys == CK_PHYS_I64 && !f->nullable;
}

/* ---- encoding ---- */

static ck_status append_escaped(ck_bytes *out, ck_view v) {
    while (v.n) {
        const char *zero = memchr(v.p, 0, v.n);
        size_t run = zero ? (size_t)(zero - v.p) : v.n;
        CK_TRY(ck_bytes_append(out, v.p, run));
        if (!zero) break;
        CK_TRY(ck_bytes_append(out, "\0\xFF", 2));
        v.p += run + 1, v.n -= run + 1;
    }
    return ck_bytes_append(out, "\0\0", 2);
}

static ck_status encode_value(const ck_shape_field *f, ck_var_source v, const ck_row *row, ck_bytes *out) {
    switch (f->phys) {
    case CK_PHYS_NULL: return CK_OK;
    case CK_PHYS_BOOL: return ck_bytes_u64be(out, ordered_i64(ck_row_bool(row, f->offset)));
    case CK_PHYS_I64: return ck_bytes_u64be(out, ordered_i64(ck_row_i64(row, f->offset)));
    case CK_PHYS_F64: return ck_bytes_u64be(out, ordered_f64(ck_row_f64(row, f->offset)));
    case CK_PHYS_I128: {
        ck_u128 u = (ck_u128)ck_row_i128(row, f->offset) ^ (ck_u128)1 << 127;
        CK_TRY(ck_bytes_u64be(out, (uint64_t)(u >> 64)));
        return ck_bytes_u64be(out, (uint64_t)u);
    }
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return append_escaped(out, ck_var_source_get(v, row, f->offset));
}

ck_status ck_order_key_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out) {
    size_t start = out->n;
    for (uint32_t i = s->partition_count; i < s->value_first; i++) {
        const ck_shape_field *f = &s->fields[i];
        if (f->nullable) {
            bool is_null = f->phys == CK_PHYS_NULL || ck_row_null(row, f->null_bit);
            CK_TRY(ck_bytes_char(out, (char)(!is_null ? 1 : f->nulls_first ? 0 : 2)));
            if (is_null) continue;
        }
        size_t at = out->n;
        CK_TRY(encode_value(f, v, row, out));
        if (f->descending)
            for (; at < out->n; at++) out->p[at] = (char)~out->p[at];
    }
    return out->n - start > CK_KEY_BYTES_MAX ? CK_FULL : CK_OK;
}

/* ---- decoding ---- */

static bool take_u64(ck_cursor *c, bool descending, uint64_t *v) {
    if (!ck_cursor_u64be(c, v)) return false;
    if (descending) *v = ~*v;
    return true;
}

/* Not complemented: what lies between zeros is copied whole. */
static bool unescape(ck_cursor *c, char *to, size_t *n) {
    *n = 0;
    for (;;) {
        const uint8_t *zero = c->left ? memchr(c->p, 0, c->left) : NULL;
        size_t run = zero ? (size_t)(zero - c->p) : 0;
        if (!zero || run + 1 == c->left) return false;
        memcpy(to + *n, c->p, run);
        *n += run;
        c->p += run + 2;
        c->left -= run + 2;
        if (zero[1] == 0) return true;
        if (zero[1] != 0xFF) return false;
        to[(*n)++] = 0;
    }
}

/* The unescaped string goes behind what l->bytes holds; room for the whole key is reserved, so that it does not move.
 */
static bool decode_escaped(const ck_shape *s, uint32_t field, ck_cursor *c, bool descending, ck_loose_row *l) {
    uint8_t flip = descending ? 0xFF : 0;
    char *start = l->bytes->p + l->bytes->n;
    size_t n = 0;
    if (!descending && !unescape(c, start, &n)) return false;
    while (descending) {
        uint8_t b, next;
        if (!ck_cursor_u8(c, &b)) return false;
        b ^= flip;
        if (b == 0) {
            if (!ck_cursor_u8(c, &next)) return false;
            next ^= flip;
            if (next == 0) break;
            if (next != 0xFF) return false;
        }
        start[n++] = (char)b;
    }
    l->bytes->n += n;
    ck_view v = {start, n};
    ck_strview r = n <= CK_STRVIEW_INLINE ? ck_strview_inline(v.p, n) : ck_strview_ref(v.p, n, 0, 0);
    memcpy(l->row + s->fields[field].offset, &r, sizeof r);
    l->views[field] = v;
    return true;
}

static bool decode_value(const ck_shape *s, uint32_t field, ck_cursor *c, ck_loose_row *l) {
    const ck_shape_field *f = &s->fields[field];
    uint64_t a, b;
    switch (f->phys) {
    case CK_PHYS_NULL: return false;
    case CK_PHYS_BOOL:
        if (!take_u64(c, f->descending, &a) || (a ^ SIGN) > 1) return false;
        ck_row_set_bool(l->row, f->offset, (a ^ SIGN) != 0);
        return true;
    case CK_PHYS_I64:
        if (!take_u64(c, f->descending, &a)) return false;
        ck_row_set_i64(l->row, f->offset, (int64_t)(a ^ SIGN));
        return true;
    case CK_PHYS_F64:
        if (!take_u64(c, f->descending, &a)) return false;
        ck_row_set_f64(l->row, f->offset, ck_double_canonical(f64_of_ordered(a)));
        return true;
    case CK_PHYS_I128:
        if (!take_u64(c, f->descending, &a) || !take_u64(c, f->descending, &b)) return false;
        ck_row_set_i128(l->row, f->offset, (ck_i128)(((ck_u128)a << 64 | b) ^ (ck_u128)1 << 127));
        return true;
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return decode_escaped(s, field, c, f->descending, l);
}

ck_status ck_order_key_decode(const ck_shape *s, ck_view key, ck_loose_row *l) {
    if (key.n > CK_KEY_BYTES_MAX) return CK_CORRUPT;
    ck_bytes_clear(l->bytes);
    CK_TRY(ck_bytes_reserve(l->bytes, key.n));
    ck_cursor c = ck_cursor_of(key.p, key.n);
    for (uint32_t i = s->partition_count; i < s->value_first; i++) {
        const ck_shape_field *f = &s->fields[i];
        if (f->nullable) {
            uint8_t marker;
            if (!ck_cursor_u8(&c, &marker) || marker > 2) return CK_CORRUPT;
            ck_row_set_null(l->row, f->null_bit, marker != 1);
            if (marker != 1) {
                if (marker != (f->nulls_first ? 0 : 2)) return CK_CORRUPT;
                continue;
            }
        }
        if (!decode_value(s, i, &c, l)) return CK_CORRUPT;
    }
    return c.left == 0 ? CK_OK : CK_CORRUPT;
}
