/* See like.h. */
#include "expr/like.h"

#include "expr/find.h"
#include "expr/utf8.h"

/* Bytes between two %: literal, or with _ among them, for which `any` has a flag a byte of the piece (the byte itself
 * is then meaningless). */
typedef struct piece {
    ck_view text;
    const bool *any; /* NULL: no _ */
    ck_view plain;   /* what stands before the first _ */
} piece;

struct ck_like {
    piece *pieces;
    size_t count;     /* at least one; the first is anchored at the start, the last at the end */
    size_t bytes_min; /* of a text that can match */
    bool any_count;   /* some % */
};

typedef struct compiler {
    ck_arena *arena;
    char *text;
    bool *any;
    size_t used, begin;
    bool has_any;
    ck_like *like;
} compiler;

static void end_piece(compiler *c) {
    ck_view text = {c->text + c->begin, c->used - c->begin};
    const bool *any = c->has_any ? c->any + c->begin : NULL;
    ck_view plain = text;
    for (size_t i = 0; any && i < plain.n; i++)
        if (any[i]) plain.n = i;
    c->like->pieces[c->like->count++] = (piece){text, any, plain};
    c->like->bytes_min += text.n;
    c->begin = c->used;
    c->has_any = false;
}

ck_status ck_like_compile(ck_arena *a, ck_view pattern, ck_view escape, const ck_like **out, ck_error *err) {
    if (escape.n && ck_utf8_count(escape) != 1)
        return ck_fail(err, CK_INVALID, "ESCAPE takes one character, not '%.*s'", (int)escape.n, escape.p);
    compiler c = {.arena = a, .like = CK_ARENA_NEW(a, ck_like)};
    c.text = ck_arena_alloc(a, pattern.n + 1);
    c.any = ck_arena_zero(a, pattern.n + 1);
    if (!c.like || !c.text || !c.any) return ck_nomem(err, a->mem, 2 * pattern.n);
    c.like->pieces = ck_arena_array(a, pattern.n + 1, sizeof(piece));
    if (!c.like->pieces) return ck_nomem(err, a->mem, (pattern.n + 1) * sizeof(piece));
    for (size_t i = 0; i < pattern.n; i++) {
        bool escaped = escape.n && pattern.n - i >= escape.n && memcmp(pattern.p + i, escape.p, escape.n) == 0;
        if (escaped) {
            i += escape.n;
            if (i >= pattern.n)
                return ck_fail(err, CK_INVALID, "the LIKE pattern '%.*s' ends with its escape character",
                               (int)(pattern.n > 60 ? 60 : pattern.n), pattern.p);
        } else if (pattern.p[i] == '%') {
            c.like->any_count = true;
            end_piece(&c);
            while (i + 1 < pattern.n && pattern.p[i + 1] == '%') i++;
            continue;
        } else if (pattern.p[i] == '_') {
            c.any[c.used] = c.has_any = true;
        }
        c.text[c.used++] = pattern.p[i];
    }
    end_piece(&c);
    *out = c.like;
    return CK_OK;
}

/* Whether the piece stands at p; *used gets its bytes there. */
static bool stands_at(const piece *q, const char *p, const char *end, size_t *used) {
    const char *begin = p;
    if (!q->any) {
        *used = q->text.n;
        return (size_t)(end - p) >= q->text.n && (!q->text.n || memcmp(p, q->text.p, q->text.n) == 0);
    }
    for (size_t i = 0; i < q->text.n; i++) {
        if (p == end) return false;
        if (q->any[i]) {
            p++;
            while (p < end && !ck_utf8_starts(*p)) p++;
        } else if (*p++ != q->text.p[i]) {
            return false;
        }
    }
    *used = (size_t)(p - begin);
    return true;
}

/* The first place of the piece at or behind p, with the bytes it takes; NULL: none. */
static const char *find(const piece *q, const char *p, const char *end, size_t *used) {
    if (q->plain.n == q->text.n) {
        *used = q->text.n;
        return q->text.n ? ck_find((ck_view){p, (size_t)(end - p)}, q->text) : p;
    }
    for (; p <= end; p++) {
        if (q->plain.n && !(p = ck_find((ck_view){p, (size_t)(end - p)}, q->plain))) return NULL;
        if ((p == end || ck_utf8_starts(*p)) && stands_at(q, p, end, used)) return p;
    }
    return NULL;
}

/* Whether the piece ends the text and begins at p or later. */
static bool ends(const piece *q, const char *p, const char *end) {
    size_t used;
    if (!q->any) return (size_t)(end - p) >= q->text.n && stands_at(q, end - q->text.n, end, &used);
    const char *at = end; /* as many characters from the end as the piece has */
    for (size_t i = q->text.n; i-- > 0;) {
        if (at == p) return false;
        at--;
        if (q->any[i])
            while (at > p && !ck_utf8_starts(*at)) at--;
    }
    return stands_at(q, at, end, &used) && used == (size_t)(end - at);
}

bool ck_like_matches(const ck_like *l, ck_view text) {
    if (text.n < l->bytes_min) return false;
    const char *p = text.p, *end = text.p + text.n;
    size_t used = 0;
    if (!stands_at(&l->pieces[0], p, end, &used)) return false;
    p += used;
    if (!l->any_count) return p == end;
    for (size_t i = 1; i + 1 < l->count; i++) {
        p = find(&l->pieces[i], p, end, &used);
        if (!p) return false;
        p += used;
    }
    return ends(&l->pieces[l->count - 1], p, end);
}
