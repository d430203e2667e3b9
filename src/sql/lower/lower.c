/* See lower.h. */
#include "sql/lower/lower_int.h"

#include "base/hash.h"
#include "base/json.h"
#include "graph/fingerprint.h"

#include <yyjson.h>

ck_status ck_lower_nomem(ck_lower_state *s) { return ck_nomem(s->err, s->arena->mem, 0); }

void *ck_lower_array(ck_lower_state *s, size_t count, size_t size) {
    void *a = ck_arena_array(s->arena, count ? count : 1, size);
    if (!a) ck_lower_nomem(s);
    return a;
}

ck_status ck_lower_add(ck_lower_state *s, const ck_planned_op *op, uint32_t *out) {
    const ck_op_desc *known;
    CK_TRY(ck_registry_op(s->l->catalog->registry, op->type, &known, s->err));
    if (s->op_count == s->op_capacity) {
        uint32_t capacity = s->op_capacity ? s->op_capacity * 2 : 32;
        ck_planned_op *more = CK_LOWER_ARRAY(s, capacity, ck_planned_op);
        if (!more) return CK_NOMEM;
        if (s->op_count) memcpy(more, s->ops, s->op_count * sizeof *more);
        s->ops = more, s->op_capacity = capacity;
    }
    *out = s->op_count;
    s->ops[s->op_count++] = *op;
    return CK_OK;
}

bool ck_lower_is_hashed_by(const ck_lowered *from, ck_columns key) {
    if (!from->hashed || from->hash.count != key.count) return false;
    return key.count == 0 || memcmp(from->hash.at, key.at, key.count * sizeof *key.at) == 0;
}

ck_status ck_lower_chained(ck_lower_state *s, const ck_plan_node *n, const char *type, const char *params,
                           const char *label, const ck_plan_node *input, const ck_lowered *from, uint32_t *out) {
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    const char *base = ck_arena_printf(s->arena, "%s()<-%s", type, n->ancestor_count ? n->ancestors[0] : "");
    for (uint32_t i = 1; base && i < n->ancestor_count; i++)
        base = ck_arena_printf(s->arena, "%s,%s", base, n->ancestors[i]);
    if (!in || !base || !label) return ck_lower_nomem(s);
    if (strlen(base) > CK_NAME_BYTES_MAX)
        base = ck_arena_printf(s->arena, "%s()<-#%016llx", type, (unsigned long long)ck_fnv1a(base, strlen(base)));
    if (!base) return ck_lower_nomem(s);
    *in = (ck_planned_input){.op = from->op, .kind = CK_EDGE_FORWARD, .mode = input->mode, .bounded = input->bounded};
    ck_planned_op op = {.base = base,
                        .canonical = n->canonical,
                        .type = type,
                        .params = params,
                        .label = label,
                        .inputs = in,
                        .input_count = 1,
                        .schema = n->schema,
                        .has_key = n->key_count > 0,
                        .single = s->ops[from->op].single};
    if (n->key_count) op.key = n->keys[0];
    return ck_lower_add(s, &op, out);
}

uint64_t ck_lower_semantic(const ck_lower_state *s, uint64_t meaning) {
    const ck_settings *set = &s->l->catalog->settings;
    uint64_t h = ck_hash_combine(meaning, ck_fnv1a(set->timezone, strlen(set->timezone)));
    h = ck_hash_combine(h, set->eval_error_null);
    return h ? h : 1;
}

static ck_status note_meaning(ck_lower_state *s, const ck_plan_node *n, ck_planned_op *op) {
    uint64_t *branches = CK_LOWER_ARRAY(s, n->meaning.branch_count + 1u, uint64_t);
    if (!branches) return CK_NOMEM;
    op->semantic_fingerprint = ck_lower_semantic(s, n->meaning.state);
    op->branches = branches;
    op->branch_count = n->meaning.branch_count;
    for (uint32_t i = 0; i < op->branch_count; i++) branches[i] = ck_lower_semantic(s, n->meaning.branches[i]);
    return CK_OK;
}

ck_status ck_lower_node(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    static ck_status (*const by_kind[])(ck_lower_state *, const ck_plan_node *,
                                        ck_lowered *) = {[CK_PLAN_SCAN] = ck_lower_scan,
                                                         [CK_PLAN_VALUES] = ck_lower_values,
                                                         [CK_PLAN_FILTER] = ck_lower_filter,
                                                         [CK_PLAN_PROJECT] = ck_lower_project,
                                                         [CK_PLAN_AGGREGATE] = ck_lower_aggregate,
                                                         [CK_PLAN_UNION] = ck_lower_union,
                                                         [CK_PLAN_LIMIT] = ck_lower_limit,
                                                         [CK_PLAN_SORT] = ck_lower_sort,
                                                         [CK_PLAN_TOP_N] = ck_lower_top_n,
                                                         [CK_PLAN_JOIN] = ck_lower_join,
                                                         [CK_PLAN_SET_OP] = ck_lower_set_op,
                                                         [CK_PLAN_UNNEST] = ck_lower_unnest,
                                                         [CK_PLAN_WINDOW] = ck_lower_window,
                                                         [CK_PLAN_WINDOW_AGG] = ck_lower_window_agg,
                                                         [CK_PLAN_OVER] = ck_lower_over};
    if (!s->nodes[n->id].done) {
        ck_lowered made = {0};
        CK_TRY(by_kind[n->kind](s, n, &made));
        made.done = true;
        ck_planned_op *op = &s->ops[made.op];
        if (op->stateful && !op->growth && !n->bounded && !(op->growth = ck_lower_growth(s, n)))
            return ck_lower_nomem(s);
        if (op->stateful && n->meaning.known) CK_TRY(note_meaning(s, n, op));
        s->nodes[n->id] = made;
    }
    *out = s->nodes[n->id];
    return CK_OK;
}

/* ---- into the graph ---- */

static ck_status graph_inputs(ck_lower_state *s, const ck_planned_op *op, ck_graph_input **out) {
    ck_graph_input *inputs = CK_LOWER_ARRAY(s, op->input_count, ck_graph_input);
    if (!inputs) return CK_NOMEM;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_planned_input *in = &op->inputs[i];
        inputs[i] = (ck_graph_input){.uid = s->ops[in->op].uid,
                                     .port = in->port,
                                     .kind = in->kind,
                                     .key = in->key.at,
                                     .key_count = in->key.count,
                                     .mode = in->mode,
                                     .bounded = in->bounded};
    }
    *out = inputs;
    return CK_OK;
}

static ck_status add_op(ck_lower_state *s, ck_graph_builder *b, const ck_planned_op *op) {
    ck_graph_op *added;
    ck_graph_op g = {.uid = op->uid,
                     .type = op->type,
                     .params = op->params,
                     .label = op->label ? ck_arena_strdup(s->arena, op->label) : NULL,
                     .input_count = op->input_count,
                     .schema = ck_schema_copy(s->arena, op->schema), /* nothing of the catalog's is kept */
                     .parallelism = op->single ? 1 : 0,
                     .min_parallelism = op->single ? 0 : CK_PARALLELISM_DEFAULT,
                     .max_parallelism = op->single ? 0 : CK_PARALLELISM_DEFAULT,
                     .final = op->final,
                     .state_fingerprint = op->state_fingerprint,
                     .semantic_fingerprint = op->semantic_fingerprint,
                     .branches = op->branches,
                     .branch_count = op->branch_count};
    if (!g.schema || (op->label && !g.label)) return ck_lower_nomem(s);
    if (op->has_key && op->key.count) g.key = op->key.at, g.key_count = op->key.count;
    CK_TRY(graph_inputs(s, op, &g.inputs));
    ck_status st = ck_graph_add(b, &g, &added);
    if (st == CK_FULL) return ck_fail(s->err, CK_INVALID, "the job has more than %d operators", CK_GRAPH_OPS_MAX);
    return st == CK_OK ? CK_OK : ck_lower_nomem(s);
}

static ck_status build_graph(ck_lower_state *s, ck_graph **out) {
    const ck_sql_options *o = s->l->options;
    const ck_settings *set = &s->l->catalog->settings;
    ck_graph_builder b;
    CK_TRY(ck_graph_builder_init(&b, s->arena, o->job_name ? o->job_name : "sql"));
    b.graph->key_groups = o->key_groups;
    b.graph->timezone = ck_arena_strdup(s->arena, set->timezone);
    b.graph->settings = set->eval_error_null ? "{\"on_eval_error\":\"null\"}" : "{}";
    if (!b.graph->timezone) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < s->op_count; i++) CK_TRY(add_op(s, &b, &s->ops[i]));
    return ck_graph_check(&b, out, s->err);
}

/* ---- what the step says about the job ---- */

static ck_status result_of(ck_lower_state *s, const ck_output *o, ck_sql_step *step) {
    if (o->table) return CK_OK;
    step->has_result = true;
    step->result_schema = ck_schema_copy(s->arena, o->schema);
    step->result_mode = o->node->mode;
    step->result_key = o->key, step->result_key_count = o->key_count;
    return step->result_schema ? CK_OK : ck_lower_nomem(s);
}

static ck_status fill_step(ck_lower_state *s, const ck_output *outputs, uint32_t count, ck_sql_step *step) {
    const ck_settings *set = &s->l->catalog->settings;
    step->kind = CK_SQL_JOB;
    step->batch_rows = set->batch_rows, step->flush_us = set->flush_us;
    step->bounded = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!outputs[i].node->bounded) step->bounded = false;
        CK_TRY(result_of(s, &outputs[i], step));
    }
    step->warnings = s->l->warnings, step->warning_count = s->l->warning_count;
    CK_TRY(ck_lower_guarantees(s, step));
    return ck_lower_explain(s, step, &step->explain);
}

/* Whether some operator asks how far time has come. */
static bool asks_for_time(ck_lower_state *s, const ck_plan_node *n, bool *seen) {
    if (seen[n->id]) return false;
    seen[n->id] = true;
    bool any = ck_plan_uses_time(n) || (n->ttl_us && s->l->catalog->settings.state_ttl_events);
    for (uint32_t i = 0; i < n->input_count; i++) any = asks_for_time(s, n->inputs[i], seen) || any;
    return any;
}

ck_status ck_lower(const ck_lowering *l, const ck_output *outputs, uint32_t count, ck_sql_step *step) {
    ck_lower_state s = {.l = l, .arena = l->plan->arena, .err = l->plan->err};
    ck_graph *graph;
    s.nodes = CK_LOWER_ARRAY(&s, l->plan->node_count, ck_lowered);
    s.timed = CK_LOWER_ARRAY(&s, l->plan->node_count, bool);
    bool *seen = CK_LOWER_ARRAY(&s, l->plan->node_count, bool), *asked = CK_LOWER_ARRAY(&s, l->plan->node_count, bool);
    if (!s.nodes || !s.timed || !seen || !asked) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        bool timed = outputs[i].table && outputs[i].table->table.connector->timed;
        ck_plan_mark_timed(outputs[i].node, timed, s.timed, seen);
        s.event_time = timed || asks_for_time(&s, outputs[i].node, asked) || s.event_time;
    }
    for (uint32_t i = 0; i < count; i++) CK_TRY(ck_lower_output(&s, &outputs[i]));
    CK_TRY(ck_lower_late_sinks(&s));
    CK_TRY(ck_lower_uids(&s));
    CK_TRY(ck_lower_slots(&s));
    CK_TRY(build_graph(&s, &graph));
    step->graph = graph;
    return fill_step(&s, outputs, count, step);
}
