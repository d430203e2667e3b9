"""state_ttl is no part of what a job is: turned on, off and changed between runs, the job goes on from its checkpoint."""
import signal
import subprocess
import time

from conftest import CLINK, read_rows


def write(path, rows):
    with open(path, "a") as f:
        for k, v in rows:
            f.write('{"k":"key %d","v":%d}\n' % (k, v))


def rows_of(folder):
    return {r["k"]: r["n"] for r in read_rows(folder)}


def test_a_restart_turns_it_on_off_and_changes_it(tmp_path):
    script = """{}CREATE TABLE src (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='src.ndjson', follow=TRUE{});
CREATE TABLE gone (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='gone.ndjson', follow=TRUE);
CREATE TABLE counts (k VARCHAR, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='counts', mode='upsert');
CREATE TABLE rest (k VARCHAR, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='rest', mode='upsert');
INSERT INTO counts SELECT k, COUNT(*) FROM src GROUP BY k;
INSERT INTO rest SELECT k, SUM(v) FROM (SELECT k, v FROM src EXCEPT SELECT k, v FROM gone) GROUP BY k;
"""
    write(tmp_path / "gone.ndjson", [(i % 5, 0) for i in range(5)])
    counts, rest = {f"key {k}": 0 for k in range(5)}, {}
    runs = [("SET state_ttl = '1 h';\n", ""), ("SET state_ttl = '2 h';\n", ""), ("", ""), ("", ", state_ttl='3 h'"), ("SET state_ttl = '1 d';\n", "")]
    for run, (settings, option) in enumerate(runs):
        write(tmp_path / "src.ndjson", [(k, run) for k in range(5) for _ in range(run + 1)])
        for k in counts:
            counts[k] += run + 1
            if run:
                rest[k] = rest.get(k, 0) + run
        (tmp_path / "job.sql").write_text(script.format(settings, option))
        job = subprocess.Popen([CLINK, "run", "-p", str(1 + run % 3), "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50", "job.sql"],
                               cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + 60
        while (rows_of(tmp_path / "counts"), rows_of(tmp_path / "rest")) != (counts, rest):
            assert job.poll() is None, job.stderr.read().decode()
            assert time.monotonic() < end, (rows_of(tmp_path / "counts"), counts, rows_of(tmp_path / "rest"), rest)
            time.sleep(0.02)
        job.send_signal(signal.SIGKILL)
        job.wait()
