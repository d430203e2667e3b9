/* Memory with an account. Every allocation of the engine is made through a ck_mem: which budget pays, and for what. A
 * heap is where bytes come from (malloc, or a tracked heap in tests and in the simulator); a budget counts them per
 * category and may have a limit. Frees give the size back, so blocks carry no header. */
#ifndef CK_BASE_MEM_H
#define CK_BASE_MEM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum ck_mem_category {
    CK_MEM_PLAN,     /* scripts, plans, graphs, job bookkeeping */
    CK_MEM_STATE,    /* state tables: pages, index, variable parts */
    CK_MEM_SNAPSHOT, /* copies made by copy on write, snapshot write buffers */
    CK_MEM_QUEUE,    /* batches: in queues, in exchanges, being built */
    CK_MEM_DECODE,   /* read buffers and decoder scratch */
    CK_MEM_ROCKSDB,  /* stated reserve of the foreign library */
    CK_MEM_CATEGORY_COUNT
} ck_mem_category;

/* Source of bytes. `bytes` at free and realloc is what was asked for. Alignment is 16. Thread: any. */
typedef struct ck_heap ck_heap;
struct ck_heap {
    void *(*alloc)(ck_heap *h, size_t bytes); /* NULL when there is none */
    void *(*realloc)(ck_heap *h, void *p, size_t old_bytes, size_t bytes);
    void (*free)(ck_heap *h, void *p, size_t bytes);
};
/* The system allocator. Immutable, shared by everyone, never destroyed. */
ck_heap *ck_heap_system(void);

/* A heap that remembers its blocks: for leak checks, for failing the n-th allocation, and for the simulator, where a
 * crash drops everything at once without destructors. New memory is full of one byte and freed memory of another, so
 * that who reads what he may not goes wrong at once. Thread: any (it takes a lock). */
typedef struct ck_tracked_heap ck_tracked_heap;
CK_NODISCARD ck_status ck_tracked_heap_new(ck_tracked_heap **out);
ck_heap *ck_tracked_heap_base(ck_tracked_heap *t);
size_t ck_tracked_heap_live_bytes(const ck_tracked_heap *t);
size_t ck_tracked_heap_live_blocks(const ck_tracked_heap *t);
/* The n-th allocation from now (1-based) fails, once; 0 disarms. ..._fired says whether it happened since. */
void ck_tracked_heap_fail_nth(ck_tracked_heap *t, uint64_t n);
bool ck_tracked_heap_fired(const ck_tracked_heap *t);
void ck_tracked_heap_drop_all(ck_tracked_heap *t); /* frees every live block: a crash */
void ck_tracked_heap_free(ck_tracked_heap *t);     /* drops all, then itself */

/* One budget per job (and one per process for what no job owns). Counters are relaxed atomics: a metric and a bound. */
typedef struct ck_budget {
    ck_heap *heap;
    size_t limit; /* bytes over all categories; 0 = none */
    _Atomic size_t total;
    _Atomic size_t peak;
    _Atomic size_t used[CK_MEM_CATEGORY_COUNT];
} ck_budget;

void ck_budget_init(ck_budget *b, ck_heap *heap, size_t limit);
/* A budget that counts nothing and has no limit, over the system heap: immutable, never destroyed. For what may outlive
 * the engine that made it, such as rows in the hands of the embedding program; bound those where they are made. */
ck_budget *ck_budget_uncounted(void);
size_t ck_budget_used(const ck_budget *b, ck_mem_category c);
size_t ck_budget_total(const ck_budget *b);
const char *ck_mem_category_name(ck_mem_category c);

/* Who pays and for what. Copied by value; the budget outlives every block. */
typedef struct ck_mem {
    ck_budget *budget;
    ck_mem_category category;
} ck_mem;

static inline ck_mem ck_mem_as(ck_mem m, ck_mem_category c) { return (ck_mem){m.budget, c}; }

/* NULL when the heap or the budget says no. bytes 0 gives a unique pointer that must be freed with 0. Thread: any. */
void *ck_alloc(ck_mem m, size_t bytes);
void *ck_alloc_zero(ck_mem m, size_t bytes);
void *ck_realloc(ck_mem m, void *p, size_t old_bytes, size_t bytes); /* on NULL p is untouched */
void ck_free(ck_mem m, void *p, size_t bytes);                       /* NULL p is fine */
/* As the C array forms: NULL on overflow of count * size. */
void *ck_alloc_array(ck_mem m, size_t count, size_t size);

/* Account for bytes that come from elsewhere (mmap extents, foreign libraries). false: the limit would be passed. */
CK_NODISCARD bool ck_mem_take(ck_mem m, size_t bytes);
void ck_mem_give(ck_mem m, size_t bytes);
/* Bytes change what they are for; the total stays. */
void ck_mem_move(ck_mem from, ck_mem_category to, size_t bytes);

/* The sentence for a failed allocation: category, wanted (0: not known), used, limit. Returns CK_NOMEM. */
ck_status ck_nomem(ck_error *err, ck_mem m, size_t bytes);

#endif
