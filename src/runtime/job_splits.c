/* The splits of a job's sources: those a restored checkpoint holds, and those found when the job starts. Over several
 * processes only the leader looks for new ones, because two that look for themselves may see different files and
 * offsets; it tells the others which of them are theirs. */
#include "runtime/job_int.h"

#include <stdio.h>

#include "base/cursor.h"
#include "runtime/wire.h"
#include "state/operator_rows.h"

static ck_status nomem(ck_job *j, ck_error *err) { return ck_nomem(err, j->mem, 4096); }

/* What the restored checkpoint gave the subtasks here of a source. */
static ck_status restored_splits(ck_job *j, const ck_job_op *o, ck_error *err) {
    for (uint32_t i = 0; i < j->plan.vertices[o->vertex].parallelism; i++) {
        ck_subtask *s = j->subtasks[j->first_subtask[o->vertex] + i];
        if (!s) continue;
        ck_split_list own = {.arena = &j->arena};
        bool here;
        CK_TRY(ck_splits_load(ck_chain_op(ck_subtask_chain(s), o->place)->ctx.state, &own, &here, err));
        for (uint32_t k = 0; k < own.count; k++)
            if (ck_subtask_add_split(s, &own.splits[k]) != CK_OK) return nomem(j, err);
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

/* ---- new splits of other processes: u32 subtask, u32 length and id, u32 length and spec each ---- */

static ck_status put(ck_bytes *b, uint32_t subtask, const ck_split *s) {
    size_t id = strlen(s->id), spec = strlen(s->spec);
    CK_TRY(ck_bytes_reserve(b, 12 + id + spec));
    CK_TRY(ck_bytes_u32be(b, subtask));
    CK_TRY(ck_bytes_u32be(b, (uint32_t)id));
    CK_TRY(ck_bytes_append(b, s->id, id));
    CK_TRY(ck_bytes_u32be(b, (uint32_t)spec));
    return ck_bytes_append(b, s->spec, spec);
}

static ck_status for_another_process(ck_job *j, uint32_t subtask, const ck_split *split, ck_error *err) {
    ck_status s = put(&j->new_splits, subtask, split);
    if (s == CK_FULL)
        return ck_fail(err, CK_REFUSED,
                       "the sources have found more splits than one process can tell the others of (%d MiB of them); "
                       "run the job in one process, or let it read fewer files",
                       CK_WIRE_SPLITS_BYTES_MAX >> 20);
    return s == CK_OK ? CK_OK : nomem(j, err);
}

static bool is_source(const ck_job *j, uint32_t subtask) {
    return subtask < j->subtask_count && ck_job_chain_op(j, ck_job_vertex_of(j, subtask), 0)->desc->source;
}

static bool next_string(ck_cursor *c, ck_arena *a, const char **out) {
    uint32_t n;
    ck_view v = {"", 0};
    if (!ck_cursor_u32be(c, &n) || !ck_cursor_take(c, n, &v) || memchr(v.p, 0, v.n)) return false;
    *out = ck_arena_strndup(a, v.p, v.n);
    return true;
}

/* A follower: of those the leader has found, what is ours. */
static ck_status take_told(ck_job *j, ck_error *err) {
    ck_view told = ck_links_word_of_leader(j->links)->splits;
    ck_cursor c = ck_cursor_of(told.p, told.n);
    while (c.left) {
        uint32_t subtask;
        ck_split s = {0};
        if (!ck_cursor_u32be(&c, &subtask) || !is_source(j, subtask) || !next_string(&c, &j->arena, &s.id) ||
            !next_string(&c, &j->arena, &s.spec))
            return ck_fail(err, CK_CORRUPT, "the splits that process 0 tells do not check out");
        if (!s.id || !s.spec) return nomem(j, err);
        ck_subtask *ours = j->subtasks[subtask]; /* NULL: of a third process */
        if (ours && ck_subtask_add_split(ours, &s) != CK_OK) return nomem(j, err);
    }
    return CK_OK;
}

/* ---- dealing ---- */

/* In order, one subtask after the other. A bounded source keeps the splits of its first start: its input was chosen
 * then, and its result must not depend on when it was interrupted. */
static ck_status deal_new(ck_job *j, const ck_job_op *o, ck_error *err) {
    ck_split_list found = {.arena = &j->arena};
    uint32_t parallelism = j->plan.vertices[o->vertex].parallelism;
    if (!o->desc->enumerate || (o->was_known && !o->unbounded_source && !has_other_options(j, o->op))) return CK_OK;
    ck_op_spec *spec = ck_job_op_spec(j, o, 0, parallelism);
    if (!spec) return nomem(j, err);
    spec->continues = o->was_known;
    if (j->cfg.reread)
        found = j->cfg.reread->splits[o->op - j->graph->ops];
    else
        CK_TRY(o->desc->enumerate(spec, parallelism, &found, err));
    CK_TRY(hold(j, &found, err));
    j->begins_now |= found.now;
    uint32_t turn = o->known_splits.count;
    for (uint32_t i = 0; i < found.count; i++) {
        if (has_split(&o->known_splits, found.splits[i].id)) continue;
        uint32_t to = j->first_subtask[o->vertex] + turn++ % parallelism;
        if (!j->subtasks[to])
            CK_TRY(for_another_process(j, to, &found.splits[i], err));
        else if (ck_subtask_add_split(j->subtasks[to], &found.splits[i]) != CK_OK)
            return nomem(j, err);
    }
    return CK_OK;
}

ck_status ck_job_deal_splits(ck_job *j, ck_error *err) {
    bool follows = ck_job_follows(j);
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        if (!j->ops[i].desc->source) continue;
        ck_status s = j->restored ? restored_splits(j, &j->ops[i], err) : CK_OK;
        if (s == CK_OK && !follows) s = deal_new(j, &j->ops[i], err);
        if (s == CK_OK) continue;
        if (err && !err->place.object[0])
            (void)snprintf(err->place.object, sizeof err->place.object, "%s", j->ops[i].op->uid);
        return s;
    }
    return follows ? take_told(j, err) : CK_OK;
}
