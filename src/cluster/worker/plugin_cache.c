#include "cluster/worker/plugin_cache.h"

#include "base/arena.h"
#include "os/fs.h"

enum { ARENA_BYTES_MAX = 1 << 20, READ_BYTES = 256 << 10 };

typedef struct seen { /* in this process, and it was what its name says */
    struct seen *next;
    char hash[CK_SHA256_CHARS + 1];
} seen;

struct ck_plugin_cache {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena; /* behind the mark, of one call */
    ck_arena_mark mark;
    const char *dir;
    uint64_t bytes_max;
    seen *seen;
};

static bool was_seen(const ck_plugin_cache *c, const char *hash) {
    for (const seen *s = c->seen; s; s = s->next)
        if (strcmp(s->hash, hash) == 0) return true;
    return false;
}

static ck_status note_seen(ck_plugin_cache *c, const char *hash, ck_error *err) {
    if (was_seen(c, hash)) return CK_OK;
    seen *s = ck_alloc_zero(c->mem, sizeof *s);
    if (!s) return ck_nomem(err, c->mem, sizeof *s);
    memcpy(s->hash, hash, sizeof s->hash);
    s->next = c->seen;
    c->seen = s;
    return CK_OK;
}

static void forget_seen(ck_plugin_cache *c, const char *hash) {
    for (seen **link = &c->seen, *s; (s = *link) != NULL; link = &s->next) {
        if (strcmp(s->hash, hash) != 0) continue;
        *link = s->next;
        ck_free(c->mem, s, sizeof *s);
        return;
    }
}

static const char *path_of(ck_plugin_cache *c, const char *hash, const char *ending) {
    return ck_arena_printf(&c->arena, "%s/%s%s", c->dir, hash, ending);
}

/* ---- what is there ---- */

static ck_status sum_of(const ck_plugin_cache *c, ck_file *f, char hex[CK_SHA256_CHARS + 1], ck_error *err) {
    char *buffer = ck_alloc(c->mem, READ_BYTES);
    ck_sha256 sum;
    size_t got = READ_BYTES;
    ck_status s = CK_OK;
    if (!buffer) return ck_nomem(err, c->mem, READ_BYTES);
    ck_sha256_init(&sum);
    for (uint64_t at = 0; s == CK_OK && got == READ_BYTES; at += got) {
        s = c->proc->fs->pread(f, buffer, READ_BYTES, at, &got, err);
        if (s == CK_OK) ck_sha256_add(&sum, buffer, got);
    }
    ck_sha256_end(&sum, hex);
    ck_free(c->mem, buffer, READ_BYTES);
    return s;
}

static ck_status look(ck_plugin_cache *c, const char *path, const char *hash, uint64_t bytes, bool *has,
                      ck_error *err) {
    ck_file *f;
    ck_stat st;
    char hex[CK_SHA256_CHARS + 1] = "";
    *has = false;
    ck_status s = c->proc->fs->open(c->proc->fs, path, CK_OPEN_READ, &f, err);
    if (s == CK_NOTFOUND) ck_error_reset(err);
    if (s != CK_OK) return s == CK_NOTFOUND ? CK_OK : s;
    s = c->proc->fs->fstat(f, &st, err);
    *has = s == CK_OK && st.is_file && st.bytes == bytes;
    if (*has && !was_seen(c, hash)) {
        s = sum_of(c, f, hex, err);
        *has = s == CK_OK && strcmp(hex, hash) == 0;
    }
    c->proc->fs->close(f);
    if (s != CK_OK) return s;
    if (*has) return note_seen(c, hash, err);
    forget_seen(c, hash);
    return c->proc->fs->unlink(c->proc->fs, path, err);
}

ck_status ck_plugin_cache_has(ck_plugin_cache *c, const char *hash, uint64_t bytes, bool *has, ck_error *err) {
    const char *path = path_of(c, hash, ".so");
    ck_status s = path ? look(c, path, hash, bytes, has, err) : ck_nomem(err, c->mem, 0);
    ck_arena_reset_to(&c->arena, c->mark);
    return s;
}

/* ---- what comes and goes ---- */

static ck_status write_file(ck_plugin_cache *c, const char *hash, ck_view content, ck_error *err) {
    ck_file *f;
    ck_fs *fs = c->proc->fs;
    const char *path = path_of(c, hash, ".so"), *half = path_of(c, hash, ".part");
    if (!path || !half) return ck_nomem(err, c->mem, 0);
    CK_TRY(ck_fs_mkdirs(c->proc, c->dir, err));
    CK_TRY(fs->open(fs, half, CK_OPEN_TRUNCATE, &f, err));
    ck_status s = fs->write(f, content.p, content.n, err);
    fs->close(f);
    if (s == CK_OK) s = fs->rename(fs, half, path, err);
    if (s != CK_OK && fs->unlink(fs, half, NULL) != CK_OK) /* a full disk should not stay full for it */
        ck_log_line(c->proc->log, CK_LOG_WARN, "%s could not be removed", half);
    return s;
}

typedef struct file {
    char hash[CK_SHA256_CHARS + 1];
    uint64_t bytes;
    int64_t mtime_us;
} file;

static ck_status list(ck_plugin_cache *c, file **out, size_t *count, ck_error *err) {
    const char **names;
    size_t n;
    CK_TRY(c->proc->fs->list(c->proc->fs, c->dir, &c->arena, &names, &n, err));
    *count = 0;
    if (!(*out = ck_arena_array(&c->arena, n, sizeof **out))) return ck_nomem(err, c->mem, n * sizeof **out);
    for (size_t i = 0; i < n; i++) {
        ck_stat st;
        file *f = *out + *count;
        if (strlen(names[i]) != CK_SHA256_CHARS + 3 || strcmp(names[i] + CK_SHA256_CHARS, ".so") != 0) continue;
        memcpy(f->hash, names[i], CK_SHA256_CHARS);
        f->hash[CK_SHA256_CHARS] = 0;
        const char *path = path_of(c, f->hash, ".so");
        if (!path) return ck_nomem(err, c->mem, 0);
        CK_TRY(c->proc->fs->stat(c->proc->fs, path, &st, err));
        f->bytes = st.bytes, f->mtime_us = st.mtime_us;
        ++*count;
    }
    return CK_OK;
}

static ck_status trim(ck_plugin_cache *c, bool (*is_needed)(void *arg, const char *hash), void *arg, ck_error *err) {
    file *files;
    size_t count;
    uint64_t all = 0;
    CK_TRY(list(c, &files, &count, err));
    for (size_t i = 0; i < count; i++) all += files[i].bytes;
    while (all > c->bytes_max) {
        file *oldest = NULL;
        for (size_t i = 0; i < count; i++)
            if (files[i].bytes && (!oldest || files[i].mtime_us < oldest->mtime_us) && !is_needed(arg, files[i].hash))
                oldest = &files[i];
        if (!oldest) return CK_OK; /* all of it is needed */
        const char *path = path_of(c, oldest->hash, ".so");
        if (!path) return ck_nomem(err, c->mem, 0);
        forget_seen(c, oldest->hash);
        CK_TRY(c->proc->fs->unlink(c->proc->fs, path, err));
        all -= oldest->bytes;
        oldest->bytes = 0;
    }
    return CK_OK;
}

ck_status ck_plugin_cache_keep(ck_plugin_cache *c, const char *hash, ck_view content,
                               bool (*is_needed)(void *arg, const char *hash), void *arg, ck_error *err) {
    ck_status s = write_file(c, hash, content, err);
    if (s == CK_OK) s = note_seen(c, hash, err);
    if (s == CK_OK) s = trim(c, is_needed, arg, err);
    ck_arena_reset_to(&c->arena, c->mark);
    return s;
}

/* ---- init and free ---- */

ck_status ck_plugin_cache_new(ck_proc *proc, const char *dir, uint64_t bytes_max, ck_plugin_cache **out,
                              ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_plugin_cache *c = ck_alloc_zero(mem, sizeof *c);
    *out = NULL;
    if (!c) return ck_nomem(err, mem, sizeof *c);
    *c = (ck_plugin_cache){.proc = proc, .mem = mem, .bytes_max = bytes_max};
    ck_arena_init(&c->arena, mem, ARENA_BYTES_MAX);
    if (!(c->dir = ck_arena_strdup(&c->arena, dir))) {
        ck_plugin_cache_free(c);
        return ck_nomem(err, mem, 0);
    }
    c->mark = ck_arena_mark_now(&c->arena);
    *out = c;
    return CK_OK;
}

void ck_plugin_cache_free(ck_plugin_cache *c) {
    if (!c) return;
    while (c->seen) forget_seen(c, c->seen->hash);
    ck_arena_destroy(&c->arena);
    ck_free(c->mem, c, sizeof *c);
}
