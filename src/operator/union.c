/* UNION ALL: rows of every input pass as they come. Watermarks, barriers and ends are the runtime's. */
#include "operator/operators.h"

#include "operator/params_int.h"

typedef struct union_op {
    ck_mem mem;
} union_op;

static ck_status union_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    /* Keys of several inputs would overwrite each other: upsert edges are materialised before they come here. */
    CK_TRY(ck_params_inputs(spec, 0, 1u << CK_MODE_UPSERT, err));
    for (uint32_t i = 1; i < spec->input_count; i++) {
        const ck_schema *first = spec->inputs[0].schema, *s = spec->inputs[i].schema;
        bool same = s->field_count == first->field_count;
        for (uint32_t c = 0; same && c < s->field_count; c++)
            same = ck_type_eq(s->fields[c].type, first->fields[c].type);
        if (!same)
            return ck_fail(err, CK_INVALID, "%s (%s): columns of input %u differ from those of the first", spec->type,
                           spec->uid, i + 1);
    }
    union_op *u = ck_alloc(mem, sizeof *u);
    if (!u) return ck_nomem(err, mem, sizeof *u);
    u->mem = mem;
    *self = u;
    return CK_OK;
}

static ck_status union_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self;
    (void)input;
    if (ev->kind != CK_EVENT_BATCH || ev->batch->sel_count == 0) return CK_OK;
    ck_batch *b = ck_batch_ref(ev->batch);
    return ck_op_emit(ctx, 0, &b);
}

static void union_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    union_op *u = self;
    ck_free(u->mem, u, sizeof *u);
}

static const ck_operator_vtbl union_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = union_on_event,
    .close = union_close,
};

const ck_op_desc ck_op_union = {
    .type = "union", .op = &union_vtbl, .create = union_create, .again = ck_op_again_by_rows};
