/* See scratch_dir.h. */
#include "os/scratch_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME     "owner.lock"
#define NEW_LOCK_NAME "owner.new"

enum { DEPTH_MAX = 4 }; /* nobody makes deeper ones here */

struct ck_scratch_dir {
    ck_mem mem;
    int lock; /* -1: none */
    char path[PATH_MAX - sizeof LOCK_NAME - 1];
};

static ck_status said_no(const char *dir, const char *what, ck_error *err) {
    return ck_fail(err, CK_IO, "%s: could not %s: %s", dir, what, strerror(errno));
}

/* The entry `name` of the open folder, and everything below it. Links are removed, never followed. */
static void remove_all(int in, const char *name, unsigned depth) {
    if (unlinkat(in, name, 0) == 0 || depth == DEPTH_MAX) return;
    int fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) remove_all(fd, e->d_name, depth + 1);
    (void)closedir(d);
    (void)unlinkat(in, name, AT_REMOVEDIR); /* what cannot go stays for the next one who tries */
}

static bool take_lock(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/* A folder whose owner is gone: its lock can be had. One without the file is being made, or half removed; the latter is
 * empty and costs nothing. */
static void remove_if_left(int in, const char *name) {
    int fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    int lock = openat(fd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    (void)close(fd);
    if (lock < 0) return;
    if (take_lock(lock)) remove_all(in, name, 0);
    (void)close(lock);
}

static void remove_left(const char *dir, const char *prefix) {
    size_t n = strlen(prefix);
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, prefix, n) == 0 && e->d_name[n] == '-') remove_if_left(dirfd(d), e->d_name);
    (void)closedir(d);
}

static ck_status make(ck_scratch_dir *s, const char *dir, const char *prefix, ck_error *err) {
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) return said_no(dir, "make the folder", err);
    remove_left(dir, prefix);
    int n = snprintf(s->path, sizeof s->path, "%s/%s-XXXXXX", dir, prefix);
    if (n < 0 || (size_t)n >= sizeof s->path) {
        s->path[0] = 0;
        return ck_fail(err, CK_INVALID, "the name of a folder is too long (%d bytes)", n);
    }
    if (!mkdtemp(s->path)) {
        s->path[0] = 0;
        return said_no(dir, "make a folder in it", err);
    }
    /* It gets its name when it is locked: one that is not would be taken for a dead process's by whoever looks then. */
    char lock[PATH_MAX], unlocked[PATH_MAX];
    (void)snprintf(lock, sizeof lock, "%s/" LOCK_NAME, s->path);
    (void)snprintf(unlocked, sizeof unlocked, "%s/" NEW_LOCK_NAME, s->path);
    s->lock = open(unlocked, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (s->lock < 0 || !take_lock(s->lock) || rename(unlocked, lock) != 0) return said_no(s->path, "lock it", err);
    return CK_OK;
}

ck_status ck_scratch_dir_new(ck_mem mem, const char *dir, const char *prefix, ck_scratch_dir **out, ck_error *err) {
    ck_scratch_dir *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem, s->lock = -1;
    ck_status st = make(s, dir, prefix, err);
    if (st != CK_OK) {
        ck_scratch_dir_free(s);
        return st;
    }
    *out = s;
    return CK_OK;
}

const char *ck_scratch_dir_path(const ck_scratch_dir *s) { return s->path; }

void ck_scratch_dir_free(ck_scratch_dir *s) {
    if (!s) return;
    if (s->path[0]) remove_all(AT_FDCWD, s->path, 0);
    if (s->lock >= 0) (void)close(s->lock);
    ck_free(s->mem, s, sizeof *s);
}
