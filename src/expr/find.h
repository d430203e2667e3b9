/* Searching short texts: a part, a byte, the n-th piece between separators. Reads nothing outside of the text. */
#ifndef CK_EXPR_FIND_H
#define CK_EXPR_FIND_H

#include "base/view.h"

/* The first place of `part` (not empty) in `text`; NULL: none. What is built for every processor: an eval has a faster
 * one in its kernels. */
const char *ck_find(ck_view text, ck_view part);
/* The index-th piece (from 0) of text split at every c; false: there are not so many. */
bool ck_find_piece(ck_view text, char c, size_t index, ck_view *piece);

#endif
