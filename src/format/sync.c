/* Where records begin in the middle of a file, for splits that are byte ranges. */
#include "format/decoder.h"

static ck_status behind_newline(const char *buf, size_t n, size_t *skip) {
    const char *p = n ? memchr(buf, '\n', n) : NULL;
    *skip = p ? (size_t)(p - buf) + 1 : n;
    return p ? CK_OK : CK_MORE;
}

ck_status ck_format_sync(const char *format, const char *buf, size_t n, bool *in_quotes, size_t *skip) {
    if (strcmp(format, "csv") != 0) return behind_newline(buf, n, skip);
    for (size_t at = 0;;) {
        const char *p = buf + at;
        size_t left = n - at;
        if (*in_quotes) {
            const char *quote = left ? memchr(p, '"', left) : NULL;
            if (!quote) break;
            *in_quotes = false;
            at = (size_t)(quote - buf) + 1;
            continue;
        }
        const char *newline = left ? memchr(p, '\n', left) : NULL;
        size_t line = newline ? (size_t)(newline - p) : left;
        const char *quote = line ? memchr(p, '"', line) : NULL;
        if (quote) {
            *in_quotes = true;
            at = (size_t)(quote - buf) + 1;
            continue;
        }
        if (!newline) break;
        *skip = (size_t)(newline - buf) + 1;
        return CK_OK;
    }
    *skip = n;
    return CK_MORE;
}

bool ck_format_quotes(const char *buf, size_t n, bool in_quotes) {
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) count += buf[i] == '"'; /* the compiler makes lanes of this */
    return in_quotes ^ (count & 1);
}
