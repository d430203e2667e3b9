"""Jobs of one worker and each other: what fails, grows or crashes in one, and how many there were before, is nothing to the rest."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import TOP, read_rows, run_clink
from test_cluster import COPY, KEPT, children, cluster, until  # noqa: F401

LONG = bool(os.environ.get("CLINK_LONG"))
SANITIZED = os.environ.get("CLINK_SANITIZE", "") != ""
ENDLESS = re.sub(r"rows='\d+', ", "", COPY).replace("'40000'", "'2000'")
HUNGRY = """CREATE TABLE t (k BIGINT) WITH (connector='datagen', rows='50000000', 'fields.k.kind'='sequence');
CREATE TABLE o (k BIGINT, n BIGINT) WITH (connector='blackhole');
INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k"""
MB = 1 << 20


def hosts_of(worker, job):
    """The processes of a job: task-host SOCKET JOB ATTEMPT ..."""
    found = []
    for pid in children(worker.pid):
        try:
            args = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if args[1:2] == [b"task-host"] and args[3] == str(job).encode():
            found.append(pid)
    return found


def named(cluster, name, sql, *flags):
    return cluster.submit(sql, "--name", name, *flags)


def test_a_failing_a_hungry_and_a_crashing_job_leave_the_others_running(cluster):
    (cluster.cwd / "in.ndjson").write_text('{"k":1,"v":1}\n{"k":oops}\n')
    failing = COPY.replace("connector='datagen'", "connector='file', format='json', path='in.ndjson'")
    failing = re.sub(r", rows='\d+', rate_limit='\d+', 'fields.k.kind'='sequence'", "", failing).replace("path='out'", "path='bad'")
    cluster.coordinator()
    worker = cluster.worker("w1", 8, "--memory", "64M")
    named(cluster, "good", ENDLESS, *KEPT)
    before = cluster.until_checkpoint(1)["checkpoint"]

    named(cluster, "failing", failing, "--checkpoint-dir", "ck-failing")
    s = cluster.until_status(2, "suspended", "finished", "failed")
    assert s["status"] == "suspended" and "in.ndjson" in s["error"], s
    before = cluster.until_checkpoint(1, above=before)["checkpoint"]

    tasks = named(cluster, "hungry", HUNGRY)["tasks"]
    s = cluster.until_status(3, "failed", "finished")
    assert s["status"] == "failed" and f"of its limit of {tasks * 8 * MB}" in s["error"], s
    before = cluster.until_checkpoint(1, above=before)["checkpoint"]

    named(cluster, "crashing", ENDLESS.replace("path='out'", "path='other'"), "--checkpoint-dir", "ck-crashing", "--max-restarts-on-worker-loss", "2")
    for attempt in (1, 2, 3):
        until("it runs", lambda: (s := cluster.status(4))["attempt"] == attempt and s["status"] == "running")
        (host,) = hosts_of(worker, 4)
        os.kill(host, signal.SIGKILL)
    s = cluster.until_status(4, "failed")
    assert s["restarts"] == 2 and "was killed by signal 9" in s["error"], s

    good = cluster.until_checkpoint(1, above=before)
    assert (good["status"], good["attempt"], good["restarts"]) == ("running", 1, 0), good
    cluster.ask("stop", 1)
    cluster.until_status(1, "finished")
    rows = sorted(read_rows(cluster.cwd / "out"), key=lambda r: r["k"])
    run_clink("run", "-e", ENDLESS.replace("rate_limit='2000'", f"rows='{len(rows)}'").replace("path='out'", "path='alone'"), cwd=cluster.cwd)
    assert rows == sorted(read_rows(cluster.cwd / "alone"), key=lambda r: r["k"])


def test_memory_of_a_worker_is_shared_out_over_its_slots(cluster):
    cluster.coordinator()
    cluster.worker("w1", 4, "--memory", "64M")
    tasks = cluster.submit(HUNGRY)["tasks"]
    assert f"of its limit of {tasks * 16 * MB}" in cluster.until_status(1, "failed", "finished")["error"]
    cluster.submit(HUNGRY, "--memory", "6M")  # all on one host
    assert f"of its limit of {6 * MB}" in cluster.until_status(2, "failed", "finished")["error"]
    cluster.submit(ENDLESS, "-p", "2", "--memory", "24M")
    s = until("it says what it has", lambda: (s := cluster.status(3))["memory_limit"] and s)
    assert s["memory_limit"] == 24 * MB and 0 < s["memory_bytes"] < 24 * MB, s
    assert re.search(r" out, \d+\.\d of 24\.0 MiB of memory", cluster.ask("status", 3).out)
    cluster.ask("cancel", 3)
    cluster.until_status(3, "cancelled")
    cluster.submit(HUNGRY, "--memory", "1G")  # a job cannot have more than its slots
    assert f"of its limit of {tasks * 16 * MB}" in cluster.until_status(4, "failed", "finished")["error"]
    r = cluster.submit(HUNGRY, "-p", "2", "--memory", "1M", ok=False)
    assert r.code == 1 and r.err == "clink: 1048576 bytes of memory over the job's 4 subtasks are less than the 1048576 each begins with\n", r.err
    r = run_clink("worker", "--memory", "2M", "--slots", "4", cwd=cluster.cwd, ok=False)
    assert r.code == 1 and r.err == "clink: the worker's 2097152 bytes of memory over 4 slots are 524288 for each; a subtask begins with 1048576\n", r.err


def test_without_memory_the_kernel_takes_a_task_host_first(cluster):
    cluster.coordinator()
    worker = cluster.worker("w1", 2)
    cluster.submit(ENDLESS)
    cluster.until_status(1, "running")
    (host,) = hosts_of(worker, 1)
    assert Path(f"/proc/{host}/oom_score_adj").read_text() == "500\n"


def opened(pid):
    """What a process has open: sockets, pipes and the like by their number, all else by its path."""
    return {os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir() if int(f.name) > 2}


def test_a_task_host_has_nothing_of_its_worker_open(cluster):
    """Above all not the connection to the coordinator. What has no number of its own (an epoll) says nothing."""
    cluster.coordinator()
    worker = cluster.worker("w1", 2)
    cluster.submit(ENDLESS)
    cluster.until_status(1, "running")
    (host,) = hosts_of(worker, 1)
    assert {f for f in opened(worker.pid) & opened(host) if re.search(r":\[\d+\]$|^/(?!dev/)", f)} == set()


@pytest.mark.parametrize("who", ["host", "worker"])
def test_a_job_is_dropped_whoever_hangs(cluster, who):
    cluster.coordinator()
    worker = cluster.worker("w1", 2)
    cluster.submit(ENDLESS, *KEPT)
    cluster.until_checkpoint(1)
    os.kill(hosts_of(worker, 1)[0] if who == "host" else worker.pid, signal.SIGSTOP)
    cluster.ask("drop", 1)
    assert "there is no job 1" in cluster.ask("status", 1, ok=False).err
    worker.send_signal(signal.SIGCONT)
    until("the host has gone", lambda: not children(worker.pid))
    assert cluster.submit(ENDLESS, *KEPT)["id"] == 2  # its slots are free, and its directory
    until("the next one's checkpoint", lambda: cluster.status(2)["checkpoint"] > 0, lambda: cluster.status(2))


@pytest.mark.skipif(SANITIZED, reason="a sanitizer wants to be preloaded first")
def test_on_a_full_disk_nobody_leads_and_jobs_go_on(cluster):
    """A hungry job may have filled it. When there is room again the coordinator leads again, and finds the job as it was."""
    so, full = cluster.cwd / "failing_disk.so", cluster.cwd / "full"
    subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"{TOP}/tests/plugins/failing_disk.c", "-o", so, "-ldl"], check=True)
    cluster.env |= {"LD_PRELOAD": str(so), "CLINK_DISK": f"{cluster.cwd}/cluster", "CLINK_DISK_FULL": str(full)}
    cluster.coordinator()
    cluster.env = {"XDG_RUNTIME_DIR": cluster.runtime}
    cluster.worker("w1", 2)
    cluster.submit(ENDLESS, *KEPT)
    cluster.until_checkpoint(1)

    def until_said(what):
        lines = [cluster.leader.stderr.readline()]
        while what not in lines[-1]:
            assert lines[-1], lines
            lines.append(cluster.leader.stderr.readline())
        return lines

    full.touch()  # with each checkpoint the job's record is written
    lines = until_said("standing by: ")
    assert "No space left on device" in lines[-1] and any("No space left on device" in line for line in lines[:-1]), lines
    rows = len(read_rows(cluster.cwd / "out"))
    until("more rows", lambda: len(read_rows(cluster.cwd / "out")) > rows)
    full.unlink()
    assert f"coordinator at {cluster.address}," in until_said("coordinator at ")[-1]
    s = cluster.until_status(1, "running", "failed")
    s = cluster.until_checkpoint(1, above=s["checkpoint"])
    assert (s["status"], s["attempt"], s["restarts"]) == ("running", 1, 0), s


# ---- many jobs ----


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def own_memory(process):
    return int(re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.M)[1]) * 1024


def submits_and_cancels(cluster, numbers):
    for i in numbers:
        job = named(cluster, f"job-{i}", ENDLESS)["id"]
        if i % 10 == 0:
            cluster.until_status(job, "running")
        cluster.ask("drop" if i % 2 else "cancel", job)


def test_jobs_that_were_leave_neither_memory_nor_descriptors(cluster):
    """CI takes a sample; `make leaks` takes the 2,000. That no byte at all is kept of a job is counted in commands_test.c and session_test.c."""
    first, count = (200, 2000) if LONG else (20, 60)
    cluster.coordinator()
    worker = cluster.worker("w1", 4)
    submits_and_cancels(cluster, range(first))
    until("the hosts have gone", lambda: not children(worker.pid))
    both = (cluster.leader, worker)
    before = [own_memory(p) for p in both]
    files = [descriptors(p) for p in both]
    submits_and_cancels(cluster, range(first, first + count))
    until("the hosts have gone", lambda: not children(worker.pid))
    until("no more descriptors than before", lambda: all(descriptors(p) <= n for p, n in zip(both, files)), lambda: [descriptors(p) for p in both])
    grown = [own_memory(p) - n for p, n in zip(both, before)]
    assert SANITIZED or max(grown) < 8 * MB, grown
    kept = min(100, (first + count) // 2)  # of those that have ended, without the dropped ones
    until("the rest is forgotten", lambda: [j["status"] for j in cluster.ask("list", "--json").rows] == ["cancelled"] * kept)
    assert len(list((cluster.cwd / "cluster").glob("job-*"))) == kept
