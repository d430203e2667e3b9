/* Replication messages: whole ones, and every way of cutting them. */
#include "connector/postgres/pgoutput.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define BYTES(s) ((ck_view){"" s, sizeof(s) - 1})

static const ck_view begin = BYTES("B\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\7");
static const ck_view commit = BYTES("C\0\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0\3\0\0\0\0\0\0\0\0");
static const ck_view relation =
    BYTES("R\0\0\0\x2apublic\0t\0f\0\2\1id\0\0\0\0\x14\xff\xff\xff\xff\0v\0\0\0\0\x19\xff\xff\xff\xff");
static const ck_view insert = BYTES("I\0\0\0\x2aN\0\2t\0\0\0\1"
                                    "5n");
static const ck_view update = BYTES("U\0\0\0\x2aO\0\2t\0\0\0\1"
                                    "5t\0\0\0\2abN\0\2t\0\0\0\1"
                                    "6u");
static const ck_view deletion = BYTES("D\0\0\0\x2aK\0\1t\0\0\0\1"
                                      "5");
static const ck_view truncation = BYTES("T\0\0\0\1\0\0\0\0\x2a");

static ck_pgo_message parsed(ck_view v) {
    ck_pgo_message m;
    ck_error err = CK_ERROR_INIT;
    if (ck_pgo_parse(v, &m, &err) != CK_OK) fail_msg("%s", err.msg);
    return m;
}

static void whole(void **state) {
    (void)state;
    ck_pgo_value v;
    ck_pgo_column c;
    assert_true(parsed(begin).lsn == 0x100000002ULL);
    assert_true(parsed(commit).lsn == 0x100000003ULL);
    ck_pgo_message m = parsed(relation);
    assert_int_equal(m.relation, 42);
    assert_int_equal(m.identity, 'f');
    assert_true(ck_view_is(m.schema, "public") && ck_view_is(m.name, "t"));
    assert_int_equal(m.new_count, 2);
    assert_true(ck_pgo_next_column(&m.new_row, &c) && ck_view_is(c.name, "id") && c.type == 20 && c.key);
    assert_true(ck_pgo_next_column(&m.new_row, &c) && ck_view_is(c.name, "v") && c.type == 25 && !c.key);
    m = parsed(insert);
    assert_true(ck_pgo_next_value(&m.new_row, &v) && ck_view_is(v.text, "5"));
    assert_true(ck_pgo_next_value(&m.new_row, &v) && !v.text.p && !v.unchanged);
    m = parsed(update);
    assert_int_equal(m.old_kind, 'O');
    assert_true(ck_pgo_next_value(&m.old_row, &v) && ck_pgo_next_value(&m.old_row, &v) && ck_view_is(v.text, "ab"));
    assert_true(ck_pgo_next_value(&m.new_row, &v) && ck_pgo_next_value(&m.new_row, &v) && v.unchanged);
    m = parsed(deletion);
    assert_int_equal(m.old_kind, 'K');
    assert_int_equal(parsed(truncation).count, 1);
}

static void cut(void **state) {
    (void)state;
    const ck_view all[] = {begin, commit, relation, insert, update, deletion, truncation};
    const size_t free_tail[] = {12, 8, 0, 0, 0, 0, 0}; /* times and numbers nobody reads */
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++)
        for (size_t n = 0; n < all[i].n - free_tail[i]; n++) {
            ck_pgo_message m;
            char *exact = malloc(n ? n : 1); /* so that a sanitizer sees a step too far */
            memcpy(exact, all[i].p, n);
            assert_int_equal(ck_pgo_parse((ck_view){exact, n}, &m, NULL), CK_CORRUPT);
            free(exact);
        }
    ck_pgo_message m;
    assert_int_equal(ck_pgo_parse(BYTES("X"), &m, NULL), CK_CORRUPT);
    assert_int_equal(ck_pgo_parse(BYTES("T\xff\xff\xff\xff\0\0\0\0\1"), &m, NULL), CK_CORRUPT);
}

static void positions(void **state) {
    (void)state;
    uint64_t lsn;
    char text[CK_PG_LSN_BYTES];
    assert_true(ck_pg_lsn_parse("16/B374D848", &lsn) && lsn == 0x16B374D848ULL);
    assert_string_equal(ck_pg_lsn_print(text, lsn), "16/B374D848");
    assert_false(ck_pg_lsn_parse("16", &lsn));
    assert_false(ck_pg_lsn_parse("16/", &lsn));
    assert_false(ck_pg_lsn_parse("16/1x", &lsn));
    assert_false(ck_pg_lsn_parse("100000000/1", &lsn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(cut), cmocka_unit_test(positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
