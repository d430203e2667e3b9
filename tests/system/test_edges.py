"""What a run does at its edges: descriptors that are closed or full, flags that mean nothing, tables that get in each other's way, arguments of the
library that are not there. Nothing may be lost without a word, and nothing may crash."""
import json
import os
import resource
import subprocess

import pytest
from conftest import BUILD, CLINK, TOP, run_clink, write_ndjson

T = "CREATE TABLE t (a BIGINT) WITH (connector='file', format='json', path='{p}');\n"
NOT_NULL = "CREATE TABLE t (a BIGINT NOT NULL) WITH (connector='file', format='json', path='t.json');\n"


def sink(name, path, more=""):
    return f"CREATE TABLE {name} (a BIGINT{', PRIMARY KEY (a) NOT ENFORCED' if more else ''}) WITH (connector='file', format='json', path='{path}'{more});\n"


@pytest.mark.parametrize("args", [["help"], ["version"], ["help", "run"], ["explain", "-e", "SELECT 1"], ["run", "--explain", "-e", "SELECT 1"], ["run", "-e", "SELECT 1"]])
def test_text_that_is_lost_is_no_success(args):
    with open("/dev/full", "w") as full:
        p = subprocess.run([CLINK, *args], stdout=full, stderr=subprocess.PIPE, text=True)
    assert p.returncode == 1 and "No space left" in p.stderr, (p.returncode, p.stderr)
    p = subprocess.run([CLINK, *args], stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
    assert p.returncode == 1 and "Bad file descriptor" in p.stderr, (p.returncode, p.stderr)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_descriptors_are_not_given_to_files(tmp_path, closed):
    """The message of the failing job must not end in a file that was opened instead of stderr."""
    write_ndjson(tmp_path / "t.json", [{"a": 1}, {"a": 0}])
    sql = T.format(p="t.json") + sink("o", "out") + "INSERT INTO o SELECT 10 / a FROM t"

    def shut():
        for fd in closed:
            os.close(fd)

    p = subprocess.run([CLINK, "run", "--name", "j", "--checkpoint-dir", "ck", "-e", sql], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE if 2 not in closed else None, preexec_fn=shut)
    assert p.returncode == 1
    for folder, _, names in os.walk(tmp_path):
        for n in names:
            with open(os.path.join(folder, n), "rb") as f:
                assert b"clink:" not in f.read(), n


def test_a_file_size_limit_is_an_error(tmp_path):
    write_ndjson(tmp_path / "t.json", [{"a": 1}])
    p = subprocess.run([CLINK, "run", "--name", "j", "--checkpoint-dir", "ck", "-e", T.format(p="t.json") + sink("o", "out") + "INSERT INTO o SELECT a FROM t"],
                       cwd=tmp_path, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert p.returncode == 1 and "File too large" in p.stderr, (p.returncode, p.stderr)


@pytest.mark.parametrize("flags,says", [(["--restore", "5"], "--restore"), (["--fresh"], "--fresh"), (["--allow-duplicates"], "--allow-duplicates"), (["--name", ""], "--name"),
                                        (["--checkpoint-interval-ms", str(2**63 - 1)], "checkpoints")])
def test_flags_that_would_be_ignored(clink, flags, says):
    r = clink("run", "-e", "SELECT 1", *flags, ok=False)
    assert r.code == 2 and says in r.err and r.out == ""


@pytest.mark.parametrize("flags,says", [
    (["--state-backend", "file:", "-"], "--state-backend file:DIR needs a directory"), (["--state-backend", "rocksdb:", "-"], "rocksdb:DIR needs a directory"),
    (["--state-backend", "changelog+file:", "-"], "file:DIR needs a directory"), (["--state-backend"], "--state-backend needs a value"),
    (["--state-backend", "file:work", "-"], "--state-backend file:DIR, which keeps checkpoints, needs --name"),
    (["--checkpoint-dir", "ck", "-"], "--checkpoint-dir needs --name"), (["--checkpoint-dir"], "--checkpoint-dir needs a value")])
def test_what_is_missing_is_said_of_the_flag_that_was_given(clink, tmp_path, flags, says):
    r = clink("run", *flags, stdin="SELECT 1", ok=False)
    assert r.code == 2 and says in r.err and os.listdir(tmp_path) == [], r.err


@pytest.mark.parametrize("flag", ["threads", "checkpoint-timeout-ms", "final-checkpoint-timeout-ms", "alignment-stall-ms", "restore-from-checkpoint-id"])
def test_a_number_is_not_replaced_by_a_default(clink, tmp_path, flag):
    """0 has no meaning there, and is not the default either; nor is what is no number, or larger than there is room for."""
    for value in ("0", "-1", "+1", " 1", "1 ", "1.5", "", "9223372036854775808"):
        r = clink("run", "--name", "j", "--checkpoint-dir", "ck", f"--{flag}={value}", "-e", "SELECT 1", ok=False)
        assert r.code == 2 and f"--{flag} takes a whole number from 1 on, not '{value}'" in r.err and os.listdir(tmp_path) == [], r.err


@pytest.mark.parametrize("flags,says", [(["--threads", "4294967297"], "--threads is 1 to 1024"), (["--materialisation-every", "7"], "--materialisation-every is for --state-backend changelog+")])
def test_a_number_that_would_be_ignored(clink, flags, says):
    r = clink("run", *flags, "-e", "SELECT 1", ok=False)
    assert r.code == 2 and says in r.err, r.err


@pytest.mark.parametrize("verb,flags", [
    ("run", ("restore", "restore-from-dir", "checkpoint-dir", "savepoint-dir", "catalog", "name", "state-backend", "materialisation", "alignment", "added-state",
             "format", "log-level", "plugin", "job")),
    ("explain", ("restore", "checkpoint-dir", "name", "catalog")), ("check-savepoint", ("expected", "name", "added-state")), ("savepoint", ("dispose",)),
    ("submit", ("coordinator", "token-file", "tls-cert", "checkpoint-dir", "name")), ("list", ("coordinator", "token-file", "tls-ca", "tls-key")),
    ("coordinator", ("bind", "metadata-dir", "ha", "token-file")), ("worker", ("name", "data-host", "data-root", "secret-dir", "state-dir")),
    ("dead-letter-replay", ("script", "export", "from"))])
def test_a_path_or_name_is_not_empty(clink, tmp_path, verb, flags):
    """What is not wanted is not given: "" is a variable of a shell that was not set, and not the default."""
    for flag in flags:
        for given in (["--" + flag, ""], ["--%s=" % flag]):
            r = clink(verb, *given, ok=False)
            assert r.code == 2 and "--%s is empty; it takes " % flag in r.err and r.out == "", (flag, r.err)
    assert list(tmp_path.iterdir()) == []


def test_a_place_to_restore_from_has_a_directory(clink):
    r = clink("run", "--name", "j", "--checkpoint-dir", "ck", "--restore", ":3", "-e", "SELECT 1", ok=False)
    assert r.code in (1, 2) and "':3'" in r.err, r.err


# ---- standard input ----


def test_standard_input_cannot_be_promised(clink):
    sql = T.format(p="-") + sink("o", "out") + "INSERT INTO o SELECT a FROM t"
    assert "guarantee: o: none: standard input cannot be read again (t)" in clink("explain", "--name", "j", "--checkpoint-dir", "ck", "-e", sql).out


def test_standard_input_goes_to_one(clink):
    two = T.format(p="-") + T.format(p="-").replace("TABLE t", "TABLE u") + "SELECT a FROM t UNION ALL SELECT a FROM u"
    r = clink("run", "-e", two, stdin='{"a":1}\n', ok=False)
    assert r.code == 1 and '"t" and "u" both read standard input' in r.err and r.out == ""
    twice = T.format(p="-") + "SELECT a FROM t UNION ALL SELECT a FROM t"
    assert clink("run", "-e", twice, stdin='{"a":1}\n').rows == [{"a": 1}, {"a": 1}]
    r = clink("run", "-", stdin=T.format(p="-") + "SELECT a FROM t", ok=False)
    assert r.code == 1 and "script was read from it" in r.err


# ---- one directory, one table ----


@pytest.mark.parametrize("more", ["", ", mode='upsert'"])
@pytest.mark.parametrize("other", ["out", "./out/", "out//."])
def test_two_tables_over_one_directory(clink, tmp_path, more, other):
    write_ndjson(tmp_path / "t.json", [{"a": 1}])
    r = clink("run", "-e", T.format(p="t.json") + sink("o", "out", more) + sink("p", other, more) + "INSERT INTO o SELECT a FROM t;\nINSERT INTO p SELECT a + 1 FROM t", ok=False)
    assert r.code == 1 and '"o" and "p" both write the directory out' in r.err and not (tmp_path / "out").exists()
    clink("run", "-e", T.format(p="t.json") + sink("o", "out", more) + sink("p", "out/p", more) + "INSERT INTO o SELECT a FROM t;\nINSERT INTO p SELECT a + 1 FROM t")


# ---- on_eval_error = null: what fails is NULL, whatever was known of its type ----


@pytest.mark.parametrize(
    "query,rows",
    [
        ("SELECT SUM(10 / a) AS s, COUNT(10 / a) AS c, MIN(10 / a) AS l, MAX(10 / a) AS h, AVG(10 / a) AS m FROM t", [{"s": 5, "c": 1, "l": 5, "h": 5, "m": 5.0}]),
        ("SELECT 10 / a AS x, COUNT(*) AS n FROM t GROUP BY 10 / a", [{"x": None, "n": 2}, {"x": 5, "n": 1}]),
        ("SELECT DISTINCT 10 / a AS x FROM t", [{"x": None}, {"x": 5}]),
        ("SELECT COUNT(DISTINCT 10 / a) AS n FROM t", [{"n": 1}]),
        ("SELECT COALESCE(10 / a, -1) AS x FROM t", [{"x": -1}, {"x": 5}, {"x": -1}]),
        ("SELECT COALESCE(ABS(10 / a) + 1, -1) AS x FROM t", [{"x": -1}, {"x": 6}, {"x": -1}]),
        ("SELECT COUNT(x) AS n, COUNT(*) AS all_rows FROM (SELECT 10 / a AS x FROM t) q", [{"n": 1, "all_rows": 3}]),
        ("SELECT SUM(2 % 0) AS s FROM t", [{"s": None}]),
        ("SELECT COUNT(CAST(CAST(a AS VARCHAR) || 'x' AS BIGINT)) AS n FROM t", [{"n": 0}]),
    ],
)
@pytest.mark.parametrize("p", [1, 2])
def test_what_fails_is_null(clink, tmp_path, query, rows, p):
    write_ndjson(tmp_path / "t.json", [{"a": 0}, {"a": 2}, {"a": 0}])
    got = clink("run", "-p", p, "--set", "on_eval_error=null", "-e", NOT_NULL + query).rows
    assert sorted(map(json.dumps, got)) == sorted(map(json.dumps, rows))


# ---- views ----


def test_views_over_views(clink):
    views = "CREATE VIEW v0 AS SELECT 1 AS a;\n" + "".join(f"CREATE VIEW v{i} AS SELECT a FROM v{i - 1} UNION ALL SELECT a FROM v{i - 1};\n" for i in range(1, 5))
    assert clink("run", "-e", views + "SELECT COUNT(*) AS n FROM v4").rows == [{"n": 16}]
    assert clink("run", "-e", views + "SELECT COUNT(*) AS n FROM v0").rows == [{"n": 1}]


def test_a_view_that_is_replaced(clink):
    out = "CREATE TABLE p (a BIGINT) WITH (connector='print');\n"
    r = clink("run", "-e", "CREATE VIEW v AS SELECT 1 AS a;\nCREATE VIEW w AS SELECT a FROM v;\n" + out
              + "INSERT INTO p SELECT a FROM w;\nCREATE OR REPLACE VIEW v AS SELECT 2 AS a;\nINSERT INTO p SELECT a FROM w;")
    assert sorted(x["a"] for x in r.rows) == [1, 2]


# ---- bad text in messages ----


def test_messages_are_text(tmp_path):
    (tmp_path / "t.json").write_bytes(b'{"a":"\xff\xfe\x1b[31m \xc2\x9b1m \xe2\x82\xac"}\n' + b"\xf0" * 600)
    for skip in (0, 1):
        p = subprocess.run([CLINK, "run", "-e", T.format(p="t.json") + "SELECT a FROM t"], cwd=tmp_path, capture_output=True)
        assert p.returncode == 1
        message = p.stderr.decode("utf-8")
        assert all(c == "\n" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0) for c in message), message
        assert skip or "€" in message
        (tmp_path / "t.json").write_bytes(b"\xf0" * 600)


@pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized binary wants its runtime loaded first")
@pytest.mark.parametrize("second,says", [(-(2**60), "1970-01-01T00:00:00"), (-3600, "1970-01-01T00:00:00"), (0, "1970-01-01T00:00:00"),
                                         (253402300799, "9999-12-31T23:59:59"), (253402300800, "9999-12-31T23:59:59"), (2**60, "9999-12-31T23:59:59")])
def test_a_clock_that_is_far_off(tmp_path, second, says):
    """A clock before 1970 made manifests that nobody could read, and times that SQL has not."""
    clock = tmp_path / "clock.so"
    subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"{TOP}/tests/plugins/jumping_clock.c", "-o", str(clock)], check=True)
    write_ndjson(tmp_path / "t.json", [{"a": 1}])
    sql = T.format(p="t.json") + "CREATE TABLE o (a BIGINT, at VARCHAR) WITH (connector='file', format='json', path='out'); INSERT INTO o SELECT a, CAST(NOW() AS VARCHAR) FROM t"
    env = {"LD_PRELOAD": str(clock), "CLINK_CLOCK": str(second)}
    run_clink("run", "--name", "j", "--checkpoint-dir", "ck", "-e", sql, cwd=tmp_path, env=env)
    rows = [json.loads(line) for p in sorted((tmp_path / "out").iterdir()) for line in p.read_text().splitlines()]
    assert [(r["a"], r["at"].replace(" ", "T")[:19]) for r in rows] == [(1, says)]
    r = run_clink("run", "--name", "j", "--checkpoint-dir", "ck", "-e", sql, cwd=tmp_path)
    assert "has finished before" in r.err, r.err


# ---- the library ----


@pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")
def test_arguments_that_are_not_there():
    """In a process of its own: what is wrong here kills it."""
    code = f"""
import ctypes as c
L = c.CDLL({os.path.join(BUILD, "libclink.so")!r})
P = c.c_void_p
INVALID = 2
e, job, text, n = P(), P(), P(), c.c_uint64()
assert L.clink_open(None, None, None) == INVALID
assert L.clink_open(None, c.byref(e), None) == 0
assert L.clink_execute(e, None, None, c.byref(job), None) == INVALID
assert L.clink_execute(e, b"SELECT 1", None, None, None) == INVALID
assert L.clink_execute(None, b"SELECT 1", None, c.byref(job), None) == INVALID
assert L.clink_explain(e, b"SELECT 1", None, None, None) == INVALID
assert L.clink_explain(e, None, None, c.byref(text), None) == INVALID
assert L.clink_set(e, None, b"1", None) == INVALID and L.clink_set(e, b"batch_rows", None, None) == INVALID
assert L.clink_execute(e, b"SET batch_rows = 5", None, c.byref(job), None) == 0 and not job.value
assert L.clink_job_wait(job, P(-1), None) == INVALID  # nothing ran, so nothing can be waited for
assert L.clink_job_stream(job, None, None) == INVALID
assert L.clink_job_savepoint(job, P(0), None, None) == INVALID
L.clink_job_name.restype = L.clink_job_text.restype = L.clink_job_guarantee.restype = L.clink_job_warning.restype = c.c_char_p
assert L.clink_job_name(job) == b"" and L.clink_job_text(job) == b"" and L.clink_job_guarantee(job) == b"" and L.clink_job_warning(job, P(0)) is None
assert L.clink_job_was_finished(job) == 0 and L.clink_job_has_result(job) == 0
L.clink_job_progress(job, None)
L.clink_job_cancel(job)
L.clink_job_free(job)
assert L.clink_execute(e, b"SELECT 1", None, c.byref(job), None) == 0
assert L.clink_job_stream(job, None, None) == INVALID
L.clink_job_free(job)
L.clink_close(e)
L.clink_close(None)
"""
    p = subprocess.run(["python3", "-c", code], capture_output=True, text=True)
    assert p.returncode == 0, (p.returncode, p.stderr)


# ---- fewer subtasks than the last time ----


@pytest.mark.parametrize("flags,more", [([], ""), (["--name", "j", "--checkpoint-dir", "ck"], ""), (["--name", "j", "--checkpoint-dir", "ck"], ", delivery='at_least_once'")])
def test_rows_of_subtasks_that_are_no_more(clink, tmp_path, flags, more):
    write_ndjson(tmp_path / "t.json", [{"a": i % 50} for i in range(1000)])
    sql = T.format(p="t.json") + sink("o", "out", ", mode='upsert'" + more) + "INSERT INTO o SELECT a FROM t GROUP BY a"
    for p in (4, 1):
        clink("run", "-p", p, *(flags + ["--fresh"] if flags and p == 1 else flags), "-e", sql)
    rows = [json.loads(line)["a"] for n in os.listdir(tmp_path / "out") for line in open(tmp_path / "out" / n)]
    assert sorted(rows) == list(range(50)) and os.listdir(tmp_path / "out") == ["rows-0.json"]


def test_as_many_columns_of_one_name_as_there_may_be(clink):
    cols = ",".join(["a"] * 4096)
    (row,) = clink("run", "-e", f"SELECT {cols} FROM (VALUES (1)) t(a) GROUP BY {cols}").rows
    assert len(row) == 4096 and set(row.values()) == {1} and "a_4095" in row
    assert list(clink("run", "-e", "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a").rows[0]) == ["a", "a_1", "a_1_1", "a_2"]


# ---- NOT NULL is kept by what is written ----


@pytest.mark.parametrize("out", ["connector='file', format='json', path='out'", "connector='file', format='json', path='out', mode='upsert'", "connector='print'"])
def test_null_into_a_column_that_is_not_null(clink, tmp_path, out):
    write_ndjson(tmp_path / "t.json", [{"a": 1}, {"a": None}])
    sql = (T.format(p="t.json") + f"CREATE TABLE o (k BIGINT, a BIGINT NOT NULL, PRIMARY KEY (k) NOT ENFORCED) WITH ({out});\n"
           + "INSERT INTO o SELECT k, a FROM (SELECT COALESCE(a, 7) AS k, MAX(a) AS a FROM t GROUP BY COALESCE(a, 7)) q{}")
    r = clink("run", "-e", sql.format(""), ok=False)
    assert r.code == 1 and 'column "a" of "o" is NOT NULL' in r.err and r.out == ""
    assert not [n for n in os.listdir(tmp_path / "out") if not n.startswith(".")] if (tmp_path / "out").exists() else True
    clink("run", "-e", sql.format(" WHERE a IS NOT NULL"))


def test_one_row_is_updated(clink, tmp_path):
    """Versions of a global aggregate are updates, as those of a group are."""
    (tmp_path / "t.ndjson").write_text('{"a":1}\n{"a":2}\n{"a":2}\n')
    ddl = "CREATE TABLE t (a BIGINT) WITH (connector='file', path='t.ndjson'); "
    run = lambda sql: clink("run", "--changes", "--set", "batch_rows=1", "-e", ddl + sql).lines
    assert run("SELECT COUNT(*) AS n FROM t") == ['{"n":1}', '-U {"n":1}', '+U {"n":2}', '-U {"n":2}', '+U {"n":3}']
    assert run("SELECT a, COUNT(*) AS n FROM t GROUP BY a")[-2:] == ['-U {"a":2,"n":1}', '+U {"a":2,"n":2}']
    assert run("SELECT * FROM (SELECT COUNT(*) AS n FROM t) AS x WHERE n < 3")[-1] == '-D {"n":2}'


def test_made_values_fit_their_types(clink):
    with_options = "WITH (connector='datagen', rows=300{})"
    table = ("CREATE TABLE t (s VARCHAR(3), c CHAR(2), b VARBINARY(2), n VARCHAR(2), t0 TIME(0), ts TIMESTAMP(0), t3 TIMESTAMP_LTZ(3)) "
             + with_options.format(", fields.n.kind='sequence'") + ";")
    rows = clink("run", "-e", table + "SELECT s, c, b, n, CAST(t0 AS TIME(6)) AS t0, CAST(ts AS TIMESTAMP(6)) AS ts, CAST(t3 AS TIMESTAMP_LTZ(6)) AS t3 FROM t").rows
    assert len(rows) == 300 and {len(r["s"]) for r in rows} == {3} and {len(r["c"]) for r in rows} == {2} and {len(r["b"]) for r in rows} == {4}
    assert {len(r["n"]) for r in rows} == {2} and rows[150]["n"] == "50"  # a sequence begins again
    assert all("." not in r["t0"] + r["ts"] and len(r["t3"].partition(".")[2]) in (0, 4) for r in rows)
    for column, option, says in (("s VARCHAR(3)", "fields.s.length=4", "'fields.s.length' is 4, and the column is VARCHAR(3)"),
                                 ("s VARCHAR(3)", "fields.s.max=1000", "'fields.s.max': the range has texts that are longer than VARCHAR(3)"),
                                 ("s CHAR(3)", "fields.s.min='-100'", "'fields.s.min': the range has texts that are longer than VARCHAR(3)")):
        r = clink("run", "-e", f"CREATE TABLE t ({column}) " + with_options.format(", " + option) + "; SELECT * FROM t", ok=False)
        assert r.code == 1 and says in r.err, r.err
    bids = "CREATE TABLE bid (url VARCHAR, datetime TIMESTAMP(1)) WITH (connector='nexmark', events=500);"
    assert clink("run", "-e", bids + "SELECT COUNT(DISTINCT datetime) AS n FROM bid").rows == [{"n": 1}]
    r = clink("run", "-e", bids.replace("VARCHAR", "VARCHAR(9)") + "SELECT url FROM bid", ok=False)
    assert r.code == 1 and "column url of a nexmark bid is VARCHAR without a length" in r.err, r.err
