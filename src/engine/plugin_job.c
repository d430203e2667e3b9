/* See plugin_job.h. */
#include "engine/plugin_job.h"

#include "engine/plugin_job_int.h"

/* Of the sentences about sinks, those about tables there are. */
static void forget_stubs(const ck_plugin_builder *b, ck_sql_step *step) {
    const char **kept_ones = (const char **)(uintptr_t)step->guarantees;
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->guarantee_count; i++) {
        bool stub = false;
        for (const ck_plugin_stream *s = b->streams; s; s = s->next)
            stub |= s->kind == CK_STREAM_QUERY && strncmp(kept_ones[i], s->name, strlen(s->name)) == 0 &&
                    kept_ones[i][strlen(s->name)] == ':';
        if (!stub) kept_ones[n++] = kept_ones[i];
    }
    step->guarantee_count = n;
}

static ck_status compile(clink_engine *e, clink_job *j, ck_plugin_builder *b, const ck_sql_options *o) {
    ck_job_settings settings = {.batch_rows = CK_BATCH_ROWS_MAX, .key_groups = o->key_groups, .timezone = "UTC"};
    if (!b->inserts) return ck_fail(b->err, CK_INVALID, "job %s writes nothing: clink_insert", b->job);
    if (ck_plugin_write_script(b) != CK_OK || ck_bytes_terminate(&b->script) != CK_OK)
        return ck_fail(b->err, CK_NOMEM, "job %s: its SQL is over %d MiB", b->job, CK_PLUGIN_SCRIPT_BYTES_MAX >> 20);
    const char *text = ck_arena_strndup(b->arena, b->script.p, b->script.n);
    if (!text) return ck_nomem(b->err, b->arena->mem, b->script.n);
    CK_TRY(ck_sql_compile(e->catalog, ck_view_of(text), o, &j->arena, &j->plan, b->err));
    ck_sql_step *step = NULL;
    for (uint32_t i = 0; i < j->plan->step_count; i++) {
        if (j->plan->steps[i].kind != CK_SQL_JOB) continue;
        if (step || j->plan->steps[i].has_result)
            return ck_fail(b->err, CK_INVALID,
                           "job %s: a job has one graph, and its SQL reads what it writes, or selects for nobody",
                           b->job);
        step = &j->plan->steps[i];
    }
    if (!step) return ck_fail(b->err, CK_INVALID, "job %s: its SQL runs nothing", b->job);
    CK_TRY(ck_plugin_assemble(b, step->graph, &settings, &step->graph));
    forget_stubs(b, step);
    return engine_explain_graph(b->arena, b->registry, b->proc, step->graph, &step->explain, b->err);
}

static ck_status build_and_compile(clink_engine *e, clink_job *j, const char *name, const ck_plugin_job *job,
                                   clink_status (*build)(clink_job_builder *b, const void *arg), const void *arg,
                                   const ck_sql_options *o, ck_error *err) {
    ck_sql_options named = *o;
    clink_error said = {0};
    char *source = ck_arena_printf(&j->arena, "job %s", name);
    ck_plugin_builder b = {.arena = &j->arena, .proc = &e->proc, .registry = &e->registry, .err = err, .job = name};
    if (!source) return ck_nomem(err, j->arena.mem, 64);
    named.source_name = source;
    named.before_commit = NULL; /* its tables are the job's own */
    b.face = (clink_job_builder){&ck_plugin_builder_table, &b};
    b.last_stream = &b.streams;
    b.last_insert = &b.inserts;
    ck_bytes_init(&b.script, j->arena.mem, CK_PLUGIN_SCRIPT_BYTES_MAX);
    clink_status built = job ? job->description->build(&b.face, &said) : build(&b.face, arg);
    ck_status s = b.status;
    if (s == CK_OK && built != CLINK_OK)
        s = ck_fail(err, CK_INVALID, "job %s%s%s: %s", name, job ? " of plugin " : "", job ? job->plugin : "",
                    said.message[0] ? said.message : "it could not be built, and nobody said why");
    if (s == CK_OK) s = compile(e, j, &b, &named);
    ck_bytes_destroy(&b.script);
    return s;
}

ck_status engine_plugin_compile(clink_engine *e, clink_job *j, const ck_plugin_job *job, const ck_sql_options *o,
                                ck_error *err) {
    return build_and_compile(e, j, job->description->name, job, NULL, NULL, o, err);
}

ck_status engine_built_compile(clink_engine *e, clink_job *j, const char *name,
                               clink_status (*build)(clink_job_builder *b, const void *arg), const void *arg,
                               const ck_sql_options *o, ck_error *err) {
    return build_and_compile(e, j, name, NULL, build, arg, o, err);
}
