/* What is no SQL, word for word; limits; secrets in messages; allocation failures. */
#include "sql/parse/tree_text_test_support.h"

static void messages(void **state) {
    (void)state;
    static const pair cases[] = {
        {"SELCT 1", "t.sql:1:1: unexpected \"SELCT\"; did you mean \"SELECT\"?\n  SELCT 1\n  ^"},
        {"SELECT a\nFROM t WERE x = 1", "t.sql:2:13: unexpected \"x\" after \"WERE\"; did you mean \"WHERE\" there?\n  "
                                        "FROM t WERE x = 1\n              ^"},
        {"SELECT a, FROM t",
         "t.sql:1:11: unexpected \"FROM\" after a comma; remove the comma\n  SELECT a, FROM t\n            ^"},
        {"SELECT a FROM order",
         "t.sql:1:15: unexpected \"order\"; it is a reserved word: as a name it is written \"order\" in double quotes\n"
         "  SELECT a FROM order\n                ^"},
        {"SELECT (1", "t.sql:1:10: unexpected end of the text; expected ')' or ','\n  SELECT (1\n           ^"},
        {"SELECT 'abc", "t.sql:1:8: this string has no closing '\n  SELECT 'abc\n         ^"},
        {"SELECT \"abc", "t.sql:1:8: this quoted name has no closing \"\n  SELECT \"abc\n         ^"},
        {"SELECT 1 /* x\n /* y */", "t.sql:1:10: this comment has no closing */\n  SELECT 1 /* x\n           ^"},
        {"UPDATE t SET a = 1", "t.sql:1:1: UPDATE is not a statement here: a table's rows change through what streams "
                               "into it (INSERT INTO ... "
                               "SELECT)\n  UPDATE t SET a = 1\n  ^"},
        {"SELECT a == b", "t.sql:1:10: SQL compares with =, not ==\n  SELECT a == b\n           ^"},
        {"SELECT a && b", "t.sql:1:10: SQL says AND, not &&\n  SELECT a && b\n           ^"},
        {"SELECT \xe2\x80\x98x\xe2\x80\x99",
         "t.sql:1:8: a string is written between straight quotes: '\n  SELECT \xe2\x80\x98x\xe2\x80\x99\n         ^"},
        {"SELECT 12ab",
         "t.sql:1:8: \"12ab\" is neither a number nor a name; a name that begins with a digit is written in "
         "double quotes\n  SELECT 12ab\n         ^"},
        {"SELECT a FROM t GROUP a",
         "t.sql:1:23: unexpected \"a\"; expected BY\n  SELECT a FROM t GROUP a\n                        ^"},
        {"SELECT \"\"", "t.sql:1:8: a quoted name is empty\n  SELECT \"\"\n         ^"},
        {"SELECT x'1'", "t.sql:1:8: X'...' takes pairs of hexadecimal digits\n  SELECT x'1'\n         ^"},
        {"SELECT \t\xc3\xa9 + @", "t.sql:1:13: unexpected character \"@\"\n  SELECT \t\xc3\xa9 + @\n         \t    ^"},
        {"SELECT * FROM t MATCH_RECOGNIZE (x)", "t.sql:1:17: MATCH_RECOGNIZE is not supported yet\n  SELECT * FROM t "
                                                "MATCH_RECOGNIZE (x)\n                  ^"},
        {"WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t", "t.sql:1:6: WITH RECURSIVE is not supported: a stream has "
                                                           "no fixed point to reach\n  WITH RECURSIVE t AS (SELECT "
                                                           "1) SELECT * FROM t\n       ^"},
        {"SELECT a FROM t /*+ x", "t.sql:1:22: unexpected end of the text; expected a name, */ or ','\n  SELECT a FROM "
                                  "t /*+ x\n                       ^"},
        {"SELECT a BETWEEN 1", "t.sql:1:19: unexpected end of the text\n  SELECT a BETWEEN 1\n                    ^"},
    };
    check_all(cases, CK_ARRAY_COUNT(cases), "");
}

static void bytes_that_are_no_text(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    assert_int_equal(parse(&f, (ck_view){"SELECT\n a\0b", 11}, &script), CK_INVALID);
    assert_string_equal(f.err.msg, "t.sql:2:3: a NUL byte is not SQL text\n   a.b\n    ^");
    assert_int_equal(parse(&f, CK_VIEW("SELECT '\xff'"), &script), CK_INVALID);
    assert_non_null(strstr(f.err.msg, "t.sql:1:9: byte 0xff is not valid UTF-8 here"));
    assert_int_equal(parse(&f, CK_VIEW("SELECT '\xed\xa0\x80'"), &script), CK_INVALID);
    close_fixture(&f);
}

static char *repeat(fixture *f, const char *head, const char *piece, size_t times, const char *tail) {
    size_t h = strlen(head), p = strlen(piece), t = strlen(tail);
    char *s = (char *)ck_arena_alloc(&f->arena, h + p * times + t + 1), *at = s;
    assert_non_null(s);
    memcpy(at, head, h), at += h;
    for (size_t i = 0; i < times; i++) memcpy(at, piece, p), at += p;
    memcpy(at, tail, t + 1);
    return s;
}

/* However it is nested: one sentence, no stack overflow; and wide is not deep. */
static void nesting(void **state) {
    (void)state;
    static const struct {
        const char *head, *piece, *tail;
    } deep[] = {
        {"SELECT ", "(", "1"},
        {"SELECT ", "NOT ", "a"},
        {"SELECT ", "- ", "a"},
        {"SELECT a", " + 1", ""},
        {"SELECT a", ".b", ""},
        {"SELECT a", "::int", ""},
        {"SELECT a", "[1]", ""},
        {"SELECT ", "f(1, ", "1"},
        {"SELECT ", "CASE WHEN a THEN ", "1"},
        {"SELECT ", "CASE ", "1"},
        {"SELECT ", "EXISTS (SELECT ", "1"},
        {"SELECT a FROM ", "(SELECT a FROM ", "t"},
        {"SELECT a::", "array<", "int"},
        {"SELECT a::int", "[]", ""},
        {"SELECT a FROM t", " JOIN t ON a", ""},
        {"WITH a AS ", "(WITH a AS ", "(SELECT 1)"},
        {"SELECT a IS NULL", " IS NULL", ""},
        {"SELECT ", "ARRAY[", "1"},
        {"SELECT 1", " UNION SELECT 1 EXCEPT SELECT 1", ""},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(deep); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        const char *sql = repeat(&f, deep[i].head, deep[i].piece, 100000, deep[i].tail);
        ck_status s = parse(&f, ck_view_of(sql), &script);
        if (s != CK_INVALID || !strstr(f.err.msg, "nested deeper than 500 levels"))
            print_message("%s: %s\n", deep[i].piece, f.err.msg);
        assert_int_equal(s, CK_INVALID);
        assert_non_null(strstr(f.err.msg, "nested deeper than 500 levels"));
        close_fixture(&f);
    }
}

static void width(void **state) {
    (void)state;
    static const struct {
        const char *head, *piece, *tail;
    } wide[] = {
        {"SELECT a", ", a", ""},
        {"SELECT a IN (1", ", 2", ")"},
        {"SELECT a = 1", " OR a = 1", ""},
        {"SELECT a = 1", " AND a = 1", ""},
        {"SELECT 1", " UNION ALL SELECT 1", ""},
        {"VALUES (1)", ", (1)", ""},
        {"SELECT 1", ";", ""},
        {"SELECT 1 -- ", "x", ""},
        {"SELECT '", "''", "'"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(wide); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        const char *sql = repeat(&f, wide[i].head, wide[i].piece, 20000, wide[i].tail);
        assert_int_equal(parse(&f, ck_view_of(sql), &script), CK_OK);
        close_fixture(&f);
    }
}

static void ceilings(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    const char *name = repeat(&f, "SELECT ", "x", CK_NAME_BYTES_MAX, "");
    assert_int_equal(parse(&f, ck_view_of(name), &script), CK_OK);
    name = repeat(&f, "SELECT ", "x", CK_NAME_BYTES_MAX + 1, "");
    assert_int_equal(parse(&f, ck_view_of(name), &script), CK_INVALID);
    assert_non_null(strstr(f.err.msg, "a name of 256 bytes is too long; at most 255 are allowed"));
    const char *text = repeat(&f, "SELECT 1", " ", CK_SQL_BYTES_MAX - 8, "");
    assert_int_equal(parse(&f, ck_view_of(text), &script), CK_OK);
    text = repeat(&f, "SELECT 1", " ", CK_SQL_BYTES_MAX - 7, "");
    assert_int_equal(parse(&f, ck_view_of(text), &script), CK_INVALID);
    assert_non_null(strstr(f.err.msg, "16777217 bytes of SQL are too many"));
    close_fixture(&f);
}

/* A caret under a far column of a long line stands under its character. */
static void long_lines(void **state) {
    (void)state;
    fixture f;
    ck_ast_script script;
    open_fixture(&f, ck_heap_system());
    const char *sql =
        repeat(&f, "SELECT ", "\xc3\xa4 + ", 400,
               "@ + yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
               "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
    assert_int_equal(parse(&f, ck_view_of(sql), &script), CK_INVALID);
    const char *line = strchr(f.err.msg, '\n') + 1, *caret = strchr(line, '\n') + 1;
    size_t columns = 0;
    for (const char *p = line; *p != '@'; p++) columns += ((unsigned char)*p & 0xC0) != 0x80;
    assert_int_equal(strchr(caret, '^') - caret, columns);
    assert_true(strlen(f.err.msg) < sizeof f.err.msg - 1);
    assert_int_equal(f.err.place.column, 1608);
    close_fixture(&f);
}

/* Values of options that keep secrets are not in messages, wherever the line is cut. */
static void secrets(void **state) {
    (void)state;
    static const char *const texts[] = {
        "CREATE TABLE t (a INT) WITH (password='geheim', x='y') @",
        "CREATE TABLE t (a INT) WITH ('properties.sasl.Password' = 'ge''heim' @",
        "CREATE TABLE t (a INT) WITH (\"client.secret\" =\t'\xc3\xa4 geheim' @",
        "CREATE TABLE t (a INT) WITH (x='y', password='a geheim that is long, long enough for the window of the "
        "message to begin in "
        "the middle of it, geheim' @",
        "-- don't\nCREATE TABLE t (a INT) WITH (/* isn't */ password='geheim' @",
        "CREATE TABLE t (a INT) WITH (password='geheim @", /* a literal without an end */
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(texts); i++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        assert_int_equal(parse(&f, ck_view_of(texts[i]), &script), CK_INVALID);
        if (strstr(f.err.msg, "heim")) fail_msg("%s", f.err.msg);
        const char *line = strchr(f.err.msg, '\n') + 1;
        assert_non_null(strchr(line, '*'));
        close_fixture(&f);
    }
}

/* Every allocation fails once: CK_NOMEM, and nothing is left. */
static void allocation_sweep(void **state) {
    (void)state;
    ck_tracked_heap *heap;
    assert_int_equal(ck_tracked_heap_new(&heap), CK_OK);
    const char *sql =
        "CREATE TABLE t (a BIGINT, b VARCHAR) WITH ('x' = 'y'); INSERT INTO t SELECT a + 1, 'x''y' FROM (SELECT * "
        "FROM u JOIN v ON u.x = v.y) WHERE a IN (1, 2) GROUP BY a ORDER BY sum(b) OVER (PARTITION BY c)";
    for (uint64_t n = 1;; n++) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_tracked_heap_base(heap));
        ck_tracked_heap_fail_nth(heap, n);
        ck_status s = parse(&f, ck_view_of(sql), &script);
        bool fired = ck_tracked_heap_fired(heap);
        ck_tracked_heap_fail_nth(heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        close_fixture(&f);
        assert_int_equal(ck_tracked_heap_live_blocks(heap), 0);
        if (!fired) break;
    }
    ck_tracked_heap_free(heap);
}

/* The same with a ceiling that cuts the arena anywhere. */
static void arena_ceilings(void **state) {
    (void)state;
    const char *sql = "SELECT a, b + 1 FROM t WHERE a IN (1, 2, 3)";
    for (size_t limit = 0;; limit += 200) {
        fixture f;
        ck_ast_script script;
        open_fixture(&f, ck_heap_system());
        f.arena.bytes_max = limit;
        ck_source_text source = {.name = "t.sql", .text = ck_view_of(sql)};
        ck_status s = ck_parse_script(&source, &f.arena, &script, &f.err);
        assert_true(s == CK_OK || s == CK_NOMEM);
        close_fixture(&f);
        if (s == CK_OK) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),       cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(nesting),        cmocka_unit_test(width),
        cmocka_unit_test(ceilings),       cmocka_unit_test(long_lines),
        cmocka_unit_test(secrets),        cmocka_unit_test(allocation_sweep),
        cmocka_unit_test(arena_ceilings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
