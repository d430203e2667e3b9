/* See table.h: pages, rows and the life of a table. */
#include "state/cold_int.h"

enum { ROOM_SHARE = 8, COMPACT_PAGES = 4 };

const ck_row_layout *ck_table_layout(const ck_table *t) { return &t->shape->layout; }
const ck_slot_schema *ck_table_schema(const ck_table *t) { return t->shape->schema; }
uint64_t ck_table_seed(const ck_table *t) { return t->seed; }

/* ---- life ---- */

ck_status ck_table_new(ck_epochs *e, ck_mem mem, const ck_shape *shape, uint64_t seed, ck_table **out, ck_error *err) {
    ck_mem m = ck_mem_as(mem, CK_MEM_STATE);
    ck_table *t = ck_alloc_zero(m, sizeof *t);
    if (!t) return ck_nomem(err, m, sizeof *t);
    t->epochs = e, t->shape = shape, t->mem = m, t->seed = seed;
    t->log = &t->own_log, t->born = e->epoch;
    ck_bytes_init(&t->scratch, m, CK_ROW_BYTES_MAX + (size_t)CK_KEY_BYTES_MAX * 4);
    ck_bytes_init(&t->loose, m, (size_t)CK_ROW_BYTES_MAX * 4);
    ck_bytes_init(&t->order_key, m, (size_t)CK_KEY_BYTES_MAX * 2 + 64);
    ck_status s = CK_OK;
    if (!shape->ordered && (!shape->listed || shape->schema->hashed))
        s = ck_index_init(&t->index, e->pool, m, ck_table_hash_refs, t);
    if (s == CK_OK && shape->listed) s = ck_index_init(&t->lists, e->pool, m, ck_table_list_hash_refs, t);
    if (s != CK_OK) {
        ck_index_destroy(&t->index);
        ck_free(m, t, sizeof *t);
        return ck_nomem(err, m, sizeof(ck_segment));
    }
    t->lists_ready = shape->listed;
    *out = t;
    return CK_OK;
}

uint32_t ck_table_retire_count(const ck_table *t) {
    uint32_t n = t->page_count + t->var.count + ck_dir_blocks(&t->dir) + ck_dir_blocks(&t->var.dir);
    for (uint32_t i = 0; i < t->bucket_count; i++) n += ck_table_retire_count(t->buckets[i]);
    return n;
}

void ck_table_free(ck_table *t) {
    if (!t) return;
    ck_partitions_free(t);
    ck_buckets_free(t);
    ck_cold_scan_free(t);
    ck_cold_filter_clear(t);
    for (uint32_t id = 0; id < t->page_count; id++) {
        if (!t->at[id].rows) continue;
        uint32_t class = ck_class_of_page(id);
        ck_page_head *h = ck_head_of(t->shape, class, t->at[id].rows);
        ck_epochs_retire_page(t->epochs, t->at[id].rows, t->shape->forms[class].bytes, h->birth);
    }
    ck_dir_destroy(&t->dir, t->epochs);
    ck_var_destroy(t);
    ck_free(t->mem, t->at, t->page_capacity * sizeof *t->at);
    ck_index_destroy(&t->index);
    ck_index_destroy(&t->lists);
    ck_log_free(t);
    ck_bytes_destroy(&t->scratch);
    ck_bytes_destroy(&t->loose);
    ck_bytes_destroy(&t->order_key);
    ck_free(t->mem, t, sizeof *t);
}

ck_status ck_table_nomem(const ck_table *t, size_t bytes, ck_error *err) {
    ck_status s = ck_page_nomem(t->epochs->pool, bytes, err);
    ck_error_prefix(err, "slot \"%s\" at %llu rows: ", t->shape->schema->slot, (unsigned long long)t->rows);
    return s;
}

uint64_t ck_table_row_count(const ck_table *t) {
    uint64_t n = t->rows + t->out_rows - t->borrowed;
    for (uint32_t i = 0; i < t->bucket_count; i++) n += ck_table_row_count(t->buckets[i]);
    return n;
}

size_t ck_table_bytes(const ck_table *t) {
    size_t n = sizeof *t + t->page_bytes + t->dir.bytes + t->page_capacity * sizeof *t->at + t->index.bytes +
               t->lists.bytes + t->var.bytes + t->var.dir.bytes + t->var.capacity * sizeof(ck_var_page) +
               t->own_log.bytes + t->scratch.capacity + t->loose.capacity + t->order_key.capacity + t->tree_bytes;
    if (t->partitions) n += ck_table_bytes(t->partitions);
    for (uint32_t i = 0; i < t->bucket_count; i++) n += ck_table_bytes(t->buckets[i]);
    n += t->spare_bytes;
    return n + ((size_t)t->bucket_capacity + t->buckets_gone) * (sizeof *t->buckets + sizeof *t->bucket_keys);
}

/* ---- pages ---- */

/* The page becomes private to the owner and its change bitmaps those of this epoch. */
ck_status ck_page_prepare(ck_table *t, uint32_t id) {
    ck_epochs *e = t->epochs;
    uint32_t class = ck_class_of_page(id);
    const ck_page_form *form = &t->shape->forms[class];
    ck_page_head *h = ck_head_of(t->shape, class, t->at[id].rows);
    if (!ck_epochs_private(e, h->birth)) {
        CK_TRY(ck_epochs_reserve(e, 3)); /* the page, and a root and a leaf of the directory */
        uint8_t *copy = ck_page_alloc(e->pool, form->bytes, CK_MEM_STATE);
        if (!copy) return CK_NOMEM;
        if (ck_dir_set(&t->dir, e, id, copy) != CK_OK) {
            ck_page_free(e->pool, copy, form->bytes, CK_MEM_STATE);
            return CK_NOMEM;
        }
        memcpy(copy, t->at[id].rows, (size_t)h->used * t->shape->row_bytes);
        memcpy(copy + form->head_at, h, form->bytes - form->head_at);
        if (id < CK_SMALL_PAGES) t->stale[id] = t->at[id].rows;
        ck_epochs_retire_page(e, t->at[id].rows, form->bytes, h->birth);
        t->at[id].rows = copy;
        h = ck_head_of(t->shape, class, copy);
        h->birth = e->epoch;
    }
    uint64_t *now = ck_page_bits(t->shape, h, 1), *before = ck_page_bits(t->shape, h, 2);
    bool keep_now = h->prepared > e->completed, keep_before = h->changed_before > e->completed;
    for (uint32_t i = 0; i < form->words; i++) {
        before[i] = (keep_before ? before[i] : 0) | (keep_now ? now[i] : 0);
        now[i] = 0;
    }
    h->changed_before = keep_now ? h->prepared : keep_before ? h->changed_before : 0;
    h->prepared = e->epoch;
    t->at[id].prepared = e->epoch;
    t->changed_epoch = e->epoch;
    return CK_OK;
}

static ck_status page_id_take(ck_table *t, uint32_t *id) {
    if (t->free_ids) {
        *id = t->free_ids - 1;
        return CK_OK; /* unlinked when the page is there */
    }
    if (t->page_count == t->page_capacity) {
        uint32_t capacity = t->page_capacity ? t->page_capacity + t->page_capacity / 2 + 2 : 2;
        ck_page_at *more = ck_realloc(t->mem, t->at, t->page_capacity * sizeof *more, capacity * sizeof *more);
        if (!more) return CK_NOMEM;
        t->at = more, t->page_capacity = capacity;
    }
    if (t->page_count >= 1ULL << (32 - t->shape->slot_bits)) return CK_FULL;
    *id = t->page_count;
    return CK_OK;
}

static ck_status page_add(ck_table *t, uint32_t *out) {
    uint32_t id;
    CK_TRY(page_id_take(t, &id));
    uint32_t class = ck_class_of_page(id);
    const ck_page_form *form = &t->shape->forms[class];
    uint8_t *p = ck_page_alloc(t->epochs->pool, form->bytes, CK_MEM_STATE);
    if (!p) return CK_NOMEM;
    if (ck_dir_set(&t->dir, t->epochs, id, p) != CK_OK) {
        ck_page_free(t->epochs->pool, p, form->bytes, CK_MEM_STATE);
        return CK_NOMEM;
    }
    if (id == t->page_count)
        t->page_count++;
    else
        t->free_ids = t->at[id].next;
    memset(p + form->head_at, 0, form->bytes - form->head_at);
    uint32_t epoch = t->epochs->epoch;
    *ck_head_of(t->shape, class, p) = (ck_page_head){.id = id, .birth = epoch, .prepared = epoch, .class = class};
    t->at[id] = (ck_page_at){.rows = p, .prepared = epoch};
    t->page_bytes += form->bytes;
    t->changed_epoch = epoch;
    *out = id;
    return CK_OK;
}

static void room_push(ck_table *t, uint32_t id, ck_page_head *h) {
    h->listed = 1;
    t->at[id].next = t->room;
    t->room = id + 1;
}

/* Of a private page without rows. When the directory cannot be written it stays, empty, to be filled again. */
static void page_remove(ck_table *t, uint32_t id, ck_page_head *h) {
    h->used = 0;
    if (t->fill == id + 1) return;
    if (ck_dir_set(&t->dir, t->epochs, id, NULL) != CK_OK) {
        if (!h->listed) room_push(t, id, h);
        return;
    }
    uint32_t bytes = t->shape->forms[h->class].bytes;
    bool listed = h->listed;
    t->page_bytes -= bytes;
    ck_epochs_retire_page(t->epochs, t->at[id].rows, bytes, h->birth);
    t->at[id].rows = NULL;
    if (listed) return; /* its id is free when the list comes to it */
    t->at[id].next = t->free_ids;
    t->free_ids = id + 1;
}

/* ---- rows ---- */

uint32_t ck_ref_of(const ck_table *t, const ck_row *row) {
    const ck_shape *s = t->shape;
    uint32_t max = s->forms[CK_SMALL_PAGES].bytes;
    const uint8_t *base = NULL;
    uint32_t id = 0;
    for (uint32_t i = 0; i < CK_SMALL_PAGES && i < t->page_count && !base; i++)
        if (t->at[i].rows && (size_t)(row - t->at[i].rows) < s->forms[i].bytes) base = t->at[i].rows, id = i;
    for (uint32_t i = 0; i < CK_SMALL_PAGES && !base; i++)
        if (t->stale[i] && (size_t)(row - t->stale[i]) < s->forms[i].bytes) base = t->stale[i], id = i;
    if (!base) {
        base = row - ((uintptr_t)row & (max - 1));
        id = ((const ck_page_head *)(const void *)(base + s->forms[CK_SMALL_PAGES].head_at))->id;
    }
    return id << s->slot_bits | (uint32_t)((size_t)(row - base) / s->row_bytes);
}

/* A free slot in the page being filled: behind those used, else the next hole from fill_word on. */
static bool slot_in_fill(ck_table *t, uint32_t *slot) {
    uint32_t id = t->fill - 1;
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    const ck_page_form *form = &t->shape->forms[h->class];
    if (h->live < h->used) {
        const uint64_t *live = ck_page_bits(t->shape, h, 0);
        for (; t->fill_word < form->words; t->fill_word++) {
            uint64_t holes = ~live[t->fill_word];
            if (!holes) continue;
            uint32_t s = t->fill_word * 64 + (uint32_t)__builtin_ctzll(holes);
            if (s >= h->used) break;
            *slot = s;
            return true;
        }
    }
    if (h->used == form->rows) return false;
    *slot = h->used;
    return true;
}

/* Next page to fill: one with holes, else a new one. */
static ck_status fill_next(ck_table *t) {
    t->fill = 0, t->fill_word = 0;
    while (t->room) {
        uint32_t id = t->room - 1;
        t->room = t->at[id].next;
        if (!t->at[id].rows) {
            t->at[id].next = t->free_ids;
            t->free_ids = id + 1;
            continue;
        }
        if (t->at[id].prepared != t->epochs->epoch) {
            ck_status s = ck_page_prepare(t, id);
            if (s != CK_OK) {
                t->room = id + 1; /* as it was */
                return s;
            }
        }
        ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows)->listed = 0;
        t->fill = id + 1;
        return CK_OK;
    }
    uint32_t id;
    CK_TRY(page_add(t, &id));
    t->fill = id + 1;
    return CK_OK;
}

ck_status ck_row_add(ck_table *t, uint32_t *ref, ck_row **row) {
    uint32_t slot = 0;
    if (t->fill && t->at[t->fill - 1].prepared != t->epochs->epoch) CK_TRY(ck_page_prepare(t, t->fill - 1));
    while (!t->fill || !slot_in_fill(t, &slot)) CK_TRY(fill_next(t));
    uint32_t id = t->fill - 1;
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    if (slot == h->used) h->used++;
    h->live++;
    ck_bit_set(ck_page_bits(t->shape, h, 0), slot);
    if (t->epochs->tracking) ck_row_changed(t, id, slot);
    *ref = id << t->shape->slot_bits | slot;
    *row = ck_row_of(t, *ref);
    memcpy(*row, t->shape->blank, t->shape->row_bytes);
    t->rows++;
    return CK_OK;
}

ck_status ck_row_drop_prepare(ck_table *t, uint32_t ref) {
    uint32_t id = ck_ref_page(t, ref);
    if (t->at[id].prepared != t->epochs->epoch) CK_TRY(ck_page_prepare(t, id));
    return ck_epochs_reserve(t->epochs, t->shape->var_count * 3 + 2); /* variable pages and directories it may empty */
}

void ck_row_drop(ck_table *t, uint32_t ref) {
    uint32_t id = ck_ref_page(t, ref), slot = ck_ref_slot(t, ref);
    ck_row *row = ck_row_of(t, ref);
    for (uint32_t i = 0; i < t->shape->var_count; i++) ck_var_drop(t, row, &t->shape->fields[t->shape->var_fields[i]]);
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    ck_bit_clear(ck_page_bits(t->shape, h, 0), slot);
    h->live--;
    t->rows--;
    t->changed_now += t->epochs->tracking;
    if (t->single == ref + 1) t->single = 0;
    if (h->live == 0)
        page_remove(t, id, h);
    else if (!h->listed && t->fill != id + 1 &&
             h->live <= t->shape->forms[h->class].rows - (t->shape->forms[h->class].rows + ROOM_SHARE - 1) / ROOM_SHARE)
        room_push(t, id, h);
    else if (t->fill == id + 1 && slot / 64 < t->fill_word)
        t->fill_word = slot / 64;
}

void ck_table_tidy(ck_table *t) {
    for (unsigned i = 0; i < COMPACT_PAGES && t->var.compact; i++) ck_var_compact(t);
}

/* ---- scan ---- */

uint32_t ck_table_scan_pages(ck_table *t, uint64_t *position, ck_row **rows, uint32_t max) {
    uint32_t n = 0, id = (uint32_t)(*position >> 32), slot = (uint32_t)*position;
    for (; id < t->page_count; id++, slot = 0) {
        if (!t->at[id].rows) continue;
        ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
        const uint64_t *live = ck_page_bits(t->shape, h, 0);
        for (; slot < h->used; slot++) {
            if (!ck_bit_get(live, slot)) continue;
            if (n == max) {
                *position = (uint64_t)id << 32 | slot;
                return n;
            }
            rows[n++] = t->at[id].rows + (size_t)slot * t->shape->row_bytes;
        }
    }
    *position = (uint64_t)id << 32;
    return n;
}

static uint32_t scan_one(ck_table *t, uint64_t *position, ck_row **rows, uint32_t max) {
    uint32_t n = *position & CK_SCAN_OUT ? 0 : ck_table_scan_pages(t, position, rows, max);
    return n || CK_LIKELY(t->out_rows == 0) ? n : ck_cold_scan(t, position, rows, max);
}

uint32_t ck_table_scan_next(ck_table *t, ck_table_scan *s, ck_row **rows, uint32_t max) {
    if (!t->shape->schema->bucketed || t->is_bucket) return scan_one(t, &s->position, rows, max);
    while (s->bucket_index < t->bucket_count) {
        uint32_t n = scan_one(t->buckets[s->bucket_index], &s->position, rows, max);
        if (n) return n;
        s->bucket_index++;
        s->position = 0;
    }
    return 0;
}
