"""The same result whatever holds the state: in memory, or in a file or RocksDB once it outgrows --memory, killed and restarted on the way,
one backend going on from the checkpoints of another. What memory cannot hold, with nothing behind it, is refused by name."""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows, run_clink

ROWS = 300_000
SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
SMALL = ["--memory", "64M"]
ROWS_OUT = ["--memory", "144M"]  # rows leave for RocksDB
SINKS = {
    "counts": "k VARCHAR, n BIGINT, t BIGINT, m VARCHAR, PRIMARY KEY (k) NOT ENFORCED",
    "firsts": "g BIGINT, v BIGINT, k VARCHAR, r BIGINT, PRIMARY KEY (g, r) NOT ENFORCED",
    "slices": "k VARCHAR, e TIMESTAMP(6), n BIGINT",
    "kinds": "g BIGINT, n BIGINT, PRIMARY KEY (g) NOT ENFORCED",
    "pairs": "k VARCHAR, v BIGINT, w BIGINT",
}
SCRIPT = """CREATE TABLE src (k VARCHAR, g BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH (connector='file', format='json', path='{inp}');
CREATE TABLE dim (k VARCHAR, w BIGINT) WITH (connector='file', format='json', path='{dim}');
{sinks}
INSERT INTO counts SELECT k, COUNT(*), SUM(v), MAX(k) FROM src GROUP BY k;
INSERT INTO firsts SELECT g, v, k, r FROM (SELECT g, v, k, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC, k) AS r FROM src) WHERE r <= 3;
INSERT INTO slices SELECT k, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end;
INSERT INTO kinds SELECT g, COUNT(DISTINCT k) FROM src GROUP BY g;
INSERT INTO pairs SELECT src.k, v, w FROM src JOIN dim ON src.k = dim.k;
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    where, rnd = tmp_path_factory.mktemp("input"), random.Random(11)
    with open(where / "src.ndjson", "w") as f:
        for i in range(ROWS):
            k = f"customer number {rnd.randrange(ROWS // 2)} of a long list"
            f.write('{"k":"%s","g":%d,"v":%d,"ts":"2024-01-01 %02d:%02d:%02d.%03d"}\n' % (
                k, rnd.randrange(ROWS // 8), rnd.randrange(1000), *divmod(i // 50 // 60, 60), i // 50 % 60, i % 50))
    with open(where / "dim.ndjson", "w") as f:
        for i in range(0, ROWS // 2, 3):
            f.write('{"k":"customer number %d of a long list","w":%d}\n' % (i, i))
    return where


def script_in(where, inputs):
    where.mkdir(exist_ok=True)
    sinks = "\n".join(
        f"CREATE TABLE {name} ({columns}) WITH (connector='file', format='json', path='{where / name}'"
        + (", mode='upsert');" if "KEY" in columns else ");") for name, columns in SINKS.items())
    path = where / "job.sql"
    path.write_text(SCRIPT.format(inp=inputs / "src.ndjson", dim=inputs / "dim.ndjson", sinks=sinks))
    return path


def results(where):
    return {name: collections.Counter(tuple(r.values()) for r in read_rows(where / name)) for name in SINKS}


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    where = tmp_path_factory.mktemp("undisturbed")
    run_clink("run", script_in(where, inputs), "--memory", "4G")
    got = results(where)
    assert all(got.values())
    return got


def test_refused_by_name_in_memory(inputs, tmp_path):
    r = run_clink("run", script_in(tmp_path / "m", inputs), *SMALL, ok=False)
    assert r.code == 1
    assert "of its limit of 67108864" in r.err and "for state" in r.err and "(in " in r.err
    one = tmp_path / "one.sql"
    one.write_text(f"CREATE TABLE src (k VARCHAR) WITH (connector='file', format='json', path='{inputs / 'src.ndjson'}');\n"
                   "SELECT k, COUNT(*) FROM src GROUP BY k;\n")
    r = run_clink("run", one, "--memory", "3M", ok=False)
    assert r.code == 1 and 'slot "' in r.err and "--state-backend file:DIR" in r.err and "(in group_agg" in r.err


def test_a_file_holds_what_memory_does_not(inputs, undisturbed, tmp_path):
    where = tmp_path / "f"
    run_clink("run", script_in(where, inputs), *SMALL, "--state-backend", f"file:{where / 'work'}", "-p", 2)
    assert results(where) == undisturbed
    left = [n for n in os.listdir(where / "work") if "clink-work" in n]
    assert not left, "working memory has no name and goes with the process"


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.005)


def databases(work):
    """Folders of RocksDB below the working folder, with what is in them."""
    return {n: os.listdir(work / n) for n in os.listdir(work) if n.startswith("clink-rocksdb-")} if work.exists() else {}


def test_rocksdb_holds_what_memory_does_not(inputs, undisturbed, tmp_path):
    where = tmp_path / "r"
    script, work = script_in(where, inputs), where / "work"
    flags = [*ROWS_OUT, "--state-backend", f"rocksdb:{work}"]
    job = subprocess.Popen([CLINK, "run", str(script), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: any("db" in names for names in databases(work).values()) or job.poll() is not None)
    assert job.poll() is None, job.communicate()[1].decode()
    job.send_signal(signal.SIGKILL)
    job.communicate()
    left = databases(work)
    assert len(left) == 1, "rows had left memory, and kill -9 leaves the folder"
    (work / next(iter(left)) / "db" / "CURRENT").write_text("nothing here is read again")
    shutil.copytree(work / next(iter(left)), work / "clink-rocksdb-foreign", ignore=shutil.ignore_patterns("owner.lock"))
    again = tmp_path / "again"
    run_clink("run", script_in(again, inputs), *flags, "-p", 2, timeout=600)
    assert results(again) == undisturbed
    assert list(databases(work)) == ["clink-rocksdb-foreign"], "the dead process's folder and the run's own are gone; what nobody's lock is in stays"


def test_rocksdb_says_what_it_lacks(inputs, tmp_path):
    script = script_in(tmp_path / "d", inputs)
    (tmp_path / "plain").write_text("")
    r = run_clink("run", script, "--state-backend", f"rocksdb:{tmp_path / 'plain'}/x", ok=False)
    assert r.code == 1 and f"{tmp_path / 'plain'}/x: could not make the folder" in r.err
    r = run_clink("run", script, "--state-backend", "rocksdb:", ok=False)
    assert r.code == 2 and "needs a directory" in r.err
    r = run_clink("run", script, "--state-backend", "rocks:x", ok=False)
    assert r.code == 2 and "rocksdb:DIR" in r.err


def test_killed_and_going_on_with_another_backend(inputs, undisturbed, tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd, where = random.Random(SEED), tmp_path / "k"
    script = script_in(where, inputs)
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(where / "ck"), "--checkpoint-interval-ms", "40"]
    backends = [["--memory", "4G"], ROWS_OUT + ["--state-backend", f"rocksdb:{where / 'rows'}"],
                SMALL + ["--state-backend", f"file:{where / 'work'}"],
                ["--memory", "4G", "--state-backend", "changelog", "--materialisation", "external", "--materialisation-every", "2"],
                SMALL + ["--state-backend", f"changelog+file:{where / 'work'}", "--materialisation-every", "1"],
                ROWS_OUT + ["--state-backend", f"changelog+rocksdb:{where / 'rows'}", "--materialisation-every", "2"]]
    for start in range(len(backends) * 2):
        job = subprocess.Popen(base + backends[start % len(backends)] + ["-p", str(rnd.choice((1, 2, 3)))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            job.wait(rnd.uniform(0.1, 0.7))
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGKILL)
        err = job.communicate()[1].decode()
        assert job.returncode in (0, -signal.SIGKILL), err
    r = run_clink(*base[1:], *backends[1], timeout=600)
    assert results(where) == undisturbed
    assert "has finished before" in r.err or not databases(where / "rows"), "who runs there removes what a dead process left"


def test_a_changelog_is_told_in_a_sentence(inputs, tmp_path):
    script = script_in(tmp_path / "d", inputs)
    ck = ["--checkpoint-dir", tmp_path / "ck"]
    for flags, says in ((["--state-backend", "changelog+memory"], "needs --checkpoint-dir"),
                        (["--state-backend", "changelog+rocks:x", *ck], "with changelog+ in front or not, not 'changelog+rocks:x'"),
                        (["--state-backend", "changelog+file:", *ck], "needs a directory"),
                        (["--materialisation", "inside", *ck], "is for --state-backend changelog+"),
                        (["--state-backend", "changelog", "--materialisation", "outside", *ck], "inside or external, not 'outside'"),
                        (["--state-backend", "changelog", "--materialisation-every", "0", *ck], "1 to 1000")):
        r = run_clink("run", script, *flags, ok=False)
        assert r.code == 2 and says in r.err, r.err


def test_a_changelog_grows_by_what_changed(tmp_path):
    """Few keys of many change: after the first checkpoint none writes all rows, and what is restored is the whole."""
    keys, more = 40_000, 200_000
    with open(tmp_path / "in.ndjson", "w") as f:
        for i in range(keys):
            f.write('{"k":%d,"v":1}\n' % i)
        for i in range(more):
            f.write('{"k":%d,"v":1}\n' % (i % 100))
    script = tmp_path / "job.sql"
    script.write_text(f"CREATE TABLE src (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='{tmp_path / 'in.ndjson'}', rate_limit='60000');\n"
                      f"CREATE TABLE snk (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='{tmp_path / 'out'}', mode='upsert');\n"
                      "INSERT INTO snk SELECT k, COUNT(*) FROM src GROUP BY k;\n")
    flags = ["--changes", "--state-backend", "changelog", "--materialisation", "external", "--materialisation-every", "3",
             "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "30", "--checkpoint-retained", "1000"]

    def named():
        """Of each checkpoint the files of the subtask that groups."""
        manifests = [json.loads(p.read_text())["files"] for p in (tmp_path / "ck").glob("checkpoint-*.json")]
        return [[f for f in files if f["vertex"] == max(files, key=lambda f: f["bytes"])["vertex"]] for files in manifests]

    job = subprocess.Popen([CLINK, "run", str(script), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: any(f[0]["kind"] == "materialized" and f[-1]["bytes"] * 20 < f[0]["bytes"] for f in named()) or job.poll() is not None)
    job.send_signal(signal.SIGKILL)
    err = job.communicate()[1].decode()
    assert job.returncode == -signal.SIGKILL, f"no checkpoint stood on a materialisation with a small segment behind it: {err}"
    run_clink("run", script, *flags, "-p", 3)
    got = {r["k"]: r["n"] for r in read_rows(tmp_path / "out")}
    assert len(got) == keys and all(n == 1 + (more // 100 if k < 100 else 0) for k, n in got.items())


def test_a_folder_that_cannot_be(inputs, tmp_path):
    (tmp_path / "plain").write_text("")
    script = script_in(tmp_path / "d", inputs)
    r = run_clink("run", script, *SMALL, "--checkpoint-dir", tmp_path / "ck", "--state-backend", f"file:{tmp_path / 'plain'}/x", ok=False)
    assert r.code == 1 and "could not make the folder of a file of working memory: Not a directory" in r.err
    r = run_clink("run", script, "--state-backend", "file:", ok=False)
    assert r.code == 2 and "needs a directory" in r.err


LONG = (1 << 20) + 1
KEYED = {
    "group": "SELECT k, COUNT(*) AS n FROM src GROUP BY k",
    "two columns": "SELECT k, COUNT(*) AS n FROM src GROUP BY k, v",
    "window": "SELECT k, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end",
    "join": "SELECT src.k, src.v AS n FROM src JOIN other ON src.k = other.k",
    "top": "SELECT k, n FROM (SELECT k, v AS n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM src) WHERE r < 3",
}
SRC = "(k VARCHAR, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (connector='file', format='json', follow='true', path='{path}');\n"


def long_keys(where, query, key=LONG):
    """A job that goes on and takes no checkpoint within hours: what is not said at the row is never said."""
    rows = ["k%d" % i for i in range(10)] + ["k" * key, "last"]
    (where / "in.ndjson").write_text("".join('{"k":"%s","v":%d,"ts":"2024-01-01 00:00:00"}\n' % (k, i) for i, k in enumerate(rows)))
    (where / "other.ndjson").write_text("")
    (where / "job.sql").write_text("CREATE TABLE src " + SRC.format(path=where / "in.ndjson") + "CREATE TABLE other " + SRC.format(path=where / "other.ndjson") +
                                   "CREATE TABLE snk (k VARCHAR, n BIGINT) WITH (connector='blackhole');\nINSERT INTO snk %s;\n" % query)
    return len("".join('{"k":"%s","v":%d,"ts":"2024-01-01 00:00:00"}\n' % (k, i) for i, k in enumerate(rows[:10])))


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("query", sorted(KEYED))
def test_a_key_that_no_checkpoint_holds_is_refused_at_its_row(tmp_path, query, p):
    at = long_keys(tmp_path, KEYED[query])
    r = run_clink("run", tmp_path / "job.sql", "--checkpoint-dir", tmp_path / "ck", "--checkpoint-interval-ms", 36000000, "-p", p, ok=False)
    assert r.code == 1 and "a key of over 1048576 bytes, and no checkpoint holds one" in r.err, r.err
    assert f"the row is at byte {at} of {tmp_path}/in.ndjson" in r.err, r.err


@pytest.mark.parametrize("backend", ["memory", "changelog+memory", "rocksdb:{where}", "changelog+rocksdb:{where}"])
def test_a_key_that_only_state_sees_is_refused(tmp_path, backend):
    """A value of DISTINCT: rows come by another key, and the slot it would be in is named."""
    (tmp_path / "in.ndjson").write_text('{"g":1,"k":"%s"}\n' % ("k" * LONG))
    (tmp_path / "job.sql").write_text(f"""CREATE TABLE src (g BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson', follow='true');
CREATE TABLE snk (g BIGINT, n BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH (connector='blackhole');
INSERT INTO snk SELECT g, COUNT(DISTINCT k) AS n FROM src GROUP BY g;
""")
    r = run_clink("run", tmp_path / "job.sql", "--checkpoint-dir", tmp_path / "ck", "--checkpoint-interval-ms", 36000000,
                  "--state-backend", backend.format(where=tmp_path / "work"), env={"CLINK_ROCKSDB_ALL": "1"}, ok=False)
    assert r.code == 1 and "a key of over 1048576 bytes" in r.err and 'slot "' in r.err, r.err


def test_the_longest_key_goes_into_a_checkpoint(tmp_path):
    """And without checkpoints there is no bound."""
    sql = "CREATE TABLE src (k VARCHAR) WITH (connector='file', format='json', path='in.ndjson');\nCREATE TABLE snk (k VARCHAR, n BIGINT) WITH (connector='blackhole');\n" \
          "INSERT INTO snk SELECT k, COUNT(*) AS n FROM src GROUP BY k;\n"
    (tmp_path / "job.sql").write_text(sql)
    (tmp_path / "in.ndjson").write_text('{"k":"%s"}\n' % ("k" * (LONG - 1)))
    run_clink("run", "job.sql", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 20, cwd=tmp_path)
    (tmp_path / "in.ndjson").write_text('{"k":"%s"}\n' % ("k" * LONG))
    run_clink("run", "job.sql", cwd=tmp_path)
