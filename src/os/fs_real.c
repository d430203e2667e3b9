/* The table of fs.h over the system's calls. Stateless: an open file is all there is. Every descriptor is
 * close-on-exec; what is created is for its owner alone, unless it is to be shared. */
#include "os/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct real_file {
    ck_file base;
    int fd;
    char path[]; /* for messages */
} real_file;

static ck_status refuse_kind(const char *path, const char *kind, ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "opening %s: it is %s, and a file is expected there", path, kind);
}

/* Opening a pipe would wait for its writer, so it is opened without waiting and looked at. Of a file that changes
 * nothing. */
static ck_status check_kind(const real_file *f, ck_error *err) {
    struct stat st;
    if (fstat(f->fd, &st) != 0) return ck_fail_errno(err, errno, "looking at %s", f->path);
    if (S_ISREG(st.st_mode)) return CK_OK;
    return refuse_kind(f->path,
                       S_ISFIFO(st.st_mode)  ? "a pipe"
                       : S_ISDIR(st.st_mode) ? "a directory"
                                             : "a device or a socket",
                       err);
}

static ck_status real_open(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    static const int flags[] = {
        [CK_OPEN_READ] = O_RDONLY | O_NONBLOCK,
        [CK_OPEN_CREATE] = O_WRONLY | O_CREAT | O_EXCL,
        [CK_OPEN_TRUNCATE] = O_WRONLY | O_CREAT | O_TRUNC,
        [CK_OPEN_READWRITE] = O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK,
        [CK_OPEN_CREATE_SHARED] = O_WRONLY | O_CREAT | O_EXCL,
        [CK_OPEN_READ_ANY] = O_RDONLY,
    };
    mode_t access = mode == CK_OPEN_CREATE_SHARED ? 0666 : 0600;
    *out = NULL;
    size_t path_bytes = strlen(path) + 1;
    real_file *f = malloc(sizeof *f + path_bytes);
    if (!f) return ck_fail(err, CK_NOMEM, "opening %s: out of memory", path);
    f->base.fs = fs;
    memcpy(f->path, path, path_bytes);
    do f->fd = open(path, flags[mode] | O_CLOEXEC | O_NOCTTY, access);
    while (f->fd < 0 && errno == EINTR);
    ck_status s = f->fd >= 0       ? CK_OK
                  : errno == ENXIO ? refuse_kind(path, "a device or a socket", err) /* with nobody behind it */
                                   : ck_fail_errno(err, errno, "opening %s", path);
    if (s == CK_OK && (mode == CK_OPEN_READ || mode == CK_OPEN_READWRITE)) s = check_kind(f, err);
    if (s != CK_OK) {
        if (f->fd >= 0) close(f->fd);
        free(f);
        return s;
    }
    *out = &f->base;
    return CK_OK;
}

static ck_status real_pread(ck_file *file, void *p, size_t n, uint64_t offset, size_t *got, ck_error *err) {
    real_file *f = (real_file *)file;
    *got = 0;
    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return ck_fail(err, CK_INVALID, "reading %s: no offset %llu", f->path, (unsigned long long)offset);
    while (*got < n) {
        ssize_t r = pread(f->fd, (char *)p + *got, n - *got, (off_t)(offset + *got));
        if (r == 0) break;
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return ck_fail_errno(err, errno, "reading %s at %llu", f->path, (unsigned long long)offset + *got);
        *got += (size_t)r;
    }
    return CK_OK;
}

/* Whatever else goes wrong is for the read that may wait to say. The kernel may stop early where nothing is missing. */
static ck_status real_pread_cached(ck_file *file, void *p, size_t n, uint64_t offset) {
    real_file *f = (real_file *)file;
    if (offset > INT64_MAX || n > INT64_MAX - offset) return CK_AGAIN;
    for (size_t done = 0; done < n;) {
        struct iovec rest = {(char *)p + done, n - done};
        ssize_t r = preadv2(f->fd, &rest, 1, (off_t)(offset + done), RWF_NOWAIT);
        if (r <= 0) return CK_AGAIN;
        done += (size_t)r;
    }
    return CK_OK;
}

static ck_status real_read(ck_file *file, void *p, size_t n, size_t *got, ck_error *err) {
    real_file *f = (real_file *)file;
    ssize_t r;
    do r = read(f->fd, p, n);
    while (r < 0 && errno == EINTR);
    *got = r < 0 ? 0 : (size_t)r;
    return r < 0 ? ck_fail_errno(err, errno, "reading %s", f->path) : CK_OK;
}

static ck_status real_write(ck_file *file, const void *p, size_t n, ck_error *err) {
    real_file *f = (real_file *)file;
    for (size_t done = 0; done < n;) {
        ssize_t r = write(f->fd, (const char *)p + done, n - done);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return ck_fail_errno(err, errno, "writing %s", f->path);
        done += (size_t)r;
    }
    return CK_OK;
}

static ck_status real_fsync(ck_file *file, ck_error *err) {
    real_file *f = (real_file *)file;
    return fsync(f->fd) == 0 ? CK_OK : ck_fail_errno(err, errno, "syncing %s", f->path);
}

static void real_write_out(ck_file *file, uint64_t offset, uint64_t n) {
    const real_file *f = (const real_file *)file;
    (void)sync_file_range(f->fd, (off64_t)offset, (off64_t)n, SYNC_FILE_RANGE_WRITE);
}

static ck_stat from_system(const struct stat *st) {
    return (ck_stat){
        .bytes = (uint64_t)st->st_size,
        .mtime_us = (int64_t)st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000,
        .inode = st->st_ino,
        .device = st->st_dev,
        .is_dir = S_ISDIR(st->st_mode),
        .is_file = S_ISREG(st->st_mode),
    };
}

static ck_status real_fstat(ck_file *file, ck_stat *out, ck_error *err) {
    real_file *f = (real_file *)file;
    struct stat st;
    if (fstat(f->fd, &st) != 0) return ck_fail_errno(err, errno, "looking at %s", f->path);
    *out = from_system(&st);
    return CK_OK;
}

static void real_close(ck_file *file) {
    if (!file) return;
    real_file *f = (real_file *)file;
    close(f->fd); /* errors that matter were told by fsync; the descriptor is gone either way */
    free(f);
}

/* A path that goes through a plain file names nothing. */
static int absent_is_enoent(int errnum) { return errnum == ENOTDIR ? ENOENT : errnum; }

static ck_status real_stat(ck_fs *fs, const char *path, ck_stat *out, ck_error *err) {
    (void)fs;
    struct stat st;
    if (stat(path, &st) != 0) return ck_fail_errno(err, absent_is_enoent(errno), "looking at %s", path);
    *out = from_system(&st);
    return CK_OK;
}

static bool has_no_links(int errnum) {
    return errnum == EPERM || errnum == ENOTSUP || errnum == ENOSYS || errnum == EINVAL;
}

static ck_status real_link(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    (void)fs;
    if (link(from, to) == 0) return CK_OK;
    if (has_no_links(errno))
        return ck_fail(err, CK_REFUSED, "linking %s to %s: hard links do not work in this directory", from, to);
    return ck_fail_errno(err, errno, "linking %s to %s", from, to);
}

static ck_status real_rename(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    (void)fs;
    return rename(from, to) == 0 ? CK_OK : ck_fail_errno(err, errno, "renaming %s to %s", from, to);
}

static ck_status real_unlink(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    if (unlink(path) == 0) return CK_OK;
    if (errno == EISDIR) return ck_fail(err, CK_INVALID, "removing %s: is a directory", path);
    return ck_fail_errno(err, errno, "removing %s", path);
}

static ck_status real_rename_noreplace(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return CK_OK;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return ck_fail_errno(err, errno, "renaming %s to %s", from, to);
    ck_status s = real_link(fs, from, to, err);
    if (s == CK_REFUSED)
        return ck_fail(
            err, CK_REFUSED,
            "%s cannot be created exclusively: its file system knows neither RENAME_NOREPLACE nor hard links; "
            "use a directory on another one",
            to);
    return s == CK_OK ? real_unlink(fs, from, err) : s;
}

static ck_status real_mkdir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    return mkdir(path, 0700) == 0 ? CK_OK : ck_fail_errno(err, errno, "creating directory %s", path);
}

static ck_status real_mkdir_shared(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    return mkdir(path, 0777) == 0 ? CK_OK : ck_fail_errno(err, errno, "creating directory %s", path);
}

static ck_status real_rmdir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    return rmdir(path) == 0 ? CK_OK : ck_fail_errno(err, errno, "removing directory %s", path);
}

static ck_status real_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return ck_fail(err, CK_REFUSED, "syncing directory %s: it may not be read, and so not be synced", path);
    if (fd < 0) return ck_fail_errno(err, errno, "syncing directory %s", path);
    int errnum = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (errnum == EINVAL || errnum == ENOTSUP)
        return ck_fail(err, CK_REFUSED, "syncing directory %s: its file system cannot make names durable", path);
    return errnum == 0 ? CK_OK : ck_fail_errno(err, errnum, "syncing directory %s", path);
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The names of an open directory, in a growing array that stays in the arena. */
static ck_status read_names(DIR *d, const char *path, ck_arena *arena, const char ***names, size_t *count,
                            ck_error *err) {
    size_t capacity = 0;
    *names = NULL;
    *count = 0;
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e && errno != 0) return ck_fail_errno(err, errno, "listing %s", path);
        if (!e) return CK_OK;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            const char **grown = ck_arena_array(arena, capacity, sizeof *grown);
            if (!grown) return ck_fail(err, CK_NOMEM, "listing %s: no memory for over %zu names", path, *count);
            if (*count) memcpy(grown, *names, *count * sizeof *grown);
            *names = grown;
        }
        const char *name = ck_arena_strdup(arena, e->d_name);
        if (!name) return ck_fail(err, CK_NOMEM, "listing %s: no memory for over %zu names", path, *count);
        (*names)[(*count)++] = name;
    }
}

static ck_status real_list(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count,
                           ck_error *err) {
    (void)fs;
    DIR *d = opendir(path); /* close-on-exec */
    if (!d) return ck_fail_errno(err, absent_is_enoent(errno), "listing %s", path);
    ck_status s = read_names(d, path, arena, names, count, err);
    closedir(d);
    if (s == CK_OK && *count) qsort(*names, *count, sizeof **names, by_bytes);
    return s;
}

static ck_status real_lock(ck_file *file, ck_error *err) {
    real_file *f = (real_file *)file;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(f->fd, F_OFD_SETLK, &whole) == 0) return CK_OK;
    if (errno == EAGAIN || errno == EACCES) return ck_fail(err, CK_EXISTS, "%s is locked by another process", f->path);
    return ck_fail_errno(err, errno, "locking %s", f->path);
}

ck_fs *ck_fs_system(void) {
    static const ck_fs system_fs = {
        .open = real_open,
        .pread = real_pread,
        .pread_cached = real_pread_cached,
        .read = real_read,
        .write = real_write,
        .fsync = real_fsync,
        .fstat = real_fstat,
        .close = real_close,
        .stat = real_stat,
        .link = real_link,
        .rename = real_rename,
        .rename_noreplace = real_rename_noreplace,
        .unlink = real_unlink,
        .mkdir = real_mkdir,
        .mkdir_shared = real_mkdir_shared,
        .rmdir = real_rmdir,
        .fsync_dir = real_fsync_dir,
        .list = real_list,
        .lock = real_lock,
        .write_out = real_write_out,
    };
    return (ck_fs *)(uintptr_t)&system_fs; /* stateless: nobody writes through it */
}
