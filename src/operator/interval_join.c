/* Inner joins whose condition bounds how far apart in time two rows may be: lower <= right time - left time <= upper.
 * Each side's rows of a key stand in the order of their time, so that partners are a range, and go when the watermark
 * says that none can come any more. Conditions beyond equality and time are the residual's. */
#include "operator/operators.h"

#include <yyjson.h>

#include "expr/program.h"
#include "operator/params_int.h"
#include "operator/session_int.h"

enum { KEY_BYTES = 16, PAIRS_MAX = CK_BATCH_ROWS_MAX };

typedef struct join_side {
    const ck_schema *schema;
    ck_key_spec keys;
    ck_window time;     /* its time and millis alone */
    uint32_t *field_of; /* column -> field of the table */
    uint32_t value_count;
    uint32_t *value_columns; /* columns that are stored as values */
    ck_slot_schema slot;
    ck_table *table;
    uint32_t time_at, seq_at; /* offsets in its rows */
    ck_session_timers timers;
    int64_t reach_us; /* a row has partners up to its time + reach */
} join_side;

typedef struct interval_join {
    ck_mem mem;
    ck_arena arena;
    join_side sides[2];
    int64_t lower_us, upper_us;
    const ck_schema *output;
    ck_eval *eval; /* of the residual; NULL: none */
    ck_event_clock clock;
    int64_t next_seq;
    /* the batch in hand */
    bool running, resumed;
    uint32_t at;                 /* live row whose partners are looked for */
    int64_t last_time, last_seq; /* the partner met last, when resumed */
    ck_partition partitions[CK_BATCH_ROWS_MAX];
    uint64_t hashes[CK_BATCH_ROWS_MAX];
    uint16_t pair_row[PAIRS_MAX];
    const ck_row *pair_partner[PAIRS_MAX];
    uint16_t sel[CK_BATCH_ROWS_MAX];
} interval_join;

/* ---- making ---- */

static void interval_free(interval_join *op) {
    for (int s = 0; s < 2; s++) ck_session_timers_destroy(&op->sides[s].timers);
    if (op->eval) ck_eval_free(op->eval);
    ck_arena_destroy(&op->arena);
    ck_free(op->mem, op, sizeof *op);
}

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *what) {
    return ck_fail(err, CK_INVALID, "%s (%s): %s", spec->type, spec->uid, what);
}

/* Columns of one input; the readers of params_int.h look at the first. */
static ck_status read_columns(ck_arena *a, const ck_op_spec *spec, yyjson_val *root, const char *name,
                              const ck_schema *s, uint32_t **out, uint32_t *count, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, name), *v;
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

static ck_status plan_slot(ck_arena *a, join_side *s, const char *name, ck_error *err) {
    uint32_t width = s->schema->field_count, keys = s->keys.count;
    ck_field *partition = ck_arena_array(a, keys + 1u, sizeof *partition);
    ck_field *values = ck_arena_array(a, width + 1u, sizeof *values);
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
        } else {
            s->field_of[c] = keys + 2 + s->value_count;
            s->value_columns[s->value_count] = c;
            values[s->value_count] = s->schema->fields[c];
            values[s->value_count].name = ck_arena_printf(a, "%u_%s", c, s->schema->fields[c].name);
            if (!values[s->value_count++].name) return ck_nomem(err, a->mem, CK_NAME_BYTES_MAX);
        }
    }
    s->slot = (ck_slot_schema){.slot = name,
                               .state_type = "interval_join",
                               .version = 1,
                               .mode = CK_SLOT_KEYED,
                               .partition = partition,
                               .partition_count = keys,
                               .order = order,
                               .order_count = 2,
                               .values = values,
                               .value_count = s->value_count};
    return CK_OK;
}

static ck_status plan_side(ck_arena *a, join_side *s, const ck_op_spec *spec, yyjson_val *root, bool left,
                           ck_error *err) {
    uint32_t *columns;
    yyjson_val *time = yyjson_obj_get(root, left ? "left_time" : "right_time");
    s->schema = spec->inputs[left ? 0 : 1].schema;
    CK_TRY(read_columns(a, spec, root, left ? "left_keys" : "right_keys", s->schema, &columns, &s->keys.count, err));
    const ck_type **types = ck_arena_array(a, s->keys.count + 1u, sizeof(ck_type *));
    if (!types) return ck_nomem(err, a->mem, s->keys.count * sizeof(ck_type *));
    for (uint32_t i = 0; i < s->keys.count; i++) types[i] = s->schema->fields[columns[i]].type;
    s->keys.columns = columns;
    s->keys.types = types;
    if (!yyjson_is_uint(time) || yyjson_get_uint(time) >= s->schema->field_count)
        return bad(spec, err, "left_time and right_time must be columns");
    s->time.time = (uint32_t)yyjson_get_uint(time);
    ck_kind k = s->schema->fields[s->time.time].type->kind;
    s->time.millis = k == CK_TYPE_BIGINT;
    if (k != CK_TYPE_TIMESTAMP && k != CK_TYPE_TIMESTAMP_LTZ && k != CK_TYPE_BIGINT)
        return bad(spec, err, "a time column is a TIMESTAMP or a BIGINT");
    return plan_slot(a, s, left ? "left" : "right", err);
}

static ck_status check_sides(const interval_join *op, const ck_op_spec *spec, ck_error *err) {
    const join_side *l = &op->sides[0], *r = &op->sides[1];
    if (l->keys.count != r->keys.count) return bad(spec, err, "both sides have as many keys");
    for (uint32_t i = 0; i < l->keys.count; i++)
        if (!ck_type_eq(l->keys.types[i], r->keys.types[i])) return bad(spec, err, "keys of both sides have one type");
    uint32_t left = l->schema->field_count, width = left + r->schema->field_count;
    bool same = spec->schema && spec->schema->field_count == width;
    for (uint32_t i = 0; same && i < width; i++)
        same = ck_type_eq(spec->schema->fields[i].type,
                          i < left ? l->schema->fields[i].type : r->schema->fields[i - left].type);
    return same ? CK_OK : bad(spec, err, "its output is not its left columns and its right columns");
}

static ck_status bounds(interval_join *op, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    yyjson_val *lower = yyjson_obj_get(root, "lower_us"), *upper = yyjson_obj_get(root, "upper_us");
    op->lower_us = yyjson_get_sint(lower);
    op->upper_us = yyjson_get_sint(upper);
    int64_t most = CK_EVENT_TIME_MAX;
    if (!yyjson_is_int(lower) || !yyjson_is_int(upper) || op->lower_us < -most || op->lower_us > most ||
        op->upper_us < -most || op->upper_us > most)
        return bad(spec, err, "lower_us and upper_us must be microseconds");
    op->sides[0].reach_us = op->upper_us;
    op->sides[1].reach_us = -op->lower_us;
    return CK_OK;
}

static ck_status make_plan(interval_join *op, ck_arena *a, const ck_op_spec *spec, yyjson_val **root, ck_error *err) {
    static const char *const known[] = {"kind",     "left_keys", "right_keys", "left_time", "right_time",
                                        "lower_us", "upper_us",  "residual",   NULL};
    CK_TRY(ck_params_inputs(spec, 2, 1u << CK_MODE_UPSERT | 1u << CK_MODE_RETRACT, err));
    CK_TRY(ck_params_read(a, spec, known, root, err));
    if (!yyjson_equals_str(yyjson_obj_get(*root, "kind"), "inner"))
        return ck_fail(err, CK_REFUSED, "%s (%s): only inner joins are bounded by time so far", spec->type, spec->uid);
    CK_TRY(plan_side(a, &op->sides[0], spec, *root, true, err));
    CK_TRY(plan_side(a, &op->sides[1], spec, *root, false, err));
    CK_TRY(bounds(op, spec, *root, err));
    return check_sides(op, spec, err);
}

static ck_status compile_residual(interval_join *op, const ck_op_spec *spec, yyjson_val *root, ck_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "residual"), *v;
    size_t i, n = yyjson_arr_size(list);
    ck_expr **exprs = ck_arena_array(&op->arena, n + 1, sizeof(ck_expr *));
    const char **names = ck_arena_array(&op->arena, op->output->field_count + 1u, sizeof *names);
    ck_program *p;
    if (!exprs || !names) return ck_nomem(err, op->arena.mem, n * sizeof(ck_expr *));
    if (!yyjson_is_arr(list)) return bad(spec, err, "its residual must be an array of expressions");
    if (n == 0) return CK_OK;
    yyjson_arr_foreach(list, i, n, v) {
        ck_status s = ck_expr_from_json(&op->arena, v, &exprs[i], err);
        if (s == CK_OK) s = ck_expr_check_columns(exprs[i], op->output, err);
        if (s != CK_OK) {
            ck_error_prefix(err, "%s (%s): ", spec->type, spec->uid);
            return s;
        }
    }
    for (uint32_t c = 0; c < op->output->field_count; c++) names[c] = op->output->fields[c].name;
    CK_TRY(ck_program_compile(&op->arena, exprs, (uint32_t)n, &p, err));
    ck_eval_options o = {.proc = spec->proc,
                         .mem = op->mem,
                         .error_null = spec->settings->eval_error_null,
                         .timezone = spec->settings->timezone,
                         .column_names = names};
    return ck_eval_new(p, &o, &op->eval, err);
}

static ck_status interval_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    interval_join *op = ck_alloc_zero(mem, sizeof *op);
    if (!op) return ck_nomem(err, mem, sizeof *op);
    yyjson_val *root;
    op->mem = mem;
    ck_arena_init(&op->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    for (int s = 0; s < 2; s++) ck_session_timers_init(&op->sides[s].timers, mem);
    ck_status st = make_plan(op, &op->arena, spec, &root, err);
    if (st == CK_OK && !(op->output = ck_schema_copy(&op->arena, spec->schema)))
        st = ck_nomem(err, op->arena.mem, sizeof *op->output);
    if (st == CK_OK) st = compile_residual(op, spec, root, err);
    if (st == CK_OK)
        *self = op;
    else
        interval_free(op);
    return st;
}

static ck_status interval_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                                ck_error *err) {
    interval_join *op = CK_ARENA_NEW(a, interval_join);
    ck_slot_schema *all = ck_arena_array(a, 3, sizeof *all);
    yyjson_val *root;
    if (!op || !all) return ck_nomem(err, a->mem, sizeof *op);
    *op = (interval_join){0};
    CK_TRY(make_plan(op, a, spec, &root, err));
    all[0] = op->sides[0].slot;
    all[1] = op->sides[1].slot;
    all[2] = *ck_event_clock_slot();
    *slots = all;
    *count = 3;
    return CK_OK;
}

static ck_status set_timer(interval_join *op, join_side *s, ck_partition p, int64_t time_us, ck_op_ctx *ctx) {
    return ck_session_timers_set(&s->timers, p, time_us + s->reach_us) == CK_OK
               ? CK_OK
               : ck_nomem(ctx->error, op->mem, sizeof(ck_session_timer));
}

static ck_status open_side(interval_join *op, join_side *s, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    ck_row *row;
    CK_TRY(ck_state_table(ctx->state, &s->slot, &s->table, ctx->error));
    const ck_row_layout *layout = ck_table_layout(s->table);
    s->time_at = layout->fields[s->keys.count].offset;
    s->seq_at = layout->fields[s->keys.count + 1].offset;
    for (uint32_t n; (n = ck_table_partition_scan(s->table, &scan, op->partitions, CK_BATCH_ROWS_MAX)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (ck_partition_first(s->table, op->partitions[i], &row))
                CK_TRY(set_timer(op, s, op->partitions[i], ck_row_i64(row, s->time_at), ctx));
    scan = (ck_table_scan){0};
    while (ck_table_scan_next(s->table, &scan, &row, 1) > 0)
        if (ck_row_i64(row, s->seq_at) >= op->next_seq) op->next_seq = ck_row_i64(row, s->seq_at) + 1;
    return CK_OK;
}

static ck_status interval_open(void *self, ck_op_ctx *ctx) {
    interval_join *op = self;
    CK_TRY(ck_event_clock_open(&op->clock, ctx));
    CK_TRY(open_side(op, &op->sides[0], ctx));
    return open_side(op, &op->sides[1], ctx);
}

/* ---- pairs ---- */

static ck_view order_key(int64_t time_us, int64_t seq, char out[KEY_BYTES]) {
    (void)ck_session_key(time_us, out);
    (void)ck_session_key(seq, out + CK_SESSION_KEY_BYTES);
    return (ck_view){out, KEY_BYTES};
}

/* One side's columns of n pairs: of the batch, or of the partners' rows. */
static ck_status gather_side(const interval_join *op, uint32_t side, uint32_t batch_side, const ck_batch *b, uint32_t n,
                             ck_batch *out, uint32_t first, ck_op_ctx *ctx) {
    const join_side *s = &op->sides[side];
    for (uint32_t c = 0; c < s->schema->field_count; c++) {
        ck_column_builder builder;
        ck_column *column = NULL;
        ck_status st = ck_column_builder_init(&builder, ctx->mem, s->schema->fields[c].type, n);
        if (st == CK_OK)
            st = side == batch_side ? ck_build_gather(&builder, b->columns[c], op->pair_row, n)
                                    : ck_table_gather_field(s->table, op->pair_partner, n, s->field_of[c], &builder);
        if (st == CK_OK) column = ck_column_builder_finish(&builder);
        ck_column_builder_destroy(&builder);
        if (!column) return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
        ck_batch_set_column(out, first + c, &column);
    }
    return CK_OK;
}

static ck_status emit_pairs(interval_join *op, uint32_t side, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    if (n == 0) return CK_OK;
    ck_batch *pairs = ck_batch_new(ctx->mem, op->output->field_count, n, false, false);
    if (!pairs) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status s = gather_side(op, 0, side, b, n, pairs, 0, ctx);
    if (s == CK_OK) s = gather_side(op, 1, side, b, n, pairs, op->sides[0].schema->field_count, ctx);
    ck_batch *out = NULL;
    if (s == CK_OK && op->eval) {
        uint16_t *sel = ck_arena_alloc(ctx->arena, (n + 8u) * sizeof *sel);
        uint32_t count = 0;
        if (!sel) s = ck_nomem(ctx->error, ctx->mem, n * sizeof *sel);
        if (s == CK_OK) s = ck_eval_filter(op->eval, pairs, sel, &count, ctx->error);
        if (s == CK_OK && !(out = ck_batch_select(pairs, sel, count))) s = ck_nomem(ctx->error, ctx->mem, n);
    } else if (s == CK_OK) {
        out = ck_batch_ref(pairs);
    }
    ck_batch_unref(&pairs);
    return s == CK_OK ? ck_op_emit(ctx, 0, &out) : s;
}

/* Pairs of the batch's rows with what the other side has, about a batch of them; CK_MORE while there are more. */
static ck_status run(interval_join *op, uint32_t side, const ck_batch *b, ck_op_ctx *ctx) {
    const join_side *own = &op->sides[side], *other = &op->sides[1 - side];
    int64_t before = side == 0 ? op->lower_us : -op->upper_us, after = side == 0 ? op->upper_us : -op->lower_us;
    uint32_t n = 0, most = ctx->settings->batch_rows;
    for (; op->at < b->sel_count; op->at++, op->resumed = false) {
        uint32_t row = ck_batch_row(b, op->at);
        char lo[KEY_BYTES], hi[CK_SESSION_KEY_BYTES];
        ck_range r;
        ck_row *partner;
        int64_t us;
        if (!op->partitions[op->at] || !ck_window_row_time(&own->time, b->columns[own->time.time], row, &us)) continue;
        ck_view from = op->resumed ? order_key(op->last_time, op->last_seq + 1, lo) : ck_session_key(us + before, lo);
        ck_range_open(&r, other->table, op->partitions[op->at], from, ck_session_key(us + after + 1, hi));
        while (ck_range_next(&r, &partner)) {
            op->pair_row[n] = (uint16_t)row;
            op->pair_partner[n++] = partner;
            if (n < most) continue;
            op->last_time = ck_row_i64(partner, other->time_at);
            op->last_seq = ck_row_i64(partner, other->seq_at);
            op->resumed = true;
            CK_TRY(emit_pairs(op, side, b, n, ctx));
            return CK_MORE;
        }
    }
    return emit_pairs(op, side, b, n, ctx);
}

/* ---- rows ---- */

/* Rows that partners may still come for. */
static uint32_t choose(interval_join *op, const join_side *s, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = 0, bad_times = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us;
        if (!ck_window_row_time(&s->time, b->columns[s->time.time], row, &us)) {
            bad_times++;
            continue;
        }
        op->sel[n] = (uint16_t)row;
        n += us + s->reach_us > op->clock.watermark;
    }
    if (bad_times) ck_op_count(ctx, "bad_time_rows", bad_times);
    return n;
}

static ck_status keep_row(interval_join *op, join_side *s, ck_partition p, const ck_batch *b, uint32_t at,
                          ck_op_ctx *ctx) {
    char key[KEY_BYTES];
    ck_row *row;
    bool fresh;
    int64_t us = 0;
    (void)ck_window_row_time(&s->time, b->columns[s->time.time], at, &us);
    CK_TRY(ck_partition_upsert(s->table, p, order_key(us, op->next_seq++, key), &row, &fresh, ctx->error));
    for (uint32_t i = 0; i < s->value_count; i++) {
        uint32_t c = s->value_columns[i];
        if (ck_table_set_field(s->table, row, s->field_of[c], b->columns[c], at) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, sizeof(ck_strview));
    }
    return set_timer(op, s, p, us, ctx);
}

static ck_status keep(interval_join *op, join_side *s, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = choose(op, s, b, ctx);
    if (n == 0) return CK_OK;
    ck_batch *some = ck_batch_select(b, op->sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->sel);
    ck_key_hash(&s->keys, some, ck_table_seed(s->table), op->hashes);
    ck_keys keys = {&s->keys, some, op->hashes, n};
    ck_status st = ck_table_partitions(s->table, &keys, true, op->partitions, ctx->error);
    for (uint32_t k = 0; st == CK_OK && k < n; k++) st = keep_row(op, s, op->partitions[k], b, op->sel[k], ctx);
    ck_batch_unref(&some);
    return st;
}

static ck_status take_batch(interval_join *op, uint32_t side, const ck_batch *b, ck_op_ctx *ctx) {
    join_side *own = &op->sides[side], *other = &op->sides[1 - side];
    if (b->sel_count == 0) return CK_OK;
    if (!op->running) {
        ck_key_hash(&own->keys, b, ck_table_seed(other->table), op->hashes);
        ck_keys keys = {&own->keys, b, op->hashes, b->sel_count};
        CK_TRY(ck_table_partitions(other->table, &keys, false, op->partitions, ctx->error));
        op->running = true;
        op->at = 0;
        op->resumed = false;
    }
    CK_TRY(run(op, side, b, ctx));
    op->running = false;
    return keep(op, own, b, ctx);
}

/* ---- time ---- */

static ck_status forget(interval_join *op, join_side *s, int64_t watermark, ck_op_ctx *ctx) {
    ck_partition p;
    ck_row *row;
    while (ck_session_timers_take(&s->timers, watermark, &p)) {
        char hi[CK_SESSION_KEY_BYTES];
        uint64_t erased, had = ck_partition_rows(s->table, p);
        CK_TRY(ck_partition_erase_range(s->table, p, (ck_view){0}, ck_session_key(watermark - s->reach_us + 1, hi),
                                        &erased, ctx->error));
        if (erased < had && ck_partition_first(s->table, p, &row))
            CK_TRY(set_timer(op, s, p, ck_row_i64(row, s->time_at), ctx));
    }
    return CK_OK;
}

static ck_status come_to(interval_join *op, int64_t watermark, ck_op_ctx *ctx) {
    if (watermark <= op->clock.watermark) return CK_OK;
    op->clock.watermark = watermark;
    CK_TRY(forget(op, &op->sides[0], watermark, ctx));
    return forget(op, &op->sides[1], watermark, ctx);
}

static ck_status interval_on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    switch (ev->kind) {
    case CK_EVENT_BATCH: return take_batch(self, input, ev->batch, ctx);
    case CK_EVENT_WATERMARK:
        return ev->watermark.value >= CK_EVENT_TIME_MAX ? CK_OK : come_to(self, ev->watermark.value, ctx);
    default: return CK_OK;
    }
}

static ck_status interval_pre_snapshot(void *self, uint64_t checkpoint, ck_op_ctx *ctx) {
    (void)checkpoint;
    return ck_event_clock_store(&((interval_join *)self)->clock, ctx);
}

static void interval_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    interval_free(self);
}

static const ck_operator_vtbl interval_vtbl = {
    .struct_bytes = sizeof(ck_operator_vtbl),
    .open = interval_open,
    .on_event = interval_on_event,
    .pre_snapshot = interval_pre_snapshot,
    .close = interval_close,
};

const ck_op_desc ck_op_interval_join = {
    .type = "interval_join", .op = &interval_vtbl, .create = interval_create, .slots = interval_slots};
