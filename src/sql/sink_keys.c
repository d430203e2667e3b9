/* Whether several rows that go into a table may meet under one value of its PRIMARY KEY. The table then shows the
 * greatest of them, whichever came last, and another one when that one goes; a materialiser in front of the sink keeps
 * all (lower/sink.c). Rows that are said once as they come are left as they are: of those the last stands. */
#include "sql/bind/bind_int.h"
#include "sql/script_int.h"

static const char *names_of(ck_script *s, const ck_schema *schema, const uint32_t *columns, uint32_t count) {
    const char *text = count ? schema->fields[columns[0]].name : "one row";
    for (uint32_t i = 1; text && i < count; i++)
        text = ck_arena_printf(s->b.plan.arena, "%s, %s", text, schema->fields[columns[i]].name);
    return text;
}

typedef enum answer { UNKNOWN, NO, YES } answer;

/* Whether n's rows are all made at the end of some input, in no order of arrival that means anything. A sort's order
 * does, and so does that of windows. answers: by node, so that shared ones are asked once. */
static bool made_at_end(const ck_plan_node *n, answer *answers) {
    bool ordered = n->kind == CK_PLAN_SORT || n->kind == CK_PLAN_WINDOW_AGG;
    uint32_t made = 0, wanted = n->kind == CK_PLAN_UNION ? n->input_count : 1;
    if (answers[n->id] != UNKNOWN) return answers[n->id] == YES;
    for (uint32_t i = 0; i < n->input_count && !ordered && !n->final; i++) made += made_at_end(n->inputs[i], answers);
    bool yes = !ordered && (n->final || made >= wanted);
    answers[n->id] = yes ? YES : NO;
    return yes;
}

ck_status ck_script_sink_keys(ck_script *s, ck_output *o) {
    const ck_table_def *t = o->table ? &o->table->table : NULL;
    if (!t || !o->key_count || !t->connector->accepts_upserts || !t->connector->accepts_upserts(&t->decl)) return CK_OK;
    const ck_plan_node *n = o->node;
    if (ck_plan_is_unique(n, o->key, o->key_count)) return CK_OK;
    answer *answers = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, answer);
    if (!answers) return CK_NOMEM;
    o->rows_meet = n->mode == CK_MODE_RETRACT || made_at_end(n, answers);
    if (!o->rows_meet) return CK_OK;
    const char *key = names_of(s, o->schema, o->key, o->key_count);
    const char *own = n->key_count ? names_of(s, n->schema, n->keys[0].at, n->keys[0].count) : "";
    if (!key || !own) return ck_bind_nomem(&s->b);
    const char *why = n->key_count ? ck_arena_printf(s->b.plan.arena, "is not the key of this query (%s)", own)
                                   : "is no key of this query";
    if (!why) return ck_bind_nomem(&s->b);
    return ck_bind_warn(
        &s->b,
        "the PRIMARY KEY (%s) of \"%s\" %s: where several of its rows have one key, the table shows the "
        "greatest of them; GROUP BY %s gives one row a key",
        key, o->table->name, why, key);
}
