#include "cluster/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/durable.h"
#include "os/fs.h"
#include "os/random.h"

static ck_status check_private(const char *dir, ck_error *err) {
    struct stat st;
    if (lstat(dir, &st) != 0) return ck_fail_errno(err, errno, "looking at %s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return ck_fail(err, CK_REFUSED, "%s is not a directory that is yours alone (mode 0700)", dir);
    return CK_OK;
}

ck_status ck_runtime_dir(ck_proc *proc, ck_arena *a, const char **out, ck_error *err) {
    const char *base = getenv("XDG_RUNTIME_DIR");
    const char *dir = base && base[0] == '/' ? ck_arena_printf(a, "%s/clink", base)
                                             : ck_arena_printf(a, "/tmp/clink-%ld", (long)geteuid());
    if (!dir) return ck_nomem(err, a->mem, 0);
    ck_status s = proc->fs->mkdir(proc->fs, dir, err);
    if (s != CK_OK && s != CK_EXISTS) return s;
    *out = dir;
    return check_private(dir, err);
}

static ck_status path_of(ck_proc *proc, ck_arena *a, const char *file, uint16_t port, const char **out, ck_error *err) {
    *out = file;
    if (file) return CK_OK;
    const char *dir;
    CK_TRY(ck_runtime_dir(proc, a, &dir, err));
    *out = ck_arena_printf(a, "%s/token-%u", dir, port);
    return *out ? CK_OK : ck_nomem(err, a->mem, 0);
}

void ck_token_make(ck_proc *proc, ck_token *out) {
    *out = (ck_token){{0}};
    for (int i = 0; i < CK_TOKEN_CHARS / 16; i++)
        snprintf(out->text + i * 16, 17, "%016llx", (unsigned long long)ck_random_u64(proc));
}

/* ---- what a file says ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static ck_view trimmed(ck_view v) {
    while (v.n && is_blank(v.p[v.n - 1])) v.n--;
    while (v.n && is_blank(*v.p)) v.p++, v.n--;
    return v;
}

/* The next line that says something; empty at the end. */
static ck_view next_line(ck_view *text, uint32_t *number) {
    while (text->n) {
        const char *end = memchr(text->p, '\n', text->n);
        size_t n = end ? (size_t)(end - text->p) : text->n;
        ck_view line = {text->p, n};
        *text = (ck_view){text->p + n + (end != NULL), text->n - n - (end != NULL)};
        ++*number;
        const char *hash = n ? memchr(line.p, '#', n) : NULL;
        if (hash) line.n = (size_t)(hash - line.p);
        line = trimmed(line);
        if (line.n) return line;
    }
    return (ck_view){NULL, 0};
}

static bool is_token(ck_view v) {
    static const char others[] = "._~+/=-";
    if (v.n < CK_TOKEN_CHARS_MIN || v.n > CK_TOKEN_CHARS_MAX) return false;
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i], lower = ck_ascii_lower(c);
        if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') && !memchr(others, c, sizeof others - 1))
            return false;
    }
    return true;
}

static ck_token token_of(ck_view v) {
    ck_token t = {{0}};
    memcpy(t.text, v.p, v.n);
    return t;
}

/* "ROLES TOKEN". The sentence does not show what may be a token. */
static ck_status read_line(ck_view line, unsigned *roles, ck_token *out, ck_error *err) {
    size_t n = 0;
    while (n < line.n && !is_blank(line.p[n])) n++;
    ck_view token = trimmed((ck_view){line.p + n, line.n - n});
    *roles = ck_roles_of((ck_view){line.p, n});
    if (!*roles)
        return ck_fail(err, CK_INVALID, "a line begins with read, submit, plugin, worker, all, or several with commas");
    if (!is_token(token))
        return ck_fail(err, CK_INVALID, "a token has %d to %d letters, digits and ._~+/=-", CK_TOKEN_CHARS_MIN,
                       CK_TOKEN_CHARS_MAX);
    *out = token_of(token);
    return CK_OK;
}

enum { FILE_BYTES_MAX = 64 << 10, ARENA_BYTES_MAX = 256 << 10 };

static ck_status find(ck_proc *proc, ck_arena *a, const char *file, uint16_t port, ck_token *out, ck_error *err) {
    const char *path;
    ck_view text;
    uint32_t number = 0;
    unsigned roles;
    CK_TRY(path_of(proc, a, file, port, &path, err));
    ck_status s = ck_fs_read_all(proc, path, FILE_BYTES_MAX, a, &text, err);
    if (s == CK_NOTFOUND) return ck_fail(err, s, "there is no %s: no coordinator of yours has port %u", path, port);
    if (s != CK_OK) return s;
    ck_view line = next_line(&text, &number);
    if (is_token(line))
        *out = token_of(line);
    else if (read_line(line, &roles, out, NULL) != CK_OK)
        return ck_fail(err, CK_CORRUPT, "%s does not hold a token", path);
    return CK_OK;
}

static ck_status read_tokens(ck_proc *proc, const char *file, ck_arena *a, ck_tokens *out, ck_error *err) {
    ck_view text, line;
    uint32_t number = 0;
    ck_status s = ck_fs_read_all(proc, file, FILE_BYTES_MAX, a, &text, err);
    if (s == CK_NOTFOUND) ck_error_reset(err);
    if (s != CK_OK) return s == CK_NOTFOUND ? CK_OK : s;
    while ((line = next_line(&text, &number)).n) {
        if (number == 1 && is_token(line)) return CK_OK; /* a coordinator's: it makes another one */
        if (out->count == CK_TOKENS_MAX) return ck_fail(err, CK_FULL, "%s has over %d tokens", file, CK_TOKENS_MAX);
        s = read_line(line, &out->roles[out->count], &out->token[out->count], err);
        if (s != CK_OK) ck_error_prefix(err, "%s:%u: ", file, number);
        if (s != CK_OK) return s;
        for (uint32_t i = 0; i < out->count; i++)
            if (strcmp(out->token[i].text, out->token[out->count].text) == 0)
                return ck_fail(err, CK_INVALID, "%s:%u: the token of an earlier line", file, number);
        out->count++;
    }
    return CK_OK;
}

ck_status ck_tokens_read(ck_proc *proc, const char *file, ck_tokens *out, ck_error *err) {
    ck_arena a;
    *out = (ck_tokens){.count = 0};
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), ARENA_BYTES_MAX);
    ck_status s = read_tokens(proc, file, &a, out, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- files ---- */

ck_status ck_token_publish(ck_proc *proc, const char *file, uint16_t port, const ck_token *t, ck_error *err) {
    ck_arena a;
    const char *path;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), ARENA_BYTES_MAX);
    ck_status s = path_of(proc, &a, file, port, &path, err);
    if (s == CK_OK) s = ck_durable_replace_bytes(proc, path, ck_view_of(t->text), err);
    ck_arena_destroy(&a);
    return s;
}

ck_status ck_token_find(ck_proc *proc, const char *file, uint16_t port, ck_token *out, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), ARENA_BYTES_MAX);
    ck_status s = find(proc, &a, file, port, out, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- comparing ---- */

/* Always over the longest there may be, so that the length says nothing either. */
bool ck_token_equal(const ck_token *t, ck_view other) {
    unsigned char differs = other.n != strlen(t->text) || other.n == 0;
    for (size_t i = 0; i < CK_TOKEN_CHARS_MAX; i++) {
        char c = i < other.n ? other.p[i] : (char)0;
        differs |= (unsigned char)(t->text[i] ^ c);
    }
    return !differs;
}

unsigned ck_tokens_roles(const ck_tokens *t, ck_view shown) {
    unsigned roles = 0;
    for (uint32_t i = 0; i < t->count; i++) roles |= ck_token_equal(&t->token[i], shown) ? t->roles[i] : 0;
    return roles;
}
