/* See graph.h. Checking and sorting; the JSON side is json.c. */
#include "graph/graph_int.h"

#include "base/map.h"

enum { UID_BYTES_MAX = 1024 };

ck_status ck_graph_builder_init(ck_graph_builder *b, ck_arena *arena, const char *name) {
    *b = (ck_graph_builder){.arena = arena, .graph = CK_ARENA_NEW(arena, ck_graph)};
    if (!b->graph) return CK_NOMEM;
    b->graph->name = ck_arena_strdup(arena, name ? name : "");
    b->graph->key_groups = CK_KEY_GROUPS_DEFAULT;
    return b->graph->name ? CK_OK : CK_NOMEM;
}

ck_status ck_graph_add(ck_graph_builder *b, const ck_graph_op *op, ck_graph_op **out) {
    if (b->count == CK_GRAPH_OPS_MAX) return CK_FULL;
    if (b->count == b->capacity) {
        uint32_t capacity = b->capacity ? b->capacity * 2 : 16;
        ck_graph_op **ops = ck_arena_array(b->arena, capacity, sizeof *ops);
        if (!ops) return CK_NOMEM;
        if (b->count) memcpy(ops, b->ops, b->count * sizeof *ops);
        b->ops = ops;
        b->capacity = capacity;
    }
    ck_graph_op *copy = CK_ARENA_NEW(b->arena, ck_graph_op);
    if (!copy) return CK_NOMEM;
    *copy = *op;
    b->ops[b->count++] = copy;
    if (out) *out = copy;
    return CK_OK;
}

const ck_graph_op *ck_graph_find(const ck_graph *g, const char *uid) {
    for (uint32_t i = 0; i < g->op_count; i++)
        if (strcmp(g->ops[i].uid, uid) == 0) return &g->ops[i];
    return NULL;
}

ck_op_spec *ck_graph_op_spec(ck_arena *a, const ck_graph *g, const ck_graph_op *op) {
    ck_op_spec *spec = CK_ARENA_NEW(a, ck_op_spec);
    ck_op_input *inputs = ck_arena_array(a, op->input_count + 1u, sizeof *inputs);
    if (!spec || !inputs) return NULL;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_graph_input *in = &op->inputs[i];
        const ck_graph_op *from = ck_graph_find(g, in->uid);
        CK_ASSERT(from); /* ck_graph_check has seen it */
        /* What leaves by a side output the graph does not describe: it is what its consumer takes. */
        inputs[i] = (ck_op_input){in->port == 0 ? from->schema : op->schema, in->mode, in->bounded};
    }
    *spec = (ck_op_spec){.uid = op->uid,
                         .type = op->type,
                         .params = op->params,
                         .inputs = inputs,
                         .input_count = op->input_count,
                         .schema = op->schema,
                         .final = op->final,
                         .parallelism = 1};
    return spec;
}

/* ---- one operator by itself ---- */

static ck_status check_uid(const char *uid, ck_error *err) {
    size_t n = uid ? strlen(uid) : 0;
    if (n == 0) return ck_fail(err, CK_INVALID, "job graph: an operator has no uid");
    if (n > UID_BYTES_MAX)
        return ck_fail(err, CK_INVALID, "job graph: uid \"%.60s...\" has %zu bytes, the most is %d", uid, n,
                       UID_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)uid[i] < 0x20) return ck_fail(err, CK_INVALID, "job graph: a uid has a control character");
    return CK_OK;
}

static ck_status check_parallelism(const ck_graph *g, const ck_graph_op *op, ck_error *err) {
    if (op->parallelism > g->key_groups)
        return ck_fail(err, CK_INVALID, "operator %s: parallelism %u is above the %u key groups", op->uid,
                       op->parallelism, g->key_groups);
    bool min_set = op->min_parallelism != CK_PARALLELISM_DEFAULT,
         max_set = op->max_parallelism != CK_PARALLELISM_DEFAULT;
    if (min_set != max_set)
        return ck_fail(err, CK_INVALID, "operator %s: min_parallelism and max_parallelism go together", op->uid);
    if (min_set && op->min_parallelism > op->max_parallelism)
        return ck_fail(err, CK_INVALID, "operator %s: min_parallelism %u is above max_parallelism %u", op->uid,
                       op->min_parallelism, op->max_parallelism);
    return CK_OK;
}

static ck_status check_op(ck_graph_builder *b, ck_graph_op *op, ck_error *err) {
    CK_TRY(check_uid(op->uid, err));
    if (!op->type || !op->type[0]) return ck_fail(err, CK_INVALID, "operator %s has no type", op->uid);
    if (!op->schema || op->schema->field_count > CK_SQL_COLUMNS_MAX)
        return ck_fail(err, CK_INVALID, "operator %s has no schema or one of more than %d columns", op->uid,
                       CK_SQL_COLUMNS_MAX);
    if (op->input_count > CK_GRAPH_INPUTS_MAX)
        return ck_fail(err, CK_INVALID, "operator %s has %u inputs, the most is %d", op->uid, op->input_count,
                       CK_GRAPH_INPUTS_MAX);
    if (!op->params) op->params = "{}";
    CK_TRY(ck_graph_check_object(b->arena, op->params, op->uid, "params", err));
    for (uint32_t i = 0; i < op->key_count; i++)
        if (op->key[i] >= op->schema->field_count)
            return ck_fail(err, CK_INVALID, "operator %s: key column %u is not in its schema of %u", op->uid,
                           op->key[i], op->schema->field_count);
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].kind == CK_EDGE_GATHER && op->parallelism == 0) op->parallelism = 1;
    return check_parallelism(b->graph, op, err);
}

/* ---- edges ---- */

static ck_status check_hash_edge(const ck_graph_op *op, const ck_graph_input *in, const ck_graph_op *from,
                                 ck_error *err) {
    if (in->port != 0)
        return ck_fail(err, CK_INVALID, "operator %s: a side output of %s cannot be hashed", op->uid, from->uid);
    for (uint32_t k = 0; k < in->key_count; k++)
        if (in->key[k] >= from->schema->field_count)
            return ck_fail(err, CK_INVALID, "operator %s: input %s is hashed on column %u of %u", op->uid, from->uid,
                           in->key[k], from->schema->field_count);
    return CK_OK;
}

static ck_status check_edge(const ck_graph_op *op, const ck_graph_input *in, const ck_graph_op *from, ck_error *err) {
    if (in->kind != CK_EDGE_HASH && in->key_count)
        return ck_fail(err, CK_INVALID, "operator %s: the %s edge from %s has a key", op->uid,
                       ck_edge_kind_name(in->kind), from->uid);
    switch (in->kind) {
    case CK_EDGE_HASH: return check_hash_edge(op, in, from, err);
    case CK_EDGE_REBALANCE:
        if (in->mode == CK_MODE_APPEND) return CK_OK;
        return ck_fail(err, CK_INVALID, "operator %s: the %s edge from %s cannot be rebalanced", op->uid,
                       ck_edge_mode_name(in->mode), from->uid);
    case CK_EDGE_GATHER:
        if (op->parallelism == 1) return CK_OK;
        return ck_fail(err, CK_INVALID, "operator %s gathers from %s and must have parallelism 1, not %u", op->uid,
                       from->uid, op->parallelism);
    case CK_EDGE_FORWARD:
    case CK_EDGE_BROADCAST: return CK_OK;
    }
    return ck_fail(err, CK_INVALID, "operator %s: input %s has an unknown edge kind %d", op->uid, from->uid, in->kind);
}

static ck_status check_inputs(const ck_graph_op *op, const ck_map *by_uid, ck_error *err) {
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_graph_input *in = &op->inputs[i];
        if (in->mode > CK_MODE_UPSERT) return ck_fail(err, CK_INVALID, "operator %s: unknown edge mode", op->uid);
        ck_graph_op *const *from = in->uid ? ck_map_get(by_uid, ck_view_of(in->uid)) : NULL;
        if (!from)
            return ck_fail(err, CK_INVALID, "operator %s: its input %s is not in the graph", op->uid,
                           in->uid ? in->uid : "(no uid)");
        CK_TRY(check_edge(op, in, *from, err));
    }
    return CK_OK;
}

/* ---- order ---- */

/* Stable: always the earliest added operator whose inputs all stand already. placed[i]: op i stands. */
static bool ready(const ck_graph_builder *b, const ck_graph_op *op, const ck_map *by_uid, const bool *placed) {
    for (uint32_t i = 0; i < op->input_count; i++) {
        ck_graph_op *const *from = ck_map_get(by_uid, ck_view_of(op->inputs[i].uid));
        if (!placed[from - b->ops]) return false;
    }
    return true;
}

static ck_status sort_ops(ck_graph_builder *b, const ck_map *by_uid, ck_error *err) {
    ck_graph *g = b->graph;
    bool *placed = ck_arena_array(b->arena, b->count, sizeof *placed);
    g->ops = ck_arena_array(b->arena, b->count, sizeof *g->ops);
    if (b->count && (!placed || !g->ops)) return ck_nomem(err, b->arena->mem, b->count * sizeof *g->ops);
    while (g->op_count < b->count) {
        uint32_t stuck = b->count;
        bool moved = false;
        for (uint32_t i = 0; i < b->count && !moved; i++) {
            if (placed[i]) continue;
            stuck = i;
            if (!ready(b, b->ops[i], by_uid, placed)) continue;
            placed[i] = moved = true;
            g->ops[g->op_count++] = *b->ops[i];
        }
        if (!moved)
            return ck_fail(err, CK_INVALID, "job graph: operator %s waits for its own output", b->ops[stuck]->uid);
    }
    return CK_OK;
}

/* ---- the whole ---- */

static ck_status check_settings(ck_graph_builder *b, ck_error *err) {
    ck_graph *g = b->graph;
    if (g->key_groups < CK_KEY_GROUPS_MIN || g->key_groups > CK_KEY_GROUPS_MAX)
        return ck_fail(err, CK_INVALID, "job graph: key_groups %u is not between %d and %d", g->key_groups,
                       CK_KEY_GROUPS_MIN, CK_KEY_GROUPS_MAX);
    if (!g->name) g->name = "";
    if (!g->timezone) g->timezone = "UTC";
    if (!g->settings) g->settings = "{}";
    return ck_graph_check_object(b->arena, g->settings, "job graph", "settings", err);
}

/* uid -> its slot in b->ops; also: no uid twice, no two uids of one id. */
static ck_status index_by_uid(ck_graph_builder *b, ck_map *by_uid, ck_error *err) {
    uint64_t *ids = ck_arena_array(b->arena, b->count, sizeof *ids);
    if (!ids) return ck_nomem(err, b->arena->mem, b->count * sizeof *ids);
    ck_map_init(by_uid, b->arena, false);
    for (uint32_t i = 0; i < b->count; i++) {
        void *was;
        if (ck_map_put(by_uid, ck_view_of(b->ops[i]->uid), &b->ops[i], &was) != CK_OK)
            return ck_nomem(err, b->arena->mem, sizeof(ck_map_entry));
        if (was) return ck_fail(err, CK_INVALID, "job graph: two operators have the uid %s", b->ops[i]->uid);
        ids[i] = ck_op_id(b->ops[i]->uid);
        for (uint32_t k = 0; k < i; k++)
            if (ids[k] == ids[i])
                return ck_fail(err, CK_INVALID, "job graph: uids %s and %s have the same id", b->ops[k]->uid,
                               b->ops[i]->uid);
    }
    return CK_OK;
}

static ck_status fill_fingerprints(ck_graph_builder *b, ck_error *err) {
    ck_graph *g = b->graph;
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < g->op_count && s == CK_OK; i++)
        if (!g->ops[i].semantic_fingerprint)
            s = ck_graph_semantic_hash(b->arena, g, &g->ops[i], &g->ops[i].semantic_fingerprint);
    if (s == CK_OK) s = ck_graph_canonical_hash(b->arena, g, &g->hash);
    if (s == CK_INVALID) return ck_fail(err, CK_INVALID, "job graph: a name in it is not UTF-8");
    return s == CK_OK ? CK_OK : ck_nomem(err, b->arena->mem, 4096);
}

ck_status ck_graph_check(ck_graph_builder *b, ck_graph **out, ck_error *err) {
    ck_map by_uid;
    if (b->count == 0) return ck_fail(err, CK_INVALID, "job graph: there is no operator in it");
    CK_TRY(check_settings(b, err));
    for (uint32_t i = 0; i < b->count; i++) CK_TRY(check_op(b, b->ops[i], err));
    CK_TRY(index_by_uid(b, &by_uid, err));
    for (uint32_t i = 0; i < b->count; i++) CK_TRY(check_inputs(b->ops[i], &by_uid, err));
    CK_TRY(sort_ops(b, &by_uid, err));
    CK_TRY(fill_fingerprints(b, err));
    *out = b->graph;
    return CK_OK;
}
