/* For the tests of parse/: scripts parsed, trees as s-expressions. Included by *_test.c only. */
#ifndef CK_SQL_PARSE_TREE_TEXT_TEST_SUPPORT_H
#define CK_SQL_PARSE_TREE_TEXT_TEST_SUPPORT_H

#include "sql/parse/parse.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/limits.h"

typedef struct fixture {
    ck_budget budget;
    ck_arena arena;
    ck_error err;
    ck_bytes out;
} fixture;

static void open_fixture(fixture *f, ck_heap *heap) {
    *f = (fixture){.err = CK_ERROR_INIT};
    ck_budget_init(&f->budget, heap, 0);
    ck_mem mem = {&f->budget, CK_MEM_PLAN};
    ck_arena_init(&f->arena, mem, (size_t)1 << 30);
    ck_bytes_init(&f->out, mem, 1 << 20);
}
static void close_fixture(fixture *f) {
    ck_bytes_destroy(&f->out);
    ck_arena_destroy(&f->arena);
}

static ck_status parse(fixture *f, ck_view sql, ck_ast_script *script) {
    ck_source_text *source = CK_ARENA_NEW(&f->arena, ck_source_text);
    if (!source) return CK_NOMEM;
    *source = (ck_source_text){.name = "t.sql", .text = sql};
    return ck_parse_script(source, &f->arena, script, &f->err);
}

/* ---- s-expressions ---- */

static void put(ck_bytes *o, const char *fmt, ...) CK_PRINTF(2, 3);
static void put(ck_bytes *o, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    assert_int_equal(ck_bytes_str(o, text), CK_OK);
}

static void put_query(ck_bytes *o, const ck_ast_query *q);
static void put_from(ck_bytes *o, const ck_ast_from *f);

static void put_type(ck_bytes *o, const ck_ast_type *t) {
    put(o, "%.*s", (int)t->name.n, t->name.p);
    for (uint32_t i = 0; i < t->param_count; i++) put(o, "%s%d", i ? "," : ":", (int)t->params[i]);
    if (t->zone) put(o, "/z%d", (int)t->zone);
    if (t->from_unit) put(o, "/u%d-%d", (int)t->from_unit, (int)t->to_unit);
    if (!t->field_count) return;
    put(o, "<");
    for (const ck_ast_type *e = t->fields; e; e = e->next) {
        if (e->field_name.text.n) put(o, "%.*s ", (int)e->field_name.text.n, e->field_name.text.p);
        put_type(o, e);
        if (e->not_null) put(o, "!");
        if (e->next) put(o, ",");
    }
    put(o, ">");
}

static const char *const kinds[] = {"name",     "field", "star",  "null",      "bool",     "int",      "dec",
                                    "dbl",      "str",   "bytes", "typed",     "interval", "call",     "op",
                                    "and",      "or",    "not",   "is",        "distinct", "between",  "in",
                                    "in-query", "like",  "case",  "cast",      "exists",   "subquery", "any",
                                    "row",      "array", "map",   "subscript", "named",    "table",    "sets"};
static const char *const ops[] = {"neg", "pos", "+",  "-", "*",  "/", "%",  "^",  "||", "=",
                                  "<>",  "<",   "<=", ">", ">=", "~", "~*", "!~", "!~*"};

static void put_expr(ck_bytes *o, const ck_ast_expr *e);

static void put_orders(ck_bytes *o, const ck_ast_orders *l) {
    for (const ck_ast_order *x = l->first; x; x = x->next) {
        put(o, " ");
        put_expr(o, x->expr);
        put(o, "%s%s", x->descending ? "-" : "+",
            x->nulls == CK_NULLS_FIRST  ? "f"
            : x->nulls == CK_NULLS_LAST ? "l"
                                        : "");
    }
}

static void put_bound(ck_bytes *o, const ck_ast_bound *b) {
    put(o, " b%d", (int)b->kind);
    if (b->offset) put_expr(o, b->offset);
}

static void put_window(ck_bytes *o, const ck_ast_window *w) {
    put(o, " (over");
    if (w->reference) put(o, " %.*s", (int)w->name.text.n, w->name.text.p);
    if (w->partition_by.count) put(o, " by");
    for (const ck_ast_expr *e = w->partition_by.first; e; e = e->next) put(o, " "), put_expr(o, e);
    if (w->order_by.count) put(o, " order"), put_orders(o, &w->order_by);
    if (w->frame) put(o, " f%d", (int)w->frame), put_bound(o, &w->from), put_bound(o, &w->to);
    put(o, ")");
}

static void put_expr(ck_bytes *o, const ck_ast_expr *e) {
    switch ((ck_ast_kind)e->kind) {
    case CK_AST_NAME: put(o, e->quoted ? "\"%.*s\"" : "%.*s", (int)e->name.n, e->name.p); return;
    case CK_AST_INTEGER:
    case CK_AST_DECIMAL:
    case CK_AST_DOUBLE: put(o, "%.*s", (int)e->name.n, e->name.p); return;
    case CK_AST_STRING: put(o, "'%.*s'", (int)e->name.n, e->name.p); return;
    case CK_AST_NULL: put(o, "null"); return;
    case CK_AST_BOOL: put(o, e->flag ? "true" : "false"); return;
    default: break;
    }
    put(o, "(%s", kinds[e->kind]);
    if (e->kind == CK_AST_OPERATOR || e->kind == CK_AST_QUANTIFIED) put(o, " %s", ops[e->what]);
    if (e->kind == CK_AST_IS || e->kind == CK_AST_LIKE) put(o, " %d", e->what);
    if (e->kind == CK_AST_INTERVAL && e->what) put(o, " %d-%d", e->what, e->what2);
    if (e->negated) put(o, " not");
    if (e->flag) put(o, " !");
    if (e->kind == CK_AST_CAST || e->kind == CK_AST_TYPED) put(o, " "), put_type(o, e->type);
    if (e->name.n) put(o, " %.*s", (int)e->name.n, e->name.p);
    if (e->kind == CK_AST_TABLE_ARG) put(o, " "), put_from(o, e->from);
    for (const ck_ast_expr *a = e->args.first; a; a = a->next) put(o, " "), put_expr(o, a);
    if (e->kind == CK_AST_CALL && e->call) {
        const ck_ast_call *c = e->call;
        put(o, "%s%s%s", c->distinct ? " distinct" : "", c->star ? " *" : "",
            c->nulls == CK_IGNORE_NULLS    ? " ignore"
            : c->nulls == CK_RESPECT_NULLS ? " respect"
                                           : "");
        if (c->order_by.count) put(o, c->within ? " (within" : " (order"), put_orders(o, &c->order_by), put(o, ")");
        if (c->filter) put(o, " (filter "), put_expr(o, c->filter), put(o, ")");
        if (c->over) put_window(o, c->over);
    }
    if (e->kind == CK_AST_IN_QUERY || e->kind == CK_AST_EXISTS || e->kind == CK_AST_SUBQUERY ||
        e->kind == CK_AST_QUANTIFIED)
        put(o, " "), put_query(o, e->query);
    put(o, ")");
}

static void put_from(ck_bytes *o, const ck_ast_from *f) {
    static const char *const joins[] = {"join", "left", "right", "full", "semi", "anti", "cross"};
    if (f->kind == CK_FROM_JOIN) {
        put(o, "(%s%s ", f->natural ? "natural-" : "", joins[f->join]);
        put_from(o, f->left);
        put(o, " ");
        put_from(o, f->right);
        if (f->on) put(o, " on "), put_expr(o, f->on);
        for (const ck_ast_name *n = f->using_columns.first; n; n = n->next)
            put(o, " using:%.*s", (int)n->ident.text.n, n->ident.text.p);
        put(o, ")");
        return;
    }
    if (f->lateral) put(o, "lateral ");
    for (const ck_ast_name *n = f->name.first; n; n = n->next)
        put(o, "%.*s%s", (int)n->ident.text.n, n->ident.text.p, n->next ? "." : "");
    for (const ck_ast_hint *h = f->hints; h; h = h->next) put(o, "/*%.*s*/", (int)h->name.text.n, h->name.text.p);
    if (f->as_of) put(o, " as-of "), put_expr(o, f->as_of);
    if (f->query) put_query(o, f->query);
    if (f->call) put_expr(o, f->call);
    if (f->ordinality) put(o, "#");
    if (f->alias.text.n) put(o, " %.*s", (int)f->alias.text.n, f->alias.text.p);
    for (const ck_ast_name *n = f->alias_columns.first; n; n = n->next)
        put(o, ":%.*s", (int)n->ident.text.n, n->ident.text.p);
}

static void put_select(ck_bytes *o, const ck_ast_select *s) {
    put(o, "select%s", s->distinct ? "-distinct" : "");
    for (const ck_ast_item *i = s->items.first; i; i = i->next) {
        put(o, " ");
        put_expr(o, i->expr);
        if (i->alias.text.n) put(o, ":%.*s", (int)i->alias.text.n, i->alias.text.p);
    }
    for (const ck_ast_from *f = s->from; f; f = f->next) put(o, f == s->from ? " from " : ", "), put_from(o, f);
    if (s->where) put(o, " where "), put_expr(o, s->where);
    if (s->grouped) put(o, " group");
    for (const ck_ast_expr *e = s->group_by.first; e; e = e->next) put(o, " "), put_expr(o, e);
    if (s->having) put(o, " having "), put_expr(o, s->having);
    for (const ck_ast_window *w = s->windows; w; w = w->next)
        put(o, " window %.*s", (int)w->name.text.n, w->name.text.p), put_window(o, w);
}

static void put_query(ck_bytes *o, const ck_ast_query *q) {
    static const char *const set_ops[] = {"", "", "union", "intersect", "except"};
    put(o, "{");
    for (const ck_ast_cte *c = q->ctes; c; c = c->next)
        put(o, "with %.*s ", (int)c->name.text.n, c->name.text.p), put_query(o, c->query), put(o, " ");
    if (q->kind == CK_QUERY_SELECT) put_select(o, q->select);
    if (q->kind == CK_QUERY_VALUES) put(o, "values");
    for (const ck_ast_expr *r = q->rows.first; r; r = r->next) put(o, " "), put_expr(o, r);
    if (q->arms) put(o, "%s%s", set_ops[q->kind], q->all ? "-all" : "");
    for (const ck_ast_query *a = q->arms; a; a = a->next) put(o, " "), put_query(o, a);
    if (q->order_by.count) put(o, " order"), put_orders(o, &q->order_by);
    if (q->limit) put(o, " limit "), put_expr(o, q->limit);
    if (q->offset) put(o, " offset "), put_expr(o, q->offset);
    if (q->emit_on_close) put(o, " emit");
    put(o, "}");
}

/* ---- cases ---- */

typedef struct pair {
    const char *sql, *want;
} pair;

/* Of an expression behind `before`, or of a query, its tree or the message. */
static void check_all(const pair *cases, size_t count, const char *before) {
    for (size_t i = 0; i < count; i++) {
        fixture f;
        ck_ast_script script;
        char sql[2000];
        open_fixture(&f, ck_heap_system());
        snprintf(sql, sizeof sql, "%s%s", before, cases[i].sql);
        ck_status s = parse(&f, ck_view_of(sql), &script);
        if (s == CK_OK) {
            const ck_ast_query *q = script.first->query;
            if (*before) {
                put_expr(&f.out, q->select->items.first->expr);
            } else {
                put_query(&f.out, q);
            }
        } else {
            put(&f.out, "%s", f.err.msg);
        }
        assert_int_equal(ck_bytes_terminate(&f.out), CK_OK);
        if (strcmp(f.out.p, cases[i].want) != 0) print_message("in: %s\n", cases[i].sql);
        assert_string_equal(f.out.p, cases[i].want);
        close_fixture(&f);
    }
}

#endif
