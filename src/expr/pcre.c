/* See pcre.h. PCRE2 does not give sizes back when it frees, so blocks carry theirs in front. */
#include "expr/pcre.h"

typedef union front {
    size_t bytes;
    max_align_t align;
} front;

static void *take(PCRE2_SIZE n, void *arg) {
    ck_mem *mem = arg;
    if (n > SIZE_MAX - sizeof(front)) return NULL;
    front *f = ck_alloc(*mem, n + sizeof *f);
    if (!f) return NULL;
    f->bytes = n + sizeof *f;
    return f + 1;
}

static void give(void *p, void *arg) {
    ck_mem *mem = arg;
    if (!p) return;
    front *f = (front *)p - 1;
    ck_free(*mem, f, f->bytes);
}

static void free_context(void *arg) { pcre2_general_context_free(arg); }

pcre2_general_context *ck_pcre_context(ck_arena *a) {
    ck_mem *mem = ck_arena_alloc(a, sizeof *mem);
    if (!mem) return NULL;
    *mem = a->mem;
    pcre2_general_context *c = pcre2_general_context_create(take, give, mem);
    if (!c || ck_arena_on_reset(a, free_context, c) != CK_OK) return NULL;
    return c;
}
