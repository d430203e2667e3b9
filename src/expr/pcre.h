/* PCRE2 with its memory on our account. */
#ifndef CK_EXPR_PCRE_H
#define CK_EXPR_PCRE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"

/* A context whose memory comes from a->mem; it goes when the arena does. NULL without memory. */
pcre2_general_context *ck_pcre_context(ck_arena *a);

#endif
