"""Kill -9 at random moments of a checkpointing job, restart at another parallelism: the final result is exact each time."""
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows, run_clink

SANITIZED = os.environ.get("CLINK_SANITIZE", "") != ""
ROWS, EARLY = 150_000 if SANITIZED else 1_500_000, 40
SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


def make_input(path, rows):
    """Text keys; EARLY keys are seen only in the first thousand rows. Returns the answer, by plain Python."""
    rnd, want = random.Random(7), {}
    with open(path, "w") as f:
        out = []
        for i in range(rows):
            k = f"early-{i % EARLY}" if i < 1000 else f"customer number {rnd.randrange(5000)}"
            v = i % 97
            n, s = want.get(k, (0, 0))
            want[k] = (n + 1, s + v)
            out.append('{"k":"%s","v":%d}\n' % (k, v))
            if len(out) == 10000:
                f.writelines(out)
                out = []
        f.writelines(out)
    return want


SCRIPT = """CREATE TABLE src (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}');
CREATE TABLE snk (k VARCHAR, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='{out}', mode='upsert');
CREATE TABLE copy (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{copy}');
INSERT INTO snk SELECT k, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY k;
INSERT INTO copy SELECT k, v FROM src;
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "in.ndjson"
    return path, make_input(path, ROWS)


def check(where, want):
    got = {r["k"]: (r["n"], r["s"]) for r in read_rows(where / "out")}
    assert got == want
    copied = {}
    for r in read_rows(where / "copy"):
        n, s = copied.get(r["k"], (0, 0))
        copied[r["k"]] = (n + 1, s + r["v"])
    assert copied == want, "rows missing or doubled in the committed files"


def run_with_kills(inp, want, where, rnd, then, kills_wanted, longest):
    """One job to its end, killed on the way within `longest` seconds of each start; how often."""
    where.mkdir()
    script = where / "job.sql"
    script.write_text(SCRIPT.format(inp=inp, out=where / "out", copy=where / "copy"))
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(where / "ck"), "--checkpoint-interval-ms", "30"]
    kills, p = 0, 4
    while kills < kills_wanted:
        proc = subprocess.Popen(base + ["-p", str(p)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            proc.wait(rnd.uniform(0.02, longest))
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
        err = proc.communicate()[1].decode()
        assert proc.returncode in (0, -signal.SIGKILL), err
        if proc.returncode == 0:
            break
        kills += 1
        p = then if kills % 2 else 4
    run_clink("run", script, "--checkpoint-dir", where / "ck", "--checkpoint-interval-ms", "30", "-p", then)
    check(where, want)
    again = run_clink("run", script, "--checkpoint-dir", where / "ck", "-p", then)
    assert "has finished before" in again.err
    return kills


@pytest.mark.parametrize("then", [4, 3, 1])
def test_kill_nine_and_restart(source, tmp_path, then):
    """Seven kills for each way to go on; a machine may be so fast that it takes more than one job."""
    inp, want = source
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED + then)
    kills, jobs, longest = 0, 0, 0.5
    while kills < 7 and jobs < 40:
        here = run_with_kills(inp, want, tmp_path / f"job{jobs}", rnd, then, 7 - kills, longest)
        longest = longest if here > 1 else max(0.05, longest * 0.7)  # a machine may be faster than its killer
        kills, jobs = kills + here, jobs + 1
    assert kills >= 7, "it was always faster than its killer"


def test_another_job_is_refused(source, tmp_path):
    inp, _ = source
    a = tmp_path / "a.sql"
    a.write_text(f"CREATE TABLE src (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}');\n"
                 f"CREATE TABLE o (k VARCHAR) WITH (connector='blackhole');\nINSERT INTO o SELECT k FROM src WHERE v = 1;\n")
    run_clink("run", a, "--checkpoint-dir", tmp_path / "ck")
    b = tmp_path / "b.sql"
    b.write_text(a.read_text().replace("v = 1", "v = 2"))
    r = run_clink("run", b, "--checkpoint-dir", tmp_path / "ck", ok=False)
    assert r.code == 1 and "ck" in r.err
    r = run_clink("run", b, "--name", "a", "--checkpoint-dir", tmp_path / "ck", ok=False)
    assert r.code == 1
    run_clink("run", b, "--name", "a", "--fresh", "--checkpoint-dir", tmp_path / "ck")


def test_two_runs_of_one_job(source, tmp_path):
    inp, _ = source
    a = tmp_path / "a.sql"
    a.write_text(f"CREATE TABLE src (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}', follow='true');\n"
                 f"CREATE TABLE o (k VARCHAR) WITH (connector='blackhole');\nINSERT INTO o SELECT k FROM src;\n")
    first = subprocess.Popen([CLINK, "run", str(a), "--checkpoint-dir", str(tmp_path / "ck")], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not (tmp_path / "ck" / "job.lock").exists() and time.monotonic() < deadline:
            assert first.poll() is None
        r = run_clink("run", a, "--checkpoint-dir", tmp_path / "ck", ok=False)
        assert r.code == 1 and "in use" in r.err
    finally:
        first.send_signal(signal.SIGINT)
        assert first.wait(20) == 130


def test_committed_output_may_be_moved_away(tmp_path):
    (tmp_path / "in.ndjson").write_text('{"k":"a","v":1}\n{"k":"b","v":2}\n')
    script = tmp_path / "job.sql"
    script.write_text(SCRIPT.format(inp=tmp_path / "in.ndjson", out=tmp_path / "out", copy=tmp_path / "copy"))
    run_clink("run", script, "--checkpoint-dir", tmp_path / "ck")
    moved = [p for d in ("out", "copy") for p in (tmp_path / d).iterdir()]
    assert len(moved) == 2
    for p in moved:
        p.unlink()
    again = run_clink("run", script, "--checkpoint-dir", tmp_path / "ck")
    assert "has finished before" in again.err
    assert not list((tmp_path / "copy").iterdir())
