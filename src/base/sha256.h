/* SHA-256 (FIPS 180-4), for names that say what a file holds. No secret goes through here. */
#ifndef CK_BASE_SHA256_H
#define CK_BASE_SHA256_H

#include "base/view.h"

enum { CK_SHA256_CHARS = 64, CK_SHA256_BLOCK_BYTES = 64 };

typedef struct ck_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[CK_SHA256_BLOCK_BYTES]; /* what has not filled one yet */
} ck_sha256;

void ck_sha256_init(ck_sha256 *s);
void ck_sha256_add(ck_sha256 *s, const void *p, size_t n);
void ck_sha256_end(ck_sha256 *s, char hex[CK_SHA256_CHARS + 1]); /* lower case; the state is spent */
void ck_sha256_of(ck_view v, char hex[CK_SHA256_CHARS + 1]);
/* 64 hex digits, lower case: fit to be a file's name. */
bool ck_sha256_is_hex(ck_view v);

#endif
