/* See confined.h. */
#include "os/confined.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- where a path leads ---- */

static bool climbs(const char *rest) {
    for (const char *p = rest; (p = strstr(p, "..")) != NULL; p += 2)
        if ((p == rest || p[-1] == '/') && (p[2] == 0 || p[2] == '/')) return true;
    return false;
}

/* The real path of what is there, and behind it what is not there yet. false: it cannot be said. */
static bool resolve(const char *path, char out[PATH_MAX]) {
    char head[PATH_MAX];
    struct stat st;
    size_t n = strlen(path), whole = n;
    if (n == 0 || n >= sizeof head) return false;
    memcpy(head, path, n + 1);
    for (;;) {
        if (realpath(n ? head : ".", out)) break;
        if (errno != ENOENT && errno != ENOTDIR) return false;
        if (errno == ENOENT && lstat(head, &st) == 0) return false; /* a link to nowhere: who makes it leads anywhere */
        while (n > 0 && head[n - 1] == '/') n--;
        while (n > 0 && head[n - 1] != '/') n--;
        if (n == 0 && path[0] == '/') return false;
        head[n] = 0;
    }
    const char *rest = path + n;
    size_t have = strlen(out);
    while (*rest == '/') rest++;
    if (climbs(rest) || have + 1 + (whole - (size_t)(rest - path)) >= PATH_MAX) return false;
    if (!*rest) return true;
    if (have > 1) out[have++] = '/';
    memcpy(out + have, rest, strlen(rest) + 1);
    return true;
}

static bool is_below(const char *root, const char *path) {
    if (!root) return false;
    size_t n = strlen(root);
    if (n == 1) return true; /* "/" */
    return strncmp(path, root, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static ck_status refuse(const ck_confined *c, const char *path, ck_error *err) {
    ck_status s =
        c->data_root
            ? ck_fail(err, CK_REFUSED, "%s is not below --data-root %s, which is all that jobs may touch here", path,
                      c->data_root)
            : ck_fail(err, CK_REFUSED, "jobs may not touch files here: the worker has no --data-root (%s)", path);
    if (err) err->fatal = true;
    return s;
}

static ck_status check(ck_fs *fs, const char *path, ck_error *err) {
    const ck_confined *c = (const ck_confined *)fs;
    char real[PATH_MAX];
    return resolve(path, real) && is_below(c->data_root, real) ? CK_OK : refuse(c, path, err);
}

/* Time zones are of the machine, and nobody's. */
static ck_status check_read(ck_fs *fs, const char *path, ck_error *err) {
    static const char *const zones[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"};
    char real[PATH_MAX];
    for (size_t i = 0; i < CK_ARRAY_COUNT(zones); i++)
        if (is_below(zones[i], path) && resolve(path, real) && is_below(zones[i], real)) return CK_OK;
    return check(fs, path, err);
}

/* A directory that the root is in: that it is there can be known, which making directories asks for. */
static bool is_above(const ck_fs *fs, const char *path) {
    const ck_confined *c = (const ck_confined *)fs;
    char real[PATH_MAX];
    return c->data_root && resolve(path, real) && is_below(real, c->data_root);
}

/* ---- the table ---- */

static ck_fs *under(ck_fs *fs) { return ((ck_confined *)fs)->under; }

static ck_status confined_open(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    CK_TRY(mode == CK_OPEN_READ || mode == CK_OPEN_READ_ANY ? check_read(fs, path, err) : check(fs, path, err));
    return under(fs)->open(under(fs), path, mode, out, err);
}

static ck_status confined_stat(ck_fs *fs, const char *path, ck_stat *out, ck_error *err) {
    if (!is_above(fs, path)) CK_TRY(check_read(fs, path, err));
    return under(fs)->stat(under(fs), path, out, err);
}

static ck_status confined_link(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    CK_TRY(check(fs, from, err));
    CK_TRY(check(fs, to, err));
    return under(fs)->link(under(fs), from, to, err);
}

static ck_status confined_rename(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    CK_TRY(check(fs, from, err));
    CK_TRY(check(fs, to, err));
    return under(fs)->rename(under(fs), from, to, err);
}

static ck_status confined_rename_noreplace(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    CK_TRY(check(fs, from, err));
    CK_TRY(check(fs, to, err));
    return under(fs)->rename_noreplace(under(fs), from, to, err);
}

static ck_status confined_unlink(ck_fs *fs, const char *path, ck_error *err) {
    CK_TRY(check(fs, path, err));
    return under(fs)->unlink(under(fs), path, err);
}

static ck_status confined_mkdir(ck_fs *fs, const char *path, ck_error *err) {
    CK_TRY(check(fs, path, err));
    return under(fs)->mkdir(under(fs), path, err);
}

static ck_status confined_mkdir_shared(ck_fs *fs, const char *path, ck_error *err) {
    CK_TRY(check(fs, path, err));
    return under(fs)->mkdir_shared(under(fs), path, err);
}

static ck_status confined_rmdir(ck_fs *fs, const char *path, ck_error *err) {
    CK_TRY(check(fs, path, err));
    return under(fs)->rmdir(under(fs), path, err);
}

/* Refused is an answer that fsync_dir has: the directory is not of our making. */
static ck_status confined_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    CK_TRY(check(fs, path, err));
    return under(fs)->fsync_dir(under(fs), path, err);
}

static ck_status confined_list(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count,
                               ck_error *err) {
    CK_TRY(check(fs, path, err));
    return under(fs)->list(under(fs), path, arena, names, count, err);
}

/* ---- making one ---- */

static ck_status root_of(ck_mem mem, const char *flag, const char *dir, char **out, ck_error *err) {
    char real[PATH_MAX];
    struct stat st;
    *out = NULL;
    if (!dir) return CK_OK;
    if (!realpath(dir, real)) return ck_fail_errno(err, errno, "%s %s", flag, dir);
    if (stat(real, &st) != 0 || !S_ISDIR(st.st_mode))
        return ck_fail(err, CK_INVALID, "%s %s is no directory", flag, dir);
    size_t n = strlen(real) + 1;
    if (!(*out = ck_alloc(mem, n))) return ck_nomem(err, mem, n);
    memcpy(*out, real, n);
    return CK_OK;
}

ck_status ck_confined_init(ck_confined *c, ck_mem mem, ck_fs *inner, const char *data_root, const char *secret_dir,
                           ck_error *err) {
    *c = (ck_confined){.fs = *inner, .under = inner, .mem = mem}; /* what is asked of an open file is the inner one's */
    c->fs.open = confined_open;
    c->fs.stat = confined_stat;
    c->fs.link = confined_link;
    c->fs.rename = confined_rename;
    c->fs.rename_noreplace = confined_rename_noreplace;
    c->fs.unlink = confined_unlink;
    c->fs.mkdir = confined_mkdir;
    if (inner->mkdir_shared) c->fs.mkdir_shared = confined_mkdir_shared;
    c->fs.rmdir = confined_rmdir;
    c->fs.fsync_dir = confined_fsync_dir;
    c->fs.list = confined_list;
    ck_status s = root_of(mem, "--data-root", data_root, &c->data_root, err);
    if (s == CK_OK) s = root_of(mem, "--secret-dir", secret_dir, &c->secret_dir, err);
    if (s != CK_OK) ck_confined_destroy(c);
    return s;
}

void ck_confined_destroy(ck_confined *c) {
    if (c->data_root) ck_free(c->mem, c->data_root, strlen(c->data_root) + 1);
    if (c->secret_dir) ck_free(c->mem, c->secret_dir, strlen(c->secret_dir) + 1);
    c->data_root = c->secret_dir = NULL;
}

/* ---- for those who go another way ---- */

ck_status ck_confined_check(const ck_confined *c, const char *path, ck_error *err) {
    char real[PATH_MAX];
    bool known = resolve(path, real);
    return known && (is_below(c->data_root, real) || is_below(c->secret_dir, real)) ? CK_OK : refuse(c, path, err);
}

ck_status ck_confined_check_secret(const ck_confined *c, const char *path, ck_error *err) {
    char real[PATH_MAX];
    if (resolve(path, real) && is_below(c->secret_dir, real)) return CK_OK;
    ck_status s = c->secret_dir ? ck_fail(err, CK_REFUSED, "%s is not below --secret-dir %s", path, c->secret_dir)
                                : ck_fail(err, CK_REFUSED,
                                          "jobs may not read secrets of files here: the worker has no "
                                          "--secret-dir (%s)",
                                          path);
    if (err) err->fatal = true;
    return s;
}

ck_status ck_confined_check_env(const char *name, ck_error *err) {
    if (strncmp(name, CK_CONFINED_ENV, sizeof CK_CONFINED_ENV - 1) == 0) return CK_OK;
    ck_status s = ck_fail(err, CK_REFUSED, "variable %s: of the environment jobs may only read what is called %s...",
                          name, CK_CONFINED_ENV);
    if (err) err->fatal = true;
    return s;
}
