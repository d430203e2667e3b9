/* The input gate of a subtask whose head is no source: all channels of all its inputs, merged into one stream of
 * events. It takes the minimum of watermarks over the channels that are neither idle nor ended, the greatest flush (and
 * that of the slowest channel once nothing waits any more, when rows came before it: there may be no other), one END an
 * input, and aligns barriers through checkpoint/align.h. Channels take turns, one event each.
 *
 * A checkpoint that overtakes does not wait for the barriers of channels that are not strict: from its BARRIER event on
 * the gate records what those channels still bring before it (queued or yet to come, looked at without being taken),
 * until the barrier has been seen on each. What was recorded is replayed after a restore, before anything is read.
 *
 * Thread: the subtask's. */
#ifndef CK_RUNTIME_GATE_H
#define CK_RUNTIME_GATE_H

#include "checkpoint/align.h"
#include "runtime/channel.h"
#include "runtime/inflight.h"

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
    const bool *strict;          /* by input: its barriers are not overtaken; NULL: none is */
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

/* ---- checkpoints that overtake ---- */

/* The job's word that this checkpoint overtakes. Its BARRIER comes out of ck_gate_next, after what has been taken. */
void ck_gate_overtake(ck_gate *g, uint64_t checkpoint, ck_barrier_kind kind);
/* An overtaking barrier waits to come out: what holds up the chain holds up the checkpoint. */
bool ck_gate_is_urgent(const ck_gate *g);

typedef enum ck_recording {
    CK_RECORDING_NONE,
    CK_RECORDING_OPEN,
    CK_RECORDING_WHOLE,
    CK_RECORDING_BROKEN
} ck_recording;
/* How far the recording of this checkpoint is; looks at what has come. NONE: nothing was overtaken here. BROKEN: the
 * checkpoint was given up elsewhere, an input was closed, or memory ran out. */
ck_recording ck_gate_recording(ck_gate *g, uint64_t checkpoint);
/* Ends the recording, whole or not, and hands over what there is (NULL: nothing). */
ck_inflight *ck_gate_take_recording(ck_gate *g, uint64_t checkpoint);

/* Before anyone runs: a further channel of an input that is read before all others and then gone, with what was
 * recorded of one channel in another life. `flush`: a FLUSH follows when the last is through. CK_NOMEM. */
CK_NODISCARD ck_status ck_gate_add_replay(ck_gate *g, uint32_t input, int64_t watermark, bool idle, bool flush,
                                          ck_channel **out);
/* Before anyone runs: what all channels of an input that is not strict had told at least. */
void ck_gate_restore_watermark(ck_gate *g, uint32_t input, int64_t watermark);

/* For progress: what is queued here. Any thread. */
size_t ck_gate_bytes(const ck_gate *g);

#endif
