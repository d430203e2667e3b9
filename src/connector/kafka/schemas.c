/* See schemas_int.h. */
#include "connector/kafka/schemas_int.h"

#include <poll.h>

#include "os/clock.h"

enum { KNOWN_MAX = 4096, PAUSE_FIRST_MS = 100, PAUSE_MAX_MS = 1000 };

/* A schema, and the message of it that records are. */
typedef struct ck_kafka_schema {
    struct ck_kafka_schema *next;
    uint32_t id;
    ck_message_path path;
    const ck_message_schema *schema; /* NULL: the registry has none of this number */
    uint32_t reader;                 /* the decoder's number */
} ck_kafka_schema;

ck_status ck_kafka_schemas_init(ck_kafka_schemas *s, ck_proc *proc, ck_mem mem, const ck_registry_options *o,
                                const ck_schema *table, ck_decoder *d, ck_error *err) {
    *s = (ck_kafka_schemas){.proc = proc, .options = o, .table = table, .decoder = d, .failing_since_us = INT64_MIN};
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&s->job_arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    return ck_decoder_add_reader(d, NULL, "the record does not begin with a zero byte and the number of its schema",
                                 &s->no_head, err);
}

void ck_kafka_schemas_destroy(ck_kafka_schemas *s) {
    if (!s->options) return;
    ck_registry_close(&s->registry);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->job_arena);
    s->options = NULL;
}

/* ---- the job: a question ---- */

static ck_status ask(ck_kafka_schemas *s) {
    if (!s->is_open) CK_TRY(ck_registry_open(&s->registry, s->proc, s->options, &s->job_arena, &s->call.error));
    s->is_open = true;
    return ck_registry_by_id(&s->registry, s->id, &s->found, &s->call.error);
}

static void job_run(ck_io_job *j) {
    ck_kafka_schemas *s = (ck_kafka_schemas *)j;
    if (s->failing_since_us != INT64_MIN) {
        (void)poll(NULL, 0, (int)s->pause_ms);
        s->pause_ms = s->pause_ms * 2 < PAUSE_MAX_MS ? s->pause_ms * 2 : PAUSE_MAX_MS;
    }
    s->call.status = ask(s);
    if (s->call.status != CK_IO || !s->call.error.retriable) {
        s->failing_since_us = INT64_MIN;
        return;
    }
    int64_t now = ck_mono_us(s->proc);
    if (s->failing_since_us == INT64_MIN) {
        s->failing_since_us = now;
        s->pause_ms = PAUSE_FIRST_MS;
        ck_log_line(s->proc->log, CK_LOG_WARN, "warning: %.700s; trying again", s->call.error.msg);
    }
    if (now - s->failing_since_us < s->options->retry_ms * 1000) s->call.status = CK_AGAIN;
}

static void submit(ck_kafka_schemas *s, uint32_t id, ck_op_ctx *ctx) {
    s->id = id;
    s->found = NULL;
    ck_background_begin(&s->call, job_run, ctx);
}

/* ---- what is known ---- */

/* How records of this schema and message are read; one that does not fit the table makes each of them a bad one. */
static ck_status add_reader(ck_kafka_schemas *s, ck_kafka_schema *k, ck_error *why, ck_op_ctx *ctx) {
    const ck_message_reader *reader = NULL;
    const char *reason = NULL;
    ck_status st = CK_DATA;
    if (k->schema) st = ck_message_reader_new(&s->arena, k->schema, &k->path, s->table, true, &reader, why);
    if (st == CK_NOMEM) {
        *ctx->error = *why;
        return st;
    }
    if (st != CK_OK) {
        reader = NULL;
        reason = k->schema ? ck_arena_printf(&s->arena, "schema %u of the registry: %s", k->id, why->msg)
                           : ck_arena_strdup(&s->arena, why->msg);
        if (!reason) return ck_nomem(ctx->error, s->arena.mem, sizeof why->msg);
    }
    return ck_decoder_add_reader(s->decoder, reader, reason, &k->reader, ctx->error);
}

static ck_status add(ck_kafka_schemas *s, uint32_t id, const ck_message_path *path, const ck_message_schema *schema,
                     ck_error *why, ck_kafka_schema **out, ck_op_ctx *ctx) {
    if (s->count == KNOWN_MAX)
        return ck_fail(ctx->error, CK_DATA, "topic %s: its records name more than %d schemas", s->options->topic,
                       KNOWN_MAX);
    ck_kafka_schema *k = CK_ARENA_NEW(&s->arena, ck_kafka_schema);
    if (!k) return ck_nomem(ctx->error, s->arena.mem, sizeof *k);
    *k = (ck_kafka_schema){.id = id, .path = *path, .schema = schema, .next = s->known};
    CK_TRY(add_reader(s, k, why, ctx));
    s->known = k;
    s->count++;
    *out = k;
    return CK_OK;
}

static bool same_path(const ck_message_path *a, const ck_message_path *b) {
    return a->count == b->count && memcmp(a->index, b->index, a->count * sizeof a->index[0]) == 0;
}

/* The one used last is moved to the front. *schema: one of that number, whichever message. */
static ck_kafka_schema *find(ck_kafka_schemas *s, const ck_registry_head *h, ck_kafka_schema **schema) {
    *schema = NULL;
    for (ck_kafka_schema **at = &s->known; *at; at = &(*at)->next) {
        ck_kafka_schema *k = *at;
        if (k->id != h->id) continue;
        *schema = k;
        if (!same_path(&k->path, &h->path)) continue;
        *at = k->next;
        k->next = s->known;
        s->known = k;
        return k;
    }
    return NULL;
}

static ck_status take_answer(ck_kafka_schemas *s, const ck_registry_head *h, ck_kafka_schema **out, ck_op_ctx *ctx) {
    if (!ck_background_ended(&s->call)) return CK_AGAIN;
    if (s->call.status == CK_OK || s->call.status == CK_NOTFOUND || s->call.status == CK_DATA) {
        const ck_message_schema *found = s->call.status == CK_OK ? s->found : NULL;
        ck_message_path path = s->id == h->id ? h->path : (ck_message_path){.count = 1};
        return add(s, s->id, &path, found, &s->call.error, out, ctx);
    }
    if (s->call.status == CK_AGAIN) {
        submit(s, s->id, ctx);
        return CK_AGAIN;
    }
    *ctx->error = s->call.error;
    return s->call.status;
}

ck_status ck_kafka_schemas_frame(ck_kafka_schemas *s, ck_view record, ck_message_frame *out, ck_op_ctx *ctx) {
    ck_registry_head h;
    ck_kafka_schema *k, *other;
    *out = (ck_message_frame){.reader = s->no_head, .bytes = (uint32_t)record.n};
    s->waiting = false;
    if (ck_registry_head_read(s->options->format, record, &h)) return CK_OK;
    while (!(k = find(s, &h, &other))) {
        if (other) {
            ck_error why = CK_ERROR_INIT;
            if (!other->schema)
                ck_fail(&why, CK_NOTFOUND, "the schema registry at %s has no schema %u", s->options->url, h.id);
            CK_TRY(add(s, h.id, &h.path, other->schema, &why, &k, ctx));
            break;
        }
        if (!s->call.running) submit(s, h.id, ctx);
        s->waiting = true;
        CK_TRY(take_answer(s, &h, &k, ctx));
    }
    s->waiting = false;
    out->reader = k->reader;
    out->skip = h.bytes;
    return CK_OK;
}
