/* See json_path.h. */
#include "expr/json_path.h"

#include <yyjson.h>

typedef enum step_kind { MEMBER, EVERY_MEMBER, ELEMENT, LAST, EVERY_ELEMENT } step_kind;
typedef struct step {
    step_kind kind;
    ck_view name;
    size_t index;
} step;

struct ck_json_path {
    step *steps;
    size_t count;
    bool strict;
};

typedef struct reader {
    const char *p, *end;
    ck_arena *arena;
} reader;

static void skip_spaces(reader *r) {
    while (r->p < r->end && *r->p == ' ') r->p++;
}

static bool take(reader *r, char c) {
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static bool take_word(reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0) return false;
    r->p += n;
    return true;
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '$' || (unsigned char)c >= 0x80;
}

/* "a\"b": a backslash makes the next character plain. */
static bool quoted_name(reader *r, char quote, ck_view *name) {
    char *copy = ck_arena_alloc(r->arena, (size_t)(r->end - r->p) + 1);
    size_t n = 0;
    if (!copy) return false;
    while (r->p < r->end && *r->p != quote) {
        if (*r->p == '\\' && r->p + 1 < r->end) r->p++;
        copy[n++] = *r->p++;
    }
    *name = (ck_view){copy, n};
    return take(r, quote);
}

static bool read_member(reader *r, step *s) {
    if (take(r, '*')) {
        s->kind = EVERY_MEMBER;
        return true;
    }
    s->kind = MEMBER;
    if (take(r, '"')) return quoted_name(r, '"', &s->name);
    const char *begin = r->p;
    while (r->p < r->end && is_name_char(*r->p)) r->p++;
    char *copy = ck_arena_strndup(r->arena, begin, (size_t)(r->p - begin));
    s->name = (ck_view){copy, (size_t)(r->p - begin)};
    return copy && s->name.n > 0;
}

static bool read_element(reader *r, step *s) {
    skip_spaces(r);
    if (take(r, '*')) {
        s->kind = EVERY_ELEMENT;
    } else if (take_word(r, "last")) {
        s->kind = LAST;
    } else if (take(r, '\'')) { /* $['name'], as many write it */
        s->kind = MEMBER;
        if (!quoted_name(r, '\'', &s->name)) return false;
    } else {
        s->kind = ELEMENT;
        const char *begin = r->p;
        for (; r->p < r->end && *r->p >= '0' && *r->p <= '9' && r->p - begin < 10; r->p++)
            s->index = s->index * 10 + (size_t)(*r->p - '0');
        if (r->p == begin) return false;
    }
    skip_spaces(r);
    return take(r, ']');
}

ck_status ck_json_path_compile(ck_arena *a, ck_view text, const ck_json_path **out, ck_error *err) {
    reader r = {text.p, text.p + text.n, a};
    ck_json_path *p = CK_ARENA_NEW(a, ck_json_path);
    if (!p || !(p->steps = ck_arena_array(a, text.n + 1, sizeof(step))))
        return ck_nomem(err, a->mem, (text.n + 1) * sizeof(step));
    skip_spaces(&r);
    if (take_word(&r, "strict"))
        p->strict = true;
    else
        (void)take_word(&r, "lax");
    skip_spaces(&r);
    bool good = take(&r, '$');
    while (good && r.p < r.end) {
        step *s = &p->steps[p->count++];
        if (take(&r, '.'))
            good = read_member(&r, s);
        else if (take(&r, '['))
            good = read_element(&r, s);
        else
            good = false;
    }
    if (!good)
        return ck_fail(err, CK_INVALID, "'%.*s' is not a JSON path like $.a.b[0] (byte %zu)",
                       (int)(text.n > 100 ? 100 : text.n), text.p, (size_t)(r.p - text.p));
    *out = p;
    return CK_OK;
}

bool ck_json_path_is_strict(const ck_json_path *p) { return p->strict; }

typedef struct walk {
    const ck_json_path *path;
    bool (*found)(void *arg, yyjson_val *v);
    void *arg;
    bool stopped, missed;
} walk;

static void step_into(walk *w, yyjson_val *v, size_t at);

static void into_object(walk *w, yyjson_val *v, size_t at) {
    const step *s = &w->path->steps[at];
    if (s->kind == MEMBER) {
        yyjson_val *m = yyjson_obj_getn(v, s->name.p, s->name.n);
        if (m)
            step_into(w, m, at + 1);
        else
            w->missed = true;
        return;
    }
    size_t i, n;
    yyjson_val *key, *m;
    yyjson_obj_foreach(v, i, n, key, m) if (!w->stopped) step_into(w, m, at + 1);
}

static void into_array(walk *w, yyjson_val *v, size_t at) {
    const step *s = &w->path->steps[at];
    size_t count = yyjson_arr_size(v);
    if (s->kind != EVERY_ELEMENT) {
        size_t index = s->kind == LAST ? count - 1 : s->index;
        if (count && index < count)
            step_into(w, yyjson_arr_get(v, index), at + 1);
        else
            w->missed = true;
        return;
    }
    size_t i, n;
    yyjson_val *m;
    yyjson_arr_foreach(v, i, n, m) if (!w->stopped) step_into(w, m, at + 1);
}

static void step_into(walk *w, yyjson_val *v, size_t at) {
    if (at == w->path->count) {
        if (!w->found(w->arg, v)) w->stopped = true;
        return;
    }
    step_kind kind = w->path->steps[at].kind;
    bool of_object = kind == MEMBER || kind == EVERY_MEMBER;
    if (of_object ? yyjson_is_obj(v) : yyjson_is_arr(v)) {
        (of_object ? into_object : into_array)(w, v, at);
    } else if (!w->path->strict && of_object && yyjson_is_arr(v)) {
        size_t i, n; /* lax: the elements are looked into */
        yyjson_val *m;
        yyjson_arr_foreach(v, i, n, m) if (!w->stopped && yyjson_is_obj(m)) into_object(w, m, at);
    } else if (!w->path->strict && !of_object && (kind != ELEMENT || w->path->steps[at].index == 0)) {
        step_into(w, v, at + 1); /* lax: a value is an array of itself */
    } else {
        w->missed = true;
    }
}

bool ck_json_path_walk(const ck_json_path *p, yyjson_val *root, bool (*found)(void *arg, yyjson_val *v), void *arg) {
    walk w = {p, found, arg, false, false};
    step_into(&w, root, 0);
    return !(p->strict && w.missed);
}
