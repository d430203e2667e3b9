/* The manifest as JSON:
 *
 *   {"format":1,"job":{"name","uuid"},"checkpoint":N,"attempt":N,"kind":"periodic|savepoint|final",
 *    "started_ms","completed_ms","phases":{"name":ms},"key_groups":N,"graph":{...},"graph_hash":"16 hex",
 *    "region":n,"regions":N (of a region, then the format is 2),
 *    "state_versions":"lines","vertices":[{"id":"decimal","ops":["uid"],"parallelism":N,"finished":[subtask]}],
 *    "files":[{"path","bytes","crc32c","vertex":"decimal","subtask","ops":["decimal"],"key_groups":[first,last],
 *              "kind":"base|delta|changelog|materialized|inflight|wal","base":"path"}],"crc32c":N}
 *
 * The last member is CRC-32C of every byte in front of its comma. A manifest without it is of an older version.
 * 64-bit ids are strings, since many readers of JSON keep 53 bits of a number. Decoding is in manifest_decode.c. */
#include "checkpoint/manifest_int.h"

#include <inttypes.h>
#include <yyjson.h>

#include "base/json.h"
#include "os/durable.h"

const char *const ck_barrier_kind_names[CK_BARRIER_KINDS] = {"periodic", "savepoint", "final"};
const char *const ck_file_kind_names[CK_FILE_KINDS] = {"base", "delta", "inflight", "wal", "changelog", "materialized"};

typedef struct writer {
    ck_arena arena;
    yyjson_mut_doc *doc;
    bool ok; /* false: no memory */
} writer;

static void put(writer *w, yyjson_mut_val *object, const char *key, yyjson_mut_val *v) {
    w->ok = w->ok && v && yyjson_mut_obj_add(object, yyjson_mut_str(w->doc, key), v);
}
static void put_text(writer *w, yyjson_mut_val *object, const char *key, const char *text) {
    put(w, object, key, yyjson_mut_str(w->doc, text ? text : ""));
}
static void put_uint(writer *w, yyjson_mut_val *object, const char *key, uint64_t v) {
    put(w, object, key, yyjson_mut_uint(w->doc, v));
}
static yyjson_mut_val *id_text(writer *w, uint64_t id) {
    const char *text = ck_arena_printf(&w->arena, "%" PRIu64, id);
    return text ? yyjson_mut_str(w->doc, text) : NULL;
}
static void append(writer *w, yyjson_mut_val *array, yyjson_mut_val *v) {
    w->ok = w->ok && v && yyjson_mut_arr_append(array, v);
}

static void put_graph(writer *w, yyjson_mut_val *root, const char *graph, ck_error *err) {
    yyjson_doc *doc;
    if (!graph || !*graph) {
        put(w, root, "graph", yyjson_mut_obj(w->doc));
        return;
    }
    CK_ASSERT(ck_json_read(&w->arena, ck_view_of(graph), &doc, err) != CK_CORRUPT); /* we have printed it ourselves */
    put(w, root, "graph", doc ? yyjson_val_mut_copy(w->doc, yyjson_doc_get_root(doc)) : NULL);
}

static yyjson_mut_val *vertex_value(writer *w, const ck_manifest_vertex *v) {
    yyjson_mut_val *o = yyjson_mut_obj(w->doc), *ops = yyjson_mut_arr(w->doc), *finished = yyjson_mut_arr(w->doc);
    if (!o || !ops || !finished) return NULL;
    for (uint32_t i = 0; i < v->op_count; i++) append(w, ops, yyjson_mut_str(w->doc, v->ops[i]));
    for (uint32_t i = 0; i < v->finished_count; i++) append(w, finished, yyjson_mut_uint(w->doc, v->finished[i]));
    put(w, o, "id", id_text(w, v->id));
    put(w, o, "ops", ops);
    put_uint(w, o, "parallelism", v->parallelism);
    put(w, o, "finished", finished);
    return o;
}

static yyjson_mut_val *file_value(writer *w, const ck_manifest_file *f) {
    yyjson_mut_val *o = yyjson_mut_obj(w->doc), *ops = yyjson_mut_arr(w->doc), *groups = yyjson_mut_arr(w->doc);
    if (!o || !ops || !groups) return NULL;
    for (uint32_t i = 0; i < f->op_count; i++) append(w, ops, id_text(w, f->ops[i]));
    append(w, groups, yyjson_mut_uint(w->doc, f->key_groups.first));
    append(w, groups, yyjson_mut_uint(w->doc, f->key_groups.last));
    put_text(w, o, "path", f->path);
    put_uint(w, o, "bytes", f->bytes);
    put_uint(w, o, "crc32c", f->crc32c);
    put(w, o, "vertex", id_text(w, f->vertex));
    put_uint(w, o, "subtask", f->subtask);
    put(w, o, "ops", ops);
    put(w, o, "key_groups", groups);
    put_text(w, o, "kind", ck_file_kind_names[f->kind]);
    if (f->base) put_text(w, o, "base", f->base);
    return o;
}

static void put_all(writer *w, yyjson_mut_val *root, const ck_manifest *m) {
    yyjson_mut_val *job = yyjson_mut_obj(w->doc), *phases = yyjson_mut_obj(w->doc);
    yyjson_mut_val *vertices = yyjson_mut_arr(w->doc), *files = yyjson_mut_arr(w->doc);
    const char *hash = ck_arena_printf(&w->arena, "%016" PRIx64, m->graph_hash);
    w->ok = job && phases && vertices && files && hash;
    if (!w->ok) return;
    put_text(w, job, "name", m->job_name);
    put_text(w, job, "uuid", m->job_uuid);
    for (uint32_t i = 0; i < m->phase_count; i++)
        put(w, phases, m->phases[i].name, yyjson_mut_sint(w->doc, m->phases[i].ms));
    for (uint32_t i = 0; i < m->vertex_count; i++) append(w, vertices, vertex_value(w, &m->vertices[i]));
    for (uint32_t i = 0; i < m->file_count; i++) append(w, files, file_value(w, &m->files[i]));
    put_uint(w, root, "format", m->regions ? CK_MANIFEST_FORMAT : 1);
    put(w, root, "job", job);
    put_uint(w, root, "checkpoint", m->checkpoint);
    put_uint(w, root, "attempt", m->attempt);
    put_text(w, root, "kind", ck_barrier_kind_names[m->kind]);
    put(w, root, "started_ms", yyjson_mut_sint(w->doc, m->started_ms));
    put(w, root, "completed_ms", yyjson_mut_sint(w->doc, m->completed_ms));
    put(w, root, "phases", phases);
    put_uint(w, root, "key_groups", m->key_groups);
    put_graph(w, root, m->graph, NULL);
    put_text(w, root, "graph_hash", hash);
    if (m->regions) put_uint(w, root, "region", m->region);
    if (m->regions) put_uint(w, root, "regions", m->regions);
    put_text(w, root, "state_versions", m->state_versions);
    put(w, root, "vertices", vertices);
    put(w, root, "files", files);
}

/* The closing brace makes room for the checksum. */
ck_status ck_manifest_put_with_checksum(ck_bytes *out, ck_view object) {
    ck_view open = {object.p, object.n - 1};
    CK_ASSERT(object.n && object.p[object.n - 1] == '}');
    CK_TRY(ck_bytes_view(out, open));
    return ck_bytes_printf(out, CK_MANIFEST_TAIL "\n", ck_crc32c(0, open.p, open.n));
}

ck_status ck_manifest_encode(const ck_manifest *m, ck_bytes *out) {
    writer w = {0};
    ck_arena_init(&w.arena, out->mem, SIZE_MAX);
    ck_status s = ck_json_new(&w.arena, &w.doc, NULL);
    if (s == CK_OK) {
        yyjson_mut_val *root = yyjson_mut_obj(w.doc);
        if (root) put_all(&w, root, m);
        s = root && w.ok ? CK_OK : CK_NOMEM;
        yyjson_mut_doc_set_root(w.doc, root);
    }
    ck_view text;
    if (s == CK_OK) s = ck_json_write(&w.arena, w.doc, &text, NULL);
    if (s == CK_OK) s = ck_manifest_put_with_checksum(out, text);
    ck_arena_destroy(&w.arena);
    return s;
}

/* ---- what a cover says ---- */

static uint64_t checkpoint_at(const ck_manifest *m, uint32_t vertex) {
    for (uint32_t i = 0; i < m->part_count; i++)
        if (vertex - m->parts[i].first_vertex < m->parts[i].vertex_count) return m->parts[i].checkpoint;
    return m->checkpoint;
}

uint64_t ck_manifest_checkpoint_of_op(const ck_manifest *m, const char *uid) {
    for (uint32_t v = 0; v < m->vertex_count; v++)
        for (uint32_t i = 0; i < m->vertices[v].op_count; i++)
            if (strcmp(m->vertices[v].ops[i], uid) == 0) return checkpoint_at(m, v);
    return 0;
}

uint64_t ck_manifest_checkpoint_of_vertex(const ck_manifest *m, uint64_t vertex) {
    for (uint32_t v = 0; v < m->vertex_count; v++)
        if (m->vertices[v].id == vertex) return checkpoint_at(m, v);
    return 0;
}
