"""From one savepoint: what explain --restore, check-savepoint and the start of a job say of each kind of change of a script, as
docs/failure-semantics.md and docs/schema-evolution.md have it. One table of all verdicts; what goes on is run by the tests beside this."""
import json
import signal

import pytest

from conftest import read_rows, run_clink
from test_evolve_columns import Tables, old_row

DDL = """CREATE TABLE src ({cols}) WITH (connector='file', format='json', path='{inp}', follow='true');
CREATE TABLE other (k VARCHAR, v BIGINT, w INT, x INT) WITH (connector='file', format='json', path='{inp}', follow='true');
CREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');
CREATE TABLE {sink} (k VARCHAR, a BIGINT, b INT, c BIGINT, d DOUBLE, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='{out}1', mode='upsert');
CREATE TABLE more (k VARCHAR, a BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='{out}2', mode='upsert');
"""
COLS = "k VARCHAR, v BIGINT NOT NULL, w INT, x INT"
AGGREGATES = "SUM(v), CAST(MAX(w) AS INT), COUNT(w), CAST(NULL AS DOUBLE)"


def text(cols=COLS, sink="res", aggregates=AGGREGATES, rows="src WHERE v > 2", key="k", copy="INSERT INTO copy SELECT v FROM src;\n", end="", first=False):
    insert = "INSERT INTO %s SELECT %s, %s FROM %s GROUP BY %s;\n" % (sink, key, aggregates, rows, key)
    return DDL.replace("{cols}", cols).replace("{sink}", sink) + (copy + insert if first else insert + copy) + end


GROUP = "group_agg(k)<-src"
FROM_NOW, BACKFILL, ALLOW = ("--added-state", "from_now"), ("--added-state", "backfill"), ("--allow-semantic-change",)
COUNT = AGGREGATES.replace("CAST(NULL AS DOUBLE)", "CAST(COUNT(*) AS DOUBLE)")
PRUNED = AGGREGATES.replace("CAST(NULL AS DOUBLE)", "CAST(SUM(x) AS DOUBLE)")
FRESH = AGGREGATES.replace("CAST(NULL AS DOUBLE)", "CAST(SUM(y) AS DOUBLE)")

# change: the script's, flags, verdict, of which operator, what is said
VERDICTS = {
    "the same": (text(), (), "reuse", GROUP, ""),
    "one more INSERT": (text(end="INSERT INTO more SELECT k, SUM(x) FROM other GROUP BY k;\n"), (), "reuse", GROUP, ""),
    "the one more": (text(end="INSERT INTO more SELECT k, SUM(x) FROM other GROUP BY k;\n"), (), "new", "group_agg(k)<-other", "starts empty"),
    "a renamed sink": (text(sink="renamed"), (), "reuse", "sink:renamed", "(was sink:res)"),
    "reordered statements": (text(first=True), (), "reuse", GROUP, ""),
    "a further branch": (text(rows="(SELECT k, v, w FROM src WHERE v > 2 UNION ALL SELECT k, v, w FROM other)"), (), "reuse", GROUP, "a further branch of its UNION ALL begins empty"),
    "a column comes": (text(cols=COLS + ", y BIGINT", aggregates=FRESH), (), "migrate", GROUP, "adds 'sum(y)'"),
    "columns in another order": (text(cols="x INT, w INT, v BIGINT NOT NULL, k VARCHAR"), (), "reuse", GROUP, ""),
    "a wider column": (text(cols=COLS.replace("w INT", "w BIGINT")), (), "migrate", GROUP, "'max(w)' INTEGER -> BIGINT"),
    "NOT NULL dropped": (text(cols=COLS.replace("v BIGINT NOT NULL", "v BIGINT")), (), "reuse|migrate", GROUP, ""),
    "a column renamed": (text(cols=COLS.replace("w INT", "z INT RENAMED FROM w"), aggregates=AGGREGATES.replace("(w)", "(z)")), (), "migrate", GROUP, "'max(w)' is 'max(z)' now"),
    "an aggregate dropped": (text(aggregates=AGGREGATES.replace("CAST(MAX(w) AS INT)", "CAST(NULL AS INT)")), (), "migrate", GROUP, "drops 'max(w)'"),
    "a derivable aggregate": (text(aggregates=AGGREGATES.replace("CAST(NULL AS DOUBLE)", "CAST(SUM(v) AS DOUBLE) / 2")), (), "reuse", GROUP, ""),
    "COUNT(*)": (text(aggregates=COUNT), (), "refused", GROUP, "'count(*)' is not in the checkpoint"),
    "COUNT(*) from now": (text(aggregates=COUNT), FROM_NOW, "migrate", GROUP, "adds 'count(*)' from now on"),
    "COUNT(*) backfilled": (text(aggregates=COUNT), BACKFILL, "backfill", GROUP, "'count(*)' is not in the checkpoint: computed by reading its input again"),
    "a pruned column": (text(aggregates=PRUNED), (), "refused", GROUP, "'sum(cast(x AS BIGINT))' is not in the checkpoint"),
    "a pruned column backfilled": (text(aggregates=PRUNED), BACKFILL, "backfill", GROUP, "'sum(cast(x AS BIGINT))' is not in the checkpoint"),
    "another WHERE": (text(rows="src WHERE v > 5"), (), "refused", GROUP, "its input, filters or keys mean something else"),
    "another WHERE allowed": (text(rows="src WHERE v > 5"), ALLOW, "reuse", GROUP, "filters"),
    "another key": (text(key="k || 'x'"), (), "refused", GROUP, "its state is given up"),
    "a narrower column": (text(cols=COLS.replace("w INT", "w SMALLINT")), (), "refused", GROUP, "'max(w)' is stored as INTEGER, this job has SMALLINT"),
    "a narrower column backfilled": (text(cols=COLS.replace("w INT", "w SMALLINT"), aggregates=COUNT), BACKFILL, "refused", GROUP, "'max(w)' is stored as INTEGER, this job has SMALLINT"),
    "a statement less": (text().replace("INSERT INTO copy SELECT v FROM src;\n", ""), (), "refused", "sink:copy", "what it has written stays as it is"),
    "a statement less allowed": (text().replace("INSERT INTO copy SELECT v FROM src;\n", ""), ALLOW, "drop", "sink:copy", ""),
}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    j = Tables(tmp_path_factory.mktemp("verdicts"), lambda i: {**old_row(i), "x": i})
    code, err = j.life(text())
    assert code == 0, err
    return j


@pytest.mark.parametrize("change", sorted(VERDICTS))
def test_a_change(job, change):
    sql, flags, verdict, uid, why = VERDICTS[change]
    code, lines, err = job.explain(sql, *flags)
    assert code == (3 if verdict == "refused" else 4 if verdict == "drop" else 0), (lines, err)
    mine = [line for line in lines if line.split()[0] in verdict.split("|") and uid in line]
    assert any(why in line for line in mine), lines
    if flags != ALLOW:  # who only looks says the same
        r = run_clink("check-savepoint", job.ck, "--expected", job.script(sql), *flags, ok=False)
        assert r.code == (3 if verdict == "refused" else 0), r.out + r.err
        assert verdict != "refused" or why in r.out, r.out


BOTH_WAYS = "--added-state from_now lets what is not there begin empty, backfill computes it by reading the input again"
UPSERTED = text().replace("c BIGINT, d DOUBLE, PRIMARY", "c BIGINT, d DOUBLE, e BIGINT, PRIMARY").replace(AGGREGATES, AGGREGATES + ", CAST(NULL AS BIGINT)")


@pytest.mark.parametrize("sql,ways", [(text(aggregates=COUNT), BOTH_WAYS), (text(aggregates=PRUNED), BOTH_WAYS), (text(rows="src WHERE v > 5"), None),
                                      (text(key="k || 'x'"), None),
                                      (UPSERTED, None)],
                         ids=["an aggregate", "a pruned column", "another WHERE", "another key", "a column of an upsert file"])
def test_ways_that_apply_are_named(job, sql, ways):
    """Those that would go on, and no others."""
    code, lines, err = job.explain(sql)
    assert code == 3 and [line for line in lines if line.startswith("--added-state")] == ([ways] if ways else []), (lines, err)
    r = run_clink("check-savepoint", job.ck, "--expected", job.script(sql), ok=False)
    assert r.code == 3 and (ways is None or ways in r.out) and (ways or "--added-state" not in r.out), r.out + r.err
    code, err = job.life(sql)
    assert code == 1 and "; %sclink explain --restore shows each operator" % (ways + "; " if ways else "") in err, err
    for how in (FROM_NOW, BACKFILL):
        assert (job.explain(sql, *how)[0] == 0) == (how[1] in (ways or "")), how


def test_rows_of_an_upsert_file(job):
    code, lines, err = job.explain(UPSERTED)
    assert any(line.startswith("refused  sink:res: the rows of its table are state (mode = 'upsert'): 'e' is not in the checkpoint") for line in lines), (lines, err)


def test_a_used_column_that_is_gone(job):
    """The script itself has no such column any more: it does not come as far as the savepoint."""
    code, lines, err = job.explain(text(cols=COLS.replace("w INT, ", "")))
    assert code == 1 and 'column "w"' in err, err


def test_another_number_of_key_groups(tmp_path):
    (tmp_path / "in.ndjson").write_text('{"k":1}\n')
    sql = ("CREATE TABLE t (k BIGINT) WITH (connector='file', path='in.ndjson'); CREATE TABLE o (k BIGINT) WITH (connector='file', format='json', path='o'); "
           "INSERT INTO o SELECT k FROM t")
    flags = ("run", "--checkpoint-dir", "ck", "--name", "j", "-e", sql)
    run_clink(*flags, "--key-groups", "16", cwd=tmp_path)
    r = run_clink(*flags, cwd=tmp_path, ok=False)
    why = "has 16 key groups, this job 128: --key-groups 16 goes on from it"
    assert r.code == 1 and why in r.err, r.err
    r = run_clink("explain", "--restore", "latest", *flags[1:], cwd=tmp_path, ok=False)
    assert r.code == 3 and why in r.out, r.out + r.err
    r = run_clink("explain", "--restore", "latest", *flags[1:], "--key-groups", "16", cwd=tmp_path)
    assert "refused" not in r.out, r.out
    (tmp_path / "j.sql").write_text(sql)
    assert "compatible with j.sql" in run_clink("check-savepoint", "ck", "--expected", "j.sql", cwd=tmp_path).out  # a start can say how many
    assert "has finished before" in run_clink(*flags, "--key-groups", "16", cwd=tmp_path).err


def test_what_a_dropped_sink_has_not_committed(tmp_path):
    """A job that was killed between a checkpoint and its commit: its output could be committed by nobody."""
    j = Tables(tmp_path, lambda i: {**old_row(i), "x": i})
    flags = ("--checkpoint-dir", j.ck, "--checkpoint-interval-ms", 20)
    less = text().replace("INSERT INTO copy SELECT v FROM src;\n", "")
    for _ in range(50):  # the first checkpoint may be one that came before any row of the copy
        r = run_clink("run", j.script(text()), *flags, "--fresh", env={"CLINK_FAULT": "commit.before:1:kill"}, ok=False)
        assert r.code == -signal.SIGKILL, r.err
        if j.explain(less, *ALLOW)[0] == 3:
            break
    r = run_clink("run", j.script(less), *flags, *ALLOW, ok=False)
    why = "sink:copy is not in this script, and checkpoint"
    assert r.code == 1 and why in r.err and "is not committed yet" in r.err, r.err
    said = [line.split("clink: ")[1] for line in r.err.splitlines() if why in line]
    code, lines, err = j.explain(less, *ALLOW)
    assert code == 3 and any(said[0] in line for line in lines), (lines, err)
    code, err = j.life(text())  # which commits it
    assert code == 0, err
    assert j.explain(less, *ALLOW)[0] == 4


def test_the_last_checkpoint_of_a_job_that_has_finished(tmp_path):
    """Another script has nothing to go on with; who only looks is told what its start would be."""
    (tmp_path / "in.ndjson").write_text('{"k":1}\n')
    sql = ("CREATE TABLE t (k BIGINT) WITH (connector='file', path='in.ndjson');\nCREATE TABLE o (k BIGINT) WITH (connector='file', format='json', path='o');\n"
           "INSERT INTO o SELECT k FROM t%s;\n")
    job = tmp_path / "j.sql"
    job.write_text(sql % "")
    run_clink("run", job, "--checkpoint-dir", "ck", cwd=tmp_path)
    assert run_clink("explain", job, "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path).code == 0
    job.write_text(sql % " WHERE k > 0")
    r = run_clink("run", job, "--checkpoint-dir", "ck", cwd=tmp_path, ok=False)
    assert r.code == 1 and "is the last of a job that has finished, and was made by another script" in r.err, r.err
    why = r.err.split("clink: ")[-1].strip()
    r = run_clink("explain", job, "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path, ok=False)
    assert r.code == 3 and why in r.out, r.out + r.err
    r = run_clink("check-savepoint", "ck", "--expected", job, cwd=tmp_path, ok=False)
    assert r.code == 3 and "incompatible: " in r.out and why in r.out, r.out + r.err
    r = run_clink("check-savepoint", "ck", "--expected", job, "--json", cwd=tmp_path, ok=False)
    first = json.loads(r.out)["incompatible"][0]
    assert r.code == 3 and first == {"why": why}, r.out  # of the job, before any operator


def test_the_last_checkpoint_of_a_job_that_was_killed_before_its_commit(tmp_path):
    """Advice to start anew would write all of it again: the script it was made by commits it."""
    (tmp_path / "in.ndjson").write_text('{"k":1}\n')
    sql = ("CREATE TABLE t (k BIGINT) WITH (connector='file', path='in.ndjson');\nCREATE TABLE o (k BIGINT) WITH (connector='file', format='json', path='o');\n"
           "INSERT INTO o SELECT k FROM t%s;\n")
    job = tmp_path / "j.sql"
    job.write_text(sql % "")
    r = run_clink("run", job, "--checkpoint-dir", "ck", cwd=tmp_path, env={"CLINK_FAULT": "commit.before:1:kill"}, ok=False)
    assert r.code == -signal.SIGKILL, r.err
    job.write_text(sql % " WHERE k > 0")
    r = run_clink("run", job, "--checkpoint-dir", "ck", cwd=tmp_path, ok=False)
    assert r.code == 1 and "start the script it was made by once more, which commits what is left" in r.err, r.err
    why = r.err.split("clink: ")[-1].strip()
    r = run_clink("explain", job, "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path, ok=False)
    assert r.code == 3 and why in r.out, r.out + r.err
    job.write_text(sql % "")
    run_clink("run", job, "--checkpoint-dir", "ck", cwd=tmp_path)
    assert read_rows(tmp_path / "o") == [{"k": 1}]
