"""The wires of a cluster of real processes: who listens where, who is heard, and what strangers can do."""
import os
import re
import socket
import threading
import time
from pathlib import Path

import pytest
from conftest import read_rows, run_clink, write_ndjson
from test_cluster import COPY, KEPT, Cluster, check, children, until

LISTENS, ESTABLISHED = "0A", "01"


@pytest.fixture
def cluster(tmp_path):
    c = Cluster(tmp_path)
    yield c
    c.end()


def tcp_ports(pid, state):
    """(port here, port there) of a process's TCP sockets."""
    try:
        inodes = {m[1] for f in Path(f"/proc/{pid}/fd").iterdir() if (m := re.match(r"socket:\[(\d+)\]", os.readlink(f)))}
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:  # it has ended
        return []
    rows = [line.split() for line in lines]
    return [(int(r[1].split(":")[1], 16), int(r[2].split(":")[1], 16)) for r in rows if r[3] == state and r[9] in inodes]


def hosts_of(cluster):
    return [h for w in cluster.workers.values() for h in children(w.pid)]


def test_hosts_are_connected_over_tcp_and_listen_no_more(cluster):
    cluster.coordinator()
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 2)
    job = cluster.submit(COPY, *KEPT, "-p", "6")
    cluster.until_checkpoint(job["id"])  # so all run
    hosts = hosts_of(cluster)
    assert len(hosts) == 3
    ends = [e for h in hosts for e in tcp_ports(h, ESTABLISHED)]
    pairs = {tuple(sorted(e)) for e in ends if (e[1], e[0]) in ends}
    assert len(pairs) == 3, ends  # one connection a pair of processes
    assert [p for h in hosts for p in tcp_ports(h, LISTENS)] == []
    for h in hosts:  # what a process is started with can be read by everybody
        assert not re.search(rb"[0-9a-f]{32}", Path(f"/proc/{h}/cmdline").read_bytes())
    cluster.until_status(job["id"], "finished")
    check(cluster, COPY)


SUMS = """CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='in.ndjson');
CREATE TABLE o (k BIGINT, n BIGINT, s BIGINT) WITH (connector='file', format='json', path='OUT');
INSERT INTO o SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k"""


def test_strangers_at_the_data_ports_change_nothing(cluster):
    """While jobs start, whatever listens in their hosts is called by peers that say nonsense, or nothing, and stay."""
    write_ndjson(cluster.cwd / "in.ndjson", [{"k": i % 97, "v": i} for i in range(5000)])
    cluster.coordinator()
    for name in ("w1", "w2"):
        cluster.worker(name, 4)
    over, held = threading.Event(), []

    def call(port):
        for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\x03\xff\xff\xff\x01", b"\0\0\0\x57\x01" + b"\0" * 86, b"", b"", b"", b""):
            try:
                s = socket.create_connection(("127.0.0.1", port), timeout=10)
                held.append(s)
                s.sendall(junk)
            except OSError:  # it listens no more
                return

    def harass():
        while not over.is_set():
            for h in hosts_of(cluster):
                for port, _ in tcp_ports(h, LISTENS):
                    call(port)
            while len(held) > 400:
                held.pop(0).close()
            time.sleep(0.01)

    t = threading.Thread(target=harass)
    t.start()
    try:
        for i in range(6):
            job = cluster.submit(SUMS.replace("OUT", f"out{i}"), "-p", "4", "--wait")
            assert job["status"] == "finished" and job["restarts"] == 0
    finally:
        over.set()
        t.join()
        for s in held:
            s.close()
    run_clink("run", "-e", SUMS.replace("OUT", "alone"), cwd=cluster.cwd)
    alone = sorted(map(str, read_rows(cluster.cwd / "alone")))
    for i in range(6):
        assert sorted(map(str, read_rows(cluster.cwd / f"out{i}"))) == alone


def test_silent_strangers_do_not_keep_the_coordinator(cluster):
    cluster.coordinator()
    port = int(cluster.address.split(":")[1])
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
    cluster.worker("w1", 1)
    assert cluster.ask("list", "--json").rows == []
    held[0].settimeout(60)
    try:
        assert held[0].recv(1) == b""  # it was there first, and had to go
    except ConnectionResetError:
        pass
    for s in held:
        s.close()


@pytest.mark.parametrize("verb,flag", [("coordinator", "--bind"), ("worker", "--data-host")])
def test_only_loopback_is_listened_on(tmp_path, verb, flag):
    r = run_clink(verb, flag, "0.0.0.0", cwd=tmp_path, env={"XDG_RUNTIME_DIR": str(tmp_path)}, ok=False)
    assert r.code == 1 and f"{flag} 0.0.0.0: only a loopback address is listened on" in r.err and r.err.count("\n") == 1
