/* Trees as s-expressions, messages word for word, limits, words as names, allocation failures. */
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

/* ---- tests ---- */

typedef struct pair {
    const char *sql, *want;
} pair;

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

static void expressions(void **state) {
    (void)state;
    static const pair cases[] = {
        {"1 + 2 * 3 ^ 2", "(op + 1 (op * 2 (op ^ 3 2)))"},
        {"-a.b + +c", "(op + (op neg (field b a)) (op pos c))"},
        {"- 2 ^ 2", "(op ^ (op neg 2) 2)"},
        {"a - b - c", "(op - (op - a b) c)"},
        {"a || b || 'x''y'", "(op || (op || a b) 'x'y')"},
        {"a = 1 AND NOT b OR c IS NOT NULL AND d", "(or (and (op = a 1) (not b)) (and (is 0 not c) d))"},
        {"a AND b AND c AND d", "(and a b c d)"},
        {"a OR b OR c", "(or a b c)"},
        {"NOT NOT a", "(not (not a))"},
        {"a BETWEEN 1 AND 2 AND b", "(and (between a 1 2) b)"},
        {"a NOT BETWEEN SYMMETRIC 2 AND 1", "(between not ! a 2 1)"},
        {"a IN (1, 2, 3)", "(in a 1 2 3)"},
        {"a NOT IN (1)", "(in not a 1)"},
        {"(a, b) IN ((1, 2))", "(in (row a b) (row 1 2))"},
        {"a IN (SELECT b FROM t)", "(in-query a {select b from t})"},
        {"a IN ((SELECT b FROM t))", "(in-query a {select b from t})"},
        {"a = ANY (SELECT b FROM t)", "(any = a {select b from t})"},
        {"a > ALL (SELECT b FROM t)", "(any > ! a {select b from t})"},
        {"(SELECT 1) + 1", "(op + (subquery {select 1}) 1)"},
        {"((SELECT 1))", "(subquery {select 1})"},
        {"((SELECT 1) UNION (SELECT 2))", "(subquery {union {select 1} {select 2}})"},
        {"EXISTS (SELECT 1) AND NOT EXISTS (SELECT 2)", "(and (exists {select 1}) (not (exists {select 2})))"},
        {"a LIKE 'x%' ESCAPE '\\'", "(like 0 a 'x%' '\\')"},
        {"a NOT ILIKE b || '%'", "(like 1 not a (op || b '%'))"},
        {"a SIMILAR TO 'x'", "(like 2 a 'x')"},
        {"a IS TRUE", "(is 1 a)"},
        {"a IS NOT UNKNOWN", "(is 3 not a)"},
        {"a ISNULL", "(is 0 a)"},
        {"a IS NOT DISTINCT FROM b", "(distinct not a b)"},
        {"a ~ 'x' AND b !~* 'y'", "(and (op ~ a 'x') (op !~* b 'y'))"},
        {"CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END", "(case a 1 b 2 3)"},
        {"CASE a WHEN 1 THEN 2 END", "(case ! a 1 2)"},
        {"CAST(a AS DECIMAL(10, 2))", "(cast DECIMAL:10,2 a)"},
        {"TRY_CAST(a AS TIMESTAMP(3) WITH LOCAL TIME ZONE)", "(cast ! timestamp:3/z2 a)"},
        {"a::BIGINT::VARCHAR(3)", "(cast VARCHAR:3 (cast BIGINT a))"},
        {"-a::int", "(op neg (cast int a))"},
        {"a::double precision", "(cast double a)"},
        {"a::int[]", "(cast array<int> a)"},
        {"a::array<row<x int not null, y map<varchar, date>>>", "(cast array<row<x int!,y map<varchar,date>>> a)"},
        {"a::interval day to second", "(cast interval/u5-8 a)"},
        {"a::timestamp without time zone", "(cast timestamp/z3 a)"},
        {"a::character varying(3)", "(cast varchar:3 a)"},
        {"DATE '2020-01-01'", "(typed DATE 2020-01-01)"},
        {"TIMESTAMP '2020-01-01 00:00:00'", "(typed TIMESTAMP 2020-01-01 00:00:00)"},
        {"TIMESTAMP_LTZ '2020-01-01'", "(typed TIMESTAMP_LTZ 2020-01-01)"},
        {"INTERVAL '5' SECOND", "(interval 8-0 5)"},
        {"INTERVAL '1000000' MINUTES", "(interval 7-0 1000000)"},
        {"INTERVAL '1-2' YEAR TO MONTH", "(interval 1-3 1-2)"},
        {"INTERVAL '5 minutes'", "(interval 5 minutes)"},
        {"INTERVAL 5 DAY", "(interval 5-0 5)"},
        {"ts - INTERVAL '5' SECOND", "(op - ts (interval 8-0 5))"},
        {"EXTRACT(YEAR FROM ts)", "(call extract 'YEAR' ts)"},
        {"EXTRACT('epoch' FROM ts)", "(call extract 'epoch' ts)"},
        {"SUBSTRING(a FROM 2 FOR 3)", "(call substring a 2 3)"},
        {"SUBSTRING(a, 2)", "(call substring a 2)"},
        {"TRIM(a)", "(call trim a)"},
        {"TRIM(BOTH 'x' FROM a)", "(call trim a 'x')"},
        {"TRIM(LEADING FROM a)", "(call ltrim a)"},
        {"TRIM('x' FROM a)", "(call trim a 'x')"},
        {"TRIM(both)", "(call trim both)"},
        {"POSITION('x' IN a)", "(call position 'x' a)"},
        {"OVERLAY(a PLACING b FROM 1 FOR 2)", "(call overlay a b 1 2)"},
        {"CEIL(ts TO DAY)", "(call CEIL ts 'DAY')"},
        {"CEIL(1.5)", "(call CEIL 1.5)"},
        {"TIMESTAMPDIFF(MINUTE, a, b)", "(call TIMESTAMPDIFF MINUTE a b)"},
        {"ts AT TIME ZONE 'UTC'", "(call timezone 'UTC' ts)"},
        {"left(a, 2) || right(a, 1)", "(op || (call left a 2) (call right a 1))"},
        {"year(ts)", "(call year ts)"},
        {"IF(a, 1, 2)", "(call IF a 1 2)"},
        {"COUNT(*)", "(call COUNT *)"},
        {"COUNT(DISTINCT a) FILTER (WHERE b > 1)", "(call COUNT a distinct (filter (op > b 1)))"},
        {"SUM(ALL a)", "(call SUM a)"},
        {"STRING_AGG(a, ',' ORDER BY b DESC NULLS LAST, c)", "(call STRING_AGG a ',' (order b-l c+))"},
        {"PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)", "(call PERCENTILE_CONT 0.5 (within a+))"},
        {"LAST_VALUE(a) IGNORE NULLS OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
         "(call LAST_VALUE a ignore (over by b order c+ f1 b12 b2))"},
        {"SUM(a) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
         "(call SUM a (over order ts+ f2 b1(interval 6-0 1) b2))"},
        {"SUM(a) OVER (ROWS UNBOUNDED PRECEDING)", "(call SUM a (over f1 b0 b2))"},
        {"SUM(a) OVER w", "(call SUM a (over w))"},
        {"ROW(1, 'a')", "(row ! 1 'a')"},
        {"(1, 2)", "(row 1 2)"},
        {"ARRAY[1, 2][1]", "(subscript (array 1 2) 1)"},
        {"MAP['a', 1, 'b', 2]", "(map 'a' 1 'b' 2)"},
        {"map['a']", "(subscript map 'a')"},
        {"a.b.c[1].d", "(field d (subscript (field c (field b a)) 1))"},
        {"(a).b", "(field b a)"},
        {"f(x => 1, 2)", "(call f (named x 1) 2)"},
        {"\"Quoted \"\"x\"\"\" + `tick`", "(op + \"Quoted \"x\"\" \"tick\")"},
        {"E'a\\n\\u00e9\\'b'", "'a\n\xc3\xa9'b'"},
        {"1e3 + .5 + 5. + 1.5E-2", "(op + (op + (op + 1e3 .5) 5.) 1.5E-2)"},
        {"a -- comment\n + /* b /* nested */ */ 1", "(op + a 1)"},
        {"TRUE", "true"},
        {"NULL", "null"},
        {"current_timestamp", "current_timestamp"},
        {"a *-1", "(op * a (op neg 1))"},
        {"a<-1", "(op < a (op neg 1))"},
    };
    check_all(cases, CK_ARRAY_COUNT(cases), "SELECT ");
}

/* Only words SQL cannot do without are reserved: the rest name columns, qualify, and are selected, compared, grouped.
 */
static void words_as_names(void **state) {
    (void)state;
    static const char *const words[] = {
        "datetime", "timestamp", "date",      "time",    "value",    "key",       "state",      "name",    "type",
        "user",     "year",      "month",     "day",     "hour",     "minute",    "second",     "offset",  "desc",
        "asc",      "window",    "filter",    "over",    "interval", "row",       "map",        "array",   "first",
        "last",     "position",  "cast",      "exists",  "any",      "some",      "begin",      "set",     "show",
        "to",       "at",        "current",   "emit",    "semi",     "anti",      "constraint", "primary", "watermark",
        "column",   "escape",    "if",        "zone",    "local",    "unbounded", "rows",       "range",   "groups",
        "trim",     "grouping",  "ignore",    "respect", "comment",  "plan",      "precision",  "double",  "view",
        "insert",   "both",      "symmetric", "within",  "fetch",    "status",    "count",      "label"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(words); i++) {
        const char *w = words[i];
        fixture f;
        ck_ast_script script;
        char sql[1000];
        open_fixture(&f, ck_heap_system());
        snprintf(sql, sizeof sql,
                 "CREATE TABLE t (%s BIGINT, b BIGINT) WITH (connector='x'); CREATE TABLE t (b DATE, %s TIMESTAMP(3)); "
                 "SELECT %s, t.%s, %s + 1, b AS %s FROM t WHERE %s > 3 AND b < %s GROUP BY %s ORDER BY %s; "
                 "INSERT INTO t (b, %s) SELECT b, %s FROM t; SELECT f(%s) FROM (SELECT b AS %s FROM t) AS %s",
                 w, w, w, w, w, w, w, w, w, w, w, w, w, w, w);
        ck_status s = parse(&f, ck_view_of(sql), &script);
        if (s != CK_OK) print_message("%s: %s\n", w, f.err.msg);
        assert_int_equal(s, CK_OK);
        close_fixture(&f);
    }
}

static void queries(void **state) {
    (void)state;
    static const pair cases[] = {
        {"SELECT *, t.*, a AS x, b y FROM t", "{select (star *) (star t) a:x b:y from t}"},
        {"SELECT DISTINCT a FROM t WHERE a > 1 GROUP BY a, 2 HAVING COUNT(*) > 1 ORDER BY 1 DESC LIMIT 3 OFFSET 4",
         "{select-distinct a from t where (op > a 1) group a 2 having (op > (call COUNT *) 1) order 1- limit 3 offset "
         "4}"},
        {"SELECT a FROM t GROUP BY ()", "{select a from t group (row)}"},
        {"SELECT a FROM t GROUP BY GROUPING SETS ((a, b), a, ()), ROLLUP (a, b)",
         "{select a from t group (sets (row a b) a (row)) (call ROLLUP a b)}"},
        {"WITH a AS (SELECT 1), b (x, y) AS (SELECT 2, 3) SELECT * FROM a, b",
         "{with a {select 1} with b {select 2 3} select (star *) from a, b}"},
        {"VALUES (1, 'a'), (2, 'b')", "{values (row 1 'a') (row 2 'b')}"},
        {"SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3", "{union-all {select 1} {select 2} {select 3}}"},
        {"SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT ALL SELECT 4",
         "{except-all {union {select 1} {intersect {select 2} {select 3}}} {select 4}}"},
        {"SELECT 1 UNION ALL (SELECT 2 UNION ALL SELECT 3)",
         "{union-all {select 1} {union-all {select 2} {select 3}}}"},
        {"(SELECT a FROM t ORDER BY a LIMIT 1) ORDER BY b", "{union-all {select a from t order a+ limit 1} order b+}"},
        {"(SELECT 1) UNION ALL (SELECT 2) LIMIT 1", "{union-all {select 1} {select 2} limit 1}"},
        {"SELECT a FROM t FETCH FIRST 5 ROWS ONLY", "{select a from t limit 5}"},
        {"SELECT a FROM t OFFSET 2 ROWS FETCH NEXT 5 ROWS ONLY", "{select a from t limit 5 offset 2}"},
        {"SELECT a, COUNT(*) FROM t GROUP BY a EMIT ON CLOSE", "{select a (call COUNT *) from t group a emit}"},
        {"SELECT 1 FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (x, y) CROSS JOIN d NATURAL FULL OUTER JOIN e",
         "{select 1 from (natural-full (cross (left (join a b on (op = (field x a) (field x b))) c using:x using:y) d) "
         "e)}"},
        {"SELECT 1 FROM a SEMI JOIN b ON a.x = b.x", "{select 1 from (semi a b on (op = (field x a) (field x b)))}"},
        {"SELECT 1 FROM a LEFT ANTI JOIN b ON TRUE", "{select 1 from (anti a b on true)}"},
        {"SELECT 1 FROM (a JOIN b ON TRUE) JOIN (SELECT 2) AS c (y) ON TRUE",
         "{select 1 from (join (join a b on true) {select 2} c:y on true)}"},
        {"SELECT 1 FROM ((SELECT 2) c)", "{select 1 from {select 2} c}"},
        {"SELECT 1 FROM ((SELECT 2)) c", "{select 1 from {select 2} c}"},
        {"SELECT 1 FROM (VALUES (1)) AS v(x)", "{select 1 from {values (row 1)} v:x}"},
        {"SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
         "{select (star *) from (call TUMBLE (table t) (call DESCRIPTOR ts) (interval 6-0 1))}"},
        {"SELECT * FROM TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' HOUR))",
         "{select (star *) from (call HOP (named DATA (table t)) (named TIMECOL (call DESCRIPTOR ts)) (named SLIDE "
         "(interval 6-0 1)))}"},
        {"SELECT * FROM SESSION(TABLE t PARTITION BY (a, b), DESCRIPTOR(ts), INTERVAL '1' HOUR) s",
         "{select (star *) from (call SESSION (table t a b) (call DESCRIPTOR ts) (interval 6-0 1)) s}"},
        {"SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts AS x ON o.c = x.c",
         "{select (star *) from (join o r as-of (field ts o) x on (op = (field c o) (field c x)))}"},
        {"SELECT * FROM t CROSS JOIN UNNEST(t.tags) WITH ORDINALITY AS u(tag, n)",
         "{select (star *) from (cross t (call UNNEST (field tags t))# u:tag:n)}"},
        {"SELECT * FROM t, LATERAL TABLE(f(a)) AS x(y)", "{select (star *) from t, lateral (call f a) x:y}"},
        {"SELECT * FROM t LEFT JOIN LATERAL (SELECT t.a) AS x ON TRUE",
         "{select (star *) from (left t lateral {select (field a t)} x on true)}"},
        {"SELECT * FROM t /*+ OPTIONS('a'='b') */ AS x", "{select (star *) from t/*OPTIONS*/ x}"},
        {"SELECT SUM(a) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY c)",
         "{select (call SUM a (over w)) from t window w (over by b order c+)}"},
        {"SELECT a.b.c FROM a.b.c", "{select (field c (field b a)) from a.b.c}"},
        {"SELECT a IN (SELECT b FROM t ORDER BY b LIMIT 1) FROM t OFFSET 3",
         "{select (in-query a {select b from t order b+ limit 1}) from t offset 3}"},
    };
    check_all(cases, CK_ARRAY_COUNT(cases), "");
}

static void statements(void **state) {
    (void)state;
    static const struct {
        const char *sql;
        ck_ast_statement_kind kind;
    } cases[] = {
        {"CREATE TABLE t (a BIGINT NOT NULL, b VARCHAR(10) NULL COMMENT 'x', c AS a + 1, d ROW<x INT, y ARRAY<INT>>, "
         "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (a, b) NOT ENFORCED) COMMENT 'y' "
         "WITH (connector = 'file', 'format' = 'json', scan.rate-limit = 5, follow = TRUE)",
         CK_STATEMENT_CREATE_TABLE},
        {"CREATE TABLE IF NOT EXISTS t (a BIGINT PRIMARY KEY NOT ENFORCED)", CK_STATEMENT_CREATE_TABLE},
        {"CREATE TABLE t (a INT, CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED, off BIGINT METADATA FROM 'offset' "
         "VIRTUAL)",
         CK_STATEMENT_CREATE_TABLE},
        {"CREATE TABLE t WITH (connector='x') AS SELECT 1", CK_STATEMENT_CREATE_TABLE},
        {"CREATE TABLE t AS (SELECT 1)", CK_STATEMENT_CREATE_TABLE},
        {"CREATE TEMPORARY VIEW v (a, b) AS SELECT 1, 2", CK_STATEMENT_CREATE_VIEW},
        {"CREATE OR REPLACE VIEW v AS WITH x AS (SELECT 1) SELECT * FROM x", CK_STATEMENT_CREATE_VIEW},
        {"CREATE FUNCTION f (a BIGINT, b VARCHAR) RETURNS BIGINT RETURN a + 1", CK_STATEMENT_CREATE_FUNCTION},
        {"INSERT INTO t SELECT 1", CK_STATEMENT_INSERT},
        {"INSERT INTO t (a, b) (SELECT 1, 2)", CK_STATEMENT_INSERT},
        {"INSERT INTO t (SELECT 1)", CK_STATEMENT_INSERT},
        {"INSERT INTO t VALUES (1), (2)", CK_STATEMENT_INSERT},
        {"INSERT INTO t (WITH x AS (SELECT 1) SELECT * FROM x)", CK_STATEMENT_INSERT},
        {"INSERT OVERWRITE t SELECT 1", CK_STATEMENT_INSERT},
        {"EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END", CK_STATEMENT_SET_OF},
        {"BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END", CK_STATEMENT_SET_OF},
        {"EXPLAIN SELECT 1", CK_STATEMENT_EXPLAIN},
        {"EXPLAIN PLAN FOR INSERT INTO t SELECT 1", CK_STATEMENT_EXPLAIN},
        {"DESCRIBE t", CK_STATEMENT_DESCRIBE},
        {"DESC t", CK_STATEMENT_DESCRIBE},
        {"DESCRIBE SELECT 1", CK_STATEMENT_DESCRIBE},
        {"SHOW TABLES", CK_STATEMENT_SHOW},
        {"SHOW TABLES LIKE 'a%'", CK_STATEMENT_SHOW},
        {"SHOW CREATE TABLE t", CK_STATEMENT_SHOW},
        {"SHOW COLUMNS FROM t", CK_STATEMENT_SHOW},
        {"SHOW timezone", CK_STATEMENT_SHOW},
        {"SHOW ALL", CK_STATEMENT_SHOW},
        {"DROP TABLE IF EXISTS a, b", CK_STATEMENT_DROP},
        {"DROP TEMPORARY VIEW v", CK_STATEMENT_DROP},
        {"SET", CK_STATEMENT_SET},
        {"SET batch_rows = 1", CK_STATEMENT_SET},
        {"SET 'on_eval_error' = 'null'", CK_STATEMENT_SET},
        {"SET on_eval_error TO fail", CK_STATEMENT_SET},
        {"SET TIME ZONE 'Europe/Berlin'", CK_STATEMENT_SET},
        {"RESET batch_rows", CK_STATEMENT_RESET},
        {"ALTER TABLE t RENAME TO u", CK_STATEMENT_ALTER},
        {"ALTER TABLE IF EXISTS t RENAME a TO b", CK_STATEMENT_ALTER},
        {"ALTER TABLE t ADD COLUMN a BIGINT", CK_STATEMENT_ALTER},
        {"ALTER TABLE t ADD (a BIGINT, b AS a + 1)", CK_STATEMENT_ALTER},
        {"ALTER TABLE t DROP COLUMN a", CK_STATEMENT_ALTER},
        {"ALTER TABLE t DROP a", CK_STATEMENT_ALTER},
        {"ALTER TABLE t SET ('a' = 'b')", CK_STATEMENT_ALTER},
        {"ALTER TABLE t RESET ('a')", CK_STATEMENT_ALTER},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        ck_status s = parse(&f, ck_view_of(cases[i].sql), &script);
        if (s != CK_OK) print_message("%s\n%s\n", cases[i].sql, f.err.msg);
        assert_int_equal(s, CK_OK);
        assert_int_equal(script.count, 1);
        assert_int_equal(script.first->kind, cases[i].kind);
        assert_int_equal(script.first->pos.end, strlen(cases[i].sql));
        close_fixture(&f);
    }
}

static void a_table_in_detail(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    const char *sql = "  CREATE TABLE t (a BIGINT NOT NULL, c AS a + 1,\n WATERMARK FOR c AS c, PRIMARY KEY (a, c) NOT "
                      "ENFORCED) WITH ('K.x' = 'v''w', rate-limit = -5)";
    assert_int_equal(parse(&f, ck_view_of(sql), &script), CK_OK);
    const ck_ast_create_table *t = script.first->create_table;
    assert_true(ck_view_is(t->name.first->ident.text, "t"));
    assert_true(t->columns->not_null && !t->columns->computed);
    assert_int_equal(t->columns->name.pos.column, 19);
    assert_non_null(t->columns->next->computed);
    assert_int_equal(t->watermarks->pos.line, 2);
    assert_int_equal(t->watermarks->pos.column, 2);
    assert_int_equal(t->keys->columns.count, 2);
    assert_false(t->keys->enforced);
    assert_true(ck_view_is(t->options.first->key, "K.x"));
    assert_true(ck_view_is(t->options.first->value, "v'w"));
    assert_true(ck_view_is(t->options.last->key, "rate-limit"));
    assert_true(ck_view_is(t->options.last->value, "-5"));
    close_fixture(&f);
}

static void empty_scripts(void **state) {
    (void)state;
    static const char *const texts[] = {"", ";", " ; ;; ", "-- only a comment", "/* c */"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(texts); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        assert_int_equal(parse(&f, ck_view_of(texts[i]), &script), CK_OK);
        assert_int_equal(script.count, 0);
        close_fixture(&f);
    }
}

static void messages(void **state) {
    (void)state;
    static const pair cases[] = {
        {"SELCT 1", "t.sql:1:1: unexpected \"SELCT\"; did you mean \"SELECT\"?\n  SELCT 1\n  ^"},
        {"SELECT a\nFROM t WERE x = 1", "t.sql:2:13: unexpected \"x\" after \"WERE\"; did you mean \"WHERE\" there?\n  "
                                        "FROM t WERE x = 1\n              ^"},
        {"SELECT a, FROM t",
         "t.sql:1:11: unexpected \"FROM\" after a comma; remove the comma\n  SELECT a, FROM t\n            ^"},
        {"SELECT a FROM order",
         "t.sql:1:15: unexpected \"order\"; it is a reserved word: as a name it is written \"order\" in double quotes\n"
         "  SELECT a FROM order\n                ^"},
        {"SELECT (1", "t.sql:1:10: unexpected end of the text; expected ')' or ','\n  SELECT (1\n           ^"},
        {"SELECT 'abc", "t.sql:1:8: this string has no closing '\n  SELECT 'abc\n         ^"},
        {"SELECT \"abc", "t.sql:1:8: this quoted name has no closing \"\n  SELECT \"abc\n         ^"},
        {"SELECT 1 /* x\n /* y */", "t.sql:1:10: this comment has no closing */\n  SELECT 1 /* x\n           ^"},
        {"UPDATE t SET a = 1", "t.sql:1:1: UPDATE is not a statement here: a table's rows change through what streams "
                               "into it (INSERT INTO ... "
                               "SELECT)\n  UPDATE t SET a = 1\n  ^"},
        {"SELECT a == b", "t.sql:1:10: SQL compares with =, not ==\n  SELECT a == b\n           ^"},
        {"SELECT a && b", "t.sql:1:10: SQL says AND, not &&\n  SELECT a && b\n           ^"},
        {"SELECT \xe2\x80\x98x\xe2\x80\x99",
         "t.sql:1:8: a string is written between straight quotes: '\n  SELECT \xe2\x80\x98x\xe2\x80\x99\n         ^"},
        {"SELECT 12ab",
         "t.sql:1:8: \"12ab\" is neither a number nor a name; a name that begins with a digit is written in "
         "double quotes\n  SELECT 12ab\n         ^"},
        {"SELECT a FROM t GROUP a",
         "t.sql:1:23: unexpected \"a\"; expected BY\n  SELECT a FROM t GROUP a\n                        ^"},
        {"SELECT \"\"", "t.sql:1:8: a quoted name is empty\n  SELECT \"\"\n         ^"},
        {"SELECT x'1'", "t.sql:1:8: X'...' takes pairs of hexadecimal digits\n  SELECT x'1'\n         ^"},
        {"SELECT \t\xc3\xa9 + @", "t.sql:1:13: unexpected character \"@\"\n  SELECT \t\xc3\xa9 + @\n         \t    ^"},
        {"SELECT * FROM t MATCH_RECOGNIZE (x)", "t.sql:1:17: MATCH_RECOGNIZE is not supported yet\n  SELECT * FROM t "
                                                "MATCH_RECOGNIZE (x)\n                  ^"},
        {"WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t", "t.sql:1:6: WITH RECURSIVE is not supported: a stream has "
                                                           "no fixed point to reach\n  WITH RECURSIVE t AS (SELECT "
                                                           "1) SELECT * FROM t\n       ^"},
        {"SELECT a FROM t /*+ x", "t.sql:1:22: unexpected end of the text; expected a name, */ or ','\n  SELECT a FROM "
                                  "t /*+ x\n                       ^"},
        {"SELECT a BETWEEN 1", "t.sql:1:19: unexpected end of the text\n  SELECT a BETWEEN 1\n                    ^"},
    };
    check_all(cases, CK_ARRAY_COUNT(cases), "");
}

static void bytes_that_are_no_text(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    assert_int_equal(parse(&f, (ck_view){"SELECT\n a\0b", 11}, &script), CK_INVALID);
    assert_string_equal(f.err.msg, "t.sql:2:3: a NUL byte is not SQL text\n   a.b\n    ^");
    assert_int_equal(parse(&f, CK_VIEW("SELECT '\xff'"), &script), CK_INVALID);
    assert_non_null(strstr(f.err.msg, "t.sql:1:9: byte 0xff is not valid UTF-8 here"));
    assert_int_equal(parse(&f, CK_VIEW("SELECT '\xed\xa0\x80'"), &script), CK_INVALID);
    close_fixture(&f);
}

static char *repeat(fixture *f, const char *head, const char *piece, size_t times, const char *tail) {
    size_t h = strlen(head), p = strlen(piece), t = strlen(tail);
    char *s = (char *)ck_arena_alloc(&f->arena, h + p * times + t + 1), *at = s;
    assert_non_null(s);
    memcpy(at, head, h), at += h;
    for (size_t i = 0; i < times; i++) memcpy(at, piece, p), at += p;
    memcpy(at, tail, t + 1);
    return s;
}

/* However it is nested: one sentence, no stack overflow; and wide is not deep. */
static void nesting(void **state) {
    (void)state;
    static const struct {
        const char *head, *piece, *tail;
    } deep[] = {
        {"SELECT ", "(", "1"},
        {"SELECT ", "NOT ", "a"},
        {"SELECT ", "- ", "a"},
        {"SELECT a", " + 1", ""},
        {"SELECT a", ".b", ""},
        {"SELECT a", "::int", ""},
        {"SELECT a", "[1]", ""},
        {"SELECT ", "f(1, ", "1"},
        {"SELECT ", "CASE WHEN a THEN ", "1"},
        {"SELECT ", "CASE ", "1"},
        {"SELECT ", "EXISTS (SELECT ", "1"},
        {"SELECT a FROM ", "(SELECT a FROM ", "t"},
        {"SELECT a::", "array<", "int"},
        {"SELECT a::int", "[]", ""},
        {"SELECT a FROM t", " JOIN t ON a", ""},
        {"WITH a AS ", "(WITH a AS ", "(SELECT 1)"},
        {"SELECT a IS NULL", " IS NULL", ""},
        {"SELECT ", "ARRAY[", "1"},
        {"SELECT 1", " UNION SELECT 1 EXCEPT SELECT 1", ""},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(deep); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        const char *sql = repeat(&f, deep[i].head, deep[i].piece, 100000, deep[i].tail);
        ck_status s = parse(&f, ck_view_of(sql), &script);
        if (s != CK_INVALID || !strstr(f.err.msg, "nested deeper than 500 levels"))
            print_message("%s: %s\n", deep[i].piece, f.err.msg);
        assert_int_equal(s, CK_INVALID);
        assert_non_null(strstr(f.err.msg, "nested deeper than 500 levels"));
        close_fixture(&f);
    }
}

static void width(void **state) {
    (void)state;
    static const struct {
        const char *head, *piece, *tail;
    } wide[] = {
        {"SELECT a", ", a", ""},
        {"SELECT a IN (1", ", 2", ")"},
        {"SELECT a = 1", " OR a = 1", ""},
        {"SELECT a = 1", " AND a = 1", ""},
        {"SELECT 1", " UNION ALL SELECT 1", ""},
        {"VALUES (1)", ", (1)", ""},
        {"SELECT 1", ";", ""},
        {"SELECT 1 -- ", "x", ""},
        {"SELECT '", "''", "'"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(wide); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        const char *sql = repeat(&f, wide[i].head, wide[i].piece, 20000, wide[i].tail);
        assert_int_equal(parse(&f, ck_view_of(sql), &script), CK_OK);
        close_fixture(&f);
    }
}

static void ceilings(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    const char *name = repeat(&f, "SELECT ", "x", CK_NAME_BYTES_MAX, "");
    assert_int_equal(parse(&f, ck_view_of(name), &script), CK_OK);
    name = repeat(&f, "SELECT ", "x", CK_NAME_BYTES_MAX + 1, "");
    assert_int_equal(parse(&f, ck_view_of(name), &script), CK_INVALID);
    assert_non_null(strstr(f.err.msg, "a name of 256 bytes is too long; at most 255 are allowed"));
    const char *text = repeat(&f, "SELECT 1", " ", CK_SQL_BYTES_MAX - 8, "");
    assert_int_equal(parse(&f, ck_view_of(text), &script), CK_OK);
    text = repeat(&f, "SELECT 1", " ", CK_SQL_BYTES_MAX - 7, "");
    assert_int_equal(parse(&f, ck_view_of(text), &script), CK_INVALID);
    assert_non_null(strstr(f.err.msg, "16777217 bytes of SQL are too many"));
    close_fixture(&f);
}

/* A caret under a far column of a long line stands under its character. */
static void long_lines(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    const char *sql =
        repeat(&f, "SELECT ", "\xc3\xa4 + ", 400,
               "@ + yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
               "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
    assert_int_equal(parse(&f, ck_view_of(sql), &script), CK_INVALID);
    const char *line = strchr(f.err.msg, '\n') + 1, *caret = strchr(line, '\n') + 1;
    size_t columns = 0;
    for (const char *p = line; *p != '@'; p++) columns += ((unsigned char)*p & 0xC0) != 0x80;
    assert_int_equal(strchr(caret, '^') - caret, columns);
    assert_true(strlen(f.err.msg) < sizeof f.err.msg - 1);
    assert_int_equal(f.err.place.column, 1608);
    close_fixture(&f);
}

/* Values of options that keep secrets are not in messages, wherever the line is cut. */
static void secrets(void **state) {
    (void)state;
    static const char *const texts[] = {
        "CREATE TABLE t (a INT) WITH (password='geheim', x='y') @",
        "CREATE TABLE t (a INT) WITH ('properties.sasl.Password' = 'ge''heim' @",
        "CREATE TABLE t (a INT) WITH (\"client.secret\" =\t'\xc3\xa4 geheim' @",
        "CREATE TABLE t (a INT) WITH (x='y', password='a geheim that is long, long enough for the window of the "
        "message to begin in "
        "the middle of it, geheim' @",
        "-- don't\nCREATE TABLE t (a INT) WITH (/* isn't */ password='geheim' @",
        "CREATE TABLE t (a INT) WITH (password='geheim @", /* a literal without an end */
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(texts); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        assert_int_equal(parse(&f, ck_view_of(texts[i]), &script), CK_INVALID);
        if (strstr(f.err.msg, "heim")) fail_msg("%s", f.err.msg);
        const char *line = strchr(f.err.msg, '\n') + 1;
        assert_non_null(strchr(line, '*'));
        close_fixture(&f);
    }
}

/* Every allocation fails once: CK_NOMEM, and nothing is left. */
static void allocation_sweep(void **state) {
    (void)state;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    const char *sql =
        "CREATE TABLE t (a BIGINT, b VARCHAR) WITH ('x' = 'y'); INSERT INTO t SELECT a + 1, 'x''y' FROM (SELECT * "
        "FROM u JOIN v ON u.x = v.y) WHERE a IN (1, 2) GROUP BY a ORDER BY sum(b) OVER (PARTITION BY c)";
    for (uint64_t n = 1;; n++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_tracked_heap_base(heap));
        ck_tracked_heap_fail_nth(heap, n);
        ck_status s = parse(&f, ck_view_of(sql), &script);
        bool fired = ck_tracked_heap_fired(heap);
        ck_tracked_heap_fail_nth(heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        close_fixture(&f);
        assert_int_equal(ck_tracked_heap_live_blocks(heap), 0);
        if (!fired) break;
    }
    ck_tracked_heap_free(heap);
}

/* The same with a ceiling that cuts the arena anywhere. */
static void arena_ceilings(void **state) {
    (void)state;
    const char *sql = "SELECT a, b + 1 FROM t WHERE a IN (1, 2, 3)";
    for (size_t limit = 0;; limit += 200) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        f.arena.bytes_max = limit;
        ck_source_text source = {.name = "t.sql", .text = ck_view_of(sql)};
        ck_status s = ck_parse_script(&source, &f.arena, &script, &f.err);
        assert_true(s == CK_OK || s == CK_NOMEM);
        close_fixture(&f);
        if (s == CK_OK) break;
    }
}

static void quoting(void **state) {
    (void)state;
    assert_false(ck_parse_name_needs_quotes(CK_VIEW("abc_1")));
    assert_true(ck_parse_name_needs_quotes(CK_VIEW("1a")));
    assert_true(ck_parse_name_needs_quotes(CK_VIEW("a b")));
    assert_true(ck_parse_name_needs_quotes(CK_VIEW("order")));
    assert_true(ck_parse_name_needs_quotes(CK_VIEW("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions),       cmocka_unit_test(words_as_names),
        cmocka_unit_test(queries),           cmocka_unit_test(statements),
        cmocka_unit_test(a_table_in_detail), cmocka_unit_test(empty_scripts),
        cmocka_unit_test(messages),          cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(nesting),           cmocka_unit_test(width),
        cmocka_unit_test(ceilings),          cmocka_unit_test(long_lines),
        cmocka_unit_test(secrets),           cmocka_unit_test(allocation_sweep),
        cmocka_unit_test(arena_ceilings),    cmocka_unit_test(quoting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
