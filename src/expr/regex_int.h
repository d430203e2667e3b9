/* Reading patterns ourselves, for what PCRE2 does not tell. */
#ifndef CK_EXPR_REGEX_INT_H
#define CK_EXPR_REGEX_INT_H

#include "base/view.h"

/* The longest run of plain characters at the top level of a pattern that every match must contain, as part of the
 * pattern; empty when that is not certain. Plain: letters, digits and the like, not what is optional or repeated. */
ck_view ck_regex_required_literal(ck_view pattern);

#endif
