/* Rows into Avro's binary form: a plan made once for the schema, walked for each row. A field that the table lacks
 * takes its default, whose bytes are made with the plan. */
#include <stdlib.h>

#include "expr/decimal.h"
#include "format/message_int.h"

/* ---- the plan ---- */

typedef struct planner {
    ck_arena *a;
    const char *path;
    unsigned depth;
    ck_error *err;
} planner;

static ck_status plan(planner *p, const ck_avro *t, const ck_field *f, ck_avro_write **out);

static ck_status nomem(planner *p) { return ck_nomem(p->err, p->a->mem, sizeof(ck_avro_write)); }

static bool time_fits(const ck_type *from, bool millis) { return !millis || from->precision <= 3; }

/* Whether a type that is not nested has a place for each value of a column; of a fixed or an enum each row decides. */
static bool scalar_fits(const ck_avro *t, const ck_type *from) {
    ck_kind k = from->kind;
    switch (t->logical) {
    case CK_AVRO_PLAIN: break;
    case CK_AVRO_DECIMAL:
        return k == CK_TYPE_DECIMAL && t->scale >= from->scale &&
               t->precision - t->scale >= from->precision - from->scale;
    case CK_AVRO_DATE: return k == CK_TYPE_DATE;
    case CK_AVRO_TIME_MILLIS:
    case CK_AVRO_TIME_MICROS: return k == CK_TYPE_TIME && time_fits(from, t->logical == CK_AVRO_TIME_MILLIS);
    case CK_AVRO_TIMESTAMP_MILLIS:
    case CK_AVRO_TIMESTAMP_MICROS:
        if (k == CK_TYPE_BIGINT) return true;
        return (k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ) &&
               time_fits(from, t->logical == CK_AVRO_TIMESTAMP_MILLIS);
    case CK_AVRO_LOCAL_MILLIS:
    case CK_AVRO_LOCAL_MICROS:
        if (k == CK_TYPE_BIGINT) return true;
        return k == CK_TYPE_TIMESTAMP && time_fits(from, t->logical == CK_AVRO_LOCAL_MILLIS);
    }
    switch (t->kind) {
    case CK_AVRO_BOOLEAN: return k == CK_TYPE_BOOLEAN;
    case CK_AVRO_INT: return ck_kind_is_integer(k) && k != CK_TYPE_BIGINT;
    case CK_AVRO_LONG: return ck_kind_is_integer(k);
    case CK_AVRO_FLOAT: return k == CK_TYPE_REAL;
    case CK_AVRO_DOUBLE: return ck_kind_is_float(k) || (ck_kind_is_integer(k) && k != CK_TYPE_BIGINT);
    case CK_AVRO_STRING:
    case CK_AVRO_ENUM: return k == CK_TYPE_VARCHAR;
    case CK_AVRO_BYTES:
    case CK_AVRO_FIXED: return k == CK_TYPE_BYTES;
    default: return false;
    }
}

/* ---- defaults ---- */

static ck_status put_default(planner *p, const ck_avro *t, yyjson_val *v, ck_bytes *out);

static ck_status put_text(const char *p, size_t n, ck_bytes *out) {
    CK_TRY(ck_varint_write(out, ck_zigzag_encode((int64_t)n)));
    return n ? ck_bytes_append(out, p, n) : CK_OK;
}

/* Bytes stand as text there, a character of up to U+00FF each. */
static ck_status put_byte_text(const ck_avro *t, yyjson_val *v, ck_bytes *out) {
    const char *s = yyjson_get_str(v), *end = s + yyjson_get_len(v);
    size_t from = out->n, n = 0;
    for (const char *c = s; c < end; c++) n += ((unsigned char)*c & 0xC0) != 0x80;
    if (t->kind == CK_AVRO_BYTES) CK_TRY(ck_varint_write(out, ck_zigzag_encode((int64_t)n)));
    for (; s < end; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 0xC4) return CK_DATA;
        CK_TRY(ck_bytes_char(out, (char)(c < 0x80 ? c : (unsigned char)((c & 3u) << 6 | ((unsigned)s[1] & 0x3F)))));
        s += c >= 0x80;
    }
    return t->kind == CK_AVRO_FIXED && out->n - from != t->bytes ? CK_DATA : CK_OK;
}

static ck_status put_default_record(planner *p, const ck_avro *t, yyjson_val *v, ck_bytes *out) {
    for (uint32_t i = 0; i < t->count; i++) {
        yyjson_val *x = yyjson_obj_get(v, t->names[i]);
        if (!x) x = t->defaults[i];
        CK_TRY(x ? put_default(p, t->types[i], x, out) : CK_DATA);
    }
    return CK_OK;
}

static ck_status put_default_items(planner *p, const ck_avro *t, yyjson_val *v, ck_bytes *out) {
    size_t i, n = yyjson_get_len(v);
    yyjson_val *key, *x;
    if (n) CK_TRY(ck_varint_write(out, ck_zigzag_encode((int64_t)n)));
    if (t->kind == CK_AVRO_ARRAY) {
        yyjson_arr_foreach(v, i, n, x) CK_TRY(put_default(p, t->types[0], x, out));
    } else {
        yyjson_obj_foreach(v, i, n, key, x) {
            CK_TRY(put_text(yyjson_get_str(key), yyjson_get_len(key), out));
            CK_TRY(put_default(p, t->types[0], x, out));
        }
    }
    return ck_bytes_char(out, 0);
}

/* CK_DATA: the value is none of the type. */
static ck_status put_default(planner *p, const ck_avro *t, yyjson_val *v, ck_bytes *out) {
    double d = yyjson_get_num(v);
    float f = (float)d;
    switch (t->kind) {
    case CK_AVRO_NULL: return yyjson_is_null(v) ? CK_OK : CK_DATA;
    case CK_AVRO_BOOLEAN: return yyjson_is_bool(v) ? ck_bytes_char(out, yyjson_get_bool(v)) : CK_DATA;
    case CK_AVRO_INT:
    case CK_AVRO_LONG: return yyjson_is_int(v) ? ck_varint_write(out, ck_zigzag_encode(yyjson_get_sint(v))) : CK_DATA;
    case CK_AVRO_FLOAT: return yyjson_is_num(v) ? ck_bytes_append(out, &f, sizeof f) : CK_DATA;
    case CK_AVRO_DOUBLE: return yyjson_is_num(v) ? ck_bytes_append(out, &d, sizeof d) : CK_DATA;
    case CK_AVRO_STRING: return yyjson_is_str(v) ? put_text(yyjson_get_str(v), yyjson_get_len(v), out) : CK_DATA;
    case CK_AVRO_BYTES:
    case CK_AVRO_FIXED: return yyjson_is_str(v) ? put_byte_text(t, v, out) : CK_DATA;
    case CK_AVRO_ENUM:
        for (uint32_t i = 0; yyjson_is_str(v) && i < t->count; i++)
            if (strcmp(t->names[i], yyjson_get_str(v)) == 0) return ck_varint_write(out, ck_zigzag_encode(i));
        return CK_DATA;
    case CK_AVRO_UNION: /* of the first branch; newer schemas may mean another one */
        for (uint32_t i = 0; i < t->count; i++) {
            size_t before = out->n;
            CK_TRY(ck_varint_write(out, ck_zigzag_encode(i)));
            ck_status s = put_default(p, t->types[i], v, out);
            if (s != CK_DATA) return s;
            out->n = before;
        }
        return CK_DATA;
    case CK_AVRO_RECORD: return yyjson_is_obj(v) ? put_default_record(p, t, v, out) : CK_DATA;
    case CK_AVRO_ARRAY: return yyjson_is_arr(v) ? put_default_items(p, t, v, out) : CK_DATA;
    case CK_AVRO_MAP: return yyjson_is_obj(v) ? put_default_items(p, t, v, out) : CK_DATA;
    }
    return CK_DATA;
}

/* A field that the table lacks: its default, or null where it may be. */
static ck_status plan_constant(planner *p, const ck_avro *t, yyjson_val *deflt, ck_avro_write *w) {
    ck_bytes text;
    ck_bytes_init(&text, p->a->mem, 1 << 20);
    ck_status s = CK_DATA;
    if (deflt) s = put_default(p, t, deflt, &text);
    for (uint32_t i = 0; !deflt && s == CK_DATA && t->kind == CK_AVRO_UNION && i < t->count; i++)
        if (t->types[i]->kind == CK_AVRO_NULL) s = ck_varint_write(&text, ck_zigzag_encode(i));
    if (!deflt && t->kind == CK_AVRO_NULL) s = CK_OK;
    if (s == CK_OK) {
        char *copy = ck_arena_strndup(p->a, text.n ? text.p : "", text.n);
        w->constant = (ck_view){copy, text.n};
        if (!copy) s = CK_NOMEM;
    }
    ck_bytes_destroy(&text);
    if (s == CK_DATA)
        return ck_fail(p->err, CK_DATA,
                       "field \"%.200s\" of the schema is %s without a %sdefault, and the table has no such column",
                       p->path, ck_avro_print(p->a, t), deflt ? "fitting " : "");
    return s == CK_OK ? CK_OK : nomem(p);
}

/* ---- planning ---- */

static ck_status misfit(planner *p, const ck_avro *t, const ck_field *f) {
    return ck_fail(p->err, CK_DATA, "field \"%.200s\" of the schema is %s, and the table has %s there", p->path,
                   ck_avro_print(p->a, t), ck_type_name(p->a, f->type));
}

static ck_status plan_record(planner *p, const ck_avro *t, const ck_field *fields, uint32_t count, ck_avro_write *w) {
    bool *seen = ck_arena_array(p->a, count + 1, sizeof *seen);
    const char *around = p->path;
    const uint32_t *missing;
    uint32_t missing_count;
    w->parts = ck_arena_array(p->a, t->count + 1, sizeof *w->parts);
    if (!seen || !w->parts) return nomem(p);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t from = 0;
        ck_avro_write *part = NULL;
        while (from < count && strcmp(fields[from].name, t->names[i]) != 0) from++;
        p->path = around ? ck_arena_printf(p->a, "%s.%s", around, t->names[i]) : t->names[i];
        if (!p->path) return nomem(p);
        if (from < count) {
            CK_TRY(plan(p, t->types[i], &fields[from], &part));
            seen[from] = true;
        } else if (!(part = CK_ARENA_NEW(p->a, ck_avro_write))) {
            return nomem(p);
        } else {
            CK_TRY(plan_constant(p, t->types[i], t->defaults[i], part));
        }
        part->from = from;
        w->parts[i] = part;
    }
    p->path = around;
    return ck_message_missing(p->a, fields, count, seen, false, around, &missing, &missing_count, p->err);
}

static ck_status plan_part(planner *p, const ck_avro *t, const ck_field *f, ck_avro_write *w) {
    ck_avro_write *part = NULL;
    w->parts = ck_arena_array(p->a, 1, sizeof *w->parts);
    if (!w->parts) return nomem(p);
    CK_TRY(plan(p, t->types[0], f, &part));
    w->parts[0] = part;
    return CK_OK;
}

static ck_status plan_value(planner *p, const ck_avro *t, const ck_field *f, ck_avro_write *w) {
    ck_kind k = f->type->kind;
    w->type = t;
    if (t->kind == CK_AVRO_RECORD && k == CK_TYPE_ROW)
        return plan_record(p, t, f->type->fields, f->type->field_count, w);
    if (t->kind == CK_AVRO_ARRAY && k == CK_TYPE_ARRAY) return plan_part(p, t, &f->type->fields[0], w);
    if (t->kind == CK_AVRO_MAP && k == CK_TYPE_MAP && f->type->fields[0].type->kind == CK_TYPE_VARCHAR)
        return plan_part(p, t, &f->type->fields[1], w);
    return t->kind != CK_AVRO_NULL && scalar_fits(t, f->type) ? CK_OK : misfit(p, t, f);
}

/* The first branch with a place for the column. */
static ck_status plan_union(planner *p, const ck_avro *t, const ck_field *f, ck_avro_write *w) {
    ck_error first = CK_ERROR_INIT, *err = p->err;
    ck_status s = CK_DATA;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->types[i]->kind == CK_AVRO_NULL) w->null_branch = (int32_t)i;
    for (uint32_t i = 0; s == CK_DATA && i < t->count; i++) {
        ck_error e = CK_ERROR_INIT;
        const char *path = p->path;
        if ((int32_t)i == w->null_branch) continue;
        p->err = &e;
        s = plan_value(p, t->types[i], f, w);
        p->err = err;
        p->path = path;
        w->branch = (int32_t)i;
        if (s != CK_OK && first.status == CK_OK) first = e;
    }
    if (s == CK_OK) return s;
    if (first.status == CK_OK) return misfit(p, t, f);
    if (err) *err = first;
    return s;
}

static ck_status plan(planner *p, const ck_avro *t, const ck_field *f, ck_avro_write **out) {
    ck_avro_write *w = CK_ARENA_NEW(p->a, ck_avro_write);
    if (!w) return nomem(p);
    *w = (ck_avro_write){.field = f, .branch = -1, .null_branch = -1};
    *out = w;
    if (++p->depth > CK_MESSAGE_NESTED_MAX) return ck_fail(p->err, CK_DATA, "the schema is nested too deeply");
    ck_status s = t->kind == CK_AVRO_UNION ? plan_union(p, t, f, w) : plan_value(p, t, f, w);
    p->depth--;
    return s;
}

ck_status ck_avro_write_plan(ck_arena *a, const ck_avro *t, const ck_schema *table, const ck_avro_write **out,
                             ck_error *err) {
    planner p = {.a = a, .err = err};
    if (t->kind != CK_AVRO_RECORD)
        return ck_fail(err, CK_DATA, "the schema is %s, and a row becomes a record", ck_avro_print(a, t));
    ck_avro_write *w = CK_ARENA_NEW(a, ck_avro_write);
    if (!w) return nomem(&p);
    w->type = t;
    *out = w;
    return plan_record(&p, t, table->fields, table->field_count, w);
}

/* ---- rows ---- */

static ck_status value(const ck_avro_write *w, const ck_column *c, uint32_t row, ck_bytes *out, ck_error *err);

static ck_status put_long(int64_t v, ck_bytes *out) { return ck_varint_write(out, ck_zigzag_encode(v)); }

static ck_status put_fixed(const ck_avro_write *w, ck_view v, ck_bytes *out, ck_error *err) {
    if (w->type->kind == CK_AVRO_BYTES) return put_text(v.p, v.n, out);
    if (v.n != w->type->bytes)
        return ck_fail(err, CK_DATA, "column \"%.200s\": %zu bytes are not the %u of %s", w->field->name, v.n,
                       w->type->bytes, w->type->name);
    return ck_bytes_append(out, v.p, v.n);
}

/* Two's complement, the greatest byte first: as few bytes as it takes, or as many as a fixed has. */
static ck_status put_decimal(const ck_avro_write *w, ck_i128 v, ck_bytes *out, ck_error *err) {
    v *= ck_pow10(w->type->scale - w->field->type->scale); /* it fits: the plan has looked */
    uint8_t all[16];
    for (int i = 15; i >= 0; i--, v >>= 8) all[i] = (uint8_t)v;
    uint8_t sign = all[0] & 0x80 ? 0xFF : 0;
    size_t from = 0;
    while (from < 15 && all[from] == sign && (all[from + 1] & 0x80) == (sign & 0x80)) from++;
    size_t n = 16 - from;
    if (w->type->kind == CK_AVRO_BYTES) return put_text((const char *)all + from, n, out);
    if (n > w->type->bytes)
        return ck_fail(err, CK_DATA, "column \"%.200s\": a decimal takes %zu bytes, and %s has %u", w->field->name, n,
                       w->type->name, w->type->bytes);
    for (size_t i = n; i < w->type->bytes; i++) CK_TRY(ck_bytes_char(out, (char)sign));
    return ck_bytes_append(out, all + from, n);
}

static ck_status put_symbol(const ck_avro_write *w, ck_view v, ck_bytes *out, ck_error *err) {
    for (uint32_t i = 0; i < w->type->count; i++)
        if (ck_view_is(v, w->type->names[i])) return put_long(i, out);
    return ck_fail(err, CK_DATA, "column \"%.200s\": '%.*s' is no symbol of %s", w->field->name,
                   (int)(v.n < 100 ? v.n : 100), v.p, w->type->name);
}

static ck_status put_items(const ck_avro_write *w, const ck_column *c, uint32_t row, ck_bytes *out, ck_error *err) {
    bool map = w->type->kind == CK_AVRO_MAP;
    const ck_column *elements = c->children[0], *values = map ? elements->children[1] : elements;
    int32_t from = c->offsets[row], end = c->offsets[row + 1];
    if (from < end) CK_TRY(put_long(end - from, out));
    for (int32_t i = from; i < end; i++) {
        if (map) {
            ck_view key = ck_column_str(elements->children[0], (size_t)i);
            CK_TRY(put_text(key.p, key.n, out));
        }
        CK_TRY(value(w->parts[0], values, (uint32_t)i, out, err));
    }
    return ck_bytes_char(out, 0);
}

static ck_status put_record(const ck_avro_write *w, ck_column *const *columns, uint32_t row, ck_bytes *out,
                            ck_error *err) {
    for (uint32_t i = 0; i < w->type->count; i++) {
        const ck_avro_write *part = w->parts[i];
        if (part->constant.p)
            CK_TRY(ck_bytes_view(out, part->constant));
        else
            CK_TRY(value(part, columns[part->from], row, out, err));
    }
    return CK_OK;
}

static ck_status put_whole(const ck_avro_write *w, const ck_column *c, uint32_t row, ck_bytes *out) {
    ck_kind k = w->field->type->kind;
    bool millis = w->type->logical == CK_AVRO_TIME_MILLIS || w->type->logical == CK_AVRO_TIMESTAMP_MILLIS ||
                  w->type->logical == CK_AVRO_LOCAL_MILLIS;
    int64_t v = c->i64[row];
    if (millis && k != CK_TYPE_BIGINT) v = v / 1000 - (v % 1000 < 0);
    return put_long(v, out);
}

static ck_status put_real(const ck_avro_write *w, const ck_column *c, uint32_t row, ck_bytes *out) {
    double d = ck_kind_is_integer(w->field->type->kind) ? (double)c->i64[row] : c->f64[row];
    float f = (float)d;
    return w->type->kind == CK_AVRO_FLOAT ? ck_bytes_append(out, &f, sizeof f) : ck_bytes_append(out, &d, sizeof d);
}

static ck_status value(const ck_avro_write *w, const ck_column *c, uint32_t row, ck_bytes *out, ck_error *err) {
    if (ck_column_is_null(c, row)) {
        if (w->null_branch >= 0) return put_long(w->null_branch, out);
        return ck_fail(err, CK_DATA, "column \"%.200s\" is NULL, and the schema has no null there", w->field->name);
    }
    if (w->branch >= 0) CK_TRY(put_long(w->branch, out));
    switch (w->type->kind) {
    case CK_AVRO_BOOLEAN: return ck_bytes_char(out, ck_bit_get(c->bits, row));
    case CK_AVRO_INT:
    case CK_AVRO_LONG: return put_whole(w, c, row, out);
    case CK_AVRO_FLOAT:
    case CK_AVRO_DOUBLE: return put_real(w, c, row, out);
    case CK_AVRO_BYTES:
    case CK_AVRO_FIXED:
        if (w->field->type->kind == CK_TYPE_DECIMAL) return put_decimal(w, c->i128[row], out, err);
        return put_fixed(w, ck_column_str(c, row), out, err);
    case CK_AVRO_STRING: {
        ck_view v = ck_column_str(c, row);
        return put_text(v.p, v.n, out);
    }
    case CK_AVRO_ENUM: return put_symbol(w, ck_column_str(c, row), out, err);
    case CK_AVRO_RECORD: return put_record(w, c->children, row, out, err);
    case CK_AVRO_ARRAY:
    case CK_AVRO_MAP: return put_items(w, c, row, out, err);
    default: return CK_OK;
    }
}

ck_status ck_avro_write_row(const ck_avro_write *w, const ck_batch *b, uint32_t row, ck_bytes *out, ck_error *err) {
    return put_record(w, b->columns, row, out, err);
}
