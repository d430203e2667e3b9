/* Rows into Protocol Buffers. NULL is a field that is not there; where the schema has no such thing, the row has no
 * message. */
#include "format/message_int.h"

static ck_status put_message(const ck_proto_plan *p, ck_column *const *columns, uint32_t row, ck_bytes *out,
                             ck_error *err);

static ck_status put_tag(const ck_proto_field *f, unsigned wire, ck_bytes *out) {
    return ck_varint_write(out, (uint64_t)f->number << 3 | wire);
}

/* What was appended from `from` on gets its length in front. */
static ck_status count_from(size_t from, ck_bytes *out) {
    size_t n = out->n - from;
    CK_TRY(ck_varint_write(out, n));
    size_t head = out->n - from - n;
    char length[10];
    memcpy(length, out->p + from + n, head);
    memmove(out->p + from + head, out->p + from, n);
    memcpy(out->p + from, length, head);
    return CK_OK;
}

static ck_status no_place(const ck_field *f, const char *why, ck_error *err) {
    return ck_fail(err, CK_DATA, "column \"%.200s\" %s", f->name && f->name[0] ? f->name : "(element)", why);
}

static ck_status put_enum(const ck_proto_field *to, const ck_field *f, const ck_column *c, uint32_t row, ck_bytes *out,
                          ck_error *err) {
    if (f->type->kind != CK_TYPE_VARCHAR) return ck_varint_write(out, (uint64_t)c->i64[row]);
    ck_view v = ck_column_str(c, row);
    for (uint32_t i = 0; i < to->enums->count; i++)
        if (ck_view_is(v, to->enums->names[i])) return ck_varint_write(out, (uint64_t)(int64_t)to->enums->numbers[i]);
    return ck_fail(err, CK_DATA, "column \"%.200s\": '%.*s' is no name of %.200s", f->name,
                   (int)(v.n < 100 ? v.n : 100), v.p, to->enums->name);
}

static ck_status put_word(uint64_t v, unsigned n, ck_bytes *out) {
    return n == 8 ? ck_bytes_u64le(out, v) : ck_bytes_u32le(out, (uint32_t)v);
}

static ck_status put_real(const ck_proto_field *to, double d, ck_bytes *out) {
    float f = (float)d;
    uint64_t v = 0;
    if (to->kind == CK_PROTO_FLOAT)
        memcpy(&v, &f, sizeof f);
    else
        memcpy(&v, &d, sizeof d);
    return put_word(v, to->kind == CK_PROTO_FLOAT ? 4 : 8, out);
}

static ck_status put_whole(const ck_proto_field *to, const ck_field *f, int64_t v, ck_bytes *out, ck_error *err) {
    switch (to->kind) {
    case CK_PROTO_UINT32:
    case CK_PROTO_UINT64:
    case CK_PROTO_FIXED32:
    case CK_PROTO_FIXED64:
        if (v < 0) return no_place(f, "is negative, and the schema has no sign there", err);
        break;
    case CK_PROTO_SINT32:
    case CK_PROTO_SINT64: return ck_varint_write(out, ck_zigzag_encode(v));
    default: break;
    }
    unsigned wire = ck_proto_wire_type(to->kind);
    return wire == 0 ? ck_varint_write(out, (uint64_t)v) : put_word((uint64_t)v, wire == 1 ? 8 : 4, out);
}

/* A value without its tag, a counted one with its length. */
static ck_status put_scalar(const ck_proto_field *to, const ck_field *f, const ck_column *c, uint32_t row,
                            ck_bytes *out, ck_error *err) {
    switch (to->kind) {
    case CK_PROTO_DOUBLE:
    case CK_PROTO_FLOAT:
        return put_real(to, ck_kind_is_integer(f->type->kind) ? (double)c->i64[row] : c->f64[row], out);
    case CK_PROTO_BOOL: return ck_bytes_char(out, ck_bit_get(c->bits, row));
    case CK_PROTO_STRING:
    case CK_PROTO_BYTES: {
        ck_view v = ck_column_str(c, row);
        CK_TRY(ck_varint_write(out, v.n));
        return v.n ? ck_bytes_append(out, v.p, v.n) : CK_OK;
    }
    case CK_PROTO_ENUM: return put_enum(to, f, c, row, out, err);
    default: return put_whole(to, f, c->i64[row], out, err);
    }
}

static ck_status put_time(const ck_proto *m, int64_t us, ck_bytes *out) {
    int64_t seconds = us / 1000000 - (us % 1000000 < 0), nanos = (us - seconds * 1000000) * 1000;
    if (seconds) {
        CK_TRY(put_tag(&m->fields[0], 0, out));
        CK_TRY(ck_varint_write(out, (uint64_t)seconds));
    }
    if (!nanos) return CK_OK;
    CK_TRY(put_tag(&m->fields[1], 0, out));
    return ck_varint_write(out, (uint64_t)nanos);
}

/* A message's content. */
static ck_status put_content(const ck_proto_part *part, const ck_proto_field *to, const ck_field *f, const ck_column *c,
                             uint32_t row, ck_bytes *out, ck_error *err) {
    if (part->inner) return put_message(part->inner, c->children, row, out, err);
    if (ck_proto_is_time(to->message)) return put_time(to->message, c->i64[row], out);
    const ck_proto_field *inner = &to->message->fields[0];
    CK_TRY(put_tag(inner, ck_proto_wire_type(inner->kind), out));
    return put_scalar(inner, f, c, row, out, err);
}

/* A value that is not NULL, with its tag. */
static ck_status put_single(const ck_proto_part *part, const ck_field *f, const ck_column *c, uint32_t row,
                            ck_bytes *out, ck_error *err) {
    const ck_proto_field *to = part->from;
    CK_TRY(put_tag(to, ck_proto_wire_type(to->kind), out));
    if (!to->message) return put_scalar(to, f, c, row, out, err);
    size_t from = out->n;
    CK_TRY(put_content(part, to, f, c, row, out, err));
    return count_from(from, out);
}

static ck_status put_list(const ck_proto_part *part, const ck_column *c, uint32_t row, ck_bytes *out, ck_error *err) {
    const ck_field *element = &part->field->type->fields[0];
    const ck_column *values = c->children[0];
    int32_t first = c->offsets[row], end = c->offsets[row + 1];
    if (part->from->packed && first < end) CK_TRY(put_tag(part->from, 2, out));
    size_t from = out->n;
    for (int32_t i = first; i < end; i++) {
        if (ck_column_is_null(values, (size_t)i))
            return no_place(part->field, "holds a NULL element, and protobuf has none", err);
        if (part->from->packed)
            CK_TRY(put_scalar(part->from, element, values, (uint32_t)i, out, err));
        else
            CK_TRY(put_single(part, element, values, (uint32_t)i, out, err));
    }
    return part->from->packed && first < end ? count_from(from, out) : CK_OK;
}

static ck_status put_map(const ck_proto_part *part, const ck_column *c, uint32_t row, ck_bytes *out, ck_error *err) {
    const ck_column *entries = c->children[0];
    for (int32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
        CK_TRY(put_tag(part->from, 2, out));
        size_t from = out->n;
        for (uint32_t k = 0; k < 2; k++) {
            const ck_proto_part *p = &part->inner->parts[k];
            if (ck_column_is_null(entries->children[k], (size_t)i))
                return no_place(part->field, "holds a NULL in a map, and protobuf has none", err);
            CK_TRY(put_single(p, p->field, entries->children[k], (uint32_t)i, out, err));
        }
        CK_TRY(count_from(from, out));
    }
    return CK_OK;
}

static ck_status put_part(const ck_proto_part *part, const ck_column *c, uint32_t row, ck_bytes *out, ck_error *err) {
    if (ck_column_is_null(c, row)) {
        if (part->from->presence && !part->from->required) return CK_OK;
        return no_place(part->field, "is NULL, and the schema has no absence there (optional)", err);
    }
    if (part->from->message && part->from->message->map_entry) return put_map(part, c, row, out, err);
    return part->from->repeated ? put_list(part, c, row, out, err) : put_single(part, part->field, c, row, out, err);
}

static ck_status put_message(const ck_proto_plan *p, ck_column *const *columns, uint32_t row, ck_bytes *out,
                             ck_error *err) {
    for (uint32_t i = 0; i < p->message->field_count; i++)
        if (p->parts[i].field) CK_TRY(put_part(&p->parts[i], columns[p->parts[i].to], row, out, err));
    return CK_OK;
}

ck_status ck_proto_write_row(const ck_proto_plan *p, const ck_batch *b, uint32_t row, ck_bytes *out, ck_error *err) {
    return put_message(p, b->columns, row, out, err);
}
