/* Regular expressions: PCRE2's syntax; replacements and flags as PostgreSQL writes them. A constant pattern is checked
 * when the statement is and compiled once; another one whenever it differs from the row before. */
#include "expr/bits_int.h"
#include "expr/functions_int.h"
#include "expr/regex.h"
#include "expr/similar.h"
#include "expr/strout.h"
#include "expr/utf8.h"

typedef enum regex_op { EXTRACT, REPLACE, LIKE, COUNT, INSTR } regex_op;
enum { SIMILAR = 16, NOCASE = 32 }; /* added to the op */

typedef struct regex_state {
    ck_regex *regex;
    bool fixed;
    ck_arena arena; /* of the pattern of the latest row */
    ck_view pattern, flags;
} regex_state;

/* Which argument holds flags, 0: none. */
static uint32_t flags_argument(const ck_expr *call) {
    regex_op op = (regex_op)(call->impl->op & 15);
    if (call->impl->op & (SIMILAR | NOCASE)) return 0;
    if (op == REPLACE && call->arg_count == 4) return 3;
    return op == LIKE && call->arg_count == 3 ? 2 : 0;
}

static bool flags_good(ck_view flags) {
    for (size_t i = 0; i < flags.n; i++)
        if (!strchr("gic", flags.p[i])) return false;
    return true;
}

static bool has_flag(ck_view flags, char c) { return flags.n && memchr(flags.p, c, flags.n); }

static ck_status compile(ck_arena *a, uint32_t op, ck_view pattern, ck_view flags, ck_regex **out, ck_error *err) {
    if (op & SIMILAR) CK_TRY(ck_similar_to_regex(a, pattern, CK_VIEW("\\"), &pattern, err));
    if (!flags_good(flags))
        return ck_fail(err, CK_INVALID, "flags of a regular expression are g, i and c, not '%.*s'", (int)flags.n,
                       flags.p);
    return ck_regex_compile(a, pattern, (op & NOCASE) || has_flag(flags, 'i'), out, err);
}

static bool is_text_literal(const ck_expr *e) { return e->kind == CK_EXPR_LITERAL && !e->value.null; }

static void dispose_regex(ck_eval *ev, void *state) {
    (void)ev;
    regex_state *s = state;
    ck_arena_destroy(&s->arena);
}

static ck_status prepare_regex(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    regex_state *s = CK_ARENA_NEW(&ev->arena, regex_state);
    if (!s) return ck_nomem(err, ev->mem, sizeof *s);
    *state = s;
    ck_arena_init(&s->arena, ev->mem, 64 << 20);
    uint32_t f = flags_argument(call);
    if (!is_text_literal(call->args[1]) || (f && !is_text_literal(call->args[f]))) return CK_OK;
    ck_view flags = f ? call->args[f]->value.str : (ck_view){0};
    ck_status st = compile(&ev->arena, call->impl->op, call->args[1]->value.str, flags, &s->regex, err);
    if (st == CK_OK) ck_regex_find_by(s->regex, ev->kernels->find);
    /* One that is not valid (a constant put in for a column) fails the rows that reach it. */
    s->fixed = st == CK_OK;
    return st == CK_INVALID ? CK_OK : st;
}

enum { PATTERN_BYTES_MAX = 1 << 20 };

/* The regex for a row, NULL: its pattern is not valid, or longer than one out of a row may be. */
static ck_status regex_of(regex_state *s, const ck_expr *call, const ck_vec *args, uint32_t row, ck_regex **out,
                          ck_error *err) {
    if (s->fixed) {
        *out = s->regex;
        return CK_OK;
    }
    uint32_t f = flags_argument(call);
    ck_view pattern = CK_ARG_STR(1, row), flags = f ? CK_ARG_STR(f, row) : (ck_view){0};
    if (s->regex && ck_view_eq(pattern, s->pattern) && ck_view_eq(flags, s->flags)) {
        *out = s->regex;
        return CK_OK;
    }
    ck_mem mem = s->arena.mem;
    ck_arena_destroy(&s->arena);
    ck_arena_init(&s->arena, mem, 64 << 20);
    *out = s->regex = NULL;
    s->pattern = s->flags = (ck_view){0};
    if (pattern.n > PATTERN_BYTES_MAX || flags.n > PATTERN_BYTES_MAX) return CK_OK;
    char *p = ck_arena_strndup(&s->arena, pattern.p, pattern.n), *g = ck_arena_strndup(&s->arena, flags.p, flags.n);
    if (!p || !g) return ck_nomem(err, mem, pattern.n);
    s->pattern = (ck_view){p, pattern.n}, s->flags = (ck_view){g, flags.n};
    ck_status st = compile(&s->arena, call->impl->op, s->pattern, s->flags, &s->regex, NULL);
    *out = s->regex;
    return st == CK_INVALID ? CK_OK : st;
}

/* ---- extract ---- */

static ck_status extract_one(ck_strout *w, uint32_t row, const ck_column *c, uint32_t at, ck_regex *r, int64_t group) {
    const ck_span *spans;
    ck_view text = ck_column_str(c, at);
    switch (ck_regex_match(r, text, 0, &spans)) {
    case CK_REGEX_LIMIT: return ck_strout_mark(w, row, CK_MARK_STEPS);
    case CK_REGEX_NONE: return ck_strout_null(w, row);
    case CK_REGEX_MATCH: break;
    }
    if (group < 0 || group > ck_regex_groups(r) || spans[group].from == SIZE_MAX) return ck_strout_null(w, row);
    ck_span s = spans[group];
    ck_strout_part(w, row, c, 0, at, s.from, s.to > s.from ? s.to - s.from : 0);
    return CK_OK;
}

static ck_status kernel_extract(CK_KERNEL_ARGS) {
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_regex *r = NULL;
        if (s == CK_OK) s = regex_of(ck_eval_state(ev), call, args, i, &r, err);
        if (s != CK_OK) break;
        if (!r)
            s = ck_strout_mark(&w, i, CK_MARK_ARGUMENT);
        else
            s = extract_one(&w, i, args[0].col, CK_AT(args[0], i), r, call->arg_count == 3 ? CK_ARG_I64(2, i) : 0);
    }
    return ck_strout_finish(&w, s, out);
}

/* ---- matches one after the other ---- */

typedef struct matches {
    ck_regex *r;
    ck_view text;
    size_t at;
    bool done;
} matches;

/* The next match; behind an empty one the search goes on a character further. */
static ck_regex_result next_match(matches *m, const ck_span **spans) {
    if (m->done) return CK_REGEX_NONE;
    ck_regex_result found = ck_regex_match(m->r, m->text, m->at, spans);
    if (found != CK_REGEX_MATCH) return found;
    size_t to = (*spans)[0].to;
    m->at = to;
    if (to > (*spans)[0].from) return found;
    if (to >= m->text.n)
        m->done = true;
    else
        m->at = to + ck_utf8_prefix((ck_view){m->text.p + to, m->text.n - to}, 1);
    return found;
}

/* Appends the replacement: \1 to \9 are groups, \& the match, \\ a backslash. */
static ck_status append_replacement(ck_bytes *b, ck_view with, ck_view text, const ck_span *spans, uint32_t groups) {
    for (size_t i = 0; i < with.n; i++) {
        if (with.p[i] != '\\' || i + 1 == with.n) {
            CK_TRY(ck_bytes_char(b, with.p[i]));
            continue;
        }
        char c = with.p[++i];
        uint32_t group = c == '&' ? 0 : c >= '1' && c <= '9' ? (uint32_t)(c - '0') : UINT32_MAX;
        if (group == UINT32_MAX) {
            if (c != '\\') CK_TRY(ck_bytes_char(b, '\\'));
            CK_TRY(ck_bytes_char(b, c));
        } else if (group <= groups && spans[group].from != SIZE_MAX) {
            CK_TRY(ck_bytes_append(b, text.p + spans[group].from, spans[group].to - spans[group].from));
        }
    }
    return CK_OK;
}

/* CK_FULL: too long; CK_CANCELLED: too many steps. */
static ck_status replace_in(ck_regex *r, ck_view text, ck_view with, bool all, ck_bytes *b) {
    matches m = {.r = r, .text = text};
    const ck_span *spans;
    size_t copied = 0;
    ck_bytes_clear(b);
    for (;;) {
        ck_regex_result found = next_match(&m, &spans);
        if (found == CK_REGEX_LIMIT) return CK_CANCELLED;
        if (found == CK_REGEX_NONE) break;
        CK_TRY(ck_bytes_append(b, text.p + copied, spans[0].from - copied));
        copied = spans[0].to;
        CK_TRY(append_replacement(b, with, text, spans, ck_regex_groups(r)));
        if (!all) break;
    }
    return ck_bytes_append(b, text.p + copied, text.n - copied);
}

static ck_status kernel_replace(CK_KERNEL_ARGS) {
    ck_bytes b;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_bytes_init(&b, ev->mem, CK_STRING_BYTES_MAX);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_regex *r = NULL;
        if (s == CK_OK) s = regex_of(ck_eval_state(ev), call, args, i, &r, err);
        if (s != CK_OK) break;
        bool all = call->arg_count == 4 && has_flag(CK_ARG_STR(3, i), 'g');
        s = r ? replace_in(r, CK_ARG_STR(0, i), CK_ARG_STR(2, i), all, &b) : CK_INVALID;
        if (s == CK_OK)
            s = ck_strout_put(&w, i, ck_bytes_as_view(&b));
        else if (s != CK_NOMEM)
            s = ck_strout_mark(&w, i,
                               s == CK_FULL        ? CK_MARK_TOO_LONG
                               : s == CK_CANCELLED ? CK_MARK_STEPS
                                                   : CK_MARK_ARGUMENT);
    }
    ck_bytes_destroy(&b);
    return ck_strout_finish(&w, s, out);
}

/* ---- yes or no, how many, where ---- */

static ck_status kernel_like(CK_KERNEL_ARGS) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_regex *r = NULL;
        const ck_span *spans;
        if (s == CK_OK) s = regex_of(ck_eval_state(ev), call, args, i, &r, err);
        if (s != CK_OK) break;
        ck_regex_result found = r ? ck_regex_match(r, CK_ARG_STR(0, i), 0, &spans) : CK_REGEX_LIMIT;
        ck_bit_put(out->col->bits, i, found == CK_REGEX_MATCH);
        if (found == CK_REGEX_LIMIT) s = ck_eval_mark(ev, out->col, i, r ? CK_MARK_STEPS : CK_MARK_ARGUMENT, err);
    }
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_regex_result measure(ck_regex *r, ck_view text, regex_op op, int64_t *v) {
    matches m = {.r = r, .text = text};
    const ck_span *spans;
    ck_regex_result found;
    *v = 0;
    while ((found = next_match(&m, &spans)) == CK_REGEX_MATCH) {
        if (op == INSTR) {
            *v = (int64_t)ck_utf8_count((ck_view){text.p, spans[0].from}) + 1;
            return found;
        }
        ++*v;
    }
    return found;
}

static ck_status kernel_measure(CK_KERNEL_ARGS) {
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_regex *r = NULL;
        if (s == CK_OK) s = regex_of(ck_eval_state(ev), call, args, i, &r, err);
        if (s != CK_OK) break;
        regex_op op = (regex_op)(call->impl->op & 15);
        ck_regex_result found = r ? measure(r, CK_ARG_STR(0, i), op, &out->col->i64[i]) : CK_REGEX_LIMIT;
        if (found == CK_REGEX_LIMIT) s = ck_eval_mark(ev, out->col, i, r ? CK_MARK_STEPS : CK_MARK_ARGUMENT, err);
    }
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

/* ---- the table ---- */

#define IMPL(NAME, KERNEL, OP)                                                                                         \
    static const ck_impl NAME = {                                                                                      \
        .kernel = KERNEL, .flags = CK_FN_FALLIBLE, .op = OP, .prepare = prepare_regex, .dispose = dispose_regex}
IMPL(impl_extract, kernel_extract, EXTRACT);
IMPL(impl_replace, kernel_replace, REPLACE);
IMPL(impl_like, kernel_like, LIKE);
IMPL(impl_nocase, kernel_like, LIKE | NOCASE);
IMPL(impl_similar, kernel_like, LIKE | SIMILAR);
IMPL(impl_count, kernel_measure, COUNT);
IMPL(impl_instr, kernel_measure, INSTR);

#define OVERLOADS(NAME, ...) static const ck_overload NAME[] = {__VA_ARGS__}
OVERLOADS(o_extract, {"ssl?>s", &impl_extract, true});
OVERLOADS(o_substr, {"ss>s", &impl_extract, true});
OVERLOADS(o_replace, {"ssss?>s", &impl_replace, false});
OVERLOADS(o_like, {"sss?>b", &impl_like, false});
OVERLOADS(o_match, {"ss>b", &impl_like, false});
OVERLOADS(o_nocase, {"ss>b", &impl_nocase, false});
OVERLOADS(o_similar, {"ss>b", &impl_similar, false});
OVERLOADS(o_count, {"ss>i", &impl_count, false});
OVERLOADS(o_instr, {"ss>i", &impl_instr, false});

/* A constant pattern that is not valid is refused with the statement; so is a group that the pattern does not have. */
static ck_status check_pattern(ck_bind_call *call, ck_error *err) {
    ck_expr probe = {
        .kind = CK_EXPR_CALL, .fn = call->fn, .impl = call->impl, .args = call->args, .arg_count = call->arg_count};
    uint32_t f = flags_argument(&probe);
    if (!is_text_literal(call->args[1]) || (f && !is_text_literal(call->args[f]))) return CK_OK;
    ck_regex *r;
    ck_arena a;
    ck_arena_init(&a, call->arena->mem, 64 << 20);
    ck_status s =
        compile(&a, call->impl->op, call->args[1]->value.str, f ? call->args[f]->value.str : (ck_view){0}, &r, err);
    bool extracts = (call->impl->op & 15) == EXTRACT && call->arg_count == 3;
    const ck_expr *group = extracts ? call->args[2] : NULL;
    if (s == CK_OK && group && group->kind == CK_EXPR_LITERAL && !group->value.null &&
        (group->value.i64 < 0 || group->value.i64 > ck_regex_groups(r)))
        s = ck_fail(err, CK_INVALID, "the regular expression has %u groups, there is no group %lld", ck_regex_groups(r),
                    (long long)group->value.i64);
    ck_arena_destroy(&a);
    return s;
}

static ck_status bind_regex(ck_bind_call *call, ck_error *err) {
    CK_TRY(ck_bind_overloads(call, err));
    return check_pattern(call, err);
}

#define FN(NAME, OVERLOAD_LIST, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                      \
    .name = NAME, .bind = bind_regex, .overloads = OVERLOAD_LIST, .overload_count = CK_ARRAY_COUNT(OVERLOAD_LIST),     \
    .group = "regular expressions", .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE, .result = RESULT

static const ck_function functions[] = {
    {FN("regexp_extract", o_extract, "REGEXP_EXTRACT(text, pattern [, group])",
        "What a group of the pattern (0, the default, is all of it) matches first; NULL when nothing does.",
        "REGEXP_EXTRACT('a=1&b=22', 'b=([0-9]+)', 1)", "22")},
    {FN("regexp_substr", o_substr, "REGEXP_SUBSTR(text, pattern)", "The first match; NULL when there is none.",
        "REGEXP_SUBSTR('flight 714', '[0-9]+')", "714")},
    {FN("regexp_replace", o_replace, "REGEXP_REPLACE(text, pattern, replacement [, flags])",
        "The text with the first match (with flag g every match) replaced; \\1 to \\9 stand for groups, \\& for the "
        "match; "
        "flag i ignores case.",
        "REGEXP_REPLACE('2024-02-29', '(\\d+)-(\\d+)', '\\2/\\1')", "02/2024-29")},
    {FN("regexp_like", o_like, "REGEXP_LIKE(text, pattern [, flags])",
        "Whether the pattern matches somewhere; flag i ignores case.", "REGEXP_LIKE('Flights', '^fl', 'i')", "true"),
     .aliases = "regexp rlike"},
    {FN("~", o_match, "text ~ pattern", "Whether the pattern matches somewhere.", "'flights' ~ 'g.t'", "true"),
     .flags = CK_FN_INTERNAL},
    {FN("~*", o_nocase, "text ~* pattern", "As ~, upper and lower case being the same.", "'FLIGHTS' ~* 'g.t'", "true"),
     .flags = CK_FN_INTERNAL},
    {FN("similar_to", o_similar, "SIMILAR_TO(text, pattern)",
        "Whether the whole text is as the SQL pattern says: % and _ as in LIKE, and | * + ? {} () [] as in regular "
        "expressions.",
        "SIMILAR_TO('abc', '%(b|d)_')", "true")},
    {FN("regexp_count", o_count, "REGEXP_COUNT(text, pattern)", "How many matches there are.",
        "REGEXP_COUNT('banana', 'an')", "2")},
    {FN("regexp_instr", o_instr, "REGEXP_INSTR(text, pattern)",
        "Where the first match begins, counting characters from 1; 0 when there is none.",
        "REGEXP_INSTR('flight 714', '[0-9]')", "8")},
};
const ck_function_table ck_functions_regex = {functions, CK_ARRAY_COUNT(functions)};
