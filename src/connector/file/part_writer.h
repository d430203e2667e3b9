/* Files written in order through the I/O executor: the step hands over buffers and orders, one job at a time carries
 * them out. Every file goes the durable way: temporary name, fsync, then its name. After a failure nothing more is
 * written, whatever was not finished is removed, and the error is kept for the step.
 *
 * Threads: the calls are the step's; the queue is behind a lock, the open file is the running job's. */
#ifndef CK_CONNECTOR_FILE_PART_WRITER_H
#define CK_CONNECTOR_FILE_PART_WRITER_H

#include <pthread.h>

#include "base/bytes.h"
#include "os/durable.h"
#include "os/io.h"
#include "stream/operator.h"

typedef struct part_order part_order;

typedef struct ck_part_writer {
    ck_op_ctx *ctx;
    ck_mem mem;
    char *dir;            /* owned by the maker, outlives this */
    pthread_mutex_t lock; /* guards everything up to `error` */
    part_order *head, **tail;
    size_t queued_bytes;
    bool running;
    bool waiting; /* the step wants a wake */
    ck_status status;
    ck_error error;
    ck_tmpfile tmp; /* the running job's */
    bool tmp_open;
    bool private; /* directory and files are for the owner only */
    bool inited;
} ck_part_writer;

/* The first order is to make the directory; a path that is something else fails. */
CK_NODISCARD ck_status ck_part_writer_init(ck_part_writer *w, ck_op_ctx *ctx, ck_mem mem, char *dir);
/* The same, for the owner's eyes only: what is no output. */
CK_NODISCARD ck_status ck_part_writer_init_private(ck_part_writer *w, ck_op_ctx *ctx, ck_mem mem, char *dir);
/* No job may be running; removes an unfinished file. Safe on zero. */
void ck_part_writer_destroy(ck_part_writer *w);

/* CK_OK: there is room for another buffer. CK_AGAIN: not yet, a wake comes. Else how writing failed, in ctx->error. */
CK_NODISCARD ck_status ck_part_writer_room(ck_part_writer *w);
/* CK_OK: everything ordered is done. CK_AGAIN: not yet, a wake comes. Else how it failed. */
CK_NODISCARD ck_status ck_part_writer_drained(ck_part_writer *w);

/* Appends to the file that will be called `path` (copied), which begins with its first buffer (which may be empty).
 * Takes the bytes and leaves *data empty. */
CK_NODISCARD ck_status ck_part_writer_write(ck_part_writer *w, const char *path, ck_bytes *data);
/* The open file is complete: durable under its name; replace: over an older one. */
CK_NODISCARD ck_status ck_part_writer_finish(ck_part_writer *w, bool replace);
/* Removes the files of the directory whose names test says yes to, given text (copied) and number. */
typedef bool (*ck_name_test)(const char *name, const char *text, uint64_t number);
CK_NODISCARD ck_status ck_part_writer_remove(ck_part_writer *w, ck_name_test test, const char *text, uint64_t number);
/* When all ordered before is done, or has failed: releases the acknowledgement held for this checkpoint. */
CK_NODISCARD ck_status ck_part_writer_release(ck_part_writer *w, uint64_t checkpoint);

#endif
