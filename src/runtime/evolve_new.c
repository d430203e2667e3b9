/* Operators that a checkpoint does not know begin empty, beside others that go on. What they cannot begin with is found
 * here. See evolve.h. */
#include "runtime/evolve.h"

typedef struct judging {
    const ck_evolve_config *cfg;
    ck_arena *arena;
    const ck_graph *stored;
    const ck_graph_pair *pairs;
    uint32_t pair_count;
    ck_error *err;
} judging;

static ck_status nomem(const judging *j) { return ck_nomem(j->err, j->arena->mem, 0); }

static bool is_sink(const ck_graph_op *op) { return strncmp(op->type, "sink.", 5) == 0; }
static bool is_source(const judging *j, const ck_graph_op *op) { return ck_evolve_is_source(j->cfg, op); }

static const ck_graph_pair *pair_of(const judging *j, const ck_graph_op *op) {
    for (uint32_t i = 0; i < j->pair_count; i++)
        if (j->pairs[i].wanted == op) return &j->pairs[i];
    return NULL;
}

static uint32_t number_of(const judging *j, const char *uid) {
    return (uint32_t)(ck_graph_find(j->cfg->wanted, uid) - j->cfg->wanted->ops);
}

/* ---- a table that is read twice ---- */

/* One table's readers have one name, with marks behind it where there are several. */
static bool reads_one_table(const ck_graph_op *a, const ck_graph_op *b) {
    size_t n = strcspn(a->uid, "~");
    return n == strcspn(b->uid, "~") && memcmp(a->uid, b->uid, n) == 0;
}

/* Whether an operator that goes on with its state gets rows of this source. */
static ck_status feeds_what_goes_on(const judging *j, const ck_graph_op *source, bool *out) {
    const ck_graph *g = j->cfg->wanted;
    bool *reached = ck_arena_array(j->arena, g->op_count + 1u, sizeof *reached);
    *out = false;
    if (!reached) return nomem(j);
    for (uint32_t i = 0; i < g->op_count; i++) { /* inputs come before their users */
        const ck_graph_op *op = &g->ops[i];
        reached[i] = op == source;
        for (uint32_t k = 0; k < op->input_count; k++) reached[i] |= reached[number_of(j, op->inputs[k].uid)];
        if (!reached[i] || !op->state_fingerprint || is_sink(op) || op == source) continue;
        const ck_graph_pair *p = pair_of(j, op);
        *out |= p && p->stored && !p->more_branches;
    }
    return CK_OK;
}

/* A table that was read once is read twice now, for state that has its rows: the new reader would give them again. */
static ck_status judge_reader(const judging *j, ck_evolve_op *to) {
    bool was_read = false;
    for (uint32_t i = 0; i < j->stored->op_count && !was_read; i++)
        was_read = is_source(j, &j->stored->ops[i]) && reads_one_table(&j->stored->ops[i], to->wanted);
    if (!was_read) return CK_OK;
    CK_TRY(feeds_what_goes_on(j, to->wanted, &to->refused));
    if (to->refused)
        to->why = "its table was read once for several and is read twice now, which would give rows again (another "
                  "rate_limit?)";
    return CK_OK;
}

/* ---- rows that are taken back ---- */

/* By operator: it gets rows taken back that were there before the checkpoint. Those come from what goes on. */
static ck_status find_taken_back(const judging *j, bool **out) {
    const ck_graph *g = j->cfg->wanted;
    bool *takes = ck_arena_array(j->arena, g->op_count + 1u, sizeof *takes);
    bool *gives = ck_arena_array(j->arena, g->op_count + 1u, sizeof *gives);
    if (!takes || !gives) return nomem(j);
    for (uint32_t i = 0; i < g->op_count; i++) {
        const ck_graph_op *op = &g->ops[i];
        const ck_graph_pair *p = pair_of(j, op);
        for (uint32_t k = 0; k < op->input_count; k++)
            takes[i] |= op->inputs[k].mode != CK_MODE_APPEND && gives[number_of(j, op->inputs[k].uid)];
        gives[i] = takes[i] || (p && p->stored && (op->state_fingerprint || is_source(j, op)));
    }
    *out = takes;
    return CK_OK;
}

/* What was never counted cannot be taken away. */
static void judge_state(const judging *j, ck_evolve_op *to) {
    to->why = "it is new, and takes back rows of before this checkpoint, which it has not got";
    to->refused = j->cfg->added != CK_ADDED_BACKFILL;
    if (!to->refused) to->verdict = CK_EVOLVE_BACKFILL;
}

ck_status ck_judge_new(ck_arena *a, const ck_evolve_config *cfg, const ck_graph *stored, const ck_graph_pair *pairs,
                       uint32_t pair_count, ck_evolve_op *ops, uint32_t count, ck_error *err) {
    const judging j = {cfg, a, stored, pairs, pair_count, err};
    bool *takes = NULL;
    CK_TRY(find_taken_back(&j, &takes));
    for (uint32_t i = 0; i < count; i++) {
        ck_evolve_op *to = &ops[i];
        if (to->verdict != CK_EVOLVE_NEW) continue;
        if (is_source(&j, to->wanted))
            CK_TRY(judge_reader(&j, to));
        else if (takes[to->wanted - cfg->wanted->ops] && to->wanted->state_fingerprint && !is_sink(to->wanted))
            judge_state(&j, to);
    }
    return CK_OK;
}
