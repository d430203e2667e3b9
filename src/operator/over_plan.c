/* From parameters to what OVER keeps and how. */
#include <stdlib.h>
#include <yyjson.h>

#include "operator/over_int.h"

enum { LAGS_TOLD = 16 };

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *what) {
    return ck_fail(err, CK_INVALID, "%s (%s): %s", spec->type, spec->uid, what);
}

/* ---- the order ---- */

static bool in_keys(const ck_over_plan *p, uint32_t column) {
    for (uint32_t i = 0; i < p->keys.count; i++)
        if (p->keys.columns[i] == column) return true;
    return false;
}

static ck_status read_by(ck_over_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    static const char *const names[] = {"event", "processing", "end"};
    const char *name;
    CK_TRY(ck_params_text(spec, root, "by", &name, err));
    for (uint32_t i = 0; name && i < CK_ARRAY_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            p->by = (ck_over_by)i;
            return CK_OK;
        }
    return bad(spec, err, "parameter \"by\" must be event, processing or end");
}

static ck_status time_of(ck_over_plan *p, const ck_op_spec *spec, const ck_top_key *keys, uint32_t count,
                         ck_error *err) {
    if (p->by != CK_OVER_EVENT_TIME) return CK_OK;
    ck_kind k = count ? p->input->fields[keys[0].column].type->kind : CK_TYPE_NULL;
    if (count == 0 || keys[0].descending ||
        (k != CK_TYPE_TIMESTAMP && k != CK_TYPE_TIMESTAMP_LTZ && k != CK_TYPE_BIGINT))
        return bad(spec, err, "by event time its first order column is a TIMESTAMP or BIGINT, ascending");
    p->time.time = keys[0].column;
    p->time.millis = k == CK_TYPE_BIGINT;
    return CK_OK;
}

static ck_status read_order(ck_over_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    ck_top_key *keys;
    uint32_t count, without = 0;
    uint32_t *known = ck_arena_array(p->arena, p->keys.count + 1u, sizeof *known);
    yyjson_val *desc = yyjson_obj_get(root, "ties_desc");
    CK_TRY(ck_top_read_keys(p->arena, spec, root, "order", &keys, &count, err));
    CK_TRY(time_of(p, spec, keys, count, err));
    if (p->by == CK_OVER_PROCESSING_TIME && count) return bad(spec, err, "by processing time it has no order columns");
    if (!known) return ck_nomem(err, p->arena->mem, p->keys.count * sizeof *known);
    for (uint32_t i = 0; i < p->keys.count; i++)
        if (p->by != CK_OVER_EVENT_TIME || p->keys.columns[i] != p->time.time) known[without++] = p->keys.columns[i];
    if (ck_top_total_order(p->arena, p->input, keys, count, known, without, &p->order, &p->order_count,
                           &p->peer_count) != CK_OK)
        return ck_nomem(err, p->arena->mem, p->input->field_count * sizeof *p->order);
    uint32_t peers = p->peer_count;
    if (p->by == CK_OVER_EVENT_TIME) p->order[0].nullable = false;         /* rows without a time are not taken */
    if (yyjson_get_bool(yyjson_obj_get(root, "whole"))) p->peer_count = 0; /* all rows of a key are one place */
    for (uint32_t i = peers; yyjson_get_bool(desc) && i < p->order_count; i++) p->order[i].descending = true;
    return CK_OK;
}

/* ---- the slots ---- */

static ck_field field_of(const ck_schema *s, uint32_t column) {
    ck_field f = s->fields[column];
    f.nullable = f.nullable || f.type->kind == CK_TYPE_NULL;
    return f;
}

static ck_status plan_keys(ck_over_plan *p, ck_field **partition, ck_error *err) {
    uint32_t n = p->keys.count;
    const ck_type **types = ck_arena_array(p->arena, n + 1u, sizeof(ck_type *));
    uint32_t *own = ck_arena_array(p->arena, n + 1u, sizeof *own);
    *partition = ck_arena_array(p->arena, n + 1u, sizeof **partition);
    if (!types || !own || !*partition) return ck_nomem(err, p->arena->mem, n * sizeof **partition);
    for (uint32_t i = 0; i < n; i++) {
        (*partition)[i] = field_of(p->input, p->keys.columns[i]);
        (*partition)[i].name = ck_arena_printf(p->arena, "key_%u", i + 1);
        if (!(*partition)[i].name) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
        types[i] = (*partition)[i].type;
        own[i] = i;
        p->field_of[p->keys.columns[i]] = i;
    }
    p->keys.types = types;
    p->own_keys = (ck_key_spec){own, types, n};
    return CK_OK;
}

static ck_status named(ck_over_plan *p, uint32_t column, ck_field *out) {
    *out = field_of(p->input, column);
    out->name = ck_arena_printf(p->arena, "%u_%s", column, p->input->fields[column].name);
    return out->name ? CK_OK : CK_NOMEM;
}

/* By processing time rows stand as they came; else all columns are the order. */
static ck_status plan_rows(ck_over_plan *p, const ck_field *partition, ck_error *err) {
    uint32_t width = p->input->field_count, keys = p->keys.count, n = 0;
    bool arrival = p->by == CK_OVER_PROCESSING_TIME;
    ck_order_field *order = ck_arena_array(p->arena, width + 2u, sizeof *order);
    ck_field *values = ck_arena_array(p->arena, width + 1u, sizeof *values);
    p->values = ck_arena_array(p->arena, width + 1u, sizeof *p->values);
    if (!order || !values || !p->values) return ck_nomem(err, p->arena->mem, width * sizeof *order);
    if (arrival) order[n++] = (ck_order_field){.field = {"#time", ck_type_simple(CK_TYPE_BIGINT), false}};
    for (uint32_t i = 0; !arrival && i < p->order_count; i++) {
        ck_order_field *f = &order[n];
        if (named(p, p->order[i].column, &f->field) != CK_OK) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
        f->field.nullable = p->order[i].nullable;
        f->descending = p->order[i].descending;
        f->nulls_first = p->order[i].nulls_first;
        p->field_of[p->order[i].column] = keys + n++;
    }
    order[n++] = (ck_order_field){.field = {"#", ck_type_simple(CK_TYPE_BIGINT), false}};
    for (uint32_t c = 0; arrival && c < width; c++) {
        if (in_keys(p, c)) continue;
        if (named(p, c, &values[p->value_count]) != CK_OK) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
        p->field_of[c] = keys + n + p->value_count;
        p->values[p->value_count++] = c;
    }
    p->rows = (ck_slot_schema){.slot = "rows",
                               .state_type = "over_rows",
                               .version = 1,
                               .mode = CK_SLOT_KEYED,
                               .partition = partition,
                               .partition_count = keys,
                               .order = order,
                               .order_count = n,
                               .values = values,
                               .value_count = p->value_count};
    return CK_OK;
}

static ck_status total_fields(ck_over_plan *p, ck_over_total *t, ck_field *out, uint32_t *count, ck_error *err) {
    static const char *const parts[] = {"count", "sum", "", "nan", "inf", "-inf"};
    const ck_type *big = ck_type_simple(CK_TYPE_BIGINT), *real = ck_type_simple(CK_TYPE_DOUBLE);
    const ck_type *wide = ck_type_decimal(p->arena, 38, t->phys == CK_PHYS_I128 ? t->type->scale : 0);
    const ck_type *types[6] = {big};
    uint32_t n = 1;
    t->field_count = 0;
    if (!wide) return ck_nomem(err, p->arena->mem, sizeof *wide);
    if (t->phys == CK_PHYS_I64 || t->phys == CK_PHYS_I128) types[n++] = wide;
    if (t->phys == CK_PHYS_I128) types[n++] = big;
    if (t->phys == CK_PHYS_F64) {
        types[1] = types[2] = real;
        types[3] = types[4] = types[5] = big;
        n = 6;
    }
    t->first_field = *count;
    for (uint32_t i = 0; i < n; i++) {
        const char *part = i == 2 ? (t->phys == CK_PHYS_I128 ? "carry" : "rest") : parts[i];
        const char *name = ck_arena_printf(p->arena, "%s(%s)", part, t->text);
        if (!name || !(name = ck_name_cut(p->arena, name))) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
        out[(*count)++] = (ck_field){name, types[i], false};
        t->field_count++;
    }
    return CK_OK;
}

static ck_status plan_keyed(ck_over_plan *p, const ck_field *partition, ck_error *err) {
    static const char *const names[] = {"#until", "#held", "#left", "#seen", "#groups"};
    uint32_t count = CK_OVER_FIELDS;
    ck_field *fields = ck_arena_array(p->arena, CK_OVER_FIELDS + 6u * p->total_count, sizeof *fields);
    if (!fields) return ck_nomem(err, p->arena->mem, p->total_count * sizeof *fields);
    for (uint32_t i = 0; i < CK_OVER_FIELDS; i++)
        fields[i] = (ck_field){names[i], ck_type_simple(CK_TYPE_BIGINT), false};
    for (uint32_t i = 0; i < p->total_count; i++) CK_TRY(total_fields(p, &p->totals[i], fields, &count, err));
    p->keyed = (ck_slot_schema){.slot = "over",
                                .state_type = "over",
                                .version = 1,
                                .mode = CK_SLOT_KEYED,
                                .partition = partition,
                                .partition_count = p->keys.count,
                                .values = fields,
                                .value_count = count};
    return CK_OK;
}

/* ---- the calls ---- */

static const char *const fn_names[] = {"count", "sum", "avg",         "row_number", "rank", "dense_rank",
                                       "min",   "max", "first_value", "last_value", "lag"};

static uint32_t total_of(ck_over_plan *p, int64_t arg, const char *text, bool sums) {
    const ck_type *type = arg >= 0 ? p->input->fields[arg].type : NULL;
    ck_phys phys = sums ? ck_type_phys(type) : CK_PHYS_NULL;
    for (uint32_t i = 0; i < p->total_count; i++) {
        if (p->totals[i].arg != arg) continue;
        if (sums) p->totals[i].phys = phys, p->totals[i].type = type;
        return i;
    }
    p->totals[p->total_count] = (ck_over_total){.arg = arg, .phys = phys, .type = type, .text = text};
    return p->total_count++;
}

static ck_status result_type(ck_over_plan *p, const ck_op_spec *spec, ck_over_call *c, ck_error *err) {
    if (c->fn >= CK_OVER_ROW_NUMBER && c->fn <= CK_OVER_DENSE_RANK) {
        c->type = ck_type_simple(CK_TYPE_BIGINT);
        return c->arg < 0 ? CK_OK : bad(spec, err, "a rank takes no argument");
    }
    const ck_field *arg = c->arg >= 0 ? &p->input->fields[c->arg] : NULL;
    if (!arg && c->fn != CK_OVER_COUNT) return bad(spec, err, "one of its calls lacks an argument");
    if (c->fn >= CK_OVER_FIRST_VALUE) {
        c->type = arg->type;
        return CK_OK;
    }
    ck_bound_aggregate bound = {0};
    CK_TRY(ck_aggregate_find(fn_names[c->fn])->bind(p->arena, arg ? arg->type : NULL, true, &bound, err));
    c->type = bound.type;
    bool fits = !arg || !bound.argument_type || ck_type_eq(arg->type, bound.argument_type);
    return fits ? CK_OK : bad(spec, err, "an argument has another type than its call takes");
}

static ck_status read_call(ck_over_plan *p, const ck_op_spec *spec, yyjson_val *v, ck_over_call *c, ck_error *err) {
    const char *fn, *arg_text;
    uint64_t offset;
    bool has;
    uint32_t i = 0;
    if (!yyjson_is_obj(v)) return bad(spec, err, "calls must be objects of fn, arg, arg_text, offset");
    CK_TRY(ck_params_text(spec, v, "fn", &fn, err));
    CK_TRY(ck_params_text(spec, v, "arg_text", &arg_text, err));
    CK_TRY(ck_params_column(spec, v, "arg", &c->arg, err));
    CK_TRY(ck_params_u64(spec, v, "offset", &offset, &has, err));
    while (fn && i < CK_ARRAY_COUNT(fn_names) && strcmp(fn, fn_names[i]) != 0) i++;
    if (!fn || i == CK_ARRAY_COUNT(fn_names) || (c->arg >= 0) != (arg_text != NULL))
        return bad(spec, err, "calls must be objects of a known fn, arg, arg_text, offset");
    c->fn = (ck_over_fn)i;
    c->offset = c->fn == CK_OVER_LAG ? (has ? offset : 1) : 0;
    CK_TRY(result_type(p, spec, c, err));
    c->text = ck_arena_printf(p->arena, "%s(%s)", fn, arg_text ? arg_text : c->fn == CK_OVER_COUNT ? "*" : "");
    if (!c->text) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
    c->total = c->pick = UINT32_MAX;
    if (c->fn <= CK_OVER_AVG) c->total = total_of(p, c->arg, arg_text ? arg_text : "*", c->fn != CK_OVER_COUNT);
    if (c->fn >= CK_OVER_MIN) c->pick = p->pick_count++;
    return CK_OK;
}

static void what_is_used(ck_over_plan *p) {
    for (uint32_t i = 0; i < p->call_count; i++) {
        const ck_over_call *c = &p->calls[i];
        bool extreme = c->fn == CK_OVER_MIN || c->fn == CK_OVER_MAX;
        if (c->offset > p->lag) p->lag = c->offset;
        p->uses_frame |= c->fn <= CK_OVER_AVG || extreme || c->fn == CK_OVER_FIRST_VALUE;
        p->uses_past |= extreme || c->fn == CK_OVER_LAG || (c->fn == CK_OVER_FIRST_VALUE && !p->bounded);
        p->keeps_numbers |=
            (c->fn <= CK_OVER_AVG && !p->bounded) || (c->fn >= CK_OVER_ROW_NUMBER && c->fn <= CK_OVER_DENSE_RANK);
        p->has_first |= c->fn == CK_OVER_FIRST_VALUE;
    }
    if (!p->uses_frame) p->bounded = false; /* no frame to keep rows for */
}

static int by_text(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

/* Which rows stay once they have been said, as a list: those of LAG (each by itself, where they are few: who looks less
 * far back goes on), and of MIN, MAX and FIRST_VALUE the ones that matter. */
static ck_status say_what_is_kept(ck_over_plan *p, ck_error *err) {
    const char **texts = ck_arena_array(p->arena, p->call_count + 1u, sizeof *texts);
    const char *kept = "for sums";
    uint32_t n = 0;
    for (uint64_t i = 1; kept && i <= p->lag && i <= LAGS_TOLD; i++)
        kept = ck_arena_printf(p->arena, "%s, LAG of %llu", kept, (unsigned long long)i);
    if (kept && p->lag > LAGS_TOLD)
        kept = ck_arena_printf(p->arena, "%s, LAG of %llu", kept, (unsigned long long)p->lag);
    for (uint32_t i = 0; texts && i < p->call_count; i++)
        if (p->calls[i].fn >= CK_OVER_MIN && p->calls[i].fn <= CK_OVER_FIRST_VALUE) texts[n++] = p->calls[i].text;
    if (texts && n > 1) qsort(texts, n, sizeof *texts, by_text);
    for (uint32_t i = 0; texts && kept && i < n; i++)
        if (i == 0 || strcmp(texts[i], texts[i - 1]) != 0) kept = ck_arena_printf(p->arena, "%s, %s", kept, texts[i]);
    if (!texts || !kept) return ck_nomem(err, p->arena->mem, CK_NAME_BYTES_MAX);
    p->rows.kept = kept;
    return CK_OK;
}

static ck_status read_calls(ck_over_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "calls"), *v;
    size_t i, n = yyjson_arr_size(list);
    if (!yyjson_is_arr(list) || n == 0) return bad(spec, err, "calls must be an array of one or more");
    p->calls = ck_arena_array(p->arena, n, sizeof *p->calls);
    p->totals = ck_arena_array(p->arena, n, sizeof *p->totals);
    if (!p->calls || !p->totals) return ck_nomem(err, p->arena->mem, n * sizeof *p->totals);
    yyjson_arr_foreach(list, i, n, v) CK_TRY(read_call(p, spec, v, &p->calls[p->call_count++], err));
    CK_TRY(ck_params_u64(spec, root, "limit", &p->limit, &(bool){false}, err));
    p->hide = yyjson_get_bool(yyjson_obj_get(root, "hide"));
    bool rank = p->calls[0].fn >= CK_OVER_ROW_NUMBER && p->calls[0].fn <= CK_OVER_DENSE_RANK;
    if ((p->limit || p->hide) && (!rank || p->call_count > 1 || p->by != CK_OVER_EVENT_TIME))
        return bad(spec, err, "limit and hide go with one rank by event time");
    what_is_used(p);
    return CK_OK;
}

static ck_status read_frame(ck_over_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    const char *unit;
    CK_TRY(ck_params_text(spec, root, "unit", &unit, err));
    CK_TRY(ck_params_u64(spec, root, "preceding", &p->preceding, &p->bounded, err));
    if (!unit || (strcmp(unit, "rows") != 0 && strcmp(unit, "range") != 0) || p->preceding > INT64_MAX / 4)
        return bad(spec, err, "its frame has a unit, rows or range, and preceding, a number or null");
    p->range = strcmp(unit, "range") == 0;
    p->groups = p->range && p->by != CK_OVER_PROCESSING_TIME; /* no two rows come at once */
    bool told =
        p->by == CK_OVER_PROCESSING_TIME || (p->peer_count == 1 && ck_type_phys(p->order[0].type) == CK_PHYS_I64);
    return !p->range || !p->bounded || told ? CK_OK : bad(spec, err, "a range is of one column of times or integers");
}

static ck_status check_output(const ck_over_plan *p, const ck_op_spec *spec, ck_error *err) {
    uint32_t width = p->input->field_count, first = p->hide ? 1 : 0;
    bool same = spec->schema && spec->schema->field_count == width + p->call_count - first;
    for (uint32_t i = 0; same && i < spec->schema->field_count; i++)
        same = ck_type_eq(spec->schema->fields[i].type,
                          i < width ? p->input->fields[i].type : p->calls[i - width + first].type);
    return same ? CK_OK : bad(spec, err, "its output is not its input's columns and its calls");
}

ck_status ck_over_plan_make(ck_over_plan *p, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"keys",  "order", "by",        "unit",  "preceding", "calls",
                                        "limit", "hide",  "ties_desc", "whole", "late",      NULL};
    yyjson_val *root;
    uint32_t *keys;
    ck_field *partition;
    *p = (ck_over_plan){.arena = a};
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT | 1u << CK_MODE_RETRACT, err));
    p->input = spec->inputs[0].schema;
    p->field_of = ck_arena_array(a, p->input->field_count + 1u, sizeof *p->field_of);
    if (!p->field_of) return ck_nomem(err, a->mem, p->input->field_count * sizeof *p->field_of);
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_params_columns(a, spec, root, "keys", &keys, &p->keys.count, err));
    p->keys.columns = keys;
    CK_TRY(read_by(p, spec, root, err));
    CK_TRY(read_order(p, spec, root, err));
    CK_TRY(read_frame(p, spec, root, err));
    CK_TRY(read_calls(p, spec, root, err));
    CK_TRY(ck_late_read(a, spec, root, "late", 0, &p->late, err));
    ck_late_timed_by(&p->late, p->time.time, p->time.millis);
    CK_TRY(plan_keys(p, &partition, err));
    CK_TRY(plan_rows(p, partition, err));
    CK_TRY(say_what_is_kept(p, err));
    CK_TRY(plan_keyed(p, partition, err));
    return check_output(p, spec, err);
}
