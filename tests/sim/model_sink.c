/* The model's sink. At a barrier its rows become a staged file, written and synced by the I/O executor while the sink
 * holds the acknowledgement; committing renames it into place. Without checkpoints END writes the final file itself.
 *
 *   D/.staged-<8 hex of the job's uuid>-<subtask>-<N>   ->   D/part-<8 hex>-<subtask>-<N>
 */
#include "model_int.h"

#include "base/bytes.h"

enum { ROWS_BYTES_MAX = 16 << 20 };

typedef struct staged { /* one file on its way to the disk */
    ck_io_job job;
    struct sink *sink;
    uint64_t checkpoint;
    char path[512];
    ck_bytes rows;
    ck_status status;
    ck_error error;
} staged;

typedef struct sink {
    ck_mem mem;
    ck_proc *proc;
    ck_op_ctx *ctx;
    struct ck_op_runtime *rt;
    char dir[256], uuid8[9];
    uint32_t subtask;
    bool checkpoints;
    ck_bytes rows;
    staged *final_file; /* without checkpoints: END waits for it */
    _Atomic bool final_done;
    _Atomic bool broken; /* a staged file could not be written: its rows are gone from here */
    ck_error broken_error;
} sink;

static ck_status read_dir(const char *params, char *out, size_t max, ck_error *err) {
    const char *at = strstr(params, "\"dir\":\"");
    const char *end = at ? strchr(at + 7, '"') : NULL;
    if (!end || (size_t)(end - at - 7) >= max) return ck_fail(err, CK_INVALID, "model.sink needs dir");
    memcpy(out, at + 7, (size_t)(end - at - 7));
    out[end - at - 7] = 0;
    return CK_OK;
}

static ck_status sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    sink *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    s->proc = spec->proc;
    s->subtask = spec->subtask;
    s->checkpoints = spec->settings->checkpoints;
    snprintf(s->uuid8, sizeof s->uuid8, "%.8s", spec->settings->job_uuid);
    ck_bytes_init(&s->rows, ck_mem_as(mem, CK_MEM_QUEUE), ROWS_BYTES_MAX);
    ck_status st = read_dir(spec->params, s->dir, sizeof s->dir, err);
    if (st != CK_OK)
        ck_free(mem, s, sizeof *s);
    else
        *self = s;
    return st;
}

static ck_status sink_open(void *self, ck_op_ctx *ctx) {
    sink *s = self;
    s->ctx = ctx;
    s->rt = ctx->rt;
    return CK_OK;
}

/* ---- writing ---- */

static ck_status write_file(staged *f) {
    ck_proc *proc = f->sink->proc;
    ck_file *file;
    CK_TRY(ck_fs_mkdirs(proc, f->sink->dir, &f->error));
    CK_TRY(proc->fs->open(proc->fs, f->path, CK_OPEN_TRUNCATE, &file, &f->error));
    ck_status s = proc->fs->write(file, f->rows.p, f->rows.n, &f->error);
    if (s == CK_OK) s = proc->fs->fsync(file, &f->error);
    proc->fs->close(file);
    return s == CK_OK ? proc->fs->fsync_dir(proc->fs, f->sink->dir, &f->error) : s;
}

static void write_run(ck_io_job *j) {
    staged *f = (staged *)j;
    f->status = write_file(f);
}

static void free_staged(staged *f) {
    ck_mem mem = f->sink->mem;
    ck_bytes_destroy(&f->rows);
    ck_free(mem, f, sizeof *f);
}

static void staged_done(ck_io_job *j) {
    staged *f = (staged *)j;
    sink *s = f->sink;
    if (f->status != CK_OK && !atomic_load(&s->broken)) {
        s->broken_error = f->error;
        atomic_store(&s->broken, true);
    }
    ck_op_release_ack(s->ctx, f->checkpoint, f->status, &f->error);
    free_staged(f);
    ck_op_wake(s->ctx, s->rt);
}

static void final_done(ck_io_job *j) {
    sink *s = ((staged *)j)->sink;
    atomic_store(&s->final_done, true);
    ck_op_wake(s->ctx, s->rt);
}

/* Takes the rows gathered so far. */
static staged *new_staged(sink *s, uint64_t checkpoint, const char *prefix) {
    staged *f = ck_alloc_zero(s->mem, sizeof *f);
    if (!f) return NULL;
    f->sink = s;
    f->checkpoint = checkpoint;
    f->error = CK_ERROR_INIT;
    f->rows = s->rows;
    snprintf(f->path, sizeof f->path, "%s/%s-%s-%u-%llu", s->dir, prefix, s->uuid8, s->subtask,
             (unsigned long long)checkpoint);
    ck_bytes_init(&s->rows, f->rows.mem, ROWS_BYTES_MAX);
    return f;
}

static ck_status take_rows(sink *s, const ck_batch *b, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t r = ck_batch_row(b, i);
        for (uint32_t c = 0; c < b->column_count; c++)
            if (ck_bytes_printf(&s->rows, "%s%lld", c ? "," : "", (long long)b->columns[c]->i64[r]) != CK_OK)
                return ck_nomem(ctx->error, s->mem, 32);
        if (ck_bytes_char(&s->rows, '\n') != CK_OK) return ck_nomem(ctx->error, s->mem, 1);
    }
    return CK_OK;
}

static ck_status finish(sink *s, ck_op_ctx *ctx) {
    if (s->checkpoints || (!s->rows.n && !s->final_file)) return CK_OK;
    if (!s->final_file) {
        s->final_file = new_staged(s, 0, "part");
        if (!s->final_file) return ck_nomem(ctx->error, s->mem, sizeof(staged));
        s->final_file->job = (ck_io_job){write_run, final_done, NULL};
        ck_op_submit_io(ctx, &s->final_file->job);
    }
    if (!atomic_load(&s->final_done)) return CK_AGAIN;
    ck_status st = s->final_file->status;
    if (st != CK_OK) *ctx->error = s->final_file->error;
    free_staged(s->final_file);
    s->final_file = NULL;
    return st;
}

static ck_status check_broken(sink *s, ck_op_ctx *ctx) {
    if (!atomic_load(&s->broken)) return CK_OK;
    *ctx->error = s->broken_error;
    return s->broken_error.status;
}

static ck_status sink_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)input;
    CK_TRY(check_broken(self, ctx));
    if (ev->kind == CK_EVENT_BATCH) return take_rows(self, ev->batch, ctx);
    return ev->kind == CK_EVENT_END ? finish(self, ctx) : CK_OK;
}

static ck_status sink_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    sink *s = self;
    CK_TRY(check_broken(s, ctx));
    if (!s->rows.n) return CK_OK;
    staged *f = new_staged(s, checkpoint, ".staged");
    if (!f) return ck_nomem(ctx->error, s->mem, sizeof *f);
    char name[512], payload[1100];
    snprintf(name, sizeof name, "%s/part-%s-%u-%llu", s->dir, s->uuid8, s->subtask, (unsigned long long)checkpoint);
    snprintf(payload, sizeof payload, "{\"staged\":\"%s\",\"bytes\":%zu}", f->path, f->rows.n);
    ck_status st = ck_commits_put(ctx->state, &(ck_committable){name, checkpoint, payload}, ctx->error);
    if (st != CK_OK) {
        free_staged(f);
        return st;
    }
    f->job = (ck_io_job){write_run, staged_done, NULL};
    ck_op_hold_ack(ctx);
    ck_op_submit_io(ctx, &f->job);
    return CK_OK;
}

static ck_status sink_committed(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)self;
    return ck_commits_forget(ctx->state, checkpoint, ctx->error);
}

static void sink_close(void *self, ck_op_ctx *ctx) {
    sink *s = self;
    (void)ctx;
    if (s->final_file) free_staged(s->final_file);
    ck_bytes_destroy(&s->rows);
    ck_free(s->mem, s, sizeof *s);
}

/* ---- committing ---- */

static ck_status commit(void *self, const ck_committable *c, ck_error *err) {
    sink *s = self;
    ck_fs *fs = s->proc->fs;
    ck_stat st;
    char path[512];
    const char *at = strstr(c->payload, "\"staged\":\"") + 10;
    snprintf(path, sizeof path, "%.*s", (int)(strchr(at, '"') - at), at);
    int64_t bytes = model_param(c->payload, "bytes", -1);
    if (fs->stat(fs, c->name, &st, NULL) == CK_OK) {
        if ((int64_t)st.bytes == bytes) return fs->fsync_dir(fs, s->dir, err); /* done, perhaps not yet durable */
        return ck_fail(err, CK_CORRUPT, "%s has %llu bytes, not %lld", c->name, (unsigned long long)st.bytes,
                       (long long)bytes);
    }
    CK_TRY(fs->rename_noreplace(fs, path, c->name, err));
    return fs->fsync_dir(fs, s->dir, err);
}

static bool is_kept(const ck_committable *keep, size_t n, const char *staged_path) {
    for (size_t i = 0; i < n; i++)
        if (strstr(keep[i].payload, staged_path)) return true;
    return false;
}

static ck_status abort_others(void *self, const char *uuid, uint64_t restored, const ck_committable *keep,
                              size_t keep_count, bool allow_duplicates, ck_error *err) {
    sink *s = self;
    ck_arena a;
    const char **names;
    size_t count;
    char staged_prefix[32], part_prefix[32];
    snprintf(staged_prefix, sizeof staged_prefix, ".staged-%.8s-", uuid);
    snprintf(part_prefix, sizeof part_prefix, "part-%.8s-", uuid);
    ck_arena_init(&a, s->mem, 16 << 20);
    ck_status st = s->proc->fs->list(s->proc->fs, s->dir, &a, &names, &count, err);
    if (st == CK_NOTFOUND) st = CK_OK, count = 0;
    for (size_t i = 0; st == CK_OK && i < count; i++) {
        unsigned subtask;
        unsigned long long checkpoint;
        const char *path = ck_arena_printf(&a, "%s/%s", s->dir, names[i]);
        if (strncmp(names[i], part_prefix, strlen(part_prefix)) == 0 &&
            sscanf(names[i] + strlen(part_prefix), "%u-%llu", &subtask, &checkpoint) == 2 && checkpoint > restored &&
            !allow_duplicates)
            st = ck_fail(err, CK_REFUSED, "%s was committed after checkpoint %llu", path, (unsigned long long)restored);
        if (strncmp(names[i], staged_prefix, strlen(staged_prefix)) == 0 && !is_kept(keep, keep_count, path))
            st = s->proc->fs->unlink(s->proc->fs, path, err);
    }
    ck_arena_destroy(&a);
    return st;
}

static void committer_close(void *self) {
    sink *s = self;
    ck_free(s->mem, s, sizeof *s);
}

static const ck_operator_vtbl sink_vtbl = {.struct_bytes = sizeof sink_vtbl,
                                           .open = sink_open,
                                           .on_event = sink_event,
                                           .pre_snapshot = sink_snapshot,
                                           .on_committed = sink_committed,
                                           .close = sink_close};
static const ck_committer_vtbl committer_vtbl = {
    .struct_bytes = sizeof committer_vtbl, .commit = commit, .abort_others = abort_others, .close = committer_close};
const ck_op_desc model_sink = {.type = "sink.model",
                               .op = &sink_vtbl,
                               .committer = &committer_vtbl,
                               .create = sink_create,
                               .create_committer = sink_create};
