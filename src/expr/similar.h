/* SIMILAR TO patterns as regular expressions over the whole text. */
#ifndef CK_EXPR_SIMILAR_H
#define CK_EXPR_SIMILAR_H

#include "base/arena.h"

CK_NODISCARD ck_status ck_similar_to_regex(ck_arena *a, ck_view pattern, ck_view escape, ck_view *out, ck_error *err);

#endif
