/* ORDER BY over bounded input. With a small LIMIT it is a ranked top-N of one partition (top_n.c). Otherwise rows are
 * kept as they come, numbered, and sorted once at END by their order keys. */
#include "operator/operators.h"

#include <stdlib.h>

#include "operator/sort_int.h"

/* ---- keeping ---- */

/* The number of a row is its order key; the columns are values. */
static ck_status plan_slot(ck_sort *op, ck_error *err) {
    ck_arena *a = op->plan->arena;
    const ck_schema *in = op->plan->input;
    ck_order_field *order = CK_ARENA_NEW(a, ck_order_field);
    ck_field *values = ck_arena_array(a, in->field_count, sizeof *values);
    if (!order || !values) return ck_nomem(err, a->mem, in->field_count * sizeof *values);
    const char *name = "number";
    while (ck_schema_find(in, ck_view_of(name)) >= 0)
        if (!(name = ck_arena_printf(a, "%s_", name))) return ck_nomem(err, a->mem, 32);
    *order = (ck_order_field){{name, ck_type_simple(CK_TYPE_BIGINT), false}, false, false};
    for (uint32_t i = 0; i < in->field_count; i++) {
        values[i] = in->fields[i];
        values[i].nullable = values[i].nullable || values[i].type->kind == CK_TYPE_NULL;
    }
    op->plan->slot = (ck_slot_schema){.slot = "rows",
                                      .state_type = "sort",
                                      .version = 1,
                                      .mode = CK_SLOT_KEYED,
                                      .order = order,
                                      .order_count = 1,
                                      .values = values,
                                      .value_count = in->field_count};
    return CK_OK;
}

ck_status ck_sort_init(ck_sort *op, ck_top_plan *plan, ck_mem mem, ck_error *err) {
    op->mem = mem;
    op->plan = plan;
    ck_bytes_init(&op->keys, mem, SIZE_MAX);
    return plan_slot(op, err);
}

void ck_sort_destroy(ck_sort *op) {
    if (!op->plan) return;
    ck_bytes_destroy(&op->keys);
    if (op->rows) ck_free(op->mem, op->rows, op->count * sizeof *op->rows);
    op->rows = NULL;
}

static ck_status find_partition(ck_sort *op, bool create, ck_op_ctx *ctx) {
    static const ck_key_spec none = {NULL, NULL, 0};
    ck_batch *one = ck_batch_new(ctx->mem, 0, 1, false, false);
    uint64_t hash;
    if (!one) return ck_nomem(ctx->error, ctx->mem, sizeof *one);
    ck_key_hash(&none, one, ck_table_seed(op->table), &hash);
    ck_keys keys = {&none, one, &hash, 1};
    ck_status s = ck_table_partitions(op->table, &keys, create, &op->partition, ctx->error);
    ck_batch_unref(&one);
    return s;
}

ck_status ck_sort_open(ck_sort *op, ck_op_ctx *ctx) {
    ck_row *last;
    CK_TRY(ck_state_table(ctx->state, &op->plan->slot, &op->table, ctx->error));
    CK_TRY(find_partition(op, false, ctx));
    if (op->partition && ck_partition_last(op->table, op->partition, &last))
        op->next = ck_row_i64(last, ck_table_layout(op->table)->fields[0].offset) + 1;
    return CK_OK;
}

static ck_status set_row(ck_sort *op, ck_row *row, const ck_batch *b, uint32_t at, ck_op_ctx *ctx) {
    uint32_t first = ck_table_layout(op->table)->value_first;
    for (uint32_t c = 0; c < op->plan->input->field_count; c++) {
        ck_status s = ck_table_set_field(op->table, row, first + c, b->columns[c], at);
        if (s == CK_OK) continue;
        const char *name = op->plan->input->fields[c].name;
        if (s == CK_INVALID)
            return ck_fail(ctx->error, s, "%s: NULL in the column \"%s\", which is NOT NULL", ctx->uid, name);
        if (s == CK_FULL)
            return ck_fail(ctx->error, s, "%s: a value of the column \"%s\" is too long to be kept", ctx->uid, name);
        return ck_nomem(ctx->error, op->mem, sizeof(ck_strview));
    }
    return CK_OK;
}

ck_status ck_sort_batch(ck_sort *op, const ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    if (!op->partition) CK_TRY(find_partition(op, true, ctx));
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint64_t big = __builtin_bswap64((uint64_t)op->next ^ 1ULL << 63);
        ck_row *row;
        CK_TRY(ck_partition_upsert(op->table, op->partition, (ck_view){(const char *)&big, sizeof big}, &row, NULL,
                                   ctx->error));
        op->next++;
        CK_TRY(set_row(op, row, b, ck_batch_row(b, k), ctx));
    }
    return CK_OK;
}

/* ---- sorting ---- */

static int by_key(const void *pa, const void *pb, void *keys) {
    const ck_sort_row *a = pa, *b = pb;
    if (a->prefix != b->prefix) return a->prefix < b->prefix ? -1 : 1;
    const char *p = keys;
    return ck_view_cmp((ck_view){p + a->at, a->bytes}, (ck_view){p + b->at, b->bytes});
}

/* The columns of some rows, those of `order` alone where out has room for no more. */
static ck_status gather(ck_sort *op, const ck_row *const *rows, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    uint32_t first = ck_table_layout(op->table)->value_first;
    const ck_schema *s = op->plan->input;
    *out = ck_batch_new(ctx->mem, s->field_count, n, false, false);
    ck_status status = *out ? CK_OK : CK_NOMEM;
    for (uint32_t c = 0; status == CK_OK && c < s->field_count; c++) {
        ck_column_builder b;
        status = ck_column_builder_init(&b, ctx->mem, s->fields[c].type, n);
        if (status == CK_OK) status = ck_table_gather_field(op->table, rows, n, first + c, &b);
        ck_column *column = status == CK_OK ? ck_column_builder_finish(&b) : NULL;
        ck_column_builder_destroy(&b);
        if (!column)
            status = CK_NOMEM;
        else
            ck_batch_set_column(*out, c, &column);
    }
    if (status == CK_OK) return CK_OK;
    ck_batch_unref(out);
    return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

static ck_status encode(ck_sort *op, const ck_batch *b, ck_sort_row *rows, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < b->row_count; i++) {
        ck_sort_row *r = &rows[i];
        r->at = op->keys.n;
        ck_status s = ck_order_encode(op->plan->order, op->plan->order_count, b, i, &op->keys);
        if (s == CK_FULL)
            return ck_fail(ctx->error, CK_FULL, "%s: a row is over %d bytes, more than rows that are sorted may have",
                           ctx->uid, (int)CK_KEY_BYTES_MAX);
        if (s != CK_OK) return ck_nomem(ctx->error, op->mem, op->keys.capacity);
        r->bytes = (uint32_t)(op->keys.n - r->at);
        r->prefix = 0;
        size_t n = r->bytes < 8 ? r->bytes : 8;
        memcpy(&r->prefix, op->keys.p + r->at, n);
        r->prefix = __builtin_bswap64(r->prefix);
    }
    return CK_OK;
}

/* Everything that is kept, sorted. Rows stay where they are: nothing is written any more. */
static ck_status sort_all(ck_sort *op, ck_op_ctx *ctx) {
    const ck_row **some = ck_arena_array(ctx->arena, CK_BATCH_ROWS_MAX, sizeof(ck_row *));
    op->count = op->partition ? ck_partition_rows(op->table, op->partition) : 0;
    if (op->count == 0) return CK_OK;
    op->rows = ck_alloc(op->mem, op->count * sizeof *op->rows);
    if (!some || !op->rows) return ck_nomem(ctx->error, op->mem, op->count * sizeof *op->rows);
    ck_range range;
    ck_range_open(&range, op->table, op->partition, (ck_view){0}, (ck_view){0});
    for (uint64_t done = 0; done < op->count;) {
        uint32_t n = 0;
        ck_batch *b;
        for (ck_row *row; n < CK_BATCH_ROWS_MAX && ck_range_next(&range, &row); n++) {
            some[n] = row;
            op->rows[done + n].row = row;
        }
        CK_TRY(gather(op, some, n, &b, ctx));
        ck_status s = encode(op, b, op->rows + done, ctx);
        ck_batch_unref(&b);
        CK_TRY(s);
        done += n;
    }
    qsort_r(op->rows, op->count, sizeof *op->rows, by_key, op->keys.p);
    return CK_OK;
}

ck_status ck_sort_emit_all(ck_sort *op, ck_op_ctx *ctx) {
    if (!op->sorted) {
        CK_TRY(sort_all(op, ctx));
        op->sorted = true;
        op->emitted = op->plan->offset;
    }
    uint64_t end = op->count < op->plan->keep ? op->count : op->plan->keep;
    if (op->emitted >= end) return CK_OK;
    uint32_t n =
        end - op->emitted < ctx->settings->batch_rows ? (uint32_t)(end - op->emitted) : ctx->settings->batch_rows;
    const ck_row **some = ck_arena_array(ctx->arena, n, sizeof(ck_row *));
    ck_batch *out;
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_row *));
    for (uint32_t i = 0; i < n; i++) some[i] = op->rows[op->emitted + i].row;
    CK_TRY(gather(op, some, n, &out, ctx));
    op->emitted += n;
    CK_TRY(ck_op_emit(ctx, 0, &out));
    return op->emitted < end ? CK_MORE : CK_OK;
}

/* ---- the operator ---- */

typedef struct sort_op {
    ck_mem mem;
    ck_arena arena;
    ck_top top; /* with the plan */
    ck_sort all;
    bool ranked; /* in top */
} sort_op;

static ck_status read_plan(ck_top_plan *plan, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"keys", "limit", "offset", NULL};
    struct yyjson_val *root;
    ck_top_key *keys;
    uint32_t count;
    uint64_t limit, offset;
    bool has;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_RETRACT | 1u << CK_MODE_UPSERT, err));
    if (spec->parallelism != 1)
        return ck_fail(err, CK_INVALID, "%s (%s) orders all rows and cannot run in %u subtasks", spec->type, spec->uid,
                       spec->parallelism);
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_top_read_keys(a, spec, root, "keys", &keys, &count, err));
    CK_TRY(ck_params_u64(spec, root, "limit", &limit, &has, err));
    if (!has) limit = UINT64_MAX;
    CK_TRY(ck_params_u64(spec, root, "offset", &offset, &has, err));
    return ck_top_plan_whole(plan, a, spec, keys, count, limit, offset, err);
}

static void sort_free(sort_op *op) {
    ck_sort_destroy(&op->all);
    ck_top_destroy(&op->top);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status sort_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    sort_op *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_top_init(&op->top, mem);
    ck_status s = read_plan(&op->top.plan, &op->arena, spec, err);
    op->ranked = s == CK_OK && op->top.plan.keep <= CK_SORT_RANKED_MAX;
    if (s == CK_OK && !op->ranked) s = ck_sort_init(&op->all, &op->top.plan, mem, err);
    if (s == CK_OK)
        *self = op;
    else
        sort_free(op);
    return s;
}

static ck_status sort_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                            ck_error *err) {
    ck_top_plan *plan = CK_ARENA_NEW(a, ck_top_plan);
    ck_sort all = {0};
    if (!plan) return ck_nomem(err, a->mem, sizeof *plan);
    CK_TRY(read_plan(plan, a, spec, err));
    if (plan->keep > CK_SORT_RANKED_MAX) CK_TRY(ck_sort_init(&all, plan, a->mem, err));
    *slots = &plan->slot;
    *count = 1;
    return CK_OK;
}

static ck_status sort_open(void *self, ck_op_ctx *ctx) {
    sort_op *op = self;
    return op->ranked ? ck_top_open(&op->top, ctx) : ck_sort_open(&op->all, ctx);
}

static ck_status sort_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    sort_op *op = self;
    (void)input;
    if (ev->kind == CK_EVENT_BATCH)
        return op->ranked ? ck_top_batch(&op->top, ev->batch, ctx) : ck_sort_batch(&op->all, ev->batch, ctx);
    if (ev->kind != CK_EVENT_END) return CK_OK;
    return op->ranked ? ck_top_emit_all(&op->top, ctx) : ck_sort_emit_all(&op->all, ctx);
}

static void sort_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    sort_free(self);
}

static const ck_operator_vtbl sort_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = sort_open,
    .on_event = sort_on_event,
    .close = sort_close,
};

const ck_op_desc ck_op_sort = {.type = "sort", .op = &sort_vtbl, .create = sort_create, .slots = sort_slots};
