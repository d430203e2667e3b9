/* An operator with each kind of state and of timer, whose result does not depend on when what arrives: windows of ten
 * seconds, totals, and shares that the clock hands out and that come to the totals. The kill matrix runs it. */
#include <clink/plugin.h>
#include <stdlib.h>

#define TRY(e) do { clink_status s_ = (e); if (s_ != CLINK_OK) return s_; } while (0)

enum { TOTAL, WINDOWS, SHARES }; /* states */
enum { K, V, TS };               /* of the input */
#define WINDOW_US 10000000
#define SHARE_US 3000
#define END_OF_TIME_US 4000000000000000

static const clink_field total_fields[] = {{"n", "BIGINT"}, {"s", "BIGINT"}, {"name", "VARCHAR"}};
static const clink_field window_fields[] = {{"start", "BIGINT"}, {"n", "BIGINT"}, {"s", "BIGINT"}};
static const clink_field share_fields[] = {{"v", "BIGINT"}};
static const clink_state total = {.struct_bytes = sizeof(clink_state), .kind = CLINK_VALUE, .name = "total", .field_count = 3, .fields = total_fields};
static const clink_state windows = {.struct_bytes = sizeof(clink_state), .kind = CLINK_MAP, .name = "windows", .field_count = 3, .fields = window_fields};
static const clink_state shares = {.struct_bytes = sizeof(clink_state), .kind = CLINK_LIST, .name = "shares", .field_count = 1, .fields = share_fields};
static const clink_state *const states[] = {&total, &windows, &shares};

static clink_status on_rows(clink_context *c, const clink_batch *b) {
    clink_groups t, e;
    TRY(clink_values(c, TOTAL, 1, &t, NULL));
    for (CLINK_EACH(b->rows, k, row)) {
        int64_t v = clink_i64(b->columns[V], row), ts = clink_i64(b->columns[TS], row);
        clink_key window = {.i64 = ts - ts % WINDOW_US};
        clink_set_state_i64(&t, k, 0, clink_state_i64(&t, k, 0) + 1);
        clink_set_state_i64(&t, k, 1, clink_state_i64(&t, k, 1) + v);
        clink_bytes name = clink_text(b->columns[K], row);
        TRY(clink_set_state_text(&t, k, 2, name.p, name.n));
        TRY(clink_entry(c, WINDOWS, k, &window, 1, &e));
        clink_set_state_i64(&e, 0, 1, clink_state_i64(&e, 0, 1) + 1);
        clink_set_state_i64(&e, 0, 2, clink_state_i64(&e, 0, 2) + v);
        TRY(clink_append(c, SHARES, k, &e));
        clink_set_state_i64(&e, 0, 0, v);
        TRY(clink_set_timer(c, k, window.i64 + WINDOW_US));
        TRY(clink_set_timer(c, k, END_OF_TIME_US));
        TRY(clink_set_clock_timer(c, k, c->now_us - c->now_us % SHARE_US + SHARE_US));
    }
    return CLINK_OK;
}

static clink_status emit(clink_context *c, const char *kind, clink_bytes name, int64_t at, int64_t n, int64_t s) {
    clink_emitter *out = clink_out(c, 0);
    uint32_t row;
    TRY(clink_add_row(out, &row));
    TRY(clink_set_text(out->columns[0], row, kind, strlen(kind)));
    TRY(clink_set_text(out->columns[1], row, name.p, name.n));
    clink_set_i64(out->columns[2], row, at);
    clink_set_i64(out->columns[3], row, n);
    clink_set_i64(out->columns[4], row, s);
    return CLINK_OK;
}

/* What has come since the last time. */
static clink_status hand_out(clink_context *c, uint32_t k, clink_bytes name) {
    clink_groups e;
    int64_t n = 0, s = 0;
    TRY(clink_walk(c, SHARES, k, NULL, NULL));
    for (; clink_next(c, NULL, &e); n++) s += clink_state_i64(&e, 0, 0);
    if (!n) return CLINK_OK;
    TRY(clink_erase_entries(c, SHARES, k, NULL, NULL));
    return emit(c, "share", name, 0, n, s);
}

static clink_status on_timers(clink_context *c, const clink_timers *timers) {
    clink_groups t, e;
    TRY(clink_values(c, TOTAL, 0, &t, NULL));
    for (uint32_t k = 0; k < timers->count; k++) {
        clink_bytes name = clink_text(timers->keys[0], k);
        if (timers->processing) {
            TRY(hand_out(c, k, name));
        } else if (timers->times_us[k] == END_OF_TIME_US) {
            TRY(hand_out(c, k, name));
            clink_bytes kept = clink_state_text(&t, k, 2);
            TRY(emit(c, "total", kept, 0, clink_state_i64(&t, k, 0), clink_state_i64(&t, k, 1)));
        } else {
            clink_key window = {.i64 = timers->times_us[k] - WINDOW_US}, next = {.i64 = timers->times_us[k]};
            TRY(clink_entry(c, WINDOWS, k, &window, 0, &e));
            if (!e.states[0]) return clink_fail(c->error, CLINK_DATA, "a timer of a window that is not there");
            TRY(emit(c, "window", name, window.i64, clink_state_i64(&e, 0, 1), clink_state_i64(&e, 0, 2)));
            TRY(clink_erase_entries(c, WINDOWS, k, &window, &next));
        }
    }
    return CLINK_OK;
}

static const clink_field in_fields[] = {{"k", "VARCHAR NOT NULL"}, {"v", "BIGINT NOT NULL"}, {"ts", "TIMESTAMP(3) NOT NULL"}};
static const clink_columns in = {in_fields, 3};
static const clink_field out_fields[] = {
    {"kind", "VARCHAR NOT NULL"}, {"k", "VARCHAR NOT NULL"}, {"at", "BIGINT NOT NULL"}, {"n", "BIGINT NOT NULL"}, {"s", "BIGINT NOT NULL"}};
static const clink_operator tumbles = {.struct_bytes = sizeof(clink_operator), .name = "tumbles", .inputs = &in, .output = {out_fields, 5},
                                       .state_count = 3, .states = states, .on_batch = on_rows, .on_timers = on_timers};

/* RATE: rows a second, "" as many as come. */
static clink_status build(clink_job_builder *b, clink_error *error) {
    const char *rate = getenv("RATE");
    char tables[1024];
    (void)error;
    snprintf(tables, sizeof tables,
             "CREATE TABLE src (k VARCHAR NOT NULL, v BIGINT NOT NULL, ts TIMESTAMP(3) NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
             " WITH (connector = 'file', format = 'json', path = 'in.ndjson'%s%s%s);"
             "CREATE TABLE snk (kind VARCHAR, k VARCHAR, at BIGINT, n BIGINT, s BIGINT) WITH (connector = 'file', format = 'csv', path = 'out')",
             rate && *rate ? ", rate_limit = '" : "", rate ? rate : "", rate && *rate ? "'" : "");
    clink_define(b, tables);
    clink_insert(clink_process(clink_key_by(clink_query(b, "SELECT k, v, ts FROM src"), "k"), "tumbles", "tumbles", ""), "snk");
    return CLINK_OK;
}

static const clink_job_description job = {.struct_bytes = sizeof(clink_job_description), .name = "tumbles", .build = build};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_operator *const operators[] = {&tumbles, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI, .name = "tumbles", .version = "1", .operators = operators, .jobs = jobs};
CLINK_PLUGIN(plugin)
