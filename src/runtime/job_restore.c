/* What a job continues from: its directory and the checkpoint chosen in it, the state of every subtask, the commits
 * that checkpoint still owes, and the splits of the sources. All of it blocks and happens before anything runs.
 *
 *   final checkpoint -> commit what it carries, done: the job had finished
 *   a checkpoint     -> load, commit what it carries, abort what is newer, run
 *   none             -> abort what a dead run left behind, run from the start
 *
 * A checkpoint that is damaged is passed over for the one before, when nobody has asked for it by name and no sink has
 * committed past that one; else the damage is the job's error.
 */
#include "runtime/job_int.h"

#include <stdio.h>

#include "state/operator_rows.h"

enum { RESTORE_TRIES = 3 };

static ck_status nomem(ck_job *j, ck_error *err) { return ck_nomem(err, j->mem, 4096); }

/* ---- choosing ---- */

/* What is no part of a job may not have been none when the checkpoint was made: its graph is hashed again. */
static bool is_this_job(ck_job *j, const ck_manifest *m) {
    ck_graph *g;
    if (m->graph_hash == ck_graph_hash(j->graph)) return true;
    return ck_graph_decode(&j->arena, ck_view_of(m->graph), &g, NULL) == CK_OK &&
           ck_graph_hash(g) == ck_graph_hash(j->graph);
}

static ck_status check_manifest(ck_job *j, const ck_manifest *m, const char *dir, ck_error *err) {
    if (is_this_job(j, m)) return CK_OK;
    return ck_fail(err, CK_REFUSED,
                   "checkpoint %llu in %s was made by another script: the job '%s' there has other operators than this "
                   "one; use another directory, or --fresh to start anew in this one",
                   (unsigned long long)m->checkpoint, dir, m->job_name);
}

static ck_status note_damage(ck_job *j, ck_status s) {
    j->damaged |= s == CK_CORRUPT || s == CK_NOTFOUND;
    return s;
}

/* Of this job; below 0: of all. *id 0: there is none. */
static ck_status newest_below(ck_job *j, uint64_t below, uint64_t *id) {
    ck_checkpoint_entry *entries;
    uint32_t count;
    *id = 0;
    CK_TRY(ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count));
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].own && (!below || entries[i].checkpoint < below)) *id = entries[i].checkpoint;
    return CK_OK;
}

/* id 0: the newest. */
static ck_status read_manifest(ck_job *j, ck_checkpoint_dir *d, uint64_t id, ck_error *err) {
    ck_manifest *m;
    if (id == 0 && d == j->dir && j->below) {
        if (newest_below(j, j->below, &id) != CK_OK) return nomem(j, err);
    } else if (id == 0) {
        ck_checkpoint_entry newest;
        ck_status s = ck_checkpoint_dir_newest(d, &newest);
        if (s == CK_NOTFOUND)
            return ck_fail(err, CK_NOTFOUND, "%s has no complete checkpoint to restore", ck_checkpoint_dir_path(d));
        if (s != CK_OK) return ck_fail(err, s, "%s cannot be read", ck_checkpoint_dir_path(d));
        id = newest.checkpoint;
    }
    j->tried = id;
    CK_TRY(note_damage(j, ck_checkpoint_dir_read(d, id, &j->arena, &m, err)));
    CK_TRY(check_manifest(j, m, ck_checkpoint_dir_path(d), err));
    j->restored_dir = ck_arena_strdup(&j->arena, ck_checkpoint_dir_path(d));
    j->restored = m;
    return j->restored_dir ? CK_OK : nomem(j, err);
}

static ck_status read_elsewhere(ck_job *j, const char *path, uint64_t id, ck_error *err) {
    ck_checkpoint_dir_config cfg = {.proc = j->proc, .mem = j->mem, .path = path, .read_only = true};
    ck_status s = CK_NOTFOUND;
    /* Its job may go on meanwhile, and its retention take what was the newest: then there is a newer one. */
    for (int tries = 0; s == CK_NOTFOUND && tries < (id ? 1 : RESTORE_TRIES); tries++) {
        ck_checkpoint_dir *d;
        ck_error_reset(err);
        CK_TRY(ck_checkpoint_dir_open(&cfg, &d, err));
        s = read_manifest(j, d, id, err);
        ck_checkpoint_dir_close(d);
    }
    return s;
}

static bool has_committer(const ck_job *j) {
    for (uint32_t i = 0; i < j->graph->op_count; i++)
        if (j->ops[i].desc->committer) return true;
    return false;
}

/* Whether a sink got as far as its commit in a newer one without its marker, the sink itself finds out. */
bool ck_job_may_go_back(ck_job *j) {
    const ck_checkpoint_config *c = &j->cfg.checkpoint;
    ck_checkpoint_entry *entries;
    uint32_t count;
    uint64_t older;
    bool asked = c->restore && c->restore[0] && strcmp(c->restore, "latest") != 0;
    if (!j->damaged || !j->dir || asked || c->fresh || j->links) return false;
    if (newest_below(j, j->tried, &older) != CK_OK || !older) return false;
    if (c->allow_duplicates || !has_committer(j)) return true;
    if (ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count) != CK_OK) return false;
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].own && entries[i].checkpoint > older && entries[i].committed) return false;
    return true;
}

ck_status ck_job_abandon_newer(ck_job *j, ck_error *err) {
    ck_checkpoint_entry *entries;
    uint32_t count;
    if (!j->below) return CK_OK;
    if (ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count) != CK_OK) return nomem(j, err);
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].own && entries[i].checkpoint >= j->below)
            CK_TRY(ck_checkpoint_dir_abandon(j->dir, entries[i].checkpoint, err));
    return CK_OK;
}

static ck_status choose(ck_job *j, ck_error *err) {
    const char *wanted = j->cfg.checkpoint.restore, *path;
    uint64_t id;
    if (wanted && wanted[0]) {
        CK_TRY(ck_restore_point_parse(&j->arena, wanted, &path, &id, err));
        return path ? read_elsewhere(j, path, id, err) : read_manifest(j, j->dir, id, err);
    }
    uint64_t newest;
    if (newest_below(j, j->below, &newest) != CK_OK) return nomem(j, err);
    return newest ? read_manifest(j, j->dir, newest, err) : CK_OK;
}

/* An operator had ended when every subtask of its vertex had. */
static void note_ended(ck_job *j) {
    for (uint32_t v = 0; v < j->restored->vertex_count; v++) {
        const ck_manifest_vertex *mv = &j->restored->vertices[v];
        if (mv->finished_count < mv->parallelism) continue;
        for (uint32_t i = 0; i < mv->op_count; i++) {
            const ck_graph_op *op = ck_graph_find(j->graph, mv->ops[i]);
            if (op) j->ops[op - j->graph->ops].ended = true;
        }
    }
}

/* A follower continues from what the leader chose. */
static ck_status choose_as_leader(ck_job *j, ck_error *err) {
    uint64_t id = ck_links_word_of_leader(j->links)->restored, wanted;
    const char *path = NULL, *restore = j->cfg.checkpoint.restore;
    if (id == 0) return CK_OK;
    if (restore && restore[0]) CK_TRY(ck_restore_point_parse(&j->arena, restore, &path, &wanted, err));
    return path ? read_elsewhere(j, path, id, err) : read_manifest(j, j->dir, id, err);
}

ck_status ck_job_open_dir(ck_job *j, ck_error *err) {
    bool follows = ck_job_follows(j);
    if (!j->cfg.checkpoint.dir) return CK_OK;
    ck_checkpoint_dir_config cfg = {.proc = j->proc,
                                    .mem = j->mem,
                                    .path = j->cfg.checkpoint.dir,
                                    .job_name = j->cfg.name,
                                    .fresh = j->cfg.checkpoint.fresh && !follows,
                                    .read_only = follows};
    CK_TRY(ck_checkpoint_dir_open(&cfg, &j->dir, err));
    CK_TRY(follows ? choose_as_leader(j, err) : choose(j, err));
    if (!j->restored) return CK_OK;
    j->was_finished = j->restored->kind == CK_BARRIER_FINAL;
    note_ended(j);
    return CK_OK;
}

/* ---- commits ---- */

ck_status ck_job_make_committers(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count && j->dir && !ck_job_follows(j); i++) {
        ck_job_op *o = &j->ops[i];
        if (!o->desc->committer) continue;
        ck_op_spec *spec = ck_job_op_spec(j, o, 0, j->plan.vertices[o->vertex].parallelism);
        if (!spec) return nomem(j, err);
        CK_TRY(o->desc->create_committer(spec, j->mem, &o->committer, err));
    }
    return CK_OK;
}

static ck_status commit_with_faults(ck_job *j, ck_job_op *sink, const ck_committable *c, ck_error *err) {
    CK_FAULT(j->proc, COMMIT_BEFORE);
    CK_TRY(sink->desc->committer->commit(sink->committer, c, err));
    CK_FAULT(j->proc, COMMIT_AFTER);
    return CK_OK;
}

ck_status ck_job_commit_one(ck_job *j, ck_job_op *sink, const ck_committable *c, ck_error *err) {
    ck_status s = commit_with_faults(j, sink, c, err);
    if (s == CK_OK) return s;
    if (err && err->status == CK_OK) ck_fail(err, s, "committing %s failed", c->name);
    (void)ck_error_prefix(err, "%s: ", sink->op->uid);
    return s;
}

/* The restored checkpoint is this directory's and its marker says that all sinks have committed it: what is committed
 * may have been taken away since, and is nobody's business any more. */
static ck_status was_committed(ck_job *j, bool own, bool *out, ck_error *err) {
    ck_checkpoint_entry *entries;
    uint32_t count;
    *out = false;
    if (!own) return CK_OK;
    ck_status s = ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count);
    if (s != CK_OK) return s == CK_NOMEM ? nomem(j, err) : s;
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].checkpoint == j->restored->checkpoint) *out = entries[i].committed;
    return CK_OK;
}

static ck_status commit_restored(ck_job *j, ck_restore *r, ck_job_op *sink, bool done, ck_error *err) {
    const ck_committable *items = NULL;
    uint32_t count = 0;
    if (r) CK_TRY(ck_restore_committables(r, ck_op_id(sink->op->uid), &items, &count));
    for (uint32_t i = 0; i < count && !done; i++) CK_TRY(ck_job_commit_one(j, sink, &items[i], err));
    if (!CK_HAS(sink->desc->committer, abort_others)) return CK_OK;
    return sink->desc->committer->abort_others(sink->committer, ck_checkpoint_dir_job_uuid(j->dir),
                                               r ? j->restored->checkpoint : 0, items, count,
                                               j->cfg.checkpoint.allow_duplicates, err);
}

/* What the restored checkpoint carries becomes real before anything runs, and what is newer goes. */
static ck_status settle_outside(ck_job *j, ck_restore *r, ck_error *err) {
    bool own = r && strcmp(j->restored_dir, ck_checkpoint_dir_path(j->dir)) == 0, done;
    CK_TRY(was_committed(j, own, &done, err));
    for (uint32_t i = 0; i < j->graph->op_count; i++)
        if (j->ops[i].committer) CK_TRY(commit_restored(j, r, &j->ops[i], done, err));
    CK_FAULT(j->proc, RESTORE_AFTER_COMMIT);
    return own && !done ? ck_checkpoint_dir_mark_committed(j->dir, j->restored->checkpoint, err) : CK_OK;
}

/* ---- state ---- */

static ck_status add_target(ck_job *j, ck_restore *r, uint32_t number, ck_error *err) {
    ck_subtask *s = j->subtasks[number];
    if (!s) return CK_OK; /* another process has it */
    const ck_vertex *v = &j->plan.vertices[ck_job_vertex_of(j, number)];
    uint64_t *ops = ck_arena_array(&j->arena, v->op_count, sizeof *ops);
    if (!ops) return nomem(j, err);
    for (uint32_t i = 0; i < v->op_count; i++) ops[i] = ck_op_id(v->ops[i]->uid);
    uint32_t index = ck_subtask_index(s);
    ck_restore_target t = {.store = ck_subtask_store(s),
                           .ops = ops,
                           .op_count = v->op_count,
                           .subtask = index,
                           .parallelism = v->parallelism,
                           .range = ck_key_group_range_for_subtask(index, v->parallelism, j->graph->key_groups)};
    return ck_restore_add(r, &t, err);
}

static ck_status load(ck_job *j, ck_restore *r, ck_error *err) {
    for (uint32_t i = 0; i < j->subtask_count && !j->was_finished; i++) CK_TRY(add_target(j, r, i, err));
    for (uint32_t i = 0; i < j->graph->op_count; i++)
        if (j->ops[i].committer) CK_TRY(ck_restore_want_committables(r, ck_op_id(j->ops[i].op->uid), err));
    CK_FAULT(j->proc, RESTORE_BEFORE_LOAD);
    CK_TRY(note_damage(j, ck_restore_run(r, err)));
    if (!j->was_finished) CK_TRY(note_damage(j, ck_job_replay(j, err)));
    CK_FAULT(j->proc, RESTORE_AFTER_LOAD);
    return CK_OK;
}

static ck_status begin_empty(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (j->subtasks[i]) CK_TRY(ck_state_restore_end(ck_subtask_store(j->subtasks[i]), err));
    return CK_OK;
}

ck_status ck_job_restore(ck_job *j, ck_error *err) {
    if (!j->restored) {
        CK_TRY(begin_empty(j, err));
        return j->dir && !ck_job_follows(j) ? settle_outside(j, NULL, err) : CK_OK;
    }
    ck_restore *r;
    CK_TRY(ck_restore_new(j->proc, j->mem, j->restored_dir, j->restored, &r, err));
    ck_status s = load(j, r, err);
    if (s == CK_OK && !ck_job_follows(j)) s = settle_outside(j, r, err);
    ck_restore_free(r);
    return s;
}

/* ---- splits ---- */

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

/* In order, one subtask after the other. A bounded source keeps the splits of its first start: its input was chosen
 * then, and its result must not depend on when it was interrupted. */
static ck_status deal(ck_job *j, const ck_job_op *o, ck_error *err) {
    ck_split_list known = {.arena = &j->arena}, found = {.arena = &j->arena};
    bool was_known = false;
    uint32_t parallelism = j->plan.vertices[o->vertex].parallelism;
    if (j->restored) CK_TRY(restored_splits(j, o, &known, &was_known, err));
    if (!o->desc->enumerate || (was_known && !o->unbounded_source)) return CK_OK;
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
