/* clink_explain_restore: a script beside the checkpoint it would go on from. */
#include <stdlib.h>

#include "engine/evolve_int.h"

static ck_status write_line(ck_bytes *out, const ck_evolve_op *op, bool allow) {
    const char *word = op->refused && !allow ? "refused" : ck_evolve_name(op->verdict);
    const char *uid = op->wanted ? op->wanted->uid : op->stored->uid;
    const char *gone = op->refused && !allow && op->verdict == CK_EVOLVE_DROP ? "is not in this script: " : "";
    bool renamed = op->stored && op->wanted && strcmp(op->stored->uid, op->wanted->uid) != 0;
    CK_TRY(ck_bytes_printf(out, "  %-8s %s", word, uid));
    if (renamed) CK_TRY(ck_bytes_printf(out, " (was %s)", op->stored->uid));
    if (op->why[0]) CK_TRY(ck_bytes_printf(out, ": %s%s", gone, op->why));
    return ck_bytes_char(out, '\n');
}

static ck_status write_all(ck_bytes *out, const ck_evolve_config *cfg, const ck_evolution *e, const char *refused,
                           clink_restore_verdict *verdict) {
    bool parts = false;
    CK_TRY(ck_bytes_printf(out, "from checkpoint %llu in %s%s\n", (unsigned long long)cfg->manifest->checkpoint,
                           cfg->dir, e->changed ? "" : ", of this very script"));
    for (uint32_t i = 0; i < e->count; i++) {
        CK_TRY(write_line(out, &e->ops[i], cfg->allow));
        parts |= e->ops[i].verdict == CK_EVOLVE_REBUILD || e->ops[i].verdict == CK_EVOLVE_DROP;
    }
    if (refused) CK_TRY(ck_bytes_printf(out, "  refused  %s\n", refused));
    const char *ways = refused ? NULL : ck_evolve_ways(e);
    if (ways) CK_TRY(ck_bytes_printf(out, "  %s\n", ways));
    *verdict = e->refused || refused ? CLINK_RESTORE_REFUSED : parts ? CLINK_RESTORE_PARTS : CLINK_RESTORE_WHOLE;
    return CK_OK;
}

static ck_status compare(clink_engine *e, clink_job *j, ck_bytes *out, clink_restore_verdict *verdict, ck_error *err) {
    const ck_graph *graph = NULL;
    for (uint32_t i = 0; i < j->plan->step_count; i++)
        if (j->plan->steps[i].kind == CK_SQL_JOB) graph = j->plan->steps[i].graph;
    if (!graph) return ck_fail(err, CK_INVALID, "the script runs no job that could go on from a checkpoint");
    const ck_job_settings settings = engine_look_settings(graph, j->run.name);
    ck_evolve_config cfg = engine_evolve_config(e, &j->run, graph, &settings);
    ck_evolution evolution;
    CK_TRY(ck_evolve_from(&j->arena, j->run.checkpoint_dir, j->run.restore, j->run.name, &cfg, &evolution, err));
    ck_error why = CK_ERROR_INIT;
    ck_status s = ck_evolve_refuses_checkpoint(&cfg, &evolution, &why);
    if (s != CK_OK && s != CK_REFUSED) {
        *err = why;
        return s;
    }
    return write_all(out, &cfg, &evolution, s == CK_REFUSED ? why.msg : NULL, verdict) == CK_OK
               ? CK_OK
               : ck_nomem(err, j->arena.mem, 0);
}

clink_status clink_explain_restore(clink_engine *e, const char *sql, const clink_run *run, char **text,
                                   clink_restore_verdict *verdict, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (text) *text = NULL;
    if (!e || !sql || !text || !verdict)
        return engine_refuse_null(!e ? "engine" : !sql ? "sql" : !text ? "text" : "verdict", error);
    clink_job *j = NULL;
    ck_status s = engine_compile(e, sql, run, &j, &err);
    if (s != CK_OK) return engine_error(s, &err, error);
    ck_bytes out;
    ck_bytes_init(&out, j->arena.mem, SIZE_MAX);
    if (!j->run.checkpoint_dir)
        s = ck_fail(&err, CK_INVALID, "clink_run.checkpoint_dir is NULL: there is no checkpoint");
    if (s == CK_OK) s = compare(e, j, &out, verdict, &err);
    if (s == CK_OK && !(*text = strndup(out.p ? out.p : "", out.n))) s = ck_fail(&err, CK_NOMEM, "out of memory");
    ck_bytes_destroy(&out);
    clink_job_free(j);
    return engine_error(s, &err, error);
}
