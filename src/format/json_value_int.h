/* Values by the grammar of RFC 8259 and nothing more lenient, compiled once per instruction set as lane_int.h says:
 * what every value that is not parsed in line goes through. Nesting is a bit stack, so depth costs no C stack.
 *
 * end is the newline behind the text, or NULL where the first newline is it: newlines before end are white space (a CSV
 * field may hold them), the one at end stops everything. */
#ifndef CK_FORMAT_JSON_VALUE_INT_H
#define CK_FORMAT_JSON_VALUE_INT_H

#include "data/text.h"
#include "format/json_int.h"
#include "format/json_scan_int.h"

#if CK_SIMD
#define CK_UTF8_VALID ck_utf8_valid_avx2
#else
#define CK_UTF8_VALID ck_utf8_valid_scalar
#endif

static inline const uint8_t *CK_NAME(fault)(ck_json_fault *f, const uint8_t *at, ck_json_what what) {
    *f = (ck_json_fault){at, what};
    return NULL;
}

static inline const uint8_t *CK_NAME(space)(const uint8_t *p, const uint8_t *end) {
    if (CK_LIKELY(*p > ' ')) return p;
    while (*p == ' ' || *p == '\t' || *p == '\r' || (*p == '\n' && p < end)) p++;
    return p;
}

/* ---- scalars ---- */

/* The string from p, q its first byte that is neither plain nor its end. */
CK_TARGET static const uint8_t *CK_NAME(odd_string)(const uint8_t *p, const uint8_t *q, ck_json_value *out,
                                                    ck_json_fault *f) {
    bool escaped = false;
    if (*q >= 0x80) q = CK_NAME(text)(q);
    while (*q != '"') {
        if (*q != '\\') return CK_NAME(fault)(f, q, CK_JSON_CONTROL);
        escaped = true;
        q = ck_json_escape(q, f);
        if (!q) return NULL;
        q = CK_NAME(text)(q);
    }
    if (!CK_UTF8_VALID(p, (size_t)(q - p)))
        return CK_NAME(fault)(f, p + ck_utf8_valid_prefix(p, (size_t)(q - p)), CK_JSON_UTF8);
    *out = (ck_json_value){p, q, CK_JSON_STRING, escaped};
    return q + 1;
}

/* The string whose opening quote is before p. Behind its closing quote, or NULL. */
CK_TARGET static inline const uint8_t *CK_NAME(string)(const uint8_t *p, ck_json_value *out, ck_json_fault *f) {
    const uint8_t *q = CK_NAME(find_plain)(p);
    if (CK_UNLIKELY(*q != '"')) return CK_NAME(odd_string)(p, q, out, f);
    *out = (ck_json_value){p, q, CK_JSON_STRING, false};
    return q + 1;
}

static const uint8_t *CK_NAME(odd_number)(const uint8_t *p, ck_json_fault *f) {
    ck_number n;
    const uint8_t *at, *q = ck_number_scan(p, &n, &at);
    return q ? q : CK_NAME(fault)(f, at, CK_JSON_UNEXPECTED);
}

CK_TARGET static inline const uint8_t *CK_NAME(number)(const uint8_t *p, ck_json_fault *f) {
    const uint8_t *q = p + (*p == '-');
    size_t n = CK_NAME(count_digits)(q);
    if (CK_UNLIKELY(n == 0 || (*q == '0' && n > 1))) return CK_NAME(odd_number)(p, f);
    q += n;
    if (*q == '.') {
        n = CK_NAME(count_digits)(++q);
        if (CK_UNLIKELY(n == 0)) return CK_NAME(odd_number)(p, f);
        q += n;
    }
    return CK_UNLIKELY((*q | 0x20) == 'e') ? CK_NAME(odd_number)(p, f) : q;
}

static const uint8_t *CK_NAME(word)(const uint8_t *p, ck_json_value *out, ck_json_fault *f) {
    static const struct {
        const char *text;
        ck_json_kind kind;
    } words[] = {{"true", CK_JSON_TRUE}, {"false", CK_JSON_FALSE}, {"null", CK_JSON_NULL}};
    for (size_t i = 0; i < 3; i++) {
        const char *text = words[i].text;
        if (*p != (uint8_t)text[0]) continue;
        const uint8_t *q = p;
        for (; *text; text++, q++)
            if (*q != (uint8_t)*text) return CK_NAME(fault)(f, q, CK_JSON_UNEXPECTED);
        *out = (ck_json_value){p, q, words[i].kind, false};
        return q;
    }
    return CK_NAME(fault)(f, p, CK_JSON_UNEXPECTED);
}

CK_TARGET static inline const uint8_t *CK_NAME(scalar)(const uint8_t *p, ck_json_value *out, ck_json_fault *f) {
    if (*p == '"') return CK_NAME(string)(p + 1, out, f);
    if (*p == '-' || (*p >= '0' && *p <= '9')) {
        const uint8_t *q = CK_NAME(number)(p, f);
        if (q) *out = (ck_json_value){p, q, CK_JSON_NUMBER, false};
        return q;
    }
    return CK_NAME(word)(p, out, f);
}

/* ---- arrays and objects ---- */

/* `"key" :` and the space behind it. */
CK_TARGET static inline const uint8_t *CK_NAME(key_colon)(const uint8_t *p, const uint8_t *end, ck_json_fault *f) {
    ck_json_value key;
    if (*p != '"') return CK_NAME(fault)(f, p, CK_JSON_UNEXPECTED);
    p = CK_NAME(string)(p + 1, &key, f);
    if (!p) return NULL;
    p = CK_NAME(space)(p, end);
    if (*p != ':') return CK_NAME(fault)(f, p, CK_JSON_UNEXPECTED);
    return CK_NAME(space)(p + 1, end);
}

/* The array or object at p. Objects set their bit in the stack. */
CK_TARGET static const uint8_t *CK_NAME(nested)(const uint8_t *p, const uint8_t *end, ck_json_fault *f) {
    uint64_t objects[CK_JSON_DEPTH_MAX / 64];
    size_t depth = 0;
    for (;;) { /* at a value */
        ck_json_value v;
        bool opened = *p == '{' || *p == '[';
        if (opened) {
            if (depth == CK_JSON_DEPTH_MAX) return CK_NAME(fault)(f, p, CK_JSON_DEPTH);
            if ((depth & 63) == 0) objects[depth >> 6] = 0;
            ck_bit_put(objects, depth++, *p == '{');
            p = CK_NAME(space)(p + 1, end);
        } else {
            p = CK_NAME(scalar)(p, &v, f);
            if (!p) return NULL;
            p = CK_NAME(space)(p, end);
        }
        for (bool first = opened;; first = false) { /* behind an opening bracket or a value: close, or go on */
            bool object = ck_bit_get(objects, depth - 1);
            if (*p == (object ? '}' : ']')) {
                p++;
                if (--depth == 0) return p;
                p = CK_NAME(space)(p, end);
                continue;
            }
            if (!first) {
                if (*p != ',') return CK_NAME(fault)(f, p, CK_JSON_UNEXPECTED);
                p = CK_NAME(space)(p + 1, end);
            }
            if (object && !(p = CK_NAME(key_colon)(p, end, f))) return NULL;
            break;
        }
    }
}

CK_TARGET static const uint8_t *CK_NAME(any_value)(const uint8_t *p, const uint8_t *end, ck_json_value *out,
                                                   ck_json_fault *f) {
    if (*p != '{' && *p != '[') return CK_NAME(scalar)(p, out, f);
    const uint8_t *q = CK_NAME(nested)(p, end, f);
    if (q) *out = (ck_json_value){p, q, *p == '{' ? CK_JSON_OBJECT : CK_JSON_ARRAY, false};
    return q;
}

/* ---- for the kernel's table ---- */

CK_TARGET static const uint8_t *CK_NAME(string_at)(const uint8_t *p, ck_json_value *out, ck_json_fault *f) {
    return CK_NAME(string)(p, out, f);
}

#endif
