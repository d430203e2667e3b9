/* Inside the chain: the body, shared by its driver (chain.c), the operators' window on it (op_context.c) and the calls
 * around events (chain_calls.c). */
#ifndef CK_RUNTIME_CHAIN_INT_H
#define CK_RUNTIME_CHAIN_INT_H

#include "runtime/chain.h"

typedef struct ck_inbox_item {
    ck_event event;
    uint32_t input;
    bool is_wake; /* no event: a due processing-time wake-up; event.watermark.value is its time */
} ck_inbox_item;

typedef struct ck_output {
    uint32_t port;
    bool closed;
    ck_op_runtime *op; /* in the chain; NULL: exchange */
    ck_exchange *exchange;
} ck_output;

enum { CK_INPUT_ENDED = 1, CK_INPUT_CLOSE_ASKED = 2, CK_INPUT_CLOSED = 4 };

struct ck_chain {
    ck_proc *proc;
    ck_mem mem;
    ck_chain_host host;
    ck_arena arena; /* operators' scratch, reset after every call */
    ck_error error;
    ck_exchange_group exchanges;
    uint64_t *pending; /* operators with something in their inbox */
    uint32_t words;
    uint32_t live;    /* operators neither ended nor dead */
    bool closing;     /* an input or output closed: settle after this call */
    bool broken;      /* no memory where nothing could be returned: fail after this call */
    bool full;        /* an exchange has a full target */
    uint32_t push_on; /* so many events more in spite of that */
    bool source_emitted;
    bool has_wakes; /* some operator may ask for wake-ups */
    int64_t now_us; /* wall clock of this call; INT64_MIN: not read yet */
    ck_sweep_kind sweep;
    uint64_t sweep_checkpoint;
    uint32_t sweep_at; /* how many operators are done */
    uint32_t events_left;
    uint32_t rows_left;
    int64_t step_end_us;
    uint32_t op_count;
    ck_op_runtime ops[];
};

/* The functions behind ck_op_ctx; sets all its pointers. */
void ck_op_context_init(ck_op_runtime *op);

CK_NODISCARD ck_status ck_inbox_push(ck_op_runtime *op, uint32_t input, const ck_event *ev, bool is_wake);
void ck_inbox_pop(ck_op_runtime *op); /* the front, with its batch */
void ck_inbox_clear(ck_op_runtime *op);

/* To every output, whatever its port. */
CK_NODISCARD ck_status ck_op_send_control(ck_op_runtime *op, const ck_event *ev);

/* Around every call of an operator. may_wait: it may answer that it waits (CK_AGAIN, CK_POLL_IDLE): wakes count from
 * here on. Other calls leave a wake that has come to the call it is for. */
void ck_chain_before_call(ck_op_runtime *op, bool may_wait);
/* CK_OK, CK_MORE and CK_AGAIN as they are; anything else with its place filled in. Settles closings. */
ck_status ck_chain_after_call(ck_op_runtime *op, ck_status s);
void ck_chain_mark_ended(ck_op_runtime *op);
/* The next operator of the sweep; CK_OK: done, go on. */
ck_status ck_chain_sweep_one(ck_chain *c);

#endif
