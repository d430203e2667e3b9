/* Whether bytes are UTF-8, as RFC 3629 has it: shortest forms only, no surrogates, nothing above U+10FFFF. Two forms of
 * one answer: a scalar one with eight ASCII bytes a step, and an AVX2 one that looks up the high nibbles of neighbours.
 * Pure functions; any thread. */
#ifndef CK_FORMAT_UTF8_H
#define CK_FORMAT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/proc.h"

typedef bool (*ck_utf8_fn)(const uint8_t *p, size_t n);

bool ck_utf8_valid_scalar(const uint8_t *p, size_t n);
bool ck_utf8_valid_avx2(const uint8_t *p, size_t n); /* only where the CPU has it */
/* The fastest form this CPU runs. */
ck_utf8_fn ck_utf8_valid_for(ck_cpu cpu);

/* Bytes before the first that does not belong to a whole, valid character; n when all are valid. */
size_t ck_utf8_valid_prefix(const uint8_t *p, size_t n);

/* Characters of valid UTF-8. */
size_t ck_utf8_length(const uint8_t *p, size_t n);

#endif
