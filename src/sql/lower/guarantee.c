/* What a job promises across restarts: for each sink the weakest of what it, and every source its rows come from, can
 * promise, and what limits it. */
#include <string.h>

#include "sql/lower/lower_int.h"

static const char *const words[] = {"exactly once", "at least once", "none"};

/* The name of a source or a sink without the columns its label has behind it. */
static const char *name_of(ck_lower_state *s, const ck_planned_op *op) {
    const char *end = strstr(op->label, " (");
    return end ? ck_arena_strndup(s->arena, op->label, (size_t)(end - op->label)) : op->label;
}

static const char *sentence(ck_lower_state *s, const ck_planned_op *sink, const ck_planned_op *limit) {
    const char *name = name_of(s, sink), *by = limit == sink ? "" : name_of(s, limit);
    if (!name || !by) return NULL;
    return ck_arena_printf(s->arena, "%s: %s%s%s%s%s%s", name, words[limit->guarantee], *limit->why ? ": " : "",
                           limit->why, *by ? " (" : "", by, *by ? ")" : "");
}

/* Of what is known to promise something, the one that promises least. */
static const ck_planned_op *weaker(const ck_planned_op *a, const ck_planned_op *b) {
    if (!a || !b) return a ? a : b;
    return b->guarantee > a->guarantee ? b : a;
}

/* Every table that is written is one in memory. */
static bool only_memory(const ck_lower_state *s) {
    uint32_t sinks = 0;
    for (uint32_t i = 0; i < s->op_count; i++) {
        if (strncmp(s->ops[i].type, "sink.", 5) != 0) continue;
        if (strcmp(s->ops[i].type, "sink.memory") != 0) return false;
        sinks++;
    }
    return sinks > 0;
}

static ck_status one_for_all(ck_lower_state *s, ck_sql_step *step) {
    const char **all = CK_LOWER_ARRAY(s, 1, const char *);
    if (!all) return CK_NOMEM;
    all[0] = only_memory(s) ? "none across restarts: rows in memory end with the process"
                            : "none across restarts: without a checkpoint directory a restart begins anew";
    step->guarantee = all[0];
    step->guarantees = all, step->guarantee_count = 1;
    return CK_OK;
}

ck_status ck_lower_guarantees(ck_lower_state *s, ck_sql_step *step) {
    if (!s->l->options->checkpoints) return one_for_all(s, step);
    const char **all = CK_LOWER_ARRAY(s, s->op_count, const char *);
    const ck_planned_op **limits = CK_LOWER_ARRAY(s, s->op_count, const ck_planned_op *), *weakest = NULL;
    if (!all || !limits) return CK_NOMEM;
    uint32_t n = 0, weakest_at = 0;
    for (uint32_t i = 0; i < s->op_count; i++) { /* inputs come before their users */
        const ck_planned_op *op = &s->ops[i];
        limits[i] = op->why ? op : NULL;
        for (uint32_t k = 0; k < op->input_count; k++) limits[i] = weaker(limits[i], limits[op->inputs[k].op]);
        if (strncmp(op->type, "sink.", 5) != 0 || !limits[i]) continue;
        if (!(all[n] = sentence(s, op, limits[i]))) return ck_lower_nomem(s);
        if (!weakest || limits[i]->guarantee > weakest->guarantee) weakest = limits[i], weakest_at = n;
        n++;
    }
    step->guarantee = n ? all[weakest_at] : "";
    step->guarantees = all, step->guarantee_count = n;
    return CK_OK;
}
