/* Expressions to steps (eval_int.h). Walks each tree once, in the order SQL evaluates it, handing down the scope: the
 * rows for which the value is wanted. Lazy forms make narrower scopes for the parts that not every row reaches. */
#include "expr/compile_int.h"

#include "expr/lazy.h"

/* ---- growing arrays in the arena ---- */

static ck_status grow(ck_compiler *c, void **items, uint32_t *capacity, uint32_t count, size_t size) {
    if (count < *capacity) return CK_OK;
    uint32_t more = *capacity ? *capacity * 2 : 16;
    void *bigger = ck_arena_array(c->arena, more, size);
    if (!bigger) return ck_nomem(c->err, c->arena->mem, more * size);
    if (count) memcpy(bigger, *items, count * size);
    *items = bigger, *capacity = more;
    return CK_OK;
}

ck_status ck_compile_step(ck_compiler *c, const ck_step *step) {
    CK_TRY(grow(c, (void **)&c->code->steps, &c->step_capacity, c->code->step_count, sizeof *step));
    ck_code *code = c->code;
    code->steps[code->step_count++] = *step;
    uint32_t args = step->op == CK_STEP_CALL ? code->nodes[step->node].arg_count : step->arg_count;
    if (args > code->args_max) code->args_max = args;
    if (step->layer_count > code->layers_max) code->layers_max = step->layer_count;
    return CK_OK;
}

ck_status ck_compile_scope(ck_compiler *c, uint32_t parent, uint32_t *out) {
    CK_TRY(grow(c, (void **)&c->scope_parent, &c->scope_capacity, c->code->scope_count, sizeof(uint32_t)));
    c->scope_parent[c->code->scope_count] = parent;
    *out = c->code->scope_count++;
    return CK_OK;
}

static ck_status add_node(ck_compiler *c, const ck_node *node, uint32_t *out) {
    uint32_t i = c->code->node_count;
    if (i == c->node_capacity) {
        uint32_t chain_capacity = c->node_capacity;
        CK_TRY(grow(c, (void **)&c->chain, &chain_capacity, i, sizeof(uint32_t)));
    }
    CK_TRY(grow(c, (void **)&c->code->nodes, &c->node_capacity, i, sizeof *node));
    c->code->nodes[i] = *node;
    uint32_t *head = &c->heads[node->hash % CK_COMPILE_HEADS];
    c->chain[i] = *head, *head = i;
    c->code->node_count++;
    *out = i;
    return CK_OK;
}

/* ---- sharing ---- */

static bool lies_in(const ck_compiler *c, uint32_t scope, uint32_t outer) {
    while (scope != outer && scope != 0) scope = c->scope_parent[scope];
    return scope == outer;
}

/* Two calls of random() are two values; one node used twice is one. */
static bool same_value(const ck_expr *a, const ck_expr *b) {
    if (a == b) return true;
    return ck_expr_equal(a, b) && !ck_expr_any_flag(a, CK_FN_VOLATILE);
}

uint32_t ck_compile_find(const ck_compiler *c, const ck_expr *e, uint32_t scope) {
    for (uint32_t i = c->heads[e->hash % CK_COMPILE_HEADS]; i != CK_NONE; i = c->chain[i]) {
        const ck_node *n = &c->code->nodes[i];
        if (n->expr && n->hash == e->hash && lies_in(c, scope, n->scope) && same_value(n->expr, e)) return i;
    }
    return CK_NONE;
}

ck_status ck_compile_state(ck_compiler *c, const ck_expr *e, uint32_t *out) {
    *out = CK_NONE;
    if (!e->impl->prepare) return CK_OK;
    ck_program *p = c->program;
    for (uint32_t i = 0; i < p->prepared_count; i++)
        if (ck_expr_equal(p->prepared[i], e)) {
            *out = i;
            return CK_OK;
        }
    CK_TRY(grow(c, (void **)&p->prepared, &c->prepared_capacity, p->prepared_count, sizeof(ck_expr *)));
    p->prepared[p->prepared_count] = e;
    *out = p->prepared_count++;
    return CK_OK;
}

/* ---- values ---- */

static uint32_t node_count_of(const ck_expr *e, uint32_t limit) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < e->arg_count && n < limit; i++) n += node_count_of(e->args[i], limit - n);
    return n;
}

static bool all_cheap(const ck_expr *e) {
    if (e->kind == CK_EXPR_CALL && !(ck_expr_flags(e) & CK_FN_CHEAP)) return false;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (!all_cheap(e->args[i])) return false;
    return true;
}

/* Computing it for every row costs less than finding out which rows need it. */
bool ck_compile_is_cheap(const ck_expr *e) { return node_count_of(e, 10) < 10 && all_cheap(e); }

ck_status ck_compile_args(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t **out) {
    uint32_t count = ck_expr_computed_args(e);
    uint32_t *nodes = ck_arena_array(c->arena, count ? count : 1, sizeof *nodes);
    if (!nodes) return ck_nomem(c->err, c->arena->mem, count * sizeof *nodes);
    for (uint32_t i = 0; i < count; i++) CK_TRY(ck_compile_value(c, e->args[i], scope, &nodes[i]));
    *out = nodes;
    return CK_OK;
}

static ck_status compile_strict(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out) {
    bool fixed = ck_expr_is_constant(e);
    if (fixed) scope = 0;
    uint32_t *args = NULL, state;
    CK_TRY(ck_compile_args(c, e, scope, &args));
    CK_TRY(ck_compile_state(c, e, &state));
    ck_node node = {.kind = CK_NODE_CALL,
                    .expr = e,
                    .hash = e->hash,
                    .scope = scope,
                    .args = args,
                    .arg_count = ck_expr_computed_args(e),
                    .state = state,
                    .fixed = fixed,
                    .lasting = fixed};
    CK_TRY(add_node(c, &node, out));
    return ck_compile_step(c, &(ck_step){.op = CK_STEP_CALL, .node = *out, .from = scope});
}

/* AND and OR of two or more, left to right. */
static ck_status compile_both(ck_compiler *c, const ck_expr *e, bool is_and, uint32_t scope, uint32_t *out) {
    uint32_t left;
    CK_TRY(ck_compile_value(c, e->args[0], scope, &left));
    for (uint32_t i = 1; i < e->arg_count; i++) {
        uint32_t where = scope, right;
        if (!ck_compile_is_cheap(e->args[i])) {
            CK_TRY(ck_compile_scope(c, scope, &where));
            ck_step narrow = {.op = CK_STEP_WHERE,
                              .where = is_and ? CK_WHERE_NOT_FALSE : CK_WHERE_NOT_TRUE,
                              .node = left,
                              .from = scope,
                              .to = where,
                              .marks = CK_NONE};
            CK_TRY(ck_compile_step(c, &narrow));
        }
        CK_TRY(ck_compile_value(c, e->args[i], where, &right));
        uint32_t *args = ck_arena_array(c->arena, 2, sizeof *args);
        if (!args) return ck_nomem(c->err, c->arena->mem, 2 * sizeof *args);
        args[0] = left, args[1] = right;
        bool last = i + 1 == e->arg_count;
        ck_node node = {.kind = CK_NODE_BOTH,
                        .expr = last ? e : NULL,
                        .hash = last ? e->hash : 0,
                        .scope = scope,
                        .args = args,
                        .arg_count = 2,
                        .state = CK_NONE};
        CK_TRY(add_node(c, &node, out));
        ck_step both = {.op = CK_STEP_BOTH,
                        .where = is_and ? CK_WHERE_NOT_FALSE : CK_WHERE_NOT_TRUE,
                        .node = *out,
                        .from = scope,
                        .other = where};
        CK_TRY(ck_compile_step(c, &both));
        left = *out;
    }
    return CK_OK;
}

typedef struct layers {
    ck_layer *items;
    uint32_t count;
} layers;

static ck_status new_layers(ck_compiler *c, uint32_t most, layers *out) {
    out->items = ck_arena_array(c->arena, most, sizeof *out->items);
    out->count = 0;
    return out->items ? CK_OK : ck_nomem(c->err, c->arena->mem, most * sizeof *out->items);
}

static ck_status compile_merge(ck_compiler *c, const ck_expr *e, uint32_t scope, const layers *l, uint32_t marks,
                               uint32_t *out) {
    ck_node node = {.kind = CK_NODE_MERGE, .expr = e, .hash = e->hash, .scope = scope, .state = CK_NONE};
    CK_TRY(add_node(c, &node, out));
    return ck_compile_step(c, &(ck_step){.op = CK_STEP_MERGE,
                                         .node = *out,
                                         .from = scope,
                                         .marks = marks,
                                         .layers = l->items,
                                         .layer_count = l->count});
}

ck_status ck_compile_minus(ck_compiler *c, uint32_t from, uint32_t other, uint32_t marks, uint32_t *out) {
    CK_TRY(ck_compile_scope(c, from, out));
    return ck_compile_step(c,
                           &(ck_step){.op = CK_STEP_MINUS, .from = from, .other = other, .to = *out, .marks = marks});
}

static ck_status null_node(ck_compiler *c, const ck_type *type, uint32_t *out) {
    ck_expr *null = ck_expr_null(c->arena, type);
    if (!null) return ck_nomem(c->err, c->arena->mem, sizeof *null);
    return ck_compile_value(c, null, 0, out);
}

/* case(cond, value, cond, value, ..., [else]) */
static ck_status compile_case(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out) {
    uint32_t marks = c->code->mark_list_count++, left = scope, count = e->arg_count;
    layers l;
    CK_TRY(new_layers(c, count / 2 + 1, &l));
    /* An ELSE that costs nothing lies below everything, so that its rows need not be found. */
    const ck_expr *otherwise = count % 2 ? e->args[count - 1] : NULL;
    bool below = !otherwise || otherwise->kind != CK_EXPR_CALL;
    uint32_t node;
    if (below) {
        if (otherwise)
            CK_TRY(ck_compile_value(c, otherwise, scope, &node));
        else
            CK_TRY(null_node(c, e->type, &node));
        l.items[l.count++] = (ck_layer){scope, node};
    }
    for (uint32_t i = 0; i + 1 < count; i += 2) {
        uint32_t hit;
        CK_TRY(ck_compile_where(c, e->args[i], left, marks, &hit));
        CK_TRY(ck_compile_value(c, e->args[i + 1], hit, &node));
        l.items[l.count++] = (ck_layer){hit, node};
        if (i + 3 < count || !below) CK_TRY(ck_compile_minus(c, left, hit, marks, &left));
    }
    if (!below) {
        CK_TRY(ck_compile_value(c, otherwise, left, &node));
        l.items[l.count++] = (ck_layer){left, node};
    }
    return compile_merge(c, e, scope, &l, marks, out);
}

static ck_status compile_coalesce(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out) {
    layers l;
    CK_TRY(new_layers(c, e->arg_count, &l));
    uint32_t left = scope;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        uint32_t node, next;
        CK_TRY(ck_compile_value(c, e->args[i], left, &node));
        l.items[l.count++] = (ck_layer){left, node};
        if (i + 1 == e->arg_count) break;
        CK_TRY(ck_compile_scope(c, left, &next));
        CK_TRY(ck_compile_step(c, &(ck_step){.op = CK_STEP_WHERE,
                                             .where = CK_WHERE_NULL,
                                             .node = node,
                                             .from = left,
                                             .to = next,
                                             .marks = CK_NONE}));
        left = next;
    }
    return compile_merge(c, e, scope, &l, CK_NONE, out);
}

static ck_status call(ck_compiler *c, const char *name, const ck_expr *x, const ck_expr *y, ck_expr **out) {
    ck_expr *args[2] = {(ck_expr *)(uintptr_t)x, (ck_expr *)(uintptr_t)y};
    CK_TRY(ck_expr_call(c->arena, name, args, 2, out, c->err));
    if (!(*out)->line) (*out)->line = x->line, (*out)->col = x->col;
    return CK_OK;
}

/* nullif(a, b): a, with NULL over the rows where they are equal. */
static ck_status compile_nullif(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out) {
    uint32_t marks = c->code->mark_list_count++, hit, node;
    layers l;
    ck_expr *equal;
    CK_TRY(new_layers(c, 2, &l));
    CK_TRY(ck_compile_value(c, e->args[0], scope, &node));
    l.items[l.count++] = (ck_layer){scope, node};
    CK_TRY(call(c, "=", e->args[0], e->args[1], &equal));
    CK_TRY(ck_compile_where(c, equal, scope, marks, &hit));
    CK_TRY(null_node(c, e->type, &node));
    l.items[l.count++] = (ck_layer){hit, node};
    return compile_merge(c, e, scope, &l, marks, out);
}

/* The plainer form of between and of IN with a list that is not constant. */
ck_status ck_compile_take_apart(ck_compiler *c, const ck_expr *e, ck_expr **out) {
    const ck_expr *x = e->args[0];
    ck_expr **parts = ck_arena_array(c->arena, e->arg_count, sizeof *parts);
    if (!parts) return ck_nomem(c->err, c->arena->mem, e->arg_count * sizeof *parts);
    const char *join = "or";
    if (e->impl->op == CK_LAZY_BETWEEN) {
        CK_TRY(call(c, ">=", x, e->args[1], &parts[0]));
        CK_TRY(call(c, "<=", x, e->args[2], &parts[1]));
        join = "and";
    } else {
        for (uint32_t i = 1; i < e->arg_count; i++) CK_TRY(call(c, "=", x, e->args[i], &parts[i - 1]));
    }
    if (e->arg_count == 2) {
        *out = parts[0];
        return CK_OK;
    }
    return ck_expr_call(c->arena, join, parts, e->arg_count - 1, out, c->err);
}

static ck_status compile_lazy(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out) {
    switch ((ck_lazy_form)e->impl->op) {
    case CK_LAZY_AND: return compile_both(c, e, true, scope, out);
    case CK_LAZY_OR: return compile_both(c, e, false, scope, out);
    case CK_LAZY_CASE: return compile_case(c, e, scope, out);
    case CK_LAZY_COALESCE: return compile_coalesce(c, e, scope, out);
    case CK_LAZY_NULLIF: return compile_nullif(c, e, scope, out);
    case CK_LAZY_BETWEEN:
    case CK_LAZY_IN: {
        ck_expr *plain;
        CK_TRY(ck_compile_take_apart(c, e, &plain));
        return ck_compile_value(c, plain, scope, out);
    }
    }
    CK_ASSERT(false && "a lazy form");
    return CK_INVALID;
}

ck_status ck_compile_value(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t *out) {
    *out = ck_compile_find(c, e, scope);
    if (*out != CK_NONE) return CK_OK;
    if (e->kind == CK_EXPR_CALL)
        return e->impl->kernel ? compile_strict(c, e, scope, out) : compile_lazy(c, e, scope, out);
    ck_node leaf = {.kind = e->kind == CK_EXPR_COLUMN ? CK_NODE_COLUMN : CK_NODE_LITERAL,
                    .expr = e,
                    .hash = e->hash,
                    .state = CK_NONE,
                    .fixed = e->kind == CK_EXPR_LITERAL,
                    .lasting = true};
    return add_node(c, &leaf, out);
}

/* ---- what is needed until when ---- */

/* fn(arg, node) for every node a step looks at or makes. */
static void visit_uses(const ck_code *code, const ck_step *s, void (*fn)(void *arg, uint32_t node), void *arg) {
    if (s->op == CK_STEP_CALL || s->op == CK_STEP_BOTH) {
        const ck_node *n = &code->nodes[s->node];
        for (uint32_t k = 0; k < n->arg_count; k++) fn(arg, n->args[k]);
    }
    for (uint32_t k = 0; k < s->arg_count; k++) fn(arg, s->args[k]);
    for (uint32_t k = 0; k < s->layer_count; k++) fn(arg, s->layers[k].node);
    if (s->op == CK_STEP_CALL || s->op == CK_STEP_BOTH || s->op == CK_STEP_MERGE || s->op == CK_STEP_WHERE)
        fn(arg, s->node);
}

typedef struct last_uses {
    uint32_t *last; /* by node: the step */
    uint32_t step;
} last_uses;

static void note_use(void *arg, uint32_t node) {
    last_uses *u = arg;
    u->last[node] = u->step;
}

static ck_status find_releases(ck_compiler *c) {
    ck_code *code = c->code;
    uint32_t nodes = code->node_count, steps = code->step_count;
    uint32_t *last = ck_arena_array(c->arena, nodes + 1, sizeof *last);
    uint32_t *lists = ck_arena_array(c->arena, nodes + 1, sizeof *lists);
    uint32_t *next = ck_arena_array(c->arena, nodes + 1, sizeof *next);
    uint32_t *head = ck_arena_array(c->arena, steps + 1, sizeof *head);
    if (!last || !lists || !next || !head) return ck_nomem(c->err, c->arena->mem, (nodes + steps) * sizeof *last);
    last_uses uses = {.last = last};
    for (; uses.step < steps; uses.step++) visit_uses(code, &code->steps[uses.step], note_use, &uses);
    for (uint32_t i = 0; i < steps; i++) head[i] = CK_NONE;
    for (uint32_t k = 0; k < nodes; k++)
        if (!code->nodes[k].lasting) next[k] = head[last[k]], head[last[k]] = k;
    uint32_t at = 0;
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t begin = at;
        for (uint32_t k = head[i]; k != CK_NONE; k = next[k]) lists[at++] = k;
        code->steps[i].release = lists + begin, code->steps[i].release_count = at - begin;
    }
    return CK_OK;
}

static ck_status compile_roots(ck_compiler *c) {
    const ck_program *p = c->program;
    c->code->roots = ck_arena_array(c->arena, p->expr_count ? p->expr_count : 1, sizeof(uint32_t));
    if (!c->code->roots) return ck_nomem(c->err, c->arena->mem, p->expr_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < p->expr_count; i++) {
        CK_TRY(ck_compile_value(c, p->exprs[i], 0, &c->code->roots[i]));
        c->code->nodes[c->code->roots[i]].lasting = true;
    }
    return CK_OK;
}

/* A conjunct is itself taken apart at AND: a filter drops a row at the first one that is not TRUE. */
static ck_status compile_conjunct(ck_compiler *c, const ck_expr *e, uint32_t scope, uint32_t marks, uint32_t *out) {
    if (e->kind != CK_EXPR_CALL || e->impl->kernel || e->impl->op != CK_LAZY_AND)
        return ck_compile_where(c, e, scope, marks, out);
    for (uint32_t i = 0; i < e->arg_count; i++) {
        CK_TRY(compile_conjunct(c, e->args[i], scope, marks, out));
        scope = *out;
    }
    return CK_OK;
}

static ck_status compile_segments(ck_compiler *c) {
    const ck_program *p = c->program;
    c->code->segments = ck_arena_array(c->arena, p->expr_count ? p->expr_count : 1, sizeof(ck_segment));
    if (!c->code->segments) return ck_nomem(c->err, c->arena->mem, p->expr_count * sizeof(ck_segment));
    uint32_t scope = 0;
    for (uint32_t i = 0; i < p->expr_count; i++) {
        ck_segment *s = &c->code->segments[i];
        ck_kind kind = p->exprs[i]->type->kind;
        if (kind != CK_TYPE_BOOLEAN && kind != CK_TYPE_NULL) continue; /* this program is for values */
        s->begin = c->code->step_count;
        s->marks = c->code->mark_list_count++;
        CK_TRY(compile_conjunct(c, p->exprs[i], scope, s->marks, &s->scope));
        s->end = c->code->step_count;
        scope = s->scope;
    }
    return CK_OK;
}

ck_status ck_code_compile(ck_arena *a, ck_program *p, bool conjuncts, ck_code *out, ck_error *err) {
    ck_compiler *c = CK_ARENA_NEW(a, ck_compiler);
    if (!c) return ck_nomem(err, a->mem, sizeof *c);
    *out = (ck_code){0};
    *c = (ck_compiler){.arena = a, .program = p, .code = out, .err = err, .prepared_capacity = p->prepared_count};
    for (size_t i = 0; i < CK_COMPILE_HEADS; i++) c->heads[i] = CK_NONE;
    uint32_t root;
    CK_TRY(ck_compile_scope(c, 0, &root));
    CK_TRY(conjuncts ? compile_segments(c) : compile_roots(c));
    return find_releases(c);
}

ck_status ck_program_compile(ck_arena *a, ck_expr *const *exprs, uint32_t count, ck_program **out, ck_error *err) {
    *out = NULL;
    ck_program *p = CK_ARENA_NEW(a, ck_program);
    ck_expr **copy = ck_arena_array(a, count ? count : 1, sizeof *copy);
    if (!p || !copy) return ck_nomem(err, a->mem, sizeof *p + count * sizeof *copy);
    if (count) memcpy(copy, exprs, count * sizeof *copy);
    p->exprs = copy, p->expr_count = count;
    CK_TRY(ck_code_compile(a, p, false, &p->values, err));
    CK_TRY(ck_code_compile(a, p, true, &p->conjuncts, err));
    *out = p;
    return CK_OK;
}
