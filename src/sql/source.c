/* See source.h. */
#include "sql/source.h"

#include <stdio.h>

enum { WINDOW_BYTES = 120, LEAD_BYTES = 70 };

static bool is_continuation(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

ck_pos ck_source_locate(const ck_source_text *s, size_t begin, size_t end) {
    ck_pos p = {.line = 1, .column = 1, .begin = (uint32_t)begin, .end = (uint32_t)end};
    for (size_t i = 0; i < begin && i < s->text.n; i++) {
        if (s->text.p[i] == '\n') {
            p.line++, p.column = 1;
        } else if (!is_continuation(s->text.p[i])) {
            p.column++;
        }
    }
    return p;
}

/* The part of the position's line that is shown, cut between characters. */
typedef struct window {
    ck_view before, after; /* of the caret */
    bool cut_left, cut_right;
} window;

static window window_of(ck_view text, size_t at) {
    size_t from = at, to = at;
    window w = {{0}, {0}, false, false};
    while (from > 0 && text.p[from - 1] != '\n' && at - from < LEAD_BYTES) from--;
    w.cut_left = from > 0 && text.p[from - 1] != '\n';
    while (w.cut_left && from < at && is_continuation(text.p[from])) from++;
    while (to < text.n && text.p[to] != '\n' && text.p[to] != '\r' && to - from < WINDOW_BYTES) to++;
    w.cut_right = to < text.n && text.p[to] != '\n' && text.p[to] != '\r';
    while (w.cut_right && to > at && is_continuation(text.p[to])) to--;
    w.before = (ck_view){text.p + from, at - from};
    w.after = (ck_view){text.p + at, to - at};
    return w;
}

/* One terminal column for each character before the caret; tabs stay tabs so that the caret stands right. */
static size_t padding(ck_view before, char *out, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < before.n && n < room; i++)
        if (!is_continuation(before.p[i])) out[n++] = before.p[i] == '\t' ? '\t' : ' ';
    return n;
}

/* ---- secrets: 'password' = 'x' and its like are not shown ---- */

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
}

static bool contains(ck_view v, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= v.n; i++)
        if (ck_view_eq_nocase((ck_view){v.p + i, n}, ck_view_of(word))) return true;
    return false;
}

/* Whether the literal that begins at `quote` is the value of an option that keeps a secret: name = 'value'. */
static bool is_secret(ck_view text, size_t quote) {
    size_t end = quote, begin;
    while (end > 0 && (text.p[end - 1] == ' ' || text.p[end - 1] == '\t')) end--;
    if (end == 0 || text.p[--end] != '=') return false;
    while (end > 0 && (text.p[end - 1] == ' ' || text.p[end - 1] == '\t')) end--;
    if (end > 0 && (text.p[end - 1] == '\'' || text.p[end - 1] == '"')) end--;
    for (begin = end; begin > 0 && is_name(text.p[begin - 1]);) begin--;
    ck_view name = {text.p + begin, end - begin};
    return contains(name, "password") || contains(name, "secret") || contains(name, "token") || contains(name, "jaas");
}

/* Behind the literal that begins at `quote`. */
static size_t literal_end(ck_view text, size_t quote) {
    size_t i = quote + 1;
    while (i < text.n && (text.p[i] != '\'' || (i + 1 < text.n && text.p[i + 1] == '\'')))
        i += text.p[i] == '\'' ? 2 : 1;
    return i < text.n ? i + 1 : text.n;
}

/* Behind the comment that begins at i; i: none does. */
static size_t comment_end(ck_view text, size_t i) {
    if (i + 1 >= text.n) return i;
    bool line = text.p[i] == '-' && text.p[i + 1] == '-', block = text.p[i] == '/' && text.p[i + 1] == '*';
    if (!line && !block) return i;
    for (i += 2; i < text.n; i++)
        if (line ? text.p[i] == '\n' : text.p[i] == '/' && text.p[i - 1] == '*') return i + 1;
    return text.n;
}

/* v, a part of text, as it may be shown; each character that must not be is a '*'. */
static size_t printable(ck_view text, ck_view v, char *out) {
    size_t n = 0, first = (size_t)(v.p - text.p), hidden = 0, shown = 0; /* [shown, hidden): inside a secret */
    for (size_t i = 0; i < first + v.n; i++) {
        if (i >= hidden && text.p[i] == '\'') {
            hidden = literal_end(text, i);
            shown = is_secret(text, i) ? i + 1 : hidden;
        } else if (i >= hidden) {
            hidden = shown = comment_end(text, i); /* an apostrophe in a comment begins nothing */
        }
        bool secret = i >= shown && i + 1 < hidden;
        if (i < first || (secret && is_continuation(text.p[i]))) continue;
        unsigned char c = (unsigned char)text.p[i];
        out[n++] = secret ? '*' : (c < 0x20 && c != '\t') || c == 0x7f ? '.' : (char)c;
    }
    return n;
}

/* Where a person wrote what is at `at` of a text that may have been made. */
static const ck_source_text *written(const ck_source_text *s, ck_pos *at) {
    for (; s->made_for; s = s->made_for) {
        ck_pos in = *at;
        *at = s->made_at;
        for (uint32_t i = 0; i < s->part_count; i++) {
            const ck_source_part *p = &s->parts[i];
            if (in.begin < p->begin || in.begin >= p->end) continue;
            *at = p->at;
            if (!p->copied) break;
            size_t begin = p->at.begin + (in.begin - p->begin);
            *at = ck_source_locate(s->made_for, begin, begin + (in.end - in.begin));
            break;
        }
    }
    return s;
}

/* Where an expression that knows only its line and column begins. */
static uint32_t offset_of(ck_view text, ck_pos at) {
    size_t i = 0;
    for (uint32_t line = 1; line < at.line && i < text.n; i++) line += text.p[i] == '\n';
    for (uint32_t column = 1; column < at.column && i < text.n; column++) do
            i++;
        while (i < text.n && is_continuation(text.p[i]));
    return (uint32_t)i;
}

/* Puts the place before the sentence in err->msg and the line with its caret behind it. */
static void dress(const ck_source_text *text, ck_pos at, ck_error *err) {
    if (at.begin == 0) at.begin = offset_of(text->text, at);
    const ck_source_text *s = written(text, &at);
    char sentence[sizeof err->msg], head[300], tail[512];
    size_t begin = at.begin < s->text.n ? at.begin : s->text.n;
    window w = window_of(s->text, begin);
    char before[WINDOW_BYTES + 8], after[WINDOW_BYTES + 8], pad[WINDOW_BYTES + 8];
    size_t nb = printable(s->text, w.before, before), na = printable(s->text, w.after, after),
           np = padding(w.before, pad, sizeof pad);
    int head_n = snprintf(head, sizeof head, "%.200s:%u:%u: ", s->name ? s->name : "sql", at.line, at.column);
    int tail_n = snprintf(tail, sizeof tail, "\n  %s%.*s%.*s%s\n  %s%.*s^", w.cut_left ? "..." : "", (int)nb, before,
                          (int)na, after, w.cut_right ? "..." : "", w.cut_left ? "   " : "", (int)np, pad);
    size_t room = sizeof err->msg - 1 - (size_t)head_n - (size_t)tail_n;
    size_t n = strlen(err->msg);
    memcpy(sentence, err->msg, n + 1);
    if (n > room) n = room;
    snprintf(err->msg, sizeof err->msg, "%s%.*s%s", head, (int)n, sentence, tail);
    snprintf(err->place.object, sizeof err->place.object, "%s", s->name ? s->name : "sql");
    err->place.line = at.line;
    err->place.column = at.column;
    err->place.byte_offset = at.begin;
}

ck_status ck_source_fail(const ck_source_text *s, ck_pos at, ck_error *err, ck_status status, const char *fmt, ...) {
    if (!err) return status;
    va_list ap;
    va_start(ap, fmt);
    ck_vfail(err, status, fmt, ap);
    va_end(ap);
    if (at.line) dress(s, at, err);
    return status;
}

ck_status ck_source_place(const ck_source_text *s, ck_pos at, ck_status status, ck_error *err) {
    if (err && status != CK_NOMEM && at.line) dress(s, at, err);
    return status;
}
