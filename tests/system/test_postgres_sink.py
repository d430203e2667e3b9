"""PostgreSQL tables as sinks, against a real server: what the server has is what the query gave, whatever dies."""
import base64
import hashlib
import json
import os
import random
import signal
import subprocess
import threading
import time

import pytest
from conftest import CLINK, read_rows, run_clink, write_ndjson
from postgres_server import AWAY_S, Server
from test_postgres import KINDS, refused

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


@pytest.fixture(scope="module")
def pg():
    s = Server()
    s.start()
    yield s
    s.remove()


def file_table(name, columns, path, **options):
    more = "".join(f", {k}='{v}'" for k, v in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH (connector='file', format='json', path='{path}'{more});\n"


def test_every_type_goes_and_comes_back(pg):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    columns = "id bigint PRIMARY KEY, " + ", ".join(f"{k[0]} {k[1]}" for k in KINDS)
    pg.run(f"CREATE TABLE here ({columns}); CREATE TABLE there ({columns}); CREATE TABLE there_too ({columns})")
    with pg.connect() as c, c.cursor().copy("COPY here FROM STDIN") as copy:
        for i in range(2000):
            copy.write_row([i, *(None if rnd.random() < .1 else k[3](rnd) for k in KINDS)])
    declared = "id BIGINT NOT NULL, " + ", ".join(f"{k[0]} {k[2]}" for k in KINDS)
    sql = pg.table("here", declared)
    # uuid and jsonb are written as the texts they were read as
    sql += pg.table("there", declared) + pg.table("there_too", declared + ", PRIMARY KEY (id) NOT ENFORCED", batch_bytes="3000")
    run_clink("run", "-p", 2, "-e", sql + "INSERT INTO there SELECT * FROM here; INSERT INTO there_too SELECT * FROM here;")
    for t in ["there", "there_too"]:
        assert pg.run(f"SELECT count(*) FROM (TABLE here EXCEPT TABLE {t}) x") == [(0,)]
        assert pg.run(f"SELECT count(*) FROM {t}") == [(2000,)]


def test_changes_are_put_and_taken_away(pg, tmp_path):
    """An aggregate whose groups come, change and go: the table is what the query says at the end."""
    rnd = random.Random(SEED)
    rows = [{"k": rnd.randrange(60), "v": rnd.randrange(100)} for _ in range(20000)]
    write_ndjson(tmp_path / "in.ndjson", rows)
    for delivery, args in [("at_least_once", []), ("exactly_once", ["--checkpoint-dir", tmp_path / "ck", "--checkpoint-interval-ms", 20])]:
        pg.run("DROP TABLE IF EXISTS groups; CREATE TABLE groups (n bigint, k bigint, PRIMARY KEY (k))")
        pg.run("INSERT INTO groups VALUES (-5, 100000)")
        sql = (file_table("src", "k BIGINT, v BIGINT", tmp_path / "in.ndjson")
               + pg.table("groups", "k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", delivery=delivery, batch_bytes="2000")
               + "INSERT INTO groups SELECT k, SUM(v) AS n FROM src GROUP BY k HAVING COUNT(*) % 3 <> 0;\n")
        script = tmp_path / f"{delivery}.sql"
        script.write_text(sql)
        run_clink("run", "--changes", "-p", 2, "--set", "batch_rows=64", script, *args)
        want = {}
        for r in rows:
            n, s = want.get(r["k"], (0, 0))
            want[r["k"]] = (n + 1, s + r["v"])
        want = {k: s for k, (n, s) in want.items() if n % 3}
        want[100000] = -5
        assert {k: int(n) for n, k in pg.run("SELECT n, k FROM groups")} == want


def test_the_guarantee_is_said(pg, tmp_path):
    pg.run("CREATE TABLE IF NOT EXISTS g (id bigint)")
    base = file_table("src", "id BIGINT", tmp_path / "in.ndjson")
    insert = "INSERT INTO g SELECT id FROM src;"
    write_ndjson(tmp_path / "in.ndjson", [{"id": 1}])
    for options, words in [({}, "exactly once"), ({"delivery": "at_least_once"}, "at least once")]:
        script = tmp_path / "g.sql"
        script.write_text(base + pg.table("g", "id BIGINT", **options) + insert)
        r = run_clink("run", "--checkpoint-dir", tmp_path / f"ck-{words[:2]}", script)
        assert words in r.err, r.err


def test_what_the_server_does_not_take(pg, tmp_path):
    pg.run("CREATE TABLE tight (id int PRIMARY KEY, v varchar(3) CHECK (v <> 'no'))")
    rows = [{"id": i, "v": "ok"} for i in range(500)]
    rows[77]["v"], rows[200]["v"], rows[300]["id"] = "too long", "no", 299
    write_ndjson(tmp_path / "in.ndjson", rows)
    src = file_table("src", "id INTEGER, v VARCHAR", tmp_path / "in.ndjson")
    for delivery, args in [("at_least_once", []), ("exactly_once", ["--checkpoint-dir", tmp_path / "ck"])]:
        pg.run("TRUNCATE tight")
        script = tmp_path / "j.sql"
        script.write_text(src + pg.table("tight", "id INTEGER, v VARCHAR", delivery=delivery) + "INSERT INTO tight SELECT * FROM src;\n")
        r = run_clink("run", script, *args, ok=False)
        assert r.code == 1 and 'table "tight"' in r.err and "value too long for type character varying(3)" in r.err and "line 78, column v" in r.err, r.err
        assert pg.run("SELECT count(*) FROM tight") == [(0,)]
        script.write_text(src + pg.table("tight", "id INTEGER, v VARCHAR", delivery=delivery, on_error="skip") + "INSERT INTO tight SELECT * FROM src;\n")
        r = run_clink("run", script, *([*args[:1], tmp_path / "ck2"] if args else []))
        assert r.err.count("a row is left out") == 3, r.err
        assert pg.run("SELECT count(*), min(id), max(id) FROM tight WHERE id NOT IN (77, 200)") == [(497, 0, 499)]


LETTERS = 'raw BYTES, split VARCHAR, "offset" BIGINT, reason VARCHAR'


def letters_of(folder):
    """Row as it was to be written -> the sentence; each once."""
    rows = read_rows(folder)
    out = {base64.b64decode(r["raw"]).decode(): r["reason"] for r in rows}
    assert len(out) == len(rows) and all(r["offset"] is None for r in rows), rows
    return out


def test_what_a_trigger_or_an_index_refuses_is_a_row(pg, tmp_path):
    """Not the statement: the other rows go in."""
    pg.run("CREATE TABLE guarded (id int PRIMARY KEY, v text); CREATE INDEX ON guarded (v);"
           "CREATE FUNCTION no_seven() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 7 THEN RAISE EXCEPTION 'seven is bad'; END IF; RETURN NEW; END $$;"
           "CREATE TRIGGER guard BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION no_seven()")
    texts = ["short", "".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(200))]  # an index has no room for what does not compress
    rows = write_ndjson(tmp_path / "in.ndjson", [{"id": i, "v": texts[i == 9]} for i in range(20)])
    source = f"CREATE TABLE i (id INTEGER, v VARCHAR) WITH (connector='file', path='{rows}');\n"
    for i, how in enumerate(({"delivery": "at_least_once"}, {})):
        pg.run("TRUNCATE guarded")
        r = run_clink("run", "--checkpoint-dir", tmp_path / f"ck{i}", "--name", "guarded", "-e",
                      source + pg.table("o", "id INTEGER, v VARCHAR, PRIMARY KEY (id) NOT ENFORCED", table="guarded", on_error="skip", **how) + "INSERT INTO o SELECT id, v FROM i;")
        assert "seven is bad" in r.err and "index row" in r.err, r.err
        assert pg.run("SELECT id FROM guarded ORDER BY id") == [(i,) for i in range(20) if i not in (7, 9)]


def test_a_table_that_is_put_may_have_1598_columns(pg):
    n = 1599
    pg.run(f"CREATE TABLE wide (id int PRIMARY KEY, {', '.join(f'c{i} int' for i in range(n - 1))})")
    columns = "id INTEGER, " + ", ".join(f"c{i} INTEGER" for i in range(n - 1))
    r = run_clink("run", "-e", pg.table("i", columns, table="wide") + pg.table("o", columns + ", PRIMARY KEY (id) NOT ENFORCED", table="wide") + "INSERT INTO o SELECT * FROM i;", ok=False)
    assert r.code == 1 and "1599 columns" in r.err and "1598 at most" in r.err


def test_dead_letters_say_what_the_server_did_not_take(pg, tmp_path):
    """Found anywhere in a batch: the first row, the last, several side by side, in a text that cannot be sent at all."""
    rows = [{"id": i, "v": "ok", "n": i} for i in range(3000)]
    bad = {0: ("v", "no", "violates check constraint"), 77: ("v", "too long", "too long for type character varying(3)"),
           78: ("v", "no", "violates check constraint"), 79: ("v", None, "violates not-null constraint"),
           1500: ("n", 1000000, "value for domain small violates check constraint"), 1501: ("v", "a\0b", "NUL character"),
           2999: ("v", 'l\n"\t\\', "too long for type character varying(3)")}
    for i, (column, value, _) in bad.items():
        rows[i][column] = value
    write_ndjson(tmp_path / "in.ndjson", rows)
    pg.run("CREATE DOMAIN small AS int CONSTRAINT small CHECK (VALUE < 100000)")
    for key, batch in [("", "1048576"), (", PRIMARY KEY (id) NOT ENFORCED", "1048576"), (", PRIMARY KEY (id) NOT ENFORCED", "2000")]:
        pg.run("DROP TABLE IF EXISTS lettered; CREATE TABLE lettered (id int PRIMARY KEY, v varchar(3) NOT NULL CHECK (v <> 'no'), n small)")
        out = tmp_path / f"letters-{len(key)}-{batch}"
        sql = (file_table("src", "id INTEGER, v VARCHAR, n INTEGER", tmp_path / "in.ndjson") + file_table("letters", LETTERS, out)
               + pg.table("lettered", "id INTEGER, v VARCHAR, n INTEGER" + key, delivery="at_least_once", on_error="dead_letter",
                          dead_letter_table="letters", batch_bytes=batch)
               + "INSERT INTO lettered SELECT id, v, n FROM src;\n")
        r = run_clink("run", "-p", 2, "--set", "batch_rows=256", "-e", sql)
        assert sorted(pg.run("SELECT id, v, n FROM lettered")) == [(i, "ok", i) for i in range(3000) if i not in bad]
        got = {json.loads(raw)["id"]: (json.loads(raw), why) for raw, why in letters_of(out).items()}
        assert set(got) == set(bad), got
        for i, (_, _, sentence) in bad.items():
            assert got[i][0] == rows[i] and sentence in got[i][1], got[i]
        assert {r["split"] for r in read_rows(out)} == {'table "lettered"'}
        assert "a row is left out" not in r.err and "7 records of lettered" in r.err, r.err


def test_dead_letters_of_rows_that_change(pg, tmp_path):
    """A row that is refused leaves the row of its key as it was; a row that the server does not delete is a letter, too."""
    rows = [{"k": 9, "v": 1}] + [{"k": i % 9, "v": -1 if i % 9 == 7 else 1} for i in range(20000)] + [{"k": 9, "v": 1}] * 2
    write_ndjson(tmp_path / "in.ndjson", rows)
    pg.run("CREATE TABLE totals (k int PRIMARY KEY, n bigint CHECK (n > 0)); INSERT INTO totals VALUES (7, 5), (9, 50);"
           "CREATE TABLE child (k int REFERENCES totals); INSERT INTO child VALUES (9)")
    sql = (file_table("src", "k INTEGER, v BIGINT", tmp_path / "in.ndjson") + file_table("letters", LETTERS, tmp_path / "letters")
           + pg.table("totals", "k INTEGER, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", delivery="at_least_once", on_error="dead_letter",
                      dead_letter_table="letters", batch_bytes="200")
           + "INSERT INTO totals SELECT k, SUM(v) AS n FROM src GROUP BY k HAVING COUNT(*) % 100000 <> 3;\n")
    run_clink("run", "--changes", "-p", 1, "--set", "batch_rows=64", "-e", sql)
    want = {k: sum(r["v"] for r in rows if r["k"] == k) for k in range(9) if k != 7}
    assert dict(pg.run("SELECT k, n FROM totals WHERE k NOT IN (7, 9)")) == want
    assert pg.run("SELECT n FROM totals WHERE k = 7") == [(5,)]
    assert pg.run("SELECT count(*) FROM totals WHERE k = 9") == [(1,)]
    got = [(json.loads(base64.b64decode(r["raw"])), r["reason"]) for r in read_rows(tmp_path / "letters")]
    assert {r["k"] for r, _ in got} == {7, 9}
    assert all("violates check constraint" in why and r["n"] < 0 for r, why in got if r["k"] == 7)
    assert any("violates foreign key constraint" in why and "DELETE" in why for r, why in got if r["k"] == 9), got


def test_dead_letters_are_there_once_whatever_is_killed(pg, tmp_path):
    """What was sent after the last checkpoint is sent again: the table has each key as it is, the letters each row once."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    rows = [{"id": i, "v": "too long" if rnd.random() < .01 else f"{i % 1000}"} for i in range(20000)]
    write_ndjson(tmp_path / "in.ndjson", rows)
    pg.run("DROP TABLE IF EXISTS mortal; CREATE TABLE mortal (id int PRIMARY KEY, v varchar(3))")
    script = tmp_path / "j.sql"
    script.write_text(file_table("src", "id INTEGER, v VARCHAR", tmp_path / "in.ndjson", rate_limit="20000") + file_table("letters", LETTERS, tmp_path / "letters")
                      + pg.table("mortal", "id INTEGER, v VARCHAR, PRIMARY KEY (id) NOT ENFORCED", delivery="at_least_once", on_error="dead_letter",
                                 dead_letter_table="letters", batch_bytes="4000")
                      + "INSERT INTO mortal SELECT id, v FROM src;\n")
    cmd = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "50"]
    for life in range(5):
        p = subprocess.Popen([*cmd, "-p", str(rnd.choice([1, 2, 4]))], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        had = pg.run("SELECT count(*) FROM mortal")[0][0]
        while p.poll() is None and pg.run("SELECT count(*) FROM mortal")[0][0] < min(had + rnd.randrange(3000), 19000):
            pass
        if life == 2 and p.poll() is None:
            pg.restart()
            time.sleep(.2)
        p.kill()
        p.wait()
    end = subprocess.run([*cmd, "-p", "3"], capture_output=True, text=True, timeout=300)
    assert end.returncode == 0, end.stderr
    assert sorted(pg.run("SELECT id, v FROM mortal")) == [(r["id"], r["v"]) for r in rows if len(r["v"]) <= 3]
    got = letters_of(tmp_path / "letters")
    assert sorted((json.loads(raw) for raw in got), key=lambda r: r["id"]) == [r for r in rows if len(r["v"]) > 3]
    assert all("value too long for type character varying(3)" in why for why in got.values())


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id) NOT ENFORCED"])
def test_exactly_once_letters_come_in_the_transaction_of_the_rows(pg, tmp_path, key):
    """At no moment is there a letter beside rows of another checkpoint, whatever is killed; and a row the server has no text for is one, too."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    bad = {i: ("too long" if rnd.random() < .9 else "a\0b") for i in range(20000) if rnd.random() < .01}
    rows = [{"id": i, "v": bad.get(i, str(i % 1000))} for i in range(20000)]
    write_ndjson(tmp_path / "in.ndjson", rows)
    pg.run("DROP TABLE IF EXISTS exact, exact_letters; CREATE TABLE exact (id int PRIMARY KEY, v varchar(3));"
           'CREATE TABLE exact_letters (raw bytea, split text, "offset" bigint, reason text)')
    script = tmp_path / "j.sql"
    script.write_text(file_table("src", "id INTEGER, v VARCHAR", tmp_path / "in.ndjson", rate_limit="20000") + pg.table("letters", LETTERS, table="exact_letters")
                      + pg.table("exact", "id INTEGER, v VARCHAR" + key, on_error="dead_letter", dead_letter_table="letters", batch_bytes="4000")
                      + "INSERT INTO exact SELECT id, v FROM src;\n")
    cmd = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "50"]

    def seen():
        both = pg.run("SELECT id, v, NULL, NULL, NULL FROM exact UNION ALL SELECT NULL, NULL, raw, split, reason FROM exact_letters")
        put = [r[:2] for r in both if r[2] is None]
        letters = [(json.loads(r[2]), *r[3:]) for r in both if r[2] is not None]
        assert len({r["id"] for r, *_ in letters}) == len(letters), letters
        assert all(i not in bad for i, _ in put)
        return put, letters

    for life in range(4):
        p = subprocess.Popen([*cmd, "-p", str(rnd.choice([1, 2, 4]))], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        had = len(seen()[0])
        while p.poll() is None and len(seen()[0]) < min(had + rnd.randrange(3000), 19000):
            pass
        if life == 2 and p.poll() is None:
            pg.restart()
        p.kill()
        p.wait()
    end = subprocess.run([*cmd, "-p", "3"], capture_output=True, text=True, timeout=300)
    assert end.returncode == 0, end.stderr
    put, letters = seen()
    assert sorted(put) == [(r["id"], r["v"]) for r in rows if r["id"] not in bad]
    assert sorted((r for r, *_ in letters), key=lambda r: r["id"]) == [r for r in rows if r["id"] in bad]
    assert {split for _, split, _ in letters} == {'table "exact"'}
    assert all(("NUL character" if "\0" in r["v"] else "value too long for type character varying(3)") in why for r, _, why in letters)


def test_letters_that_cannot_be_written_end_the_job(pg, tmp_path):
    """And nothing of their checkpoint is there; when the table takes them again the job goes on."""
    write_ndjson(tmp_path / "in.ndjson", [{"id": i, "v": "long" if i == 7 else "ok"} for i in range(10)])
    pg.run("CREATE TABLE strict (id int, v varchar(3)); CREATE TABLE strict_letters (raw bytea, split text, \"offset\" bigint, reason varchar(5))")
    script = tmp_path / "j.sql"
    script.write_text(file_table("src", "id INTEGER, v VARCHAR", tmp_path / "in.ndjson") + pg.table("letters", LETTERS, table="strict_letters")
                      + pg.table("strict", "id INTEGER, v VARCHAR", on_error="dead_letter", dead_letter_table="letters") + "INSERT INTO strict SELECT id, v FROM src;\n")
    cmd = ["run", str(script), "--checkpoint-dir", str(tmp_path / "ck")]
    r = run_clink(*cmd, ok=False)
    assert r.code == 1 and "dead_letter_table 'letters'" in r.err and "too long for type character varying(5)" in r.err, r.err
    assert pg.run("SELECT count(*) FROM strict") == [(0,)]
    pg.run("ALTER TABLE strict_letters ALTER reason TYPE text")
    r = run_clink(*cmd)
    assert "1 row of checkpoint" in r.err and "did not fit and went to letters" in r.err, r.err
    assert pg.run("SELECT count(*) FROM strict") == [(9,)] and pg.run("SELECT raw FROM strict_letters") == [(b'{"id":7,"v":"long"}',)]


def test_what_is_refused_before_anything_runs(pg, tmp_path):
    write_ndjson(tmp_path / "in.ndjson", [{"id": 1, "v": "x"}])
    src = file_table("src", "id BIGINT, v VARCHAR", tmp_path / "in.ndjson")
    pg.run("CREATE TABLE narrow (id int, v text, made int GENERATED ALWAYS AS (id + 1) STORED); CREATE VIEW grouped AS SELECT count(*) AS id FROM narrow")
    insert = "INSERT INTO t SELECT id, v FROM src;"
    refused(src + pg.table("t", "id BIGINT, v VARCHAR", table="nowhere") + insert, 'table "t"', "has no table nowhere")
    refused(src + pg.table("t", "id BIGINT, v VARCHAR", table="narrow") + insert, "integer on the server and BIGINT", "declare it INTEGER")
    refused(src + pg.table("t", "id INTEGER, v VARCHAR, PRIMARY KEY (id) NOT ENFORCED", table="narrow") + "INSERT INTO t SELECT CAST(id AS INTEGER), v FROM src;", "is no key of public.narrow")
    refused(src + pg.table("t", "id INTEGER, made INTEGER", table="narrow") + "INSERT INTO t SELECT CAST(id AS INTEGER), 1 FROM src;", "generated by the server")
    for letters in (file_table("x", LETTERS, tmp_path / "letters"), pg.table("x", LETTERS, database="template1")):
        refused(letters + src + pg.table("t", "id BIGINT, v VARCHAR", table="narrow", on_error="dead_letter", dead_letter_table="x") + insert,
                "must be a table of connector 'postgres' with the same 'host', 'port' and 'database'")
    aside = pg.table("t", "id INTEGER, v VARCHAR", table="narrow", on_error="dead_letter", dead_letter_table="x") + "INSERT INTO t SELECT CAST(id AS INTEGER), v FROM src;"
    refused(pg.table("x", LETTERS, table="nowhere") + src + aside, "has no table nowhere")
    pg.run("DO $$ BEGIN CREATE USER pwuser PASSWORD 'geheim'; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT SELECT ON narrow TO pwuser")
    refused(src + pg.table("t", "id INTEGER, v VARCHAR", table="narrow", user="pwuser", password="${env:PW}") + "INSERT INTO t SELECT CAST(id AS INTEGER), v FROM src;",
            "this user may not write public.narrow", env={"PW": "geheim"})


def test_deadlocks_are_tried_again(pg, tmp_path):
    """Somebody else locks rows crosswise: the server gives one of the two up, and the rows come all the same."""
    pg.run("CREATE TABLE crossed (id int PRIMARY KEY, v int); INSERT INTO crossed SELECT i, 0 FROM generate_series(1, 2000) i")
    write_ndjson(tmp_path / "in.ndjson", [{"id": 1 + i % 2000, "v": i} for i in range(40000)])
    stop = threading.Event()

    def cross():
        with pg.connect() as c:
            while not stop.is_set():
                try:
                    with c.transaction():
                        c.execute("UPDATE crossed SET v = v WHERE id = 1999")
                        time.sleep(.01)
                        c.execute("UPDATE crossed SET v = v WHERE id < 20")
                except Exception:
                    pass

    other = threading.Thread(target=cross)
    other.start()
    try:
        sql = (file_table("src", "id INTEGER, v INTEGER", tmp_path / "in.ndjson")
               + pg.table("crossed", "id INTEGER, v INTEGER, PRIMARY KEY (id) NOT ENFORCED", batch_bytes="20000")
               + "INSERT INTO crossed SELECT id, v FROM src;")
        run_clink("run", "-e", sql)
    finally:
        stop.set()
        other.join()
    assert pg.run("SELECT count(*) FROM crossed WHERE v <> 38000 + id - 1 ") == [(0,)]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_server_that_goes_away_is_waited_for(pg, tmp_path, delivery):
    pg.run("DROP TABLE IF EXISTS patient; CREATE TABLE patient (id bigint PRIMARY KEY)")
    write_ndjson(tmp_path / "in.ndjson", [{"id": i} for i in range(6000)])
    script = tmp_path / "j.sql"
    script.write_text(file_table("src", "id BIGINT", tmp_path / "in.ndjson", rate_limit="3000")
                      + pg.table("patient", "id BIGINT, PRIMARY KEY (id) NOT ENFORCED", delivery=delivery) + "INSERT INTO patient SELECT id FROM src;\n")
    p = subprocess.Popen([CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "50"],
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    while not pg.run("SELECT EXISTS (SELECT FROM patient)")[0][0]:
        assert p.poll() is None, p.stderr.read()
    pg.stop(signal.SIGQUIT)
    time.sleep(AWAY_S)
    pg.start()
    said = p.communicate(timeout=120)[1]
    assert p.returncode == 0, said
    assert said.count("trying again") >= 1, said
    assert pg.run("SELECT count(*), min(id), max(id) FROM patient") == [(6000, 0, 5999)]


def test_a_server_that_stays_away_ends_the_job(pg, tmp_path):
    pg.run("DROP TABLE IF EXISTS patient; CREATE TABLE patient (id bigint)")
    write_ndjson(tmp_path / "in.ndjson", [{"id": i} for i in range(3000)])
    sql = (file_table("src", "id BIGINT", tmp_path / "in.ndjson", rate_limit="1000")
           + pg.table("patient", "id BIGINT", retry_ms="500", batch_bytes="1000") + "INSERT INTO patient SELECT id FROM src;\n")
    p = subprocess.Popen([CLINK, "run", "-e", sql], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    while not pg.run("SELECT EXISTS (SELECT FROM patient)")[0][0]:
        assert p.poll() is None, p.stderr.read()
    pg.stop(signal.SIGQUIT)
    try:
        said = p.communicate(timeout=60)[1]
        assert p.returncode == 1 and "given up after 500 ms" in said, said
    finally:
        pg.start()


def test_a_server_that_is_away_at_the_end_is_said(pg, tmp_path):
    """The input has ended, and what it gave cannot be committed in time: a failure with a sentence, after which the next start commits it."""
    pg.run("DROP TABLE IF EXISTS patient; CREATE TABLE patient (id bigint)")
    write_ndjson(tmp_path / "in.ndjson", [{"id": i} for i in range(3000)])
    script = tmp_path / "j.sql"
    script.write_text(file_table("src", "id BIGINT", tmp_path / "in.ndjson", rate_limit="1000") + pg.table("patient", "id BIGINT", retry_ms="300") + "INSERT INTO patient SELECT id FROM src;\n")
    cmd = ["run", script, "--checkpoint-dir", tmp_path / "ck", "--checkpoint-interval-ms", "50"]
    p = subprocess.Popen([CLINK, *map(str, cmd), "--final-checkpoint-timeout-ms", "1000"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    while not pg.run("SELECT EXISTS (SELECT FROM patient)")[0][0]:
        assert p.poll() is None, p.stderr.read()
    p.send_signal(signal.SIGSTOP)
    pg.stop(signal.SIGQUIT)
    p.send_signal(signal.SIGCONT)
    try:
        said = p.communicate(timeout=300)[1]
    finally:
        p.kill()
        pg.start()
    if p.returncode == 0 and pg.run("SELECT count(*) FROM patient") == [(3000,)]:
        pytest.skip("all of it was there before the server could go")
    assert p.returncode == 1 and "the final checkpoint was not complete and committed in time" in said, said
    run_clink(*cmd)
    assert pg.run("SELECT count(*), count(DISTINCT id) FROM patient") == [(3000, 3000)]


def test_killed_at_random_a_changing_result_is_exact(pg, tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    rows = [{"k": f"k{rnd.randrange(200)}", "v": rnd.randrange(1000)} for _ in range(30000)]
    write_ndjson(tmp_path / "in.ndjson", rows)
    pg.run("DROP TABLE IF EXISTS sums, seen; CREATE TABLE sums (k text PRIMARY KEY, s numeric(20,0)); CREATE TABLE seen (k text, v bigint)")
    script = tmp_path / "j.sql"
    script.write_text(file_table("src", "k VARCHAR, v BIGINT", tmp_path / "in.ndjson", rate_limit="30000")
                      + pg.table("sums", "k VARCHAR, s DECIMAL(20,0), PRIMARY KEY (k) NOT ENFORCED") + pg.table("seen", "k VARCHAR, v BIGINT")
                      + "INSERT INTO sums SELECT k, SUM(CAST(v AS DECIMAL(19,0))) AS s FROM src GROUP BY k;\nINSERT INTO seen SELECT k, v FROM src;\n")
    cmd = [CLINK, "run", "--changes", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "30"]
    for _ in range(6):
        p = subprocess.Popen([*cmd, "-p", str(rnd.choice([1, 2, 4]))], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        time.sleep(.1 + rnd.random() * .4)
        p.kill()
        p.wait()
        assert pg.run("SELECT count(*) <= 30000 FROM seen") == [(True,)]
    end = subprocess.run([*cmd, "-p", "3"], capture_output=True, text=True, timeout=120)
    assert end.returncode == 0, end.stderr
    want = {}
    for r in rows:
        want[r["k"]] = want.get(r["k"], 0) + r["v"]
    assert {k: int(s) for k, s in pg.run("SELECT k, s FROM sums")} == want
    assert sorted(pg.run("SELECT k, v FROM seen")) == sorted((r["k"], r["v"]) for r in rows)
    assert not list((tmp_path / "ck").glob("**/wal-*"))
