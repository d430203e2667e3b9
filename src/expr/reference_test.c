/* Random expressions over integers and booleans against an interpreter of a page: three-valued logic, guards, errors
 * only where a row reaches them, shared parts, filters. */
#include "expr/sample_int.h"

#include "base/hash.h"

typedef struct value {
    enum { VALUE, NOTHING, FAILED } is;
    int64_t v;
} value;

static uint64_t draw(uint64_t *seed, uint64_t bound) { return ck_mix64(*seed += 0x9E3779B97F4A7C15ULL) % bound; }

/* ---- the interpreter ---- */

static value of(int64_t v) { return (value){VALUE, v}; }
static const value nothing = {NOTHING, 0}, failed = {FAILED, 0};

static value evaluate(const ck_expr *e, const value *row);

static value arithmetic(char op, value a, value b) {
    int64_t r = 0;
    if (a.is == FAILED || b.is == FAILED) return failed;
    if (a.is == NOTHING || b.is == NOTHING) return nothing;
    bool bad = false;
    switch (op) {
    case '+': bad = __builtin_add_overflow(a.v, b.v, &r); break;
    case '-': bad = __builtin_sub_overflow(a.v, b.v, &r); break;
    case '*': bad = __builtin_mul_overflow(a.v, b.v, &r); break;
    default:
        bad = b.v == 0 || (a.v == INT64_MIN && b.v == -1 && op == '/');
        if (!bad) r = op == '/' ? a.v / b.v : b.v == -1 ? 0 : a.v % b.v;
    }
    return bad ? failed : of(r);
}

static value comparison(const char *op, value a, value b) {
    if (a.is == FAILED || b.is == FAILED) return failed;
    if (a.is == NOTHING || b.is == NOTHING) return nothing;
    if (strcmp(op, "=") == 0) return of(a.v == b.v);
    if (strcmp(op, "<>") == 0) return of(a.v != b.v);
    if (strcmp(op, "<") == 0) return of(a.v < b.v);
    if (strcmp(op, "<=") == 0) return of(a.v <= b.v);
    return of(strcmp(op, ">") == 0 ? a.v > b.v : a.v >= b.v);
}

/* `decides` is FALSE for AND, TRUE for OR. */
static value both(const ck_expr *e, const value *row, int64_t decides) {
    bool open = false;
    for (uint32_t i = 0; i < e->arg_count; i++) {
        value v = evaluate(e->args[i], row);
        if (v.is == FAILED) return failed;
        if (v.is == VALUE && v.v == decides) return of(decides);
        if (v.is == NOTHING) open = true;
    }
    return open ? nothing : of(!decides);
}

static value in_list(value x, const ck_expr *e, const value *row) {
    bool open = false;
    if (x.is == FAILED) return failed;
    for (uint32_t i = 1; i < e->arg_count; i++) {
        value hit = comparison("=", x, evaluate(e->args[i], row));
        if (hit.is == FAILED) return failed;
        if (hit.is == VALUE && hit.v) return of(1);
        if (hit.is == NOTHING) open = true;
    }
    return open ? nothing : of(0);
}

static value between(const ck_expr *e, const value *row) {
    value x = evaluate(e->args[0], row);
    value low = comparison(">=", x, evaluate(e->args[1], row));
    if (low.is == FAILED || (low.is == VALUE && !low.v)) return low;
    value high = comparison("<=", x, evaluate(e->args[2], row));
    if (high.is == FAILED || (high.is == VALUE && !high.v)) return high;
    return low.is == NOTHING ? low : high;
}

static value branches(const ck_expr *e, const value *row) {
    uint32_t i = 0;
    for (; i + 1 < e->arg_count; i += 2) {
        value c = evaluate(e->args[i], row);
        if (c.is == FAILED) return failed;
        if (c.is == VALUE && c.v) return evaluate(e->args[i + 1], row);
    }
    return i < e->arg_count ? evaluate(e->args[i], row) : nothing;
}

static value call(const ck_expr *e, const value *row) {
    const char *f = e->fn->name;
    if (strcmp(f, "and") == 0 || strcmp(f, "or") == 0) return both(e, row, f[0] == 'o');
    if (strcmp(f, "case") == 0 || strcmp(f, "if") == 0) return branches(e, row);
    if (strcmp(f, "between") == 0) return between(e, row);
    value a = evaluate(e->args[0], row);
    if (strcmp(f, "in") == 0) return in_list(a, e, row);
    if (strcmp(f, "coalesce") == 0) {
        for (uint32_t i = 1; i < e->arg_count && a.is == NOTHING; i++) a = evaluate(e->args[i], row);
        return a;
    }
    if (a.is == FAILED) return failed;
    if (strcmp(f, "is_null") == 0) return of(a.is == NOTHING);
    if (strcmp(f, "is_not_true") == 0) return of(a.is == NOTHING || !a.v);
    if (strcmp(f, "not") == 0) return a.is == NOTHING ? a : of(!a.v);
    if (strcmp(f, "cast") == 0) return a; /* to a wider integer */
    value b = evaluate(e->args[1], row);
    if (strcmp(f, "nullif") == 0) {
        value same = comparison("=", a, b);
        return same.is == FAILED ? failed : same.is == VALUE && same.v ? nothing : a;
    }
    return strchr("+-*/%", f[0]) ? arithmetic(f[0], a, b) : comparison(f, a, b);
}

static value evaluate(const ck_expr *e, const value *row) {
    if (e->kind == CK_EXPR_COLUMN) return row[e->column];
    if (e->kind == CK_EXPR_LITERAL)
        return e->value.null ? nothing : of(e->type->kind == CK_TYPE_BOOLEAN ? e->value.b : e->value.i64);
    return call(e, row);
}

/* ---- random expressions ---- */

/* N a number, B a truth value, S an earlier number again (sharing). */
static const char *const number_forms[] = {"+ N N",        "- N N",      "* N N",    "/ N N",
                                           "% N N",        "case B N N", "case B N", "case B N B N N",
                                           "coalesce N N", "nullif N N", "if B N S", "+ S S"};
static const char *const truth_forms[] = {"= N N",    "<> N N",        "< N N",      "<= N S",    ">= N N",
                                          "and B B",  "or B B",        "not B",      "is_null N", "is_not_true B",
                                          "in N N N", "between N N N", "in N 1 2 3", "and B B B", "case B B B"};

typedef struct maker {
    sample *s;
    uint64_t *seed;
    ck_expr *earlier[16];
    uint32_t count;
} maker;

static ck_expr *make(maker *m, int depth, bool number) {
    sample *s = m->s;
    if (depth == 0) {
        static const char *const numbers[] = {"a",
                                              "b",
                                              "c",
                                              "(lit BIGINT '0')",
                                              "(lit BIGINT '1')",
                                              "(lit BIGINT '-1')",
                                              "9223372036854775807",
                                              "(null BIGINT)"};
        static const char *const truths[] = {"p", "q", "true", "false", "(null BOOLEAN)"};
        return sample_expr(s, number ? numbers[draw(m->seed, 8)] : truths[draw(m->seed, draw(m->seed, 3) ? 2 : 5)]);
    }
    const char *f = number ? number_forms[draw(m->seed, CK_ARRAY_COUNT(number_forms))]
                           : truth_forms[draw(m->seed, CK_ARRAY_COUNT(truth_forms))];
    char name[16];
    size_t n = strcspn(f, " ");
    memcpy(name, f, n);
    name[n] = '\0';
    ck_expr *args[8], *out;
    uint32_t count = 0;
    for (const char *p = f + n; *p; p++) {
        if (*p == ' ') continue;
        if (*p >= '1' && *p <= '9')
            args[count++] = sample_expr(s, (char[]){*p, '\0'});
        else if (*p == 'S' && m->count)
            args[count++] = m->earlier[draw(m->seed, m->count)];
        else
            args[count++] = make(m, (int)draw(m->seed, (uint64_t)depth), *p != 'B');
    }
    if (ck_expr_call(&s->arena, name, args, count, &out, &s->err) != CK_OK) fail_msg("%s: %s", name, s->err.msg);
    if (number && m->count < 16 && out->type->kind == CK_TYPE_BIGINT) m->earlier[m->count++] = out;
    return out;
}

/* ---- the comparison ---- */

enum { ROWS = 130, FIELDS = 5 };

static ck_batch *make_batch(sample *s, uint64_t *seed, value rows[ROWS][FIELDS]) {
    static const int64_t pool[] = {0, 1, -1, 2, 3, 10, INT64_MAX, INT64_MIN};
    ck_batch *b = ck_batch_new(s->mem, FIELDS, ROWS, false, false);
    for (uint32_t c = 0; c < FIELDS; c++) {
        bool truth = c >= 3;
        ck_column *col = ck_column_new(s->mem, truth ? CK_PHYS_BOOL : CK_PHYS_I64, ROWS);
        for (uint32_t r = 0; r < ROWS; r++) {
            value v = draw(seed, 6) == 0 && c != 2 ? nothing : of(truth ? (int64_t)draw(seed, 2) : pool[draw(seed, 8)]);
            rows[r][c] = v;
            if (truth)
                ck_bit_put(col->bits, r, v.v);
            else
                col->i64[r] = v.is == NOTHING ? pool[draw(seed, 8)] : v.v; /* NULLs lie over anything */
            if (v.is == NOTHING) ck_bit_clear(ck_column_writable_validity(col), r);
        }
        ck_batch_set_column(b, c, &col);
    }
    return b;
}

static void check_values(sample *s, ck_eval *ev, const ck_expr *e, const ck_batch *b, const value *want) {
    ck_column *c = NULL;
    bool fails = false;
    for (uint32_t k = 0; k < b->sel_count; k++) fails |= want[ck_batch_row(b, k)].is == FAILED;
    ck_status st = ck_eval_run(ev, b, &c, &s->err);
    if (st != (fails ? CK_DATA : CK_OK)) {
        ck_bytes text;
        ck_bytes_init(&text, s->mem, 1 << 16);
        assert_int_equal(ck_expr_print(e, s->names, &text), CK_OK);
        fail_msg("%.*s: %s, %s", (int)text.n, text.p, fails ? "should fail" : "fails", s->err.msg);
    }
    if (st != CK_OK) return;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t r = ck_batch_row(b, k);
        bool null = ck_column_is_null(c, r);
        int64_t got = null ? 0 : e->type->kind == CK_TYPE_BOOLEAN ? ck_bit_get(c->bits, r) : c->i64[r];
        if (null == (want[r].is == NOTHING) && (null || got == want[r].v)) continue;
        ck_bytes text;
        ck_bytes_init(&text, s->mem, 1 << 16);
        assert_int_equal(ck_expr_print(e, s->names, &text), CK_OK);
        fail_msg("%.*s in row %u: %lld (null %d), not %lld (null %d)", (int)text.n, text.p, r, (long long)got, null,
                 (long long)want[r].v, want[r].is == NOTHING);
    }
    ck_column_unref(&c);
}

static void check_filter(sample *s, ck_eval *ev, const ck_batch *b, const value *want) {
    uint16_t sel[ROWS];
    uint32_t n = 0, at = 0;
    if (ck_eval_filter(ev, b, sel, &n, &s->err) != CK_OK) fail_msg("%s", s->err.msg);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t r = ck_batch_row(b, k);
        if (want[r].is != VALUE || !want[r].v) continue;
        if (at == n || sel[at++] != r) fail_msg("a filter misses row %u", r);
    }
    assert_int_equal(at, n);
}

static void check_expression(sample *s, uint64_t *seed, const ck_batch *b, value rows[ROWS][FIELDS], bool number) {
    maker m = {.s = s, .seed = seed};
    ck_expr *e = make(&m, 1 + (int)draw(seed, 5), number);
    ck_program *p;
    ck_eval *ev;
    ck_eval_options o = {.proc = &s->proc, .mem = s->mem, .column_names = s->names};
    assert_int_equal(ck_program_compile(&s->arena, &e, 1, &p, &s->err), CK_OK);
    if (e->type->kind == CK_TYPE_NULL) return;
    assert_int_equal(ck_eval_new(p, &o, &ev, &s->err), CK_OK);
    value want[ROWS];
    uint16_t good[ROWS], some[ROWS];
    uint32_t good_n = 0, some_n = 0;
    for (uint32_t r = 0; r < ROWS; r++) {
        want[r] = evaluate(e, rows[r]);
        if (want[r].is != FAILED) good[good_n++] = (uint16_t)r;
        if (want[r].is != FAILED && draw(seed, 7) == 0) some[some_n++] = (uint16_t)r;
    }
    check_values(s, ev, e, b, want);
    for (int few = 0; few < 2; few++) {
        ck_batch *live = ck_batch_select(b, few ? some : good, few ? some_n : good_n);
        check_values(s, ev, e, live, want);
        if (!number) check_filter(s, ev, live, want);
        ck_batch_unref(&live);
    }
    ck_eval_free(ev);
}

static void random_expressions(void **state) {
    sample *s = *state;
    static const char *const names[] = {"a", "b", "c", "p", "q"};
    for (uint32_t c = 0; c < FIELDS; c++) sample_column(s, names[c], c < 3 ? "BIGINT" : "BOOLEAN");
    static value rows[ROWS][FIELDS];
    for (uint64_t round = 0; round < 120; round++) {
        uint64_t seed = round * 1000;
        s->proc.cpu = round % 2 ? ck_cpu_detect() : (ck_cpu){0};
        ck_batch *b = make_batch(s, &seed, rows);
        for (int i = 0; i < 100; i++) {
            ck_arena_mark mark = ck_arena_mark_now(&s->arena);
            check_expression(s, &seed, b, rows, i % 2);
            ck_arena_reset_to(&s->arena, mark);
        }
        ck_batch_unref(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(random_expressions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
