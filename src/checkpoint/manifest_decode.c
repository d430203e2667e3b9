/* Reading manifests: every member is checked for its type and range, then the whole for what belongs together. */
#include "checkpoint/manifest_int.h"

#include <stdio.h>
#include <yyjson.h>

#include "base/json.h"
#include "os/durable.h"
#include "state/schema_version.h"

typedef struct reader {
    ck_arena *a;
    ck_error *err;
    const char *where; /* "vertices[3]" or "" */
    ck_status status;  /* first failure */
} reader;

static void bad(reader *r, const char *member, const char *what) {
    if (r->status != CK_OK) return;
    r->status = ck_fail(r->err, CK_CORRUPT, "the manifest's %s%s%s %s", r->where, *r->where ? "." : "", member, what);
}

static void no_memory(reader *r, size_t bytes) {
    if (r->status == CK_OK) r->status = ck_nomem(r->err, r->a->mem, bytes);
}

static yyjson_val *member(reader *r, yyjson_val *o, const char *name) {
    yyjson_val *v = yyjson_obj_get(o, name);
    if (!v) bad(r, name, "is missing");
    return v;
}

static const char *text_of(reader *r, yyjson_val *v, const char *name) {
    if (r->status != CK_OK) return "";
    if (!yyjson_is_str(v) || strlen(yyjson_get_str(v)) != yyjson_get_len(v)) {
        bad(r, name, "is not a text");
        return "";
    }
    return yyjson_get_str(v); /* lives in the document, which lives in the arena */
}

static uint64_t uint_of(reader *r, yyjson_val *v, const char *name, uint64_t max) {
    if (r->status != CK_OK) return 0;
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > max) {
        bad(r, name, "is not a number in its range");
        return 0;
    }
    return yyjson_get_uint(v);
}

static int64_t time_of(reader *r, yyjson_val *o, const char *name) {
    return (int64_t)uint_of(r, member(r, o, name), name, INT64_MAX);
}

static uint64_t id_of(reader *r, yyjson_val *v, const char *name) {
    const char *p = text_of(r, v, name);
    uint64_t id = 0;
    bool ok = *p != 0 && (*p != '0' || p[1] == 0);
    for (; ok && *p; p++) {
        ok = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(id, 10, &id) &&
             !__builtin_add_overflow(id, (uint64_t)(*p - '0'), &id);
    }
    if (!ok) bad(r, name, "is not a decimal id");
    return id;
}

static uint64_t hash_of(reader *r, yyjson_val *v, const char *name) {
    const char *p = text_of(r, v, name);
    uint64_t h = 0;
    bool ok = strlen(p) == 16;
    for (; ok && *p; p++) {
        int d = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
        ok = d >= 0;
        h = h << 4 | (uint64_t)(unsigned)(d & 15);
    }
    if (!ok) bad(r, name, "is not 16 hex digits");
    return h;
}

static uint32_t choice_of(reader *r, yyjson_val *v, const char *name, const char *const *names, uint32_t n) {
    const char *p = text_of(r, v, name);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(p, names[i]) == 0) return i;
    bad(r, name, "is not one of the known kinds");
    return 0;
}

/* An array and room for its elements. */
static void *array_of(reader *r, yyjson_val *o, const char *name, size_t element, yyjson_val **array, uint32_t *count) {
    *array = member(r, o, name);
    *count = 0;
    if (r->status != CK_OK) return NULL;
    if (!yyjson_is_arr(*array) || yyjson_arr_size(*array) > UINT32_MAX) {
        bad(r, name, "is not an array");
        return NULL;
    }
    size_t n = yyjson_arr_size(*array);
    void *p = ck_arena_array(r->a, n ? n : 1, element);
    if (!p) no_memory(r, n * element);
    if (p) *count = (uint32_t)n;
    return p;
}

/* ---- parts ---- */

static void read_phases(reader *r, yyjson_val *o, ck_manifest *m) {
    yyjson_val *phases = yyjson_obj_get(o, "phases"); /* for people: may be absent */
    if (!phases || r->status != CK_OK) return;
    if (!yyjson_is_obj(phases)) {
        bad(r, "phases", "is not an object");
        return;
    }
    size_t n = yyjson_obj_size(phases), i, max;
    ck_manifest_phase *list = ck_arena_array(r->a, n ? n : 1, sizeof *list);
    if (!list) {
        no_memory(r, n * sizeof *list);
        return;
    }
    yyjson_val *key, *v;
    yyjson_obj_foreach(phases, i, max, key, v) {
        if (!yyjson_is_int(v)) bad(r, "phases", "holds something that is not a number");
        list[i] = (ck_manifest_phase){text_of(r, key, "phases"), yyjson_get_sint(v)};
    }
    m->phases = list, m->phase_count = (uint32_t)n;
}

static void read_graph(reader *r, yyjson_val *o, ck_manifest *m) {
    yyjson_val *v = member(r, o, "graph");
    if (r->status != CK_OK) return;
    yyjson_alc alc;
    ck_json_alc(r->a, &alc);
    if (yyjson_is_obj(v))
        m->graph = yyjson_val_write_opts(v, YYJSON_WRITE_NOFLAG, &alc, NULL, NULL);
    else
        bad(r, "graph", "is not an object");
    if (!m->graph) no_memory(r, 0);
}

static void read_vertex(reader *r, yyjson_val *o, ck_manifest_vertex *v) {
    if (!yyjson_is_obj(o)) {
        bad(r, "vertices", "holds something that is not an object");
        return;
    }
    yyjson_val *array, *item;
    size_t i, max;
    v->id = id_of(r, member(r, o, "id"), "id");
    v->parallelism = (uint32_t)uint_of(r, member(r, o, "parallelism"), "parallelism", CK_PARALLELISM_MAX);
    const char **ops = array_of(r, o, "ops", sizeof *ops, &array, &v->op_count);
    if (ops) yyjson_arr_foreach(array, i, max, item) ops[i] = text_of(r, item, "ops");
    v->ops = ops;
    uint32_t *finished = array_of(r, o, "finished", sizeof *finished, &array, &v->finished_count);
    if (finished)
        yyjson_arr_foreach(array, i, max, item) finished[i] =
            (uint32_t)uint_of(r, item, "finished", CK_PARALLELISM_MAX);
    v->finished = finished;
}

static void read_groups(reader *r, yyjson_val *o, ck_manifest_file *f) {
    yyjson_val *v = member(r, o, "key_groups");
    if (r->status != CK_OK) return;
    if (!yyjson_is_arr(v) || yyjson_arr_size(v) != 2) {
        bad(r, "key_groups", "is not [first, last]");
        return;
    }
    f->key_groups.first = (uint32_t)uint_of(r, yyjson_arr_get(v, 0), "key_groups", UINT32_MAX);
    f->key_groups.last = (uint32_t)uint_of(r, yyjson_arr_get(v, 1), "key_groups", UINT32_MAX);
}

static void read_file(reader *r, yyjson_val *o, ck_manifest_file *f) {
    if (!yyjson_is_obj(o)) {
        bad(r, "files", "holds something that is not an object");
        return;
    }
    yyjson_val *array, *item;
    size_t i, max;
    f->path = text_of(r, member(r, o, "path"), "path");
    f->bytes = uint_of(r, member(r, o, "bytes"), "bytes", INT64_MAX);
    f->crc32c = (uint32_t)uint_of(r, member(r, o, "crc32c"), "crc32c", UINT32_MAX);
    f->vertex = id_of(r, member(r, o, "vertex"), "vertex");
    f->subtask = (uint32_t)uint_of(r, member(r, o, "subtask"), "subtask", CK_PARALLELISM_MAX);
    f->kind = (ck_file_kind)choice_of(r, member(r, o, "kind"), "kind", ck_file_kind_names, CK_FILE_KINDS);
    read_groups(r, o, f);
    uint64_t *ops = array_of(r, o, "ops", sizeof *ops, &array, &f->op_count);
    if (ops) yyjson_arr_foreach(array, i, max, item) ops[i] = id_of(r, item, "ops");
    f->ops = ops;
    yyjson_val *base = yyjson_obj_get(o, "base");
    if (base) f->base = text_of(r, base, "base");
}

static void read_parts(reader *r, yyjson_val *o, ck_manifest *m) {
    yyjson_val *array, *item;
    size_t i, max;
    m->vertices = array_of(r, o, "vertices", sizeof *m->vertices, &array, &m->vertex_count);
    if (m->vertices) yyjson_arr_foreach(array, i, max, item) {
            char where[32];
            snprintf(where, sizeof where, "vertices[%zu]", i);
            r->where = where;
            read_vertex(r, item, &m->vertices[i]);
            r->where = "";
        }
    m->files = array_of(r, o, "files", sizeof *m->files, &array, &m->file_count);
    if (m->files) yyjson_arr_foreach(array, i, max, item) {
            char where[32];
            snprintf(where, sizeof where, "files[%zu]", i);
            r->where = where;
            read_file(r, item, &m->files[i]);
            r->where = "";
        }
}

/* Lines as in snapshots; what is none is damage wherever it stands. */
static void check_versions(reader *r, const char *lines) {
    ck_version_map versions;
    if (r->status != CK_OK) return;
    ck_version_map_init(&versions, r->a);
    r->status = ck_version_map_decode(&versions, ck_view_of(lines), r->err);
    if (r->status != CK_OK) (void)ck_error_prefix(r->err, "the manifest: ");
}

static void read_all(reader *r, yyjson_val *o, ck_manifest *m) {
    yyjson_val *job = member(r, o, "job");
    if (r->status == CK_OK && !yyjson_is_obj(job)) bad(r, "job", "is not an object");
    if (r->status != CK_OK) return;
    m->job_name = text_of(r, member(r, job, "name"), "job.name");
    m->job_uuid = text_of(r, member(r, job, "uuid"), "job.uuid");
    m->checkpoint = uint_of(r, member(r, o, "checkpoint"), "checkpoint", INT64_MAX);
    m->attempt = uint_of(r, member(r, o, "attempt"), "attempt", INT64_MAX);
    m->kind = (ck_barrier_kind)choice_of(r, member(r, o, "kind"), "kind", ck_barrier_kind_names, CK_BARRIER_KINDS);
    m->started_ms = time_of(r, o, "started_ms");
    m->completed_ms = time_of(r, o, "completed_ms");
    m->key_groups = (uint32_t)uint_of(r, member(r, o, "key_groups"), "key_groups", CK_KEY_GROUPS_MAX);
    m->graph_hash = hash_of(r, member(r, o, "graph_hash"), "graph_hash");
    if (m->format > 1) {
        m->region = (uint32_t)uint_of(r, member(r, o, "region"), "region", CK_REGIONS_MAX);
        m->regions = (uint32_t)uint_of(r, member(r, o, "regions"), "regions", CK_REGIONS_MAX);
        if (r->status == CK_OK && m->regions < 2) bad(r, "regions", "is not at least 2");
    }
    m->state_versions = text_of(r, member(r, o, "state_versions"), "state_versions");
    check_versions(r, m->state_versions);
    read_phases(r, o, m);
    read_graph(r, o, m);
    read_parts(r, o, m);
}

/* The last member, over every byte in front of its comma; none in manifests of older versions. */
bool ck_manifest_fits_checksum(yyjson_val *object, ck_view json) {
    yyjson_val *v = yyjson_obj_get(object, "crc32c");
    char tail[64];
    if (!v) return true;
    uint64_t crc = yyjson_get_uint(v);
    int n = snprintf(tail, sizeof tail, CK_MANIFEST_TAIL, (uint32_t)crc);
    if (json.n && json.p[json.n - 1] == '\n') json.n--;
    size_t front = json.n - (size_t)n;
    return yyjson_is_uint(v) && crc <= UINT32_MAX && json.n > (size_t)n &&
           memcmp(json.p + front, tail, (size_t)n) == 0 && ck_crc32c(0, json.p, front) == crc;
}

ck_status ck_manifest_decode(ck_arena *a, ck_view json, ck_manifest **out, ck_error *err) {
    yyjson_doc *doc;
    if (json.n > CK_MANIFEST_BYTES_MAX)
        return ck_fail(err, CK_CORRUPT, "a manifest of %zu bytes, %d are the most", json.n, CK_MANIFEST_BYTES_MAX);
    CK_TRY(ck_json_read(a, json, &doc, err));
    yyjson_val *o = yyjson_doc_get_root(doc);
    reader r = {.a = a, .err = err, .where = ""};
    if (!yyjson_is_obj(o)) return ck_fail(err, CK_CORRUPT, "the manifest is not a JSON object");
    uint64_t format = uint_of(&r, member(&r, o, "format"), "format", UINT32_MAX);
    if (r.status == CK_OK && format == 0) bad(&r, "format", "is 0");
    CK_TRY(r.status);
    if (format > CK_MANIFEST_FORMAT)
        return ck_fail(err, CK_REFUSED, "the manifest has format %llu, this version knows %d: a newer clink wrote it",
                       (unsigned long long)format, CK_MANIFEST_FORMAT);
    if (!ck_manifest_fits_checksum(o, json))
        return ck_fail(err, CK_CORRUPT, "the manifest's checksum does not fit its content");
    ck_manifest *m = CK_ARENA_NEW(a, ck_manifest);
    if (!m) return ck_nomem(err, a->mem, sizeof *m);
    m->format = (uint32_t)format;
    read_all(&r, o, m);
    CK_TRY(r.status);
    *out = m;
    return ck_manifest_check(m, a, err);
}
