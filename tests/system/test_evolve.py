"""A changed script goes on from the checkpoint of the one before: what is reused, migrated, new, refused, given up, and that the
result is that of the new script over all rows where it says so."""
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import CLINK, read_rows, run_clink

DDL = """
CREATE TABLE src (k VARCHAR, v BIGINT, w BIGINT, note VARCHAR) WITH (connector='file', format='json', path='{inp}', follow='true');
CREATE TABLE other (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}', follow='true');
CREATE TABLE out1 (k VARCHAR, a BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='{out}1', mode='upsert');
CREATE TABLE out2 (k VARCHAR, a BIGINT, b BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='{out}2', mode='upsert');
CREATE TABLE copy (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{out}-copy');
CREATE TABLE renamed (k VARCHAR, a BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='{out}1', mode='upsert');
"""
SUM = "INSERT INTO out1 SELECT k, SUM(v) FROM src WHERE v > 2 GROUP BY k;\n"
TWO = "INSERT INTO out2 SELECT k, SUM(v), MAX(w) FROM src WHERE v > 2 GROUP BY k;\n"


class Job:
    """One directory; each life reads what has come until a savepoint stops it."""

    def __init__(self, where):
        self.where, self.inp, self.out, self.ck = where, where / "in.ndjson", where / "out", where / "ck"
        self.rows = 0
        self.append(200)

    def append(self, n):
        with open(self.inp, "a") as f:
            for i in range(self.rows, self.rows + n):
                f.write(json.dumps({"k": "k%d" % (i % 7), "v": i, "w": i * 3 % 11, "note": "n%d" % i}) + "\n")
        self.rows += n

    def script(self, sql):
        path = self.where / "job.sql"
        path.write_text(DDL.format(inp=self.inp, out=self.out) + sql)
        return path

    def explain(self, sql, *flags):
        r = run_clink("explain", self.script(sql), "--checkpoint-dir", self.ck, "--restore", "latest", *flags, ok=False)
        return r.code, [line.strip() for line in r.out.splitlines()[1:]], r.err

    def life(self, sql, *flags):
        """Runs until everything has been read (the copy says so where there is one), then stops with a savepoint."""
        import signal
        import subprocess
        import time
        from conftest import CLINK
        err = open(self.where / "stderr", "w+")
        p = subprocess.Popen([CLINK, "run", self.script(sql), "--checkpoint-dir", self.ck, "--checkpoint-interval-ms", "20",
                              *map(str, flags)], stdout=subprocess.DEVNULL, stderr=err)
        try:
            deadline = time.monotonic() + 180
            while p.poll() is None and time.monotonic() < deadline:  # it has started, and nothing is left to read
                if "exactly once" in open(self.where / "stderr").read() and len(self.copied()) >= self.rows:
                    break
                time.sleep(0.01)
            if p.poll() is None:
                p.send_signal(signal.SIGUSR2)
            code = p.wait(180)
        finally:
            p.kill()
        return code, open(self.where / "stderr").read()

    def table(self, name):
        return read_rows(self.where / ("out" + name))

    def copied(self):
        return self.table("-copy")


COPY = "INSERT INTO copy SELECT k, v FROM src;\n"


@pytest.fixture
def job(tmp_path):
    j = Job(tmp_path)
    code, err = j.life(SUM + COPY)
    assert code == 0 and len(j.copied()) == 200, err
    return j


def sums(n, low=2):
    out = {}
    for i in range(n):
        if i > low:
            out["k%d" % (i % 7)] = out.get("k%d" % (i % 7), 0) + i
    return out


def check_out1(job):
    assert {r["k"]: r["a"] for r in job.table("1")} == sums(job.rows)
    assert sorted(r["v"] for r in job.copied()) == list(range(job.rows))  # nothing twice, nothing missing


@pytest.mark.parametrize("sql", [
    SUM + COPY,
    "-- laid out anew\nINSERT INTO out1\n  SELECT k,\n   SUM(v)\n FROM src\n WHERE (v > 2)\n GROUP BY k;\n" + COPY,
    COPY + SUM,  # reordered
    SUM + COPY + "INSERT INTO out2 SELECT note, SUM(v), COUNT(*) FROM src GROUP BY note;\n",  # one more, and it reads one more column
    SUM.replace("out1", "renamed") + COPY,
], ids=["same", "layout", "reordered", "one more", "renamed sink"])
def test_what_is_the_same_goes_on(job, sql):
    code, lines, err = job.explain(sql)
    assert code == 0, err
    assert all(line.split()[0] in ("reuse", "new") for line in lines), lines
    assert any(line.startswith("reuse") and "group_agg(k)<-src" in line for line in lines), lines
    job.append(150)
    code, err = job.life(sql, "-p", 2)
    assert code == 0, err
    check_out1(job)
    job.append(70)  # and once more from there
    assert job.life(sql)[0] == 0
    check_out1(job)


def test_a_dropped_aggregate_drops_its_field(tmp_path):
    job = Job(tmp_path)
    two, one = TWO + COPY, TWO.replace("MAX(w)", "CAST(NULL AS BIGINT)") + COPY
    assert job.life(two)[0] == 0
    code, lines, _ = job.explain(one)
    assert code == 0 and any(line.startswith("migrate") and "drops" in line and "max(w)" in line for line in lines), lines
    job.append(100)
    code, err = job.life(one)
    assert code == 0 and "migrate group_agg(k)<-src" in err, err
    assert {r["k"]: r["a"] for r in job.table("2")} == sums(300)
    code, lines, err = job.explain(two)  # what was dropped does not come back by itself
    assert code == 3 and any(line.startswith("refused") and "'max(w)' is not in the checkpoint" in line for line in lines), lines


def test_another_aggregate_is_refused(job):
    sql = SUM.replace("SUM(v)", "COUNT(*)") + COPY
    code, lines, err = job.explain(sql)
    assert code == 3 and any(line.startswith("refused") and "is not in the checkpoint" in line for line in lines), lines
    before = sorted(os.listdir(job.ck))
    code, err = job.life(sql)
    assert code == 1 and "another script" in err and "group_agg(k)<-src" in err and "--allow-semantic-change" in err, err
    assert sorted(os.listdir(job.ck)) == before and len(job.copied()) == 200  # nothing was touched


def test_another_filter_is_refused_unless_allowed(job):
    sql = SUM.replace("v > 2", "v > 5") + COPY
    code, lines, err = job.explain(sql)
    assert code == 3 and any(line.startswith("refused") and "filters" in line for line in lines), lines
    code, err = job.life(sql)
    assert code == 1 and "group_agg(k)<-src: its input, filters or keys mean something else" in err, err
    code, lines, err = job.explain(sql, "--allow-semantic-change")
    assert code == 0 and any(line.startswith("reuse") and "filters" in line for line in lines), lines
    job.append(50)
    assert job.life(sql, "--allow-semantic-change")[0] == 0
    check_out1(job)  # every later row passes both filters


@pytest.mark.parametrize("now,code", [
    ("INSERT INTO copy SELECT k, v FROM src WHERE v > 100;\n", 3),
    ("INSERT INTO copy SELECT note, v FROM src;\n", 0),  # the same rows, other columns
    (COPY + "INSERT INTO copy SELECT k, v FROM other;\n", 0),  # one more branch
    ("INSERT INTO copy SELECT k, v FROM src UNION ALL SELECT k, v FROM other WHERE v > 5;\n", 0),
    ("INSERT INTO copy SELECT k, v FROM src WHERE v > 1 UNION ALL SELECT k, v FROM other;\n", 3),
])
def test_a_table_gets_the_same_rows_or_is_refused(job, now, code):
    got, lines, err = job.explain(SUM + now)
    assert got == code, (lines, err)
    if code:
        assert any(line.startswith("refused  sink:copy: the rows it gets are chosen otherwise") for line in lines), lines


def test_another_having_is_refused(job):
    code, lines, err = job.explain(SUM.replace(";", " HAVING COUNT(*) > 0;") + COPY)
    assert code == 3, lines
    code, lines, err = job.explain(SUM.replace("GROUP BY k;", "GROUP BY k HAVING SUM(v) > 0;") + COPY)
    assert code == 3 and any(line.startswith("refused  sink:out1: the rows it gets") for line in lines), lines


def test_a_statement_less_is_refused_unless_allowed(job):
    code, lines, err = job.explain(COPY)
    assert code == 3 and any(line.startswith("refused") and "group_agg(k)<-src" in line for line in lines), lines
    assert job.life(COPY)[0] == 1
    code, lines, err = job.explain(COPY, "--allow-semantic-change")
    assert code == 4 and any(line.startswith("drop") for line in lines), lines
    job.append(30)
    assert job.life(COPY, "--allow-semantic-change")[0] == 0
    assert sorted(r["v"] for r in job.copied()) == list(range(230))


def test_another_input_is_refused(job):
    (job.where / "elsewhere").mkdir()
    moved = DDL.replace("path='{inp}'", "path='{inp}x'", 1)
    path = job.where / "job.sql"
    path.write_text(moved.format(inp=job.inp, out=job.out) + SUM + COPY)
    r = run_clink("explain", path, "--checkpoint-dir", job.ck, "--restore", "latest", ok=False)
    assert r.code == 3 and "refused  source:src: option 'path' is another" in r.out, r.out


def test_columns_of_the_table_may_come_and_change_their_order(job):
    path = job.where / "job.sql"
    ddl = DDL.replace("(k VARCHAR, v BIGINT, w BIGINT, note VARCHAR)", "(note VARCHAR, extra DOUBLE, v BIGINT, k VARCHAR)", 1)
    path.write_text(ddl.format(inp=job.inp, out=job.out) + SUM + COPY)
    r = run_clink("explain", path, "--checkpoint-dir", job.ck, "--restore", "latest", ok=False)
    assert r.code == 0 and "refused" not in r.out, r.out + r.err


@pytest.mark.parametrize("was,now,code", [("INT", "BIGINT", 0), ("INT NOT NULL", "INT", 0), ("BIGINT", "SMALLINT", 3), ("INT", "INT NOT NULL", 0)])
def test_types_may_grow_wider(tmp_path, was, now, code):
    """MAX keeps a value of its argument's type."""
    job = Job(tmp_path)
    sql = "INSERT INTO out1 SELECT k, CAST(MAX(w) AS BIGINT) FROM src GROUP BY k;\n"
    def script(t):
        path = job.where / "job.sql"
        path.write_text(DDL.replace("w BIGINT", "w " + t, 1).format(inp=job.inp, out=job.out) + sql + COPY)
        return path
    job.script = lambda text: script(text)
    assert job.life(was)[0] == 0
    r = run_clink("explain", script(now), "--checkpoint-dir", job.ck, "--restore", "latest", ok=False)
    assert r.code == code, r.out + r.err
    if code:
        assert was.split()[0].replace("INT", "INTEGER").replace("BIGINTEGER", "BIGINT") in r.out and "this job has" in r.out, r.out
        return
    job.append(100)
    ended, err = job.life(now)
    assert ended == 0, err
    want = {}
    for i in range(300):
        want["k%d" % (i % 7)] = max(want.get("k%d" % (i % 7), 0), i * 3 % 11)
    assert {r["k"]: r["a"] for r in job.table("1")} == want


def test_two_statements_over_one_key_keep_theirs(job):
    """The second takes the name, the first gets a hash behind its own: it finds its state by what it means."""
    both = SUM + COPY + "INSERT INTO out2 SELECT k, COUNT(*), MAX(v) FROM src GROUP BY k;\n"
    code, lines, err = job.explain(both)
    assert code == 0 and any("(was group_agg(k)<-src)" in line for line in lines), lines
    job.append(100)
    assert job.life(both)[0] == 0
    check_out1(job)
    got = {r["k"]: r["a"] for r in job.table("2")}  # new: from the checkpoint on
    assert sum(got.values()) == 100
    code, lines, err = job.explain(SUM + COPY, "--allow-semantic-change")
    assert code == 4, lines
    job.append(20)
    assert job.life(SUM + COPY, "--allow-semantic-change")[0] == 0
    check_out1(job)


def test_a_finished_job_has_nothing_to_go_on_with(tmp_path):
    inp = tmp_path / "in.ndjson"
    inp.write_text('{"k":"a","v":1}\n')
    ddl = f"CREATE TABLE src (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{inp}');"
    (tmp_path / "job.sql").write_text(ddl + "SELECT k, SUM(v) FROM src GROUP BY k;")
    run_clink("run", tmp_path / "job.sql", "--checkpoint-dir", tmp_path / "ck")
    (tmp_path / "job.sql").write_text(ddl + "SELECT k, SUM(v), COUNT(*) FROM src GROUP BY k;")
    r = run_clink("run", tmp_path / "job.sql", "--checkpoint-dir", tmp_path / "ck", ok=False)
    assert r.code == 1 and "has finished" in r.err and "--fresh" in r.err, r.err


def test_a_second_branch_begins_empty_beside_the_old_one(job):
    """The old branch goes on with its state, the new one reads its table from the beginning. What brings the rows of both together for the
    table has to know those that the old one takes back."""
    sql = SUM.replace(";", " UNION ALL SELECT 'o' || k, SUM(v) FROM other GROUP BY k;") + COPY
    code, lines, err = job.explain(sql)
    assert code == 3 and [line for line in lines if line.startswith("refused")] == [
        "refused  materialise:out1: it is new, and takes back rows of before this checkpoint, which it has not got"], lines
    code, lines, err = job.explain(sql, "--added-state", "backfill")
    assert code == 0 and any(line.startswith("reuse") and "group_agg(k)<-src" in line for line in lines), lines
    assert any(line.startswith("new") and "group_agg(k)<-other" in line for line in lines), lines
    job.append(100)
    code, err = job.life(sql, "--added-state", "backfill")
    assert code == 0, err
    job.append(10)
    assert job.life(sql)[0] == 0
    got = {r["k"]: r["a"] for r in job.table("1")}
    assert {k: a for k, a in got.items() if k[0] == "k"} == sums(job.rows)
    for k, a in got.items():  # of rows of `other` from the first on, however far it had come
        if k[0] == "o":
            mine = [i for i in range(job.rows) if "k%d" % (i % 7) == k[1:]]
            assert a in {sum(mine[:n]) for n in range(1, len(mine) + 1)}, (k, a)
    assert any(k[0] == "o" for k in got)


def test_a_group_gets_the_rows_of_a_further_branch(job):
    """The branch is read from its beginning, and what was grouped stays: that is the answer of the new script over all rows."""
    both = SUM.replace("FROM src WHERE v > 2", "FROM (SELECT k, v FROM src WHERE v > 2 UNION ALL SELECT k, v * 1000 AS v FROM other WHERE v < 10)") + COPY
    code, lines, err = job.explain(both)
    assert code == 0 and any(line.startswith("reuse") and "(was group_agg(k)<-src)" in line and "a further branch of its UNION ALL begins empty" in line
                             for line in lines), (lines, err)
    job.append(100)
    assert job.life(both)[0] == 0
    job.append(10)
    three = both.replace("WHERE v < 10)", "WHERE v < 10 UNION ALL SELECT k, v FROM src WHERE v < 0)")
    code, lines, err = job.explain(three)
    assert code == 0 and any("begins empty" in line for line in lines), (lines, err)
    assert job.life(three)[0] == 0
    want = sums(job.rows)
    for i in range(10):
        want["k%d" % (i % 7)] += i * 1000
    assert {r["k"]: r["a"] for r in job.table("1")} == want
    code, lines, err = job.explain(both)  # one less
    assert code == 3 and any(line.startswith("refused") and "its input, filters or keys mean something else" in line for line in lines), lines
    code, lines, err = job.explain(three.replace("v < 10 ", "v < 11 "))  # one of them is another
    assert code == 3, lines


@pytest.mark.parametrize("was,now,flags", [
    ("COUNT(*), SUM(v)", "SUM(v), CAST(NULL AS BIGINT)", ()),
    ("COUNT(*), SUM(v)", "SUM(v), MAX(v)", ("--added-state", "from_now")),
], ids=["one less", "one more"])
def test_windows_of_long_keys_change_their_aggregates(tmp_path, was, now, flags):
    """Rows of windows are kept by window, each with its own texts."""
    inp, out, ck = tmp_path / "in.ndjson", tmp_path / "out", tmp_path / "ck"
    keys = ["key %d, which is longer than what a row holds itself" % i for i in range(5)]

    def life(n, first, aggregates, *more):
        with open(inp, "a") as f:
            for i in range(first, first + n):
                f.write(json.dumps({"k": keys[i % 5], "v": i, "ts": "2024-01-01T00:%02d:%02d" % (i // 60, i % 60)}) + "\n")
        sql = tmp_path / "job.sql"
        sql.write_text(f"CREATE TABLE t (k VARCHAR, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (connector='file', format='json', path='{inp}', follow='true');"
                       f"CREATE TABLE o (w TIMESTAMP(3), k VARCHAR, a BIGINT, b BIGINT) WITH (connector='file', format='json', path='{out}');"
                       f"CREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');"
                       f"INSERT INTO o SELECT window_start, k, {aggregates} FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, k;"
                       "INSERT INTO copy SELECT v FROM t;")
        err = open(tmp_path / "stderr", "w+")
        p = subprocess.Popen([CLINK, "run", sql, "--checkpoint-dir", ck, "--checkpoint-interval-ms", "20", *more], stdout=subprocess.DEVNULL, stderr=err)
        try:
            until = time.monotonic() + 120
            while p.poll() is None and time.monotonic() < until and len(read_rows(tmp_path / "out-copy")) < first + n:
                time.sleep(0.02)
            if p.poll() is None:
                p.send_signal(signal.SIGUSR2)
            assert p.wait(120) == 0, open(tmp_path / "stderr").read()
        finally:
            p.kill()

    life(200, 0, was)
    life(500, 200, now, *flags)
    first = [r for r in read_rows(out) if r["w"].startswith("2024-01-01T00:00:00") or r["w"].startswith("2024-01-01 00:00:00")]
    assert {r["k"]: r["a"] for r in first} == {k: sum(i for i in range(600) if keys[i % 5] == k) for k in keys}
    assert [r["b"] for r in first] == ([None] * 5 if not flags else [max(i for i in range(600) if i % 5 == keys.index(r["k"])) for r in first])


def test_a_rate_limit_does_not_make_a_table_read_twice(tmp_path):
    """A file that is joined with itself is read once where its rate is limited and twice where not: no way from one to the other."""
    inp, out, ck = tmp_path / "in.ndjson", tmp_path / "out", tmp_path / "ck"
    inp.write_text("".join(json.dumps({"i": i}) + "\n" for i in range(20000)))

    def script(rate):
        sql = tmp_path / "job.sql"
        sql.write_text(f"CREATE TABLE t (i BIGINT) WITH (connector='file', format='json', path='{inp}'{rate});"
                       f"CREATE TABLE o (i BIGINT, j BIGINT) WITH (connector='file', format='json', path='{out}');"
                       "INSERT INTO o SELECT a.i, b.i FROM t a JOIN t b ON a.i = b.i;")
        return sql

    limited = ", rate_limit='10'"
    p = subprocess.Popen([CLINK, "run", script(limited), "--checkpoint-dir", ck, "--checkpoint-interval-ms", "20"], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while p.poll() is None and time.monotonic() < until and not list(ck.glob("checkpoint-*.committed")):
        time.sleep(0.01)
    p.kill()
    p.wait()
    r = run_clink("explain", script(""), "--checkpoint-dir", ck, "--restore", "latest", ok=False)
    assert r.code == 3 and "is read twice now" in r.out, r.out + r.err
    r = run_clink("run", script(""), "--checkpoint-dir", ck, ok=False)
    assert r.code == 1 and "is read twice now" in r.err, r.err
    run_clink("run", script(limited.replace("10'", "1000000'")), "--checkpoint-dir", ck)
    assert sorted(r["i"] for r in read_rows(out)) == list(range(20000))


SHARED = "CREATE VIEW sums AS SELECT k, SUM(v) AS a FROM src WHERE v > 2 GROUP BY k;\nINSERT INTO out1 SELECT k, a FROM sums;\n" + COPY
TOTALS = "INSERT INTO out2 SELECT CASE WHEN a % 2 = 0 THEN 'even' ELSE 'odd' END, COUNT(*), SUM(a) FROM sums GROUP BY CASE WHEN a % 2 = 0 THEN 'even' ELSE 'odd' END;\n"
BEST = "INSERT INTO out2 SELECT k, a, 0 FROM sums ORDER BY a DESC LIMIT 3;\n"


@pytest.mark.parametrize("more,uid", [(TOTALS, "group_agg"), (BEST, "top_n")], ids=["a group by over a group by", "a top-N over a group by"])
def test_new_state_of_rows_that_are_taken_back(job, more, uid):
    """What it would take back it never had: a sum of sums would count groups below nothing. It is computed, or refused."""
    why = "it is new, and takes back rows of before this checkpoint, which it has not got"
    code, lines, err = job.explain(SHARED + more)
    assert code == 3 and any(line.startswith("refused  " + uid) and why in line for line in lines), (lines, err)
    assert any(line == "reuse    group_agg(k)<-src" for line in lines), lines  # they share it
    code, err = job.life(SHARED + more)
    assert code == 1 and why in err and len(job.copied()) == 200, err
    code, lines, err = job.explain(SHARED + more, "--added-state", "backfill")
    assert code == 0 and any(line.startswith("backfill " + uid) and why in line for line in lines), (lines, err)


def test_new_state_of_rows_that_are_taken_back_is_computed(job):
    job.append(50)
    code, err = job.life(SHARED + TOTALS, "--added-state", "backfill")
    assert code == 0, err
    check_out1(job)
    want = {}
    for a in sums(job.rows).values():
        n, total = want.get("odd" if a % 2 else "even", (0, 0))
        want["odd" if a % 2 else "even"] = (n + 1, total + a)
    assert {r["k"]: (r["a"], r["b"]) for r in job.table("2")} == want


def test_a_sum_that_is_what_it_was_at_the_checkpoint_once_more(tmp_path):
    """Rows of two GROUP BYs meet in one table, the second of which is new: a row that comes back is there."""
    job = Job(tmp_path)
    one = SUM.replace(" WHERE v > 2", "") + COPY
    two = one.replace("GROUP BY k;", "GROUP BY k UNION ALL SELECT 'o' || k, SUM(v) FROM other WHERE v < 0 GROUP BY k;", 1)
    assert job.life(one)[0] == 0
    for flags, v in ((("--added-state", "backfill"), 1000), ((), -1000)):
        with open(job.inp, "a") as f:
            f.write(json.dumps({"k": "k3", "v": v, "w": 0, "note": ""}) + "\n")
        job.rows += 1
        code, err = job.life(two, *flags)
        assert code == 0, err
    got = {r["k"]: r["a"] for r in job.table("1")}
    assert {k: a for k, a in got.items() if k != "ok3"} == sums(200, -1)
