/* See plugins.h. */
#include "plugin/plugins.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "os/fs.h"
#include "expr/plugin_column.h"
#include "os/trial.h"
#include "plugin/note.h"

enum { FILE_BYTES_MAX = 512 << 20, TRIAL_MS = 20000, LIST_MAX = 10000 };

/* What version 1 of the ABI has at least: up to and with the member named. */
#define LEAST(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

void ck_plugins_init(ck_plugins *p, ck_arena *arena, ck_registry *registry) {
    *p = (ck_plugins){.arena = arena, .registry = registry};
}

/* ---- the gate ---- */

static ck_status check_note(ck_proc *proc, const char *path, ck_error *err) {
    ck_arena a;
    ck_view file;
    ck_plugin_note note;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), FILE_BYTES_MAX + (1 << 20));
    ck_status s = ck_fs_read_all(proc, path, FILE_BYTES_MAX, &a, &file, err);
    if (s == CK_OK) {
        s = ck_plugin_note_read(file, &note, err);
        if (s == CK_OK && note.abi != CLINK_PLUGIN_ABI)
            s = ck_fail(
                err, CK_REFUSED,
                "it is made for version %u of the plugin ABI, and this clink has version %u; build it again with "
                "this clink's plugin.h",
                note.abi, CLINK_PLUGIN_ABI);
        if (s != CK_OK) ck_error_prefix(err, "plugin %s: ", path);
    } else if (s == CK_NOTFOUND) {
        ck_fail(err, s, "plugin %s: there is no such file", path);
    } else if (s != CK_NOMEM) {
        ck_error_prefix(err, "plugin: ");
    }
    ck_arena_destroy(&a);
    return s;
}

/* dlopen searches for a name without a slash. */
static ck_status open_library(ck_arena *a, const char *path, const clink_plugin **out, ck_error *err) {
    const char *at = strchr(path, '/') ? path : ck_arena_printf(a, "./%s", path);
    if (!at) return ck_nomem(err, a->mem, strlen(path));
    void *handle = dlopen(at, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *why = dlerror();
        /* "./x.so: undefined symbol: y" names the file already */
        size_t n = strlen(at);
        if (why && strncmp(why, at, n) == 0 && strncmp(why + n, ": ", 2) == 0) why += n + 2;
        return ck_fail(err, CK_REFUSED, "plugin %s: it cannot be loaded: %s", path, why ? why : "nobody says why");
    }
    const clink_plugin *(*table)(void);
    void *symbol = dlsym(handle, "clink_plugin_table");
    if (!symbol)
        return ck_fail(err, CK_REFUSED, "plugin %s: it does not export clink_plugin_table: CLINK_PLUGIN(table) does",
                       path);
    memcpy(&table, &symbol, sizeof table);
    *out = table();
    return *out ? CK_OK : ck_fail(err, CK_REFUSED, "plugin %s: clink_plugin_table gave NULL", path);
}

/* ---- what crosses: copies of this build's size ---- */

/* A plugin made with an older header gives less, and the rest is zero. One made with a newer header may give more, as
 * long as it does not use it. */
static ck_status copy_struct(ck_plugins *p, const char *path, const char *what, const void *from, size_t least,
                             size_t ours, void **out, ck_error *err) {
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    if (bytes < least)
        return ck_fail(err, CK_REFUSED, "plugin %s: the struct_bytes of %s is %u, and %zu is the least", path, what,
                       bytes, least);
    for (size_t i = ours; i < bytes; i++)
        if (((const char *)from)[i])
            return ck_fail(
                err, CK_REFUSED,
                "plugin %s: %s has %u bytes and uses what this clink, which knows %zu, does not have; a newer "
                "clink does",
                path, what, bytes, ours);
    if (!(*out = ck_arena_zero(p->arena, ours))) return ck_nomem(err, p->arena->mem, ours);
    memcpy(*out, from, bytes < ours ? bytes : ours);
    return CK_OK;
}

static ck_status add_functions(ck_plugins *p, const char *path, const clink_plugin *t, ck_error *err) {
    for (size_t i = 0; t->functions && t->functions[i]; i++) {
        void *f;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of functions has no end", path);
        CK_TRY(copy_struct(p, path, "a function", t->functions[i], LEAST(clink_function, summary),
                           sizeof(clink_function), &f, err));
        CK_TRY(ck_library_add_function(&p->library, p->arena, t->name, f, err));
    }
    return CK_OK;
}

static ck_status add_aggregates(ck_plugins *p, const char *path, const clink_plugin *t, ck_error *err) {
    for (size_t i = 0; t->aggregates && t->aggregates[i]; i++) {
        void *f;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of aggregates has no end", path);
        CK_TRY(copy_struct(p, path, "an aggregate", t->aggregates[i], LEAST(clink_aggregate, summary),
                           sizeof(clink_aggregate), &f, err));
        CK_TRY(ck_library_add_aggregate(&p->library, p->arena, t->name, f, err));
    }
    return CK_OK;
}

static ck_status add_operators(ck_plugins *p, const char *path, const clink_plugin *t, ck_error *err) {
    for (size_t i = 0; t->operators && t->operators[i]; i++) {
        void *f;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of operators has no end", path);
        CK_TRY(copy_struct(p, path, "an operator", t->operators[i], LEAST(clink_operator, summary),
                           sizeof(clink_operator), &f, err));
        clink_operator *o = f;
        const clink_state **states = ck_arena_array(p->arena, o->state_count + 1u, sizeof(clink_state *));
        if (!states) return ck_nomem(err, p->arena->mem, o->state_count * sizeof(clink_state *));
        for (uint32_t k = 0; o->states && k < o->state_count && k < LIST_MAX; k++) {
            void *s;
            if (!o->states[k])
                return ck_fail(err, CK_REFUSED, "plugin %s: state %u of operator %s is NULL", path, k,
                               o->name ? o->name : "");
            CK_TRY(copy_struct(p, path, "a state", o->states[k], LEAST(clink_state, ttl_ms), sizeof(clink_state), &s,
                               err));
            states[k] = s;
        }
        if (o->states) o->states = states;
        CK_TRY(ck_library_add_operator(&p->library, p->arena, t->name, o, err));
    }
    return CK_OK;
}

/* A part of a connector, in this build's size; NULL stays NULL. */
static ck_status copy_part(ck_plugins *p, const char *path, const char *what, const void *from, size_t least,
                           size_t ours, const void **out, ck_error *err) {
    void *copy = NULL;
    if (from) CK_TRY(copy_struct(p, path, what, from, least, ours, &copy, err));
    *out = copy;
    return CK_OK;
}

static ck_status add_connectors(ck_plugins *p, const char *path, const clink_plugin *t, ck_error *err) {
    for (size_t i = 0; t->connectors && t->connectors[i]; i++) {
        void *f;
        const void *part;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of connectors has no end", path);
        CK_TRY(copy_struct(p, path, "a connector", t->connectors[i], LEAST(clink_connector, summary),
                           sizeof(clink_connector), &f, err));
        clink_connector *c = f;
        CK_TRY(copy_part(p, path, "a source", c->source, LEAST(clink_source, close), sizeof(clink_source), &part, err));
        c->source = part;
        CK_TRY(
            copy_part(p, path, "a sink", c->sink, LEAST(clink_sink, close_committer), sizeof(clink_sink), &part, err));
        c->sink = part;
        CK_TRY(ck_library_add_connector(&p->library, p->arena, t->name, c, err));
    }
    return CK_OK;
}

static ck_status add_jobs(ck_plugins *p, const char *path, const clink_plugin *t, ck_error *err) {
    for (size_t i = 0; t->jobs && t->jobs[i]; i++) {
        void *f;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of jobs has no end", path);
        CK_TRY(copy_struct(p, path, "a job", t->jobs[i], LEAST(clink_job_description, summary),
                           sizeof(clink_job_description), &f, err));
        const clink_job_description *d = f;
        if (!d->name || !*d->name || strlen(d->name) > 200 || !d->build)
            return ck_fail(err, CK_REFUSED, "plugin %s: a job has no name or no build", path);
        if (ck_plugins_job(p, d->name))
            return ck_fail(err, CK_REFUSED, "plugin %s has a job \"%s\", and there is one of this name already", path,
                           d->name);
        ck_plugin_job *j = CK_ARENA_NEW(p->arena, ck_plugin_job);
        if (!j) return ck_nomem(err, p->arena->mem, sizeof *j);
        *j = (ck_plugin_job){.description = d, .plugin = t->name};
        if (p->last_job)
            p->last_job->next = j;
        else
            p->jobs = j;
        p->last_job = j;
    }
    return CK_OK;
}

/* ---- state of earlier versions ---- */

static clink_status append(clink_migrated *to, const void *p, size_t n) {
    return ck_bytes_append(to->inside, p, n) == CK_OK ? CLINK_OK : CLINK_NOMEM;
}

static ck_status migrate(void *user, ck_view value, ck_bytes *out, ck_error *err) {
    const clink_migration *m = user;
    clink_migrated to = {append, out};
    clink_error said = {0};
    clink_status s = m->step((clink_bytes){value.p, value.n}, &to, &said);
    if (s == CLINK_OK) return CK_OK;
    return ck_fail(err, ck_plugin_status(s), "%s", said.message[0] ? said.message : "it failed and did not say why");
}

static ck_status add_migrations(ck_plugins *p, const char *path, const clink_plugin *t, ck_error *err) {
    for (size_t i = 0; t->migrations && t->migrations[i]; i++) {
        void *f;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of migrations has no end", path);
        CK_TRY(copy_struct(p, path, "a migration", t->migrations[i], LEAST(clink_migration, step),
                           sizeof(clink_migration), &f, err));
        const clink_migration *m = f;
        if (!m->state_type || !m->step)
            return ck_fail(err, CK_REFUSED, "plugin %s: a migration has no state_type or no step", path);
        ck_status s =
            ck_state_migrations_step(&p->registry->migrations, m->state_type, m->from, m->to, migrate, f, err);
        if (s != CK_OK) ck_error_prefix(err, "plugin %s: ", path);
        if (s != CK_OK) return s;
    }
    for (size_t i = 0; t->renames && t->renames[i]; i++) {
        void *f;
        if (i == LIST_MAX) return ck_fail(err, CK_REFUSED, "plugin %s: its list of renames has no end", path);
        CK_TRY(
            copy_struct(p, path, "a rename", t->renames[i], LEAST(clink_rename, from), sizeof(clink_rename), &f, err));
        const clink_rename *r = f;
        if (!r->state_type || !r->from)
            return ck_fail(err, CK_REFUSED, "plugin %s: a rename has no state_type or no name it was from", path);
        ck_status s =
            r->slot ? ck_state_migrations_slot_renamed(&p->registry->migrations, r->state_type, r->slot, r->from, err)
                    : ck_state_migrations_type_renamed(&p->registry->migrations, r->state_type, r->from, err);
        if (s != CK_OK) ck_error_prefix(err, "plugin %s: ", path);
        if (s != CK_OK) return s;
    }
    return CK_OK;
}

const ck_plugin_job *ck_plugins_job(const ck_plugins *p, const char *name) {
    for (const ck_plugin_job *j = p ? p->jobs : NULL; j; j = j->next)
        if (!*name || strcmp(j->description->name, name) == 0) return j;
    return NULL;
}

static ck_status enter(ck_plugins *p, const char *path, const clink_plugin *from, ck_error *err) {
    void *copy;
    CK_TRY(copy_struct(p, path, "its table", from, LEAST(clink_plugin, jobs), sizeof(clink_plugin), &copy, err));
    const clink_plugin *t = copy;
    if (t->abi != CLINK_PLUGIN_ABI)
        return ck_fail(err, CK_REFUSED,
                       "plugin %s: its table is of version %u of the plugin ABI, and this clink has version %u", path,
                       t->abi, CLINK_PLUGIN_ABI);
    if (!t->name || !*t->name || strlen(t->name) > 200)
        return ck_fail(err, CK_REFUSED, "plugin %s: its table has no name, or one of over 200 bytes", path);
    for (const char *c = t->name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return ck_fail(err, CK_REFUSED, "plugin %s: its table's name has a character that is not shown", path);
    for (const ck_plugin *other = p->first; other; other = other->next)
        if (strcmp(other->table->name, t->name) == 0)
            return ck_fail(err, CK_REFUSED, "plugin %s: %s is a plugin named %s already", path, other->path, t->name);
    ck_plugin *made = CK_ARENA_NEW(p->arena, ck_plugin);
    if (!made || !(made->path = ck_arena_strdup(p->arena, path))) return ck_nomem(err, p->arena->mem, sizeof *made);
    made->table = t;
    CK_TRY(add_functions(p, path, t, err));
    CK_TRY(add_aggregates(p, path, t, err));
    CK_TRY(add_operators(p, path, t, err));
    CK_TRY(add_connectors(p, path, t, err));
    CK_TRY(add_jobs(p, path, t, err));
    CK_TRY(add_migrations(p, path, t, err));
    if (p->last)
        p->last->next = made;
    else
        p->first = made;
    p->last = made;
    return CK_OK;
}

typedef struct loading {
    ck_plugins *plugins;
    const char *path;
} loading;

static ck_status load_now(void *arg, ck_error *err) {
    const loading *l = arg;
    const clink_plugin *table;
    CK_TRY(open_library(l->plugins->arena, l->path, &table, err));
    return enter(l->plugins, l->path, table, err);
}

ck_status ck_plugins_load(ck_plugins *p, ck_proc *proc, const char *path, ck_error *err) {
    loading l = {p, path};
    for (const ck_plugin *other = p->first; other; other = other->next)
        if (strcmp(other->path, path) == 0) return CK_OK;
    CK_TRY(check_note(proc, path, err));
    const char *what = ck_arena_printf(p->arena, "loading plugin %s", path);
    if (!what) return ck_nomem(err, p->arena->mem, strlen(path));
    CK_TRY(ck_trial(what, TRIAL_MS, load_now, &l, err));
    return load_now(&l, err);
}

ck_status ck_plugins_add(ck_plugins *p, const char *from, const clink_plugin *table, ck_error *err) {
    return enter(p, from, table, err);
}
