/* What a join is, from its parameters: keys, the way of working, the layout of each side's table. */
#include "operator/join_int.h"

#include <yyjson.h>

#include "operator/operators.h"

static const char *const type_names[] = {"inner", "left", "right", "full", "semi", "anti"};

static ck_status read_type(ck_join_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    const char *kind;
    CK_TRY(ck_params_text(spec, root, "kind", &kind, err));
    for (uint32_t i = 0; kind && i < CK_ARRAY_COUNT(type_names); i++)
        if (strcmp(kind, type_names[i]) == 0) {
            p->type = (ck_join_type)i;
            return CK_OK;
        }
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"kind\" must be inner, left, right, full, semi or anti",
                   spec->type, spec->uid);
}

/* ---- keys ---- */

/* The parameter functions look at the first input. */
static ck_op_spec of_side(const ck_op_spec *spec, uint32_t side) {
    ck_op_spec s = *spec;
    s.inputs = &spec->inputs[side];
    s.input_count = 1;
    return s;
}

static ck_status read_keys(ck_join_plan *p, const ck_op_spec *spec, yyjson_val *root, uint32_t side, ck_error *err) {
    ck_join_side *s = &p->sides[side];
    ck_op_spec one = of_side(spec, side);
    uint32_t *columns, count;
    CK_TRY(ck_params_columns(p->arena, &one, root, side ? "right_keys" : "left_keys", &columns, &count, err));
    const ck_type **types = ck_arena_array(p->arena, count + 1u, sizeof *types);
    if (!types) return ck_nomem(err, p->arena->mem, count * sizeof *types);
    for (uint32_t i = 0; i < count; i++) types[i] = s->schema->fields[columns[i]].type;
    s->keys = (ck_key_spec){columns, types, count};
    return CK_OK;
}

static ck_status read_null_safe(ck_join_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "null_safe"), *v;
    uint32_t n = p->sides[0].keys.count;
    if (p->sides[1].keys.count != n || !yyjson_is_arr(list) || yyjson_arr_size(list) != n)
        return ck_fail(err, CK_INVALID,
                       "%s (%s): \"left_keys\", \"right_keys\" and \"null_safe\" must be arrays of one length",
                       spec->type, spec->uid);
    p->null_safe = ck_arena_array(p->arena, n + 1u, sizeof *p->null_safe);
    if (!p->null_safe) return ck_nomem(err, p->arena->mem, n);
    size_t i, max;
    yyjson_arr_foreach(list, i, max, v) {
        if (!yyjson_is_bool(v))
            return ck_fail(err, CK_INVALID, "%s (%s): \"null_safe\" must be booleans", spec->type, spec->uid);
        p->null_safe[i] = yyjson_get_bool(v);
    }
    for (uint32_t k = 0; k < n; k++)
        if (!ck_type_eq(p->sides[0].keys.types[k], p->sides[1].keys.types[k]))
            return ck_fail(err, CK_INVALID, "%s (%s): the keys of pair %u are of different types", spec->type,
                           spec->uid, k + 1);
    return CK_OK;
}

/* ---- the residual ---- */

typedef struct uses {
    ck_join_plan *p;
} uses;

static void note_use(void *arg, uint32_t column) {
    ck_join_plan *p = ((uses *)arg)->p;
    uint32_t left = p->sides[0].width;
    p->residual_uses[column >= left][column >= left ? column - left : column] = 1;
}

static ck_status read_residual(ck_join_plan *p, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    uint32_t left = p->sides[0].width, width = left + p->sides[1].width;
    ck_field *fields = ck_arena_array(p->arena, width + 1u, sizeof *fields);
    const char **names = ck_arena_array(p->arena, width + 1u, sizeof *names);
    if (!fields || !names) return ck_nomem(err, p->arena->mem, width * sizeof *fields);
    for (uint32_t i = 0; i < width; i++) {
        fields[i] = i < left ? p->sides[0].schema->fields[i] : p->sides[1].schema->fields[i - left];
        names[i] = fields[i].name;
    }
    p->names = names;
    ck_schema both = {fields, width};
    ck_op_input input = {&both, CK_MODE_APPEND, false};
    ck_op_spec one = *spec;
    one.inputs = &input, one.input_count = 1;
    CK_TRY(ck_params_exprs(p->arena, &one, root, "residual", &p->residual, &p->residual_count, err));
    for (uint32_t s = 0; s < 2; s++) {
        p->residual_uses[s] = ck_arena_array(p->arena, p->sides[s].width + 1u, 1);
        if (!p->residual_uses[s]) return ck_nomem(err, p->arena->mem, p->sides[s].width);
        memset(p->residual_uses[s], 0, p->sides[s].width + 1u);
    }
    uses u = {p};
    for (uint32_t i = 0; i < p->residual_count; i++) {
        const ck_type *t = p->residual[i]->type;
        if (t->kind != CK_TYPE_BOOLEAN && t->kind != CK_TYPE_NULL)
            return ck_fail(err, CK_INVALID, "%s (%s): residual condition %u is not BOOLEAN", spec->type, spec->uid,
                           i + 1);
        CK_TRY(ck_expr_check_columns(p->residual[i], &both, err));
        ck_expr_visit_columns(p->residual[i], note_use, &u);
    }
    return CK_OK;
}

/* ---- the way of working ---- */

/* A bounded side is built first where that changes nothing but when rows are said: what `final` asks for, and what
 * saves keeping the other side. Over changes that somebody wants to see (bounded, and yet not final) both sides are
 * kept. The plan says the same of what grows and what is taken back (built_first in sql/plan/join.c). */
static uint32_t choose_build(const ck_join_plan *p) {
    const ck_join_side *l = &p->sides[0], *r = &p->sides[1];
    if (p->final) return p->type == CK_JOIN_RIGHT ? 0 : 1;
    switch (p->type) {
    case CK_JOIN_INNER:
        if (l->retract || r->retract) return CK_JOIN_BOTH;
        if (p->build_left && l->bounded) return 0;
        return r->bounded ? 1 : l->bounded ? 0 : CK_JOIN_BOTH;
    case CK_JOIN_SEMI: return r->bounded && !l->retract && !r->retract ? 1 : CK_JOIN_BOTH;
    case CK_JOIN_LEFT:
    case CK_JOIN_ANTI: return r->bounded && !l->bounded && !r->retract ? 1 : CK_JOIN_BOTH;
    case CK_JOIN_RIGHT: return l->bounded && !r->bounded && !l->retract ? 0 : CK_JOIN_BOTH;
    case CK_JOIN_FULL: break;
    }
    return CK_JOIN_BOTH;
}

static void choose_state(ck_join_plan *p) {
    ck_join_type t = p->type;
    ck_join_side *l = &p->sides[0], *r = &p->sides[1];
    l->preserved = t == CK_JOIN_LEFT || t == CK_JOIN_FULL;
    r->preserved = t == CK_JOIN_RIGHT || t == CK_JOIN_FULL;
    p->build = choose_build(p);
    r->counted = ck_join_left_only(t) && p->residual_count == 0;
    if (p->build == CK_JOIN_BOTH) {
        l->matches = l->preserved || (ck_join_left_only(t) && !r->counted);
        r->matches = r->preserved;
    } else if (t == CK_JOIN_FULL) {
        r->matches = true;
    }
}

/* ---- slots ---- */

static bool is_key(const ck_join_side *s, uint32_t column, uint32_t *which) {
    for (*which = 0; *which < s->keys.count; ++*which)
        if (s->keys.columns[*which] == column) return true;
    return false;
}

typedef struct layout {
    ck_field *partition, *values;
    ck_order_field *order;
    uint32_t *row_columns;
    const ck_type **row_types;
    uint32_t rest; /* columns that are no keys */
} layout;

static ck_field number_field(const char *name) { return (ck_field){name, ck_type_simple(CK_TYPE_BIGINT), false}; }

/* Columns that are no keys, in order: as order fields where rows are found by all they hold, as values elsewhere. */
static void place_rest(ck_join_side *s, layout *l, ck_slot_schema *slot) {
    for (uint32_t c = 0; c < s->width; c++) {
        uint32_t which;
        const ck_field *f = &s->schema->fields[c];
        s->nested = s->nested || ck_type_phys(f->type) == CK_PHYS_LIST || ck_type_phys(f->type) == CK_PHYS_STRUCT;
        if (is_key(s, c, &which)) {
            s->field_of[c] = which;
        } else if (s->retract) {
            s->field_of[c] = s->keys.count + l->rest;
            l->order[l->rest] = (ck_order_field){.field = *f};
            l->row_columns[s->keys.count + l->rest] = c;
            l->row_types[s->keys.count + l->rest++] = f->type;
        } else {
            s->field_of[c] = s->keys.count + 1 + l->rest;
            l->values[l->rest++] = *f;
        }
    }
    if (s->retract && l->rest) {
        slot->order_count = l->rest;
        return;
    }
    if (s->retract) {
        l->row_columns[s->keys.count] = s->width; /* the column of zeros */
        l->row_types[s->keys.count] = ck_type_simple(CK_TYPE_BIGINT);
    }
    l->order[0] = (ck_order_field){.field = number_field("#")};
    slot->order_count = 1;
}

static ck_status lay_out(ck_join_plan *p, uint32_t side, ck_error *err) {
    ck_join_side *s = &p->sides[side];
    size_t room = s->width + s->keys.count + 3u;
    layout l = {.partition = ck_arena_array(p->arena, room, sizeof *l.partition),
                .values = ck_arena_array(p->arena, room, sizeof *l.values),
                .order = ck_arena_array(p->arena, room, sizeof *l.order),
                .row_columns = ck_arena_array(p->arena, room, sizeof *l.row_columns),
                .row_types = ck_arena_array(p->arena, room, sizeof *l.row_types)};
    s->field_of = ck_arena_array(p->arena, room, sizeof *s->field_of);
    if (!l.partition || !l.values || !l.order || !l.row_columns || !l.row_types || !s->field_of)
        return ck_nomem(err, p->arena->mem, room * sizeof *l.order);
    ck_slot_schema *slot = &s->slot;
    *slot = (ck_slot_schema){.slot = side ? "right" : "left",
                             .state_type = s->counted ? "join_keys" : "join_rows",
                             .version = 1,
                             .mode = CK_SLOT_KEYED,
                             .partition = l.partition,
                             .partition_count = s->keys.count,
                             .order = l.order,
                             .values = l.values,
                             .listed = !s->counted,
                             .hashed = s->retract && !s->counted};
    for (uint32_t k = 0; k < s->keys.count; k++) {
        l.partition[k] = s->schema->fields[s->keys.columns[k]];
        l.row_columns[k] = s->keys.columns[k];
        l.row_types[k] = s->keys.types[k];
    }
    if (!s->counted) place_rest(s, &l, slot);
    s->row_key = (ck_key_spec){l.row_columns, l.row_types, s->keys.count + slot->order_count};
    slot->value_count = s->retract || s->counted ? 0 : l.rest;
    uint32_t first = s->keys.count + slot->order_count;
    if (s->retract) {
        s->count_field = first + slot->value_count;
        l.values[slot->value_count++] = number_field("#count");
    }
    if (s->matches) {
        s->matches_field = first + slot->value_count;
        l.values[slot->value_count++] = number_field("#matches");
    }
    return CK_OK;
}

ck_status ck_join_plan_make(ck_join_plan *p, ck_arena *arena, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {
        "kind",         "left_keys", "right_keys",      "null_safe",        "residual",    "single",     "left_ttl_us",
        "right_ttl_us", "ttl_time",  "left_window_end", "right_window_end", "lateness_us", "build_left", NULL};
    yyjson_val *root;
    *p = (ck_join_plan){.arena = arena, .final = spec->final, .output = spec->schema};
    CK_TRY(ck_params_inputs(spec, 2, 1u << CK_MODE_UPSERT, err));
    CK_TRY(ck_params_read(arena, spec, known, &root, err));
    for (uint32_t i = 0; i < 2; i++)
        p->sides[i] = (ck_join_side){.schema = spec->inputs[i].schema,
                                     .width = spec->inputs[i].schema->field_count,
                                     .retract = spec->inputs[i].mode == CK_MODE_RETRACT,
                                     .bounded = spec->inputs[i].bounded};
    CK_TRY(read_type(p, spec, root, err));
    CK_TRY(read_keys(p, spec, root, 0, err));
    CK_TRY(read_keys(p, spec, root, 1, err));
    CK_TRY(read_null_safe(p, spec, root, err));
    CK_TRY(read_residual(p, spec, root, err));
    p->single = yyjson_is_true(yyjson_obj_get(root, "single"));
    p->build_left = yyjson_is_true(yyjson_obj_get(root, "build_left"));
    if (p->single && ck_join_left_only(p->type))
        return ck_fail(err, CK_INVALID, "%s (%s): \"single\" is for joins that have right columns", spec->type,
                       spec->uid);
    choose_state(p);
    CK_TRY(lay_out(p, 0, err));
    CK_TRY(lay_out(p, 1, err));
    CK_TRY(ck_join_windows_read(p, spec, root, err));
    CK_TRY(ck_op_ttl_read(spec, root, "left_ttl_us", &p->ttl, &p->sides[0].slot.ttl_us, err));
    return ck_op_ttl_read(spec, root, "right_ttl_us", &p->ttl, &p->sides[1].slot.ttl_us, err);
}
