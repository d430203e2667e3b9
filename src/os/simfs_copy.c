/* Copies between the real file system and a simulated one, through both tables. */
#include <stdlib.h>

#include "os/simfs.h"

enum { COPY_BUFFER_BYTES = 64 * 1024, COPY_DEPTH_MAX = 128, LISTING_BYTES_MAX = 64 << 20 };

static ck_status copy_open(ck_file *from, ck_file *to, ck_error *err) {
    char *buffer = malloc(COPY_BUFFER_BYTES);
    if (!buffer) return ck_fail(err, CK_NOMEM, "copying a file: out of memory");
    ck_status s = CK_OK;
    for (size_t got = 1; s == CK_OK && got > 0;) {
        s = from->fs->read(from, buffer, COPY_BUFFER_BYTES, &got, err);
        if (s == CK_OK) s = to->fs->write(to, buffer, got, err);
    }
    free(buffer);
    return s == CK_OK ? to->fs->fsync(to, err) : s;
}

static ck_status copy_file(ck_fs *from_fs, const char *from, ck_fs *to_fs, const char *to, ck_error *err) {
    ck_file *a = NULL, *b = NULL;
    ck_status s = from_fs->open(from_fs, from, CK_OPEN_READ, &a, err);
    if (s == CK_OK) s = to_fs->open(to_fs, to, CK_OPEN_TRUNCATE, &b, err);
    if (s == CK_OK) s = copy_open(a, b, err);
    to_fs->close(b);
    from_fs->close(a);
    return s;
}

static ck_status copy_tree(ck_fs *from_fs, const char *from, ck_fs *to_fs, const char *to, unsigned depth,
                           ck_arena *arena, ck_error *err) {
    ck_stat st;
    CK_TRY(from_fs->stat(from_fs, from, &st, err));
    if (!st.is_dir) return copy_file(from_fs, from, to_fs, to, err);
    if (depth == COPY_DEPTH_MAX)
        return ck_fail(err, CK_FULL, "copying %s: over %d directories deep", from, COPY_DEPTH_MAX);
    ck_status s = to_fs->mkdir(to_fs, to, err);
    if (s != CK_OK && s != CK_EXISTS) return s;
    const char **names;
    size_t count;
    s = from_fs->list(from_fs, from, arena, &names, &count, err);
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        ck_arena_mark mark = ck_arena_mark_now(arena);
        const char *a = ck_arena_printf(arena, "%s/%s", from, names[i]);
        const char *b = ck_arena_printf(arena, "%s/%s", to, names[i]);
        s = a && b ? copy_tree(from_fs, a, to_fs, b, depth + 1, arena, err)
                   : ck_fail(err, CK_NOMEM, "copying %s: out of memory", from);
        ck_arena_reset_to(arena, mark);
    }
    return s == CK_OK ? to_fs->fsync_dir(to_fs, to, err) : s;
}

static ck_status copy(ck_proc *proc, ck_fs *from_fs, const char *from, const char *to, ck_error *err) {
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(proc, CK_MEM_PLAN), LISTING_BYTES_MAX);
    ck_error local = CK_ERROR_INIT; /* a directory that was there is no error of the caller's */
    ck_status s = copy_tree(from_fs, from, proc->fs, to, 0, &arena, &local);
    if (s != CK_OK && err) *err = local;
    ck_arena_destroy(&arena);
    return s;
}

/* Directories above `path`, and a proc of no process: its memory is malloc's, as all of the simulated disk's. */
static ck_status copy_under(ck_fs *from_fs, const char *from, ck_fs *to_fs, const char *to, ck_error *err) {
    ck_proc proc = {.heap = ck_heap_system(), .fs = to_fs};
    ck_budget_init(&proc.budget, proc.heap, 0);
    const char *slash = strrchr(to, '/');
    if (slash && slash != to) {
        char *parent = strndup(to, (size_t)(slash - to));
        if (!parent) return ck_fail(err, CK_NOMEM, "copying %s: out of memory", from);
        ck_status s = ck_fs_mkdirs(&proc, parent, err);
        free(parent);
        if (s != CK_OK) return s;
    }
    CK_TRY(copy(&proc, from_fs, from, to, err));
    char *dir = slash && slash != to ? strndup(to, (size_t)(slash - to)) : strdup(slash ? "/" : ".");
    if (!dir) return ck_fail(err, CK_NOMEM, "copying %s: out of memory", from);
    ck_status s = to_fs->fsync_dir(to_fs, dir, err);
    free(dir);
    return s;
}

ck_status ck_simfs_import(ck_simfs *s, const char *real_path, const char *path, ck_error *err) {
    return copy_under(ck_fs_system(), real_path, ck_simfs_base(s), path, err);
}

ck_status ck_simfs_export_tree(ck_simfs *s, const char *path, const char *real_dir, ck_error *err) {
    return copy_under(ck_simfs_base(s), path, ck_fs_system(), real_dir, err);
}
