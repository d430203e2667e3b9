/* Rows of the sink that the server refuses: what they were, and why. See pg_int.h. */
#include <stdio.h>

#include "base/cursor.h"
#include "connector/postgres/pg_int.h"

enum { TEXT_BYTES_MAX = 1 << 30, REASON_BYTES_MAX = 511 };

ck_status ck_pg_letters_init(ck_pg_letters *l, const ck_pg_options *o, const ck_sink_table *t, ck_arena *a, ck_mem mem,
                             uint32_t batch_rows, ck_error *err) {
    const char *where = ck_arena_printf(a, "table \"%s\"", t->table ? t->table : "");
    l->mem = mem;
    if (!where) return ck_nomem(err, a->mem, strlen("table"));
    CK_TRY(ck_sink_rejects_init(&l->rejects, o->on_error, where, a, mem, batch_rows, err));
    if (o->on_error != CK_ON_ERROR_DEAD_LETTER) return CK_OK;
    l->on = true;
    ck_bytes_init(&l->batch, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&l->gathered, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&l->sending, mem, TEXT_BYTES_MAX);
    ck_bytes_init(&l->refused, mem, TEXT_BYTES_MAX);
    if (!(l->ends = ck_alloc(mem, CK_BATCH_ROWS_MAX * sizeof *l->ends)))
        return ck_nomem(err, mem, CK_BATCH_ROWS_MAX * sizeof *l->ends);
    return ck_encoder_new(&(ck_encoder_spec){.format = "json", .schema = t->schema}, mem, &l->encoder, err);
}

void ck_pg_letters_destroy(ck_pg_letters *l) {
    ck_sink_rejects_destroy(&l->rejects);
    if (!l->on) return;
    ck_encoder_free(l->encoder);
    if (l->ends) ck_free(l->mem, l->ends, CK_BATCH_ROWS_MAX * sizeof *l->ends);
    ck_bytes_destroy(&l->batch);
    ck_bytes_destroy(&l->gathered);
    ck_bytes_destroy(&l->sending);
    ck_bytes_destroy(&l->refused);
}

/* ---- rows become lines ---- */

ck_status ck_pg_letters_begin(ck_pg_letters *l, const ck_batch *b, const uint8_t *kinds) {
    if (!l->on) return CK_OK;
    ck_bytes_clear(&l->batch);
    return ck_encoder_rows(l->encoder, b, kinds, &l->batch, l->ends);
}

/* With its line's end. */
static ck_view row_text(const ck_pg_letters *l, uint32_t k) {
    size_t from = k ? l->ends[k - 1] : 0;
    return (ck_view){l->batch.p + from, l->ends[k] - from};
}

ck_view ck_pg_letters_row(const ck_pg_letters *l, uint32_t k) {
    return l->on ? row_text(l, k) : (ck_view){0};
}

ck_status ck_pg_letters_keep(ck_pg_letters *l, uint32_t k) {
    return l->on ? ck_bytes_view(&l->gathered, row_text(l, k)) : CK_OK;
}

static ck_status reject(ck_pg_letters *l, ck_view raw, const char *why, ck_op_ctx *ctx) {
    ck_status s = ck_sink_reject(&l->rejects, raw, why, ctx);
    if (s != CK_FULL) return s;
    CK_TRY(ck_sink_rejects_emit(&l->rejects, ctx));
    return ck_sink_reject(&l->rejects, raw, why, ctx);
}

ck_status ck_pg_letters_reject(ck_pg_letters *l, uint32_t k, const char *why, ck_op_ctx *ctx) {
    ck_view raw = l->on ? row_text(l, k) : (ck_view){0};
    if (raw.n) raw.n--;
    return reject(l, raw, why, ctx);
}

/* ---- lines are sent ---- */

void ck_pg_letters_send(ck_pg_letters *l) {
    ck_bytes empty = l->sending;
    l->sending = l->gathered;
    l->gathered = empty;
}

ck_status ck_pg_refused_add(ck_bytes *refused, uint32_t line, const char *reason) {
    size_t n = strlen(reason);
    if (n > REASON_BYTES_MAX) n = REASON_BYTES_MAX;
    while (n && reason[n] && ((uint8_t)reason[n] & 0xC0) == 0x80) n--; /* not in the middle of a character */
    CK_TRY(ck_bytes_u32le(refused, line));
    CK_TRY(ck_bytes_u32le(refused, (uint32_t)n));
    return ck_bytes_append(refused, reason, n);
}

/* Takes a row off the rows; refused lines come in order, so they are walked once. */
static ck_view next_row(ck_view *rows) {
    const char *end = memchr(rows->p, '\n', rows->n);
    CK_ASSERT(end);
    ck_view row = {rows->p, (size_t)(end - rows->p)};
    *rows = (ck_view){end + 1, rows->n - row.n - 1};
    return row;
}

ck_status ck_pg_refused_each(const ck_bytes *refused, ck_view rows, ck_pg_refused_row take, void *arg, ck_error *err) {
    ck_cursor c = ck_cursor_of(refused->p, refused->n);
    ck_view row = {0}, why;
    uint32_t line, n, taken = 0;
    while (ck_cursor_u32le(&c, &line) && ck_cursor_u32le(&c, &n) && ck_cursor_take(&c, n, &why)) {
        char reason[REASON_BYTES_MAX + 1];
        (void)snprintf(reason, sizeof reason, "%.*s", (int)why.n, why.p);
        for (; taken <= line; taken++) row = next_row(&rows);
        CK_TRY(take(arg, row, reason, err));
    }
    return CK_OK;
}

typedef struct rejecting {
    ck_pg_letters *letters;
    ck_op_ctx *ctx;
} rejecting;

static ck_status reject_row(void *arg, ck_view row, const char *reason, ck_error *err) {
    const rejecting *r = arg;
    (void)err; /* the context's */
    return reject(r->letters, row, reason, r->ctx);
}

ck_status ck_pg_letters_sent(ck_pg_letters *l, ck_op_ctx *ctx) {
    if (!l->on) return CK_OK;
    CK_TRY(ck_pg_refused_each(&l->refused, ck_bytes_as_view(&l->sending), reject_row, &(rejecting){l, ctx}, ctx->error));
    ck_bytes_clear(&l->sending);
    ck_bytes_clear(&l->refused);
    return ck_sink_rejects_emit(&l->rejects, ctx);
}
