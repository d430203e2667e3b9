/* The version map: lines in and out, whose entry wins, what does not parse. */
#include "state/schema_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "os/test_proc.h"

typedef struct fixture {
    ck_test_proc t;
    ck_arena arena;
} fixture;

static int setup(void **state) {
    static fixture f;
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_STATE), SIZE_MAX);
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static ck_version_map map_of(fixture *f, const char *lines) {
    ck_version_map m;
    ck_error err = CK_ERROR_INIT;
    ck_version_map_init(&m, &f->arena);
    if (ck_version_map_decode(&m, ck_view_of(lines), &err) != CK_OK) fail_msg("%s: %s", lines, err.msg);
    return m;
}

static void lines_come_back_sorted(void **state) {
    fixture *f = *state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", ""},
        {"7|buf|1", "7|buf|1"},
        {"7|buf|2|buf2\n7|buf|1|buf", "7|buf|1|buf\n7|buf|2|buf2"},
        {"18446744073709551615|t|4294967295", "18446744073709551615|t|4294967295"},
        {"7||3|<raw>", "7||3|<raw>"}, /* a type without a name */
        {"7|t|1\n7|t|1", "7|t|1"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_version_map m = map_of(f, cases[i].in);
        assert_string_equal(ck_version_map_encode(&m, &f->arena), cases[i].out);
    }
}

static void what_is_no_version_map_is_corrupt(void **state) {
    fixture *f = *state;
    static const char *const bad[] = {
        "7|t|1.0",
        "7|t| 1",
        "7|t|0",
        "7|t|",
        "7|t|-1",
        "7|t|+1",
        "7|t|1 ",
        "7|t|0x1",
        "7|t|4294967296",
        "7|t|99999999999999999999999",
        "7|t",
        "7",
        "|t|1",
        " 7|t|1",
        "x|t|1",
        "18446744073709551616|t|1",
        "7|t|1|",
        "7|t|1|s|x",
        "\n",
        "7|t|1\n",
        "\n7|t|1",
        "7|t|1\n\n8|t|1",
        "7|t|1\r\n8|t|1",
        "7|t|1|s\n7|t|2|s",
        "7|t|1\n7|t|2",
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_version_map m;
        ck_error err = CK_ERROR_INIT;
        ck_version_map_init(&m, &f->arena);
        if (ck_version_map_decode(&m, ck_view_of(bad[i]), &err) != CK_CORRUPT) fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(err.msg, "line"));
    }
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name, "7|", 2);
    memcpy(name + 290, "|1", 3);
    ck_version_map m;
    ck_version_map_init(&m, &f->arena);
    assert_int_equal(ck_version_map_decode(&m, ck_view_of(name), NULL), CK_CORRUPT);
    assert_int_equal(ck_version_map_decode(&m, (ck_view){"7|a\0b|1", 7}, NULL), CK_CORRUPT);
}

static void a_slot_asks_itself_then_its_type(void **state) {
    fixture *f = *state;
    ck_version_map m = map_of(f, "7|t|2\n7|t|3|buf\n8|t|9");
    assert_int_equal(ck_version_map_get(&m, 7, "t", "buf"), 3);
    assert_int_equal(ck_version_map_get(&m, 7, "t", "buf2"), 2); /* a prefix is another slot */
    assert_int_equal(ck_version_map_get(&m, 7, "u", "buf"), 0);
    assert_int_equal(ck_version_map_get(&m, 9, "t", "buf"), 0);
    assert_int_equal(ck_version_map_get(&m, 7, NULL, "buf"), 0);
}

static void merging_keeps_the_others_and_uniting_wants_them_equal(void **state) {
    fixture *f = *state;
    ck_version_map a = map_of(f, "7|t|1|buf\n7|t|1|buf2"), b = map_of(f, "7|t|3|buf\n8|u|1");
    ck_error err = CK_ERROR_INIT;
    ck_version_map c = map_of(f, "7|t|1|buf\n9|t|1");
    assert_int_equal(ck_version_map_unite(&c, &a, &err), CK_OK);
    assert_string_equal(ck_version_map_encode(&c, &f->arena), "7|t|1|buf\n7|t|1|buf2\n9|t|1");
    assert_int_equal(ck_version_map_unite(&c, &b, &err), CK_REFUSED);
    assert_string_equal(err.msg, "operator 7, state type 't', slot buf is in version 3 here and in 1 elsewhere");
    assert_int_equal(ck_version_map_merge(&a, &b), CK_OK);
    assert_string_equal(ck_version_map_encode(&a, &f->arena), "7|t|1|buf2\n7|t|3|buf\n8|u|1");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(lines_come_back_sorted),
        T(what_is_no_version_map_is_corrupt),
        T(a_slot_asks_itself_then_its_type),
        T(merging_keeps_the_others_and_uniting_wants_them_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
