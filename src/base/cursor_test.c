#include "base/cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static void test_both_orders(void **state) {
    (void)state;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    int64_t i64;
    ck_cursor c = ck_cursor_of(bytes, 9);
    assert_true(ck_cursor_u16le(&c, &u16) && u16 == 0x0201);
    assert_true(ck_cursor_u16be(&c, &u16) && u16 == 0x0304);
    assert_true(ck_cursor_u32be(&c, &u32) && u32 == 0x05060708);
    assert_int_equal(c.left, 1);
    c = ck_cursor_of(bytes, 9);
    assert_true(ck_cursor_u32le(&c, &u32) && u32 == 0x04030201);
    c = ck_cursor_of(bytes, 9);
    assert_true(ck_cursor_u64le(&c, &u64) && u64 == 0x0807060504030201ULL);
    c = ck_cursor_of(bytes, 9);
    assert_true(ck_cursor_u64be(&c, &u64) && u64 == 0x0102030405060708ULL);
    static const uint8_t minus_two[] = {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    c = ck_cursor_of(minus_two, 8);
    assert_true(ck_cursor_i64le(&c, &i64) && i64 == -2);
}

/* Too little left: false, and nothing moves or is written. */
static void test_never_overruns(void **state) {
    (void)state;
    for (size_t n = 0; n < 9; n++) {
        ck_cursor c = ck_cursor_of(bytes, n);
        uint8_t u8 = 77;
        uint16_t u16 = 77;
        uint32_t u32 = 77;
        uint64_t u64 = 77;
        ck_view v = {NULL, 77};
        if (n < 1) assert_true(!ck_cursor_u8(&c, &u8) && u8 == 77);
        if (n < 2) assert_true(!ck_cursor_u16le(&c, &u16) && !ck_cursor_u16be(&c, &u16) && u16 == 77);
        if (n < 4) assert_true(!ck_cursor_u32le(&c, &u32) && !ck_cursor_u32be(&c, &u32) && u32 == 77);
        if (n < 8) assert_true(!ck_cursor_u64le(&c, &u64) && !ck_cursor_u64be(&c, &u64) && u64 == 77);
        assert_true(!ck_cursor_take(&c, n + 1, &v) && v.n == 77);
        assert_true(!ck_cursor_take(&c, SIZE_MAX, &v));
        assert_int_equal(c.left, n);
        assert_ptr_equal(c.p, bytes);
        assert_true(ck_cursor_take(&c, n, &v) && v.n == n && c.left == 0);
        assert_true(ck_cursor_take(&c, 0, &v));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_orders),
        cmocka_unit_test(test_never_overruns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
