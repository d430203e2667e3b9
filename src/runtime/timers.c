/* See timers.h. */
#include "runtime/timers.h"

void ck_timers_init(ck_timers *h, ck_mem mem) { *h = (ck_timers){.mem = mem}; }

void ck_timers_destroy(ck_timers *h) {
    ck_free(h->mem, h->heap, h->capacity * sizeof *h->heap);
    *h = (ck_timers){.mem = h->mem};
}

ck_status ck_timers_reserve(ck_timers *h, uint32_t tasks) {
    if (tasks <= h->capacity) return CK_OK;
    uint32_t capacity = h->capacity ? h->capacity : 16;
    while (capacity < tasks) capacity *= 2;
    void *p = ck_realloc(h->mem, h->heap, h->capacity * sizeof *h->heap, capacity * sizeof *h->heap);
    if (!p) return CK_NOMEM;
    h->heap = p;
    h->capacity = capacity;
    return CK_OK;
}

static void place(ck_timers *h, uint32_t i, ck_task *t) {
    h->heap[i] = t;
    t->timer_index = i + 1;
}

static void sift_up(ck_timers *h, uint32_t i) {
    ck_task *t = h->heap[i];
    for (; i > 0 && h->heap[(i - 1) / 2]->wake_us > t->wake_us; i = (i - 1) / 2) place(h, i, h->heap[(i - 1) / 2]);
    place(h, i, t);
}

static void sift_down(ck_timers *h, uint32_t i) {
    ck_task *t = h->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && h->heap[child + 1]->wake_us < h->heap[child]->wake_us) child++;
        if (h->heap[child]->wake_us >= t->wake_us) break;
        place(h, i, h->heap[child]);
        i = child;
    }
    place(h, i, t);
}

void ck_timers_clear(ck_timers *h, ck_task *t) {
    if (!t->timer_index) return;
    uint32_t i = t->timer_index - 1;
    t->timer_index = 0;
    ck_task *last = h->heap[--h->count];
    if (last == t) return;
    place(h, i, last);
    sift_up(h, i);
    sift_down(h, last->timer_index - 1);
}

void ck_timers_set(ck_timers *h, ck_task *t, int64_t wake_us) {
    ck_timers_clear(h, t);
    CK_ASSERT(h->count < h->capacity); /* every task reserved its place when it was added */
    t->wake_us = wake_us;
    place(h, h->count++, t);
    sift_up(h, h->count - 1);
}

int64_t ck_timers_next(const ck_timers *h) { return h->count ? h->heap[0]->wake_us : INT64_MAX; }

ck_task *ck_timers_due(ck_timers *h, int64_t now_us) {
    if (!h->count || h->heap[0]->wake_us > now_us) return NULL;
    ck_task *t = h->heap[0];
    ck_timers_clear(h, t);
    return t;
}
