/* SQL scripts against a catalog with two tables and a view. The low bits of the first byte choose options, the rest is
 * the text. What must hold: one of four answers; a refused script leaves the catalog as it was; a graph reads back from
 * its JSON as the same job. */
#include "fuzz.h"

#include "engine/builtins.h"
#include "sql/compile.h"

enum { ONE_JOB = 1, CHANGES = 2, CHECKPOINTS = 4 };

static const char setup[] =
    "CREATE TABLE a (k VARCHAR, n BIGINT NOT NULL, x DOUBLE, d DECIMAL(10,2), t TIMESTAMP(3), b BOOLEAN, r ROW<p INT, "
    "q "
    "VARCHAR>, l ARRAY<INT>, m MAP<VARCHAR, INT>, c AS n + 1) WITH (connector='file', path='a.ndjson');"
    "CREATE TABLE f (k VARCHAR, n BIGINT) WITH (connector='file', path='f.ndjson', follow='true');"
    "CREATE TABLE u (k VARCHAR, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', path='u.ndjson', "
    "mode='upsert');"
    "CREATE TABLE p (k VARCHAR, n BIGINT) WITH (connector='print');"
    "CREATE VIEW v AS SELECT k, SUM(n) AS s FROM a GROUP BY k;";

static void check_graph(ck_arena *arena, const ck_graph *g) {
    ck_bytes json;
    ck_graph *again;
    ck_error err = CK_ERROR_INIT;
    ck_bytes_init(&json, arena->mem, 256 << 20);
    CK_ASSERT(ck_graph_encode(g, &json) == CK_OK);
    ck_status s = ck_graph_decode(arena, ck_bytes_as_view(&json), &again, &err);
    CK_ASSERT(s == CK_OK || s == CK_NOMEM);
    CK_ASSERT(s != CK_OK || ck_graph_hash(again) == ck_graph_hash(g));
    ck_bytes_destroy(&json);
}

static ck_status names_of(ck_catalog *c, ck_sql_options *o, ck_arena *arena, const char **out) {
    ck_sql_plan *plan;
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_sql_compile(c, CK_VIEW("SHOW TABLES"), o, arena, &plan, &err);
    if (s == CK_OK) *out = plan->steps[0].text;
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    ck_proc proc = {.heap = ck_heap_system()};
    ck_budget_init(&proc.budget, proc.heap, 0);
    ck_arena registry_arena, arena;
    ck_mem mem = ck_proc_mem(&proc, CK_MEM_PLAN);
    ck_arena_init(&registry_arena, mem, 1 << 20);
    ck_arena_init(&arena, mem, 256 << 20);
    ck_error err = CK_ERROR_INIT;
    ck_registry registry;
    ck_catalog *catalog;
    ck_sql_plan *plan;
    const char *before, *after;
    ck_sql_options o = {.source_name = "fuzz",
                        .job_name = "fuzz",
                        .parallelism = 2,
                        .key_groups = CK_KEY_GROUPS_DEFAULT,
                        .one_job = true,
                        .changes = data[0] & CHANGES,
                        .checkpoints = data[0] & CHECKPOINTS,
                        .result_sink = "sink.collect",
                        .result_params = "{}"};
    ck_registry_init(&registry, &registry_arena);
    CK_ASSERT(engine_register_builtins(&registry, &err) == CK_OK);
    CK_ASSERT(ck_catalog_new(&proc, &registry, &catalog, &err) == CK_OK);
    CK_ASSERT(ck_sql_compile(catalog, ck_view_of(setup), &o, &arena, &plan, &err) == CK_OK);
    CK_ASSERT(names_of(catalog, &o, &arena, &before) == CK_OK);
    o.one_job = data[0] & ONE_JOB;
    ck_status s = ck_sql_compile(catalog, (ck_view){(const char *)data + 1, size - 1}, &o, &arena, &plan, &err);
    CK_ASSERT(s == CK_OK || s == CK_INVALID || s == CK_REFUSED || s == CK_NOMEM);
    CK_ASSERT(s == CK_OK || err.msg[0]);
    for (uint32_t i = 0; s == CK_OK && i < plan->step_count; i++)
        if (plan->steps[i].kind == CK_SQL_JOB) check_graph(&arena, plan->steps[i].graph);
    if (s != CK_OK && s != CK_NOMEM && o.one_job) {
        ck_status names = names_of(catalog, &o, &arena, &after);
        CK_ASSERT(names == CK_NOMEM || (names == CK_OK && strcmp(before, after) == 0));
    }
    ck_catalog_free(catalog);
    ck_arena_destroy(&arena);
    ck_arena_destroy(&registry_arena);
    CK_ASSERT(ck_budget_total(&proc.budget) == 0);
    return 0;
}
