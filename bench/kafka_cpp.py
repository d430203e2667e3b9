"""The C++ peer (pyclink) over a topic of bids, for kafka.py.   kafka_cpp.py QUERY N BROKERS ROWS count|collect
It cannot end where a topic ends: it is stopped when it has given as many rows as the query has, so that only queries of one row in, one row
out can be measured. Both modes take rows as Arrow batches; collect writes them to out/. Run with the peer's python."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs

KINDS = {"insert": "+I", "update_after": "+U", "update_before": "-U", "delete": "-D"}


def main(q, n, brokers, want, mode):
    os.environ.setdefault("CLINK_LOG_LEVEL", "error")
    import pyclink
    sink, select = open(f"{runs.HERE}/queries/cpp/{q}.sql").read().split("\n", 1)
    columns = runs.COLS["bid"].format(s="VARCHAR", q="")
    script = (f"CREATE TABLE bid ({columns}) WITH (connector='kafka', format='json', brokers='{brokers}', topic='bid', group_id='bench-{os.getpid()}', "
              f"auto_offset_reset='earliest', event_time_column='datetime', watermark_lag_ms='4000');\n"
              f"CREATE TABLE snk ({sink.split(':', 1)[1].strip()}) WITH (connector='collect', changelog='true');\nINSERT INTO snk {select.strip()};")
    engine, rows = pyclink.Engine(parallelism=1), 0
    engine.__enter__()
    engine.execute(script)
    with open(f"{runs.WORK}/out/cpp_{q}_{n}.tsv" if mode == "collect" else os.devnull, "w") as f:
        for b in engine.collect("snk"):
            rows += b.num_rows
            if mode == "collect":
                for r in zip(*(c.to_pylist() for c in b.columns)):
                    f.write(KINDS[r[0]] + "\t" + "\t".join("null" if v is None else str(v) for v in r[1:]) + "\n")
            if rows >= want:
                break
    print(f"ROWS {rows}", flush=True)
    os._exit(0)  # its consumer would go on for ever


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
