/* "Did you mean": the nearest of some names to a misspelt one. */
#ifndef CK_BASE_SUGGEST_H
#define CK_BASE_SUGGEST_H

#include "base/view.h"

/* Feed candidates one by one; best stays empty unless one is near enough (a third of the length, at least 1 edit; a
 * prefix of three letters or more also counts, and one of five or more with an edit in it). ASCII case ignored. Names
 * over 64 bytes are never near. */
typedef struct ck_suggest {
    ck_view wanted;
    ck_view best; /* borrowed from the candidates */
    size_t best_distance;
} ck_suggest;

void ck_suggest_init(ck_suggest *s, ck_view wanted);
void ck_suggest_offer(ck_suggest *s, ck_view candidate);

#endif
