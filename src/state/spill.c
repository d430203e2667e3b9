/* See spill_int.h. */
#include "state/spill_int.h"

#include <string.h>

#include "os/work_file.h"

#define ADDRESSES (64ULL << 30) /* of one store: what its file can grow to */

enum { BLOCK_MIN = 1024, CHUNK = 64 << 10, GROW = 4 << 20, WINDOW_MIN = 16 << 20 };

typedef struct spill_class {
    void **blocks;
    uint32_t count, capacity;
} spill_class;

struct ck_spill {
    ck_mem mem;
    const char *dir;
    ck_work_file *file; /* NULL: nothing has been taken yet */
    uint8_t *base, *end;
    size_t at;         /* from here on nothing has been cut; a multiple of CHUNK */
    size_t paged_out;  /* the system was asked to let go of what is before it */
    size_t written;    /* and to write what is before this */
    size_t used_bytes; /* handed out */
    ck_error error;
    spill_class classes[CK_SPILL_CLASSES];
};

static unsigned class_of(size_t bytes) { return (unsigned)(__builtin_ctzll(bytes) - __builtin_ctzll(BLOCK_MIN)); }

ck_status ck_spill_new(ck_mem mem, const char *dir, ck_spill **out, ck_error *err) {
    ck_work_file *probe;
    CK_TRY(ck_work_file_new(mem, dir, CHUNK, &probe, err));
    ck_status st = ck_work_file_grow(probe, CHUNK, err);
    ck_work_file_free(probe);
    if (st != CK_OK) return st;
    ck_spill *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem, s->dir = dir;
    *out = s;
    return CK_OK;
}

void ck_spill_free(ck_spill *s) {
    if (!s) return;
    CK_ASSERT(s->used_bytes == 0);
    for (unsigned c = 0; c < CK_SPILL_CLASSES; c++)
        ck_free(s->mem, s->classes[c].blocks, s->classes[c].capacity * sizeof(void *));
    ck_work_file_free(s->file);
    ck_free(s->mem, s, sizeof *s);
}

/* false: no memory to remember it; the block is idle until the store goes. */
static bool push(ck_spill *s, unsigned class, void *block) {
    spill_class *c = &s->classes[class];
    if (c->count == c->capacity) {
        uint32_t capacity = c->capacity ? c->capacity * 2 : 16;
        void **more = ck_realloc(s->mem, c->blocks, c->capacity * sizeof *more, capacity * sizeof *more);
        if (!more) return false;
        c->blocks = more, c->capacity = capacity;
    }
    c->blocks[c->count++] = block;
    return true;
}

/* ---- growing ---- */

static ck_status open_file(ck_spill *s) {
    if (s->file) return CK_OK;
    CK_TRY(ck_work_file_new(s->mem, s->dir, ADDRESSES, &s->file, &s->error));
    s->base = ck_work_file_base(s->file);
    s->end = s->base + ADDRESSES;
    return CK_OK;
}

/* What was cut longest ago is written and then leaves RAM, a step behind, so that the disk is not waited for. What is
 * used again comes back by itself; the system lets go of it as of any file's pages. */
static void let_go(ck_spill *s) {
    size_t limit = s->mem.budget->limit / 8, window = limit > WINDOW_MIN ? limit : WINDOW_MIN;
    if (s->at <= window) return;
    ck_work_file_page_out(s->file, s->paged_out, s->written - s->paged_out);
    s->paged_out = s->written;
    s->written = s->at - window;
    ck_work_file_write_back(s->file, s->paged_out, s->written - s->paged_out);
}

/* A block nobody had before, at least a chunk. */
static uint8_t *fresh(ck_spill *s, size_t bytes) {
    if (open_file(s) != CK_OK) return NULL;
    size_t start = (s->at + bytes - 1) & ~(bytes - 1), grown = ck_work_file_bytes(s->file);
    if (start + bytes > grown) {
        size_t more = start + bytes - grown;
        if (more < GROW) more = GROW;
        if (ck_work_file_grow(s->file, more, &s->error) != CK_OK) return NULL;
        let_go(s);
    }
    for (; s->at < start; s->at += CHUNK) (void)push(s, class_of(CHUNK), s->base + s->at);
    s->at = start + bytes;
    return s->base + start;
}

/* ---- blocks ---- */

void *ck_spill_take(ck_spill *s, size_t bytes) {
    unsigned class = class_of(bytes), c = class;
    CK_ASSERT(class < CK_SPILL_CLASSES);
    while (c < CK_SPILL_CLASSES && !s->classes[c].count) c++;
    uint8_t *block;
    if (c < CK_SPILL_CLASSES) {
        block = s->classes[c].blocks[--s->classes[c].count];
    } else {
        size_t whole = bytes > CHUNK ? bytes : CHUNK;
        block = fresh(s, whole);
        if (!block) return NULL;
        c = class_of(whole);
    }
    while (c > class) {
        c--;
        (void)push(s, c, block + ((size_t)BLOCK_MIN << c));
    }
    s->used_bytes += bytes;
    return block;
}

void ck_spill_give(ck_spill *s, void *block, size_t bytes) {
    CK_DASSERT(ck_spill_has(s, block));
    s->used_bytes -= bytes;
    (void)push(s, class_of(bytes), block);
}

bool ck_spill_has(const ck_spill *s, const void *block) {
    return (const uint8_t *)block >= s->base && (const uint8_t *)block < s->end;
}

size_t ck_spill_bytes(const ck_spill *s) { return s->used_bytes; }
const ck_error *ck_spill_error(const ck_spill *s) { return &s->error; }
