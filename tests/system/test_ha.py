"""Several coordinators, one etcd: whoever leads dies, stops or is cut off, and the jobs go on as if nothing had been."""
import http.server
import json
import os
import re
import signal
import threading
import time

import pytest
import test_region_failover as regions
from etcd_server import Etcd
from postgres_server import free_port
from test_cluster import COPY, GROUPED, KEPT, Cluster, check, children, until

LEASE_MS = 3000


@pytest.fixture(scope="module")
def etcd():
    e = Etcd()
    yield e
    e.stop()


class HaCluster(Cluster):
    """Two coordinators, a and b; workers and clients know the addresses of both."""

    def __init__(self, tmp_path, etcd, prefix):
        super().__init__(tmp_path)
        self.etcd, self.prefix = etcd, prefix
        self.ports = {"a": free_port(), "b": free_port()}
        self.address = ",".join(f"127.0.0.1:{p}" for p in self.ports.values())
        self.coordinators = {}

    def coordinator(self, name, *flags, timeout_ms=30000):
        p = self.start("coordinator", "--port", self.ports[name], "--ha", self.etcd.url(self.prefix), "--ha-lease-ms", LEASE_MS,
                       "--heartbeat-timeout-ms", timeout_ms, *flags)
        self.coordinators[name] = p
        return p

    def until_said(self, name, what):
        lines = []
        while not lines or what not in lines[-1]:
            lines.append(self.coordinators[name].stderr.readline())
            assert lines[-1], lines
        return lines[-1]

    def both(self):
        self.coordinator("a")
        self.until_said("a", "coordinator at")
        self.coordinator("b")
        assert f"standing by: 127.0.0.1:{self.ports['a']} leads" in self.until_said("b", "standing by")
        return self


@pytest.fixture
def cluster(tmp_path, etcd, request):
    c = HaCluster(tmp_path, etcd, request.node.name)
    yield c
    c.end()


@pytest.mark.parametrize("sql", [COPY, GROUPED], ids=["copy", "grouped"])
def test_a_killed_leader_costs_the_jobs_nothing(cluster, sql):
    cluster.both()
    cluster.worker("w1", 4), cluster.worker("w2", 4)
    cluster.submit(sql, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    cluster.coordinators["a"].kill()
    cluster.until_said("b", "coordinator at")
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] == 1 and s["restarts"] == 0, s  # it never stopped
    check(cluster, sql)


def test_a_killed_leader_and_a_host_cost_one_region_a_restart(cluster):
    """Both at once: who leads next finds the other region as it was."""
    cluster.both()
    cluster.worker("w1", 4), cluster.worker("w2", 4)
    cluster.submit(regions.here(cluster, regions.TWO), *KEPT)
    regions.until_both(cluster)
    survivor = regions.host_of(cluster, regions.RIGHT)
    os.kill(regions.host_of(cluster, regions.LEFT), signal.SIGKILL)
    cluster.coordinators["a"].kill()
    cluster.until_said("b", "coordinator at")
    regions.until_attempts(cluster, [2, 1])
    assert regions.host_of(cluster, regions.RIGHT) == survivor
    regions.end(cluster)


def test_who_stands_by_says_where_the_leader_is_reached(cluster):
    cluster.coordinator("a", "--advertise", "leader.example")
    assert f"coordinator at leader.example:{cluster.ports['a']}" in cluster.until_said("a", "coordinator at")
    cluster.coordinator("b")
    assert f"standing by: leader.example:{cluster.ports['a']} leads" in cluster.until_said("b", "standing by")


def test_a_leader_that_ends_hands_over_at_once(cluster):
    cluster.both()
    began = time.monotonic()
    cluster.coordinators["a"].terminate()
    assert cluster.coordinators["a"].wait() == 0
    cluster.until_said("b", "coordinator at")
    assert "leader" in cluster.etcd.get(cluster.prefix)
    took = time.monotonic() - began
    assert took < 60, took


def test_a_leader_that_was_stopped_and_woken_stands_by(cluster):
    """It is a zombie then: what it would say or write has no effect, and it finds that out."""
    cluster.both()
    cluster.worker("w1", 4), cluster.worker("w2", 4)
    cluster.submit(GROUPED, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    cluster.coordinators["a"].send_signal(signal.SIGSTOP)
    cluster.until_said("b", "coordinator at")
    cluster.coordinators["a"].send_signal(signal.SIGCONT)
    assert f"127.0.0.1:{cluster.ports['b']} leads" in cluster.until_said("a", "standing by")
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] == 1, s
    check(cluster, GROUPED)


def test_a_job_that_ends_while_its_leader_is_stopped_is_not_run_again(cluster):
    """Its workers say so to one that reads it when it leads no more."""
    cluster.both()
    cluster.worker("w1", 4), cluster.worker("w2", 4)
    cluster.submit(GROUPED, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    cluster.coordinators["a"].send_signal(signal.SIGSTOP)
    until("the job's hosts have ended", lambda: not any(children(w.pid) for w in cluster.workers.values()))
    cluster.until_said("b", "coordinator at")
    cluster.coordinators["a"].send_signal(signal.SIGCONT)
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] == 1 and s["restarts"] == 0, s
    check(cluster, GROUPED)


def test_leader_and_worker_die_together(cluster):
    cluster.coordinator("a", timeout_ms=3000)
    cluster.until_said("a", "coordinator at")
    cluster.coordinator("b", timeout_ms=3000)
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 4)
    cluster.submit(GROUPED, "-p", "2", *KEPT)
    victim = cluster.until_checkpoint(1)["subtasks"][0]["worker"]
    cluster.coordinators["a"].kill(), cluster.workers[victim].kill()
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] > 1, s
    check(cluster, GROUPED)


def test_jobs_go_on_while_etcd_is_away(cluster):
    """Longer than the lease: nobody leads then, and whoever does afterwards finds the job where it is."""
    cluster.both()
    cluster.worker("w1", 4)
    cluster.submit(GROUPED, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    cluster.etcd.proc.send_signal(signal.SIGSTOP)
    try:
        line = cluster.until_said("a", "another coordinator may lead")
        assert "has not answered" in line or "has expired" in line
        assert children(cluster.workers["w1"].pid) or True  # it may have finished by now
    finally:
        cluster.etcd.proc.send_signal(signal.SIGCONT)
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["restarts"] == 0, s
    check(cluster, GROUPED)


def test_a_worker_finds_whoever_leads(cluster):
    """It knows both addresses, and only one of them is listened at."""
    cluster.coordinator("b")
    cluster.until_said("b", "coordinator at")
    cluster.worker("w1", 2)
    cluster.submit(COPY, *KEPT)
    assert cluster.until_status(1, "finished", "failed")["status"] == "finished"
    check(cluster, COPY)


# ---- what is refused ----


def test_refusals_are_sentences(cluster, tmp_path):
    def refused(*flags):
        p = cluster.start("coordinator", "--port", "0", *flags)
        assert p.wait(timeout=120) not in (0, None)
        cluster.processes.remove(p)
        return p.stderr.read()

    nobody = free_port()
    assert "is not etcd://HOST:PORT" in refused("--ha", "http://127.0.0.1:1")
    assert "a member has no host or no port" in refused("--ha", "etcd://127.0.0.1")
    assert "it names nobody" in refused("--ha", "etcd:///x")
    assert re.search(f"etcd at 127.0.0.1:{nobody}: no answer", refused("--ha", f"etcd://127.0.0.1:{nobody}"))
    assert "two places for the same" in refused("--ha", cluster.etcd.url("x"), "--metadata-dir", str(tmp_path))
    assert "--ha-lease-ms is 2000 to 600000" in refused("--ha", cluster.etcd.url("x"), "--ha-lease-ms", "10")
    cluster.etcd.put("damaged/job-7.rec", b"\x0c1234567")
    assert "record job-7.rec is damaged" in refused("--ha", cluster.etcd.url("damaged"))
    cluster.etcd.put("token-less/token", b"short")
    assert "token is none" in refused("--ha", cluster.etcd.url("token-less"))


@pytest.mark.parametrize("pair", [{"key": [1, 2, 3, 4]}, {"key": "Iw=="}, {"value": "eA=="}, {"key": "eC9qb2ItMS5yZWM=", "value": [1, 2, 3, 4]}, {"key": "*", "value": "eA=="}, 7, None])
def test_what_is_no_etcd_is_said(cluster, pair):
    """A server that answers each question with pairs that etcd never gives."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"ID": "5", "TTL": "5", "result": {"TTL": "5"}, "header": {"revision": "1"}, "succeeded": True, "kvs": [pair]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        p = cluster.start("coordinator", "--port", "0", "--ha", f"etcd://127.0.0.1:{server.server_port}/x")
        assert p.wait(timeout=120) == 1
        cluster.processes.remove(p)
        assert "etcd answers a pair that cannot be read" in p.stderr.read()
        server.shutdown()


def test_a_job_that_etcd_has_no_room_for_is_refused(cluster):
    cluster.both()
    cluster.worker("w1", 4)
    literals = ", ".join(f"'{i:0120d}'" for i in range(6000))
    sql = COPY.replace("SELECT k, v FROM t", f"SELECT k, v FROM t WHERE CAST(k AS VARCHAR) IN ({literals})")
    r = cluster.submit(sql, *KEPT, ok=False)
    assert r.code and "the job's description is longer than 524288 bytes" in r.err, r.err
    cluster.submit(COPY, *KEPT)  # it leads as before
    assert cluster.until_status(1, "finished", "failed")["status"] == "finished"


def test_nobody_leads(cluster):
    r = cluster.ask("list", "--timeout-s", "1", ok=False)
    assert r.code and f"no coordinator leads at any of {cluster.address}" in r.err
    assert until("named", lambda: r.err)
