/* See similar.h. */
#include "expr/similar.h"

#include "base/bytes.h"

static ck_status one(ck_bytes *b, char c, bool in_class) {
    if (in_class) return ck_bytes_char(b, c);
    switch (c) {
    case '%': return ck_bytes_str(b, ".*");
    case '_': return ck_bytes_char(b, '.');
    case '(': return ck_bytes_str(b, "(?:"); /* groups capture nothing */
    case '.':
    case '^':
    case '$': return ck_bytes_printf(b, "\\%c", c);
    default: return ck_bytes_char(b, c);
    }
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

ck_status ck_similar_to_regex(ck_arena *a, ck_view p, ck_view escape, ck_view *out, ck_error *err) {
    ck_bytes b;
    ck_bytes_init(&b, a->mem, 4 * p.n + 64);
    bool in_class = false;
    ck_status s = ck_bytes_str(&b, "(?s)^(?:");
    for (size_t i = 0; s == CK_OK && i < p.n; i++) {
        char c = p.p[i];
        if (escape.n && p.n - i >= escape.n && memcmp(p.p + i, escape.p, escape.n) == 0) {
            i += escape.n;
            if (i >= p.n)
                s = ck_fail(err, CK_INVALID, "the SIMILAR TO pattern ends with its escape character");
            else
                s = is_word(p.p[i]) ? ck_bytes_char(&b, p.p[i]) : ck_bytes_printf(&b, "\\%c", p.p[i]);
            continue;
        }
        if (c == '\\')
            s = ck_bytes_str(&b, "\\\\");
        else
            s = one(&b, c, in_class);
        if (c == '[') in_class = true;
        if (c == ']') in_class = false;
    }
    if (s == CK_OK) s = ck_bytes_str(&b, ")\\z");
    char *copy = s == CK_OK ? ck_arena_strndup(a, b.p, b.n) : NULL;
    if (s == CK_OK && !copy) s = CK_NOMEM;
    *out = (ck_view){copy, b.n};
    ck_bytes_destroy(&b);
    return s == CK_NOMEM ? ck_nomem(err, a->mem, p.n) : s;
}
