"""Jobs in plugins: the examples beside the same in Python; state and timers beside a model, over kills and other parallelisms; what is wrong with a job, in a sentence."""
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter

import pytest
from conftest import BUILD, CLINK, TOP, read_rows, read_texts, run_clink, write_ndjson
from test_plugins import build, so  # noqa: F401  (a fixture)

QUIET = ("examples/plugin_quiet.c", f"{TOP}/examples/plugin_quiet_tables.c")
CPP = ("g++", "-std=c++20")


def stamp(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}"


# ---- the examples ----

def readings(n, seed):
    dice, ms, rows = random.Random(seed), 1704067200000, []
    for i in range(n):
        ms += dice.randint(0, 2000)
        device = dice.choice(["a", "b", "a device with a long name", None, "e", "f"][:1 + (i // 500) % 6])
        rows.append({"device": device, "ts": ms, "value": None if dice.random() < 0.05 else 1.5})
    return rows


def quiet(rows):
    """With a watermark that is never behind a row by a minute: a pause over a minute is an alert, and so is the end."""
    out, last = [], {}
    for r in rows:
        if r["value"] is None:
            continue
        d = r["device"]
        if d in last and r["ts"] - last[d][0] > 60000:
            out.append((d, last[d][0], last[d][1]))
            del last[d]
        last[d] = (r["ts"], last.get(d, (0, 0))[1] + 1)
    return out + [(d, ts, n) for d, (ts, n) in last.items()]


def write_readings(folder, rows):
    for name in ("readings", "quiet"):
        (folder / name).mkdir()
    with open(folder / "readings" / "all.csv", "w") as f:
        f.writelines(f"{r['device'] or ''},{r['ts']},{r['value'] or ''}\n" for r in rows)


def quiet_rows(folder):
    lines = [line.split(",") for _, text in read_texts(folder / "quiet") for line in text.split("\n")[:-1]]
    return Counter((device or None, int(ms), int(n)) for device, ms, n in lines)


def test_the_example(so, tmp_path):  # noqa: F811
    rows = readings(20000, 1)
    write_readings(tmp_path, rows)
    want = Counter(quiet(rows))
    plugin = so(*QUIET)
    run_clink("run", "--job", plugin, "--checkpoint-dir", "ck", "-p", "1", "--set", "batch_rows=50", cwd=tmp_path)
    got = quiet_rows(tmp_path)
    assert sum(got.values()) > 20 and got == want
    r = run_clink("run", "--job", plugin, "--checkpoint-dir", "ck", cwd=tmp_path)
    assert "finished" in r.err and quiet_rows(tmp_path) == want


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_and_built_again(so, tmp_path, seed):  # noqa: F811
    """kill -9 at fault points, then the same plugin compiled otherwise, at another parallelism: every alert is there once."""
    rows = readings(20000, seed)
    write_readings(tmp_path, rows)
    want = Counter(quiet(rows))
    plugins = [so(*QUIET), build(QUIET[0], tmp_path / "again.so", QUIET[1], "-O0", "-g")]
    points = ["checkpoint.after_mark", "checkpoint.before_manifest", "checkpoint.after_manifest", "commit.before", "checkpoint.after_mark"]
    kills = 0
    for i, point in enumerate(points):
        r = run_clink("run", "--job", plugins[i % 2], "--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--set", "batch_rows=50", cwd=tmp_path,
                      env={"CLINK_FAULT": f"{point}:{1 + i % 3}:kill"}, ok=False, timeout=300)
        kills += r.code == -signal.SIGKILL
    run_clink("run", "--job", plugins[1], "--checkpoint-dir", "ck", "--set", "batch_rows=50", cwd=tmp_path)
    assert kills and quiet_rows(tmp_path) == want  # the first always is, of the others those that come so far


def test_the_example_in_cpp(tmp_path):
    dice, rows = random.Random(3), []
    for i in range(5000):
        ms = 1704067200000 + 60000 * i + dice.randint(0, 50000)
        rows.append({"usr": dice.choice(["u1", "u2", None]), "page": dice.choice("abcd") * dice.choice([1, 20]), "ms": dice.randint(1, 1000), "ts": stamp(ms)})
    write_ndjson(tmp_path / "visits.ndjson", rows)
    plugin = build("examples/plugin_days.cpp", tmp_path / "days.so", compiler=CPP)
    want = {}
    for r in rows:
        want.setdefault((r["usr"], r["ts"][:10]), []).append(r)
    for p in ("1", "3"):
        got = {(r["usr"], r["day"]): (r["page"], r["visits"], r["median_ms"]) for r in run_clink("run", "--job", plugin, "-p", p, cwd=tmp_path).rows}
        for key, of in want.items():
            pages = Counter(r["page"] for r in of)
            page = min(pages, key=lambda q: (-pages[q], q))
            ms = sorted(r["ms"] for r in of)
            assert got[key] == (page, pages[page], ms[(len(ms) - 1) // 2])
        assert len(got) == len(want)


# ---- every kind of state, beside a model ----

def script_rows(n, seed):
    dice = random.Random(seed)
    return [{"k": dice.randint(0, 40), "x": dice.randint(-6, 9), "t": "ab" * dice.randint(0, 12), "ts": 1000 * i} for i in range(n)]


def model(rows):
    keys, armed = {}, {}
    for r in rows:
        k = keys.setdefault(r["k"], {"n": 0, "sum": 0.0, "text": "", "odd": 0, "map": {}, "list": []})
        x = r["x"]
        if x == 0:
            k.update(n=0, sum=0.0, text="", odd=0)
        else:
            k["n"] += 1
            k["sum"] += x / 2
            k["text"] = r["t"] if len(r["t"]) > len(k["text"]) else k["text"]
            k["odd"] ^= 1
        if x < 0:
            k["map"].pop(-x, None)
        else:
            k["map"][x] = k["map"].get(x, 0) + 1
        k["list"] = [*k["list"], r["t"]][-5:]
        armed[r["k"]] = x % 7 != 0
    said = {}
    for k, v in keys.items():
        head = f"{v['n']}|{v['sum']:.1f}|{v['text']}|{v['odd']}|" if v["n"] else "none|"
        said[k] = head + "".join(f"{x}={v['map'][x]}," for x in sorted(v["map"])) + "|" + "".join(f"{t}," for t in v["list"])
    return said, sorted(k for k in keys if armed[k])


@pytest.mark.parametrize("seed,rows,flags", [(1, 1, 7), (2, 4000, 4096), (3, 4000, 1), (4, 4000, 100)])
def test_states(so, tmp_path, seed, rows, flags):  # noqa: F811
    write_ndjson(tmp_path / "r.ndjson", script_rows(rows, seed))
    run_clink("run", "--job", so("tests/plugins/odd_operators.c", "-DJOB=0"), "--set", f"batch_rows={flags}", cwd=tmp_path)
    said, armed = model(script_rows(rows, seed))
    assert {r["k"]: r["said"] for r in read_rows(tmp_path / "o")} == said
    assert sorted(r["k"] for r in read_rows(tmp_path / "s")) == armed


@pytest.mark.parametrize("backend", ["memory", "rocksdb:db", "changelog+memory"])
def test_states_over_kills(so, tmp_path, backend):  # noqa: F811
    rows = script_rows(6000, 5)
    write_ndjson(tmp_path / "r.ndjson", rows)
    plugin, kills = so("tests/plugins/odd_operators.c", "-DJOB=0"), 0
    flags = ("--checkpoint-dir", "ck", "--checkpoint-interval-ms", 1, "--set", "batch_rows=20", "--state-backend", backend, "--memory", "64M")
    for p in ("1", "2", "3"):  # the first is killed whatever happens: there is a last checkpoint
        r = run_clink("run", "--job", plugin, *flags, "-p", p, cwd=tmp_path, env={"CLINK_FAULT": f"checkpoint.after_mark:{p}:kill"}, ok=False)
        kills += r.code == -signal.SIGKILL
    run_clink("run", "--job", plugin, *flags, "-p", "2", cwd=tmp_path)
    said, armed = model(rows)
    assert kills and {r["k"]: r["said"] for r in read_rows(tmp_path / "o")} == said
    assert sorted(r["k"] for r in read_rows(tmp_path / "s")) == armed


def test_two_inputs_and_a_chain(so, tmp_path):  # noqa: F811
    rows = script_rows(10000, 6)
    write_ndjson(tmp_path / "r.ndjson", rows)
    for p in ("1", "2"):
        subprocess.run(["rm", "-rf", str(tmp_path / "p")], check=True)
        run_clink("run", "--job", so("tests/plugins/odd_operators.c", "-DJOB=1"), "-p", p, cwd=tmp_path)
        want = Counter((r["k"], 0) for r in rows for _ in "ab") + Counter((r["x"], 1) for r in rows if r["x"] > 0 for _ in "ab")
        assert Counter((r["k"], r["input"]) for r in read_rows(tmp_path / "p")) == want


def test_timers_of_the_clock(so, tmp_path):  # noqa: F811
    """A followed table: the job does not end, and the timers fire all the same; they are restored, too."""
    (tmp_path / "r.ndjson").write_text("")
    write_ndjson(tmp_path / "r.ndjson", [{"k": k, "x": 1, "t": "", "ts": 0} for k in range(50)])
    source = open(os.path.join(os.path.dirname(__file__), "..", "plugins", "odd_operators.c")).read()
    (tmp_path / "follow.c").write_text(source.replace("path = 'r.ndjson'", "path = 'r.ndjson', follow = 'true'"))
    plugin = build(str(tmp_path / "follow.c"), tmp_path / "follow.so", "-DJOB=2")
    with subprocess.Popen([CLINK, "run", "--job", plugin, "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20"], cwd=tmp_path, stderr=subprocess.PIPE) as p:
        until = time.monotonic() + 120
        while len(read_rows(tmp_path / "p")) < 50 and time.monotonic() < until and p.poll() is None:
            time.sleep(0.02)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
    assert sorted((r["k"], r["input"]) for r in read_rows(tmp_path / "p")) == [(k, 1) for k in range(50)]


# ---- what is wrong with a job ----

@pytest.mark.parametrize("flags,says", [
    (["-DJOB=3", '-DNAME="fails"'], "operator fails of plugin odd_operators, on_batch: the moon is full"),
    (["-DJOB=3", '-DNAME="gives_null"'], "operator gives_null of plugin odd_operators emitted NULL, and the column is NOT NULL in column k"),
    (["-DJOB=3", '-DNAME="no_state"'], "operator no_state of plugin odd_operators asks for state 3, which it does not have"),
    (["-DJOB=3", '-DNAME="no_timer"'], "operator no_timer of plugin odd_operators sets a timer, and it has no on_timers"),
    (["-DJOB=3", '-DNAME="does_not_open"'], "operator does_not_open of plugin odd_operators, open: what is 'hm'?"),
    (["-DJOB=3", '-DNAME="nobody"'], 'job odd: there is no operator "nobody" in the plugins that are loaded'),
    (["-DJOB=3", '-DNAME="cuonts"'], 'there is no operator "cuonts" in the plugins that are loaded; did you mean "counts"?'),
    (["-DJOB=3", '-DNAME="counts"'], "job odd: operator counts (bad) has state or timers, which are of keys: clink_key_by goes in front of it"),
    (["-DJOB=3", '-DNAME="pairs"'], "job odd: operator pairs (bad) takes 2 inputs, not 1"),
    (["-DJOB=4", '-DNAME="kk"'], 'job odd: clink_key_by has no column "kk" to go by; did you mean "k"?'),
    (["-DJOB=4", '-DNAME="zzzz"'], 'job odd: clink_key_by has no column "zzzz" to go by'),
    (["-DJOB=4", '-DNAME=""'], "job odd: clink_key_by names no columns"),
    (["-DJOB=5", '-DNAME="SELECT k, x FROM r"'], "job odd: operator counts (bad) takes a column t VARCHAR, and its input has none"),
    (["-DJOB=5", '-DNAME="SELECT k, CAST(x AS INT) AS x, t FROM r"'], "takes column x as BIGINT, and it is INTEGER; CAST(x AS BIGINT) converts it"),
    (["-DJOB=5", '-DNAME="SELECT k, NULLIF(x, 1) AS x, t FROM r"'], "takes column x NOT NULL, and it may be NULL"),
    (["-DJOB=5", '-DNAME="SELECT k, y FROM r"'], 'job odd:'),
    (["-DJOB=5", '-DNAME="SELECT k, COUNT(*) AS x, MAX(t) AS t FROM r GROUP BY k"'], "takes column t NOT NULL, and it may be NULL"),
    (["-DJOB=6"], "job odd: there is no side output 2"),
    (["-DJOB=7"], "job odd writes nothing: clink_insert"),
    (["-DJOB=8"], "job odd of plugin odd_operators: there is nothing to do"),
    (["-DJOB=9"], 'job odd: two operators have the uid "same"'),
    (["-DJOB=10"], "job odd: table \"own\" is of connector '.stream'"),
    (["-DJOB=11"], "job odd: table \"own\" is of connector '.stream'"),
])
def test_jobs_that_are_refused(tmp_path, flags, says):
    write_ndjson(tmp_path / "r.ndjson", script_rows(100, 7))
    plugin = build("tests/plugins/odd_operators.c", tmp_path / "odd.so", *flags)
    r = run_clink("run", "--job", plugin, cwd=tmp_path, ok=False)
    assert r.code == 1 and says in r.err, r.err


def test_the_command(so, tmp_path):  # noqa: F811
    plugin = so(*QUIET)
    r = run_clink("explain", "--job", plugin)
    for line in ("process quiet", "uid quiet-devices", "state last (device) -> ts_us, readings", "state timers.event (device, time)", "<- hash (device), append, bounded"):
        assert line in r.out
    assert "unbounded" not in r.out  # also what SQL reads of the operator
    for args, code, says in ((["run", "--job", plugin, "x.sql"], 2, "'x.sql' is one argument too many"), (["run", "--job", plugin, "-e", "SELECT 1"], 2, "'-e' is one argument too many"),
                             (["run", "--job", so("examples/plugin_functions.c")], 1, "the plugins that are loaded have no job"), (["run", "--job", "nothing.so"], 1, "nothing.so")):
        r = run_clink(*args, ok=False, cwd=tmp_path)
        assert r.code == code and says in r.err, r.err
    r = run_clink("run", "-e", "CREATE TABLE x (a INT) WITH (connector = '.stream'); SELECT * FROM x", ok=False)
    assert r.code == 1 and "stands for an operator of a job" in r.err


# ---- clink/testing.h, and plugins of earlier builds ----

@pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")
def test_the_example_of_a_test(tmp_path):
    exe = tmp_path / "quiet_test"
    subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{TOP}/include", f"{TOP}/examples/plugin_quiet_test.c", f"{TOP}/{QUIET[0]}", QUIET[1],
                    "-o", str(exe), f"-L{BUILD}", "-lclink", f"-Wl,-rpath,{BUILD}"], check=True)
    assert subprocess.run([str(exe)], capture_output=True, text=True, check=True).stdout == "5 tests passed\n"
    for header in ("plugin.h", "plugin_data.h", "plugin_operators.h", "plugin_connectors.h", "testing.h"):
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c++", f"{TOP}/include/clink/{header}"], check=True)


@pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")
@pytest.mark.parametrize("job", [0, 2])
def test_a_held_clock(tmp_path, job):
    """Side outputs and timers of the clock, of one operator and of a whole job, over a snapshot."""
    exe = tmp_path / "held_clock"
    subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", f"-DJOB={job}", f"-I{TOP}/include", f"{TOP}/tests/plugins/held_clock_test.c",
                    f"{TOP}/tests/plugins/odd_operators.c", "-o", str(exe), f"-L{BUILD}", "-lclink", f"-Wl,-rpath,{BUILD}"], check=True)
    assert subprocess.run([str(exe)], capture_output=True, text=True, check=True).stdout == "passed\n"


def test_a_plugin_of_an_earlier_build(tmp_path):
    """Compiled with the header as it was when version 1 of the ABI was made: docs/decisions, "The plugin of an earlier build is compiled anew"."""
    golden = os.path.join(TOP, "tests", "golden", "plugin_abi_1")
    plugin = str(tmp_path / "golden.so")
    subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"-I{golden}", f"{golden}/plugin.c", "-o", plugin], check=True)
    write_ndjson(tmp_path / "r.ndjson", [{"k": i % 5} for i in range(1000)])
    r = run_clink("run", "--plugin", plugin, "--format", "ndjson", "-e", "SELECT PRODUCT(a) AS p, twice('a longer text') AS t FROM (VALUES (2), (3), (7)) AS v (a)")
    assert r.rows == [{"p": 42, "t": "a longer texta longer text"}]
    flags = ("run", "--job", plugin, "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "1", "--set", "batch_rows=10")
    run_clink(*flags, cwd=tmp_path, env={"CLINK_FAULT": "checkpoint.after_manifest:2:kill"}, ok=False)
    run_clink(*flags, "-p", "2", cwd=tmp_path)
    assert sorted((q["k"], q["n"]) for q in read_rows(tmp_path / "o")) == [(k, 200) for k in range(5)]


def test_entries_written_in_a_walk(so, tmp_path):  # noqa: F811
    """They are in the next checkpoint, though it has nothing but changes, and are there after a kill."""
    plugin, keys = so("tests/plugins/walks.c"), 3000
    (tmp_path / "r.ndjson").write_text("")

    def life(*steps):
        """Appends rows, waits until they are answered - a checkpoint has all that led to it then -, appends more; and kills the job at last."""
        with subprocess.Popen([CLINK, "run", "--job", plugin, "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20"], cwd=tmp_path, stderr=subprocess.PIPE) as p:
            want = len(read_rows(tmp_path / "o"))
            for rows in steps:
                with open(tmp_path / "r.ndjson", "a") as f:
                    f.writelines(json.dumps(r) + "\n" for r in rows)
                want, until = want + len(rows), time.monotonic() + 120
                while len(read_rows(tmp_path / "o")) < want and time.monotonic() < until and p.poll() is None:
                    time.sleep(0.02)
            p.kill()
            err = p.communicate()[1].decode()
        assert len(read_rows(tmp_path / "o")) == want, err

    life([{"k": k, "x": 1} for k in range(keys)], [{"k": 7, "x": 0}])
    life([{"k": 7, "x": 2}, {"k": 8, "x": 2}])
    rows = read_rows(tmp_path / "o")
    after = {"k": 7, "n": 1, "text": "a text of more than twelve bytes", "listed": 1, "last": "a text"}
    assert [r for r in rows if r["k"] == 7 and r["n"]] == [after, after]
    assert [r["n"] for r in rows if r["k"] == 8] == [0, 0]


# ---- state of earlier versions ----

def follow_until(folder, plugin, rows, *flags):
    """Appends rows to the table, runs the job until they have come out, and stops it with a savepoint."""
    with open(folder / "r.ndjson", "a") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
    want = sum(1 for _ in open(folder / "r.ndjson"))
    with subprocess.Popen([CLINK, "run", "--job", plugin, "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "20", *flags], cwd=folder, stderr=subprocess.PIPE) as p:
        until = time.monotonic() + 120
        while len(read_rows(folder / "o")) < want and time.monotonic() < until and p.poll() is None:
            time.sleep(0.02)
        p.send_signal(signal.SIGUSR2)
        err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 0 and len(read_rows(folder / "o")) == want, err
    return {r["k"]: (r["n"], r["sum"]) for r in sorted(read_rows(folder / "o"), key=lambda r: r["n"])}


def test_state_of_earlier_versions(so, tmp_path):  # noqa: F811
    """Version 1, then 3 by way of 2: each entry through both steps, and a slot that has another name."""
    v = {n: so("tests/plugins/versions.c", f"-DV={n}") for n in (1, 2, 3)}
    rows = [{"k": i % 20, "x": 2} for i in range(200)]
    assert follow_until(tmp_path, v[1], rows) == {k: (10, 0) for k in range(20)}
    (tmp_path / "none.so").write_text("no library")
    for expected, code, says in ((v[1], 0, "compatible with"), (v[3], 0, "compatible with"), (so("tests/plugins/versions.c", "-DV=3", "-DNO_STEPS"), 3, "counting"),
                                 (tmp_path / "none.so", 2, "none.so")):
        r = run_clink("check-savepoint", "ck", "--expected", expected, cwd=tmp_path, ok=False)
        assert r.code == code and says in r.out + r.err, (r.code, r.out, r.err)
    for flags, says in ((["-DV=3", "-DNO_STEPS"], "counting"), (["-DV=3", "-DFAILS"], "10 is too many")):
        r = run_clink("run", "--job", so("tests/plugins/versions.c", *flags), "--checkpoint-dir", "ck", cwd=tmp_path, ok=False)
        assert r.code == 1 and says in r.err, r.err
    assert follow_until(tmp_path, v[3], rows, "-p", "2") == {k: (20, 20.5) for k in range(20)}


@pytest.mark.parametrize("flags,code,says", [
    (['-DSLOT="tallies"'], 3, "its state \"tallies\" is not in the checkpoint and begins empty; its state \"counts\" goes on as none of what it keeps now"),
    (['-DFIELD="m"'], 3, "'m' is not in the checkpoint"),
    (["-DMORE"], 0, "its state \"more\" is not in the checkpoint and begins empty"),
], ids=["another slot", "another field", "one more"])
def test_a_plugin_built_again_that_keeps_its_state_otherwise(so, tmp_path, flags, code, says):  # noqa: F811
    """The graph of the job is the same, and its version too: what is kept under another name would be gone without a word."""
    was, now = so("tests/plugins/versions.c", "-DV=1"), so("tests/plugins/versions.c", "-DV=1", *flags)
    rows = [{"k": i % 20, "x": 2} for i in range(200)]
    assert follow_until(tmp_path, was, rows) == {k: (10, 0) for k in range(20)}
    r = run_clink("explain", "--job", was, "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path)
    assert "of this very script" in r.out and "  reuse    counter\n" in r.out, r.out
    r = run_clink("explain", "--job", now, "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path, ok=False)
    assert r.code == code and f"  {'refused' if code else 'migrate'}  counter: {says}" in r.out, r.out + r.err
    r = run_clink("check-savepoint", "ck", "--expected", now, cwd=tmp_path, ok=False)
    assert r.code == code and (not code or says in r.out), r.out + r.err
    before = sorted(os.listdir(tmp_path / "ck"))
    if code:
        r = run_clink("run", "--job", now, "--checkpoint-dir", "ck", cwd=tmp_path, ok=False)
        assert r.code == 1 and says in r.err and "code of it was built again" in r.err, r.err
        assert sorted(os.listdir(tmp_path / "ck")) == before
        assert follow_until(tmp_path, was, rows) == {k: (20, 0) for k in range(20)}  # the one that made it goes on
        assert follow_until(tmp_path, now, rows, "--allow-semantic-change") != {k: (30, 0) for k in range(20)}
    else:
        assert follow_until(tmp_path, now, rows) == {k: (20, 0) for k in range(20)}
    r = run_clink("explain", "--job", now, "--checkpoint-dir", "ck", "--restore", "latest", cwd=tmp_path)
    assert "  reuse    counter\n" in r.out, r.out  # and is the job's from then on
