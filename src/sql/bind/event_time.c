/* The event time of a table: WATERMARK FOR, or the options that say the same. */
#include "data/text.h"
#include "sql/bind/create_int.h"
#include "stream/event.h"

static const ck_option_desc options[] = {
    {"event_time_column", "column", NULL, "the column that says when a row happened; or WATERMARK FOR"},
    {"watermark_lag_ms", "integer", "0", "how far rows may be out of order, in milliseconds"},
    {"idle_timeout_ms", "integer", "60000", "a split without rows for so long holds time back no more; 0: never"},
    {"allowed_lateness_ms", "integer", "0", "for so long after its end a window still takes rows"},
    {"late_table", "text", NULL,
     "the table that takes rows that are too late for their window, join or OVER; else they are dropped"},
    {"state_ttl", "text", NULL, "state made of its rows that was not written for so long is forgotten: '1h'; 0: never"},
};

enum { TIME_OPTIONS = CK_ARRAY_COUNT(options) - 1 }; /* the last is not about event time */

const ck_option_desc *ck_bind_time_options(uint32_t *count) {
    *count = CK_ARRAY_COUNT(options);
    return options;
}

static const ck_ast_option *option(const ck_ast_options *list, const char *name) {
    for (const ck_ast_option *o = list->first; o; o = o->next)
        if (ck_view_eq_nocase(o->key, ck_view_of(name))) return o;
    return NULL;
}

static ck_status column_of(ck_binder *b, const ck_catalog_entry *e, ck_view name, bool quoted, ck_pos at,
                           const char *clause, uint32_t *out) {
    const ck_table_def *t = &e->table;
    uint32_t folded = CK_NO_COLUMN;
    ck_suggest near;
    ck_suggest_init(&near, name);
    for (uint32_t i = 0; i < t->column_count; i++) {
        ck_suggest_offer(&near, ck_view_of(t->columns[i].name));
        if (ck_view_eq(ck_view_of(t->columns[i].name), name)) {
            *out = i;
            return CK_OK;
        }
        if (!quoted && ck_view_eq_nocase(ck_view_of(t->columns[i].name), name)) folded = i;
    }
    *out = folded;
    if (folded != CK_NO_COLUMN) return CK_OK;
    return ck_bind_fail(b, at, "%s: there is no column \"%.*s\"%s", clause, ck_cut(name), name.p,
                        ck_bind_near(b, &near));
}

static ck_status check_type(ck_binder *b, const ck_table_column *c, ck_pos at) {
    ck_kind k = c->type->kind;
    if (k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ || k == CK_TYPE_BIGINT) return CK_OK;
    if (k == CK_TYPE_VARCHAR)
        return ck_bind_refuse(b, at,
                              "\"%s\" is text and cannot be event time; declare it TIMESTAMP, or add a column: "
                              "event_time AS CAST(%s AS TIMESTAMP), WATERMARK FOR event_time AS event_time",
                              c->name, c->name);
    if (k == CK_TYPE_DATE)
        return ck_bind_refuse(b, at,
                              "\"%s\" is a DATE and cannot be event time; add a column: event_time AS CAST(%s AS "
                              "TIMESTAMP), WATERMARK FOR event_time AS event_time",
                              c->name, c->name);
    if (ck_kind_is_integer(k))
        return ck_bind_refuse(b, at,
                              "\"%s\" is %s; event time is a TIMESTAMP, or a BIGINT of milliseconds since 1970; of "
                              "seconds add a column: event_time AS TO_TIMESTAMP_LTZ(%s, 0)",
                              c->name, ck_type_name(b->plan.arena, c->type), c->name);
    return ck_bind_refuse(b, at, "\"%s\" is %s; event time is a TIMESTAMP, or a BIGINT of milliseconds since 1970",
                          c->name, ck_type_name(b->plan.arena, c->type));
}

/* The delay in ts - delay: an INTERVAL; of a BIGINT also a number of milliseconds. */
static ck_status delay_of(ck_binder *b, const ck_table_column *c, const ck_ast_expr *e, int64_t *out) {
    ck_scope none = {0};
    ck_bind_place place = {.scope = &none, .clause = "the delay of a WATERMARK"};
    ck_expr *v;
    CK_TRY(ck_bind_expr(b, &place, e, &v));
    bool millis = c->type->kind == CK_TYPE_BIGINT && ck_kind_is_integer(v->type->kind);
    if (v->type->kind == CK_TYPE_INTERVAL_MONTH)
        return ck_bind_refuse(b, e->pos,
                              "the delay of a WATERMARK of months has no fixed length; write days: INTERVAL '30' DAY");
    if ((!millis && v->type->kind != CK_TYPE_INTERVAL_US) || !ck_expr_is_constant(v))
        return ck_bind_fail(b, e->pos, "the delay of a WATERMARK is a fixed time: INTERVAL '5' SECOND");
    CK_TRY(ck_bind_fold(b, v, e->pos, &v));
    int64_t most = millis ? CK_EVENT_TIME_MAX / 1000 : CK_EVENT_TIME_MAX;
    if (v->value.null || v->value.i64 < 0 || v->value.i64 > most)
        return ck_bind_fail(b, e->pos, "the delay of a WATERMARK is from 0 to 8000 years");
    *out = millis ? v->value.i64 * 1000 : v->value.i64;
    return CK_OK;
}

static bool is_column(const ck_ast_expr *e, const ck_ast_ident *name) {
    return e->kind == CK_AST_NAME && ck_view_eq_nocase(e->name, name->text);
}

static ck_status from_clause(ck_binder *b, const ck_catalog_entry *e, const ck_ast_watermark *w, uint32_t *column,
                             int64_t *lag_us) {
    const ck_ast_expr *x = w->expr;
    if (w->next) return ck_bind_fail(b, w->pos, "a table has one WATERMARK, and this is the second");
    CK_TRY(column_of(b, e, w->column.text, w->column.quoted, w->column.pos, "WATERMARK FOR", column));
    *lag_us = 0;
    if (is_column(x, &w->column)) return CK_OK;
    if (x->kind == CK_AST_OPERATOR && x->what == CK_OP_SUBTRACT && x->args.count == 2 &&
        is_column(x->args.first, &w->column))
        return delay_of(b, &e->table.columns[*column], x->args.last, lag_us);
    return ck_bind_refuse(b, x->pos,
                          "a watermark is the column, or the column minus a fixed delay: WATERMARK FOR %.*s AS %.*s - "
                          "INTERVAL '5' SECOND",
                          ck_cut(w->column.text), w->column.text.p, ck_cut(w->column.text), w->column.text.p);
}

static ck_status millis_of(ck_binder *b, const ck_ast_options *list, const char *name, int64_t deflt_ms, int64_t *us) {
    const ck_ast_option *o = option(list, name);
    int64_t ms = deflt_ms;
    if (o && (!ck_parse_i64(o->value, &ms) || ms < 0 || ms > CK_EVENT_TIME_MAX / 1000))
        return ck_bind_fail(b, o->value_pos, "option '%s' is a number of milliseconds from 0, at most 8000 years",
                            name);
    *us = ms * 1000;
    return CK_OK;
}

ck_status ck_bind_state_ttl(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t) {
    const ck_ast_option *o = option(&t->options, "state_ttl");
    if (!o) return CK_OK;
    if (ck_duration_us(o->value, &e->table.ttl_us)) {
        if (e->table.ttl_us == 0) e->table.ttl_us = -1;
        return CK_OK;
    }
    return ck_bind_fail(b, o->value_pos, "option 'state_ttl' is a time with its unit, '1h', '30 min', '2 days', or 0");
}

ck_status ck_bind_event_time(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t) {
    ck_table_time *time = &e->table.time;
    const ck_ast_option *named = option(&t->options, "event_time_column");
    ck_pos at = t->watermarks ? t->watermarks->column.pos : named ? named->value_pos : (ck_pos){0};
    for (uint32_t i = 0; !t->watermarks && !named && i < TIME_OPTIONS; i++) {
        const ck_ast_option *o = option(&t->options, options[i].name);
        if (o)
            return ck_bind_fail(b, o->pos,
                                "option '%s' is about event time, and this table has none: WATERMARK FOR ts AS ts - "
                                "INTERVAL '5' SECOND",
                                options[i].name);
    }
    if (!t->watermarks && !named) return CK_OK;
    const ck_ast_option *lag = option(&t->options, "watermark_lag_ms");
    if (t->watermarks && (named || lag))
        return ck_bind_fail(b, (named ? named : lag)->pos,
                            "the table has a WATERMARK already; give the time column and its delay once");
    time->clause = t->watermarks != NULL;
    if (t->watermarks) {
        CK_TRY(from_clause(b, e, t->watermarks, &time->column, &time->lag_us));
    } else {
        CK_TRY(column_of(b, e, named->value, false, at, "event_time_column", &time->column));
        CK_TRY(millis_of(b, &t->options, "watermark_lag_ms", 0, &time->lag_us));
    }
    const ck_table_column *c = &e->table.columns[time->column];
    CK_TRY(check_type(b, c, at));
    CK_TRY(millis_of(b, &t->options, "idle_timeout_ms", 60000, &time->idle_us));
    CK_TRY(millis_of(b, &t->options, "allowed_lateness_ms", 0, &time->lateness_us));
    time->expr = c->computed;
    if (!time->expr) time->expr = ck_expr_column(&e->arena, (uint32_t)c->physical, c->type, c->nullable);
    return time->expr ? CK_OK : ck_bind_nomem(b);
}
