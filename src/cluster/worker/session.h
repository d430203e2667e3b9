/* A worker's side of the control plane: which task hosts it has, and what it says about them. A pure state machine, as
 * the coordinator is: events come in with the time, actions go out, and the driver spawns, reaps and sends.
 *
 * A task host is a process with all tasks of one attempt of a job on this worker. Of a job there is never more than
 * one: a newer attempt waits until the older one's process has been reaped, which is what proves that its tasks work no
 * more. Hosts outlive the connection, and a coordinator: whoever leads next is told of them.
 *
 * Threads: one at a time. CK_NOMEM from any event: the session cannot go on; the process ends, and its hosts with it.
 */
#ifndef CK_CLUSTER_WORKER_SESSION_H
#define CK_CLUSTER_WORKER_SESSION_H

#include "cluster/message.h"

typedef struct ck_session ck_session;

typedef struct ck_session_config {
    ck_mem mem;
    ck_view worker;       /* its name; copied, as the address */
    ck_view address;      /* where it can be probed */
    uint64_t incarnation; /* of this process; not 0 */
    uint32_t slots;
} ck_session_config;

CK_NODISCARD ck_status ck_session_new(const ck_session_config *cfg, ck_session **out, ck_error *err);
void ck_session_free(ck_session *s); /* with the actions not taken; NULL is fine */

/* ---- the connection ---- */

/* It stands: the session registers. At most one at a time. */
CK_NODISCARD ck_status ck_session_connected(ck_session *s, int64_t now_us, ck_error *err);
void ck_session_disconnected(ck_session *s);
/* Anything but CK_OK and CK_NOMEM: the connection is to be closed for that reason. Whatever is heard is a sign of life:
 * a coordinator answers each heartbeat. */
CK_NODISCARD ck_status ck_session_heard(ck_session *s, int64_t now_us, const ck_message *m, ck_error *err);
/* At ck_session_due, or later. Over a connection that has been silent for the heartbeat timeout there may be nobody: it
 * is to be closed (CK_SESSION_CLOSE), since whoever leads now is elsewhere. A tick that comes late by half of that
 * means that this process was suspended, which says nothing of the other. */
CK_NODISCARD ck_status ck_session_tick(ck_session *s, int64_t now_us, ck_error *err);
int64_t ck_session_due(const ck_session *s); /* INT64_MAX: nothing is due */

/* ---- its hosts; about one that there is not, these do nothing ---- */

CK_NODISCARD ck_status ck_session_host_ready(ck_session *s, uint64_t job, uint64_t attempt, ck_view address,
                                             ck_error *err);
CK_NODISCARD ck_status ck_session_host_checkpoint(ck_session *s, uint64_t job, uint64_t attempt, uint64_t checkpoint,
                                                  ck_error *err);
CK_NODISCARD ck_status ck_session_host_savepoint(ck_session *s, uint64_t job, uint64_t attempt,
                                                 const ck_msg_savepoint_ended *m, ck_error *err);
/* How far it is; said with the next heartbeat, which may come early for it, and comes at once for the first rows. */
CK_NODISCARD ck_status ck_session_host_progress(ck_session *s, uint64_t job, uint64_t attempt, const ck_progress *p,
                                                ck_error *err);
/* Its process has been reaped. One that was told to end has been cancelled, whatever it says. It is said to whoever
 * leads until one is known to have heard it, by answering a heartbeat behind it. */
CK_NODISCARD ck_status ck_session_host_ended(ck_session *s, uint64_t job, uint64_t attempt, ck_task_outcome outcome,
                                             uint64_t flags, ck_view error, ck_error *err);

/* ---- actions, in order ---- */

typedef enum ck_session_action_kind {
    CK_SESSION_SEND,      /* frame, to the coordinator */
    CK_SESSION_SPAWN,     /* a host for `job` and `attempt`; frame is its DEPLOY */
    CK_SESSION_START,     /* frame, a START, is for the host */
    CK_SESSION_SAVEPOINT, /* frame, a TAKE_SAVEPOINT, is for the host */
    CK_SESSION_KILL,      /* the host, and host_ended when it has been reaped */
    CK_SESSION_CLOSE,     /* the connection, which the session takes for gone */
} ck_session_action_kind;

typedef struct ck_session_action {
    struct ck_session_action *next; /* the session's */
    ck_session_action_kind kind;
    uint64_t job, attempt;
    ck_frame *frame; /* whoever takes the action may take it and set NULL */
} ck_session_action;

ck_session_action *ck_session_next(ck_session *s); /* NULL: none. Free it. */
void ck_session_action_free(ck_session *s, ck_session_action *a);

uint32_t ck_session_host_count(const ck_session *s); /* that have, or will have, a process */

#endif
