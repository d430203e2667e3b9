#include "operator/time_side_int.h"

#include <yyjson.h>

#include "operator/params_int.h"

/* ---- the plan ---- */

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *what) {
    return ck_fail(err, CK_INVALID, "%s (%s): %s", spec->type, spec->uid, what);
}

ck_status ck_time_side_columns(ck_arena *a, const ck_op_spec *spec, yyjson_val *root, const char *member,
                               const ck_schema *s, uint32_t **out, uint32_t *count, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, member), *v;
    size_t i, n = yyjson_arr_size(list);
    *out = ck_arena_array(a, n + 1, sizeof **out);
    if (!*out) return ck_nomem(err, a->mem, n * sizeof **out);
    if (!yyjson_is_arr(list)) return bad(spec, err, "its keys must be arrays of column numbers");
    yyjson_arr_foreach(list, i, n, v) {
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) >= s->field_count)
            return bad(spec, err, "its keys must be arrays of column numbers");
        (*out)[i] = (uint32_t)yyjson_get_uint(v);
    }
    *count = (uint32_t)n;
    return CK_OK;
}

/* What a row's key and place in the order give back as it was. */
static bool gives_back(const ck_type *t) {
    ck_phys p = ck_type_phys(t);
    return p == CK_PHYS_I64 || p == CK_PHYS_VIEW || p == CK_PHYS_BOOL;
}

static bool may_be_blank(const ck_field *f) {
    ck_phys p = ck_type_phys(f->type);
    return f->nullable || (p != CK_PHYS_LIST && p != CK_PHYS_STRUCT);
}

ck_status ck_time_side_unread(ck_arena *a, ck_time_side *s, const ck_op_spec *spec, yyjson_val *root,
                              const char *member, ck_error *err) {
    uint32_t *columns, count;
    if (!yyjson_obj_get(root, member)) return CK_OK;
    CK_TRY(ck_time_side_columns(a, spec, root, member, s->schema, &columns, &count, err));
    s->unread = ck_arena_array(a, s->schema->field_count + 1u, sizeof *s->unread);
    if (!s->unread) return ck_nomem(err, a->mem, s->schema->field_count);
    memset(s->unread, 0, s->schema->field_count);
    for (uint32_t i = 0; i < count; i++) s->unread[columns[i]] = true;
    return CK_OK;
}

static ck_status plan_slot(ck_arena *a, ck_time_side *s, const char *name, const char *state_type, ck_error *err) {
    uint32_t width = s->schema->field_count, keys = s->keys.count;
    ck_field *partition = ck_arena_array(a, keys + 1u, sizeof *partition);
    ck_field *values = ck_arena_array(a, width + 2u, sizeof *values);
    ck_order_field *order = ck_arena_array(a, 2, sizeof *order);
    s->field_of = ck_arena_array(a, width + 1u, sizeof *s->field_of);
    s->value_columns = ck_arena_array(a, width + 1u, sizeof *s->value_columns);
    if (!partition || !values || !order || !s->field_of || !s->value_columns)
        return ck_nomem(err, a->mem, width * sizeof *values);
    for (uint32_t i = 0; i < keys; i++) {
        partition[i] = (ck_field){ck_arena_printf(a, "key_%u", i + 1), s->keys.types[i], true};
        if (!partition[i].name) return ck_nomem(err, a->mem, 16);
    }
    order[0] = (ck_order_field){.field = {"event_time", ck_type_simple(CK_TYPE_BIGINT), false}};
    order[1] = (ck_order_field){.field = {"seq", ck_type_simple(CK_TYPE_BIGINT), false}};
    for (uint32_t c = 0; c < width; c++) {
        uint32_t key = 0;
        while (key < keys && s->keys.columns[key] != c) key++;
        if (key < keys && gives_back(s->schema->fields[c].type)) {
            s->field_of[c] = key;
        } else if (c == s->time.time && !s->time.millis) {
            s->field_of[c] = keys;
        } else if (s->unread && s->unread[c] && may_be_blank(&s->schema->fields[c])) {
            s->field_of[c] = CK_TIME_SIDE_NOT_KEPT;
        } else {
            s->field_of[c] = keys + 2 + s->value_count;
            s->value_columns[s->value_count] = c;
            values[s->value_count] = s->schema->fields[c];
            values[s->value_count].name = ck_arena_printf(a, "%u_%s", c, s->schema->fields[c].name);
            if (!values[s->value_count++].name) return ck_nomem(err, a->mem, CK_NAME_BYTES_MAX);
        }
    }
    if (s->flagged) values[s->value_count] = (ck_field){"#met", ck_type_simple(CK_TYPE_BOOLEAN), false};
    s->slot = (ck_slot_schema){.slot = name,
                               .state_type = state_type,
                               .version = 1,
                               .mode = CK_SLOT_KEYED,
                               .partition = partition,
                               .partition_count = keys,
                               .order = order,
                               .order_count = 2,
                               .values = values,
                               .value_count = s->value_count + (s->flagged ? 1 : 0)};
    return CK_OK;
}

ck_status ck_time_side_plan(ck_arena *a, ck_time_side *s, const ck_op_spec *spec, yyjson_val *root,
                            const char *keys_member, const char *time_member, const char *name, const char *state_type,
                            ck_error *err) {
    uint32_t *columns;
    yyjson_val *time = time_member ? yyjson_obj_get(root, time_member) : NULL;
    CK_TRY(ck_time_side_columns(a, spec, root, keys_member, s->schema, &columns, &s->keys.count, err));
    const ck_type **types = ck_arena_array(a, s->keys.count + 1u, sizeof(ck_type *));
    if (!types) return ck_nomem(err, a->mem, s->keys.count * sizeof(ck_type *));
    for (uint32_t i = 0; i < s->keys.count; i++) types[i] = s->schema->fields[columns[i]].type;
    s->keys.columns = columns;
    s->keys.types = types;
    s->time.time = UINT32_MAX;
    if (!time_member) return plan_slot(a, s, name, state_type, err);
    if (!yyjson_is_uint(time) || yyjson_get_uint(time) >= s->schema->field_count)
        return bad(spec, err, "left_time and right_time must be columns");
    s->time.time = (uint32_t)yyjson_get_uint(time);
    ck_kind k = s->schema->fields[s->time.time].type->kind;
    s->time.millis = k == CK_TYPE_BIGINT;
    if (k != CK_TYPE_TIMESTAMP && k != CK_TYPE_TIMESTAMP_LTZ && k != CK_TYPE_BIGINT)
        return bad(spec, err, "a time column is a TIMESTAMP or a BIGINT");
    return plan_slot(a, s, name, state_type, err);
}

ck_status ck_time_side_check(const ck_time_side *l, const ck_time_side *r, const ck_op_spec *spec, bool left_only,
                             ck_error *err) {
    if (l->keys.count != r->keys.count) return bad(spec, err, "both sides have as many keys");
    for (uint32_t i = 0; i < l->keys.count; i++)
        if (!ck_type_eq(l->keys.types[i], r->keys.types[i])) return bad(spec, err, "keys of both sides have one type");
    uint32_t left = l->schema->field_count, width = left + (left_only ? 0 : r->schema->field_count);
    bool same = spec->schema && spec->schema->field_count == width;
    for (uint32_t i = 0; same && i < width; i++)
        same = ck_type_eq(spec->schema->fields[i].type,
                          i < left ? l->schema->fields[i].type : r->schema->fields[i - left].type);
    return same ? CK_OK
                : bad(spec, err,
                      left_only ? "its output is not its left columns"
                                : "its output is not its left columns and its right columns");
}

static void note_use(void *arg, uint32_t column) { ((uint8_t *)arg)[column] = 1; }

ck_status ck_time_side_residual(ck_arena *a, ck_mem mem, const ck_op_spec *spec, yyjson_val *root,
                                const ck_schema *left, const ck_schema *right, ck_eval **eval, uint8_t *uses,
                                ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "residual"), *v;
    uint32_t shift = left->field_count, width = shift + right->field_count;
    size_t i, n = yyjson_arr_size(list);
    ck_expr **exprs = ck_arena_array(a, n + 1, sizeof(ck_expr *));
    const char **names = ck_arena_array(a, width + 1u, sizeof *names);
    ck_field *fields = ck_arena_array(a, width + 1u, sizeof *fields);
    ck_program *p;
    *eval = NULL;
    if (!exprs || !names || !fields) return ck_nomem(err, a->mem, n * sizeof(ck_expr *));
    if (!yyjson_is_arr(list)) return bad(spec, err, "its residual must be an array of expressions");
    for (uint32_t c = 0; c < width; c++) {
        fields[c] = c < shift ? left->fields[c] : right->fields[c - shift];
        names[c] = fields[c].name;
    }
    ck_schema both = {fields, width};
    yyjson_arr_foreach(list, i, n, v) {
        ck_status s = ck_expr_from_json(a, ck_spec_library(spec), v, &exprs[i], err);
        if (s == CK_OK) s = ck_expr_check_columns(exprs[i], &both, err);
        if (s != CK_OK) {
            ck_error_prefix(err, "%s (%s): ", spec->type, spec->uid);
            return s;
        }
        if (uses) ck_expr_visit_columns(exprs[i], note_use, uses);
    }
    if (n == 0) return CK_OK;
    CK_TRY(ck_program_compile(a, exprs, (uint32_t)n, &p, err));
    ck_eval_options o = {.proc = spec->proc,
                         .mem = mem,
                         .error_null = spec->settings->eval_error_null,
                         .timezone = spec->settings->timezone,
                         .column_names = names};
    return ck_eval_new(p, &o, eval, err);
}

/* ---- the table ---- */

ck_status ck_time_side_timer(ck_time_side *s, ck_partition p, int64_t time_us, ck_op_ctx *ctx) {
    return ck_partition_timers_set(&s->timers, p, time_us + s->reach_us) == CK_OK
               ? CK_OK
               : ck_nomem(ctx->error, s->timers.mem, sizeof(ck_partition_timer));
}

static int64_t first_due(const void *arg, const ck_row *row) {
    const ck_time_side *s = arg;
    return ck_row_i64(row, s->time_at) + s->reach_us;
}

ck_status ck_time_side_open(ck_time_side *s, ck_partition *room, int64_t *next_seq, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    ck_row *row;
    CK_TRY(ck_state_table(ctx->state, &s->slot, &s->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(s->table);
    s->time_at = layout->fields[s->keys.count].offset;
    s->seq_at = layout->fields[s->keys.count + 1].offset;
    if (s->flagged) s->flag_at = layout->fields[layout->field_count - 1].offset;
    CK_TRY(ck_partition_timers_restore(&s->timers, s->table, room, first_due, s, ctx));
    while (ck_table_scan_next(s->table, &scan, &row, 1) > 0)
        if (ck_row_i64(row, s->seq_at) >= *next_seq) *next_seq = ck_row_i64(row, s->seq_at) + 1;
    return CK_OK;
}

ck_status ck_time_side_erase_before(ck_time_side *s, ck_partition p, ck_view hi, ck_op_ctx *ctx) {
    uint64_t erased, had = ck_partition_rows(s->table, p);
    ck_row *row;
    CK_TRY(ck_partition_erase_range(s->table, p, (ck_view){0}, hi, &erased, ctx->error));
    if (erased < had && ck_partition_first(s->table, p, &row))
        return ck_time_side_timer(s, p, ck_row_i64(row, s->time_at), ctx);
    return CK_OK;
}

ck_view ck_time_key(int64_t time_us, int64_t seq, char out[CK_TIME_KEY_BYTES]) {
    (void)ck_instant_key(time_us, out);
    (void)ck_instant_key(seq, out + CK_INSTANT_KEY_BYTES);
    return (ck_view){out, CK_TIME_KEY_BYTES};
}

ck_status ck_time_side_keep(ck_time_side *s, ck_partition p, const ck_batch *b, uint32_t at, int64_t us, int64_t seq,
                            bool flag, ck_op_ctx *ctx) {
    char key[CK_TIME_KEY_BYTES];
    ck_row *row;
    bool fresh;
    CK_TRY(ck_partition_upsert(s->table, p, ck_time_key(us, seq, key), &row, &fresh, ctx->error));
    for (uint32_t i = 0; i < s->value_count; i++) {
        uint32_t c = s->value_columns[i];
        if (ck_table_set_field(s->table, row, s->field_of[c], b->columns[c], at) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, sizeof(ck_strview));
    }
    if (s->flagged) ck_row_set_bool(row, s->flag_at, flag);
    return CK_OK;
}

ck_status ck_time_side_partitions(ck_time_side *s, const ck_key_spec *keys, const ck_batch *b, bool create,
                                  uint64_t *hashes, ck_partition *out, ck_op_ctx *ctx) {
    ck_key_hash(keys, b, ck_table_seed(s->table), hashes);
    ck_keys k = {keys, b, hashes, b->sel_count};
    return ck_table_partitions(s->table, &k, create, out, ctx->error);
}

/* ---- columns ---- */

/* NULL, or the least of a type that has none: operators behind may keep it, though nobody looks. */
static ck_status build_blank(ck_column_builder *b, const ck_field *f) {
    if (f->nullable) return ck_build_null(b);
    switch (b->phys) {
    case CK_PHYS_BOOL: return ck_build_bool(b, false);
    case CK_PHYS_I64: return ck_build_i64(b, 0);
    case CK_PHYS_F64: return ck_build_f64(b, 0);
    case CK_PHYS_I128: return ck_build_i128(b, 0);
    default: return ck_build_str(b, "", 0);
    }
}

static ck_column *blank(const ck_field *f, uint32_t n, ck_mem mem) {
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, mem, f->type, n);
    for (uint32_t i = 0; s == CK_OK && i < n; i++) s = build_blank(&b, f);
    ck_column *c = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return c;
}

ck_status ck_time_side_column(const ck_time_side *s, uint32_t c, ck_row *const *rows, uint32_t n, ck_column **out,
                              ck_op_ctx *ctx) {
    *out = NULL;
    if (s->field_of[c] == CK_TIME_SIDE_NOT_KEPT)
        *out = blank(&s->schema->fields[c], n, ctx->mem);
    else if (ck_table_gather_column(s->table, rows, n, NULL, n, s->field_of[c], ctx->mem, out) != CK_OK)
        *out = NULL;
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

ck_status ck_time_side_gather(const ck_time_side *s, ck_row *const *rows, uint32_t n, ck_batch *out, uint32_t first,
                              ck_op_ctx *ctx) {
    for (uint32_t c = 0; c < s->schema->field_count; c++) {
        ck_column *column;
        CK_TRY(ck_time_side_column(s, c, rows, n, &column, ctx));
        ck_batch_set_column(out, first + c, &column);
    }
    return CK_OK;
}

ck_status ck_time_side_nulls(const ck_schema *schema, ck_batch *out, uint32_t first, ck_op_ctx *ctx) {
    for (uint32_t c = 0; c < schema->field_count; c++) {
        ck_column *column = ck_column_new_null(ctx->mem, ck_type_phys(schema->fields[c].type), out->row_count);
        if (!column) return ck_nomem(ctx->error, ctx->mem, out->row_count * sizeof(ck_strview));
        ck_batch_set_column(out, first + c, &column);
    }
    return CK_OK;
}

ck_status ck_time_side_pad(const ck_batch *b, const uint16_t *sel, uint32_t n, const ck_schema *other, bool other_first,
                           ck_op_ctx *ctx) {
    if (n == 0) return CK_OK;
    uint32_t width = b->column_count, others = other ? other->field_count : 0;
    ck_batch *out = ck_batch_new(ctx->mem, width + others, b->row_count, true, false);
    if (!out) return ck_nomem(ctx->error, ctx->mem, n * sizeof *sel);
    memcpy(out->sel, sel, n * sizeof *sel);
    out->sel_count = n;
    for (uint32_t c = 0; c < width; c++) {
        ck_column *column = ck_column_ref(b->columns[c]);
        ck_batch_set_column(out, (other_first ? others : 0) + c, &column);
    }
    ck_status s = other ? ck_time_side_nulls(other, out, other_first ? 0 : width, ctx) : CK_OK;
    if (s == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return s;
}
