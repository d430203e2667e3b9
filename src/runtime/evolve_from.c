/* The checkpoint a job would start from, looked at by somebody who does not start it. See evolve.h. */
#include <stdio.h>

#include "checkpoint/directory.h"
#include "checkpoint/restore.h"
#include "runtime/evolve.h"

static ck_status read_point(ck_arena *a, ck_checkpoint_dir *d, uint64_t id, bool own, ck_evolve_config *cfg,
                            ck_error *err) {
    ck_manifest *m;
    ck_checkpoint_entry *entries;
    uint32_t count;
    bool newest = id == 0;
    if (newest) CK_TRY(ck_checkpoint_dir_newest_id(d, &id, err));
    CK_TRY((newest ? ck_checkpoint_dir_read_newest : ck_checkpoint_dir_read)(d, id, a, &m, err));
    cfg->manifest = m;
    if (ck_checkpoint_dir_list(d, a, &entries, &count) != CK_OK) return ck_nomem(err, a->mem, 0);
    cfg->committed = false;
    for (uint32_t i = 0; i < count && own; i++)
        if (entries[i].checkpoint == id) cfg->committed = entries[i].committed;
    for (uint32_t i = 0; i < m->part_count; i++) cfg->committed &= m->parts[i].committed;
    return CK_OK;
}

ck_status ck_evolve_from(ck_arena *a, const char *checkpoint_dir, const char *restore, const char *job_name,
                         ck_evolve_config *cfg, ck_evolution *out, ck_error *err) {
    const char *elsewhere = NULL;
    uint64_t id = 0;
    if (restore && restore[0]) CK_TRY(ck_restore_point_parse(a, restore, &elsewhere, &id, err));
    ck_checkpoint_dir_config dir = {.proc = cfg->proc,
                                    .mem = a->mem,
                                    .path = elsewhere ? elsewhere : checkpoint_dir,
                                    .job_name = elsewhere ? NULL : job_name,
                                    .read_only = true};
    ck_checkpoint_dir *d;
    CK_TRY(ck_checkpoint_dir_open(&dir, &d, err));
    bool own = !elsewhere || strcmp(elsewhere, checkpoint_dir) == 0;
    ck_status s = read_point(a, d, id, own, cfg, err);
    cfg->dir = ck_arena_strdup(a, ck_checkpoint_dir_path(d));
    ck_checkpoint_dir_close(d);
    if (s == CK_OK && !cfg->dir) s = ck_nomem(err, a->mem, 0);
    return s == CK_OK ? ck_evolve(a, cfg, out, err) : s;
}

/* ---- what cannot go on ---- */

const char *ck_evolve_ways(const ck_evolution *e) {
    if (e->from_now_helps && e->backfill_helps)
        return "--added-state from_now lets what is not there begin empty, backfill computes it by reading the input "
               "again";
    if (e->from_now_helps) return "--added-state from_now lets what is not there begin empty";
    return e->backfill_helps ? "--added-state backfill computes what is not there by reading the input again" : NULL;
}

static ck_status refuse_change(const ck_evolve_config *cfg, const ck_evolution *e, const char *hint, ck_error *err) {
    const ck_evolve_op *first = e->ops;
    while (!first->refused) first++;
    const char *uid = first->wanted ? first->wanted->uid : first->stored->uid;
    const char *ways = ck_evolve_ways(e);
    char more[64] = "";
    if (e->refused > 1) (void)snprintf(more, sizeof more, " (and %u more)", e->refused - 1);
    return ck_fail(err, CK_REFUSED,
                   "checkpoint %llu in %s was made by %s cannot go on from all it keeps: %s%s: %s%s; %s%s%s",
                   (unsigned long long)cfg->manifest->checkpoint, cfg->dir,
                   e->changed ? "another script, and this one" : "this job before code of it was built again, and it",
                   uid, first->verdict == CK_EVOLVE_DROP ? " is not in this script" : "", first->why, more,
                   ways ? ways : "", ways ? "; " : "", hint);
}

ck_status ck_evolve_uncommitted(const ck_graph_op *sink, uint64_t checkpoint, ck_error *err) {
    return ck_fail(
        err, CK_REFUSED,
        "%s is not in this script, and checkpoint %llu holds output of it that is not committed yet: start the "
        "script it was made by once more, which commits it, and change it then",
        sink->uid, (unsigned long long)checkpoint);
}

static ck_status find_uncommitted(const ck_evolve_config *cfg, const ck_evolution *e, ck_restore *r, ck_error *err) {
    for (uint32_t i = 0; i < e->count; i++)
        if (e->ops[i].verdict == CK_EVOLVE_DROP)
            CK_TRY(ck_restore_want_committables(r, ck_op_id(e->ops[i].stored->uid), err));
    CK_TRY(ck_restore_run(r, err));
    for (uint32_t i = 0; i < e->count; i++) {
        const ck_committable *items;
        uint32_t count;
        if (e->ops[i].verdict != CK_EVOLVE_DROP) continue;
        CK_TRY(ck_restore_committables(r, ck_op_id(e->ops[i].stored->uid), &items, &count));
        if (count) return ck_evolve_uncommitted(e->ops[i].stored, cfg->manifest->checkpoint, err);
    }
    return CK_OK;
}

/* Without `allow` a dropped sink is refused as it is. */
static ck_status refuse_uncommitted(const ck_evolve_config *cfg, const ck_evolution *e, ck_error *err) {
    ck_restore *r;
    bool any = false;
    for (uint32_t i = 0; i < e->count; i++) any |= e->ops[i].verdict == CK_EVOLVE_DROP;
    if (!any || !cfg->allow || cfg->committed) return CK_OK;
    CK_TRY(ck_restore_new(cfg->proc, ck_proc_mem(cfg->proc, CK_MEM_PLAN), cfg->dir, cfg->manifest, &r, err));
    ck_status s = find_uncommitted(cfg, e, r, err);
    ck_restore_free(r);
    return s;
}

ck_status ck_evolve_refuses_checkpoint(const ck_evolve_config *cfg, const ck_evolution *e, ck_error *err) {
    const ck_manifest *m = cfg->manifest;
    unsigned long long id = m->checkpoint;
    if (!e->changed) return CK_OK;
    if (m->key_groups != cfg->wanted->key_groups)
        return ck_fail(err, CK_REFUSED,
                       "checkpoint %llu in %s has %u key groups, this job %u: --key-groups %u goes on from it", id,
                       cfg->dir, m->key_groups, cfg->wanted->key_groups, m->key_groups);
    if (m->kind == CK_BARRIER_FINAL)
        return ck_fail(err, CK_REFUSED,
                       "checkpoint %llu in %s is the last of a job that has finished, and was made by another script: "
                       "this one has nothing to go on with; if that job was killed at its end, start the script it was "
                       "made by once more, which commits what is left; --fresh starts anew in this directory",
                       id, cfg->dir);
    for (uint32_t i = 0; i < m->file_count; i++)
        if (m->files[i].kind == CK_FILE_INFLIGHT)
            return ck_fail(err, CK_REFUSED,
                           "checkpoint %llu in %s was made by another script and holds rows that were under way in it; "
                           "take a savepoint of that job, which holds none, and go on from there",
                           id, cfg->dir);
    return refuse_uncommitted(cfg, e, err);
}

ck_status ck_evolve_refusal(const ck_evolve_config *cfg, const ck_evolution *e, const char *hint, ck_error *err) {
    CK_TRY(ck_evolve_refuses_checkpoint(cfg, e, err));
    return e->refused ? refuse_change(cfg, e, hint, err) : CK_OK;
}
