/* The file system behind a table of functions: the real one, and a simulated one that drops what was not synced at a
 * crash. All calls but one may block: the step functions of the runtime never make them, they hand jobs to the I/O
 * executor (os/io.h). Paths are UTF-8 and NUL-terminated. Errors name the path. */
#ifndef CK_OS_FS_H
#define CK_OS_FS_H

#include "base/arena.h"
#include "base/proc.h"

typedef struct ck_file ck_file; /* one open file; thread: one at a time, except pread, which any may call */

typedef enum ck_open_mode {
    CK_OPEN_READ,     /* a file: of a pipe, a device, a socket or a directory CK_CORRUPT, without waiting for anybody */
    CK_OPEN_CREATE,   /* write, must not exist (CK_EXISTS), 0600 */
    CK_OPEN_TRUNCATE, /* write, created or emptied, 0600 */
    CK_OPEN_READWRITE,     /* created when missing, content kept, 0600: lock files. As READ of what is no file */
    CK_OPEN_CREATE_SHARED, /* CREATE, for others to read as far as the umask lets them: output */
    CK_OPEN_READ_ANY,      /* also a pipe or a device, for whose writer it waits: what users feed */
} ck_open_mode;

typedef struct ck_stat {
    uint64_t bytes;
    int64_t mtime_us;
    uint64_t inode, device;
    bool is_dir, is_file; /* neither: pipe, device */
} ck_stat;

typedef struct ck_fs ck_fs;
struct ck_fs {
    ck_status (*open)(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err);
    ck_status (*pread)(ck_file *f, void *p, size_t n, uint64_t offset, size_t *got,
                       ck_error *err); /* got < n only at the end */
    /* As pread when all n bytes are in memory; otherwise CK_AGAIN, without waiting for a disk. The one call a step may
     * make. NULL: this file system cannot say. */
    ck_status (*pread_cached)(ck_file *f, void *p, size_t n, uint64_t offset);
    ck_status (*read)(ck_file *f, void *p, size_t n, size_t *got, ck_error *err); /* pipes: may be short; 0 = end */
    ck_status (*write)(ck_file *f, const void *p, size_t n, ck_error *err);       /* appends all or fails */
    ck_status (*fsync)(ck_file *f, ck_error *err); /* after a failure the file must be discarded and rewritten */
    ck_status (*fstat)(ck_file *f, ck_stat *out, ck_error *err);
    void (*close)(ck_file *f); /* NULL is fine */
    ck_status (*stat)(ck_fs *fs, const char *path, ck_stat *out, ck_error *err);
    ck_status (*link)(ck_fs *fs, const char *from, const char *to, ck_error *err);   /* CK_EXISTS when `to` is taken */
    ck_status (*rename)(ck_fs *fs, const char *from, const char *to, ck_error *err); /* replaces */
    ck_status (*rename_noreplace)(
        ck_fs *fs, const char *from, const char *to,
        ck_error *err); /* CK_EXISTS; falls back to link + unlink; CK_REFUSED when neither works there */
    ck_status (*unlink)(ck_fs *fs, const char *path, ck_error *err);       /* CK_INVALID: it is a directory */
    ck_status (*mkdir)(ck_fs *fs, const char *path, ck_error *err);        /* 0700; CK_EXISTS */
    ck_status (*mkdir_shared)(ck_fs *fs, const char *path, ck_error *err); /* by the umask; NULL: mkdir will do */
    ck_status (*rmdir)(ck_fs *fs, const char *path, ck_error *err);
    ck_status (*fsync_dir)(ck_fs *fs, const char *path,
                           ck_error *err); /* CK_REFUSED: may not be read, or names cannot be made durable there */
    /* Names in a directory without . and .., sorted by bytes, in `arena`. */
    ck_status (*list)(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count, ck_error *err);
    /* Exclusive lock on an open file, held until close: OFD, never stolen. CK_EXISTS when another holds it. */
    ck_status (*lock)(ck_file *f, ck_error *err);
    /* The n bytes from `offset` may go to the disk now: advice, which says nothing of what failed; fsync does. NULL:
     * they go when they go. */
    void (*write_out)(ck_file *f, uint64_t offset, uint64_t n);
};

/* Every ck_file begins with this. */
struct ck_file {
    ck_fs *fs;
};

ck_fs *ck_fs_system(void); /* immutable, shared */

/* ---- what is built from the table ---- */

/* mkdir -p; fsyncs every parent it created an entry in, and that of the deepest directory it found: whoever made that
 * one may have died before syncing it. */
CK_NODISCARD ck_status ck_fs_mkdirs(ck_proc *proc, const char *path, ck_error *err);
/* The same for output, which others may read as far as the umask lets them. */
CK_NODISCARD ck_status ck_fs_mkdirs_shared(ck_proc *proc, const char *path, ck_error *err);
/* The whole file, at most bytes_max (CK_FULL beyond it), in `arena`, with one NUL behind it that is not counted. */
CK_NODISCARD ck_status ck_fs_read_all(ck_proc *proc, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out,
                                      ck_error *err);
CK_NODISCARD ck_status ck_fs_read_file(ck_fs *fs, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out,
                                       ck_error *err);
/* The same of what may be a pipe: it is read to its end. */
CK_NODISCARD ck_status ck_fs_read_any(ck_proc *proc, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out,
                                      ck_error *err);
/* Paths that match a shell pattern (*, ?, [..] in any component, backslash quotes; ** is not special), sorted by bytes.
 * No wildcard: the path itself, whether it exists or not. Hidden names match only a pattern that begins with a dot. */
CK_NODISCARD ck_status ck_fs_glob(ck_proc *proc, const char *pattern, ck_arena *arena, const char ***paths,
                                  size_t *count, ck_error *err);
/* One name against one component's pattern. */
bool ck_fs_match(const char *pattern, const char *name);
/* rm -r; a missing path is fine; links are removed, not followed. */
CK_NODISCARD ck_status ck_fs_remove_tree(ck_proc *proc, const char *path, ck_error *err);

#endif
