/* Protocol Buffers into rows, in two passes over a message: the first notes where each wanted field stands, since
 * fields may come in any order, in parts and several times, the second puts them into their columns. */
#include "format/message_int.h"

static ck_status damaged(ck_messages *m) { return ck_why_set(m->why, "the message ends in the middle of a field"); }

/* ---- the first pass ---- */

static ck_status push_heads(ck_messages *m, uint32_t n) {
    if (n > m->head_capacity - m->head_count) {
        uint32_t want = m->head_capacity * 2 > m->head_count + n ? m->head_capacity * 2 : m->head_count + n;
        void *p = ck_realloc(m->mem, m->heads, m->head_capacity * sizeof *m->heads, want * sizeof *m->heads);
        if (!p) return CK_NOMEM;
        m->heads = p;
        m->head_capacity = want;
    }
    memset(m->heads + m->head_count, 0, n * sizeof *m->heads);
    m->head_count += n;
    return CK_OK;
}

static ck_status push_found(ck_messages *m, uint32_t head, ck_proto_found f) {
    if (m->found_count == m->found_capacity) {
        uint32_t want = m->found_capacity ? m->found_capacity * 2 : 64;
        void *p = ck_realloc(m->mem, m->found, m->found_capacity * sizeof *m->found, want * sizeof *m->found);
        if (!p) return CK_NOMEM;
        m->found = p;
        m->found_capacity = want;
    }
    ck_proto_head *h = &m->heads[head];
    m->found[m->found_count++] = f;
    if (h->last)
        m->found[h->last - 1].next = m->found_count;
    else
        h->first = m->found_count;
    h->last = m->found_count;
    h->count++;
    return CK_OK;
}

/* Index of the part with that number; the one after the last found is looked at first. */
static uint32_t part_of(const ck_proto_plan *r, uint32_t number, uint32_t guess) {
    uint32_t n = r->message->field_count, lo = 0, hi = n;
    if (guess < n && r->parts[guess].from->number == number) return guess;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (r->parts[mid].from->number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && r->parts[lo].from->number == number ? lo : UINT32_MAX;
}

static bool counted(const uint8_t **p, const uint8_t *end, ck_view *out) {
    uint64_t n;
    if (!ck_varint_read(p, end, &n) || n > (uint64_t)(end - *p)) return false;
    *out = (ck_view){(const char *)*p, (size_t)n};
    *p += n;
    return true;
}

/* One field's value. Of a group, which nobody wants, all up to its end. */
static ck_status read_field(ck_messages *m, unsigned wire, const uint8_t **p, const uint8_t *end, unsigned depth,
                            ck_proto_found *out) {
    ck_cursor c = {*p, (size_t)(end - *p)};
    uint64_t tag;
    *out = (ck_proto_found){.wire = (uint8_t)wire};
    switch (wire) {
    case 0: return ck_varint_read(p, end, &out->number) ? CK_OK : damaged(m);
    case 1:
    case 5:
        if (!ck_cursor_le(&c, wire == 1 ? 8 : 4, &out->number)) return damaged(m);
        *p = c.p;
        return CK_OK;
    case 2: return counted(p, end, &out->bytes) ? CK_OK : damaged(m);
    case 3:
        if (depth > CK_MESSAGE_NESTED_MAX) return ck_why_set(m->why, "the message is nested too deeply");
        for (ck_proto_found ignored;;) {
            if (!ck_varint_read(p, end, &tag)) return damaged(m);
            if ((tag & 7) == 4) return CK_OK;
            CK_TRY(read_field(m, tag & 7, p, end, depth + 1, &ignored));
        }
    default: return ck_why_set(m->why, "the message has a field of the unknown wire type %u", wire);
    }
}

/* *base: where the heads of the message's fields are. */
static ck_status scan(ck_messages *m, const ck_proto_plan *r, ck_view bytes, uint32_t *base) {
    const uint8_t *p = (const uint8_t *)bytes.p, *end = p + bytes.n;
    uint32_t guess = 0;
    *base = m->head_count;
    CK_TRY(push_heads(m, r->message->field_count));
    while (p < end) {
        uint64_t tag;
        ck_proto_found f;
        if (!ck_varint_read(&p, end, &tag)) return damaged(m);
        if (tag >> 3 == 0 || tag >> 3 > 536870911)
            return ck_why_set(m->why, "the message has a field without a number");
        CK_TRY(read_field(m, tag & 7, &p, end, 0, &f));
        uint32_t i = part_of(r, (uint32_t)(tag >> 3), guess);
        if (i == UINT32_MAX) continue;
        guess = i + 1;
        const ck_proto_field *from = r->parts[i].from;
        bool packed = from->repeated && f.wire == 2 && ck_proto_wire_type(from->kind) != 2;
        if (r->parts[i].field && (packed || f.wire == ck_proto_wire_type(from->kind)))
            CK_TRY(push_found(m, *base + i, f));
    }
    return CK_OK;
}

/* ---- values ---- */

static ck_status put_message(ck_messages *m, const ck_proto_plan *r, ck_view bytes, ck_slot to);

static int64_t whole(ck_proto_kind k, uint64_t v) {
    switch (k) {
    case CK_PROTO_INT32:
    case CK_PROTO_SFIXED32:
    case CK_PROTO_ENUM: return (int32_t)(uint32_t)v;
    case CK_PROTO_UINT32:
    case CK_PROTO_FIXED32: return (int64_t)(uint32_t)v;
    case CK_PROTO_SINT32:
    case CK_PROTO_SINT64: return ck_zigzag_decode(v);
    default: return (int64_t)v;
    }
}

static ck_status put_enum(ck_messages *m, const ck_proto_field *from, int64_t v, ck_slot to) {
    if (to.field->type->kind != CK_TYPE_VARCHAR) return ck_put_i64(m, to, v);
    for (uint32_t i = 0; i < from->enums->count; i++)
        if (from->enums->numbers[i] == v)
            return ck_put_bytes(m, to, from->enums->names[i], strlen(from->enums->names[i]), true);
    return ck_why_set(m->why, "%.200s has no name for %lld", from->enums->name, (long long)v);
}

static ck_status put_number(ck_messages *m, const ck_proto_field *from, uint64_t v, ck_slot to) {
    ck_kind k = to.field->type->kind;
    if (from->kind == CK_PROTO_BOOL) return ck_put_bool(m, to, v != 0);
    if (from->kind == CK_PROTO_ENUM) return put_enum(m, from, whole(from->kind, v), to);
    if (from->kind == CK_PROTO_DOUBLE) {
        double d;
        memcpy(&d, &v, sizeof d);
        return ck_put_f64(m, to, d);
    }
    if (from->kind == CK_PROTO_FLOAT) {
        uint32_t half = (uint32_t)v;
        float f;
        memcpy(&f, &half, sizeof f);
        return ck_put_f64(m, to, (double)f);
    }
    if (k == CK_TYPE_DECIMAL) return ck_put_decimal(m, to, (ck_i128)v, 0);
    if ((from->kind == CK_PROTO_UINT64 || from->kind == CK_PROTO_FIXED64) && v > INT64_MAX)
        return ck_why_set(m->why, "%llu is out of range for BIGINT", (unsigned long long)v);
    int64_t n = whole(from->kind, v);
    return k == CK_TYPE_DOUBLE ? ck_put_f64(m, to, (double)n) : ck_put_i64(m, to, n);
}

/* The fields 1 and 2 of a message of numbers. */
static ck_status two_numbers(ck_messages *m, ck_view bytes, int64_t out[2]) {
    const uint8_t *p = (const uint8_t *)bytes.p, *end = p + bytes.n;
    out[0] = out[1] = 0;
    while (p < end) {
        uint64_t tag;
        ck_proto_found f;
        if (!ck_varint_read(&p, end, &tag)) return damaged(m);
        CK_TRY(read_field(m, tag & 7, &p, end, 0, &f));
        if ((tag >> 3 == 1 || tag >> 3 == 2) && f.wire == 0) out[(tag >> 3) - 1] = (int64_t)f.number;
    }
    return CK_OK;
}

/* What is below a microsecond is cut, as in texts. */
static ck_status put_time(ck_messages *m, ck_view bytes, ck_slot to) {
    int64_t v[2];
    CK_TRY(two_numbers(m, bytes, v));
    if (v[0] < -62135596800 || v[0] > 253402300799 || v[1] < 0 || v[1] > 999999999)
        return ck_why_set(m->why, "%lld seconds and %lld nanoseconds are no moment", (long long)v[0], (long long)v[1]);
    return ck_put_time(m, to, v[0] * 1000000 + v[1] / 1000, 1);
}

static ck_status put_value(ck_messages *m, const ck_proto_part *part, const ck_proto_field *from, ck_proto_found f,
                           ck_slot to);

static ck_status put_wrapped(ck_messages *m, const ck_proto_part *part, const ck_proto_field *from, ck_view bytes,
                             ck_slot to) {
    const ck_proto_field *inner = &from->message->fields[0];
    const uint8_t *p = (const uint8_t *)bytes.p, *end = p + bytes.n;
    ck_proto_found value = {.wire = (uint8_t)ck_proto_wire_type(inner->kind)};
    if (value.wire == 2) value.bytes = (ck_view){bytes.p, 0};
    while (p < end) {
        uint64_t tag;
        ck_proto_found f;
        if (!ck_varint_read(&p, end, &tag)) return damaged(m);
        CK_TRY(read_field(m, tag & 7, &p, end, 0, &f));
        if (tag >> 3 == 1 && f.wire == value.wire) value = f;
    }
    return put_value(m, part, inner, value, to);
}

static ck_status put_value(ck_messages *m, const ck_proto_part *part, const ck_proto_field *from, ck_proto_found f,
                           ck_slot to) {
    if (from->kind == CK_PROTO_STRING || from->kind == CK_PROTO_BYTES)
        return ck_put_bytes(m, to, f.bytes.p, f.bytes.n, false);
    if (from->kind != CK_PROTO_MESSAGE) return put_number(m, from, f.number, to);
    if (part->inner) return put_message(m, part->inner, f.bytes, to);
    if (ck_proto_is_time(from->message)) return put_time(m, f.bytes, to);
    return put_wrapped(m, part, from, f.bytes, to);
}

/* What a field that is not there is. */
static ck_status put_absent(ck_messages *m, const ck_proto_part *part, ck_slot to) {
    ck_proto_found zero = {.wire = (uint8_t)ck_proto_wire_type(part->from->kind)};
    if (part->from->presence) return ck_put_null(m, to, "missing");
    if (zero.wire == 2) zero.bytes = (ck_view){(const char *)m->buf->p, 0};
    return put_value(m, part, part->from, zero, to);
}

static ck_status put_packed(ck_messages *m, const ck_proto_part *part, ck_view bytes, ck_slot element) {
    const uint8_t *p = (const uint8_t *)bytes.p, *end = p + bytes.n;
    while (p < end) {
        ck_proto_found f;
        CK_TRY(ck_messages_element(m));
        CK_TRY(read_field(m, ck_proto_wire_type(part->from->kind), &p, end, 0, &f));
        CK_TRY(put_value(m, part, part->from, f, element));
    }
    return CK_OK;
}

static ck_status put_list(ck_messages *m, const ck_proto_part *part, uint32_t head, ck_slot to) {
    ck_slot element = ck_slot_inside(&part->field->type->fields[0], &to.builder->children[0]);
    for (uint32_t i = m->heads[head].first; i; i = m->found[i - 1].next) {
        ck_proto_found f = m->found[i - 1];
        if (f.wire == 2 && ck_proto_wire_type(part->from->kind) != 2) {
            CK_TRY(put_packed(m, part, f.bytes, element));
            continue;
        }
        CK_TRY(ck_messages_element(m));
        CK_TRY(put_value(m, part, part->from, f, element));
    }
    return ck_build_end(to.builder);
}

static ck_status put_fields(ck_messages *m, const ck_proto_plan *r, uint32_t base, ck_column_builder *row);

static ck_status put_map(ck_messages *m, const ck_proto_part *part, uint32_t head, ck_slot to) {
    ck_column_builder *entry = &to.builder->children[0];
    for (uint32_t i = m->heads[head].first; i; i = m->found[i - 1].next) {
        uint32_t heads = m->head_count, found = m->found_count, base;
        CK_TRY(ck_messages_element(m));
        CK_TRY(scan(m, part->inner, m->found[i - 1].bytes, &base));
        CK_TRY(put_fields(m, part->inner, base, entry));
        CK_TRY(ck_build_end(entry));
        m->head_count = heads, m->found_count = found;
    }
    return ck_build_end(to.builder);
}

static ck_status put_part(ck_messages *m, const ck_proto_part *part, uint32_t head, ck_slot to) {
    const ck_proto *message = part->from->message;
    if (message && message->map_entry) return put_map(m, part, head, to);
    if (part->from->repeated) return put_list(m, part, head, to);
    ck_proto_head h = m->heads[head];
    if (h.count == 0) return put_absent(m, part, to);
    if (h.count > 1 && message)
        return ck_why_set(m->why, "the message has the field %.200s %u times", part->from->name, h.count);
    return put_value(m, part, part->from, m->found[h.last - 1], to);
}

/* row NULL: the columns of the table; else the children of a ROW, or of an entry of a MAP. */
static ck_status put_fields(ck_messages *m, const ck_proto_plan *r, uint32_t base, ck_column_builder *row) {
    for (uint32_t i = 0; i < r->message->field_count; i++) {
        const ck_proto_part *part = &r->parts[i];
        if (!part->field) continue;
        if (row) {
            CK_TRY(put_part(m, part, base + i, ck_slot_inside(part->field, &row->children[part->to])));
            continue;
        }
        int32_t at = m->target_of[part->to];
        m->why->field = part->field->name;
        if (at >= 0) CK_TRY(put_part(m, part, base + i, ck_slot_column(&m->rows->targets[at])));
    }
    return CK_OK;
}

static ck_status put_message(ck_messages *m, const ck_proto_plan *r, ck_view bytes, ck_slot to) {
    uint32_t heads = m->head_count, found = m->found_count, base;
    const ck_type *row = to.field->type;
    CK_TRY(scan(m, r, bytes, &base));
    CK_TRY(put_fields(m, r, base, to.builder));
    m->head_count = heads, m->found_count = found;
    for (uint32_t i = 0; i < r->missing_count; i++)
        CK_TRY(ck_put_null(m, ck_slot_inside(&row->fields[r->missing[i]], &to.builder->children[r->missing[i]]),
                           "missing"));
    return ck_build_end(to.builder);
}

ck_status ck_proto_decode(ck_messages *m, const ck_proto_plan *r) {
    uint32_t base;
    m->head_count = m->found_count = 0;
    CK_TRY(scan(m, r, (ck_view){(const char *)m->p, (size_t)(m->end - m->p)}, &base));
    CK_TRY(put_fields(m, r, base, NULL));
    m->why->field = NULL;
    for (uint32_t i = 0; i < r->missing_count; i++) {
        int32_t at = m->target_of[r->missing[i]];
        if (at >= 0) CK_TRY(ck_put_null(m, ck_slot_column(&m->rows->targets[at]), "missing"));
    }
    return CK_OK;
}
