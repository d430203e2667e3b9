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

#endif
