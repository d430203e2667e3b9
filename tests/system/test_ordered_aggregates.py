"""Aggregates over values in an order - STRING_AGG, ARRAY_AGG, FIRST_VALUE, percentiles - against DuckDB, and sketches against what they promise: at the end, as
changes that are netted, over rows that are taken back, in windows of every kind, killed and restored, at several parallelisms and batch sizes."""
import json
import math
import os
import random
import signal
import subprocess
import time

import duckdb
import pytest
from conftest import CLINK, run_clink

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
# (ours, DuckDB's): ties are in the order of the values there too, NULLs where PostgreSQL has them
CALLS = [
    ("STRING_AGG(s)", "STRING_AGG(s, ',' ORDER BY s)"),
    ("STRING_AGG(s, '; ' ORDER BY v DESC)", "STRING_AGG(s, '; ' ORDER BY v DESC NULLS FIRST, s)"),
    ("LISTAGG(DISTINCT s, '')", "STRING_AGG(DISTINCT s, '' ORDER BY s)"),
    ("LISTAGG(s) WITHIN GROUP (ORDER BY s DESC)", "STRING_AGG(s, ',' ORDER BY s DESC)"),
    ("STRING_AGG(v + 1, '|' ORDER BY x NULLS FIRST, v) FILTER (WHERE v > 3)", "STRING_AGG(CAST(v + 1 AS VARCHAR), '|' ORDER BY x NULLS FIRST, v) FILTER (WHERE v > 3)"),
    ("ARRAY_AGG(v)", "LIST(v ORDER BY v NULLS LAST)"),
    ("ARRAY_AGG(v ORDER BY s DESC, x)", "LIST(v ORDER BY s DESC NULLS FIRST, x NULLS LAST, v NULLS LAST)"),
    ("ARRAY_AGG(DISTINCT v ORDER BY v DESC)", "LIST(DISTINCT v ORDER BY v DESC NULLS FIRST)"),
    ("ARRAY_AGG(v ORDER BY id) IGNORE NULLS", "LIST(v ORDER BY id) FILTER (WHERE v IS NOT NULL)"),
    ("FIRST_VALUE(s ORDER BY v)", "FIRST(s ORDER BY v NULLS LAST, s NULLS LAST)"),
    ("LAST_VALUE(s ORDER BY v)", "LAST(s ORDER BY v NULLS LAST, s NULLS LAST)"),
    ("LAST_VALUE(v ORDER BY id) IGNORE NULLS", "LAST(v ORDER BY id) FILTER (WHERE v IS NOT NULL)"),
    ("FIRST_VALUE(id ORDER BY x DESC) FILTER (WHERE v < 9)", "FIRST(id ORDER BY x DESC NULLS FIRST, id) FILTER (WHERE v < 9)"),
    ("MEDIAN(v)", "QUANTILE_CONT(v, 0.5)"),
    ("MEDIAN(DISTINCT v)", "QUANTILE_CONT(DISTINCT v, 0.5)"),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", "QUANTILE_CONT(x, 0.9)"),
    ("PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY v DESC)", "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY v DESC)"),
    ("PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY s)", "QUANTILE_DISC(s, 0.25)"),
    ("PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY v)", "MAX(v)"),
    ("MIN(v)", "MIN(v)"),
    ("MAX(s)", "MAX(s)"),
]
TABLE = "CREATE TABLE t (id BIGINT, k BIGINT, j BIGINT, v BIGINT, s VARCHAR, x DOUBLE, ts TIMESTAMP(3){}) WITH (connector='file', format='json', path='{}/t.ndjson');"
OURS = ", ".join(f"{ours} AS c{i}" for i, (ours, _) in enumerate(CALLS))
DUCK = ", ".join(f"{duck} AS c{i}" for i, (_, duck) in enumerate(CALLS))
WORDS = ["", "a", "b", "ab", "longer than twelve bytes", "longer than twelve bytes, too", "é", None]


@pytest.fixture
def rows(tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    out = [{"id": i, "k": rnd.randrange(5), "j": rnd.randrange(40), "v": rnd.choice([None, *range(12)]), "s": rnd.choice(WORDS),
            "x": rnd.choice([None, rnd.randrange(4) / 2, rnd.uniform(-1e6, 1e6)]), "ts": f"2024-01-01T00:{i // 60 % 60:02d}:{i % 60:02d}"} for i in range(400)]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(r) + "\n" for r in out))
    return out


@pytest.fixture
def db(tmp_path, rows):
    db = duckdb.connect()
    db.execute(f"CREATE TABLE t AS SELECT * FROM read_json('{tmp_path}/t.ndjson', columns={{id:'BIGINT', k:'BIGINT', j:'BIGINT', v:'BIGINT', s:'VARCHAR', x:'DOUBLE', ts:'TIMESTAMP'}})")
    return db


def check(got, want, key):
    assert len(got) == len(want)
    for r in got:
        for i, (call, b) in enumerate(zip(CALLS, want[tuple(r[k] for k in key)], strict=True)):
            a = r[f"c{i}"]
            assert a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-12)), (r, call, a, b)


def wanted(db, sql, keys):
    return {tuple(r[:keys]): r[keys:] for r in db.execute(sql).fetchall()}


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
    want = wanted(db, f"SELECT k, {DUCK} FROM t GROUP BY k", 1)
    sql = TABLE.format("", tmp_path) + f"SELECT k, {OURS} FROM t GROUP BY k"
    check(run_clink("run", "-p", p, "--set", f"batch_rows={batch}", "-e", sql).rows, want, ["k"])
    changes = run_clink("run", "-p", p, "--changes=json", "--set", f"batch_rows={batch}", "-e", sql).rows
    assert batch > 1 or len(changes) > 400
    check(netted(changes), want, ["k"])


def test_the_global_group(tmp_path, db):
    want = {(): db.execute(f"SELECT {DUCK} FROM t").fetchone()}
    check(run_clink("run", "-p", 3, "-e", TABLE.format("", tmp_path) + f"SELECT {OURS} FROM t").rows, want, [])
    none = run_clink("run", "-p", 2, "-e", TABLE.format("", tmp_path) + f"SELECT {OURS}, APPROX_COUNT_DISTINCT(v) AS d, APPROX_PERCENTILE(v, 0.5) AS q FROM t WHERE id < 0").rows[0]
    assert none.pop("d") == 0 and set(none.values()) == {None}


@pytest.mark.parametrize("p,batch", [(1, 4096), (3, 7), (2, 1)])
def test_rows_that_are_taken_back(tmp_path, db, p, batch):
    """Of each j the newest row only: every older one leaves the groups again."""
    newest = "(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY j ORDER BY id DESC) AS n FROM t) WHERE n = 1)"
    changes = run_clink("run", "-p", p, "--changes=json", "--set", f"batch_rows={batch}", "-e", TABLE.format("", tmp_path) + f"SELECT k, {OURS} FROM {newest} GROUP BY k").rows
    check(netted(changes), wanted(db, f"SELECT k, {DUCK} FROM {newest} GROUP BY k", 1), ["k"])


@pytest.mark.parametrize("window,late", [("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)", 0), ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)", 0),
                                         ("CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)", 0),
                                         ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '1' MINUTE)", 0), ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)", 30000)])
def test_windows(tmp_path, db, rows, window, late):
    if late:  # rows out of order, some behind their window's end
        random.Random(SEED).shuffle(rows)
        rows.sort(key=lambda r: r["id"] // 90)
        (tmp_path / "t.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    table = TABLE.format(", WATERMARK FOR ts AS ts" + (" - INTERVAL '60' SECOND" if late else ""), tmp_path).replace("path=", f"allowed_lateness_ms={late}, path=")
    r = run_clink("run", "-p", 2, "--changes=json", "--set", "batch_rows=16", "-e", table + f"SELECT k, window_start AS s, window_end AS e, {OURS} FROM TABLE({window}) GROUP BY k, window_start, window_end")
    got = netted(r.rows)
    assert len(got) > 20
    want = {(row["k"], row["s"], row["e"]): db.execute(f"SELECT {DUCK} FROM t WHERE k = {row['k']} AND ts >= TIMESTAMP '{row['s']}' AND ts < TIMESTAMP '{row['e']}'").fetchone() for row in got}
    check(got, want, ["k", "s", "e"])


@pytest.mark.parametrize("late", [0, 5000])
def test_sessions(tmp_path, db, rows, late):
    """Out of order, so that sessions meet and what they hold moves."""
    rnd = random.Random(SEED)
    rows.sort(key=lambda r: r["id"] + rnd.randrange(25))
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    table = TABLE.format(", WATERMARK FOR ts AS ts - INTERVAL '30' SECOND", tmp_path).replace("path=", f"allowed_lateness_ms={late}, path=")
    r = run_clink("run", "-p", 2, "--changes=json", "--set", "batch_rows=16", "-e", table +
                  f"SELECT k, SESSION_START(ts, INTERVAL '9' SECOND) AS s, MAX(ts) AS e, {OURS} FROM t GROUP BY SESSION(ts, INTERVAL '9' SECOND), k")
    got = netted(r.rows)
    assert sum(len(row["c5"] or []) for row in got) == len(rows)
    want = {(row["k"], row["s"]): db.execute(f"SELECT {DUCK} FROM t WHERE k = {row['k']} AND ts >= TIMESTAMP '{row['s']}' AND ts <= TIMESTAMP '{row['e']}'").fetchone() for row in got}
    check(got, want, ["k", "s"])


def test_killed_and_restored(tmp_path, db):
    """Killed once a checkpoint is there, and gone on with at other parallelisms."""
    out, ck = tmp_path / "out", tmp_path / "ck"
    types = ["VARCHAR"] * 5 + ["ARRAY<BIGINT>"] * 4 + ["VARCHAR", "VARCHAR", "BIGINT", "BIGINT"] + ["DOUBLE"] * 4 + ["VARCHAR", "BIGINT", "BIGINT", "VARCHAR"]
    columns = ", ".join(f"c{i} {t}" for i, t in enumerate(types))
    (tmp_path / "q.sql").write_text(TABLE.format("", tmp_path).replace("path=", "rate_limit=400, path=") +
                                    f"CREATE TABLE o (k BIGINT, {columns}, d BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', mode='upsert', path='{out}');"
                                    f"INSERT INTO o SELECT k, {OURS}, APPROX_COUNT_DISTINCT(id) AS d FROM t GROUP BY k;")
    args = [CLINK, "run", str(tmp_path / "q.sql"), "--checkpoint-dir", str(ck), "--checkpoint-interval-ms", "50", "-p"]
    for p in ("1", "3"):
        before = len(list(ck.glob("*.json"))) if ck.exists() else 0
        job = subprocess.Popen([*args, p], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while job.poll() is None and time.monotonic() < until and not (ck.exists() and {f.name for f in ck.glob("checkpoint-*.json")} and len(list(ck.glob("*.json"))) > before):
            time.sleep(0.01)
        job.send_signal(signal.SIGKILL)
        job.wait()
    assert list(ck.glob("checkpoint-*.json"))
    run_clink(*args[1:], "2")
    got = [json.loads(line) for f in sorted(out.glob("rows-*")) for line in f.read_text().splitlines()]
    counts = dict(db.execute("SELECT k, COUNT(*) FROM t GROUP BY k").fetchall())
    for r in got:
        assert abs(r["d"] - counts[r["k"]]) <= 0.07 * counts[r["k"]]
    check(got, wanted(db, f"SELECT k, {DUCK} FROM t GROUP BY k", 1), ["k"])


# ---- sketches ----


def cut(x):
    """To eight significant bits, towards zero."""
    m, e = math.frexp(x)
    return math.ldexp(math.trunc(m * 256), e - 8)


@pytest.mark.parametrize("p", [1, 3])
def test_approx_percentile(tmp_path, p):
    rnd = random.Random(SEED)
    values = [rnd.choice([0.0, float(rnd.randrange(100)), rnd.lognormvariate(5, 3), -rnd.lognormvariate(0, 9)]) for _ in range(5000)]
    (tmp_path / "v.ndjson").write_text("".join(json.dumps({"k": i % 3, "x": x if i % 17 else None}) + "\n" for i, x in enumerate(values)))
    sql = f"CREATE TABLE v (k BIGINT, x DOUBLE) WITH (connector='file', format='json', path='{tmp_path}/v.ndjson');"
    fractions = [0, 0.01, 0.25, 0.5, 0.9, 0.999, 1]
    r = run_clink("run", "-p", p, "-e", sql + f"SELECT k, {', '.join(f'APPROX_PERCENTILE(x, {f}) AS p{i}' for i, f in enumerate(fractions))} FROM v GROUP BY k").rows
    assert len(r) == 3
    for row in r:
        mine = sorted(x for i, x in enumerate(values) if i % 3 == row["k"] and i % 17)
        for i, f in enumerate(fractions):
            exact = mine[max(0, math.ceil(f * len(mine)) - 1)]
            assert row[f"p{i}"] == cut(exact), (row["k"], f, exact)


def test_approx_count_distinct():
    """Of 1 to 300,000 different values: off by less than six standard errors, and the same at every parallelism and in every order."""
    ns = [1, 2, 10, 100, 1000, 3000, 10000, 30000, 300000]
    sql = "CREATE TABLE g (i BIGINT) WITH (connector='datagen', fields.i.kind='sequence', rows={});SELECT APPROX_COUNT_DISTINCT(i) AS a, APPROX_COUNT_DISTINCT('v' || i) AS b, COUNT(*) AS n FROM g"
    for n in ns:
        one = run_clink("run", "-p", 1, "-e", sql.format(n)).rows
        assert run_clink("run", "-p", 3, "--set", "batch_rows=64", "-e", sql.format(n)).rows == one
        assert one[0]["n"] == n
        for c in "ab":
            assert abs(one[0][c] - n) <= max(0.06 * 1.0 * n, 0 if n < 20 else 3), (n, one)


def test_texts_that_are_too_long(tmp_path):
    (tmp_path / "t.ndjson").write_text("".join(json.dumps({"k": "here", "s": f"{i:02d}" + "x" * 1000000}) + "\n" for i in range(70)))
    r = run_clink("run", "-e", f"CREATE TABLE t (k VARCHAR, s VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/t.ndjson'); SELECT k, STRING_AGG(s) AS a FROM t GROUP BY k", ok=False)
    assert r.code == 1 and "string_agg(s) is over 64 MiB in the group of key (here)" in r.err, r.err
