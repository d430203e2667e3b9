/* See arrow.h: schemas in both directions. */
#include "data/arrow_int.h"

#include <errno.h>

ck_status ck_arrow_fail(ck_error *err, int code, ck_status otherwise, const char *what, const char *detail) {
    if (code == ENOMEM) return ck_fail(err, CK_NOMEM, "out of memory while %s", what);
    return ck_fail(err, otherwise, "%s: %s", what, detail && *detail ? detail : "refused by the Arrow library");
}

/* ---- out ---- */

static int set_type(struct ArrowSchema *out, const ck_type *t, ck_arrow_flavour f);

static int set_field(struct ArrowSchema *out, const ck_field *field, ck_arrow_flavour f) {
    ArrowSchemaInit(out);
    NANOARROW_RETURN_NOT_OK(set_type(out, field->type, f));
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, field->name));
    if (!field->nullable) out->flags &= ~ARROW_FLAG_NULLABLE;
    return NANOARROW_OK;
}

static int set_struct(struct ArrowSchema *out, const ck_field *fields, uint32_t count, ck_arrow_flavour f) {
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetTypeStruct(out, count));
    for (uint32_t i = 0; i < count; i++) NANOARROW_RETURN_NOT_OK(set_field(out->children[i], &fields[i], f));
    return NANOARROW_OK;
}

static int set_list(struct ArrowSchema *out, const ck_type *t, ck_arrow_flavour f) {
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetType(out, NANOARROW_TYPE_LIST)); /* names its child "item" */
    NANOARROW_RETURN_NOT_OK(set_type(out->children[0], t->fields[0].type, f));
    if (!t->fields[0].nullable) out->children[0]->flags &= ~ARROW_FLAG_NULLABLE;
    return NANOARROW_OK;
}

static int set_map(struct ArrowSchema *out, const ck_type *t, ck_arrow_flavour f) {
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetType(out, NANOARROW_TYPE_MAP)); /* "entries" of "key" and "value" */
    struct ArrowSchema *entries = out->children[0];
    NANOARROW_RETURN_NOT_OK(set_type(entries->children[0], t->fields[0].type, f));
    NANOARROW_RETURN_NOT_OK(set_type(entries->children[1], t->fields[1].type, f));
    if (!t->fields[1].nullable) entries->children[1]->flags &= ~ARROW_FLAG_NULLABLE;
    return NANOARROW_OK;
}

static int set_type(struct ArrowSchema *out, const ck_type *t, ck_arrow_flavour f) {
    const enum ArrowTimeUnit us = NANOARROW_TIME_UNIT_MICRO;
    switch (t->kind) {
    case CK_TYPE_NULL: return ArrowSchemaSetType(out, NANOARROW_TYPE_NA);
    case CK_TYPE_BOOLEAN: return ArrowSchemaSetType(out, NANOARROW_TYPE_BOOL);
    case CK_TYPE_TINYINT: return ArrowSchemaSetType(out, NANOARROW_TYPE_INT8);
    case CK_TYPE_SMALLINT: return ArrowSchemaSetType(out, NANOARROW_TYPE_INT16);
    case CK_TYPE_INTEGER: return ArrowSchemaSetType(out, NANOARROW_TYPE_INT32);
    case CK_TYPE_BIGINT: return ArrowSchemaSetType(out, NANOARROW_TYPE_INT64);
    case CK_TYPE_REAL: return ArrowSchemaSetType(out, NANOARROW_TYPE_FLOAT);
    case CK_TYPE_DOUBLE: return ArrowSchemaSetType(out, NANOARROW_TYPE_DOUBLE);
    case CK_TYPE_DECIMAL: return ArrowSchemaSetTypeDecimal(out, NANOARROW_TYPE_DECIMAL128, t->precision, t->scale);
    case CK_TYPE_VARCHAR:
        return ArrowSchemaSetType(out, f == CK_ARROW_VIEW ? NANOARROW_TYPE_STRING_VIEW : NANOARROW_TYPE_STRING);
    case CK_TYPE_BYTES:
        return ArrowSchemaSetType(out, f == CK_ARROW_VIEW ? NANOARROW_TYPE_BINARY_VIEW : NANOARROW_TYPE_BINARY);
    case CK_TYPE_DATE: return ArrowSchemaSetType(out, NANOARROW_TYPE_DATE32);
    case CK_TYPE_TIME: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIME64, us, NULL);
    case CK_TYPE_TIMESTAMP: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIMESTAMP, us, NULL);
    case CK_TYPE_TIMESTAMP_LTZ: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIMESTAMP, us, "UTC");
    case CK_TYPE_INTERVAL_MONTH: return ArrowSchemaSetType(out, NANOARROW_TYPE_INTERVAL_MONTHS);
    case CK_TYPE_INTERVAL_US: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_DURATION, us, NULL);
    case CK_TYPE_ARRAY: return set_list(out, t, f);
    case CK_TYPE_MAP: return set_map(out, t, f);
    case CK_TYPE_ROW: return set_struct(out, t->fields, t->field_count, f);
    case CK_TYPE_COUNT: break;
    }
    return EINVAL;
}

ck_status ck_arrow_export_schema(const ck_schema *s, ck_arrow_flavour f, struct ArrowSchema *out, ck_error *err) {
    ArrowSchemaInit(out);
    int code = set_struct(out, s->fields, s->field_count, f);
    if (code == NANOARROW_OK) return CK_OK;
    ArrowSchemaRelease(out);
    return ck_arrow_fail(err, code, CK_INVALID, "making an Arrow schema", NULL);
}

/* ---- in ---- */

ck_kind ck_arrow_kind(const struct ArrowSchemaView *v) {
    switch (v->type) {
    case NANOARROW_TYPE_NA: return CK_TYPE_NULL;
    case NANOARROW_TYPE_BOOL: return CK_TYPE_BOOLEAN;
    case NANOARROW_TYPE_INT8: return CK_TYPE_TINYINT;
    case NANOARROW_TYPE_UINT8:
    case NANOARROW_TYPE_INT16: return CK_TYPE_SMALLINT;
    case NANOARROW_TYPE_UINT16:
    case NANOARROW_TYPE_INT32: return CK_TYPE_INTEGER;
    case NANOARROW_TYPE_UINT32:
    case NANOARROW_TYPE_INT64: return CK_TYPE_BIGINT;
    case NANOARROW_TYPE_FLOAT: return CK_TYPE_REAL;
    case NANOARROW_TYPE_DOUBLE: return CK_TYPE_DOUBLE;
    case NANOARROW_TYPE_UINT64: return CK_TYPE_DECIMAL; /* (20,0) */
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
        return v->decimal_scale >= 0 && v->decimal_scale <= v->decimal_precision ? CK_TYPE_DECIMAL : CK_TYPE_COUNT;
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW: return CK_TYPE_VARCHAR;
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
    case NANOARROW_TYPE_BINARY_VIEW: return CK_TYPE_BYTES;
    case NANOARROW_TYPE_DATE32:
    case NANOARROW_TYPE_DATE64: return CK_TYPE_DATE;
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64: return CK_TYPE_TIME;
    case NANOARROW_TYPE_TIMESTAMP: return v->timezone && *v->timezone ? CK_TYPE_TIMESTAMP_LTZ : CK_TYPE_TIMESTAMP;
    case NANOARROW_TYPE_INTERVAL_MONTHS: return CK_TYPE_INTERVAL_MONTH;
    case NANOARROW_TYPE_DURATION: return CK_TYPE_INTERVAL_US;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_FIXED_SIZE_LIST: return CK_TYPE_ARRAY;
    case NANOARROW_TYPE_MAP: return CK_TYPE_MAP;
    case NANOARROW_TYPE_STRUCT: return CK_TYPE_ROW;
    default: return CK_TYPE_COUNT;
    }
}

typedef struct importer {
    ck_arena *arena;
    ck_error *err;
    unsigned depth;
} importer;

static ck_status no_memory(importer *im) { return ck_nomem(im->err, im->arena->mem, sizeof(ck_type)); }

static int unit_precision(enum ArrowTimeUnit u) {
    return u == NANOARROW_TIME_UNIT_SECOND ? 0 : u == NANOARROW_TIME_UNIT_MILLI ? 3 : 6;
}

static ck_status import_type(importer *im, const struct ArrowSchema *schema, const ck_type **out);

static ck_status import_fields(importer *im, const struct ArrowSchema *schema, const ck_field **out) {
    ck_field *fields = ck_arena_array(im->arena, schema->n_children ? (size_t)schema->n_children : 1, sizeof *fields);
    if (!fields) return no_memory(im);
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];
        fields[i].name = ck_arena_strdup(im->arena, child->name ? child->name : "");
        if (!fields[i].name) return no_memory(im);
        fields[i].nullable = child->flags & ARROW_FLAG_NULLABLE;
        CK_TRY(import_type(im, child, &fields[i].type));
    }
    *out = fields;
    return CK_OK;
}

static ck_status import_nested(importer *im, const struct ArrowSchema *schema, ck_kind kind, const ck_type **out) {
    if (im->depth == CK_SQL_DEPTH_MAX)
        return ck_fail(im->err, CK_INVALID, "Arrow column \"%s\" is nested too deep", schema->name ? schema->name : "");
    im->depth++;
    const struct ArrowSchema *from = kind == CK_TYPE_MAP ? schema->children[0] : schema;
    const ck_field *fields = NULL;
    CK_TRY(import_fields(im, from, &fields));
    if (kind == CK_TYPE_ARRAY)
        *out = ck_type_array(im->arena, fields[0].type, fields[0].nullable);
    else if (kind == CK_TYPE_MAP)
        *out = ck_type_map(im->arena, fields[0].type, fields[1].type, fields[1].nullable);
    else
        *out = ck_type_row(im->arena, fields, (uint32_t)from->n_children);
    im->depth--;
    return *out ? CK_OK : no_memory(im);
}

static ck_status import_type(importer *im, const struct ArrowSchema *schema, const ck_type **out) {
    struct ArrowSchemaView v;
    struct ArrowError why = {{0}};
    const char *name = schema->name ? schema->name : "";
    int code = ArrowSchemaViewInit(&v, schema, &why);
    if (code != NANOARROW_OK) return ck_arrow_fail(im->err, code, CK_INVALID, "reading an Arrow schema", why.message);
    ck_kind kind = ck_arrow_kind(&v);
    switch (kind) {
    case CK_TYPE_COUNT:
        return ck_fail(im->err, CK_INVALID, "Arrow column \"%s\" has the type %s, which there is no SQL type for", name,
                       ArrowTypeString(v.type));
    case CK_TYPE_DECIMAL: {
        bool u64 = v.type == NANOARROW_TYPE_UINT64;
        *out = ck_type_decimal(im->arena, u64 ? 20 : v.decimal_precision, u64 ? 0 : v.decimal_scale);
        break;
    }
    case CK_TYPE_TIME:
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: *out = ck_type_with_precision(im->arena, kind, unit_precision(v.time_unit)); break;
    case CK_TYPE_ARRAY:
    case CK_TYPE_MAP:
    case CK_TYPE_ROW: return import_nested(im, schema, kind, out);
    default: *out = ck_type_simple(kind);
    }
    return *out ? CK_OK : no_memory(im);
}

ck_status ck_arrow_import_schema(ck_arena *a, const struct ArrowSchema *schema, const ck_schema **out, ck_error *err) {
    importer im = {.arena = a, .err = err};
    if (!schema->format || strcmp(schema->format, "+s") != 0)
        return ck_fail(err, CK_INVALID, "an Arrow schema of record batches is a struct, this one is \"%s\"",
                       schema->format ? schema->format : "");
    ck_schema *s = CK_ARENA_NEW(a, ck_schema);
    if (!s) return no_memory(&im);
    CK_TRY(import_fields(&im, schema, &s->fields));
    s->field_count = (uint32_t)schema->n_children;
    *out = s;
    return CK_OK;
}
