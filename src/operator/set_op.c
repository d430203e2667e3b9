/* INTERSECT and EXCEPT, ALL or not, over append and retract input. Of every row it is kept how often it stands on
 * either side; NULLs are equal here. How often it is in the result is a function of the two numbers, and each change of
 * one by 1 changes that by at most 1. In `final` nothing is said before the end of both inputs. */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/accumulator.h"
#include "operator/params_int.h"
#include "operator/ttl_int.h"

typedef struct set_op {
    ck_mem mem;
    ck_arena arena;
    bool except, all, retract, final;
    const ck_schema *schema;
    ck_key_spec key; /* every column */
    ck_slot_schema slot;
    ck_op_ttl ttl;
    ck_table *table;
    uint32_t count_at[2]; /* of the left and of the right side */
    uint32_t open;        /* inputs */
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    ck_row *rows[CK_BATCH_ROWS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
    int8_t weights[CK_BATCH_ROWS_MAX];
    /* at the end */
    ck_table_scan scan;
    ck_batch *piece; /* rows taken out of the table; times[k] of row k are still to be said */
    uint32_t piece_at;
    int64_t times[CK_BATCH_ROWS_MAX];
} set_op;

static int64_t times_of(const set_op *s, int64_t left, int64_t right) {
    if (left < 0) left = 0;
    if (right < 0) right = 0;
    if (!s->all) left = left > 0, right = right > 0;
    if (s->except) return left > right ? left - right : 0;
    return left < right ? left : right;
}

/* ---- making ---- */

static ck_status lay_out(set_op *s, ck_arena *a, ck_error *err) {
    uint32_t n = s->schema->field_count, *columns = ck_arena_array(a, n + 1u, sizeof *columns);
    const ck_type **types = ck_arena_array(a, n + 1u, sizeof *types);
    ck_field *fields = ck_arena_array(a, n + 3u, sizeof *fields);
    if (!columns || !types || !fields) return ck_nomem(err, a->mem, n * sizeof *fields);
    for (uint32_t i = 0; i < n; i++) {
        columns[i] = i;
        types[i] = s->schema->fields[i].type;
        fields[i] = s->schema->fields[i];
        fields[i].nullable = true; /* of either side */
    }
    fields[n] = (ck_field){"left", ck_type_simple(CK_TYPE_BIGINT), false};
    fields[n + 1] = (ck_field){"right", ck_type_simple(CK_TYPE_BIGINT), false};
    s->key = (ck_key_spec){columns, types, n};
    s->slot = (ck_slot_schema){.slot = "rows",
                               .state_type = "set_op",
                               .version = 1,
                               .mode = CK_SLOT_KEYED,
                               .partition = fields,
                               .partition_count = n,
                               .values = fields + n,
                               .value_count = 2};
    return CK_OK;
}

static ck_status set_op_init(set_op *s, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"op", "all", "ttl_us", "ttl_time", NULL};
    yyjson_val *root;
    const char *op;
    CK_TRY(ck_params_inputs(spec, 2, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_params_text(spec, root, "op", &op, err));
    if (!op || (strcmp(op, "intersect") != 0 && strcmp(op, "except") != 0))
        return ck_fail(err, CK_INVALID, "%s (%s): parameter \"op\" must be intersect or except", spec->type, spec->uid);
    s->except = strcmp(op, "except") == 0;
    s->all = yyjson_is_true(yyjson_obj_get(root, "all"));
    s->final = spec->final;
    s->retract = spec->inputs[0].mode == CK_MODE_RETRACT || spec->inputs[1].mode == CK_MODE_RETRACT;
    s->schema = spec->inputs[0].schema;
    s->open = 2;
    const ck_schema *right = spec->inputs[1].schema;
    if (right->field_count != s->schema->field_count)
        return ck_fail(err, CK_INVALID, "%s (%s): the inputs have %u and %u columns", spec->type, spec->uid,
                       s->schema->field_count, right->field_count);
    for (uint32_t i = 0; i < right->field_count; i++)
        if (!ck_type_eq(right->fields[i].type, s->schema->fields[i].type))
            return ck_fail(err, CK_INVALID, "%s (%s): column %u differs in type between the inputs", spec->type,
                           spec->uid, i + 1);
    CK_TRY(lay_out(s, a, err));
    return ck_op_ttl_read(spec, root, "ttl_us", &s->ttl, &s->slot.ttl_us, err);
}

static void set_op_free(set_op *s) {
    ck_batch_unref(&s->piece);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status set_op_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    set_op *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status st = set_op_init(s, &s->arena, spec, err);
    if (st == CK_OK)
        *self = s;
    else
        set_op_free(s);
    return st;
}

static ck_status set_op_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                              ck_error *err) {
    set_op *s = CK_ARENA_NEW(a, set_op);
    if (!s) return ck_nomem(err, a->mem, sizeof *s);
    CK_TRY(set_op_init(s, a, spec, err));
    *slots = &s->slot;
    *count = 1;
    return CK_OK;
}

static ck_status set_op_open(void *self, ck_op_ctx *ctx) {
    set_op *s = self;
    CK_TRY(ck_state_table(ctx->state, &s->slot, &s->table, ctx->error));
    const ck_row_layout *l = ck_table_layout(s->table);
    for (uint32_t i = 0; i < 2; i++) s->count_at[i] = l->fields[l->value_first + i].offset;
    return CK_OK;
}

/* ---- a batch ---- */

/* Rows whose place in the result changes, into sel and weights; rows that are nowhere any more leave. */
static ck_status count_rows(set_op *s, uint32_t input, const ck_batch *b, uint32_t *out, bool *minus, ck_op_ctx *ctx) {
    uint32_t n = b->sel_count, m = 0, gone = 0, negative = 0, unmatched = 0;
    ck_row **zero = ck_arena_alloc(ctx->arena, n * sizeof *zero);
    if (!zero) return ck_nomem(ctx->error, ctx->mem, n * sizeof *zero);
    ck_key_hash(&s->key, b, ck_table_seed(s->table), s->hashes);
    ck_keys keys = {&s->key, b, s->hashes, n};
    CK_TRY(ck_table_upsert(s->table, &keys, s->rows, NULL, ctx->error));
    for (uint32_t k = 0; k < n; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t count[2] = {ck_row_i64(s->rows[k], s->count_at[0]), ck_row_i64(s->rows[k], s->count_at[1])};
        int64_t before = times_of(s, count[0], count[1]);
        count[input] += ck_batch_weight(b, row);
        if (count[input] < 0 && s->ttl.on) count[input] = 0, unmatched++; /* of a row that has been forgotten */
        negative += count[input] == -1 && ck_batch_weight(b, row) < 0;
        ck_row_set_i64(s->rows[k], s->count_at[input], count[input]);
        int64_t change = times_of(s, count[0], count[1]) - before;
        s->sel[m] = (uint16_t)row;
        s->weights[m] = (int8_t)change;
        m += change != 0;
        *minus |= change < 0;
    }
    if (negative) ck_op_count(ctx, "negative_rows", negative);
    if (unmatched) ck_op_count(ctx, "unmatched_rows", unmatched);
    *out = m;
    for (uint32_t k = 0; s->retract && k < n; k++) {
        if (ck_row_i64(s->rows[k], s->count_at[0]) != 0 || ck_row_i64(s->rows[k], s->count_at[1]) != 0) continue;
        ck_row_set_i64(s->rows[k], s->count_at[0], INT64_MIN); /* so that a repeat is not listed again */
        zero[gone++] = s->rows[k];
    }
    return gone ? ck_table_erase(s->table, zero, gone, ctx->error) : CK_OK;
}

static ck_status set_op_batch(set_op *s, uint32_t input, ck_batch *b, ck_op_ctx *ctx) {
    uint32_t m = 0;
    bool minus = false;
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_op_ttl_come(&s->ttl, ctx));
    CK_TRY(count_rows(s, input, b, &m, &minus, ctx));
    if (s->final || m == 0) return CK_OK;
    ck_batch *out = ck_batch_new(ctx->mem, b->column_count, b->row_count, true, minus);
    if (!out) return ck_nomem(ctx->error, ctx->mem, b->bytes);
    for (uint32_t c = 0; c < b->column_count; c++) {
        ck_column *col = ck_column_ref(b->columns[c]);
        ck_batch_set_column(out, c, &col);
    }
    memcpy(out->sel, s->sel, m * sizeof *s->sel);
    out->sel_count = m;
    for (uint32_t i = 0; minus && i < m; i++) out->weights[s->sel[i]] = s->weights[i];
    return ck_op_emit(ctx, 0, &out);
}

/* ---- the end ---- */

static ck_status take_piece(set_op *s, bool *end, ck_op_ctx *ctx) {
    uint32_t most = ctx->settings->batch_rows, n = ck_table_scan_next(s->table, &s->scan, s->rows, most), m = 0;
    ck_row **wanted = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *wanted);
    if (!wanted) return ck_nomem(ctx->error, ctx->mem, n * sizeof *wanted);
    *end = n == 0;
    for (uint32_t i = 0; i < n; i++) {
        s->times[m] = times_of(s, ck_row_i64(s->rows[i], s->count_at[0]), ck_row_i64(s->rows[i], s->count_at[1]));
        wanted[m] = s->rows[i];
        m += s->times[m] != 0;
    }
    s->piece_at = 0;
    if (m > 0) {
        s->piece = ck_batch_new(ctx->mem, s->key.count, m, false, false);
        if (!s->piece) return ck_nomem(ctx->error, ctx->mem, m);
    }
    for (uint32_t c = 0; m > 0 && c < s->key.count; c++) {
        ck_column *col;
        if (ck_table_gather_column(s->table, wanted, m, NULL, m, c, ctx->mem, &col) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, m * sizeof(ck_strview));
        ck_batch_set_column(s->piece, c, &col);
    }
    return n ? ck_table_erase(s->table, s->rows, n, ctx->error) : CK_OK;
}

/* About one batch of the piece. */
static ck_status emit_piece(set_op *s, ck_op_ctx *ctx) {
    ck_batch_builder b;
    uint32_t most = ctx->settings->batch_rows, n = 0;
    for (; n < most && s->piece_at < s->piece->row_count; s->piece_at += s->times[s->piece_at] == 0)
        for (; n < most && s->times[s->piece_at] > 0; s->times[s->piece_at]--) s->sel[n++] = (uint16_t)s->piece_at;
    ck_batch *out = NULL;
    CK_TRY(ck_batch_builder_init(&b, ctx->mem, s->schema, n));
    ck_status st = ck_batch_builder_gather(&b, s->piece, s->sel, n);
    if (st == CK_OK) out = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    if (s->piece_at == s->piece->row_count) ck_batch_unref(&s->piece);
    return out ? ck_op_emit(ctx, 0, &out) : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

static ck_status emit_all(set_op *s, ck_op_ctx *ctx) {
    bool end = false;
    if (!s->piece) CK_TRY(take_piece(s, &end, ctx));
    if (s->piece) CK_TRY(emit_piece(s, ctx));
    return end ? CK_OK : CK_MORE;
}

static ck_status set_op_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    set_op *s = self;
    switch (ev->kind) {
    case CK_EVENT_BATCH: return set_op_batch(s, input, ev->batch, ctx);
    case CK_EVENT_END:
        if (!s->final) return CK_OK;
        if (s->open > 0 && --s->open > 0) return CK_OK;
        return emit_all(s, ctx);
    default: return CK_OK;
    }
}

static void set_op_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    set_op_free(self);
}

static const ck_operator_vtbl set_op_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = set_op_open,
    .on_event = set_op_on_event,
    .close = set_op_close,
};

const ck_op_desc ck_op_set_op = {
    .type = "set_op", .op = &set_op_vtbl, .create = set_op_create, .slots = set_op_slots, .again = ck_op_again_by_rows};
