/* A channel: the queue of events between two subtasks. One producer, one consumer, lock-free. It takes every event it
 * is given: full is an answer, not a refusal (the producer stops after it and is notified when half is free), and a
 * closed channel drops what comes. What bounds it is the memory its batches keep alive.
 *
 *   producer's step --push--> segments of 15 events --pop--> consumer's step
 *                    <-- notify: space, close --      -- notify: events -->
 */
#ifndef CK_RUNTIME_CHANNEL_H
#define CK_RUNTIME_CHANNEL_H

#include "runtime/scheduler.h"
#include "stream/event.h"

typedef struct ck_channel_segment ck_channel_segment;

typedef struct ck_channel {
    /* fixed before anyone runs */
    ck_mem mem;
    size_t bytes_max;
    uint32_t events_max;
    ck_task *producer, *consumer;
    _Atomic uint64_t *ready; /* the consumer's word of ready bits; NULL: none */
    uint64_t ready_bit;
    void (*popped)(void *arg); /* NULL, or called by the consumer for every batch it takes: credits of a wire */
    void *popped_arg;
    _Atomic bool *closed_hint; /* set with `closed`, so that a producer looks at one flag instead of all channels */

    char pad_producer[64]; /* both sides' own fields and the shared ones stand on cache lines of their own */
    ck_channel_segment *tail;

    char pad_consumer[64];
    ck_channel_segment *head;
    uint32_t head_at;

    char pad_shared[64];
    _Atomic(ck_channel_segment *) first; /* the first segment ever, for the consumer to find */
    _Atomic(ck_channel_segment *) spare; /* an emptied segment on its way back to the producer */
    _Atomic uint64_t load;               /* what is queued: events in the upper half, bytes (in units of 64) below */
    _Atomic bool blocked;                /* the producer met CK_FULL and waits for half */
    _Atomic bool closed;                 /* the consumer reads no more */
} ck_channel;

void ck_channel_init(ck_channel *ch, ck_mem mem, size_t bytes_max, uint32_t events_max);
void ck_channel_destroy(ck_channel *ch); /* nobody runs any more; zero is fine */

/* Producer. Takes ev->batch always. CK_FULL: taken, stop after this one. CK_CLOSED: dropped, nobody reads. CK_NOMEM:
 * dropped. */
CK_NODISCARD ck_status ck_channel_push(ck_channel *ch, const ck_event *ev);
/* Producer: still waiting for space. */
static inline bool ck_channel_is_full(const ck_channel *ch) { return atomic_load(&ch->blocked); }
static inline bool ck_channel_is_closed(const ck_channel *ch) { return atomic_load(&ch->closed); }

/* Consumer. false: nothing there. The batch reference is the caller's. */
bool ck_channel_pop(ck_channel *ch, ck_event *out);
/* Consumer: looks at what is queued without taking it. Zeroed it stands before the oldest; `ahead` is how many have
 * been looked at and not popped, and whoever pops lowers it. */
typedef struct ck_channel_cursor {
    ck_channel_segment *segment;
    uint32_t at, ahead;
} ck_channel_cursor;
/* false: nothing further is there. The batch stays the channel's. */
bool ck_channel_peek(ck_channel *ch, ck_channel_cursor *c, ck_event *out);
/* Consumer: drops what is queued, and what may still come, and tells the producer. Idempotent. */
void ck_channel_close(ck_channel *ch);

/* Metrics; any thread. */
size_t ck_channel_bytes(const ck_channel *ch);
uint32_t ck_channel_events(const ck_channel *ch);

#endif
