/* Reading a graph from JSON that may come from anywhere: every member is checked, and the message names the offending
 * one with its place ("ops[3].inputs[0].kind"). The result passes through ck_graph_check like any other graph. */
#include "graph/graph_int.h"

enum { JSON_BYTES_MAX = 64 << 20, SCRATCH_BYTES_MAX = 1 << 30 };

typedef struct reader {
    ck_arena *arena;   /* of the graph */
    ck_arena *scratch; /* of the parsed document */
    ck_error *err;
} reader;

static ck_status nomem(reader *r) { return ck_nomem(r->err, r->arena->mem, 4096); }

/* NULL when absent and not required; the wrong type is an error. */
static ck_status member(reader *r, yyjson_val *obj, const char *name, bool required, bool (*is)(yyjson_val *),
                        const char *what, yyjson_val **out) {
    yyjson_val *v = yyjson_obj_get(obj, name);
    *out = v;
    if (!v && required) return ck_fail(r->err, CK_INVALID, "member %s is missing", name);
    if (v && !is(v)) return ck_fail(r->err, CK_INVALID, "member %s is not %s", name, what);
    return CK_OK;
}

static bool is_str(yyjson_val *v) { return yyjson_is_str(v); }
static bool is_raw(yyjson_val *v) { return yyjson_is_raw(v); }
static bool is_bool(yyjson_val *v) { return yyjson_is_bool(v); }
static bool is_arr(yyjson_val *v) { return yyjson_is_arr(v); }
static bool is_obj(yyjson_val *v) { return yyjson_is_obj(v); }

static ck_status read_str(reader *r, yyjson_val *obj, const char *name, bool required, const char **out) {
    yyjson_val *v;
    CK_TRY(member(r, obj, name, required, is_str, "a string", &v));
    if (!v) return CK_OK;
    if (strlen(yyjson_get_str(v)) != yyjson_get_len(v))
        return ck_fail(r->err, CK_INVALID, "member %s has a NUL byte", name);
    *out = ck_arena_strdup(r->arena, yyjson_get_str(v));
    return *out ? CK_OK : nomem(r);
}

static bool parse_u32(yyjson_val *v, uint32_t *out) {
    const char *p = yyjson_get_raw(v);
    size_t n = yyjson_get_len(v);
    uint64_t x = 0;
    if (n == 0 || n > 10) return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') return false;
        x = x * 10 + (uint64_t)(p[i] - '0');
    }
    *out = (uint32_t)x;
    return x < UINT32_MAX;
}

static ck_status read_u32(reader *r, yyjson_val *obj, const char *name, bool required, uint32_t *out) {
    yyjson_val *v;
    CK_TRY(member(r, obj, name, required, is_raw, "a number", &v));
    if (!v || parse_u32(v, out)) return CK_OK;
    return ck_fail(r->err, CK_INVALID, "member %s is not an integer from 0 to 4294967294", name);
}

static ck_status read_bool(reader *r, yyjson_val *obj, const char *name, bool required, bool *out) {
    yyjson_val *v;
    CK_TRY(member(r, obj, name, required, is_bool, "true or false", &v));
    if (v) *out = yyjson_get_bool(v);
    return CK_OK;
}

static ck_status parse_hex(reader *r, yyjson_val *v, const char *name, uint64_t *out) {
    const char *p = yyjson_get_str(v);
    bool ok = yyjson_is_str(v) && yyjson_get_len(v) == 16;
    uint64_t x = 0;
    for (size_t i = 0; ok && i < 16; i++) {
        char c = p[i];
        unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
        ok = d < 16;
        x = x << 4 | d;
    }
    if (!ok) return ck_fail(r->err, CK_INVALID, "member %s is not 16 lower-case hex digits", name);
    *out = x;
    return CK_OK;
}

static ck_status read_hex(reader *r, yyjson_val *obj, const char *name, uint64_t *out) {
    yyjson_val *v;
    CK_TRY(member(r, obj, name, false, is_str, "a string", &v));
    return v ? parse_hex(r, v, name, out) : CK_OK;
}

static ck_status read_branches(reader *r, yyjson_val *obj, ck_graph_op *op) {
    yyjson_val *v, *one;
    size_t i, n;
    CK_TRY(member(r, obj, "branches", false, is_arr, "an array", &v));
    if (yyjson_arr_size(v) > CK_GRAPH_INPUTS_MAX)
        return ck_fail(r->err, CK_INVALID, "member branches has over %d of them", CK_GRAPH_INPUTS_MAX);
    uint64_t *branches = ck_arena_array(r->arena, yyjson_arr_size(v) + 1, sizeof *branches);
    if (!branches) return nomem(r);
    yyjson_arr_foreach(v, i, n, one) CK_TRY(parse_hex(r, one, "branches", &branches[i]));
    op->branches = branches;
    op->branch_count = (uint32_t)yyjson_arr_size(v);
    return CK_OK;
}

/* An object as its own minified text. */
static ck_status read_object_text(reader *r, yyjson_val *obj, const char *name, const char **out) {
    yyjson_val *v;
    yyjson_alc alc;
    ck_json_alc(r->arena, &alc);
    CK_TRY(member(r, obj, name, false, is_obj, "an object", &v));
    *out = v ? yyjson_val_write_opts(v, YYJSON_WRITE_NOFLAG, &alc, NULL, NULL) : "{}";
    return *out ? CK_OK : nomem(r);
}

static ck_status read_columns(reader *r, yyjson_val *obj, const char *name, const uint32_t **out, uint32_t *count) {
    yyjson_val *v;
    CK_TRY(member(r, obj, name, false, is_arr, "an array", &v));
    size_t n = yyjson_arr_size(v);
    if (n == 0) return CK_OK;
    if (n > CK_SQL_COLUMNS_MAX)
        return ck_fail(r->err, CK_INVALID, "member %s has %zu columns, the most is %d", name, n, CK_SQL_COLUMNS_MAX);
    uint32_t *columns = ck_arena_array(r->arena, n, sizeof *columns);
    if (!columns) return nomem(r);
    for (size_t i = 0; i < n; i++) {
        yyjson_val *c = yyjson_arr_get(v, i);
        if (!yyjson_is_raw(c) || !parse_u32(c, &columns[i]))
            return ck_fail(r->err, CK_INVALID, "member %s is not a list of column numbers", name);
    }
    *out = columns;
    *count = (uint32_t)n;
    return CK_OK;
}

/* ---- operators ---- */

static ck_status read_field(reader *r, yyjson_val *v, ck_field *f) {
    const char *type = NULL;
    f->nullable = true;
    if (!yyjson_is_obj(v)) return ck_fail(r->err, CK_INVALID, "is not an object");
    CK_TRY(read_str(r, v, "name", true, &f->name));
    CK_TRY(read_str(r, v, "type", true, &type));
    CK_TRY(read_bool(r, v, "nullable", false, &f->nullable));
    return ck_type_parse(r->arena, ck_view_of(type), &f->type, r->err);
}

static ck_status read_schema(reader *r, yyjson_val *obj, const ck_schema **out) {
    yyjson_val *v;
    CK_TRY(member(r, obj, "schema", true, is_arr, "an array", &v));
    size_t n = yyjson_arr_size(v);
    if (n > CK_SQL_COLUMNS_MAX)
        return ck_fail(r->err, CK_INVALID, "schema has %zu columns, the most is %d", n, CK_SQL_COLUMNS_MAX);
    ck_schema *s = CK_ARENA_NEW(r->arena, ck_schema);
    ck_field *fields = ck_arena_array(r->arena, n, sizeof *fields);
    if (!s || !fields) return nomem(r);
    *s = (ck_schema){fields, (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        ck_status st = read_field(r, yyjson_arr_get(v, i), &fields[i]);
        if (st != CK_OK) {
            (void)ck_error_prefix(r->err, "schema[%zu]: ", i);
            return st;
        }
    }
    *out = s;
    return CK_OK;
}

static ck_status read_input(reader *r, yyjson_val *v, ck_graph_input *in) {
    const char *kind = NULL, *mode = "append";
    if (!yyjson_is_obj(v)) return ck_fail(r->err, CK_INVALID, "is not an object");
    CK_TRY(read_str(r, v, "uid", true, &in->uid));
    CK_TRY(read_u32(r, v, "port", false, &in->port));
    CK_TRY(read_str(r, v, "kind", true, &kind));
    CK_TRY(read_str(r, v, "mode", false, &mode));
    CK_TRY(read_bool(r, v, "bounded", false, &in->bounded));
    CK_TRY(read_columns(r, v, "key", &in->key, &in->key_count));
    int k = ck_edge_kind_parse(ck_view_of(kind)), m = ck_edge_mode_parse(ck_view_of(mode));
    if (k < 0) return ck_fail(r->err, CK_INVALID, "kind \"%.40s\" is not an edge kind", kind);
    if (m < 0) return ck_fail(r->err, CK_INVALID, "mode \"%.40s\" is not an edge mode", mode);
    in->kind = (ck_edge_kind)k;
    in->mode = (ck_edge_mode)m;
    return CK_OK;
}

static ck_status read_inputs(reader *r, yyjson_val *obj, ck_graph_op *op) {
    yyjson_val *v;
    CK_TRY(member(r, obj, "inputs", false, is_arr, "an array", &v));
    size_t n = yyjson_arr_size(v);
    if (n == 0) return CK_OK;
    if (n > CK_GRAPH_INPUTS_MAX)
        return ck_fail(r->err, CK_INVALID, "has %zu inputs, the most is %d", n, CK_GRAPH_INPUTS_MAX);
    op->inputs = ck_arena_array(r->arena, n, sizeof *op->inputs);
    if (!op->inputs) return nomem(r);
    op->input_count = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        ck_status s = read_input(r, yyjson_arr_get(v, i), &op->inputs[i]);
        if (s != CK_OK) {
            (void)ck_error_prefix(r->err, "inputs[%zu]: ", i);
            return s;
        }
    }
    return CK_OK;
}

static ck_status read_op(reader *r, yyjson_val *v, ck_graph_op *op) {
    *op = (ck_graph_op){.min_parallelism = CK_PARALLELISM_DEFAULT, .max_parallelism = CK_PARALLELISM_DEFAULT};
    if (!yyjson_is_obj(v)) return ck_fail(r->err, CK_INVALID, "is not an object");
    CK_TRY(read_str(r, v, "uid", true, &op->uid));
    CK_TRY(read_str(r, v, "type", true, &op->type));
    CK_TRY(read_str(r, v, "label", false, &op->label));
    CK_TRY(read_object_text(r, v, "params", &op->params));
    CK_TRY(read_inputs(r, v, op));
    CK_TRY(read_columns(r, v, "key", &op->key, &op->key_count));
    CK_TRY(read_u32(r, v, "parallelism", false, &op->parallelism));
    CK_TRY(read_u32(r, v, "min_parallelism", false, &op->min_parallelism));
    CK_TRY(read_u32(r, v, "max_parallelism", false, &op->max_parallelism));
    CK_TRY(read_bool(r, v, "final", false, &op->final));
    CK_TRY(read_schema(r, v, &op->schema));
    CK_TRY(read_hex(r, v, "state_fingerprint", &op->state_fingerprint));
    CK_TRY(read_hex(r, v, "semantic_fingerprint", &op->semantic_fingerprint));
    return read_branches(r, v, op);
}

static ck_status read_graph(reader *r, yyjson_val *root, ck_graph **out) {
    ck_graph_builder b;
    const char *name = "";
    yyjson_val *ops;
    if (!yyjson_is_obj(root)) return ck_fail(r->err, CK_INVALID, "it is not an object");
    CK_TRY(read_str(r, root, "name", false, &name));
    if (ck_graph_builder_init(&b, r->arena, name) != CK_OK) return nomem(r);
    CK_TRY(read_u32(r, root, "key_groups", false, &b.graph->key_groups));
    CK_TRY(read_str(r, root, "timezone", false, &b.graph->timezone));
    CK_TRY(read_object_text(r, root, "settings", &b.graph->settings));
    CK_TRY(member(r, root, "ops", true, is_arr, "an array", &ops));
    if (yyjson_arr_size(ops) > CK_GRAPH_OPS_MAX)
        return ck_fail(r->err, CK_INVALID, "it has %zu operators, the most is %d", yyjson_arr_size(ops),
                       CK_GRAPH_OPS_MAX);
    size_t i, max;
    yyjson_val *v;
    yyjson_arr_foreach(ops, i, max, v) {
        ck_graph_op op;
        ck_status s = read_op(r, v, &op);
        if (s != CK_OK) {
            (void)ck_error_prefix(r->err, "ops[%zu]: ", i);
            return s;
        }
        if (ck_graph_add(&b, &op, NULL) != CK_OK) return nomem(r);
    }
    return ck_graph_check(&b, out, r->err);
}

ck_status ck_graph_decode(ck_arena *a, ck_view json, ck_graph **out, ck_error *err) {
    if (json.n > JSON_BYTES_MAX)
        return ck_fail(err, CK_INVALID, "job graph: %zu bytes, the most is %d", json.n, JSON_BYTES_MAX);
    ck_arena scratch;
    ck_arena_init(&scratch, a->mem, SCRATCH_BYTES_MAX);
    yyjson_read_err e = {0};
    ck_error local = CK_ERROR_INIT;
    reader r = {a, &scratch, err ? err : &local};
    yyjson_doc *doc = ck_graph_json_read(&scratch, json, &e);
    ck_status s;
    if (doc)
        s = read_graph(&r, yyjson_doc_get_root(doc), out);
    else if (e.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        s = nomem(&r);
    else
        s = ck_fail(r.err, CK_INVALID, "it is not JSON: %s at byte %zu", e.msg ? e.msg : "empty", e.pos);
    ck_arena_destroy(&scratch);
    if (s != CK_OK && s != CK_NOMEM && strncmp(r.err->msg, "job graph", 9) != 0)
        (void)ck_error_prefix(r.err, "job graph: ");
    return s;
}
