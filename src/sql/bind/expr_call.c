/* Function calls: scalar functions by the table in expr/, the forms SQL writes differently, and where aggregates may
 * stand. */
#include "base/suggest.h"
#include "expr/library.h"
#include "sql/bind/bind_int.h"
#include "sql/foreign.h"

static bool is_called(const ck_ast_expr *e, const char *name) { return ck_view_eq_nocase(e->name, ck_view_of(name)); }

static ck_status no_such_function(ck_binder *b, const ck_ast_expr *e);
static const char *lower_name(ck_binder *b, ck_view name);

/* Something only aggregates may carry, on a function that is none. */
static ck_status refuse_extras(ck_binder *b, const ck_ast_expr *e, const ck_catalog_entry *own) {
    const ck_ast_call *c = e->call;
    if (!c) return CK_OK;
    const char *what = c->over                              ? "OVER"
                       : c->filter                          ? "FILTER"
                       : c->distinct                        ? "DISTINCT"
                       : c->star                            ? "*"
                       : c->order_by.count                  ? "ORDER BY"
                       : c->nulls != CK_NULL_TREATMENT_NONE ? "IGNORE or RESPECT NULLS"
                                                            : NULL;
    if (!what) return CK_OK;
    const char *name = lower_name(b, e->name);
    if (!name) return ck_bind_nomem(b);
    if (!own && !ck_library_function(b->catalog->proc->library, name)) return no_such_function(b, e);
    return ck_bind_fail(b, e->sign, "%.*s is not an aggregate function and takes no %s", ck_cut(e->name), e->name.p,
                        what);
}

/* TIMESTAMPDIFF(MINUTE, a, b): the unit is written as a word. */
static ck_status with_unit_word(ck_binder *b, const ck_bind_place *place, const char *name, const ck_ast_expr *e,
                                ck_expr **out) {
    const ck_ast_expr *unit = e->args.first;
    ck_expr **args = CK_BIND_ARRAY(b, e->args.count, ck_expr *);
    uint32_t n = 1;
    if (!args) return CK_NOMEM;
    if (!unit || unit->kind != CK_AST_NAME)
        return ck_bind_fail(b, e->sign, "%.*s takes a unit first: MINUTE, DAY ...", ck_cut(e->name), e->name.p);
    CK_TRY(ck_bind_string(b, unit->name, unit->pos, &args[0]));
    for (const ck_ast_expr *a = unit->next; a; a = a->next) CK_TRY(ck_bind_expr(b, place, a, &args[n++]));
    return ck_bind_function(b, name, args, n, e->sign, out);
}

static const char *lower_name(ck_binder *b, ck_view name) {
    char *copy = ck_arena_strndup(b->plan.arena, name.p, name.n);
    for (char *c = copy; c && *c; c++) *c = ck_ascii_lower(*c);
    return copy;
}

static const char *const time_windows[] = {"tumble",        "hop",         "cumulate",      "session",
                                           "tumble_start",  "tumble_end",  "hop_start",     "hop_end",
                                           "session_start", "session_end", "tumble_rowtime"};

bool ck_bind_is_time_window(ck_view function) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(time_windows); i++)
        if (ck_view_eq_nocase(function, ck_view_of(time_windows[i]))) return true;
    return false;
}

/* What is another system's is said before its arguments are looked at, which may be words of its own (DATEDIFF(day, a,
 * b)). */
static ck_status not_foreign(ck_binder *b, const ck_ast_expr *e) {
    const char *advice = ck_foreign_name(CK_FOREIGN_FUNCTION, e->name), *name = advice ? lower_name(b, e->name) : NULL;
    if (!advice) return CK_OK;
    if (!name) return ck_bind_nomem(b);
    return ck_library_function(b->catalog->proc->library, name)
               ? CK_OK
               : ck_bind_fail(b, e->sign, "there is no function \"%.*s\"; %s", ck_cut(e->name), e->name.p, advice);
}

/* Names that SQL functions, windows of time and OVER have beside those of the library. */
static void offer_words(ck_suggest *near, const ck_ast_expr *e) {
    static const char *const ranks[] = {"row_number", "rank", "dense_rank", "first_value", "last_value", "lag", "lead"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(time_windows); i++) ck_suggest_offer(near, ck_view_of(time_windows[i]));
    for (size_t i = 0; e->call && e->call->over && i < CK_ARRAY_COUNT(ranks); i++)
        ck_suggest_offer(near, ck_view_of(ranks[i]));
}

static void offer_functions(ck_binder *b, ck_suggest *near, const ck_ast_expr *e, const char *name) {
    const ck_library *l = b->catalog->proc->library;
    ck_suggest_offer(near, ck_function_suggest(name));
    for (const ck_library_item *i = l ? l->items : NULL; i; i = i->next) {
        if (i->function) ck_suggest_offer(near, ck_view_of(i->function->name));
        if (i->aggregate) ck_suggest_offer(near, ck_view_of(i->aggregate->name));
    }
    for (size_t i = 0; i < ck_aggregate_count(); i++) ck_suggest_offer(near, ck_view_of(ck_aggregate_at(i)->name));
    offer_words(near, e);
}

static ck_status no_such_function(ck_binder *b, const ck_ast_expr *e) {
    const char *name = lower_name(b, e->name);
    ck_suggest near;
    if (!name) return ck_bind_nomem(b);
    ck_suggest_init(&near, e->name);
    ck_catalog_offer(b->catalog, true, &near);
    if (!near.best.n) offer_functions(b, &near, e, name);
    if (near.best.n && ck_ascii_lower(near.best.p[0]) < 'a') near.best.n = 0; /* the table's own: no name to call */
    return ck_bind_fail(b, e->sign, "there is no function \"%.*s\"%s", ck_cut(e->name), e->name.p,
                        near.best.n ? ck_bind_near(b, &near)
                                    : "; one of your own comes with --plugin FILE.so or CREATE FUNCTION");
}

static ck_status scalar(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    bool of_window;
    CK_TRY(ck_bind_window_function(b, place, e, &of_window, out));
    if (of_window) return CK_OK;
    const ck_catalog_entry *own = ck_catalog_find_function(b->catalog, e->name, false);
    if (!own) CK_TRY(not_foreign(b, e));
    CK_TRY(refuse_extras(b, e, own));
    if (own) return ck_bind_own_function(b, place, own, e, out);
    if (is_called(e, "timestampdiff") || is_called(e, "timestampadd"))
        return with_unit_word(b, place, is_called(e, "timestampdiff") ? "timestampdiff" : "timestampadd", e, out);
    ck_expr **args;
    const char *name = lower_name(b, e->name);
    if (!name) return ck_bind_nomem(b);
    CK_TRY(ck_bind_exprs(b, place, &e->args, &args));
    if (is_called(e, "timezone") && e->args.count == 2) { /* x AT TIME ZONE z */
        ck_expr *swapped[2] = {args[1], args[0]};
        return ck_bind_function(b, "at_time_zone", swapped, 2, e->sign, out);
    }
    bool to_unit = e->args.count == 2 && e->args.last->kind == CK_AST_STRING;
    if (to_unit && (is_called(e, "ceil") || is_called(e, "ceiling") || is_called(e, "floor")))
        return ck_bind_function(b, is_called(e, "floor") ? "floor_to" : "ceil_to", args, 2, e->sign, out);
    const ck_function *fn = ck_library_function(b->catalog->proc->library, name);
    if (fn && (fn->flags & CK_FN_INTERNAL)) fn = NULL;
    if (!fn && (is_called(e, "extract") || is_called(e, "if") || is_called(e, "substring") || is_called(e, "position")))
        fn = ck_library_function(b->catalog->proc->library,
                                 name); /* forms of the grammar, whatever the table calls them */
    if (!fn) return no_such_function(b, e);
    return ck_bind_function(b, name, args, e->args.count, e->sign, out);
}

ck_status ck_bind_call_expr(ck_binder *b, const ck_bind_place *place, const ck_ast_expr *e, ck_expr **out) {
    char name[64];
    const ck_aggregate *fn = NULL;
    if (e->name.n < sizeof name) {
        memcpy(name, e->name.p, e->name.n);
        name[e->name.n] = 0;
        fn = ck_library_aggregate(b->catalog->proc->library, name);
    }
    if (e->call && e->call->over)
        return ck_bind_is_look_or(e) ? ck_bind_look_or(b, place, e, out) : ck_bind_over(b, place, e, out);
    if (is_called(e, "grouping")) return ck_bind_grouping(b, place, e, out);
    return fn ? ck_bind_aggregate(b, place, fn, e, out) : scalar(b, place, e, out);
}
