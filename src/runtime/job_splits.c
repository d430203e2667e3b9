/* The splits of a job's sources: those a restored checkpoint holds, and those found when the job starts. */
#include "runtime/job_int.h"

#include <stdio.h>

#include "state/operator_rows.h"

static ck_status nomem(ck_job *j, ck_error *err) { return ck_nomem(err, j->mem, 4096); }

/* What the restored checkpoint gave the subtasks of a source; known: it was in that checkpoint at all. */
static ck_status restored_splits(ck_job *j, const ck_job_op *o, ck_split_list *all, bool *known, ck_error *err) {
    *known = j->links != NULL; /* else what others hold would be dealt out again */
    for (uint32_t i = 0; i < j->plan.vertices[o->vertex].parallelism; i++) {
        ck_subtask *s = j->subtasks[j->first_subtask[o->vertex] + i];
        if (!s) continue;
        ck_split_list own = {.arena = &j->arena};
        bool here = false;
        ck_state *st = ck_chain_op(ck_subtask_chain(s), o->place)->ctx.state;
        CK_TRY(ck_splits_load(st, &own, &here, err));
        *known |= here;
        for (uint32_t k = 0; k < own.count; k++) {
            if (ck_subtask_add_split(s, &own.splits[k]) != CK_OK) return nomem(j, err);
            if (ck_split_list_add(all, own.splits[k].id, "") != CK_OK) return nomem(j, err);
        }
    }
    return CK_OK;
}

static bool has_split(const ck_split_list *l, const char *id) {
    for (uint32_t i = 0; i < l->count; i++)
        if (strcmp(l->splits[i].id, id) == 0) return true;
    return false;
}

static ck_status hold(ck_job *j, const ck_split_list *found, ck_error *err) {
    if (!found->release) return CK_OK;
    ck_job_held *h = CK_ARENA_NEW(&j->arena, ck_job_held);
    if (!h) {
        found->release(found->held);
        return nomem(j, err);
    }
    *h = (ck_job_held){j->held, found->held, found->release};
    j->held = h;
    return CK_OK;
}

/* With other options it may have other splits. */
static bool has_other_options(const ck_job *j, const ck_graph_op *op) {
    for (uint32_t i = 0; i < j->evolution.count; i++)
        if (j->evolution.ops[i].wanted == op) return j->evolution.ops[i].refused;
    return false;
}

/* In order, one subtask after the other. A bounded source keeps the splits of its first start: its input was chosen
 * then, and its result must not depend on when it was interrupted. */
static ck_status deal(ck_job *j, const ck_job_op *o, ck_error *err) {
    ck_split_list known = {.arena = &j->arena}, found = {.arena = &j->arena};
    bool was_known = false;
    uint32_t parallelism = j->plan.vertices[o->vertex].parallelism;
    if (j->restored) CK_TRY(restored_splits(j, o, &known, &was_known, err));
    if (!o->desc->enumerate || (was_known && !o->unbounded_source && !has_other_options(j, o->op))) return CK_OK;
    if (was_known && j->links)
        return ck_fail(err, CK_REFUSED, "a source that may find new splits cannot go on over several processes yet");
    ck_op_spec *spec = ck_job_op_spec(j, o, 0, parallelism);
    if (!spec) return nomem(j, err);
    spec->continues = was_known;
    CK_TRY(o->desc->enumerate(spec, parallelism, &found, err));
    CK_TRY(hold(j, &found, err));
    j->begins_now |= found.now;
    uint32_t turn = known.count;
    for (uint32_t i = 0; i < found.count; i++) {
        if (has_split(&known, found.splits[i].id)) continue;
        if (j->links) ck_job_note_split(j, &found.splits[i]);
        ck_subtask *s = j->subtasks[j->first_subtask[o->vertex] + turn++ % parallelism];
        if (s && ck_subtask_add_split(s, &found.splits[i]) != CK_OK) return nomem(j, err); /* NULL: another process */
    }
    return CK_OK;
}

ck_status ck_job_deal_splits(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        if (!j->ops[i].desc->source) continue;
        ck_status s = deal(j, &j->ops[i], err);
        if (s == CK_OK) continue;
        if (err && !err->place.object[0])
            (void)snprintf(err->place.object, sizeof err->place.object, "%s", j->ops[i].op->uid);
        return s;
    }
    return CK_OK;
}
