"""The kill matrix: queries x fault points x alignment x parallelism. The binary is killed at a named fault point, started again at the
same or another parallelism, and what it leaves must be what an undisturbed run leaves: no row missing, doubled or invented.

    python tests/system/kill_matrix.py [--seed N] [--sample N] [--query NAME] [--point NAME] [--backend NAME]

Without --sample every combination is run (make kill-matrix); test_kill_matrix.py runs a sample."""
import argparse
import collections
import itertools
import os
import random
import re
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from conftest import TOP, read_texts, run_clink  # noqa: E402

POINTS = re.findall(r'^CK_FAULT_POINT\(\w+,\s*"([^"]+)"', open(os.path.join(TOP, "src/base/fault_points.h")).read(), re.M)
OVERTAKING = ("checkpoint.after_overtake", "checkpoint.before_inflight", "checkpoint.after_inflight", "restore.before_replay")
BESIDE = ("materialise.before", "materialise.after")  # only where all rows are written beside the checkpoints
KILLED = -signal.SIGKILL
# --state-backend of each, DIR its folder; with a changelog all rows are written as often as can be.
BACKENDS = {
    "memory": [], "file": ["file:DIR"], "rocksdb": ["rocksdb:DIR"],
    "changelog": ["changelog+memory", "--materialisation", "external", "--materialisation-every", "2"],
    "changelog-inside": ["changelog+memory", "--materialisation", "inside", "--materialisation-every", "3"],
    "changelog-rocksdb": ["changelog+rocksdb:DIR", "--materialisation-every", "2"],
}

SRC = """CREATE TABLE src (i BIGINT NOT NULL, k VARCHAR, g BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (connector='file', format='json', path='{inp}/in.ndjson'{rate});
CREATE TABLE other (i BIGINT NOT NULL, k VARCHAR, g BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (connector='file', format='json', path='{inp}/other.ndjson'{rate});
"""


class Query:
    """columns: of the sink. key: it is an upsert sink. rows: of the input. limit: so many rows come, any of them. changes: results
    are emitted while they change. slow: its queues are full, so that something is under way when a barrier overtakes."""

    def __init__(self, name, columns, select, key="", rows=6000, limit=None, changes=False, slow=False):
        self.name, self.columns, self.select, self.key, self.rows = name, columns, select, key, rows
        self.limit, self.changes, self.slow = limit, changes, slow

    def script(self, inp, out, rate):
        key = f", PRIMARY KEY ({self.key}) NOT ENFORCED" if self.key else ""
        mode = ", mode='upsert'" if self.key else ""
        opt = f", rate_limit='{rate}'" if rate else ""
        return (SRC.format(inp=inp, rate=opt) +
                f"CREATE TABLE snk ({self.columns}{key}) WITH (connector='file', format='csv', path='{out}'{mode});\n"
                f"INSERT INTO snk {self.select};\n")


QUERIES = {q.name: q for q in (
    Query("text", "k VARCHAR, n BIGINT, s BIGINT", "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY k", "k", changes=True),
    Query("bigint", "g BIGINT, n BIGINT, s BIGINT", "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY g"),
    Query("two", "k VARCHAR, g BIGINT, n BIGINT", "SELECT k, g, COUNT(*) AS n FROM src GROUP BY k, g", "k, g", changes=True),
    Query("window", "k VARCHAR, w TIMESTAMP, n BIGINT, s BIGINT",
          "SELECT k, window_start AS w, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
          " GROUP BY k, window_start, window_end"),
    Query("window_top", "w TIMESTAMP, k VARCHAR, s BIGINT, r BIGINT",
          "SELECT w, k, s, r FROM (SELECT *, RANK() OVER (PARTITION BY w, e ORDER BY s DESC) AS r FROM (SELECT k, window_start AS w,"
          " window_end AS e, SUM(v) AS s FROM TABLE(HOP(TABLE src, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
          " GROUP BY k, window_start, window_end)) WHERE r <= 2"),
    Query("window_first", "k VARCHAR, w TIMESTAMP, i BIGINT",
          "SELECT k, window_start AS w, i FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY ts, i)"
          " AS n FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE n = 1"),
    Query("window_join", "k VARCHAR, w TIMESTAMP, i BIGINT, o BIGINT",
          "SELECT COALESCE(a.k, b.k) AS k, COALESCE(a.window_start, b.window_start) AS w, a.i, b.i AS o FROM"
          " TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '5' SECOND)) a FULL JOIN"
          " TABLE(TUMBLE(TABLE other, DESCRIPTOR(ts), INTERVAL '5' SECOND)) b"
          " ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end", changes=True),
    Query("clock", "k VARCHAR, n BIGINT, s BIGINT",  # windows as the clock has them: what they have in all is the same
          "SELECT k, SUM(n) AS n, SUM(s) AS s FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM TABLE(HOP(TABLE (SELECT *, PROCTIME() AS p"
          " FROM src), DESCRIPTOR(p), INTERVAL '0.01' SECOND, INTERVAL '0.03' SECOND)) GROUP BY k, window_start, window_end UNION ALL"
          " SELECT k, COUNT(*) AS n, SUM(v) AS s FROM (SELECT *, PROCTIME() AS p FROM src) GROUP BY SESSION(p, INTERVAL '0.02' SECOND), k)"
          " GROUP BY k", "k", changes=True),
    Query("over", "i BIGINT, k VARCHAR, n BIGINT, s BIGINT",
          "SELECT i, k, COUNT(*) OVER w AS n, SUM(v) OVER w AS s FROM src"
          " WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW)"),
    Query("hop", "k VARCHAR, w TIMESTAMP, n BIGINT, s BIGINT",  # subtasks are at different times when a barrier overtakes
          "SELECT k, window_start AS w, COUNT(*) AS n, SUM(v) AS s FROM TABLE(HOP(TABLE src, DESCRIPTOR(ts), INTERVAL '0.5' SECOND,"
          " INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end", slow=True),
    Query("interval", "i BIGINT, o BIGINT",
          "SELECT a.i, b.i AS o FROM src a JOIN other b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '20' SECOND AND a.ts"),
    Query("join", "k VARCHAR, n BIGINT, s BIGINT",
          "SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM src a JOIN other b ON a.k = b.k GROUP BY a.k", "k", changes=True),
    Query("diamond", "k VARCHAR, n BIGINT, s BIGINT",
          "SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM src a JOIN src b ON a.k = b.k GROUP BY a.k", "k", rows=12000, slow=True),
    Query("top", "k VARCHAR, i BIGINT, v BIGINT, r BIGINT",
          "SELECT k, i, v, r FROM (SELECT k, i, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, i) AS r FROM src) WHERE r <= 3",
          "k, r", changes=True),
    Query("limit", "i BIGINT, k VARCHAR", "SELECT i, k FROM src LIMIT 12000", rows=15000, limit=12000),
    Query("having", "i BIGINT, n BIGINT", "SELECT v AS i, COUNT(*) AS n FROM src WHERE v > 500 GROUP BY v HAVING COUNT(*) < 3", "i",
          changes=True),
    Query("distinct", "k VARCHAR, g BIGINT", "SELECT DISTINCT k, g FROM src"),
)}
if os.environ.get("CLINK_KILL_LARGE"):  # as many rows as the limit is meant for
    QUERIES["limit"] = Query("limit", "i BIGINT, k VARCHAR", "SELECT i, k FROM src LIMIT 1200000", rows=1500000, limit=1200000)


def make_rows(path, rows, salt):
    rnd = random.Random(salt)
    with open(path, "w") as f:
        for i in range(rows):
            at = i // 20
            f.write('{"i":%d,"k":"customer number %d","g":%d,"v":%d,"ts":"2026-01-01 %02d:%02d:%02d"}\n' % (
                i, rnd.randrange(60), rnd.randrange(-20, 20), rnd.randrange(1000), at // 3600 % 24, at // 60 % 60, at % 60))


def rows_in(folder):
    return collections.Counter(line for _, text in read_texts(folder) for line in text.split("\n")[:-1])


class Matrix:
    def __init__(self, where, seed, backend="memory"):
        self.backend = backend
        self.where, self.seed, self.n, self.answers, self.inputs = where, seed, 0, {}, {}
        self.retained = 1

    def input(self, q):
        if q.rows not in self.inputs:
            self.inputs[q.rows] = d = os.path.join(self.where, f"in{q.rows}")
            os.mkdir(d)
            make_rows(os.path.join(d, "in.ndjson"), q.rows, q.rows)
            make_rows(os.path.join(d, "other.ndjson"), max(q.rows // 4, 100), q.rows + 1)
        return self.inputs[q.rows]

    def answer(self, q):
        if q.name not in self.answers:
            job = Job(self, q, 0, "aligned")
            r = job.start(1)
            assert r.code == 0, r.err
            self.answers[q.name] = job.rows()
            assert self.answers[q.name] and (q.limit or max(self.answers[q.name].values()) >= 1)
            job.remove()
        return self.answers[q.name]

    def stopped(self, q, alignment, p, fault, before=()):
        """A job that the fault has stopped. How often a point is passed depends on the machine: slower the next time."""
        for rate in (0, 0, 0) if q.slow else (q.rows * 8, q.rows * 3, q.rows):
            job = Job(self, q, rate, alignment)
            for f in before:
                job.start(p, f)
            r = job.start(p, fault)
            if r.code != 0:
                return job, r
            job.check()
            job.remove()
        return None, None

    def run(self, name, point, alignment, p, then, ordinal, second=None):
        """One cell. False: the point was not reached."""
        q = QUERIES[name]
        restore = point.startswith("restore.")
        fault = f"{point}:{1 if restore else ordinal}:kill"
        before = ((f"checkpoint.after_manifest:{1 if q.slow else 2}:kill",) if restore else ())
        what = f"{name} {fault} {alignment} -p {p} then {then}" + (f", {second}" if second else "")
        try:
            job, r = self.stopped(q, alignment, p, fault, before)
            if not job:
                return False
            assert r.code == KILLED, f"exit {r.code}: {r.err}"
            if second:  # killed again, perhaps while it restores
                r = job.start(then, second)
                assert r.code in (0, 1, KILLED), r.err
            job.finish(then)
        except AssertionError as e:
            raise AssertionError(f"{what} (seed {self.seed}, {self.where}): {e}") from e
        job.remove()
        return True


class Job:
    def __init__(self, matrix, q, rate, alignment):
        matrix.n += 1
        self.m, self.q, self.alignment, self.retained = matrix, q, alignment, matrix.retained
        self.dir = os.path.join(matrix.where, f"job{matrix.n}")
        os.mkdir(self.dir)
        self.out, self.script = os.path.join(self.dir, "out"), os.path.join(self.dir, "job.sql")
        with open(self.script, "w") as f:
            f.write(q.script(matrix.input(q), self.out, rate))

    def start(self, p, fault=None):
        flags = ["--changes"] if self.q.changes else []
        if BACKENDS[self.m.backend]:
            flags += ["--state-backend", *(o.replace("DIR", os.path.join(self.m.where, "work")) for o in BACKENDS[self.m.backend])]
        return run_clink("run", self.script, "--checkpoint-dir", os.path.join(self.dir, "ck"), "--checkpoint-interval-ms", 8,
                         "--checkpoint-retained", self.retained, "-p", p, "--alignment", self.alignment, *flags,
                         env={"CLINK_ROCKSDB_ALL": "1", **({"CLINK_FAULT": fault} if fault else {})}, ok=False, timeout=300)

    def rows(self):
        return rows_in(self.out)

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
        if (query and name != query) or (point and at != point):
            continue
        if at in BESIDE and backend not in ("changelog", "changelog-rocksdb"):
            continue
        if at in OVERTAKING and (alignment == "aligned" or not QUERIES[name].slow or p == 1):
            continue
        then = p if not other else 4 if p == 1 else rnd.choice((1, 2, 3))
        yield name, at, alignment, p, then, rnd.choice((1, 2, 3))


# More than one trouble: two kills in a row, a kill during the restore, a checkpoint that was given up between two complete ones, a
# commit whose reply is lost, a full disk at any step of a durable write.
TWICE = ([(p, f"{s}:1:kill") for p in ("checkpoint.after_manifest", "commit.after", "checkpoint.before_ack")
          for s in ("restore.before_load", "restore.after_load", "restore.after_commit", "checkpoint.after_manifest", "commit.before")] +
         [("checkpoint.after_manifest", f"checkpoint.before_snapshot:{n}:error,checkpoint.after_manifest:{n + 1}:kill") for n in (2, 4)] +
         [("checkpoint.before_manifest", f"{s}:{n}:error") for n in (1, 3, 6)
          for s in ("commit.after", "durable.after_create", "durable.after_write", "durable.after_fsync", "durable.after_publish")])


def twice(rnd):
    for (point, second), name, alignment in itertools.product(TWICE, QUERIES, ("aligned", "unaligned")):
        p = rnd.choice((1, 4))
        yield name, point, alignment, p, rnd.choice((1, 2, 4)), rnd.choice((1, 2)), second


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    a.add_argument("--sample", type=int)
    a.add_argument("--query")
    a.add_argument("--point")
    a.add_argument("--backend", choices=BACKENDS, default="memory",
                   help="rocksdb: every row is out of memory whenever a subtask takes input")
    o = a.parse_args()
    rnd = random.Random(o.seed)
    todo = list(cells(rnd, o.query, o.point, o.backend))
    todo += [c for c in twice(rnd) if (not o.query or c[0] == o.query) and (not o.point or c[1] == o.point)]
    if o.sample:
        todo = rnd.sample(todo, min(o.sample, len(todo)))
    with tempfile.TemporaryDirectory(prefix="clink-kills-") as where:
        m = Matrix(where, o.seed, o.backend)
        ran, passed = 0, collections.Counter()
        for c in todo:
            reached = m.run(*c)
            ran += reached
            passed[c[1]] += reached
        print(f"{len(todo)} combinations, {ran} killed where they were to be, seed {o.seed}")
        never = sorted({c[1] for c in todo} - set(p for p, n in passed.items() if n))
        if never:
            print("never reached: " + ", ".join(never))
        return 1 if never and not o.sample else 0


if __name__ == "__main__":
    sys.exit(main())
