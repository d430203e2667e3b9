/* From a graph and a config to what a job is: its own copy of the graph, descriptors, vertices, settings. Nothing
 * outside is touched yet. */
#include <yyjson.h>

#include "base/json.h"
#include "os/clock.h"
#include "os/random.h"
#include "runtime/job_int.h"

enum { DEFAULT_FLUSH_US = 5000, GRAPH_JSON_BYTES_MAX = 64 << 20 };

static ck_status nomem(ck_job *j, ck_error *err) { return ck_nomem(err, j->mem, 4096); }

static bool copy_text(ck_job *j, const char **z) {
    if (!*z) return true;
    *z = ck_arena_strdup(&j->arena, *z);
    return *z != NULL;
}

static ck_status copy_config(ck_job *j, const ck_graph *g, const ck_job_config *cfg, ck_error *err) {
    ck_job_config *c = &j->cfg;
    *c = *cfg;
    if (!c->name || !c->name[0]) c->name = g->name[0] ? g->name : "job";
    if (!c->parallelism) c->parallelism = 1;
    if (!c->batch_rows) c->batch_rows = CK_BATCH_ROWS_MAX;
    if (!c->flush_us) c->flush_us = DEFAULT_FLUSH_US;
    if (!c->checkpoint.retained) c->checkpoint.retained = 1;
    if (c->checkpoint.dir && !c->checkpoint.dir[0]) c->checkpoint.dir = NULL;
    if (c->batch_rows > CK_BATCH_ROWS_MAX)
        return ck_fail(err, CK_INVALID, "batch_rows %u is above %d", c->batch_rows, CK_BATCH_ROWS_MAX);
    if (c->flush_us < 0 || c->checkpoint.interval_us < 0 || c->checkpoint.timeout_us < 0 ||
        c->checkpoint.final_timeout_us < 0)
        return ck_fail(err, CK_INVALID, "a time of the job is negative");
    if (!copy_text(j, &c->name) || !copy_text(j, &c->checkpoint.dir) || !copy_text(j, &c->checkpoint.restore) ||
        !copy_text(j, &c->checkpoint.fresh_uuid) || !copy_text(j, &c->spill_dir))
        return nomem(j, err);
    return CK_OK;
}

/* The graph as text is what the manifest stores, and reading it back is a deep copy. */
static ck_status copy_graph(ck_job *j, const ck_graph *g, ck_error *err) {
    ck_bytes text;
    ck_bytes_init(&text, j->mem, GRAPH_JSON_BYTES_MAX);
    ck_status s = ck_graph_encode(g, &text);
    if (s == CK_FULL) s = ck_fail(err, CK_FULL, "the job graph is larger than %d bytes", GRAPH_JSON_BYTES_MAX);
    if (s == CK_NOMEM) s = nomem(j, err);
    if (s == CK_OK) j->graph_json = ck_arena_strndup(&j->arena, text.p, text.n);
    if (s == CK_OK && !j->graph_json) s = nomem(j, err);
    if (s == CK_OK) s = ck_graph_decode(&j->arena, ck_bytes_as_view(&text), &j->whole, err);
    ck_bytes_destroy(&text);
    return s;
}

static ck_status take_region(ck_job *j, ck_error *err) {
    const ck_job_region *r = &j->cfg.region;
    j->graph = j->whole;
    if (!ck_job_is_region(j)) return CK_OK;
    CK_TRY(ck_graph_regions_of(&j->arena, j->whole, &j->regions, err));
    if (r->count != j->regions.count || r->index >= r->count)
        return ck_fail(err, CK_INVALID, "region %u of %u of a job graph that has %u", r->index, r->count,
                       j->regions.count);
    return ck_graph_region(&j->arena, j->whole, &j->regions, r->index, &j->graph, err);
}

ck_checkpoint_region ck_job_region_of_dir(const ck_job *j) {
    if (!ck_job_is_region(j)) return (ck_checkpoint_region){0};
    return (ck_checkpoint_region){.index = j->cfg.region.index,
                                  .count = j->cfg.region.count,
                                  .graph_hash = ck_graph_hash(j->whole),
                                  .ops = j->regions.op_ids,
                                  .of_op = j->regions.of_op,
                                  .op_count = j->whole->op_count};
}

static ck_status read_settings(ck_job *j, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(&j->arena, ck_view_of(j->graph->settings), &doc, err));
    const char *on_error = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "on_eval_error"));
    j->settings = (ck_job_settings){.batch_rows = j->cfg.batch_rows,
                                    .key_groups = j->graph->key_groups,
                                    .flush_us = j->cfg.flush_us,
                                    .eval_error_null = on_error && strcmp(on_error, "null") == 0,
                                    .timezone = j->graph->timezone,
                                    .job_name = j->cfg.name,
                                    .checkpoints = j->cfg.checkpoint.dir != NULL,
                                    .skips = j->cfg.skips,
                                    .skip_count = j->cfg.skip_count};
    return CK_OK;
}

/* ---- operators ---- */

static ck_status make_spec(ck_job *j, ck_job_op *o, ck_error *err) {
    ck_op_spec *spec = ck_graph_op_spec(&j->arena, j->graph, o->op);
    if (!spec) return nomem(j, err);
    spec->proc = j->proc;
    spec->settings = &j->settings;
    spec->peers = o->peers;
    spec->job_data = j->cfg.job_data;
    o->spec = spec;
    return CK_OK;
}

/* Looked at for sources only. */
static void note_unbounded(ck_job *j, const ck_graph_op *op) {
    for (uint32_t i = 0; i < op->input_count; i++)
        if (!op->inputs[i].bounded)
            j->ops[ck_graph_find(j->graph, op->inputs[i].uid) - j->graph->ops].unbounded_source = true;
}

static ck_status make_peers(ck_job *j, ck_job_op *o, ck_error *err) {
    if (!(o->peers = CK_ARENA_NEW(&j->arena, ck_source_peers))) return nomem(j, err);
    for (uint32_t i = 0; i < j->plan.vertices[o->vertex].parallelism; i++)
        o->peers->subtasks += ck_job_is_here(j, o->vertex, i);
    return CK_OK;
}

static ck_status make_ops(ck_job *j, ck_error *err) {
    const ck_graph *g = j->graph;
    j->ops = ck_arena_array(&j->arena, g->op_count, sizeof *j->ops);
    if (!j->ops) return nomem(j, err);
    for (uint32_t i = 0; i < g->op_count; i++) {
        ck_job_op *o = &j->ops[i];
        o->op = &g->ops[i];
        o->vertex = j->plan.vertex_of_op[i];
        const ck_vertex *v = &j->plan.vertices[o->vertex];
        while (v->ops[o->place] != o->op) o->place++;
        ck_status s = ck_registry_op(j->registry, o->op->type, &o->desc, err);
        if (s == CK_OK && !o->desc->source != (o->op->input_count > 0))
            s = ck_fail(err, CK_INVALID, o->desc->source ? "a source has no inputs" : "an operator needs inputs");
        if (s != CK_OK) {
            (void)ck_error_prefix(err, "operator %s: ", o->op->uid);
            return s;
        }
        if (o->desc->source) CK_TRY(make_peers(j, o, err));
        CK_TRY(make_spec(j, o, err));
        note_unbounded(j, o->op);
        if (o->op->input_count > 0 && !o->op->final) j->flush = true;
    }
    return CK_OK;
}

ck_job_op *ck_job_chain_op(const ck_job *j, uint32_t vertex, uint32_t place) {
    return &j->ops[j->plan.vertices[vertex].ops[place] - j->graph->ops];
}

ck_op_spec *ck_job_op_spec(ck_job *j, const ck_job_op *o, uint32_t subtask, uint32_t parallelism) {
    ck_op_spec *spec = CK_ARENA_NEW(&j->arena, ck_op_spec);
    if (!spec) return NULL;
    *spec = *o->spec;
    spec->subtask = subtask;
    spec->parallelism = parallelism;
    return spec;
}

ck_status ck_job_op_slots(ck_job *j, const ck_job_op *o, const ck_slot_schema **slots, uint32_t *count, ck_error *err) {
    *slots = NULL, *count = 0;
    if (!o->desc->slots) return CK_OK;
    ck_op_spec *spec = ck_job_op_spec(j, o, 0, 1);
    return spec ? o->desc->slots(spec, &j->arena, slots, count, err) : nomem(j, err);
}

/* ---- versions of state: "op_id|state_type|version|slot" lines, sorted; version 1 goes without saying ---- */

static int compare_lines(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static ck_status add_version_lines(ck_job *j, const ck_job_op *o, char **lines, uint32_t *n, uint32_t max,
                                   ck_error *err) {
    const ck_slot_schema *slots;
    uint32_t count;
    CK_TRY(ck_job_op_slots(j, o, &slots, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].version <= 1) continue;
        if (*n == max) return ck_fail(err, CK_FULL, "over %u slots with a version of their own", max);
        lines[*n] = ck_arena_printf(&j->arena, "%llu|%s|%u|%s", (unsigned long long)ck_op_id(o->op->uid),
                                    slots[i].state_type, slots[i].version, slots[i].slot);
        if (!lines[(*n)++]) return nomem(j, err);
    }
    return CK_OK;
}

static ck_status make_state_versions(ck_job *j, ck_error *err) {
    uint32_t max = j->graph->op_count * 16, n = 0;
    char **lines = ck_arena_array(&j->arena, max, sizeof *lines);
    if (!lines) return nomem(j, err);
    for (uint32_t i = 0; i < j->graph->op_count; i++) CK_TRY(add_version_lines(j, &j->ops[i], lines, &n, max, err));
    qsort(lines, n, sizeof *lines, compare_lines);
    const char *all = "";
    for (uint32_t i = 0; i < n && all; i++) all = ck_arena_printf(&j->arena, "%s%s%s", all, i ? "\n" : "", lines[i]);
    j->state_versions = all;
    return all ? CK_OK : nomem(j, err);
}

static ck_status number_subtasks(ck_job *j, ck_error *err) {
    j->first_subtask = ck_arena_array(&j->arena, j->plan.count, sizeof *j->first_subtask);
    if (!j->first_subtask) return nomem(j, err);
    for (uint32_t v = 0; v < j->plan.count; v++) {
        j->first_subtask[v] = j->subtask_count;
        j->subtask_count += j->plan.vertices[v].parallelism;
    }
    j->subtasks = ck_arena_array(&j->arena, j->subtask_count, sizeof(ck_subtask *));
    return j->subtasks ? CK_OK : nomem(j, err);
}

ck_status ck_job_make_plan(ck_job *j, const ck_graph *g, const ck_job_config *cfg, ck_error *err) {
    CK_TRY(copy_config(j, g, cfg, err));
    CK_TRY(copy_graph(j, g, err));
    CK_TRY(take_region(j, err));
    CK_TRY(ck_graph_fuse(&j->arena, j->graph, j->cfg.parallelism, &j->plan, err));
    CK_TRY(read_settings(j, err));
    CK_TRY(make_ops(j, err));
    CK_TRY(make_state_versions(j, err));
    return number_subtasks(j, err);
}
