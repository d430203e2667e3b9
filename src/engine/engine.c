/* clink_open and clink_close: what a process of clink is made of. The proc is wired here and nowhere else. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/builtins.h"
#include "engine/engine_int.h"
#include "metrics/metrics.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/io.h"
#include "os/modules.h"
#include "os/random.h"
#include "os/thread.h"

enum { IO_THREADS_MAX = 16, REGISTRY_BYTES_MAX = 16 << 20 };

uint32_t clink_abi_version(void) { return CLINK_ABI_VERSION; }
const char *clink_version(void) { return CK_VERSION; }
void clink_free(void *p) { free(p); }

static void write_log(void *arg, ck_log_level level, const char *line) {
    const clink_engine *e = arg;
    if (e->user_log)
        e->user_log(e->user_log_arg, (int32_t)level + 1, line);
    else
        fprintf(stderr, "clink: %s\n", line);
}

static ck_status wire_proc(clink_engine *e, const clink_options *o, ck_error *err) {
    static const ck_log_level levels[] = {CK_LOG_WARN, CK_LOG_DEBUG, CK_LOG_INFO,
                                          CK_LOG_WARN, CK_LOG_ERROR, CK_LOG_OFF};
    if (o->log_level < 0 || (size_t)o->log_level >= CK_ARRAY_COUNT(levels))
        return ck_fail(err, CK_INVALID, "log_level %d is not 0 to %zu", o->log_level, CK_ARRAY_COUNT(levels) - 1);
    e->user_log = o->log;
    e->user_log_arg = o->log_arg;
    e->log = (ck_log){levels[o->log_level], e, write_log};
    e->proc.heap = ck_heap_system();
    ck_budget_init(&e->proc.budget, e->proc.heap, 0);
    e->proc.clock = ck_clock_system();
    e->proc.random = ck_random_system();
    e->proc.fs = ck_fs_system();
    ck_faults_init(&e->faults);
    e->proc.faults = &e->faults;
    e->proc.log = &e->log;
    e->proc.cpu = ck_cpu_detect();
    e->proc.spills_all = getenv("CLINK_SPILL_ALL") != NULL;
    e->proc.evicts_all = getenv("CLINK_ROCKSDB_ALL") != NULL;
    CK_TRY(ck_metrics_new(&e->proc, &e->proc.metrics, err));
    CK_TRY(ck_faults_parse(&e->faults, getenv("CLINK_FAULT"), err));
    CK_TRY(ck_modules_new(e->proc.heap, &e->proc.modules, err));
    return ck_io_pool_new(&e->proc, IO_THREADS_MAX, &e->proc.io, err);
}

/* A table in memory is gone from the catalog. */
static void forget_rows(void *store, const char *instance) { ck_memory_store_drop(store, instance); }

/* Before a stored catalog is read, which may call their functions and have tables of their connectors. */
ck_status engine_load_plugins(clink_engine *e, const char *const *paths, ck_error *err) {
    for (; paths && *paths; paths++) CK_TRY(ck_plugins_load(&e->plugins, &e->proc, *paths, err));
    CK_TRY(engine_register_plugins(&e->registry, &e->plugins.library, err));
    e->proc.library = &e->plugins.library;
    e->proc.plugins = &e->plugins;
    return CK_OK;
}

static ck_status open_engine(clink_engine *e, const clink_options *o, ck_error *err) {
    CK_TRY(wire_proc(e, o, err));
    ck_arena_init(&e->arena, ck_proc_mem(&e->proc, CK_MEM_PLAN), REGISTRY_BYTES_MAX);
    ck_registry_init(&e->registry, &e->arena);
    CK_TRY(engine_register_builtins(&e->registry, err));
    ck_plugins_init(&e->plugins, &e->arena, &e->registry);
    CK_TRY(engine_load_plugins(e, o->plugins, err));
    if (o->memory_bytes && o->memory_bytes < ENGINE_MEMORY_BYTES_MIN)
        return ck_fail(err, CK_INVALID, "a memory limit of %llu bytes is less than a job begins with; %d is the least",
                       (unsigned long long)o->memory_bytes, ENGINE_MEMORY_BYTES_MIN);
    e->memory_asked = o->memory_bytes;
    e->memory_bytes = o->memory_bytes ? o->memory_bytes : ck_memory_limit_bytes(&e->proc);
    if (ck_memory_store_new(e->proc.heap, e->memory_bytes, &e->memory) != CK_OK)
        return ck_fail(err, CK_NOMEM, "out of memory");
    CK_TRY(ck_catalog_new(&e->proc, &e->registry, &e->catalog, err));
    ck_catalog_on_forget(e->catalog, forget_rows, e->memory);
    if (o->catalog_dir) CK_TRY(engine_catalog_open(e, o->catalog_dir, err));
    return ck_scheduler_pool(&e->proc, o->threads ? o->threads : ck_cores(), &e->scheduler, err);
}

/* Options of a caller compiled against an older, shorter struct. */
static bool copy_options(const clink_options *from, clink_options *to) {
    *to = (clink_options){.struct_bytes = sizeof *to};
    if (!from) return true;
    if (from->struct_bytes < sizeof from->struct_bytes || from->struct_bytes > sizeof *to) return false;
    memcpy(to, from, from->struct_bytes);
    return true;
}

clink_status clink_open(const clink_options *options, clink_engine **out, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    clink_options o;
    if (!out) return engine_refuse_null("out", error);
    *out = NULL;
    if (!copy_options(options, &o))
        return engine_error(ck_fail(&err, CK_INVALID, "clink_options.struct_bytes is %zu, this library knows %zu",
                                    options->struct_bytes, sizeof o),
                            &err, error);
    clink_engine *e = calloc(1, sizeof *e);
    if (!e) return engine_error(ck_fail(&err, CK_NOMEM, "out of memory"), &err, error);
    pthread_mutex_init(&e->lock, NULL);
    ck_status s = open_engine(e, &o, &err);
    if (s != CK_OK) {
        clink_close(e);
        return engine_error(s, &err, error);
    }
    *out = e;
    return CLINK_OK;
}

void clink_close(clink_engine *e) {
    if (!e) return;
    while (e->jobs) clink_job_free(e->jobs);
    ck_scheduler_free(e->scheduler);
    ck_catalog_free(e->catalog);
    ck_memory_store_free(&e->memory);
    ck_arena_destroy(&e->arena);
    ck_io_pool_free(e->proc.io);
    ck_modules_free(e->proc.modules);
    ck_metrics_free(e->proc.metrics);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

clink_status clink_set(clink_engine *e, const char *key, const char *value, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (!e || !key || !value) return engine_refuse_null(!e ? "engine" : !key ? "key" : "value", error);
    pthread_mutex_lock(&e->lock);
    ck_status s = ck_catalog_set(e->catalog, ck_view_of(key), ck_view_of(value), &err);
    pthread_mutex_unlock(&e->lock);
    return engine_error(s, &err, error);
}
