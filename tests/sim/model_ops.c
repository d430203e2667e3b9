/* The model's operators without I/O of their own: count, limit, pass. */
#include "model_int.h"

#include "base/hash.h"

int64_t model_param(const char *json, const char *name, int64_t deflt) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(json, quoted);
    return at ? strtoll(at + strlen(quoted), NULL, 10) : deflt;
}

ck_batch *model_batch(ck_mem mem, const int64_t *const *columns, uint32_t column_count, uint32_t n) {
    ck_batch *b = ck_batch_new(mem, column_count, n, false, false);
    for (uint32_t c = 0; b && c < column_count; c++) {
        ck_column *col = ck_column_new(mem, CK_PHYS_I64, n);
        if (!col) {
            ck_batch_unref(&b);
            return NULL;
        }
        memcpy(col->i64, columns[c], n * sizeof(int64_t));
        ck_batch_set_column(b, c, &col);
    }
    return b;
}

const ck_schema *model_schema(ck_arena *a, uint32_t count, const char *const *names) {
    ck_schema *s = CK_ARENA_NEW(a, ck_schema);
    ck_field *fields = ck_arena_array(a, count, sizeof *fields);
    if (!s || !fields) return NULL;
    for (uint32_t i = 0; i < count; i++) fields[i] = (ck_field){names[i], ck_type_simple(CK_TYPE_BIGINT), false};
    *s = (ck_schema){fields, count};
    return s;
}

int64_t model_key(int64_t v, int64_t keys) { return (int64_t)(ck_mix64((uint64_t)v + 1) % (uint64_t)keys); }
uint32_t model_split_rows(uint32_t split, uint32_t rows) { return rows * (1 + split % 3) / 2; }

/* ---- count ---- */

typedef struct count_op {
    ck_mem mem;
    bool final;
    ck_table *table;
    uint32_t n_at, emitted_at, sum_at; /* offsets in a row */
    bool dirty[MODEL_KEYS_MAX];
} count_op;

static ck_status count_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    count_op *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->mem = mem;
    c->final = spec->final;
    *self = c;
    return CK_OK;
}

static ck_status count_open(void *self, ck_op_ctx *ctx) {
    count_op *c = self;
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT);
    ck_field key = {"k", big, false}, values[] = {{"n", big, false}, {"emitted", big, false}, {"sum", big, false}};
    ck_slot_schema slot = {.slot = "count",
                           .state_type = "model_count",
                           .version = 1,
                           .mode = CK_SLOT_KEYED,
                           .partition = &key,
                           .partition_count = 1,
                           .values = values,
                           .value_count = 3};
    CK_TRY(ck_state_table(ctx->state, &slot, &c->table, ctx->error));
    const ck_row_layout *l = ck_table_layout(c->table);
    c->n_at = l->fields[l->value_first].offset;
    c->emitted_at = l->fields[l->value_first + 1].offset;
    c->sum_at = l->fields[l->value_first + 2].offset;
    return CK_OK;
}

static ck_status upsert(count_op *c, const ck_batch *b, ck_row **rows, ck_op_ctx *ctx) {
    static const uint32_t column = 0;
    const ck_type *types[] = {ck_type_simple(CK_TYPE_BIGINT)};
    ck_key_spec spec = {&column, types, 1};
    uint64_t *hashes = ck_arena_array(ctx->arena, b->sel_count, sizeof *hashes);
    if (!hashes) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *hashes);
    ck_key_hash(&spec, b, ck_table_seed(c->table), hashes);
    ck_keys keys = {&spec, b, hashes, b->sel_count};
    return ck_table_upsert(c->table, &keys, rows, NULL, ctx->error);
}

static ck_status count_batch(count_op *c, const ck_batch *b, ck_op_ctx *ctx) {
    ck_row **rows = ck_arena_array(ctx->arena, b->sel_count, sizeof *rows);
    if (!rows) return ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *rows);
    CK_TRY(upsert(c, b, rows, ctx));
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t r = ck_batch_row(b, i);
        ck_row_set_i64(rows[i], c->n_at, ck_row_i64(rows[i], c->n_at) + 1);
        ck_row_set_i64(rows[i], c->sum_at, ck_row_i64(rows[i], c->sum_at) + b->columns[1]->i64[r]);
        c->dirty[b->columns[0]->i64[r]] = true;
    }
    return CK_OK;
}

static ck_status emit_columns(int64_t (*cols)[MODEL_KEYS_MAX], uint32_t n, ck_op_ctx *ctx) {
    const int64_t *columns[] = {cols[0], cols[1], cols[2], cols[3]};
    ck_batch *out = model_batch(ctx->mem, columns, 4, n);
    return out ? ck_op_emit(ctx, 0, &out) : ck_nomem(ctx->error, ctx->mem, n * 32);
}

/* What is new of the dirty keys. */
static ck_status count_flush(count_op *c, ck_op_ctx *ctx) {
    int64_t cols[4][MODEL_KEYS_MAX];
    const int64_t *keys[] = {cols[0]};
    ck_row *rows[MODEL_KEYS_MAX];
    uint32_t n = 0;
    for (int64_t k = 0; k < MODEL_KEYS_MAX; k++)
        if (c->dirty[k]) cols[0][n++] = k;
    if (n == 0) return CK_OK;
    ck_batch *b = model_batch(ctx->mem, keys, 1, n);
    if (!b) return ck_nomem(ctx->error, ctx->mem, n * 8);
    ck_status s = upsert(c, b, rows, ctx);
    ck_batch_unref(&b);
    CK_TRY(s);
    for (uint32_t i = 0; i < n; i++) {
        cols[1][i] = ck_row_i64(rows[i], c->emitted_at);
        cols[2][i] = ck_row_i64(rows[i], c->n_at);
        cols[3][i] = ck_row_i64(rows[i], c->sum_at);
        ck_row_set_i64(rows[i], c->emitted_at, cols[2][i]);
    }
    memset(c->dirty, 0, sizeof c->dirty);
    return emit_columns(cols, n, ctx);
}

static ck_status count_all(count_op *c, ck_op_ctx *ctx) {
    int64_t cols[4][MODEL_KEYS_MAX];
    ck_row *rows[MODEL_KEYS_MAX];
    ck_table_scan scan = {0};
    const ck_row_layout *l = ck_table_layout(c->table);
    for (uint32_t n; (n = ck_table_scan_next(c->table, &scan, rows, MODEL_KEYS_MAX)) > 0;) {
        for (uint32_t i = 0; i < n; i++) {
            cols[0][i] = ck_row_i64(rows[i], l->fields[0].offset);
            cols[1][i] = 0;
            cols[2][i] = ck_row_i64(rows[i], c->n_at);
            cols[3][i] = ck_row_i64(rows[i], c->sum_at);
        }
        CK_TRY(emit_columns(cols, n, ctx));
    }
    return CK_OK;
}

static ck_status count_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    count_op *c = self;
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) return count_batch(c, ev->batch, ctx);
    if (ev->kind == CK_EVENT_END) return c->final ? count_all(c, ctx) : count_flush(c, ctx);
    return ev->kind == CK_EVENT_FLUSH && !c->final ? count_flush(c, ctx) : CK_OK;
}
static ck_status count_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    count_op *c = self;
    (void)checkpoint;
    return c->final ? CK_OK : count_flush(c, ctx);
}
static void count_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((count_op *)self)->mem, self, sizeof(count_op));
}

static const ck_operator_vtbl count_vtbl = {.struct_bytes = sizeof count_vtbl,
                                            .open = count_open,
                                            .on_event = count_event,
                                            .pre_snapshot = count_snapshot,
                                            .close = count_close};
const ck_op_desc model_count = {.type = "model.count", .op = &count_vtbl, .create = count_create};

/* ---- limit ---- */

typedef struct limit_op {
    ck_mem mem;
    int64_t limit;
    ck_table *table;
    uint32_t n_at;
} limit_op;

static ck_status limit_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    limit_op *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) return ck_nomem(err, mem, sizeof *l);
    l->mem = mem;
    l->limit = model_param(spec->params, "limit", 10);
    *self = l;
    return CK_OK;
}

static ck_status limit_open(void *self, ck_op_ctx *ctx) {
    limit_op *l = self;
    ck_field value = {"n", ck_type_simple(CK_TYPE_BIGINT), false};
    ck_slot_schema slot = {
        .slot = "limit", .state_type = "model_limit", .version = 1, .values = &value, .value_count = 1};
    CK_TRY(ck_state_table(ctx->state, &slot, &l->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(l->table);
    l->n_at = layout->fields[layout->value_first].offset;
    ck_row *row;
    bool fresh;
    CK_TRY(ck_table_single(l->table, true, &row, &fresh, ctx->error));
    if (ck_row_i64(row, l->n_at) >= l->limit) ck_op_close_input(ctx, 0);
    return CK_OK;
}

static ck_status limit_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    limit_op *l = self;
    if (ev->kind != CK_EVENT_BATCH) return CK_OK;
    ck_row *row;
    bool fresh;
    CK_TRY(ck_table_single(l->table, true, &row, &fresh, ctx->error));
    int64_t had = ck_row_i64(row, l->n_at), take = ev->batch->sel_count;
    if (take > l->limit - had) take = l->limit - had;
    ck_row_set_i64(row, l->n_at, had + take);
    if (had + take >= l->limit) ck_op_close_input(ctx, input);
    if (take <= 0) return CK_OK;
    uint16_t sel[CK_BATCH_ROWS_MAX];
    for (int64_t i = 0; i < take; i++) sel[i] = (uint16_t)ck_batch_row(ev->batch, (uint32_t)i);
    ck_batch *b = ck_batch_select(ev->batch, sel, (uint32_t)take);
    return b ? ck_op_emit(ctx, 0, &b) : ck_nomem(ctx->error, ctx->mem, 4096);
}
static void limit_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((limit_op *)self)->mem, self, sizeof(limit_op));
}

static const ck_operator_vtbl limit_vtbl = {
    .struct_bytes = sizeof limit_vtbl, .open = limit_open, .on_event = limit_event, .close = limit_close};
const ck_op_desc model_limit = {.type = "model.limit", .op = &limit_vtbl, .create = limit_create};

/* ---- pass: hands batches on, two at a time where it can ---- */

typedef struct pass_op {
    ck_mem mem;
    bool half_done;
} pass_op;

static ck_status pass_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec;
    pass_op *p = ck_alloc_zero(mem, sizeof *p);
    if (!p) return ck_nomem(err, mem, sizeof *p);
    p->mem = mem;
    *self = p;
    return CK_OK;
}

/* Batches of two rows and more go out in two halves, with CK_MORE between. */
static ck_status pass_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    pass_op *p = self;
    (void)input;
    if (ev->kind != CK_EVENT_BATCH) return CK_OK;
    uint32_t n = ev->batch->sel_count, from = p->half_done ? n / 2 : 0, to = p->half_done || n < 2 ? n : n / 2;
    uint16_t sel[CK_BATCH_ROWS_MAX];
    for (uint32_t i = from; i < to; i++) sel[i - from] = (uint16_t)ck_batch_row(ev->batch, i);
    ck_batch *b = ck_batch_select(ev->batch, sel, to - from);
    if (!b) return ck_nomem(ctx->error, ctx->mem, 4096);
    CK_TRY(ck_op_emit(ctx, 0, &b));
    p->half_done = to < n;
    return p->half_done ? CK_MORE : CK_OK;
}
static void pass_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((pass_op *)self)->mem, self, sizeof(pass_op));
}

static const ck_operator_vtbl pass_vtbl = {
    .struct_bytes = sizeof pass_vtbl, .on_event = pass_event, .close = pass_close};
const ck_op_desc model_pass = {.type = "model.pass", .op = &pass_vtbl, .create = pass_create};

ck_status model_register(ck_registry *r, ck_error *err) {
    const ck_op_desc *all[] = {&model_source, &model_count, &model_limit, &model_pass, &model_sink};
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) CK_TRY(ck_registry_add_op(r, all[i], err));
    return CK_OK;
}
