/* See gate.h. Producers set a channel's bit in `ready` when they push; the gate moves those bits to `local` and clears
 * a local bit only after it found the channel empty, so looking for the next event touches words, not channels. */
#include "runtime/gate.h"

#include "os/clock.h"

enum { PENDING_MAX = 8 };

typedef struct gate_channel {
    ck_channel queue;
    uint32_t input;
    bool idle, ended, closed;
    bool recorded; /* what comes on it before the barrier belongs to the checkpoint being recorded */
    int64_t watermark;
    ck_channel_cursor seen; /* recorded up to here */
} gate_channel;

/* A channel of another life, with what had been recorded of it. */
typedef struct replay {
    struct replay *next;
    ck_channel queue;
    uint32_t input;
    bool idle, flush;
    int64_t watermark;
} replay;

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
    uint64_t after;        /* the newest complete checkpoint that a barrier has told of */
    uint64_t overtake;     /* told, not looked at yet; 0 = none */
    ck_barrier_kind overtake_kind;
    bool urgent;        /* an overtaking barrier waits in `pending` */
    uint64_t recording; /* the checkpoint; 0 = none */
    uint32_t recorded_left;
    bool recording_broken;
    ck_inflight *inflight;
    replay *replays; /* read before all channels, one after the other */
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
            if (g->cfg.strict && g->cfg.strict[i]) ck_align_set_strict(g->align, c);
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

static void free_replay(ck_gate *g, replay *r) {
    ck_channel_destroy(&r->queue);
    ck_free(g->cfg.mem, r, sizeof *r);
}

void ck_gate_free(ck_gate *g) {
    if (!g) return;
    ck_mem mem = g->cfg.mem;
    for (uint32_t i = 0; i < g->channel_count && g->channels; i++) ck_channel_destroy(&g->channels[i].queue);
    for (; g->pending_count; g->pending_count--, g->pending_first = (g->pending_first + 1) % PENDING_MAX)
        if (g->pending[g->pending_first].event.kind == CK_EVENT_BATCH)
            ck_batch_unref(&g->pending[g->pending_first].event.batch);
    for (replay *r = g->replays, *next; r; r = next) {
        next = r->next;
        free_replay(g, r);
    }
    ck_inflight_free(g->inflight);
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
    for (const replay *r = g->replays; r; r = r->next) {
        if (r->idle) continue;
        active = true;
        if (r->watermark < least) least = r->watermark;
    }
    if (!open && !g->replays) return; /* END says it */
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

/* ---- recording ---- */

static void stop_recording(ck_gate *g, uint32_t c) {
    if (!g->channels[c].recorded) return;
    g->channels[c].recorded = false;
    g->recorded_left--;
}

static void record(ck_gate *g, uint32_t c, const ck_event *ev) {
    switch (ev->kind) {
    case CK_EVENT_BATCH:
    case CK_EVENT_WATERMARK:
        if (ck_inflight_add(g->inflight, c, ev) != CK_OK) g->recording_broken = true;
        break;
    case CK_EVENT_BARRIER:
        if (ev->barrier.checkpoint == g->recording) stop_recording(g, c);
        if (ev->barrier.checkpoint > g->recording) g->recording_broken = true; /* its barrier was never sent */
        break;
    case CK_EVENT_CANCEL_BARRIER: g->recording_broken |= ev->barrier.checkpoint >= g->recording; break;
    case CK_EVENT_END: stop_recording(g, c); break;
    case CK_EVENT_FLUSH:
    case CK_EVENT_ROUTE:
    case CK_EVENT_DRAIN: break;
    }
}

static void look_ahead(ck_gate *g) {
    ck_event ev;
    for (uint32_t c = 0; c < g->channel_count && g->recorded_left && !g->recording_broken; c++)
        while (g->channels[c].recorded && !g->recording_broken &&
               ck_channel_peek(&g->channels[c].queue, &g->channels[c].seen, &ev))
            record(g, c, &ev);
}

/* What a replay still holds has no barrier behind it: all of it is in flight. */
static void record_replays(ck_gate *g) {
    uint32_t number = g->channel_count;
    for (replay *r = g->replays; r; r = r->next, number++) {
        ck_channel_cursor at = {0};
        ck_event ev;
        ck_inflight_set_channel(g->inflight, &(ck_inflight_channel){r->input, number, r->watermark, r->idle, false});
        if (g->inputs[r->input].closed) continue;
        while (!g->recording_broken && ck_channel_peek(&r->queue, &at, &ev))
            if (ck_inflight_add(g->inflight, number, &ev) != CK_OK) g->recording_broken = true;
    }
}

static void start_recording(ck_gate *g, const ck_align_step *st) {
    uint32_t replays = 0;
    for (const replay *r = g->replays; r; r = r->next) replays++;
    ck_inflight_free(g->inflight);
    g->inflight = NULL;
    g->recording = 0;
    if (!st->overtaken && !replays) return;
    g->recording = st->checkpoint;
    g->recorded_left = 0;
    g->recording_broken = ck_inflight_new(g->cfg.queue_mem, g->channel_count + replays, &g->inflight) != CK_OK;
    if (g->recording_broken) return;
    for (uint32_t c = 0; c < g->channel_count; c++) {
        gate_channel *ch = &g->channels[c];
        ch->seen = (ck_channel_cursor){0};
        ch->recorded = st->overtaken && !ch->ended && ck_align_missed(g->align, c);
        g->recorded_left += ch->recorded;
        ck_inflight_set_channel(g->inflight, &(ck_inflight_channel){ch->input, c, ch->watermark, ch->idle, ch->ended});
    }
    record_replays(g);
}

ck_recording ck_gate_recording(ck_gate *g, uint64_t checkpoint) {
    if (!g->recording || g->recording != checkpoint) return CK_RECORDING_NONE;
    look_ahead(g);
    return g->recording_broken ? CK_RECORDING_BROKEN : g->recorded_left ? CK_RECORDING_OPEN : CK_RECORDING_WHOLE;
}

ck_inflight *ck_gate_take_recording(ck_gate *g, uint64_t checkpoint) {
    if (!g->recording || g->recording != checkpoint) return NULL;
    ck_inflight *f = g->inflight;
    g->inflight = NULL;
    g->recording = 0;
    for (uint32_t c = 0; c < g->channel_count; c++) g->channels[c].recorded = false;
    g->recorded_left = 0;
    return f;
}

/* ---- alignment ---- */

static void follow_alignment(ck_gate *g, uint32_t c, ck_align_step st) {
    if (st.cancelled) say(g, 0, (ck_event){.kind = CK_EVENT_CANCEL_BARRIER, .barrier = {.checkpoint = st.cancelled}});
    if (st.unblock) memset(g->held, 0, g->words * sizeof *g->held);
    if (st.block) set_bit(g->held, c);
    g->aligning = ck_align_pending(g->align, NULL) != 0;
    if (!st.snapshot) return;
    g->last_barrier = st.checkpoint;
    start_recording(g, &st);
    ck_event ev = ck_event_barrier(st.checkpoint, st.kind);
    ev.barrier.after = g->after;
    ev.barrier.overtakes = st.overtakes;
    g->urgent |= st.overtakes;
    say(g, 0, ev);
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
        if (ev->barrier.after > g->after) g->after = ev->barrier.after;
        follow_alignment(
            g, c,
            ck_align_barrier(g->align, c, ev->barrier.checkpoint, ev->barrier.kind, ev->barrier.overtakes, now_us));
        break;
    case CK_EVENT_CANCEL_BARRIER: follow_alignment(g, c, ck_align_cancel(g->align, c, ev->barrier.checkpoint)); break;
    case CK_EVENT_END: channel_ended(g, c); break;
    case CK_EVENT_ROUTE:
    case CK_EVENT_DRAIN: CK_ASSERT(false && "no producer sends these"); break;
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

static void note_popped(ck_gate *g, uint32_t c, const ck_event *ev) {
    gate_channel *ch = &g->channels[c];
    if (ch->seen.ahead)
        ch->seen.ahead--; /* was recorded when it was looked at */
    else if (ch->recorded)
        record(g, c, ev);
}

/* The next event of what another life had under way. The last one leaves its place to the channels. */
static bool take_replayed(ck_gate *g) {
    replay *r = g->replays;
    ck_event ev;
    if (!r) return false;
    if (!ck_channel_pop(&r->queue, &ev)) {
        bool last = !r->next, flush = r->flush;
        g->replays = r->next;
        free_replay(g, r);
        update_watermark(g);
        if (last && flush) {
            g->flush_seq++;
            say_flush(g);
        }
    } else if (ev.kind == CK_EVENT_BATCH) {
        r->idle = false;
        update_watermark(g);
        if (g->inputs[r->input].closed)
            ck_batch_unref(&ev.batch);
        else
            say(g, r->input, ev);
    } else if (ev.kind == CK_EVENT_WATERMARK) {
        if (ev.watermark.value > r->watermark) r->watermark = ev.watermark.value;
        r->idle = ev.watermark.idle;
        update_watermark(g);
    }
    return true;
}

static void begin_overtaking(ck_gate *g) {
    uint64_t checkpoint = g->overtake;
    g->overtake = 0;
    follow_alignment(g, 0, ck_align_overtake(g->align, checkpoint, g->overtake_kind, ck_mono_us(g->cfg.proc)));
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
            note_popped(g, c, &ev);
            take(g, c, &ev);
            return true;
        } else {
            g->local[c / 64] &= ~(1ULL << (c % 64));
        }
    }
}

ck_gate_result ck_gate_next(ck_gate *g, uint32_t *input, ck_event *out) {
    while (!g->pending_count) {
        if (g->overtake)
            begin_overtaking(g);
        else if (take_replayed(g) || take_one(g))
            continue;
        else if (g->owed)
            say_flush(g);
        else
            return CK_GATE_EMPTY;
    }
    pending_event *p = &g->pending[g->pending_first];
    g->pending_first = (g->pending_first + 1) % PENDING_MAX;
    g->pending_count--;
    *input = p->input;
    *out = p->event;
    if (out->kind == CK_EVENT_BARRIER) g->urgent = false;
    return CK_GATE_EVENT;
}

void ck_gate_overtake(ck_gate *g, uint64_t checkpoint, ck_barrier_kind kind) {
    if (checkpoint <= g->last_barrier || checkpoint <= g->overtake) return;
    g->overtake = checkpoint;
    g->overtake_kind = kind;
}

bool ck_gate_is_urgent(const ck_gate *g) { return g->overtake || g->urgent; }

/* ---- restoring ---- */

ck_status ck_gate_add_replay(ck_gate *g, uint32_t input, int64_t watermark, bool idle, bool flush, ck_channel **out) {
    CK_ASSERT(input < g->cfg.input_count);
    replay *r = ck_alloc_zero(g->cfg.mem, sizeof *r);
    if (!r) return CK_NOMEM;
    *r = (replay){.input = input, .watermark = watermark, .idle = idle, .flush = flush};
    ck_channel_init(&r->queue, g->cfg.queue_mem, SIZE_MAX, UINT32_MAX);
    replay **at = &g->replays;
    while (*at) at = &(*at)->next;
    *at = r;
    *out = &r->queue;
    return CK_OK;
}

void ck_gate_restore_watermark(ck_gate *g, uint32_t input, int64_t watermark) {
    if (g->cfg.strict && g->cfg.strict[input]) return;
    const gate_input *in = &g->inputs[input];
    for (uint32_t c = in->first_channel; c < in->first_channel + in->channel_count; c++)
        g->channels[c].watermark = watermark;
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

/* What its channels would still have brought is lost for the checkpoint. */
static void break_recording(ck_gate *g, const gate_input *in) {
    for (uint32_t c = in->first_channel; c < in->first_channel + in->channel_count; c++)
        g->recording_broken |= g->channels[c].recorded;
}

void ck_gate_close_input(ck_gate *g, uint32_t input) {
    gate_input *in = &g->inputs[input];
    if (in->closed) return;
    in->closed = true;
    drop_pending(g, input);
    if (g->recording) break_recording(g, in);
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
    start_recording(g, &(ck_align_step){.checkpoint = checkpoint});
    *out = ck_event_barrier(checkpoint, kind);
    return true;
}

size_t ck_gate_bytes(const ck_gate *g) {
    size_t sum = 0;
    for (uint32_t c = 0; c < g->channel_count; c++) sum += ck_channel_bytes(&g->channels[c].queue);
    return sum;
}
