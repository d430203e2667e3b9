"""The wires of a cluster of real processes: who listens where, who is heard, and what strangers can do."""
import os
import re
import socket
import ssl
import subprocess
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
    job = cluster.submit(re.sub(r"rows='\d+', ", "", COPY), *KEPT, "-p", "6")  # without end: it stays while it is looked at
    cluster.until_checkpoint(job["id"])  # so all run
    hosts = hosts_of(cluster)
    assert len(hosts) == 3
    ends = [e for h in hosts for e in tcp_ports(h, ESTABLISHED)]
    pairs = {tuple(sorted(e)) for e in ends if (e[1], e[0]) in ends}
    assert len(pairs) == 3, ends  # one connection a pair of processes
    assert [p for h in hosts for p in tcp_ports(h, LISTENS)] == []
    for h in hosts:  # what a process is started with can be read by everybody
        assert not re.search(rb"[0-9a-f]{32}", Path(f"/proc/{h}/cmdline").read_bytes())
    assert cluster.status(job["id"])["attempt"] == 1
    cluster.ask("cancel", job["id"])
    cluster.until_status(job["id"], "cancelled")


def test_who_waits_notices_a_machine_that_has_gone(cluster):
    """The kernel asks now and then whether the other end of an idle connection is still there (timer 02: keep-alive)."""
    cluster.coordinator(timeout_ms=600000)
    cluster.worker("w1", 1)
    cluster.submit(re.sub(r"rows='\d+', ", "", COPY), *KEPT)
    port = int(cluster.address.split(":")[1])

    def kept_alive():
        """Ends of idle connections to the coordinator, and at it, that have the timer."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        rows = [r for r in rows if r[3] == ESTABLISHED and r[5].startswith("02:")]
        return any(r[1].endswith(f":{port:04X}") for r in rows) and any(r[2].endswith(f":{port:04X}") for r in rows)

    until("both ends are kept alive", kept_alive)


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


# ---- mutual TLS ----


def openssl(*args, cwd):
    subprocess.run(["openssl", *map(str, args)], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    """Two CAs, and certificates: `node` as all should have it, `old` expired, `alien` of the other CA."""
    d = tmp_path_factory.mktemp("certs")
    (d / "cnf").write_text("[req]\ndistinguished_name=dn\n[dn]\n")
    key = ("req", "-config", "cnf", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for ca in ("ca", "other"):
        openssl(*key, "-x509", "-days", 30, "-subj", f"/CN={ca}", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", f"{ca}.key", "-out", f"{ca}.pem", cwd=d)
    for name, ca, days in (("node", "ca", 30), ("old", "ca", -1), ("alien", "other", 30)):
        openssl(*key, "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,IP:127.0.0.2", "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=d)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-days", days, "-copy_extensions", "copy", "-out", f"{name}.pem", cwd=d)
    return d


def tls(certs, name, ca="ca"):
    return ("--tls-cert", certs / f"{name}.pem", "--tls-key", certs / f"{name}.key", "--tls-ca", certs / f"{ca}.pem")


@pytest.fixture
def tls_cluster(tmp_path, certs):
    c = Cluster(tmp_path)
    c.flags = tls(certs, "node")
    yield c
    c.end()


def test_a_cluster_over_tls_writes_what_run_writes(tls_cluster):
    """And goes on after the loss of a worker; nothing readable is on the wire."""
    c = tls_cluster
    c.coordinator()
    for name in ("w1", "w2", "w3"):
        c.worker(name, 4, "--data-root", c.cwd)
    job = c.submit(COPY, *KEPT, "-p", "6")
    c.until_checkpoint(job["id"])
    hosts = hosts_of(c)
    assert len({tuple(sorted(e)) for h in hosts for e in tcp_ports(h, ESTABLISHED)}) == 3
    c.workers.pop("w1").kill()
    end = c.until_status(job["id"], "finished")
    assert end["restarts"] >= 1
    check(c, COPY)


def test_a_worker_whose_certificate_is_not_taken_does_not_come_in(tls_cluster, certs):
    c = tls_cluster
    c.coordinator()
    for name, ca, why in (("alien", "ca", "does not accept our certificate: unknown ca"), ("old", "ca", "does not accept our certificate: certificate expired"),
                          ("node", "other", "is not accepted: unable to get local issuer certificate")):
        p = c.start("worker", "--coordinator", c.address, "--name", f"bad-{name}", *tls(certs, name, ca), cwd="/")
        lines = [p.stderr.readline()]
        while "no coordinator at" not in lines[-1]:
            assert lines[-1], lines
            lines.append(p.stderr.readline())
        assert why in lines[-1] and "trying on" in lines[-1]
    r = c.submit(COPY, ok=False)
    assert r.code == 1 and "no slot available" in r.err  # nobody of them is there
    c.worker("good", 1, "--data-root", c.cwd)
    assert c.submit(COPY)["status"]


def test_a_client_whose_certificate_is_not_taken_is_told_why(tls_cluster, certs):
    c = tls_cluster
    c.coordinator()
    assert c.ask("list", "--json").rows == []
    good, c.flags = c.flags, ()
    for flags, why in (
        (tls(certs, "alien"), "does not accept our certificate: unknown ca"),
        (tls(certs, "old"), "does not accept our certificate: certificate expired"),
        (tls(certs, "node", "other"), "is not accepted: unable to get local issuer certificate"),
        ((), "closed the connection: it has another token, or wants TLS (--tls-cert, --tls-key, --tls-ca)"),
        (good[:4], "--tls-cert, --tls-key and --tls-ca belong together: --tls-ca is missing"),
        (("--tls-cert", "none.pem", *good[2:]), "--tls-cert none.pem cannot be read as a certificate"),
    ):
        r = c.ask("list", *flags, ok=False)
        assert r.code == 1 and why in r.err and r.err.count("\n") == 1, r.err
    nameless = ssl.create_default_context(cafile=certs / "ca.pem")
    port = int(c.address.split(":")[1])
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):  # who shows none is told so
        with socket.create_connection(("127.0.0.1", port), timeout=60) as s, nameless.wrap_socket(s, server_hostname="127.0.0.1") as t:
            t.recv(1)
    assert c.ask("list", "--json", *good).rows == []


def test_a_token_is_asked_for_over_tls_too(tls_cluster):
    c = tls_cluster
    c.coordinator()
    wrong = c.cwd / "wrong"
    wrong.write_text("0" * 64)
    r = c.ask("list", "--token-file", wrong, ok=False)
    assert r.code == 1 and "closed the connection: it has another token, or no TLS" in r.err


@pytest.mark.parametrize("where", [("--data-host", "127.0.0.2"), ("--data-host", "0.0.0.0", "--advertise", "127.0.0.2")], ids=["bound", "advertised"])
def test_other_addresses_are_listened_on_with_tls(tmp_path, certs, where):
    """Coordinator and workers at every address; the hosts of the job meet at one that is not the default."""
    c = Cluster(tmp_path)
    c.flags = tls(certs, "node")
    try:
        c.coordinator("--bind", "0.0.0.0")
        write_ndjson(c.cwd / "in.ndjson", [{"k": i % 97, "v": i} for i in range(5000)])
        for name in ("w1", "w2"):
            c.worker(name, 4, *where, "--data-root", c.cwd)
        assert c.submit(SUMS.replace("OUT", "out"), "-p", "4", "--wait")["status"] == "finished"
    finally:
        c.end()
    run_clink("run", "-e", SUMS.replace("OUT", "alone"), cwd=tmp_path)
    assert sorted(map(str, read_rows(tmp_path / "out"))) == sorted(map(str, read_rows(tmp_path / "alone")))


def test_hosts_are_dialled_under_the_name_that_is_advertised(tls_cluster):
    """Which the certificate has to have."""
    c = tls_cluster
    c.coordinator()
    for name in ("w1", "w2"):
        c.worker(name, 1, "--data-host", "0.0.0.0", "--advertise", "localhost", "--data-root", c.cwd)
    r = c.ask_submit(COPY, "-p", "2")
    assert r.code == 1 and re.search(r"localhost:\d+.*hostname mismatch", r.err), r.err


def refused(tmp_path, *args):
    r = run_clink(*args, cwd=tmp_path, env={"XDG_RUNTIME_DIR": str(tmp_path)}, ok=False)
    assert r.code == 1 and r.err.count("\n") == 1, r.err
    return r.err


@pytest.mark.parametrize("verb,flag", [("coordinator", "--bind"), ("worker", "--data-host")])
def test_without_tls_only_loopback_is_listened_on(tmp_path, verb, flag):
    assert f"{flag} 192.0.2.7: without --tls-cert, --tls-key and --tls-ca only a loopback address is listened on" in refused(tmp_path, verb, flag, "192.0.2.7")


def test_where_a_worker_is_reached_has_to_be_said(tmp_path, certs):
    assert "--data-host 0.0.0.0: others dial it" in refused(tmp_path, "worker", "--data-host", "0.0.0.0", *tls(certs, "node"))
    assert "--advertise 0.0.0.0: others dial it" in refused(tmp_path, "worker", "--data-host", "0.0.0.0", "--advertise", "0.0.0.0", *tls(certs, "node"))
    assert "--advertise 192.0.2.7: what is listened on is --data-host 127.0.0.1, which only this machine reaches" in refused(tmp_path, "worker", "--advertise", "192.0.2.7")
    assert "--advertise ::: it has to be one address" in refused(tmp_path, "coordinator", "--advertise", "::")
    err = refused(tmp_path, "worker", "--coordinator", "192.0.2.7:6123", *tls(certs, "node"))
    assert "the coordinator is at 192.0.2.7:6123: --data-host has to say under which address this worker is reached" in err


# ---- what jobs of others may touch ----


@pytest.fixture
def confined(tls_cluster):
    """A cluster over TLS whose workers have a data root and a directory of secrets."""
    c = tls_cluster
    for d in ("data", "secrets", "elsewhere"):
        (c.cwd / d).mkdir()
    write_ndjson(c.cwd / "data" / "in.ndjson", [{"k": i % 7, "v": i} for i in range(100)])
    write_ndjson(c.cwd / "elsewhere" / "in.ndjson", [{"k": 1, "v": 1}])
    (c.cwd / "data" / "way-out").symlink_to("../elsewhere")
    (c.cwd / "secrets" / "word").write_text("hush\n")
    c.coordinator()
    return c


def copy(source, sink="data/out"):
    return f"""CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='{source}');
CREATE TABLE o (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='{sink}');
INSERT INTO o SELECT k, v FROM t"""


def test_jobs_touch_files_below_the_data_root_only(confined):
    c = confined
    roots = ("--data-root", c.cwd / "data", "--secret-dir", c.cwd / "secrets")
    c.worker("w1", 2, *roots)
    assert c.submit(copy("data/in.ndjson"), "--checkpoint-dir", "data/ck", "--wait")["status"] == "finished"
    assert len(read_rows(c.cwd / "data" / "out")) == 100
    for sql, flags in ((copy("elsewhere/in.ndjson"), ()), (copy("data/way-out/in.ndjson"), ()), (copy("data/in.ndjson", "elsewhere/out"), ()),
                       (copy("secrets/word"), ()), (copy("/etc/passwd"), ()), (copy("data/in.ndjson", "data/out2"), ("--checkpoint-dir", "elsewhere/ck"))):
        r = c.ask_submit(sql, *flags)
        assert r.code == 1 and f"is not below --data-root {c.cwd}/data" in r.err, (sql, r.err)
    assert sorted(p.name for p in (c.cwd / "elsewhere").iterdir()) == ["in.ndjson"]


def test_without_a_data_root_jobs_touch_no_files(confined):
    confined.worker("w1", 2)
    r = confined.ask_submit(copy("data/in.ndjson"))
    assert r.code == 1 and "the worker has no --data-root" in r.err


def test_hosts_have_the_secrets_that_their_job_names(confined):
    """And not what else the worker's environment has."""
    c = confined
    c.env |= {"CLINK_SECRET_A": "a", "CLINK_SECRET_B": "b", "AWS_SECRET_ACCESS_KEY": "c", "PGPASSWORD": "d"}
    c.worker("w1", 2, "--data-root", c.cwd / "data")
    lookup = """CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='datagen', rows='100000', rate_limit='100');
CREATE TABLE h (k BIGINT, v BIGINT) WITH (connector='http', url='http://127.0.0.1:9/x', token='${env:CLINK_SECRET_A}');
INSERT INTO h SELECT k, v FROM t"""
    job = c.submit(lookup)
    (host,) = until("the host", lambda: hosts_of(c))
    names = until("its environment", lambda: {e.split(b"=")[0] for e in Path(f"/proc/{host}/environ").read_bytes().split(b"\0") if e})
    assert b"CLINK_SECRET_A" in names and b"PATH" in names
    assert not names & {b"CLINK_SECRET_B", b"AWS_SECRET_ACCESS_KEY", b"PGPASSWORD", b"HOME"}
    limits = Path(f"/proc/{host}/limits")  # a crash leaves nothing of it behind: the first that a host does
    until("no core files", lambda: [line.split()[4:6] for line in limits.read_text().splitlines() if line.startswith("Max core")] == [["0", "0"]])
    c.ask("drop", job["id"])
    r = c.ask_submit(lookup.replace("CLINK_SECRET_A", "AWS_SECRET_ACCESS_KEY"))
    assert r.code == 1 and "of the environment jobs may only read what is called CLINK_SECRET_" in r.err


def test_roots_of_a_worker_are_directories(tmp_path):
    assert "--data-root none" in refused(tmp_path, "worker", "--data-root", "none")
    assert "--secret-dir none" in refused(tmp_path, "worker", "--secret-dir", "none")
