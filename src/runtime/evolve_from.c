/* The checkpoint a job would start from, looked at by somebody who does not start it. See evolve.h. */
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
