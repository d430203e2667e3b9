#include "connector/file/part_writer.h"

enum { QUEUE_BYTES_MAX = 1 << 20 };

typedef enum part_order_kind {
    ORDER_DIRECTORY,
    ORDER_WRITE,
    ORDER_FINISH,
    ORDER_REPLACE,
    ORDER_REMOVE,
    ORDER_RELEASE
} part_order_kind;

struct part_order {
    part_order_kind kind;
    part_order *next;
    ck_bytes data;
    uint64_t number;   /* the checkpoint, or what the test is given */
    ck_name_test test; /* REMOVE */
    size_t bytes;      /* of this allocation */
    char path[];
};

typedef struct part_job {
    ck_io_job job;
    ck_part_writer *writer;
} part_job;

/* ---- the job ---- */

static ck_status make_directory(ck_part_writer *w, ck_error *err) {
    ck_proc *proc = w->ctx->proc;
    ck_stat st;
    ck_status s = proc->fs->stat(proc->fs, w->dir, &st, err);
    if (s == CK_OK && !st.is_dir)
        return ck_fail(err, CK_REFUSED, "%s is a file; a table that is written is a directory of parts", w->dir);
    if (s != CK_OK && s != CK_NOTFOUND) return s;
    ck_error_reset(err);
    /* Also when it is there: who made it may have died before its name was durable. */
    return w->private ? ck_fs_mkdirs(proc, w->dir, err) : ck_fs_mkdirs_shared(proc, w->dir, err);
}

static ck_status finish_file(ck_part_writer *w, bool replace, ck_error *err) {
    CK_FAULT(w->ctx->proc, FILE_SINK_BEFORE_ROLL);
    CK_TRY(ck_tmpfile_fsync(&w->tmp, err));
    CK_FAULT(w->ctx->proc, FILE_SINK_AFTER_SYNC);
    ck_status s = replace ? ck_durable_replace(&w->tmp, err) : ck_durable_publish(&w->tmp, err);
    if (s == CK_EXISTS) return ck_fail(err, CK_EXISTS, "%s exists already and is not overwritten", w->tmp.final_path);
    if (s != CK_OK) return s;
    ck_tmpfile_destroy(&w->tmp);
    w->tmp_open = false;
    return CK_OK;
}

static ck_status remove_files(ck_part_writer *w, const part_order *o, ck_error *err) {
    ck_proc *proc = w->ctx->proc;
    ck_arena a;
    const char **names;
    size_t count = 0, removed = 0;
    ck_arena_init(&a, ck_mem_as(w->mem, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = proc->fs->list(proc->fs, w->dir, &a, &names, &count, err);
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        if (!o->test(names[i], o->path, o->number)) continue;
        const char *path = ck_arena_printf(&a, "%s/%s", w->dir, names[i]);
        s = path ? proc->fs->unlink(proc->fs, path, err) : ck_nomem(err, a.mem, strlen(names[i]));
        if (s == CK_NOTFOUND) ck_error_reset(err), s = CK_OK;
        removed++;
    }
    if (s == CK_OK && removed) s = proc->fs->fsync_dir(proc->fs, w->dir, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status carry_out(ck_part_writer *w, part_order *o, ck_error *err) {
    switch (o->kind) {
    case ORDER_DIRECTORY: return make_directory(w, err);
    case ORDER_WRITE:
        if (!w->tmp_open) {
            CK_TRY(w->private ? ck_tmpfile_init(&w->tmp, w->ctx->proc, w->mem, o->path, err)
                              : ck_tmpfile_init_shared(&w->tmp, w->ctx->proc, w->mem, o->path, err));
            w->tmp_open = true;
        }
        return o->data.n ? ck_tmpfile_write(&w->tmp, o->data.p, o->data.n, err) : CK_OK;
    case ORDER_FINISH:
    case ORDER_REPLACE: return finish_file(w, o->kind == ORDER_REPLACE, err);
    case ORDER_REMOVE: return remove_files(w, o, err);
    case ORDER_RELEASE: return CK_OK;
    }
    return CK_OK;
}

static part_order *next_order(ck_part_writer *w) {
    pthread_mutex_lock(&w->lock);
    part_order *o = w->head;
    if (o) {
        w->head = o->next;
        if (!w->head) w->tail = &w->head;
    } else {
        w->running = false;
    }
    pthread_mutex_unlock(&w->lock);
    return o;
}

static void free_order(ck_part_writer *w, part_order *o) {
    ck_bytes_destroy(&o->data);
    ck_free(w->mem, o, o->bytes);
}

/* After a failure the rest is dropped, and what is not whole goes at once. */
static void fail(ck_part_writer *w, ck_status s, const ck_error *error) {
    ck_tmpfile_destroy(&w->tmp);
    w->tmp_open = false;
    pthread_mutex_lock(&w->lock);
    w->status = s;
    w->error = *error;
    pthread_mutex_unlock(&w->lock);
}

static void part_run(ck_io_job *j) {
    ck_part_writer *w = ((part_job *)j)->writer;
    ck_op_ctx *ctx = w->ctx;
    for (part_order *o; (o = next_order(w));) {
        ck_error error = CK_ERROR_INIT;
        if (w->status == CK_OK) { /* only jobs write it, one at a time */
            ck_status s = carry_out(w, o, &error);
            if (s != CK_OK) fail(w, s, &error);
        }
        if (o->kind == ORDER_RELEASE) ck_op_release_ack(ctx, o->number, w->status, w->status ? &w->error : NULL);
        pthread_mutex_lock(&w->lock);
        w->queued_bytes -= o->data.n;
        bool wake = w->waiting && w->queued_bytes < QUEUE_BYTES_MAX;
        if (wake) w->waiting = false;
        pthread_mutex_unlock(&w->lock);
        free_order(w, o);
        if (wake) ck_op_wake(ctx, ctx->rt);
    }
}

static void part_done(ck_io_job *j) {
    part_job *job = (part_job *)j;
    ck_op_ctx *ctx = job->writer->ctx;
    ck_free(job->writer->mem, job, sizeof *job);
    ck_op_wake(ctx, ctx->rt);
}

/* ---- the step ---- */

static ck_status order(ck_part_writer *w, part_order_kind kind, const char *path, ck_bytes *data, uint64_t number,
                       ck_name_test test) {
    size_t n = path ? strlen(path) + 1 : 0, bytes = sizeof(part_order) + n;
    part_order *o = ck_alloc(w->mem, bytes);
    part_job *job = ck_alloc(w->mem, sizeof *job);
    if (!o || !job) {
        if (o) ck_free(w->mem, o, bytes);
        if (job) ck_free(w->mem, job, sizeof *job);
        return ck_nomem(w->ctx->error, w->mem, bytes);
    }
    *o = (part_order){.kind = kind, .number = number, .test = test, .bytes = bytes};
    if (n) memcpy(o->path, path, n);
    if (data) {
        o->data = *data;
        ck_bytes_init(data, w->mem, SIZE_MAX);
    }
    *job = (part_job){{part_run, part_done, NULL}, w};
    pthread_mutex_lock(&w->lock);
    *w->tail = o;
    w->tail = &o->next;
    w->queued_bytes += o->data.n;
    bool submit = !w->running;
    w->running = true;
    pthread_mutex_unlock(&w->lock);
    if (submit)
        ck_op_submit_io(w->ctx, &job->job);
    else
        ck_free(w->mem, job, sizeof *job);
    return CK_OK;
}

static ck_status init(ck_part_writer *w, ck_op_ctx *ctx, ck_mem mem, char *dir, bool private) {
    *w = (ck_part_writer){.ctx = ctx, .mem = mem, .dir = dir, .private = private, .inited = true};
    w->tail = &w->head;
    pthread_mutex_init(&w->lock, NULL);
    return order(w, ORDER_DIRECTORY, NULL, NULL, 0, NULL);
}

ck_status ck_part_writer_init(ck_part_writer *w, ck_op_ctx *ctx, ck_mem mem, char *dir) {
    return init(w, ctx, mem, dir, false);
}

ck_status ck_part_writer_init_private(ck_part_writer *w, ck_op_ctx *ctx, ck_mem mem, char *dir) {
    return init(w, ctx, mem, dir, true);
}

void ck_part_writer_destroy(ck_part_writer *w) {
    if (!w->inited) return;
    CK_ASSERT(!w->running);
    ck_tmpfile_destroy(&w->tmp);
    pthread_mutex_destroy(&w->lock);
    w->inited = false;
}

/* Waits until done(w) holds; the wake comes from the running job. */
static ck_status wait_for(ck_part_writer *w, bool drained) {
    pthread_mutex_lock(&w->lock);
    ck_status s = w->status;
    if (s != CK_OK) {
        *w->ctx->error = w->error;
    } else if (drained ? w->running : w->queued_bytes >= QUEUE_BYTES_MAX) {
        w->waiting = true;
        s = CK_AGAIN;
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

ck_status ck_part_writer_room(ck_part_writer *w) { return wait_for(w, false); }
ck_status ck_part_writer_drained(ck_part_writer *w) { return wait_for(w, true); }

ck_status ck_part_writer_write(ck_part_writer *w, const char *path, ck_bytes *data) {
    return order(w, ORDER_WRITE, path, data, 0, NULL);
}
ck_status ck_part_writer_finish(ck_part_writer *w, bool replace) {
    return order(w, replace ? ORDER_REPLACE : ORDER_FINISH, NULL, NULL, 0, NULL);
}
ck_status ck_part_writer_remove(ck_part_writer *w, ck_name_test test, const char *text, uint64_t number) {
    return order(w, ORDER_REMOVE, text, NULL, number, test);
}
ck_status ck_part_writer_release(ck_part_writer *w, uint64_t checkpoint) {
    return order(w, ORDER_RELEASE, NULL, NULL, checkpoint, NULL);
}
