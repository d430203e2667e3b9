/* Characters of UTF-8 strings. Everything but ck_utf8_valid takes valid UTF-8. */
#ifndef CK_EXPR_UTF8_H
#define CK_EXPR_UTF8_H

#include "base/view.h"

/* The first byte of a character: not 10xxxxxx. */
static inline bool ck_utf8_starts(char c) { return ((unsigned char)c & 0xC0) != 0x80; }
bool ck_utf8_is_ascii(ck_view v);
bool ck_utf8_valid(ck_view v);   /* no overlong forms, surrogates or codes above U+10FFFF */
size_t ck_utf8_count(ck_view v); /* in characters */
/* Bytes of the first `chars` characters, all of them if there are fewer. */
size_t ck_utf8_prefix(ck_view v, size_t chars);
/* The code of the character at p (n bytes left, at least one); *bytes gets its length. */
uint32_t ck_utf8_decode(const char *p, size_t n, size_t *bytes);
size_t ck_utf8_encode(uint32_t code, char p[4]); /* bytes written; 0 for what is no character */

#endif
