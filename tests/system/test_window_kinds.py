"""Windows that overlap are kept by window or by slice, which version 1 of their state does not tell apart: the stored graph does. Every kind of
savepoint against a script of every kind: it goes on to what an undisturbed run gives, or it is refused with a sentence, by all who look.

tests/golden/window_kinds/NAME, as in test_golden_savepoints.py. `python3 tests/system/test_window_kinds.py CLINK DIR SCRIPT` takes one."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import TOP, read_rows, run_clink

GOLDEN = os.path.join(TOP, "tests", "golden", "window_kinds")
ROWS = 400
DDL = """CREATE TABLE src (id BIGINT, k VARCHAR, v BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts)
  WITH (connector='file', format='json', path='in.ndjson'{options});
CREATE TABLE res (k VARCHAR, s TIMESTAMP(6), e TIMESTAMP(6), n BIGINT, m BIGINT, u BIGINT{key}) WITH (connector='file', format='json', path='out/res'{mode});
CREATE TABLE rows (id BIGINT) WITH (connector='file', format='json', path='out/rows');
INSERT INTO res SELECT k, window_start, window_end, SUM(v), MIN(v), {last} FROM src GROUP BY k, HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND);
INSERT INTO rows SELECT id FROM src;
"""
# what stands last, and options of the table
SCRIPTS = {"plain": ("CAST(NULL AS BIGINT)", ""), "sets": ("COUNT(DISTINCT v)", ""), "late": ("CAST(NULL AS BIGINT)", ", allowed_lateness_ms=2000")}


def script(name, rate=""):
    last, options = SCRIPTS[name]
    changes = "lateness" in options
    return DDL.format(last=last, options=options + rate, key=", PRIMARY KEY (k, s, e) NOT ENFORCED" if changes else "",
                      mode=", mode='upsert'" if changes else "")


def make(where, name, rate=""):
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, "job.sql"), "w") as f:
        f.write(script(name, rate))
    with open(os.path.join(where, "in.ndjson"), "w") as f:
        for i in range(ROWS):
            f.write(json.dumps({"id": i, "k": "k%d" % (i * i % 5), "v": i * 37 % 11 + 1, "ts": "2024-03-01 10:%02d:%02d.%06d" % (i // 240, i // 4 % 60, i % 4 * 250000)}) + "\n")


def stop_half_way(where, clink):
    p = subprocess.Popen([clink, "run", "job.sql", "-p", "1", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "100"], cwd=where,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and len(read_rows(os.path.join(where, "out", "rows"))) < ROWS // 3:
        time.sleep(0.02)
    p.send_signal(signal.SIGUSR2)
    assert p.wait(60) == 0


def table(where, name):
    return sorted(json.dumps(r, sort_keys=True) for r in read_rows(os.path.join(where, "out", name)))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    done = {}

    def of(name):
        if name not in done:
            done[name] = str(tmp_path_factory.mktemp("fresh") / "job")
            make(done[name], name)
            run_clink("run", "job.sql", cwd=done[name])
        return done[name]

    return of


FROM_NOW, BACKFILL, ALLOW = ("--added-state", "from_now"), ("--added-state", "backfill"), ("--allow-semantic-change",)
# savepoint, its version, script, flags, verdict, what is said
PAIRS = [
    ("plain_1", 1, "plain", (), "reuse", ""),
    ("plain_1", 1, "sets", (), "refused", "it is stored by slice, this job keeps it by window and slice"),
    ("plain_1", 1, "sets", FROM_NOW, "refused", "it is stored by slice, this job keeps it by window and slice"),
    ("plain_1", 1, "sets", BACKFILL, "backfill", "it is stored by slice"),
    ("plain_1", 1, "late", ALLOW, "rebuild", "it is stored by slice, this job keeps it by window and slice"),
    ("sets_1", 1, "plain", (), "refused", "it is stored by window, this job keeps it by slice"),
    ("sets_1", 1, "plain", BACKFILL, "backfill", "it is stored by window, this job keeps it by slice; drops its state \"distinct:v\": computed by reading its input again"),
    ("sets_1", 1, "sets", (), "reuse", ""),
    ("sets_1", 1, "late", ALLOW, "migrate", "drops 'count(DISTINCT v)'"),
    ("late_1", 1, "plain", ALLOW, "rebuild", "it is stored by window, this job keeps it by slice"),
    ("late_1", 1, "late", (), "reuse", ""),
    ("sets_2", 2, "plain", (), "refused", "it is stored by window and slice, this job keeps it by slice"),
    ("sets_2", 2, "plain", BACKFILL, "refused", "it is stored by window and slice, this job keeps it by slice"),
    ("sets_2", 2, "late", ALLOW, "migrate", "drops 'count(DISTINCT v)'"),
    ("sets_2", 2, "sets", (), "reuse", ""),
]
SAVED = {"plain_1": "plain", "sets_1": "sets", "sets_2": "sets", "late_1": "late"}


@pytest.mark.parametrize("saved,version,name,flags,verdict,why", PAIRS, ids=lambda v: " ".join(v) or "-" if isinstance(v, tuple) else None)
def test_a_savepoint_and_a_script(saved, version, name, flags, verdict, why, undisturbed, tmp_path):
    where = str(tmp_path / "job")
    shutil.copytree(os.path.join(GOLDEN, saved), where)
    assert 0 < len(table(where, "rows")) < ROWS and table(where, "res")  # it was half way
    make(where, name)
    r = run_clink("check-savepoint", "ck", "--expected", "job.sql", cwd=where, ok=False)
    assert f'type "window_agg", v{version}\n' in r.out, r.out
    if not flags:
        assert r.code == (3 if verdict == "refused" else 0) and why in r.out, r.out + r.err
    r = run_clink("explain", "job.sql", "--checkpoint-dir", "ck", "--restore", "latest", *flags, cwd=where, ok=False)
    line = next(line for line in r.out.splitlines() if "window_agg" in line)
    assert line.split()[0] in (verdict, "migrate" if verdict == "reuse" else verdict) and why in line, r.out + r.err
    assert r.code == (3 if verdict == "refused" else 4 if flags == ALLOW else 0), r.out + r.err
    r = run_clink("run", "job.sql", "-p", 1, "--checkpoint-dir", "ck", *flags, cwd=where, ok=False)
    if verdict == "refused":
        assert r.code == 1 and why in r.err, r.err
        return
    assert r.code == 0, r.err
    if verdict == "rebuild":
        return  # what was asked for: it begins anew
    got, want = table(where, "res"), table(undisturbed(name), "res")
    if name != SAVED[saved]:  # what was said before stays as it was said, by the other script
        want, got = [[json.dumps({c: v for c, v in json.loads(line).items() if c != "u"}) for line in t] for t in (want, got)]
    assert got == want and table(where, "rows") == table(undisturbed(name), "rows")


if __name__ == "__main__":
    make(sys.argv[2], sys.argv[3], ", rate_limit=400")
    stop_half_way(sys.argv[2], sys.argv[1])
