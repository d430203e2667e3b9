/* See compile.h: a script, statement by statement. A new statement: a case in `one`. */
#include "sql/compile.h"

#include "sql/bind/bind_int.h"
#include "sql/parse/parse.h"
#include "sql/script_int.h"

/* ---- lists that grow ---- */

static void *grown(ck_script *s, void *old, uint32_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) return old;
    uint32_t more = *capacity ? *capacity * 2 : 8;
    void *p = ck_plan_array(&s->b.plan, more, size);
    if (!p) return NULL;
    if (count) memcpy(p, old, count * size);
    *capacity = more;
    return p;
}

ck_status ck_script_add_step(ck_script *s, const ck_sql_step *step) {
    ck_sql_step *steps = grown(s, s->steps, s->step_count, &s->step_capacity, sizeof *steps);
    if (!steps) return CK_NOMEM;
    s->steps = steps;
    s->steps[s->step_count++] = *step;
    return CK_OK;
}

ck_status ck_script_add_output(ck_script *s, const ck_output *o) {
    ck_script_output *outputs = grown(s, s->outputs, s->output_count, &s->output_capacity, sizeof *outputs);
    if (!outputs) return CK_NOMEM;
    s->outputs = outputs;
    s->outputs[s->output_count++] = (ck_script_output){*o, s->statement};
    return CK_OK;
}

/* ---- statements ---- */

static ck_status with_rows(ck_script *s, const ck_ast_statement *st) {
    ck_output o;
    if (st->kind == CK_STATEMENT_SET_OF) {
        for (const ck_ast_statement *i = st->body.first; i; i = i->next) CK_TRY(with_rows(s, i));
        return CK_OK;
    }
    if (st->kind == CK_STATEMENT_INSERT) {
        CK_TRY(ck_bind_insert(&s->b, st->insert, st->pos, &o));
    } else {
        CK_TRY(ck_bind_root_query(&s->b, st->query, &o));
    }
    return ck_script_add_output(s, &o);
}

static ck_status create_table(ck_script *s, const ck_ast_statement *st) {
    ck_output rows;
    CK_TRY(ck_bind_create_table(&s->b, st->create_table, st->pos, &rows));
    return rows.node ? ck_script_add_output(s, &rows) : CK_OK;
}

/* The plan of a statement that does not run: its outputs are taken off again. */
static ck_status explain(ck_script *s, const ck_ast_statement *st) {
    uint32_t before = s->output_count, warned = s->b.warning_count;
    ck_sql_step job = {0};
    CK_TRY(with_rows(s, st->body.first));
    CK_TRY(ck_script_job(s, s->outputs + before, s->output_count - before, &job));
    s->output_count = before;
    s->b.warning_count = warned; /* they are in its text */
    ck_sql_step step = {.kind = CK_SQL_TEXT, .text = job.explain};
    return ck_script_add_step(s, &step);
}

static ck_status set(ck_script *s, const ck_ast_statement *st) {
    ck_binder *b = &s->b;
    const ck_ast_option *o = st->set.option;
    ck_settings *settings = &b->catalog->settings;
    if (st->kind == CK_STATEMENT_RESET)
        return ck_bind_at(b, o ? o->pos : st->pos, ck_settings_reset(settings, o ? o->key : (ck_view){0}, b->err));
    if (!o) return ck_script_list_settings(s);
    return ck_bind_at(b, o->pos, ck_catalog_set(b->catalog, o->key, o->value, b->err));
}

static ck_status one(ck_script *s, const ck_ast_statement *st) {
    ck_binder *b = &s->b;
    switch (st->kind) {
    case CK_STATEMENT_CREATE_TABLE: return create_table(s, st);
    case CK_STATEMENT_CREATE_VIEW: return ck_bind_create_view(b, st->create_view, st->pos);
    case CK_STATEMENT_CREATE_FUNCTION: return ck_bind_create_function(b, st->create_function, st->pos);
    case CK_STATEMENT_INSERT:
    case CK_STATEMENT_QUERY:
    case CK_STATEMENT_SET_OF: return with_rows(s, st);
    case CK_STATEMENT_EXPLAIN: return explain(s, st);
    case CK_STATEMENT_DESCRIBE: return ck_script_describe(s, st);
    case CK_STATEMENT_SHOW: return ck_script_show(s, st);
    case CK_STATEMENT_DROP: return ck_bind_drop(b, st);
    case CK_STATEMENT_SET:
    case CK_STATEMENT_RESET: return set(s, st);
    case CK_STATEMENT_ALTER: return ck_bind_alter(b, st);
    }
    ck_assert_failed(__FILE__, __LINE__, "every statement is compiled");
}

/* ---- the script ---- */

/* Views that were bound before may mean something else after it. */
static bool changes_meaning(const ck_ast_statement *st) {
    switch (st->kind) {
    case CK_STATEMENT_CREATE_VIEW:
    case CK_STATEMENT_CREATE_FUNCTION:
    case CK_STATEMENT_DROP:
    case CK_STATEMENT_ALTER:
    case CK_STATEMENT_SET:
    case CK_STATEMENT_RESET: return true;
    default: return false;
    }
}

static ck_status statements(ck_script *s, const ck_ast_script *ast) {
    for (const ck_ast_statement *st = ast->first; st; st = st->next, s->statement++) {
        CK_TRY(one(s, st));
        if (changes_meaning(st)) s->b.views = NULL;
        if (s->b.options->one_job || !s->output_count) continue;
        CK_TRY(ck_script_jobs(s)); /* statement by statement */
        s->output_count = 0;
        s->b.views = NULL;
        s->b.warnings = NULL, s->b.warning_count = s->b.warning_capacity = 0;
    }
    return ck_script_jobs(s);
}

static ck_status compile(ck_catalog *c, const ck_source_text *source, const ck_sql_options *o, ck_arena *arena,
                         ck_sql_plan **out, ck_error *err) {
    ck_ast_script ast;
    ck_script *s = CK_ARENA_NEW(arena, ck_script);
    ck_sql_plan *plan = CK_ARENA_NEW(arena, ck_sql_plan);
    if (!s || !plan) return ck_nomem(err, arena->mem, sizeof *s);
    CK_TRY(ck_parse_script(source, arena, &ast, err));
    s->b = (ck_binder){.catalog = c, .options = o, .source = source, .err = err};
    s->b.plan = (ck_plan){.arena = arena, .err = err, .changes = o->changes};
    CK_TRY(statements(s, &ast));
    *plan = (ck_sql_plan){s->steps, s->step_count};
    *out = plan;
    return CK_OK;
}

ck_status ck_sql_compile(ck_catalog *c, ck_view text, const ck_sql_options *o, ck_arena *arena, ck_sql_plan **out,
                         ck_error *err) {
    ck_error own = CK_ERROR_INIT;
    if (!err) err = &own;
    ck_source_text *source = CK_ARENA_NEW(arena, ck_source_text);
    if (!source) return ck_nomem(err, arena->mem, sizeof *source);
    ck_catalog_dropped *dropped = CK_ARENA_NEW(arena, ck_catalog_dropped);
    if (!dropped) return ck_nomem(err, arena->mem, sizeof *dropped);
    if (ck_arena_on_reset(arena, ck_catalog_dropped_free, dropped) != CK_OK) return ck_nomem(err, arena->mem, 32);
    *source = (ck_source_text){.name = o->source_name ? o->source_name : "sql", .text = text};
    ck_catalog_begin(c);
    ck_status s = compile(c, source, o, arena, out, err);
    if (s == CK_NOMEM && arena->bytes > arena->bytes_max / 2)
        s = ck_fail(err, CK_NOMEM, "%s takes more than %zu MiB to plan; write it in parts", source->name,
                    arena->bytes_max >> 20);
    if (s == CK_OK && o->before_commit) s = o->before_commit(o->before_commit_arg, c, err);
    if (s != CK_OK && o->one_job) {
        ck_catalog_rollback(c);
    } else {
        ck_catalog_commit(c, dropped);
    }
    return s;
}

/* ---- a stored catalog ---- */

static ck_status define(ck_binder *b, const ck_ast_statement *st) {
    ck_output rows;
    switch (st->kind) {
    case CK_STATEMENT_CREATE_TABLE:
        if (st->create_table->query) break;
        return ck_bind_create_table(b, st->create_table, st->pos, &rows);
    case CK_STATEMENT_CREATE_VIEW: return ck_bind_create_view(b, st->create_view, st->pos);
    case CK_STATEMENT_CREATE_FUNCTION: return ck_bind_create_function(b, st->create_function, st->pos);
    default: break;
    }
    return ck_bind_refuse(b, st->pos, "only CREATE TABLE, VIEW and FUNCTION stand in a catalog");
}

/* Views and functions may be made of others that were replaced later: what fails is tried again as long as others go.
 */
static ck_status define_all(ck_binder *b, ck_ast_statement *first) {
    for (bool again = true; first && again;) {
        ck_ast_statement **at = &first;
        ck_error error = CK_ERROR_INIT, *outer = b->err;
        again = false;
        while (*at) {
            ck_error one_error = CK_ERROR_INIT;
            b->err = b->plan.err = &one_error;
            ck_status s = define(b, *at);
            b->err = b->plan.err = outer;
            if (s == CK_NOMEM) {
                *outer = one_error;
                return s;
            }
            if (s == CK_OK) {
                *at = (*at)->next;
                again = true;
            } else {
                if (error.status == CK_OK) error = one_error;
                at = &(*at)->next;
            }
        }
        if (first && !again) {
            *outer = error;
            return error.status;
        }
    }
    return CK_OK;
}

ck_status ck_catalog_load(ck_catalog *c, ck_view text, const char *name, ck_arena *scratch, ck_error *err) {
    ck_ast_script ast;
    ck_sql_options options = {.source_name = name, .parallelism = 1, .key_groups = 1};
    ck_source_text *source = CK_ARENA_NEW(scratch, ck_source_text);
    if (!source) return ck_nomem(err, scratch->mem, sizeof *source);
    *source = (ck_source_text){.name = name, .text = text};
    CK_TRY(ck_parse_script(source, scratch, &ast, err));
    ck_binder b = {.catalog = c, .options = &options, .source = source, .err = err, .loading = true};
    b.plan = (ck_plan){.arena = scratch, .err = err};
    ck_catalog_dropped dropped;
    ck_catalog_begin(c);
    ck_status s = define_all(&b, ast.first);
    if (s == CK_OK) {
        ck_catalog_commit(c, &dropped);
        ck_catalog_dropped_free(&dropped);
    } else {
        ck_catalog_rollback(c);
    }
    return s;
}
