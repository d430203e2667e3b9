/* Variable parts of rows: append-only pages of entries
 *
 *   [u32 row reference][u32 length][u16 field][bytes]
 *
 * An entry is garbage when the field it names no longer points at it. Bytes once written never change, so that the
 * reader of a mark needs no copy of a page that is still being appended to. A page that is half garbage is compacted by
 * copying out what lives and retiring it; one that is all garbage is retired at once. */
#include "state/table_int.h"

enum { ENTRY_HEAD = 10, VAR_PAGE_MIN = CK_PAGE_MIN, VAR_PAGE_MAX = CK_PAGE_CHUNK };

static uint32_t entry_bytes(size_t n) { return (uint32_t)(ENTRY_HEAD + n); }

/* ---- pages ---- */

static ck_status var_id_take(ck_table *t, uint32_t *id) {
    ck_var *v = &t->var;
    if (v->free_ids) {
        *id = v->free_ids - 1;
        return CK_OK;
    }
    if (v->count == v->capacity) {
        uint32_t capacity = v->capacity ? v->capacity * 2 : 2;
        if (capacity > INT32_MAX / 2) return CK_FULL;
        ck_var_page *more = ck_realloc(t->mem, v->pages, v->capacity * sizeof *more, capacity * sizeof *more);
        if (!more) return CK_NOMEM;
        v->pages = more, v->capacity = capacity;
    }
    *id = v->count;
    return CK_OK;
}

static ck_status var_page_add(ck_table *t, uint32_t bytes, uint32_t *out) {
    ck_var *v = &t->var;
    uint32_t id;
    CK_TRY(var_id_take(t, &id));
    uint8_t *p = ck_page_alloc(t->epochs->pool, bytes, CK_MEM_STATE);
    if (!p) return CK_NOMEM;
    if (ck_dir_set(&v->dir, t->epochs, id, p) != CK_OK) {
        ck_page_free(t->epochs->pool, p, bytes, CK_MEM_STATE);
        return CK_NOMEM;
    }
    if (id == v->count)
        v->count++;
    else
        v->free_ids = v->pages[id].next;
    v->pages[id] = (ck_var_page){.p = p, .bytes = bytes, .birth = t->epochs->epoch};
    v->bytes += bytes;
    *out = id;
    return CK_OK;
}

/* Nothing points into it any more. When the directory cannot be written it stays as garbage. */
static void var_page_remove(ck_table *t, uint32_t id) {
    ck_var_page *p = &t->var.pages[id];
    if (ck_epochs_reserve(t->epochs, 3) != CK_OK || ck_dir_set(&t->var.dir, t->epochs, id, NULL) != CK_OK) return;
    t->var.bytes -= p->bytes;
    ck_epochs_retire_page(t->epochs, p->p, p->bytes, p->birth);
    p->p = NULL;
    if (t->var.fill == id + 1) t->var.fill = 0;
    if (p->queued) return; /* its id is free when the queue comes to it */
    p->next = t->var.free_ids;
    t->var.free_ids = id + 1;
}

void ck_var_destroy(ck_table *t) {
    ck_var *v = &t->var;
    for (uint32_t i = 0; i < v->count; i++)
        ck_epochs_retire_page(t->epochs, v->pages[i].p, v->pages[i].bytes, v->pages[i].birth);
    ck_dir_destroy(&v->dir, t->epochs);
    ck_free(t->mem, v->pages, v->capacity * sizeof *v->pages);
    *v = (ck_var){0};
}

/* ---- entries ---- */

static uint32_t page_bytes_for(const ck_table *t, uint32_t need) {
    uint32_t bytes = VAR_PAGE_MIN;
    while (bytes < VAR_PAGE_MAX && bytes < t->var.bytes) bytes *= 2; /* doubles what is there, up to 64 KiB */
    while (bytes < need) bytes *= 2;
    return bytes;
}

static void queue_if_half(ck_table *t, uint32_t id) {
    ck_var_page *p = &t->var.pages[id];
    if (p->queued || t->var.fill == id + 1 || p->dead < p->used / 2) return;
    p->queued = true;
    p->next = t->var.compact;
    t->var.compact = id + 1;
}

static ck_status var_append(ck_table *t, uint32_t row_ref, uint16_t field, ck_view v, uint32_t *page,
                            uint32_t *offset) {
    uint32_t need = entry_bytes(v.n);
    uint32_t id = t->var.fill - 1;
    if (!t->var.fill || t->var.pages[id].bytes - t->var.pages[id].used < need) {
        uint32_t full = t->var.fill;
        CK_TRY(var_page_add(t, page_bytes_for(t, need), &id));
        t->var.fill = id + 1;
        if (full) queue_if_half(t, full - 1);
    }
    ck_var_page *p = &t->var.pages[id];
    uint32_t length = (uint32_t)v.n;
    uint8_t *e = p->p + p->used;
    memcpy(e, &row_ref, 4);
    memcpy(e + 4, &length, 4);
    memcpy(e + 8, &field, 2);
    memcpy(e + ENTRY_HEAD, v.p, v.n);
    *page = id;
    *offset = p->used + ENTRY_HEAD;
    p->used += need;
    return CK_OK;
}

static void var_garbage(ck_table *t, ck_strview v) {
    if (v.length <= CK_STRVIEW_INLINE) return;
    uint32_t id = (uint32_t)v.ref.buffer;
    ck_var_page *p = &t->var.pages[id];
    p->dead += entry_bytes((size_t)v.length);
    if (p->dead == p->used) {
        if (t->var.fill == id + 1 && p->bytes == VAR_PAGE_MAX && ck_epochs_private(t->epochs, p->birth))
            p->used = p->dead = 0; /* the page being filled starts again */
        else
            var_page_remove(t, id);
    } else {
        queue_if_half(t, id);
    }
}

/* Where a field's bytes are. By words: in parts it would wait for them when it is read whole, or copied, at once. */
static void put_ref(ck_row *row, uint32_t field_at, ck_view v, uint32_t page, uint32_t offset) {
    uint32_t prefix;
    memcpy(&prefix, v.p, sizeof prefix);
    uint64_t low = (uint32_t)v.n | (uint64_t)prefix << 32, high = page | (uint64_t)offset << 32;
    memcpy(row + field_at, &low, 8);
    memcpy(row + field_at + 8, &high, 8);
}

ck_status ck_var_set(ck_table *t, ck_row *row, const ck_shape_field *f, ck_view v) {
    if (v.n > INT32_MAX / 2) return CK_FULL;
    bool had = !ck_row_null(row, f->null_bit);
    ck_strview old = ck_row_ref(row, f->offset);
    if (v.n <= CK_STRVIEW_INLINE) {
        ck_strview now = ck_strview_inline(v.p, v.n);
        memcpy(row + f->offset, &now, sizeof now);
    } else {
        if (had && (size_t)old.length == v.n && memcmp(ck_var_get(t, row, f->offset).p, v.p, v.n) == 0) return CK_OK;
        uint32_t page, offset, field = (uint32_t)(f - t->shape->fields);
        CK_TRY(ck_epochs_reserve(t->epochs, 3));
        CK_TRY(var_append(t, ck_ref_of(t, row), (uint16_t)field, v, &page, &offset));
        put_ref(row, f->offset, v, page, offset);
    }
    if (f->null_bit != UINT32_MAX) ck_row_set_null(row, f->null_bit, false);
    if (had) var_garbage(t, old);
    return CK_OK;
}

void ck_var_drop(ck_table *t, const ck_row *row, const ck_shape_field *f) {
    if (!ck_row_null(row, f->null_bit)) var_garbage(t, ck_row_ref(row, f->offset));
}

/* ---- compaction ---- */

/* The row whose field points at this very entry, or NULL. */
static ck_row *owner_of(ck_table *t, uint32_t ref, uint16_t field, uint32_t page, uint32_t offset) {
    uint32_t id = ck_ref_page(t, ref), slot = ck_ref_slot(t, ref);
    if (id >= t->page_count || !t->at[id].rows) return NULL;
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    if (slot >= h->used || !ck_bit_get(ck_page_bits(t->shape, h, 0), slot)) return NULL;
    ck_row *row = ck_row_of(t, ref);
    const ck_shape_field *f = &t->shape->fields[field];
    ck_strview v = ck_row_ref(row, f->offset);
    bool mine = !ck_row_null(row, f->null_bit) && v.length > CK_STRVIEW_INLINE && (uint32_t)v.ref.buffer == page &&
                (uint32_t)v.ref.offset == offset;
    return mine ? row : NULL;
}

static ck_status move_entry(ck_table *t, uint32_t id, uint32_t at, uint32_t length, uint32_t ref, uint16_t field) {
    if (!owner_of(t, ref, field, id, at)) return CK_OK;
    uint32_t page_id = ck_ref_page(t, ref);
    if (t->at[page_id].prepared != t->epochs->epoch) CK_TRY(ck_page_prepare(t, page_id));
    uint32_t page, offset;
    ck_view bytes = {(const char *)t->var.pages[id].p + at, length};
    CK_TRY(var_append(t, ref, field, bytes, &page, &offset));
    ck_strview now = ck_strview_ref((const char *)t->var.pages[page].p + offset, length, page, offset);
    memcpy(ck_row_of(t, ref) + t->shape->fields[field].offset, &now, sizeof now);
    t->var.pages[id].dead += entry_bytes(length);
    return CK_OK;
}

/* The next queued page. Without memory it stays queued, with what was moved counted as garbage. */
void ck_var_compact(ck_table *t) {
    uint32_t id = t->var.compact - 1;
    ck_var_page *p = &t->var.pages[id];
    if (p->p) {
        for (uint32_t at = 0; at < t->var.pages[id].used;) {
            const uint8_t *e = t->var.pages[id].p + at;
            uint32_t ref, length;
            uint16_t field;
            memcpy(&ref, e, 4);
            memcpy(&length, e + 4, 4);
            memcpy(&field, e + 8, 2);
            if (move_entry(t, id, at + ENTRY_HEAD, length, ref, field) != CK_OK) return;
            at += entry_bytes(length);
        }
        p = &t->var.pages[id];
    }
    t->var.compact = p->next;
    p->queued = false;
    if (p->p) {
        var_page_remove(t, id);
    } else {
        p->next = t->var.free_ids;
        t->var.free_ids = id + 1;
    }
}

/* ---- the table's string calls ---- */

ck_view ck_table_str(const ck_table *t, const ck_row *row, uint32_t field) {
    return ck_var_get(t, row, t->shape->fields[field].offset);
}

ck_status ck_table_set_str(ck_table *t, ck_row *row, uint32_t field, ck_view v) {
    return ck_var_set(t, row, &t->shape->fields[field], v);
}
