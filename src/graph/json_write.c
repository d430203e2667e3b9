/* The graph as JSON (docs/formats.md, "Job graph"), through yyjson. One writer makes the public text and, with some
 * members left out, the canonical texts that are hashed.
 *
 *   {"name", "key_groups", "timezone", "settings":{..},
 *    "ops":[{"uid", "type", "label"?, "params":{..}, "inputs":[{"uid", "port", "kind", "key"?, "mode", "bounded"}],
 *            "key":[..], "parallelism", "min_parallelism"?, "max_parallelism"?, "final", "schema":[{"name", "type",
 *            "nullable"}], "state_fingerprint":"16 hex", "semantic_fingerprint":"16 hex",
 *            "branches"?:["16 hex"]}]}
 *
 * Fingerprints are hex strings because JSON numbers end at 2^53 for many readers. Numbers inside params and settings
 * keep their text. */
#include "graph/graph_int.h"

enum { SCRATCH_BYTES_MAX = 1 << 30 };

yyjson_doc *ck_graph_json_read(ck_arena *a, ck_view text, yyjson_read_err *err) {
    yyjson_alc alc;
    ck_json_alc(a, &alc);
    return yyjson_read_opts((char *)(uintptr_t)text.p, text.n, YYJSON_READ_NUMBER_AS_RAW, &alc, err); /* copies */
}

static const char *const edge_kind_names[] = {"forward", "hash", "rebalance", "broadcast", "gather"};
static const char *const edge_mode_names[] = {"append", "retract", "upsert"};

static int name_index(const char *const *names, size_t count, ck_view name) {
    for (size_t i = 0; i < count; i++)
        if (ck_view_is(name, names[i])) return (int)i;
    return -1;
}
const char *ck_edge_kind_name(ck_edge_kind k) {
    return (unsigned)k < CK_ARRAY_COUNT(edge_kind_names) ? edge_kind_names[k] : "?";
}
const char *ck_edge_mode_name(ck_edge_mode m) {
    return (unsigned)m < CK_ARRAY_COUNT(edge_mode_names) ? edge_mode_names[m] : "?";
}
int ck_edge_kind_parse(ck_view name) { return name_index(edge_kind_names, CK_ARRAY_COUNT(edge_kind_names), name); }
int ck_edge_mode_parse(ck_view name) { return name_index(edge_mode_names, CK_ARRAY_COUNT(edge_mode_names), name); }

ck_status ck_graph_check_object(ck_arena *a, const char *text, const char *uid, const char *what, ck_error *err) {
    ck_arena_mark m = ck_arena_mark_now(a);
    yyjson_read_err e = {0};
    yyjson_doc *doc = ck_graph_json_read(a, ck_view_of(text), &e);
    bool object = doc && yyjson_is_obj(yyjson_doc_get_root(doc));
    ck_arena_reset_to(a, m);
    if (object) return CK_OK;
    if (e.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return ck_nomem(err, a->mem, strlen(text));
    return ck_fail(err, CK_INVALID, "%s: %s is not a JSON object%s%s", uid, what, e.msg ? ": " : "",
                   e.msg ? e.msg : "");
}

/* ---- writing ---- */

typedef enum form { FORM_PUBLIC, FORM_CANONICAL, FORM_SEMANTIC } form;

typedef struct writer {
    yyjson_mut_doc *doc;
    ck_arena *scratch;
    form form;
    bool failed; /* out of memory somewhere; checked once at the end */
} writer;

static void put(writer *w, yyjson_mut_val *obj, const char *key, yyjson_mut_val *v) {
    if (!v || !yyjson_mut_obj_add_val(w->doc, obj, key, v)) w->failed = true;
}
static void put_str(writer *w, yyjson_mut_val *obj, const char *key, const char *z) {
    put(w, obj, key, yyjson_mut_str(w->doc, z));
}
static void put_u32(writer *w, yyjson_mut_val *obj, const char *key, uint32_t v) {
    put(w, obj, key, yyjson_mut_uint(w->doc, v));
}
static void put_hex(writer *w, yyjson_mut_val *obj, const char *key, uint64_t v) {
    put_str(w, obj, key, ck_arena_printf(w->scratch, "%016llx", (unsigned long long)v));
}

static void put_object_text(writer *w, yyjson_mut_val *obj, const char *key, const char *text) {
    yyjson_doc *doc = ck_graph_json_read(w->scratch, ck_view_of(text), NULL);
    put(w, obj, key, doc ? yyjson_val_mut_copy(w->doc, yyjson_doc_get_root(doc)) : NULL);
}

enum { DEPTH_MAX = 4096 }; /* what is deeper keeps its positions */

/* "at":[line, column] of expressions, wherever they are. */
static void drop_positions(yyjson_mut_val *v, uint32_t depth) {
    yyjson_mut_val *key, *item;
    size_t i, n;
    if (depth == DEPTH_MAX) return;
    if (yyjson_mut_is_obj(v)) {
        yyjson_mut_val *at = yyjson_mut_obj_get(v, "at");
        if (yyjson_mut_is_arr(at) && yyjson_mut_arr_size(at) == 2) (void)yyjson_mut_obj_remove_key(v, "at");
        yyjson_mut_obj_foreach(v, i, n, key, item) drop_positions(item, depth + 1);
    } else if (yyjson_mut_is_arr(v)) {
        yyjson_mut_arr_foreach(v, i, n, item) drop_positions(item, depth + 1);
    }
}

/* A job is the same when a line is added to its script; how long state is kept, and how fast a source is read, may
 * change between two runs. */
static void put_params(writer *w, yyjson_mut_val *obj, const char *text) {
    static const char *const of_ttl[] = {"ttl_us", "left_ttl_us", "right_ttl_us", "ttl_time"};
    static const char *const of_run[] = {"state_ttl", "rate_limit"};
    put_object_text(w, obj, "params", text);
    yyjson_mut_val *params = yyjson_mut_obj_get(obj, "params");
    if (w->form == FORM_PUBLIC) return;
    for (uint32_t i = 0; i < CK_ARRAY_COUNT(of_ttl); i++) (void)yyjson_mut_obj_remove_key(params, of_ttl[i]);
    yyjson_mut_val *options = yyjson_mut_obj_get(params, "options");
    for (uint32_t i = 0; i < CK_ARRAY_COUNT(of_run); i++) (void)yyjson_mut_obj_remove_key(options, of_run[i]);
    drop_positions(params, 0);
}

static void put_columns(writer *w, yyjson_mut_val *obj, const char *key, const uint32_t *columns, uint32_t count) {
    yyjson_mut_val *arr = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; i < count && arr; i++)
        if (!yyjson_mut_arr_add_uint(w->doc, arr, columns[i])) w->failed = true;
    put(w, obj, key, arr);
}

static yyjson_mut_val *append_object(writer *w, yyjson_mut_val *arr) {
    yyjson_mut_val *o = yyjson_mut_obj(w->doc);
    if (!o || !arr || !yyjson_mut_arr_append(arr, o)) w->failed = true;
    return o;
}

static void put_schema(writer *w, yyjson_mut_val *obj, const ck_schema *s) {
    yyjson_mut_val *arr = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; i < s->field_count && !w->failed; i++) {
        ck_bytes text;
        ck_bytes_init(&text, w->scratch->mem, 1 << 20);
        yyjson_mut_val *o = append_object(w, arr);
        put_str(w, o, "name", s->fields[i].name);
        if (ck_type_print(s->fields[i].type, &text) != CK_OK) w->failed = true;
        put(w, o, "type", yyjson_mut_strncpy(w->doc, text.p, text.n));
        put(w, o, "nullable", yyjson_mut_bool(w->doc, s->fields[i].nullable));
        ck_bytes_destroy(&text);
    }
    put(w, obj, "schema", arr);
}

static void put_inputs(writer *w, yyjson_mut_val *obj, const ck_graph_op *op) {
    yyjson_mut_val *arr = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; i < op->input_count && !w->failed; i++) {
        const ck_graph_input *in = &op->inputs[i];
        yyjson_mut_val *o = append_object(w, arr);
        if (w->form != FORM_SEMANTIC) put_str(w, o, "uid", in->uid);
        put_u32(w, o, "port", in->port);
        if (w->form != FORM_SEMANTIC) put_str(w, o, "kind", ck_edge_kind_name(in->kind));
        if (in->key_count) put_columns(w, o, "key", in->key, in->key_count);
        put_str(w, o, "mode", ck_edge_mode_name(in->mode));
        if (w->form != FORM_SEMANTIC) put(w, o, "bounded", yyjson_mut_bool(w->doc, in->bounded));
    }
    put(w, obj, "inputs", arr);
}

static void put_branches(writer *w, yyjson_mut_val *obj, const ck_graph_op *op) {
    yyjson_mut_val *arr = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; i < op->branch_count && arr; i++) {
        char *hex = ck_arena_printf(w->scratch, "%016llx", (unsigned long long)op->branches[i]);
        if (!hex || !yyjson_mut_arr_add_str(w->doc, arr, hex)) w->failed = true;
    }
    put(w, obj, "branches", arr);
}

static void put_op(writer *w, yyjson_mut_val *o, const ck_graph_op *op) {
    if (w->form != FORM_SEMANTIC) put_str(w, o, "uid", op->uid);
    put_str(w, o, "type", op->type);
    if (w->form == FORM_PUBLIC && op->label) put_str(w, o, "label", op->label);
    put_params(w, o, op->params);
    put_inputs(w, o, op);
    put_columns(w, o, "key", op->key, op->key_count);
    if (w->form == FORM_PUBLIC) {
        put_u32(w, o, "parallelism", op->parallelism);
        if (op->min_parallelism != CK_PARALLELISM_DEFAULT) put_u32(w, o, "min_parallelism", op->min_parallelism);
        if (op->max_parallelism != CK_PARALLELISM_DEFAULT) put_u32(w, o, "max_parallelism", op->max_parallelism);
    }
    put(w, o, "final", yyjson_mut_bool(w->doc, op->final));
    put_schema(w, o, op->schema);
    if (w->form == FORM_PUBLIC) {
        put_hex(w, o, "state_fingerprint", op->state_fingerprint);
        put_hex(w, o, "semantic_fingerprint", op->semantic_fingerprint);
        if (op->branch_count) put_branches(w, o, op);
    }
}

static void put_graph(writer *w, yyjson_mut_val *root, const ck_graph *g) {
    if (w->form == FORM_PUBLIC) put_str(w, root, "name", g->name);
    put_u32(w, root, "key_groups", g->key_groups);
    put_str(w, root, "timezone", g->timezone);
    put_object_text(w, root, "settings", g->settings);
    yyjson_mut_val *ops = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; i < g->op_count && !w->failed; i++) put_op(w, append_object(w, ops), &g->ops[i]);
    put(w, root, "ops", ops);
}

/* The whole graph, or (FORM_SEMANTIC) one operator of it. The text lives in scratch. */
static ck_status write_text(ck_arena *scratch, form f, const ck_graph *g, const ck_graph_op *op, ck_view *out) {
    yyjson_alc alc;
    ck_json_alc(scratch, &alc);
    writer w = {.doc = yyjson_mut_doc_new(&alc), .scratch = scratch, .form = f};
    if (!w.doc) return CK_NOMEM;
    yyjson_mut_val *root = yyjson_mut_obj(w.doc);
    if (!root) return CK_NOMEM;
    yyjson_mut_doc_set_root(w.doc, root);
    if (f == FORM_SEMANTIC) {
        put_op(&w, root, op);
        put_str(&w, root, "timezone", g->timezone);
        put_object_text(&w, root, "settings", g->settings);
    } else {
        put_graph(&w, root, g);
    }
    if (w.failed) return CK_NOMEM;
    yyjson_write_err e = {0};
    out->p = yyjson_mut_write_opts(w.doc, YYJSON_WRITE_NOFLAG, &alc, &out->n, &e);
    if (out->p) return CK_OK;
    return e.code == YYJSON_WRITE_ERROR_INVALID_STRING ? CK_INVALID : CK_NOMEM; /* a name that is not UTF-8 */
}

ck_status ck_graph_encode(const ck_graph *g, ck_bytes *out) {
    ck_arena scratch;
    ck_arena_init(&scratch, out->mem, SCRATCH_BYTES_MAX);
    ck_view text;
    ck_status s = write_text(&scratch, FORM_PUBLIC, g, NULL, &text);
    if (s == CK_OK) s = ck_bytes_view(out, text);
    ck_arena_destroy(&scratch);
    return s;
}

static ck_status hash_text(ck_arena *a, form f, const ck_graph *g, const ck_graph_op *op, uint64_t *out) {
    ck_arena_mark m = ck_arena_mark_now(a);
    ck_view text;
    ck_status s = write_text(a, f, g, op, &text);
    if (s == CK_OK) *out = ck_fnv1a(text.p, text.n);
    ck_arena_reset_to(a, m);
    return s;
}
ck_status ck_graph_canonical_hash(ck_arena *a, const ck_graph *g, uint64_t *out) {
    return hash_text(a, FORM_CANONICAL, g, NULL, out);
}
ck_status ck_graph_semantic_hash(ck_arena *a, const ck_graph *g, const ck_graph_op *op, uint64_t *out) {
    return hash_text(a, FORM_SEMANTIC, g, op, out);
}
