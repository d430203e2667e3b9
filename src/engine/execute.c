/* clink_execute and clink_explain: from a script to a running job. */
#include <stdlib.h>

#include "data/text.h"
#include "engine/plugin_job.h"
#include "expr/utf8.h"
#include "sql/catalog/catalog.h"

enum { PLAN_BYTES_MAX = 256 << 20, COLLECT_BYTES_MAX = 8 << 20 };

/* ---- the caller's options, checked and copied into the job's arena ---- */

static ck_status copy_text(ck_arena *a, const char **text) {
    if (!*text) return CK_OK;
    *text = ck_arena_strdup(a, *text);
    return *text ? CK_OK : CK_NOMEM;
}

static ck_status check_checkpoints(const clink_run *r, ck_error *err) {
    const struct {
        const char *name;
        int64_t value, least, most;
    } numbers[] = {
        {"checkpoint_interval_ms", r->checkpoint_interval_ms, -1, INT64_MAX / 1000}, /* -1: only at the end */
        {"checkpoint_timeout_ms", r->checkpoint_timeout_ms, 0, INT64_MAX / 1000},
        {"final_checkpoint_timeout_ms", r->final_checkpoint_timeout_ms, 0, INT64_MAX / 1000},
        {"tolerable_failed_checkpoints", r->tolerable_failed_checkpoints, -1, INT32_MAX},
        {"checkpoint_retained", r->checkpoint_retained, 0, INT32_MAX},
        {"alignment", r->alignment, CLINK_ALIGNED, CLINK_ADAPTIVE},
        {"alignment_stall_ms", r->alignment_stall_ms, 0, INT64_MAX / 1000},
        {"changelog", r->changelog, CLINK_NO_CHANGELOG, CLINK_MATERIALISE_EXTERNAL},
        {"materialisation_every", r->materialisation_every, 0, CK_MATERIALISE_EVERY_MAX},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(numbers); i++)
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most)
            return ck_fail(err, CK_INVALID, "clink_run.%s %lld is not %lld to %lld", numbers[i].name,
                           (long long)numbers[i].value, (long long)numbers[i].least, (long long)numbers[i].most);
    const struct {
        const char *name, *value;
    } paths[] = {{"savepoint_dir", r->savepoint_dir}, {"checkpoint_dir", r->checkpoint_dir},
                 {"spill_dir", r->spill_dir},         {"restore", r->restore},
                 {"replay_table", r->replay_table},   {"replay_path", r->replay_path}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(paths); i++)
        if (paths[i].value && !*paths[i].value)
            return ck_fail(err, CK_INVALID, "clink_run.%s is empty; NULL is for none", paths[i].name);
    if (r->rocksdb && !r->spill_dir) return ck_fail(err, CK_INVALID, "clink_run.rocksdb needs clink_run.spill_dir");
    const char *needs = r->fresh              ? "fresh"
                        : r->allow_duplicates ? "allow_duplicates"
                        : r->restore          ? "restore"
                        : r->savepoint_dir    ? "savepoint_dir"
                        : r->changelog        ? "changelog"
                                              : NULL;
    if (needs && !r->checkpoint_dir)
        return ck_fail(err, CK_INVALID, "clink_run.%s needs clink_run.checkpoint_dir", needs);
    return CK_OK;
}

ck_status engine_take_run(const clink_run *from, clink_run *to, ck_error *err) {
    *to = (clink_run){.struct_bytes = sizeof *to};
    if (!from) return CK_OK;
    if (from->struct_bytes < sizeof from->struct_bytes || from->struct_bytes > sizeof *to)
        return ck_fail(err, CK_INVALID, "clink_run.struct_bytes is %zu, this library knows %zu", from->struct_bytes,
                       sizeof *to);
    memcpy(to, from, from->struct_bytes);
    to->struct_bytes = sizeof *to;
    return CK_OK;
}

static ck_status copy_run(const clink_engine *e, ck_arena *a, const clink_run *from, clink_run *to, ck_error *err) {
    CK_TRY(engine_take_run(from, to, err));
    if (to->output < CLINK_OUTPUT_STREAM || to->output > CLINK_OUTPUT_TABLE)
        return ck_fail(err, CK_INVALID, "clink_run.output %d is not known", to->output);
    if (to->changes < CLINK_CHANGES_FINAL || to->changes > CLINK_CHANGES_FIELD)
        return ck_fail(err, CK_INVALID, "clink_run.changes %d is not known", to->changes);
    if (to->added_state < CLINK_ADDED_REFUSED || to->added_state > CLINK_ADDED_BACKFILL)
        return ck_fail(err, CK_INVALID, "clink_run.added_state %d is not known", to->added_state);
    if (!to->source_name) to->source_name = "sql";
    const ck_plugin_job *job = to->plugin_job ? ck_plugins_job(&e->plugins, to->plugin_job) : NULL;
    if (!to->name || !*to->name) to->name = job ? job->description->name : to->source_name;
    if (!to->parallelism) to->parallelism = 1;
    if (!to->key_groups) to->key_groups = CK_KEY_GROUPS_DEFAULT;
    if (to->key_groups < CK_KEY_GROUPS_MIN || to->key_groups > CK_KEY_GROUPS_MAX)
        return ck_fail(err, CK_INVALID, "key_groups %u is not %d to %d", to->key_groups, CK_KEY_GROUPS_MIN,
                       CK_KEY_GROUPS_MAX);
    if (to->parallelism > to->key_groups)
        return ck_fail(err, CK_INVALID, "parallelism %u is more than the %u key groups", to->parallelism,
                       to->key_groups);
    CK_TRY(check_checkpoints(to, err));
    if (!ck_utf8_valid(ck_view_of(to->name))) return ck_fail(err, CK_INVALID, "the job's name is not UTF-8");
    const char **texts[] = {&to->name,         &to->source_name, &to->checkpoint_dir, &to->restore,
                            &to->replay_table, &to->replay_path, &to->savepoint_dir,  &to->spill_dir,
                            &to->plugin_job};
    if (!to->replay_table != !to->replay_path)
        return ck_fail(err, CK_INVALID, "clink_run.replay_table and replay_path go together");
    for (size_t i = 0; i < CK_ARRAY_COUNT(texts); i++)
        if (copy_text(a, texts[i]) != CK_OK) return ck_nomem(err, a->mem, 0);
    return CK_OK;
}

/* ---- compile ---- */

static const char *result_params(ck_arena *a, const clink_run *run) {
    static const char *const styles[] = {"none", "prefix", "field"};
    if (run->output == CLINK_OUTPUT_STREAM || run->output == CLINK_OUTPUT_TABLE) return ck_arena_strdup(a, "{}");
    return ck_arena_printf(a, "{\"fd\":%d,\"format\":\"%s\",\"changes\":\"%s\"}", run->fd,
                           run->output == CLINK_OUTPUT_CSV ? "csv" : "json",
                           styles[run->changes == CLINK_CHANGES_FIELD ? 2 : 1]);
}

static bool collects(const clink_run *run) {
    return run->output == CLINK_OUTPUT_STREAM || run->output == CLINK_OUTPUT_TABLE;
}

static ck_status compile(clink_engine *e, clink_job *j, const char *sql, bool keep, ck_error *err) {
    const clink_run *run = &j->run;
    ck_sql_options o = {
        .source_name = run->source_name,
        .job_name = run->name,
        .parallelism = run->parallelism,
        .key_groups = run->key_groups,
        .full_explain = true,
        .changes = run->changes != CLINK_CHANGES_FINAL,
        .checkpoints = run->checkpoint_dir != NULL,
        .one_job = true,
        .result_sink = collects(run) ? "sink.collect" : "sink.print",
        .result_params = result_params(&j->arena, run),
        .before_commit = keep ? engine_catalog_save : NULL,
        .before_commit_arg = e,
        .replay_table = run->replay_table,
        .replay_path = run->replay_path,
    };
    if (!o.result_params) return ck_nomem(err, j->arena.mem, 0);
    const ck_plugin_job *job = run->plugin_job ? ck_plugins_job(&e->plugins, run->plugin_job) : NULL;
    if (run->plugin_job && !job)
        return ck_fail(err, CK_INVALID, *run->plugin_job ? "the plugins that are loaded have no job \"%.200s\""
                                                         : "the plugins that are loaded have no job%s",
                       run->plugin_job);
    pthread_mutex_lock(&e->lock);
    ck_status s = job ? engine_plugin_compile(e, j, job, &o, err)
                      : ck_sql_compile(e->catalog, ck_view_of(sql), &o, &j->arena, &j->plan, err);
    pthread_mutex_unlock(&e->lock);
    return s;
}

static ck_status gather_text(clink_job *j, ck_error *err) {
    ck_bytes text;
    ck_bytes_init(&text, j->arena.mem, PLAN_BYTES_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < j->plan->step_count; i++)
        if (j->plan->steps[i].kind == CK_SQL_TEXT) s = ck_bytes_str(&text, j->plan->steps[i].text);
    if (s == CK_OK && !(j->text = ck_arena_strndup(&j->arena, text.p ? text.p : "", text.n))) s = CK_NOMEM;
    ck_bytes_destroy(&text);
    return s == CK_OK ? s : ck_nomem(err, j->arena.mem, 0);
}

static ck_status make_collectors(clink_job *j, ck_error *err) {
    uint32_t n = j->plan->step_count;
    if (!(j->collectors = ck_arena_array(&j->arena, n ? n : 1, sizeof *j->collectors)))
        return ck_nomem(err, j->arena.mem, 0);
    for (uint32_t i = 0; i < n; i++) {
        if (!j->plan->steps[i].has_result || !collects(&j->run)) continue;
        ck_mem mem = {ck_budget_uncounted(), CK_MEM_QUEUE}; /* the rows may outlive the engine */
        if (ck_collector_new(&j->engine->proc, mem, COLLECT_BYTES_MAX, &j->collectors[i]) != CK_OK)
            return ck_nomem(err, mem, 0);
    }
    return CK_OK;
}

/* ---- the handles ---- */

clink_job *engine_job_new(clink_engine *e) {
    clink_job *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->engine = e;
    ck_arena_init(&j->arena, ck_proc_mem(&e->proc, CK_MEM_PLAN), PLAN_BYTES_MAX);
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&j->changed, &attr);
    pthread_condattr_destroy(&attr);
    j->error = CK_ERROR_INIT;
    j->ended = true; /* until it starts: freeing it has nothing to wait for */
    return j;
}

static void link_job(clink_engine *e, clink_job *j) {
    pthread_mutex_lock(&e->lock);
    j->next = e->jobs;
    j->prev_link = &e->jobs;
    if (j->next) j->next->prev_link = &j->next;
    e->jobs = j;
    pthread_mutex_unlock(&e->lock);
}

static ck_status prepare(clink_engine *e, clink_job *j, const char *sql, const clink_run *run, ck_error *err) {
    CK_TRY(copy_run(e, &j->arena, run, &j->run, err));
    CK_TRY(compile(e, j, sql, true, err));
    CK_TRY(gather_text(j, err));
    if (j->run.output != CLINK_OUTPUT_STREAM && *j->text) { /* before the first row */
        ck_status s = engine_write(j->run.fd, ck_view_of(j->text), err);
        if (s != CK_OK) return s == CK_CLOSED ? ck_fail(err, CK_CANCELLED, "nobody reads the output") : s;
    }
    return make_collectors(j, err);
}

clink_status clink_execute(clink_engine *e, const char *sql, const clink_run *run, clink_job **job,
                           clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (job) *job = NULL;
    if (!e || !sql || !job) return engine_refuse_null(!e ? "engine" : !sql ? "sql" : "job", error);
    clink_job *j = engine_job_new(e);
    if (!j) return engine_error(ck_fail(&err, CK_NOMEM, "out of memory"), &err, error);
    ck_status s = prepare(e, j, sql, run, &err);
    if (s == CK_OK && j->plan->step_count == 0) {
        clink_job_free(j);
        return engine_error(CK_OK, NULL, error);
    }
    if (s == CK_OK) {
        link_job(e, j);
        j->ended = false;
        if (j->run.background)
            s = engine_job_start_later(j, &err);
        else
            engine_job_advance(j);
        if (s != CK_OK) j->ended = true;
        /* What fails before anything runs (a missing file, a used directory) is the call's error, not the job's. */
        pthread_mutex_lock(&j->lock);
        if (s == CK_OK && !j->run.background && j->ended && j->step == 0 && j->status != CK_OK)
            s = j->status, err = j->error;
        pthread_mutex_unlock(&j->lock);
    }
    if (s != CK_OK) {
        clink_job_free(j);
        return engine_error(s, &err, error);
    }
    *job = j;
    return engine_error(CK_OK, NULL, error);
}

ck_status engine_compile(clink_engine *e, const char *sql, const clink_run *run, clink_job **out, ck_error *err) {
    clink_job *j = engine_job_new(e);
    if (!j) return ck_fail(err, CK_NOMEM, "out of memory");
    ck_status s = copy_run(e, &j->arena, run, &j->run, err);
    if (s == CK_OK) s = compile(e, j, sql, false, err);
    if (s != CK_OK)
        clink_job_free(j);
    else
        *out = j;
    return s;
}

clink_status clink_explain(clink_engine *e, const char *sql, const clink_run *run, char **text, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (text) *text = NULL;
    if (!e || !sql || !text) return engine_refuse_null(!e ? "engine" : !sql ? "sql" : "text", error);
    clink_job *j = NULL;
    ck_status s = engine_compile(e, sql, run, &j, &err);
    if (s != CK_OK) return engine_error(s, &err, error);
    ck_bytes all;
    ck_bytes_init(&all, j->arena.mem, PLAN_BYTES_MAX);
    for (uint32_t i = 0; s == CK_OK && i < j->plan->step_count; i++) {
        const ck_sql_step *step = &j->plan->steps[i];
        const char *part = step->kind == CK_SQL_TEXT ? step->text : step->explain;
        if (i) s = ck_bytes_char(&all, '\n');
        if (s == CK_OK) s = ck_bytes_str(&all, part);
    }
    if (s == CK_OK && !(*text = strndup(all.p ? all.p : "", all.n))) s = ck_fail(&err, CK_NOMEM, "out of memory");
    ck_bytes_destroy(&all);
    clink_job_free(j);
    return engine_error(s, &err, error);
}

/* ---- dead letters ---- */

static ck_status letters_of(clink_engine *e, const char *table, char **letters, int32_t *header, ck_error *err) {
    const ck_catalog_entry *t = ck_catalog_find(e->catalog, ck_view_of(table), false);
    ck_suggest near;
    ck_suggest_init(&near, ck_view_of(table));
    if (!t) ck_catalog_offer(e->catalog, false, &near);
    if (near.best.n)
        return ck_fail(err, CK_INVALID, "the script makes no table \"%s\"; did you mean \"%.*s\"?", table,
                       (int)near.best.n, near.best.p);
    if (!t || t->kind != CK_ENTRY_TABLE) return ck_fail(err, CK_INVALID, "the script makes no table \"%s\"", table);
    const char *name = ck_table_decl_option(&t->table.decl, "dead_letter_table"),
               *h = ck_table_decl_option(&t->table.decl, "header");
    if (!name)
        return ck_fail(err, CK_INVALID, "table \"%s\" has no dead_letter_table: nothing of it was put aside", table);
    bool has = false;
    *header = h && ck_parse_bool(ck_view_of(h), &has) && has;
    *letters = strdup(name);
    return *letters ? CK_OK : ck_fail(err, CK_NOMEM, "out of memory");
}

clink_status clink_dead_letter_table(clink_engine *e, const char *sql, const clink_run *run, const char *table,
                                     char **letters, int32_t *header, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (letters) *letters = NULL;
    if (!e || !sql || !table || !letters || !header)
        return engine_refuse_null(!e         ? "engine"
                                  : !sql     ? "sql"
                                  : !table   ? "table"
                                  : !letters ? "letters"
                                             : "header",
                                  error);
    clink_job *j = NULL;
    ck_status s = engine_compile(e, sql, run, &j, &err);
    if (s != CK_OK) return engine_error(s, &err, error);
    pthread_mutex_lock(&e->lock);
    s = letters_of(e, table, letters, header, &err);
    pthread_mutex_unlock(&e->lock);
    clink_job_free(j);
    return engine_error(s, &err, error);
}

clink_status clink_dead_letter_path(clink_engine *e, const char *letters, char **path, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (path) *path = NULL;
    if (!e || !letters || !path) return engine_refuse_null(!e ? "engine" : !letters ? "letters" : "path", error);
    ck_status s = CK_OK;
    pthread_mutex_lock(&e->lock);
    const ck_catalog_entry *t = ck_catalog_find(e->catalog, ck_view_of(letters), false);
    if (!t || t->kind != CK_ENTRY_TABLE) {
        s = ck_fail(&err, CK_INVALID, "there is no table \"%s\"", letters);
    } else {
        const char *at = ck_table_decl_option(&t->table.decl, "path");
        if (at && !(*path = strdup(at))) s = ck_fail(&err, CK_NOMEM, "out of memory");
    }
    pthread_mutex_unlock(&e->lock);
    return engine_error(s, &err, error);
}
