/* See show_raw.h. */
#include "connector/show_raw.h"

#include "expr/utf8.h"

/* Bytes of the character at p that can be shown; 0: none that can. */
static size_t shown_bytes(const char *p, size_t n) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x80) return c >= 0x20 && c != 0x7f;
    size_t bytes = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (bytes > n || !ck_utf8_valid((ck_view){p, bytes})) return 0;
    return c == 0xc2 && (unsigned char)p[1] < 0xa0 ? 0 : bytes; /* control characters a terminal obeys, too */
}

void ck_show_raw(char *to, size_t room, ck_view raw) {
    bool cut = raw.n >= room;
    size_t n = 0, bytes, most = cut ? room - 4 : raw.n;
    for (size_t i = 0; i < raw.n && n < most; i += bytes ? bytes : 1) {
        bytes = shown_bytes(raw.p + i, raw.n - i);
        if (n + bytes > most) break;
        if (bytes)
            memcpy(to + n, raw.p + i, bytes);
        else
            to[n] = '.';
        n += bytes ? bytes : 1;
    }
    memcpy(to + n, cut ? "..." : "", cut ? 4 : 1);
}
