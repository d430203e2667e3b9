/* Reading bytes from outside: a cursor that cannot overrun. Every getter returns false and moves nothing when too
 * little is left. Check a length against `left` and a ceiling before allocating for it. */
#ifndef CK_BASE_CURSOR_H
#define CK_BASE_CURSOR_H

#include "base/view.h"

typedef struct ck_cursor {
    const uint8_t *p;
    size_t left;
} ck_cursor;

/* An empty view may have no address; a cursor always has one, so that moving it by nothing is defined. */
static inline ck_cursor ck_cursor_of(const void *p, size_t n) { return (ck_cursor){(const uint8_t *)(p ? p : ""), n}; }
static inline bool ck_cursor_take(ck_cursor *c, size_t n, ck_view *out) { /* borrows from the cursor's bytes */
    if (c->left < n) return false;
    *out = (ck_view){(const char *)c->p, n};
    c->p += n, c->left -= n;
    return true;
}
static inline bool ck_cursor_le(ck_cursor *c, size_t n, uint64_t *v) {
    if (c->left < n) return false;
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x |= (uint64_t)c->p[i] << (8 * i);
    *v = x;
    c->p += n, c->left -= n;
    return true;
}
static inline bool ck_cursor_be(ck_cursor *c, size_t n, uint64_t *v) {
    if (c->left < n) return false;
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x = x << 8 | c->p[i];
    *v = x;
    c->p += n, c->left -= n;
    return true;
}
static inline bool ck_cursor_u8(ck_cursor *c, uint8_t *v) {
    if (c->left < 1) return false;
    *v = *c->p;
    c->p++, c->left--;
    return true;
}
#define CK_CURSOR_GETTER(name, type, order, bytes)                                                                     \
    static inline bool ck_cursor_##name(ck_cursor *c, type *v) {                                                       \
        uint64_t x;                                                                                                    \
        if (!ck_cursor_##order(c, bytes, &x)) return false;                                                            \
        *v = (type)x;                                                                                                  \
        return true;                                                                                                   \
    }
CK_CURSOR_GETTER(u16le, uint16_t, le, 2)
CK_CURSOR_GETTER(u32le, uint32_t, le, 4)
CK_CURSOR_GETTER(u64le, uint64_t, le, 8)
CK_CURSOR_GETTER(i64le, int64_t, le, 8)
CK_CURSOR_GETTER(u16be, uint16_t, be, 2)
CK_CURSOR_GETTER(u32be, uint32_t, be, 4)
CK_CURSOR_GETTER(u64be, uint64_t, be, 8)
#undef CK_CURSOR_GETTER

#endif
