/* clink_check_savepoint: what a savepoint holds, and whether a job could go on from it. The job is a script, a graph as
 * JSON, or (.so) a plugin's. */
#include <inttypes.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/json.h"
#include "checkpoint/inspect.h"
#include "engine/evolve_int.h"

enum { EXPECTED_BYTES_MAX = 16 << 20 };

typedef struct refusal {
    uint64_t op_id;
    const char *uid;                     /* NULL: of the job as a whole */
    const char *state_type, *slot, *why; /* state_type "": of the operator as a whole */
    uint32_t from, to;
} refusal;

typedef struct checking {
    clink_engine *engine;
    ck_arena *arena;
    const char *path, *expected; /* NULL: none */
    clink_run asked;             /* how that job would be started */
    ck_inspection found;
    clink_job *script; /* the graph's owner */
    const ck_graph *graph;
    refusal *refusals;
    uint32_t refusal_count;
    const char *ways; /* to go on all the same; NULL: none */
    ck_error *err;
} checking;

static ck_status nomem(checking *c) { return ck_nomem(c->err, c->arena->mem, 0); }

/* ---- the job ---- */

static bool ends_with(const char *z, const char *end) {
    size_t n = strlen(z), m = strlen(end);
    return n >= m && strcmp(z + n - m, end) == 0;
}

static ck_status read_graph(checking *c, ck_view text) {
    ck_graph *g;
    CK_TRY(ck_graph_decode(c->arena, text, &g, c->err));
    c->graph = g;
    return CK_OK;
}

/* plugin_job: NULL, or of the plugins that the engine has. Key groups are the checkpoint's: a start can say which. */
static ck_status compile(checking *c, const char *sql, const char *plugin_job) {
    clink_run run = c->asked;
    run.plugin_job = plugin_job;
    if (c->found.manifest) run.key_groups = c->found.manifest->key_groups;
    CK_TRY(engine_compile(c->engine, sql, &run, &c->script, c->err));
    for (uint32_t i = 0; i < c->script->plan->step_count; i++)
        if (c->script->plan->steps[i].kind == CK_SQL_JOB) c->graph = c->script->plan->steps[i].graph;
    return c->graph ? CK_OK : ck_fail(c->err, CK_INVALID, "it runs no job that could go on from a savepoint");
}

static ck_status read_script(checking *c, ck_view text) {
    const char *sql = ck_arena_strndup(c->arena, text.p, text.n);
    return sql ? compile(c, sql, NULL) : nomem(c);
}

static ck_status read_expected(checking *c) {
    ck_view text;
    if (ends_with(c->expected, ".so")) return compile(c, "", "");
    CK_TRY(ck_fs_read_any(&c->engine->proc, c->expected, EXPECTED_BYTES_MAX, c->arena, &text, c->err));
    ck_status s = ends_with(c->expected, ".json") ? read_graph(c, text) : read_script(c, text);
    if (s != CK_OK) (void)ck_error_prefix(c->err, "%s: ", c->expected);
    return s;
}

/* ---- comparing ---- */

static void refuse(checking *c, refusal r) { c->refusals[c->refusal_count++] = r; }

static ck_status refuse_all(checking *c, const char *why) {
    if (!why) return nomem(c);
    refuse(c, (refusal){.state_type = "", .slot = "", .why = why});
    return CK_OK;
}

/* Who names the job asks for that one: a start finds its directory by the name. */
static ck_status compare_name(checking *c) {
    const char *name = c->asked.name, *was = c->found.manifest->job_name;
    if (!name || strcmp(name, was) == 0) return CK_OK;
    return refuse_all(c, ck_arena_printf(c->arena, "it is of job %s, not of %s", was, name));
}

static ck_status refuse_checkpoint(checking *c, const ck_evolve_config *cfg, const ck_evolution *e) {
    ck_error why = CK_ERROR_INIT;
    ck_status s = ck_evolve_refuses_checkpoint(cfg, e, &why);
    if (s == CK_OK) return s;
    if (s != CK_REFUSED) {
        *c->err = why;
        return s;
    }
    return refuse_all(c, ck_arena_strdup(c->arena, why.msg));
}

/* A checkpoint tells its job too: what the job's start would find. */
static ck_status compare_job(checking *c, const ck_evolve_config *cfg) {
    ck_evolution e;
    CK_TRY(ck_evolve(c->arena, cfg, &e, c->err));
    if (!(c->refusals = ck_arena_array(c->arena, e.count + 2u, sizeof *c->refusals))) return nomem(c);
    CK_TRY(compare_name(c));
    CK_TRY(refuse_checkpoint(c, cfg, &e));
    if (!c->refusal_count) c->ways = ck_evolve_ways(&e);
    for (uint32_t i = 0; i < e.count; i++) {
        const ck_evolve_op *op = &e.ops[i];
        const char *uid = op->wanted ? op->wanted->uid : op->stored->uid;
        const char *gone = op->verdict == CK_EVOLVE_DROP ? "is not in this job: " : "";
        if (!op->refused) continue;
        const char *why = ck_arena_printf(c->arena, "%s%s", gone, op->why);
        if (!why) return nomem(c);
        refuse(c, (refusal){.op_id = ck_op_id(uid), .uid = uid, .state_type = "", .slot = "", .why = why});
    }
    return CK_OK;
}

/* A file by itself has slots and versions only. */
static ck_status compare_slots(checking *c, const ck_evolve_config *cfg) {
    const ck_expected_slot *expected;
    const ck_incompatible_slot *bad;
    uint32_t expected_count, n;
    CK_TRY(ck_expected_slots(cfg, c->arena, &expected, &expected_count, c->err));
    if (ck_check_restore_compatibility(c->arena, &c->found.state, expected, expected_count,
                                       &c->engine->registry.migrations, &bad, &n) != CK_OK)
        return nomem(c);
    if (!(c->refusals = ck_arena_array(c->arena, n + 1u, sizeof *c->refusals))) return nomem(c);
    for (uint32_t i = 0; i < n; i++)
        refuse(c,
               (refusal){bad[i].op_id, bad[i].uid, bad[i].state_type, bad[i].slot, bad[i].why, bad[i].from, bad[i].to});
    return CK_OK;
}

static ck_status compare(checking *c) {
    const ck_job_settings settings = engine_look_settings(c->graph, c->graph->name);
    const ck_evolve_config cfg = {.proc = &c->engine->proc,
                                  .registry = &c->engine->registry,
                                  .dir = c->found.dir,
                                  .manifest = c->found.manifest,
                                  .wanted = c->graph,
                                  .settings = &settings,
                                  .added = engine_added_state(&c->asked)};
    if (c->found.manifest) return compare_job(c, &cfg);
    if (c->asked.name || cfg.added != CK_ADDED_REFUSED)
        return ck_fail(c->err, CK_INVALID,
                       "%s is a file by itself and tells no job: --name and --added-state are about a checkpoint's",
                       c->path);
    return compare_slots(c, &cfg);
}

/* ---- saying it ---- */

/* Of the slots from i on those of one operator; its name where anybody knows it. */
static uint32_t operator_end(const checking *c, uint32_t i, const char **uid, uint64_t *entries) {
    uint64_t id = c->found.slots[i].stored->op_id;
    *uid = "";
    *entries = 0;
    for (; i < c->found.slot_count && c->found.slots[i].stored->op_id == id; i++) {
        if (!**uid) *uid = c->found.slots[i].stored->uid;
        *entries += c->found.slots[i].entries;
    }
    for (uint32_t k = 0; !**uid && c->graph && k < c->graph->op_count; k++)
        if (ck_op_id(c->graph->ops[k].uid) == id) *uid = c->graph->ops[k].uid;
    return i;
}

static ck_status write_counts(ck_bytes *out, uint64_t entries, uint64_t changes) {
    CK_TRY(ck_bytes_printf(out, "%" PRIu64 " %s", entries, entries == 1 ? "entry" : "entries"));
    return changes ? ck_bytes_printf(out, " and %" PRIu64 " changes on them", changes) : CK_OK;
}

static ck_status write_slot(ck_bytes *out, const ck_inspected_slot *s) {
    const ck_slot_schema *schema = s->stored->schema;
    CK_TRY(ck_bytes_printf(out, "    slot \"%s\": ", schema->slot));
    CK_TRY(write_counts(out, s->entries, s->changes));
    if (schema->state_type && *schema->state_type) CK_TRY(ck_bytes_printf(out, ", type \"%s\"", schema->state_type));
    return s->version ? ck_bytes_printf(out, ", v%u\n", s->version) : ck_bytes_str(out, ", without a version (v1)\n");
}

static ck_status write_refusal(ck_bytes *out, const refusal *r) {
    CK_TRY(r->uid ? ck_bytes_printf(out, "incompatible: op %s", r->uid) : ck_bytes_str(out, "incompatible"));
    if (*r->slot)
        CK_TRY(ck_bytes_printf(out, " slot \"%s\" type \"%s\": v%u -> v%u", r->slot, r->state_type, r->from, r->to));
    return ck_bytes_printf(out, ": %s\n", r->why);
}

static ck_status write_text(const checking *c, ck_bytes *out) {
    const ck_inspection *f = &c->found;
    if (f->manifest)
        CK_TRY(ck_bytes_printf(out, "%s %" PRIu64 " of job %s in %s: ",
                               f->manifest->kind == CK_BARRIER_SAVEPOINT ? "savepoint" : "checkpoint",
                               f->manifest->checkpoint, f->manifest->job_name, f->dir));
    else
        CK_TRY(ck_bytes_printf(out, "%s: ", c->path));
    CK_TRY(write_counts(out, f->entries, f->changes));
    CK_TRY(ck_bytes_printf(out, " in %" PRIu64 " file%s\n", f->files, f->files == 1 ? "" : "s"));
    for (uint32_t i = 0; i < f->slot_count;) {
        const char *uid;
        uint64_t entries;
        uint32_t end = operator_end(c, i, &uid, &entries);
        CK_TRY(ck_bytes_printf(out, "  op %" PRIu64 "%s%s (%" PRIu64 " entries)\n", f->slots[i].stored->op_id,
                               *uid ? " " : "", uid, entries));
        for (; i < end; i++) CK_TRY(write_slot(out, &f->slots[i]));
    }
    for (uint32_t i = 0; i < c->refusal_count; i++) CK_TRY(write_refusal(out, &c->refusals[i]));
    if (c->ways) CK_TRY(ck_bytes_printf(out, "%s\n", c->ways));
    return c->expected && !c->refusal_count ? ck_bytes_printf(out, "compatible with %s\n", c->expected) : CK_OK;
}

typedef struct json_writer {
    yyjson_mut_doc *doc;
    bool ok;
} json_writer;

static void put(json_writer *w, yyjson_mut_val *o, const char *key, yyjson_mut_val *v) {
    w->ok = w->ok && o && v && yyjson_mut_obj_add(o, yyjson_mut_str(w->doc, key), v);
}
static void put_str(json_writer *w, yyjson_mut_val *o, const char *key, const char *z) {
    put(w, o, key, yyjson_mut_str(w->doc, z ? z : ""));
}
static void put_uint(json_writer *w, yyjson_mut_val *o, const char *key, uint64_t v) {
    put(w, o, key, yyjson_mut_uint(w->doc, v));
}
static yyjson_mut_val *append(json_writer *w, yyjson_mut_val *list) {
    yyjson_mut_val *o = yyjson_mut_obj(w->doc);
    w->ok = w->ok && list && o && yyjson_mut_arr_append(list, o);
    return o;
}

static void put_id(json_writer *w, const checking *c, yyjson_mut_val *o, uint64_t id) {
    const char *text = ck_arena_printf(c->arena, "%" PRIu64, id); /* numbers of 64 bits do not survive every reader */
    put(w, o, "op", text ? yyjson_mut_str(w->doc, text) : NULL);
}

static void put_operators(json_writer *w, const checking *c, yyjson_mut_val *root) {
    const ck_inspection *f = &c->found;
    yyjson_mut_val *list = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; i < f->slot_count;) {
        const char *uid;
        uint64_t entries;
        uint32_t end = operator_end(c, i, &uid, &entries);
        yyjson_mut_val *op = append(w, list), *slots = yyjson_mut_arr(w->doc);
        put_id(w, c, op, f->slots[i].stored->op_id);
        put_str(w, op, "uid", uid);
        put_uint(w, op, "entries", entries);
        for (; i < end; i++) {
            yyjson_mut_val *s = append(w, slots);
            put_str(w, s, "slot", f->slots[i].stored->schema->slot);
            put_str(w, s, "type", f->slots[i].stored->schema->state_type);
            put_uint(w, s, "version", f->slots[i].version ? f->slots[i].version : CK_STATE_VERSION_DEFAULT);
            put(w, s, "stamped", yyjson_mut_bool(w->doc, f->slots[i].version != 0));
            put_uint(w, s, "entries", f->slots[i].entries);
            put_uint(w, s, "changes", f->slots[i].changes);
        }
        put(w, op, "slots", slots);
    }
    put(w, root, "operators", list);
}

static ck_status write_json(const checking *c, ck_bytes *out) {
    const ck_inspection *f = &c->found;
    json_writer w = {.ok = true};
    ck_view text;
    CK_TRY(ck_json_new(c->arena, &w.doc, c->err));
    yyjson_mut_val *root = yyjson_mut_obj(w.doc);
    put_str(&w, root, "source", c->path);
    if (f->manifest) put_uint(&w, root, "checkpoint", f->manifest->checkpoint);
    if (f->manifest) put_str(&w, root, "job", f->manifest->job_name);
    put_uint(&w, root, "files", f->files);
    put_uint(&w, root, "entries", f->entries);
    put_uint(&w, root, "changes", f->changes);
    put_operators(&w, c, root);
    if (c->expected) {
        yyjson_mut_val *list = yyjson_mut_arr(w.doc);
        for (uint32_t i = 0; i < c->refusal_count; i++) {
            const refusal *r = &c->refusals[i];
            yyjson_mut_val *o = append(&w, list);
            if (r->uid) put_id(&w, c, o, r->op_id);
            if (r->uid) put_str(&w, o, "uid", r->uid);
            if (*r->slot) put_str(&w, o, "type", r->state_type);
            if (*r->slot) put_str(&w, o, "slot", r->slot);
            if (*r->slot) put_uint(&w, o, "from", r->from);
            if (*r->slot) put_uint(&w, o, "to", r->to);
            put_str(&w, o, "why", r->why);
        }
        put(&w, root, "compatible", yyjson_mut_bool(w.doc, c->refusal_count == 0));
        put(&w, root, "incompatible", list);
    }
    if (!w.ok) return CK_NOMEM;
    yyjson_mut_doc_set_root(w.doc, root);
    CK_TRY(ck_json_write(c->arena, w.doc, &text, c->err));
    CK_TRY(ck_bytes_view(out, text));
    return ck_bytes_char(out, '\n');
}

/* ---- all of it ---- */

static ck_status check(checking *c, bool json, ck_bytes *out, clink_savepoint_verdict *verdict) {
    *verdict = CLINK_SAVEPOINT_UNREADABLE;
    CK_TRY(ck_inspect(&c->engine->proc, c->arena, c->path, &c->found, c->err));
    *verdict = CLINK_SAVEPOINT_NO_JOB;
    if (c->expected) CK_TRY(read_expected(c));
    if (c->expected) CK_TRY(compare(c));
    *verdict = c->refusal_count ? CLINK_SAVEPOINT_INCOMPATIBLE : CLINK_SAVEPOINT_COMPATIBLE;
    return (json ? write_json : write_text)(c, out) == CK_OK ? CK_OK : nomem(c);
}

clink_status clink_check_savepoint(clink_engine *e, const char *path, const char *expected, int32_t json, char **text,
                                   clink_savepoint_verdict *verdict, clink_error *error) {
    return clink_check_savepoint_for(e, path, expected, NULL, json, text, verdict, error);
}

clink_status clink_check_savepoint_for(clink_engine *e, const char *path, const char *expected, const clink_run *run,
                                       int32_t json, char **text, clink_savepoint_verdict *verdict,
                                       clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    ck_arena arena;
    ck_bytes out;
    if (text) *text = NULL;
    if (!e || !path || !text || !verdict)
        return engine_refuse_null(!e ? "engine" : !path ? "path" : !text ? "text" : "verdict", error);
    ck_mem mem = ck_proc_mem(&e->proc, CK_MEM_PLAN);
    ck_arena_init(&arena, mem, SIZE_MAX);
    ck_bytes_init(&out, mem, SIZE_MAX);
    checking c = {.engine = e, .arena = &arena, .path = path, .expected = expected, .err = &err};
    *verdict = CLINK_SAVEPOINT_NO_JOB;
    ck_status s = engine_take_run(run, &c.asked, &err);
    if (s == CK_OK) s = check(&c, json != 0, &out, verdict);
    if (s == CK_OK && !(*text = strndup(out.p ? out.p : "", out.n))) s = ck_fail(&err, CK_NOMEM, "out of memory");
    ck_bytes_destroy(&out);
    if (c.script) clink_job_free(c.script);
    ck_arena_destroy(&arena);
    return engine_error(s, &err, error);
}
