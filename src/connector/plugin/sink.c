/* A plugin's sink. Each call of it is an I/O job, one at a time: a batch is written while the next one is on its way.
 * Before a checkpoint counts, all is written and flushed or prepared; what is prepared is a committable each. Without
 * checkpoints the sink commits by itself: once a second where the input never ends, and at the end. */
#include "connector/plugin/plugin_int.h"
#include "expr/plugin_column.h"
#include "format/encoder.h"
#include "state/operator_rows.h"

enum { PUBLISH_US = 1000000, PREPARED_BYTES_MAX = 64 << 20 };

typedef enum task { TASK_WRITE, TASK_FLUSH, TASK_PREPARE, TASK_PUBLISH } task;

typedef struct committable {
    size_t at, bytes;
} committable;

typedef struct plugin_sink {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena, job_arena;
    const ck_plugin_connector *connector;
    ck_sink_table table;
    ck_op_spec spec;
    const char *uid, *job_uuid;
    bool upserts, checkpoints;
    ck_op_ctx *ctx;
    bool asked; /* a task that is not a write is under way */
    int64_t
        publish_us; /* by the clock: when what is written is committed without a checkpoint; INT64_MAX: nothing is */
    /* the job's while one runs */
    task task;
    uint64_t checkpoint;
    clink_table face;
    void *user, *committer;
    bool open, tabled, committer_open;
    ck_batch *batch;
    ck_plugin_reader *readers;
    const clink_column **views;
    uint8_t *kinds; /* CK_BATCH_ROWS_MAX; NULL: append */
    int8_t *weights;
    uint16_t *rows;
    ck_bytes prepared; /* bytes of committables, one behind the other */
    committable *committables;
    uint32_t count, capacity;
    ck_status failed;
} plugin_sink;

/* ---- making ---- */

static const clink_sink *face_of(const plugin_sink *s) { return s->connector->face->sink; }

static void sink_free(plugin_sink *s) {
    const clink_sink *f = s->connector ? face_of(s) : NULL;
    if (s->open && f->close) f->close(s->user);
    if (s->committer_open && f->close_committer) f->close_committer(s->committer);
    ck_batch_unref(&s->batch);
    for (uint32_t i = 0; s->readers && i < s->table.schema->field_count; i++)
        ck_plugin_reader_destroy(&s->readers[i], s->mem);
    if (s->committables) ck_free(s->mem, s->committables, s->capacity * sizeof *s->committables);
    ck_bytes_destroy(&s->prepared);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->job_arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status sink_init(plugin_sink *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_plugin_connector_of(spec, &s->connector, err));
    if (!face_of(s))
        return ck_fail(err, CK_INVALID, "%s: connector %s only gives rows", spec->uid, s->connector->face->name);
    CK_TRY(ck_sink_table_read(&s->arena, spec, &s->table, NULL, err));
    uint32_t n = s->table.schema->field_count;
    const char *uuid = spec->settings->job_uuid;
    s->spec = *spec;
    s->checkpoints = spec->settings->checkpoints;
    s->upserts =
        s->table.key_count && face_of(s)->flags & CLINK_TAKES_UPSERTS && spec->inputs[0].mode != CK_MODE_APPEND;
    s->uid = ck_arena_strdup(&s->arena, spec->uid);
    s->job_uuid = ck_arena_strdup(&s->arena, s->checkpoints && uuid ? uuid : "");
    s->readers = ck_arena_array(&s->arena, n + 1u, sizeof *s->readers);
    s->views = ck_arena_array(&s->arena, n + 1u, sizeof(clink_column *));
    if (!s->uid || !s->job_uuid || !s->readers || !s->views) return ck_nomem(err, s->mem, n * sizeof *s->readers);
    for (uint32_t i = 0; i < n; i++) s->views[i] = &s->readers[i].view;
    if (!s->upserts) return CK_OK;
    s->kinds = ck_arena_alloc(&s->arena, CK_BATCH_ROWS_MAX);
    s->weights = ck_arena_alloc(&s->arena, CK_BATCH_ROWS_MAX);
    s->rows = ck_arena_array(&s->arena, CK_BATCH_ROWS_MAX, sizeof *s->rows);
    return s->kinds && s->weights && s->rows ? CK_OK : ck_nomem(err, s->mem, CK_BATCH_ROWS_MAX);
}

ck_status ck_plugin_sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    plugin_sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    s->publish_us = INT64_MAX;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&s->job_arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&s->prepared, mem, PREPARED_BYTES_MAX);
    ck_status status = sink_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        sink_free(s);
    return status;
}

ck_status ck_plugin_sink_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                               ck_error *err) {
    (void)spec, (void)a, (void)err;
    *slots = ck_commit_slot();
    *count = 1;
    return CK_OK;
}

static ck_status sink_open(void *self, ck_op_ctx *ctx) {
    ((plugin_sink *)self)->ctx = ctx;
    return CK_OK;
}

/* ---- the job ---- */

static ck_status said(plugin_sink *s, const char *what, clink_status told, const clink_error *error) {
    return ck_plugin_said(s->connector, s->table.table ? s->table.table : "", what, told, error, &s->call.error);
}

static clink_sink_start start_of(const plugin_sink *s) {
    return (clink_sink_start){.struct_bytes = sizeof(clink_sink_start),
                              .subtask = s->spec.subtask,
                              .parallelism = s->spec.parallelism,
                              .table = &s->face,
                              .job = s->job_uuid,
                              .uid = s->uid};
}

static ck_status open_user(plugin_sink *s) {
    clink_error error = {0};
    if (s->open) return CK_OK;
    if (!s->tabled)
        CK_TRY(ck_plugin_table_make(s->connector, s->table.table, s->table.schema, s->table.key, s->table.key_count,
                                    &s->table.options, s->ctx->proc, &s->job_arena, &s->face, &s->call.error));
    s->tabled = true;
    const clink_sink_start start = start_of(s);
    if (face_of(s)->open) CK_TRY(said(s, "open", face_of(s)->open(&s->user, &start, &error), &error));
    s->open = true;
    return CK_OK;
}

/* Of the rows of a table with a key: those that are, and those that go. */
static ck_status only_last(plugin_sink *s, clink_rows *rows, const int8_t **weights) {
    uint32_t n = 0;
    CK_TRY(ck_change_kinds(s->batch, s->table.key, s->table.key_count, s->kinds));
    for (uint32_t k = 0; k < s->batch->sel_count; k++) {
        if (s->kinds[k] == CK_CHANGE_UPDATE_BEFORE) continue; /* the row behind it replaces it */
        uint32_t row = ck_batch_row(s->batch, k);
        s->rows[n++] = (uint16_t)row;
        s->weights[row] = s->kinds[k] == CK_CHANGE_DELETE ? -1 : 1;
    }
    *rows = (clink_rows){s->rows, n, s->batch->row_count};
    *weights = s->weights;
    return CK_OK;
}

static ck_status write_batch(plugin_sink *s) {
    const ck_schema *schema = s->table.schema;
    const ck_batch *b = s->batch;
    clink_error error = {0};
    clink_rows rows = {b->sel, b->sel_count, b->row_count};
    const int8_t *weights = b->weights;
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (ck_plugin_read(&s->readers[i], s->mem, b->columns[i], false, schema->fields[i].name) != CK_OK)
            return ck_nomem(&s->call.error, s->mem, sizeof(void *));
    if (s->upserts && only_last(s, &rows, &weights) != CK_OK) return ck_nomem(&s->call.error, s->mem, b->sel_count);
    const clink_batch given = {.struct_bytes = sizeof given,
                               .column_count = schema->field_count,
                               .columns = s->views,
                               .rows = &rows,
                               .weights = weights};
    return rows.count ? said(s, "write", face_of(s)->write(s->user, &given, &error), &error) : CK_OK;
}

static clink_status add_committable(clink_prepared *to, const void *p, size_t n) {
    plugin_sink *s = to->inside;
    if (s->failed != CK_OK) return CLINK_FAILED;
    if (n > CK_PLUGIN_COMMITTABLE_BYTES_MAX) {
        s->failed =
            ck_fail(&s->call.error, CK_INVALID,
                    "table \"%s\", connector %s of plugin %s: a committable of %zu bytes, %d are possible",
                    s->table.table, s->connector->face->name, s->connector->plugin, n, CK_PLUGIN_COMMITTABLE_BYTES_MAX);
        return CLINK_INVALID;
    }
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 4;
        void *more = ck_realloc(s->mem, s->committables, s->capacity * sizeof *s->committables,
                                capacity * sizeof *s->committables);
        if (more) s->committables = more, s->capacity = capacity;
    }
    size_t at = s->prepared.n;
    ck_status st = s->count < s->capacity ? ck_bytes_append(&s->prepared, p, n) : CK_NOMEM;
    if (st == CK_FULL) {
        s->failed =
            ck_fail(&s->call.error, CK_INVALID,
                    "table \"%s\", connector %s of plugin %s: the committables of one checkpoint are over %d MiB",
                    s->table.table, s->connector->face->name, s->connector->plugin, PREPARED_BYTES_MAX >> 20);
        return CLINK_INVALID;
    }
    if (st != CK_OK) {
        s->failed = ck_nomem(&s->call.error, s->mem, n);
        return CLINK_NOMEM;
    }
    s->committables[s->count++] = (committable){at, n};
    return CLINK_OK;
}

static ck_status prepare(plugin_sink *s) {
    static const clink_engine_table engine = {
        .struct_bytes = sizeof engine, .abi = CLINK_PLUGIN_ABI, .add_committable = add_committable};
    clink_prepared out = {&engine, s};
    clink_error error = {0};
    s->count = 0;
    s->failed = CK_OK;
    ck_bytes_clear(&s->prepared);
    CK_FAULT(s->ctx->proc, PLUGIN_BEFORE_PREPARE);
    clink_status told = face_of(s)->prepare(s->user, s->checkpoint, &out, &error);
    CK_TRY(s->failed);
    CK_TRY(said(s, "prepare", told, &error));
    CK_FAULT(s->ctx->proc, PLUGIN_AFTER_PREPARE);
    return CK_OK;
}

/* Where nobody else commits. */
static ck_status publish(plugin_sink *s) {
    clink_error error = {0};
    const clink_sink_start start = start_of(s);
    CK_TRY(prepare(s));
    if (!s->committer_open && face_of(s)->open_committer)
        CK_TRY(said(s, "open_committer", face_of(s)->open_committer(&s->committer, &start, &error), &error));
    s->committer_open = true;
    for (uint32_t i = 0; i < s->count; i++) {
        const committable *c = &s->committables[i];
        const clink_committable given = {.struct_bytes = sizeof given, .bytes = {s->prepared.p + c->at, c->bytes}};
        CK_TRY(said(s, "commit", face_of(s)->commit(s->committer, &given, &error), &error));
    }
    return CK_OK;
}

static ck_status run(plugin_sink *s) {
    clink_error error = {0};
    CK_TRY(open_user(s));
    switch (s->task) {
    case TASK_WRITE: return write_batch(s);
    case TASK_FLUSH: return said(s, "flush", face_of(s)->flush(s->user, &error), &error);
    case TASK_PREPARE: return prepare(s);
    case TASK_PUBLISH: return publish(s);
    }
    return CK_OK;
}

static void job_run(ck_io_job *j) {
    plugin_sink *s = (plugin_sink *)(void *)((char *)j - offsetof(plugin_sink, call));
    s->call.status = run(s);
    ck_batch_unref(&s->batch);
}

/* ---- steps ---- */

static void begin(plugin_sink *s, task t, ck_op_ctx *ctx) {
    s->task = t;
    ck_background_begin(&s->call, job_run, ctx);
}

/* CK_OK: nothing is under way, and what was has gone well. */
static ck_status settle(plugin_sink *s, ck_op_ctx *ctx) {
    if (!s->call.running) return CK_OK;
    if (!ck_background_ended(&s->call)) return CK_AGAIN;
    if (s->call.status == CK_OK) return CK_OK;
    *ctx->error = s->call.error;
    return s->call.status;
}

static ck_status take(plugin_sink *s, ck_batch *b, ck_op_ctx *ctx) {
    CK_TRY(settle(s, ctx));
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_sink_check_nulls(&s->table, b, ctx->error));
    s->batch = ck_batch_ref(b);
    bool by_itself = face_of(s)->prepare && !s->checkpoints;
    if (by_itself && s->publish_us == INT64_MAX) s->publish_us = ck_op_now_us(ctx) + PUBLISH_US;
    ck_op_count(ctx, "rows_out", b->sel_count);
    begin(s, TASK_WRITE, ctx);
    return CK_OK;
}

/* Everything so far, and then the task; CK_AGAIN until it is done. */
static ck_status ask(plugin_sink *s, task t, ck_op_ctx *ctx) {
    CK_TRY(settle(s, ctx));
    if (!s->asked) begin(s, t, ctx);
    s->asked = !s->asked;
    return s->asked ? CK_AGAIN : CK_OK;
}

static ck_status publish_all(plugin_sink *s, ck_op_ctx *ctx) {
    CK_TRY(ask(s, TASK_PUBLISH, ctx));
    s->publish_us = INT64_MAX;
    return CK_OK;
}

static ck_status sink_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    plugin_sink *s = self;
    bool commits = face_of(s)->prepare;
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) return take(s, ev->batch, ctx);
    if (ev->kind != CK_EVENT_END) return CK_OK;
    if (!commits) return ask(s, TASK_FLUSH, ctx);
    return s->checkpoints ? settle(s, ctx) : publish_all(s, ctx);
}

static int64_t sink_next_wake(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    return ((plugin_sink *)self)->publish_us;
}

static ck_status sink_on_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    plugin_sink *s = self;
    return s->asked || s->publish_us <= now_us ? publish_all(s, ctx) : CK_OK;
}

static ck_status keep_committables(plugin_sink *s, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < s->count; i++) {
        const committable *c = &s->committables[i];
        const char *text = NULL, *payload = NULL;
        const char *name =
            ck_arena_printf(ctx->arena, "%llu-%u-%u", (unsigned long long)s->checkpoint, s->spec.subtask, i);
        if (ck_plugin_bytes_write(ctx->arena, (ck_view){s->prepared.p + c->at, c->bytes}, &text) == CK_OK)
            payload = ck_arena_printf(ctx->arena, "{%s}", text);
        if (!name || !payload) return ck_nomem(ctx->error, ctx->mem, c->bytes);
        const ck_committable kept = {name, s->checkpoint, payload};
        CK_TRY(ck_commits_put(ctx->state, &kept, ctx->error));
    }
    return CK_OK;
}

static ck_status sink_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    plugin_sink *s = self;
    if (!face_of(s)->prepare) return ask(s, TASK_FLUSH, ctx);
    CK_TRY(settle(s, ctx));
    s->checkpoint = checkpoint;
    CK_TRY(ask(s, TASK_PREPARE, ctx));
    return keep_committables(s, ctx);
}

static ck_status sink_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    plugin_sink *s = self;
    return face_of(s)->prepare ? ck_commits_forget(ctx->state, checkpoint, ctx->error) : CK_OK;
}

static void sink_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    sink_free(self);
}

const ck_operator_vtbl ck_plugin_sink_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = sink_open,
    .on_event = sink_on_event,
    .pre_snapshot = sink_pre_snapshot,
    .on_committed = sink_on_committed,
    .next_wake_us = sink_next_wake,
    .on_wake = sink_on_wake,
    .close = sink_close,
};
