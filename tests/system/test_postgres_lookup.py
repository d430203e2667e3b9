"""Rows looked up in a PostgreSQL table, against a real server: what is found is what the server has, asked once as long as an answer is good."""
import json
import random
import signal
import subprocess
import time

import pytest
from conftest import CLINK, run_clink, write_ndjson
from postgres_server import Server
from test_postgres_sink import file_table


@pytest.fixture(scope="module")
def pg():
    s = Server()
    s.start()
    s.run("CREATE TABLE users (id bigint, region text, name text, since date)")
    with s.connect() as c, c.cursor().copy("COPY users FROM STDIN") as copy:
        for i in range(3000):
            for k in range(i % 4):  # none, one or several rows of a key
                copy.write_row([i, f"r{i % 3}", f"n{i}.{k} \"q\" \\ é", "2024-01-02"])
    s.run("CREATE INDEX ON users (id); ANALYZE users")
    yield s
    s.remove()


@pytest.mark.parametrize("p,options", [(1, {}), (3, {}), (1, {"lookup.cache_ttl_ms": "0"}), (2, {"lookup.max_bytes": "1000000"})])
def test_what_is_found_is_what_is_there(pg, tmp_path, p, options):
    rnd = random.Random(1)
    rows = [{"o": i, "u": rnd.choice([rnd.randrange(4000), rnd.randrange(40), None]), "r": rnd.choice(["r0", "r1", "r2", 'x"\\,{}', ""])} for i in range(20000)]
    write_ndjson(tmp_path / "in.ndjson", rows)
    users = {}
    for i, region, name in pg.run("SELECT id, region, name FROM users"):
        users.setdefault((i, region), []).append(name)
    sql = file_table("o", "o BIGINT, u BIGINT, r VARCHAR", tmp_path / "in.ndjson")
    sql += f"CREATE TABLE users (id BIGINT, region VARCHAR, name VARCHAR) WITH (connector='postgres', host='127.0.0.1', port='{pg.port}', user='postgres', database='postgres'"
    sql += "".join(f", {k}='{v}'" for k, v in options.items()) + ");\n"
    for kind in ["JOIN", "LEFT JOIN"]:
        got = run_clink("run", "-p", p, "-e", sql + f"SELECT o.o, t.name FROM o {kind} users FOR SYSTEM_TIME AS OF PROCTIME() AS t ON o.u = t.id AND o.r = t.region").rows
        want = [(r["o"], n) for r in rows for n in users.get((r["u"], r["r"]), [] if kind == "JOIN" else [None])]
        assert sorted(((r["o"], r["name"]) for r in got), key=str) == sorted(want, key=str)


def test_keys_the_server_has_no_value_for_are_found_nowhere(pg, tmp_path):
    """A text that is no uuid, a number that is out of range: the others are found beside them."""
    rnd = random.Random(3)
    pg.run("CREATE TABLE things (u uuid, i smallint, d date, name text)")
    uuid = lambda n: f"00000000-0000-0000-0000-{n:012}"  # noqa: E731
    pg.run("INSERT INTO things SELECT lpad(i::text, 32, '0')::uuid, i, '2024-01-01'::date + i, 'n' || i FROM generate_series(0, 199) i")
    odd = ["", "x", '"\\', "{", "NULL", "é,", uuid(1) + "0"]
    rows = [{"o": n, "u": rnd.choice(odd) if rnd.random() < .1 else uuid(rnd.randrange(300)), "i": rnd.choice([rnd.randrange(300), 10**rnd.randrange(19)])} for n in range(3000)]
    write_ndjson(tmp_path / "in.ndjson", rows)
    src = file_table("o", "o BIGINT, u VARCHAR, i BIGINT", tmp_path / "in.ndjson")
    for columns, on, found in [("u VARCHAR, name VARCHAR", "o.u = t.u", lambda r: int(r["u"][-12:]) if r["u"] not in odd else 999),
                               ("i BIGINT, name VARCHAR", "o.i = t.i", lambda r: r["i"]),
                               ("i BIGINT, u VARCHAR, name VARCHAR", "o.i = t.i AND o.u = t.u", lambda r: r["i"] if r["u"] == uuid(r["i"]) else 999)]:
        got = run_clink("run", "-e", src + pg.table("t", columns, table="things") + f"SELECT o.o, t.name FROM o LEFT JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON {on}").rows
        assert {r["o"]: r["name"] for r in got} == {r["o"]: f"n{found(r)}" if found(r) < 200 else None for r in rows} and len(got) == len(rows)


def test_an_answer_is_good_for_its_time(pg, tmp_path):
    """Also the answer that there is no row. A server that is away is waited for."""
    pg.run("CREATE TABLE prices (id int PRIMARY KEY, price numeric(10,2)); INSERT INTO prices VALUES (1, 10)")
    for ttl, first, second in [(3600000, ["10.00", None], ["10.00", None]), (0, ["10.00", None], ["11.00", "12.00"])]:
        pg.run("DELETE FROM prices WHERE id = 2; UPDATE prices SET price = 10")
        where = tmp_path / str(ttl)
        where.mkdir()
        (where / "in.ndjson").write_text("")
        script = where / "j.sql"
        script.write_text(file_table("o", "id INTEGER", where / "in.ndjson", follow="true")
                          + f"CREATE TABLE prices (id INTEGER, price DECIMAL(10,2)) WITH (connector='postgres', host='127.0.0.1', port='{pg.port}', user='postgres', database='postgres', lookup.cache_ttl_ms='{ttl}');\n"
                          + "SELECT o.id, CAST(p.price AS VARCHAR) AS price FROM o LEFT JOIN prices FOR SYSTEM_TIME AS OF PROCTIME() AS p ON o.id = p.id;\n")
        job = subprocess.Popen([CLINK, "run", "--format", "ndjson", str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

        def ask():
            with open(where / "in.ndjson", "a") as f:
                f.write('{"id":1}\n{"id":2}\n')
            return [json.loads(job.stdout.readline())["price"] for _ in range(2)]

        try:
            assert ask() == first
            pg.run("UPDATE prices SET price = 11; INSERT INTO prices VALUES (2, 12)")
            assert ask() == second
            if ttl == 0:
                pg.stop(signal.SIGQUIT)
                with open(where / "in.ndjson", "a") as f:
                    f.write('{"id":1}\n')
                time.sleep(.5)
                assert job.poll() is None
                pg.start()
                assert json.loads(job.stdout.readline())["price"] == "11.00"
        finally:
            job.kill()
            job.communicate()


def test_what_is_refused(pg, tmp_path):
    write_ndjson(tmp_path / "in.ndjson", [{"id": i} for i in range(3000)])
    pg.run("CREATE TABLE wide AS SELECT i AS id, repeat('w', 5000) AS v FROM generate_series(0, 2999) i; CREATE TABLE bad (id bigint, n numeric); INSERT INTO bad VALUES (5, 'NaN')")
    src = file_table("o", "id BIGINT", tmp_path / "in.ndjson")

    def look(columns, select, **options):
        return run_clink("run", "-e", src + pg.table("t", columns, **options) + f"SELECT o.id, {select} FROM o JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON o.id = t.id", ok=False)

    pg.run("CREATE TABLE many AS SELECT 7::bigint AS id FROM generate_series(1, 300000)")
    r = look("id BIGINT, v VARCHAR", "t.v", table="wide", lookup__max_bytes="10000")
    assert r.code == 1 and "takes more than lookup.max_bytes (10000)" in r.err, r.err
    r = look("id BIGINT", "t.id", table="many", lookup__max_bytes="10000")  # of one key
    assert r.code == 1 and "takes more than lookup.max_bytes (10000)" in r.err, r.err
    r = look("id BIGINT, n DECIMAL(10,2)", "t.n", table="bad")
    assert r.code == 1 and 'table "t", column "n" of a row that was looked up: "NaN" is no decimal number' in r.err, r.err
    assert look("id BIGINT, n DECIMAL(10,2)", "t.n", table="bad", on_error="skip").rows == []
    r = look("id BIGINT, v VARCHAR", "t.v", table="nowhere")
    assert r.code == 1 and "has no table nowhere" in r.err, r.err
