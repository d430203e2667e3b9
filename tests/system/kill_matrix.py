"""The kill matrix: queries x fault points x alignment x parallelism. The binary is killed at a named fault point, started again at the
same or another parallelism, and what it leaves must be what an undisturbed run leaves: no row missing, doubled or invented.

    python tests/system/kill_matrix.py [--backend NAME] [--jobs N] [--shard I/N] [--seed N] [--sample N] [--query NAME] [--point NAME]
    python tests/system/kill_matrix.py --backend NAME --cell "QUERY POINT:ORDINAL:ACTION ALIGNMENT P THEN [SECOND]" [--times N]

Without --sample every combination is run (make kill-matrix); test_kill_matrix.py runs a sample. A cell that fails is printed with
the command that runs it alone, and its folder stays; the others go on."""
import argparse
import collections
import concurrent.futures
import glob
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(__file__))
from conftest import CLINK, TOP  # noqa: E402
from kill_queries import QUERIES, make_rows, rows_in  # noqa: E402

POINTS = [p for p in re.findall(r'^CK_FAULT_POINT\(\w+,\s*"([^"]+)"', open(os.path.join(TOP, "src/base/fault_points.h")).read(), re.M)
          if not p.startswith("backfill.")]  # those: test_backfill.py
OVERTAKING = ("checkpoint.after_overtake", "checkpoint.before_inflight", "checkpoint.after_inflight", "restore.before_replay")
BESIDE = ("materialise.before", "materialise.after")  # only where all rows are written beside the checkpoints
KILLED = -signal.SIGKILL
HANGS = 300  # seconds after which a start has to have ended, those not counted in which it waited for a core
# --state-backend of each, DIR its folder: every page is in the file, every row that can be in RocksDB; with a changelog all rows are
# written as often as can be.
BACKENDS = {
    "memory": [], "file": ["file:DIR"], "rocksdb": ["rocksdb:DIR"],
    "changelog": ["changelog+memory", "--materialisation", "external", "--materialisation-every", "2"],
    "changelog-inside": ["changelog+memory", "--materialisation", "inside", "--materialisation-every", "3"],
    "changelog-rocksdb": ["changelog+rocksdb:DIR", "--materialisation-every", "2"],
}
EVERYTHING = {"file": {"CLINK_SPILL_ALL": "1"}, "rocksdb": {"CLINK_ROCKSDB_ALL": "1"}, "changelog-rocksdb": {"CLINK_ROCKSDB_ALL": "1"}}
Cell = collections.namedtuple("Cell", "query point ordinal alignment p then second", defaults=(None,))


def fault_of(cell):
    return f"{cell.point}:{1 if cell.point.startswith('restore.') else cell.ordinal}:kill"


def cell_text(cell):
    return " ".join(map(str, (cell.query, fault_of(cell), cell.alignment, cell.p, cell.then, *([cell.second] if cell.second else []))))


def cell_of(text):
    query, fault, alignment, p, then, *second = text.split()
    point, ordinal, _ = fault.split(":")
    return Cell(query, point, int(ordinal), alignment, int(p), int(then), *second)


def threads_of(pid):
    """What the threads of a process that does not end are at, as far as there is somebody to ask."""
    try:
        r = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"], capture_output=True, text=True, timeout=120)
        return r.stdout[-20000:]
    except (OSError, subprocess.TimeoutExpired):
        return ""


def waited_for_a_core(pid):
    """Seconds that its threads were ready to run and did not, the most of any."""
    most = 0
    for task in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(task) as f:
                most = max(most, int(f.read().split()[1]) / 1e9)
        except (OSError, IndexError):  # it has ended, or this kernel does not count
            continue
    return most


class Matrix:
    """Undisturbed answers and the folder that all jobs have theirs in; env: of every start that is not undisturbed. Threads: any;
    `lock` guards what they share."""

    def __init__(self, where, seed, backend="memory", env=None):
        self.backend, self.env = backend, env or {}
        self.where, self.seed, self.n, self.answers, self.inputs = where, seed, 0, {}, {}
        self.retained = 1
        self.lock = threading.RLock()

    def input(self, q):
        with self.lock:
            if q.rows not in self.inputs:
                d = os.path.join(self.where, f"in{q.rows}")
                os.mkdir(d)
                make_rows(os.path.join(d, "in.ndjson"), q.rows, q.rows)
                make_rows(os.path.join(d, "other.ndjson"), max(q.rows // 4, 100), q.rows + 1)
                self.inputs[q.rows] = d
            return self.inputs[q.rows]

    def folder(self):
        with self.lock:
            self.n += 1
            d = os.path.join(self.where, f"job{self.n}")
        os.mkdir(d)
        return d

    def answer(self, q):
        with self.lock:
            if q.name not in self.answers:
                job = Job(self, q, 0, "aligned")
                r = job.start(1, env={})
                assert r.code == 0, r.err
                self.answers[q.name] = job.rows()
                assert self.answers[q.name] and (q.limit or max(self.answers[q.name].values()) >= 1)
                job.remove()
            return self.answers[q.name]

    def stopped(self, cell, before=()):
        """A job that the fault has stopped. How often a point is passed depends on the machine: slower the next time."""
        q = QUERIES[cell.query]
        for rate in (0, 0, 0) if q.slow else (q.rows * 8, q.rows * 3, q.rows):
            job = Job(self, q, rate, cell.alignment)
            for f in before:
                job.start(cell.p, f)
            r = job.start(cell.p, fault_of(cell))
            if r.code != 0:
                return job, r
            job.check()
            job.remove()
        return None, None

    def run(self, cell):
        """One cell. False: the point was not reached."""
        before = ((f"checkpoint.after_manifest:{1 if QUERIES[cell.query].slow else 2}:kill",) if cell.point.startswith("restore.") else ())
        try:
            job, r = self.stopped(cell, before)
            if not job:
                return False
            assert r.code == KILLED, f"exit {r.code}: {r.err}"
            if cell.second:  # killed again, perhaps while it restores
                r = job.start(cell.then, cell.second)
                assert r.code in (0, 1, KILLED), r.err
            if zlib.crc32(cell_text(cell).encode()) % 4:  # three of four go on as fast as they can, which costs a fifth of the time
                job.at_rate(0)
            job.finish(cell.then)
        except AssertionError as e:
            raise AssertionError(f"{cell_text(cell)} (seed {self.seed}, {self.where}): {e}") from e
        job.remove()
        return True


class Ended:
    def __init__(self, code, err):
        self.code, self.err = code, err


class Job:
    def __init__(self, matrix, q, rate, alignment):
        self.m, self.q, self.alignment, self.retained = matrix, q, alignment, matrix.retained
        self.inp = matrix.input(q)
        self.dir = matrix.folder()
        self.out = os.path.join(self.dir, "out")
        self.at_rate(rate)

    def at_rate(self, rate):
        """rate: rows a second; 0: as fast as it can."""
        self.flags, self.env = self.q.write(self.dir, self.inp, rate)

    def start(self, p, fault=None, env=None):
        backend = [o.replace("DIR", os.path.join(self.dir, "work")) for o in BACKENDS[self.m.backend]]
        args = ["run", *self.flags, "--checkpoint-dir", os.path.join(self.dir, "ck"), "--checkpoint-interval-ms", 8,
                "--checkpoint-retained", self.retained, "-p", p, "--alignment", self.alignment, *(["--state-backend", *backend] if backend else [])]
        env = {**os.environ, **EVERYTHING.get(self.m.backend, {}), **self.env, **(self.m.env if env is None else env), **({"CLINK_FAULT": fault} if fault else {})}
        with subprocess.Popen([CLINK, *map(str, args)], cwd=self.dir, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            began, err = time.monotonic(), None
            while err is None:
                try:
                    _, err = run.communicate(timeout=HANGS / 10)
                except subprocess.TimeoutExpired:
                    if time.monotonic() - began - waited_for_a_core(run.pid) < HANGS:
                        continue
                    at = threads_of(run.pid)
                    run.kill()
                    _, err = run.communicate()
                    raise AssertionError(f"not at its end after {HANGS} s (-p {p}, fault {fault}, {self.dir}): {err.decode('utf-8', 'replace')}\n{at}") from None
        return Ended(run.returncode, err.decode("utf-8", "replace"))

    def rows(self):
        return self.q.settled(rows_in(self.out))

    def finish(self, p):
        r = self.start(p)
        assert r.code == 0, r.err
        self.check()
        again = self.start(1)
        assert again.code == 0 and "has finished before" in again.err, again.err
        self.check()

    def check(self):
        want, got = self.m.answer(self.q), self.rows()
        if self.q.limit:
            assert sum(got.values()) == self.q.limit, f"{sum(got.values())} rows for LIMIT {self.q.limit}"
            assert max(got.values()) == 1, "a row came twice"
            assert len({int(line.split(",")[0]) for line in got}) == self.q.limit
        else:
            missing, more = want - got, got - want
            assert not missing and not more, (f"{sum(missing.values())} missing, {sum(more.values())} doubled or invented: "
                                              f"{list(missing)[:3]} {list(more)[:3]}")
        left = [n for n in os.listdir(self.out) if n.startswith(".")]
        assert not left, f"left behind: {left}"

    def remove(self):
        shutil.rmtree(self.dir)


def cells(rnd, query=None, point=None, backend="memory"):
    """Every combination; those of overtaking only where something is under way, of materialisations only where they are apart."""
    for name, at, alignment, p, other in itertools.product(QUERIES, POINTS, ("aligned", "unaligned"), (1, 4), (False, True)):
        then = p if not other else 4 if p == 1 else rnd.choice((1, 2, 3))
        ordinal = rnd.choice((1, 2, 3))
        if (query and name != query) or (point and at != point):
            continue
        if at in BESIDE and backend not in ("changelog", "changelog-rocksdb"):
            continue
        if at in OVERTAKING and (alignment == "aligned" or not QUERIES[name].slow or p == 1):
            continue
        yield Cell(name, at, ordinal, alignment, p, then)


# More than one trouble: two kills in a row, a kill during the restore, a checkpoint that was given up between two complete ones, a
# commit whose reply is lost, a full disk at any step of a durable write.
TWICE = ([(p, f"{s}:1:kill") for p in ("checkpoint.after_manifest", "commit.after", "checkpoint.before_ack")
          for s in ("restore.before_load", "restore.after_load", "restore.after_commit", "checkpoint.after_manifest", "commit.before")] +
         [("checkpoint.after_manifest", f"checkpoint.before_snapshot:{n}:error,checkpoint.after_manifest:{n + 1}:kill") for n in (2, 4)] +
         [("checkpoint.before_manifest", f"{s}:{n}:error") for n in (1, 3, 6)
          for s in ("commit.after", "durable.after_create", "durable.after_write", "durable.after_fsync", "durable.after_publish")])


def twice(rnd, query=None, point=None):
    for (at, second), name, alignment in itertools.product(TWICE, QUERIES, ("aligned", "unaligned")):
        cell = Cell(name, at, rnd.choice((1, 2)), alignment, rnd.choice((1, 4)), rnd.choice((1, 2, 4)), second)
        if (not query or name == query) and (not point or at == point):
            yield cell


class Tally:
    """What has come of the cells. log: a file with a line for each that is done; those that stand in it as good are not run again."""

    def __init__(self, matrix, log):
        self.m, self.log = matrix, log
        self.killed, self.missed, self.bad = [], [], []
        self.lock = threading.Lock()

    def before(self, todo):
        lines = open(self.log).read().splitlines() if self.log and os.path.exists(self.log) else []
        done = dict(reversed(line.split(" ", 1)) for line in lines if line.startswith(("killed ", "missed ")))
        for cell in todo:
            if how := done.get(cell_text(cell)):
                (self.killed if how == "killed" else self.missed).append(cell)
        return set(done)

    def run(self, cell):
        why = ""
        try:
            how = "killed" if self.m.run(cell) else "missed"
        except AssertionError as e:
            how, why = "BAD", str(e)
        with self.lock:
            {"killed": self.killed, "missed": self.missed, "BAD": self.bad}[how].append(cell)
            if why:
                print(f"BAD {why}\nagain: python tests/system/kill_matrix.py --backend {self.m.backend} --cell '{cell_text(cell)}' --times 50", flush=True)
            if self.log:
                with open(self.log, "a") as f:
                    f.write(f"{how} {cell_text(cell)}\n" + "".join(f"    {line}\n" for line in why.splitlines()))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    a.add_argument("--sample", type=int)
    a.add_argument("--query", choices=QUERIES)
    a.add_argument("--point")
    a.add_argument("--backend", choices=BACKENDS, default="memory",
                   help="rocksdb, file: every row is out of memory whenever a subtask takes input")
    a.add_argument("--jobs", type=int, default=1, help="so many cells at once")
    a.add_argument("--shard", default="1/1", help="I/N: the I-th of N parts, with the same seed")
    a.add_argument("--cell", help="this one alone, as it was printed")
    a.add_argument("--times", type=int, default=1, help="each cell so many times")
    a.add_argument("--log", help="a line for each cell; those that stand there are not run again")
    a.add_argument("--where", help="the folder of all jobs; default: in memory if there is room, as a kill does not ask the disk")
    o = a.parse_args()
    shard, shards = map(int, o.shard.split("/"))
    rnd = random.Random(o.seed)
    todo = [cell_of(o.cell)] if o.cell else [*cells(rnd, o.query, o.point, o.backend), *twice(rnd, o.query, o.point)]
    rnd.shuffle(todo)
    todo = (todo[:o.sample] if o.sample else todo)[shard - 1::shards]
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    base = o.where or ("/dev/shm" if shm and shm.f_bavail * shm.f_frsize > 1 << 30 else None)
    where = tempfile.mkdtemp(prefix="clink-kills-", dir=base)
    tally = Tally(Matrix(where, o.seed, o.backend), o.log)
    done, began = tally.before(todo) if o.times == 1 else set(), time.monotonic()
    print(f"backend {o.backend}, seed {o.seed}, {len(todo)} combinations, {len(tally.killed) + len(tally.missed)} done before, {o.jobs} at once in {where}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for _ in pool.map(tally.run, [c for c in todo for _ in range(o.times) if cell_text(c) not in done]):
            pass
    print(f"{len(tally.killed) + len(tally.missed) + len(tally.bad)} cells, {len(tally.killed)} killed where they were to be and gone on right, "
          f"{len(tally.missed)} not reached, {len(tally.bad)} BAD, seed {o.seed}, {time.monotonic() - began:.0f} s")
    never = sorted({c.point for c in todo} - {c.point for c in tally.killed + tally.bad})
    if never:
        print("never reached: " + ", ".join(never))
    if tally.bad:
        print(f"what they left is in {where}")
    else:
        shutil.rmtree(where)
    return 1 if tally.bad or (never and not o.sample and not o.cell) else 0


if __name__ == "__main__":
    sys.exit(main())
