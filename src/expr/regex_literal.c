/* See regex_int.h. Anything unusual ends the search without a result: the literal only saves time. */
#include "expr/regex_int.h"

enum { LITERAL_BYTES_MIN = 3 };

static bool is_plain(char c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    return c && strchr("_=&/:;,<>@!~\"'%- ", c) != NULL; /* not metacharacters outside of classes */
}

static bool is_quantifier(char c) { return c == '*' || c == '+' || c == '?' || c == '{'; }

/* Behind the class that begins at i; SIZE_MAX: not understood. */
static size_t skip_class(ck_view p, size_t i) {
    i++;
    if (i < p.n && p.p[i] == '^') i++;
    if (i < p.n && p.p[i] == ']') i++;
    for (; i < p.n; i++) {
        if (p.p[i] == '[') return SIZE_MAX; /* [:alpha:] and other things */
        if (p.p[i] == '\\')
            i++;
        else if (p.p[i] == ']')
            return i + 1;
    }
    return SIZE_MAX;
}

/* Behind the group that begins at i. */
static size_t skip_group(ck_view p, size_t i) {
    size_t depth = 0;
    for (; i < p.n; i++) {
        if (p.p[i] == '\\') {
            if (i + 1 < p.n && (p.p[i + 1] == 'Q' || p.p[i + 1] == 'E')) return SIZE_MAX;
            i++;
        } else if (p.p[i] == '[') {
            i = skip_class(p, i);
            if (i == SIZE_MAX) return i;
            i--;
        } else if (p.p[i] == '(') {
            if (i + 1 < p.n && (p.p[i + 1] == '*' || (p.p[i + 1] == '?' && !(i + 2 < p.n && p.p[i + 2] == ':'))))
                return SIZE_MAX; /* options, look around, verbs */
            depth++;
        } else if (p.p[i] == ')' && --depth == 0) {
            return i + 1;
        }
    }
    return SIZE_MAX;
}

static size_t skip_quantifier(ck_view p, size_t i) {
    if (p.p[i] == '{') {
        while (i < p.n && p.p[i] != '}') i++;
    }
    if (i < p.n) i++;
    if (i < p.n && (p.p[i] == '?' || p.p[i] == '+')) i++;
    return i;
}

ck_view ck_regex_required_literal(ck_view p) {
    ck_view best = {0}, run = {0};
    for (size_t i = 0; i < p.n;) {
        char c = p.p[i];
        size_t next;
        if (is_plain(c)) {
            next = i + 1;
            if (next == p.n || !is_quantifier(p.p[next])) {
                if (!run.n) run.p = p.p + i;
                run.n++;
                if (run.n > best.n) best = run;
                i = next;
                continue;
            }
        } else if (c == '\\') {
            if (i + 1 == p.n || p.p[i + 1] == 'Q' || p.p[i + 1] == 'E') return (ck_view){0};
            char e = p.p[i + 1];
            bool simple = strchr("dDwWsSbBAzZntr.^$*+?()[]{}|\\/-", e) != NULL;
            if (!simple) return (ck_view){0}; /* numbers, properties: of unknown length */
            next = i + 2;
        } else if (c == '[') {
            next = skip_class(p, i);
        } else if (c == '(') {
            next = skip_group(p, i);
        } else if (c == '.' || c == '^' || c == '$') {
            next = i + 1;
        } else {
            return (ck_view){0}; /* | at the top, bytes above ASCII, a bracket out of place */
        }
        if (next == SIZE_MAX) return (ck_view){0};
        run.n = 0;
        i = next < p.n && is_quantifier(p.p[next]) ? skip_quantifier(p, next) : next;
    }
    if (best.n < LITERAL_BYTES_MIN) best.n = 0;
    return best;
}
