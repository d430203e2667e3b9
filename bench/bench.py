"""make bench: the same files, every engine; outputs are compared before speed is, and a query whose outputs differ gets no ratio.
   bench.py [-q all|q17,q0] [-n 1000000] [-e duckdb,ours,cpp,flink] [-r 5]
Ours is compared with DuckDB at N events, the peers, whose results take long to collect, at PEER_EVENTS at most. Queries ours does not plan
yet are named and left out. A run over all queries also writes docs/benchmarks.md and its bars."""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs
import compare
import report
import run_ours

ENGINES = ["duckdb", "ours", "cpp", "flink"]
PEERS = ENGINES[2:]
PEER_EVENTS = 100_000


def runner(engine, q, n, mode, reps, out):
    """The command that runs some queries of an engine and appends its result lines to `out`."""
    python = sys.executable if engine in ("ours", "flink") else runs.PYTHON
    argv = [python, f"{runs.HERE}/run_{engine}.py", "-q", q, "-n", str(n), "-m", mode, "-r", str(reps), "-o", out]
    return argv + ["--warm"] if engine == "flink" else argv


def call(argv, quiet=True):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL if quiet else None)


def is_fresh(engine, q, n):
    """Whether the stored result of a query still stands for what would run now."""
    result = compare.path(engine, q, n)
    if not os.path.exists(result):
        return False
    made = os.path.getmtime(result)
    if engine == "ours":
        of = [run_ours.CLINK, f"{runs.HERE}/nexmark/{q}.sql", f"{runs.HERE}/nexmark/tables.sql"]
    else:
        of = [f"{runs.HERE}/queries/{engine}/{q}.sql"]
    return all(os.path.getmtime(f) < made for f in of + [f"{runs.WORK}/data/{n}/bid.ndjson"])


def compared_at(engine, n):
    return min(n, PEER_EVENTS) if engine in PEERS else n


def collect(engine, queries, n, out):
    """Leaves the results of an engine; -> the queries it does not plan yet (ours only)."""
    stale = [q for q in queries if not is_fresh(engine, q, n)]
    for q in stale:
        if os.path.exists(compare.path(engine, q, n)):
            os.unlink(compare.path(engine, q, n))
    if stale:
        print(f"results of {engine}, {n} events: {' '.join(stale)}", flush=True)
        call(runner(engine, ",".join(stale), n, "collect", 1, out))
    return {row["q"] for row in read(out) if row["engine"] == engine and row.get("not_yet")}


def same_result(engine, q, n):
    """(same as DuckDB's?, sentence); remembered as long as neither result is made anew, since looking takes long."""
    kept, results = f"{runs.WORK}/out/same_{engine}_{q}_{n}.json", [compare.path(e, q, n) for e in ("duckdb", engine)]
    if all(os.path.exists(p) for p in [kept, *results]) and os.path.getmtime(kept) > max(map(os.path.getmtime, results)):
        with open(kept) as f:
            return tuple(json.load(f))
    found = compare.verdict("duckdb", engine, q, n)
    with open(kept, "w") as f:
        json.dump(found, f)
    return found


def compare_all(engines, queries, n, out):
    """-> ({(engine, q): (same as DuckDB's?, sentence)}, queries ours does not plan yet)"""
    waiting = collect("ours", queries, n, out) if "ours" in engines else set()
    queries = [q for q in queries if q not in waiting]
    for events in dict.fromkeys(compared_at(e, n) for e in engines):
        collect("duckdb", queries, events, out)
    verdicts = {}
    for engine in engines:
        events = compared_at(engine, n)
        if engine in PEERS:
            collect(engine, queries, events, out)
        for q in queries:
            same = (True, "the yardstick") if engine == "duckdb" else same_result(engine, q, events)
            verdicts[engine, q] = same
            if not same[0]:
                print(f"{q}: {engine}: {same[1]}", flush=True)
    return verdicts, waiting


def speed(engines, queries, n, reps, out):
    """Ours and DuckDB by turns, so that a busy minute of the machine hits both; then the peers, which take long, once or twice."""
    for q in queries:
        print(f"speed of {q}", flush=True)
        for turn in range(2):
            for engine in ("ours", "duckdb"):
                if engine in engines:
                    call(runner(engine, q, n, "blackhole", (reps + 1 - turn) // 2, out))
    for engine, times in (("cpp", 1), ("flink", 2)):
        if engine in engines:
            print(f"speed of {engine}", flush=True)
            call(runner(engine, ",".join(queries), n, "blackhole", times, out))


def read(out):
    if not os.path.exists(out):
        return []
    with open(out) as f:
        return [json.loads(line) for line in f]


def best(out):
    """(engine, q) -> the line of least CPU, or the failed one"""
    lines = {}
    for row in read(out):
        if row["mode"] != "blackhole":
            continue
        key = ("flink" if row["engine"].startswith("flink") else row["engine"]), row["q"]
        old = lines.get(key)
        if old is None or (row["ok"], -row["cpu"]) > (old["ok"], -old["cpu"]):
            lines[key] = row
    return lines


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-q", default="all")
    ap.add_argument("-n", type=int, default=1000000)
    ap.add_argument("-e", default=",".join(ENGINES))
    ap.add_argument("-r", type=int, default=5)
    ap.add_argument("-o", default=f"{runs.WORK}/run-{int(time.time())}.jsonl", help="result lines; those there already count")
    a = ap.parse_args()
    engines, queries = a.e.split(","), runs.chosen(a.q)
    unknown = [x for x in engines if x not in ENGINES] + [q for q in queries if q not in runs.QUERIES]
    if unknown:
        sys.exit(f"bench: unknown: {' '.join(unknown)}; engines: {' '.join(ENGINES)}; queries: {' '.join(runs.QUERIES)}")
    sizes = sorted({compared_at(e, a.n) for e in engines})
    call([f"{runs.HERE}/setup.sh", "data", *map(str, sizes), *dict.fromkeys(["duckdb", *(e for e in engines if e != "ours")])], quiet=False)
    out = a.o
    same, waiting = compare_all(engines, queries, a.n, out)
    running = [q for q in queries if q not in waiting]
    speed(engines, running, a.n, a.r, out)
    result = report.Result(a.n, engines, running, best(out), same, waiting=[q for q in queries if q in waiting])
    print("\n" + report.table(result))
    if queries == runs.QUERIES and {"ours", "duckdb"} <= set(engines):
        report.keep(result)
        report.write_page()
    sys.exit(1 if any(not ok for (e, q), (ok, _) in same.items() if e == "ours") else 0)


if __name__ == "__main__":
    main()
