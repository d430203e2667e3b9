/* See gate.h. Producers set a channel's bit in `ready` when they push; the gate moves those bits to `local` and clears
 * a local bit only after it found the channel empty, so looking for the next event touches words, not channels. */
#include "runtime/gate.h"

#include "os/clock.h"

enum { PENDING_MAX = 8 };

typedef struct gate_channel {
    ck_channel queue;
    uint32_t input;
    bool idle, ended, closed;
    int64_t watermark;
} gate_channel;

typedef struct gate_input {
    uint32_t first_channel, channel_count;
    uint32_t open; /* channels that have not ended */
    bool closed;   /* by us: no END comes out */
    bool may_hold;
} gate_input;

typedef struct pending_event {
    uint32_t input;
    ck_event event;
} pending_event;

struct ck_gate {
    ck_gate_config cfg;
    uint32_t channel_count, words;
    gate_channel *channels;
    gate_input *inputs;
    _Atomic uint64_t *ready; /* producers */
    uint64_t *local;         /* channels that may have something */
    uint64_t *held;          /* channels that alignment holds back */
    uint64_t *unwanted;      /* channels of inputs the operator would not have yet */
    bool aligning;           /* then those are read too: their barrier is behind what is in them */
    uint32_t next;           /* whose turn it is */
    uint32_t closed_count;
    ck_align *align;
    int64_t watermark; /* last told */
    bool idle;         /* last told */
    uint64_t flush_seq;
    bool unflushed; /* a batch has been given out since the last FLUSH */
    bool owed;      /* and a FLUSH behind it came that was no greater than those before: told once all is quiet */
    uint64_t last_barrier; /* completed by alignment or by trigger */
    pending_event pending[PENDING_MAX];
    uint32_t pending_first, pending_count;
};

ck_channel *ck_gate_channel(ck_gate *g, uint32_t input, uint32_t index) {
    CK_ASSERT(input < g->cfg.input_count && index < g->inputs[input].channel_count);
    return &g->channels[g->inputs[input].first_channel + index].queue;
}

/* ---- making ---- */

static bool allocate(ck_gate *g) {
    g->channels = ck_alloc_zero(g->cfg.mem, g->channel_count * sizeof *g->channels);
    g->inputs = ck_alloc_zero(g->cfg.mem, g->cfg.input_count * sizeof *g->inputs);
    g->ready = ck_alloc_zero(g->cfg.mem, g->words * sizeof *g->ready);
    g->local = ck_alloc_zero(g->cfg.mem, g->words * sizeof *g->local);
    g->held = ck_alloc_zero(g->cfg.mem, g->words * sizeof *g->held);
    g->unwanted = ck_alloc_zero(g->cfg.mem, g->words * sizeof *g->unwanted);
    return g->channels && g->inputs && g->ready && g->local && g->held && g->unwanted &&
           ck_align_new(g->cfg.mem, g->channel_count, g->cfg.restored, &g->align) == CK_OK;
}

static void connect(ck_gate *g, const uint32_t *channels_of) {
    uint32_t c = 0;
    for (uint32_t i = 0; i < g->cfg.input_count; i++) {
        g->inputs[i] = (gate_input){.first_channel = c, .channel_count = channels_of[i], .open = channels_of[i]};
        g->inputs[i].may_hold = g->cfg.may_hold && g->cfg.may_hold[i];
        for (uint32_t k = 0; k < channels_of[i]; k++, c++) {
            gate_channel *ch = &g->channels[c];
            ch->input = i;
            ch->watermark = CK_WATERMARK_MIN;
            ck_channel_init(&ch->queue, g->cfg.queue_mem, g->cfg.bytes_max, g->cfg.events_max);
            ch->queue.consumer = g->cfg.consumer;
            ch->queue.ready = &g->ready[c / 64];
            ch->queue.ready_bit = 1ULL << (c % 64);
        }
    }
}

ck_status ck_gate_new(const ck_gate_config *cfg, ck_gate **out, ck_error *err) {
    ck_gate *g = ck_alloc_zero(cfg->mem, sizeof *g);
    if (!g) return ck_nomem(err, cfg->mem, sizeof *g);
    g->cfg = *cfg;
    for (uint32_t i = 0; i < cfg->input_count; i++) g->channel_count += cfg->channels_of[i];
    g->words = (g->channel_count + 63) / 64;
    g->watermark = CK_WATERMARK_MIN;
    g->last_barrier = cfg->restored;
    if (!allocate(g)) {
        size_t bytes = g->channel_count * sizeof *g->channels;
        ck_gate_free(g);
        return ck_nomem(err, cfg->mem, bytes);
    }
    connect(g, cfg->channels_of);
    *out = g;
    return CK_OK;
}

void ck_gate_free(ck_gate *g) {
    if (!g) return;
    ck_mem mem = g->cfg.mem;
    for (uint32_t i = 0; i < g->channel_count && g->channels; i++) ck_channel_destroy(&g->channels[i].queue);
    ck_align_free(g->align);
    ck_free(mem, g->channels, g->channel_count * sizeof *g->channels);
    ck_free(mem, g->inputs, g->cfg.input_count * sizeof *g->inputs);
    ck_free(mem, (void *)(uintptr_t)g->ready, g->words * sizeof *g->ready);
    ck_free(mem, g->local, g->words * sizeof *g->local);
    ck_free(mem, g->held, g->words * sizeof *g->held);
    ck_free(mem, g->unwanted, g->words * sizeof *g->unwanted);
    ck_free(mem, g, sizeof *g);
}

/* ---- what one event of one channel makes ---- */

static void say(ck_gate *g, uint32_t input, ck_event ev) {
    CK_ASSERT(g->pending_count < PENDING_MAX);
    g->pending[(g->pending_first + g->pending_count++) % PENDING_MAX] = (pending_event){input, ev};
}

/* The minimum over channels that take part; it is told when it rises, or when the last one left or the first returned.
 * With all idle it stays. */
static void update_watermark(ck_gate *g) {
    int64_t least = CK_WATERMARK_MAX;
    bool active = false, open = false;
    for (uint32_t c = 0; c < g->channel_count; c++) {
        const gate_channel *ch = &g->channels[c];
        open |= !ch->ended;
        if (ch->idle || ch->ended) continue;
        active = true;
        if (ch->watermark < least) least = ch->watermark;
    }
    if (!open) return; /* END says it */
    bool idle = !active, rises = active && least > g->watermark;
    if (rises) g->watermark = least;
    if (!rises && idle == g->idle) return;
    g->idle = idle;
    ck_event ev = ck_event_watermark(g->watermark, idle);
    pending_event *last =
        g->pending_count ? &g->pending[(g->pending_first + g->pending_count - 1) % PENDING_MAX] : NULL;
    if (last && g->pending_count >= PENDING_MAX / 2 && last->event.kind == CK_EVENT_WATERMARK)
        last->event = ev; /* many channels may end before one is told */
    else
        say(g, 0, ev);
}

static void set_bit(uint64_t *words, uint32_t i) { words[i / 64] |= 1ULL << (i % 64); }

static void follow_alignment(ck_gate *g, uint32_t c, ck_align_step st) {
    if (st.cancelled) say(g, 0, (ck_event){.kind = CK_EVENT_CANCEL_BARRIER, .barrier = {.checkpoint = st.cancelled}});
    if (st.unblock) memset(g->held, 0, g->words * sizeof *g->held);
    if (st.block) set_bit(g->held, c);
    g->aligning = ck_align_pending(g->align, NULL) != 0;
    if (!st.snapshot) return;
    g->last_barrier = st.checkpoint;
    say(g, 0, ck_event_barrier(st.checkpoint, st.kind));
}

static void channel_ended(ck_gate *g, uint32_t c) {
    gate_channel *ch = &g->channels[c];
    if (ch->ended) return;
    ch->ended = true;
    update_watermark(g);
    if (--g->inputs[ch->input].open == 0) say(g, ch->input, ck_event_end());
    follow_alignment(g, c, ck_align_end(g->align, c, ck_mono_us(g->cfg.proc)));
}

static void channel_watermark(ck_gate *g, gate_channel *ch, const ck_event *ev) {
    bool may_matter = ch->watermark <= g->watermark || ch->idle || ev->watermark.idle;
    if (ev->watermark.value > ch->watermark) ch->watermark = ev->watermark.value;
    if (!may_matter) return; /* another channel holds the minimum */
    ch->idle = false;
    update_watermark(g);
    if (!ev->watermark.idle) return;
    ch->idle = true;
    update_watermark(g);
}

static void say_flush(ck_gate *g) {
    g->unflushed = g->owed = false;
    say(g, 0, ck_event_flush(g->flush_seq));
}

static void channel_active(ck_gate *g, gate_channel *ch) {
    if (!ch->idle) return;
    ch->idle = false;
    update_watermark(g);
}

static void take(ck_gate *g, uint32_t c, const ck_event *ev) {
    gate_channel *ch = &g->channels[c];
    int64_t now_us;
    switch (ev->kind) {
    case CK_EVENT_BATCH:
        channel_active(g, ch);
        g->unflushed = true;
        say(g, ch->input, *ev);
        break;
    case CK_EVENT_WATERMARK: channel_watermark(g, ch, ev); break;
    case CK_EVENT_FLUSH:
        if (g->cfg.flush_each && ev->flush_seq <= g->flush_seq)
            g->flush_seq++;
        else if (ev->flush_seq > g->flush_seq)
            g->flush_seq = ev->flush_seq;
        else {
            g->owed = g->unflushed;
            break;
        }
        say_flush(g);
        break;
    case CK_EVENT_BARRIER:
        now_us = ck_mono_us(g->cfg.proc);
        follow_alignment(g, c, ck_align_barrier(g->align, c, ev->barrier.checkpoint, ev->barrier.kind, now_us));
        break;
    case CK_EVENT_CANCEL_BARRIER: follow_alignment(g, c, ck_align_cancel(g->align, c, ev->barrier.checkpoint)); break;
    case CK_EVENT_END: channel_ended(g, c); break;
    case CK_EVENT_ROUTE:
    case CK_EVENT_DRAIN: CK_ASSERT(false && "no producer sends these yet"); break;
    }
}

/* ---- whose turn it is ---- */

static bool collect_ready(ck_gate *g) {
    bool any = false;
    for (uint32_t w = 0; w < g->words; w++) {
        if (!atomic_load_explicit(&g->ready[w], memory_order_relaxed)) continue; /* a notification follows each bit */
        uint64_t bits = atomic_exchange(&g->ready[w], 0);
        g->local[w] |= bits;
        any |= bits != 0;
    }
    return any;
}

/* The first channel at or after `from`, in turn, that may have something and is not held. */
static bool find_ready(const ck_gate *g, uint32_t from, uint32_t *out) {
    for (uint32_t i = 0; i <= g->words; i++) {
        uint32_t w = (from / 64 + i) % g->words;
        uint64_t bits = g->local[w] & ~g->held[w];
        if (!g->aligning) bits &= ~g->unwanted[w];
        if (i == 0) bits &= ~0ULL << (from % 64);
        if (i == g->words) bits &= ~(~0ULL << (from % 64)); /* the word we began in, its lower part */
        if (!bits) continue;
        *out = w * 64 + (uint32_t)__builtin_ctzll(bits);
        return true;
    }
    return false;
}

/* One event of one channel has been taken, or there is none. */
static bool take_one(ck_gate *g) {
    for (;;) {
        uint32_t c;
        if (!find_ready(g, g->next, &c)) {
            if (collect_ready(g)) continue;
            return false;
        }
        ck_event ev;
        if (g->channels[c].closed) {
            ck_channel_close(&g->channels[c].queue); /* drops what came late */
            g->local[c / 64] &= ~(1ULL << (c % 64));
        } else if (ck_channel_pop(&g->channels[c].queue, &ev)) {
            g->next = (c + 1) % g->channel_count;
            take(g, c, &ev);
            return true;
        } else {
            g->local[c / 64] &= ~(1ULL << (c % 64));
        }
    }
}

ck_gate_result ck_gate_next(ck_gate *g, uint32_t *input, ck_event *out) {
    while (!g->pending_count) {
        if (take_one(g)) continue;
        if (!g->owed) return CK_GATE_EMPTY;
        say_flush(g);
    }
    pending_event *p = &g->pending[g->pending_first];
    g->pending_first = (g->pending_first + 1) % PENDING_MAX;
    g->pending_count--;
    *input = p->input;
    *out = p->event;
    return CK_GATE_EVENT;
}

void ck_gate_hold_input(ck_gate *g, uint32_t input, bool hold) {
    const gate_input *in = &g->inputs[input];
    if (!in->may_hold) return;
    for (uint32_t c = in->first_channel; c < in->first_channel + in->channel_count; c++) {
        uint64_t bit = 1ULL << (c % 64);
        g->unwanted[c / 64] = hold ? g->unwanted[c / 64] | bit : g->unwanted[c / 64] & ~bit;
    }
}

/* ---- closing ---- */

/* Batches of the input that wait here are dropped; other events of it no longer matter either. */
static void drop_pending(ck_gate *g, uint32_t input) {
    uint32_t n = g->pending_count;
    for (uint32_t i = 0; i < n; i++) {
        pending_event p = g->pending[g->pending_first];
        g->pending_first = (g->pending_first + 1) % PENDING_MAX;
        g->pending_count--;
        bool data = p.event.kind == CK_EVENT_BATCH || p.event.kind == CK_EVENT_END;
        if (!data || p.input != input)
            say(g, p.input, p.event);
        else if (p.event.kind == CK_EVENT_BATCH)
            ck_batch_unref(&p.event.batch);
    }
}

void ck_gate_close_input(ck_gate *g, uint32_t input) {
    gate_input *in = &g->inputs[input];
    if (in->closed) return;
    in->closed = true;
    drop_pending(g, input);
    for (uint32_t c = in->first_channel; c < in->first_channel + in->channel_count; c++) {
        g->channels[c].closed = g->channels[c].ended = true;
        g->closed_count++;
        ck_channel_close(&g->channels[c].queue);
    }
    in->open = 0;
    update_watermark(g);
    int64_t now_us = ck_mono_us(g->cfg.proc);
    for (uint32_t c = in->first_channel; c < in->first_channel + in->channel_count; c++)
        follow_alignment(g, c, ck_align_end(g->align, c, now_us));
}

bool ck_gate_is_detached(const ck_gate *g) { return g->closed_count == g->channel_count; }

bool ck_gate_trigger(ck_gate *g, uint64_t checkpoint, ck_barrier_kind kind, ck_event *out) {
    CK_ASSERT(ck_gate_is_detached(g));
    if (checkpoint <= g->last_barrier) return false;
    g->last_barrier = checkpoint;
    *out = ck_event_barrier(checkpoint, kind);
    return true;
}

size_t ck_gate_bytes(const ck_gate *g) {
    size_t sum = 0;
    for (uint32_t c = 0; c < g->channel_count; c++) sum += ck_channel_bytes(&g->channels[c].queue);
    return sum;
}
