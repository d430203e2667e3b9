/* The `kafka` source. The library fetches ahead on threads of its own; a step takes what one partition has ready, puts
 * the values one after the other into a buffer, a line or a frame each, and lets the decoder make columns of them. A
 * split's position is the offset of the next record not yet emitted; the group's offsets are never written. */
#include <stdio.h>

#include "connector/bad_hint.h"
#include "connector/connectors.h"
#include "connector/kafka/source_int.h"
#include "connector/keys_met.h"
#include "connector/show_raw.h"
#include "os/clock.h"

enum { LAG_EVERY_US = 250000 };

/* ---- making ---- */

static size_t record_of(const ck_kafka_partition *p, size_t at) {
    size_t i = p->decoded;
    while (i < p->copied && p->ends[i] <= at) i++;
    return i;
}

static ck_status on_bad_record(void *arg, const ck_bad_record *given, ck_error *err) {
    ck_kafka_source *s = arg;
    const ck_kafka_partition *p = s->decoding;
    size_t line = record_of(p, (size_t)given->offset);
    int64_t offset = p->offsets[line];
    ck_bad_record at = *given;
    const ck_bad_record *bad = &at;
    ck_view record;
    const char *why = ck_kafka_unfit_of(&p->unfit, line, &record);
    if (why) at = (ck_bad_record){.raw = record, .reason = why};
    at.offset = (uint64_t)offset;
    if (ck_source_skips(s->ctx, p->id, at.offset)) {
        s->bad_rows++;
        return CK_OK;
    }
    if (s->letters.on) {
        if (ck_dead_letters_is_full(&s->letters)) return CK_FULL; /* comes again when they are sent */
        CK_TRY(ck_dead_letters_add(&s->letters, p->id, &at, err));
    }
    if (s->options.on_error != CK_ON_ERROR_FAIL) {
        s->bad_rows++;
        return CK_OK;
    }
    char column[32] = "", field[160] = "", raw[160];
    if (bad->column) snprintf(column, sizeof column, ", column %lld", (long long)bad->column);
    if (bad->field) snprintf(field, sizeof field, " (%.120s)", bad->field);
    ck_show_raw(raw, sizeof raw, bad->raw);
    ck_bad_hint of = {.format = s->options.format, .on_error_is_given = s->options.on_error_is_given};
    ck_fail(err, CK_DATA, "topic %s, partition %d, offset %lld%s: %s%s%s; the record is: %s", p->split.topic,
            p->split.partition, (long long)offset, column, bad->reason, field, ck_bad_hint_for(&of, bad), raw);
    if (err) {
        err->fatal = true;
        snprintf(err->place.object, sizeof err->place.object, "%s", p->id);
        err->place.byte_offset = offset;
        err->place.of_records = true;
    }
    return CK_DATA;
}

static void source_free(ck_kafka_source *s) {
    for (uint32_t i = 0; i < s->count; i++) ck_kafka_partition_free(s, s->partitions[i]);
    if (s->topic) s->client.lib->rd_kafka_topic_destroy(s->topic);
    ck_kafka_client_destroy(&s->client);
    ck_kafka_schemas_destroy(&s->schemas);
    ck_free(s->mem, s->partitions, s->capacity * sizeof *s->partitions);
    ck_decoder_free(s->decoder);
    ck_event_time_destroy(&s->event_time);
    ck_dead_letters_destroy(&s->letters);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status source_init(ck_kafka_source *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_source_table_read(&s->arena, spec, &s->table, err));
    CK_TRY(ck_kafka_options_read(&s->table.options, &s->options, err));
    CK_TRY(ck_event_time_init(&s->event_time, s->table.event_time, spec, &s->arena, s->mem, err));
    const ck_kafka_options *o = &s->options;
    s->is_csv = strcmp(o->format, "csv") == 0;
    CK_TRY(ck_kafka_metadata_read(&s->arena, &s->table, &s->metadata, err));
    ck_decoder_spec d = {
        .format = o->format,
        .schema = s->metadata.values,
        .wanted = s->metadata.wanted,
        .checked = s->metadata.checked,
        .origins = true,
        .strict = o->strict || o->on_error != CK_ON_ERROR_FAIL, /* what is skipped does not depend on the query */
        .batch_rows = spec->settings->batch_rows,
    };
    if (o->on_error == CK_ON_ERROR_DEAD_LETTER)
        CK_TRY(ck_dead_letters_init(&s->letters, &s->arena, s->mem, spec->settings->batch_rows, err));
    CK_TRY(ck_decoder_new(spec->proc, &d, s->mem, on_bad_record, s, &s->decoder, err));
    if (!o->registry.url) return CK_OK;
    return ck_kafka_schemas_init(&s->schemas, spec->proc, s->mem, &o->registry, s->metadata.values, s->decoder, err);
}

static ck_status source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    mem = ck_mem_as(mem, CK_MEM_DECODE);
    ck_kafka_source *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status status = source_init(s, spec, err);
    if (status == CK_OK)
        *self = s;
    else
        source_free(s);
    return status;
}

/* What the library keeps ready and what it asks for at once: its defaults, 64 MiB a partition and 50 MiB an answer, are
 * memory that is touched for the first time again and again. */
static const char *const consumer_pairs[] = {"enable.partition.eof",
                                             "true",
                                             "auto.offset.reset",
                                             "error",
                                             "queued.max.messages.kbytes",
                                             "2048",
                                             "fetch.wait.max.ms",
                                             "50",
                                             "isolation.level",
                                             "read_committed",
                                             "fetch.max.bytes"};
enum { FETCH_BYTES_MAX = 2000000 };

static ck_status source_open(void *self, ck_op_ctx *ctx) {
    ck_kafka_source *s = self;
    s->ctx = ctx;
    /* The library wants it no smaller than what a record may be, which a table that is written too may say. */
    size_t bytes;
    char text[24];
    const char *pairs[CK_ARRAY_COUNT(consumer_pairs) + 2];
    CK_TRY(ck_kafka_record_bytes_max(&s->table.options, &bytes, ctx->error));
    snprintf(text, sizeof text, "%zu", bytes > FETCH_BYTES_MAX ? bytes : FETCH_BYTES_MAX);
    memcpy(pairs, consumer_pairs, sizeof consumer_pairs);
    pairs[CK_ARRAY_COUNT(consumer_pairs)] = text;
    pairs[CK_ARRAY_COUNT(consumer_pairs) + 1] = NULL;
    CK_TRY(ck_kafka_client_new(ctx->proc, &s->options, RD_KAFKA_CONSUMER, pairs, &s->arena, &s->client, ctx->error));
    s->topic = s->client.lib->rd_kafka_topic_new(s->client.rk, s->options.topic, NULL);
    if (s->topic) return CK_OK;
    return ck_kafka_fail(&s->client, s->client.lib->rd_kafka_last_error(), ctx->error, "topic %s", s->options.topic);
}

/* ---- partitions ---- */

ck_status ck_kafka_source_add(ck_kafka_source *s, const char *id, const ck_kafka_split *split, ck_op_ctx *ctx) {
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 8;
        void *list =
            ck_realloc(s->mem, s->partitions, s->capacity * sizeof *s->partitions, capacity * sizeof *s->partitions);
        if (!list) return ck_nomem(ctx->error, s->mem, capacity * sizeof *s->partitions);
        s->partitions = list;
        s->capacity = capacity;
    }
    ck_kafka_partition *p = CK_ARENA_NEW(&s->arena, ck_kafka_partition);
    if (!p || !(p->id = ck_arena_strdup(&s->arena, id))) return ck_nomem(ctx->error, s->arena.mem, sizeof *p);
    p->of = s;
    p->split = *split;
    p->read_ms = -1;
    p->finished = split->position >= split->end;
    CK_TRY(ck_event_time_add(&s->event_time, p->id, split->time_us, p->finished, &p->clock, ctx->error));
    s->partitions[s->count++] = p;
    return p->finished ? CK_OK : ck_kafka_partition_start(s, p, ctx);
}

static ck_status source_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    ck_kafka_source *s = self;
    ck_kafka_discovery *d = &s->discovery;
    ck_status status = ck_kafka_share_parse(&s->arena, split->spec, &d->share, ctx->error);
    if (status == CK_OK) {
        d->on = true;
        d->of = s;
        d->next_us = ck_mono_us(ctx->proc) + s->options.discover_ms * 1000;
    }
    if (status != CK_NOTFOUND) return status;
    ck_kafka_split parsed;
    CK_TRY(ck_kafka_split_parse(&s->arena, split->spec, &parsed, ctx->error));
    return ck_kafka_source_add(s, split->id, &parsed, ctx);
}

/* CK_OK: nothing is left. CK_FULL: the batch is full. */
static ck_status decode(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    if (s->decoding != p) {
        s->decoding = p;
        CK_TRY(ck_decoder_begin(s->decoder, p->id, true, ctx->error));
    }
    size_t consumed = 0;
    ck_status status = ck_decoder_feed(s->decoder, p->buffer, p->begin, p->end, p->begin, true, &consumed, ctx->error);
    p->begin += consumed;
    while (p->decoded < p->copied && p->ends[p->decoded] <= p->begin) p->decoded++;
    return status;
}

/* The decoder knows where its rows were in a buffer; from here on they are known by their offsets in the partition. */
static void name_places(const ck_kafka_partition *p, ck_batch *b) {
    ck_origin *o = b->origin;
    size_t line = p->taken;
    int64_t first = 0;
    for (uint32_t i = 0; o && i < b->row_count; i++) {
        uint64_t at = o->base_offset + o->row_offset[i];
        while (p->ends[line] <= at) line++;
        if (i == 0) first = p->offsets[line];
        if (p->offsets[line] - first > UINT32_MAX) {
            ck_origin_unref(&b->origin); /* most of a partition is gone between the two */
            return;
        }
        o->row_offset[i] = (uint32_t)(p->offsets[line] - first);
    }
    if (!o) return;
    o->base_offset = (uint64_t)first;
    o->of_records = true;
}

/* What is beside the records of the batch's rows goes in: metadata, and which way a row goes. */
static ck_status complete(ck_kafka_source *s, ck_kafka_partition *p, ck_batch **b, ck_op_ctx *ctx) {
    if (!s->metadata.any && !p->weights) {
        name_places(p, *b);
        return CK_OK;
    }
    ck_batch *values = *b;
    const ck_kafka_beside **rows = ck_arena_array(ctx->arena, values->row_count, sizeof *rows);
    int8_t *weights = ck_arena_array(ctx->arena, values->row_count, sizeof *weights);
    if (!rows || !weights) return ck_nomem(ctx->error, ctx->mem, values->row_count * sizeof *rows);
    size_t line = p->taken;
    for (uint32_t i = 0; i < values->row_count; i++) {
        uint64_t at = values->origin->base_offset + values->origin->row_offset[i];
        while (p->ends[line] <= at) line++;
        if (s->metadata.any) rows[i] = &p->beside[line];
        if (p->weights) weights[i] = p->weights[line];
    }
    name_places(p, values);
    ck_batch *whole;
    CK_TRY(ck_kafka_metadata_add(&s->metadata, &s->table, &p->split, values, rows, p->weights ? weights : NULL,
                                 &p->beside_text, s->mem, &whole, ctx->error));
    ck_batch_unref(b);
    *b = whole;
    return CK_OK;
}

/* Behind the last line that is decoded; behind all of them also what is no row, whose records may be gone when the job
 * goes on: the marks of transactions are never read, and old tombstones are removed. */
static void move_on(ck_kafka_partition *p) {
    if (p->decoded) {
        int64_t last = p->offsets[p->decoded - 1];
        p->split.half = p->decoded < p->copied && p->offsets[p->decoded] == last; /* an update is emitted by halves */
        p->split.position = last + !p->split.half;
    }
    if (p->begin == p->end && p->split.position < p->behind) {
        p->split.position = p->behind;
        p->split.half = false;
    }
}

static ck_status emit(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    move_on(p);
    if (s->bad_rows) ck_op_count(ctx, "bad_rows", s->bad_rows);
    if (s->bad_rows && s->letters.on) ck_op_count(ctx, "dead_letters", s->bad_rows);
    s->bad_rows = 0;
    CK_TRY(ck_dead_letters_emit(&s->letters, ctx));
    uint32_t rows = ck_decoder_rows(s->decoder);
    if (rows == 0) return CK_OK;
    ck_keys_met_note(s->decoder, s->metadata.values, s->table.schema, ctx);
    ck_batch *b = ck_decoder_take(s->decoder);
    ck_status status = b ? complete(s, p, &b, ctx) : CK_OK;
    p->taken = p->decoded;
    if (status == CK_OK) return ck_source_emit(&s->table, &s->event_time, p->clock, &b, rows, ctx);
    ck_batch_unref(&b);
    return status;
}

/* ---- a step ---- */

static bool is_done(const ck_kafka_partition *p) {
    return p->finished && p->record_at == p->record_count && p->begin == p->end;
}

/* The partition's next rows. *some: there were any. */
static ck_status advance(ck_kafka_source *s, ck_kafka_partition *p, bool *some, ck_op_ctx *ctx) {
    if (p->begin == p->end) CK_TRY(ck_kafka_partition_fetch(s, p, ctx));
    *some = p->begin < p->end;
    if (*some) {
        size_t from = p->begin;
        ck_status status = decode(s, p, ctx);
        if (status != CK_OK && status != CK_FULL) return status;
        ck_op_count(ctx, "bytes_in", p->begin - from);
        CK_TRY(emit(s, p, ctx));
    } else {
        move_on(p);
    }
    if (!is_done(p)) return CK_OK;
    if (p->split.position < p->split.end) p->split.position = p->split.end;
    ck_event_time_finish(&s->event_time, p->clock);
    return ck_event_time_say(&s->event_time, ctx);
}

/* How far each partition goes is what the library saw when it fetched last: nobody is asked. */
static void note_lag(ck_kafka_source *s, int64_t now, ck_op_ctx *ctx) {
    uint64_t records = 0;
    int64_t oldest_us = 0;
    bool known = false;
    if (now < s->lag_next_us) return;
    for (uint32_t i = 0; i < s->count; i++) {
        const ck_kafka_partition *p = s->partitions[i];
        int64_t low, high;
        if (!p->started ||
            s->client.lib->rd_kafka_get_watermark_offsets(s->client.rk, p->split.topic, p->split.partition, &low,
                                                          &high) != RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        if (high < 0 || (p->read_ms < 0 && high > p->split.position)) continue; /* nothing has been fetched yet */
        known = true;
        if (high > p->split.end) high = p->split.end;
        if (p->finished || p->at_end || high <= p->split.position) continue;
        records += (uint64_t)(high - p->split.position);
        int64_t us = ck_wall_us(ctx->proc) - p->read_ms * 1000;
        if (us > oldest_us) oldest_us = us;
    }
    if (!known) return;
    s->lag_next_us = now + LAG_EVERY_US;
    ck_op_note_lag(ctx, records, oldest_us);
}

static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    ck_kafka_source *s = self;
    int64_t now = ck_mono_us(ctx->proc);
    *until_us = INT64_MAX;
    *result = s->discovery.on ? CK_POLL_IDLE : CK_POLL_END;
    s->client.lib->rd_kafka_poll(s->client.rk, 0);
    CK_TRY(ck_kafka_hopeless(&s->client, &s->options, ctx->error));
    CK_TRY(ck_kafka_discover(s, now, until_us, ctx));
    note_lag(s, now, ctx);
    for (uint32_t i = 0; i < s->count; i++) {
        ck_kafka_partition *p = s->partitions[(s->turn + i) % s->count];
        if (is_done(p)) continue;
        bool some;
        *result = CK_POLL_IDLE;
        CK_TRY(advance(s, p, &some, ctx));
        if (some || is_done(p)) {
            s->turn = (s->turn + i + 1) % s->count;
            *result = CK_POLL_MORE;
            return CK_OK;
        }
        if (p->record_at == p->record_count) ck_event_time_empty(&s->event_time, p->clock, now, until_us);
    }
    if (*result == CK_POLL_IDLE) {
        /* Errors of connections are told when asked for. */
        if (now + 1000000 < *until_us) *until_us = now + 1000000;
        return ck_event_time_say(&s->event_time, ctx);
    }
    return CK_OK;
}

static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    ck_kafka_source *s = self;
    for (uint32_t i = 0; i < s->count; i++) {
        ck_kafka_partition *p = s->partitions[i];
        const char *spec;
        p->split.time_us = ck_event_time_max(&s->event_time, p->clock);
        CK_TRY(ck_kafka_split_print(ctx->arena, &p->split, &spec, ctx->error));
        if (ck_split_list_add(out, p->id, spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, strlen(spec));
    }
    return CK_OK;
}

static void source_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    source_free(self);
}

static const ck_source_vtbl source_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .open = source_open,
    .add_split = source_add_split,
    .poll = source_poll,
    .snapshot = source_snapshot,
    .close = source_close,
};

const ck_op_desc ck_op_source_kafka = {
    .type = "source.kafka", .source = &source_vtbl, .create = source_create, .enumerate = ck_kafka_enumerate};
