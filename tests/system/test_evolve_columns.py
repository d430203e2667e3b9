"""Columns of a table that change while state stays: renamed, added, added behind an aggregate, pruned ones that come late. What goes on
must give what an undisturbed run of the new script gives over all rows, each row as its own script's table would have read it."""
import json

import pytest

from conftest import read_rows
from test_evolve import Job

TABLE = "CREATE TABLE src ({cols}) WITH (connector='file', format='json', path='{inp}', follow='true');\n"
COPY_T = "CREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');\n"
OLD = "k VARCHAR, v BIGINT, w BIGINT"


class Tables(Job):
    """Rows 0..n with the columns of their time."""

    def __init__(self, where, row):
        self.row = row
        super().__init__(where)

    def append(self, n):
        with open(self.inp, "a") as f:
            for i in range(self.rows, self.rows + n):
                f.write(json.dumps(self.row(i)) + "\n")
        self.rows += n

    def script(self, sql):
        path = self.where / "job.sql"
        path.write_text(sql.replace("{inp}", str(self.inp)).replace("{out}", str(self.out)))
        return path


def old_row(i):
    return {"k": "k%d" % (i % 5), "v": i, "w": i * 7 % 13}


def script(cols, sink, query, v="v", k="k"):
    return (TABLE.replace("{cols}", cols) + COPY_T + "CREATE TABLE res (%s, PRIMARY KEY (key) NOT ENFORCED) WITH (connector='file', format='json', "
            "path='{out}1', mode='upsert');\nINSERT INTO res %s;\nINSERT INTO copy SELECT %s FROM src;\n" % (sink, query, v))


def two_lives(tmp_path, was, now, new_row, expect=0):
    job = Tables(tmp_path, old_row)
    code, err = job.life(was)
    assert code == 0, err
    code, lines, err = job.explain(now)
    assert code == expect, (lines, err)
    if expect:
        return job, lines
    job.row = new_row
    job.append(100)
    code, err = job.life(now)
    assert code == 0 and len(job.copied()) == 300, err
    job.append(10)  # once more from a savepoint of the new script
    code, err = job.life(now, "-p", 2)
    assert code == 0, err
    return job, lines


def totals(rows, by, fn):
    out = {}
    for r in rows:
        out.setdefault(r[by], []).append(r)
    return {k: fn(g) for k, g in out.items()}


def test_a_renamed_column_is_found_in_state(tmp_path):
    was = script(OLD, "key VARCHAR, s BIGINT, m BIGINT", "SELECT k, SUM(v), MAX(w) FROM src WHERE v > 1 GROUP BY k")
    now = script("key VARCHAR RENAMED FROM k, amount BIGINT RENAMED FROM v, w BIGINT", "key VARCHAR, s BIGINT, m BIGINT",
                 "SELECT key, SUM(amount), MAX(w) FROM src WHERE amount > 1 GROUP BY key", "amount")
    job, lines = two_lives(tmp_path, was, now, lambda i: {"key": "k%d" % (i % 5), "amount": i, "w": i * 7 % 13})
    assert any(l.startswith("migrate") and "'sum(v)' is 'sum(amount)' now" in l and "(was group_agg(k)<-src)" in l for l in lines), lines
    rows = [old_row(i) for i in range(job.rows) if i > 1]
    want = totals(rows, "k", lambda g: (sum(r["v"] for r in g), max(r["w"] for r in g)))
    assert {r["key"]: (r["s"], r["m"]) for r in job.table("1")} == want


def test_without_the_clause_it_is_another_column(tmp_path):
    was = script(OLD, "key VARCHAR, s BIGINT", "SELECT k, SUM(v) FROM src GROUP BY k")
    now = script("k VARCHAR, amount BIGINT, w BIGINT", "key VARCHAR, s BIGINT", "SELECT k, SUM(w) FROM src GROUP BY k", "w")
    job, lines = two_lives(tmp_path, was, now, None, 3)
    assert any(l.startswith("refused") and "'sum(w)' is not in the checkpoint" in l for l in lines), lines


def test_names_may_change_places(tmp_path):
    was = script(OLD, "key VARCHAR, s BIGINT, m BIGINT", "SELECT k, SUM(v), MAX(w) FROM src GROUP BY k")
    now = script("k VARCHAR, w BIGINT RENAMED FROM v, v BIGINT RENAMED FROM w", "key VARCHAR, s BIGINT, m BIGINT",
                 "SELECT k, SUM(w), MAX(v) FROM src GROUP BY k", "w")
    job, _ = two_lives(tmp_path, was, now, lambda i: {"k": "k%d" % (i % 5), "w": i, "v": i * 7 % 13})
    want = totals([old_row(i) for i in range(job.rows)], "k", lambda g: (sum(r["v"] for r in g), max(r["w"] for r in g)))
    assert {r["key"]: (r["s"], r["m"]) for r in job.table("1")} == want


def test_an_aggregate_of_a_column_that_the_table_did_not_have(tmp_path):
    """Every row that was read has NULL there: SUM begins at NULL, COUNT at 0, as in an undisturbed run."""
    was = script(OLD, "key VARCHAR, s BIGINT, a BIGINT, c BIGINT", "SELECT k, SUM(v), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT) FROM src GROUP BY k")
    now = script(OLD + ", extra BIGINT", "key VARCHAR, s BIGINT, a BIGINT, c BIGINT",
                 "SELECT k, SUM(v), SUM(extra), COUNT(extra) FROM src GROUP BY k")
    job, lines = two_lives(tmp_path, was, now, lambda i: {**old_row(i), **({"extra": i} if i % 5 else {})})
    assert any(l.startswith("migrate") and "adds 'sum(extra)'" in l and "adds 'count(extra)'" in l for l in lines), lines
    new = [i for i in range(200, job.rows) if i % 5]
    for r in job.table("1"):
        mine = [i for i in new if "k%d" % (i % 5) == r["key"]]
        assert (r.get("a"), r["c"]) == (sum(mine) if mine else None, len(mine)), r
        assert r["s"] == sum(i for i in range(job.rows) if "k%d" % (i % 5) == r["key"])


def test_a_column_the_table_had_and_state_had_not_is_refused(tmp_path):
    """Pruning kept w out of state: NULL would be a lie."""
    was = script(OLD, "key VARCHAR, s BIGINT, a BIGINT", "SELECT k, SUM(v), CAST(NULL AS BIGINT) FROM src GROUP BY k")
    now = script(OLD, "key VARCHAR, s BIGINT, a BIGINT", "SELECT k, SUM(v), SUM(w) FROM src GROUP BY k")
    job, lines = two_lives(tmp_path, was, now, None, 3)
    assert any(l.startswith("refused") and "'sum(w)' is not in the checkpoint" in l for l in lines), lines


def join(cols, kind, column):
    return (TABLE.replace("{cols}", cols) + COPY_T + "CREATE TABLE names (k VARCHAR, name VARCHAR) WITH (connector='file', format='json', path='{inp}.names', follow='true');\n"
            "CREATE TABLE res (v BIGINT, x %s, name VARCHAR) WITH (connector='file', format='json', path='{out}1');\n"
            "INSERT INTO res SELECT v, %s, name FROM src JOIN names ON src.k = names.k;\nINSERT INTO copy SELECT v FROM src;\n" % (kind, column))


@pytest.mark.parametrize("late,kind,code", [("extra", "VARCHAR", 0), ("w", "BIGINT", 3)], ids=["new in the table", "pruned"])
def test_whole_rows_that_state_keeps(tmp_path, late, kind, code):
    """A join keeps the rows of both sides: those from before have NULL in a column that the table has got since, and must not in one
    that they had and that nobody had asked for."""
    names = tmp_path / "in.ndjson.names"
    names.write_text("".join(json.dumps({"k": "k%d" % i, "name": "n%d" % i}) + "\n" for i in range(4)))  # none for k4 yet
    was = join(OLD, kind, "CAST(NULL AS %s)" % kind)
    now = join(OLD + (", extra VARCHAR" if late == "extra" else ""), kind, late)
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    code_now, lines, err = job.explain(now)
    assert code_now == code, (lines, err)
    if code:
        assert any(l.startswith("refused") and "'w' is not in the checkpoint" in l for l in lines), lines
        return
    assert any(l.startswith("migrate") and "adds 'extra'" in l for l in lines), lines
    job.row = lambda i: {**old_row(i), "extra": "x%d" % i}
    job.append(100)
    with open(names, "a") as f:
        f.write(json.dumps({"k": "k4", "name": "late"}) + "\n")  # meets the rows of both scripts
    assert job.life(now)[0] == 0
    want = sorted((i, "x%d" % i if i >= 200 else None, "late" if i % 5 == 4 else "n%d" % (i % 5)) for i in range(job.rows))
    got = sorted((r["v"], r.get("x"), r["name"]) for r in job.table("1"))
    assert [g for g in got if g[2] == "late"] == [w for w in want if w[2] == "late"]
    assert got == want


@pytest.mark.parametrize("cols", ["a INT, b INT RENAMED FROM a", "a INT RENAMED FROM c, b INT RENAMED FROM c", "a INT RENAMED FROM"])
def test_renames_that_are_none(tmp_path, cols):
    from conftest import run_clink
    r = run_clink("explain", "-e", "CREATE TABLE t (%s) WITH (connector='blackhole'); SELECT 1;" % cols, ok=False)
    assert r.code == 1 and ("cannot be renamed from" in r.err or "syntax" in r.err.lower() or "expected" in r.err), r.err


def test_what_can_be_derived_is(tmp_path):
    """AVG is SUM and COUNT, which are there; COUNT of a column that is never NULL is COUNT(*)."""
    was = script(OLD, "key VARCHAR, s BIGINT, c BIGINT, a DOUBLE", "SELECT k, SUM(v), COUNT(v), CAST(NULL AS DOUBLE) FROM src GROUP BY k")
    now = script(OLD, "key VARCHAR, s BIGINT, c BIGINT, a DOUBLE", "SELECT k, SUM(v), COUNT(v), AVG(CAST(v AS BIGINT)) FROM src GROUP BY k")
    job, lines = two_lives(tmp_path, was, now, old_row)
    assert any(l.startswith("reuse") and "group_agg(k)<-src" in l for l in lines), lines
    for r in job.table("1"):
        mine = [i for i in range(job.rows) if "k%d" % (i % 5) == r["key"]]
        assert (r["s"], r["c"], r["a"]) == (sum(mine), len(mine), sum(mine) / len(mine)), r


FROM_NOW = ("--added-state", "from_now")


def test_what_cannot_be_derived_is_refused_or_of_later_rows(tmp_path):
    sink = "key VARCHAR, s BIGINT, c BIGINT, d BIGINT, m BIGINT"
    was = script(OLD, sink, "SELECT k, SUM(v), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT) FROM src GROUP BY k")
    now = script(OLD, sink, "SELECT k, SUM(v), COUNT(*), COUNT(DISTINCT w), MAX(w) FROM src GROUP BY k")
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    code, lines, err = job.explain(now)
    assert code == 3 and any(l.startswith("refused") and "'count(*)' is not in the checkpoint" in l for l in lines), lines
    assert job.life(now)[0] == 1
    code, lines, err = job.explain(now, *FROM_NOW)
    assert code == 0 and any(l.startswith("migrate") and "adds 'count(*)' from now on" in l for l in lines), (lines, err)
    job.append(103)
    code, err = job.life(now, *FROM_NOW)
    assert code == 0 and "adds 'count(*)' from now on" in err, err  # said where the job starts
    job.append(10)
    assert job.life(now)[0] == 0  # and is state like any other from then on
    for r in job.table("1"):
        mine = [i for i in range(job.rows) if "k%d" % (i % 5) == r["key"]]
        late = [i for i in mine if i >= 200]
        assert r["s"] == sum(mine)
        assert (r["c"], r["d"], r["m"]) == (len(late), len({i * 7 % 13 for i in late}), max(i * 7 % 13 for i in late)), r


def test_from_now_is_for_input_that_grows(tmp_path):
    """Rows that are taken back were counted by nobody."""
    inner = "SELECT x, SUM(s) AS s%s FROM (SELECT k AS x, SUM(v) AS s FROM src GROUP BY k) GROUP BY x"
    was = script(OLD, "key VARCHAR, s BIGINT, m BIGINT", "SELECT x, s, CAST(NULL AS BIGINT) FROM (%s)" % (inner % ""))
    now = script(OLD, "key VARCHAR, s BIGINT, m BIGINT", inner % ", MAX(s) AS m")
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    code, lines, err = job.explain(now, *FROM_NOW)
    assert code == 3 and any(l.startswith("refused") and "its state \"values:s\" is not in the checkpoint" in l for l in lines), (lines, err)


def test_from_now_is_spelt_so(tmp_path):
    from conftest import run_clink
    r = run_clink("explain", "-e", "SELECT 1", "--added-state", "now", ok=False)
    assert r.code == 2 and "--added-state is refuse, from_now or backfill" in r.err, r.err


def test_a_state_of_the_job_before_the_last_does_not_come_back(tmp_path):
    """Its rows stay in the files when an aggregate goes; when it comes once more they know nothing of what was read meanwhile."""
    sink = "key VARCHAR, s BIGINT, d BIGINT"
    two = script(OLD, sink, "SELECT k, SUM(v), COUNT(DISTINCT w) FROM src GROUP BY k")
    one = script(OLD, sink, "SELECT k, SUM(v), CAST(NULL AS BIGINT) FROM src GROUP BY k")
    job = Tables(tmp_path, old_row)
    for sql in (two, one):
        assert job.life(sql)[0] == 0
        job.append(20)
    code, lines, err = job.explain(two, *FROM_NOW)
    assert code == 3 and any(l.startswith("refused") and 'its state "distinct:w" is of a job before the last' in l for l in lines), (lines, err)
    code, err = job.life(two, "--added-state", "backfill")
    assert code == 0, err
    for r in job.table("1"):
        assert r["d"] == len({i * 7 % 13 for i in range(job.rows) if "k%d" % (i % 5) == r["key"]}), r
