"""Savepoints that some build once took are restored by every later one: tests/golden/savepoints/NAME has the job, the input as it was then
and the checkpoint directory of a job that was stopped half way. The restored job goes on to the end; its tables must be those of an
undisturbed run of this build, and the savepoint must still be a compatible one by check-savepoint.

`python3 tests/system/test_golden_savepoints.py CLINK DIR` takes a new one, when a format gets a new version or operators are new; those that
are there are never changed."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import CLINK, TOP, read_rows, run_clink

GOLDEN = os.path.join(TOP, "tests", "golden", "savepoints")
ROWS = 700
TABLES = ("groups", "windows", "joined", "top", "first", "sessions", "running", "rows")

JOB = """
CREATE TABLE src (id BIGINT NOT NULL, k VARCHAR, v BIGINT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH (connector='file', format='json', path='in.ndjson', rate_limit=300);
CREATE TABLE names (k VARCHAR, name VARCHAR) WITH (connector='file', format='json', path='names.ndjson');
CREATE TABLE groups (k VARCHAR, n BIGINT, s BIGINT, a DOUBLE, mn BIGINT, mx DOUBLE, ds DECIMAL(38,2), u BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='out/groups', mode='upsert');
CREATE TABLE windows (k VARCHAR, e TIMESTAMP(3), n BIGINT, u BIGINT) WITH (connector='file', format='json', path='out/windows');
CREATE TABLE joined (id BIGINT, name VARCHAR) WITH (connector='file', format='json', path='out/joined');
CREATE TABLE top (k VARCHAR, v BIGINT, id BIGINT, PRIMARY KEY (k, v, id) NOT ENFORCED) WITH (connector='file', format='json', path='out/top', mode='upsert');
CREATE TABLE first (k VARCHAR, id BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='out/first', mode='upsert');
CREATE TABLE sessions (k VARCHAR, e TIMESTAMP(3), n BIGINT) WITH (connector='file', format='json', path='out/sessions');
CREATE TABLE running (id BIGINT, s BIGINT) WITH (connector='file', format='json', path='out/running');
CREATE TABLE rows (id BIGINT, k VARCHAR, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP(3)) WITH (connector='file', format='json', path='out/rows');
INSERT INTO groups SELECT k, COUNT(*), SUM(v), AVG(v), MIN(v), MAX(x), SUM(d), COUNT(DISTINCT v) FROM src GROUP BY k;
INSERT INTO windows SELECT k, window_end, COUNT(*), COUNT(DISTINCT v) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO joined SELECT src.id, names.name FROM src JOIN names ON src.k = names.k;
INSERT INTO top SELECT k, v, id FROM (SELECT k, v, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM src WHERE v IS NOT NULL) WHERE n <= 3;
INSERT INTO first SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts, id) AS n FROM src) WHERE n = 1;
INSERT INTO sessions SELECT k, window_end, COUNT(*) FROM TABLE(SESSION(TABLE src PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO running SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM src;
INSERT INTO rows SELECT id, k, x, d, ts FROM src;
"""


def row(i):
    s = i if i < 100 else i + 20 if i < 350 else i * 2  # pauses, for sessions
    return {"id": i, "k": "k%d" % (i * i % 7), "v": i * 37 % 50 if i % 13 else None, "x": i / 8 - 3.5, "d": "%d.%02d" % (i - 50, i % 100),
            "ts": "2024-03-01 %02d:%02d:%02d.%03d" % (s // 3600, s // 60 % 60, s % 60, i % 1000)}


def make(where):
    os.makedirs(where)
    with open(os.path.join(where, "job.sql"), "w") as f:
        f.write(JOB)
    with open(os.path.join(where, "in.ndjson"), "w") as f:
        f.writelines(json.dumps(row(i)) + "\n" for i in range(ROWS))
    with open(os.path.join(where, "names.ndjson"), "w") as f:
        f.writelines(json.dumps({"k": "k%d" % j, "name": "name of k%d" % j}) + "\n" for j in range(0, 7, 2))


def stop_half_way(where, clink):
    p = subprocess.Popen([clink, "run", "job.sql", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "400"], cwd=where,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and len(read_rows(os.path.join(where, "out", "rows"))) < ROWS // 3:
        time.sleep(0.02)
    p.send_signal(signal.SIGUSR2)
    assert p.wait(60) == 0


def tables(where):
    return {t: sorted(json.dumps(r, sort_keys=True) for r in read_rows(os.path.join(where, "out", t))) for t in TABLES}


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("name", sorted(os.listdir(GOLDEN)))
def test_an_old_savepoint_goes_on(name, parallelism, tmp_path):
    old, fresh = str(tmp_path / "old"), str(tmp_path / "fresh")
    shutil.copytree(os.path.join(GOLDEN, name), old)
    r = run_clink("check-savepoint", "ck", "--expected", "job.sql", cwd=old, ok=False)
    assert r.code == 0 and "compatible with job.sql" in r.out, r.out + r.err
    assert "'" not in r.out  # and nothing is in it that this build only knows as bytes
    r = run_clink("explain", "job.sql", "--checkpoint-dir", "ck", "--restore", "latest", cwd=old, ok=False)
    assert r.code == 0 and "refused" not in r.out and "drop" not in r.out, r.out + r.err
    before = tables(old)
    assert 0 < len(before["rows"]) < ROWS and before["windows"] and before["sessions"] and before["running"]  # it was half way
    run_clink("run", "job.sql", "--checkpoint-dir", "ck", "-p", parallelism, cwd=old)
    make(fresh)
    run_clink("run", "job.sql", cwd=fresh)
    now, want = tables(old), tables(fresh)
    for t in TABLES:
        assert now[t] == want[t], t


@pytest.mark.parametrize("name", sorted(os.listdir(GOLDEN)))
def test_an_old_graph_is_still_read(name, tmp_path):
    """The job graph that a release stored, by itself: every operator of it is one of this build, and goes on with its savepoint."""
    ck = os.path.join(GOLDEN, name, "ck")
    manifest = sorted(f for f in os.listdir(ck) if f.endswith(".json") and f.startswith("checkpoint-"))[-1]
    with open(os.path.join(ck, manifest)) as f:
        graph = json.load(f)["graph"]
    (tmp_path / "graph.json").write_text(graph if isinstance(graph, str) else json.dumps(graph))
    r = run_clink("check-savepoint", ck, "--expected", tmp_path / "graph.json", ok=False)
    assert r.code == 0 and "compatible with" in r.out and "incompatible" not in r.out, r.out + r.err
    (tmp_path / "graph.json").write_text((graph if isinstance(graph, str) else json.dumps(graph)).replace('"group_agg"', '"group_of_a_later_release"'))
    r = run_clink("check-savepoint", ck, "--expected", tmp_path / "graph.json", ok=False)
    assert r.code != 0, r.out


if __name__ == "__main__":
    make(sys.argv[2])
    stop_half_way(sys.argv[2], sys.argv[1])
