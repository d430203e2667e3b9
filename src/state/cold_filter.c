/* Which keys may have rows that are out: Bloom filters over the hashes that tables have of their keys anyway, so that a
 * key nobody has seen costs no look into the database. A filter that is full is followed by one four times as large; a
 * hash that some filter knows already is not added again, so that rows that come and go fill nothing. About 10 bits a
 * key. */
#include "state/cold_int.h"

enum {
    LAYERS = 12,
    WORDS_MIN = 1 << 10,
    WORD_KEYS = 6
}; /* 64 bits for so many keys: one in 100 is looked for in vain */

typedef struct filter_layer {
    uint64_t *words; /* a power of two of them */
    size_t count, keys;
} filter_layer;

typedef struct ck_cold_filter {
    filter_layer layers[LAYERS];
    uint32_t count;
    bool lost; /* there was no memory: it says nothing any more */
} filter;

/* One word, four bits in it. The table's hash chooses rows in its index by other bits than these alone. */
static uint64_t bits_of(uint64_t mixed) {
    return 1ULL << (mixed >> 58) | 1ULL << (mixed >> 52 & 63) | 1ULL << (mixed >> 46 & 63) | 1ULL << (mixed >> 40 & 63);
}
static uint64_t mix(uint64_t hash) {
    hash *= 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 32;
}

static bool layer_has(const filter_layer *l, uint64_t mixed) {
    uint64_t bits = bits_of(mixed * 0xD6E8FEB86659FD93ULL);
    return (l->words[mixed & (l->count - 1)] & bits) == bits;
}

bool ck_cold_filter_has(const ck_table *t, uint64_t hash) {
    const filter *f = t->filter;
    if (!f || f->lost) return true;
    uint64_t mixed = mix(hash);
    for (uint32_t i = 0; i < f->count; i++)
        if (layer_has(&f->layers[i], mixed)) return true;
    return false;
}

static bool layer_add(ck_table *t, filter *f) {
    if (f->count == LAYERS) return false;
    size_t words = f->count ? f->layers[f->count - 1].count * 4 : WORDS_MIN;
    uint64_t *p = ck_alloc_zero(t->cold->mem, words * sizeof *p);
    if (!p) return false;
    f->layers[f->count++] = (filter_layer){.words = p, .count = words};
    return true;
}

void ck_cold_filter_add(ck_table *t, uint64_t hash) {
    if (!t->filter && t->out_rows) return; /* rows are out that it would not know */
    if (!t->filter) t->filter = ck_alloc_zero(t->cold->mem, sizeof(filter));
    filter *f = t->filter;
    if (!f || f->lost || (f->count && ck_cold_filter_has(t, hash))) return;
    filter_layer *l = f->count ? &f->layers[f->count - 1] : NULL;
    if ((!l || l->keys >= l->count * WORD_KEYS) && !layer_add(t, f)) {
        f->lost = true;
        return;
    }
    l = &f->layers[f->count - 1];
    uint64_t mixed = mix(hash);
    l->words[mixed & (l->count - 1)] |= bits_of(mixed * 0xD6E8FEB86659FD93ULL);
    l->keys++;
}

void ck_cold_filter_clear(ck_table *t) {
    filter *f = t->filter;
    if (!f) return;
    for (uint32_t i = 0; i < f->count; i++)
        ck_free(t->cold->mem, f->layers[i].words, f->layers[i].count * sizeof(uint64_t));
    ck_free(t->cold->mem, f, sizeof *f);
    t->filter = NULL;
}
