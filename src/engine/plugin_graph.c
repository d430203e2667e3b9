/* See plugin_job_int.h. In the graph of the script, what stands for operators of plugins is replaced by them. */
#include <yyjson.h>

#include "base/json.h"
#include "base/suggest.h"
#include "engine/plugin_job_int.h"
#include "graph/fingerprint.h"

typedef struct assembly {
    ck_plugin_builder *b;
    const ck_graph *sql;
    ck_graph_builder out;
    const ck_job_settings *settings;
} assembly;

/* The table an operator at the edge of the SQL is of. */
static const char *table_of(ck_plugin_builder *b, const ck_graph_op *op) {
    yyjson_doc *doc;
    if (ck_json_read(b->arena, ck_view_of(op->params), &doc, NULL) != CK_OK) return "";
    const char *t = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "table"));
    return t ? t : "";
}

static ck_plugin_stream *stream_named(ck_plugin_builder *b, const char *name, bool is_query) {
    for (ck_plugin_stream *s = b->streams; s; s = s->next)
        if ((s->kind == CK_STREAM_QUERY) == is_query && s->kind != CK_STREAM_KEYED && strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static bool stands_for(const ck_graph_op *op, const char *type) { return strcmp(op->type, type) == 0; }

/* Tables of connector '.stream' that the job's own SQL makes stand for nothing. */
static ck_status no_such_stream(ck_plugin_builder *b, const char *table) {
    return ck_fail(b->err, CK_INVALID,
                   "job %s: table \"%s\" is of connector '.stream', which is for what operators give and take; a table "
                   "of the job is of another",
                   b->job, table);
}

/* The stream that a source in the SQL stands for; NULL: none. */
static ck_plugin_stream *stream_given(ck_plugin_builder *b, const ck_graph_op *source) {
    const char *table = table_of(b, source);
    size_t n = sizeof CK_STREAM_STUB - 1;
    return strncmp(table, CK_STREAM_STUB, n) == 0 ? stream_named(b, table + n, false) : NULL;
}

/* What queries give: the inputs of the sinks that stand for operators. */
static ck_status find_queries(assembly *a) {
    for (uint32_t i = 0; i < a->sql->op_count; i++) {
        const ck_graph_op *op = &a->sql->ops[i];
        if (!stands_for(op, "sink.stream")) continue;
        ck_plugin_stream *s = stream_named(a->b, table_of(a->b, op), true);
        if (!s) return no_such_stream(a->b, table_of(a->b, op));
        CK_ASSERT(op->input_count == 1);
        s->from = op->inputs[0];
        s->schema = op->schema;
        s->bounded = op->inputs[0].bounded;
        s->placed = true;
    }
    return CK_OK;
}

static ck_status no_key_column(ck_plugin_builder *b, const ck_schema *schema, ck_view name) {
    ck_suggest near;
    ck_suggest_init(&near, name);
    for (uint32_t i = 0; i < schema->field_count; i++) ck_suggest_offer(&near, ck_view_of(schema->fields[i].name));
    int n = name.n > 100 ? 100 : (int)name.n;
    if (near.best.n)
        return ck_fail(b->err, CK_INVALID,
                       "job %s: clink_key_by has no column \"%.*s\" to go by; did you mean \"%.*s\"?", b->job, n,
                       name.p, (int)near.best.n, near.best.p);
    return ck_fail(b->err, CK_INVALID, "job %s: clink_key_by has no column \"%.*s\" to go by", b->job, n, name.p);
}

/* "device, port" as column numbers of the stream. */
static ck_status key_columns(assembly *a, const ck_plugin_stream *keyed, uint32_t **out, uint32_t *count) {
    ck_plugin_builder *b = a->b;
    const ck_schema *schema = keyed->of->schema;
    *out = ck_arena_array(b->arena, schema->field_count + 1u, sizeof **out);
    *count = 0;
    if (!*out) return ck_nomem(b->err, b->arena->mem, schema->field_count * sizeof **out);
    for (const char *p = keyed->text; *p;) {
        while (*p == ' ' || *p == ',') p++;
        size_t n = strcspn(p, ",");
        const char *next = p + n;
        while (n && p[n - 1] == ' ') n--;
        if (!n) break;
        int at = ck_schema_find(schema, (ck_view){p, n});
        if (at < 0 || *count > schema->field_count) return no_key_column(b, schema, (ck_view){p, n});
        if (*count < schema->field_count) (*out)[(*count)++] = (uint32_t)at;
        p = next;
    }
    return *count ? CK_OK : ck_fail(b->err, CK_INVALID, "job %s: clink_key_by names no columns", b->job);
}

/* Where the columns stand that the operator takes. Types are checked where it is planned. */
static ck_status wanted_columns(assembly *a, const ck_plugin_stream *p, uint32_t input, yyjson_mut_doc *doc,
                                yyjson_mut_val *lists) {
    ck_plugin_builder *b = a->b;
    const ck_plugin_stream *from = p->inputs[input]->kind == CK_STREAM_KEYED ? p->inputs[input]->of : p->inputs[input];
    const ck_schema *wants = p->op->inputs ? p->op->inputs[input] : from->schema;
    yyjson_mut_val *list = yyjson_mut_arr_add_arr(doc, lists);
    if (!list) return ck_nomem(b->err, b->arena->mem, 64);
    for (uint32_t i = 0; i < wants->field_count; i++) {
        const ck_field *w = &wants->fields[i];
        int at = ck_schema_find(from->schema, ck_view_of(w->name));
        if (at < 0)
            return ck_fail(b->err, CK_INVALID, "job %s: operator %s (%s) takes a column %s %s, and its input has none",
                           b->job, p->op->face->name, p->name, w->name, ck_type_name(b->arena, w->type));
        const ck_field *f = &from->schema->fields[at];
        if (!ck_type_eq(f->type, w->type))
            return ck_fail(b->err, CK_INVALID,
                           "job %s: operator %s (%s) takes column %s as %s, and it is %s; CAST(%s AS %s) converts it",
                           b->job, p->op->face->name, p->name, w->name, ck_type_name(b->arena, w->type),
                           ck_type_name(b->arena, f->type), w->name, ck_type_name(b->arena, w->type));
        if (!yyjson_mut_arr_add_uint(doc, list, (uint64_t)at)) return ck_nomem(b->err, b->arena->mem, 64);
    }
    return CK_OK;
}

static ck_status params_of(assembly *a, const ck_plugin_stream *p, uint32_t *const *keys, const uint32_t *key_counts,
                           const char **out) {
    ck_plugin_builder *b = a->b;
    struct yyjson_mut_doc *doc;
    ck_view text;
    CK_TRY(ck_json_new(b->arena, &doc, b->err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    if (!root) return ck_nomem(b->err, b->arena->mem, 64);
    yyjson_mut_doc_set_root(doc, root);
    bool good = yyjson_mut_obj_add_str(doc, root, "operator", p->op->face->name) &&
                yyjson_mut_obj_add_str(doc, root, "parameters", p->parameters);
    yyjson_mut_val *columns = yyjson_mut_obj_add_arr(doc, root, "columns");
    if (!good || !columns) return ck_nomem(b->err, b->arena->mem, 64);
    for (uint32_t i = 0; i < p->input_count; i++) CK_TRY(wanted_columns(a, p, i, doc, columns));
    if (keys) {
        yyjson_mut_val *lists = yyjson_mut_obj_add_arr(doc, root, "keys");
        for (uint32_t i = 0; lists && i < p->input_count; i++) {
            yyjson_mut_val *list = yyjson_mut_arr_add_arr(doc, lists);
            for (uint32_t k = 0; list && k < key_counts[i]; k++) yyjson_mut_arr_add_uint(doc, list, keys[i][k]);
        }
    }
    CK_TRY(ck_json_write(b->arena, doc, &text, b->err));
    *out = text.p;
    return CK_OK;
}

static ck_status add_op(assembly *a, const ck_graph_op *op) {
    ck_graph_op *added;
    ck_status s = ck_graph_add(&a->out, op, &added);
    if (s == CK_FULL)
        return ck_fail(a->b->err, CK_INVALID, "job %s has more than %d operators", a->b->job, CK_GRAPH_OPS_MAX);
    return s == CK_OK ? s : ck_nomem(a->b->err, a->b->arena->mem, sizeof *op);
}

static ck_status place(assembly *a, ck_plugin_stream *s);

/* Every input is keyed, or none is. */
static ck_status inputs_of(assembly *a, ck_plugin_stream *p, ck_graph_input *inputs, uint32_t **keys,
                           uint32_t *key_counts, bool *keyed) {
    ck_plugin_builder *b = a->b;
    *keyed = p->inputs[0]->kind == CK_STREAM_KEYED;
    p->bounded = true;
    for (uint32_t i = 0; i < p->input_count; i++) {
        ck_plugin_stream *in = p->inputs[i], *from = in->kind == CK_STREAM_KEYED ? in->of : in;
        if ((in->kind == CK_STREAM_KEYED) != *keyed)
            return ck_fail(b->err, CK_INVALID, "job %s: of the inputs of %s (%s) some are keyed and some are not",
                           b->job, p->op->face->name, p->name);
        CK_TRY(place(a, from));
        inputs[i] = from->from;
        if (from->kind != CK_STREAM_QUERY) inputs[i].kind = CK_EDGE_FORWARD;
        p->bounded &= from->bounded;
        if (!*keyed) continue;
        CK_TRY(key_columns(a, in, &keys[i], &key_counts[i]));
        inputs[i].kind = CK_EDGE_HASH;
        inputs[i].key = keys[i];
        inputs[i].key_count = key_counts[i];
    }
    return CK_OK;
}

/* What the state looks like, as for every operator. */
static ck_status fingerprint(assembly *a, ck_graph_op *op, const ck_plugin_stream *p) {
    ck_plugin_builder *b = a->b;
    const ck_op_desc *d;
    const ck_slot_schema *slots;
    uint32_t count;
    ck_op_input *inputs = ck_arena_array(b->arena, p->input_count + 1u, sizeof *inputs);
    if (!inputs) return ck_nomem(b->err, b->arena->mem, sizeof *inputs);
    for (uint32_t i = 0; i < p->input_count; i++) {
        const ck_plugin_stream *from = p->inputs[i]->kind == CK_STREAM_KEYED ? p->inputs[i]->of : p->inputs[i];
        inputs[i] = (ck_op_input){from->schema, CK_MODE_APPEND, from->bounded};
    }
    const ck_op_spec spec = {.proc = b->proc,
                             .uid = op->uid,
                             .type = op->type,
                             .params = op->params,
                             .inputs = inputs,
                             .input_count = p->input_count,
                             .schema = op->schema,
                             .settings = a->settings,
                             .parallelism = 1};
    CK_TRY(ck_registry_op(b->registry, op->type, &d, b->err));
    CK_TRY(d->slots(&spec, b->arena, &slots, &count, b->err));
    ck_status s = ck_slots_fingerprint(b->arena, slots, count, &op->state_fingerprint);
    return s == CK_OK ? s : ck_nomem(b->err, b->arena->mem, 64);
}

static ck_status place_process(assembly *a, ck_plugin_stream *p) {
    ck_plugin_builder *b = a->b;
    uint32_t n = p->input_count;
    ck_graph_input *inputs = ck_arena_array(b->arena, n + 1u, sizeof *inputs);
    uint32_t **keys = ck_arena_array(b->arena, n + 1u, sizeof *keys);
    uint32_t *key_counts = ck_arena_array(b->arena, n + 1u, sizeof *key_counts);
    bool keyed;
    if (!inputs || !keys || !key_counts) return ck_nomem(b->err, b->arena->mem, n * sizeof *inputs);
    CK_TRY(inputs_of(a, p, inputs, keys, key_counts, &keyed));
    ck_graph_op op = {.uid = p->name,
                      .type = "process",
                      .label = p->op->face->name,
                      .inputs = inputs,
                      .input_count = n,
                      .schema = p->op->output,
                      .min_parallelism = CK_PARALLELISM_DEFAULT,
                      .max_parallelism = CK_PARALLELISM_DEFAULT};
    CK_TRY(params_of(a, p, keyed ? keys : NULL, key_counts, &op.params));
    CK_TRY(fingerprint(a, &op, p));
    CK_TRY(add_op(a, &op));
    p->from = (ck_graph_input){.uid = p->name, .kind = CK_EDGE_FORWARD, .mode = CK_MODE_APPEND, .bounded = p->bounded};
    return CK_OK;
}

/* A side output has the schema of who takes it: an operator that hands its rows on. */
static ck_status place_side(assembly *a, ck_plugin_stream *s) {
    ck_plugin_builder *b = a->b;
    CK_TRY(place(a, s->of));
    ck_graph_input *in = CK_ARENA_NEW(b->arena, ck_graph_input);
    if (!in) return ck_nomem(b->err, b->arena->mem, sizeof *in);
    *in = s->of->from;
    in->port = s->port;
    s->bounded = s->of->bounded;
    ck_graph_op op = {.uid = s->name,
                      .type = "union",
                      .label = s->name,
                      .inputs = in,
                      .input_count = 1,
                      .schema = s->schema,
                      .min_parallelism = CK_PARALLELISM_DEFAULT,
                      .max_parallelism = CK_PARALLELISM_DEFAULT};
    CK_TRY(add_op(a, &op));
    s->from = (ck_graph_input){.uid = s->name, .kind = CK_EDGE_FORWARD, .mode = CK_MODE_APPEND, .bounded = s->bounded};
    return CK_OK;
}

static ck_status place(assembly *a, ck_plugin_stream *s) {
    if (s->placed) return CK_OK;
    CK_ASSERT(!s->placing); /* a stream is made of earlier ones */
    s->placing = true;
    CK_TRY(s->kind == CK_STREAM_SIDE ? place_side(a, s) : place_process(a, s));
    s->placed = true;
    return CK_OK;
}

/* An operator of the SQL, with what stands for others replaced. */
static ck_status place_sql(assembly *a, const ck_graph_op *op) {
    ck_graph_op copy = *op;
    copy.inputs = ck_arena_array(a->b->arena, op->input_count + 1u, sizeof *copy.inputs);
    if (!copy.inputs) return ck_nomem(a->b->err, a->b->arena->mem, sizeof *copy.inputs);
    for (uint32_t i = 0; i < op->input_count; i++) {
        copy.inputs[i] = op->inputs[i];
        const ck_graph_op *from = ck_graph_find(a->sql, op->inputs[i].uid);
        if (!stands_for(from, "source.stream")) continue;
        ck_plugin_stream *s = stream_given(a->b, from);
        if (!s) return no_such_stream(a->b, table_of(a->b, from));
        CK_ASSERT(s->placed);
        if (from->schema->field_count != s->schema->field_count)
            return ck_fail(a->b->err, CK_INVALID, "job %s: not all columns of \"%s\" are used", a->b->job, s->name);
        copy.inputs[i].uid = s->from.uid;
        copy.inputs[i].port = s->from.port;
    }
    return add_op(a, &copy);
}

ck_status ck_plugin_assemble(ck_plugin_builder *b, const ck_graph *sql, const ck_job_settings *settings,
                             const ck_graph **out) {
    assembly a = {.b = b, .sql = sql, .settings = settings};
    ck_graph *made;
    if (ck_graph_builder_init(&a.out, b->arena, a.sql->name) != CK_OK)
        return ck_nomem(b->err, b->arena->mem, sizeof *made);
    a.out.graph->key_groups = a.sql->key_groups;
    a.out.graph->timezone = a.sql->timezone;
    a.out.graph->settings = a.sql->settings;
    CK_TRY(find_queries(&a));
    for (ck_plugin_stream *s = b->streams; s; s = s->next)
        if (s->kind == CK_STREAM_PROCESS || s->kind == CK_STREAM_SIDE) CK_TRY(place(&a, s));
    for (uint32_t i = 0; i < a.sql->op_count; i++) {
        const ck_graph_op *op = &a.sql->ops[i];
        if (!stands_for(op, "sink.stream") && !stands_for(op, "source.stream")) CK_TRY(place_sql(&a, op));
    }
    CK_TRY(ck_graph_check(&a.out, &made, b->err));
    *out = made;
    return CK_OK;
}
