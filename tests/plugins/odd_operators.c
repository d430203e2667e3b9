/* Operators that tests look at from all sides, and some that do what they should not; the job is chosen with -DJOB. */
#include <clink/plugin.h>
#include <stdlib.h>

/* ---- counts: value, map and list state at once, and what is in them at the end ---- */

static const clink_field value_fields[] = {{"n", "BIGINT"}, {"sum", "DOUBLE"}, {"text", "VARCHAR"}, {"odd", "BOOLEAN"}};
static const clink_field map_fields[] = {{"x", "BIGINT"}, {"n", "BIGINT"}};
static const clink_field list_fields[] = {{"text", "VARCHAR"}};
static const clink_state value_state = {.struct_bytes = sizeof(clink_state), .kind = CLINK_VALUE, .name = "value", .field_count = 4, .fields = value_fields};
static const clink_state map_state = {.struct_bytes = sizeof(clink_state), .kind = CLINK_MAP, .name = "map", .field_count = 2, .fields = map_fields};
static const clink_state list_state = {.struct_bytes = sizeof(clink_state), .kind = CLINK_LIST, .name = "list", .field_count = 1, .fields = list_fields};
static const clink_state *const all_states[] = {&value_state, &map_state, &list_state};

#define TRY(e) do { clink_status s_ = (e); if (s_ != CLINK_OK) return s_; } while (0)

/* Rows (k, x, t, ts): x negative erases what it names; x = 0 erases the value; a list holds at most five. */
static clink_status counts_batch(clink_context *c, const clink_batch *b) {
    clink_groups v, e;
    TRY(clink_values(c, 0, 1, &v, NULL));
    for (CLINK_EACH(b->rows, k, row)) {
        int64_t x = clink_i64(b->columns[1], row);
        clink_bytes t = clink_text(b->columns[2], row);
        clink_key key = {.i64 = x < 0 ? -x : x}, next = {.i64 = key.i64 + 1};
        if (x == 0) {
            TRY(clink_erase(c, 0, k));
        } else {
            clink_set_state_i64(&v, k, 0, clink_state_i64(&v, k, 0) + 1);
            clink_set_state_f64(&v, k, 1, clink_state_f64(&v, k, 1) + (double)x / 2);
            clink_bytes old = clink_state_text(&v, k, 2);
            if (t.n > old.n) TRY(clink_set_state_text(&v, k, 2, t.p, t.n));
            clink_set_state_bool(&v, k, 3, !clink_state_bool(&v, k, 3));
        }
        if (x < 0) {
            TRY(clink_erase_entries(c, 1, k, &key, &next));
        } else {
            TRY(clink_entry(c, 1, k, &key, 1, &e));
            clink_set_state_i64(&e, 0, 1, clink_state_i64(&e, 0, 1) + 1);
        }
        TRY(clink_append(c, 2, k, &e));
        TRY(clink_set_state_text(&e, 0, 0, t.p, t.n));
        int n = 0;
        clink_key first = {0}, at;
        TRY(clink_walk(c, 2, k, NULL, NULL));
        while (clink_next(c, &at, &e))
            if (n++ == 0) first = at;
        clink_key second = {.i64 = first.i64 + 1};
        if (n > 5) TRY(clink_erase_entries(c, 2, k, NULL, &second));
        TRY(clink_set_timer(c, k, 4000000000000000));
        if (x % 7 == 0) TRY(clink_clear_timer(c, k, 4000000000000000));
        TRY(clink_set_timer(c, k, 4000000000000001));
    }
    return CLINK_OK;
}

/* Once a key, at the end of time: "n|sum|text|odd|x=n,...|a,b,..." */
static clink_status counts_timers(clink_context *c, const clink_timers *t) {
    clink_groups v, e;
    clink_emitter *out = clink_out(c, 0), *side = clink_out(c, 1);
    TRY(clink_values(c, 0, 0, &v, NULL));
    for (uint32_t k = 0; k < t->count; k++) {
        uint32_t row;
        char text[4096];
        int n = 0;
        if (t->times_us[k] != 4000000000000001) {
            TRY(clink_add_row(side, &row));
            clink_set_i64(side->columns[0], row, clink_i64(t->keys[0], k));
            continue;
        }
        if (v.states[k]) {
            clink_bytes s = clink_state_text(&v, k, 2);
            n = snprintf(text, sizeof text, "%lld|%.1f|%.*s|%d|", (long long)clink_state_i64(&v, k, 0), clink_state_f64(&v, k, 1), (int)s.n, s.p, clink_state_bool(&v, k, 3));
        } else {
            n = snprintf(text, sizeof text, "none|");
        }
        clink_key key;
        TRY(clink_walk(c, 1, k, NULL, NULL));
        while (clink_next(c, &key, &e)) n += snprintf(text + n, sizeof text - (size_t)n, "%lld=%lld,", (long long)key.i64, (long long)clink_state_i64(&e, 0, 1));
        n += snprintf(text + n, sizeof text - (size_t)n, "|");
        TRY(clink_walk(c, 2, k, NULL, NULL));
        while (clink_next(c, NULL, &e)) {
            clink_bytes s = clink_state_text(&e, 0, 0);
            n += snprintf(text + n, sizeof text - (size_t)n, "%.*s,", (int)s.n, s.p);
        }
        TRY(clink_add_row(out, &row));
        clink_set_i64(out->columns[0], row, clink_i64(t->keys[0], k));
        TRY(clink_set_text(out->columns[1], row, text, (size_t)n));
        clink_count(c, "keys_said", 1);
    }
    return CLINK_OK;
}

static const clink_field kxt[] = {{"k", "BIGINT NOT NULL"}, {"x", "BIGINT NOT NULL"}, {"t", "VARCHAR NOT NULL"}};
static const clink_columns counts_in = {kxt, 3};
static const clink_field counts_out[] = {{"k", "BIGINT NOT NULL"}, {"said", "VARCHAR NOT NULL"}};
static const clink_field side_out[] = {{"k", "BIGINT"}};
static const clink_columns counts_sides = {side_out, 1};
static const clink_operator counts = {.struct_bytes = sizeof(clink_operator), .name = "counts", .inputs = &counts_in, .output = {counts_out, 2}, .sides = &counts_sides, .side_count = 1,
                                      .state_count = 3, .states = all_states, .on_batch = counts_batch, .on_timers = counts_timers};

/* ---- pairs: two inputs, not keyed; doubles every row, so that emitters fill up ---- */

static clink_status pairs_batch(clink_context *c, const clink_batch *b) {
    clink_emitter *out = clink_out(c, 0);
    for (CLINK_EACH(b->rows, k, row))
        for (int i = 0; i < 2; i++) {
            uint32_t to;
            TRY(clink_add_row(out, &to));
            clink_set_i64(out->columns[0], to, clink_i64(b->columns[0], row));
            clink_set_i64(out->columns[1], to, b->input);
        }
    return CLINK_OK;
}
static const clink_field one_k[] = {{"k", "BIGINT NOT NULL"}};
static const clink_columns pairs_in[] = {{one_k, 1}, {one_k, 1}};
static const clink_field pairs_out[] = {{"k", "BIGINT NOT NULL"}, {"input", "INTEGER NOT NULL"}};
static const clink_operator pairs = {.struct_bytes = sizeof(clink_operator), .input_count = 2, .name = "pairs", .inputs = pairs_in, .output = {pairs_out, 2}, .on_batch = pairs_batch};

/* ---- ticks: a timer of the clock for each key ---- */

static clink_status ticks_batch(clink_context *c, const clink_batch *b) {
    for (uint32_t k = 0; k < b->rows->count; k++) TRY(clink_set_clock_timer(c, k, c->now_us + 1000));
    return CLINK_OK;
}
static clink_status ticks_timers(clink_context *c, const clink_timers *t) {
    clink_emitter *out = clink_out(c, 0);
    for (uint32_t k = 0; k < t->count; k++) {
        uint32_t to;
        TRY(clink_add_row(out, &to));
        clink_set_i64(out->columns[0], to, clink_i64(t->keys[0], k));
        clink_set_i64(out->columns[1], to, t->processing && c->now_us >= t->times_us[k]);
    }
    return CLINK_OK;
}
static const clink_operator ticks = {.struct_bytes = sizeof(clink_operator), .name = "ticks", .inputs = pairs_in, .output = {pairs_out, 2}, .on_batch = ticks_batch, .on_timers = ticks_timers};

/* ---- what they should not ---- */

static clink_status fails_batch(clink_context *c, const clink_batch *b) { (void)b; return clink_fail(c->error, CLINK_DATA, "the moon is full"); }
static clink_status null_batch(clink_context *c, const clink_batch *b) {
    clink_emitter *out = clink_out(c, 0);
    uint32_t to;
    (void)b;
    TRY(clink_add_row(out, &to));
    clink_set_null(out->columns[0], to);
    return CLINK_OK;
}
static clink_status no_state_batch(clink_context *c, const clink_batch *b) { clink_groups g; (void)b; return clink_values(c, 3, 1, &g, NULL); }
static clink_status no_timer_batch(clink_context *c, const clink_batch *b) { (void)b; return clink_set_timer(c, 0, 1); }
static clink_status bad_open(void **self, const clink_start *start, clink_error *error) { (void)self; return clink_fail(error, CLINK_INVALID, "what is '%s'?", start->parameters); }
#define BAD(n, ...) static const clink_operator n = {.struct_bytes = sizeof(clink_operator), .name = #n, .inputs = pairs_in, .output = {pairs_out, 2}, __VA_ARGS__}
BAD(fails, .on_batch = fails_batch);
BAD(gives_null, .on_batch = null_batch);
BAD(no_state, .on_batch = no_state_batch);
BAD(no_timer, .on_batch = no_timer_batch);
BAD(does_not_open, .on_batch = fails_batch, .open = bad_open);

/* ---- the job ---- */

#define TABLES "CREATE TABLE r (k BIGINT NOT NULL, x BIGINT NOT NULL, t VARCHAR NOT NULL, ts BIGINT) WITH (connector = 'file', format = 'json', path = 'r.ndjson', event_time_column = 'ts');" \
               "CREATE TABLE o (k BIGINT, said VARCHAR) WITH (connector = 'file', format = 'json', path = 'o');" \
               "CREATE TABLE s (k BIGINT) WITH (connector = 'file', format = 'json', path = 's');" \
               "CREATE TABLE p (k BIGINT, input INT) WITH (connector = 'file', format = 'json', path = 'p')"

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(b, TABLES);
    clink_stream *r = clink_query(b, "SELECT * FROM r;");
    (void)r;
#if JOB == 0
    clink_stream *said = clink_process(clink_key_by(r, "k"), "counts", "counts", "");
    clink_insert(said, "o");
    clink_insert(clink_side(said, 1), "s");
#elif JOB == 1
    clink_stream *inputs[] = {r, clink_query(b, "SELECT x AS k FROM r WHERE x > 0")};
    clink_insert(clink_process(clink_process_all(inputs, 2, "pairs", "pairs", ""), "again", "copy", ""), "p");
#elif JOB == 2
    clink_insert(clink_process(clink_key_by(r, "k"), "ticks", "ticks", ""), "p");
#elif JOB == 3
    clink_insert(clink_process(r, "bad", NAME, "hm"), "p");
#elif JOB == 4
    clink_insert(clink_process(clink_key_by(r, NAME), "bad", "counts", ""), "o");
#elif JOB == 5
    clink_insert(clink_process(clink_key_by(clink_query(b, NAME), "k"), "bad", "counts", ""), "o");
#elif JOB == 6
    clink_insert(clink_side(clink_process(clink_key_by(r, "k"), "bad", "counts", ""), 2), "s");
#elif JOB == 7
#elif JOB == 8
    return clink_fail(error, CLINK_INVALID, "there is nothing to do");
#elif JOB == 9
    clink_stream *same = clink_process(clink_key_by(r, "k"), "same", "counts", "");
    clink_insert(same, "o");
    clink_insert(clink_process(clink_key_by(r, "k"), "same", "counts", ""), "o");
#elif JOB == 10
    clink_define(b, "CREATE TABLE own WITH (connector = '.stream') AS SELECT k FROM r");
    clink_insert(clink_query(b, "SELECT k FROM r"), "s");
#elif JOB == 11
    clink_define(b, "CREATE TABLE own (k BIGINT) WITH (connector = '.stream')");
    clink_insert(clink_query(b, "SELECT k FROM own"), "s");
#endif
    return CLINK_OK;
}

static clink_status copy_batch(clink_context *c, const clink_batch *b) {
    clink_emitter *out = clink_out(c, 0);
    for (CLINK_EACH(b->rows, k, row)) {
        uint32_t to;
        TRY(clink_add_row(out, &to));
        clink_set_i64(out->columns[0], to, clink_i64(b->columns[0], row));
        clink_set_i64(out->columns[1], to, clink_i64(b->columns[1], row));
    }
    return CLINK_OK;
}
static const clink_columns copy_in = {pairs_out, 2};
static const clink_operator copy = {.struct_bytes = sizeof(clink_operator), .name = "copy", .inputs = &copy_in, .output = {pairs_out, 2}, .on_batch = copy_batch};

static const clink_job_description job = {.struct_bytes = sizeof(clink_job_description), .name = "odd", .build = build};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_operator *const operators[] = {&counts, &pairs, &ticks, &fails, &gives_null, &no_state, &no_timer, &does_not_open, &copy, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI, .name = "odd_operators", .version = "1", .operators = operators, .jobs = jobs};
CLINK_PLUGIN(plugin)
