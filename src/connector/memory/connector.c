/* The `memory` connector: a source over the batches of a table and a sink into the job's stage. Split k of n reads the
 * batches k, k + n, k + 2n ... up to the number there was when the job started. */
#include <yyjson.h>

#include "base/json.h"
#include "connector/connectors.h"
#include "connector/memory/memory.h"
#include "connector/outputs.h"
#include "connector/table.h"

static ck_status stage_of(const ck_op_spec *spec, const ck_table_options *o, ck_memory_stage **stage,
                          const char **instance, ck_error *err) {
    const ck_job_outputs *outputs = spec->job_data;
    *stage = outputs ? outputs->memory : NULL;
    *instance = ck_option_text(o, CK_MEMORY_INSTANCE, NULL);
    if (*stage && *instance) return CK_OK;
    return ck_fail(err, CK_REFUSED, "%s (%s): tables in memory belong to one engine, and this job has none", spec->type,
                   spec->uid);
}

/* ---- source ---- */

typedef struct memory_split {
    char id[24];
    uint64_t next, step, end;
} memory_split;

typedef struct memory_source {
    ck_mem mem;
    ck_arena arena; /* table, splits */
    ck_source_table table;
    ck_memory_stage *stage;
    const char *instance;
    memory_split *splits;
    uint32_t split_count, split_capacity, current;
    ck_batch *batch; /* being given out, from row `row` on */
    uint32_t row;
} memory_source;

static ck_status memory_source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    memory_source *m = ck_alloc_zero(mem, sizeof *m);
    if (!m) return ck_nomem(err, mem, sizeof *m);
    m->mem = mem;
    ck_arena_init(&m->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_source_table_read(&m->arena, spec, &m->table, err);
    if (s == CK_OK) s = stage_of(spec, &m->table.options, &m->stage, &m->instance, err);
    if (s != CK_OK) {
        ck_arena_destroy(&m->arena);
        ck_free(mem, m, sizeof *m);
        return s;
    }
    *self = m;
    return CK_OK;
}

static const char *split_spec(ck_arena *a, const memory_split *s) {
    return ck_arena_printf(a, "{\"next\":%llu,\"step\":%llu,\"end\":%llu}", (unsigned long long)s->next,
                           (unsigned long long)s->step, (unsigned long long)s->end);
}

static ck_status memory_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    ck_source_table t;
    ck_memory_stage *stage;
    const char *instance;
    CK_TRY(ck_source_table_read(out->arena, spec, &t, err));
    CK_TRY(stage_of(spec, &t.options, &stage, &instance, err));
    size_t end = ck_memory_batches(stage, instance);
    for (uint32_t i = 0; i < parallelism; i++) {
        memory_split s = {.next = i, .step = parallelism, .end = end};
        const char *id = ck_arena_printf(out->arena, "part-%u", i), *text = split_spec(out->arena, &s);
        if (!id || !text || ck_split_list_add(out, id, text) != CK_OK) return ck_nomem(err, out->arena->mem, 64);
    }
    return CK_OK;
}

static ck_status memory_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    memory_source *m = self;
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(ctx->arena, ck_view_of(split->spec), &doc, ctx->error));
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *next = yyjson_obj_get(root, "next"), *step = yyjson_obj_get(root, "step"),
               *end = yyjson_obj_get(root, "end");
    if (!yyjson_is_uint(next) || !yyjson_is_uint(step) || !yyjson_is_uint(end) || !yyjson_get_uint(step) ||
        strlen(split->id) >= sizeof m->splits->id)
        return ck_fail(ctx->error, CK_CORRUPT, "split %s is not one of a table in memory: %s", split->id, split->spec);
    if (yyjson_get_uint(end) > ck_memory_batches(m->stage, m->instance))
        return ck_fail(ctx->error, CK_REFUSED,
                       "the rows of \"%s\" were in the memory of a process that has ended; start with --fresh",
                       m->table.table);
    if (m->split_count == m->split_capacity) {
        uint32_t more = m->split_capacity ? m->split_capacity * 2 : 4;
        memory_split *p = ck_arena_array(&m->arena, more, sizeof *p);
        if (!p) return ck_nomem(ctx->error, m->arena.mem, more * sizeof *p);
        if (m->split_count) memcpy(p, m->splits, m->split_count * sizeof *p);
        m->splits = p, m->split_capacity = more;
    }
    memory_split *s = &m->splits[m->split_count++];
    *s = (memory_split){.next = yyjson_get_uint(next), .step = yyjson_get_uint(step), .end = yyjson_get_uint(end)};
    memcpy(s->id, split->id, strlen(split->id) + 1);
    return CK_OK;
}

/* The next batch to give out; m->batch stays NULL when all have been. */
static ck_status take_batch(memory_source *m, ck_op_ctx *ctx) {
    while (!m->batch && m->current < m->split_count) {
        const memory_split *s = &m->splits[m->current];
        if (s->next >= s->end) {
            m->current++;
            continue;
        }
        m->batch = ck_memory_batch(m->stage, m->instance, s->next);
        m->row = 0;
        if (!m->batch)
            return ck_fail(ctx->error, CK_REFUSED, "table \"%s\" was dropped while it was read", m->table.table);
    }
    return CK_OK;
}

/* Rows [row, row + n) of the batch, in the columns asked for. */
static ck_batch *cut(const memory_source *m, uint32_t n, ck_op_ctx *ctx) {
    if (n == m->batch->row_count) return ck_source_output(&m->table, m->batch);
    uint16_t *sel = ck_arena_array(ctx->arena, n, sizeof *sel);
    if (!sel) return NULL;
    for (uint32_t i = 0; i < n; i++) sel[i] = (uint16_t)(m->row + i);
    ck_batch *rows = ck_batch_select(m->batch, sel, n);
    ck_batch *out = rows ? ck_source_output(&m->table, rows) : NULL;
    ck_batch_unref(&rows);
    return out;
}

static ck_status memory_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    memory_source *m = self;
    (void)until_us;
    *result = CK_POLL_END;
    CK_TRY(take_batch(m, ctx));
    if (!m->batch) return CK_OK;
    uint32_t left = m->batch->row_count - m->row;
    uint32_t n = left < ctx->settings->batch_rows ? left : ctx->settings->batch_rows;
    ck_batch *out = cut(m, n, ctx);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof(uint16_t));
    m->row += n;
    if (m->row == m->batch->row_count) {
        ck_batch_unref(&m->batch);
        m->splits[m->current].next += m->splits[m->current].step;
    }
    ck_op_count(ctx, "rows_in", n);
    *result = CK_POLL_MORE;
    return ck_op_emit(ctx, 0, &out);
}

/* A barrier may stand inside a batch: it is given out from its beginning again only after the process has gone, and
 * then the rows have gone too, so that the restore is refused. */
static ck_status memory_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    memory_source *m = self;
    for (uint32_t i = 0; i < m->split_count; i++) {
        const char *spec = split_spec(ctx->arena, &m->splits[i]);
        if (!spec || ck_split_list_add(out, m->splits[i].id, spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, 64);
    }
    return CK_OK;
}

static void memory_source_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    memory_source *m = self;
    ck_batch_unref(&m->batch);
    ck_arena_destroy(&m->arena);
    ck_free(m->mem, m, sizeof *m);
}

static const ck_source_vtbl memory_source_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .add_split = memory_add_split,
    .poll = memory_poll,
    .snapshot = memory_snapshot,
    .close = memory_source_close,
};

const ck_op_desc ck_op_source_memory = {.type = "source.memory",
                                        .source = &memory_source_vtbl,
                                        .create = memory_source_create,
                                        .enumerate = memory_enumerate};

/* ---- sink ---- */

typedef struct memory_sink {
    ck_mem mem;
    ck_arena arena;
    ck_sink_table table;
    ck_memory_stage *stage;
    const char *instance;
} memory_sink;

static ck_status memory_sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    memory_sink *m = ck_alloc_zero(mem, sizeof *m);
    if (!m) return ck_nomem(err, mem, sizeof *m);
    m->mem = mem;
    ck_arena_init(&m->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_sink_table_read(&m->arena, spec, &m->table, NULL, err);
    if (s == CK_OK) s = stage_of(spec, &m->table.options, &m->stage, &m->instance, err);
    if (s != CK_OK) {
        ck_arena_destroy(&m->arena);
        ck_free(mem, m, sizeof *m);
        return s;
    }
    *self = m;
    return CK_OK;
}

static ck_status memory_sink_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    memory_sink *m = self;
    (void)input;
    if (ev->kind != CK_EVENT_BATCH || ev->batch->sel_count == 0) return CK_OK;
    CK_TRY(ck_sink_check_nulls(&m->table, ev->batch, ctx->error));
    CK_TRY(ck_memory_stage_add(m->stage, m->instance, ev->batch, ctx->error));
    ck_op_count(ctx, "rows_out", ev->batch->sel_count);
    return CK_OK;
}

static void memory_sink_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    memory_sink *m = self;
    ck_arena_destroy(&m->arena);
    ck_free(m->mem, m, sizeof *m);
}

static const ck_operator_vtbl memory_sink_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .on_event = memory_sink_on_event,
    .close = memory_sink_close,
};

const ck_op_desc ck_op_sink_memory = {.type = "sink.memory", .op = &memory_sink_vtbl, .create = memory_sink_create};

static ck_guarantee memory_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t;
    (void)checkpoints;
    *why = "the rows live in this process";
    return CK_NO_GUARANTEE;
}

const ck_connector_desc ck_connector_memory = {
    .name = "memory",
    .source_type = "source.memory",
    .sink_type = "sink.memory",
    .guarantee = memory_guarantee,
};
