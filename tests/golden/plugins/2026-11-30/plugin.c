/* A job of a plugin with everything that a checkpoint keeps of one: positions of its source, committables of its sink,
 * a value, a map and a list for each key, and timers. It is compiled with the header that stands beside it. */
#include <clink/plugin.h>

enum { VALUE, MINUTES, VALUES };
enum { TS, COUNT, TEXT, ODD, SUM };
static const clink_field value_fields[] = {
    {"ts_us", "BIGINT"}, {"readings", "BIGINT"}, {"text", "VARCHAR"}, {"odd", "BOOLEAN"}, {"sum", "DOUBLE"}};
static const clink_field minute_fields[] = {{"minute", "BIGINT"}, {"readings", "BIGINT"}};
static const clink_field list_fields[] = {{"value", "DOUBLE"}};
static const clink_state value = {.struct_bytes = sizeof(clink_state),
                                  .kind = CLINK_VALUE,
                                  .name = "device",
                                  .version = 1,
                                  .field_count = 5,
                                  .fields = value_fields};
static const clink_state minutes = {.struct_bytes = sizeof(clink_state),
                                    .kind = CLINK_MAP,
                                    .name = "minutes",
                                    .version = 1,
                                    .field_count = 2,
                                    .fields = minute_fields};
static const clink_state values = {.struct_bytes = sizeof(clink_state),
                                   .kind = CLINK_LIST,
                                   .name = "all_values",
                                   .version = 1,
                                   .field_count = 1,
                                   .fields = list_fields};
static const clink_state *const states[] = {&value, &minutes, &values};

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        clink_status s_ = (call);                                                                                      \
        if (s_ != CLINK_OK) return s_;                                                                                 \
    } while (0)

static clink_status on_readings(clink_context *c, const clink_batch *batch) {
    clink_groups devices, entry;
    TRY(clink_values(c, VALUE, 1, &devices, NULL));
    for (CLINK_EACH(batch->rows, k, row)) {
        int64_t ts = clink_i64(batch->columns[1], row), n = clink_state_i64(&devices, k, COUNT);
        clink_key minute = {ts / 60000000, {NULL, 0}};
        TRY(clink_entry(c, MINUTES, k, &minute, 1, &entry));
        clink_set_state_i64(&entry, 0, 1, clink_state_i64(&entry, 0, 1) + 1);
        TRY(clink_append(c, VALUES, k, &entry));
        clink_set_state_f64(&entry, 0, 0, clink_f64(batch->columns[2], row));
        clink_set_state_i64(&devices, k, TS, ts);
        clink_set_state_i64(&devices, k, COUNT, n + 1);
        clink_set_state_bool(&devices, k, ODD, !clink_state_bool(&devices, k, ODD));
        clink_set_state_f64(&devices, k, SUM, clink_state_f64(&devices, k, SUM) + clink_f64(batch->columns[2], row));
        TRY(clink_set_state_text(&devices, k, TEXT, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", (size_t)(n % 30)));
        TRY(clink_set_timer(c, k, ts + 60000000));
    }
    return CLINK_OK;
}

/* Of all that is kept of a device: the number says it all again. */
static clink_status on_quiet(clink_context *c, const clink_timers *timers) {
    clink_emitter *out = clink_out(c, 0);
    clink_groups devices, entry;
    uint32_t row;
    TRY(clink_values(c, VALUE, 0, &devices, NULL));
    for (uint32_t k = 0; k < timers->count; k++) {
        if (!devices.states[k] || timers->times_us[k] != clink_state_i64(&devices, k, TS) + 60000000) continue;
        int64_t of_minutes = 0, of_values = 0, n = clink_state_i64(&devices, k, COUNT);
        double sum = 0;
        clink_key key;
        TRY(clink_walk(c, MINUTES, k, NULL, NULL));
        while (clink_next(c, &key, &entry)) of_minutes += 1 + 0 * key.i64;
        TRY(clink_walk(c, VALUES, k, NULL, NULL));
        while (clink_next(c, NULL, &entry)) of_values++, sum += clink_state_f64(&entry, 0, 0);
        int good = clink_state_bool(&devices, k, ODD) == n % 2 &&
                   clink_state_text(&devices, k, TEXT).n == (size_t)((n - 1) % 30) &&
                   clink_state_f64(&devices, k, SUM) == sum;
        clink_bytes device = clink_text(timers->keys[0], k);
        TRY(clink_add_row(out, &row));
        TRY(clink_set_text(out->columns[0], row, device.p, device.n));
        clink_set_i64(out->columns[1], row, clink_state_i64(&devices, k, TS));
        clink_set_i64(out->columns[2], row, good ? n + 1000 * of_minutes + 1000000 * of_values : -1);
        TRY(clink_erase(c, VALUE, k));
        TRY(clink_erase_entries(c, MINUTES, k, NULL, NULL));
        TRY(clink_erase_entries(c, VALUES, k, NULL, NULL));
    }
    return CLINK_OK;
}

static const clink_field in_fields[] = {
    {"device", "VARCHAR NOT NULL"}, {"ts", "TIMESTAMP(3) NOT NULL"}, {"value", "DOUBLE NOT NULL"}};
static const clink_columns in = {in_fields, 3};
static const clink_field out_fields[] = {
    {"device", "VARCHAR NOT NULL"}, {"last_seen", "TIMESTAMP(3) NOT NULL"}, {"readings", "BIGINT NOT NULL"}};
static const clink_operator everything = {.struct_bytes = sizeof(clink_operator),
                                          .name = "everything",
                                          .inputs = &in,
                                          .output = {out_fields, 3},
                                          .state_count = 3,
                                          .states = states,
                                          .on_batch = on_readings,
                                          .on_timers = on_quiet};

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(
        b, "CREATE TABLE readings (device VARCHAR, ts TIMESTAMP(3) NOT NULL, value DOUBLE, WATERMARK FOR ts AS ts)"
           "  WITH (connector = 'quiet_files', path = 'in');"
           "CREATE TABLE quiet (device VARCHAR, last_seen TIMESTAMP(3), readings BIGINT)"
           "  WITH (connector = 'quiet_files', path = 'out')");
    clink_stream *r =
        clink_query(b, "SELECT COALESCE(device, '') AS device, ts, COALESCE(value, 0) AS value FROM readings");
    clink_insert(clink_process(clink_key_by(r, "device"), "everything", "everything", ""), "quiet");
    return CLINK_OK;
}
static const clink_job_description job = {
    .struct_bytes = sizeof(clink_job_description), .name = "golden", .build = build};

extern const clink_connector quiet_files;
static const clink_connector *const connectors[] = {&quiet_files, NULL};
static const clink_operator *const operators[] = {&everything, NULL};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin),
                                    .abi = CLINK_PLUGIN_ABI,
                                    .name = "golden",
                                    .version = "1.0",
                                    .operators = operators,
                                    .jobs = jobs,
                                    .connectors = connectors};
CLINK_PLUGIN(plugin)
