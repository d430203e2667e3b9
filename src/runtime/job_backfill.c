/* State that a checkpoint has not, computed by a life of its own: of the new graph the operators that lack it and all
 * that feeds them (evolve_backfill.c) run as a job inside this start. Its sources read what the checkpoint's have read
 * and no more, its barrier comes behind the last row, and its savepoint has the operators as they would stand at the
 * checkpoint had they been there from the first row on. They are restored from it, all others from the checkpoint.
 *
 * It lives in DIR/.backfill (of a region .backfill-<n>) until the state is loaded. A start that is killed on the way
 * leaves it there and the checkpoint as it was: the next one removes it and begins again. */
#include <inttypes.h>
#include <yyjson.h>

#include "base/json.h"
#include "os/fs.h"
#include "runtime/job_int.h"

typedef struct rereading {
    ck_job *job;
    ck_error *err;
    ck_graph *graph;       /* the part of the job's */
    ck_split_list *splits; /* by its operators */
    bool *ends;
    bool timed; /* some operator goes by event time */
} rereading;

static ck_status nomem(rereading *r) { return ck_nomem(r->err, r->job->mem, 4096); }

bool ck_job_is_backfilled(const ck_job *j, const ck_graph_op *op) {
    for (uint32_t i = 0; i < j->evolution.count; i++)
        if (j->evolution.ops[i].wanted == op) return j->evolution.ops[i].verdict == CK_EVOLVE_BACKFILL;
    return false;
}

/* ---- the part of the graph ---- */

/* Its input waits for nobody. */
static ck_status without_rate(rereading *r, const char *params, const char **out) {
    struct yyjson_doc *doc;
    struct yyjson_mut_doc *copy;
    ck_view text;
    ck_arena *a = &r->job->arena;
    CK_TRY(ck_json_read(a, ck_view_of(params), &doc, r->err));
    *out = params;
    if (!yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "options"), "rate_limit")) return CK_OK;
    CK_TRY(ck_json_new(a, &copy, r->err));
    yyjson_mut_val *root = yyjson_val_mut_copy(copy, yyjson_doc_get_root(doc));
    if (!root) return nomem(r);
    yyjson_mut_doc_set_root(copy, root);
    (void)yyjson_mut_obj_remove_key(yyjson_mut_obj_get(root, "options"), "rate_limit");
    CK_TRY(ck_json_write(a, copy, &text, r->err));
    *out = text.p;
    return CK_OK;
}

static ck_status take_part(rereading *r, const bool *part) {
    const ck_graph *g = r->job->graph;
    ck_graph_builder b;
    CK_TRY(ck_graph_builder_init(&b, &r->job->arena, g->name) == CK_OK ? CK_OK : nomem(r));
    b.graph->key_groups = g->key_groups;
    b.graph->timezone = g->timezone;
    b.graph->settings = g->settings;
    for (uint32_t i = 0; i < g->op_count; i++) {
        ck_graph_op op = g->ops[i];
        if (!part[i]) continue;
        if (op.input_count == 0) CK_TRY(without_rate(r, op.params, &op.params));
        ck_graph_op *added;
        if (ck_graph_add(&b, &op, &added) != CK_OK) return nomem(r);
    }
    return ck_graph_check(&b, &r->graph, r->err);
}

static ck_status look_at_time(rereading *r) {
    for (uint32_t i = 0; i < r->graph->op_count; i++) {
        const ck_job_op *o = &r->job->ops[ck_graph_find(r->job->graph, r->graph->ops[i].uid) - r->job->graph->ops];
        ck_again again;
        CK_TRY(o->desc->again(o->spec, &r->job->arena, &again, r->err));
        r->timed |= again.by_time;
    }
    return CK_OK;
}

/* ---- what had been read ---- */

/* As the comparison has found it (evolve_rewind.c). */
static ck_status rewind_sources(rereading *r) {
    uint32_t n = r->graph->op_count;
    r->splits = ck_arena_array(&r->job->arena, n + 1u, sizeof *r->splits);
    r->ends = ck_arena_array(&r->job->arena, n + 1u, sizeof *r->ends);
    if (!r->splits || !r->ends) return nomem(r);
    for (uint32_t i = 0; i < n; i++) {
        const ck_graph *whole = r->job->graph;
        const ck_rewound *of = &r->job->evolution.rewound[ck_graph_find(whole, r->graph->ops[i].uid) - whole->ops];
        r->splits[i] = of->splits;
        r->ends[i] = of->ended;
    }
    return CK_OK;
}

/* ---- the run ---- */

/* Event time moves with every row, so that nothing can have been later in the run before. */
static ck_job_config config_of(const rereading *r, const ck_job_reread *reread) {
    const ck_job_config *cfg = &r->job->cfg;
    return (ck_job_config){
        .name = cfg->name,
        .parallelism = r->timed ? 1 : cfg->parallelism,
        .batch_rows = r->timed ? 1 : cfg->batch_rows,
        .flush_us = cfg->flush_us,
        .queue_bytes = cfg->queue_bytes,
        .memory_limit = cfg->memory_limit,
        .spill_dir = cfg->spill_dir,
        .rocksdb = cfg->rocksdb,
        .checkpoint = {.dir = r->job->backfilled,
                       .timeout_us = INT64_MAX / 2,
                       .final_timeout_us = INT64_MAX / 2,
                       .tolerable_failed = 1,
                       .retained = 1,
                       .alignment = CK_ALIGNED},
        .reread = reread,
        .job_data = cfg->job_data,
    };
}

static ck_status check_late(const rereading *r, ck_job *side) {
    ck_job_progress p;
    ck_job_progress_now(side, &p);
    if (!r->timed || p.late_rows == 0) return CK_OK;
    return ck_fail(r->err, CK_REFUSED,
                   "the input cannot be computed again: %" PRIu64
                   " of its rows come late, and which of them did when they were read first nobody knows; "
                   "--added-state from_now lets what is new begin empty",
                   p.late_rows);
}

static ck_status run(rereading *r) {
    const ck_job_reread reread = {r->splits, r->ends};
    const ck_job_config cfg = config_of(r, &reread);
    ck_job *side, *j = r->job;
    uint64_t checkpoint;
    CK_TRY(ck_job_start(j->scheduler, j->registry, r->graph, &cfg, &side, r->err));
    ck_status s = ck_job_stop(side, -1, &checkpoint, r->err);
    if (s == CK_CANCELLED || s == CK_REFUSED) s = CK_OK; /* all had ended, or it failed: its result says which */
    if (s == CK_OK && r->err) ck_error_reset(r->err);
    if (s == CK_OK) s = ck_job_wait(side, -1, r->err);
    if (s == CK_OK) s = check_late(r, side);
    if (atomic_load(&j->proc->faults->crashed)) return CK_CANCELLED; /* a dead process frees nothing */
    ck_job_free(side);
    return s;
}

static ck_status read_again(ck_job *j, ck_error *err) {
    rereading r = {.job = j, .err = err};
    const bool *part;
    CK_FAULT(j->proc, BACKFILL_BEFORE);
    CK_TRY(ck_backfill_part(&j->arena, j->graph, j->evolution.ops, j->evolution.count, &part, err));
    CK_TRY(take_part(&r, part));
    CK_TRY(look_at_time(&r));
    CK_TRY(rewind_sources(&r));
    ck_log_line(j->proc->log, CK_LOG_WARN, "%s: from checkpoint %" PRIu64 ": reading the input again up to it",
                j->cfg.name, j->restored->checkpoint);
    CK_TRY(run(&r));
    CK_FAULT(j->proc, BACKFILL_AFTER);
    return CK_OK;
}

ck_status ck_job_backfill(ck_job *j, ck_error *err) {
    bool any = false;
    if (!j->dir || ck_job_follows(j)) return CK_OK;
    const char *dir = ck_checkpoint_dir_path(j->dir);
    const char *where = ck_job_is_region(j) ? ck_arena_printf(&j->arena, "%s/.backfill-%u", dir, j->cfg.region.index)
                                            : ck_arena_printf(&j->arena, "%s/.backfill", dir);
    if (!where) return ck_nomem(err, j->mem, 0);
    CK_TRY(ck_fs_remove_tree(j->proc, where, err));
    for (uint32_t i = 0; j->restored && !j->was_finished && i < j->evolution.count; i++)
        any |= j->evolution.ops[i].verdict == CK_EVOLVE_BACKFILL;
    if (!any) return CK_OK;
    if (j->links)
        return ck_fail(err, CK_REFUSED,
                       "the input is read again in one process: run the script there with --added-state backfill up to "
                       "a savepoint, and go on over several from there");
    j->backfilled = where;
    return read_again(j, err);
}

/* ---- its state ---- */

static ck_status add_target(ck_job *j, ck_restore *r, uint32_t number, ck_error *err) {
    const ck_vertex *v = &j->plan.vertices[ck_job_vertex_of(j, number)];
    ck_restore_as *ops = ck_arena_array(&j->arena, v->op_count, sizeof *ops);
    uint32_t n = 0, index = ck_subtask_index(j->subtasks[number]);
    if (!ops) return ck_nomem(err, j->mem, 0);
    for (uint32_t i = 0; i < v->op_count; i++)
        if (ck_job_is_backfilled(j, v->ops[i])) ops[n++] = (ck_restore_as){ck_op_id(v->ops[i]->uid), v->ops[i]->uid};
    ck_restore_target t = {.store = ck_subtask_store(j->subtasks[number]),
                           .ops = ops,
                           .op_count = n,
                           .subtask = index,
                           .parallelism = v->parallelism,
                           .range = ck_key_group_range_for_subtask(index, v->parallelism, j->graph->key_groups)};
    return n ? ck_restore_add(r, &t, err) : CK_OK;
}

static ck_status read_savepoint(ck_job *j, ck_manifest **out, ck_error *err) {
    const ck_checkpoint_dir_config cfg = {.proc = j->proc, .mem = j->mem, .path = j->backfilled, .read_only = true};
    ck_checkpoint_dir *d;
    uint64_t id;
    CK_TRY(ck_checkpoint_dir_open(&cfg, &d, err));
    ck_status s = ck_checkpoint_dir_newest_id(d, &id, err);
    if (s == CK_OK) s = ck_checkpoint_dir_read(d, id, &j->arena, out, err);
    ck_checkpoint_dir_close(d);
    return s;
}

ck_status ck_job_load_backfilled(ck_job *j, ck_error *err) {
    ck_manifest *m;
    ck_restore *r;
    CK_TRY(read_savepoint(j, &m, err));
    CK_TRY(ck_restore_new(j->proc, j->mem, j->backfilled, m, &r, err));
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < j->subtask_count; i++)
        if (j->subtasks[i]) s = add_target(j, r, i, err);
    if (s == CK_OK) s = ck_restore_fill(r, err);
    ck_restore_free(r);
    return s;
}

ck_status ck_job_drop_backfilled(ck_job *j, ck_error *err) {
    return j->backfilled ? ck_fs_remove_tree(j->proc, j->backfilled, err) : CK_OK;
}
