"""Joins in time, as of a time, and with state that is forgotten: against plain Python, at every parallelism and batch size, from rows that are out of order
within the watermark's delay; flights with the weather of their hour."""
import collections
import datetime
import json
import os
import random

import pytest

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
DELAY = 6


def at(seconds):
    return (datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=seconds)).isoformat()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out, rnd = tmp_path_factory.mktemp("time_joins"), random.Random(SEED)
    print(f"CLINK_SEED={SEED}")
    sides = {}
    for name, n, keys in (("l", 1200, "abcdef"), ("r", 900, "abcde")):
        top, rows, seen = 0, [], set()
        for i in range(n):
            top += rnd.randrange(5)
            row = (rnd.choice(keys), max(0, top - rnd.randrange(DELAY)), i)
            if row[:2] not in seen:
                rows.append(row)
            seen.add(row[:2])
        sides[name] = rows
        with open(out / f"{name}.ndjson", "w") as f:
            f.writelines(json.dumps({"k": k, "t": at(s), "v": v}) + "\n" for k, s, v in rows)
    return out, sides["l"], sides["r"]


TABLES = """
CREATE TABLE l (k VARCHAR, t TIMESTAMP(3), v BIGINT, WATERMARK FOR t AS t - INTERVAL '6' SECOND) WITH (connector='file', path='{0}/l.ndjson');
CREATE TABLE r (k VARCHAR, t TIMESTAMP(3), v BIGINT, PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR t AS t - INTERVAL '6' SECOND)
  WITH (connector='file', path='{0}/r.ndjson');
CREATE VIEW last AS SELECT k, v, t FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t DESC) AS n FROM r) x WHERE n = 1;
"""


def run(clink, data, sql, *args):
    """The rows at every parallelism and batch size, which are the same; with --changes nothing is taken back."""
    results = []
    for p, batch in ((1, 4096), (2, 7), (4, 1), (4, 4096)):
        got = clink("run", "-p", p, "--set", f"batch_rows={batch}", *args, "-e", TABLES.format(data[0]) + sql).rows
        results.append(collections.Counter(tuple(r.values()) for r in got))
    assert all(r == results[0] for r in results), f"CLINK_SEED={SEED}"
    return results[0]


@pytest.mark.parametrize("changes", [[], ["--changes"]])
def test_intervals(clink, data, changes):
    _, left, right = data
    near = [(a, b) for a in left for b in right if a[0] == b[0] and -3 <= b[1] - a[1] <= 5 and (a[2] + b[2]) % 3]
    met, back = {a[2] for a, _ in near}, {b[2] for _, b in near}
    pairs = [(a[2], b[2]) for a, b in near]
    alone = [(a[2], None) for a in left if a[2] not in met]
    on = "r.t BETWEEN l.t - INTERVAL '3' SECOND AND l.t + INTERVAL '5' SECOND AND l.k = r.k AND (l.v + r.v) % 3 <> 0"
    for kind, want in (("", pairs), ("LEFT", pairs + alone), ("FULL", pairs + alone + [(None, b[2]) for b in right if b[2] not in back])):
        got = run(clink, data, f"SELECT l.v, r.v AS w FROM l {kind} JOIN r ON {on}", *changes)
        assert got == collections.Counter(want), f"{kind}, CLINK_SEED={SEED}"
    for word, want in (("", met), ("NOT", {a[2] for a in left} - met)):
        got = run(clink, data, f"SELECT v FROM l WHERE {word} EXISTS (SELECT 1 FROM r WHERE {on})", *changes)
        assert got == collections.Counter((v,) for v in want), f"{word}, CLINK_SEED={SEED}"


def valid_at(right, k, s):
    return max(((r[1], r[2]) for r in right if r[0] == k and r[1] <= s), default=(None, None))[1]


def test_versions(clink, data):
    _, left, right = data
    want = collections.Counter((a[2], valid_at(right, a[0], a[1])) for a in left)
    for table in ("r", "last"):
        for changes in ([], ["--changes"]):
            got = run(clink, data, f"SELECT l.v, x.v AS w FROM l LEFT JOIN {table} FOR SYSTEM_TIME AS OF l.t AS x ON l.k = x.k", *changes)
            assert got == want, f"{table}, CLINK_SEED={SEED}"
    got = run(clink, data, "SELECT l.v, r.v AS w FROM l JOIN r FOR SYSTEM_TIME AS OF l.t ON l.k = r.k AND r.v > 100")
    assert got == collections.Counter({(v, w): n for (v, w), n in want.items() if w is not None and w > 100})


def test_windows_go_on_behind_a_join(clink, data):
    """Time passes through a join in time: a window on top misses nothing."""
    _, left, right = data
    want = collections.Counter((a[0], at(a[1] // 60 * 60)) for a in left for b in right if a[0] == b[0] and -30 <= b[1] - a[1] <= 0)
    got = run(clink, data, """CREATE VIEW j AS SELECT l.k, l.t FROM l JOIN r ON l.k = r.k AND r.t BETWEEN l.t - INTERVAL '30' SECOND AND l.t;
      SELECT k, window_start AS s, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(t), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end""")
    assert got == collections.Counter((k, s, n) for (k, s), n in want.items())


def test_state_by_event_time_is_forgotten(clink, data):
    """A group counts from anew when the watermark has gone an hour past its last row."""
    rows = [("a", 0), ("b", 10), ("a", 3000), ("c", 3700), ("b", 7300), ("a", 7400), ("c", 14000), ("a", 14100)]
    path = data[0] / "ttl.ndjson"
    with open(path, "w") as f:
        f.writelines(json.dumps({"k": k, "t": at(s)}) + "\n" for k, s in rows)
    sql = f"""SET batch_rows = 1; SET state_ttl_time = 'event';
      CREATE TABLE t (k VARCHAR, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH (connector='file', path='{path}', state_ttl='1 h');
      SELECT k, COUNT(*) AS n FROM t GROUP BY k"""
    got = [tuple(json.loads(line).values()) for line in clink("run", "--changes=json", "-e", sql).lines]
    news = [(k, n) for kind, k, n in got if kind.startswith("+")]
    assert news == [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 1), ("a", 1), ("c", 1), ("a", 1)]


def test_lookup(clink, tmp_path):
    """Several rows of a key, none, NULL; an integer of another width; what is too large is refused by name; a changing left side too."""
    with open(tmp_path / "o.ndjson", "w") as f:
        f.writelines(json.dumps({"v": v if v % 11 else None}) + "\n" for v in range(3000))
    with open(tmp_path / "side.csv", "w") as f:
        f.write("k,name\n1,a\n2,b\n2,c\n,n\n")
    side = {1: ["a"], 2: ["b", "c"]}
    tables = f"""CREATE TABLE o (v BIGINT) WITH (connector='file', path='{tmp_path}/o.ndjson');
      CREATE TABLE side (k INT, name VARCHAR) WITH (connector='file', path='{tmp_path}/side.csv', header='true'%s);"""
    want = collections.Counter()
    for v in (v if v % 11 else None for v in range(3000)):
        for name in [n for n in side.get(v and v % 7, []) if v < 2000 or n != "c"] or [None]:
            want[v, name] += 1
    join = "SELECT v, name FROM o LEFT JOIN side FOR SYSTEM_TIME AS OF PROCTIME() ON o.v % 7 = side.k AND (v < 2000 OR name <> 'c')"
    for p, batch in ((1, 4096), (2, 7), (4, 1)):
        got = clink("run", "-p", p, "--set", f"batch_rows={batch}", "-e", tables % "" + join).rows
        assert collections.Counter(tuple(r.values()) for r in got) == want
    assert "lookup.file side" in clink("run", "-e", tables % "" + "EXPLAIN " + join).out
    r = clink("run", "-e", tables % ", lookup.max_bytes=100" + join, ok=False)
    assert r.code == 1 and 'table "side" is too large to be looked up in' in r.err
    r = clink("run", "-e", tables % "" + "SELECT v FROM o JOIN side FOR SYSTEM_TIME AS OF PROCTIME() ON o.v = side.k + 1", ok=False)
    assert r.code == 1 and "a row is looked up by columns of its table" in r.err
    changing = "SELECT n FROM (SELECT v, COUNT(*) AS n FROM o GROUP BY v) c JOIN side FOR SYSTEM_TIME AS OF PROCTIME() ON c.v = side.k"
    r = clink("run", "--changes", "-e", tables % "" + changing, ok=False)
    assert r.code == 1 and "change" in r.err


FLIGHTS = """
CREATE TABLE flights (flight BIGINT, origin VARCHAR, time_hour TIMESTAMP(0), WATERMARK FOR time_hour AS time_hour - INTERVAL '365' DAY)
  WITH (connector='file', format='csv', path='{0}/flights.csv', header='true', null_string='NA');
CREATE TABLE weather (origin VARCHAR, temp DOUBLE, time_hour TIMESTAMP(0), WATERMARK FOR time_hour AS time_hour - INTERVAL '365' DAY)
  WITH (connector='file', format='csv', path='{0}/weather.csv', header='true', null_string='NA');
"""


def test_flights_with_the_weather_of_their_hour(clink, flights):
    """As a regular join, and as one that time bounds: the files are sorted by month as text and by airport, so the watermarks allow a year."""
    hour = FLIGHTS.format(flights) + "SELECT f.flight, w.temp FROM flights f JOIN weather w ON f.origin = w.origin AND "
    same = hour + "f.time_hour = w.time_hour"
    assert clink("run", "-e", same).out.count("\n") == 335220
    within = hour + "w.time_hour BETWEEN f.time_hour AND f.time_hour + INTERVAL '59' MINUTE"
    assert "interval_join" in clink("run", "-e", within.replace("SELECT f", "EXPLAIN SELECT f"), "--changes").out
    assert clink("run", "-p", 2, "--changes", "-e", within).out.count("\n") == 335220


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("bound", ["b.t < a.t + INTERVAL '0.1' SECOND", "b.t - a.t < INTERVAL '0.1' SECOND AND a.v >= 0", "b.t <= a.t + INTERVAL '0.0999' SECOND",
                                   "b.t BETWEEN a.t AND a.t + INTERVAL '0.099999' SECOND"])
def test_a_bound_of_microseconds_makes_no_window_above_late(clink, tmp_path, bound, batch):
    """What is behind a join and a window is in time, wherever in a millisecond the bound of the join is."""
    with open(tmp_path / "a.ndjson", "w") as f:
        f.writelines('{"t":"1970-01-01T00:00:%02d.%03d","k":%d,"v":%d}\n' % (*divmod(i * 7, 1000), i % 3, i) for i in range(400))
    got = clink("run", "--set", f"batch_rows={batch}", "-e", "CREATE TABLE a (t TIMESTAMP(3), k BIGINT, v BIGINT, WATERMARK FOR t AS t) WITH (connector='file', path='a.ndjson');"
                f"CREATE VIEW j AS SELECT a.t, a.k FROM a JOIN a b ON a.k = b.k AND b.t >= a.t AND {bound};"
                "CREATE VIEW w AS SELECT window_time AS wt, k, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(t), INTERVAL '0.01' SECOND)) GROUP BY k, window_start, window_end, window_time;"
                "SELECT k, SUM(n) OVER (PARTITION BY k ORDER BY wt) AS s FROM w")
    pairs = [sum(1 for x in range(400) for y in range(x, 400) if x % 3 == y % 3 == k and (y - x) * 7 < 100) for k in range(3)]
    assert len(got.rows) == 400 and "late" not in got.err and [max(r["s"] for r in got.rows if r["k"] == k) for k in range(3)] == pairs


LAST_DAYS = ["2026-01-01T00:00:00", "2026-01-01T00:00:05", "9998-01-01T00:00:00", "9999-12-31T23:59:59.999", "0001-01-01T00:00:00", None]
FAR_CONDITIONS = [
    "b.t BETWEEN a.t AND a.t + INTERVAL '1' DAY", "b.t BETWEEN a.t - INTERVAL '1' DAY AND a.t",
    "b.t < a.t + INTERVAL '1' DAY AND b.t >= a.t", "b.t - a.t < INTERVAL '1' HOUR AND a.t - b.t <= INTERVAL '1' DAY",
    "b.t + INTERVAL '1' DAY BETWEEN a.t AND a.t + INTERVAL '9000' DAY", "b.t <= a.t + INTERVAL '1' DAY",
]


@pytest.mark.parametrize("declared", ["", ", WATERMARK FOR t AS t"])
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_the_ends_of_time_end_no_job(clink, tmp_path, kind, declared):
    """What a bound would reach past the year 9999 is a distance like others: with DuckDB, whose years go further, and, where time goes on, with
    LIMIT at the number of rows there are."""
    import duckdb
    ddl = ""
    db = duckdb.connect()
    for name in "ab":
        with open(tmp_path / f"{name}.ndjson", "w") as f:
            f.writelines(json.dumps({"k": 1, "t": t}) + "\n" for t in LAST_DAYS)
        ddl += f"CREATE TABLE {name} (k BIGINT, t TIMESTAMP(3){declared}) WITH (connector='file', format='json', path='{name}.ndjson'%s);\n"
        db.execute(f"CREATE TABLE {name} (k BIGINT, t TIMESTAMP)")
        db.executemany(f"INSERT INTO {name} VALUES (1, ?)", [[t] for t in LAST_DAYS])
    for condition in FAR_CONDITIONS:
        sql = f"SELECT a.t AS x, b.t AS y FROM a {kind} b ON a.k = b.k AND {condition}"
        wanted = collections.Counter((x and x.isoformat(timespec="auto")[:23], y and y.isoformat(timespec="auto")[:23])
                                     for x, y in db.execute(sql).fetchall())
        for p, batch in ((1, 1), (2, 7)):
            got = clink("run", "-p", p, "--set", f"batch_rows={batch}", "-e", ddl % ("", "") + sql).rows
            assert collections.Counter((r["x"], r["y"]) for r in got) == wanted, condition
        if declared and kind == "JOIN" and "<= a.t + INTERVAL '1' DAY" not in condition:
            follow = ", follow=TRUE"
            got = clink("run", "--set", "batch_rows=4096", "-e", ddl % (follow, follow) + sql + f" LIMIT {sum(wanted.values())}").rows
            assert collections.Counter((r["x"], r["y"]) for r in got) == wanted, condition
