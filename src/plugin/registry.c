/* See registry.h. */
#include "plugin/registry.h"

#include "base/suggest.h"

void ck_registry_init(ck_registry *r, ck_arena *arena) {
    r->arena = arena;
    ck_map_init(&r->ops, arena, false);
    ck_map_init(&r->connectors, arena, true);
    ck_state_migrations_init(&r->migrations, arena);
}

static ck_status add(ck_registry *r, ck_map *m, const char *what, const char *name, const void *d, ck_error *err) {
    if (!name || !name[0]) return ck_fail(err, CK_INVALID, "%s without a name", what);
    if (ck_map_find(m, ck_view_of(name))) return ck_fail(err, CK_EXISTS, "%s %s is registered twice", what, name);
    if (ck_map_put(m, ck_view_of(name), (void *)(uintptr_t)d, NULL) != CK_OK)
        return ck_nomem(err, r->arena->mem, sizeof(ck_map_entry));
    return CK_OK;
}

ck_status ck_registry_add_op(ck_registry *r, const ck_op_desc *d, ck_error *err) {
    if (!d->op == !d->source)
        return ck_fail(err, CK_INVALID, "operator type %s must be an operator or a source",
                       d->type ? d->type : "(no name)");
    if (!d->create || (d->op && !d->op->on_event) || (d->source && !d->source->poll) ||
        (d->committer && !d->create_committer))
        return ck_fail(err, CK_INVALID, "operator type %s lacks a function it must have", d->type);
    return add(r, &r->ops, "operator type", d->type, d, err);
}

ck_status ck_registry_add_connector(ck_registry *r, const ck_connector_desc *d, ck_error *err) {
    return add(r, &r->connectors, "connector", d->name, d, err);
}

static ck_status find(const ck_map *m, const char *what, const char *name, const void **out, ck_error *err) {
    *out = ck_map_get(m, ck_view_of(name));
    if (*out) return CK_OK;
    ck_suggest near;
    ck_suggest_init(&near, ck_view_of(name));
    for (size_t i = 0; i < m->count; i++)
        if (m->entries[i].key.p[0] != '.') ck_suggest_offer(&near, m->entries[i].key);
    if (near.best.n)
        return ck_fail(err, CK_INVALID, "unknown %s %.100s, did you mean %.*s?", what, name, (int)near.best.n,
                       near.best.p);
    return ck_fail(err, CK_INVALID, "unknown %s %.100s", what, name);
}

/* "file, print, ...", as far as there is room. */
static void list_names(const ck_map *m, char *to, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < m->count && m->entries[i].key.n + n + 3 < size; i++) {
        if (m->entries[i].key.p[0] == '.') continue; /* the engine's own */
        if (n) memcpy(to + n, ", ", 2), n += 2;
        memcpy(to + n, m->entries[i].key.p, m->entries[i].key.n);
        n += m->entries[i].key.n;
    }
    to[n] = 0;
}

ck_status ck_registry_op(const ck_registry *r, const char *type, const ck_op_desc **out, ck_error *err) {
    const void *d;
    CK_TRY(find(&r->ops, "operator type", type, &d, err));
    *out = d;
    return CK_OK;
}

ck_status ck_registry_connector(const ck_registry *r, const char *name, const ck_connector_desc **out, ck_error *err) {
    const void *d;
    ck_status s = find(&r->connectors, "connector", name, &d, err);
    if (s == CK_INVALID && err && !strstr(err->msg, "did you mean")) {
        char all[400];
        list_names(&r->connectors, all, sizeof all);
        return *name ? ck_fail(err, CK_INVALID, "unknown connector %.100s; there are %s, and those of --plugin FILE.so",
                               name, all)
                     : ck_fail(err, CK_INVALID, "the connector's name is empty; there are %s", all);
    }
    CK_TRY(s);
    *out = d;
    return CK_OK;
}
