"""A pipe, a directory or a device where a file is expected: refused in a sentence that names it, without waiting for a writer that never
comes. What may be a pipe (a script, standard input) still is one."""
import os
import signal
import socket
import subprocess

import pytest

from conftest import CLINK, read_rows, run_clink

SQL = """CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='in.ndjson');
CREATE TABLE o (k BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='o', mode='upsert');
INSERT INTO o SELECT k, SUM(v) FROM t GROUP BY k;
"""


def put(path, kind):
    """In place of what is there."""
    if os.path.exists(path):
        os.remove(path)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "device":
        os.symlink("/dev/zero", path)
    else:
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.relpath(path))  # the names of sockets are short
        s.close()


def refused(r, path, code=1):
    said = r.out + r.err
    assert r.code == code and "Traceback" not in said, said
    assert str(path) in said and ("a file is expected there" in said or "is a directory" in said.lower()), said


@pytest.fixture
def stopped(tmp_path):
    """A checkpoint directory with one savepoint of a job that was stopped."""
    (tmp_path / "in.ndjson").write_text("".join('{"k":%d,"v":%d}\n' % (i % 5, i) for i in range(100)))
    (tmp_path / "job.sql").write_text(SQL.replace("path='in.ndjson'", "path='in.ndjson', follow='true'"))
    p = subprocess.Popen([CLINK, "run", "job.sql", "--checkpoint-dir", "ck"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    for line in p.stderr:
        if "exactly once" in line:
            break
    p.send_signal(signal.SIGUSR2)
    p.communicate(timeout=120)
    assert p.returncode == 0
    return tmp_path


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "socket"])
def test_a_file_of_a_checkpoint(stopped, kind, monkeypatch):
    monkeypatch.chdir(stopped)
    ck = stopped / "ck"
    found = sorted(p for p in ck.rglob("*") if p.is_file() and p.name != "job.lock" and p.suffix != ".committed")
    assert any(p.name == "job.json" for p in found) and any(p.name.startswith("checkpoint-") for p in found) and len(found) > 2, found
    for path in found:
        whole = path.read_bytes()
        put(path, kind)
        refused(run_clink("run", "job.sql", "--checkpoint-dir", "ck", ok=False, timeout=60), path.name)
        refused(run_clink("check-savepoint", "ck", ok=False, timeout=60), path.name)
        r = run_clink("checkpoint-verify", "ck", ok=False, timeout=60)
        assert r.code in (1, 2), r.out + r.err
        if kind == "directory":
            path.rmdir()
        else:
            path.unlink()
        path.write_bytes(whole)
    run_clink("check-savepoint", "ck")


@pytest.mark.parametrize("kind", ["pipe", "directory", "device"])
def test_other_files(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = tmp_path / ("it." + kind)
    put(here, kind)
    refused(run_clink("run", "--plugin", here, "-e", "SELECT 1", ok=False, timeout=60), here)
    refused(run_clink("run", "--job", here, ok=False, timeout=60), here)
    refused(run_clink("list", "--token-file", here, ok=False, timeout=60), here)
    (tmp_path / "token").write_text("0" * 64)
    refused(run_clink("list", "--token-file", "token", "--tls-ca", here, "--tls-cert", here, "--tls-key", here, ok=False, timeout=60), here)
    refused(run_clink("check-savepoint", here, ok=False, timeout=60) if kind != "directory" else run_clink("list", "--token-file", here, ok=False), here)
    (tmp_path / "cat").mkdir()
    put(tmp_path / "cat" / "catalog.sql", kind)
    refused(run_clink("run", "--catalog", "cat", "-e", "SELECT 1", ok=False, timeout=60), "catalog.sql")
    sql = SQL.replace("'in.ndjson'", "'%s'" % here)
    r = run_clink("run", "-e", sql, ok=False, timeout=60)
    assert r.code == 1 and str(here) in r.err, r.err


def test_what_may_be_a_pipe(stopped):
    """Scripts, what a savepoint is held against, standard input of a table."""
    (stopped / "bounded.sql").write_text(SQL)
    want = sorted((k, sum(i for i in range(100) if i % 5 == k)) for k in range(5))
    for command in ("cat bounded.sql | %s run /dev/stdin", "%s run <(cat bounded.sql)", "cat bounded.sql | %s run -"):
        subprocess.run(["rm", "-rf", str(stopped / "o")], check=True)
        p = subprocess.run(["bash", "-c", command % CLINK], cwd=stopped, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        assert p.returncode == 0, p.stderr
        assert sorted((r["k"], r["s"]) for r in read_rows(stopped / "o")) == want
    p = subprocess.run(["bash", "-c", "%s explain <(cat bounded.sql) && %s check-savepoint ck --expected <(cat job.sql)" % (CLINK, CLINK)], cwd=stopped,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert p.returncode == 0 and "compatible with /dev/fd/" in p.stdout, p.stdout + p.stderr
    r = run_clink("run", "-e", "CREATE TABLE t (k BIGINT) WITH (connector='file', format='json', path='-'); SELECT SUM(k) AS s FROM t", stdin='{"k":3}\n{"k":4}\n')
    assert r.rows == [{"s": 7}]
