/* See library.h. What a plugin says of itself is checked here, once, so that who calls it need not. */
#include "expr/library.h"

#include "expr/coerce.h"
#include "expr/plugin_function_int.h"

enum { NAME_BYTES_MAX = 63, ARGUMENTS_MAX = 32, STATE_FIELDS_MAX = 6 };

const ck_function *ck_library_function(const ck_library *l, const char *name) {
    const ck_function *f = ck_function_find(name);
    for (const ck_library_item *i = l ? l->items : NULL; i && !f; i = i->next)
        if (i->function && ck_view_eq_nocase(ck_view_of(i->function->name), ck_view_of(name))) f = i->function;
    return f;
}

const ck_aggregate *ck_library_aggregate(const ck_library *l, const char *name) {
    const ck_aggregate *f = ck_aggregate_find(name);
    for (const ck_library_item *i = l ? l->items : NULL; i && !f; i = i->next)
        if (i->aggregate && ck_view_eq_nocase(ck_view_of(i->aggregate->name), ck_view_of(name))) f = i->aggregate;
    return f;
}

ck_status ck_aggregate_bind(const ck_aggregate *fn, ck_arena *a, const ck_type *arg, bool arg_nullable,
                            ck_bound_aggregate *out, ck_error *err) {
    const ck_plugin_aggregate *p = fn->plugin;
    if (!p) return fn->bind(a, arg, arg_nullable, out, err);
    const ck_expr of = {.kind = CK_EXPR_COLUMN, .type = arg};
    if (arg && !ck_type_eq(arg, p->argument) && ck_implicit_cost(&of, p->argument->kind) < 0)
        return ck_fail(err, CK_INVALID, "no aggregate %s(%s); %s takes %s", fn->name, ck_type_name(a, arg), fn->name,
                       ck_type_name(a, p->argument));
    ck_aggregate_part *part = CK_ARENA_NEW(a, ck_aggregate_part);
    if (!part) return ck_nomem(err, a->mem, sizeof *part);
    *part = (ck_aggregate_part){fn->name, p->argument != NULL};
    *out = (ck_bound_aggregate){.fn = fn,
                                .argument_type = p->argument,
                                .type = p->returns,
                                .nullable = true,
                                .parts = part,
                                .part_count = 1,
                                .finish = "first",
                                .plugin = p};
    return CK_OK;
}

/* ---- entering ---- */

static bool is_name(const char *name) {
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n > NAME_BYTES_MAX) return false;
    for (size_t i = 0; i < n; i++) {
        char c = ck_ascii_lower(name[i]);
        if (!((c >= 'a' && c <= 'z') || c == '_' || (i && c >= '0' && c <= '9'))) return false;
    }
    return true;
}

static const char *lower_name(ck_arena *a, const char *name) {
    char *copy = ck_arena_strdup(a, name);
    for (char *c = copy; c && *c; c++) *c = ck_ascii_lower(*c);
    return copy;
}

/* Accumulators have names of their own, which stand in state beside those of aggregates. */
static bool is_accumulator(const char *name) {
    static const char *const taken[] = {"count_star", "moments", "ordered", "first", "last", "distinct_sketch"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(taken); i++)
        if (ck_view_eq_nocase(ck_view_of(taken[i]), ck_view_of(name))) return true;
    return false;
}

static ck_status check_name(const ck_library *l, const char *plugin, const char *what, const char *name, bool overloads,
                            ck_error *err) {
    if (!is_name(name))
        return ck_fail(err, CK_INVALID, "plugin %s has %s whose name is not 1 to %d letters, digits and _: \"%.80s\"",
                       plugin, what, NAME_BYTES_MAX, name ? name : "");
    if (ck_function_find(name) || ck_aggregate_find(name) || is_accumulator(name))
        return ck_fail(err, CK_INVALID, "plugin %s has %s \"%s\", which is built in; it must have another name", plugin,
                       what, name);
    if ((!overloads && ck_library_function(l, name)) || ck_library_aggregate(l, name))
        return ck_fail(err, CK_INVALID, "plugin %s has %s \"%s\", and there is one of this name already", plugin, what,
                       name);
    return CK_OK;
}

static ck_status type_of(ck_arena *a, const char *plugin, const char *name, const char *text, ck_view at,
                         const ck_type **out, ck_error *err) {
    ck_status s = ck_type_parse(a, at, out, err);
    if (s == CK_NOMEM) return s;
    if (s != CK_OK)
        return ck_fail(err, CK_INVALID, "plugin %s: %s has \"%.200s\", where \"%.*s\" is no SQL type", plugin, name,
                       text, at.n > 100 ? 100 : (int)at.n, at.p);
    ck_phys phys = ck_type_phys(*out);
    if (ck_plugin_layout(phys) == CLINK_LAYOUT_OTHER)
        return ck_fail(err, CK_INVALID, "plugin %s: %s has %s, which plugins do not look into", plugin, name,
                       ck_type_name(a, *out));
    return CK_OK;
}

/* "VARCHAR, DECIMAL(10,2)": commas outside brackets part them. */
static ck_status argument_types(ck_arena *a, const char *plugin, const clink_function *f, ck_plugin_overload *o,
                                ck_error *err) {
    ck_view text = ck_view_of(f->arguments);
    const ck_type **types = ck_arena_array(a, ARGUMENTS_MAX, sizeof(ck_type *));
    if (!types) return ck_nomem(err, a->mem, ARGUMENTS_MAX * sizeof(ck_type *));
    o->types = types;
    if (strspn(f->arguments, " ") == text.n) return CK_OK;
    for (size_t from = 0, i = 0, depth = 0; i <= text.n; i++) {
        char c = i < text.n ? text.p[i] : ',';
        if (c == '(') depth++;
        if (c == ')' && depth) depth--;
        if (c != ',' || (depth && i < text.n)) continue;
        ck_view one = {text.p + from, i - from};
        while (one.n && one.p[0] == ' ') one.p++, one.n--;
        while (one.n && one.p[one.n - 1] == ' ') one.n--;
        if (o->count == ARGUMENTS_MAX)
            return ck_fail(err, CK_INVALID, "plugin %s: function %s takes more than %d arguments", plugin, f->name,
                           ARGUMENTS_MAX);
        CK_TRY(type_of(a, plugin, f->name, f->arguments, one, &types[o->count++], err));
        from = i + 1;
    }
    return CK_OK;
}

static ck_status enter(ck_library *l, ck_arena *arena, const ck_function *f, const ck_aggregate *a, ck_error *err) {
    ck_library_item *item = CK_ARENA_NEW(arena, ck_library_item);
    if (!item) return ck_nomem(err, arena->mem, sizeof *item);
    *item = (ck_library_item){f, a, l->items};
    l->items = item;
    return CK_OK;
}

static ck_plugin_function *own_function(const ck_library *l, const char *plugin, const char *name) {
    const ck_function *f = ck_library_function(l, name);
    if (!f || ck_function_find(name)) return NULL;
    ck_plugin_function *own = (ck_plugin_function *)(uintptr_t)f;
    return strcmp(own->plugin, plugin) == 0 ? own : NULL;
}

ck_status ck_library_add_function(ck_library *l, ck_arena *arena, const char *plugin, const clink_function *f,
                                  ck_error *err) {
    ck_plugin_function *own = f->name ? own_function(l, plugin, f->name) : NULL;
    CK_TRY(check_name(l, plugin, "a function", f->name, own != NULL, err));
    if (!f->call || !f->arguments || !f->returns)
        return ck_fail(err, CK_INVALID, "plugin %s: function %s lacks %s", plugin, f->name,
                       !f->call        ? "call"
                       : !f->arguments ? "arguments (\"\" for none)"
                                       : "returns");
    ck_plugin_overload *o = CK_ARENA_NEW(arena, ck_plugin_overload);
    if (!o) return ck_nomem(err, arena->mem, sizeof *o);
    CK_TRY(argument_types(arena, plugin, f, o, err));
    CK_TRY(type_of(arena, plugin, f->name, f->returns, ck_view_of(f->returns), &o->returns, err));
    ck_plugin_overload_init(o, f, plugin);
    if (own) {
        ck_plugin_overload *last = own->overloads;
        while (last->next) last = last->next;
        last->next = o;
        return CK_OK;
    }
    if (!(own = CK_ARENA_NEW(arena, ck_plugin_function))) return ck_nomem(err, arena->mem, sizeof *own);
    own->plugin = plugin;
    own->overloads = o;
    own->base = (ck_function){.name = lower_name(arena, f->name),
                              .bind = ck_plugin_function_bind,
                              .flags = CK_FN_OUTSIDE | (f->flags & CLINK_VOLATILE ? CK_FN_VOLATILE : 0u),
                              .group = "plugins",
                              .syntax = f->name,
                              .summary = f->summary};
    if (!own->base.name) return ck_nomem(err, arena->mem, NAME_BYTES_MAX);
    return enter(l, arena, &own->base, NULL, err);
}

static ck_status state_types(ck_arena *a, const char *plugin, const clink_aggregate *f, ck_plugin_aggregate *own,
                             ck_error *err) {
    if (f->state_count == 0 || f->state_count > STATE_FIELDS_MAX || !f->state)
        return ck_fail(err, CK_INVALID, "plugin %s: aggregate %s has %u state fields; 1 to %d are possible", plugin,
                       f->name, f->state_count, STATE_FIELDS_MAX);
    if (!(own->state = ck_arena_array(a, f->state_count, sizeof(ck_type *))))
        return ck_nomem(err, a->mem, f->state_count * sizeof(ck_type *));
    for (uint32_t i = 0; i < f->state_count; i++) {
        const clink_field *field = &f->state[i];
        if (!is_name(field->name) || !field->type)
            return ck_fail(err, CK_INVALID, "plugin %s: a state field of aggregate %s has no name or no type", plugin,
                           f->name);
        CK_TRY(type_of(a, plugin, f->name, field->type, ck_view_of(field->type), &own->state[i], err));
        ck_kind k = own->state[i]->kind;
        if (k != CK_TYPE_BOOLEAN && k != CK_TYPE_BIGINT && k != CK_TYPE_DOUBLE && k != CK_TYPE_VARCHAR &&
            k != CK_TYPE_BYTES)
            return ck_fail(
                err, CK_INVALID,
                "plugin %s: state field %s of aggregate %s is %s; BOOLEAN, BIGINT, DOUBLE, VARCHAR and BYTES "
                "are possible",
                plugin, field->name, f->name, ck_type_name(a, own->state[i]));
    }
    return CK_OK;
}

ck_status ck_library_add_aggregate(ck_library *l, ck_arena *arena, const char *plugin, const clink_aggregate *f,
                                   ck_error *err) {
    CK_TRY(check_name(l, plugin, "an aggregate", f->name, false, err));
    if (!f->add || !f->merge || !f->result || !f->returns)
        return ck_fail(err, CK_INVALID, "plugin %s: aggregate %s lacks %s", plugin, f->name,
                       !f->add      ? "add"
                       : !f->merge  ? "merge"
                       : !f->result ? "result"
                                    : "returns");
    ck_plugin_aggregate *own = CK_ARENA_NEW(arena, ck_plugin_aggregate);
    if (!own) return ck_nomem(err, arena->mem, sizeof *own);
    own->face = f;
    own->plugin = plugin;
    CK_TRY(type_of(arena, plugin, f->name, f->returns, ck_view_of(f->returns), &own->returns, err));
    if (f->argument) CK_TRY(type_of(arena, plugin, f->name, f->argument, ck_view_of(f->argument), &own->argument, err));
    CK_TRY(state_types(arena, plugin, f, own, err));
    own->base = (ck_aggregate){.name = lower_name(arena, f->name),
                               .arg_min = f->argument ? 1 : 0,
                               .arg_max = f->argument ? 1 : 0,
                               .distinct_matters = true,
                               .group = "plugins",
                               .syntax = f->name,
                               .summary = f->summary,
                               .append_only = !f->takes_back,
                               .plugin = own};
    if (!own->base.name) return ck_nomem(err, arena->mem, NAME_BYTES_MAX);
    return enter(l, arena, NULL, &own->base, err);
}
