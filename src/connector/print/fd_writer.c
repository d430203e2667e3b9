#include "connector/print/fd_writer.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILL_MAX = 1 << 20,       /* appended before a job has taken it; beyond it the step waits */
    LINE_MAX_BYTES = 1 << 27, /* one append, which is always taken when nothing else waits */
    PATIENCE_MS = 200         /* how long a job waits for a reader that does not read */
};

/* ---- the job ---- */

/* How much may be written without blocking: all to files; to pipes and terminals a page, at a line's end where there is
 * one, so that several writers of one pipe do not cut each other's lines. */
static size_t piece(const ck_fd_writer *w, bool regular) {
    const char *p = w->out.p + w->written;
    size_t left = w->out.n - w->written;
    if (regular || left <= 4096) return left;
    const char *end = memrchr(p, '\n', 4096);
    return end ? (size_t)(end - p) + 1 : 4096;
}

static ck_status write_out(ck_fd_writer *w, ck_error *err) {
    struct stat st;
    bool regular = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
    while (w->written < w->out.n) {
        struct pollfd p = {.fd = w->fd, .events = POLLOUT};
        if (!regular) {
            int ready = poll(&p, 1, PATIENCE_MS);
            if (ready == 0) return CK_AGAIN;
            if (ready < 0 && errno != EINTR)
                return ck_fail_errno(err, errno, "waiting to write to descriptor %d", w->fd);
            if (ready < 0) continue;
        }
        ssize_t n = write(w->fd, w->out.p + w->written, piece(w, regular));
        if (n >= 0)
            w->written += (size_t)n;
        else if (errno == EPIPE)
            return CK_CLOSED;
        else if (errno != EINTR && errno != EAGAIN)
            return ck_fail_errno(err, errno, "writing %s", w->fd == 1 ? "standard output" : "output");
    }
    return CK_OK;
}

typedef struct fd_job {
    ck_io_job job;
    ck_fd_writer *writer;
} fd_job;

/* Whether the job has something to write; takes what was appended. Otherwise it is the running one no more. */
static bool take(ck_fd_writer *w) {
    pthread_mutex_lock(&w->lock);
    if (w->written == w->out.n) {
        ck_bytes fill = w->fill;
        ck_bytes_clear(&w->out);
        w->fill = w->out;
        w->out = fill;
        w->written = 0;
    }
    bool more = w->out.n > 0;
    if (!more) w->running = false;
    pthread_mutex_unlock(&w->lock);
    return more;
}

static void fd_run(ck_io_job *j) {
    ck_fd_writer *w = ((fd_job *)j)->writer;
    ck_error error = CK_ERROR_INIT;
    ck_status s = CK_OK;
    while (s == CK_OK && take(w)) s = write_out(w, &error);
    if (s == CK_OK) return;
    pthread_mutex_lock(&w->lock);
    w->running = false;
    if (s != CK_AGAIN) {
        w->status = s;
        w->error = error;
    }
    pthread_mutex_unlock(&w->lock);
}

static void fd_done(ck_io_job *j) {
    fd_job *job = (fd_job *)j;
    ck_op_ctx *ctx = job->writer->ctx;
    ck_free(job->writer->mem, job, sizeof *job);
    ck_op_wake(ctx, ctx->rt);
}

/* ---- the step ---- */

void ck_fd_writer_init(ck_fd_writer *w, ck_op_ctx *ctx, ck_mem mem, int fd) {
    *w = (ck_fd_writer){.ctx = ctx, .mem = mem, .fd = fd, .inited = true};
    pthread_mutex_init(&w->lock, NULL);
    ck_bytes_init(&w->fill, mem, LINE_MAX_BYTES);
    ck_bytes_init(&w->out, mem, LINE_MAX_BYTES);
}

void ck_fd_writer_destroy(ck_fd_writer *w) {
    if (!w->inited) return;
    CK_ASSERT(!w->running);
    ck_bytes_destroy(&w->fill);
    ck_bytes_destroy(&w->out);
    pthread_mutex_destroy(&w->lock);
    w->inited = false;
}

static ck_status failed(ck_fd_writer *w) {
    if (w->status != CK_OK && w->status != CK_CLOSED) *w->ctx->error = w->error;
    return w->status;
}

/* With the lock held: the job to submit behind it, NULL when one runs. */
static ck_status job_if_idle(ck_fd_writer *w, fd_job **out) {
    *out = NULL;
    if (w->running) return CK_OK;
    fd_job *job = ck_alloc(w->mem, sizeof *job);
    if (!job) return ck_nomem(w->ctx->error, w->mem, sizeof *job);
    *job = (fd_job){{fd_run, fd_done, NULL}, w};
    w->running = true;
    *out = job;
    return CK_OK;
}

ck_status ck_fd_writer_append(ck_fd_writer *w, ck_view bytes) {
    fd_job *job = NULL;
    pthread_mutex_lock(&w->lock);
    ck_status s = failed(w);
    bool full = w->fill.n > 0 && w->fill.n + bytes.n > FILL_MAX;
    if (s == CK_OK && !full) {
        s = ck_bytes_view(&w->fill, bytes);
        if (s == CK_NOMEM) s = ck_nomem(w->ctx->error, w->fill.mem, bytes.n);
        if (s == CK_FULL) s = ck_fail(w->ctx->error, CK_FULL, "%zu bytes of output at once are too many", bytes.n);
    }
    if (s == CK_OK) s = job_if_idle(w, &job);
    pthread_mutex_unlock(&w->lock);
    if (job) ck_op_submit_io(w->ctx, &job->job);
    return s == CK_OK && full ? CK_AGAIN : s;
}

ck_status ck_fd_writer_drain(ck_fd_writer *w) {
    fd_job *job = NULL;
    pthread_mutex_lock(&w->lock);
    ck_status s = failed(w);
    bool pending = w->running || w->fill.n > 0 || w->written < w->out.n;
    if (s == CK_OK && pending) s = job_if_idle(w, &job);
    pthread_mutex_unlock(&w->lock);
    if (job) ck_op_submit_io(w->ctx, &job->job);
    return s == CK_OK && pending ? CK_AGAIN : s;
}

bool ck_fd_writer_pending(ck_fd_writer *w) {
    pthread_mutex_lock(&w->lock);
    bool pending = w->status == CK_OK && (w->running || w->fill.n > 0 || w->written < w->out.n);
    pthread_mutex_unlock(&w->lock);
    return pending;
}
