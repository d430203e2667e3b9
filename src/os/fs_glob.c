/* Shell patterns over the table's directories: each component with a wildcard is matched against a listing, the others
 * are taken as they are. A pattern's stars are tried without recursion, so that no name takes exponential time. */
#include "os/fs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- one component ---- */

static const char *next_char(const char *p) { /* one UTF-8 character, or one byte that is none */
    p++;
    while (((unsigned char)*p & 0xC0) == 0x80) p++;
    return p;
}

/* A pointer behind the ] of the class that begins at `[`, or NULL when it never ends: then [ is a plain character. */
static const char *class_end(const char *p) {
    p++;
    if (*p == '!' || *p == '^') p++;
    if (*p == ']') p++;
    for (; *p && *p != ']'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : NULL;
}

/* Compares whole characters, so that ranges beyond ASCII go by code point (UTF-8 sorts so). */
static int char_cmp(const char *a, const char *b) {
    return ck_view_cmp((ck_view){a, (size_t)(next_char(a) - a)}, (ck_view){b, (size_t)(next_char(b) - b)});
}

static bool class_has(const char *p, const char *end, const char *c) {
    bool negated = *++p == '!' || *p == '^', found = false;
    p += negated;
    end--; /* at the ] */
    do {
        if (*p == '\\' && p + 1 < end) p++;
        const char *low = p, *high = p;
        p = next_char(p);
        if (*p == '-' && p + 1 < end) {
            high = p + 1;
            if (*high == '\\' && high + 1 < end) high++;
            p = next_char(high);
        }
        found = found || (char_cmp(low, c) <= 0 && char_cmp(c, high) <= 0);
    } while (p < end);
    return found != negated;
}

/* Whether one pattern element other than * takes one character of name; moves both past it. */
static bool match_one(const char **pattern, const char **name) {
    const char *p = *pattern, *n = *name, *end = *p == '[' ? class_end(p) : NULL;
    bool taken;
    if (*n == 0) return false;
    if (*p == '?') {
        taken = true, p++, n = next_char(n);
    } else if (end) {
        taken = class_has(p, end, n), p = end, n = next_char(n);
    } else {
        if (*p == '\\' && p[1]) p++;
        taken = *p == *n, p++, n++;
    }
    *pattern = p, *name = n;
    return taken;
}

bool ck_fs_match(const char *pattern, const char *name) {
    if (*name == '.' && *pattern != '.' && !(pattern[0] == '\\' && pattern[1] == '.')) return false;
    const char *star = NULL, *retry = NULL; /* behind the last *, and where in name it may try to end next */
    while (*name || *pattern) {
        if (*pattern == '*') {
            star = ++pattern, retry = name;
            continue;
        }
        if (*pattern && match_one(&pattern, &name)) continue;
        if (!star || *retry == 0) return false; /* the last * can take no more, and earlier ones need not */
        retry = next_char(retry), name = retry, pattern = star;
    }
    return true;
}

/* ---- paths ---- */

typedef struct glob_walk {
    ck_fs *fs;
    ck_arena *arena;
    const char **paths;
    size_t count, capacity;
} glob_walk;

static bool has_wildcard(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] == '*' || p[i] == '?' || p[i] == '[' || p[i] == '\\') return true;
    return false;
}

static ck_status add_path(glob_walk *w, const char *path, ck_error *err) {
    if (w->count == w->capacity) {
        size_t capacity = w->capacity ? w->capacity * 2 : 16;
        const char **grown = ck_arena_array(w->arena, capacity, sizeof *grown);
        if (!grown) return ck_fail(err, CK_NOMEM, "no memory for over %zu matching paths", w->count);
        if (w->count) memcpy(grown, w->paths, w->count * sizeof *grown);
        w->paths = grown, w->capacity = capacity;
    }
    w->paths[w->count++] = path;
    return CK_OK;
}

static ck_status walk(glob_walk *w, const char *base, const char *rest, ck_error *err);

/* `path` stands for the pattern so far; rest is what follows its component. */
static ck_status walk_into(glob_walk *w, const char *path, const char *rest, ck_error *err) {
    while (*rest == '/') rest++;
    ck_stat st;
    ck_status s = w->fs->stat(w->fs, path, &st, err);
    if (s == CK_NOTFOUND) return CK_OK; /* a dangling link, or gone since it was listed */
    if (s != CK_OK) return s;
    if (*rest == 0) return add_path(w, path, err);
    return st.is_dir ? walk(w, path, rest, err) : CK_OK;
}

static const char *join(glob_walk *w, const char *base, const char *name, size_t n, ck_error *err) {
    size_t base_n = strlen(base);
    const char *slash = base_n && base[base_n - 1] != '/' ? "/" : "";
    const char *path = ck_arena_printf(w->arena, "%s%s%.*s", base, slash, (int)n, name);
    if (!path) ck_fail(err, CK_NOMEM, "no memory to list %s", base);
    return path;
}

static ck_status walk(glob_walk *w, const char *base, const char *rest, ck_error *err) {
    size_t n = strcspn(rest, "/");
    if (!has_wildcard(rest, n)) {
        const char *path = join(w, base, rest, n, err);
        return path ? walk_into(w, path, rest + n, err) : CK_NOMEM;
    }
    const char *component = ck_arena_strndup(w->arena, rest, n), **names;
    if (!component) return ck_fail(err, CK_NOMEM, "no memory to list %s", base);
    size_t count;
    ck_status s = w->fs->list(w->fs, *base ? base : ".", w->arena, &names, &count, err);
    if (s == CK_NOTFOUND) return CK_OK;
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        if (!ck_fs_match(component, names[i])) continue;
        const char *path = join(w, base, names[i], strlen(names[i]), err);
        s = path ? walk_into(w, path, rest + n, err) : CK_NOMEM;
    }
    return s;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

ck_status ck_fs_glob(ck_proc *proc, const char *pattern, ck_arena *arena, const char ***paths, size_t *count,
                     ck_error *err) {
    *paths = NULL;
    *count = 0;
    size_t n = strlen(pattern);
    if (n == 0 || n >= PATH_MAX)
        return ck_fail(err, CK_INVALID, "a path pattern has 1 to %d bytes, not %zu", PATH_MAX - 1, n);
    glob_walk w = {.fs = proc->fs, .arena = arena};
    ck_error local = CK_ERROR_INIT; /* names that are not there are no error of the caller's */
    ck_status s;
    if (!has_wildcard(pattern, n)) {
        const char *path = ck_arena_strdup(arena, pattern);
        s = path ? add_path(&w, path, &local) : ck_fail(&local, CK_NOMEM, "no memory for %s", pattern);
    } else if (pattern[0] == '/') {
        s = walk_into(&w, "/", pattern, &local);
    } else {
        s = walk(&w, "", pattern, &local);
    }
    if (s != CK_OK && err) *err = local;
    if (s != CK_OK) return s;
    if (w.count) qsort(w.paths, w.count, sizeof *w.paths, by_bytes);
    *paths = w.paths;
    *count = w.count;
    return CK_OK;
}
