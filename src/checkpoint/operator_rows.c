/* Operator rows of a restore: netted per chain, merged over the subtasks, dealt out by the mode of their slot. */
#include "checkpoint/restore_int.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cursor.h"

/* ---- collecting ---- */

static ck_view chain_key(ck_restore *r, uint64_t op, ck_view stored) {
    char *p = ck_arena_alloc(&r->arena, sizeof op + stored.n);
    if (!p) return (ck_view){NULL, 0};
    memcpy(p, &op, sizeof op);
    memcpy(p + sizeof op, stored.p, stored.n);
    return (ck_view){p, sizeof op + stored.n};
}

ck_status ck_operator_row_seen(ck_restore *r, uint64_t op, const ck_stored_key *k, const ck_snapshot_row *row,
                               ck_error *err) {
    ck_view key = chain_key(r, op, row->key);
    ck_operator_row *o = CK_ARENA_NEW(&r->arena, ck_operator_row);
    const char *value = ck_arena_strndup(&r->arena, row->value.p, row->value.n);
    if (!key.p || !o || !value) return ck_nomem(err, r->mem, row->key.n + row->value.n);
    const char *stored = key.p + sizeof op;
    *o = (ck_operator_row){.slot = {stored + (k->slot.p - row->key.p), k->slot.n},
                           .row_key = {stored + (k->rest.p - row->key.p), k->rest.n},
                           .stored_key = {stored, row->key.n},
                           .value = {value, row->value.n},
                           .erased = row->kind == 2};
    return ck_map_put(&r->chain, key, o, NULL) == CK_OK ? CK_OK : ck_nomem(err, r->mem, key.n);
}

void ck_operator_rows_erased(ck_restore *r, uint64_t op, ck_view from, ck_view to) {
    for (size_t i = 0; i < r->chain.count; i++) {
        ck_operator_row *o = r->chain.entries[i].value;
        uint64_t id;
        memcpy(&id, r->chain.entries[i].key.p, sizeof id);
        o->erased |= id == op && ck_view_cmp(o->stored_key, from) >= 0 && ck_view_cmp(o->stored_key, to) < 0;
    }
}

static int64_t as_i64(ck_view v) {
    int64_t i = 0;
    memcpy(&i, v.p, sizeof i);
    return i;
}

static ck_slot_mode mode_of(const ck_restore_op *op, ck_view slot) {
    const ck_stored_slot *s = ck_map_get(&op->slots, slot);
    return s ? s->schema->mode : CK_SLOT_UNION;
}

/* Two subtasks wrote the same row. */
static ck_status merge_equal(const ck_restore_op *op, ck_operator_row *have, ck_operator_row *more, ck_error *err) {
    if (ck_view_is(more->slot, CK_COMMIT_SLOT))
        return ck_fail(err, CK_CORRUPT, "operator %" PRIu64 ": two subtasks carry the committable '%.*s'", op->id,
                       (int)(more->row_key.n < 200 ? more->row_key.n : 200), more->row_key.p);
    bool offsets = have->value.n == 8 && more->value.n == 8 && mode_of(op, more->slot) != CK_SLOT_BROADCAST;
    if (!offsets || as_i64(more->value) > as_i64(have->value)) have->value = more->value;
    return CK_OK;
}

ck_status ck_operator_rows_merge(ck_restore *r, ck_error *err) {
    for (size_t i = 0; i < r->chain.count; i++) {
        ck_operator_row *row = r->chain.entries[i].value;
        uint64_t id;
        memcpy(&id, r->chain.entries[i].key.p, sizeof id);
        ck_restore_op *op = ck_restore_op_find(r, id);
        if (row->erased) continue;
        ck_operator_row *have = ck_map_get(&op->rows, row->stored_key);
        if (have)
            CK_TRY(merge_equal(op, have, row, err));
        else if (ck_map_put(&op->rows, row->stored_key, row, NULL) != CK_OK)
            return ck_nomem(err, r->mem, row->stored_key.n);
    }
    ck_map_init(&r->chain, &r->arena, false);
    return CK_OK;
}

/* ---- dealing ---- */

typedef struct dealt {
    ck_operator_row *row;
    int64_t order;
} dealt;

/* Byte offset of the fixed-width value field `order` in packed values; -1: there is none. */
static long order_offset(const ck_slot_schema *s) {
    size_t at = 0;
    long found = -1;
    bool nullable = false;
    for (uint32_t i = 0; i < s->value_count; i++) {
        nullable |= s->values[i].nullable;
        ck_phys p = ck_type_phys(s->values[i].type);
        if (p == CK_PHYS_I64 && strcmp(s->values[i].name, "order") == 0) found = (long)at;
        at += p == CK_PHYS_BOOL ? 1 : p == CK_PHYS_I64 || p == CK_PHYS_F64 ? 8 : p == CK_PHYS_I128 ? 16 : 0;
    }
    return found < 0 ? -1 : found + (nullable ? (long)(s->value_count + 7) / 8 : 0);
}

static int by_order(const void *a, const void *b) {
    const dealt *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return ck_view_cmp(x->row->stored_key, y->row->stored_key);
}

static ck_status put(const ck_restore_into *t, const ck_restore_op *op, const ck_operator_row *row, ck_error *err) {
    return ck_state_restore_put(t->store, op->as, (ck_stored_row){row->stored_key, row->value}, err);
}

/* Rows of one split slot, over all subtasks: row k to subtask k mod parallelism. */
static ck_status deal_split(ck_restore *r, ck_restore_op *op, const ck_stored_slot *slot, ck_error *err) {
    dealt *rows = ck_arena_array(&r->arena, op->rows.count + 1, sizeof *rows);
    if (!rows) return ck_nomem(err, r->mem, op->rows.count * sizeof *rows);
    long at = order_offset(slot->schema);
    size_t n = 0;
    for (size_t i = 0; i < op->rows.count; i++) {
        ck_operator_row *row = op->rows.entries[i].value;
        if (!ck_view_is(row->slot, slot->schema->slot)) continue;
        rows[n].row = row;
        if (at >= 0 && (size_t)at + 8 <= row->value.n) rows[n].order = as_i64((ck_view){row->value.p + at, 8});
        n++;
    }
    if (n) qsort(rows, n, sizeof *rows, by_order);
    for (size_t k = 0; k < n; k++)
        for (ck_target_ref *t = op->targets; t; t = t->next)
            if (k % t->target->parallelism == t->target->subtask) CK_TRY(put(t->target, op, rows[k].row, err));
    return CK_OK;
}

static ck_status deal_to_all(ck_restore_op *op, ck_error *err) {
    for (size_t i = 0; i < op->rows.count; i++) {
        const ck_operator_row *row = op->rows.entries[i].value;
        if (mode_of(op, row->slot) == CK_SLOT_SPLIT || ck_view_is(row->slot, CK_COMMIT_SLOT)) continue;
        for (ck_target_ref *t = op->targets; t; t = t->next) CK_TRY(put(t->target, op, row, err));
    }
    return CK_OK;
}

/* ---- committables ---- */

static int by_checkpoint(const void *a, const void *b) {
    const ck_committable *x = a, *y = b;
    if (x->checkpoint != y->checkpoint) return x->checkpoint < y->checkpoint ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The packed value of slot clink.commit: checkpoint, u32 length, payload. */
static ck_status read_committable(ck_restore *r, const ck_operator_row *row, ck_committable *out, ck_error *err) {
    ck_cursor c = ck_cursor_of(row->value.p, row->value.n);
    uint32_t n;
    ck_view payload;
    if (!ck_cursor_u64le(&c, &out->checkpoint) || !ck_cursor_u32le(&c, &n) || !ck_cursor_take(&c, n, &payload) ||
        c.left != 0)
        return ck_fail(err, CK_CORRUPT, "the committable '%.*s' does not parse",
                       (int)(row->row_key.n < 200 ? row->row_key.n : 200), row->row_key.p);
    out->name = ck_arena_strndup(&r->arena, row->row_key.p, row->row_key.n);
    out->payload = ck_arena_strndup(&r->arena, payload.p, payload.n);
    return out->name && out->payload ? CK_OK : ck_nomem(err, r->mem, payload.n);
}

static ck_status collect_committables(ck_restore *r, ck_restore_op *op, ck_error *err) {
    op->committables = ck_arena_array(&r->arena, op->rows.count + 1, sizeof *op->committables);
    if (!op->committables) return ck_nomem(err, r->mem, 0);
    for (size_t i = 0; i < op->rows.count; i++) {
        const ck_operator_row *row = op->rows.entries[i].value;
        if (!ck_view_is(row->slot, CK_COMMIT_SLOT)) continue;
        CK_TRY(read_committable(r, row, &op->committables[op->committable_count++], err));
    }
    qsort(op->committables, op->committable_count, sizeof *op->committables, by_checkpoint);
    return CK_OK;
}

ck_status ck_operator_rows_deal(ck_restore *r, ck_error *err) {
    for (size_t i = 0; i < r->ops.count; i++) {
        ck_restore_op *op = r->ops.entries[i].value;
        CK_TRY(collect_committables(r, op, err));
        CK_TRY(deal_to_all(op, err));
        for (size_t k = 0; k < op->slots.count; k++) {
            const ck_stored_slot *slot = op->slots.entries[k].value;
            bool committed = strcmp(slot->schema->slot, CK_COMMIT_SLOT) == 0;
            if (slot->schema->mode == CK_SLOT_SPLIT && !committed) CK_TRY(deal_split(r, op, slot, err));
        }
    }
    return CK_OK;
}
