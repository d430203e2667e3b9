/* Digits of small numbers, shared by the printers of this room. */
#ifndef CK_DATA_DIGITS_INT_H
#define CK_DATA_DIGITS_INT_H

#include <stdint.h>
#include <string.h>

static const char ck_digit_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                     "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                     "8081828384858687888990919293949596979899";

/* Exactly two, four, eight digits. */
static inline void ck_put_2(char *p, uint32_t v) { memcpy(p, ck_digit_pairs + v * 2, 2); }
static inline void ck_put_4(char *p, uint32_t v) {
    ck_put_2(p, v / 100);
    ck_put_2(p + 2, v % 100);
}
static inline void ck_put_8(char *p, uint32_t v) {
    ck_put_4(p, v / 10000);
    ck_put_4(p + 4, v % 10000);
}

#endif
