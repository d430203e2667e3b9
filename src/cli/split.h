/* Where a statement ends: at the semicolon that is not in quotes, in a comment, or inside EXECUTE STATEMENT SET BEGIN
 * ... END. Knows no more of SQL than that. */
#ifndef CK_CLI_SPLIT_H
#define CK_CLI_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the first statement of text, with its semicolon; 0: it is not complete yet. */
size_t split_statement(const char *text, size_t bytes);
/* Whether there is nothing but white space and whole comments. */
bool split_is_blank(const char *text, size_t bytes);

#endif
