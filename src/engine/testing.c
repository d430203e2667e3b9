/* What a test calls: clink/testing.h. */
#include <stdlib.h>

#include "connector/connectors.h"
#include "engine/builtins.h"
#include "engine/plugin_job.h"
#include "engine/testing_int.h"

enum { TEST_BYTES_MAX = 256 << 20, SCRIPT_MAX = 1 << 20 };

/* ---- one operator as a job ---- */

static ck_status put_columns(ck_arena *a, ck_bytes *out, const ck_schema *s) {
    for (uint32_t i = 0; i < s->field_count; i++)
        CK_TRY(ck_bytes_printf(out, "%s\"%s\" %s%s", i ? ", " : "", s->fields[i].name,
                               ck_type_name(a, s->fields[i].type), s->fields[i].nullable ? "" : " NOT NULL"));
    return CK_OK;
}

/* What the job of one operator is made of. */
typedef struct wanted {
    const clink_test_options *o;
    const ck_plugin_operator *op;
    const char *tables;
    ck_arena *arena;
} wanted;

static const char *numbered(ck_arena *a, const char *name, uint32_t i) {
    return i ? ck_arena_printf(a, "%s%u", name, i) : name;
}

static ck_status write_tables(wanted *w, ck_bytes *out) {
    for (uint32_t i = 0; i < w->op->input_count; i++) {
        CK_TRY(ck_bytes_printf(out, "CREATE TABLE \"%s\" (", numbered(w->arena, "in", i)));
        if (w->o->input_columns && w->o->input_columns[i])
            CK_TRY(ck_bytes_str(out, w->o->input_columns[i]));
        else if (w->op->inputs)
            CK_TRY(put_columns(w->arena, out, w->op->inputs[i]));
        CK_TRY(ck_bytes_str(out, ") WITH (connector = 'test');\n"));
    }
    for (uint32_t i = 0; i <= w->op->face->side_count; i++) {
        CK_TRY(ck_bytes_printf(out, "CREATE TABLE \"%s\" (", i ? numbered(w->arena, "side", i) : "out"));
        CK_TRY(put_columns(w->arena, out, i ? &w->op->sides[i - 1] : w->op->output));
        CK_TRY(ck_bytes_str(out, ") WITH (connector = 'test');\n"));
    }
    return CK_OK;
}

static ck_status plan_operator(clink_test *t, const clink_test_options *o, wanted *w) {
    ck_bytes text;
    *w = (wanted){.o = o, .arena = &t->arena};
    w->op = ck_library_operator(t->engine->proc.library, o->operator_name);
    if (!w->op)
        return ck_fail(&t->error, CK_INVALID, "there is no operator \"%s\" in the plugins of the test",
                       o->operator_name);
    ck_bytes_init(&text, t->mem, SCRIPT_MAX);
    ck_status s = write_tables(w, &text);
    if (s == CK_OK && !(w->tables = ck_arena_strndup(&t->arena, text.p, text.n))) s = CK_NOMEM;
    ck_bytes_destroy(&text);
    return s == CK_OK ? s : ck_nomem(&t->error, t->mem, SCRIPT_MAX);
}

static clink_status build_operator(clink_job_builder *b, const void *arg) {
    const wanted *w = arg;
    clink_stream *inputs[16];
    uint32_t n = w->op->input_count;
    clink_define(b, w->tables);
    for (uint32_t i = 0; i < n; i++) {
        const char *sql = ck_arena_printf(w->arena, "SELECT * FROM \"%s\"", numbered(w->arena, "in", i));
        if (!sql) return CLINK_NOMEM;
        inputs[i] = clink_query(b, sql);
        if (w->o->key_by) inputs[i] = clink_key_by(inputs[i], w->o->key_by);
    }
    clink_stream *out = clink_process_all(inputs, n, w->o->operator_name, w->o->operator_name,
                                          w->o->parameters ? w->o->parameters : "");
    clink_insert(out, "\"out\"");
    for (uint32_t i = 1; i <= w->op->face->side_count; i++) {
        const char *side = ck_arena_printf(w->arena, "\"side%u\"", i);
        if (!side) return CLINK_NOMEM;
        clink_insert(clink_side(out, i), side);
    }
    return CLINK_OK;
}

/* ---- compiling ---- */

static ck_status compile(clink_test *t, const clink_test_options *o) {
    const ck_sql_options sql = {.source_name = "test",
                                .job_name = "test",
                                .parallelism = 1,
                                .key_groups = CK_KEY_GROUPS_DEFAULT,
                                .one_job = true,
                                .result_sink = "sink.test",
                                .result_params = "{}"};
    clink_engine *e = t->engine;
    wanted w;
    const ck_plugin_job *job = NULL;
    if (o->plugin_job && !(job = ck_plugins_job(&e->plugins, o->plugin_job)))
        return ck_fail(&t->error, CK_INVALID, "the plugins of the test have no job \"%s\"", o->plugin_job);
    if (o->operator_name) CK_TRY(plan_operator(t, o, &w));
    pthread_mutex_lock(&e->lock);
    ck_status s = o->sql
                      ? ck_sql_compile(e->catalog, ck_view_of(o->sql), &sql, &t->job->arena, &t->job->plan, &t->error)
                  : job ? engine_plugin_compile(e, t->job, job, &sql, &t->error)
                        : engine_built_compile(e, t->job, "test", build_operator, &w, &sql, &t->error);
    pthread_mutex_unlock(&e->lock);
    if (s != CK_OK) return s;
    const ck_sql_step *step = NULL;
    for (uint32_t i = 0; i < t->job->plan->step_count; i++) {
        if (t->job->plan->steps[i].kind != CK_SQL_JOB) continue;
        if (step) return ck_fail(&t->error, CK_INVALID, "a test is of one job, and the script reads what it writes");
        step = &t->job->plan->steps[i];
    }
    if (!step) return ck_fail(&t->error, CK_INVALID, "the script runs nothing");
    t->graph = step->graph;
    t->settings = (ck_job_settings){.batch_rows = step->batch_rows ? step->batch_rows : CK_BATCH_ROWS_MAX,
                                    .key_groups = t->graph->key_groups,
                                    .flush_us = 5000,
                                    .eval_error_null = strstr(t->graph->settings, "\"null\"") != NULL,
                                    .timezone = t->graph->timezone,
                                    .checkpoints = t->tables & CLINK_TEST_PLUGINS,
                                    .job_name = "test",
                                    .job_uuid = "00000000-0000-4000-8000-000000000000"};
    return CK_OK;
}

/* ---- opening ---- */

static ck_status start(clink_test *t, const clink_test_options *o) {
    if (!o->sql + !o->plugin_job + !o->operator_name != 2)
        return ck_fail(&t->error, CK_INVALID, "a test is of one thing: sql, plugin_job or operator_name");
    CK_TRY(ck_registry_add_op(&t->engine->registry, &ck_op_source_test, &t->error));
    CK_TRY(ck_registry_add_op(&t->engine->registry, &ck_op_sink_test, &t->error));
    CK_TRY(ck_registry_add_connector(&t->engine->registry, &ck_connector_test, &t->error));
    if (o->tables & ~(uint32_t)(CLINK_TEST_STAND_INS | CLINK_TEST_PLUGINS))
        return ck_fail(&t->error, CK_INVALID, "clink_test_options.tables has bits that are none of clink_test_tables");
    if (o->plugin) CK_TRY(ck_plugins_add(&t->engine->plugins, "of the test", o->plugin, &t->error));
    CK_TRY(engine_register_plugins(&t->engine->registry, &t->engine->plugins.library, &t->error));
    CK_TRY(compile(t, o));
    CK_TRY(ck_test_nodes_make(t));
    CK_TRY(ck_test_store_new(t, &t->store));
    CK_TRY(ck_state_restore_end(t->store, &t->error));
    CK_TRY(ck_test_nodes_start(t));
    return ck_test_commit(t, true);
}

clink_status clink_test_open(const clink_test_options *options, clink_test **out, clink_error *error) {
    clink_test_options o = {.struct_bytes = sizeof o};
    if (!options || !out) return engine_refuse_null(!out ? "out" : "options", error);
    *out = NULL;
    if (options->struct_bytes < sizeof(size_t) || options->struct_bytes > sizeof o) {
        ck_error err = CK_ERROR_INIT;
        return engine_error(ck_fail(&err, CK_INVALID, "clink_test_options.struct_bytes is %zu, this library knows %zu",
                                    options->struct_bytes, sizeof o),
                            &err, error);
    }
    memcpy(&o, options, options->struct_bytes);
    clink_test *t = calloc(1, sizeof *t);
    if (!t) return engine_refuse_null("memory", error);
    const clink_options engine = {.struct_bytes = sizeof engine, .threads = 1, .plugins = o.plugins};
    clink_status st = clink_open(&engine, &t->engine, error);
    if (st != CLINK_OK) {
        free(t);
        return st;
    }
    t->error = CK_ERROR_INIT;
    t->mem = ck_proc_mem(&t->engine->proc, CK_MEM_QUEUE);
    t->now_us = o.now_us;
    t->tables = o.tables;
    ck_arena_init(&t->arena, ck_proc_mem(&t->engine->proc, CK_MEM_PLAN), TEST_BYTES_MAX);
    ck_arena_init(&t->calls, t->mem, TEST_BYTES_MAX);
    ck_bytes_init(&t->text, t->mem, TEST_BYTES_MAX);
    t->job = engine_job_new(t->engine);
    ck_status s = t->job ? start(t, &o) : ck_fail(&t->error, CK_NOMEM, "out of memory");
    if (s != CK_OK) {
        st = engine_error(s, &t->error, error);
        clink_test_close(t);
        return st;
    }
    *out = t;
    return engine_error(CK_OK, NULL, error);
}

void clink_test_close(clink_test *t) {
    if (!t) return;
    if (t->graph) ck_test_nodes_stop(t);
    ck_test_committers_free(t);
    for (uint32_t i = 0; t->nodes && i < t->graph->op_count; i++) {
        ck_encoder_free(t->nodes[i].encoder);
        if (t->nodes[i].role == CK_TEST_SINK) ck_bytes_destroy(&t->nodes[i].rows);
    }
    ck_state_store_free(t->store);
    ck_state_store_free(t->kept);
    ck_bytes_destroy(&t->text);
    ck_arena_destroy(&t->calls);
    ck_arena_destroy(&t->arena);
    clink_job_free(t->job);
    clink_close(t->engine);
    free(t);
}

/* ---- calls ---- */

static clink_status said(clink_test *t, ck_status s, clink_error *error) {
    clink_status st = engine_error(s, &t->error, error);
    t->error = CK_ERROR_INIT;
    return st;
}

static ck_status node_of_table(clink_test *t, ck_test_role role, const char *table, ck_test_node **out) {
    for (uint32_t i = 0; i < t->graph->op_count; i++) {
        ck_test_node *n = &t->nodes[i];
        if (n->role == role && n->table && strcmp(n->table, table) == 0) {
            *out = n;
            return CK_OK;
        }
    }
    return ck_fail(&t->error, CK_INVALID, "the test has no table \"%s\" to %s", table,
                   role == CK_TEST_SOURCE   ? "push to"
                   : role == CK_TEST_READER ? "have read"
                                            : "read from");
}

clink_status clink_test_push(clink_test *t, const char *table, const char *ndjson, clink_error *error) {
    ck_test_node *n = NULL;
    if (!t || !table || !ndjson) return engine_refuse_null(!t ? "test" : !table ? "table" : "ndjson", error);
    ck_status s = node_of_table(t, CK_TEST_SOURCE, table, &n);
    if (s == CK_OK && n->ended) s = ck_fail(&t->error, CK_INVALID, "table \"%s\" has ended", table);
    if (s == CK_OK) s = ck_test_push_rows(t, n, ndjson);
    if (s == CK_OK) s = ck_test_settle(t);
    return said(t, s, error);
}

clink_status clink_test_watermark(clink_test *t, const char *table, int64_t watermark_us, clink_error *error) {
    ck_test_node *n = NULL;
    if (!t || !table) return engine_refuse_null(!t ? "test" : "table", error);
    ck_status s = node_of_table(t, CK_TEST_SOURCE, table, &n);
    if (s == CK_OK) s = ck_test_push_watermark(t, n, watermark_us);
    if (s == CK_OK) s = ck_test_settle(t);
    return said(t, s, error);
}

clink_status clink_test_read(clink_test *t, const char *table, uint32_t batches, int *ended, clink_error *error) {
    ck_test_node *n = NULL;
    if (!t || !table) return engine_refuse_null(!t ? "test" : "table", error);
    ck_status s = node_of_table(t, CK_TEST_READER, table, &n);
    if (s == CK_OK && !n->ended) s = ck_test_reader_read(n, batches);
    if (ended) *ended = s == CK_OK && n->ended;
    return said(t, s, error);
}

clink_status clink_test_time(clink_test *t, int64_t now_us, clink_error *error) {
    if (!t) return engine_refuse_null("test", error);
    if (now_us < t->now_us)
        return said(t, ck_fail(&t->error, CK_INVALID, "the clock of a test does not go back"), error);
    t->now_us = now_us;
    return said(t, ck_test_wake(t), error);
}

clink_status clink_test_end(clink_test *t, const char *table, clink_error *error) {
    ck_test_node *n = NULL;
    ck_status s = CK_OK;
    if (!t) return engine_refuse_null("test", error);
    if (table) {
        s = node_of_table(t, CK_TEST_SOURCE, table, &n);
        if (s == CK_OK) s = ck_test_push_end(t, n);
    }
    for (uint32_t i = 0; !table && s == CK_OK && i < t->graph->op_count; i++)
        if (t->nodes[i].role == CK_TEST_SOURCE) s = ck_test_push_end(t, &t->nodes[i]);
    if (s == CK_OK) s = ck_test_settle(t);
    return said(t, s, error);
}

clink_status clink_test_rows(clink_test *t, const char *table, const char **ndjson, clink_error *error) {
    ck_test_node *n = NULL;
    if (!t || !table || !ndjson) return engine_refuse_null(!t ? "test" : !table ? "table" : "ndjson", error);
    *ndjson = "";
    ck_status s = node_of_table(t, CK_TEST_SINK, table, &n);
    if (s == CK_OK) {
        ck_bytes_clear(&t->text);
        s = ck_bytes_view(&t->text, ck_bytes_as_view(&n->rows));
        if (s == CK_OK) s = ck_bytes_terminate(&t->text);
        ck_bytes_clear(&n->rows);
        if (s == CK_OK) *ndjson = t->text.p;
        if (s != CK_OK) s = ck_nomem(&t->error, t->mem, n->rows.n);
    }
    return said(t, s, error);
}

clink_status clink_test_state(clink_test *t, const char *uid, const char *slot, const char **ndjson,
                              clink_error *error) {
    if (!t || !uid || !slot || !ndjson)
        return engine_refuse_null(!t ? "test" : !uid ? "uid" : !slot ? "slot" : "ndjson", error);
    *ndjson = "";
    ck_status s = ck_test_print_slot(t, uid, slot);
    if (s == CK_OK) s = ck_bytes_terminate(&t->text);
    if (s == CK_OK) *ndjson = t->text.p;
    return said(t, s, error);
}

static ck_status snapshot(clink_test *t) {
    ck_state_store *kept;
    t->checkpoint++;
    for (uint32_t i = 0; i < t->graph->op_count; i++) {
        ck_test_node *n = &t->nodes[i];
        if (n->role == CK_TEST_SOURCE) n->kept_max = ck_event_time_max(&n->times, n->clock);
        if (n->role != CK_TEST_OPERATOR || !CK_HAS(n->desc->op, pre_snapshot)) continue;
        ck_status s;
        CK_TEST_CALL(t, s, n->desc->op->pre_snapshot(n->self, t->checkpoint, &n->ctx));
        if (s != CK_OK) return s;
        CK_TRY(ck_test_settle(t));
    }
    CK_TRY(ck_test_readers_snapshot(t));
    CK_TRY(ck_test_store_new(t, &kept));
    ck_status s = ck_test_store_copy(t, t->store, kept);
    if (s != CK_OK) {
        ck_state_store_free(kept);
        return s;
    }
    ck_state_store_free(t->kept);
    t->kept = kept;
    return ck_test_commit(t, false);
}

clink_status clink_test_snapshot(clink_test *t, clink_error *error) {
    return t ? said(t, snapshot(t), error) : engine_refuse_null("test", error);
}

static ck_status restore(clink_test *t) {
    if (!t->kept) return ck_fail(&t->error, CK_INVALID, "there is no snapshot to restore: clink_test_snapshot");
    ck_test_nodes_stop(t);
    for (uint32_t i = 0; i < t->graph->op_count; i++)
        if (t->nodes[i].role == CK_TEST_SINK) ck_bytes_clear(&t->nodes[i].rows);
    ck_state_store_free(t->store);
    t->store = NULL;
    CK_TRY(ck_test_store_new(t, &t->store));
    CK_TRY(ck_test_store_copy(t, t->kept, t->store));
    CK_TRY(ck_test_nodes_start(t));
    return ck_test_commit(t, true);
}

clink_status clink_test_restore(clink_test *t, clink_error *error) {
    return t ? said(t, restore(t), error) : engine_refuse_null("test", error);
}
