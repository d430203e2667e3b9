/* Values by the grammar of RFC 8259, and nothing more lenient: what the general way and every skipped value go through.
 * Nesting is a bit stack, so depth costs no C stack. */
#include <stdio.h>

#include "format/json_int.h"

static const uint8_t *fault_at(ck_json_fault *f, const uint8_t *at, const char *what) {
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

/* Behind the escape at the backslash p. */
static const uint8_t *escape(const uint8_t *p, ck_json_fault *f) {
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
        if (a < 0) return fault_at(f, p, "an invalid escape");
        if ((a & 0xF800) != 0xD800) return p + 6;
        int32_t b = a < 0xDC00 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
        if (b < 0 || (b & 0xFC00) != 0xDC00) return fault_at(f, p, "half a surrogate pair");
        return p + 12;
    }
    default: return fault_at(f, p, "an invalid escape");
    }
}

const uint8_t *ck_json_string(const ck_json_kernel *k, const uint8_t *p, const uint8_t *end, ck_json_value *out,
                              ck_json_fault *f) {
    *out = (ck_json_value){.p = p, .kind = CK_JSON_STRING};
    const uint8_t *q = k->plain(p);
    bool ascii = *q == '"';
    if (*q >= 0x80) q = k->text(q);
    while (*q != '"') {
        if (q >= end) return fault_at(f, end, "an unterminated string");
        if (*q != '\\') return fault_at(f, q, *q ? "a control character in a string" : "a NUL byte");
        out->escaped = true;
        q = escape(q, f);
        if (!q) return NULL;
        q = k->text(q);
    }
    if (!ascii && !k->utf8(p, (size_t)(q - p)))
        return fault_at(f, p + ck_utf8_valid_prefix(p, (size_t)(q - p)), "invalid UTF-8");
    out->end = q;
    return q + 1;
}

static const uint8_t *number(const uint8_t *p, ck_json_value *out, ck_json_fault *f) {
    ck_number n;
    const uint8_t *at, *q = ck_number_scan(p, &n, &at);
    if (!q) return fault_at(f, at, NULL);
    *out = (ck_json_value){p, q, CK_JSON_NUMBER, false};
    return q;
}

static const uint8_t *word(const uint8_t *p, const uint8_t *end, const char *text, size_t n, ck_json_kind kind,
                           ck_json_value *out, ck_json_fault *f) {
    for (size_t i = 0; i < n; i++)
        if (p + i >= end || p[i] != (uint8_t)text[i]) return fault_at(f, p + i < end ? p + i : end, NULL);
    *out = (ck_json_value){p, p + n, kind, false};
    return p + n;
}

static const uint8_t *scalar(const ck_json_kernel *k, const uint8_t *p, const uint8_t *end, ck_json_value *out,
                             ck_json_fault *f) {
    if (p >= end) return fault_at(f, end, NULL);
    switch (*p) {
    case '"': return ck_json_string(k, p + 1, end, out, f);
    case 't': return word(p, end, "true", 4, CK_JSON_TRUE, out, f);
    case 'f': return word(p, end, "false", 5, CK_JSON_FALSE, out, f);
    case 'n': return word(p, end, "null", 4, CK_JSON_NULL, out, f);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return number(p, out, f);
    default: return fault_at(f, p, NULL);
    }
}

/* `"key" :` and the space behind it. */
static const uint8_t *key_colon(const ck_json_kernel *k, const uint8_t *p, const uint8_t *end, ck_json_fault *f) {
    ck_json_value key;
    if (p >= end || *p != '"') return fault_at(f, p < end ? p : end, NULL);
    p = ck_json_string(k, p + 1, end, &key, f);
    if (!p) return NULL;
    p = ck_json_space(p, end);
    if (p >= end || *p != ':') return fault_at(f, p, NULL);
    return ck_json_space(p + 1, end);
}

/* The array or object at p. Objects set their bit in the stack. */
static const uint8_t *nested(const ck_json_kernel *k, const uint8_t *p, const uint8_t *end, ck_json_fault *f) {
    uint64_t objects[CK_JSON_DEPTH_MAX / 64];
    size_t depth = 0;
    for (;;) { /* at a value */
        ck_json_value v;
        bool opened = p < end && (*p == '{' || *p == '[');
        if (opened) {
            if (depth == CK_JSON_DEPTH_MAX) return fault_at(f, p, "more than 1024 levels of nesting");
            ck_bit_put(objects, depth++, *p == '{');
            p = ck_json_space(p + 1, end);
        } else {
            p = scalar(k, p, end, &v, f);
            if (!p) return NULL;
            p = ck_json_space(p, end);
        }
        for (bool first = opened;; first = false) { /* behind an opening bracket or a value: close, or go on */
            bool object = ck_bit_get(objects, depth - 1);
            if (p < end && *p == (object ? '}' : ']')) {
                p++;
                if (--depth == 0) return p;
                p = ck_json_space(p, end);
                continue;
            }
            if (!first) {
                if (p >= end || *p != ',') return fault_at(f, p < end ? p : end, NULL);
                p = ck_json_space(p + 1, end);
            }
            if (object && !(p = key_colon(k, p, end, f))) return NULL;
            break;
        }
    }
}

const uint8_t *ck_json_value_at(const ck_json_kernel *k, const uint8_t *p, const uint8_t *end, ck_json_value *out,
                                ck_json_fault *f) {
    if (p >= end || (*p != '{' && *p != '[')) return scalar(k, p, end, out, f);
    const uint8_t *q = nested(k, p, end, f);
    if (q) *out = (ck_json_value){p, q, *p == '{' ? CK_JSON_OBJECT : CK_JSON_ARRAY, false};
    return q;
}

/* ---- escapes ---- */

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

ck_status ck_json_explain(ck_why *w, const ck_json_fault *f, const uint8_t *record, const uint8_t *end,
                          const char *where) {
    char unexpected[32];
    const char *what = f->what;
    if (!what) {
        what = unexpected;
        if (f->at >= end)
            (void)snprintf(unexpected, sizeof unexpected, "unexpected end");
        else if (*f->at == 0)
            (void)snprintf(unexpected, sizeof unexpected, "a NUL byte");
        else if (*f->at > 0x20 && *f->at < 0x7F)
            (void)snprintf(unexpected, sizeof unexpected, "unexpected '%c'", *f->at);
        else
            (void)snprintf(unexpected, sizeof unexpected, "unexpected byte 0x%02X", *f->at);
    }
    long long at = f->at - record + 1;
    w->column = at;
    return ck_why_set(w, "not valid JSON: %s at byte %lld %s", what, at, where);
}
