/* Snapshot files: an Arrow IPC stream of (op_id, key_bytes, value_bytes), deltas with row_kind in front; the schema's
 * metadata says what the bytes mean (docs/formats.md, "Snapshot .snap"). One writer, one reader. Both block; both
 * belong to one thread at a time. */
#ifndef CK_CHECKPOINT_SNAPSHOT_H
#define CK_CHECKPOINT_SNAPSHOT_H

#include <stdatomic.h>

#include "checkpoint/manifest.h"
#include "os/durable.h"
#include "state/mark.h"
#include "state/state_migration_on_restore.h"

#define CK_SNAPSHOT_FORMAT_MAX 2

/* ---- writing ---- */

typedef struct ck_snapshot_spec {
    ck_proc *proc;
    ck_mem mem;       /* CK_MEM_SNAPSHOT */
    const char *dir;  /* the checkpoint directory */
    const char *path; /* relative to it; folders are made */
    uint64_t checkpoint;
    uint32_t key_groups;
    ck_mark_scan_kind kind; /* base or delta */
    const char *parent;     /* deltas: path of the parent file; materialisations: of the segment they stand for */
    /* changelog backends */
    bool changelog;              /* a changelog file: row_kind in front of a base too, whose rows are of kind 0 */
    const char *handle;          /* path of the materialisation the changes are on, as the first row; NULL: none */
    const _Atomic bool *give_up; /* looked at between rows: CK_CANCELLED once it is set; NULL: nobody sets it */
} ck_snapshot_spec;

typedef struct ck_snapshot_info {
    uint64_t bytes, rows;
    uint32_t crc32c;
} ck_snapshot_info;

/* Streams the marked store into a temporary file and publishes it, durable when this returns CK_OK. Thread: the mark's
 * reader. */
CK_NODISCARD ck_status ck_snapshot_write(const ck_snapshot_spec *spec, ck_state_mark *m, ck_snapshot_info *out,
                                         ck_error *err);

/* ---- reading ---- */

typedef struct ck_snapshot_header {
    uint32_t format_version;
    uint32_t key_groups;
    bool delta;          /* row_kind in front: a delta or a changelog file */
    const char *parent;  /* deltas; "" when absent */
    uint64_t checkpoint; /* 0 when absent */
    const char *engine;  /* "" when absent */
    const ck_stored_slot *slots; /* none of them raw */
    uint32_t slot_count;
    ck_version_map versions;
    bool described; /* it has a slot table: what is not in it is not in the file */
} ck_snapshot_header;

typedef struct ck_snapshot_row {
    uint64_t op_id;
    ck_view key, value;
    uint8_t kind; /* 0 or 1 put, 2 erase, 3 value is the path of a materialisation, 4 erase from key up to value */
} ck_snapshot_row;

typedef struct ck_snapshot_reader ck_snapshot_reader;

/* Reads the header. The header lives in `a`. Bytes that do not check out are CK_CORRUPT with path and place; versions
 * we do not know CK_REFUSED. Never reads or allocates past what the file can hold. */
CK_NODISCARD ck_status ck_snapshot_open(ck_proc *proc, ck_mem mem, ck_arena *a, const char *path,
                                        ck_snapshot_reader **out, ck_error *err);
/* The same over bytes in memory, which outlive the reader (fuzzing, tools). `name` is for messages. */
CK_NODISCARD ck_status ck_snapshot_open_bytes(ck_mem mem, ck_arena *a, const char *name, ck_view bytes,
                                              ck_snapshot_reader **out, ck_error *err);
const ck_snapshot_header *ck_snapshot_header_of(const ck_snapshot_reader *r);
/* Rows in pieces; views are valid until the next call. *count 0 at the end of the stream; a file that stops before it
 * is CK_CORRUPT. */
CK_NODISCARD ck_status ck_snapshot_next(ck_snapshot_reader *r, const ck_snapshot_row **rows, uint32_t *count,
                                        ck_error *err);
void ck_snapshot_close(ck_snapshot_reader *r); /* NULL is fine */

/* Reads the whole file at dir/f->path and compares size and CRC-32C. CK_CORRUPT, CK_NOTFOUND name the file. */
CK_NODISCARD ck_status ck_snapshot_verify(ck_proc *proc, ck_mem mem, const char *dir, const ck_manifest_file *f,
                                          ck_error *err);

/* What stands first in a stored key: its key group, or the marker of operator rows. false: too short. */
static inline uint32_t ck_operator_marker(uint32_t key_groups) { return key_groups <= 128 ? 0xFF : 0xFFFF; }
static inline bool ck_stored_key_group(ck_view key, uint32_t key_groups, uint32_t *out) {
    const uint8_t *p = (const uint8_t *)key.p;
    size_t width = key_groups <= 128 ? 1 : 2;
    if (key.n < width) return false;
    *out = width == 1 ? p[0] : (uint32_t)p[0] << 8 | p[1];
    return true;
}
/* A stored key taken apart. Operator rows: key_group is the marker (0xFF, 0xFFFF) and user_key the row key. */
typedef struct ck_stored_key {
    uint32_t key_group;
    bool keyed;
    ck_view slot;
    ck_view rest; /* keyed: behind the '|'; operator rows: behind the newline, empty without one */
} ck_stored_key;
/* false: too short. A keyed row without '|' has the whole rest as slot "<raw>" in tools: slot.p is NULL. */
bool ck_stored_key_parse(ck_view key, uint32_t key_groups, ck_stored_key *out);

#endif
