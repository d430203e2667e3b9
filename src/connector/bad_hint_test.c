/* What is advised about which record, and that nothing is advised where nothing is known. */
#include "connector/bad_hint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void expect(ck_bad_hint of, const char *raw, uint64_t offset, const char *field, const char *reason,
                   const char *says) {
    const ck_bad_record bad = {.raw = ck_view_of(raw), .offset = offset, .field = field, .reason = reason};
    const char *hint = ck_bad_hint_for(&of, &bad);
    if (*says ? !strstr(hint, says) : *hint != 0) fail_msg("%s: \"%s\" instead of \"%s\"", raw, hint, says);
}

static void test_json(void **state) {
    (void)state;
    const ck_bad_hint json = {.format = "json"}, asked = {.format = "json", .on_error_is_given = true};
    expect(json, " [{\"i\":1}]", 0, NULL, "not valid JSON: unexpected '['", "jq -c '.[]'");
    expect(asked, "{ \r", 0, NULL, "not valid JSON: unexpected end", "jq -c .");
    expect(json, "{\"at\":17}", 9, "at", "17 is not a TIMESTAMP(3)", "TO_TIMESTAMP_LTZ(ms, 3)");
    expect(json, "{\"at\":-1}", 9, "at", "-1 is not a TIMESTAMP_LTZ(3)", "TO_TIMESTAMP_LTZ(ms, 3)");
    expect(json, "{\"at\":\"x\"}", 9, "at", "\"x\" is not a TIMESTAMP(3)", "on_error = 'skip'");
    expect(json, "", 9, NULL, "the record is empty", "on_error = 'skip'");
    expect(asked, "{\"at\":\"x\"}", 9, "at", "\"x\" is not a TIMESTAMP(3)", "");
}

static void test_csv(void **state) {
    (void)state;
    const ck_bad_hint csv = {.format = "csv", .first_is_row = true, .on_error_is_given = true},
                      header = {.format = "csv", .on_error_is_given = true};
    expect(csv, "id,\"Amount\"", 0, "amount", "\"Amount\" is not a BIGINT", "header = 'true'");
    expect(csv, "id,amounts", 0, "amount", "\"amounts\" is not a BIGINT", "");
    expect(csv, "id,amount", 20, "amount", "\"amount\" is not a BIGINT", "");
    expect(header, "id,amount", 0, "amount", "\"amount\" is not a BIGINT", "");
    expect(csv, "1;2", 0, NULL, "1 field where 2 are expected", "delimiter = ';'");
    expect(csv, "1\t2", 7, NULL, "1 field where 2 are expected", "delimiter = '\\t'");
    expect(csv, "1|2", 7, NULL, "1 field where 2 are expected", "delimiter = '|'");
    expect(csv, "1 2", 7, NULL, "1 field where 2 are expected", "");
    expect(csv, "1;2,3", 7, NULL, "2 fields where 3 are expected", "");
    expect(csv, "year,\"month\",_day,hour", 0, NULL, "4 fields where 3 are expected", "header = 'true'");
    expect(csv, "year,month,3", 0, NULL, "3 fields where 4 are expected", "");
    expect(csv, "year,month,", 0, NULL, "3 fields where 4 are expected", "");
    expect(csv, "year,month", 20, NULL, "2 fields where 4 are expected", "");
    expect(header, "year,month", 0, NULL, "2 fields where 4 are expected", "");
}

static void test_rows_of_a_server(void **state) {
    (void)state;
    expect((ck_bad_hint){0}, "[1]", 0, "a", "17 is not a TIMESTAMP(3)", "on_error = 'skip'");
    expect((ck_bad_hint){.on_error_is_given = true}, "[1]", 0, "a", "17 is not a TIMESTAMP(3)", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_csv),
                                       cmocka_unit_test(test_rows_of_a_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
