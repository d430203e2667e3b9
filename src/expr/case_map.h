/* Upper and lower case: ASCII by itself, everything else through PCRE2's Unicode tables (one character for one). */
#ifndef CK_EXPR_CASE_MAP_H
#define CK_EXPR_CASE_MAP_H

#include "base/arena.h"

typedef enum ck_case { CK_CASE_LOWER, CK_CASE_UPPER, CK_CASE_TITLE } ck_case;
typedef struct ck_case_map ck_case_map; /* one thread at a time */

CK_NODISCARD ck_status ck_case_map_new(ck_arena *a, ck_case mode, ck_case_map **out, ck_error *err);
/* The text in its case, in the arena (or the text itself). */
CK_NODISCARD ck_status ck_case_map_view(ck_case_map *m, ck_arena *a, ck_view v, ck_view *out, ck_error *err);
/* ASCII letters only; out may be in. */
void ck_ascii_case(ck_case mode, const char *in, size_t n, char *out);

/* Eight bytes in a word, in lower or upper case; bytes above ASCII stay. */
static inline uint64_t ck_ascii_case_word(ck_case mode, uint64_t w) {
    const uint64_t ones = 0x0101010101010101ULL, tops = ones << 7;
    uint64_t first = mode == CK_CASE_LOWER ? 'A' : 'a', seven = w & ~tops;
    /* The top bit of each byte: at or behind the first letter, behind the last one. */
    uint64_t letters = (seven + (0x80 - first) * ones) & ~(seven + (0x80 - first - 26) * ones) & ~w & tops;
    return w ^ letters >> 2;
}

#endif
