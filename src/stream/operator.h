/* What an operator is: a table of functions over its ordered inputs and an injected clock. It never blocks, does no I/O
 * of its own, sees events one at a time, and keeps what must survive in state tables. Several operators run chained in
 * one subtask by direct calls; the runtime forwards watermarks, barriers, flushes and ends after the operator has taken
 * them. */
#ifndef CK_STREAM_OPERATOR_H
#define CK_STREAM_OPERATOR_H

#include "base/arena.h"
#include "base/proc.h"
#include "stream/event.h"
#include "stream/key_groups.h"

struct ck_state;      /* state/state.h: the slots of this operator in this subtask */
struct ck_op_runtime; /* the runtime's side of a context */
struct ck_io_job;     /* os/io.h */

/* Settings of the job every operator may read. Part of the semantic fingerprint where they change results. */
/* A record that a job goes on without: by whom its place was named, and where it begins. */
typedef struct ck_skip {
    const char *object; /* file or split, as errors name it */
    uint64_t offset;
} ck_skip;

typedef struct ck_job_settings {
    uint32_t batch_rows; /* rows of a batch a source or operator makes, 1..CK_BATCH_ROWS_MAX */
    uint32_t key_groups;
    int64_t flush_us;     /* how often unbounded sources inject FLUSH */
    bool eval_error_null; /* SET on_eval_error = null */
    const char *timezone; /* IANA name, "UTC" by default */
    const char *job_name;
    const char *job_uuid;
    bool checkpoints; /* there is a checkpoint directory: committables are committed by checkpoints, the last one after
                         END. false: nobody commits; a sink makes its output appear by itself, at the latest at END */
    const char *checkpoint_dir; /* where they are, for what a sink writes ahead; NULL without them */
    const ck_skip *skips;       /* sources leave these out; NULL: none */
    uint32_t skip_count;
} ck_job_settings;

/* What a source's watermark waits for. Strings are copied by whoever takes the note. */
typedef struct ck_clock_note {
    int64_t watermark_us;    /* as said; CK_WATERMARK_MIN: none yet */
    const char *holder;      /* the split that holds it back; NULL: all are idle or finished */
    int64_t holder_us;       /* the greatest time of that split; INT64_MIN: it has given no row yet */
    int64_t holder_empty_us; /* monotonic: since when it had nothing when polled; INT64_MIN: it has */
    const char *idle;        /* of the idle splits the one that has been so longest; NULL: none */
    int64_t idle_empty_us;
    uint32_t splits, idle_splits; /* finished ones are in neither */
} ck_clock_note;

/* Which keys the records of a source had. Read when the job has ended; spelled is copied by whoever takes the note. */
typedef struct ck_keys_note {
    uint64_t met;        /* bit i: some record had a key for column i of the table (the first 64) */
    const char *spelled; /* a key that is column `like` in other letters (Id for id); NULL: none was seen */
    uint32_t like;
} ck_keys_note;

/* An operator's window on the runtime. Made and owned by the runtime, valid from create to close, used only by the step
 * that runs the operator. The function pointers are the runtime's; call them through the inline wrappers below. */
typedef struct ck_op_ctx ck_op_ctx;
struct ck_op_ctx {
    ck_proc *proc;
    const ck_job_settings *settings;
    const char *uid;
    uint64_t op_id; /* FNV-1a 64 of "uid/" + uid */
    uint32_t subtask, parallelism;
    ck_key_group_range key_groups; /* owned by this subtask, whichever way its rows come */
    uint32_t input_count;
    ck_mem mem;      /* CK_MEM_QUEUE account: batches and scratch */
    ck_arena *arena; /* reset after every call: what must survive goes to state or own memory, by copy */
    struct ck_state *state;
    int64_t watermark; /* minimum over inputs, as of this call */
    ck_error *error;   /* fill before returning a failure; never NULL */
    struct ck_op_runtime *rt;
    ck_status (*emit_fn)(ck_op_ctx *ctx, uint32_t port, ck_batch **b);
    ck_status (*emit_watermark_fn)(ck_op_ctx *ctx, int64_t value, bool idle);
    void (*close_input_fn)(ck_op_ctx *ctx, uint32_t input);
    void (*hold_input_fn)(ck_op_ctx *ctx, uint32_t input, bool hold);
    int64_t (*now_us_fn)(const ck_op_ctx *ctx);
    void (*submit_io_fn)(ck_op_ctx *ctx, struct ck_io_job *job);
    void (*wake_fn)(struct ck_op_runtime *rt);
    void (*count_fn)(ck_op_ctx *ctx, const char *counter, uint64_t add);
    void (*note_clock_fn)(ck_op_ctx *ctx, const ck_clock_note *note);  /* NULL: nobody wants to know */
    void (*note_keys_fn)(ck_op_ctx *ctx, const ck_keys_note *note);    /* NULL: the same */
    void (*note_lag_fn)(ck_op_ctx *ctx, uint64_t records, int64_t us); /* NULL: the same */
    void (*hold_ack_fn)(ck_op_ctx *ctx);
    void (*release_ack_fn)(struct ck_op_runtime *rt, uint64_t checkpoint, ck_status status, const ck_error *error);
    bool savepoint; /* in pre_snapshot: somebody asked for this checkpoint, and what is put off comes with it */
};

/* Hand a batch on. Takes *b and sets it to NULL, always, also on failure; a batch without live rows is dropped. Port 0
 * is the main output; further ports are side outputs (late rows, dead letters). Emit about one batch a call and return
 * CK_MORE when there is more. */
CK_NODISCARD static inline ck_status ck_op_emit(ck_op_ctx *ctx, uint32_t port, ck_batch **b) {
    return ctx->emit_fn(ctx, port, b);
}
/* Sources only (and operators that make watermarks): never goes back; the runtime drops one that would. */
CK_NODISCARD static inline ck_status ck_op_emit_watermark(ck_op_ctx *ctx, int64_t value, bool idle) {
    return ctx->emit_watermark_fn(ctx, value, idle);
}
/* Wants nothing more from this input (LIMIT reached): its producer ends when all its outputs are closed. Idempotent. */
static inline void ck_op_close_input(ck_op_ctx *ctx, uint32_t input) { ctx->close_input_fn(ctx, input); }
/* Would rather not take from this input for now (a join: before its other side is complete). A wish, from open on: the
 * runtime holds an input back only where nobody else waits for what its producers do, and never while a barrier is on
 * its way, so its events may come all the same. */
static inline void ck_op_hold_input(ck_op_ctx *ctx, uint32_t input, bool hold) { ctx->hold_input_fn(ctx, input, hold); }
/* Processing time: the injected wall clock, fixed within one call, recorded for replay. */
static inline int64_t ck_op_now_us(const ck_op_ctx *ctx) { return ctx->now_us_fn(ctx); }
/* Blocking work. The job's done() must end with ck_op_wake(rt) to have the subtask stepped again. Jobs must end in
 * bounded time: the runtime calls close only when every job submitted through here has been done. */
static inline void ck_op_submit_io(ck_op_ctx *ctx, struct ck_io_job *job) { ctx->submit_io_fn(ctx, job); }
static inline void ck_op_wake(ck_op_ctx *ctx, struct ck_op_runtime *rt) { ctx->wake_fn(rt); } /* thread: any */
/* Add to a named counter of this operator ("late_rows", "bad_rows"); names are literals. Shown by status and progress.
 */
static inline void ck_op_count(ck_op_ctx *ctx, const char *counter, uint64_t add) { ctx->count_fn(ctx, counter, add); }
/* Sources with event time: what the watermark waits for now. Shown by progress; cheap enough for every batch. */
static inline void ck_op_note_clock(ck_op_ctx *ctx, const ck_clock_note *note) {
    if (ctx->note_clock_fn) ctx->note_clock_fn(ctx, note);
}
/* Sources of records with keys: those met since the start, for who wonders about a column that is NULL everywhere. */
static inline void ck_op_note_keys(ck_op_ctx *ctx, const ck_keys_note *note) {
    if (ctx->note_keys_fn) ctx->note_keys_fn(ctx, note);
}
/* Sources that follow something: how many records are there that they have not read, and how long ago the newest one
 * they have read was written (0: it is the last one). Shown by progress; now and then is often enough. */
static inline void ck_op_note_lag(ck_op_ctx *ctx, uint64_t records, int64_t us) {
    if (ctx->note_lag_fn) ctx->note_lag_fn(ctx, records, us);
}
/* In pre_snapshot only: the acknowledgement of this checkpoint, and of every later one, waits until as many releases as
 * holds have come (an fsync under way): a later one carries what this one prepared when this one is given up. */
static inline void ck_op_hold_ack(ck_op_ctx *ctx) { ctx->hold_ack_fn(ctx); }
/* Thread: any (it is called from I/O completions). A failure fails the checkpoint, and later ones that have begun, with
 * this error. */
static inline void ck_op_release_ack(ck_op_ctx *ctx, uint64_t checkpoint, ck_status status, const ck_error *error) {
    ctx->release_ack_fn(ctx->rt, checkpoint, status, error);
}

#define CK_WATERMARKS_OWN INT64_MAX

/* Every entry may be NULL unless marked required. Return CK_OK: taken. CK_MORE: call again with the same event, nothing
 * else comes between. CK_AGAIN: the same, after a wake. Anything else fails the subtask with *ctx->error. */
typedef struct ck_operator_vtbl {
    uint32_t struct_bytes;
    /* After state was restored, before the first event. */
    ck_status (*open)(void *self, ck_op_ctx *ctx);
    /* Required. Borrows ev. BATCH and END name their input; END comes once an input. WATERMARK (already the minimum
     * over inputs) and FLUSH (already the greatest) come with input 0. Barriers never come here. After END of the last
     * input the runtime forwards END. */
    ck_status (*on_event)(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx);
    /* A barrier of `checkpoint` has arrived on all inputs: put everything that must survive into state. May emit
     * (flush). */
    ck_status (*pre_snapshot)(void *self, uint64_t checkpoint, ck_op_ctx *ctx);
    /* Checkpoint `checkpoint` is complete and all sinks have committed it (sinks: forget those committables). */
    ck_status (*on_committed)(void *self, uint64_t checkpoint, ck_op_ctx *ctx);
    /* Processing-time wake-up asked for by returning a time here; INT64_MAX: none. Called after each event. */
    int64_t (*next_wake_us)(void *self, ck_op_ctx *ctx);
    ck_status (*on_wake)(void *self, int64_t now_us, ck_op_ctx *ctx);
    /* Once, also after a failed open, when no submitted I/O job is outstanding; frees self. */
    void (*close)(void *self, ck_op_ctx *ctx);
    /* How much older than its watermark the rows are that it still emits (a join in time): what the runtime forwards
     * stays so far behind. Constant, >= 0; not there: 0. CK_WATERMARKS_OWN: it makes its own, and those that come to it
     * end there. */
    int64_t (*watermark_delay_us)(const void *self);
} ck_operator_vtbl;

#define CK_HAS(v, f) ((v)->struct_bytes >= offsetof(__typeof__(*(v)), f) + sizeof((v)->f) && (v)->f != NULL)

#endif
