/* The `print` sink: rows as text to standard output (or another descriptor), as the result of a bare SELECT or as a
 * table of its own. Changes carry a prefix. When the reader of a pipe has gone, the sink closes its input quietly. */
#include "connector/connectors.h"

#include <yyjson.h>

#include "connector/print/fd_writer.h"
#include "connector/table.h"
#include "format/encoder.h"

enum { RETRY_US = 20000 };

typedef struct print_op {
    ck_mem mem;
    ck_arena arena;
    ck_sink_table table;
    ck_encoder *encoder;
    bool header_due;
    bool kinds;
    int fd;
    ck_fd_writer writer;
    ck_bytes text;    /* of the batch in hand; empty: not encoded yet */
    uint8_t *kind_of; /* CK_BATCH_ROWS_MAX */
} print_op;

static void print_free(print_op *p) {
    ck_fd_writer_destroy(&p->writer);
    ck_bytes_destroy(&p->text);
    ck_encoder_free(p->encoder);
    if (p->kind_of) ck_free(p->mem, p->kind_of, CK_BATCH_ROWS_MAX);
    ck_arena_destroy(&p->arena);
    ck_free(p->mem, p, sizeof *p);
}

static ck_status change_style(const ck_op_spec *spec, yyjson_val *root, ck_change_style *out, ck_error *err) {
    const char *style = yyjson_get_str(yyjson_obj_get(root, "changes"));
    *out = spec->inputs[0].mode == CK_MODE_APPEND ? CK_CHANGES_NONE : CK_CHANGES_PREFIX;
    if (!style) return CK_OK;
    if (strcmp(style, "none") == 0)
        *out = CK_CHANGES_NONE;
    else if (strcmp(style, "prefix") == 0)
        *out = CK_CHANGES_PREFIX;
    else if (strcmp(style, "field") == 0)
        *out = CK_CHANGES_FIELD;
    else
        return ck_fail(err, CK_INVALID, "%s (%s): \"changes\" is \"%s\", not none, prefix or field", spec->type,
                       spec->uid, style);
    return CK_OK;
}

static ck_status print_init(print_op *p, const ck_op_spec *spec, ck_error *err) {
    yyjson_val *root;
    ck_encoder_spec e = {.delimiter = ','};
    CK_TRY(ck_sink_table_read(&p->arena, spec, &p->table, &root, err));
    CK_TRY(change_style(spec, root, &e.changes, err));
    yyjson_val *fd = yyjson_obj_get(root, "fd");
    if (fd && !(yyjson_is_uint(fd) && yyjson_get_uint(fd) < 1024))
        return ck_fail(err, CK_INVALID, "%s (%s): \"fd\" is not a descriptor", spec->type, spec->uid);
    p->fd = fd ? (int)yyjson_get_uint(fd) : 1;
    const char *format = yyjson_get_str(yyjson_obj_get(root, "format"));
    e.format = format ? format : ck_option_text(&p->table.options, "format", "json");
    e.schema = p->table.schema;
    e.header = p->header_due = strcmp(e.format, "csv") == 0;
    p->kinds = e.changes != CK_CHANGES_NONE;
    if (p->kinds && !(p->kind_of = ck_alloc(p->mem, CK_BATCH_ROWS_MAX)))
        return ck_nomem(err, p->mem, CK_BATCH_ROWS_MAX);
    return ck_encoder_new(&e, p->mem, &p->encoder, err);
}

static ck_status print_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    print_op *p = ck_alloc_zero(mem, sizeof *p);
    if (!p) return ck_nomem(err, mem, sizeof *p);
    p->mem = mem;
    ck_arena_init(&p->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&p->text, mem, SIZE_MAX);
    ck_status s = print_init(p, spec, err);
    if (s == CK_OK)
        *self = p;
    else
        print_free(p);
    return s;
}

static ck_status print_open(void *self, ck_op_ctx *ctx) {
    print_op *p = self;
    ck_fd_writer_init(&p->writer, ctx, p->mem, p->fd);
    return CK_OK;
}

static ck_status header(print_op *p, ck_op_ctx *ctx) {
    if (!p->header_due) return CK_OK;
    p->header_due = false;
    if (ck_encoder_header(p->encoder, &p->text) != CK_OK) return ck_nomem(ctx->error, ctx->mem, p->text.n);
    return CK_OK;
}

static ck_status hand_over(print_op *p, ck_op_ctx *ctx) {
    if (p->text.n == 0) return CK_OK;
    ck_status s = ck_fd_writer_append(&p->writer, ck_bytes_as_view(&p->text));
    if (s == CK_AGAIN) return s; /* the same event comes again; the text is kept */
    ck_bytes_clear(&p->text);
    if (s != CK_CLOSED) return s;
    ck_op_close_input(ctx, 0);
    return CK_OK;
}

static ck_status print_batch(print_op *p, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    if (p->text.n == 0) {
        CK_TRY(ck_sink_check_nulls(&p->table, b, ctx->error));
        CK_TRY(header(p, ctx));
        if (p->kinds) CK_TRY(ck_change_kinds(b, p->table.key, p->table.key_count, p->kind_of));
        if (ck_encoder_rows(p->encoder, b, p->kinds ? p->kind_of : NULL, &p->text, NULL) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, p->text.n);
        ck_op_count(ctx, "rows_out", b->sel_count);
    }
    return hand_over(p, ctx);
}

static ck_status print_end(print_op *p, ck_op_ctx *ctx) {
    CK_TRY(header(p, ctx));
    CK_TRY(hand_over(p, ctx));
    ck_status s = ck_fd_writer_drain(&p->writer);
    return s == CK_CLOSED ? CK_OK : s;
}

static ck_status print_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) return print_batch(self, ev->batch, ctx);
    if (ev->kind == CK_EVENT_END) return print_end(self, ctx);
    return CK_OK;
}

/* A job that gave up on a slow reader is tried again without waiting for more rows. */
static int64_t print_next_wake(void *self, ck_op_ctx *ctx) {
    print_op *p = self;
    return ck_fd_writer_pending(&p->writer) ? ck_op_now_us(ctx) + RETRY_US : INT64_MAX;
}

static ck_status print_on_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    (void)now_us;
    print_op *p = self;
    ck_status s = ck_fd_writer_drain(&p->writer);
    if (s == CK_CLOSED) ck_op_close_input(ctx, 0);
    return s == CK_AGAIN || s == CK_CLOSED ? CK_OK : s;
}

static void print_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    print_free(self);
}

static const ck_operator_vtbl print_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = print_open,
    .on_event = print_on_event,
    .next_wake_us = print_next_wake,
    .on_wake = print_on_wake,
    .close = print_close,
};

const ck_op_desc ck_op_sink_print = {.type = "sink.print", .op = &print_vtbl, .create = print_create};

/* ---- the connector ---- */

static const ck_option_desc print_options[] = {
    {"format", "json|csv", "json", "how a row is written"},
};

static bool takes_anything(const ck_table_decl *t) {
    (void)t;
    return true;
}

static ck_guarantee print_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t;
    (void)checkpoints;
    *why = "rows printed before a crash are printed again after it";
    return CK_AT_LEAST_ONCE;
}

const ck_connector_desc ck_connector_print = {
    .name = "print",
    .options = print_options,
    .option_count = CK_ARRAY_COUNT(print_options),
    .sink_type = "sink.print",
    .accepts_changes = takes_anything,
    .accepts_upserts = takes_anything,
    .guarantee = print_guarantee,
};
