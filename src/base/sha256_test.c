#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* FIPS 180-4's own, and lengths at the edges of a block by sha256sum. */
static void hashes_are_those_of_the_standard(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqr"
         "stu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char hex[CK_SHA256_CHARS + 1];
        ck_sha256_of(ck_view_of(known[i].text), hex);
        assert_string_equal(hex, known[i].hex);
    }
}

static void a_million_bytes_in_pieces(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 55, 56, 63, 64, 65, 1000, 4096};
    static char a[4096];
    memset(a, 'a', sizeof a);
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        ck_sha256 s;
        char hex[CK_SHA256_CHARS + 1];
        ck_sha256_init(&s);
        for (size_t left = 1000000; left;) {
            size_t n = left < pieces[k] ? left : pieces[k];
            ck_sha256_add(&s, a, n);
            ck_sha256_add(&s, a, 0);
            left -= n;
        }
        ck_sha256_end(&s, hex);
        assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

static void only_such_digits_name_a_file(void **state) {
    (void)state;
    char hex[CK_SHA256_CHARS + 1];
    ck_sha256_of(CK_VIEW("x"), hex);
    assert_true(ck_sha256_is_hex(ck_view_of(hex)));
    assert_false(ck_sha256_is_hex((ck_view){hex, 63}));
    assert_false(ck_sha256_is_hex((ck_view){NULL, 0}));
    static const char bad[] = "AGg/.\\\n -";
    for (size_t i = 0; i < sizeof bad; i++) { /* with the NUL at its end */
        hex[i * 7] = bad[i];
        assert_false(ck_sha256_is_hex((ck_view){hex, CK_SHA256_CHARS}));
        hex[i * 7] = '0';
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_the_standard),
        cmocka_unit_test(a_million_bytes_in_pieces),
        cmocka_unit_test(only_such_digits_name_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
