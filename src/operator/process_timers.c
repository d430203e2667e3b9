/* Timers of a plugin's operator: rows (key, time) in a slot, so that they are in checkpoints and dealt out with their
 * keys; and in memory which key is due when, made anew from the rows when the operator opens. */
#include "operator/process_int.h"

static int64_t first_due(const void *arg, const ck_row *row) {
    return ck_row_i64(row, ((const ck_process_timers *)arg)->time_at);
}

static ck_status set_due(ck_process *p, ck_process_timers *t, ck_partition part) {
    ck_row *first;
    if (!ck_partition_first(t->table, part, &first)) return CK_OK;
    ck_status s = ck_partition_timers_set(&t->due, part, first_due(t, first));
    return s == CK_OK ? s : ck_nomem(p->ctx->error, p->mem, sizeof(int64_t));
}

static ck_status open_one(ck_process *p, ck_process_timers *t, const ck_slot_schema *slot, ck_partition *room) {
    CK_TRY(ck_state_table(p->ctx->state, slot, &t->table, p->ctx->error));
    t->time_at = ck_table_layout(t->table)->fields[p->plan.partition_count].offset;
    ck_partition_timers_init(&t->due, p->mem);
    return ck_partition_timers_restore(&t->due, t->table, room, first_due, t, p->ctx);
}

ck_status ck_process_timers_open(ck_process *p) {
    uint32_t states = p->plan.op->face->state_count, keys = p->plan.partition_count;
    if (!p->plan.keyed || !p->plan.op->timers) return CK_OK;
    p->timer_keys = ck_arena_array(&p->arena, keys + 1u, sizeof *p->timer_keys);
    if (!p->timer_keys) return ck_nomem(p->ctx->error, p->mem, keys * sizeof *p->timer_keys);
    for (uint32_t i = 0; i < keys; i++)
        if (ck_column_builder_init(&p->timer_keys[i], p->mem, p->plan.partition[i].type, CK_PROCESS_TIMERS) != CK_OK)
            return ck_nomem(p->ctx->error, p->mem, CK_PROCESS_TIMERS * sizeof(int64_t));
    ck_partition *room = ck_alloc(p->mem, CK_BATCH_ROWS_MAX * sizeof *room);
    if (!room) return ck_nomem(p->ctx->error, p->mem, CK_BATCH_ROWS_MAX * sizeof *room);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < 2; i++) s = open_one(p, &p->timers[i], p->plan.slots[states + i], room);
    ck_free(p->mem, room, CK_BATCH_ROWS_MAX * sizeof *room);
    return s;
}

void ck_process_timers_destroy(ck_process *p) {
    for (uint32_t i = 0; p->timer_keys && i < p->plan.partition_count; i++)
        ck_column_builder_destroy(&p->timer_keys[i]);
    for (uint32_t i = 0; i < 2; i++)
        if (p->timers[i].table) ck_partition_timers_destroy(&p->timers[i].due);
}

static ck_status clear(ck_process *p, ck_process_timers *t, ck_partition part, ck_view key) {
    ck_row *row;
    ck_status s = ck_partition_find(t->table, part, key, &row);
    if (s == CK_NOTFOUND) return CK_OK;
    if (s != CK_OK) return s;
    /* The partition ends with its last row, and its number may come to mean another key. */
    if (ck_partition_rows(t->table, part) == 1 && part < t->due.due_count) t->due.due[part] = INT64_MAX;
    return ck_partition_erase(t->table, part, key, p->ctx->error);
}

clink_status ck_process_set_timer(clink_context *c, uint32_t k, int64_t time_us, int32_t processing, int32_t on) {
    ck_process *p = c->inside;
    ck_process_timers *t = &p->timers[processing ? 1 : 0];
    const ck_plugin_operator *op = p->plan.op;
    ck_partition part;
    ck_row *row;
    bool fresh;
    char key[CK_INSTANT_KEY_BYTES];
    if (!t->table || !p->batch) {
        ck_fail(p->ctx->error, CK_INVALID, "operator %s of plugin %s sets a timer, and %s", op->face->name, op->plugin,
                !op->timers      ? "it has no on_timers"
                : !p->plan.keyed ? "its input is not keyed"
                                 : "the call is about no rows");
        return ck_process_fail(p, CK_INVALID);
    }
    clink_status s = ck_process_partition(p, t->table, k, on, &part);
    if (s != CLINK_OK || !part) return s;
    ck_view at = ck_instant_key(time_us, key);
    if (!on) return ck_process_fail(p, clear(p, t, part, at));
    ck_status st = ck_partition_upsert(t->table, part, at, &row, &fresh, p->ctx->error);
    if (st == CK_OK && ck_partition_timers_set(&t->due, part, time_us) != CK_OK)
        st = ck_nomem(p->ctx->error, p->mem, sizeof(int64_t));
    return ck_process_fail(p, st);
}

/* ---- firing ---- */

/* One timer out of the slot, its key into the builders. *taken false: the partition was looked at too early. */
static ck_status take(ck_process *p, ck_process_timers *t, ck_partition part, int64_t limit, uint32_t n, bool *taken) {
    ck_row *row;
    char key[CK_INSTANT_KEY_BYTES];
    *taken = false;
    if (!ck_partition_first(t->table, part, &row)) return CK_OK;
    int64_t time = first_due(t, row);
    if (time > limit) return set_due(p, t, part);
    const ck_row *one = row;
    for (uint32_t i = 0; i < p->plan.partition_count; i++)
        if (ck_table_gather_field(t->table, &one, 1, i, &p->timer_keys[i]) != CK_OK)
            return ck_nomem(p->ctx->error, p->mem, sizeof(int64_t));
    p->timer_times[n] = time;
    *taken = true;
    bool last = ck_partition_rows(t->table, part) == 1;
    CK_TRY(ck_partition_erase(t->table, part, ck_instant_key(time, key), p->ctx->error));
    return last ? CK_OK : set_due(p, t, part);
}

static ck_status batch_of(ck_process *p, uint32_t n, ck_batch **out) {
    ck_batch *b = ck_batch_new(p->mem, p->plan.partition_count, n, false, false);
    for (uint32_t i = 0; b && i < p->plan.partition_count; i++) {
        ck_column *c = ck_column_builder_finish(&p->timer_keys[i]);
        if (!c) {
            ck_batch_unref(&b);
            break;
        }
        ck_batch_set_column(b, i, &c);
    }
    *out = b;
    return b ? CK_OK : ck_nomem(p->ctx->error, p->mem, n * sizeof(int64_t));
}

static ck_status call(ck_process *p, bool clock, uint32_t n, const ck_batch *b) {
    uint32_t keys = p->plan.partition_count;
    uint32_t *columns = ck_arena_array(p->ctx->arena, keys + 1u, sizeof *columns);
    const ck_type **types = ck_arena_array(p->ctx->arena, keys + 1u, sizeof(ck_type *));
    if (!columns || !types) return ck_nomem(p->ctx->error, p->mem, keys * sizeof(void *));
    for (uint32_t i = 0; i < keys; i++) columns[i] = i, types[i] = p->plan.partition[i].type;
    ck_key_spec spec = {columns, types, keys};
    const ck_schema schema = {p->plan.partition, keys};
    CK_TRY(ck_process_views(p, b, NULL, keys, &schema));
    CK_TRY(ck_process_begin(p, b, &spec));
    clink_timers timers = {.struct_bytes = sizeof timers,
                           .count = n,
                           .times_us = p->timer_times,
                           .processing = clock,
                           .key_count = keys,
                           .keys = p->views};
    ck_status s = ck_process_said(p, "on_timers", p->plan.op->face->on_timers(&p->face, &timers));
    if (s == CK_OK) s = ck_process_settle(p);
    if (s == CK_OK) s = ck_process_flush_all(p);
    ck_process_end(p);
    return s;
}

ck_status ck_process_fire(ck_process *p, bool clock, int64_t limit, bool *more) {
    ck_process_timers *t = &p->timers[clock ? 1 : 0];
    ck_partition part;
    ck_batch *b;
    uint32_t n = 0;
    bool taken;
    *more = false;
    if (!t->table) return CK_OK;
    while (n < CK_PROCESS_TIMERS && ck_partition_timers_take(&t->due, limit, &part)) {
        CK_TRY(take(p, t, part, limit, n, &taken));
        if (taken) n++;
    }
    if (n == 0) return CK_OK;
    *more = true; /* the plugin may set others that are due */
    CK_TRY(batch_of(p, n, &b));
    ck_status s = call(p, clock, n, b);
    ck_batch_unref(&b);
    return s;
}
