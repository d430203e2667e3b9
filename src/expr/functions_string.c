/* Strings: length, case, parts, search, joining. Positions and lengths count characters; text that is ASCII takes the
 * short way. Parts of an argument point into its bytes. */
#include "expr/bits_int.h"
#include "expr/case_map.h"
#include "expr/coerce.h"
#include "expr/find.h"
#include "expr/functions_int.h"
#include "expr/strout.h"
#include "expr/utf8.h"

/* ---- length ---- */

static ck_status kernel_char_length(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    const ck_column *c = args[0].col;
    for (CK_EACH_ROW(k, i, rows)) out->col->i64[i] = (int64_t)ck_utf8_count(ck_column_str(c, i));
    return CK_OK;
}
static const ck_impl impl_char_length = {.kernel = kernel_char_length};

static ck_status kernel_octet_length(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->i64[i] = args[0].col->views[i].length;
    return CK_OK;
}
static const ck_impl impl_octet_length = {.kernel = kernel_octet_length, .flags = CK_FN_BLIND | CK_FN_CHEAP};

/* ---- case ---- */

static ck_status prepare_case(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    ck_case_map *m;
    CK_TRY(ck_case_map_new(&ev->arena, (ck_case)call->impl->op, &m, err));
    *state = m;
    return CK_OK;
}

static ck_status other_case(ck_strout *w, ck_case_map *m, uint32_t row, ck_view v) {
    ck_arena a;
    ck_arena_init(&a, w->ev->mem, SIZE_MAX / 2);
    ck_status s = ck_case_map_view(m, &a, v, &v, w->err);
    if (s == CK_OK) s = ck_strout_put(w, row, v);
    ck_arena_destroy(&a);
    return s;
}

/* A view of up to 12 bytes as its two words: the length and four bytes, eight bytes; zeros behind the end. */
static inline bool short_case(ck_case mode, const ck_strview *v, ck_strview *out) {
    uint64_t words[2];
    memcpy(words, v, sizeof words);
    if ((words[0] & 0x8080808000000000ULL) | (words[1] & 0x8080808080808080ULL)) return false;
    words[0] = (words[0] & 0xFFFFFFFFULL) | (ck_ascii_case_word(mode, words[0]) & ~0xFFFFFFFFULL);
    words[1] = ck_ascii_case_word(mode, words[1]);
    memcpy(out, words, sizeof words);
    return true;
}

static ck_status kernel_case(CK_KERNEL_ARGS) {
    ck_case mode = (ck_case)call->impl->op;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        const ck_strview *view = &args[0].col->views[i];
        if (s != CK_OK) break;
        if (mode != CK_CASE_TITLE && view->length <= CK_STRVIEW_INLINE && short_case(mode, view, &w.col->views[i]))
            continue;
        ck_view v = ck_column_str(args[0].col, i);
        if (!ck_utf8_is_ascii(v)) {
            s = other_case(&w, ck_eval_state(ev), i, v);
        } else if (v.n <= CK_STRVIEW_INLINE) {
            char text[CK_STRVIEW_INLINE];
            ck_ascii_case(mode, v.p, v.n, text);
            ck_strout_take(&w, i, text, v.n);
        } else {
            char *p = ck_strout_room(&w, v.n);
            if (!p)
                s = CK_NOMEM;
            else
                ck_ascii_case(mode, v.p, v.n, p), ck_strout_take(&w, i, p, v.n);
        }
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_lower = {.kernel = kernel_case, .op = CK_CASE_LOWER, .prepare = prepare_case},
                     impl_upper = {.kernel = kernel_case, .op = CK_CASE_UPPER, .prepare = prepare_case},
                     impl_title = {.kernel = kernel_case, .op = CK_CASE_TITLE, .prepare = prepare_case};

/* ---- parts ---- */

typedef struct part {
    size_t from, n; /* bytes */
} part;

/* Characters [first, first + count) of v; both at least 0. */
static part char_range(ck_view v, size_t first, size_t count) {
    if (ck_utf8_is_ascii(v)) {
        size_t from = first < v.n ? first : v.n;
        return (part){from, count < v.n - from ? count : v.n - from};
    }
    size_t from = ck_utf8_prefix(v, first);
    return (part){from, ck_utf8_prefix((ck_view){v.p + from, v.n - from}, count)};
}

/* PostgreSQL's SUBSTRING: positions begin at 1; those before it count for the length but hold nothing. */
static bool substring(ck_view v, int64_t start, bool has_length, int64_t length, part *p) {
    if (has_length && length < 0) return false;
    int64_t end = INT64_MAX;
    if (has_length && __builtin_add_overflow(start, length, &end)) end = INT64_MAX;
    if (start < 1) start = 1;
    *p = end <= start ? (part){0, 0} : char_range(v, (size_t)(start - 1), (size_t)(end - start));
    return true;
}

static bool bytes_part(ck_view v, int64_t start, bool has_length, int64_t length, part *p) {
    if (has_length && length < 0) return false;
    int64_t end = INT64_MAX;
    if (has_length && __builtin_add_overflow(start, length, &end)) end = INT64_MAX;
    if (start < 1) start = 1;
    int64_t n = (int64_t)v.n + 1;
    if (start > n) start = n;
    if (end > n) end = n;
    *p = (part){(size_t)(start - 1), end > start ? (size_t)(end - start) : 0};
    return true;
}

static ck_status kernel_substring(CK_KERNEL_ARGS) {
    bool has_length = call->arg_count == 3, bytes = call->type->kind == CK_TYPE_BYTES;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        uint32_t at = CK_AT(args[0], i);
        int64_t start = CK_ARG_I64(1, i), length = has_length ? CK_ARG_I64(2, i) : 0;
        part p;
        bool good = (bytes ? bytes_part : substring)(ck_column_str(args[0].col, at), start, has_length, length, &p);
        if (good)
            ck_strout_part(&w, i, args[0].col, 0, at, p.from, p.n);
        else if (s == CK_OK)
            s = ck_strout_mark(&w, i, CK_MARK_ARGUMENT);
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_substring = {.kernel =
                                           kernel_substring}, /* a length below 0 is an error, 2 arguments have none */
    impl_substring_length = {.kernel = kernel_substring, .flags = CK_FN_FALLIBLE};

/* LEFT(s, n), RIGHT(s, n): a negative n leaves out as many at the other end. */
static ck_status kernel_end(CK_KERNEL_ARGS) {
    bool right = call->impl->op;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    for (CK_EACH_ROW(k, i, rows)) {
        uint32_t at = CK_AT(args[0], i);
        ck_view v = ck_column_str(args[0].col, at);
        int64_t n = CK_ARG_I64(1, i), length = (int64_t)ck_utf8_count(v);
        int64_t keep = n >= 0 ? (n < length ? n : length) : (n > -length ? length + n : 0);
        part p = char_range(v, right ? (size_t)(length - keep) : 0, (size_t)keep);
        ck_strout_part(&w, i, args[0].col, 0, at, p.from, p.n);
    }
    return ck_strout_finish(&w, CK_OK, out);
}
static const ck_impl impl_left = {.kernel = kernel_end, .op = 0}, impl_right = {.kernel = kernel_end, .op = 1};

/* ---- trimming ---- */

/* Whether the character at p (of n bytes) is among those of set. */
static bool in_set(ck_view set, const char *p, size_t n) {
    return n == 1 ? set.n && memchr(set.p, *p, set.n) : memmem(set.p, set.n, p, n) != NULL;
}

static size_t char_bytes_at(ck_view v) {
    size_t n = 1;
    while (n < v.n && !ck_utf8_starts(v.p[n])) n++;
    return n;
}

static size_t char_bytes_before(ck_view v) {
    size_t n = 1;
    while (n < v.n && !ck_utf8_starts(v.p[v.n - n])) n++;
    return n;
}

enum { TRIM_LEFT = 1, TRIM_RIGHT = 2 };

static part trim(ck_view v, ck_view set, uint32_t sides) {
    size_t from = 0;
    while (sides & TRIM_LEFT && v.n) {
        size_t n = char_bytes_at(v);
        if (!in_set(set, v.p, n)) break;
        v.p += n, v.n -= n, from += n;
    }
    while (sides & TRIM_RIGHT && v.n) {
        size_t n = char_bytes_before(v);
        if (!in_set(set, v.p + v.n - n, n)) break;
        v.n -= n;
    }
    return (part){from, v.n};
}

static ck_status kernel_trim(CK_KERNEL_ARGS) {
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    for (CK_EACH_ROW(k, i, rows)) {
        uint32_t at = CK_AT(args[0], i);
        ck_view set = call->arg_count == 2 ? CK_ARG_STR(1, i) : CK_VIEW(" ");
        part p = trim(ck_column_str(args[0].col, at), set, call->impl->op);
        ck_strout_part(&w, i, args[0].col, 0, at, p.from, p.n);
    }
    return ck_strout_finish(&w, CK_OK, out);
}
static const ck_impl impl_trim = {.kernel = kernel_trim, .op = TRIM_LEFT | TRIM_RIGHT},
                     impl_ltrim = {.kernel = kernel_trim, .op = TRIM_LEFT},
                     impl_rtrim = {.kernel = kernel_trim, .op = TRIM_RIGHT};

/* ---- searching ---- */

static ck_status kernel_position(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view what = CK_ARG_STR(0, i), text = CK_ARG_STR(1, i);
        const char *p = what.n ? ev->kernels->find(text, what) : text.p;
        out->col->i64[i] = what.n == 0 ? 1
                           : !p        ? 0
                                       : (int64_t)ck_utf8_count((ck_view){text.p, (size_t)(p - text.p)}) + 1;
    }
    return CK_OK;
}
static const ck_impl impl_position = {.kernel = kernel_position};

typedef enum affix { STARTS, ENDS, CONTAINS } affix;

static bool has_affix(const ck_eval *ev, affix kind, ck_view v, ck_view part_of) {
    if (part_of.n > v.n) return false;
    if (part_of.n == 0) return true;
    if (kind == CONTAINS) return ev->kernels->find(v, part_of) != NULL;
    return memcmp(kind == STARTS ? v.p : v.p + v.n - part_of.n, part_of.p, part_of.n) == 0;
}

static ck_status kernel_affix(CK_KERNEL_ARGS) {
    affix kind = (affix)call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    CK_FILL_BITS(out->col->bits, rows, i, has_affix(ev, kind, CK_ARG_STR(0, i), CK_ARG_STR(1, i)));
    return CK_OK;
}

static ck_status select_affix(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                              const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)ev, (void)valid, (void)err;
    affix kind = (affix)call->impl->op;
    CK_FILL_ROWS(sel, sel_count, rows, i, has_affix(ev, kind, CK_ARG_STR(0, i), CK_ARG_STR(1, i)));
    return CK_OK;
}
static const ck_impl impl_starts = {.kernel = kernel_affix, .select = select_affix, .op = STARTS},
                     impl_ends = {.kernel = kernel_affix, .select = select_affix, .op = ENDS},
                     impl_contains = {.kernel = kernel_affix, .select = select_affix, .op = CONTAINS};

/* ---- joining ---- */

/* Arguments [first, count) one behind the other, sep between them; NULLs are left out. */
static ck_status join(ck_strout *w, const ck_vec *args, uint32_t first, uint32_t count, ck_view sep, uint32_t row) {
    size_t total = 0, parts = 0;
    for (uint32_t a = first; a < count; a++) {
        if (ck_column_is_null(args[a].col, CK_AT(args[a], row))) continue;
        total += CK_ARG_STR(a, row).n + (parts++ ? sep.n : 0);
    }
    if (total > CK_STRING_BYTES_MAX) return ck_strout_mark(w, row, CK_MARK_TOO_LONG);
    char short_text[CK_STRVIEW_INLINE], *text = total <= CK_STRVIEW_INLINE ? short_text : ck_strout_room(w, total);
    if (!text) return CK_NOMEM;
    char *p = text;
    parts = 0;
    for (uint32_t a = first; a < count; a++) {
        if (ck_column_is_null(args[a].col, CK_AT(args[a], row))) continue;
        ck_view v = CK_ARG_STR(a, row);
        if (parts++ && sep.n) memcpy(p, sep.p, sep.n), p += sep.n;
        if (v.n) memcpy(p, v.p, v.n);
        p += v.n;
    }
    ck_strout_take(w, row, text, total);
    return CK_OK;
}

typedef enum join_kind { JOIN_STRICT, JOIN_CONCAT, JOIN_WS } join_kind;

static ck_status kernel_join(CK_KERNEL_ARGS) {
    join_kind kind = (join_kind)call->impl->op;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        if (kind != JOIN_WS)
            s = join(&w, args, 0, call->arg_count, (ck_view){0}, i);
        else if (ck_column_is_null(args[0].col, CK_AT(args[0], i)))
            s = ck_strout_null(&w, i);
        else
            s = join(&w, args, 1, call->arg_count, CK_ARG_STR(0, i), i);
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_concat_strict = {.kernel = kernel_join, .flags = CK_FN_FALLIBLE, .op = JOIN_STRICT},
                     impl_concat = {.kernel = kernel_join, .flags = CK_FN_FALLIBLE | CK_FN_NULLS, .op = JOIN_CONCAT},
                     impl_concat_ws = {.kernel = kernel_join, .flags = CK_FN_FALLIBLE | CK_FN_NULLS, .op = JOIN_WS};

static bool is_text(const ck_type *t) { return t->kind == CK_TYPE_VARCHAR || t->kind == CK_TYPE_NULL; }

static ck_status all_text(ck_bind_call *call, ck_error *err) {
    for (uint32_t i = 0; i < call->arg_count; i++)
        CK_TRY(ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_VARCHAR), true, &call->args[i], err));
    call->type = ck_type_simple(CK_TYPE_VARCHAR);
    return CK_OK;
}

/* text || anything, anything || text, bytes || bytes. */
static ck_status bind_concat_operator(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    const ck_type *a = call->args[0]->type, *b = call->args[1]->type;
    call->impl = &impl_concat_strict;
    if (a->kind == CK_TYPE_BYTES && b->kind == CK_TYPE_BYTES) {
        call->type = ck_type_simple(CK_TYPE_BYTES);
        return CK_OK;
    }
    if (!is_text(a) && !is_text(b)) return ck_bind_mismatch(call, err);
    return all_text(call, err);
}

static ck_status bind_concat(ck_bind_call *call, ck_error *err) {
    bool ws = strcmp(call->name, "concat_ws") == 0;
    if (call->arg_count < (ws ? 2U : 1U)) return ck_bind_mismatch(call, err);
    call->nullable = ws && call->args[0]->nullable;
    call->impl = ws ? &impl_concat_ws : &impl_concat;
    return all_text(call, err);
}

/* ---- replacing ---- */

/* Bytes of the result; CK_STRING_BYTES_MAX + 1: too many. Where it cannot grow, the text's own length will do. */
static size_t replaced_bytes(ck_view v, ck_view from, ck_view to) {
    if (to.n <= from.n) return v.n;
    const char *end = v.p + v.n;
    size_t hits = 0, more;
    for (const char *p = v.p; (p = ck_find((ck_view){p, (size_t)(end - p)}, from)); p += from.n) hits++;
    if (__builtin_mul_overflow(hits, to.n - from.n, &more) || more > CK_STRING_BYTES_MAX - v.n)
        return CK_STRING_BYTES_MAX + 1;
    return v.n + more;
}

/* `hit` is the first occurrence. */
static ck_status replace_one(ck_strout *w, uint32_t row, ck_view v, const char *hit, ck_view from, ck_view to) {
    size_t most = replaced_bytes(v, from, to);
    if (most > CK_STRING_BYTES_MAX) return ck_strout_mark(w, row, CK_MARK_TOO_LONG);
    char *text = ck_strout_room(w, most), *at = text;
    if (!text) return CK_NOMEM;
    const char *p = v.p, *end = v.p + v.n;
    for (; hit; hit = ck_find((ck_view){p, (size_t)(end - p)}, from)) {
        memcpy(at, p, (size_t)(hit - p)), at += hit - p;
        if (to.n) memcpy(at, to.p, to.n), at += to.n;
        p = hit + from.n;
    }
    memcpy(at, p, (size_t)(end - p)), at += end - p;
    ck_strout_take(w, row, text, (size_t)(at - text));
    return CK_OK;
}

static ck_status kernel_replace(CK_KERNEL_ARGS) {
    (void)call;
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_strout_share(&w, args[0].col);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_view v = CK_ARG_STR(0, i), from = CK_ARG_STR(1, i);
        const char *hit = from.n ? ev->kernels->find(v, from) : NULL;
        if (!hit)
            ck_strout_part(&w, i, args[0].col, 0, CK_AT(args[0], i), 0, v.n);
        else
            s = replace_one(&w, i, v, hit, from, CK_ARG_STR(2, i));
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_replace = {.kernel = kernel_replace, .flags = CK_FN_FALLIBLE};

/* OVERLAY(s PLACING r FROM start [FOR length]): without a length as many characters go as come. */
static ck_status kernel_overlay(CK_KERNEL_ARGS) {
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (s != CK_OK) break;
        ck_view v = CK_ARG_STR(0, i), r = CK_ARG_STR(1, i);
        int64_t start = CK_ARG_I64(2, i), length = call->arg_count == 4 ? CK_ARG_I64(3, i) : (int64_t)ck_utf8_count(r);
        if (start < 1 || length < 0) {
            s = ck_strout_mark(&w, i, CK_MARK_ARGUMENT);
            continue;
        }
        size_t head = ck_utf8_prefix(v, (size_t)(start - 1));
        size_t cut = ck_utf8_prefix((ck_view){v.p + head, v.n - head}, (size_t)length);
        size_t total = v.n - cut + r.n;
        if (total > CK_STRING_BYTES_MAX) {
            s = ck_strout_mark(&w, i, CK_MARK_TOO_LONG);
            continue;
        }
        char *p = ck_strout_room(&w, total);
        if (!p) {
            s = CK_NOMEM;
            break;
        }
        memcpy(p, v.p, head);
        if (r.n) memcpy(p + head, r.p, r.n);
        memcpy(p + head + r.n, v.p + head + cut, v.n - head - cut);
        ck_strout_take(&w, i, p, total);
    }
    return ck_strout_finish(&w, s, out);
}
static const ck_impl impl_overlay = {.kernel = kernel_overlay, .flags = CK_FN_FALLIBLE};

/* ---- the table ---- */

#define OVERLOADS(NAME, ...) static const ck_overload NAME[] = {__VA_ARGS__}
OVERLOADS(o_char_length, {"s>i", &impl_char_length, false});
OVERLOADS(o_octet_length, {"s>i", &impl_octet_length, false}, {"y>i", &impl_octet_length, false});
OVERLOADS(o_lower, {"s>s", &impl_lower, false});
OVERLOADS(o_upper, {"s>s", &impl_upper, false});
OVERLOADS(o_initcap, {"s>s", &impl_title, false});
OVERLOADS(o_substring, {"sl>s", &impl_substring, false}, {"sll>s", &impl_substring_length, false},
          {"yl>y", &impl_substring, false}, {"yll>y", &impl_substring_length, false});
OVERLOADS(o_left, {"sl>s", &impl_left, false});
OVERLOADS(o_right, {"sl>s", &impl_right, false});
OVERLOADS(o_trim, {"ss?>s", &impl_trim, false});
OVERLOADS(o_ltrim, {"ss?>s", &impl_ltrim, false});
OVERLOADS(o_rtrim, {"ss?>s", &impl_rtrim, false});
OVERLOADS(o_position, {"ss>i", &impl_position, false});
OVERLOADS(o_starts, {"ss>b", &impl_starts, false});
OVERLOADS(o_ends, {"ss>b", &impl_ends, false});
OVERLOADS(o_contains, {"ss>b", &impl_contains, false});
OVERLOADS(o_replace, {"sss>s", &impl_replace, false});
OVERLOADS(o_overlay, {"ssll?>s", &impl_overlay, false});

#define FN(NAME, OVERLOAD_LIST, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                      \
    .name = NAME, .overloads = OVERLOAD_LIST, .overload_count = CK_ARRAY_COUNT(OVERLOAD_LIST), .group = "strings",     \
    .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE, .result = RESULT

static const ck_function functions[] = {
    {FN("char_length", o_char_length, "CHAR_LENGTH(text)", "The number of characters.", "CHAR_LENGTH('größe')", "5"),
     .aliases = "character_length length len"},
    {FN("octet_length", o_octet_length, "OCTET_LENGTH(text)", "The number of bytes.", "OCTET_LENGTH('größe')", "7")},
    {FN("lower", o_lower, "LOWER(text)", "The text in lower case.", "LOWER('ÄPFEL')", "äpfel"), .aliases = "lcase"},
    {FN("upper", o_upper, "UPPER(text)", "The text in upper case.", "UPPER('été')", "ÉTÉ"), .aliases = "ucase"},
    {FN("initcap", o_initcap, "INITCAP(text)", "Every word with a capital letter, the rest in lower case.",
        "INITCAP('hello wORLD')", "Hello World")},
    {FN("substring", o_substring, "SUBSTRING(text FROM start [FOR length])",
        "The part that begins at a position (the first is 1), at most length characters long; also SUBSTRING(text, "
        "start, "
        "length). Positions before the first count for the length.",
        "SUBSTRING('flights' FROM 3 FOR 4)", "ight"),
     .aliases = "substr"},
    {FN("left", o_left, "LEFT(text, n)", "The first n characters; with a negative n all but the last -n.",
        "LEFT('abcdef', -2)", "abcd")},
    {FN("right", o_right, "RIGHT(text, n)", "The last n characters; with a negative n all but the first -n.",
        "RIGHT('abcdef', 2)", "ef")},
    {FN("trim", o_trim, "TRIM([LEADING | TRAILING | BOTH] [characters FROM] text)",
        "The text without the characters (spaces) at its ends.", "TRIM('xy' FROM 'xyxabcyx')", "abc"),
     .aliases = "btrim"},
    {FN("ltrim", o_ltrim, "LTRIM(text [, characters])", "The text without the characters (spaces) at its start.",
        "LTRIM('  a ') || '.'", "a .")},
    {FN("rtrim", o_rtrim, "RTRIM(text [, characters])", "The text without the characters (spaces) at its end.",
        "RTRIM('a...', '.')", "a")},
    {FN("position", o_position, "POSITION(part IN text)",
        "Where the part begins first, counting characters from 1; 0 when it is not there.",
        "POSITION('gh' IN 'flights')", "4")},
    {FN("starts_with", o_starts, "STARTS_WITH(text, start)", "Whether the text begins so.",
        "STARTS_WITH('flights', 'fl')", "true"),
     .aliases = "startswith"},
    {FN("ends_with", o_ends, "ENDS_WITH(text, end)", "Whether the text ends so.", "ENDS_WITH('flights', 'ts')", "true"),
     .aliases = "endswith"},
    {FN("contains", o_contains, "CONTAINS(text, part)", "Whether the part is somewhere in the text.",
        "CONTAINS('flights', 'light')", "true")},
    {.name = "||",
     .flags = CK_FN_INTERNAL,
     .bind = bind_concat_operator,
     .group = "strings",
     .syntax = "a || b",
     .summary = "Two texts one behind the other (the other side of a text becomes text), or two BYTES.",
     .example = "'N' || 14228",
     .result = "N14228"},
    {.name = "concat",
     .bind = bind_concat,
     .group = "strings",
     .syntax = "CONCAT(a, b, ...)",
     .summary = "All arguments as one text; NULLs are left out.",
     .example = "CONCAT('a', NULL, 1)",
     .result = "a1"},
    {.name = "concat_ws",
     .bind = bind_concat,
     .group = "strings",
     .syntax = "CONCAT_WS(separator, a, b, ...)",
     .summary = "All arguments as one text with the separator between them; NULLs are left out.",
     .example = "CONCAT_WS('-', 'a', NULL, 'b')",
     .result = "a-b"},
    {FN("replace", o_replace, "REPLACE(text, from, to)", "The text with every occurrence of from replaced.",
        "REPLACE('banana', 'an', 'o')", "booa")},
    {FN("overlay", o_overlay, "OVERLAY(text PLACING new FROM start [FOR length])",
        "The text with length characters (as many as new has) from a position on replaced.",
        "OVERLAY('abcdef' PLACING 'XY' FROM 3 FOR 3)", "abXYf")},
};
const ck_function_table ck_functions_string = {functions, CK_ARRAY_COUNT(functions)};
