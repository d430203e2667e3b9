/* More on strings: padding, repeating, splitting, codes, base64 and hex. */
#include "expr/find.h"
#include "expr/functions_int.h"
#include "expr/strout.h"
#include "expr/utf8.h"

/* ---- padding ---- */

/* `chars` characters of pad, over and over, to p; returns the end. What is there is copied behind itself, twice as much
 * each time. */
static char *fill_with(char *p, ck_view pad, size_t chars, size_t pad_chars) {
    size_t whole = chars / pad_chars * pad.n, rest = ck_utf8_prefix(pad, chars % pad_chars);
    size_t have = whole ? pad.n : 0;
    memcpy(p, pad.p, have);
    for (size_t more; have < whole; have += more) {
        more = whole - have < have ? whole - have : have;
        memcpy(p + have, p, more);
    }
    memcpy(p + whole, pad.p, rest);
    return p + whole + rest;
}

static ck_status pad_one(ck_strout *w, uint32_t row, ck_view v, int64_t length, ck_view pad, bool left) {
    if (length <= 0) return ck_strout_put(w, row, (ck_view){v.p, 0});
    size_t have = ck_utf8_count(v), want = (size_t)length, pad_chars = ck_utf8_count(pad);
    if (have >= want || pad_chars == 0) return ck_strout_put(w, row, (ck_view){v.p, ck_utf8_prefix(v, want)});
    size_t missing = want - have;
    if (missing > CK_STRING_BYTES_MAX / 4) return ck_strout_mark(w, row, CK_MARK_TOO_LONG);
    size_t fill = missing / pad_chars * pad.n + ck_utf8_prefix(pad, missing % pad_chars);
    if (fill > CK_STRING_BYTES_MAX - v.n) return ck_strout_mark(w, row, CK_MARK_TOO_LONG);
    char *text = ck_strout_room(w, v.n + fill), *p = text;
    if (!text) return CK_NOMEM;
    if (left) p = fill_with(p, pad, missing, pad_chars);
    if (v.n) memcpy(p, v.p, v.n);
    if (!left) (void)fill_with(p + v.n, pad, missing, pad_chars);
    ck_strout_take(w, row, text, v.n + fill);
    return CK_OK;
}

static ck_status kernel_pad(CK_KERNEL_ARGS) {
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_view pad = call->arg_count == 3 ? CK_ARG_STR(2, i) : CK_VIEW(" ");
        s = pad_one(&w, i, CK_ARG_STR(0, i), CK_ARG_I64(1, i), pad, call->impl->op);
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_lpad = {.kernel = kernel_pad, .flags = CK_FN_FALLIBLE, .op = 1},
                     impl_rpad = {.kernel = kernel_pad, .flags = CK_FN_FALLIBLE, .op = 0};

static ck_status kernel_repeat(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_view v = CK_ARG_STR(0, i);
        int64_t times = CK_ARG_I64(1, i);
        if (times <= 0 || v.n == 0) {
            s = ck_strout_put(&w, i, (ck_view){v.p, 0});
        } else if ((uint64_t)times > CK_STRING_BYTES_MAX / v.n) {
            s = ck_strout_mark(&w, i, CK_MARK_TOO_LONG);
        } else {
            size_t total = v.n * (size_t)times;
            char *p = ck_strout_room(&w, total);
            if (!p)
                s = CK_NOMEM;
            else
                fill_with(p, v, ck_utf8_count(v) * (size_t)times, ck_utf8_count(v)), ck_strout_take(&w, i, p, total);
        }
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_repeat = {.kernel = kernel_repeat, .flags = CK_FN_FALLIBLE};

static ck_status kernel_reverse(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = CK_ARG_STR(0, i);
        char *text = ck_strout_room(&w, v.n), *p = text;
        if (!text) s = CK_NOMEM;
        if (s != CK_OK) break;
        for (size_t end = v.n; end > 0;) { /* character by character from the end */
            size_t begin = end - 1;
            while (begin > 0 && !ck_utf8_starts(v.p[begin])) begin--;
            memcpy(p, v.p + begin, end - begin);
            p += end - begin, end = begin;
        }
        ck_strout_take(&w, i, text, v.n);
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_reverse = {.kernel = kernel_reverse};

/* ---- splitting ---- */

typedef struct token {
    const char *p; /* NULL: there is none */
    size_t n;
} token;

static const char *next_separator(const char *p, const char *end, ck_view sep) {
    return ck_find((ck_view){p, (size_t)(end - p)}, sep);
}

/* The index-th part (from 0) between separators; an empty separator does not split. */
static token split(ck_view v, ck_view sep, int64_t index) {
    const char *p = v.p, *end = v.p + v.n;
    if (index < 0) return (token){0};
    if (sep.n == 1) {
        ck_view piece;
        return ck_find_piece(v, *sep.p, (size_t)index, &piece) ? (token){piece.p, piece.n} : (token){0};
    }
    for (;; index--) {
        const char *hit = sep.n && p < end ? next_separator(p, end, sep) : NULL;
        if (index == 0) return (token){p, (size_t)((hit ? hit : end) - p)};
        if (!hit) return (token){0};
        p = hit + sep.n;
    }
}

static int64_t count_parts(ck_view v, ck_view sep) {
    int64_t n = 1;
    const char *p = v.p, *end = v.p + v.n;
    while (sep.n && p < end && (p = next_separator(p, end, sep))) n++, p += sep.n;
    return n;
}

/* SPLIT_INDEX counts from 0 and gives NULL where there is no such part; SPLIT_PART from 1, from the end below 0, and
 * gives an empty text. */
static ck_status kernel_split(CK_KERNEL_ARGS) {
    bool by_index = call->impl->op;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        uint32_t at = CK_AT(args[0], i);
        ck_view v = ck_column_str(args[0].col, at), sep = CK_ARG_STR(1, i);
        int64_t n = CK_ARG_I64(2, i);
        if (!by_index) n = n > 0 ? n - 1 : n < 0 ? count_parts(v, sep) + n : INT64_MIN;
        if (n == INT64_MIN) {
            s = ck_strout_mark(&w, i, CK_MARK_ARGUMENT);
            continue;
        }
        token t = split(v, sep, n);
        if (t.p)
            ck_strout_part(&w, i, args[0].col, 0, at, (size_t)(t.p - v.p), t.n);
        else if (by_index)
            s = ck_strout_null(&w, i);
        else
            s = ck_strout_put(&w, i, (ck_view){v.p, 0});
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_split_index = {.kernel = kernel_split, .op = 1},
                     impl_split_part = {.kernel = kernel_split, .flags = CK_FN_FALLIBLE, .op = 0};

/* ---- searching ---- */

/* LOCATE(part, text [, start]) and INSTR(text, part): a position in characters, 0 when the part is not there. */
static int64_t locate(const ck_eval *ev, ck_view text, ck_view part_of, int64_t start) {
    if (start < 1) return 0;
    size_t from = ck_utf8_prefix(text, (size_t)(start - 1));
    if (from == text.n && (part_of.n || ck_utf8_count(text) + 1 < (size_t)start)) return 0;
    if (!part_of.n) return start;
    const char *hit = ev->kernels->find((ck_view){text.p + from, text.n - from}, part_of);
    return hit ? (int64_t)ck_utf8_count((ck_view){text.p, (size_t)(hit - text.p)}) + 1 : 0;
}

static ck_status kernel_locate(CK_KERNEL_ARGS) {
    uint32_t part_at = call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows))
        out->col->i64[i] =
            locate(ev, CK_ARG_STR(1 - part_at, i), CK_ARG_STR(part_at, i), call->arg_count == 3 ? CK_ARG_I64(2, i) : 1);
    return CK_OK;
}
static const ck_impl impl_locate = {.kernel = kernel_locate, .op = 0}, impl_instr = {.kernel = kernel_locate, .op = 1};

/* ---- codes ---- */

static ck_status kernel_ascii(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = CK_ARG_STR(0, i);
        size_t n;
        out->col->i64[i] = v.n ? (int64_t)ck_utf8_decode(v.p, v.n, &n) : 0;
    }
    return CK_OK;
}
static const ck_impl impl_ascii = {.kernel = kernel_ascii};

static ck_status kernel_chr(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t code = CK_ARG_I64(0, i);
        char text[4];
        size_t n = code > 0 && code <= 0x10FFFF ? ck_utf8_encode((uint32_t)code, text) : 0;
        if (n)
            ck_strout_take(&w, i, text, n);
        else if (s == CK_OK)
            s = ck_strout_mark(&w, i, CK_MARK_ARGUMENT);
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_chr = {.kernel = kernel_chr, .flags = CK_FN_FALLIBLE};

/* The character of `to` that stands for the one at p in `from`; *gone: there is none, it is left out. */
static ck_view translated(ck_view from, ck_view to, const char *p, size_t n, bool *gone) {
    *gone = false;
    for (size_t f = 0, t = 0; f < from.n;) {
        size_t fn, tn = 0;
        (void)ck_utf8_decode(from.p + f, from.n - f, &fn);
        if (t < to.n) (void)ck_utf8_decode(to.p + t, to.n - t, &tn);
        if (fn == n && memcmp(from.p + f, p, n) == 0) {
            *gone = tn == 0;
            return (ck_view){to.p + t, tn};
        }
        f += fn, t += tn;
    }
    return (ck_view){p, n};
}

static ck_status kernel_translate(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_view v = CK_ARG_STR(0, i);
        if (v.n > CK_STRING_BYTES_MAX / 4) {
            s = ck_strout_mark(&w, i, CK_MARK_TOO_LONG);
            continue;
        }
        char *text = ck_strout_room(&w, v.n * 4), *p = text;
        if (!text) {
            s = CK_NOMEM;
            break;
        }
        for (size_t at = 0, n; at < v.n; at += n) {
            bool gone;
            (void)ck_utf8_decode(v.p + at, v.n - at, &n);
            ck_view c = translated(CK_ARG_STR(1, i), CK_ARG_STR(2, i), v.p + at, n, &gone);
            if (!gone) memcpy(p, c.p, c.n), p += c.n;
        }
        ck_strout_take(&w, i, text, (size_t)(p - text));
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_translate = {.kernel = kernel_translate, .flags = CK_FN_FALLIBLE};

/* ---- base64 and hex ---- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t to_base64(ck_view v, char *p) {
    const unsigned char *b = (const unsigned char *)v.p;
    char *begin = p;
    for (size_t i = 0; i < v.n; i += 3) {
        size_t left = v.n - i;
        uint32_t word = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0);
        *p++ = base64_digits[word >> 18], *p++ = base64_digits[word >> 12 & 63];
        *p++ = left > 1 ? base64_digits[word >> 6 & 63] : '=';
        *p++ = left > 2 ? base64_digits[word & 63] : '=';
    }
    return (size_t)(p - begin);
}

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Whole groups of four, padded or not at the end. */
static bool from_base64(ck_view v, char *p, size_t *n) {
    char *begin = p;
    while (v.n && v.p[v.n - 1] == '=' && v.n % 4 != 1) v.n--;
    if (v.n % 4 == 1) return false;
    for (size_t i = 0; i < v.n; i += 4) {
        size_t left = v.n - i < 4 ? v.n - i : 4;
        uint32_t word = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = k < left ? base64_value(v.p[i + k]) : 0;
            if (d < 0) return false;
            word = word << 6 | (uint32_t)d;
        }
        for (size_t k = 0; k + 1 < left; k++) *p++ = (char)(word >> (16 - 8 * k));
    }
    *n = (size_t)(p - begin);
    return true;
}

static size_t to_hex(ck_view v, char *p) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < v.n; i++) {
        unsigned char b = (unsigned char)v.p[i];
        p[2 * i] = digits[b >> 4], p[2 * i + 1] = digits[b & 15];
    }
    return 2 * v.n;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = ck_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool from_hex(ck_view v, char *p, size_t *n) {
    if (v.n % 2) return false;
    for (size_t i = 0; i < v.n; i += 2) {
        int high = hex_value(v.p[i]), low = hex_value(v.p[i + 1]);
        if (high < 0 || low < 0) return false;
        p[i / 2] = (char)(high << 4 | low);
    }
    *n = v.n / 2;
    return true;
}

/* ---- percent encoding (RFC 3986; a space is %20, and + is read as one) ---- */

static size_t to_url(ck_view v, char *p) {
    char *begin = p;
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     (c && strchr("-._~", (char)c));
        if (plain)
            *p++ = (char)c;
        else
            *p++ = '%', p += to_hex((ck_view){v.p + i, 1}, p);
    }
    return (size_t)(p - begin);
}

static bool from_url(ck_view v, char *p, size_t *n) {
    char *begin = p;
    for (size_t i = 0; i < v.n; i++) {
        size_t one;
        if (v.p[i] != '%')
            *p++ = v.p[i] == '+' ? ' ' : v.p[i];
        else if (v.n - i < 3 || !from_hex((ck_view){v.p + i + 1, 2}, p, &one))
            return false;
        else
            p++, i += 2;
    }
    *n = (size_t)(p - begin);
    return true;
}

typedef enum coding { TO_BASE64, TO_HEX, TO_URL, FROM_BASE64, FROM_URL, FROM_HEX } coding;

static size_t coded_bytes_max(coding kind, size_t n) {
    switch (kind) {
    case TO_BASE64: return (n + 2) / 3 * 4;
    case TO_HEX: return 2 * n;
    case TO_URL: return 3 * n;
    default: return n + 1;
    }
}

static bool decode(coding kind, ck_view v, char *p, size_t *n) {
    if (kind == FROM_HEX) return from_hex(v, p, n);
    if (!(kind == FROM_URL ? from_url : from_base64)(v, p, n)) return false;
    return ck_utf8_valid((ck_view){p, *n}); /* these give text */
}

static ck_status code_one(ck_strout *w, uint32_t row, coding kind, ck_view v) {
    if (v.n > CK_STRING_BYTES_MAX / 3) return ck_strout_mark(w, row, CK_MARK_TOO_LONG);
    size_t n = 0;
    char *p = ck_strout_room(w, coded_bytes_max(kind, v.n));
    if (!p) return CK_NOMEM;
    if (kind < FROM_BASE64)
        n = (kind == TO_HEX ? to_hex : kind == TO_URL ? to_url : to_base64)(v, p);
    else if (!decode(kind, v, p, &n))
        return ck_strout_mark(w, row, CK_MARK_ARGUMENT);
    ck_strout_take(w, row, p, n);
    return CK_OK;
}

static ck_status kernel_code(CK_KERNEL_ARGS) {
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        s = code_one(&w, i, (coding)call->impl->op, CK_ARG_STR(0, i));
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_to_base64 = {.kernel = kernel_code, .flags = CK_FN_FALLIBLE, .op = TO_BASE64},
                     impl_to_hex = {.kernel = kernel_code, .flags = CK_FN_FALLIBLE, .op = TO_HEX},
                     impl_to_url = {.kernel = kernel_code, .flags = CK_FN_FALLIBLE, .op = TO_URL},
                     impl_from_url = {.kernel = kernel_code, .flags = CK_FN_FALLIBLE, .op = FROM_URL},
                     impl_from_base64 = {.kernel = kernel_code, .flags = CK_FN_FALLIBLE, .op = FROM_BASE64},
                     impl_from_hex = {.kernel = kernel_code, .flags = CK_FN_FALLIBLE, .op = FROM_HEX};

static ck_status kernel_hex_int(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        char text[16];
        size_t n = 0;
        uint64_t v = (uint64_t)CK_ARG_I64(0, i);
        do text[15 - n++] = "0123456789ABCDEF"[v & 15];
        while (v >>= 4);
        if (s == CK_OK) s = ck_strout_put(&w, i, (ck_view){text + 16 - n, n});
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_hex_int = {.kernel = kernel_hex_int};

/* ---- the table ---- */

#define OVERLOADS(NAME, ...) static const ck_overload NAME[] = {__VA_ARGS__}
OVERLOADS(o_lpad, {"sls?>s", &impl_lpad, false});
OVERLOADS(o_rpad, {"sls?>s", &impl_rpad, false});
OVERLOADS(o_repeat, {"sl>s", &impl_repeat, false});
OVERLOADS(o_reverse, {"s>s", &impl_reverse, false});
OVERLOADS(o_split_index, {"ssl>s", &impl_split_index, true});
OVERLOADS(o_split_part, {"ssl>s", &impl_split_part, false});
OVERLOADS(o_locate, {"ssl?>i", &impl_locate, false});
OVERLOADS(o_instr, {"ss>i", &impl_instr, false});
OVERLOADS(o_url_encode, {"s>s", &impl_to_url, false});
OVERLOADS(o_url_decode, {"s>s", &impl_from_url, false});
OVERLOADS(o_ascii, {"s>i", &impl_ascii, false});
OVERLOADS(o_chr, {"l>s", &impl_chr, false});
OVERLOADS(o_translate, {"sss>s", &impl_translate, false});
OVERLOADS(o_to_base64, {"s>s", &impl_to_base64, false}, {"y>s", &impl_to_base64, false});
OVERLOADS(o_from_base64, {"s>s", &impl_from_base64, false});
OVERLOADS(o_hex, {"l>s", &impl_hex_int, false}, {"s>s", &impl_to_hex, false}, {"y>s", &impl_to_hex, false});
OVERLOADS(o_unhex, {"s>y", &impl_from_hex, false});

#define FN(NAME, OVERLOAD_LIST, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                      \
    .name = NAME, .overloads = OVERLOAD_LIST, .overload_count = CK_ARRAY_COUNT(OVERLOAD_LIST), .group = "strings",     \
    .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE, .result = RESULT

static const ck_function functions[] = {
    {FN("lpad", o_lpad, "LPAD(text, length [, fill])",
        "The text filled at its start (with spaces) to length characters, or cut to them.", "LPAD('7', 3, '0')",
        "007")},
    {FN("rpad", o_rpad, "RPAD(text, length [, fill])",
        "The text filled at its end (with spaces) to length characters, or cut to them.", "RPAD('7', 3, 'xy')", "7xy")},
    {FN("repeat", o_repeat, "REPEAT(text, n)", "The text n times.", "REPEAT('ab', 3)", "ababab")},
    {FN("reverse", o_reverse, "REVERSE(text)", "The characters from last to first.", "REVERSE('été1')", "1été")},
    {FN("split_index", o_split_index, "SPLIT_INDEX(text, separator, index)",
        "The part at an index, counted from 0, of the text split at the separator; NULL when there is none.",
        "SPLIT_INDEX('https://a.org/x/y', '/', 3)", "x")},
    {FN("split_part", o_split_part, "SPLIT_PART(text, separator, n)",
        "The n-th part of the text split at the separator, counted from 1, or from the end with a negative n; empty "
        "when "
        "there is none.",
        "SPLIT_PART('a,b,c', ',', -1)", "c")},
    {FN("locate", o_locate, "LOCATE(part, text [, start])",
        "Where the part is first at or behind a position, counting characters from 1; 0 when it is not there.",
        "LOCATE('a', 'banana', 3)", "4")},
    {FN("instr", o_instr, "INSTR(text, part)",
        "Where the part is first, counting characters from 1; 0 when it is not there.", "INSTR('banana', 'nan')", "3"),
     .aliases = "strpos"},
    {FN("url_encode", o_url_encode, "URL_ENCODE(text)", "The text for use in a URL, other characters as %XX.",
        "URL_ENCODE('a b&c')", "a%20b%26c")},
    {FN("url_decode", o_url_decode, "URL_DECODE(text)", "The text that a part of a URL stands for.",
        "URL_DECODE('a%20b+c')", "a b c")},
    {FN("ascii", o_ascii, "ASCII(text)", "The code point of the first character, 0 of an empty text.", "ASCII('A')",
        "65")},
    {FN("chr", o_chr, "CHR(code)", "The character with a code point.", "CHR(233)", "é")},
    {FN("translate", o_translate, "TRANSLATE(text, from, to)",
        "Each character that is in from replaced by the one at its place in to, or left out.",
        "TRANSLATE('12345', '143', 'ax')", "a2x5")},
    {FN("to_base64", o_to_base64, "TO_BASE64(text or bytes)", "The bytes in base64.", "TO_BASE64('hello')",
        "aGVsbG8=")},
    {FN("from_base64", o_from_base64, "FROM_BASE64(text)", "The text whose base64 is given.", "FROM_BASE64('aGVsbG8=')",
        "hello")},
    {FN("hex", o_hex, "HEX(integer, text or bytes)", "In hexadecimal digits.", "HEX(255)", "FF")},
    {FN("unhex", o_unhex, "UNHEX(text)", "The BYTES that hexadecimal digits stand for.", "HEX(UNHEX('00ff'))", "00FF")},
};
const ck_function_table ck_functions_text = {functions, CK_ARRAY_COUNT(functions)};
