/* A job in a plugin: which devices have gone quiet? A source and a sink of its own (plugin_quiet_tables.c), and between
 * them an operator with state and timers for each device.
 *
 *     cc -O2 -shared -fPIC -Iinclude -o quiet.so examples/plugin_quiet.c examples/plugin_quiet_tables.c
 *     mkdir quiet; clink run --job quiet.so --checkpoint-dir ck -p 2
 *
 * reads the files of readings/ and writes into quiet/. Killed and started again it goes on, at any -p. */
#include <clink/plugin.h>
#include <stdlib.h>

/* ---- the operator ---- */

enum { LAST }; /* states */
enum { TS, COUNT };
static const clink_field last_fields[] = {{"ts_us", "BIGINT"}, {"readings", "BIGINT"}};
static const clink_state last = {.struct_bytes = sizeof(clink_state),
                                 .kind = CLINK_VALUE,
                                 .name = "last",
                                 .version = 1,
                                 .field_count = 2,
                                 .fields = last_fields};
static const clink_state *const states[] = {&last};

/* What the job gives as parameters: how long is quiet. */
static clink_status open_quiet(void **self, const clink_start *start, clink_error *error) {
    char *end;
    int64_t *after_us = malloc(sizeof *after_us);
    if (!after_us) return clink_fail(error, CLINK_NOMEM, "no memory");
    *after_us = strtoll(start->parameters, &end, 10) * 1000;
    if (*end || *after_us <= 0) {
        free(after_us);
        return clink_fail(error, CLINK_INVALID, "its parameter is a number of milliseconds, not '%s'",
                          start->parameters);
    }
    *self = after_us;
    return CLINK_OK;
}

static clink_status on_readings(clink_context *c, const clink_batch *batch) {
    const int64_t after_us = *(const int64_t *)c->self;
    clink_groups devices;
    clink_status s = clink_values(c, LAST, 1, &devices, NULL);
    if (s != CLINK_OK) return s;
    for (CLINK_EACH(batch->rows, k, row)) {
        int64_t ts = clink_i64(batch->columns[1], row), before = clink_state_i64(&devices, k, TS);
        int64_t n = clink_state_i64(&devices, k, COUNT);
        clink_set_state_i64(&devices, k, COUNT, n + 1);
        if (n && ts <= before) continue; /* out of order: it says nothing new */
        if (n) s = clink_clear_timer(c, k, before + after_us);
        if (s == CLINK_OK) s = clink_set_timer(c, k, ts + after_us);
        if (s != CLINK_OK) return s;
        clink_set_state_i64(&devices, k, TS, ts);
    }
    return CLINK_OK;
}

static clink_status on_quiet(clink_context *c, const clink_timers *timers) {
    clink_emitter *out = clink_out(c, 0);
    clink_groups devices;
    uint32_t row;
    clink_status s = out ? clink_values(c, LAST, 0, &devices, NULL) : CLINK_NOMEM;
    for (uint32_t k = 0; s == CLINK_OK && k < timers->count; k++) {
        if ((s = clink_add_row(out, &row)) != CLINK_OK) break;
        if (clink_is_null(timers->keys[0], k)) {
            clink_set_null(out->columns[0], row);
        } else {
            clink_bytes device = clink_text(timers->keys[0], k);
            s = clink_set_text(out->columns[0], row, device.p, device.n);
        }
        clink_set_i64(out->columns[1], row, clink_state_i64(&devices, k, TS));
        clink_set_i64(out->columns[2], row, clink_state_i64(&devices, k, COUNT));
        if (s == CLINK_OK) s = clink_erase(c, LAST, k); /* it begins anew when it speaks again */
    }
    return s;
}

static const clink_field in_fields[] = {{"device", "VARCHAR"}, {"ts", "TIMESTAMP(3) NOT NULL"}};
static const clink_columns in = {in_fields, 2};
static const clink_field out_fields[] = {
    {"device", "VARCHAR"}, {"last_seen", "TIMESTAMP(3) NOT NULL"}, {"readings", "BIGINT NOT NULL"}};
static const clink_operator quiet = {.struct_bytes = sizeof(clink_operator),
                                     .name = "quiet",
                                     .inputs = &in,
                                     .output = {out_fields, 3},
                                     .state_count = 1,
                                     .states = states,
                                     .open = open_quiet,
                                     .on_batch = on_readings,
                                     .on_timers = on_quiet,
                                     .close = free,
                                     .summary = "Keys that have had no row for so many milliseconds."};

/* ---- the job ---- */

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(b, "CREATE TABLE readings (device VARCHAR, ts TIMESTAMP(3) NOT NULL, value DOUBLE,"
                    "                       WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
                    "  WITH (connector = 'quiet_files', path = 'readings');"
                    "CREATE TABLE quiet (device VARCHAR, last_seen TIMESTAMP(3), readings BIGINT)"
                    "  WITH (connector = 'quiet_files', path = 'quiet')");
    clink_stream *readings = clink_query(b, "SELECT device, ts FROM readings WHERE value IS NOT NULL");
    clink_insert(clink_process(clink_key_by(readings, "device"), "quiet-devices", "quiet", "60000"), "quiet");
    return CLINK_OK;
}

static const clink_job_description job = {.struct_bytes = sizeof(clink_job_description),
                                          .name = "quiet",
                                          .build = build,
                                          .summary = "Devices that have said nothing for a minute."};

extern const clink_connector quiet_files;
static const clink_connector *const connectors[] = {&quiet_files, NULL};
static const clink_operator *const operators[] = {&quiet, NULL};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin),
                                    .abi = CLINK_PLUGIN_ABI,
                                    .name = "quiet",
                                    .version = "1.0",
                                    .operators = operators,
                                    .jobs = jobs,
                                    .connectors = connectors};
CLINK_PLUGIN(plugin)
