/* A plugin as somebody compiled it with the headers beside it, which stay as they were: it must go on working with every
 * later build of this ABI. A function, an aggregate, an operator with state and timers, a job. */
#include <clink/plugin.h>

static clink_status twice(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        clink_bytes t = clink_text(call->arguments[0], row);
        char *to = clink_text_room(call->out, 2 * t.n);
        if (!to) return CLINK_NOMEM;
        memcpy(to, t.p, t.n);
        memcpy(to + t.n, t.p, t.n);
        clink_text_take(call->out, row, 2 * t.n);
    }
    return CLINK_OK;
}
static const clink_function twice_function = {
    .struct_bytes = sizeof(clink_function), .name = "twice", .arguments = "VARCHAR", .returns = "VARCHAR", .call = twice};

static const clink_field product_state[] = {{"product", "BIGINT"}, {"any", "BOOLEAN"}};
static void multiply(const clink_groups *g, uint32_t i, int64_t by) {
    int64_t before = clink_state_bool(g, i, 1) ? clink_state_i64(g, i, 0) : 1;
    clink_set_state_i64(g, i, 0, before * by);
    clink_set_state_bool(g, i, 1, 1);
}
static clink_status add(const clink_groups *g, const clink_column *values, const uint16_t *at, const int8_t *weights,
                        clink_error *error) {
    (void)weights, (void)error;
    for (uint32_t i = 0; i < g->count; i++) multiply(g, i, clink_i64(values, at ? at[i] : i));
    return CLINK_OK;
}
static clink_status merge(const clink_groups *to, const clink_groups *from, clink_error *error) {
    (void)error;
    for (uint32_t i = 0; i < to->count; i++)
        if (clink_state_bool(from, i, 1)) multiply(to, i, clink_state_i64(from, i, 0));
    return CLINK_OK;
}
static clink_status result(const clink_groups *g, clink_writer *out, clink_error *error) {
    (void)error;
    for (uint32_t i = 0; i < g->count; i++) clink_set_i64(out, i, clink_state_i64(g, i, 0));
    return CLINK_OK;
}
static const clink_aggregate product = {.struct_bytes = sizeof(clink_aggregate),
                                        .state_count = 2,
                                        .name = "product",
                                        .argument = "BIGINT",
                                        .returns = "BIGINT",
                                        .state = product_state,
                                        .add = add,
                                        .merge = merge,
                                        .result = result};

static const clink_field count_fields[] = {{"n", "BIGINT"}};
static const clink_state count = {
    .struct_bytes = sizeof(clink_state), .kind = CLINK_VALUE, .name = "count", .field_count = 1, .fields = count_fields};
static const clink_state *const states[] = {&count};
static clink_status on_batch(clink_context *c, const clink_batch *b) {
    clink_groups g;
    clink_status s = clink_values(c, 0, 1, &g, NULL);
    for (uint32_t k = 0; s == CLINK_OK && k < b->rows->count; k++) {
        clink_set_state_i64(&g, k, 0, clink_state_i64(&g, k, 0) + 1);
        s = clink_set_timer(c, k, INT64_MAX - 1);
    }
    return s;
}
static clink_status on_timers(clink_context *c, const clink_timers *t) {
    clink_groups g;
    clink_emitter *out = clink_out(c, 0);
    clink_status s = clink_values(c, 0, 0, &g, NULL);
    for (uint32_t k = 0; s == CLINK_OK && k < t->count; k++) {
        uint32_t row;
        if ((s = clink_add_row(out, &row)) != CLINK_OK) break;
        clink_set_i64(out->columns[0], row, clink_i64(t->keys[0], k));
        clink_set_i64(out->columns[1], row, clink_state_i64(&g, k, 0));
    }
    return s;
}
static const clink_field in_fields[] = {{"k", "BIGINT"}};
static const clink_columns in = {in_fields, 1};
static const clink_field out_fields[] = {{"k", "BIGINT"}, {"n", "BIGINT NOT NULL"}};
static const clink_operator counter = {.struct_bytes = sizeof(clink_operator),
                                       .name = "counter",
                                       .inputs = &in,
                                       .output = {out_fields, 2},
                                       .state_count = 1,
                                       .states = states,
                                       .on_batch = on_batch,
                                       .on_timers = on_timers};

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(b, "CREATE TABLE r (k BIGINT) WITH (connector = 'file', format = 'json', path = 'r.ndjson');"
                    "CREATE TABLE o (k BIGINT, n BIGINT) WITH (connector = 'file', format = 'json', path = 'o')");
    clink_stream *r = clink_key_by(clink_query(b, "SELECT k FROM r WHERE twice('x') = 'xx'"), "k");
    clink_insert(clink_process(r, "counter", "counter", ""), "o");
    return CLINK_OK;
}
static const clink_job_description job = {.struct_bytes = sizeof(clink_job_description), .name = "golden", .build = build};

static const clink_function *const functions[] = {&twice_function, NULL};
static const clink_aggregate *const aggregates[] = {&product, NULL};
static const clink_operator *const operators[] = {&counter, NULL};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin),
                                    .abi = CLINK_PLUGIN_ABI,
                                    .name = "golden",
                                    .version = "1.0",
                                    .functions = functions,
                                    .aggregates = aggregates,
                                    .operators = operators,
                                    .jobs = jobs};
CLINK_PLUGIN(plugin)
