/* Rows that are looked up in a file: found, not found, several, by NULL; read again when what was read is too old;
 * refused when too large; what is wrong with the file said. */
#include "connector/connectors.h"

#include "connector/file/file_int.h"
#include "connector/source_test_support.h"
#include "operator/lookup_join.h"

typedef struct fixture {
    ck_test_proc proc;
    ck_manual_clock clock;
    ck_simfs *sim;
    harness h;
    held_io io;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    ck_manual_clock_init(&f->clock, 1000000, 0);
    f->proc.proc.clock = &f->clock.base;
    assert_int_equal(ck_simfs_new(&f->sim, 1), CK_OK);
    f->proc.proc.fs = ck_simfs_base(f->sim);
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    harness_destroy(&f->h);
    ck_simfs_free(f->sim);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

static ck_status create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    return ck_lookup_join_create(spec, &ck_lookup_file, mem, self, err);
}
static const ck_op_desc lookup = {.type = "lookup.file", .op = &ck_lookup_join_vtbl, .create = create};

#define PARAMS(kind, residual, options)                                                                                \
    "{\"kind\":\"" kind "\",\"left_keys\":[0],\"right_keys\":[0],\"residual\":[" residual                              \
    "],\"source\":{\"table\":\"t\","                                                                                   \
    "\"table_schema\":[{\"name\":\"a\",\"type\":\"VARCHAR\",\"nullable\":true},{\"name\":\"n\",\"type\":\"BIGINT\","   \
    "\"nullable\":true}],\"columns\":[0,1],\"checked\":[],\"options\":{\"path\":\"/"                                   \
    "t.json\",\"format\":\"json\"" options "}}}"
#define V_LESS_N                                                                                                       \
    "{\"fn\":\"<\",\"type\":\"BOOLEAN\",\"null\":true,\"args\":[{\"col\":1,\"type\":\"BIGINT\",\"null\":true},"        \
    "{\"col\":3,\"type\":\"BIGINT\",\"null\":true}]}"
#define LEFT   "k VARCHAR; v BIGINT"
#define OUTPUT LEFT "; a VARCHAR; n BIGINT"
#define ROWS                                                                                                           \
    "{\"a\":\"one\",\"n\":1}\n{\"a\":\"a key longer than twelve bytes\",\"n\":2}\n{\"a\":null,\"n\":3}\n"              \
    "{\"a\":\"one\",\"n\":4}\n"

static void put(fixture *f, const char *text) { write_sim_file(f->sim, "/t.json", text, strlen(text)); }

static harness *start(fixture *f, const char *params) {
    harness_input(&f->h, LEFT, CK_MODE_APPEND);
    harness_start(&f->h, &lookup, params, OUTPUT);
    return &f->h;
}

static void rows_are_found_by_key(void **state) {
    fixture *f = *state;
    put(f, ROWS);
    harness *h = start(f, PARAMS("left", "", ""));
    HARNESS_ROWS(h, "one|10", "two|11", "NULL|12", "a key longer than twelve bytes|13");
    harness_net(h);
    HARNESS_EXPECT(h, "+NULL|12|NULL|NULL", "+a key longer than twelve bytes|13|a key longer than twelve bytes|2",
                   "+one|10|one|1", "+one|10|one|4", "+two|11|NULL|NULL");
}

static void inner_with_a_condition_in_small_batches(void **state) {
    fixture *f = *state;
    put(f, ROWS);
    f->h.settings.batch_rows = 1;
    harness *h = start(f, PARAMS("inner", V_LESS_N, ""));
    HARNESS_ROWS(h, "one|3", "two|0", "NULL|0", "one|0");
    harness_net(h);
    HARNESS_EXPECT(h, "+one|0|one|1", "+one|0|one|4", "+one|3|one|4");
}

static void it_is_read_again_when_it_is_too_old(void **state) {
    fixture *f = *state;
    put(f, ROWS);
    harness *h = start(f, PARAMS("left", "", ",\"lookup.cache_ttl_ms\":\"1000\""));
    HARNESS_ROWS(h, "two|1");
    put(f, "{\"a\":\"two\",\"n\":22}\n");
    h->now_us = 999999;
    HARNESS_ROWS(h, "two|2");
    HARNESS_EXPECT(h, "+two|1|NULL|NULL", "+two|2|NULL|NULL");
    h->now_us = 1000000;
    HARNESS_ROWS(h, "two|3", "one|4");
    HARNESS_EXPECT(h, "+two|3|two|22", "+one|4|NULL|NULL");
}

static void what_is_too_large_is_refused_by_name(void **state) {
    fixture *f = *state;
    put(f, ROWS);
    harness *h = start(f, PARAMS("left", "", ",\"lookup.max_bytes\":\"64\""));
    assert_int_equal(harness_try_rows(h, 0, (const char *const[]){"one|1"}, 1), CK_REFUSED);
    assert_non_null(strstr(h->error.msg, "table \"t\" is too large to be looked up in"));
    assert_non_null(strstr(h->error.msg, "lookup.max_bytes (64)"));
}

static void a_missing_file_and_a_bad_record_are_said(void **state) {
    fixture *f = *state;
    harness *h = start(f, PARAMS("left", "", ""));
    assert_int_not_equal(harness_try_rows(h, 0, (const char *const[]){"one|1"}, 1), CK_OK);
    assert_non_null(strstr(h->error.msg, "/t.json"));
    harness_close(h);
    put(f, "{\"a\":\"one\",\"n\":\"many\"}\n");
    h->error = CK_ERROR_INIT;
    harness_ok(h, create(&h->spec, h->mem, &h->self, &h->error));
    assert_int_equal(harness_try_rows(h, 0, (const char *const[]){"one|1"}, 1), CK_DATA);
}

static void bad_parameters_are_refused(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, LEFT, CK_MODE_APPEND);
    static const char *const bad[] = {PARAMS("full", "", ""), PARAMS("left", "7", ""),
                                      PARAMS("left", "", ",\"lookup.max_bytes\":\"0\""),
                                      "{\"kind\":\"left\",\"left_keys\":[],\"right_keys\":[],\"residual\":[]}"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        h->error = CK_ERROR_INIT;
        assert_int_not_equal(harness_create(h, &lookup, bad[i], OUTPUT), CK_OK);
        assert_true(h->error.msg[0] != 0);
    }
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    put(f, ROWS);
    harness_input(h, LEFT, CK_MODE_APPEND);
    h->spec.type = "lookup.file";
    h->spec.params = PARAMS("left", V_LESS_N, "");
    h->spec.schema = harness_schema(h, OUTPUT);
    h->keep_batches = true;
    h->desc = &lookup;
    ck_batch *b = harness_batch(h, 0, (const char *const[]){"one|1", "two|2", "NULL|3"}, 3);
    harness_context(h);
    for (uint64_t n = 1;; n++) {
        h->error = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = lookup.create(&h->spec, h->mem, &h->self, &h->error);
        if (s == CK_OK) s = harness_event(h, 0, ck_event_batch(b));
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        uint32_t rows = 0;
        for (size_t i = 0; s == CK_OK && i < h->batch_count; i++) rows += h->batches[i]->sel_count;
        if (h->self) harness_close(h);
        harness_forget_lines(h);
        bool fine = s == CK_OK && rows == 3; /* what the decoder keeps for later batches it can do without */
        if (!fine && (!fired || s != CK_NOMEM))
            fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
        if (!fired) break;
    }
    ck_batch_unref(&b);
}

#undef T
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {T(rows_are_found_by_key),
                                       T(inner_with_a_condition_in_small_batches),
                                       T(it_is_read_again_when_it_is_too_old),
                                       T(what_is_too_large_is_refused_by_name),
                                       T(a_missing_file_and_a_bad_record_are_said),
                                       T(bad_parameters_are_refused),
                                       T(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
