"""Huge, deep and endless SQL: an answer or one clear sentence, never a crash, in bounded time."""
import pytest

MB5 = 5 << 20
DEEP = "nested deeper than 500 levels"


def chain(n, first, link):
    return ", ".join(link.format(i, i - 1) if i else first for i in range(n))


@pytest.mark.parametrize("name,sql,says", [
    ("sum", "SELECT 1" + " + 1" * (MB5 // 4), DEEP),
    ("parentheses", "SELECT " + "(" * (MB5 // 2) + "1" + ")" * (MB5 // 2), DEEP),
    ("case", "SELECT " + "CASE WHEN TRUE THEN " * 100000 + "1" + " END" * 100000, DEEP),
    ("subqueries", "SELECT * FROM (" * 100000 + "SELECT 1" + ") AS t" * 100000, DEEP),
    ("not", "SELECT " + "NOT " * 1000000 + "TRUE", DEEP),
    ("arrays", "SELECT " + "ARRAY[" * 100000 + "1" + "]" * 100000, DEEP),
    ("types", "CREATE TABLE t (a " + "ARRAY<" * 100000 + "INT" + ">" * 100000 + ")", DEEP),
    ("fields", "SELECT " + ".".join(["a"] * 1000000), DEEP),
    ("selects", "SELECT 1;\n" * 20001, "more than 20000 operators"),
    ("unions", "SELECT 1" + " UNION ALL SELECT 1" * 100000, "more than 20000 operators"),
    ("columns", "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(100000)), "at most 4096 are allowed"),
    ("values", "VALUES (1)" + ", (1)" * 1500000, "MiB to plan; write it in parts"),
    ("with", "WITH " + chain(20000, "c0 AS (SELECT 1 AS a)", "c{} AS (SELECT * FROM c{})") + " SELECT * FROM c19999", "over more than 200 levels"),
    ("views", "CREATE VIEW v0 AS SELECT 1 AS a;" + "".join(f"CREATE VIEW v{i} AS SELECT * FROM v{i - 1};" for i in range(1, 300)), "nested deeper than 100 levels"),
    ("recursive view", "CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW w AS SELECT * FROM v; CREATE OR REPLACE VIEW v AS SELECT * FROM w; SELECT * FROM v",
     'view "v" is used inside itself'),
    ("view of itself", "CREATE VIEW v AS SELECT * FROM v", 'view "v" is used inside itself'),
    ("unterminated", "SELECT 'x" + "y" * MB5, "no closing '"),
    ("comment", "/*" + "*" * MB5, "no closing */"),
    ("name", "SELECT " + "a" * MB5, "at most 255 are allowed"),
    ("number", "SELECT " + "9" * MB5, "more than 38 digits"),
    ("grouping sets", "SELECT 1 FROM (VALUES (1, 2)) AS t (a, b) GROUP BY GROUPING SETS (" + ", ".join(["(a, b)"] * 100000) + ")", "more than 64 grouping sets"),
    ("bytes", "SELECT 1 -- " + "x" * (17 << 20), "is longer than 16777216 bytes"),
], ids=lambda v: v if len(v) < 20 else "")
def test_refused_in_one_sentence(clink, tmp_path, name, sql, says):
    (tmp_path / "q.sql").write_text(sql)
    r = clink("run", "q.sql", ok=False)
    assert r.code == 1 and says in r.err and len(r.err) < 1000, (name, r.code, r.err[:500])


@pytest.mark.parametrize("sql,rows", [
    ("SELECT 1 AS a WHERE TRUE" + " AND TRUE" * 100000, ['{"a":1}']),
    ("SET batch_rows = 10;\n" * 100000 + "SELECT 1 AS a", ['{"a":1}']),
    ("".join(f"CREATE TABLE t{i} (a INT);\n" for i in range(20000)) + "SELECT COUNT(*) AS n FROM t19999", ['{"n":0}']),
    (";" * MB5 + "SELECT 1 AS a", ['{"a":1}']),
    ("SELECT CHAR_LENGTH('" + "x" * MB5 + "') AS n", ['{"n":5242880}']),
    ("SELECT i FROM (VALUES (7)) AS t (i) WHERE i IN (1" + "".join(f",{k}" for k in range(100000)) + ")", ['{"i":7}']),
    ("SELECT s FROM (VALUES ('7'), ('8')) AS t (s) WHERE s NOT IN ('8'" + "".join(f",'a key that is long {k}'" for k in range(50000)) + ")", ['{"s":"7"}']),
    ("SELECT i FROM (VALUES (7)) AS t (i) WHERE i = 0" + "".join(f" OR i = {k}" for k in range(8000)), ['{"i":7}']),
    ("SELECT i FROM (VALUES (7)) AS t (i) WHERE i = 0" + "".join(f" OR i * {k} = 35" for k in range(8000)), ['{"i":7}']),
    ("SELECT i FROM (VALUES (7)) AS t (i) WHERE i <> 0" + "".join(f" AND i <> {k}" for k in range(8, 8000)), ['{"i":7}']),
], ids=["and", "statements", "tables", "semicolons", "text", "list", "texts", "or", "or of sums", "and of comparisons"])
def test_large_and_fine(clink, tmp_path, sql, rows):
    (tmp_path / "q.sql").write_text(sql)
    assert clink("run", "q.sql").lines == rows


@pytest.mark.parametrize("query", [
    "SELECT l.v FROM l JOIN r FOR SYSTEM_TIME AS OF l.t AS r ON l.k = r.k AND l.v + r.v IN ({})",
    "SELECT l.v FROM l JOIN r ON l.k = r.k AND l.t BETWEEN r.t AND r.t + INTERVAL '1' DAY AND l.v + r.v IN ({})",
    "SELECT l.v FROM (SELECT *, PROCTIME() AS p FROM l) l JOIN r FOR SYSTEM_TIME AS OF l.p AS r ON l.k = r.k AND l.v + r.v IN ({})",
    "SELECT l.v FROM l JOIN r ON l.k = r.k AND l.v + r.v IN ({})",
    "SELECT v FROM (SELECT v, SUM(CASE WHEN v IN ({}) THEN 1 END) OVER (PARTITION BY k ORDER BY t) AS s FROM l) WHERE s = 1",
    "SELECT SUM(CASE WHEN v IN ({}) THEN v END) AS v FROM l GROUP BY k",
    "SELECT SUM(CASE WHEN v IN ({}) THEN v END) AS v FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(t), INTERVAL '1' DAY)) GROUP BY k, window_start, window_end",
    "SELECT v FROM UNNEST(CASE WHEN 5 IN ({}) THEN ARRAY[5] END) AS u (v)",
], ids=["temporal", "interval", "lookup", "join", "over", "group", "window", "unnest"])
def test_every_operator_takes_large_expressions(clink, tmp_path, query):
    """Lists of 50,000 numbers: what an operator is told has one bound, whatever the operator."""
    (tmp_path / "l.ndjson").write_text('{"k":1,"v":5,"t":"2024-01-01T00:00:00"}\n')
    (tmp_path / "q.sql").write_text("".join(
        f"CREATE TABLE {t} (k BIGINT, v BIGINT, t TIMESTAMP(3){key}, WATERMARK FOR t AS t) WITH (connector='file', path='l.ndjson');"
        for t, key in (("l", ""), ("r", ", PRIMARY KEY (k) NOT ENFORCED"))) + query.format(",".join(map(str, range(5, 250000, 5)))))
    assert clink("run", "q.sql").lines == ['{"v":5}']


@pytest.mark.parametrize("raw,says", [(b"SELECT 1;\nSELECT \x00", "NUL byte at offset 17"), (b"SELECT '\xff'", "byte 0xff is not valid UTF-8"),
                                      (b"\xef\xbb\xbfSELECT 1 AS a", None)], ids=["nul", "utf8", "bom"])
def test_bytes(clink, tmp_path, raw, says):
    (tmp_path / "q.sql").write_bytes(raw)
    r = clink("run", "q.sql", ok=says is None)
    assert (says in r.err and r.code == 1) if says else r.lines == ['{"a":1}']
