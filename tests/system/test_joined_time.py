"""A stream joined with what ends keeps its event time: windows, ranks and OVER behind the join are those of a Python model, nothing is
late, and it goes on after kill -9 at another parallelism. Also where the side that ends is longer, and has a time of its own."""
import collections
import datetime
import random
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows, write_ndjson

BASE = datetime.datetime(2026, 1, 1)
MINUTES, ROWS, LAG = 40, 3000, 30


def stamp(seconds):
    return (BASE + datetime.timedelta(seconds=seconds)).isoformat()


def events(n=ROWS, seed=1):
    rnd = random.Random(seed)
    rows = [{"i": i, "k": f"k{rnd.randrange(12)}", "v": rnd.randrange(100), "s": i * MINUTES * 60 // n} for i in range(n)]
    rows.sort(key=lambda r: r["s"] + rnd.randrange(LAG))  # shuffled inside the bound
    return rows


def dims(n=4000):
    """k0 to k8 once, k9 twice, k10 and k11 never; the others are nobody's."""
    rows = [{"k": f"k{i}", "name": f"name {i % 4}"} for i in range(9)] + [{"k": "k9", "name": "x"}, {"k": "k9", "name": "y"}]
    rows += [{"k": f"other {i}", "name": "nobody"} for i in range(n)]
    random.Random(5).shuffle(rows)
    return [dict(r, ts=stamp(86400 + i)) for i, r in enumerate(rows)]


DDL = ("CREATE TABLE e (i BIGINT, k VARCHAR, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '%d' SECOND)"
       " WITH (connector='file', format='json', path='e.ndjson'{});\n" % LAG +
       "CREATE TABLE d (k VARCHAR, name VARCHAR{}) WITH (connector='file', format='json', path='d.ndjson');\n")
TIMED = ", ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
WINDOW = "SELECT name, window_start AS w, COUNT(*) AS n, SUM(v) AS v FROM TABLE(TUMBLE(TABLE (SELECT e.ts, e.v, {name} AS name FROM {join}),"
WINDOW += " DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY name, window_start, window_end"
JOINS = {
    "inner": ("d.name", "e JOIN d ON e.k = d.k", lambda names: names),
    "left": ("d.name", "e LEFT JOIN d ON e.k = d.k", lambda names: names or [None]),
    "residual": ("d.name", "e LEFT JOIN d ON e.k = d.k AND d.name <> 'x'", lambda names: [n for n in names if n != "x"] or [None]),
    "semi": ("e.k", "e WHERE k IN (SELECT k FROM d)", None),
    "anti": ("e.k", "e WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.k = e.k)", None),
    "last": ("d.name", "d JOIN e ON e.k = d.k", lambda names: names),
    "right": ("d.name", "d RIGHT JOIN e ON e.k = d.k", lambda names: names or [None]),
}


def model(kind, rows, until=None):
    names = collections.defaultdict(list)
    for r in dims(0):
        names[r["k"]].append(r["name"])
    out = collections.defaultdict(lambda: [0, 0])
    for r in rows:
        found = names.get(r["k"], [])
        if kind == "semi":
            found = [r["k"]] if found else []
        elif kind == "anti":
            found = [] if found else [r["k"]]
        else:
            found = JOINS[kind][2](found)
        for n in found:
            g = out[n, stamp(r["s"] // 60 * 60)]
            g[0] += 1
            g[1] += r["v"]
    return {(n, w, c, v) for (n, w), (c, v) in out.items() if until is None or w < until}


def as_set(rows):
    return {(r["name"], r["w"], r["n"], r["v"]) for r in rows}


def write_inputs(tmp_path, rows):
    write_ndjson(tmp_path / "e.ndjson", [{"i": r["i"], "k": r["k"], "v": r["v"], "ts": stamp(r["s"])} for r in rows])
    write_ndjson(tmp_path / "d.ndjson", dims())


def query(kind):
    name, join, _ = JOINS[kind]
    return WINDOW.format(name=name, join=join)


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("p,batch,timed", [(1, 1, ""), (2, 7, TIMED), (4, 0, TIMED)])
def test_windows_behind_a_join_with_what_ends(clink, tmp_path, kind, p, batch, timed):
    rows = events()
    write_inputs(tmp_path, rows)
    settings = ["--set", f"batch_rows={batch}"] if batch else []
    # e.ts is the only time where d has none: behind "last" d is read first; where both have one, the left has it
    if kind == "last" and timed:
        timed = ", ts TIMESTAMP(3)"
    out = clink("run", "-p", p, *settings, "-e", DDL.format("", timed) + query(kind))
    assert len(out.rows) == len(as_set(out.rows)) and as_set(out.rows) == model(kind, rows)
    assert "late" not in out.err


@pytest.mark.parametrize("kind", ["inner", "left", "anti", "right"])
def test_after_kills(tmp_path, kind):
    rows = events()
    write_inputs(tmp_path, [])
    (tmp_path / "job.sql").write_text(DDL.format(", follow=TRUE", TIMED if kind == "left" else "") +
                                      "CREATE TABLE out (name VARCHAR, w TIMESTAMP(3), n BIGINT, v BIGINT) WITH (connector='file',"
                                      f" format='json', path='out');\nINSERT INTO out {query(kind)};\n")
    lives = [1, 2, 4, 1]
    for life, p in enumerate(lives):
        job = subprocess.Popen([CLINK, "run", "-p", str(p), "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50", "job.sql"],
                               cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        upto = len(rows) * (life + 1) // len(lives)
        with open(tmp_path / "e.ndjson", "a") as f:
            for r in rows[len(rows) * life // len(lives):upto]:
                f.write('{"i":%d,"k":"%s","v":%d,"ts":"%s"}\n' % (r["i"], r["k"], r["v"], stamp(r["s"])))
        over = stamp((max(r["s"] for r in rows[:upto]) - LAG) // 60 * 60)  # windows before it are over
        wanted, end = model(kind, rows[:upto], over), time.monotonic() + 120
        while not wanted <= as_set(read_rows(tmp_path / "out")):
            assert job.poll() is None, job.stderr.read().decode()
            assert time.monotonic() < end, wanted - as_set(read_rows(tmp_path / "out"))
            time.sleep(0.02)
        job.send_signal(signal.SIGKILL)
        job.wait()
    got = read_rows(tmp_path / "out")
    assert as_set(got) == wanted and len(got) == len(wanted)


def test_ranks_and_over_behind_it(clink, tmp_path):
    rows = events()
    write_inputs(tmp_path, rows)
    joined = "(SELECT e.i, e.ts, e.v, d.name FROM e JOIN d ON e.k = d.k WHERE d.name <> 'y')"
    got = clink("run", "-p", 2, "--set", "batch_rows=7", "-e", DDL.format("", "") +
                "SELECT i, COUNT(*) OVER (PARTITION BY name ORDER BY ts RANGE BETWEEN INTERVAL '2' MINUTE PRECEDING AND CURRENT ROW) AS n"
                f" FROM {joined}").rows
    names = {r["k"]: r["name"] for r in dims(0) if r["name"] != "y"}
    mine = [r for r in rows if r["k"] in names]
    wanted = {r["i"]: sum(names[o["k"]] == names[r["k"]] and r["s"] - 120 <= o["s"] <= r["s"] for o in mine) for r in mine}
    assert {r["i"]: r["n"] for r in got} == wanted and len(got) == len(wanted)


def test_changes_of_both_sides_still_end_time(clink, tmp_path):
    write_inputs(tmp_path, [])
    out = clink("run", "-e", DDL.format(", follow=TRUE", "").replace("path='d.ndjson'", "path='d.ndjson', follow=TRUE") + query("inner"), ok=False)
    assert out.code == 1 and "not event time here: it ends where rows change, are joined without it" in out.err
