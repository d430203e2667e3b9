#include "base/base64.h"

ck_status ck_base64_encode(ck_view v, ck_bytes *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    CK_TRY(ck_bytes_reserve(out, v.n / 3 * 4 + 4));
    const uint8_t *s = (const uint8_t *)v.p;
    char *p = out->p + out->n;
    size_t i = 0;
    for (; v.n - i >= 3; i += 3, p += 4) {
        uint32_t w = (uint32_t)s[i] << 16 | (uint32_t)s[i + 1] << 8 | s[i + 2];
        p[0] = digits[w >> 18], p[1] = digits[w >> 12 & 63], p[2] = digits[w >> 6 & 63], p[3] = digits[w & 63];
    }
    if (i < v.n) {
        bool two = v.n - i == 2;
        uint32_t w = (uint32_t)s[i] << 16 | (two ? (uint32_t)s[i + 1] << 8 : 0);
        p[0] = digits[w >> 18], p[1] = digits[w >> 12 & 63], p[2] = two ? digits[w >> 6 & 63] : '=', p[3] = '=';
        p += 4;
    }
    out->n = (size_t)(p - out->p);
    return CK_OK;
}

static int sextet(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool ck_base64_decode(ck_view v, uint8_t *out, size_t *n) {
    if (v.n % 4 != 0) return false;
    size_t at = 0;
    for (size_t i = 0; i < v.n; i += 4) {
        unsigned pad = 0;
        if (i + 4 == v.n && v.p[i + 3] == '=') pad = v.p[i + 2] == '=' ? 2 : 1;
        uint32_t word = 0;
        for (unsigned k = 0; k < 4; k++) {
            int s = k >= 4 - pad ? 0 : sextet(v.p[i + k]);
            if (s < 0) return false;
            word = word << 6 | (uint32_t)s;
        }
        if ((pad == 1 && (word & 0xFF)) || (pad == 2 && (word & 0xFFFF))) return false; /* bits that mean nothing */
        out[at++] = (uint8_t)(word >> 16);
        if (pad < 2) out[at++] = (uint8_t)(word >> 8);
        if (pad < 1) out[at++] = (uint8_t)word;
    }
    *n = at;
    return true;
}
