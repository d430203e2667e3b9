"""A disk that is full or fails, in any call that writes or makes something durable, RocksDB's own too: the job says so in a sentence and
ends, or goes on without the checkpoint; started again on a whole disk it leaves exactly what an undisturbed run leaves.

A sample of the calls; CLINK_LONG=1 fails each. The simulated disk has its own sweep (sql_sim --syncs)."""
import errno
import os
import random
import subprocess

import pytest
from conftest import TOP
from kill_matrix import BACKENDS, QUERIES, Job, Matrix

ALL = os.environ.get("CLINK_LONG") == "1"
SEED = int(os.environ.get("CLINK_SEED", "1"))
SAYS = {errno.ENOSPC: "No space left on device", errno.EIO: "Input/output error"}
pytestmark = pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitizer wants to be preloaded first")


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    so = tmp_path_factory.mktemp("disk") / "failing_disk.so"
    subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", f"{TOP}/tests/plugins/failing_disk.c", "-o", str(so)], check=True)
    return str(so)


def disk_of(disk, job, fails=""):
    return {"LD_PRELOAD": disk, "CLINK_DISK": job.dir, "CLINK_DISK_FAILS": fails, "CLINK_DISK_COUNT": job.dir + ".count"}


def calls(disk, job, p):
    r = job.start(p, env=disk_of(disk, job))
    assert r.code == 0, r.err
    job.check()
    with open(job.dir + ".count") as f:
        n = int(f.read())
    job.remove()
    return n


def one_failure(disk, job, n, code, lasting, p, then):
    """A disk that fails for ever may be waited for until the last checkpoint has taken too long: not five minutes."""
    flags = job.flags
    job.flags = [*flags, "--final-checkpoint-timeout-ms", "20000"]
    r = job.start(p, env=disk_of(disk, job, f"{n}:{code}" + (":lasting" if lasting else "")))
    job.flags = flags
    assert r.code in (0, 1), f"exit {r.code}: {r.err}"
    if r.code == 1:
        assert SAYS[code] in r.err and job.dir in r.err, f"it does not say why: {r.err}"
    else:
        job.check()
    job.finish(then)
    job.remove()


@pytest.mark.parametrize("query", ["text", "window"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_call(disk, tmp_path, backend, query):
    m, q = Matrix(str(tmp_path), SEED, backend), QUERIES[query]
    rate, p = q.rows * 8, 2
    most = calls(disk, Job(m, q, rate, "aligned"), p)
    assert most > 50
    rnd = random.Random(f"{SEED} {backend} {query}")
    each = [(n, code, lasting) for n in range(1, most + 1) for code in SAYS for lasting in (False, True)]
    for n, code, lasting in each if ALL else rnd.sample(each, 5):
        alignment, then = rnd.choice(("aligned", "unaligned")), rnd.choice((1, 2, 3))
        try:
            one_failure(disk, Job(m, q, rate, alignment), n, code, lasting, p, then)
        except AssertionError as e:
            raise AssertionError(f"CLINK_DISK_FAILS={n}:{code}{':lasting' if lasting else ''} {alignment} -p {p} then {then}, of {most} calls: {e}") from e


@pytest.mark.parametrize("query", ["text", "window"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_call_of_a_restart(disk, tmp_path, backend, query):
    """What a killed life has left is committed and gone on from, on a disk that fails."""
    m, q = Matrix(str(tmp_path), SEED, backend), QUERIES[query]
    rnd = random.Random(f"{SEED} restart {backend} {query}")
    each = [(n, code, lasting) for n in range(1, 80) for code in SAYS for lasting in (False, True)]
    killed = 0
    for n, code, lasting in each if ALL else rnd.sample(each, 4):
        alignment, p, then = rnd.choice(("aligned", "unaligned")), rnd.choice((1, 4)), rnd.choice((1, 2, 3))
        job = Job(m, q, q.rows * 8, alignment)
        killed += job.start(p, f"{rnd.choice(('checkpoint.after_manifest', 'commit.before', 'commit.after'))}:2:kill").code != 0
        try:
            one_failure(disk, job, n, code, lasting, then, p)
        except AssertionError as e:
            raise AssertionError(f"CLINK_DISK_FAILS={n}:{code}{':lasting' if lasting else ''} {alignment} -p {p} then {then}, of a restart: {e}") from e
    assert killed, "none of the kills ever came"
