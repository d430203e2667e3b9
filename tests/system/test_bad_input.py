"""Bad input gets one clear sentence with its place, exit 1, and nothing half-written that looks whole."""
import json
import os
import resource
import shutil
import subprocess

import pytest
from conftest import CLINK

DDL = "CREATE TABLE t (a BIGINT NOT NULL, s VARCHAR) WITH (connector='file', format='{f}', path='{p}'{more});\n"


def one_sentence(r, *says):
    assert r.code == 1, (r.code, r.err)
    assert r.out == "" or all(line.startswith("{") for line in r.lines)
    first = r.err.strip().splitlines()[0]
    assert first.startswith("clink: ")
    for s in says:
        assert s in r.err, r.err
    assert "internal error" not in r.err


@pytest.mark.parametrize(
    "content,offset",
    [
        (b'{"a":1}\n{"a":2,}\n{"a":3}\n', 8),
        (b'{"a":1}\n{"a":"x"}\n', 8),
        (b'{"a":1}\n{"a":null}\n', 8),
        (b'{"a":1}\n{"s":"x"}\n', 8),
        (b'{"a":1}\nnot json\n', 8),
        (b'{"a":1}\n{"a":2\n', 8),
        (b'{"a":1}\n{"a":2} {"a":3}\n', 8),
        (b'{"a":1}\n{"a":99999999999999999999}\n', 8),
        (b'{"a":1}\n{"a":1,"s":"\xff\xfe"}\n', 8),
        (b'{"a":1}\n{"a":1,"x":"\x00"}\n', 8),
        (b'{"a":1}\n\x00\x00\x00\n', 8),
        (b'{"a":1}\n[1,2]\n', 8),
        (b'{"a":1}\n{"a":1.5}\n', 8),
    ],
)
def test_bad_json_record(clink, tmp_path, content, offset):
    (tmp_path / "t.json").write_bytes(content)
    r = clink("run", "-e", DDL.format(f="json", p="t.json", more="") + "SELECT a FROM t", ok=False)
    one_sentence(r, "t.json", "line 2")


@pytest.mark.parametrize(
    "content",
    [b"a,s\n1,x\nx,y\n", b"a,s\n1,x\n2\n", b"a,s\n1,x\n2,y,z\n", b'a,s\n1,x\n2,"open\n', b"a,s\n1,x\n,y\n", b"a,s\n1,x\n2,\xff\n"],
)
def test_bad_csv_record(clink, tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    r = clink("run", "-e", DDL.format(f="csv", p="t.csv", more=", header='true'") + "SELECT a FROM t", ok=False)
    one_sentence(r, "t.csv", "line 3")


@pytest.mark.parametrize(
    "content,rows",
    [(b"", 0), (b"\n\n", 0), (b'{"a":1}', 1), (b'{"a":1}\r\n{"a":2}\r\n', 2), (b'\xef\xbb\xbf{"a":1}\n', 1), (b'{"a":1}\n\n{"a":2}\n', 2)],
)
@pytest.mark.parametrize("p", [1, 3])
def test_odd_but_good_files(clink, tmp_path, content, rows, p):
    (tmp_path / "t.json").write_bytes(content)
    r = clink("run", "-p", p, "-e", DDL.format(f="json", p="t.json", more="") + "SELECT a FROM t")
    assert sorted(x["a"] for x in r.rows) == list(range(1, rows + 1))


def test_missing_and_odd_paths(clink, tmp_path):
    run = lambda path: clink("run", "-e", DDL.format(f="json", p=path, more="") + "SELECT a FROM t", ok=False)
    one_sentence(run("no.json"), "no.json")
    one_sentence(run("no*.json"), "no*.json")
    (tmp_path / "empty").mkdir()
    one_sentence(run("empty"), "empty")
    one_sentence(run("a/b/c.json"), "a/b/c.json")
    odd = tmp_path / "odd"
    odd.mkdir()
    with open(os.fsencode(odd) + b"/\xff.json", "w") as f:
        f.write('{"a":1}\n')
    one_sentence(run("odd"), "odd/..json is not UTF-8")


@pytest.mark.parametrize(
    "sql,says",
    [
        ("CREATE TABLE t (a BIGINT) WITH (connector='file', format='json', pth='x'); SELECT a FROM t", ["pth", "path"]),
        ("CREATE TABLE t (a BIGINT) WITH (connector='fiel', format='json', path='x'); SELECT a FROM t", ["fiel", "file"]),
        ("CREATE TABLE t (a BIGINT) WITH (connector='file', format='jsno', path='x'); SELECT a FROM t", ["jsno", "json"]),
        ("CREATE TABLE t (a BIGINT) WITH (connector='file', path='x', follow='maybe'); SELECT a FROM t", ["follow", "maybe"]),
        ("SELECT " + "(" * 10000 + "1" + ")" * 10000, ["nest"]),
        ("SELECT a FROM nowhere", ["nowhere", "1:15"]),
        ("SELECT 'open", ["1:8"]),
    ],
)
def test_sql_errors(clink, sql, says):
    if not sql:
        assert clink("run", "-e", sql).out == ""
        return
    one_sentence(clink("run", "-e", sql, ok=False), *says)


def test_nul_and_bad_utf8_in_sql(clink, tmp_path):
    (tmp_path / "q.sql").write_bytes(b"SELECT 1\x00")
    r = clink("run", "q.sql", ok=False)
    assert r.code == 1 and "NUL" in r.err
    (tmp_path / "q.sql").write_bytes(b"SELECT '\xff'")
    r = clink("run", "q.sql", ok=False)
    assert r.code == 1 and "UTF-8" in r.err


def test_limits_at_the_sink(tmp_path):
    """A file size limit stands in for a full disk: the part that failed must not appear."""
    with open(tmp_path / "t.json", "w") as f:
        for i in range(100000):
            f.write('{"a":%d,"s":"%s"}\n' % (i, "x" * 50))
    sql = (DDL.format(f="json", p=tmp_path / "t.json", more="")
           + f"CREATE TABLE o (a BIGINT, s VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/out'); INSERT INTO o SELECT a, s FROM t;")
    p = subprocess.run([CLINK, "run", "-e", sql], capture_output=True, text=True,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert p.returncode == 1 and "out" in p.stderr and "internal" not in p.stderr, (p.returncode, p.stderr)
    assert not [n for n in os.listdir(tmp_path / "out") if not n.startswith(".")] if (tmp_path / "out").exists() else True


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_full_disk(clink, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("mount is not allowed here")
    try:
        with open(tmp_path / "t.json", "w") as f:
            for i in range(50000):
                f.write('{"a":%d,"s":"%s"}\n' % (i, "x" * 50))
        sql = (DDL.format(f="json", p="t.json", more="")
               + f"CREATE TABLE o (a BIGINT, s VARCHAR) WITH (connector='file', format='json', path='{disk}/out'); INSERT INTO o SELECT a, s FROM t;")
        one_sentence(clink("run", "-e", sql, ok=False), "No space left")
        assert not [n for n in os.listdir(disk / "out") if not n.startswith(".")]
        # The same when the checkpoint directory is what is full.
        shutil.rmtree(disk / "out")
        (disk / "fill").write_bytes(b"x" * 1000000)
        r = clink("run", "--name", "j", "--checkpoint-dir", disk / "ck", "--tolerable-failed-checkpoints", "1", "--checkpoint-interval-ms", "10",
                  "-e", DDL.format(f="json", p="t.json", more=", rate_limit='20000'")
                  + "CREATE TABLE o (s VARCHAR, n BIGINT) WITH (connector='blackhole'); INSERT INTO o SELECT s || CAST(a AS VARCHAR), COUNT(*) FROM t GROUP BY s || CAST(a AS VARCHAR);",
                  ok=False)
        one_sentence(r, "No space left")
    finally:
        subprocess.run(["umount", str(disk)])


def test_division_by_zero_names_its_place(clink, tmp_path):
    (tmp_path / "t.json").write_text('{"a":1}\n{"a":0}\n')
    ddl = DDL.format(f="json", p="t.json", more="")
    r = clink("run", "-e", ddl + "SELECT 10 / a AS q FROM t", ok=False)
    one_sentence(r, "division by zero", "line 2, column 11", "the row is at byte 8 of t.json")
    assert clink("run", "-e", ddl + "SELECT 10 / a AS q FROM t WHERE a <> 0").rows == [{"q": 10}]
    assert clink("run", "--set", "on_eval_error=null", "-e", ddl + "SELECT 10 / a AS q FROM t").rows == [{"q": 10}, {"q": None}]


def test_bounded_group_by_into_csv_plans_and_unbounded_is_refused(clink, tmp_path):
    (tmp_path / "t.json").write_text('{"a":1,"s":"x"}\n{"a":2,"s":"x"}\n')
    o = "CREATE TABLE o (s VARCHAR, n BIGINT) WITH (connector='file', format='csv', path='out');\nINSERT INTO o SELECT s, COUNT(*) FROM t GROUP BY s;"
    clink("run", "-e", DDL.format(f="json", p="t.json", more="") + o)
    (part,) = [n for n in os.listdir(tmp_path / "out") if not n.startswith(".")]
    assert (tmp_path / "out" / part).read_text().splitlines()[-1] == "x,2"
    r = clink("run", "-e", DDL.format(f="json", p="t.json", more=", follow='true'") + o, ok=False)
    one_sentence(r, "PRIMARY KEY", "window", "EMIT ON CLOSE")


@pytest.mark.parametrize("query,rows", [
    ("SELECT 10 / x AS y FROM t", None),
    ("SELECT 10 / x AS y FROM t WHERE x <> 0", [2, 5, 10]),
    ("SELECT 10 / x AS y FROM t WHERE x <> 0 AND 10 / x > 2", [5, 10]),
    ("SELECT 10 / x AS y FROM t WHERE 10 / x > 2 AND x <> 0", None),
    ("SELECT y FROM (SELECT x, 10 / x AS y FROM t WHERE x <> 0) WHERE y > 2", [5, 10]),
    ("SELECT y FROM (SELECT x, 10 / x AS y FROM t) WHERE x <> 0", [2, 5, 10]),
    ("SELECT CASE WHEN x <> 0 THEN 10 / x END AS y FROM t WHERE x > 0", [2, 5, 10]),
    ("SELECT SUM(10 / x) AS y FROM t WHERE x <> 0", [17]),
    ("SELECT SUM(10 / x) FILTER (WHERE x <> 0) AS y FROM t", [17]),
    ("SELECT SUM(10 / x) AS y FROM t", None),
    ("SELECT 10 / a.x AS y FROM t a JOIN t b ON a.x = b.x AND b.x <> 0", [2, 5, 10]),
    ("SELECT a.x AS y FROM t a JOIN t b ON a.x = b.x AND 10 / b.x > 2", None),
])
@pytest.mark.parametrize("p", [1, 3])
def test_errors_and_their_guards(clink, tmp_path, query, rows, p):
    """An expression that fails does so only for rows that reach it as the query is written, whatever is moved below what."""
    (tmp_path / "t.ndjson").write_text('{"x":1}\n{"x":0}\n{"x":2}\n{"x":5}\n')
    r = clink("run", "-p", p, "-e", "CREATE TABLE t (x BIGINT) WITH (connector='file', path='t.ndjson');" + query, ok=rows is not None)
    if rows is None:
        assert r.code == 1 and "division by zero in 10 / " in r.err and ("t.ndjson" in r.err or "JOIN" in query), r.err
    else:
        assert sorted(x["y"] for x in r.rows) == rows


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_line_of_100_mb(clink, tmp_path, form, p):
    """Refused with its place, left out, or kept aside; never in memory more than once, and the lines around it are read."""
    line = b"x" * 100_000_000
    text = b'{"a":1,"s":"a"}\n{"a":2,"s":"%s"}\n{"a":3,"s":"c"}\n' % line if form == "json" else b"a,s\n1,a\n2,%s\n3,c\n" % line
    (tmp_path / f"big.{form}").write_bytes(text)
    ddl = "CREATE TABLE d (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='left');" + DDL.replace(" NOT NULL", "")
    header = ", header='true'" if form == "csv" else ""

    def run(more, **kw):
        limit = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of all children so far, in KB
        r = clink("run", "-p", p, "-e", ddl.format(f=form, p=f"big.{form}", more=header + more) + "SELECT a FROM t", **kw)
        assert "internal" not in r.err and (p > 1 or resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(limit, 250_000))
        return r

    one_sentence(run("", ok=False), "longer than 67108864 bytes", f"big.{form}", "byte 16" if form == "json" else "byte 8")
    for more in (", on_error='skip'", ", on_error='dead_letter', dead_letter_table='d'"):
        r = run(more)
        assert sorted(x["a"] for x in r.rows) == [1, 3] and "1 record of t did not fit" in r.err
    (letter,) = [json.loads(line) for f in (tmp_path / "left").iterdir() if not f.name.startswith(".") for line in f.read_text().splitlines()]
    assert letter["offset"] == (16 if form == "json" else 8) and "longer than" in letter["reason"]


T = "CREATE TABLE t (a BIGINT, name VARCHAR, ts TIMESTAMP(3)) WITH (connector='datagen', rows=1);\n"


@pytest.mark.parametrize("sql,says", [
    ("SELECT a FROM tt", ["2:15", 'unknown table "tt"; did you mean "t"?']),
    ("SELECT nmae FROM t", ["2:8", 'unknown column "nmae"; did you mean "name"?']),
    ("SELECT t.nmae FROM t", ["2:", "name"]),
    ("SELECT UPER(name) FROM t", ["2:8", 'did you mean "upper"?']),
    ("SELECT MEDAIN(a) FROM t", ["2:8", 'did you mean "median"?']),
    ("CREATE TABLE u (a BIGINT) WITH (connector='file', pahth='x')", ["2:51", "did you mean 'path'?"]),
    ("CREATE TABLE u (a BIGNT) WITH (connector='file', path='x')", ["2:19", 'did you mean "BIGINT"?']),
    ("SET timezon = 'UTC'", ["2:5", 'did you mean "timezone"?']),
    ("SELECT a + name FROM t", ["2:10", "no operator BIGINT + VARCHAR; || joins texts"]),
    ("SELECT a FROM t WHERE name > 3", ["2:28", "cannot compare VARCHAR with INTEGER; cast one side"]),
    ("SELECT a FROM t WHERE a", ["2:23", "WHERE takes a condition, and this is BIGINT"]),
    ("SELECT a FROM t JOIN t AS u ON t.a = u.a", ["2:8", 'column "a" is ambiguous: write t.a or u.a']),
    ("SELECT 9223372036854775807 + 1", ["out of range for BIGINT (line 2, column 28)"]),
    ("SELECT CAST(300 AS TINYINT)", ["300 is out of range for TINYINT", "line 2, column 13"]),
    ("SELECT CAST('x' AS BIGINT)", ["'x' is not a BIGINT", "line 2, column 13"]),
    ("SELECT SUM(x) FROM (VALUES (9223372036854775807), (1)) AS v (x)", ["sum(x) is out of range for BIGINT"]),
    ("SELECT CAST(9e37 AS DECIMAL(38,0)) * 100", ["out of range for DECIMAL(38,0)"]),
    ("SELECT 1e0 / 0", ["division by zero"]),
    ("SELECT MOD(5, 0)", ["division by zero"]),
    ("SELECT LN(-1e0)", ["domain"]),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", ["2:6", "WITH RECURSIVE is not supported"]),
])
def test_names_types_and_ranges(clink, sql, says):
    one_sentence(clink("run", "-e", T + sql, ok=False), *says)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(
    "query,answer",
    [
        ("SELECT SUM(CHAR_LENGTH(r)) AS n FROM (SELECT REPEAT(s, 100000) AS r FROM t) x", {"n": 400000000}),
        ("SELECT COUNT(*) AS n FROM t WHERE CHAR_LENGTH(REPEAT(s, 100000)) > 5 AND a < 30", {"n": 30}),
        ("SELECT SUM(CHAR_LENGTH(r)) AS n FROM t CROSS JOIN UNNEST(ARRAY[REPEAT(s, 100000), s]) AS u(r)", {"n": 400004000}),
        ("SELECT CHAR_LENGTH(MAX(REPEAT(s, 100000))) AS n FROM t", {"n": 10000000}),
    ],
)
def test_rows_that_make_much_text(clink, tmp_path, query, answer, p):
    """40 rows of 100 bytes make 400 MB, a batch of them at once: not with 320 MB."""
    rows = [{"a": i, "s": "x" * 100} for i in range(40)]
    (tmp_path / "t.json").write_text("".join(json.dumps(r) + "\n" for r in rows))
    r = clink("run", "-p", p, "--memory", "320MB", "-e", DDL.format(f="json", p="t.json", more="") + query)
    assert r.rows == [answer]


@pytest.mark.parametrize(
    "call",
    ["DATE_FORMAT(TIMESTAMP '2020-01-01 00:00:00', s)", "TO_TIMESTAMP('2020', s)", "'x' LIKE s", "'x' ILIKE s", "REGEXP('x', s)", "REGEXP_REPLACE('x', s, 'y')"],
)
def test_patterns_that_come_with_rows(clink, tmp_path, call):
    """One that is too long fails its row, as one that is not valid does, and not the job."""
    with open(tmp_path / "t.json", "w") as f:
        for i, s in enumerate(("y" * 4, "y-" * 2000000, "%" * 5000000, "(" * 3000000)):
            f.write(json.dumps({"a": i, "s": s}) + "\n")
    sql = DDL.format(f="json", p="t.json", more="") + f"SELECT a, {call} IS NULL AS none FROM t"
    r = clink("run", "-p", 1, "-e", "SET on_eval_error = null;" + sql)
    assert [x["none"] for x in sorted(r.rows, key=lambda x: x["a"])][1:] == [True] * 3
    r = clink("run", "-p", 1, "-e", sql, ok=False)
    one_sentence(r, "not in the domain of")


def test_constants_that_are_long(clink):
    """Folding them is tried once, not once a pass; what is too long is said."""
    r = clink("run", "-e", "SELECT CHAR_LENGTH(REPEAT('x', 60000000)) AS n, CHAR_LENGTH(LPAD('', 10000000, 'ab')) AS m, RIGHT(REPEAT('abc', 4), 4) AS s")
    assert r.rows == [{"n": 60000000, "m": 10000000, "s": "cabc"}]
    r = clink("run", "-e", "SELECT CONCAT(REPEAT('a', 60000000), REPEAT('a', 60000000)) AS r", ok=False)
    one_sentence(r, "64 MiB")
