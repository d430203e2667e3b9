"""PostgreSQL tables as sources, against a real server: what is read is what the server has, as it was at one moment."""
import base64
import decimal
import json
import os
import random
import struct
import subprocess
import threading
import time

import psycopg
import pytest
from conftest import CLINK, read_rows, run_clink
from postgres_server import Server, free_port

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


@pytest.fixture(scope="module")
def pg():
    s = Server()
    s.start()
    yield s
    s.remove()


def json_exact(text):
    return json.loads(text, parse_float=decimal.Decimal)


def single(v):
    """As a 4-byte float has it."""
    return struct.unpack("f", struct.pack("f", v))[0]


# ---- types ----

KINDS = [
    # name, on the server, here, how a value of it is made, and what JSON has for it
    ("ok", "boolean", "BOOLEAN", lambda r: r.random() < .5, lambda v: v),
    ("s", "smallint", "SMALLINT", lambda r: r.randrange(-32768, 32768), int),
    ("i", "integer", "INTEGER", lambda r: r.choice([-2**31, 2**31 - 1, r.randrange(1000)]), int),
    ("l", "bigint", "BIGINT", lambda r: r.choice([-2**63, 2**63 - 1, r.randrange(1000)]), int),
    ("n", "numeric(20,4)", "DECIMAL(20,4)", lambda r: decimal.Decimal(r.randrange(-10**20 + 1, 10**20)).scaleb(-4), decimal.Decimal),
    ("w", "numeric", "DECIMAL(38,10)", lambda r: decimal.Decimal(r.randrange(-10**25, 10**25)).scaleb(-r.randrange(11)), decimal.Decimal),
    ("r", "real", "REAL", lambda r: float(r.randrange(-2**24, 2**24)) / 1024, single),
    ("d", "double precision", "DOUBLE", lambda r: r.uniform(-1e9, 1e9), float),
    ("v", "text", "VARCHAR", lambda r: "".join(r.choice("a\\\t\n\r\"'é日{},N ") for _ in range(r.randrange(30))), str),
    ("c", "varchar(10)", "VARCHAR(10)", lambda r: "é" * r.randrange(11), str),
    ("b", "bytea", "BYTES", lambda r: bytes(r.randrange(256) for _ in range(r.randrange(20))), lambda v: base64.b64encode(bytes(v)).decode()),
    ("a", "date", "DATE", lambda r: f"{r.randrange(1, 10000):04}-{r.randrange(1, 13):02}-{r.randrange(1, 29):02}", str),
    ("t", "time", "TIME(6)", lambda r: f"{r.randrange(24):02}:{r.randrange(60):02}:00", str),
    ("z", "timestamptz", "TIMESTAMP_LTZ(6)", lambda r: f"20{r.randrange(100):02}-03-04 05:06:07.{r.randrange(1, 10**6):06}+00", None),
    ("p", "timestamp", "TIMESTAMP(6)", lambda r: f"20{r.randrange(100):02}-03-04 05:06:07.{r.randrange(1, 10**6):06}", None),
    ("e", "text[]", "ARRAY<VARCHAR>", lambda r: [r.choice(["", "a,b", 'q"\\', "NULL", None, "{x}", "é\t"]) for _ in range(r.randrange(4))], list),
    ("f", "bigint[]", "ARRAY<BIGINT>", lambda r: [r.choice([None, 1, -5]) for _ in range(r.randrange(4))], list),
    ("u", "uuid", "VARCHAR", lambda r: f"{r.getrandbits(128):032x}", None),
    ("j", "jsonb", "VARCHAR", lambda r: json.dumps({"k": r.randrange(9)}), None),
]


@pytest.fixture(scope="module")
def kinds(pg):
    rnd = random.Random(SEED)
    pg.run("CREATE TABLE kinds (id bigint PRIMARY KEY, " + ", ".join(f"{k[0]} {k[1]}" for k in KINDS) + ")")
    rows = {}
    with pg.connect() as c, c.cursor().copy("COPY kinds FROM STDIN") as copy:
        for i in range(3000):
            row = [None if rnd.random() < .1 else k[3](rnd) for k in KINDS]
            rows[i] = row
            copy.write_row([i, *row])
    return rows


@pytest.mark.parametrize("p", [1, 3])
def test_every_type_is_read_exactly(pg, kinds, p):
    print(f"CLINK_SEED={SEED}")
    sql = pg.table("kinds", "id BIGINT NOT NULL, " + ", ".join(f"{k[0]} {k[2]}" for k in KINDS))
    got = {r["id"]: r for r in map(json_exact, run_clink("run", "-p", p, "-e", sql + "SELECT * FROM kinds").lines)}
    assert sorted(got) == sorted(kinds)
    # Times, UUIDs and documents as the server itself writes them.
    texts = {r[0]: r[1:] for r in pg.run("SELECT id, to_char(z AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), "
                                         "to_char(p, 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), u::text, j::text FROM kinds")}
    for i, row in kinds.items():
        for at, (name, _, _, _, show) in enumerate(KINDS):
            have = got[i][name]
            if row[at] is None:
                want = None
            elif show:
                want = show(row[at])
            else:
                want = texts[i]["zpuj".index(name)]
                if name in "zp":
                    cut = lambda t: t.replace("Z", "").rstrip("0").rstrip(".")  # noqa: E731
                    have, want = cut(have), cut(want)
            if isinstance(want, float):
                have = show(float(have))
            if isinstance(want, decimal.Decimal):
                have = decimal.Decimal(have)
            assert have == want, (i, name, row[at])


def test_a_query_reads_the_columns_it_needs(pg, kinds):
    sql = pg.table("t", "id BIGINT NOT NULL, l BIGINT", table="public.kinds")
    assert run_clink("run", "-e", sql + "SELECT COUNT(*) AS n FROM t").rows == [{"n": len(kinds)}]
    got = run_clink("run", "-e", sql + "SELECT id FROM t WHERE id % 1000 = 7").rows
    assert sorted(r["id"] for r in got) == [7, 1007, 2007]


# ---- one moment ----

def test_the_table_is_read_as_it_was_at_one_moment(pg):
    """Money moves while it is counted: no subtask sees another moment than the others, whose sum is always the same."""
    pg.run("CREATE TABLE accounts (id int PRIMARY KEY, amount bigint, filler text)")
    pg.run("INSERT INTO accounts SELECT i, 1000, repeat('x', 500) FROM generate_series(1, 20000) i")
    stop = threading.Event()

    def move(k):
        rnd = random.Random(k)
        with pg.connect() as c:
            while not stop.is_set():
                with c.transaction():
                    a, b = rnd.sample(range(1 + k, 20001, 2), 2)  # no two workers meet
                    c.execute("UPDATE accounts SET amount = amount - 7 WHERE id = %s", (a,))
                    c.execute("UPDATE accounts SET amount = amount + 7 WHERE id = %s", (b,))
                    if rnd.random() < .2:
                        amount, filler = c.execute("DELETE FROM accounts WHERE id = %s RETURNING amount, filler", (a,)).fetchone()
                        c.execute("INSERT INTO accounts VALUES (%s, %s, %s)", (a, amount, filler))

    workers = [threading.Thread(target=move, args=(k,)) for k in range(2)]
    for w in workers:
        w.start()
    try:
        sql = pg.table("accounts", "id INTEGER, amount BIGINT")
        for p in [1, 4, 3]:
            assert run_clink("run", "-p", p, "-e", sql + "SELECT COUNT(*) AS n, SUM(amount) AS s FROM accounts").rows == [{"n": 20000, "s": 20000000}]
    finally:
        stop.set()
        for w in workers:
            w.join()
    left = pg.run("SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'clink'")
    assert left == [(0,)]


def test_parts_and_heirs_are_read_once(pg):
    pg.run("CREATE TABLE parted (id int, k text) PARTITION BY HASH (id)")
    for i in range(3):
        pg.run(f"CREATE TABLE parted_{i} PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER {i})")
    pg.run("INSERT INTO parted SELECT i, 'k' || i FROM generate_series(1, 5000) i")
    pg.run("CREATE TABLE heir (extra int) INHERITS (accounts)")
    pg.run("INSERT INTO heir VALUES (-100000, 5, 'h', 1)")
    got = run_clink("run", "-p", 2, "-e", pg.table("parted", "id INTEGER, k VARCHAR") + "SELECT id, k FROM parted").rows
    assert sorted((r["id"], r["k"]) for r in got) == [(i, f"k{i}") for i in range(1, 5001)]
    got = run_clink("run", "-p", 2, "-e", pg.table("accounts", "id INTEGER, amount BIGINT") + "SELECT COUNT(*) AS n, SUM(amount) AS s FROM accounts").rows
    assert got == [{"n": 20001, "s": 20000005}]
    pg.run("DROP TABLE heir")
    pg.run("CREATE TABLE empty (id int)")
    assert run_clink("run", "-p", 3, "-e", pg.table("empty", "id INTEGER") + "SELECT COUNT(*) AS n FROM empty").rows == [{"n": 0}]


def test_nobody_empties_or_rewrites_what_is_being_read(pg):
    """What TRUNCATE takes away is gone for every snapshot: it waits until the table is read, also for parts that are not begun."""
    pg.run("DROP TABLE IF EXISTS steady; CREATE TABLE steady (id int, k text) PARTITION BY LIST (k); CREATE TABLE steady_a PARTITION OF steady FOR VALUES IN ('a'); "
           "CREATE TABLE steady_b PARTITION OF steady FOR VALUES IN ('b')")
    pg.run("INSERT INTO steady SELECT i, 'a' FROM generate_series(1, 400000) i; INSERT INTO steady SELECT -i, 'b' FROM generate_series(1, 1000) i")
    p = subprocess.Popen([CLINK, "run", "--format", "ndjson", "-e", pg.table("steady", "id INTEGER, k VARCHAR") + "SELECT id, k FROM steady"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        ids = [json.loads(p.stdout.readline())["id"]]  # and nobody takes the next ones: it stands in the first part
        for change in ("TRUNCATE steady_b", "DROP TABLE steady_b", "ALTER TABLE steady_b ALTER k TYPE varchar(9)"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                pg.run(f"SET lock_timeout = '300ms'; {change}")
        pg.run("DELETE FROM steady_b")
        ids += [json.loads(line)["id"] for line in p.stdout]
        assert p.wait(60) == 0, p.stderr.read()
    finally:
        p.kill()
        p.communicate()
    assert sorted(ids) == [*range(-1000, 0), *range(1, 400001)]
    pg.run("TRUNCATE steady")


def test_a_table_that_is_read_is_let_go(pg, tmp_path):
    """A job that goes on for other input keeps no transaction open on the server, which could not clear up behind it."""
    pg.run("CREATE TABLE names AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 10) i")
    (tmp_path / "in.ndjson").write_text('{"id":3}\n')
    sql = (pg.table("names", "id INTEGER, name VARCHAR") + f"CREATE TABLE o (id INTEGER) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson', follow='true');\n"
           + "SELECT o.id, name FROM o JOIN names ON o.id = names.id")
    p = subprocess.Popen([CLINK, "run", "--format", "ndjson", "-e", sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        assert json.loads(p.stdout.readline())["name"] == "n3"
        end = time.monotonic() + 120
        while pg.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clink' AND query LIKE 'COPY%'") != [(0,)]:
            assert p.poll() is None and time.monotonic() < end
            time.sleep(0.05)
    finally:
        p.kill()
        p.communicate()


# ---- restarts ----

def test_killed_again_and_again_each_row_comes_once(pg, tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    pg.run("CREATE TABLE big AS SELECT i AS id, repeat('y', 400) AS filler FROM generate_series(1, 120000) i")
    out, script, ck, log = tmp_path / "out", tmp_path / "job.sql", tmp_path / "ck", tmp_path / "log"
    script.write_text(pg.table("big", "id INTEGER, filler VARCHAR")
                      + f"CREATE TABLE s (id INTEGER) WITH (connector='file', format='json', path='{out}');\nINSERT INTO s SELECT id FROM big WHERE CHAR_LENGTH(filler) = 400;\n")
    cmd = [CLINK, "run", str(script), "--checkpoint-dir", str(ck), "--checkpoint-interval-ms", "1"]
    for life in range(6):
        before = {f.name for f in ck.glob("checkpoint-*.json")}
        p = subprocess.Popen([*cmd, "-p", str(rnd.choice([1, 2, 4]))], stderr=open(log, "a"), stdin=subprocess.DEVNULL)
        said = lambda: life < 5 or "read as it is now" in log.read_text()  # others may be killed before they can
        while p.poll() is None and not ({f.name for f in ck.glob("checkpoint-*.json")} - before and said()):
            time.sleep(0.001)
        p.kill()
        p.wait()
    assert "the rest of the table is read as it is now" in log.read_text(), log.read_text()
    end = subprocess.run([*cmd, "-p", "3"], capture_output=True, text=True, timeout=120)
    assert end.returncode == 0, end.stderr
    assert sorted(r["id"] for r in read_rows(out)) == list(range(1, 120001))


# ---- what is refused, and how ----

def refused(sql, *words, env=None):
    r = run_clink("run", "-e", sql, ok=False, env=env)
    assert r.code != 0, r.out
    for w in words:
        assert w in r.err, r.err
    return r.err


def test_what_does_not_fit_is_said_before_anything_runs(pg, kinds):
    select = "SELECT * FROM t"
    refused(pg.table("t", "id BIGINT", table="nowhere") + select, "has no table nowhere")
    refused(pg.table("t", "id BIGINT, other INTEGER", table="kinds") + select, 'no column "other"')
    refused(pg.table("t", "l INTEGER", table="kinds") + select, 'column "l"', "bigint on the server and INTEGER", "declare it BIGINT")
    refused(pg.table("t", "n DECIMAL(10,2)", table="kinds") + select, "declare it DECIMAL(20,4)")
    refused(pg.table("t", "v BIGINT", table="kinds") + select, "declare it VARCHAR")
    pg.run("CREATE TABLE scaled (a numeric(3,-2), b numeric(2,4), c numeric(20,-30)); INSERT INTO scaled VALUES (12300, 0.0012, 0)")
    refused(pg.table("t", "a DECIMAL(3,0)", table="scaled") + select, "declare it DECIMAL(5,0)")
    refused(pg.table("t", "b DECIMAL(3,1)", table="scaled") + select, "declare it DECIMAL(4,4)")
    refused(pg.table("t", "c DECIMAL(38,0)", table="scaled") + select, "declare it VARCHAR")
    got = run_clink("run", "-e", pg.table("t", "a DECIMAL(5,0), b DECIMAL(4,4)", table="scaled") + "SELECT CAST(a AS VARCHAR) AS a, CAST(b AS VARCHAR) AS b FROM t").rows
    assert got == [{"a": "12300", "b": "0.0012"}]
    refused(pg.table("t", "e VARCHAR, f ARRAY<VARCHAR>, s MAP<VARCHAR, BIGINT>", table="kinds") + select, 'column "s"')
    pg.run("CREATE VIEW seen AS SELECT id FROM kinds")
    refused(pg.table("t", "id BIGINT", table="seen") + select, "is no table but a view")


def test_passwords_are_named_not_written(pg, kinds, tmp_path):
    pg.run("DO $$ BEGIN CREATE USER pwuser PASSWORD 'geheim'; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    pg.run("GRANT SELECT ON kinds TO pwuser")
    count = "SELECT COUNT(*) AS n FROM t"
    err = refused(pg.table("t", "id BIGINT", table="kinds", user="pwuser", password="geheim") + count, "must be '${env:NAME}'")
    assert "geheim" not in err.split("CREATE TABLE")[0]
    secret = tmp_path / "pw"
    secret.write_text("geheim\n")
    passfile = tmp_path / "pass"
    passfile.write_text(f"127.0.0.1:{pg.port}:*:pwuser:geheim\n")
    passfile.chmod(0o600)
    want = [{"n": len(kinds)}]
    for options, env in [({"password": "${env:PW}"}, {"PW": "geheim"}), ({"password": f"${{file:{secret}}}"}, {}),
                         ({}, {"PGPASSFILE": str(passfile)}), ({}, {"PGPASSWORD": "geheim"})]:
        sql = pg.table("t", "id BIGINT", table="kinds", user="pwuser", **options)
        assert run_clink("run", "-e", sql + count, env=env).rows == want
        assert "geheim" not in run_clink("explain", "-e", sql + count, env=env).out
    sql = pg.table("t", "id BIGINT", table="kinds", user="pwuser", password="${env:PW}")
    assert "geheim2" not in refused(sql + count, "password authentication failed", env={"PW": "geheim2"})
    refused(sql + count, "no variable PW")
    pg.run("CREATE TABLE private (id bigint)")
    refused(pg.table("t", "id BIGINT", table="private", user="pwuser", password="${env:PW}") + "SELECT id FROM t", "permission denied", env={"PW": "geheim"})


def test_a_server_that_is_not_there_is_said_at_once():
    table = Server.table
    pg = Server.__new__(Server)
    pg.port = free_port()
    begun = time.monotonic()
    refused(table(pg, "t", "id BIGINT") + "SELECT id FROM t", "PostgreSQL at 127.0.0.1", "Connection refused")
    assert time.monotonic() - begun < 10


def test_rows_that_do_not_fit(pg, tmp_path):
    pg.run("CREATE TABLE odd (id int, n numeric, a timestamp, v text, xs int[])")
    pg.run("INSERT INTO odd VALUES (1, 1.50, '2024-01-01', 'a', '{1}'), (2, 1.2345, '2024-01-01', 'b', '{1}'), (3, 'NaN', '2024-01-01', 'c', '{1}'), "
           "(4, 1, 'infinity', 'd', '{1}'), (5, 1, '0044-03-15 BC', 'e', '{1}'), (6, 1, '2024-01-01 00:00:00.0001', 'f', '{1}'), "
           "(7, 1, '2024-01-01', 'too long', '{1}'), (8, 1, '2024-01-01', 'h', '{{1,2},{3,4}}'), (9, 1, '2024-01-01', NULL, '[5:6]={7,8}'), (10, 2, '2024-01-01', 'j', '{}')")
    columns = "id INTEGER, n DECIMAL(10,2), a TIMESTAMP(3), v VARCHAR(4) NOT NULL, xs ARRAY<INTEGER>"
    err = refused(pg.table("odd", columns) + "SELECT * FROM odd", "public.odd, row (0,2)", 'column "n"', '"1.2345" has more digits behind the point')
    assert err.count("\n") <= 2
    assert [r["id"] for r in run_clink("run", "-e", pg.table("odd", columns, on_error="skip") + "SELECT id FROM odd").rows] == [1, 10]
    out = tmp_path / "bad"
    sql = (pg.table("odd", columns, on_error="dead_letter", dead_letter_table="bad")
           + f"CREATE TABLE bad (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{out}');\n")
    assert [r["id"] for r in run_clink("run", "-e", sql + "SELECT id FROM odd").rows] == [1, 10]
    reasons = [r["reason"] for r in read_rows(out)]
    assert len(reasons) == 8 and all('column "' in r for r in reasons)
    for word in ["NaN", "infinity", "BC", "digits of a second", "longer than the column", "more than one dimension", "NOT NULL"]:
        assert any(word in r for r in reasons), (word, reasons)
