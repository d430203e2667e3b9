/* See plugin_job.h. The builder only notes what it is asked for. Then all SQL of the job is compiled as one script, in
 * which tables of connector '.stream' stand where operators of plugins are: a sink for what a query gives to one, a
 * source for what one gives. In the graph that comes of it they are replaced by the operators. */
#include "engine/plugin_job.h"

#include <yyjson.h>

#include "base/json.h"
#include "expr/library.h"
#include "graph/fingerprint.h"

enum { SCRIPT_BYTES_MAX = 16 << 20, STREAMS_MAX = 1000 };

/* In front of the name of a table that stands for what an operator gives. */
#define STUB "operator:"

typedef enum stream_kind { STREAM_QUERY, STREAM_PROCESS, STREAM_SIDE, STREAM_KEYED } stream_kind;

typedef struct stream stream;
struct stream {
    clink_stream face; /* first */
    struct builder *b;
    stream_kind kind;
    stream *next;
    const char *text; /* QUERY: SQL; KEYED: columns */
    const char *name; /* QUERY: of the table that stands for it; PROCESS: uid; SIDE: uid and port */
    stream *of;       /* KEYED, SIDE */
    uint32_t port;    /* SIDE */
    const char *operator_name, *parameters;
    stream **inputs;
    uint32_t input_count;
    /* found when the graph is put together */
    const ck_plugin_operator *op;
    const ck_schema *schema;
    ck_graph_input from; /* as an input of whoever takes it; kind and key are the taker's */
    bool bounded, placed, placing;
};

typedef struct insert {
    stream *from;
    const char *table;
    struct insert *next;
} insert;

typedef struct builder {
    clink_job_builder face; /* first */
    ck_arena *arena;
    ck_proc *proc;
    const ck_registry *registry;
    ck_error *err;
    ck_status status; /* of the first thing that was wrong */
    const char *job;
    ck_bytes script;
    stream *streams, **last_stream;
    insert *inserts, **last_insert;
    uint32_t stream_count, query_count;
} builder;

static void wrong(builder *b, ck_status s) {
    if (b->status == CK_OK) b->status = s;
}

#define WRONG(b, ...)                                                                                                  \
    do {                                                                                                               \
        if ((b)->status == CK_OK) (b)->status = ck_fail((b)->err, CK_INVALID, __VA_ARGS__);                            \
    } while (0)

/* A stream is given out whatever was wrong, so that nobody need look. */
static stream *new_stream(builder *b, stream_kind kind) {
    stream *s = b->stream_count < STREAMS_MAX ? CK_ARENA_NEW(b->arena, stream) : NULL;
    if (!s) {
        if (b->stream_count >= STREAMS_MAX)
            WRONG(b, "job %s has more than %d streams", b->job, STREAMS_MAX);
        else
            wrong(b, ck_nomem(b->err, b->arena->mem, sizeof *s));
        return b->streams; /* the first: made before anything can go wrong */
    }
    s->face = (clink_stream){&b->face, s};
    s->b = b;
    s->kind = kind;
    *b->last_stream = s;
    b->last_stream = &s->next;
    b->stream_count++;
    return s;
}

static const char *kept(builder *b, const char *text) {
    const char *copy = ck_arena_strdup(b->arena, text ? text : "");
    if (!copy) wrong(b, ck_nomem(b->err, b->arena->mem, 0));
    return copy ? copy : "";
}

static builder *of_face(clink_job_builder *face) { return face->inside; }
static stream *of_stream(clink_stream *face) { return face->inside; }

static void define(clink_job_builder *face, const char *sql) {
    builder *b = of_face(face);
    ck_status s = ck_bytes_str(&b->script, sql ? sql : "");
    if (s == CK_OK) s = ck_bytes_str(&b->script, ";\n");
    if (s != CK_OK) wrong(b, ck_fail(b->err, s, "job %s: its SQL is over %d MiB", b->job, SCRIPT_BYTES_MAX >> 20));
}

/* What stands in front of the last semicolon. */
static const char *one_query(builder *b, const char *sql) {
    size_t n = sql ? strlen(sql) : 0;
    while (n && strchr(" \t\r\n;", sql[n - 1])) n--;
    const char *copy = ck_arena_strndup(b->arena, sql ? sql : "", n);
    if (!copy) wrong(b, ck_nomem(b->err, b->arena->mem, n));
    return copy ? copy : "";
}

static clink_stream *query(clink_job_builder *face, const char *sql) {
    builder *b = of_face(face);
    stream *s = new_stream(b, STREAM_QUERY);
    s->text = one_query(b, sql);
    s->name = ck_arena_printf(b->arena, "query:%u", ++b->query_count);
    if (!s->name) wrong(b, ck_nomem(b->err, b->arena->mem, 16));
    return &s->face;
}

static clink_stream *key_by(clink_stream *from, const char *columns) {
    builder *b = of_stream(from)->b;
    stream *s = new_stream(b, STREAM_KEYED);
    if (of_stream(from)->kind == STREAM_KEYED) WRONG(b, "job %s: clink_key_by of what is keyed already", b->job);
    s->of = of_stream(from);
    s->text = kept(b, columns);
    return &s->face;
}

static clink_stream *process(clink_stream *const *inputs, uint32_t count, const char *uid, const char *operator_name,
                             const char *parameters) {
    builder *b = of_stream(inputs[0])->b;
    stream *s = new_stream(b, STREAM_PROCESS);
    s->name = kept(b, uid);
    s->operator_name = kept(b, operator_name);
    s->parameters = kept(b, parameters);
    s->inputs = ck_arena_array(b->arena, count + 1u, sizeof(stream *));
    if (!s->inputs) {
        wrong(b, ck_nomem(b->err, b->arena->mem, count * sizeof(stream *)));
        return &s->face;
    }
    for (uint32_t i = 0; i < count; i++) s->inputs[i] = of_stream(inputs[i]);
    s->input_count = count;
    if (!*s->name || strpbrk(s->name, "\"\n")) WRONG(b, "job %s: operator %s has no uid", b->job, s->operator_name);
    for (stream *o = b->streams; o && o != s; o = o->next)
        if (o->kind == STREAM_PROCESS && strcmp(o->name, s->name) == 0)
            WRONG(b, "job %s: two operators have the uid \"%s\"", b->job, s->name);
    s->op = ck_library_operator(b->proc->library, s->operator_name);
    if (!s->op)
        WRONG(b, "job %s: there is no operator \"%s\" in the plugins that are loaded", b->job, s->operator_name);
    else if (s->op->input_count != count)
        WRONG(b, "job %s: operator %s (%s) takes %u input%s, not %u", b->job, s->operator_name, s->name,
              s->op->input_count, s->op->input_count == 1 ? "" : "s", count);
    if (s->op) s->schema = s->op->output;
    bool keyed = count && s->inputs[0]->kind == STREAM_KEYED;
    if (s->op && !keyed && (s->op->face->state_count || s->op->timers))
        WRONG(b, "job %s: operator %s (%s) has state or timers, which are of keys: clink_key_by goes in front of it",
              b->job, s->operator_name, s->name);
    return &s->face;
}

static clink_stream *side(clink_stream *face, uint32_t port) {
    stream *of = of_stream(face), *s;
    builder *b = of->b;
    bool fine = of->kind == STREAM_PROCESS && of->op && port > 0 && port <= of->op->face->side_count;
    if (!fine) WRONG(b, "job %s: there is no side output %u", b->job, port);
    s = new_stream(b, STREAM_SIDE);
    s->of = of;
    s->port = port;
    s->name = ck_arena_printf(b->arena, "%s:%u", of->name ? of->name : "", port);
    if (!s->name) wrong(b, ck_nomem(b->err, b->arena->mem, 16));
    if (fine) s->schema = &of->op->sides[port - 1];
    return &s->face;
}

static void insert_into(clink_stream *face, const char *table) {
    stream *s = of_stream(face);
    builder *b = s->b;
    insert *i = CK_ARENA_NEW(b->arena, insert);
    if (s->kind == STREAM_KEYED) s = s->of;
    if (!i) {
        wrong(b, ck_nomem(b->err, b->arena->mem, sizeof *i));
        return;
    }
    *i = (insert){s, kept(b, table), NULL};
    *b->last_insert = i;
    b->last_insert = &i->next;
}

static const clink_engine_table engine = {.struct_bytes = sizeof engine,
                                          .abi = CLINK_PLUGIN_ABI,
                                          .query = query,
                                          .define = define,
                                          .key_by = key_by,
                                          .process = process,
                                          .side = side,
                                          .insert = insert_into};

/* ---- the script ---- */

static bool is_taken(const builder *b, const stream *s) {
    for (const stream *p = b->streams; p; p = p->next)
        for (uint32_t i = 0; i < p->input_count; i++)
            if (p->inputs[i] == s || (p->inputs[i]->kind == STREAM_KEYED && p->inputs[i]->of == s)) return true;
    return false;
}

/* A table with the columns of what an operator gives. */
static ck_status stub_table(builder *b, const stream *s) {
    CK_TRY(ck_bytes_printf(&b->script, "CREATE TABLE \"" STUB "%s\" (", s->name));
    for (uint32_t i = 0; i < s->schema->field_count; i++) {
        const ck_field *f = &s->schema->fields[i];
        const char *type = ck_type_name(b->arena, f->type);
        CK_TRY(
            ck_bytes_printf(&b->script, "%s\"%s\" %s%s", i ? ", " : "", f->name, type, f->nullable ? "" : " NOT NULL"));
    }
    return ck_bytes_str(&b->script, ") WITH (connector = '.stream');\n");
}

static ck_status write_script(builder *b) {
    for (const stream *s = b->streams; s; s = s->next)
        if (s->kind == STREAM_QUERY && is_taken(b, s))
            CK_TRY(ck_bytes_printf(&b->script, "CREATE TABLE \"%s\" WITH (connector = '.stream') AS %s;\n", s->name,
                                   s->text));
    for (const stream *s = b->streams; s; s = s->next) {
        bool inserted = false;
        for (const insert *i = b->inserts; i; i = i->next) inserted |= i->from == s;
        if (inserted && s->kind != STREAM_QUERY) CK_TRY(stub_table(b, s));
    }
    for (const insert *i = b->inserts; i; i = i->next) {
        if (i->from->kind == STREAM_QUERY)
            CK_TRY(ck_bytes_printf(&b->script, "INSERT INTO %s %s;\n", i->table, i->from->text));
        else
            CK_TRY(
                ck_bytes_printf(&b->script, "INSERT INTO %s SELECT * FROM \"" STUB "%s\";\n", i->table, i->from->name));
    }
    return CK_OK;
}

/* ---- the graph ---- */

typedef struct assembly {
    builder *b;
    const ck_graph *sql;
    ck_graph_builder out;
    const ck_job_settings *settings;
} assembly;

/* The table an operator at the edge of the SQL is of. */
static const char *table_of(builder *b, const ck_graph_op *op) {
    yyjson_doc *doc;
    if (ck_json_read(b->arena, ck_view_of(op->params), &doc, NULL) != CK_OK) return "";
    const char *t = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "table"));
    return t ? t : "";
}

static stream *stream_named(builder *b, const char *name, bool is_query) {
    for (stream *s = b->streams; s; s = s->next)
        if ((s->kind == STREAM_QUERY) == is_query && s->kind != STREAM_KEYED && strcmp(s->name, name) == 0) return s;
    return NULL;
}

static bool stands_for(const ck_graph_op *op, const char *type) { return strcmp(op->type, type) == 0; }

/* What queries give: the inputs of the sinks that stand for operators. */
static ck_status find_queries(assembly *a) {
    for (uint32_t i = 0; i < a->sql->op_count; i++) {
        const ck_graph_op *op = &a->sql->ops[i];
        if (!stands_for(op, "sink.stream")) continue;
        stream *s = stream_named(a->b, table_of(a->b, op), true);
        CK_ASSERT(s && op->input_count == 1);
        s->from = op->inputs[0];
        s->schema = op->schema;
        s->bounded = op->inputs[0].bounded;
        s->placed = true;
    }
    return CK_OK;
}

/* "device, port" as column numbers of the stream. */
static ck_status key_columns(assembly *a, const stream *keyed, uint32_t **out, uint32_t *count) {
    builder *b = a->b;
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
        if (at < 0 || *count > schema->field_count)
            return ck_fail(b->err, CK_INVALID, "job %s: clink_key_by has no column \"%.*s\" to go by", b->job,
                           n > 100 ? 100 : (int)n, p);
        if (*count < schema->field_count) (*out)[(*count)++] = (uint32_t)at;
        p = next;
    }
    return *count ? CK_OK : ck_fail(b->err, CK_INVALID, "job %s: clink_key_by names no columns", b->job);
}

/* Where the columns stand that the operator takes. Types are checked where it is planned. */
static ck_status wanted_columns(assembly *a, const stream *p, uint32_t input, yyjson_mut_doc *doc,
                                yyjson_mut_val *lists) {
    builder *b = a->b;
    const stream *from = p->inputs[input]->kind == STREAM_KEYED ? p->inputs[input]->of : p->inputs[input];
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

static ck_status params_of(assembly *a, const stream *p, uint32_t *const *keys, const uint32_t *key_counts,
                           const char **out) {
    builder *b = a->b;
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

static ck_status place(assembly *a, stream *s);

/* Every input is keyed, or none is. */
static ck_status inputs_of(assembly *a, stream *p, ck_graph_input *inputs, uint32_t **keys, uint32_t *key_counts,
                           bool *keyed) {
    builder *b = a->b;
    *keyed = p->inputs[0]->kind == STREAM_KEYED;
    p->bounded = true;
    for (uint32_t i = 0; i < p->input_count; i++) {
        stream *in = p->inputs[i], *from = in->kind == STREAM_KEYED ? in->of : in;
        if ((in->kind == STREAM_KEYED) != *keyed)
            return ck_fail(b->err, CK_INVALID, "job %s: of the inputs of %s (%s) some are keyed and some are not",
                           b->job, p->op->face->name, p->name);
        CK_TRY(place(a, from));
        inputs[i] = from->from;
        if (from->kind != STREAM_QUERY) inputs[i].kind = CK_EDGE_FORWARD;
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
static ck_status fingerprint(assembly *a, ck_graph_op *op, const stream *p) {
    builder *b = a->b;
    const ck_op_desc *d;
    const ck_slot_schema *slots;
    uint32_t count;
    ck_op_input *inputs = ck_arena_array(b->arena, p->input_count + 1u, sizeof *inputs);
    if (!inputs) return ck_nomem(b->err, b->arena->mem, sizeof *inputs);
    for (uint32_t i = 0; i < p->input_count; i++) {
        const stream *from = p->inputs[i]->kind == STREAM_KEYED ? p->inputs[i]->of : p->inputs[i];
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

static ck_status place_process(assembly *a, stream *p) {
    builder *b = a->b;
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
static ck_status place_side(assembly *a, stream *s) {
    builder *b = a->b;
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

static ck_status place(assembly *a, stream *s) {
    if (s->placed) return CK_OK;
    CK_ASSERT(!s->placing); /* a stream is made of earlier ones */
    s->placing = true;
    CK_TRY(s->kind == STREAM_SIDE ? place_side(a, s) : place_process(a, s));
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
        stream *s = stream_named(a->b, table_of(a->b, from) + sizeof STUB - 1, false);
        CK_ASSERT(s && s->placed);
        if (from->schema->field_count != s->schema->field_count)
            return ck_fail(a->b->err, CK_INVALID, "job %s: not all columns of \"%s\" are used", a->b->job, s->name);
        copy.inputs[i].uid = s->from.uid;
        copy.inputs[i].port = s->from.port;
    }
    return add_op(a, &copy);
}

static ck_status assemble(assembly *a, const ck_graph **out) {
    builder *b = a->b;
    ck_graph *made;
    if (ck_graph_builder_init(&a->out, b->arena, a->sql->name) != CK_OK)
        return ck_nomem(b->err, b->arena->mem, sizeof *made);
    a->out.graph->key_groups = a->sql->key_groups;
    a->out.graph->timezone = a->sql->timezone;
    a->out.graph->settings = a->sql->settings;
    CK_TRY(find_queries(a));
    for (stream *s = b->streams; s; s = s->next)
        if (s->kind == STREAM_PROCESS || s->kind == STREAM_SIDE) CK_TRY(place(a, s));
    for (uint32_t i = 0; i < a->sql->op_count; i++) {
        const ck_graph_op *op = &a->sql->ops[i];
        if (!stands_for(op, "sink.stream") && !stands_for(op, "source.stream")) CK_TRY(place_sql(a, op));
    }
    CK_TRY(ck_graph_check(&a->out, &made, b->err));
    *out = made;
    return CK_OK;
}

/* ---- all of it ---- */

/* Of the sentences about sinks, those about tables there are. */
static void forget_stubs(const builder *b, ck_sql_step *step) {
    const char **kept_ones = (const char **)(uintptr_t)step->guarantees;
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->guarantee_count; i++) {
        bool stub = false;
        for (const stream *s = b->streams; s; s = s->next)
            stub |= s->kind == STREAM_QUERY && strncmp(kept_ones[i], s->name, strlen(s->name)) == 0 &&
                    kept_ones[i][strlen(s->name)] == ':';
        if (!stub) kept_ones[n++] = kept_ones[i];
    }
    step->guarantee_count = n;
}

static ck_status compile(clink_engine *e, clink_job *j, builder *b, const ck_sql_options *o) {
    ck_job_settings settings = {.batch_rows = CK_BATCH_ROWS_MAX, .key_groups = o->key_groups, .timezone = "UTC"};
    assembly a = {.b = b, .settings = &settings};
    if (!b->inserts) return ck_fail(b->err, CK_INVALID, "job %s writes nothing: clink_insert", b->job);
    if (write_script(b) != CK_OK || ck_bytes_terminate(&b->script) != CK_OK)
        return ck_fail(b->err, CK_NOMEM, "job %s: its SQL is over %d MiB", b->job, SCRIPT_BYTES_MAX >> 20);
    const char *text = ck_arena_strndup(b->arena, b->script.p, b->script.n);
    if (!text) return ck_nomem(b->err, b->arena->mem, b->script.n);
    CK_TRY(ck_sql_compile(e->catalog, ck_view_of(text), o, &j->arena, &j->plan, b->err));
    ck_sql_step *step = NULL;
    for (uint32_t i = 0; i < j->plan->step_count; i++) {
        if (j->plan->steps[i].kind != CK_SQL_JOB) continue;
        if (step || j->plan->steps[i].has_result)
            return ck_fail(b->err, CK_INVALID,
                           "job %s: a job has one graph, and its SQL reads what it writes, or selects for nobody",
                           b->job);
        step = &j->plan->steps[i];
    }
    if (!step) return ck_fail(b->err, CK_INVALID, "job %s: its SQL runs nothing", b->job);
    a.sql = step->graph;
    CK_TRY(assemble(&a, &step->graph));
    forget_stubs(b, step);
    return engine_explain_graph(b->arena, b->registry, b->proc, step->graph, &step->explain, b->err);
}

static ck_status build_and_compile(clink_engine *e, clink_job *j, const char *name, const ck_plugin_job *job,
                                   clink_status (*build)(clink_job_builder *b, const void *arg), const void *arg,
                                   const ck_sql_options *o, ck_error *err) {
    ck_sql_options named = *o;
    clink_error said = {0};
    char *source = ck_arena_printf(&j->arena, "job %s", name);
    builder b = {.arena = &j->arena, .proc = &e->proc, .registry = &e->registry, .err = err, .job = name};
    if (!source) return ck_nomem(err, j->arena.mem, 64);
    named.source_name = source;
    named.before_commit = NULL; /* its tables are the job's own */
    b.face = (clink_job_builder){&engine, &b};
    b.last_stream = &b.streams;
    b.last_insert = &b.inserts;
    ck_bytes_init(&b.script, j->arena.mem, SCRIPT_BYTES_MAX);
    clink_status built = job ? job->description->build(&b.face, &said) : build(&b.face, arg);
    ck_status s = b.status;
    if (s == CK_OK && built != CLINK_OK)
        s = ck_fail(err, CK_INVALID, "job %s%s%s: %s", name, job ? " of plugin " : "", job ? job->plugin : "",
                    said.message[0] ? said.message : "it could not be built, and nobody said why");
    if (s == CK_OK) s = compile(e, j, &b, &named);
    ck_bytes_destroy(&b.script);
    return s;
}

ck_status engine_plugin_compile(clink_engine *e, clink_job *j, const ck_plugin_job *job, const ck_sql_options *o,
                                ck_error *err) {
    return build_and_compile(e, j, job->description->name, job, NULL, NULL, o, err);
}

ck_status engine_built_compile(clink_engine *e, clink_job *j, const char *name,
                               clink_status (*build)(clink_job_builder *b, const void *arg), const void *arg,
                               const ck_sql_options *o, ck_error *err) {
    return build_and_compile(e, j, name, NULL, build, arg, o, err);
}
