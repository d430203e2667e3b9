"""What a cluster of real processes takes: from a kill to new committed output, from a submit to the first row, to deploy many subtasks, and what a
shuffle between processes costs beside one inside a process.   cluster.py [-r 5] [--only kill,silence,regions,deploy,first,shuffle]
Phases of a kill: detect (until the job is no longer running), drain (until the next attempt begins), deploy (until all its subtasks are there), restore (until
it has read rows, which is known within 20 ms), replay (until it has read what was read since the checkpoint; that comes with a heartbeat, so up to a third of
the timeout late), catch up (until its next checkpoint is complete, which has the rest of an interval in it). They are polled every 5 ms over one connection
after the other; what is over between two looks takes 0.
Phases of a first row, from the moment before the process of `clink submit` is made: accepted (the coordinator deploys the job), spawned (the worker has made the
task host's process), here (that process asks for its part), ready (it has built it), started (it is told to run), row (the first row is in the pipe that the
sink, `print`, writes to). "answered" is the end of `clink submit`, beside them; "committed" a job's like it with a file and a checkpoint every 10 ms, until the
first part can be seen. The processes say when; the time is that of reading it.
Regions: of two unconnected inserts the first, with state, loses its task host; the longest time without new committed rows of the second, which
checkpoints every 50 ms, in the three seconds from the kill on, and in the three before it."""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
CLINK = os.environ.get("CLINK_BIN", os.path.join(TOP, "build", "clink"))
INTERVAL_MS, RATE, KEYS = 1000, 1_000_000, 2_600_000  # 100 MB of state: a group of a BIGINT key with COUNT and SUM takes 38 bytes

STATE = f"""CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='datagen', rate_limit='RATE', 'fields.k.kind'='sequence');
CREATE TABLE o (g BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH (connector='blackhole');
INSERT INTO o SELECT k % {KEYS}, COUNT(*), SUM(v) FROM t GROUP BY k % {KEYS}"""
FIRST = """CREATE TABLE t (k BIGINT) WITH (connector='datagen', rate_limit='1000', 'fields.k.kind'='sequence');
CREATE TABLE o (k BIGINT) WITH (connector='print');
INSERT INTO o SELECT k FROM t"""
COMMITTED = FIRST.replace("connector='print'", "connector='file', format='json', path='out'")
SHUFFLE = """CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='datagen', rows='20000000', 'fields.k.kind'='sequence');
CREATE TABLE o (g BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH (connector='blackhole');
INSERT INTO o SELECT k % 1000, COUNT(*), SUM(v) FROM (SELECT DISTINCT k, v FROM t WHERE k % 1000 < 100) GROUP BY k % 1000"""


REGIONS = STATE.replace(str(KEYS), "260000") + """;
CREATE TABLE u (k BIGINT) WITH (connector='datagen', rate_limit='20000', 'fields.k.kind'='sequence');
CREATE TABLE p (k BIGINT) WITH (connector='file', format='json', path='out');
INSERT INTO p SELECT k FROM u"""


class Lines:
    """Lines of a pipe, each with the moment it was read."""

    def __init__(self, pipe):
        self.pipe, self.lines, self.more = pipe, [], threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.pipe:
            now = time.monotonic()
            with self.more:
                self.lines.append((now, line))
                self.more.notify_all()

    def when(self, said, begin=0):
        """The moment of the first line, from number `begin` on, with that in it."""
        at, end = begin, time.monotonic() + 60
        with self.more:
            while True:
                for now, line in self.lines[at:]:
                    if said in line:
                        return now
                at = len(self.lines)
                if not self.more.wait(end - time.monotonic()):
                    raise RuntimeError(f"never said: {said}")


class Cluster:
    def __init__(self, workers, slots, *flags):
        self.dir = tempfile.mkdtemp(prefix="ckb", dir="/tmp")
        self.env = {**os.environ, "XDG_RUNTIME_DIR": self.dir}
        self.processes = []
        p = self.start("coordinator", "--port", "0", *flags)
        self.address = re.search(r"at (\S+:\d+)", p.stderr.readline()).group(1)
        self.workers = {}
        for i in range(workers):
            self.workers[f"w{i}"] = self.start("worker", "--coordinator", self.address, "--name", f"w{i}", "--slots", slots)
            self.workers[f"w{i}"].stderr.readline()

    def start(self, *args, stdout=None):
        p = subprocess.Popen([CLINK, *map(str, args)], cwd=self.dir, env=self.env, stdout=stdout, stderr=subprocess.PIPE, text=True)
        self.processes.append(p)
        return p

    def ask(self, *args, data=None):
        r = subprocess.run([CLINK, *map(str, args), "--coordinator", self.address, "--json"], cwd=self.dir, env=self.env, input=data, capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError(r.stderr)
        return json.loads(r.stdout) if r.stdout else None

    def submit(self, sql, *flags):
        with open(os.path.join(self.dir, "job.sql"), "w") as f:
            f.write(sql)
        end = time.monotonic() + 30
        while True:  # workers register a moment after they have started
            try:
                return self.ask("submit", *flags, "job.sql")["id"]
            except RuntimeError as e:
                if "no slot available" not in str(e) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def until(self, job, what):
        while True:
            s = self.ask("status", job)
            if what(s):
                return time.monotonic(), s
            if s["status"] in ("failed", "finished", "cancelled"):
                sys.exit(f"job {job} is {s['status']}: {s['error']}")
            time.sleep(0.005)

    def stop(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            try:
                p.wait(30)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(x) for x in f.read().split()]


PHASES = ("detect", "drain", "deploy", "restore", "replay", "catch up")


def follow(c, job, before, lost_rows):
    """The moments at which the phases of a restart have ended; before: a status of the attempt that is lost."""
    ends, at = [], None
    while len(ends) < len(PHASES):
        t = c.ask("status", job)
        again = t["attempt"] > before["attempt"]
        runs = again and t["status"] == "running"
        rows = t["rows_in"] if again else None
        if again and at is None:
            at = t["checkpoint"]
        reached = (again or t["status"] != "running", again, runs, rows is not None, (rows or 0) >= lost_rows, runs and t["checkpoint"] > at)
        now, passed = time.monotonic(), max((i + 1 for i, r in enumerate(reached) if r), default=0)
        ends += [now] * (passed - len(ends))
        if t["status"] in ("failed", "finished", "cancelled"):
            sys.exit(f"job {job} is {t['status']}: {t['error']}")
        time.sleep(0.005)
    return ends


def kill(silence):
    """-> milliseconds of each phase, and in all"""
    c = Cluster(3, 4)
    try:
        job = c.submit(STATE.replace("RATE", str(RATE)), "-p", "2", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", INTERVAL_MS)
        _, s = c.until(job, lambda s: (s["rows_in"] or 0) >= KEYS and s["checkpoint"] > 0)
        completed, s = c.until(job, lambda t, at=s["checkpoint"]: t["checkpoint"] > at + 1)
        worker = c.workers[s["subtasks"][0]["worker"]].pid
        host = children(worker)[0]
        began = time.monotonic()
        if silence:
            os.kill(worker, signal.SIGSTOP)  # as a machine that loses its power: nobody says anything
            os.kill(host, signal.SIGKILL)
        else:
            os.kill(host, signal.SIGKILL)
        ends = follow(c, job, s, RATE * (began - completed))
        if silence:
            os.kill(worker, signal.SIGCONT)
        return [(b - a) * 1000 for a, b in zip([began, *ends], ends)] + [(ends[-1] - began) * 1000]
    finally:
        c.stop()


def longest_gap(out, seconds):
    """Between two moments at which new files have appeared, in milliseconds; parts that are not committed are hidden."""
    seen, longest = None, 0
    last = began = time.monotonic()
    while time.monotonic() < began + seconds:
        now, there = time.monotonic(), frozenset(n for n in os.listdir(out) if n[0] not in "._")
        if there != seen:
            longest, last, seen = max(longest, now - last), now, there
        time.sleep(0.002)
    return max(longest, time.monotonic() - last) * 1000


def regions():
    """-> milliseconds of the longest gaps: undisturbed, and with the other region's host killed"""
    c = Cluster(2, 4)
    try:
        job = c.submit(REGIONS.replace("RATE", "200000"), "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 50)
        c.until(job, lambda s: s["checkpoint"] > 0 and (s["rows_in"] or 0) >= 400000)
        calm = longest_gap(os.path.join(c.dir, "out"), 3)
        t = [x for x in c.ask("status", job)["subtasks"] if x.get("region", 0) == 0]
        victims = children(c.workers[t[0]["worker"]].pid)
        if len(victims) != 1:
            raise RuntimeError("the first region is not alone on its worker")
        os.kill(victims[0], signal.SIGKILL)
        return [calm, longest_gap(os.path.join(c.dir, "out"), 3), c.ask("status", job)["attempt"]]
    finally:
        c.stop()


def deploy():
    """-> milliseconds from the submit of 1,000 subtasks until all run"""
    c = Cluster(1, 1100)
    try:
        inserts = "".join(f"INSERT INTO o SELECT k FROM t WHERE k % 7 = {i};" for i in range(10))
        sql = FIRST.split(";\nINSERT")[0].replace("'print'", "'blackhole'") + ";BEGIN STATEMENT SET;" + inserts + "END"
        began = time.monotonic()
        job = c.submit(sql, "-p", "500", "--key-groups", "512")
        runs, s = c.until(job, lambda s: s["status"] == "running")
        return [(runs - began) * 1000, s["tasks"]]
    finally:
        c.stop()


FIRST_PHASES = ("accepted", "spawned", "here", "ready", "started", "row")


def until_part(path):
    while not any(name.startswith("part-") for name in (os.listdir(path) if os.path.isdir(path) else ())):
        time.sleep(0.0005)
    return time.monotonic()


def first():
    """-> milliseconds of each phase up to the first row, in all, until the answer, and until a file is committed"""
    c = Cluster(0, 0, "--log-level", "info")
    try:
        worker = c.start("worker", "--coordinator", c.address, "--slots", 4, "--log-level", "debug", stdout=subprocess.PIPE)
        coordinator, said, rows = Lines(c.processes[0].stderr), Lines(worker.stderr), Lines(worker.stdout)
        c.submit(FIRST, "--name", "warm")
        rows.when("{")
        c.ask("drop", 1)
        said.when("job 1, attempt 1: has ended")
        before = len(rows.lines)
        began = time.monotonic()
        c.submit(FIRST, "--name", "first")
        answered = time.monotonic()
        of = "job 2, attempt 1: "
        ends = [coordinator.when("job 2 (first): attempt 1 "), said.when(of + "task host "), said.when(of + "its task host is here"), said.when(of + "is ready"),
                said.when(of + "starts"), rows.when("{", before)]
        c.ask("drop", 2)
        began_file = time.monotonic()
        c.submit(COMMITTED, "--name", "file", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 10)
        committed = until_part(os.path.join(c.dir, "out"))
        return [(b - a) * 1000 for a, b in zip([began, *ends], ends)] + [(x - began) * 1000 for x in (ends[-1], answered)] + [(committed - began_file) * 1000]
    finally:
        c.stop()


def cpu_of(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")


def shuffle():
    """-> CPU seconds of the same job with -p 2 in one process, and in two"""
    spent = []
    for workers, slots in ((1, 8), (2, 4)):
        c = Cluster(workers, slots)
        try:
            pids = [p.pid for p in c.workers.values()]
            before = cpu_of(pids)  # a worker's reaped children are in its own
            job = c.submit(SHUFFLE, "-p", "2")
            while c.ask("status", job)["status"] not in ("finished", "failed"):
                time.sleep(0.05)
            time.sleep(0.3)
            spent.append(cpu_of(pids) - before)
        finally:
            c.stop()
    return spent


BENCHES = {"kill": (lambda: kill(False), [f"{p} ms" for p in (*PHASES, "in all")]),
           "silence": (lambda: kill(True), [f"{p} ms" for p in (*PHASES, "in all")]),
           "regions": (regions, ["longest gap before ms", "from the kill on ms", "attempts"]),
           "deploy": (deploy, ["ms", "subtasks"]),
           "first": (first, [f"{p} ms" for p in (*FIRST_PHASES, "in all", "answered", "committed")]),
           "shuffle": (shuffle, ["one process CPU s", "two processes CPU s"])}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-r", type=int, default=5)
    ap.add_argument("--only", default=",".join(BENCHES))
    args = ap.parse_args()
    print(f"{os.uname().machine}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {args.r} times each, median (least - most)")
    for name in args.only.split(","):
        run, columns = BENCHES[name]
        values = list(zip(*(run() for _ in range(args.r))))
        print(f"{name:8} " + ", ".join(f"{c} {statistics.median(v):.2f} ({min(v):.2f} - {max(v):.2f})" for c, v in zip(columns, values)), flush=True)


if __name__ == "__main__":
    main()
