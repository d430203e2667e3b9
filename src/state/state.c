/* See state.h. */
#include "state/state_int.h"

#include "state/rebuild_int.h"
#include "state/slot_change.h"
#include "state/tree_int.h"

/* ---- store ---- */

ck_status ck_state_store_new(const ck_state_config *cfg, ck_state_store **out, ck_error *err) {
    if (cfg->key_groups < 1 || cfg->key_groups > CK_KEY_GROUPS_MAX)
        return ck_fail(err, CK_INVALID, "%u key groups: 1 to %d are possible", cfg->key_groups, CK_KEY_GROUPS_MAX);
    ck_mem mem = ck_mem_as(cfg->mem, CK_MEM_STATE);
    ck_state_store *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->cfg = *cfg, s->mem = mem;
    ck_arena_init(&s->arena, mem, SIZE_MAX);
    ck_version_map_init(&s->versions, &s->arena);
    ck_page_pool_init(&s->pool, mem);
    s->epochs = s->hidden_epochs = (ck_epochs){.pool = &s->pool, .mem = mem, .epoch = 1, .snapshots = cfg->snapshots};
    *out = s;
    return CK_OK;
}

ck_status ck_state_spill_to(ck_state_store *s, const char *dir, ck_error *err) {
    CK_ASSERT(!s->pool.spill && s->pool.used_bytes == 0);
    const char *copy = ck_arena_strdup(&s->arena, dir);
    if (!copy) return ck_nomem(err, s->mem, strlen(dir) + 1);
    return ck_page_pool_spill_to(&s->pool, copy, s->cfg.proc && s->cfg.proc->spills_all, err);
}

void ck_state_store_free(ck_state_store *s) {
    if (!s) return;
    CK_ASSERT(!s->marks);
    for (ck_state *st = s->ops; st; st = st->next)
        for (ck_state_slot *slot = st->slots; slot; slot = slot->next) ck_table_free(slot->table);
    ck_cold_free(s->cold);
    ck_page_pool_destroy(&s->pool);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

size_t ck_state_bytes(const ck_state_store *s) {
    size_t n = s->arena.bytes;
    for (const ck_state *st = s->ops; st; st = st->next)
        for (const ck_state_slot *slot = st->slots; slot; slot = slot->next) n += ck_table_bytes(slot->table);
    return n;
}

size_t ck_state_spilled_bytes(const ck_state_store *s) { return s->pool.spill ? ck_spill_bytes(s->pool.spill) : 0; }

/* What one step may copy before the next look: an eighth of the limit, at least 1 MiB, at most 16. */
bool ck_state_must_wait(const ck_state_store *s) {
    size_t limit = s->mem.budget->limit;
    if (!s->marks || limit == 0 || s->pool.spill) return false; /* copies spill too */
    size_t reserve = limit / 8;
    reserve = reserve < 1u << 20 ? 1u << 20 : reserve > 16u << 20 ? 16u << 20 : reserve;
    size_t total = ck_budget_total(s->mem.budget);
    return total > limit || limit - total < reserve;
}

void ck_state_each_table(ck_state_store *s, void (*fn)(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t),
                         void *arg) {
    for (ck_state *st = s->ops; st; st = st->next)
        for (ck_state_slot *slot = st->slots; slot; slot = slot->next) {
            fn(arg, st, slot, slot->table);
            for (uint32_t i = 0; i < slot->table->bucket_count; i++) fn(arg, st, slot, slot->table->buckets[i]);
        }
}

/* ---- operators ---- */

ck_key_group_range ck_state_range(const ck_state *st) { return st->store->cfg.range; }

ck_state *ck_state_find(ck_state_store *s, uint64_t op_id) {
    ck_state *st = s->ops;
    while (st && st->op_id != op_id) st = st->next;
    return st;
}

ck_status ck_state_make(ck_state_store *s, uint64_t op_id, const char *uid, const char *op_type, ck_state **out,
                        ck_error *err) {
    ck_state *st = ck_state_find(s, op_id);
    bool named = st && *st->uid;
    if (named && *uid && strcmp(st->uid, uid) != 0)
        return ck_fail(err, CK_REFUSED, "operators '%s' and '%s' have the same id %llu; give one of them another uid",
                       st->uid, uid, (unsigned long long)op_id);
    if (!st || (!named && *uid)) {
        const char *uid_copy = ck_arena_strdup(&s->arena, uid), *type_copy = ck_arena_strdup(&s->arena, op_type);
        ck_state *fresh = st ? st : CK_ARENA_NEW(&s->arena, ck_state);
        if (!uid_copy || !type_copy || !fresh) return ck_nomem(err, s->mem, sizeof *st);
        if (!st) {
            *fresh = (ck_state){.store = s, .op_id = op_id};
            ck_state **end = &s->ops;
            while (*end) end = &(*end)->next;
            *end = fresh;
        }
        fresh->uid = uid_copy, fresh->op_type = type_copy;
        st = fresh;
    }
    *out = st;
    return CK_OK;
}

ck_status ck_state_of(ck_state_store *s, const char *uid, const char *op_type, ck_state **out, ck_error *err) {
    return ck_state_make(s, ck_op_id(uid), uid, op_type ? op_type : "", out, err);
}

/* ---- slots ---- */

ck_state_slot *ck_slot_find(const ck_state *st, ck_view name) {
    ck_state_slot *slot = st->slots;
    while (slot && !ck_view_is(name, slot->name)) slot = slot->next;
    return slot;
}

ck_status ck_slot_add_partitions(ck_state_store *s, ck_state_slot *slot, ck_error *err) {
    ck_shape *hidden;
    CK_TRY(ck_shape_partitions(&s->arena, slot->shape, sizeof(ck_partition_head), &hidden, err));
    return ck_table_new(&s->hidden_epochs, s->mem, hidden, s->cfg.hash_seed, &slot->table->partitions, err);
}

ck_status ck_state_slot_name(ck_state_store *s, ck_state_slot *slot, ck_error *err) {
    slot->name = slot->shape->schema->slot;
    slot->prefix[0] = ck_arena_printf(&s->arena, "%s\n", slot->name);
    slot->prefix[1] = ck_arena_printf(&s->arena, "%s|", slot->name);
    return slot->prefix[0] && slot->prefix[1] ? CK_OK : ck_nomem(err, s->mem, 0);
}

ck_status ck_slot_make(ck_state *st, const ck_slot_schema *schema, bool raw, ck_state_slot **out, ck_error *err) {
    ck_state_store *s = st->store;
    if (s->slot_count >= CK_SLOTS_MAX) return ck_fail(err, CK_FULL, "more than %d slots in one subtask", CK_SLOTS_MAX);
    ck_state_slot *slot = CK_ARENA_NEW(&s->arena, ck_state_slot);
    if (!slot) return ck_nomem(err, s->mem, sizeof *slot);
    *slot = (ck_state_slot){.raw = raw};
    CK_TRY(ck_shape_new(&s->arena, schema, &slot->shape, err));
    CK_TRY(ck_state_slot_name(s, slot, err));
    CK_TRY(ck_table_new(&s->epochs, s->mem, slot->shape, s->cfg.hash_seed, &slot->table, err));
    ck_status added = s->cold ? ck_cold_adopt(s->cold, slot->table, err) : CK_OK;
    if (added == CK_OK && slot->shape->ordered) added = ck_slot_add_partitions(s, slot, err);
    if (added != CK_OK) {
        ck_table_free(slot->table);
        return added;
    }
    ck_state_slot **end = &st->slots;
    while (*end) end = &(*end)->next;
    *end = slot;
    s->slot_count++;
    *out = slot;
    return CK_OK;
}

/* Other ways of finding rows, another time to live. */
bool ck_slot_found_otherwise(const ck_state_slot *slot, const ck_slot_schema *schema) {
    const ck_slot_schema *stored = slot->shape->schema;
    return stored->hashed != schema->hashed || stored->bucketed != schema->bucketed ||
           stored->listed != schema->listed || stored->ttl_us != schema->ttl_us;
}

static ck_status rebuild(ck_state *st, ck_state_slot *slot, const ck_slot_schema *schema, const uint32_t *value_of,
                         ck_error *err) {
    const ck_slot_way way = {.value_of = value_of};
    ck_slot_build b;
    CK_TRY(ck_slot_build_rows(st, slot, schema, &way, &b, err));
    return ck_slot_build_adopt(&b, err);
}

/* A slot stored under another schema: its rows become rows of this one, or it is refused. */
static ck_status slot_convert(ck_state *st, ck_state_slot *slot, const ck_slot_schema *schema, ck_error *err) {
    ck_slot_change change;
    ck_arena scratch;
    ck_arena_init(&scratch, st->store->mem, SIZE_MAX);
    ck_status s = ck_slot_compare(&scratch, slot->shape->schema, schema, &change);
    if (s != CK_OK)
        s = ck_nomem(err, st->store->mem, 0);
    else if (change.verdict == CK_SLOT_REFUSED)
        s = ck_fail(err, CK_REFUSED, "operator '%s', slot \"%s\": %s", st->uid, slot->name, change.what);
    else if (change.verdict == CK_SLOT_CONVERTS || ck_slot_found_otherwise(slot, schema))
        s = rebuild(st, slot, schema, change.verdict == CK_SLOT_CONVERTS ? change.value_of : NULL, err);
    ck_arena_destroy(&scratch);
    return s;
}

ck_status ck_state_table(ck_state *st, const ck_slot_schema *schema, ck_table **out, ck_error *err) {
    ck_state_slot *slot = ck_slot_find(st, ck_view_of(schema->slot));
    if (!slot) {
        CK_TRY(ck_slot_make(st, schema, false, &slot, err));
    } else if (slot->opened) {
        CK_TRY(ck_slot_agree(st->store->mem, st->uid, slot->shape->schema, schema, err));
    } else {
        CK_ASSERT(!st->store->marks); /* slots are opened before the first barrier */
        CK_TRY(slot->raw ? rebuild(st, slot, schema, NULL, err) : slot_convert(st, slot, schema, err));
    }
    slot->opened = true;
    *out = slot->table;
    return CK_OK;
}
