/* Functions that give another value each time: seeded from the proc's random source, so a seeded run repeats. */
#include "base/hash.h"
#include "expr/functions_int.h"
#include "expr/strout.h"
#include "os/random.h"

typedef struct generator {
    uint64_t state;
} generator;

static ck_status prepare(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    (void)call;
    generator *g = CK_ARENA_NEW(&ev->arena, generator);
    if (!g) return ck_nomem(err, ev->mem, sizeof *g);
    g->state = ev->proc && ev->proc->random ? ck_random_u64(ev->proc) : 0;
    *state = g;
    return CK_OK;
}

static uint64_t next(generator *g) { return ck_mix64(g->state += 0x9E3779B97F4A7C15ULL); }

static ck_status kernel_random(CK_KERNEL_ARGS) {
    (void)call, (void)args;
    generator *g = ck_eval_state(ev);
    CK_TRY(ck_eval_result(ev, CK_PHYS_F64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->f64[i] = (double)(next(g) >> 11) * 0x1p-53;
    return CK_OK;
}

static ck_status kernel_random_integer(CK_KERNEL_ARGS) {
    (void)call;
    generator *g = ck_eval_state(ev);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t bound = CK_ARG_I64(0, i);
        out->col->i64[i] = bound > 0 ? (int64_t)((ck_u128)next(g) * (uint64_t)bound >> 64) : 0;
        if (bound <= 0 && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_ARGUMENT, err);
    }
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static ck_status kernel_uuid(CK_KERNEL_ARGS) {
    (void)call, (void)args;
    static const char digits[] = "0123456789abcdef";
    generator *g = ck_eval_state(ev);
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        uint64_t words[2] = {next(g), next(g)};
        words[0] = (words[0] & ~0xF000ULL) | 0x4000;        /* version 4 */
        words[1] = (words[1] & ~(3ULL << 62)) | 1ULL << 63; /* its variant */
        char text[36];
        size_t n = 0;
        for (int d = 0; d < 32; d++) {
            if (d == 8 || d == 12 || d == 16 || d == 20) text[n++] = '-';
            text[n++] = digits[words[d / 16] >> (60 - 4 * (d % 16)) & 15];
        }
        if (s == CK_OK) s = ck_strout_put(&w, i, (ck_view){text, n});
    }
    return ck_strout_finish(&w, s, out);
}

static const ck_impl impl_random = {.kernel = kernel_random, .flags = CK_FN_VOLATILE, .prepare = prepare},
                     impl_random_integer = {.kernel = kernel_random_integer,
                                            .flags = CK_FN_VOLATILE | CK_FN_FALLIBLE,
                                            .prepare = prepare},
                     impl_uuid = {.kernel = kernel_uuid, .flags = CK_FN_VOLATILE, .prepare = prepare};

static const ck_overload o_random[] = {{">d", &impl_random, false}},
                         o_random_integer[] = {{"l>l", &impl_random_integer, false}},
                         o_uuid[] = {{">s", &impl_uuid, false}};

#define FN(NAME, LIST, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                               \
    .name = NAME, .flags = CK_FN_VOLATILE, .overloads = LIST, .overload_count = CK_ARRAY_COUNT(LIST),                  \
    .group = "random", .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE, .result = RESULT
static const ck_function functions[] = {
    {FN("random", o_random, "RANDOM()", "A DOUBLE from 0 to below 1, another one in each row.",
        "RANDOM() BETWEEN 0 AND 1", "true"),
     .aliases = "rand"},
    {FN("rand_integer", o_random_integer, "RAND_INTEGER(n)", "A whole number from 0 to n - 1, another one in each row.",
        "RAND_INTEGER(1)", "0")},
    {FN("uuid", o_uuid, "UUID()", "A random UUID (version 4), another one in each row.", "CHAR_LENGTH(UUID())", "36"),
     .aliases = "gen_random_uuid"},
};
const ck_function_table ck_functions_volatile = {functions, CK_ARRAY_COUNT(functions)};
