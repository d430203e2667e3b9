"""The NEXMark queries of event time against DuckDB: at every parallelism and batch size, from rows that are shuffled inside the watermark's delay."""
import collections
import json
import os
import random
import subprocess
import sys

import duckdb
import pytest
from conftest import TOP

BENCH = os.path.join(TOP, "bench")
SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
DELAY_MS = 4000
TYPES = {"person": "id,datetime", "auction": "id,initialbid,reserve,datetime,expires,seller,category", "bid": "auction,bidder,price,datetime"}


def norm(v):
    sys.path.insert(0, BENCH)
    import compare
    return compare.norm("null" if v is None else str(v))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """About a minute of events, each file shuffled so that no row is more than the delay behind the largest before it."""
    out = tmp_path_factory.mktemp("nexmark")
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    subprocess.run(["cc", "-O1", "-o", out / "gen", os.path.join(BENCH, "nexmark_gen.c"), "-lm"], check=True)
    subprocess.run([out / "gen", "30000", out, "500"], check=True)
    for t in TYPES:
        with open(out / f"{t}.ndjson") as f:
            lines = [(json.loads(line)["datetime"] + rnd.randrange(DELAY_MS), line) for line in f]
        with open(out / f"{t}.ndjson", "w") as f:
            f.writelines(line for _, line in sorted(lines, key=lambda x: x[0]))
    return out


@pytest.fixture(scope="module")
def oracle(data):
    c = duckdb.connect()
    for t, numbers in TYPES.items():
        with open(data / f"{t}.ndjson") as f:
            columns = {k: "BIGINT" if k in numbers.split(",") else "VARCHAR" for k in json.loads(f.readline())}
        c.execute(f"CREATE VIEW {t} AS SELECT *, make_timestamp(datetime * 1000) AS rt FROM "
                  f"read_json('{data}/{t}.ndjson', format='newline_delimited', columns={columns})")
    return lambda q: collections.Counter(tuple(map(norm, r)) for r in
                                         c.execute(open(f"{BENCH}/queries/duckdb/{q}.sql").read()).fetchall())


@pytest.mark.parametrize("q", ["q4", "q5", "q7", "q8", "q11", "q12"])
def test_against_duckdb(clink, data, oracle, q):
    tables = open(f"{BENCH}/nexmark/tables.sql").read().replace("${DATA}", str(data))
    select = open(f"{BENCH}/nexmark/{q}.sql").read().split("\n", 1)[1]
    want = oracle(q)
    assert want
    for p, batch in ((1, None), (2, 7), (4, 1), (4, None)):
        settings = ["--set", f"batch_rows={batch}"] if batch else []
        got = collections.Counter(tuple(map(norm, r.values())) for r in clink("run", "-p", p, *settings, "-e", tables + select).rows)
        assert got == want, f"-p {p}, batch_rows {batch}"


def test_changes_net_to_the_result(clink, data, oracle):
    """What an unbounded run would say along the way comes to the same."""
    tables = open(f"{BENCH}/nexmark/tables.sql").read().replace("${DATA}", str(data))
    for q in ("q5", "q7", "q8"):
        select = open(f"{BENCH}/nexmark/{q}.sql").read().split("\n", 1)[1]
        net = collections.Counter()
        for line in clink("run", "-p", 2, "--changes=json", "-e", tables + select).lines:
            kind, *values = json.loads(line).values()
            net[tuple(map(norm, values))] += -1 if kind in ("-U", "-D") else 1
        assert min(net.values()) >= 0 and +net == oracle(q)


TOP_WINDOWS = """SELECT auction, ws, n, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY ws, we ORDER BY n DESC, auction) AS rn FROM (
    SELECT auction, window_start AS ws, window_end AS we, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(rt), INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end)) WHERE rn <= 3"""


@pytest.mark.parametrize("p", [1, 4])
def test_the_three_busiest_of_a_window(clink, data, p):
    counts = collections.Counter()
    with open(data / "bid.ndjson") as f:
        for line in f:
            r = json.loads(line)
            counts[r["datetime"] // 10000 * 10000, r["auction"]] += 1
    want = []
    for w in {w for w, _ in counts}:
        best = sorted((-n, a) for (x, a), n in counts.items() if x == w)[:3]
        want += [(norm(a), norm(w), norm(-n), norm(i + 1)) for i, (n, a) in enumerate(best)]
    tables = open(f"{BENCH}/nexmark/tables.sql").read().replace("${DATA}", str(data))
    got = [tuple(map(norm, r.values())) for r in clink("run", "-p", p, "-e", tables + TOP_WINDOWS).rows]
    assert sorted(got) == sorted(want)
