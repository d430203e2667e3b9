/* A heap of tasks by the time they want to be woken. Guarded by its scheduler. */
#ifndef CK_RUNTIME_TIMERS_H
#define CK_RUNTIME_TIMERS_H

#include "runtime/scheduler.h"

typedef struct ck_timers {
    ck_mem mem;
    ck_task **heap; /* earliest first; equal times in no order that matters */
    uint32_t count, capacity;
} ck_timers;

void ck_timers_init(ck_timers *h, ck_mem mem);
void ck_timers_destroy(ck_timers *h);
/* Room for `tasks` timers, so that setting one cannot fail. */
CK_NODISCARD ck_status ck_timers_reserve(ck_timers *h, uint32_t tasks);
void ck_timers_set(ck_timers *h, ck_task *t, int64_t wake_us); /* replaces */
void ck_timers_clear(ck_timers *h, ck_task *t);                /* none is fine */
/* INT64_MAX without timers. */
int64_t ck_timers_next(const ck_timers *h);
/* Takes out the earliest one if it is due; NULL otherwise. */
ck_task *ck_timers_due(ck_timers *h, int64_t now_us);

#endif
