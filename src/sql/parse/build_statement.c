/* Constructors of statements. See parser_int.h. */
#include "sql/parse/parser_int.h"

ck_ast_statement *ck_ast_build_statement(ck_parser *ps, ck_ast_statement_kind kind, ck_pos pos) {
    ck_ast_statement *s = CK_PARSER_NEW(ps, ck_ast_statement);
    if (s) s->kind = kind, s->pos = pos;
    return s;
}

ck_ast_statement *ck_ast_build_insert(ck_parser *ps, ck_pos pos, ck_ast_insert insert) {
    ck_ast_statement *s = ck_ast_build_statement(ps, CK_STATEMENT_INSERT, pos);
    if (!s || !(s->insert = CK_PARSER_NEW(ps, ck_ast_insert))) return NULL;
    *s->insert = insert;
    return s;
}

ck_ast_statement *ck_ast_build_alter(ck_parser *ps, ck_pos pos, ck_ast_alter what, ck_ast_names table, bool if_exists) {
    ck_ast_statement *s = ck_ast_build_statement(ps, CK_STATEMENT_ALTER, pos);
    if (s) s->alter.what = what, s->alter.table = table, s->alter.if_exists = if_exists;
    return s;
}

bool ck_ast_build_show(ck_parser *ps, ck_ast_statement *s, ck_ast_ident word) {
    static const struct {
        const char *word;
        ck_ast_show what;
    } words[] = {{"tables", CK_SHOW_TABLES},
                 {"views", CK_SHOW_VIEWS},
                 {"functions", CK_SHOW_FUNCTIONS},
                 {"settings", CK_SHOW_SETTINGS}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(words); i++) {
        if (!ck_view_eq_nocase(word.text, ck_view_of(words[i].word))) continue;
        s->show.what = words[i].what;
        return true;
    }
    s->show.what = CK_SHOW_SETTING;
    return ck_names_add(ps, &s->show.name, word);
}

bool ck_ast_build_show_of(ck_parser *ps, ck_ast_statement *s, ck_ast_ident word) {
    s->show.what = CK_SHOW_COLUMNS;
    if (ck_view_eq_nocase(word.text, CK_VIEW("columns"))) return true;
    return ck_parser_fail(ps, word.pos, CK_INVALID, "SHOW ... FROM shows COLUMNS of a table, not %.*s",
                          (int)word.text.n, word.text.p);
}

void ck_ast_build_table_column(ck_ast_create_table *t, ck_ast_column *c) {
    if (t->columns_last) {
        t->columns_last->next = c;
    } else {
        t->columns = c;
    }
    t->columns_last = c;
}

bool ck_ast_build_watermark(ck_parser *ps, ck_pos pos, const ck_ast_expr *column, ck_ast_expr *expr) {
    if (column->kind != CK_AST_NAME)
        return ck_parser_fail(
            ps, column->pos, CK_INVALID,
            "WATERMARK FOR takes a column of the table; take a nested field through a computed column "
            "first: ts AS a.b");
    ck_ast_watermark *w = CK_PARSER_NEW(ps, ck_ast_watermark);
    if (!w) return false;
    *w = (ck_ast_watermark){{column->name, column->pos, column->quoted}, expr, pos, ps->creating->watermarks};
    ps->creating->watermarks = w;
    return true;
}

bool ck_ast_build_table_key(ck_parser *ps, ck_pos pos, ck_ast_names columns, bool enforced) {
    ck_ast_key *k = CK_PARSER_NEW(ps, ck_ast_key);
    if (!k) return false;
    *k = (ck_ast_key){columns, enforced, pos, ps->creating->keys};
    ps->creating->keys = k;
    return true;
}
