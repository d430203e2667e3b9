/* What is the same for every instruction set: escapes, and faults in words. */
#include <stdio.h>

#include "format/json_int.h"

static const uint8_t *fault_at(ck_json_fault *f, const uint8_t *at, ck_json_what what) {
    *f = (ck_json_fault){at, what};
    return NULL;
}

static int hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits, -1 when they are not. */
static int32_t hex4(const uint8_t *p) {
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        int h = hex(p[i]);
        if (h < 0) return -1;
        v = v << 4 | h;
    }
    return v;
}

const uint8_t *ck_json_escape(const uint8_t *p, ck_json_fault *f) {
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return p + 2;
    case 'u': {
        int32_t a = hex4(p + 2);
        if (a < 0) return fault_at(f, p, CK_JSON_ESCAPE);
        if ((a & 0xF800) != 0xD800) return p + 6;
        int32_t b = a < 0xDC00 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
        if (b < 0 || (b & 0xFC00) != 0xDC00) return fault_at(f, p, CK_JSON_SURROGATE);
        return p + 12;
    }
    default: return fault_at(f, p, CK_JSON_ESCAPE);
    }
}

static char *put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

size_t ck_json_unescape(const uint8_t *p, const uint8_t *end, char *out) {
    char *at = out;
    while (p < end) {
        const uint8_t *q = memchr(p, '\\', (size_t)(end - p));
        if (!q) q = end;
        memcpy(at, p, (size_t)(q - p));
        at += q - p;
        if (q == end) break;
        p = q + 2;
        switch (q[1]) {
        case 'b': *at++ = '\b'; break;
        case 'f': *at++ = '\f'; break;
        case 'n': *at++ = '\n'; break;
        case 'r': *at++ = '\r'; break;
        case 't': *at++ = '\t'; break;
        case 'u': {
            uint32_t c = (uint32_t)hex4(q + 2);
            p = q + 6;
            if ((c & 0xFC00) == 0xD800) {
                c = 0x10000 + ((c & 0x3FF) << 10) + ((uint32_t)hex4(q + 8) & 0x3FF);
                p = q + 12;
            }
            at = put_utf8(at, c);
            break;
        }
        default: *at++ = (char)q[1]; break;
        }
    }
    return (size_t)(at - out);
}

/* ---- faults in words ---- */

/* What stands at the fault, in quotes where it can be shown. */
static void unexpected(const ck_json_fault *f, const uint8_t *end, char *out, size_t bytes) {
    if (f->at >= end)
        (void)snprintf(out, bytes, "unexpected end");
    else if (*f->at == 0)
        (void)snprintf(out, bytes, "a NUL byte");
    else if (*f->at > 0x20 && *f->at < 0x7F)
        (void)snprintf(out, bytes, "unexpected '%c'", *f->at);
    else
        (void)snprintf(out, bytes, "unexpected byte 0x%02X", *f->at);
}

ck_status ck_json_explain(ck_why *w, const ck_json_fault *f, const uint8_t *record, const uint8_t *end,
                          const char *where) {
    char shown[32];
    const char *what = shown;
    switch (f->what) {
    case CK_JSON_UNEXPECTED: unexpected(f, end, shown, sizeof shown); break;
    case CK_JSON_CONTROL:
        what = f->at >= end ? "an unterminated string" : *f->at ? "a control character in a string" : "a NUL byte";
        break;
    case CK_JSON_ESCAPE: what = "an invalid escape"; break;
    case CK_JSON_SURROGATE: what = "half a surrogate pair"; break;
    case CK_JSON_UTF8: what = "invalid UTF-8"; break;
    case CK_JSON_DEPTH: what = "more than 1024 levels of nesting"; break;
    case CK_JSON_TRAILING: what = "more text after the value"; break;
    }
    long long at = f->at - record + 1;
    w->column = at;
    return ck_why_set(w, "not valid JSON: %s at byte %lld %s", what, at, where);
}
