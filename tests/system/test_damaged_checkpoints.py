"""A checkpoint whose files are damaged or gone: named and refused where a sink has committed it, passed over for the one before where none
has. It never starts with less state than it should have."""
import json
import signal

import pytest
from conftest import run_clink
from kill_matrix import Matrix, cell_of
from test_savepoints import Run, manifests

KILL_BEFORE_COMMIT, KILL_AFTER_COMMIT = "checkpoint.after_manifest:3:kill", "commit.after_committed:3:kill"


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.fixture
def stopped(tmp_path):
    """Killed with two checkpoints at least; the newest's manifest and a file only it names."""

    def run(fault, p=2):
        m = Matrix(str(tmp_path), 1)
        m.retained = 3
        for _ in range(10):  # while one is marked committed, the next may be complete already
            job, _ = m.stopped(cell_of(f"text {fault} aligned {p} {p}"))
            assert job, f"{fault} was never reached"
            ck = tmp_path / f"job{m.n}" / "ck"
            ids = sorted(int(x.name[11:-5]) for x in ck.glob("checkpoint-*.json"))
            if (ck / f"checkpoint-{ids[-1]}.committed").exists() == (fault == KILL_AFTER_COMMIT):
                break
        else:
            pytest.fail("the newest was never the one that was wanted")
        assert len(ids) >= 2
        named = {f["path"] for i in ids[:-1] for f in json.loads((ck / f"checkpoint-{i}.json").read_text())["files"]}
        newest = json.loads((ck / f"checkpoint-{ids[-1]}.json").read_text())
        own = [f["path"] for f in newest["files"] if f["path"] not in named]
        return job, ck / f"checkpoint-{ids[-1]}.json", ck / own[0]

    return run


@pytest.mark.parametrize("what", ["flip", "cut", "delete", "manifest"])
def test_goes_back_before_anything_was_committed(stopped, what):
    job, manifest, file = stopped(KILL_BEFORE_COMMIT)
    target = manifest if what == "manifest" else file
    {"flip": flip, "cut": cut, "delete": lambda p: p.unlink(), "manifest": flip}[what](target)
    r = job.start(3)
    assert r.code == 0, r.err
    assert target.name in r.err and "going back to the one before" in r.err
    job.check()
    assert not manifest.exists() and manifest.with_suffix(".abandoned").exists()
    job.finish(1)


@pytest.mark.parametrize("what", ["flip", "cut", "delete", "manifest"])
def test_is_refused_by_name_once_it_was_committed(stopped, what):
    job, manifest, file = stopped(KILL_AFTER_COMMIT)
    target = manifest if what == "manifest" else file
    good = target.read_bytes()
    {"flip": flip, "cut": cut, "delete": lambda p: p.unlink(), "manifest": flip}[what](target)
    for _ in range(2):
        r = job.start(3)
        assert r.code == 1 and target.name in r.err and "going back" not in r.err, r.err
    target.write_bytes(good)
    job.finish(3)


@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_manifest_that_is_gone_is_missed_by_its_marker(stopped, all_of_them):
    job, manifest, _ = stopped(KILL_AFTER_COMMIT)
    good = {p: p.read_bytes() for p in (manifest.parent.glob("checkpoint-*.json") if all_of_them else [manifest])}
    for p in good:
        p.unlink()
    for _ in range(2):
        r = job.start(3)
        assert r.code == 1 and f"{manifest.name} is gone" in r.err, r.err
    for p, text in good.items():
        p.write_bytes(text)
    job.finish(3)


@pytest.mark.parametrize("flag", ["--fresh", "--allow-duplicates"])
def test_a_job_whose_state_is_gone_goes_on_when_told_to(tmp_path, flag):
    """And not again each time: the next start needs no flag."""
    (tmp_path / "in.ndjson").write_text("".join('{"k":"a%d"}\n' % (i % 3) for i in range(300)))
    (tmp_path / "job.sql").write_text("""CREATE TABLE i (k VARCHAR) WITH (connector = 'file', path = 'in.ndjson', format = 'json');
CREATE TABLE o (k VARCHAR, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector = 'file', path = 'out', format = 'csv', mode = 'upsert');
INSERT INTO o SELECT k, count(*) FROM i GROUP BY k;
""")
    start = ["run", "job.sql", "--checkpoint-dir", "ck"]
    assert run_clink(*start, cwd=tmp_path).code == 0
    for p in (tmp_path / "ck").glob("checkpoint-*.json"):
        p.unlink()
    r = run_clink(*start, cwd=tmp_path, ok=False)
    assert r.code == 1 and "is gone" in r.err, r.err
    assert run_clink(*start, flag, cwd=tmp_path).code == 0
    r = run_clink(*start, cwd=tmp_path)
    assert r.code == 0 and "has finished before" in r.err, r.err
    assert sorted((tmp_path / "out" / "rows-0.csv").read_text().split()) == ["a0,100", "a1,100", "a2,100"]


def is_newest_whole(ck, above):
    newest, m = max(manifests(ck).items())
    return newest > above and all((ck / f["path"]).exists() for f in m["files"])


@pytest.mark.parametrize("backend", ["memory", "changelog+memory", "changelog+rocksdb"])
def test_files_taken_away_under_a_running_job(tmp_path, backend):
    """A checkpoint that was to stand on what is gone is given up; the one behind it holds all rows and is whole."""
    ck = tmp_path / "ck"
    flags = ["--checkpoint-dir", ck, "--checkpoint-retained", 1, "--state-backend",
             backend + (f":{tmp_path / 'work'}" if "rocksdb" in backend else ""), "-p", 2]
    run = Run(tmp_path, *flags)
    try:
        run.until_read()
        run.until_counted()
        for _ in range(2):
            gone = max(manifests(ck))
            for p in ck.glob("*/*/*.snap"):
                p.unlink(missing_ok=True)
            run.append(100)
            run.until(lambda: is_newest_whole(ck, gone + 1))
            run.until_read()
            run.until_counted()
        run.end(signal.SIGKILL, -signal.SIGKILL)
    finally:
        run.proc.kill()
    assert "names a file that cannot be seen" in run.said()
    assert run_clink("checkpoint-verify", ck, "--id", max(manifests(ck))).code == 0  # older ones may still be there, without their files
    again = Run(tmp_path, *flags)
    try:
        again.append(50)
        again.until_read()
        again.until_counted()
        again.end()
    finally:
        again.proc.kill()
    again.check()
