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

/* Whether the job has something to write; takes what was appended. */
static bool take(ck_fd_writer *w) {
    if (w->written < w->out.n) return true;
    ck_bytes_clear(&w->out);
    w->written = 0;
    pthread_mutex_lock(&w->lock);
    ck_bytes fill = w->fill;
    w->fill = w->out;
    w->out = fill;
    w->ending = w->out.n == 0; /* whoever appends now sees it and waits for the wake */
    pthread_mutex_unlock(&w->lock);
    return w->out.n > 0;
}

static void fd_run(ck_io_job *j) {
    ck_fd_writer *w = (ck_fd_writer *)j;
    ck_error error = CK_ERROR_INIT;
    ck_status s = CK_OK;
    while (s == CK_OK && take(w)) s = write_out(w, &error);
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    if (s != CK_OK && s != CK_AGAIN) {
        w->status = s;
        w->error = error;
    }
    pthread_mutex_unlock(&w->lock);
}

static void fd_done(ck_io_job *j) {
    ck_fd_writer *w = (ck_fd_writer *)j;
    ck_op_ctx *ctx = w->ctx;
    pthread_mutex_lock(&w->lock);
    w->running = false;
    pthread_mutex_unlock(&w->lock);
    ck_op_wake(ctx, ctx->rt);
}

/* ---- the step ---- */

void ck_fd_writer_init(ck_fd_writer *w, ck_op_ctx *ctx, ck_mem mem, int fd) {
    *w = (ck_fd_writer){.job = {fd_run, fd_done, NULL}, .ctx = ctx, .fd = fd, .inited = true};
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

static void submit_if_idle(ck_fd_writer *w, bool *submit) {
    *submit = !w->running;
    if (*submit) w->ending = false;
    w->running = true;
}

ck_status ck_fd_writer_append(ck_fd_writer *w, ck_view bytes) {
    bool submit = false;
    pthread_mutex_lock(&w->lock);
    ck_status s = failed(w);
    if (s == CK_OK && w->running && w->ending) s = CK_AGAIN;
    if (s == CK_OK && w->fill.n > 0 && w->fill.n + bytes.n > FILL_MAX) s = CK_AGAIN;
    if (s == CK_OK) {
        s = ck_bytes_view(&w->fill, bytes);
        if (s == CK_NOMEM) s = ck_nomem(w->ctx->error, w->fill.mem, bytes.n);
        if (s == CK_FULL) s = ck_fail(w->ctx->error, CK_FULL, "%zu bytes of output at once are too many", bytes.n);
    }
    if (s == CK_OK || s == CK_AGAIN) submit_if_idle(w, &submit);
    pthread_mutex_unlock(&w->lock);
    if (submit) ck_op_submit_io(w->ctx, &w->job);
    return s;
}

ck_status ck_fd_writer_drain(ck_fd_writer *w) {
    bool submit = false;
    pthread_mutex_lock(&w->lock);
    ck_status s = failed(w);
    if (s == CK_OK && (w->running || w->fill.n > 0 || w->written < w->out.n)) {
        s = CK_AGAIN;
        submit_if_idle(w, &submit);
    }
    pthread_mutex_unlock(&w->lock);
    if (submit) ck_op_submit_io(w->ctx, &w->job);
    return s;
}

bool ck_fd_writer_pending(ck_fd_writer *w) {
    pthread_mutex_lock(&w->lock);
    bool pending = w->status == CK_OK && (w->running || w->fill.n > 0 || w->written < w->out.n);
    pthread_mutex_unlock(&w->lock);
    return pending;
}
