/* See like.h. */
#include "expr/like_int.h"

#include "expr/kernels.h"
#include "expr/utf8.h"

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
    c->like->pieces[c->like->count++] = (ck_like_piece){text, any, plain};
    c->like->bytes_min += text.n;
    c->begin = c->used;
    c->has_any = false;
}

/* One literal and where it must stand, when that is all the pattern says. */
static void find_shape(ck_like *l) {
    l->shape = CK_LIKE_GENERAL;
    const ck_like_piece *last = &l->pieces[l->count - 1];
    for (size_t i = 0; i < l->count; i++)
        if (l->pieces[i].any) return;
    if (l->count == 1) {
        l->shape = CK_LIKE_EXACT, l->literal = last->text;
    } else if (l->count == 2 && !last->text.n) {
        l->shape = CK_LIKE_PREFIX, l->literal = l->pieces[0].text;
    } else if (l->count == 2 && !l->pieces[0].text.n) {
        l->shape = CK_LIKE_SUFFIX, l->literal = last->text;
    } else if (l->count == 3 && !l->pieces[0].text.n && !last->text.n) {
        l->shape = CK_LIKE_CONTAINS, l->literal = l->pieces[1].text;
    }
    if (!l->literal.n) l->shape = CK_LIKE_GENERAL;
    size_t head = l->literal.n < 4 ? l->literal.n : 4;
    static const char ones[4] = {-1, -1, -1, -1};
    if (head) memcpy(&l->head, l->literal.p, head), memcpy(&l->head_mask, ones, head);
}

ck_status ck_like_compile(ck_arena *a, ck_view pattern, ck_view escape, const ck_like **out, ck_error *err) {
    if (escape.n && ck_utf8_count(escape) != 1)
        return ck_fail(err, CK_INVALID, "ESCAPE takes one character, not '%.*s'", (int)escape.n, escape.p);
    compiler c = {.arena = a, .like = CK_ARENA_NEW(a, ck_like)};
    c.text = ck_arena_alloc(a, pattern.n + 1);
    c.any = ck_arena_zero(a, pattern.n + 1);
    if (!c.like || !c.text || !c.any) return ck_nomem(err, a->mem, 2 * pattern.n);
    c.like->pieces = ck_arena_array(a, pattern.n + 1, sizeof(ck_like_piece));
    if (!c.like->pieces) return ck_nomem(err, a->mem, (pattern.n + 1) * sizeof(ck_like_piece));
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
    find_shape(c.like);
    *out = c.like;
    return CK_OK;
}

bool ck_like_matches(const ck_like *l, ck_view text) { return ck_kernels_base.like_matches(l, text); }
