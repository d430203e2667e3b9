/* Versions of state: (operator, state type, slot) -> version, as snapshots carry it under clink.state_versions: lines
 * `op_id|state_type|version` or `op_id|state_type|version|slot`, sorted, joined by newlines. An entry without a slot
 * speaks for every slot of the type that has none of its own. What is in no entry is version 1, the default of a type.
 *
 * A map lives in its arena and belongs to one thread at a time. */
#ifndef CK_STATE_SCHEMA_VERSION_H
#define CK_STATE_SCHEMA_VERSION_H

#include "base/map.h"
#include "stream/slot.h"

#define CK_STATE_VERSION_DEFAULT 1

typedef struct ck_state_version { /* strings borrowed */
    uint64_t op_id;
    const char *state_type;
    uint32_t version; /* 1 and up */
    const char *slot; /* NULL: every slot of the type */
} ck_state_version;

typedef struct ck_version_map {
    ck_map entries; /* "op|type|slot" -> ck_state_version, in order of stamping */
} ck_version_map;

void ck_version_map_init(ck_version_map *m, ck_arena *a);
static inline uint32_t ck_version_map_count(const ck_version_map *m) { return (uint32_t)m->entries.count; }
static inline const ck_state_version *ck_version_map_at(const ck_version_map *m, uint32_t i) {
    return (const ck_state_version *)m->entries.entries[i].value;
}
/* Sets or replaces; names are copied. CK_NOMEM; CK_INVALID: version 0, a name of over CK_NAME_BYTES_MAX. */
CK_NODISCARD ck_status ck_version_map_stamp(ck_version_map *m, const ck_state_version *v);
/* The slot's own entry, else that of its type, else 0. state_type NULL is "". */
uint32_t ck_version_map_get(const ck_version_map *m, uint64_t op_id, const char *state_type, const char *slot);
/* Entries of `from` are set, the others stay. CK_NOMEM only. */
CK_NODISCARD ck_status ck_version_map_merge(ck_version_map *m, const ck_version_map *from);
/* The same for maps of files that belong together: one entry in two versions is CK_REFUSED and named. */
CK_NODISCARD ck_status ck_version_map_unite(ck_version_map *m, const ck_version_map *from, ck_error *err);

/* The lines, in the arena; "" for none. NULL: no memory. */
const char *ck_version_map_encode(const ck_version_map *m, ck_arena *a);
/* Adds the lines of a file. Versions are decimal digits, 1 to 2^32-1. CK_CORRUPT names the line that is none, or one
 * that says otherwise than a line before. */
CK_NODISCARD ck_status ck_version_map_decode(ck_version_map *m, ck_view lines, ck_error *err);

#endif
