/* See align.h. */
#include "checkpoint/align.h"

struct ck_align {
    ck_mem mem;
    size_t bytes;
    uint32_t channels, words;
    uint32_t missing; /* channels whose barrier of `pending` has not come */
    uint32_t missing_strict;
    bool overtaking; /* the pending one waits for strict channels only */
    uint32_t ended_count;
    uint64_t pending; /* 0 = none */
    uint64_t last;    /* newest checkpoint that is over here: snapshot, cancelled or superseded */
    ck_barrier_kind kind;
    int64_t since_us;
    uint64_t *arrived, *blocked, *ended, *strict, *missed; /* a bit a channel */
    uint64_t bits[];
};

ck_status ck_align_new(ck_mem mem, uint32_t channels, uint64_t last, ck_align **out) {
    uint32_t words = (uint32_t)ck_bitmap_words(channels);
    size_t bytes = sizeof(ck_align) + 5 * (size_t)words * sizeof(uint64_t);
    ck_align *a = ck_alloc_zero(mem, bytes);
    if (!a) return CK_NOMEM;
    a->mem = mem, a->bytes = bytes, a->channels = channels, a->words = words, a->last = last;
    a->arrived = a->bits, a->blocked = a->bits + words, a->ended = a->bits + 2 * words;
    a->strict = a->bits + 3 * words, a->missed = a->bits + 4 * words;
    *out = a;
    return CK_OK;
}

void ck_align_free(ck_align *a) {
    if (a) ck_free(a->mem, a, a->bytes);
}

void ck_align_set_strict(ck_align *a, uint32_t channel) { ck_bit_set(a->strict, channel); }

/* Ends the pending checkpoint; every channel is read again. */
static void clear_pending(ck_align *a) {
    if (a->pending > a->last) a->last = a->pending;
    a->pending = 0;
    a->overtaking = false;
    for (uint32_t i = 0; i < a->words; i++) a->arrived[i] = a->blocked[i] = 0;
}

static void begin(ck_align *a, uint64_t checkpoint, ck_barrier_kind kind, int64_t now_us) {
    a->pending = checkpoint, a->kind = kind, a->since_us = now_us;
    a->missing_strict = 0;
    for (uint32_t i = 0; i < a->words; i++) {
        a->arrived[i] = a->ended[i];
        a->missing_strict += (uint32_t)__builtin_popcountll(a->strict[i] & ~a->ended[i]);
    }
    a->missing = a->channels - a->ended_count;
}

static void arrive(ck_align *a, uint32_t channel) {
    ck_bit_set(a->arrived, channel);
    a->missing--;
    if (ck_bit_get(a->strict, channel)) a->missing_strict--;
}

static void complete_if_all(ck_align *a, ck_align_step *step, int64_t now_us) {
    if (a->missing > 0 && !(a->overtaking && a->missing_strict == 0)) return;
    step->overtakes = a->overtaking;
    step->overtaken = a->missing > 0;
    for (uint32_t i = 0; i < a->words; i++) a->missed[i] = ~a->arrived[i];
    step->snapshot = true;
    step->checkpoint = a->pending;
    step->kind = a->kind;
    step->aligned_us = now_us - a->since_us;
    step->unblock = true, step->block = false;
    clear_pending(a);
}

/* false: stale. */
static bool make_pending(ck_align *a, uint64_t checkpoint, ck_barrier_kind kind, int64_t now_us, ck_align_step *step) {
    if (checkpoint <= a->last || (a->pending && checkpoint < a->pending)) return false;
    if (a->pending && checkpoint > a->pending) {
        step->cancelled = a->pending;
        step->unblock = true;
        clear_pending(a);
    }
    if (!a->pending) begin(a, checkpoint, kind, now_us);
    return true;
}

ck_align_step ck_align_barrier(ck_align *a, uint32_t channel, uint64_t checkpoint, ck_barrier_kind kind, bool overtakes,
                               int64_t now_us) {
    CK_DASSERT(channel < a->channels);
    ck_align_step step = {0};
    if (!make_pending(a, checkpoint, kind, now_us, &step)) return step;
    a->overtaking |= overtakes;
    if (!ck_bit_get(a->arrived, channel)) {
        arrive(a, channel);
        ck_bit_set(a->blocked, channel);
        step.block = true;
    }
    complete_if_all(a, &step, now_us);
    return step;
}

ck_align_step ck_align_overtake(ck_align *a, uint64_t checkpoint, ck_barrier_kind kind, int64_t now_us) {
    ck_align_step step = {0};
    if (!make_pending(a, checkpoint, kind, now_us, &step)) return step;
    a->overtaking = true;
    complete_if_all(a, &step, now_us);
    return step;
}

ck_align_step ck_align_cancel(ck_align *a, uint32_t channel, uint64_t checkpoint) {
    CK_DASSERT(channel < a->channels || a->channels == 0);
    (void)channel;
    ck_align_step step = {0};
    if (checkpoint <= a->last || (a->pending && checkpoint < a->pending)) return step;
    /* The pending one, or a newer one than that: either way nothing older will be complete. */
    step.cancelled = checkpoint;
    step.unblock = a->pending != 0;
    clear_pending(a);
    a->last = checkpoint;
    return step;
}

ck_align_step ck_align_end(ck_align *a, uint32_t channel, int64_t now_us) {
    CK_DASSERT(channel < a->channels);
    ck_align_step step = {0};
    if (ck_bit_get(a->ended, channel)) return step;
    ck_bit_set(a->ended, channel);
    a->ended_count++;
    if (!a->pending || ck_bit_get(a->arrived, channel)) return step;
    arrive(a, channel);
    complete_if_all(a, &step, now_us);
    return step;
}

bool ck_align_missed(const ck_align *a, uint32_t channel) { return ck_bit_get(a->missed, channel); }
bool ck_align_blocked(const ck_align *a, uint32_t channel) { return ck_bit_get(a->blocked, channel); }

uint64_t ck_align_pending(const ck_align *a, int64_t *since_us) {
    if (since_us) *since_us = a->since_us;
    return a->pending;
}
