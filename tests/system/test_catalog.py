"""--catalog DIR: definitions outlive the run; what would not load again is refused; damaged and foreign files are told apart."""
import fcntl
import struct

F_OFD_SETLK = 37  # Linux; in the fcntl module from Python 3.9 on only where it was built so

TABLE = "CREATE TABLE t (i INT) WITH (connector='datagen', rows=3, fields.i.kind='sequence');"


def test_definitions_stay(clink):
    clink("run", "--catalog", "cat", "-e", TABLE + "CREATE VIEW v AS SELECT i + 1 AS j FROM t; CREATE FUNCTION f(x INT) RETURNS INT RETURN x * 2;"
          "CREATE TEMPORARY VIEW w AS SELECT 1 AS a")
    r = clink("run", "--catalog", "cat", "-e", "SELECT f(j) AS f FROM v; SHOW TABLES")
    assert r.lines == ["t", "v", '{"f":2}', '{"f":4}', '{"f":6}']
    clink("run", "--catalog", "cat", "-e", "ALTER TABLE t SET (rows=1); DROP FUNCTION f")
    assert clink("run", "--catalog", "cat", "-e", "SELECT j FROM v").lines == ['{"j":1}']
    assert "there is no function" in clink("run", "--catalog", "cat", "-e", "SELECT f(1)", ok=False).err


def test_order_of_definitions_does_not_matter(clink):
    clink("run", "--catalog", "cat", "-e", TABLE + "CREATE VIEW v AS SELECT i FROM t; CREATE VIEW u AS SELECT i FROM v;"
          "CREATE OR REPLACE VIEW v AS SELECT i, 1 AS k FROM t; ALTER TABLE t ADD c INT")
    assert clink("run", "--catalog", "cat", "-e", "SELECT i FROM u WHERE i = 2").lines == ['{"i":2}']


def test_nothing_is_kept_that_would_not_load(clink, tmp_path):
    clink("run", "--catalog", "cat", "-e", TABLE + "CREATE VIEW v AS SELECT i FROM t")
    before = (tmp_path / "cat" / "catalog.sql").read_bytes()
    for sql in ("DROP TABLE t", "CREATE TEMPORARY TABLE tt (i INT); CREATE VIEW vv AS SELECT i FROM tt", "ALTER TABLE t RENAME TO s",
                "CREATE TABLE u (a INT); SELECT nothing FROM u"):
        assert clink("run", "--catalog", "cat", "-e", sql, ok=False).code == 1
        assert (tmp_path / "cat" / "catalog.sql").read_bytes() == before
    r = clink("run", "--catalog", "cat", "-e", "DROP TABLE t", ok=False)
    assert "what stays in the catalog needs what this script takes away" in r.err and 'unknown table "t"' in r.err and "CREATE VIEW v AS" in r.err
    clink("run", "--catalog", "cat", "-e", "DROP VIEW v; DROP TABLE t")
    assert clink("run", "--catalog", "cat", "-e", "SHOW TABLES").out == ""


def test_other_files_are_refused(clink, tmp_path):
    path = tmp_path / "cat" / "catalog.sql"
    path.parent.mkdir()
    for text, says in ((b"hello\n", "is not a catalog"), (b"-- clink catalog, version 2\n", "has version 2"), (b"", "catalog.sql is empty, which a catalog never is"),
                       (b"-- clink catalog, version 1\nSELECT 1;\n", "catalog.sql:2:1: only CREATE"),
                       (b"-- clink catalog, version 1\nCREATE TABLE t (a INT) WITH (connector='fil');\n", "catalog.sql:2:"),
                       (b"-- clink catalog, version 1\nCREATE TABLE \x00", "catalog.sql:2:")):
        path.write_bytes(text)
        r = clink("run", "--catalog", "cat", "-e", "SELECT 1 AS one", ok=False)
        assert r.code == 1 and says in r.err, r.err
        assert path.read_bytes() == text
    assert clink("run", "--catalog", "", "-e", "SELECT 1", ok=False).code == 2


def test_crash_while_writing_leaves_the_old_catalog(clink, tmp_path):
    clink("run", "--catalog", "cat", "-e", TABLE)
    before = (tmp_path / "cat" / "catalog.sql").read_bytes()
    r = clink("run", "--catalog", "cat", "-e", "DROP TABLE t", env={"CLINK_FAULT": "durable.after_fsync:1:kill"}, ok=False)
    assert r.code != 0 and (tmp_path / "cat" / "catalog.sql").read_bytes() == before
    left = [p for p in (tmp_path / "cat").iterdir() if p.name.startswith(".tmp-")]
    assert left, "the temporary file of the writer that was killed"
    with open(tmp_path / "cat" / "catalog.lock") as f:  # somebody writes: it may be his
        fcntl.fcntl(f, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
        clink("run", "--catalog", "cat", "-e", "SELECT i FROM t")
        assert left[0].exists()
    clink("run", "--catalog", "cat", "-e", "SELECT i FROM t")
    assert sorted(p.name for p in (tmp_path / "cat").iterdir()) == ["catalog.lock", "catalog.sql"]


def test_relative_paths_are_kept_absolute(clink, tmp_path):
    (tmp_path / "it's here").mkdir()
    (tmp_path / "it's here" / "t.ndjson").write_text('{"i":1}\n')
    made = "CREATE TABLE t (i INT) /* kept */ WITH (path='it''s here/t.ndjson', connector='file', format='json');\n"
    clink("run", "--catalog", "cat", "-e", made + "CREATE TABLE o (i INT) WITH (connector='file', format='json', path='out');"
          "CREATE TABLE s (i INT) WITH (connector='file', format='json', path='-'); CREATE TABLE c WITH (connector='file', format='json', path='made') AS SELECT i FROM t")
    kept = (tmp_path / "cat" / "catalog.sql").read_text()
    assert "CREATE TABLE t (i INT) /* kept */ WITH (path='" + str(tmp_path / "it''s here" / "t.ndjson") + "', connector='file', format='json');" in kept
    assert "path='-'" in kept and str(tmp_path / "made") in kept
    (tmp_path / "elsewhere").mkdir()
    clink("run", "--catalog", "../cat", "-e", "INSERT INTO o SELECT i FROM t", cwd=tmp_path / "elsewhere")
    assert [p.name[:5] for p in (tmp_path / "out").iterdir()] == ["part-"] and not list((tmp_path / "elsewhere").iterdir())
    clink("run", "--catalog", "../cat", "-e", "ALTER TABLE o SET (path='moved')", cwd=tmp_path / "elsewhere")
    clink("run", "--catalog", "cat", "-e", "INSERT INTO o SELECT i FROM t")
    assert [p.name[:5] for p in (tmp_path / "elsewhere" / "moved").iterdir()] == ["part-"]
    # without a catalog nothing changes
    assert "it''s here/t.ndjson'" in clink("run", "-e", made + "SHOW CREATE TABLE t").out and str(tmp_path) not in clink("run", "-e", made + "SHOW CREATE TABLE t").out


def test_alter_keeps_event_time(clink, tmp_path):
    """Whatever is altered, the watermark stays, also in the catalog that is kept."""
    (tmp_path / "t.ndjson").write_text("".join('{"at":"2024-01-01 00:00:%02d","v":%d}\n' % (i, i) for i in range(30)))
    count = ("SELECT window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE %s, DESCRIPTOR(%s), INTERVAL '10' SECOND)) GROUP BY window_start, window_end")
    clink("run", "--catalog", "cat", "-e", "CREATE TABLE t (at TIMESTAMP(3), v INT, WATERMARK FOR at AS at - INTERVAL '1.5' SECOND)"
          " WITH (connector='file', format='json', path='t.ndjson')")
    want = clink("run", "--catalog", "cat", "-e", count % ("t", "at")).lines
    assert len(want) == 3
    table, column = "t", "at"
    for alter, table, column in [("ADD w INT", "t", "at"), ("RENAME TO u", "u", "at"), ("SET (strict = true)", "u", "at"), ("MODIFY v BIGINT", "u", "at"),
                                 ("DROP w", "u", "at"), ("RESET (strict)", "u", "at")]:
        clink("run", "--catalog", "cat", "-e", f"ALTER TABLE {'t' if 'RENAME TO' in alter else table} {alter}")
        assert "WATERMARK FOR \"at\" AS \"at\" - INTERVAL '1.500000' SECOND" in (tmp_path / "cat" / "catalog.sql").read_text(), alter
        assert clink("run", "--catalog", "cat", "-e", count % (table, column)).lines == want, alter
