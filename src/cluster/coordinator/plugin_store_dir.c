#include "cluster/coordinator/plugin_store.h"
#include "os/durable.h"

enum { BYTES_MAX = 512 << 20, ARENA_BYTES_MAX = 1 << 20 };

typedef struct dir_store {
    ck_plugin_store base;
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena;
    const char *dir;
} dir_store;

static const char *path_of(const dir_store *s, ck_arena *a, const char *hash) {
    return ck_arena_printf(a, "%s/%s.so", s->dir, hash);
}

/* A new file each time: what was there may be damaged. Several threads may. */
static ck_status keep(ck_plugin_store *base, const char *hash, ck_view content, ck_error *err) {
    const dir_store *s = (const dir_store *)base;
    ck_arena a;
    CK_TRY(ck_fs_mkdirs(s->proc, s->dir, err));
    ck_arena_init(&a, s->mem, ARENA_BYTES_MAX);
    const char *path = path_of(s, &a, hash);
    ck_status st = path ? ck_durable_replace_bytes(s->proc, path, content, err) : ck_nomem(err, s->mem, 0);
    ck_arena_destroy(&a);
    return st;
}

static ck_status read_file(const dir_store *s, const char *path, uint64_t offset, size_t n, ck_arena *a, ck_view *out,
                           ck_error *err) {
    ck_file *f;
    ck_stat st;
    size_t got = 0;
    CK_TRY(s->proc->fs->open(s->proc->fs, path, CK_OPEN_READ, &f, err));
    ck_status r = s->proc->fs->fstat(f, &st, err);
    if (r == CK_OK && offset > st.bytes) r = ck_fail(err, CK_NOTFOUND, "%s is shorter than it was", path);
    if (r == CK_OK && n > st.bytes - offset) n = (size_t)(st.bytes - offset);
    char *p = r == CK_OK ? ck_arena_alloc(a, n + 1) : NULL;
    if (r == CK_OK && !p) r = ck_nomem(err, a->mem, n);
    if (r == CK_OK) r = s->proc->fs->pread(f, p, n, offset, &got, err);
    s->proc->fs->close(f);
    *out = (ck_view){p, got};
    return r;
}

static ck_status read_part(ck_plugin_store *base, const char *hash, uint64_t offset, size_t n, ck_arena *a,
                           ck_view *out, ck_error *err) {
    const dir_store *s = (const dir_store *)base;
    const char *path = path_of(s, a, hash);
    return path ? read_file(s, path, offset, n, a, out, err) : ck_nomem(err, a->mem, 0);
}

static bool is_name(const char *name) {
    size_t n = strlen(name);
    return n == CK_SHA256_CHARS + 3 && strcmp(name + CK_SHA256_CHARS, ".so") == 0 &&
           ck_sha256_is_hex((ck_view){name, CK_SHA256_CHARS});
}

/* What else is in the directory is left alone. */
static ck_status list(ck_plugin_store *base, ck_arena *a, ck_kept_plugin **out, uint32_t *count, ck_error *err) {
    const dir_store *s = (const dir_store *)base;
    const char **names = NULL;
    size_t n = 0;
    ck_status r = s->proc->fs->list(s->proc->fs, s->dir, a, &names, &n, err);
    if (r == CK_NOTFOUND) ck_error_reset(err);
    if (r != CK_OK && r != CK_NOTFOUND) return r;
    *count = 0;
    if (!(*out = ck_arena_array(a, n, sizeof **out))) return ck_nomem(err, a->mem, n * sizeof **out);
    for (size_t i = 0; i < n; i++) {
        ck_stat st;
        if (!is_name(names[i])) continue;
        ck_kept_plugin *p = *out + *count;
        memcpy(p->hash, names[i], CK_SHA256_CHARS);
        const char *path = path_of(s, a, p->hash);
        if (!path) return ck_nomem(err, a->mem, 0);
        CK_TRY(s->proc->fs->stat(s->proc->fs, path, &st, err));
        p->bytes = st.bytes, p->order = st.mtime_us;
        ++*count;
    }
    return CK_OK;
}

static ck_status forget(ck_plugin_store *base, const char *hash, ck_error *err) {
    dir_store *s = (dir_store *)base;
    ck_arena_mark mark = ck_arena_mark_now(&s->arena);
    const char *path = path_of(s, &s->arena, hash);
    ck_status r = path ? s->proc->fs->unlink(s->proc->fs, path, err) : ck_nomem(err, s->mem, 0);
    ck_arena_reset_to(&s->arena, mark);
    if (r == CK_NOTFOUND) ck_error_reset(err);
    return r == CK_NOTFOUND ? CK_OK : r;
}

static void close_store(ck_plugin_store *base) {
    dir_store *s = (dir_store *)base;
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static const ck_plugin_store_vtbl vtbl = {
    .close = close_store, .keep = keep, .read = read_part, .list = list, .forget = forget};

ck_status ck_plugin_store_dir(ck_proc *proc, const char *dir, ck_plugin_store **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    dir_store *s = ck_alloc_zero(mem, sizeof *s);
    *out = NULL;
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->base = (ck_plugin_store){.v = &vtbl,
                                .plugin_bytes_max = CK_CLUSTER_PLUGIN_BYTES_MAX,
                                .bytes_max = BYTES_MAX,
                                .may_rot = true,
                                .is_slow = true};
    s->proc = proc, s->mem = mem;
    ck_arena_init(&s->arena, mem, ARENA_BYTES_MAX);
    s->dir = ck_arena_printf(&s->arena, "%s/plugins", dir);
    if (!s->dir) {
        close_store(&s->base);
        return ck_nomem(err, mem, 0);
    }
    *out = &s->base;
    return CK_OK;
}
