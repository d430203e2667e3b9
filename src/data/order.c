/* See key.h: order keys, which compare right with memcmp. */
#include "data/key.h"

#include "data/row_int.h"

static const uint64_t sign_bit = 1ULL << 63;

static uint64_t ordered_i64(int64_t v) { return (uint64_t)v ^ sign_bit; }
static int64_t i64_of_ordered(uint64_t u) { return (int64_t)(u ^ sign_bit); }

static uint64_t ordered_f64(double v) {
    uint64_t bits;
    v = ck_double_canonical(v);
    memcpy(&bits, &v, 8);
    return bits & sign_bit ? ~bits : bits | sign_bit;
}
static double f64_of_ordered(uint64_t u) {
    uint64_t bits = u & sign_bit ? u & ~sign_bit : ~u;
    double v;
    memcpy(&v, &bits, 8);
    return v;
}

/* ---- encoding ---- */

static void put_be(char *p, uint64_t v, uint64_t flip) {
    v = __builtin_bswap64(v ^ flip);
    memcpy(p, &v, 8);
}

/* 0x00 becomes 00 FF, and the end 00 00; what stood in out from `at` on is rewritten in place, from its end. */
static ck_status escape(ck_bytes *out, size_t at) {
    size_t n = out->n - at, zeros = 0;
    if (n > 0 && !memchr(out->p + at, 0, n)) return ck_bytes_append(out, "\0\0", 2);
    for (size_t i = 0; i < n; i++) zeros += out->p[at + i] == 0;
    CK_TRY(ck_bytes_reserve(out, zeros + 2));
    char *from = out->p + out->n, *to = from + zeros;
    to[0] = to[1] = 0;
    out->n += zeros + 2;
    while (to > from) { /* the rest stays where it is */
        *--to = *--from;
        if (*to) continue;
        *to = (char)0xFF;
        *--to = 0;
    }
    return CK_OK;
}

static ck_status append_bytes(const ck_order_spec *o, const ck_column *c, uint32_t row, ck_bytes *out) {
    size_t at = out->n;
    if (c->phys == CK_PHYS_VIEW)
        CK_TRY(ck_bytes_view(out, ck_column_str(c, row)));
    else
        CK_TRY(ck_packed_append(o->type, c, row, false, out));
    CK_TRY(escape(out, at));
    if (o->descending)
        for (; at < out->n; at++) out->p[at] = (char)~out->p[at];
    return CK_OK;
}

static ck_status append_value(const ck_order_spec *o, const ck_column *c, uint32_t row, ck_bytes *out) {
    const uint64_t flip = o->descending ? ~0ULL : 0;
    CK_TRY(ck_bytes_reserve(out, 16));
    char *p = out->p + out->n;
    switch (c->phys) {
    case CK_PHYS_NULL: return CK_OK;
    case CK_PHYS_BOOL: put_be(p, ordered_i64(ck_bit_get(c->bits, row)), flip); break;
    case CK_PHYS_I64: put_be(p, ordered_i64(c->i64[row]), flip); break;
    case CK_PHYS_F64: put_be(p, ordered_f64(c->f64[row]), flip); break;
    case CK_PHYS_I128:
        put_be(p, (uint64_t)((ck_u128)c->i128[row] >> 64) ^ sign_bit, flip);
        put_be(p + 8, (uint64_t)c->i128[row], flip);
        out->n += 8;
        break;
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: return append_bytes(o, c, row, out);
    }
    out->n += 8;
    return CK_OK;
}

ck_status ck_order_encode(const ck_order_spec *cols, uint32_t count, const ck_batch *b, uint32_t row, ck_bytes *out) {
    size_t start = out->n;
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < count && s == CK_OK; i++) {
        const ck_order_spec *o = &cols[i];
        const ck_column *c = b->columns[o->column];
        bool null = ck_column_is_null(c, row);
        if (o->nullable)
            s = ck_bytes_char(out, null ? (o->nulls_first ? 0 : 2) : 1);
        else if (null)
            s = CK_INVALID;
        if (!null && s == CK_OK) s = append_value(o, c, row, out);
    }
    if (s == CK_OK && out->n - start > CK_KEY_BYTES_MAX) s = CK_FULL;
    if (s != CK_OK) out->n = start;
    return s;
}

/* ---- decoding ---- */

/* Finds the end of an escaped string: *n counts its bytes, *encoded those it takes with the end mark. */
static bool measure(const ck_cursor *c, uint8_t flip, size_t *n, size_t *encoded) {
    *n = 0;
    for (size_t i = 0; i < c->left; i++, ++*n) {
        if ((uint8_t)(c->p[i] ^ flip) != 0) continue;
        if (++i == c->left) return false;
        uint8_t mark = c->p[i] ^ flip;
        *encoded = i + 1;
        if (mark == 0) return true;
        if (mark != 0xFF) return false;
    }
    return false;
}

static void unescape(const uint8_t *p, uint8_t flip, size_t n, char *to) {
    for (size_t i = 0; i < n; i++) {
        to[i] = (char)(*p++ ^ flip);
        p += to[i] == 0; /* the FF behind it */
    }
}

static ck_status decode_bytes(const ck_order_spec *o, ck_cursor *c, ck_column_builder *out) {
    uint8_t flip = o->descending ? 0xFF : 0;
    size_t n, encoded;
    if (!measure(c, flip, &n, &encoded)) return CK_CORRUPT;
    char some[256];
    char *plain = n <= sizeof some ? some : ck_alloc(out->mem, n);
    if (!plain) return CK_NOMEM;
    unescape(c->p, flip, n, plain);
    ck_status s = ck_packed_decode(o->type, (ck_view){plain, n}, out);
    if (plain != some) ck_free(out->mem, plain, n);
    *c = (ck_cursor){c->p + encoded, c->left - encoded};
    return s;
}

static ck_status decode_value(const ck_order_spec *o, ck_cursor *c, ck_column_builder *out) {
    const uint64_t flip = o->descending ? ~0ULL : 0;
    uint64_t u, low;
    if (out->phys == CK_PHYS_NULL) return CK_CORRUPT;
    if (out->phys == CK_PHYS_VIEW || out->phys == CK_PHYS_LIST || out->phys == CK_PHYS_STRUCT)
        return decode_bytes(o, c, out);
    if (!ck_cursor_u64be(c, &u)) return CK_CORRUPT;
    u ^= flip;
    if (out->phys == CK_PHYS_I64) return ck_build_i64(out, i64_of_ordered(u));
    if (out->phys == CK_PHYS_F64) return ck_build_f64(out, f64_of_ordered(u));
    if (out->phys == CK_PHYS_BOOL) return u - sign_bit > 1 ? CK_CORRUPT : ck_build_bool(out, u & 1);
    if (!ck_cursor_u64be(c, &low)) return CK_CORRUPT;
    return ck_build_i128(out, (ck_i128)((ck_u128)(u ^ sign_bit) << 64 | (low ^ flip)));
}

static ck_status decode_column(const ck_order_spec *o, ck_cursor *c, ck_column_builder *out) {
    if (o->nullable) {
        uint8_t mark;
        if (!ck_cursor_u8(c, &mark)) return CK_CORRUPT;
        if (mark == (o->nulls_first ? 0 : 2)) return ck_build_null(out);
        if (mark != 1) return CK_CORRUPT;
    }
    return decode_value(o, c, out);
}

ck_status ck_order_decode(const ck_order_spec *cols, uint32_t count, ck_view key, ck_column_builder *const *out) {
    if (key.n > CK_KEY_BYTES_MAX) return CK_CORRUPT;
    uint32_t length = count ? out[0]->length : 0;
    ck_cursor c = ck_cursor_of(key.p, key.n);
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < count && s == CK_OK; i++) s = decode_column(&cols[i], &c, out[i]);
    if (s == CK_OK && c.left) s = CK_CORRUPT;
    if (s != CK_OK) ck_builders_truncate(out, count, length);
    return s;
}
