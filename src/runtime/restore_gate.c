/* See restore_gate.h. */
#include "runtime/restore_gate.h"

ck_status ck_restore_gate(ck_arena *a, const char *checkpoint_dir, const char *restore, const char *job_name,
                          ck_evolve_config *cfg, const char **warning, ck_error *err) {
    ck_error why = CK_ERROR_INIT;
    ck_evolution e;
    bool asked = restore && restore[0];
    *warning = "";
    ck_status s = ck_evolve_from(a, checkpoint_dir, restore, job_name, cfg, &e, &why);
    if (s == CK_OK) return ck_evolve_refusal(cfg, &e, "clink explain --restore shows each operator", err);
    if (s == CK_NOMEM) return ck_nomem(err, a->mem, 0);
    if (s == CK_NOTFOUND && !asked) return CK_OK; /* a first start */
    *warning = ck_arena_printf(a, "whether this job can go on from %s was not looked at: %s; its start will tell",
                               asked ? restore : checkpoint_dir, why.msg);
    return *warning ? CK_OK : ck_nomem(err, a->mem, 0);
}
