"""Savepoints of windows that builds took which counted rows into each window they are in: tests/golden/windows/NAME, as in
test_golden_savepoints.py. Their windows go on, what rows they have counted for themselves and what came into slices since put together.

`python3 tests/system/test_golden_windows.py CLINK DIR` takes a new one."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import TOP, read_rows, run_clink

GOLDEN = os.path.join(TOP, "tests", "golden", "windows")
ROWS = 600
WINDOWS = {"hop": "HOP({}, INTERVAL '1' SECOND, INTERVAL '3' SECOND)", "hops": "HOP({}, INTERVAL '0.5' SECOND, INTERVAL '10' SECOND)",
           "cumulate": "CUMULATE({}, INTERVAL '1' SECOND, INTERVAL '6' SECOND)"}
TIMES = {"hop": 3, "hops": 20}  # how many windows a row is in
SOURCE = """CREATE TABLE {} (id BIGINT, k VARCHAR, v BIGINT, x DOUBLE, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '{}' SECOND)
  WITH (connector='file', format='json', path='in.ndjson', rate_limit=200{});
"""


def job():
    out = SOURCE.format("late_src", 1, ", allowed_lateness_ms=4000") + SOURCE.format("src", 4, "")
    for name, call in WINDOWS.items():
        late, event, clock = (f"FROM {t} GROUP BY k, {call.format(c)};\n" for t, c in (("late_src", "ts"), ("src", "ts"), ("src", "p")))
        out += (f"CREATE TABLE late_{name} (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, v BIGINT, mn BIGINT, x DOUBLE, PRIMARY KEY (k, s, e) NOT ENFORCED) "
                f"WITH (connector='file', format='json', path='out/late_{name}', mode='upsert');\n"
                f"INSERT INTO late_{name} SELECT k, window_start, window_end, COUNT(*), SUM(v), MIN(v), SUM(x) {late}"
                f"CREATE TABLE sets_{name} (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, u BIGINT, w BIGINT, mx BIGINT, x DOUBLE) "
                f"WITH (connector='file', format='json', path='out/sets_{name}');\n"
                f"INSERT INTO sets_{name} SELECT k, window_start, window_end, COUNT(*), COUNT(DISTINCT v), SUM(DISTINCT v) FILTER (WHERE id % 3 = 0), MAX(v), AVG(x) {event}"
                f"CREATE TABLE clock_{name} (k VARCHAR, s TIMESTAMP_LTZ(3), e TIMESTAMP_LTZ(3), n BIGINT, v BIGINT) "
                f"WITH (connector='file', format='json', path='out/clock_{name}');\n"
                f"INSERT INTO clock_{name} SELECT k, window_start, window_end, COUNT(*), SUM(v) {clock}")
    return out + "CREATE TABLE rows (id BIGINT) WITH (connector='file', format='json', path='out/rows');\nINSERT INTO rows SELECT id FROM src;\n"


def row(i):
    ms = 100 * i - i * i * 7 % 3000  # the watermark is a second behind the greatest: some are late, none later than allowed
    return {"id": i, "k": "k%d" % (i * i % 5), "v": i * 37 % 11 if i % 13 else None, "x": i / 8 - 3.5,
            "ts": "2024-03-01 10:%02d:%02d.%03d" % (ms // 60000 + 1, ms // 1000 % 60, ms % 1000)}


def make(where):
    os.makedirs(where)
    with open(os.path.join(where, "job.sql"), "w") as f:
        f.write(job())
    with open(os.path.join(where, "in.ndjson"), "w") as f:
        f.writelines(json.dumps(row(i)) + "\n" for i in range(ROWS))


def stop_half_way(where, clink):
    p = subprocess.Popen([clink, "run", "job.sql", "-p", "2", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "400"], cwd=where,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and len(read_rows(os.path.join(where, "out", "rows"))) < ROWS // 2:
        time.sleep(0.02)
    p.send_signal(signal.SIGUSR2)
    assert p.wait(60) == 0


def table(where, name):
    return sorted(json.dumps(r, sort_keys=True) for r in read_rows(os.path.join(where, "out", name)))


def check_clock(where):
    """By the clock a row is in some windows, but in each once."""
    values = [row(i)["v"] or 0 for i in range(ROWS)]
    for name, times in TIMES.items():
        got = read_rows(os.path.join(where, "out", f"clock_{name}"))
        assert len({(r["k"], r["s"]) for r in got}) == len(got)
        assert sum(r["n"] for r in got) == times * ROWS and sum(r["v"] or 0 for r in got) == times * sum(values)
    got = read_rows(os.path.join(where, "out", "clock_cumulate"))
    assert len({(r["k"], r["s"], r["e"]) for r in got}) == len(got)
    last = {}
    for r in got:  # the last step of a window has all its rows
        last[r["k"], r["s"]] = max(last.get((r["k"], r["s"]), 0), r["n"])
    assert sum(last.values()) == ROWS


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    where = str(tmp_path_factory.mktemp("windows") / "fresh")
    make(where)
    run_clink("run", "job.sql", cwd=where)
    check_clock(where)
    return where


@pytest.mark.parametrize("parallelism", [1, 2, 4])
@pytest.mark.parametrize("name", sorted(os.listdir(GOLDEN)))
def test_old_windows_go_on(name, parallelism, undisturbed, tmp_path):
    old = str(tmp_path / "old")
    shutil.copytree(os.path.join(GOLDEN, name), old)
    r = run_clink("check-savepoint", "ck", "--expected", "job.sql", cwd=old, ok=False)
    assert r.code == 0 and "compatible with job.sql" in r.out, r.out + r.err
    assert 0 < len(table(old, "rows")) < ROWS  # it was half way
    run_clink("run", "job.sql", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 200, "-p", parallelism, cwd=old)
    for t in ("rows", *(f"{kind}_{w}" for kind in ("late", "sets") for w in WINDOWS)):
        assert table(old, t) == table(undisturbed, t), t
    check_clock(old)


if __name__ == "__main__":
    make(sys.argv[2])
    stop_half_way(sys.argv[2], sys.argv[1])
