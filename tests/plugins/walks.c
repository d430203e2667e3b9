/* Entries of a MAP and of a LIST that are written in a walk over them: x = 1 adds one of each to a key, x = 0 raises all
 * that the key has by one and writes a text, long or short, to each. Every row is answered by what the key has then. */
#include <clink/plugin.h>

#define TRY(e) do { clink_status s_ = (e); if (s_ != CLINK_OK) return s_; } while (0)

static const clink_field map_fields[] = {{"x", "BIGINT"}, {"n", "BIGINT"}, {"text", "VARCHAR"}};
static const clink_state map = {.struct_bytes = sizeof(clink_state), .kind = CLINK_MAP, .name = "map", .field_count = 3, .fields = map_fields};
static const clink_state list = {.struct_bytes = sizeof(clink_state), .kind = CLINK_LIST, .name = "list", .field_count = 2, .fields = map_fields + 1};
static const clink_state *const states[] = {&map, &list};

static clink_status raise(clink_context *c, uint32_t state, uint32_t k) {
    clink_groups e;
    uint32_t first = state == 0; /* the key of the MAP */
    TRY(clink_walk(c, state, k, NULL, NULL));
    while (clink_next(c, NULL, &e)) {
        clink_set_state_i64(&e, 0, first, clink_state_i64(&e, 0, first) + 1);
        TRY(clink_set_state_text(&e, 0, first + 1, "a text of more than twelve bytes", state ? 6 : 32));
    }
    return CLINK_OK;
}

static clink_status sum(clink_context *c, uint32_t state, uint32_t k, int64_t *n, clink_bytes *text) {
    clink_groups e;
    uint32_t first = state == 0;
    TRY(clink_walk(c, state, k, NULL, NULL));
    while (clink_next(c, NULL, &e)) *n += clink_state_i64(&e, 0, first), *text = clink_state_text(&e, 0, first + 1);
    return CLINK_OK;
}

static clink_status on_batch(clink_context *c, const clink_batch *b) {
    clink_emitter *out = clink_out(c, 0);
    for (CLINK_EACH(b->rows, k, row)) {
        int64_t x = clink_i64(b->columns[1], row), n[2] = {0, 0};
        clink_bytes text[2] = {{"", 0}, {"", 0}};
        const clink_key at = {.i64 = x};
        clink_groups e;
        uint32_t to;
        if (x == 1) {
            TRY(clink_entry(c, 0, k, &at, 1, &e));
            TRY(clink_append(c, 1, k, &e));
        }
        for (uint32_t state = 0; state < 2; state++) {
            if (x == 0) TRY(raise(c, state, k));
            TRY(sum(c, state, k, &n[state], &text[state]));
        }
        TRY(clink_add_row(out, &to));
        clink_set_i64(out->columns[0], to, clink_i64(b->columns[0], row));
        for (uint32_t state = 0; state < 2; state++) {
            clink_set_i64(out->columns[1 + 2 * state], to, n[state]);
            TRY(clink_set_text(out->columns[2 + 2 * state], to, text[state].p, text[state].n));
        }
    }
    return CLINK_OK;
}

static const clink_field in_fields[] = {{"k", "BIGINT"}, {"x", "BIGINT"}};
static const clink_columns in = {in_fields, 2};
static const clink_field out_fields[] = {{"k", "BIGINT"}, {"n", "BIGINT"}, {"text", "VARCHAR"}, {"listed", "BIGINT"}, {"last", "VARCHAR"}};
static const clink_operator walker = {.struct_bytes = sizeof(clink_operator), .name = "walker", .inputs = &in, .output = {out_fields, 5}, .state_count = 2, .states = states, .on_batch = on_batch};

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(b, "CREATE TABLE r (k BIGINT, x BIGINT) WITH (connector = 'file', format = 'json', path = 'r.ndjson', follow = 'true');"
                    "CREATE TABLE o (k BIGINT, n BIGINT, text VARCHAR, listed BIGINT, last VARCHAR) WITH (connector = 'file', format = 'json', path = 'o')");
    clink_insert(clink_process(clink_key_by(clink_query(b, "SELECT k, x FROM r"), "k"), "walker", "walker", ""), "o");
    return CLINK_OK;
}
static const clink_job_description job = {.struct_bytes = sizeof(clink_job_description), .name = "walks", .build = build};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_operator *const operators[] = {&walker, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI, .name = "walks", .version = "1", .operators = operators, .jobs = jobs};
CLINK_PLUGIN(plugin)
