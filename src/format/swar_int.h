/* Eight bytes a step in a plain register: what the scalar decoders scan and parse with. The byte order is little-endian
 * (the engine's formats are too). Masks mark a byte by its highest bit; where a comment says first, only the lowest
 * marked byte is to be trusted, because borrows run upwards. */
#ifndef CK_FORMAT_SWAR_INT_H
#define CK_FORMAT_SWAR_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the scanners read words in little-endian order");

#define CK_SWAR_ONES 0x0101010101010101ULL
#define CK_SWAR_HIGH 0x8080808080808080ULL

static inline uint64_t ck_load64(const void *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}
static inline uint32_t ck_load32(const void *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}
/* First byte equal to c. */
static inline uint64_t ck_swar_eq(uint64_t x, uint8_t c) {
    uint64_t y = x ^ (CK_SWAR_ONES * c);
    return (y - CK_SWAR_ONES) & ~y & CK_SWAR_HIGH;
}
/* First byte below c, c <= 0x80. */
static inline uint64_t ck_swar_below(uint64_t x, uint8_t c) { return (x - CK_SWAR_ONES * c) & ~x & CK_SWAR_HIGH; }
/* First byte that is no decimal digit. */
static inline uint64_t ck_swar_no_digit(uint64_t x) {
    return ((x + 0x4646464646464646ULL) | (x - 0x3030303030303030ULL)) & CK_SWAR_HIGH;
}
/* Number of bytes before the first marked one; mask must not be 0. */
static inline unsigned ck_swar_index(uint64_t mask) { return (unsigned)__builtin_ctzll(mask) >> 3; }

/* Value of the first n digits of x, 1 <= n <= 8. */
static inline uint64_t ck_swar_number(uint64_t x, unsigned n) {
    x <<= 64 - 8 * n; /* zero bytes in front count as digit 0 below: their high nibble is masked away */
    x &= 0x0F0F0F0F0F0F0F0FULL;
    x = x * 10 + (x >> 8);
    return ((x & 0x000000FF000000FFULL) * 0x000F424000000064ULL +
            ((x >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL) >>
           32;
}

#endif
