/* See process_int.h: planning, events, and calls of the plugin. */
#include "operator/process_int.h"

#include <yyjson.h>

#include "operator/operators.h"
#include "operator/params_int.h"

/* ---- planning ---- */

static ck_status plan_key(ck_process_plan *p, ck_arena *a, const ck_op_spec *spec, yyjson_val *list, uint32_t input,
                          ck_error *err) {
    size_t n = yyjson_arr_size(list), i, max;
    const ck_schema *s = spec->inputs[input].schema;
    uint32_t *columns = ck_arena_array(a, n + 1, sizeof *columns);
    const ck_type **types = ck_arena_array(a, n + 1, sizeof(ck_type *));
    ck_field *fields = ck_arena_array(a, n + 1, sizeof *fields);
    yyjson_val *v;
    if (!columns || !types || !fields) return ck_nomem(err, a->mem, n * sizeof *fields);
    yyjson_arr_foreach(list, i, max, v) {
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) >= s->field_count)
            return ck_fail(err, CK_INVALID, "%s (%s): its keys are column numbers, a list for each input", spec->type,
                           spec->uid);
        columns[i] = (uint32_t)yyjson_get_uint(v);
        fields[i] = s->fields[columns[i]];
        types[i] = fields[i].type;
        bool same = input == 0 || (n == p->partition_count && ck_type_eq(types[i], p->partition[i].type));
        if (!same)
            return ck_fail(err, CK_INVALID, "%s (%s): its inputs have keys of different types", spec->type, spec->uid);
        fields[i].nullable |= input > 0 && p->partition[i].nullable;
    }
    p->keys[input] = (ck_key_spec){columns, types, (uint32_t)n};
    if (input == 0) p->partition_count = (uint32_t)n;
    if (input > 0) /* names of the first; NULL where one of them may be */
        for (uint32_t k = 0; k < n; k++) fields[k].name = p->partition[k].name;
    p->partition = fields;
    return CK_OK;
}

/* "columns" of an input says where each column stands that the operator takes; without it they are found by name. */
static ck_status given_columns(const ck_op_spec *spec, yyjson_val *list, uint32_t n, const ck_schema *from,
                               uint32_t *out, ck_error *err) {
    size_t i, max;
    yyjson_val *v;
    bool good = yyjson_arr_size(list) == n;
    yyjson_arr_foreach(list, i, max, v) {
        good = good && yyjson_is_uint(v) && yyjson_get_uint(v) < from->field_count;
        if (good) out[i] = (uint32_t)yyjson_get_uint(v);
    }
    return good ? CK_OK : ck_fail(err, CK_INVALID, "%s (%s): its columns do not fit", spec->type, spec->uid);
}

static ck_status plan_columns(ck_process_plan *p, ck_arena *a, const ck_op_spec *spec, yyjson_val *given,
                              uint32_t input, ck_error *err) {
    const ck_plugin_operator *op = p->op;
    const ck_schema *from = spec->inputs[input].schema, *wants = op->inputs ? op->inputs[input] : NULL;
    uint32_t n = wants ? wants->field_count : from->field_count;
    uint32_t *columns = ck_arena_array(a, n + 1u, sizeof *columns);
    if (!columns) return ck_nomem(err, a->mem, n * sizeof *columns);
    if (given) CK_TRY(given_columns(spec, given, n, from, columns, err));
    for (uint32_t i = 0; i < n; i++) {
        if (!given) columns[i] = i;
        if (!wants) continue;
        const ck_field *w = &wants->fields[i];
        int at = given ? (int)columns[i] : ck_schema_find(from, ck_view_of(w->name));
        if (at < 0)
            return ck_fail(err, CK_INVALID, "operator %s (%s) takes a column %s %s, and input %u has none of this name",
                           op->face->name, spec->uid, w->name, ck_type_name(a, w->type), input);
        const ck_field *f = &from->fields[at];
        if (!ck_type_eq(f->type, w->type))
            return ck_fail(err, CK_INVALID,
                           "operator %s (%s) takes column %s as %s, and it is %s; CAST(%s AS %s) converts it",
                           op->face->name, spec->uid, w->name, ck_type_name(a, w->type), ck_type_name(a, f->type),
                           w->name, ck_type_name(a, w->type));
        if (f->nullable && !w->nullable)
            return ck_fail(err, CK_INVALID,
                           "operator %s (%s) takes column %s NOT NULL, and it may be NULL; "
                           "WHERE %s IS NOT NULL or COALESCE(%s, ...) sees to it",
                           op->face->name, spec->uid, w->name, w->name, w->name);
        columns[i] = (uint32_t)at;
    }
    p->columns[input] = columns;
    p->column_counts[input] = n;
    return CK_OK;
}

static ck_slot_schema *new_slot(ck_process_plan *p, ck_arena *a) {
    ck_slot_schema *s = CK_ARENA_NEW(a, ck_slot_schema);
    if (!s) return NULL;
    *s = (ck_slot_schema){
        .version = 1, .mode = CK_SLOT_KEYED, .partition = p->partition, .partition_count = p->partition_count};
    p->slots[p->slot_count++] = s;
    return s;
}

static ck_order_field *order_by(ck_arena *a, ck_field f) {
    ck_order_field *o = CK_ARENA_NEW(a, ck_order_field);
    if (o) o->field = f;
    return o;
}

static ck_status plan_slots(ck_process_plan *p, ck_arena *a, ck_error *err) {
    static const char *const timers[] = {"timers.event", "timers.clock"};
    const clink_operator *f = p->op->face;
    if (!p->keyed) return CK_OK;
    if (!(p->slots = ck_arena_array(a, f->state_count + 2u, sizeof(ck_slot_schema *))))
        return ck_nomem(err, a->mem, f->state_count * sizeof(void *));
    for (uint32_t i = 0; i < f->state_count; i++) {
        const clink_state *state = f->states[i];
        const ck_schema *fields = &p->op->states[i];
        ck_slot_schema *s = new_slot(p, a);
        if (!s) return ck_nomem(err, a->mem, sizeof *s);
        s->slot = state->name;
        s->state_type = state->type ? state->type : state->name;
        if (state->version) s->version = state->version;
        s->ttl_us = state->ttl_ms * 1000;
        s->values = fields->fields;
        s->value_count = fields->field_count;
        if (state->kind == CLINK_VALUE) continue;
        bool map = state->kind == CLINK_MAP;
        s->order = order_by(a, map ? fields->fields[0] : (ck_field){"position", ck_type_simple(CK_TYPE_BIGINT), false});
        if (!s->order) return ck_nomem(err, a->mem, sizeof *s->order);
        s->order_count = 1;
        if (map) s->values++, s->value_count--;
    }
    for (uint32_t i = 0; p->op->timers && i < 2; i++) {
        ck_slot_schema *s = new_slot(p, a);
        if (!s) return ck_nomem(err, a->mem, sizeof *s);
        s->slot = s->state_type = timers[i];
        s->order = order_by(a, (ck_field){"time", ck_type_simple(CK_TYPE_BIGINT), false});
        if (!s->order) return ck_nomem(err, a->mem, sizeof *s->order);
        s->order_count = 1;
    }
    return CK_OK;
}

ck_status ck_process_plan_make(ck_process_plan *p, ck_arena *a, const ck_op_spec *spec, ck_error *err) {
    static const char *const known[] = {"operator", "parameters", "keys", "columns", NULL};
    yyjson_val *root;
    const char *name;
    *p = (ck_process_plan){0};
    CK_TRY(ck_params_read(a, spec, known, &root, err));
    CK_TRY(ck_params_text(spec, root, "operator", &name, err));
    CK_TRY(ck_params_text(spec, root, "parameters", &p->parameters, err));
    if (!p->parameters) p->parameters = "";
    p->op = name ? ck_library_operator(ck_spec_library(spec), name) : NULL;
    if (!p->op)
        return ck_fail(err, CK_INVALID, "%s: there is no operator \"%s\" in the plugins that are loaded (--plugin)",
                       spec->uid, name ? name : "");
    CK_TRY(ck_params_inputs(spec, p->op->input_count, 1u << CK_MODE_UPSERT, err));
    yyjson_val *keys = yyjson_obj_get(root, "keys"), *columns = yyjson_obj_get(root, "columns");
    p->keyed = keys != NULL;
    if (keys && yyjson_arr_size(keys) != spec->input_count)
        return ck_fail(err, CK_INVALID, "%s (%s): its keys are a list for each input", spec->type, spec->uid);
    if (!keys && (p->op->face->state_count || p->op->timers))
        return ck_fail(err, CK_INVALID,
                       "operator %s (%s) has state or timers, which are of keys: clink_key_by goes "
                       "in front of it",
                       p->op->face->name, spec->uid);
    p->keys = ck_arena_array(a, spec->input_count + 1u, sizeof *p->keys);
    p->columns = ck_arena_array(a, spec->input_count + 1u, sizeof *p->columns);
    p->column_counts = ck_arena_array(a, spec->input_count + 1u, sizeof *p->column_counts);
    if (!p->keys || !p->columns || !p->column_counts) return ck_nomem(err, a->mem, sizeof *p->keys);
    for (uint32_t i = 0; i < spec->input_count; i++) {
        if (keys) CK_TRY(plan_key(p, a, spec, yyjson_arr_get(keys, i), i, err));
        CK_TRY(plan_columns(p, a, spec, columns ? yyjson_arr_get(columns, i) : NULL, i, err));
    }
    return plan_slots(p, a, err);
}

static ck_status process_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots, uint32_t *count,
                               ck_error *err) {
    ck_process_plan *p = CK_ARENA_NEW(a, ck_process_plan);
    if (!p) return ck_nomem(err, a->mem, sizeof *p);
    CK_TRY(ck_process_plan_make(p, a, spec, err));
    ck_slot_schema *all = ck_arena_array(a, p->slot_count + 1u, sizeof *all);
    if (!all) return ck_nomem(err, a->mem, p->slot_count * sizeof *all);
    for (uint32_t i = 0; i < p->slot_count; i++) all[i] = *p->slots[i];
    *slots = all;
    *count = p->slot_count;
    return CK_OK;
}

/* ---- calls of the plugin ---- */

static void count_up(clink_context *c, const char *counter, uint64_t add) {
    ck_op_count(((ck_process *)c->inside)->ctx, counter, add);
}

static const clink_engine_table engine = {.struct_bytes = sizeof engine,
                                          .abi = CLINK_PLUGIN_ABI,
                                          .grow = ck_plugin_grow,
                                          .state_text = ck_process_state_text,
                                          .set_state_text = ck_process_set_state_text,
                                          .output = ck_process_output,
                                          .flush = ck_process_flush,
                                          .values = ck_process_values,
                                          .erase = ck_process_erase,
                                          .entry = ck_process_entry,
                                          .append = ck_process_append,
                                          .erase_entries = ck_process_erase_entries,
                                          .walk = ck_process_walk,
                                          .next = ck_process_next,
                                          .set_timer = ck_process_set_timer,
                                          .count = count_up};

clink_status ck_process_fail(ck_process *p, ck_status s) {
    if (s == CK_OK) return CLINK_OK;
    /* The first failure of ours stands, whatever the plugin makes of it. */
    if (p->ctx->error->status == CK_OK) p->ctx->error->status = s;
    return s == CK_NOMEM ? CLINK_NOMEM : s == CK_INVALID ? CLINK_INVALID : CLINK_FAILED;
}

ck_status ck_process_said(ck_process *p, const char *what, clink_status s) {
    const ck_plugin_operator *op = p->plan.op;
    ck_error *err = p->ctx->error;
    if (err->status != CK_OK) {
        if (!err->msg[0]) return ck_nomem(err, p->mem, 0);
        err->fatal |= err->status == CK_INVALID || err->status == CK_DATA;
        return err->status;
    }
    if (s == CLINK_OK) return CK_OK;
    ck_status st = ck_fail(err, ck_plugin_status(s), "operator %s of plugin %s, %s: %s", op->face->name, op->plugin,
                           what, p->error.message[0] ? p->error.message : "it failed and did not say why");
    err->fatal = st == CK_DATA;
    return st;
}

static void enter(ck_process *p, ck_op_ctx *ctx) {
    p->ctx = ctx;
    ck_error_reset(ctx->error);
    p->error = (clink_error){0};
    p->face = (clink_context){.struct_bytes = sizeof p->face,
                              .subtask = ctx->subtask,
                              .parallelism = ctx->parallelism,
                              .watermark_us = ctx->watermark,
                              .now_us = ck_op_now_us(ctx),
                              .self = p->user,
                              .error = &p->error,
                              .engine = &engine,
                              .inside = p};
}

/* ---- life ---- */

static ck_status make_ports(ck_process *p, ck_error *err) {
    const ck_plugin_operator *op = p->plan.op;
    p->port_count = 1 + op->face->side_count;
    if (!(p->ports = ck_arena_array(&p->arena, p->port_count, sizeof *p->ports)))
        return ck_nomem(err, p->mem, p->port_count * sizeof *p->ports);
    for (uint32_t i = 0; i < p->port_count; i++) {
        ck_process_port *o = &p->ports[i];
        o->process = p;
        o->port = i;
        if (ck_plugin_rows_init(&o->rows, &p->arena, p->mem, i ? &op->sides[i - 1] : op->output, &engine, o) != CK_OK)
            return ck_nomem(err, p->mem, sizeof *o);
    }
    return CK_OK;
}

static ck_status fill(ck_process *p, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_process_plan_make(&p->plan, &p->arena, spec, err));
    const ck_schema *out = p->plan.op->output;
    bool same = spec->schema && spec->schema->field_count == out->field_count;
    for (uint32_t i = 0; same && i < out->field_count; i++)
        same = ck_type_eq(spec->schema->fields[i].type, out->fields[i].type);
    if (!same)
        return ck_fail(err, CK_INVALID, "operator %s (%s) has other columns than the job was made for",
                       p->plan.op->face->name, spec->uid);
    p->reader_count = p->plan.partition_count;
    for (uint32_t i = 0; i < spec->input_count; i++)
        if (p->plan.column_counts[i] > p->reader_count) p->reader_count = p->plan.column_counts[i];
    p->readers = ck_arena_array(&p->arena, p->reader_count + 1u, sizeof *p->readers);
    p->views = ck_arena_array(&p->arena, p->reader_count + 1u, sizeof(clink_column *));
    if (!p->readers || !p->views) return ck_nomem(err, p->mem, p->reader_count * sizeof *p->readers);
    for (uint32_t i = 0; i < p->reader_count; i++) p->views[i] = &p->readers[i].view;
    p->spec = *spec;
    p->ttl.on = p->plan.op->ttl;
    p->said_watermark = CK_WATERMARK_MIN;
    return make_ports(p, err);
}

static void destroy(ck_process *p) {
    if (p->user_open && p->plan.op->face->close) p->plan.op->face->close(p->user);
    ck_process_ports_destroy(p);
    ck_process_timers_destroy(p);
    for (uint32_t i = 0; p->readers && i < p->reader_count; i++) ck_plugin_reader_destroy(&p->readers[i], p->mem);
    ck_bytes_destroy(&p->low);
    ck_bytes_destroy(&p->high);
    ck_arena_destroy(&p->arena);
    ck_free(p->mem, p, sizeof *p);
}

static ck_status process_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_process *p = ck_alloc(mem, sizeof *p);
    if (!p) return ck_nomem(err, mem, sizeof *p);
    *p = (ck_process){.mem = mem};
    ck_arena_init(&p->arena, mem, 64 << 20);
    ck_status s = fill(p, spec, err);
    if (s != CK_OK) {
        destroy(p);
        return s;
    }
    *self = p;
    return CK_OK;
}

static ck_status process_open(void *self, ck_op_ctx *ctx) {
    ck_process *p = self;
    const clink_operator *f = p->plan.op->face;
    enter(p, ctx);
    CK_TRY(ck_process_states_open(p));
    CK_TRY(ck_process_timers_open(p));
    if (f->open) {
        clink_start start = {.struct_bytes = sizeof start,
                             .input_count = p->spec.input_count,
                             .parameters = p->plan.parameters,
                             .uid = ctx->uid,
                             .subtask = ctx->subtask,
                             .parallelism = ctx->parallelism};
        CK_TRY(ck_process_said(p, "open", f->open(&p->user, &start, &p->error)));
    }
    p->user_open = true;
    return CK_OK;
}

static void process_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    destroy(self);
}

/* ---- events ---- */

static ck_status on_batch(ck_process *p, uint32_t input, const ck_batch *b) {
    const ck_process_plan *plan = &p->plan;
    CK_TRY(ck_op_ttl_come(&p->ttl, p->ctx));
    CK_TRY(ck_process_views(p, b, plan->columns[input], plan->column_counts[input], p->spec.inputs[input].schema));
    CK_TRY(ck_process_begin(p, b, plan->keyed ? &plan->keys[input] : NULL));
    clink_rows rows = {b->sel, b->sel_count, b->row_count};
    clink_batch given = {.struct_bytes = sizeof given,
                         .input = input,
                         .column_count = plan->column_counts[input],
                         .columns = p->views,
                         .rows = &rows,
                         .weights = b->weights};
    ck_status s = ck_process_said(p, "on_batch", plan->op->face->on_batch(&p->face, &given));
    if (s == CK_OK) s = ck_process_settle(p);
    if (s == CK_OK) s = ck_process_flush_all(p);
    ck_process_end(p);
    return s;
}

/* A call that is about no rows. */
static ck_status without_rows(ck_process *p, const char *what, clink_status s) {
    ck_status st = ck_process_said(p, what, s);
    if (st == CK_OK) st = ck_process_flush_all(p);
    ck_process_end(p);
    return st;
}

static ck_status on_watermark(ck_process *p, int64_t value) {
    bool more;
    CK_TRY(ck_process_fire(p, false, value, &more));
    if (more) return CK_MORE;
    if (value <= p->said_watermark || !p->plan.op->face->on_watermark) return CK_OK;
    p->said_watermark = value;
    return without_rows(p, "on_watermark", p->plan.op->face->on_watermark(&p->face, value));
}

static ck_status on_end(ck_process *p) {
    bool more;
    if (p->ended_inputs + 1 < p->spec.input_count) {
        p->ended_inputs++;
        return CK_OK;
    }
    CK_TRY(ck_process_fire(p, false, CK_WATERMARK_MAX, &more));
    if (more) return CK_MORE;
    return p->plan.op->face->on_end ? without_rows(p, "on_end", p->plan.op->face->on_end(&p->face)) : CK_OK;
}

static ck_status process_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    ck_process *p = self;
    enter(p, ctx);
    switch (ev->kind) {
    case CK_EVENT_BATCH: return on_batch(p, input, ev->batch);
    case CK_EVENT_WATERMARK: return on_watermark(p, ev->watermark.value);
    case CK_EVENT_END: return on_end(p);
    default: return CK_OK;
    }
}

static int64_t process_next_wake(void *self, ck_op_ctx *ctx) {
    const ck_process *p = self;
    (void)ctx;
    return p->timers[1].table ? ck_partition_timers_first(&p->timers[1].due) : INT64_MAX;
}

static ck_status process_wake(void *self, int64_t now_us, ck_op_ctx *ctx) {
    ck_process *p = self;
    bool more;
    enter(p, ctx);
    CK_TRY(ck_op_ttl_come(&p->ttl, ctx));
    CK_TRY(ck_process_fire(p, true, now_us, &more));
    return CK_OK; /* what is still due wakes it again */
}

static const ck_operator_vtbl vtbl = {.struct_bytes = sizeof vtbl,
                                      .open = process_open,
                                      .on_event = process_event,
                                      .next_wake_us = process_next_wake,
                                      .on_wake = process_wake,
                                      .close = process_close};
const ck_op_desc ck_op_process = {.type = "process", .op = &vtbl, .create = process_create, .slots = process_slots};
