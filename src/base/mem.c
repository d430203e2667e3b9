/* See mem.h. */
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- system heap ---- */

static void *system_alloc(ck_heap *h, size_t bytes) {
    (void)h;
    return malloc(bytes ? bytes : 1);
}
static void *system_realloc(ck_heap *h, void *p, size_t old_bytes, size_t bytes) {
    (void)h, (void)old_bytes;
    return realloc(p, bytes ? bytes : 1);
}
static void system_free(ck_heap *h, void *p, size_t bytes) {
    (void)h, (void)bytes;
    free(p);
}

static const ck_heap system_heap = {system_alloc, system_realloc, system_free};

ck_heap *ck_heap_system(void) { return (ck_heap *)(uintptr_t)&system_heap; /* stateless: nobody writes through it */ }

/* ---- tracked heap ---- */

enum { NEW_BYTE = 0xA5, FREED_BYTE = 0xDD };

typedef struct block {
    struct block *next, *prev;
    size_t bytes;
    size_t pad; /* keeps user data 16-aligned */
} block;

struct ck_tracked_heap {
    ck_heap base;
    pthread_mutex_t lock; /* guards everything below */
    block head;           /* ring of live blocks */
    size_t live_bytes, live_blocks;
    uint64_t fail_in; /* 0 = disarmed */
    bool fired;
};

static bool should_fail(ck_tracked_heap *t) {
    if (t->fail_in == 0 || --t->fail_in != 0) return false;
    t->fired = true;
    return true;
}

static void link_block(ck_tracked_heap *t, block *b, size_t bytes) {
    b->bytes = bytes;
    b->next = t->head.next;
    b->prev = &t->head;
    b->next->prev = b;
    t->head.next = b;
    t->live_bytes += bytes;
    t->live_blocks++;
}

static void unlink_block(ck_tracked_heap *t, block *b) {
    b->next->prev = b->prev;
    b->prev->next = b->next;
    t->live_bytes -= b->bytes;
    t->live_blocks--;
}

static void *tracked_alloc(ck_heap *h, size_t bytes) {
    ck_tracked_heap *t = (ck_tracked_heap *)h;
    if (bytes > SIZE_MAX - sizeof(block)) return NULL;
    pthread_mutex_lock(&t->lock);
    block *b = should_fail(t) ? NULL : malloc(sizeof(block) + bytes);
    if (b) link_block(t, b, bytes);
    pthread_mutex_unlock(&t->lock);
    if (b) memset(b + 1, NEW_BYTE, bytes);
    return b ? b + 1 : NULL;
}

/* The compiler may not see that nobody reads it any more. */
static void free_block(block *b) {
    memset(b + 1, FREED_BYTE, b->bytes);
    __asm__ volatile("" : : "r"(b) : "memory");
    free(b);
}

static void tracked_free(ck_heap *h, void *p, size_t bytes) {
    if (!p) return;
    ck_tracked_heap *t = (ck_tracked_heap *)h;
    block *b = (block *)p - 1;
    CK_ASSERT(b->bytes == bytes); /* sizes at free must be the sizes at alloc, or the budget drifts */
    pthread_mutex_lock(&t->lock);
    unlink_block(t, b);
    pthread_mutex_unlock(&t->lock);
    free_block(b);
}

static void *tracked_realloc(ck_heap *h, void *p, size_t old_bytes, size_t bytes) {
    void *q = tracked_alloc(h, bytes);
    if (!q) return NULL;
    if (p) memcpy(q, p, old_bytes < bytes ? old_bytes : bytes);
    tracked_free(h, p, old_bytes);
    return q;
}

ck_status ck_tracked_heap_new(ck_tracked_heap **out) {
    ck_tracked_heap *t = calloc(1, sizeof *t);
    if (!t) return CK_NOMEM;
    t->base = (ck_heap){tracked_alloc, tracked_realloc, tracked_free};
    pthread_mutex_init(&t->lock, NULL);
    t->head.next = t->head.prev = &t->head;
    *out = t;
    return CK_OK;
}

ck_heap *ck_tracked_heap_base(ck_tracked_heap *t) { return &t->base; }
size_t ck_tracked_heap_live_bytes(const ck_tracked_heap *t) { return t->live_bytes; }
size_t ck_tracked_heap_live_blocks(const ck_tracked_heap *t) { return t->live_blocks; }

void ck_tracked_heap_fail_nth(ck_tracked_heap *t, uint64_t n) {
    pthread_mutex_lock(&t->lock);
    t->fail_in = n;
    t->fired = false;
    pthread_mutex_unlock(&t->lock);
}

bool ck_tracked_heap_fired(const ck_tracked_heap *t) { return t->fired; }

void ck_tracked_heap_drop_all(ck_tracked_heap *t) {
    pthread_mutex_lock(&t->lock);
    while (t->head.next != &t->head) {
        block *b = t->head.next;
        unlink_block(t, b);
        free_block(b);
    }
    pthread_mutex_unlock(&t->lock);
}

void ck_tracked_heap_free(ck_tracked_heap *t) {
    if (!t) return;
    ck_tracked_heap_drop_all(t);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- budget ---- */

void ck_budget_init(ck_budget *b, ck_heap *heap, size_t limit) {
    b->heap = heap;
    b->limit = limit;
    atomic_init(&b->total, 0);
    atomic_init(&b->peak, 0);
    for (size_t i = 0; i < CK_MEM_CATEGORY_COUNT; i++) atomic_init(&b->used[i], 0);
}

size_t ck_budget_used(const ck_budget *b, ck_mem_category c) {
    return atomic_load_explicit(&b->used[c], memory_order_relaxed);
}
size_t ck_budget_total(const ck_budget *b) { return atomic_load_explicit(&b->total, memory_order_relaxed); }

const char *ck_mem_category_name(ck_mem_category c) {
    static const char *const names[CK_MEM_CATEGORY_COUNT] = {"plan", "state", "snapshot", "queue", "decode", "rocksdb"};
    return (size_t)c < CK_MEM_CATEGORY_COUNT ? names[c] : "unknown";
}

static const ck_budget uncounted = {.heap = (ck_heap *)(uintptr_t)&system_heap};

ck_budget *ck_budget_uncounted(void) {
    return (ck_budget *)(uintptr_t)&uncounted; /* take and give know it and write nothing */
}

bool ck_mem_take(ck_mem m, size_t bytes) {
    if (m.budget == &uncounted) return true;
    if (m.budget->limit && bytes > m.budget->limit) return false; /* and so the sum cannot wrap */
    size_t now = atomic_fetch_add_explicit(&m.budget->total, bytes, memory_order_relaxed) + bytes;
    if (m.budget->limit && now > m.budget->limit) {
        atomic_fetch_sub_explicit(&m.budget->total, bytes, memory_order_relaxed);
        return false;
    }
    atomic_fetch_add_explicit(&m.budget->used[m.category], bytes, memory_order_relaxed);
    if (now > atomic_load_explicit(&m.budget->peak, memory_order_relaxed))
        atomic_store_explicit(&m.budget->peak, now,
                              memory_order_relaxed); /* a lost race costs a little peak: a metric */
    return true;
}

void ck_mem_give(ck_mem m, size_t bytes) {
    if (m.budget == &uncounted) return;
    atomic_fetch_sub_explicit(&m.budget->total, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&m.budget->used[m.category], bytes, memory_order_relaxed);
}

void ck_mem_move(ck_mem from, ck_mem_category to, size_t bytes) {
    atomic_fetch_add_explicit(&from.budget->used[to], bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&from.budget->used[from.category], bytes, memory_order_relaxed);
}

void *ck_alloc(ck_mem m, size_t bytes) {
    if (!ck_mem_take(m, bytes)) return NULL;
    void *p = m.budget->heap->alloc(m.budget->heap, bytes);
    if (!p) ck_mem_give(m, bytes);
    return p;
}

void *ck_alloc_zero(ck_mem m, size_t bytes) {
    void *p = ck_alloc(m, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *ck_alloc_array(ck_mem m, size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : ck_alloc(m, bytes);
}

void *ck_realloc(ck_mem m, void *p, size_t old_bytes, size_t bytes) {
    if (!p) return ck_alloc(m, bytes);
    if (bytes > old_bytes && !ck_mem_take(m, bytes - old_bytes)) return NULL;
    void *q = m.budget->heap->realloc(m.budget->heap, p, old_bytes, bytes);
    if (!q) {
        if (bytes > old_bytes) ck_mem_give(m, bytes - old_bytes);
        return NULL;
    }
    if (bytes < old_bytes) ck_mem_give(m, old_bytes - bytes);
    return q;
}

void ck_free(ck_mem m, void *p, size_t bytes) {
    if (!p) return;
    m.budget->heap->free(m.budget->heap, p, bytes);
    ck_mem_give(m, bytes);
}

/* What holds more than half of the limit, when that is not who asked. */
static ck_mem_category main_holder(ck_mem m) {
    if (!m.budget->limit) return m.category;
    for (int c = 0; c < CK_MEM_CATEGORY_COUNT; c++)
        if (c != (int)m.category && ck_budget_used(m.budget, (ck_mem_category)c) > m.budget->limit / 2)
            return (ck_mem_category)c;
    return m.category;
}

ck_status ck_nomem(ck_error *err, ck_mem m, size_t bytes) {
    static const char ceiling[] = "something is larger than it may be";
    const char *name = ck_mem_category_name(m.category);
    size_t used = ck_budget_used(m.budget, m.category), total = ck_budget_total(m.budget), limit = m.budget->limit;
    ck_mem_category most = main_holder(m);
    char mostly[96] = "";
    if (most != m.category)
        (void)snprintf(mostly, sizeof mostly, ", most of it (%zu) for %s", ck_budget_used(m.budget, most),
                       ck_mem_category_name(most));
    if (!bytes && limit)
        return ck_fail(err, CK_NOMEM,
                       "out of memory for %s, which holds %zu bytes: %s, or the job holds %zu of its limit of %zu%s",
                       name, used, ceiling, total, limit, mostly);
    if (!bytes)
        return ck_fail(err, CK_NOMEM, "out of memory for %s, which holds %zu bytes: %s, or the system has no more",
                       name, used, ceiling);
    if (limit)
        return ck_fail(
            err, CK_NOMEM,
            "out of memory: %zu bytes wanted for %s, which holds %zu; the job holds %zu of its limit of %zu%s", bytes,
            name, used, total, limit, mostly);
    return ck_fail(err, CK_NOMEM, "out of memory: the system has no %zu bytes for %s, which holds %zu", bytes, name,
                   used);
}
