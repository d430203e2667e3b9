/* A chain: the operators of one vertex in one subtask, head first. Emitting puts an event into the inbox of the
 * operator it goes to (or into an exchange) and returns; the driver always runs the deepest operator that has
 * something, so nothing recurses, an inbox holds about one event, and an operator that returns CK_MORE goes on only
 * when everything it has said so far has been worked off.
 *
 *   gate or source --> [inbox op 0] --emit--> [inbox op 1] --emit--> [inbox op 2] --> exchange
 *                                     \--port 1--> exchange
 *
 * Watermarks, flushes and ends go on after the operator has taken them. An operator that wants no more of an input gets
 * its END at once; one whose outputs are all closed is dead and closes its own inputs, up to the head.
 *
 * Thread: the subtask's, unless a function says any. */
#ifndef CK_RUNTIME_CHAIN_H
#define CK_RUNTIME_CHAIN_H

#include "runtime/exchange.h"
#include "runtime/op_metrics.h"

enum { CK_INBOX_EVENTS_MAX = 1 << 16, CK_OP_COUNTERS_MAX = 16 };

typedef struct ck_chain ck_chain;
typedef struct ck_op_runtime ck_op_runtime;

/* What the chain needs of the subtask around it. */
typedef struct ck_chain_host {
    void *arg;
    ck_task *task;                                            /* notified by wakes and completions */
    void (*close_input)(void *arg, uint32_t input);           /* of the head; never for a source */
    void (*hold_input)(void *arg, uint32_t input, bool hold); /* of the head; NULL: nothing is held back */
    void (*hold_ack)(void *arg);                              /* of the checkpoint whose pre_snapshot runs */
    void (*release_ack)(void *arg, uint64_t checkpoint, ck_status status, const ck_error *error); /* thread: any */
    void (*io_begin)(void *arg); /* the host must outlive the job ... */
    void (*io_end)(void *arg);   /* ... until here; thread: any */
} ck_chain_host;

typedef struct ck_chain_counter {
    _Atomic(const char *) name; /* a literal; NULL: free */
    ck_op_counter of;
} ck_chain_counter;

/* One operator in place. Members not marked are the chain's. */
struct ck_op_runtime {
    ck_op_ctx ctx; /* the maker sets proc, settings, uid, subtask, parallelism, key_groups, mem, state */
    const ck_op_desc *desc;
    void *self;
    bool restored_ended; /* it had ended when the state restored from was taken: it is not to end again */

    ck_chain *chain;
    uint32_t index;
    ck_op_runtime *from; /* its producer in the chain; NULL: the head */
    struct ck_inbox {
        struct ck_inbox_item *items; /* ring */
        uint32_t first, count, capacity;
    } inbox;
    struct ck_output *outputs;
    uint32_t output_count, output_capacity;
    uint8_t *inputs; /* flags of each input */
    uint32_t open_inputs;
    bool in_front; /* its front event has been begun (MORE, AGAIN) */
    bool waiting;  /* AGAIN: not before a wake */
    bool opened, closed, ended, dead;
    int64_t wake_us; /* wall clock; INT64_MAX: none */
    int64_t out_watermark;
    bool out_idle;
    _Atomic bool woken;
    _Atomic uint32_t io_jobs; /* submitted and not done */
    ck_op_counter rows_in, rows_out, batches_in;
    ck_chain_counter counters[CK_OP_COUNTERS_MAX];
    ck_op_clock clock; /* of a source with event time */
    struct ck_op_keys {
        bool any; /* records with keys were read */
        uint64_t met;
        uint32_t like;
        char spelled[64]; /* "": none */
    } keys; /* of a source; read when it has ended */
    ck_op_lag lag;     /* of a source that follows something */
};

typedef enum ck_chain_result {
    CK_CHAIN_IDLE,   /* every inbox is empty, the sweep is over */
    CK_CHAIN_SPENT,  /* the quantum */
    CK_CHAIN_FULL,   /* an exchange has a full target */
    CK_CHAIN_WAIT,   /* an operator waits for a wake */
    CK_CHAIN_FAILED, /* ck_chain_error */
} ck_chain_result;

typedef enum ck_sweep_kind {
    CK_SWEEP_NONE,
    CK_SWEEP_OPEN,         /* deepest first: a consumer is open before its producer can emit */
    CK_SWEEP_PRE_SNAPSHOT, /* head first: what one flushes the next still takes */
    CK_SWEEP_COMMITTED,
} ck_sweep_kind;

/* Zeroed ops with desc, self and ctx's settings follow by ck_chain_op; then edges; then open. */
CK_NODISCARD ck_status ck_chain_new(ck_proc *proc, ck_mem mem, ck_mem queue_mem, uint32_t op_count,
                                    const ck_chain_host *host, ck_chain **out, ck_error *err);
/* Frees inboxes and exchanges; operators were closed before (ck_chain_close). NULL is fine. */
void ck_chain_free(ck_chain *c);

ck_op_runtime *ck_chain_op(ck_chain *c, uint32_t index);
uint32_t ck_chain_op_count(const ck_chain *c);
ck_exchange_group *ck_chain_exchanges(ck_chain *c);
/* After ctx.input_count was set. */
CK_NODISCARD ck_status ck_chain_init_op(ck_chain *c, uint32_t index);
CK_NODISCARD ck_status ck_chain_connect(ck_chain *c, uint32_t from, uint32_t port, uint32_t to);
CK_NODISCARD ck_status ck_chain_connect_exchange(ck_chain *c, uint32_t from, uint32_t port, ck_exchange *x);

/* ---- running ---- */

/* A new step: its budget, and whether closed or emptied channels change anything. */
void ck_chain_begin_step(ck_chain *c, const ck_quantum *q);
/* Full targets do not stop the chain for so many events: an overtaking barrier waits behind them. 0: they do again. */
void ck_chain_push_on(ck_chain *c, uint32_t events);
/* Works off inboxes. */
ck_chain_result ck_chain_run(ck_chain *c);
bool ck_chain_spent(const ck_chain *c);
void ck_chain_count_input(ck_chain *c); /* taking input is work too */

/* Hands the head an event (takes the batch). */
CK_NODISCARD ck_status ck_chain_offer(ck_chain *c, uint32_t input, const ck_event *ev);
/* The same for the only input of an operator behind others, before anything else comes to it. */
CK_NODISCARD ck_status ck_chain_replay(ck_chain *c, uint32_t op, const ck_event *ev);
/* A barrier or its cancellation, on to every exchange. */
CK_NODISCARD ck_status ck_chain_forward(ck_chain *c, const ck_event *ev);
/* What exchanges have gathered goes out: the source idles, or the time is up. */
CK_NODISCARD ck_status ck_chain_flush_exchanges(ck_chain *c);

/* Calls an entry of every operator in turn, with the inboxes empty between two. Begin, then run until CK_CHAIN_IDLE. */
void ck_chain_sweep(ck_chain *c, ck_sweep_kind kind, uint64_t checkpoint);
ck_sweep_kind ck_chain_sweeping(const ck_chain *c);

/* Sources. poll: CK_OK or a failure. */
bool ck_chain_has_source(const ck_chain *c);
CK_NODISCARD ck_status ck_chain_poll(ck_chain *c, ck_poll_result *result, int64_t *until_us);
CK_NODISCARD ck_status ck_chain_add_split(ck_chain *c, const ck_split *split);
CK_NODISCARD ck_status ck_chain_snapshot_source(ck_chain *c, ck_split_list *out);
/* After opening: operators that had ended before the restore say END to those that had not, and are not called again.
 */
CK_NODISCARD ck_status ck_chain_end_restored(ck_chain *c);
CK_NODISCARD ck_status ck_chain_end_source(ck_chain *c);                 /* polled to its end: END goes out */
CK_NODISCARD ck_status ck_chain_flush_source(ck_chain *c, uint64_t seq); /* FLUSH goes out */
bool ck_chain_take_wake(ck_chain *c);                                    /* the source was woken since the last call */
/* Whether a batch has been emitted by the source since the last call. */
bool ck_chain_source_emitted(ck_chain *c);

/* Processing time: INT64_MAX, or the earliest wake-up an operator wants (wall clock). due queues those at or before
 * now. */
int64_t ck_chain_next_wake(const ck_chain *c);
CK_NODISCARD ck_status ck_chain_wake_due(ck_chain *c, int64_t wall_us);

/* Every operator has ended or is dead: END is out. */
bool ck_chain_is_finished(const ck_chain *c);

/* Calls every operator's close, once; false: some job of an operator still runs (a notification will come). Also after
 * a failure and of a chain that never opened. */
bool ck_chain_close(ck_chain *c);

ck_error *ck_chain_error(ck_chain *c); /* with the operator's uid and subtask as place */

#endif
