"""Plugins: functions and aggregates of shared libraries, beside an oracle in Python; and one sentence for each thing that is wrong with one."""
import json
import math
import os
import subprocess

import pytest
from conftest import CLINK, TOP, run_clink, write_ndjson

SANITIZE = os.environ.get("CLINK_SANITIZE", "")


def build(source, out, *flags, compiler=("gcc", "-std=c17")):
    subprocess.run([*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", "-shared", "-fPIC", f"-I{TOP}/include", *flags,
                    os.path.join(TOP, source), "-o", str(out), "-lm"], check=True)
    return str(out)


@pytest.fixture(scope="session")
def so(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")

    def made(source, *flags):  # flags: -D..., further sources
        out = folder / ("_".join([os.path.basename(f).split(".")[0] for f in (source, *flags)]).replace("-", "").replace("=", "") + ".so")
        return str(out) if out.exists() else build(source, out, *flags)

    return made


@pytest.fixture
def functions(so):
    return so("examples/plugin_functions.c")


def rows_of(n):
    words = ["Ada", "Grace Hopper", "jean-luc de la tour von und zu", "", "123", None, "ß x", "a" * 200 + " b"]
    return [{"k": i % 7, "x": 1 + i % 13 if i % 11 else None, "t": words[i % len(words)], "ts": 1000 * i} for i in range(n)]


def initials(t):
    if t is None:
        return None
    out, begins = "", True
    for c in t.encode():
        ch = chr(c)
        if begins and ch.isascii() and ch.isalpha():
            out += ch.upper()
        begins = ch in " -"
    return out or None


TABLE = ("CREATE TABLE r (k BIGINT, x DOUBLE, t VARCHAR, ts BIGINT) WITH (connector = 'file', format = 'json', path = '{}', event_time_column = 'ts', "
         "watermark_lag_ms = '0');")


def run(plugin, folder, rows, sql, *flags):
    path = write_ndjson(folder / "r.ndjson", rows)
    return run_clink("run", "--plugin", plugin, "--format", "ndjson", *flags, "-e", TABLE.format(path) + sql)


@pytest.mark.parametrize("flags", [(), ("-p", "3"), ("--set", "batch_rows=7")])
def test_functions_and_aggregates(functions, tmp_path, flags):
    rows = rows_of(10000)
    got = run(functions, tmp_path, rows, "SELECT ts, initials(t) AS i FROM r WHERE k < 3", *flags).rows
    assert sorted((r["ts"], r["i"]) for r in got) == sorted((r["ts"], initials(r["t"])) for r in rows if r["k"] < 3)
    got = run(functions, tmp_path, rows, "SELECT k, geomean(x) AS g, longest(t) AS l, COUNT(*) AS n FROM r GROUP BY k", *flags).rows
    assert len(got) == 7
    for r in got:
        xs = [q["x"] for q in rows if q["k"] == r["k"] and q["x"] is not None]
        assert math.isclose(r["g"], math.exp(sum(map(math.log, xs)) / len(xs)), rel_tol=1e-9)
        assert r["l"] == max((q["t"] for q in rows if q["k"] == r["k"] and q["t"] is not None), key=len)


@pytest.mark.parametrize("window", ["TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '60' SECOND)", "HOP(TABLE r, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '60' SECOND)"])
def test_aggregates_of_windows(functions, tmp_path, window):
    rows = rows_of(1000)
    got = run(functions, tmp_path, rows, f"SELECT k, window_start AS w, geomean(x) AS g, SUM(LN(x)) / COUNT(x) AS h, longest(t) AS l FROM TABLE({window}) GROUP BY k, "
              "window_start, window_end").rows
    assert len(got) > 100
    for r in got:
        assert (r["g"] is None) == (r["h"] is None)
        assert r["g"] is None or math.isclose(r["g"], math.exp(r["h"]), rel_tol=1e-9)


def test_aggregates_of_sessions_and_changes(functions, tmp_path):
    rows = [{"k": k, "x": 2.0 + i, "t": "x" * i, "ts": 10000 * k + 100 * i} for k in range(3) for i in range(20)]
    got = run(functions, tmp_path, rows, "SELECT k, geomean(x) AS g, longest(t) AS l FROM TABLE(SESSION(TABLE r PARTITION BY k, DESCRIPTOR(ts), "
              "INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end").rows
    want = math.exp(sum(math.log(2.0 + i) for i in range(20)) / 20)
    assert len(got) == 3 and all(math.isclose(r["g"], want, rel_tol=1e-9) and r["l"] == "x" * 19 for r in got)
    # over rows that are taken back: the mean of the greatest x of each k, every change of it
    got = run(functions, tmp_path, rows, "SELECT geomean(m) AS g FROM (SELECT k, MAX(x) AS m FROM r GROUP BY k)", "--changes", "--set", "batch_rows=1").lines
    assert math.isclose(json.loads(got[-1].removeprefix("+U "))["g"], 21.0, rel_tol=1e-9) and len(got) > 60
    r = run_clink("run", "--plugin", functions, "--changes", "-e", TABLE.format(tmp_path / "r.ndjson") +
                  "SELECT longest(m) FROM (SELECT k, MAX(t) AS m FROM r GROUP BY k)", ok=False)
    assert r.code == 1 and "longest takes rows that only come" in r.err


def test_state_is_found_again(functions, tmp_path):
    """Killed after a checkpoint, built again, at another parallelism."""
    write_ndjson(tmp_path / "r.ndjson", rows_of(20000))
    (tmp_path / "j.sql").write_text(TABLE.format(tmp_path / "r.ndjson") + "CREATE TABLE o (k BIGINT, g DOUBLE, l VARCHAR, PRIMARY KEY (k) NOT ENFORCED) "
                                    "WITH (connector = 'file', format = 'json', path = 'o', mode = 'upsert'); "
                                    "INSERT INTO o SELECT k, geomean(x), longest(initials(t)) FROM r GROUP BY k;")
    flags = ("run", "--plugin", functions, "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20", "--set", "batch_rows=100")
    r = run_clink(*flags, "j.sql", cwd=tmp_path, env={"CLINK_FAULT": "checkpoint.after_manifest:1:kill"}, ok=False)
    assert r.code < 0, r.err
    again = build("examples/plugin_functions.c", tmp_path / "again.so", "-O0", "-g")
    run_clink("run", "--plugin", again, "--checkpoint-dir", "ck", "-p", "2", "j.sql", cwd=tmp_path)
    got = {}
    for name in os.listdir(tmp_path / "o"):
        if not name.startswith("."):
            got.update((q["k"], q) for q in map(json.loads, open(tmp_path / "o" / name)))
    rows = rows_of(20000)
    for k in range(7):
        xs = [q["x"] for q in rows if q["k"] == k and q["x"] is not None]
        assert math.isclose(got[k]["g"], math.exp(sum(map(math.log, xs)) / len(xs)), rel_tol=1e-9), r.err
        assert got[k]["l"] == "JLDLTVUZ"


VALUES = "FROM (VALUES (1), (NULL), (3)) AS v (a)"


@pytest.mark.parametrize("sql,want", [
    (f"SELECT twice(a) AS r {VALUES}", [2, None, 6]),
    (f"SELECT or_zero(a) AS r {VALUES}", [1, 0, 3]),
    ("SELECT twice('ab') AS r", ["abab"]),
    ("SELECT TWICE(21) AS r", [42]),
    ("SELECT twice('a text of more than twelve bytes') AS r", ["a text of more than twelve bytesa text of more than twelve bytes"]),
    (f"SELECT SUM(twice(a)) AS r {VALUES}", [8]),
    (f"SELECT a AS r {VALUES} WHERE twice(a) > 2", [3]),
    (f"SELECT CASE WHEN a > 100 THEN fails(a) ELSE 0 END AS r {VALUES}", [0, 0, 0]),
    ("CREATE FUNCTION four (a BIGINT) RETURNS BIGINT RETURN twice(twice(a)); SELECT four(1) AS r", [4]),
])
def test_calls(so, sql, want):
    assert [r["r"] for r in run_clink("run", "--plugin", so("tests/plugins/odd.c"), "--format", "ndjson", "-e", sql).rows] == want


def test_they_are_listed(functions, so):
    flags = ("run", "--plugin", functions, "--plugin", so("tests/plugins/odd.c"), "-e")
    for like, want in (("initials", ["initials"]), ("geo%n", ["geomean"]), ("twi%", ["twice"]), ("upper", ["upper"])):
        assert run_clink(*flags, f"SHOW FUNCTIONS LIKE '{like}'").out.split() == want
    r = subprocess.run([CLINK, "sql", "--plugin", functions], input="\\df geo\n", capture_output=True, text=True)
    assert r.stdout.split() == ["geomean"], r.stderr


def test_a_call_is_about_a_batch(so):
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c"), "--format", "ndjson", "-e", "CREATE TABLE g (a BIGINT) WITH (connector = 'datagen', rows = '100000', "
                  "fields.a.kind = 'sequence'); SELECT MAX(batch_size(a)) AS most, SUM(CAST(1 AS DOUBLE) / batch_size(a)) AS calls FROM g")
    assert r.rows[0]["most"] == 4096 and round(r.rows[0]["calls"]) < 50


DAY, US = 86400, 10**6
# What a type has room for, at its ends: the number that the plugin gives, and how it is shown.
ENDS = [("as_date", -719162, "0001-01-01"), ("as_date", 2932896, "9999-12-31"), ("as_time", 0, "00:00:00"), ("as_time", DAY * US - 1, "23:59:59.999"),
        ("as_timestamp", -719162 * DAY * US, "0001-01-01T00:00:00"), ("as_timestamp", 2932897 * DAY * US - 1, "9999-12-31T23:59:59.999"),
        ("as_instant", -719162 * DAY * US, "0001-01-01T00:00:00Z"), ("as_instant", 2932897 * DAY * US - 1, "9999-12-31T23:59:59Z"),
        ("as_bare_time", DAY * US - 1, "23:59:59.999999"), ("as_bare_timestamp", 2932897 * DAY * US - 1, "9999-12-31T23:59:59.999999"),
        ("as_bare_instant", -719162 * DAY * US, "0001-01-01T00:00:00Z"), ("as_months", -2**31, "-178956970-08"), ("as_months", 2**31 - 1, "178956970-07"),
        ("as_decimal", -9999, -99.99), ("as_decimal", 9999, 99.99)]


@pytest.mark.parametrize("name,n,shown", ENDS)
def test_what_a_type_has_no_room_for_is_said(so, name, n, shown):
    flags = ("run", "--plugin", so("tests/plugins/odd.c"), "--format", "ndjson", "-e")
    assert run_clink(*flags, f"SELECT {name}({n}) AS x").rows == [{"x": shown}]
    for out in (n + (1 if n > 0 else -1), -2**63 + 1, 2**63 - 1):
        r = run_clink(*flags, f"SELECT {name}({out}) AS x", ok=False)
        assert r.code == 1 and f"{name} of plugin odd gave a number out of range for the type it returns" in r.err, (out, r.err)


@pytest.mark.parametrize("n,shown", [(-2**63, "-106751991 04:00:54.775808"), (2**63 - 1, "106751991 04:00:54.775807")])
def test_an_interval_of_time_has_room_for_every_number(so, n, shown):
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c"), "--format", "ndjson", "-e", f"SELECT CAST(as_interval(CAST('{n}' AS BIGINT)) AS VARCHAR) AS x")
    assert r.rows == [{"x": shown}]


def test_a_time_has_the_digits_of_its_type(so):
    """Two times that are shown alike are one group."""
    sql = "SELECT x, COUNT(*) AS n FROM (SELECT as_timestamp(a) AS x FROM (VALUES (-1), (-1000), (1001), (1999)) AS t(a)) GROUP BY x ORDER BY x"
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c"), "--format", "ndjson", "-e", sql)
    assert r.rows == [{"x": "1969-12-31T23:59:59.999", "n": 2}, {"x": "1970-01-01T00:00:00.001", "n": 2}]


@pytest.mark.parametrize("call,shown", [("EXTRACT(EPOCH FROM null_date(a))", 0), ("EXTRACT(YEAR FROM null_timestamp(a))", 1970),
                                        ("null_timestamp(a) + INTERVAL '1' MONTH", "1970-02-01T00:00:00"), ("LAST_DAY(null_date(a))", "1970-01-31"),
                                        ("EXTRACT(HOUR FROM fail_date(a))", 0), ("TIMESTAMPADD(DAY, 1, fail_date(a))", "1970-01-02"), ("fail_small(a)", 0)])
def test_what_stands_where_there_is_no_value_is_nothing(so, tmp_path, call, shown):
    path = write_ndjson(tmp_path / "t.ndjson", [{"a": i} for i in range(100)])
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c"), "--format", "ndjson", "-e", "SET on_eval_error = 'null'; "
                  f"CREATE TABLE t (a BIGINT) WITH (connector = 'file', format = 'json', path = '{path}'); SELECT {call} AS x FROM t")
    assert [row["x"] for row in r.rows] == [None if i % 2 else shown for i in range(100)]


@pytest.mark.parametrize("sql,says", [
    ("SELECT gives_null(1)", "gives_null of plugin odd gave NULL, which it may not without CLINK_GIVES_NULLS"),
    ("SELECT fails(1)", "fails of plugin odd: the table of zones is not there"),
    ("SELECT fails_silently()", "fails_silently of plugin odd: it failed and did not say why"),
    ("SELECT marks(1)", "marks of plugin odd calls clink_fail_row, which it may not without CLINK_FAILS"),
    ("SELECT no_utf8(1)", "no_utf8 of plugin odd gave a text that is not UTF-8"),
    ("SELECT too_far(1)", "too_far of plugin odd gave a text beyond the room it was given"),
    ("SELECT too_far_bytes(1)", "too_far_bytes of plugin odd gave a text beyond the room it was given"),
    ("SELECT fails_oddly(1)", "fails_oddly of plugin odd: a..[31m"),
    ("SELECT too_big(1)", "too_big of plugin odd gave a number out of range for the type it returns"),
    ("SELECT not_opened(1)", "not_opened of plugin odd: zones.txt is missing"),
    ("SELECT twice(TRUE)", "no function twice(BOOLEAN); twice of plugin odd takes (BIGINT) or (VARCHAR)"),
    ("SELECT twice(1, 2)", "no function twice(INTEGER, INTEGER)"),
    ("SELECT twce(1)", 'there is no function "twce"; did you mean "twice"?'),
    ("CREATE FUNCTION twice (a BIGINT) RETURNS BIGINT RETURN a", 'there is a function "twice" of a plugin already'),
])
def test_calls_that_fail(so, sql, says):
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c"), "-e", sql, ok=False)
    assert r.code == 1 and says in r.err, r.err


def test_a_failure_names_row_and_operator(so, tmp_path):
    path = write_ndjson(tmp_path / "t.ndjson", [{"a": 5}, {"a": 6}])
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c"), "-e", f"CREATE TABLE t (a BIGINT) WITH (connector = 'file', format = 'json', path = '{path}'); "
                  "SELECT fails(a) AS f FROM t WHERE a > 5", ok=False)
    assert r.code == 1 and "fails of plugin odd: the table of zones is not there" in r.err and "fails(a)" in r.err and "t.ndjson" in r.err, r.err


@pytest.mark.parametrize("flags,says", [
    (["-DNOTE_ABI=7"], "it is made for version 7 of the plugin ABI, and this clink has version 1"),
    (["-DABI=3"], "its table is of version 3 of the plugin ABI, and this clink has version 1"),
    (["-DNO_NOTE"], "this is no clink plugin: it does not say CLINK_PLUGIN(table)"),
    (["-DNO_TABLE"], "it does not export clink_plugin_table"),
    (["-DBYTES=8"], "the struct_bytes of its table is 8, and "),
    (["-DBYTES=sizeof(odd)", "-DNEWER"], "uses what this clink, which knows "),
    (["-DMISSING"], "it cannot be loaded: undefined symbol: nobody_has_this"),
    (["-DCRASHES"], "it ended the process with signal 11 (Segmentation fault)"),
    (["-DEXITS"], "it ended the process"),
    (["-DHANGS"], "it took longer than 20 seconds"),
    (["-DBUILT_IN"], 'plugin odd has a function "UPPER", which is built in; it must have another name'),
    (["-DNO_CALL"], "plugin odd: function nothing lacks call"),
    (["-DODD_FLAGS"], "plugin odd: function flags has flags (0x400) that this clink does not know"),
    (["-DSAME"], "plugin odd has function twice(BIGINT) twice"),
    (['-DODD_NAME="a\\nb"'], "its table's name has a character that is not shown"), (['-DODD_NAME=""'], "its table has no name"),
    (["-DODD_TYPE"], 'plugin odd: odd has "BIGINT, NUMBR", where "NUMBR" is no SQL type'),
])
def test_plugins_that_do_not_load(so, flags, says):
    if SANITIZE and flags in (["-DCRASHES"], ["-DEXITS"]):
        pytest.skip("the sanitizer ends the process in its own way")
    r = run_clink("run", "--plugin", so("tests/plugins/odd.c", *flags), "-e", "SELECT 1", ok=False)
    assert r.code == 1 and says in r.err and len(r.err.splitlines()) == 1, r.err


def test_an_older_and_a_newer_table(so):
    """What a plugin made with another header of this ABI does not use does not matter."""
    for flags in (["-DBYTES=sizeof(odd)"],):
        assert run_clink("run", "--plugin", so("tests/plugins/odd.c", *flags), "--format", "ndjson", "-e", "SELECT twice(1) AS r").rows == [{"r": 2}]


@pytest.mark.parametrize("text,says", [
    (b"", "this is no shared library"), (b"\x7fELF", "this is no shared library"), (b"SELECT 1;" * 50, "this is no shared library"),
])
def test_files_that_are_none(tmp_path, text, says):
    (tmp_path / "x.so").write_bytes(text)
    r = run_clink("run", "--plugin", tmp_path / "x.so", "-e", "SELECT 1", ok=False)
    assert r.code == 1 and says in r.err
    r = run_clink("run", "--plugin", tmp_path / "y.so", "-e", "SELECT 1", ok=False)
    assert r.code == 1 and f"plugin {tmp_path}/y.so: there is no such file" in r.err


def test_two_of_one_name(functions, tmp_path):
    again = build("examples/plugin_functions.c", tmp_path / "again.so")
    r = run_clink("run", "--plugin", functions, "--plugin", again, "-e", "SELECT 1", ok=False)
    assert r.code == 1 and "is a plugin named functions already" in r.err
    run_clink("run", "--plugin", functions, "--plugin", functions, "-e", "SELECT 1")
    r = run_clink("run", "-e", "SELECT initials('x')", ok=False)
    assert r.code == 1 and 'there is no function "initials"' in r.err


def test_a_catalog_keeps_what_calls_them(functions, tmp_path):
    run_clink("run", "--plugin", functions, "--catalog", tmp_path / "c", "-e", "CREATE VIEW v AS SELECT initials('Ada Lovelace') AS i")
    assert run_clink("run", "--plugin", functions, "--catalog", tmp_path / "c", "--format", "ndjson", "-e", "SELECT * FROM v").rows == [{"i": "AL"}]
    r = run_clink("run", "--catalog", tmp_path / "c", "-e", "SELECT * FROM v", ok=False)
    assert r.code == 1 and "initials" in r.err
