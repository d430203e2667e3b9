/* --catalog DIR: tables, views and functions in DIR/catalog.sql, as the statements that make them. The file is replaced
 * as a whole, durably, after each script that changed something, and before anything of the script runs. A change is
 * checked by loading what would be written; relative paths are kept as the absolute ones they were meant as; two
 * processes that change it at once do not overwrite each other. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "engine/engine_int.h"
#include "os/durable.h"

enum { CATALOG_BYTES_MAX = 16 << 20, SCRATCH_BYTES_MAX = 256 << 20 };

static ck_status load(clink_engine *e, ck_catalog *c, ck_view text, const char *name, ck_error *err) {
    ck_arena scratch;
    ck_arena_init(&scratch, ck_proc_mem(&e->proc, CK_MEM_PLAN), SCRATCH_BYTES_MAX);
    ck_status s = ck_catalog_load(c, text, name, &scratch, err);
    ck_arena_destroy(&scratch);
    return s;
}

/* The file as it is; empty when there is none. */
static ck_status read_file(clink_engine *e, ck_arena *a, ck_view *out, ck_error *err) {
    ck_stat st;
    ck_error gone = CK_ERROR_INIT;
    *out = (ck_view){0};
    ck_status s = e->proc.fs->stat(e->proc.fs, e->catalog_path, &st, &gone);
    if (s == CK_NOTFOUND) return CK_OK;
    if (s != CK_OK) {
        *err = gone;
        return s;
    }
    s = ck_fs_read_all(&e->proc, e->catalog_path, CATALOG_BYTES_MAX, a, out, err);
    return s == CK_FULL ? ck_fail(err, CK_REFUSED, "%s is larger than %d bytes", e->catalog_path, CATALOG_BYTES_MAX)
                        : s;
}

/* What a writer that was killed has left beside the file is of no use to anybody; while another writes, it may be his.
 */
static void sweep(clink_engine *e, const char *dir, ck_arena *a) {
    static const char left[] = ".tmp-catalog.sql-";
    ck_error ignored = CK_ERROR_INIT;
    ck_fs *fs = e->proc.fs;
    ck_file *lock = NULL;
    const char **names;
    size_t n;
    bool locked = false;
    if (fs->list(fs, dir, a, &names, &n, &ignored) != CK_OK) return;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(names[i], left, sizeof left - 1) != 0) continue;
        if (!lock && fs->open(fs, e->catalog_lock, CK_OPEN_READWRITE, &lock, &ignored) != CK_OK) return;
        if (!locked && fs->lock(lock, &ignored) != CK_OK) break;
        locked = true;
        const char *path = ck_arena_printf(a, "%s/%s", dir, names[i]);
        if (path && fs->unlink(fs, path, &ignored) != CK_OK) break; /* it does no harm */
    }
    fs->close(lock);
}

/* 64 bits of what was read or written last; 0: there was no file. */
static uint64_t mark_of(ck_view text) {
    return text.n ? (uint64_t)ck_crc32c(0, text.p, text.n) << 32 | (uint32_t)text.n : 0;
}

ck_status engine_catalog_open(clink_engine *e, const char *dir, ck_error *err) {
    ck_view text;
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) return ck_fail_errno(err, errno, "the working directory");
    const char *base = ck_arena_strdup(&e->arena, strcmp(here, "/") == 0 ? "" : here);
    if (!base) return ck_nomem(err, e->arena.mem, strlen(here));
    ck_catalog_set_base(e->catalog, base);
    e->catalog_path = ck_arena_printf(&e->arena, "%s/catalog.sql", dir);
    e->catalog_lock = ck_arena_printf(&e->arena, "%s/catalog.lock", dir);
    if (!e->catalog_path || !e->catalog_lock) return ck_nomem(err, e->arena.mem, strlen(dir));
    CK_TRY(ck_fs_mkdirs(&e->proc, dir, err));
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(&e->proc, CK_MEM_PLAN), SCRATCH_BYTES_MAX);
    sweep(e, dir, &a);
    ck_status s = read_file(e, &a, &text, err);
    if (s == CK_OK && text.p && !text.n)
        s = ck_fail(err, CK_CORRUPT, "%s is empty, which a catalog never is; remove it to begin without tables",
                    e->catalog_path);
    if (s == CK_OK && text.n) {
        s = ck_catalog_check_version(text, err);
        if (s != CK_OK) ck_error_prefix(err, "%s ", e->catalog_path);
        if (s == CK_OK) s = load(e, e->catalog, text, e->catalog_path, err);
    }
    e->catalog_mark = mark_of(text);
    ck_arena_destroy(&a);
    return s;
}

/* What would be written can be read again: a table that a view needs is not gone. */
static ck_status check(clink_engine *e, ck_view text, ck_error *err) {
    ck_catalog *c;
    CK_TRY(ck_catalog_new(&e->proc, &e->registry, &c, err));
    ck_status s = load(e, c, text, e->catalog_path, err);
    ck_catalog_free(c);
    if (s != CK_OK && s != CK_NOMEM)
        ck_error_prefix(err, "what stays in the catalog needs what this script takes away; drop or change it, too: ");
    return s;
}

static ck_status replace_file(clink_engine *e, ck_view text, ck_error *err) {
    ck_file *lock;
    ck_arena a;
    ck_view now;
    CK_TRY(e->proc.fs->open(e->proc.fs, e->catalog_lock, CK_OPEN_READWRITE, &lock, err));
    ck_arena_init(&a, ck_proc_mem(&e->proc, CK_MEM_PLAN), SCRATCH_BYTES_MAX);
    ck_status s = e->proc.fs->lock(lock, err);
    if (s == CK_OK) s = read_file(e, &a, &now, err);
    if (s == CK_EXISTS || (s == CK_OK && mark_of(now) != e->catalog_mark))
        s = ck_fail(err, CK_REFUSED, "%s is being changed by another process; start again to see its tables",
                    e->catalog_path);
    if (s == CK_OK) s = ck_durable_replace_bytes(&e->proc, e->catalog_path, text, err);
    if (s == CK_OK) e->catalog_mark = mark_of(text);
    ck_arena_destroy(&a);
    e->proc.fs->close(lock);
    return s;
}

ck_status engine_catalog_save(void *engine, const ck_catalog *c, ck_error *err) {
    clink_engine *e = engine;
    ck_bytes text;
    if (!e->catalog_path) return CK_OK;
    ck_bytes_init(&text, ck_proc_mem(&e->proc, CK_MEM_PLAN), CATALOG_BYTES_MAX);
    ck_status s = ck_catalog_print(c, &text);
    if (s == CK_FULL)
        s = ck_fail(err, CK_REFUSED, "the catalog would be larger than %d bytes", CATALOG_BYTES_MAX);
    else if (s != CK_OK)
        s = ck_nomem(err, text.mem, text.n);
    ck_view all = {text.p, text.n};
    bool nothing = e->catalog_mark == 0 && s == CK_OK && memchr(all.p, '\n', all.n) == all.p + all.n - 1;
    if (s == CK_OK && !nothing && mark_of(all) != e->catalog_mark) {
        s = check(e, all, err);
        if (s == CK_OK) s = replace_file(e, all, err);
    }
    ck_bytes_destroy(&text);
    return s;
}
