/* See arena.h. */
#include "base/arena.h"

#include <stdio.h>

enum { FIRST_BLOCK_BYTES = 4096, MAX_BLOCK_BYTES = 256 * 1024, ALIGN = 16 };

struct ck_arena_block {
    ck_arena_block *older;
    size_t bytes; /* with this header */
};

struct ck_arena_cleanup {
    ck_arena_cleanup *older;
    void (*fn)(void *arg);
    void *arg;
};

static char *block_start(ck_arena_block *b) { return (char *)b + ((sizeof *b + ALIGN - 1) & ~(size_t)(ALIGN - 1)); }

void ck_arena_init(ck_arena *a, ck_mem mem, size_t bytes_max) { *a = (ck_arena){.mem = mem, .bytes_max = bytes_max}; }

static void drop_newest(ck_arena *a) {
    ck_arena_block *b = a->blocks;
    a->blocks = b->older;
    a->bytes -= b->bytes;
    ck_free(a->mem, b, b->bytes);
}

static void run_cleanups(ck_arena *a, const ck_arena_cleanup *until) {
    while (a->cleanups != until) {
        ck_arena_cleanup *c = a->cleanups;
        a->cleanups = c->older;
        c->fn(c->arg);
    }
}

void ck_arena_destroy(ck_arena *a) {
    run_cleanups(a, NULL);
    while (a->blocks) drop_newest(a);
    a->at = a->end = NULL;
}

static bool add_block(ck_arena *a, size_t payload) {
    size_t want = a->blocks ? a->blocks->bytes * 2 : FIRST_BLOCK_BYTES;
    if (want > MAX_BLOCK_BYTES) want = MAX_BLOCK_BYTES;
    size_t header = (sizeof(ck_arena_block) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (payload > SIZE_MAX - header) return false;
    if (want < payload + header) want = payload + header;
    if (a->bytes > a->bytes_max || want > a->bytes_max - a->bytes) {
        want = payload + header; /* near the ceiling take just what is needed */
        if (a->bytes > a->bytes_max || want > a->bytes_max - a->bytes) return false;
    }
    ck_arena_block *b = ck_alloc(a->mem, want);
    if (!b) return false;
    *b = (ck_arena_block){.older = a->blocks, .bytes = want};
    a->blocks = b;
    a->bytes += want;
    a->at = block_start(b);
    a->end = (char *)b + want;
    return true;
}

void *ck_arena_alloc(ck_arena *a, size_t bytes) {
    if (bytes > SIZE_MAX - ALIGN) return NULL;
    if (bytes == 0) bytes = 1; /* nothing is no failure */
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if ((size_t)(a->end - a->at) < bytes && !add_block(a, bytes)) return NULL;
    void *p = a->at;
    a->at += bytes;
    return p;
}

void *ck_arena_zero(ck_arena *a, size_t bytes) {
    void *p = ck_arena_alloc(a, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *ck_arena_array(ck_arena *a, size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : ck_arena_zero(a, bytes);
}

char *ck_arena_strndup(ck_arena *a, const char *p, size_t n) {
    char *d = n < SIZE_MAX ? ck_arena_alloc(a, n + 1) : NULL;
    if (!d) return NULL;
    if (n) memcpy(d, p, n);
    d[n] = 0;
    return d;
}

char *ck_arena_strdup(ck_arena *a, const char *z) { return ck_arena_strndup(a, z, strlen(z)); }

char *ck_arena_printf(ck_arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *d = n < 0 ? NULL : ck_arena_alloc(a, (size_t)n + 1);
    if (d) vsnprintf(d, (size_t)n + 1, fmt, again);
    va_end(again);
    return d;
}

ck_status ck_arena_on_reset(ck_arena *a, void (*fn)(void *arg), void *arg) {
    ck_arena_cleanup *c = ck_arena_alloc(a, sizeof *c);
    if (!c) {
        fn(arg);
        return CK_NOMEM;
    }
    *c = (ck_arena_cleanup){a->cleanups, fn, arg};
    a->cleanups = c;
    return CK_OK;
}

ck_arena_mark ck_arena_mark_now(const ck_arena *a) { return (ck_arena_mark){a->blocks, a->at, a->cleanups}; }

void ck_arena_reset_to(ck_arena *a, ck_arena_mark m) {
    run_cleanups(a, m.cleanups);
    if (!m.block) { /* marked empty: keep one block so that a loop of mark and reset does not allocate */
        while (a->blocks && a->blocks->older) drop_newest(a);
        a->at = a->blocks ? block_start(a->blocks) : NULL;
        a->end = a->blocks ? (char *)a->blocks + a->blocks->bytes : NULL;
        return;
    }
    while (a->blocks != m.block) drop_newest(a);
    a->at = m.at;
    a->end = (char *)m.block + m.block->bytes;
}
