"""Savepoints of a running job: taken by signal, kept elsewhere, stopped with, restored from, disposed of, verified."""
import json
import os
import signal
import subprocess
import time

from conftest import CLINK, read_rows, run_clink

SCRIPT = """CREATE TABLE src (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}', follow='true');
CREATE TABLE snk (k VARCHAR, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='{out}', mode='upsert');
CREATE TABLE copy (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{copy}');
INSERT INTO snk SELECT k, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY k;
INSERT INTO copy SELECT k, v FROM src;
"""


class Run:
    """A followed job, and what is asked of it."""

    def __init__(self, where, *flags, out="out"):
        self.where, self.inp, self.out, self.copy = where, where / "in.ndjson", where / out, where / (out + "-copy")
        self.rows = sum(1 for _ in open(self.inp)) if self.inp.exists() else 0
        if not self.inp.exists():
            self.append(100)
        script = where / "job.sql"
        script.write_text(SCRIPT.format(inp=self.inp, out=self.out, copy=self.copy))
        self.err = open(where / "stderr", "w+")
        self.proc = subprocess.Popen([CLINK, "run", str(script), "--checkpoint-interval-ms", "20", *map(str, flags)],
                                     stdout=subprocess.DEVNULL, stderr=self.err)

    def append(self, n):
        with open(self.inp, "a") as f:
            for i in range(self.rows, self.rows + n):
                f.write('{"k":"k%d","v":%d}\n' % (i % 7, i))
        self.rows += n

    def said(self):
        self.err.flush()
        return open(self.where / "stderr").read()

    def until(self, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not (got := what()):
            assert self.proc.poll() is None or what(), self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.01)
        return got

    def until_read(self):
        self.until(lambda: sorted(r["v"] for r in read_rows(self.copy)) == list(range(self.rows)))

    def until_counted(self):
        self.until(lambda: sum(r["n"] for r in read_rows(self.out)) == self.rows)

    def savepoint(self):
        before = self.said().count("is complete")
        self.proc.send_signal(signal.SIGUSR1)
        self.until(lambda: self.said().count("is complete") > before)
        return int(self.said().rsplit("savepoint ", 1)[1].split()[0])

    def end(self, sig=signal.SIGINT, code=130):
        self.until(lambda: "clink: job: " in self.said())  # it has started: before, the signal would end the process
        self.proc.send_signal(sig)
        assert self.proc.wait(30) == code, self.said()

    def check(self):
        assert sorted(r["v"] for r in read_rows(self.copy)) == list(range(self.rows))
        self.check_counts()

    def check_counts(self):
        want = {f"k{k}": (len(v := range(k, self.rows, 7)), sum(v)) for k in range(7)}
        assert {r["k"]: (r["n"], r["s"]) for r in read_rows(self.out)} == want


def manifests(ck):
    out = {}
    for p in ck.glob("checkpoint-*.json"):
        try:
            m = json.loads(p.read_text())
        except FileNotFoundError:  # retention was faster
            continue
        out[m["checkpoint"]] = m
    return out


def test_ten_checkpoints_after_a_savepoint(tmp_path):
    ck = tmp_path / "ck"
    run = Run(tmp_path, "--checkpoint-dir", ck, "--checkpoint-retained", 2)
    try:
        run.until_read()
        at = run.savepoint()
        for _ in range(10):
            run.append(100)
            newest = max(manifests(ck))
            run.until(lambda: max(manifests(ck)) > newest)
        run.until(lambda: max(manifests(ck)) > at + 9)
        run.until_read()
        run.until(lambda: len(manifests(ck)) <= 4)  # retention keeps two, one more is being made, and the savepoint
        run.end()
    finally:
        run.proc.kill()
    held = manifests(ck)
    assert held[at]["kind"] == "savepoint" and all(f["kind"] == "base" for f in held[at]["files"])
    refused = run_clink("run", tmp_path / "job.sql", "--checkpoint-dir", ck, "--restore", at, ok=False)
    assert refused.code == 1 and "--allow-duplicates" in refused.err
    was = (ck / "job.json").read_text()
    for flags in (["--checkpoint-dir", ck, "--restore", at, "--fresh"],  # another identity has the same output behind it
                  ["--checkpoint-dir", tmp_path / "ck2", "--restore", f"{ck}:{at}"]):
        refused = run_clink("run", tmp_path / "job.sql", *flags, ok=False)
        assert refused.code == 1 and "going back" in refused.err and "--allow-duplicates" in refused.err, refused.err
    assert (ck / "job.json").read_text() == was  # and a fresh start that is refused leaves the job that was there
    again = Run(tmp_path, "--checkpoint-dir", ck, "--restore", at, "--allow-duplicates", "-p", 3)
    try:
        newest = max(manifests(ck))
        again.until(lambda: max(manifests(ck)) > newest)
        again.until(lambda: len(read_rows(again.copy)) == 1100 + 1000)  # what had been committed since comes again
        again.until_counted()
        again.end()
    finally:
        again.proc.kill()
    again.check_counts()
    assert {r["v"] for r in read_rows(again.copy)} == set(range(1100))


def test_stop_with_a_savepoint_and_go_on(tmp_path):
    ck, sp = tmp_path / "ck", tmp_path / "sp"
    flags = ["--checkpoint-dir", ck, "--savepoint-dir", sp]
    run = Run(tmp_path, *flags)
    try:
        run.until_read()
        run.end(signal.SIGUSR2, 0)
    finally:
        run.proc.kill()
    assert "stopped with savepoint" in run.said()
    run.check()
    at = max(manifests(ck))
    assert manifests(sp) == {at: manifests(ck)[at]} and manifests(ck)[at]["kind"] == "savepoint"
    again = Run(tmp_path, *flags, "-p", 2)
    try:
        again.until(lambda: max(manifests(ck)) > at)
        again.append(50)
        again.until_read()
        again.until_counted()
        again.end()
    finally:
        again.proc.kill()
    again.check()
    # The kept one is complete by itself: the job's own directory is not needed.
    moved = tmp_path / "moved"
    os.rename(sp, moved)
    for p in sorted(ck.rglob("*"), reverse=True):
        p.rmdir() if p.is_dir() else p.unlink()
    other = Run(tmp_path, "--checkpoint-dir", tmp_path / "ck3", "--restore-from-dir", moved,
                "--restore-from-checkpoint-id", at, "--allow-duplicates")
    try:
        other.until(lambda: manifests(tmp_path / "ck3"))
        other.until_counted()
        other.end()
    finally:
        other.proc.kill()


def test_a_stop_whose_savepoint_has_no_place_does_not_stop(tmp_path):
    ck, sp = tmp_path / "ck", tmp_path / "sp"
    sp.write_text("a file")
    run = Run(tmp_path, "--checkpoint-dir", ck, "--savepoint-dir", sp)
    try:
        run.until_read()
        run.proc.send_signal(signal.SIGUSR2)
        run.until(lambda: f"no savepoint: a savepoint cannot be kept in {sp}: {sp} is not a directory; the job goes on" in run.said())
        run.append(50)  # it does
        run.until_read()
        sp.unlink()
        run.end(signal.SIGUSR2, 0)
    finally:
        run.proc.kill()
    run.check()
    assert "stopped with savepoint" in run.said() and max(manifests(sp)) == max(manifests(ck))


def test_a_stop_whose_savepoint_is_not_kept_is_no_success(tmp_path):
    """Found when the job has stopped already: the savepoint stands where the job's checkpoints do, and the exit code says that it is not all."""
    ck, sp = tmp_path / "ck", tmp_path / "sp"
    run = Run(tmp_path, "--checkpoint-dir", ck, "--savepoint-dir", sp)
    try:
        run.until_read()
        run.proc.send_signal(signal.SIGUSR1)
        run.until(lambda: "is complete" in run.said())
        for path in [p for p in sp.iterdir() if p.is_dir()]:
            os.rename(path, tmp_path / ("away-" + path.name))
            path.write_text("in the way")
        run.end(signal.SIGUSR2, 1)
    finally:
        run.proc.kill()
    at = max(manifests(ck))
    assert f"stopped with savepoint {at}" in run.said() and f"savepoint {at} could not be kept in {sp}: " in run.said(), run.said()
    assert manifests(ck)[at]["kind"] == "savepoint" and at not in manifests(sp)
    again = Run(tmp_path, "--checkpoint-dir", ck)
    try:
        again.until(lambda: f"goes on from checkpoint {at}" in again.said())
        again.append(50)
        again.until_read()
        again.until_counted()
        again.end()
    finally:
        again.proc.kill()
    again.check()


def test_a_savepoint_needs_a_directory(tmp_path):
    run = Run(tmp_path)
    try:
        run.until(run.said)  # it has started: its signals are blocked
        run.proc.send_signal(signal.SIGUSR1)
        run.until(lambda: "savepoints need a checkpoint directory" in run.said())
        run.end()
    finally:
        run.proc.kill()
    bad = run_clink("run", tmp_path / "job.sql", "--savepoint-dir", tmp_path / "sp", ok=False)
    assert bad.code == 2 and "--checkpoint-dir" in bad.err


def test_dispose_and_verify(tmp_path):
    ck = tmp_path / "ck"
    run = Run(tmp_path, "--checkpoint-dir", ck)
    try:
        run.until_read()
        first = run.savepoint()
        run.append(10)
        run.until_read()
        live = run.savepoint()
        newest = max(manifests(ck))
        run.append(10)
        run.until(lambda: max(manifests(ck)) > newest)
        gone = run_clink("savepoint", "--dispose", f"{ck}:{live}")  # while it runs: the manifest goes
        assert "is gone" in gone.err and live not in manifests(ck)
        run.until_read()
        run.end()
    finally:
        run.proc.kill()
    files = {f["path"] for m in manifests(ck).values() for f in m["files"]}
    assert all((ck / f).exists() for f in files), "a file that a manifest names is gone"
    whole = run_clink("checkpoint-verify", ck)
    assert all(line.startswith("savepoint  " if f" checkpoint-{first}.json" in line else ("checkpoint ", "savepoint  ")) for line in whole.lines[:-1])
    saved = {r["checkpoint"] for r in run_clink("checkpoint-verify", ck, "--json").rows if r.get("savepoint")}
    assert saved == {i for i, m in manifests(ck).items() if m["kind"] == "savepoint"} and first in saved
    assert whole.lines[-1].endswith(" 0 damaged") and f"checkpoint-{first}.json" in whole.out
    only = {f["path"] for f in manifests(ck)[first]["files"]} - {
        f["path"] for i, m in manifests(ck).items() if i != first for f in m["files"]}
    run_clink("savepoint", "--dispose", f"{ck}:{first}")
    assert first not in manifests(ck) and only and not any((ck / f).exists() for f in only)
    for bad, why in ((max(manifests(ck)), "no savepoint"), (first, "has no savepoint")):
        r = run_clink("savepoint", "--dispose", f"{ck}:{bad}", ok=False)
        assert r.code == 1 and why in r.err
    assert run_clink("savepoint", "--dispose", ck, ok=False).code == 2
    # Damage has a name and a file.
    victim = ck / sorted(f["path"] for m in manifests(ck).values() for f in m["files"])[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    r = run_clink("checkpoint-verify", ck, "--json", ok=False)
    assert r.code == 1 and any(not x["whole"] and x["path"] == str(victim.relative_to(ck)) for x in r.rows)
    victim.unlink()
    assert run_clink("checkpoint-verify", ck, ok=False).code == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run_clink("checkpoint-verify", empty, ok=False).code == 2
    assert run_clink("checkpoint-verify", ck, "--id", 999999, ok=False).code == 2


def test_a_start_and_a_stop_say_from_where_it_goes_on(tmp_path):
    ck = tmp_path / "ck"
    run = Run(tmp_path, "--checkpoint-dir", ck, "--checkpoint-interval-ms", 3600000)
    run.end()
    assert "clink: job: stopped before its first checkpoint; started again it begins anew\n" in run.said()
    assert "goes on from" not in run.said()
    run = Run(tmp_path, "--checkpoint-dir", ck)
    run.until_read()
    run.end()
    assert "goes on from checkpoint" not in run.said()
    assert "clink: job: stopped; started again it goes on from its last checkpoint\n" in run.said()
    newest = max(manifests(ck))
    run = Run(tmp_path, "--checkpoint-dir", ck, "--checkpoint-interval-ms", 3600000)
    run.until(lambda: f"clink: job: goes on from checkpoint {newest}\n" in run.said())
    run.end()
    assert f"clink: job: stopped; started again it goes on from checkpoint {newest} again\n" in run.said()
    said = run_clink("run", tmp_path / "job.sql", "--checkpoint-dir", ck, "--name", "other", ok=False).err
    assert "belongs to job 'job', this is 'other': --name 'job' goes on with that job" in said
