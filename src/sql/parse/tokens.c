/* Between lexer and grammar: decides from the tokens around a word whether it is meant as syntax or is a name, so that
 * the grammar stays LALR(1) and words stay usable as names; and bounds nesting before the parser's stack grows. */
#include "sql/parse/parser_int.h"

#include "sql/parse/grammar.h"

int ck_grammar_lex(CK_GRAMMAR_STYPE *value, ck_pos *pos, ck_parser *ps);

/* The k-th token that is not handed out yet; NULL after a failure. */
static const ck_token *peek(ck_parser *ps, int k) {
    while (ps->queued <= k) {
        if (ps->queued > 0 && ps->queue[ps->queued - 1].code == 0) {
            ps->queue[ps->queued] = ps->queue[ps->queued - 1];
        } else if (!ck_lexer_next(ps, &ps->queue[ps->queued])) {
            return NULL;
        }
        ps->queued++;
    }
    return &ps->queue[k];
}

/* Code of the k-th token, -1 after a failure. */
static int at(ck_parser *ps, int k) {
    const ck_token *t = peek(ps, k);
    return t ? t->code : -1;
}

static bool is_comparison(int code) {
    return code == '=' || code == '<' || code == '>' || code == NOT_EQUAL || code == LESS_EQUAL ||
           code == GREATER_EQUAL;
}
static bool is_trim_side(const ck_parser *ps, int next) {
    return ps->previous[0] == '(' && ps->previous[1] == K_TRIM && next != ')' && next != ',';
}
static bool is_alter_verb(int code) { return code == K_ADD || code == K_DROP || code == K_RENAME || code == K_MODIFY; }

/* What the word at the front of the queue is: itself or its *_LA twin. Only looks further for words that have one. */
static int meaning(ck_parser *ps, int code) {
    switch (code) {
    case K_ANTI: return at(ps, 1) == K_JOIN ? ANTI_LA : code;
    case K_SEMI: return at(ps, 1) == K_JOIN ? SEMI_LA : code;
    case K_ANY:
    case K_SOME: return is_comparison(ps->previous[0]) && at(ps, 1) == '(' ? ANY_LA : code;
    case K_AT: return at(ps, 1) == K_TIME && at(ps, 2) == K_ZONE ? AT_LA : code;
    case K_BOTH: return is_trim_side(ps, at(ps, 1)) ? BOTH_LA : code;
    case K_LEADING: return is_trim_side(ps, at(ps, 1)) ? LEADING_LA : code;
    case K_TRAILING: return is_trim_side(ps, at(ps, 1)) ? TRAILING_LA : code;
    case K_COLUMN: {
        int next = is_alter_verb(ps->previous[0]) ? at(ps, 1) : 0;
        return next && next != ';' && next != K_TO ? COLUMN_LA : code;
    }
    case K_CONSTRAINT: return at(ps, 2) == K_PRIMARY ? CONSTRAINT_LA : code;
    case K_CURRENT: return at(ps, 1) == K_ROW ? CURRENT_LA : code;
    case K_EMIT: return at(ps, 1) == K_ON ? EMIT_LA : code;
    case K_GROUPING: return at(ps, 1) == K_SETS ? GROUPING_LA : code;
    case K_IF: return at(ps, 1) == K_EXISTS || (at(ps, 1) == K_NOT && at(ps, 2) == K_EXISTS) ? IF_LA : code;
    case K_IGNORE: return at(ps, 1) == K_NULLS ? IGNORE_LA : code;
    case K_RESPECT: return at(ps, 1) == K_NULLS ? RESPECT_LA : code;
    case K_INTERVAL: return at(ps, 1) == STRING_TEXT || at(ps, 1) == INTEGER_TEXT ? INTERVAL_LA : code;
    case K_LATERAL:
        return at(ps, 1) == '(' || at(ps, 1) == K_TABLE || (at(ps, 1) == IDENT && at(ps, 2) == '(') ? LATERAL_LA : code;
    case K_NOT: return at(ps, 1) == K_ENFORCED ? NOT_LA : code;
    case K_SYMMETRIC: return ps->previous[0] == K_BETWEEN && at(ps, 1) != K_AND ? SYMMETRIC_LA : code;
    case K_UNBOUNDED: return at(ps, 1) == K_PRECEDING || at(ps, 1) == K_FOLLOWING ? UNBOUNDED_LA : code;
    case K_WITH:
        return (at(ps, 1) == K_TIME && at(ps, 2) == K_ZONE) || (at(ps, 1) == K_LOCAL && at(ps, 2) == K_TIME) ? WITH_LA
                                                                                                             : code;
    default: return code;
    }
}

static bool count_brackets(ck_parser *ps, const ck_token *t) {
    if (t->code == ')' || t->code == ']') ps->brackets--;
    if (t->code != '(' && t->code != '[') return true;
    if (++ps->brackets <= CK_SQL_DEPTH_MAX) return true;
    ck_parser_too_deep(ps, t->pos);
    return false;
}

/* After a failure the parser is told that the text ends: it stops at once, and the failure is in ps->status. */
int ck_grammar_lex(CK_GRAMMAR_STYPE *value, ck_pos *pos, ck_parser *ps) {
    const ck_token *front = peek(ps, 0);
    if (!front) return CK_GRAMMAR_error;
    int code = meaning(ps, front->code);
    if (ps->status != CK_OK) return CK_GRAMMAR_error;
    ps->before = ps->current;
    ps->current = ps->queue[0];
    ps->queued--;
    memmove(ps->queue, ps->queue + 1, (size_t)ps->queued * sizeof ps->queue[0]);
    if (!count_brackets(ps, &ps->current)) return CK_GRAMMAR_error;
    if (code == K_MATCH_RECOGNIZE && at(ps, 0) == '(') {
        ck_parser_fail(ps, ps->current.pos, CK_REFUSED, "MATCH_RECOGNIZE is not supported yet");
        return CK_GRAMMAR_error;
    }
    if (code == ';') ps->in_table = false;
    if (code == K_TABLE && (ps->previous[0] == K_CREATE || ps->previous[0] == K_TEMPORARY)) ps->in_table = true;
    ps->previous[2] = ps->previous[1];
    ps->previous[1] = ps->previous[0];
    ps->previous[0] = code;
    *pos = ps->current.pos;
    value->ident = (ck_ast_ident){ps->current.text, ps->current.pos, ps->current.quoted};
    return code;
}
