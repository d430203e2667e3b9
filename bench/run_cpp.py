"""pyclink over the NEXMark files.  run_cpp.py -q q0,q5|all -n 1000000 -f json|parquet|nexmark -m blackhole|collect|file -r 3
   Child form (one query, one engine): run_cpp.py --child QUERY N FMT MODE"""
import argparse, os, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs
PY = runs.WORK + "/v/bin/python"

def ddl(fmt, n):
    d, o = f"{runs.WORK}/data/{n}", []
    for t, cols in runs.COLS.items():
        et = "event_time_column='datetime', watermark_lag_ms='4000'"
        if fmt == "nexmark":
            o.append(f"CREATE TABLE {t} ({cols.format(s='VARCHAR', q='')}) WITH (connector='nexmark', format='json', {et}, events_num='{n}', tps='10000', nexmark_type='{t}')")
        elif fmt == "parquet":
            o.append(f"CREATE TABLE {t} ({cols.format(s='VARCHAR', q='')}) WITH (connector='parquet', format='json', path='{d}/{t}.parquet', {et})")
        else:
            o.append(f"CREATE TABLE {t} ({cols.format(s='VARCHAR', q='')}) WITH (connector='file', format='json', path='{d}/{t}.ndjson', {et})")
    return ";\n".join(o) + ";\n"

def child(q, n, fmt, mode):
    os.environ.setdefault("CLINK_LOG_LEVEL", "error")
    import pyclink
    txt = open(f"{runs.HERE}/queries/cpp/{q}.sql").read()
    sink, sel = txt.split("\n", 1); sink = sink.split(":", 1)[1].strip()
    w = {"blackhole": "connector='blackhole', format='json'", "collect": "connector='collect', changelog='true'",
         "file": f"connector='file', format='json', path='{runs.WORK}/out/cpp_{q}.ndjson'"}[mode]
    kw = {}
    if os.environ.get("CKPT_DIR"): kw = dict(checkpoint_dir=os.environ["CKPT_DIR"], checkpoint_interval_ms=int(os.environ.get("CKPT_MS", "1000")))
    if os.environ.get("STATE_URI"): kw["state_backend_uri"] = os.environ["STATE_URI"]
    with pyclink.Engine(parallelism=int(os.environ.get("PAR", "1")), **kw) as e:
        t0 = time.monotonic()
        e.execute(ddl(fmt, n) + f"CREATE TABLE snk ({sink}) WITH ({w});\nINSERT INTO snk {sel.strip()};")
        if mode == "collect":
            rows = 0
            with open(f"{runs.WORK}/out/cpp_{q}_{n}.tsv", "w") as f:
                K = {"insert": "+I", "update_after": "+U", "update_before": "-U", "delete": "-D"}
                for b in e.collect("snk"):
                    cols = [c.to_pylist() for c in b.columns]; rows += b.num_rows
                    for r in zip(*cols): f.write(K[r[0]] + "\t" + "\t".join("null" if v is None else str(v) for v in r[1:]) + "\n")
            print("ROWS", rows)
        e.await_all()
        print(f"JOB_S {time.monotonic()-t0:.3f}", flush=True)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]: child(*sys.argv[2:6]); sys.exit(0)
    ap = argparse.ArgumentParser()
    ap.add_argument("-q", default="all"); ap.add_argument("-n", type=int, default=1000000); ap.add_argument("-f", default="json")
    ap.add_argument("-m", default="blackhole"); ap.add_argument("-r", type=int, default=3); ap.add_argument("-o", default=runs.WORK + "/results.jsonl")
    ap.add_argument("-t", type=int, default=240); ap.add_argument("--tag", default="")
    a = ap.parse_args(); os.makedirs(runs.WORK + "/out", exist_ok=True)
    for q in (runs.QUERIES if a.q == "all" else [x for x in a.q.split(",") if x]):
        for rep in range(a.r):
            r = runs.measure([PY, __file__, "--child", q, str(a.n), a.f, a.m], a.t); out = r.pop("out")
            get = lambda k: next((float(l.split()[1]) for l in out.splitlines() if l.startswith(k + " ")), None)
            ok = r["rc"] == 0 and get("JOB_S") is not None
            runs.record(a.o, dict(engine="cpp", q=q, n=a.n, fmt=a.f, mode=a.m, rep=rep, tag=a.tag, ok=ok, job_s=get("JOB_S"), rows=get("ROWS"), **r, err=None if ok else out[-1500:]))
            if not ok: break
