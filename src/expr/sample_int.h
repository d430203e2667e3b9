/* What the tests of this room share: expressions written in brackets, "(+ a 1)", batches of columns, values as text. */
#ifndef CK_EXPR_SAMPLE_INT_H
#define CK_EXPR_SAMPLE_INT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "data/builder.h"
#include "data/text.h"
#include "expr/eval_int.h"

/* A test's memory, which must be empty at its end, and a table of columns its expressions name. */
typedef struct sample {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_mem mem;
    ck_arena arena;
    ck_proc proc;
    ck_field fields[32];
    uint32_t field_count;
    const char *names[32];
    ck_error err;
} sample;

static inline int sample_setup(void **state) {
    sample *s = calloc(1, sizeof *s);
    if (!s || ck_tracked_heap_new(&s->heap) != CK_OK) return -1;
    ck_budget_init(&s->budget, ck_tracked_heap_base(s->heap), 0);
    s->mem = (ck_mem){&s->budget, CK_MEM_QUEUE};
    ck_arena_init(&s->arena, s->mem, SIZE_MAX / 2);
    s->proc.cpu = ck_cpu_detect();
    s->err = CK_ERROR_INIT;
    *state = s;
    return 0;
}

static inline int sample_teardown(void **state) {
    sample *s = *state;
    ck_arena_destroy(&s->arena);
    size_t left = ck_tracked_heap_live_blocks(s->heap);
    ck_tracked_heap_free(s->heap);
    free(s);
    return left ? -1 : 0;
}
#define SAMPLE_TEST(f) cmocka_unit_test_setup_teardown(f, sample_setup, sample_teardown)

static inline const ck_type *sample_type(sample *s, const char *text) {
    const ck_type *t = NULL;
    ck_status st = text ? ck_type_parse(&s->arena, ck_view_of(text), &t, &s->err) : CK_NOMEM;
    if (st != CK_OK && st != CK_NOMEM) fail_msg("type %s: %s", text, s->err.msg);
    return st == CK_OK ? t : NULL; /* NULL: no memory */
}

static inline void sample_column(sample *s, const char *name, const char *type) {
    s->names[s->field_count] = name;
    s->fields[s->field_count++] = (ck_field){name, sample_type(s, type), true};
}

/* ---- (name argument ...): also (cast TYPE x), (try_cast TYPE x), (lit TYPE text), (null TYPE) ---- */

typedef struct sample_reader {
    sample *s;
    const char *p;
} sample_reader;

static inline ck_status sample_read(sample_reader *r, ck_expr **out);

static inline ck_view sample_word(sample_reader *r) {
    while (*r->p == ' ') r->p++;
    const char *begin = r->p;
    int depth = 0;
    if (*r->p == '\'') {
        for (r->p++; *r->p && !(r->p[0] == '\'' && r->p[1] != '\''); r->p++)
            if (r->p[0] == '\'') r->p++;
        r->p++;
    } else {
        for (; *r->p && (*r->p != ' ' || depth) && (*r->p != ')' || depth); r->p++) {
            if (*r->p == '(') depth++;
            if (*r->p == ')') depth--;
        }
    }
    return (ck_view){begin, (size_t)(r->p - begin)};
}

static inline ck_status sample_convert(sample *s, const ck_type *t, ck_view text, ck_expr **out) {
    ck_datum d = {.str = text};
    ck_expr *e = ck_expr_literal(&s->arena, ck_type_simple(CK_TYPE_VARCHAR), d);
    if (!e || !t) return CK_NOMEM;
    return ck_expr_cast(&s->arena, e, t, false, out, &s->err);
}

static inline ck_status sample_atom(sample_reader *r, ck_expr **out) {
    sample *s = r->s;
    ck_view w = sample_word(r);
    int64_t v;
    ck_datum d = {0};
    if (w.p[0] == '\'') {
        char *text = ck_arena_alloc(&s->arena, w.n);
        size_t n = 0;
        if (!text) return CK_NOMEM;
        for (size_t i = 1; i + 1 < w.n; i++) {
            text[n++] = w.p[i];
            if (w.p[i] == '\'') i++;
        }
        d.str = (ck_view){text, n};
        *out = ck_expr_literal(&s->arena, ck_type_simple(CK_TYPE_VARCHAR), d);
        return *out ? CK_OK : CK_NOMEM;
    }
    for (uint32_t i = 0; i < s->field_count; i++)
        if (ck_view_is(w, s->names[i])) {
            *out = ck_expr_column(&s->arena, i, s->fields[i].type, s->fields[i].nullable);
            return *out ? CK_OK : CK_NOMEM;
        }
    if (ck_view_is(w, "null")) {
        *out = ck_expr_null(&s->arena, ck_type_simple(CK_TYPE_NULL));
        return *out ? CK_OK : CK_NOMEM;
    }
    if (ck_view_is(w, "true") || ck_view_is(w, "false")) {
        d.b = w.p[0] == 't';
        *out = ck_expr_literal(&s->arena, ck_type_simple(CK_TYPE_BOOLEAN), d);
        return *out ? CK_OK : CK_NOMEM;
    }
    if (ck_parse_i64(w, &v)) {
        d.i64 = v;
        ck_kind kind = v == (int32_t)v ? CK_TYPE_INTEGER : CK_TYPE_BIGINT;
        *out = ck_expr_literal(&s->arena, ck_type_simple(kind), d);
        return *out ? CK_OK : CK_NOMEM;
    }
    if (memchr(w.p, 'e', w.n)) return sample_convert(s, ck_type_simple(CK_TYPE_DOUBLE), w, out);
    const char *point = memchr(w.p, '.', w.n);
    if (!point) fail_msg("no column or number %.*s", (int)w.n, w.p);
    int scale = (int)(w.p + w.n - point - 1), digits = (int)w.n - 1 - (w.p[0] == '-') - (*w.p == '0');
    return sample_convert(s, ck_type_decimal(&s->arena, digits > scale ? digits : scale, scale), w, out);
}

static inline ck_status sample_list(sample_reader *r, ck_expr **out) {
    sample *s = r->s;
    ck_expr *args[64];
    uint32_t n = 0;
    r->p++;
    ck_view name = sample_word(r);
    char *z = ck_arena_strndup(&s->arena, name.p, name.n);
    if (!z) return CK_NOMEM;
    bool cast = strcmp(z, "cast") == 0 || strcmp(z, "try_cast") == 0, lit = strcmp(z, "lit") == 0;
    const ck_type *type = NULL;
    if (cast || lit || strcmp(z, "null") == 0) {
        ck_view t = sample_word(r);
        if (t.p[0] == '(') t.p++, t.n -= 2; /* (INTERVAL DAY TO SECOND) */
        type = sample_type(s, ck_arena_strndup(&s->arena, t.p, t.n));
        if (!type) return CK_NOMEM;
    }
    for (;; n++) {
        while (*r->p == ' ') r->p++;
        if (*r->p == ')') break;
        if (!*r->p || n == 64) fail_msg("an open bracket");
        CK_TRY(sample_read(r, &args[n]));
    }
    r->p++;
    if (cast) return ck_expr_cast(&s->arena, args[0], type, z[0] == 't', out, &s->err);
    if (lit) return sample_convert(s, type, args[0]->value.str, out);
    if (type) {
        *out = ck_expr_null(&s->arena, type);
        return *out ? CK_OK : CK_NOMEM;
    }
    return ck_expr_call(&s->arena, z, args, n, out, &s->err);
}

static inline ck_status sample_read(sample_reader *r, ck_expr **out) {
    while (*r->p == ' ') r->p++;
    return *r->p == '(' ? sample_list(r, out) : sample_atom(r, out);
}

static inline ck_status sample_try(sample *s, const char *text, ck_expr **out) {
    sample_reader r = {s, text};
    return sample_read(&r, out);
}

static inline ck_expr *sample_expr(sample *s, const char *text) {
    ck_expr *e = NULL;
    if (sample_try(s, text, &e) != CK_OK) fail_msg("%s: %s", text, s->err.msg);
    return e;
}

/* ---- running ---- */

/* Column i of b from rows of text, NULL for the word. */
static inline ck_batch *sample_batch(sample *s, uint32_t rows, const char *const *cells) {
    ck_batch *b = ck_batch_new(s->mem, s->field_count, rows, false, false);
    for (uint32_t c = 0; c < s->field_count; c++) {
        ck_column_builder cb;
        assert_int_equal(ck_column_builder_init(&cb, s->mem, s->fields[c].type, rows ? rows : 1), CK_OK);
        for (uint32_t r = 0; r < rows; r++) {
            const char *cell = cells[r * s->field_count + c];
            ck_expr *e = NULL;
            if (!cell) {
                assert_int_equal(ck_build_null(&cb), CK_OK);
                continue;
            }
            const ck_type *t = s->fields[c].type; /* TIMESTAMP_LTZ cells are in UTC */
            if (t->kind == CK_TYPE_TIMESTAMP_LTZ) t = ck_type_simple(CK_TYPE_TIMESTAMP);
            if (sample_convert(s, t, ck_view_of(cell), &e) != CK_OK || e->kind != CK_EXPR_LITERAL)
                fail_msg("cell %s", cell);
            ck_status st = CK_OK;
            switch (ck_type_phys(e->type)) {
            case CK_PHYS_BOOL: st = ck_build_bool(&cb, e->value.b); break;
            case CK_PHYS_I64: st = ck_build_i64(&cb, e->value.i64); break;
            case CK_PHYS_F64: st = ck_build_f64(&cb, e->value.f64); break;
            case CK_PHYS_I128: st = ck_build_i128(&cb, e->value.i128); break;
            default: st = ck_build_str(&cb, e->value.str.p, e->value.str.n); break;
            }
            assert_int_equal(st, CK_OK);
        }
        ck_column *col = ck_column_builder_finish(&cb);
        ck_batch_set_column(b, c, &col);
        ck_column_builder_destroy(&cb);
    }
    return b;
}

static inline ck_status sample_eval_on(sample *s, ck_expr *e, const ck_batch *b, bool error_null, const char *zone,
                                       ck_column **out) {
    ck_program *p = NULL;
    ck_eval *ev = NULL;
    ck_eval_options o = {
        .proc = &s->proc, .mem = s->mem, .error_null = error_null, .timezone = zone, .column_names = s->names};
    ck_status st = ck_program_compile(&s->arena, &e, 1, &p, &s->err);
    if (st == CK_OK) st = ck_eval_new(p, &o, &ev, &s->err);
    if (st == CK_OK) st = ck_eval_run(ev, b, out, &s->err);
    ck_eval_free(ev);
    return st;
}

static inline const char *sample_value(sample *s, const ck_type *t, const ck_column *c, uint32_t row) {
    ck_bytes b;
    ck_bytes_init(&b, s->mem, 1 << 20);
    assert_int_equal(ck_print_value(t, c, row, &b), CK_OK);
    char *z = ck_arena_strndup(&s->arena, b.n ? b.p : "", b.n);
    ck_bytes_destroy(&b);
    return z;
}

/* The value of an expression without columns, or "error: message". */
static inline const char *sample_constant(sample *s, const char *text, const char *zone) {
    ck_expr *e;
    ck_column *c = NULL;
    if (sample_try(s, text, &e) != CK_OK) return ck_arena_printf(&s->arena, "error: %s", s->err.msg);
    ck_batch *b = ck_batch_new(s->mem, 0, 1, false, false);
    ck_status st = sample_eval_on(s, e, b, false, zone, &c);
    ck_batch_unref(&b);
    if (st != CK_OK) return ck_arena_printf(&s->arena, "error: %s", s->err.msg);
    const char *v = sample_value(s, e->type, c, 0);
    ck_column_unref(&c);
    return v;
}

typedef struct sample_case {
    const char *expr, *result;
} sample_case;

/* Each expression gives its result. */
static inline void sample_check(sample *s, const sample_case *cases, size_t count, const char *zone) {
    for (size_t i = 0; i < count; i++) {
        const char *got = sample_constant(s, cases[i].expr, zone);
        if (strcmp(got, cases[i].result) != 0) fail_msg("%s gives %s, not %s", cases[i].expr, got, cases[i].result);
    }
}

#endif
