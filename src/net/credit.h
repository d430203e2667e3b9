/* Credits for the data frames of many edges that share one connection: how a slow edge holds back its own sender and
 * nobody else's. One credit lets a sender send one data frame. Every edge owns one (so that each can always move); the
 * floating ones of a process move to where frames wait, in equal shares when there are not enough. Barrier, cancel,
 * watermark and credit frames need none. An edge blocked by alignment gets no floating credit: what it sends would only
 * wait. Pure bookkeeping: no I/O, no clock, no allocation. Threads: one at a time a pool and its edges, one at a time a
 * sender. */
#ifndef CK_NET_CREDIT_H
#define CK_NET_CREDIT_H

#include "base/status.h"

/* ---- the receiving side ---- */

typedef struct ck_credit_pool ck_credit_pool;

/* Embedded by the receiving end of an edge. Zero until opened. */
typedef struct ck_credit_edge {
    uint32_t granted;  /* credits the sender has or will have been told of */
    uint32_t held;     /* frames arrived and not yet consumed */
    uint32_t floating; /* of granted + held, all but the edge's own one */
    uint32_t backlog;  /* frames the sender had waiting when it last said so */
    uint32_t untold;   /* of granted, not yet sent to the sender */
    bool open, blocked;
    bool wants, tells; /* in the pool's lists */
    struct ck_credit_edge *next_wanting, *next_telling;
} ck_credit_edge;

struct ck_credit_pool {
    uint32_t floating_count; /* in all */
    uint32_t floating_free;
    ck_credit_edge *want_head, *want_tail; /* edges with more waiting than granted */
    ck_credit_edge *tell_head, *tell_tail; /* edges with untold credits */
};

void ck_credit_pool_init(ck_credit_pool *p, uint32_t floating_count);
/* Grants the edge its own credit. */
void ck_credit_edge_open(ck_credit_pool *p, ck_credit_edge *e);
/* Its floating credits go back to the pool; frames still held are no longer counted. Safe twice. */
void ck_credit_edge_close(ck_credit_pool *p, ck_credit_edge *e);
/* A data frame has come, and the sender says how many more wait there. CK_CORRUPT: it had no credit for it. */
CK_NODISCARD ck_status ck_credit_arrived(ck_credit_pool *p, ck_credit_edge *e, uint32_t backlog, ck_error *err);
/* The consumer is done with one frame: its credit goes round again. */
void ck_credit_consumed(ck_credit_pool *p, ck_credit_edge *e);
/* While alignment blocks the edge. Credits already granted stay. */
void ck_credit_block(ck_credit_pool *p, ck_credit_edge *e, bool blocked);
/* Credits to tell a sender about: the edge and how many, or NULL. Call until NULL after any of the above. */
ck_credit_edge *ck_credit_next_untold(ck_credit_pool *p, uint32_t *count);

/* ---- the sending side ---- */

typedef struct ck_credit_sender {
    uint32_t credits;
} ck_credit_sender;

static inline bool ck_credit_spend(ck_credit_sender *s) { /* false: wait for more */
    if (s->credits == 0) return false;
    s->credits--;
    return true;
}
/* The peer grants count more. CK_CORRUPT: nobody has that many. */
CK_NODISCARD ck_status ck_credit_add(ck_credit_sender *s, uint32_t count, ck_error *err);

#endif
