/* See map.h. */
#include "base/map.h"

#include "base/hash.h"

static uint64_t hash_key(const ck_map *m, ck_view key) {
    uint64_t h = CK_FNV_OFFSET;
    for (size_t i = 0; i < key.n; i++) {
        char c = m->nocase ? ck_ascii_lower(key.p[i]) : key.p[i];
        h = ck_fnv1a_more(h, &c, 1);
    }
    return h;
}

static bool same_key(const ck_map *m, ck_view a, ck_view b) {
    return m->nocase ? ck_view_eq_nocase(a, b) : ck_view_eq(a, b);
}

void ck_map_init(ck_map *m, ck_arena *arena, bool nocase) { *m = (ck_map){.arena = arena, .nocase = nocase}; }

static size_t find_slot(const ck_map *m, ck_view key, uint64_t hash) {
    size_t i = hash & (m->slot_count - 1);
    while (m->slots[i]) {
        const ck_map_entry *e = &m->entries[m->slots[i] - 1];
        if (e->hash == hash && same_key(m, e->key, key)) break;
        i = (i + 1) & (m->slot_count - 1);
    }
    return i;
}

ck_map_entry *ck_map_find(const ck_map *m, ck_view key) {
    if (!m->slot_count) return NULL;
    size_t i = find_slot(m, key, hash_key(m, key));
    return m->slots[i] ? &m->entries[m->slots[i] - 1] : NULL;
}

void *ck_map_get(const ck_map *m, ck_view key) {
    const ck_map_entry *e = ck_map_find(m, key);
    return e ? e->value : NULL;
}

static ck_status grow(ck_map *m) {
    size_t capacity = m->capacity ? m->capacity * 2 : 8, slot_count = capacity * 2;
    ck_map_entry *entries = ck_arena_array(m->arena, capacity, sizeof *entries);
    uint32_t *slots = ck_arena_array(m->arena, slot_count, sizeof *slots);
    if (!entries || !slots || capacity > UINT32_MAX / 2) return CK_NOMEM;
    if (m->count) memcpy(entries, m->entries, m->count * sizeof *entries);
    m->entries = entries, m->capacity = capacity, m->slots = slots, m->slot_count = slot_count;
    for (size_t i = 0; i < m->count; i++) m->slots[find_slot(m, entries[i].key, entries[i].hash)] = (uint32_t)i + 1;
    return CK_OK;
}

ck_status ck_map_put(ck_map *m, ck_view key, void *value, void **was) {
    ck_map_entry *e = ck_map_find(m, key);
    if (was) *was = e ? e->value : NULL;
    if (e) {
        e->value = value;
        return CK_OK;
    }
    if (m->count == m->capacity) CK_TRY(grow(m));
    char *copy = ck_arena_strndup(m->arena, key.p, key.n);
    if (!copy) return CK_NOMEM;
    uint64_t hash = hash_key(m, key);
    m->entries[m->count] = (ck_map_entry){{copy, key.n}, value, hash};
    size_t slot = find_slot(m, key, hash);
    m->slots[slot] = (uint32_t)++m->count;
    return CK_OK;
}
