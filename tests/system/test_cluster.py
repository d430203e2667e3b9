"""A cluster of real processes: what a submitted job writes is what clink run writes, whoever dies on the way."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD, CLINK, read_rows, run_clink, write_ndjson
from test_help import examples

DEADLINE_S = 180


def until(what, get, say=lambda: ""):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        got = get()
        if got:
            return got
        time.sleep(0.05)
    pytest.fail(f"never: {what} {say()}")


GATHER = "CREATE TABLE t (i BIGINT) WITH (connector='datagen', rows='1');\nCREATE TABLE o (i BIGINT) WITH (connector='blackhole');\nINSERT INTO o SELECT i FROM t;\n"


class Cluster:
    def __init__(self, tmp_path):
        self.cwd = tmp_path
        self.runtime = tempfile.mkdtemp(prefix="ck", dir="/tmp")  # paths of sockets are short
        self.env = {"XDG_RUNTIME_DIR": self.runtime}
        self.processes, self.workers, self.address = [], {}, None
        self.slots, self.coming = 0, True  # of all workers; some may not have registered yet
        self.flags = ()  # of everybody

    def start(self, *args, cwd=None):
        p = subprocess.Popen([CLINK, *map(str, args)], cwd=cwd or self.cwd, env={**os.environ, **self.env}, stderr=subprocess.PIPE, text=True)
        self.processes.append(p)
        return p

    def coordinator(self, *flags, timeout_ms=30000):
        """The timeout is long: on a loaded machine nobody is lost for being slow. A worker that is killed is found at once."""
        port = self.address.split(":")[1] if self.address else 0
        p = self.start("coordinator", "--port", port, "--metadata-dir", "cluster", "--heartbeat-timeout-ms", timeout_ms, *self.flags, *flags)
        lines = [p.stderr.readline()]
        while "coordinator at " not in lines[-1]:  # workers of an older one may come before it says so
            assert lines[-1], lines
            lines.append(p.stderr.readline())
        line = lines[-1]
        self.address = "127.0.0.1:" + re.search(r"at \S+:(\d+)", line).group(1)
        self.leader = p
        return self

    def worker(self, name, slots, *flags):
        p = self.start("worker", "--coordinator", self.address, "--name", name, "--slots", slots, *self.flags, *flags, cwd="/")  # paths are the client's
        lines = [p.stderr.readline()]
        while f"{name} waits for work" not in lines[-1]:  # it may first say that nobody is at an address
            assert lines[-1], lines
            lines.append(p.stderr.readline())
        self.workers[name] = p
        self.slots += int(slots)
        self.coming = True
        return p

    def gather(self):
        """Workers register a moment after they have said that they wait: until all that live are there, subtasks go to those that are."""
        (self.cwd / "gather.sql").write_text(GATHER)
        end = time.monotonic() + 60  # one that is turned away never is
        while self.coming and time.monotonic() < end:  # it asks for more than there is, and is refused without a trace
            r = self.ask("submit", "-p", self.slots + 1, "--key-groups", 1024, "gather.sql", ok=False)
            here = re.search(r"workers here: (\d+)", r.err)
            self.coming = bool(here) and int(here[1]) < sum(p.poll() is None for p in self.workers.values())
            time.sleep(0.02 * self.coming)
        self.coming = False

    def ask(self, *args, ok=True):
        return run_clink(*args, "--coordinator", self.address, *self.flags, cwd=self.cwd, env=self.env, ok=ok, timeout=DEADLINE_S)

    def submit(self, sql, *flags, ok=True):
        (self.cwd / "job.sql").write_text(sql)
        self.gather()
        end = time.monotonic() + DEADLINE_S
        while True:  # those of before may be on their way to a new leader
            r = self.ask("submit", "--json", *flags, "job.sql", ok=False)
            if "no slot available" not in r.err or time.monotonic() > end or not ok:
                break
            time.sleep(0.05)
        if not ok:
            return r
        assert r.code == 0, r.err
        return r.rows[0]

    def ask_submit(self, sql, *flags):
        """A submit that waits for the job's end, whatever that is."""
        (self.cwd / "job.sql").write_text(sql)
        self.gather()
        end = time.monotonic() + DEADLINE_S
        while True:
            r = self.ask("submit", "--json", "--wait", *flags, "job.sql", ok=False)
            if "no slot available" not in r.err + r.out or time.monotonic() > end:
                return r
            time.sleep(0.05)

    def status(self, job):
        return self.ask("status", job, "--json").rows[0]

    def until_status(self, job, *wanted):
        seen = []

        def look():
            s = self.status(job)
            seen[:] = [s]
            return s if s["status"] in wanted else None

        return until(f"{job} is {wanted}", look, lambda: seen)

    def until_checkpoint(self, job, above=0):
        return until("a checkpoint", lambda: (self.status(job)["checkpoint"] > above) and self.status(job))

    def end(self):
        for p in self.processes:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.terminate()
        for p in self.processes:
            try:
                code = p.wait(timeout=60)
            finally:
                p.kill()
            assert code in (0, -signal.SIGKILL), p.stderr.read()
        shutil.rmtree(self.runtime, ignore_errors=True)


@pytest.fixture
def cluster(tmp_path):
    c = Cluster(tmp_path)
    yield c
    c.end()


def children(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(x) for x in out.split()]


ROWS = 200000
COPY = f"""CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='datagen', rows='{ROWS}', rate_limit='40000', 'fields.k.kind'='sequence');
CREATE TABLE o (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='out');
INSERT INTO o SELECT k, v FROM t;
"""
GROUPED = COPY.replace("k BIGINT, v BIGINT) WITH (connector='file'", "g BIGINT, n BIGINT, s BIGINT) WITH (connector='file'").replace(
    "SELECT k, v FROM t", "SELECT k % 997, COUNT(*), SUM(v) FROM t GROUP BY k % 997")
KEPT = ("--checkpoint-dir", "ck", "--checkpoint-interval-ms", "200")


def said(cluster):
    """What the coordinator has said of workers and jobs; it ends."""
    cluster.leader.terminate()
    return [line for line in cluster.leader.communicate()[1].splitlines() if "worker" in line or "job " in line]


def undisturbed(tmp_path, sql):
    """What clink run of the same script writes."""
    sql = sql.replace("rate_limit='40000', ", "").replace("path='out'", "path='alone'")
    run_clink("run", "-e", sql, cwd=tmp_path)
    return sorted(map(str, read_rows(tmp_path / "alone")))


def check(cluster, sql):
    assert sorted(map(str, read_rows(cluster.cwd / "out"))) == undisturbed(cluster.cwd, sql)


# ---- a job's life ----


def test_output_is_that_of_run(cluster):
    write_ndjson(cluster.cwd / "in.ndjson", [{"k": i % 97, "v": i} for i in range(20000)])
    sql = """CREATE TABLE t (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='in.ndjson');
             CREATE TABLE o (k BIGINT, n BIGINT, s BIGINT) WITH (connector='file', format='json', path='out');
             INSERT INTO o SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k"""
    cluster.coordinator()
    cluster.worker("w1", 3), cluster.worker("w2", 3)
    job = cluster.submit(sql, "-p", "2", "--wait")
    assert job["status"] == "finished" and job["restarts"] == 0 and job["tasks"] == 4
    assert (job["rows_in"], job["rows_out"], job["watermark"], job["watermark_note"]) == (20000, 97, None, "")  # hosts say it before they end
    check(cluster, sql)
    assert [(j["id"], j["name"], j["status"]) for j in cluster.ask("list", "--json").rows] == [(1, "job", "finished")]
    assert re.match(r"1 +finished +job ", cluster.ask("list").out)
    assert "group_agg(k)<-t[1] finished" in cluster.ask("status", 1).out


def test_savepoint_stop_and_going_on(cluster):
    cluster.coordinator()
    cluster.worker("w1", 4)
    job = cluster.submit(COPY, "-p", "2", "--checkpoint-dir", "ck")
    cluster.until_status(1, "running")
    first = cluster.ask("savepoint", 1, "--json").rows[0]["savepoint"]
    said = cluster.ask("savepoint", 1).out
    second = int(re.search(r"  savepoint (\d+) is complete: %s:\1\n" % re.escape(str(cluster.cwd / "ck")), said).group(1))
    run_clink("check-savepoint", "%s:%d" % (cluster.cwd / "ck", second))
    got = cluster.ask("stop", 1, "--json").rows[0]
    last = got["savepoint"]
    assert got["status"] == "finished"  # and not a moment later
    assert last > second > first > 0 and got["checkpoint_dir"] == str(cluster.cwd / "ck")
    assert cluster.status(1)["checkpoint"] == last and cluster.status(1)["status"] == "finished"
    assert len(read_rows(cluster.cwd / "out")) < ROWS
    assert cluster.submit(COPY, "-p", "2", "--wait", "--checkpoint-dir", "ck")["status"] == "finished"
    check(cluster, COPY)
    assert job["id"] == 1


def test_what_cannot_go_on_is_refused_before_it_is_deployed(cluster):
    """The look at the checkpoint of a submit: what its start would refuse makes no job; what cannot be looked at passes with a warning."""
    cluster.coordinator()
    cluster.worker("w1", 4)
    cluster.submit(GROUPED, "--checkpoint-dir", "ck")
    cluster.until_status(1, "running")
    cluster.ask("stop", 1)
    cluster.until_status(1, "finished")
    more = GROUPED.replace("s BIGINT)", "s BIGINT, m BIGINT)").replace("SUM(v) FROM", "SUM(v), MAX(v) FROM")
    r = cluster.submit(more, "--checkpoint-dir", "ck", ok=False)
    assert r.code == 1 and "group_agg(k % 997)<-t" in r.err and "'max(v)' is not in the checkpoint" in r.err, r.err
    assert [j["id"] for j in cluster.ask("list", "--json").rows] == [1]  # no job was made of it
    r = cluster.submit(more, "--checkpoint-dir", "ck", "--added-state", "from_now", ok=False)
    assert r.code == 0, r.err
    cluster.until_status(2, "running", "finished")
    cluster.ask("cancel", 2, ok=False)
    (cluster.cwd / "no-directory").write_text("")
    r = cluster.submit(COPY, "--checkpoint-dir", "no-directory", ok=False)
    assert "was not looked at" in r.err and "its start will tell" in r.err, r.err  # and it is not what stops it


def test_cancel_and_drop(cluster):
    cluster.coordinator()
    cluster.worker("w1", 1)
    for id, verb in ((1, "cancel"), (2, "drop")):
        cluster.submit(COPY.replace(f"rows='{ROWS}', ", ""))
        cluster.until_status(id, "running")
        before = time.monotonic()
        cluster.ask(verb, id)
        assert time.monotonic() - before < 60
        until("the host has gone", lambda: not children(cluster.workers["w1"].pid))
    cluster.until_status(1, "cancelled")
    assert "there is no job 2" in cluster.ask("status", 2, ok=False).err
    assert "it is cancelled" in cluster.ask("cancel", 1, ok=False).err
    cluster.submit(COPY)  # its slot is free again
    cluster.until_status(3, "running")


def test_status_names_who_holds_the_watermark(cluster):
    """Two followed files, a task host each: the one that is behind holds the job's watermark, whichever host reads it."""
    (cluster.cwd / "in").mkdir()
    a, b = cluster.cwd / "in" / "a.ndjson", cluster.cwd / "in" / "b.ndjson"

    def add(path, *hours):
        with open(path, "a") as f:
            f.writelines(f'{{"at":"2013-01-01 {hour:02}:00:00","v":1}}\n' for hour in hours)

    def until_held(by, at, rows):
        s = until(f"held by {by}", lambda: (s := cluster.status(1))["rows_in"] == rows and s["watermark"] == at and s, lambda: cluster.status(1))
        assert re.search(rf"^watermark held by \S*{by} of t at {at.replace('T', ' ')}", s["watermark_note"]), s
        return s

    add(a, 5, 8), add(b, 6)
    cluster.coordinator()
    cluster.worker("w1", 2), cluster.worker("w2", 2)
    job = cluster.submit("""CREATE TABLE t (at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='in', follow='true',
                                            idle_timeout_ms='0');
                            CREATE TABLE o (e TIMESTAMP(3), n BIGINT) WITH (connector='file', format='json', path='out');
                            INSERT INTO o SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR)) GROUP BY window_start, window_end""",
                         "-p", "2", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "200")
    assert job["rows_in"] is None and job["watermark"] is None  # nobody has said anything yet
    s = until_held("b.ndjson", "2013-01-01T06:00:00", 3)
    assert {x["worker"] for x in s["subtasks"]} == {"w1", "w2"}
    assert re.search(r"\n  3 rows in, \d+ out, \d+\.\d of \d+\.\d MiB of memory, watermark held by \S*b.ndjson of t at 2013-01-01 06:00:00", cluster.ask("status", 1).out)
    assert "rows in" not in cluster.ask("list").out
    add(b, 9)
    until_held("a.ndjson", "2013-01-01T08:00:00", 4)
    cluster.leader.kill()  # what was said is in its memory only: the workers say it again to the next
    cluster.leader.wait()
    cluster.coordinator()
    until_held("a.ndjson", "2013-01-01T08:00:00", 4)
    assert cluster.status(1)["rows_out"] == 2  # windows that end at 6 and 7
    cluster.ask("cancel", 1)
    cluster.until_status(1, "cancelled")


def test_a_name_that_was_cut_inside_a_character_is_shown(cluster):
    """Of a split's name 199 bytes are said; answers are JSON, which has whole characters only."""
    folder = cluster.cwd / "in"
    folder.mkdir()
    pad = "x" if (199 - len(f"{folder}/")) % 2 == 0 else "xx"
    (folder / f"{pad}{'ü' * 110}.ndjson").write_text('{"at":"2013-01-01 05:00:00"}\n')
    cluster.coordinator()
    cluster.worker("w1", 2)
    cluster.submit("""CREATE TABLE t (at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', format='json', path='in', follow='true');
                      CREATE TABLE o (n BIGINT) WITH (connector='blackhole');
                      INSERT INTO o SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR)) GROUP BY window_start, window_end""")
    s = until("a watermark", lambda: (s := cluster.status(1))["watermark"] and s, lambda: cluster.status(1))
    assert "üü? of t at 2013-01-01 05:00:00" in s["watermark_note"], s
    assert cluster.ask("list", "--json").rows[0]["watermark"] == "2013-01-01T05:00:00"


# ---- who dies on the way ----


@pytest.mark.parametrize("sql", [COPY, GROUPED], ids=["copy", "grouped"])
def test_a_killed_worker_costs_nothing_but_time(cluster, sql):
    cluster.coordinator()
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 4)
    cluster.submit(sql, "-p", "2", *KEPT)
    subtasks = cluster.until_checkpoint(1)["subtasks"]
    cluster.workers[subtasks[0]["worker"]].kill()
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] == 2 and s["restarts"] == 1, s
    lines = said(cluster)  # why it restarts is whichever is seen first, the loss or a peer that feels it
    assert f"clink: {subtasks[0]['worker']}: worker lost (connection closed)" in lines, lines
    assert [line for line in lines if "job 1" in line and line.startswith(f"clink: job 1 ({s['name']}) restarts: ")], lines
    check(cluster, sql)


@pytest.mark.parametrize("backend", ["rocksdb:scratch", "changelog+file:scratch"])
def test_state_is_kept_where_the_submission_says(cluster, backend):
    cluster.coordinator()
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 2)
    cluster.submit(GROUPED, "-p", "2", "--state-backend", backend, *KEPT)
    victim = cluster.until_checkpoint(1)["subtasks"][0]["worker"]
    assert (cluster.cwd / "scratch").is_dir()
    cluster.workers[victim].kill()
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["restarts"] == 1, s
    check(cluster, GROUPED)


def test_a_killed_task_host_restarts_where_it_was(cluster):
    cluster.coordinator()
    w = cluster.worker("w1", 4)
    cluster.submit(GROUPED, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    os.kill(children(w.pid)[0], signal.SIGKILL)
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["restarts"] == 1, s
    check(cluster, GROUPED)


def test_a_stopped_worker_is_lost_by_its_silence(cluster):
    cluster.coordinator(timeout_ms=3000)
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 4)
    cluster.submit(COPY, "-p", "2", *KEPT)
    victim = cluster.workers[cluster.until_checkpoint(1)["subtasks"][1]["worker"]]
    victim.send_signal(signal.SIGSTOP)
    until("a restart", lambda: cluster.status(1)["restarts"] > 0)
    victim.send_signal(signal.SIGCONT)  # back, as one that has nothing to say
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished", s
    check(cluster, COPY)


def test_the_rest_of_a_silent_worker_keeps_the_directory_until_it_has_gone(cluster):
    """Its host goes on and has the lock: the next attempts wait for it, longer each time, instead of failing the job."""
    cluster.coordinator(timeout_ms=3000)
    for name in ("w1", "w2"):
        cluster.worker(name, 4)
    cluster.submit(GROUPED, *KEPT)
    victim = cluster.workers[cluster.until_checkpoint(1)["subtasks"][0]["worker"]]
    victim.send_signal(signal.SIGSTOP)
    until("two restarts", lambda: cluster.status(1)["restarts"] > 1 or cluster.status(1)["status"] == "finished")
    assert cluster.status(1)["status"] != "failed"
    victim.send_signal(signal.SIGCONT)  # it hears that its attempt is not the job's any more
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished", s
    check(cluster, GROUPED)


def test_a_coordinator_that_is_started_again_takes_its_jobs_up(cluster):
    cluster.coordinator()
    cluster.worker("w1", 4), cluster.worker("w2", 4)
    cluster.submit(COPY, "-p", "2", *KEPT)
    cluster.until_checkpoint(1)
    cluster.leader.kill()
    cluster.leader.wait()
    cluster.coordinator()
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] == 1 and s["restarts"] == 0, s  # it never stopped
    check(cluster, COPY)


def test_coordinator_and_worker_die_together(cluster):
    cluster.coordinator()
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 4)
    cluster.submit(COPY, "-p", "2", *KEPT)
    victim = cluster.until_checkpoint(1)["subtasks"][0]["worker"]
    cluster.leader.kill(), cluster.workers[victim].kill()
    cluster.leader.wait()
    cluster.coordinator(timeout_ms=3000)  # so long it waits for the one that is dead
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["attempt"] > 1, s
    check(cluster, COPY)


def stopped_rows(cluster, job, wanted):
    """What is in the output after `stop`, once `wanted` says of the rows that are committed that they are enough."""
    until("enough rows", lambda: wanted(read_rows(cluster.cwd / "out")), lambda: cluster.status(job))
    cluster.ask("stop", job)
    assert cluster.until_status(job, "finished", "failed")["status"] == "finished"
    return read_rows(cluster.cwd / "out")


def lose_a_worker(cluster, job):
    """One of two that the job's subtasks are on; another takes its place."""
    s = cluster.until_checkpoint(job)
    assert len({x["worker"] for x in s["subtasks"]}) == 2, s
    cluster.workers[s["subtasks"][0]["worker"]].kill()
    cluster.worker(f"late{job}", 2)
    until("a restart", lambda: cluster.status(job)["restarts"] == 1, lambda: cluster.status(job))
    after = cluster.until_status(job, "running", "failed")
    assert after["status"] == "running", after


def test_datagen_without_end_goes_on_over_several_workers(cluster):
    endless = COPY.replace(f"rows='{ROWS}', ", "").replace("'40000'", "'5000'")
    cluster.coordinator()
    cluster.worker("w1", 2), cluster.worker("w2", 2)
    cluster.submit(endless, "-p", "2", *KEPT)
    lose_a_worker(cluster, 1)
    seen = max(r["k"] for r in stopped_rows(cluster, 1, lambda rows: len(rows) > 5000))
    cluster.submit(endless, "-p", "3", *KEPT)
    rows = stopped_rows(cluster, 2, lambda rows: rows and max(r["k"] for r in rows) > seen + 3000)
    made = {r["k"]: r for r in rows}
    assert len(made) == len(rows)
    for turn in range(2):  # each of the two splits from its first row on, without a gap
        of_split = sorted(k for k in made if k % 2 == turn)
        assert of_split == list(range(turn, of_split[-1] + 1, 2))
    last = max(made)
    run_clink("run", "-e", endless.replace("rate_limit='5000'", f"rows='{last + 1}'").replace("path='out'", "path='alone'"), cwd=cluster.cwd)
    alone = {r["k"]: r for r in read_rows(cluster.cwd / "alone")}
    assert len(alone) == last + 1 and all(made[k] == alone[k] for k in made)


def test_a_followed_directory_goes_on_over_several_workers(cluster):
    folder = cluster.cwd / "in"
    folder.mkdir()
    files = ["a", "b", "c"]
    for f in files:
        write_ndjson(folder / f, [{"f": f, "n": i} for i in range(2000)])
    cluster.coordinator()
    cluster.worker("w1", 2), cluster.worker("w2", 2)
    cluster.submit("""CREATE TABLE t (f VARCHAR, n BIGINT) WITH (connector='file', format='json', path='in', follow='true');
                      CREATE TABLE o (f VARCHAR, n BIGINT) WITH (connector='file', format='json', path='out');
                      INSERT INTO o SELECT f, n FROM t""", "-p", "2", *KEPT)
    until("the first rows", lambda: len(read_rows(cluster.cwd / "out")) == 6000)
    write_ndjson(folder / "d", [{"f": "d", "n": i} for i in range(2000)])  # found by the restart
    lose_a_worker(cluster, 1)
    for f in [*files, "d"]:
        with open(folder / f, "a") as out:
            out.writelines(json.dumps({"f": f, "n": i}) + "\n" for i in range(2000, 3000))
    rows = stopped_rows(cluster, 1, lambda rows: len(rows) >= 12000)
    assert sorted((r["f"], r["n"]) for r in rows) == [(f, n) for f in "abcd" for n in range(3000)]


def test_without_a_directory_a_loss_fails_the_job(cluster):
    cluster.coordinator()
    w = cluster.worker("w1", 1)
    cluster.submit(COPY)
    cluster.until_status(1, "running")
    w.kill()
    s = cluster.until_status(1, "failed")
    assert s["error"] == "worker lost (connection closed)" == s["subtasks"][0]["error"]
    assert said(cluster) == ["clink: w1: worker lost (connection closed)", f"clink: job 1 ({s['name']}) has failed: worker lost (connection closed)"]


def test_a_hungry_job_leaves_the_others_running(cluster):
    cluster.coordinator()
    w = cluster.worker("w1", 2)
    cluster.submit(COPY, *KEPT, "--name", "good")
    cluster.submit(COPY.replace("path='out'", "path='/dev/null/x'"), "--name", "bad")
    assert "/dev/null" in cluster.until_status(2, "failed")["error"]
    s = cluster.until_status(1, "finished", "failed")
    assert s["status"] == "finished" and s["restarts"] == 0 and w.poll() is None


def test_a_bad_record_suspends_the_job(cluster):
    lines = [json.dumps({"k": i, "v": i}) for i in range(1000)]
    (cluster.cwd / "in.ndjson").write_text("\n".join(lines[:500] + ['{"k":"x"}'] + lines[500:]) + "\n")
    sql = COPY.replace(COPY.split("WITH (")[1].split(")")[0], "connector='file', format='json', path='in.ndjson'")
    cluster.coordinator()
    cluster.worker("w1", 1)
    cluster.submit(sql, *KEPT)
    s = cluster.until_status(1, "suspended")
    assert "in.ndjson" in s["error"] and s["restarts"] == 0
    assert not children(cluster.workers["w1"].pid)
    (cluster.cwd / "in.ndjson").write_text("\n".join(lines[:500] + ['{"k":7 }  '] + lines[500:]) + "\n")
    cluster.ask("resume", 1)
    assert cluster.until_status(1, "finished", "suspended")["status"] == "finished"
    assert len(read_rows(cluster.cwd / "out")) == 1001


def test_a_job_goes_on_without_records(cluster):
    """One that does not fit its table, then one that an expression cannot take; the coordinator dies between them."""
    lines = [json.dumps({"k": i, "v": i}) for i in range(1000)]
    lines[300] = '{"k":"x"}'
    lines[700] = '{"k":700,"v":-1}'
    (cluster.cwd / "in.ndjson").write_text("\n".join(lines) + "\n")
    sql = COPY.replace(COPY.split("WITH (")[1].split(")")[0], "connector='file', format='json', path='in.ndjson'")
    sql = sql.replace("SELECT k, v FROM t", "SELECT k, 100 / (v + 1) FROM t")
    cluster.coordinator()
    cluster.worker("w1", 1)
    cluster.submit(sql, *KEPT)
    for attempt, at in enumerate((300, 700), 1):
        until("suspended", lambda: cluster.status(1)["status"] == "suspended" and cluster.status(1)["attempt"] == attempt)
        error = cluster.status(1)["error"]
        place = re.search("resume ID --skip-record '([^']*)'", error).group(1)
        assert place.endswith(f"/in.ndjson:{sum(len(x) + 1 for x in lines[:at])}"), error
        assert "'in.ndjson' is not SPLIT:OFFSET" in cluster.ask("resume", 1, "--skip-record", "in.ndjson", ok=False).err
        if attempt == 1:
            cluster.leader.kill()
            cluster.leader.wait()
            cluster.coordinator()
        until("a slot is free", lambda: "no slot" not in cluster.ask("resume", 1, "--skip-record", place, ok=False).err)
    assert cluster.until_status(1, "finished", "failed")["status"] == "finished"
    assert sorted(r["k"] for r in read_rows(cluster.cwd / "out")) == [i for i in range(1000) if i not in (300, 700)]


# ---- what is refused ----


def test_refusals_are_sentences(cluster, tmp_path):
    cluster.coordinator()
    memory = "CREATE TABLE m (k BIGINT); INSERT INTO m VALUES (1); "
    for sql, why in (("SELECT 1", "nobody would see the rows"), (memory, "memory of one process"), ("SET batch_rows = 7", "nothing to run"),
                     (COPY, "no slot available: the job needs 1, and 0 are free; workers here: 0")):
        r = cluster.submit(sql, ok=False)
        assert r.code == 1 and why in r.err, (sql, r.err)
    r = cluster.ask("cancel", "x", ok=False)
    assert r.code == 2 and "'x' is no job's number" in r.err
    r = run_clink("coordinator", "--bind", "0.0.0.0", "--port", "0", cwd=tmp_path, ok=False)
    assert r.code == 1 and "without --tls-cert, --tls-key and --tls-ca only a loopback address" in r.err
    r = run_clink("coordinator", "--metadata-dir", "cluster", "--port", "0", cwd=tmp_path, env=cluster.env, ok=False)
    assert r.code == 1 and "another coordinator has cluster" in r.err
    r = run_clink("list", "--coordinator", "127.0.0.1:1", cwd=tmp_path, env=cluster.env, ok=False)
    assert r.code == 1 and "no coordinator of yours has port 1" in r.err


def test_who_does_not_know_the_token_is_turned_away(cluster):
    cluster.coordinator()
    port = int(cluster.address.split(":")[1])
    token = os.path.join(cluster.runtime, "clink", f"token-{port}")
    assert os.stat(token).st_mode & 0o777 == 0o600 and os.stat(os.path.dirname(token)).st_mode & 0o777 == 0o700
    wrong = cluster.cwd / "wrong"
    wrong.write_text("0" * 64)
    r = cluster.ask("list", "--token-file", wrong, ok=False)
    assert r.code == 1 and "closed the connection" in r.err
    for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"\0\0\0\x01\x02", b"\0\0\0\0"):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.settimeout(60)
            s.sendall(junk)
            try:
                assert s.recv(1) == b""
            except ConnectionResetError:
                pass
    assert cluster.ask("list", "--json").rows == []  # and nobody else has noticed


def test_a_damaged_record_is_named(cluster):
    cluster.coordinator()
    cluster.worker("w1", 1)
    cluster.submit(COPY, *KEPT)
    cluster.leader.kill()
    cluster.leader.wait()
    path = cluster.cwd / "cluster" / "job-1.rec"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    r = run_clink("coordinator", "--metadata-dir", "cluster", "--port", "0", cwd=cluster.cwd, env=cluster.env, ok=False)
    assert r.code == 1 and "job-1.rec is damaged" in r.err


# ---- the help pages' examples ----


@pytest.mark.parametrize("verb", ["submit", "list", "status", "cancel", "drop", "resume", "stop"])
def test_examples_run(cluster, verb):
    cluster.coordinator()
    cluster.worker("w1", 4)
    if verb != "submit":
        sql = COPY
        if verb == "resume":
            (cluster.cwd / "in.ndjson").write_text('{"k":"x"}\n')
            sql = COPY.replace(COPY.split("WITH (")[1].split(")")[0], "connector='file', format='json', path='in.ndjson'")
        cluster.submit(sql, *KEPT)
        cluster.until_status(1, "suspended" if verb == "resume" else "running")
    (cluster.cwd / "job.sql").write_text(COPY.replace(f"rows='{ROWS}', rate_limit='40000'", "rows='10'"))
    until("slots", lambda: verb != "submit" or cluster.ask("submit", "--name", "probe", "--wait", "job.sql", ok=False).code == 0)
    for line in examples(verb):
        line = line.split(" #")[0].replace(f"clink {verb}", f"clink {verb} --coordinator {cluster.address}")
        env = {**os.environ, **cluster.env, "PATH": BUILD + ":" + os.environ["PATH"]}
        p = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=cluster.cwd, env=env, capture_output=True, text=True, timeout=DEADLINE_S)
        assert p.returncode == 0, line + p.stderr
        if verb == "submit":
            until("an end", lambda: all(j["status"] == "finished" for j in cluster.ask("list", "--json").rows))
