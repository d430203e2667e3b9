/* The wire format is protobuf's: fields of a tag (number and wire type), then a varint, 8 or 4 bytes, or a length and
 * as many bytes. */
#include "cluster/proto.h"

enum { WIRE_VARINT = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5, DEPTH_MAX = 4, FIELD_NUMBER_MAX = 1 << 29 };

static const void *at(const void *message, const ck_proto_field *f) { return (const char *)message + f->offset; }

/* ---- writing ---- */

static size_t varint_bytes(uint64_t v) {
    size_t n = 1;
    for (; v >= 128; v >>= 7) n++;
    return n;
}

static uint8_t *put_varint(uint8_t *to, uint64_t v) {
    for (; v >= 128; v >>= 7) *to++ = (uint8_t)(v | 128);
    *to++ = (uint8_t)v;
    return to;
}

static uint64_t zigzag(int64_t v) { return (uint64_t)v << 1 ^ (uint64_t)(v >> 63); }

static uint64_t number_of(const ck_proto_field *f, const void *p) {
    int64_t s;
    uint64_t u;
    memcpy(&u, p, sizeof u);
    memcpy(&s, p, sizeof s);
    return f->kind == CK_PROTO_SINT ? zigzag(s) : u;
}

static size_t packed_bytes(const ck_proto_uints *l) {
    size_t n = 0;
    for (uint32_t i = 0; i < l->count; i++) n += varint_bytes(l->items[i]);
    return n;
}

static const void *item_of(const ck_proto_field *f, const ck_proto_list *l, uint32_t i) {
    return (const char *)l->items + i * f->of->bytes;
}

static size_t with_head(const ck_proto_field *f, size_t n) {
    return varint_bytes((uint64_t)f->number << 3) + varint_bytes(n) + n;
}

static size_t field_bytes(const ck_proto_field *f, const void *p) {
    switch (f->kind) {
    case CK_PROTO_UINT:
    case CK_PROTO_SINT: {
        uint64_t v = number_of(f, p);
        return v ? varint_bytes((uint64_t)f->number << 3) + varint_bytes(v) : 0;
    }
    case CK_PROTO_TEXT:
    case CK_PROTO_BYTES: {
        const ck_view *v = p;
        return v->n ? with_head(f, v->n) : 0;
    }
    case CK_PROTO_UINTS: {
        const ck_proto_uints *l = p;
        return l->count ? with_head(f, packed_bytes(l)) : 0;
    }
    case CK_PROTO_LIST: {
        const ck_proto_list *l = p;
        size_t n = 0;
        for (uint32_t i = 0; i < l->count; i++) n += with_head(f, ck_proto_bytes(f->of, item_of(f, l, i)));
        return n;
    }
    }
    return 0;
}

size_t ck_proto_bytes(const ck_proto_type *t, const void *message) {
    size_t n = 0;
    for (size_t i = 0; i < t->field_count; i++) n += field_bytes(&t->fields[i], at(message, &t->fields[i]));
    return n;
}

static uint8_t *put_head(uint8_t *to, const ck_proto_field *f, size_t n) {
    return put_varint(put_varint(to, (uint64_t)f->number << 3 | WIRE_BYTES), n);
}

static uint8_t *put_field(uint8_t *to, const ck_proto_field *f, const void *p) {
    switch (f->kind) {
    case CK_PROTO_UINT:
    case CK_PROTO_SINT: {
        uint64_t v = number_of(f, p);
        return v ? put_varint(put_varint(to, (uint64_t)f->number << 3 | WIRE_VARINT), v) : to;
    }
    case CK_PROTO_TEXT:
    case CK_PROTO_BYTES: {
        const ck_view *v = p;
        if (!v->n) return to;
        to = put_head(to, f, v->n);
        memcpy(to, v->p, v->n);
        return to + v->n;
    }
    case CK_PROTO_UINTS: {
        const ck_proto_uints *l = p;
        if (!l->count) return to;
        to = put_head(to, f, packed_bytes(l));
        for (uint32_t i = 0; i < l->count; i++) to = put_varint(to, l->items[i]);
        return to;
    }
    case CK_PROTO_LIST: {
        const ck_proto_list *l = p;
        for (uint32_t i = 0; i < l->count; i++) {
            const void *item = item_of(f, l, i);
            to = ck_proto_write(f->of, item, put_head(to, f, ck_proto_bytes(f->of, item)));
        }
        return to;
    }
    }
    return to;
}

uint8_t *ck_proto_write(const ck_proto_type *t, const void *message, uint8_t *to) {
    for (size_t i = 0; i < t->field_count; i++) to = put_field(to, &t->fields[i], at(message, &t->fields[i]));
    return to;
}

/* ---- reading ---- */

static bool get_varint(ck_view *in, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < 10 && i < in->n; i++) {
        uint8_t b = (uint8_t)in->p[i];
        if (i == 9 && b > 1) return false; /* more than 64 bits */
        v |= (uint64_t)(b & 127) << (7 * i);
        if (b & 128) continue;
        in->p += i + 1, in->n -= i + 1;
        *out = v;
        return true;
    }
    return false;
}

static bool get_bytes(ck_view *in, uint64_t n, ck_view *out) {
    if (n > in->n) return false;
    *out = (ck_view){in->p, (size_t)n};
    in->p += n, in->n -= (size_t)n;
    return true;
}

/* One field as it stands: a number, or the bytes of one. */
typedef struct raw_field {
    uint64_t number, value;
    uint32_t wire;
    ck_view bytes;
} raw_field;

static bool get_field(ck_view *in, raw_field *out) {
    uint64_t tag, n = 0;
    if (!get_varint(in, &tag)) return false;
    *out = (raw_field){.number = tag >> 3, .wire = (uint32_t)(tag & 7)};
    if (out->number == 0 || out->number >= FIELD_NUMBER_MAX) return false;
    switch (out->wire) {
    case WIRE_VARINT: return get_varint(in, &out->value);
    case WIRE_8: return get_bytes(in, 8, &out->bytes);
    case WIRE_4: return get_bytes(in, 4, &out->bytes);
    case WIRE_BYTES: return get_varint(in, &n) && get_bytes(in, n, &out->bytes);
    default: return false;
    }
}

typedef struct reader {
    ck_arena *arena;
    ck_error *err;
    int depth;
} reader;

static ck_status bad(const reader *r, const ck_proto_type *t, const ck_proto_field *f, const char *what) {
    if (!f) return ck_fail(r->err, CK_CORRUPT, "a %s message %s", t->name, what);
    return ck_fail(r->err, CK_CORRUPT, "a %s message whose %s %s", t->name, f->name, what);
}

static bool is_text(ck_view v) {
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if ((c < 32 && c != '\t' && c != '\n') || c == 127) return false;
    }
    return true;
}

static ck_status read_uints(const reader *r, const ck_proto_type *t, const ck_proto_field *f, ck_view in,
                            ck_proto_uints *out) {
    uint64_t count = 0, v;
    for (size_t i = 0; i < in.n; i++) count += !(in.p[i] & 128);
    if (out->count) return bad(r, t, f, "comes in pieces");
    if (count > f->max) return bad(r, t, f, "has too many items");
    uint32_t *items = ck_arena_array(r->arena, (size_t)count, sizeof *items);
    if (!items) return ck_nomem(r->err, r->arena->mem, (size_t)count * sizeof *items);
    for (uint32_t i = 0; in.n; i++) {
        if (!get_varint(&in, &v) || v > UINT32_MAX) return bad(r, t, f, "cannot be read");
        items[i] = (uint32_t)v;
    }
    *out = (ck_proto_uints){items, (uint32_t)count};
    return CK_OK;
}

static ck_status read_message(const reader *r, const ck_proto_type *t, ck_view in, void *out);

static ck_status read_item(const reader *r, const ck_proto_type *t, const ck_proto_field *f, ck_view in,
                           ck_proto_list *out) {
    const reader inner = {r->arena, r->err, r->depth + 1};
    if (inner.depth > DEPTH_MAX) return bad(r, t, f, "is nested too deep");
    return read_message(&inner, f->of, in, (char *)(uintptr_t)out->items + out->count++ * f->of->bytes);
}

static ck_status read_field(const reader *r, const ck_proto_type *t, const ck_proto_field *f, const raw_field *raw,
                            void *p) {
    bool number = f->kind == CK_PROTO_UINT || f->kind == CK_PROTO_SINT;
    if (raw->wire != (number ? WIRE_VARINT : WIRE_BYTES)) return bad(r, t, f, "is of another kind");
    switch (f->kind) {
    case CK_PROTO_UINT:
        if (f->max && raw->value > f->max) return bad(r, t, f, "is too large");
        memcpy(p, &raw->value, sizeof raw->value);
        return CK_OK;
    case CK_PROTO_SINT: {
        uint64_t v = raw->value >> 1 ^ (0 - (raw->value & 1));
        memcpy(p, &v, sizeof v);
        return CK_OK;
    }
    case CK_PROTO_TEXT:
        if (!is_text(raw->bytes)) return bad(r, t, f, "has control characters");
        __attribute__((fallthrough));
    case CK_PROTO_BYTES:
        if (raw->bytes.n > f->max) return bad(r, t, f, "is too long");
        memcpy(p, &raw->bytes, sizeof raw->bytes);
        return CK_OK;
    case CK_PROTO_UINTS: return read_uints(r, t, f, raw->bytes, p);
    case CK_PROTO_LIST: return read_item(r, t, f, raw->bytes, p);
    }
    return CK_OK;
}

static const ck_proto_field *find(const ck_proto_type *t, uint64_t number) {
    for (size_t i = 0; i < t->field_count; i++)
        if (t->fields[i].number == number) return &t->fields[i];
    return NULL;
}

/* Lists get their memory before anything is read into them, as much as there is. */
static ck_status make_lists(const reader *r, const ck_proto_type *t, ck_view in, void *out) {
    for (size_t i = 0; i < t->field_count; i++) {
        const ck_proto_field *f = &t->fields[i];
        if (f->kind != CK_PROTO_LIST) continue;
        raw_field raw;
        uint64_t count = 0;
        for (ck_view rest = in; rest.n && get_field(&rest, &raw);) count += raw.number == f->number;
        if (count > f->max) return bad(r, t, f, "has too many items");
        ck_proto_list l = {ck_arena_array(r->arena, (size_t)count, f->of->bytes), 0};
        if (!l.items) return ck_nomem(r->err, r->arena->mem, (size_t)count * f->of->bytes);
        memcpy((char *)out + f->offset, &l, sizeof l);
    }
    return CK_OK;
}

static ck_status read_message(const reader *r, const ck_proto_type *t, ck_view in, void *out) {
    raw_field raw;
    memset(out, 0, t->bytes);
    CK_TRY(make_lists(r, t, in, out));
    while (in.n) {
        if (!get_field(&in, &raw)) return bad(r, t, NULL, "that is cut or damaged");
        const ck_proto_field *f = find(t, raw.number);
        if (f) CK_TRY(read_field(r, t, f, &raw, (char *)out + f->offset));
    }
    return CK_OK;
}

ck_status ck_proto_read(const ck_proto_type *t, ck_view in, ck_arena *a, void *out, ck_error *err) {
    const reader r = {a, err, 0};
    return read_message(&r, t, in, out);
}
