/* Every function over columns gives, row by row, what it gives for constants: random values with NULLs, with and
 * without a selection, batches of awkward sizes, both instruction sets. Rows that fail as constants fail in a column,
 * and do no harm when they are not live. */
#include "expr/sample_int.h"

#include "base/hash.h"
#include "os/fs.h"

static const struct {
    const char *name, *type;
    const char *values[16]; /* as text; NULL ends the list */
} columns[] = {
    {"l1",
     "BIGINT",
     {"0", "1", "-1", "2", "7", "-3", "9223372036854775807", "-9223372036854775808", "123456789", "60"}},
    {"l2", "BIGINT", {"0", "1", "-1", "3", "10", "-7", "9223372036854775807", "1700000000000", "2", "5"}},
    {"i1", "INTEGER", {"0", "1", "-1", "5", "2147483647", "-2147483648", "12", "2"}},
    {"t1", "TINYINT", {"0", "1", "-1", "127", "-128", "7"}},
    {"d1", "DOUBLE", {"0", "-0.0", "1.5", "-2.25", "NaN", "Infinity", "-Infinity", "1e300", "2.675", "3", "0.1"}},
    {"d2", "DOUBLE", {"0", "2", "-3.5", "NaN", "1e-300", "7", "0.5", "-1"}},
    {"f1", "REAL", {"0", "1.5", "-2.25", "3.1", "NaN", "100"}},
    {"n1", "DECIMAL(10,2)", {"0", "1.00", "-2.55", "99999999.99", "-99999999.99", "0.01", "3.14"}},
    {"n2", "DECIMAL(38,10)", {"0", "1", "-2.0000000001", "9999999999999999999999999999.9999999999", "0.3333333333"}},
    {"n3", "DECIMAL(20,0)", {"0", "3", "-7", "99999999999999999999", "1000000"}},
    {"s1",
     "VARCHAR",
     {"", "a", "abc", "größe", "a text that is longer than twelve", "12", " 7 ", "-3.5", "true", "2024-02-29",
      "https://www.a.org/x&channel_id=foo&y/z", "{\"a\":[1,2]}", "ABC"}},
    {"s2", "VARCHAR", {"", "a", "b", "é", "a text that is longer than", "%", "a%", "_b_", "abc", "x", "&"}},
    {"b1", "BOOLEAN", {"true", "false"}},
    {"b2", "BOOLEAN", {"true", "false"}},
    {"y1", "BYTES", {"", "abc", "some bytes, more than twelve"}},
    {"D1", "DATE", {"2024-02-29", "1970-01-01", "0001-01-01", "9999-12-31", "1969-12-31", "2023-12-31"}},
    {"ts1",
     "TIMESTAMP(3)",
     {"2024-02-29 13:45:06.789", "1969-12-31 23:59:59.999", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999",
      "2023-10-29 02:30:00"}},
    {"ts2", "TIMESTAMP(3)", {"2024-03-31 00:00:00", "1970-01-01 00:00:00", "2024-02-29 13:45:06.788"}},
    {"z1",
     "TIMESTAMP_LTZ(3)",
     {"2024-02-29 13:45:06", "2024-07-01 00:00:00", "1970-01-01 00:00:00", "2024-03-31 01:30:00"}},
    {"T1", "TIME(3)", {"00:00:00", "23:59:59.999", "12:30:00"}},
    {"m1", "INTERVAL YEAR TO MONTH", {"0-00", "1-02", "-0-01", "100-00"}},
    {"u1", "INTERVAL DAY TO SECOND", {"0 00:00:00", "1 02:03:04.5", "-0 00:00:00.000001", "400 00:00:00"}},
};
enum { COLUMNS = CK_ARRAY_COUNT(columns) };

static const char *const patterns[] = {
    "(+ l1 l2)",
    "(- l1 l2)",
    "(* l1 l2)",
    "(/ l1 l2)",
    "(% l1 l2)",
    "(% l1 123)",
    "(/ l1 -7)",
    "(/ l1 2)",
    "(% 7 l1)",
    "(- 1 l1)",
    "(+ i1 i1)",
    "(* i1 i1)",
    "(- i1 l1)",
    "(+ t1 t1)",
    "(/ t1 t1)",
    "(* t1 2)",
    "(neg l1)",
    "(neg t1)",
    "(+ d1 d2)",
    "(- d1 d2)",
    "(* d1 d2)",
    "(/ d1 d2)",
    "(% d1 d2)",
    "(- 1e0 d1)",
    "(+ f1 f1)",
    "(* f1 d1)",
    "(neg d1)",
    "(+ n1 n1)",
    "(- n1 l1)",
    "(* n1 n1)",
    "(* n1 l1)",
    "(* 0.908 l1)",
    "(/ n1 n1)",
    "(/ n1 i1)",
    "(% n1 n1)",
    "(+ n2 n2)",
    "(* n2 n2)",
    "(* n2 n3)",
    "(/ n2 n1)",
    "(- n3 n2)",
    "(% n2 n1)",
    "(neg n2)",
    "(+ l1 n1)",
    "(- 1.5 n1)",
    "(= l1 l2)",
    "(<> l1 2)",
    "(< l1 l2)",
    "(<= 3 l1)",
    "(> i1 l1)",
    "(>= l1 0)",
    "(= d1 d2)",
    "(< d1 d2)",
    "(>= d1 0.5e0)",
    "(< d1 l1)",
    "(= n1 n2)",
    "(< n2 n3)",
    "(> (* 0.908 l1) 1000000)",
    "(<= n1 3)",
    "(= s1 s2)",
    "(<> s1 'abc')",
    "(< s1 s2)",
    "(>= s1 'a text that is longer than twelve')",
    "(= s1 'a text that is longer than twelve')",
    "(= b1 b2)",
    "(< b1 b2)",
    "(= y1 y1)",
    "(> D1 '2000-01-01')",
    "(< ts1 ts2)",
    "(< D1 ts1)",
    "(= T1 '12:30:00')",
    "(> u1 u1)",
    "(= m1 m1)",
    "(and b1 b2)",
    "(or b1 b2)",
    "(not b1)",
    "(and (> l1 0) (> l2 0) (like s1 '%a%'))",
    "(or (= s1 'a') (= s2 'a') b1)",
    "(is_null l1)",
    "(is_not_null s1)",
    "(is_true b1)",
    "(is_not_true b1)",
    "(is_false b1)",
    "(is_not_false (= l1 l2))",
    "(is_distinct_from l1 l2)",
    "(is_not_distinct_from s1 s2)",
    "(is_distinct_from n1 n3)",
    "(between l1 0 l2)",
    "(between s1 'a' 'b')",
    "(in l1 0 1 7 null)",
    "(in l1 1 2 3 4 5 6 7 8 9)",
    "(in s1 'a' 'abc' 'größe')",
    "(in d1 0 1.5e0)",
    "(in s1 s2 'a')",
    "(in n1 1 3.14)",
    "(in D1 '2024-02-29' '1970-01-01')",
    "(case b1 l1 b2 l2 0)",
    "(case (> l1 0) s1 (> l2 0) s2)",
    "(case b1 n1 n2)",
    "(case b1 'a constant longer than' s1)",
    "(case b1 (array l1 l2) b2 (array l2))",
    "(coalesce l1 l2 5)",
    "(coalesce s1 s2)",
    "(coalesce b1 b2)",
    "(if b1 d1 d2)",
    "(nullif l1 l2)",
    "(nullif s1 '')",
    "(greatest l1 l2 3)",
    "(least s1 s2)",
    "(greatest d1 d2)",
    "(greatest n1 n2)",
    "(case (<> l2 0) (/ l1 l2))",
    "(and (<> l2 0) (> (/ l1 l2) 1))",
    "(or (= l2 0) (> (% l1 l2) 0))",
    "(if (> d1 0) (ln d1) 0)",
    "(cast TINYINT l1)",
    "(cast INTEGER d1)",
    "(cast BIGINT d1)",
    "(cast DOUBLE l1)",
    "(cast REAL d1)",
    "(cast DECIMAL(10,2) l1)",
    "(cast DECIMAL(20,5) d1)",
    "(cast BIGINT n2)",
    "(cast DOUBLE n2)",
    "(cast DECIMAL(12,1) n1)",
    "(cast BOOLEAN l1)",
    "(cast VARCHAR l1)",
    "(cast VARCHAR d1)",
    "(cast VARCHAR n2)",
    "(cast VARCHAR b1)",
    "(cast VARCHAR ts1)",
    "(cast VARCHAR z1)",
    "(cast VARCHAR u1)",
    "(cast VARCHAR(2) s1)",
    "(cast BIGINT s1)",
    "(try_cast BIGINT s1)",
    "(try_cast DOUBLE s1)",
    "(try_cast BOOLEAN s1)",
    "(try_cast DATE s1)",
    "(try_cast DECIMAL(5,1) s1)",
    "(cast BYTES s1)",
    "(cast VARCHAR y1)",
    "(cast DATE ts1)",
    "(cast TIMESTAMP(3) D1)",
    "(cast TIMESTAMP_LTZ(3) ts1)",
    "(cast TIMESTAMP(3) z1)",
    "(cast TIME(0) ts1)",
    "(cast INTEGER b1)",
    "(cast DECIMAL(3,1) b1)",
    "(cast ARRAY<VARCHAR> (array l1 l2))",
    "(char_length s1)",
    "(octet_length s1)",
    "(lower s1)",
    "(upper s1)",
    "(initcap s1)",
    "(substring s1 2)",
    "(substring s1 i1 2)",
    "(left s1 2)",
    "(right s1 -1)",
    "(trim s1)",
    "(trim s1 s2)",
    "(position s2 s1)",
    "(starts_with s1 s2)",
    "(ends_with s1 s2)",
    "(contains s1 s2)",
    "(|| s1 s2)",
    "(|| s1 l1)",
    "(concat s1 l1 s2)",
    "(concat_ws s2 s1 'x' s2)",
    "(replace s1 s2 'zz')",
    "(replace s1 'a' '')",
    "(overlay s1 s2 2)",
    "(lpad s1 8 s2)",
    "(rpad s1 3)",
    "(repeat s1 3)",
    "(repeat s1 t1)",
    "(reverse s1)",
    "(split_index s1 '/' 2)",
    "(split_part s1 '/' -1)",
    "(split_index s1 s2 t1)",
    "(ascii s1)",
    "(chr i1)",
    "(translate s1 'abc' 'x')",
    "(to_base64 s1)",
    "(from_base64 s1)",
    "(hex l1)",
    "(hex s1)",
    "(unhex s1)",
    "(crc32 s1)",
    "(like s1 'a%')",
    "(like s1 s2)",
    "(like s1 '%t_x%')",
    "(ilike s1 'A%')",
    "(like s1 s2 'x')",
    "(not (like s1 '%a%'))",
    "(regexp_extract s1 '(&|^)channel_id=([^&]*)' 2)",
    "(regexp_replace s1 '[a-c]' '<\\&>' 'g')",
    "(regexp_like s1 '^a')",
    "(regexp_like s1 s2)",
    "(regexp_count s1 'a')",
    "(regexp_instr s1 '[0-9]')",
    "(similar_to s1 '%(a|b)%')",
    "(~* s1 'ABC')",
    "(abs l1)",
    "(abs n1)",
    "(abs d1)",
    "(sign n1)",
    "(floor n1)",
    "(ceil d1)",
    "(round n1 1)",
    "(round d1 1)",
    "(round l1 -1)",
    "(round n1 t1)",
    "(truncate n2 2)",
    "(sqrt d1)",
    "(power d1 d2)",
    "(ln d1)",
    "(log d1 d2)",
    "(exp d2)",
    "(atan2 d1 d2)",
    "(bitand l1 l2)",
    "(shiftleft l1 t1)",
    "(gcd l1 l2)",
    "(extract 'year' D1)",
    "(extract 'week' ts1)",
    "(extract 'hour' z1)",
    "(extract 'epoch' ts1)",
    "(extract 'day' u1)",
    "(hour ts1)",
    "(minute z1)",
    "(dayofweek D1)",
    "(year z1)",
    "(date_trunc 'month' ts1)",
    "(date_trunc 'day' z1)",
    "(floor_to D1 'year')",
    "(ceil_to ts1 'hour')",
    "(timestampadd 'month' t1 D1)",
    "(timestampadd 'hour' i1 z1)",
    "(timestampdiff 'day' ts1 ts2)",
    "(timestampdiff 'month' D1 ts1)",
    "(last_day ts1)",
    "(+ D1 i1)",
    "(- D1 D1)",
    "(+ D1 m1)",
    "(+ ts1 u1)",
    "(- ts1 m1)",
    "(+ z1 m1)",
    "(- ts1 ts2)",
    "(- ts1 D1)",
    "(+ T1 u1)",
    "(+ D1 T1)",
    "(* u1 2)",
    "(/ u1 l1)",
    "(* m1 d2)",
    "(+ u1 u1)",
    "(neg u1)",
    "(date_format ts1 'yyyy-MM-dd')",
    "(date_format z1 'HH:mm')",
    "(date_format D1 s2)",
    "(to_timestamp s1)",
    "(to_date s1 'yyyy-MM-dd')",
    "(to_timestamp_ltz l1 3)",
    "(to_timestamp_ltz l2 0)",
    "(to_timestamp d1)",
    "(from_unixtime i1)",
    "(unix_timestamp z1)",
    "(make_date i1 t1 t1)",
    "(at_time_zone ts1 'Europe/Berlin')",
    "(at_time_zone z1 'Asia/Kolkata')",
    "(json_value s1 '$.a[1]')",
    "(json_query s1 '$.a')",
    "(json_exists s1 '$.a')",
    "(is_json s1)",
    "(json_object 'k' l1 'v' s1)",
    "(json_array l1 s1 d2)",
    "(json_string s1)",
    "(array l1 l2)",
    "(item (array l1 l2) t1)",
    "(cardinality (array l1 l2))",
    "(array_contains (array l1 l2) 1)",
    "(map 'a' l1 'b' l2)",
    "(item (map 'a' l1 'b' l2) s1)",
    "(row l1 s1)",
    "(field (row l1 s1) 'EXPR$1')",
    "(split s1 s2)",
    "(array_join (split s1 s2) '-')",
    "(array_concat (array l1) (array l2 l1))",
    "(array_append (array l1) l2)",
    "(array_remove (array l1 l2) 0)",
    "(array_distinct (array l1 l2 l1))",
    "(array_slice (array l1 l2) 1 t1)",
    "(array_max (array l1 l2))",
    "(locate s2 s1)",
    "(url_encode s1)",
    "(url_decode s1)",
    "(map_values (map 'a' s1))",
    "(= (array l1 l2) (array l2 l1))",
    "(+ (case b1 l1 (null BIGINT)) 1)",
    "(case b1 (case b2 s1 s2) (upper s1))",
    "(coalesce (nullif s1 'a') (lower s2))",
};

static uint64_t draw(uint64_t *seed, uint64_t bound) {
    *seed += 0x9E3779B97F4A7C15ULL;
    return ck_mix64(*seed) % bound;
}

static ck_batch *random_batch(sample *s, uint64_t *seed, uint32_t rows) {
    const char **cells = ck_arena_array(&s->arena, (size_t)rows * COLUMNS + 1, sizeof *cells);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < COLUMNS; c++) {
            size_t n = 0;
            while (n < 16 && columns[c].values[n]) n++;
            cells[r * COLUMNS + c] = draw(seed, 5) == 0 ? NULL : columns[c].values[draw(seed, n)];
        }
    return sample_batch(s, rows, cells);
}

typedef ck_expr **literal_row;

static literal_row literals_of(sample *s, const ck_batch *b, uint32_t row) {
    literal_row r = ck_arena_array(&s->arena, COLUMNS, sizeof *r);
    for (uint32_t c = 0; c < COLUMNS; c++)
        r[c] = ck_expr_literal(&s->arena, s->fields[c].type, ck_column_datum(b->columns[c], row));
    return r;
}

/* The value of e for one row as text, or NULL when it fails. */
static const char *expected(sample *s, const ck_expr *e, const ck_batch *b, uint32_t row, const char *zone) {
    ck_expr *constant = ck_expr_substitute(&s->arena, e, literals_of(s, b, row), COLUMNS);
    ck_batch *one = ck_batch_new(s->mem, 0, 1, false, false);
    ck_column *c = NULL;
    ck_status st = sample_eval_on(s, constant, one, false, zone, &c);
    ck_batch_unref(&one);
    if (st == CK_DATA) return NULL;
    if (st != CK_OK) fail_msg("a constant: %s", s->err.msg);
    const char *v = sample_value(s, e->type, c, 0);
    ck_column_unref(&c);
    return v;
}

static void compare(sample *s, const char *text, const ck_expr *e, const ck_batch *b, uint32_t step,
                    const char *const *want, const char *zone) {
    ck_column *c = NULL;
    if (sample_eval_on(s, (ck_expr *)(uintptr_t)e, b, false, zone, &c) != CK_OK) fail_msg("%s: %s", text, s->err.msg);
    if (c->length < b->row_count || c->err)
        fail_msg("%s: %u rows of %u, marks %d", text, c->length, b->row_count, c->err != NULL);
    for (uint32_t k = 0; k < b->sel_count; k += step) {
        uint32_t row = ck_batch_row(b, k);
        const char *got = sample_value(s, e->type, c, row);
        if (strcmp(got, want[row]) != 0)
            fail_msg("%s, row %u of %u (%u live): %s, not %s", text, row, b->row_count, b->sel_count, got, want[row]);
    }
    ck_column_unref(&c);
}

/* A BOOLEAN as a conjunct keeps the rows where it is TRUE. */
static void compare_filter(sample *s, const char *text, ck_expr *e, const ck_batch *b, const char *const *want,
                           const char *zone) {
    ck_program *p = NULL;
    ck_eval *ev = NULL;
    ck_eval_options o = {.proc = &s->proc, .mem = s->mem, .timezone = zone};
    assert_int_equal(ck_program_compile(&s->arena, &e, 1, &p, &s->err), CK_OK);
    assert_int_equal(ck_eval_new(p, &o, &ev, &s->err), CK_OK);
    uint16_t sel[CK_BATCH_ROWS_MAX];
    uint32_t n = 0, at = 0;
    if (ck_eval_filter(ev, b, sel, &n, &s->err) != CK_OK) fail_msg("filter %s: %s", text, s->err.msg);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (strcmp(want[row], "true") != 0) continue;
        if (at >= n || sel[at] != row) fail_msg("filter %s misses row %u of %u", text, row, b->row_count);
        at++;
    }
    assert_int_equal(at, n);
    ck_eval_free(ev);
}

/* All rows, then random ones, then few: rows that fail stay out. */
static void check_pattern(sample *s, uint64_t *seed, const char *text, const ck_batch *b, const char *zone) {
    ck_arena_mark m = ck_arena_mark_now(&s->arena);
    ck_expr *e = sample_expr(s, text);
    const char **want = ck_arena_array(&s->arena, b->row_count + 1, sizeof *want);
    uint16_t *sel = ck_arena_array(&s->arena, b->row_count + 1, sizeof *sel);
    bool some_fail = false, big = b->row_count > 100, risky = big && ck_expr_is_fallible(e);
    for (uint32_t r = 0; r < b->row_count; r++) {
        want[r] = big && r % 64 ? "" : expected(s, e, b, r, zone);
        some_fail |= !want[r];
    }
    for (uint32_t one_in = 1; one_in <= 16; one_in *= 4) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < b->row_count; r++)
            if (want[r] && (!big || r % 64 == 0 || (one_in == 1 && !risky)) && draw(seed, one_in) == 0)
                sel[n++] = (uint16_t)r;
        bool all = n == b->row_count;
        ck_batch *live = all ? ck_batch_ref((ck_batch *)(uintptr_t)b) : ck_batch_select(b, sel, n);
        compare(s, text, e, live, big && all ? 64 : 1, want, zone);
        if (e->type->kind == CK_TYPE_BOOLEAN && !big) compare_filter(s, text, e, live, want, zone);
        ck_batch_unref(&live);
    }
    if (some_fail && !big) {
        ck_column *c = NULL;
        assert_int_equal(sample_eval_on(s, e, b, false, zone, &c), CK_DATA);
    }
    ck_arena_reset_to(&s->arena, m);
}

static void check_all(sample *s, uint64_t seed, uint32_t rows, const char *zone) {
    ck_arena_mark m = ck_arena_mark_now(&s->arena);
    ck_batch *b = random_batch(s, &seed, rows);
    for (size_t i = 0; i < CK_ARRAY_COUNT(patterns); i++) check_pattern(s, &seed, patterns[i], b, zone);
    ck_batch_unref(&b);
    ck_arena_reset_to(&s->arena, m);
}

static void set_columns(sample *s) {
    s->proc.fs = ck_fs_system();
    for (size_t i = 0; i < COLUMNS; i++) sample_column(s, columns[i].name, columns[i].type);
}

static void rows_as_constants(void **state) {
    sample *s = *state;
    set_columns(s);
    static const uint32_t sizes[] = {0, 1, 63, 64, 65};
    for (size_t i = 0; i < 4 * CK_ARRAY_COUNT(sizes); i++)
        check_all(s, 100 + i, sizes[i % CK_ARRAY_COUNT(sizes)], i % 2 ? "America/New_York" : "UTC");
}

static void rows_as_constants_baseline(void **state) {
    sample *s = *state;
    set_columns(s);
    s->proc.cpu = (ck_cpu){0};
    check_all(s, 7, 65, "UTC");
}

static void full_batches(void **state) {
    sample *s = *state;
    set_columns(s);
    check_all(s, 11, CK_BATCH_ROWS_MAX, "UTC");
}

/* One pattern from binding to results, in an arena of its own so that every allocation counts. */
static ck_status whole_way(sample *s, const char *text, const ck_batch *b) {
    ck_arena was = s->arena;
    ck_arena_init(&s->arena, s->mem, SIZE_MAX / 2);
    ck_expr *e;
    ck_column *c = NULL;
    ck_status st = sample_try(s, text, &e);
    if (st == CK_OK) st = sample_eval_on(s, e, b, false, "America/New_York", &c);
    ck_column_unref(&c);
    ck_arena_destroy(&s->arena);
    s->arena = was;
    return st;
}

static void no_memory(void **state) {
    sample *s = *state;
    set_columns(s);
    uint64_t seed = 21;
    ck_batch *b = random_batch(s, &seed, 20);
    for (size_t i = 0; i < CK_ARRAY_COUNT(patterns); i++) {
        ck_status plain = whole_way(s, patterns[i], b);
        size_t live = ck_tracked_heap_live_blocks(s->heap);
        for (uint64_t n = 1;; n++) {
            ck_tracked_heap_fail_nth(s->heap, n);
            ck_status st = whole_way(s, patterns[i], b);
            bool fired = ck_tracked_heap_fired(s->heap);
            ck_tracked_heap_fail_nth(s->heap, 0);
            if (ck_tracked_heap_live_blocks(s->heap) != live)
                fail_msg("%s leaks without block %llu", patterns[i], (unsigned long long)n);
            if (!fired) break;
            if (st != CK_NOMEM && st != plain)
                fail_msg("%s: %s without block %llu", patterns[i], ck_status_name(st), (unsigned long long)n);
        }
    }
    ck_batch_unref(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {SAMPLE_TEST(rows_as_constants), SAMPLE_TEST(rows_as_constants_baseline),
                                       SAMPLE_TEST(full_batches), SAMPLE_TEST(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
