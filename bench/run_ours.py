"""clink over the NEXMark files, one process a query, -p 1.   run_ours.py -q q0,q5|all -n 1000000 -m blackhole|collect|changes -r 3 [-f json] [-p 1]
blackhole is the speed run; collect leaves the result of the same plan (that is checked) in out/ours_<q>_<n>.tsv, each line a +I; changes
leaves it as it came about, each line with its kind, by the plan that --changes makes.
A query the engine does not plan yet gives a line with ok false and "not yet", never silence."""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs

CLINK = os.environ.get("CLINK", runs.TOP + "/build/clink")


def tables(n, watermark=True):
    text = open(runs.HERE + "/nexmark/tables.sql").read().replace("${DATA}", f"{runs.WORK}/data/{n}")
    if watermark:
        return text
    return text.replace(", WATERMARK FOR rt AS rt - INTERVAL '4' SECOND", "")


def script(q, n, mode, watermark):
    sink, select = open(f"{runs.HERE}/nexmark/{q}.sql").read().split("\n", 1)
    if mode == "collect":
        return f"{tables(n, watermark)}{select}"
    return f"{tables(n, watermark)}CREATE TABLE snk ({sink.split(':', 1)[1].strip()}) WITH (connector='blackhole');\nINSERT INTO snk\n{select}"


def run(q, n, mode="blackhole", flags=(), timeout=240, stdout=None):
    """One run; the watermark is left out while the engine has none."""
    path = f"{runs.WORK}/out/ours_{q}_{mode}.sql"
    for watermark in (True, False):
        with open(path, "w") as f:
            f.write(script(q, n, mode, watermark))
        r = runs.measure([CLINK, "run", "-p", "1", *flags, path], timeout, stdout=stdout)
        if "WATERMARK is not supported yet" not in r["out"]:
            break
    out = r.pop("out")
    ok = r["rc"] == 0
    return dict(engine="ours", q=q, n=n, ok=ok, not_yet="not supported yet" in out, **r, err=None if ok else out[-1500:])


def plan(q, n, mode, flags):
    """What explain says without its first two lines, the sink and how rows come to it."""
    path = f"{runs.WORK}/out/ours_{q}_{mode}_plan.sql"
    with open(path, "w") as f:
        f.write(script(q, n, mode, True))
    said = subprocess.run([CLINK, "explain", "-p", "1", *flags, path], capture_output=True, text=True)
    return said.stdout.split("\n")[2:] if said.returncode == 0 else None


def collect(q, n, flags=(), changes=False):
    """The result as KIND<tab>column... lines; numbers with a fraction keep their digits."""
    json_path = f"{runs.WORK}/out/ours_{q}_{n}.ndjson"
    ways = (*flags, "--format", "ndjson", *(("--changes=json",) if changes else ()))
    if not changes and plan(q, n, "blackhole", flags) != plan(q, n, "collect", ways):
        return dict(engine="ours", q=q, n=n, ok=False, not_yet=False, err=f"{q}: what is collected has another plan than the speed run")
    row = run(q, n, "collect", ways, stdout=json_path)
    rows = 0
    if row["ok"]:
        with open(json_path) as lines, open(f"{runs.WORK}/out/ours_{q}_{n}.tsv", "w") as f:
            for line in lines:
                values = list(json.loads(line, parse_float=str).values())
                f.write("\t".join([*(() if changes else ("+I",)), *("null" if v is None else str(v) for v in values)]) + "\n")
                rows += 1
        row["rows"] = rows
    os.unlink(json_path)
    return row


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-q", default="all")
    ap.add_argument("-n", type=int, default=1000000)
    ap.add_argument("-f", default="json", choices=["json"])
    ap.add_argument("-m", default="blackhole", choices=["blackhole", "collect", "changes"])
    ap.add_argument("-r", type=int, default=3)
    ap.add_argument("-o", default=runs.WORK + "/results.jsonl")
    ap.add_argument("-t", type=int, default=240)
    ap.add_argument("--tag", default="")
    ap.add_argument("flags", nargs="*", help="further flags of clink run, after --")
    a = ap.parse_args()
    os.makedirs(runs.WORK + "/out", exist_ok=True)
    for q in runs.chosen(a.q):
        for rep in range(a.r):
            row = run(q, a.n, flags=a.flags, timeout=a.t) if a.m == "blackhole" else collect(q, a.n, a.flags, a.m == "changes")
            runs.record(a.o, dict(row, fmt=a.f, mode=a.m, rep=rep, tag=a.tag))
            if not row["ok"]:
                break


if __name__ == "__main__":
    main()
