/* Sinks: of tables, and the result of a bare SELECT. */
#include <yyjson.h>

#include "base/hash.h"
#include "base/json.h"
#include "sql/lower/lower_int.h"

static ck_status put_hashes(ck_lower_state *s, ck_lower_params *p, yyjson_mut_val *list, const uint64_t *hashes,
                            uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const char *hex = ck_arena_printf(s->arena, "%016llx", (unsigned long long)hashes[i]);
        if (!list || !hex || !yyjson_mut_arr_add_str(p->doc, list, hex)) return ck_lower_nomem(s);
    }
    return CK_OK;
}

/* For a later script that goes on from this job's checkpoints: whether its rows are chosen alike. "over": by entry of
 * "rows" over which branches of a UNION ALL. */
static ck_status rows_params(ck_lower_state *s, ck_lower_params *p, const ck_output *o) {
    yyjson_mut_val *rows = o->branch_count ? yyjson_mut_obj_add_arr(p->doc, p->root, "rows") : NULL, *over;
    bool any = false;
    for (uint32_t i = 0; i < o->branch_count; i++) {
        CK_TRY(put_hashes(s, p, rows, &o->branches[i].rows, 1));
        any |= o->branches[i].over_count > 0;
    }
    if (!any) return CK_OK;
    if (!(over = yyjson_mut_obj_add_arr(p->doc, p->root, "over"))) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < o->branch_count; i++)
        CK_TRY(put_hashes(s, p, yyjson_mut_arr_add_arr(p->doc, over), o->branches[i].over, o->branches[i].over_count));
    return CK_OK;
}

static ck_status add_table(ck_lower_state *s, yyjson_mut_doc *doc, yyjson_mut_val *to, const ck_table_decl *t) {
    bool fine = to && yyjson_mut_obj_add_str(doc, to, "table", t->name);
    yyjson_mut_val *options = fine ? yyjson_mut_obj_add_obj(doc, to, "options") : NULL;
    if (!options) return ck_lower_nomem(s);
    for (uint32_t i = 0; i < t->options.count; i++)
        if (!yyjson_mut_obj_add_str(doc, options, t->options.names[i], t->options.values[i])) return ck_lower_nomem(s);
    return CK_OK;
}

static ck_status own_letters(ck_lower_state *s, const ck_table_def *t, const ck_catalog_entry **out);

static ck_status table_params(ck_lower_state *s, const ck_output *o, const char **out) {
    ck_lower_params p;
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(add_table(s, p.doc, p.root, &o->table->table.decl));
    const ck_catalog_entry *letters;
    CK_TRY(own_letters(s, &o->table->table, &letters));
    if (letters)
        CK_TRY(add_table(s, p.doc, yyjson_mut_obj_add_obj(p.doc, p.root, "letters"), &letters->table.decl));
    CK_TRY(ck_lower_params_columns(s, &p, "primary_key", (ck_columns){o->key, o->key_count}));
    CK_TRY(rows_params(s, &p, o));
    return ck_lower_params_end(s, &p, out);
}

/* The caller's parameters and the key of the result, by which a table on the terminal is kept up to date. */
static ck_status result_params(ck_lower_state *s, const ck_output *o, const char **out) {
    const char *given = s->l->options->result_params;
    struct yyjson_doc *read;
    ck_lower_params p;
    CK_TRY(ck_json_read(s->arena, ck_view_of(given ? given : "{}"), &read, s->err));
    CK_TRY(ck_json_new(s->arena, &p.doc, s->err));
    if (!yyjson_is_obj(yyjson_doc_get_root(read)))
        return ck_fail(s->err, CK_INVALID, "result_params is no JSON object");
    p.root = yyjson_val_mut_copy(p.doc, yyjson_doc_get_root(read));
    if (!p.root) return ck_lower_nomem(s);
    yyjson_mut_doc_set_root(p.doc, p.root);
    yyjson_mut_obj_remove_key(p.root, "key");
    CK_TRY(ck_lower_params_columns(s, &p, "key", (ck_columns){o->key, o->key_count}));
    const ck_plan_node *n = o->node;
    bool one_row = n->key_count && n->keys[0].count == 0;
    if (one_row && !yyjson_mut_obj_add_bool(p.doc, p.root, "one_row", true)) return ck_lower_nomem(s);
    return ck_lower_params_end(s, &p, out);
}

/* Keeping the rows of each key that are there, and showing one: a top-1 by all other columns, the greatest first. */
static ck_status materialise(ck_lower_state *s, const ck_output *o, ck_planned_input *in) {
    ck_lower_params p;
    ck_planned_input *own = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    if (!own) return CK_NOMEM;
    *own = *in;
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_columns(s, &p, "partition", (ck_columns){o->key, o->key_count}));
    yyjson_mut_val *order = yyjson_mut_obj_add_arr(p.doc, p.root, "order");
    for (uint32_t c = 0, k; order && c < o->schema->field_count; c++) {
        for (k = 0; k < o->key_count && o->key[k] != c;) k++;
        if (k < o->key_count) continue;
        yyjson_mut_val *by = yyjson_mut_arr_add_obj(p.doc, order);
        if (!by || !yyjson_mut_obj_add_uint(p.doc, by, "col", c) || !yyjson_mut_obj_add_bool(p.doc, by, "desc", true) ||
            !yyjson_mut_obj_add_bool(p.doc, by, "nulls_first", true))
            order = NULL;
    }
    if (!order || !yyjson_mut_obj_add_uint(p.doc, p.root, "limit", 1) ||
        !yyjson_mut_obj_add_uint(p.doc, p.root, "offset", 0) ||
        !yyjson_mut_obj_add_str(p.doc, p.root, "rank", "row_number") ||
        !yyjson_mut_obj_add_bool(p.doc, p.root, "rank_column", false))
        return ck_lower_nomem(s);
    bool final = o->node->mode == CK_MODE_APPEND; /* of rows that are all made at the end */
    if (!final && (!o->node->bounded || s->l->options->changes))
        CK_TRY(ck_lower_params_ttl(s, &p, "ttl_us", o->node->ttl_us));
    const char *by = ck_label_columns(s, o->schema, (ck_columns){o->key, o->key_count});
    ck_planned_op op = {.base = ck_arena_printf(s->arena, "materialise:%s", o->table->name),
                        .canonical = o->node->canonical,
                        .type = "top_n",
                        .label = by ? ck_arena_printf(s->arena, "one row per %s", by) : NULL,
                        .inputs = own,
                        .input_count = 1,
                        .schema = o->schema,
                        .has_key = true,
                        .key = {o->key, o->key_count},
                        .final = final,
                        .stateful = true,
                        .growth = o->node->bounded  ? NULL
                                  : o->node->ttl_us ? "bounded by state_ttl: the rows that are there"
                                                    : "with its input: the rows that are there",
                        .single = s->ops[in->op].single};
    if (!op.base || !op.label) return ck_lower_nomem(s);
    uint64_t meaning = o->node->meaning.rows;
    for (uint32_t i = 0; i < o->key_count; i++) {
        const char *name = o->schema->fields[o->key[i]].name;
        meaning = ck_hash_combine(meaning, ck_fnv1a(name, strlen(name)));
    }
    if (o->node->meaning.known) op.semantic_fingerprint = ck_lower_semantic(s, meaning);
    CK_TRY(ck_lower_params_end(s, &p, &op.params));
    CK_TRY(ck_lower_add(s, &op, &in->op));
    in->kind = CK_EDGE_FORWARD;
    in->key = (ck_columns){0};
    return CK_OK;
}

/* An upserting sink keeps rows by its key: they are hashed on it, in its order, unless they come so already. Several
 * rows of the query may meet under one key; and where a key's changes took more than one way, the new row may be here
 * before the end of the old one. */
static ck_status table_edge(ck_lower_state *s, const ck_output *o, const ck_lowered *from, bool upserts,
                            ck_planned_input *in) {
    ck_columns key = {o->key, o->key_count};
    bool orderly;
    if (!upserts || o->key_count == 0) return CK_OK;
    if (!s->ops[in->op].single && !ck_lower_is_hashed_by(from, key)) in->kind = CK_EDGE_HASH, in->key = key;
    if (o->rows_meet) return materialise(s, o, in);
    CK_TRY(ck_lower_in_order(s, o->node, key, &orderly));
    return orderly ? CK_OK : materialise(s, o, in);
}

static ck_status table_sink(ck_lower_state *s, const ck_output *o, const ck_lowered *from, ck_planned_input *in,
                            ck_planned_op *op) {
    const ck_table_def *t = &o->table->table;
    const ck_connector_desc *c = t->connector;
    bool upserts = c->accepts_upserts && c->accepts_upserts(&t->decl);
    op->base = ck_arena_printf(s->arena, "sink:%s", o->table->name);
    op->type = c->sink_type, op->label = o->table->name;
    op->single = s->ops[from->op].single;
    CK_TRY(table_edge(s, o, from, upserts, in));
    op->why = "";
    if (c->guarantee) op->guarantee = c->guarantee(&t->decl, s->l->options->checkpoints, &op->why);
    if (!op->why) op->why = "";
    if (!op->base) return ck_lower_nomem(s);
    return table_params(s, o, &op->params);
}

static ck_status result_sink(ck_lower_state *s, const ck_output *o, const ck_lowered *from, ck_planned_input *in,
                             ck_planned_op *op) {
    if (!s->l->options->result_sink) return ck_fail(s->err, CK_INVALID, "nothing takes the result of a SELECT here");
    op->base = "sink:result";
    op->type = s->l->options->result_sink, op->label = "result";
    op->single = true;
    op->guarantee = CK_AT_LEAST_ONCE, op->why = "rows that are printed or handed out cannot be taken back";
    if (!s->ops[from->op].single) in->kind = CK_EDGE_GATHER;
    return result_params(s, o, &op->params);
}

static ck_status sink_letters(ck_lower_state *s, const ck_output *o, uint32_t op);

ck_status ck_lower_output(ck_lower_state *s, const ck_output *o) {
    ck_lowered from;
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    uint32_t op_number;
    if (!in) return CK_NOMEM;
    CK_TRY(ck_lower_node(s, o->node, &from));
    *in =
        (ck_planned_input){.op = from.op, .kind = CK_EDGE_FORWARD, .mode = o->node->mode, .bounded = o->node->bounded};
    ck_planned_op op = {.inputs = in,
                        .input_count = 1,
                        .canonical = o->node->canonical,
                        .schema = o->schema,
                        .has_key = o->key_count > 0,
                        .key = {o->key, o->key_count}};
    CK_TRY(o->table ? table_sink(s, o, &from, in, &op) : result_sink(s, o, &from, in, &op));
    CK_TRY(ck_lower_add(s, &op, &op_number));
    return o->table ? sink_letters(s, o, op_number) : CK_OK;
}

/* ---- dead letters ---- */

static bool takes_letters(const ck_table_decl *t) {
    static const struct {
        const char *name;
        ck_kind kind;
    } columns[] = {
        {"raw", CK_TYPE_BYTES}, {"split", CK_TYPE_VARCHAR}, {"offset", CK_TYPE_BIGINT}, {"reason", CK_TYPE_VARCHAR}};
    bool same = t->schema->field_count == CK_ARRAY_COUNT(columns) && t->primary_key_count == 0;
    for (uint32_t i = 0; same && i < CK_ARRAY_COUNT(columns); i++)
        same = strcmp(t->schema->fields[i].name, columns[i].name) == 0 &&
               t->schema->fields[i].type->kind == columns[i].kind && t->schema->fields[i].nullable;
    return same;
}

static ck_status letters_of(ck_lower_state *s, const char *table, const char *name, const ck_catalog_entry **out) {
    const ck_catalog_entry *e = ck_catalog_find(s->l->catalog, ck_view_of(name), false);
    ck_suggest near;
    *out = e;
    ck_suggest_init(&near, ck_view_of(name));
    if (!e) ck_catalog_offer(s->l->catalog, false, &near);
    if (near.best.n)
        return ck_fail(s->err, CK_INVALID, "table \"%s\": dead_letter_table = '%s' is no table; did you mean \"%.*s\"?",
                       table, name, (int)near.best.n, near.best.p);
    if (!e || e->kind != CK_ENTRY_TABLE)
        return ck_fail(s->err, CK_INVALID, "table \"%s\": dead_letter_table = '%s' is no table%s", table, name,
                       e ? "" : "; create it first");
    if (!e->table.connector->sink_type)
        return ck_fail(s->err, CK_INVALID, "table \"%s\": dead_letter_table = '%s' cannot be written: connector '%s'",
                       table, name, e->table.connector->name);
    if (!takes_letters(&e->table.decl))
        return ck_fail(s->err, CK_INVALID,
                       "table \"%s\": dead_letter_table = '%s' must have the columns (raw BYTES, split VARCHAR, "
                       "\"offset\" BIGINT, reason VARCHAR) and no key",
                       table, name);
    return CK_OK;
}

static ck_status find_letters(ck_lower_state *s, const ck_table_def *t, const char *name,
                              const ck_catalog_entry **out) {
    CK_TRY(ck_table_place(t, "dead_letter_table", letters_of(s, t->decl.name, name, out), s->err));
    const ck_table_def *to = &(*out)->table;
    ck_status st = to->connector->check ? to->connector->check(&to->decl, true, s->err) : CK_OK;
    if (st != CK_OK) ck_error_prefix(s->err, "table \"%s\": ", name);
    return ck_table_place(to, NULL, st, s->err);
}

/* The table into which the sink of t puts letters itself; NULL: it does not. */
static ck_status own_letters(ck_lower_state *s, const ck_table_def *t, const ck_catalog_entry **out) {
    const char *on_error = ck_table_decl_option(&t->decl, "on_error"),
               *name = ck_table_decl_option(&t->decl, "dead_letter_table");
    const ck_catalog_entry *e;
    bool own = false;
    *out = NULL;
    if (!t->connector->letters_to || !on_error || !name || strcmp(on_error, "dead_letter") != 0) return CK_OK;
    if (strcmp(name, t->decl.name) == 0) return CK_OK; /* refused by sink_letters */
    CK_TRY(find_letters(s, t, name, &e));
    ck_status st = t->connector->letters_to(&t->decl, e->table.connector->name, &e->table.decl, &own, s->err);
    if (st != CK_OK) ck_error_prefix(s->err, "table \"%s\": ", t->decl.name);
    CK_TRY(ck_table_place(t, "dead_letter_table", st, s->err));
    if (own) *out = e;
    return CK_OK;
}

/* The letters of table t, which operator `op` gives on its port 1. */
static ck_status letters_from(ck_lower_state *s, const ck_table_def *t, const ck_plan_node *node, uint32_t op) {
    const char *on_error = ck_table_decl_option(&t->decl, "on_error"),
               *name = ck_table_decl_option(&t->decl, "dead_letter_table");
    const ck_catalog_entry *e;
    if (!on_error || !name || strcmp(on_error, "dead_letter") != 0) return CK_OK;
    CK_TRY(find_letters(s, t, name, &e));
    ck_planned_input in = {
        .op = op, .port = 1, .kind = CK_EDGE_FORWARD, .mode = CK_MODE_APPEND, .bounded = node->bounded};
    return ck_lower_side_sink(s, e, node, &in);
}

/* A table that sets rows aside cannot set aside what its own letters are. */
static ck_status sink_letters(ck_lower_state *s, const ck_output *o, uint32_t op) {
    const ck_table_def *t = &o->table->table;
    const char *name = ck_table_decl_option(&t->decl, "dead_letter_table");
    if (!t->connector->sets_aside || !t->connector->sets_aside(&t->decl)) return CK_OK;
    if (name && strcmp(name, o->table->name) == 0)
        return ck_table_place(t, "dead_letter_table",
                              ck_fail(s->err, CK_INVALID, "table \"%s\": dead_letter_table = '%s' is the table itself",
                                      t->decl.name, name),
                              s->err);
    return letters_from(s, t, o->node, op);
}

ck_status ck_lower_dead_letters(ck_lower_state *s, const ck_plan_node *scan, const ck_lowered *source) {
    return letters_from(s, &scan->scan.table->table, scan, source->op);
}

/* What such a table does not take has nowhere to go. */
static ck_status sets_nothing_aside(ck_lower_state *s, const ck_table_def *t) {
    const char *on_error = ck_table_decl_option(&t->decl, "on_error");
    if (!t->connector->sets_aside || !t->connector->sets_aside(&t->decl)) return CK_OK;
    if (!on_error || strcmp(on_error, "dead_letter") != 0) return CK_OK;
    return ck_table_place(t, "on_error",
                          ck_fail(s->err, CK_INVALID,
                                  "table \"%s\": on_error = 'dead_letter' is not for a table that itself takes dead "
                                  "letters or late rows; 'fail' and 'skip' are",
                                  t->decl.name),
                          s->err);
}

ck_status ck_lower_side_sink(ck_lower_state *s, const ck_catalog_entry *table, const ck_plan_node *from,
                             const ck_planned_input *in) {
    CK_TRY(sets_nothing_aside(s, &table->table));
    const ck_schema *schema = table->table.decl.schema;
    ck_planned_input *own = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    ck_lowered producer = {.op = in->op};
    uint32_t op_number;
    if (!own) return CK_NOMEM;
    *own = *in;
    ck_output o = {.table = table, .schema = schema};
    ck_planned_op op = {.inputs = own, .input_count = 1, .canonical = from->canonical, .schema = schema};
    CK_TRY(table_sink(s, &o, &producer, own, &op));
    return ck_lower_add(s, &op, &op_number);
}
