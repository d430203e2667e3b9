/* See state_migrations.h. */
#include "state/state_migrations.h"

#include "base/limits.h"

typedef struct version_schema {
    uint32_t version;
    ck_value_fields fields;
    struct version_schema *next;
} version_schema;

typedef struct step_entry {
    ck_migration_step step;
    struct step_entry *next; /* in order of registration */
} step_entry;

typedef struct type_entry {
    const char *name;
    step_entry *steps;
    version_schema *schemas;
    uint32_t count; /* steps and schemas */
} type_entry;

void ck_state_migrations_init(ck_state_migrations *m, ck_arena *a) {
    *m = (ck_state_migrations){.arena = a};
    ck_map_init(&m->types, a, false);
    ck_map_init(&m->type_names, a, false);
}

/* ---- names ---- */

const char *ck_state_type_now(const ck_state_migrations *m, const char *state_type) {
    const char *next, *name = state_type ? state_type : "";
    while (m && (next = ck_map_get(&m->type_names, ck_view_of(name)))) name = next; /* no circles: checked */
    return name;
}

static ck_status check_name(const char *what, const char *name, ck_error *err) {
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n > CK_NAME_BYTES_MAX || strpbrk(name, "|\n"))
        return ck_fail(err, CK_INVALID, "%s '%.*s' must have 1 to %d bytes, and no '|' and no newline", what,
                       (int)(n < 80 ? n : 80), name ? name : "", CK_NAME_BYTES_MAX);
    return CK_OK;
}

static ck_status nomem(const ck_state_migrations *m, ck_error *err) { return ck_nomem(err, m->arena->mem, 0); }

static ck_status count_one(ck_state_migrations *m, ck_error *err) {
    if (m->count >= CK_MIGRATIONS_MAX)
        return ck_fail(err, CK_FULL, "more than %d migration steps, schemas and renames", CK_MIGRATIONS_MAX);
    m->count++;
    return CK_OK;
}

/* What is known of a type that gets another name is known of it under that name. */
static void move_entry(ck_state_migrations *m, const char *from, type_entry *to) {
    type_entry *old = ck_map_get(&m->types, ck_view_of(from));
    if (!old || old == to) return;
    step_entry **steps = &to->steps;
    version_schema **schemas = &to->schemas;
    while (*steps) steps = &(*steps)->next;
    while (*schemas) schemas = &(*schemas)->next;
    *steps = old->steps, *schemas = old->schemas;
    to->count += old->count;
    old->steps = NULL, old->schemas = NULL, old->count = 0;
}

static ck_status type_of(ck_state_migrations *m, const char *state_type, type_entry **out, ck_error *err) {
    CK_TRY(check_name("state type", state_type, err));
    const char *name = ck_state_type_now(m, state_type);
    *out = ck_map_get(&m->types, ck_view_of(name));
    if (*out) return CK_OK;
    *out = CK_ARENA_NEW(m->arena, type_entry);
    if (!*out || !((*out)->name = ck_arena_strdup(m->arena, name)) ||
        ck_map_put(&m->types, ck_view_of(name), *out, NULL) != CK_OK)
        return nomem(m, err);
    return CK_OK;
}

ck_status ck_state_migrations_type_renamed(ck_state_migrations *m, const char *name, const char *from, ck_error *err) {
    CK_TRY(check_name("state type", name, err));
    CK_TRY(check_name("state type", from, err));
    const char *was = ck_map_get(&m->type_names, ck_view_of(from));
    if (was && strcmp(was, name) == 0) return CK_OK;
    if (was)
        return ck_fail(err, CK_EXISTS, "state type '%s' was renamed to '%s' already, not to '%s'", from, was, name);
    if (strcmp(ck_state_type_now(m, name), from) == 0)
        return ck_fail(err, CK_INVALID, "state type '%s' cannot be renamed from '%s': that is its own later name", name,
                       from);
    CK_TRY(count_one(m, err));
    type_entry *to;
    const char *copy = ck_arena_strdup(m->arena, name);
    CK_TRY(type_of(m, name, &to, err));
    if (!copy || ck_map_put(&m->type_names, ck_view_of(from), (void *)(uintptr_t)copy, NULL) != CK_OK)
        return nomem(m, err);
    move_entry(m, from, to);
    return CK_OK;
}

typedef struct slot_rename {
    const char *state_type, *slot, *from;
    struct slot_rename *next;
} slot_rename;

const char *ck_state_slot_before(const ck_state_migrations *m, const char *state_type, const char *slot) {
    const char *now = ck_state_type_now(m, state_type);
    for (const slot_rename *r = m ? m->slot_names : NULL; r; r = r->next) /* the type's name may have changed since */
        if (strcmp(r->slot, slot) == 0 && strcmp(ck_state_type_now(m, r->state_type), now) == 0) return r->from;
    return NULL;
}

ck_status ck_state_migrations_slot_renamed(ck_state_migrations *m, const char *state_type, const char *slot,
                                           const char *from, ck_error *err) {
    CK_TRY(check_name("state type", state_type, err));
    CK_TRY(check_name("slot", slot, err));
    CK_TRY(check_name("slot", from, err));
    if (strcmp(slot, from) == 0) return ck_fail(err, CK_INVALID, "slot '%s' cannot be renamed from itself", slot);
    const char *was = ck_state_slot_before(m, state_type, slot);
    if (was && strcmp(was, from) == 0) return CK_OK;
    if (was) return ck_fail(err, CK_EXISTS, "slot '%s' was renamed from '%s' already, not from '%s'", slot, was, from);
    CK_TRY(count_one(m, err));
    slot_rename *r = CK_ARENA_NEW(m->arena, slot_rename);
    if (!r) return nomem(m, err);
    *r = (slot_rename){ck_arena_strdup(m->arena, state_type), ck_arena_strdup(m->arena, slot),
                       ck_arena_strdup(m->arena, from), m->slot_names};
    if (!r->state_type || !r->slot || !r->from) return nomem(m, err);
    m->slot_names = r;
    return CK_OK;
}

/* ---- steps and schemas ---- */

ck_status ck_state_migrations_step(ck_state_migrations *m, const char *state_type, uint32_t from, uint32_t to,
                                   ck_migrate_fn fn, void *user, ck_error *err) {
    type_entry *t;
    CK_TRY(type_of(m, state_type, &t, err));
    if (from == 0 || to <= from || !fn)
        return ck_fail(err, CK_INVALID,
                       "state type '%s': a step from version %u to %u%s: versions begin at 1 and a step "
                       "goes to a later one",
                       state_type, from, to, fn ? "" : " without a function");
    step_entry **end = &t->steps;
    for (; *end; end = &(*end)->next)
        if ((*end)->step.from == from && (*end)->step.to == to)
            return ck_fail(err, CK_EXISTS, "state type '%s': the step from version %u to %u is registered twice",
                           state_type, from, to);
    CK_TRY(count_one(m, err));
    t->count++;
    if (!(*end = CK_ARENA_NEW(m->arena, step_entry))) return nomem(m, err);
    (*end)->step = (ck_migration_step){.from = from, .to = to, .fn = fn, .user = user};
    return CK_OK;
}

static const version_schema *schema_at(const type_entry *t, uint32_t version) {
    const version_schema *s = t ? t->schemas : NULL;
    while (s && s->version != version) s = s->next;
    return s;
}

const ck_value_fields *ck_state_schema_of(const ck_state_migrations *m, const char *state_type, uint32_t version) {
    if (!m) return NULL;
    const version_schema *s = schema_at(ck_map_get(&m->types, ck_view_of(ck_state_type_now(m, state_type))), version);
    return s ? &s->fields : NULL;
}

ck_status ck_state_migrations_schema(ck_state_migrations *m, const char *state_type, uint32_t version,
                                     ck_value_fields fields, ck_error *err) {
    type_entry *t;
    CK_TRY(type_of(m, state_type, &t, err));
    if (version == 0 || fields.count > CK_SQL_COLUMNS_MAX)
        return ck_fail(err, CK_INVALID,
                       "state type '%s': a schema of %u fields for version %u: versions begin at 1, and "
                       "%d fields are possible",
                       state_type, fields.count, version, CK_SQL_COLUMNS_MAX);
    const version_schema *was = schema_at(t, version);
    if (was && ck_value_fields_eq(was->fields, fields)) return CK_OK;
    if (was)
        return ck_fail(err, CK_EXISTS, "state type '%s': version %u has two different schemas", state_type, version);
    CK_TRY(count_one(m, err));
    t->count++;
    version_schema *s = CK_ARENA_NEW(m->arena, version_schema);
    ck_field *copy = ck_arena_array(m->arena, fields.count + 1u, sizeof *copy);
    if (!s || !copy) return nomem(m, err);
    for (uint32_t i = 0; i < fields.count; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(copy[k].name, fields.fields[i].name) == 0)
                return ck_fail(err, CK_INVALID, "state type '%s', version %u: two fields are called '%s'", state_type,
                               version, copy[k].name);
        copy[i] = fields.fields[i];
        if (!(copy[i].name = ck_arena_strdup(m->arena, fields.fields[i].name))) return nomem(m, err);
    }
    *s = (version_schema){version, {copy, fields.count}, t->schemas};
    t->schemas = s;
    return CK_OK;
}

/* ---- the way: breadth-first, so that a chain is the shortest, in order of registration ---- */

typedef struct node {
    uint32_t version;
    uint32_t parent; /* of the queue */
    ck_migration_step by;
} node;

typedef struct search {
    const type_entry *type;
    ck_arena *arena;
    node *queue; /* every version reached, once */
    uint32_t count, to;
    bool found;
} search;

static void reach(search *s, uint32_t parent, ck_migration_step by) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->queue[i].version == by.to) return;
    s->queue[s->count++] = (node){by.to, parent, by};
    s->found |= by.to == s->to;
}

static ck_status reach_additive(search *s, uint32_t parent, const version_schema *from) {
    for (const version_schema *to = s->type->schemas; to && !s->found; to = to->next) {
        ck_additive *change = CK_ARENA_NEW(s->arena, ck_additive);
        const char *why;
        if (to->version <= from->version) continue;
        if (!change) return CK_NOMEM;
        CK_TRY(ck_additive_of(s->arena, from->fields, to->fields, change, &why));
        if (!*why) reach(s, parent, (ck_migration_step){.from = from->version, .to = to->version, .additive = change});
    }
    return CK_OK;
}

static ck_status look_for(search *s, uint32_t from, bool additive) {
    s->count = 1, s->found = false;
    s->queue[0] = (node){.version = from};
    for (uint32_t at = 0; at < s->count && !s->found; at++) {
        const version_schema *schema = schema_at(s->type, s->queue[at].version);
        for (const step_entry *e = s->type->steps; e && !s->found; e = e->next)
            if (e->step.from == s->queue[at].version) reach(s, at, e->step);
        if (additive && schema && !s->found) CK_TRY(reach_additive(s, at, schema));
    }
    return CK_OK;
}

static ck_status chain_of(const search *s, ck_migration_chain *out) {
    uint32_t n = 0, at = s->count - 1; /* the last one reached is the goal */
    for (uint32_t i = at; i; i = s->queue[i].parent) n++;
    ck_migration_step *steps = ck_arena_array(s->arena, n, sizeof *steps);
    if (!steps) return CK_NOMEM;
    *out = (ck_migration_chain){steps, n};
    for (; n; at = s->queue[at].parent) steps[--n] = s->queue[at].by;
    return CK_OK;
}

ck_status ck_state_migrations_plan(const ck_state_migrations *m, ck_arena *a, const char *state_type, uint32_t from,
                                   uint32_t to, ck_migration_chain *out) {
    *out = (ck_migration_chain){0};
    if (from == to) return CK_OK;
    search s = {.arena = a, .to = to};
    if (m) s.type = ck_map_get(&m->types, ck_view_of(ck_state_type_now(m, state_type)));
    if (!s.type || to < from) return CK_NOTFOUND;
    if (!(s.queue = ck_arena_array(a, s.type->count + 1u, sizeof *s.queue))) return CK_NOMEM;
    CK_TRY(look_for(&s, from, false));
    if (!s.found) CK_TRY(look_for(&s, from, true));
    return s.found ? chain_of(&s, out) : CK_NOTFOUND;
}

ck_status ck_migration_run(const ck_migration_chain *c, const char *state_type, ck_view value, ck_bytes scratch[2],
                           ck_view *out, ck_error *err) {
    for (uint32_t i = 0; i < c->count; i++) {
        const ck_migration_step *step = &c->steps[i];
        ck_bytes *to = &scratch[i & 1];
        ck_bytes_clear(to);
        ck_status s = step->fn ? step->fn(step->user, value, to, err) : ck_additive_value(step->additive, value, to);
        if (s != CK_OK && (!err || err->status == CK_OK))
            (void)ck_fail(err, s, s == CK_CORRUPT ? "a value does not parse" : "it failed");
        if (s != CK_OK) {
            (void)ck_error_prefix(err, "state type '%s', version %u to %u: ", state_type, step->from, step->to);
            return s;
        }
        value = ck_bytes_as_view(to);
    }
    *out = value;
    return CK_OK;
}
