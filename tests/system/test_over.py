"""OVER against DuckDB: random frames and functions over rows that come out of order within the watermark."""
import json
import math
import os
import random
from fractions import Fraction

import duckdb
import pytest
from conftest import run_clink

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
CASES = int(os.environ.get("CLINK_CASES", 12))
DDL = ("CREATE TABLE t (k VARCHAR, g BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
       "WITH (connector='file', format='json', path='{path}');\n")


def make_rows(rnd, path):
    """Each key has a time once, so that ROWS has one answer; order is shuffled by less than the watermark's five seconds."""
    rows, at = [], 0
    for _ in range(rnd.randrange(1, 300)):
        at += rnd.choice([1, 1, 1, 2, 30])
        for k in rnd.sample(["a", "b", "c", None], rnd.randrange(1, 4)):
            rows.append({"k": k, "g": rnd.randrange(3), "v": rnd.choice([None, *range(-5, 6)]), "at": at})
    rows.sort(key=lambda r: r["at"] + rnd.random() * 4)
    with open(path, "w") as f:
        for r in rows:
            ts = f"2024-01-01 {r['at'] // 3600:02d}:{r['at'] // 60 % 60:02d}:{r['at'] % 60:02d}"
            f.write(json.dumps({"k": r["k"], "g": r["g"], "v": r["v"], "ts": ts}) + "\n")


def random_call(rnd):
    part = rnd.choice(["PARTITION BY k", "PARTITION BY k, g"])
    frame = rnd.choice([f"ROWS BETWEEN {rnd.randrange(6)} PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                        f"RANGE BETWEEN INTERVAL '{rnd.randrange(1, 90)}' SECOND PRECEDING AND CURRENT ROW",
                        "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                        "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"])
    fn = rnd.choice(["COUNT(*)", "COUNT(v)", "SUM(v)", "MIN(v)", "MAX(v)", "FIRST_VALUE(v)", "LAST_VALUE(v)", "ROW_NUMBER()", "LAG(v)", "LAG(v, 2)", "LAG(v, 2, -7)",
                     "LAG(v, 1, g * 2)"])
    if fn.startswith(("ROW_NUMBER", "LAG")):
        frame = ""
    return f"{fn} OVER ({part} ORDER BY ts {frame})"


@pytest.mark.parametrize("case", range(CASES))
def test_random_frames(tmp_path, case):
    seed = SEED + case
    print(f"CLINK_SEED={seed} CLINK_CASES=1")
    rnd = random.Random(seed)
    path = tmp_path / "t.ndjson"
    make_rows(rnd, path)
    window = random_call(rnd).split(" OVER ")[1]
    calls = [fn + window for fn in ("COUNT(*) OVER ", "SUM(v) OVER ")] + ([] if rnd.random() < 0.5 else ["MAX(v) OVER " + window])
    if rnd.random() < 0.5:
        calls = [random_call(rnd)]
    select = "SELECT k, g, ts, " + ", ".join(f"{c} AS c{i}" for i, c in enumerate(calls)) + " FROM t"
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t AS SELECT * FROM read_json('{path}', columns={{k:'VARCHAR', g:'BIGINT', v:'BIGINT', ts:'TIMESTAMP'}})")
    want = sorted((repr((k, g, ts.isoformat(), *map(lambda x: None if x is None else int(x), rest)))
                   for k, g, ts, *rest in con.execute(select).fetchall()))
    for p, batch in [(1, 4096), (rnd.choice([1, 2, 4]), rnd.choice([1, 7, 4096]))]:
        r = run_clink("run", "-p", p, "--set", f"batch_rows={batch}", "-e", DDL.format(path=path) + select)
        got = sorted(repr((x["k"], x["g"], x["ts"], *(x[f"c{i}"] for i in range(len(calls))))) for x in r.rows)
        assert got == want, f"{select} at -p {p}, batches of {batch}"


@pytest.mark.parametrize("call", ["LAG(v, 1, 0)", "LAG(v, 3, -g)", "LEAD(v, 1, 0)", "LEAD(v, 2, v)", "LEAD(g, 1, NULL)"])
def test_a_value_for_rows_that_are_not_there(tmp_path, call):
    """Not for a NULL in a row that is there."""
    rows = [{"id": i, "k": i % 3, "g": i % 5, "v": None if i % 4 == 0 else i} for i in range(40)]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    query = f"SELECT id, {call} OVER (PARTITION BY k ORDER BY id) AS x FROM t"
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t AS SELECT * FROM read_json('{tmp_path}/t.ndjson', columns={{id:'BIGINT', k:'BIGINT', g:'BIGINT', v:'BIGINT'}})")
    r = run_clink("run", "-p", 2, "-e", f"CREATE TABLE t (id BIGINT, k BIGINT, g BIGINT, v BIGINT) WITH (connector='file', path='{tmp_path}/t.ndjson');" + query)
    assert sorted((x["id"], x["x"]) for x in r.rows) == sorted(con.execute(query).fetchall())


def exact(values):
    """Their sum as a double; a total that no double holds is infinite."""
    total = sum(map(Fraction, values))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@pytest.mark.parametrize("time", ["", ", WATERMARK FOR ts AS ts"])
@pytest.mark.parametrize("frame,size", [("ROWS BETWEEN 3 PRECEDING AND CURRENT ROW", 4), ("RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW", 7)])
def test_sums_that_pass_the_range_of_doubles_and_come_back(tmp_path, frame, size, time):
    rnd = random.Random(SEED)
    print(f"CLINK_SEED={SEED}")
    values = [rnd.choice([1.7e308, 1e308, -1e308, 5.0, -3.0, 0.25, 12.0, 7.0]) for _ in range(400)]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps({"d": d, "ts": f"2024-01-01 00:{i // 60:02d}:{i % 60:02d}"}) + "\n" for i, d in enumerate(values)))
    frames = [values[max(0, i + 1 - size):i + 1] for i in range(len(values))]
    sums = [exact(f) for f in frames]
    want = [(s, s / len(f)) for s, f in zip(sums, frames)]
    assert math.inf in sums and any(math.isfinite(s) and abs(s) < 1e3 for s in sums)
    query = f"SELECT ts, SUM(d) OVER w AS s, AVG(d) OVER w AS a FROM t WINDOW w AS (ORDER BY ts {frame})"
    for batch in (1, 7, 4096):
        r = run_clink("run", "--set", f"batch_rows={batch}", "-e",
                      f"CREATE TABLE t (d DOUBLE, ts TIMESTAMP(3){time}) WITH (connector='file', path='{tmp_path}/t.ndjson');" + query)
        assert [(float(x["s"]), float(x["a"])) for x in sorted(r.rows, key=lambda x: x["ts"])] == want
