/* What encoding and decoding of manifests share. */
#ifndef CK_CHECKPOINT_MANIFEST_INT_H
#define CK_CHECKPOINT_MANIFEST_INT_H

#include <inttypes.h>

#include "base/bytes.h"
#include "checkpoint/manifest.h"

struct yyjson_val;

enum {
    CK_MANIFEST_FORMAT = 2, /* the newest known; what is of a region, which older readers must not take for the whole */
    CK_MANIFEST_BYTES_MAX = 64 << 20,
    CK_BARRIER_KINDS = CK_BARRIER_FINAL + 1,
    CK_FILE_KINDS = CK_FILE_MATERIALIZED + 1,
};
/* How a manifest and job.json end: of everything in front of the comma. */
#define CK_MANIFEST_TAIL ",\"crc32c\":%" PRIu32 "}"

/* Appends an object's text with its checksum as the last member, and a line's end. Only memory can fail. */
CK_NODISCARD ck_status ck_manifest_put_with_checksum(ck_bytes *out, ck_view object);
/* Whether a text fits the checksum in it, as the object that was read of it has it; one of an older version has none,
 * and fits. */
bool ck_manifest_fits_checksum(struct yyjson_val *object, ck_view text);

/* The bits of a checkpoint's number that say which of `regions` it is of. */
static inline uint64_t ck_region_mask(uint32_t regions) {
    uint64_t mask = 0;
    while (mask + 1 < regions) mask = mask << 1 | 1;
    return mask;
}

extern const char *const ck_barrier_kind_names[CK_BARRIER_KINDS];
extern const char *const ck_file_kind_names[CK_FILE_KINDS];

/* The rules a manifest keeps, checked before it is written and after it is read: ids, ranges, paths below the
 * directory, deltas behind their parents. `a` is for look-ups meanwhile. */
CK_NODISCARD ck_status ck_manifest_check(const ck_manifest *m, ck_arena *a, ck_error *err);

#endif
