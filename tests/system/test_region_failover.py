"""A job of two scripts that have nothing to do with each other: each is a region, with a task host of its own on every worker it is on. What
happens to one is none of the other's business (docs/decisions/0025-regions.md)."""
import json
import os
import re
import signal


import pytest
from cluster_matrix import children, send
from conftest import read_rows, run_clink
from test_cluster import KEPT, Cluster, until

ROWS = 600000  # ten minutes of them: no region comes to its end while it is looked at, however slow the machine
TWO = f"""CREATE TABLE a (k BIGINT, v BIGINT) WITH (connector='datagen', rows='{ROWS}', rate_limit='1000', 'fields.k.kind'='sequence');
CREATE TABLE b (k BIGINT, v BIGINT) WITH (connector='datagen', rows='{ROWS}', rate_limit='1000', 'fields.k.kind'='sequence');
CREATE TABLE left_out (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='left');
CREATE TABLE right_out (g BIGINT, n BIGINT, s BIGINT) WITH (connector='file', format='json', path='right');
INSERT INTO left_out SELECT k, v FROM a;
INSERT INTO right_out SELECT k % 97, COUNT(*), SUM(v) FROM b GROUP BY k % 97;
"""
FAST = TWO.replace("rate_limit='1000', ", "")  # the same job: it may be gone on with at another rate
LEFT, RIGHT = 0, 1


@pytest.fixture
def cluster(tmp_path):
    c = Cluster(tmp_path)
    yield c
    c.end()


def check(cluster):
    """Both outputs are those of a run that nobody disturbed."""
    alone = FAST.replace("path='left'", "path='alone_left'").replace("path='right'", "path='alone_right'")
    if not (cluster.cwd / "alone_left").exists():
        run_clink("run", "-e", alone, cwd=cluster.cwd)
    for name in ("left", "right"):
        assert sorted(map(str, read_rows(cluster.cwd / name))) == sorted(map(str, read_rows(cluster.cwd / f"alone_{name}"))), name


def regions_of_hosts(cluster):
    """The task hosts there are: process -> region."""
    found = {}
    for w in cluster.workers.values():
        for pid in children(w.pid):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    args = f.read().split(b"\0")
            except OSError:
                continue
            if b"task-host" in args:
                found[pid] = int(args[args.index(b"task-host") + 2]) >> 48
    return found


def host_of(cluster, region):
    """A process of a region's."""
    return until(f"a host of region {region}", lambda: next((p for p, r in regions_of_hosts(cluster).items() if r == region), None))


def regions(cluster, job=1):
    return cluster.status(job).get("regions")


def until_both(cluster, above=(0, 0), job=1):
    """Both run, and have completed a checkpoint above these."""
    return until("both have checkpoints", lambda: (r := regions(cluster, job)) and all(x["status"] == "running" and x["checkpoint"] > n for x, n in zip(r, above)) and r,
                 lambda: cluster.status(job))


def here(cluster, sql):
    """As submit takes its paths, so that clink run of the script is of the same tables."""
    return re.sub(r"path='(?=[a-z])", f"path='{cluster.cwd}/", sql)


def until_attempts(cluster, attempts):
    """These run, and no other attempt than these was needed."""

    def look():
        r = regions(cluster)
        return r if all(x["status"] == "running" and x["attempt"] >= n for x, n in zip(r, attempts)) else None

    r = until(f"attempts {attempts} run", look, lambda: cluster.status(1))
    assert [x["attempt"] for x in r] == attempts, r


def start(cluster, sql, *flags):
    cluster.coordinator()
    for name in ("w1", "w2"):
        cluster.worker(name, 4)
    job = cluster.submit(here(cluster, sql), *KEPT, *flags)
    assert len(job["regions"]) == 2, job
    return job


def end(cluster, job=1):
    """A stop, then the rest of it at once, as another job."""
    cluster.ask("stop", job)
    assert cluster.until_status(job, "finished", "failed")["status"] == "finished"
    s = cluster.submit(here(cluster, FAST), "--wait", *KEPT)
    assert s["status"] == "finished", s
    check(cluster)


def test_only_the_region_that_lost_its_host_restarts(cluster):
    """Each in turn: the other keeps its process and its attempt."""
    start(cluster, TWO)
    until_both(cluster)
    attempts = [1, 1]
    for victim in (LEFT, RIGHT, LEFT):
        survivor = host_of(cluster, 1 - victim)
        os.kill(host_of(cluster, victim), signal.SIGKILL)
        attempts[victim] += 1
        until_attempts(cluster, attempts)
        assert host_of(cluster, 1 - victim) == survivor
    s = cluster.status(1)
    assert s["attempt"] == 3 and s["restarts"] == 2 and [r["restarts"] for r in s["regions"]] == [2, 1], s
    end(cluster)


def test_each_has_hosts_of_its_own(cluster):
    """Two of each, on two workers: one that is lost takes its region's other one along, and nobody else; then a cancel is of all."""
    start(cluster, TWO, "-p", "2")
    until_both(cluster)
    others = {p for p, r in regions_of_hosts(cluster).items() if r == RIGHT}
    assert len(others) == 2 and len(regions_of_hosts(cluster)) == 4
    os.kill(host_of(cluster, LEFT), signal.SIGKILL)
    until_attempts(cluster, [2, 1])
    until_both(cluster, [x["checkpoint"] for x in regions(cluster)])
    assert others == {p for p, r in regions_of_hosts(cluster).items() if r == RIGHT}
    assert {x["region"] for x in cluster.status(1)["subtasks"]} == {0, 1}
    text = cluster.ask("status", 1).out
    assert re.search(r"\n  region 0 running, attempt 2, 1 restarts, \d of \d+ subtasks run, checkpoint \d+\n", text), text
    assert re.search(r"\n  region 1 running, attempt 1, 0 restarts, ", text), text
    cluster.ask("cancel", 1)
    assert cluster.until_status(1, "cancelled")
    until("the hosts have gone", lambda: not regions_of_hosts(cluster))
    rows = read_rows(cluster.cwd / "left")
    assert len({x["k"] for x in rows}) == len(rows)  # of two splits, which are not equally far


def test_a_lost_worker_is_a_loss_to_those_on_it(cluster):
    """First a worker, then a host and the coordinator together: who leads next finds the region that runs as it was."""
    start(cluster, TWO)
    until_both(cluster)
    on = {x["region"]: x["worker"] for x in cluster.status(1)["subtasks"]}
    assert on[LEFT] != on[RIGHT]
    survivor = host_of(cluster, RIGHT)
    cluster.workers.pop(on[LEFT]).kill()
    until_attempts(cluster, [2, 1])
    os.kill(host_of(cluster, LEFT), signal.SIGKILL)
    cluster.leader.kill()
    cluster.leader.wait()
    cluster.coordinator()
    until_attempts(cluster, [3, 1])
    assert host_of(cluster, RIGHT) == survivor
    end(cluster)


def run_the_rest(cluster):
    (cluster.cwd / "rest.sql").write_text(here(cluster, FAST))
    run_clink("run", "--name", "job", "--checkpoint-dir", "ck", "rest.sql", cwd=cluster.cwd)
    check(cluster)


def test_a_savepoint_is_of_both_and_run_goes_on_from_it(cluster):
    """Savepoints, one after a restart of one region; a stop; then clink run of the same directory, and the job once more."""
    start(cluster, TWO)
    until_both(cluster)
    first = cluster.ask("savepoint", 1, "--json").rows[0]["savepoint"]
    os.kill(host_of(cluster, LEFT), signal.SIGKILL)
    until_attempts(cluster, [2, 1])
    got = until("a savepoint", lambda: (r := cluster.ask("savepoint", 1, "--json", ok=False)).code == 0 and r.rows[0])
    second = got["savepoint"]
    assert second > first > 0 and got["checkpoint_dir"] == str(cluster.cwd / "ck")
    for n in (first, second):
        run_clink("check-savepoint", f"{cluster.cwd / 'ck'}:{n}")
    last = cluster.ask("stop", 1, "--json").rows[0]["savepoint"]
    s = cluster.until_status(1, "finished")
    assert last > second and s["checkpoint"] == last, s
    assert len(read_rows(cluster.cwd / "left")) < ROWS
    run_the_rest(cluster)
    s = cluster.submit(here(cluster, FAST), "--wait", *KEPT)
    assert s["status"] == "finished", s
    check(cluster)


def test_run_goes_on_from_what_a_cancelled_job_left(cluster):
    """Without a savepoint: of each region its newest checkpoint, which are not of one time. And submit from what run left."""
    start(cluster, TWO)
    until_both(cluster)
    os.kill(host_of(cluster, RIGHT), signal.SIGKILL)
    until_attempts(cluster, [1, 2])
    cluster.ask("cancel", 1)
    cluster.until_status(1, "cancelled")
    until("the hosts have gone", lambda: not regions_of_hosts(cluster))
    run_the_rest(cluster)


def test_what_run_left_is_gone_on_with_by_region(cluster):
    """A run of the whole is killed on its way; submit of the same script and directory goes on with it, region by region."""
    (cluster.cwd / "job.sql").write_text(here(cluster, TWO))
    p = cluster.start("run", *KEPT, "job.sql")
    until("a checkpoint", lambda: [n for n in os.listdir(cluster.cwd / "ck") if n.endswith(".committed")] if (cluster.cwd / "ck").exists() else False)
    p.kill()
    p.wait()
    start(cluster, TWO)
    until_both(cluster)
    os.kill(host_of(cluster, LEFT), signal.SIGKILL)
    until_attempts(cluster, [2, 1])
    end(cluster)


def test_a_bad_record_suspends_its_region_alone(cluster):
    lines = [json.dumps({"k": i, "v": i}) for i in range(1000)]
    lines[300] = '{"k":"x"}'
    (cluster.cwd / "in.ndjson").write_text("\n".join(lines) + "\n")
    sql = TWO.replace(TWO.split("WITH (")[1].split(")")[0], "connector='file', format='json', path='in.ndjson'", 1)
    start(cluster, sql)
    s = until("one is suspended, and the other runs", lambda: (s := cluster.status(1)) and [r["status"] for r in s["regions"]] == ["suspended", "running"] and s)
    assert s["status"] == "suspended", s
    place = re.search("resume ID --skip-record '([^']*)'", s["error"]).group(1)
    before = s["regions"][RIGHT]["checkpoint"]
    until("the other goes on", lambda: regions(cluster)[RIGHT]["checkpoint"] > before)
    assert "is suspended" in cluster.ask("savepoint", 1, ok=False).err
    cluster.ask("resume", 1, "--skip-record", place)
    until("the first has finished", lambda: regions(cluster)[LEFT]["status"] == "finished")
    s = cluster.status(1)
    assert s["status"] == "running" and s["regions"][RIGHT]["attempt"] == 1, s
    assert len(read_rows(cluster.cwd / "left")) == 999
    cluster.ask("stop", 1)  # one that has finished needs no savepoint
    assert cluster.until_status(1, "finished", "failed")["status"] == "finished"


def test_one_that_fails_for_good_ends_the_other(cluster):
    start(cluster, TWO, "--max-restarts-on-worker-loss", "0")
    until_both(cluster)
    send(host_of(cluster, LEFT), signal.SIGKILL)
    s = cluster.until_status(1, "failed")
    assert "killed by signal 9" in s["error"] and [r["status"] for r in s["regions"]] == ["failed", "cancelled"], s
    until("the hosts have gone", lambda: not regions_of_hosts(cluster))


def test_without_checkpoints_the_job_is_one(cluster):
    cluster.coordinator()
    cluster.worker("w1", 4)
    job = cluster.submit(TWO)
    assert "regions" not in job and "regions" not in cluster.until_status(1, "running")
    assert len(children(cluster.workers["w1"].pid)) == 1
    cluster.ask("drop", 1)
