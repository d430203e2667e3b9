/* For tests of this room: what a text decodes to, whichever way it is cut and decoded. */
#ifndef CK_FORMAT_EXPECT_INT_H
#define CK_FORMAT_EXPECT_INT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/harness_int.h"

static inline void ck_expect_decode(ck_harness *h, const ck_decoder_spec *spec, const char *text, size_t n,
                                    const size_t *cuts, size_t cut_count, bool simd) {
    ck_harness_init(h, ck_heap_system(), simd);
    assert_int_equal(ck_harness_decode(h, spec, text, n, cuts, cut_count), CK_OK);
    assert_int_equal(ck_bytes_terminate(&h->rows), CK_OK);
    assert_int_equal(ck_bytes_terminate(&h->bad), CK_OK);
}

/* Rows and bad records as ck_harness prints them; NULL: whatever they are. The whole text at once in the plain form is
 * compared with them, and with it every cut into two, in either form. */
static inline void ck_expect(const ck_decoder_spec *spec, const char *text, size_t n, const char *rows,
                             const char *bad) {
    ck_harness whole, other;
    ck_expect_decode(&whole, spec, text, n, NULL, 0, false);
    if (rows) assert_string_equal(whole.rows.p, rows);
    if (bad) assert_string_equal(whole.bad.p, bad);
    for (size_t cut = 0; cut <= n; cut++) {
        for (int simd = 0; simd < 2; simd++) {
            ck_expect_decode(&other, spec, text, n, &cut, 1, simd);
            assert_string_equal(other.rows.p, whole.rows.p);
            assert_string_equal(other.bad.p, whole.bad.p);
            ck_harness_destroy(&other);
        }
    }
    ck_harness_destroy(&whole);
}

#endif
