/* See row.h for the layout. Encoding goes over the values twice: once for the size, which also checks them, then
 * writing what cannot fail. */
#include "data/row_int.h"

#include "data/key.h"

/* ---- shapes ---- */

static bool is_variable(ck_phys phys) { return phys == CK_PHYS_VIEW || phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT; }

static size_t fixed_width(ck_phys phys) {
    switch (phys) {
    case CK_PHYS_BOOL: return 1;
    case CK_PHYS_I64:
    case CK_PHYS_F64: return 8;
    case CK_PHYS_I128: return 16;
    default: return 0;
    }
}

/* A value of the type of NULL is nothing but NULL: it has a bit whatever the field says, so that no element of a list
 * has zero bytes and counts stay bounded by what is there. */
static bool is_nullable(const ck_field *f) { return f->nullable || f->type->kind == CK_TYPE_NULL; }

static size_t null_bytes(const ck_field *fields, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (is_nullable(&fields[i])) return (count + 7) / 8;
    return 0;
}

/* ---- size ---- */

static ck_status row_bytes(const ck_field *fields, uint32_t count, const ck_column *const *cols, uint32_t row,
                           size_t *bytes) {
    size_t n = null_bytes(fields, count);
    for (uint32_t i = 0; i < count; i++) {
        ck_phys phys = ck_type_phys(fields[i].type);
        n += fixed_width(phys);
        if (ck_column_is_null(cols[i], row)) {
            if (!is_nullable(&fields[i])) return CK_INVALID;
        } else if (is_variable(phys)) {
            size_t part;
            CK_TRY(ck_packed_bytes(fields[i].type, cols[i], row, &part));
            n += 4 + part;
        }
    }
    *bytes = n;
    return CK_OK;
}

/* Columns behind the one-field or two-field rows that ARRAY and MAP consist of. */
static const ck_column *const *elements(const ck_type *t, const ck_column *c) {
    return t->kind == CK_TYPE_MAP ? (const ck_column *const *)c->children[0]->children
                                  : (const ck_column *const *)c->children;
}

ck_status ck_packed_bytes(const ck_type *t, const ck_column *c, uint32_t row, size_t *bytes) {
    if (c->phys == CK_PHYS_VIEW) {
        *bytes = (size_t)c->views[row].length;
        return CK_OK;
    }
    size_t n = 0;
    if (c->phys == CK_PHYS_STRUCT) {
        CK_TRY(row_bytes(t->fields, t->field_count, (const ck_column *const *)c->children, row, &n));
    } else {
        n = 4;
        for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
            size_t part;
            CK_TRY(row_bytes(t->fields, t->field_count, elements(t, c), (uint32_t)i, &part));
            n += part;
        }
    }
    *bytes = n;
    return n > UINT32_MAX ? CK_FULL : CK_OK;
}

/* ---- writing ---- */

static void put_u32(ck_pack_sink *s, uint32_t v) { s->put(s, &v, 4); } /* we run on little-endian machines only */

static void put_null_bits(ck_pack_sink *s, const ck_field *fields, uint32_t count, const ck_column *const *cols,
                          uint32_t row) {
    if (null_bytes(fields, count) == 0) return;
    for (uint32_t i = 0; i < count; i += 8) {
        uint8_t bits = 0;
        for (uint32_t j = i; j < count && j < i + 8; j++) bits |= (uint8_t)(ck_column_is_null(cols[j], row) << (j - i));
        s->put(s, &bits, 1);
    }
}

static void put_fixed(ck_pack_sink *s, const ck_column *c, ck_phys phys, uint32_t row, bool nested) {
    static const char zeros[16];
    if (ck_column_is_null(c, row)) {
        s->put(s, zeros, fixed_width(phys));
    } else if (phys == CK_PHYS_BOOL) {
        uint8_t b = ck_bit_get(c->bits, row);
        s->put(s, &b, 1);
    } else if (phys == CK_PHYS_F64) {
        double d = nested ? ck_double_canonical(c->f64[row]) : c->f64[row];
        s->put(s, &d, 8);
    } else {
        size_t width = fixed_width(phys);
        s->put(s, (const char *)c->data + row * width, width);
    }
}

static void put_row(ck_pack_sink *s, const ck_field *fields, uint32_t count, const ck_column *const *cols, uint32_t row,
                    bool nested) {
    put_null_bits(s, fields, count, cols, row);
    bool variable = false;
    for (uint32_t i = 0; i < count; i++) {
        ck_phys phys = ck_type_phys(fields[i].type);
        if (is_variable(phys))
            variable = true;
        else
            put_fixed(s, cols[i], phys, row, nested);
    }
    for (uint32_t i = 0; variable && i < count; i++) {
        if (!is_variable(ck_type_phys(fields[i].type)) || ck_column_is_null(cols[i], row)) continue;
        size_t bytes = 0;
        if (ck_packed_bytes(fields[i].type, cols[i], row, &bytes) != CK_OK) bytes = 0; /* was checked */
        put_u32(s, (uint32_t)bytes);
        ck_packed_put(fields[i].type, cols[i], row, s);
    }
}

void ck_packed_put(const ck_type *t, const ck_column *c, uint32_t row, ck_pack_sink *s) {
    if (c->phys == CK_PHYS_VIEW) {
        ck_view v = ck_column_str(c, row);
        s->put(s, v.p, v.n);
    } else if (c->phys == CK_PHYS_STRUCT) {
        put_row(s, t->fields, t->field_count, (const ck_column *const *)c->children, row, true);
    } else {
        put_u32(s, (uint32_t)(c->offsets[row + 1] - c->offsets[row]));
        for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++)
            put_row(s, t->fields, t->field_count, elements(t, c), (uint32_t)i, true);
    }
}

typedef struct memory_sink {
    ck_pack_sink base;
    char *p;
} memory_sink;

static void memory_put(ck_pack_sink *s, const void *p, size_t n) {
    memory_sink *m = (memory_sink *)s;
    if (n) memcpy(m->p, p, n);
    m->p += n;
}

ck_status ck_packed_append(const ck_type *t, const ck_column *c, uint32_t row, bool with_length, ck_bytes *out) {
    size_t bytes;
    CK_TRY(ck_packed_bytes(t, c, row, &bytes));
    CK_TRY(ck_bytes_reserve(out, bytes + 4));
    memory_sink s = {{memory_put}, out->p + out->n};
    if (with_length) put_u32(&s.base, (uint32_t)bytes);
    ck_packed_put(t, c, row, &s.base);
    out->n = (size_t)(s.p - out->p);
    return CK_OK;
}

ck_status ck_row_encode(const ck_field *fields, uint32_t count, const ck_column *const *cols, uint32_t row,
                        ck_bytes *out) {
    size_t bytes;
    CK_TRY(row_bytes(fields, count, cols, row, &bytes));
    if (bytes == 0) return CK_OK;
    CK_TRY(ck_bytes_reserve(out, bytes));
    memory_sink s = {{memory_put}, out->p + out->n};
    put_row(&s.base, fields, count, cols, row, false);
    out->n += bytes;
    CK_DASSERT(s.p == out->p + out->n);
    return CK_OK;
}

/* ---- reading ---- */

static ck_status decode_fixed(ck_cursor *c, ck_phys phys, bool is_null, ck_column_builder *out) {
    ck_view bytes;
    if (!ck_cursor_take(c, fixed_width(phys), &bytes)) return CK_CORRUPT;
    if (is_null) return ck_build_null(out); /* whatever the bytes are */
    int64_t i;
    double d;
    ck_i128 wide;
    switch (phys) {
    case CK_PHYS_BOOL: return (uint8_t)bytes.p[0] > 1 ? CK_CORRUPT : ck_build_bool(out, bytes.p[0]);
    case CK_PHYS_I64: memcpy(&i, bytes.p, 8); return ck_build_i64(out, i);
    case CK_PHYS_F64: memcpy(&d, bytes.p, 8); return ck_build_f64(out, d);
    case CK_PHYS_I128: memcpy(&wide, bytes.p, 16); return ck_build_i128(out, wide);
    default: return CK_CORRUPT; /* a value of the type of NULL */
    }
}

/* One packed row off the cursor; fields[i] goes to out[i], or to &inner[i] where out is NULL. */
static ck_status decode_row(const ck_field *fields, uint32_t count, ck_cursor *c, ck_column_builder *const *out,
                            ck_column_builder *inner) {
    ck_view bits;
    if (!ck_cursor_take(c, null_bytes(fields, count), &bits)) return CK_CORRUPT;
    if (bits.n && count % 8 && (uint8_t)bits.p[bits.n - 1] >> count % 8) return CK_CORRUPT;
    for (uint32_t i = 0; i < count; i++) {
        bool is_null = bits.n && ((uint8_t)bits.p[i >> 3] >> (i & 7) & 1);
        if (is_null && !is_nullable(&fields[i])) return CK_CORRUPT;
        ck_column_builder *b = out ? out[i] : &inner[i];
        ck_phys phys = ck_type_phys(fields[i].type);
        if (!is_variable(phys))
            CK_TRY(decode_fixed(c, phys, is_null, b));
        else if (is_null)
            CK_TRY(ck_build_null(b));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_variable(ck_type_phys(fields[i].type))) continue;
        if (bits.n && ((uint8_t)bits.p[i >> 3] >> (i & 7) & 1)) continue;
        uint32_t n;
        ck_view part;
        if (!ck_cursor_u32le(c, &n) || !ck_cursor_take(c, n, &part)) return CK_CORRUPT;
        CK_TRY(ck_packed_decode(fields[i].type, part, out ? out[i] : &inner[i]));
    }
    return CK_OK;
}

static ck_status decode_elements(const ck_type *t, ck_cursor *c, ck_column_builder *out) {
    bool map = t->kind == CK_TYPE_MAP;
    ck_column_builder *element = &out->children[0];
    uint32_t n;
    if (!ck_cursor_u32le(c, &n) || n > c->left) return CK_CORRUPT; /* an element is a byte at least */
    for (uint32_t i = 0; i < n; i++) {
        CK_TRY(decode_row(t->fields, t->field_count, c, NULL, map ? element->children : element));
        if (map) CK_TRY(ck_build_end(element));
    }
    return CK_OK;
}

ck_status ck_packed_decode(const ck_type *t, ck_view bytes, ck_column_builder *out) {
    if (out->phys == CK_PHYS_VIEW) return bytes.n > INT32_MAX ? CK_CORRUPT : ck_build_str(out, bytes.p, bytes.n);
    ck_cursor c = ck_cursor_of(bytes.p, bytes.n);
    if (out->phys == CK_PHYS_STRUCT)
        CK_TRY(decode_row(t->fields, t->field_count, &c, NULL, out->children));
    else
        CK_TRY(decode_elements(t, &c, out));
    return c.left ? CK_CORRUPT : ck_build_end(out);
}

void ck_builders_truncate(ck_column_builder *const *b, uint32_t count, uint32_t length) {
    for (uint32_t i = 0; i < count; i++) ck_column_builder_truncate(b[i], length);
}

ck_status ck_row_decode(const ck_field *fields, uint32_t count, ck_view value, ck_column_builder *const *out) {
    ck_cursor c = ck_cursor_of(value.p, value.n);
    uint32_t length = count ? out[0]->length : 0;
    for (uint32_t i = 0; i < count; i++) CK_DASSERT(out[i]->length == length);
    ck_status s = decode_row(fields, count, &c, out, NULL);
    if (s == CK_OK && c.left) s = CK_CORRUPT;
    if (s != CK_OK) ck_builders_truncate(out, count, length);
    return s;
}
