"""The command as people use it: what it says at the start and the end, on a terminal and in a pipe, and what it refuses."""
import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import termios
import time

import pytest
from conftest import CLINK, write_ndjson

ORDERS = "CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson');\n"
DEAD = "CREATE TABLE dead (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='dead');\n"


def out_table(name="o", path="out", more=""):
    return f"CREATE TABLE {name} (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='{path}'{more});\n"


@pytest.fixture
def orders(tmp_path):
    write_ndjson(tmp_path / "orders.ndjson", [{"usr": "alice", "amount": 12}, {"usr": "bob", "amount": 7}])
    (tmp_path / "job.sql").write_text(ORDERS + out_table() + "INSERT INTO o SELECT usr, amount FROM orders;\n")
    return tmp_path


def on_terminal(args, cwd, stdin=None, keys=b"", until=None, seconds=60, columns=0):
    """Runs the command with a terminal as its three descriptors (or stdin given); what it showed, and its exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        if stdin:
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.execve(CLINK, [CLINK, *args], {**os.environ, "TERM": "xterm", "HOME": str(cwd), "XDG_STATE_HOME": str(cwd / "state")})
    if columns:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
        if keys and until in seen:
            os.write(fd, keys)
            keys = b""
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return seen.decode("utf-8", "replace").replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


# ---- at the start ----


def test_the_umask_decides_who_reads_output(orders):
    for mask, folder, file in ((0o022, 0o755, 0o644), (0o027, 0o750, 0o640), (0o077, 0o700, 0o600)):
        name = f"out{mask:o}"
        (orders / "job.sql").write_text(ORDERS + out_table(path=f"{name}/deep") + "INSERT INTO o SELECT usr, amount FROM orders;\n")
        args = [CLINK, "run", "--checkpoint-dir", f"ck{mask:o}", "job.sql"]
        subprocess.run(args, cwd=orders, check=True, capture_output=True, preexec_fn=lambda: os.umask(mask))
        parts = list((orders / name / "deep").iterdir())
        assert len(parts) == 1
        assert [stat.S_IMODE(os.stat(p).st_mode) for p in (orders / name, orders / name / "deep", parts[0])] == [folder, folder, file]
        for base, _, files in os.walk(orders / f"ck{mask:o}"):  # checkpoints are nobody else's business
            assert stat.S_IMODE(os.stat(base).st_mode) == 0o700
            assert all(stat.S_IMODE(os.stat(os.path.join(base, f)).st_mode) == 0o600 for f in files)


def test_each_sink_says_what_it_promises(clink, orders):
    sql = ORDERS + out_table() + out_table("p", "p", ", delivery='at_least_once'") + (
        "CREATE TABLE seen (usr VARCHAR, amount BIGINT) WITH (connector='print');\n"
        "INSERT INTO o SELECT usr, amount FROM orders; INSERT INTO p SELECT usr, amount FROM orders; INSERT INTO seen SELECT usr, amount FROM orders;\n")
    r = clink("run", "--name", "j", "--checkpoint-dir", "ck", "-e", sql)
    assert re.search(r"^clink: j: o: exactly once: ", r.err, re.M) and re.search(r"^clink: j: p: at least once: delivery", r.err, re.M)
    assert re.search(r"^clink: j: seen: at least once: ", r.err, re.M)
    assert "guarantee: p: at least once: delivery" in clink("explain", "--name", "j", "--checkpoint-dir", "ck", "-e", sql).out
    r = clink("run", "job.sql")
    assert r.err.count("none across restarts") == 1


def test_adding_to_the_output_of_an_earlier_run_is_said(clink, orders):
    assert "earlier runs" not in clink("run", "job.sql").err
    r = clink("run", "job.sql")
    assert "warning: o: the directory out holds 1 file of earlier runs, and this run adds to them" in r.err
    (orders / "out" / "notes.txt").write_text("not a part")
    assert "holds 2 files" in clink("run", "--checkpoint-dir", "ck", "job.sql").err
    # a job that goes on has written its own
    assert "earlier runs" not in clink("run", "--checkpoint-dir", "ck2", "--name", "k", "-e", ORDERS + out_table("n", "new") + "INSERT INTO n SELECT usr, amount FROM orders").err
    assert "earlier runs" not in clink("run", "--checkpoint-dir", "ck2", "--name", "k", "-e", ORDERS + out_table("n", "new") + "INSERT INTO n SELECT usr, amount FROM orders").err


def test_a_path_that_cannot_be_written_is_said_before_anything_runs(clink, orders):
    (orders / "out").write_text("")
    r = clink("run", "job.sql", ok=False)
    assert r.code == 1 and "table o: out is a file; a table that is written is a directory of parts" in r.err
    assert "none across restarts" not in r.err and "subtask" not in r.err  # it never started
    r = clink("run", "-e", ORDERS + out_table("o", "out/sub") + "INSERT INTO o SELECT usr, amount FROM orders", ok=False)
    assert r.code == 1 and "table o: out/sub cannot be made: out is a file" in r.err


def test_another_script_names_the_way_out(clink, orders):
    clink("run", "--checkpoint-dir", "ck", "job.sql")
    (orders / "job.sql").write_text(ORDERS + out_table() + "INSERT INTO o SELECT usr, amount + 1 FROM orders;\n")
    r = clink("run", "--checkpoint-dir", "ck", "job.sql", ok=False)
    assert r.code == 1 and "another script" in r.err and "--fresh" in r.err and not re.search(r"[0-9a-f]{16}", r.err)
    clink("run", "--checkpoint-dir", "ck", "--fresh", "job.sql")


# ---- what a plan says ----


def test_explain_says_what_sources_wait_for(clink, orders):
    sql = ("CREATE TABLE t (ts TIMESTAMP(3), i BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', format='json', path='t.ndjson', follow='true');\n"
           "SELECT COUNT(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)")
    assert re.search(r"source\.file t \(ts\)\n +watermark ts - 5 s, idle after 1 min, follows what is appended\n", clink("explain", "-e", sql).out)
    assert "watermark" not in clink("explain", "job.sql").out
    assert "watermark ts - 5 s" in clink("help", "explain").out  # the legend
    shown, code = on_terminal(["explain", "job.sql"], orders)
    assert code == 0 and "sink.file o (usr, amount)" in shown and "clink help explain" in shown


# ---- errors ----


@pytest.mark.parametrize("args,code,says", [
    (["run", "-e", "CREATE TABLE t (i INT) WITH (connector='pulsar')"], 1, "unknown connector pulsar; there are file, print,"),
    (["run", "--paralel", "2"], 2, "did you mean --parallelism?"),
    (["run", "-e", ""], 2, "no statement"),
    (["run", "-e", " -- nothing\n;"], 2, "no statement"),
    (["run", "-e", "SET timezone = 'Mars/Base'; SELECT 1"], 1, "-e:1:5: no time zone 'Mars/Base'"),
    (["run", "--set", "timezone=Mars/Base", "-e", "SELECT 1"], 2, "no time zone 'Mars/Base'"),
    (["run", "-e", "SELECT LAG() OVER (ORDER BY a) FROM (VALUES (1)) AS t (a)"], 1, "LAG takes a value"),
    (["explain", "--explain", "-e", "SELECT 1"], 2, "unknown flag --explain"),
    (["run", "--memory", "1", "-e", "SELECT 1"], 2, "--memory 1 is less than a job begins with; 1M is the least"),
    (["run", "--memory", "1000k", "-e", "SELECT 1"], 2, "1M is the least"),
    (["run", "--memory", "0", "-e", "SELECT 1"], 2, "takes a size such as"),
    (["run", "-e", "SELECT 1/x AS y FROM (VALUES (1),(0)) AS t(x)"], 1, "division by zero in 1 / x (line 1, column 9) (in project 1 / x AS y)"),
    (["job.sql"], 2, "clink run job.sql runs a script"),
    (["-e", "SELECT 1"], 2, "a verb comes first, and '-e' is none: clink run -e SQL"),
    (["run", "-c", "SELECT 1"], 2, "-e takes SQL, and a file stands alone"),
    (["sql", "-f", "job.sql"], 2, "clink run takes -e SQL or a file"),
    (["run", "SELECT 1"], 1, "No such file or directory; -e takes SQL itself"),
    (["run", "a.sql", "b.sql"], 2, "cat FILES | clink run - takes several"),
    (["run", "a.sql", "-e", "SELECT 1"], 2, "(cat a.sql; echo 'SQL') | clink run - takes both"),
    (["run", "-e", "ADD JAR 'x.jar'"], 1, "--plugin FILE.so brings functions"),
    (["run", "-p", "2", "-e", "SELECT x, COUNT(*) / 0 AS y FROM (VALUES (1)) AS t(x) GROUP BY x"], 1, ", subtask "),
])
def test_errors(clink, args, code, says):
    r = clink(*args, ok=False)
    assert r.code == code and says in r.err, r.err
    assert "<-" not in r.err


def test_columns_that_no_record_has_a_key_for_are_named(clink, tmp_path):
    write_ndjson(tmp_path / "in.ndjson", [{"Id": i, "userName": f"u{i}"} for i in range(20000)] + [{"Id": 1, "rare": None}])

    def says(columns, query="SELECT * FROM t", *flags):
        err = clink("run", *flags, "-e", f"CREATE TABLE t ({columns}) WITH (connector='file', path='in.ndjson'); {query}").err
        return [line for line in err.splitlines() if "no record of" in line]

    no = "clink: -e: no record of t that was read has a key "
    for flags in ((), ("-p", "3"), ("--set", "batch_rows=1")):
        assert says("Id INT, userName VARCHAR, rare INT", "SELECT * FROM t", *flags) == []
        assert says("id INT, userName VARCHAR, rare INT", "SELECT * FROM t", *flags) == [no + '"id": NULL in every row; case counts, and there is "Id"']
        assert says("Id INT, user VARCHAR, zip INT", "SELECT * FROM t", *flags) == [no + '"user", "zip": NULL in every row']
    assert says("Id INT, zip INT", "SELECT Id FROM t") == []  # nobody asked for it
    assert says("Id INT, zip INT, z AS zip + 1", "SELECT z FROM t") == [no + '"zip": NULL in every row']
    many = ", ".join(f"c{i} INT" for i in range(70))
    assert says(many, "SELECT * FROM t LIMIT 1")[0].endswith('"c7" and 56 more: NULL in every row')
    (tmp_path / "in.ndjson").write_text("")
    assert says("zip INT") == []
    (tmp_path / "in.csv").write_text("Id,b\n1,2\n")
    r = clink("run", "-e", "CREATE TABLE t (b INT, id INT) WITH (connector='file', path='in.csv', header='true'); SELECT * FROM t", ok=False)
    assert r.err == "clink: in.csv: the header does not name column id; case counts, and it names Id\n"


def test_a_record_is_named_once(clink, orders):
    (orders / "orders.ndjson").write_text('{"usr":"a","amount":"x"}\n')
    r = clink("run", "job.sql", ok=False)
    assert r.code == 1 and r.err.count("orders.ndjson") == 1 and "subtask" not in r.err, r.err
    (orders / "orders.ndjson").unlink()
    r = clink("run", "job.sql", ok=False)
    assert re.match(r"clink: job.sql:1:\d+: table orders: there is no file orders.ndjson\n", r.err) and r.err.count(": there is no file") == 1, r.err


def test_several_e_are_one_script(clink):
    r = clink("run", "-e", "CREATE VIEW v AS SELECT 1 AS a -- one", "-e", "SELECT a FROM v;", "-e", "SELECT a + 1 AS b FROM v")
    assert r.lines == ['{"a":1}', '{"b":2}']


@pytest.mark.parametrize("path", ["/proc/cpuinfo", "/proc/self/status"])
def test_files_without_a_size_are_refused(clink, path):
    r = clink("run", "-e", f"CREATE TABLE t (c VARCHAR) WITH (connector='file', format='csv', path='{path}'); SELECT COUNT(*) FROM t", ok=False)
    assert r.code == 1 and path in r.err and "path = '-'" in r.err


# ---- at the end ----


def test_what_writes_nothing_has_nothing_to_say(clink, orders):
    for sql in ("EXPLAIN SELECT 1", ORDERS + "SHOW TABLES; DESCRIBE orders; EXPLAIN SELECT usr FROM orders", "CREATE TABLE t (i INT)", "SELECT 1"):
        assert clink("run", "-e", sql).err == ""
    assert "0 rows" not in clink("run", "--name", "j", "--checkpoint-dir", "ck", "-e", "EXPLAIN SELECT 1").err


def test_what_was_left_out_is_said_by_table(clink, orders):
    (orders / "orders.ndjson").write_text('{"usr":"a","amount":1}\n{"usr":"b","amount":"x"}\nnonsense\n')
    bad = ORDERS.replace("ndjson'", "ndjson', on_error='{}'")
    r = clink("run", "-e", bad.format("skip") + out_table() + "INSERT INTO o SELECT usr, amount FROM orders")
    assert "clink: -e: 2 records of orders did not fit and were left out" in r.err
    assert re.search(r"clink: -e: 1 row in \(\d+B\), 1 out, 2 skipped, [0-9.]+s$", r.err.strip())
    r = clink("run", "-e", DEAD + bad.format("dead_letter', dead_letter_table='dead") + out_table() + "INSERT INTO o SELECT usr, amount FROM orders")
    assert "2 records of orders did not fit and went to dead" in r.err and "left out" not in r.err
    assert re.search(r"1 row in \(\d+B\), 1 out, 2 put aside, ", r.err)


def test_late_rows(clink, tmp_path):
    write_ndjson(tmp_path / "t.ndjson", [{"ts": f"2024-01-01T00:00:{s:02}", "i": s} for s in (1, 50, 2)])
    sql = ("CREATE TABLE t (ts TIMESTAMP(3), i BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', format='json', path='t.ndjson');\n"
           "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end")
    r = clink("run", "--set", "batch_rows=1", "-e", sql)
    assert "1 of 3 rows came too late for its window, up to 48 s behind the watermark, and was dropped (" in r.err
    assert r.err.rstrip().endswith("; a longer delay of the watermark waits for them, late_table keeps them")
    # Behind a join they are rows of no table, which late_table could keep.
    write_ndjson(tmp_path / "names.ndjson", [{"i": i, "name": "x"} for i in (1, 2, 50)])
    joined = (sql.split("\n")[0] + "CREATE TABLE names (i BIGINT, name VARCHAR) WITH (connector='file', path='names.ndjson');\n"
              "SELECT window_start, COUNT(*) AS n FROM (SELECT t.ts, m.name FROM t JOIN names FOR SYSTEM_TIME AS OF PROCTIME() AS m ON t.i = m.i) "
              "GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)")
    r = clink("run", "--set", "batch_rows=1", "-e", joined)
    assert "came too late" in r.err and r.err.rstrip().endswith("; a longer delay of the watermark waits for them")
    late = "CREATE TABLE late (op VARCHAR, ts TIMESTAMP(3), i BIGINT) WITH (connector='file', format='json', path='late');\n"
    r = clink("run", "--set", "batch_rows=1", "-e", late + sql.replace("t.ndjson'", "t.ndjson', late_table='late'"))
    assert "1 of 3 rows came too late for its window, up to 48 s behind the watermark, and went to late (" in r.err and "dropped" not in r.err


# ---- on a terminal ----


def test_a_table_on_a_terminal_and_lines_in_a_pipe(clink, tmp_path):
    sql = "SELECT * FROM (VALUES (1, 'one', CAST(NULL AS DOUBLE)), (22, CAST(NULL AS VARCHAR), 2.5)) AS t (i, name, x)"
    shown, code = on_terminal(["run", "-e", sql], tmp_path)
    lines = [line.rstrip() for line in shown.replace("\r\033[K", "").splitlines()]
    assert code == 0 and [c.strip() for c in lines[0].split("|")] == ["i", "name", "x"] and lines[-1] == "(2 rows)", lines
    assert [c.strip() for c in lines[2].split("|")] == ["1", "one", "NULL"] and lines[3].split("|")[1].strip() == "NULL"
    assert clink("run", "-e", sql).rows == [{"i": 1, "name": "one", "x": None}, {"i": 22, "name": None, "x": 2.5}]


def test_progress_is_shown_on_a_terminal_and_cleared(clink, tmp_path):
    with open(tmp_path / "t.ndjson", "w") as f:
        f.write('{"a":1}\n' * 4000)
    sql = ("CREATE TABLE t (a BIGINT) WITH (connector='file', format='json', path='t.ndjson', rate_limit='4000');\n"
           "CREATE TABLE o (a BIGINT) WITH (connector='file', format='json', path='out'); INSERT INTO o SELECT a FROM t")
    shown, code = on_terminal(["run", "-e", sql], tmp_path)
    assert code == 0
    assert re.search(r"\r\033\[K *\d+% [\d.k]+ rows, [\d.k]+ rows/s, [\d.kM]+B/s, [\d.]+s left, memory ", shown), shown
    last = shown.rstrip("\n").split("\033[K")[-1].splitlines()
    assert last[-1].startswith("clink: -e: 4000 rows in (32kB), 4000 out, ") and "%" not in last[-1]
    assert "%" not in clink("run", "-e", sql).err


def test_progress_names_what_holds_the_watermark(clink, tmp_path):
    for name, first in (("a", 0), ("b", 30)):
        write_ndjson(tmp_path / f"{name}.ndjson", [{"ts": f"2024-01-01T00:00:{first + s % 30:02}", "i": s} for s in range(2000)])
    sql = ("CREATE TABLE t (ts TIMESTAMP(3), i BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', format='json', path='*.ndjson', rate_limit='1500');\n"
           "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end")
    shown, code = on_terminal(["run", "-e", sql], tmp_path, columns=200)
    assert code == 0 and re.search(r"rows/s.*memory [^,]*, (no watermark yet:|watermark) held by [ab]\.ndjson.* of t", shown), shown
    assert re.search(r"[\r\n]\033\[Kwindow_start +\| +n\n", shown.replace("\033[K ", "\033[K")), shown  # the table begins where the line was cleared
    shown, code = on_terminal(["run", "-e", sql], tmp_path, columns=50)  # what is wider could not be cleared
    lines = re.findall(r"\r\033\[K([^\r\n\033]*rows/s[^\r\n\033]*)", shown)
    assert code == 0 and lines and all(len(x) <= 49 for x in lines), shown


def test_control_c_and_sigterm(tmp_path):
    sql = "CREATE TABLE g (i BIGINT) WITH (connector='datagen', fields.i.kind='sequence', rate_limit=1000); SELECT i FROM g"
    shown, code = on_terminal(["run", "--format", "ndjson", "-e", sql], tmp_path, keys=b"\x03", until=b'{"i":3}')
    assert code == 130 and "stopping; once more stops at once" in shown
    for sig in (signal.SIGTERM, signal.SIGINT):
        p = subprocess.Popen([CLINK, "run", "-e", sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.readline()
        p.send_signal(sig)
        _, err = p.communicate(timeout=60)
        assert p.returncode == 130 and b"stopping" in err


def test_wide_rows_and_control_characters_keep_their_line(tmp_path):
    sql = "SELECT " + ", ".join(f"'{'x' * 30}' AS column_{i}" for i in range(30)) + ", 'a\nb\tc\x1b[31m' AS odd"
    shown, code = on_terminal(["run", "-e", sql], tmp_path)
    lines = shown.replace("\r\033[K", "").splitlines()
    assert code == 0 and len(lines) == 4 and r"a\nb\tc\x1b[31m" in lines[2]
    assert [m.start() for m in re.finditer(r"\|", lines[0])] == [m.start() for m in re.finditer(r"\|", lines[2])]


# ---- the shell ----


def test_shell_words(clink, tmp_path):
    functions = clink("sql", stdin="\\df upp\n\\df it's\n").lines
    assert functions == ["upper"]
    assert clink("sql", stdin="CREATE VIEW v AS SELECT 1 AS i;\nCREATE TABLE t (i INT);\n\\dt\n\\dv\n\\d+ t\n").lines == ["v", "t", "v", "CREATE TABLE t (i INT);"]
    r = clink("sql", stdin=".tables\nSELECT 1 AS one;\n", ok=False)
    assert r.code == 1 and r.lines == ['{"one":1}'] and "commands begin with a backslash here" in r.err
    (tmp_path / "more statements.sql").write_text("SELECT 5 AS five;")
    r = clink("sql", stdin="help;\nSELECT 1 AS one;\n\\i more statements.sql\n quit ;\nSELECT 2 AS two;\n")
    assert "exit and quit" in r.out and r.lines[-2:] == ['{"one":1}', '{"five":5}']
    deep = "d" * 200 + "/" + "e" * 200
    os.makedirs(tmp_path / deep)
    (tmp_path / deep / "q.sql").write_text("SELECT 6 AS six;")
    assert clink("sql", stdin=f"\\i {deep}/q.sql\n").lines == ['{"six":6}']
    assert clink("sql", stdin="  \\d\nCREATE TABLE t (i INT);\n \\d t").lines == ["i     INTEGER"]  # the last line has no end
    for wrong, says in (("\\i -", "takes a file"), ("\\i", "takes a file"), ("\\timing x", "is on or off"), ("\\d nope", 'unknown table "nope"'), ("\\nope", "unknown command \\nope"), ("\\format xml", "ndjson, table or csv"), ("\\i none.sql", "none.sql")):
        r = clink("sql", stdin=wrong + "\nSELECT 1 AS one;\n", ok=False)
        assert r.code == 1 and says in r.err and r.lines == ['{"one":1}']
