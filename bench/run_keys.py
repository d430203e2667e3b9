"""GROUP BY one key with COUNT and SUM, over data/keys/<file>.ndjson: k1k k1m k10m have BIGINT keys, k1ks k1ms text.
   run_keys.py -e duckdb,ours,cpp -f k1k,k1m,k1ks,k1ms -r 3
One process a run: CPU seconds and peak memory of the whole process (DuckDB's CPU is of the query alone). The peer needs 11 GB for k10m and
is left out there. Prints the table and keeps it for docs/benchmarks.md when all four files were run."""
import argparse
import json
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs
from run_ours import CLINK

FILES = {"k1k": "1,000 BIGINT", "k1m": "1,000,000 BIGINT", "k1ks": "1,000 VARCHAR", "k1ms": "1,000,000 VARCHAR", "k10m": "10,000,000 BIGINT"}
NAMES = {"ours": "clink", "duckdb": "DuckDB", "cpp": "C++ peer"}


def key_type(name):
    return "VARCHAR" if name.endswith("s") else "BIGINT"


def data(name):
    return f"{runs.WORK}/data/keys/{name}.ndjson"


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def child_duckdb(name):
    import duckdb
    c = duckdb.connect()
    c.execute("SET threads=1")
    c.execute("SET preserve_insertion_order=false")
    before = cpu()
    c.execute(f"CREATE TEMP TABLE o AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM read_json('{data(name)}', format='newline_delimited', "
              f"columns={{k: '{key_type(name)}', v: 'BIGINT'}}) GROUP BY k")
    print(f"CPU {cpu() - before:.3f}")
    check(c.execute("SELECT COUNT(*), SUM(n), SUM(s) FROM o").fetchone())


def child_cpp(name):
    os.environ.setdefault("CLINK_LOG_LEVEL", "error")
    import pyclink
    t = key_type(name)
    with pyclink.Engine(parallelism=1) as e:
        e.execute(f"CREATE TABLE keys (k {t}, v BIGINT) WITH (connector='file', format='json', path='{data(name)}');"
                  f"CREATE TABLE o (k {t}, n BIGINT, s BIGINT) WITH (connector='blackhole', format='json');"
                  "INSERT INTO o SELECT k, COUNT(*) AS n, SUM(v) AS s FROM keys GROUP BY k;")
        e.await_all()


def check(sums):
    print("SUMS", *sums)


def ours_script(name, body):
    t = key_type(name)
    return (f"CREATE TABLE keys (k {t}, v BIGINT) WITH (connector='file', format='json', path='{data(name)}');\n"
            f"CREATE TABLE o (k {t}, n BIGINT, s BIGINT) WITH (connector='blackhole');\n{body}")


def run_ours(name, body):
    path = f"{runs.WORK}/out/ours_{name}.sql"
    with open(path, "w") as f:
        f.write(ours_script(name, body))
    return runs.measure([CLINK, "run", "-p", "1", "--format", "ndjson", path], 300)


def sums_of_ours(name):
    r = run_ours(name, "SELECT COUNT(*) AS groups, SUM(n) AS n, SUM(s) AS s FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM keys GROUP BY k) t")
    found = [line for line in r["out"].splitlines() if line.startswith("{")]
    return " ".join(str(v) for v in json.loads(found[-1]).values()) if r["rc"] == 0 and found else r["out"][-300:]


def run(engine, name):
    if engine == "ours":
        r = run_ours(name, "INSERT INTO o SELECT k, COUNT(*) AS n, SUM(v) AS s FROM keys GROUP BY k")
    else:
        r = runs.measure([runs.PYTHON, os.path.abspath(__file__), "--child", engine, name], 300)
    out = r.pop("out")
    said = dict(line.split(" ", 1) for line in out.splitlines() if line.startswith(("CPU ", "SUMS ")))
    if "CPU" in said:
        r["cpu"] = float(said["CPU"])
    return dict(engine=engine, file=name, ok=r["rc"] == 0, sums=said.get("SUMS"), **r, err=None if r["rc"] == 0 else out[-500:])


def table(best, engines, files):
    head = ["keys", *(f"{NAMES[e]}, CPU s" for e in engines), "clink / DuckDB", *(f"{NAMES[e]}, MB" for e in engines)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for f in files:
        of = lambda e, k, form: form.format(best[e, f][k]) if (e, f) in best and best[e, f]["ok"] else "-"
        both = all((e, f) in best and best[e, f]["ok"] for e in ("ours", "duckdb"))
        ratio = f"{best['ours', f]['cpu'] / best['duckdb', f]['cpu']:.2f}" if both else "-"
        lines.append("| " + " | ".join([FILES[f], *(of(e, "cpu", "{:.3f}") for e in engines), ratio, *(of(e, "rss_mb", "{:.0f}") for e in engines)]) + " |")
    for big, groups in (("k10m", 10**7), ("k1m", 10**6)):
        if ("ours", big) in best and ("ours", "k1k") in best:
            per = (best["ours", big]["rss_mb"] - best["ours", "k1k"]["rss_mb"]) * 2**20 / (groups - 1000)
            lines.append(f"\nclink: {per:.1f} bytes a BIGINT group above the fixed cost ({FILES[big]} keys less 1,000 keys, resident).")
            break
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["--child"]:
        {"duckdb": child_duckdb, "cpp": child_cpp}[sys.argv[2]](sys.argv[3])
        return
    ap = argparse.ArgumentParser()
    ap.add_argument("-e", default="duckdb,ours,cpp")
    ap.add_argument("-f", default="k1k,k1m,k1ks,k1ms")
    ap.add_argument("-r", type=int, default=3)
    a = ap.parse_args()
    engines, files = a.e.split(","), a.f.split(",")
    best, wrong = {}, []
    for f in files:
        for rep in range(a.r):
            for e in engines:
                if e == "cpp" and (f == "k10m" or rep > 1):
                    continue
                row = run(e, f)
                runs.record(runs.WORK + "/keys.jsonl", row)
                if row["ok"] and ((e, f) not in best or row["cpu"] < best[e, f]["cpu"]):
                    best[e, f] = row
        if "ours" in engines and "duckdb" in engines:
            got = sums_of_ours(f)
            if got != best["duckdb", f]["sums"]:
                wrong.append(f"{f}: groups, count and sum are {got}, DuckDB's {best['duckdb', f]['sums']}")
                del best["ours", f]
    text = table(best, engines, files)
    print("\n" + text)
    if set(files) >= {"k1k", "k1m", "k1ks", "k1ms"} and not wrong:
        with open(runs.WORK + "/keys.md", "w") as out:
            out.write("## GROUP BY one key, COUNT and SUM, a million rows (ten million for ten million keys)\n\n" + text + "\n")
    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
