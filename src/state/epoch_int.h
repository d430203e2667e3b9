/* Copy on write by epochs. A store counts epochs; a mark ends one. Every page and directory block carries the epoch it
 * was born in: the owner writes in place only what is younger than the newest live mark, everything else it copies
 * first, and what the copy replaces waits on that mark's retired list. No atomics: a mark's reader only follows
 * pointers that were there when the mark was taken, and the owner frees them only after the mark's release.
 *
 * Thread: the store's owner, except ck_dir_get on a marked root. */
#ifndef CK_STATE_EPOCH_INT_H
#define CK_STATE_EPOCH_INT_H

#include "state/pages_int.h"

typedef struct ck_retired {
    void *p;
    size_t bytes;
    uint32_t birth;
    bool page; /* from the page pool, else from the heap */
} ck_retired;

typedef struct ck_retired_list {
    ck_retired *items;
    uint32_t count, capacity;
} ck_retired_list;

struct ck_state_mark;

typedef struct ck_epochs {
    ck_page_pool *pool;
    ck_mem mem;               /* CK_MEM_STATE */
    uint32_t epoch;           /* now, from 1 */
    uint32_t live;            /* of the newest live mark; 0 = none */
    uint32_t completed;       /* deltas count from the mark of this epoch; 0 = none yet */
    bool tracking;            /* a mark has been taken: changes are recorded for deltas */
    bool snapshots;           /* rows are for checkpoints: keys have a bound */
    ck_retired_list *retired; /* the newest live mark's */
} ck_epochs;

static inline bool ck_epochs_private(const ck_epochs *e, uint32_t birth) { return birth > e->live; }
/* Room for n more retired things, so that the next n retire calls cannot fail. */
CK_NODISCARD ck_status ck_epochs_reserve(ck_epochs *e, uint32_t n);
/* Frees it, or keeps it for the newest live mark when that can see it (then room must be reserved). */
void ck_epochs_retire_page(ck_epochs *e, void *p, size_t bytes, uint32_t birth);
void ck_epochs_retire_block(ck_epochs *e, void *p, size_t bytes, uint32_t birth);
void ck_retired_free(ck_epochs *e, const ck_retired *r);

/* ---- the two-level directory of pages ---- */

enum { CK_DIR_LEAF = 256 };

typedef struct ck_dir_leaf {
    uint32_t birth, capacity;
    void *page[];
} ck_dir_leaf;

typedef struct ck_dir_root {
    uint32_t birth, capacity;
    ck_dir_leaf *leaf[];
} ck_dir_root;

typedef struct ck_dir {
    ck_dir_root *root;
    size_t bytes;
} ck_dir;

/* page may be NULL. CK_NOMEM changes nothing. */
CK_NODISCARD ck_status ck_dir_set(ck_dir *d, ck_epochs *e, uint32_t id, void *page);
/* Retires root and leaves, not the pages. Room for ck_dir_blocks must be reserved when a mark is live. */
void ck_dir_destroy(ck_dir *d, ck_epochs *e);
uint32_t ck_dir_blocks(const ck_dir *d);
static inline void *ck_dir_get(const ck_dir_root *r, uint32_t id) {
    if (!r || id / CK_DIR_LEAF >= r->capacity) return NULL;
    const ck_dir_leaf *l = r->leaf[id / CK_DIR_LEAF];
    return l && id % CK_DIR_LEAF < l->capacity ? l->page[id % CK_DIR_LEAF] : NULL;
}

#endif
