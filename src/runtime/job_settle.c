/* A checkpoint that barriers overtook, and another parallelism. Operators of event time keep a watermark a subtask, and
 * where a barrier overtakes, subtasks of one vertex are at different times when they make their marks: no watermark is
 * right for a subtask with key groups of two of them, nor for rows that were under way to both. So the job first lives
 * at the parallelism it had, works off what is under way up to a barrier that overtakes nothing, and goes on from
 * there. */
#include "runtime/job_int.h"

#include <inttypes.h>

static uint32_t stored_parallelism(const ck_manifest *m, const char *uid) {
    for (uint32_t v = 0; v < m->vertex_count; v++)
        for (uint32_t i = 0; i < m->vertices[v].op_count; i++)
            if (strcmp(m->vertices[v].ops[i], uid) == 0) return m->vertices[v].parallelism;
    return 0;
}

static bool has_inflight(const ck_manifest *m) {
    for (uint32_t i = 0; i < m->file_count; i++)
        if (m->files[i].kind == CK_FILE_INFLIGHT) return true;
    return false;
}

/* State of the subtask as a whole, which several cannot be made one of. */
static ck_status keeps_union(ck_job *j, const ck_job_op *o, bool *out, ck_error *err) {
    const ck_slot_schema *slots;
    uint32_t count;
    *out = false;
    CK_TRY(ck_job_op_slots(j, o, &slots, &count, err));
    for (uint32_t i = 0; i < count; i++) *out |= slots[i].mode == CK_SLOT_UNION;
    return CK_OK;
}

/* The operator whose subtasks cannot be restored as this job has them; NULL: there is none. */
static ck_status find_moved(ck_job *j, const ck_job_op **out, ck_error *err) {
    for (uint32_t i = 0; i < j->graph->op_count; i++) {
        const ck_job_op *o = &j->ops[i];
        uint32_t was = stored_parallelism(j->restored, o->op->uid);
        bool keeps;
        if (!was || was == j->plan.vertices[o->vertex].parallelism) continue;
        CK_TRY(keeps_union(j, o, &keeps, err));
        if (!keeps) continue;
        *out = o;
        return CK_OK;
    }
    return CK_OK;
}

ck_status ck_job_find_settling(ck_job *j, ck_error *err) {
    const ck_job_op *moved = NULL;
    uint32_t had = 0;
    if (!j->restored || j->was_finished || !has_inflight(j->restored)) return CK_OK;
    CK_TRY(find_moved(j, &moved, err));
    if (!moved) return CK_OK;
    if (j->restored->part_count && !j->links) { /* each at the parallelism that it had, which it finds itself */
        CK_TRY(ck_graph_regions_of(&j->arena, j->whole, &j->regions, err));
        j->settle_at = j->cfg.parallelism;
        j->settle_regions = j->regions.count;
        return CK_OK;
    }
    for (uint32_t v = 0; v < j->restored->vertex_count; v++)
        if (j->restored->vertices[v].parallelism > had) had = j->restored->vertices[v].parallelism;
    if (j->links || had == j->cfg.parallelism)
        return ck_fail(err, CK_REFUSED,
                       "checkpoint %" PRIu64 " in %s holds rows that were under way to %s at parallelism %" PRIu32
                       ", which only that can go on with: start the job with it, stop it with a savepoint, and "
                       "change the parallelism then",
                       j->restored->checkpoint, j->restored_dir, moved->op->uid,
                       stored_parallelism(j->restored, moved->op->uid));
    j->settle_at = had;
    return CK_OK;
}

/* The savepoint stays, as every one does until somebody gives it up. */
static ck_status stop(ck_job *j, const ck_job_config *cfg, ck_error *err) {
    uint64_t checkpoint;
    ck_status s = ck_job_stop(j, cfg->checkpoint.timeout_us > 0 ? cfg->checkpoint.timeout_us : -1, &checkpoint, err);
    /* It ends of itself, or of what had failed meanwhile: its result says which. */
    if (s != CK_OK && s != CK_CANCELLED && s != CK_REFUSED) return s;
    if (s == CK_OK)
        ck_log_line(j->proc->log, CK_LOG_INFO, "%s: worked off: it goes on from savepoint %" PRIu64, cfg->name,
                    checkpoint);
    if (err) ck_error_reset(err);
    return ck_job_wait(j, -1, err);
}

ck_status ck_job_settle(ck_scheduler *s, const ck_registry *r, const ck_graph *g, const ck_job_config *cfg,
                        ck_job_region region, uint32_t parallelism, ck_error *err) {
    ck_job_config at = *cfg;
    ck_job *j;
    at.region = region;
    at.parallelism = parallelism;
    at.checkpoint.alignment = CK_ALIGNED;
    at.on_end = NULL;
    CK_TRY(ck_job_start(s, r, g, &at, &j, err));
    ck_status st = stop(j, cfg, err);
    if (atomic_load(&ck_scheduler_proc(s)->faults->crashed)) return CK_CANCELLED; /* a dead process frees nothing */
    ck_job_free(j);
    return st;
}
