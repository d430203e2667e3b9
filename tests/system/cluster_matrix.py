"""The fault matrix of a cluster: jobs x what happens to the processes, the network and the disk below them. Three workers, two coordinators and
an etcd of real processes; in the end the output is that of an undisturbed run: no row missing, doubled or invented.

    python tests/system/cluster_matrix.py [--jobs N] [--shard I/N] [--seed N] [--sample N] [--query NAME] [--trouble NAME] [--log FILE]
    python tests/system/cluster_matrix.py --seed N --cell "QUERY TROUBLE P ALIGNMENT" [--times N]

Without --sample every combination is run (make cluster-matrix); test_cluster_matrix.py runs a sample. Nothing is judged by the clock: a cell
waits for what is to come, and only a wait of CEILING_S fails. A cell that fails is printed with the command that runs it alone, and its folder
stays, with what every process has said."""
import argparse
import collections
import concurrent.futures
import json
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
import traceback

sys.path.insert(0, os.path.dirname(__file__))
from conftest import CLINK, TOP  # noqa: E402
from etcd_server import Etcd  # noqa: E402
from kill_matrix import OVERTAKING, POINTS, Matrix  # noqa: E402
from kill_queries import QUERIES, SRC, Query, rows_in  # noqa: E402
from network_faults import Network  # noqa: E402
from postgres_server import free_port  # noqa: E402

CEILING_S = 400
LEASE_MS, HEARTBEAT_MS = 2000, 2000
WORKERS, SLOTS = ("w1", "w2", "w3"), 16
INTERVAL_MS = 60


class Regions(Query):
    """Two statements that have nothing to do with each other: a region each, with task hosts and attempts of its own."""

    def script(self, inp, out, rate):
        opt = f", rate_limit='{rate}'" if rate else ""
        more = f", rate_limit='{max(rate // 4, 1)}'" if rate else ""  # `other` has a quarter of the rows
        ddl = SRC.format(inp=inp, rate=opt).replace(f"other.ndjson'{opt}", f"other.ndjson'{more}")
        return (ddl + f"CREATE TABLE copied (i BIGINT, k VARCHAR, v BIGINT) WITH (connector='file', format='csv', path='{out}');\n"
                f"CREATE TABLE summed (g BIGINT, n BIGINT, s BIGINT) WITH (connector='file', format='csv', path='{out}-2');\n"
                "INSERT INTO copied SELECT i, k, v FROM src WHERE v > 100;\n"
                "INSERT INTO summed SELECT g, COUNT(*), SUM(v) FROM other GROUP BY g;\n")


JOBS = {**{name: QUERIES[name] for name in ("bigint", "text", "window", "hop", "window_join", "interval", "join", "over")},
        "regions": Regions("regions", "", ""),
        "copy": Query("copy", "i BIGINT, k VARCHAR, v BIGINT", "SELECT i, k, v FROM src WHERE v > 100"),
        "distinct_window": Query("distinct_window", "k VARCHAR, w TIMESTAMP, n BIGINT",
                                 "SELECT k, window_start AS w, COUNT(DISTINCT v) AS n FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
                                 " GROUP BY k, window_start, window_end")}
Cell = collections.namedtuple("Cell", "query trouble p alignment")


def cell_text(cell):
    return " ".join(map(str, cell))


def cell_of(text):
    query, trouble, p, alignment = text.split()
    return Cell(query, trouble, int(p), alignment)


def outputs(where):
    return [os.path.join(where, n) for n in ("out", "out-2") if os.path.isdir(os.path.join(where, n))]


def rows_of(where):
    """Of all tables that a job has written to its folder."""
    return sum(map(rows_in, outputs(where)), collections.Counter())


class JobIsOver(Exception):
    """Before the trouble could come."""


def state_of(pid):
    """R, S, T (stopped), Z ..., or nothing."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def send(pid, what):
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        pass


class Cluster:
    """One cell's processes. All of a worker's and coordinators' traffic goes over links of `net`: WORKER.NAME is what a worker says to the
    coordinator of that name, WORKER.data what others say to its hosts, NAME.store what a coordinator says to etcd."""

    def __init__(self, etcd, where, seed, disk=None):
        self.etcd, self.dir, self.rnd, self.disk = etcd, where, random.Random(seed), disk
        self.runtime = tempfile.mkdtemp(prefix="ckm", dir="/tmp")  # paths of sockets are short
        self.token = os.path.join(where, "token")
        self.prefix = "m" + os.path.basename(self.runtime)
        self.net = Network(seed)
        self.ports = {"a": free_port(), "b": free_port()}
        self.stores = {n: self.net.proxy(f"{n}.store", etcd.port) for n in self.ports}
        self.coordinators, self.workers, self.all, self.frozen = {}, {}, [], set()
        self.faults, self.starts, self.resubmitted = {}, 0, 0
        self.submission, self.seen = None, {}

    # ---- processes ----

    def start(self, name, *args, **env):
        self.starts += 1
        log = os.path.join(self.dir, f"{name}.{self.starts}.log")
        env = {**os.environ, "XDG_RUNTIME_DIR": self.runtime, **env}
        with open(log, "w") as f:
            p = subprocess.Popen([CLINK, *map(str, args)], cwd="/", env=env, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
        p.log = log
        self.all.append(p)
        return p

    def said(self, p):
        with open(p.log, errors="replace") as f:
            return f.read()

    def coordinator(self, name):
        p = self.start(name, "coordinator", "--port", self.ports[name], "--ha", f"etcd://127.0.0.1:{self.stores[name]}/{self.prefix}",
                       "--ha-lease-ms", LEASE_MS, "--heartbeat-timeout-ms", HEARTBEAT_MS, "--restart-drain-timeout-ms", CEILING_S * 1000,
                       "--token-file", self.token)
        self.coordinators[name] = p
        return p

    def worker(self, name, **env):
        to = ",".join(f"127.0.0.1:{self.net.proxy(f'{name}.{n}', port, name)}" for n, port in self.ports.items())
        more = {**({"LD_PRELOAD": self.disk, "CLINK_DISK": self.dir, "CLINK_DISK_FULL": f"{self.dir}/full", "CLINK_DISK_SLOW": f"{self.dir}/slow"} if self.disk else {}),
                **self.faults, **env}
        p = self.workers[name] = self.start(name, "worker", "--coordinator", to, "--token-file", self.token, "--name", name, "--slots", SLOTS, **more)
        return p

    def up(self):
        self.coordinator("a")
        self.until("a leads", lambda: self.leads("a"))
        self.coordinator("b")  # which stands by, once it has looked
        for w in WORKERS:
            self.worker(w)

    def leads(self, name):
        """By its own last word."""
        p = self.coordinators[name]
        words = re.findall(r"coordinator at|standing by|another coordinator may lead|leads no more", self.said(p))
        return p.poll() is None and bool(words) and words[-1] == "coordinator at"

    def leader(self):
        return self.until("somebody leads", lambda: [n for n in self.coordinators if self.leads(n)])[0]

    def other(self, name):
        return "b" if name == "a" else "a"

    def hosts(self, *workers):
        return [h for w in workers or self.workers for h in children(self.workers[w].pid) if state_of(h) not in ("", "Z")]

    def kill(self, p):
        p.kill()
        p.wait()

    def freeze(self, *pids):
        for pid in pids:
            self.frozen.add(pid)
            send(pid, signal.SIGSTOP)

    def thaw(self, *pids):
        for pid in pids:
            self.frozen.discard(pid)
            send(pid, signal.SIGCONT)

    # ---- the job ----

    def until(self, what, get):
        end = time.monotonic() + CEILING_S
        while time.monotonic() < end:
            if got := get():
                return got
            self.tend()
            time.sleep(0.05)
        raise AssertionError(f"never: {what}; the job: {self.seen}")

    def tend(self):
        """A coordinator that does not find its store when it starts ends with a sentence: whoever runs it starts it again."""
        for name, p in list(self.coordinators.items()):
            if p.poll() == 1 and re.search("no answer|may lead", self.said(p)):
                self.coordinator(name)

    def ask(self, *args):
        """An answer of whoever leads; None: there is none now, for the reason in `last` if somebody was asked."""
        self.last = None
        for name, p in self.coordinators.items():
            if p.poll() is not None or p.pid in self.frozen or not self.leads(name):
                continue
            r = subprocess.run([CLINK, *map(str, args), "--json", "--coordinator", f"127.0.0.1:{self.ports[name]}", "--token-file", self.token, "--timeout-s", "10"],
                               cwd=self.dir, env={**os.environ, "XDG_RUNTIME_DIR": self.runtime}, capture_output=True, text=True, timeout=CEILING_S)
            self.last = r
            if r.returncode == 0:
                return [json.loads(line) for line in r.stdout.splitlines()]
        return None

    def look(self):
        """The job, with its subtasks; None: nobody can say now."""
        if got := self.ask("status", self.id):
            self.seen = got[0]
            return self.seen
        return None

    def submit(self, *args):
        self.submission = args

        def tried():
            if got := self.ask("submit", *args):
                self.id = got[0]["id"]
                return True
            if not self.last:
                return False
            err = self.last.stderr
            if found := [j for j in self.ask("list") or [] if j["status"] not in ("finished", "failed", "cancelled")]:
                self.id = found[-1]["id"]  # it was taken, and the answer got lost
                return True
            assert re.search("no slot available|of the same name|no answer|closed the connection|no coordinator|leads no more|cannot|refused|reset", err), err
            return False

        self.until("the job is taken", tried)

    def is_over(self):
        """Finished. A job for which there was no slot for a moment is submitted again: it goes on."""
        s = self.look()
        if s and s["status"] == "failed" and "no slot available" in s["error"]:
            self.resubmitted += 1
            self.submit(*self.submission)
            return False
        assert not s or s["status"] not in ("failed", "cancelled", "suspended"), s
        return bool(s) and s["status"] == "finished"

    def until_over(self):
        self.until("the job has ended", self.is_over)

    def until_running(self, checkpoint=0):
        """-> its status, with a checkpoint above that one."""
        def there():
            if self.is_over():
                raise JobIsOver
            s = self.seen
            return s if s.get("status") == "running" and s["checkpoint"] > checkpoint else None

        return self.until("it runs, with a checkpoint", there)

    def until_attempt(self, above):
        """Another attempt, or the end."""
        self.until(f"an attempt behind {above}", lambda: self.is_over() or self.seen.get("attempt", 0) > above)

    def until_leads(self, name):
        self.until(f"{name} leads", lambda: self.leads(name))

    def victim(self):
        """A worker that runs some of it, and the present attempt."""
        s = self.until_running()
        return self.rnd.choice(sorted({t["worker"] for t in s["subtasks"] if t["worker"]})), s["attempt"]

    def end(self):
        for p in self.all:
            for pid in (p.pid, *children(p.pid)):
                send(pid, signal.SIGCONT)
        self.net.heal()
        for p in self.all:
            if p.poll() is None:
                p.terminate()
        for p in self.all:
            try:
                p.wait(timeout=60)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.net.stop()
        shutil.rmtree(self.runtime, ignore_errors=True)
        bad = [p.log for p in self.all if p.returncode not in (0, 1, -signal.SIGKILL, -signal.SIGTERM)]
        assert not bad, f"ended otherwise than asked: {bad}"


# ---- troubles: each does its harm while the job runs, waits until it has been felt where that can be seen, and heals it ----


def kill_worker(c):
    name, _ = c.victim()
    c.kill(c.workers[name])
    if c.rnd.random() < 0.5:
        c.worker(name)  # the same name, another process


def kill_task_host(c):
    c.until_running()
    send(c.rnd.choice(c.hosts() or [c.workers["w1"].pid]), signal.SIGKILL)


def kill_two_workers(c):
    first, _ = c.victim()
    second = c.rnd.choice([w for w in WORKERS if w != first])
    c.kill(c.workers[first])
    if c.rnd.random() < 0.5:
        c.until_running()
    c.kill(c.workers[second])


def kill_leader(c):
    c.until_running()
    name = c.leader()
    c.kill(c.coordinators[name])
    if c.rnd.random() < 0.5:
        c.coordinator(name)


def kill_leader_and_worker(c):
    name, _ = c.victim()
    leader = c.leader()
    c.coordinators[leader].kill()
    c.kill(c.workers[name])
    c.coordinators[leader].wait()


def kill_coordinators(c):
    c.until_running()
    for p in c.coordinators.values():
        c.kill(p)
    time.sleep(c.rnd.uniform(0, 1))
    for n in c.rnd.sample(sorted(c.ports), 2):
        c.coordinator(n)


def kill_everybody(c):
    c.until_running()
    for p in (*c.coordinators.values(), *c.workers.values()):
        p.kill()
    for p in (*c.coordinators.values(), *c.workers.values()):
        p.wait()
    for n in (*c.ports, *WORKERS):
        c.coordinator(n) if n in c.ports else c.worker(n)


def stop_worker(c):
    """Silent, while its hosts work on."""
    name, attempt = c.victim()
    c.freeze(c.workers[name].pid)
    c.until_attempt(attempt)
    c.thaw(c.workers[name].pid)


def stop_worker_and_hosts(c):
    """A machine that sleeps: woken, its hosts are zombies, in the middle of whatever they were at."""
    name, attempt = c.victim()
    pids = [c.workers[name].pid, *c.hosts(name)]
    c.freeze(*pids)
    c.until_attempt(attempt)
    c.rnd.shuffle(pids)
    for pid in pids:
        c.thaw(pid)
        time.sleep(c.rnd.choice((0, 0, 0.3)))


def stop_task_host(c):
    c.until_running()
    pids = c.hosts()[:1]
    c.freeze(*pids)
    time.sleep(c.rnd.uniform(0.1, 3))
    c.thaw(*pids)


def stop_leader(c):
    """Until another leads, and then it wakes."""
    c.until_running()
    name = c.leader()
    c.freeze(c.coordinators[name].pid)
    c.until_leads(c.other(name))
    time.sleep(c.rnd.uniform(0, 1))
    c.thaw(c.coordinators[name].pid)
    c.until("it stands by", lambda: not c.leads(name))


def hang_leader(c):
    """For good: its connections stand, and nobody ever answers."""
    c.until_running()
    name = c.leader()
    c.freeze(c.coordinators[name].pid)
    c.until_leads(c.other(name))
    c.until_over()


def sleep_all(c):
    """The whole machine, for longer than any timeout."""
    c.until_running()
    pids = [p.pid for p in (*c.coordinators.values(), *c.workers.values())] + c.hosts()
    c.freeze(*pids)
    time.sleep(c.rnd.uniform(0.5, 2 * max(LEASE_MS, HEARTBEAT_MS) / 1000))
    c.rnd.shuffle(pids)
    c.thaw(*pids)


def partition_worker(c):
    """Nothing between a worker's control plane and anybody; its hosts reach the others."""
    name, attempt = c.victim()
    c.net.hold(rf"{name}\.[ab]$")
    c.until_attempt(attempt)
    c.net.heal()


def partition_worker_and_hosts(c):
    name, attempt = c.victim()
    c.net.hold(rf"{name}\.")
    c.until_attempt(attempt)
    c.net.heal()


def partition_leader(c):
    """From all workers and the store, for good; whoever asks it hears nothing."""
    c.until_running()
    name = c.leader()
    c.net.hold(rf"\.{name}$|^{name}\.store$")
    c.until_leads(c.other(name))
    c.until_over()


def partition_leader_from_store(c):
    c.until_running()
    name = c.leader()
    c.net.hold(rf"^{name}\.store$")
    c.until_leads(c.other(name))
    c.net.heal()


def partition_store(c):
    """From everybody: nobody leads until it is back."""
    c.until_running()
    name = c.leader()
    c.net.hold(r"\.store$")
    c.until("nobody leads", lambda: not c.leads(name))
    c.net.heal()
    c.until("somebody leads", lambda: c.leads("a") or c.leads("b"))


def kill_store(c):
    """etcd dies, and comes back with what it had."""
    c.until_running()
    name = c.leader()
    c.etcd.proc.kill()
    c.etcd.proc.wait()
    if c.rnd.random() < 0.5:
        c.until("nobody leads", lambda: not c.leads(name))
    c.etcd.start()


def partition_data(c):
    """Task hosts reach no task host for a while."""
    c.until_running()
    c.net.hold(r"\.data$")
    time.sleep(c.rnd.uniform(0.1, 3))
    c.net.heal()


def cut_control(c):
    for _ in range(3):
        c.until_running()
        c.net.cut(r"w\d\.[ab]$")
        time.sleep(c.rnd.uniform(0, 0.5))


def cut_data(c):
    c.until_running()
    c.net.cut(r"\.data$")


def cut_everything(c):
    for _ in range(2):
        c.until_running()
        c.net.cut("")
        time.sleep(c.rnd.uniform(0, 0.5))


def slow_network(c):
    c.until_running()
    c.net.slow("", delay=(0.01, 0.1))
    c.until_over()


def lossy_network(c):
    c.until_running()
    c.net.slow("", loss=0.05)
    c.until_over()


def slow_store(c):
    c.until_running()
    c.net.slow(r"\.store$", delay=(0.05, 0.3))
    c.kill(c.workers[c.victim()[0]])
    c.until_over()


def full_disk(c):
    """No byte more, for a while: checkpoints fail, and perhaps the job, which begins anew."""
    s = c.until_running()
    open(f"{c.dir}/full", "w").close()
    end = time.monotonic() + c.rnd.uniform(0.3, 2)
    c.until("felt", lambda: c.is_over() or c.seen["attempt"] > s["attempt"] or time.monotonic() > end)
    os.remove(f"{c.dir}/full")


def slow_disk(c):
    c.until_running()
    open(f"{c.dir}/slow", "w").close()
    if c.rnd.random() < 0.5:
        c.kill(c.workers[c.victim()[0]])
    c.until_over()


def die_at(c, before=False):
    """A task host is stopped at a fault point; there its worker and the leader die with it. Others that come by are stopped, and go on."""
    def stopped():
        return [(w, h) for w, p in c.workers.items() for h in (p.pid, *c.hosts(w)) if state_of(h) == "T"]

    def came():
        if found := stopped():
            return found
        if c.is_over():
            raise JobIsOver
        return None

    if before and c.until("it runs, with a checkpoint", lambda: came() or (c.seen.get("checkpoint", 0) > 0 and "restores")) == "restores":
        send(c.rnd.choice(c.hosts() or [c.workers["w1"].pid]), signal.SIGKILL)

    name, host = c.until("a host comes by", came)[0]
    leader = c.leader()
    c.coordinators[leader].kill(), c.workers[name].kill(), send(host, signal.SIGKILL)
    c.coordinators[leader].wait(), c.workers[name].wait()
    if c.rnd.random() < 0.5:
        c.coordinator(leader)

    def over():
        for _, h in stopped():
            send(h, signal.SIGCONT)
        return c.is_over()

    c.until("the job has ended", over)


TROUBLES = {f.__name__.replace("_", "-"): f for f in (
    kill_worker, kill_task_host, kill_two_workers, kill_leader, kill_leader_and_worker, kill_coordinators, kill_everybody, stop_worker, stop_worker_and_hosts,
    stop_task_host, stop_leader, hang_leader, sleep_all, partition_worker, partition_worker_and_hosts, partition_leader, partition_leader_from_store,
    partition_store, kill_store, partition_data, cut_control, cut_data, cut_everything, slow_network, lossy_network, slow_store, full_disk, slow_disk)}
ON_DISK = ("full-disk", "slow-disk")
OWN_STORE = ("kill-store",)


def points():
    """That a job of these passes: state is in memory."""
    return [p for p in POINTS if not p.startswith("materialise.")]


# ---- cells ----


class ClusterMatrix:
    """Inputs and undisturbed answers are the kill matrix's. Threads: any."""

    def __init__(self, where, seed):
        self.where, self.seed = where, seed
        self.inputs = Matrix(os.path.join(where, "undisturbed"), seed)
        os.mkdir(self.inputs.where)
        self.etcd, self.lock, self.n, self.disk = Etcd(), threading.Lock(), 0, None

    def stop(self):
        self.etcd.stop()

    def failing_disk(self):
        with self.lock:
            if not self.disk:
                so = os.path.join(self.where, "failing_disk.so")
                subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"{TOP}/tests/plugins/failing_disk.c", "-o", so, "-ldl"], check=True)
                self.disk = so
            return self.disk

    def answer(self, q):
        """Computed once, of any number of threads that ask."""
        with self.inputs.lock:
            if q.name not in self.inputs.answers:
                where = self.inputs.folder()
                flags, _ = Query.write(q, where, self.inputs.input(q), 0)
                subprocess.run([CLINK, "run", flags[0]], cwd=where, check=True, capture_output=True)
                self.inputs.answers[q.name] = rows_of(where)
                assert sum(self.inputs.answers[q.name].values()) > 20
            return self.inputs.answers[q.name]

    def once(self, cell, where, seconds):
        """The job takes so long undisturbed. False: it was over before the trouble came."""
        q = JOBS[cell.query]
        answer = self.answer(q)
        Query.write(q, where, self.inputs.input(q), int(q.rows / seconds))
        at = cell.trouble.split("@")
        etcd = Etcd() if cell.trouble in OWN_STORE else self.etcd
        c = Cluster(etcd, where, f"{self.seed} {cell_text(cell)}", self.failing_disk() if cell.trouble in ON_DISK else None)
        if len(at) == 2:
            c.faults = {"CLINK_FAULT": f"{at[1]}:stop"}
        came = True
        try:
            c.up()
            c.submit("-p", cell.p, "--name", "job", "--checkpoint-dir", f"{where}/ck", "--checkpoint-interval-ms", INTERVAL_MS, "--alignment", cell.alignment,
                     "--tolerable-failed-checkpoints", 1000000, "--max-restarts-on-worker-loss", 100000, "job.sql")
            try:
                die_at(c, at[1].startswith("restore.")) if len(at) == 2 else TROUBLES[cell.trouble](c)
            except JobIsOver:
                came = False
            c.until_over()
        finally:
            c.end()
            if etcd is not self.etcd:
                etcd.stop()
        got = rows_of(where)
        missing, more = answer - got, got - answer
        assert not missing and not more, f"{sum(missing.values())} missing, {sum(more.values())} doubled or invented: {list(missing)[:3]} {list(more)[:3]}; {c.seen}"
        left = [n for folder in outputs(where) for n in os.listdir(folder) if n.startswith(".")]
        assert not left, f"left behind: {left}"
        shutil.rmtree(where)
        return came

    def run(self, cell):
        """False: the trouble never came."""
        for seconds in (2, 8):
            with self.lock:
                self.n += 1
                where = os.path.join(self.where, f"cell{self.n}")
            os.mkdir(where)
            try:
                if self.once(cell, where, seconds):
                    return True
            except Exception as e:
                raise AssertionError(f"{cell_text(cell)} (seed {self.seed}, {where}): {type(e).__name__} {e}\n{traceback.format_exc()}") from e
        return False


def cells(rnd, query=None, trouble=None):
    for q in JOBS:
        for t in (*TROUBLES, *(f"die@{p}:{n}" for p in points() for n in ((1,) if p.startswith("restore.") else (1, 3)))):
            overtakes = any(t.startswith(f"die@{p}:") for p in OVERTAKING)
            p, alignment = rnd.choice((2, 3)), "unaligned" if overtakes else rnd.choice(("aligned", "unaligned"))
            if overtakes and not JOBS[q].slow:
                continue
            if (not query or q == query) and (not trouble or t == trouble or t.startswith(f"{trouble}@") or t.startswith(f"die@{trouble}:")):
                yield Cell(q, t, p, alignment)


def sample(rnd, at_points):
    """Each trouble once, and some of the points."""
    every = list(cells(rnd))
    some = [rnd.choice([c for c in every if c.trouble == t]) for t in TROUBLES]
    return some + rnd.sample([c for c in every if c.trouble.startswith("die@") and not c.trouble.startswith("die@restore.before_")], at_points)


class Tally:
    def __init__(self, matrix, log):
        self.m, self.log, self.lock = matrix, log, threading.Lock()
        self.count = collections.Counter()
        self.missed, self.bad = [], []

    def done(self):
        lines = open(self.log).read().splitlines() if self.log and os.path.exists(self.log) else []
        return {line.split(" ", 1)[1] for line in lines if line.startswith(("held ", "missed "))}

    def run(self, cell):
        why = ""
        try:
            how = "held" if self.m.run(cell) else "missed"
        except Exception as e:  # one that breaks tells nothing of the others
            how, why = "BAD", f"{type(e).__name__}: {e}"
        with self.lock:
            self.count[how] += 1
            if how != "held":
                (self.bad if why else self.missed).append(cell)
            if why:
                print(f"BAD {why}\nagain: python tests/system/cluster_matrix.py --seed {self.m.seed} --cell '{cell_text(cell)}' --times 20", flush=True)
            if self.log:
                with open(self.log, "a") as f:
                    f.write(f"{how} {cell_text(cell)}\n" + "".join(f"    {line}\n" for line in why.splitlines()))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    a.add_argument("--sample", type=int)
    a.add_argument("--query", choices=JOBS)
    a.add_argument("--trouble", help="one of " + ", ".join(TROUBLES) + ", die, or a fault point")
    a.add_argument("--jobs", type=int, default=1, help="so many cells at once")
    a.add_argument("--shard", default="1/1", help="I/N: the I-th of N parts, with the same seed")
    a.add_argument("--cell", help="this one alone, as it was printed")
    a.add_argument("--times", type=int, default=1)
    a.add_argument("--log", help="a line for each cell; those that stand there are not run again")
    o = a.parse_args()
    shard, shards = map(int, o.shard.split("/"))
    rnd = random.Random(o.seed)
    todo = [cell_of(o.cell)] if o.cell else list(cells(rnd, o.query, o.trouble))
    rnd.shuffle(todo)
    todo = (todo[:o.sample] if o.sample else todo)[shard - 1::shards]
    where = tempfile.mkdtemp(prefix="clink-cluster-")
    tally = Tally(ClusterMatrix(where, o.seed), o.log)
    done, began = tally.done() if o.times == 1 else set(), time.monotonic()
    print(f"seed {o.seed}, {len(todo)} cells, {len(done)} done before, {o.jobs} at once in {where}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        list(pool.map(tally.run, [c for c in todo for _ in range(o.times) if cell_text(c) not in done]))
    tally.m.stop()
    print(f"{sum(tally.count.values())} cells: {tally.count['held']} held, {tally.count['missed']} in which the trouble never came, {tally.count['BAD']} BAD, "
          f"seed {o.seed}, {time.monotonic() - began:.0f} s")
    if tally.missed:
        print("never came: " + ", ".join(sorted({c.trouble for c in tally.missed})))
    if tally.bad:
        print(f"what they left is in {where}")
    else:
        shutil.rmtree(where)
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
