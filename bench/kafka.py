"""NEXMark read from Kafka: clink beside Flink and the C++ peer over the same topics of 12 partitions, results compared before speed is.
   kafka.py [-q q0,q2|all] [-n 1000000] [-r 2] [-e ours,flink,cpp] [--write]      (make bench-kafka [Q=q5] [N=100000] [ENGINES=ours])
--write puts the table into docs/connectors.md.
A broker of one node runs for as long (tests/servers/kafka.sh). Topics end where they end at the start; CPU is of the engine's process
(ours, librdkafka's threads in it) or of the job inside a warm JVM, never the broker's. Run with the tests' python (tools/venv.sh)."""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "system"))
import compare
import run_ours
import runs
from kafka_broker import Broker

PARTITIONS = 12
QUERIES = ("q0", "q1", "q2", "q3", "q5", "q8", "q11", "q14", "q17", "q20", "q21", "q22")  # results that do not depend on the order between partitions
CONNECTOR = "flink-sql-connector-kafka-4.0.1-2.0.jar"
CONNECTOR_URL = f"https://repo.maven.apache.org/maven2/org/apache/flink/flink-sql-connector-kafka/4.0.1-2.0/{CONNECTOR}"
READ = {"q3": ("person", "auction"), "q8": ("person", "auction"), "q20": ("auction", "bid")}  # the others: bid
FLOWS = ("q0", "q1", "q2", "q14", "q21", "q22")  # what the C++ peer can be measured by, whose topics have no end (kafka_cpp.py)
PAGE = os.path.join(runs.TOP, "docs", "connectors.md")
BEGIN, END = "<!-- kafka -->", "<!-- /kafka -->"


def fill(broker, n):
    """Each table's lines into a topic of its name, dealt out one after the other. -> records of each."""
    from confluent_kafka import Producer
    counts = {}
    for table in runs.COLS:
        broker.topic(PARTITIONS, name=table)
        p = Producer({"bootstrap.servers": broker.address, "linger.ms": 50, "queue.buffering.max.messages": 500000, "compression.type": "lz4"})
        count = 0
        with open(f"{runs.WORK}/data/{n}/{table}.ndjson", "rb") as f:
            for line in f:
                p.produce(table, line.rstrip(b"\n"), partition=count % PARTITIONS)
                count += 1
                if count % 10000 == 0:
                    p.poll(0)
                    while len(p) > 400000:
                        p.poll(0.1)
        assert p.flush(120) == 0
        counts[table] = count
    return counts


def ours_tables(broker):
    """run_ours.tables, from topics."""
    def tables(n, watermark=True):
        text = open(runs.HERE + "/nexmark/tables.sql").read()
        for t in runs.COLS:
            text = text.replace(f"connector='file', format='json', path='${{DATA}}/{t}.ndjson'",
                                f"connector='kafka', format='json', brokers='{broker.address}', topic='{t}', bounded='true'")
        return text
    return tables


def flink_ddl(broker):
    return ";\n".join(f"CREATE TABLE {t} ({c.format(s='STRING', q='`')}, rt AS TO_TIMESTAMP_LTZ(`datetime`, 3), WATERMARK FOR rt AS rt - INTERVAL '4' SECOND) "
                      f"WITH ('connector'='kafka', 'topic'='{t}', 'properties.bootstrap.servers'='{broker.address}', 'format'='json', "
                      f"'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset')" for t, c in runs.COLS.items()) + ";\n"


def run_flink(broker, queries, n, mode, reps):
    """One JVM for all, every query `reps` times: {q: least CPU of its jobs}; with collect the results are left in out/."""
    import run_flink
    jar = os.path.join(runs.WORK, "jars", CONNECTOR)
    if not os.path.exists(jar):
        os.makedirs(os.path.dirname(jar), exist_ok=True)
        subprocess.run(["curl", "-fsSL", "-o", jar + ".part", CONNECTOR_URL], check=True)
        os.rename(jar + ".part", jar)
    argv = run_flink.argv(queries[0], n, "kafka", mode, ddl_text=flink_ddl(broker))
    at = argv.index("RunSql")
    argv[at + 2] = ",".join(f"{runs.HERE}/queries/flink/{q}.sql" for q in queries)
    if mode == "collect":
        argv[at + 3] = f"collect:{runs.WORK}/out/flink_%q_{n}.tsv"
    r = runs.measure(argv, 300 * len(queries) * reps, {"REPS": str(reps)})
    out = {}
    for line in r["out"].splitlines():
        w = line.split()
        if w[:1] == ["WARM"]:
            runs.record(runs.WORK + "/kafka.jsonl", dict(engine="flink", q=w[1], n=n, mode=mode, rep=int(w[2]), ok=True, cpu=float(w[3]), wall=float(w[4])))
            out[w[1]] = min(out.get(w[1], 1e9), float(w[3]))
        elif w[:1] in (["FAIL"], ["root"]):
            print(line[:600])
    return out


def run_cpp(broker, queries, n, mode, reps):
    """One process for each; it is done when it has given as many rows as our result has."""
    out = {}
    for q in (q for q in queries if q in FLOWS):
        with open(compare.path("ours", q, n)) as f:
            rows = sum(1 for _ in f)
        argv = [runs.PYTHON, os.path.join(runs.HERE, "kafka_cpp.py"), q, str(n), broker.address, str(rows), "collect" if mode == "collect" else "count"]
        for rep in range(reps):
            r = runs.measure(argv, 600)
            ok = r["rc"] == 0 and f"ROWS {rows}" in r["out"]
            runs.record(runs.WORK + "/kafka.jsonl", dict(engine="cpp", q=q, n=n, mode=mode, rep=rep, ok=ok, cpu=r["cpu"], wall=r["wall"]))
            if not ok:
                print(f"cpp {q}: {r['out'][-600:]}")
                break
            out[q] = min(out.get(q, 1e9), r["cpu"])
    return out


def run_clink(broker, queries, n, mode, reps):
    run_ours.tables = ours_tables(broker)
    out = {}
    for q in queries:
        rows = [run_ours.run(q, n) if mode == "blackhole" else run_ours.collect(q, n) for _ in range(reps)]
        good = [r for r in rows if r["ok"]]
        best = min(good, key=lambda r: r["cpu"], default=rows[0])
        runs.record(runs.WORK + "/kafka.jsonl", dict(best, mode=mode))
        out[q] = best["cpu"] if good else None
    return out


def total_of(rows):
    """What all queries take together, of each the better peer: rows of (ours, best)."""
    ours, best = map(sum, zip(*rows))
    return f"all: ours {ours:.2f} s, of each query the better peer {best:.2f} s, {best / ours:.1f}x"


def table_of(queries, counts, cpu, same, engines):
    lines = ["| query | records | " + " | ".join(f"{e}: CPU s | µs a record" for e in engines) + (" | ratio |" if len(engines) > 1 else " |"),
             "|---" * (2 + 2 * len(engines) + (len(engines) > 1)) + "|"]
    compared = []
    for q in queries:
        records = sum(counts[t] for t in READ.get(q, ("bid",)))
        cells = [q, f"{records:,}"]
        for e in engines:
            c = cpu[e].get(q)
            cells += [f"{c:.2f}", f"{c * 1e6 / records:.2f}"] if c is not None else ["–", ""] if e == "cpp" and q not in FLOWS else ["failed", ""]
        if len(engines) > 1:
            ours, best = cpu["ours"].get(q), min((cpu[e][q] for e in engines if e != "ours" and cpu[e].get(q)), default=None)
            wrong = [word for e, (fine, word) in same.get(q, {"": (False, "not compared")}).items() if not fine]
            fine = not wrong and ours and best
            cells.append(f"{best / ours:.1f}x" if fine else (wrong or ["failed"])[0][:60])
            compared += [(ours, best)] if fine else []
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines + (["", total_of(compared)] if len(compared) > 1 else []))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-q", default="all")
    a.add_argument("-n", type=int, default=1000000)
    a.add_argument("-r", type=int, default=2)
    a.add_argument("-e", default="ours,flink,cpp")
    a.add_argument("--write", action="store_true")
    o = a.parse_args()
    queries = list(QUERIES) if o.q == "all" else o.q.split(",")
    engines = [e for e in ("ours", "flink", "cpp") if e in o.e.split(",")]
    os.makedirs(runs.WORK + "/out", exist_ok=True)
    where = f"{runs.WORK}/kafka-{os.getpid()}"
    broker = Broker(where)
    try:
        broker.start()
        began = time.monotonic()
        counts = fill(broker, o.n)
        print(f"{json.dumps(counts)} in {PARTITIONS} partitions each, {time.monotonic() - began:.0f} s", flush=True)
        same, cpu = {}, {}
        run = {"ours": run_clink, "flink": run_flink, "cpp": run_cpp}
        if len(engines) > 1:
            for e in engines:
                run[e](broker, queries, o.n, "collect", 1)
            same = {q: {e: compare.verdict(e, "ours", q, o.n) for e in engines if e != "ours" and (e == "flink" or q in FLOWS)} for q in queries}
        for e in engines:
            cpu[e] = run[e](broker, queries, o.n, "blackhole", o.r)
    finally:
        broker.stop()
        subprocess.run(["rm", "-rf", where], check=True)
    table = table_of(queries, counts, cpu, same, engines)
    print(table)
    for q, words in same.items():
        for e, (_, word) in words.items():
            if word != "equal":
                print(f"{q}, {e}: {word}")
    bad = [q for q in queries if len(engines) > 1 and not all(fine for fine, _ in same[q].values())]
    if o.write and not bad and len(engines) > 1:
        text = open(PAGE).read()
        head, rest = text.split(BEGIN)
        with open(PAGE, "w") as f:
            f.write(head + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
