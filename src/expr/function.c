/* The registry: one list over the tables of the group files, and calls bound by name. */
#include "expr/functions_int.h"

#include "base/suggest.h"
#include "expr/coerce.h"
#include "expr/tree_int.h"

static const ck_function_table *const tables[] = {
    &ck_functions_logic,     &ck_functions_compare,  &ck_functions_arith,  &ck_functions_conditional,
    &ck_functions_cast,      &ck_functions_like,     &ck_functions_string, &ck_functions_text,
    &ck_functions_regex,     &ck_functions_number,   &ck_functions_round,  &ck_functions_time,
    &ck_functions_time_text, &ck_functions_hash,     &ck_functions_nested, &ck_functions_array,
    &ck_functions_json,      &ck_functions_volatile,
};

size_t ck_function_count(void) {
    size_t n = 0;
    for (size_t t = 0; t < CK_ARRAY_COUNT(tables); t++) n += tables[t]->count;
    return n;
}

const ck_function *ck_function_at(size_t i) {
    for (size_t t = 0; t < CK_ARRAY_COUNT(tables); t++) {
        if (i < tables[t]->count) return &tables[t]->functions[i];
        i -= tables[t]->count;
    }
    return NULL;
}

/* The words of a space-separated list, one after the other. */
static bool next_word(const char **list, ck_view *word) {
    const char *p = *list;
    if (!p) return false;
    while (*p == ' ') p++;
    size_t n = strcspn(p, " ");
    *word = (ck_view){p, n};
    *list = p + n;
    return n > 0;
}

static bool goes_by(const ck_function *f, ck_view name) {
    if (ck_view_eq_nocase(ck_view_of(f->name), name)) return true;
    const char *list = f->aliases;
    for (ck_view word; next_word(&list, &word);)
        if (ck_view_eq_nocase(word, name)) return true;
    return false;
}

const ck_function *ck_function_find(const char *name) {
    ck_view wanted = ck_view_of(name);
    for (size_t t = 0; t < CK_ARRAY_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            if (goes_by(&tables[t]->functions[i], wanted)) return &tables[t]->functions[i];
    return NULL;
}

ck_view ck_function_suggest(const char *name) {
    ck_suggest s;
    ck_suggest_init(&s, ck_view_of(name));
    for (size_t i = 0, n = ck_function_count(); i < n; i++) {
        const ck_function *f = ck_function_at(i);
        if (f->flags & CK_FN_INTERNAL) continue;
        ck_suggest_offer(&s, ck_view_of(f->name));
        const char *list = f->aliases;
        for (ck_view word; next_word(&list, &word);) ck_suggest_offer(&s, word);
    }
    return s.best;
}

static ck_status unknown(const char *name, ck_error *err) {
    ck_view near = ck_function_suggest(name);
    if (near.n) return ck_fail(err, CK_INVALID, "no function %s; did you mean %.*s?", name, (int)near.n, near.p);
    return ck_fail(err, CK_INVALID, "no function %s", name);
}

ck_status ck_expr_call(ck_arena *a, const char *name, ck_expr *const *args, uint32_t arg_count, ck_expr **out,
                       ck_error *err) {
    *out = NULL;
    const ck_function *fn = ck_function_find(name);
    return fn ? ck_expr_call_of(a, fn, args, arg_count, out, err) : unknown(name, err);
}

ck_status ck_expr_call_of(ck_arena *a, const ck_function *fn, ck_expr *const *args, uint32_t arg_count, ck_expr **out,
                          ck_error *err) {
    *out = NULL;
    ck_expr **copy = ck_arena_array(a, arg_count ? arg_count : 1, sizeof *copy);
    if (!copy) return ck_nomem(err, a->mem, arg_count * sizeof *copy);
    ck_bind_call call = {.arena = a, .name = fn->name, .fn = fn, .args = copy, .arg_count = arg_count};
    for (uint32_t i = 0; i < arg_count; i++) {
        copy[i] = args[i];
        call.nullable |= args[i]->nullable;
    }
    CK_TRY(fn->bind ? fn->bind(&call, err) : ck_bind_overloads(&call, err));
    *out = call.instead;
    if (!*out) *out = ck_expr_new_call(a, fn, call.impl, call.args, call.arg_count, call.type, call.nullable);
    return *out ? CK_OK : ck_nomem(err, a->mem, sizeof **out);
}
