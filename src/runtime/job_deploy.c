/* Deploying: every vertex becomes `parallelism` subtasks with their operators and state, every edge between vertices
 * becomes channels at the consumers' gates and an exchange at each producer. Nothing runs yet. */
#include "runtime/job_int.h"

#include <stdio.h>

#include "os/clock.h"
#include "os/random.h"

enum {
    EDGE_EVENTS_MAX = 256,
    EDGE_BYTES = 1 << 20,
    EDGE_BYTES_MIN = 128 << 10,
    EDGE_FULL_WIDTH = 4,
};

static ck_subtask *subtask_of(const ck_job *j, uint32_t vertex, uint32_t index) {
    return j->subtasks[j->first_subtask[vertex] + index];
}

uint32_t ck_job_vertex_of(const ck_job *j, uint32_t subtask) {
    uint32_t v = 0;
    while (v + 1 < j->plan.count && j->first_subtask[v + 1] <= subtask) v++;
    return v;
}

static const ck_job_op *producer_of(const ck_job *j, const ck_graph_input *in) {
    return &j->ops[ck_graph_find(j->graph, in->uid) - j->graph->ops];
}
static uint32_t parallelism_of(const ck_job *j, const ck_job_op *o) { return j->plan.vertices[o->vertex].parallelism; }

/* ---- operators and state ---- */

static ck_status make_op(ck_job *j, uint32_t vertex, uint32_t place, ck_subtask *s, ck_state_store *store,
                         ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    const ck_job_op *o = ck_job_chain_op(j, vertex, place);
    ck_chain *chain = ck_subtask_chain(s);
    ck_op_runtime *op = ck_chain_op(chain, place);
    uint32_t index = ck_subtask_index(s), key_groups = j->graph->key_groups;
    op->desc = o->desc;
    op->restored_ended = o->ended;
    op->ctx = (ck_op_ctx){
        .proc = j->proc,
        .settings = &j->settings,
        .uid = o->op->uid,
        .op_id = ck_op_id(o->op->uid),
        .subtask = index,
        .parallelism = v->parallelism,
        .key_groups = ck_key_group_range_for_subtask(index, v->parallelism, key_groups),
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
                           .hash_seed = ck_random_u64(j->proc),
                           .snapshots = j->dir || j->cfg.checkpoint.dir};
    CK_TRY(ck_state_store_new(&cfg, store, err));
    ck_subtask_set_state(s, *store, NULL);
    if (j->cfg.spill_dir) CK_TRY(ck_state_spill_to(*store, j->cfg.spill_dir, err));
    if (j->rocks) CK_TRY(ck_state_evict_to(*store, j->rocks, err));
    if (!j->dir) return CK_OK;
    ck_subtask_snapshots_config snapshots_cfg = {.proc = j->proc,
                                                 .mem = j->mem,
                                                 .dir = ck_checkpoint_dir_path(j->dir),
                                                 .vertex = v->id,
                                                 .subtask = index,
                                                 .parallelism = v->parallelism,
                                                 .key_groups = key_groups,
                                                 .range = range,
                                                 .store = *store,
                                                 .changelog = j->cfg.checkpoint.changelog};
    ck_subtask_snapshots *snapshots;
    CK_TRY(ck_subtask_snapshots_new(&snapshots_cfg, &snapshots, err));
    ck_subtask_set_state(s, *store, snapshots);
    return CK_OK;
}

static ck_status make_inflight_place(ck_job *j, ck_job_op *o, ck_error *err) {
    uint32_t n = o->op->input_count;
    if (!j->dir || n == 0) return CK_OK;
    ck_inflight_input *inputs = ck_arena_array(&j->arena, n, sizeof *inputs);
    ck_inflight_place *place = CK_ARENA_NEW(&j->arena, ck_inflight_place);
    if (!inputs || !place) return ck_nomem(err, j->mem, n * sizeof *inputs);
    for (uint32_t i = 0; i < n; i++)
        inputs[i] = (ck_inflight_input){o->spec->inputs[i].schema, o->op->inputs[i].mode != CK_MODE_APPEND};
    *place = (ck_inflight_place){.proc = j->proc,
                                 .mem = ck_mem_as(j->mem, CK_MEM_SNAPSHOT),
                                 .dir = ck_checkpoint_dir_path(j->dir),
                                 .inputs = inputs,
                                 .input_count = n};
    o->inflight = place;
    return CK_OK;
}

static ck_subtask_reads reads_of(const ck_job *j, const ck_job_op *head) {
    const ck_job_reread *r = j->cfg.reread;
    if (!r || !head->desc->source) return CK_READS_ON;
    return r->ends[head->op - j->graph->ops] ? CK_READS_WHOLE : CK_READS_WITHOUT_END;
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
        .vertex = v->id,
        .key_groups = ck_key_group_range_for_subtask(index, v->parallelism, j->graph->key_groups),
        .reads = reads_of(j, head),
        .inflight = head->inflight,
        .host = {j, ck_job_report, ck_job_subtask_retired, ck_job_ref, ck_job_unref},
    };
    ck_state_store *store;
    CK_TRY(ck_subtask_new(&cfg, &j->subtasks[number], err));
    j->local_count++;
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
size_t ck_job_channel_bytes(const ck_job *j, uint32_t channels) {
    if (j->cfg.queue_bytes) return j->cfg.queue_bytes;
    if (channels <= EDGE_FULL_WIDTH) return EDGE_BYTES;
    size_t share = (size_t)EDGE_BYTES * EDGE_FULL_WIDTH / channels;
    return share > EDGE_BYTES_MIN ? share : EDGE_BYTES_MIN;
}

/* Whether all that feeds an input feeds nothing else: then holding it back stalls nobody. */
static bool feeds_one(const ck_job *j, const ck_graph_input *in) {
    const ck_graph_op *from = ck_graph_find(j->graph, in->uid);
    uint32_t consumers = 0;
    for (uint32_t i = 0; i < j->graph->op_count; i++)
        for (uint32_t k = 0; k < j->graph->ops[i].input_count; k++)
            consumers += strcmp(j->graph->ops[i].inputs[k].uid, from->uid) == 0;
    if (consumers != 1) return false;
    for (uint32_t k = 0; k < from->input_count; k++)
        if (!feeds_one(j, &from->inputs[k])) return false;
    return true;
}

/* What is under way on these edges belongs to one subtask and cannot be dealt out again at another parallelism. */
static bool is_strict(const ck_graph_input *in) { return in->kind == CK_EDGE_FORWARD || in->kind == CK_EDGE_BROADCAST; }

static ck_status make_gate(ck_job *j, uint32_t vertex, uint32_t index, ck_error *err) {
    const ck_graph_op *head = j->plan.vertices[vertex].ops[0];
    if (head->input_count == 0) return CK_OK;
    uint32_t *channels_of = ck_arena_array(&j->arena, head->input_count, sizeof *channels_of), channels = 0;
    bool *may_hold = ck_arena_array(&j->arena, head->input_count, sizeof *may_hold);
    bool *strict = ck_arena_array(&j->arena, head->input_count, sizeof *strict);
    if (!channels_of || !may_hold || !strict) return ck_nomem(err, j->mem, head->input_count * sizeof *channels_of);
    for (uint32_t i = 0; i < head->input_count; i++)
        may_hold[i] = head->input_count > 1 && feeds_one(j, &head->inputs[i]);
    for (uint32_t i = 0; i < head->input_count; i++)
        channels += channels_of[i] =
            head->inputs[i].kind == CK_EDGE_FORWARD ? 1 : parallelism_of(j, producer_of(j, &head->inputs[i]));
    for (uint32_t i = 0; i < head->input_count; i++) strict[i] = is_strict(&head->inputs[i]);
    ck_subtask *s = subtask_of(j, vertex, index);
    for (uint32_t i = CK_INFLIGHT_INPUTS_MAX; i < head->input_count; i++) strict[i] = true; /* no file names them */
    ck_gate_config cfg = {.proc = j->proc,
                          .mem = j->mem,
                          .input_count = head->input_count,
                          .channels_of = channels_of,
                          .bytes_max = ck_job_channel_bytes(j, channels),
                          .events_max = EDGE_EVENTS_MAX,
                          .queue_mem = j->queue_mem,
                          .restored = j->restored ? j->restored->checkpoint : 0,
                          .may_hold = may_hold,
                          .strict = strict,
                          .flush_each = j->cfg.batch_rows == 1,
                          .consumer = ck_subtask_task(s)};
    ck_gate *gate;
    CK_TRY(ck_gate_new(&cfg, &gate, err));
    ck_subtask_set_gate(s, gate);
    return CK_OK;
}

/* ---- one producer's channels into one input ---- */

typedef struct edge_end {
    uint32_t vertex, input, producer, target; /* target: index in the vertex */
    const ck_graph_input *in;
    const ck_job_op *from;
    uint32_t number; /* of this channel, in the job */
} edge_end;

static ck_channel *gate_channel(const ck_job *j, const edge_end *e) {
    ck_gate *gate = ck_subtask_gate(subtask_of(j, e->vertex, e->target));
    return ck_gate_channel(gate, e->input, e->in->kind == CK_EDGE_FORWARD ? 0 : e->producer);
}

static ck_status connect_out(ck_job *j, const edge_end *e, ck_exchange *x, ck_error *err) {
    ck_subtask *s = subtask_of(j, e->from->vertex, e->producer);
    ck_channel *ch;
    if (ck_job_is_here(j, e->vertex, e->target))
        ch = gate_channel(j, e);
    else
        CK_TRY(ck_links_add_out(j->links, ck_job_process_of(j, e->vertex, e->target), e->number, e->from->op->schema,
                                e->in->mode != CK_MODE_APPEND, &ch, err));
    ch->producer = ck_subtask_task(s);
    ch->closed_hint = &ck_chain_exchanges(ck_subtask_chain(s))->closed_hint;
    ck_exchange_connect(x, e->in->kind == CK_EDGE_FORWARD ? 0 : e->target, ch);
    return CK_OK;
}

static ck_status connect_in(ck_job *j, const edge_end *e, ck_error *err) {
    if (!ck_job_is_here(j, e->vertex, e->target)) return CK_OK;
    return ck_links_add_in(j->links, ck_job_process_of(j, e->from->vertex, e->producer), e->number, e->from->op->schema,
                           e->in->mode != CK_MODE_APPEND, gate_channel(j, e), err);
}

/* A consumer whose state is by the keys that its rows come by. A sink's, of an upsert table, is by another. */
static const char *keeper_of(const ck_job *j, const edge_end *e) {
    const ck_job_op *to = ck_job_chain_op(j, e->vertex, 0);
    bool keeps = j->cfg.checkpoint.dir && to->op->state_fingerprint && strncmp(to->op->type, "sink.", 5) != 0;
    return keeps && e->in->kind == CK_EDGE_HASH ? to->op->uid : NULL;
}

static ck_status make_exchange(ck_job *j, const edge_end *e, ck_exchange **out, ck_error *err) {
    ck_chain *chain = ck_subtask_chain(subtask_of(j, e->from->vertex, e->producer));
    ck_exchange_config cfg = {.kind = e->in->kind,
                              .schema = e->from->op->schema,
                              .key = e->in->key,
                              .key_count = e->in->key_count,
                              .key_groups = j->graph->key_groups,
                              .producer = e->producer,
                              .target_count = j->plan.vertices[e->vertex].parallelism,
                              .batch_rows = j->cfg.batch_rows,
                              .keeper = keeper_of(j, e)};
    CK_TRY(ck_exchange_new(ck_chain_exchanges(chain), &cfg, out, err));
    if (ck_chain_connect_exchange(chain, e->from->place, e->in->port, *out) != CK_OK) return ck_nomem(err, j->mem, 64);
    return CK_OK;
}

static ck_status connect_producer(ck_job *j, edge_end e, ck_error *err) {
    bool here = ck_job_is_here(j, e.from->vertex, e.producer), forward = e.in->kind == CK_EDGE_FORWARD;
    ck_exchange *x = NULL;
    if (here) CK_TRY(make_exchange(j, &e, &x, err));
    for (e.target = 0; e.target < j->plan.vertices[e.vertex].parallelism; e.target++) {
        e.number = j->edge_count++; /* counted by every process, whether it has a part in it or not */
        if (forward && e.target != e.producer) continue;
        CK_TRY(here ? connect_out(j, &e, x, err) : connect_in(j, &e, err));
    }
    return CK_OK;
}

static ck_status connect_vertex(ck_job *j, uint32_t vertex, ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[vertex];
    for (uint32_t t = 0; t < v->parallelism; t++)
        if (ck_job_is_here(j, vertex, t)) CK_TRY(make_gate(j, vertex, t, err));
    for (uint32_t i = 0; i < v->ops[0]->input_count; i++) {
        edge_end e = {.vertex = vertex, .input = i, .in = &v->ops[0]->inputs[i]};
        e.from = producer_of(j, e.in);
        if (j->links && e.in->port != 0)
            return ck_fail(err, CK_REFUSED, "the side output of %s cannot go to another process yet", e.in->uid);
        for (e.producer = 0; e.producer < parallelism_of(j, e.from); e.producer++) CK_TRY(connect_producer(j, e, err));
    }
    return CK_OK;
}

ck_status ck_job_deploy(ck_job *j, ck_error *err) {
    j->flush_origin_us = ck_wall_us(j->proc) - ck_mono_us(j->proc);
    for (uint32_t i = 0; i < j->graph->op_count; i++) CK_TRY(make_inflight_place(j, &j->ops[i], err));
    for (uint32_t v = 0; v < j->plan.count; v++)
        for (uint32_t i = 0; i < j->plan.vertices[v].parallelism; i++)
            if (ck_job_is_here(j, v, i)) CK_TRY(make_subtask(j, v, i, err));
    for (uint32_t v = 0; v < j->plan.count; v++) CK_TRY(connect_vertex(j, v, err));
    return CK_OK;
}
