/* Savepoints of a running job, and what is done with those that stand. */
#include "checkpoint/savepoint.h"
#include "engine/engine_int.h"

/* Keeps the step's job from being taken down while the call is inside it. NULL: nothing runs. */
static ck_job *hold_running(clink_job *j) {
    pthread_mutex_lock(&j->lock);
    ck_job *running = j->running;
    j->savepoints += running != NULL;
    pthread_mutex_unlock(&j->lock);
    return running;
}

static void let_go(clink_job *j, bool stopped) {
    pthread_mutex_lock(&j->lock);
    j->stopped |= stopped;
    if (--j->savepoints == 0) pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

static ck_status take(clink_job *j, ck_job *running, bool stop, int64_t timeout_ms, uint64_t *checkpoint,
                      ck_error *err) {
    int64_t us = timeout_ms < 0 ? -1 : timeout_ms > INT64_MAX / 1000 ? INT64_MAX : timeout_ms * 1000;
    ck_mem mem = ck_proc_mem(&j->engine->proc, CK_MEM_PLAN);
    const char *kept = j->run.savepoint_dir;
    /* A job that is stopped cannot try again. */
    if (stop && kept) CK_TRY(ck_savepoint_prepare(&j->engine->proc, mem, j->run.checkpoint_dir, kept, err));
    CK_TRY((stop ? ck_job_stop : ck_job_savepoint)(running, us, checkpoint, err));
    if (!kept) return CK_OK;
    return ck_savepoint_export(&j->engine->proc, mem, j->run.checkpoint_dir, *checkpoint, kept, err);
}

static clink_status savepoint(clink_job *j, bool stop, int64_t timeout_ms, uint64_t *checkpoint, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    uint64_t unasked;
    if (!j) return engine_refuse_null("job (the script had nothing to run?)", error);
    if (!checkpoint) checkpoint = &unasked;
    *checkpoint = 0;
    ck_job *running = hold_running(j);
    if (!running) return engine_error(ck_fail(&err, CK_INVALID, "no savepoint: the job is not running"), &err, error);
    ck_status s = take(j, running, stop, timeout_ms, checkpoint, &err);
    let_go(j, stop && *checkpoint != 0);
    return engine_error(s, &err, error);
}

clink_status clink_job_savepoint(clink_job *j, int64_t timeout_ms, uint64_t *checkpoint, clink_error *error) {
    return savepoint(j, false, timeout_ms, checkpoint, error);
}

clink_status clink_job_stop(clink_job *j, int64_t timeout_ms, uint64_t *checkpoint, clink_error *error) {
    return savepoint(j, true, timeout_ms, checkpoint, error);
}

clink_status clink_savepoint_dispose(clink_engine *e, const char *dir, uint64_t checkpoint, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (!e || !dir) return engine_refuse_null(!e ? "engine" : "dir", error);
    ck_status s = ck_savepoint_dispose(&e->proc, ck_proc_mem(&e->proc, CK_MEM_PLAN), dir, checkpoint, &err);
    return engine_error(s, &err, error);
}

typedef struct verify_caller {
    void (*seen)(void *arg, const clink_verified *file);
    void *arg;
} verify_caller;

static void pass_on(void *arg, const ck_verified *v) {
    const verify_caller *c = arg;
    clink_verified file = {sizeof file, v->checkpoint, v->bytes, v->path, v->damage, v->savepoint};
    if (c->seen) c->seen(c->arg, &file);
}

clink_status clink_checkpoint_verify(clink_engine *e, const char *dir, uint64_t checkpoint,
                                     void (*seen)(void *arg, const clink_verified *file), void *arg, uint64_t *damaged,
                                     clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (!e || !dir || !damaged) return engine_refuse_null(!e ? "engine" : !dir ? "dir" : "damaged", error);
    verify_caller caller = {seen, arg};
    *damaged = 0;
    ck_status s = ck_checkpoint_verify(&e->proc, ck_proc_mem(&e->proc, CK_MEM_PLAN), dir, checkpoint, pass_on, &caller,
                                       damaged, &err);
    return engine_error(s, &err, error);
}
