/* Stored rows into a store: see state.h. */
#include "state/mark.h"
#include "state/state_int.h"

#include "base/cursor.h"

enum { PIECE_ROWS = 64, PUTS_A_LOOK = 1024 }; /* a look: whether rows must leave memory */

ck_status ck_state_restore_slot(ck_state_store *s, uint64_t op_id, const char *uid, const char *op_type,
                                const ck_slot_schema *schema, ck_error *err) {
    ck_state *st;
    CK_TRY(ck_state_make(s, op_id, uid ? uid : "", op_type ? op_type : "", &st, err));
    ck_state_slot *slot = ck_slot_find(st, ck_view_of(schema->slot));
    if (slot && !slot->raw) return ck_slot_agree(s->mem, st->uid, slot->shape->schema, schema, err);
    if (slot)
        return ck_fail(err, CK_CORRUPT, "operator %llu, slot \"%s\": rows come before the slot's schema",
                       (unsigned long long)op_id, schema->slot);
    return ck_slot_make(st, schema, false, &slot, err);
}

ck_status ck_state_restore_version(ck_state_store *s, const ck_state_version *v, ck_error *err) {
    return ck_version_map_stamp(&s->versions, v) == CK_OK ? CK_OK : ck_nomem(err, s->mem, sizeof *v);
}

/* Rows of a slot nobody described: stored key and value as bytes. */
static ck_status make_raw(ck_state_store *s, uint64_t op_id, ck_view name, ck_state_slot **out, ck_error *err) {
    char z[CK_NAME_BYTES_MAX + 1];
    bool bad = name.n == 0 || name.n > CK_NAME_BYTES_MAX;
    for (size_t i = 0; i < name.n && !bad; i++) bad = memchr("\0|\n", name.p[i], 3) != NULL;
    if (bad)
        return ck_fail(err, CK_CORRUPT, "operator %llu: a stored key whose slot name (%zu bytes) is none",
                       (unsigned long long)op_id, name.n);
    memcpy(z, name.p, name.n);
    z[name.n] = 0;
    const ck_field key = {"key", ck_type_simple(CK_TYPE_VARCHAR), false}; /* the one type whose key is its bytes */
    const ck_field value = {"value", ck_type_simple(CK_TYPE_BYTES), false};
    const ck_slot_schema schema = {.slot = z,
                                   .state_type = "",
                                   .version = 1,
                                   .mode = CK_SLOT_KEYED,
                                   .partition = &key,
                                   .partition_count = 1,
                                   .values = &value,
                                   .value_count = 1};
    ck_state *st;
    CK_TRY(ck_state_make(s, op_id, "", "", &st, err));
    return ck_slot_make(st, &schema, true, out, err);
}

/* [key group][slot]['|'][rest], operator rows [marker][slot]['\n'][rest]. */
typedef struct taken_key {
    uint32_t key_group;
    bool keyed, same_slot; /* same_slot: as the row before */
    ck_view slot, rest;
} taken_key;

static ck_status take_key(const ck_state_store *s, uint64_t op_id, ck_view key, taken_key *k, ck_error *err) {
    bool narrow = ck_one_byte_groups(s->cfg.key_groups);
    ck_cursor c = ck_cursor_of(key.p, key.n);
    uint8_t one = 0;
    uint16_t two = 0;
    if (!(narrow ? ck_cursor_u8(&c, &one) : ck_cursor_u16be(&c, &two)))
        return ck_fail(err, CK_CORRUPT, "operator %llu: a stored key of %zu bytes", (unsigned long long)op_id, key.n);
    k->key_group = narrow ? one : two;
    k->keyed = k->key_group != (narrow ? 0xFFu : 0xFFFFu);
    if (k->keyed && k->key_group >= s->cfg.key_groups)
        return ck_fail(err, CK_CORRUPT, "operator %llu: key group %u of %u in a stored key", (unsigned long long)op_id,
                       k->key_group, s->cfg.key_groups);
    ck_view tail = {(const char *)c.p, c.left};
    ck_view last = s->last_prefix; /* rows come slot by slot */
    if (last.n && tail.n >= last.n && memcmp(tail.p, last.p, last.n) == 0 && (last.p[last.n - 1] == '|') == k->keyed) {
        k->slot = (ck_view){tail.p, last.n - 1};
        k->rest = (ck_view){tail.p + last.n, tail.n - last.n};
        k->same_slot = s->last_op == op_id;
        return CK_OK;
    }
    const char *end = tail.n ? memchr(tail.p, k->keyed ? '|' : '\n', tail.n) : NULL;
    if (!end && k->keyed)
        return ck_fail(err, CK_CORRUPT, "operator %llu: a stored key without a slot", (unsigned long long)op_id);
    k->slot = (ck_view){tail.p, end ? (size_t)(end - tail.p) : tail.n};
    k->rest = (ck_view){tail.p + tail.n, 0};
    if (end) k->rest = (ck_view){end + 1, tail.n - k->slot.n - 1};
    return CK_OK;
}

/* NULL in *slot: there is none and none is made. */
static ck_status slot_for(ck_state_store *s, uint64_t op_id, const taken_key *k, bool make, ck_state_slot **slot,
                          ck_error *err) {
    if (k->same_slot) {
        *slot = s->last_slot;
        return CK_OK; /* its kind was checked */
    }
    ck_state *st = ck_state_find(s, op_id);
    *slot = st ? ck_slot_find(st, k->slot) : NULL;
    if (!*slot && !make) return CK_OK;
    if (!*slot) CK_TRY(make_raw(s, op_id, k->slot, slot, err));
    if (!(*slot)->raw && ((*slot)->shape->schema->mode == CK_SLOT_KEYED) != k->keyed)
        return ck_fail(err, CK_CORRUPT, "operator %llu, slot \"%s\": %s row in a slot of the other kind",
                       (unsigned long long)op_id, (*slot)->name, k->keyed ? "a keyed" : "an operator");
    s->last_slot = *slot, s->last_op = op_id;
    s->last_prefix = (ck_view){(*slot)->prefix[k->keyed], strlen((*slot)->prefix[k->keyed])};
    return CK_OK;
}

static ck_status failed(ck_state_store *s, ck_status st, uint64_t op_id, const taken_key *k, ck_error *err) {
    if (st != CK_OK && s->cold && ck_cold_check(s->cold, NULL) != CK_OK) return ck_cold_check(s->cold, err);
    if (st == CK_CORRUPT)
        return ck_fail(err, CK_CORRUPT, "operator %llu, slot \"%.*s\": a stored row (key of %zu bytes) does not parse",
                       (unsigned long long)op_id, (int)k->slot.n, k->slot.p, k->rest.n);
    if (st == CK_FULL)
        return ck_fail(err, CK_FULL, "operator %llu, slot \"%.*s\": full", (unsigned long long)op_id, (int)k->slot.n,
                       k->slot.p);
    if (st == CK_OK) return CK_OK;
    ck_page_nomem(&s->pool, CK_PAGE_CHUNK, err);
    ck_error_prefix(err, "operator %llu, slot \"%.*s\": ", (unsigned long long)op_id, (int)k->slot.n, k->slot.p);
    return st;
}

/* A raw row's loose form: key and value are plain bytes. */
static ck_status raw_loose(ck_table *t, ck_view key, ck_view value, ck_loose_row *l) {
    CK_TRY(ck_loose_of(t, l));
    if (key.n > CK_KEY_BYTES_MAX) return CK_CORRUPT;
    const ck_view parts[2] = {key, value};
    for (uint32_t i = 0; i < 2; i++) {
        ck_strview v = parts[i].n <= CK_STRVIEW_INLINE ? ck_strview_inline(parts[i].n ? parts[i].p : "", parts[i].n)
                                                       : ck_strview_ref(parts[i].p, parts[i].n, 0, 0);
        memcpy(l->row + t->shape->fields[i].offset, &v, sizeof v);
        l->views[i] = parts[i];
    }
    return CK_OK;
}

static ck_status raw_put(ck_table *t, ck_view key, ck_view value) {
    ck_loose_row l;
    ck_row *row;
    bool fresh;
    if (CK_UNLIKELY(t->out_rows)) CK_TRY(ck_cold_bring_rest(t, key));
    CK_TRY(raw_loose(t, key, value, &l));
    CK_TRY(ck_table_loose_upsert(t, &l, &row, &fresh));
    return ck_loose_store(t, &l, t->shape->value_first, t->shape->field_count, row);
}

static ck_status put_raws(ck_table *t, const ck_stored_put *puts, uint32_t n, uint32_t *done) {
    for (*done = 0; *done < n; ++*done) CK_TRY(raw_put(t, puts[*done].rest, puts[*done].value));
    return CK_OK;
}

/* Rows of one slot that follow each other. */
typedef struct piece {
    ck_state_slot *slot;
    bool keyed;
    uint32_t n;
    ck_stored_put puts[PIECE_ROWS];
} piece;

static ck_status put_piece(ck_state_store *s, uint64_t op_id, piece *p, ck_error *err) {
    uint32_t n = p->n, done = 0;
    if (n == 0) return CK_OK;
    p->n = 0;
    ck_table *t = p->slot->table;
    ck_status st = p->slot->raw ? put_raws(t, p->puts, n, &done)
                                : ck_table_stored_puts(t, p->puts, n, p->keyed ? s->cfg.key_groups : UINT32_MAX, &done);
    if (CK_LIKELY(st == CK_OK)) return CK_OK;
    const taken_key k = {.slot = ck_view_of(p->slot->name), .rest = p->puts[done].rest};
    return failed(s, st, op_id, &k, err);
}

ck_status ck_state_restore_puts(ck_state_store *s, uint64_t op_id, const ck_stored_row *rows, uint32_t n,
                                ck_error *err) {
    piece p;
    p.slot = NULL, p.n = 0;
    if (s->cold && (s->put_count += n) >= PUTS_A_LOOK) {
        s->put_count = 0;
        CK_TRY(ck_state_trim(s, err));
    }
    for (uint32_t i = 0; i < n; i++) {
        taken_key k = {0};
        ck_state_slot *slot;
        CK_TRY(take_key(s, op_id, rows[i].key, &k, err));
        if (k.keyed && !ck_key_group_in(s->cfg.range, k.key_group)) continue;
        CK_TRY(slot_for(s, op_id, &k, true, &slot, err));
        if (p.n == PIECE_ROWS || slot != p.slot || k.keyed != p.keyed) CK_TRY(put_piece(s, op_id, &p, err));
        p.slot = slot, p.keyed = k.keyed;
        p.puts[p.n++] = (ck_stored_put){slot->raw ? rows[i].key : k.rest, rows[i].value, k.key_group};
    }
    return put_piece(s, op_id, &p, err);
}

ck_status ck_state_restore_put(ck_state_store *s, uint64_t op_id, ck_stored_row row, ck_error *err) {
    return ck_state_restore_puts(s, op_id, &row, 1, err);
}

ck_status ck_state_restore_erase(ck_state_store *s, uint64_t op_id, ck_view key, ck_error *err) {
    taken_key k = {0};
    ck_state_slot *slot;
    CK_TRY(take_key(s, op_id, key, &k, err));
    if (k.keyed && !ck_key_group_in(s->cfg.range, k.key_group)) return CK_OK;
    CK_TRY(slot_for(s, op_id, &k, false, &slot, err));
    if (!slot) return CK_OK;
    ck_status st = CK_OK;
    ck_loose_row l;
    uint32_t ref;
    if (s->cold && ++s->put_count % PUTS_A_LOOK == 0) CK_TRY(ck_state_trim(s, err));
    if (!slot->raw) {
        st = ck_table_stored_erase(slot->table, k.rest);
    } else {
        if (CK_UNLIKELY(slot->table->out_rows)) st = ck_cold_bring_rest(slot->table, key);
        if (st == CK_OK) st = raw_loose(slot->table, key, (ck_view){"", 0}, &l);
        if (st == CK_OK && ck_table_loose_find(slot->table, &l, &ref)) {
            ck_row *row = ck_row_of(slot->table, ref);
            st = ck_table_erase(slot->table, &row, 1, NULL);
        }
    }
    return failed(s, st, op_id, &k, err);
}

/* What a mark of the rows sees stays as it was while they go. */
static ck_status erase_scanned(ck_state_store *s, ck_mark_scan *scan, uint64_t op_id, ck_view from, ck_view to,
                               ck_error *err) {
    const ck_mark_row *rows;
    uint32_t n;
    do {
        CK_TRY(ck_mark_scan_next(scan, &rows, &n, err));
        for (uint32_t i = 0; i < n; i++) {
            bool within = ck_view_cmp(rows[i].key, from) >= 0 && ck_view_cmp(rows[i].key, to) < 0;
            if (rows[i].op_id == op_id && within) CK_TRY(ck_state_restore_erase(s, op_id, rows[i].key, err));
        }
    } while (n > 0);
    return CK_OK;
}

ck_status ck_state_restore_erase_range(ck_state_store *s, uint64_t op_id, ck_view from, ck_view to, ck_error *err) {
    ck_state_mark *m;
    ck_mark_scan *scan;
    CK_TRY(ck_state_mark_take(s, 0, &m, err));
    ck_status st = ck_mark_scan_new(m, CK_MARK_BASE, &scan, err);
    if (st == CK_OK) {
        st = erase_scanned(s, scan, op_id, from, to, err);
        ck_mark_scan_free(scan);
    }
    ck_state_mark_release(m);
    return st;
}

ck_status ck_state_restore_end(ck_state_store *s, ck_error *err) {
    (void)err;
    s->last_slot = NULL, s->last_prefix.n = 0;
    return CK_OK;
}
