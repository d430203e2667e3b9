/* SQL text to a syntax tree. Checks size, UTF-8 and NUL bytes, then lexes and parses the whole script: either every
 * statement parses or the first error is reported with its place. Not blocking; one thread. */
#ifndef CK_SQL_PARSE_PARSE_H
#define CK_SQL_PARSE_PARSE_H

#include "sql/parse/ast.h"

/* Everything of *out lives in the arena and borrows source->text, which must outlive it. Nesting beyond
 * CK_SQL_DEPTH_MAX, a text beyond CK_SQL_BYTES_MAX, a name beyond CK_NAME_BYTES_MAX are CK_INVALID with their place. */
CK_NODISCARD ck_status ck_parse_script(const ck_source_text *source, ck_arena *arena, ck_ast_script *out,
                                       ck_error *err);

/* Whether an unquoted `name` would come back as this very name: else it must be written in double quotes. */
bool ck_parse_name_needs_quotes(ck_view name);

#endif
