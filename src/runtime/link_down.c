/* The receiving task of a link: frames become events in the channels of consumers here, and what those consumers take
 * becomes credits for the peer. */
#include "runtime/link_int.h"

static ck_link *link_of(ck_task *t) { return (ck_link *)((char *)t - offsetof(ck_link, down)); }

static ck_link_in *find_in(ck_link *k, uint32_t number) {
    ck_link_in *i = k->ins;
    while (i && i->number != number) i = i->next;
    return i;
}

static ck_status close_edge(ck_link *k, ck_link_in *i) {
    if (i->closed) return CK_OK;
    i->closed = true;
    ck_credit_edge_close(&k->pool, &i->credit);
    if (i->ended) return CK_OK;
    ck_frame *f = ck_wire_close_frame(k->group->cfg.queue_mem, i->number);
    return ck_links_send(k->group, k->peer, &f);
}

/* ---- frames ---- */

static ck_status push(ck_link *k, ck_link_in *i, const ck_event *ev) {
    ck_status s = ck_channel_push(i->to, ev);
    if (s == CK_CLOSED) return close_edge(k, i);
    return s == CK_FULL ? CK_OK : s; /* credits bound it */
}

static ck_status take_batch(ck_link *k, ck_link_in *i, const ck_frame *f, ck_error *err) {
    uint32_t backlog;
    ck_batch *b;
    CK_TRY(ck_wire_read_batch(i->codec, f, &backlog, &b, err));
    if (i->closed) {
        ck_batch_unref(&b);
        return CK_OK;
    }
    ck_status s = ck_credit_arrived(&k->pool, &i->credit, backlog, err);
    if (s != CK_OK) {
        ck_batch_unref(&b);
        return s;
    }
    ck_event ev = ck_event_batch(b);
    return push(k, i, &ev);
}

static ck_status on_frame(ck_link *k, const ck_frame *f, ck_error *err) {
    uint32_t number;
    ck_event ev;
    CK_TRY(ck_wire_edge(f, &number, err));
    ck_link_in *i = find_in(k, number);
    if (!i) return ck_fail(err, CK_CORRUPT, "a frame for edge %u, which does not lead here", number);
    if (i->ended && f->kind != CK_WIRE_BARRIER && f->kind != CK_WIRE_CANCEL)
        return ck_fail(err, CK_CORRUPT, "edge %u goes on after its end", number);
    if (f->kind == CK_WIRE_SCHEMA) return ck_wire_read_schema(i->codec, f, err);
    if (f->kind == CK_WIRE_BATCH) return take_batch(k, i, f, err);
    CK_TRY(ck_wire_read_control(f, &ev, err));
    if (ev.kind == CK_EVENT_END) i->ended = true;
    return push(k, i, &ev);
}

static ck_status read_inbox(ck_link *k, ck_error *err) {
    ck_status s = CK_OK;
    for (ck_frame *f = ck_link_inbox_take(&k->down_inbox), *next; f; f = next) {
        next = f->next;
        if (s == CK_OK) s = on_frame(k, f, err);
        ck_frame_free(&f);
    }
    return s;
}

/* ---- credits ---- */

static ck_status tell_credits(ck_link *k) {
    uint32_t count;
    for (ck_credit_edge *e; (e = ck_credit_next_untold(&k->pool, &count));) {
        ck_link_in *i = (ck_link_in *)((char *)e - offsetof(ck_link_in, credit));
        if (i->ended || i->closed) continue;
        ck_frame *f = ck_wire_credit_frame(k->group->cfg.queue_mem, i->number, count);
        CK_TRY(ck_links_send(k->group, k->peer, &f));
    }
    return CK_OK;
}

static ck_status look_at_consumers(ck_link *k) {
    if (atomic_exchange(&k->consumed, false))
        for (ck_link_in *i = k->ins; i; i = i->next)
            for (uint32_t n = atomic_exchange(&i->popped, 0); n > 0; n--)
                if (!i->closed) ck_credit_consumed(&k->pool, &i->credit);
    if (atomic_exchange(&k->hint, false))
        for (ck_link_in *i = k->ins; i; i = i->next)
            if (ck_channel_is_closed(i->to)) CK_TRY(close_edge(k, i));
    return tell_credits(k);
}

/* ---- the end ---- */

static ck_step failed(ck_link *k, ck_status s, ck_error *err) {
    if (s == CK_CLOSED) return CK_STEP_NEED_INPUT;
    if (err->status == CK_OK) (void)ck_nomem(err, k->group->cfg.queue_mem, 0);
    ck_link_fail(k, err);
    return CK_STEP_NEED_INPUT; /* until the job drops all */
}

ck_step ck_link_down_step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    ck_link *k = link_of(t);
    ck_error err = CK_ERROR_INIT;
    (void)q, (void)until_us;
    if (atomic_load(&k->group->abort)) return CK_STEP_DONE;
    bool gone = atomic_load(&k->gone); /* before the inbox: what came before the end counts */
    ck_status s = read_inbox(k, &err);
    if (s == CK_OK && !gone) s = look_at_consumers(k);
    if (s != CK_OK) return failed(k, s, &err);
    /* Once the job has finished, a peer that is gone has nothing left to say, whether it said BYE or was killed. */
    if (gone && atomic_load(&k->group->finish)) return CK_STEP_DONE;
    if (gone && !atomic_load(&k->heard_bye)) ck_link_fail(k, &k->gone_error);
    return CK_STEP_NEED_INPUT;
}
