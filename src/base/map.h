/* A small hash map from names to pointers for plan-time work (catalogs, options, registries). Lives in an arena, keeps
 * insertion order for iteration, never removes. Not for data: rows have state tables. */
#ifndef CK_BASE_MAP_H
#define CK_BASE_MAP_H

#include "base/arena.h"

typedef struct ck_map_entry {
    ck_view key; /* copied into the arena */
    void *value; /* borrowed */
    uint64_t hash;
} ck_map_entry;

typedef struct ck_map {
    ck_arena *arena;
    ck_map_entry *entries; /* insertion order */
    size_t count, capacity;
    uint32_t *slots; /* entry index + 1; 0 = free */
    size_t slot_count;
    bool nocase; /* ASCII case ignored in keys */
} ck_map;

void ck_map_init(ck_map *m, ck_arena *arena, bool nocase);
/* NULL value pointer when absent. */
ck_map_entry *ck_map_find(const ck_map *m, ck_view key);
void *ck_map_get(const ck_map *m, ck_view key);
/* Adds or replaces; *was (optional) gets the old value or NULL. */
CK_NODISCARD ck_status ck_map_put(ck_map *m, ck_view key, void *value, void **was);

#endif
