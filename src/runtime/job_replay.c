/* What was under way when the restored checkpoint overtook it: read once a process and dealt out again by the edge it
 * was on, at whatever parallelism, into replays at the gates. An exchange does the dealing, one for each recorded
 * channel, so that rows of one channel and key stay in order.
 *
 * At parallelism 1 an operator may stand in the chain of its producer, where there is no edge: then the rows go to its
 * inbox, and watermarks of single channels, which mean nothing there, are left out. */
#include "runtime/job_int.h"

typedef struct dealer {
    ck_job *j;
    const ck_job_op *op; /* whose input it is */
    ck_exchange_group group;
    ck_exchange *exchange; /* of the channel being read; owned by group */
    bool has_group;
    ck_channel nowhere; /* for what another process takes */
    /* over all channels that are not ended or idle: what they had told when their barrier came */
    int64_t *least; /* by input */
    bool *known;
    ck_inflight_channel channel;
    bool has_channel;
} dealer;

static const ck_graph_input *input_of(const dealer *d) { return &d->op->op->inputs[d->channel.input]; }

/* ---- one channel ---- */

static ck_status end_channel(dealer *d, ck_error *err) {
    if (!d->has_channel) return CK_OK;
    d->has_channel = false;
    uint32_t i = d->channel.input;
    if (!d->channel.ended && !d->channel.idle) {
        if (!d->known[i] || d->channel.watermark < d->least[i]) d->least[i] = d->channel.watermark;
        d->known[i] = true;
    }
    if (!d->has_group) return CK_OK;
    ck_status s = ck_exchange_flush(&d->group);
    ck_exchange_group_destroy(&d->group);
    d->has_group = false;
    return s == CK_OK ? s : ck_nomem(err, d->j->queue_mem, 0);
}

static ck_status begin_channel(void *arg, const ck_inflight_channel *c, ck_error *err) {
    dealer *d = arg;
    CK_TRY(end_channel(d, err));
    d->channel = *c;
    d->has_channel = true;
    return CK_OK;
}

static ck_status connect(dealer *d, uint32_t target, ck_error *err) {
    ck_job *j = d->j;
    ck_subtask *s = j->subtasks[j->first_subtask[d->op->vertex] + target];
    ck_channel *ch = &d->nowhere;
    const ck_inflight_channel *c = &d->channel;
    if (s && ck_gate_add_replay(ck_subtask_gate(s), c->input, c->watermark, c->idle, j->flush, &ch) != CK_OK)
        return ck_nomem(err, j->queue_mem, sizeof *ch);
    ck_exchange_connect(d->exchange, target, ch);
    return CK_OK;
}

/* At the first event: most channels have none. */
static ck_status open_exchange(dealer *d, ck_error *err) {
    ck_job *j = d->j;
    const ck_graph_input *in = input_of(d);
    if (in->kind == CK_EDGE_FORWARD || in->kind == CK_EDGE_BROADCAST)
        return ck_fail(err, CK_CORRUPT, "input %u of %s is not overtaken, yet something of it is stored",
                       d->channel.input, d->op->op->uid);
    uint32_t parallelism = j->plan.vertices[d->op->vertex].parallelism;
    ck_exchange_config cfg = {.kind = in->kind,
                              .schema = d->op->spec->inputs[d->channel.input].schema,
                              .key = in->key,
                              .key_count = in->key_count,
                              .key_groups = j->graph->key_groups,
                              .producer = d->channel.number % parallelism,
                              .target_count = parallelism,
                              .batch_rows = j->cfg.batch_rows};
    if (ck_exchange_group_init(&d->group, j->proc, j->queue_mem) != CK_OK) return ck_nomem(err, j->queue_mem, 0);
    d->has_group = true;
    CK_TRY(ck_exchange_new(&d->group, &cfg, &d->exchange, err));
    for (uint32_t t = 0; t < ck_exchange_channels(d->exchange); t++) CK_TRY(connect(d, t, err));
    return CK_OK;
}

static ck_status deal_in_chain(dealer *d, ck_batch *b, ck_error *err) {
    ck_subtask *s = d->j->subtasks[d->j->first_subtask[d->op->vertex]];
    if (b && s) return ck_subtask_add_replay(s, d->op->place, b) == CK_OK ? CK_OK : ck_nomem(err, d->j->mem, 0);
    ck_batch_unref(&b);
    return CK_OK;
}

static ck_status deal_event(void *arg, const ck_event *ev, ck_error *err) {
    dealer *d = arg;
    ck_batch *b = ev->kind == CK_EVENT_BATCH ? ev->batch : NULL;
    if (d->op->place > 0) return deal_in_chain(d, b, err);
    ck_status s = d->has_group ? CK_OK : open_exchange(d, err);
    if (s != CK_OK) {
        ck_batch_unref(&b);
        return s;
    }
    if (b) {
        s = ck_exchange_batch(d->exchange, &b);
        return s == CK_OK || s == CK_CLOSED ? CK_OK : ck_nomem(err, d->j->queue_mem, 0);
    }
    if (ev->watermark.value > d->channel.watermark) d->channel.watermark = ev->watermark.value;
    d->channel.idle = ev->watermark.idle;
    return ck_exchange_control(d->exchange, ev) == CK_OK ? CK_OK : ck_nomem(err, d->j->queue_mem, 0);
}

/* ---- one operator ---- */

static ck_status read_files(dealer *d, ck_error *err) {
    const ck_manifest *m = d->j->restored;
    ck_inflight_place place = *d->op->inflight;
    place.dir = d->j->restored_dir;
    const ck_inflight_reader reader = {d, begin_channel, deal_event};
    for (uint32_t i = 0; i < m->file_count; i++) {
        if (m->files[i].kind != CK_FILE_INFLIGHT || m->files[i].vertex != ck_op_id(d->op->op->uid)) continue;
        CK_FAULT(d->j->proc, RESTORE_BEFORE_REPLAY);
        CK_TRY(ck_inflight_read(&place, &m->files[i], ck_manifest_checkpoint_of_vertex(m, m->files[i].vertex), &reader,
                                err));
        CK_TRY(end_channel(d, err));
    }
    return CK_OK;
}

/* New producers go on behind the barrier, so they will tell nothing lower than the least of the old ones. */
static void restore_watermarks(const dealer *d) {
    const ck_job *j = d->j;
    for (uint32_t i = 0; i < d->op->op->input_count && d->op->place == 0; i++) {
        for (uint32_t t = 0; d->known[i] && t < j->plan.vertices[d->op->vertex].parallelism; t++) {
            ck_subtask *s = j->subtasks[j->first_subtask[d->op->vertex] + t];
            if (s) ck_gate_restore_watermark(ck_subtask_gate(s), i, d->least[i]);
        }
    }
}

static ck_status replay_op(ck_job *j, const ck_job_op *op, ck_error *err) {
    dealer d = {.j = j, .op = op};
    uint32_t inputs = op->op->input_count;
    if (!op->inflight) return CK_OK;
    d.least = ck_arena_array(&j->arena, inputs, sizeof *d.least);
    d.known = ck_arena_array(&j->arena, inputs, sizeof *d.known);
    if (!d.least || !d.known) return ck_nomem(err, j->mem, inputs * sizeof *d.least);
    ck_channel_init(&d.nowhere, j->queue_mem, 1, 1);
    ck_channel_close(&d.nowhere);
    ck_status s = read_files(&d, err);
    if (d.has_group) ck_exchange_group_destroy(&d.group);
    if (s == CK_OK) restore_watermarks(&d);
    ck_channel_destroy(&d.nowhere);
    return s;
}

ck_status ck_job_replay(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) CK_TRY(replay_op(j, &j->ops[i], err));
    return CK_OK;
}
