#include "cluster/coordinator/records_dir.h"

#include <stdio.h>

#include "os/durable.h"
#include "os/fs.h"

enum { ARENA_BYTES_MAX = 128 << 20 };

typedef struct records_dir {
    ck_records base;
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena; /* of one call */
    ck_arena_mark mark;
    const char *dir;
    ck_file *lock;
} records_dir;

static void forget_call(records_dir *r) { ck_arena_reset_to(&r->arena, r->mark); }

static const char *path_of(records_dir *r, uint64_t number) {
    if (number == 0) return ck_arena_printf(&r->arena, "%s/leader.rec", r->dir);
    return ck_arena_printf(&r->arena, "%s/job-%llu.rec", r->dir, (unsigned long long)number);
}

/* ---- reading ---- */

static ck_status read_record(records_dir *r, const char *path, ck_message *out, ck_error *err) {
    ck_view bytes;
    CK_TRY(ck_fs_read_all(r->proc, path, CK_FRAME_CONTROL_BYTES_MAX + CK_RECORD_HEAD_BYTES, &r->arena, &bytes, err));
    return ck_record_read(bytes, path, &r->arena, out, err);
}

static ck_status last_epoch(records_dir *r, uint64_t *epoch, ck_error *err) {
    ck_message m;
    const char *path = path_of(r, 0);
    ck_stat st;
    *epoch = 1;
    if (!path) return ck_nomem(err, r->mem, 0);
    ck_status s = r->proc->fs->stat(r->proc->fs, path, &st, err);
    if (s == CK_NOTFOUND) return CK_OK;
    if (s == CK_OK) s = read_record(r, path, &m, err);
    return s == CK_OK ? ck_record_next_epoch(&m, path, epoch, err) : s;
}

static ck_status recover(ck_records *base, ck_coordinator *c, ck_error *err) {
    records_dir *r = (records_dir *)base;
    const char **names;
    size_t count;
    ck_status s = r->proc->fs->list(r->proc->fs, r->dir, &r->arena, &names, &count, err);
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        size_t n = strlen(names[i]);
        ck_message m;
        if (names[i][0] == '.' || n < 4 || strcmp(names[i] + n - 4, ".rec") != 0) continue;
        const char *path = ck_arena_printf(&r->arena, "%s/%s", r->dir, names[i]);
        s = path ? read_record(r, path, &m, err) : ck_nomem(err, r->mem, 0);
        if (s == CK_OK && ck_coordinator_recover(c, &m, err) != CK_OK) s = ck_error_prefix(err, "%s: ", path);
    }
    forget_call(r);
    return s;
}

/* ---- writing ---- */

static ck_status keep(ck_records *base, uint64_t number, const ck_frame *f, ck_error *err) {
    records_dir *r = (records_dir *)base;
    ck_tmpfile t = {0};
    uint8_t head[CK_RECORD_HEAD_BYTES];
    ck_record_head(f, head);
    const char *path = path_of(r, number);
    ck_status s = path ? ck_tmpfile_init(&t, r->proc, r->mem, path, err) : ck_nomem(err, r->mem, 0);
    if (s == CK_OK) s = ck_tmpfile_write(&t, head, sizeof head, err);
    if (s == CK_OK) s = ck_tmpfile_write(&t, f->p, f->n, err);
    if (s == CK_OK) s = ck_durable_replace(&t, err);
    ck_tmpfile_destroy(&t);
    forget_call(r);
    return s;
}

static ck_status forget(ck_records *base, uint64_t number, ck_error *err) {
    records_dir *r = (records_dir *)base;
    const char *path = path_of(r, number);
    ck_status s = path ? r->proc->fs->unlink(r->proc->fs, path, err) : ck_nomem(err, r->mem, 0);
    if (s == CK_OK) s = r->proc->fs->fsync_dir(r->proc->fs, r->dir, err);
    forget_call(r);
    return s == CK_NOTFOUND ? CK_OK : s;
}

/* ---- the directory ---- */

static ck_status open_dir(records_dir *r, const char *dir, uint64_t *epoch, ck_error *err) {
    r->dir = ck_arena_strdup(&r->arena, dir);
    const char *lock = ck_arena_printf(&r->arena, "%s/coordinator.lock", dir);
    if (!r->dir || !lock) return ck_nomem(err, r->mem, 0);
    r->mark = ck_arena_mark_now(&r->arena);
    CK_TRY(ck_fs_mkdirs(r->proc, dir, err));
    CK_TRY(r->proc->fs->open(r->proc->fs, lock, CK_OPEN_READWRITE, &r->lock, err));
    ck_status s = r->proc->fs->lock(r->lock, err);
    if (s == CK_EXISTS) return ck_fail(err, s, "another coordinator has %s", dir);
    if (s == CK_OK) s = last_epoch(r, epoch, err);
    forget_call(r);
    return s;
}

static void close_dir(ck_records *base) {
    records_dir *r = (records_dir *)base;
    if (r->lock) r->proc->fs->close(r->lock);
    ck_arena_destroy(&r->arena);
    ck_free(r->mem, r, sizeof *r);
}

static const ck_records_vtbl vtbl = {.close = close_dir, .recover = recover, .keep = keep, .forget = forget};

ck_status ck_records_dir_open(ck_proc *proc, const char *dir, ck_records **out, uint64_t *epoch, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    records_dir *r = ck_alloc_zero(mem, sizeof *r);
    *out = NULL;
    if (!r) return ck_nomem(err, mem, sizeof *r);
    r->base.v = &vtbl;
    r->proc = proc, r->mem = mem;
    ck_arena_init(&r->arena, mem, ARENA_BYTES_MAX);
    ck_status s = open_dir(r, dir, epoch, err);
    if (s != CK_OK)
        close_dir(&r->base);
    else
        *out = &r->base;
    return s;
}
