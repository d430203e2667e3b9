/* The groups touched since the last flush, in order of first touch, each with its result as it was emitted last. A
 * group is known by its key: the hash finds the entry, the key columns of its segment confirm it. */
#include "operator/group_int.h"

enum { FULL_GROUPS = 65536, FULL_BYTES = 16 << 20, FIRST_SLOTS = 512 };

void ck_touched_init(ck_touched *t, ck_mem mem, bool nullable_key, uint32_t column_count) {
    *t = (ck_touched){.mem = mem, .nullable_key = nullable_key, .column_count = column_count};
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

/* Twice the slots (some at first), and as many entries as half of them. */
static ck_status grow(ck_touched *t) {
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

static bool same_key(ck_column *const *columns, uint32_t row, const ck_key_spec *spec, const ck_batch *b, uint32_t at) {
    for (uint32_t i = 0; i < spec->count; i++)
        if (!ck_column_rows_equal(columns[i], row, b->columns[spec->columns[i]], at)) return false;
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

/* One integer that is never NULL: the hash is one to one (ck_hash_u64 mixes without loss), nothing is left to compare.
 */
static bool hash_is_key(const ck_touched *t, const ck_key_spec *spec) {
    return spec->count == 1 && !t->nullable_key && ck_type_phys(spec->types[0]) == CK_PHYS_I64;
}

ck_status ck_touched_enter(ck_touched *t, const ck_key_spec *spec, const ck_batch *b, const uint64_t *hashes,
                           uint32_t n, uint16_t *newly, uint32_t *newly_count) {
    uint32_t fresh = 0, segment = (uint32_t)t->segment_count;
    bool exact = hash_is_key(t, spec);
    *newly_count = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (CK_UNLIKELY(t->count == t->capacity) && grow(t) != CK_OK) return CK_NOMEM;
        size_t mask = t->slot_count - 1, slot = hashes[k] & mask;
        bool known = false;
        for (; t->slots[slot].entry; slot = (slot + 1) & mask) {
            if (t->slots[slot].hash != hashes[k]) continue;
            const ck_touched_entry *e = &t->entries[t->slots[slot].entry - 1];
            known = exact || (e->segment == segment
                                  ? same_new_key(spec, b, ck_batch_row(b, newly[e->row]), ck_batch_row(b, k))
                                  : same_key(t->segments[e->segment].columns, e->row, spec, b, ck_batch_row(b, k)));
            if (known) break;
        }
        if (known) continue;
        t->entries[t->count] = (ck_touched_entry){hashes[k], segment, fresh};
        t->slots[slot] = (ck_touched_slot){hashes[k], (uint32_t)++t->count};
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

/* They stand in consecutive segments. */
ck_status ck_touched_gather(const ck_touched *t, size_t first, uint32_t n, uint32_t column, const uint16_t *identity,
                            ck_column_builder *to) {
    uint32_t segment = t->entries[first].segment, row = t->entries[first].row;
    for (uint32_t done = 0; done < n; segment++, row = 0) {
        uint32_t some = t->segments[segment].n - row;
        if (some > n - done) some = n - done;
        CK_TRY(ck_build_gather(to, t->segments[segment].columns[column], identity + row, some));
        done += some;
    }
    return CK_OK;
}
