/* See parse.h. */
#include "sql/parse/parse.h"

#include "sql/parse/parser_int.h"
#include "sql/parse/grammar.h"

/* Length of the well-formed UTF-8 sequence at p, 0 when there is none. */
static size_t utf8_length(const unsigned char *p, size_t left) {
    if (p[0] < 0x80) return 1;
    size_t n = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if (p[0] == 0xE0 && p[1] < 0xA0) return 0; /* overlong */
    if (p[0] == 0xED && p[1] > 0x9F) return 0; /* surrogates */
    if (p[0] == 0xF0 && p[1] < 0x90) return 0;
    if (p[0] == 0xF4 && p[1] > 0x8F) return 0;
    return n;
}

static ck_status check_bytes(const ck_source_text *s, ck_error *err) {
    const unsigned char *p = (const unsigned char *)s->text.p;
    if (s->text.n > CK_SQL_BYTES_MAX)
        return ck_fail(err, CK_INVALID, "%s: %zu bytes of SQL are too many; at most %d are taken",
                       s->name ? s->name : "sql", s->text.n, CK_SQL_BYTES_MAX);
    for (size_t i = 0; i < s->text.n;) {
        if (p[i] == 0)
            return ck_source_fail(s, ck_source_locate(s, i, i + 1), err, CK_INVALID, "a NUL byte is not SQL text");
        size_t n = utf8_length(p + i, s->text.n - i);
        if (n == 0)
            return ck_source_fail(s, ck_source_locate(s, i, i + 1), err, CK_INVALID,
                                  "byte 0x%02x is not valid UTF-8 here", p[i]);
        i += n;
    }
    return CK_OK;
}

ck_status ck_parse_script(const ck_source_text *source, ck_arena *arena, ck_ast_script *out, ck_error *err) {
    *out = (ck_ast_script){0};
    CK_TRY(check_bytes(source, err));
    ck_parser *ps = CK_ARENA_NEW(arena, ck_parser);
    if (!ps) return ck_nomem(err, arena->mem, sizeof *ps);
    ps->source = source, ps->arena = arena, ps->err = err;
    ps->at = (ck_pos){.line = 1, .column = 1};
    if (!ck_lexer_open(ps)) return ps->status;
    int failed = ck_grammar_parse(ps);
    ck_lexer_close(ps);
    CK_ASSERT(!failed || ps->status != CK_OK);
    if (ps->status == CK_OK) *out = ps->script;
    return ps->status;
}

bool ck_parse_name_needs_quotes(ck_view name) {
    if (name.n == 0 || ck_keyword_find(name)) return true;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9')) return true;
    }
    return false;
}
