"""Joins and set operations on real data and through changes, against DuckDB and plain Python, at several parallelisms."""
import os
import random
import signal
import subprocess
import time

import duckdb
import pytest
from conftest import CLINK, read_rows, run_clink, write_ndjson

TABLES = """
CREATE TABLE flights (year BIGINT, month BIGINT, day BIGINT, hour BIGINT, origin VARCHAR, dest VARCHAR, carrier VARCHAR, tailnum VARCHAR, dep_delay BIGINT, distance BIGINT)
  WITH (connector='file', format='csv', path='{0}/flights.csv', header='true', null_string='NA');
CREATE TABLE planes (tailnum VARCHAR, year BIGINT, manufacturer VARCHAR, model VARCHAR, seats BIGINT)
  WITH (connector='file', format='csv', path='{0}/planes.csv', header='true', null_string='NA');
CREATE TABLE airports (faa VARCHAR, name VARCHAR, tzone VARCHAR)
  WITH (connector='file', format='csv', path='{0}/airports.csv', header='true', null_string='NA');
CREATE TABLE weather (origin VARCHAR, year BIGINT, month BIGINT, day BIGINT, hour BIGINT, temp DOUBLE, precip DOUBLE)
  WITH (connector='file', format='csv', path='{0}/weather.csv', header='true', null_string='NA');
"""
SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


@pytest.fixture
def ask(clink, flights):
    def call(sql, *args):
        return clink("run", *args, "-e", TABLES.format(flights) + sql).rows

    return call


@pytest.fixture(scope="module")
def oracle(flights):
    db = duckdb.connect()
    for t in ("flights", "planes", "airports", "weather"):
        db.execute(f"CREATE VIEW {t} AS SELECT * FROM read_csv('{flights}/{t}.csv', header=true, nullstr='NA', sample_size=-1)")
    return db


def rows_of(db, sql):
    return sorted(map(repr, db.execute(sql).fetchall()))


def tuples(rows):
    return sorted(repr(tuple(r.values())) for r in rows)


def netted(rows):
    """What --changes leaves: rows by how often, the taken back ones taken away."""
    count = {}
    for r in rows:
        op = r.pop("op")
        k = repr(tuple(r.values()))
        count[k] = count.get(k, 0) + (-1 if op in ("-U", "-D") else 1)
    assert all(n >= 0 for n in count.values())
    return sorted(k for k, n in count.items() for _ in range(n))


@pytest.mark.parametrize("p", [1, 3])
def test_known_counts(ask, p):
    assert ask("SELECT COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum", "-p", p) == [{"n": 284170}]
    (r,) = ask("SELECT COUNT(*) AS n, COUNT(a.faa) AS met FROM flights f LEFT JOIN airports a ON f.dest = a.faa", "-p", p)
    assert r["n"] == 336776 and r["n"] - r["met"] == 7602


SUMS = [
    "SELECT p.manufacturer AS m, COUNT(*) AS n, SUM(f.distance) AS d, SUM(p.seats) AS s FROM flights f JOIN planes p ON f.tailnum = p.tailnum GROUP BY p.manufacturer",
    "SELECT a.tzone AS z, COUNT(*) AS n, COUNT(f.dest) AS met FROM flights f RIGHT JOIN airports a ON f.dest = a.faa GROUP BY a.tzone",
    "SELECT f.carrier AS c, a.tzone AS z, COUNT(*) AS n FROM flights f FULL JOIN airports a ON f.dest = a.faa GROUP BY f.carrier, a.tzone",
    "SELECT f.origin AS o, COUNT(*) AS n, COUNT(w.temp) AS met FROM flights f LEFT JOIN weather w ON f.origin = w.origin AND f.year = w.year"
    " AND f.month = w.month AND f.day = w.day AND f.hour = w.hour AND w.precip > 0 GROUP BY f.origin",
    "SELECT COUNT(*) AS n, SUM(f.distance) AS d FROM flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum AND p.seats > 200)",
    "SELECT COUNT(*) AS n, COUNT(f.tailnum) AS with_tail FROM flights f WHERE NOT EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum)",
    "SELECT COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum AND f.distance > p.seats * 10",
    "SELECT p.model AS m, COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum JOIN airports a ON f.dest = a.faa WHERE a.tzone = 'America/Denver' GROUP BY p.model",
    "SELECT COUNT(*) AS n FROM (SELECT tailnum FROM flights INTERSECT SELECT tailnum FROM planes) t",
    "SELECT COUNT(*) AS n FROM (SELECT dest FROM flights EXCEPT ALL SELECT faa FROM airports) t",
    "SELECT faa FROM airports EXCEPT SELECT dest FROM flights WHERE month < 3",
]


@pytest.mark.parametrize("sql", SUMS)
def test_against_duckdb(ask, oracle, sql):
    assert tuples(ask(sql, "-p", 3)) == rows_of(oracle, sql)


@pytest.mark.parametrize("sql", [
    "SELECT a.faa, p.n FROM airports a LEFT JOIN (SELECT dest, COUNT(*) AS n FROM flights WHERE day = 1 GROUP BY dest) p ON a.faa = p.dest AND p.n > 300",
    "SELECT t.dest, t.n, a.name FROM (SELECT dest, COUNT(*) AS n FROM flights WHERE day = 1 GROUP BY dest) t FULL JOIN airports a ON a.faa = t.dest",
    "SELECT faa FROM airports WHERE NOT EXISTS (SELECT 1 FROM (SELECT dest, COUNT(*) AS n FROM flights WHERE day = 1 GROUP BY dest) t WHERE t.dest = faa)",
    "SELECT faa FROM airports WHERE faa IN (SELECT dest FROM flights WHERE day = 1 GROUP BY dest HAVING COUNT(*) > 100)",
    "SELECT carrier, COUNT(*) AS n FROM flights WHERE day = 2 GROUP BY carrier EXCEPT SELECT carrier, COUNT(*) AS n FROM flights WHERE day = 3 GROUP BY carrier",
])
def test_changes_net_to_the_answer(clink, flights, oracle, sql):
    out = clink("run", "--changes=json", "--set", "batch_rows=500", "-p", 2, "-e", TABLES.format(flights) + sql).rows
    assert netted(out) == rows_of(oracle, sql)


def test_keys_that_move_between_subtasks(tmp_path, clink):
    """GROUP BY k, joined on what the group says, into a sink keyed by k: a key's rows come by way of other subtasks than before."""
    rnd = random.Random(SEED)
    print(f"CLINK_SEED={SEED}")
    rows = [{"k": rnd.randrange(200), "j": rnd.randrange(40), "v": i} for i in range(20000)]
    last = {}
    for r in rows:
        k = last.setdefault(r["k"], {"j": -1, "n": 0})
        k["j"], k["n"] = max(k["j"], (r["j"] * 7919 + r["v"]) % 40), k["n"] + 1
        r["j"] = (r["j"] * 7919 + r["v"]) % 40
    write_ndjson(tmp_path / "in.ndjson", rows)
    write_ndjson(tmp_path / "dim.ndjson", [{"j": j, "name": f"the name of the number {j}"} for j in range(0, 40, 1)])
    sql = f"""CREATE TABLE src (k BIGINT, j BIGINT, v BIGINT) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');
CREATE TABLE dim (j BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/dim.ndjson');
SELECT g.k, g.n, d.name FROM (SELECT k, MAX(j) AS j, COUNT(*) AS n FROM src GROUP BY k) g JOIN dim d ON g.j = d.j"""
    want = sorted(repr((k, g["n"], f"the name of the number {g['j']}")) for k, g in last.items())
    for p in (1, 3):
        assert tuples(clink("run", "-p", p, "-e", sql).rows) == want
        assert netted(clink("run", "-p", p, "--changes=json", "--set", "batch_rows=100", "-e", sql).rows) == want
    script = tmp_path / "job.sql"
    head, select = sql.rsplit(";\n", 1)
    script.write_text(head + f""";
CREATE TABLE snk (k BIGINT, n BIGINT, name VARCHAR, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='{tmp_path}/out', mode='upsert');
INSERT INTO snk {select};""")
    clink("run", "-p", 3, "--checkpoint-dir", tmp_path / "ck", script)
    assert tuples(read_rows(tmp_path / "out")) == want


def test_keys_that_move_while_the_job_runs(tmp_path):
    """The same over input that does not end: what is committed comes to the answer, though rows of a key overtake each other."""
    rnd = random.Random(SEED)
    print(f"CLINK_SEED={SEED}")
    rows = [{"k": rnd.randrange(300), "j": rnd.randrange(1000)} for _ in range(30000)]
    last = {}
    for r in rows:
        g = last.setdefault(r["k"], {"j": -1, "n": 0})
        g["j"], g["n"] = max(g["j"], r["j"]), g["n"] + 1
    write_ndjson(tmp_path / "in.ndjson", rows)
    write_ndjson(tmp_path / "dim.ndjson", [{"j": j, "name": f"the name of the number {j}"} for j in range(1000)])
    script = tmp_path / "job.sql"
    script.write_text(f"""SET batch_rows = 64;
CREATE TABLE src (k BIGINT, j BIGINT) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson', follow='true');
CREATE TABLE dim (j BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/dim.ndjson', follow='true');
CREATE TABLE snk (k BIGINT, n BIGINT, name VARCHAR, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='{tmp_path}/out', mode='upsert');
INSERT INTO snk SELECT g.k, g.n, d.name FROM (SELECT k, MAX(j) AS j, COUNT(*) AS n FROM src GROUP BY k) g JOIN dim d ON g.j = d.j;""")
    want = sorted(repr((k, g["n"], f"the name of the number {g['j']}")) for k, g in last.items())
    args = [CLINK, "run", "-p", "3", "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "100", str(script)]
    proc = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline, got = time.monotonic() + 120, None
        while got != want and time.monotonic() < deadline:
            assert proc.poll() is None, proc.communicate()[1].decode()
            time.sleep(0.2)
            got = tuples(read_rows(tmp_path / "out"))
        assert got == want
    finally:
        proc.kill()
        proc.communicate()


def test_kill_nine_while_joining(tmp_path):
    """Orders past customers, some of whom are missing: every row once, at whatever parallelism it goes on."""
    rnd = random.Random(SEED + 1)
    print(f"CLINK_SEED={SEED}")
    n, customers = 600_000, 30_000
    with open(tmp_path / "c.ndjson", "w") as f:
        f.writelines('{"id":%d,"name":"customer with a long name %d"}\n' % (c, c) for c in range(0, customers, 2))
    with open(tmp_path / "o.ndjson", "w") as f:
        f.writelines('{"o":%d,"c":%d}\n' % (i, i * 31 % customers) for i in range(n))
    script = tmp_path / "job.sql"
    script.write_text(f"""CREATE TABLE orders (o BIGINT, c BIGINT) WITH (connector='file', format='json', path='{tmp_path}/o.ndjson');
CREATE TABLE customers (id BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/c.ndjson');
CREATE TABLE out (o BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/out');
INSERT INTO out SELECT o, name FROM orders LEFT JOIN customers ON c = id;""")
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "20"]
    kills, code = 0, None
    while kills < 6 and code != 0:
        proc = subprocess.Popen(base + ["-p", str(kills % 3 + 1)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            proc.wait(rnd.uniform(0.05, 0.5))
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
            kills += 1
        err = proc.communicate()[1].decode()
        code = proc.returncode
        assert code in (0, -signal.SIGKILL), err
    run_clink("run", script, "--checkpoint-dir", tmp_path / "ck", "-p", 2)
    got = {r["o"]: r["name"] for r in read_rows(tmp_path / "out")}
    assert len(got) == len(read_rows(tmp_path / "out")) == n
    for o, name in got.items():
        c = o * 31 % customers
        assert name == (None if c % 2 else f"customer with a long name {c}")


def test_a_stream_beside_files_that_end_only_grows(tmp_path):
    """What goes past a file is said once, also with NULLs and where NOT EXISTS asks: tables that only take new rows hold it, through kill -9 and at another parallelism."""
    names = {k: f"name {k}" for k in range(0, 1000, 2)}
    write_ndjson(tmp_path / "names.ndjson", [{"id": k, "name": v} for k, v in names.items()])
    script = tmp_path / "job.sql"
    script.write_text(f"""CREATE TABLE src (i BIGINT, k BIGINT) WITH (connector='file', format='json', path='{tmp_path}/src.ndjson', follow='true');
CREATE TABLE names (id BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/names.ndjson');
CREATE TABLE l (i BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/l');
CREATE TABLE r (i BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/r');
CREATE TABLE a (i BIGINT) WITH (connector='file', format='json', path='{tmp_path}/a');
INSERT INTO l SELECT i, name FROM src LEFT JOIN names ON k = id;
INSERT INTO r SELECT i, name FROM names RIGHT JOIN src ON k = id AND i % 3 > 0;
INSERT INTO a SELECT i FROM src WHERE NOT EXISTS (SELECT 1 FROM names WHERE id = k);""")

    def append(first, last):
        with open(tmp_path / "src.ndjson", "a") as f:
            f.writelines('{"i":%d,"k":%d}\n' % (i, i * 7 % 1001) for i in range(first, last))

    def want(n):
        key = [i * 7 % 1001 for i in range(n)]
        return (tuples({"i": i, "name": names.get(key[i])} for i in range(n)), tuples({"i": i, "name": names.get(key[i]) if i % 3 else None} for i in range(n)),
                tuples({"i": i} for i in range(n) if key[i] not in names))

    def got():
        return tuple(tuples(read_rows(tmp_path / t)) for t in "lra")

    for run, n in enumerate((3000, 7000, 7001)):
        append((0, 3000, 7000)[run], n)
        job = subprocess.Popen([CLINK, "run", "-p", str(1 + run % 3), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "50", str(script)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 120
            while got() != want(n):
                assert job.poll() is None, job.stderr.read().decode()
                assert time.monotonic() < deadline, (len(got()[0]), n)
                time.sleep(0.1)
        finally:
            job.kill()
            err = job.communicate()[1].decode()
        assert "grows without end" not in err
        kept = max(f.stat().st_size for f in (tmp_path / "ck").rglob("checkpoint-*.snap"))
        assert kept < 60_000, kept  # of the names; the rows that went past would be over 100,000 more
