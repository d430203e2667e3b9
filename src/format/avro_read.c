/* Avro's binary form into rows: a plan made once for each schema a record may be written with, walked for each record.
 * What the table does not have is walked over. */
#include "format/message_int.h"

/* ---- the plan ---- */

typedef struct planner {
    ck_arena *a;
    bool lenient;
    const char *path; /* of the field at hand: a.b */
    unsigned depth;
    ck_error *err;
} planner;

static ck_status plan(planner *p, const ck_avro *t, const ck_field *f, const ck_avro_read **out);

static bool decimal_fits(const ck_avro *t, const ck_type *to) {
    return t->scale <= to->scale && t->precision - t->scale <= to->precision - to->scale;
}

/* Whether each value of a type that is not nested has its place in a column. */
static bool scalar_fits(const ck_avro *t, const ck_type *to) {
    ck_kind k = to->kind;
    switch (t->logical) {
    case CK_AVRO_PLAIN: break;
    case CK_AVRO_DECIMAL: return k == CK_TYPE_DECIMAL ? decimal_fits(t, to) : k == CK_TYPE_BYTES;
    case CK_AVRO_DATE: return k == CK_TYPE_DATE;
    case CK_AVRO_TIME_MILLIS:
    case CK_AVRO_TIME_MICROS: return k == CK_TYPE_TIME;
    case CK_AVRO_TIMESTAMP_MILLIS:
    case CK_AVRO_TIMESTAMP_MICROS: return k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ || k == CK_TYPE_BIGINT;
    case CK_AVRO_LOCAL_MILLIS:
    case CK_AVRO_LOCAL_MICROS: return k == CK_TYPE_TIMESTAMP || k == CK_TYPE_BIGINT;
    }
    switch (t->kind) {
    case CK_AVRO_BOOLEAN: return k == CK_TYPE_BOOLEAN;
    case CK_AVRO_INT: return ck_kind_is_integer(k) || k == CK_TYPE_DOUBLE; /* Avro has nothing narrower */
    case CK_AVRO_LONG: return k == CK_TYPE_BIGINT;
    case CK_AVRO_FLOAT: return k == CK_TYPE_REAL || k == CK_TYPE_DOUBLE;
    case CK_AVRO_DOUBLE: return k == CK_TYPE_DOUBLE;
    case CK_AVRO_STRING:
    case CK_AVRO_ENUM: return k == CK_TYPE_VARCHAR;
    case CK_AVRO_BYTES:
    case CK_AVRO_FIXED: return k == CK_TYPE_BYTES;
    default: return false;
    }
}

static ck_status misfit(planner *p, const ck_avro *t, const ck_field *f) {
    return ck_fail(p->err, CK_DATA, "field \"%.200s\" of the schema is %s, and the table has %s there", p->path,
                   ck_avro_print(p->a, t), ck_type_name(p->a, f->type));
}

static ck_status nomem(planner *p) { return ck_nomem(p->err, p->a->mem, sizeof(ck_avro_read)); }

static ck_status plan_record(planner *p, const ck_avro *t, const ck_field *fields, uint32_t count, ck_avro_read *r) {
    bool *seen = ck_arena_array(p->a, count + 1, sizeof *seen);
    const char *around = p->path;
    r->parts = ck_arena_array(p->a, t->count + 1, sizeof *r->parts);
    if (!seen || !r->parts) return nomem(p);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t to = 0;
        while (to < count && strcmp(fields[to].name, t->names[i]) != 0) to++;
        if (to == count) continue;
        p->path = around ? ck_arena_printf(p->a, "%s.%s", around, t->names[i]) : t->names[i];
        const ck_avro_read *part;
        if (!p->path) return nomem(p);
        CK_TRY(plan(p, t->types[i], &fields[to], &part));
        ((ck_avro_read *)(uintptr_t)part)->to = to;
        r->parts[i] = part;
        seen[to] = true;
    }
    p->path = around;
    return ck_message_missing(p->a, fields, count, seen, p->lenient, around, &r->missing, &r->missing_count, p->err);
}

static ck_status plan_union(planner *p, const ck_avro *t, const ck_field *f, ck_avro_read *r) {
    r->parts = ck_arena_array(p->a, t->count + 1, sizeof *r->parts);
    if (!r->parts) return nomem(p);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->types[i]->kind != CK_AVRO_NULL) CK_TRY(plan(p, t->types[i], f, &r->parts[i]));
    return CK_OK;
}

static ck_status plan_part(planner *p, const ck_avro *t, const ck_field *f, ck_avro_read *r) {
    r->parts = ck_arena_array(p->a, 1, sizeof *r->parts);
    return r->parts ? plan(p, t->types[0], f, &r->parts[0]) : nomem(p);
}

static ck_status plan_value(planner *p, const ck_avro *t, const ck_field *f, ck_avro_read *r) {
    ck_kind k = f->type->kind;
    if (t->kind == CK_AVRO_UNION) return plan_union(p, t, f, r);
    if (t->kind == CK_AVRO_NULL) return CK_OK;
    if (t->kind == CK_AVRO_RECORD && k == CK_TYPE_ROW)
        return plan_record(p, t, f->type->fields, f->type->field_count, r);
    if (t->kind == CK_AVRO_ARRAY && k == CK_TYPE_ARRAY) return plan_part(p, t, &f->type->fields[0], r);
    if (t->kind == CK_AVRO_MAP && k == CK_TYPE_MAP && f->type->fields[0].type->kind == CK_TYPE_VARCHAR)
        return plan_part(p, t, &f->type->fields[1], r);
    return scalar_fits(t, f->type) ? CK_OK : misfit(p, t, f);
}

static ck_status plan(planner *p, const ck_avro *t, const ck_field *f, const ck_avro_read **out) {
    ck_avro_read *r = CK_ARENA_NEW(p->a, ck_avro_read);
    if (!r) return nomem(p);
    *r = (ck_avro_read){.type = t, .field = f};
    *out = r;
    if (++p->depth > CK_MESSAGE_NESTED_MAX) return ck_fail(p->err, CK_DATA, "the schema is nested too deeply");
    ck_status s = plan_value(p, t, f, r);
    p->depth--;
    return s;
}

ck_status ck_avro_read_plan(ck_arena *a, const ck_avro *t, const ck_schema *table, bool lenient,
                            const ck_avro_read **out, ck_error *err) {
    planner p = {.a = a, .lenient = lenient, .err = err};
    if (t->kind != CK_AVRO_RECORD)
        return ck_fail(err, CK_DATA, "the schema is %s, and a row is made of a record", ck_avro_print(a, t));
    ck_avro_read *r = CK_ARENA_NEW(a, ck_avro_read);
    if (!r) return nomem(&p);
    r->type = t;
    *out = r;
    return plan_record(&p, t, table->fields, table->field_count, r);
}

/* ---- the bytes ---- */

static ck_status short_of(ck_messages *m) { return ck_why_set(m->why, "the message ends in the middle of a value"); }

static ck_status read_long(ck_messages *m, int64_t *out) {
    uint64_t v;
    if (!ck_varint_read(&m->p, m->end, &v)) return short_of(m);
    *out = ck_zigzag_decode(v);
    return CK_OK;
}

static ck_status read_bytes(ck_messages *m, ck_view *out) {
    int64_t n = 0;
    CK_TRY(read_long(m, &n));
    if (n < 0 || n > m->end - m->p) return short_of(m);
    *out = (ck_view){(const char *)m->p, (size_t)n};
    m->p += n;
    return CK_OK;
}

static ck_status read_word(ck_messages *m, unsigned n, uint64_t *out) {
    ck_cursor c = {m->p, (size_t)(m->end - m->p)};
    if (!ck_cursor_le(&c, n, out)) return short_of(m);
    m->p += n;
    return CK_OK;
}

static ck_status read_index(ck_messages *m, const ck_avro *t, uint32_t *out) {
    int64_t at = 0;
    CK_TRY(read_long(m, &at));
    *out = (uint32_t)at;
    if (at >= 0 && at < t->count) return CK_OK;
    return ck_why_set(m->why, "%s has no %s %lld", t->kind == CK_AVRO_UNION ? "the union" : t->name,
                      t->kind == CK_AVRO_UNION ? "branch" : "symbol", (long long)at);
}

/* A block's number of items; 0: the end. bytes: of the block, -1 where it is not said. */
static ck_status read_block(ck_messages *m, int64_t *count, int64_t *bytes) {
    *bytes = -1;
    CK_TRY(read_long(m, count));
    if (*count >= 0) return CK_OK;
    if (*count == INT64_MIN) return short_of(m);
    *count = -*count;
    CK_TRY(read_long(m, bytes));
    return *bytes < 0 || *bytes > m->end - m->p ? short_of(m) : CK_OK;
}

/* ---- what nobody wants ---- */

static ck_status skip(ck_messages *m, const ck_avro *t, unsigned depth);

static ck_status skip_blocks(ck_messages *m, const ck_avro *t, unsigned depth) {
    int64_t count = 0, bytes;
    for (;;) {
        CK_TRY(read_block(m, &count, &bytes));
        if (count == 0) return CK_OK;
        if (bytes >= 0) {
            m->p += bytes;
            continue;
        }
        for (; count; count--) {
            ck_view key;
            CK_TRY(ck_messages_element(m));
            if (t->kind == CK_AVRO_MAP) CK_TRY(read_bytes(m, &key));
            CK_TRY(skip(m, t->types[0], depth + 1));
        }
    }
}

static ck_status skip(ck_messages *m, const ck_avro *t, unsigned depth) {
    int64_t number = 0;
    uint64_t word = 0;
    uint32_t branch;
    ck_view bytes;
    if (depth > CK_MESSAGE_NESTED_MAX) return ck_why_set(m->why, "the message is nested too deeply");
    switch (t->kind) {
    case CK_AVRO_NULL: return CK_OK;
    case CK_AVRO_BOOLEAN: return read_word(m, 1, &word);
    case CK_AVRO_INT:
    case CK_AVRO_LONG:
    case CK_AVRO_ENUM: return read_long(m, &number);
    case CK_AVRO_FLOAT: return read_word(m, 4, &word);
    case CK_AVRO_DOUBLE: return read_word(m, 8, &word);
    case CK_AVRO_BYTES:
    case CK_AVRO_STRING: return read_bytes(m, &bytes);
    case CK_AVRO_FIXED:
        if (t->bytes > (size_t)(m->end - m->p)) return short_of(m);
        m->p += t->bytes;
        return CK_OK;
    case CK_AVRO_UNION: CK_TRY(read_index(m, t, &branch)); return skip(m, t->types[branch], depth + 1);
    case CK_AVRO_RECORD:
        for (uint32_t i = 0; i < t->count; i++) CK_TRY(skip(m, t->types[i], depth + 1));
        return CK_OK;
    case CK_AVRO_ARRAY:
    case CK_AVRO_MAP: return skip_blocks(m, t, depth);
    }
    return CK_OK;
}

/* ---- values ---- */

static ck_status value(ck_messages *m, const ck_avro_read *r, ck_slot to);

/* Two's complement, the greatest byte first. */
static ck_status put_decimal(ck_messages *m, const ck_avro_read *r, ck_view v, ck_slot to) {
    const uint8_t *p = (const uint8_t *)v.p, *end = p + v.n;
    uint8_t sign = v.n && p[0] & 0x80 ? 0xFF : 0;
    while (end - p > 1 && p[0] == sign && (p[1] & 0x80) == (sign & 0x80)) p++;
    if (end - p > 16) return ck_why_set(m->why, "a decimal of %zu bytes is too large", v.n);
    ck_u128 u = sign ? ~(ck_u128)0 : 0;
    while (p < end) u = u << 8 | *p++;
    return ck_put_decimal(m, to, (ck_i128)u, r->type->scale);
}

static ck_status put_long(ck_messages *m, const ck_avro_read *r, int64_t v, ck_slot to) {
    bool integer = to.field->type->kind == CK_TYPE_BIGINT; /* a time is taken as the number it is */
    switch (r->type->logical) {
    case CK_AVRO_TIME_MILLIS:
    case CK_AVRO_TIMESTAMP_MILLIS:
    case CK_AVRO_LOCAL_MILLIS: return integer ? ck_put_i64(m, to, v) : ck_put_time(m, to, v, 1000);
    case CK_AVRO_TIME_MICROS:
    case CK_AVRO_TIMESTAMP_MICROS:
    case CK_AVRO_LOCAL_MICROS: return integer ? ck_put_i64(m, to, v) : ck_put_time(m, to, v, 1);
    default: break;
    }
    return to.field->type->kind == CK_TYPE_DOUBLE ? ck_put_f64(m, to, (double)v) : ck_put_i64(m, to, v);
}

static ck_status put_bytes(ck_messages *m, const ck_avro_read *r, ck_view v, ck_slot to) {
    if (to.field->type->kind == CK_TYPE_DECIMAL) return put_decimal(m, r, v, to);
    return ck_put_bytes(m, to, v.p, v.n, false);
}

static ck_status put_record(ck_messages *m, const ck_avro_read *r, ck_slot to) {
    const ck_type *row = to.field->type;
    for (uint32_t i = 0; i < r->type->count; i++) {
        const ck_avro_read *part = r->parts[i];
        if (part)
            CK_TRY(value(m, part, ck_slot_inside(part->field, &to.builder->children[part->to])));
        else
            CK_TRY(skip(m, r->type->types[i], 0));
    }
    for (uint32_t i = 0; i < r->missing_count; i++)
        CK_TRY(ck_put_null(m, ck_slot_inside(&row->fields[r->missing[i]], &to.builder->children[r->missing[i]]),
                           "missing"));
    return ck_build_end(to.builder);
}

static ck_status put_blocks(ck_messages *m, const ck_avro_read *r, ck_slot to) {
    const ck_type *t = to.field->type;
    bool map = r->type->kind == CK_AVRO_MAP;
    ck_column_builder *elements = &to.builder->children[0];
    int64_t count = 0, bytes;
    for (;;) {
        CK_TRY(read_block(m, &count, &bytes));
        if (count == 0) return ck_build_end(to.builder);
        for (; count; count--) {
            ck_view key;
            CK_TRY(ck_messages_element(m));
            if (map) {
                CK_TRY(read_bytes(m, &key));
                CK_TRY(ck_put_bytes(m, ck_slot_inside(&t->fields[0], &elements->children[0]), key.p, key.n, false));
            }
            CK_TRY(value(m, r->parts[0], ck_slot_inside(&t->fields[map], map ? &elements->children[1] : elements)));
            if (map) CK_TRY(ck_build_end(elements));
        }
    }
}

static ck_status value(ck_messages *m, const ck_avro_read *r, ck_slot to) {
    const ck_avro *t = r->type;
    int64_t number = 0;
    uint64_t word = 0;
    uint32_t at;
    ck_view bytes;
    switch (t->kind) {
    case CK_AVRO_NULL: return ck_put_null(m, to, "null");
    case CK_AVRO_BOOLEAN:
        CK_TRY(read_word(m, 1, &word));
        return word > 1 ? ck_why_set(m->why, "a boolean is %u", (unsigned)word) : ck_put_bool(m, to, word);
    case CK_AVRO_INT:
    case CK_AVRO_LONG:
        CK_TRY(read_long(m, &number));
        if (t->kind == CK_AVRO_INT && number != (int32_t)number)
            return ck_why_set(m->why, "an int is %lld", (long long)number);
        return put_long(m, r, number, to);
    case CK_AVRO_FLOAT: {
        CK_TRY(read_word(m, 4, &word));
        uint32_t half = (uint32_t)word;
        float f;
        memcpy(&f, &half, sizeof f);
        return ck_put_f64(m, to, (double)f);
    }
    case CK_AVRO_DOUBLE: {
        CK_TRY(read_word(m, 8, &word));
        double d;
        memcpy(&d, &word, sizeof d);
        return ck_put_f64(m, to, d);
    }
    case CK_AVRO_BYTES:
    case CK_AVRO_STRING: CK_TRY(read_bytes(m, &bytes)); return put_bytes(m, r, bytes, to);
    case CK_AVRO_FIXED:
        bytes = (ck_view){(const char *)m->p, t->bytes};
        CK_TRY(skip(m, t, 0));
        return put_bytes(m, r, bytes, to);
    case CK_AVRO_ENUM:
        CK_TRY(read_index(m, t, &at));
        return ck_put_bytes(m, to, t->names[at], strlen(t->names[at]), true);
    case CK_AVRO_UNION:
        CK_TRY(read_index(m, t, &at));
        return r->parts[at] ? value(m, r->parts[at], to) : ck_put_null(m, to, "null");
    case CK_AVRO_RECORD: return put_record(m, r, to);
    case CK_AVRO_ARRAY:
    case CK_AVRO_MAP: return put_blocks(m, r, to);
    }
    return CK_OK;
}

ck_status ck_avro_decode(ck_messages *m, const ck_avro_read *r) {
    for (uint32_t i = 0; i < r->type->count; i++) {
        const ck_avro_read *part = r->parts[i];
        int32_t at = part ? m->target_of[part->to] : -1;
        m->why->field = at >= 0 ? part->field->name : r->type->names[i];
        if (at >= 0)
            CK_TRY(value(m, part, ck_slot_column(&m->rows->targets[at])));
        else
            CK_TRY(skip(m, r->type->types[i], 0));
    }
    m->why->field = NULL;
    for (uint32_t i = 0; i < r->missing_count; i++) {
        int32_t at = m->target_of[r->missing[i]];
        if (at >= 0) CK_TRY(ck_put_null(m, ck_slot_column(&m->rows->targets[at]), "missing"));
    }
    if (m->p == m->end) return CK_OK;
    return ck_why_set(m->why, "%zu bytes stand behind the message", (size_t)(m->end - m->p));
}
