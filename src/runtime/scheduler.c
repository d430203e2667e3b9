/* The life of a task's atomic, shared by both schedulers; see scheduler.h.
 *
 *        notify                take                 step ends
 *   IDLE ------> QUEUED ------------> RUNNING -----------------> IDLE
 *                  ^                    | notify                  (no news)
 *                  |   step ends        v
 *                  +-------- RUNNING_NOTIFIED
 *
 * Every transition is a read-modify-write on one variable. So a notifier that finds QUEUED knows that the step that
 * follows will see what it published, and one that finds RUNNING leaves a note that the step's end cannot miss. */
#include "runtime/scheduler_int.h"

void ck_task_notify(ck_task *t) {
    uint32_t s = atomic_load_explicit(&t->state, memory_order_relaxed);
    for (;;) {
        /* Also where nothing changes the exchange is made: it orders what was published before the next step. */
        uint32_t to = s == CK_TASK_IDLE ? CK_TASK_QUEUED : s == CK_TASK_RUNNING ? CK_TASK_RUNNING_NOTIFIED : s;
        if (atomic_compare_exchange_weak(&t->state, &s, to)) break;
    }
    if (s == CK_TASK_IDLE) t->scheduler->enqueue(t->scheduler, t);
}

void ck_task_take(ck_task *t, ck_timers *timers) {
    uint32_t was = atomic_exchange(&t->state, CK_TASK_RUNNING);
    CK_ASSERT(was == CK_TASK_QUEUED);
    ck_timers_clear(timers, t);
}

bool ck_task_settle(ck_task *t, ck_timers *timers, ck_step step, int64_t until_us) {
    uint32_t running = CK_TASK_RUNNING;
    bool again = step == CK_STEP_READY || step == CK_STEP_MORE;
    if (again || !atomic_compare_exchange_strong(&t->state, &running, CK_TASK_IDLE)) {
        atomic_exchange(&t->state, CK_TASK_QUEUED); /* reads the notifier's write, so its news are seen */
        return true;
    }
    /* The lock is held, and a notifier needs it to queue the task: the timer stands before anyone can run it. */
    if (step == CK_STEP_IDLE_UNTIL && until_us != INT64_MAX) ck_timers_set(timers, t, until_us);
    return false;
}

bool ck_task_timer_fired(ck_task *t) {
    uint32_t idle = CK_TASK_IDLE;
    return atomic_compare_exchange_strong(&t->state, &idle, CK_TASK_QUEUED);
}

void ck_run_queue_push(ck_run_queue *q, ck_task *t) {
    t->next = NULL;
    if (q->tail)
        q->tail->next = t;
    else
        q->head = t;
    q->tail = t;
    q->count++;
}

ck_task *ck_run_queue_take(ck_run_queue *q, uint32_t k) {
    ck_task *before = NULL, *t = q->head;
    for (; t && k > 0; k--) before = t, t = t->next;
    if (!t) return NULL;
    if (before)
        before->next = t->next;
    else
        q->head = t->next;
    if (q->tail == t) q->tail = before;
    q->count--;
    return t;
}

ck_status ck_task_add(ck_task *t, ck_scheduler *s) {
    t->scheduler = s;
    atomic_store(&t->state, CK_TASK_IDLE);
    t->next = NULL;
    t->timer_index = 0;
    return s->add(s);
}

void ck_task_remove(ck_task *t) {
    CK_ASSERT(atomic_load(&t->state) == CK_TASK_IDLE);
    t->scheduler->remove(t->scheduler);
}

bool ck_task_is_retired(const ck_task *t) { return atomic_load(&t->state) == CK_TASK_RETIRED; }

ck_proc *ck_scheduler_proc(const ck_scheduler *s) { return s->proc; }
bool ck_scheduler_is_seeded(const ck_scheduler *s) { return s->seeded; }
bool ck_scheduler_turn(ck_scheduler *s, uint64_t steps) { return s->turn && s->turn(s, steps); }
void ck_scheduler_free(ck_scheduler *s) {
    if (s) s->free(s);
}
