/* See batch.h. Origins and batch headers; what a batch weighs and how it is compacted is in compact.c. */
#include "data/column_int.h"

/* ---- origins ---- */

static size_t origin_bytes(uint32_t row_count, size_t name_bytes) {
    return sizeof(ck_origin) + row_count * sizeof(uint32_t) + name_bytes;
}

ck_origin *ck_origin_new(ck_mem mem, const char *object, uint64_t base_offset, uint32_t row_count) {
    size_t name_bytes = strlen(object) + 1;
    ck_origin *o = ck_alloc(mem, origin_bytes(row_count, name_bytes));
    if (!o) return NULL;
    atomic_init(&o->refs, 1);
    o->mem = mem;
    o->base_offset = base_offset;
    o->of_records = false;
    o->row_count = row_count;
    o->object = (char *)&o->row_offset[row_count];
    memcpy(o->object, object, name_bytes);
    return o;
}

ck_origin *ck_origin_ref(ck_origin *o) {
    if (o) atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

void ck_origin_unref(ck_origin **po) {
    ck_origin *o = *po;
    *po = NULL;
    if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1) return;
    ck_free(o->mem, o, origin_bytes(o->row_count, strlen(o->object) + 1));
}

/* ---- batches ---- */

ck_batch *ck_batch_new(ck_mem mem, uint32_t column_count, uint32_t row_count, bool with_sel, bool with_weights) {
    CK_ASSERT(row_count <= CK_BATCH_ROWS_MAX);
    size_t columns = column_count * sizeof(ck_column *);
    size_t sel = with_sel ? row_count * sizeof(uint16_t) : 0;
    size_t bytes = sizeof(ck_batch) + columns + sel + (with_weights ? row_count : 0);
    ck_batch *b = ck_alloc(mem, bytes);
    if (!b) return NULL;
    *b = (ck_batch){
        .row_count = row_count, .column_count = column_count, .sel_count = row_count, .mem = mem, .bytes = bytes};
    atomic_init(&b->refs, 1);
    for (uint32_t i = 0; i < column_count; i++) b->columns[i] = NULL;
    char *after = (char *)b->columns + columns;
    if (with_sel) b->sel = (uint16_t *)(void *)after;
    if (with_weights) b->weights = (int8_t *)(after + sel);
    return b;
}

void ck_batch_set_column(ck_batch *b, uint32_t index, ck_column **c) {
    CK_ASSERT(index < b->column_count && (!*c || (*c)->length >= b->row_count));
    ck_column_unref(&b->columns[index]);
    b->columns[index] = *c;
    *c = NULL;
}

ck_batch *ck_batch_ref(ck_batch *b) {
    uint32_t was = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    CK_ASSERT(was != 0 && was != UINT32_MAX);
    return b;
}

void ck_batch_unref(ck_batch **pb) {
    ck_batch *b = *pb;
    *pb = NULL;
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    for (uint32_t i = 0; i < b->column_count; i++) ck_column_unref(&b->columns[i]);
    ck_origin_unref(&b->origin);
    ck_free(b->mem, b, b->bytes);
}

void ck_batch_place(const ck_batch *b, uint32_t row, ck_error *err) {
    const ck_origin *o = b->origin;
    if (!err) return;
    err->fatal = true;
    if (!o) return;
    size_t n = strlen(o->object);
    if (n >= sizeof err->place.object) n = sizeof err->place.object - 1;
    memcpy(err->place.object, o->object, n);
    err->place.object[n] = '\0';
    if (row < o->row_count) err->place.byte_offset = (int64_t)(o->base_offset + o->row_offset[row]);
    err->place.of_records = o->of_records;
}

/* What every derived header keeps of its parent. */
static void inherit(ck_batch *to, const ck_batch *from) {
    if (from->weights) memcpy(to->weights, from->weights, from->row_count);
    to->origin = ck_origin_ref(from->origin);
}

ck_batch *ck_batch_select(const ck_batch *b, const uint16_t *sel, uint32_t sel_count) {
    CK_ASSERT(sel_count <= b->row_count);
    ck_batch *n = ck_batch_new(b->mem, b->column_count, b->row_count, true, b->weights != NULL);
    if (!n) return NULL;
    if (sel_count) memcpy(n->sel, sel, sel_count * sizeof *sel);
    n->sel_count = sel_count;
    for (uint32_t i = 0; i < b->column_count; i++)
        if (b->columns[i]) n->columns[i] = ck_column_ref(b->columns[i]);
    inherit(n, b);
    return n;
}

ck_batch *ck_batch_project(const ck_batch *b, const uint32_t *map, uint32_t count) {
    ck_batch *n = ck_batch_new(b->mem, count, b->row_count, b->sel != NULL, b->weights != NULL);
    if (!n) return NULL;
    if (b->sel && b->sel_count) memcpy(n->sel, b->sel, b->sel_count * sizeof *b->sel);
    n->sel_count = b->sel_count;
    for (uint32_t i = 0; i < count; i++) {
        CK_ASSERT(map[i] < b->column_count);
        if (b->columns[map[i]]) n->columns[i] = ck_column_ref(b->columns[map[i]]);
    }
    inherit(n, b);
    return n;
}
