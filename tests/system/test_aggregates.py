"""Variances and standard deviations against DuckDB: at the end, as changes that are netted, over rows that are taken back, in windows of every kind, at
several parallelisms and batch sizes."""
import json
import math
import os
import random

import duckdb
import pytest
from conftest import run_clink

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
NAMES = ["VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV"]
CALLS = [f"{n}(v)" for n in NAMES] + ["VAR_POP(d)", "STDDEV(DISTINCT v)", "VAR_SAMP(x) FILTER (WHERE v > 3)", "STDDEV_POP(far)"]
SELECT = ", ".join(f"{c} AS c{i}" for i, c in enumerate(CALLS))
TABLE = ("CREATE TABLE t (id BIGINT, k BIGINT, j BIGINT, v BIGINT, d DECIMAL(12,3), x DOUBLE, far DOUBLE, ts TIMESTAMP(3){}) WITH (connector='file', format='json', path='{}/t.ndjson');")


@pytest.fixture
def rows(tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    out = [{"id": i, "k": rnd.randrange(5), "j": rnd.randrange(40), "v": rnd.choice([None, *range(12)]), "d": f"{rnd.randrange(-9999, 9999)}.{rnd.randrange(1000):03d}",
            "x": rnd.choice([None, rnd.uniform(-1e6, 1e6)]), "far": 1e9 + rnd.randrange(5), "ts": f"2024-01-01T00:{i // 60 % 60:02d}:{i % 60:02d}"} for i in range(400)]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(r) + "\n" for r in out))
    return out


@pytest.fixture
def db(tmp_path, rows):
    db = duckdb.connect()
    db.execute(f"CREATE TABLE t AS SELECT * FROM read_json('{tmp_path}/t.ndjson', columns={{id:'BIGINT', k:'BIGINT', j:'BIGINT', v:'BIGINT', d:'DECIMAL(12,3)', x:'DOUBLE', far:'DOUBLE', ts:'TIMESTAMP'}})")
    return db


def check(got, want, key):
    got = {tuple(r[k] for k in key): [r[f"c{i}"] for i in range(len(CALLS))] for r in got}
    assert got.keys() == want.keys()
    for k, values in want.items():
        for call, a, b in zip(CALLS, got[k], values):
            assert (a is None) == (b is None), (k, call, a, b)
            assert a is None or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9), (k, call, a, b)


def wanted(db, sql, keys):
    return {tuple(r[:keys]): r[keys:] for r in ask(db, sql)}


def ask(db, sql):
    """What lies far from zero is moved there for DuckDB, which loses digits there: a variance does not move."""
    return db.execute(sql.replace("(far)", "(far - 1e9)")).fetchall()


def netted(rows):
    left = {}
    for r in rows:
        sign = -1 if r.pop("op") in ("-U", "-D") else 1
        text = json.dumps(r)
        left[text] = left.get(text, 0) + sign
    assert all(n in (0, 1) for n in left.values())
    return [json.loads(t) for t, n in left.items() if n]


@pytest.mark.parametrize("p,batch", [(1, 4096), (3, 7), (4, 1)])
def test_groups(tmp_path, db, p, batch):
    sql = f"SELECT k, {SELECT} FROM t GROUP BY k"
    want = wanted(db, sql, 1)
    check(run_clink("run", "-p", p, "--set", f"batch_rows={batch}", "-e", TABLE.format("", tmp_path) + sql).rows, want, ["k"])
    changes = run_clink("run", "-p", p, "--changes=json", "--set", f"batch_rows={batch}", "-e", TABLE.format("", tmp_path) + sql).rows
    check(netted(changes), want, ["k"])


@pytest.mark.parametrize("p,batch", [(1, 4096), (3, 7), (2, 1)])
def test_rows_that_are_taken_back(tmp_path, db, p, batch):
    """Of each j the newest row only: every older one leaves the groups again."""
    newest = "(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY j ORDER BY id DESC) AS n FROM t) WHERE n = 1)"
    sql = f"SELECT k, {SELECT} FROM {newest} GROUP BY k"
    changes = run_clink("run", "-p", p, "--changes=json", "--set", f"batch_rows={batch}", "-e", TABLE.format("", tmp_path) + sql).rows
    check(netted(changes), wanted(db, sql, 1), ["k"])


@pytest.mark.parametrize("window,slice", [("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)", 60), ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)", 20),
                                          ("CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)", 20)])
def test_windows(tmp_path, db, window, slice):
    r = run_clink("run", "-p", 2, "-e", TABLE.format(", WATERMARK FOR ts AS ts", tmp_path) +
                  f"SELECT k, window_start AS s, window_end AS e, {SELECT} FROM TABLE({window}) GROUP BY k, window_start, window_end")
    assert len(r.rows) > 20
    want = {}
    for row in r.rows:
        inside = ask(db, f"SELECT {SELECT} FROM t WHERE k = {row['k']} AND ts >= TIMESTAMP '{row['s']}' AND ts < TIMESTAMP '{row['e']}'")
        want[(row["k"], row["s"], row["e"])] = inside[0]
    check(r.rows, want, ["k", "s", "e"])


def test_sessions(tmp_path, db):
    r = run_clink("run", "-e", TABLE.format(", WATERMARK FOR ts AS ts", tmp_path) +
                  f"SELECT k, SESSION_START(ts, INTERVAL '9' SECOND) AS s, MAX(ts) AS e, {SELECT.replace('DISTINCT ', '')} FROM t GROUP BY SESSION(ts, INTERVAL '9' SECOND), k")
    assert len(r.rows) > 5
    want = {(row["k"], row["s"]): ask(db, f"SELECT {SELECT.replace('DISTINCT ', '')} FROM t WHERE k = {row['k']} AND ts >= TIMESTAMP '{row['s']}' AND ts <= TIMESTAMP '{row['e']}'")[0]
            for row in r.rows}
    check(r.rows, want, ["k", "s"])


def test_special_values():
    """NaN and infinities make NaN; a value and nothing, the global group, a whole column of NULLs."""
    q = "SELECT g, VAR_POP(a) AS p, STDDEV(a) AS s FROM (VALUES (1, CAST('NaN' AS DOUBLE)), (1, 1e0), (2, CAST('Infinity' AS DOUBLE)), (3, 5e0), (4, CAST(NULL AS DOUBLE))) AS t(g, a) GROUP BY g"
    rows = {r["g"]: (r["p"], r["s"]) for r in run_clink("run", "-e", q).rows}
    assert str(rows[1]) == str(rows[1]) and rows[3] == (0.0, None) and rows[4] == (None, None)
    assert all(v in (None, "NaN") or v != v for v in rows[1]) and rows[2][1] is None
    assert run_clink("run", "-e", "SELECT VAR_POP(a) AS p, COUNT(*) AS n FROM (VALUES (1)) AS t(a) WHERE a > 1").rows == [{"p": None, "n": 0}]
