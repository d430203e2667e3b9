/* What a restore knows of value fields beside their names, see ck_slot_origin and evolve.h. Fields are named by
 * canonical expressions over column names, so a column that was renamed is looked for inside them; a column that the
 * stored job's table did not have at all is NULL in every row that job has read (docs/decisions: pruned columns are no
 * such). */
#include <yyjson.h>

#include "base/json.h"
#include "runtime/evolve.h"

typedef struct column {
    const char *name;
    const char *was; /* its name in the stored job; NULL: the same, or it had none */
    bool fresh;      /* the stored job's table had no such column */
    bool ambiguous;  /* several tables have one, of different pasts */
    struct column *next;
} column;

typedef struct tracing {
    ck_arena *arena;
    const ck_graph *stored, *wanted;
    ck_error *err;
    bool *seen; /* by operator of wanted */
    column *columns;
    bool from_now;
} tracing;

static ck_status nomem(const tracing *t) { return ck_nomem(t->err, t->arena->mem, 0); }

/* The table's columns as declared; NULL: no source says any. */
static ck_status table_schema(tracing *t, const ck_graph_op *op, yyjson_val **out) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(t->arena, ck_view_of(op->params), &doc, t->err));
    *out = yyjson_obj_get(yyjson_doc_get_root(doc), "table_schema");
    return CK_OK;
}

static const char *text_of(yyjson_val *field, const char *member) {
    const char *z = yyjson_get_str(yyjson_obj_get(field, member));
    return z ? z : "";
}

/* The name that state knows a column by, whatever it is called. */
static const char *state_name(yyjson_val *field) {
    const char *was = text_of(field, "renamed_from");
    return *was ? was : text_of(field, "name");
}

static yyjson_val *find_stored(yyjson_val *schema, const char *name) {
    size_t i, n;
    yyjson_val *field;
    yyjson_arr_foreach(schema, i, n, field) if (strcmp(state_name(field), name) == 0) return field;
    return NULL;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static ck_status add_column(tracing *t, column c) {
    for (column *o = t->columns; o; o = o->next) {
        if (strcmp(o->name, c.name) != 0) continue;
        o->ambiguous |= !same_text(o->was, c.was) || o->fresh != c.fresh;
        return CK_OK;
    }
    column *copy = CK_ARENA_NEW(t->arena, column);
    if (!copy) return nomem(t);
    *copy = c;
    copy->next = t->columns;
    t->columns = copy;
    return CK_OK;
}

static ck_status add_source(tracing *t, const ck_graph_op *op) {
    const ck_graph_op *was = ck_graph_find(t->stored, op->uid);
    yyjson_val *now, *before, *field;
    size_t i, n;
    if (!was) return CK_OK; /* a table the stored job did not read: it has no rows of it */
    CK_TRY(table_schema(t, op, &now));
    CK_TRY(table_schema(t, was, &before));
    if (!yyjson_is_arr(now) || !yyjson_is_arr(before)) return CK_OK;
    yyjson_arr_foreach(now, i, n, field) {
        yyjson_val *stored = find_stored(before, state_name(field));
        const char *name = text_of(field, "name"), *old = stored ? text_of(stored, "name") : name;
        CK_TRY(add_column(t, (column){.name = name, .was = strcmp(old, name) ? old : NULL, .fresh = !stored}));
    }
    return CK_OK;
}

static ck_status add_sources(tracing *t, const ck_graph_op *op) {
    uint32_t number = (uint32_t)(op - t->wanted->ops);
    if (t->seen[number]) return CK_OK;
    t->seen[number] = true;
    if (op->input_count == 0) return add_source(t, op);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_graph_op *in = ck_graph_find(t->wanted, op->inputs[i].uid);
        if (in) CK_TRY(add_sources(t, in));
    }
    return CK_OK;
}

/* ---- names ---- */

static bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80); }
static bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

/* The next word of a text: a name, quoted or not, or anything else. */
typedef struct word {
    ck_view text; /* all of it */
    ck_view name; /* n 0: it is none, or calls a function */
} word;

static word next_word(const char *z) {
    size_t n = 1;
    if (*z == '\'' || *z == '"') {
        while (z[n] && (z[n] != *z || z[n + 1] == *z)) n += z[n] == *z ? 2 : 1;
        bool closed = z[n] != 0;
        return (word){{z, n + closed}, {z + 1, *z == '"' && closed ? n - 1 : 0}};
    }
    if (!begins_name(*z)) {
        while (in_name(*z) && in_name(z[n])) n++; /* a number, with what sticks to it */
        return (word){{z, n}, {z, 0}};
    }
    while (in_name(z[n])) n++;
    return (word){{z, n}, {z, z[n] == '(' ? 0 : n}};
}

static const column *find_column(const tracing *t, ck_view name) {
    for (const column *c = t->columns; name.n && c; c = c->next)
        if (ck_view_is(name, c->name)) return c->ambiguous ? NULL : c;
    return NULL;
}

/* The name a field had; the same where nothing in it was renamed. */
static ck_status old_name(const tracing *t, const char *name, const char **out) {
    ck_bytes b;
    ck_bytes_init(&b, t->arena->mem, SIZE_MAX);
    bool changed = false;
    ck_status s = CK_OK;
    for (const char *z = name; *z && s == CK_OK;) {
        word w = next_word(z);
        const column *c = find_column(t, w.name);
        bool quoted = *z == '"';
        z += w.text.n;
        if (!c || !c->was) {
            s = ck_bytes_view(&b, w.text);
            continue;
        }
        changed = true;
        s = ck_bytes_printf(&b, quoted ? "\"%s\"" : "%s", c->was);
    }
    *out = NULL;
    if (s == CK_OK && changed && !(*out = ck_arena_strndup(t->arena, b.p, b.n))) s = CK_NOMEM;
    ck_bytes_destroy(&b);
    return s == CK_OK ? CK_OK : nomem(t);
}

/* A column that the stored job's table did not have, or an aggregate that leaves out NULLs of one. */
static bool is_fresh(const tracing *t, const char *name) {
    static const char *const leaving_out_nulls[] = {"sum(", "count(", "min(", "max("};
    const char *arg = name;
    for (size_t i = 0; i < CK_ARRAY_COUNT(leaving_out_nulls); i++)
        if (strncmp(name, leaving_out_nulls[i], strlen(leaving_out_nulls[i])) == 0)
            arg = name + strlen(leaving_out_nulls[i]);
    word w = next_word(arg);
    const column *c = *arg ? find_column(t, w.name) : NULL;
    const char *end = arg + (c ? w.text.n : 0);
    return c && c->fresh && strcmp(end, arg == name ? "" : ")") == 0;
}

/* A column is NULL where nobody knows it; an aggregate is what it is of no row. */
static bool may_begin_now(const ck_field *f) { return f->nullable || strchr(f->name, '(') != NULL; }

/* Values in order of which NULL is one (ARRAY_AGG): rows of before would have put theirs there. */
static bool keeps_nulls(const ck_slot_schema *slot) {
    for (uint32_t i = 0; i < slot->order_count; i++)
        if (slot->order[i].field.nullable && strcmp(slot->order[i].field.name, "value") == 0) return true;
    return false;
}

static ck_status trace_slot(tracing *t, ck_slot_schema *slot) {
    ck_slot_origin *origins = ck_arena_array(t->arena, slot->value_count + 1u, sizeof *origins);
    bool any = false;
    if (!origins) return nomem(t);
    for (uint32_t i = 0; i < slot->value_count; i++) {
        CK_TRY(old_name(t, slot->values[i].name, &origins[i].was));
        origins[i].fresh = is_fresh(t, slot->values[i].name);
        origins[i].from_now = t->from_now && may_begin_now(&slot->values[i]);
        any |= origins[i].was || origins[i].fresh || origins[i].from_now;
    }
    if (any) slot->origins = origins;
    /* "overflow:sum(v)" is what sum(v) has beside its field */
    const char *of = strchr(slot->slot, ':'), *was;
    slot->origin.from_now = t->from_now;
    if (!of) return CK_OK;
    CK_TRY(old_name(t, of + 1, &was));
    slot->origin.fresh = is_fresh(t, of + 1) && !keeps_nulls(slot);
    if (!was) return CK_OK;
    slot->origin.was = ck_arena_printf(t->arena, "%.*s:%s", (int)(of - slot->slot), slot->slot, was);
    return slot->origin.was ? CK_OK : nomem(t);
}

ck_status ck_trace_slots(ck_arena *a, const ck_graph *stored, const ck_graph *wanted, const ck_graph_op *op,
                         bool from_now, const ck_slot_schema **slots, uint32_t count, ck_error *err) {
    tracing t = {.arena = a, .stored = stored, .wanted = wanted, .err = err, .from_now = from_now};
    for (uint32_t i = 0; i < op->input_count; i++) t.from_now &= op->inputs[i].mode == CK_MODE_APPEND;
    if (count == 0) return CK_OK;
    ck_slot_schema *copy = ck_arena_array(a, count, sizeof *copy);
    t.seen = ck_arena_array(a, wanted->op_count + 1u, sizeof *t.seen);
    if (!copy || !t.seen) return nomem(&t);
    memcpy(copy, *slots, count * sizeof *copy);
    CK_TRY(add_sources(&t, op));
    for (uint32_t i = 0; i < count; i++) CK_TRY(trace_slot(&t, &copy[i]));
    *slots = copy;
    return CK_OK;
}
