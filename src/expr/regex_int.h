/* Reading patterns ourselves, for what PCRE2 does not tell; and how a regex is run, for tests. */
#ifndef CK_EXPR_REGEX_INT_H
#define CK_EXPR_REGEX_INT_H

#include "expr/regex.h"

/* The longest run of plain characters at the top level of a pattern that every match must contain, as part of the
 * pattern; empty when that is not certain. Plain: letters, digits and the like, not what is optional or repeated. */
ck_view ck_regex_required_literal(ck_view pattern);

bool ck_regex_is_machine_code(const ck_regex *r);
void ck_regex_interpret(ck_regex *r); /* from now on, without the machine code */

#endif
