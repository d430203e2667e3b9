/* Avro schemas: JSON text to types, types to words, and the schema that a table's columns make. */
#include <ctype.h>
#include <stdlib.h>

#include "base/json.h"
#include "format/message_int.h"

static const char *const kind_names[] = {"null",   "boolean", "int",  "long",  "float", "double", "bytes",
                                         "string", "record",  "enum", "fixed", "array", "map",    "union"};
static const char *const logical_names[] = {NULL,
                                            "decimal",
                                            "date",
                                            "time-millis",
                                            "time-micros",
                                            "timestamp-millis",
                                            "timestamp-micros",
                                            "local-timestamp-millis",
                                            "local-timestamp-micros"};

const char *ck_avro_logical_name(ck_avro_logical l) { return logical_names[l]; }

const char *ck_avro_print(ck_arena *a, const ck_avro *t) {
    const char *s = t->logical == CK_AVRO_DECIMAL ? ck_arena_printf(a, "decimal(%d,%d)", t->precision, t->scale)
                    : t->logical                  ? logical_names[t->logical]
                    : t->name                     ? ck_arena_printf(a, "%s %s", kind_names[t->kind], t->name)
                                                  : kind_names[t->kind];
    return s ? s : "?";
}

/* ---- parsing ---- */

typedef struct parser {
    ck_arena *a;
    ck_map *names;
    const char *space; /* the namespace around */
    unsigned depth;
    ck_error *err;
} parser;

static ck_status parse(parser *s, yyjson_val *v, const ck_avro **out);

static ck_status bad(parser *s, const char *what) {
    return ck_fail(s->err, CK_DATA, "the schema is no Avro: %s", what);
}
static ck_status nomem(parser *s) { return ck_nomem(s->err, s->a->mem, sizeof(ck_avro)); }

static ck_avro_kind kind_of(const char *name) {
    for (unsigned i = 0; i < CK_AVRO_UNION; i++)
        if (strcmp(name, kind_names[i]) == 0) return (ck_avro_kind)i;
    return CK_AVRO_UNION;
}

/* The full name of a name in a namespace. */
static const char *full(parser *s, const char *name, const char *space) {
    return strchr(name, '.') || !space || !space[0] ? name : ck_arena_printf(s->a, "%s.%s", space, name);
}

static ck_status named(parser *s, const char *name, const ck_avro **out) {
    const char *whole = full(s, name, s->space);
    if (!whole) return nomem(s);
    *out = ck_map_get(s->names, ck_view_of(whole));
    if (!*out) *out = ck_map_get(s->names, ck_view_of(name));
    return *out ? CK_OK : ck_fail(s->err, CK_DATA, "the schema is no Avro: it has no type \"%.200s\"", name);
}

static ck_status simple(parser *s, const char *name, const ck_avro **out) {
    ck_avro_kind k = kind_of(name);
    if (k > CK_AVRO_STRING) return named(s, name, out);
    ck_avro *t = CK_ARENA_NEW(s->a, ck_avro);
    if (!t) return nomem(s);
    t->kind = k;
    *out = t;
    return CK_OK;
}

static ck_status children(parser *s, ck_avro *t, size_t count) {
    t->count = (uint32_t)count;
    t->names = ck_arena_array(s->a, count + 1, sizeof *t->names);
    t->types = ck_arena_array(s->a, count + 1, sizeof *t->types);
    t->defaults = ck_arena_array(s->a, count + 1, sizeof *t->defaults);
    return t->names && t->types && t->defaults ? CK_OK : nomem(s);
}

static ck_status parse_union(parser *s, yyjson_val *v, const ck_avro **out) {
    ck_avro *t = CK_ARENA_NEW(s->a, ck_avro);
    if (!t) return nomem(s);
    t->kind = CK_AVRO_UNION;
    *out = t;
    CK_TRY(children(s, t, yyjson_arr_size(v)));
    size_t i, n;
    yyjson_val *branch;
    yyjson_arr_foreach(v, i, n, branch) {
        CK_TRY(parse(s, branch, &t->types[i]));
        if (t->types[i]->kind == CK_AVRO_UNION) return bad(s, "a union is directly in a union");
    }
    return t->count ? CK_OK : bad(s, "a union has no branch");
}

/* What a logical type says beside the type that holds it; an unknown or misplaced one says nothing. */
static void take_logical(ck_avro *t, yyjson_val *v) {
    const char *name = yyjson_get_str(yyjson_obj_get(v, "logicalType"));
    static const ck_avro_kind holders[] = {CK_AVRO_NULL, CK_AVRO_NULL, CK_AVRO_INT,  CK_AVRO_INT, CK_AVRO_LONG,
                                           CK_AVRO_LONG, CK_AVRO_LONG, CK_AVRO_LONG, CK_AVRO_LONG};
    for (unsigned i = CK_AVRO_DATE; name && i <= CK_AVRO_LOCAL_MICROS; i++)
        if (strcmp(name, logical_names[i]) == 0 && t->kind == holders[i]) t->logical = (ck_avro_logical)i;
    if (!name || strcmp(name, "decimal") != 0 || (t->kind != CK_AVRO_BYTES && t->kind != CK_AVRO_FIXED)) return;
    int64_t precision = yyjson_get_sint(yyjson_obj_get(v, "precision")),
            scale = yyjson_get_sint(yyjson_obj_get(v, "scale"));
    if (precision < 1 || precision > INT32_MAX || scale < 0 || scale > precision) return;
    t->logical = CK_AVRO_DECIMAL;
    t->precision = (int32_t)precision, t->scale = (int32_t)scale;
}

static ck_status parse_fields(parser *s, ck_avro *t, yyjson_val *v) {
    yyjson_val *fields = yyjson_obj_get(v, "fields"), *f;
    if (!yyjson_is_arr(fields)) return bad(s, "a record has no fields");
    CK_TRY(children(s, t, yyjson_arr_size(fields)));
    size_t i, n;
    yyjson_arr_foreach(fields, i, n, f) {
        yyjson_val *type = yyjson_obj_get(f, "type");
        t->names[i] = yyjson_get_str(yyjson_obj_get(f, "name"));
        t->defaults[i] = yyjson_obj_get(f, "default");
        if (!t->names[i] || !type) return bad(s, "a field has no name or no type");
        CK_TRY(parse(s, type, &t->types[i]));
    }
    return CK_OK;
}

static ck_status parse_symbols(parser *s, ck_avro *t, yyjson_val *v) {
    yyjson_val *symbols = yyjson_obj_get(v, "symbols"), *x;
    CK_TRY(children(s, t, yyjson_arr_size(symbols)));
    size_t i, n;
    yyjson_arr_foreach(symbols, i, n, x) {
        if (!(t->names[i] = yyjson_get_str(x))) return bad(s, "a symbol is no text");
    }
    return CK_OK;
}

static ck_status parse_named(parser *s, ck_avro *t, yyjson_val *v) {
    const char *name = yyjson_get_str(yyjson_obj_get(v, "name")),
               *space = yyjson_get_str(yyjson_obj_get(v, "namespace"));
    const char *around = s->space;
    if (!name || !name[0]) return bad(s, "a record, enum or fixed has no name");
    t->name = full(s, name, space ? space : around);
    if (!t->name) return nomem(s);
    const char *dot = strrchr(t->name, '.');
    s->space = dot ? ck_arena_strndup(s->a, t->name, (size_t)(dot - t->name)) : NULL;
    if (dot && !s->space) return nomem(s);
    if (ck_map_put(s->names, ck_view_of(t->name), t, NULL) != CK_OK) return nomem(s);
    ck_status status = CK_OK;
    if (t->kind == CK_AVRO_RECORD) status = parse_fields(s, t, v);
    if (t->kind == CK_AVRO_ENUM) status = parse_symbols(s, t, v);
    s->space = around;
    if (t->kind != CK_AVRO_FIXED) return status;
    uint64_t bytes = yyjson_get_uint(yyjson_obj_get(v, "size"));
    if (bytes > INT32_MAX) return bad(s, "a fixed is too large");
    t->bytes = (uint32_t)bytes;
    take_logical(t, v);
    return status;
}

static ck_status parse_object(parser *s, yyjson_val *v, const ck_avro **out) {
    yyjson_val *type = yyjson_obj_get(v, "type");
    if (!yyjson_is_str(type)) return type ? parse(s, type, out) : bad(s, "an object has no type");
    ck_avro_kind k = kind_of(yyjson_get_str(type));
    if (k == CK_AVRO_UNION) return named(s, yyjson_get_str(type), out);
    ck_avro *t = CK_ARENA_NEW(s->a, ck_avro);
    if (!t) return nomem(s);
    t->kind = k;
    *out = t;
    if (k == CK_AVRO_RECORD || k == CK_AVRO_ENUM || k == CK_AVRO_FIXED) return parse_named(s, t, v);
    if (k == CK_AVRO_ARRAY || k == CK_AVRO_MAP) {
        yyjson_val *of = yyjson_obj_get(v, k == CK_AVRO_ARRAY ? "items" : "values");
        CK_TRY(children(s, t, 1));
        return of ? parse(s, of, &t->types[0]) : bad(s, "an array has no items, or a map no values");
    }
    take_logical(t, v);
    return CK_OK;
}

static ck_status parse(parser *s, yyjson_val *v, const ck_avro **out) {
    if (++s->depth > CK_MESSAGE_NESTED_MAX) return bad(s, "it is nested too deeply");
    ck_status status = yyjson_is_str(v)   ? simple(s, yyjson_get_str(v), out)
                       : yyjson_is_arr(v) ? parse_union(s, v, out)
                       : yyjson_is_obj(v) ? parse_object(s, v, out)
                                          : bad(s, "a type is neither a name, nor an array, nor an object");
    s->depth--;
    return status;
}

ck_status ck_avro_parse(ck_arena *a, ck_map *names, ck_view text, const ck_avro **out, ck_error *err) {
    struct yyjson_doc *doc;
    parser s = {.a = a, .names = names, .err = err};
    ck_status status = ck_json_read(a, text, &doc, err);
    if (status == CK_CORRUPT) { /* a bare name stands without quotes in some registries */
        ck_error_reset(err);
        return bad(&s, "it is no JSON");
    }
    CK_TRY(status);
    return parse(&s, yyjson_doc_get_root(doc), out);
}

/* ---- the schema of a table ---- */

typedef struct writing {
    ck_arena *a;
    ck_bytes text;
    const char *column; /* at hand */
    unsigned records;
    ck_error *err;
} writing;

static bool is_name(const char *name) {
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') return false;
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p >= 128 || (!isalnum((unsigned char)*p) && *p != '_')) return false;
    return true;
}

static ck_status put_type(writing *w, const ck_type *t);

static ck_status put_fields(writing *w, const ck_field *fields, uint32_t count, bool columns) {
    CK_TRY(ck_bytes_str(&w->text, "\"fields\":["));
    for (uint32_t i = 0; i < count; i++) {
        const ck_field *f = &fields[i];
        if (columns) w->column = f->name;
        if (!is_name(f->name))
            return ck_fail(
                w->err, CK_DATA,
                "column \"%.100s\": Avro takes no field named \"%.100s\" (letters, digits, underscores); give "
                "the subject a schema, or the column another name",
                w->column, f->name);
        CK_TRY(ck_bytes_printf(&w->text, "%s{\"name\":\"%s\",\"type\":%s", i ? "," : "", f->name,
                               f->nullable ? "[\"null\"," : ""));
        CK_TRY(put_type(w, f->type));
        CK_TRY(ck_bytes_str(&w->text, f->nullable ? "],\"default\":null}" : "}"));
    }
    return ck_bytes_char(&w->text, ']');
}

static ck_status put_element(writing *w, const ck_field *f) {
    if (f->nullable) CK_TRY(ck_bytes_str(&w->text, "[\"null\","));
    CK_TRY(put_type(w, f->type));
    return f->nullable ? ck_bytes_char(&w->text, ']') : CK_OK;
}

static ck_status put_logical(writing *w, const char *type, ck_avro_logical l) {
    return ck_bytes_printf(&w->text, "{\"type\":\"%s\",\"logicalType\":\"%s\"}", type, logical_names[l]);
}

static ck_status put_type(writing *w, const ck_type *t) {
    bool millis = t->precision <= 3;
    switch (t->kind) {
    case CK_TYPE_BOOLEAN: return ck_bytes_str(&w->text, "\"boolean\"");
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER: return ck_bytes_str(&w->text, "\"int\"");
    case CK_TYPE_BIGINT: return ck_bytes_str(&w->text, "\"long\"");
    case CK_TYPE_REAL: return ck_bytes_str(&w->text, "\"float\"");
    case CK_TYPE_DOUBLE: return ck_bytes_str(&w->text, "\"double\"");
    case CK_TYPE_VARCHAR: return ck_bytes_str(&w->text, "\"string\"");
    case CK_TYPE_BYTES: return ck_bytes_str(&w->text, "\"bytes\"");
    case CK_TYPE_DECIMAL:
        return ck_bytes_printf(&w->text,
                               "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d}",
                               t->precision, t->scale);
    case CK_TYPE_DATE: return put_logical(w, "int", CK_AVRO_DATE);
    case CK_TYPE_TIME:
        return put_logical(w, millis ? "int" : "long", millis ? CK_AVRO_TIME_MILLIS : CK_AVRO_TIME_MICROS);
    case CK_TYPE_TIMESTAMP: return put_logical(w, "long", millis ? CK_AVRO_LOCAL_MILLIS : CK_AVRO_LOCAL_MICROS);
    case CK_TYPE_TIMESTAMP_LTZ:
        return put_logical(w, "long", millis ? CK_AVRO_TIMESTAMP_MILLIS : CK_AVRO_TIMESTAMP_MICROS);
    case CK_TYPE_ARRAY:
        CK_TRY(ck_bytes_str(&w->text, "{\"type\":\"array\",\"items\":"));
        CK_TRY(put_element(w, &t->fields[0]));
        return ck_bytes_char(&w->text, '}');
    case CK_TYPE_MAP:
        if (t->fields[0].type->kind != CK_TYPE_VARCHAR) break;
        CK_TRY(ck_bytes_str(&w->text, "{\"type\":\"map\",\"values\":"));
        CK_TRY(put_element(w, &t->fields[1]));
        return ck_bytes_char(&w->text, '}');
    case CK_TYPE_ROW:
        CK_TRY(ck_bytes_printf(&w->text, "{\"type\":\"record\",\"name\":\"row_%u\",", ++w->records));
        CK_TRY(put_fields(w, t->fields, t->field_count, false));
        return ck_bytes_char(&w->text, '}');
    default: break;
    }
    return ck_fail(w->err, CK_DATA, "column \"%.200s\": Avro has no type for %s%s", w->column, ck_type_name(w->a, t),
                   t->kind == CK_TYPE_MAP ? "; keys of a map are VARCHAR there" : "");
}

ck_status ck_avro_schema_of(ck_arena *a, const char *name, const ck_schema *table, const char **out, ck_error *err) {
    writing w = {.a = a, .err = err};
    ck_bytes_init(&w.text, a->mem, 1 << 24);
    char *record = ck_arena_strdup(a, name);
    for (char *p = record; p && *p; p++)
        if ((unsigned char)*p >= 128 || (!isalnum((unsigned char)*p) && *p != '_')) *p = '_';
    ck_status s = record ? CK_OK : CK_NOMEM;
    if (s == CK_OK)
        s = ck_bytes_printf(&w.text, "{\"type\":\"record\",\"name\":\"%s%s\",",
                            isdigit((unsigned char)record[0]) ? "_" : "", record);
    if (s == CK_OK) s = put_fields(&w, table->fields, table->field_count, true);
    if (s == CK_OK) s = ck_bytes_char(&w.text, '}');
    if (s == CK_OK && !(*out = ck_arena_strndup(a, w.text.p, w.text.n))) s = CK_NOMEM;
    ck_bytes_destroy(&w.text);
    return s == CK_OK || s == CK_DATA ? s : ck_nomem(err, a->mem, 1024);
}
