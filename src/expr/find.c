/* See find.h. The C library's memmem prepares a table for each call, which costs more than looking through a hundred
 * bytes: here the first and the last byte of the part are compared at sixteen places at once. */
#include "expr/find.h"

#if defined(__SSE2__)
#include <emmintrin.h>

enum { LANES = 16 };

/* A bit for each of 16 places where the part's first byte stands, and its last one `gap` bytes further. */
static inline uint32_t candidates(const char *p, size_t gap, __m128i first, __m128i last) {
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + gap));
    return (uint32_t)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));
}

static const char *check(const char *p, uint32_t mask, ck_view part) {
    for (; mask; mask &= mask - 1) {
        const char *at = p + __builtin_ctz(mask);
        if (part.n <= 2 || memcmp(at + 1, part.p + 1, part.n - 2) == 0) return at;
    }
    return NULL;
}

/* Sixteen places and more: the last block overlaps the one before it. */
static const char *find_long(ck_view text, ck_view part, size_t places) {
    __m128i first = _mm_set1_epi8(part.p[0]), last = _mm_set1_epi8(part.p[part.n - 1]);
    size_t i = 0, gap = part.n - 1;
    for (;;) {
        const char *hit = check(text.p + i, candidates(text.p + i, gap, first, last), part);
        if (hit) return hit;
        if (i + LANES >= places) return NULL;
        i = i + 2 * LANES <= places ? i + LANES : places - LANES;
    }
}
#else
enum { LANES = 16 };

static const char *find_long(ck_view text, ck_view part, size_t places) {
    (void)places;
    return memmem(text.p, text.n, part.p, part.n);
}
#endif

const char *ck_find(ck_view text, ck_view part) {
    if (part.n > text.n) return NULL;
    if (part.n == 1) return memchr(text.p, *part.p, text.n);
    size_t places = text.n - part.n + 1;
    if (places >= LANES) return find_long(text, part, places);
    for (const char *p = text.p, *end = text.p + places; p < end; p++) {
        p = memchr(p, part.p[0], (size_t)(end - p));
        if (!p) return NULL;
        if (memcmp(p + 1, part.p + 1, part.n - 1) == 0) return p;
    }
    return NULL;
}

/* ---- pieces ---- */

/* A bit for each of up to 16 bytes that is c. */
static inline uint32_t places_of(const char *p, size_t n, char c) {
#if defined(__SSE2__)
    char block[LANES] = {0};
    const char *from = p;
    if (n < LANES) memcpy(block, p, n), from = block;
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)from);
    uint32_t mask = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(c)));
    return n < LANES ? mask & ((1U << n) - 1) : mask;
#else
    uint32_t mask = 0;
    for (size_t i = 0; i < n && i < LANES; i++) mask |= (uint32_t)(p[i] == c) << i;
    return mask;
#endif
}

bool ck_find_piece(ck_view text, char c, size_t index, ck_view *piece) {
    const char *begin = text.p;
    for (size_t at = 0; at < text.n; at += LANES) {
        uint32_t mask = places_of(text.p + at, text.n - at, c);
        for (; mask; mask &= mask - 1) {
            const char *hit = text.p + at + __builtin_ctz(mask);
            if (index == 0) {
                *piece = (ck_view){begin, (size_t)(hit - begin)};
                return true;
            }
            index--;
            begin = hit + 1;
        }
    }
    *piece = (ck_view){begin, (size_t)(text.p + text.n - begin)};
    return index == 0;
}
