/* See source.h. */
#include "stream/source.h"

ck_status ck_split_list_add(ck_split_list *l, const char *id, const char *spec) {
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity ? l->capacity * 2 : 8;
        ck_split *splits = ck_arena_array(l->arena, capacity, sizeof *splits);
        if (!splits) return CK_NOMEM;
        if (l->count) memcpy(splits, l->splits, l->count * sizeof *splits);
        l->splits = splits;
        l->capacity = capacity;
    }
    ck_split s = {ck_arena_strdup(l->arena, id), ck_arena_strdup(l->arena, spec), l->count};
    if (!s.id || !s.spec) return CK_NOMEM;
    l->splits[l->count++] = s;
    return CK_OK;
}
