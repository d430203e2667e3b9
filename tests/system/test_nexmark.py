"""The NEXMark queries against DuckDB: at every parallelism and batch size, from rows that are shuffled inside the watermark's delay and from the
connector, after kills and restarts. A sample of it; `make nexmark` (CLINK_LONG=1) is the whole."""
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys

import duckdb
import pytest
from conftest import CLINK, TOP, read_rows, run_clink

BENCH = os.path.join(TOP, "bench")
SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
DELAY_MS = 4000
TYPES = {"person": "id,datetime", "auction": "id,initialbid,reserve,datetime,expires,seller,category", "bid": "auction,bidder,price,datetime"}


sys.path.insert(0, BENCH)


def write_side_input(folder):
    """What q13 looks up: half of the keys it asks for."""
    (folder / "side_input.csv").write_text("key,value\n" + "".join(f"{k},value of {k}\n" for k in range(0, 1000, 2)))


def norm(v):
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
    write_side_input(out)
    for t in TYPES:
        with open(out / f"{t}.ndjson") as f:
            lines = [(json.loads(line)["datetime"] + rnd.randrange(DELAY_MS), line) for line in f]
        with open(out / f"{t}.ndjson", "w") as f:
            f.writelines(line for _, line in sorted(lines, key=lambda x: x[0]))
    return out


def oracle_over(folder):
    c = duckdb.connect()
    for t, numbers in TYPES.items():
        with open(folder / f"{t}.ndjson") as f:
            columns = {k: "BIGINT" if k in numbers.split(",") else "VARCHAR" for k in json.loads(f.readline())}
        c.execute(f"CREATE VIEW {t} AS SELECT *, make_timestamp(datetime * 1000) AS rt FROM "
                  f"read_json('{folder}/{t}.ndjson', format='newline_delimited', columns={columns})")
    c.execute(f"CREATE VIEW side_input AS SELECT * FROM read_csv('{folder}/side_input.csv', header=true)")
    return lambda q: collections.Counter(tuple(map(norm, r)) for r in
                                         c.execute(open(f"{BENCH}/queries/duckdb/{q}.sql").read()).fetchall())


@pytest.fixture(scope="module")
def oracle(data):
    return oracle_over(data)


QUERIES = sorted((f[:-4] for f in os.listdir(f"{BENCH}/nexmark") if f[0] == "q"), key=lambda q: int(q[1:]))
CONFIGS = [(p, batch) for p in (1, 2, 4) for batch in (1, 7, None)]
LONG = bool(os.environ.get("CLINK_LONG"))


def some_configs(q):
    """All in the long form, else two of them, drawn from the seed."""
    return CONFIGS if LONG else random.Random(f"{SEED} {q}").sample(CONFIGS, 2)


def parts_of(q):
    """(columns of the sink, the query, the columns that are compared): of rows that tie any may win."""
    import compare
    sink, select = open(f"{BENCH}/nexmark/{q}.sql").read().split("\n", 1)
    return sink.split(":", 1)[1].strip(), select, compare.TIES.get(q)


def count(rows, only):
    return collections.Counter(tuple(norm(v) for i, v in enumerate(r.values()) if not only or i in only) for r in rows)


def want_of(oracle, q, only):
    out = collections.Counter()
    for row, n in oracle(q).items():
        out[tuple(v for i, v in enumerate(row) if not only or i in only)] += n
    return out


def settings(batch):
    return ["--set", f"batch_rows={batch}"] if batch else []


@pytest.mark.parametrize("q", QUERIES)
def test_against_duckdb(clink, data, oracle, q):
    tables = open(f"{BENCH}/nexmark/tables.sql").read().replace("${DATA}", str(data))
    _, select, only = parts_of(q)
    want = want_of(oracle, q, only)
    assert want
    for p, batch in some_configs(q):
        got = count(clink("run", "-p", p, *settings(batch), "-e", tables + select).rows, only)
        assert got == want, f"-p {p}, batch_rows {batch}"


@pytest.mark.parametrize("q", QUERIES if LONG else random.Random(SEED).sample(QUERIES, 6))
def test_kills_and_other_parallelisms(data, oracle, tmp_path, q):
    """What a job wrote that was killed and came back at other parallelisms is the query's result, once."""
    sink, select, only = parts_of(q)
    rnd = random.Random(f"{SEED} {q}")
    script = tmp_path / "job.sql"
    script.write_text(open(f"{BENCH}/nexmark/tables.sql").read().replace("${DATA}", str(data)) +
                      f"CREATE TABLE snk ({sink}) WITH (connector='file', format='json', path='{tmp_path}/out');\nINSERT INTO snk\n{select}")
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "10"]
    for _ in range(3):
        p = subprocess.Popen([*base, "-p", str(rnd.choice([1, 2, 4])), *settings(rnd.choice([7, None, None]))],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            p.wait(rnd.uniform(0.02, 0.2))
        except subprocess.TimeoutExpired:
            p.kill()
        err = p.communicate()[1].decode()
        assert p.returncode in (0, -signal.SIGKILL), err
    run_clink(*base[1:], "-p", rnd.choice([1, 2, 4]))
    assert count(read_rows(tmp_path / "out", parse_float=str), only) == want_of(oracle, q, only)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """What the connector makes, as files for DuckDB."""
    out = tmp_path_factory.mktemp("generated")
    files = open(f"{BENCH}/nexmark/tables.sql").read()
    made = re.sub(r"connector='file', format='json', path='[^']*'", "connector='nexmark', events='30000', events_per_second='500'", files)
    made = made.replace("${DATA}", str(out))
    write_side_input(out)
    for t in TYPES:
        (out / f"{t}.ndjson").write_text(run_clink("run", "-e", made + f"SELECT {columns_of(t)} FROM {t}").out)
    return made, oracle_over(out)


def columns_of(t):
    return {"person": "id, name, emailaddress, creditcard, city, state, datetime, extra",
            "auction": "id, itemname, description, initialbid, reserve, datetime, expires, seller, category, extra",
            "bid": "auction, bidder, price, channel, url, datetime, extra"}[t]


@pytest.mark.parametrize("q", QUERIES if LONG else random.Random(SEED + 1).sample(QUERIES, 8))
def test_from_the_connector(generated, q):
    tables, oracle = generated
    _, select, only = parts_of(q)
    want = want_of(oracle, q, only)
    for p, batch in some_configs(q):
        got = count(run_clink("run", "-p", p, *settings(batch), "-e", tables + select).rows, only)
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
