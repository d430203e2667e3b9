#include "gate_fs.h"

/* The file calls get no file system, so what stands behind them is kept here. */
static gate *the_gate;

static ck_fs *inner(void) { return ck_simfs_base(the_gate->disk); }
static ck_status dead(ck_error *err) { return ck_fail(err, CK_CANCELLED, "the process is dead"); }

/* Asked before a call that changes something: CK_OK lets it through, *last says that it is the process's last. */
static ck_status enter(bool *last, ck_error *err) {
    gate *g = the_gate;
    *last = false;
    if (atomic_load(&g->faults->crashed)) return dead(err);
    *last = ++g->calls == g->crash_at;
    if (!*last || g->death != GATE_BEFORE) return CK_OK;
    atomic_store(&g->faults->crashed, true);
    return dead(err);
}

/* Before a write or fsync of the process itself: the disk fails just this one. */
static void arm_disk(void) {
    gate *g = the_gate;
    uint64_t n = ++g->syncs;
    if (g->fail_at && (n == g->fail_at || (g->lasting && n > g->fail_at))) ck_simfs_fail(g->disk, 1, g->errnum, true);
}
static ck_status disarm_disk(ck_status s) {
    ck_simfs_fail(the_gate->disk, 0, 0, false);
    return s;
}

static ck_status leave(ck_status s, bool last, bool names, ck_error *err) {
    gate *g = the_gate;
    if (s == CK_OK && names && g->renamed) g->renamed(g->renamed_arg);
    if (!last) return s;
    atomic_store(&g->faults->crashed, true);
    return dead(err);
}

#define CHANGE(call)                                                                                                   \
    bool last;                                                                                                         \
    (void)fs;                                                                                                          \
    CK_TRY(enter(&last, err));                                                                                         \
    return leave(call, last, true, err)

static ck_status gate_open(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    if (mode == CK_OPEN_READ)
        return atomic_load(&the_gate->faults->crashed) ? dead(err) : inner()->open(inner(), path, mode, out, err);
    CHANGE(inner()->open(inner(), path, mode, out, err));
}
static ck_status gate_pread(ck_file *f, void *p, size_t n, uint64_t offset, size_t *got, ck_error *err) {
    return inner()->pread(f, p, n, offset, got, err);
}
static ck_status gate_read(ck_file *f, void *p, size_t n, size_t *got, ck_error *err) {
    return inner()->read(f, p, n, got, err);
}
static ck_status gate_write(ck_file *f, const void *p, size_t n, ck_error *err) {
    bool last;
    CK_TRY(enter(&last, err));
    size_t some = last && the_gate->death == GATE_HALF ? n / 2 : n;
    arm_disk();
    return leave(disarm_disk(inner()->write(f, p, some, err)), last, false, err);
}
static ck_status gate_fsync(ck_file *f, ck_error *err) {
    bool last;
    CK_TRY(enter(&last, err));
    arm_disk();
    return leave(disarm_disk(inner()->fsync(f, err)), last, false, err);
}
static ck_status gate_fstat(ck_file *f, ck_stat *out, ck_error *err) { return inner()->fstat(f, out, err); }
static void gate_close(ck_file *f) { inner()->close(f); }
static ck_status gate_stat(ck_fs *fs, const char *path, ck_stat *out, ck_error *err) {
    (void)fs;
    return inner()->stat(inner(), path, out, err);
}
static ck_status gate_link(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    CHANGE(inner()->link(inner(), from, to, err));
}
static ck_status gate_rename(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    CHANGE(inner()->rename(inner(), from, to, err));
}
static ck_status gate_rename_noreplace(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    CHANGE(inner()->rename_noreplace(inner(), from, to, err));
}
static ck_status gate_unlink(ck_fs *fs, const char *path, ck_error *err) {
    CHANGE(inner()->unlink(inner(), path, err));
}
static ck_status gate_mkdir(ck_fs *fs, const char *path, ck_error *err) { CHANGE(inner()->mkdir(inner(), path, err)); }
static ck_status gate_rmdir(ck_fs *fs, const char *path, ck_error *err) { CHANGE(inner()->rmdir(inner(), path, err)); }
static ck_status gate_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    bool last;
    (void)fs;
    CK_TRY(enter(&last, err));
    arm_disk();
    return leave(disarm_disk(inner()->fsync_dir(inner(), path, err)), last, false, err);
}
static ck_status gate_list(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count,
                           ck_error *err) {
    (void)fs;
    return inner()->list(inner(), path, arena, names, count, err);
}
static ck_status gate_lock(ck_file *f, ck_error *err) {
    if (atomic_load(&the_gate->faults->crashed)) return dead(err);
    return inner()->lock(f, err);
}

ck_fs *gate_fs(gate *g) {
    static const ck_fs table = {
        .open = gate_open,
        .pread = gate_pread,
        .read = gate_read,
        .write = gate_write,
        .fsync = gate_fsync,
        .fstat = gate_fstat,
        .close = gate_close,
        .stat = gate_stat,
        .link = gate_link,
        .rename = gate_rename,
        .rename_noreplace = gate_rename_noreplace,
        .unlink = gate_unlink,
        .mkdir = gate_mkdir,
        .rmdir = gate_rmdir,
        .fsync_dir = gate_fsync_dir,
        .list = gate_list,
        .lock = gate_lock,
    };
    the_gate = g;
    return (ck_fs *)(uintptr_t)&table; /* only read */
}
