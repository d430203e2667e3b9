"""The specification's failover section where it takes real processes: who is suspended, who works on without knowing that it is too late, and what a
drain does that does not end."""
import os
import re
import signal
import socket
import time

import pytest
from cluster_matrix import children, send, state_of
from conftest import TOP, read_rows, run_clink, write_ndjson
from test_cluster import COPY, GROUPED, KEPT, Cluster, check, said, until

ENDLESS = COPY.replace("rows='200000', rate_limit='40000'", "rate_limit='2000'")


@pytest.fixture
def cluster(tmp_path):
    c = Cluster(tmp_path)
    yield c
    c.end()


def freeze(*pids):
    for pid in pids:
        send(pid, signal.SIGSTOP)
    for pid in pids:
        until(f"{pid} is stopped", lambda pid=pid: state_of(pid) in ("T", "Z", ""))


def thaw(*pids):
    for pid in pids:
        send(pid, signal.SIGCONT)


def test_each_sentence_has_tests_that_there_are():
    """The table of src/cluster/README.md: every test it names is defined, and called where a list has to call it."""
    room = os.path.join(TOP, "src", "cluster")
    with open(os.path.join(room, "README.md")) as f:
        rows = re.findall(r"^\| (.+) \| (.+) \|$", f.read().split("sentence by sentence")[1].split("**Must not know**")[0], re.M)[2:]
    assert len(rows) > 30
    sources = {}
    for folder in (room, os.path.join(room, "coordinator"), os.path.join(room, "worker"), os.path.dirname(__file__)):
        for name in os.listdir(folder):
            if name.endswith(("_test.c", ".py")):
                with open(os.path.join(folder, name)) as f:
                    sources[name] = f.read()
    for sentence, tests in rows:
        names = re.findall(r"`(\w+)(?:\.py)?`", tests)
        assert names, sentence
        for n in names:
            if f"{n}.py" in sources:
                continue
            found = [t for t in sources.values() if re.search(rf"^static void {n}\(void|^def {n}\(", t, re.M)]
            assert found, f"{sentence}: there is no {n}"
            assert f"T({n})" in found[0] or f"def {n}(" in found[0], f"{sentence}: nobody calls {n}"


def test_the_policy_is_what_was_said(cluster):
    """Auto where nothing is said: 10 with a directory, none without; what was said comes back with the next coordinator."""
    cluster.coordinator()
    cluster.worker("w1", 8)
    for name, flags in (("auto", KEPT), ("none", ()), ("three", (*KEPT[:1], "ck3", *KEPT[2:], "--max-restarts-on-worker-loss", "3"))):
        cluster.submit(ENDLESS.replace("path='out'", f"path='{name}'"), "--name", name, *flags)

    def policies():
        return {j["name"]: j["restarts_max"] for j in cluster.ask("list", "--json").rows}

    assert policies() == {"auto": 10, "none": 0, "three": 3}
    cluster.leader.kill()
    cluster.leader.wait()
    cluster.coordinator()
    assert policies() == {"auto": 10, "none": 0, "three": 3}


def test_retries_of_the_coordinator_come_first(cluster):
    """--max-restarts of each subtask: all of a host that dies have failed once, and the job's own restarts stay."""
    cluster.coordinator("--max-restarts", 1)
    cluster.worker("w1", 4)
    cluster.submit(ENDLESS, "-p", "2", "--max-restarts-on-worker-loss", "0", *KEPT)
    for attempt in (1, 2):
        s = until("it runs", lambda n=attempt: (s := cluster.status(1))["attempt"] == n and s["status"] == "running" and s["checkpoint"] > 0 and s)
        assert s["restarts"] == 0
        os.kill(until("a host", lambda: children(cluster.workers["w1"].pid))[0], signal.SIGKILL)
    s = cluster.until_status(1, "failed")
    assert s["attempt"] == 2 and "killed by signal 9" in s["error"], s


def test_a_drain_that_is_overdue_names_who_still_works(cluster):
    """A survivor that does not hear that it is to end: its job fails, and is not deployed again beside it."""
    cluster.coordinator("--restart-drain-timeout-ms", 1000, timeout_ms=600000)
    for name in ("w1", "w2"):
        cluster.worker(name, 4)
    cluster.submit(ENDLESS, "-p", "2", *KEPT)
    s = cluster.until_checkpoint(1)
    stuck, other = s["subtasks"][0]["worker"], s["subtasks"][1]["worker"]
    assert stuck != other
    hosts = children(cluster.workers[stuck].pid)
    freeze(cluster.workers[stuck].pid, *hosts)
    os.kill(children(cluster.workers[other].pid)[0], signal.SIGKILL)
    s = cluster.until_status(1, "failed")
    assert "the drain took longer than 1000 ms; still working: " in s["error"] and f" on {stuck}" in s["error"] and f" on {other}" not in s["error"], s
    assert s["attempt"] == 1
    thaw(cluster.workers[stuck].pid, *hosts)
    until("its host has gone", lambda: not children(cluster.workers[stuck].pid))
    cluster.submit(ENDLESS, "-p", "4", "--name", "next")  # all slots are free again
    assert cluster.status(1)["attempt"] == 1


def test_a_coordinator_that_was_stopped_and_woken_declares_nobody_lost(cluster):
    """Several times, each for longer than its heartbeat timeout; workers look for another leader meanwhile, and come back to it."""
    cluster.coordinator("--watchdog-interval-ms", 20, timeout_ms=4000)
    for name in ("w1", "w2"):
        cluster.worker(name, 4)
    cluster.submit(ENDLESS, "-p", "2", *KEPT)
    at = cluster.until_checkpoint(1)["checkpoint"]
    for _ in range(2):
        freeze(cluster.leader.pid)
        time.sleep(4.5)  # nothing is judged by it: a longer sleep is as good
        thaw(cluster.leader.pid)
        s = cluster.until_checkpoint(1, above=at)
        at = s["checkpoint"]
        assert s["attempt"] == 1 and s["restarts"] == 0, s
    cluster.ask("stop", 1)
    assert cluster.until_status(1, "finished", "failed")["status"] == "finished"
    assert not [line for line in said(cluster) if "lost" in line]
    rows = read_rows(cluster.cwd / "out")
    assert len({r["k"] for r in rows}) == len(rows)


@pytest.mark.parametrize("step", ["after_create", "after_write", "after_fsync", "after_publish", "after_dirsync"])
def test_the_coordinator_dies_in_a_record_and_a_worker_with_it(cluster, step):
    """At each step of writing a job's record, while checkpoints complete: whoever is started on its directory goes on with what is there."""
    cluster.env["CLINK_FAULT"] = f"durable.{step}:{8 + len(step) % 3}:kill"
    cluster.coordinator()
    del cluster.env["CLINK_FAULT"]
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 4)
    first = cluster.submit(GROUPED, "-p", "2", "--max-restarts-on-worker-loss", "1000", *KEPT)
    until("the coordinator has died", lambda: cluster.leader.poll() is not None)
    assert cluster.leader.returncode == -signal.SIGKILL
    cluster.workers[first["subtasks"][0]["worker"] if first.get("subtasks") else "w1"].kill()
    cluster.coordinator(timeout_ms=3000)
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished", s
    check(cluster, GROUPED)


@pytest.mark.parametrize("leads", [False, True], ids=["a-peer", "who-leads-the-checkpoints"])
def test_zombies_have_no_effect(cluster, leads):
    """A worker and its hosts are stopped where they are, their attempt is over, and they wake: what they would still send, acknowledge and commit
    comes to nothing. Who leads the checkpoints has the directory's lock, too, and the next attempt waits for it."""
    cluster.coordinator(timeout_ms=3000)
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 4)
    cluster.submit(GROUPED, "-p", "2", "--max-restarts-on-worker-loss", "1000", *KEPT)
    s = cluster.until_checkpoint(1)
    at_work = [t["worker"] for t in s["subtasks"]]
    name = at_work[0] if leads else next(w for w in at_work if w != at_work[0])
    pids = [cluster.workers[name].pid, *children(cluster.workers[name].pid)]
    freeze(*pids)
    if leads:
        until("it is tried again", lambda: (s := cluster.status(1))["attempt"] > 1 or s["status"] == "finished")
    else:
        until("others go on", lambda: (t := cluster.status(1))["checkpoint"] > s["checkpoint"] and t["attempt"] > 1 or t["status"] == "finished")
    thaw(*reversed(pids))  # hosts first, before anybody tells them
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished", s
    check(cluster, GROUPED)
    until("they have gone", lambda: not children(cluster.workers[name].pid))


def test_a_zombie_that_commits_comes_too_late(cluster):
    """Stopped between a complete checkpoint and its commit, by a fault point: the next attempt commits, and the zombie that wakes finds the job done."""
    write_ndjson(cluster.cwd / "in.ndjson", [{"k": i, "v": i} for i in range(3000)])
    sql = COPY.replace("connector='datagen', rows='200000', rate_limit='40000', 'fields.k.kind'='sequence'", "connector='file', format='json', path='in.ndjson', rate_limit='1500'")
    cluster.coordinator(timeout_ms=3000)
    for name in ("w1", "w2"):
        cluster.env["CLINK_FAULT"] = "commit.before:2:stop"
        cluster.worker(name, 4)
    del cluster.env["CLINK_FAULT"]
    cluster.submit(sql, "--max-restarts-on-worker-loss", "1000", *KEPT)

    def stopped():
        return [(w, h) for w, p in cluster.workers.items() for h in children(p.pid) if state_of(h) == "T"]

    (name, host), = until("one is stopped before its commit", stopped)
    freeze(cluster.workers[name].pid)
    until("another attempt", lambda: cluster.status(1)["attempt"] > 1)
    thaw(host)
    time.sleep(0.5)  # let it do its worst
    thaw(cluster.workers[name].pid)

    def over():
        for _, h in stopped():
            thaw(h)
        return cluster.status(1)["status"] in ("finished", "failed")

    until("the end", over)
    assert cluster.status(1)["status"] == "finished"
    check(cluster, sql)


def test_a_client_asks_the_next_when_one_hangs(cluster):
    cluster.coordinator()
    with socket.create_server(("127.0.0.1", 0)) as hangs:  # it takes connections, and says nothing
        token = os.path.join(cluster.runtime, "clink", f"token-{cluster.address.split(':')[1]}")
        both = f"127.0.0.1:{hangs.getsockname()[1]},{cluster.address}"
        until("an answer", lambda: run_clink("list", "--coordinator", both, "--token-file", token, "--timeout-s", "8", cwd=cluster.cwd, env=cluster.env, ok=False).code == 0)
        r = run_clink("list", "--coordinator", both.split(",")[0], "--token-file", token, "--timeout-s", 1, cwd=cluster.cwd, env=cluster.env, ok=False)
        assert r.code == 1 and "no answer from 127.0.0.1" in r.err, r.err


def test_a_worker_leaves_a_coordinator_that_hangs(cluster):
    """Its connection stands, and nobody answers; the next one at the other address is found, and what runs goes on untouched."""
    cluster.coordinator(timeout_ms=4000)
    hung = cluster.leader
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    first, second = cluster.address, f"127.0.0.1:{port}"
    cluster.address = f"{first},{second}"
    cluster.worker("w1", 4)
    cluster.address = first
    cluster.submit(GROUPED, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    freeze(hung.pid)
    os.rename(cluster.cwd / "cluster", cluster.cwd / "gone")  # its directory is locked; what it knew is taken elsewhere
    (cluster.cwd / "cluster").mkdir()
    for name in os.listdir(cluster.cwd / "gone"):
        if name.endswith(".rec"):
            (cluster.cwd / "cluster" / name).write_bytes((cluster.cwd / "gone" / name).read_bytes())
    cluster.address = second
    cluster.coordinator()
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] == 1 and s["restarts"] == 0, s
    check(cluster, GROUPED)
    thaw(hung.pid)
