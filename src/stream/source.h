/* What a source is. Splits are enumerated once for the job (a file range, a partition), dealt to subtasks in order, and
 * kept with their positions as `split` rows of operator state, so that a restore at any parallelism deals them out
 * again. */
#ifndef CK_STREAM_SOURCE_H
#define CK_STREAM_SOURCE_H

#include "stream/operator.h"

/* One unit of input owned by one subtask at a time. `spec` is the connector's JSON (path, range, start position); it
 * goes into state whole. Ids are unique in a source and stable across runs. */
typedef struct ck_split {
    const char *id;
    const char *spec;
    uint32_t order; /* splits are dealt and listed in this order */
} ck_split;

typedef struct ck_split_list {
    ck_arena *arena; /* ids and specs live here */
    ck_split *splits;
    uint32_t count, capacity;
    bool now; /* enumerate: where they begin depends on when it was asked, so that a first checkpoint keeps it at once */
    uint64_t checkpoint; /* snapshot: which one it is for */
    void *held; /* enumerate: what the splits' owners need (a transaction whose snapshot they take); the runtime calls */
    void (*release)(void *held); /* release when the job ends; it may block. NULL: nothing */
} ck_split_list;
CK_NODISCARD ck_status ck_split_list_add(ck_split_list *l, const char *id, const char *spec); /* copies */

typedef enum ck_poll_result {
    CK_POLL_MORE, /* something was emitted or may be at once */
    CK_POLL_IDLE, /* nothing now: poll again after a wake or at *until_us (monotonic; INT64_MAX: wake only) */
    CK_POLL_END,  /* all splits are finished: the source ends */
} ck_poll_result;

typedef struct ck_source_vtbl {
    uint32_t struct_bytes;
    ck_status (*open)(void *self, ck_op_ctx *ctx);
    /* Own this split from now on, at the position in `spec`. Called after open, before the first poll, in split order;
     * while running when a new one is found. */
    ck_status (*add_split)(void *self, const ck_split *split, ck_op_ctx *ctx);
    /* Emit about one batch (ck_op_emit) and watermarks as they come. */
    ck_status (*poll)(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us);
    /* For each owned split: its spec with the position of the next record not yet emitted. Called at a barrier, between
     * polls; the runtime stores what it adds. Finished splits are listed too, with a position that says so. */
    ck_status (*snapshot)(void *self, ck_split_list *out, ck_op_ctx *ctx);
    /* Nobody wants more (LIMIT): poll is not called again. Optional. */
    void (*stop)(void *self, ck_op_ctx *ctx);
    void (*close)(void *self, ck_op_ctx *ctx);
    /* Checkpoint `checkpoint` is complete and all sinks have committed it: what is before its positions is not asked for
     * again. Optional. */
    void (*on_committed)(void *self, uint64_t checkpoint, ck_op_ctx *ctx);
} ck_source_vtbl;

#endif
