/* Barrier alignment of one subtask with many input channels: which of them must not be read until the barrier has come
 * on all others, what a late, newer or cancelled barrier means, and when the subtask snapshots. Bookkeeping only: it
 * reads no channel and sends nothing.
 *
 * Rules. A barrier newer than the pending one supersedes it (the older is cancelled downstream); an older one is stale
 * and dropped. A cancel in band drops the pending checkpoint. END counts as having delivered every barrier, those to
 * come included; an ended channel may still deliver barriers and is never blocked.
 *
 * A checkpoint that overtakes (unaligned) does not wait: it is complete at once, and what the channels whose barrier
 * has not come deliver before it is part of the checkpoint. Except for strict channels: those are waited for in any
 * case.
 *
 * Thread: the owning subtask. */
#ifndef CK_CHECKPOINT_ALIGN_H
#define CK_CHECKPOINT_ALIGN_H

#include "stream/event.h"

typedef struct ck_align ck_align;

/* What the subtask does now, in this order. All false and zero: nothing, go on reading. */
typedef struct ck_align_step {
    uint64_t cancelled; /* != 0: forward CANCEL_BARRIER of this checkpoint; it will not be acknowledged from here */
    bool unblock;       /* every channel may be read again (before `block` is looked at) */
    bool block;         /* do not read this event's channel until an unblock */
    bool snapshot;      /* the barrier is complete: pre_snapshot, mark, forward the barrier, write, acknowledge */
    bool overtakes;     /* with snapshot: the barrier that is forwarded says so too */
    bool overtaken;     /* with snapshot: some channels' barriers have not come: ck_align_missed */
    uint64_t checkpoint;
    ck_barrier_kind kind;
    int64_t aligned_us; /* with snapshot: from the first barrier to the last */
} ck_align_step;

/* `last`: the checkpoint restored from (0 = none); barriers at or below it are stale. Channels are
 * 0..channels-1. */
CK_NODISCARD ck_status ck_align_new(ck_mem mem, uint32_t channels, uint64_t last, ck_align **out);
void ck_align_free(ck_align *a); /* NULL is fine */
/* Before anything comes: this channel's barrier is waited for, whatever overtakes. */
void ck_align_set_strict(ck_align *a, uint32_t channel);

/* overtakes: as if ck_align_overtake came with it. */
ck_align_step ck_align_barrier(ck_align *a, uint32_t channel, uint64_t checkpoint, ck_barrier_kind kind, bool overtakes,
                               int64_t now_us);
/* This checkpoint waits for strict channels only, from here on. */
ck_align_step ck_align_overtake(ck_align *a, uint64_t checkpoint, ck_barrier_kind kind, int64_t now_us);
ck_align_step ck_align_cancel(ck_align *a, uint32_t channel, uint64_t checkpoint);
ck_align_step ck_align_end(ck_align *a, uint32_t channel, int64_t now_us);

/* After a step with `overtaken`, until the next one: its barrier has not come. */
bool ck_align_missed(const ck_align *a, uint32_t channel);
bool ck_align_blocked(const ck_align *a, uint32_t channel);
/* The checkpoint being aligned (0 = none) and since when, for stall detection. */
uint64_t ck_align_pending(const ck_align *a, int64_t *since_us);

#endif
