/* Trees as s-expressions, statements, words as names. */
#include "sql/parse/tree_text_test_support.h"

static const pair expression_cases[] = {
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

static void expressions(void **state) {
    (void)state;
    check_all(expression_cases, CK_ARRAY_COUNT(expression_cases), "SELECT ");
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
        cmocka_unit_test(expressions), cmocka_unit_test(words_as_names),    cmocka_unit_test(queries),
        cmocka_unit_test(statements),  cmocka_unit_test(a_table_in_detail), cmocka_unit_test(empty_scripts),
        cmocka_unit_test(quoting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
