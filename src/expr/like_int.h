/* A compiled LIKE pattern from the inside: what like.c makes and the loops of like_impl.inc read. */
#ifndef CK_EXPR_LIKE_INT_H
#define CK_EXPR_LIKE_INT_H

#include "expr/like.h"

/* Bytes between two %: literal, or with _ among them, for which `any` has a flag a byte of the piece (the byte itself
 * is then meaningless). */
typedef struct ck_like_piece {
    ck_view text;
    const bool *any; /* NULL: no _ */
    ck_view plain;   /* what stands before the first _ */
} ck_like_piece;

/* The shapes most patterns have are one comparison or one search of `literal`, which is not empty. */
typedef enum ck_like_shape {
    CK_LIKE_EXACT,
    CK_LIKE_PREFIX,
    CK_LIKE_SUFFIX,
    CK_LIKE_CONTAINS,
    CK_LIKE_GENERAL,
    CK_LIKE_SHAPES
} ck_like_shape;

struct ck_like {
    ck_like_shape shape;
    ck_view literal;
    uint32_t head, head_mask; /* the first four bytes of the literal as a view holds them */
    ck_like_piece *pieces;
    size_t count;     /* at least one; the first is anchored at the start, the last at the end */
    size_t bytes_min; /* of a text that can match */
    bool any_count;   /* some % */
};

#endif
