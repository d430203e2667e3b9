/* The append mode of the `file` sink: rows go to parts in a directory. With checkpoints a part is staged under a hidden
 * name, durable before the barrier is acknowledged, and gets its name from the committer; without them it gets its name
 * when it is full or the job ends. Nothing that looks whole ever appears before it is.
 *
 *   rows -> text -> staged file -> [barrier] committable (state) -> manifest -> committer: rename
 */
#include "connector/file/sink_int.h"
#include "os/clock.h"
#include "os/random.h"

typedef struct closed_part { /* of the epoch under way */
    ck_part part;
    struct closed_part *next;
} closed_part;

typedef struct append_sink {
    ck_file_sink base;
    closed_part *closed, **closed_tail; /* waiting for the barrier that will carry them */
    uint32_t closed_count;
    uint32_t nonce; /* of this instance, in staged names */
    uint64_t next;  /* number of the next staged file, or of the next part where nothing commits */
} append_sink;

static void drop_closed(append_sink *s) {
    while (s->closed) {
        closed_part *c = s->closed;
        s->closed = c->next;
        ck_free(s->base.mem, c->part.path, strlen(c->part.path) + 1);
        ck_free(s->base.mem, c, sizeof *c);
    }
    s->closed_tail = &s->closed;
    s->closed_count = 0;
}

static void append_free(append_sink *s) {
    drop_closed(s);
    ck_mem mem = s->base.mem;
    ck_file_sink_destroy(&s->base);
    ck_free(mem, s, sizeof *s);
}

ck_status ck_append_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    append_sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->closed_tail = &s->closed;
    s->base.mode = &ck_append_vtbl;
    ck_status status = ck_file_sink_init(&s->base, spec, mem, err);
    if (status == CK_OK)
        *self = s;
    else
        append_free(s);
    return status;
}

static ck_status append_open(void *self, ck_op_ctx *ctx) {
    append_sink *s = self;
    s->nonce = (uint32_t)ck_random_u64(ctx->proc);
    /* Without checkpoints the UUID is this run's own; at least once continues under an old one and must not meet its
     * parts again. */
    if (!s->base.commits && ctx->settings->checkpoints) s->next = (uint64_t)ck_wall_us(ctx->proc);
    return ck_part_writer_init(&s->base.writer, ctx, s->base.mem, s->base.dir);
}

static ck_status begin_part(append_sink *s, ck_op_ctx *ctx) {
    if (s->base.part.path) return CK_OK;
    const char *dir = s->base.dir, *slash = dir[strlen(dir) - 1] == '/' ? "" : "/", *path;
    if (s->base.commits)
        path = ck_arena_printf(ctx->arena, "%s%s" CK_STAGED_PREFIX "%s-%u-%08x-%llu.%s", dir, slash, s->base.uuid,
                               s->base.subtask, s->nonce, (unsigned long long)s->next, s->base.options.format);
    else
        path = ck_sink_part_path(ctx->arena, dir, s->base.uuid, s->base.subtask, s->next, s->base.options.format);
    if (!path) return ck_nomem(ctx->error, ctx->mem, strlen(dir));
    s->next++;
    return ck_file_sink_begin(&s->base, path, ctx);
}

/* The open part is complete: its rest is written, and it becomes durable. */
static ck_status close_part(append_sink *s, ck_op_ctx *ctx) {
    if (!s->base.part.path) return CK_OK;
    CK_TRY(ck_file_sink_hand_over(&s->base, true));
    CK_TRY(ck_part_writer_finish(&s->base.writer, false));
    if (s->base.commits) {
        closed_part *c = ck_alloc_zero(s->base.mem, sizeof *c);
        size_t n = strlen(s->base.part.path) + 1;
        char *path = c ? ck_alloc(s->base.mem, n) : NULL;
        if (!path) {
            if (c) ck_free(s->base.mem, c, sizeof *c);
            return ck_nomem(ctx->error, s->base.mem, n);
        }
        memcpy(path, s->base.part.path, n);
        c->part = (ck_part){path, s->base.part.bytes, s->base.part.crc32c};
        *s->closed_tail = c;
        s->closed_tail = &c->next;
        s->closed_count++;
    }
    s->base.part = (ck_part){0};
    return CK_OK;
}

static bool may_roll(const append_sink *s) { /* the last part of an epoch takes the rest, however large */
    return !s->base.commits || s->closed_count < CK_PARTS_OF_CHECKPOINT - 1;
}

static ck_status append_batch(append_sink *s, ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(ck_part_writer_room(&s->base.writer));
    CK_TRY(ck_sink_check_nulls(&s->base.table, b, ctx->error));
    CK_TRY(begin_part(s, ctx));
    size_t from = s->base.text.n;
    if (ck_encoder_rows(s->base.encoder, b, NULL, &s->base.text, NULL) != CK_OK)
        return ck_nomem(ctx->error, s->base.mem, s->base.text.n);
    ck_file_sink_count(&s->base, from);
    ck_op_count(ctx, "rows_out", b->sel_count);
    if (s->base.part.bytes >= (uint64_t)s->base.options.part_bytes && may_roll(s)) return close_part(s, ctx);
    return ck_file_sink_hand_over(&s->base, false);
}

/* Where checkpoints are on, the final one commits; but a disk that is full is said here. */
static ck_status append_end(append_sink *s, ck_op_ctx *ctx) {
    CK_TRY(close_part(s, ctx));
    return ck_part_writer_drained(&s->base.writer);
}

static ck_status append_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    if (ev->kind == CK_EVENT_BATCH) return append_batch(self, ev->batch, ctx);
    if (ev->kind == CK_EVENT_END) return append_end(self, ctx);
    return CK_OK;
}

static ck_status put_committable(append_sink *s, const ck_part *p, uint64_t checkpoint, uint32_t k, ck_op_ctx *ctx) {
    ck_sink_payload payload = {.staged = p->path, .bytes = p->bytes, .crc32c = p->crc32c};
    ck_committable c = {.checkpoint = checkpoint};
    c.name = ck_sink_part_path(ctx->arena, s->base.dir, s->base.uuid, s->base.subtask,
                               checkpoint * CK_PARTS_OF_CHECKPOINT + k, s->base.options.format);
    if (!c.name) return ck_nomem(ctx->error, ctx->mem, strlen(s->base.dir));
    CK_TRY(ck_sink_payload_print(ctx->arena, &payload, &c.payload, ctx->error));
    return ck_commits_put(ctx->state, &c, ctx->error);
}

/* Everything up to the barrier is on its way to the disk; the acknowledgement waits until it is there. */
static ck_status append_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    append_sink *s = self;
    ck_status status = ck_part_writer_room(&s->base.writer);
    if (status != CK_OK && status != CK_AGAIN) return status;
    CK_TRY(close_part(s, ctx));
    uint32_t k = 0;
    for (const closed_part *c = s->closed; c; c = c->next) CK_TRY(put_committable(s, &c->part, checkpoint, k++, ctx));
    drop_closed(s);
    ck_op_hold_ack(ctx);
    status = ck_part_writer_release(&s->base.writer, checkpoint);
    if (status != CK_OK) ck_op_release_ack(ctx, checkpoint, status, ctx->error);
    return status;
}

static ck_status append_on_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    append_sink *s = self;
    return s->base.commits ? ck_commits_forget(ctx->state, checkpoint, ctx->error) : CK_OK;
}

static void append_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    append_free(self);
}

const ck_operator_vtbl ck_append_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = append_open,
    .on_event = append_on_event,
    .pre_snapshot = append_pre_snapshot,
    .on_committed = append_on_committed,
    .close = append_close,
};
