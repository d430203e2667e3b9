/* CREATE FUNCTION: the body is an expression over the parameters, bound once and put in the place of each call. */
#include <stdio.h>

#include "expr/library.h"
#include "sql/bind/create_int.h"

/* Fields of a row made of the parameters: what names in the body mean. */
static ck_status parameters(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_function *f, ck_schema **out) {
    uint32_t count = 0, n = 0;
    for (const ck_ast_column *p = f->params; p; p = p->next) count++;
    if (count > CK_BIND_PARAMETERS_MAX)
        return ck_bind_fail(b, f->params->name.pos, "%u parameters are too many; at most %d are allowed", count,
                            CK_BIND_PARAMETERS_MAX);
    ck_schema *schema = CK_ARENA_NEW(&e->arena, ck_schema);
    ck_field *fields = ck_arena_array(&e->arena, count + 1u, sizeof *fields);
    if (!schema || !fields) return ck_bind_nomem(b);
    for (const ck_ast_column *p = f->params; p; p = p->next, n++) {
        fields[n] = (ck_field){ck_arena_strndup(&e->arena, p->name.text.p, p->name.text.n), NULL, true};
        if (!fields[n].name) return ck_bind_nomem(b);
        for (uint32_t k = 0; k < n; k++)
            if (ck_view_eq_nocase(ck_view_of(fields[k].name), p->name.text))
                return ck_bind_fail(b, p->name.pos, "parameter \"%s\" stands twice", fields[n].name);
        CK_TRY(ck_bind_type(b, p->type, &e->arena, &fields[n].type));
    }
    *schema = (ck_schema){fields, count};
    *out = schema;
    return CK_OK;
}

/* An error in the body names the place of the call. */
static void forget_places(ck_expr *e) {
    e->line = e->col = 0;
    for (uint32_t i = 0; i < e->arg_count; i++) forget_places(e->args[i]);
}

static ck_status body(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_function *f, ck_schema *schema) {
    ck_plan_node row = {.schema = schema};
    ck_scope scope;
    ck_function_def *d = &e->function;
    CK_TRY(ck_scope_of_node(b, &row, (ck_view){0}, &scope));
    ck_bind_place place = {.scope = &scope, .clause = "the body of a function", .queries = true};
    CK_TRY(ck_bind_expr(b, &place, f->body, &d->body));
    if (scope.node != &row)
        return ck_bind_refuse(b, f->body->pos, "a function computes from its arguments, not from tables; join them");
    CK_TRY(ck_bind_type(b, f->returns, &e->arena, &d->returns));
    if (!ck_bind_assigns(d->body->type, d->returns))
        return ck_bind_fail(b, f->body->pos, "the function RETURNS %s, and this is %s; CAST(... AS %s) converts it",
                            ck_type_name(b->plan.arena, d->returns), ck_type_name(b->plan.arena, d->body->type),
                            ck_type_name(b->plan.arena, d->returns));
    CK_TRY(ck_bind_cast(b, d->body, d->returns, false, f->body->pos, &d->body));
    forget_places(d->body);
    d->parameters = schema;
    return CK_OK;
}

static ck_status fill(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_function *f, ck_pos pos) {
    ck_arena *script = b->plan.arena;
    ck_schema *schema = NULL;
    ck_view sql = ck_source_slice(b->source, pos);
    e->temporary = f->temporary;
    if (!(e->sql = ck_arena_strndup(&e->arena, sql.p, sql.n))) return ck_bind_nomem(b);
    CK_TRY(parameters(b, e, f, &schema));
    b->plan.arena = &e->arena; /* it outlives the compilation */
    ck_status s = body(b, e, f, schema);
    b->plan.arena = script;
    return s;
}

static ck_status refuse_built_in(ck_binder *b, const ck_ast_ident *id) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", id->text.n < sizeof name ? (int)id->text.n : 0, id->text.p);
    for (char *c = name; *c; c++) *c = ck_ascii_lower(*c);
    const ck_library *l = b->catalog->proc->library;
    if (!ck_function_find(name) && !ck_aggregate_find(name) && !ck_bind_is_time_window(id->text)) {
        if (!ck_library_function(l, name) && !ck_library_aggregate(l, name)) return CK_OK;
        return ck_bind_fail(b, id->pos, "there is a function \"%s\" of a plugin already; choose another name", name);
    }
    return ck_bind_fail(b, id->pos, "there is a function \"%s\" already, which is built in; choose another name", name);
}

ck_status ck_bind_create_function(ck_binder *b, const ck_ast_create_function *f, ck_pos pos) {
    ck_catalog_entry *e = NULL, *replaced;
    bool skip;
    const ck_ast_ident *id = &f->name.first->ident;
    CK_TRY(refuse_built_in(b, id));
    CK_TRY(
        ck_bind_free_name(b, &f->name, f->if_not_exists, CK_ENTRY_FUNCTION, &skip, f->or_replace ? &replaced : NULL));
    if (skip) return CK_OK;
    ck_status s = ck_catalog_entry_new(b->catalog, CK_ENTRY_FUNCTION, id->text, &e, b->err);
    if (s == CK_OK) s = fill(b, e, f, pos);
    if (s == CK_OK) {
        ck_catalog_add(b->catalog, e);
    } else {
        ck_catalog_entry_discard(b->catalog, &e);
        if (f->or_replace && replaced) ck_catalog_undrop(b->catalog, replaced);
    }
    return s;
}

/* ---- calls ---- */

typedef struct uses {
    uint32_t column, count;
} uses;

static void count_use(void *arg, uint32_t column) {
    uses *u = arg;
    if (u->column == column) u->count++;
}

static ck_status argument(ck_binder *b, const ck_catalog_entry *e, uint32_t i, ck_pos at, ck_expr **arg) {
    const ck_field *p = &e->function.parameters->fields[i];
    if (!ck_bind_assigns((*arg)->type, p->type))
        return ck_bind_fail(b, at, "argument %u of %s is %s, and \"%s\" takes %s; CAST(... AS %s) converts it", i + 1,
                            e->name, ck_type_name(b->plan.arena, (*arg)->type), p->name,
                            ck_type_name(b->plan.arena, p->type), ck_type_name(b->plan.arena, p->type));
    uses u = {.column = i};
    ck_expr_visit_columns(e->function.body, count_use, &u);
    if (u.count > 1 && ck_expr_is_volatile(*arg))
        return ck_bind_refuse(b, at,
                              "%s uses \"%s\" more than once, and this would be another value each time; "
                              "compute it in a subquery first",
                              e->name, p->name);
    return ck_bind_cast(b, *arg, p->type, false, at, arg);
}

ck_status ck_bind_own_function(ck_binder *b, const ck_bind_place *place, const ck_catalog_entry *e,
                               const ck_ast_expr *call, ck_expr **out) {
    const ck_function_def *d = &e->function;
    ck_expr **args;
    uint32_t n = 0;
    if (call->args.count != d->parameters->field_count)
        return ck_bind_fail(b, call->sign, "%s takes %u argument%s, not %u", e->name, d->parameters->field_count,
                            d->parameters->field_count == 1 ? "" : "s", call->args.count);
    CK_TRY(ck_bind_exprs(b, place, &call->args, &args));
    for (const ck_ast_expr *a = call->args.first; a; a = a->next, n++) CK_TRY(argument(b, e, n, a->pos, &args[n]));
    if (!(*out = ck_expr_substitute(b->plan.arena, d->body, args, n))) return ck_bind_nomem(b);
    if (b->catalog->settings.eval_error_null) ck_expr_fails_to_null(*out, args, n);
    if (d->body->kind == CK_EXPR_CALL) (*out)->line = call->sign.line, (*out)->col = call->sign.column;
    return CK_OK;
}
