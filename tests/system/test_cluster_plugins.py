"""Plugins of submitted jobs: brought in parts, kept by their SHA-256, fetched by workers; jobs of plugins over the cluster are as those of clink run,
whoever dies on the way; and what is refused, in a sentence."""
import hashlib
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
from collections import Counter

import pytest
from conftest import TOP, read_rows, run_clink, write_ndjson
from etcd_server import Etcd
from test_cluster import DEADLINE_S, Cluster, children, until
from test_cluster_roles import RolesCluster
from test_ha import HaCluster
from test_plugin_connectors import COPY, QUIET, lines_of, write_lines
from test_plugin_jobs import quiet_rows, readings, write_readings
from test_plugins import SANITIZE, build, so  # noqa: F401  (a fixture)


class PluginCluster(Cluster):
    def work(self, name, slots=4, **env):
        """A worker with a directory of its own, whose files stay."""
        before, self.env = self.env, {**self.env, **env}
        self.worker(name, slots, "--state-dir", self.state(name))
        self.env = before

    def state(self, name):
        return os.path.join(self.runtime, name)

    def cached(self, name):
        folder = os.path.join(self.state(name), "plugins")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def until_slots(self, n):
        """So many are free: a worker registers a moment after it has started, and a restart that finds no slot fails its job."""
        sql = "CREATE TABLE g (i BIGINT) WITH (connector='datagen', rows='1'); CREATE TABLE b (i BIGINT) WITH (connector='blackhole'); INSERT INTO b SELECT i FROM g"
        assert self.bring("--name", "probe", "-p", n, "--wait", "-e", sql).rows[0]["status"] == "finished"

    def bring(self, *flags, ok=True):
        """A submit, again while workers have not come."""
        r = until("a slot", lambda: (r := self.ask("submit", "--json", *flags, ok=False)) and ("no slot available" not in r.err + r.out) and r)
        assert not ok or r.code == 0, r.err
        return r


@pytest.fixture
def cluster(tmp_path):
    c = PluginCluster(tmp_path)
    yield c
    c.end()


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def enlarged(path, to, more):
    """The same plugin in a longer file: what is behind an ELF file's end counts for nothing but its SHA-256."""
    shutil.copy(path, to)
    with open(to, "ab") as f:
        f.write(bytes(range(256)) * (more // 256) + b"end")
    return str(to)


# ---- jobs over the cluster ----


def test_the_job_of_a_plugin(cluster, so):  # noqa: F811
    rows = readings(20000, 1)
    write_readings(cluster.cwd, rows)
    plugin = enlarged(so(*QUIET), cluster.cwd / "quiet.so", 3 << 20)  # a dozen parts
    name = sum_of(plugin) + ".so"
    cluster.coordinator("--allow-plugins", "any")
    cluster.work("w1", 2), cluster.work("w2", 2)
    job = cluster.bring("--job", plugin, "-p", "2", "--wait", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "200").rows[0]
    assert (job["name"], job["status"], job["restarts"]) == ("quiet", "finished", 0)
    got = Counter()  # when a device falls quiet depends on how far apart rows and watermark come; each reading is of one alert
    for (device, _, n), times in quiet_rows(cluster.cwd).items():
        got[device] += n * times
    assert got == Counter(r["device"] for r in rows if r["value"] is not None)
    assert os.listdir(cluster.cwd / "cluster" / "plugins") == [name]
    assert cluster.cached("w1") == cluster.cached("w2") == [name]
    for path in (cluster.cwd / "cluster" / "plugins" / name, os.path.join(cluster.state("w1"), "plugins", name)):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and sum_of(path) == name[:-3]


def test_functions_of_a_plugin_in_a_script(cluster, so):  # noqa: F811
    write_ndjson(cluster.cwd / "in.ndjson", [{"k": i % 7, "x": 1 + i % 13, "t": "Ada Grace von " + str(i)} for i in range(5000)])
    sql = """CREATE TABLE r (k BIGINT, x DOUBLE, t VARCHAR) WITH (connector='file', format='json', path='in.ndjson');
             CREATE TABLE o (k BIGINT, g DOUBLE, i VARCHAR) WITH (connector='file', format='json', path='OUT');
             INSERT INTO o SELECT k, geomean(x), MAX(initials(t)) FROM r GROUP BY k"""
    cluster.coordinator("--allow-plugins", "any")
    cluster.work("w1"), cluster.work("w2")
    flags = ("--plugin", so("examples/plugin_functions.c"), "-p", "2")
    for n in range(2):  # the second time it is there
        assert cluster.bring(*flags, "--name", f"j{n}", "--wait", "-e", sql.replace("OUT", f"out{n}")).rows[0]["status"] == "finished"
    run_clink("run", *flags[:2], "-e", sql.replace("OUT", "alone"), cwd=cluster.cwd)
    alone = sorted(map(str, read_rows(cluster.cwd / "alone")))
    assert len(alone) == 7 and all(sorted(map(str, read_rows(cluster.cwd / f"out{n}"))) == alone for n in range(2))


def test_sources_sinks_and_committers_over_kills(cluster, so):  # noqa: F811
    """A followed directory, read and written by the plugin: after each kill rows that came meanwhile and those under way are there once."""
    want = write_lines(cluster.cwd, files=2, rows=3000)
    plugin = so(*QUIET)
    cluster.coordinator("--allow-plugins", "any")
    cluster.work("w1"), cluster.work("w2")
    flags = ("--plugin", plugin, "--name", "t", "-p", "2", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "100", "-e", COPY.replace("path='readings'", "path='readings', follow='true'"))
    job = cluster.bring(*flags).rows[0]["id"]
    copied = cluster.cwd / "copied"

    def more(n):
        with open(cluster.cwd / "readings" / "0.csv", "a") as f:
            for i in range(2000):
                line = f"more{n},{1704067200000 + 1000 * i},{i % 10}"
                f.write(line + "\n")
                want[line] += 1

    def goes_on(attempt):
        return until(f"attempt {attempt}", lambda: (s := cluster.status(job))["attempt"] > attempt and s["status"] == "running" and s)

    cluster.until_checkpoint(job)
    for n, victim in enumerate(("host", "host", "worker", "host")):
        s = cluster.until_status(job, "running")
        more(n)
        at = s["subtasks"][n % len(s["subtasks"])]["worker"]
        if victim == "worker":
            cluster.work("w3")
            cluster.until_slots(9)
            cluster.workers.pop(at).kill()
        else:
            os.kill(children(cluster.workers[at].pid)[0], signal.SIGKILL)
        goes_on(s["attempt"])
        assert not lines_of(copied) - want, "a row twice"
    until("all rows", lambda: lines_of(copied) == want)
    cluster.ask("stop", job)
    assert cluster.until_status(job, "finished", "failed")["status"] == "finished"
    assert lines_of(copied) == want
    assert cluster.cached("w3") == [sum_of(plugin) + ".so"]  # it came later


# ---- coordinators that follow, workers that come later ----

ENDLESS = """CREATE TABLE t (k BIGINT) WITH (connector='datagen', rate_limit='2000', 'fields.k.kind'='sequence');
CREATE TABLE o (k BIGINT, d BIGINT) WITH (connector='file', format='json', path='out');
INSERT INTO o SELECT k, collatz_steps(k + 1) FROM t"""
KEPT = ("--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "200")


def check_endless(cluster, job):
    """Each number once up to the last, with what the function gives for it in this process."""
    at = cluster.status(job)["attempt"]
    cluster.until_checkpoint(job, above=cluster.status(job)["checkpoint"])
    cluster.ask("stop", job)
    assert cluster.until_status(job, "finished", "failed")["status"] == "finished"
    rows = sorted((r["k"], r["d"]) for r in read_rows(cluster.cwd / "out"))
    assert [k for k, _ in rows] == list(range(len(rows))) and rows
    return at, rows


FUNCTION = """#include <clink/plugin.h>
static clink_status steps(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        int64_t n = 0;
        for (int64_t x = clink_i64(call->arguments[0], row); x > 1; n++) x = x % 2 ? 3 * x + 1 : x / 2;
        clink_set_i64(call->out, row, n);
    }
    return CLINK_OK;
}
static const clink_function function = {.struct_bytes = sizeof(clink_function), .name = "collatz_steps", .arguments = "BIGINT", .returns = "BIGINT", .call = steps};
static const clink_function *const functions[] = {&function, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI, .name = "steps", .version = "1.0", .functions = functions};
CLINK_PLUGIN(plugin)
"""


def steps(n):
    k = 0
    while n > 1:
        n, k = 3 * n + 1 if n % 2 else n // 2, k + 1
    return k


@pytest.fixture
def function(tmp_path):
    (tmp_path / "steps.c").write_text(FUNCTION)
    return build(tmp_path / "steps.c", tmp_path / "steps.so")


def test_a_coordinator_that_is_started_again_has_it(cluster, function):
    cluster.coordinator("--allow-plugins", "any")
    cluster.work("w1", 1)
    job = cluster.bring("--plugin", function, *KEPT, "-e", ENDLESS).rows[0]["id"]
    cluster.until_checkpoint(job)
    cluster.leader.kill()
    cluster.leader.wait()
    os.unlink(function)  # nobody needs the client's file
    cluster.coordinator()  # what was allowed when it was submitted goes on
    cluster.work("w2", 1)
    cluster.until_slots(1)
    cluster.until_status(job, "running")
    cluster.workers["w1"].kill()
    until("it runs on w2", lambda: (s := cluster.status(job))["attempt"] > 1 and s["status"] == "running" and s["subtasks"][0]["worker"] == "w2")
    at, rows = check_endless(cluster, job)
    assert at > 1 and rows == [(k, steps(k + 1)) for k in range(len(rows))]


@pytest.fixture(scope="module")
def etcd():
    e = Etcd()
    yield e
    e.stop()


def test_the_next_leader_has_it_from_etcd(tmp_path, etcd, function):
    class Ha(HaCluster, PluginCluster):
        pass

    cluster = Ha(tmp_path, etcd, "plugins")
    try:
        big = enlarged(function, tmp_path / "big.so", 1 << 20)
        for name in ("a", "b"):
            p = cluster.start("coordinator", "--port", cluster.ports[name], "--ha", etcd.url("plugins"), "--ha-lease-ms", 3000, "--heartbeat-timeout-ms", 30000,
                              "--allow-plugins", "any")
            cluster.coordinators[name] = p
            cluster.until_said(name, "coordinator at" if name == "a" else "standing by")
        cluster.work("w1", 1)
        huge = enlarged(function, tmp_path / "huge.so", 17 << 20)
        r = cluster.bring("--plugin", huge, *KEPT, "-e", ENDLESS, ok=False)
        assert r.code == 1 and "plugin huge.so has" in r.err and "this coordinator takes 16777216" in r.err
        job = cluster.bring("--plugin", big, *KEPT, "-e", ENDLESS).rows[0]["id"]
        cluster.until_checkpoint(job)
        cluster.coordinators["a"].kill()
        cluster.until_said("b", "coordinator at")
        cluster.work("w2", 1)
        cluster.until_slots(1)
        cluster.until_status(job, "running")
        cluster.workers["w1"].kill()
        until("it runs on w2", lambda: (s := cluster.status(job))["attempt"] > 1 and s["status"] == "running" and s["subtasks"][0]["worker"] == "w2")
        at, rows = check_endless(cluster, job)
        assert at > 1 and rows == [(k, steps(k + 1)) for k in range(len(rows))]
    finally:
        cluster.end()


def test_without_a_directory_they_are_in_memory(cluster, function):
    p = cluster.start("coordinator", "--port", "0", "--allow-plugins", "any")
    cluster.address = "127.0.0.1:" + p.stderr.readline().strip().rsplit(":", 1)[1]
    cluster.work("w1")
    sql = ENDLESS.replace("rate_limit='2000'", "rows='1000'")
    assert cluster.bring("--plugin", function, "--name", "t", "--wait", "-e", sql).rows[0]["status"] == "finished"
    assert sorted((r["k"], r["d"]) for r in read_rows(cluster.cwd / "out")) == [(k, steps(k + 1)) for k in range(1000)]


def test_a_confined_worker_loads_what_lies_outside_its_root(cluster, function):
    """Jobs touch files below the root only; their code is none of their files."""
    cluster.coordinator("--allow-plugins", "any")
    cluster.worker("w1", 2, "--data-root", cluster.cwd, "--state-dir", cluster.state("w1"))
    sql = ENDLESS.replace("rate_limit='2000'", "rows='1000'")
    assert cluster.bring("--plugin", function, "--name", "t", "--wait", "-e", sql).rows[0]["status"] == "finished"
    assert len(read_rows(cluster.cwd / "out")) == 1000
    outside = sql.replace("'out'", f"'{cluster.runtime}/out'")
    r = cluster.bring("--plugin", function, "--name", "u", "--wait", "-e", outside, ok=False)
    assert r.code == 1 and "--data-root" in r.rows[0]["error"], r.out


# ---- what is refused ----


def test_off_unless_the_coordinator_allows_it(cluster, function):
    job = ("--plugin", function, "--name", "t", "--wait", "-e", ENDLESS.replace("rate_limit='2000'", "rows='100'"))
    cluster.coordinator()
    cluster.work("w1")
    r = cluster.ask("submit", *job, ok=False)
    assert r.code == 1 and "plugin steps.so: this coordinator takes none; clink coordinator --allow-plugins any|FILE says which" in r.err, r.err
    assert not os.path.exists(cluster.cwd / "cluster" / "plugins") and cluster.ask("list", "--json").rows == []
    cluster.leader.terminate()
    cluster.leader.wait()
    (cluster.cwd / "sums").write_text("# ours\n" + "0" * 64 + "  other.so\n")
    cluster.coordinator("--allow-plugins", "sums")
    r = cluster.ask("submit", *job, ok=False)
    assert r.code == 1 and f"plugin steps.so: its SHA-256, {sum_of(function)}, is not in sums (--allow-plugins)" in r.err, r.err
    sums = subprocess.run(["sha256sum", function], capture_output=True, text=True, check=True).stdout
    (cluster.cwd / "sums").write_text(sums)
    assert cluster.bring(*job).rows[0]["status"] == "finished"
    r = run_clink("coordinator", "--port", 0, "--allow-plugins", "no-such", cwd=cluster.cwd, env=cluster.env, ok=False)
    assert r.code == 1 and "--allow-plugins: " in r.err and "no-such" in r.err


def test_uploading_is_a_role_of_its_own(tmp_path, function):
    class Roles(RolesCluster, PluginCluster):
        pass

    cluster = Roles(tmp_path)
    try:
        cluster.coordinator("--token-file", "tokens", "--allow-plugins", "any")
        cluster.worker("w1", 4, "--token-file", cluster.cwd / "worker")
        job = ("submit", "--json", "--plugin", function, "--name", "t", "--wait", "-e", ENDLESS.replace("rate_limit='2000'", "rows='100'"))
        assert "submit wants a token with the role submit, and this one has read" in cluster.ask_as("read", *job).err
        r = cluster.ask_as("submit", *job)
        assert r.code == 1 and "plugin steps.so is not here, and uploading it wants a token with the role plugin" in r.err, r.err
        r = until("a slot", lambda: (r := cluster.ask_as("plugin", *job)) and "no slot available" not in r.err + r.out and r)
        assert r.code == 0 and r.rows[0]["status"] == "finished", r.err
        assert cluster.ask_as("submit", *job).code == 0  # now that it is there
    finally:
        cluster.end()


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, b):
    return varint(field << 3 | 2) + varint(len(b)) + b


def test_lengths_and_hashes_that_do_not_fit_cost_their_connection(cluster, function):
    cluster.coordinator("--allow-plugins", "any")
    host, port = cluster.address.split(":")
    with open(os.path.join(cluster.runtime, "clink", f"token-{port}"), "rb") as f:
        token = f.read().strip()
    content, hello = b"x" * 1000, number(4, 4) + text(5, token)
    offer = text(4, hashlib.sha256(content).hexdigest().encode()) + number(5, len(content)) + text(6, b"bad.so")

    def talk(*messages):
        """The replies' errors until the coordinator has closed; those of the last message may be lost with it."""
        said = []
        with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as s, s.makefile("rb") as f:
            for kind, payload in ((48, hello), *messages):
                s.sendall(struct.pack(">IB", len(payload) + 1, kind) + payload)
            try:
                while head := f.read(5):
                    said.append(f.read(struct.unpack(">IB", head)[0] - 1))
            except ConnectionResetError:
                pass
        return b" ".join(said)

    assert b"does not fit behind what has come" in talk((72, offer), (73, number(4, 7) + text(5, b"x")))
    assert b"does not fit behind what has come" in talk((72, offer), (73, text(5, b"x" * 1001)))
    assert b"another SHA-256 than was said" in talk((72, offer), (73, text(5, b"y" * 1000)))
    assert b"was not asked for" in talk((73, text(5, content)))
    assert b"without a SHA-256" in talk((72, text(4, b"../../etc/passwd") + number(5, 9)))
    assert talk((72, offer), (73, text(5, b"x" * (257 << 10)))).count(b"does not fit") == 0  # longer than a part: no answer at all
    assert talk((73, varint(5 << 3 | 2) + varint(1 << 40))) == b""
    assert not os.path.exists(cluster.cwd / "cluster" / "plugins")
    cluster.work("w1")
    sql = ENDLESS.replace("rate_limit='2000'", "rows='100'")
    assert cluster.bring("--plugin", function, "--name", "t", "--wait", "-e", sql).rows[0]["status"] == "finished"


# ---- what goes wrong on a worker ----


def fields(payload):
    """Field number to value, of protobuf with varints and bytes."""
    out, at = {}, 0

    def number_at(at):
        n = shift = 0
        while True:
            b = payload[at]
            n, shift, at = n | (b & 127) << shift, shift + 7, at + 1
            if b < 128:
                return n, at

    while at < len(payload):
        tag, at = number_at(at)
        n, at = number_at(at)
        if tag & 7:
            out[tag >> 3], at = payload[at:at + n], at + n
        else:
            out[tag >> 3] = n
    return out


class FalseCoordinator:
    """Takes one worker, and says to it what it likes."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(DEADLINE_S)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.attempt = 0

    def welcome(self):
        self.s, _ = self.listener.accept()
        self.s.settimeout(DEADLINE_S)
        self.f = self.s.makefile("rb")
        self.until(1)
        self.say(32, number(1, 1) + number(4, 2 ** 30) + number(5, 2 ** 30))

    def say(self, kind, payload):
        self.s.sendall(struct.pack(">IB", len(payload) + 1, kind) + payload)

    def deploy(self, *plugins):
        self.attempt += 1
        self.say(33, number(1, 1) + number(2, 1) + number(3, self.attempt) + text(4, b"j") + b"".join(
            text(24, text(1, hashlib.sha256(p).hexdigest().encode()) + number(2, len(p)) + text(3, b"p.so")) for p in plugins))

    def until(self, *kinds):
        while True:
            head = self.f.read(5)
            assert head, "the worker has hung up"
            n, kind = struct.unpack(">IB", head)
            payload = fields(self.f.read(n - 1))
            if kind in kinds:
                return payload

    def part(self, content, offset, part, error=b""):
        self.say(44, text(4, hashlib.sha256(content).hexdigest().encode()) + number(5, offset) + text(6, part) + text(7, error))

    def hung_up(self):
        try:
            while self.f.read(1):
                pass
        except ConnectionResetError:
            pass
        self.s.close()


def test_a_worker_takes_no_part_that_does_not_fit(cluster):
    """What a coordinator sends is measured: it costs the connection, then the fetch begins anew; another content than was said costs the attempt."""
    c, content, other = FalseCoordinator(), b"x" * 1000, b"y" * 1000
    cluster.address = c.address
    (cluster.cwd / "token").write_text("t" * 64)
    cluster.worker("w1", 1, "--token-file", cluster.cwd / "token", "--state-dir", cluster.state("w1"))
    c.welcome()
    c.deploy(content)
    for offset, part in ((0, b""), (1, b"x"), (0, content + b"x"), (2 ** 26, b"x"), (0, b"x" * (257 << 10))):
        assert c.until(16)[4] == hashlib.sha256(content).hexdigest().encode()
        c.part(content, offset, part)
        c.hung_up()
        c.welcome()
    assert c.until(16).get(5, 0) == 0
    c.part(content, 0, content[:400])
    assert c.until(16)[5] == 400
    c.part(other, 0, other)  # of another one, which nobody has asked for: passed over
    c.part(content, 400, content[400:])
    assert c.until(4)[7]  # it was started, and that DEPLOY has no job
    name = hashlib.sha256(content).hexdigest() + ".so"
    assert cluster.cached("w1") == [name] and sum_of(os.path.join(cluster.state("w1"), "plugins", name)) == name[:-3]
    c.deploy(content, other)
    assert c.until(16)[4] == hashlib.sha256(other).hexdigest().encode()  # the first is there
    c.part(other, 0, b"z" * 1000)
    assert b"plugin p.so: what the coordinator has under its SHA-256 is something else" in c.until(4)[7]
    c.deploy(other)
    c.until(16)
    c.part(other, 0, b"", b"it has gone")
    assert b"plugin p.so: it has gone" in c.until(4)[7]
    assert cluster.cached("w1") == [name]
    c.deploy(other)
    c.until(16)
    c.say(35, number(1, 1) + number(2, 1) + number(3, c.attempt))  # CANCEL_JOB of one that waits
    assert c.until(4).get(5) == 1  # cancelled
    c.s.close()


def test_a_damaged_plugin_is_not_run(cluster, function):
    cluster.coordinator("--allow-plugins", "any")
    cluster.work("w1", 1)
    job = cluster.bring("--plugin", function, *KEPT, "--max-restarts-on-worker-loss", "1", "-e", ENDLESS).rows[0]["id"]
    cluster.until_checkpoint(job)
    kept = cluster.cwd / "cluster" / "plugins" / (sum_of(function) + ".so")
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 255
    kept.write_bytes(content)
    cluster.work("w2", 1)
    cluster.until_slots(1)
    cluster.workers["w1"].kill()
    s = cluster.until_status(job, "failed")
    assert "plugin steps.so: what the coordinator has under its SHA-256 is something else" in s["error"], s
    assert cluster.cached("w2") == []
    again = cluster.bring("--plugin", function, *KEPT, "-e", ENDLESS).rows[0]["id"]  # which is brought again
    cluster.until_status(again, "running")
    cluster.ask("cancel", again)
    cluster.until_status(again, "cancelled")


@pytest.mark.skipif(bool(SANITIZE), reason="LD_PRELOAD comes before the sanitizer's own library")
def test_a_full_disk_is_a_sentence_and_the_worker_goes_on(cluster, function, tmp_path):
    disk = tmp_path / "failing_disk.so"
    subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"{TOP}/tests/plugins/failing_disk.c", "-o", str(disk)], check=True)
    cluster.coordinator("--allow-plugins", "any")
    full = os.path.join(cluster.state("w1"), "plugins")
    cluster.work("w1", LD_PRELOAD=str(disk), CLINK_DISK=full, CLINK_DISK_FAILS="1:28:lasting")
    sql = ENDLESS.replace("rate_limit='2000'", "rows='100'")
    r = cluster.bring("--plugin", function, "--name", "t", "--wait", "-e", sql, ok=False)
    assert r.code == 1 and r.rows[0]["status"] == "failed" and "No space left on device" in r.rows[0]["error"], r.out
    assert cluster.bring("--name", "u", "--wait", "-e", sql.replace("collatz_steps(k + 1)", "k").replace("'out'", "'plain'")).rows[0]["status"] == "finished"
    assert cluster.workers["w1"].poll() is None


def test_one_that_crashes_where_it_is_loaded_ends_its_job_alone(cluster):
    """It is loaded in a process that is thrown away: neither the worker nor the host dies of it, and no restart is tried."""
    marker = cluster.cwd / "marker"
    marker.write_text("")
    source = FUNCTION.replace("#include <clink/plugin.h>", f"""#include <clink/plugin.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {{ if (access("{marker}", F_OK) != 0) abort(); }}""")
    (cluster.cwd / "moody.c").write_text(source)
    plugin = build(cluster.cwd / "moody.c", cluster.cwd / "moody.so")
    cluster.coordinator("--allow-plugins", "any")
    cluster.work("w1")
    job = cluster.bring("--plugin", plugin, *KEPT, "-e", ENDLESS).rows[0]["id"]
    cluster.until_checkpoint(job)
    marker.unlink()
    os.kill(children(cluster.workers["w1"].pid)[0], signal.SIGKILL)
    s = cluster.until_status(job, "failed")
    assert s["attempt"] == 2 and "loading plugin" in s["error"], s
    assert cluster.workers["w1"].poll() is None
    assert cluster.ask("list", "--json").rows[0]["status"] == "failed"
