/* Messages to a task: any thread posts, the task's step takes all at once, in the order of posting. Lock-free; the
 * messages are the sender's until posted and the receiver's afterwards. Post, then notify the task. */
#ifndef CK_RUNTIME_MAILBOX_H
#define CK_RUNTIME_MAILBOX_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct ck_msg ck_msg; /* first member of what is sent */
struct ck_msg {
    ck_msg *next;
};

typedef struct ck_mailbox {
    _Atomic(ck_msg *) newest; /* zero is empty */
} ck_mailbox;

static inline void ck_mailbox_post(ck_mailbox *m, ck_msg *msg) {
    ck_msg *newest = atomic_load_explicit(&m->newest, memory_order_relaxed);
    do msg->next = newest;
    while (
        !atomic_compare_exchange_weak_explicit(&m->newest, &newest, msg, memory_order_release, memory_order_relaxed));
}

/* A list by `next`, oldest first; NULL when there is none. Only the owner takes, and it takes all, so that no message
 * is seen twice. */
static inline ck_msg *ck_mailbox_take(ck_mailbox *m) {
    if (!atomic_load_explicit(&m->newest, memory_order_relaxed)) return NULL;
    ck_msg *from = atomic_exchange_explicit(&m->newest, NULL, memory_order_acquire), *oldest = NULL;
    while (from) {
        ck_msg *next = from->next;
        from->next = oldest;
        oldest = from;
        from = next;
    }
    return oldest;
}

#endif
