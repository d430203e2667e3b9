/* Inside links: connections and handshakes (link.c), sending (link_up.c), receiving (link_down.c). */
#ifndef CK_RUNTIME_LINK_INT_H
#define CK_RUNTIME_LINK_INT_H

#include <pthread.h>

#include "net/connection.h"
#include "net/credit.h"
#include "runtime/link.h"
#include "runtime/wire.h"

typedef struct ck_link ck_link;

typedef struct ck_link_out { /* uplink's */
    struct ck_link_out *next;
    uint32_t number;
    ck_channel channel;
    ck_wire_codec *codec;
    ck_credit_sender credits;
    ck_batch *batch;    /* taken from the channel, waits for a credit */
    uint32_t sent_rows; /* of it */
    bool ended, closed;
} ck_link_out;

typedef struct ck_link_in { /* downlink's, but for popped */
    struct ck_link_in *next;
    ck_link *link;
    uint32_t number;
    ck_channel *to;
    ck_wire_codec *codec;
    ck_credit_edge credit;
    _Atomic uint32_t popped;
    bool ended, closed;
} ck_link_in;

/* Frames that have come for a task. */
typedef struct ck_link_inbox {
    pthread_mutex_t lock; /* guards the list */
    ck_frame *first, **end;
} ck_link_inbox;

struct ck_link {
    ck_links *group;
    uint32_t peer;
    bool dialling;          /* guarded by the group's lock */
    _Atomic bool said_last; /* the job ends badly, and the peer was told why */
    bool added;             /* the tasks are known to the scheduler */
    ck_task up, down;
    ck_link_inbox up_inbox, down_inbox;
    /* uplink */
    ck_link_out *outs;
    bool said_bye;
    /* downlink */
    ck_link_in *ins;
    ck_credit_pool pool;
    _Atomic bool hint; /* some consumer closed */
    _Atomic bool consumed;
    /* any */
    _Atomic bool heard_bye;
    _Atomic bool no_room;      /* a send of the uplink said CK_FULL */
    _Atomic bool gone;         /* the connection has closed */
    ck_connection *connection; /* set before the tasks run */
    ck_error gone_error;       /* written before `gone` */
};

struct ck_links {
    ck_links_config cfg;
    ck_net_loop *loop;
    ck_listener *listener;
    _Atomic bool started; /* the tasks may run */
    _Atomic bool finish, abort;
    pthread_mutex_t lock; /* guards what follows and links' `connection` until they are up */
    pthread_cond_t changed;
    uint32_t up_count;
    ck_links_word word;   /* of process 0; written before it is needed */
    char *heard_splits;   /* in it; NULL: we lead, or there are none */
    ck_error not_reached; /* why the last dialling failed */
    ck_error refused;     /* a peer that may not connect, or cannot */
    ck_link links[];      /* by process; our own stays empty */
};

void ck_link_inbox_put(ck_link_inbox *in, ck_frame *f);
ck_frame *ck_link_inbox_take(ck_link_inbox *in); /* all, oldest first */
void ck_link_inbox_clear(ck_link_inbox *in);

ck_step ck_link_up_step(ck_task *t, const ck_quantum *q, int64_t *until_us);
ck_step ck_link_down_step(ck_task *t, const ck_quantum *q, int64_t *until_us);
void ck_link_fail(ck_link *k, const ck_error *err);

#endif
