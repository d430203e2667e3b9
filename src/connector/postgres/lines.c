/* Lines of COPY, taken apart. */
#include "connector/postgres/pg_int.h"

ck_status ck_pg_copy_field(ck_bytes *unescaped, const char *line, size_t n, size_t *at, ck_view *out, bool *in) {
    const char *p = line + *at, *tab = memchr(p, '\t', n - *at);
    size_t bytes = tab ? (size_t)(tab - p) : n - *at;
    *at += bytes + 1;
    *out = (ck_view){p, bytes};
    *in = true;
    if (!memchr(p, '\\', bytes)) return CK_OK;
    *in = false;
    if (bytes == 2 && p[1] == 'N') {
        *out = (ck_view){0};
        return CK_OK;
    }
    static const char letters[] = "bfnrtv", meant[] = "\b\f\n\r\t\v";
    ck_bytes_clear(unescaped);
    CK_TRY(ck_bytes_reserve(unescaped, bytes));
    for (size_t i = 0; i < bytes; i++) {
        char c = p[i];
        if (c == '\\' && i + 1 < bytes) {
            const char *letter = strchr(letters, p[++i]);
            c = letter && *letter ? meant[letter - letters] : p[i];
        }
        unescaped->p[unescaped->n++] = c;
    }
    *out = ck_bytes_as_view(unescaped);
    return CK_OK;
}
