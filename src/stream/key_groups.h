/* Key groups: the unit in which keyed state is owned, moved and restored. key_group = fnv1a64(user key) mod key_groups;
 * subtask = key_group * parallelism / key_groups, so that ranges are contiguous. Pure arithmetic; fixed by the formats.
 */
#ifndef CK_STREAM_KEY_GROUPS_H
#define CK_STREAM_KEY_GROUPS_H

#include "base/hash.h"
#include "base/limits.h"
#include "base/view.h"

/* The number of an operator in snapshots and directories. */
static inline uint64_t ck_op_id(const char *uid) { return ck_fnv1a_more(ck_fnv1a("uid/", 4), uid, strlen(uid)); }

typedef struct ck_key_group_range {
    uint32_t first, last; /* inclusive; first > last: empty */
} ck_key_group_range;

static inline uint32_t ck_key_group_of_hash(uint64_t fnv, uint32_t key_groups) {
    if ((key_groups & (key_groups - 1)) == 0) return (uint32_t)fnv & (key_groups - 1); /* a division less a row */
    return (uint32_t)(fnv % key_groups);
}
static inline uint32_t ck_key_group_for_key(ck_view user_key, uint32_t key_groups) {
    return ck_key_group_of_hash(ck_fnv1a(user_key.p, user_key.n), key_groups);
}
/* parallelism <= key_groups is checked where a job is planned. */
static inline uint32_t ck_subtask_for_key_group(uint32_t key_group, uint32_t parallelism, uint32_t key_groups) {
    return (uint32_t)((uint64_t)key_group * parallelism / key_groups);
}
static inline ck_key_group_range ck_key_group_range_for_subtask(uint32_t subtask, uint32_t parallelism,
                                                                uint32_t key_groups) {
    uint64_t first = ((uint64_t)subtask * key_groups + parallelism - 1) / parallelism;
    uint64_t end = (((uint64_t)subtask + 1) * key_groups + parallelism - 1) / parallelism;
    ck_key_group_range r = {(uint32_t)first, (uint32_t)end - 1};
    return r;
}
static inline bool ck_key_group_in(ck_key_group_range r, uint32_t kg) { return kg >= r.first && kg <= r.last; }
static inline bool ck_key_groups_overlap(ck_key_group_range a, ck_key_group_range b) {
    return a.first <= b.last && b.first <= a.last;
}

#endif
