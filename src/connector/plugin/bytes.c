/* See plugin_int.h. Text stays readable in checkpoints and for whoever looks at them. */
#include <yyjson.h>

#include "base/json.h"
#include "connector/plugin/plugin_int.h"
#include "expr/utf8.h"

static bool is_text(ck_view v) {
    for (size_t i = 0; i < v.n; i++)
        if ((unsigned char)v.p[i] < 0x20) return false;
    return ck_utf8_valid(v);
}

static ck_status write_text(ck_arena *a, ck_view v, const char **out) {
    char *to = ck_arena_alloc(a, 2 * v.n + 16);
    if (!to) return CK_NOMEM;
    *out = to;
    memcpy(to, "\"text\":\"", 8);
    to += 8;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == '"' || v.p[i] == '\\') *to++ = '\\';
        *to++ = v.p[i];
    }
    memcpy(to, "\"", 2);
    return CK_OK;
}

ck_status ck_plugin_bytes_write(ck_arena *a, ck_view v, const char **out) {
    static const char digits[] = "0123456789abcdef";
    if (is_text(v)) return write_text(a, v, out);
    char *to = ck_arena_alloc(a, 2 * v.n + 16);
    if (!to) return CK_NOMEM;
    *out = to;
    memcpy(to, "\"hex\":\"", 7);
    to += 7;
    for (size_t i = 0; i < v.n; i++) {
        *to++ = digits[(unsigned char)v.p[i] >> 4];
        *to++ = digits[v.p[i] & 15];
    }
    memcpy(to, "\"", 2);
    return CK_OK;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ck_plugin_bytes_read(ck_arena *a, struct yyjson_val *object, ck_view *out) {
    yyjson_val *text = yyjson_obj_get(object, "text"), *hex = yyjson_obj_get(object, "hex");
    if (yyjson_is_str(text)) {
        *out = (ck_view){yyjson_get_str(text), yyjson_get_len(text)};
        return true;
    }
    size_t n = yyjson_get_len(hex) / 2;
    if (!yyjson_is_str(hex) || yyjson_get_len(hex) % 2) return false;
    char *to = ck_arena_alloc(a, n + 1);
    *out = (ck_view){to, n};
    for (size_t i = 0; to && i < n; i++) {
        int high = digit(yyjson_get_str(hex)[2 * i]), low = digit(yyjson_get_str(hex)[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        to[i] = (char)(high << 4 | low);
    }
    return true;
}
