/* Debezium's envelope: where the rows are in it. The rows themselves are for the decoder, which checks them; of the
 * rest only strings and brackets are followed. */
#include "connector/kafka/debezium.h"

typedef struct scan {
    const char *at, *end;
} scan;

static void blanks(scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) s->at++;
}

static bool take(scan *s, char c) {
    blanks(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* Behind the closing quote; *out is what is between. */
static bool string(scan *s, ck_view *out) {
    if (!take(s, '"')) return false;
    const char *from = s->at;
    for (; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\' && ++s->at == s->end) return false;
    if (s->at == s->end) return false;
    *out = (ck_view){from, (size_t)(s->at - from)};
    s->at++;
    return true;
}

/* Any value, without looking into it. */
static bool value(scan *s, ck_view *out) {
    ck_view text;
    blanks(s);
    const char *from = s->at;
    size_t depth = 0;
    do {
        blanks(s);
        if (s->at == s->end) return false;
        char c = *s->at;
        if (c == '"') {
            if (!string(s, &text)) return false;
        } else if (c == '{' || c == '[') {
            depth++, s->at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return false;
            depth--, s->at++;
        } else if (depth && (c == ',' || c == ':')) {
            s->at++;
        } else {
            while (s->at < s->end && !strchr(",:{}[]\" \t\r\n", *s->at)) s->at++;
            if (s->at == from || (depth == 0 && *from != c)) return false;
        }
    } while (depth);
    *out = (ck_view){from, (size_t)(s->at - from)};
    return out->n > 0;
}

typedef struct envelope {
    ck_view before, after, op, payload; /* n 0: it has none */
} envelope;

static bool read_members(ck_view text, envelope *e) {
    scan s = {text.p, text.p + text.n};
    *e = (envelope){{0}, {0}, {0}, {0}};
    if (!take(&s, '{')) return false;
    if (!take(&s, '}')) {
        do {
            ck_view name, v;
            if (!string(&s, &name) || !take(&s, ':') || !value(&s, &v)) return false;
            if (ck_view_is(name, "before")) e->before = v;
            if (ck_view_is(name, "after")) e->after = v;
            if (ck_view_is(name, "op")) e->op = v;
            if (ck_view_is(name, "payload")) e->payload = v;
        } while (take(&s, ','));
        if (!take(&s, '}')) return false;
    }
    blanks(&s);
    return s.at == s.end;
}

static bool is_row(ck_view v) { return v.n && v.p[0] == '{'; }

const char *ck_debezium_read(ck_view text, ck_debezium *out) {
    static const char malformed[] = "this is no change by Debezium: no object with \"op\", \"before\" and \"after\"";
    envelope e;
    *out = (ck_debezium){{0}, {0}};
    if (!read_members(text, &e)) return malformed;
    if (!e.op.n && is_row(e.payload) && !read_members(e.payload, &e)) return malformed;
    if (e.op.n != 3 || e.op.p[0] != '"') return malformed;
    switch (e.op.p[1]) {
    case 'c':
    case 'r': out->after = e.after; return is_row(e.after) ? NULL : "an insertion without the row after it";
    case 'u':
        out->before = e.before, out->after = e.after;
        if (!is_row(e.after)) return "an update without the row after it";
        return is_row(e.before) ? NULL
                                : "an update without the row before it; the database must log whole rows (REPLICA "
                                  "IDENTITY FULL)";
    case 'd':
        out->before = e.before;
        return is_row(e.before) ? NULL
                                : "a deletion without the row before it; the database must log whole rows (REPLICA "
                                  "IDENTITY FULL)";
    default: return "its op is none of c, r, u, d: a change of the table as a whole cannot be taken";
    }
}
