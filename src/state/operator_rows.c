/* See operator_rows.h and the operator-state part of state.h. */
#include "state/state_int.h"

#include <stdlib.h>

/* ---- one row by name ---- */

static ck_status set_name(ck_table *t, const char *row_key, ck_loose_row *l) {
    CK_TRY(ck_loose_of(t, l));
    return ck_user_key_decode(t->shape, ck_view_of(row_key), l) ? CK_OK : CK_FULL;
}

static ck_status failed(ck_state *st, const char *slot, const char *row_key, ck_status s, ck_error *err) {
    if (s == CK_FULL)
        return ck_fail(err, CK_FULL, "operator '%s', slot \"%s\": a row key of %zu bytes, %d are possible", st->uid,
                       slot, strlen(row_key), CK_KEY_BYTES_MAX);
    if (s == CK_INVALID)
        return ck_fail(err, CK_INVALID, "operator '%s', slot \"%s\": NULL in a field that is NOT NULL", st->uid, slot);
    return s == CK_OK ? CK_OK : ck_nomem(err, st->store->mem, CK_PAGE_CHUNK);
}

static ck_status named_row(ck_state *st, const ck_slot_schema *schema, const char *row_key, ck_table **t, ck_row **row,
                           bool *fresh, ck_error *err) {
    CK_TRY(ck_state_table(st, schema, t, err));
    ck_loose_row l;
    ck_status s = set_name(*t, row_key, &l);
    if (s == CK_OK) s = ck_table_loose_upsert(*t, &l, row, fresh);
    return failed(st, schema->slot, row_key, s, err);
}

static void undo(ck_table *t, ck_row *row) {
    uint32_t ref = ck_ref_of(t, row);
    ck_index_erase(&t->index, ck_row_hash(t, row), ref);
    ck_row_drop(t, ref);
}

ck_status ck_state_row_put(ck_state *st, const ck_slot_schema *schema, const char *row_key,
                           const ck_column *const *values, uint32_t row, ck_error *err) {
    ck_table *t;
    ck_row *r;
    bool fresh;
    CK_TRY(named_row(st, schema, row_key, &t, &r, &fresh, err));
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < t->shape->value_count && s == CK_OK; i++)
        s = ck_table_set_field(t, r, t->shape->value_first + i, values[i], row);
    if (s != CK_OK && fresh) undo(t, r);
    return failed(st, schema->slot, row_key, s, err);
}

ck_status ck_state_row_erase(ck_state *st, const ck_slot_schema *schema, const char *row_key, ck_error *err) {
    ck_table *t;
    CK_TRY(ck_state_table(st, schema, &t, err));
    ck_loose_row l;
    uint32_t ref;
    ck_status s = set_name(t, row_key, &l);
    if (s != CK_OK) return failed(st, schema->slot, row_key, s, err);
    if (!ck_table_loose_find(t, &l, &ref)) return CK_OK;
    ck_row *row = ck_row_of(t, ref);
    return ck_table_erase(t, &row, 1, err);
}

/* ---- splits ---- */

enum { SPLIT_ORDER = 1, SPLIT_SPEC = 2, COMMIT_CHECKPOINT = 1, COMMIT_PAYLOAD = 2 };

/* Made of shared immutable types; the schema's pointers are filled once into the caller's. */
#define NAMED_SLOT(fn, slot_name, type_name, key_name, value0, value1)                                                 \
    const ck_slot_schema *fn(void) {                                                                                   \
        static const ck_type varchar = {.kind = CK_TYPE_VARCHAR}, bigint = {.kind = CK_TYPE_BIGINT};                   \
        static const ck_field key = {key_name, &varchar, false};                                                       \
        static const ck_field values[] = {{value0, &bigint, false}, {value1, &varchar, false}};                        \
        static const ck_slot_schema schema = {.slot = slot_name,                                                       \
                                              .state_type = type_name,                                                 \
                                              .version = 1,                                                            \
                                              .mode = CK_SLOT_SPLIT,                                                   \
                                              .partition = &key,                                                       \
                                              .partition_count = 1,                                                    \
                                              .values = values,                                                        \
                                              .value_count = 2};                                                       \
        return &schema;                                                                                                \
    }
NAMED_SLOT(ck_split_slot, CK_SPLIT_SLOT, "clink.splits", "id", "order", "spec")
NAMED_SLOT(ck_commit_slot, CK_COMMIT_SLOT, "clink.commit", "name", "checkpoint", "payload")

static ck_status put_pair(ck_state *st, const ck_slot_schema *schema, const char *name, int64_t number,
                          const char *text, ck_error *err) {
    ck_table *t;
    ck_row *row;
    bool fresh;
    CK_TRY(named_row(st, schema, name, &t, &row, &fresh, err));
    ck_row_set_i64(row, t->shape->fields[1].offset, number);
    ck_status s = ck_table_set_str(t, row, 2, ck_view_of(text));
    if (s != CK_OK && fresh) undo(t, row);
    return failed(st, schema->slot, name, s, err);
}

/* Erases the rows for which keep says no. */
static ck_status erase_unless(ck_table *t, bool (*keep)(const ck_table *t, const ck_row *row, void *arg), void *arg,
                              ck_error *err) {
    ck_table_scan scan = {0};
    ck_row *rows[64];
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 64)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (!keep(t, rows[i], arg)) CK_TRY(ck_table_erase(t, &rows[i], 1, err));
    return CK_OK;
}

static bool listed(const ck_table *t, const ck_row *row, void *arg) {
    const ck_split_list *l = arg;
    ck_view id = ck_table_str(t, row, 0);
    for (uint32_t i = 0; i < l->count; i++)
        if (ck_view_is(id, l->splits[i].id)) return true;
    return false;
}

ck_status ck_splits_store(ck_state *st, const ck_split_list *splits, ck_error *err) {
    ck_table *t;
    CK_TRY(ck_state_table(st, ck_split_slot(), &t, err));
    for (uint32_t i = 0; i < splits->count; i++) {
        const ck_split *s = &splits->splits[i];
        CK_TRY(put_pair(st, ck_split_slot(), s->id, s->order, s->spec, err));
    }
    return ck_table_row_count(t) == splits->count ? CK_OK : erase_unless(t, listed, (void *)(uintptr_t)splits, err);
}

static int by_order(const void *a, const void *b) {
    const ck_split *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return strcmp(x->id, y->id);
}

ck_status ck_splits_load(ck_state *st, ck_split_list *out, bool *known, ck_error *err) {
    *known = ck_slot_find(st, ck_view_of(CK_SPLIT_SLOT)) != NULL;
    if (!*known) return CK_OK;
    ck_table *t;
    CK_TRY(ck_state_table(st, ck_split_slot(), &t, err));
    uint32_t first = out->count;
    ck_table_scan scan = {0};
    ck_row *rows[64];
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 64)) > 0;)
        for (uint32_t i = 0; i < n; i++) {
            ck_view id = ck_table_str(t, rows[i], 0), spec = ck_table_str(t, rows[i], SPLIT_SPEC);
            char *id_z = ck_arena_strndup(out->arena, id.p, id.n);
            char *spec_z = ck_arena_strndup(out->arena, spec.p, spec.n);
            if (!id_z || !spec_z || ck_split_list_add(out, id_z, spec_z) != CK_OK)
                return ck_nomem(err, out->arena->mem, id.n + spec.n);
            out->splits[out->count - 1].order = (uint32_t)ck_row_i64(rows[i], t->shape->fields[SPLIT_ORDER].offset);
        }
    if (out->count > first) qsort(out->splits + first, out->count - first, sizeof *out->splits, by_order);
    return CK_OK;
}

/* ---- committables ---- */

ck_status ck_commits_put(ck_state *st, const ck_committable *c, ck_error *err) {
    return put_pair(st, ck_commit_slot(), c->name, (int64_t)c->checkpoint, c->payload, err);
}

static bool newer(const ck_table *t, const ck_row *row, void *arg) {
    return (uint64_t)ck_row_i64(row, t->shape->fields[COMMIT_CHECKPOINT].offset) > *(const uint64_t *)arg;
}

ck_status ck_commits_forget(ck_state *st, uint64_t checkpoint, ck_error *err) {
    if (!ck_slot_find(st, ck_view_of(CK_COMMIT_SLOT))) return CK_OK;
    ck_table *t;
    CK_TRY(ck_state_table(st, ck_commit_slot(), &t, err));
    return erase_unless(t, newer, &checkpoint, err);
}

static int by_checkpoint(const void *a, const void *b) {
    const ck_committable *x = a, *y = b;
    if (x->checkpoint != y->checkpoint) return x->checkpoint < y->checkpoint ? -1 : 1;
    return strcmp(x->name, y->name);
}

ck_status ck_commits_list(ck_state *st, ck_arena *a, ck_committable **out, uint32_t *count, ck_error *err) {
    *out = NULL, *count = 0;
    if (!ck_slot_find(st, ck_view_of(CK_COMMIT_SLOT))) return CK_OK;
    ck_table *t;
    CK_TRY(ck_state_table(st, ck_commit_slot(), &t, err));
    uint64_t total = ck_table_row_count(t);
    ck_committable *list = ck_arena_array(a, total ? total : 1, sizeof *list);
    if (!list) return ck_nomem(err, a->mem, total * sizeof *list);
    ck_table_scan scan = {0};
    ck_row *rows[64];
    uint32_t k = 0;
    for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 64)) > 0;)
        for (uint32_t i = 0; i < n; i++, k++) {
            ck_view name = ck_table_str(t, rows[i], 0), payload = ck_table_str(t, rows[i], COMMIT_PAYLOAD);
            list[k].name = ck_arena_strndup(a, name.p, name.n);
            list[k].payload = ck_arena_strndup(a, payload.p, payload.n);
            list[k].checkpoint = (uint64_t)ck_row_i64(rows[i], t->shape->fields[COMMIT_CHECKPOINT].offset);
            if (!list[k].name || !list[k].payload) return ck_nomem(err, a->mem, name.n + payload.n);
        }
    qsort(list, k, sizeof *list, by_checkpoint);
    *out = list, *count = k;
    return CK_OK;
}
