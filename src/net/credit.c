/* See credit.h. What holds between calls: for an open edge granted + held = 1 + floating, and the floating credits of
 * all edges and the free ones are the pool's count. */
#include "net/credit.h"

enum { CREDITS_MAX = 1 << 24 };

void ck_credit_pool_init(ck_credit_pool *p, uint32_t floating_count) {
    *p = (ck_credit_pool){.floating_count = floating_count, .floating_free = floating_count};
}

static bool wants_more(const ck_credit_edge *e) { return e->open && !e->blocked && e->backlog > e->granted; }

static void grant(ck_credit_pool *p, ck_credit_edge *e) {
    e->granted++, e->untold++;
    if (e->tells) return;
    e->tells = true;
    e->next_telling = NULL;
    if (p->tell_tail)
        p->tell_tail->next_telling = e;
    else
        p->tell_head = e;
    p->tell_tail = e;
}

static void join_wanting(ck_credit_pool *p, ck_credit_edge *e) {
    if (e->wants || !wants_more(e)) return;
    e->wants = true;
    e->next_wanting = NULL;
    if (p->want_tail)
        p->want_tail->next_wanting = e;
    else
        p->want_head = e;
    p->want_tail = e;
}

/* Takes e out of a list linked by the member `next`. */
#define UNLINK(head, tail, e, next)                                                                                    \
    do {                                                                                                               \
        ck_credit_edge *before = NULL, *at = (head);                                                                   \
        while (at != (e)) before = at, at = at->next;                                                                  \
        if (before)                                                                                                    \
            before->next = (e)->next;                                                                                  \
        else                                                                                                           \
            (head) = (e)->next;                                                                                        \
        if ((tail) == (e)) (tail) = before;                                                                            \
    } while (0)

/* Free credits go to the edge that has the fewest, among equals to the one that waits longest, so that edges with long
 * backlogs end up with equal shares. The list holds those with a backlog beyond their credits: a few. */
static void serve(ck_credit_pool *p) {
    while (p->floating_free > 0 && p->want_head) {
        ck_credit_edge *e = p->want_head;
        for (ck_credit_edge *at = e->next_wanting; at && wants_more(e); at = at->next_wanting)
            if (!wants_more(at) || at->floating < e->floating) e = at;
        UNLINK(p->want_head, p->want_tail, e, next_wanting);
        e->wants = false;
        if (!wants_more(e)) continue; /* blocked or satisfied since it joined */
        p->floating_free--, e->floating++;
        grant(p, e);
        join_wanting(p, e);
    }
}

static void check(const ck_credit_pool *p, const ck_credit_edge *e) {
    CK_DASSERT(!e->open || e->granted + e->held == 1 + e->floating);
    CK_DASSERT(e->untold <= e->granted && p->floating_free + e->floating <= p->floating_count);
    (void)p, (void)e;
}

void ck_credit_edge_open(ck_credit_pool *p, ck_credit_edge *e) {
    CK_ASSERT(!e->open);
    *e = (ck_credit_edge){.open = true};
    grant(p, e);
    check(p, e);
}

void ck_credit_edge_close(ck_credit_pool *p, ck_credit_edge *e) {
    if (!e->open) return;
    if (e->wants) UNLINK(p->want_head, p->want_tail, e, next_wanting);
    if (e->tells) UNLINK(p->tell_head, p->tell_tail, e, next_telling);
    p->floating_free += e->floating;
    *e = (ck_credit_edge){0};
    serve(p);
}

ck_status ck_credit_arrived(ck_credit_pool *p, ck_credit_edge *e, uint32_t backlog, ck_error *err) {
    if (!e->open || e->granted == e->untold)
        return ck_fail(err, CK_CORRUPT, "a data frame came without a credit for it");
    e->granted--, e->held++;
    e->backlog = backlog;
    join_wanting(p, e);
    serve(p);
    check(p, e);
    return CK_OK;
}

void ck_credit_consumed(ck_credit_pool *p, ck_credit_edge *e) {
    if (!e->open) return; /* closed while its consumer was at work */
    CK_ASSERT(e->held > 0);
    e->held--;
    if (e->floating == 0) {
        grant(p, e);
    } else {
        e->floating--, p->floating_free++;
        join_wanting(p, e);
        serve(p);
    }
    check(p, e);
}

void ck_credit_block(ck_credit_pool *p, ck_credit_edge *e, bool blocked) {
    if (!e->open || e->blocked == blocked) return;
    e->blocked = blocked;
    join_wanting(p, e);
    serve(p);
    check(p, e);
}

ck_credit_edge *ck_credit_next_untold(ck_credit_pool *p, uint32_t *count) {
    ck_credit_edge *e = p->tell_head;
    if (!e) return NULL;
    p->tell_head = e->next_telling;
    if (!p->tell_head) p->tell_tail = NULL;
    e->tells = false;
    *count = e->untold;
    e->untold = 0;
    return e;
}

ck_status ck_credit_add(ck_credit_sender *s, uint32_t count, ck_error *err) {
    if (count == 0 || count > CREDITS_MAX - s->credits)
        return ck_fail(err, CK_CORRUPT, "the peer grants %u credits on top of %u", count, s->credits);
    s->credits += count;
    return CK_OK;
}
