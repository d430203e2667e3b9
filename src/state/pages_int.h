/* The page allocator of a store: power-of-two blocks out of own mmap extents, each aligned to its size (up to 64 KiB),
 * so that a row's page is found from its address. Freed blocks go back to the system by madvise beyond a small reserve.
 * Blocks handed out and the reserve are accounted; untouched parts of extents are not (they are not resident).
 *
 * With a folder to spill to, blocks that would take the account near its limit come from a file there instead, are not
 * accounted and may leave RAM (spill_int.h).
 *
 * On a heap that is not the system's (tests, the simulator) extents come from that heap, so that a simulated crash
 * drops them and allocation sweeps reach them.
 *
 * Thread: the store's owner. */
#ifndef CK_STATE_PAGES_INT_H
#define CK_STATE_PAGES_INT_H

#include "state/spill_int.h"

enum {
    CK_PAGE_MIN = 1024,
    CK_PAGE_CHUNK = 64 * 1024, /* the largest block cut from extents; larger ones are mapped alone */
    CK_PAGE_CLASSES = 7,       /* 1, 2, 4 ... 64 KiB */
};

typedef struct ck_page_block ck_page_block;
typedef struct ck_extent ck_extent;

typedef struct ck_page_class {
    ck_page_block *hot; /* free and resident, linked through their first bytes */
    void **cold;        /* free and given back */
    uint32_t cold_count, cold_capacity;
} ck_page_class;

typedef struct ck_page_pool {
    ck_mem mem; /* CK_MEM_STATE */
    bool heap_extents;
    ck_extent *extents;
    uint8_t *at, *end; /* not yet cut part of the newest extent */
    ck_page_class classes[CK_PAGE_CLASSES];
    size_t used_bytes;  /* handed out */
    size_t hot_bytes;   /* accounted, not handed out */
    ck_spill *spill;    /* NULL: the account is all there is */
    size_t spill_above; /* bytes in the account: what would pass it spills */
} ck_page_pool;

void ck_page_pool_init(ck_page_pool *p, ck_mem mem);
/* Before the first block; dir outlives the pool. all: every block spills, for tests. */
CK_NODISCARD ck_status ck_page_pool_spill_to(ck_page_pool *p, const char *dir, bool all, ck_error *err);
/* Every block must have been freed. */
void ck_page_pool_destroy(ck_page_pool *p);

/* A block of `bytes` (a power of two, at least CK_PAGE_MIN), content unspecified, paid by `category`. NULL: the budget
 * or the system says no. */
void *ck_page_alloc(ck_page_pool *p, size_t bytes, ck_mem_category category);
void ck_page_free(ck_page_pool *p, void *block, size_t bytes, ck_mem_category category);
/* A block in use is for something else from here on. */
void ck_page_move(ck_page_pool *p, const void *block, size_t bytes, ck_mem_category from, ck_mem_category to);
/* No more block, for a reason that is worth saying: a sentence behind ck_nomem's. */
ck_status ck_page_nomem(const ck_page_pool *p, size_t bytes, ck_error *err);

#endif
