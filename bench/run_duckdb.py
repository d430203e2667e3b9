"""DuckDB over the same NEXMark files, one thread: the bounded equivalent of each query. It is the oracle (-m collect) and the yardstick
(-m blackhole: the result is computed and materialised in memory, CPU of the query alone).   run_duckdb.py -q all -n 1000000 -m blackhole -r 3"""
import argparse, os, resource, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs

def connect(fmt, n):
    import duckdb
    c = duckdb.connect(); c.execute("SET threads=1"); c.execute("SET preserve_insertion_order=false")
    for t, cols in runs.COLS.items():
        d = f"{runs.WORK}/data/{n}/{t}"
        types = ", ".join(f"{x.split()[0]}: '{x.split()[1]}'" for x in cols.format(s="VARCHAR", q="").split(", "))
        src = f"read_parquet('{d}.parquet')" if fmt == "parquet" else f"read_json('{d}.ndjson', format='newline_delimited', columns={{{types}}})"
        c.execute(f"CREATE VIEW {t} AS SELECT *, make_timestamp(datetime * 1000) AS rt FROM {src}")
    return c

def cpu(): r = resource.getrusage(resource.RUSAGE_SELF); return r.ru_utime + r.ru_stime

if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("-q", default="all"); ap.add_argument("-n", type=int, default=1000000); ap.add_argument("-f", default="json")
    ap.add_argument("-m", default="blackhole"); ap.add_argument("-r", type=int, default=3); ap.add_argument("-o", default=runs.WORK + "/results.jsonl"); ap.add_argument("--tag", default="")
    a = ap.parse_args(); os.makedirs(runs.WORK + "/out", exist_ok=True); c = connect(a.f, a.n)
    for q in (runs.QUERIES if a.q == "all" else a.q.split(",")):
        sql = open(f"{runs.HERE}/queries/duckdb/{q}.sql").read()
        for rep in range(a.r):
            c0, t0 = cpu(), time.monotonic()
            if a.m == "collect":
                with open(f"{runs.WORK}/out/duckdb_{q}_{a.n}.tsv", "w") as f:
                    for r in c.execute(sql).fetchall(): f.write("+I\t" + "\t".join("null" if v is None else str(v) for v in r) + "\n")
            else: c.execute("CREATE OR REPLACE TEMP TABLE snk AS " + sql)
            runs.record(a.o, dict(engine="duckdb", q=q, n=a.n, fmt=a.f, mode=a.m, rep=rep, tag=a.tag, ok=True, cpu=round(cpu() - c0, 3), wall=round(time.monotonic() - t0, 3), rows=None))
