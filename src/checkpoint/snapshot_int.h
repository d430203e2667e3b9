/* What the writer and the reader of snapshot files share: the metadata of the schema. */
#ifndef CK_CHECKPOINT_SNAPSHOT_INT_H
#define CK_CHECKPOINT_SNAPSHOT_INT_H

#include "checkpoint/snapshot.h"

#define CK_META_FORMAT_VERSION "clink.format_version"
#define CK_META_STATE_VERSIONS "clink.state_versions"
#define CK_META_KEY_GROUPS     "clink.key_groups"
#define CK_META_SLOTS          "clink.slots"
#define CK_META_CHECKPOINT     "clink.checkpoint_id"
#define CK_META_ENGINE         "clink.engine"
#define CK_META_PARENT         "clink.parent"

enum {
    CK_META_BYTES_MAX = 16 << 20, /* of the schema message; also of one batch's header */
    CK_SNAPSHOT_SLOTS_MAX = 65536,
    CK_FORMAT_1_KEY_GROUPS = 128,
};

/* The JSON of clink.slots and the lines of clink.state_versions, in the arena. */
CK_NODISCARD ck_status ck_slots_encode(ck_arena *a, const ck_marked_slot *slots, uint32_t count, const char **out,
                                       ck_error *err);
CK_NODISCARD ck_status ck_versions_encode(ck_arena *a, const ck_version_map *others, const ck_marked_slot *slots,
                                          uint32_t count, const char **out, ck_error *err);
CK_NODISCARD ck_status ck_slots_decode(ck_arena *a, ck_view json, ck_snapshot_header *h, ck_error *err);
/* The lines, and versions of slots from their schemas and the lines; the two must not tell different things. */
CK_NODISCARD ck_status ck_versions_decode(ck_arena *a, ck_view lines, ck_snapshot_header *h, ck_error *err);

#endif
