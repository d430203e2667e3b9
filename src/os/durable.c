/* The one durable-write path. The steps and what may be left if the machine stops between two of them:
 *
 *   create   .tmp-<name>-<16 hex>   an empty temporary file         (swept by retention; never taken for the real one)
 *   write    all bytes              a temporary file, part of it
 *   fsync                           a whole temporary file
 *   publish or replace              the final name or not, whole if so
 *   fsync of the directory          the final name, whole
 *
 * A write or fsync that failed may have dropped pages that a second fsync would call clean: the file is discarded. */
#include "os/durable.h"

#include <inttypes.h>
#include <isa-l/crc.h>
#include <limits.h>
#include <stdio.h>

#include "base/vector.h"
#include "os/random.h"

/* The disk works on a large file while it is made, so that fsync finds little to wait for. */
enum { WRITE_OUT_BYTES = 8 << 20 };

uint32_t ck_crc32c(uint32_t crc, const void *p, size_t n) {
    unsigned char *at = (unsigned char *)(uintptr_t)p; /* the library only reads */
    crc = ~crc;                                        /* it leaves inversion at both ends to its caller */
    while (n > 0) {
        int chunk = n > INT_MAX ? INT_MAX : (int)n;
        crc = crc32_iscsi(at, chunk, crc);
        at += chunk, n -= (size_t)chunk;
    }
    ck_vector_uppers_clear();
    return ~crc;
}

static ck_status fault(ck_proc *proc, ck_fault_point point, ck_error *err) {
    ck_status s = ck_fault_hit(proc->faults, point);
    return s == CK_OK ? CK_OK : ck_fail(err, s, "stopped by the fault point %s", ck_fault_name(point));
}

/* ---- the temporary file ---- */

static char *copy_text(ck_mem mem, const char *z, size_t n) {
    char *copy = ck_alloc(mem, n + 1);
    if (!copy) return NULL;
    memcpy(copy, z, n);
    copy[n] = 0;
    return copy;
}

static void free_text(ck_mem mem, char **z) {
    if (*z) ck_free(mem, *z, strlen(*z) + 1);
    *z = NULL;
}

static ck_status name_temporary(ck_tmpfile *t, ck_error *err) {
    const char *slash = strrchr(t->final_path, '/');
    size_t dir_n = slash ? (size_t)(slash - t->final_path) + 1 : 0;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s.tmp-%s-%016" PRIx64, (int)dir_n, t->final_path, t->final_path + dir_n,
                     ck_random_u64(t->proc));
    if (n < 0 || (size_t)n >= sizeof path) return ck_fail(err, CK_INVALID, "the path %s is too long", t->final_path);
    free_text(t->mem, &t->path);
    t->path = copy_text(t->mem, path, (size_t)n);
    return t->path ? CK_OK : ck_nomem(err, t->mem, (size_t)n + 1);
}

static ck_status create_temporary(ck_tmpfile *t, ck_open_mode mode, ck_error *err) {
    ck_status s = CK_EXISTS;
    for (int tries = 0; s == CK_EXISTS && tries < 8; tries++) { /* 64 random bits: one is enough but for seeded ones */
        CK_TRY(name_temporary(t, err));
        s = t->proc->fs->open(t->proc->fs, t->path, mode, &t->file, err);
    }
    return s;
}

static ck_status init(ck_tmpfile *t, ck_proc *proc, ck_mem mem, const char *final_path, ck_open_mode mode,
                      ck_error *err) {
    *t = (ck_tmpfile){.proc = proc, .mem = mem};
    size_t n = strlen(final_path);
    if (n == 0 || final_path[n - 1] == '/')
        return ck_fail(err, CK_INVALID, "'%s' does not name a file to write", final_path);
    t->final_path = copy_text(mem, final_path, n);
    ck_status s = t->final_path ? create_temporary(t, mode, err) : ck_nomem(err, mem, n + 1);
    if (s == CK_OK) s = fault(proc, CK_FAULT_DURABLE_AFTER_CREATE, err);
    if (s != CK_OK) ck_tmpfile_destroy(t);
    return s;
}

ck_status ck_tmpfile_init(ck_tmpfile *t, ck_proc *proc, ck_mem mem, const char *final_path, ck_error *err) {
    return init(t, proc, mem, final_path, CK_OPEN_CREATE, err);
}
ck_status ck_tmpfile_init_shared(ck_tmpfile *t, ck_proc *proc, ck_mem mem, const char *final_path, ck_error *err) {
    return init(t, proc, mem, final_path, CK_OPEN_CREATE_SHARED, err);
}

void ck_tmpfile_destroy(ck_tmpfile *t) {
    bool crashed = t->proc && t->proc->faults && atomic_load(&t->proc->faults->crashed); /* the dead clean up nothing */
    if (t->file) {
        t->proc->fs->close(t->file);
        /* What cannot be removed stays as a temporary name, which nobody reads and the next sweep removes. */
        if (!crashed && t->path && t->proc->fs->unlink(t->proc->fs, t->path, NULL) != CK_OK)
            ck_log_line(t->proc->log, CK_LOG_WARN, "the temporary file %s could not be removed", t->path);
    }
    t->file = NULL;
    free_text(t->mem, &t->path);
    free_text(t->mem, &t->final_path);
    t->synced = false;
}

static ck_status still_open(const ck_tmpfile *t, ck_error *err) {
    if (t->file) return CK_OK;
    return ck_fail(err, CK_INVALID, "a temporary file is used after it failed or was published");
}

ck_status ck_tmpfile_write(ck_tmpfile *t, const void *p, size_t n, ck_error *err) {
    CK_TRY(still_open(t, err));
    ck_status s = t->proc->fs->write(t->file, p, n, err);
    if (s != CK_OK) {
        ck_error_prefix(err, "for %s: ", t->final_path);
        ck_tmpfile_destroy(t);
        return s;
    }
    t->bytes += n;
    t->crc32c = ck_crc32c(t->crc32c, p, n);
    if (t->bytes - t->out_bytes >= WRITE_OUT_BYTES && t->proc->fs->write_out) {
        t->proc->fs->write_out(t->file, t->out_bytes, t->bytes - t->out_bytes);
        t->out_bytes = t->bytes;
    }
    t->synced = false;
    return CK_OK;
}

ck_status ck_tmpfile_fsync(ck_tmpfile *t, ck_error *err) {
    CK_TRY(still_open(t, err));
    if (t->synced) return CK_OK;
    CK_TRY(fault(t->proc, CK_FAULT_DURABLE_AFTER_WRITE, err));
    ck_status s = t->proc->fs->fsync(t->file, err);
    if (s != CK_OK) {
        ck_error_prefix(err, "for %s: ", t->final_path);
        ck_tmpfile_destroy(t);
        return s;
    }
    t->synced = true;
    return fault(t->proc, CK_FAULT_DURABLE_AFTER_FSYNC, err);
}

/* ---- the final name ---- */

static ck_status sync_directory_of(ck_fs *fs, const char *path, ck_error *err) {
    const char *slash = strrchr(path, '/');
    if (!slash) return fs->fsync_dir(fs, ".", err);
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    char dir[PATH_MAX];
    if (n >= sizeof dir) return ck_fail(err, CK_INVALID, "the path %s is too long", path);
    memcpy(dir, path, n);
    dir[n] = 0;
    return fs->fsync_dir(fs, dir, err);
}

static ck_status make_final(ck_tmpfile *t, bool exclusive, ck_error *err) {
    CK_TRY(ck_tmpfile_fsync(t, err));
    ck_fs *fs = t->proc->fs;
    CK_TRY(exclusive ? fs->rename_noreplace(fs, t->path, t->final_path, err)
                     : fs->rename(fs, t->path, t->final_path, err));
    free_text(t->mem, &t->path); /* from here on destroy has nothing to unlink */
    CK_TRY(fault(t->proc, CK_FAULT_DURABLE_AFTER_PUBLISH, err));
    CK_TRY(sync_directory_of(fs, t->final_path, err));
    CK_TRY(fault(t->proc, CK_FAULT_DURABLE_AFTER_DIRSYNC, err));
    fs->close(t->file);
    t->file = NULL;
    return CK_OK;
}

ck_status ck_durable_publish(ck_tmpfile *t, ck_error *err) { return make_final(t, true, err); }
ck_status ck_durable_replace(ck_tmpfile *t, ck_error *err) { return make_final(t, false, err); }

ck_status ck_durable_confirm(ck_proc *proc, const char *final_path, ck_error *err) {
    ck_file *f;
    CK_TRY(proc->fs->open(proc->fs, final_path, CK_OPEN_READ, &f, err));
    ck_status s = proc->fs->fsync(f, err);
    proc->fs->close(f);
    return s == CK_OK ? sync_directory_of(proc->fs, final_path, err) : s;
}

static ck_status write_whole(ck_proc *proc, const char *path, ck_view content, bool exclusive, ck_error *err) {
    ck_tmpfile t;
    CK_TRY(ck_tmpfile_init(&t, proc, ck_proc_mem(proc, CK_MEM_PLAN), path, err));
    ck_status s = ck_tmpfile_write(&t, content.p, content.n, err);
    if (s == CK_OK) s = make_final(&t, exclusive, err);
    ck_tmpfile_destroy(&t);
    return s;
}

ck_status ck_durable_publish_bytes(ck_proc *proc, const char *path, ck_view content, ck_error *err) {
    return write_whole(proc, path, content, true, err);
}
ck_status ck_durable_replace_bytes(ck_proc *proc, const char *path, ck_view content, ck_error *err) {
    return write_whole(proc, path, content, false, err);
}
