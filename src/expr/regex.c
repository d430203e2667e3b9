/* See regex.h. */
#include "expr/regex.h"

#include "expr/find.h"
#include "expr/pcre.h"
#include "expr/regex_int.h"

/* Machine code counts steps, too, and has a stack of its own; the interpreter's depth is bounded by its memory. */
enum { MATCH_LIMIT = 1000000, HEAP_KIB_MAX = 16384, JIT_STACK_MAX = 512 << 10 };

struct ck_regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    bool jit;
    uint32_t groups;
    ck_view required;
    const char *(*find)(ck_view text, ck_view part);
};

static void dispose(void *arg) {
    ck_regex *r = arg;
    pcre2_jit_stack_free(r->stack);
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->data);
    pcre2_code_free(r->code);
}

static ck_status bad_pattern(ck_view pattern, int code, PCRE2_SIZE at, ck_error *err) {
    PCRE2_UCHAR words[256];
    if (pcre2_get_error_message(code, words, sizeof words) < 0) words[0] = '\0';
    return ck_fail(err, CK_INVALID, "the regular expression '%.*s' is not valid: %s at byte %zu",
                   (int)(pattern.n > 100 ? 100 : pattern.n), pattern.p, (const char *)words, (size_t)at);
}

static bool set_up_matching(ck_regex *r, pcre2_general_context *general) {
    r->data = pcre2_match_data_create_from_pattern(r->code, general);
    r->context = pcre2_match_context_create(general);
    if (!r->data || !r->context) return false;
    (void)pcre2_set_match_limit(r->context, MATCH_LIMIT);
    (void)pcre2_set_heap_limit(r->context, HEAP_KIB_MAX);
    r->jit = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
    if (!r->jit) return true;
    r->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK_MAX, general);
    if (!r->stack) return false;
    pcre2_jit_stack_assign(r->context, NULL, r->stack);
    return true;
}

ck_status ck_regex_compile(ck_arena *a, ck_view pattern, bool ignore_case, ck_regex **out, ck_error *err) {
    *out = NULL;
    ck_regex *r = CK_ARENA_NEW(a, ck_regex);
    pcre2_general_context *general = r ? ck_pcre_context(a) : NULL;
    pcre2_compile_context *cc = general ? pcre2_compile_context_create(general) : NULL;
    if (!cc) return ck_nomem(err, a->mem, sizeof *r);
    r->find = ck_find;
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0);
    r->code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, options, &code, &at, cc);
    pcre2_compile_context_free(cc);
    CK_TRY(ck_arena_on_reset(a, dispose, r));
    if (!r->code)
        return code == PCRE2_ERROR_HEAP_FAILED ? ck_nomem(err, a->mem, pattern.n) : bad_pattern(pattern, code, at, err);
    if (!set_up_matching(r, general)) return ck_nomem(err, a->mem, sizeof *r);
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &r->groups);
    if (!ignore_case) {
        ck_view required = ck_regex_required_literal(pattern);
        char *copy = ck_arena_strndup(a, required.p, required.n);
        if (!copy) return ck_nomem(err, a->mem, required.n);
        r->required = (ck_view){copy, required.n};
    }
    *out = r;
    return CK_OK;
}

void ck_regex_find_by(ck_regex *r, const char *(*find)(ck_view text, ck_view part)) { r->find = find; }
uint32_t ck_regex_groups(const ck_regex *r) { return r->groups; }
bool ck_regex_is_machine_code(const ck_regex *r) { return r->jit; }
void ck_regex_interpret(ck_regex *r) { r->jit = false; }

_Static_assert(sizeof(ck_span) == 2 * sizeof(PCRE2_SIZE) && sizeof(size_t) == sizeof(PCRE2_SIZE),
               "spans are PCRE2's own");

ck_regex_result ck_regex_match(ck_regex *r, ck_view text, size_t start, const ck_span **spans) {
    static const char empty[1];
    PCRE2_SPTR p = (PCRE2_SPTR)(text.p ? text.p : empty);
    if (r->required.n && !r->find((ck_view){text.p + start, text.n - start}, r->required)) return CK_REGEX_NONE;
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    if (r->jit) rc = pcre2_jit_match(r->code, p, text.n, start, PCRE2_NO_UTF_CHECK, r->data, r->context);
    /* What the stack of machine code does not hold, the interpreter's memory may. */
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, p, text.n, start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, r->data, r->context);
    if (rc == PCRE2_ERROR_NOMATCH) return CK_REGEX_NONE;
    if (rc < 0) return CK_REGEX_LIMIT; /* too many steps, too deep, too much memory */
    PCRE2_SIZE *at = pcre2_get_ovector_pointer(r->data);
    for (uint32_t g = (uint32_t)rc; g <= r->groups; g++) at[2 * g] = at[2 * g + 1] = PCRE2_UNSET;
    *spans = (const ck_span *)(const void *)at;
    return CK_REGEX_MATCH;
}
