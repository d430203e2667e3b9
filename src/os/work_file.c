/* See work_file.h. */
#include "os/work_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALIGNMENT = 2 << 20, OS_PAGE = 4096 };

struct ck_work_file {
    ck_mem mem;
    int fd;
    uint8_t *raw, *base; /* as mapped; aligned */
    size_t raw_bytes, max, bytes;
    char *dir;
};

static ck_status said_no(const char *dir, const char *what, ck_error *err) {
    int e = errno;
    if (e == EOPNOTSUPP || e == ENOSYS)
        return ck_fail(err, CK_REFUSED, "%s: this file system cannot %s a file of working memory", dir, what);
    return ck_fail(err, CK_IO, "%s: could not %s a file of working memory: %s", dir, what, strerror(e));
}

/* Without a name from the start where the file system can do that. */
static int open_unnamed(ck_mem mem, const char *dir) {
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
    size_t n = strlen(dir) + sizeof "/.clink-work-XXXXXX";
    char *path = ck_alloc(mem, n);
    if (!path) {
        errno = ENOMEM;
        return -1;
    }
    (void)snprintf(path, n, "%s/.clink-work-XXXXXX", dir);
    fd = mkostemp(path, O_CLOEXEC);
    int e = errno;
    if (fd >= 0) (void)unlink(path); /* a name left behind would be all that is wrong */
    ck_free(mem, path, n);
    errno = e;
    return fd;
}

/* All of it at once, while the file is empty: what is past its end is not touched. */
static ck_status map(ck_work_file *f, ck_error *err) {
    f->raw_bytes = f->max + ALIGNMENT;
    void *m = mmap(NULL, f->raw_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) return said_no(f->dir, "find addresses for", err);
    f->raw = m;
    f->base = f->raw + ((ALIGNMENT - ((uintptr_t)f->raw & (ALIGNMENT - 1))) & (ALIGNMENT - 1));
    if (mmap(f->base, f->max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, f->fd, 0) == MAP_FAILED)
        return said_no(f->dir, "map", err);
    return CK_OK;
}

static ck_status open_in(ck_work_file *f, const char *dir, ck_error *err) {
    size_t n = strlen(dir) + 1;
    f->dir = ck_alloc(f->mem, n);
    if (!f->dir) return ck_nomem(err, f->mem, n);
    memcpy(f->dir, dir, n);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) return said_no(dir, "make the folder of", err);
    f->fd = open_unnamed(f->mem, dir);
    return f->fd < 0 ? said_no(dir, "make", err) : map(f, err);
}

ck_status ck_work_file_new(ck_mem mem, const char *dir, size_t max_bytes, ck_work_file **out, ck_error *err) {
    ck_work_file *f = ck_alloc_zero(mem, sizeof *f);
    if (!f) return ck_nomem(err, mem, sizeof *f);
    *f = (ck_work_file){.mem = mem, .fd = -1, .max = max_bytes / OS_PAGE * OS_PAGE};
    ck_status s = open_in(f, dir, err);
    if (s != CK_OK) {
        ck_work_file_free(f);
        return s;
    }
    *out = f;
    return CK_OK;
}

void ck_work_file_free(ck_work_file *f) {
    if (!f) return;
    if (f->raw) (void)munmap(f->raw, f->raw_bytes);
    if (f->fd >= 0) (void)close(f->fd); /* nothing in it matters any more */
    if (f->dir) ck_free(f->mem, f->dir, strlen(f->dir) + 1);
    ck_free(f->mem, f, sizeof *f);
}

uint8_t *ck_work_file_base(const ck_work_file *f) { return f->base; }
size_t ck_work_file_bytes(const ck_work_file *f) { return f->bytes; }

ck_status ck_work_file_grow(ck_work_file *f, size_t more, ck_error *err) {
    CK_ASSERT(more > 0 && more % OS_PAGE == 0);
    if (more > f->max - f->bytes)
        return ck_fail(err, CK_FULL, "%s: working memory of %zu bytes in one file is the most", f->dir, f->max);
    int e;
    do e = posix_fallocate(f->fd, (off_t)f->bytes, (off_t)more);
    while (e == EINTR);
    if (e) {
        errno = e;
        return said_no(f->dir, "reserve space for", err);
    }
    f->bytes += more;
    return CK_OK;
}

void ck_work_file_write_back(ck_work_file *f, size_t from, size_t bytes) {
    CK_ASSERT(from <= f->bytes && bytes <= f->bytes - from);
    if (bytes) (void)sync_file_range(f->fd, (off_t)from, (off_t)bytes, SYNC_FILE_RANGE_WRITE); /* advice */
}

void ck_work_file_page_out(ck_work_file *f, size_t from, size_t bytes) {
    CK_ASSERT(from <= f->bytes && bytes <= f->bytes - from);
#ifdef MADV_PAGEOUT
    if (bytes) (void)madvise(f->base + from, bytes, MADV_PAGEOUT); /* advice */
#endif
}
