"""A PostgreSQL table followed by its changes, against a real server: what comes out is the table, without gap or double, whatever dies."""
import os
import random
import signal
import subprocess
import threading
import time

import psycopg
import pytest
from conftest import CLINK
from postgres_server import AWAY_S, Server
from test_postgres import refused

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


@pytest.fixture(scope="module")
def pg():
    s = Server()
    s.start()
    yield s
    s.remove()


NUMBER = iter(range(10**6))


@pytest.fixture
def names(pg):
    """A table that is followed and one that is its copy, with a publication."""
    n = next(NUMBER)
    src, dst = f"src{n}", f"dst{n}"
    yield src, dst
    while Job.all:
        Job.all.pop().kill()
    for slot, pid in pg.run("SELECT slot_name, active_pid FROM pg_replication_slots"):
        while True:
            try:
                pg.run("SELECT pg_drop_replication_slot(%s)", (slot,))
                break
            except psycopg.errors.ObjectInUse:
                time.sleep(.05)
            except psycopg.errors.UndefinedObject:
                break


def make(pg, names, columns="id int PRIMARY KEY, v text, n bigint", identity="FULL"):
    src, dst = names
    pg.run(f"CREATE TABLE {src} ({columns}); CREATE TABLE {dst} ({columns}); ALTER TABLE {src} REPLICA IDENTITY {identity}; CREATE PUBLICATION pub_{src} FOR TABLE {src}")


DECLARED = "id INTEGER, v VARCHAR, n BIGINT"


def followed(pg, names, columns=DECLARED, **options):
    return pg.table("src", columns, table=names[0], mode="cdc", publication=f"pub_{names[0]}", **options)


class Job:
    all = []

    def __init__(self, tmp_path, sql):
        self.sql, self.dir, self.log, self.proc = tmp_path / "job.sql", tmp_path / "ck", tmp_path / "log", None
        self.sql.write_text(sql)
        self.all.append(self)

    def start(self, p=1, interval_ms=50, env=None, args=()):
        self.proc = subprocess.Popen([CLINK, "run", str(self.sql), "-p", str(p), "--checkpoint-dir", str(self.dir), "--checkpoint-interval-ms", str(interval_ms), *args],
                                     stderr=open(self.log, "a"), stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})

    def kill(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def wait(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            assert self.proc.poll() is None, self.log.read_text()
            assert time.monotonic() < end, "it did not come: " + self.log.read_text()
            time.sleep(0.05)

    def has_place(self):
        """A checkpoint says how far the first reading was; older ones may go while they are read."""
        for f in self.dir.glob("**/checkpoint-*.snap"):
            try:
                if b"upto" in f.read_bytes():
                    return True
            except FileNotFoundError:
                pass
        return False

    def fails(self, *words, seconds=60):
        code = self.proc.wait(seconds)
        said = self.log.read_text()
        assert code == 1 and all(w in said for w in words), said


def copying(pg, names, tmp_path, **options):
    return Job(tmp_path, followed(pg, names, **options) + pg.table("dst", DECLARED + ", PRIMARY KEY (id) NOT ENFORCED", table=names[1])
               + "INSERT INTO dst SELECT id, v, n FROM src;\n")


def same(pg, names):
    src, dst = names
    return pg.run(f"SELECT NOT EXISTS ((TABLE {src} EXCEPT ALL TABLE {dst}) UNION ALL (TABLE {dst} EXCEPT ALL TABLE {src}))")[0][0]


class Writers:
    """Rows come, change and go, also their keys, in transactions of all sizes, some of which are undone."""

    def __init__(self, pg, src, count=2, keys=3000):
        self.stop, self.threads, self.failed = threading.Event(), [], []
        for k in range(count):
            self.threads.append(threading.Thread(target=self.run, args=(pg, src, k, count, keys)))
        for t in self.threads:
            t.start()

    def run(self, pg, src, k, count, keys):
        rnd = random.Random(SEED + k)
        try:
            with pg.connect() as c:
                while not self.stop.is_set():
                    try:
                        with c.transaction():
                            for _ in range(rnd.choice([1, 1, 3, 50])):
                                i, j = (rnd.randrange(keys) * count + k for _ in range(2))
                                what = rnd.randrange(4)
                                if what == 0:
                                    c.execute(f"INSERT INTO {src} VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = {src}.n + 1", (i, "x" * rnd.randrange(200), rnd.randrange(100)))
                                elif what == 1:
                                    c.execute(f"DELETE FROM {src} WHERE id = %s", (i,))
                                elif what == 2:
                                    c.execute(f"UPDATE {src} SET n = n + 1, v = v || 'y' WHERE mod(id, 97) = %s AND mod(id, %s) = %s", (rnd.randrange(97), count, k))
                                else:
                                    c.execute(f"UPDATE {src} SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM {src} WHERE id = %s)", (j, i, j))
                            if rnd.random() < .1:
                                raise psycopg.Rollback()
                    except psycopg.errors.DeadlockDetected:
                        pass
                    time.sleep(rnd.random() * .01)
        except Exception as e:  # noqa: BLE001
            self.failed.append(e)

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()
        assert not self.failed, self.failed


def test_rows_then_changes_without_gap_or_double(pg, names, tmp_path):
    """Written all the time, killed again and again, also while it reads the table the first time."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    make(pg, names)
    pg.run(f"INSERT INTO {names[0]} SELECT i, repeat('z', 300), i FROM generate_series(0, 40000) i")
    job = copying(pg, names, tmp_path)
    w = Writers(pg, names[0])
    try:
        for _ in range(8):
            job.start(p=rnd.choice([1, 2, 3]), interval_ms=rnd.choice([10, 50]))
            time.sleep(.1 + rnd.random() * .5)
            assert job.proc.poll() is None, job.log.read_text()
            job.kill()
        job.start(p=2)
        time.sleep(1)
    finally:
        w.end()
    job.wait(lambda: same(pg, names))
    job.kill()


def test_killed_in_the_first_reading_it_goes_on_behind_the_last_row(pg, names, tmp_path):
    make(pg, names)
    pg.run(f"INSERT INTO {names[0]} SELECT i, repeat('z', 1000), i FROM generate_series(0, 30000) i")
    job = copying(pg, names, tmp_path)
    w = Writers(pg, names[0], keys=15000)
    done = 0
    try:
        for _ in range(12):
            job.start(interval_ms=1)
            before = time.monotonic()
            while time.monotonic() < before + 20 and job.proc.poll() is None:
                text = "".join(p.read_text() for p in job.dir.glob("**/checkpoint-*.json")) if job.dir.exists() else ""
                if text:
                    break
                time.sleep(.002)
            job.kill()
            done += 1
    finally:
        w.end()
    assert done == 12
    job.start(p=2)
    job.wait(lambda: same(pg, names))
    job.kill()
    assert "not as it said" not in job.log.read_text()


def stop_in_the_first_reading(pg, job):
    """Kills the job when a checkpoint has a place in the table: until then the server sends for a moment at a time."""
    copying = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY (SELECT%'"
    end = time.monotonic() + 240
    with pg.connect() as c:
        while not job.has_place():
            assert job.proc.poll() is None and time.monotonic() < end, job.log.read_text()
            for (pid,) in c.execute(copying).fetchall():
                os.kill(pid, signal.SIGSTOP)
                try:
                    until = time.monotonic() + .5
                    while not job.has_place() and time.monotonic() < until:
                        time.sleep(.01)
                    if job.has_place():
                        job.kill()
                finally:
                    os.kill(pid, signal.SIGCONT)
            time.sleep(.002)
    job.kill()  # where the place came between two looks


@pytest.mark.parametrize("key, declared, value", [("b boolean, id int, PRIMARY KEY (b, id)", "b BOOLEAN, id INTEGER", "i % 2 = 0, i"),
                                                  ("a inet, id int, PRIMARY KEY (a, id)", "a VARCHAR, id INTEGER", "('10.0.' || i % 7 || '.1')::inet, i")])
def test_keys_of_the_first_reading_are_compared_as_they_are_sent(pg, names, tmp_path, key, declared, value):
    """Going on behind the last row, where a cast to text is another text than the one that is sent: each row comes once."""
    src, dst = names
    columns = [c.split()[0] for c in declared.split(", ")]
    make(pg, names, key + ", v text" if "," not in key else key.replace(", PRIMARY", ", v text, PRIMARY"))
    pg.run(f"DROP TABLE {dst}; CREATE TABLE {dst} ({key.replace(', PRIMARY', ', n bigint, PRIMARY')})")
    pg.run(f"INSERT INTO {src} ({', '.join(columns)}, v) SELECT {value}, repeat('z', 2000) FROM generate_series(1, 20000) i")
    job = Job(tmp_path, followed(pg, names, columns=declared + ", v VARCHAR") + pg.table("dst", f"{declared}, n BIGINT, PRIMARY KEY ({', '.join(columns)}) NOT ENFORCED", table=dst)
              + f"INSERT INTO dst SELECT {', '.join(columns)}, COUNT(v) AS n FROM src GROUP BY {', '.join(columns)};\n")
    job.start(interval_ms=20)
    stop_in_the_first_reading(pg, job)
    job.start()
    job.wait(lambda: pg.run(f"SELECT count(*) FROM {dst}") == [(20000,)])
    pg.run(f"DELETE FROM {src} WHERE id <= 10000")
    job.wait(lambda: pg.run(f"SELECT count(*) FROM {dst}") == [(10000,)])
    job.kill()
    assert pg.run(f"SELECT count(*) FROM {dst} WHERE n <> 1") == [(0,)]


def test_another_table_of_the_same_name_is_not_followed(pg, names, tmp_path):
    """It was dropped and made anew: while the job was down, and while it ran, where the publication has all tables."""
    src = names[0]
    again = f"DROP TABLE {src}; CREATE TABLE {src} (id int PRIMARY KEY, v text, n bigint); ALTER TABLE {src} REPLICA IDENTITY FULL"
    make(pg, names)
    pg.run(f"INSERT INTO {src} VALUES (1, 'a', 1)")
    for running in (False, True):
        where = tmp_path / str(running)
        where.mkdir()
        pg.run(f"TRUNCATE {names[1]}")
        job = copying(pg, names, where)
        job.start()
        job.wait(lambda: same(pg, names))
        if not running:
            job.kill()
        pg.run(again)
        pg.run(f"DROP PUBLICATION pub_{src}; CREATE PUBLICATION pub_{src} FOR ALL TABLES" if not running else "SELECT 1")
        pg.run(f"INSERT INTO {src} VALUES (2, 'b', 2)")
        if not running:
            job.start()
        job.fails("is another table", "--fresh")
    pg.run(f"DROP PUBLICATION pub_{src}")


@pytest.mark.parametrize("how, sentence", [("DROP TABLE {}", "was dropped on the server: all that was changed before is read"),
                                           ("ALTER PUBLICATION pub_{} DROP TABLE {}", "does not have public.{} any more")])
def test_a_table_that_is_gone_ends_the_job_when_all_of_it_is_committed(pg, names, tmp_path, how, sentence):
    """What was changed before is there, though the job stood still while it was; and other tables go on being written."""
    make(pg, names)
    pg.run(f"INSERT INTO {names[0]} SELECT i, 'v', i FROM generate_series(1, 100) i; CREATE TABLE other{names[0]} (i int)")
    job = copying(pg, names, tmp_path)
    job.start()
    job.wait(lambda: same(pg, names))
    job.proc.send_signal(signal.SIGSTOP)
    pg.run(f"INSERT INTO {names[0]} SELECT i, 'w', i FROM generate_series(101, 2000) i; DELETE FROM {names[0]} WHERE id < 50")
    want = sorted(pg.run(f"SELECT id, v, n FROM {names[0]}"))
    pg.run(how.replace("{}", names[0]))
    pg.run(f"INSERT INTO other{names[0]} VALUES (1)")
    job.proc.send_signal(signal.SIGCONT)
    job.fails(sentence.replace("{}", names[0]), seconds=120)
    assert sorted(pg.run(f"SELECT id, v, n FROM {names[1]}")) == want


def test_killed_when_the_slot_is_made_it_begins_anew(pg, names, tmp_path):
    make(pg, names)
    pg.run(f"INSERT INTO {names[0]} VALUES (1, 'a', 1)")
    job = copying(pg, names, tmp_path)
    job.start(env={"CLINK_FAULT": "postgres.slot:1:kill"})
    assert job.proc.wait(60) == -signal.SIGKILL
    pg.run(f"INSERT INTO {names[0]} VALUES (2, 'b', 2)")
    job.start()
    job.wait(lambda: same(pg, names))
    job.kill()
    assert len(pg.run("SELECT slot_name FROM pg_replication_slots")) == 1


def test_sums_of_what_changes(pg, names, tmp_path):
    make(pg, names)
    pg.run(f"CREATE TABLE sum_{names[0]} (k int PRIMARY KEY, n bigint, c bigint)")
    job = Job(tmp_path, followed(pg, names) + pg.table("sums", "k INTEGER, n BIGINT, c BIGINT, PRIMARY KEY (k) NOT ENFORCED", table=f"sum_{names[0]}")
              + "INSERT INTO sums SELECT id % 10 AS k, SUM(n) AS n, COUNT(*) AS c FROM src GROUP BY id % 10;\n")
    job.start(p=2)
    w = Writers(pg, names[0], keys=300)
    time.sleep(2)
    w.end()
    job.wait(lambda: sorted(pg.run(f"SELECT k, n, c FROM sum_{names[0]}")) == sorted(pg.run(f"SELECT id % 10, sum(n)::bigint, count(*) FROM {names[0]} GROUP BY 1")))
    job.kill()


def test_large_values_that_an_update_leaves_alone(pg, names, tmp_path):
    make(pg, names)
    pg.run(f"ALTER TABLE {names[0]} ALTER v SET STORAGE EXTERNAL; INSERT INTO {names[0]} SELECT i, repeat(i::text, 50000), 0 FROM generate_series(1, 5) i")
    job = copying(pg, names, tmp_path)
    job.start()
    job.wait(lambda: same(pg, names))
    pg.run(f"UPDATE {names[0]} SET n = 7; UPDATE {names[0]} SET id = id + 100 WHERE id < 3; DELETE FROM {names[0]} WHERE id = 4")
    job.wait(lambda: same(pg, names))
    job.kill()


def test_a_transaction_larger_than_memory(pg, names, tmp_path):
    """It is never gathered: the server's spill file is as large as need be, ours is nothing."""
    make(pg, names)
    job = Job(tmp_path, followed(pg, names) + "CREATE TABLE out (id INTEGER, n BIGINT, op VARCHAR) WITH (connector='blackhole');\n"
              + pg.table("dst", "k INTEGER, s BIGINT, PRIMARY KEY (k) NOT ENFORCED", table=f"total_{names[0]}") + "INSERT INTO dst SELECT 1 AS k, COUNT(*) AS s FROM src WHERE CHAR_LENGTH(v) > 5 GROUP BY 1;\n")
    pg.run(f"CREATE TABLE total_{names[0]} (k int PRIMARY KEY, s bigint)")
    job.start(args=("--memory", "64MB"))
    with pg.connect() as c, c.transaction():
        c.execute(f"INSERT INTO {names[0]} SELECT i, repeat('w', 1000), i FROM generate_series(1, 150000) i")
    job.wait(lambda: pg.run(f"SELECT s FROM total_{names[0]}") == [(150000,)], 120)
    peak = int(next(line for line in open(f"/proc/{job.proc.pid}/status") if line.startswith("VmHWM")).split()[1])
    job.kill()
    assert peak < 120 * 1024, f"{peak} kB for a transaction of 150 MB"


def test_the_server_may_forget_what_a_complete_checkpoint_has(pg, names, tmp_path):
    make(pg, names)
    job = copying(pg, names, tmp_path)

    def confirmed():
        return pg.run("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE NOT temporary")[0][0]

    job.start(interval_ms=3600000)
    job.wait(lambda: pg.run("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == [(1,)])
    first = confirmed()
    pg.run(f"INSERT INTO {names[0]} VALUES (1, 'a', 1)")
    time.sleep(6)
    assert confirmed() == first  # nothing but the checkpoint of the start
    job.kill()
    job.start(interval_ms=50)
    job.wait(lambda: same(pg, names))
    job.wait(lambda: pg.run("SELECT confirmed_flush_lsn > %s::pg_lsn FROM pg_replication_slots", (first,))[0][0])
    job.kill()


def test_a_server_that_goes_away_is_waited_for(pg, names, tmp_path):
    make(pg, names)
    job = copying(pg, names, tmp_path)
    job.start()
    pg.run(f"INSERT INTO {names[0]} SELECT i, 'v', i FROM generate_series(1, 1000) i")
    job.wait(lambda: same(pg, names))
    for _ in range(2):
        pg.stop(signal.SIGQUIT)
        time.sleep(AWAY_S)
        pg.start()
        pg.run(f"UPDATE {names[0]} SET n = n + 1 WHERE id % 3 = 0; DELETE FROM {names[0]} WHERE id % 50 = 7")
        job.wait(lambda: same(pg, names))
    job.kill()
    assert job.log.read_text().count("the server answers again") >= 1


def test_what_is_altered_is_said(pg, names, tmp_path):
    make(pg, names)
    for change, *words in [("ALTER TABLE {} DROP COLUMN n", "was altered on the server", 'column "n" is gone'),
                           ("ALTER TABLE {} ADD n bigint, ALTER v TYPE varchar(10)", 'column "v" has another type'),
                           ("TRUNCATE {}", "was truncated")]:
        pg.run(f"DROP TABLE IF EXISTS {names[0]}, {names[1]} CASCADE; DROP PUBLICATION IF EXISTS pub_{names[0]}")
        make(pg, names)
        where = tmp_path / str(len(words)) / change.split()[-1].strip("{}") / change.split()[0]
        where.mkdir(parents=True)
        job = copying(pg, names, where)
        job.start()
        pg.run(f"INSERT INTO {names[0]} (id, v) VALUES (1, 'a')")
        job.wait(lambda: same(pg, names))
        if "DROP" not in change and "ADD" in change:
            pg.run(f"ALTER TABLE {names[0]} ALTER v TYPE varchar(10)")
        else:
            pg.run(change.format(names[0]))
        pg.run(f"INSERT INTO {names[0]} (id, v) VALUES (2, 'b')")
        job.fails(*words)
        # A column more is nobody's business.
    pg.run(f"DROP TABLE IF EXISTS {names[0]}, {names[1]} CASCADE; DROP PUBLICATION IF EXISTS pub_{names[0]}")
    make(pg, names)
    (tmp_path / "more").mkdir()
    job = copying(pg, names, tmp_path / "more")
    job.start()
    pg.run(f"ALTER TABLE {names[0]} ADD extra int; INSERT INTO {names[0]} VALUES (1, 'a', 1, 5)")
    job.wait(lambda: pg.run(f"SELECT id, v, n FROM {names[1]}") == [(1, "a", 1)])
    job.kill()


def test_what_is_missing_is_said_before_anything_runs(pg, names, tmp_path):
    make(pg, names, identity="DEFAULT")
    select = "SELECT id FROM src"
    refused(followed(pg, names) + select, f"ALTER TABLE public.{names[0]} REPLICA IDENTITY FULL")
    pg.run(f"ALTER TABLE {names[0]} REPLICA IDENTITY FULL")
    refused(pg.table("src", DECLARED, table=names[0], mode="cdc", publication="nobody") + select, 'no publication "nobody"', "CREATE PUBLICATION")
    refused(pg.table("src", DECLARED, table=names[0], mode="cdc") + select, "needs the option 'publication'")
    pg.run(f"CREATE PUBLICATION other_{names[0]} FOR TABLE {names[1]}; CREATE PUBLICATION part_{names[0]} FOR TABLE {names[0]} WITH (publish = 'insert')")
    refused(pg.table("src", DECLARED, table=names[0], mode="cdc", publication=f"other_{names[0]}") + select, "does not have public." + names[0])
    refused(pg.table("src", DECLARED, table=names[0], mode="cdc", publication=f"part_{names[0]}") + select, "leaves inserts, updates or deletes out")
    pg.run("SELECT pg_create_logical_replication_slot('taken', 'pgoutput')")
    refused(followed(pg, names, slot="taken") + select, 'slot "taken" is there already')
    refused(followed(pg, names, slot="Taken!") + select, "lower-case letters")
    refused(followed(pg, names, slot="") + select, "lower-case letters")
    pg.run(f"CREATE PUBLICATION some_{names[0]} FOR TABLE {names[0]} WHERE (n > 1); CREATE PUBLICATION few_{names[0]} FOR TABLE {names[0]} (id, v)")
    refused(pg.table("src", DECLARED, table=names[0], mode="cdc", publication=f"some_{names[0]}") + select, "has only the rows of", "WHERE (n > 1)")
    refused(pg.table("src", DECLARED, table=names[0], mode="cdc", publication=f"few_{names[0]}") + "SELECT n FROM src", 'does not send column "n"', "its list of columns")
    pg.run(f"ALTER TABLE {names[0]} ADD g bigint GENERATED ALWAYS AS (n * 2) STORED")
    refused(pg.table("src", DECLARED + ", g BIGINT", table=names[0], mode="cdc", publication=f"pub_{names[0]}") + "SELECT g FROM src",
            'does not send column "g"', "the server generates it")
    pg.run(f"DROP PUBLICATION some_{names[0]}, few_{names[0]}; ALTER TABLE {names[0]} DROP g")
    refused(pg.table("src", DECLARED, table=names[0], slot="x") + select, "are of mode = 'cdc'")
    pg.run(f"DO $$ BEGIN CREATE USER plain; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT SELECT ON {names[0]} TO plain")
    refused(followed(pg, names, user="plain") + select, "may not follow changes")
    # A slot is only made when nobody writes.
    with pg.connect(autocommit=False) as c:
        c.execute(f"INSERT INTO {names[1]} VALUES (1, 'a', 1)")
        refused(followed(pg, names, timeout_ms="1000") + select, "one may still be open (pg_stat_activity")
        c.rollback()
    # A slot that is gone, and one that a later checkpoint has confirmed.
    job = copying(pg, names, tmp_path)
    job.start()
    pg.run(f"INSERT INTO {names[0]} VALUES (1, 'a', 1)")
    job.wait(lambda: same(pg, names))
    job.kill()
    while True:
        try:
            pg.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'clink%'")
            break
        except psycopg.errors.ObjectInUse:
            time.sleep(.05)
    job.start()
    job.fails("is gone from the server")


def test_a_server_without_logical_wal_is_said(tmp_path):
    s = Server(wal_level="replica")
    s.start()
    try:
        s.run("CREATE TABLE t (id int); ALTER TABLE t REPLICA IDENTITY FULL")
        s.run("CREATE PUBLICATION p FOR TABLE t")
        refused(s.table("t", "id INTEGER", mode="cdc", publication="p") + "SELECT id FROM t", "wal_level = replica")
    finally:
        s.remove()


def test_only_changes_from_now_on(pg, names, tmp_path):
    make(pg, names)
    pg.run(f"INSERT INTO {names[0]} VALUES (1, 'before', 1)")
    job = copying(pg, names, tmp_path, snapshot="never")
    job.start()
    job.wait(lambda: pg.run("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == [(1,)])
    pg.run(f"INSERT INTO {names[0]} VALUES (2, 'after', 2)")
    job.wait(lambda: pg.run(f"SELECT id FROM {names[1]}") == [(2,)])
    job.kill()
