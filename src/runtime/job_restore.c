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

enum { RESTORE_TRIES = 3 };

static ck_status nomem(ck_job *j, ck_error *err) { return ck_nomem(err, j->mem, 4096); }

/* ---- choosing ---- */

static const char hint[] = "clink explain --restore shows each operator, --allow-semantic-change goes on all the same, "
                           "--fresh starts anew in this directory";

/* Of this very region, and of the same script. */
static bool is_of_this_region(const ck_job *j, const ck_manifest *m) {
    return ck_job_is_region(j) && m->regions == j->cfg.region.count && m->region == j->cfg.region.index &&
           m->graph_hash == ck_graph_hash(j->whole);
}

/* The same script is the same graph; another one goes on where nothing is lost by it (evolve.h). A region compares its
 * part with its own, and all of the graph with what all of another was. */
static ck_status check_manifest(ck_job *j, ck_manifest *m, const char *dir, ck_error *err) {
    bool own = is_of_this_region(j, m);
    if (own) CK_TRY(ck_evolve_cut_manifest(&j->arena, m, err));
    const ck_evolve_config cfg = {.proc = j->proc,
                                  .registry = j->registry,
                                  .dir = dir,
                                  .manifest = m,
                                  .wanted = own ? j->graph : j->whole,
                                  .settings = &j->settings,
                                  .added = j->cfg.checkpoint.added,
                                  .allow = j->cfg.checkpoint.allow_semantic_change,
                                  .committed = true}; /* what a dropped sink has left is looked at when it is read */
    CK_TRY(ck_evolve(&j->arena, &cfg, &j->evolution, err));
    CK_TRY(ck_evolve_refusal(&cfg, &j->evolution, hint, err));
    return own ? CK_OK : ck_evolve_cut(&j->arena, j->whole, j->graph, &j->evolution, err);
}

/* What the restored checkpoint calls this operator; NULL: it has nothing of it. */
static const char *stored_uid(const ck_job *j, const ck_graph_op *op) {
    const ck_graph_op *stored = j->evolution.compared ? ck_evolve_stored(&j->evolution, op) : op;
    return stored ? stored->uid : NULL;
}

static ck_status note_damage(ck_job *j, ck_status s) {
    j->damaged |= s == CK_CORRUPT || s == CK_NOTFOUND;
    return s;
}

/* Of this job, of a region of this one; below 0: of all. *id 0: there is none. */
static ck_status newest_below(ck_job *j, uint64_t below, uint64_t *id) {
    ck_checkpoint_entry *entries;
    uint32_t count;
    *id = 0;
    CK_TRY(ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count));
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].mine && (!below || entries[i].checkpoint < below)) *id = entries[i].checkpoint;
    return CK_OK;
}

/* A region that was never in a checkpoint begins anew, whatever others have. */
static ck_status read_point(ck_job *j, ck_checkpoint_dir *d, uint64_t id, bool newest, ck_manifest **out,
                            ck_error *err) {
    ck_error why = CK_ERROR_INIT;
    *out = NULL;
    ck_status s = (newest ? ck_checkpoint_dir_read_newest : ck_checkpoint_dir_read)(d, id, &j->arena, out, &why);
    if (s == CK_OK || (s == CK_NOTFOUND && why.status == CK_OK)) return CK_OK;
    if (err) *err = why;
    return note_damage(j, s);
}

/* The checkpoint `id`, or the newest up to it; 0: the newest. */
static ck_status read_manifest(ck_job *j, ck_checkpoint_dir *d, uint64_t id, bool newest, ck_error *err) {
    ck_manifest *m;
    newest |= id == 0;
    if (id == 0 && d == j->dir && j->below) {
        if (newest_below(j, j->below, &id) != CK_OK) return nomem(j, err);
    } else if (id == 0) {
        CK_TRY(ck_checkpoint_dir_newest_id(d, &id, err));
    }
    j->tried = id;
    CK_TRY(read_point(j, d, id, newest, &m, err));
    if (!m) return CK_OK;
    CK_TRY(check_manifest(j, m, ck_checkpoint_dir_path(d), err));
    j->restored_dir = ck_arena_strdup(&j->arena, ck_checkpoint_dir_path(d));
    j->restored = m;
    return j->restored_dir ? CK_OK : nomem(j, err);
}

static ck_status read_elsewhere(ck_job *j, const char *path, uint64_t id, bool newest, ck_error *err) {
    ck_checkpoint_dir_config cfg = {
        .proc = j->proc, .mem = j->mem, .path = path, .read_only = true, .region = ck_job_region_of_dir(j)};
    ck_status s = CK_NOTFOUND;
    /* Its job may go on meanwhile, and its retention take what was the newest: then there is a newer one. */
    for (int tries = 0; s == CK_NOTFOUND && tries < (id ? 1 : RESTORE_TRIES); tries++) {
        ck_checkpoint_dir *d;
        ck_error_reset(err);
        CK_TRY(ck_checkpoint_dir_open(&cfg, &d, err));
        s = read_manifest(j, d, id, newest, err);
        ck_checkpoint_dir_close(d);
    }
    return s;
}

static bool has_committer(const ck_job *j) {
    for (uint32_t i = 0; i < j->graph->op_count; i++)
        if (j->ops[i].desc->committer) return true;
    return false;
}

/* A region goes back in its own sequence only: what was before is all regions'. */
static bool is_own_sequence(const ck_job *j, const ck_checkpoint_entry *entries, uint32_t count) {
    const ck_checkpoint_region r = ck_job_region_of_dir(j);
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].checkpoint != j->tried) continue;
        bool unknown = entries[i].damage && !entries[i].committed; /* a marker would say */
        if (unknown && !entries[i].regions) return ck_checkpoint_region_id(&r, j->tried) == j->tried;
        return entries[i].regions == r.count && entries[i].region == r.index;
    }
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
    if (c->allow_duplicates) return true;
    if (ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count) != CK_OK) return false;
    if (ck_job_is_region(j) && !is_own_sequence(j, entries, count)) return false;
    for (uint32_t i = 0; i < count && has_committer(j); i++)
        if (entries[i].mine && entries[i].checkpoint > older && entries[i].committed) return false;
    return true;
}

ck_status ck_job_abandon_newer(ck_job *j, ck_error *err) {
    ck_checkpoint_entry *entries;
    uint32_t count;
    if (!j->below) return CK_OK;
    if (ck_checkpoint_dir_list(j->dir, &j->arena, &entries, &count) != CK_OK) return nomem(j, err);
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].mine && entries[i].checkpoint >= j->below)
            CK_TRY(ck_checkpoint_dir_abandon(j->dir, entries[i].checkpoint, err));
    return CK_OK;
}

/* Whoever takes the newest there is must not begin with less than what was committed. */
static ck_status check_lost(ck_job *j, ck_error *err) {
    unsigned long long lost = ck_checkpoint_dir_lost(j->dir);
    const char *dir = ck_checkpoint_dir_path(j->dir);
    if (!lost) return CK_OK;
    if (!j->cfg.checkpoint.allow_duplicates)
        return ck_fail(err, CK_CORRUPT,
                       "%s/checkpoint-%llu.json is gone, and its marker says that all sinks have committed it: what is "
                       "older has less state (--restore N or --allow-duplicates goes back, --fresh starts anew)",
                       dir, lost);
    ck_log_line(j->proc->log, CK_LOG_WARN, "%s: %s/checkpoint-%llu.json is gone: going back behind it", j->cfg.name,
                dir, lost);
    return CK_OK;
}

static ck_status choose(ck_job *j, ck_error *err) {
    const char *wanted = j->cfg.checkpoint.restore, *path = NULL;
    uint64_t id = 0, newest;
    if (wanted && wanted[0]) CK_TRY(ck_restore_point_parse(&j->arena, wanted, &path, &id, err));
    if (path) return read_elsewhere(j, path, id, false, err);
    if (!id) CK_TRY(check_lost(j, err));
    if (wanted && wanted[0]) return read_manifest(j, j->dir, id, false, err);
    if (newest_below(j, j->below, &newest) != CK_OK) return nomem(j, err);
    return newest ? read_manifest(j, j->dir, newest, true, err) : CK_OK;
}

/* The operator that goes on with what was stored under this uid; NULL: none. */
static const ck_graph_op *continues(const ck_job *j, const char *uid) {
    if (!j->evolution.compared) return ck_graph_find(j->graph, uid);
    for (uint32_t i = 0; i < j->evolution.count; i++) {
        const ck_evolve_op *op = &j->evolution.ops[i];
        if (op->stored && op->wanted && strcmp(op->stored->uid, uid) == 0) return op->wanted;
    }
    return NULL;
}

/* An operator had ended when every subtask of its vertex had. */
static void note_ended(ck_job *j) {
    for (uint32_t v = 0; v < j->restored->vertex_count; v++) {
        const ck_manifest_vertex *mv = &j->restored->vertices[v];
        if (mv->finished_count < mv->parallelism) continue;
        for (uint32_t i = 0; i < mv->op_count; i++) {
            const ck_graph_op *op = continues(j, mv->ops[i]);
            if (op) j->ops[op - j->graph->ops].ended = true;
        }
    }
}

/* A follower continues from what the leader chose. */
static ck_status choose_as_leader(ck_job *j, ck_error *err) {
    uint64_t id = ck_links_word_of_leader(j->links)->restored, wanted = 0;
    const char *path = NULL, *restore = j->cfg.checkpoint.restore;
    if (id == 0) return CK_OK;
    if (restore && restore[0]) CK_TRY(ck_restore_point_parse(&j->arena, restore, &path, &wanted, err));
    return path ? read_elsewhere(j, path, id, !wanted, err) : read_manifest(j, j->dir, id, !wanted, err);
}

static void tell_change(const ck_job *j) {
    const ck_evolution *e = &j->evolution;
    for (uint32_t i = 0; e->compared && i < e->count; i++) {
        const ck_evolve_op *op = &e->ops[i];
        bool quiet = op->verdict == CK_EVOLVE_REUSE && !op->why[0];
        const char *uid = op->wanted ? op->wanted->uid : op->stored->uid;
        ck_log_line(j->proc->log, quiet ? CK_LOG_INFO : CK_LOG_WARN, "%s: from checkpoint %llu: %s %s%s%s", j->cfg.name,
                    (unsigned long long)j->restored->checkpoint, ck_evolve_name(op->verdict), uid,
                    op->why[0] ? ": " : "", op->why);
    }
}

static bool runs_here(const ck_job *j) {
    for (uint32_t v = 0; v < j->plan.count; v++)
        for (uint32_t i = 0; i < j->plan.vertices[v].parallelism; i++)
            if (ck_job_is_here(j, v, i)) return true;
    return false;
}

/* A follower that runs nothing restores nothing. And it must not look: no checkpoint waits for it, so the one the
 * leader chose may be gone by now. That one stays for the others, whose subtasks acknowledge nothing before they are
 * restored. */
ck_status ck_job_open_dir(ck_job *j, ck_error *err) {
    bool follows = ck_job_follows(j);
    if (!j->cfg.checkpoint.dir || (follows && !runs_here(j))) return CK_OK;
    ck_checkpoint_dir_config cfg = {.proc = j->proc,
                                    .mem = j->mem,
                                    .path = j->cfg.checkpoint.dir,
                                    .job_name = j->cfg.name,
                                    .fresh = j->cfg.checkpoint.fresh && !follows,
                                    .fresh_uuid = j->cfg.checkpoint.fresh_uuid,
                                    .read_only = follows,
                                    .region = ck_job_region_of_dir(j)};
    CK_TRY(ck_checkpoint_dir_open(&cfg, &j->dir, err));
    CK_TRY(follows ? choose_as_leader(j, err) : choose(j, err));
    if (!j->restored) return CK_OK;
    tell_change(j);
    j->was_finished = j->restored->kind == CK_BARRIER_FINAL;
    note_ended(j);
    return CK_OK;
}

/* ---- commits ---- */

/* What the directory says of its checkpoints, where the restored one is among them; else nothing. */
typedef struct restored_marks {
    ck_checkpoint_entry *entries;
    uint32_t count;
} restored_marks;

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

/* The checkpoint of the restored ones that an operator is from; one that the job had not has them all behind it. */
static uint64_t restored_of(const ck_job *j, const char *stored) {
    return stored && j->restored->part_count ? ck_manifest_checkpoint_of_op(j->restored, stored)
                                             : j->restored->checkpoint;
}

/* It is this directory's and its marker says that all sinks have committed it: what is committed may have been taken
 * away since, and is nobody's business any more. */
static bool was_committed(const restored_marks *marks, uint64_t checkpoint) {
    for (uint32_t i = 0; i < marks->count; i++)
        if (marks->entries[i].checkpoint == checkpoint) return marks->entries[i].committed;
    return false;
}

static ck_status commit_restored(ck_job *j, ck_restore *r, ck_job_op *sink, const restored_marks *marks,
                                 ck_error *err) {
    const ck_committable *items = NULL;
    uint32_t count = 0;
    const char *stored = stored_uid(j, sink->op);
    uint64_t from = r ? restored_of(j, stored) : 0;
    bool done = was_committed(marks, from);
    if (r && stored) CK_TRY(ck_restore_committables(r, ck_op_id(stored), &items, &count));
    for (uint32_t i = 0; i < count && !done; i++) CK_TRY(ck_job_commit_one(j, sink, &items[i], err));
    if (!CK_HAS(sink->desc->committer, abort_others)) return CK_OK;
    return sink->desc->committer->abort_others(sink->committer, ck_checkpoint_dir_job_uuid(j->dir), from, items, count,
                                               j->cfg.checkpoint.allow_duplicates, err);
}

/* What a sink had prepared that this script has no more could be committed by nobody. */
static ck_status check_dropped(ck_job *j, ck_restore *r, const restored_marks *marks, ck_error *err) {
    for (uint32_t i = 0; r && i < j->evolution.count; i++) {
        const ck_evolve_op *op = &j->evolution.ops[i];
        const ck_committable *items;
        uint32_t count;
        if (op->verdict != CK_EVOLVE_DROP || was_committed(marks, restored_of(j, op->stored->uid))) continue;
        CK_TRY(ck_restore_committables(r, ck_op_id(op->stored->uid), &items, &count));
        if (count) return ck_evolve_uncommitted(op->stored, restored_of(j, op->stored->uid), err);
    }
    return CK_OK;
}

/* A region has committed its part of what another job, or another graph, left for all of them: the others do theirs. */
static ck_status mark_restored(ck_job *j, const restored_marks *marks, ck_error *err) {
    const ck_manifest *m = j->restored;
    if (ck_job_is_region(j) && !is_of_this_region(j, m)) return CK_OK;
    for (uint32_t i = 0; i < m->part_count; i++)
        if (!was_committed(marks, m->parts[i].checkpoint))
            CK_TRY(ck_checkpoint_dir_mark_committed(j->dir, m->parts[i].checkpoint, err));
    if (m->part_count || was_committed(marks, m->checkpoint)) return CK_OK;
    return ck_checkpoint_dir_mark_committed(j->dir, m->checkpoint, err);
}

/* Sinks know their output by the job's UUID. A checkpoint of another one - of this directory before --fresh, or of
 * another directory - may have output behind it all the same. */
static ck_status check_behind(ck_job *j, ck_error *err) {
    const ck_manifest *m = j->restored;
    if (!m || j->cfg.checkpoint.allow_duplicates || strcmp(m->job_uuid, ck_checkpoint_dir_job_uuid(j->dir)) == 0)
        return CK_OK;
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        const ck_job_op *o = &j->ops[i];
        const char *stored = stored_uid(j, o->op);
        if (!o->committer || !stored || !CK_HAS(o->desc->committer, check_behind)) continue;
        ck_status s = o->desc->committer->check_behind(o->committer, m->job_uuid, stored, restored_of(j, stored), err);
        if (s != CK_OK) return (void)ck_error_prefix(err, "%s: ", o->op->uid), s;
    }
    return CK_OK;
}

/* What the restored checkpoint carries becomes real before anything runs, and what is newer goes. */
static ck_status settle_outside(ck_job *j, ck_restore *r, ck_error *err) {
    bool own = r && strcmp(j->restored_dir, ck_checkpoint_dir_path(j->dir)) == 0;
    restored_marks marks = {0};
    CK_TRY(check_behind(j, err));
    CK_TRY(ck_checkpoint_dir_begin(j->dir, err));
    if (own && ck_checkpoint_dir_list(j->dir, &j->arena, &marks.entries, &marks.count) != CK_OK) return nomem(j, err);
    CK_TRY(check_dropped(j, r, &marks, err));
    for (uint32_t i = 0; i < j->graph->op_count; i++)
        if (j->ops[i].committer) CK_TRY(commit_restored(j, r, &j->ops[i], &marks, err));
    CK_FAULT(j->proc, RESTORE_AFTER_COMMIT);
    return own ? mark_restored(j, &marks, err) : CK_OK;
}

/* ---- state ---- */

static ck_status add_target(ck_job *j, ck_restore *r, uint32_t number, ck_error *err) {
    ck_subtask *s = j->subtasks[number];
    if (!s) return CK_OK; /* another process has it */
    const ck_vertex *v = &j->plan.vertices[ck_job_vertex_of(j, number)];
    ck_restore_as *ops = ck_arena_array(&j->arena, v->op_count, sizeof *ops);
    uint32_t n = 0;
    if (!ops) return nomem(j, err);
    for (uint32_t i = 0; i < v->op_count; i++) {
        const char *stored = stored_uid(j, v->ops[i]);
        if (stored) ops[n++] = (ck_restore_as){ck_op_id(stored), v->ops[i]->uid};
    }
    uint32_t index = ck_subtask_index(s);
    ck_restore_target t = {.store = ck_subtask_store(s),
                           .ops = ops,
                           .op_count = n,
                           .subtask = index,
                           .parallelism = v->parallelism,
                           .range = ck_key_group_range_for_subtask(index, v->parallelism, j->graph->key_groups)};
    return ck_restore_add(r, &t, err);
}

/* Of sinks here, and of those that nobody continues. */
static ck_status want_committables(ck_job *j, ck_restore *r, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        const char *stored = stored_uid(j, j->ops[i].op);
        if (j->ops[i].committer && stored) CK_TRY(ck_restore_want_committables(r, ck_op_id(stored), err));
    }
    for (uint32_t i = 0; i < j->evolution.count; i++)
        if (j->evolution.ops[i].verdict == CK_EVOLVE_DROP)
            CK_TRY(ck_restore_want_committables(r, ck_op_id(j->evolution.ops[i].stored->uid), err));
    return CK_OK;
}

/* Who deals new splits must know of all there are, wherever their subtasks are. */
static ck_status want_splits(ck_job *j, ck_restore *r, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        const char *stored = stored_uid(j, j->ops[i].op);
        if (j->ops[i].desc->source && stored) CK_TRY(ck_restore_want_splits(r, ck_op_id(stored), err));
    }
    return CK_OK;
}

static ck_status take_splits(ck_job *j, ck_restore *r, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        ck_job_op *o = &j->ops[i];
        const char *stored = stored_uid(j, o->op);
        o->known_splits.arena = &j->arena;
        if (o->desc->source && stored)
            CK_TRY(ck_restore_splits(r, ck_op_id(stored), &o->known_splits, &o->was_known, err));
    }
    return CK_OK;
}

/* The slots the operators of a vertex will open, with the ids they have in its stores. out NULL: counted only. */
static ck_status expect(ck_job *j, const ck_vertex *v, ck_expected_slot *out, uint32_t *count, ck_error *err) {
    *count = 0;
    for (uint32_t i = 0; i < v->op_count; i++) {
        const ck_job_op *o = &j->ops[v->ops[i] - j->graph->ops];
        const ck_slot_schema *slots;
        uint32_t n;
        CK_TRY(ck_job_op_slots(j, o, &slots, &n, err));
        if (j->evolution.compared && !ck_job_is_backfilled(j, o->op))
            CK_TRY(ck_trace_slots(&j->arena, j->evolution.stored, j->graph, o->op,
                                  j->cfg.checkpoint.added == CK_ADDED_FROM_NOW, &slots, n, err));
        for (uint32_t k = 0; out && k < n; k++)
            out[*count + k] = (ck_expected_slot){ck_op_id(o->op->uid), o->op->uid, &slots[k]};
        *count += n;
    }
    return CK_OK;
}

/* Stored rows become rows of the slots this job has, before any operator runs; without any, only versions are noted. */
static ck_status migrate(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->subtask_count; i++) {
        if (!j->subtasks[i]) continue; /* another process has it */
        const ck_vertex *v = &j->plan.vertices[ck_job_vertex_of(j, i)];
        ck_state_store *store = ck_subtask_store(j->subtasks[i]);
        uint32_t count;
        CK_TRY(expect(j, v, NULL, &count, err));
        ck_expected_slot *slots = ck_arena_array(&j->arena, count + 1u, sizeof *slots);
        if (!slots) return nomem(j, err);
        CK_TRY(expect(j, v, slots, &count, err));
        CK_TRY(ck_migrate_restored_state(store, slots, count, &j->registry->migrations, err));
    }
    return CK_OK;
}

static ck_status load(ck_job *j, ck_restore *r, ck_error *err) {
    for (uint32_t i = 0; i < j->subtask_count && !j->was_finished; i++) CK_TRY(add_target(j, r, i, err));
    CK_TRY(want_committables(j, r, err));
    if (!j->was_finished && !ck_job_follows(j)) CK_TRY(want_splits(j, r, err));
    CK_FAULT(j->proc, RESTORE_BEFORE_LOAD);
    if (j->backfilled) CK_TRY(ck_job_load_backfilled(j, err));
    CK_TRY(note_damage(j, ck_restore_run(r, err)));
    CK_FAULT(j->proc, RESTORE_BEFORE_MIGRATION);
    if (!j->was_finished && !ck_job_follows(j)) CK_TRY(take_splits(j, r, err));
    if (!j->was_finished) CK_TRY(migrate(j, err));
    if (!j->was_finished) CK_TRY(note_damage(j, ck_job_replay(j, err)));
    CK_FAULT(j->proc, RESTORE_AFTER_LOAD);
    return CK_OK;
}

static ck_status begin_empty(ck_job *j, ck_error *err) {
    for (uint32_t i = 0; i < j->subtask_count; i++)
        if (j->subtasks[i]) CK_TRY(ck_state_restore_end(ck_subtask_store(j->subtasks[i]), err));
    return migrate(j, err);
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
