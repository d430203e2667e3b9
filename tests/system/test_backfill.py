"""--added-state backfill: what a changed script computes and its checkpoint has not is computed by reading the input again up to that
checkpoint, before the job starts. The answer is that of an undisturbed run of the new script over all rows; where reading again would not
give what was there, it is refused in a sentence and nothing is touched."""
import json
import os
import signal

import pytest

from conftest import CLINK, read_rows, run_clink
from test_evolve_columns import OLD, TABLE, Tables, old_row, script, totals

BACKFILL = ("--added-state", "backfill")


def files(job):
    return sorted(os.path.relpath(os.path.join(d, f), job.ck) for d, _, fs in os.walk(job.ck) for f in fs)


def check(job, want, fields):
    got = {r["key"]: tuple(r.get(f) for f in fields) for r in job.table("1")}
    assert got == want
    assert sorted(r["v"] for r in job.copied()) == list(range(job.rows))  # nothing twice, nothing missing


SINK = "key VARCHAR, s BIGINT, c BIGINT, d BIGINT, m BIGINT"
WAS = script(OLD, SINK, "SELECT k, SUM(v), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT) FROM src WHERE v % 3 <> 1 GROUP BY k")
NOW = script(OLD, SINK, "SELECT k, SUM(v), COUNT(*), COUNT(DISTINCT w), MAX(w) FROM src WHERE v % 3 <> 1 GROUP BY k")


def answer(n):
    rows = [old_row(i) for i in range(n) if i % 3 != 1]
    return totals(rows, "k", lambda g: (sum(r["v"] for r in g), len(g), len({r["w"] for r in g}), max(r["w"] for r in g)))


@pytest.fixture
def job(tmp_path):
    j = Tables(tmp_path, old_row)
    code, err = j.life(WAS)
    assert code == 0, err
    return j


@pytest.mark.parametrize("p", [1, 3])
def test_aggregates_that_come(job, p):
    code, lines, err = job.explain(NOW)
    assert code == 3 and any(l.startswith("refused") for l in lines), lines
    before = files(job)
    code, lines, err = job.explain(NOW, *BACKFILL)
    assert code == 0 and any(l.startswith("backfill group_agg(k)<-src: 'count(*)' is not in the checkpoint") for l in lines), (lines, err)
    assert files(job) == before
    job.append(103)
    code, err = job.life(NOW, *BACKFILL, "-p", p)
    assert code == 0 and "reading the input again up to it" in err, err
    check(job, answer(job.rows), ("s", "c", "d", "m"))
    assert not os.path.exists(job.ck / ".backfill")
    job.append(10)
    code, err = job.life(NOW)  # it is state like any other from then on
    assert code == 0 and "again" not in err, err
    check(job, answer(job.rows), ("s", "c", "d", "m"))


@pytest.mark.parametrize("point", ["backfill.before", "checkpoint.before_manifest", "backfill.after", "restore.before_load", "restore.after_load"])
def test_killed_on_the_way(job, point):
    """The next start does it again, whole."""
    job.append(70)
    job.script(NOW)
    kept = set(files(job))
    r = run_clink("run", job.where / "job.sql", "--checkpoint-dir", job.ck, *BACKFILL, env={"CLINK_FAULT": point + ":1:kill"}, ok=False)
    assert r.code == -signal.SIGKILL, (r.code, r.err)
    assert kept <= set(files(job)) and len(job.copied()) == 200  # the checkpoint is as it was
    code, lines, err = job.explain(NOW, *BACKFILL)
    assert code == 0, (lines, err)
    code, err = job.life(NOW, *BACKFILL)
    assert code == 0, err
    check(job, answer(job.rows), ("s", "c", "d", "m"))
    assert not os.path.exists(job.ck / ".backfill")


def test_what_stands_on_it_is_computed_again_too(tmp_path):
    """A second aggregation holds what the first one said; over input that takes rows back."""
    inner = "SELECT x, SUM(s) AS s%s FROM (SELECT k AS x, v %% 4 AS y, SUM(v) AS s%s FROM src GROUP BY k, v %% 4) GROUP BY x"
    sink = "key VARCHAR, s BIGINT, m BIGINT"
    was = script(OLD, sink, "SELECT x, s, CAST(NULL AS BIGINT) FROM (%s)" % (inner % ("", "")))
    now = script(OLD, sink, inner % (", MAX(n) AS m", ", COUNT(*) AS n"))
    job = Tables(tmp_path, old_row)
    assert job.life(was)[0] == 0
    code, lines, err = job.explain(now, *BACKFILL)
    assert code == 0 and sum(l.startswith("backfill") for l in lines) == 2, (lines, err)
    job.append(61)
    code, err = job.life(now, *BACKFILL, "-p", 2)
    assert code == 0, err
    rows = [old_row(i) for i in range(job.rows)]
    want = totals(rows, "k", lambda g: (sum(r["v"] for r in g), max(len([r for r in g if r["v"] % 4 == y]) for y in {r["v"] % 4 for r in g})))
    check(job, want, ("s", "m"))


def test_a_column_that_pruning_had_kept_out_of_whole_rows(tmp_path):
    """A join keeps rows of both sides; w was in none of them."""
    def joined(column):
        return (TABLE.replace("{cols}", OLD) + "CREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');\n"
                "CREATE TABLE names (k VARCHAR, name VARCHAR) WITH (connector='file', format='json', path='{inp}.names', follow='true');\n"
                "CREATE TABLE res (v BIGINT, x BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{out}1');\n"
                "INSERT INTO res SELECT v, %s, name FROM src JOIN names ON src.k = names.k;\nINSERT INTO copy SELECT v FROM src;\n" % column)
    names = tmp_path / "in.ndjson.names"
    names.write_text("".join(json.dumps({"k": "k%d" % i, "name": "n%d" % i}) + "\n" for i in range(4)))  # none for k4 yet
    job = Tables(tmp_path, old_row)
    assert job.life(joined("CAST(NULL AS BIGINT)"))[0] == 0
    assert job.explain(joined("w"))[0] == 3
    job.append(100)
    with open(names, "a") as f:
        f.write(json.dumps({"k": "k4", "name": "late"}) + "\n")  # meets rows of before and after
    code, err = job.life(joined("w"), *BACKFILL)
    assert code == 0, err
    got = sorted((r["v"], r.get("x"), r["name"]) for r in job.table("1"))
    want = sorted((i, None if i < 200 and i % 5 != 4 else i * 7 % 13, "late" if i % 5 == 4 else "n%d" % (i % 5)) for i in range(job.rows))
    assert got == want  # what was said before stays as it was said


def windows(aggregate, delay):
    return ("CREATE TABLE src (k VARCHAR, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '%d' SECOND) WITH (connector='file', format='json', "
            "path='{inp}', follow='true');\nCREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');\n"
            "CREATE TABLE res (e TIMESTAMP(3), k VARCHAR, s BIGINT, c BIGINT) WITH (connector='file', format='json', path='{out}1');\n"
            "INSERT INTO res SELECT window_end, k, SUM(v), %s FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
            "GROUP BY k, window_start, window_end;\nINSERT INTO copy SELECT v FROM src;\n" % (delay, aggregate))


def timed_row(i):
    s = i + (7 if i % 3 == 0 else 0)  # up to 7 seconds out of order
    return {"k": "k%d" % (i % 2), "v": i, "ts": "2024-03-01 %02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60)}


def test_windows_that_are_open(tmp_path):
    job = Tables(tmp_path, timed_row)
    code, err = job.life(windows("CAST(NULL AS BIGINT)", 10))
    assert code == 0, err
    assert {r["e"][11:16] for r in job.table("1")} == {"00:01", "00:02", "00:03"}
    job.append(150)
    code, err = job.life(windows("COUNT(*)", 10), *BACKFILL)
    assert code == 0, err
    got = {(r["e"][11:16], r["k"]): (r["s"], r.get("c")) for r in job.table("1")}
    rows = [timed_row(i) for i in range(job.rows)]
    want = {}
    for minute in range(5):
        for k in ("k0", "k1"):
            g = [r for r in rows if r["ts"][14:16] == "%02d" % minute and r["k"] == k]
            want["00:%02d" % (minute + 1), k] = (sum(r["v"] for r in g), len(g) if minute >= 3 else None)
    assert got == want


def test_late_rows_are_not_guessed(tmp_path):
    """Which rows were late depends on how far the watermark was when they came: nobody knows it any more."""
    job = Tables(tmp_path, timed_row)
    assert job.life(windows("CAST(NULL AS BIGINT)", 0))[0] == 0
    before = files(job)
    code, err = job.life(windows("COUNT(*)", 0), *BACKFILL)
    assert code == 1 and "cannot be computed again" in err and "come late" in err and "from_now" in err, err
    left = [f for f in files(job) if not f.startswith(".backfill")]
    assert left == before


def says(r, why):
    return [line for line in (r.out + r.err).splitlines() if why in line]


def test_windows_over_several_splits(tmp_path):
    """How the splits were read beside each other nobody knows: who only looks is told so, as the start is."""
    job = Tables(tmp_path, timed_row)
    (tmp_path / "in.ndjson-2").write_text(json.dumps(timed_row(0)) + "\n")
    was, now = (windows(x, 10).replace("path='{inp}'", "path='{inp}*'") for x in ("CAST(NULL AS BIGINT)", "COUNT(*)"))
    assert job.life(was)[0] == 0
    before = files(job)
    code, err = job.life(now, *BACKFILL)
    why = "goes by event time, and the 2 splits of its input were read beside each other: what was late depends on how"
    assert code == 1 and why in err and "cannot be computed again" in err, err
    assert files(job) == before
    code, lines, err = job.explain(now, *BACKFILL)
    assert code == 3 and any(l.startswith("refused") and why in l for l in lines), (lines, err)
    r = run_clink("check-savepoint", job.ck, "--expected", job.script(now), *BACKFILL, ok=False)
    assert r.code == 3 and says(r, why), r.out + r.err
    code, lines, err = job.explain(now, *BACKFILL, "--allow-semantic-change")
    assert code == 4 and any(l.startswith("rebuild") and why in l for l in lines), (lines, err)
    code, err = job.life(now, *BACKFILL, "--allow-semantic-change")  # it begins empty then
    assert code == 0, err


def test_what_was_read_once(tmp_path):
    """Standard input: that its rows are gone is found when it is looked at, not when they are wanted."""
    import subprocess
    import time
    def text(more):
        return (script(OLD, "key VARCHAR, s BIGINT, c BIGINT", "SELECT k, SUM(v), %s FROM src GROUP BY k" % more)
                .replace("path='{inp}', follow='true'", "path='-'").replace("{out}", "out"))
    path = tmp_path / "job.sql"
    path.write_text(text("CAST(NULL AS BIGINT)"))
    p = subprocess.Popen([CLINK, "run", path, "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20"], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdin.write(b"".join(json.dumps(old_row(i)).encode() + b"\n" for i in range(50)))
    p.stdin.flush()
    deadline = time.monotonic() + 120
    while p.poll() is None and not list(tmp_path.glob("ck/*.committed")) and time.monotonic() < deadline:
        time.sleep(0.01)
    p.send_signal(signal.SIGUSR2)
    assert p.wait(120) == 0
    path.write_text(text("COUNT(*)"))
    why = "cannot be read again: standard input is read once"
    r = run_clink("explain", path, "--checkpoint-dir", "ck", "--restore", "latest", *BACKFILL, cwd=tmp_path, ok=False)
    assert r.code == 3 and says(r, why), r.out + r.err
    r = run_clink("run", path, "--checkpoint-dir", "ck", *BACKFILL, cwd=tmp_path, ok=False)
    assert r.code == 1 and says(r, why), r.err


@pytest.mark.parametrize("connector,column", [("nexmark", "price"), ("datagen", "v")])
def test_sources_that_make_their_rows(tmp_path, connector, column):
    """By number, a part of them before the stop, the rest behind it: as in one run."""
    ddl = {"nexmark": "CREATE TABLE src (auction BIGINT, price BIGINT) WITH (connector='nexmark', 'table'='bid', events='30000', rate_limit='%s');\n",
           "datagen": "CREATE TABLE src (k BIGINT, v BIGINT) WITH (connector='datagen', rows='30000', rate_limit='%s');\n"}[connector]
    key = "auction % 11" if connector == "nexmark" else "k % 11"
    def text(more, rate, out):
        return (ddl % rate + "CREATE TABLE res (k BIGINT, s BIGINT, c BIGINT, m BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', "
                "path='%s', mode='upsert');\nINSERT INTO res SELECT %s, SUM(%s), %s FROM src GROUP BY %s;\n" % (out, key, column, more, key))
    none, more = "CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)", "COUNT(*), MIN(%s)" % column
    import subprocess
    import time
    (tmp_path / "job.sql").write_text(text(none, "20000", "out"))
    p = subprocess.Popen([CLINK, "run", "job.sql", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50", "-p", "2"], cwd=tmp_path,
                         stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while p.poll() is None and not list(tmp_path.glob("ck/*.committed")) and time.monotonic() < deadline:
        time.sleep(0.01)
    p.send_signal(signal.SIGUSR2)
    assert p.wait(120) == 0
    r = run_clink("explain", "job.sql", "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path, ok=False)
    assert r.code == 0, r.err
    (tmp_path / "job.sql").write_text(text(more, "1000000", "out"))
    r = run_clink("run", "job.sql", "--checkpoint-dir", "ck", *BACKFILL, "-p", "3", cwd=tmp_path)
    assert "reading the input again" in r.err, r.err
    run_clink("run", "-e", text(more, "1000000", "alone"), cwd=tmp_path)
    key = lambda r: r["k"]
    assert sorted(read_rows(tmp_path / "out"), key=key) == sorted(read_rows(tmp_path / "alone"), key=key)


GROUPED = "SELECT k, SUM(v), %s FROM %s GROUP BY k"
TWO = "key VARCHAR, s BIGINT, c BIGINT"


@pytest.mark.parametrize("make,why", [
    (lambda x: script(OLD, TWO, GROUPED % (x, "(SELECT k, v FROM src LIMIT 1000)")), "limit"),
    (lambda x: script(OLD, TWO, GROUPED % (x, "src")).replace("follow='true'", "follow='true', state_ttl='1h'"), "state_ttl"),
    (lambda x: "SET state_ttl = '1h';\n" + script(OLD, TWO, GROUPED % (x, "src")), "keeps its state for a while only (state_ttl)"),
    (lambda x: script(OLD, TWO, GROUPED % (x, "(SELECT k, CASE WHEN random() < 2 THEN v END AS v FROM src)")), "asks the clock or for random values"),
], ids=["limit", "state_ttl of a table", "state_ttl", "random"])
def test_what_cannot_be_computed_again_is_refused(tmp_path, make, why):
    job = Tables(tmp_path, old_row)
    code, err = job.life(make("CAST(NULL AS BIGINT)"))
    if code != 0 and "state_ttl" in why:
        pytest.skip(err)
    assert code == 0, err
    before = files(job)
    code, lines, err = job.explain(make("COUNT(*)"), *BACKFILL)
    assert code == 3 and any(l.startswith("refused") and "cannot be computed again" in l and why in l for l in lines), (lines, err)
    code, err = job.life(make("COUNT(*)"), *BACKFILL)
    assert code == 1 and "cannot be computed again" in err, err
    assert files(job) == before


def top(column):
    return (TABLE.replace("{cols}", OLD) + "CREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');\n"
            "CREATE TABLE res (v BIGINT, k VARCHAR, w BIGINT, PRIMARY KEY (v) NOT ENFORCED) WITH (connector='file', format='json', path='{out}1', mode='upsert');\n"
            "INSERT INTO res SELECT v, k, %s FROM (SELECT v, k, w, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v %% 50 DESC, v) AS n FROM src) WHERE n <= 4;\n"
            "INSERT INTO copy SELECT v FROM src;\n" % column)


def test_a_column_of_a_top_n(tmp_path):
    """Its rows are kept in the order of all their columns: one more is another order, and none of the stored rows has it."""
    job = Tables(tmp_path, old_row)
    assert job.life(top("CAST(NULL AS BIGINT)"))[0] == 0
    code, lines, err = job.explain(top("w"))
    assert code == 3 and any(l.startswith("refused top_n" ) or "top_n" in l and "refused" in l for l in lines), (lines, err)
    code, lines, err = job.explain(top("w"), *BACKFILL)
    assert code == 0 and any(l.startswith("backfill") and "top_n" in l for l in lines), (lines, err)
    job.append(300)
    code, err = job.life(top("w"), *BACKFILL, "-p", 2)
    assert code == 0, err
    best = {}
    for r in map(old_row, range(job.rows)):
        best.setdefault(r["k"], []).append(r)
    want = {r["v"] for g in best.values() for r in sorted(g, key=lambda r: (-(r["v"] % 50), r["v"]))[:4]}
    first = {r["v"] for g in best.values() for r in sorted((r for r in g if r["v"] < 200), key=lambda r: (-(r["v"] % 50), r["v"]))[:4]}
    got = {r["v"]: r.get("w") for r in job.table("1")}
    assert got.keys() == want
    assert all(w == v * 7 % 13 or v in first and w is None for v, w in got.items()), got  # what was said before stays as it was said
