"""Tables of plugins' connectors: the example's source and sink over kills at every fault point of the commit path; splits, positions, watermarks
and idleness of a source beside a model; sinks that write at least once and exactly once; what is wrong, in a sentence."""
import os
import random
import signal
import subprocess
import time
from collections import Counter

import pytest
from conftest import CLINK, TOP, read_rows, read_texts, run_clink
from test_plugins import build, so  # noqa: F401  (a fixture)

QUIET = ("examples/plugin_quiet.c", f"{TOP}/examples/plugin_quiet_tables.c")
COPY = """CREATE TABLE readings (device VARCHAR, ts TIMESTAMP(3) NOT NULL, value DOUBLE) WITH (connector='quiet_files', path='readings');
CREATE TABLE copied (device VARCHAR, last_seen TIMESTAMP(3), readings BIGINT) WITH (connector='quiet_files', path='copied');
INSERT INTO copied SELECT device, ts, CAST(value AS BIGINT) FROM readings"""
NUMBERS = "CREATE TABLE n (n BIGINT NOT NULL, t VARCHAR NOT NULL, ts TIMESTAMP(3) NOT NULL{time}) WITH (connector='numbers'{options});\n"


def write_lines(folder, files=3, rows=1500):
    """The same rows for the sink to have, once each."""
    dice, want = random.Random(1), Counter()
    (folder / "readings").mkdir()
    (folder / "copied").mkdir()
    for f in range(files):
        with open(folder / "readings" / f"{f}.csv", "w") as out:
            for i in range(rows):
                line = f"{dice.choice(['a', 'b', 'a device with a long name', ''])},{1704067200000 + 1000 * i},{dice.randint(0, 9)}"
                out.write(line + "\n")
                want[line] += 1
    return want


def lines_of(folder):
    return Counter(line for _, text in read_texts(folder) for line in text.split("\n")[:-1])


# Every fault point a job with a committing sink passes between a barrier and the end of the next restart.
POINTS = ["checkpoint.before_barrier", "plugin.before_prepare", "plugin.after_prepare", "checkpoint.after_mark", "checkpoint.before_snapshot",
          "checkpoint.before_ack", "checkpoint.before_manifest", "checkpoint.after_manifest", "commit.before", "plugin.committed", "commit.after",
          "commit.before_committed", "commit.after_committed"]
AT_RESTART = ["restore.before_load", "restore.after_load", "commit.before", "plugin.committed", "restore.after_commit", "plugin.aborted"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_on_the_way_to_a_commit(so, tmp_path, point):  # noqa: F811
    want, plugin = write_lines(tmp_path), so(*QUIET)
    flags = ("run", "--plugin", plugin, "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--set", "batch_rows=100", "-e", COPY)
    kills = []
    for n, p in ((1, "1"), (2, "2"), (1, "2")):
        r = run_clink(*flags, "-p", p, cwd=tmp_path, env={"CLINK_FAULT": f"{point}:{n}:kill"}, ok=False)
        kills.append(r.code == -signal.SIGKILL)
        assert not lines_of(tmp_path / "copied") - want, "a row twice"
    run_clink(*flags, cwd=tmp_path)
    assert kills[0] and lines_of(tmp_path / "copied") == want
    assert not [n for n in os.listdir(tmp_path / "copied") if n.startswith(".staged")]


@pytest.mark.parametrize("point", AT_RESTART)
def test_killed_while_it_is_restored(so, tmp_path, point):  # noqa: F811
    """After a kill between manifest and commit: the committables of the checkpoint are in question."""
    want, plugin = write_lines(tmp_path), so(*QUIET)
    flags = ("run", "--plugin", plugin, "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--set", "batch_rows=100", "-e", COPY)
    for fault in ("checkpoint.after_manifest:2:kill", f"{point}:1:kill", f"{point}:1:kill"):
        r = run_clink(*flags, "-p", "2", cwd=tmp_path, env={"CLINK_FAULT": fault}, ok=False)
        assert r.code == -signal.SIGKILL, (fault, r.err)
    run_clink(*flags, "-p", "3", cwd=tmp_path)
    assert lines_of(tmp_path / "copied") == want


def test_every_point_of_the_path_is_met():
    """A point that is added to the way of a commit is added here, too."""
    with open(os.path.join(TOP, "src/base/fault_points.h")) as f:
        names = {line.split('"')[1] for line in f if '"' in line and "POINT(" in line}
    assert set(POINTS) | set(AT_RESTART) <= names
    assert {n for n in names if n.startswith(("plugin.", "commit."))} <= set(POINTS) | set(AT_RESTART)


def test_going_back_is_refused(so, tmp_path):  # noqa: F811
    """Output of a checkpoint after the restored one is there: the plugin says no, and --allow-duplicates does it."""
    want, plugin = write_lines(tmp_path), so(*QUIET)
    flags = ("run", "--plugin", plugin, "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--checkpoint-retained", 100, "--set", "batch_rows=100", "-p", 1)
    run_clink(*flags, "-e", COPY, cwd=tmp_path)
    r = run_clink(*flags, "--restore", 1, "-e", COPY, cwd=tmp_path, ok=False)
    assert r.code == 1 and "is of a checkpoint after the restored 1: going back would write its rows again" in r.err, r.err
    run_clink(*flags, "--restore", 1, "--allow-duplicates", "-e", COPY, cwd=tmp_path)
    assert not want - lines_of(tmp_path / "copied")


# ---- a source beside a model ----

@pytest.mark.parametrize("p,batch", [(1, 4096), (2, 7), (4, 1)])
def test_numbers(so, tmp_path, p, batch):  # noqa: F811
    sql = NUMBERS.format(time="", options=", rows='2500', splits='3'") + "SELECT COUNT(*) AS c, SUM(n) AS s, MIN(t) AS t, MAX(ts) AS ts FROM n"
    r = run_clink("run", "--plugin", so("tests/plugins/odd_tables.c"), "-p", p, "--set", f"batch_rows={batch}", "--format", "ndjson", "-e", sql, cwd=tmp_path)
    assert r.rows == [{"c": 2500, "s": sum(range(2500)), "t": "number 0 of many", "ts": "1970-01-01T00:41:39"}]


@pytest.mark.parametrize("backend", ["memory", "rocksdb:db"])
def test_binary_positions_over_kills(so, tmp_path, backend):  # noqa: F811
    """Positions that are no text, in checkpoints; a sink at least once may write again, and leaves nothing out."""
    sql = NUMBERS.format(time="", options=", rows='3000'") + "CREATE TABLE o (n BIGINT) WITH (connector='lines', path='o'); INSERT INTO o SELECT n FROM n"
    flags = ("run", "--plugin", so("tests/plugins/odd_tables.c"), "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--state-backend", backend,
             "--set", "batch_rows=50", "-e", sql)
    r = None
    for n in (1, 2, 3):
        r = run_clink(*flags, "-p", n, cwd=tmp_path, env={"CLINK_FAULT": f"checkpoint.after_manifest:{n}:kill"}, ok=False)
        assert n > 1 or r.code == -signal.SIGKILL
    r = run_clink(*flags, cwd=tmp_path)
    assert "at least once: its connector has no commit" in r.err
    assert set((tmp_path / "o").read_text().split("\n")[:-1]) == {f"1,{n}" for n in range(3000)}


def test_a_job_with_tables_of_its_own(so, tmp_path):  # noqa: F811
    run_clink("run", "--job", so("tests/plugins/odd_tables.c"), cwd=tmp_path)
    assert sorted((tmp_path / "o").read_text().split("\n")[:-1]) == sorted(f"1,{n},number {n} of many" for n in range(0, 500, 2))


def wait_until(done, process, seconds=120):
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)


def count_lines(path):
    return path.read_text().count("\n") if path.exists() else 0


@pytest.mark.parametrize("options", ["watermark='3600'", "silent='true', idle_timeout_ms='50'"])
def test_time_goes_on_without_rows(so, tmp_path, options):  # noqa: F811
    """The last window of an endless table closes because its source says how far time is, or since the only split in arrears is idle."""
    last = 60 if "watermark" in options else 59 * 3
    sql = NUMBERS.format(time=", WATERMARK FOR ts AS ts", options=f", rows='{last}', splits='2', endless='true', {options}") + """
      CREATE TABLE o (w TIMESTAMP(3), c BIGINT) WITH (connector='lines', path='o');
      INSERT INTO o SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE n, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"""
    with subprocess.Popen([CLINK, "run", "--plugin", so("tests/plugins/odd_tables.c"), "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20", "-e", sql],
                          cwd=tmp_path, stderr=subprocess.PIPE) as p:
        wait_until(lambda: count_lines(tmp_path / "o") >= (1 if "watermark" in options else 2), p)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=60)[1].decode()
    got = (tmp_path / "o").read_text().split("\n")[:-1]
    assert got == (["1,0,60"] if "watermark" in options else ["1,0,30", "1,60000000,30"]), err


def test_an_endless_table_of_files(so, tmp_path):  # noqa: F811
    """New files are found at a restart, and what is appended is read; without checkpoints the sink commits each second."""
    write_lines(tmp_path, 1, 10)
    sql = COPY.replace("path='readings'", "path='readings', follow='true'")
    for flags, more in ((("--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20"), 0), (("--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20"), 1), ((), 2)):
        if more == 2:
            subprocess.run(["rm", "-rf", "copied"], cwd=tmp_path, check=True)
            (tmp_path / "copied").mkdir()
        (tmp_path / "readings" / f"more{more}.csv").write_text("x,0,1\n")
        with subprocess.Popen([CLINK, "run", "--plugin", so(*QUIET), *flags, "-e", sql], cwd=tmp_path, stderr=subprocess.PIPE) as p:
            wait_until(lambda: sum(lines_of(tmp_path / "copied").values()) >= 11 + 2 * more, p)
            with open(tmp_path / "readings" / f"more{more}.csv", "a") as f:
                f.write("y,0,1\n")
            wait_until(lambda: sum(lines_of(tmp_path / "copied").values()) >= 12 + 2 * more, p)
            p.send_signal(signal.SIGINT)
            err = p.communicate(timeout=60)[1].decode()
        assert lines_of(tmp_path / "copied")["x,0,1"] == more + 1 == lines_of(tmp_path / "copied")["y,0,1"], err


# ---- a sink that takes changes ----

def test_changes_and_upserts(so, tmp_path):  # noqa: F811
    plugin = so("tests/plugins/odd_tables.c")
    for key, fold in (("", False), (", PRIMARY KEY (k) NOT ENFORCED", True)):
        sql = NUMBERS.format(time="", options=", rows='900', splits='1'") + f"""SET emit_changes = 'true';
          CREATE TABLE o (k BIGINT, c BIGINT{key}) WITH (connector='lines', path='o{int(fold)}'); INSERT INTO o SELECT n % 10, COUNT(*) FROM n GROUP BY n % 10"""
        r = run_clink("run", "--plugin", plugin, "-e", sql.replace("SET emit_changes = 'true';", ""), "--set", "batch_rows=100", cwd=tmp_path)
        assert r.code == 0
        rows, table = Counter(), {}
        for w, k, c in (line.split(",") for line in (tmp_path / f"o{int(fold)}").read_text().split("\n")[:-1]):
            rows[k, c] += int(w)
            if w == "1":
                table[k] = c
            else:
                table.pop(k, None)
        if fold:
            assert table == {str(k): "90" for k in range(10)}
        else:
            assert +rows == Counter({(str(k), "90"): 1 for k in range(10)})


# ---- what is wrong ----

@pytest.mark.parametrize("fail,says", [
    ("splits", 'table "n", connector numbers of plugin odd_tables, splits: nobody is there'),
    ("same", 'table "n": its connector names two splits "0"'),
    ("no_id", "one without an id of 1 to 1000 bytes"),
    ("open", 'table "n", connector numbers of plugin odd_tables, open: not today'),
    ("open_split", 'connector numbers of plugin odd_tables, open_split: split '),
    ("read", 'table "n", connector numbers of plugin odd_tables, read: the line is cut'),
    ("silently", "read: it failed and did not say why"),
    ("position", "connector numbers of plugin odd_tables sets a position of over 64 KiB"),
    ("many", "gives over 262144 rows in one call"),
    ("null", 'table "n": connector numbers of plugin odd_tables emitted NULL, and the column is NOT NULL in column n'),
    ("utf8", "emitted a text that is not UTF-8 in column t"),
    ("year", "emitted a number out of range for its type in column ts"),
])
def test_sources_that_fail(so, tmp_path, fail, says):  # noqa: F811
    sql = NUMBERS.format(time="", options=f", fail='{fail}'") + "SELECT COUNT(*), MAX(t), MAX(n) FROM n"
    r = run_clink("run", "--plugin", so("tests/plugins/odd_tables.c"), "-e", sql, cwd=tmp_path, ok=False)
    assert r.code == 1 and says in r.err, r.err


@pytest.mark.parametrize("connector,fail,says", [
    ("lines", "open", 'table "o", connector lines of plugin odd_tables, open: the file is not there'),
    ("lines", "write", 'table "o", connector lines of plugin odd_tables, write: the disk is full'),
    ("lines", "flush", "flush: the disk is gone"),
    ("marks", "prepare", 'table "o", connector marks of plugin odd_tables, prepare: it does not keep'),
    ("marks", "big", "a committable of 2097152 bytes, 1048576 are possible"),
    ("marks", "many", "the committables of one checkpoint are over 64 MiB"),
    ("marks", "commit", "commit: the name is taken"),
    ("marks", "abort", "abort_others: somebody else's"),
    ("marks", "open_committer", "open_committer: no committer"),
])
def test_sinks_that_fail(so, tmp_path, connector, fail, says):  # noqa: F811
    sql = NUMBERS.format(time="", options="") + f"CREATE TABLE o (n BIGINT) WITH (connector='{connector}', path='o', fail='{fail}'); INSERT INTO o SELECT n FROM n"
    r = run_clink("run", "--plugin", so("tests/plugins/odd_tables.c"), "--name", "t", "--checkpoint-dir", "ck", "-e", sql, cwd=tmp_path, ok=False)
    assert r.code == 1 and says in r.err, r.err


def test_a_call_that_does_not_return(so, tmp_path):  # noqa: F811
    """Holds its job: Ctrl-C asks it to end, and once more ends the process, whatever hangs. What is committed stays."""
    sql = NUMBERS.format(time="", options="") + "CREATE TABLE o (n BIGINT) WITH (connector='lines', path='o', fail='hang'); INSERT INTO o SELECT n FROM n"
    with subprocess.Popen([CLINK, "run", "--plugin", so("tests/plugins/odd_tables.c"), "-e", sql], cwd=tmp_path, stderr=subprocess.PIPE) as p:
        wait_until((tmp_path / "o").exists, p)
        until = time.monotonic() + 60
        while p.poll() is None and time.monotonic() < until:
            p.send_signal(signal.SIGINT)
            time.sleep(0.05)
        p.kill()
        assert p.wait() == 130


def test_a_sink_that_commits(so, tmp_path):  # noqa: F811
    """Committables that are no text come back as they were, with checkpoints and without."""
    sql = NUMBERS.format(time="", options="") + "CREATE TABLE o (n BIGINT) WITH (connector='marks', path='o'); INSERT INTO o SELECT n FROM n"
    for flags in (("--name", "t", "--checkpoint-dir", "ck"), ()):
        run_clink("run", "--plugin", so("tests/plugins/odd_tables.c"), *flags, "-e", sql, cwd=tmp_path)


@pytest.mark.parametrize("refused,says", [
    (0, 'a connector whose name is not 1 to 63 letters in lower case, digits and _: "Lines"'),
    (1, 'plugin odd_tables has a connector "file", which is built in'),
    (2, "connector nothing lacks a source or a sink"),
    (3, 'has a connector "lines", and there is one of this name already'),
    (4, "one without a name in lower case or help"),
    (5, 'option path of connector x takes "number"; text, integer, boolean, path and a|b|c are possible'),
    (6, "connector x lacks flush or prepare of its sink, one of them"),
    (7, "connector x lacks commit or abort_others of its sink"),
    (8, "the struct_bytes of a connector is 8, and"),
])
def test_connectors_that_are_refused(tmp_path, refused, says):
    plugin = build("tests/plugins/odd_tables.c", tmp_path / "odd.so", f"-DREFUSED={refused}")
    r = run_clink("run", "--plugin", plugin, "-e", "SELECT 1", cwd=tmp_path, ok=False)
    assert r.code == 1 and says in r.err, r.err


@pytest.mark.parametrize("sql,says", [
    ("CREATE TABLE n (n BIGINT) WITH (connector='numbers', rwos='1')", "connector 'numbers' has no option 'rwos'; did you mean 'rows'?"),
    ("CREATE TABLE n (n BIGINT) WITH (connector='numbers', rows='many')", "option 'rows' takes a whole number, not 'many'"),
    ("CREATE TABLE n (n BIGINT) WITH (connector='numbrs')", "unknown connector numbrs, did you mean numbers?"),
    ("CREATE TABLE n (n BIGINT) WITH (connector='numbers'); INSERT INTO n SELECT 1", "numbers"),
    ("CREATE TABLE n (n BIGINT) WITH (connector='lines', path='o'); SELECT * FROM n", "lines"),
    ("CREATE TABLE n (n BIGINT[]) WITH (connector='numbers'); SELECT * FROM n", 'column "n" is an ARRAY, MAP or ROW'),
    ("CREATE TABLE o (n BIGINT) WITH (connector='marks', path='o'); INSERT INTO o SELECT COUNT(*) FROM (VALUES (1)) AS v (a) GROUP BY a", "only takes new rows"),
    ("SELECT uper('a')", 'there is no function "uper"; did you mean "upper"?'),
    ("SELECT zzzzzzzz('a')", 'there is no function "zzzzzzzz"'),
])
def test_scripts_that_are_refused(so, tmp_path, sql, says):  # noqa: F811
    r = run_clink("run", "--plugin", so("tests/plugins/odd_tables.c"), "--changes", "-e", sql, cwd=tmp_path, ok=False)
    assert r.code == 1 and says in r.err, r.err


def test_the_check_of_a_connector(so, tmp_path):  # noqa: F811
    for sql, says in (("CREATE TABLE r (a INT) WITH (connector='quiet_files', path='x')", 'table "r": its columns are device VARCHAR'),
                      ("CREATE TABLE r (device VARCHAR, ts TIMESTAMP(3), value DOUBLE) WITH (connector='quiet_files')", "option 'path' is missing"),
                      ("CREATE TABLE r (device VARCHAR, ts TIMESTAMP(3), value DOUBLE) WITH (connector='quiet_files', path='nothere'); SELECT * FROM r",
                       "splits: reading 'nothere': No such file or directory")):
        r = run_clink("run", "--plugin", so(*QUIET), "-e", sql, cwd=tmp_path, ok=False)
        assert r.code == 1 and says in r.err, r.err


# ---- a source that is told of commits ----

QUEUE = ("CREATE TABLE q (n BIGINT NOT NULL) WITH (connector='queue', rows='{rows}', splits='3', pause_us='500');\n"
         "CREATE TABLE o (n BIGINT) WITH (connector='file', format='json', path='o');\nINSERT INTO o SELECT n FROM q;\n")


def acknowledged(folder):
    out = {}
    for line in (folder / "acked").read_text().split("\n")[:-1] if (folder / "acked").exists() else []:  # one may be half written
        checkpoint, split, at = line.split()
        assert int(at) >= out.get(split, 0), "it goes back"
        out[split] = int(at)
    return out


@pytest.mark.parametrize("point", ["checkpoint.before_barrier", "checkpoint.after_mark", "checkpoint.before_ack", "checkpoint.before_manifest", "checkpoint.after_manifest", "commit.before",
                                   "commit.after", "commit.before_committed", "commit.after_committed"])
def test_a_source_is_told_of_what_is_committed_and_of_nothing_else(so, tmp_path, point):  # noqa: F811
    """The queue has forgotten what was acknowledged: a restart that asks for it has lost rows, and the source fails. It goes on for ever: a life ends
    by its kill, or is ended when there is nothing left to acknowledge."""
    rows, killed = 1500, []
    flags = ("run", "--plugin", so("tests/plugins/acked.c"), "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--set", "batch_rows=50", "-e", QUEUE.format(rows=rows))
    all_of_them = {f"q{i}": rows for i in range(3)}
    for fault, p in ((f"{point}:1:kill", 1), (f"{point}:2:kill", 3), (f"{point}:1:kill", 2), ("", 2)):
        before = acknowledged(tmp_path)
        env = {**os.environ, **({"CLINK_FAULT": fault} if fault else {})}
        run = subprocess.Popen([CLINK, *map(str, flags), "-p", str(p)], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while run.poll() is None and acknowledged(tmp_path) != all_of_them and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.append(run.poll() == -signal.SIGKILL)
        run.kill()
        err = run.communicate(timeout=120)[1]
        assert run.returncode == -signal.SIGKILL, err  # it is never asked for what it has forgotten
        assert all(acknowledged(tmp_path)[k] >= v for k, v in before.items())
    assert killed[0] and acknowledged(tmp_path) == all_of_them, err  # all that is committed, in the end
    assert Counter(r["n"] for r in read_rows(tmp_path / "o")) == Counter(range(3 * rows))


def test_a_source_that_fails_to_acknowledge(so, tmp_path):  # noqa: F811
    (tmp_path / "acked").mkdir()
    r = run_clink("run", "--plugin", so("tests/plugins/acked.c"), "--name", "t", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--set", "batch_rows=50",
                  "-e", QUEUE.format(rows=30000).replace("500", "2000"), cwd=tmp_path, ok=False)
    assert r.code == 1 and 'table "q"' in r.err and "no file for what is acknowledged" in r.err, r.err
