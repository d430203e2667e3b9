/* Literals as columns of one row, and back. */
#include "expr/eval_int.h"

static ck_status string_literal(ck_column *c, ck_view v) {
    if (v.n <= CK_STRVIEW_INLINE) {
        c->views[0] = ck_strview_inline(v.p, v.n);
        return CK_OK;
    }
    ck_buffer *b = ck_buffer_new(c->mem, v.n);
    ck_heaps *h = b ? ck_heaps_new(c->mem, &b, 1) : NULL;
    if (h) {
        memcpy(b->p, v.p, v.n);
        c->views[0] = ck_strview_ref(v.p, v.n, 0, 0);
        ck_column_set_heaps(c, h);
    }
    ck_status s = h ? CK_OK : CK_NOMEM;
    ck_heaps_unref(&h);
    ck_buffer_unref(&b);
    return s;
}

ck_status ck_literal_column(ck_mem mem, const ck_type *type, const ck_datum *value, ck_column **out, ck_error *err) {
    ck_phys phys = ck_type_phys(type);
    ck_column *c = value->null ? ck_column_new_null(mem, phys, 1) : ck_column_new(mem, phys, 1);
    ck_status s = c ? CK_OK : CK_NOMEM;
    if (c && !value->null) {
        switch (phys) {
        case CK_PHYS_BOOL: c->bits[0] = value->b; break;
        case CK_PHYS_I64: c->i64[0] = value->i64; break;
        case CK_PHYS_F64: c->f64[0] = value->f64; break;
        case CK_PHYS_I128: c->i128[0] = value->i128; break;
        case CK_PHYS_VIEW: s = string_literal(c, value->str); break;
        default: CK_ASSERT(false && "literals are scalars"); break;
        }
    }
    if (s != CK_OK) {
        ck_column_unref(&c);
        return ck_nomem(err, mem, value->null ? 64 : 64 + (phys == CK_PHYS_VIEW ? value->str.n : 0));
    }
    *out = c;
    return CK_OK;
}

ck_datum ck_column_datum(const ck_column *c, uint32_t row) {
    ck_datum d = {.null = ck_column_is_null(c, row)};
    if (d.null) return d;
    switch (c->phys) {
    case CK_PHYS_BOOL: d.b = ck_bit_get(c->bits, row); break;
    case CK_PHYS_I64: d.i64 = c->i64[row]; break;
    case CK_PHYS_F64: d.f64 = c->f64[row]; break;
    case CK_PHYS_I128: d.i128 = c->i128[row]; break;
    case CK_PHYS_VIEW: d.str = ck_column_str(c, row); break;
    default: d.null = true; break;
    }
    return d;
}
