"""Regions of one job, each run by a process of its own in one checkpoint directory (tests/regions/region_run.c), and what goes on from it: the
regions themselves after kills, `clink run` of the whole at another parallelism, a changed script, and the tools that read directories.

`python3 tests/system/test_regions.py` makes a new tests/golden/regions/NAME, when a format gets a new version; those that are there are never
changed."""
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections import Counter

import pytest
from conftest import BUILD, CLINK, TOP, read_rows, run_clink

REGION_RUN = os.path.join(BUILD, "region_run")
PATIENCE_S = 240
GOLDEN = os.path.join(TOP, "tests", "golden", "regions")

DDL = """
CREATE TABLE {t} (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{where}/in_{t}.ndjson'{more});
CREATE TABLE copy_{t} (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{where}/copy_{t}');
CREATE TABLE sum_{t} (k VARCHAR, s BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='{where}/sum_{t}', mode='upsert');
"""
INSERTS = """
INSERT INTO copy_{t} SELECT k, v FROM {t};
INSERT INTO sum_{t} SELECT k, SUM(v), COUNT(*) FROM {t} GROUP BY k;
"""


class Region:
    """A process that runs one region."""

    def __init__(self, job, index, count, parallelism=2, interval_ms=20, restore=None, fault=None):
        env = {**os.environ, **({"CLINK_FAULT": fault} if fault else {})}
        args = [REGION_RUN, job.script, job.ck, index, count, parallelism, interval_ms, *([restore] if restore else [])]
        self.p = subprocess.Popen([str(a) for a in args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(job.where / "region.err", "a"),
                                  env=env, text=True, bufsize=1, cwd=job.where)
        job.running.append(self)

    def line(self):
        ready, _, _ = select.select([self.p.stdout], [], [], PATIENCE_S)
        assert ready, "the region says nothing"
        return self.p.stdout.readline().strip()

    def begins(self):
        assert self.line() == "running"
        return self

    def say(self, verb, above):
        self.p.stdin.write(f"{verb} {above}\n")
        word, number = self.line().split()
        assert word == "savepoint"
        return int(number)

    def ends(self, how="finished"):
        assert self.line() == how
        assert self.p.wait(PATIENCE_S) == 0

    def kill(self):
        self.p.kill()
        self.p.wait()


class Job:
    def __init__(self, where):
        self.where, self.ck, self.script, self.running = where, where / "ck", where / "job.sql", []
        self.rows = {}

    def read_input(self, *tables):
        for t in tables:
            self.rows[t] = [json.loads(line) for line in (self.where / f"in_{t}.ndjson").read_text().splitlines()]

    def append(self, table, n):
        had = self.rows.setdefault(table, [])
        more = [{"k": "k%d" % (i * 7 % 23), "v": i} for i in range(len(had), len(had) + n)]
        with open(self.where / f"in_{table}.ndjson", "a") as f:
            f.writelines(json.dumps(r) + "\n" for r in more)
        had += more

    def write(self, *tables, follow=True, more=""):
        option = ", follow='true'" if follow else ""
        self.script.write_text("".join(DDL.format(t=t, where=self.where, more=option) for t in tables) +
                               "".join(INSERTS.format(t=t) for t in tables) + more)
        return self.script

    def manifests(self):
        found = {}
        for path in self.ck.glob("checkpoint-*.json"):
            try:
                found[int(path.name[11:-5])] = json.loads(path.read_text())
            except FileNotFoundError:  # retention was faster
                pass
        return found

    def newest_of(self, region):
        return max((n for n, m in self.manifests().items() if m.get("region") == region), default=0)

    def wait_until(self, holds, what):
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, what
            for r in self.running:
                assert r.p.poll() in (None, 0, -signal.SIGKILL), (self.where / "region.err").read_text()
            time.sleep(0.01)

    def wait_newer(self, region, than):
        self.wait_until(lambda: self.newest_of(region) > than, f"no checkpoint of region {region}")

    def wait_read(self, *tables):
        for t in tables:
            self.wait_until(lambda: len(read_rows(self.where / f"copy_{t}")) >= len(self.rows[t]), f"{t} was not read")

    def check(self, *tables):
        for t in tables:
            want = Counter((r["k"], r["v"]) for r in self.rows[t])
            assert Counter((r["k"], r["v"]) for r in read_rows(self.where / f"copy_{t}")) == want
            sums = {}
            for r in self.rows[t]:
                s, n = sums.get(r["k"], (0, 0))
                sums[r["k"]] = (s + r["v"], n + 1)
            assert {r["k"]: (r["s"], r["n"]) for r in read_rows(self.where / f"sum_{t}")} == sums

    def run_whole(self, *tables, parallelism=2, flags=()):
        """clink run until all rows are there, then stopped with a savepoint."""
        err = open(self.where / "run.err", "w+")
        p = subprocess.Popen([CLINK, "run", str(self.script), "--name", "regions", "--checkpoint-dir", str(self.ck), "--checkpoint-interval-ms", "20",
                              "-p", str(parallelism), *flags], stdout=subprocess.DEVNULL, stderr=err)
        try:
            end = time.monotonic() + PATIENCE_S
            # It has started (and hears signals), and nothing is left to read.
            while p.poll() is None and ("exactly once" not in (self.where / "run.err").read_text() or
                                        any(len(read_rows(self.where / f"copy_{t}")) < len(self.rows[t]) for t in tables)):
                assert time.monotonic() < end
                time.sleep(0.01)
            assert p.poll() is None, (self.where / "run.err").read_text()
            p.send_signal(signal.SIGUSR2)
            assert p.wait(PATIENCE_S) == 0, (self.where / "run.err").read_text()
        finally:
            p.kill()
            p.wait()
        return (self.where / "run.err").read_text()

    def end_all(self):
        for r in self.running:
            r.kill()


@pytest.fixture
def job(tmp_path):
    j = Job(tmp_path)
    j.append("a", 400)
    j.append("b", 300)
    j.write("a", "b")
    yield j
    j.end_all()


def two(job, **how):
    regions = [Region(job, i, 2, **how) for i in range(2)]
    return [r.begins() for r in regions]


def test_each_goes_on_by_itself_and_the_whole_from_both(job):
    """One is killed again and again while the other goes on; then all, and `clink run` goes on at another parallelism."""
    a, b = two(job)
    for _ in range(3):
        job.wait_newer(0, job.newest_of(0))
        job.wait_newer(1, job.newest_of(1))
        job.append("a", 50)
        job.append("b", 50)
        a.kill()
        mine = job.newest_of(1)
        a = Region(job, 0, 2, parallelism=3).begins()
        job.wait_newer(1, mine)  # it was never in anybody's way
    job.wait_read("a", "b")
    a.kill()
    b.kill()
    for m in job.manifests().values():
        assert (m["format"], m["regions"]) == (2, 2) and m["checkpoint"] % 2 == m["region"]
        assert {v["ops"][0] for v in m["vertices"] if v["ops"][0].startswith("source:")} == {"source:" + "ab"[m["region"]]}
    job.append("a", 50)
    job.append("b", 50)
    job.run_whole("a", "b", parallelism=4)
    job.check("a", "b")
    job.append("b", 20)
    b = Region(job, 1, 2, parallelism=3).begins()  # one of them, and the whole again: from what both have
    job.wait_newer(1, 0)
    job.wait_newer(1, job.newest_of(1))
    b.kill()
    job.append("b", 20)
    job.append("a", 20)
    job.run_whole("a", "b", parallelism=2)
    job.check("a", "b")
    job.append("b", 20)
    a, b = two(job, parallelism=1)  # and back again: each from its part of the whole
    job.wait_read("a", "b")
    top = max(a.say("stop", job.newest_of(1)), b.say("stop", job.newest_of(1)))
    assert top == max(job.manifests())
    a.ends()
    b.ends()
    job.check("a", "b")


def test_kills_at_fault_points(job):
    b = Region(job, 1, 2).begins()
    Region(job, 0, 2).begins().kill()
    for fault in ["checkpoint.before_manifest:2", "checkpoint.after_manifest:2", "commit.before:1", "commit.after:1", "commit.before_committed:1",
                  "commit.after_committed:2", "retention.before_delete:1", "durable.after_publish:3", "restore.after_load:1",
                  "restore.after_commit:1"]:
        job.append("a", 40)
        a = Region(job, 0, 2, fault=fault + ":kill")
        a.p.wait(PATIENCE_S)
        assert a.p.returncode == -signal.SIGKILL, fault
    job.append("b", 40)
    a = Region(job, 0, 2).begins()
    job.wait_read("a", "b")
    a.say("stop", job.newest_of(1))
    a.ends()
    b.say("stop", job.newest_of(0))
    b.ends()
    job.check("a", "b")


def test_a_changed_script_goes_on_from_the_cover(job):
    """A third region; the two that were there go on, each as it comes."""
    a, b = two(job)
    job.wait_read("a", "b")
    job.wait_newer(0, job.newest_of(0))
    job.wait_newer(1, job.newest_of(1))
    a.kill()
    b.kill()
    old = max(job.manifests())
    job.append("c", 200)
    job.append("a", 60)
    job.append("b", 60)
    job.write("b", "c", "a")  # in another order, too: region 0 is b
    explained = run_clink("explain", job.script, "--name", "regions", "--checkpoint-dir", job.ck, "--restore", "latest").out
    assert f"from checkpoint {old}" in explained and explained.count("  reuse ") == 8
    first = Region(job, 0, 3).begins()
    job.wait_until(lambda: any(m.get("regions") == 3 for m in job.manifests().values()), "no checkpoint of the new script")
    # Who goes on with the whole now has no manifests of one script; a third script has less.
    first.kill()
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, ok=False)
    assert r.code != 0 and "has no checkpoint yet" in r.err
    regions = [Region(job, i, 3).begins() for i in range(3)]
    for i in range(3):
        job.wait_newer(i, 0)
    job.wait_until(lambda: len({m["region"] for m in job.manifests().values() if m.get("regions") == 3}) == 3, "not all have a checkpoint")
    job.wait_read("a", "b", "c")
    job.wait_until(lambda: all(m.get("regions") == 3 for m in job.manifests().values()), "the old script's checkpoints stay")
    for r in regions:
        r.kill()
    job.append("c", 30)
    job.write("c", "a")  # b is dropped, by the whole
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, ok=False)
    assert r.code != 0 and "is not in this script" in r.err
    job.write("c", "b", "a")
    job.run_whole("a", "b", "c", parallelism=1)
    job.check("a", "b", "c")


def test_savepoints_and_tools(job):
    a, b = two(job)
    job.wait_read("a", "b")
    above = max(job.manifests())
    number = max(a.say("savepoint", above), b.say("savepoint", above))
    savepoints = {n: m["region"] for n, m in job.manifests().items() if m["kind"] == "savepoint"}
    assert sorted(savepoints.values()) == [0, 1] and max(savepoints) == number and min(savepoints) > above
    verified = run_clink("checkpoint-verify", job.ck, "--id", number, "--json").rows
    assert {r["path"] for r in verified} >= {f"checkpoint-{n}.json" for n in savepoints}
    shown = run_clink("check-savepoint", f"{job.ck}:{number}").out
    assert f"savepoint {number}" in shown and "sum_a" in shown and "sum_b" in shown
    job.append("a", 80)
    job.append("b", 80)
    job.wait_read("a", "b")
    job.wait_newer(0, job.newest_of(0))
    job.wait_newer(1, job.newest_of(1))
    a.kill()
    b.kill()
    kept = set(savepoints)
    assert kept < set(job.manifests())
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, "--restore", number, ok=False)
    assert r.code != 0 and "going back would write its rows again" in r.err
    job.run_whole("a", "b", parallelism=3)
    job.check("a", "b")
    r = run_clink("savepoint", "--dispose", f"{job.ck}:{min(savepoints)}", ok=False)
    assert r.code != 0 and f"part of savepoint {number}" in r.err
    run_clink("savepoint", "--dispose", f"{job.ck}:{number}")
    assert not kept & set(job.manifests())


def test_newer_than_its_own_part(job):
    """What a sink has committed is compared with the part it is restored from, not with the number of the whole."""
    a, b = two(job)
    job.wait_read("a", "b")
    part = a.say("savepoint", 0)
    job.append("a", 60)
    job.wait_read("a")
    job.wait_newer(0, part)
    a.kill()
    number = b.say("stop", job.newest_of(0) + 1000)
    b.ends()
    assert number > job.newest_of(0) + 1000
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, "--restore", number, ok=False)
    assert r.code != 0 and f"after the restored {part}: going back would write its rows again" in r.err
    job.run_whole("a", "b")  # the newest of each
    job.check("a", "b")


def test_one_owner(job):
    a, b = two(job)
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, ok=False)
    assert r.code != 0 and "in use by another run" in r.err
    again = Region(job, 1, 2)
    assert "in use by another run" in again.line()
    again.p.wait()
    a.kill()
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, ok=False)
    assert r.code != 0 and f"process {b.p.pid}" in r.err


def test_a_missing_or_damaged_manifest(job):
    a, b = two(job)
    job.wait_read("a", "b")
    for _ in range(2):
        job.wait_newer(0, job.newest_of(0))
        job.wait_newer(1, job.newest_of(1))
    a.kill()
    b.kill()
    newest = {r: max(n for n in job.manifests() if n % 2 == r and (job.ck / f"checkpoint-{n}.committed").exists()) for r in range(2)}
    for r in range(2):  # what is newer and not committed was never anything
        for n in list(job.manifests()):
            if n % 2 == r and n > newest[r]:
                (job.ck / f"checkpoint-{n}.json").unlink()
    behind = min(newest.values())
    lost = job.ck / f"checkpoint-{behind}.json"
    text = lost.read_bytes()
    lost.unlink()  # the other region's is newer
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, ok=False)
    assert r.code != 0 and f"checkpoint-{behind}.json is gone" in r.err
    mine = Region(job, behind % 2, 2)
    assert f"checkpoint-{behind}.json is gone" in mine.line()
    mine.p.wait()
    mine.p.returncode = 0  # as it should
    other = Region(job, 1 - behind % 2, 2).begins()
    other.kill()
    lost.write_bytes(text[: len(text) // 2])
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck, ok=False)
    assert r.code != 0 and f"checkpoint-{behind}.json" in r.err
    lost.write_bytes(text)
    job.run_whole("a", "b")
    job.check("a", "b")


def test_goes_back_in_its_own_sequence(job):
    """A damaged manifest that nothing was committed of is gone back behind, by its region alone."""
    b = Region(job, 1, 2).begins()
    for _ in range(10):  # while one is marked committed, the next may be complete already
        job.append("a", 200)
        a = Region(job, 0, 2, interval_ms=5, fault="checkpoint.after_manifest:3:kill")
        a.p.wait(PATIENCE_S)
        newest = job.newest_of(0)
        if not (job.ck / f"checkpoint-{newest}.committed").exists():
            break
    else:
        pytest.fail("the newest was committed every time")
    path = job.ck / f"checkpoint-{newest}.json"
    path.write_bytes(path.read_bytes()[:-20])
    a = Region(job, 0, 2).begins()
    assert path.with_suffix(".abandoned").exists() and not path.exists()
    assert "going back to the one before" in (job.where / "region.err").read_text()
    mine = job.newest_of(1)
    job.wait_newer(1, mine)
    job.wait_read("a", "b")
    a.kill()
    b.kill()
    job.run_whole("a", "b", parallelism=3)
    job.check("a", "b")


def test_no_region_goes_back_behind_what_is_all_regions(job):
    """Also one whose own sinks commit nothing: the other's have."""
    job.script.write_text("".join(
        f"CREATE TABLE {t} (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{job.where}/in_{t}.ndjson', follow='true');\n"
        for t in "ab") + f"""
CREATE TABLE copy_a (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{job.where}/copy_a');
CREATE TABLE nowhere (k VARCHAR, v BIGINT) WITH (connector='blackhole');
INSERT INTO copy_a SELECT k, v FROM a;
INSERT INTO nowhere SELECT k, v FROM b;
""")
    for _ in range(2):  # whichever region its number could be of
        job.append("a", 50)
        job.run_whole("a")
        newest = max(job.manifests())
        path = job.ck / f"checkpoint-{newest}.json"
        text = path.read_bytes()
        path.write_bytes(text[:-20])
        for i in range(2):
            r = Region(job, i, 2)
            assert f"checkpoint-{newest}.json" in r.line()
            assert r.p.wait(PATIENCE_S) == 1
            job.running.remove(r)
        assert path.exists() and not path.with_suffix(".abandoned").exists()
        path.write_bytes(text)
    job.run_whole("a")
    assert Counter(r["v"] for r in read_rows(job.where / "copy_a")) == Counter(r["v"] for r in job.rows["a"])


def test_finished_when_all_have(job):
    job.write("a", "b", follow=False)
    Region(job, 0, 2).begins().ends()
    again = Region(job, 0, 2).begins()
    again.ends("had finished")
    b = Region(job, 1, 2, fault="commit.before:1:kill")
    b.p.wait(PATIENCE_S)
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck)
    job.check("a", "b")
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck)
    assert "finished" in r.err
    job.check("a", "b")
    shutil.rmtree(job.ck)
    for t in "ab":
        shutil.rmtree(job.where / f"copy_{t}")
        shutil.rmtree(job.where / f"sum_{t}")
    for i in range(2):
        Region(job, i, 2).begins().ends()
    r = run_clink("run", job.script, "--name", "regions", "--checkpoint-dir", job.ck)
    assert "finished" in r.err
    job.check("a", "b")


@pytest.mark.parametrize("by", ["whole", "region"])
@pytest.mark.parametrize("name", sorted(os.listdir(GOLDEN)))
def test_what_an_older_build_left_goes_on(name, by, tmp_path):
    """Both regions stopped half way with a savepoint."""
    shutil.copytree(os.path.join(GOLDEN, name), tmp_path / "old")
    job = Job(tmp_path / "old")
    job.read_input("a", "b")
    shown = run_clink("check-savepoint", "ck", "--expected", "job.sql", cwd=job.where).out
    assert "sum_a" in shown and "sum_b" in shown
    if by == "whole":
        run_clink("run", "job.sql", "--name", "regions", "--checkpoint-dir", "ck", "-p", "3", cwd=job.where)
    for i in range(2):
        Region(job, i, 2, parallelism=1).begins().ends("finished" if by == "region" else "had finished")
    job.check("a", "b")


def make_golden():
    from pathlib import Path

    where = Path(GOLDEN) / time.strftime("%Y-%m-%d")
    where.mkdir(parents=True)
    job = Job(where)
    job.append("a", 400)
    job.append("b", 300)
    text = "".join(DDL.format(t=t, where=".", more=", rate_limit=100") for t in "ab") + "".join(INSERTS.format(t=t) for t in "ab")
    job.script.write_text(text.replace("'./", "'"))
    regions = two(job, interval_ms=300)
    job.wait_until(lambda: all(len(read_rows(where / f"copy_{t}")) > 100 for t in "ab"), "nothing comes out")
    above = max(job.manifests())
    numbers = [r.say("stop", above) for r in regions]
    for r in regions:
        r.ends()
    print("savepoint", max(numbers), "in", where)
    (where / "region.err").unlink()


if __name__ == "__main__":
    make_golden()
