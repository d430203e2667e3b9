/* See lex_value_int.h. */
#include "sql/parse/lex_value_int.h"

#include "sql/parse/grammar.h"

void *ck_lex_pool(ck_parser *ps, size_t bytes) {
    size_t need = (bytes + 15) & ~(size_t)15;
    CK_ASSERT(need <= FLEX_POOL_BYTES - ps->flex_used);
    void *p = ps->flex_pool + ps->flex_used;
    ps->flex_used += need;
    return p;
}

void ck_lex_advance(ck_parser *ps, const char *text, size_t n) {
    ck_token *t = &ps->lexed;
    *t = (ck_token){.pos = ps->at};
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') {
            ps->at.line++, ps->at.column = 1;
        } else if (((unsigned char)text[i] & 0xC0) != 0x80) {
            ps->at.column++;
        }
    }
    ps->at.begin += (uint32_t)n;
    ps->at.end = ps->at.begin;
    t->pos.end = ps->at.begin;
}

void ck_lex_give_back(ck_parser *ps, size_t n) {
    ps->at.begin -= (uint32_t)n;
    ps->at.end = ps->at.begin;
    ps->at.column -= (uint32_t)n;
    ps->lexed.pos.end = ps->at.begin;
}

static ck_view written(const ck_parser *ps) { return ck_source_slice(ps->source, ps->lexed.pos); }

int ck_lex_plain(ck_parser *ps, int code) {
    ps->lexed.text = written(ps);
    return code;
}

void ck_lex_end(ck_parser *ps) { ps->lexed = (ck_token){.pos = ps->at}; }

void ck_lex_comment_open(ck_parser *ps) {
    if (ps->comment_depth++ == 0) ps->opened = ps->lexed.pos;
}
bool ck_lex_comment_close(ck_parser *ps) { return --ps->comment_depth == 0; }

static bool name_fits(ck_parser *ps, size_t n) {
    if (n > CK_NAME_BYTES_MAX)
        return ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "a name of %zu bytes is too long; at most %d are allowed",
                              n, CK_NAME_BYTES_MAX);
    return true;
}

/* What word processors make of quotes and spaces; every byte above 0x7f is a letter, so they stand inside words. */
static const char *typographic(ck_view v) {
    static const struct {
        const char *bytes, *hint;
    } signs[] = {
        {"\xe2\x80\x98", "a string is written between straight quotes: '"},
        {"\xe2\x80\x99", "a string is written between straight quotes: '"},
        {"\xe2\x80\x9c", "a name is quoted with straight double quotes: \""},
        {"\xe2\x80\x9d", "a name is quoted with straight double quotes: \""},
        {"\xc2\xa0", "there is a no-break space (U+00A0) here; write an ordinary space"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(signs); i++)
        if (memmem(v.p, v.n, signs[i].bytes, strlen(signs[i].bytes))) return signs[i].hint;
    return NULL;
}

int ck_lex_word(ck_parser *ps) {
    ps->lexed.text = written(ps);
    int code = ck_keyword_find(ps->lexed.text);
    if (code) return code;
    const char *hint = typographic(ps->lexed.text);
    if (hint) {
        ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "%s", hint);
        return 0;
    }
    return name_fits(ps, ps->lexed.text.n) ? IDENT : 0;
}

/* The inside of a quoted text with doubled quotes made single; shares the source where there are none. */
static bool undouble(ck_parser *ps, ck_view inside, char quote, ck_view *out) {
    *out = inside;
    if (!inside.n || !memchr(inside.p, quote, inside.n)) return true;
    char *p = (char *)ck_parser_alloc(ps, inside.n);
    if (!p) return false;
    size_t n = 0;
    for (size_t i = 0; i < inside.n; i++) {
        p[n++] = inside.p[i];
        if (inside.p[i] == quote) i++;
    }
    *out = (ck_view){p, n};
    return true;
}

static ck_view inside(const ck_parser *ps, size_t lead) {
    ck_view w = written(ps);
    return (ck_view){w.p + lead + 1, w.n - lead - 2};
}

int ck_lex_quoted_name(ck_parser *ps, char quote) {
    ps->lexed.quoted = true;
    if (!undouble(ps, inside(ps, 0), quote, &ps->lexed.text)) return 0;
    if (ps->lexed.text.n == 0) {
        ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "a quoted name is empty");
        return 0;
    }
    return name_fits(ps, ps->lexed.text.n) ? IDENT : 0;
}

int ck_lex_string(ck_parser *ps, size_t lead) {
    return undouble(ps, inside(ps, lead), '\'', &ps->lexed.text) ? STRING_TEXT : 0;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = ck_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t put_utf8(char *p, uint32_t c) {
    if (c < 0x80) return p[0] = (char)c, 1;
    if (c < 0x800) return p[0] = (char)(0xC0 | c >> 6), p[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000) {
        p[0] = (char)(0xE0 | c >> 12), p[1] = (char)(0x80 | (c >> 6 & 63)), p[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    p[0] = (char)(0xF0 | c >> 18), p[1] = (char)(0x80 | (c >> 12 & 63));
    p[2] = (char)(0x80 | (c >> 6 & 63)), p[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* \uXXXX and \UXXXXXXXX at in[i] (the letter); 0 when malformed, else how many bytes of input it took. */
static size_t unicode_escape(ck_view in, size_t i, uint32_t *c) {
    size_t digits = in.p[i] == 'u' ? 4 : 8;
    *c = 0;
    if (in.n - i - 1 < digits) return 0;
    for (size_t k = 1; k <= digits; k++) {
        int d = hex_digit(in.p[i + k]);
        if (d < 0 || *c > 0x10FFFF) return 0;
        *c = *c << 4 | (uint32_t)d;
    }
    bool fine = *c != 0 && *c <= 0x10FFFF && (*c < 0xD800 || *c > 0xDFFF);
    return fine ? digits + 1 : 0;
}

static char simple_escape(char c) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = c ? strchr(from, c) : NULL;
    return at ? to[at - from] : c;
}

int ck_lex_escaped_string(ck_parser *ps) {
    ck_view in = inside(ps, 1);
    char *p = (char *)ck_parser_alloc(ps, in.n ? in.n : 1);
    size_t n = 0;
    if (!p) return 0;
    for (size_t i = 0; i < in.n;) {
        char c = in.p[i];
        if (c == '\'') {
            p[n++] = c, i += 2;
        } else if (c != '\\') {
            p[n++] = c, i++;
        } else if (in.p[i + 1] == 'u' || in.p[i + 1] == 'U') {
            uint32_t code;
            size_t took = unicode_escape(in, i + 1, &code);
            if (!took) {
                ck_parser_fail(ps, ps->lexed.pos, CK_INVALID,
                               "a unicode escape is \\uXXXX or \\UXXXXXXXX, a code point other than 0");
                return 0;
            }
            n += put_utf8(p + n, code), i += 1 + took;
        } else {
            p[n++] = simple_escape(in.p[i + 1]), i += 2;
        }
    }
    ps->lexed.text = (ck_view){p, n};
    return STRING_TEXT;
}

int ck_lex_bytes(ck_parser *ps) {
    ck_view in = inside(ps, 1);
    char *p = (char *)ck_parser_alloc(ps, in.n / 2 + 1);
    if (!p) return 0;
    bool fine = in.n % 2 == 0;
    for (size_t i = 0; fine && i < in.n; i += 2) {
        int hi = hex_digit(in.p[i]), lo = hex_digit(in.p[i + 1]);
        fine = hi >= 0 && lo >= 0;
        if (fine) p[i / 2] = (char)(hi << 4 | lo);
    }
    if (!fine) {
        ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "X'...' takes pairs of hexadecimal digits");
        return 0;
    }
    ps->lexed.text = (ck_view){p, in.n / 2};
    return BYTES_TEXT;
}

int ck_lex_number(ck_parser *ps, int code) {
    ps->lexed.text = written(ps);
    return code;
}

static int cut(ck_view v) { return v.n > 60 ? 60 : (int)v.n; }

int ck_lex_number_junk(ck_parser *ps) {
    ck_view w = written(ps);
    ck_parser_fail(ps, ps->lexed.pos, CK_INVALID,
                   "\"%.*s\" is neither a number nor a name; a name that begins with a digit is written in double "
                   "quotes",
                   cut(w), w.p);
    return 0;
}

int ck_lex_unterminated(ck_parser *ps, const char *what, const char *closer) {
    ck_pos from = ps->comment_depth ? ps->opened : ps->lexed.pos;
    ck_parser_fail(ps, from, CK_INVALID, "this %s has no closing %s", what, closer);
    return 0;
}

int ck_lex_wrong(ck_parser *ps, const char *hint) {
    ck_view rest = {ps->source->text.p + ps->lexed.pos.begin, ps->source->text.n - ps->lexed.pos.begin};
    if (hint) {
        ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "%s", hint);
    } else if (rest.n && (unsigned char)rest.p[0] >= 0x20 && (unsigned char)rest.p[0] < 0x7f) {
        ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "unexpected character \"%c\"", rest.p[0]);
    } else {
        ck_parser_fail(ps, ps->lexed.pos, CK_INVALID, "unexpected byte 0x%02x",
                       rest.n ? (unsigned)(unsigned char)rest.p[0] : 0u);
    }
    return 0;
}
