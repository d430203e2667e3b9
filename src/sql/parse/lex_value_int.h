/* What the lexer does with a piece of text it has recognised: positions, values, complaints. Functions that return int
 * give the token's code; after a failure, which is recorded, 0. */
#ifndef CK_SQL_PARSE_LEX_VALUE_INT_H
#define CK_SQL_PARSE_LEX_VALUE_INT_H

#include "sql/parse/parser_int.h"

void *ck_lex_pool(ck_parser *ps, size_t bytes);
/* Before every action: the recognised text begins where the last one ended. */
void ck_lex_advance(ck_parser *ps, const char *text, size_t n);
void ck_lex_give_back(ck_parser *ps, size_t n); /* the last n bytes (one line) are not taken after all */
int ck_lex_plain(ck_parser *ps, int code);
void ck_lex_end(ck_parser *ps);
void ck_lex_comment_open(ck_parser *ps);
bool ck_lex_comment_close(ck_parser *ps); /* the outermost one */
int ck_lex_word(ck_parser *ps);
int ck_lex_quoted_name(ck_parser *ps, char quote);
int ck_lex_string(ck_parser *ps, size_t lead);
int ck_lex_escaped_string(ck_parser *ps);
int ck_lex_bytes(ck_parser *ps);
int ck_lex_number(ck_parser *ps, int code);
int ck_lex_number_junk(ck_parser *ps);
int ck_lex_unterminated(ck_parser *ps, const char *what, const char *closer);
int ck_lex_wrong(ck_parser *ps, const char *hint); /* NULL: just an unexpected character */

#endif
