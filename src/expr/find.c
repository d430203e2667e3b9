/* See find.h. What searches a part stands in find_impl.inc. */
#include "expr/find.h"

#include "expr/kernels.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { LANES = 16 };

const char *ck_find(ck_view text, ck_view part) { return ck_kernels_base.find(text, part); }

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
