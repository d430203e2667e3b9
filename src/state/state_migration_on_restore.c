/* See state_migration_on_restore.h. */
#include "state/state_migration_on_restore.h"

#include <inttypes.h>

/* ---- one slot ---- */

typedef struct planning {
    ck_arena *arena;
    const ck_state_migrations *m;
    const ck_slot_schema *stored, *wanted;
    ck_slot_plan *out;
} planning;

static ck_status refuse(planning *p, const char *why) {
    p->out->verdict = CK_SLOT_REFUSED;
    return (p->out->what = why) ? CK_OK : CK_NOMEM;
}

static const char *type_of(const ck_slot_schema *s) { return s->state_type ? s->state_type : ""; }

static ck_value_fields values_of(const ck_slot_schema *s) { return (ck_value_fields){s->values, s->value_count}; }

static ck_status check_type(planning *p) {
    const ck_slot_schema *s = p->stored, *w = p->wanted;
    if (s->mode != w->mode) return refuse(p, "it is stored as another kind of state");
    if (strcmp(ck_state_type_now(p->m, s->state_type), ck_state_type_now(p->m, w->state_type)) == 0) return CK_OK;
    return refuse(p, ck_arena_printf(p->arena, "it is stored as type '%s', this job has '%s'", type_of(s), type_of(w)));
}

/* The version of a slot nobody stamped, by what it describes: 1, or what cannot be told. */
static ck_status find_version(planning *p) {
    const ck_value_fields *first = ck_state_schema_of(p->m, type_of(p->wanted), CK_STATE_VERSION_DEFAULT);
    p->out->from = CK_STATE_VERSION_DEFAULT;
    if (first || ck_slot_is_opaque(p->stored) || p->wanted->version == CK_STATE_VERSION_DEFAULT ||
        p->wanted->reads_from == CK_STATE_VERSION_DEFAULT)
        return CK_OK;
    return refuse(p,
                  ck_arena_printf(p->arena,
                                  "it is stored without a version, this job has type '%s' in version %u, and no layout "
                                  "of version 1 is known to hold it against",
                                  type_of(p->wanted), p->wanted->version));
}

/* A slot that describes itself must look as its version is known to look. */
static ck_status check_layout(planning *p) {
    const ck_value_fields *known = ck_state_schema_of(p->m, type_of(p->wanted), p->out->from);
    if (!known || ck_value_fields_eq(*known, values_of(p->stored))) return CK_OK;
    return refuse(p, ck_arena_printf(p->arena, "its stored layout is not that of type '%s' in version %u",
                                     type_of(p->stored), p->out->from));
}

static ck_status find_chain(planning *p) {
    ck_slot_plan *out = p->out;
    if (p->wanted->reads_from && out->from >= p->wanted->reads_from && out->from <= out->to) return CK_OK;
    ck_status s = ck_state_migrations_plan(p->m, p->arena, type_of(p->wanted), out->from, out->to, &out->chain);
    if (s != CK_NOTFOUND) return s;
    return refuse(p, out->from > out->to
                         ? ck_arena_printf(p->arena, "type '%s' is stored in version %u, this job knows up to %u",
                                           type_of(p->wanted), out->from, out->to)
                         : ck_arena_printf(p->arena,
                                           "type '%s' is stored in version %u, and no migration leads from there to %u",
                                           type_of(p->wanted), out->from, out->to));
}

/* Keys, and without a chain the values too, by the rules of changed slots. */
static ck_status compare(planning *p) {
    ck_slot_schema stored = *p->stored;
    ck_slot_change c;
    stored.state_type = p->wanted->state_type ? p->wanted->state_type : "";
    stored.version = p->wanted->version;
    if (p->out->chain.count) stored.values = p->wanted->values, stored.value_count = p->wanted->value_count;
    CK_TRY(ck_slot_compare(p->arena, &stored, p->wanted, &c));
    p->out->verdict = c.verdict, p->out->what = c.what, p->out->value_of = c.value_of;
    return CK_OK;
}

static ck_status say_chain(planning *p) {
    ck_slot_plan *out = p->out;
    if (!out->chain.count || out->verdict == CK_SLOT_REFUSED) return CK_OK;
    out->verdict = CK_SLOT_CONVERTS;
    out->value_of = NULL;
    out->what = ck_arena_printf(p->arena, "'%s' version %u -> %u%s%s", type_of(p->wanted), out->from, out->to,
                                *out->what ? "; " : "", out->what);
    return out->what ? CK_OK : CK_NOMEM;
}

static ck_status plan_described(planning *p) {
    ck_slot_plan *out = p->out;
    CK_TRY(check_type(p));
    if (out->verdict != CK_SLOT_REFUSED && !out->from) CK_TRY(find_version(p));
    if (out->verdict != CK_SLOT_REFUSED) CK_TRY(check_layout(p));
    if (out->verdict != CK_SLOT_REFUSED) CK_TRY(find_chain(p));
    return out->verdict != CK_SLOT_REFUSED ? compare(p) : CK_OK;
}

ck_status ck_slot_plan_of(ck_arena *a, const ck_state_migrations *m, const ck_slot_schema *stored, uint32_t version,
                          const ck_slot_schema *wanted, ck_slot_plan *out) {
    planning p = {a, m, stored, wanted, out};
    *out = (ck_slot_plan){.verdict = CK_SLOT_SAME, .what = "", .from = version, .to = wanted->version};
    if (stored) {
        CK_TRY(plan_described(&p));
    } else {
        if (!version) out->from = CK_STATE_VERSION_DEFAULT;
        CK_TRY(find_chain(&p));
    }
    return say_chain(&p);
}

/* ---- all slots against a checkpoint ---- */

static const ck_stored_slot *find(const ck_stored_state *st, uint64_t op_id, const char *slot) {
    for (uint32_t i = 0; slot && i < st->slot_count; i++)
        if (st->slots[i].op_id == op_id && strcmp(st->slots[i].schema->slot, slot) == 0) return &st->slots[i];
    return NULL;
}

const ck_stored_slot *ck_stored_slot_of(const ck_stored_state *stored, const ck_state_migrations *m,
                                        const ck_expected_slot *want) {
    const char *state_type = type_of(want->schema), *name = want->schema->slot;
    if (want->schema->origin.was) name = want->schema->origin.was;
    const ck_stored_slot *s = find(stored, want->op_id, name);
    /* A name may have changed more than once; a circle ends where it began. */
    for (uint32_t i = 0; !s && name && i < CK_MIGRATIONS_MAX; i++) {
        name = ck_state_slot_before(m, state_type, name);
        s = find(stored, want->op_id, name);
    }
    return s;
}

/* By the names the type has or had; an entry of the slot itself goes before those of all slots. */
static uint32_t stamp_of(const ck_version_map *v, const ck_state_migrations *m, uint64_t op_id, const char *state_type,
                         const char *slot) {
    const char *now = ck_state_type_now(m, state_type);
    uint32_t of_all = 0;
    for (uint32_t i = 0; v && i < ck_version_map_count(v); i++) {
        const ck_state_version *e = ck_version_map_at(v, i);
        if (e->op_id != op_id || strcmp(ck_state_type_now(m, e->state_type), now) != 0) continue;
        if (e->slot && strcmp(e->slot, slot) == 0) return e->version;
        if (!e->slot) of_all = e->version;
    }
    return of_all;
}

ck_status ck_slot_plan_expected(ck_arena *a, const ck_stored_state *stored, const ck_state_migrations *m,
                                const ck_expected_slot *want, ck_slot_plan *plan, bool *there) {
    const ck_stored_slot *s = ck_stored_slot_of(stored, m, want);
    const char *slot = s ? s->schema->slot : want->schema->slot, *state_type = type_of(want->schema);
    uint32_t version = stamp_of(stored->versions, m, want->op_id, state_type, slot);
    *there = s || stored->silent || version;
    if (!*there) return CK_OK;
    bool described = s && !s->raw;
    if (described && s->schema->version) version = s->schema->version;
    return ck_slot_plan_of(a, m, described ? s->schema : NULL, version, want->schema, plan);
}

const ck_expected_slot *ck_expected_slot_rival(const ck_stored_state *stored, const ck_state_migrations *m,
                                               const ck_expected_slot *expected, uint32_t count,
                                               const ck_expected_slot *of) {
    const ck_stored_slot *s = ck_stored_slot_of(stored, m, of);
    for (uint32_t i = 0; s && i < count; i++)
        if (&expected[i] != of && expected[i].op_id == of->op_id && ck_stored_slot_of(stored, m, &expected[i]) == s)
            return &expected[i];
    return NULL;
}

static ck_status refuse_rival(ck_arena *a, const ck_expected_slot *rival, ck_slot_plan *plan) {
    if (!rival) return CK_OK;
    plan->verdict = CK_SLOT_REFUSED;
    plan->what = ck_arena_printf(a, "\"%s\" goes on from the same stored slot", rival->schema->slot);
    return plan->what ? CK_OK : CK_NOMEM;
}

ck_status ck_check_restore_compatibility(ck_arena *a, const ck_stored_state *stored, const ck_expected_slot *expected,
                                         uint32_t expected_count, const ck_state_migrations *m,
                                         const ck_incompatible_slot **out, uint32_t *count) {
    ck_incompatible_slot *list = ck_arena_array(a, expected_count + 1u, sizeof *list);
    *out = list, *count = 0;
    if (!list) return CK_NOMEM;
    for (uint32_t i = 0; i < expected_count; i++) {
        const ck_expected_slot *want = &expected[i];
        ck_slot_plan plan;
        bool there;
        CK_TRY(ck_slot_plan_expected(a, stored, m, want, &plan, &there));
        if (there) CK_TRY(refuse_rival(a, ck_expected_slot_rival(stored, m, expected, expected_count, want), &plan));
        if (!there || plan.verdict != CK_SLOT_REFUSED) continue;
        list[(*count)++] = (ck_incompatible_slot){.op_id = want->op_id,
                                                  .uid = want->uid,
                                                  .state_type = type_of(want->schema),
                                                  .slot = want->schema->slot,
                                                  .from = plan.from,
                                                  .to = plan.to,
                                                  .why = plan.what};
    }
    return CK_OK;
}
