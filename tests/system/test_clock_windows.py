"""Windows over PROCTIME(): what they count is what came, and they fire by themselves; at the end, without one, and after kill -9."""
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows

DDL = "CREATE TABLE src (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', format='json', path='src.ndjson'{});\n"
CALLS = {
    "TUMBLE(p, INTERVAL '0.2' SECOND)": 1,
    "HOP(p, INTERVAL '0.1' SECOND, INTERVAL '0.3' SECOND)": 3,
    "CUMULATE(p, INTERVAL '0.1' SECOND, INTERVAL '0.1' SECOND)": 1,
    "SESSION(p, INTERVAL '0.2' SECOND)": 1,
}


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


@pytest.mark.parametrize("call", CALLS)
def test_windows_fire_without_more_rows_and_after_kills(tmp_path, call):
    """Rows come, the process is killed with windows open, another with another parallelism says them, though nothing comes any more."""
    write(tmp_path / "src.ndjson", 0, 500, "w")
    script = (DDL.format(", follow=TRUE") + "CREATE TABLE out (k VARCHAR, s TIMESTAMP_LTZ(3), n BIGINT, v BIGINT) "
              "WITH (connector='file', format='json', path='out');\n"
              f"INSERT INTO out SELECT k, window_start, COUNT(*), SUM(v) FROM src GROUP BY {call}, k;\n")
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

    times = CALLS[call]
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
    for k in range(7):
        mine = [r for r in got if r["k"] == f"key {k}"]
        assert sum(r["n"] for r in mine) == len(range(k, 2000, 7)) * times
        assert sum(r["v"] for r in mine) == sum(range(k, 2000, 7)) * times
        assert len({r["s"] for r in mine}) == len(mine)
