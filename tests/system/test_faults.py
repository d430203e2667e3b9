"""The real binary is killed at every fault point of src/base/fault_points.h and started again: exact output each time.

A sample by default; CLINK_FAULTS=all (make kills) tries more moments, an error instead of a kill, and two kills in a row."""
import json
import os
import random
import signal

import kill_matrix
import pytest
from conftest import read_texts, run_clink

ALL = os.environ.get("CLINK_FAULTS") == "all"
SEED = int(os.environ.get("CLINK_SEED", "1" if not ALL else random.randrange(1 << 30)))
ROWS, KEYS, PARTS = 2000, 40, 3
POINTS = [p for p in kill_matrix.POINTS if p not in kill_matrix.OVERTAKING + kill_matrix.BESIDE]  # those: test_kill_matrix.py
KILLED = -signal.SIGKILL

SCRIPT = """CREATE TABLE src (i BIGINT NOT NULL, k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}', rate_limit='{rate}');
CREATE TABLE totals (k VARCHAR, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='csv', path='{dir}/totals', mode='upsert');
CREATE TABLE copy (i BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{dir}/copy');
INSERT INTO totals SELECT k, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY k;
INSERT INTO copy SELECT i, k FROM src WHERE v > 2;
"""


def row(i):
    return i, f"customer number {i * 7919 % KEYS}", i % 11


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    d = tmp_path_factory.mktemp("input")
    for part in range(PARTS):
        with open(d / f"{part}.json", "w") as f:
            for i in range(part, ROWS, PARTS):
                f.write('{"i":%d,"k":"%s","v":%d}\n' % row(i))
    return d


def answer():
    totals, copy = {}, set()
    for i, k, v in map(row, range(ROWS)):
        n, s = totals.get(k, (0, 0))
        totals[k] = (n + 1, s + v)
        if v > 2:
            copy.add((i, k))
    return {(k, str(n), str(s)) for k, (n, s) in totals.items()}, copy


class Job:
    """One job in a directory of its own; `start` runs it, with a fault or to its end."""

    def __init__(self, source, where, rate):
        where.mkdir()
        self.dir, self.seen = where, {}
        self.script = where / "job.sql"
        self.script.write_text(SCRIPT.format(inp=source, dir=where, rate=rate))

    def start(self, p, fault=None):
        r = run_clink("run", self.script, "--checkpoint-dir", self.dir / "ck", "--checkpoint-interval-ms", 10,
                      "--checkpoint-retained", 1, "-p", p, env={"CLINK_FAULT": fault} if fault else {}, ok=False, timeout=300)
        self.look()
        return r

    def look(self):
        """What has appeared is whole, right and there once, and a part never changes."""
        _, copy = answer()
        parts = {p.name: p.read_text() for p in self.dir.glob("copy/*") if not p.name.startswith(".")}
        assert all(parts.get(name) == text for name, text in self.seen.items()), "a part has changed or vanished"
        self.seen = parts
        rows = self.copied()
        assert len(rows) == len(set(rows)) and set(rows) <= copy

    def copied(self):
        return [(r["i"], r["k"]) for r in map(json.loads, lines_in(self.dir / "copy"))]

    def finish(self, p):
        r = self.start(p)
        assert r.code == 0, r.err
        self.check()
        again = self.start(1)
        assert again.code == 0 and "has finished before" in again.err
        self.check()

    def check(self):
        totals, copy = answer()
        got = [tuple(line.split(",")) for line in lines_in(self.dir / "totals")]
        assert len(got) == len(set(got)) and set(got) == totals
        assert set(self.copied()) == copy
        for d in ("totals", "copy"):
            left = [n for n in os.listdir(self.dir / d) if n.startswith(".")]
            assert not left, f"left behind: {left}"


def lines_in(folder):
    return [line for _, text in read_texts(folder) for line in text.split("\n")[:-1]]


def stopped(source, tmp_path, fault, p, before=()):
    """A job that the fault has stopped. How often a point is passed depends on the machine, so a job that came to its end
    before is tried again, slower."""
    for attempt, rate in enumerate((20000, 4000, 800)):
        job = Job(source, tmp_path / f"try{attempt}", rate)
        for f in before:
            job.start(p, f)
        r = job.start(p, fault)
        if r.code != 0:
            return job, r
        job.check()
    pytest.fail(f"{fault} was never reached")


def arrange(source, where, point, ordinal, action, p):
    """Restore points are passed once a start, and only with something to restore."""
    where.mkdir()
    restore = point.startswith("restore.")
    fault = f"{point}:{1 if restore else ordinal}:{action}"
    print(f"CLINK_FAULT={fault} -p {p} (CLINK_SEED={SEED})")
    return stopped(source, where, fault, p, ("checkpoint.after_manifest:2:kill",) if restore else ())


@pytest.mark.parametrize("point", POINTS)
def test_kill(source, tmp_path, point):
    rnd = random.Random(f"{SEED} {point}")
    for ordinal in (1, 2, 3, 5, 8) if ALL else (rnd.choice((1, 2)),):
        job, r = arrange(source, tmp_path / str(ordinal), point, ordinal, "kill", rnd.choice((1, 2, 3)))
        assert r.code == KILLED, f"exit {r.code}: {r.err}"
        if ALL:  # the restart is killed as well, or comes to its end
            job.start(rnd.choice((1, 2, 4)), f"{rnd.choice(POINTS)}:{rnd.choice((1, 2, 4))}:kill")
        job.finish(rnd.choice((1, 2, 4)))


@pytest.mark.parametrize("point", POINTS if ALL else random.Random(SEED).sample(POINTS, 6))
def test_error(source, tmp_path, point):
    """A step that fails once fails a checkpoint or the job; either way nothing is lost."""
    rnd = random.Random(f"{SEED} error {point}")
    where = tmp_path / "error"
    where.mkdir()
    job = Job(source, where / "job", 4000)
    r = job.start(rnd.choice((1, 2, 3)), f"{point}:{rnd.choice((1, 2, 3))}:error")
    assert r.code in (0, 1), f"exit {r.code}: {r.err}"
    assert r.code == 0 or r.err.strip(), "it failed without a word"
    job.finish(rnd.choice((1, 2, 4)))
