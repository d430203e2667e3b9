/* A plugin's source. An I/O job reads some rows of one split, the splits in turn; the step hands them on and has the
 * next job under way meanwhile. Rows and the split's position come from the job together and count together, so that a
 * snapshot, taken between steps, has the position behind exactly the rows that went out.
 *
 * Of a source that is told of commits each snapshot's positions are noted, until it is committed or a newer one is; the
 * next I/O job says them before it reads. What is left when the source closes is said then.
 *
 * A split is stored as {"text":position,"time":us,"done":true}: "hex" where the position is no text, "time" its
 * greatest event time, "done" when it is finished. */
#include <yyjson.h>

#include "base/json.h"
#include "base/map.h"
#include "connector/plugin/plugin_int.h"
#include "expr/plugin_rows.h"
#include "os/clock.h"

enum { ROWS_MAX = 256 << 10 /* of one call */, WAIT_US = 10000, WAIT_US_MAX = 1000000, SPLITS_MAX = 100000 };
enum { NOTES_MAX = 64 }; /* of checkpoints that nobody has committed; the oldest goes */

typedef struct split {
    const char *id;
    ck_bytes position; /* behind what went out */
    uint32_t clock;
    bool done;
    int64_t next_us; /* monotonic: not read before */
    /* the job's while it reads the split */
    void *user;
    bool open;
} split;

/* Where the splits stood at a checkpoint. */
typedef struct note {
    struct note *next; /* older */
    ck_arena arena;    /* of what follows */
    uint64_t checkpoint;
    clink_split *splits;
    uint32_t count;
} note;

/* What a call has given. */
typedef struct batches {
    ck_batch **at;
    uint32_t count, capacity, rows;
} batches;

typedef struct plugin_source {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena, job_arena;
    const ck_plugin_connector *connector;
    ck_source_table table;
    ck_event_time times;
    ck_proc *proc;
    const char *uid;
    uint32_t subtask, parallelism, batch_rows;
    split **splits;
    uint32_t count, capacity, turn;
    note *notes; /* newest first */
    note *due;   /* committed, to be said */
    /* the job's while one runs, else what it brought */
    clink_table face;
    uint8_t *wanted;
    void *user;
    bool open, tabled;
    note *saying;   /* NULL: there is nothing to say */
    split *reading; /* NULL: it only says something */
    clink_read read;
    ck_plugin_rows rows;
    batches ready;
    ck_bytes position;
    bool moved;       /* position was set */
    ck_status failed; /* of what the plugin asked of us */
} plugin_source;

/* ---- making ---- */

static void drop(batches *b, ck_mem mem) {
    for (uint32_t i = 0; i < b->count; i++) ck_batch_unref(&b->at[i]);
    if (b->at) ck_free(mem, b->at, b->capacity * sizeof(ck_batch *));
    *b = (batches){0};
}

/* Takes *b. CK_NOMEM. */
static ck_status add(batches *to, ck_mem mem, ck_batch **b) {
    if (to->count == to->capacity) {
        uint32_t capacity = to->capacity ? to->capacity * 2 : 4;
        void *p = ck_realloc(mem, to->at, to->capacity * sizeof(ck_batch *), capacity * sizeof(ck_batch *));
        if (!p) {
            ck_batch_unref(b);
            return CK_NOMEM;
        }
        to->at = p;
        to->capacity = capacity;
    }
    to->rows += (*b)->row_count;
    to->at[to->count++] = *b;
    *b = NULL;
    return CK_OK;
}

static void note_free(plugin_source *s, note **n) {
    note *is = *n;
    *n = NULL;
    if (!is) return;
    ck_arena_destroy(&is->arena);
    ck_free(s->mem, is, sizeof *is);
}

static void source_free(plugin_source *s) {
    const clink_source *f = s->connector ? s->connector->face->source : NULL;
    for (note *n; (n = s->notes);) {
        s->notes = n->next;
        note_free(s, &n);
    }
    note_free(s, &s->due);
    note_free(s, &s->saying);
    for (uint32_t i = 0; i < s->count; i++) {
        split *at = s->splits[i];
        if (at->open && f->close_split) f->close_split(at->user);
        ck_bytes_destroy(&at->position);
    }
    if (s->open && f->close) f->close(s->user);
    drop(&s->ready, s->mem);
    ck_plugin_rows_drop(&s->rows);
    if (s->splits) ck_free(s->mem, s->splits, s->capacity * sizeof(split *));
    ck_bytes_destroy(&s->position);
    ck_event_time_destroy(&s->times);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->job_arena);
    ck_free(s->mem, s, sizeof *s);
}

static clink_status set_position(clink_read *r, const void *position, size_t n);
static clink_status flush(clink_emitter *o);
static const clink_engine_table engine = {.struct_bytes = sizeof engine,
                                          .abi = CLINK_PLUGIN_ABI,
                                          .grow = ck_plugin_grow,
                                          .flush = flush,
                                          .set_position = set_position};

static ck_status source_init(plugin_source *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_plugin_connector_of(spec, &s->connector, err));
    if (!s->connector->face->source)
        return ck_fail(err, CK_INVALID, "%s: connector %s only takes rows", spec->uid, s->connector->face->name);
    CK_TRY(ck_source_table_read(&s->arena, spec, &s->table, err));
    CK_TRY(ck_event_time_init(&s->times, s->table.event_time, spec, &s->arena, s->mem, err));
    uint32_t n = s->table.schema->field_count;
    s->uid = ck_arena_strdup(&s->arena, spec->uid);
    s->wanted = ck_arena_array(&s->arena, n + 1u, 1);
    if (!s->uid || !s->wanted || ck_plugin_rows_init(&s->rows, &s->arena, s->mem, s->table.schema, &engine, s) != CK_OK)
        return ck_nomem(err, s->mem, n * sizeof(void *));
    for (uint32_t i = 0; i < n; i++) s->wanted[i] = s->table.wanted[i];
    s->proc = spec->proc;
    s->subtask = spec->subtask;
    s->parallelism = spec->parallelism;
    s->batch_rows = spec->settings->batch_rows;
    return CK_OK;
}

ck_status ck_plugin_source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    plugin_source *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&s->job_arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&s->position, mem, CK_PLUGIN_POSITION_BYTES_MAX);
    ck_status status = source_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        source_free(s);
    return status;
}

/* ---- splits ---- */

static const char *print_split(ck_arena *a, ck_view position, int64_t time_us, bool done) {
    const char *text, *time = time_us == INT64_MIN ? "" : ck_arena_printf(a, ",\"time\":%lld", (long long)time_us);
    if (!time || ck_plugin_bytes_write(a, position, &text) != CK_OK) return NULL;
    return ck_arena_printf(a, "{%s%s%s}", text, time, done ? ",\"done\":true" : "");
}

typedef struct finding {
    clink_splits face; /* first */
    ck_split_list *out;
    const char *table;
    ck_status status;
    ck_error *err;
} finding;

static clink_status add_found(clink_splits *to, const char *id, const void *position, size_t n) {
    finding *f = to->inside;
    ck_arena *a = f->out->arena;
    if (f->status != CK_OK) return CLINK_FAILED;
    if (!id || !*id || strlen(id) > 1000 || n > CK_PLUGIN_POSITION_BYTES_MAX || f->out->count >= SPLITS_MAX) {
        f->status =
            ck_fail(f->err, CK_INVALID,
                    "table \"%s\": its connector names over %d splits, one without an id of 1 to 1000 bytes, or "
                    "one with a position of over %d KiB",
                    f->table, SPLITS_MAX, CK_PLUGIN_POSITION_BYTES_MAX >> 10);
        return CLINK_INVALID;
    }
    const char *spec = print_split(a, (ck_view){position ? position : "", n}, INT64_MIN, false);
    if (!spec || ck_split_list_add(f->out, id, spec) != CK_OK) f->status = ck_nomem(f->err, a->mem, n);
    return f->status == CK_OK ? CLINK_OK : CLINK_NOMEM;
}

/* The same id twice is one split read twice. */
static ck_status check_ids(const finding *f) {
    ck_map ids;
    ck_map_init(&ids, f->out->arena, false);
    for (uint32_t i = 0; i < f->out->count; i++) {
        ck_view id = ck_view_of(f->out->splits[i].id);
        if (ck_map_find(&ids, id))
            return ck_fail(f->err, CK_INVALID, "table \"%s\": its connector names two splits \"%.200s\"", f->table,
                           id.p);
        if (ck_map_put(&ids, id, (void *)(uintptr_t)f, NULL) != CK_OK)
            return ck_nomem(f->err, f->out->arena->mem, id.n);
    }
    return CK_OK;
}

ck_status ck_plugin_source_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    static const clink_engine_table finds = {
        .struct_bytes = sizeof finds, .abi = CLINK_PLUGIN_ABI, .add_split = add_found};
    const ck_plugin_connector *c;
    ck_source_table table;
    clink_table face;
    clink_error said = {0};
    CK_TRY(ck_plugin_connector_of(spec, &c, err));
    CK_TRY(ck_source_table_read(out->arena, spec, &table, err));
    CK_TRY(ck_plugin_table_make(c, table.table, table.schema, NULL, 0, &table.options, spec->proc, out->arena, &face,
                                err));
    finding f = {.face = {&finds, &f}, .out = out, .table = table.table, .err = err};
    clink_status s = c->face->source->splits(&face, parallelism, &f.face, &said);
    CK_TRY(f.status);
    CK_TRY(ck_plugin_said(c, table.table, "splits", s, &said, err));
    return check_ids(&f);
}

static split *new_split(plugin_source *s, const char *id, ck_op_ctx *ctx) {
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 4;
        void *p = ck_realloc(s->mem, s->splits, s->capacity * sizeof(split *), capacity * sizeof(split *));
        if (!p) {
            ck_nomem(ctx->error, s->mem, capacity * sizeof(split *));
            return NULL;
        }
        s->splits = p;
        s->capacity = capacity;
    }
    split *made = CK_ARENA_NEW(&s->arena, split);
    if (made) made->id = ck_arena_strdup(&s->arena, id);
    if (made && made->id) return made;
    ck_nomem(ctx->error, s->arena.mem, sizeof *made);
    return NULL;
}

static ck_status source_add_split(void *self, const ck_split *at, ck_op_ctx *ctx) {
    plugin_source *s = self;
    struct yyjson_doc *doc;
    ck_view position;
    CK_TRY(ck_json_read(ctx->arena, ck_view_of(at->spec), &doc, ctx->error));
    yyjson_val *root = yyjson_doc_get_root(doc), *time = yyjson_obj_get(root, "time");
    int64_t time_us = time ? yyjson_get_sint(time) : INT64_MIN;
    if ((time && (!yyjson_is_int(time) || !ck_event_time_usable(time_us))) ||
        !ck_plugin_bytes_read(ctx->arena, root, &position))
        return ck_fail(ctx->error, CK_CORRUPT, "split %s of table \"%s\" is none of a plugin: %.400s", at->id,
                       s->table.table, at->spec);
    split *made = position.p ? new_split(s, at->id, ctx) : NULL;
    if (!made) return position.p ? CK_NOMEM : ck_nomem(ctx->error, ctx->mem, position.n);
    made->done = yyjson_get_bool(yyjson_obj_get(root, "done"));
    ck_bytes_init(&made->position, s->mem, CK_PLUGIN_POSITION_BYTES_MAX);
    if (ck_bytes_view(&made->position, position) != CK_OK) return ck_nomem(ctx->error, s->mem, position.n);
    s->splits[s->count++] = made;
    return ck_event_time_add(&s->times, made->id, time_us, made->done, &made->clock, ctx->error);
}

/* ---- commits ---- */

static ck_status copy_splits(const plugin_source *s, note *n) {
    n->splits = ck_arena_array(&n->arena, s->count + 1u, sizeof *n->splits);
    for (; n->splits && n->count < s->count; n->count++) {
        const split *at = s->splits[n->count];
        const char *position = ck_arena_strndup(&n->arena, at->position.p ? at->position.p : "", at->position.n);
        if (!position) return CK_NOMEM;
        n->splits[n->count] =
            (clink_split){.struct_bytes = sizeof(clink_split), .id = at->id, .position = {position, at->position.n}};
    }
    return n->splits ? CK_OK : CK_NOMEM;
}

static ck_status take_note(plugin_source *s, uint64_t checkpoint, ck_op_ctx *ctx) {
    if (!s->connector->face->source->committed) return CK_OK;
    note *n = ck_alloc_zero(s->mem, sizeof *n);
    if (!n) return ck_nomem(ctx->error, s->mem, sizeof *n);
    ck_arena_init(&n->arena, s->mem, SIZE_MAX);
    n->checkpoint = checkpoint;
    if (copy_splits(s, n) != CK_OK) {
        note_free(s, &n);
        return ck_nomem(ctx->error, s->mem, s->count * sizeof(clink_split));
    }
    n->next = s->notes;
    s->notes = n;
    note **end = &s->notes;
    for (uint32_t i = 0; *end && i < NOTES_MAX; i++) end = &(*end)->next;
    note_free(s, end);
    return CK_OK;
}

static void job_run(ck_io_job *j);
static void begin(plugin_source *s, split *at, ck_op_ctx *ctx) {
    s->reading = at;
    s->saying = s->due;
    s->due = NULL;
    ck_background_begin(&s->call, job_run, ctx);
}

/* The newest that it covers is said, older ones go with it. */
static void source_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    plugin_source *s = self;
    note **at = &s->notes;
    while (*at && (*at)->checkpoint > checkpoint) at = &(*at)->next;
    note *n = *at;
    *at = NULL;
    if (!n) return;
    note_free(s, &s->due);
    s->due = n;
    for (note *older = n->next; older;) {
        note *next = older->next;
        note_free(s, &older);
        older = next;
    }
    n->next = NULL;
    if (s->call.running) return; /* the next call says it */
    begin(s, NULL, ctx);
}

static ck_status say_committed(plugin_source *s, const note *n, ck_error *err) {
    clink_error said = {0};
    clink_status told = s->connector->face->source->committed(s->user, n->checkpoint, n->splits, n->count, &said);
    return ck_plugin_said(s->connector, s->table.table, "committed", told, &said, err);
}

static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    plugin_source *s = self;
    CK_TRY(take_note(s, out->checkpoint, ctx));
    for (uint32_t i = 0; i < s->count; i++) {
        const split *at = s->splits[i];
        const char *spec =
            print_split(ctx->arena, ck_bytes_as_view(&at->position), ck_event_time_max(&s->times, at->clock), at->done);
        if (!spec || ck_split_list_add(out, at->id, spec) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, at->position.n);
    }
    return CK_OK;
}

/* ---- the job ---- */

static clink_status refuse(plugin_source *s, ck_status status, const char *why) {
    if (s->failed == CK_OK)
        s->failed = status == CK_NOMEM ? ck_nomem(&s->call.error, s->mem, 0)
                                       : ck_fail(&s->call.error, status, "table \"%s\", connector %s of plugin %s %s",
                                                 s->table.table, s->connector->face->name, s->connector->plugin, why);
    return status == CK_NOMEM ? CLINK_NOMEM : CLINK_INVALID;
}

static clink_status set_position(clink_read *r, const void *position, size_t n) {
    plugin_source *s = r->inside;
    if (n > CK_PLUGIN_POSITION_BYTES_MAX) return refuse(s, CK_INVALID, "sets a position of over 64 KiB");
    ck_bytes_clear(&s->position);
    s->moved = true;
    return ck_bytes_append(&s->position, position, n) == CK_OK ? CLINK_OK : refuse(s, CK_NOMEM, "");
}

static ck_status take_rows(plugin_source *s) {
    ck_batch *b = NULL;
    ck_status status = ck_plugin_rows_take(&s->rows, &b, &s->call.error);
    if (status == CK_DATA) {
        ck_error_prefix(&s->call.error, "table \"%s\": connector %s of plugin %s ", s->table.table,
                        s->connector->face->name, s->connector->plugin);
        s->call.error.fatal = true;
    }
    if (status != CK_OK || !b) return status;
    return add(&s->ready, s->mem, &b) == CK_OK ? CK_OK : ck_nomem(&s->call.error, s->mem, sizeof(ck_batch *));
}

static clink_status flush(clink_emitter *o) {
    plugin_source *s = o->inside;
    if (s->failed != CK_OK) return CLINK_FAILED;
    if (s->ready.rows >= ROWS_MAX) return refuse(s, CK_INVALID, "gives over 262144 rows in one call");
    s->failed = take_rows(s);
    if (s->failed != CK_OK) return CLINK_FAILED;
    return ck_plugin_rows_open(&s->rows, s->batch_rows) == CK_OK ? CLINK_OK : refuse(s, CK_NOMEM, "");
}

static ck_status open_source(plugin_source *s) {
    const clink_source *f = s->connector->face->source;
    clink_error said = {0};
    ck_error *err = &s->call.error;
    if (!s->tabled)
        CK_TRY(ck_plugin_table_make(s->connector, s->table.table, s->table.schema, NULL, 0, &s->table.options, s->proc,
                                    &s->job_arena, &s->face, err));
    s->tabled = true;
    if (!s->open && f->open) {
        const clink_source_start start = {.struct_bytes = sizeof start,
                                          .subtask = s->subtask,
                                          .parallelism = s->parallelism,
                                          .batch_rows = s->batch_rows,
                                          .table = &s->face,
                                          .uid = s->uid,
                                          .wanted = s->wanted};
        CK_TRY(ck_plugin_said(s->connector, s->table.table, "open", f->open(&s->user, &start, &said), &said, err));
    }
    s->open = true;
    return CK_OK;
}

static ck_status open_split(plugin_source *s) {
    const clink_source *f = s->connector->face->source;
    clink_error said = {0};
    split *at = s->reading;
    if (!at->open && f->open_split) {
        const clink_split split_of = {
            .struct_bytes = sizeof split_of, .id = at->id, .position = {at->position.p, at->position.n}};
        CK_TRY(ck_plugin_said(s->connector, s->table.table, "open_split",
                              f->open_split(&at->user, s->user, &split_of, &said), &said, &s->call.error));
    }
    at->open = true;
    return CK_OK;
}

static ck_status read_some(plugin_source *s) {
    clink_error said = {0};
    CK_TRY(open_split(s));
    if (ck_plugin_rows_open(&s->rows, s->batch_rows) != CK_OK) return ck_nomem(&s->call.error, s->mem, s->batch_rows);
    s->moved = false;
    s->failed = CK_OK;
    s->read = (clink_read){.struct_bytes = sizeof s->read,
                           .self = s->user,
                           .split = s->reading->user,
                           .out = &s->rows.face,
                           .wait_us = WAIT_US,
                           .watermark_us = INT64_MIN,
                           .error = &said,
                           .engine = &engine,
                           .inside = s};
    clink_status told = s->connector->face->source->read(&s->read);
    CK_TRY(s->failed);
    CK_TRY(ck_plugin_said(s->connector, s->table.table, "read", told, &said, &s->call.error));
    return take_rows(s);
}

static ck_status work(plugin_source *s) {
    CK_TRY(open_source(s));
    if (s->saying) CK_TRY(say_committed(s, s->saying, &s->call.error));
    return s->reading ? read_some(s) : CK_OK;
}

static void job_run(ck_io_job *j) {
    plugin_source *s = (plugin_source *)(void *)((char *)j - offsetof(plugin_source, call));
    s->call.status = work(s);
}

/* ---- steps ---- */

/* The next split that is not finished, in turn; NULL: none may be read now. */
static split *next_split(plugin_source *s, int64_t now, int64_t *until_us, bool *all_done) {
    *all_done = true;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t k = (s->turn + i) % s->count;
        split *at = s->splits[k];
        if (at->done) continue;
        *all_done = false;
        if (at->next_us > now) {
            if (at->next_us < *until_us) *until_us = at->next_us;
            continue;
        }
        s->turn = (k + 1) % s->count;
        return at;
    }
    return NULL;
}

static bool begin_next(plugin_source *s, int64_t now, int64_t *until_us, bool *all_done, ck_op_ctx *ctx) {
    split *at = next_split(s, now, until_us, all_done);
    if (!at && !s->due) return false;
    begin(s, at, ctx);
    return true;
}

/* What a call has brought, taken from where the next one puts its own. */
typedef struct brought {
    split *of;
    batches given;
} brought;

static ck_status take_call(plugin_source *s, brought *b, int64_t now, ck_op_ctx *ctx) {
    split *at = s->reading;
    if (s->call.status != CK_OK) {
        *ctx->error = s->call.error;
        return s->call.status;
    }
    note_free(s, &s->saying);
    if (!at) return CK_OK;
    b->of = at;
    b->given = s->ready;
    s->ready = (batches){0};
    if (s->moved) {
        ck_bytes was = at->position;
        at->position = s->position;
        s->position = was;
    }
    at->done = s->read.then == CLINK_READ_END;
    at->next_us = INT64_MIN;
    if (s->read.watermark_us != INT64_MIN) ck_event_time_raise(&s->times, at->clock, s->read.watermark_us);
    if (s->read.then == CLINK_READ_WAIT) {
        int64_t wait = s->read.wait_us < 0 ? 0 : s->read.wait_us < WAIT_US_MAX ? s->read.wait_us : WAIT_US_MAX;
        at->next_us = now + wait;
        if (!b->given.count) ck_event_time_empty(&s->times, at->clock, now, &at->next_us);
    }
    return CK_OK;
}

static ck_status emit(plugin_source *s, brought *b, ck_op_ctx *ctx) {
    ck_status status = CK_OK;
    for (uint32_t i = 0; i < b->given.count && status == CK_OK; i++)
        status = ck_source_emit(&s->table, &s->times, b->of->clock, &b->given.at[i], b->given.at[i]->row_count, ctx);
    drop(&b->given, s->mem);
    if (status == CK_OK && b->of->done) ck_event_time_finish(&s->times, b->of->clock);
    return status == CK_OK ? ck_event_time_say(&s->times, ctx) : status;
}

static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    plugin_source *s = self;
    int64_t now = ck_mono_us(ctx->proc);
    bool all_done;
    *result = CK_POLL_IDLE;
    if (s->call.running) {
        if (!ck_background_ended(&s->call)) return CK_OK;
        brought b = {0};
        CK_TRY(take_call(s, &b, now, ctx));
        (void)begin_next(s, now, until_us, &all_done, ctx);
        *result = CK_POLL_MORE;
        return b.of ? emit(s, &b, ctx) : CK_OK;
    }
    if (!begin_next(s, now, until_us, &all_done, ctx) && all_done) *result = CK_POLL_END;
    return CK_OK;
}

/* An end waits for nobody to read on: what the last checkpoint has committed is said here. Nobody hears a failure any
 * more, and a source that is started again says it again. */
static void source_close(void *self, ck_op_ctx *ctx) {
    plugin_source *s = self;
    ck_error unheard = CK_ERROR_INIT;
    (void)ctx;
    if (s->open && s->due) (void)!say_committed(s, s->due, &unheard);
    source_free(self);
}

const ck_source_vtbl ck_plugin_source_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .add_split = source_add_split,
    .poll = source_poll,
    .snapshot = source_snapshot,
    .close = source_close,
    .on_committed = source_on_committed,
};
