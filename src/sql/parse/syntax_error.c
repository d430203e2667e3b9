/* What is said about text that does not parse: the token, what was expected where that is a short list, and the
 * likeliest slip (a misspelt keyword, a reserved word as a name, a comma too many). What other systems write is in
 * foreign_word.c. */
#include "sql/parse/parser_int.h"

#include <stdio.h>

#include "sql/parse/grammar.h"
#include "base/suggest.h"

enum { SHOWN_MAX = 5 };

void ck_parser_too_deep(ck_parser *ps, ck_pos at) {
    ck_parser_fail(ps, at, CK_INVALID, "this is nested deeper than %d levels", CK_SQL_DEPTH_MAX);
}

typedef struct note {
    char text[400];
    size_t n;
} note;

static void say(note *m, const char *fmt, ...) CK_PRINTF(2, 3);
static void say(note *m, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(m->text + m->n, sizeof m->text - m->n, fmt, ap);
    va_end(ap);
    if (n > 0) m->n += (size_t)n;
    if (m->n >= sizeof m->text) m->n = sizeof m->text - 1;
}

static int cut(ck_view v) { return v.n > 60 ? 60 : (int)v.n; }

static void say_unexpected(note *m, const ck_parser *ps) {
    const ck_token *t = &ps->current;
    if (t->code == 0) {
        say(m, "unexpected end of the text");
    } else if (t->code == STRING_TEXT) {
        say(m, "unexpected string '%.*s%s'", cut(t->text), t->text.p, t->text.n > 60 ? "..." : "");
    } else {
        ck_view v = ck_source_slice(ps->source, t->pos);
        if (t->quoted) v = t->text;
        say(m, "unexpected \"%.*s%s\"", cut(v), v.p, v.n > 60 ? "..." : "");
    }
}

static bool at_statement_start(const ck_parser *ps) { return ps->previous[1] == 0 || ps->previous[1] == ';'; }

/* ---- suggestions ---- */

static bool is_word(const ck_token *t) { return t->code == IDENT && !t->quoted; }

static void offer(ck_suggest *s, const char *name) {
    ck_view v = ck_view_of(name);
    while (v.n && v.p[v.n - 1] == ' ') v.n--;
    if (v.n && v.p[0] >= 'A' && v.p[0] <= 'Z') ck_suggest_offer(s, v);
}

static const char *const starters[] = {"SELECT", "INSERT", "CREATE", "EXPLAIN", "DESCRIBE", "SHOW",   "DROP",
                                       "SET",    "RESET",  "ALTER",  "WITH",    "VALUES",   "EXECUTE"};

/* Words that follow a complete expression or table, where a misspelt one was taken for an alias. */
static const char *const followers[] = {"FROM",  "WHERE", "GROUP", "HAVING",  "ORDER",  "LIMIT",     "OFFSET",
                                        "UNION", "JOIN",  "INNER", "LEFT",    "RIGHT",  "CROSS",     "ON",
                                        "USING", "AS",    "FETCH", "WINDOW",  "EXCEPT", "INTERSECT", "AND",
                                        "OR",    "IN",    "LIKE",  "BETWEEN", "SELECT", "VALUES"};

static const char *const table_followers[] = {"WITH", "PRIMARY",  "KEY",       "NOT",     "NULL",
                                              "FOR",  "ENFORCED", "WATERMARK", "COMMENT", "SELECT"};

static ck_view nearest(ck_view wanted, const char *const *names, size_t count) {
    ck_suggest s;
    ck_suggest_init(&s, wanted);
    for (size_t i = 0; i < count; i++) offer(&s, names[i]);
    return s.best;
}

static ck_view follower(const ck_parser *ps, ck_view word) {
    return ps->in_table ? nearest(word, table_followers, CK_ARRAY_COUNT(table_followers))
                        : nearest(word, followers, CK_ARRAY_COUNT(followers));
}

static bool is_reserved(int code) {
    static const int reserved[] = {
        K_ALL,       K_AND,   K_AS,    K_BETWEEN, K_CASE,   K_CROSS, K_DISTINCT, K_ELSE,  K_END,     K_EXCEPT, K_FALSE,
        K_FOR,       K_FROM,  K_FULL,  K_GROUP,   K_HAVING, K_IN,    K_INNER,    K_IS,    K_JOIN,    K_LEFT,   K_LIKE,
        K_INTERSECT, K_LIMIT, K_NOT,   K_NULL,    K_ON,     K_OR,    K_ORDER,    K_RIGHT, K_NATURAL, K_SELECT, K_TABLE,
        K_THEN,      K_TRUE,  K_UNION, K_USING,   K_VALUES, K_WHEN,  K_WHERE,    K_WITH};
    for (size_t i = 0; i < CK_ARRAY_COUNT(reserved); i++)
        if (reserved[i] == code) return true;
    return false;
}

/* ---- expected ---- */

typedef struct wanted {
    ck_view names[SHOWN_MAX];
    int count;
    bool more, name;
} wanted;

/* What could only make an expression longer is no news. */
static bool is_infix(ck_view v) {
    static const char *const infix[] = {"OR",   "AND",   "IS",  "ISNULL", "NOTNULL", "NOT", "BETWEEN", "IN",
                                        "LIKE", "ILIKE", "||",  "::",     "'['",     "'.'", "'+'",     "'-'",
                                        "'*'",  "'/'",   "'%'", "'~'",    "~*",      "!~",  "!~*",     "'^'"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(infix); i++)
        if (ck_view_is(v, infix[i])) return true;
    return false;
}

/* Where any name fits, the many words that may be names are left out. */
static wanted wanted_of(const char *const *expected, int count) {
    wanted w = {.count = 0};
    for (int i = 0; i < count; i++)
        if (strcmp(expected[i], "a name") == 0) w.name = true;
    for (int i = 0; i < count; i++) {
        ck_view v = ck_view_of(expected[i]);
        while (v.n && v.p[v.n - 1] == ' ') v.n--;
        int code = ck_keyword_find(v);
        if (is_infix(v) || (w.name && code && !is_reserved(code))) continue;
        bool seen = false;
        for (int k = 0; k < w.count; k++) seen = seen || ck_view_eq(w.names[k], v);
        if (seen) continue;
        if (w.count == SHOWN_MAX) {
            w.more = true;
        } else {
            w.names[w.count++] = v;
        }
    }
    return w;
}

static void say_expected(note *m, const wanted *w) {
    if (w->more || w->count == 0) return;
    say(m, "; expected ");
    for (int i = 0; i < w->count; i++)
        say(m, "%s%.*s", i == 0 ? "" : i + 1 == w->count ? " or " : ", ", (int)w->names[i].n, w->names[i].p);
}

/* ---- the message ---- */

/* The one slip that explains it, if there is one. */
static bool say_slip(note *m, const ck_parser *ps, const char *const *expected, int count, const wanted *w) {
    const ck_token *t = &ps->current, *before = &ps->before;
    if (is_word(t)) {
        ck_view near = at_statement_start(ps) ? nearest(t->text, starters, CK_ARRAY_COUNT(starters))
                                              : nearest(t->text, expected, (size_t)count);
        if (near.n) return say(m, "; did you mean \"%.*s\"?", (int)near.n, near.p), true;
    }
    if (before->code == ',' && (is_reserved(t->code) || t->code == ')' || t->code == ';' || t->code == 0))
        return say(m, " after a comma; remove the comma"), true;
    if (ps->in_table && is_word(before) && ps->previous[2] == K_FOR)
        return say(m, "; a watermark has a delay: FOR %.*s AS %.*s - INTERVAL '5' SECOND", cut(before->text),
                   before->text.p, cut(before->text), before->text.p),
               true;
    if (ps->in_table && is_word(before) && (t->code == ')' || t->code == ',') && ps->previous[1] == IDENT)
        return say(m, "; a column has a type: %.*s BIGINT", cut(before->text), before->text.p), true;
    if (is_word(before) && !at_statement_start(ps)) {
        ck_view near = follower(ps, before->text);
        if (near.n)
            return say(m, " after \"%.*s\"; did you mean \"%.*s\" there?", cut(before->text), before->text.p,
                       (int)near.n, near.p),
                   true;
    }
    if (is_word(t) && !at_statement_start(ps) && t->text.n > 2) {
        ck_view near = follower(ps, t->text);
        if (near.n) return say(m, "; did you mean \"%.*s\"?", (int)near.n, near.p), true;
    }
    if (w->name && is_reserved(t->code)) {
        ck_view v = ck_source_slice(ps->source, t->pos);
        return say(m, "; it is a reserved word: as a name it is written \"%.*s\" in double quotes", cut(v), v.p), true;
    }
    return false;
}

void ck_parser_syntax_error(ck_parser *ps, const char *const *expected, int expected_count) {
    ck_pos at = ps->current.pos;
    const char *foreign = ck_parser_foreign_word(ps, &at);
    if (foreign) {
        ck_parser_fail(ps, at, CK_REFUSED, "%s", foreign);
        return;
    }
    note m = {.n = 0};
    wanted w = wanted_of(expected, expected_count);
    say_unexpected(&m, ps);
    if (!say_slip(&m, ps, expected, expected_count, &w)) say_expected(&m, &w);
    ck_parser_fail(ps, at, CK_INVALID, "%s", m.text);
}
