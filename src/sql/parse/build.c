/* Constructors of the tree: places, depths, lists. See parser_int.h. */
#include "sql/parse/depth_int.h"

#include <stdio.h>

bool ck_parser_fail(ck_parser *ps, ck_pos at, ck_status status, const char *fmt, ...) {
    if (ps->status != CK_OK) return false;
    char text[sizeof((ck_error *)NULL)->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ps->status = ck_source_fail(ps->source, at, ps->err, status, "%s", text);
    return false;
}

void *ck_parser_nomem(ck_parser *ps) {
    if (ps->status == CK_OK)
        ps->status = ck_fail(ps->err, CK_NOMEM, "%s: no memory for the syntax tree of %zu bytes of SQL",
                             ps->source->name ? ps->source->name : "sql", ps->source->text.n);
    return NULL;
}

void *ck_parser_alloc(ck_parser *ps, size_t bytes) {
    void *p = ck_arena_zero(ps->arena, bytes);
    return p ? p : ck_parser_nomem(ps);
}

/* ---- lists ---- */

ck_ast_exprs ck_exprs_of(ck_ast_expr *e) { return (ck_ast_exprs){e, e, e ? 1 : 0}; }
ck_ast_exprs ck_exprs_add(ck_ast_exprs list, ck_ast_expr *e) {
    if (list.last) {
        list.last->next = e;
    } else {
        list.first = e;
    }
    list.last = e;
    list.count++;
    return list;
}
ck_ast_exprs ck_exprs_of2(ck_ast_expr *a, ck_ast_expr *b) { return ck_exprs_add(ck_exprs_of(a), b); }
ck_ast_exprs ck_exprs_before(ck_ast_expr *e, ck_ast_exprs list) {
    e->next = list.first;
    return (ck_ast_exprs){e, list.last ? list.last : e, list.count + 1};
}

bool ck_names_add(ck_parser *ps, ck_ast_names *list, ck_ast_ident id) {
    ck_ast_name *n = CK_PARSER_NEW(ps, ck_ast_name);
    if (!n) return false;
    n->ident = id;
    if (list->last) {
        list->last->next = n;
    } else {
        list->first = n;
    }
    list->last = n;
    list->count++;
    return true;
}

bool ck_options_add(ck_parser *ps, ck_ast_options *list, ck_ast_ident key, ck_ast_ident value) {
    ck_ast_option *o = CK_PARSER_NEW(ps, ck_ast_option);
    if (!o) return false;
    *o = (ck_ast_option){.key = key.text, .value = value.text, .pos = key.pos, .value_pos = value.pos};
    if (list->last) {
        list->last->next = o;
    } else {
        list->first = o;
    }
    list->last = o;
    list->count++;
    return true;
}

/* ---- expressions ---- */

ck_ast_expr *ck_ast_build_leaf(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_view name) {
    ck_ast_expr *e = CK_PARSER_NEW(ps, ck_ast_expr);
    if (!e) return NULL;
    e->kind = (uint8_t)kind, e->pos = e->sign = pos, e->name = name, e->depth = 1;
    return e;
}

ck_ast_expr *ck_ast_build_ident(ck_parser *ps, ck_ast_ident id) {
    ck_ast_expr *e = ck_ast_build_leaf(ps, CK_AST_NAME, id.pos, id.text);
    if (e) e->quoted = id.quoted;
    return e;
}

ck_ast_expr *ck_ast_build_expr(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_pos sign, ck_ast_exprs args) {
    ck_ast_expr *e = ck_ast_build_leaf(ps, kind, pos, (ck_view){0});
    if (!e) return NULL;
    e->sign = sign, e->args = args;
    return set_depth(ps, &e->depth, depth_of_list(&args), sign) ? e : NULL;
}

ck_ast_expr *ck_ast_build_unary(ck_parser *ps, ck_ast_kind kind, int what, ck_pos pos, ck_pos sign, ck_ast_expr *a) {
    ck_ast_expr *e = ck_ast_build_expr(ps, kind, pos, sign, ck_exprs_of(a));
    if (e) e->what = (uint8_t)what;
    return e;
}

ck_ast_expr *ck_ast_build_binary(ck_parser *ps, ck_ast_kind kind, int what, ck_pos pos, ck_pos sign, ck_ast_expr *a,
                                 ck_ast_expr *b) {
    ck_ast_expr *e = ck_ast_build_expr(ps, kind, pos, sign, ck_exprs_of2(a, b));
    if (e) e->what = (uint8_t)what;
    return e;
}

/* a AND b AND c is one node, so that a long chain is wide and not deep. */
ck_ast_expr *ck_ast_build_logic(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_pos sign, ck_ast_expr *a,
                                ck_ast_expr *b) {
    if (a->kind != kind) return ck_ast_build_binary(ps, kind, 0, pos, sign, a, b);
    a->args = ck_exprs_add(a->args, b);
    a->pos = pos;
    return set_depth(ps, &a->depth, deeper(a->depth - 1u, b->depth), sign) ? a : NULL;
}

ck_ast_expr *ck_ast_build_call(ck_parser *ps, ck_pos pos, ck_ast_ident name, ck_ast_exprs args) {
    ck_ast_expr *e = ck_ast_build_expr(ps, CK_AST_CALL, pos, name.pos, args);
    if (e) e->name = name.text, e->quoted = name.quoted;
    return e;
}
ck_ast_expr *ck_ast_build_call_of(ck_parser *ps, ck_pos pos, const char *name, ck_ast_exprs args) {
    return ck_ast_build_call(ps, pos, (ck_ast_ident){ck_view_of(name), pos, false}, args);
}

ck_ast_expr *ck_ast_build_field(ck_parser *ps, ck_pos pos, ck_ast_expr *base, ck_ast_ident field) {
    ck_ast_expr *e = ck_ast_build_unary(ps, CK_AST_FIELD, 0, pos, field.pos, base);
    if (e) e->name = field.text, e->quoted = field.quoted;
    return e;
}

/* MAP['k'] with one element can only be a subscript of a column that is called map. */
ck_ast_expr *ck_ast_build_map(ck_parser *ps, ck_pos pos, ck_pos word, ck_view text, ck_ast_exprs args) {
    if (args.count != 1) return ck_ast_build_expr(ps, CK_AST_MAP, pos, word, args);
    ck_ast_expr *column = ck_ast_build_leaf(ps, CK_AST_NAME, word, text);
    return column ? ck_ast_build_binary(ps, CK_AST_SUBSCRIPT, 0, pos, pos, column, args.first) : NULL;
}

ck_ast_expr *ck_ast_build_with_query(ck_parser *ps, ck_ast_kind kind, ck_pos pos, ck_pos sign, ck_ast_expr *arg,
                                     ck_ast_query *query) {
    ck_ast_expr *e = ck_ast_build_expr(ps, kind, pos, sign, ck_exprs_of(arg));
    if (!e) return NULL;
    e->query = query;
    return set_depth(ps, &e->depth, deeper(e->depth - 1u, query->depth), sign) ? e : NULL;
}

ck_ast_call *ck_ast_build_call_extra(ck_parser *ps, ck_ast_expr *call) {
    if (!call->call) call->call = CK_PARSER_NEW(ps, ck_ast_call);
    return call->call;
}

bool ck_ast_build_call_done(ck_parser *ps, ck_ast_expr *call) {
    const ck_ast_call *c = call->call;
    unsigned d = deeper(call->depth - 1u, deeper(depth_of_orders(&c->order_by), depth_of(c->filter)));
    if (c->over) {
        d = deeper(d, deeper(depth_of_list(&c->over->partition_by), depth_of_orders(&c->over->order_by)));
        d = deeper(d, deeper(depth_of(c->over->from.offset), depth_of(c->over->to.offset)));
    }
    return set_depth(ps, &call->depth, d, call->sign);
}

/* ---- types ---- */

ck_ast_type *ck_ast_build_type(ck_parser *ps, ck_pos pos, ck_view name, ck_ast_type *fields) {
    ck_ast_type *t = CK_PARSER_NEW(ps, ck_ast_type);
    if (!t) return NULL;
    t->pos = pos, t->name = name, t->fields = fields;
    unsigned d = 0;
    for (const ck_ast_type *f = fields; f; f = f->next) t->field_count++, d = deeper(d, f->depth);
    return set_depth(ps, &t->depth, d, pos) ? t : NULL;
}

bool ck_ast_build_type_param(ck_parser *ps, ck_ast_type *t, ck_ast_ident number) {
    int64_t v = 0;
    for (size_t i = 0; i < number.text.n; i++) {
        v = v * 10 + (number.text.p[i] - '0');
        if (v > INT32_MAX)
            return ck_parser_fail(ps, number.pos, CK_INVALID, "%.*s is out of range here",
                                  number.text.n > 40 ? 40 : (int)number.text.n, number.text.p);
    }
    t->params[t->param_count++] = v;
    return true;
}
