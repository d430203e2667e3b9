/* What the columns that an operator sees are made of, read off a job graph: the table and column they come from, and
 * the expressions on the way. Fields of state are named by columns ("sum(y)"), and a name does not tell when a script
 * that was changed has another column under it. Operators come behind their inputs, so each is looked at once; what is
 * not known of a column (0) is nowhere held against it. */
#include <stdio.h>
#include <yyjson.h>

#include "base/hash.h"
#include "base/json.h"
#include "runtime/evolve.h"

typedef struct reading {
    ck_arena *arena;
    const ck_graph *g;
    ck_error *err;
    uint64_t *const *columns; /* by operator */
} reading;

static ck_status nomem(const reading *r) { return ck_nomem(r->err, r->arena->mem, 0); }
static uint64_t word(const char *z) { return ck_fnv1a(z, strlen(z)); }

static const uint64_t *input_of(const reading *r, const ck_graph_op *op, uint32_t i, uint32_t *count) {
    const ck_graph_op *in = ck_graph_find(r->g, op->inputs[i].uid);
    *count = in && op->inputs[i].port == 0 ? in->schema->field_count : 0;
    return in ? r->columns[in - r->g->ops] : NULL;
}

/* ---- expressions ---- */

static bool counts(yyjson_val *of, const char *member) {
    if (strcmp(member, "at") == 0 || strcmp(member, "null") == 0) return false;
    const char *fn = yyjson_get_str(yyjson_obj_get(of, "fn"));
    return strcmp(member, "type") != 0 || (fn && strstr(fn, "cast"));
}

static uint64_t of_value(yyjson_val *v) {
    char text[64];
    if (yyjson_is_str(v)) return ck_fnv1a(yyjson_get_str(v), yyjson_get_len(v));
    if (yyjson_is_bool(v)) return word(yyjson_get_bool(v) ? "true" : "false");
    if (yyjson_is_real(v))
        (void)snprintf(text, sizeof text, "%a", yyjson_get_real(v));
    else if (yyjson_is_sint(v))
        (void)snprintf(text, sizeof text, "%lld", (long long)yyjson_get_sint(v));
    else if (yyjson_is_uint(v))
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)yyjson_get_uint(v));
    else
        return word("null");
    return word(text);
}

/* Expressions are of limited depth. */
static uint64_t of_expr(yyjson_val *v, const uint64_t *in, uint32_t count) {
    uint64_t h = word("expr"), part;
    size_t i, n;
    yyjson_val *key, *value;
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach(v, i, n, value) {
            if (!(part = of_expr(value, in, count))) return 0;
            h = ck_hash_combine(h, part);
        }
        return h;
    }
    if (!yyjson_is_obj(v)) return of_value(v);
    if ((value = yyjson_obj_get(v, "col"))) return yyjson_get_uint(value) < count ? in[yyjson_get_uint(value)] : 0;
    yyjson_obj_foreach(v, i, n, key, value) {
        if (!counts(v, yyjson_get_str(key))) continue;
        if (!(part = of_expr(value, in, count))) return 0;
        h = ck_hash_combine(ck_hash_combine(h, of_value(key)), part);
    }
    return h;
}

/* ---- operators ---- */

static void of_source(const ck_graph_op *op, yyjson_val *root, uint64_t *to) {
    yyjson_val *schema = yyjson_obj_get(root, "table_schema"), *columns = yyjson_obj_get(root, "columns");
    uint64_t table = ck_fnv1a(op->uid, strcspn(op->uid, "~"));
    for (uint32_t i = 0; schema && i < op->schema->field_count; i++) {
        yyjson_val *field = yyjson_arr_get(schema, yyjson_get_uint(yyjson_arr_get(columns, i)));
        const char *was = yyjson_get_str(yyjson_obj_get(field, "renamed_from"));
        const char *name = was ? was : yyjson_get_str(yyjson_obj_get(field, "name"));
        if (name) to[i] = ck_hash_combine(table, word(name));
    }
}

static uint64_t of_column(yyjson_val *number, const uint64_t *in, uint32_t count) {
    return yyjson_is_uint(number) && yyjson_get_uint(number) < count ? in[yyjson_get_uint(number)] : 0;
}

static uint64_t of_call(yyjson_val *call, const uint64_t *in, uint32_t count) {
    yyjson_val *arg = yyjson_obj_get(call, "arg"), *filter = yyjson_obj_get(call, "filter");
    uint64_t h = ck_hash_combine(word("call"), of_value(yyjson_obj_get(call, "fn")));
    h = ck_hash_combine(h, of_value(yyjson_obj_get(call, "distinct")));
    if (yyjson_obj_get(call, "order")) return 0;
    if (yyjson_is_uint(arg) && !of_column(arg, in, count)) return 0;
    if (yyjson_is_uint(filter) && !of_column(filter, in, count)) return 0;
    return ck_hash_combine(ck_hash_combine(h, of_column(arg, in, count)), of_column(filter, in, count));
}

static void of_group(const ck_graph_op *op, yyjson_val *root, const uint64_t *in, uint32_t count, uint64_t *to) {
    yyjson_val *keys = yyjson_obj_get(root, "keys"), *calls = yyjson_obj_get(root, "aggregates");
    size_t n = yyjson_arr_size(keys);
    for (uint32_t i = 0; i < op->schema->field_count; i++)
        to[i] =
            i < n ? of_column(yyjson_arr_get(keys, i), in, count) : of_call(yyjson_arr_get(calls, i - n), in, count);
}

static bool passes_rows(const char *type) {
    static const char *const types[] = {"filter", "limit", "sort", "materialise"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(types); i++)
        if (strcmp(type, types[i]) == 0) return true;
    return false;
}

static void of_one_input(const reading *r, const ck_graph_op *op, yyjson_val *root, uint64_t *to) {
    uint32_t count;
    const uint64_t *in = input_of(r, op, 0, &count);
    if (!in) return;
    if (passes_rows(op->type) && count == op->schema->field_count) memcpy(to, in, count * sizeof *to);
    if (strcmp(op->type, "project") == 0)
        for (uint32_t i = 0; i < op->schema->field_count; i++)
            to[i] = of_expr(yyjson_arr_get(yyjson_obj_get(root, "exprs"), i), in, count);
    if (strcmp(op->type, "group_agg") == 0) of_group(op, root, in, count, to);
}

/* Rows of a join are those of its left side, and of the right one behind them. */
static void of_join(const reading *r, const ck_graph_op *op, uint64_t *to) {
    uint32_t left, right;
    const uint64_t *a = input_of(r, op, 0, &left), *b = input_of(r, op, 1, &right);
    bool both = left + right == op->schema->field_count;
    if (!a || !b || (!both && left != op->schema->field_count)) return;
    memcpy(to, a, left * sizeof *to);
    if (both) memcpy(to + left, b, right * sizeof *to);
}

static ck_status read_op(const reading *r, uint32_t number, uint64_t *to) {
    const ck_graph_op *op = &r->g->ops[number];
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(r->arena, ck_view_of(op->params), &doc, r->err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (op->input_count == 0) of_source(op, root, to);
    if (op->input_count == 1) of_one_input(r, op, root, to);
    if (op->input_count == 2 && strcmp(op->type, "join") == 0) of_join(r, op, to);
    return CK_OK;
}

ck_status ck_graph_columns(ck_arena *a, const ck_graph *g, uint64_t ***out, ck_error *err) {
    reading r = {.arena = a, .g = g, .err = err};
    uint64_t **columns = ck_arena_array(a, g->op_count + 1u, sizeof *columns);
    r.columns = columns;
    if (!columns) return nomem(&r);
    for (uint32_t i = 0; i < g->op_count; i++) {
        columns[i] = ck_arena_array(a, g->ops[i].schema->field_count + 1u, sizeof *columns[i]);
        if (!columns[i]) return nomem(&r);
        CK_TRY(read_op(&r, i, columns[i]));
    }
    *out = columns;
    return CK_OK;
}

/* ---- names ---- */

static void add_name(ck_seen_columns *n, uint32_t input, const char *name, uint64_t meaning, uint32_t nearer) {
    for (uint32_t i = 0; i < nearer; i++)
        if (n->list[i].input == input && strcmp(n->list[i].name, name) == 0) return;
    n->list[n->count++] = (ck_seen_column){input, name, meaning};
}

/* What calls say of their arguments: columns below may have lost the names that the script gives them. */
static void add_calls(ck_seen_columns *n, yyjson_val *calls, const uint64_t *in, uint32_t count) {
    static const char *const members[][2] = {{"arg_text", "arg"}, {"filter_text", "filter"}};
    size_t i, all;
    yyjson_val *call;
    yyjson_arr_foreach(calls, i, all, call) for (size_t k = 0; k < CK_ARRAY_COUNT(members); k++) {
        const char *text = yyjson_get_str(yyjson_obj_get(call, members[k][0]));
        yyjson_val *column = yyjson_obj_get(call, members[k][1]);
        if (text) add_name(n, 0, text, of_column(column, in, count), n->count);
    }
}

ck_status ck_seen_columns_of(ck_arena *a, const ck_graph *g, uint64_t *const *columns, const ck_graph_op *op,
                             ck_seen_columns *out, ck_error *err) {
    const reading r = {.arena = a, .g = g, .err = err, .columns = columns};
    struct yyjson_doc *doc;
    uint32_t most = 0, count = 0;
    *out = (ck_seen_columns){0};
    CK_TRY(ck_json_read(a, ck_view_of(op->params), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *calls[] = {yyjson_obj_get(root, "aggregates"), yyjson_obj_get(root, "calls")};
    for (uint32_t i = 0; i < op->input_count; i++) {
        (void)input_of(&r, op, i, &count);
        most += count;
    }
    most += 2 * (uint32_t)(yyjson_arr_size(calls[0]) + yyjson_arr_size(calls[1]));
    if (!(out->list = ck_arena_array(a, most + 1u, sizeof *out->list))) return nomem(&r);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint64_t *in = input_of(&r, op, i, &count);
        for (size_t k = 0; i == 0 && k < CK_ARRAY_COUNT(calls); k++) add_calls(out, calls[k], in, count);
        uint32_t nearer = out->count;
        const ck_graph_op *from = ck_graph_find(g, op->inputs[i].uid);
        for (uint32_t c = 0; c < count; c++) add_name(out, i, from->schema->fields[c].name, in[c], nearer);
    }
    return CK_OK;
}

/* ---- fields ---- */

static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

/* The bytes of a column's name at a place of a text; 0: it does not stand there. */
static size_t column_at(const char *z, const char *column) {
    size_t n = strlen(column);
    if (n == 0) return 0;
    if (*z == '"' && strncmp(z + 1, column, n) == 0 && z[n + 1] == '"') return n + 2;
    if (strncmp(z, column, n) != 0 || (in_word(column[n - 1]) && in_word(z[n]))) return 0;
    return z[n] == '(' && in_word(column[n - 1]) ? 0 : n; /* a function of that name */
}

/* Behind what stands at z and is no column: a text in quotes, a word, a character. */
static size_t other_at(const char *z) {
    size_t n = 1;
    if (*z == '\'') {
        while (z[n] && (z[n] != '\'' || z[n + 1] == '\'')) n += z[n] == '\'' ? 2 : 1;
        return n + (z[n] != 0);
    }
    while (in_word(*z) && in_word(z[n])) n++;
    return n;
}

/* Rows of OVER name a column with its place before it ("2_w"). */
static const char *behind_place(const char *field) {
    const char *z = field;
    while (*z >= '0' && *z <= '9') z++;
    return z > field && *z == '_' ? z + 1 : field;
}

/* Sides of a join keep theirs alone. */
static bool is_seen_by(const char *slot, uint32_t input) {
    bool left = strncmp(slot, "left", 4) == 0, right = strncmp(slot, "right", 5) == 0;
    return left ? input == 0 : right ? input == 1 : true;
}

/* Names may be expressions ("cast(x AS BIGINT)"): the longest at z. False: it is not known, or of two meanings. */
static bool longest_at(const ck_seen_columns *names, const char *slot, const char *z, size_t *bytes,
                       uint64_t *meaning) {
    bool one = true;
    *bytes = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        const ck_seen_column *c = &names->list[i];
        size_t n = is_seen_by(slot, c->input) ? column_at(z, c->name) : 0;
        if (n > *bytes) {
            *bytes = n, *meaning = c->meaning, one = c->meaning != 0;
        } else if (n && n == *bytes) {
            one &= *meaning == c->meaning;
        }
    }
    return one;
}

uint64_t ck_field_meaning(const ck_seen_columns *names, const char *slot, const char *field) {
    uint64_t h = word("field"), meaning = 0;
    bool any = false;
    size_t n;
    if (!longest_at(names, slot, field, &n, &meaning)) return 0;
    for (const char *z = n ? field : behind_place(field); *z;) {
        if (!longest_at(names, slot, z, &n, &meaning)) return 0;
        any |= n > 0;
        if (n == 0) n = other_at(z), meaning = ck_fnv1a(z, n);
        h = ck_hash_combine(h, meaning);
        z += n;
    }
    return any ? h : 0;
}
