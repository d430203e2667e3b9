/* Counts rows and drops them: for measuring, and for statements run for their side effects. */
#include "connector/connectors.h"

#include "connector/table.h"

typedef struct blackhole {
    ck_mem mem;
} blackhole;

static ck_status blackhole_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_arena a;
    ck_sink_table t;
    ck_arena_init(&a, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_sink_table_read(&a, spec, &t, NULL, err);
    ck_arena_destroy(&a);
    if (s != CK_OK) return s;
    blackhole *b = ck_alloc(mem, sizeof *b);
    if (!b) return ck_nomem(err, mem, sizeof *b);
    b->mem = mem;
    *self = b;
    return CK_OK;
}

static ck_status blackhole_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self;
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) ck_op_count(ctx, "rows_out", ev->batch->sel_count);
    return CK_OK;
}

static void blackhole_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    blackhole *b = self;
    ck_free(b->mem, b, sizeof *b);
}

static const ck_operator_vtbl blackhole_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = blackhole_on_event,
    .close = blackhole_close,
};

const ck_op_desc ck_op_sink_blackhole = {.type = "sink.blackhole", .op = &blackhole_vtbl, .create = blackhole_create};

static bool takes_anything(const ck_table_decl *t) {
    (void)t;
    return true;
}

static ck_guarantee blackhole_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t;
    (void)checkpoints;
    *why = "blackhole keeps nothing";
    return CK_EXACTLY_ONCE;
}

const ck_connector_desc ck_connector_blackhole = {
    .name = "blackhole",
    .sink_type = "sink.blackhole",
    .accepts_changes = takes_anything,
    .accepts_upserts = takes_anything,
    .guarantee = blackhole_guarantee,
};
