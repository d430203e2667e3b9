/* See write_ahead.h. */
#include "connector/write_ahead.h"

#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/cursor.h"
#include "base/json.h"
#include "connector/table.h"
#include "os/random.h"

enum { HAND_OVER_BYTES = 256 << 10, CHUNK_BYTES = 256 << 10, HEAD_BYTES = 8, ROW_BYTES_MAX = 1 << 30 };

#define FOLDER "write-ahead"

/* ---- writing ---- */

ck_status ck_write_ahead_init(ck_write_ahead *w, ck_op_ctx *ctx, ck_mem mem) {
    const char *dir = ctx->settings->checkpoint_dir;
    CK_ASSERT(dir);
    *w = (ck_write_ahead){.mem = mem, .dir_bytes = strlen(dir) + sizeof "/" FOLDER};
    if (!(w->dir = ck_alloc(mem, w->dir_bytes))) return ck_nomem(ctx->error, mem, w->dir_bytes);
    snprintf(w->dir, w->dir_bytes, "%s/" FOLDER, dir);
    w->nonce = (uint32_t)ck_random_u64(ctx->proc);
    ck_bytes_init(&w->rows, mem, SIZE_MAX);
    return ck_part_writer_init_private(&w->writer, ctx, mem, w->dir);
}

static void forget_path(ck_write_ahead *w) {
    if (w->path) ck_free(w->mem, w->path, strlen(w->path) + 1);
    w->path = NULL;
}

void ck_write_ahead_destroy(ck_write_ahead *w) {
    ck_part_writer_destroy(&w->writer);
    ck_bytes_destroy(&w->rows);
    forget_path(w);
    if (w->dir) ck_free(w->mem, w->dir, w->dir_bytes);
    w->dir = NULL;
}

ck_status ck_write_ahead_room(ck_write_ahead *w) { return ck_part_writer_room(&w->writer); }

static ck_status begin(ck_write_ahead *w, ck_op_ctx *ctx) {
    if (w->path) return CK_OK;
    int n = snprintf(NULL, 0, "%s/wal-%s-%016llx-%u-%08x-%llu.rows", w->dir, ctx->settings->job_uuid,
                     (unsigned long long)ctx->op_id, ctx->subtask, w->nonce, (unsigned long long)w->seq);
    if (!(w->path = ck_alloc(w->mem, (size_t)n + 1))) return ck_nomem(ctx->error, w->mem, (size_t)n + 1);
    snprintf(w->path, (size_t)n + 1, "%s/wal-%s-%016llx-%u-%08x-%llu.rows", w->dir, ctx->settings->job_uuid,
             (unsigned long long)ctx->op_id, ctx->subtask, w->nonce, (unsigned long long)w->seq);
    w->seq++;
    w->bytes = w->row_count = 0;
    w->crc32c = 0;
    return CK_OK;
}

ck_status ck_write_ahead_add(ck_write_ahead *w, ck_view key, ck_view value, ck_op_ctx *ctx) {
    if (key.n >= ROW_BYTES_MAX || value.n >= ROW_BYTES_MAX)
        return ck_fail(ctx->error, CK_DATA, "%s: a row of %zu bytes is too long to be written", ctx->uid,
                       key.n + value.n);
    CK_TRY(begin(w, ctx));
    size_t from = w->rows.n;
    ck_status s = ck_bytes_reserve(&w->rows, HEAD_BYTES + key.n + value.n);
    if (s == CK_OK) s = ck_bytes_u32le(&w->rows, key.p ? (uint32_t)key.n + 1 : 0);
    if (s == CK_OK) s = ck_bytes_u32le(&w->rows, value.p ? (uint32_t)value.n + 1 : 0);
    if (s == CK_OK && key.n) s = ck_bytes_append(&w->rows, key.p, key.n);
    if (s == CK_OK && value.n) s = ck_bytes_append(&w->rows, value.p, value.n);
    if (s != CK_OK) return ck_nomem(ctx->error, w->mem, HEAD_BYTES + key.n + value.n);
    w->bytes += w->rows.n - from;
    w->row_count++;
    return CK_OK;
}

static ck_status hand_over(ck_write_ahead *w) {
    w->crc32c = ck_crc32c(w->crc32c, w->rows.p, w->rows.n);
    return ck_part_writer_write(&w->writer, w->path, &w->rows);
}

ck_status ck_write_ahead_flush(ck_write_ahead *w, ck_op_ctx *ctx) {
    (void)ctx;
    return w->rows.n < HAND_OVER_BYTES ? CK_OK : hand_over(w);
}

static ck_status payload_print(const ck_write_ahead *w, const char **out, ck_op_ctx *ctx) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(ctx->arena, &doc, ctx->error));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    bool ok = yyjson_mut_obj_add_str(doc, root, "file", w->path) &&
              yyjson_mut_obj_add_uint(doc, root, "bytes", w->bytes) &&
              yyjson_mut_obj_add_uint(doc, root, "crc32c", w->crc32c) &&
              yyjson_mut_obj_add_uint(doc, root, "rows", w->row_count) &&
              yyjson_mut_obj_add_str(doc, root, "job", ctx->settings->job_uuid) &&
              yyjson_mut_obj_add_uint(doc, root, "op", ctx->op_id) &&
              yyjson_mut_obj_add_uint(doc, root, "writer", ctx->subtask);
    if (!ok) return ck_nomem(ctx->error, ctx->mem, w->dir_bytes);
    ck_view text;
    CK_TRY(ck_json_write(ctx->arena, doc, &text, ctx->error));
    *out = text.p;
    return CK_OK;
}

static ck_status put_committable(ck_write_ahead *w, uint64_t checkpoint, ck_op_ctx *ctx) {
    ck_committable c = {.checkpoint = checkpoint};
    const char *name = strrchr(w->path, '/') + 1;
    CK_TRY(payload_print(w, &c.payload, ctx));
    c.name = name;
    return ck_commits_put(ctx->state, &c, ctx->error);
}

ck_status ck_write_ahead_prepare(ck_write_ahead *w, uint64_t checkpoint, ck_op_ctx *ctx) {
    ck_status s = ck_write_ahead_room(w);
    if (s != CK_OK && s != CK_AGAIN) return s;
    if (!w->path) return CK_OK;
    if (w->rows.n) CK_TRY(hand_over(w));
    CK_TRY(ck_part_writer_finish(&w->writer, false));
    CK_TRY(put_committable(w, checkpoint, ctx));
    forget_path(w);
    ck_op_hold_ack(ctx);
    s = ck_part_writer_release(&w->writer, checkpoint);
    if (s != CK_OK) ck_op_release_ack(ctx, checkpoint, s, ctx->error);
    return s;
}

ck_status ck_write_ahead_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                               ck_error *err) {
    ck_sink_table t;
    CK_TRY(ck_sink_table_read(a, spec, &t, NULL, err));
    *slots = ck_commit_slot();
    *count = strcmp(ck_option_text(&t.options, "delivery", "exactly_once"), "exactly_once") == 0;
    return CK_OK;
}

/* ---- committing ---- */

ck_status ck_write_ahead_parse(ck_arena *a, const char *checkpoint_dir, const ck_committable *c,
                               ck_write_ahead_file *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(c->payload), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *file = yyjson_obj_get(root, "file"),
               *bytes = yyjson_obj_get(root, "bytes"), *crc = yyjson_obj_get(root, "crc32c"),
               *rows = yyjson_obj_get(root, "rows"), *job = yyjson_obj_get(root, "job"),
               *op = yyjson_obj_get(root, "op"), *writer = yyjson_obj_get(root, "writer");
    bool ok = yyjson_is_str(file) && strlen(yyjson_get_str(file)) == yyjson_get_len(file) && yyjson_is_uint(bytes) &&
              yyjson_is_uint(crc) && yyjson_get_uint(crc) <= UINT32_MAX && yyjson_is_uint(rows) && yyjson_is_str(job) &&
              strlen(yyjson_get_str(job)) == yyjson_get_len(job) && yyjson_is_uint(op) && yyjson_is_uint(writer) &&
              yyjson_get_uint(writer) <= UINT32_MAX;
    if (!ok) return ck_fail(err, CK_CORRUPT, "this is no committable of rows written ahead: %.200s", c->payload);
    *out = (ck_write_ahead_file){.path = yyjson_get_str(file),
                                 .bytes = yyjson_get_uint(bytes),
                                 .rows = yyjson_get_uint(rows),
                                 .crc32c = (uint32_t)yyjson_get_uint(crc),
                                 .job = yyjson_get_str(job),
                                 .op_id = yyjson_get_uint(op),
                                 .writer = (uint32_t)yyjson_get_uint(writer)};
    const char *base = strrchr(out->path, '/');
    out->here = ck_arena_printf(a, "%s/" FOLDER "/%s", checkpoint_dir, base ? base + 1 : out->path);
    return out->here ? CK_OK : ck_nomem(err, a->mem, strlen(out->path));
}

typedef struct reading {
    const ck_write_ahead_file *file;
    ck_file *f;
    ck_bytes text; /* read, not given out: from `at` on */
    size_t at;
    uint64_t offset, rows;
    uint32_t crc32c;
} reading;

static ck_status damaged(const reading *r, const char *why, ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "%s is not what was written ahead: %s", r->file->path, why);
}

/* At least n bytes from r->at on, or CK_CORRUPT. */
static ck_status want(reading *r, size_t n, ck_error *err) {
    if (r->text.n - r->at >= n) return CK_OK;
    if (n - (r->text.n - r->at) > r->file->bytes - r->offset) return damaged(r, "it ends in the middle of a row", err);
    if (r->text.n) memmove(r->text.p, r->text.p + r->at, r->text.n - r->at);
    r->text.n -= r->at;
    r->at = 0;
    while (r->text.n < n) {
        uint64_t left = r->file->bytes - r->offset;
        size_t chunk = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES, got;
        if (ck_bytes_reserve(&r->text, chunk) != CK_OK) return ck_nomem(err, r->text.mem, chunk);
        char *to = r->text.p + r->text.n;
        CK_TRY(r->f->fs->pread(r->f, to, chunk, r->offset, &got, err));
        if (got < chunk) return damaged(r, "it is shorter", err);
        r->crc32c = ck_crc32c(r->crc32c, to, got);
        r->offset += got;
        r->text.n += got;
    }
    return CK_OK;
}

static ck_status next_row(reading *r, ck_view *key, ck_view *value, ck_error *err) {
    CK_TRY(want(r, HEAD_BYTES, err));
    ck_cursor c = {(const uint8_t *)r->text.p + r->at, HEAD_BYTES};
    uint32_t k = 0, v = 0;
    bool ok = ck_cursor_u32le(&c, &k) && ck_cursor_u32le(&c, &v);
    if (!ok || k > ROW_BYTES_MAX || v > ROW_BYTES_MAX) return damaged(r, "a row's length is impossible", err);
    size_t key_n = k ? k - 1 : 0, value_n = v ? v - 1 : 0;
    CK_TRY(want(r, HEAD_BYTES + key_n + value_n, err));
    const char *p = r->text.p + r->at + HEAD_BYTES;
    *key = (ck_view){k ? p : NULL, key_n};
    *value = (ck_view){v ? p + key_n : NULL, value_n};
    r->at += HEAD_BYTES + key_n + value_n;
    r->rows++;
    return CK_OK;
}

static ck_status read_rows(reading *r, ck_write_ahead_row row, void *arg, ck_error *err) {
    while (r->offset < r->file->bytes || r->at < r->text.n) {
        ck_view key, value;
        CK_TRY(next_row(r, &key, &value, err));
        CK_TRY(row(arg, key, value, err));
    }
    if (r->crc32c != r->file->crc32c || r->rows != r->file->rows) return damaged(r, "its checksum differs", err);
    return CK_OK;
}

ck_status ck_write_ahead_read(ck_proc *proc, ck_mem mem, const ck_write_ahead_file *f, ck_write_ahead_row row,
                              void *arg, ck_error *err) {
    reading r = {.file = f};
    ck_status s = proc->fs->open(proc->fs, f->here, CK_OPEN_READ, &r.f, err);
    if (s == CK_NOTFOUND) s = proc->fs->open(proc->fs, f->path, CK_OPEN_READ, &r.f, err);
    if (s == CK_NOTFOUND) return ck_fail(err, CK_CORRUPT, "%s is lost, and its rows are not with the server", f->path);
    if (s != CK_OK) return s;
    ck_bytes_init(&r.text, mem, SIZE_MAX);
    s = read_rows(&r, row, arg, err);
    ck_bytes_destroy(&r.text);
    proc->fs->close(r.f);
    return s;
}

static ck_status unlink_file(ck_proc *proc, const char *path, ck_error *err) {
    ck_status s = proc->fs->unlink(proc->fs, path, err);
    if (s != CK_NOTFOUND) return s;
    ck_error_reset(err);
    return CK_OK;
}

ck_status ck_write_ahead_drop(ck_proc *proc, const ck_write_ahead_file *f, ck_error *err) {
    return unlink_file(proc, f->here, err);
}

static bool is_kept(const char *name, const ck_committable *keep, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, keep[i].name) == 0) return true;
    return false;
}

static ck_status drop_others(ck_proc *proc, ck_arena *a, const char *dir, const char *prefix,
                             const ck_committable *keep, size_t keep_count, ck_error *err) {
    const char **names;
    size_t count = 0, tmp = strlen(".tmp-");
    ck_status s = proc->fs->list(proc->fs, dir, a, &names, &count, err);
    if (s == CK_NOTFOUND) ck_error_reset(err);
    if (s == CK_NOTFOUND) return CK_OK;
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        const char *name = strncmp(names[i], ".tmp-", tmp) == 0 ? names[i] + tmp : names[i];
        if (strncmp(name, prefix, strlen(prefix)) != 0 || is_kept(names[i], keep, keep_count)) continue;
        const char *path = ck_arena_printf(a, "%s/%s", dir, names[i]);
        s = path ? unlink_file(proc, path, err) : ck_nomem(err, a->mem, strlen(names[i]));
    }
    return s;
}

ck_status ck_write_ahead_drop_others(ck_proc *proc, ck_mem mem, const char *checkpoint_dir, const char *job_uuid,
                                     uint64_t op_id, const ck_committable *keep, size_t keep_count, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(mem, CK_MEM_PLAN), SIZE_MAX);
    const char *dir = ck_arena_printf(&a, "%s/" FOLDER, checkpoint_dir);
    const char *prefix = ck_arena_printf(&a, "wal-%s-%016llx-", job_uuid, (unsigned long long)op_id);
    ck_status s = dir && prefix ? drop_others(proc, &a, dir, prefix, keep, keep_count, err)
                                : ck_nomem(err, a.mem, strlen(checkpoint_dir));
    ck_arena_destroy(&a);
    return s;
}
