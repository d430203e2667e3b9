/* Deploying: every vertex becomes `parallelism` subtasks with their operators and state, every edge between vertices
 * becomes channels at the consumers' gates and an exchange at each producer. Nothing runs yet. */
#include "runtime/job_int.h"

#include <stdio.h>

#include "os/clock.h"
#include "os/random.h"

enum { EDGE_EVENTS_MAX = 256, EDGE_BYTES = 1 << 20, EDGE_BYTES_MIN = 128 << 10, EDGE_FULL_WIDTH = 4 };

static ck_subtask *subtask_of(const ck_job *j, uint32_t vertex, uint32_t index) {
    return j->subtasks[j->first_subtask[vertex] + index];
}

uint32_t ck_job_vertex_of(const ck_job *j, const ck_subtask *s) {
    uint32_t v = 0;
    while (v + 1 < j->plan.count && j->first_subtask[v + 1] <= ck_subtask_number(s)) v++;
    return v;
}

static const ck_job_op *producer_of(const ck_job *j, const ck_graph_input *in) {
    return &j->ops[ck_graph_find(j->graph, in->uid) - j->graph->ops];
}
static uint32_t parallelism_of(const ck_job *j, const ck_job_op *o) { return j->plan.vertices[o->vertex].parallelism; }

/* ---- operators and state ---- */

static bool is_keyed(const ck_vertex *v) {
    for (uint32_t i = 0; i < v->ops[0]->input_count; i++)
        if (v->ops[0]->inputs[i].kind == CK_EDGE_HASH) return true;
    return false;
}

static ck_status make_op(ck_job *j, uint32_t vertex, uint32_t place, ck_subtask *s, ck_state_store *store,
                         ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    const ck_job_op *o = ck_job_chain_op(j, vertex, place);
    ck_chain *chain = ck_subtask_chain(s);
    ck_op_runtime *op = ck_chain_op(chain, place);
    uint32_t index = ck_subtask_index(s), key_groups = j->graph->key_groups;
    ck_key_group_range all = {0, key_groups - 1};
    op->desc = o->desc;
    op->restored_ended = o->ended;
    op->ctx = (ck_op_ctx){
        .proc = j->proc,
        .settings = &j->settings,
        .uid = o->op->uid,
        .op_id = ck_op_id(o->op->uid),
        .subtask = index,
        .parallelism = v->parallelism,
        .key_groups = is_keyed(v) ? ck_key_group_range_for_subtask(index, v->parallelism, key_groups) : all,
        .input_count = o->op->input_count,
        .mem = j->queue_mem,
    };
    CK_TRY(ck_state_of(store, o->op->uid, o->op->type, &op->ctx.state, err));
    if (ck_chain_init_op(chain, place) != CK_OK) return ck_nomem(err, j->mem, sizeof *op);
    ck_op_spec *spec = ck_job_op_spec(j, o, index, v->parallelism);
    if (!spec) return ck_nomem(err, j->mem, sizeof *spec);
    ck_status st = o->desc->create(spec, j->mem, &op->self, err);
    if (st != CK_OK) return st;
    if (place > 0) {
        const ck_job_op *from = producer_of(j, &o->op->inputs[0]);
        if (ck_chain_connect(chain, from->place, o->op->inputs[0].port, place) != CK_OK)
            return ck_nomem(err, j->mem, sizeof *op);
    }
    return CK_OK;
}

static ck_status make_state(ck_job *j, uint32_t vertex, ck_subtask *s, ck_state_store **store, ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    uint32_t index = ck_subtask_index(s), key_groups = j->graph->key_groups;
    ck_key_group_range range = ck_key_group_range_for_subtask(index, v->parallelism, key_groups);
    ck_state_config cfg = {.proc = j->proc,
                           .mem = ck_mem_as(j->mem, CK_MEM_STATE),
                           .key_groups = key_groups,
                           .range = range,
                           .hash_seed = ck_random_u64(j->proc)};
    CK_TRY(ck_state_store_new(&cfg, store, err));
    ck_subtask_set_state(s, *store, NULL);
    if (!j->dir) return CK_OK;
    ck_subtask_snapshots_config snapshots_cfg = {.proc = j->proc,
                                                 .mem = j->mem,
                                                 .dir = ck_checkpoint_dir_path(j->dir),
                                                 .vertex = v->id,
                                                 .subtask = index,
                                                 .parallelism = v->parallelism,
                                                 .key_groups = key_groups,
                                                 .range = range,
                                                 .store = *store};
    ck_subtask_snapshots *snapshots;
    CK_TRY(ck_subtask_snapshots_new(&snapshots_cfg, &snapshots, err));
    ck_subtask_set_state(s, *store, snapshots);
    return CK_OK;
}

static ck_status make_subtask(ck_job *j, uint32_t vertex, uint32_t index, ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    const ck_job_op *head = ck_job_chain_op(j, vertex, 0);
    uint32_t number = j->first_subtask[vertex] + index;
    bool flush = head->desc->source && (j->flush || head->unbounded_source);
    ck_subtask_config cfg = {
        .proc = j->proc,
        .scheduler = j->scheduler,
        .mem = j->mem,
        .queue_mem = j->queue_mem,
        .number = number,
        .index = index,
        .op_count = v->op_count,
        .restored = j->restored ? j->restored->checkpoint : 0,
        .flush_us = flush ? j->cfg.flush_us : 0,
        .flush_each = flush && j->cfg.batch_rows == 1,
        .flush_origin_us = j->flush_origin_us,
        .host = {j, ck_job_report, ck_job_subtask_retired, ck_job_ref, ck_job_unref},
    };
    ck_state_store *store;
    CK_TRY(ck_subtask_new(&cfg, &j->subtasks[number], err));
    CK_TRY(make_state(j, vertex, j->subtasks[number], &store, err));
    for (uint32_t place = 0; place < v->op_count; place++) {
        ck_status s = make_op(j, vertex, place, j->subtasks[number], store, err);
        if (s == CK_OK) continue;
        if (err && !err->place.object[0])
            snprintf(err->place.object, sizeof err->place.object, "%s", v->ops[place]->uid);
        return s;
    }
    return CK_OK;
}

/* ---- edges ---- */

/* 1 MiB a channel; where many producers meet, less, so that a consumer's queues stay near 4 MiB. */
static size_t channel_bytes(const ck_job *j, uint32_t channels) {
    if (j->cfg.queue_bytes) return j->cfg.queue_bytes;
    if (channels <= EDGE_FULL_WIDTH) return EDGE_BYTES;
    size_t share = (size_t)EDGE_BYTES * EDGE_FULL_WIDTH / channels;
    return share > EDGE_BYTES_MIN ? share : EDGE_BYTES_MIN;
}

static ck_status make_gate(ck_job *j, uint32_t vertex, uint32_t index, ck_error *err) {
    const ck_graph_op *head = j->plan.vertices[vertex].ops[0];
    if (head->input_count == 0) return CK_OK;
    uint32_t *channels_of = ck_arena_array(&j->arena, head->input_count, sizeof *channels_of), channels = 0;
    if (!channels_of) return ck_nomem(err, j->mem, head->input_count * sizeof *channels_of);
    for (uint32_t i = 0; i < head->input_count; i++)
        channels += channels_of[i] =
            head->inputs[i].kind == CK_EDGE_FORWARD ? 1 : parallelism_of(j, producer_of(j, &head->inputs[i]));
    ck_subtask *s = subtask_of(j, vertex, index);
    ck_gate_config cfg = {.proc = j->proc,
                          .mem = j->mem,
                          .input_count = head->input_count,
                          .channels_of = channels_of,
                          .bytes_max = channel_bytes(j, channels),
                          .events_max = EDGE_EVENTS_MAX,
                          .queue_mem = j->queue_mem,
                          .restored = j->restored ? j->restored->checkpoint : 0,
                          .flush_each = j->cfg.batch_rows == 1,
                          .consumer = ck_subtask_task(s)};
    ck_gate *gate;
    CK_TRY(ck_gate_new(&cfg, &gate, err));
    ck_subtask_set_gate(s, gate);
    return CK_OK;
}

/* The sending side of one input of one vertex, at one producer. */
static ck_status connect_producer(ck_job *j, uint32_t vertex, uint32_t input, uint32_t producer, ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    const ck_graph_input *in = &v->ops[0]->inputs[input];
    const ck_job_op *from = producer_of(j, in);
    ck_subtask *s = subtask_of(j, from->vertex, producer);
    ck_exchange_group *group = ck_chain_exchanges(ck_subtask_chain(s));
    ck_exchange_config cfg = {.kind = in->kind,
                              .schema = from->op->schema,
                              .key = in->key,
                              .key_count = in->key_count,
                              .key_groups = j->graph->key_groups,
                              .producer = producer,
                              .target_count = v->parallelism,
                              .batch_rows = j->cfg.batch_rows};
    ck_exchange *x;
    CK_TRY(ck_exchange_new(group, &cfg, &x, err));
    for (uint32_t t = 0; t < ck_exchange_channels(x); t++) {
        bool forward = in->kind == CK_EDGE_FORWARD;
        ck_gate *gate = ck_subtask_gate(subtask_of(j, vertex, forward ? producer : t));
        ck_channel *ch = ck_gate_channel(gate, input, forward ? 0 : producer);
        ch->producer = ck_subtask_task(s);
        ch->closed_hint = &group->closed_hint;
        ck_exchange_connect(x, t, ch);
    }
    if (ck_chain_connect_exchange(ck_subtask_chain(s), from->place, in->port, x) != CK_OK)
        return ck_nomem(err, j->mem, 64);
    return CK_OK;
}

static ck_status connect_vertex(ck_job *j, uint32_t vertex, ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    for (uint32_t t = 0; t < v->parallelism; t++) CK_TRY(make_gate(j, vertex, t, err));
    for (uint32_t i = 0; i < v->ops[0]->input_count; i++) {
        uint32_t producers = parallelism_of(j, producer_of(j, &v->ops[0]->inputs[i]));
        for (uint32_t p = 0; p < producers; p++) CK_TRY(connect_producer(j, vertex, i, p, err));
    }
    return CK_OK;
}

ck_status ck_job_deploy(ck_job *j, ck_error *err) {
    j->flush_origin_us = ck_wall_us(j->proc) - ck_mono_us(j->proc);
    for (uint32_t v = 0; v < j->plan.count; v++)
        for (uint32_t i = 0; i < j->plan.vertices[v].parallelism; i++) CK_TRY(make_subtask(j, v, i, err));
    for (uint32_t v = 0; v < j->plan.count; v++) CK_TRY(connect_vertex(j, v, err));
    return CK_OK;
}
