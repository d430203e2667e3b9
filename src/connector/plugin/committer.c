/* A plugin's committer: what its sinks prepared is made seen when the checkpoint is complete. All calls are made by the
 * job, which may wait. */
#include <yyjson.h>

#include "base/json.h"
#include "connector/plugin/plugin_int.h"

enum { CALL_BYTES_MAX = 256 << 20 };

typedef struct plugin_committer {
    ck_mem mem;
    ck_arena arena;
    ck_proc *proc;
    const ck_plugin_connector *connector;
    ck_sink_table table;
    clink_table face;
    const char *uid, *job_uuid;
    uint32_t parallelism;
    void *user;
    bool open;
} plugin_committer;

static ck_status init(plugin_committer *c, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_plugin_connector_of(spec, &c->connector, err));
    if (!c->connector->face->sink || !c->connector->face->sink->commit)
        return ck_fail(err, CK_INVALID, "%s: connector %s commits nothing", spec->uid, c->connector->face->name);
    CK_TRY(ck_sink_table_read(&c->arena, spec, &c->table, NULL, err));
    c->uid = ck_arena_strdup(&c->arena, spec->uid);
    c->job_uuid = ck_arena_strdup(&c->arena, spec->settings->job_uuid ? spec->settings->job_uuid : "");
    c->parallelism = spec->parallelism;
    c->proc = spec->proc;
    return c->uid && c->job_uuid ? CK_OK : ck_nomem(err, c->mem, strlen(spec->uid));
}

static void committer_close(void *self) {
    plugin_committer *c = self;
    if (c->open && c->connector->face->sink->close_committer) c->connector->face->sink->close_committer(c->user);
    ck_arena_destroy(&c->arena);
    ck_free(c->mem, c, sizeof *c);
}

ck_status ck_plugin_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    plugin_committer *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->mem = mem;
    ck_arena_init(&c->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = init(c, spec, err);
    if (s == CK_OK)
        *self = c;
    else
        committer_close(c);
    return s;
}

static ck_status said(const plugin_committer *c, const char *what, clink_status s, const clink_error *error,
                      ck_error *err) {
    return ck_plugin_said(c->connector, c->table.table ? c->table.table : "", what, s, error, err);
}

static ck_status open_user(plugin_committer *c, ck_error *err) {
    clink_error error = {0};
    const clink_sink *f = c->connector->face->sink;
    if (c->open) return CK_OK;
    CK_TRY(ck_plugin_table_make(c->connector, c->table.table, c->table.schema, c->table.key, c->table.key_count,
                                &c->table.options, c->proc, &c->arena, &c->face, err));
    const clink_sink_start start = {.struct_bytes = sizeof start,
                                    .parallelism = c->parallelism,
                                    .table = &c->face,
                                    .job = c->job_uuid,
                                    .uid = c->uid};
    if (f->open_committer) CK_TRY(said(c, "open_committer", f->open_committer(&c->user, &start, &error), &error, err));
    c->open = true;
    return CK_OK;
}

static ck_status parse(const plugin_committer *c, ck_arena *a, const ck_committable *from, clink_committable *out,
                       ck_error *err) {
    struct yyjson_doc *doc;
    ck_view bytes;
    CK_TRY(ck_json_read(a, ck_view_of(from->payload), &doc, err));
    if (!ck_plugin_bytes_read(a, yyjson_doc_get_root(doc), &bytes))
        return ck_fail(err, CK_CORRUPT, "table \"%s\": committable %s is none of a plugin: %.400s", c->table.table,
                       from->name, from->payload);
    if (!bytes.p) return ck_nomem(err, c->mem, bytes.n);
    *out =
        (clink_committable){.struct_bytes = sizeof *out, .checkpoint = from->checkpoint, .bytes = {bytes.p, bytes.n}};
    return CK_OK;
}

static ck_status commit_in(plugin_committer *c, ck_arena *a, const ck_committable *committable, ck_error *err) {
    clink_committable given;
    clink_error error = {0};
    CK_TRY(open_user(c, err));
    CK_TRY(parse(c, a, committable, &given, err));
    CK_TRY(said(c, "commit", c->connector->face->sink->commit(c->user, &given, &error), &error, err));
    CK_FAULT(c->proc, PLUGIN_COMMITTED);
    return CK_OK;
}

static ck_status committer_commit(void *self, const ck_committable *committable, ck_error *err) {
    plugin_committer *c = self;
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), CALL_BYTES_MAX);
    ck_status s = commit_in(c, &a, committable, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status abort_in(plugin_committer *c, ck_arena *a, clink_abort *what, const ck_committable *keep,
                          ck_error *err) {
    clink_committable *kept = ck_arena_array(a, what->keep_count + 1u, sizeof *kept);
    clink_error error = {0};
    if (!kept) return ck_nomem(err, c->mem, what->keep_count * sizeof *kept);
    CK_TRY(open_user(c, err));
    for (uint32_t i = 0; i < what->keep_count; i++) CK_TRY(parse(c, a, &keep[i], &kept[i], err));
    what->keep = kept;
    CK_TRY(said(c, "abort_others", c->connector->face->sink->abort_others(c->user, what, &error), &error, err));
    CK_FAULT(c->proc, PLUGIN_ABORTED);
    return CK_OK;
}

static ck_status committer_abort_others(void *self, const char *job_uuid, uint64_t restored, const ck_committable *keep,
                                        size_t keep_count, bool allow_duplicates, ck_error *err) {
    plugin_committer *c = self;
    ck_arena a;
    clink_abort what = {.struct_bytes = sizeof what,
                        .allow_duplicates = allow_duplicates,
                        .restored = restored,
                        .job = job_uuid ? job_uuid : "",
                        .keep_count = (uint32_t)keep_count};
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), CALL_BYTES_MAX);
    ck_status s = abort_in(c, &a, &what, keep, err);
    ck_arena_destroy(&a);
    return s;
}

const ck_committer_vtbl ck_plugin_committer_vtbl = {
    .struct_bytes = sizeof(ck_committer_vtbl),
    .commit = committer_commit,
    .abort_others = committer_abort_others,
    .close = committer_close,
};
