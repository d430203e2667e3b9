"""Windows over event time against plain Python: real data, every batch size and parallelism, disorder, lateness, kill -9."""
import collections
import csv
import datetime
import json
import os
import random
import signal
import subprocess
import zoneinfo

import pytest
from conftest import CLINK, read_rows, run_clink

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))

FLIGHTS = """CREATE TABLE flights (origin VARCHAR, distance BIGINT, time_hour TIMESTAMP_LTZ(3),
  WATERMARK FOR time_hour AS time_hour - INTERVAL '{lag}' DAY)
WITH (connector='file', format='csv', path='{dir}/flights.csv', header='true', null_string='NA');
"""


@pytest.fixture(scope="module")
def rows(flights):
    with open(os.path.join(flights, "flights.csv")) as f:
        return list(csv.DictReader(f))


@pytest.fixture(scope="module")
def by_hour(rows):
    """(origin, hour) -> (flights, distance); an hour as the file writes it."""
    out = collections.defaultdict(lambda: (0, 0))
    for r in rows:
        n, d = out[r["origin"], r["time_hour"][:13]]
        out[r["origin"], r["time_hour"][:13]] = n + 1, d + int(r["distance"])
    return out


def key(r):
    return r["origin"], r["s"][:13].replace(" ", "T")


@pytest.mark.parametrize("p,batch", [(1, 0), (2, 0), (4, 0), (1, 7), (4, 7), (2, 1)])
def test_tumbling_hours(clink, flights, by_hour, p, batch):
    """The file is ordered by month as text, so only a long delay covers its disorder."""
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    got = clink("run", "-p", p, *settings, "-e", FLIGHTS.format(dir=flights, lag=400) +
                "SELECT origin, window_start AS s, COUNT(*) AS n, SUM(distance) AS d FROM "
                "TABLE(TUMBLE(TABLE flights, DESCRIPTOR(time_hour), INTERVAL '1' HOUR)) "
                "GROUP BY origin, window_start, window_end").rows
    assert len(got) == 19486 and max(r["n"] for r in got) == 38
    want = {(o, h.replace(" ", "T")): v for (o, h), v in by_hour.items()}
    assert {key(r): (r["n"], r["d"]) for r in got} == want


def write(path, rows):
    with open(path, "w") as f:
        for t, k, v in rows:
            f.write('{"t":%d,"k":"%s","v":%d}\n' % (t, k, v))


def table(path, lag_ms, options=""):
    return (f"CREATE TABLE src (t BIGINT, k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{path}', "
            f"event_time_column='t', watermark_lag_ms='{lag_ms}'{options});\n")


def disordered(rnd, n, span_ms, bound_ms):
    """Times from below 1970 on, each at most bound_ms behind the largest before it."""
    out, top = [], -span_ms // 2
    for i in range(n):
        top = max(top, -span_ms // 2 + span_ms * i // n)
        out.append((top - rnd.randrange(bound_ms + 1), f"key {rnd.randrange(20)}", rnd.randrange(-100, 100)))
        top = max(top, out[-1][0])
    return out


def aligned(t, size, offset=0):
    return (t - offset) // size * size + offset


def iso(ms):
    t = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    return t.strftime("%Y-%m-%dT%H:%M:%S") + (".%03d" % (ms % 1000) if ms % 1000 else "") + "Z"


SHAPES = [
    ("TUMBLE(t, INTERVAL '10' SECOND)", lambda t: [(aligned(t, 10000), aligned(t, 10000) + 10000)]),
    ("TUMBLE(t, INTERVAL '10' SECOND, INTERVAL '3' SECOND)",
     lambda t: [(aligned(t, 10000, 3000), aligned(t, 10000, 3000) + 10000)]),
    ("HOP(t, INTERVAL '2' SECOND, INTERVAL '10' SECOND)",
     lambda t: [(s, s + 10000) for s in range(aligned(t, 2000) - 8000, aligned(t, 2000) + 1, 2000)]),
    ("HOP(t, INTERVAL '4' SECOND, INTERVAL '10' SECOND)",
     lambda t: [(s, s + 10000) for s in range(aligned(t, 4000) - 8000, aligned(t, 4000) + 1, 4000) if s + 10000 > t]),
    ("HOP(t, INTERVAL '0.7' SECOND, INTERVAL '10' SECOND)",
     lambda t: [(s, s + 10000) for s in range(aligned(t, 700) - 9800, aligned(t, 700) + 1, 700) if s + 10000 > t]),
    ("CUMULATE(t, INTERVAL '2' SECOND, INTERVAL '10' SECOND)",
     lambda t: [(aligned(t, 10000), e) for e in range(aligned(t, 2000) + 2000, aligned(t, 10000) + 10001, 2000)]),
]


LISTS = {  # with DISTINCT beside MIN each window counts for itself, else windows share slices
    "COUNT(*) AS n, SUM(v) AS v, MIN(v) AS lo, MAX(v) AS hi, COUNT(DISTINCT v) AS d, AVG(v) AS a":
        lambda v: (len(v), sum(v), min(v), max(v), len(set(v)), sum(v) / len(v)),
    "COUNT(*) AS n, SUM(v) AS v, MIN(x) AS lo, MAX(x) AS hi, AVG(v * 90000000000000000) AS a":
        lambda v: (len(v), sum(v), min(map(text, v)), max(map(text, v)), float(sum(v) * 90000000000000000) / len(v)),
    "COUNT(DISTINCT x) AS n, SUM(DISTINCT v) AS v, COUNT(DISTINCT v) FILTER (WHERE v > 0) AS lo, COUNT(DISTINCT k) AS hi, AVG(v) AS a":
        lambda v: (len(set(v)), sum(set(v)), len({x for x in v if x > 0}), 1, sum(v) / len(v)),
}


def text(v):
    return f"a text that is longer than twelve bytes, number {v}"


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("p,batch", [(1, 0), (2, 7), (4, 1)])
def test_disorder_within_the_delay(clink, tmp_path, shape, p, batch):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    data = disordered(rnd, 3000, 300_000, 5000)
    write(tmp_path / "src.ndjson", data)
    call, windows = SHAPES[shape]
    groups = collections.defaultdict(list)
    for t, k, v in data:
        for w in windows(t):
            groups[k, *w].append(v)
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    for columns, model in LISTS.items():
        got = clink("run", "-p", p, *settings, "-e", table("src.ndjson", 5000) +
                    f"SELECT k, window_start AS s, window_end AS e, {columns} FROM (SELECT *, 'a text that is longer than "
                    f"twelve bytes, number ' || CAST(v AS VARCHAR) AS x FROM src) GROUP BY {call}, k").rows
        want = {(k, iso(s), iso(e)): model(v) for (k, s, e), v in groups.items()}
        assert {(r["k"], r["s"], r["e"]): tuple(r.values())[3:] for r in got} == want and len(got) == len(want)


@pytest.mark.parametrize("p,batch", [(1, 0), (2, 7), (4, 1)])
def test_sessions(clink, tmp_path, p, batch):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    data = disordered(rnd, 3000, 300_000, 5000)
    write(tmp_path / "src.ndjson", data)
    gap, want = rnd.choice([500, 1000, 2000]), {}
    for key in {k for _, k, _ in data}:
        session = []
        for t, v in sorted((t, v) for t, k, v in data if k == key) + [(1 << 60, 0)]:
            if session and t - session[-1][0] >= gap:
                values = [v for _, v in session]
                want[key, iso(session[0][0])] = (iso(session[-1][0] + gap), len(values), sum(values), max(values))
                session = []
            session.append((t, v))
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    got = clink("run", "-p", p, *settings, "-e", table("src.ndjson", 5000) +
                "SELECT k, window_start AS s, window_end AS e, COUNT(*) AS n, SUM(v) AS v, MAX(v) AS hi FROM "
                f"TABLE(SESSION(TABLE src PARTITION BY k, DESCRIPTOR(t), INTERVAL '{gap}' MILLISECOND)) "
                "GROUP BY k, window_start, window_end").rows
    assert {(r["k"], r["s"]): (r["e"], r["n"], r["v"], r["hi"]) for r in got} == want and len(got) == len(want)


def test_times_that_are_none(clink, tmp_path):
    """Each has one outcome, at the watermark and in the window: NULL and 2^63 - 1 are in no window, what is negative is like any other
    time, a text is a bad record."""
    times = ["null", "9223372036854775807", "-9223372036854775808", "-1", "253402300799000", "5000", "0"]
    with open(tmp_path / "src.ndjson", "w") as f:
        f.writelines('{"t":%s,"k":"x","v":1}\n' % t for t in times)
    ask = "SELECT window_start AS s, COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '10' SECOND)"
    got = clink("run", "--set", "batch_rows=1", "-e", table("src.ndjson", 0) + ask)
    assert {r["s"]: r["n"] for r in got.rows} == {"1969-12-31T23:59:50Z": 1, "9999-12-31T23:59:50Z": 1}
    assert "2 of 7 rows came too late" in got.err
    assert clink("run", "-e", table("src.ndjson", 0) + "SELECT COUNT(*) AS n FROM src").rows == [{"n": len(times)}]
    with open(tmp_path / "src.ndjson", "a") as f:
        f.write('{"t":"2020-01-01T00:00:00","k":"x","v":1}\n')
    assert clink("run", "-e", table("src.ndjson", 0) + ask, ok=False).code == 1
    got = clink("run", "-e", table("src.ndjson", 0, ", on_error='skip'") + "SELECT COUNT(*) AS n FROM src").rows
    assert got == [{"n": len(times)}]


TEN_SECONDS = "SELECT window_start AS s, COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '10' SECOND)"


@pytest.mark.parametrize("digits", [0, 1, 3, 6])
@pytest.mark.parametrize("call", ["TUMBLE(t, INTERVAL '1.5' SECOND)", "HOP(t, INTERVAL '1.5' SECOND, INTERVAL '1.5' SECOND)", "SESSION(t, INTERVAL '1.500' SECOND)"])
def test_a_window_shows_milliseconds_over_times_that_do_not(clink, tmp_path, call, digits):
    (tmp_path / "src.ndjson").write_text('{"t":"2026-01-02T09:00:00"}\n{"t":"2026-01-02T09:00:04"}\n')
    got = clink("run", "-e", f"CREATE TABLE src (t TIMESTAMP({digits}), WATERMARK FOR t AS t) WITH (connector='file', path='src.ndjson');"
                f"SELECT window_start AS s, window_end AS e, window_time AS w FROM src GROUP BY {call}").rows
    starts = [("2026-01-02T09:00:00", "01"), ("2026-01-02T09:00:0" + ("4" if "SESSION" in call else "3"), "05" if "SESSION" in call else "04")]
    assert [(r["s"], r["e"], r["w"]) for r in got] == [(s, f"2026-01-02T09:00:{e}.500", f"2026-01-02T09:00:{e}.499") for s, e in starts]


ZONES = {"Europe/Berlin": ([3600], 86400), "Asia/Kathmandu": ([900], 3600), "Australia/Lord_Howe": ([900, 1800], 3600), "+05:30": ([1800], 3600)}


@pytest.mark.parametrize("zone", ZONES)
def test_windows_of_instants_and_of_the_wall_clock(clink, tmp_path, zone):
    """Over a year with its changes of the clock: windows that begin at the same times in UTC are those of the zone, others are refused, and the wall
    clock, with a delay of an hour for when it is set back, has those of the zone, too."""
    start = datetime.datetime(2025, 12, 31, 20, tzinfo=datetime.timezone.utc)
    at = [start + datetime.timedelta(minutes=97 * i) for i in range(6000)]
    with open(tmp_path / "src.ndjson", "w") as f:
        f.writelines('{"t":"%s"}\n' % t.strftime("%Y-%m-%dT%H:%M:%SZ") for t in at)
    tz = zoneinfo.ZoneInfo(zone) if "/" in zone else datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    ddl = ("CREATE TABLE src (t TIMESTAMP_LTZ(3), l AS CAST(t AS TIMESTAMP(3)), WATERMARK FOR {0} AS {0} - INTERVAL '1' HOUR) WITH (connector='file', path='src.ndjson');"
           "SELECT window_start AS s, COUNT(*) AS n FROM src GROUP BY {1}({0}, INTERVAL '{2}' SECOND)")
    wall = [int(t.astimezone(tz).replace(tzinfo=datetime.timezone.utc).timestamp()) for t in at]
    same, other = ZONES[zone]
    for seconds in same:
        for call in ("TUMBLE", f"HOP(t, INTERVAL '{seconds}' SECOND, INTERVAL '{3 * seconds}' SECOND)"):
            sql = ddl.format("t", call, seconds) if call == "TUMBLE" else ddl.format("t", "TUMBLE", seconds).replace(f"TUMBLE(t, INTERVAL '{seconds}' SECOND)", call)
            got = {r["s"]: r["n"] for r in clink("run", "--set", f"timezone={zone}", "-e", sql).rows}
            per = collections.Counter(s for t in at for s in range(aligned(int(t.timestamp()), seconds), aligned(int(t.timestamp()), seconds) - (0 if call == "TUMBLE" else 2 * seconds) - 1, -seconds))
            assert got == {iso(s * 1000): n for s, n in per.items()}
            assert all((s + (w - int(t.timestamp()))) % seconds == 0 for t, w in zip(at, wall) for s in [aligned(int(t.timestamp()), seconds)])
    r = clink("run", "--set", f"timezone={zone}", "-e", ddl.format("t", "TUMBLE", other), ok=False)
    assert r.code == 1 and "begin at other times" in r.err and zone in r.err
    r = clink("run", "--set", f"timezone={zone}", "-e", ddl.format("l", "TUMBLE", other))
    assert {x["s"]: x["n"] for x in r.rows} == {iso(s * 1000)[:-1]: n for s, n in collections.Counter(aligned(w, other) for w in wall).items()} and "late" not in r.err


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_distinct_is_a_group_by_without_aggregates(clink, tmp_path, shape):
    """Rows of a window are said once, when it is over, and are late behind it."""
    call, windows = SHAPES[shape]
    write(tmp_path / "src.ndjson", disordered(random.Random(SEED), 400, 120_000, 5000) + [(0, "late", 1)])
    rows = "FROM TABLE(" + call.replace("(t,", "(TABLE src, DESCRIPTOR(t),") + ")"
    got = [clink("run", "--changes", "--set", "batch_rows=1", "-e", table("src.ndjson", 5000) + q.format(rows)) for q in (
        "SELECT DISTINCT k, window_end AS e, window_start AS s {0}", "SELECT k, window_end AS e, window_start AS s {0} GROUP BY k, window_start, window_end",
        "SELECT k, window_end AS e, window_start AS s {0} GROUP BY k, window_start, window_end UNION SELECT 'none', window_end, window_start {0} WHERE k < 'a'")]
    assert len(got[0].rows) > 50 and all("1 of 401 rows came too late" in g.err for g in got[:2])
    assert all(sorted(map(str, g.rows)) == sorted(map(str, got[0].rows)) for g in got)


@pytest.mark.parametrize("by", ["k", "(k, v)"])
def test_sessions_of_a_query_are_partitioned(clink, tmp_path, by):
    write(tmp_path / "src.ndjson", [(t * 1000, "ab"[t % 2], t // 4 % 2) for t in range(16)])
    keys = by.strip("()")
    over = [clink("run", "-e", table("src.ndjson", 0) + "CREATE VIEW q AS SELECT t, k, v FROM src WHERE v >= 0;" f"SELECT {keys}, window_start AS s, COUNT(*) AS n FROM "
                  f"TABLE(SESSION(TABLE {data} PARTITION BY {by}, DESCRIPTOR(t), INTERVAL '3' SECOND)) GROUP BY {keys}, window_start, window_end").rows
            for data in ("q", "(SELECT t, k, v FROM src WHERE v >= 0)")]
    assert over[0] == over[1] and len(over[0]) == (2 if by == "k" else 8)


def test_a_session_between_two_milliseconds_is_in_time_for_a_window_above(clink, tmp_path):
    """Its window_time is the last whole millisecond in it: the watermark that does not close it has not passed that either."""
    (tmp_path / "src.ndjson").write_text("".join(f'{{"t":"2026-01-02T09:00:00.{us:06}","k":"{k}"}}\n' for us, k in ((9500, "a"), (19000, "b"), (900000, "c"))))
    got = clink("run", "--set", "batch_rows=1", "-e", "CREATE TABLE src (t TIMESTAMP(6), k VARCHAR, WATERMARK FOR t AS t) WITH (connector='file', path='src.ndjson');"
                "SELECT window_end AS e, SUM(n) AS n FROM (SELECT window_time AS w, k, COUNT(*) AS n FROM src GROUP BY SESSION(t, INTERVAL '0.010' SECOND), k) "
                "GROUP BY TUMBLE(w, INTERVAL '0.001' SECOND)")
    assert [(r["e"][-4:], r["n"]) for r in got.rows] == [(".020", 1), (".029", 1), (".910", 1)] and "late" not in got.err


@pytest.mark.parametrize("lag_days", [0, 36_500, 2_900_000])
def test_clocks_that_jump_and_delays_of_years(clink, tmp_path, lag_days):
    """A time that jumps ahead closes what is behind it by more than the delay, and the one that jumps back is late, not lost without a count."""
    day = 86_400_000
    times = [0, 5000, 36_000 * day, 6000, -30_000 * day, 36_000 * day + 1]
    write(tmp_path / "src.ndjson", [(t, "x", 1) for t in times])
    r = clink("run", "--set", "batch_rows=1", "-e", table("src.ndjson", lag_days * day) + TEN_SECONDS)
    taken, top = collections.Counter(), None
    for t in times:
        if top is None or aligned(t, 10000) + 10000 > top - lag_days * day:
            taken[iso(aligned(t, 10000))] += 1
        top = t if top is None else max(t, top)
    assert {x["s"]: x["n"] for x in r.rows} == taken
    late = len(times) - sum(taken.values())
    assert late == {0: 2, 36_500: 1, 2_900_000: 0}[lag_days] and (f"{late} of {len(times)} rows came too late" in r.err) == (late > 0)


@pytest.mark.parametrize("lag", ["8001 YEAR", "2940000 DAY", "-1 DAY"])
def test_a_delay_out_of_reach_has_its_place(clink, lag):
    n, unit = lag.split()
    interval = f"INTERVAL '{n}' {unit}"
    r = clink("run", "-e", f"CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - {interval}) WITH (connector='file', path='x')", ok=False)
    assert r.code == 1 and "the delay of a WATERMARK" in r.err and "^" in r.err and ":1:" in r.err


@pytest.mark.parametrize("value", ["9223372036854775808", "-9223372036854775809", "1e30", "\"2020-01-01\"", "true", "1.5"])
def test_a_time_that_is_no_number_is_a_bad_record(clink, tmp_path, value):
    """2^63 and more, texts, fractions: the record does not fit, once, and moves no watermark."""
    (tmp_path / "src.ndjson").write_text('{"t":1,"k":"x","v":1}\n{"t":%s,"k":"x","v":1}\n{"t":2,"k":"x","v":1}\n' % value)
    r = clink("run", "-e", table("src.ndjson", 0) + TEN_SECONDS, ok=False)
    assert r.code == 1 and "src.ndjson" in r.err and "line 2" in r.err
    r = clink("run", "--set", "batch_rows=1", "-e", table("src.ndjson", 0, ", on_error='skip'") + TEN_SECONDS)
    assert [x["n"] for x in r.rows] == [2] and "1 record" in r.err and "too late" not in r.err


def test_allowed_lateness_nets_to_what_it_allows(clink, tmp_path):
    print(f"CLINK_SEED={SEED}")
    data = disordered(random.Random(SEED), 2000, 200_000, 15000)
    write(tmp_path / "src.ndjson", data)
    counts, top = collections.Counter(), None
    for t, k, _ in data:
        start = aligned(t, 10000)
        if top is None or start + 10000 + 5000 > top - 2000:
            counts[k, iso(start)] += 1
        top = t if top is None else max(top, t)
    got = clink("run", "--set", "batch_rows=1", "--changes", "-e", table("src.ndjson", 2000, ", allowed_lateness_ms='5000'") +
                "SELECT k, window_start AS s, COUNT(*) AS n FROM src GROUP BY TUMBLE(t, INTERVAL '10' SECOND), k").lines
    net = collections.Counter()
    for line in got:
        sign, row = (line[:2], line[3:]) if line[0] in "+-" else ("+I", line)
        r = json.loads(row)
        net[r["k"], r["s"], r["n"]] += -1 if sign[0] == "-" else 1
    assert {(k, s): n for (k, s, n), c in net.items() if c == 1} == counts and set(net.values()) <= {0, 1}
    assert any(line.startswith("-U") for line in got)


@pytest.mark.parametrize("call,windows", [SHAPES[0], SHAPES[2]])
def test_kill_nine_and_restart(tmp_path, call, windows):
    """Each window is said once, and right, however often the job dies and at whatever parallelism it comes back."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    data = disordered(rnd, 400_000, 4_000_000, 5000)
    write(tmp_path / "src.ndjson", data)
    counts = collections.Counter((k, iso(w[0])) for t, k, _ in data for w in windows(t))
    script = tmp_path / "job.sql"
    script.write_text(table(tmp_path / "src.ndjson", 5000) +
                      f"CREATE TABLE snk (k VARCHAR, s TIMESTAMP_LTZ(3), n BIGINT) WITH (connector='file', format='json', "
                      f"path='{tmp_path}/out');\nINSERT INTO snk SELECT k, window_start, COUNT(*) FROM src GROUP BY {call}, k;\n")
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "20"]
    kills = 0
    while kills < 5:
        proc = subprocess.Popen(base + ["-p", str(rnd.choice([1, 2, 3, 4]))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            proc.wait(rnd.uniform(0.03, 0.4))
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
            kills += 1
        err = proc.communicate()[1].decode()
        assert proc.returncode in (0, -signal.SIGKILL), err
        if proc.returncode == 0:
            break
    run_clink("run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "-p", 2)
    got = read_rows(tmp_path / "out")
    assert len(got) == len(counts) and {(r["k"], r["s"]): r["n"] for r in got} == counts
