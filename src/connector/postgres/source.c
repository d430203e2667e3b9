/* The `postgres` source: one operator type, two modes behind it. */
#include "connector/connectors.h"
#include "connector/postgres/cdc_int.h"

static ck_status read_mode(const ck_op_spec *spec, ck_mem mem, bool *cdc, ck_error *err) {
    ck_arena a;
    ck_source_table t;
    ck_pg_options o = {0};
    ck_arena_init(&a, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_source_table_read(&a, spec, &t, err);
    if (s == CK_OK) s = ck_pg_options_read(&t.options, &o, err);
    *cdc = o.cdc;
    ck_arena_destroy(&a);
    return s;
}

static ck_status source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    bool cdc;
    CK_TRY(read_mode(spec, mem, &cdc, err));
    return cdc ? ck_pg_cdc_create(spec, mem, self, err) : ck_pg_scan_create(spec, mem, self, err);
}

static ck_status source_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    bool cdc;
    CK_TRY(read_mode(spec, ck_proc_mem(spec->proc, CK_MEM_PLAN), &cdc, err));
    return cdc ? ck_pg_cdc_enumerate(spec, out, err) : ck_pg_enumerate(spec, parallelism, out, err);
}

static const ck_source_vtbl *mode_of(void *self) { return *(const ck_source_vtbl **)self; }

static ck_status source_open(void *self, ck_op_ctx *ctx) { return mode_of(self)->open(self, ctx); }
static ck_status source_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    return mode_of(self)->add_split(self, split, ctx);
}
static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    return mode_of(self)->poll(self, ctx, result, until_us);
}
static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    return mode_of(self)->snapshot(self, out, ctx);
}
static void source_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    if (CK_HAS(mode_of(self), on_committed)) mode_of(self)->on_committed(self, checkpoint, ctx);
}
static void source_close(void *self, ck_op_ctx *ctx) { mode_of(self)->close(self, ctx); }

static const ck_source_vtbl source_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .open = source_open,
    .add_split = source_add_split,
    .poll = source_poll,
    .snapshot = source_snapshot,
    .close = source_close,
    .on_committed = source_on_committed,
};

const ck_op_desc ck_op_source_postgres = {
    .type = "source.postgres", .source = &source_vtbl, .create = source_create, .enumerate = source_enumerate};
