/* Coordinators, workers and clients of them, behind clink/cluster.h. */
#include "clink/cluster.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "cluster/client.h"
#include "cluster/coordinator/server.h"
#include "cluster/worker/supervisor.h"
#include "data/text.h"
#include "engine/cluster_int.h"
#include "engine/evolve_int.h"
#include "format/utf8.h"
#include "graph/regions.h"
#include "os/thread.h"
#include "runtime/restore_gate.h"
#include "yyjson.h"

enum { LEASE_S = 5, ANSWER_BYTES_MAX = 256 << 20, CLIENT_TIMEOUT_MS = 30000, PLUGINS_BYTES_MAX = 512 << 20 };
#define DEFAULT_COORDINATOR "127.0.0.1:6123"

struct clink_coordinator {
    ck_coordinator_server *server;
};

static ck_tls_files tls_files(const clink_tls *t) { return (ck_tls_files){t->cert, t->key, t->ca}; }

/* ---- the coordinator ---- */

static ck_coordinator_config machine_config(const clink_coordinator_options *o) {
    ck_coordinator_config m = ck_coordinator_defaults((ck_mem){0}, 0);
    if (o->watchdog_interval_ms) m.watchdog_interval_us = o->watchdog_interval_ms * 1000;
    if (o->heartbeat_timeout_ms) m.heartbeat_timeout_us = o->heartbeat_timeout_ms * 1000;
    if (o->restart_drain_timeout_ms) m.restart_drain_timeout_us = o->restart_drain_timeout_ms * 1000;
    m.restart_budget_decay_us = o->restart_budget_decay_ms * 1000;
    m.max_restarts = o->max_restarts;
    return m;
}

static ck_status check_times(const clink_coordinator_options *o, ck_error *err) {
    const int64_t times[] = {o->watchdog_interval_ms, o->heartbeat_timeout_ms, o->restart_drain_timeout_ms,
                             o->restart_budget_decay_ms, o->lease_ms};
    for (size_t i = 0; i < CK_ARRAY_COUNT(times); i++)
        if (times[i] < 0 || times[i] > INT32_MAX)
            return ck_fail(err, CK_INVALID, "the times of a coordinator are at most %d milliseconds", INT32_MAX);
    return CK_OK;
}

clink_status clink_coordinator_start(clink_engine *e, const clink_coordinator_options *o, clink_coordinator **out,
                                     uint16_t *port, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    uint16_t bound;
    if (!e || !o || !out) return engine_refuse_null(!e ? "engine" : !o ? "options" : "coordinator", error);
    *out = NULL;
    if (o->struct_bytes != sizeof *o)
        return engine_error(ck_fail(&err, CK_INVALID, "clink_coordinator_options.struct_bytes is not known"), &err,
                            error);
    ck_coordinator_server_config cfg = {.proc = &e->proc,
                                        .host = o->bind ? o->bind : "127.0.0.1",
                                        .port = o->port,
                                        .advertise = o->advertise,
                                        .tls = tls_files(&o->tls),
                                        .metadata_dir = o->metadata_dir,
                                        .ha = o->ha,
                                        .lease_s = o->lease_ms ? (o->lease_ms + 999) / 1000 : LEASE_S,
                                        .token_file = o->token_file,
                                        .allow_plugins = o->allow_plugins,
                                        .machine = machine_config(o)};
    clink_coordinator *c = calloc(1, sizeof *c);
    ck_status s = c ? check_times(o, &err) : ck_fail(&err, CK_NOMEM, "out of memory");
    if (s == CK_OK) s = ck_coordinator_server_start(&cfg, &c->server, port ? port : &bound, &err);
    if (s == CK_OK)
        *out = c;
    else
        free(c);
    return engine_error(s, &err, error);
}

clink_status clink_coordinator_state(clink_coordinator *c, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (!c) return engine_refuse_null("coordinator", error);
    return engine_error(ck_coordinator_server_state(c->server, &err), &err, error);
}

void clink_coordinator_stop(clink_coordinator *c) {
    if (!c) return;
    ck_coordinator_server_stop(c->server);
    free(c);
}

/* ---- a worker ---- */

/* What no slot could begin with is said before a job finds out. */
static ck_status share_memory(const clink_engine *e, uint32_t slots, size_t *slot_bytes, ck_error *err) {
    *slot_bytes = e->memory_bytes / slots;
    if (*slot_bytes >= ENGINE_MEMORY_BYTES_MIN) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   "the worker's %zu bytes of memory over %u slots are %zu for each; a subtask begins with %d",
                   e->memory_bytes, slots, *slot_bytes, ENGINE_MEMORY_BYTES_MIN);
}

clink_status clink_worker_run(clink_engine *e, const clink_worker_options *o, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    size_t slot_bytes;
    if (!e || !o) return engine_refuse_null(!e ? "engine" : "options", error);
    if (o->struct_bytes != sizeof *o || o->slots > CK_CLUSTER_SLOTS_MAX)
        return engine_error(ck_fail(&err, CK_INVALID, "a worker has at most %d slots", CK_CLUSTER_SLOTS_MAX), &err,
                            error);
    const uint32_t slots = o->slots ? o->slots : ck_cores();
    ck_status s = share_memory(e, slots, &slot_bytes, &err);
    if (s != CK_OK) return engine_error(s, &err, error);
    const ck_supervisor_config cfg = {.proc = &e->proc,
                                      .coordinator = o->coordinator ? o->coordinator : DEFAULT_COORDINATOR,
                                      .token_file = o->token_file,
                                      .name = o->name,
                                      .slots = slots,
                                      .slot_bytes = slot_bytes,
                                      .state_dir = o->state_dir,
                                      .tls = tls_files(&o->tls),
                                      .data_root = o->data_root,
                                      .secret_dir = o->secret_dir,
                                      .data_host = o->data_host ? o->data_host : "127.0.0.1",
                                      .advertise = o->advertise,
                                      .verb = "task-host",
                                      .began = o->began,
                                      .arg = o->began_arg};
    return engine_error(ck_supervisor_run(&cfg, &err), &err, error);
}

/* ---- what a job is made of ---- */

#define FIELD(n, k, limit, m)                                                                                          \
    { .number = n, .kind = k, .max = limit, .offset = offsetof(engine_job_spec, m), .name = #m }
static const ck_proto_field spec_fields[] = {FIELD(1, CK_PROTO_BYTES, CK_CLUSTER_SPEC_MAX, graph),
                                             FIELD(2, CK_PROTO_UINT, CK_PARALLELISM_MAX, parallelism),
                                             FIELD(3, CK_PROTO_UINT, CK_BATCH_ROWS_MAX, batch_rows),
                                             FIELD(4, CK_PROTO_UINT, INT64_MAX, flush_us),
                                             FIELD(5, CK_PROTO_UINT, 0, memory_bytes),
                                             FIELD(6, CK_PROTO_SINT, 0, interval_us),
                                             FIELD(7, CK_PROTO_SINT, 0, timeout_us),
                                             FIELD(8, CK_PROTO_SINT, 0, final_timeout_us),
                                             FIELD(9, CK_PROTO_UINT, INT32_MAX, tolerable_failed),
                                             FIELD(10, CK_PROTO_UINT, INT32_MAX, retained),
                                             FIELD(11, CK_PROTO_UINT, CK_ALIGN_ADAPTIVE, alignment),
                                             FIELD(12, CK_PROTO_SINT, 0, stall_us),
                                             FIELD(13, CK_PROTO_UINT, 1, allow_semantic_change),
                                             FIELD(14, CK_PROTO_UINT, CK_ADDED_FROM_NOW, added),
                                             FIELD(15, CK_PROTO_TEXT, CK_CLUSTER_PATH_MAX, spill_dir),
                                             FIELD(16, CK_PROTO_UINT, 1, rocksdb),
                                             FIELD(17, CK_PROTO_UINT, CK_MATERIALISE_EXTERNAL, changelog_where),
                                             FIELD(18, CK_PROTO_UINT, CK_MATERIALISE_EVERY_MAX, changelog_every)};
const ck_proto_type engine_job_spec_type = {
    .name = "job", .bytes = sizeof(engine_job_spec), .fields = spec_fields, .field_count = CK_ARRAY_COUNT(spec_fields)};

/* Rows in memory, and rows that somebody reads, are of one process. */
static ck_status check_graph(const ck_graph *g, ck_error *err) {
    static const char *const local[] = {"source.memory", "sink.memory", "sink.collect"};
    for (uint32_t i = 0; i < g->op_count; i++)
        for (size_t k = 0; k < CK_ARRAY_COUNT(local); k++)
            if (strcmp(g->ops[i].type, local[k]) == 0)
                return ck_fail(
                    err, CK_REFUSED,
                    "%s is in the memory of one process, and a submitted job runs in several: give the table "
                    "a connector",
                    g->ops[i].uid);
    return CK_OK;
}

static ck_status find_step(const clink_job *j, const ck_sql_step **out, ck_error *err) {
    *out = NULL;
    for (uint32_t i = 0; i < j->plan->step_count; i++) {
        const ck_sql_step *step = &j->plan->steps[i];
        if (step->kind != CK_SQL_JOB) continue;
        if (*out)
            return ck_fail(err, CK_REFUSED,
                           "the script reads what it writes, so that it is several jobs: submit them one "
                           "after the other");
        if (step->has_result)
            return ck_fail(err, CK_REFUSED, "nobody would see the rows of a SELECT: INSERT INTO a table");
        *out = step;
    }
    return *out ? check_graph((*out)->graph, err) : ck_fail(err, CK_INVALID, "the script has nothing to run");
}

typedef struct role_list {
    ck_msg_role *items; /* room for a graph's operators */
    uint32_t count;
} role_list;

/* A role a vertex, in the order the runtime numbers subtasks in; g is all, or one region. */
static ck_status add_roles(clink_job *j, const ck_graph *g, uint32_t region, role_list *to, ck_error *err) {
    ck_vertex_plan plan;
    const uint32_t first = to->count;
    CK_TRY(ck_graph_fuse(&j->arena, g, j->run.parallelism, &plan, err));
    for (uint32_t v = 0; v < plan.count; v++) {
        uint32_t *peers = ck_arena_array(&j->arena, plan.count, sizeof *peers), count = 0;
        if (!peers) return ck_nomem(err, j->arena.mem, 0);
        for (uint32_t k = 0; k < plan.count; k++)
            for (uint32_t i = 0; i < plan.vertices[k].ops[0]->input_count; i++) {
                const ck_graph_op *from = ck_graph_find(g, plan.vertices[k].ops[0]->inputs[i].uid);
                if (plan.vertex_of_op[from - g->ops] != v) continue;
                peers[count++] = first + k;
                break;
            }
        to->items[to->count++] = (ck_msg_role){.name = ck_view_of(plan.vertices[v].ops[0]->uid),
                                               .parallelism = plan.vertices[v].parallelism,
                                               .peers = {peers, count},
                                               .region = region};
    }
    return CK_OK;
}

/* Region by region, where a part of the job can be gone on with without the rest: without checkpoints no part can. */
static ck_status make_roles(clink_job *j, const ck_graph *g, ck_proto_list *out, ck_error *err) {
    ck_graph_regions regions;
    role_list roles = {ck_arena_array(&j->arena, g->op_count, sizeof *roles.items), 0};
    if (!roles.items) return ck_nomem(err, j->arena.mem, 0);
    CK_TRY(ck_graph_regions_of(&j->arena, g, &regions, err));
    bool split = j->run.checkpoint_dir && regions.count > 1 && regions.count <= CK_CLUSTER_REGIONS_MAX;
    if (!split) CK_TRY(add_roles(j, g, 0, &roles, err));
    for (uint32_t i = 0; split && i < regions.count; i++) {
        const ck_graph *region;
        CK_TRY(ck_graph_region(&j->arena, g, &regions, i, &region, err));
        CK_TRY(add_roles(j, region, i, &roles, err));
    }
    *out = (ck_proto_list){roles.items, roles.count};
    return CK_OK;
}

static ck_status check_memory(const clink_engine *e, const ck_proto_list *roles, ck_error *err) {
    uint64_t tasks = 0;
    for (uint32_t i = 0; i < roles->count; i++) tasks += ((const ck_msg_role *)roles->items)[i].parallelism;
    if (!e->memory_asked || e->memory_asked / tasks >= ENGINE_MEMORY_BYTES_MIN) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   "%zu bytes of memory over the job's %llu subtasks are less than the %d each begins with",
                   e->memory_asked, (unsigned long long)tasks, ENGINE_MEMORY_BYTES_MIN);
}

/* The job's tasks are elsewhere: paths are made whole. */
static ck_status absolute(clink_job *j, const char *path, ck_view *out, ck_error *err) {
    char cwd[CK_CLUSTER_PATH_MAX];
    if (!path) return CK_OK;
    if (path[0] != '/' && !getcwd(cwd, sizeof cwd)) return ck_fail(err, CK_IO, "the current directory has no name");
    const char *whole = path[0] == '/' ? path : ck_arena_printf(&j->arena, "%s/%s", cwd, path);
    if (!whole) return ck_nomem(err, j->arena.mem, 0);
    *out = ck_view_of(whole);
    return CK_OK;
}

static ck_status make_spec(clink_job *j, const ck_sql_step *step, ck_view *out, ck_error *err) {
    const ck_checkpoint_config c = engine_checkpoint_config(&j->run);
    ck_bytes json;
    ck_bytes_init(&json, j->arena.mem, CK_CLUSTER_SPEC_MAX);
    ck_status s = ck_graph_encode(step->graph, &json);
    engine_job_spec spec = {.graph = ck_bytes_as_view(&json),
                            .parallelism = j->run.parallelism,
                            .batch_rows = step->batch_rows,
                            .flush_us = (uint64_t)step->flush_us,
                            .memory_bytes = j->engine->memory_asked,
                            .interval_us = c.interval_us,
                            .timeout_us = c.timeout_us,
                            .final_timeout_us = c.final_timeout_us,
                            .tolerable_failed = c.tolerable_failed,
                            .retained = c.retained,
                            .alignment = c.alignment,
                            .stall_us = c.stall_us,
                            .allow_semantic_change = c.allow_semantic_change,
                            .added = c.added,
                            .rocksdb = j->run.rocksdb != 0,
                            .changelog_where = c.changelog.where,
                            .changelog_every = c.changelog.every};
    if (s == CK_OK) s = absolute(j, j->run.spill_dir, &spec.spill_dir, err);
    size_t n = ck_proto_bytes(&engine_job_spec_type, &spec);
    uint8_t *p = s == CK_OK ? ck_arena_alloc(&j->arena, n + 1) : NULL;
    if (p) (void)ck_proto_write(&engine_job_spec_type, &spec, p);
    ck_bytes_destroy(&json);
    *out = (ck_view){(const char *)p, n};
    if (s == CK_FULL) return ck_fail(err, s, "the job's graph is longer than %d bytes", CK_CLUSTER_SPEC_MAX);
    return p ? CK_OK : ck_nomem(err, j->arena.mem, n);
}

/* ---- answers as JSON ---- */

static void put_text(yyjson_mut_doc *d, yyjson_mut_val *o, const char *key, ck_view v) {
    char clean[CK_CLUSTER_PATH_MAX]; /* names of files may be no UTF-8, and what was cut may end in half a character */
    size_t n = v.n < sizeof clean ? v.n : sizeof clean;
    clean[0] = 0;
    if (n) memcpy(clean, v.p, n);
    for (size_t i = 0; (i += ck_utf8_valid_prefix((const uint8_t *)clean + i, n - i)) < n; i++) clean[i] = '?';
    yyjson_mut_obj_add_strncpy(d, o, key, clean, n);
}

/* null: nobody has said anything yet; the watermark's also where there is none. */
static void put_progress(yyjson_mut_doc *d, yyjson_mut_val *o, const ck_progress *p) {
    char at[32];
    bool any = p->event_time != CK_EVENT_TIME_NONE && p->watermark_us != CK_WATERMARK_MIN;
    int64_t us = p->watermark_us < INT64_MAX ? p->watermark_us + 1 : INT64_MAX; /* no row before it comes any more */
    if (p->known) {
        yyjson_mut_obj_add_uint(d, o, "rows_in", p->rows_in);
        yyjson_mut_obj_add_uint(d, o, "rows_out", p->rows_out);
    } else {
        yyjson_mut_obj_add_null(d, o, "rows_in");
        yyjson_mut_obj_add_null(d, o, "rows_out");
    }
    yyjson_mut_obj_add_uint(d, o, "memory_bytes", p->memory_bytes);
    yyjson_mut_obj_add_uint(d, o, "memory_limit", p->memory_limit);
    if (any)
        put_text(d, o, "watermark", (ck_view){at, ck_print_timestamp(at, us, us % 1000000 ? 6 : 0, 'T', false)});
    else
        yyjson_mut_obj_add_null(d, o, "watermark");
    put_text(d, o, "watermark_note", p->note);
}

static void put_regions(yyjson_mut_doc *d, yyjson_mut_val *o, const ck_proto_list *regions) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(d, o, "regions");
    for (uint32_t k = 0; k < regions->count; k++) {
        const ck_msg_region_info *i = (const ck_msg_region_info *)regions->items + k;
        yyjson_mut_val *x = yyjson_mut_arr_add_obj(d, list);
        yyjson_mut_obj_add_uint(d, x, "region", k);
        put_text(d, x, "status", i->state);
        put_text(d, x, "error", i->error);
        yyjson_mut_obj_add_uint(d, x, "attempt", i->attempt);
        yyjson_mut_obj_add_uint(d, x, "restarts", i->restarts);
        yyjson_mut_obj_add_uint(d, x, "tasks", i->tasks);
        yyjson_mut_obj_add_uint(d, x, "tasks_running", i->tasks_running);
        yyjson_mut_obj_add_uint(d, x, "checkpoint", i->checkpoint);
    }
}

static yyjson_mut_val *job_object(yyjson_mut_doc *d, const ck_msg_job_info *i, const ck_msg_reply *r) {
    yyjson_mut_val *o = yyjson_mut_obj(d);
    yyjson_mut_obj_add_uint(d, o, "id", i->id);
    put_text(d, o, "name", i->name);
    put_text(d, o, "status", i->state);
    put_text(d, o, "error", i->error);
    yyjson_mut_obj_add_uint(d, o, "attempt", i->attempt);
    yyjson_mut_obj_add_uint(d, o, "restarts", i->restarts);
    yyjson_mut_obj_add_uint(d, o, "restarts_max", i->restarts_max);
    yyjson_mut_obj_add_uint(d, o, "tasks", i->tasks);
    yyjson_mut_obj_add_uint(d, o, "tasks_running", i->tasks_running);
    yyjson_mut_obj_add_uint(d, o, "checkpoint", i->checkpoint);
    put_progress(d, o, &i->progress);
    if (i->regions.count) put_regions(d, o, &i->regions);
    if (r->checkpoint) yyjson_mut_obj_add_uint(d, o, "savepoint", r->checkpoint);
    if (r->checkpoint) put_text(d, o, "checkpoint_dir", r->checkpoint_dir);
    if (r->tasks.count == 0) return o;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(d, o, "subtasks");
    for (uint32_t k = 0; k < r->tasks.count; k++) {
        const ck_msg_task_info *t = (const ck_msg_task_info *)r->tasks.items + k;
        yyjson_mut_val *x = yyjson_mut_arr_add_obj(d, list);
        put_text(d, x, "role", t->role);
        yyjson_mut_obj_add_uint(d, x, "index", t->index);
        if (i->regions.count) yyjson_mut_obj_add_uint(d, x, "region", t->region);
        put_text(d, x, "status", t->state);
        put_text(d, x, "worker", t->worker);
        put_text(d, x, "error", t->error);
    }
    return o;
}

/* One object a line. */
static ck_status print_reply(ck_arena *a, const ck_msg_reply *r, char **json, ck_error *err) {
    ck_bytes out;
    ck_bytes_init(&out, a->mem, ANSWER_BYTES_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < r->jobs.count; i++) {
        yyjson_mut_doc *d;
        ck_view line = {0};
        s = ck_json_new(a, &d, err);
        if (s != CK_OK) break;
        yyjson_mut_doc_set_root(d, job_object(d, (const ck_msg_job_info *)r->jobs.items + i, r));
        s = ck_json_write(a, d, &line, err);
        if (s == CK_OK) s = ck_bytes_view(&out, line);
        if (s == CK_OK) s = ck_bytes_char(&out, '\n');
    }
    if (s == CK_OK && !(*json = strndup(out.p ? out.p : "", out.n))) s = ck_fail(err, CK_NOMEM, "out of memory");
    ck_bytes_destroy(&out);
    return s;
}

/* ---- asking ---- */

static ck_status ask_with(clink_engine *e, const clink_cluster *c, const ck_client_plugin *plugins, uint32_t count,
                          const ck_message *m, bool for_ever, char **json, ck_error *err) {
    int64_t timeout_ms = c->timeout_ms ? c->timeout_ms : for_ever ? -1 : CLIENT_TIMEOUT_MS;
    const ck_client_config cfg = {.proc = &e->proc,
                                  .address = c->coordinator ? c->coordinator : DEFAULT_COORDINATOR,
                                  .token_file = c->token_file,
                                  .tls = tls_files(&c->tls),
                                  .timeout_us = timeout_ms < 0 ? -1 : timeout_ms * 1000};
    ck_arena a;
    ck_msg_reply r;
    ck_arena_init(&a, ck_proc_mem(&e->proc, CK_MEM_PLAN), ANSWER_BYTES_MAX);
    ck_status s = ck_client_submit(&cfg, plugins, count, m, &a, &r, err);
    if (s == CK_OK) s = print_reply(&a, &r, json, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status ask(clink_engine *e, const clink_cluster *c, const ck_message *m, bool for_ever, char **json,
                     ck_error *err) {
    return ask_with(e, c, NULL, 0, m, for_ever, json, err);
}

static clink_status command_job(clink_engine *e, const clink_cluster *c, clink_job_command command, uint64_t job,
                                const char *skip, char **json, clink_error *error) {
    static const ck_command commands[] = {
        [CLINK_JOB_LIST] = CK_COMMAND_LIST,           [CLINK_JOB_STATUS] = CK_COMMAND_STATUS,
        [CLINK_JOB_CANCEL] = CK_COMMAND_CANCEL,       [CLINK_JOB_DROP] = CK_COMMAND_DROP,
        [CLINK_JOB_SAVEPOINT] = CK_COMMAND_SAVEPOINT, [CLINK_JOB_STOP] = CK_COMMAND_STOP,
        [CLINK_JOB_WAIT] = CK_COMMAND_WAIT,           [CLINK_JOB_RESUME] = CK_COMMAND_RESUME};
    ck_error err = CK_ERROR_INIT;
    if (!e || !c || !json) return engine_refuse_null(!e ? "engine" : !c ? "cluster" : "json", error);
    *json = NULL;
    if (c->struct_bytes != sizeof *c || command < CLINK_JOB_LIST || command > CLINK_JOB_RESUME)
        return engine_error(ck_fail(&err, CK_INVALID, "clink_job_command %d is not known", command), &err, error);
    int64_t timeout_ms = c->timeout_ms > 0 ? c->timeout_ms : CLIENT_TIMEOUT_MS;
    const ck_message m = {.kind = CK_MSG_COMMAND,
                          .as.command = {.fence.job = job,
                                         .command = commands[command],
                                         .timeout_ms = timeout_ms > INT32_MAX ? INT32_MAX : (uint64_t)timeout_ms,
                                         .skip_record = ck_view_of(skip)}};
    return engine_error(ask(e, c, &m, command == CLINK_JOB_WAIT, json, &err), &err, error);
}

clink_status clink_ask(clink_engine *e, const clink_cluster *c, clink_job_command command, uint64_t job, char **json,
                       clink_error *error) {
    return command_job(e, c, command, job, "", json, error);
}

clink_status clink_resume(clink_engine *e, const clink_cluster *c, uint64_t job, const char *skip_record, char **json,
                          clink_error *error) {
    return command_job(e, c, CLINK_JOB_RESUME, job, skip_record ? skip_record : "", json, error);
}

/* ---- submit ---- */

static ck_status set_base(clink_engine *e, ck_error *err) {
    char cwd[CK_CLUSTER_PATH_MAX];
    if (!getcwd(cwd, sizeof cwd)) return ck_fail(err, CK_IO, "the current directory has no name");
    pthread_mutex_lock(&e->lock);
    const char *base = ck_arena_strdup(&e->arena, cwd);
    if (base) ck_catalog_set_base(e->catalog, base);
    pthread_mutex_unlock(&e->lock);
    return base ? CK_OK : ck_nomem(err, e->arena.mem, 0);
}

/* What could only fail is refused before a worker has heard of it. */
static ck_status look_at_checkpoint(clink_engine *e, clink_job *j, const ck_graph *graph, ck_error *err) {
    const char *warning;
    const ck_job_settings settings = engine_look_settings(graph, j->run.name);
    ck_evolve_config cfg = engine_evolve_config(e, &j->run, graph, &settings);
    if (cfg.added == CK_ADDED_BACKFILL)
        return ck_fail(
            err, CK_REFUSED,
            "the input is read again in one process: start the script with clink run --added-state backfill, "
            "stop it with a savepoint, and submit it then");
    if (!j->run.checkpoint_dir) return CK_OK;
    CK_TRY(ck_restore_gate(&j->arena, j->run.checkpoint_dir, NULL, j->run.name, &cfg, &warning, err));
    if (*warning) ck_log_line(e->proc.log, CK_LOG_WARN, "%s: %s", j->run.name, warning);
    return CK_OK;
}

/* With the engine's plugins, where the coordinator has them not. */
static ck_status bring(clink_engine *e, const clink_cluster *c, clink_job *j, ck_message *m, bool wait, char **json,
                       ck_error *err) {
    ck_client_plugin *plugins;
    uint32_t count;
    ck_arena a;
    ck_arena_init(&a, j->arena.mem, PLUGINS_BYTES_MAX);
    ck_status s = engine_client_plugins(e, &a, &plugins, &count, err);
    ck_msg_plugin *said = s == CK_OK ? ck_arena_array(&a, count, sizeof *said) : NULL;
    if (s == CK_OK && !said) s = ck_nomem(err, a.mem, count * sizeof *said);
    for (uint32_t i = 0; s == CK_OK && i < count; i++) said[i] = plugins[i].said;
    m->as.submit.plugins = (ck_proto_list){said, s == CK_OK ? count : 0};
    if (s == CK_OK) s = ask_with(e, c, plugins, count, m, wait, json, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status submit(clink_engine *e, const clink_cluster *c, clink_job *j, int64_t max_restarts, int32_t wait,
                        char **json, ck_error *err) {
    const ck_sql_step *step;
    ck_message m = {.kind = CK_MSG_SUBMIT};
    ck_msg_submit *s = &m.as.submit;
    CK_TRY(find_step(j, &step, err));
    s->name = ck_view_of(j->run.name);
    s->max_restarts_on_worker_loss = max_restarts;
    s->wait = wait != 0;
    int64_t interval_ms = engine_checkpoint_config(&j->run).interval_us / 1000;
    s->interval_ms = interval_ms > INT32_MAX ? INT32_MAX : (uint64_t)interval_ms;
    CK_TRY(absolute(j, j->run.checkpoint_dir, &s->checkpoint_dir, err));
    CK_TRY(make_spec(j, step, &s->spec, err));
    CK_TRY(make_roles(j, step->graph, &s->roles, err));
    CK_TRY(check_memory(e, &s->roles, err));
    CK_TRY(look_at_checkpoint(e, j, step->graph, err));
    return bring(e, c, j, &m, wait != 0, json, err);
}

clink_status clink_submit(clink_engine *e, const clink_cluster *c, const char *sql, const clink_run *run,
                          int64_t max_restarts, int32_t wait, char **json, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (!e || !c || !sql || !json)
        return engine_refuse_null(!e ? "engine" : !c ? "cluster" : !sql ? "sql" : "json", error);
    *json = NULL;
    clink_job *j = NULL;
    ck_status s = set_base(e, &err);
    if (s == CK_OK) s = engine_compile(e, sql, run, &j, &err);
    if (s == CK_OK) s = submit(e, c, j, max_restarts, wait, json, &err);
    if (j) clink_job_free(j);
    return engine_error(s, &err, error);
}
