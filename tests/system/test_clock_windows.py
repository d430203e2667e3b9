"""Windows over PROCTIME(): what they count is what came, and they fire by themselves; at the end, without one, and after kill -9.
Rows with their window, their ranks and joins of windows likewise: nothing is late, whatever lies between."""
import datetime
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows

DDL = "CREATE TABLE src (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', format='json', path='src.ndjson'{});\n"
CALLS = {
    "TUMBLE(p, INTERVAL '0.2' SECOND)": 1,
    "HOP(p, INTERVAL '0.1' SECOND, INTERVAL '0.3' SECOND)": 3,
    "HOP(p, INTERVAL '0.02' SECOND, INTERVAL '0.4' SECOND)": 20,
    "CUMULATE(p, INTERVAL '0.1' SECOND, INTERVAL '0.1' SECOND)": 1,
    "SESSION(p, INTERVAL '0.2' SECOND)": 1,
}


# Of (k, v) rows by PROCTIME() p: each query says every row so many times, as window_start s, n of them, their sum v.
TVF = "TABLE(TUMBLE(TABLE src, DESCRIPTOR(p), INTERVAL '0.2' SECOND))"
SLIDING = "TABLE(HOP(TABLE src, DESCRIPTOR(p), INTERVAL '0.1' SECOND, INTERVAL '0.3' SECOND))"
ROWS = {
    "rows": (1, f"SELECT k, window_start AS s, 1 AS n, v FROM {TVF}"),
    "sliding": (3, f"SELECT k, window_start AS s, 1 AS n, v FROM {SLIDING}"),
    "filtered": (1, f"SELECT k, window_start AS s, COUNT(*) AS n, SUM(v) AS v FROM {TVF} WHERE window_end > window_start"
                    " GROUP BY k, window_start, window_end"),
    "rank": (1, "SELECT k, s, 1 AS n, v FROM (SELECT k, window_start AS s, v, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end"
                f" ORDER BY v) AS r FROM {TVF}) WHERE r <= 100000"),
    "rank of groups": (3, "SELECT k, s, n, v FROM (SELECT k, window_start AS s, n, v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end"
                          " ORDER BY n DESC, k) AS r FROM (SELECT k, window_start, window_end, COUNT(*) AS n, SUM(v) AS v"
                          f" FROM {SLIDING} GROUP BY k, window_start, window_end)) WHERE r <= 7"),
    "rank of sessions": (1, "SELECT k, s, n, v FROM (SELECT k, s, n, v, ROW_NUMBER() OVER (PARTITION BY s, e ORDER BY n DESC, k) AS r FROM"
                            " (SELECT k, window_start AS s, window_end AS e, COUNT(*) AS n, SUM(v) AS v FROM src"
                            " GROUP BY SESSION(p, INTERVAL '0.2' SECOND), k)) WHERE r <= 7"),
    "join": (1, f"SELECT a.k, a.window_start AS s, 1 AS n, a.v FROM {TVF} a LEFT JOIN (SELECT window_start, window_end, COUNT(*) AS m FROM"
                f" {TVF} GROUP BY window_start, window_end) b ON a.window_start = b.window_start AND a.window_end = b.window_end"),
    "twice": (1, "SELECT k, window_start AS s, SUM(n) AS n, SUM(v) AS v FROM TABLE(TUMBLE(TABLE (SELECT k, window_time AS t, n, v FROM (SELECT k,"
                 f" window_start, window_end, window_time, COUNT(*) AS n, SUM(v) AS v FROM {TVF} GROUP BY k, window_start, window_end,"
                 " window_time)), DESCRIPTOR(t), INTERVAL '0.4' SECOND)) GROUP BY k, window_start, window_end"),
}


@pytest.mark.parametrize("body", ROWS)
@pytest.mark.parametrize("p,batch", [(1, 1), (2, 7), (4, 0)])
def test_rows_with_windows_are_all_said_at_the_end(clink, tmp_path, body, p, batch):
    write(tmp_path / "src.ndjson", 0, 2000, "w")
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    times, query = ROWS[body]
    out = clink("run", "-p", p, *settings, "-e", DDL.format("") + query)
    assert "late" not in out.err
    check_totals(out.rows, times, 2000)


def check_totals(got, times, n):
    for k in range(7):
        mine = [r for r in got if r["k"] == f"key {k}"]
        assert sum(r["n"] for r in mine) == len(range(k, n, 7)) * times and sum(r["v"] for r in mine) == sum(range(k, n, 7)) * times


def test_a_row_shows_the_time_its_window_has(clink, tmp_path):
    write(tmp_path / "src.ndjson", 0, 5000, "w")
    got = clink("run", "-p", 2, "--set", "batch_rows=7", "-e", DDL.format("") + "SELECT p, window_start AS s, window_end AS e FROM "
                "TABLE(TUMBLE(TABLE src, DESCRIPTOR(p), INTERVAL '0.001' SECOND)) WHERE p < TIMESTAMP_LTZ '2900-01-01 00:00:00'").rows
    at = datetime.datetime.fromisoformat
    assert len(got) == 5000 and all(at(r["s"]) <= at(r["p"]) < at(r["e"]) for r in got)


def write(path, first, n, mode="a"):
    with open(path, mode) as f:
        for i in range(first, first + n):
            f.write('{"k":"key %d","v":%d}\n' % (i % 7, i))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("p,batch", [(1, 0), (2, 7), (4, 1), (4, 0)])
def test_at_the_end_all_is_said(clink, tmp_path, call, p, batch):
    write(tmp_path / "src.ndjson", 0, 2000, "w")
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    got = clink("run", "-p", p, *settings, "-e", DDL.format("") +
                f"SELECT k, window_start AS s, window_end AS e, COUNT(*) AS n, SUM(v) AS v FROM src GROUP BY {call}, k").rows
    times = CALLS[call]
    for k in range(7):
        mine = [r for r in got if r["k"] == f"key {k}"]
        values = range(k, 2000, 7)
        assert sum(r["n"] for r in mine) == len(values) * times and sum(r["v"] for r in mine) == sum(values) * times
        assert len({(r["s"], r["e"]) for r in mine}) == len(mine)


@pytest.mark.parametrize("body", [*CALLS, "rank", "rank of groups", "join", "twice"])
def test_windows_fire_without_more_rows_and_after_kills(tmp_path, body):
    """Rows come, the process is killed with windows open, another with another parallelism says them, though nothing comes any more."""
    write(tmp_path / "src.ndjson", 0, 500, "w")
    times, query = ROWS.get(body) or (CALLS[body], f"SELECT k, window_start AS s, COUNT(*) AS n, SUM(v) AS v FROM src GROUP BY {body}, k")
    script = (DDL.format(", follow=TRUE") + "CREATE TABLE out (k VARCHAR, s TIMESTAMP_LTZ(3), n BIGINT, v BIGINT) "
              "WITH (connector='file', format='json', path='out');\n"
              f"INSERT INTO out SELECT k, s, n, v FROM ({query});\n")
    (tmp_path / "job.sql").write_text(script)

    def start(p):
        return subprocess.Popen([CLINK, "run", "-p", str(p), "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50", "job.sql"],
                                cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def wait_for(what, process):
        end = time.monotonic() + 60
        while not what():
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < end, read_rows(tmp_path / "out")
            time.sleep(0.02)

    lives = [1, 2, 4, 1]
    for life, p in enumerate(lives):
        job = start(p)
        if life:
            write(tmp_path / "src.ndjson", 500 * life, 500)
        wait_for(lambda: sum(r["n"] for r in read_rows(tmp_path / "out")) >= times * (500 * life + 250), job)
        if life + 1 < len(lives):
            job.send_signal(signal.SIGKILL)
            job.wait()
    wait_for(lambda: sum(r["n"] for r in read_rows(tmp_path / "out")) >= times * 2000, job)
    job.send_signal(signal.SIGKILL)
    job.wait()
    got = read_rows(tmp_path / "out")
    check_totals(got, times, 2000)
    if body in CALLS:
        assert len({(r["k"], r["s"]) for r in got}) == len(got)
