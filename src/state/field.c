/* Fields of rows from columns and back. */
#include "state/table_int.h"

#include "data/row.h"

/* A nested value as its packed bytes, without the length in front; valid until the next use of the table's scratch. */
static ck_status pack(ck_table *t, const ck_shape_field *f, const ck_column *c, uint32_t c_row, ck_view *out) {
    ck_field field = {.name = f->name, .type = f->type, .nullable = false};
    ck_bytes_clear(&t->scratch);
    CK_TRY(ck_row_encode(&field, 1, &c, c_row, &t->scratch));
    *out = (ck_view){t->scratch.p + 4, t->scratch.n - 4};
    return CK_OK;
}

static void set_null(ck_table *t, ck_row *row, const ck_shape_field *f) {
    if (ck_phys_is_var(f->phys)) ck_var_drop(t, row, f);
    memset(row + f->offset, 0, f->width);
    ck_row_set_null(row, f->null_bit, true);
}

ck_status ck_table_set_field(ck_table *t, ck_row *row, uint32_t field, const ck_column *c, uint32_t c_row) {
    const ck_shape_field *f = &t->shape->fields[field];
    if (ck_column_is_null(c, c_row)) {
        if (f->null_bit == UINT32_MAX) return CK_INVALID;
        set_null(t, row, f);
        return CK_OK;
    }
    ck_view v;
    switch (f->phys) {
    case CK_PHYS_NULL: break;
    case CK_PHYS_BOOL: ck_row_set_bool(row, f->offset, ck_bit_get(c->bits, c_row)); break;
    case CK_PHYS_I64: ck_row_set_i64(row, f->offset, c->i64[c_row]); break;
    case CK_PHYS_F64: ck_row_set_f64(row, f->offset, c->f64[c_row]); break;
    case CK_PHYS_I128: ck_row_set_i128(row, f->offset, c->i128[c_row]); break;
    case CK_PHYS_VIEW: return ck_var_set(t, row, f, ck_column_str(c, c_row));
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: CK_TRY(pack(t, f, c, c_row, &v)); return ck_var_set(t, row, f, v);
    }
    if (f->null_bit != UINT32_MAX) ck_row_set_null(row, f->null_bit, false);
    return CK_OK;
}

/* Packed bytes back into a nested builder. */
static ck_status unpack(ck_bytes *scratch, const ck_shape_field *f, ck_view v, ck_column_builder *out) {
    ck_field field = {.name = f->name, .type = f->type, .nullable = false};
    ck_bytes_clear(scratch);
    CK_TRY(ck_bytes_u32le(scratch, (uint32_t)v.n));
    CK_TRY(ck_bytes_view(scratch, v));
    ck_status s = ck_row_decode(&field, 1, ck_bytes_as_view(scratch), &out);
    CK_ASSERT(s == CK_OK || s == CK_NOMEM); /* our own bytes */
    return s;
}

static ck_status gather_one(const ck_table *t, const ck_shape_field *f, const ck_row *row, ck_bytes *scratch,
                            ck_column_builder *out) {
    if (f->phys == CK_PHYS_NULL || ck_row_null(row, f->null_bit)) return ck_build_null(out);
    switch (f->phys) {
    case CK_PHYS_NULL: break;
    case CK_PHYS_BOOL: return ck_build_bool(out, ck_row_bool(row, f->offset));
    case CK_PHYS_I64: return ck_build_i64(out, ck_row_i64(row, f->offset));
    case CK_PHYS_F64: return ck_build_f64(out, ck_row_f64(row, f->offset));
    case CK_PHYS_I128: return ck_build_i128(out, ck_row_i128(row, f->offset));
    case CK_PHYS_VIEW: {
        ck_view v = ck_var_get(t, row, f->offset);
        return ck_build_str(out, v.p, v.n);
    }
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return unpack(scratch, f, ck_var_get(t, row, f->offset), out);
}

ck_status ck_table_gather_field(const ck_table *t, const ck_row *const *rows, uint32_t n, uint32_t field,
                                ck_column_builder *out) {
    const ck_shape_field *f = &t->shape->fields[field];
    ck_bytes scratch;
    ck_bytes_init(&scratch, t->mem, UINT32_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < n && s == CK_OK; i++) s = gather_one(t, f, rows[i], &scratch, out);
    ck_bytes_destroy(&scratch);
    return s;
}

bool ck_table_same_field(const ck_table *t, uint32_t field, const ck_row *a, const ck_row *b) {
    const ck_row_field *f = &ck_table_layout(t)->fields[field];
    bool null = ck_row_null(a, f->null_bit);
    if (null != ck_row_null(b, f->null_bit)) return false;
    if (null) return true;
    switch (f->phys) {
    case CK_PHYS_NULL: return true;
    case CK_PHYS_BOOL: return a[f->offset] == b[f->offset];
    case CK_PHYS_I64:
    case CK_PHYS_F64: return memcmp(a + f->offset, b + f->offset, 8) == 0;
    case CK_PHYS_I128: return memcmp(a + f->offset, b + f->offset, 16) == 0;
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return ck_view_eq(ck_table_str(t, a, field), ck_table_str(t, b, field));
}
