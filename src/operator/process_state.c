/* What a plugin's operator keeps for each key: state tables, with the plugin's fields in their rows. */
#include "operator/process_int.h"

#include <stdlib.h>

/* ---- opening ---- */

static ck_status open_state(ck_process *p, uint32_t i) {
    ck_process_state *s = &p->states[i];
    const ck_slot_schema *slot = p->plan.slots[i];
    CK_TRY(ck_state_table(p->ctx->state, slot, &s->table, p->ctx->error));
    const ck_row_layout *layout = ck_table_layout(s->table);
    s->process = p;
    s->face = p->plan.op->face->states[i];
    s->field_count = s->face->field_count;
    s->first = s->face->kind == CLINK_MAP ? slot->partition_count : layout->value_first;
    s->offsets = ck_arena_array(&p->arena, s->field_count, sizeof *s->offsets);
    s->null_bits = ck_arena_array(&p->arena, s->field_count, sizeof *s->null_bits);
    if (!s->offsets || !s->null_bits) return ck_nomem(p->ctx->error, p->mem, s->field_count * sizeof *s->offsets);
    for (uint32_t f = 0; f < s->field_count; f++) {
        s->offsets[f] = layout->fields[s->first + f].offset;
        s->null_bits[f] = layout->fields[s->first + f].null_bit;
    }
    return CK_OK;
}

ck_status ck_process_states_open(ck_process *p) {
    uint32_t n = p->plan.op->face->state_count;
    if (!(p->states = ck_arena_array(&p->arena, n + 1u, sizeof *p->states)))
        return ck_nomem(p->ctx->error, p->mem, n * sizeof *p->states);
    ck_bytes_init(&p->low, p->mem, CK_KEY_BYTES_MAX + 16u);
    ck_bytes_init(&p->high, p->mem, CK_KEY_BYTES_MAX + 16u);
    for (uint32_t i = 0; i < n; i++) CK_TRY(open_state(p, i));
    return CK_OK;
}

/* ---- a call ---- */

ck_status ck_process_begin(ck_process *p, const ck_batch *b, const ck_key_spec *key) {
    p->batch = b;
    p->key = key;
    p->hashes = NULL;
    p->one = NULL;
    for (uint32_t i = 0; i < p->plan.op->face->state_count; i++) {
        p->states[i].rows = NULL;
        p->states[i].gone = p->states[i].fresh = NULL;
        p->states[i].any_gone = false;
        p->states[i].one = NULL;
    }
    return CK_OK;
}

void ck_process_end(ck_process *p) {
    ck_batch_unref(&p->one);
    p->batch = NULL;
    p->key = NULL;
    p->walked = NULL;
}

static int row_order(const void *x, const void *y) {
    const ck_row *a = *(ck_row *const *)x, *b = *(ck_row *const *)y;
    return (a > b) - (a < b);
}

static bool is_blank(const ck_process_state *s, const ck_row *row) {
    const ck_row_layout *layout = ck_table_layout(s->table);
    for (uint32_t f = 0; f < s->field_count; f++) {
        const ck_row_field *field = &layout->fields[s->first + f];
        if (field->phys == CK_PHYS_VIEW) {
            if (!ck_row_null(row, field->null_bit)) return false;
        } else if (field->phys == CK_PHYS_BOOL ? row[field->offset] != 0 : ck_row_i64(row, field->offset) != 0) {
            return false;
        }
    }
    return true;
}

static ck_status settle(ck_process_state *s) {
    uint32_t n = 0;
    if (!s->any_gone) return CK_OK;
    ck_row **rows = ck_arena_array(s->process->ctx->arena, s->row_count + 1u, sizeof(ck_row *));
    if (!rows) return ck_nomem(s->process->ctx->error, s->process->mem, s->row_count * sizeof(ck_row *));
    for (uint32_t k = 0; k < s->row_count; k++)
        if (s->gone[k] && s->rows[k] && is_blank(s, s->rows[k])) rows[n++] = s->rows[k];
    qsort(rows, n, sizeof(ck_row *), row_order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!kept || rows[kept - 1] != rows[i]) rows[kept++] = rows[i];
    s->any_gone = false;
    s->rows = NULL;
    return kept ? ck_table_erase(s->table, rows, kept, s->process->ctx->error) : CK_OK;
}

ck_status ck_process_settle(ck_process *p) {
    for (uint32_t i = 0; i < p->plan.op->face->state_count; i++) CK_TRY(settle(&p->states[i]));
    return CK_OK;
}

/* The state, when it is of this kind and the call is about rows with a key. */
static ck_process_state *state_of(clink_context *c, uint32_t state, bool value, clink_status *why) {
    ck_process *p = c->inside;
    const ck_plugin_operator *op = p->plan.op;
    *why = CLINK_INVALID;
    if (state >= op->face->state_count || (op->face->states[state]->kind == CLINK_VALUE) != value || !p->batch ||
        !p->key) {
        ck_fail(p->ctx->error, CK_INVALID, "operator %s of plugin %s asks for state %u, %s", op->face->name, op->plugin,
                state,
                state >= op->face->state_count ? "which it does not have"
                : !p->key                      ? "and its input is not keyed, or the call is about no rows"
                : value                        ? "which is no VALUE"
                                               : "which is no MAP or LIST");
        ck_process_fail(p, CK_INVALID);
        return NULL;
    }
    *why = CLINK_OK;
    return &p->states[state];
}

static ck_status hash_all(ck_process *p, ck_table *t) {
    if (p->hashes) return CK_OK;
    p->hashes = ck_arena_array(p->ctx->arena, p->batch->sel_count + 1u, sizeof *p->hashes);
    if (!p->hashes) return ck_nomem(p->ctx->error, p->mem, p->batch->sel_count * sizeof *p->hashes);
    ck_key_hash(p->key, p->batch, ck_table_seed(t), p->hashes);
    return CK_OK;
}

/* ---- texts ---- */

clink_bytes ck_process_state_text(const clink_groups *g, uint32_t i, uint32_t field) {
    const ck_process_state *s = g->inside;
    const ck_row_layout *layout = ck_table_layout(s->table);
    if (field >= s->field_count || !g->states[i] || layout->fields[s->first + field].phys != CK_PHYS_VIEW ||
        ck_row_null(g->states[i], s->null_bits[field]))
        return (clink_bytes){"", 0};
    ck_view v = ck_table_str(s->table, g->states[i], s->first + field);
    return (clink_bytes){v.p, v.n};
}

clink_status ck_process_set_state_text(const clink_groups *g, uint32_t i, uint32_t field, const char *text, size_t n) {
    const ck_process_state *s = g->inside;
    const ck_row_layout *layout = ck_table_layout(s->table);
    bool key = s->face->kind == CLINK_MAP && field == 0;
    if (field >= s->field_count || key || !g->states[i] || layout->fields[s->first + field].phys != CK_PHYS_VIEW)
        return CLINK_INVALID;
    if (n == 0) { /* as it was made */
        ck_row_set_null(g->states[i], s->null_bits[field], true);
        return CLINK_OK;
    }
    ck_status st = ck_table_set_str(s->table, g->states[i], s->first + field, (ck_view){text, n});
    if (st != CK_OK) ck_nomem(s->process->ctx->error, s->process->mem, n);
    return ck_process_fail(s->process, st);
}

static void give(ck_process_state *s, ck_row *const *rows, uint32_t n, clink_groups *out) {
    *out = (clink_groups){.struct_bytes = sizeof *out,
                          .count = n,
                          .states = (uint8_t *const *)rows,
                          .offsets = s->offsets,
                          .engine = s->process->face.engine,
                          .inside = s};
}

/* ---- VALUE ---- */

static ck_status find_values(ck_process_state *s, bool create) {
    ck_process *p = s->process;
    uint32_t n = p->batch->sel_count;
    CK_TRY(settle(s));
    CK_TRY(hash_all(p, s->table));
    s->rows = ck_arena_array(p->ctx->arena, n + 1u, sizeof(ck_row *));
    s->fresh = ck_arena_array(p->ctx->arena, n + 1u, 1);
    s->gone = ck_arena_array(p->ctx->arena, n + 1u, 1);
    s->row_count = n;
    if (!s->rows || !s->fresh || !s->gone) return ck_nomem(p->ctx->error, p->mem, n * sizeof(ck_row *));
    ck_keys keys = {p->key, p->batch, p->hashes, n};
    if (create) return ck_table_upsert(s->table, &keys, s->rows, s->fresh, p->ctx->error);
    CK_TRY(ck_table_find(s->table, &keys, (const ck_row **)s->rows, p->ctx->error));
    uint32_t found = 0, at = 0;
    ck_row **some = ck_arena_array(p->ctx->arena, n + 1u, sizeof(ck_row *));
    if (!some) return ck_nomem(p->ctx->error, p->mem, n * sizeof(ck_row *));
    for (uint32_t k = 0; k < n; k++)
        if (s->rows[k]) some[found++] = s->rows[k];
    if (found) CK_TRY(ck_table_touch_rows(s->table, some, found, p->ctx->error));
    for (uint32_t k = 0; k < n; k++)
        if (s->rows[k]) s->rows[k] = some[at++];
    return CK_OK;
}

clink_status ck_process_values(clink_context *c, uint32_t state, int32_t create, clink_groups *out,
                               const uint8_t **fresh) {
    clink_status why;
    ck_process_state *s = state_of(c, state, true, &why);
    if (!s) return why;
    why = ck_process_fail(s->process, find_values(s, create));
    if (why != CLINK_OK) return why;
    give(s, s->rows, s->row_count, out);
    if (fresh) *fresh = s->fresh;
    return CLINK_OK;
}

clink_status ck_process_erase(clink_context *c, uint32_t state, uint32_t k) {
    clink_status why;
    ck_process_state *s = state_of(c, state, true, &why);
    if (!s) return why;
    if (!s->rows || k >= s->row_count) return CLINK_INVALID;
    if (!s->rows[k]) return CLINK_OK;
    const ck_row_layout *layout = ck_table_layout(s->table);
    for (uint32_t f = 0; f < s->field_count; f++) {
        const ck_row_field *field = &layout->fields[s->first + f];
        if (field->phys == CK_PHYS_VIEW)
            ck_row_set_null(s->rows[k], field->null_bit, true);
        else if (field->phys == CK_PHYS_BOOL)
            ck_row_set_bool(s->rows[k], field->offset, false);
        else
            ck_row_set_i64(s->rows[k], field->offset, 0);
    }
    s->gone[k] = 1;
    s->any_gone = true;
    return CLINK_OK;
}

/* ---- MAP and LIST ---- */

clink_status ck_process_partition(ck_process *p, ck_table *t, uint32_t k, bool create, ck_partition *out) {
    *out = 0;
    if (k >= p->batch->sel_count) return CLINK_INVALID;
    ck_status s = hash_all(p, t);
    uint16_t row = (uint16_t)ck_batch_row(p->batch, k);
    if (s == CK_OK && !p->one && !(p->one = ck_batch_select(p->batch, &row, 1)))
        s = ck_nomem(p->ctx->error, p->mem, sizeof *p->one);
    if (s != CK_OK) return ck_process_fail(p, s);
    p->one->sel[0] = row; /* a header of our own, which nobody else holds */
    ck_keys keys = {p->key, p->one, &p->hashes[k], 1};
    return ck_process_fail(p, ck_table_partitions(t, &keys, create, out, p->ctx->error));
}

static ck_status order_key(ck_process_state *s, const clink_key *key, ck_bytes *out) {
    bool text = s->face->kind == CLINK_MAP && ck_table_layout(s->table)->fields[s->first].phys == CK_PHYS_VIEW;
    char number[CK_INSTANT_KEY_BYTES];
    ck_bytes_clear(out);
    if (!text) return ck_bytes_view(out, ck_instant_key(key->i64, number));
    ck_status st = CK_OK;
    for (size_t i = 0; st == CK_OK && i < key->text.n; i++) {
        st = ck_bytes_char(out, key->text.p[i]);
        if (st == CK_OK && !key->text.p[i]) st = ck_bytes_char(out, (char)0xFF);
    }
    return st == CK_OK ? ck_bytes_append(out, "\0\0", 2) : st;
}

static ck_status key_failed(ck_process_state *s, ck_status st) {
    ck_process *p = s->process;
    if (st == CK_FULL)
        return ck_fail(p->ctx->error, CK_DATA, "a key of map %s of operator %s is over %d bytes", s->face->name,
                       p->plan.op->face->name, CK_KEY_BYTES_MAX);
    return st == CK_NOMEM ? ck_nomem(p->ctx->error, p->mem, s->process->low.n) : st;
}

static clink_status entry_at(ck_process_state *s, ck_partition part, ck_view key, bool create, clink_groups *out) {
    ck_process *p = s->process;
    bool fresh;
    ck_status st;
    s->one = NULL;
    *out = (clink_groups){.struct_bytes = sizeof *out};
    if (create) {
        st = ck_partition_upsert(s->table, part, key, &s->one, &fresh, p->ctx->error);
    } else {
        st = ck_partition_find(s->table, part, key, &s->one);
        if (st == CK_NOTFOUND) return CLINK_OK;
        if (st == CK_OK) st = ck_table_touch(s->table, &s->one, p->ctx->error);
    }
    if (st != CK_OK) return ck_process_fail(p, st);
    give(s, &s->one, 1, out);
    return CLINK_OK;
}

clink_status ck_process_entry(clink_context *c, uint32_t state, uint32_t k, const clink_key *key, int32_t create,
                              clink_groups *out) {
    clink_status why;
    ck_partition part;
    ck_process_state *s = state_of(c, state, false, &why);
    if (!s) return why;
    *out = (clink_groups){.struct_bytes = sizeof *out};
    why = ck_process_fail(s->process, key_failed(s, order_key(s, key, &s->process->low)));
    if (why == CLINK_OK) why = ck_process_partition(s->process, s->table, k, create, &part);
    if (why != CLINK_OK || !part) return why;
    return entry_at(s, part, ck_bytes_as_view(&s->process->low), create, out);
}

clink_status ck_process_append(clink_context *c, uint32_t state, uint32_t k, clink_groups *out) {
    clink_status why;
    ck_partition part;
    ck_row *last;
    ck_process_state *s = state_of(c, state, false, &why);
    if (!s) return why;
    if (s->face->kind != CLINK_LIST) {
        ck_fail(s->process->ctx->error, CK_INVALID, "operator %s of plugin %s appends to %s, which is a MAP",
                s->process->plan.op->face->name, s->process->plan.op->plugin, s->face->name);
        return ck_process_fail(s->process, CK_INVALID);
    }
    why = ck_process_partition(s->process, s->table, k, true, &part);
    if (why != CLINK_OK) return why;
    int64_t position = 0;
    const ck_row_layout *layout = ck_table_layout(s->table);
    if (ck_partition_last(s->table, part, &last))
        position = ck_row_i64(last, layout->fields[s->process->plan.partition_count].offset) + 1;
    char key[CK_INSTANT_KEY_BYTES];
    return entry_at(s, part, ck_instant_key(position, key), true, out);
}

static clink_status bounds(ck_process_state *s, const clink_key *low, const clink_key *high) {
    ck_process *p = s->process;
    ck_status st = CK_OK;
    ck_bytes_clear(&p->low);
    ck_bytes_clear(&p->high);
    if (low) st = order_key(s, low, &p->low);
    if (st == CK_OK && high) st = order_key(s, high, &p->high);
    return ck_process_fail(p, key_failed(s, st));
}

clink_status ck_process_erase_entries(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                      const clink_key *high) {
    clink_status why;
    ck_partition part;
    uint64_t erased;
    ck_process_state *s = state_of(c, state, false, &why);
    if (!s) return why;
    ck_process *p = s->process;
    why = bounds(s, low, high);
    if (why == CLINK_OK) why = ck_process_partition(p, s->table, k, false, &part);
    if (why != CLINK_OK || !part) return why;
    return ck_process_fail(p, ck_partition_erase_range(s->table, part, ck_bytes_as_view(&p->low),
                                                       ck_bytes_as_view(&p->high), &erased, p->ctx->error));
}

clink_status ck_process_walk(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                             const clink_key *high) {
    clink_status why;
    ck_partition part;
    ck_process_state *s = state_of(c, state, false, &why);
    ((ck_process *)c->inside)->walked = NULL;
    if (!s) return why;
    ck_process *p = s->process;
    why = bounds(s, low, high);
    if (why == CLINK_OK) why = ck_process_partition(p, s->table, k, false, &part);
    if (why != CLINK_OK || !part) return why;
    ck_range_open(&p->walk, s->table, part, ck_bytes_as_view(&p->low), ck_bytes_as_view(&p->high));
    if (p->walk.status == CK_OK) p->walked = s;
    return ck_process_fail(p, p->walk.status);
}

/* The plugin may write to what it is given, so that the row is the job's own first: what a checkpoint under way reads
 * stays as it was, and the next one has the change. */
int32_t ck_process_next(clink_context *c, clink_key *key, clink_groups *out) {
    ck_process *p = c->inside;
    ck_process_state *s = p->walked;
    p->walked = NULL;
    if (!s || !ck_range_next(&p->walk, &s->one)) return 0;
    if (ck_process_fail(p, ck_table_touch(s->table, &s->one, p->ctx->error)) != CLINK_OK) return 0;
    p->walked = s;
    const ck_row_field *order = &ck_table_layout(s->table)->fields[p->plan.partition_count];
    if (key) {
        *key = (clink_key){0};
        if (order->phys == CK_PHYS_VIEW) {
            ck_view v = ck_table_str(s->table, s->one, p->plan.partition_count);
            key->text = (clink_bytes){v.p, v.n};
        } else {
            key->i64 = ck_row_i64(s->one, order->offset);
        }
    }
    give(s, &s->one, 1, out);
    return 1;
}
