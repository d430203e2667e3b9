/* See arrow.h: batches in. Values are copied into builders; what the array says about itself is checked before it is
 * followed. An index is logical: element i of a view stands at its own offset + i in its buffers. */
#include "data/arrow_int.h"

#include "data/builder_int.h"

typedef struct importer {
    const char *column; /* of the batch, for messages */
    ck_error *err;
} importer;

/* One level of the source: what the type says and where the values are. */
typedef struct source {
    const struct ArrowSchema *schema;
    const struct ArrowArrayView *view;
    struct ArrowSchemaView type;
} source;

static ck_status no_memory(importer *im, ck_column_builder *b) { return ck_nomem(im->err, b->mem, 64); }
static ck_status astray(importer *im) {
    return ck_fail(im->err, CK_CORRUPT, "Arrow column \"%s\": an offset is outside of its buffer", im->column);
}

static bool is_null(const source *s, int64_t i) { return ArrowArrayViewIsNull(s->view, i) == 1; }

static ck_status open_source(importer *im, const struct ArrowSchema *schema, const struct ArrowArrayView *view,
                             source *out) {
    struct ArrowError why = {{0}};
    *out = (source){.schema = schema, .view = view};
    int code = ArrowSchemaViewInit(&out->type, schema, &why);
    if (code == NANOARROW_OK) return CK_OK;
    return ck_arrow_fail(im->err, code, CK_INVALID, "reading an Arrow schema", why.message);
}

/* ---- integers and times ---- */

/* Source values as they are, widened. Types whose values need no arithmetic stop here. */
static void load_integers(const source *s, int64_t start, uint32_t n, int64_t *restrict out) {
    const void *p = s->view->buffer_views[1].data.data;
    size_t at = (size_t)(s->view->offset + start);
    switch (s->view->storage_type) {
#define LOAD(arrow, type)                                                                                              \
    case arrow:                                                                                                        \
        for (uint32_t i = 0; i < n; i++) out[i] = (int64_t)((const type *)p)[at + i];                                  \
        break;
        LOAD(NANOARROW_TYPE_INT8, int8_t)
        LOAD(NANOARROW_TYPE_UINT8, uint8_t)
        LOAD(NANOARROW_TYPE_INT16, int16_t)
        LOAD(NANOARROW_TYPE_UINT16, uint16_t)
        LOAD(NANOARROW_TYPE_UINT32, uint32_t)
        LOAD(NANOARROW_TYPE_INT64, int64_t)
        LOAD(NANOARROW_TYPE_INTERVAL_MONTHS, int32_t)
    default: LOAD(NANOARROW_TYPE_INT32, int32_t)
#undef LOAD
    }
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* To days or microseconds; false beyond int64. */
static bool convert_times(const source *s, uint32_t n, int64_t *v) {
    static const int64_t multiply[] = {1000000, 1000, 1, 1}, divide[] = {1, 1, 1, 1000}; /* by unit: s, ms, us, ns */
    int64_t times = 1, over = 1;
    if (s->type.type == NANOARROW_TYPE_DATE64)
        over = 86400000;
    else if (s->type.type == NANOARROW_TYPE_TIMESTAMP || s->type.type == NANOARROW_TYPE_TIME32 ||
             s->type.type == NANOARROW_TYPE_TIME64 || s->type.type == NANOARROW_TYPE_DURATION)
        times = multiply[s->type.time_unit], over = divide[s->type.time_unit];
    bool overflow = false;
    if (over > 1)
        for (uint32_t i = 0; i < n; i++) v[i] = floor_div(v[i], over);
    if (times > 1)
        for (uint32_t i = 0; i < n; i++) overflow |= __builtin_mul_overflow(v[i], times, &v[i]);
    return !overflow;
}

static bool times_of_day(const int64_t *v, uint32_t n) {
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) ok &= (uint64_t)v[i] < 86400000000ULL;
    return ok;
}

/* What stands at a NULL may be anything: it becomes zero, so that it cannot be out of range. */
static void mark_nulls(const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    if (s->view->null_count == 0 || !s->view->buffer_views[0].data.data) return;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_null(s, start + i)) continue;
        ck_bit_clear(ck_column_writable_validity(b->col), b->length + i);
        if (b->phys == CK_PHYS_I64) b->col->i64[b->length + i] = 0;
    }
}

static ck_status import_integers(importer *im, const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    int64_t *to = b->col->i64 + b->length;
    load_integers(s, start, n, to);
    mark_nulls(s, start, n, b);
    if (!convert_times(s, n, to) || (b->type->kind == CK_TYPE_TIME && !times_of_day(to, n)))
        return ck_fail(im->err, CK_DATA, "Arrow column \"%s\" holds a time beyond our range", im->column);
    return CK_OK;
}

/* ---- other fixed widths ---- */

static void import_doubles(const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    const struct ArrowBufferView p = s->view->buffer_views[1];
    size_t at = (size_t)(s->view->offset + start);
    double *to = b->col->f64 + b->length;
    if (s->view->storage_type == NANOARROW_TYPE_DOUBLE)
        memcpy(to, p.data.as_double + at, n * sizeof *to);
    else
        for (uint32_t i = 0; i < n; i++) to[i] = (double)p.data.as_float[at + i];
    mark_nulls(s, start, n, b);
}

static void import_decimals(const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    const struct ArrowBufferView p = s->view->buffer_views[1];
    size_t at = (size_t)(s->view->offset + start);
    ck_i128 *to = b->col->i128 + b->length;
    switch (s->view->storage_type) {
    case NANOARROW_TYPE_UINT64:
        for (uint32_t i = 0; i < n; i++) to[i] = (ck_i128)p.data.as_uint64[at + i];
        break;
    case NANOARROW_TYPE_DECIMAL32:
        for (uint32_t i = 0; i < n; i++) to[i] = p.data.as_int32[at + i];
        break;
    case NANOARROW_TYPE_DECIMAL64:
        for (uint32_t i = 0; i < n; i++) to[i] = p.data.as_int64[at + i];
        break;
    default: memcpy(to, p.data.as_uint8 + at * 16, n * sizeof *to);
    }
    mark_nulls(s, start, n, b);
}

static void import_bools(const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    const uint8_t *p = s->view->buffer_views[1].data.as_uint8;
    for (uint32_t i = 0; i < n; i++)
        ck_bit_put(b->col->bits, b->length + i, ArrowBitGet(p, s->view->offset + start + i));
    mark_nulls(s, start, n, b);
}

/* ---- strings ---- */

static bool view_at(const struct ArrowArrayView *v, int64_t i, ck_view *out) {
    const union ArrowBinaryView *view = &v->buffer_views[1].data.as_binary_view[v->offset + i];
    int64_t length = view->inlined.size;
    if (length < 0) return false;
    if (length <= NANOARROW_BINARY_VIEW_INLINE_SIZE) {
        *out = (ck_view){(const char *)view->inlined.data, (size_t)length};
        return true;
    }
    int64_t buffer = view->ref.buffer_index, offset = view->ref.offset;
    if (buffer < 0 || buffer >= v->n_variadic_buffers || offset < 0) return false;
    if (offset > v->variadic_buffer_sizes[buffer] || length > v->variadic_buffer_sizes[buffer] - offset) return false;
    *out = (ck_view){(const char *)v->variadic_buffers[buffer] + offset, (size_t)length};
    return true;
}

static bool string_at(const source *s, int64_t i, ck_view *out) {
    const struct ArrowArrayView *v = s->view;
    int64_t at = v->offset + i, first, end;
    int data = 2;
    switch (v->storage_type) {
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY_VIEW: return view_at(v, i, out);
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
        first = at * s->type.fixed_size, end = first + s->type.fixed_size, data = 1;
        break;
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_LARGE_BINARY:
        first = v->buffer_views[1].data.as_int64[at], end = v->buffer_views[1].data.as_int64[at + 1];
        break;
    default: first = v->buffer_views[1].data.as_int32[at], end = v->buffer_views[1].data.as_int32[at + 1];
    }
    if (first < 0 || end < first || end > v->buffer_views[data].size_bytes || end - first > INT32_MAX) return false;
    *out = (ck_view){v->buffer_views[data].data.as_char + first, (size_t)(end - first)};
    return true;
}

static ck_status import_strings(importer *im, const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    for (uint32_t i = 0; i < n; i++) {
        ck_view v;
        ck_status status;
        if (is_null(s, start + i))
            status = ck_build_null(b);
        else if (!string_at(s, start + i, &v))
            return astray(im);
        else
            status = ck_build_str(b, v.p, v.n);
        if (status != CK_OK) return no_memory(im, b);
    }
    return CK_OK;
}

/* ---- nested ---- */

static ck_status import_values(importer *im, const source *s, int64_t start, uint32_t n, ck_column_builder *b);

/* No NULL in values start, start + 1, ... of a NOT NULL field, except where the struct around it is NULL. */
static ck_status check_not_null(importer *im, const source *s, int64_t start, uint32_t n, const source *around,
                                int64_t around_start) {
    if (s->view->null_count == 0 || s->view->storage_type == NANOARROW_TYPE_NA) return CK_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_null(s, start + i) || (around && is_null(around, around_start + i))) continue;
        return ck_fail(im->err, CK_DATA, "Arrow column \"%s\": NULL where none may be", im->column);
    }
    return CK_OK;
}

/* A field of a struct, or of the batch; it shares the offset of what is around it. */
static ck_status import_field(importer *im, const source *around, uint32_t child, const ck_field *field, int64_t start,
                              uint32_t n, ck_column_builder *b) {
    source s;
    CK_TRY(open_source(im, around->schema->children[child], around->view->children[child], &s));
    CK_TRY(import_values(im, &s, around->view->offset + start, n, b));
    return field->nullable ? CK_OK : check_not_null(im, &s, around->view->offset + start, n, around, start);
}

static ck_status import_structs(importer *im, const source *s, const ck_field *fields, int64_t start, uint32_t n,
                                ck_column_builder *b) {
    for (uint32_t i = 0; i < b->child_count; i++) CK_TRY(import_field(im, s, i, &fields[i], start, n, &b->children[i]));
    if (ck_column_builder_room(b, n) != CK_OK) return no_memory(im, b);
    mark_nulls(s, start, n, b);
    b->length += n;
    return CK_OK;
}

static bool list_at(const source *s, int64_t i, int64_t *first, int64_t *end) {
    const struct ArrowArrayView *v = s->view;
    int64_t at = v->offset + i;
    switch (v->storage_type) {
    case NANOARROW_TYPE_FIXED_SIZE_LIST: *first = at * s->type.fixed_size, *end = *first + s->type.fixed_size; break;
    case NANOARROW_TYPE_LARGE_LIST:
        *first = v->buffer_views[1].data.as_int64[at], *end = v->buffer_views[1].data.as_int64[at + 1];
        break;
    default: *first = v->buffer_views[1].data.as_int32[at], *end = v->buffer_views[1].data.as_int32[at + 1];
    }
    return *first >= 0 && *end >= *first && *end <= v->children[0]->length && *end - *first <= INT32_MAX;
}

static ck_status import_lists(importer *im, const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    const ck_type *t = b->type;
    ck_column_builder *element = &b->children[0];
    source inner;
    CK_TRY(open_source(im, s->schema->children[0], s->view->children[0], &inner));
    for (uint32_t i = 0; i < n; i++) {
        int64_t first, end;
        if (is_null(s, start + i)) {
            if (ck_build_null(b) != CK_OK) return no_memory(im, b);
            continue;
        }
        if (!list_at(s, start + i, &first, &end)) return astray(im);
        uint32_t count = (uint32_t)(end - first);
        if (t->kind == CK_TYPE_MAP)
            CK_TRY(import_structs(im, &inner, t->fields, first, count, element));
        else
            CK_TRY(import_values(im, &inner, first, count, element));
        if (t->kind == CK_TYPE_ARRAY && !t->fields[0].nullable)
            CK_TRY(check_not_null(im, &inner, first, count, NULL, 0));
        if (ck_build_end(b) != CK_OK) return no_memory(im, b);
    }
    return CK_OK;
}

/* ---- any type ---- */

static ck_status check_kind(importer *im, const source *s, const ck_type *t) {
    ck_kind kind = ck_arrow_kind(&s->type);
    bool same = kind == t->kind;
    if (same && kind == CK_TYPE_DECIMAL)
        same = t->scale == (s->type.type == NANOARROW_TYPE_UINT64 ? 0 : s->type.decimal_scale);
    if (same && kind == CK_TYPE_ROW) same = s->schema->n_children == t->field_count;
    if (same) return CK_OK;
    return ck_fail(im->err, CK_INVALID, "Arrow column \"%s\" has the type %s where the table's schema has another",
                   im->column, ArrowTypeString(s->type.type));
}

/* b is not the entries of a MAP, which import_lists reads itself: it has the type of its values. */
static ck_status import_values(importer *im, const source *s, int64_t start, uint32_t n, ck_column_builder *b) {
    CK_TRY(check_kind(im, s, b->type));
    if (start > s->view->length || n > s->view->length - start) return astray(im);
    if (n == 0) return CK_OK;
    if (b->phys == CK_PHYS_VIEW) return import_strings(im, s, start, n, b);
    if (b->phys == CK_PHYS_LIST) return import_lists(im, s, start, n, b);
    if (b->phys == CK_PHYS_STRUCT) return import_structs(im, s, b->type->fields, start, n, b);
    if (ck_column_builder_room(b, n) != CK_OK) return no_memory(im, b);
    switch (b->phys) {
    case CK_PHYS_BOOL: import_bools(s, start, n, b); break;
    case CK_PHYS_I64: CK_TRY(import_integers(im, s, start, n, b)); break;
    case CK_PHYS_F64: import_doubles(s, start, n, b); break;
    case CK_PHYS_I128: import_decimals(s, start, n, b); break;
    default: break; /* of the type of NULL: rows and nothing else */
    }
    b->length += n;
    return CK_OK;
}

static ck_status import_columns(importer *im, const source *root, const ck_schema *s, int64_t offset, uint32_t rows,
                                ck_batch_builder *b) {
    for (uint32_t i = 0; i < s->field_count; i++) {
        im->column = s->fields[i].name;
        CK_TRY(import_field(im, root, i, &s->fields[i], offset, rows, &b->columns[i]));
    }
    memset(b->weights, 1, rows);
    b->row_count = rows;
    return CK_OK;
}

static ck_status import_view(importer *im, ck_mem mem, const source *root, const ck_schema *s, int64_t offset,
                             uint32_t rows, ck_batch **out) {
    ck_batch_builder b;
    if (ck_batch_builder_init(&b, mem, s, rows) != CK_OK) return ck_nomem(im->err, mem, rows);
    ck_status status = import_columns(im, root, s, offset, rows, &b);
    if (status == CK_OK && !(*out = ck_batch_builder_finish(&b))) status = ck_nomem(im->err, mem, rows);
    ck_batch_builder_destroy(&b);
    return status;
}

ck_status ck_arrow_import_batch(ck_mem mem, const struct ArrowSchema *schema, const struct ArrowArray *array,
                                const ck_schema *s, int64_t offset, int64_t rows, ck_batch **out, ck_error *err) {
    if (rows < 0 || rows > CK_BATCH_ROWS_MAX || offset < 0 || offset > array->length || rows > array->length - offset)
        return ck_fail(err, CK_INVALID, "rows %lld from %lld of an Arrow array of %lld", (long long)rows,
                       (long long)offset, (long long)array->length);
    if (schema->n_children != s->field_count)
        return ck_fail(err, CK_INVALID, "an Arrow schema of %lld columns for a table of %u",
                       (long long)schema->n_children, s->field_count);
    struct ArrowArrayView view;
    struct ArrowError why = {{0}};
    const char *what = "reading an Arrow array";
    int code = ArrowArrayViewInitFromSchema(&view, schema, &why);
    if (code != NANOARROW_OK) return ck_arrow_fail(err, code, CK_INVALID, what, why.message);
    code = ArrowArrayViewSetArray(&view, array, &why);
    importer im = {.column = "", .err = err};
    source root;
    ck_status status = code == NANOARROW_OK ? open_source(&im, schema, &view, &root)
                                            : ck_arrow_fail(err, code, CK_CORRUPT, what, why.message);
    if (status == CK_OK) status = check_not_null(&im, &root, offset, (uint32_t)rows, NULL, 0);
    if (status == CK_OK) status = import_view(&im, mem, &root, s, offset, (uint32_t)rows, out);
    ArrowArrayViewReset(&view);
    return status;
}
