/* What golden files do not show: the graph's parameters and edges, what a failed script leaves in the catalog, deep and
 * wide texts, and that every allocation may fail. */
#include "sql/compile.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/builtins.h"
#include "sql/catalog/catalog.h"

#define ORDERS                                                                                                         \
    "CREATE TABLE orders (usr VARCHAR, amount BIGINT NOT NULL, note VARCHAR) WITH (connector='file', "                 \
    "path='o.ndjson');"

typedef struct session {
    ck_proc proc;
    ck_arena registry_arena, arena;
    ck_registry registry;
    ck_catalog *catalog;
    ck_error err;
    ck_sql_options options;
    ck_sql_plan *plan;
} session;

static ck_status open_session(session *s, ck_heap *heap) {
    memset(s, 0, sizeof *s);
    s->err = CK_ERROR_INIT;
    s->proc.heap = heap;
    s->options = (ck_sql_options){.source_name = "t.sql",
                                  .job_name = "t",
                                  .parallelism = 4,
                                  .key_groups = CK_KEY_GROUPS_DEFAULT,
                                  .one_job = true,
                                  .result_sink = "sink.print",
                                  .result_params = "{\"fd\":1,\"changes\":\"prefix\"}"};
    ck_budget_init(&s->proc.budget, heap, 0);
    ck_mem mem = ck_proc_mem(&s->proc, CK_MEM_PLAN);
    ck_arena_init(&s->registry_arena, mem, 1 << 20);
    ck_arena_init(&s->arena, mem, (size_t)1 << 30);
    ck_registry_init(&s->registry, &s->registry_arena);
    CK_TRY(engine_register_builtins(&s->registry, &s->err));
    return ck_catalog_new(&s->proc, &s->registry, &s->catalog, &s->err);
}
static void close_session(session *s) {
    ck_catalog_free(s->catalog);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->registry_arena);
}
static ck_status compile(session *s, const char *sql) {
    return ck_sql_compile(s->catalog, ck_view_of(sql), &s->options, &s->arena, &s->plan, &s->err);
}
static void must(session *s, const char *sql) {
    ck_status st = compile(s, sql);
    if (st != CK_OK) print_message("%s\n%s\n", sql, s->err.msg);
    assert_int_equal(st, CK_OK);
}

static const ck_graph_op *op_of(const session *s, const char *uid) {
    const ck_graph_op *op = ck_graph_find(s->plan->steps[s->plan->step_count - 1].graph, uid);
    if (!op) print_message("no operator %s\n", uid);
    assert_non_null(op);
    return op;
}

static void parameters(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    must(&s, ORDERS "SELECT usr, SUM(amount) FILTER (WHERE note IS NULL) AS total, COUNT(DISTINCT note), COUNT(*) FROM "
                    "orders GROUP BY usr HAVING COUNT(*) > 1");
    const ck_graph_op *source = op_of(&s, "source:orders"), *agg = op_of(&s, "group_agg(usr)<-orders");
    assert_string_equal(
        source->params,
        "{\"table\":\"orders\",\"table_schema\":[{\"name\":\"usr\",\"type\":\"VARCHAR\",\"nullable\":true},"
        "{\"name\":\"amount\",\"type\":\"BIGINT\",\"nullable\":false},{\"name\":\"note\",\"type\":\"VARCHAR\","
        "\"nullable\":true}],\"columns\":[0,1,2],\"checked\":[1],\"options\":{\"connector\":\"file\",\"path\":"
        "\"o.ndjson\"}}");
    assert_string_equal(
        agg->params,
        "{\"keys\":[0],\"aggregates\":[{\"fn\":\"sum\",\"arg\":1,\"filter\":2,\"distinct\":false,\"arg_text\":"
        "\"amount\",\"filter_text\":\"note IS NULL\"},{\"fn\":\"count\",\"arg\":3,\"filter\":null,\"distinct\":"
        "true,\"arg_text\":\"note\"},{\"fn\":\"count\",\"arg\":null,\"filter\":null,\"distinct\":false}]}");
    assert_true(agg->final);
    assert_int_equal(agg->inputs[0].kind, CK_EDGE_HASH);
    assert_int_equal(agg->inputs[0].key_count, 1);
    assert_int_equal(agg->parallelism, 0);
    assert_int_equal(agg->key_count, 1);
    assert_true(agg->state_fingerprint != 0);
    const ck_graph_op *sink = op_of(&s, "sink:result");
    assert_string_equal(sink->params, "{\"fd\":1,\"changes\":\"prefix\",\"key\":[0]}");
    assert_int_equal(sink->inputs[0].kind, CK_EDGE_GATHER);
    assert_int_equal(sink->parallelism, 1);
    assert_string_equal(sink->schema->fields[1].name, "total");
    const ck_sql_step *step = &s.plan->steps[0];
    assert_true(step->bounded && step->has_result && step->result_mode == CK_MODE_APPEND);
    assert_int_equal(step->result_schema->field_count, 4);
    close_session(&s);
}

/* The tracked heap spoils what is freed. */
static void a_plan_outlives_its_tables(void **state) {
    (void)state;
    session s;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    assert_int_equal(open_session(&s, ck_tracked_heap_base(heap)), CK_OK);
    must(&s,
         ORDERS "CREATE TABLE o (usr VARCHAR) WITH (connector = 'blackhole'); INSERT INTO o SELECT usr FROM orders; "
                "DROP TABLE o; DROP TABLE orders;");
    const ck_graph *g = s.plan->steps[0].graph;
    const ck_graph_op *sink = ck_graph_find(g, "sink:o");
    assert_string_equal(sink->label, "o");
    assert_string_equal(sink->type, "sink.blackhole");
    ck_bytes text;
    ck_bytes_init(&text, (ck_mem){ck_budget_uncounted(), CK_MEM_PLAN}, 1 << 20);
    assert_int_equal(ck_graph_encode(g, &text), CK_OK);
    for (size_t i = 0; i < text.n; i++) assert_true((uint8_t)text.p[i] < 0x80);
    ck_bytes_destroy(&text);
    close_session(&s);
    ck_tracked_heap_free(heap);
}

static void settings_go_where_they_belong(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    must(&s, ORDERS "SELECT usr FROM orders");
    uint64_t plain = ck_graph_hash(s.plan->steps[0].graph);
    assert_int_equal(ck_catalog_set(s.catalog, CK_VIEW("batch_rows"), CK_VIEW("7"), &s.err), CK_OK);
    assert_int_equal(ck_catalog_set(s.catalog, CK_VIEW("FLUSH_MS"), CK_VIEW("20"), &s.err), CK_OK);
    must(&s, "SELECT usr FROM orders");
    assert_int_equal(s.plan->steps[0].batch_rows, 7);
    assert_int_equal(s.plan->steps[0].flush_us, 20000);
    assert_true(ck_graph_hash(s.plan->steps[0].graph) == plain); /* another pace is the same job */
    must(&s, "SET on_eval_error = 'null'; SET timezone = 'Asia/Tokyo'; SELECT usr FROM orders");
    assert_string_equal(s.plan->steps[0].graph->settings, "{\"on_eval_error\":\"null\"}");
    assert_string_equal(s.plan->steps[0].graph->timezone, "Asia/Tokyo");
    assert_true(ck_graph_hash(s.plan->steps[0].graph) != plain);
    assert_int_equal(ck_catalog_set(s.catalog, CK_VIEW("batch_rows"), CK_VIEW("x"), &s.err), CK_INVALID);
    assert_int_equal(ck_catalog_set(s.catalog, CK_VIEW("nothing"), CK_VIEW("x"), &s.err), CK_INVALID);
    must(&s, "RESET ALL; SELECT usr FROM orders");
    assert_int_equal(s.plan->steps[0].batch_rows, 0);
    close_session(&s);
}

/* What the state of `uid` means in a script; 0: there is no such operator. */
static uint64_t meaning_of(session *s, const char *sql, const char *uid) {
    must(s, sql);
    const ck_graph_op *op = ck_graph_find(s->plan->steps[0].graph, uid);
    return op ? op->semantic_fingerprint : 0;
}

static void the_meaning_of_state_outlives_its_script(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    const char *uid = "group_agg(usr)<-orders";
    uint64_t plain = meaning_of(&s, ORDERS "SELECT usr, SUM(amount) FROM orders WHERE amount > 3 GROUP BY usr", uid);
    assert_true(plain != 0);
    static const char *const same[] = {
        "SELECT usr,\n SUM(amount)\nFROM orders WHERE (amount>3) GROUP BY 1",
        "SELECT SUM(amount), COUNT(*), usr, MAX(note) FROM orders WHERE amount > 3 GROUP BY usr",
        "SELECT usr, COUNT(*) FROM (SELECT usr, note FROM orders WHERE amount > 3) q GROUP BY usr",
        "SELECT usr, COUNT(*) FROM orders o WHERE amount > 3 GROUP BY usr HAVING COUNT(*) > 1",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(same); i++)
        if (meaning_of(&s, same[i], uid) != plain) fail_msg("%s", same[i]);
    static const char *const other[] = {
        "SELECT usr, SUM(amount) FROM orders WHERE amount > 4 GROUP BY usr",
        "SELECT usr, SUM(amount) FROM orders GROUP BY usr",
        "SELECT usr, SUM(amount) FROM (SELECT UPPER(usr) AS usr, amount FROM orders WHERE amount > 3) q GROUP BY usr",
        "SET timezone = 'Asia/Tokyo'; SELECT usr, SUM(amount) FROM orders WHERE amount > 3 GROUP BY usr",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(other); i++)
        if (meaning_of(&s, other[i], uid) == plain) fail_msg("%s", other[i]);
    close_session(&s);
}

static void a_failed_script_leaves_no_trace(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    must(&s, ORDERS "CREATE VIEW v AS SELECT usr FROM orders");
    assert_int_equal(compile(&s, "CREATE TABLE t (a INT) WITH (connector='file', path='t.ndjson'); DROP VIEW v; SET "
                                 "batch_rows = 3; SELECT x FROM t"),
                     CK_INVALID);
    must(&s, "SHOW TABLES; SHOW batch_rows");
    assert_string_equal(s.plan->steps[0].text, "orders\nv\n");
    assert_string_equal(s.plan->steps[1].text, "4096\n");
    s.options.one_job = false; /* statement by statement, what came before stays */
    assert_int_equal(compile(&s, "CREATE TABLE t (a INT) WITH (connector='file', path='t.ndjson'); SELECT x FROM t"),
                     CK_INVALID);
    assert_int_equal(compile(&s, "CREATE OR REPLACE VIEW v AS SELECT nothing FROM orders"), CK_INVALID);
    assert_int_equal(compile(&s, "DROP TABLE t, nothing"), CK_INVALID);
    must(&s, "SHOW TABLES");
    assert_string_equal(s.plan->steps[0].text, "orders\nv\nt\n");
    must(&s, "DROP TABLE t; DROP VIEW v; DROP TABLE orders; SHOW TABLES");
    assert_string_equal(s.plan->steps[0].text, "");
    close_session(&s);
}

/* A plan does not point into the catalog: it is used after its tables are gone. */
static void plans_outlive_tables(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    must(&s, "CREATE TABLE t (r ROW<a INT, b DECIMAL(7,2)>, c AS 1 + 1) WITH (connector='file', path='t.ndjson'); "
             "SELECT r, c "
             "FROM t; "
             "DROP TABLE t");
    const ck_schema *schema = s.plan->steps[0].result_schema;
    assert_string_equal(schema->fields[0].name, "r");
    assert_int_equal(schema->fields[0].type->fields[1].type->precision, 7);
    assert_string_equal(s.plan->steps[0].graph->ops[0].schema->fields[0].name, "r");
    close_session(&s);
}

static char *repeat(session *s, const char *head, const char *piece, size_t times, const char *tail) {
    size_t h = strlen(head), p = strlen(piece), t = strlen(tail);
    char *text = ck_arena_alloc(&s->arena, h + p * times + t + 1), *at = text;
    assert_non_null(text);
    memcpy(at, head, h), at += h;
    for (size_t i = 0; i < times; i++) memcpy(at, piece, p), at += p;
    memcpy(at, tail, t + 1);
    return text;
}

/* As deep as the parser lets through, everything behind it copes. */
static void deep_texts(void **state) {
    (void)state;
    static const struct {
        const char *head, *piece, *tail;
        size_t times;
    } deep[] = {
        {ORDERS "SELECT amount", " + 1", " FROM orders", 490},
        {ORDERS "SELECT usr FROM orders WHERE ", "NOT ", "usr IS NULL", 490},
        {ORDERS "SELECT 1 FROM ", "(SELECT amount FROM ", "orders", 0},
        {ORDERS "SELECT COALESCE(", "COALESCE(usr, ", "usr", 0},
        {ORDERS "SELECT amount", "::VARCHAR::BIGINT", " FROM orders", 240},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(deep); i++) {
        session s;
        assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
        char *sql = repeat(&s, deep[i].head, deep[i].piece, deep[i].times ? deep[i].times : 200, deep[i].tail);
        if (!deep[i].times) sql = repeat(&s, sql, ")", i == 3 ? 201 : 200, i == 3 ? " FROM orders" : "");
        must(&s, sql);
        close_session(&s);
    }
}

static void parentheses(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    assert_int_equal(compile(&s, repeat(&s, "SELECT ", "(", 10000, "1")), CK_INVALID);
    assert_non_null(strstr(s.err.msg, "t.sql:1:508: this is nested deeper than 500 levels"));
    close_session(&s);
}

static void wide_texts(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    must(&s, repeat(&s, ORDERS "SELECT usr FROM orders WHERE amount IN (1", ", 2", 20000, ")"));
    must(&s, repeat(&s, "SELECT usr FROM orders WHERE amount = 1", " OR amount = 2", 5000, ""));
    must(&s, repeat(&s, "SELECT usr FROM orders WHERE amount = 1", " AND amount <> 2", 5000, ""));
    must(&s, repeat(&s, "SELECT usr FROM orders", " UNION ALL SELECT usr FROM orders", 500, ""));
    must(&s, repeat(&s, "VALUES (1, 'a')", ", (2, 'b')", 5000, ""));
    must(&s, repeat(&s, "SELECT amount", ", amount + 1", 2000, " FROM orders"));
    assert_int_equal(compile(&s, repeat(&s, "SELECT amount", ", amount", 4096, " FROM orders")), CK_INVALID);
    assert_non_null(strstr(s.err.msg, "4097 columns are too many"));
    close_session(&s);
}

/* Each use of a WITH query or a view adds nothing to the plan: 2^40 uses of the first one compile. */
static void shared_queries(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    char sql[8000];
    size_t n = (size_t)snprintf(sql, sizeof sql, "%sWITH q0 AS (SELECT usr, amount FROM orders)", ORDERS);
    for (int i = 1; i <= 40; i++)
        n += (size_t)snprintf(sql + n, sizeof sql - n, ", q%d AS (SELECT * FROM q%d UNION ALL SELECT * FROM q%d)", i,
                              i - 1, i - 1);
    snprintf(sql + n, sizeof sql - n, " SELECT COUNT(*) FROM q40 WHERE amount > 3");
    must(&s, sql);
    assert_true(s.plan->steps[0].graph->op_count < 100);
    for (int doubled = 0; doubled < 2;
         doubled++) { /* expressions over what is doubled again: of columns, of constants */
        n = (size_t)snprintf(sql, sizeof sql, "SELECT x FROM ");
        for (int i = 0; i < 60; i++) n += (size_t)snprintf(sql + n, sizeof sql - n, "(SELECT x || x AS x FROM ");
        n += (size_t)snprintf(sql + n, sizeof sql - n, "%s",
                              doubled ? "(SELECT 'a' AS x) AS t" : "(SELECT usr AS x FROM orders) AS t");
        for (int i = 0; i < 60; i++) n += (size_t)snprintf(sql + n, sizeof sql - n, ") AS t");
        must(&s, sql);
    }
    for (int i = 0; i < 40; i++) {
        snprintf(sql, sizeof sql, "CREATE VIEW w%d AS SELECT * FROM %s%d UNION ALL SELECT * FROM %s%d", i,
                 i ? "w" : "orders", i - 1, i ? "w" : "orders", i - 1);
        if (i == 0) snprintf(sql, sizeof sql, "CREATE VIEW w0 AS SELECT usr FROM orders");
        must(&s, sql);
    }
    must(&s, "SELECT COUNT(*) FROM w39");
    assert_true(s.plan->steps[0].graph->op_count < 100);
    for (int i = 0; i < 40; i++) { /* and what is found out about their joins */
        snprintf(sql, sizeof sql, "CREATE VIEW j%d AS SELECT a.usr FROM %s%d a JOIN %s%d b ON a.usr = b.usr", i,
                 i ? "j" : "w", i ? i - 1 : 0, i ? "j" : "w", i ? i - 1 : 0);
        must(&s, sql);
    }
    must(&s, "SELECT COUNT(*) FROM j39");
    assert_true(s.plan->steps[0].graph->op_count < 300);
    close_session(&s);
}

/* Each part of the compiler at least once; the last one fails. */
static const char *const scripts[] = {
    ORDERS
    "CREATE VIEW v AS SELECT usr, amount + 1 AS a FROM orders WHERE amount > 3;"
    "SELECT usr, COUNT(*), SUM(a) FILTER (WHERE a > 5), COUNT(DISTINCT a) FROM v WHERE usr LIKE 'x%' GROUP BY usr "
    "HAVING COUNT(*) > 1 LIMIT 3",
    ORDERS
    "CREATE TABLE t (usr VARCHAR, n BIGINT, c AS n * 2, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', "
    "path='t.ndjson', mode='upsert'); INSERT INTO t SELECT usr, 1 FROM orders UNION ALL SELECT note, 2 FROM orders; "
    "INSERT INTO t VALUES ('a', 1); EXPLAIN SELECT DISTINCT usr FROM orders; DESCRIBE t; SHOW TABLES; SET; DROP TABLE "
    "orders",
    ORDERS
    "CREATE FUNCTION sq (x BIGINT) RETURNS BIGINT RETURN x * x; ALTER TABLE orders ADD (c INT, d AS c + 1); ALTER "
    "TABLE "
    "orders RENAME note TO words; CREATE TABLE mem (i INT); ALTER TABLE mem RENAME TO rows; SELECT sq(amount), d FROM "
    "orders; DROP FUNCTION sq",
    ORDERS "CREATE TABLE big (PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', path='big.ndjson') AS SELECT "
           "usr, amount, "
           "ROW(usr, note) AS both FROM orders; SHOW CREATE TABLE big",
    ORDERS "SELECT a.usr, b.note FROM orders a LEFT JOIN orders b ON a.usr = b.usr AND a.amount < b.amount WHERE "
           "a.amount IN (SELECT amount FROM orders c WHERE c.usr = a.usr) AND NOT EXISTS (SELECT 1 FROM orders d WHERE "
           "d.note = a.note AND d.amount > a.amount) AND a.amount > (SELECT MIN(amount) FROM orders e WHERE e.usr = "
           "a.usr) ORDER BY 1 LIMIT 3",
    ORDERS
    "SELECT usr, note, SUM(amount), GROUPING(usr) FROM orders GROUP BY ROLLUP (usr, note) UNION SELECT usr, "
    "note, amount, 0 FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY usr ORDER BY amount DESC) AS r FROM orders) "
    "WHERE r <= 2 EXCEPT SELECT usr, x, 1, 2 FROM orders CROSS JOIN UNNEST(ARRAY[note, usr]) AS u (x)",
    ORDERS "SELECT amout FROM orders",
};
enum { SCRIPTS = CK_ARRAY_COUNT(scripts) };

static void every_allocation_may_fail(void **state) {
    (void)state;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    for (size_t i = 0; i < SCRIPTS; i++)
        for (uint64_t n = 1;; n++) {
            session s;
            ck_tracked_heap_fail_nth(heap, n);
            ck_status st = open_session(&s, ck_tracked_heap_base(heap));
            if (st == CK_OK) st = compile(&s, scripts[i]);
            bool fired = ck_tracked_heap_fired(heap);
            ck_tracked_heap_fail_nth(heap, 0);
            if (st != (fired ? CK_NOMEM : i == SCRIPTS - 1 ? CK_INVALID : CK_OK))
                print_message("script %zu, allocation %llu: %s\n", i, (unsigned long long)n, s.err.msg);
            assert_int_equal(st, fired ? CK_NOMEM : i == SCRIPTS - 1 ? CK_INVALID : CK_OK);
            close_session(&s);
            assert_int_equal(ck_tracked_heap_live_blocks(heap), 0);
            if (!fired) break;
        }
    ck_tracked_heap_free(heap);
}

/* The same with an arena that ends anywhere. */
static void the_arena_may_end(void **state) {
    (void)state;
    for (size_t i = 0; i < SCRIPTS; i++)
        for (size_t limit = 0;; limit += 509) {
            session s;
            assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
            s.arena.bytes_max = limit;
            ck_status st = compile(&s, scripts[i]);
            bool whole = st == (i == SCRIPTS - 1 ? CK_INVALID : CK_OK);
            if (!whole && st != CK_NOMEM) print_message("script %zu, %zu bytes: %s\n", i, limit, s.err.msg);
            assert_true(whole || st == CK_NOMEM);
            close_session(&s);
            if (whole) break;
        }
}

/* What SHOW CREATE says of a table that no CREATE TABLE made is a CREATE TABLE that makes the same. */
static void table_text(void **state) {
    (void)state;
    session s;
    assert_int_equal(open_session(&s, ck_heap_system()), CK_OK);
    must(&s,
         "CREATE TABLE \"or\"\"der\" (\"select\" VARCHAR(3) NOT NULL, b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INTEGER, "
         "i8 BIGINT, f REAL, d DOUBLE, n DECIMAL(38,7), y BYTES, dt DATE, t TIME(3), ts TIMESTAMP(6), z "
         "TIMESTAMP_LTZ(0), ym INTERVAL YEAR TO MONTH, ds INTERVAL DAY TO SECOND, a ARRAY<ARRAY<BIGINT NOT NULL>>, m "
         "MAP<VARCHAR, ROW<\"from\" BIGINT NOT NULL, \"x y\" MAP<BIGINT, DATE NOT NULL>>>, \"\u00e9\" AS i4 + 1, "
         "PRIMARY KEY (\"select\", i8) NOT ENFORCED) COMMENT 'it''s' WITH (connector='file', format='json', "
         "path='it''s')");
    char *text = ck_arena_strdup(&s.arena, "");
    ck_bytes made;
    for (int i = 0; i < 2; i++) {
        ck_catalog_entry *e = ck_catalog_find(s.catalog, CK_VIEW("or\"der"), true);
        assert_non_null(e);
        ck_bytes_init(&made, ck_proc_mem(&s.proc, CK_MEM_PLAN), SIZE_MAX);
        assert_int_equal(ck_table_text(e, &made), CK_OK);
        if (i) assert_string_equal(ck_arena_strndup(&s.arena, made.p, made.n), text);
        text = ck_arena_strndup(&s.arena, made.p, made.n);
        ck_bytes_destroy(&made);
        must(&s, "DROP TABLE \"or\"\"der\"");
        must(&s, text);
    }
    assert_non_null(strstr(text, "(\n  \"select\" VARCHAR(3) NOT NULL,\n  b BOOLEAN,"));
    assert_non_null(strstr(text, "ROW<\"from\" BIGINT NOT NULL, \"x y\" MAP<BIGINT, DATE NOT NULL>>"));
    assert_non_null(strstr(text, "  PRIMARY KEY (\"select\", i8) NOT ENFORCED\n) COMMENT 'it''s' WITH ('connector' = "
                                 "'file', 'format' = 'json', 'path' = 'it''s')"));
    close_session(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters),
        cmocka_unit_test(settings_go_where_they_belong),
        cmocka_unit_test(the_meaning_of_state_outlives_its_script),
        cmocka_unit_test(a_failed_script_leaves_no_trace),
        cmocka_unit_test(plans_outlive_tables),
        cmocka_unit_test(deep_texts),
        cmocka_unit_test(parentheses),
        cmocka_unit_test(wide_texts),
        cmocka_unit_test(shared_queries),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_arena_may_end),
        cmocka_unit_test(table_text),
        cmocka_unit_test(a_plan_outlives_its_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
