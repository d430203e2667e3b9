"""What every transactional sink must stand, whatever it writes to: the same job is stopped at every step of a checkpoint and its commit, goes
on in every way a job may go on, and what a reader of committed rows sees at the end is each row once, with nothing left open.

    python tests/system/conformance.py [--sink NAME]... [--cell NAME]... [--write]

--write (make conformance) puts the matrix into docs/connectors.md. test_conformance.py runs a sample in CI.

A sink joins with a class below `Sink`, entered in SINKS: how its server is started, how the table is declared, what a reader sees, what is
left open. A cell is a function of (Cell); it fails by an assertion."""
import argparse
import collections
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
from conftest import CLINK, TOP, read_rows, run_clink  # noqa: E402

KILLED = -signal.SIGKILL
ROWS = 20000
PAGE = os.path.join(TOP, "docs", "connectors.md")
BEGIN, END = "<!-- conformance -->", "<!-- /conformance -->"


class Sink:
    """One kind of sink. Made once for all its cells; start before the first, stop after the last."""
    title = ""                 # the column in the matrix
    interval_ms = 50           # between checkpoints, ten rows each
    lasts_s = 100              # the input, while lives are stopped at the n-th of something: it must not end before, however slow a machine is
    points = ()                # its own fault points between the steps of one commit
    lost = ("commit.after",)   # points behind which the outside has taken the commit and the answer is lost
    fences = False             # a second life elsewhere shuts a first one out that was only thought dead

    def start(self, where):
        """The server is up, or raises Missing with the reason why this machine has none. where: a directory of its own."""

    def stop(self):
        """The server goes."""

    def restart(self):
        """The server is killed and started again with its data. None: there is no server."""
        return None

    def table(self, cell):
        """CREATE TABLE snk (id BIGINT, k VARCHAR) WITH (...): a place that is empty and the cell's own (cell.dir, cell.number)."""
        raise NotImplementedError

    def rows(self, cell):
        """What a reader of committed data sees now: a list of (id, k)."""
        raise NotImplementedError

    def left(self, cell):
        """What should not be there when a job has ended: staged files, open transactions. A list of names."""
        return []


class Missing(Exception):
    """The server cannot run here."""


class FileSink(Sink):
    title = "file"

    def table(self, cell):
        return f"CREATE TABLE snk (id BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{cell.dir}/out')"

    def _names(self, cell):
        d = os.path.join(cell.dir, "out")
        return [os.path.join(d, n) for n in sorted(os.listdir(d))] if os.path.isdir(d) else []

    def rows(self, cell):
        return [(r["id"], r["k"]) for r in read_rows(os.path.join(cell.dir, "out"))]

    def left(self, cell):
        return [n for n in self._names(cell) if os.path.basename(n).startswith(".")]


# name: (module, class). A module is looked for only when its sink is asked for.
SINKS = {
    "file": ("conformance", "FileSink"),
    "postgres": ("postgres_conformance", "PostgresSink"),
    "postgres_upsert": ("postgres_conformance", "PostgresUpsertSink"),
    "postgres_letters": ("postgres_conformance", "PostgresLettersSink"),
    "kafka": ("conformance_kafka", "KafkaSink"),
}


def make_sink(name):
    module, cls = SINKS[name]
    return globals()[cls]() if module == "conformance" else getattr(importlib.import_module(module), cls)()


class Cell:
    """One job with a place of its own. The input is a file; what comes out must be `want`, each row once."""

    def __init__(self, sink, where, number):
        self.sink, self.number, self.dir = sink, number, os.path.join(where, f"cell{number}")
        os.mkdir(self.dir)
        self.want = collections.Counter((i, f"customer number {i * 7919 % 100}") for i in range(ROWS))
        with open(os.path.join(self.dir, "in.ndjson"), "w") as f:
            f.writelines(json.dumps({"id": i, "k": k}) + "\n" for i, k in self.want)
        self.ck, self.script, self.attempts = os.path.join(self.dir, "ck"), os.path.join(self.dir, "job.sql"), 0
        self.write_script(ROWS // sink.lasts_s)

    def write_script(self, rate):
        with open(self.script, "w") as f:
            f.write(f"CREATE TABLE src (id BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{self.dir}/in.ndjson',"
                    f" rate_limit='{rate}');\n{self.sink.table(self)};\nINSERT INTO snk SELECT id, k FROM src;\n")

    def read_at(self, rate):
        with open(self.script) as f:
            text = f.read()
        with open(self.script, "w") as f:
            f.write(re.sub(r"rate_limit='\d+'", f"rate_limit='{rate}'", text))

    def rename(self, table, name):
        """The table is called otherwise from here on; what it stands for outside is the same."""
        with open(self.script) as f:
            text = f.read()
        with open(self.script, "w") as f:
            f.write(text.replace(f"CREATE TABLE {table} ", f"CREATE TABLE {name} ").replace(f"INTO {table} ", f"INTO {name} "))

    def args(self, p, *more, ck=None):
        return ["run", self.script, "--checkpoint-dir", ck or self.ck, "--checkpoint-interval-ms", str(self.sink.interval_ms),
                "--checkpoint-retained", "64", "-p", str(p), *map(str, more)]

    def run(self, p, fault=None, *more, ck=None):
        r = run_clink(*self.args(p, *more, ck=ck), env={"CLINK_FAULT": fault} if fault else {}, ok=False, timeout=200)
        self.look()
        return r

    def start(self, p, fault=None, ck=None):
        """In the background: a Popen whose stderr goes to the file `log`."""
        log = open(os.path.join(self.dir, f"log{self.attempts}"), "w+")
        self.attempts += 1
        env = {**os.environ, **({"CLINK_FAULT": fault} if fault else {})}
        proc = subprocess.Popen([CLINK, *self.args(p, ck=ck)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=env)
        proc.log = log.name
        return proc

    def killed(self, p, fault, *more):
        r = self.run(p, fault + ":kill", *more)
        assert r.code == KILLED, f"{fault} was not reached: exit {r.code}: {r.err}"

    def look(self):
        """At any moment a reader sees no row twice and none that was not written."""
        more = collections.Counter(self.sink.rows(self)) - self.want
        assert not more, f"{sum(more.values())} doubled or invented: {list(more)[:3]}"

    def finish(self, p, *more):
        """What is left of the input comes in a second, in several checkpoints still."""
        self.read_at(ROWS)
        r = self.run(p, None, *more)
        assert r.code == 0, r.err
        self.check()
        again = self.run(1)
        assert again.code == 0 and "has finished before" in again.err, again.err
        self.check()

    def check(self):
        self.look()
        missing = self.want - collections.Counter(self.sink.rows(self))
        assert not missing, f"{sum(missing.values())} missing: {list(missing)[:3]}"
        end = time.monotonic() + 10  # a server may notice a moment later that who had it open has gone
        while left := self.sink.left(self):
            assert time.monotonic() < end, f"left open: {left}"
            time.sleep(0.1)

    def checkpoints(self):
        """(completed ids, committed ids), ascending."""
        names = [n for _, _, files in os.walk(self.ck) for n in files]
        done = sorted(int(m[1]) for n in names if (m := re.fullmatch(r"checkpoint-(\d+)\.json", n)))
        return done, sorted(int(m[1]) for n in names if (m := re.fullmatch(r"checkpoint-(\d+)\.committed", n)))


# ---- cells ----

CELLS = {}


def cell(title):
    def enter(f):
        CELLS[f.__name__] = (title, f)
        return f
    return enter


@cell("killed before anything is prepared")
def before_prepare(c):
    c.killed(2, "checkpoint.before_barrier:5")
    c.finish(2)


@cell("killed when one writer has prepared")
def one_prepared(c):
    c.killed(2, "checkpoint.before_ack:7")
    c.finish(2)


@cell("killed when all have prepared")
def prepared(c):
    c.killed(2, "checkpoint.before_manifest:3")
    c.finish(2)


@cell("killed between manifest and commit")
def manifest_written(c):
    c.killed(2, "checkpoint.after_manifest:3")
    c.finish(2)


@cell("killed at each step of a commit")
def mid_commit(c):
    """One after the other in one job: each life goes a little further."""
    for point in ("commit.before:1", "commit.before:2", *(f"{p}:{n}" for p in c.sink.points for n in (1, 2)), "commit.after:1"):
        c.killed(2, point)
    c.finish(2)


@cell("killed when all is committed")
def committed(c):
    c.killed(2, "commit.before_committed:2")
    c.killed(2, "commit.after_committed:2")
    c.finish(2)


@cell("killed again while it restores")
def killed_while_restoring(c):
    c.killed(2, "checkpoint.after_manifest:3")
    for point in ("restore.before_load:1", "restore.after_load:1", "commit.before:1", *(f"{p}:1" for p in c.sink.points), "commit.after:1",
                  "restore.after_commit:1"):
        r = c.run(2, point + ":kill")
        assert r.code in (0, KILLED), r.err
    c.finish(2)


@cell("restored from N by name")
def from_n(c):
    c.killed(2, "checkpoint.after_manifest:3")
    done, _ = c.checkpoints()
    c.finish(2, "--restore", done[-1])


@cell("restored twice from N-1, N not committed")
def twice_from_before(c):
    c.killed(2, "checkpoint.after_manifest:3")
    done, _ = c.checkpoints()
    before = str(done[-2])
    c.killed(2, "checkpoint.after_manifest:1", "--restore", before)
    c.finish(2, "--restore", before)


@cell("restored from N-1, N committed: refused, nothing changed")
def refused_from_before(c):
    c.killed(2, "commit.after_committed:3")
    done, committed = c.checkpoints()
    seen = collections.Counter(c.sink.rows(c))
    before = max(n for n in done if n < committed[-1])
    elsewhere = c.ck + "-elsewhere"
    for r in (c.run(2, None, "--restore", before), c.run(2, None, "--restore", before, "--fresh"),  # as another job, too
              c.run(2, None, "--restore", f"{c.ck}:{before}", ck=elsewhere)):
        assert r.code == 1 and "going back" in r.err and "--allow-duplicates" in r.err, f"exit {r.code}: {r.err}"
        assert collections.Counter(c.sink.rows(c)) == seen
    c.finish(2)


@cell("the answer to a commit is lost")
def lost_replies(c):
    """The job tries again by itself or ends with a sentence and is started again; then the same with a death at once."""
    for point in c.sink.lost:
        r = c.run(2, f"{point}:2:error,commit.after_committed:4:kill")
        assert r.code in (1, KILLED) and (r.code == KILLED or "commit" in r.err), f"exit {r.code}: {r.err}"
        c.killed(2, f"{point}:1")
    c.finish(2)


@cell("rescaled from 2 to 4 and back")
def rescaled(c):
    c.killed(2, "checkpoint.after_manifest:2")
    c.killed(4, "commit.after:3")
    c.killed(4, "checkpoint.after_manifest:2")
    c.killed(2, "commit.after:1")
    c.finish(4)


@cell("killed between manifest and commit, and the table has another name since")
def renamed(c):
    """What is prepared is committed by the sink of the new name; then the same once more, with the name of the first."""
    c.killed(2, "checkpoint.after_manifest:3")
    c.rename("snk", "other")
    c.killed(2, "checkpoint.after_manifest:3")
    c.rename("other", "snk")
    c.finish(2)


def wait_for(what, proc, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert proc.poll() is None, open(proc.log).read()
        assert time.monotonic() < end, "it did not come: " + open(proc.log).read()
        time.sleep(0.02)


@cell("the server is killed and comes back")
def server_restarted(c):
    """The job may wait for it or end with a sentence; started again it goes on."""
    c.read_at(ROWS // 10)
    proc = c.start(2)
    wait_for(lambda: c.checkpoints()[1], proc)
    c.sink.restart()
    code = proc.wait(120)
    said = open(proc.log).read()
    assert code in (0, 1) and (code == 0 or said.strip()), f"exit {code}: {said}"
    if code == 0:
        c.check()
    else:
        c.finish(2)


def stopped(c, point):
    """A life that holds still at the point, as a machine that pauses does."""
    first = c.start(2, point + ":stop")
    wait_for(lambda: open(f"/proc/{first.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T", first)
    return first


@cell("a stopped life wakes, nobody has replaced it")
def sleeper(c):
    """While it sleeps, nobody else gets in; awake it goes on."""
    for point in ("checkpoint.after_manifest:3", "commit.after:3"):
        first = stopped(c, point)
        r = c.run(2)
        assert r.code == 1 and "in use" in r.err, f"exit {r.code}: {r.err}"
        time.sleep(0.2)
        first.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        first.kill()
        first.wait()
        c.look()
    c.finish(2)


@cell("a zombie wakes after another life has taken over")
def zombie(c):
    """The other life works on a copy of the checkpoints, as on another machine: no lock keeps them apart, only the server can."""
    for point in ("commit.before:3", *(f"{p}:1" for p in c.sink.points)):
        first = stopped(c, point)
        copy = c.ck + "-of-another-machine"
        shutil.copytree(c.ck, copy, ignore=shutil.ignore_patterns("job.lock"))
        second = c.start(2, "commit.after_committed:4:kill", ck=copy)
        assert second.wait(120) == KILLED, open(second.log).read()
        first.send_signal(signal.SIGCONT)
        code = first.wait(200)
        said = open(first.log).read()
        if code == 0:  # the other had committed nothing that it did not know of: it has taken over in turn, and what there is must be exact
            c.check()
            return
        # one that was only about to begin finds what the other has committed since
        assert code == 1 and re.search(r"another (run|life)|fenced|taken over|going back would", said), f"exit {code}: {said}"
        c.look()
        shutil.rmtree(c.ck)
        os.rename(copy, c.ck)
    c.finish(2)


def applies(sink, name):
    if name == "server_restarted":
        return type(sink).restart is not Sink.restart
    return name != "zombie" or sink.fences


# ---- the matrix ----


def run_cell(sink, name, where, number):
    """Raises with the cell's name and its place."""
    c = Cell(sink, where, number)
    try:
        CELLS[name][1](c)
    except Exception as e:
        raise AssertionError(f"{sink.title}, {name} ({c.dir}): {e!r}") from e
    shutil.rmtree(c.dir)


def table_of(results):
    """results: {sink title: {cell: word}}."""
    lines = ["| | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    for name, (title, _) in CELLS.items():
        lines.append(f"| {title} | " + " | ".join(results[s].get(name, "") for s in results) + " |")
    return "\n".join(lines)


def write_page(table):
    text = open(PAGE).read()
    head, rest = text.split(BEGIN)
    with open(PAGE, "w") as f:
        f.write(head + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--sink", action="append", choices=list(SINKS))
    a.add_argument("--cell", action="append", choices=list(CELLS))
    a.add_argument("--write", action="store_true")
    o = a.parse_args()
    results, failed = {}, 0
    with tempfile.TemporaryDirectory(prefix="clink-conformance-") as where:
        for s in o.sink or SINKS:
            sink = make_sink(s)
            results[sink.title] = got = {}
            try:
                os.mkdir(os.path.join(where, s))
                sink.start(os.path.join(where, s))
                for number, name in enumerate(o.cell or CELLS):
                    began = time.monotonic()
                    try:
                        got[name] = "–"
                        if applies(sink, name):
                            run_cell(sink, name, os.path.join(where, s), number)
                            got[name] = "exact"
                    except AssertionError as e:
                        got[name], failed = "**broken**", failed + 1
                        print(e, file=sys.stderr)
                    print(f"{s} {name}: {got[name]} ({time.monotonic() - began:.1f} s)", flush=True)
            except Missing as e:
                print(f"{s}: {e}", file=sys.stderr)
                failed += 1
            finally:
                sink.stop()
    print(table_of(results))
    if o.write and not failed:
        write_page(table_of(results))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
