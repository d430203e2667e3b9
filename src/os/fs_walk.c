/* What needs several calls of the table: directories with their parents, whole files, whole trees. */
#include "os/fs.h"

#include <limits.h>
#include <string.h>

static ck_status copy_path(char out[PATH_MAX], const char *path, ck_error *err) {
    size_t n = strlen(path);
    if (n == 0) return ck_fail(err, CK_INVALID, "a path is empty");
    if (n >= PATH_MAX) return ck_fail(err, CK_INVALID, "a path of %zu bytes is longer than %d", n, PATH_MAX - 1);
    while (n > 1 && path[n - 1] == '/') n--;
    memcpy(out, path, n);
    out[n] = 0;
    return CK_OK;
}

/* The length of the path of the parent of path[0..n): 0 when it is the working directory, n when path is the root. */
static size_t parent_length(const char *path, size_t n) {
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    return n;
}

static ck_status fsync_parent(ck_fs *fs, char *path, ck_error *err) {
    size_t n = strlen(path), parent = parent_length(path, n);
    if (parent == n) return CK_OK;
    if (parent == 0) return fs->fsync_dir(fs, ".", err);
    char kept = path[parent];
    path[parent] = 0;
    ck_status s = fs->fsync_dir(fs, path, err);
    path[parent] = kept;
    return s;
}

/* The deepest directory that was there already: whoever made it may have been killed before syncing its name. One that
 * stands in a directory we may not read is not of our making. */
static ck_status sync_found(ck_fs *fs, char *path, ck_error *err) {
    ck_stat st;
    CK_TRY(fs->stat(fs, path, &st, err));
    if (!st.is_dir) return ck_fail(err, CK_IO, "%s is not a directory", path);
    ck_status s = fsync_parent(fs, path, err);
    if (s == CK_REFUSED) ck_error_reset(err);
    return s == CK_REFUSED ? CK_OK : s;
}

static ck_status make_one(ck_fs *fs, char *path, bool shared, ck_error *err) {
    ck_status s = shared && fs->mkdir_shared ? fs->mkdir_shared(fs, path, err) : fs->mkdir(fs, path, err);
    if (s == CK_EXISTS) return sync_found(fs, path, err); /* somebody else was faster */
    if (s == CK_OK) {
        s = fsync_parent(fs, path, err);
        /* Not to be found by the next call, which would take it for durable. */
        if (s != CK_OK && fs->rmdir(fs, path, NULL) != CK_OK) ck_error_prefix(err, "(%s is left behind) ", path);
    }
    return s;
}

static ck_status make_all(ck_proc *proc, const char *path, bool shared, ck_error *err) {
    ck_fs *fs = proc->fs;
    char at[PATH_MAX];
    CK_TRY(copy_path(at, path, err));
    size_t whole = strlen(at), n = whole;
    for (;;) { /* up to the deepest that exists, cutting `at` at each slash */
        ck_status s = sync_found(fs, at, err);
        if (s == CK_OK) break;
        if (s != CK_NOTFOUND) return s;
        size_t parent = parent_length(at, n);
        n = parent == n ? 0 : parent;
        if (n == 0) break; /* not even the first component exists */
        at[n] = 0;
    }
    while (n < whole) { /* and down again, putting back what was cut */
        at[n] = path[n];
        n += strlen(at + n);
        CK_TRY(make_one(fs, at, shared, err));
    }
    return CK_OK;
}

ck_status ck_fs_mkdirs(ck_proc *proc, const char *path, ck_error *err) { return make_all(proc, path, false, err); }
ck_status ck_fs_mkdirs_shared(ck_proc *proc, const char *path, ck_error *err) {
    return make_all(proc, path, true, err);
}

/* ---- whole files ---- */

static ck_status read_open_file(ck_file *f, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out,
                                ck_error *err) {
    ck_stat st;
    CK_TRY(f->fs->fstat(f, &st, err));
    if (st.is_dir) return ck_fail(err, CK_IO, "reading %s: is a directory", path);
    if (st.bytes > bytes_max)
        return ck_fail(err, CK_FULL, "reading %s: %llu bytes are more than %zu", path, (unsigned long long)st.bytes,
                       bytes_max);
    size_t capacity = st.bytes > 0 ? (size_t)st.bytes : 4096, n = 0; /* pipes and /proc say 0 */
    if (capacity > bytes_max) capacity = bytes_max;
    char *p = ck_arena_alloc(arena, capacity + 1); /* one more: the NUL, and to see that the end is the end */
    while (p) {
        size_t got;
        CK_TRY(f->fs->read(f, p + n, capacity + 1 - n, &got, err));
        n += got;
        if (got == 0) {
            p[n] = 0;
            *out = (ck_view){p, n};
            return CK_OK;
        }
        if (n <= capacity) continue;
        if (capacity == bytes_max) return ck_fail(err, CK_FULL, "reading %s: over %zu bytes", path, bytes_max);
        size_t grown_capacity = capacity < bytes_max / 2 ? capacity * 2 : bytes_max;
        char *grown = ck_arena_alloc(arena, grown_capacity + 1);
        if (grown) memcpy(grown, p, n);
        p = grown, capacity = grown_capacity;
    }
    return ck_fail(err, CK_NOMEM, "reading %s: no memory for its content", path);
}

ck_status ck_fs_read_all(ck_proc *proc, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out,
                         ck_error *err) {
    return ck_fs_read_file(proc->fs, path, bytes_max, arena, out, err);
}

static ck_status read_path(ck_fs *fs, const char *path, ck_open_mode mode, size_t bytes_max, ck_arena *arena,
                           ck_view *out, ck_error *err) {
    *out = (ck_view){0};
    if (bytes_max == SIZE_MAX) bytes_max--;
    ck_file *f;
    CK_TRY(fs->open(fs, path, mode, &f, err));
    ck_status s = read_open_file(f, path, bytes_max, arena, out, err);
    fs->close(f);
    return s;
}

ck_status ck_fs_read_file(ck_fs *fs, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out, ck_error *err) {
    return read_path(fs, path, CK_OPEN_READ, bytes_max, arena, out, err);
}

ck_status ck_fs_read_any(ck_proc *proc, const char *path, size_t bytes_max, ck_arena *arena, ck_view *out,
                         ck_error *err) {
    return read_path(proc->fs, path, CK_OPEN_READ_ANY, bytes_max, arena, out, err);
}

/* ---- whole trees ---- */

enum { TREE_DEPTH_MAX = 128, LISTING_BYTES_MAX = 256 << 20 };

/* unlink comes first and tells a directory by CK_INVALID: stat would follow a link out of the tree. */
static ck_status remove_at(ck_fs *fs, const char *path, unsigned depth, ck_arena *arena, ck_error *err) {
    ck_status s = fs->unlink(fs, path, err);
    if (s == CK_OK || s == CK_NOTFOUND) return CK_OK;
    if (s != CK_INVALID) return s;
    if (depth == TREE_DEPTH_MAX)
        return ck_fail(err, CK_FULL, "removing %s: over %d directories deep", path, TREE_DEPTH_MAX);
    ck_arena_mark mark = ck_arena_mark_now(arena);
    const char **names;
    size_t count;
    s = fs->list(fs, path, arena, &names, &count, err);
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        ck_arena_mark one = ck_arena_mark_now(arena);
        char *child = ck_arena_printf(arena, "%s/%s", path, names[i]);
        s = child ? remove_at(fs, child, depth + 1, arena, err)
                  : ck_fail(err, CK_NOMEM, "removing %s: out of memory", path);
        ck_arena_reset_to(arena, one);
    }
    ck_arena_reset_to(arena, mark);
    if (s == CK_OK) s = fs->rmdir(fs, path, err);
    return s == CK_NOTFOUND ? CK_OK : s;
}

ck_status ck_fs_remove_tree(ck_proc *proc, const char *path, ck_error *err) {
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(proc, CK_MEM_PLAN), LISTING_BYTES_MAX);
    ck_error local = CK_ERROR_INIT;
    ck_status s = remove_at(proc->fs, path, 0, &arena, &local);
    if (s != CK_OK && err) *err = local;
    ck_arena_destroy(&arena);
    return s;
}
