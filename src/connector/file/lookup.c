/* The file connector's table as one that rows are looked up in: read whole into memory by the file source itself, found
 * by key; read again when what was read is older than `lookup.cache_ttl_ms`. Its rows are in a state store of its own,
 * which nothing marks. */
#include "connector/connectors.h"

#include "connector/file/file_int.h"
#include "state/state.h"
#include "stream/lookup.h"

typedef enum stage { NOTHING, LISTING, READING, READY } stage;

typedef struct file_lookup {
    ck_op_ctx ctx; /* first: what the source sees in place of the operator's */
    ck_mem mem;
    ck_op_spec spec;
    ck_key_spec keys; /* of the rows */
    ck_slot_schema slot;
    ck_field *fields;
    uint32_t *field_of; /* column -> field */
    int64_t ttl_us, bytes_max;
    const char *table_name;
    ck_arena arena;
    /* a reading */
    stage stage;
    ck_arena listed;
    ck_split_list splits;
    ck_io_job job;
    ck_status list_status;
    ck_error list_error;
    struct ck_op_runtime *rt; /* to be woken, from where the listing runs */
    void (*wake)(struct ck_op_runtime *rt);
    _Atomic bool done;
    void *source;
    ck_state_store *store; /* being filled, or that is asked */
    ck_table *table;
    int64_t read_at_us;
    /* keys being found */
    bool finding;
    ck_list_walk walk;
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_list heads[CK_BATCH_ROWS_MAX];
    uint16_t key_of[CK_BATCH_ROWS_MAX];
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    ck_batch *found;
} file_lookup;

/* ---- making ---- */

static void lookup_free(file_lookup *l) {
    ck_batch_unref(&l->found);
    if (l->store) ck_state_store_free(l->store);
    ck_arena_destroy(&l->listed);
    ck_arena_destroy(&l->arena);
    ck_free(l->mem, l, sizeof *l);
}

static ck_status plan_slot(file_lookup *l, const ck_lookup_spec *s, ck_error *err) {
    const ck_schema *schema = s->op->schema;
    uint32_t width = schema->field_count, keys = s->key_count, values = 0;
    const ck_type **types = ck_arena_array(&l->arena, keys + 1u, sizeof(ck_type *));
    ck_order_field *number = CK_ARENA_NEW(&l->arena, ck_order_field);
    l->fields = ck_arena_array(&l->arena, keys + width + 1u, sizeof *l->fields);
    l->field_of = ck_arena_array(&l->arena, width + 1u, sizeof *l->field_of);
    if (!types || !number || !l->fields || !l->field_of) return ck_nomem(err, l->mem, width * sizeof *l->fields);
    for (uint32_t i = 0; i < keys; i++) {
        types[i] = schema->fields[s->keys[i]].type;
        l->fields[i] = schema->fields[s->keys[i]];
    }
    for (uint32_t c = 0; c < width;
         c++) { /* keys again: a stored decimal or double need not be the one that was read */
        l->fields[keys + values] = schema->fields[c];
        l->field_of[c] = keys + 1 + values++;
    }
    number->field = (ck_field){"#", ck_type_simple(CK_TYPE_BIGINT), false};
    l->keys = (ck_key_spec){s->keys, types, keys};
    l->slot = (ck_slot_schema){.slot = "rows",
                               .state_type = "lookup",
                               .version = 1,
                               .mode = CK_SLOT_KEYED,
                               .partition = l->fields,
                               .partition_count = keys,
                               .order = number,
                               .order_count = 1,
                               .values = l->fields + keys,
                               .value_count = values,
                               .listed = true};
    return CK_OK;
}

static ck_status lookup_init(file_lookup *l, const ck_lookup_spec *s, ck_error *err) {
    ck_source_table table;
    ck_file_options o;
    CK_TRY(ck_source_table_read(&l->arena, s->op, &table, err));
    CK_TRY(ck_file_options_read(&table.options, &o, err));
    l->ttl_us = o.cache_ttl_ms * 1000;
    l->bytes_max = o.lookup_bytes_max;
    l->table_name = table.table;
    return plan_slot(l, s, err);
}

static ck_status lookup_create(const ck_lookup_spec *s, ck_mem mem, void **self, ck_error *err) {
    file_lookup *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) return ck_nomem(err, mem, sizeof *l);
    l->mem = mem;
    l->spec = *s->op;
    l->spec.subtask = 0, l->spec.parallelism = 1; /* every subtask has all of it */
    ck_arena_init(&l->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&l->listed, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status st = lookup_init(l, s, err);
    if (st == CK_OK)
        *self = l;
    else
        lookup_free(l);
    return st;
}

/* ---- reading ---- */

static file_lookup *of_job(ck_io_job *j) { return (file_lookup *)(void *)((char *)j - offsetof(file_lookup, job)); }

static void list_files(ck_io_job *j) {
    file_lookup *l = of_job(j);
    l->list_status = ck_file_enumerate(&l->spec, 1, &l->splits, &l->list_error);
}

static void listed(ck_io_job *j) {
    file_lookup *l = of_job(j);
    struct ck_op_runtime *rt = l->rt;
    void (*wake)(struct ck_op_runtime *) = l->wake;
    atomic_store(&l->done, true); /* from here on l is the step's again */
    wake(rt);
}

static ck_status new_store(file_lookup *l, ck_op_ctx *ctx) {
    ck_state *state;
    ck_state_config cfg = {.proc = ctx->proc,
                           .mem = ck_mem_as(ctx->mem, CK_MEM_STATE),
                           .key_groups = CK_KEY_GROUPS_DEFAULT,
                           .range = {0, CK_KEY_GROUPS_DEFAULT - 1},
                           .hash_seed = ctx->op_id};
    if (l->store) ck_state_store_free(l->store);
    l->store = NULL;
    CK_TRY(ck_state_store_new(&cfg, &l->store, ctx->error));
    CK_TRY(ck_state_of(l->store, "lookup", "lookup", &state, ctx->error));
    return ck_state_table(state, &l->slot, &l->table, ctx->error);
}

static ck_status add_rows(file_lookup *l, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = 0, keys = l->keys.count;
    for (uint32_t k = 0; k < b->sel_count; k++) { /* NULL is found by nobody */
        uint32_t row = ck_batch_row(b, k);
        bool null = false;
        for (uint32_t i = 0; i < keys; i++) null |= ck_column_is_null(b->columns[l->keys.columns[i]], row);
        l->sel[n] = (uint16_t)row;
        n += !null;
    }
    if (n == 0) return CK_OK;
    ck_batch *some = ck_batch_select(b, l->sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *l->sel);
    ck_key_hash(&l->keys, some, ck_table_seed(l->table), l->hashes);
    ck_keys k = {&l->keys, some, l->hashes, n};
    ck_status s = ck_table_list_add(l->table, &k, l->rows, ctx->error);
    for (uint32_t c = 0; s == CK_OK && c < l->slot.value_count; c++) {
        s = ck_table_set_column(l->table, l->rows, n, l->field_of[c], b->columns[c], l->sel);
        if (s == CK_NOMEM) s = ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    }
    ck_batch_unref(&some);
    if (s == CK_OK && ck_state_bytes(l->store) > (uint64_t)l->bytes_max)
        return ck_fail(ctx->error, CK_REFUSED,
                       "table \"%s\" is too large to be looked up in: its rows take more than lookup.max_bytes (%lld); "
                       "raise it, or write a plain JOIN",
                       l->table_name, (long long)l->bytes_max);
    return s;
}

/* In place of the operator's own: what the source emits are rows of the table. */
static ck_status take_rows(ck_op_ctx *ctx, uint32_t port, ck_batch **b) {
    file_lookup *l = (file_lookup *)(void *)ctx;
    ck_status s = port == 0 ? add_rows(l, *b, ctx) : CK_OK;
    ck_batch_unref(b);
    return s;
}
static ck_status no_watermark(ck_op_ctx *ctx, int64_t value, bool idle) {
    (void)ctx, (void)value, (void)idle;
    return CK_OK;
}
static void count_bad(ck_op_ctx *ctx, const char *counter, uint64_t add) { (void)ctx, (void)counter, (void)add; }

static ck_status start_reading(file_lookup *l, ck_op_ctx *ctx) {
    if (l->list_status != CK_OK) {
        *ctx->error = l->list_error;
        return l->list_status;
    }
    CK_TRY(new_store(l, ctx));
    CK_TRY(ck_op_source_file.create(&l->spec, l->mem, &l->source, ctx->error));
    for (uint32_t i = 0; i < l->splits.count; i++)
        CK_TRY(ck_op_source_file.source->add_split(l->source, &l->splits.splits[i], &l->ctx));
    return CK_OK;
}

static ck_status read_on(file_lookup *l) {
    ck_poll_result r = CK_POLL_MORE;
    int64_t until_us = INT64_MAX;
    CK_TRY(ck_op_source_file.source->poll(l->source, &l->ctx, &r, &until_us));
    if (r == CK_POLL_END) {
        ck_op_source_file.source->close(l->source, &l->ctx);
        l->source = NULL;
        return CK_OK;
    }
    return r == CK_POLL_MORE || until_us != INT64_MAX ? CK_MORE : CK_AGAIN;
}

/* CK_OK: the table is there and young enough. */
static ck_status be_ready(file_lookup *l, ck_op_ctx *ctx) {
    l->ctx = *ctx;
    l->ctx.emit_fn = take_rows, l->ctx.emit_watermark_fn = no_watermark, l->ctx.count_fn = count_bad;
    if (l->stage == READY && l->ttl_us && ck_op_now_us(ctx) - l->read_at_us >= l->ttl_us) l->stage = NOTHING;
    if (l->stage == NOTHING) {
        ck_arena_reset_to(&l->listed, (ck_arena_mark){0});
        l->splits = (ck_split_list){.arena = &l->listed};
        l->list_error = CK_ERROR_INIT;
        l->job = (ck_io_job){.run = list_files, .done = listed};
        atomic_store(&l->done, false);
        l->stage = LISTING;
        l->rt = ctx->rt, l->wake = ctx->wake_fn;
        ck_op_submit_io(ctx, &l->job);
    }
    if (l->stage == LISTING) {
        if (!atomic_load(&l->done)) return CK_AGAIN;
        CK_TRY(start_reading(l, ctx));
        l->stage = READING;
    }
    if (l->stage == READING) {
        CK_TRY(read_on(l));
        l->read_at_us = ck_op_now_us(ctx);
        l->stage = READY;
    }
    return CK_OK;
}

/* ---- finding ---- */

static ck_status gather(file_lookup *l, uint32_t n, ck_op_ctx *ctx) {
    ck_batch *b = ck_batch_new(ctx->mem, l->slot.value_count, n, false, false);
    if (!b) return ck_nomem(ctx->error, ctx->mem, n);
    for (uint32_t c = 0; c < l->slot.value_count; c++) {
        ck_column *column;
        if (ck_table_gather_column(l->table, l->rows, n, NULL, n, l->field_of[c], ctx->mem, &column) != CK_OK) {
            ck_batch_unref(&b);
            return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        }
        ck_batch_set_column(b, c, &column);
    }
    l->found = b;
    return CK_OK;
}

static ck_status lookup_find(void *self, const ck_key_spec *keys, const ck_batch *b, ck_lookup_found *out,
                             ck_op_ctx *ctx) {
    file_lookup *l = self;
    ck_batch_unref(&l->found);
    if (!l->finding) {
        CK_TRY(be_ready(l, ctx));
        ck_key_hash(keys, b, ck_table_seed(l->table), l->hashes);
        ck_keys k = {keys, b, l->hashes, b->sel_count};
        CK_TRY(ck_table_lists(l->table, &k, l->heads, ctx->error));
        l->walk = (ck_list_walk){0};
        l->finding = true;
    }
    uint32_t most = ctx->settings->batch_rows;
    uint32_t n = ck_table_walk_lists(l->table, l->heads, b->sel_count, &l->walk, l->key_of, l->rows, most);
    l->finding = n == most;
    if (n) CK_TRY(gather(l, n, ctx));
    *out = (ck_lookup_found){l->found, l->key_of, n, l->finding};
    return CK_OK;
}

static void lookup_close(void *self, ck_op_ctx *ctx) {
    file_lookup *l = self;
    if (l->source) ck_op_source_file.source->close(l->source, ctx);
    lookup_free(l);
}

const ck_lookup_vtbl ck_lookup_file = {
    .struct_bytes = sizeof(ck_lookup_vtbl), .create = lookup_create, .find = lookup_find, .close = lookup_close};
