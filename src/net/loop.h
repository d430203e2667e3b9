/* One thread that owns a poller and everything that waits on it: listeners, connections, timers. Others reach it by
 * posting. Callbacks run on this thread, hold no lock, and must not block. */
#ifndef CK_NET_LOOP_H
#define CK_NET_LOOP_H

#include "base/proc.h"

typedef struct ck_net_loop ck_net_loop;

CK_NODISCARD ck_status ck_net_loop_new(ck_proc *proc, const char *thread_name, ck_net_loop **out, ck_error *err);
/* Closes every listener and connection (each on_close is called, with CK_CANCELLED), runs what was posted, drops
 * timers, ends the thread. Nothing may be posted, dialled or listened on any more. Not from the loop's own thread. NULL
 * is fine.
 */
void ck_net_loop_free(ck_net_loop *l);
bool ck_net_loop_is_current(const ck_net_loop *l); /* called on the loop's thread? */

/* Embedded by the poster, who keeps it alive until run was called; run may free it. */
typedef struct ck_net_post {
    void (*run)(struct ck_net_post *m);
    struct ck_net_post *next; /* the loop's */
} ck_net_post;
/* Thread: any. Never blocks. Posts of one thread run in their order. */
void ck_net_loop_post(ck_net_loop *l, ck_net_post *m);

/* Embedded by its owner. Zero is not set. Thread: the loop's only. */
typedef struct ck_net_timer {
    void (*fire)(struct ck_net_timer *t);
    int64_t due_us; /* monotonic, of the proc's clock */
    bool set;
    struct ck_net_timer *next, *prev; /* the loop's */
} ck_net_timer;
/* Fires once, at due_us or a little later; moves one that is set. */
void ck_net_loop_at(ck_net_loop *l, ck_net_timer *t, int64_t due_us);
void ck_net_loop_cancel(ck_net_loop *l, ck_net_timer *t); /* not set is fine */

#endif
