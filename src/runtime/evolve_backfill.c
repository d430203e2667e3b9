/* Which state is computed again by reading the input up to the checkpoint, and whether that would give what was there:
 * of operators that lack something, and of all that keep state behind them, since what these hold came from state that
 * is replaced. Exact is it where every operator from the sources on is a function of its rows (ck_op_desc.again), and
 * every source can be read again (ck_op_desc.rewind), which is looked at here and not only when it is done. */
#include "runtime/evolve.h"

typedef struct judging {
    const ck_evolve_config *cfg;
    ck_arena *arena;
    ck_error *err;
    ck_evolve_op *ops;
    uint32_t count;
    bool timed; /* something on the way goes by event time */
    const ck_rewound *rewound;
} judging;

static ck_evolve_op *verdict_of(judging *j, const ck_graph_op *op) {
    for (uint32_t i = 0; i < j->count; i++)
        if (j->ops[i].wanted == op) return &j->ops[i];
    return NULL;
}

static bool is_sink(const ck_graph_op *op) { return strncmp(op->type, "sink.", 5) == 0; }

/* Operators come behind their inputs. */
static void spread(judging *j, bool *behind) {
    const ck_graph *g = j->cfg->wanted;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const ck_graph_op *op = &g->ops[i];
        ck_evolve_op *to = verdict_of(j, op);
        for (uint32_t k = 0; k < op->input_count; k++)
            behind[i] |= behind[ck_graph_find(g, op->inputs[k].uid) - g->ops];
        if (behind[i] && to && !is_sink(op) && (to->verdict == CK_EVOLVE_REUSE || to->verdict == CK_EVOLVE_MIGRATE)) {
            to->verdict = CK_EVOLVE_BACKFILL;
            to->why = "it stands on what is computed again";
        }
        behind[i] |= to && to->verdict == CK_EVOLVE_BACKFILL;
    }
}

ck_status ck_backfill_part(ck_arena *a, const ck_graph *g, const ck_evolve_op *ops, uint32_t count, const bool **out,
                           ck_error *err) {
    bool *part = ck_arena_array(a, g->op_count + 1u, sizeof *part);
    if (!part) return ck_nomem(err, a->mem, g->op_count);
    for (uint32_t i = 0; i < count; i++)
        if (ops[i].verdict == CK_EVOLVE_BACKFILL) part[ops[i].wanted - g->ops] = true;
    for (uint32_t i = g->op_count; i-- > 0;)
        for (uint32_t k = 0; part[i] && k < g->ops[i].input_count; k++)
            part[ck_graph_find(g, g->ops[i].inputs[k].uid) - g->ops] = true;
    *out = part;
    return CK_OK;
}

/* Why one operator does not come to what it was; NULL: it does. */
static ck_status reason_of(judging *j, const ck_graph_op *op, ck_again *out) {
    const ck_op_desc *d;
    *out = (ck_again){.why_not = "is not known to this build"};
    if (ck_registry_op(j->cfg->registry, op->type, &d, NULL) != CK_OK) return CK_OK;
    out->why_not =
        d->source ? "cannot be read again up to where the checkpoint stands" : "keeps more than its rows tell";
    if (!d->again || (d->source && !d->rewind)) return CK_OK;
    ck_op_spec *spec = ck_graph_op_spec(j->arena, j->cfg->wanted, op);
    if (!spec) return ck_nomem(j->err, j->arena->mem, sizeof *spec);
    spec->proc = j->cfg->proc;
    spec->settings = j->cfg->settings;
    return d->again(spec, j->arena, out, j->err);
}

/* The first operator on the way to these that does not; event time counts from one source only, and one split of it. */
static ck_status find_reason(judging *j, const bool *part, const char **why) {
    const ck_graph *g = j->cfg->wanted;
    const ck_graph_op *timed = NULL;
    uint32_t sources = 0, splits = 0;
    *why = NULL;
    for (uint32_t i = 0; i < g->op_count && !*why; i++) {
        ck_again again;
        if (!part[i]) continue;
        CK_TRY(reason_of(j, &g->ops[i], &again));
        sources += g->ops[i].input_count == 0;
        if (again.by_time && !timed) timed = &g->ops[i];
        if (again.why_not) *why = ck_arena_printf(j->arena, "%s %s", g->ops[i].uid, again.why_not);
    }
    if (!*why && timed && sources > 1)
        *why = ck_arena_printf(
            j->arena, "%s goes by the event time of several tables, which were read in another order", timed->uid);
    j->timed = timed != NULL;
    if (*why) return CK_OK;
    const ck_evolution e = {.ops = j->ops, .count = j->count};
    CK_TRY(ck_rewind_sources(j->arena, j->cfg, &e, part, &j->rewound, why, j->err));
    for (uint32_t i = 0; i < g->op_count; i++) splits += j->rewound[i].splits.count;
    if (!*why && timed && splits > 1)
        *why =
            ck_arena_printf(j->arena,
                            "%s goes by event time, and the %u splits of its input were read beside each other: what "
                            "was late depends on how; --added-state from_now lets what is new begin empty",
                            timed->uid, splits);
    return CK_OK;
}

static const char *tell(judging *j, const char *lacks, const char *why) {
    if (why) return ck_arena_printf(j->arena, "%s, and its input cannot be computed again: %s", lacks, why);
    return ck_arena_printf(j->arena, "%s: computed by reading its input again%s", lacks,
                           j->timed ? ", and refused at the start if a row of it comes late" : "");
}

ck_status ck_judge_backfill(ck_arena *a, const ck_evolve_config *cfg, ck_evolve_op *ops, uint32_t count,
                            const ck_rewound **rewound, ck_error *err) {
    judging j = {cfg, a, err, ops, count, false, NULL};
    bool *behind = ck_arena_array(a, cfg->wanted->op_count + 1u, sizeof *behind), any = false;
    const bool *part;
    const char *why;
    if (!behind) return ck_nomem(err, a->mem, cfg->wanted->op_count);
    for (uint32_t i = 0; i < count; i++) any |= ops[i].verdict == CK_EVOLVE_BACKFILL;
    if (!any) return CK_OK;
    spread(&j, behind);
    CK_TRY(ck_backfill_part(a, cfg->wanted, ops, count, &part, err));
    CK_TRY(find_reason(&j, part, &why));
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i].verdict != CK_EVOLVE_BACKFILL) continue;
        if (!(ops[i].why = tell(&j, ops[i].why, why))) return ck_nomem(err, a->mem, 256);
        ops[i].refused |= why != NULL;
        if (why) ops[i].verdict = CK_EVOLVE_REBUILD;
    }
    *rewound = j.rewound;
    return CK_OK;
}
