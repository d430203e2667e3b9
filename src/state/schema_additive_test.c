/* Which changes of a value's fields migrate by themselves, and packed values that become values of the new fields.
 *
 * `test.state.schema_additive --pairs SEED COUNT` prints random pairs of schemas, the verdict on each, and a value
 * before and after, an object a line: tests/system/test_schema_pairs.py judges them by a model of its own. */
#include "state/schema_additive.h"

#include "state/schemas_test_support.h"

enum { FIELDS_MAX = 9 };

static const ck_type types[] = {
    {.kind = CK_TYPE_TINYINT},
    {.kind = CK_TYPE_SMALLINT},
    {.kind = CK_TYPE_INTEGER},
    {.kind = CK_TYPE_BIGINT},
    {.kind = CK_TYPE_BOOLEAN},
    {.kind = CK_TYPE_DOUBLE},
    {.kind = CK_TYPE_DECIMAL, .precision = 8, .scale = 2},
    {.kind = CK_TYPE_DECIMAL, .precision = 12, .scale = 2},
    {.kind = CK_TYPE_DECIMAL, .precision = 12, .scale = 3},
    {.kind = CK_TYPE_VARCHAR},
    {.kind = CK_TYPE_VARCHAR, .precision = 9},
    {.kind = CK_TYPE_VARCHAR, .precision = 20},
    {.kind = CK_TYPE_BYTES},
    {.kind = CK_TYPE_DATE},
};

/* ---- random pairs ---- */

static uint64_t draw(uint64_t *x) { /* splitmix64 */
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
static uint32_t below(uint64_t *x, uint32_t n) { return (uint32_t)(draw(x) % n); }

static uint32_t schema(uint64_t *x, ck_field *out) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    uint32_t n = below(x, FIELDS_MAX + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = (ck_field){names[i], &types[below(x, CK_ARRAY_COUNT(types))], below(x, 2)};
    return n;
}

/* A few changes on it: mostly such as may go through, so that both verdicts come. */
static uint32_t changed(uint64_t *x, const ck_field *from, uint32_t n, ck_field *out) {
    memcpy(out, from, n * sizeof *out);
    for (uint32_t changes = below(x, 4); changes--;) {
        uint32_t at = n ? below(x, n) : 0;
        switch (below(x, n ? 6 : 1)) {
        case 0:
            if (n < FIELDS_MAX) out[n++] = (ck_field){"new", &types[below(x, CK_ARRAY_COUNT(types))], below(x, 4) > 0};
            for (uint32_t i = 0; i + 1 < n; i++)
                n -= strcmp(out[i].name, "new") == 0 && strcmp(out[n - 1].name, "new") == 0;
            break;
        case 1: out[at].type = &types[below(x, CK_ARRAY_COUNT(types))]; break;
        case 2: out[at].type += out[at].type < &types[CK_ARRAY_COUNT(types) - 1]; break; /* mostly a wider one */
        case 3: out[at].nullable = below(x, 4) > 0; break;
        case 4: {
            uint32_t other = below(x, n);
            ck_field f = out[at];
            out[at] = out[other], out[other] = f;
            break;
        }
        case 5:
            if (below(x, 3) == 0) out[at] = out[--n];
            break;
        }
    }
    return n;
}

static void put(ck_bytes *b, uint64_t v, unsigned n) {
    for (unsigned i = 0; i < n; i++) assert_int_equal(ck_bytes_char(b, (char)(v >> 8 * i)), CK_OK);
}

/* A packed value of the fields, written from data/row.h. */
static void random_value(uint64_t *x, const ck_field *f, uint32_t n, ck_bytes *out) {
    bool nulls[FIELDS_MAX + 1] = {false}, any = false;
    for (uint32_t i = 0; i < n; i++) any |= f[i].nullable, nulls[i] = f[i].nullable && below(x, 3) == 0;
    for (uint32_t i = 0; any && i < n; i += 8) {
        unsigned bits = 0;
        for (uint32_t k = i; k < n && k < i + 8; k++) bits |= (unsigned)nulls[k] << (k - i);
        put(out, bits, 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        ck_kind k = f[i].type->kind;
        uint64_t v = nulls[i] ? 0 : draw(x);
        if (k == CK_TYPE_BOOLEAN)
            put(out, v & 1, 1);
        else if (k == CK_TYPE_DECIMAL)
            put(out, v, 8), put(out, 0, 8);
        else if (k != CK_TYPE_VARCHAR && k != CK_TYPE_BYTES)
            put(out, v, 8);
    }
    for (uint32_t i = 0; i < n; i++) {
        if ((f[i].type->kind != CK_TYPE_VARCHAR && f[i].type->kind != CK_TYPE_BYTES) || nulls[i]) continue;
        uint32_t bytes = below(x, 9);
        put(out, bytes, 4);
        for (uint32_t b = 0; b < bytes; b++) put(out, 'a' + below(x, 26), 1);
    }
}

static void print_fields(fixture *f, const ck_field *fields, uint32_t n) {
    printf("[");
    for (uint32_t i = 0; i < n; i++)
        printf("%s[\"%s\",\"%s\",%s]", i ? "," : "", fields[i].name, ck_type_name(&f->arena, fields[i].type),
               fields[i].nullable ? "true" : "false");
    printf("]");
}

static void print_hex(const char *name, const ck_bytes *b) {
    printf(",\"%s\":\"", name);
    for (size_t i = 0; i < b->n; i++) printf("%02x", (uint8_t)b->p[i]);
    printf("\"");
}

static void print_pair(fixture *f, uint64_t *x) {
    ck_field from[FIELDS_MAX + 1], to[FIELDS_MAX + 1];
    uint32_t n = schema(x, from), m = changed(x, from, n, to);
    ck_additive c;
    const char *why;
    ck_bytes before, after;
    ck_bytes_init(&before, f->mem, SIZE_MAX);
    ck_bytes_init(&after, f->mem, SIZE_MAX);
    random_value(x, from, n, &before);
    assert_int_equal(ck_additive_of(&f->arena, (ck_value_fields){from, n}, (ck_value_fields){to, m}, &c, &why), CK_OK);
    printf("{\"from\":");
    print_fields(f, from, n);
    printf(",\"to\":");
    print_fields(f, to, m);
    printf(",\"why\":\"%s\"", why);
    print_hex("before", &before);
    if (!*why) {
        assert_int_equal(ck_additive_value(&c, ck_bytes_as_view(&before), &after), CK_OK);
        print_hex("after", &after);
    }
    printf("}\n");
    ck_bytes_destroy(&before);
    ck_bytes_destroy(&after);
}

static int print_pairs(uint64_t seed, uint64_t count) {
    void *state;
    setup(&state);
    fixture *f = state;
    for (uint64_t i = 0; i < count; i++) {
        ck_arena_mark m = ck_arena_mark_now(&f->arena);
        print_pair(f, &seed);
        ck_arena_reset_to(&f->arena, m);
    }
    return teardown(&state);
}

/* ---- what the model does not see ---- */

/* Whatever the bytes are: taken whole, or damage and nothing appended. */
static void bytes_that_are_no_value(void **state) {
    fixture *f = *state;
    uint64_t x = 7;
    uint32_t refused = 0;
    for (int round = 0; round < 3000; round++) {
        ck_field from[FIELDS_MAX + 1], to[FIELDS_MAX + 1];
        uint32_t n = schema(&x, from);
        memcpy(to, from, sizeof to);
        to[n] = (ck_field){"new", &types[3], true};
        ck_additive c;
        const char *why;
        ck_bytes v, out;
        ck_bytes_init(&v, f->mem, SIZE_MAX);
        ck_bytes_init(&out, f->mem, SIZE_MAX);
        random_value(&x, from, n, &v);
        if (v.n) v.p[below(&x, (uint32_t)v.n)] = (char)draw(&x);
        if (v.n && below(&x, 2)) v.n = below(&x, (uint32_t)v.n);
        assert_int_equal(ck_additive_of(&f->arena, (ck_value_fields){from, n}, (ck_value_fields){to, n + 1}, &c, &why),
                         CK_OK);
        assert_string_equal(why, "");
        assert_int_equal(ck_bytes_str(&out, "kept"), CK_OK);
        ck_status s = ck_additive_value(&c, ck_bytes_as_view(&v), &out);
        assert_true(s == CK_OK || s == CK_CORRUPT);
        if (s != CK_OK) assert_true(ck_view_is(ck_bytes_as_view(&out), "kept"));
        refused += s != CK_OK;
        ck_bytes_destroy(&v);
        ck_bytes_destroy(&out);
    }
    assert_true(refused > 500 && refused < 2900);
}

static void fields_beyond_the_stack(void **state) {
    fixture *f = *state;
    enum { MANY = 200 };
    ck_field *from = ck_arena_array(&f->arena, MANY + 1, sizeof *from);
    ck_bytes v, out;
    ck_bytes_init(&v, f->mem, SIZE_MAX);
    ck_bytes_init(&out, f->mem, SIZE_MAX);
    for (uint32_t i = 0; i <= MANY; i++) {
        from[i] = (ck_field){ck_arena_printf(&f->arena, "f%u", i), &types[3], i == MANY};
        if (i < MANY) put(&v, i, 8);
    }
    ck_additive c;
    const char *why;
    assert_int_equal(
        ck_additive_of(&f->arena, (ck_value_fields){from, MANY}, (ck_value_fields){from, MANY + 1}, &c, &why), CK_OK);
    for (uint64_t nth = 1;; nth++) {
        ck_tracked_heap_fail_nth(f->t.heap, nth);
        ck_status s = ck_additive_value(&c, ck_bytes_as_view(&v), &out);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            break;
        }
        assert_true(s == CK_NOMEM && out.n == 0);
    }
    assert_int_equal(out.n, (MANY + 1 + 7) / 8 + 8 * (MANY + 1));
    assert_memory_equal(out.p + (MANY + 1 + 7) / 8, v.p, v.n);
    ck_bytes_destroy(&v);
    ck_bytes_destroy(&out);
}

int main(int argc, char **argv) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(bytes_that_are_no_value), T(fields_beyond_the_stack)};
    if (argc == 4 && strcmp(argv[1], "--pairs") == 0)
        return print_pairs(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
