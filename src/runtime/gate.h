/* The input gate of a subtask whose head is no source: all channels of all its inputs, merged into one stream of
 * events. It takes the minimum of watermarks over the channels that are neither idle nor ended, the greatest flush (and
 * that of the slowest channel once nothing waits any more, when rows came before it: there may be no other), one END an
 * input, and aligns barriers through checkpoint/align.h. Channels take turns, one event each.
 *
 * Thread: the subtask's. */
#ifndef CK_RUNTIME_GATE_H
#define CK_RUNTIME_GATE_H

#include "checkpoint/align.h"
#include "runtime/channel.h"

typedef struct ck_gate_config {
    ck_proc *proc;
    ck_mem mem;                  /* CK_MEM_PLAN */
    uint32_t input_count;        /* of the head operator */
    const uint32_t *channels_of; /* how many channels each input has */
    size_t bytes_max;            /* of each channel */
    uint32_t events_max;         /* of each channel */
    ck_mem queue_mem;            /* CK_MEM_QUEUE */
    uint64_t restored;           /* checkpoint restored from, 0 = none */
    const bool *may_hold;        /* by input: its producers feed nothing else; NULL: none */
    bool flush_each;             /* batch_rows = 1: every FLUSH counts, whatever its number */
    ck_task *consumer;
} ck_gate_config;

typedef enum ck_gate_result {
    CK_GATE_EMPTY, /* nothing until notified (or everything that has something is held by alignment) */
    CK_GATE_EVENT, /* BATCH, END of *input; WATERMARK, FLUSH for input 0; BARRIER: complete; CANCEL_BARRIER: forward */
} ck_gate_result;

typedef struct ck_gate ck_gate;

CK_NODISCARD ck_status ck_gate_new(const ck_gate_config *cfg, ck_gate **out, ck_error *err);
void ck_gate_free(ck_gate *g); /* nobody runs any more; NULL is fine */

/* Channel `index` of `input`, for its producer: set `producer` and `closed_hint`, then push. */
ck_channel *ck_gate_channel(ck_gate *g, uint32_t input, uint32_t index);

/* The next event. The batch reference is the caller's. */
ck_gate_result ck_gate_next(ck_gate *g, uint32_t *input, ck_event *out);
/* Nothing more is wanted from an input: its channels are closed and count as ended, without an END event. */
void ck_gate_close_input(ck_gate *g, uint32_t input);
/* Channels of this input are not read, or again, if the input may be held; while a barrier is being aligned all are. */
void ck_gate_hold_input(ck_gate *g, uint32_t input, bool hold);
/* All channels have ended or are closed and empty of barriers to come: the job triggers this subtask directly. */
bool ck_gate_is_detached(const ck_gate *g);
/* A trigger for a detached gate. false: this barrier has been handled. */
bool ck_gate_trigger(ck_gate *g, uint64_t checkpoint, ck_barrier_kind kind, ck_event *out);

/* For progress: what is queued here. Any thread. */
size_t ck_gate_bytes(const ck_gate *g);

#endif
