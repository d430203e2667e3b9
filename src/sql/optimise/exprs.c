/* Rewrites of single expressions. */
#include "expr/function.h"
#include "sql/optimise/optimise_int.h"

uint32_t ck_expr_size(const ck_expr *e, uint32_t limit) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < e->arg_count && n < limit; i++) n += ck_expr_size(e->args[i], limit - n);
    return n;
}

ck_expr *ck_expr_through(ck_plan *p, const ck_plan_node *project, ck_expr *e) {
    ck_expr *out = ck_expr_substitute(p->arena, e, project->project.exprs, project->schema->field_count);
    if (!out) ck_plan_nomem(p);
    return out;
}

typedef struct renumber {
    ck_arena *arena;
    const uint32_t *map;
} renumber;

static ck_status renumbered(void *arg, const ck_expr *e, ck_expr **instead) {
    const renumber *r = (const renumber *)arg;
    if (e->kind != CK_EXPR_COLUMN) return CK_OK;
    ck_expr *c = ck_expr_column(r->arena, r->map[e->column], e->type, e->nullable);
    if (!c) return CK_NOMEM;
    c->line = e->line, c->col = e->col;
    *instead = c;
    return CK_OK;
}

ck_expr *ck_expr_renumber(ck_plan *p, const uint32_t *map, ck_expr *e) {
    renumber r = {p->arena, map};
    ck_expr *out;
    if (ck_expr_rewrite(p->arena, e, renumbered, &r, &out) == CK_OK) return out;
    ck_plan_nomem(p);
    return NULL;
}

/* ---- constants ---- */

static bool is_literal_bool(const ck_expr *e, bool value) {
    return e->kind == CK_EXPR_LITERAL && e->type->kind == CK_TYPE_BOOLEAN && !e->value.null && e->value.b == value;
}

/* x = literal; NULL: the expression is something else. */
static const ck_expr *compared(const ck_expr *e) {
    if (e->kind != CK_EXPR_CALL || strcmp(e->fn->name, "=") != 0) return NULL;
    bool good = e->args[0]->kind != CK_EXPR_LITERAL && e->args[1]->kind == CK_EXPR_LITERAL && !e->args[1]->value.null;
    return good && !ck_expr_is_volatile(e->args[0]) ? e->args[0] : NULL;
}

enum { LIST_LEAST = 4 };

/* x = 1 OR x = 2 OR ...: x IN (1, 2, ...), which is looked up in a set. Only neighbours meet in a list: the order of
 * what may fail stays. */
static ck_status gather_lists(ck_plan *p, ck_expr **terms, uint32_t *count) {
    ck_expr **list = CK_PLAN_ARRAY(p, *count + 1, ck_expr *), *in;
    uint32_t kept = 0, end;
    if (!list) return CK_NOMEM;
    for (uint32_t i = 0; i < *count; i = end) {
        const ck_expr *x = compared(terms[i]);
        for (end = i + 1; x && end < *count; end++) {
            const ck_expr *other = compared(terms[end]);
            if (!other || !ck_expr_equal(x, other)) break;
        }
        for (uint32_t k = i; end - i >= LIST_LEAST && k < end; k++) list[k - i + 1] = terms[k]->args[1];
        if (end - i >= LIST_LEAST) {
            list[0] = terms[i]->args[0];
            CK_TRY(ck_expr_call(p->arena, "in", list, end - i + 1, &in, p->err));
            in->line = terms[i]->line, in->col = terms[i]->col;
            terms[kept++] = in;
        } else {
            for (uint32_t k = i; k < end; k++) terms[kept++] = terms[k];
        }
    }
    *count = kept;
    return CK_OK;
}

/* a AND TRUE, a OR FALSE: without it. a AND FALSE is FALSE only where nothing before it can fail. */
static ck_status simplify_logic(ck_plan *p, ck_expr *e, bool is_and, ck_expr **out) {
    ck_expr **kept = CK_PLAN_ARRAY(p, e->arg_count, ck_expr *);
    uint32_t n = 0;
    if (!kept) return CK_NOMEM;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        if (is_literal_bool(e->args[i], is_and)) continue;
        kept[n++] = e->args[i];
        if (is_literal_bool(e->args[i], !is_and)) break; /* nothing behind it is evaluated */
    }
    if (!is_and) CK_TRY(gather_lists(p, kept, &n));
    *out = e;
    if (n == e->arg_count) return CK_OK;
    if (n == 1) {
        *out = kept[0];
        return CK_OK;
    }
    if (n == 0) {
        *out = ck_expr_literal(p->arena, ck_type_simple(CK_TYPE_BOOLEAN), (ck_datum){.b = is_and});
        return *out ? CK_OK : ck_plan_nomem(p);
    }
    CK_TRY(ck_expr_call(p->arena, is_and ? "and" : "or", kept, n, out, p->err));
    (*out)->line = e->line, (*out)->col = e->col;
    return CK_OK;
}

/* What fails when it is computed stays, and fails where rows come. */
static ck_status fold_node(void *arg, const ck_expr *e, ck_expr **instead) {
    ck_expr *made = (ck_expr *)(uintptr_t)e; /* of this plan */
    if (e->kind != CK_EXPR_CALL || e->is_no_literal || !ck_expr_is_constant(e)) return CK_OK;
    ck_error ignored = CK_ERROR_INIT;
    ck_status s = ck_expr_fold((ck_arena *)arg, made, &made, &ignored);
    if (s == CK_OK && made != e)
        *instead = made;
    else
        made->is_no_literal = true; /* later passes need not compute it again to see that it fails or is too long */
    return s == CK_NOMEM ? s : CK_OK;
}

static ck_status simplify_children(ck_plan *p, ck_expr *e, ck_expr **out);

static ck_status simplify_one(ck_plan *p, ck_expr *e, ck_expr **out) {
    *out = e;
    if (e->kind != CK_EXPR_CALL) return CK_OK;
    CK_TRY(simplify_children(p, e, &e));
    *out = e;
    bool is_and = strcmp(e->fn->name, "and") == 0;
    return is_and || strcmp(e->fn->name, "or") == 0 ? simplify_logic(p, e, is_and, out) : CK_OK;
}

/* Only AND and OR are looked into: other calls have no shorter form of the same type here. */
static ck_status simplify_children(ck_plan *p, ck_expr *e, ck_expr **out) {
    bool logic = strcmp(e->fn->name, "and") == 0 || strcmp(e->fn->name, "or") == 0;
    ck_expr **args = logic ? CK_PLAN_ARRAY(p, e->arg_count, ck_expr *) : NULL;
    bool changed = false;
    *out = e;
    if (!logic) return CK_OK;
    if (!args) return CK_NOMEM;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        CK_TRY(simplify_one(p, e->args[i], &args[i]));
        changed = changed || args[i] != e->args[i];
    }
    if (!changed) return CK_OK;
    CK_TRY(ck_expr_call_of(p->arena, e->fn, args, e->arg_count, out, p->err));
    (*out)->line = e->line, (*out)->col = e->col;
    return CK_OK;
}

ck_status ck_expr_simplify(ck_plan *p, ck_expr *e, ck_expr **out) {
    ck_expr *folded;
    if (ck_expr_rewrite(p->arena, e, fold_node, p->arena, &folded) != CK_OK) return ck_plan_nomem(p);
    return simplify_one(p, folded, out);
}
