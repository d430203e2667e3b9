/* What jobs of others may tell the client libraries. */
#include "connector/library_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "connector/secret.h"
#include "os/confined.h"
#include "os/durable.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct fixture {
    ck_test_proc t;
    ck_confined c;
    ck_arena arena;
    char inside[160];
} fixture;

static int setup(void **state) {
    static fixture f;
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), 1 << 20);
    snprintf(f.inside, sizeof f.inside, "%s/password", ck_test_dir(&f.t));
    OK(ck_durable_replace_bytes(&f.t.proc, f.inside, CK_VIEW("word\n"), NULL));
    OK(ck_confined_init(&f.c, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), f.t.proc.fs, NULL, ck_test_dir(&f.t), NULL));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_confined_destroy(&f->c);
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

typedef ck_status (*check_fn)(const ck_proc *, const char *, const char *, const char *, ck_error *);

static void check(fixture *f, check_fn fn, const char *property, const char *value, bool allowed) {
    ck_error err = CK_ERROR_INIT;
    f->t.proc.confined = NULL;
    OK(fn(&f->t.proc, property, property, value, &err)); /* jobs of our own may all */
    f->t.proc.confined = &f->c;
    ck_status s = fn(&f->t.proc, property, property, value, &err);
    f->t.proc.confined = NULL;
    if ((s == CK_OK) != allowed) fail_msg("%s = %s: %s", property, value, err.msg);
    if (!allowed) assert_true(s == CK_REFUSED && err.fatal && strstr(err.msg, property));
}

static void kafka(void **state) {
    fixture *f = *state;
    check(f, ck_kafka_property_check, "security.protocol", "SSL", true);
    check(f, ck_kafka_property_check, "sasl.password", "/etc/passwd", true); /* only a word */
    check(f, ck_kafka_property_check, "ssl.ca.location", f->inside, true);
    check(f, ck_kafka_property_check, "ssl.ca.location", "/etc/passwd", false);
    check(f, ck_kafka_property_check, "ssl.key.location", "/root/.ssh/id_rsa", false);
    check(f, ck_kafka_property_check, "sasl.kerberos.keytab", "/etc/krb5.keytab", false);
    check(f, ck_kafka_property_check, "plugin.library.paths", f->inside, false);
    check(f, ck_kafka_property_check, "sasl.kerberos.kinit.cmd", "touch /tmp/x", false);
    check(f, ck_kafka_property_check, "ssl.engine.location", f->inside, false);
    check(f, ck_kafka_property_check, "ssl.providers", "legacy", false);
}

static void postgres(void **state) {
    fixture *f = *state;
    check(f, ck_pg_property_check, "sslmode", "verify-full", true);
    check(f, ck_pg_property_check, "sslrootcert", f->inside, true);
    check(f, ck_pg_property_check, "sslrootcert", "/etc/passwd", false);
    check(f, ck_pg_property_check, "passfile", f->inside, false);
    check(f, ck_pg_property_check, "service", "x", false);
    check(f, ck_pg_property_check, "hostaddr", "127.0.0.1", false);
    check(f, ck_pg_property_check, "something_new", "x", false);
    static const char *const local[] = {NULL,  "",    "/var/run/postgresql", "@abstract", "db,/tmp", "db,@x", "db,",
                                        ",db", "a,,b"};
    ck_error err = CK_ERROR_INIT;
    f->t.proc.confined = &f->c;
    for (size_t i = 0; i < CK_ARRAY_COUNT(local); i++)
        assert_int_equal(ck_pg_host_check(&f->t.proc, local[i], &err), CK_REFUSED);
    OK(ck_pg_host_check(&f->t.proc, "db.example.org", &err));
    OK(ck_pg_host_check(&f->t.proc, "a,b", &err));
    f->t.proc.confined = NULL;
    OK(ck_pg_host_check(&f->t.proc, NULL, &err));
}

static void secrets(void **state) {
    fixture *f = *state;
    const char *out;
    char value[200];
    ck_error err = CK_ERROR_INIT;
    f->t.proc.confined = &f->c;
    snprintf(value, sizeof value, "${file:%s}", f->inside);
    OK(ck_secret_resolve(&f->t.proc, "password", value, 100, &f->arena, &out, &err));
    assert_string_equal(out, "word");
    assert_int_equal(ck_secret_resolve(&f->t.proc, "password", "${file:/etc/passwd}", 100, &f->arena, &out, &err),
                     CK_REFUSED);
    assert_non_null(strstr(err.msg, "option 'password': /etc/passwd is not below --secret-dir"));
    assert_int_equal(ck_secret_resolve(&f->t.proc, "password", "${env:PATH}", 100, &f->arena, &out, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "CLINK_SECRET_"));
    f->t.proc.confined = NULL;
    OK(ck_secret_resolve(&f->t.proc, "password", "${env:PATH}", 100, &f->arena, &out, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kafka, setup, teardown),
        cmocka_unit_test_setup_teardown(postgres, setup, teardown),
        cmocka_unit_test_setup_teardown(secrets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
