/* See case_map.h. */
#include "expr/case_map.h"

#include "expr/pcre.h"
#include "expr/utf8.h"

struct ck_case_map {
    ck_case mode;
    pcre2_code *code; /* what is replaced by itself in another case; made when the first text needs it */
    pcre2_match_data *match;
    pcre2_general_context *context;
};

static void dispose(void *arg) {
    ck_case_map *m = arg;
    pcre2_match_data_free(m->match);
    pcre2_code_free(m->code);
}

ck_status ck_case_map_new(ck_arena *a, ck_case mode, ck_case_map **out, ck_error *err) {
    ck_case_map *m = CK_ARENA_NEW(a, ck_case_map);
    if (!m || !(m->context = ck_pcre_context(a))) return ck_nomem(err, a->mem, sizeof *m);
    m->mode = mode;
    CK_TRY(ck_arena_on_reset(a, dispose, m));
    *out = m;
    return CK_OK;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

void ck_ascii_case(ck_case mode, const char *in, size_t n, char *out) {
    if (mode == CK_CASE_LOWER) {
        for (size_t i = 0; i < n; i++) out[i] = (char)(in[i] | ((unsigned char)(in[i] - 'A') < 26 ? 32 : 0));
    } else if (mode == CK_CASE_UPPER) {
        for (size_t i = 0; i < n; i++) out[i] = (char)(in[i] & ~((unsigned char)(in[i] - 'a') < 26 ? 32 : 0));
    } else {
        bool inside = false;
        for (size_t i = 0; i < n; i++) {
            char c = in[i];
            ck_ascii_case(inside ? CK_CASE_LOWER : CK_CASE_UPPER, &c, 1, &out[i]);
            inside = is_letter(c);
        }
    }
}

static bool compile(ck_case_map *m) {
    if (m->code) return true;
    /* The sharp s has a capital letter, but it is not its upper case. */
    static const char *const patterns[] = {[CK_CASE_LOWER] = "(?s).+",
                                           [CK_CASE_UPPER] = "[^\\x{DF}]+",
                                           [CK_CASE_TITLE] = "([\\p{L}\\p{N}])([\\p{L}\\p{N}]*)"};
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *cc = pcre2_compile_context_create(m->context);
    if (!cc) return false;
    m->code =
        pcre2_compile((PCRE2_SPTR)patterns[m->mode], PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, cc);
    pcre2_compile_context_free(cc);
    if (m->code) m->match = pcre2_match_data_create_from_pattern(m->code, m->context);
    return m->match != NULL;
}

ck_status ck_case_map_view(ck_case_map *m, ck_arena *a, ck_view v, ck_view *out, ck_error *err) {
    static const char *const with[] = {
        [CK_CASE_LOWER] = "\\L$0", [CK_CASE_UPPER] = "\\U$0", [CK_CASE_TITLE] = "\\U$1\\L$2"};
    size_t room = v.n + v.n / 2 + 8; /* few characters have more bytes in the other case, and only one more */
    char *p = ck_arena_alloc(a, room);
    if (!p) return ck_nomem(err, a->mem, room);
    if (ck_utf8_is_ascii(v)) {
        ck_ascii_case(m->mode, v.p, v.n, p);
        *out = (ck_view){p, v.n};
        return CK_OK;
    }
    if (!compile(m)) return ck_nomem(err, a->mem, room);
    PCRE2_SIZE n = room;
    uint32_t options = PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_GLOBAL | PCRE2_NO_UTF_CHECK;
    int made = pcre2_substitute(m->code, (PCRE2_SPTR)v.p, v.n, 0, options, m->match, NULL, (PCRE2_SPTR)with[m->mode],
                                PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)p, &n);
    if (made < 0) return ck_nomem(err, a->mem, room); /* the pattern cannot fail otherwise */
    *out = (ck_view){p, n};
    return CK_OK;
}
