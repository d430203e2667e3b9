/* Borrowed bytes: a pointer and a length. Valid as long as what it points into. No NUL at the end. */
#ifndef CK_BASE_VIEW_H
#define CK_BASE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct ck_view {
    const char *p;
    size_t n;
} ck_view;

#define CK_VIEW(literal) ((ck_view){"" literal, sizeof(literal) - 1})

static inline ck_view ck_view_of(const char *z) { return (ck_view){z, z ? strlen(z) : 0}; }
static inline bool ck_view_eq(ck_view a, ck_view b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }
static inline bool ck_view_is(ck_view a, const char *z) { return ck_view_eq(a, ck_view_of(z)); }
/* Byte order, shorter first on a common prefix: <0, 0, >0. */
static inline int ck_view_cmp(ck_view a, ck_view b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}
/* ASCII only, whatever the locale. */
static inline char ck_ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static inline bool ck_view_eq_nocase(ck_view a, ck_view b) {
    if (a.n != b.n) return false;
    for (size_t i = 0; i < a.n; i++)
        if (ck_ascii_lower(a.p[i]) != ck_ascii_lower(b.p[i])) return false;
    return true;
}

#endif
