/* What of the worker's environment a task host gets. */
#include "cluster/worker/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "os/test_proc.h"

static char path[] = "PATH=/bin", home[] = "HOME=/home/me", aws[] = "AWS_SECRET_ACCESS_KEY=x",
            kafka[] = "KAFKA_PASSWORD=y", longer[] = "KAFKA_PASSWORD_2=z", secret[] = "CLINK_SECRET_A=1",
            other[] = "CLINK_SECRET_B=2", fault[] = "CLINK_FAULT=f", pg[] = "PGPASSWORD=p", locale[] = "LC_ALL=C",
            odd[] = "NOTHING";
static char *const ours[] = {path, home, aws, kafka, longer, secret, other, fault, pg, locale, odd, NULL};

static bool has(char **list, const char *entry) {
    for (; *list; list++)
        if (strcmp(*list, entry) == 0) return true;
    return false;
}

static void check(const char *job, bool confined, const char *const *wanted, size_t count) {
    ck_test_proc t;
    ck_test_proc_init(&t);
    ck_mem mem = ck_proc_mem(&t.proc, CK_MEM_PLAN);
    char **got = ck_host_environment(mem, ours, ck_view_of(job), confined);
    size_t n = 0;
    while (got[n]) n++;
    assert_int_equal(n, count);
    for (size_t i = 0; i < count; i++)
        if (!has(got, wanted[i])) fail_msg("%s is not there", wanted[i]);
    ck_host_environment_free(mem, got, ours);
    ck_test_proc_destroy(&t);
}
#define CHECK(job, confined, ...)                                                                                      \
    do {                                                                                                               \
        static const char *const wanted[] = {__VA_ARGS__};                                                             \
        check(job, confined, wanted, sizeof wanted / sizeof *wanted);                                                  \
    } while (0)
#define ALWAYS "PATH=/bin", "CLINK_FAULT=f", "LC_ALL=C"
#define USERS  ALWAYS, "HOME=/home/me", "PGPASSWORD=p"
#define NO_PG  "PGPASSFILE=/dev/null", "PGSERVICEFILE=/dev/null"

static void secrets_come_only_when_the_job_names_them(void **state) {
    (void)state;
    CHECK("", false, USERS);
    CHECK("{\"password\":\"${env:KAFKA_PASSWORD}\"}", false, USERS, "KAFKA_PASSWORD=y");
    CHECK("$${env:CLINK_SECRET_B} ${env:AWS_SECRET_ACCESS_KEY}x", false, USERS, "CLINK_SECRET_B=2",
          "AWS_SECRET_ACCESS_KEY=x");
    CHECK("${env:KAFKA_PASSWORD", false, USERS); /* cut */
    CHECK("${env:KAFKA_PASS}", false, USERS);    /* another name */
    CHECK("${env:}", false, USERS);
    CHECK("env:KAFKA_PASSWORD}", false, USERS);
}

static void a_confined_job_gets_nothing_of_our_users(void **state) {
    (void)state;
    CHECK("", true, ALWAYS, NO_PG);
    CHECK("${env:KAFKA_PASSWORD}${env:PGPASSWORD}${env:HOME}", true, ALWAYS, NO_PG);
    CHECK("${env:KAFKA_PASSWORD}${env:CLINK_SECRET_A}", true, ALWAYS, NO_PG, "CLINK_SECRET_A=1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_come_only_when_the_job_names_them),
        cmocka_unit_test(a_confined_job_gets_nothing_of_our_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
