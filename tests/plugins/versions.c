/* One job in three versions of its state: -DV=1 counts; 2 has a sum beside the count, and another name for the slot; 3
 * sums in DOUBLE. SLOT and FIELD: under other names than it had, and nothing says so; -DMORE: with one state more. */
#include <clink/plugin.h>

#ifndef SLOT
#define SLOT (V == 1 ? "counts" : "totals")
#endif
#ifndef FIELD
#define FIELD "n"
#endif

static clink_status one_to_two(clink_bytes value, clink_migrated *to, clink_error *error) {
    int64_t n, none = 0;
    if (value.n != 8) return clink_fail(error, CLINK_CORRUPT, "a count of %zu bytes", value.n);
    memcpy(&n, value.p, 8);
#ifdef FAILS
    if (n > 1) return clink_fail(error, CLINK_REFUSED, "%lld is too many", (long long)n);
#endif
    clink_status s = to->append(to, &n, 8);
    return s == CLINK_OK ? to->append(to, &none, 8) : s;
}
static clink_status two_to_three(clink_bytes value, clink_migrated *to, clink_error *error) {
    int64_t both[2];
    double sum;
    (void)error;
    memcpy(both, value.p, 16);
    sum = (double)both[1] + 0.5; /* so that it can be told */
    clink_status s = to->append(to, both, 8);
    return s == CLINK_OK ? to->append(to, &sum, 8) : s;
}
static const clink_migration steps[] = {
    {.struct_bytes = sizeof(clink_migration), .from = 1, .to = 2, .state_type = "counting", .step = one_to_two},
    {.struct_bytes = sizeof(clink_migration), .from = 2, .to = 3, .state_type = "counting", .step = two_to_three}};
static const clink_rename slot = {.struct_bytes = sizeof(clink_rename), .state_type = "counting", .slot = "totals", .from = "counts"};
#if V > 1 && !defined(NO_STEPS)
static const clink_migration *const migrations[] = {&steps[0], &steps[1], NULL};
#else
static const clink_migration *const migrations[] = {NULL, &steps[0]};
#endif
static const clink_rename *const renames[] = {&slot, NULL};

static const clink_field fields[] = {{FIELD, "BIGINT"}, {"sum", V == 3 ? "DOUBLE" : "BIGINT"}};
static const clink_state state = {.struct_bytes = sizeof(clink_state), .kind = CLINK_VALUE, .name = SLOT, .type = "counting",
                                  .version = V, .field_count = V == 1 ? 1 : 2, .fields = fields};
static const clink_state more = {.struct_bytes = sizeof(clink_state), .kind = CLINK_VALUE, .name = "more", .field_count = 1, .fields = fields};
static const clink_state *const states[] = {&state, &more};
#ifdef MORE
#define STATES 2
#else
#define STATES 1
#endif

static clink_status on_batch(clink_context *c, const clink_batch *b) {
    clink_groups g;
    clink_emitter *out = clink_out(c, 0);
    clink_status s = clink_values(c, 0, 1, &g, NULL);
    for (CLINK_EACH(b->rows, k, row)) {
        uint32_t to;
        int64_t x = clink_i64(b->columns[1], row);
        if (s != CLINK_OK || (s = clink_add_row(out, &to)) != CLINK_OK) return s;
        clink_set_state_i64(&g, k, 0, clink_state_i64(&g, k, 0) + 1);
        clink_set_i64(out->columns[0], to, clink_i64(b->columns[0], row));
        clink_set_i64(out->columns[1], to, clink_state_i64(&g, k, 0));
        clink_set_f64(out->columns[2], to, 0);
        if (V == 2) clink_set_state_i64(&g, k, 1, clink_state_i64(&g, k, 1) + x), clink_set_f64(out->columns[2], to, (double)clink_state_i64(&g, k, 1));
        if (V == 3) clink_set_state_f64(&g, k, 1, clink_state_f64(&g, k, 1) + (double)x), clink_set_f64(out->columns[2], to, clink_state_f64(&g, k, 1));
    }
    return s;
}
static const clink_field in_fields[] = {{"k", "BIGINT"}, {"x", "BIGINT"}};
static const clink_columns in = {in_fields, 2};
static const clink_field out_fields[] = {{"k", "BIGINT"}, {"n", "BIGINT"}, {"sum", "DOUBLE"}};
static const clink_operator counter = {.struct_bytes = sizeof(clink_operator), .name = "counter", .inputs = &in, .output = {out_fields, 3}, .state_count = STATES, .states = states, .on_batch = on_batch};

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(b, "CREATE TABLE r (k BIGINT, x BIGINT) WITH (connector = 'file', format = 'json', path = 'r.ndjson', follow = 'true');"
                    "CREATE TABLE o (k BIGINT, n BIGINT, sum DOUBLE) WITH (connector = 'file', format = 'json', path = 'o')");
    clink_insert(clink_process(clink_key_by(clink_query(b, "SELECT k, x FROM r"), "k"), "counter", "counter", ""), "o");
    return CLINK_OK;
}
static const clink_job_description job = {.struct_bytes = sizeof(clink_job_description), .name = "versions", .build = build};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_operator *const operators[] = {&counter, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI, .name = "versions", .version = "1", .operators = operators, .jobs = jobs,
                                    .migrations = migrations, .renames = renames};
CLINK_PLUGIN(plugin)
