/* Blocking calls of a source, sink or lookup, one at a time, on an I/O thread: the step begins one and goes on, and is
 * stepped again when it has ended. What the call works with is the call's while it runs, else the step's. */
#ifndef CK_CONNECTOR_BACKGROUND_H
#define CK_CONNECTOR_BACKGROUND_H

#include "os/io.h"
#include "stream/operator.h"

/* Embedded by its owner; zero: none was begun. */
typedef struct ck_background {
    ck_io_job job; /* first: what run is given */
    bool running;  /* as the step knows */
    _Atomic bool done;
    ck_status status; /* what run says; the call's while it runs */
    ck_error error;
    struct ck_op_runtime *rt;
    void (*wake)(struct ck_op_runtime *rt);
} ck_background;

/* None runs. run ends in bounded time and sets status, and error where that is none; both are reset before. Thread: the
 * step's. */
void ck_background_begin(ck_background *b, void (*run)(ck_io_job *job), ck_op_ctx *ctx);
/* One was running, and has ended: status and error are the step's, and so is all that the call has written. Thread: the
 * step's. */
bool ck_background_ended(ck_background *b);

#endif
