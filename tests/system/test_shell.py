"""clink sql: statements from standard input, and the shell on a terminal (completion, history, Ctrl-C, commands)."""
import os
import pty
import select
import signal
import subprocess
import termios
import time

import pytest
from conftest import CLINK

SQL = """CREATE TABLE t (i BIGINT); -- a comment; with a semicolon
INSERT INTO t VALUES (1), (2); SELECT ';' AS "s;";
SELECT i FROM t
 WHERE i > 1;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO t SELECT CASE WHEN TRUE THEN 3 ELSE 4 END;
END;
SELECT COUNT(*) AS n FROM t"""


def test_statements_one_by_one(clink):
    assert clink("sql", stdin=SQL).lines == ['{"s;":";"}', '{"i":2}', '{"n":3}']
    assert clink("sql", "--format", "csv", "-p", "2", stdin="SELECT 1 AS a, 'x' AS b;").lines[-1] == "1,x"


def test_a_table_does_not_take_the_statements(clink):
    r = clink("sql", stdin="CREATE TABLE s (a BIGINT) WITH (connector='file', format='json', path='-');\nSELECT COUNT(*) FROM s;\nSELECT 1 AS one;\n", ok=False)
    assert r.code == 1 and r.lines == ['{"one":1}'] and "the script was read from it" in r.err


def test_after_an_error_it_goes_on(clink):
    r = clink("sql", stdin="SELECT nope;\nSELECT 1 AS one;\n", ok=False)
    assert r.code == 1 and r.lines == ['{"one":1}'] and 'unknown column "nope"' in r.err
    assert clink("sql", "more", ok=False).code == 2
    r = clink("sql", stdin="BEGIN;\nSELECT 1 AS one;\n", ok=False)  # BEGIN STATEMENT SET would take what follows
    assert r.code == 1 and r.lines == ['{"one":1}'] and "expected STATEMENT" in r.err
    r = clink("sql", stdin=b"SELECT 1 AS one;\nSELECT \x00;\n", ok=False)
    assert r.code == 1 and "NUL" in r.err


def test_commands(clink, tmp_path):
    (tmp_path / "more.sql").write_text("CREATE VIEW v AS SELECT i + 1 AS j FROM t; SELECT j FROM v;")
    r = clink("sql", stdin="CREATE TABLE t (i BIGINT);\nINSERT INTO t VALUES (1);\n\\i more.sql\n\\d\n\\d v\n\\sf t\n\\format csv\nSELECT i FROM t;\n\\q\nSELECT 7;")
    assert r.lines == ['{"j":2}', "t", "v", "j     BIGINT", "CREATE TABLE t (i BIGINT);", "i", "1"], r.out


class Terminal:
    def __init__(self, cwd, *args):
        # libedit keeps the names of functions it is given (EL_ADDFN) for ever: nothing else leaks here
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TERM": "xterm", "XDG_STATE_HOME": str(cwd / "state"), "HOME": str(cwd)}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(CLINK, [CLINK, "sql", *args], env)
        self.seen = ""

    def expect(self, text, seconds=60):
        """Reads until text has come; what came before it is dropped."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not come: {self.seen!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            assert data, f"the shell ended before {text!r}: {self.seen!r}"
            self.seen += data.decode("utf-8", "replace")
        before, self.seen = self.seen.split(text, 1)
        if text in ("clink> ", "   ... "):
            self.wait_for_editor(end)
        return before

    def wait_for_editor(self, end):
        """The prompt comes before the line editor takes the terminal; what is typed between is read by the wrong rules."""
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "the line editor did not take the terminal"
            time.sleep(0.005)

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds=60):
        end = time.monotonic() + seconds
        try:
            while select.select([self.fd], [], [], max(0, end - time.monotonic()))[0] and os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        assert time.monotonic() < end, "the shell did not end"
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def shell(tmp_path):
    started = []

    def start(*args):
        t = Terminal(tmp_path, *args)
        started.append(t)
        t.expect("clink> ")
        return t

    yield start
    for t in started:
        try:
            os.kill(t.pid, signal.SIGKILL)
            os.waitpid(t.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def test_shell(shell):
    t = shell()
    t.send("CREATE TABLE sensor_readings (reading BIGINT);\n")
    t.expect(" ms")
    t.expect("clink> ")
    t.send("INSERT INTO sens\t")  # the only name
    t.expect("or_readings ")
    t.send("VALUES (41),\n")
    t.expect("   ... ")
    t.send("(42);\n")
    t.expect("clink> ")
    t.send("SELECT MAX(reading) AS m FROM sensor_readings;\n")
    t.expect("42")
    t.expect("(1 row)")
    t.expect("clink> ")
    t.send("\\d sensor_readings\n")
    t.expect("reading  BIGINT")
    t.expect("clink> ")
    t.send("SELECT nope;\n")
    t.expect('unknown column "nope"')
    t.expect("clink> ")
    t.send("\x04")
    assert t.end() == 0


def test_control_c_stops_the_query_not_the_shell(shell):
    t = shell("--format", "ndjson")
    t.send("SELECT unfinished\n")
    t.expect("   ... ")
    t.send("\x03")
    t.expect("clink> ")
    t.send("CREATE TABLE g (i BIGINT) WITH (connector='datagen', fields.i.kind='sequence', rate_limit=1000); SELECT i FROM g;\n")
    t.expect('{"i":3}')
    t.send("\x03")
    t.expect("cancelled")
    t.expect("clink> ")
    t.send("SELECT 40 + 2 AS answer;\n")
    t.expect('{"answer":42}')
    t.expect("clink> ")
    t.send("\\q\n")
    assert t.end() == 0


def test_history_and_catalog_outlive_the_shell(shell):
    t = shell("--catalog", "cat")
    t.send("CREATE VIEW twelve AS SELECT 12 AS n;\n")
    t.expect("clink> ")
    t.send("SELECT n AS from_history FROM twelve;\n")
    t.expect("(1 row)")
    t.expect("clink> ")
    t.send("quit\n")
    assert t.end() == 0
    t = shell("--catalog", "cat")
    t.send("\x10\x10\n")  # back over "quit"
    t.expect("from_history")
    t.expect("12")
    t.expect("clink> ")
    t.send("quit\n")
    assert t.end() == 0


def test_a_table_is_completed_where_one_stands(shell):
    t = shell("--format", "ndjson")
    t.send("CREATE TABLE orders (ordinal INT);\n")
    t.expect("clink> ")
    t.send("SELECT * FROM ord\t")  # neither the word ORDER nor the column
    t.expect("ers ")
    t.send(";\n")
    t.expect("clink> ")
    t.send("\\d ord\t")
    t.expect("ers ")
    t.send("\n")
    t.expect("ordinal  INTEGER")
    t.expect("clink> ")
    t.send("SELECT COUNT(*) AS n FROM (sel\t")  # a statement in brackets
    t.expect("SELECT ")
    t.send("ordi\t")
    t.expect("nal ")
    t.send("FROM orders);\n")
    t.expect('{"n":0}')
    t.send("\\q\n")
    assert t.end() == 0


@pytest.mark.parametrize("locale", ["C", "en_US.UTF-8"])
def test_text_that_is_not_ascii(shell, monkeypatch, locale):
    monkeypatch.setenv("LC_ALL", locale)
    t = shell("--format", "ndjson")
    t.send("CREATE TABLE straße (größe BIGINT, 価格 VARCHAR);\n")
    t.expect("clink> ")
    t.send("INSERT INTO stra\t")
    t.expect("ße ")
    t.send("VALUES (1, 'né 日本 \N{GRINNING FACE}');\n")
    t.expect("clink> ")
    t.send("SELECT grö\t")
    t.expect("ße ")
    t.send(", 価格x\x7f FROM straße;\n")
    t.expect('{"größe":1,"価格":"né 日本 \N{GRINNING FACE}"}')
    t.expect("clink> ")
    t.send("\x10\x01\x0b")  # back in the history, and all of it away
    os.write(t.fd, b"SELECT '\xff\xe4x' AS left_out;\n")  # bytes that are no characters
    t.expect('{"left_out":"x"}')
    t.expect("clink> ")
    t.send("\\q\n")
    assert t.end() == 0


def test_sigterm_ends_the_shell(shell):
    t = shell()
    os.kill(t.pid, signal.SIGTERM)
    assert t.end() == 130
    t = shell("--format", "ndjson")
    t.send("CREATE TABLE g (i BIGINT) WITH (connector='datagen', fields.i.kind='sequence', rate_limit=1000); SELECT i FROM g; SELECT 'after' || 'wards' AS x;\n")
    t.expect('{"i":3}')
    os.kill(t.pid, signal.SIGTERM)
    t.expect("stopping")
    assert t.end() == 130 and "afterwards" not in t.seen
    t = shell()
    t.send("SELECT unfinished\n")
    t.expect("   ... ")
    os.kill(t.pid, signal.SIGTERM)
    assert t.end() == 130


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_what_reads_a_pipe(tmp_path, sig):
    endless = "CREATE TABLE g (i BIGINT) WITH (connector='datagen', fields.i.kind='sequence', rate_limit=1000); SELECT i FROM g;\nSELECT 'afterwards' AS x;\n"
    for text in ("SELECT 1 AS one;\n", endless):
        p = subprocess.Popen([CLINK, "sql"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(text.encode())
        p.stdin.flush()
        p.stdout.readline()
        p.send_signal(sig)
        out = p.stdout.read()  # the input stays open
        assert p.wait(60) == 130 and b"afterwards" not in out, out
        p.stdin.close(), p.stdout.close(), p.stderr.close()


def test_comments_over_lines(clink):
    """A comment may hold others, semicolons, and the end of a line; one that is not closed is said with its place."""
    r = clink("sql", stdin="/* begin\n SELECT 2;\n*/ SELECT 3 AS a;\n/* a /* ; */ ; */ SELECT 4 AS a;\n/* open", ok=False)
    assert r.code == 1
    assert '{"a":3}' in r.out and '{"a":4}' in r.out and '"a":2' not in r.out
    assert "this comment has no closing */" in r.err
