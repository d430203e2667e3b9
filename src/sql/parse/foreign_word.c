/* Statements, clauses and constraints of other systems: where the text stops to parse because of one, its name is said
 * and what takes its place. Only for messages. */
#include "sql/parse/parser_int.h"

#include "sql/parse/grammar.h"

typedef struct row {
    const char *word, *advice;
} row;

#define CHANGES_BY_INSERT                                                                                              \
    " is not a statement here: a table's rows change through what streams into it (INSERT INTO ... SELECT)"
#define KEY_UPDATES " is not a statement here: INSERT INTO a table with a PRIMARY KEY updates the rows of equal key"

static const row statements[] = {
    {"update", "UPDATE" CHANGES_BY_INSERT},
    {"delete", "DELETE" CHANGES_BY_INSERT},
    {"merge", "MERGE" KEY_UPDATES},
    {"upsert", "UPSERT" KEY_UPDATES},
    {"replace", "REPLACE" KEY_UPDATES},
    {"truncate", "TRUNCATE is not a statement here"},
    {"commit", "there are no transactions to commit: sinks commit with each checkpoint"},
    {"rollback", "there are no transactions to roll back: sinks commit with each checkpoint"},
    {"use", "there are no catalogs or databases to choose from: tables are named alone"},
    {"load", "LOAD is not a statement here: connectors are built in, --plugin FILE.so brings functions, and CREATE "
             "FUNCTION f (a INT) RETURNS "
             "INT RETURN a + 1 makes more"},
    {"add", "ADD is not a statement here: connectors are built in, --plugin FILE.so brings functions, and CREATE "
            "FUNCTION f (a INT) RETURNS "
            "INT RETURN a + 1 makes more"},
    {"copy", "COPY is not a statement here: CREATE TABLE ... WITH (connector = 'file', path = 'file.csv') names a "
             "file, and INSERT INTO ... "
             "SELECT reads or writes it"},
    {"call", "there are no procedures to CALL"},
    {"prepare", "PREPARE is not a statement here: each statement is compiled as it comes"},
    {"grant", "there are no users here: who may read the files may read the tables"},
    {"revoke", "there are no users here: who may read the files may read the tables"},
    {"analyze", "ANALYZE is not a statement here: plans do not depend on statistics"},
    {"vacuum", "VACUUM is not a statement here: what state no longer needs is free at once"},
    {"kill", "KILL is not a statement here: Ctrl-C or SIGTERM stops the command that runs the query"},
    {"stop", "STOP is not a statement here: SIGUSR2 stops the command that runs the job with a savepoint"},
    {"table", "TABLE alone is no query; SELECT * FROM t is"},
    {"from", "a query begins with what it gives: SELECT a FROM t"},
    {"help", "clink help is on the command line; in the shell \\? lists its commands"},
};

static const row created[] = {
    {"source", "CREATE TABLE makes what is read: CREATE TABLE t (a BIGINT) WITH (connector = 'file', ...)"},
    {"sink", "CREATE TABLE makes what is written, and INSERT INTO it SELECT ... writes it"},
    {"stream",
     "CREATE TABLE makes a stream: CREATE TABLE t (a BIGINT) WITH (connector = 'file', follow = 'true', ...)"},
    {"materialized",
     "a result that is kept up to date is a table with a PRIMARY KEY that is written: INSERT INTO m SELECT ..."},
    {"database", "there are no catalogs or databases: tables are named alone, and --catalog DIR keeps them"},
    {"schema", "there are no catalogs or databases: tables are named alone, and --catalog DIR keeps them"},
    {"catalog", "there are no catalogs or databases: tables are named alone, and --catalog DIR keeps them"},
    {"connection", "where a table comes from stands in its WITH (...)"},
    {"index", "state is found by its key without an index"},
    {"external", "every table is outside: leave EXTERNAL out"},
    {"unlogged", "leave UNLOGGED out"},
    {"type", "types are written where they are used: ROW<x BIGINT, y VARCHAR>"},
    {"sequence", "nothing counts rows here; UUID() in the query makes a key"},
    {"user", "there are no users here: who may read the files may read the tables"},
    {"role", "there are no users here: who may read the files may read the tables"},
    {"procedure", "there are no procedures; CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1 makes a function"},
    {"aggregate", "aggregates cannot be made in SQL; CREATE FUNCTION makes functions of one row"},
    {"model", "there are no models here"},
};

/* What other systems check or fill in for a column. */
static const row constraints[] = {
    {"unique", "UNIQUE is not checked here; PRIMARY KEY (...) NOT ENFORCED declares a key"},
    {"default", "columns have no DEFAULT here; what INSERT leaves out is NULL, COALESCE in a view gives another value"},
    {"check", "CHECK is not known here; WHERE in the INSERT or in a view keeps rows out"},
    {"references", "foreign keys are not checked here; leave REFERENCES out"},
    {"collate", "texts are compared by their bytes here; leave COLLATE out"},
    {"auto_increment", "nothing counts rows here; UUID() in the query makes a key"},
    {"unsigned", "there are no unsigned types; a wider one holds the values, DECIMAL(20) those of 64 bits"},
    {"like", "CREATE TABLE ... LIKE is not supported; SHOW CREATE TABLE shows a statement to begin from"},
    {"struct", "there is no type STRUCT here; ROW<x BIGINT, y VARCHAR> is it"},
    {"stored", "how files are written stands in WITH: WITH (format = 'json', ...)"},
    {"location", "where files are stands in WITH: WITH (path = 'dir', ...)"},
    {"engine", "where a table comes from stands in WITH: WITH (connector = 'file', ...)"},
};

/* Words of clauses that were taken for a name: they stand at the token that does not fit or right before it. */
static const row clauses[] = {
    {"qualify",
     "QUALIFY is not supported; number the rows in a subquery and filter around it: SELECT * FROM (SELECT a, "
     "ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) AS n FROM t) WHERE n = 1"},
    {"top", "TOP is not supported; ORDER BY ... LIMIT 5 stands at the end of the query"},
    {"tablesample", "TABLESAMPLE is not supported; WHERE RANDOM() < 0.1 keeps a tenth of the rows"},
    {"sample", "SAMPLE is not supported; WHERE RANDOM() < 0.1 keeps a tenth of the rows"},
    {"rlike", "RLIKE is not an operator here; x ~ 'pattern' is, and REGEXP_LIKE(x, 'pattern')"},
    {"regexp", "REGEXP is not an operator here; x ~ 'pattern' is, and REGEXP_LIKE(x, 'pattern')"},
    {"glob", "GLOB is not an operator here; LIKE and x ~ 'pattern' are"},
    {"exclude", "* has no EXCLUDE; name the columns that are wanted"},
    {"language", "functions are SQL expressions: CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1"},
    {"tumbling", "windows are grouped by: GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"},
    {"hopping", "windows are grouped by: GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)"},
    {"analyze", "EXPLAIN runs nothing; on a terminal the command shows what a running job does"},
    {"verbose", "EXPLAIN has no options: it shows modes, keys, state and guarantees as it is"},
    {"estimated_cost", "EXPLAIN has no options: it shows modes, keys, state and guarantees as it is"},
    {"changelog_mode", "EXPLAIN has no options: it shows modes, keys, state and guarantees as it is"},
    {"json_execution_plan", "EXPLAIN has no options: it shows modes, keys, state and guarantees as it is"},
};

/* Two words, or signs, of which the second does not fit. */
static const struct {
    const char *first, *second, *advice;
} pairs[] = {
    {"emit", "changes", "results change as their input does, without EMIT CHANGES; EMIT ON CLOSE waits for the end"},
    {"lateral", "view", "LATERAL VIEW is not supported; CROSS JOIN UNNEST(x) AS u (y) gives a row for each element"},
    {"*", "*", "** is not an operator here; POWER(x, 2) is it, or x ^ 2"},
    {"/", "/", "// is not an operator here; / of integers is an integer"},
    {"-", ">",
     "-> is not an operator here; JSON_VALUE(x, '$.key') gives a value as text, JSON_QUERY an object or array"},
    {"*", "replace", "* has no REPLACE; name the columns that are wanted"},
    {"distribute", "by", "rows go to the owner of their key by themselves"},
    {"cluster", "by", "rows go to the owner of their key by themselves"},
};

/* Words in front of a parenthesis that was taken for a list of columns. */
static const row bracketed[] = {
    {"pivot",
     "PIVOT is not supported; GROUP BY with an aggregate for each column does it: SUM(a) FILTER (WHERE b = 'x') AS x"},
    {"unpivot", "UNPIVOT is not supported; UNION ALL of one SELECT a column does it"},
    {"except", "* has no EXCEPT; name the columns that are wanted"},
};

static ck_view word_of(const ck_parser *ps, const ck_token *t) {
    if (t->quoted || t->code == STRING_TEXT || t->code == 0) return (ck_view){0};
    return ck_source_slice(ps->source, t->pos);
}

static const char *find(const row *rows, size_t n, ck_view word) {
    for (size_t i = 0; i < n; i++)
        if (ck_view_eq_nocase(word, ck_view_of(rows[i].word))) return rows[i].advice;
    return NULL;
}
#define FIND(rows, word) find((rows), CK_ARRAY_COUNT(rows), (word))

static const char *pair_of(ck_view first, ck_view second) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(pairs); i++)
        if (ck_view_eq_nocase(first, ck_view_of(pairs[i].first)) &&
            ck_view_eq_nocase(second, ck_view_of(pairs[i].second)))
            return pairs[i].advice;
    return NULL;
}

/* MULTISET<t> or t MULTISET. */
static bool is_multiset(const ck_token *t) {
    return t->code == IDENT && !t->quoted && ck_view_eq_nocase(t->text, CK_VIEW("multiset"));
}

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

static ck_view word_in_front(const ck_parser *ps, size_t offset) {
    const char *text = ps->source->text.p, *end = text + offset;
    while (end > text && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t')) end--;
    const char *begin = end;
    while (begin > text && is_word_byte(begin[-1])) begin--;
    return (ck_view){begin, (size_t)(end - begin)};
}

/* The word in front of a parenthesis that is open here, the innermost that is one of bracketed. */
static const char *before_bracket(const ck_parser *ps, ck_pos *at) {
    const char *text = ps->source->text.p, *p = text + ps->current.pos.begin;
    int depth = 0;
    for (; p > text && p[-1] != ';'; p--) {
        if (p[-1] == ')') depth++;
        if (p[-1] != '(' || depth-- > 0) continue;
        depth = 0; /* one that is open; the one around it may be it, too */
        ck_view word = word_in_front(ps, (size_t)(p - 1 - text));
        const char *advice = FIND(bracketed, word);
        if (!advice) continue;
        size_t begin = (size_t)(word.p - text);
        *at = ck_source_locate(ps->source, begin, begin + word.n);
        return advice;
    }
    return NULL;
}

const char *ck_parser_foreign_word(const ck_parser *ps, ck_pos *at) {
    const ck_token *t = &ps->current, *before = &ps->before;
    ck_view word = word_of(ps, t), last = word_of(ps, before);
    const char *advice = NULL;
    if (ps->previous[1] == 0 || ps->previous[1] == ';') return FIND(statements, word);
    if (before->code == K_CREATE && (advice = FIND(created, word))) return advice;
    if ((t->code == '<' && is_multiset(before)) || is_multiset(t)) {
        if (t->code == '<') *at = before->pos;
        return "there is no type MULTISET here; MAP<t, BIGINT> holds elements with how often each occurs, ARRAY<t> all "
               "of them";
    }
    if (t->code == STRING_TEXT && before->code == K_FROM)
        return "a file is read through a table: CREATE TABLE t (a BIGINT, ...) WITH (connector = 'file', path = "
               "'file.csv')";
    if (t->code == ',' && ck_view_eq_nocase(word_in_front(ps, before->pos.begin), CK_VIEW("LIMIT")))
        return "LIMIT takes one number; LIMIT 10 OFFSET 5 leaves out the first five rows";
    if (ps->in_table && (advice = FIND(constraints, t->code == '(' || t->code == '<' ? last : word))) return advice;
    if ((advice = pair_of(last, word)) || (advice = FIND(clauses, word))) return advice;
    if ((advice = FIND(clauses, last)) || (advice = before_bracket(ps, at))) {
        if (FIND(clauses, last)) *at = before->pos;
        return advice;
    }
    return NULL;
}
