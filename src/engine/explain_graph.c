/* EXPLAIN of a job that was not made of SQL alone: what the graph says, in the shape of EXPLAIN of a script. */
#include "engine/plugin_job.h"

enum { TEXT_BYTES_MAX = 64 << 20, INDENT_MAX = 60 };

typedef struct printer {
    ck_arena *arena;
    const ck_registry *registry;
    ck_proc *proc;
    const ck_graph *graph;
    ck_job_settings settings;
    ck_bytes out;
    bool *shown;
    int8_t *ends; /* by operator: 1 what it says ends, -1 it goes on, 0 not looked at */
    ck_error *err;
} printer;

static ck_status indent(printer *p, uint32_t depth) {
    return ck_bytes_printf(&p->out, "%*s", 2 * (int)(depth < INDENT_MAX ? depth : INDENT_MAX), "");
}

static ck_status put_slot(printer *p, const ck_slot_schema *s, uint32_t depth) {
    CK_TRY(indent(p, depth));
    CK_TRY(ck_bytes_printf(&p->out, "state %s (", s->slot));
    for (uint32_t i = 0; i < s->partition_count + s->order_count; i++)
        CK_TRY(ck_bytes_printf(&p->out, "%s%s", i ? ", " : "",
                               i < s->partition_count ? s->partition[i].name
                                                      : s->order[i - s->partition_count].field.name));
    CK_TRY(ck_bytes_printf(&p->out, ")%s", s->value_count ? " -> " : ""));
    for (uint32_t i = 0; i < s->value_count; i++)
        CK_TRY(ck_bytes_printf(&p->out, "%s%s", i ? ", " : "", s->values[i].name));
    if (s->version > 1) CK_TRY(ck_bytes_printf(&p->out, ", %s version %u", s->state_type, s->version));
    if (s->ttl_us)
        CK_TRY(ck_bytes_printf(&p->out, ", kept %lld ms after it was written", (long long)(s->ttl_us / 1000)));
    return ck_bytes_char(&p->out, '\n');
}

static ck_status put_state(printer *p, const ck_graph_op *op, uint32_t depth) {
    const ck_op_desc *d;
    const ck_slot_schema *slots;
    uint32_t count = 0;
    CK_TRY(ck_registry_op(p->registry, op->type, &d, p->err));
    if (!d->slots) return CK_OK;
    ck_op_spec *spec = ck_graph_op_spec(p->arena, p->graph, op);
    if (!spec) return CK_NOMEM;
    spec->proc = p->proc;
    spec->settings = &p->settings;
    CK_TRY(d->slots(spec, p->arena, &slots, &count, p->err));
    if (!count) return CK_OK;
    CK_TRY(indent(p, depth));
    CK_TRY(ck_bytes_printf(&p->out, "uid %s\n", op->uid));
    for (uint32_t i = 0; i < count; i++)
        if (slots[i].mode == CK_SLOT_KEYED) CK_TRY(put_slot(p, &slots[i], depth));
    return CK_OK;
}

/* What comes out of an operator ends when all that goes in does. Where SQL reads what an operator of the plugin says,
 * the edge was planned before anybody knew. */
static bool ends(printer *p, const ck_graph_input *in) {
    const ck_graph_op *from = ck_graph_find(p->graph, in->uid);
    int8_t *known = &p->ends[from - p->graph->ops];
    if (from->input_count == 0) return in->bounded;
    if (*known == 0) {
        *known = 1;
        for (uint32_t i = 0; i<from->input_count && * known> 0; i++)
            if (!ends(p, &from->inputs[i])) *known = -1;
    }
    return *known > 0;
}

static ck_status put_op(printer *p, const ck_graph_op *op, uint32_t depth) {
    uint32_t at = (uint32_t)(op - p->graph->ops);
    CK_TRY(indent(p, depth));
    CK_TRY(ck_bytes_printf(&p->out, "%s %s%s\n", op->type, op->label ? op->label : op->uid,
                           p->shown[at] ? " (above)" : ""));
    if (p->shown[at]) return CK_OK;
    p->shown[at] = true;
    CK_TRY(put_state(p, op, depth + 1));
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_graph_input *in = &op->inputs[i];
        const ck_graph_op *from = ck_graph_find(p->graph, in->uid);
        CK_TRY(indent(p, depth + 1));
        CK_TRY(ck_bytes_printf(&p->out, "<- %s", ck_edge_kind_name(in->kind)));
        for (uint32_t k = 0; k < in->key_count; k++)
            CK_TRY(ck_bytes_printf(&p->out, "%s%s%s", k ? ", " : " (", from->schema->fields[in->key[k]].name,
                                   k + 1 == in->key_count ? ")" : ""));
        if (in->port) CK_TRY(ck_bytes_printf(&p->out, ", side output %u", in->port));
        CK_TRY(
            ck_bytes_printf(&p->out, ", %s, %s\n", ck_edge_mode_name(in->mode), ends(p, in) ? "bounded" : "unbounded"));
        CK_TRY(put_op(p, from, depth + 1));
    }
    return CK_OK;
}

static bool is_read(const ck_graph *g, const ck_graph_op *op) {
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->ops[i].input_count; k++)
            if (strcmp(g->ops[i].inputs[k].uid, op->uid) == 0) return true;
    return false;
}

ck_status engine_explain_graph(ck_arena *a, const ck_registry *r, ck_proc *proc, const ck_graph *g, const char **out,
                               ck_error *err) {
    printer p = {.arena = a, .registry = r, .proc = proc, .graph = g, .err = err};
    p.settings = (ck_job_settings){
        .batch_rows = CK_BATCH_ROWS_MAX, .key_groups = g->key_groups, .timezone = g->timezone, .job_name = g->name};
    p.shown = ck_arena_array(a, g->op_count + 1u, sizeof *p.shown);
    p.ends = ck_arena_array(a, g->op_count + 1u, sizeof *p.ends);
    if (!p.shown || !p.ends) return ck_nomem(err, a->mem, g->op_count);
    ck_bytes_init(&p.out, a->mem, TEXT_BYTES_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < g->op_count; i++)
        if (!is_read(g, &g->ops[i])) s = put_op(&p, &g->ops[i], 0);
    if (s == CK_OK && !(*out = ck_arena_strndup(a, p.out.p ? p.out.p : "", p.out.n))) s = CK_NOMEM;
    if (s == CK_NOMEM || s == CK_FULL) s = ck_nomem(err, a->mem, p.out.n);
    ck_bytes_destroy(&p.out);
    return s;
}
