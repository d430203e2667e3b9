/* See plugin_job_int.h. The builder only notes what it is asked for; the first thing that is wrong is kept. Then all
 * SQL of the job is one script, in which tables of connector '.stream' stand where operators of plugins are: a sink for
 * what a query gives to one, a source for what one gives. */
#include "base/suggest.h"
#include "engine/plugin_job_int.h"

enum { STREAMS_MAX = 1000 };

static void wrong(ck_plugin_builder *b, ck_status s) {
    if (b->status == CK_OK) b->status = s;
}

#define WRONG(b, ...)                                                                                                  \
    do {                                                                                                               \
        if ((b)->status == CK_OK) (b)->status = ck_fail((b)->err, CK_INVALID, __VA_ARGS__);                            \
    } while (0)

/* A stream is given out whatever was wrong, so that nobody need look. */
static ck_plugin_stream *new_stream(ck_plugin_builder *b, ck_plugin_stream_kind kind) {
    ck_plugin_stream *s = b->stream_count < STREAMS_MAX ? CK_ARENA_NEW(b->arena, ck_plugin_stream) : NULL;
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

static const char *kept(ck_plugin_builder *b, const char *text) {
    const char *copy = ck_arena_strdup(b->arena, text ? text : "");
    if (!copy) wrong(b, ck_nomem(b->err, b->arena->mem, 0));
    return copy ? copy : "";
}

static ck_plugin_builder *of_face(clink_job_builder *face) { return face->inside; }
static ck_plugin_stream *of_stream(clink_stream *face) { return face->inside; }

static void define(clink_job_builder *face, const char *sql) {
    ck_plugin_builder *b = of_face(face);
    ck_status s = ck_bytes_str(&b->script, sql ? sql : "");
    if (s == CK_OK) s = ck_bytes_str(&b->script, ";\n");
    if (s != CK_OK)
        wrong(b, ck_fail(b->err, s, "job %s: its SQL is over %d MiB", b->job, CK_PLUGIN_SCRIPT_BYTES_MAX >> 20));
}

/* What stands in front of the last semicolon. */
static const char *one_query(ck_plugin_builder *b, const char *sql) {
    size_t n = sql ? strlen(sql) : 0;
    while (n && strchr(" \t\r\n;", sql[n - 1])) n--;
    const char *copy = ck_arena_strndup(b->arena, sql ? sql : "", n);
    if (!copy) wrong(b, ck_nomem(b->err, b->arena->mem, n));
    return copy ? copy : "";
}

static clink_stream *query(clink_job_builder *face, const char *sql) {
    ck_plugin_builder *b = of_face(face);
    ck_plugin_stream *s = new_stream(b, CK_STREAM_QUERY);
    s->text = one_query(b, sql);
    s->name = ck_arena_printf(b->arena, "query:%u", ++b->query_count);
    if (!s->name) wrong(b, ck_nomem(b->err, b->arena->mem, 16));
    return &s->face;
}

static clink_stream *key_by(clink_stream *from, const char *columns) {
    ck_plugin_builder *b = of_stream(from)->b;
    ck_plugin_stream *s = new_stream(b, CK_STREAM_KEYED);
    if (of_stream(from)->kind == CK_STREAM_KEYED) WRONG(b, "job %s: clink_key_by of what is keyed already", b->job);
    s->of = of_stream(from);
    s->text = kept(b, columns);
    return &s->face;
}

static void no_such_operator(ck_plugin_builder *b, const char *name) {
    ck_suggest near;
    ck_suggest_init(&near, ck_view_of(name));
    for (const ck_library_item *i = b->proc->library ? b->proc->library->items : NULL; i; i = i->next)
        if (i->operator_) ck_suggest_offer(&near, ck_view_of(i->operator_->face->name));
    if (near.best.n)
        WRONG(b, "job %s: there is no operator \"%s\" in the plugins that are loaded; did you mean \"%.*s\"?", b->job,
              name, (int)near.best.n, near.best.p);
    else
        WRONG(b, "job %s: there is no operator \"%s\" in the plugins that are loaded", b->job, name);
}

static clink_stream *process(clink_stream *const *inputs, uint32_t count, const char *uid, const char *operator_name,
                             const char *parameters) {
    ck_plugin_builder *b = of_stream(inputs[0])->b;
    ck_plugin_stream *s = new_stream(b, CK_STREAM_PROCESS);
    s->name = kept(b, uid);
    s->operator_name = kept(b, operator_name);
    s->parameters = kept(b, parameters);
    s->inputs = ck_arena_array(b->arena, count + 1u, sizeof(ck_plugin_stream *));
    if (!s->inputs) {
        wrong(b, ck_nomem(b->err, b->arena->mem, count * sizeof(ck_plugin_stream *)));
        return &s->face;
    }
    for (uint32_t i = 0; i < count; i++) s->inputs[i] = of_stream(inputs[i]);
    s->input_count = count;
    if (!*s->name || strpbrk(s->name, "\"\n")) WRONG(b, "job %s: operator %s has no uid", b->job, s->operator_name);
    for (ck_plugin_stream *o = b->streams; o && o != s; o = o->next)
        if (o->kind == CK_STREAM_PROCESS && strcmp(o->name, s->name) == 0)
            WRONG(b, "job %s: two operators have the uid \"%s\"", b->job, s->name);
    s->op = ck_library_operator(b->proc->library, s->operator_name);
    if (!s->op)
        no_such_operator(b, s->operator_name);
    else if (s->op->input_count != count)
        WRONG(b, "job %s: operator %s (%s) takes %u input%s, not %u", b->job, s->operator_name, s->name,
              s->op->input_count, s->op->input_count == 1 ? "" : "s", count);
    if (s->op) s->schema = s->op->output;
    bool keyed = count && s->inputs[0]->kind == CK_STREAM_KEYED;
    if (s->op && !keyed && (s->op->face->state_count || s->op->timers))
        WRONG(b, "job %s: operator %s (%s) has state or timers, which are of keys: clink_key_by goes in front of it",
              b->job, s->operator_name, s->name);
    return &s->face;
}

static clink_stream *side(clink_stream *face, uint32_t port) {
    ck_plugin_stream *of = of_stream(face), *s;
    ck_plugin_builder *b = of->b;
    bool fine = of->kind == CK_STREAM_PROCESS && of->op && port > 0 && port <= of->op->face->side_count;
    if (!fine) WRONG(b, "job %s: there is no side output %u", b->job, port);
    s = new_stream(b, CK_STREAM_SIDE);
    s->of = of;
    s->port = port;
    s->name = ck_arena_printf(b->arena, "%s:%u", of->name ? of->name : "", port);
    if (!s->name) wrong(b, ck_nomem(b->err, b->arena->mem, 16));
    if (fine) s->schema = &of->op->sides[port - 1];
    return &s->face;
}

static void insert_into(clink_stream *face, const char *table) {
    ck_plugin_stream *s = of_stream(face);
    ck_plugin_builder *b = s->b;
    ck_plugin_insert *i = CK_ARENA_NEW(b->arena, ck_plugin_insert);
    if (s->kind == CK_STREAM_KEYED) s = s->of;
    if (!i) {
        wrong(b, ck_nomem(b->err, b->arena->mem, sizeof *i));
        return;
    }
    *i = (ck_plugin_insert){s, kept(b, table), NULL};
    *b->last_insert = i;
    b->last_insert = &i->next;
}

const clink_engine_table ck_plugin_builder_table = {.struct_bytes = sizeof ck_plugin_builder_table,
                                                    .abi = CLINK_PLUGIN_ABI,
                                                    .query = query,
                                                    .define = define,
                                                    .key_by = key_by,
                                                    .process = process,
                                                    .side = side,
                                                    .insert = insert_into};

/* ---- the script ---- */

static bool is_taken(const ck_plugin_builder *b, const ck_plugin_stream *s) {
    for (const ck_plugin_stream *p = b->streams; p; p = p->next)
        for (uint32_t i = 0; i < p->input_count; i++)
            if (p->inputs[i] == s || (p->inputs[i]->kind == CK_STREAM_KEYED && p->inputs[i]->of == s)) return true;
    return false;
}

/* A table with the columns of what an operator gives. */
static ck_status stub_table(ck_plugin_builder *b, const ck_plugin_stream *s) {
    CK_TRY(ck_bytes_printf(&b->script, "CREATE TABLE \"" CK_STREAM_STUB "%s\" (", s->name));
    for (uint32_t i = 0; i < s->schema->field_count; i++) {
        const ck_field *f = &s->schema->fields[i];
        const char *type = ck_type_name(b->arena, f->type);
        CK_TRY(
            ck_bytes_printf(&b->script, "%s\"%s\" %s%s", i ? ", " : "", f->name, type, f->nullable ? "" : " NOT NULL"));
    }
    return ck_bytes_str(&b->script, ") WITH (connector = '.stream');\n");
}

ck_status ck_plugin_write_script(ck_plugin_builder *b) {
    for (const ck_plugin_stream *s = b->streams; s; s = s->next)
        if (s->kind == CK_STREAM_QUERY && is_taken(b, s))
            CK_TRY(ck_bytes_printf(&b->script, "CREATE TABLE \"%s\" WITH (connector = '.stream') AS %s;\n", s->name,
                                   s->text));
    for (const ck_plugin_stream *s = b->streams; s; s = s->next) {
        bool inserted = false;
        for (const ck_plugin_insert *i = b->inserts; i; i = i->next) inserted |= i->from == s;
        if (inserted && s->kind != CK_STREAM_QUERY) CK_TRY(stub_table(b, s));
    }
    for (const ck_plugin_insert *i = b->inserts; i; i = i->next) {
        if (i->from->kind == CK_STREAM_QUERY)
            CK_TRY(ck_bytes_printf(&b->script, "INSERT INTO %s %s;\n", i->table, i->from->text));
        else
            CK_TRY(ck_bytes_printf(&b->script, "INSERT INTO %s SELECT * FROM \"" CK_STREAM_STUB "%s\";\n", i->table,
                                   i->from->name));
    }
    return CK_OK;
}
