/* See library.h. What a plugin says of itself is checked here, once, so that who calls it need not. */
#include "expr/library.h"

#include "expr/coerce.h"
#include "expr/plugin_function_int.h"

enum {
    NAME_BYTES_MAX = 63,
    ARGUMENTS_MAX = 32,
    STATE_FIELDS_MAX = 6, /* of an aggregate */
    COLUMNS_MAX = 1000,
    STATES_MAX = 64,
    PORTS_MAX = 16,
    OPTIONS_MAX = 200
};

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

/* "TIME" as SQL means it: with microseconds. */
static const char *with_digits(ck_arena *a, ck_view type) {
    static const char *const bare[] = {"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bare); i++)
        if (ck_view_is(type, bare[i])) return ck_arena_printf(a, "%s(6)", bare[i]);
    return ck_arena_strndup(a, type.p, type.n);
}

static ck_status type_of(ck_arena *a, const char *plugin, const char *name, const char *text, ck_view at,
                         const ck_type **out, ck_error *err) {
    const char *whole = with_digits(a, at);
    if (!whole) return ck_nomem(err, a->mem, at.n);
    ck_status s = ck_type_parse(a, ck_view_of(whole), out, err);
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

static ck_status enter(ck_library *l, ck_arena *arena, ck_library_item given, ck_error *err) {
    ck_library_item *item = CK_ARENA_NEW(arena, ck_library_item);
    if (!item) return ck_nomem(err, arena->mem, sizeof *item);
    *item = given;
    item->next = l->items;
    l->items = item;
    return CK_OK;
}

static ck_plugin_function *own_function(const ck_library *l, const char *plugin, const char *name) {
    const ck_function *f = ck_library_function(l, name);
    if (!f || ck_function_find(name)) return NULL;
    ck_plugin_function *own = (ck_plugin_function *)(uintptr_t)f;
    return strcmp(own->plugin, plugin) == 0 ? own : NULL;
}

enum { KNOWN_FLAGS = CLINK_SEES_NULLS | CLINK_GIVES_NULLS | CLINK_FAILS | CLINK_VOLATILE };

static bool takes_the_same(const ck_plugin_overload *a, const ck_plugin_overload *b) {
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++) same = ck_type_eq(a->types[i], b->types[i]);
    return same;
}

/* Another of the name, which takes something else. */
static ck_status add_overload(ck_plugin_function *to, ck_plugin_overload *o, ck_error *err) {
    ck_plugin_overload **at = &to->overloads;
    for (; *at; at = &(*at)->next)
        if (takes_the_same(*at, o))
            return ck_fail(err, CK_INVALID, "plugin %s has function %s(%s) twice", to->plugin, o->face->name,
                           o->face->arguments);
    *at = o;
    return CK_OK;
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
    if (f->flags & ~(uint32_t)KNOWN_FLAGS)
        return ck_fail(err, CK_INVALID,
                       "plugin %s: function %s has flags (0x%x) that this clink does not know; a newer one may", plugin,
                       f->name, f->flags & ~(uint32_t)KNOWN_FLAGS);
    ck_plugin_overload *o = CK_ARENA_NEW(arena, ck_plugin_overload);
    if (!o) return ck_nomem(err, arena->mem, sizeof *o);
    CK_TRY(argument_types(arena, plugin, f, o, err));
    CK_TRY(type_of(arena, plugin, f->name, f->returns, ck_view_of(f->returns), &o->returns, err));
    ck_plugin_overload_init(o, f, plugin);
    if (own) return add_overload(own, o, err);
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
    return enter(l, arena, (ck_library_item){.function = &own->base}, err);
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
    return enter(l, arena, (ck_library_item){.aggregate = &own->base}, err);
}

/* ---- operators ---- */

static bool is_state_type(ck_kind k) {
    return k == CK_TYPE_BOOLEAN || k == CK_TYPE_BIGINT || k == CK_TYPE_DOUBLE || k == CK_TYPE_VARCHAR ||
           k == CK_TYPE_BYTES;
}

/* "BIGINT NOT NULL" */
static ck_status columns_of(ck_arena *a, const char *plugin, const char *name, const char *what, const clink_field *f,
                            uint32_t count, ck_schema *out, ck_error *err) {
    static const char suffix[] = " NOT NULL";
    if (count > COLUMNS_MAX || (count && !f))
        return ck_fail(err, CK_INVALID, "plugin %s: operator %s has %s of %u columns; %d are possible", plugin, name,
                       what, count, COLUMNS_MAX);
    ck_field *fields = ck_arena_array(a, count + 1u, sizeof *fields);
    if (!fields) return ck_nomem(err, a->mem, count * sizeof *fields);
    for (uint32_t i = 0; i < count; i++) {
        if (!f[i].name || !*f[i].name || strlen(f[i].name) > 200 || !f[i].type)
            return ck_fail(err, CK_INVALID, "plugin %s: operator %s has %s with a column without name or type", plugin,
                           name, what);
        ck_view type = ck_view_of(f[i].type);
        size_t n = sizeof suffix - 1;
        fields[i].nullable = !(type.n > n && memcmp(type.p + type.n - n, suffix, n) == 0);
        if (!fields[i].nullable) type.n -= n;
        CK_TRY(type_of(a, plugin, name, f[i].type, type, &fields[i].type, err));
        if (!(fields[i].name = ck_arena_strdup(a, f[i].name))) return ck_nomem(err, a->mem, strlen(f[i].name));
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(fields[k].name, fields[i].name) == 0)
                return ck_fail(err, CK_INVALID, "plugin %s: operator %s has %s with two columns %s", plugin, name, what,
                               f[i].name);
    }
    *out = (ck_schema){fields, count};
    return CK_OK;
}

static ck_status state_of(ck_arena *a, const char *plugin, const clink_operator *f, uint32_t i, ck_plugin_operator *own,
                          ck_schema *out, ck_error *err) {
    const clink_state *s = f->states[i];
    const char *what = ck_arena_printf(a, "state %u", i);
    if (!what) return ck_nomem(err, a->mem, 32);
    if (!s || !is_name(s->name) || s->kind > CLINK_LIST || s->field_count == 0 || s->ttl_ms < 0 ||
        s->ttl_ms > INT64_MAX / 1000)
        return ck_fail(err, CK_INVALID, "plugin %s: %s of operator %s has no name, no kind, no fields or an odd ttl",
                       plugin, what, f->name);
    CK_TRY(columns_of(a, plugin, f->name, what, s->fields, s->field_count, out, err));
    for (uint32_t k = 0; k < s->field_count; k++) {
        ck_kind kind = out->fields[k].type->kind;
        if (!is_state_type(kind) || out->fields[k].type->precision)
            return ck_fail(err, CK_INVALID,
                           "plugin %s: field %s of state %s of operator %s is %s; BOOLEAN, BIGINT, DOUBLE, VARCHAR and "
                           "BYTES are possible",
                           plugin, s->fields[k].name, s->name, f->name, ck_type_name(a, out->fields[k].type));
        bool key = s->kind == CLINK_MAP && k == 0;
        if (key && kind != CK_TYPE_BIGINT && kind != CK_TYPE_VARCHAR)
            return ck_fail(err, CK_INVALID, "plugin %s: the key of map %s of operator %s is BIGINT or VARCHAR, not %s",
                           plugin, s->name, f->name, ck_type_name(a, out->fields[k].type));
    }
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(f->states[k]->name, s->name) == 0)
            return ck_fail(err, CK_INVALID, "plugin %s: operator %s has two states %s", plugin, f->name, s->name);
    if (s->ttl_ms) own->ttl = true;
    return CK_OK;
}

/* State fields are never NULL for a plugin: a text that was not written is empty, which is NULL where it is kept. */
static void state_nulls(const ck_schema *s, bool map) {
    ck_field *fields = (ck_field *)(uintptr_t)s->fields;
    for (uint32_t i = 0; i < s->field_count; i++)
        fields[i].nullable = ck_type_phys(fields[i].type) == CK_PHYS_VIEW && !(map && i == 0);
}

static ck_status fill_operator(ck_arena *a, const char *plugin, const clink_operator *f, ck_plugin_operator *own,
                               ck_error *err) {
    ck_schema *output = CK_ARENA_NEW(a, ck_schema);
    ck_schema *inputs = ck_arena_array(a, own->input_count, sizeof *inputs);
    ck_schema *sides = ck_arena_array(a, f->side_count + 1u, sizeof *sides);
    ck_schema *states = ck_arena_array(a, f->state_count + 1u, sizeof *states);
    const ck_schema **list = ck_arena_array(a, own->input_count, sizeof *list);
    if (!output || !inputs || !sides || !states || !list) return ck_nomem(err, a->mem, sizeof *states);
    CK_TRY(columns_of(a, plugin, f->name, "an output", f->output.fields, f->output.count, output, err));
    own->output = output, own->sides = sides, own->states = states;
    for (uint32_t i = 0; f->inputs && i < own->input_count; i++) {
        CK_TRY(columns_of(a, plugin, f->name, "an input", f->inputs[i].fields, f->inputs[i].count, &inputs[i], err));
        list[i] = &inputs[i];
    }
    own->inputs = f->inputs ? list : NULL;
    for (uint32_t i = 0; i < f->side_count; i++)
        CK_TRY(columns_of(a, plugin, f->name, "a side output", f->sides[i].fields, f->sides[i].count, &sides[i], err));
    for (uint32_t i = 0; i < f->state_count; i++) {
        CK_TRY(state_of(a, plugin, f, i, own, &states[i], err));
        state_nulls(&states[i], f->states[i]->kind == CLINK_MAP);
    }
    return CK_OK;
}

ck_status ck_library_add_operator(ck_library *l, ck_arena *arena, const char *plugin, const clink_operator *f,
                                  ck_error *err) {
    if (!is_name(f->name))
        return ck_fail(err, CK_INVALID,
                       "plugin %s has an operator whose name is not 1 to %d letters, digits and _: \"%.80s\"", plugin,
                       NAME_BYTES_MAX, f->name ? f->name : "");
    if (ck_library_operator(l, f->name))
        return ck_fail(err, CK_INVALID, "plugin %s has an operator \"%s\", and there is one of this name already",
                       plugin, f->name);
    if (!f->on_batch || f->output.count == 0)
        return ck_fail(err, CK_INVALID, "plugin %s: operator %s lacks %s", plugin, f->name,
                       f->on_batch ? "columns of its output" : "on_batch");
    if (f->input_count > PORTS_MAX || f->side_count > PORTS_MAX || (f->side_count && !f->sides) ||
        f->state_count > STATES_MAX || (f->state_count && !f->states))
        return ck_fail(err, CK_INVALID, "plugin %s: operator %s has more than %d inputs or side outputs, or %d states",
                       plugin, f->name, PORTS_MAX, STATES_MAX);
    ck_plugin_operator *own = CK_ARENA_NEW(arena, ck_plugin_operator);
    if (!own) return ck_nomem(err, arena->mem, sizeof *own);
    own->face = f;
    own->plugin = plugin;
    own->input_count = f->input_count ? f->input_count : 1;
    own->timers = f->on_timers != NULL;
    CK_TRY(fill_operator(arena, plugin, f, own, err));
    return enter(l, arena, (ck_library_item){.operator_ = own}, err);
}

const ck_plugin_operator *ck_library_operator(const ck_library *l, const char *name) {
    for (const ck_library_item *i = l ? l->items : NULL; i; i = i->next)
        if (i->operator_ && strcmp(i->operator_->face->name, name) == 0) return i->operator_;
    return NULL;
}

/* ---- connectors ---- */

static bool is_lower(const char *name) {
    for (const char *c = name; *c; c++)
        if (ck_ascii_lower(*c) != *c) return false;
    return true;
}

static bool is_option_values(const char *values) {
    static const char *const kinds[] = {"text", "integer", "boolean", "path"};
    for (size_t i = 0; values && i < CK_ARRAY_COUNT(kinds); i++)
        if (strcmp(values, kinds[i]) == 0) return true;
    return values && strchr(values, '|');
}

static ck_status check_options(const char *plugin, const clink_connector *c, uint32_t *count, ck_error *err) {
    uint32_t n = 0;
    for (const clink_option *o = c->options; o && o->name; o++, n++) {
        if (n == OPTIONS_MAX || !*o->name || strlen(o->name) > 100 || !is_lower(o->name) || !o->help ||
            strcmp(o->name, "connector") == 0)
            return ck_fail(err, CK_INVALID,
                           "plugin %s: connector %s has over %d options, or one without a name in lower case or help",
                           plugin, c->name, OPTIONS_MAX);
        if (!is_option_values(o->values))
            return ck_fail(err, CK_INVALID,
                           "plugin %s: option %s of connector %s takes \"%.80s\"; text, integer, boolean, path and "
                           "a|b|c are possible",
                           plugin, o->name, c->name, o->values ? o->values : "");
    }
    *count = n;
    return CK_OK;
}

static ck_status check_parts(const char *plugin, const clink_connector *c, ck_error *err) {
    const clink_source *source = c->source;
    const clink_sink *sink = c->sink;
    const char *lacks = NULL;
    if (!source && !sink) lacks = "a source or a sink";
    if (source && (!source->splits || !source->read)) lacks = "splits or read of its source";
    if (sink && !sink->write) lacks = "write of its sink";
    if (sink && !sink->flush == !sink->prepare) lacks = "flush or prepare of its sink, one of them";
    if (sink && sink->prepare && (!sink->commit || !sink->abort_others)) lacks = "commit or abort_others of its sink";
    if (lacks) return ck_fail(err, CK_INVALID, "plugin %s: connector %s lacks %s", plugin, c->name, lacks);
    return CK_OK;
}

ck_status ck_library_add_connector(ck_library *l, ck_arena *arena, const char *plugin, const clink_connector *c,
                                   ck_error *err) {
    if (!is_name(c->name) || !is_lower(c->name))
        return ck_fail(
            err, CK_INVALID,
            "plugin %s has a connector whose name is not 1 to %d letters in lower case, digits and _: \"%.80s\"",
            plugin, NAME_BYTES_MAX, c->name ? c->name : "");
    if (ck_library_connector(l, c->name))
        return ck_fail(err, CK_INVALID, "plugin %s has a connector \"%s\", and there is one of this name already",
                       plugin, c->name);
    ck_plugin_connector *own = CK_ARENA_NEW(arena, ck_plugin_connector);
    if (!own) return ck_nomem(err, arena->mem, sizeof *own);
    *own = (ck_plugin_connector){.face = c, .plugin = plugin};
    CK_TRY(check_parts(plugin, c, err));
    CK_TRY(check_options(plugin, c, &own->option_count, err));
    return enter(l, arena, (ck_library_item){.connector = own}, err);
}

const ck_plugin_connector *ck_library_connector(const ck_library *l, const char *name) {
    for (const ck_library_item *i = l ? l->items : NULL; i; i = i->next)
        if (i->connector && strcmp(i->connector->face->name, name) == 0) return i->connector;
    return NULL;
}
