/* See channel.h. Memory order, in one place:
 *  - a segment's `filled` is stored with release after the event is written and loaded with acquire before it is read;
 *  - push sets the consumer's ready bit and notifies it, both read-modify-writes, after `filled`;
 *  - `blocked`, `closed` and `load` are sequentially consistent: the producer sets blocked and then looks at the load
 *    again, the consumer lowers the load and then looks at blocked, so one of them sees the other. */
#include "runtime/channel.h"

enum { SEGMENT_EVENTS = 15, UNIT = 64 };

typedef struct item {
    ck_event event;
    uint64_t load; /* what it adds to the channel's */
} item;

struct ck_channel_segment {
    _Atomic(ck_channel_segment *) next;
    _Atomic uint32_t filled;
    item items[SEGMENT_EVENTS];
};

#define ONE_EVENT      (1ULL << 32)
#define LOAD_BYTES(l)  ((size_t)((l)&0xffffffffULL) * UNIT)
#define LOAD_EVENTS(l) ((uint32_t)((l) >> 32))

void ck_channel_init(ck_channel *ch, ck_mem mem, size_t bytes_max, uint32_t events_max) {
    memset(ch, 0, sizeof *ch);
    ch->mem = mem;
    ch->bytes_max = bytes_max;
    ch->events_max = events_max;
}

static void free_segment(ck_channel *ch, ck_channel_segment *s) { ck_free(ch->mem, s, sizeof *s); }

static void drop_all(ck_channel *ch) {
    ck_event ev;
    while (ck_channel_pop(ch, &ev))
        if (ev.kind == CK_EVENT_BATCH) ck_batch_unref(&ev.batch);
}

void ck_channel_destroy(ck_channel *ch) {
    if (!ch->mem.budget) return;
    ch->producer = NULL; /* may be gone */
    ch->popped = NULL;
    drop_all(ch);
    ck_channel_segment *first = ch->head ? ch->head : atomic_load(&ch->first);
    free_segment(ch, first);
    free_segment(ch, atomic_load(&ch->spare));
    memset(ch, 0, sizeof *ch);
}

/* ---- producer ---- */

/* The segment the next event goes to, linked but not yet visible as filled. NULL without memory. */
static ck_channel_segment *writable_segment(ck_channel *ch) {
    ck_channel_segment *tail = ch->tail;
    if (tail && atomic_load_explicit(&tail->filled, memory_order_relaxed) < SEGMENT_EVENTS) return tail;
    ck_channel_segment *s = atomic_exchange_explicit(&ch->spare, NULL, memory_order_acquire);
    if (!s) s = ck_alloc(ch->mem, sizeof *s);
    if (!s) return NULL;
    atomic_store_explicit(&s->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&s->filled, 0, memory_order_relaxed);
    if (tail)
        atomic_store_explicit(&tail->next, s, memory_order_release);
    else
        atomic_store_explicit(&ch->first, s, memory_order_release);
    ch->tail = s;
    return s;
}

static bool over(const ck_channel *ch, uint64_t load) {
    return LOAD_BYTES(load) >= ch->bytes_max || LOAD_EVENTS(load) >= ch->events_max;
}
static bool half_free(const ck_channel *ch, uint64_t load) {
    return LOAD_BYTES(load) <= ch->bytes_max / 2 && LOAD_EVENTS(load) <= ch->events_max / 2;
}

static uint64_t load_of(const ck_event *ev) {
    if (ev->kind != CK_EVENT_BATCH) return ONE_EVENT + 1;
    size_t units = ck_batch_pinned_bytes(ev->batch) / UNIT + 1;
    return ONE_EVENT + (units < 0x00ffffff ? units : 0x00ffffff); /* a GiB at most: sums of many cannot carry over */
}

static ck_status drop(const ck_event *ev, ck_status s) {
    if (ev->kind == CK_EVENT_BATCH) {
        ck_batch *b = ev->batch;
        ck_batch_unref(&b);
    }
    return s;
}

ck_status ck_channel_push(ck_channel *ch, const ck_event *ev) {
    if (atomic_load(&ch->closed)) return drop(ev, CK_CLOSED);
    ck_channel_segment *s = writable_segment(ch);
    if (!s) return drop(ev, CK_NOMEM);
    uint64_t load = load_of(ev);
    uint32_t at = atomic_load_explicit(&s->filled, memory_order_relaxed);
    s->items[at] = (item){*ev, load};
    uint64_t total = atomic_fetch_add(&ch->load, load) + load; /* before it can be popped */
    atomic_store_explicit(&s->filled, at + 1, memory_order_release);
    if (ch->ready) atomic_fetch_or(ch->ready, ch->ready_bit);
    if (ch->consumer) ck_task_notify(ch->consumer);
    if (!over(ch, total)) return CK_OK;
    atomic_store(&ch->blocked, true);
    if (half_free(ch, atomic_load(&ch->load)) || atomic_load(&ch->closed)) {
        atomic_store(&ch->blocked, false); /* the consumer was faster and may not have seen the flag */
        return CK_OK;
    }
    return CK_FULL;
}

/* ---- consumer ---- */

static void give_back(ck_channel *ch, ck_channel_segment *s) {
    ck_channel_segment *had = atomic_exchange_explicit(&ch->spare, s, memory_order_acq_rel);
    if (had) free_segment(ch, had);
}

/* The segment with the next unread event, or NULL. */
static ck_channel_segment *readable_segment(ck_channel *ch) {
    if (!ch->head) ch->head = atomic_load_explicit(&ch->first, memory_order_acquire);
    ck_channel_segment *s = ch->head;
    if (!s) return NULL;
    if (ch->head_at == SEGMENT_EVENTS) {
        ck_channel_segment *next = atomic_load_explicit(&s->next, memory_order_acquire);
        if (!next) return NULL;
        ch->head = next;
        ch->head_at = 0;
        give_back(ch, s);
        s = next;
    }
    return ch->head_at < atomic_load_explicit(&s->filled, memory_order_acquire) ? s : NULL;
}

bool ck_channel_pop(ck_channel *ch, ck_event *out) {
    ck_channel_segment *s = readable_segment(ch);
    if (!s) return false;
    *out = s->items[ch->head_at].event;
    uint64_t load = s->items[ch->head_at].load;
    ch->head_at++;
    uint64_t left = atomic_fetch_sub(&ch->load, load) - load;
    if (atomic_load(&ch->blocked) && half_free(ch, left)) {
        atomic_store(&ch->blocked, false);
        if (ch->producer) ck_task_notify(ch->producer);
    }
    if (ch->popped && out->kind == CK_EVENT_BATCH) ch->popped(ch->popped_arg);
    return true;
}

/* With nothing ahead the segment may be gone: then it begins anew at the head. Otherwise the head is at or before it.
 */
bool ck_channel_peek(ck_channel *ch, ck_channel_cursor *c, ck_event *out) {
    if (c->ahead == 0) {
        c->segment = readable_segment(ch);
        c->at = ch->head_at;
        if (!c->segment) return false;
    } else if (c->at == SEGMENT_EVENTS) {
        ck_channel_segment *next = atomic_load_explicit(&c->segment->next, memory_order_acquire);
        if (!next) return false;
        c->segment = next;
        c->at = 0;
    }
    if (c->at >= atomic_load_explicit(&c->segment->filled, memory_order_acquire)) return false;
    *out = c->segment->items[c->at++].event;
    c->ahead++;
    return true;
}

void ck_channel_close(ck_channel *ch) {
    bool was = atomic_exchange(&ch->closed, true);
    drop_all(ch);
    if (was) return;
    atomic_store(&ch->blocked, false);
    if (ch->closed_hint) atomic_store(ch->closed_hint, true);
    if (ch->producer) ck_task_notify(ch->producer);
}

size_t ck_channel_bytes(const ck_channel *ch) {
    return LOAD_BYTES(atomic_load_explicit(&ch->load, memory_order_relaxed));
}
uint32_t ck_channel_events(const ck_channel *ch) {
    return LOAD_EVENTS(atomic_load_explicit(&ch->load, memory_order_relaxed));
}
