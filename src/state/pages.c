/* See pages_int.h. */
#include "state/pages_int.h"

#include <string.h>
#include <sys/mman.h>

enum { EXTENT_MAX = 4 << 20, RESERVE_MIN = 512 << 10, SPILL_REST = 16 << 20, OS_PAGE = 4096, HUGE_PAGE = 2 << 20 };
enum { POPULATE_FROM = 1 << 20, HUGE_FROM = 1 << 30 };

struct ck_page_block {
    ck_page_block *next;
};

struct ck_extent {
    ck_extent *next;
    uint8_t *raw; /* as mapped or allocated */
    size_t raw_bytes;
    size_t bytes; /* aligned part */
};

static unsigned class_of(size_t bytes) { return (unsigned)(__builtin_ctzll(bytes) - __builtin_ctzll(CK_PAGE_MIN)); }

void ck_page_pool_init(ck_page_pool *p, ck_mem mem) {
    *p = (ck_page_pool){.mem = ck_mem_as(mem, CK_MEM_STATE), .heap_extents = mem.budget->heap != ck_heap_system()};
}

/* The last quarter of the account, of a small one the last half, is for what cannot spill: queues, decoding, the
 * buffers snapshots are written from, trees and directories. */
ck_status ck_page_pool_spill_to(ck_page_pool *p, const char *dir, bool all, ck_error *err) {
    size_t limit = p->mem.budget->limit, quarter = limit / 4, rest = quarter + SPILL_REST;
    p->spill_above = limit ? limit - (rest < limit / 2 ? rest : limit / 2) : SIZE_MAX;
    if (all) p->spill_above = 0;
    return ck_spill_new(p->mem, dir, &p->spill, err);
}

/* ---- raw memory ---- */

static uint8_t *raw_get(ck_page_pool *p, size_t bytes) {
    if (p->heap_extents) return p->mem.budget->heap->alloc(p->mem.budget->heap, bytes);
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return m == MAP_FAILED ? NULL : m;
}

static void raw_put(ck_page_pool *p, uint8_t *raw, size_t bytes) {
    if (p->heap_extents)
        p->mem.budget->heap->free(p->mem.budget->heap, raw, bytes);
    else
        munmap(raw, bytes);
}

static uint8_t *align_up(uint8_t *p, size_t alignment) {
    return p + ((alignment - ((uintptr_t)p & (alignment - 1))) & (alignment - 1));
}

static ck_extent *extent_new(ck_page_pool *p, size_t bytes, size_t alignment) {
    ck_extent *e = ck_alloc(p->mem, sizeof *e);
    if (!e) return NULL;
    e->raw_bytes = bytes + alignment;
    e->raw = raw_get(p, e->raw_bytes);
    if (!e->raw) {
        ck_free(p->mem, e, sizeof *e);
        return NULL;
    }
    e->bytes = bytes;
    e->next = p->extents;
    p->extents = e;
    return e;
}

static void extent_drop(ck_page_pool *p, ck_extent *e) {
    raw_put(p, e->raw, e->raw_bytes);
    ck_free(p->mem, e, sizeof *e);
}

void ck_page_pool_destroy(ck_page_pool *p) {
    CK_ASSERT(p->used_bytes == 0);
    for (unsigned c = 0; c < CK_PAGE_CLASSES; c++)
        ck_free(p->mem, p->classes[c].cold, p->classes[c].cold_capacity * sizeof(void *));
    if (p->hot_bytes) ck_mem_give(p->mem, p->hot_bytes);
    while (p->extents) {
        ck_extent *e = p->extents;
        p->extents = e->next;
        extent_drop(p, e);
    }
    ck_spill_free(p->spill);
    *p = (ck_page_pool){.mem = p->mem};
}

/* ---- free blocks ---- */

static bool cold_push(ck_page_pool *p, unsigned class, void *block) {
    ck_page_class *c = &p->classes[class];
    if (c->cold_count == c->cold_capacity) {
        uint32_t capacity = c->cold_capacity ? c->cold_capacity * 2 : 16;
        void **more = ck_realloc(p->mem, c->cold, c->cold_capacity * sizeof(void *), capacity * sizeof(void *));
        if (!more) return false;
        c->cold = more, c->cold_capacity = capacity;
    }
    c->cold[c->cold_count++] = block;
    return true;
}

static void hot_push(ck_page_pool *p, unsigned class, void *block) {
    ck_page_block *b = block;
    b->next = p->classes[class].hot;
    p->classes[class].hot = b;
    p->hot_bytes += (size_t)CK_PAGE_MIN << class;
}

static void *hot_pop(ck_page_pool *p, unsigned class) {
    ck_page_block *b = p->classes[class].hot;
    if (!b) return NULL;
    p->classes[class].hot = b->next;
    p->hot_bytes -= (size_t)CK_PAGE_MIN << class;
    return b;
}

static void give_back(ck_page_pool *p, void *block, size_t bytes) {
    if (!p->heap_extents) madvise(block, bytes, MADV_DONTNEED); /* advice: failing costs memory, nothing else */
}

/* The reserve, when the budget has nothing left: blocks too small to give back stay. */
static bool reserve_drop(ck_page_pool *p) {
    bool any = false;
    for (unsigned c = class_of(OS_PAGE); c < CK_PAGE_CLASSES; c++) {
        size_t bytes = (size_t)CK_PAGE_MIN << c;
        while (p->classes[c].hot) {
            void *b = hot_pop(p, c);
            if (!cold_push(p, c, b)) {
                hot_push(p, c, b);
                return any;
            }
            give_back(p, b, bytes);
            ck_mem_give(p->mem, bytes);
            any = true;
        }
    }
    return any;
}

/* ---- cutting extents ---- */

static bool refill(ck_page_pool *p) {
    size_t bytes = CK_PAGE_CHUNK;
    while (!p->heap_extents && bytes < EXTENT_MAX && bytes * 4 < p->used_bytes) bytes *= 2;
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : CK_PAGE_CHUNK;
    ck_extent *e = extent_new(p, bytes, alignment);
    if (!e) return false;
    p->at = align_up(e->raw, alignment);
    p->end = p->at + bytes;
    if (p->used_bytes >= HUGE_FROM) madvise(p->at, bytes, MADV_HUGEPAGE);
    return true;
}

/* The first touch of a page costs a fault; a chunk at a time it costs a system call for sixteen. Huge pages would need
 * even fewer, but a virtual machine often has to ask its host for one, 512 faults there, while it has small ones at
 * hand: a GROUP BY of 10 million keys spent a third of its time so. Only large state gets them, where they save more.
 */
static void populate(const ck_page_pool *p, uint8_t *chunk) {
#ifdef MADV_POPULATE_WRITE
    if (!p->heap_extents && p->used_bytes >= POPULATE_FROM) madvise(chunk, CK_PAGE_CHUNK, MADV_POPULATE_WRITE);
#else
    (void)p, (void)chunk;
#endif
}

/* A block of a class that has no free one: half of half of a larger one, the other halves become free. */
static void *cut(ck_page_pool *p, unsigned class) {
    unsigned c = class;
    while (c < CK_PAGE_CLASSES && !p->classes[c].cold_count) c++;
    uint8_t *block;
    if (c < CK_PAGE_CLASSES) {
        block = p->classes[c].cold[--p->classes[c].cold_count];
    } else {
        if (p->at == p->end && !refill(p)) return NULL;
        block = p->at;
        populate(p, block);
        p->at += CK_PAGE_CHUNK;
        c = CK_PAGE_CLASSES - 1;
    }
    while (c > class) {
        if (!cold_push(p, c - 1, block + ((size_t)CK_PAGE_MIN << (c - 1)))) {
            /* No memory to remember the other half. Remember the whole if that is possible, else it is idle until the
             * pool goes. */
            (void)cold_push(p, c, block);
            return NULL;
        }
        c--;
    }
    return block;
}

static void *large_alloc(ck_page_pool *p, size_t bytes) {
    ck_extent *e = extent_new(p, bytes, bytes);
    return e ? align_up(e->raw, bytes) : NULL;
}

static void large_free(ck_page_pool *p, void *block, size_t bytes) {
    for (ck_extent **at = &p->extents; *at; at = &(*at)->next) {
        ck_extent *e = *at;
        if (e->bytes != bytes || align_up(e->raw, bytes) != (uint8_t *)block) continue;
        *at = e->next;
        extent_drop(p, e);
        return;
    }
    ck_assert_failed(__FILE__, __LINE__, "the page is of this pool");
}

static bool must_spill(const ck_page_pool *p, size_t bytes) {
    size_t most = p->spill_above;
    if (!p->spill || (most >= bytes && ck_budget_total(p->mem.budget) <= most - bytes)) return false;
    return bytes > CK_PAGE_CHUNK || !p->classes[class_of(bytes)].hot; /* those are paid for */
}

void *ck_page_alloc(ck_page_pool *p, size_t bytes, ck_mem_category category) {
    CK_DASSERT(bytes >= CK_PAGE_MIN && (bytes & (bytes - 1)) == 0);
    if (must_spill(p, bytes)) {
        void *spilled = ck_spill_take(p->spill, bytes);
        if (spilled) {
            p->used_bytes += bytes;
            return spilled;
        } /* the rest of the account, as far as it goes */
    }
    ck_mem payer = ck_mem_as(p->mem, category);
    void *block = bytes <= CK_PAGE_CHUNK ? hot_pop(p, class_of(bytes)) : NULL;
    if (block) {
        if (category != CK_MEM_STATE) ck_mem_move(p->mem, category, bytes);
    } else {
        if (!ck_mem_take(payer, bytes) && !(reserve_drop(p) && ck_mem_take(payer, bytes))) return NULL;
        block = bytes <= CK_PAGE_CHUNK ? cut(p, class_of(bytes)) : large_alloc(p, bytes);
        if (!block) {
            ck_mem_give(payer, bytes);
            return NULL;
        }
    }
    p->used_bytes += bytes;
    return block;
}

void ck_page_free(ck_page_pool *p, void *block, size_t bytes, ck_mem_category category) {
    ck_mem payer = ck_mem_as(p->mem, category);
    p->used_bytes -= bytes;
    if (p->spill && ck_spill_has(p->spill, block)) {
        ck_spill_give(p->spill, block, bytes);
        return;
    }
    if (bytes > CK_PAGE_CHUNK) {
        large_free(p, block, bytes);
        ck_mem_give(payer, bytes);
        return;
    }
    unsigned class = class_of(bytes);
    size_t reserve = p->used_bytes / 16 > RESERVE_MIN ? p->used_bytes / 16 : RESERVE_MIN;
    bool keep = bytes < OS_PAGE || p->hot_bytes + bytes <= reserve;
    if (!keep && cold_push(p, class, block)) {
        give_back(p, block, bytes);
        ck_mem_give(payer, bytes);
        return;
    }
    if (category != CK_MEM_STATE) ck_mem_move(payer, CK_MEM_STATE, bytes);
    hot_push(p, class, block);
}

void ck_page_move(ck_page_pool *p, const void *block, size_t bytes, ck_mem_category from, ck_mem_category to) {
    if (p->spill && ck_spill_has(p->spill, block)) return; /* nobody's account */
    ck_mem_move(ck_mem_as(p->mem, from), to, bytes);
}

ck_status ck_page_nomem(const ck_page_pool *p, size_t bytes, ck_error *err) {
    ck_status s = ck_nomem(err, p->mem, bytes);
    const ck_error *why = p->spill ? ck_spill_error(p->spill) : NULL;
    if (!err || !p->mem.budget->limit) return s;
    char said[sizeof err->msg];
    memcpy(said, err->msg, sizeof said);
    if (!p->spill) return ck_fail(err, CK_NOMEM, "%s; --state-backend file:DIR lets state outgrow it", said);
    return why->status == CK_OK ? s : ck_fail(err, CK_NOMEM, "%s; and %s", said, why->msg);
}
