/* Names and committables of the file sink, and the file an instance is writing. */
#include "connector/file/sink_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/json.h"

static const char *join(const char *dir) { return dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/"; }

const char *ck_sink_part_path(ck_arena *a, const char *dir, const char *job_uuid, uint32_t subtask, uint64_t n,
                              const char *ext) {
    return ck_arena_printf(a, "%s%spart-%.8s-%u-%llu.%s", dir, join(dir), job_uuid, subtask, (unsigned long long)n,
                           ext);
}

const char *ck_sink_rows_path(ck_arena *a, const char *dir, uint32_t subtask, const char *ext) {
    return ck_arena_printf(a, "%s%srows-%u.%s", dir, join(dir), subtask, ext);
}

bool ck_sink_is_stale_rows(const char *name, const char *ext, uint64_t of) {
    char *end;
    if (strncmp(name, "rows-", 5) != 0 || name[5] < '0' || name[5] > '9') return false;
    return strtoull(name + 5, &end, 10) >= of && *end == '.' && strcmp(end + 1, ext) == 0;
}

ck_status ck_sink_payload_print(ck_arena *a, const ck_sink_payload *p, const char **out, ck_error *err) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(a, &doc, err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    bool ok = yyjson_mut_obj_add_str(doc, root, "staged", p->staged) &&
              yyjson_mut_obj_add_uint(doc, root, "bytes", p->bytes) &&
              yyjson_mut_obj_add_uint(doc, root, "crc32c", p->crc32c);
    if (p->replace)
        ok = ok && yyjson_mut_obj_add_bool(doc, root, "replace", true) &&
             yyjson_mut_obj_add_uint(doc, root, "subtask", p->subtask) &&
             yyjson_mut_obj_add_uint(doc, root, "of", p->of);
    if (!ok) return ck_nomem(err, a->mem, strlen(p->staged));
    ck_view text;
    CK_TRY(ck_json_write(a, doc, &text, err));
    *out = text.p;
    return CK_OK;
}

ck_status ck_sink_payload_parse(ck_arena *a, const char *text, ck_sink_payload *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(text), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *staged = yyjson_obj_get(root, "staged"),
               *bytes = yyjson_obj_get(root, "bytes"), *crc = yyjson_obj_get(root, "crc32c"),
               *replace = yyjson_obj_get(root, "replace"), *subtask = yyjson_obj_get(root, "subtask"),
               *of = yyjson_obj_get(root, "of");
    bool ok = yyjson_is_str(staged) && strlen(yyjson_get_str(staged)) == yyjson_get_len(staged) &&
              yyjson_is_uint(bytes) && yyjson_is_uint(crc) && yyjson_get_uint(crc) <= UINT32_MAX;
    ok = ok && (!replace || (yyjson_is_bool(replace) && yyjson_is_uint(subtask) && yyjson_is_uint(of) &&
                             yyjson_get_uint(of) <= CK_PARALLELISM_MAX));
    if (!ok) return ck_fail(err, CK_CORRUPT, "this is no committable of a file: %.200s", text);
    *out = (ck_sink_payload){yyjson_get_str(staged),
                             yyjson_get_uint(bytes),
                             (uint32_t)yyjson_get_uint(crc),
                             yyjson_get_bool(replace),
                             (uint32_t)yyjson_get_uint(subtask),
                             (uint32_t)yyjson_get_uint(of)};
    return CK_OK;
}

/* ---- the instance ---- */

ck_status ck_file_sink_init(ck_file_sink *s, const ck_op_spec *spec, ck_mem mem, ck_error *err) {
    s->mem = mem;
    ck_arena_init(&s->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_bytes_init(&s->text, mem, SIZE_MAX);
    CK_TRY(ck_sink_table_read(&s->arena, spec, &s->table, NULL, err));
    CK_TRY(ck_file_options_read(&s->table.options, &s->options, err));
    s->dir = ck_arena_strdup(&s->arena, s->options.path);
    if (!s->dir) return ck_nomem(err, s->arena.mem, strlen(s->options.path));
    s->commits = spec->settings->checkpoints && s->options.exactly_once;
    s->subtask = spec->subtask;
    s->parallelism = spec->parallelism;
    if (!spec->settings->job_uuid || strlen(spec->settings->job_uuid) < 8)
        return ck_fail(err, CK_INVALID, "%s (%s): the job has no UUID to name its parts by", spec->type, spec->uid);
    snprintf(s->uuid, sizeof s->uuid, "%s", spec->settings->job_uuid);
    ck_encoder_spec e = {.format = s->options.format,
                         .schema = s->table.schema,
                         .changes = CK_CHANGES_NONE,
                         .header = s->options.header,
                         .delimiter = s->options.delimiter,
                         .null_string = s->options.null_string};
    return ck_encoder_new(&e, mem, &s->encoder, err);
}

void ck_file_sink_destroy(ck_file_sink *s) {
    ck_part_writer_destroy(&s->writer);
    ck_bytes_destroy(&s->text);
    ck_encoder_free(s->encoder);
    s->encoder = NULL;
    ck_arena_destroy(&s->arena);
}

ck_status ck_file_sink_begin(ck_file_sink *s, const char *path, ck_op_ctx *ctx) {
    if (strlen(path) >= sizeof s->path_buf) return ck_fail(ctx->error, CK_INVALID, "the path %s is too long", path);
    memcpy(s->path_buf, path, strlen(path) + 1);
    s->part = (ck_part){.path = s->path_buf};
    if (!s->options.header) return CK_OK;
    size_t from = s->text.n;
    if (ck_encoder_header(s->encoder, &s->text) != CK_OK) return ck_nomem(ctx->error, s->mem, s->text.n);
    ck_file_sink_count(s, from);
    return CK_OK;
}

void ck_file_sink_count(ck_file_sink *s, size_t from) {
    s->part.bytes += s->text.n - from;
    s->part.crc32c = ck_crc32c(s->part.crc32c, s->text.p + from, s->text.n - from);
}

ck_status ck_file_sink_hand_over(ck_file_sink *s, bool force) {
    if (!force && s->text.n < CK_ENCODE_BYTES) return CK_OK;
    return ck_part_writer_write(&s->writer, s->part.path, &s->text);
}
