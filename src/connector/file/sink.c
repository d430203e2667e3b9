/* The `file` sink: one operator type, two modes behind it. */
#include "connector/connectors.h"

#include "connector/file/sink_int.h"

static ck_status read_mode(const ck_op_spec *spec, ck_mem mem, bool *upsert, ck_error *err) {
    ck_arena a;
    ck_sink_table t;
    ck_file_options o = {0};
    ck_arena_init(&a, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_sink_table_read(&a, spec, &t, NULL, err);
    if (s == CK_OK) s = ck_file_options_read(&t.options, &o, err);
    ck_arena_destroy(&a);
    *upsert = o.upsert;
    return s;
}

static ck_status sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    bool upsert;
    CK_TRY(read_mode(spec, mem, &upsert, err));
    if (upsert) return ck_upsert_create(spec, mem, self, err);
    if (spec->inputs[0].mode != CK_MODE_APPEND)
        return ck_fail(err, CK_INVALID, "%s (%s): parts only take inserts; changes need mode = 'upsert'", spec->type,
                       spec->uid);
    return ck_append_create(spec, mem, self, err);
}

static ck_status sink_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                            ck_error *err) {
    bool upsert;
    CK_TRY(read_mode(spec, a->mem, &upsert, err));
    if (upsert) return ck_upsert_slots(spec, a, slots, count, err);
    *slots = ck_commit_slot();
    *count = 1;
    return CK_OK;
}

static const ck_operator_vtbl *mode_of(void *self) { return ((ck_file_sink *)self)->mode; }

static ck_status sink_open(void *self, ck_op_ctx *ctx) { return mode_of(self)->open(self, ctx); }
static ck_status sink_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    return mode_of(self)->on_event(self, input, ev, ctx);
}
static ck_status sink_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    return mode_of(self)->pre_snapshot(self, checkpoint, ctx);
}
static ck_status sink_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    return mode_of(self)->on_committed(self, checkpoint, ctx);
}
static void sink_close(void *self, ck_op_ctx *ctx) { mode_of(self)->close(self, ctx); }

static const ck_operator_vtbl sink_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = sink_open,
    .on_event = sink_on_event,
    .pre_snapshot = sink_pre_snapshot,
    .on_committed = sink_on_committed,
    .close = sink_close,
};

const ck_op_desc ck_op_sink_file = {
    .type = "sink.file",
    .op = &sink_vtbl,
    .committer = &ck_file_committer_vtbl,
    .create = sink_create,
    .create_committer = ck_file_committer_create,
    .slots = sink_slots,
    .look = ck_file_sink_look,
};
