"""The help pages: every verb has one, its examples run as they stand, and its flags are what the verb takes."""
import os
import re
import signal
import subprocess

import pytest
from conftest import BUILD, CLINK, run_clink

ENV = {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]}
JOB = """CREATE TABLE bad (raw BYTES, split VARCHAR, "offset" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='bad');
CREATE TABLE orders (usr VARCHAR, amount BIGINT)
  WITH (connector='file', format='json', path='orders.ndjson', on_error='dead_letter', dead_letter_table='bad');
CREATE TABLE totals (usr VARCHAR, total BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='json', path='totals', mode='upsert');
INSERT INTO totals SELECT usr, SUM(amount) FROM orders GROUP BY usr;
"""


def verbs():
    return re.findall(r"^  ([a-z-]+) ", run_clink("help").out, re.M)


def examples(verb):
    text = run_clink("help", verb).out.split("\nexample:\n")[1]
    return re.split(r"\n(?=  \S)", text.rstrip("\n"))


def take_savepoints(cwd):
    """Two of a job that goes on: the first may be disposed of."""
    sql = "CREATE TABLE g (i BIGINT) WITH (connector='datagen', rate_limit=100); CREATE TABLE b (i BIGINT) WITH (connector='blackhole'); INSERT INTO b SELECT i FROM g"
    p = subprocess.Popen([CLINK, "run", "--name", "g", "--checkpoint-dir", "ck", "-e", sql], cwd=cwd, stderr=subprocess.PIPE, text=True)
    assert ": b: " in p.stderr.readline()
    ids = []
    for _ in range(2):
        p.send_signal(signal.SIGUSR1)
        line = p.stderr.readline()
        ids.append(int(re.search(r"savepoint (\d+) is complete", line).group(1)))
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    return ids[0]


# these need each other: test_cluster.py
CLUSTER = ("coordinator", "worker", "submit", "list", "status", "cancel", "drop", "resume", "stop")


@pytest.mark.parametrize("verb", [v for v in verbs() if v not in ("help", "version", *CLUSTER)])
def test_examples_run(verb, tmp_path):
    (tmp_path / "orders.ndjson").write_text('{"usr":"alice","amount":12}\n{"usr":"bob","amount":' + ('"x"' if verb.startswith("dead") else "1") + '}\n{"usr":"bob","amount":7}\n')
    (tmp_path / "job.sql").write_text(JOB)
    if verb == "dead-letter-replay":
        run_clink("run", "job.sql", cwd=tmp_path)
    if verb in ("checkpoint-verify", "check-savepoint"):
        run_clink("run", "--checkpoint-dir", "ck", "job.sql", cwd=tmp_path)
    number = str(take_savepoints(tmp_path)) if verb == "savepoint" else "12"
    found = examples(verb)
    assert found
    for line in found:
        if line.split() == ["clink", "savepoint", "1"]:  # of a cluster's job: test_cluster.py
            continue
        line = line.replace(":12", ":" + number)
        p = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=tmp_path, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert p.returncode == 0, line + p.stderr
        if "--export" in line:  # "then repair it"
            path = tmp_path / re.search(r"--export (\S+)", line).group(1)
            path.write_text(path.read_text().replace('"x"', "5"))


def test_pages_fit_a_screen_and_say_the_same():
    for verb in verbs():
        if verb in ("help", "version"):
            continue
        page = run_clink("help", verb).out
        assert page == run_clink(verb, "--help").out == run_clink(verb, "-h").out
        assert page.startswith(f"clink {verb} - ") and "\nusage: clink " + verb in page and max(map(len, page.splitlines())) <= 132
        for flag in re.findall(r"^  (?:-\w, )?--([a-z-]+)", page, re.M):  # each is known: a misspelt one is not
            r = run_clink(verb, f"--{flag}x", ok=False)
            assert r.code == 2 and f"--{flag}" in r.err.replace(f"--{flag}x", ""), (verb, flag, r.err)
        assert "--help" not in run_clink(verb, "--nonsense", ok=False).out
