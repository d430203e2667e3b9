"""What is stored and fields do not tell: NULLs that an array of a column would have, rows under the old name of a column, the places of a
key's columns, and the rows that OVER has looked at. A script that needs another answer does not go on."""
import pytest

from test_backfill import BACKFILL, files
from test_evolve_columns import COPY_T, OLD, TABLE, Tables, old_row, script, totals


def test_nulls_that_an_array_keeps(tmp_path):
    """ARRAY_AGG has the NULLs of rows that were read before the column came; what leaves NULLs out begins empty."""
    sink = "key VARCHAR, n BIGINT, a ARRAY<BIGINT>"
    was = script(OLD, sink, "SELECT k, COUNT(*), CAST(NULL AS ARRAY<BIGINT>) FROM src WHERE v > 190 GROUP BY k")
    now = script(OLD + ", extra BIGINT", sink, "SELECT k, COUNT(*), ARRAY_AGG(extra) FROM src WHERE v > 190 GROUP BY k")
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    code, lines, err = job.explain(now)
    assert code == 3 and any(l.startswith("refused") and "is not in the checkpoint" in l for l in lines), (lines, err)
    assert job.explain(now.replace("ARRAY_AGG(extra)", "ARRAY_AGG(extra) IGNORE NULLS"))[0] == 0
    job.row = lambda i: {**old_row(i), "extra": i}
    job.append(5)
    code, err = job.life(now, *BACKFILL)
    assert code == 0, err
    for r in job.table("1"):
        mine = [i if i >= 200 else None for i in range(191, job.rows) if "k%d" % (i % 5) == r["key"]]
        assert sorted(r["a"], key=str) == sorted(mine, key=str), r


def test_rows_from_before_a_rename_are_not_read_again(tmp_path):
    """They have the column under its old name: read by the new one it would be NULL."""
    sink = "key VARCHAR, s BIGINT, n BIGINT"
    cols = "k VARCHAR, amount BIGINT RENAMED FROM v, w BIGINT"
    was = script(OLD, sink, "SELECT k, SUM(v), CAST(NULL AS BIGINT) FROM src GROUP BY k")
    now = script(cols, sink, "SELECT k, SUM(amount), COUNT(*) FROM src GROUP BY k", "amount")
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    before = files(job)
    code, lines, err = job.explain(now, *BACKFILL)
    assert code == 3 and any(l.startswith("refused") and "has rows of before its column 'amount' was renamed" in l for l in lines), (lines, err)
    code, err = job.life(now, *BACKFILL)
    assert code == 1 and "has rows of before its column 'amount' was renamed" in err and files(job) == before, err
    other = script(cols, sink, "SELECT k, SUM(amount), CAST(NULL AS BIGINT) FROM src GROUP BY k", "amount")
    job.row = lambda i: {"k": "k%d" % (i % 5), "amount": i, "w": i * 7 % 13}
    job.append(10)
    assert job.life(other)[0] == 0
    want = totals([old_row(i) for i in range(job.rows)], "k", lambda g: sum(r["v"] for r in g))
    assert {r["key"]: r["s"] for r in job.table("1")} == want


KEYED = "k VARCHAR, v BIGINT, w BIGINT, j VARCHAR"


def keyed_row(i):
    return {**old_row(i), "j": "k%d" % (i % 3)}


def two_keys(on):
    return (TABLE.replace("{cols}", KEYED) + COPY_T + "CREATE TABLE other (k VARCHAR, j VARCHAR, u BIGINT) WITH (connector='file', format='json', path='{inp}.other', follow='true');\n"
            "CREATE TABLE res (v BIGINT, u BIGINT) WITH (connector='file', format='json', path='{out}1');\n"
            "INSERT INTO res SELECT l.v, r.u FROM src l JOIN other r ON %s;\nINSERT INTO copy SELECT v FROM src;\n" % on)


def primary(key):
    return (TABLE.replace("{cols}", KEYED) + COPY_T + "CREATE TABLE res (k VARCHAR, j VARCHAR, s BIGINT, PRIMARY KEY (%s) NOT ENFORCED) WITH (connector='file', format='json', "
            "path='{out}1', mode='upsert');\nINSERT INTO res SELECT k, j, SUM(v) FROM src GROUP BY k, j;\nINSERT INTO copy SELECT v FROM src;\n" % key)


@pytest.mark.parametrize("make,was,now", [
    (two_keys, "l.k = r.k AND l.j = r.j", "l.j = r.j AND l.k = r.k"),
    (primary, "k, j", "j, k"),
], ids=["join", "primary key"])
def test_columns_of_a_key_that_change_places(tmp_path, make, was, now):
    """They are of one type: rows would be found under each other's keys."""
    (tmp_path / "in.ndjson.other").write_text('{"k":"k1","j":"k2","u":1}\n')
    job = Tables(tmp_path, keyed_row)
    assert job.life(make(was))[0] == 0
    assert job.explain(make(was))[0] == 0
    before = files(job)
    code, lines, err = job.explain(make(now))
    assert code == 3 and any(l.startswith("refused") and "its key has 'j' in another place" in l for l in lines), (lines, err)
    code, err = job.life(make(now))
    assert code == 1 and "in another place" in err and files(job) == before, err


def beside(call):
    return (TABLE.replace("{cols}", OLD + ", p AS PROCTIME()") + COPY_T + "CREATE TABLE res (v BIGINT, u BIGINT) WITH (connector='file', format='json', path='{out}1');\n"
            "INSERT INTO res SELECT v, %s OVER (PARTITION BY k ORDER BY p) FROM src;\nINSERT INTO copy SELECT v FROM src;\n" % call)


@pytest.mark.parametrize("was,now,says", [
    ("LAG(v, 1)", "LAG(v, 2)", "it is stored for sums, LAG of 1, this job keeps it for sums, LAG of 1, LAG of 2"),
    ("LAST_VALUE(v)", "FIRST_VALUE(v)", "it is stored for sums, this job keeps it for sums, first_value(v)"),
    ("MIN(v)", "MAX(v)", "it is stored for sums, min(v), this job keeps it for sums, max(v)"),
    ("LAG(v, 2)", "LAG(v, 1)", None),
    ("FIRST_VALUE(v)", "LAST_VALUE(v)", None),
], ids=["further back", "the first", "the greatest", "less far back", "the last"])
def test_rows_that_over_has_kept(tmp_path, was, now, says):
    """What no call looked at is gone, and no field tells."""
    job = Tables(tmp_path, old_row)
    assert job.life(beside(was))[0] == 0
    code, lines, err = job.explain(beside(now))
    if says:
        assert code == 3 and any(l.startswith("refused") and says in l for l in lines), (lines, err)
        return
    assert code == 0, (lines, err)
    job.append(5)
    assert job.life(beside(now))[0] == 0
    want = {i: i - 5 if "LAG" in now else i for i in range(200, 205)}
    assert {r["v"]: r["u"] for r in job.table("1") if r["v"] >= 200} == want
