/* A table as text is the table: random declarations, every clause of CREATE TABLE among them, are made, printed, made
 * again from what was printed, and altered back and forth; each time the same table must be there. */
#include "sql/compile.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/builtins.h"
#include "sql/catalog/catalog.h"

enum { CASES = 400, COLUMNS_MAX = 8, TEXT_MAX = 16384 };

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

/* ---- a random declaration ---- */

typedef struct writer {
    char text[TEXT_MAX];
    size_t n;
} writer;

static void put(writer *w, const char *fmt, ...) CK_PRINTF(2, 3);
static void put(writer *w, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    w->n += (size_t)vsnprintf(w->text + w->n, sizeof w->text - w->n, fmt, ap);
    va_end(ap);
    assert_true(w->n < sizeof w->text);
}

static const char *const names[] = {"a",        "\"B c\"", "\"select\"", "ts",         "value", "\"\u00e9t\u00e9\"",
                                    "\"it's\"", "`key`",   "state",      "\"q\"\"q\"", "x_1",   "Year"};
static const char *const simple_types[] = {"BOOLEAN",
                                           "TINYINT",
                                           "SMALLINT",
                                           "INT",
                                           "BIGINT",
                                           "REAL",
                                           "DOUBLE",
                                           "FLOAT(20)",
                                           "NUMERIC",
                                           "DATE",
                                           "DECIMAL(7)",
                                           "DECIMAL(38, 12)",
                                           "VARCHAR",
                                           "CHAR(3)",
                                           "STRING",
                                           "TEXT",
                                           "VARCHAR(70)",
                                           "BYTES",
                                           "VARBINARY(9)",
                                           "TIME",
                                           "TIME(3)",
                                           "BINARY",
                                           "TIMESTAMP",
                                           "TIMESTAMP(0)",
                                           "TIMESTAMP_LTZ",
                                           "TIMESTAMP_LTZ(3)",
                                           "BLOB",
                                           "DATETIME",
                                           "TIMESTAMP(6) WITH LOCAL TIME ZONE",
                                           "INTERVAL YEAR",
                                           "INTERVAL DAY TO SECOND"};
static const char *const comments[] = {"plain", "it''s", "", "-- no", "two\nlines"};

static void put_type(writer *w, int depth) {
    int kind = depth > 2 ? 7 : pick(8);
    switch (kind) {
    case 0:
        put(w, "ARRAY<");
        put_type(w, depth + 1);
        put(w, "%s>", pick(2) ? " NOT NULL" : "");
        break;
    case 1:
        put(w, "MAP<VARCHAR, ");
        put_type(w, depth + 1);
        put(w, "%s>", pick(2) ? " NOT NULL" : "");
        break;
    case 2:
        put(w, "ROW<%s ", names[pick(6)]);
        put_type(w, depth + 1);
        put(w, "%s, %s INT>", pick(2) ? " NOT NULL" : "", names[6 + pick(6)]);
        break;
    default: put(w, "%s", simple_types[pick(CK_ARRAY_COUNT(simple_types))]);
    }
}

typedef enum column_kind { OTHER, NUMBER, TIME, MILLIS } column_kind;
typedef struct column {
    const char *name;
    column_kind kind;
} column;

static void put_column(writer *w, column *c, bool first, bool key) {
    put(w, "%s%s ", first ? "" : ", ", c->name);
    c->kind = (column_kind)pick(4);
    switch (c->kind) {
    case NUMBER: put(w, "INT"); break;
    case TIME: put(w, pick(2) ? "TIMESTAMP(3)" : "TIMESTAMP_LTZ(6)"); break;
    case MILLIS: put(w, "BIGINT"); break;
    case OTHER: put_type(w, 0);
    }
    if (key) {
        put(w, " PRIMARY KEY NOT ENFORCED");
    } else if (pick(3) == 0) {
        put(w, pick(2) ? " NOT NULL" : " NULL");
    }
    if (pick(4) == 0) put(w, " COMMENT '%s'", comments[pick(CK_ARRAY_COUNT(comments))]);
}

static const char *const computed[] = {"%s + 1", "(%s + 2) * 3", "-(%s)", "CAST(%s AS VARCHAR) || 'it''s'",
                                       "CASE WHEN %s IS NULL THEN '-- x' ELSE 'y' END"};

static void put_computed(writer *w, const char *name, const column *of) {
    put(w, ", %s AS ", name);
    put(w, "%s", pick(2) && of->kind == NUMBER ? "" : "/* words */ ");
    const char *form =
        of->kind == NUMBER || of->kind == MILLIS ? computed[pick(CK_ARRAY_COUNT(computed))] : computed[4];
    char text[200];
    const char *at = strstr(form, "%s");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - form), form, of->name, at + 2);
    put(w, "%s", text);
    if (pick(4) == 0) put(w, " COMMENT '%s'", comments[pick(CK_ARRAY_COUNT(comments))]);
}

static void put_watermark(writer *w, const column *c) {
    put(w, ", WATERMARK FOR %s AS %s", c->name, c->name);
    if (pick(3) == 0) return;
    if (c->kind == MILLIS && pick(2)) {
        put(w, " - %d", pick(100000));
    } else {
        static const char *const delays[] = {
            "INTERVAL '5' SECOND",        "INTERVAL '1.25' MINUTE",
            "INTERVAL '1 2' DAY TO HOUR", "(INTERVAL '3' DAY - INTERVAL '0.000001' SECOND)",
            "INTERVAL '0' SECOND",        "INTERVAL '2900000' DAY"};
        put(w, " - %s", delays[pick(CK_ARRAY_COUNT(delays))]);
    }
}

/* The text of an identifier, for an option's value. */
static const char *bare(const char *name, char *out) {
    size_t n = 0;
    bool quoted = *name == '"' || *name == '`';
    for (const char *c = name + quoted; *c && !(quoted && !c[1]); c++) {
        if (*c == '\'') out[n++] = '\'';
        out[n++] = *c;
        if (*c == '"' && c[1] == '"') c++;
    }
    out[n] = 0;
    return out;
}

static void declaration(writer *w) {
    column columns[COLUMNS_MAX];
    int count = 1 + pick(COLUMNS_MAX - 3), from = pick(CK_ARRAY_COUNT(names)), key = pick(3) ? -1 : pick(count);
    const column *time = NULL;
    bool inline_key = pick(2), memory = pick(8) == 0;
    w->n = 0;
    put(w, "CREATE %sTABLE %s\"t \"\"1\" (", pick(4) ? "" : "TEMPORARY ", pick(3) ? "" : "IF NOT EXISTS ");
    for (int i = 0; i < count; i++) {
        columns[i].name = names[(from + i) % (int)CK_ARRAY_COUNT(names)];
        put_column(w, &columns[i], i == 0, inline_key && i == key);
        if (columns[i].kind == TIME || columns[i].kind == MILLIS) time = &columns[i];
    }
    for (int i = 0; i < pick(3); i++)
        put_computed(w, names[(from + count + i) % (int)CK_ARRAY_COUNT(names)], &columns[pick(count)]);
    int timing = memory || !time ? 0 : pick(3); /* none, clause, options */
    if (timing == 1 && pick(2)) put_watermark(w, time), timing = -1;
    if (key >= 0 && !inline_key)
        put(w, ", %sPRIMARY KEY (%s) NOT ENFORCED", pick(2) ? "CONSTRAINT pk " : "", columns[key].name);
    if (timing == 1) put_watermark(w, time);
    put(w, ")");
    if (pick(3) == 0) put(w, " COMMENT '%s'", comments[pick(CK_ARRAY_COUNT(comments))]);
    if (memory) return;
    char text[100];
    bool simple = true; /* datagen makes no lists */
    for (int i = 0; i < count; i++) simple &= columns[i].kind != OTHER;
    bool file = !simple || pick(2);
    put(w,
        file ? " WITH ('Format'='JSON', path = 'it''s %d', \"CONNECTOR\"='file'"
             : " WITH (connector='datagen', rows='%d'",
        pick(9));
    if (file && pick(2)) put(w, ", 'follow' = TRUE");
    if (!file && columns[0].kind == NUMBER) put(w, ", 'fields.%s.max' = '7'", bare(columns[0].name, text));
    if (timing == 2) put(w, ", event_time_column='%s', watermark_lag_ms=%d", bare(time->name, text), pick(9999));
    if (timing && pick(2)) put(w, ", allowed_lateness_ms=%d", pick(9999));
    if (timing && pick(2)) put(w, ", idle_timeout_ms=%d", pick(9999));
    if (pick(3) == 0) put(w, ", state_ttl='%d min'", pick(60));
    put(w, ")");
}

/* ---- the same table ---- */

typedef struct session {
    ck_proc proc;
    ck_arena registry_arena, arena;
    ck_registry registry;
    ck_catalog *catalog;
} session;

static void open_session(session *s) {
    ck_error err = CK_ERROR_INIT;
    memset(s, 0, sizeof *s);
    s->proc.heap = ck_heap_system();
    ck_budget_init(&s->proc.budget, s->proc.heap, 0);
    ck_mem mem = ck_proc_mem(&s->proc, CK_MEM_PLAN);
    ck_arena_init(&s->registry_arena, mem, 1 << 20);
    ck_arena_init(&s->arena, mem, (size_t)1 << 26);
    ck_registry_init(&s->registry, &s->registry_arena);
    assert_int_equal(engine_register_builtins(&s->registry, &err), CK_OK);
    assert_int_equal(ck_catalog_new(&s->proc, &s->registry, &s->catalog, &err), CK_OK);
}

static void close_session(session *s) {
    ck_catalog_free(s->catalog);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->registry_arena);
    assert_int_equal(ck_budget_total(&s->proc.budget), 0);
}

static void run(session *s, const char *sql) {
    ck_error err = CK_ERROR_INIT;
    ck_sql_plan *plan;
    ck_sql_options o = {.source_name = "t.sql", .job_name = "t", .parallelism = 1, .key_groups = 128, .one_job = true};
    if (ck_sql_compile(s->catalog, ck_view_of(sql), &o, &s->arena, &plan, &err) != CK_OK)
        fail_msg("%s\n%s", sql, err.msg);
}

static const char *text_of(session *s, const ck_catalog_entry *e) {
    ck_bytes out;
    ck_bytes_init(&out, ck_proc_mem(&s->proc, CK_MEM_PLAN), SIZE_MAX);
    assert_int_equal(ck_table_text(e, &out), CK_OK);
    const char *text = ck_arena_strndup(&s->arena, out.p, out.n);
    ck_bytes_destroy(&out);
    return text;
}

/* Everything that is known of a table, without its name. */
static const char *facts_of(session *s, const ck_catalog_entry *e) {
    const ck_table_def *t = &e->table;
    ck_bytes out;
    const char *physical[COLUMNS_MAX];
    ck_bytes_init(&out, ck_proc_mem(&s->proc, CK_MEM_PLAN), SIZE_MAX);
#define FACT(...) assert_int_equal(ck_bytes_printf(&out, __VA_ARGS__), CK_OK)
    for (uint32_t i = 0; i < t->decl.schema->field_count; i++) physical[i] = t->decl.schema->fields[i].name;
    FACT("%s temporary=%d comment=%s\n", t->connector->name, e->temporary, t->comment);
    for (uint32_t i = 0; i < t->column_count; i++) {
        const ck_table_column *c = &t->columns[i];
        FACT("%s nullable=%d physical=%d comment=%s ", c->name, c->nullable, c->physical,
             c->comment ? c->comment : "(none)");
        assert_int_equal(ck_type_print(c->type, &out), CK_OK);
        if (c->computed) assert_int_equal(ck_expr_print(c->computed, physical, &out), CK_OK);
        FACT("\n");
    }
    for (uint32_t i = 0; i < t->decl.primary_key_count; i++) FACT("key %u\n", t->decl.primary_key[i]);
    for (uint32_t i = 0; i < t->decl.options.count; i++)
        if (t->decl.options.names[i][0] != '.') FACT("%s=%s\n", t->decl.options.names[i], t->decl.options.values[i]);
    FACT("time %d column=%u lag=%lld idle=%lld lateness=%lld clause=%d ttl=%lld", t->time.expr != NULL, t->time.column,
         (long long)t->time.lag_us, (long long)t->time.idle_us, (long long)t->time.lateness_us, t->time.clause,
         (long long)t->ttl_us);
#undef FACT
    const char *text = ck_arena_strndup(&s->arena, out.p, out.n);
    ck_bytes_destroy(&out);
    return text;
}

static const ck_catalog_entry *table(session *s, const char *name) {
    const ck_catalog_entry *e = ck_catalog_find(s->catalog, ck_view_of(name), true);
    assert_non_null(e);
    return e;
}

static void one_case(uint64_t case_seed) {
    static writer w;
    session s;
    seed = case_seed;
    declaration(&w);
    open_session(&s);
    run(&s, w.text);
    const char *facts = facts_of(&s, table(&s, "t \"1")), *text = text_of(&s, table(&s, "t \"1"));
    run(&s, "DROP TABLE \"t \"\"1\"");
    run(&s, text);
    if (strcmp(facts, facts_of(&s, table(&s, "t \"1"))) != 0)
        fail_msg("seed %llu:\n%s\nwas\n%s\nand printed\n%s\nis\n%s", (unsigned long long)case_seed, w.text, facts, text,
                 facts_of(&s, table(&s, "t \"1")));
    assert_string_equal(text, text_of(&s, table(&s, "t \"1")));
    run(&s, "ALTER TABLE \"t \"\"1\" RENAME TO u");
    if (table(&s, "u")->table.instance == NULL)
        run(&s,
            "ALTER TABLE u ADD added BIGINT; ALTER TABLE u MODIFY added DATE COMMENT 'x'; ALTER TABLE u DROP added; "
            "ALTER TABLE u ADD added AS 1; ALTER TABLE u RENAME added TO gone; ALTER TABLE u SET (rate_limit = '5'); "
            "ALTER TABLE u DROP gone; ALTER TABLE u RESET (rate_limit)");
    assert_string_equal(facts, facts_of(&s, table(&s, "u")));
    close_session(&s);
}

static void random_declarations(void **state) {
    (void)state;
    const char *only = getenv("CLINK_TEST_SEED");
    if (only) {
        one_case(strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t s = 1; s <= CASES; s++) one_case(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_declarations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
