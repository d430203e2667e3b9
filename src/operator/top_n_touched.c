/* The partitions touched since the last flush, in order of first touch, each with its top as it was emitted last: order
 * keys, ranks and how often. All columns of a row are in the user key and the order key, so that bytes are enough. */
#include "operator/top_n_int.h"

enum { FULL_PARTITIONS = 65536, FULL_BYTES = 16 << 20, FIRST_SLOTS = 512, FIRST_IMAGES = 256 };

/* ---- images ---- */

void ck_top_images_init(ck_top_images *m, ck_mem mem) {
    *m = (ck_top_images){.mem = mem};
    ck_bytes_init(&m->keys, mem, SIZE_MAX);
}

void ck_top_images_destroy(ck_top_images *m) {
    if (!m->mem.budget) return;
    ck_bytes_destroy(&m->keys);
    ck_free(m->mem, m->at, m->capacity * sizeof *m->at);
    *m = (ck_top_images){0};
}

void ck_top_images_clear(ck_top_images *m) {
    ck_bytes_clear(&m->keys);
    m->count = 0;
}

static ck_status add(ck_top_images *m, size_t at, uint64_t rank, uint64_t copies) {
    if (m->count == m->capacity) {
        size_t capacity = m->capacity ? m->capacity * 2 : FIRST_IMAGES;
        void *p = ck_realloc(m->mem, m->at, m->capacity * sizeof *m->at, capacity * sizeof *m->at);
        if (!p) return CK_NOMEM;
        m->at = p;
        m->capacity = capacity;
    }
    m->at[m->count++] = (ck_top_image){at, (uint32_t)(m->keys.n - at), rank, copies};
    return CK_OK;
}

/* Copies of a row have ranks of their own where rows are numbered. */
static ck_status add_entry(ck_top_images *m, const ck_top_plan *plan, ck_table *t, const ck_top_entry *e) {
    size_t at = m->keys.n;
    CK_TRY(ck_row_order_key(t, e->row, &m->keys));
    bool numbered = plan->rank_column && plan->rank == CK_TOP_ROW_NUMBER;
    if (!numbered) return add(m, at, plan->rank_column ? e->rank : 0, e->copies);
    for (uint64_t i = 0; i < e->copies; i++) CK_TRY(add(m, at, e->rank + i, 1));
    return CK_OK;
}

ck_status ck_top_images_add(ck_top_images *m, const ck_top_plan *plan, ck_table *t, ck_partition p) {
    ck_top_walk w;
    ck_top_entry e;
    if (p == 0) return CK_OK;
    ck_top_walk_open(&w, plan, t, p);
    while (ck_top_walk_next(&w, &e)) CK_TRY(add_entry(m, plan, t, &e));
    return CK_OK;
}

/* ---- partitions ---- */

void ck_top_touched_init(ck_top_touched *t, ck_mem mem) {
    *t = (ck_top_touched){.mem = mem};
    ck_bytes_init(&t->keys, mem, SIZE_MAX);
    ck_top_images_init(&t->images, mem);
}

void ck_top_touched_destroy(ck_top_touched *t) {
    if (!t->mem.budget) return;
    ck_bytes_destroy(&t->keys);
    ck_top_images_destroy(&t->images);
    ck_free(t->mem, t->slots, t->slot_count * sizeof *t->slots);
    ck_free(t->mem, t->entries, t->capacity * sizeof *t->entries);
    *t = (ck_top_touched){0};
}

void ck_top_touched_clear(ck_top_touched *t) {
    if (t->count) memset(t->slots, 0, t->slot_count * sizeof *t->slots);
    ck_bytes_clear(&t->keys);
    ck_top_images_clear(&t->images);
    t->count = 0;
}

bool ck_top_touched_is_full(const ck_top_touched *t) {
    return t->count >= FULL_PARTITIONS || t->keys.n + t->images.keys.n >= FULL_BYTES ||
           t->images.count * sizeof(ck_top_image) >= FULL_BYTES;
}

/* Twice the slots (some at first), and as many entries as half of them. */
static ck_status grow(ck_top_touched *t) {
    size_t slot_count = t->slot_count ? t->slot_count * 2 : FIRST_SLOTS;
    void *entries =
        ck_realloc(t->mem, t->entries, t->capacity * sizeof *t->entries, slot_count / 2 * sizeof *t->entries);
    if (!entries) return CK_NOMEM;
    t->entries = entries;
    t->capacity = slot_count / 2;
    ck_touched_slot *slots = ck_alloc_zero(t->mem, slot_count * sizeof *slots);
    if (!slots) return CK_NOMEM;
    for (size_t i = 0; i < t->count; i++) {
        size_t at = t->entries[i].hash & (slot_count - 1);
        while (slots[at].entry) at = (at + 1) & (slot_count - 1);
        slots[at] = (ck_touched_slot){t->entries[i].hash, (uint32_t)i + 1};
    }
    ck_free(t->mem, t->slots, t->slot_count * sizeof *t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    return CK_OK;
}

static bool is_key(const ck_top_touched *t, const ck_top_touched_entry *e, size_t at) {
    size_t n = t->keys.n - at;
    return e->key_bytes == n && memcmp(t->keys.p + e->key_at, t->keys.p + at, n) == 0;
}

ck_status ck_top_touch(ck_top_touched *t, const ck_top_plan *plan, ck_table *table, ck_partition p, uint64_t hash,
                       const ck_batch *b, uint32_t row) {
    if (CK_UNLIKELY(t->count == t->capacity)) CK_TRY(grow(t));
    size_t at = t->keys.n, mask = t->slot_count - 1, slot = hash & mask;
    CK_TRY(ck_bytes_reserve(&t->keys, 16));
    CK_TRY(ck_key_encode(&plan->partition, b, row, &t->keys));
    for (; t->slots[slot].entry; slot = (slot + 1) & mask) {
        if (t->slots[slot].hash != hash || !is_key(t, &t->entries[t->slots[slot].entry - 1], at)) continue;
        t->keys.n = at;
        return CK_OK;
    }
    size_t first = t->images.count;
    ck_status s = ck_top_images_add(&t->images, plan, table, p);
    if (s != CK_OK) {
        t->keys.n = at;
        t->images.count = first;
        return s;
    }
    t->entries[t->count] = (ck_top_touched_entry){hash, at, (uint32_t)(t->keys.n - at), first, t->images.count - first};
    t->slots[slot] = (ck_touched_slot){hash, (uint32_t)++t->count};
    return CK_OK;
}
