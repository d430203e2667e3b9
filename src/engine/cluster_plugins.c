/* The plugins that a submitted job brings: those of the engine, by what their files hold. */
#include "base/sha256.h"
#include "engine/cluster_int.h"
#include "os/fs.h"

/* The file's own name; what a message does not carry is a question mark. */
static ck_status name_of(ck_arena *a, const char *path, ck_view *out, ck_error *err) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base) < CK_CLUSTER_NAME_MAX ? strlen(base) : CK_CLUSTER_NAME_MAX;
    char *name = ck_arena_strndup(a, base, n);
    if (!name) return ck_nomem(err, a->mem, n);
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127) *p = '?';
    *out = ck_view_of(name);
    return CK_OK;
}

static ck_status read_plugin(clink_engine *e, ck_arena *a, const char *path, ck_client_plugin *out, ck_error *err) {
    char *hash = ck_arena_alloc(a, CK_SHA256_CHARS + 1);
    if (!hash) return ck_nomem(err, a->mem, CK_SHA256_CHARS + 1);
    CK_TRY(name_of(a, path, &out->said.name, err));
    ck_status s = ck_fs_read_all(&e->proc, path, CK_CLUSTER_PLUGIN_BYTES_MAX, a, &out->content, err);
    if (s == CK_FULL)
        return ck_fail(err, CK_REFUSED, "plugin %s is longer than %d MiB, the most that is brought to a cluster", path,
                       CK_CLUSTER_PLUGIN_BYTES_MAX >> 20);
    if (s != CK_OK) return s;
    ck_sha256_of(out->content, hash);
    out->said.hash = ck_view_of(hash);
    out->said.bytes = out->content.n;
    return CK_OK;
}

ck_status engine_client_plugins(clink_engine *e, ck_arena *a, ck_client_plugin **out, uint32_t *count, ck_error *err) {
    uint32_t n = 0;
    for (const ck_plugin *p = e->plugins.first; p; p = p->next) n++;
    *out = ck_arena_array(a, n, sizeof **out);
    *count = n;
    if (!*out) return ck_nomem(err, a->mem, n * sizeof **out);
    if (n > CK_CLUSTER_PLUGINS_MAX)
        return ck_fail(err, CK_REFUSED, "%u plugins, and a job of a cluster has at most %d", n, CK_CLUSTER_PLUGINS_MAX);
    n = 0;
    for (const ck_plugin *p = e->plugins.first; p; p = p->next) CK_TRY(read_plugin(e, a, p->path, &(*out)[n++], err));
    return CK_OK;
}
