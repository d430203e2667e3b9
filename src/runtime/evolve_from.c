/* The checkpoint a job would start from, looked at by somebody who does not start it. See evolve.h. */
#include <stdio.h>

#include "checkpoint/directory.h"
#include "runtime/evolve.h"

static ck_status read_point(ck_arena *a, ck_checkpoint_dir *d, uint64_t id, const ck_manifest **out, ck_error *err) {
    ck_manifest *m;
    if (id == 0) CK_TRY(ck_checkpoint_dir_newest_id(d, &id, err));
    CK_TRY(ck_checkpoint_dir_read(d, id, a, &m, err));
    *out = m;
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
    ck_status s = read_point(a, d, id, &cfg->manifest, err);
    cfg->dir = ck_arena_strdup(a, ck_checkpoint_dir_path(d));
    ck_checkpoint_dir_close(d);
    if (s == CK_OK && !cfg->dir) s = ck_nomem(err, a->mem, 0);
    return s == CK_OK ? ck_evolve(a, cfg, out, err) : s;
}

/* ---- what cannot go on ---- */

static ck_status refuse_change(const ck_evolve_config *cfg, const ck_evolution *e, const char *hint, ck_error *err) {
    const ck_evolve_op *first = e->ops;
    while (!first->refused) first++;
    const char *uid = first->wanted ? first->wanted->uid : first->stored->uid;
    char more[64] = "";
    if (e->refused > 1) (void)snprintf(more, sizeof more, " (and %u more)", e->refused - 1);
    return ck_fail(err, CK_REFUSED,
                   "checkpoint %llu in %s was made by %s cannot go on from all it keeps: %s%s: %s%s; %s",
                   (unsigned long long)cfg->manifest->checkpoint, cfg->dir,
                   e->changed ? "another script, and this one" : "this job before code of it was built again, and it",
                   uid, first->verdict == CK_EVOLVE_DROP ? " is not in this script" : "", first->why, more, hint);
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
                       "this one has nothing to go on with; --fresh starts anew in this directory",
                       id, cfg->dir);
    for (uint32_t i = 0; i < m->file_count; i++)
        if (m->files[i].kind == CK_FILE_INFLIGHT)
            return ck_fail(err, CK_REFUSED,
                           "checkpoint %llu in %s was made by another script and holds rows that were under way in it; "
                           "take a savepoint of that job, which holds none, and go on from there",
                           id, cfg->dir);
    return CK_OK;
}

ck_status ck_evolve_refusal(const ck_evolve_config *cfg, const ck_evolution *e, const char *hint, ck_error *err) {
    CK_TRY(ck_evolve_refuses_checkpoint(cfg, e, err));
    return e->refused ? refuse_change(cfg, e, hint, err) : CK_OK;
}
