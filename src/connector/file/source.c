/* The `file` source. A step takes the bytes its reader has ready, lets the decoder make columns of whole records and
 * emits about one batch; the partial record at a buffer's end is carried to the next. A split's position is that of the
 * next record not yet emitted, so that a restore begins exactly there. */
#include "connector/connectors.h"

#include "connector/file/file_int.h"
#include "connector/keys_met.h"
#include "connector/pacer.h"
#include "os/clock.h"

/* A followed file that grows is looked at soon again, one that does not less and less often. */
enum { LOOK_SOON_US = 1000, LOOK_INTERVAL_US = 20000, GROWN_BUFFER_MIN = 1 << 20 };

/* One owned split. */
typedef struct run {
    char *id;
    ck_file_split split; /* position: as emitted */
    ck_file_reader *reader;
    bool begun, finished;
    uint32_t clock; /* in event_time */
    ck_view header;
    /* bytes not decoded yet */
    ck_buffer *buffer;
    size_t begin, end;
    uint64_t offset;    /* of begin */
    bool fresh;         /* there are bytes the decoder has not seen */
    bool at_end;        /* nothing follows them */
    bool named;         /* the decoder has accepted the file's header */
    bool growing;       /* buffer holds one record that is larger than a read */
    bool discarding;    /* in the middle of a record that is too long, up to its end */
    bool in_quotes;     /* while discarding */
    uint64_t lines;     /* standard input: line ends before begin */
    int64_t look_us;    /* followed: when to look again */
    int64_t look_after; /* and how long after a look in vain */
} run;

typedef struct file_source {
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    ck_file_options options;
    ck_decoder *decoder;
    run *decoding; /* whose records the decoder is set up for */
    ck_event_time event_time;
    ck_pacer pacer;
    run **runs; /* in the arena */
    uint32_t run_count, run_capacity, turn;
    ck_op_ctx *ctx; /* of the call under way */
    uint64_t bad_rows;
    ck_dead_letters letters;
    ck_bad_place bad;
} file_source;

/* ---- making ---- */

static ck_status on_bad_record(void *arg, const ck_bad_record *bad, ck_error *err) {
    file_source *s = arg;
    const run *r = s->decoding;
    if (ck_source_skips(s->ctx, r->split.path, bad->offset)) {
        s->bad_rows++;
        return CK_OK;
    }
    if (s->letters.on) {
        if (ck_dead_letters_is_full(&s->letters)) return CK_FULL; /* comes again when they are sent */
        CK_TRY(ck_dead_letters_add(&s->letters, r->split.path, bad, err));
    }
    if (s->options.on_error != CK_ON_ERROR_FAIL) {
        s->bad_rows++;
        return CK_OK;
    }
    ck_bad_place_set(&s->bad, s->ctx, &r->split, &s->options, bad);
    if (s->options.is_stdin) {
        s->bad.line = r->lines + 1;
        for (uint64_t i = r->offset; i < bad->offset; i++)
            s->bad.line += r->buffer->p[r->begin + (i - r->offset)] == '\n';
    }
    return CK_DATA;
}

static void source_free(file_source *s) {
    ck_pacer_share(&s->pacer, false);
    for (uint32_t i = 0; i < s->run_count; i++) {
        ck_file_reader_free(s->runs[i]->reader);
        ck_buffer_unref(&s->runs[i]->buffer);
    }
    ck_free(s->mem, s->runs, s->run_capacity * sizeof *s->runs);
    ck_decoder_free(s->decoder);
    ck_event_time_destroy(&s->event_time);
    ck_dead_letters_destroy(&s->letters);
    ck_arena_destroy(&s->arena);
    ck_free(s->mem, s, sizeof *s);
}

static ck_status source_init(file_source *s, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_source_table_read(&s->arena, spec, &s->table, err));
    CK_TRY(ck_file_options_read(&s->table.options, &s->options, err));
    CK_TRY(ck_event_time_init(&s->event_time, s->table.event_time, spec, &s->arena, s->mem, err));
    const ck_file_options *o = &s->options;
    s->pacer = ck_pacer_of(o->rate_limit, spec);
    ck_decoder_spec d = {
        .format = o->format,
        .schema = s->table.schema,
        .wanted = s->table.wanted,
        .checked = s->table.checked,
        .strict = o->strict || o->on_error != CK_ON_ERROR_FAIL, /* what is skipped does not depend on the query */
        .header = o->header,
        .delimiter = o->delimiter,
        .null_string = o->null_string,
        .batch_rows = ck_pacer_rows(&s->pacer, spec->settings->batch_rows),
        .origins = true,
    };
    if (o->on_error == CK_ON_ERROR_DEAD_LETTER)
        CK_TRY(ck_dead_letters_init(&s->letters, &s->arena, s->mem, spec->settings->batch_rows, err));
    return ck_decoder_new(spec->proc, &d, s->mem, on_bad_record, s, &s->decoder, err);
}

static ck_status source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    mem = ck_mem_as(mem, CK_MEM_DECODE);
    file_source *s = ck_alloc_zero(mem, sizeof *s);
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

static ck_status source_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    file_source *s = self;
    if (s->run_count == s->run_capacity) {
        uint32_t capacity = s->run_capacity ? s->run_capacity * 2 : 8;
        void *p = ck_realloc(s->mem, s->runs, s->run_capacity * sizeof *s->runs, capacity * sizeof *s->runs);
        if (!p) return ck_nomem(ctx->error, s->mem, capacity * sizeof *s->runs);
        s->runs = p;
        s->run_capacity = capacity;
    }
    run *r = CK_ARENA_NEW(&s->arena, run);
    if (!r || !(r->id = ck_arena_strdup(&s->arena, split->id))) return ck_nomem(ctx->error, s->arena.mem, sizeof *r);
    CK_TRY(ck_file_split_parse(&s->arena, split->spec, &r->split, ctx->error));
    r->finished = r->split.position == r->split.end;
    r->look_after = LOOK_SOON_US;
    CK_TRY(ck_event_time_add(&s->event_time, r->id, r->split.time_us, r->finished, &r->clock, ctx->error));
    if (r->split.end != UINT64_MAX) ck_op_count(ctx, "bytes_total", r->split.end - r->split.position);
    s->runs[s->run_count++] = r;
    if (!r->finished) ck_pacer_share(&s->pacer, true);
    return CK_OK;
}

/* ---- bytes of one split ---- */

/* Puts a chunk behind what is left of the bytes before. Takes the chunk's buffer. */
static ck_status append_chunk(file_source *s, run *r, ck_read_chunk *c, ck_error *err) {
    size_t left = r->end - r->begin, more = c->end - c->begin;
    if (left <= CK_READ_HEADROOM && !r->growing) {
        if (left) memcpy(c->buffer->p + c->begin - left, r->buffer->p + r->begin, left);
        ck_buffer_unref(&r->buffer);
        r->buffer = c->buffer;
        r->begin = c->begin - left;
        r->end = c->end;
        r->offset = c->offset - left;
        r->fresh = true;
        return CK_OK;
    }
    if (!r->growing || r->buffer->bytes - r->end < more) {
        size_t capacity = 2 * (left + more);
        if (capacity < GROWN_BUFFER_MIN) capacity = GROWN_BUFFER_MIN;
        ck_buffer *grown = ck_buffer_new(s->mem, capacity);
        if (!grown) {
            ck_buffer_unref(&c->buffer);
            return ck_nomem(err, s->mem, capacity);
        }
        memcpy(grown->p, r->buffer->p + r->begin, left);
        ck_buffer_unref(&r->buffer);
        r->buffer = grown;
        r->begin = 0;
        r->end = left;
        r->growing = true;
    }
    memcpy(r->buffer->p + r->end, c->buffer->p + c->begin, more);
    /* Without a line end the record cannot be whole. */
    r->fresh = memchr(r->buffer->p + r->end, '\n', more) != NULL;
    r->end += more;
    ck_buffer_unref(&c->buffer);
    return CK_OK;
}

static void consume(file_source *s, run *r, size_t n) {
    if (n == 0) return;
    if (s->options.is_stdin)
        for (size_t i = 0; i < n; i++) r->lines += r->buffer->p[r->begin + i] == '\n';
    r->begin += n;
    r->offset += n;
    r->growing = false;
}

static ck_status set_decoder(file_source *s, run *r, ck_error *err) {
    if (s->decoding == r) return CK_OK;
    s->decoding = r;
    bool at_start = s->options.is_stdin;
    CK_TRY(ck_decoder_begin(s->decoder, r->split.path, at_start, err));
    if (!s->options.header || at_start || r->header.n == 0) return CK_OK;
    ck_status status = ck_decoder_csv_header(s->decoder, r->header, err);
    if (status != CK_OK) ck_error_prefix(err, "%s: ", r->split.path);
    return status;
}

/* Whether the record at the front, whole or not, is above the limit. */
static bool is_too_long(const file_source *s, const run *r) {
    bool in_quotes = false;
    size_t skip, line_end = 2;
    ck_status status =
        ck_format_sync(s->options.format, (const char *)r->buffer->p + r->begin, r->end - r->begin, &in_quotes, &skip);
    return status != CK_OK || skip > CK_RECORD_BYTES_MAX + line_end;
}

/* A record above the limit: fails with its place, or is dropped up to its end. */
static ck_status too_long(file_source *s, run *r, ck_error *err) {
    CK_TRY(set_decoder(s, r, err));
    ck_bad_record bad = {.raw = {(const char *)r->buffer->p + r->begin, r->end - r->begin},
                         .offset = r->offset,
                         .reason = "the record is longer than 67108864 bytes"};
    CK_TRY(on_bad_record(s, &bad, err));
    size_t skip;
    r->in_quotes = false;
    ck_status status = ck_format_sync(s->options.format, bad.raw.p, bad.raw.n, &r->in_quotes, &skip);
    if (status != CK_OK && status != CK_MORE) return status;
    r->discarding = status == CK_MORE;
    consume(s, r, r->discarding ? bad.raw.n : skip);
    r->fresh = r->begin < r->end;
    return CK_OK;
}

static ck_status discard(file_source *s, run *r) {
    size_t n = r->end - r->begin, skip;
    ck_status status =
        ck_format_sync(s->options.format, (const char *)r->buffer->p + r->begin, n, &r->in_quotes, &skip);
    if (status != CK_OK && status != CK_MORE) return status;
    r->discarding = status == CK_MORE;
    consume(s, r, r->discarding ? n : skip);
    r->fresh = r->begin < r->end;
    return CK_OK;
}

/* CK_OK: all whole records are decoded. CK_FULL: the batch is full. */
static ck_status decode(file_source *s, run *r, ck_error *err) {
    if (r->discarding) CK_TRY(discard(s, r));
    if (r->end - r->begin > CK_RECORD_BYTES_MAX && is_too_long(s, r)) return too_long(s, r, err);
    if (!r->fresh || r->begin == r->end) return CK_OK;
    if (r->offset == 0 && s->options.is_stdin && r->end - r->begin >= 3 &&
        memcmp(r->buffer->p + r->begin, "\xef\xbb\xbf", 3) == 0) {
        CK_TRY(set_decoder(s, r, err));
        consume(s, r, 3);
    }
    CK_TRY(set_decoder(s, r, err));
    size_t consumed = 0;
    ck_status status = ck_decoder_feed(s->decoder, r->buffer, r->begin, r->end, r->offset, r->at_end, &consumed, err);
    if (status == CK_OK || status == CK_FULL) consume(s, r, consumed);
    if (status == CK_OK) r->fresh = false;
    return status;
}

/* ---- a step ---- */

typedef enum progress {
    ROWS,  /* a batch to emit, full or all there is now */
    WAIT,  /* a wake comes */
    LATER, /* a followed file has nothing new */
    ENDED, /* the split is finished, maybe with rows pending */
} progress;

static ck_status begin(file_source *s, run *r, progress *out, ck_op_ctx *ctx) {
    if (!r->reader) {
        ck_reader_config c = {ctx, &r->split, s->options.format, s->options.header, s->options.compression};
        CK_TRY(ck_file_reader_new(&c, s->mem, &r->reader, ctx->error));
    }
    ck_status status = ck_file_reader_ready(r->reader, &r->header, ctx->error);
    *out = status == CK_MORE ? LATER : WAIT;
    if (status == CK_MORE || status == CK_AGAIN) return CK_OK;
    if (status != CK_OK) return status;
    r->begun = true;
    r->offset = ck_file_reader_start(r->reader);
    if (r->split.end == UINT64_MAX) r->split.inode = ck_file_reader_inode(r->reader);
    return CK_OK;
}

static ck_status advance(file_source *s, run *r, progress *out, ck_op_ctx *ctx) {
    if (!r->begun) {
        CK_TRY(begin(s, r, out, ctx));
        if (!r->begun) return CK_OK;
    }
    if (!r->named) CK_TRY(set_decoder(s, r, ctx->error)); /* a header is looked at, also where no record follows it */
    r->named = true;
    for (;;) {
        ck_status status = decode(s, r, ctx->error);
        *out = ROWS;
        if (status == CK_FULL) return CK_OK;
        if (status != CK_OK) return status;
        if (r->at_end) {
            *out = ENDED;
            if (r->begin == r->end) return CK_OK;
            CK_ASSERT(r->fresh); /* only a record that was dropped leaves something */
            continue;
        }
        ck_read_chunk chunk;
        status = ck_file_reader_next(r->reader, &chunk, ctx->error);
        if (status == CK_OK) {
            CK_TRY(append_chunk(s, r, &chunk, ctx->error));
        } else if (status == CK_CLOSED) {
            r->at_end = r->fresh = true;
        } else if (status == CK_AGAIN || status == CK_MORE) {
            bool pending = ck_decoder_rows(s->decoder) + ck_dead_letters_count(&s->letters) > 0 && s->decoding == r;
            *out = pending ? ROWS : status == CK_AGAIN ? WAIT : LATER;
            return CK_OK;
        } else {
            return status;
        }
    }
}

static ck_status emit(file_source *s, run *r, ck_op_ctx *ctx) {
    uint64_t bytes = r->offset - r->split.position;
    r->split.position = r->offset;
    ck_op_count(ctx, "bytes_in", bytes);
    CK_TRY(ck_dead_letters_emit(&s->letters, ctx));
    uint32_t rows = ck_decoder_rows(s->decoder);
    if (rows == 0) return CK_OK;
    ck_keys_met_note(s->decoder, s->table.schema, s->table.schema, ctx);
    ck_batch *b = ck_decoder_take(s->decoder);
    ck_pacer_took(&s->pacer, ck_mono_us(ctx->proc), rows);
    return ck_source_emit(&s->table, &s->event_time, r->clock, &b, rows, ctx);
}

static ck_status finish(file_source *s, run *r, ck_op_ctx *ctx) {
    CK_TRY(emit(s, r, ctx));
    r->finished = true;
    ck_event_time_finish(&s->event_time, r->clock);
    CK_TRY(ck_event_time_say(&s->event_time, ctx));
    if (r->split.end == UINT64_MAX) r->split.end = r->offset; /* standard input, a compressed file */
    r->split.position = r->split.end;
    s->decoding = NULL;
    r->header = (ck_view){NULL, 0};
    ck_buffer_unref(&r->buffer);
    r->begin = r->end = 0;
    ck_file_reader_free(r->reader);
    r->reader = NULL;
    return CK_OK;
}

/* While the last buffers of one split are read, the next one is opened. */
static ck_status open_ahead(file_source *s, const run *r, ck_op_ctx *ctx) {
    if (s->options.follow || !r->reader || !ck_file_reader_drains(r->reader)) return CK_OK;
    for (uint32_t i = 0; i < s->run_count; i++) {
        run *next = s->runs[i];
        progress ignored;
        if (next != r && !next->finished) return next->reader ? CK_OK : begin(s, next, &ignored, ctx);
    }
    return CK_OK;
}

/* One split after the other; followed ones in turn, each as long as it has something. */
static ck_status step(file_source *s, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    int64_t now = ck_mono_us(ctx->proc);
    *result = CK_POLL_END;
    *until_us = INT64_MAX;
    for (uint32_t i = 0; i < s->run_count; i++) {
        run *r = s->runs[(s->turn + i) % s->run_count];
        progress p;
        if (r->finished) continue;
        *result = CK_POLL_IDLE;
        if (r->look_us > now) {
            if (r->look_us < *until_us) *until_us = r->look_us;
            continue;
        }
        if (r->look_us && r->reader) ck_file_reader_look(r->reader);
        r->look_us = 0;
        CK_TRY(advance(s, r, &p, ctx));
        if (p == ROWS || p == ENDED) {
            r->look_after = LOOK_SOON_US;
            s->turn = s->options.follow ? (s->turn + i) % s->run_count : 0;
            *result = CK_POLL_MORE;
            return p == ENDED ? finish(s, r, ctx) : emit(s, r, ctx);
        }
        if (p == WAIT && !s->options.follow) return open_ahead(s, r, ctx);
        if (p == LATER) {
            if (r->begun) CK_TRY(emit(s, r, ctx)); /* skipped records move the position, too */
            r->look_us = now + r->look_after;
            r->look_after = r->look_after < LOOK_INTERVAL_US / 2 ? r->look_after * 2 : LOOK_INTERVAL_US;
            if (r->look_us < *until_us) *until_us = r->look_us;
            if (s->options.follow) ck_event_time_empty(&s->event_time, r->clock, now, until_us);
            CK_TRY(ck_event_time_say(&s->event_time, ctx));
        }
    }
    return CK_OK;
}

static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    file_source *s = self;
    s->ctx = ctx;
    *until_us = INT64_MAX;
    *result = CK_POLL_IDLE;
    ck_status status = CK_DATA;
    if (!s->bad.path) {
        if (!ck_pacer_ready(&s->pacer, ck_mono_us(ctx->proc), until_us)) return CK_OK;
        status = step(s, ctx, result, until_us);
        if (*result == CK_POLL_MORE) {
            ck_pacer_share(&s->pacer, true);
        } else if (*result == CK_POLL_END || (s->options.follow && *until_us != INT64_MAX)) {
            ck_pacer_share(&s->pacer, false); /* looked, and found nothing */
        }
        if (s->bad_rows) ck_op_count(ctx, "bad_rows", s->bad_rows);
        if (s->bad_rows && s->letters.on) ck_op_count(ctx, "dead_letters", s->bad_rows);
        s->bad_rows = 0;
    }
    if (status != CK_DATA || !s->bad.path) return status;
    *result = CK_POLL_IDLE;
    *until_us = INT64_MAX;
    status = ck_bad_place_report(&s->bad, ctx->error);
    return status == CK_AGAIN ? CK_OK : status;
}

static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    file_source *s = self;
    for (uint32_t i = 0; i < s->run_count; i++) {
        const char *spec;
        s->runs[i]->split.time_us = ck_event_time_max(&s->event_time, s->runs[i]->clock);
        CK_TRY(ck_file_split_print(ctx->arena, &s->runs[i]->split, &spec, ctx->error));
        if (ck_split_list_add(out, s->runs[i]->id, spec) != CK_OK) return ck_nomem(ctx->error, ctx->mem, strlen(spec));
    }
    return CK_OK;
}

static void source_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    source_free(self);
}

static const ck_source_vtbl source_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .add_split = source_add_split,
    .poll = source_poll,
    .snapshot = source_snapshot,
    .close = source_close,
};

const ck_op_desc ck_op_source_file = {
    .type = "source.file",
    .source = &source_vtbl,
    .create = source_create,
    .enumerate = ck_file_enumerate,
    .again = ck_source_again,
    .rewind = ck_file_rewind,
};
