/* LIKE and ILIKE. A constant pattern is compiled once; another one whenever it differs from the row before. */
#include "expr/case_map.h"
#include "expr/eval_int.h"
#include "expr/functions_int.h"
#include "expr/like_int.h"

/* A compiled pattern is some forty times as long: one out of a row that is longer than this is not valid. */
enum { PATTERN_BYTES_MAX = 1 << 20, ARENA_BYTES_MAX = 256 << 20 };

typedef struct like_state {
    const ck_like *fixed; /* NULL: patterns come with the rows */
    ck_arena arena;       /* of the latest pattern */
    ck_case_map *fold;    /* ILIKE: to lower case */
} like_state;

static void dispose_like(ck_eval *ev, void *state) {
    (void)ev;
    like_state *s = state;
    ck_arena_destroy(&s->arena);
}

static const ck_view default_escape = {"\\", 1};

static bool literal_pattern(ck_expr *const *args, uint32_t arg_count, ck_view *pattern, ck_view *escape) {
    *escape = default_escape;
    for (uint32_t i = 1; i < arg_count; i++)
        if (args[i]->kind != CK_EXPR_LITERAL || args[i]->value.null) return false;
    *pattern = args[1]->value.str;
    if (arg_count == 3) *escape = args[2]->value.str;
    return true;
}

static ck_status lowered(like_state *s, ck_arena *a, ck_view v, ck_view *out, ck_error *err) {
    *out = v;
    return s->fold ? ck_case_map_view(s->fold, a, v, out, err) : CK_OK;
}

static ck_status prepare_like(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    like_state *s = CK_ARENA_NEW(&ev->arena, like_state);
    if (!s) return ck_nomem(err, ev->mem, sizeof *s);
    *state = s;
    ck_arena_init(&s->arena, ev->mem, ARENA_BYTES_MAX);
    if (call->impl->op) CK_TRY(ck_case_map_new(&ev->arena, CK_CASE_LOWER, &s->fold, err));
    ck_view pattern, escape;
    if (!literal_pattern(call->args, call->arg_count, &pattern, &escape)) return CK_OK;
    CK_TRY(lowered(s, &ev->arena, pattern, &pattern, err));
    /* One that is not valid (a constant put in for a column) fails the rows that reach it. */
    ck_status st = ck_like_compile(&ev->arena, pattern, escape, &s->fixed, err);
    return st == CK_INVALID ? CK_OK : st;
}

/* Patterns that come with the rows: compiled again when they change. */
typedef struct varying {
    like_state *s;
    const ck_like *like;
    ck_view pattern, escape;
} varying;

static ck_status pattern_of(varying *v, const ck_vec *args, uint32_t arg_count, uint32_t row, ck_error *err) {
    ck_view p = ck_column_str(args[1].col, CK_AT(args[1], row));
    ck_view e = arg_count == 3 ? ck_column_str(args[2].col, CK_AT(args[2], row)) : default_escape;
    if (v->like && ck_view_eq(p, v->pattern) && ck_view_eq(e, v->escape)) return CK_OK;
    ck_arena_destroy(&v->s->arena);
    ck_arena_init(&v->s->arena, v->s->arena.mem, ARENA_BYTES_MAX);
    v->like = NULL;
    v->pattern = p, v->escape = e;
    if (p.n > PATTERN_BYTES_MAX) return CK_INVALID;
    CK_TRY(lowered(v->s, &v->s->arena, p, &p, err));
    return ck_like_compile(&v->s->arena, p, e, &v->like, NULL);
}

static ck_status match_varying(CK_KERNEL_ARGS) {
    varying v = {.s = ck_eval_state(ev)};
    for (CK_EACH_ROW(k, i, rows)) {
        ck_status s = pattern_of(&v, args, call->arg_count, i, err);
        ck_view text = ck_column_str(args[0].col, CK_AT(args[0], i));
        ck_arena_mark mark = ck_arena_mark_now(&v.s->arena);
        if (s == CK_OK) s = lowered(v.s, &v.s->arena, text, &text, err);
        bool hit = s == CK_OK && ev->kernels->like_matches(v.like, text);
        ck_arena_reset_to(&v.s->arena, mark);
        ck_bit_put(out->col->bits, i, hit);
        if (s == CK_INVALID) s = ck_eval_mark(ev, out->col, i, CK_MARK_ARGUMENT, err);
        CK_TRY(s);
    }
    return CK_OK;
}

static ck_status match_folded(CK_KERNEL_ARGS) {
    (void)call;
    like_state *s = ck_eval_state(ev);
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view text = ck_column_str(args[0].col, CK_AT(args[0], i));
        ck_arena_mark mark = ck_arena_mark_now(&s->arena);
        CK_TRY(lowered(s, &s->arena, text, &text, err));
        ck_bit_put(out->col->bits, i, ev->kernels->like_matches(s->fixed, text));
        ck_arena_reset_to(&s->arena, mark);
    }
    return CK_OK;
}

static void match_fixed(const ck_kernels *k, const ck_like *l, const ck_column *c, const ck_rows *rows, uint64_t *bits,
                        uint16_t *sel) {
    if (!rows->sel) {
        k->like_bits[l->shape](bits, l, c, rows->n);
        return;
    }
    uint32_t n = k->like_rows[l->shape](sel, l, c, rows->sel, rows->n);
    k->sel_to_bits(bits, sel, n, rows->row_count);
}

static ck_status kernel_like(CK_KERNEL_ARGS) {
    const like_state *s = ck_eval_state(ev);
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    ck_status st = CK_OK;
    if (!s->fixed)
        st = match_varying(ev, call, args, rows, out, err);
    else if (s->fold)
        st = match_folded(ev, call, args, rows, out, err);
    else
        match_fixed(ev->kernels, s->fixed, args[0].col, rows, out->col->bits, ev->rows[1]);
    if (st != CK_OK) ck_column_unref(&out->col);
    return st;
}

static ck_status select_like(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                             const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)call, (void)valid, (void)err;
    const like_state *s = ck_eval_state(ev);
    *sel_count = ev->kernels->like_rows[s->fixed->shape](sel, s->fixed, args[0].col, rows->sel, rows->n);
    return CK_OK;
}

static const ck_impl impl_fixed = {
    .kernel = kernel_like, .select = select_like, .prepare = prepare_like, .dispose = dispose_like};
static const ck_impl impl_varying = {
    .kernel = kernel_like, .flags = CK_FN_FALLIBLE, .prepare = prepare_like, .dispose = dispose_like};
static const ck_impl impl_ilike = {
    .kernel = kernel_like, .flags = CK_FN_FALLIBLE, .op = 1, .prepare = prepare_like, .dispose = dispose_like};

static const ck_overload overloads_like[] = {{"sss?>b", &impl_varying, false}};

static ck_status bind_like(ck_bind_call *call, ck_error *err) {
    const ck_function by_signature = {.name = call->fn->name,
                                      .syntax = call->fn->syntax,
                                      .overloads = overloads_like,
                                      .overload_count = CK_ARRAY_COUNT(overloads_like)};
    ck_bind_call plain = *call;
    plain.fn = &by_signature;
    CK_TRY(ck_bind_overloads(&plain, err));
    call->type = plain.type, call->impl = plain.impl;
    if (strcmp(call->name, "ilike") == 0) call->impl = &impl_ilike;
    ck_view pattern, escape;
    if (!literal_pattern(call->args, call->arg_count, &pattern, &escape)) return CK_OK;
    const ck_like *checked;
    CK_TRY(ck_like_compile(call->arena, pattern, escape, &checked, err));
    if (call->impl == &impl_varying) call->impl = &impl_fixed;
    return CK_OK;
}

static const ck_function functions[] = {
    {.name = "like",
     .flags = CK_FN_INTERNAL,
     .bind = bind_like,
     .group = "strings",
     .syntax = "text LIKE pattern [ESCAPE character]",
     .summary =
         "Whether the whole text is as the pattern says: % stands for any characters, _ for one; a backslash (or "
         "the ESCAPE character) before one of them makes it plain.",
     .example = "'flights' LIKE 'fl%s'",
     .result = "true"},
    {.name = "ilike",
     .flags = CK_FN_INTERNAL,
     .bind = bind_like,
     .group = "strings",
     .syntax = "text ILIKE pattern [ESCAPE character]",
     .summary = "As LIKE, upper and lower case being the same.",
     .example = "'Flights' ILIKE 'FL%'",
     .result = "true"},
};
const ck_function_table ck_functions_like = {functions, CK_ARRAY_COUNT(functions)};
