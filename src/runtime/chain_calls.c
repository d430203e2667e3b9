/* The calls of operators around events: opening, snapshots, commits and closing in sweeps over the chain, the source at
 * its head, and processing-time wake-ups. */
#include "os/clock.h"
#include "runtime/chain_int.h"

/* ---- sweeps ---- */

void ck_chain_sweep(ck_chain *c, ck_sweep_kind kind, uint64_t checkpoint) {
    CK_ASSERT(c->sweep == CK_SWEEP_NONE && kind != CK_SWEEP_NONE);
    c->sweep = kind;
    c->sweep_checkpoint = checkpoint;
    c->sweep_at = 0;
}

static ck_status call_open(ck_op_runtime *op) {
    op->opened = true;
    if (op->desc->source) return CK_HAS(op->desc->source, open) ? op->desc->source->open(op->self, &op->ctx) : CK_OK;
    ck_status s = CK_HAS(op->desc->op, open) ? op->desc->op->open(op->self, &op->ctx) : CK_OK;
    if (s == CK_OK && CK_HAS(op->desc->op, next_wake_us)) op->wake_us = op->desc->op->next_wake_us(op->self, &op->ctx);
    return s;
}

static ck_status call_entry(ck_op_runtime *op, ck_sweep_kind kind, uint64_t checkpoint) {
    if (kind == CK_SWEEP_OPEN) return call_open(op);
    if (op->desc->source) { /* its part of a snapshot is its splits */
        if (kind == CK_SWEEP_COMMITTED && CK_HAS(op->desc->source, on_committed))
            op->desc->source->on_committed(op->self, checkpoint, &op->ctx);
        return CK_OK;
    }
    const ck_operator_vtbl *v = op->desc->op;
    if (kind == CK_SWEEP_PRE_SNAPSHOT)
        return CK_HAS(v, pre_snapshot) ? v->pre_snapshot(op->self, checkpoint, &op->ctx) : CK_OK;
    return CK_HAS(v, on_committed) ? v->on_committed(op->self, checkpoint, &op->ctx) : CK_OK;
}

ck_status ck_chain_sweep_one(ck_chain *c) {
    if (c->sweep_at == c->op_count) {
        c->sweep = CK_SWEEP_NONE;
        return CK_OK;
    }
    ck_op_runtime *op = &c->ops[c->sweep == CK_SWEEP_OPEN ? c->op_count - 1 - c->sweep_at : c->sweep_at];
    if (op->waiting && !atomic_load(&op->woken)) return CK_AGAIN;
    ck_chain_before_call(op, !op->desc->source || c->sweep == CK_SWEEP_OPEN);
    ck_status s = ck_chain_after_call(op, call_entry(op, c->sweep, c->sweep_checkpoint));
    if (s == CK_OK) c->sweep_at++;
    return s;
}

bool ck_chain_close(ck_chain *c) {
    bool all = true;
    for (uint32_t i = 0; i < c->op_count; i++) {
        ck_op_runtime *op = &c->ops[i];
        if (op->closed || !op->chain || !op->self) continue;
        if (atomic_load(&op->io_jobs)) {
            all = false;
            continue;
        }
        ck_inbox_clear(op);
        op->closed = true;
        c->now_us = INT64_MIN;
        if (op->desc->source) {
            if (CK_HAS(op->desc->source, close)) op->desc->source->close(op->self, &op->ctx);
        } else if (CK_HAS(op->desc->op, close)) {
            op->desc->op->close(op->self, &op->ctx);
        }
    }
    return all;
}

/* ---- the source ---- */

ck_status ck_chain_poll(ck_chain *c, ck_poll_result *result, int64_t *until_us) {
    ck_op_runtime *op = &c->ops[0];
    *result = CK_POLL_IDLE;
    *until_us = INT64_MAX;
    ck_chain_before_call(op, true);
    return ck_chain_after_call(op, op->desc->source->poll(op->self, &op->ctx, result, until_us));
}

ck_status ck_chain_add_split(ck_chain *c, const ck_split *split) {
    ck_op_runtime *op = &c->ops[0];
    ck_chain_before_call(op, false);
    return ck_chain_after_call(
        op, CK_HAS(op->desc->source, add_split) ? op->desc->source->add_split(op->self, split, &op->ctx) : CK_OK);
}

ck_status ck_chain_snapshot_source(ck_chain *c, ck_split_list *out) {
    ck_op_runtime *op = &c->ops[0];
    ck_chain_before_call(op, false);
    return ck_chain_after_call(
        op, CK_HAS(op->desc->source, snapshot) ? op->desc->source->snapshot(op->self, out, &op->ctx) : CK_OK);
}

ck_status ck_chain_end_restored(ck_chain *c) {
    ck_event end = ck_event_end();
    for (uint32_t i = 0; i < c->op_count; i++) {
        ck_op_runtime *op = &c->ops[i];
        if (!op->restored_ended || op->ended || op->dead) continue;
        ck_chain_mark_ended(op);
        CK_TRY(ck_chain_after_call(op, ck_op_send_control(op, &end)));
    }
    return CK_OK;
}

ck_status ck_chain_end_source(ck_chain *c) {
    ck_op_runtime *op = &c->ops[0];
    if (op->ended || op->dead) return CK_OK;
    ck_chain_mark_ended(op);
    ck_event end = ck_event_end();
    return ck_chain_after_call(op, ck_op_send_control(op, &end));
}

ck_status ck_chain_flush_source(ck_chain *c, uint64_t seq) {
    ck_op_runtime *op = &c->ops[0];
    if (op->ended || op->dead) return CK_OK;
    ck_event flush = ck_event_flush(seq);
    return ck_chain_after_call(op, ck_op_send_control(op, &flush));
}

bool ck_chain_take_wake(ck_chain *c) { return atomic_exchange(&c->ops[0].woken, false); }

bool ck_chain_source_emitted(ck_chain *c) {
    bool emitted = c->source_emitted;
    c->source_emitted = false;
    return emitted;
}

/* ---- processing time ---- */

int64_t ck_chain_next_wake(const ck_chain *c) {
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; c->has_wakes && i < c->op_count; i++)
        if (c->ops[i].wake_us < least) least = c->ops[i].wake_us;
    return least;
}

ck_status ck_chain_wake_due(ck_chain *c, int64_t wall_us) {
    for (uint32_t i = 0; i < c->op_count; i++) {
        if (c->ops[i].wake_us > wall_us) continue;
        ck_event at = {.watermark = {.value = wall_us}};
        CK_TRY(ck_inbox_push(&c->ops[i], 0, &at, true));
        c->ops[i].wake_us = INT64_MAX; /* asked again after the call */
    }
    return CK_OK;
}
