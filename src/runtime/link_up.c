/* The sending task of a link. Edges take turns; a batch waits for a credit of its edge, everything waits while the
 * connection's queue is over its bound. */
#include "runtime/link_int.h"

static ck_link *link_of(ck_task *t) { return (ck_link *)((char *)t - offsetof(ck_link, up)); }

/* Takes *f. CK_OK also when the connection's queue is over its bound: no_room shows it. CK_CLOSED: it is gone. NULL:
 * CK_NOMEM. Only this task sets no_room: what else is sent here never waits, and must not make this one wait. */
static ck_status send(ck_link *k, ck_frame **f) {
    if (!*f) return CK_NOMEM;
    /* Before the send: room that comes in between must not be overwritten. */
    atomic_store(&k->no_room, true);
    ck_status s = ck_connection_send(k->connection, f);
    if (s == CK_OK) atomic_store(&k->no_room, false);
    return s == CK_FULL ? CK_OK : s;
}

static ck_link_out *find_out(ck_link *k, uint32_t number) {
    ck_link_out *o = k->outs;
    while (o && o->number != number) o = o->next;
    return o;
}

static ck_status on_frame(ck_link *k, const ck_frame *f, ck_error *err) {
    uint32_t number, count;
    CK_TRY(ck_wire_edge(f, &number, err));
    ck_link_out *o = find_out(k, number);
    if (!o) return ck_fail(err, CK_CORRUPT, "a frame for edge %u, which does not come from here", number);
    if (f->kind == CK_WIRE_CREDIT) {
        CK_TRY(ck_wire_read_credit(f, &count, err));
        return ck_credit_add(&o->credits, count, err);
    }
    o->closed = true;
    ck_batch_unref(&o->batch);
    ck_channel_close(&o->channel);
    return CK_OK;
}

static ck_status read_inbox(ck_link *k, ck_error *err) {
    ck_status s = CK_OK;
    for (ck_frame *f = ck_link_inbox_take(&k->up_inbox), *next; f; f = next) {
        next = f->next;
        if (s == CK_OK) s = on_frame(k, f, err);
        ck_frame_free(&f);
    }
    return s;
}

/* ---- one edge ---- */

static ck_status send_part(ck_link *k, ck_link_out *o, ck_error *err) {
    ck_frame *f;
    uint32_t used, backlog = ck_channel_events(&o->channel);
    CK_TRY(ck_wire_schema_frame(o->codec, o->number, &f, err));
    if (f) CK_TRY(send(k, &f));
    CK_TRY(ck_wire_batch_frame(o->codec, o->number, backlog, o->batch, o->sent_rows, &used, &f, err));
    o->sent_rows += used;
    if (o->sent_rows == o->batch->sel_count) {
        ck_batch_unref(&o->batch);
        o->sent_rows = 0;
    }
    return send(k, &f);
}

/* CK_AGAIN: nothing can go from here now. */
static ck_status send_one(ck_link *k, ck_link_out *o, ck_error *err) {
    ck_event ev;
    if (o->closed) {
        ck_channel_close(&o->channel); /* drops what came late */
        return CK_AGAIN;
    }
    if (!o->batch) {
        if (!ck_channel_pop(&o->channel, &ev)) return CK_AGAIN;
        if (ev.kind != CK_EVENT_BATCH) {
            if (ev.kind == CK_EVENT_END) o->ended = true;
            ck_frame *f = ck_wire_control_frame(k->group->cfg.queue_mem, o->number, &ev);
            return send(k, &f);
        }
        o->batch = ev.batch;
    }
    return ck_credit_spend(&o->credits) ? send_part(k, o, err) : CK_AGAIN;
}

/* One round over all edges. */
static ck_status send_round(ck_link *k, bool *any, ck_error *err) {
    *any = false;
    for (ck_link_out *o = k->outs; o; o = o->next) {
        if (atomic_load(&k->no_room)) return CK_OK;
        ck_status s = send_one(k, o, err);
        if (s == CK_OK) *any = true;
        if (s != CK_OK && s != CK_AGAIN) return s;
    }
    return CK_OK;
}

/* ---- the end ---- */

static ck_step failed(ck_link *k, ck_status s, ck_error *err) {
    if (s == CK_CLOSED) return CK_STEP_NEED_INPUT; /* on_close says why */
    if (err->status == CK_OK) (void)ck_nomem(err, k->group->cfg.queue_mem, 0);
    ck_link_fail(k, err);
    return CK_STEP_NEED_INPUT; /* until the job drops all */
}

/* Our last frame, and theirs; then the connection may go, and on_close wakes this task. */
static ck_step say_bye(ck_link *k) {
    if (!k->said_bye) {
        ck_frame *f = ck_wire_bye_frame(k->group->cfg.queue_mem);
        ck_error err = CK_ERROR_INIT;
        ck_status s = send(k, &f);
        if (s != CK_OK) return failed(k, s, &err);
        k->said_bye = true;
    }
    if (atomic_load(&k->heard_bye)) ck_connection_close(k->connection, true);
    return CK_STEP_NEED_INPUT;
}

ck_step ck_link_up_step(ck_task *t, const ck_quantum *q, int64_t *until_us) {
    ck_link *k = link_of(t);
    ck_error err = CK_ERROR_INIT;
    (void)until_us;
    if (atomic_load(&k->group->abort)) return CK_STEP_DONE;
    /* Nothing can be sent, and the job needs nothing of it. */
    bool finish = atomic_load(&k->group->finish);
    if (atomic_load(&k->gone) && finish) return CK_STEP_DONE;
    if (finish) return say_bye(k); /* edges of a job that was stopped have not ended */
    ck_status s = read_inbox(k, &err);
    if (s != CK_OK) return failed(k, s, &err);
    for (uint32_t i = 0; i < q->events; i++) {
        bool any;
        s = send_round(k, &any, &err);
        if (s != CK_OK) return failed(k, s, &err);
        if (any && !atomic_load(&k->no_room)) continue;
        return CK_STEP_NEED_INPUT;
    }
    return CK_STEP_READY;
}
