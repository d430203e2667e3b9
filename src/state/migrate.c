/* ck_migrate_restored_state, see state_migration_on_restore.h: compared first, then built beside what is there, then
 * put in its place. Until the last step nothing of the store has changed. */
#include "state/rebuild_int.h"
#include "state/state_migration_on_restore.h"

typedef struct migrating {
    ck_state_store *store;
    const ck_state_migrations *m;
    ck_arena *arena;
    ck_stored_state stored; /* of the store */
    ck_slot_build *builds;
    uint32_t count;
    ck_error *err;
} migrating;

static ck_status nomem(migrating *g) { return ck_nomem(g->err, g->store->mem, 0); }

static ck_status describe(migrating *g) {
    ck_stored_slot *slots = ck_arena_array(g->arena, g->store->slot_count + 1u, sizeof *slots);
    uint32_t n = 0;
    if (!slots) return nomem(g);
    for (const ck_state *st = g->store->ops; st; st = st->next)
        for (const ck_state_slot *slot = st->slots; slot; slot = slot->next)
            slots[n++] = (ck_stored_slot){st->op_id, st->uid, st->op_type, slot->shape->schema, slot->raw};
    g->stored = (ck_stored_state){.slots = slots, .slot_count = n, .versions = &g->store->versions};
    return CK_OK;
}

static ck_status check(migrating *g, const ck_expected_slot *expected, uint32_t count) {
    const ck_incompatible_slot *bad;
    uint32_t bad_count;
    if (ck_check_restore_compatibility(g->arena, &g->stored, expected, count, g->m, &bad, &bad_count) != CK_OK)
        return nomem(g);
    if (bad_count == 0) return CK_OK;
    return ck_fail(g->err, CK_REFUSED, "operator '%s', slot \"%s\": %s", bad[0].uid, bad[0].slot, bad[0].why);
}

/* The slot as it is, under the version it was found to be of. */
static ck_status restamp(migrating *g, ck_state_slot *slot, uint32_t version) {
    ck_slot_schema *copy = CK_ARENA_NEW(&g->store->arena, ck_slot_schema);
    if (!copy) return nomem(g);
    *copy = *slot->shape->schema;
    copy->version = version;
    slot->shape->schema = copy;
    return CK_OK;
}

static ck_status build(migrating *g, const ck_expected_slot *want) {
    const ck_stored_slot *found = ck_stored_slot_of(&g->stored, g->m, want);
    ck_state *st = ck_state_find(g->store, want->op_id);
    ck_state_slot *slot = found && st ? ck_slot_find(st, ck_view_of(found->schema->slot)) : NULL;
    if (!slot) return CK_OK;
    ck_slot_plan plan;
    bool renamed = strcmp(slot->name, want->schema->slot) != 0, there;
    if (ck_slot_plan_expected(g->arena, &g->stored, g->m, want, &plan, &there) != CK_OK) return nomem(g);
    bool as_it_is =
        plan.verdict == CK_SLOT_SAME && !slot->raw && !renamed &&
        strcmp(slot->shape->schema->state_type, want->schema->state_type ? want->schema->state_type : "") == 0;
    if (as_it_is && slot->shape->schema->version != plan.to) CK_TRY(restamp(g, slot, plan.to));
    if (as_it_is && !ck_slot_found_otherwise(slot, want->schema)) return CK_OK;
    const ck_slot_way way = {.uid = want->uid,
                             .value_of = plan.verdict == CK_SLOT_CONVERTS ? plan.value_of : NULL,
                             .chain = &plan.chain,
                             .renamed = renamed};
    CK_TRY(ck_slot_build_rows(st, slot, want->schema, &way, &g->builds[g->count], g->err));
    g->count++;
    return CK_OK;
}

/* A slot that describes itself carries its version in its schema; the map is for the others. Old names go with it. */
static ck_status stamp(migrating *g, const ck_expected_slot *expected, uint32_t count) {
    const ck_version_map was = g->store->versions;
    ck_version_map *now = &g->store->versions;
    ck_version_map_init(now, &g->store->arena);
    for (uint32_t i = 0; i < ck_version_map_count(&was); i++) {
        const ck_state_version *v = ck_version_map_at(&was, i);
        ck_state *st = ck_state_find(g->store, v->op_id);
        const ck_state_slot *slot = st && v->slot ? ck_slot_find(st, ck_view_of(v->slot)) : NULL;
        if (v->slot && !(slot && slot->raw)) continue;
        if (ck_version_map_stamp(now, v) != CK_OK) return nomem(g);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ck_slot_schema *w = expected[i].schema;
        const ck_state_version v = {expected[i].op_id, w->state_type, w->version, w->slot};
        if (ck_version_map_stamp(now, &v) != CK_OK) return nomem(g);
    }
    return CK_OK;
}

static ck_status migrate(migrating *g, const ck_expected_slot *expected, uint32_t count) {
    CK_TRY(describe(g));
    CK_TRY(check(g, expected, count));
    if (!(g->builds = ck_arena_array(g->arena, count + 1u, sizeof *g->builds))) return nomem(g);
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < count && s == CK_OK; i++) s = build(g, &expected[i]);
    if (s != CK_OK) {
        for (uint32_t i = 0; i < g->count; i++) ck_slot_build_drop(&g->builds[i]);
        return s;
    }
    for (uint32_t i = 0; i < g->count; i++) {
        ck_status adopted = ck_slot_build_adopt(&g->builds[i], s == CK_OK ? g->err : NULL);
        if (s == CK_OK) s = adopted;
    }
    return s == CK_OK ? stamp(g, expected, count) : s;
}

ck_status ck_migrate_restored_state(ck_state_store *s, const ck_expected_slot *expected, uint32_t count,
                                    const ck_state_migrations *m, ck_error *err) {
    ck_arena scratch;
    CK_ASSERT(!s->marks); /* before the first barrier */
    ck_arena_init(&scratch, s->mem, SIZE_MAX);
    migrating g = {.store = s, .m = m, .arena = &scratch, .err = err};
    ck_status status = migrate(&g, expected, count);
    ck_arena_destroy(&scratch);
    return status;
}
