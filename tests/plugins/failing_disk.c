/* LD_PRELOAD: a disk that fails. Calls that write or make something durable under the folder CLINK_DISK are counted, in
 * whatever library they are made; CLINK_DISK_FAILS=N:ERRNO fails the N-th of them, N:ERRNO:lasting that and all behind
 * it. CLINK_DISK_COUNT names a file, elsewhere, that the count is written into at exit. While the file that CLINK_DISK_FULL
 * names is there, all of them fail with ENOSPC; while that of CLINK_DISK_SLOW is, each takes 20 ms. Processes that are
 * spawned have this disk, too, whatever environment they are given. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned long count;

__attribute__((destructor)) static void tell(void) {
    const char *to = getenv("CLINK_DISK_COUNT");
    char text[32];
    if (!to) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int n = snprintf(text, sizeof text, "%lu\n", atomic_load(&count));
    if (fd >= 0) syscall(SYS_write, fd, text, n), syscall(SYS_close, fd);
}

static int under(const char *path) {
    const char *folder = getenv("CLINK_DISK");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int of_file(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return under(path);
}

static int is_there(const char *variable) {
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}

/* Whether this call fails, with errno set. mine: it is one of those that count. */
static int fails(int mine) {
    const char *spec = getenv("CLINK_DISK_FAILS");
    unsigned long n = 0;
    int code = EIO, lasting = 0;
    const struct timespec slow = {.tv_nsec = 20000000};
    if (!mine) return 0;
    if (is_there("CLINK_DISK_SLOW")) nanosleep(&slow, NULL);
    if (is_there("CLINK_DISK_FULL")) {
        errno = ENOSPC;
        return 1;
    }
    unsigned long now = atomic_fetch_add(&count, 1) + 1;
    if (!spec || sscanf(spec, "%lu:%d", &n, &code) != 2) return 0;
    lasting = strstr(spec, ":lasting") != NULL;
    if (now != n && !(lasting && now > n)) return 0;
    errno = code;
    return 1;
}

#define CALL(mine, type, ...) return fails(mine) ? -1 : (type)syscall(__VA_ARGS__)

ssize_t write(int fd, const void *p, size_t n) { CALL(of_file(fd), ssize_t, SYS_write, fd, p, n); }
ssize_t pwrite(int fd, const void *p, size_t n, off_t at) { CALL(of_file(fd), ssize_t, SYS_pwrite64, fd, p, n, at); }
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at) { CALL(of_file(fd), ssize_t, SYS_pwrite64, fd, p, n, at); }
int fsync(int fd) { CALL(of_file(fd), int, SYS_fsync, fd); }
int fdatasync(int fd) { CALL(of_file(fd), int, SYS_fdatasync, fd); }
int ftruncate(int fd, off_t n) { CALL(of_file(fd), int, SYS_ftruncate, fd, n); }
int fallocate(int fd, int how, off_t at, off_t n) { CALL(of_file(fd), int, SYS_fallocate, fd, how, at, n); }
int rename(const char *from, const char *to) { CALL(under(to), int, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); }
int link(const char *from, const char *to) { CALL(under(to), int, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0); }
int mkdir(const char *path, mode_t mode) { CALL(under(path), int, SYS_mkdirat, AT_FDCWD, path, mode); }
int renameat2(int d, const char *from, int e, const char *to, unsigned how) { CALL(under(to), int, SYS_renameat2, d, from, e, to, how); }

static int open_one(int dir, const char *path, int how, mode_t mode) {
    CALL((how & O_CREAT || (how & O_TMPFILE) == O_TMPFILE) && under(path), int, SYS_openat, dir, path, how, mode);
}
#define OPEN(dir)                                                                              \
    va_list a;                                                                                 \
    va_start(a, how);                                                                          \
    mode_t mode = how & O_CREAT || (how & O_TMPFILE) == O_TMPFILE ? va_arg(a, mode_t) : 0;     \
    va_end(a);                                                                                 \
    return open_one(dir, path, how, mode)

int open(const char *path, int how, ...) { OPEN(AT_FDCWD); }
int open64(const char *path, int how, ...) { OPEN(AT_FDCWD); }
int openat(int dir, const char *path, int how, ...) { OPEN(dir); }
int openat64(int dir, const char *path, int how, ...) { OPEN(dir); }

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files, const posix_spawnattr_t *how, char *const argv[],
                char *const given[]) {
    __typeof__(&posix_spawn) real = (__typeof__(&posix_spawn))dlsym(RTLD_NEXT, "posix_spawn");
    const char *disk = getenv("LD_PRELOAD");
    char preload[4096];
    size_t n = 0;
    while (given[n]) n++;
    char **all = calloc(n + 2, sizeof *all);
    if (!all || !disk) return ENOMEM;
    memcpy(all, given, n * sizeof *all);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", disk);
    all[n] = preload;
    int rc = real(pid, path, files, how, argv, all);
    free(all);
    return rc;
}
