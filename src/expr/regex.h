/* Regular expressions (PCRE2 with its JIT), compiled once and matched many times. UTF-8 throughout, classes like \d and
 * \w are ASCII's. A match that takes too many steps is given up (CK_REGEX_LIMIT), so no pattern hangs. A literal that
 * every match must contain is looked for first. One thread at a time; memory of the arena's account. */
#ifndef CK_EXPR_REGEX_H
#define CK_EXPR_REGEX_H

#include "base/arena.h"

typedef struct ck_regex ck_regex;
typedef enum ck_regex_result { CK_REGEX_NONE, CK_REGEX_MATCH, CK_REGEX_LIMIT } ck_regex_result;
typedef struct ck_span {
    size_t from, to; /* bytes; from SIZE_MAX: the group took no part */
} ck_span;

/* CK_INVALID with PCRE2's words and the place in the pattern. */
CK_NODISCARD ck_status ck_regex_compile(ck_arena *a, ck_view pattern, bool ignore_case, ck_regex **out, ck_error *err);
/* What finds that literal, instead of ck_find. */
void ck_regex_find_by(ck_regex *r, const char *(*find)(ck_view text, ck_view part));
uint32_t ck_regex_groups(const ck_regex *r); /* capturing groups, the whole match not counted */
/* The first match at or behind byte `start`; spans[0..groups] are valid until the next call. */
ck_regex_result ck_regex_match(ck_regex *r, ck_view text, size_t start, const ck_span **spans);

#endif
