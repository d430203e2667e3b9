/* The groups touched since the last flush, in order of first touch, each with its result as it was emitted last. A
 * group is known by its key: the hash finds the entry, the key columns of its segment confirm it. */
#include "operator/group_int.h"

enum { FULL_GROUPS = 65536, FULL_BYTES = 16 << 20, FIRST_SLOTS = 1024, FIRST_ENTRIES = 256 };

void ck_touched_init(ck_touched *t, ck_mem mem, uint32_t key_count, uint32_t column_count) {
    *t = (ck_touched){.mem = mem, .key_count = key_count, .column_count = column_count};
}

static void drop_segments(ck_touched *t) {
    for (size_t i = 0; i < t->segment_count; i++) {
        ck_touched_segment *s = &t->segments[i];
        for (uint32_t c = 0; c < t->column_count; c++) ck_column_unref(&s->columns[c]);
        ck_free(t->mem, s->columns, t->column_count * sizeof(ck_column *));
        ck_free(t->mem, s->existed, s->n);
    }
    t->segment_count = 0;
    t->column_bytes = 0;
}

void ck_touched_destroy(ck_touched *t) {
    if (!t->mem.budget) return;
    drop_segments(t);
    ck_free(t->mem, t->segments, t->segment_capacity * sizeof *t->segments);
    ck_free(t->mem, t->entries, t->capacity * sizeof *t->entries);
    ck_free(t->mem, t->slots, t->slot_count * sizeof *t->slots);
    *t = (ck_touched){0};
}

void ck_touched_clear(ck_touched *t) {
    drop_segments(t);
    if (t->slots) memset(t->slots, 0, t->slot_count * sizeof *t->slots);
    t->count = 0;
}

bool ck_touched_is_full(const ck_touched *t) { return t->count >= FULL_GROUPS || t->column_bytes >= FULL_BYTES; }

/* Room for n more entries, the slots at most half full. */
static ck_status reserve(ck_touched *t, uint32_t n) {
    if (n > t->capacity - t->count) {
        size_t capacity = t->capacity ? t->capacity * 2 : FIRST_ENTRIES;
        while (capacity - t->count < n) capacity *= 2;
        void *p = ck_realloc(t->mem, t->entries, t->capacity * sizeof *t->entries, capacity * sizeof *t->entries);
        if (!p) return CK_NOMEM;
        t->entries = p;
        t->capacity = capacity;
    }
    if ((t->count + n) * 2 <= t->slot_count) return CK_OK;
    size_t slot_count = t->slot_count ? t->slot_count : FIRST_SLOTS;
    while ((t->count + n) * 2 > slot_count) slot_count *= 2;
    uint32_t *slots = ck_alloc_zero(t->mem, slot_count * sizeof *slots);
    if (!slots) return CK_NOMEM;
    for (size_t i = 0; i < t->count; i++) {
        size_t at = t->entries[i].hash & (slot_count - 1);
        while (slots[at]) at = (at + 1) & (slot_count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    ck_free(t->mem, t->slots, t->slot_count * sizeof *t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    return CK_OK;
}

static bool same_key(ck_column *const *columns, uint32_t row, const ck_key_spec *spec, const ck_batch *b, uint32_t at) {
    for (uint32_t i = 0; i < spec->count; i++) {
        const ck_column *x = columns[i], *y = b->columns[spec->columns[i]];
        bool same = x->phys == CK_PHYS_I64 && !x->validity && !y->validity ? x->i64[row] == y->i64[at]
                                                                           : ck_column_rows_equal(x, row, y, at);
        if (!same) return false;
    }
    return true;
}

/* The same for a group entered a moment ago, whose segment does not stand yet. */
static bool same_new_key(const ck_key_spec *spec, const ck_batch *b, uint32_t first, uint32_t second) {
    for (uint32_t i = 0; i < spec->count; i++) {
        const ck_column *c = b->columns[spec->columns[i]];
        if (!ck_column_rows_equal(c, first, c, second)) return false;
    }
    return true;
}

ck_status ck_touched_enter(ck_touched *t, const ck_key_spec *spec, const ck_batch *b, const uint64_t *hashes,
                           uint32_t n, uint16_t *newly, uint32_t *newly_count) {
    *newly_count = 0;
    if (reserve(t, n) != CK_OK) return CK_NOMEM;
    size_t mask = t->slot_count - 1;
    uint32_t fresh = 0, segment = (uint32_t)t->segment_count;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = ck_batch_row(b, k);
        size_t slot = hashes[k] & mask;
        bool known = false;
        for (; t->slots[slot] && !known; slot = (slot + 1) & mask) {
            const ck_touched_entry *e = &t->entries[t->slots[slot] - 1];
            if (e->hash != hashes[k]) continue;
            known = e->segment == segment ? same_new_key(spec, b, ck_batch_row(b, newly[e->row]), at)
                                          : same_key(t->segments[e->segment].columns, e->row, spec, b, at);
        }
        if (known) continue;
        t->entries[t->count] = (ck_touched_entry){hashes[k], segment, fresh};
        t->slots[slot] = (uint32_t)++t->count;
        newly[fresh++] = (uint16_t)k;
    }
    *newly_count = fresh;
    return CK_OK;
}

ck_status ck_touched_add_segment(ck_touched *t, ck_column **columns, const uint8_t *existed, uint32_t n) {
    if (t->segment_count == t->segment_capacity) {
        size_t capacity = t->segment_capacity ? t->segment_capacity * 2 : 16;
        void *p =
            ck_realloc(t->mem, t->segments, t->segment_capacity * sizeof *t->segments, capacity * sizeof *t->segments);
        if (!p) return CK_NOMEM;
        t->segments = p;
        t->segment_capacity = capacity;
    }
    ck_touched_segment s = {.n = n};
    s.columns = ck_alloc(t->mem, t->column_count * sizeof(ck_column *));
    s.existed = ck_alloc(t->mem, n);
    if (!s.columns || !s.existed) {
        if (s.columns) ck_free(t->mem, s.columns, t->column_count * sizeof(ck_column *));
        if (s.existed) ck_free(t->mem, s.existed, n);
        return CK_NOMEM;
    }
    for (uint32_t c = 0; c < t->column_count; c++) {
        s.columns[c] = columns[c];
        t->column_bytes += ck_column_pinned_bytes(columns[c]);
        columns[c] = NULL;
    }
    memcpy(s.existed, existed, n);
    t->segments[t->segment_count++] = s;
    return CK_OK;
}
