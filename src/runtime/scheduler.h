/* What runs steps. A task is anything that is stepped: a subtask, a job's coordinator, a connection. It has one atomic
 * - idle, queued, running, or running and notified meanwhile - and whoever has news for it publishes first and notifies
 * then. A notified task runs once more; a step that ends without news leaves it idle. The notification is also the
 * happens-before edge when a task moves to another thread.
 *
 * Two schedulers have this interface: a pool of threads over one FIFO queue, and a seeded single-thread one whose clock
 * is virtual and whose every choice comes from the seed. */
#ifndef CK_RUNTIME_SCHEDULER_H
#define CK_RUNTIME_SCHEDULER_H

#include <stdatomic.h>

#include "base/proc.h"
#include "os/io.h"
#include "runtime/job.h"

typedef enum ck_step {
    CK_STEP_READY,       /* the quantum is spent, there is more to do */
    CK_STEP_MORE,        /* the same, in the middle of an event */
    CK_STEP_NEED_INPUT,  /* nothing to do until notified */
    CK_STEP_OUTPUT_FULL, /* nothing to do until the consumer makes room (and notifies) */
    CK_STEP_WAIT_IO,     /* nothing to do until a completion notifies */
    CK_STEP_IDLE_UNTIL,  /* nothing to do until *until_us or a notification */
    CK_STEP_DONE,        /* never again */
    CK_STEP_FAILED,      /* never again; the task has told who must know */
} ck_step;

/* How much one step may do: about one full batch, or 1 ms. The seeded scheduler varies it. */
typedef struct ck_quantum {
    uint32_t rows;
    uint32_t events;
    int64_t us;
    bool mail_later; /* what has been told comes after this step, as it may where a step has begun meanwhile */
} ck_quantum;
enum { CK_QUANTUM_EVENTS = 256, CK_QUANTUM_US = 1000 };

typedef struct ck_task ck_task;
struct ck_task {
    ck_scheduler *scheduler;
    /* *until_us: monotonic, for CK_STEP_IDLE_UNTIL. One thread at a time. */
    ck_step (*step)(ck_task *t, const ck_quantum *q, int64_t *until_us);
    /* After the last step, from the scheduler's thread, which touches the task no more: it may be freed. */
    void (*retired)(ck_task *t);
    _Atomic uint32_t state;
    ck_task *next;        /* run queue; guarded by the scheduler */
    int64_t wake_us;      /* timer heap; guarded by the scheduler */
    uint32_t timer_index; /* position in the heap + 1; 0: no timer */
};

/* Idle; the first notify starts it. CK_NOMEM: no room for its timer. Every task that was added must be notified until
 * it retires, or removed while idle. */
CK_NODISCARD ck_status ck_task_add(ck_task *t, ck_scheduler *s);
/* Of a task that never ran. */
void ck_task_remove(ck_task *t);
bool ck_task_is_retired(const ck_task *t);
/* Thread: any; on a retired task only while it exists. Sequentially consistent: what was written before is seen by the
 * step that follows. */
void ck_task_notify(ck_task *t);

ck_proc *ck_scheduler_proc(const ck_scheduler *s);
/* Whether the caller drives it by ck_scheduler_turn: waiting on it means turning it. */
bool ck_scheduler_is_seeded(const ck_scheduler *s);

#endif
