/* See split.h. */
#include "cli/split.h"

#include <string.h>
#include <strings.h>

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Behind the comment at p, which may hold others; NULL: it is not closed. */
static const char *skip_comment(const char *p, const char *end) {
    size_t depth = 0;
    for (; end - p > 1; p++) {
        bool opens = p[0] == '/' && p[1] == '*', closes = p[0] == '*' && p[1] == '/';
        if (!opens && !closes) continue;
        p++;
        depth = opens ? depth + 1 : depth - 1;
        if (depth == 0) return p + 1;
    }
    return NULL;
}

/* Behind the quoted text, comment, word or single byte at p. */
static const char *skip(const char *p, const char *end) {
    if (*p == '\'' || *p == '"' || *p == '`') {
        const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
        return close ? close + 1 : end; /* a doubled quote is two quoted texts beside each other */
    }
    if (end - p > 1 && p[0] == '-' && p[1] == '-') {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        return line ? line + 1 : end;
    }
    if (end - p > 1 && p[0] == '/' && p[1] == '*') {
        const char *behind = skip_comment(p, end);
        return behind ? behind : end;
    }
    if (!is_word_byte(*p)) return p + 1;
    while (p < end && is_word_byte(*p)) p++;
    return p;
}

static bool is_comment(const char *p, const char *end) {
    return end - p > 1 && ((p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*'));
}

static bool is_word(const char *p, const char *end, const char *word) {
    size_t n = strlen(word);
    return (size_t)(end - p) == n && strncasecmp(p, word, n) == 0;
}

size_t split_statement(const char *text, size_t bytes) {
    const char *end = text + bytes, *next;
    bool set = false;
    size_t depth = 0, words = 0;
    for (const char *p = text; p < end; p = next) {
        next = skip(p, end);
        bool counts = !is_space(*p) && !is_comment(p, end);
        if (counts && words == 1 && !is_word(p, next, "STATEMENT")) set = false, depth = 0; /* BEGIN; */
        if (*p == ';' && depth == 0) return (size_t)(next - text);
        if (!counts) continue;
        if (words == 0) set = is_word(p, next, "EXECUTE") || is_word(p, next, "BEGIN");
        words++;
        if (!set) continue;
        if (is_word(p, next, "BEGIN") || is_word(p, next, "CASE")) depth++;
        if (is_word(p, next, "END") && depth) depth--;
    }
    return 0;
}

bool split_is_blank(const char *text, size_t bytes) {
    const char *end = text + bytes;
    for (const char *p = text; p < end; p = skip(p, end)) {
        if (!is_space(*p) && *p != ';' && !is_comment(p, end)) return false;
        if (*p == '/' && !skip_comment(p, end)) return false; /* the end of it, and more, may come */
    }
    return true;
}
