#include "connector/connectors.h"

#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    ck_manual_clock clock;
    harness h;
    held_io io;
    split_set splits;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    ck_manual_clock_init(&f->clock, 1000000, 0);
    f->proc.proc.clock = &f->clock.base;
    harness_init(&f->h, &f->proc.proc);
    split_set_init(&f->splits, &f->h);
    f->h.io = &f->io;
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    harness_destroy(&f->h);
    split_set_destroy(&f->splits);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

#define SCHEMA                                                                                                         \
    "\"table_schema\":[{\"name\":\"id\",\"type\":\"BIGINT\",\"nullable\":false},"                                      \
    "{\"name\":\"usr\",\"type\":\"VARCHAR\",\"nullable\":false},{\"name\":\"x\",\"type\":\"DOUBLE\",\"nullable\":"     \
    "false},"                                                                                                          \
    "{\"name\":\"price\",\"type\":\"DECIMAL(10,2)\",\"nullable\":false},"                                              \
    "{\"name\":\"ts\",\"type\":\"TIMESTAMP(3)\",\"nullable\":false},"                                                  \
    "{\"name\":\"ok\",\"type\":\"BOOLEAN\",\"nullable\":false}]"
#define PARAMS(columns, options)                                                                                       \
    "{\"table\":\"t\"," SCHEMA ",\"columns\":" columns ",\"checked\":[],\"options\":{" options "}}"
#define ALL                                                                                                            \
    PARAMS("[0,1,2,3,4,5]", "\"rows\":\"1000\",\"seed\":\"7\",\"fields.id.kind\":\"sequence\",\"fields.usr.max\":"     \
                            "\"9\",\"fields.usr.length\":\"3\",\"fields.price.min\":\"1.00\",\"fields.price.max\":"    \
                            "\"2.00\",\"fields.ts.kind\":\"sequence\",\"fields.ts.min\":\"2024-01-01T00:00:00\"")
#define ALL_OUT                                                                                                        \
    "id BIGINT NOT NULL; usr VARCHAR NOT NULL; x DOUBLE NOT NULL; price DECIMAL(10,2) NOT NULL; ts TIMESTAMP(3) NOT "  \
    "NULL; ok BOOLEAN NOT NULL"

/* All rows at this parallelism, netted. */
static void read_all(fixture *f, uint32_t parallelism) {
    split_set_destroy(&f->splits);
    split_set_init(&f->splits, &f->h);
    f->h.spec.type = "source.datagen";
    f->h.spec.params = ALL;
    f->h.spec.parallelism = parallelism;
    harness_ok(&f->h, ck_op_source_datagen.enumerate(&f->h.spec, parallelism, &f->splits.list, &f->h.error));
    for (f->h.spec.subtask = 0; f->h.spec.subtask < parallelism; f->h.spec.subtask++) {
        bool ended;
        harness_ok(&f->h, source_start(&f->h, &ck_op_source_datagen, ALL, ALL_OUT, &f->splits.list));
        harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
        assert_true(ended);
        harness_close(&f->h);
    }
    harness_net(&f->h);
    assert_int_equal(f->h.line_count, 1000);
}

static void the_same_rows_at_any_parallelism(void **state) {
    fixture *f = *state;
    f->h.settings.batch_rows = 64;
    read_all(f, 1);
    harness_line *one = f->h.lines;
    f->h.lines = NULL;
    f->h.line_count = f->h.line_capacity = 0;
    read_all(f, 3);
    for (size_t i = 0; i < 1000; i++) {
        assert_string_equal(f->h.lines[i].text, one[i].text);
        assert_int_equal(f->h.lines[i].weight, 1);
        free(one[i].text);
    }
    free(one);
    assert_true(strncmp(f->h.lines[0].text, "0|00", 4) == 0);
    assert_non_null(strstr(f->h.lines[0].text, "|2024-01-01 00:00:00"));
}

/* Its splits are in the checkpoint, whatever parallelism it was made at. */
static void who_goes_on_finds_no_new_splits(void **state) {
    fixture *f = *state;
    f->h.spec.params = ALL;
    f->h.spec.continues = true;
    harness_ok(&f->h, ck_op_source_datagen.enumerate(&f->h.spec, 3, &f->splits.list, &f->h.error));
    assert_int_equal(f->splits.list.count, 0);
}

static void values_stay_in_their_ranges(void **state) {
    fixture *f = *state;
    read_all(f, 1);
    bool seen[10] = {false};
    for (size_t i = 0; i < f->h.line_count; i++) {
        int usr, whole, cents;
        double x;
        assert_int_equal(sscanf(f->h.lines[i].text, "%*d|%d|%lf|%d.%d", &usr, &x, &whole, &cents), 4);
        assert_in_range(usr, 0, 9);
        assert_true(x >= 0 && x < 1);
        assert_in_range(whole * 100 + cents, 100, 200);
        seen[usr] = true;
    }
    for (int i = 0; i < 10; i++) assert_true(seen[i]);
}

static void pruning_changes_no_value(void **state) {
    fixture *f = *state;
    static const char one[] = PARAMS("[2]", "\"rows\":\"5\"");
    static const char two[] = PARAMS("[5,2]", "\"rows\":\"5\"");
    bool ended;
    ck_split split = {"s", "{\"first\":0,\"step\":1,\"position\":0}", 0};
    ck_split_list list = {.arena = &f->h.plan, .splits = &split, .count = 1, .capacity = 1};
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_datagen, one, "x DOUBLE NOT NULL", &list));
    harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
    char first[64];
    snprintf(first, sizeof first, "|%s", f->h.lines[0].text);
    harness_close(&f->h);
    harness_forget_lines(&f->h);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_datagen, two, "ok BOOLEAN NOT NULL; x DOUBLE NOT NULL", &list));
    harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
    assert_non_null(strstr(f->h.lines[0].text, first));
}

static void a_restart_goes_on(void **state) {
    fixture *f = *state;
    static const char params[] = PARAMS("[0]", "\"rows\":\"10\",\"fields.id.kind\":\"sequence\"");
    f->h.settings.batch_rows = 3;
    ck_split split = {"s", "{\"first\":1,\"step\":2,\"position\":1}", 0};
    ck_split_list list = {.arena = &f->h.plan, .splits = &split, .count = 1, .capacity = 1};
    bool ended;
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_datagen, params, "id BIGINT NOT NULL", &list));
    harness_ok(&f->h, source_drive(&f->h, NULL, 1, &ended));
    HARNESS_EXPECT(&f->h, "+1", "+3", "+5");
    split_set now;
    split_set_init(&now, &f->h);
    source_snapshot(&f->h, &now);
    harness_close(&f->h);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_datagen, params, "id BIGINT NOT NULL", &now.list));
    harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
    HARNESS_EXPECT(&f->h, "+7", "+9");
    split_set_destroy(&now);
}

static void the_rate_is_shared_by_subtasks(void **state) {
    fixture *f = *state;
    static const char params[] = PARAMS("[0]", "\"rows\":\"1000\",\"rate_limit\":\"1000\"");
    f->h.spec.parallelism = 2;
    ck_split split = {"s", "{\"first\":0,\"step\":2,\"position\":0}", 0};
    ck_split_list list = {.arena = &f->h.plan, .splits = &split, .count = 1, .capacity = 1};
    bool ended;
    int64_t began = f->clock.base.mono_us(&f->clock.base);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_datagen, params, "id BIGINT NOT NULL", &list));
    harness_ok(&f->h, source_drive(&f->h, &f->clock, SIZE_MAX, &ended));
    int64_t took = f->clock.base.mono_us(&f->clock.base) - began;
    assert_int_equal(f->h.line_count, 500);
    assert_true(took > 950000 && took < 1050000);
}

static void bad_options_are_named(void **state) {
    fixture *f = *state;
    static const char *const bad[][2] = {
        {"\"rows\":\"x\"", "'rows' is 'x'"},
        {"\"fields.nope.min\":\"1\"", "'fields.nope.min' names no column"},
        {"\"fields.id.kind\":\"even\"", "neither random nor sequence"},
        {"\"fields.id.min\":\"x\"", "'fields.id.min' is 'x'"},
        {"\"fields.id.min\":\"5\",\"fields.id.max\":\"4\"", "not a range"},
        {"\"fields.price.max\":\"123456789.00\"", "'fields.price.max'"},
        {"\"fields.usr.length\":\"-1\"", "'fields.usr.length'"},
        {"\"rate_limit\":\"-5\"", "'rate_limit'"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        char params[2048];
        snprintf(params, sizeof params,
                 "{\"table\":\"t\"," SCHEMA ",\"columns\":[0,1,3],\"checked\":[],\"options\":{%s}}", bad[i][0]);
        ck_status s = harness_create(&f->h, &ck_op_source_datagen, params,
                                     "id BIGINT NOT NULL; usr VARCHAR NOT NULL; price DECIMAL(10,2) NOT NULL");
        assert_int_equal(s, CK_INVALID);
        if (!strstr(f->h.error.msg, bad[i][1])) fail_msg("%s", f->h.error.msg);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_same_rows_at_any_parallelism),
        T(who_goes_on_finds_no_new_splits),
        T(values_stay_in_their_ranges),
        T(pruning_changes_no_value),
        T(a_restart_goes_on),
        T(the_rate_is_shared_by_subtasks),
        T(bad_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
