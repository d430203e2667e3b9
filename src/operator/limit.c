/* LIMIT and OFFSET without ORDER BY over append input: passes the first rows that come. What was seen and passed is
 * state, so that a restored job does not begin to count again; once full it closes its input, which ends the sources.
 */
#include "operator/operators.h"

#include <yyjson.h>

#include "operator/params_int.h"
#include "state/state.h"

typedef struct limit_op {
    ck_mem mem;
    ck_arena arena;
    ck_table *table;
    uint32_t seen_at, passed_at; /* offsets in the state's row */
    uint64_t offset, limit;      /* rows to skip; then rows to pass, UINT64_MAX: all */
    uint64_t seen, passed;
} limit_op;

static const ck_field limit_fields[] = {{"seen", NULL, false}, {"passed", NULL, false}};

static ck_status limit_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                             ck_error *err) {
    (void)spec;
    ck_slot_schema *s = CK_ARENA_NEW(a, ck_slot_schema);
    ck_field *fields = ck_arena_array(a, 2, sizeof *fields);
    if (!s || !fields) return ck_nomem(err, a->mem, sizeof *s);
    for (size_t i = 0; i < CK_ARRAY_COUNT(limit_fields); i++) {
        fields[i] = limit_fields[i];
        fields[i].type = ck_type_simple(CK_TYPE_BIGINT);
    }
    *s = (ck_slot_schema){.slot = "limit",
                          .state_type = "limit",
                          .version = 1,
                          .mode = CK_SLOT_KEYED,
                          .values = fields,
                          .value_count = CK_ARRAY_COUNT(limit_fields)};
    *slots = s;
    *count = 1;
    return CK_OK;
}

static ck_status limit_init(limit_op *l, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"limit", "offset", NULL};
    struct yyjson_val *root;
    bool has;
    /* Over changes, LIMIT is a top-N by the whole row: another operator. */
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_RETRACT | 1u << CK_MODE_UPSERT, err));
    if (spec->parallelism != 1)
        return ck_fail(err, CK_INVALID, "%s (%s) counts all rows and cannot run in %u subtasks", spec->type, spec->uid,
                       spec->parallelism);
    CK_TRY(ck_params_read(&l->arena, spec, known, &root, err));
    CK_TRY(ck_params_u64(spec, root, "limit", &l->limit, &has, err));
    if (!has) l->limit = UINT64_MAX;
    return ck_params_u64(spec, root, "offset", &l->offset, &has, err);
}

static void limit_free(limit_op *l) {
    ck_arena_destroy(&l->arena);
    ck_free(l->mem, l, sizeof *l);
}

static ck_status limit_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    limit_op *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) return ck_nomem(err, mem, sizeof *l);
    l->mem = mem;
    ck_arena_init(&l->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = limit_init(l, spec, err);
    if (s == CK_OK)
        *self = l;
    else
        limit_free(l);
    return s;
}

static ck_status limit_open(void *self, ck_op_ctx *ctx) {
    limit_op *l = self;
    const ck_slot_schema *slot;
    uint32_t count;
    CK_TRY(limit_slots(NULL, &l->arena, &slot, &count, ctx->error));
    CK_TRY(ck_state_table(ctx->state, slot, &l->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(l->table);
    l->seen_at = layout->fields[layout->value_first].offset;
    l->passed_at = layout->fields[layout->value_first + 1].offset;
    ck_row *row;
    CK_TRY(ck_table_single(l->table, false, &row, NULL, ctx->error));
    if (row) {
        l->seen = (uint64_t)ck_row_i64(row, l->seen_at);
        l->passed = (uint64_t)ck_row_i64(row, l->passed_at);
    }
    if (l->passed >= l->limit) ck_op_close_input(ctx, 0);
    return CK_OK;
}

static ck_status limit_save(limit_op *l, ck_op_ctx *ctx) {
    ck_row *row;
    CK_TRY(ck_table_single(l->table, true, &row, NULL, ctx->error));
    ck_row_set_i64(row, l->seen_at, (int64_t)l->seen);
    ck_row_set_i64(row, l->passed_at, (int64_t)l->passed);
    return CK_OK;
}

static ck_status limit_batch(limit_op *l, ck_batch *b, ck_op_ctx *ctx) {
    uint64_t left = l->limit - l->passed;
    if (left == 0) { /* also a LIMIT 0 and what was on its way when the input was closed */
        ck_op_close_input(ctx, 0);
        return CK_OK;
    }
    uint64_t skip = l->seen < l->offset ? l->offset - l->seen : 0;
    uint32_t first = skip < b->sel_count ? (uint32_t)skip : b->sel_count;
    uint32_t n = b->sel_count - first < left ? b->sel_count - first : (uint32_t)left;
    l->seen += b->sel_count;
    l->passed += n;
    CK_TRY(limit_save(l, ctx));
    ck_status s = CK_OK;
    if (n > 0) {
        uint16_t *sel = ck_arena_array(ctx->arena, n, sizeof *sel);
        for (uint32_t i = 0; sel && i < n; i++) sel[i] = (uint16_t)ck_batch_row(b, first + i);
        ck_batch *out = n == b->sel_count ? ck_batch_ref(b) : sel ? ck_batch_select(b, sel, n) : NULL;
        if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof *sel);
        s = ck_op_emit(ctx, 0, &out);
    }
    if (s == CK_OK && l->passed == l->limit) ck_op_close_input(ctx, 0);
    return s;
}

static ck_status limit_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    return ev->kind == CK_EVENT_BATCH ? limit_batch(self, ev->batch, ctx) : CK_OK;
}

static void limit_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    limit_free(self);
}

static const ck_operator_vtbl limit_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = limit_open,
    .on_event = limit_on_event,
    .close = limit_close,
};

const ck_op_desc ck_op_limit = {.type = "limit", .op = &limit_vtbl, .create = limit_create, .slots = limit_slots};
