/* Bytes to a file descriptor (standard output, a pipe) in order, through the I/O executor. The step appends whole lines
 * and never blocks; a job writes what is there. A reader that does not read holds nobody up for ever: a job gives up
 * after a while and is submitted again later.
 *
 * Threads: everything is the step's, except what a job does under the lock. Each submission is a job of its own; one at
 * a time is running. */
#ifndef CK_CONNECTOR_PRINT_FD_WRITER_H
#define CK_CONNECTOR_PRINT_FD_WRITER_H

#include <pthread.h>

#include "base/bytes.h"
#include "os/io.h"
#include "stream/operator.h"

typedef struct ck_fd_writer {
    ck_op_ctx *ctx;
    ck_mem mem;
    int fd;
    pthread_mutex_t lock; /* guards fill, running, status and error */
    ck_bytes fill;        /* appended, not taken by a job */
    bool running;         /* a job takes what is appended */
    ck_status status;     /* CK_CLOSED: the reader is gone */
    ck_error error;
    ck_bytes out; /* the job's: taken, written up to `written` */
    size_t written;
    bool inited;
} ck_fd_writer;

void ck_fd_writer_init(ck_fd_writer *w, ck_op_ctx *ctx, ck_mem mem, int fd);
/* No job may be running. Safe on zero. */
void ck_fd_writer_destroy(ck_fd_writer *w);
/* Copies; then has a job running. CK_AGAIN: full, nothing taken, a wake comes. CK_CLOSED: nobody reads. Others: writing
 * failed before, ctx->error says how. */
CK_NODISCARD ck_status ck_fd_writer_append(ck_fd_writer *w, ck_view bytes);
/* CK_OK: all is written; CK_AGAIN: not yet, a wake comes. Failures as append. */
CK_NODISCARD ck_status ck_fd_writer_drain(ck_fd_writer *w);
/* Something is not written yet. A job that met a slow reader has given up: call drain in a while, which starts another.
 */
bool ck_fd_writer_pending(ck_fd_writer *w);

#endif
