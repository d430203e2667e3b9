/* Inside the schedulers: what pool and seeded share. */
#ifndef CK_RUNTIME_SCHEDULER_INT_H
#define CK_RUNTIME_SCHEDULER_INT_H

#include "runtime/scheduler.h"
#include "runtime/timers.h"

enum { CK_TASK_IDLE, CK_TASK_QUEUED, CK_TASK_RUNNING, CK_TASK_RUNNING_NOTIFIED, CK_TASK_RETIRED };

struct ck_scheduler {
    ck_proc *proc;
    bool seeded;
    size_t free_bytes;                            /* of the allocation this heads */
    void (*enqueue)(ck_scheduler *s, ck_task *t); /* t has just become QUEUED */
    ck_status (*add)(ck_scheduler *s);            /* room for one more timer, one more live task */
    void (*remove)(ck_scheduler *s);
    bool (*turn)(ck_scheduler *s, uint64_t steps);
    void (*free)(ck_scheduler *s);
};

/* FIFO of queued tasks, linked through them. */
typedef struct ck_run_queue {
    ck_task *head, *tail;
    uint32_t count;
} ck_run_queue;
void ck_run_queue_push(ck_run_queue *q, ck_task *t);
/* The k-th from the head; NULL when there is none. */
ck_task *ck_run_queue_take(ck_run_queue *q, uint32_t k);

/* After a step that did not end the task, under the scheduler's lock: true when it must be queued again (it is QUEUED
 * then); otherwise it is idle, with a timer if it asked for one. */
bool ck_task_settle(ck_task *t, ck_timers *timers, ck_step step, int64_t until_us);
/* QUEUED becomes RUNNING; its timer goes. Under the scheduler's lock. */
void ck_task_take(ck_task *t, ck_timers *timers);
/* Whether the timer found the task idle: it is QUEUED then and the caller queues it. */
bool ck_task_timer_fired(ck_task *t);

#endif
