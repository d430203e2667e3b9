/* Memory with one lifetime: job, plan, batch. Allocation is a pointer bump; everything goes at once. Passed by hand,
 * never a hidden current one. Things that need more than memory back (files, references) register a cleanup. */
#ifndef CK_BASE_ARENA_H
#define CK_BASE_ARENA_H

#include "base/mem.h"
#include "base/view.h"

typedef struct ck_arena_block ck_arena_block;
typedef struct ck_arena_cleanup ck_arena_cleanup;

/* Zero is valid and empty, but cannot allocate: init first. One thread at a time. */
typedef struct ck_arena {
    ck_mem mem;
    ck_arena_block *blocks; /* newest first */
    char *at, *end;         /* free part of the newest block */
    size_t bytes;           /* held from mem */
    size_t bytes_max;       /* ceiling; allocation beyond it gives NULL */
    ck_arena_cleanup *cleanups;
} ck_arena;

typedef struct ck_arena_mark {
    ck_arena_block *block;
    char *at;
    ck_arena_cleanup *cleanups;
} ck_arena_mark;

void ck_arena_init(ck_arena *a, ck_mem mem, size_t bytes_max);
void ck_arena_destroy(ck_arena *a); /* runs cleanups newest first; safe twice */

/* NULL past the ceiling or the budget. 16-aligned. */
void *ck_arena_alloc(ck_arena *a, size_t bytes);
void *ck_arena_zero(ck_arena *a, size_t bytes);
void *ck_arena_array(ck_arena *a, size_t count, size_t size); /* zeroed; NULL on overflow */
/* NUL-terminated copies; the view's n does not count the NUL. */
char *ck_arena_strndup(ck_arena *a, const char *p, size_t n);
char *ck_arena_strdup(ck_arena *a, const char *z);
char *ck_arena_printf(ck_arena *a, const char *fmt, ...) CK_PRINTF(2, 3);
#define CK_ARENA_NEW(a, type) ((type *)ck_arena_zero((a), sizeof(type)))

/* fn(arg) when the arena is destroyed or reset below this point. CK_NOMEM: not registered, fn has been called already.
 */
CK_NODISCARD ck_status ck_arena_on_reset(ck_arena *a, void (*fn)(void *arg), void *arg);

ck_arena_mark ck_arena_mark_now(const ck_arena *a);
/* Gives back all since the mark, keeps one block for reuse. */
void ck_arena_reset_to(ck_arena *a, ck_arena_mark m);

#endif
