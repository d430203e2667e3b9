"""Flink 2.3 over the NEXMark files, one JVM (local mini-cluster), parallelism 1, object reuse.
   run_flink.py -q q0,q5|all -n 1000000 -f json|csv|parquet -m blackhole|collect|file -r 3 [-X mini]   (mini = mini-batch variant)"""
import argparse, glob, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs
LIB = glob.glob(runs.WORK + "/vf/lib/python3.*/site-packages/pyflink/lib")[0]
CP = f"{runs.WORK}/classes:{LIB}/*:{runs.WORK}/jars/*"
JVM = ["-Xmx6g", "-XX:+IgnoreUnrecognizedVMOptions", "-Dlog4j2.level=ERROR"] + [x for p in ("java.lang", "java.util", "java.nio", "java.net", "java.time", "java.util.concurrent", "java.util.concurrent.atomic", "java.text", "java.math", "sun.net.util") for x in (f"--add-opens=java.base/{p}=ALL-UNNAMED",) if p != "sun.net.util"]
CONF = {"parallelism.default": "1", "pipeline.object-reuse": "true", "table.local-time-zone": "UTC", "rest.port": "0",
        "taskmanager.memory.network.min": "64mb", "taskmanager.numberOfTaskSlots": "8"}
MINI = {"table.exec.mini-batch.enabled": "true", "table.exec.mini-batch.allow-latency": "2s", "table.exec.mini-batch.size": "50000",
        "table.optimizer.distinct-agg.split.enabled": "true"}

def ddl(fmt, n):
    ext = {"json": "ndjson"}.get(fmt, fmt)
    return ";\n".join(f"CREATE TABLE {t} ({c.format(s='STRING', q='`')}, rt AS TO_TIMESTAMP_LTZ(`datetime`, 3), WATERMARK FOR rt AS rt - INTERVAL '4' SECOND) "
                      f"WITH ('connector'='filesystem', 'path'='{runs.WORK}/data/{n}/{t}.{ext}', 'format'='{fmt}')" for t, c in runs.COLS.items()) + ";\n"

def argv(q, n, fmt, mode, conf=None, jvm=(), ddl_text=None):
    p = f"{runs.WORK}/out/ddl_{fmt}_{n}.sql"
    open(p, "w").write(ddl_text or ddl(fmt, n))
    m = {"collect": f"collect:{runs.WORK}/out/flink_{q}_{n}.tsv", "file": f"file:{runs.WORK}/out/flink_{q}"}.get(mode, mode)
    return ["java", *JVM, *jvm, "-cp", CP, "RunSql", p, f"{runs.HERE}/queries/flink/{q}.sql", m] + [f"{k}={v}" for k, v in {**CONF, **(conf or {})}.items()]

if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("-q", default="all"); ap.add_argument("-n", type=int, default=1000000); ap.add_argument("-f", default="json")
    ap.add_argument("-m", default="blackhole"); ap.add_argument("-r", type=int, default=3); ap.add_argument("-o", default=runs.WORK + "/results.jsonl")
    ap.add_argument("-t", type=int, default=300); ap.add_argument("-X", default=""); ap.add_argument("--conf", action="append", default=[]); ap.add_argument("--jvm", action="append", default=[]); ap.add_argument("--tag", default=""); ap.add_argument("--warm", action="store_true")
    a = ap.parse_args(); os.makedirs(runs.WORK + "/out", exist_ok=True)
    conf = dict(MINI) if a.X == "mini" else {}; conf.update(x.split("=", 1) for x in a.conf)
    if a.warm:  # one JVM, every query REPS times: CPU per job without start-up
        qs = runs.QUERIES if a.q == "all" else a.q.split(",")
        m = f"collect:{runs.WORK}/out/flink_%q_{a.n}.tsv" if a.m == "collect" else a.m
        v = argv(qs[0], a.n, a.f, m, conf, a.jvm); i = v.index("RunSql"); v[i + 2] = ",".join(f"{runs.HERE}/queries/flink/{q}.sql" for q in qs)
        r = runs.measure(v, a.t * len(qs), {"REPS": str(a.r)}); print(r["rc"], r["cpu"], r["wall"], r["rss_mb"])
        for l in r["out"].splitlines():
            w = l.split()
            if w[:1] == ["WARM"]: runs.record(a.o, dict(engine="flink-warm" + (a.X and "-" + a.X), q=w[1], n=a.n, fmt=a.f, mode=a.m, rep=int(w[2]), tag=a.tag, ok=True, cpu=float(w[3]), wall=float(w[4]), rows=None if w[5] == "-1" else int(w[5])))
            elif w[:1] in (["FAIL"], ["root"]) : print(l[:600])
        sys.exit(0)
    for q in (runs.QUERIES if a.q == "all" else [x for x in a.q.split(",") if x]):
        for rep in range(a.r):
            r = runs.measure(argv(q, a.n, a.f, a.m, conf, a.jvm), a.t); out = r.pop("out")
            get = lambda k: next((float(l.split()[1]) for l in out.splitlines() if l.startswith(k + " ")), None)
            ok = r["rc"] == 0 and get("JOB_S") is not None
            runs.record(a.o, dict(engine="flink" + ("-mini" if a.X else ""), q=q, n=a.n, fmt=a.f, mode=a.m, rep=rep, tag=a.tag, ok=ok, job_s=get("JOB_S"), rows=get("ROWS"), **r, err=None if ok else out[-2500:]))
            if not ok: break
