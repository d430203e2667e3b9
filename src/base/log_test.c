#include "base/log.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct seen {
    unsigned lines;
    ck_log_level level;
    char last[2000];
} seen;

static void keep(void *arg, ck_log_level level, const char *line) {
    seen *s = arg;
    s->lines++;
    s->level = level;
    snprintf(s->last, sizeof s->last, "%s", line);
}

static void test_levels(void **state) {
    (void)state;
    seen s = {0};
    ck_log log = {CK_LOG_WARN, &s, keep};
    ck_log_line(&log, CK_LOG_INFO, "no");
    assert_int_equal(s.lines, 0);
    ck_log_line(&log, CK_LOG_WARN, "%s %d", "yes", 1);
    assert_int_equal(s.level, CK_LOG_WARN);
    assert_string_equal(s.last, "yes 1");
    log.level = CK_LOG_OFF;
    ck_log_line(&log, CK_LOG_ERROR, "no");
    assert_int_equal(s.lines, 1);
    ck_log_line(NULL, CK_LOG_ERROR, "dropped");
    log = (ck_log){CK_LOG_DEBUG, NULL, NULL};
    ck_log_line(&log, CK_LOG_ERROR, "dropped");
}

static void test_long_lines_are_cut(void **state) {
    (void)state;
    seen s = {0};
    ck_log log = {CK_LOG_DEBUG, &s, keep};
    ck_log_line(&log, CK_LOG_INFO, "%03000d", 1);
    assert_int_equal(strlen(s.last), 999);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_long_lines_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
