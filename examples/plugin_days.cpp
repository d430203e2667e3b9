// The same in C++: for each user and day, which page was looked at most, and the median of how long. An operator with a
// MAP (visits by page), a LIST (all durations) and a timer at midnight.
//
//     c++ -std=c++20 -O2 -shared -fPIC -Iinclude -o days.so examples/plugin_days.cpp
//     clink run --job days.so
//
// reads visits.ndjson and prints.
#include <algorithm>
#include <clink/plugin.h>
#include <string>
#include <vector>

namespace {

constexpr int64_t day_us = 86400LL * 1000000;

enum : uint32_t { pages, durations }; // states
const clink_field page_fields[] = {{"page", "VARCHAR"}, {"visits", "BIGINT"}};
const clink_field duration_fields[] = {{"ms", "BIGINT"}};
const clink_state page_state = {sizeof(clink_state), CLINK_MAP, "pages", nullptr, 1, 2, page_fields, 0};
const clink_state duration_state = {sizeof(clink_state), CLINK_LIST, "durations", nullptr, 1, 1, duration_fields, 0};
const clink_state *const states[] = {&page_state, &duration_state};

clink_status on_visits(clink_context *c, const clink_batch *batch) {
    for (CLINK_EACH(batch->rows, k, row)) {
        clink_groups entry;
        clink_key page = {0, clink_text(batch->columns[0], row)};
        clink_status s = clink_entry(c, pages, k, &page, 1, &entry);
        if (s != CLINK_OK) return s;
        clink_set_state_i64(&entry, 0, 1, clink_state_i64(&entry, 0, 1) + 1);
        s = clink_append(c, durations, k, &entry);
        if (s != CLINK_OK) return s;
        clink_set_state_i64(&entry, 0, 0, clink_i64(batch->columns[1], row));
        int64_t ts = clink_i64(batch->columns[2], row);
        s = clink_set_timer(c, k, ts - ts % day_us + day_us);
        if (s != CLINK_OK) return s;
    }
    return CLINK_OK;
}

clink_status say_day(clink_context *c, const clink_timers *timers, uint32_t k, clink_emitter *out) {
    clink_groups entry;
    clink_key page;
    std::string most;
    int64_t visits = 0;
    std::vector<int64_t> all;
    clink_status s = clink_walk(c, pages, k, nullptr, nullptr);
    while (s == CLINK_OK && clink_next(c, &page, &entry))
        if (clink_state_i64(&entry, 0, 1) > visits) {
            visits = clink_state_i64(&entry, 0, 1);
            most.assign(page.text.p, page.text.n);
        }
    if (s == CLINK_OK) s = clink_walk(c, durations, k, nullptr, nullptr);
    while (s == CLINK_OK && clink_next(c, nullptr, &entry)) all.push_back(clink_state_i64(&entry, 0, 0));
    if (s == CLINK_OK) s = clink_erase_entries(c, pages, k, nullptr, nullptr);
    if (s == CLINK_OK) s = clink_erase_entries(c, durations, k, nullptr, nullptr);
    if (s != CLINK_OK || all.empty()) return s;
    auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::nth_element(all.begin(), middle, all.end());
    uint32_t row;
    if ((s = clink_add_row(out, &row)) != CLINK_OK) return s;
    if (clink_is_null(timers->keys[0], k)) {
        clink_set_null(out->columns[0], row);
    } else {
        clink_bytes user = clink_text(timers->keys[0], k);
        s = clink_set_text(out->columns[0], row, user.p, user.n);
    }
    clink_set_i64(out->columns[1], row, clink_i64(timers->keys[1], k));
    if (s == CLINK_OK) s = clink_set_text(out->columns[2], row, most.data(), most.size());
    clink_set_i64(out->columns[3], row, visits);
    clink_set_i64(out->columns[4], row, *middle);
    return s;
}

// Nothing may be thrown through the engine.
clink_status on_midnight(clink_context *c, const clink_timers *timers) noexcept try {
    clink_emitter *out = clink_out(c, 0);
    if (!out) return CLINK_NOMEM;
    for (uint32_t k = 0; k < timers->count; k++) {
        clink_status s = say_day(c, timers, k, out);
        if (s != CLINK_OK) return s;
    }
    return CLINK_OK;
} catch (const std::exception &e) {
    return clink_fail(c->error, CLINK_FAILED, "%s", e.what());
}

const clink_field in_fields[] = {{"page", "VARCHAR NOT NULL"}, {"ms", "BIGINT NOT NULL"}, {"ts", "TIMESTAMP(3) NOT NULL"}};
const clink_columns in = {in_fields, 3};
const clink_field out_fields[] = {{"usr", "VARCHAR"},
                                  {"day", "DATE NOT NULL"},
                                  {"page", "VARCHAR NOT NULL"},
                                  {"visits", "BIGINT NOT NULL"},
                                  {"median_ms", "BIGINT NOT NULL"}};

const clink_operator days = [] {
    clink_operator o = {};
    o.struct_bytes = sizeof o;
    o.name = "days";
    o.inputs = &in;
    o.output = {out_fields, 5};
    o.state_count = 2;
    o.states = states;
    o.on_batch = on_visits;
    o.on_timers = on_midnight;
    return o;
}();

clink_status build(clink_job_builder *b, clink_error *) {
    clink_define(b, "CREATE TABLE visits (usr VARCHAR, page VARCHAR NOT NULL, ms BIGINT NOT NULL, ts TIMESTAMP(3) NOT NULL,"
                    " WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE)"
                    " WITH (connector = 'file', format = 'json', path = 'visits.ndjson');"
                    "CREATE TABLE days (usr VARCHAR, day DATE, page VARCHAR, visits BIGINT, median_ms BIGINT)"
                    " WITH (connector = 'print')");
    clink_stream *visits = clink_query(b, "SELECT usr, CAST(ts AS DATE) AS day, page, ms, ts FROM visits");
    clink_insert(clink_process(clink_key_by(visits, "usr, day"), "days", "days", ""), "days");
    return CLINK_OK;
}

const clink_job_description job = {sizeof(clink_job_description), 0, "days", build, nullptr};
const clink_operator *const operators[] = {&days, nullptr};
const clink_job_description *const jobs[] = {&job, nullptr};

const clink_plugin plugin = [] {
    clink_plugin p = {};
    p.struct_bytes = sizeof p;
    p.abi = CLINK_PLUGIN_ABI;
    p.name = "days";
    p.version = "1.0";
    p.operators = operators;
    p.jobs = jobs;
    return p;
}();

} // namespace

CLINK_PLUGIN(plugin)
