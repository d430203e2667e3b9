"""Tables whose PRIMARY KEY is not the key of the query that fills them: several rows may be there for one key at a time, and when the one that is
shown goes, another one is shown - against a model of weighted rows, at every parallelism and batch size, from files that grow, after kills."""
import collections
import json
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import CLINK, read_rows, run_clink, write_ndjson

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
GROUPS = "SELECT k, MAX(j) AS j, SUM(x) AS x FROM s GROUP BY k"

# name: (columns, PRIMARY KEY, query, the rows it has)
QUERIES = {
    # the sink's key is a result, and moves
    "result": ("k BIGINT, j BIGINT, x BIGINT", "j", GROUPS, lambda s, d: groups(s)),
    # part of the query's key
    "part": ("j BIGINT, k BIGINT, n BIGINT", "j", "SELECT j, k, COUNT(*) FROM s GROUP BY j, k",
             lambda s, d: [(j, k, n) for (j, k), n in collections.Counter((r["j"], r["k"]) for r in s).items()]),
    # a query without a key
    "top": ("j BIGINT, k BIGINT, x BIGINT", "j",
            "SELECT j, k, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, j) AS n FROM s) WHERE n <= 2",
            lambda s, d: [(r["j"], r["k"], r["x"]) for k in {r["k"] for r in s}
                          for r in sorted((r for r in s if r["k"] == k), key=lambda r: (-r["x"], r["j"]))[:2]]),
    # GROUP BY k, JOIN on j, keyed by k and by what is joined
    "join": ("k BIGINT, x BIGINT, name VARCHAR", "k",
             f"SELECT g.k, g.x, d.name FROM ({GROUPS}) g JOIN (SELECT j, MAX(name) AS name FROM d GROUP BY j) d ON g.j = d.j",
             lambda s, d: [(k, x, names(d)[j]) for k, j, x in groups(s) if j in names(d)]),
    "joined": ("name VARCHAR, k BIGINT, x BIGINT", "name",
               f"SELECT d.name, g.k, g.x FROM ({GROUPS}) g JOIN (SELECT j, MAX(name) AS name FROM d GROUP BY j) d ON g.j = d.j",
               lambda s, d: [(names(d)[j], k, x) for k, j, x in groups(s) if j in names(d)]),
    # rows that are padded until a partner comes
    "left": ("k BIGINT, j BIGINT, name VARCHAR", "k", "SELECT s.k, s.j, d.name FROM s LEFT JOIN d ON s.j = d.j",
             lambda s, d: [(r["k"], r["j"], n) for r in s for n in ([e["name"] for e in d if e["j"] == r["j"]] or [None])]),
    "except": ("k BIGINT, j BIGINT", "k", "SELECT k, j FROM s EXCEPT SELECT j, j FROM d",
               lambda s, d: list({(r["k"], r["j"]) for r in s} - {(e["j"], e["j"]) for e in d})),
    # two changing queries over each other
    "union": ("j BIGINT, n BIGINT", "j", "SELECT k, COUNT(*) FROM s GROUP BY k UNION ALL SELECT j, -COUNT(*) FROM s GROUP BY j",
              lambda s, d: list(collections.Counter(r["k"] for r in s).items()) + [(j, -n) for j, n in collections.Counter(r["j"] for r in s).items()]),
}


def groups(s):
    out = {}
    for r in s:
        j, x = out.get(r["k"], (r["j"], 0))
        out[r["k"]] = max(j, r["j"]), x + r["x"]
    return [(k, j, x) for k, (j, x) in out.items()]


def names(d):
    out = {}
    for r in d:
        out[r["j"]] = max(out.get(r["j"], r["name"]), r["name"])
    return out


def wanted(name, s, d):
    """Of each key the row whose other columns are the greatest, NULL being greater than all."""
    columns, key, _, rows = QUERIES[name]
    at = [c.split()[0] for c in columns.split(", ")].index(key)
    shown = {}
    for r in rows(s, d):
        rank = tuple((c is None, c) for i, c in enumerate(r) if i != at)
        if r[at] not in shown or rank > shown[r[at]][0]:
            shown[r[at]] = rank, r
    return sorted(repr(r) for _, r in shown.values())


def found(folder):
    return sorted(repr(tuple(r.values())) for r in read_rows(folder))


def script(tmp_path, follow, only=None):
    return "".join(
        [f"CREATE TABLE s (k BIGINT, j BIGINT, x BIGINT) WITH (connector='file', format='json', path='{tmp_path}/s.ndjson', follow='{follow}');",
         f"CREATE TABLE d (j BIGINT, name VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/d.ndjson', follow='{follow}');"]
        + [f"CREATE TABLE t_{n} ({c}, PRIMARY KEY ({k}) NOT ENFORCED) WITH (connector='file', format='json', path='{tmp_path}/{n}', mode='upsert');"
           f"INSERT INTO t_{n} {q};" for n, (c, k, q, _) in QUERIES.items() if only in (None, n)])


def random_rows(rnd, n):
    return ([{"k": rnd.randrange(12), "j": rnd.randrange(8), "x": rnd.randrange(-5, 20)} for _ in range(n)],
            [{"j": rnd.randrange(9), "name": "name %d" % rnd.randrange(5)} for _ in range(n // 4 + 1)])


@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_of_changes(tmp_path, p, batch_rows):
    """Every change is made, and in the end only one row a key is left."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED * 97 + p * 8 + batch_rows)
    s, d = random_rows(rnd, rnd.choice([3, 40, 300]))
    write_ndjson(tmp_path / "s.ndjson", s), write_ndjson(tmp_path / "d.ndjson", d)
    run_clink("run", "-p", p, "--changes", "--set", f"batch_rows={batch_rows}", "-e", script(tmp_path, "false"))
    for name in QUERIES:
        assert found(tmp_path / name) == wanted(name, s, d), name


@pytest.mark.parametrize("p", [1, 3])
def test_at_the_end(tmp_path, p):
    """What is made at the end only is the same, whichever row of a key comes last."""
    print(f"CLINK_SEED={SEED}")
    s, d = random_rows(random.Random(SEED + p), 200)
    write_ndjson(tmp_path / "s.ndjson", s), write_ndjson(tmp_path / "d.ndjson", d)
    r = run_clink("run", "-p", p, "-e", script(tmp_path, "false"))
    for name in QUERIES:
        assert found(tmp_path / name) == wanted(name, s, d), name
    assert 'the PRIMARY KEY (j) of "t_result" is not the key of this query (k)' in r.err


@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
def test_killed_and_restored(tmp_path, batch_rows):
    """Files grow while the job is killed and started again at another parallelism; the tables follow."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED + batch_rows)
    s, d = [], []
    write_ndjson(tmp_path / "s.ndjson", []), write_ndjson(tmp_path / "d.ndjson", [])
    proc = None
    try:
        for life in range(4):
            proc = subprocess.Popen([CLINK, "run", "--name", "q", "-p", str(rnd.randrange(1, 5)), "--checkpoint-dir", tmp_path / "ck",
                                     "--checkpoint-interval-ms", "40", "--set", f"batch_rows={batch_rows}", "-e", script(tmp_path, "true")],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for step in range(2):
                more_s, more_d = random_rows(rnd, rnd.choice([1, 9, 60]))
                s, d = s + more_s, d + more_d
                for name, rows in ("s", more_s), ("d", more_d):
                    with open(tmp_path / f"{name}.ndjson", "a") as f:
                        f.writelines(json.dumps(r) + "\n" for r in rows)
                if step == 1 and life < 3:
                    time.sleep(rnd.random() / 5)
                    break
                end = time.monotonic() + 60
                while any(found(tmp_path / n) != wanted(n, s, d) for n in QUERIES):
                    assert proc.poll() is None, proc.stderr.read()
                    if time.monotonic() > end:
                        for n in QUERIES:
                            assert found(tmp_path / n) == wanted(n, s, d), n
                    time.sleep(0.02)
            proc.send_signal(signal.SIGKILL)
            proc.wait()
    finally:
        if proc.poll() is None:
            proc.kill()
            proc.wait()
