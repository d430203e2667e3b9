/* See catalog.h. */
#include "sql/catalog/catalog.h"

#include "base/hash.h"
#include "expr/timezone.h"

enum { ENTRY_BYTES_MAX = 64 << 20, ZONE_BYTES_MAX = 8 << 20 };

static ck_mem plan_mem(const ck_catalog *c) { return ck_proc_mem(c->proc, CK_MEM_PLAN); }

ck_status ck_catalog_new(ck_proc *proc, const ck_registry *registry, ck_catalog **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_catalog *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->proc = proc, c->registry = registry;
    ck_status s = ck_settings_reset(&c->settings, (ck_view){0}, err);
    if (s != CK_OK) {
        ck_free(mem, c, sizeof *c);
        return s;
    }
    *out = c;
    return CK_OK;
}

void ck_catalog_on_forget(ck_catalog *c, void (*forget)(void *arg, const char *instance), void *arg) {
    c->forget = forget, c->forget_arg = arg;
}

void ck_catalog_set_base(ck_catalog *c, const char *dir) { c->base_dir = dir; }

static void free_list(ck_catalog *c, ck_catalog_entry **list) {
    while (*list) {
        ck_catalog_entry *e = *list;
        *list = e->next;
        ck_catalog_entry_discard(c, &e);
    }
}

void ck_catalog_free(ck_catalog *c) {
    if (!c) return;
    c->forget = NULL; /* rows in memory end with their store */
    free_list(c, &c->entries);
    free_list(c, &c->dropped);
    ck_free(plan_mem(c), c, sizeof *c);
}

static ck_status zone_is_there(const ck_catalog *c, ck_error *err) {
    const ck_timezone *zone;
    ck_arena scratch;
    if (!c->proc->fs) return CK_OK; /* it is looked for where it is used */
    ck_arena_init(&scratch, plan_mem(c), ZONE_BYTES_MAX);
    ck_status s = ck_timezone_load(c->proc, &scratch, c->settings.timezone, &zone, err);
    ck_arena_destroy(&scratch);
    return s;
}

ck_status ck_catalog_set(ck_catalog *c, ck_view key, ck_view value, ck_error *err) {
    ck_settings before = c->settings;
    ck_status s = ck_settings_set(&c->settings, key, value, err);
    if (s == CK_OK && strcmp(before.timezone, c->settings.timezone) != 0) s = zone_is_there(c, err);
    if (s != CK_OK) c->settings = before;
    return s;
}

static size_t bucket_of(ck_view name) {
    uint64_t h = CK_FNV_OFFSET;
    for (size_t i = 0; i < name.n; i++) {
        char c = ck_ascii_lower(name.p[i]);
        h = ck_fnv1a_more(h, &c, 1);
    }
    return h % CK_CATALOG_BUCKETS;
}

static ck_catalog_entry *find(const ck_catalog *c, ck_view name, bool quoted, bool function) {
    ck_catalog_entry *near = NULL;
    for (ck_catalog_entry *e = c->alike[bucket_of(name)]; e; e = e->next_alike) {
        if ((e->kind == CK_ENTRY_FUNCTION) != function) continue;
        if (ck_view_is(name, e->name)) return e;
        bool older = !near || e->order < near->order;
        if (!quoted && older && ck_view_eq_nocase(name, ck_view_of(e->name))) near = e;
    }
    return near;
}

ck_catalog_entry *ck_catalog_find(const ck_catalog *c, ck_view name, bool quoted) {
    return find(c, name, quoted, false);
}

ck_catalog_entry *ck_catalog_find_function(const ck_catalog *c, ck_view name, bool quoted) {
    return find(c, name, quoted, true);
}

void ck_catalog_offer(const ck_catalog *c, bool functions, ck_suggest *near) {
    for (const ck_catalog_entry *e = c->entries; e; e = e->next)
        if ((e->kind == CK_ENTRY_FUNCTION) == functions) ck_suggest_offer(near, ck_view_of(e->name));
}

ck_status ck_catalog_entry_new(ck_catalog *c, ck_entry_kind kind, ck_view name, ck_catalog_entry **out, ck_error *err) {
    ck_mem mem = plan_mem(c);
    if (c->entry_count >= CK_CATALOG_ENTRIES_MAX)
        return ck_fail(err, CK_REFUSED, "there are %d tables, views and functions, and no more are taken",
                       CK_CATALOG_ENTRIES_MAX);
    ck_catalog_entry *e = ck_alloc_zero(mem, sizeof *e);
    if (!e) return ck_nomem(err, mem, sizeof *e);
    e->kind = kind;
    ck_arena_init(&e->arena, mem, ENTRY_BYTES_MAX);
    if (!(e->name = ck_arena_strndup(&e->arena, name.p, name.n))) {
        ck_catalog_entry_discard(c, &e);
        return ck_nomem(err, mem, name.n);
    }
    *out = e;
    return CK_OK;
}

static void free_entry(ck_mem mem, ck_catalog_entry *e, void (*forget)(void *arg, const char *instance), void *arg) {
    if (forget && e->kind == CK_ENTRY_TABLE && e->table.instance && !e->rows_moved) forget(arg, e->table.instance);
    ck_arena_destroy(&e->arena);
    ck_free(mem, e, sizeof *e);
}

void ck_catalog_entry_discard(ck_catalog *c, ck_catalog_entry **e) {
    if (!*e) return;
    free_entry(plan_mem(c), *e, c->forget, c->forget_arg);
    *e = NULL;
}

static void insert(ck_catalog_entry **list, ck_catalog_entry *e) {
    while (*list && (*list)->order < e->order) list = &(*list)->next;
    e->next = *list;
    *list = e;
}

static void unlink_entry(ck_catalog_entry **list, const ck_catalog_entry *e) {
    while (*list != e) list = &(*list)->next;
    *list = e->next;
}

/* Into the catalog and out of it. */
static void link_entry(ck_catalog *c, ck_catalog_entry *e) {
    ck_catalog_entry **alike = &c->alike[bucket_of(ck_view_of(e->name))];
    e->next_alike = *alike;
    *alike = e;
    c->entry_count++;
    if (c->last && c->last->order < e->order) {
        e->next = NULL;
        c->last->next = e;
    } else {
        insert(&c->entries, e);
    }
    if (!e->next) c->last = e;
}

static void unlink_alike(ck_catalog *c, const ck_catalog_entry *e) {
    ck_catalog_entry **at = &c->alike[bucket_of(ck_view_of(e->name))];
    while (*at != e) at = &(*at)->next_alike;
    *at = e->next_alike;
    c->entry_count--;
    if (c->last == e) c->last = NULL; /* found again when it is needed */
}

static void find_last(ck_catalog *c) {
    for (ck_catalog_entry *e = c->entries; e && !c->last; e = e->next)
        if (!e->next) c->last = e;
}

void ck_catalog_add(ck_catalog *c, ck_catalog_entry *e) {
    e->order = c->next_order++;
    e->lineage = e->order;
    e->fresh = true;
    link_entry(c, e);
}

void ck_catalog_drop(ck_catalog *c, ck_catalog_entry *e) {
    unlink_entry(&c->entries, e);
    unlink_alike(c, e);
    find_last(c);
    insert(&c->dropped, e);
}

void ck_catalog_undrop(ck_catalog *c, ck_catalog_entry *e) {
    unlink_entry(&c->dropped, e);
    link_entry(c, e);
}

void ck_catalog_begin(ck_catalog *c) {
    for (ck_catalog_entry *e = c->entries; e; e = e->next) e->fresh = false;
    c->settings_before = c->settings;
}

void ck_catalog_commit(ck_catalog *c, ck_catalog_dropped *dropped) {
    *dropped = (ck_catalog_dropped){c->dropped, plan_mem(c), c->forget, c->forget_arg};
    c->dropped = NULL;
}

void ck_catalog_dropped_free(void *dropped) {
    ck_catalog_dropped *d = dropped;
    while (d->first) {
        ck_catalog_entry *e = d->first;
        d->first = e->next;
        free_entry(d->mem, e, d->forget, d->forget_arg);
    }
}

/* A table that comes back has its rows back from what ALTER made of it. */
static void take_rows_back(ck_catalog *c, ck_catalog_entry *e) {
    if (!e->rows_moved) return;
    e->rows_moved = false;
    for (ck_catalog_entry *made = c->entries; made; made = made->next)
        if (made != e && made->kind == CK_ENTRY_TABLE && made->lineage == e->lineage) made->rows_moved = true;
}

void ck_catalog_rollback(ck_catalog *c) {
    while (c->dropped) {
        ck_catalog_entry *e = c->dropped;
        c->dropped = e->next;
        link_entry(c, e);
        take_rows_back(c, e);
    }
    for (ck_catalog_entry **at = &c->entries; *at;) {
        ck_catalog_entry *e = *at;
        if (!e->fresh) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        unlink_alike(c, e);
        ck_catalog_entry_discard(c, &e);
    }
    find_last(c);
    c->settings = c->settings_before;
}
