/* The `postgres` connector's table as one that rows are looked up in: keys of a batch that are not known are asked for,
 * many at once, on an I/O thread; what was found, and that nothing was, is kept as text for `lookup.cache_ttl_ms` in
 * two generations, of which the older goes when the younger has half of `lookup.max_bytes`. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "connector/background.h"
#include "connector/connectors.h"
#include "connector/lookup_cache.h"
#include "connector/postgres/pg_int.h"
#include "os/clock.h"
#include "stream/lookup.h"

enum { KEYS_A_QUERY = 512, KEYS_MAX = 64, PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 1000 };
#define MAX_BYTES_DEFAULT (64LL << 20)
#define TTL_DEFAULT_MS    10000

typedef struct found_row {
    struct found_row *next;
    ck_view values[]; /* by column asked for; p NULL: NULL */
} found_row;

/* All rows of one key; none is an answer too. */
typedef struct answer {
    ck_kept_answer kept; /* under its key's text; first */
    found_row *first, **tail;
} answer;

typedef struct pg_lookup {
    ck_background call; /* first */
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    ck_pg_options options;
    const ck_schema *schema; /* columns asked for */
    const uint32_t *keys;    /* of those: what is looked up by */
    uint32_t key_count;
    ck_pg_values values;
    ck_lookup_cache cache;
    /* the batch in hand */
    bool finding, resolved;
    ck_bytes text; /* of its keys */
    size_t ends[CK_BATCH_ROWS_MAX];
    answer *answers[CK_BATCH_ROWS_MAX];
    uint32_t at;
    found_row *row; /* of the answer at `at`: the next that goes out */
    bool begun;
    uint16_t key_of[CK_BATCH_ROWS_MAX];
    ck_batch *out;
    ck_batch_builder builder;
    /* a question; the job's while one runs */
    answer *asked[KEYS_A_QUERY];
    uint32_t asked_count;
    ck_bytes params[KEYS_MAX];
    ck_proc *proc;
    ck_pg pg;
    ck_arena asking;             /* what the table is on the server, and the query: of this connection */
    const char *query;           /* in there, */
    const char *types[KEYS_MAX]; /* and the server's types of the keys */
    PGresult *result;
    int64_t failing_since_us, pause_ms;
} pg_lookup;

/* ---- making ---- */

static void lookup_free(pg_lookup *l) {
    if (l->result) l->pg.lib->PQclear(l->result);
    ck_pg_close(&l->pg);
    ck_batch_unref(&l->out);
    if (l->builder.columns) ck_batch_builder_destroy(&l->builder);
    for (uint32_t i = 0; i < KEYS_MAX; i++) ck_bytes_destroy(&l->params[i]);
    ck_bytes_destroy(&l->text);
    ck_pg_values_destroy(&l->values);
    ck_lookup_cache_destroy(&l->cache);
    ck_arena_destroy(&l->asking);
    ck_arena_destroy(&l->arena);
    ck_free(l->mem, l, sizeof *l);
}

static ck_status lookup_init(pg_lookup *l, const ck_lookup_spec *s, ck_error *err) {
    int64_t ttl_ms;
    CK_TRY(ck_source_table_read(&l->arena, s->op, &l->table, err));
    CK_TRY(ck_pg_options_read(&l->table.options, &l->options, err));
    CK_TRY(ck_option_i64(&l->table.options, "lookup.cache_ttl_ms", TTL_DEFAULT_MS, 0, INT64_MAX / 1000, &ttl_ms, err));
    CK_TRY(ck_option_i64(&l->table.options, "lookup.max_bytes", MAX_BYTES_DEFAULT, 1, INT64_MAX, &l->cache.bytes_max,
                         err));
    l->cache.ttl_us = ttl_ms * 1000;
    l->schema = ck_schema_copy(&l->arena, s->op->schema);
    uint32_t *keys = ck_arena_array(&l->arena, s->key_count + 1u, sizeof *keys);
    if (!l->schema || !keys) return ck_nomem(err, l->arena.mem, 64);
    if (s->key_count > KEYS_MAX) return ck_fail(err, CK_INVALID, "a lookup by more than %d columns", KEYS_MAX);
    memcpy(keys, s->keys, s->key_count * sizeof *keys);
    l->keys = keys, l->key_count = s->key_count;
    for (uint32_t i = 0; i < l->key_count; i++)
        if (l->schema->fields[keys[i]].type->kind == CK_TYPE_ARRAY)
            return ck_fail(err, CK_INVALID, "column \"%s\" is an array, and rows are not looked up by one",
                           l->schema->fields[keys[i]].name);
    l->proc = s->op->proc;
    ck_status st = ck_batch_builder_init(&l->builder, l->mem, l->schema, s->op->settings->batch_rows);
    return st == CK_OK ? CK_OK : ck_nomem(err, l->mem, s->op->settings->batch_rows);
}

static ck_status lookup_create(const ck_lookup_spec *s, ck_mem mem, void **self, ck_error *err) {
    pg_lookup *l = ck_alloc_zero(mem, sizeof *l);
    if (!l) return ck_nomem(err, mem, sizeof *l);
    l->mem = mem;
    l->failing_since_us = INT64_MIN;
    ck_arena_init(&l->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_arena_init(&l->asking, l->arena.mem, CK_PARAMS_BYTES_MAX);
    ck_lookup_cache_init(&l->cache, mem);
    ck_pg_values_init(&l->values, mem);
    ck_bytes_init(&l->text, mem, 1 << 30);
    for (uint32_t i = 0; i < KEYS_MAX; i++) ck_bytes_init(&l->params[i], mem, 1 << 30);
    ck_status st = lookup_init(l, s, err);
    if (st == CK_OK)
        *self = l;
    else
        lookup_free(l);
    return st;
}

/* ---- the job: a question ---- */

static ck_status make_query(pg_lookup *l, const ck_pg_table *t) {
    ck_bytes q;
    ck_bytes_init(&q, l->mem, 1 << 20);
    ck_status s = ck_bytes_str(&q, "SELECT u.n");
    for (uint32_t i = 0; s == CK_OK && i < l->schema->field_count; i++)
        s = ck_bytes_printf(&q, ", t.%s", t->columns[l->table.columns[i]].ident);
    if (s == CK_OK) s = ck_bytes_printf(&q, " FROM %s t JOIN unnest(", t->name);
    for (uint32_t k = 0; s == CK_OK && k < l->key_count; k++) {
        l->types[k] = t->columns[l->table.columns[l->keys[k]]].bare;
        s = ck_bytes_printf(&q, "%s$%u::%s[]", k ? ", " : "", k + 1, l->types[k]);
    }
    if (s == CK_OK) s = ck_bytes_str(&q, ") WITH ORDINALITY u (");
    for (uint32_t k = 0; s == CK_OK && k < l->key_count; k++) s = ck_bytes_printf(&q, "k%u, ", k);
    if (s == CK_OK) s = ck_bytes_str(&q, "n) ON ");
    for (uint32_t k = 0; s == CK_OK && k < l->key_count; k++)
        s = ck_bytes_printf(&q, "%st.%s = u.k%u", k ? " AND " : "", t->columns[l->table.columns[l->keys[k]]].ident, k);
    /* The library holds an answer whole: more rows than lookup.max_bytes has room for are not asked for (keep). */
    size_t row_bytes = sizeof(found_row) + l->schema->field_count * sizeof(ck_view);
    uint64_t rows_max = ((uint64_t)l->cache.bytes_max + CK_LOOKUP_SLACK_BYTES) / row_bytes + 1;
    if (s == CK_OK) s = ck_bytes_printf(&q, " LIMIT %llu", (unsigned long long)rows_max);
    if (s == CK_OK) s = ck_bytes_terminate(&q);
    if (s == CK_OK) l->query = ck_arena_strdup(&l->asking, q.p);
    ck_bytes_destroy(&q);
    return s == CK_OK && l->query ? CK_OK : ck_nomem(&l->call.error, l->mem, 1024);
}

static ck_status ask_for_all(pg_lookup *l) {
    const char *values[KEYS_MAX];
    for (uint32_t k = 0; k < l->key_count; k++) values[k] = l->params[k].p;
    return ck_pg_query(&l->pg, l->query, (int)l->key_count, values, &l->result, &l->call.error);
}

static ck_status ask(pg_lookup *l) {
    if (!ck_pg_is_open(&l->pg)) {
        ck_arena_reset_to(&l->asking, (ck_arena_mark){0});
        CK_TRY(ck_pg_connect(&l->pg, l->proc, &l->options, false, &l->call.error));
        ck_pg_table t;
        const char *name = l->options.table ? l->options.table : l->table.table;
        CK_TRY(ck_pg_table_read(&l->pg, &l->asking, name, l->table.schema, l->table.wanted, false, &t, &l->call.error));
        CK_TRY(make_query(l, &t));
    }
    ck_status s = ask_for_all(l);
    if (s != CK_DATA) return s;
    ck_error_reset(&l->call.error);
    for (uint32_t k = 0; k < l->key_count; k++)
        CK_TRY(ck_pg_blank_unfit(&l->pg, &l->asking, l->types[k], l->asked_count, &l->params[k], &l->call.error));
    return ask_for_all(l);
}

static void job_run(ck_io_job *j) {
    pg_lookup *l = (pg_lookup *)j;
    if (l->failing_since_us != INT64_MIN) {
        (void)poll(NULL, 0, (int)l->pause_ms);
        l->pause_ms = l->pause_ms * 2 < PAUSE_MAX_MS ? l->pause_ms * 2 : PAUSE_MAX_MS;
    }
    l->call.status = ask(l);
    if (l->call.status == CK_OK) {
        l->failing_since_us = INT64_MIN;
        return;
    }
    int64_t now = ck_mono_us(l->proc);
    bool first = l->failing_since_us == INT64_MIN && l->call.error.retriable;
    ck_pg_close(&l->pg);
    if (first) {
        l->failing_since_us = now;
        l->pause_ms = PAUSE_FIRST_MS;
        ck_log_line(l->proc->log, CK_LOG_WARN, "warning: %s: %.700s; trying again", l->table.table, l->call.error.msg);
    }
    if (l->call.error.retriable && now - l->failing_since_us < l->options.retry_ms * 1000)
        l->call.status = CK_AGAIN;
    else
        ck_error_prefix(&l->call.error, "table \"%s\": ", l->table.table);
}

static void submit(pg_lookup *l, ck_op_ctx *ctx) { ck_background_begin(&l->call, job_run, ctx); }

/* ---- keys of a batch ---- */

/* A key's text: each value's length, as 4 bytes, and the value. */
static ck_status print_keys(pg_lookup *l, const ck_key_spec *keys, const ck_batch *b, ck_op_ctx *ctx) {
    ck_bytes_clear(&l->text);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        for (uint32_t i = 0; i < keys->count; i++) {
            size_t head = l->text.n;
            ck_status s = ck_bytes_u32le(&l->text, 0);
            if (s == CK_OK) s = ck_pg_print(&l->values, keys->types[i], b->columns[keys->columns[i]], row, &l->text);
            if (s == CK_DATA) { /* the server has no such text: it is found nowhere */
                l->text.n = head + 4;
                s = ck_bytes_char(&l->text, 0);
            }
            if (s != CK_OK) return ck_nomem(ctx->error, l->mem, l->text.n);
            uint32_t n = (uint32_t)(l->text.n - head - 4);
            memcpy(l->text.p + head, &n, 4);
        }
        l->ends[k] = l->text.n;
    }
    return CK_OK;
}

static ck_view key_of_row(const pg_lookup *l, uint32_t k) {
    size_t from = k ? l->ends[k - 1] : 0;
    return (ck_view){l->text.p + from, l->ends[k] - from};
}

/* The key's values as one more element of each parameter's array. NULL stands for what cannot be sent. */
static ck_status add_params(pg_lookup *l, ck_view key) {
    for (uint32_t i = 0; i < l->key_count; i++) {
        uint32_t n;
        memcpy(&n, key.p, 4);
        ck_view v = {key.p + 4, n};
        key = (ck_view){v.p + n, key.n - 4 - n};
        CK_TRY(ck_bytes_char(&l->params[i], l->asked_count ? ',' : '{'));
        if (n == 1 && v.p[0] == 0) {
            CK_TRY(ck_bytes_str(&l->params[i], "NULL"));
            continue;
        }
        CK_TRY(ck_bytes_reserve(&l->params[i], 2 * v.n + 2));
        char *to = l->params[i].p + l->params[i].n, *at = to;
        *at++ = '"';
        for (size_t c = 0; c < v.n; c++) {
            if (v.p[c] == '"' || v.p[c] == '\\') *at++ = '\\';
            *at++ = v.p[c];
        }
        *at++ = '"';
        l->params[i].n += (size_t)(at - to);
    }
    return CK_OK;
}

/* Answers for the rows of the batch from what is kept; the others become the next question. */
static ck_status resolve(pg_lookup *l, const ck_batch *b, ck_op_ctx *ctx) {
    int64_t now = ck_op_now_us(ctx);
    l->asked_count = 0;
    for (uint32_t i = 0; i < l->key_count; i++) ck_bytes_clear(&l->params[i]);
    l->resolved = true;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        if (l->answers[k] && l->answers[k]->kept.at_us != CK_ANSWER_PENDING) continue;
        ck_view key = key_of_row(l, k);
        answer *a = ck_lookup_cache_find(&l->cache, key, now);
        l->answers[k] = a;
        if (a && a->kept.at_us != CK_ANSWER_PENDING) continue;
        l->resolved = false;
        if (a || l->asked_count == KEYS_A_QUERY) continue;
        a = ck_lookup_cache_ask(&l->cache, key, sizeof *a);
        if (!a || add_params(l, key) != CK_OK) return ck_nomem(ctx->error, l->mem, key.n);
        a->tail = &a->first;
        l->answers[k] = a;
        l->asked[l->asked_count++] = a;
    }
    for (uint32_t i = 0; l->asked_count && i < l->key_count; i++)
        if (ck_bytes_char(&l->params[i], '}') != CK_OK || ck_bytes_terminate(&l->params[i]) != CK_OK)
            return ck_nomem(ctx->error, l->mem, l->params[i].n);
    return CK_OK;
}

/* What the server has found, kept with the keys that were asked for. */
static ck_status keep(pg_lookup *l, ck_op_ctx *ctx) {
    const ck_pg_lib *lib = l->pg.lib;
    ck_arena *arena = ck_lookup_cache_arena(&l->cache);
    int n = lib->PQntuples(l->result);
    uint32_t width = l->schema->field_count;
    for (int i = 0; i < n; i++) {
        unsigned long at = strtoul(lib->PQgetvalue(l->result, i, 0), NULL, 10);
        if (at == 0 || at > l->asked_count) return ck_fail(ctx->error, CK_CORRUPT, "an answer to no question");
        found_row *r = ck_arena_zero(arena, sizeof *r + width * sizeof(ck_view));
        for (uint32_t c = 0; r && c < width; c++) {
            if (lib->PQgetisnull(l->result, i, (int)c + 1)) continue;
            size_t bytes = (size_t)lib->PQgetlength(l->result, i, (int)c + 1);
            const char *copy = ck_arena_strndup(arena, lib->PQgetvalue(l->result, i, (int)c + 1), bytes);
            if (!copy) return ck_nomem(ctx->error, l->mem, bytes);
            r->values[c] = (ck_view){copy, bytes};
        }
        if (!r) return ck_nomem(ctx->error, l->mem, width * sizeof(ck_view));
        *l->asked[at - 1]->tail = r;
        l->asked[at - 1]->tail = &r->next;
    }
    int64_t now = ck_op_now_us(ctx);
    for (uint32_t i = 0; i < l->asked_count; i++) l->asked[i]->kept.at_us = now;
    lib->PQclear(l->result);
    l->result = NULL;
    return ck_lookup_cache_check(&l->cache, l->table.table, "raise it, or write a plain JOIN", ctx->error);
}

static ck_status take_answer(pg_lookup *l, ck_op_ctx *ctx) {
    if (!ck_background_ended(&l->call)) return CK_AGAIN;
    if (l->call.status == CK_OK) return keep(l, ctx);
    if (l->call.status == CK_AGAIN) {
        submit(l, ctx);
        return CK_AGAIN;
    }
    *ctx->error = l->call.error;
    return l->call.status;
}

/* ---- rows ---- */

static ck_status emit_row(pg_lookup *l, const found_row *r, uint32_t k, ck_op_ctx *ctx) {
    for (uint32_t c = 0; c < l->schema->field_count; c++) {
        const ck_field *f = &l->schema->fields[c];
        ck_field found = {f->name, f->type, l->table.schema->fields[l->table.columns[c]].nullable};
        ck_status s = ck_pg_build(&l->values, &found, r->values[c], NULL, &l->builder.columns[c]);
        if (s == CK_NOMEM) return ck_nomem(ctx->error, l->mem, r->values[c].n);
        if (s == CK_OK) continue;
        ck_batch_builder_undo(&l->builder);
        if (l->options.on_error != CK_ON_ERROR_FAIL) {
            ck_op_count(ctx, "bad_rows", 1);
            return CK_OK;
        }
        ck_fail(ctx->error, CK_DATA, "table \"%s\", column \"%s\" of a row that was looked up: %s", l->table.table,
                f->name, l->values.why);
        ctx->error->fatal = true;
        return CK_DATA;
    }
    l->key_of[l->builder.row_count] = (uint16_t)k;
    ck_batch_builder_row(&l->builder, 1);
    return CK_OK;
}

static ck_status gather(pg_lookup *l, const ck_batch *b, ck_op_ctx *ctx) {
    while (l->at < b->sel_count && l->builder.row_count < l->builder.capacity) {
        if (!l->begun) l->row = l->answers[l->at]->first;
        l->begun = l->row != NULL;
        if (!l->row) {
            l->at++;
            continue;
        }
        CK_TRY(emit_row(l, l->row, l->at, ctx));
        l->row = l->row->next;
        if (!l->row) l->at++, l->begun = false;
    }
    return CK_OK;
}

static ck_status begin(pg_lookup *l, const ck_key_spec *keys, const ck_batch *b, ck_op_ctx *ctx) {
    ck_lookup_cache_turn_over(&l->cache);
    CK_TRY(print_keys(l, keys, b, ctx));
    memset(l->answers, 0, b->sel_count * sizeof(answer *));
    l->at = 0;
    l->begun = false;
    l->finding = true;
    l->resolved = false;
    return CK_OK;
}

static ck_status lookup_find(void *self, const ck_key_spec *keys, const ck_batch *b, ck_lookup_found *out,
                             ck_op_ctx *ctx) {
    pg_lookup *l = self;
    ck_batch_unref(&l->out);
    if (!l->finding) CK_TRY(begin(l, keys, b, ctx));
    while (!l->resolved) {
        if (l->call.running) CK_TRY(take_answer(l, ctx));
        CK_TRY(resolve(l, b, ctx));
        if (l->resolved) break;
        submit(l, ctx);
        return CK_AGAIN;
    }
    CK_TRY(gather(l, b, ctx));
    uint32_t n = l->builder.row_count;
    l->finding = l->at < b->sel_count;
    if (n && !(l->out = ck_batch_builder_finish(&l->builder))) return ck_nomem(ctx->error, l->mem, n);
    *out = (ck_lookup_found){l->out, l->key_of, n, l->finding};
    return CK_OK;
}

static void lookup_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    lookup_free(self);
}

const ck_lookup_vtbl ck_lookup_postgres = {
    .struct_bytes = sizeof(ck_lookup_vtbl), .create = lookup_create, .find = lookup_find, .close = lookup_close};
