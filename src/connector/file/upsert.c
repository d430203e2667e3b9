/* The upsert mode of the `file` sink: a state table holds the current row of each primary key, and a file per subtask
 * is replaced by all of them at a commit. Input is hashed on the primary key, so a row of it lives in one subtask only.
 *
 * Rewriting everything at every barrier would cost more than the job: a rewrite is skipped while it would take more
 * than a tenth of the time since the last one, and never at the end of the input or for a savepoint: who stops with one
 * reads the file. What is skipped is in state. */
#include "connector/file/sink_int.h"

#include "os/clock.h"
#include "state/state.h"

enum { REWRITE_SHARE = 10, PLACE_SLOTS = 2 * CK_BATCH_ROWS_MAX };

typedef struct upsert_sink {
    ck_file_sink base;
    ck_key_spec key;
    const uint32_t *values; /* input columns that are not of the key */
    uint32_t value_count;
    const uint32_t *field_of; /* row field of each input column */
    ck_slot_schema slot;
    ck_table *table;
    bool dirty;   /* the file does not say what the table does */
    bool ended;   /* END has come: the last rewrite is due */
    bool writing; /* a rewrite is under way */
    ck_table_scan scan;
    int64_t began_us, last_end_us, last_cost_us;
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint16_t last_op[PLACE_SLOTS]; /* k + 1 of the last operation on a row; by the row's address */
} upsert_sink;

/* ---- planning ---- */

/* Key fields are the partition, in order; the others the values. */
static ck_status plan_slot(const ck_sink_table *t, ck_arena *a, ck_slot_schema *slot, ck_key_spec *key,
                           const uint32_t **values, uint32_t *value_count, const uint32_t **field_of, ck_error *err) {
    uint32_t n = t->schema->field_count, k = t->key_count, at = 0;
    ck_field *partition = ck_arena_array(a, k + 1u, sizeof *partition), *rest = ck_arena_array(a, n + 1u, sizeof *rest);
    const ck_type **types = ck_arena_array(a, k + 1u, sizeof(ck_type *));
    uint32_t *columns = ck_arena_array(a, n + 1u, sizeof *columns), *fields = ck_arena_array(a, n + 1u, sizeof *fields);
    if (!partition || !rest || !types || !columns || !fields) return ck_nomem(err, a->mem, n * sizeof *rest);
    for (uint32_t c = 0; c < n; c++) fields[c] = UINT32_MAX;
    for (uint32_t i = 0; i < k; i++) {
        partition[i] = t->schema->fields[t->key[i]];
        types[i] = partition[i].type;
        fields[t->key[i]] = i;
    }
    for (uint32_t c = 0; c < n; c++) {
        if (fields[c] != UINT32_MAX) continue;
        rest[at] = t->schema->fields[c];
        fields[c] = k + at;
        columns[at++] = c;
    }
    *key = (ck_key_spec){t->key, types, k};
    *values = columns;
    *value_count = at;
    *field_of = fields;
    *slot = (ck_slot_schema){.slot = "rows",
                             .state_type = "upsert_rows",
                             .version = 1,
                             .mode = CK_SLOT_KEYED,
                             .partition = partition,
                             .partition_count = k,
                             .values = rest,
                             .value_count = at};
    return CK_OK;
}

static ck_status upsert_init(upsert_sink *s, const ck_op_spec *spec, ck_mem mem, ck_error *err) {
    CK_TRY(ck_file_sink_init(&s->base, spec, mem, err));
    if (s->base.table.key_count == 0)
        return ck_fail(err, CK_INVALID, "%s (%s): mode = 'upsert' needs a primary key", spec->type, spec->uid);
    return plan_slot(&s->base.table, &s->base.arena, &s->slot, &s->key, &s->values, &s->value_count, &s->field_of, err);
}

static void upsert_free(upsert_sink *s) {
    ck_mem mem = s->base.mem;
    ck_file_sink_destroy(&s->base);
    ck_free(mem, s, sizeof *s);
}

ck_status ck_upsert_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    upsert_sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->base.mode = &ck_upsert_vtbl;
    ck_status status = upsert_init(s, spec, mem, err);
    if (status == CK_OK)
        *self = s;
    else
        upsert_free(s);
    return status;
}

ck_status ck_upsert_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                          ck_error *err) {
    ck_sink_table t;
    ck_key_spec key;
    const uint32_t *values, *field_of;
    uint32_t value_count;
    ck_slot_schema *s = ck_arena_array(a, 2, sizeof *s);
    if (!s) return ck_nomem(err, a->mem, 2 * sizeof *s);
    CK_TRY(ck_sink_table_read(a, spec, &t, NULL, err));
    CK_TRY(plan_slot(&t, a, &s[0], &key, &values, &value_count, &field_of, err));
    s[1] = *ck_commit_slot();
    *slots = s;
    *count = 2;
    return CK_OK;
}

static ck_status upsert_open(void *self, ck_op_ctx *ctx) {
    upsert_sink *s = self;
    s->dirty = true; /* a restored job may have another parallelism than its files */
    s->last_end_us = ck_mono_us(ctx->proc);
    CK_TRY(ck_state_table(ctx->state, &s->slot, &s->table, ctx->error));
    return ck_part_writer_init(&s->base.writer, ctx, s->base.mem, s->base.dir);
}

/* ---- rows ---- */

static uint16_t *place_of(upsert_sink *s, const ck_row *row) {
    size_t at = (size_t)ck_mix64((uint64_t)(uintptr_t)row) % PLACE_SLOTS;
    while (s->last_op[at] && s->rows[s->last_op[at] - 1] != row) at = (at + 1) % PLACE_SLOTS;
    return &s->last_op[at];
}

/* Operations of a key come in order, and only the last one counts: a put with all its columns, or a delete. */
static ck_status upsert_batch(upsert_sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_sink_check_nulls(&s->base.table, b, ctx->error));
    ck_row **gone = ck_arena_alloc(ctx->arena, b->sel_count * sizeof *gone);
    if (!gone) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *gone);
    ck_key_hash(&s->key, b, ck_table_seed(s->table), s->hashes);
    ck_keys keys = {&s->key, b, s->hashes, b->sel_count};
    CK_TRY(ck_table_upsert(s->table, &keys, s->rows, NULL, ctx->error));
    memset(s->last_op, 0, sizeof s->last_op);
    for (uint32_t k = 0; k < b->sel_count; k++) *place_of(s, s->rows[k]) = (uint16_t)(k + 1);
    uint32_t gone_count = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (*place_of(s, s->rows[k]) != k + 1) continue;
        if (ck_batch_weight(b, row) < 0) {
            gone[gone_count++] = s->rows[k];
            continue;
        }
        for (uint32_t i = 0; i < s->value_count; i++) {
            ck_status status =
                ck_table_set_field(s->table, s->rows[k], s->key.count + i, b->columns[s->values[i]], row);
            if (status != CK_OK) return ck_nomem(ctx->error, ctx->mem, s->slot.value_count * sizeof(ck_strview));
        }
    }
    s->dirty = true;
    ck_op_count(ctx, "rows_out", b->sel_count);
    return gone_count ? ck_table_erase(s->table, gone, gone_count, ctx->error) : CK_OK;
}

/* ---- the file ---- */

static const char *target_path(upsert_sink *s, uint64_t checkpoint, ck_op_ctx *ctx) {
    const char *dir = s->base.dir, *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
    if (!s->base.commits) return ck_sink_rows_path(ctx->arena, dir, s->base.subtask, s->base.options.format);
    return ck_arena_printf(ctx->arena, "%s%s" CK_STAGED_PREFIX "%s-rows-%u-%llu.%s", dir, slash, s->base.uuid,
                           s->base.subtask, (unsigned long long)checkpoint, s->base.options.format);
}

static ck_status encode_some(upsert_sink *s, uint32_t n, ck_op_ctx *ctx) {
    const ck_schema *schema = s->base.table.schema;
    ck_batch *b = ck_batch_new(ctx->mem, schema->field_count, n, false, false);
    ck_status status = b ? CK_OK : CK_NOMEM;
    for (uint32_t c = 0; status == CK_OK && c < schema->field_count; c++) {
        ck_column_builder builder;
        status = ck_column_builder_init(&builder, ctx->mem, schema->fields[c].type, n);
        if (status == CK_OK)
            status = ck_table_gather_field(s->table, (const ck_row *const *)s->rows, n, s->field_of[c], &builder);
        ck_column *column = status == CK_OK ? ck_column_builder_finish(&builder) : NULL;
        ck_column_builder_destroy(&builder);
        status = column ? CK_OK : CK_NOMEM;
        if (column) ck_batch_set_column(b, c, &column);
    }
    size_t from = s->base.text.n;
    if (status == CK_OK) status = ck_encoder_rows(s->base.encoder, b, NULL, &s->base.text, NULL);
    ck_batch_unref(&b);
    if (status != CK_OK) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    ck_file_sink_count(&s->base, from);
    return ck_file_sink_hand_over(&s->base, false);
}

/* One piece of the rewrite. CK_MORE: call again; CK_AGAIN: when there is room. CK_OK: the file is ordered whole. */
static ck_status rewrite(upsert_sink *s, uint64_t checkpoint, ck_op_ctx *ctx) {
    CK_TRY(ck_part_writer_room(&s->base.writer));
    if (!s->writing) {
        const char *path = target_path(s, checkpoint, ctx);
        if (!path) return ck_nomem(ctx->error, ctx->mem, strlen(s->base.dir));
        CK_TRY(ck_file_sink_begin(&s->base, path, ctx));
        s->writing = true;
        s->scan = (ck_table_scan){0};
        s->began_us = ck_mono_us(ctx->proc);
    }
    uint32_t n = ck_table_scan_next(s->table, &s->scan, s->rows, CK_BATCH_ROWS_MAX);
    if (n > 0) {
        CK_TRY(encode_some(s, n, ctx));
        return CK_MORE;
    }
    CK_TRY(ck_file_sink_hand_over(&s->base, true));
    CK_TRY(ck_part_writer_finish(&s->base.writer, true));
    if (!s->base.commits && s->base.subtask + 1 == s->base.parallelism) /* else the committer does it */
        CK_TRY(
            ck_part_writer_remove(&s->base.writer, ck_sink_is_stale_rows, s->base.options.format, s->base.parallelism));
    s->writing = s->dirty = false;
    s->last_end_us = ck_mono_us(ctx->proc);
    s->last_cost_us = s->last_end_us - s->began_us;
    return CK_OK;
}

static ck_status commit_file(upsert_sink *s, uint64_t checkpoint, ck_op_ctx *ctx) {
    ck_committable c = {.checkpoint = checkpoint};
    ck_sink_payload payload = {.staged = s->base.part.path,
                               .bytes = s->base.part.bytes,
                               .crc32c = s->base.part.crc32c,
                               .replace = true,
                               .subtask = s->base.subtask,
                               .of = s->base.parallelism};
    c.name = ck_sink_rows_path(ctx->arena, s->base.dir, s->base.subtask, s->base.options.format);
    if (!c.name) return ck_nomem(ctx->error, ctx->mem, strlen(s->base.dir));
    CK_TRY(ck_sink_payload_print(ctx->arena, &payload, &c.payload, ctx->error));
    return ck_commits_put(ctx->state, &c, ctx->error);
}

static bool rewrite_is_due(const upsert_sink *s, ck_op_ctx *ctx) {
    if (s->writing) return true;
    if (!s->dirty) return false;
    return s->ended || ctx->savepoint || s->last_cost_us * REWRITE_SHARE <= ck_mono_us(ctx->proc) - s->last_end_us;
}

static ck_status upsert_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    upsert_sink *s = self;
    /* After a failed write no checkpoint can come to an end any more, also when nothing is left to write. */
    ck_status room = ck_part_writer_room(&s->base.writer);
    if (room != CK_OK && room != CK_AGAIN) return room;
    if (rewrite_is_due(s, ctx)) {
        CK_TRY(rewrite(s, checkpoint, ctx));
        if (s->base.commits) CK_TRY(commit_file(s, checkpoint, ctx));
        s->base.part = (ck_part){0};
    } else if (s->dirty) {
        ck_op_count(ctx, "rewrites_skipped", 1);
    }
    ck_op_hold_ack(ctx);
    ck_status status = ck_part_writer_release(&s->base.writer, checkpoint);
    if (status != CK_OK) ck_op_release_ack(ctx, checkpoint, status, ctx->error);
    return status;
}

static ck_status upsert_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    upsert_sink *s = self;
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) return upsert_batch(s, ev->batch, ctx);
    if (ev->kind != CK_EVENT_END) return CK_OK;
    s->ended = true; /* where checkpoints commit, the final one writes */
    if (!s->base.commits && (s->dirty || s->writing)) CK_TRY(rewrite(s, 0, ctx));
    return ck_part_writer_drained(&s->base.writer);
}

static ck_status upsert_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    upsert_sink *s = self;
    return s->base.commits ? ck_commits_forget(ctx->state, checkpoint, ctx->error) : CK_OK;
}

static void upsert_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    upsert_free(self);
}

const ck_operator_vtbl ck_upsert_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = upsert_open,
    .on_event = upsert_on_event,
    .pre_snapshot = upsert_pre_snapshot,
    .on_committed = upsert_on_committed,
    .close = upsert_close,
};
