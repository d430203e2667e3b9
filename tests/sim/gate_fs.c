#include "gate_fs.h"

/* The file calls get no file system, so what stands behind them is kept here. */
static ck_fs *inner_fs;
static ck_faults *inner_faults;

static ck_status dead(ck_error *err) {
    if (!atomic_load(&inner_faults->crashed)) return CK_OK;
    return ck_fail(err, CK_CANCELLED, "the process is dead");
}

static ck_status gate_open(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->open(inner_fs, path, mode, out, err);
}
static ck_status gate_pread(ck_file *f, void *p, size_t n, uint64_t offset, size_t *got, ck_error *err) {
    return inner_fs->pread(f, p, n, offset, got, err);
}
static ck_status gate_read(ck_file *f, void *p, size_t n, size_t *got, ck_error *err) {
    return inner_fs->read(f, p, n, got, err);
}
static ck_status gate_write(ck_file *f, const void *p, size_t n, ck_error *err) {
    CK_TRY(dead(err));
    return inner_fs->write(f, p, n, err);
}
static ck_status gate_fsync(ck_file *f, ck_error *err) {
    CK_TRY(dead(err));
    return inner_fs->fsync(f, err);
}
static ck_status gate_fstat(ck_file *f, ck_stat *out, ck_error *err) { return inner_fs->fstat(f, out, err); }
static void gate_close(ck_file *f) { inner_fs->close(f); }
static ck_status gate_stat(ck_fs *fs, const char *path, ck_stat *out, ck_error *err) {
    (void)fs;
    return inner_fs->stat(inner_fs, path, out, err);
}
static ck_status gate_link(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->link(inner_fs, from, to, err);
}
static ck_status gate_rename(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->rename(inner_fs, from, to, err);
}
static ck_status gate_rename_noreplace(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->rename_noreplace(inner_fs, from, to, err);
}
static ck_status gate_unlink(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->unlink(inner_fs, path, err);
}
static ck_status gate_mkdir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->mkdir(inner_fs, path, err);
}
static ck_status gate_rmdir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->rmdir(inner_fs, path, err);
}
static ck_status gate_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    (void)fs;
    CK_TRY(dead(err));
    return inner_fs->fsync_dir(inner_fs, path, err);
}
static ck_status gate_list(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count,
                           ck_error *err) {
    (void)fs;
    return inner_fs->list(inner_fs, path, arena, names, count, err);
}
static ck_status gate_lock(ck_file *f, ck_error *err) {
    CK_TRY(dead(err));
    return inner_fs->lock(f, err);
}

ck_fs *gate_fs(ck_fs *inner, ck_faults *faults) {
    static const ck_fs table = {gate_open,
                                gate_pread,
                                gate_read,
                                gate_write,
                                gate_fsync,
                                gate_fstat,
                                gate_close,
                                gate_stat,
                                gate_link,
                                gate_rename,
                                gate_rename_noreplace,
                                gate_unlink,
                                gate_mkdir,
                                gate_rmdir,
                                gate_fsync_dir,
                                gate_list,
                                gate_lock};
    inner_fs = inner;
    inner_faults = faults;
    return (ck_fs *)(uintptr_t)&table; /* only read */
}
