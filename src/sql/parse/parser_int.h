/* Insides of the parser: its state, the tree's constructors, the lexer's and the token filter's entry points. */
#ifndef CK_SQL_PARSE_PARSER_INT_H
#define CK_SQL_PARSE_PARSER_INT_H

#include "base/limits.h"
#include "sql/parse/ast.h"

enum {
    FLEX_POOL_BYTES = 1024, /* all that flex allocates for one buffer in memory, so that it never fails */
    LOOKAHEAD_MAX = 3,
};

/* A token as the lexer made it. Keywords and identifiers carry their text, strings their value. */
typedef struct ck_token {
    int code; /* of the generated grammar.h; 0 = end */
    ck_pos pos;
    ck_view text;
    bool quoted;
} ck_token;

typedef struct ck_parser {
    const ck_source_text *source;
    ck_arena *arena;
    ck_error *err;
    ck_status status; /* the first failure; CK_OK so far */
    ck_ast_script script;
    ck_ast_create_table *creating; /* whose columns are being read */
    /* lexer */
    void *scanner;
    ck_pos at;      /* line, column and offset of the next byte */
    ck_token lexed; /* the token being made */
    ck_pos opened;  /* start of the string, comment or quoted name being read */
    int comment_depth;
    bool in_hint;
    bool escapes; /* the string being read is E'...' */
    struct {
        char *p;
        size_t n, capacity;
    } text; /* value of the string being read, when it differs from the source */
    _Alignas(16) char flex_pool[FLEX_POOL_BYTES];
    size_t flex_used;
    /* token filter */
    ck_token queue[LOOKAHEAD_MAX];
    int queued;
    bool in_table;    /* CREATE TABLE has been read, and no ; since */
    int previous[3];  /* codes of the last three tokens handed out, newest first */
    ck_token current; /* last one handed out, for messages */
    ck_token before;  /* the one before it */
    int brackets;
} ck_parser;

/* Record a failure at a place (the first wins) and return false or NULL, for one-line exits. */
bool ck_parser_fail(ck_parser *ps, ck_pos at, ck_status status, const char *fmt, ...) CK_PRINTF(4, 5);
void *ck_parser_nomem(ck_parser *ps);
void *ck_parser_alloc(ck_parser *ps, size_t bytes); /* zeroed; NULL has been recorded */
#define CK_PARSER_NEW(ps, type) ((type *)ck_parser_alloc((ps), sizeof(type)))

/* ---- lexer.l, through which tokens.c reads ---- */
CK_NODISCARD bool ck_lexer_open(ck_parser *ps);
void ck_lexer_close(ck_parser *ps);
bool ck_lexer_next(ck_parser *ps, ck_token *out); /* false: failed, recorded */

/* ---- keywords.c ---- */
/* Code of a keyword in any case, 0 = an identifier. */
int ck_keyword_find(ck_view text);

/* ---- syntax_error.c: what the grammar reports ---- */
/* `expected`: names of the tokens that would have fitted, as far as the parser knows. */
void ck_parser_syntax_error(ck_parser *ps, const char *const *expected, int expected_count);
/* foreign_word.c: of a statement, clause or constraint of another system at or before the token that does not fit: what
 * is said about it, and its place; NULL: there is none. */
const char *ck_parser_foreign_word(const ck_parser *ps, ck_pos *at);
void ck_parser_too_deep(ck_parser *ps, ck_pos at);

/* ---- build.c: constructors. NULL means a failure that is recorded. ---- */
ck_ast_expr *ck_ast_build_leaf(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_view name);
ck_ast_expr *ck_ast_build_ident(ck_parser *ps, ck_ast_ident id);
ck_ast_expr *ck_ast_build_expr(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_pos sign, ck_ast_exprs args);
ck_ast_expr *ck_ast_build_unary(ck_parser *ps, ck_ast_kind kind, int what, ck_pos pos, ck_pos sign, ck_ast_expr *a);
ck_ast_expr *ck_ast_build_binary(ck_parser *ps, ck_ast_kind kind, int what, ck_pos pos, ck_pos sign, ck_ast_expr *a,
                                 ck_ast_expr *b);
ck_ast_expr *ck_ast_build_logic(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_pos sign, ck_ast_expr *a,
                                ck_ast_expr *b);
ck_ast_expr *ck_ast_build_call(ck_parser *ps, ck_pos pos, ck_ast_ident name, ck_ast_exprs args);
ck_ast_expr *ck_ast_build_call_of(ck_parser *ps, ck_pos pos, const char *name, ck_ast_exprs args); /* special forms */
ck_ast_expr *ck_ast_build_field(ck_parser *ps, ck_pos pos, ck_ast_expr *base, ck_ast_ident field);
ck_ast_expr *ck_ast_build_map(ck_parser *ps, ck_pos pos, ck_pos word, ck_view text, ck_ast_exprs args);
ck_ast_expr *ck_ast_build_with_query(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_pos sign, ck_ast_expr *arg,
                                     ck_ast_query *query);
ck_ast_call *ck_ast_build_call_extra(ck_parser *ps, ck_ast_expr *call);
/* Depth of a window's, an order's expressions goes into the call. */
bool ck_ast_build_call_done(ck_parser *ps, ck_ast_expr *call);

ck_ast_type *ck_ast_build_type(ck_parser *ps, ck_pos pos, ck_view name, ck_ast_type *fields);
/* The query a WITH, ORDER BY or LIMIT is put on: q itself, or a new one around q where q is in parentheses. */
ck_ast_query *ck_ast_build_query_tail(ck_parser *ps, ck_ast_query *q, ck_pos pos);
ck_ast_query *ck_ast_build_select(ck_parser *ps, ck_pos pos, ck_ast_select *select);
ck_ast_query *ck_ast_build_values(ck_parser *ps, ck_pos pos, ck_ast_exprs rows);
ck_ast_query *ck_ast_build_set_operation(ck_parser *ps, ck_pos pos, ck_ast_query_kind kind, bool all, ck_ast_query *a,
                                         ck_ast_query *b);
bool ck_ast_build_query_done(ck_parser *ps, ck_ast_query *q); /* after its tail was set: depth */
ck_ast_from *ck_ast_build_from(ck_parser *ps, ck_ast_from_kind kind, ck_pos pos);
ck_ast_from *ck_ast_build_join(ck_parser *ps, ck_pos pos, ck_ast_join_kind kind, ck_ast_from *left, ck_ast_from *right);
bool ck_ast_build_from_done(ck_parser *ps, ck_ast_from *f);

ck_ast_exprs ck_exprs_of(ck_ast_expr *e); /* empty for NULL */
ck_ast_exprs ck_exprs_of2(ck_ast_expr *a, ck_ast_expr *b);
ck_ast_exprs ck_exprs_add(ck_ast_exprs list, ck_ast_expr *e);
ck_ast_exprs ck_exprs_before(ck_ast_expr *e, ck_ast_exprs list);
bool ck_names_add(ck_parser *ps, ck_ast_names *list, ck_ast_ident id);
bool ck_options_add(ck_parser *ps, ck_ast_options *list, ck_ast_ident key, ck_ast_ident value);

/* ---- build_statement.c ---- */
ck_ast_statement *ck_ast_build_statement(ck_parser *ps, ck_ast_statement_kind kind, ck_pos pos);
ck_ast_statement *ck_ast_build_insert(ck_parser *ps, ck_pos pos, ck_ast_insert insert);
ck_ast_statement *ck_ast_build_alter(ck_parser *ps, ck_pos pos, ck_ast_alter what, ck_ast_names table, bool if_exists);
bool ck_ast_build_show(ck_parser *ps, ck_ast_statement *s, ck_ast_ident word);    /* SHOW word */
bool ck_ast_build_show_of(ck_parser *ps, ck_ast_statement *s, ck_ast_ident word); /* SHOW word FROM t */
void ck_ast_build_table_column(ck_ast_create_table *t, ck_ast_column *c);
bool ck_ast_build_watermark(ck_parser *ps, ck_pos pos, const ck_ast_expr *column, ck_ast_expr *expr);
bool ck_ast_build_table_key(ck_parser *ps, ck_pos pos, ck_ast_names columns, bool enforced);
bool ck_ast_build_type_param(ck_parser *ps, ck_ast_type *t, ck_ast_ident number);

#endif
