/* LIKE patterns, compiled once: % any characters, _ one, the escape character makes the next one plain. The usual
 * shapes (no wildcard, a prefix, a suffix, something contained) are comparisons and one search; anything else is
 * matched piece by piece, each piece between two % at its first place, so that the time is at most text times pattern.
 */
#ifndef CK_EXPR_LIKE_H
#define CK_EXPR_LIKE_H

#include "base/arena.h"

typedef struct ck_like ck_like;

/* CK_INVALID: the pattern ends with the escape character, or the escape is not one character. An empty escape is none.
 * Everything lives in the arena; the pattern's bytes are copied. */
CK_NODISCARD ck_status ck_like_compile(ck_arena *a, ck_view pattern, ck_view escape, const ck_like **out,
                                       ck_error *err);
bool ck_like_matches(const ck_like *l, ck_view text);

#endif
