"""libclink.so from C and from Python: only clink_* is exported, rows come as Arrow, nothing leaks."""
import os
import resource
import subprocess
import sys

import pytest
from conftest import BUILD, TOP, read_rows
from test_savepoints import SCRIPT, manifests

sys.path.insert(0, os.path.join(TOP, "examples"))
LIB = os.path.join(BUILD, "libclink.so")
pytestmark = pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")


def test_exports_only_clink():
    out = subprocess.run(["nm", "-D", "--defined-only", LIB], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    assert names and all(n.startswith("clink_") for n in names), sorted(n for n in names if not n.startswith("clink_"))


def test_c_example(tmp_path):
    exe = tmp_path / "embed"
    subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", f"-I{TOP}/include", "-isystem", f"{TOP}/build/deps/nanoarrow/src",
                    f"{TOP}/examples/embed.c", "-o", str(exe), f"-L{BUILD}", "-lclink", f"-Wl,-rpath,{BUILD}"], check=True)
    assert subprocess.run([str(exe)], capture_output=True, text=True, check=True).stdout == "3 rows\n"
    p = subprocess.run([str(exe), "SELECT x"], capture_output=True, text=True)
    assert p.returncode == 1 and "x" in p.stderr


def test_python_example_says_what_it_needs(tmp_path):
    example = os.path.join(TOP, "examples", "embed.py")
    for args, says in (([], "usage: embed.py"), ([LIB], "usage: embed.py")):
        p = subprocess.run([sys.executable, example, *args], capture_output=True, text=True)
        assert p.returncode == 1 and says in p.stderr and "Traceback" not in p.stderr
    p = subprocess.run([sys.executable, example, LIB, "SELECT 1 AS one"], capture_output=True, text=True)
    assert p.stdout == "[{'one': 1}]\n"
    (tmp_path / "pyarrow.py").write_text("raise ImportError")
    p = subprocess.run([sys.executable, example, LIB, "SELECT 1"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert p.returncode == 1 and "pip install pyarrow" in p.stderr and "Traceback" not in p.stderr


def test_python_example(tmp_path):
    import embed

    (tmp_path / "orders.ndjson").write_text('{"usr":"alice","amount":12}\n{"usr":"bob","amount":7}\n{"usr":"alice","amount":5}\n')
    ddl = f"CREATE TABLE orders (usr VARCHAR, amount BIGINT, price DECIMAL(10,2), ts TIMESTAMP, ok BOOLEAN) WITH (connector='file', format='json', path='{tmp_path}/orders.ndjson');"
    c = embed.Clink(LIB)
    t = c.query(ddl + "SELECT usr, SUM(amount) AS total FROM orders GROUP BY usr")
    assert sorted(t.to_pylist(), key=lambda r: r["usr"]) == [{"usr": "alice", "total": 17}, {"usr": "bob", "total": 7}]
    t = c.query("SELECT usr, price, ts, ok FROM orders")
    assert [str(x) for x in t.schema.types] == ["string", "decimal128(10, 2)", "timestamp[us]", "bool"] and t.num_rows == 3
    with pytest.raises(RuntimeError, match="nope"):
        c.query("SELECT nope FROM orders")
    c.close()


def test_open_and_close_many_times(tmp_path):
    import embed

    def rss():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize()

    def once():
        c = embed.Clink(LIB)
        assert c.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]
        c.close()

    for _ in range(200):
        once()
    before, fds, threads = rss(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(1800):
        once()
    assert len(os.listdir("/proc/self/fd")) == fds and len(os.listdir("/proc/self/task")) <= threads
    assert rss() - before < 8 << 20, f"grew by {rss() - before} bytes"


@pytest.fixture
def savepoints(tmp_path):
    """tests/embedding/savepoints.c over a followed table of 100 rows."""
    exe, script = tmp_path / "savepoints", tmp_path / "job.sql"
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{TOP}/include", f"{TOP}/tests/embedding/savepoints.c", "-o", str(exe),
                    f"-L{BUILD}", "-lclink", f"-Wl,-rpath,{BUILD}"], check=True)
    (tmp_path / "in.ndjson").write_text("".join('{"k":"k%d","v":%d}\n' % (i % 7, i) for i in range(100)))
    script.write_text(SCRIPT.format(inp=tmp_path / "in.ndjson", out=tmp_path / "out", copy=tmp_path / "copy"))

    def call(*args, fault=None):
        env = {**os.environ, **({"CLINK_FAULT": fault} if fault else {})}
        return subprocess.run([str(exe), str(script), *map(str, args)], capture_output=True, text=True, env=env, timeout=300)

    return call


def test_savepoints_on_demand(savepoints, tmp_path):
    """Taken, stopped with, gone on from, disposed of; success means this very one, in both places; without a directory there is none."""
    p = savepoints("none")
    assert p.returncode == 0, p.stderr
    p = savepoints(tmp_path)
    assert p.returncode == 0, p.stderr
    first, second = map(int, p.stdout.split())
    ck, sp = manifests(tmp_path / "ck"), manifests(tmp_path / "sp")
    assert first not in ck and first in sp and second in ck  # disposed of in one place; the other is its own
    assert all(m["kind"] == "savepoint" and all(f["kind"] == "base" for f in m["files"]) for m in sp.values())
    assert set(sp) - {first} <= {i for i, m in ck.items() if m["kind"] == "savepoint"}  # nobody waited for one of them
    counts = {f"k{k}": (len(range(k, 100, 7)), sum(range(k, 100, 7))) for k in range(7)}
    assert {r["k"]: (r["n"], r["s"]) for r in read_rows(tmp_path / "out")} in ({}, counts)  # it may have read nothing yet
    assert {r["v"] for r in read_rows(tmp_path / "copy")} <= set(range(100))


@pytest.mark.parametrize("fault", ["checkpoint.before_snapshot:1:error", "checkpoint.before_manifest:1:error"])
def test_a_savepoint_that_fails(savepoints, tmp_path, fault):
    p = savepoints(tmp_path, "fails", fault=fault)
    assert p.returncode == 0 and "the savepoint of job sql failed: " in p.stderr, p.stderr
    next_one = int(p.stdout)
    assert min(manifests(tmp_path / "ck")) == min(manifests(tmp_path / "sp")) == next_one > 1


def test_a_savepoint_that_its_other_place_does_not_take(savepoints, tmp_path):
    (tmp_path / "sp").write_text("a file")
    p = savepoints(tmp_path, "elsewhere")
    why = f"{tmp_path}/sp: {tmp_path}/sp is not a directory"
    assert p.returncode == 0 and f"a savepoint cannot be kept in {why}" in p.stderr and f"could not be kept in {why}" in p.stderr, p.stderr
