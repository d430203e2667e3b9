/* See registry.h. */
#include "connector/kafka/registry.h"

#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "base/cursor.h"
#include "base/json.h"
#include "connector/secret.h"

enum {
    ANSWER_BYTES_MAX = 16 << 20,
    REFERENCES_MAX = 64,
    SLICE_MS = 1000,
    RETRIES = 2,
    PAUSE_MS = 200,
    SECRET_BYTES_MAX = 1 << 16,
};

/* ---- options ---- */

ck_status ck_registry_options_read(const ck_table_options *o, const char *format, const char *topic,
                                   ck_registry_options *out, ck_error *err) {
    *out = (ck_registry_options){
        .topic = topic,
        .url = ck_option_text(o, "schema_registry", NULL),
        .subject = ck_option_text(o, "schema_registry.subject", NULL),
        .message = ck_option_text(o, "schema_registry.message", NULL),
        .user = ck_option_text(o, "schema_registry.user", NULL),
        .password = ck_option_text(o, "schema_registry.password", NULL),
        .token = ck_option_text(o, "schema_registry.token", NULL),
        .ca = ck_option_text(o, "schema_registry.ca", NULL),
    };
    bool wants = ck_message_format_of(format, &out->format);
    CK_TRY(ck_option_i64(o, "schema_registry.retry_ms", 120000, 0, INT64_MAX / 1000, &out->retry_ms, err));
    CK_TRY(ck_option_i64(o, "timeout_ms", 10000, 1, 3600000, &out->timeout_ms, err));
    if (!wants && (out->url || out->subject || out->message || out->user || out->password || out->token || out->ca))
        return ck_fail(err, CK_INVALID,
                       "the options 'schema_registry' and its like are of the formats avro and protobuf, "
                       "and format is '%s'",
                       format);
    if (wants && (!out->url || !out->url[0]))
        return ck_fail(
            err, CK_INVALID,
            "format '%s' needs the option 'schema_registry', as 'http://registry:8081': its records name their "
            "schema there",
            format);
    if (out->url && strncmp(out->url, "http://", 7) != 0 && strncmp(out->url, "https://", 8) != 0)
        return ck_fail(err, CK_INVALID, "option 'schema_registry' is '%s', not an address as 'http://registry:8081'",
                       out->url);
    if (out->url)
        CK_TRY(ck_secret_check_url("schema_registry", out->url,
                                   "the options 'schema_registry.user' and '.password', or '.token',", err));
    if (out->message && out->format == CK_MESSAGE_AVRO)
        return ck_fail(err, CK_INVALID, "option 'schema_registry.message' is of format protobuf");
    if ((out->user != NULL) != (out->password != NULL))
        return ck_fail(err, CK_INVALID,
                       "the options 'schema_registry.user' and 'schema_registry.password' go together");
    if (out->user && out->token)
        return ck_fail(err, CK_INVALID,
                       "the options 'schema_registry.user' and 'schema_registry.token' exclude each other");
    CK_TRY(ck_secret_check("schema_registry.password", out->password, err));
    CK_TRY(ck_secret_check("schema_registry.token", out->token, err));
    return CK_OK;
}

/* ---- asking ---- */

ck_status ck_registry_open(ck_registry *r, ck_proc *proc, const ck_registry_options *o, ck_arena *a, ck_error *err) {
    ck_http_options h = {.for_what = "a schema registry",
                         .user = o->user,
                         .ca = o->ca,
                         .timeout_ms = o->timeout_ms,
                         .retries = RETRIES,
                         .pause_ms = PAUSE_MS,
                         .in_flight_max = 1,
                         .answer_bytes_max = ANSWER_BYTES_MAX};
    *r = (ck_registry){.options = o, .a = a};
    static const char *const headers[] = {"Accept: application/vnd.schemaregistry.v1+json, application/json",
                                          "Content-Type: application/vnd.schemaregistry.v1+json"};
    h.headers = headers, h.header_count = CK_ARRAY_COUNT(headers);
    if (o->password)
        CK_TRY(ck_secret_resolve(proc, "schema_registry.password", o->password, SECRET_BYTES_MAX, a, &h.password, err));
    if (o->token)
        CK_TRY(ck_secret_resolve(proc, "schema_registry.token", o->token, SECRET_BYTES_MAX, a, &h.token, err));
    r->subject = o->subject ? o->subject : ck_arena_printf(a, "%s-value", o->topic);
    if (!r->subject) return ck_nomem(err, a->mem, 64);
    ck_http_request_init(&r->request, a->mem);
    return ck_http_client_init(&r->http, proc, &h, err);
}

void ck_registry_close(ck_registry *r) {
    if (!r->options) return;
    ck_http_client_destroy(&r->http, &r->request, 1);
    ck_http_request_destroy(&r->request);
    r->options = NULL;
}

static ck_status nomem(ck_registry *r, ck_error *err) { return ck_nomem(err, r->a->mem, 1024); }

/* A name as a part of a path. */
static const char *escaped(ck_registry *r, const char *name) {
    size_t n = strlen(name);
    char *out = ck_arena_alloc(r->a, 3 * n + 1), *p = out;
    for (size_t i = 0; out && i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~", c);
        if (plain)
            *p++ = (char)c;
        else
            p += snprintf(p, 4, "%%%02X", c);
    }
    if (out) *p = 0;
    return out;
}

/* what: "subject x", for where there is none. */
static ck_status ask(ck_registry *r, const char *method, const char *path, ck_view body, const char *what,
                     yyjson_val **root, ck_error *err) {
    const char *url = r->options->url;
    size_t n = strlen(url);
    while (n && url[n - 1] == '/') n--;
    ck_http_request *q = &r->request;
    q->done = false, q->tries = 0, q->again_us = 0;
    q->method = method, q->body = body;
    if (!(q->url = ck_arena_printf(r->a, "%.*s%s", (int)n, url, path))) return nomem(r, err);
    ck_status s;
    do s = ck_http_run(&r->http, q, 1, SLICE_MS, err);
    while (s == CK_AGAIN);
    CK_TRY(s);
    char said[320];
    ck_http_said(q, said, sizeof said);
    if (q->status == 401 || q->status == 403)
        return ck_fail(
            err, CK_REFUSED,
            "the schema registry at %s does not let us in: %s; the options schema_registry.user and .password, or "
            ".token, say who we are",
            url, said);
    if (q->status == 404) return ck_fail(err, CK_NOTFOUND, "the schema registry at %s has no %s: %s", url, what, said);
    if (q->status < 200 || q->status > 299) {
        ck_fail(err, CK_IO, "the schema registry at %s, asked for %s: %s", url, what, said);
        if (err) err->retriable = q->status == 0 || q->status >= 500 || q->status == 429;
        return CK_IO;
    }
    char *text = ck_arena_strndup(r->a, q->answer.n ? q->answer.p : "", q->answer.n);
    struct yyjson_doc *doc;
    if (!text) return nomem(r, err);
    s = ck_json_read(r->a, (ck_view){text, q->answer.n}, &doc, err);
    if (s != CK_OK)
        return s == CK_NOMEM
                   ? s
                   : ck_fail(err, CK_IO, "the schema registry at %s, asked for %s: the answer is no JSON", url, what);
    *root = yyjson_doc_get_root(doc);
    return CK_OK;
}

/* ---- schemas ---- */

typedef struct texts {
    ck_message_text list[REFERENCES_MAX + 1];
    uint32_t count;
} texts;

static ck_status gather(ck_registry *r, yyjson_val *root, const char *name, const char *what, unsigned depth, texts *t,
                        ck_error *err);

/* What a schema refers to comes first. */
static ck_status gather_references(ck_registry *r, yyjson_val *root, unsigned depth, texts *t, ck_error *err) {
    size_t i, n;
    yyjson_val *ref, *list = yyjson_obj_get(root, "references");
    yyjson_arr_foreach(list, i, n, ref) {
        const char *name = yyjson_get_str(yyjson_obj_get(ref, "name")),
                   *subject = yyjson_get_str(yyjson_obj_get(ref, "subject"));
        bool known = false;
        if (!name || !subject)
            return ck_fail(err, CK_IO, "the schema registry at %s gives a reference without a name", r->options->url);
        for (uint32_t k = 0; k < t->count; k++) known |= strcmp(t->list[k].name, name) == 0;
        if (known) continue;
        if (t->count == REFERENCES_MAX || depth == CK_MESSAGE_DEPTH_MAX)
            return ck_fail(err, CK_DATA, "a schema refers to more than %d others", REFERENCES_MAX);
        const char *part = escaped(r, subject);
        const char *path = part ? ck_arena_printf(r->a, "/subjects/%s/versions/%lld", part,
                                                  (long long)yyjson_get_sint(yyjson_obj_get(ref, "version")))
                                : NULL;
        const char *what = ck_arena_printf(r->a, "subject %s", subject);
        yyjson_val *other;
        if (!path || !what) return nomem(r, err);
        CK_TRY(ask(r, "GET", path, (ck_view){0}, what, &other, err));
        CK_TRY(gather(r, other, name, what, depth + 1, t, err));
    }
    return CK_OK;
}

static ck_status gather(ck_registry *r, yyjson_val *root, const char *name, const char *what, unsigned depth, texts *t,
                        ck_error *err) {
    const char *type = yyjson_get_str(yyjson_obj_get(root, "schemaType"));
    const char *wanted = r->options->format == CK_MESSAGE_AVRO ? "AVRO" : "PROTOBUF";
    yyjson_val *text = yyjson_obj_get(root, "schema");
    if (!yyjson_is_str(text))
        return ck_fail(err, CK_IO, "the schema registry at %s, asked for %s: the answer has no schema", r->options->url,
                       what);
    if (strcmp(type ? type : "AVRO", wanted) != 0)
        return ck_fail(err, CK_DATA, "%s of the schema registry is of type %.40s, and format is '%s'", what,
                       type ? type : "AVRO", r->options->format == CK_MESSAGE_AVRO ? "avro" : "protobuf");
    CK_TRY(gather_references(r, root, depth, t, err));
    t->list[t->count++] = (ck_message_text){name, {yyjson_get_str(text), yyjson_get_len(text)}};
    return CK_OK;
}

static ck_status parse(ck_registry *r, yyjson_val *root, const char *what, const ck_message_schema **out,
                       ck_error *err) {
    texts *t = CK_ARENA_NEW(r->a, texts);
    if (!t) return nomem(r, err);
    CK_TRY(gather(r, root, "", what, 0, t, err));
    ck_status s = ck_message_parse(r->a, r->options->format, t->list, t->count, out, err);
    return s == CK_DATA ? ck_error_prefix(err, "%s of the schema registry: ", what) : s;
}

static ck_status number_of(ck_registry *r, yyjson_val *root, uint32_t *id, ck_error *err) {
    yyjson_val *v = yyjson_obj_get(root, "id");
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > INT32_MAX)
        return ck_fail(err, CK_IO, "the schema registry at %s gives a schema without a number", r->options->url);
    *id = (uint32_t)yyjson_get_uint(v);
    return CK_OK;
}

ck_status ck_registry_latest(ck_registry *r, uint32_t *id, const ck_message_schema **out, ck_error *err) {
    const char *part = escaped(r, r->subject);
    const char *path = part ? ck_arena_printf(r->a, "/subjects/%s/versions/latest", part) : NULL;
    const char *what = ck_arena_printf(r->a, "subject %s", r->subject);
    yyjson_val *root;
    if (!path || !what) return nomem(r, err);
    CK_TRY(ask(r, "GET", path, (ck_view){0}, what, &root, err));
    CK_TRY(number_of(r, root, id, err));
    return parse(r, root, what, out, err);
}

ck_status ck_registry_by_id(ck_registry *r, uint32_t id, const ck_message_schema **out, ck_error *err) {
    const char *path = ck_arena_printf(r->a, "/schemas/ids/%u", id), *what = ck_arena_printf(r->a, "schema %u", id);
    yyjson_val *root;
    if (!path || !what) return nomem(r, err);
    CK_TRY(ask(r, "GET", path, (ck_view){0}, what, &root, err));
    return parse(r, root, what, out, err);
}

ck_status ck_registry_add(ck_registry *r, const ck_schema *table, uint32_t *id, const ck_message_schema **out,
                          ck_error *err) {
    const ck_registry_options *o = r->options;
    const char *part = escaped(r, r->subject), *text;
    const char *path = part ? ck_arena_printf(r->a, "/subjects/%s/versions", part) : NULL;
    const char *name = o->message ? o->message : r->subject;
    struct yyjson_mut_doc *doc;
    ck_view body;
    yyjson_val *root;
    if (!path) return nomem(r, err);
    CK_TRY(ck_message_schema_of(r->a, o->format, name, table, &text, err));
    CK_TRY(ck_json_new(r->a, &doc, err));
    yyjson_mut_val *o_root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, o_root);
    if (!yyjson_mut_obj_add_str(doc, o_root, "schema", text) ||
        !yyjson_mut_obj_add_str(doc, o_root, "schemaType", o->format == CK_MESSAGE_AVRO ? "AVRO" : "PROTOBUF"))
        return nomem(r, err);
    CK_TRY(ck_json_write(r->a, doc, &body, err));
    CK_TRY(ask(r, "POST", path, body, ck_arena_printf(r->a, "a new schema of subject %s", r->subject), &root, err));
    CK_TRY(number_of(r, root, id, err));
    ck_message_text own = {"", ck_view_of(text)};
    return ck_message_parse(r->a, o->format, &own, 1, out, err);
}

/* ---- tables ---- */

ck_status ck_registry_check_source(ck_proc *proc, const ck_registry_options *o, const ck_schema *table, ck_error *err) {
    ck_arena a;
    ck_registry r = {0};
    uint32_t id;
    const ck_message_schema *schema;
    const ck_message_reader *reader;
    ck_message_path path;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = ck_registry_open(&r, proc, o, &a, err);
    if (s == CK_OK) s = ck_registry_latest(&r, &id, &schema, err);
    if (s == CK_OK) {
        s = ck_message_find(schema, o->message, &path, err);
        if (s == CK_OK) s = ck_message_reader_new(&a, schema, &path, table, false, &reader, err);
        if (s == CK_DATA || s == CK_NOTFOUND) ck_error_prefix(err, "subject %s of the schema registry: ", r.subject);
    }
    ck_registry_close(&r);
    ck_arena_destroy(&a);
    return s;
}

static ck_status writer(ck_registry *r, const ck_schema *table, const ck_message_writer **out, ck_view *head,
                        ck_error *err) {
    const ck_registry_options *o = r->options;
    const ck_message_schema *schema;
    ck_message_path path;
    ck_bytes bytes;
    uint32_t id;
    ck_status s = ck_registry_latest(r, &id, &schema, err);
    if (s == CK_NOTFOUND) {
        ck_error_reset(err);
        s = ck_registry_add(r, table, &id, &schema, err);
    }
    if (s == CK_OK) s = ck_message_find(schema, o->message, &path, err);
    if (s == CK_OK) s = ck_message_writer_new(r->a, schema, &path, table, out, err);
    if (s == CK_DATA || s == CK_NOTFOUND) ck_error_prefix(err, "subject %s of the schema registry: ", r->subject);
    CK_TRY(s);
    ck_bytes_init(&bytes, r->a->mem, 1 << 16);
    s = ck_registry_head_write(o->format, id, &path, &bytes);
    char *copy = s == CK_OK ? ck_arena_strndup(r->a, bytes.p, bytes.n) : NULL;
    *head = (ck_view){copy, bytes.n};
    ck_bytes_destroy(&bytes);
    return copy ? CK_OK : nomem(r, err);
}

ck_status ck_registry_writer(ck_proc *proc, const ck_registry_options *o, const ck_schema *table, ck_arena *a,
                             const ck_message_writer **out, ck_view *head, ck_error *err) {
    ck_registry r = {0};
    ck_status s = ck_registry_open(&r, proc, o, a, err);
    if (s == CK_OK) s = writer(&r, table, out, head, err);
    ck_registry_close(&r);
    return s;
}

/* ---- what stands before a message ---- */

static bool zigzag(ck_cursor *c, int64_t *out) {
    uint64_t v = 0;
    uint8_t b = 128;
    for (unsigned shift = 0; b >= 128; shift += 7) {
        if (shift > 28 || !ck_cursor_u8(c, &b)) return false;
        v |= (uint64_t)(b & 127) << shift;
    }
    *out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
    return true;
}

const char *ck_registry_head_read(ck_message_format format, ck_view record, ck_registry_head *out) {
    ck_cursor c = ck_cursor_of(record.p, record.n);
    uint8_t magic;
    int64_t count = 0, index;
    *out = (ck_registry_head){0};
    if (!ck_cursor_u8(&c, &magic) || magic != 0 || !ck_cursor_u32be(&c, &out->id))
        return "the record does not begin with a zero byte and the number of a schema";
    if (format == CK_MESSAGE_PROTOBUF) {
        static const char *const no_path = "the record does not say which message of its schema it is";
        if (!zigzag(&c, &count) || count < 0 || count > CK_MESSAGE_DEPTH_MAX) return no_path;
        out->path.count = count ? (uint32_t)count : 1; /* none is the first */
        for (int64_t i = 0; i < count; i++) {
            if (!zigzag(&c, &index) || index < 0) return no_path;
            out->path.index[i] = (uint32_t)index;
        }
    }
    out->bytes = (uint32_t)(record.n - c.left);
    return NULL;
}

static ck_status put_zigzag(uint32_t v, ck_bytes *out) {
    uint64_t z = (uint64_t)v << 1;
    for (; z > 127; z >>= 7) CK_TRY(ck_bytes_char(out, (char)(z | 128)));
    return ck_bytes_char(out, (char)z);
}

ck_status ck_registry_head_write(ck_message_format format, uint32_t id, const ck_message_path *path, ck_bytes *out) {
    CK_TRY(ck_bytes_char(out, 0));
    CK_TRY(ck_bytes_u32be(out, id));
    if (format == CK_MESSAGE_AVRO) return CK_OK;
    if (path->count == 1 && path->index[0] == 0) return ck_bytes_char(out, 0);
    CK_TRY(put_zigzag(path->count, out));
    for (uint32_t i = 0; i < path->count; i++) CK_TRY(put_zigzag(path->index[i], out));
    return CK_OK;
}
