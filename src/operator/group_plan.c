/* From parameters to accumulators, lanes and slots. Equal accumulators are made once: AVG(x) and SUM(x) share the sum,
 * every aggregate with one filter shares the lane, every DISTINCT of one argument and filter the set. */
#include "operator/group_int.h"

#include <yyjson.h>

#include "expr/library.h"
#include "operator/params_int.h"

/* One entry of "aggregates". */
typedef struct call {
    const char *fn, *arg_text, *filter_text, *order_text;
    int64_t arg, filter;
    bool distinct, ignores_nulls;
    ck_order_spec *order; /* in front of the values */
    uint32_t order_count;
    ck_view separator;
    double fraction;
} call;

static uint32_t lane_of(ck_group_plan *p, ck_lane_plan lane) {
    for (uint32_t i = 0; i < p->lane_count; i++) {
        const ck_lane_plan *l = &p->lanes[i];
        if (l->filter == lane.filter && l->not_null == lane.not_null && l->distinct == lane.distinct &&
            l->member == lane.member)
            return i;
    }
    p->lanes[p->lane_count] = lane;
    return p->lane_count++;
}

static bool same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

/* Its key: in a window the set is a bucket a slice, the first column of the scope is not part of the key in there. */
static ck_status distinct_new(ck_group_plan *p, const call *c, int64_t not_null, ck_error *err) {
    uint32_t skip = p->scope.within_count ? 1 : 0, own = p->side_keys.count - skip, n = own + 1;
    uint32_t *columns = ck_arena_array(p->arena, n, sizeof *columns);
    const ck_type **types = ck_arena_array(p->arena, n, sizeof(ck_type *));
    uint32_t most = p->retract || p->sets_in_order          ? 1
                    : p->capacity < CK_DISTINCT_MEMBERS_MAX ? p->capacity
                                                            : CK_DISTINCT_MEMBERS_MAX;
    ck_distinct_member *members = ck_arena_array(p->arena, most, sizeof *members);
    if (!columns || !types || !members) return ck_nomem(err, p->arena->mem, most * sizeof *members);
    for (uint32_t i = 0; i < own; i++) {
        uint32_t from = i < p->keys.count ? i : i + skip;
        columns[i] = p->side_keys.columns[from];
        types[i] = p->side_keys.types[from];
    }
    columns[n - 1] = (uint32_t)c->arg;
    types[n - 1] = p->input->fields[c->arg].type;
    p->distincts[p->distinct_count++] = (ck_distinct_plan){
        .arg_text = c->arg_text, .not_null = not_null, .members = members, .spec = {columns, types, n}};
    return CK_OK;
}

/* The lane of rows whose value is new (or gone) for this call. */
static ck_status distinct_of(ck_group_plan *p, const call *c, int64_t not_null, int64_t *set, uint32_t *lane,
                             ck_error *err) {
    uint32_t i = 0;
    for (; i < p->distinct_count; i++) {
        const ck_distinct_plan *d = &p->distincts[i];
        if (strcmp(d->arg_text, c->arg_text) != 0) continue;
        for (uint32_t m = 0; m < d->member_count; m++) {
            if (!same_text(d->members[m].filter_text, c->filter_text)) continue;
            *set = i, *lane = d->members[m].lane;
            return CK_OK;
        }
        if (!p->retract && !p->sets_in_order && d->member_count < CK_DISTINCT_MEMBERS_MAX) break;
    }
    if (i == p->distinct_count) CK_TRY(distinct_new(p, c, not_null, err));
    ck_distinct_plan *d = &p->distincts[i];
    *set = i;
    *lane = lane_of(p, (ck_lane_plan){-1, -1, i, d->member_count});
    d->members[d->member_count++] = (ck_distinct_member){c->filter, c->filter_text, *lane};
    return CK_OK;
}

/* "price", "DISTINCT price", both with " FILTER (price > 3)" behind. */
static const char *with_filter(ck_arena *a, const char *text, const char *filter_text) {
    return filter_text ? ck_arena_printf(a, "%s FILTER (%s)", text, filter_text) : text;
}

static const char *least_filter(const ck_distinct_plan *d) {
    const char *least = d->members[0].filter_text;
    for (uint32_t m = 1; least && m < d->member_count; m++) {
        const char *text = d->members[m].filter_text;
        if (!text || strcmp(text, least) < 0) least = text;
    }
    return least;
}

/* A BOOLEAN for each filter, by its text: calls may change places, and go, without any of them being taken for another.
 */
static ck_status plan_members(ck_group_plan *p, const ck_distinct_plan *d, ck_slot_schema *s, ck_error *err) {
    ck_field *fields = ck_arena_array(p->arena, d->member_count, sizeof *fields);
    if (!fields) return ck_nomem(err, p->arena->mem, d->member_count * sizeof *fields);
    for (uint32_t m = 0; m < d->member_count; m++) {
        const char *text = d->members[m].filter_text;
        fields[m] = (ck_field){text ? ck_name_cut(p->arena, text) : "*", ck_type_simple(CK_TYPE_BOOLEAN), false};
        if (!fields[m].name) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
    }
    s->values = fields, s->value_count = d->member_count;
    return CK_OK;
}

/* All members are known: what goes in, and the slot. It has the name that the set of one of them would have alone, so
 * that state kept by a set for each filter is refused, not passed over. */
static ck_status plan_set(ck_group_plan *p, ck_distinct_plan *d, ck_error *err) {
    bool shared = d->member_count > 1;
    ck_order_field *order = CK_ARENA_NEW(p->arena, ck_order_field);
    const char *name = with_filter(p->arena, d->arg_text, least_filter(d));
    const char *slot = name ? ck_slot_name(p->arena, "distinct:", name, err) : NULL;
    if (!order || !slot) return ck_nomem(err, p->arena->mem, sizeof *order);
    order->field = (ck_field){"value", d->spec.types[d->spec.count - 1], false};
    ck_slot_schema *s =
        ck_acc_side_slot(p->arena, slot, shared ? "distinct_filters" : "distinct_set", &p->scope, order, 1, "count");
    if (!s) return ck_nomem(err, p->arena->mem, sizeof *s);
    s->hashed = p->scope.within_count == 0;
    s->bucketed = p->scope.within_count > 0 && !p->sets_in_order;
    if (shared) CK_TRY(plan_members(p, d, s, err));
    if (!p->retract && !shared) s->value_count = 0;
    d->lane = lane_of(p, (ck_lane_plan){shared ? -1 : d->members[0].filter, d->not_null, -1, 0});
    d->slot = s;
    return CK_OK;
}

static ck_acc *acc_find(const ck_group_plan *p, const char *field) {
    for (uint32_t i = 0; i < p->acc_count; i++)
        if (strcmp(p->accs[i]->field, field) == 0) return p->accs[i];
    return NULL;
}

/* Columns that values are in order of: those asked for, and the value, which is last unless it is one of them. */
static ck_status order_by(ck_group_plan *p, const call *c, bool keeps_nulls, ck_acc *acc, ck_error *err) {
    ck_order_spec *by = ck_arena_array(p->arena, c->order_count + 1u, sizeof *by);
    if (!by) return ck_nomem(err, p->arena->mem, c->order_count * sizeof *by);
    uint32_t n = c->order_count;
    acc->value_at = n;
    for (uint32_t i = 0; i < n; i++) {
        by[i] = c->order[i];
        if (by[i].column == (uint32_t)c->arg && acc->value_at == n) acc->value_at = i;
    }
    if (acc->value_at == n) by[n++] = (ck_order_spec){(uint32_t)c->arg, acc->arg_type, false, false, false};
    by[acc->value_at].nullable = keeps_nulls && p->input->fields[c->arg].nullable;
    acc->by = by, acc->by_count = n;
    acc->order_text = c->order_text;
    return CK_OK;
}

static bool is_of_order(const char *name) {
    return strcmp(name, "ordered") == 0 || strcmp(name, "first") == 0 || strcmp(name, "last") == 0;
}

static ck_status acc_of(ck_group_plan *p, const call *c, const char *name, const struct ck_plugin_aggregate *plugin,
                        bool takes_arg, ck_acc **out, ck_error *err) {
    ck_arena *a = p->arena;
    bool star = strcmp(name, "count_star") == 0, in_order = is_of_order(name);
    bool distinct = c->distinct && takes_arg && !in_order, keeps_nulls = in_order && !c->ignores_nulls;
    const char *order = in_order && c->order_text ? c->order_text : NULL;
    const char *head = ck_arena_printf(a, "%s(%s%s%s%s%s)", star ? "count" : name, distinct ? "DISTINCT " : "",
                                       takes_arg ? c->arg_text : "*", order ? " ORDER BY " : "", order ? order : "",
                                       keeps_nulls ? " NULLS" : "");
    const char *field = head ? ck_name_cut(a, with_filter(a, head, c->filter_text)) : NULL;
    const char *set_name = takes_arg ? with_filter(a, c->arg_text, c->filter_text) : "";
    if (!field || !set_name) return ck_nomem(err, a->mem, CK_NAME_BYTES_MAX);
    if ((*out = acc_find(p, field))) return CK_OK;

    ck_acc *acc = CK_ARENA_NEW(a, ck_acc);
    if (!acc) return ck_nomem(err, a->mem, sizeof *acc);
    *acc = (ck_acc){.name = name,
                    .field = field,
                    .set_name = set_name,
                    .arg = takes_arg ? c->arg : -1,
                    .filter = c->filter,
                    .distinct = -1,
                    .plugin = plugin,
                    .retract = p->retract};
    if (takes_arg) acc->arg_type = p->input->fields[c->arg].type;
    int64_t not_null = takes_arg && p->input->fields[c->arg].nullable && !keeps_nulls ? c->arg : -1;
    if (distinct)
        CK_TRY(distinct_of(p, c, not_null, &acc->distinct, &acc->lane, err));
    else
        acc->lane = lane_of(p, (ck_lane_plan){c->filter, not_null, -1, 0});
    if (in_order) CK_TRY(order_by(p, c, keeps_nulls, acc, err));
    if (p->retract && takes_arg && !in_order && !plugin && strcmp(name, "count") != 0 && strcmp(name, "moments") != 0) {
        bool rows = not_null < 0 && !distinct; /* as many as rows */
        CK_TRY(acc_of(p, c, rows ? "count_star" : "count", NULL, !rows, &acc->non_null, err));
    }
    CK_TRY(ck_acc_plan(acc, a, &p->scope, err));
    for (uint32_t i = 0; acc->side && i < p->acc_count; i++)
        if (p->accs[i]->side && strcmp(p->accs[i]->side->slot, acc->side->slot) == 0) acc->shares_side = true;
    p->accs[p->acc_count++] = acc;
    *out = acc;
    return CK_OK;
}

/* What the values are in order of. */
static ck_status read_order(ck_group_plan *p, const ck_op_spec *spec, yyjson_val *v, call *c, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(v, "order"), *o;
    size_t i, n = yyjson_arr_size(list);
    if (!list) return CK_OK;
    if (!yyjson_is_arr(list) || n >= CK_ACC_ORDER_MAX)
        return ck_fail(err, CK_INVALID, "%s (%s): the order of an aggregate is an array of at most %d columns",
                       spec->type, spec->uid, CK_ACC_ORDER_MAX - 1);
    c->order = ck_arena_array(p->arena, n + 1, sizeof *c->order);
    if (!c->order) return ck_nomem(err, p->arena->mem, n * sizeof *c->order);
    yyjson_arr_foreach(list, i, n, o) {
        int64_t column;
        CK_TRY(ck_params_column(spec, o, "col", &column, err));
        if (column < 0) return ck_fail(err, CK_INVALID, "%s (%s): an order has no column", spec->type, spec->uid);
        const ck_field *f = &p->input->fields[column];
        c->order[c->order_count++] =
            (ck_order_spec){(uint32_t)column, f->type, f->nullable, yyjson_get_bool(yyjson_obj_get(o, "desc")),
                            yyjson_get_bool(yyjson_obj_get(o, "nulls_first"))};
    }
    return CK_OK;
}

static ck_status read_constant(const ck_op_spec *spec, yyjson_val *v, call *c, ck_error *err) {
    yyjson_val *separator = yyjson_obj_get(v, "separator"), *fraction = yyjson_obj_get(v, "fraction");
    c->separator = CK_VIEW(",");
    c->fraction = 0.5;
    if (separator && !yyjson_is_str(separator))
        return ck_fail(err, CK_INVALID, "%s (%s): a separator is a text", spec->type, spec->uid);
    if (separator) c->separator = (ck_view){yyjson_get_str(separator), yyjson_get_len(separator)};
    if (!fraction) return CK_OK;
    c->fraction = yyjson_get_num(fraction);
    if (yyjson_is_num(fraction) && c->fraction >= 0 && c->fraction <= 1) return CK_OK;
    return ck_fail(err, CK_INVALID, "%s (%s): a fraction is a number from 0 to 1", spec->type, spec->uid);
}

static ck_status read_call(ck_group_plan *p, const ck_op_spec *spec, yyjson_val *v, call *c, ck_error *err) {
    static const char *const wanted = "objects of fn, arg, filter, distinct, arg_text, filter_text";
    if (!yyjson_is_obj(v))
        return ck_fail(err, CK_INVALID, "%s (%s): aggregates must be %s", spec->type, spec->uid, wanted);
    yyjson_val *distinct = yyjson_obj_get(v, "distinct");
    CK_TRY(ck_params_text(spec, v, "fn", &c->fn, err));
    CK_TRY(ck_params_column(spec, v, "arg", &c->arg, err));
    CK_TRY(ck_params_column(spec, v, "filter", &c->filter, err));
    CK_TRY(ck_params_text(spec, v, "arg_text", &c->arg_text, err));
    CK_TRY(ck_params_text(spec, v, "filter_text", &c->filter_text, err));
    CK_TRY(ck_params_text(spec, v, "order_text", &c->order_text, err));
    c->distinct = yyjson_get_bool(distinct);
    c->ignores_nulls = yyjson_get_bool(yyjson_obj_get(v, "ignore_nulls"));
    if (!c->fn || (distinct && !yyjson_is_bool(distinct)) || (c->arg >= 0) != (c->arg_text != NULL) ||
        (c->filter >= 0) != (c->filter_text != NULL) || (c->distinct && c->arg < 0))
        return ck_fail(err, CK_INVALID, "%s (%s): aggregates must be %s", spec->type, spec->uid, wanted);
    if (c->filter >= 0 && ck_type_phys(spec->inputs[0].schema->fields[c->filter].type) != CK_PHYS_BOOL)
        return ck_fail(err, CK_INVALID, "%s (%s): filter column %lld is not BOOLEAN", spec->type, spec->uid,
                       (long long)c->filter);
    CK_TRY(read_order(p, spec, v, c, err));
    return read_constant(spec, v, c, err);
}

/* How many parts a finish takes. */
static bool finish_of(const char *name, ck_finish *out, uint32_t *parts) {
    static const char *const names[] = {
        "first",  "avg",  "var_pop",     "var_samp",   "stddev_pop",      "stddev_samp",     "distinct_estimate",
        "concat", "list", "first_value", "last_value", "percentile_cont", "percentile_disc", "approx_percentile"};
    for (uint32_t i = 0; i < CK_ARRAY_COUNT(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (ck_finish)i;
        *parts = i == CK_FINISH_AVG ? 2 : 1;
        return true;
    }
    return false;
}

static ck_status plan_result(ck_group_plan *p, const ck_op_spec *spec, call *c, ck_result *r, ck_error *err) {
    const ck_aggregate *fn = ck_library_aggregate(ck_spec_library(spec), c->fn);
    if (!fn) return ck_fail(err, CK_INVALID, "%s (%s): there is no aggregate \"%s\"", spec->type, spec->uid, c->fn);
    const ck_field *arg = c->arg >= 0 ? &p->input->fields[c->arg] : NULL;
    ck_bound_aggregate bound = {0};
    /* A count of values that cannot be NULL binds as COUNT(*), which is no count of different values. */
    bool nullable = arg && (arg->nullable || c->distinct);
    CK_TRY(ck_aggregate_bind(fn, p->arena, arg ? arg->type : NULL, nullable, &bound, err));
    const ck_type *takes = bound.of ? bound.of_type : bound.argument_type;
    if (arg && takes && !ck_type_eq(arg->type, takes))
        return ck_fail(err, CK_INVALID, "%s (%s): %s takes %s, its column is %s", spec->type, spec->uid, c->fn,
                       ck_type_name(p->arena, takes), ck_type_name(p->arena, arg->type));
    if (!fn->distinct_matters) c->distinct = false;
    if (!fn->keeps_nulls) c->ignores_nulls = true;
    uint32_t parts;
    if (!finish_of(bound.finish, &r->finish, &parts) || bound.part_count != parts)
        return ck_fail(err, CK_INVALID, "%s (%s): how %s is finished (\"%s\") is not known", spec->type, spec->uid,
                       c->fn, bound.finish);
    for (uint32_t i = 0; i < bound.part_count; i++) {
        const char *name = bound.parts[i].accumulator;
        if (r->finish == CK_FINISH_FIRST_VALUE && !p->retract) name = "first";
        if (r->finish == CK_FINISH_LAST_VALUE && !p->retract) name = "last";
        CK_TRY(acc_of(p, c, name, bound.plugin, bound.parts[i].takes_argument, &r->parts[i], err));
    }
    r->distinct = c->distinct, r->separator = c->separator, r->fraction = c->fraction;
    if (r->finish == CK_FINISH_AVG &&
        strcmp(r->parts[0]->name, "count") == 0) { /* the sum first, whatever the table's order */
        ck_acc *count = r->parts[0];
        r->parts[0] = r->parts[1];
        r->parts[1] = count;
    }
    r->type = bound.type;
    r->nullable = bound.nullable;
    const char *head = ck_arena_printf(p->arena, "%s(%s%s)", fn->name, c->distinct ? "DISTINCT " : "",
                                       c->arg_text ? c->arg_text : "*");
    r->text = head ? with_filter(p->arena, head, c->filter_text) : NULL;
    return r->text ? CK_OK : ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
}

/* The keys, with the scope's columns behind them. */
static ck_status plan_keys(ck_group_plan *p, const ck_op_spec *spec, yyjson_val *root, const ck_order_field *within,
                           const uint32_t *within_columns, uint32_t within_count, ck_error *err) {
    uint32_t *keys, count;
    CK_TRY(ck_params_columns(p->arena, spec, root, "keys", &keys, &count, err));
    uint32_t all = count + within_count;
    uint32_t *columns = ck_arena_array(p->arena, all + 1u, sizeof *columns);
    const ck_type **types = ck_arena_array(p->arena, all + 1u, sizeof(ck_type *));
    ck_field *partition = ck_arena_array(p->arena, count + 1u, sizeof *partition);
    uint32_t *own = ck_arena_array(p->arena, all + 1u, sizeof *own);
    if (!columns || !types || !partition || !own) return ck_nomem(err, p->arena->mem, all * sizeof *partition);
    for (uint32_t i = 0; i < all; i++) {
        columns[i] = i < count ? keys[i] : within_columns[i - count];
        types[i] = i < count ? p->input->fields[keys[i]].type : within[i - count].field.type;
        own[i] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        partition[i] = p->input->fields[keys[i]];
        for (uint32_t k = 0; k < i; k++) { /* two inputs of a join may both have an "id" */
            if (strcmp(partition[k].name, partition[i].name) != 0) continue;
            partition[i].name = ck_arena_printf(p->arena, "%s_%u", partition[i].name, i + 1);
            if (!partition[i].name) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
            k = UINT32_MAX; /* compare the new name from the start */
        }
    }
    p->keys = (ck_key_spec){columns, types, count};
    p->own_keys = (ck_key_spec){own, types, count};
    p->side_keys = (ck_key_spec){columns, types, all};
    p->own_side_keys = (ck_key_spec){own, types, all};
    p->partition = partition;
    p->scope = (ck_acc_scope){partition, count, within, within_count, p->ttl_us};
    return CK_OK;
}

static ck_status plan_slot(ck_group_plan *p, ck_error *err) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->acc_count; i++) {
        p->accs[i]->first_field = count;
        count += p->accs[i]->field_count;
    }
    ck_field *fields = ck_arena_array(p->arena, count + 1, sizeof *fields);
    if (!fields) return ck_nomem(err, p->arena->mem, count * sizeof *fields);
    for (uint32_t i = 0; i < p->acc_count; i++)
        memcpy(fields + p->accs[i]->first_field, p->accs[i]->fields, p->accs[i]->field_count * sizeof *fields);
    p->slot = (ck_slot_schema){.slot = "agg",
                               .state_type = "group_agg",
                               .version = 1,
                               .mode = CK_SLOT_KEYED,
                               .partition = p->partition,
                               .partition_count = p->keys.count,
                               .values = fields,
                               .value_count = count,
                               .ttl_us = p->ttl_us};
    return CK_OK;
}

static ck_status check_output(const ck_group_plan *p, const ck_op_spec *spec, ck_error *err) {
    const ck_schema *s = spec->schema;
    bool same = s && s->field_count == p->keys.count + p->result_count;
    for (uint32_t i = 0; same && i < s->field_count; i++) {
        const ck_type *t = i < p->keys.count ? p->keys.types[i] : p->results[i - p->keys.count].type;
        same = ck_type_eq(s->fields[i].type, t);
    }
    return same ? CK_OK
                : ck_fail(err, CK_INVALID, "%s (%s): its output is not its keys followed by its aggregates", spec->type,
                          spec->uid);
}

static ck_status make_within(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec, yyjson_val *root,
                             const ck_order_field *within, const uint32_t *within_columns, uint32_t within_count,
                             bool sets_in_order, const ck_group_plan *sets_of, ck_error *err) {
    yyjson_val *v;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    *p = (ck_group_plan){.arena = arena, .input = spec->inputs[0].schema};
    p->retract = spec->inputs[0].mode == CK_MODE_RETRACT;
    p->sets_in_order = sets_in_order;
    p->final = spec->final;
    CK_TRY(ck_op_ttl_read(spec, root, "ttl_us", &p->ttl, &p->ttl_us, err));
    CK_TRY(plan_keys(p, spec, root, within, within_columns, within_count, err));
    yyjson_val *list = yyjson_obj_get(root, "aggregates");
    if (!yyjson_is_arr(list))
        return ck_fail(err, CK_INVALID, "%s (%s): parameter \"aggregates\" must be an array", spec->type, spec->uid);
    size_t i, n = yyjson_arr_size(list);
    /* An aggregate has at most two parts, each with a count beside it and two lanes. */
    p->capacity = (uint32_t)(4 * n + 2);
    p->lanes = ck_arena_array(arena, 2u * p->capacity, sizeof *p->lanes);
    p->distincts = ck_arena_array(arena, p->capacity, sizeof *p->distincts);
    p->accs = ck_arena_array(arena, p->capacity, sizeof(ck_acc *));
    p->results = ck_arena_array(arena, n + 1, sizeof *p->results);
    if (!p->lanes || !p->distincts || !p->accs || !p->results)
        return ck_nomem(err, arena->mem, p->capacity * sizeof *p->distincts);
    if (p->retract) {
        call star = {.fn = "count", .arg = -1, .filter = -1};
        CK_TRY(acc_of(p, &star, "count_star", NULL, false, &p->row_count, err));
    }
    yyjson_arr_foreach(list, i, n, v) {
        call c = {0};
        if (sets_of && !ck_result_is_of_set(&sets_of->results[i])) continue;
        CK_TRY(read_call(p, spec, v, &c, err));
        CK_TRY(plan_result(p, spec, &c, &p->results[p->result_count], err));
        p->result_count++;
    }
    for (uint32_t k = 0; k < p->distinct_count; k++) CK_TRY(plan_set(p, &p->distincts[k], err));
    return plan_slot(p, err);
}

ck_status ck_group_plan_make_within(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec, struct yyjson_val *root,
                                    const ck_order_field *within, const uint32_t *within_columns, uint32_t within_count,
                                    bool sets_in_order, ck_error *err) {
    return make_within(p, arena, spec, root, within, within_columns, within_count, sets_in_order, NULL, err);
}

ck_status ck_group_plan_make_sets(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec, struct yyjson_val *root,
                                  const ck_order_field *within, const uint32_t *within_columns, uint32_t within_count,
                                  const ck_group_plan *of, ck_error *err) {
    return make_within(p, arena, spec, root, within, within_columns, within_count, false, of, err);
}

ck_status ck_group_plan_make(ck_group_plan *p, ck_arena *arena, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"keys", "aggregates", "ttl_us", "ttl_time", NULL};
    yyjson_val *root;
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(arena, spec, known, &root, err));
    CK_TRY(ck_group_plan_make_within(p, arena, spec, root, NULL, NULL, 0, false, err));
    return check_output(p, spec, err);
}

ck_status ck_group_plan_slots(const ck_group_plan *p, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                              ck_error *err) {
    ck_slot_schema *s = ck_arena_array(a, 1u + p->distinct_count + p->acc_count, sizeof *s);
    if (!s) return ck_nomem(err, a->mem, (1u + p->distinct_count + p->acc_count) * sizeof *s);
    *slots = s;
    *count = 0;
    s[(*count)++] = p->slot;
    for (uint32_t i = 0; i < p->distinct_count; i++) s[(*count)++] = *p->distincts[i].slot;
    for (uint32_t i = 0; i < p->acc_count; i++)
        if (p->accs[i]->side && !p->accs[i]->shares_side) s[(*count)++] = *p->accs[i]->side;
    return CK_OK;
}
