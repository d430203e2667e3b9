"""What is wrong with an option is said with the place where the option stands, wherever it is found out: when the table is made, read, written, looked
up in, or asked for by another table."""
import os
import re

import pytest

COMMON = {"watermark_lag_ms": ["-1", "x", "9e9"], "idle_timeout_ms": ["-1", ""], "allowed_lateness_ms": ["-4", "1.5"], "state_ttl": ["5", "x", "-1 h", ""], "late_table": ["nothing"]}
# connector: (columns, what it needs, option: bad values)
TABLES = {
    "file": ("a BIGINT, at TIMESTAMP(3)", "path='in.csv'", {
        "format": ["", "xml"], "path": [""], "header": ["maybe", ""], "delimiter": ["", "ab", '"', "\n"], "compression": ["rar", ""], "strict": ["2"],
        "on_error": ["ignore", "dead_letter"], "dead_letter_table": ["nothing"], "follow": ["x"], "rate_limit": ["0", "-1", "x", "nan", "inf", ""],
        "lookup.cache_ttl_ms": ["-1", "x", "99999999999999999999"], "lookup.max_bytes": ["-1", "0", "x"], "part_bytes": ["0", "-1", "x"],
        "mode": ["x"], "delivery": ["twice"]}),
    "datagen": ("a BIGINT, at TIMESTAMP(3)", "rows='3'", {
        "rows": ["-1", "x", "99999999999999999999", ""], "seed": ["x", "1.5", ""], "rate_limit": ["-1", "x", "nan"], "fields.a.kind": ["even"],
        "fields.a.min": ["x", "1.5"], "fields.a.max": ["-1", "x"], "fields.a.step": ["0", "x"], "fields.a.length": ["3"], "fields.nope.kind": ["random"],
        "fields.at.length": ["5"]}),
    "nexmark": ("auction BIGINT, dateTime TIMESTAMP(3)", "\"table\"='bid'", {
        "table": ["bids", ""], "events": ["-1", "x"], "events_per_second": ["0", "-1", "x"], "rate_limit": ["-1", "x"], "seed": ["x", ""]}),
    "kafka": ("a BIGINT, at TIMESTAMP(3)", "brokers='localhost:1', topic='t'", {
        "format": ["xml"], "start": ["now"], "start_timestamp_ms": ["x", "5"], "start_offsets": ["x", "0:1"], "bounded": ["x"], "discover_ms": ["-1", "x"],
        "strict": ["x"], "on_error": ["ignore", "dead_letter"], "dead_letter_table": ["nothing"], "timeout_ms": ["0", "x"], "brokers": [""], "topic": [""]}),
}


def cases():
    for connector, (columns, needs, options) in TABLES.items():
        for option, values in {**options, **(COMMON if connector == "file" else {})}.items():
            for value in values:
                yield pytest.param(connector, columns, needs, option, value, id=f"{connector}-{option}-{value}".replace("\n", "nl"))


@pytest.mark.parametrize("connector,columns,needs,option,value", cases())
def test_points_at_the_option(clink, tmp_path, connector, columns, needs, option, value):
    (tmp_path / "in.csv").write_text("1,2024-01-01T00:00:00\n")
    time = re.search(r"(\w+) TIMESTAMP", columns)[1]
    watermark = f", WATERMARK FOR {time} AS {time}" if option in COMMON and option not in ("watermark_lag_ms", "state_ttl") else ""
    needs = ", ".join(n for n in needs.split(", ") if n.split("=")[0].strip('"') != option)
    more = f", event_time_column = '{time}'" if option == "watermark_lag_ms" else ", on_error = 'dead_letter'" if option == "dead_letter_table" else ""
    sql = (f"CREATE TABLE t ({columns}{watermark}) WITH (connector = '{connector}', {needs + ', ' if needs else ''}\n"
           f"   '{option}' = '{value}'{more});\nCREATE TABLE p (k BIGINT, at AS PROCTIME()) WITH (connector = 'datagen', rows = 1);\n")
    first = columns.split()[0]
    use = (f"SELECT p.k FROM p JOIN t FOR SYSTEM_TIME AS OF p.at ON p.k = t.{first}" if "lookup" in option
           else f"SELECT TUMBLE_START({time}, INTERVAL '1' HOUR) AS w, COUNT(*) AS n FROM t GROUP BY TUMBLE({time}, INTERVAL '1' HOUR)" if option == "late_table"
           else f"SELECT {first} FROM t" if option not in ("part_bytes", "mode", "delivery") else f"INSERT INTO t ({first}) SELECT k FROM p")
    r = clink("run", "-e", sql + use, ok=False)
    place = re.match(r"clink: -e:(\d+):(\d+): ", r.err)
    assert r.code == 1 and place, r.err
    at = (int(place[1]), int(place[2]))
    assert at in ((2, 4), (2, 4 + len(option) + 5)), r.err
    assert f"{option}" in r.err.splitlines()[0], r.err


def test_points_at_the_option_of_an_earlier_statement(clink, tmp_path):
    """Through a stored catalog, ALTER TABLE, and of a table that is only named by another."""
    r = clink("run", "-e", "SELECT 1 AS one;\nCREATE TABLE t (a BIGINT)\n WITH (connector='file', format='json',\n path='x*.json');\nINSERT INTO t SELECT 1", ok=False)
    assert r.err.startswith("clink: -e:4:7: table \"t\": path = 'x*.json' is a pattern"), r.err
    clink("run", "--catalog", "cat", "-e", "CREATE TABLE t (a BIGINT) WITH (connector='file', format='json',\n path='x*.json')")
    r = clink("run", "--catalog", "cat", "-e", "INSERT INTO t SELECT 1", ok=False)
    assert re.search(r"catalog.sql:3:7: table \"t\": path = ", r.err), r.err
    r = clink("run", "--catalog", "cat", "-e", "ALTER TABLE t SET (format = 'json',\n rate_limit = 'x')", ok=False)
    assert r.err.startswith("clink: -e:2:15: table \"t\": option 'rate_limit' is 'x'"), r.err


@pytest.mark.parametrize("path,says", [("nope.json", "2:7: table t: there is no file nope.json"), ("no/*.json", "2:7: table t: no file matches no/*.json"),
                                       ("x.json/y.json", "2:7: table t: "), ("shut.json", "2:7: table t: opening shut.json: Permission denied")])
def test_input_that_is_not_there_is_placed_in_the_script(clink, tmp_path, path, says):
    """And output that cannot be: where its table is defined, also in a shell where that was long ago."""
    (tmp_path / "x.json").write_text('{"a":1}\n')
    (tmp_path / "shut.json").touch(mode=0)
    if path == "shut.json" and os.access(tmp_path / path, os.R_OK):
        pytest.skip("root may read everything")
    table = f"CREATE TABLE t (a BIGINT) WITH (connector='file',\n path='{path}');\n"
    r = clink("run", "-e", table + "SELECT a FROM t", ok=False)
    assert r.code == 1 and r.err.startswith("clink: -e:" + says), r.err
    assert r.err.splitlines()[1:] == [f"   path='{path}')", "        ^"], r.err
    r = clink("sql", stdin=table + "SELECT a FROM t;", ok=False)
    assert r.err.startswith("clink: sql:" + says), r.err


def test_output_that_cannot_be_is_placed_in_the_script(clink, tmp_path):
    (tmp_path / "x.json").write_text('{"a":1}\n')
    r = clink("run", "-e", "CREATE TABLE o (a BIGINT) WITH (connector='file', format='json',\n path='x.json/y');\nINSERT INTO o SELECT 1", ok=False)
    assert r.code == 1 and "clink: -e:2:7: table o: x.json/y cannot be made: x.json is a file" in r.err, r.err


T = "CREATE TABLE names (id BIGINT, name VARCHAR, at TIMESTAMP(3)) WITH (connector='file', path='x.json');"
MISSPELT = [
    ("SELECT UPER(name) FROM names", 'there is no function "UPER"; did you mean "upper"?'),
    ("SELECT SUMM(id) FROM names", 'did you mean "sum"?'),
    ("SELECT COUNTT(DISTINCT id) FROM names", 'there is no function "COUNTT"; did you mean "count"?'),
    ("SELECT SUMM(id) FILTER (WHERE id > 1) FROM names", 'there is no function "SUMM"; did you mean "sum"?'),
    ("SELECT LAGG(id) OVER (ORDER BY at) FROM names", 'OVER with LAGG is not supported; did you mean "lag"?'),
    ("SELECT zzzz(id) OVER (ORDER BY at) FROM names", "OVER with zzzz is not supported; it goes with COUNT, SUM,"),
    ("SELECT zzzz(id) FROM names", 'there is no function "zzzz"; one of your own comes with --plugin FILE.so or CREATE FUNCTION'),
    ("SELECT COUNT(*) FROM names GROUP BY TUMBEL(at, INTERVAL '1' SECOND)", 'there is no function "TUMBEL"; did you mean "tumble"?'),
    ("SELECT * FROM TABLE(TUMBEL(TABLE names, DESCRIPTOR(at), INTERVAL '1' SECOND))", 'there is no table function TUMBEL; did you mean "TUMBLE"?'),
    ("SELECT * FROM UNEST(ARRAY[1]) AS t (x)", 'there is no table function UNEST; did you mean "UNNEST"?'),
    ("SELECT * FROM zzzz(1)", "there is no table function zzzz; TUMBLE, HOP, CUMULATE, SESSION and UNNEST are there"),
    ("SELECT SUM(id) OVER wind FROM names WINDOW win AS (ORDER BY at)", 'there is no WINDOW "wind"; did you mean "win"?'),
    ("SELECT 1 FROM names JOIN (VALUES (1)) AS v (id) USING (ids)", 'USING: there is no column "ids" on the left of the join; did you mean "id"?'),
    ("CREATE TABLE x (name VARCHAR, PRIMARY KEY (nam) NOT ENFORCED) WITH (connector='blackhole')", 'PRIMARY KEY: there is no column "nam"; did you mean "name"?'),
    ("CREATE TABLE x (stamp TIMESTAMP(3), WATERMARK FOR stam AS stam) WITH (connector='file', path='x.json')", 'WATERMARK FOR: there is no column "stam"; did you mean "stamp"?'),
    ("CREATE TABLE x (stamp TIMESTAMP(3)) WITH (connector='file', path='x.json', event_time_column='stam')", 'event_time_column: there is no column "stam"; did you mean "stamp"?'),
    ("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2; DROP FUNCTION twic", 'CREATE FUNCTION has made no "twic"; did you mean "twice"?'),
    ("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2; SHOW CREATE FUNCTION twic", 'CREATE FUNCTION has made no "twic"; did you mean "twice"?'),
    ("CREATE TABLE x (a INT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', path='x.json', late_table='namess'); "
     "SELECT COUNT(*) FROM x GROUP BY TUMBLE(at, INTERVAL '1' SECOND)", "late_table = 'namess' is no table; did you mean \"names\"?"),
    ("CREATE TABLE x (a INT) WITH (connector='file', path='x.json', on_error='dead_letter', dead_letter_table='namess'); SELECT * FROM x",
     "dead_letter_table = 'namess' is no table; did you mean \"names\"?"),
    ("SELECT * FROM nmaes", 'unknown table "nmaes"; did you mean "names"?'),
    ("DROP TABLE namess", 'did you mean "names"?'),
    ("CREATE TABLE x (a INT) WITH (connector='file', path='x', format='jsn')", "did you mean 'json'?"),
    ("CREATE TABLE x (a INT) WITH (connector='file', pth='x', format='json')", "did you mean 'path'?"),
    ("CREATE TABLE x (a INT) WITH (connector='zzzz')", "unknown connector zzzz; there are file,"),
    ("CREATE TABLE x (a INT) WITH (connector='zzzz')", ", and those of --plugin FILE.so"),
]


@pytest.mark.parametrize("sql,says", MISSPELT)
def test_whatever_is_misspelt_has_its_nearest_name(clink, tmp_path, sql, says):
    (tmp_path / "x.json").write_text("")
    r = clink("run", "-e", T + sql, ok=False)
    assert r.code == 1 and r.err.startswith("clink: -e:1:") and says in r.err.splitlines()[0], r.err


@pytest.mark.parametrize("sql,says", [
    ("CREATE TABLE t (a BIGINT) WITH (connector='')", "1:43: the connector's name is empty; there are file,"),
    ("CREATE TABLE t (a BIGINT) WITH (connector='fil')", "1:43: unknown connector fil, did you mean file?"),
    ("CREATE TABLE t (a BIGINT) WITH (connector='file', format='json')", "1:43: table \"t\": a table of connector 'file' needs the option 'path'"),
    ("CREATE TABLE t (a BIGINT) WITH (connector='kafka')", "1:43: table \"t\": a table of connector 'kafka' needs the option 'brokers'"),
    ("CREATE TABLE t (a BIGINT) WITH (connector='file', path='x')", "1:56: table \"t\": path = 'x' does not say the format"),
    ("CREATE TABLE t (a ARRAY<INT>) WITH (connector='datagen')", "datagen cannot make values for column a"),
])
def test_when_the_table_is_made(clink, sql, says):
    r = clink("run", "-e", sql, ok=False)
    assert r.code == 1 and r.err.startswith("clink: -e:") and says in r.err, r.err
