"""State names its fields by the columns of the query below ("sum(y)"). A script in which such a name stands for another column, or for
another expression of it, does not go on with what is stored under it: the one would be added to the other."""
import pytest

from conftest import run_clink
from test_backfill import BACKFILL, files
from test_evolve_columns import COPY_T, OLD, TABLE, Tables, old_row, script, totals

SINK = "key VARCHAR, s BIGINT"
CALL = "SELECT k, SUM(y) FROM %s GROUP BY k"


def over(rows):
    return script(OLD, SINK, CALL % rows)


def computed(column):
    return script(OLD + ", " + column, SINK, CALL % "src")


def view(column):
    return "CREATE VIEW seen AS SELECT k, %s AS y FROM src;\n" % column


def by_view(column):
    table, rest = over("seen").split("\n", 1)
    return table + "\n" + view(column) + rest


CHANGES = {
    "another column": (over("(SELECT k, v AS y FROM src)"), over("(SELECT k, w AS y FROM src)"), lambda r: r["w"]),
    "another expression": (over("(SELECT k, v + 1 AS y FROM src)"), over("(SELECT k, v + 2 AS y FROM src)"), lambda r: r["v"] + 2),
    "through a filter": (over("(SELECT k, v AS y FROM src WHERE w >= 0)"), over("(SELECT k, -v AS y FROM src WHERE w >= 0)"), lambda r: -r["v"]),
    "a computed column": (computed("y AS v + 1"), computed("y AS v * 2"), lambda r: r["v"] * 2),
    "a column that is computed now": (over("(SELECT k, w AS y FROM src)"), script("k VARCHAR, v BIGINT, w AS v * 2", SINK, CALL % "(SELECT k, w AS y FROM src)"),
                                      lambda r: r["v"] * 2),
    "a view": (by_view("v"), by_view("w"), lambda r: r["w"]),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_name_that_stands_for_something_else(tmp_path, change):
    was, now, y = CHANGES[change]
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    before = files(job)
    code, lines, err = job.explain(now)
    assert code == 3 and any(l.startswith("refused") and "(y)' is of another column or expression now" in l or "(w)' is of another" in l for l in lines), (lines, err)
    r = run_clink("check-savepoint", job.ck, "--expected", job.script(now), ok=False)
    assert r.code == 3 and "is of another column or expression now" in r.out, r.out + r.err
    code, err = job.life(now)
    assert code == 1 and "is of another column or expression now" in err and files(job) == before, err
    job.append(103)
    code, err = job.life(now, *BACKFILL)
    assert code == 0, err
    want = totals([old_row(i) for i in range(job.rows)], "k", lambda g: sum(y(r) for r in g))
    assert {r["key"]: r["s"] for r in job.table("1")} == want
    assert sorted(r["v"] for r in job.copied()) == list(range(job.rows))


SAME = {
    "laid out anew": (over("(SELECT k, v + 1 AS y FROM src)"), over("(SELECT *, v + 1 AS y FROM (SELECT w, k, v FROM src) AS deep)")),
    "a renamed column": (over("(SELECT k, v AS y FROM src)"),
                         script("k VARCHAR, amount BIGINT RENAMED FROM v, w BIGINT", SINK, CALL % "(SELECT k, amount AS y FROM src)", "amount")),
    "a renamed column in an expression": (over("(SELECT k, v + w AS y FROM src)"),
                                          script("k VARCHAR, amount BIGINT RENAMED FROM v, w BIGINT", SINK, CALL % "(SELECT k, amount + w AS y FROM src)", "amount")),
    "a column more beside it": (over("(SELECT k, v AS y FROM src)"), over("(SELECT k, w AS x, v AS y, v + 1 AS z FROM src)")),
    "a computed column as an expression": (computed("y AS v + 1"), over("(SELECT k, v + 1 AS y FROM src)")),
}


@pytest.mark.parametrize("change", sorted(SAME))
def test_the_same_in_other_words_goes_on(tmp_path, change):
    was, now = SAME[change]
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    code, lines, err = job.explain(now)
    assert code == 0 and any(l.split()[0] in ("reuse", "migrate") and "group_agg(k)<-src" in l for l in lines), (lines, err)


def joined(column):
    return (TABLE.replace("{cols}", OLD) + COPY_T + "CREATE TABLE names (k VARCHAR, name VARCHAR) WITH (connector='file', format='json', path='{inp}.names', follow='true');\n"
            "CREATE TABLE res (y BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{out}1');\n"
            "INSERT INTO res SELECT y, name FROM (SELECT k, %s AS y FROM src) AS l JOIN names ON l.k = names.k;\nINSERT INTO copy SELECT v FROM src;\n" % column)


def test_rows_that_a_join_keeps(tmp_path):
    (tmp_path / "in.ndjson.names").write_text('{"k":"k1","name":"one"}\n')
    job = Tables(tmp_path, old_row)
    assert job.life(joined("v + 0"))[0] == 0
    code, lines, err = job.explain(joined("v + 0"))
    assert code == 0, (lines, err)
    code, lines, err = job.explain(joined("v + 7"))
    assert code == 3 and any(l.startswith("refused") and "'y' is of another column or expression now" in l for l in lines), (lines, err)

