"""Rows that come too late: which they are, by a model of a few lines, and where they go."""
import collections
import datetime
import json
import os
import random
import signal
import subprocess

import pytest
from conftest import CLINK, run_clink
from test_windows import SEED, aligned, disordered, iso, read_dir, write

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
    behind, top = collections.Counter(), departures[0][0]
    for t, _, _ in departures:
        top = max(top, t)
        for h in HOURS:
            behind[h] += top - t > h * HOUR_MS
    assert len(departures) == 328_521
    assert [behind[h] for h in HOURS] == [77556, 16024, 5402, 1961, 117, 28, 0]
    write(tmp_path / "src.ndjson", departures)
    for h in HOURS if os.environ.get("CLINK_LONG") else (0, 12):  # an hour closes when the watermark is at its end: the time is behind by at least the delay and the hour itself
        taken, late = closed_model(departures, h * HOUR_MS, lambda t: t + HOUR_MS)
        assert len(late) == behind[h]
        r = clink("run", "--set", "batch_rows=1", "-e", tables("src.ndjson", f"late-{h}", h * HOUR_MS) +
                  "SELECT k, window_start AS s, COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '1' HOUR), k")
        assert as_rows(read_dir(tmp_path / f"late-{h}")) == sorted(late)
        want = collections.Counter((k, iso(t)) for t, k, _ in taken)
        assert {(x["k"], x["s"]): x["n"] for x in r.rows} == want and len(r.rows) == len(want)
        assert (f"{behind[h]} rows" in r.err) == (behind[h] > 0)


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
        assert as_rows(read_dir(tmp_path / f"late-{lateness}")) == sorted(late)


@pytest.mark.parametrize("p,batch", [(1, None), (2, 7), (4, None)])
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
    late = read_dir(tmp_path / "late")
    assert late and all(x["op"] == "+I" and x["twice"] == 2 * x["v"] for x in late)
    assert sum(x["v"] for x in late) + r.rows[0]["n"] == sum(n for _, _, n in data)
    assert f"{len(late)} rows" in r.err


def test_two_windows_share_a_late_table(clink, tmp_path):
    data = [(t, k, n) for n, (t, k, _) in enumerate(disordered(random.Random(SEED), 2000, 200_000, 30_000))]
    write(tmp_path / "src.ndjson", data)
    calls = list(SHAPES)[:2]
    late = [row for c in calls for row in closed_model(data, 0, SHAPES[c])[1]]
    clink("run", "--set", "batch_rows=1", "-e", tables("src.ndjson", "late", 0) +
          " UNION ALL ".join(f"SELECT COUNT(*) AS n FROM src GROUP BY {c}" for c in calls))
    assert as_rows(read_dir(tmp_path / "late")) == sorted(late)


def test_late_rows_of_sessions(clink, tmp_path):
    """A row is late when the session it would be in or begin is over."""
    write(tmp_path / "src.ndjson", [(0, "a", 0), (5000, "a", 1), (20000, "b", 2), (6000, "a", 3), (11000, "c", 4), (9000, "c", 5), (30001, "b", 6), (18000, "c", 7)])
    r = clink("run", "--set", "batch_rows=1", "-e", tables("src.ndjson", "late", 0) +
              "SELECT k, COUNT(*) AS n FROM TABLE(SESSION(TABLE src PARTITION BY k, DESCRIPTOR(t), INTERVAL '10' SECOND)) "
              "GROUP BY k, window_start, window_end")
    assert sorted((x["k"], x["n"]) for x in r.rows) == [("a", 2), ("b", 1), ("b", 1), ("c", 2)]
    assert as_rows(read_dir(tmp_path / "late")) == [(6000, "a", 3), (18000, "c", 7)]


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
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "20"]
    for _ in range(4):
        proc = subprocess.Popen(base + ["-p", str(rnd.choice([1, 2, 4]))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            proc.wait(rnd.uniform(0.05, 0.4))
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
        err = proc.communicate()[1].decode()
        assert proc.returncode in (0, -signal.SIGKILL), err
    run_clink("run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "-p", 2)
    late, counted = [r["v"] for r in read_dir(tmp_path / "late")], read_dir(tmp_path / "out")
    assert late and len(set(late)) == len(late)
    assert sum(late) + sum(r["s"] for r in counted) == len(data) * (len(data) - 1) // 2
    assert len(late) + sum(r["n"] for r in counted) == len(data)


def test_what_reads_the_late_table_comes_after(clink, tmp_path):
    write(tmp_path / "src.ndjson", [(1000, "a", 1), (30000, "a", 2), (2000, "a", 3)])
    script = tables("src.ndjson", "late", 0).replace(", format='json', path='late'", "").replace("connector='file');", "connector='memory');", 1)
    r = clink("run", "--set", "batch_rows=1", "-e", script +
              "SELECT COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '10' SECOND); SELECT v FROM late")
    assert [json.loads(x) for x in r.lines] == [{"n": 1}, {"n": 1}, {"v": 3}]
