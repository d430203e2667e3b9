/* See rebuild_int.h. Rows go by their stored form: those of a slot found as bytes get its types, those restored under
 * other index flags (hashed, bucketed, listed) or another time to live are built anew, changed values go the way the
 * comparison has found. */
#include "state/rebuild_int.h"

#include "state/stored_int.h"

enum { EXPIRY_BYTES = 8, LENGTH_BYTES = 4 };

typedef struct rebuild {
    ck_table *to;
    const ck_state_slot *slot;
    ck_state_store *store;
    const ck_slot_way *way;
    ck_bytes key, value; /* as stored */
    ck_bytes scratch[2]; /* of the chain */
    bool step_failed;    /* err says why */
    ck_error *err;
} rebuild;

static bool has_chain(const rebuild *r) { return r->way->chain && r->way->chain->count; }

/* What a step sees of a value: neither the time it expires at nor the length of opaque bytes. */
static ck_status content_of(const rebuild *r, bool opaque, ck_view *out) {
    ck_view v = ck_bytes_as_view(&r->value);
    size_t head = (r->to->shape->schema->ttl_us ? EXPIRY_BYTES : 0u) + (opaque ? LENGTH_BYTES : 0u);
    if (head > v.n) return CK_CORRUPT;
    *out = v.n > head ? (ck_view){v.p + head, v.n - head} : (ck_view){"", 0};
    return CK_OK;
}

/* r->value, which has the head of the new schema's slot, gets this behind it. */
static ck_status set_content(rebuild *r, ck_view content) {
    const ck_slot_schema *to = r->to->shape->schema;
    r->value.n = to->ttl_us ? EXPIRY_BYTES : 0u;
    if (ck_slot_is_opaque(to)) {
        if (content.n > UINT32_MAX) return CK_FULL;
        CK_TRY(ck_bytes_u32le(&r->value, (uint32_t)content.n));
    }
    return ck_bytes_view(&r->value, content);
}

static ck_status migrate_value(rebuild *r, bool opaque) {
    ck_view content;
    CK_TRY(content_of(r, opaque, &content));
    ck_status s =
        ck_migration_run(r->way->chain, r->to->shape->schema->state_type, content, r->scratch, &content, r->err);
    r->step_failed = s != CK_OK;
    return s == CK_OK ? set_content(r, content) : s;
}

static ck_status typed_row(rebuild *r, const ck_table *from, const ck_row *row) {
    const ck_slot_schema *was = from->shape->schema;
    ck_var_source v = {.pages = from->var.pages};
    uint32_t n;
    CK_TRY(ck_key_rest_encode(from->shape, v, row, &r->key, &n));
    CK_TRY(r->way->value_of ? ck_value_encode_as(from->shape, v, row, r->to->shape, r->way->value_of, &r->value)
                            : ck_value_encode(from->shape, v, row, &r->value));
    CK_TRY(ck_ttl_convert(was, r->to->shape->schema, &r->value));
    return has_chain(r) ? migrate_value(r, ck_slot_is_opaque(was)) : CK_OK;
}

/* Rows nobody described are another writer's: opaque values are the bytes alone. */
static ck_status raw_row(rebuild *r, const ck_table *from, const ck_row *row) {
    ck_view stored = ck_var_get(from, row, from->shape->fields[0].offset);
    size_t head = (ck_one_byte_groups(r->store->cfg.key_groups) ? 1u : 2u) + strlen(r->slot->name);
    if (stored.n > head) head++; /* '|' or newline */
    CK_TRY(ck_bytes_append(&r->key, stored.p + head, stored.n - head));
    CK_TRY(ck_bytes_view(&r->value, ck_var_get(from, row, from->shape->fields[1].offset)));
    if (has_chain(r)) return migrate_value(r, false);
    if (!ck_slot_is_opaque(r->to->shape->schema)) return CK_OK;
    ck_view content;
    CK_TRY(content_of(r, false, &content));
    ck_bytes_clear(&r->scratch[0]);
    CK_TRY(ck_bytes_view(&r->scratch[0], content));
    return set_content(r, ck_bytes_as_view(&r->scratch[0]));
}

static ck_status one_row(rebuild *r, const ck_table *from, const ck_row *row) {
    ck_bytes_clear(&r->key);
    ck_bytes_clear(&r->value);
    CK_TRY(r->slot->raw ? raw_row(r, from, row) : typed_row(r, from, row));
    const ck_stored_put put = {ck_bytes_as_view(&r->key), ck_bytes_as_view(&r->value), 0};
    return ck_table_stored_put(r->to, &put, UINT32_MAX);
}

static ck_status all_rows(rebuild *r, ck_table *from) {
    ck_table_scan scan = {0};
    ck_row *rows[64];
    for (uint32_t n; (n = ck_table_scan_next(from, &scan, rows, 64)) > 0;) {
        const ck_table *owner = ck_scanned_table(from, &scan);
        for (uint32_t i = 0; i < n; i++) CK_TRY(one_row(r, owner, rows[i]));
        if (from->cold) CK_TRY(ck_cold_relieve(r->to));
    }
    return from->cold ? ck_cold_check(from->cold, NULL) : CK_OK;
}

static ck_status failed(const rebuild *r, const ck_state *st, ck_status s) {
    ck_error *err = r->err;
    const char *uid = r->way->uid ? r->way->uid : st->uid;
    if (r->step_failed) {
        (void)ck_error_prefix(err, "operator '%s', slot \"%s\": ", uid, r->slot->name);
        return s;
    }
    if (r->store->cold && ck_cold_check(r->store->cold, NULL) != CK_OK) return ck_cold_check(r->store->cold, err);
    if (s == CK_CORRUPT && has_chain(r))
        return ck_fail(err, CK_REFUSED,
                       "operator '%s', slot \"%s\": what the steps of state type '%s' give is no value of version %u",
                       uid, r->slot->name, r->to->shape->schema->state_type, r->to->shape->schema->version);
    if (s == CK_CORRUPT)
        return ck_fail(err, CK_REFUSED, "operator '%s', slot \"%s\": stored rows do not fit its schema", uid,
                       r->slot->name);
    return ck_nomem(err, r->store->mem, ck_table_bytes(r->slot->table));
}

static ck_status build(ck_state *st, ck_state_slot *made, rebuild *r) {
    ck_state_store *s = st->store;
    if (s->cold) CK_TRY(ck_cold_adopt(s->cold, made->table, r->err));
    if (made->shape->ordered) CK_TRY(ck_slot_add_partitions(s, made, r->err));
    ck_bytes *const all[] = {&r->key, &r->value, &r->scratch[0], &r->scratch[1]};
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) ck_bytes_init(all[i], s->mem, SIZE_MAX);
    ck_status status = all_rows(r, r->slot->table);
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) ck_bytes_destroy(all[i]);
    return status == CK_OK ? CK_OK : failed(r, st, status);
}

ck_status ck_slot_build_rows(ck_state *st, ck_state_slot *slot, const ck_slot_schema *schema, const ck_slot_way *way,
                             ck_slot_build *out, ck_error *err) {
    ck_state_store *s = st->store;
    *out = (ck_slot_build){st, slot, *slot};
    CK_TRY(ck_shape_new(&s->arena, schema, &out->made.shape, err));
    if (way->renamed) CK_TRY(ck_state_slot_name(s, &out->made, err));
    CK_TRY(ck_table_new(&s->epochs, s->mem, out->made.shape, s->cfg.hash_seed, &out->made.table, err));
    out->made.raw = false;
    rebuild r = {.to = out->made.table, .slot = slot, .store = s, .way = way, .err = err};
    ck_status status = build(st, &out->made, &r);
    if (status != CK_OK) ck_slot_build_drop(out);
    return status;
}

ck_status ck_slot_build_adopt(ck_slot_build *b, ck_error *err) {
    ck_state_store *s = b->st->store;
    ck_status status = b->slot->table->cold ? ck_cold_forget(b->slot->table) : CK_OK;
    ck_table_free(b->slot->table);
    s->last_slot = NULL, s->last_prefix.n = 0;
    b->made.next = b->slot->next;
    *b->slot = b->made;
    if (status == CK_OK) return CK_OK;
    return ck_cold_check(s->cold, NULL) != CK_OK ? ck_cold_check(s->cold, err) : ck_nomem(err, s->mem, 0);
}

void ck_slot_build_drop(ck_slot_build *b) {
    ck_status s = b->made.table->cold ? ck_cold_forget(b->made.table) : CK_OK;
    (void)s; /* the store knows, and nothing goes on with it */
    ck_table_free(b->made.table);
    b->made.table = NULL;
}
