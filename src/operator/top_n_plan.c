/* From parameters to what a top-N keeps and how. */
#include "operator/top_n_int.h"

#include <yyjson.h>

static ck_status bad_keys(const ck_op_spec *spec, const char *member, ck_error *err) {
    return ck_fail(err, CK_INVALID,
                   "%s (%s): parameter \"%s\" must be an array of {\"col\", \"desc\", \"nulls_first\"} over the "
                   "input's columns",
                   spec->type, spec->uid, member);
}

static bool member_bool(yyjson_val *object, const char *name, bool *out) {
    yyjson_val *v = yyjson_obj_get(object, name);
    *out = yyjson_get_bool(v);
    return !v || yyjson_is_bool(v);
}

ck_status ck_top_read_keys(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                           ck_top_key **out, uint32_t *count, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, member), *v;
    if (!yyjson_is_arr(list)) return bad_keys(spec, member, err);
    size_t n = yyjson_arr_size(list), i;
    *out = ck_arena_array(a, n + 1, sizeof **out);
    if (!*out) return ck_nomem(err, a->mem, n * sizeof **out);
    yyjson_arr_foreach(list, i, n, v) {
        ck_top_key *k = &(*out)[i];
        int64_t column;
        if (!yyjson_is_obj(v)) return bad_keys(spec, member, err);
        CK_TRY(ck_params_column(spec, v, "col", &column, err));
        if (column < 0 || !member_bool(v, "desc", &k->descending) || !member_bool(v, "nulls_first", &k->nulls_first))
            return bad_keys(spec, member, err);
        k->column = (uint32_t)column;
    }
    *count = (uint32_t)n;
    return CK_OK;
}

/* ---- the order ---- */

static ck_order_spec order_of(const ck_schema *s, uint32_t column, bool descending, bool nulls_first) {
    const ck_field *f = &s->fields[column];
    bool nullable = f->nullable || f->type->kind == CK_TYPE_NULL;
    return (ck_order_spec){column, f->type, nullable, descending, nulls_first};
}

ck_status ck_top_total_order(ck_arena *a, const ck_schema *s, const ck_top_key *keys, uint32_t count,
                             const uint32_t *without, uint32_t without_count, ck_order_spec **out, uint32_t *out_count,
                             uint32_t *peers) {
    uint32_t n = 0;
    bool *used = ck_arena_array(a, s->field_count + 1u, sizeof *used);
    *out = ck_arena_array(a, s->field_count + 1u, sizeof **out);
    if (!used || !*out) return CK_NOMEM;
    for (uint32_t i = 0; i < without_count; i++) used[without[i]] = true;
    for (uint32_t i = 0; i < count; i++) {
        if (used[keys[i].column]) continue;
        used[keys[i].column] = true;
        (*out)[n++] = order_of(s, keys[i].column, keys[i].descending, keys[i].nulls_first);
    }
    *peers = n;
    for (uint32_t c = 0; c < s->field_count; c++)
        if (!used[c]) (*out)[n++] = order_of(s, c, false, false);
    *out_count = n;
    return CK_OK;
}

/* ---- the slot ---- */

static ck_field field_of(const ck_schema *s, uint32_t column) {
    ck_field f = s->fields[column];
    f.nullable = f.nullable || f.type->kind == CK_TYPE_NULL;
    return f;
}

static ck_status plan_keys(ck_top_plan *p) {
    uint32_t n = p->partition.count;
    const ck_type **types = ck_arena_array(p->arena, n + 1u, sizeof(ck_type *));
    uint32_t *own = ck_arena_array(p->arena, n + 1u, sizeof *own);
    ck_field *fields = ck_arena_array(p->arena, n + 1u, sizeof *fields);
    p->field_of = ck_arena_array(p->arena, p->input->field_count + 1u, sizeof *p->field_of);
    if (!types || !own || !fields || !p->field_of) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        fields[i] = field_of(p->input, p->partition.columns[i]);
        types[i] = fields[i].type;
        own[i] = i;
        p->field_of[p->partition.columns[i]] = i;
    }
    p->partition.types = types;
    p->own_partition = (ck_key_spec){own, types, n};
    p->slot = (ck_slot_schema){.version = 1, .mode = CK_SLOT_KEYED, .partition = fields, .partition_count = n};
    return CK_OK;
}

/* Rows in order, each with how often it is there. */
static ck_status plan_ranked(ck_top_plan *p) {
    if (p->order_count == 0) { /* rows of a partition are all equal; an order needs a column */
        p->order[p->order_count++] = order_of(p->input, 0, false, false);
    } else {
        for (uint32_t i = 0; i < p->order_count; i++) p->field_of[p->order[i].column] = p->partition.count + i;
    }
    ck_order_field *order = ck_arena_array(p->arena, p->order_count, sizeof *order);
    ck_field *count = CK_ARENA_NEW(p->arena, ck_field);
    if (!order || !count) return CK_NOMEM;
    for (uint32_t i = 0; i < p->order_count; i++)
        order[i] =
            (ck_order_field){field_of(p->input, p->order[i].column), p->order[i].descending, p->order[i].nulls_first};
    *count = (ck_field){"count", ck_type_simple(CK_TYPE_BIGINT), false};
    p->slot.slot = "rows";
    p->slot.state_type = "top_n";
    p->slot.order = order;
    p->slot.order_count = p->order_count;
    p->slot.values = count;
    p->slot.value_count = 1;
    return CK_OK;
}

static bool has_nested(const ck_schema *s) {
    for (uint32_t i = 0; i < s->field_count; i++)
        if (s->fields[i].type->field_count) return true;
    return false;
}

/* The columns that are not the key, order columns first: they are looked at most. */
static ck_status plan_first(ck_top_plan *p) {
    ck_field *values = ck_arena_array(p->arena, p->order_count + 1u, sizeof *values);
    if (!values) return CK_NOMEM;
    for (uint32_t i = 0; i < p->order_count; i++) {
        values[i] = field_of(p->input, p->order[i].column);
        p->field_of[p->order[i].column] = p->partition.count + i;
    }
    p->slot.slot = "row";
    p->slot.state_type = "top_1";
    p->slot.values = values;
    p->slot.value_count = p->order_count;
    return CK_OK;
}

static ck_status plan_output(ck_top_plan *p) {
    p->output = p->input;
    if (!p->rank_column) return CK_OK;
    uint32_t n = p->input->field_count;
    ck_schema *s = CK_ARENA_NEW(p->arena, ck_schema);
    ck_field *fields = ck_arena_array(p->arena, n + 1u, sizeof *fields);
    if (!s || !fields) return CK_NOMEM;
    if (n) memcpy(fields, p->input->fields, n * sizeof *fields);
    fields[n] = (ck_field){"rank", ck_type_simple(CK_TYPE_BIGINT), false};
    *s = (ck_schema){fields, n + 1};
    p->output = s;
    return CK_OK;
}

static ck_status finish(ck_top_plan *p, const ck_op_spec *spec, const ck_top_key *keys, uint32_t count, ck_error *err) {
    p->keep = p->limit > UINT64_MAX - p->offset ? UINT64_MAX : p->offset + p->limit;
    if (p->input->field_count == 0)
        return ck_fail(err, CK_INVALID, "%s (%s): its input has no columns to order rows by", spec->type, spec->uid);
    ck_status s = ck_top_total_order(p->arena, p->input, keys, count, p->partition.columns, p->partition.count,
                                     &p->order, &p->order_count, &p->peer_count);
    if (s == CK_OK) s = plan_keys(p);
    if (s == CK_OK) s = p->first ? plan_first(p) : plan_ranked(p);
    if (s == CK_OK) s = plan_output(p);
    return s == CK_OK ? CK_OK : ck_nomem(err, p->arena->mem, p->input->field_count * sizeof(ck_field));
}

/* ---- parameters ---- */

static ck_status read_rank(ck_top_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    static const char *const names[] = {"row_number", "rank", "dense_rank"};
    const char *name;
    CK_TRY(ck_params_text(spec, root, "rank", &name, err));
    for (uint32_t i = 0; name && i < CK_ARRAY_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            p->rank = (ck_top_rank)i;
            return CK_OK;
        }
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"rank\" must be row_number, rank or dense_rank", spec->type,
                   spec->uid);
}

/* "window_end": the column of the partition that says when its window is over. */
static ck_status read_window(ck_top_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    int64_t column;
    uint64_t lateness;
    bool has, fine = false;
    if (!yyjson_obj_get(root, "window_end")) return CK_OK;
    CK_TRY(ck_params_column(spec, root, "window_end", &column, err));
    CK_TRY(ck_params_u64(spec, root, "lateness_us", &lateness, &has, err));
    CK_TRY(ck_late_read(p->arena, spec, root, "late", 0, &p->late, err));
    ck_late_timed_by(&p->late, (uint32_t)column, false);
    for (uint32_t i = 0; i < p->partition.count; i++)
        fine = fine || (column == p->partition.columns[i] &&
                        ck_type_phys(p->input->fields[p->partition.columns[i]].type) == CK_PHYS_I64);
    if (!fine || lateness > (uint64_t)CK_EVENT_TIME_MAX || spec->final)
        return ck_fail(err, CK_INVALID,
                       "%s (%s): parameter \"window_end\" must be a time of the partition, and what is said once a "
                       "window is not final",
                       spec->type, spec->uid);
    p->windowed = true;
    p->at_end = !p->retract;
    p->window_end = (uint32_t)column;
    p->lateness_us = (int64_t)lateness;
    return CK_OK;
}

static ck_status check_output(const ck_top_plan *p, const ck_op_spec *spec, ck_error *err) {
    bool same = !spec->schema || spec->schema->field_count == p->output->field_count;
    for (uint32_t i = 0; spec->schema && same && i < p->output->field_count; i++)
        same = ck_type_eq(spec->schema->fields[i].type, p->output->fields[i].type);
    return same ? CK_OK
                : ck_fail(err, CK_INVALID, "%s (%s): its output is not the input's columns%s", spec->type, spec->uid,
                          p->rank_column ? " and the rank" : "");
}

ck_status ck_top_plan_make(ck_top_plan *p, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"partition", "order",    "limit",      "offset",      "rank", "rank_column",
                                        "ttl_us",    "ttl_time", "window_end", "lateness_us", "late", NULL};
    yyjson_val *root;
    ck_top_key *keys;
    uint32_t *partition, count;
    bool has;
    *p = (ck_top_plan){.arena = a, .final = spec->final};
    CK_TRY(ck_params_inputs(spec, 1, 1u << CK_MODE_UPSERT, err));
    p->input = spec->inputs[0].schema;
    p->retract = spec->inputs[0].mode == CK_MODE_RETRACT;
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_params_columns(a, spec, root, "partition", &partition, &p->partition.count, err));
    p->partition.columns = partition;
    CK_TRY(ck_top_read_keys(a, spec, root, "order", &keys, &count, err));
    CK_TRY(ck_params_u64(spec, root, "limit", &p->limit, &has, err));
    if (!has) p->limit = UINT64_MAX;
    CK_TRY(ck_params_u64(spec, root, "offset", &p->offset, &has, err));
    CK_TRY(read_rank(p, spec, root, err));
    if (!member_bool(root, "rank_column", &p->rank_column))
        return ck_fail(err, CK_INVALID, "%s (%s): parameter \"rank_column\" must be true or false", spec->type,
                       spec->uid);
    CK_TRY(read_window(p, spec, root, err));
    /* Nested values are only compared as order keys. */
    p->first = !p->retract && !p->windowed && p->rank == CK_TOP_ROW_NUMBER && p->limit == 1 && p->offset == 0 &&
               !has_nested(p->input);
    CK_TRY(finish(p, spec, keys, count, err));
    CK_TRY(ck_op_ttl_read(spec, root, "ttl_us", &p->ttl, &p->slot.ttl_us, err));
    return check_output(p, spec, err);
}

ck_status ck_top_plan_whole(ck_top_plan *p, ck_arena *a, const ck_op_spec *spec, const ck_top_key *keys, uint32_t count,
                            uint64_t limit, uint64_t offset, ck_error *err) {
    *p = (ck_top_plan){.arena = a, .input = spec->inputs[0].schema, .limit = limit, .offset = offset, .final = true};
    return finish(p, spec, keys, count, err);
}
