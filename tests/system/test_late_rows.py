"""Rows that come too late: which they are, by a model of a few lines, and where they go."""
import collections
import datetime
import json
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows, run_clink
from test_windows import SEED, aligned, disordered, iso, write

HOUR_MS = 3600_000
HOURS = (0, 1, 2, 3, 6, 12, 24)


def tables(path, late, lag_ms, columns="t BIGINT, k VARCHAR, v BIGINT", more=""):
    return (f"CREATE TABLE late ({columns}) WITH (connector='file', format='json', path='{late}');\n"
            f"CREATE TABLE src (t BIGINT, k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{path}', "
            f"event_time_column='t', watermark_lag_ms='{lag_ms}', late_table='late'{more});\n")


def closed_model(data, lag_ms, last_end, lateness_ms=0):
    """Which rows are late when each is a batch of its own: those all of whose windows end at or before the largest time so far, less the delay
    (and what lateness is allowed). last_end(t): the end of the last window of a row."""
    taken, late, top = [], [], None
    for row in data:
        gone = top is not None and last_end(row[0]) + lateness_ms <= top - lag_ms
        (late if gone else taken).append(row)
        top = row[0] if top is None else max(top, row[0])
    return taken, late


def as_rows(rows):
    return sorted((r["t"], r["k"], r["v"]) for r in rows)


@pytest.fixture(scope="module")
def departures(flights):
    """(planned hour in ms, origin, number) of the departed flights, in the order in which they left."""
    import csv
    out = []
    with open(os.path.join(flights, "flights.csv")) as f:
        for n, r in enumerate(csv.DictReader(f)):
            if r["dep_delay"] == "NA":
                continue
            planned = datetime.datetime(int(r["year"]), int(r["month"]), int(r["day"]), int(r["hour"])) - datetime.datetime(1970, 1, 1)
            ms = int(planned.total_seconds()) * 1000
            out.append((ms + (int(r["minute"]) + int(r["dep_delay"])) * 60_000, (ms, r["origin"], n)))
    return [row for _, row in sorted(out, key=lambda x: x[0])]


def test_departures_that_are_late_for_their_hour(clink, tmp_path, departures):
    behind, latest, top = collections.Counter(), 0, departures[0][0]
    for t, _, _ in departures:
        top = max(top, t)
        latest = max(latest, top - t)
        for h in HOURS:
            behind[h] += top - t > h * HOUR_MS
    assert len(departures) == 328_521
    assert [behind[h] for h in HOURS] == [77556, 16024, 5402, 1961, 117, 28, 0]
    write(tmp_path / "src.ndjson", departures)
    for h in HOURS:  # an hour closes when the watermark is at its end: the time is behind by at least the delay and the hour itself
        taken, late = closed_model(departures, h * HOUR_MS, lambda t: t + HOUR_MS)
        assert len(late) == behind[h]
        r = clink("run", "--set", "batch_rows=1", "-e", tables("src.ndjson", f"late-{h}", h * HOUR_MS) +
                  "SELECT k, window_start AS s, COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '1' HOUR), k")
        assert as_rows(read_rows(tmp_path / f"late-{h}")) == sorted(late)
        want = collections.Counter((k, iso(t)) for t, k, _ in taken)
        assert {(x["k"], x["s"]): x["n"] for x in r.rows} == want and len(r.rows) == len(want)
        hours = latest // HOUR_MS - h  # all times are whole hours
        assert (f"{behind[h]} of 328521 rows came too late for their windows, up to {hours} h behind the watermark, and went to late (" in r.err) == (behind[h] > 0)


SHAPES = {
    "TUMBLE(t, INTERVAL '10' SECOND)": lambda t: aligned(t, 10000) + 10000,
    "TUMBLE(t, INTERVAL '10' SECOND, INTERVAL '3' SECOND)": lambda t: aligned(t, 10000, 3000) + 10000,
    "HOP(t, INTERVAL '4' SECOND, INTERVAL '10' SECOND)": lambda t: aligned(t, 4000) + 10000,
    "CUMULATE(t, INTERVAL '2' SECOND, INTERVAL '10' SECOND)": lambda t: aligned(t, 10000) + 10000,
}


@pytest.mark.parametrize("call", SHAPES)
def test_late_rows_of_every_window(clink, tmp_path, call):
    print(f"CLINK_SEED={SEED}")
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 2000, 200_000, 30_000))]
    write(tmp_path / "src.ndjson", data)
    for lateness in (0, 3000):
        _, late = closed_model(data, 2000, SHAPES[call], lateness)
        assert late
        clink("run", "--set", "batch_rows=1", "--changes", "-e",
              tables("src.ndjson", f"late-{lateness}", 2000, more=f", allowed_lateness_ms='{lateness}'") +
              f"SELECT COUNT(*) AS n FROM src GROUP BY {call}, k")
        assert as_rows(read_rows(tmp_path / f"late-{lateness}")) == sorted(late)


@pytest.mark.parametrize("p,batch", [(1, None), (2, 7), (4, 50)])
def test_nothing_is_lost_between_window_and_late_table(clink, tmp_path, p, batch):
    """What is late depends on batches and parallelism, but each row is counted by the window or is in the late table, never both. Columns that
    only the late table wants are there: unread ones, and one that is computed."""
    print(f"CLINK_SEED={SEED}")
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 20_000, 400_000, 60_000))]
    write(tmp_path / "src.ndjson", data)
    sql = ("CREATE TABLE late (twice BIGINT, op VARCHAR, v BIGINT) WITH (connector='file', format='json', path='late');\n"
           "CREATE TABLE src (t BIGINT, k VARCHAR, v BIGINT, twice AS v * 2) WITH (connector='file', format='json', path='src.ndjson', "
           "event_time_column='t', watermark_lag_ms='1000', late_table='late');\n")
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    r = clink("run", "-p", p, *settings, "-e", sql + "SELECT SUM(n) AS n FROM (SELECT SUM(v) AS n FROM "
              "(SELECT t, v, upper(k) AS k FROM src) GROUP BY TUMBLE(t, INTERVAL '1' SECOND), k)")
    late = read_rows(tmp_path / "late")
    assert (late or p > 1) and all(x["op"] == "+I" and x["twice"] == 2 * x["v"] for x in late)
    assert sum(x["v"] for x in late) + r.rows[0]["n"] == sum(n for _, _, n in data)
    assert not late or f"{len(late)} of " in r.err


@pytest.mark.parametrize("p,batch", [(1, 1), (2, 7), (4, 50)])
def test_windows_over_windows_that_change(clink, tmp_path, p, batch):
    """A window over one that corrects what it said is corrected with it; only the first judges who is late."""
    print(f"CLINK_SEED={SEED}")
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 3000, 400_000, 40_000))]
    write(tmp_path / "src.ndjson", data)
    r = clink("run", "-p", p, "--set", f"batch_rows={batch}", "--changes=json", "-e",
              tables("src.ndjson", "late", 2000, more=", allowed_lateness_ms='15000'") +
              "SELECT k, window_start AS s, COUNT(*) AS w, SUM(n) AS n, SUM(v) AS v, MAX(n) AS hi, MIN(v) AS lo FROM (SELECT k, window_time AS wt, COUNT(*) AS n, "
              "SUM(v) AS v FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end, window_time) "
              "GROUP BY TUMBLE(wt, INTERVAL '1' MINUTE), k")
    net = collections.Counter()
    for line in r.lines:
        op, *values = json.loads(line).values()
        net[tuple(values)] += -1 if op in ("-U", "-D") else 1
    late = as_rows(read_rows(tmp_path / "late"))
    assert set(net.values()) <= {0, 1} and (p > 1 or (late and "-U" in r.out))  # with several, the slowest piece of the file holds time back
    if batch == 1:
        assert late == sorted(closed_model(data, 2000, lambda t: aligned(t, 10000) + 10000, 15000)[1])
    inner = collections.defaultdict(list)
    for t, k, n in sorted(set(data) - set(late)):
        inner[k, aligned(t, 10000)].append(n)
    outer = collections.defaultdict(list)
    for (k, s), of in inner.items():
        outer[k, iso(aligned(s, 60000))].append(of)
    assert +net == collections.Counter((k, s, len(of), sum(map(len, of)), sum(map(sum, of)), max(map(len, of)), min(map(sum, of))) for (k, s), of in outer.items())


def test_two_windows_share_a_late_table(clink, tmp_path):
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 2000, 200_000, 30_000))]
    write(tmp_path / "src.ndjson", data)
    calls = list(SHAPES)[:2]
    late = [row for c in calls for row in closed_model(data, 0, SHAPES[c])[1]]
    clink("run", "--set", "batch_rows=1", "-e", tables("src.ndjson", "late", 0) +
          " UNION ALL ".join(f"SELECT COUNT(*) AS n FROM src GROUP BY {c}" for c in calls))
    assert as_rows(read_rows(tmp_path / "late")) == sorted(late)


def test_late_rows_of_sessions(clink, tmp_path):
    """A row is late when the session it would be in or begin is over."""
    write(tmp_path / "src.ndjson", [(0, "a", 0), (5000, "a", 1), (20000, "b", 2), (6000, "a", 3), (11000, "c", 4), (9000, "c", 5), (30001, "b", 6), (18000, "c", 7)])
    r = clink("run", "--set", "batch_rows=1", "-e", tables("src.ndjson", "late", 0) +
              "SELECT k, COUNT(*) AS n FROM TABLE(SESSION(TABLE src PARTITION BY k, DESCRIPTOR(t), INTERVAL '10' SECOND)) "
              "GROUP BY k, window_start, window_end")
    assert sorted((x["k"], x["n"]) for x in r.rows) == [("a", 2), ("b", 1), ("b", 1), ("c", 2)]
    assert as_rows(read_rows(tmp_path / "late")) == [(6000, "a", 3), (18000, "c", 7)]


def behind_model(data, lag_ms):
    """Rows behind the watermark, when each is a batch of its own."""
    taken, late, top = [], [], None
    for row in data:
        (late if top is not None and row[0] < top - lag_ms else taken).append(row)
        top = row[0] if top is None else max(top, row[0])
    return taken, late


@pytest.mark.parametrize("query", [
    "SELECT v, COUNT(*) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM src",
    "SELECT v, SUM(v) OVER (ORDER BY t RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW) AS n FROM (SELECT t, v, upper(k) AS k FROM src)",
    "SELECT v FROM (SELECT v, ROW_NUMBER() OVER (PARTITION BY v ORDER BY t) AS n FROM src) WHERE n = 1",
])
def test_late_rows_of_over(clink, tmp_path, query):
    """A row behind the watermark is not among the results and is in the late table."""
    print(f"CLINK_SEED={SEED}")
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 2000, 200_000, 30_000))]
    write(tmp_path / "src.ndjson", data)
    taken, late = behind_model(data, 2000)
    r = clink("run", "--set", "batch_rows=1", "--changes", "-e", tables("src.ndjson", "late", 2000) + query)
    assert late and as_rows(read_rows(tmp_path / "late")) == sorted(late)
    assert sorted(x["v"] for x in r.rows) == sorted(n for _, _, n in taken)
    assert f"{len(late)} of " in r.err


JOINS = {  # each says a row of the left at least once
    "interval": "SELECT src.v FROM src LEFT JOIN r ON src.k = r.k AND r.t BETWEEN src.t - 1000 AND src.t",
    "temporal": "SELECT src.v FROM src LEFT JOIN r FOR SYSTEM_TIME AS OF src.t ON src.k = r.k",
    "windows": "SELECT a.v FROM TABLE(TUMBLE(TABLE (SELECT t, v, upper(k) AS k FROM src), DESCRIPTOR(t), INTERVAL '1' SECOND)) a LEFT JOIN "
               "TABLE(TUMBLE(TABLE r, DESCRIPTOR(t), INTERVAL '1' SECOND)) b ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end",
    "over": "SELECT v FROM (SELECT v, COUNT(*) OVER (PARTITION BY k ORDER BY t) AS n FROM src)",
}


def join_tables(tmp_path, rnd, n=20_000):
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(rnd, n, 20 * n, 60_000))]
    right = sorted((t, k, n) for n, (t, k, _) in enumerate(disordered(rnd, n // 10, 20 * n, 1)))
    write(tmp_path / "src.ndjson", data)
    write(tmp_path / "r.ndjson", right)
    return data, (tables(tmp_path / "src.ndjson", tmp_path / "late", 1000) +
                  "CREATE TABLE r (t BIGINT, k VARCHAR, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', "
                  f"path='{tmp_path}/r.ndjson', event_time_column='t', watermark_lag_ms='1000');\n")


@pytest.mark.parametrize("p,batch", [(1, 1), (2, 7), (4, 50)])
@pytest.mark.parametrize("query", JOINS)
def test_nothing_is_lost_between_join_and_late_table(clink, tmp_path, query, p, batch):
    """What is late depends on how far both sides have been read, but each row of the left is said or is in the late table, never both, and was
    behind what had been seen."""
    print(f"CLINK_SEED={SEED}")
    data, sql = join_tables(tmp_path, random.Random(SEED))
    r = clink("run", "-p", p, "--changes", *(["--set", f"batch_rows={batch}"] if batch else []), "-e", sql + JOINS[query])
    late, said = [x["v"] for x in read_rows(tmp_path / "late")], {x["v"] for x in r.rows}
    assert (late or p > 1) and len(set(late)) == len(late)
    assert said.isdisjoint(late) and said.union(late) == {n for _, _, n in data}
    assert not late or f"{len(late)} of " in r.err
    behind = {n for _, _, n in behind_model(data, 1000)[1]}
    assert behind.issuperset(late)


def test_both_sides_of_a_join_have_late_rows(clink, tmp_path):
    """Each row of either side is said or is in the late table, which gets those of both."""
    print(f"CLINK_SEED={SEED}")
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 5000, 400_000, 60_000))]
    write(tmp_path / "src.ndjson", data)
    r = clink("run", "--changes", "--set", "batch_rows=50", "-e", tables("src.ndjson", "late", 1000) +
              "SELECT a.v, b.v AS w FROM src a FULL JOIN src b ON a.k = b.k AND b.t BETWEEN a.t - 1000 AND a.t")
    late = collections.Counter(x["v"] for x in read_rows(tmp_path / "late"))
    said = [{x[side] for x in r.rows} for side in ("v", "w")]
    assert set(late.values()) == {1, 2} or set(late.values()) == {2}
    assert all(late[n] == sum(n not in side for side in said) for _, _, n in data)


@pytest.mark.parametrize("query", JOINS)
def test_late_rows_of_joins_survive_kills(tmp_path, query):
    """Exactly once: after kills and restarts at other parallelisms every row was said or is in the late table, once."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    data, sql = join_tables(tmp_path, rnd, 100_000)
    script = tmp_path / "job.sql"
    script.write_text("SET batch_rows = 100;\n" + sql + f"CREATE TABLE snk (v BIGINT) WITH (connector='file', format='json', path='{tmp_path}/out');\nINSERT INTO snk {JOINS[query]};\n")
    killed(rnd, script, tmp_path, ["--changes"])
    late, said = [r["v"] for r in read_rows(tmp_path / "late")], {r["v"] for r in read_rows(tmp_path / "out")}
    assert late and len(set(late)) == len(late)
    assert said.isdisjoint(late) and said.union(late) == {n for _, _, n in data}


def killed(rnd, script, tmp_path, more=()):
    """Runs the script to its end, killed a few times and restarted at other parallelisms."""
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "20", *more]
    for _ in range(4):
        proc = subprocess.Popen(base + ["-p", str(rnd.choice([1, 2, 4]))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            proc.wait(rnd.uniform(0.05, 0.4))
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
        err = proc.communicate()[1].decode()
        assert proc.returncode in (0, -signal.SIGKILL), err
    run_clink("run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "-p", 2, *more)


def test_late_rows_survive_kills(tmp_path):
    """Exactly once: after kills and restarts at other parallelisms every row was counted by a window or is in the late table."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(rnd, 200_000, 2_000_000, 60_000))]
    write(tmp_path / "src.ndjson", data)
    script = tmp_path / "job.sql"
    script.write_text(tables(tmp_path / "src.ndjson", tmp_path / "late", 1000) +
                      f"CREATE TABLE snk (s BIGINT, n BIGINT) WITH (connector='file', format='json', path='{tmp_path}/out');\n"
                      "INSERT INTO snk SELECT SUM(v), COUNT(*) FROM src GROUP BY TUMBLE(t, INTERVAL '1' SECOND), k;\n")
    killed(rnd, script, tmp_path)
    late, counted = [r["v"] for r in read_rows(tmp_path / "late")], read_rows(tmp_path / "out")
    assert late and len(set(late)) == len(late)
    assert sum(late) + sum(r["s"] for r in counted) == len(data) * (len(data) - 1) // 2
    assert len(late) + sum(r["n"] for r in counted) == len(data)


@pytest.mark.parametrize("query,rows", [("SELECT COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '10' SECOND)", [{"n": 1}, {"n": 1}]),
                                        ("SELECT COUNT(*) OVER (ORDER BY t) AS n FROM src", [{"n": 1}, {"n": 2}])])
def test_what_reads_the_late_table_comes_after(clink, tmp_path, query, rows):
    write(tmp_path / "src.ndjson", [(1000, "a", 1), (30000, "a", 2), (2000, "a", 3)])
    script = tables("src.ndjson", "late", 0).replace(", format='json', path='late'", "").replace("connector='file');", "connector='memory');", 1)
    r = clink("run", "--set", "batch_rows=1", "-e", script +
              f"{query}; SELECT v FROM late")
    assert [json.loads(x) for x in r.lines] == rows + [{"v": 3}]


def read_when(path, done, proc, seconds=60):
    end = time.monotonic() + seconds
    while not done(read_rows(path)):
        assert proc.poll() is None, proc.stderr.read().decode()
        assert time.monotonic() < end, read_rows(path)
        time.sleep(0.01)


def test_files_that_leave_and_return(tmp_path):
    """Followed files go quiet, are left out of the watermark, and come back with rows from before: time does not go back with them. Every window is
    said once, and each row is in one or in the late table, also over a kill in the middle."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    files = [tmp_path / "in" / f"{name}.ndjson" for name in "abc"]
    (tmp_path / "in").mkdir()
    for f in files:
        f.touch()
    script = tmp_path / "job.sql"
    script.write_text(f"""CREATE TABLE late (i BIGINT) WITH (connector='file', format='json', path='{tmp_path}/late');
        CREATE TABLE src (i BIGINT, t BIGINT) WITH (connector='file', format='json', path='{tmp_path}/in', follow='true', event_time_column='t',
          watermark_lag_ms='500', idle_timeout_ms='40', late_table='late');
        CREATE TABLE snk (s TIMESTAMP_LTZ(3), n BIGINT, total BIGINT) WITH (connector='file', format='json', path='{tmp_path}/out');
        INSERT INTO snk SELECT window_start, COUNT(*), SUM(i) FROM src GROUP BY TUMBLE(t, INTERVAL '1' SECOND);""")

    def start():
        return subprocess.Popen([CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "20",
                                 "-p", str(rnd.choice([1, 2, 4]))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def append(f, t):
        nonlocal count
        with open(f, "a") as to:
            to.write('{"i":%d,"t":%d}\n' % (count, t))
        count += t < 1_000_000
    count, clock, proc = 0, [0, 0, 0], start()
    try:
        for step in range(60):
            k = rnd.randrange(3)
            for _ in range(rnd.randrange(1, 5)):
                clock[k] += rnd.randrange(400)
                append(files[k], max(0, clock[k] - rnd.randrange(800)))
            time.sleep(rnd.choice([0, 0, 0, 0.02, 0.1]))
            if step == 30:
                proc.kill()
                proc.wait()
                proc = start()
        for f in files:
            append(f, 1_000_000)
        read_when(tmp_path / "out", lambda rows: sum(r["n"] for r in rows) + len(read_rows(tmp_path / "late")) >= count, proc)
    finally:
        proc.kill()
        proc.wait()
    said, late = read_rows(tmp_path / "out"), [r["i"] for r in read_rows(tmp_path / "late")]
    assert len({r["s"] for r in said}) == len(said) and len(set(late)) == len(late)
    assert sum(r["n"] for r in said) + len(late) == count
    assert sum(r["total"] for r in said) + sum(late) == count * (count - 1) // 2
