/* See arrow.h: batches out. Each array is a node of ours: one block with the buffer pointers and the structs of its
 * children, a reference on the column whose memory it shows, and the buffers it had to make (narrowed integers, offsets
 * and bytes of plain strings). Columns and buffers are counted atomically, so a node may be released on any thread. */
#include "data/arrow_int.h"

#include "data/builder_int.h"

enum { MADE_MAX = 2 };

typedef struct node {
    ck_mem mem;
    size_t bytes;      /* of this block */
    ck_column *column; /* an own reference; NULL for the root */
    ck_buffer *made[MADE_MAX];
    struct ArrowArray *child_list;
} node;

typedef struct exporter {
    ck_mem mem;
    ck_arrow_flavour flavour;
    const ck_field *top; /* for messages: the field of the batch */
    ck_error *err;
} exporter;

static void release_node(struct ArrowArray *array) {
    node *nd = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) /* a child that was moved out has no release */
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    for (int i = 0; i < MADE_MAX; i++) ck_buffer_unref(&nd->made[i]);
    ck_column_unref(&nd->column);
    ck_free(nd->mem, nd, nd->bytes);
    array->release = NULL;
}

/* An array with room for these buffers (NULL yet) and children (released yet). */
static ck_status new_node(exporter *ex, struct ArrowArray *out, int64_t length, uint32_t buffers, uint32_t children) {
    size_t bytes = sizeof(node) + buffers * sizeof(void *) + children * (sizeof(void *) + sizeof(struct ArrowArray));
    node *nd = ck_alloc_zero(ex->mem, bytes);
    if (!nd) return ck_nomem(ex->err, ex->mem, bytes);
    nd->mem = ex->mem;
    nd->bytes = bytes;
    nd->child_list = (struct ArrowArray *)(nd + 1);
    struct ArrowArray **pointers = (struct ArrowArray **)(nd->child_list + children);
    for (uint32_t i = 0; i < children; i++) pointers[i] = &nd->child_list[i];
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = buffers,
                               .n_children = children,
                               .buffers = (const void **)(pointers + children),
                               .children = children ? pointers : NULL,
                               .release = release_node,
                               .private_data = nd};
    return CK_OK;
}

static int64_t count_nulls(const ck_column *c, uint32_t n) {
    if (!c->validity) return 0;
    uint32_t set = 0, words = n / 64;
    for (uint32_t i = 0; i < words; i++) set += (uint32_t)__builtin_popcountll(c->validity[i]);
    if (n % 64) set += (uint32_t)__builtin_popcountll(c->validity[words] & ((1ULL << n % 64) - 1));
    return n - set;
}

/* A node over n rows of c with its validity. */
static ck_status column_node(exporter *ex, struct ArrowArray *out, ck_column *c, uint32_t n, uint32_t buffers,
                             uint32_t children) {
    CK_TRY(new_node(ex, out, n, buffers, children));
    ((node *)out->private_data)->column = ck_column_ref(c);
    out->null_count = count_nulls(c, n);
    if (out->null_count) out->buffers[0] = c->validity;
    return CK_OK;
}

/* Memory behind out->buffers[1 + which]; NULL, and the error filled in, when there is none. */
static void *make_buffer(exporter *ex, struct ArrowArray *out, int which, size_t bytes) {
    ck_buffer *b = ck_buffer_new(ex->mem, bytes);
    if (!b) {
        (void)ck_nomem(ex->err, ex->mem, bytes);
        return NULL;
    }
    ((node *)out->private_data)->made[which] = b;
    out->buffers[1 + which] = b->p;
    return b->p;
}

/* ---- narrowing ---- */

/* Values that stand at NULLs are whatever they are: they do not count as out of range. */
#define NARROW(name, type)                                                                                             \
    static bool narrow_##name(type *restrict to, const ck_column *c, uint32_t n) {                                     \
        uint64_t lost = 0;                                                                                             \
        for (uint32_t i = 0; i < n; i++) {                                                                             \
            int64_t v = c->i64[i];                                                                                     \
            to[i] = (type)v;                                                                                           \
            lost |= (uint64_t)(to[i] != v) & (uint64_t)!ck_column_is_null(c, i);                                       \
        }                                                                                                              \
        return lost == 0;                                                                                              \
    }
NARROW(i8, int8_t)
NARROW(i16, int16_t)
NARROW(i32, int32_t)

static void narrow_f32(float *restrict to, const ck_column *c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) to[i] = (float)c->f64[i];
}

static ck_status export_narrow(exporter *ex, struct ArrowArray *out, const ck_type *t, const ck_column *c, uint32_t n) {
    size_t width = t->kind == CK_TYPE_TINYINT ? 1 : t->kind == CK_TYPE_SMALLINT ? 2 : 4;
    void *to = make_buffer(ex, out, 0, n * width);
    if (!to) return CK_NOMEM;
    bool fits = true;
    if (t->kind == CK_TYPE_REAL)
        narrow_f32(to, c, n);
    else if (width == 1)
        fits = narrow_i8(to, c, n);
    else if (width == 2)
        fits = narrow_i16(to, c, n);
    else
        fits = narrow_i32(to, c, n);
    if (fits) return CK_OK;
    return ck_fail(ex->err, CK_DATA, "column \"%s\" holds a value beyond the range of its type", ex->top->name);
}

/* ---- strings ---- */

static ck_status export_plain_strings(exporter *ex, struct ArrowArray *out, const ck_column *c, uint32_t n) {
    int32_t *at = make_buffer(ex, out, 0, (n + 1) * sizeof *at);
    if (!at) return CK_NOMEM;
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (int32_t)total;
        if (!ck_column_is_null(c, i)) total += (size_t)c->views[i].length;
        if (total > INT32_MAX)
            return ck_fail(ex->err, CK_FULL, "column \"%s\" has more than 2 GiB of strings in one batch",
                           ex->top->name);
    }
    at[n] = (int32_t)total;
    char *bytes = make_buffer(ex, out, 1, total);
    if (!bytes) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] == at[i + 1]) continue;
        ck_view v = ck_column_str(c, i);
        memcpy(bytes + at[i], v.p, v.n);
    }
    return CK_OK;
}

/* Views as they are; behind them the heaps and, as the last buffer, their sizes. */
static ck_status export_views(exporter *ex, struct ArrowArray *out, ck_column *c, uint32_t n) {
    uint32_t heaps = c->heaps ? c->heaps->count : 0;
    CK_TRY(column_node(ex, out, c, n, 3 + heaps, 0));
    out->buffers[1] = c->views;
    ck_buffer *sizes = ck_buffer_new(ex->mem, heaps * sizeof(int64_t));
    if (!sizes) return ck_nomem(ex->err, ex->mem, heaps * sizeof(int64_t));
    ((node *)out->private_data)->made[0] = sizes;
    for (uint32_t i = 0; i < heaps; i++) {
        out->buffers[2 + i] = c->heaps->buffers[i]->p;
        ((int64_t *)(void *)sizes->p)[i] = (int64_t)c->heaps->buffers[i]->bytes;
    }
    out->buffers[2 + heaps] = sizes->p;
    return CK_OK;
}

/* ---- any column ---- */

static ck_status export_column(exporter *ex, struct ArrowArray *out, const ck_type *t, ck_column *c, uint32_t n);

static ck_status export_list(exporter *ex, struct ArrowArray *out, const ck_type *t, ck_column *c, uint32_t n) {
    CK_TRY(column_node(ex, out, c, n, 2, 1));
    out->buffers[1] = c->offsets;
    uint32_t elements = (uint32_t)c->offsets[n];
    ck_column *child = c->children[0];
    struct ArrowArray *to = out->children[0];
    if (t->kind == CK_TYPE_ARRAY) return export_column(ex, to, t->fields[0].type, child, elements);
    CK_TRY(column_node(ex, to, child, elements, 1, 2)); /* a map's entries */
    CK_TRY(export_column(ex, to->children[0], t->fields[0].type, child->children[0], elements));
    return export_column(ex, to->children[1], t->fields[1].type, child->children[1], elements);
}

static bool is_narrower(ck_kind k) {
    return (k >= CK_TYPE_TINYINT && k <= CK_TYPE_INTEGER) || k == CK_TYPE_REAL || k == CK_TYPE_DATE ||
           k == CK_TYPE_INTERVAL_MONTH;
}

/* On failure *out may be half made: the root releases it with the rest. */
static ck_status export_column(exporter *ex, struct ArrowArray *out, const ck_type *t, ck_column *c, uint32_t n) {
    switch (c->phys) {
    case CK_PHYS_NULL:
        CK_TRY(new_node(ex, out, n, 0, 0));
        out->null_count = n;
        return CK_OK;
    case CK_PHYS_BOOL:
    case CK_PHYS_I64:
    case CK_PHYS_F64:
    case CK_PHYS_I128:
        CK_TRY(column_node(ex, out, c, n, 2, 0));
        out->buffers[1] = c->data;
        return is_narrower(t->kind) ? export_narrow(ex, out, t, c, n) : CK_OK;
    case CK_PHYS_VIEW:
        if (ex->flavour == CK_ARROW_VIEW) return export_views(ex, out, c, n);
        CK_TRY(column_node(ex, out, c, n, 3, 0));
        return export_plain_strings(ex, out, c, n);
    case CK_PHYS_LIST: return export_list(ex, out, t, c, n);
    case CK_PHYS_STRUCT:
        CK_TRY(column_node(ex, out, c, n, 1, t->field_count));
        for (uint32_t i = 0; i < t->field_count; i++)
            CK_TRY(export_column(ex, out->children[i], t->fields[i].type, c->children[i], n));
        return CK_OK;
    }
    return CK_OK;
}

/* ---- batches ---- */

/* All-NULL columns may stand for any type, without the children Arrow wants to see. */
static bool has_shape(const ck_type *t, const ck_column *c, bool entries) {
    if (c->phys != (entries ? CK_PHYS_STRUCT : ck_type_phys(t))) return false;
    if (c->phys == CK_PHYS_LIST) {
        bool map = t->kind == CK_TYPE_MAP;
        return c->child_count == 1 && has_shape(map ? t : t->fields[0].type, c->children[0], map);
    }
    if (c->phys != CK_PHYS_STRUCT) return true;
    if (c->child_count != t->field_count) return false;
    for (uint32_t i = 0; i < c->child_count; i++)
        if (!has_shape(t->fields[i].type, c->children[i], false)) return false;
    return true;
}

/* The live rows of a column, dense and of the shape of its type: itself when it is that already. */
static ck_status dense_column(exporter *ex, const ck_batch *b, const ck_type *t, ck_column *c, ck_column **out) {
    if (!b->sel && has_shape(t, c, false)) {
        *out = ck_column_ref(c);
        return CK_OK;
    }
    ck_column_builder builder;
    ck_status s = ck_column_builder_init(&builder, ex->mem, t, b->sel_count);
    if (s != CK_OK) return ck_nomem(ex->err, ex->mem, sizeof builder);
    s = b->sel ? ck_build_gather(&builder, c, b->sel, b->sel_count) : ck_build_range(&builder, c, 0, b->sel_count);
    *out = s == CK_OK ? ck_column_builder_finish(&builder) : NULL;
    ck_column_builder_destroy(&builder);
    return *out ? CK_OK : ck_nomem(ex->err, ex->mem, (size_t)b->sel_count * 16);
}

static ck_status export_field(exporter *ex, const ck_batch *b, const ck_field *field, uint32_t i,
                              struct ArrowArray *out) {
    ex->top = field;
    if (!b->columns[i]) return ck_fail(ex->err, CK_INVALID, "column \"%s\" was pruned", field->name);
    ck_column *dense;
    CK_TRY(dense_column(ex, b, field->type, b->columns[i], &dense));
    ck_status s = export_column(ex, out, field->type, dense, b->sel_count);
    ck_column_unref(&dense);
    return s;
}

ck_status ck_arrow_export_batch(const ck_batch *b, const ck_schema *s, ck_arrow_flavour f, struct ArrowArray *out,
                                ck_error *err) {
    CK_ASSERT(b->column_count == s->field_count);
    exporter ex = {.mem = b->mem, .flavour = f, .err = err};
    CK_TRY(new_node(&ex, out, b->sel_count, 1, s->field_count));
    for (uint32_t i = 0; i < s->field_count; i++) {
        ck_status status = export_field(&ex, b, &s->fields[i], i, out->children[i]);
        if (status == CK_OK) continue;
        out->release(out);
        return status;
    }
    return CK_OK;
}
