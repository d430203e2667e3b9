"""`clink run` as its user meets it: the quick start, output shapes, exit codes."""
import json

import pytest

ORDERS = '{"usr":"alice","amount":12}\n{"usr":"bob","amount":7}\n{"usr":"alice","amount":5}\n'
DDL = "CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson');\n"
SUM = "SELECT usr, SUM(amount) AS total FROM orders GROUP BY usr"


@pytest.fixture
def orders(tmp_path):
    (tmp_path / "orders.ndjson").write_text(ORDERS)


def test_quick_start(clink, orders):
    r = clink("run", "-e", DDL + SUM)
    assert sorted(r.lines) == ['{"usr":"alice","total":17}', '{"usr":"bob","total":7}']
    assert r.err == ""


@pytest.mark.parametrize("how", ["file", "stdin", "equals"])
def test_script_sources(clink, orders, tmp_path, how):
    sql = DDL + SUM
    if how == "file":
        (tmp_path / "q.sql").write_text(sql)
        r = clink("run", "q.sql")
    elif how == "stdin":
        r = clink("run", "-", stdin=sql)
    else:
        r = clink("run", "--execute=" + sql, "--parallelism=2")
    assert sorted(r.lines) == ['{"usr":"alice","total":17}', '{"usr":"bob","total":7}']


def test_changes_have_prefixes(clink, orders):
    r = clink("run", "--changes", "--set", "batch_rows=1", "-e", DDL + SUM)
    assert r.lines == ['{"usr":"alice","total":12}', '{"usr":"bob","total":7}', '-U {"usr":"alice","total":12}', '+U {"usr":"alice","total":17}']


def test_changes_as_json(clink, orders):
    r = clink("run", "--changes=json", "--set", "batch_rows=1", "-e", DDL + SUM)
    assert [x["op"] for x in r.rows] == ["+I", "+I", "-U", "+U"]
    assert list(r.rows[0]) == ["op", "usr", "total"]


def test_table_and_csv(clink, orders):
    r = clink("run", "--format", "table", "-e", DDL + "SELECT usr, amount FROM orders")
    assert r.lines == ["usr   | amount", "------+-------", "alice |     12", "bob   |      7", "alice |      5", "(3 rows)"]
    r = clink("run", "--format=csv", "-e", DDL + "SELECT usr, amount FROM orders")
    assert r.lines == ["usr,amount", "alice,12", "bob,7", "alice,5"]


def test_explain(clink, orders):
    for args in (("explain",), ("run", "--explain")):
        r = clink(*args, "-e", DDL + SUM)
        assert "group_agg" in r.out and "bounded" in r.out and "append" in r.out


@pytest.mark.parametrize(
    "args,code,says",
    [
        ((), 2, "usage"),
        (("rnu",), 2, "did you mean 'run'"),
        (("run",), 2, "script is missing"),
        (("run", "--paralelism=2", "-e", "x"), 2, "did you mean --parallelism"),
        (("run", "-p", "x", "-e", "x"), 2, "whole number"),
        (("run", "-p"), 2, "needs a value"),
        (("run", "-p", "0", "-e", "x"), 2, "1 to 1024"),
        (("run", "--format", "xml", "-e", "x"), 2, "ndjson, table or csv"),
        (("run", "--fresh=yes", "-e", "x"), 2, "takes no value"),
        (("run", "no-such-file.sql"), 1, "no-such-file.sql"),
        (("run", "-e", "SELEC 1"), 1, "1:1"),
        (("run", "-e", "/* unclosed"), 1, "-e:1:1: this comment has no closing */"),
        (("run", "-e", "\n  /* a /* b */ SELECT 1"), 1, "-e:2:3: this comment has no closing */"),
        (("run", "-e", "SELECT 1 AS a; /* open"), 1, "-e:1:16: this comment has no closing */"),
        (("run", "-e", "/* nothing */ -- at all"), 2, "no statement"),
    ],
)
def test_usage_errors(clink, args, code, says):
    r = clink(*args, ok=False)
    assert r.code == code and says in r.err, r.err
    assert r.out == ""


def test_help(clink):
    for args in (("help",), ("help", "run"), ("run", "--help"), ("explain", "-h")):
        r = clink(*args)
        assert r.err == "" and "clink" in r.out
    assert "--checkpoint-dir" in clink("help", "run").out and "example" in clink("help", "run").out
    assert clink("version").out.startswith("clink ")


def test_closed_pipe_ends_quietly(tmp_path):
    import subprocess
    from conftest import CLINK

    with open(tmp_path / "many.ndjson", "w") as f:
        for i in range(200000):
            f.write(json.dumps({"i": i}) + "\n")
    sql = "CREATE TABLE t (i BIGINT) WITH (connector='file', format='json', path='many.ndjson'); SELECT i FROM t"
    p = subprocess.run(f"{CLINK} run -e \"{sql}\" | head -2", shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert p.stdout.splitlines() == ['{"i":0}', '{"i":1}'] and p.stderr == ""


def test_limit_ends_a_followed_file(clink, tmp_path):
    (tmp_path / "orders.ndjson").write_text(ORDERS * 20)
    sql = DDL.replace("path=", "follow='true', path=") + "SELECT usr, amount FROM orders LIMIT 10"
    assert len(clink("run", "-e", sql, timeout=10).lines) == 10

def test_tables_in_memory(clink):
    r = clink("run", "-p", "3", "-e", "CREATE TABLE t (i BIGINT NOT NULL, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO t SELECT i + 2, s FROM t;"
              "SELECT s, COUNT(*) AS n, SUM(i) AS i FROM t GROUP BY s; DROP TABLE t; CREATE TABLE t (x INT); SELECT COUNT(*) AS n FROM t")
    assert sorted(r.lines) == ['{"n":0}', '{"s":"a","n":2,"i":4}', '{"s":"b","n":2,"i":6}']
    r = clink("run", "-e", "CREATE TABLE t (i BIGINT NOT NULL); INSERT INTO t VALUES (NULL)", ok=False)
    assert r.code == 1 and 'column "i" of "t" is NOT NULL' in r.err
