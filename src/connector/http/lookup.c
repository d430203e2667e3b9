/* Rows looked up over HTTP: each key has an address, what is not known is asked for, many at once, on an I/O thread,
 * and kept for `lookup.cache_ttl_ms` as lines of JSON in two generations, of which the older goes when the younger has
 * half of `lookup.max_bytes`. An answer is an object, an array of objects, or none (404, 410, 204). */
#include <stdio.h>
#include <yyjson.h>

#include "base/json.h"
#include "connector/background.h"
#include "connector/connectors.h"
#include "connector/http/http_int.h"
#include "connector/lookup_cache.h"
#include "connector/show_raw.h"
#include "stream/lookup.h"

enum { WINDOW = 256, SLICE_MS = 100, TEXT_BYTES_MAX = 1 << 30, CHUNK_BYTES = 1 << 20, SAID_BYTES = 320 };
/* All rows of one key; none is an answer too. */
typedef struct answer {
    ck_kept_answer kept; /* under its address; first */
    ck_view lines;
} answer;

typedef struct http_lookup {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena, job_arena;
    ck_source_table table;
    ck_http_table options;
    ck_http_address address;       /* its columns are of `asked_schema` */
    const ck_schema *schema;       /* columns asked for */
    const ck_schema *lines_schema; /* the same as they stand in an answer: the table's names, keys may be absent */
    const uint32_t *keys;
    uint32_t key_count;
    bool *wanted; /* of lines_schema: not the keys */
    ck_decoder *decoder;
    ck_lookup_cache cache;
    /* the batch in hand */
    bool finding, resolved;
    ck_bytes urls, scratch;
    size_t ends[CK_BATCH_ROWS_MAX];
    answer *answers[CK_BATCH_ROWS_MAX];
    uint32_t at;
    size_t line_at; /* in the answer at `at` */
    uint16_t key_of[CK_BATCH_ROWS_MAX];
    uint16_t line_key[CK_BATCH_ROWS_MAX]; /* of each line given to the decoder */
    size_t line_start[CK_BATCH_ROWS_MAX];
    uint32_t line_count, batch_rows;
    ck_buffer *buf;
    ck_batch *out;
    /* questions; the job's while one runs */
    ck_http_client client;
    bool is_open;
    ck_http_request *requests; /* WINDOW */
    answer *asked[WINDOW];
    uint32_t count;
    ck_proc *proc;
    ck_op_ctx *ctx; /* of the call at hand */
} http_lookup;

/* ---- making ---- */

static void lookup_free(http_lookup *l) {
    if (l->requests) {
        ck_http_client_destroy(&l->client, l->requests, WINDOW);
        for (uint32_t i = 0; i < WINDOW; i++) ck_http_request_destroy(&l->requests[i]);
        ck_free(l->mem, l->requests, WINDOW * sizeof *l->requests);
    }
    ck_batch_unref(&l->out);
    ck_buffer_unref(&l->buf);
    ck_decoder_free(l->decoder);
    ck_bytes_destroy(&l->urls);
    ck_bytes_destroy(&l->scratch);
    ck_lookup_cache_destroy(&l->cache);
    ck_arena_destroy(&l->arena);
    ck_arena_destroy(&l->job_arena);
    ck_free(l->mem, l, sizeof *l);
}

static ck_status on_bad_record(void *arg, const ck_bad_record *bad, ck_error *err) {
    http_lookup *l = arg;
    char raw[160];
    if (l->options.on_error != CK_ON_ERROR_FAIL) {
        ck_op_count(l->ctx, "bad_rows", 1);
        return CK_OK;
    }
    ck_show_raw(raw, sizeof raw, bad->raw);
    ck_fail(err, CK_DATA, "table \"%s\": an answer does not fit: %s%s%s; it is: %s", l->table.table, bad->reason,
            bad->field ? ", column " : "", bad->field ? bad->field : "", raw);
    if (err) err->fatal = true;
    return CK_DATA;
}

/* Every value in the address must be one that is looked up by, and the other way round: what the server gives is taken
 * for all that matches. */
static ck_status check_keys(const http_lookup *l, ck_error *err) {
    for (uint32_t i = 0; i < l->address.count; i++) {
        const ck_http_piece *p = &l->address.pieces[i];
        bool found = p->text.p != NULL;
        for (uint32_t k = 0; !found && k < l->key_count; k++) found = l->keys[k] == p->column;
        if (!found)
            return ck_fail(
                err, CK_INVALID,
                "table \"%s\": option 'url' has {%s}, which the join does not give: compare it, ON %s.%s = ...",
                l->table.table, l->lines_schema->fields[p->column].name, l->table.table,
                l->lines_schema->fields[p->column].name);
    }
    for (uint32_t k = 0; k < l->key_count; k++) {
        bool found = false;
        for (uint32_t i = 0; i < l->address.count; i++)
            found |= !l->address.pieces[i].text.p && l->address.pieces[i].column == l->keys[k];
        if (!found)
            return ck_fail(err, CK_INVALID, "table \"%s\": rows are looked up by \"%s\", and option 'url' has no {%s}",
                           l->table.table, l->lines_schema->fields[l->keys[k]].name,
                           l->lines_schema->fields[l->keys[k]].name);
    }
    return CK_OK;
}

static ck_status make_schema(http_lookup *l, const ck_lookup_spec *s, ck_error *err) {
    uint32_t n = s->op->schema->field_count, *keys = ck_arena_array(&l->arena, s->key_count + 1u, sizeof *keys);
    ck_schema *lines = CK_ARENA_NEW(&l->arena, ck_schema);
    ck_field *fields = ck_arena_array(&l->arena, n + 1, sizeof *fields);
    l->wanted = ck_arena_array(&l->arena, n + 1, sizeof *l->wanted);
    l->schema = ck_schema_copy(&l->arena, s->op->schema);
    if (!keys || !lines || !fields || !l->wanted || !l->schema) return ck_nomem(err, l->arena.mem, n * sizeof *fields);
    memcpy(keys, s->keys, s->key_count * sizeof *keys);
    for (uint32_t i = 0; i < n; i++) {
        fields[i] = l->table.schema->fields[l->table.columns[i]];
        l->wanted[i] = true;
    }
    for (uint32_t k = 0; k < s->key_count; k++) l->wanted[keys[k]] = false;
    *lines = (ck_schema){fields, n};
    l->lines_schema = lines;
    l->keys = keys, l->key_count = s->key_count;
    return CK_OK;
}

static ck_status lookup_init(http_lookup *l, const ck_lookup_spec *s, ck_error *err) {
    CK_TRY(ck_source_table_read(&l->arena, s->op, &l->table, err));
    CK_TRY(ck_http_table_read(&l->table.options, &l->options, err));
    l->cache.ttl_us = l->options.ttl_ms * 1000, l->cache.bytes_max = l->options.cache_bytes_max;
    CK_TRY(make_schema(l, s, err));
    ck_status st = ck_http_address_parse(&l->arena, l->options.url, l->lines_schema, &l->address, err);
    if (st == CK_OK) st = check_keys(l, err);
    if (st != CK_OK) return st;
    l->proc = s->op->proc;
    l->batch_rows = s->op->settings->batch_rows;
    l->requests = ck_alloc_zero(l->mem, WINDOW * sizeof *l->requests);
    if (!l->requests) return ck_nomem(err, l->mem, WINDOW * sizeof *l->requests);
    for (uint32_t i = 0; i < WINDOW; i++) ck_http_request_init(&l->requests[i], l->mem);
    ck_decoder_spec d = {
        .format = "json", .schema = l->lines_schema, .wanted = l->wanted, .origins = true, .batch_rows = l->batch_rows};
    CK_TRY(ck_decoder_new(s->op->proc, &d, l->mem, on_bad_record, l, &l->decoder, err));
    return ck_decoder_begin(l->decoder, l->table.table, true, err);
}

static ck_status lookup_create(const ck_lookup_spec *s, ck_mem mem, void **self, ck_error *err) {
    http_lookup *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) return ck_nomem(err, mem, sizeof *l);
    l->mem = mem;
    ck_arena_init(&l->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&l->job_arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_lookup_cache_init(&l->cache, mem);
    ck_bytes_init(&l->urls, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&l->scratch, mem, TEXT_BYTES_MAX);
    ck_status st = lookup_init(l, s, err);
    if (st == CK_OK)
        *self = l;
    else
        lookup_free(l);
    return st;
}

/* ---- the job: questions ---- */

static void job_run(ck_io_job *j) {
    http_lookup *l = (http_lookup *)j;
    l->call.status = CK_OK;
    if (!l->is_open)
        l->call.status = ck_http_table_open(&l->options, l->proc, &l->job_arena, &l->client, &l->call.error);
    l->is_open = l->call.status == CK_OK;
    if (l->is_open) l->call.status = ck_http_run(&l->client, l->requests, l->count, SLICE_MS, &l->call.error);
}

static void submit(http_lookup *l, ck_op_ctx *ctx) { ck_background_begin(&l->call, job_run, ctx); }

/* ---- answers ---- */

static ck_status failed(http_lookup *l, const ck_http_request *r, const char *why, ck_op_ctx *ctx) {
    char said[SAID_BYTES];
    if (l->options.on_error != CK_ON_ERROR_FAIL) {
        ck_op_count(ctx, "bad_rows", 1);
        return CK_OK;
    }
    ck_fail(ctx->error, CK_IO, "table \"%s\": GET %.200s: %s", l->table.table, r->url,
            why ? why : ck_http_said(r, said, sizeof said));
    ctx->error->retriable = r->status == 0 || r->status >= 500 || r->status == 429;
    return CK_IO;
}

/* Objects as lines; numbers stay the text they are. */
static ck_status put_lines(http_lookup *l, yyjson_val *root, ck_arena *scratch, answer *a, bool *fits, ck_op_ctx *ctx) {
    yyjson_alc alc;
    ck_bytes lines;
    yyjson_val *one[] = {root}, *v;
    size_t n = yyjson_is_arr(root) ? yyjson_arr_size(root) : 1;
    yyjson_arr_iter it = {0};
    if (yyjson_is_arr(root)) yyjson_arr_iter_init(root, &it);
    ck_json_alc(scratch, &alc);
    ck_bytes_init(&lines, l->mem, TEXT_BYTES_MAX);
    ck_status s = CK_OK;
    *fits = true;
    for (size_t i = 0; s == CK_OK && *fits && i < n; i++) {
        size_t bytes;
        v = yyjson_is_arr(root) ? yyjson_arr_iter_next(&it) : one[0];
        if (!(*fits = yyjson_is_obj(v))) break;
        const char *text = yyjson_val_write_opts(v, 0, &alc, &bytes, NULL);
        s = text ? ck_bytes_append(&lines, text, bytes) : CK_NOMEM;
        if (s == CK_OK) s = ck_bytes_char(&lines, '\n');
    }
    if (s == CK_OK && lines.n) {
        char *copy = ck_arena_strndup(ck_lookup_cache_arena(&l->cache), lines.p, lines.n);
        a->lines = (ck_view){copy, lines.n};
        if (!copy) s = CK_NOMEM;
    }
    size_t bytes = lines.n;
    ck_bytes_destroy(&lines);
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, l->mem, bytes);
}

static ck_status keep(http_lookup *l, ck_http_request *r, answer *a, ck_op_ctx *ctx) {
    int64_t now = ck_op_now_us(ctx);
    a->kept.at_us = now;
    a->lines = (ck_view){0};
    if (r->status == 404 || r->status == 410 || r->status == 204) return CK_OK;
    a->kept.at_us = CK_ANSWER_STALE;
    if (r->status < 200 || r->status > 299) return failed(l, r, NULL, ctx);
    ck_arena scratch;
    yyjson_alc alc;
    bool fits = false;
    ck_arena_init(&scratch, l->mem, TEXT_BYTES_MAX);
    ck_json_alc(&scratch, &alc);
    yyjson_doc *doc =
        r->answer.n ? yyjson_read_opts(r->answer.p, r->answer.n, YYJSON_READ_NUMBER_AS_RAW, &alc, NULL) : NULL;
    ck_status s = doc ? put_lines(l, yyjson_doc_get_root(doc), &scratch, a, &fits, ctx) : CK_OK;
    ck_arena_destroy(&scratch);
    if (s != CK_OK) return s;
    if (!fits) return failed(l, r, "the answer is no JSON object and no array of them", ctx);
    a->kept.at_us = now;
    return CK_OK;
}

static ck_status take_answers(http_lookup *l, ck_op_ctx *ctx) {
    if (!ck_background_ended(&l->call)) return CK_AGAIN;
    if (l->call.status == CK_AGAIN) {
        submit(l, ctx);
        return CK_AGAIN;
    }
    if (l->call.status != CK_OK) {
        *ctx->error = l->call.error;
        return l->call.status;
    }
    if (l->client.tried_again) ck_op_count(ctx, "requests_tried_again", l->client.tried_again);
    l->client.tried_again = 0;
    for (uint32_t i = 0; i < l->count; i++) CK_TRY(keep(l, &l->requests[i], l->asked[i], ctx));
    l->count = 0;
    return ck_lookup_cache_check(&l->cache, l->table.table, "raise it", ctx->error);
}

/* ---- keys of a batch ---- */

static ck_status print_keys(http_lookup *l, const ck_key_spec *keys, const ck_batch *b, ck_op_ctx *ctx) {
    ck_column **columns = ck_arena_array(ctx->arena, l->schema->field_count + 1u, sizeof(void *));
    if (!columns) return ck_nomem(ctx->error, ctx->mem, sizeof(void *));
    for (uint32_t k = 0; k < keys->count; k++) columns[l->keys[k]] = b->columns[keys->columns[k]];
    ck_bytes_clear(&l->urls);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        ck_status s =
            ck_http_address_print(&l->address, l->lines_schema, columns, ck_batch_row(b, k), &l->scratch, &l->urls);
        if (s == CK_OK) s = ck_bytes_char(&l->urls, 0);
        if (s != CK_OK) return ck_nomem(ctx->error, l->mem, l->urls.n);
        l->ends[k] = l->urls.n;
    }
    return CK_OK;
}

static ck_view url_of(const http_lookup *l, uint32_t k) {
    size_t from = k ? l->ends[k - 1] : 0;
    return (ck_view){l->urls.p + from, l->ends[k] - from - 1};
}

/* Answers for the rows of the batch from what is kept; the others become the next questions. */
static ck_status resolve(http_lookup *l, const ck_batch *b, ck_op_ctx *ctx) {
    int64_t now = ck_op_now_us(ctx);
    l->count = 0;
    l->resolved = true;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        if (l->answers[k] && l->answers[k]->kept.at_us != CK_ANSWER_PENDING) continue;
        ck_view url = url_of(l, k);
        answer *a = ck_lookup_cache_find(&l->cache, url, now);
        l->answers[k] = a;
        if (a && a->kept.at_us != CK_ANSWER_PENDING) continue;
        l->resolved = false;
        if (a || l->count == WINDOW) continue;
        a = ck_lookup_cache_ask(&l->cache, url, sizeof *a);
        if (!a) return ck_nomem(ctx->error, l->mem, url.n);
        l->answers[k] = a;
        ck_http_request *r = &l->requests[l->count];
        r->method = "GET", r->url = url.p; /* a zero is behind it */
        r->done = false, r->status = 0, r->tries = 0, r->again_us = 0;
        l->asked[l->count++] = a;
    }
    return CK_OK;
}

/* ---- rows ---- */

/* Lines of answers, as many as a batch takes, into a new buffer. */
static ck_status gather_lines(http_lookup *l, const ck_batch *b, ck_op_ctx *ctx, size_t *bytes) {
    size_t room = 0, first = 0;
    while (l->at < b->sel_count && l->line_at == l->answers[l->at]->lines.n) l->at++, l->line_at = 0;
    for (uint32_t k = l->at; k < b->sel_count && room < CHUNK_BYTES; k++) room += l->answers[k]->lines.n;
    if (room > CHUNK_BYTES) room = CHUNK_BYTES;
    if (l->at < b->sel_count) {
        const char *p = l->answers[l->at]->lines.p + l->line_at;
        first = (size_t)((const char *)memchr(p, '\n', l->answers[l->at]->lines.n - l->line_at) - p) + 1;
    }
    if (room < first) room = first;
    ck_buffer_unref(&l->buf);
    if (!(l->buf = ck_buffer_new(l->mem, room ? room : 1))) return ck_nomem(ctx->error, l->mem, room);
    *bytes = 0;
    l->line_count = 0;
    while (l->at < b->sel_count && l->line_count < l->batch_rows) {
        ck_view all = l->answers[l->at]->lines;
        if (l->line_at == all.n) {
            l->at++, l->line_at = 0;
            continue;
        }
        const char *from = all.p + l->line_at, *end = memchr(from, '\n', all.n - l->line_at);
        size_t n = (size_t)(end - from) + 1;
        if (n > l->buf->bytes - *bytes) break;
        memcpy(l->buf->p + *bytes, from, n);
        l->line_key[l->line_count] = (uint16_t)l->at;
        l->line_start[l->line_count++] = *bytes;
        *bytes += n;
        l->line_at += n;
    }
    return CK_OK;
}

/* Key columns are what was looked up by. */
static ck_status key_column(http_lookup *l, const ck_key_spec *keys, uint32_t k, const ck_batch *b, ck_batch *out,
                            ck_op_ctx *ctx) {
    ck_column_builder builder;
    uint32_t at = l->keys[k];
    ck_status s = ck_column_builder_init(&builder, l->mem, l->lines_schema->fields[at].type, out->row_count);
    if (s != CK_OK) return ck_nomem(ctx->error, l->mem, out->row_count * sizeof(ck_strview));
    for (uint32_t i = 0; s == CK_OK && i < out->row_count; i++)
        s = ck_build_from(&builder, b->columns[keys->columns[k]], ck_batch_row(b, l->key_of[i]));
    ck_column *c = s == CK_OK ? ck_column_builder_finish(&builder) : NULL;
    ck_column_builder_destroy(&builder);
    if (!c) return ck_nomem(ctx->error, l->mem, out->row_count * sizeof(ck_strview));
    ck_batch_set_column(out, at, &c);
    return CK_OK;
}

static ck_status finish(http_lookup *l, const ck_key_spec *keys, const ck_batch *b, const ck_batch *decoded,
                        ck_op_ctx *ctx) {
    uint32_t line = 0;
    for (uint32_t i = 0; i < decoded->row_count; i++) {
        uint64_t at = decoded->origin->base_offset + decoded->origin->row_offset[i];
        while (line + 1 < l->line_count && l->line_start[line + 1] <= at) line++;
        l->key_of[i] = l->line_key[line];
    }
    l->out = ck_batch_new(l->mem, l->schema->field_count, decoded->row_count, false, false);
    if (!l->out) return ck_nomem(ctx->error, l->mem, decoded->row_count);
    for (uint32_t i = 0; i < l->schema->field_count; i++) {
        if (!l->wanted[i]) continue;
        ck_column *c = ck_column_ref(decoded->columns[i]);
        ck_batch_set_column(l->out, i, &c);
    }
    for (uint32_t k = 0; k < l->key_count; k++) CK_TRY(key_column(l, keys, k, b, l->out, ctx));
    return CK_OK;
}

static ck_status next_rows(http_lookup *l, const ck_key_spec *keys, const ck_batch *b, ck_op_ctx *ctx) {
    size_t bytes = 0, used = 0;
    CK_TRY(gather_lines(l, b, ctx, &bytes));
    if (bytes == 0) return CK_OK;
    ck_status s = ck_decoder_feed(l->decoder, l->buf, 0, bytes, 0, true, &used, ctx->error);
    if (s != CK_OK && s != CK_FULL) return s;
    CK_ASSERT(used == bytes); /* no more lines than a batch has rows, no more bytes than it pins */
    if (ck_decoder_rows(l->decoder) == 0) return CK_OK;
    ck_batch *decoded = ck_decoder_take(l->decoder);
    if (!decoded) return ck_nomem(ctx->error, l->mem, bytes);
    s = finish(l, keys, b, decoded, ctx);
    ck_batch_unref(&decoded);
    return s;
}

/* ---- a batch ---- */

static ck_status begin(http_lookup *l, const ck_key_spec *keys, const ck_batch *b, ck_op_ctx *ctx) {
    ck_lookup_cache_turn_over(&l->cache);
    CK_TRY(print_keys(l, keys, b, ctx));
    memset(l->answers, 0, b->sel_count * sizeof(answer *));
    l->at = 0;
    l->line_at = 0;
    l->finding = true;
    l->resolved = false;
    return CK_OK;
}

static ck_status lookup_find(void *self, const ck_key_spec *keys, const ck_batch *b, ck_lookup_found *out,
                             ck_op_ctx *ctx) {
    http_lookup *l = self;
    l->ctx = ctx;
    ck_batch_unref(&l->out);
    if (!l->finding) CK_TRY(begin(l, keys, b, ctx));
    while (!l->resolved) {
        if (l->call.running) CK_TRY(take_answers(l, ctx));
        CK_TRY(resolve(l, b, ctx));
        if (l->resolved) break;
        submit(l, ctx);
        return CK_AGAIN;
    }
    while (!l->out && l->at < b->sel_count) CK_TRY(next_rows(l, keys, b, ctx));
    l->finding = l->at < b->sel_count;
    *out = (ck_lookup_found){l->out, l->key_of, l->out ? l->out->row_count : 0, l->finding};
    return CK_OK;
}

static void lookup_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    lookup_free(self);
}

const ck_lookup_vtbl ck_lookup_http = {
    .struct_bytes = sizeof(ck_lookup_vtbl), .create = lookup_create, .find = lookup_find, .close = lookup_close};
